"""The meshes of an MJCF file: .obj, .stl, .msh or vertices in the file itself."""

from __future__ import annotations

import hashlib
import os
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path

import numpy as np
from pydrake.math import RigidTransform, RotationMatrix

from drakebots.core.errors import InvalidInput, ModelProblem
from drakebots.model.reading.meshes import (
    Part,
    check_mesh_file,
    collision_mesh,
    join,
    mesh_cache,
    read_parts,
    visual_mesh,
    write_obj,
)
from drakebots.model.reading.mjcf.compiler import Compiler, choice
from drakebots.model.reading.mjcf.inertia import Inertia
from drakebots.model.reading.mjcf.tree import Element

SOLIDS = ("legacy", "exact", "convex", "shell")


@dataclass(frozen=True)
class Mesh:
    """A mesh of the <asset>, read when it is first needed.

    Attributes:
        name: its name.
        file: an .obj, .stl or .msh; None where the vertices are given.
        X_FM: the frame of the mesh in that of its file.
        scale: of its coordinates (3,).
        given: vertices and triangles in place of a file.
        solid: how its mass is found: "legacy", "exact", "convex" or "shell".
    """

    name: str
    file: Path | None
    X_FM: RigidTransform
    scale: np.ndarray
    given: Part | None = None
    solid: str = "legacy"

    @cached_property
    def parts(self) -> list[Part]:
        """What its file holds, in the mesh's own frame [m].

        Raises:
            ModelProblem: for a file that cannot be read.
        """
        if self.file is None:
            parts = [self.given]
        elif self.file.suffix.lower() == ".msh":
            parts = [_msh(self.file)]
        else:
            parts = read_parts(self.file)
        X_MF = self.X_FM.inverse()
        return [
            replace(part, vertices=X_MF.multiply(part.vertices.T).T * self.scale)
            for part in parts
        ]

    @cached_property
    def triangles(self) -> np.ndarray:
        """The corners of its triangles (n, 3, 3) [m]."""
        return np.concatenate([part.vertices[part.faces] for part in self.parts])

    @cached_property
    def inertia(self) -> Inertia:
        """Mass properties of density 1, as `inertia` of the <mesh> asks for.

        Raises:
            ModelProblem: for a mesh that cannot be read, or has no volume.
        """
        if self.solid == "shell":
            return _shell_inertia(self.triangles)
        triangles, is_signed = self.triangles, self.solid == "exact"
        if self.solid == "convex":
            hull = join(self.parts, hull=True)
            triangles = hull.vertices[hull.faces]
        # The volume of pyramids from one point to all triangles: first from the middle
        # of the surface, then from the centre of mass that this gives. Legacy takes
        # all volumes as positive, which counts some of a mesh with hollows twice.
        areas = _areas(triangles)
        middle = areas @ triangles.mean(axis=1) / (areas.sum() or 1.0)
        _, center, _ = _pyramids(triangles, middle, is_signed)
        mass, _, moment = _pyramids(triangles, center, is_signed)
        mirror = np.sign(np.prod(self.scale)) if is_signed else 1.0
        if not mass * mirror > 0:
            raise ModelProblem(self.file or self.name, "has no volume")
        tensor = np.trace(moment) * np.eye(3) - moment
        return Inertia(mass * mirror, center, tensor * mirror)

    def fitted(self, kind: str) -> tuple[tuple[float, ...], RigidTransform]:
        """The sizes of a shape with about the same inertia, and its pose.

        Its axes are the principal ones of the mesh, its half lengths those of the box
        of the same inertia, as in MuJoCo's `fitaabb="false"`.
        """
        moments, axes = np.linalg.eigh(self.inertia.I_C / self.inertia.mass)
        axes[:, 0] *= np.sign(np.linalg.det(axes))
        half = np.sqrt(np.maximum(1.5 * (moments.sum() - 2 * moments), 1e-12))
        X_MG = RigidTransform(RotationMatrix(axes), self.inertia.p_FC)
        # The moments ascend, so the first axis is the longest; z is a capsule's.
        if kind == "sphere":
            return (float(half.mean()),), X_MG
        if kind in ("box", "ellipsoid"):
            return tuple(map(float, half)), X_MG
        turn = RotationMatrix.MakeYRotation(np.pi / 2)
        radius, length = float(half[1:].mean()), float(half[0])
        if kind == "capsule":
            length = max(length - radius / 2, 1e-6)
        return (radius, length), X_MG @ RigidTransform(turn)

    @cached_property
    def drawn(self) -> tuple[Path, np.ndarray]:
        """A file to draw and the scale to draw it at (3,).

        Raises:
            ModelProblem: for a mesh that Drake cannot draw.
        """
        file, scale = self._file()
        return visual_mesh(file), scale

    @cached_property
    def touched(self) -> tuple[Path, np.ndarray]:
        """A file to collide with, its convex hull perhaps, and its scale (3,).

        Raises:
            ModelProblem: for a mesh without a convex hull.
        """
        file, scale = self._file()
        return collision_mesh(file), scale

    def _file(self) -> tuple[Path, np.ndarray]:
        """Its file and scale, or an .obj in the cache where these do not say it all."""
        is_plain = self.X_FM.IsExactlyIdentity()
        if self.file is not None and is_plain and self.file.suffix.lower() != ".msh":
            return self.file.resolve(), self.scale
        digest = hashlib.sha256()
        for part in self.parts:
            digest.update(part.vertices.tobytes() + part.faces.tobytes())
        path = mesh_cache() / f"{digest.hexdigest()[:24]}.obj"
        if not os.path.isfile(path):
            path.parent.mkdir(parents=True, exist_ok=True)
            write_obj(path, self.parts)
        return path, np.ones(3)


def read_meshes(root: Element, compiler: Compiler, folder: Path) -> dict[str, Mesh]:
    """The meshes of all <asset> elements by name.

    Args:
        root: the <mujoco>.
        compiler: its settings.
        folder: of the model file.

    Raises:
        InvalidInput: for a mesh without file and vertices.
    """
    meshes = {}
    for asset in root.all("asset"):
        for element in asset.all("mesh"):
            mesh = _read_mesh(element, compiler, folder)
            meshes[mesh.name] = mesh
    return meshes


def _read_mesh(element: Element, compiler: Compiler, folder: Path) -> Mesh:
    file, given = element.get("file"), None
    path = Path(file)
    if compiler.strip_path:
        path = Path(path.name)
    name = element.get("name") or path.stem
    if not file:
        vertices = np.array(element.numbers("vertex"))
        if not vertices.size or vertices.size % 3:
            raise InvalidInput(f"{element}: needs a file, or three numbers a vertex")
        vertices = vertices.reshape(-1, 3)
        faces = np.array(element.numbers("face"), dtype=int)
        if not faces.size:
            hull = join([Part(vertices, np.zeros((0, 3), int))], hull=True)
            vertices, faces = hull.vertices, hull.faces
        given = Part(vertices, np.reshape(faces, (-1, 3)))
    quat = Element("refquat", {"quat": element.get("refquat", "1 0 0 0")})
    return Mesh(
        name=name,
        file=folder / compiler.mesh_folder / path if file else None,
        X_FM=RigidTransform(
            compiler.rotation(quat), element.vector("refpos", 3, "0 0 0")
        ),
        scale=np.array(element.vector("scale", 3, "1 1 1")),
        given=given,
        solid=choice(element, "inertia", compiler.mesh_inertia, SOLIDS),
    )


def _pyramids(
    triangles: np.ndarray, top: np.ndarray, is_signed: bool
) -> tuple[float, np.ndarray, np.ndarray]:
    """The pyramids from triangles (n, 3, 3) to one point, of density 1.

    A pyramid with corners a, b, c relative to the top has volume V = a (b x c) / 6,
    its centre at s / 4 and the second moment V / 20 (s s' + a a' + b b' + c c') about
    the top, with s = a + b + c.

    Returns:
        Their volume, centre (3,) and second moment about the top (3, 3).
    """
    a = triangles - top
    volumes = np.einsum("ni,ni->n", a[:, 0], np.cross(a[:, 1], a[:, 2])) / 6
    volumes = volumes if is_signed else np.abs(volumes)
    s, volume = a.sum(axis=1), float(volumes.sum())
    moment = np.einsum("n,ni,nj->ij", volumes, s, s)
    moment = (moment + np.einsum("n,nki,nkj->ij", volumes, a, a)) / 20
    return volume, top + volumes @ s / 4 / (volume or 1.0), moment


def _areas(triangles: np.ndarray) -> np.ndarray:
    sides = triangles[:, 1:] - triangles[:, :1]
    return np.linalg.norm(np.cross(sides[:, 0], sides[:, 1]), axis=1) / 2


def _shell_inertia(triangles: np.ndarray) -> Inertia:
    """Mass properties of triangles (n, 3, 3) of mass 1 an area.

    A triangle has the second moment A / 12 (s s' + a a' + b b' + c c') about the
    origin, with s = a + b + c.
    """
    areas = _areas(triangles)
    s, mass = triangles.sum(axis=1), areas.sum()
    center = areas @ s / 3 / mass
    moment = np.einsum("n,ni,nj->ij", areas, s, s)
    moment = (moment + np.einsum("n,nki,nkj->ij", areas, triangles, triangles)) / 12
    moment -= mass * np.outer(center, center)
    return Inertia(mass, center, np.trace(moment) * np.eye(3) - moment)


def _msh(path: Path) -> Part:
    """MuJoCo's own binary format.

    Four counts (vertices, normals, texture coordinates, triangles) stand before the
    numbers of each.

    Raises:
        ModelProblem: for a file that is too short, or missing.
    """
    try:
        data = check_mesh_file(path).read_bytes()
        vertices, normals, texture, faces = np.frombuffer(data, "<i4", 4)
        if min(vertices, faces, normals, texture) < 0:
            raise ValueError("negative counts")
        p = np.frombuffer(data, "<f4", 3 * vertices, 16).reshape(-1, 3)
        start = 16 + 4 * (3 * vertices + 3 * normals + 2 * texture)
        corners = np.frombuffer(data, "<i4", 3 * faces, start).reshape(-1, 3)
        if not faces or corners.min() < 0 or corners.max() >= vertices:
            raise ValueError("wrong corners")
    except (OSError, ValueError) as error:
        raise ModelProblem(path, f"cannot be read as a mesh ({error})") from error
    return Part(p.astype(float), corners)
