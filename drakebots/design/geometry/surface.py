"""A closed triangle surface, and its files."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import trimesh

from drakebots.core.errors import FileProblem, InvalidInput, UnknownName
from drakebots.core.files import replacing
from drakebots.fem.mesh import checked_arrays

# Surfaces as manifold3d's solids and back, for cutting and joining.

CRUMB = 1e-10
"""Largest volume of a crumb [m^3]: 0.1 mm^3."""


def to_manifold(surface: Surface, name: str = "surface"):
    """The solid within a closed surface.

    Raises:
        InvalidInput: unless the surface is closed, outward and not empty.
    """
    import manifold3d as m

    body = m.Manifold(
        m.Mesh64(
            vert_properties=surface.vertices,
            tri_verts=surface.triangles.astype(np.uint64),
        )
    )
    if body.status() != m.Error.NoError:
        raise InvalidInput(f"{name}: not a closed surface ({body.status().name})")
    if body.is_empty() or body.volume() <= 0:
        raise InvalidInput(
            f"{name}: encloses {body.volume():.3g} m^3; turn its triangles outward"
        )
    return body


def to_surface(body) -> Surface:
    """The boundary of a solid, outward [m]."""
    mesh = body.to_mesh64()
    return Surface(
        np.array(mesh.vert_properties[:, :3]), np.array(mesh.tri_verts, dtype=np.int64)
    )


def contains(body, p: np.ndarray) -> bool:
    """Whether a point (3,) lies inside, by the parity of crossings of a ray."""
    p = np.asarray(p, float)
    # Oblique, so that no edge of a regular grid is met.
    end = p + 10.0 * np.array([0.5403, 0.2971, 0.7873])
    return len(body.ray_cast(p.tolist(), end.tolist())) % 2 == 1


def heavy_parts(body) -> list:
    """The connected parts, without the crumbs that cuts along faces leave."""
    return [part for part in body.decompose() if abs(part.volume()) > CRUMB]


def face_on_plane(surface: Surface, p: np.ndarray, normal: np.ndarray) -> np.ndarray:
    """Triangles that lie in a plane (m,), within 0.1 um."""
    on = np.abs((surface.vertices - p) @ normal) < 1e-7
    return on[surface.triangles].all(axis=1)


UNITS = {"m": 1.0, "cm": 1e-2, "mm": 1e-3}
SUFFIXES = (".stl", ".obj", ".ply")
AXES = {
    sign + name: tuple(way * float(k == row) for k in range(3))
    for sign, way in (("", 1.0), ("-", -1.0))
    for row, name in enumerate("xyz")
}
SMALLEST, LARGEST = 0.02, 5.0
"""Plausible extents of a robot [m]."""


@dataclass(frozen=True)
class Surface:
    """Vertices and triangles, outward by the right hand.

    Attributes:
        vertices: (n, 3) [m].
        triangles: (m, 3).

    Raises:
        InvalidInput: for wrong shapes, positions that are not finite, or a corner
            that is not a vertex.
    """

    vertices: np.ndarray
    triangles: np.ndarray

    def __post_init__(self):
        x, f = checked_arrays("surface", "triangle", self.vertices, self.triangles, 3)
        object.__setattr__(self, "vertices", x)
        object.__setattr__(self, "triangles", f)

    @property
    def areas(self) -> np.ndarray:
        """Of the triangles (m,) [m^2]."""
        return np.linalg.norm(_cross(self), axis=1) / 2

    @property
    def volume(self) -> float:
        """Enclosed, sum of x0 . (x1 x x2)/6 [m^3]; negative when inside out."""
        a, b, c = (self.vertices[self.triangles[:, k]] for k in range(3))
        return float(np.einsum("ij,ij->", a, np.cross(b, c)) / 6)

    @property
    def normals(self) -> np.ndarray:
        """Unit normals of the triangles (m, 3)."""
        cross = _cross(self)
        length = np.linalg.norm(cross, axis=1, keepdims=True)
        return cross / np.maximum(length, np.finfo(float).tiny)

    def turned(self, forward: str, up: str) -> Surface:
        """x = R_NO x_O, such that the axes named, "x", "-y"..., become x and z.

        Raises:
            UnknownName: for an axis of another name.
            InvalidInput: for two axes that are not square to each other.
        """
        for name in (forward, up):
            if name not in AXES:
                raise UnknownName("axis", name, AXES)
        x, z = AXES[forward], AXES[up]
        if np.dot(x, z) != 0:
            raise InvalidInput(
                f"forward {forward} and up {up}: must be square to each other"
            )
        R_NO = np.array([x, np.cross(z, x), z], float)
        return Surface(self.vertices @ R_NO.T, self.triangles)

    def scaled(self, factor: float) -> Surface:
        """The same surface times a factor about the origin."""
        return Surface(self.vertices * factor, self.triangles)


def _cross(surface):
    a, b, c = (surface.vertices[surface.triangles[:, k]] for k in range(3))
    return np.cross(b - a, c - a)


def read_surface(
    path: str | Path, unit: str | None = None, scale: float = 1.0
) -> Surface:
    """Reads an STL, OBJ or PLY file; equal vertices are merged.

    Args:
        path: the file.
        unit: of its numbers, "m", "cm" or "mm"; by default metres, and numbers
            that cannot be metres are refused.
        scale: a factor on top.

    Raises:
        FileProblem: for a file that is missing, of another format, unreadable or
            without triangles, or of an extent outside 2 cm to 5 m (the unit).
        InvalidInput: for an unknown unit or a scale that is not > 0.
    """
    path = Path(path)
    if unit is not None and unit not in UNITS:
        raise InvalidInput(f"unit {unit!r}: must be one of {', '.join(UNITS)}")
    if not (np.isfinite(scale) and scale > 0):
        raise InvalidInput(f"scale {scale}: must be > 0")
    _check_suffix(path)
    if not path.is_file():
        raise FileProblem(path, "no such surface file")
    try:
        mesh = trimesh.load(path, force="mesh", process=False)
        x, f = np.asarray(mesh.vertices, float), np.asarray(mesh.faces, np.int64)
    except Exception as error:
        raise FileProblem(path, f"cannot be read as a surface: {error}") from error
    if len(f) == 0:
        raise FileProblem(path, "holds no triangles")
    if not np.isfinite(x).all():
        raise FileProblem(path, "has positions that are not finite; export it again")
    x = x * UNITS[unit or "m"] * scale
    extent = float(np.ptp(x, axis=0).max())
    if not SMALLEST <= extent <= LARGEST:
        guess = [
            u
            for u, s in UNITS.items()
            if SMALLEST <= extent / UNITS[unit or "m"] * s <= LARGEST
        ]
        hint = f"give unit={' or '.join(guess)}" if guess else "give unit or scale"
        raise FileProblem(
            path,
            f"is {extent:.3g} m long in {unit or 'm'}, outside {SMALLEST} to "
            f"{LARGEST:g} m; {hint}",
        )
    return merged(Surface(x, f))


def merged(surface: Surface) -> Surface:
    """Equal vertices made one, triangles without three corners taken out."""
    x, of = np.unique(surface.vertices, axis=0, return_inverse=True)
    f = of.reshape(-1)[surface.triangles]
    keep = (f[:, 0] != f[:, 1]) & (f[:, 1] != f[:, 2]) & (f[:, 2] != f[:, 0])
    if not keep.any():
        raise InvalidInput("surface: every triangle is degenerate")
    used, f = np.unique(f[keep], return_inverse=True)
    return Surface(x[used], f.reshape(-1, 3))


def write_surface(path: str | Path, surface: Surface, unit: str = "m") -> None:
    """Writes an STL (binary), OBJ or PLY file.

    Raises:
        FileProblem: for another suffix, or a place that cannot be written.
        InvalidInput: for an unknown unit.
    """
    path = Path(path)
    _check_suffix(path)
    if unit not in UNITS:
        raise InvalidInput(f"unit {unit!r}: must be one of {', '.join(UNITS)}")
    mesh = trimesh.Trimesh(
        surface.vertices / UNITS[unit], surface.triangles, process=False
    )
    try:
        with replacing(path) as temporary:
            mesh.export(temporary, file_type=path.suffix.lower()[1:])
    except OSError as error:
        raise FileProblem(path, f"cannot be written: {error}") from error


def _check_suffix(path):
    if path.suffix.lower() not in SUFFIXES:
        raise FileProblem(
            path, f"suffix {path.suffix!r} is none of {', '.join(SUFFIXES)}"
        )
