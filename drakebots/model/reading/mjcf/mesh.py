"""The meshes of an MJCF file: .obj, .stl, .msh or vertices in the file itself."""

from __future__ import annotations

import hashlib
import os
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np
import trimesh
from pydrake.math import RigidTransform, RotationMatrix

from drakebots.core.errors import InvalidInput
from drakebots.core.files import replacing
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
        given: vertices (n, 3) and triangles (m, 3) in place of a file.
        solid: how its mass is found: "legacy", "exact", "convex" or "shell".
    """

    name: str
    file: Path | None
    X_FM: RigidTransform
    scale: np.ndarray
    given: tuple[np.ndarray, np.ndarray] | None = None
    solid: str = "legacy"

    @cached_property
    def surface(self) -> trimesh.Trimesh:
        """Its triangles in its own frame [m].

        Raises:
            InvalidInput: for a file that cannot be read.
        """
        vertices, faces = _file_content(self.name, self.file) or self.given
        vertices = self.X_FM.inverse().multiply(np.asarray(vertices, float).T).T
        surface = trimesh.Trimesh(vertices * self.scale, faces, process=True)
        if np.prod(self.scale) < 0:
            surface.invert()
        if not len(surface.faces) or not np.isfinite(surface.vertices).all():
            raise InvalidInput(f"mesh {self.name!r} has no triangles; correct its file")
        return surface

    @cached_property
    def inertia(self) -> Inertia:
        """Mass properties of density 1, as `inertia` of the <mesh> asks for.

        Raises:
            InvalidInput: for a mesh without volume.
        """
        if self.solid == "shell":
            return _shell_inertia(self.surface.triangles)
        solid = self.surface.convex_hull if self.solid == "convex" else self.surface
        triangles, is_signed = solid.triangles, self.solid == "exact"
        # The volume of pyramids from one point to all triangles: first from the middle
        # of the surface, then from the centre of mass that this gives. Legacy takes
        # all volumes as positive, which counts some of a mesh with hollows twice.
        middle = solid.triangles_center.T @ solid.area_faces / solid.area
        _, center, _ = _pyramids(triangles, middle, is_signed)
        mass, _, moment = _pyramids(triangles, center, is_signed)
        if not mass > 0:
            raise InvalidInput(f"mesh {self.name!r} has no volume; correct its file")
        return Inertia(mass, center, np.trace(moment) * np.eye(3) - moment)

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

    def obj(self) -> tuple[Path, np.ndarray]:
        """An .obj file of it and the scale at which to read that."""
        plain = self.X_FM.IsExactlyIdentity()
        if self.file is not None and self.file.suffix.lower() == ".obj" and plain:
            return self.file.resolve(), self.scale
        text = trimesh.exchange.obj.export_obj(self.surface, include_normals=False)
        digest = hashlib.sha256(text.encode()).hexdigest()[:24]
        path = _cache() / f"{digest}.obj"
        if not path.is_file():
            path.parent.mkdir(parents=True, exist_ok=True)
            with replacing(path) as part:
                part.write_text(text)
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
            faces = trimesh.Trimesh(vertices).convex_hull
            vertices, faces = faces.vertices, faces.faces
        given = (vertices, np.reshape(faces, (-1, 3)))
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


def _shell_inertia(triangles: np.ndarray) -> Inertia:
    """Mass properties of triangles (n, 3, 3) of mass 1 an area.

    A triangle has the second moment A / 12 (s s' + a a' + b b' + c c') about the
    origin, with s = a + b + c.
    """
    sides = triangles[:, 1:] - triangles[:, :1]
    areas = np.linalg.norm(np.cross(sides[:, 0], sides[:, 1]), axis=1) / 2
    s, mass = triangles.sum(axis=1), areas.sum()
    center = areas @ s / 3 / mass
    moment = np.einsum("n,ni,nj->ij", areas, s, s)
    moment = (moment + np.einsum("n,nki,nkj->ij", areas, triangles, triangles)) / 12
    moment -= mass * np.outer(center, center)
    return Inertia(mass, center, np.trace(moment) * np.eye(3) - moment)


def _file_content(name: str, file: Path | None):
    """Vertices and triangles of a mesh file; None where there is no file."""
    if file is None:
        return None
    try:
        if not file.is_file():
            raise InvalidInput(f"mesh {name!r}: there is no {file}")
        if file.suffix.lower() == ".msh":
            return _msh(file.read_bytes())
        mesh = trimesh.load(file, force="mesh", process=False)
        return np.asarray(mesh.vertices), np.asarray(mesh.faces)
    except InvalidInput:
        raise
    except Exception as error:
        # trimesh raises whatever its readers run into.
        raise InvalidInput(f"mesh {name!r}: {file} cannot be read ({error})") from error


def _msh(data: bytes) -> tuple[np.ndarray, np.ndarray]:
    """Vertices and triangles of MuJoCo's own binary format.

    Four counts (vertices, normals, texture coordinates, triangles) stand before the
    numbers of each.
    """
    vertices, normals, texture, faces = np.frombuffer(data, "<i4", 4)
    if min(vertices, faces, normals, texture) < 0:
        raise ValueError("has negative counts")
    p = np.frombuffer(data, "<f4", 3 * vertices, 16)
    start = 16 + 4 * (3 * vertices + 3 * normals + 2 * texture)
    return p.reshape(-1, 3), np.frombuffer(data, "<i4", 3 * faces, start).reshape(-1, 3)


def _cache() -> Path:
    root = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(root) / "drakebots" / "meshes"
