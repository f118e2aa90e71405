"""A closed triangle surface: its files, its checks, and the solid it encloses.

    surface, report = check_surface(read_surface("dog.stl", unit="mm"))

A body that is to get a skin must be closed, oriented, in one piece and must not cross
itself: :func:`check_surface` mends what can be mended and names the rest.
:func:`to_manifold` makes it a solid of manifold3d, for cutting and joining.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

import manifold3d as m
import numpy as np
import trimesh

from drakebots.core.checks import check_value, direction, one_of
from drakebots.core.errors import FileProblem, InvalidInput
from drakebots.core.files import replacing, with_ending
from drakebots.core.kernels import cross, dot, minus, njit
from drakebots.fem import MAX_CELLS, triangle_grid
from drakebots.fem.mesh import (
    area_normals,
    checked_arrays,
    connected_pieces,
    enclosed_volume,
)

UNITS = {"m": 1.0, "cm": 1e-2, "mm": 1e-3}
"""Units of length of a surface file, in metres."""

SUFFIXES = (".stl", ".obj", ".ply")
"""Suffixes of surface files."""

_AXES = {
    sign + name: tuple(factor * float(k == row) for k in range(3))
    for sign, factor in (("", 1.0), ("-", -1.0))
    for row, name in enumerate("xyz")
}
_SMALLEST, _LARGEST = 0.02, 5.0
"""Plausible lengths of a robot [m]."""

_CRUMB = 1e-10
"""Volume below which a connected part of a solid is dropped [m^3]: 0.1 mm^3."""


@dataclass(frozen=True)
class Surface:
    """Triangles whose normals, by the right-hand rule, point outward.

    Attributes:
        vertices: positions (n, 3) [m].
        triangles: vertices of each triangle (m, 3).

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
    def edges(self) -> np.ndarray:
        """Ends of the triangles' sides, each edge in both directions (3 m, 2)."""
        f = self.triangles
        return np.concatenate([f[:, [0, 1]], f[:, [1, 2]], f[:, [2, 0]]])

    @property
    def areas(self) -> np.ndarray:
        """Area of each triangle (m,) [m^2]."""
        return np.linalg.norm(_cross(self), axis=1) / 2

    @property
    def middles(self) -> np.ndarray:
        """Middles of the triangles (m, 3) [m]."""
        return self.vertices[self.triangles].mean(axis=1)

    @property
    def volume(self) -> float:
        """Enclosed volume [m^3]; negative if inside out."""
        return enclosed_volume(self.vertices, self.triangles)

    @property
    def normals(self) -> np.ndarray:
        """Unit normals of the triangles (m, 3)."""
        normals = _cross(self)
        length = np.linalg.norm(normals, axis=1, keepdims=True)
        return normals / np.maximum(length, np.finfo(float).tiny)

    @property
    def mean_normals(self) -> np.ndarray:
        """Unit means (n, 3) of the triangles' normals, weighted by their areas."""
        normals = area_normals(self.vertices, self.triangles)
        return normals / np.linalg.norm(normals, axis=1, keepdims=True).clip(1e-300)

    def turned(self, forward: str, up: str) -> Surface:
        """The surface rotated so that two of its axes become x and z.

        Args:
            forward: axis of the surface that becomes x, such as "x" or "-y".
            up: axis of the surface that becomes z.

        Raises:
            UnknownName: for an axis of another name.
            InvalidInput: for two axes that are not perpendicular.
        """
        return Surface(self.vertices @ turn_of(forward, up).T, self.triangles)


def turn_of(forward: str, up: str) -> np.ndarray:
    """The rotation R_NO (3, 3) of old axes that makes two of them x and z.

    Its rows are the new axes in the old ones; see :meth:`Surface.turned`, which raises
    the same.
    """
    x, z = (_AXES[check_value(k, k, one_of("axis", _AXES))] for k in (forward, up))
    if np.dot(x, z) != 0:
        raise InvalidInput(f"forward {forward} and up {up} must be perpendicular")
    return np.array([x, np.cross(z, x), z], float)


def frame_of(axis: np.ndarray) -> np.ndarray:
    """A rotation whose third column is along an axis (3, 3)."""
    z = check_value("direction", axis, direction())
    x = np.cross(np.eye(3)[np.argmin(np.abs(z))], z)
    x /= np.linalg.norm(x)
    return np.column_stack([x, np.cross(z, x), z])


def _cross(surface):
    a, b, c = (surface.vertices[surface.triangles[:, k]] for k in range(3))
    return np.cross(b - a, c - a)


def read_surface(
    path: str | Path, unit: str | None = None, any_size: bool = False
) -> Surface:
    """Reads an STL, OBJ or PLY file; vertices at the same position are merged.

    Args:
        path: the file.
        unit: unit of its numbers, "m", "cm" or "mm"; metres by default, and numbers
            that cannot be metres are refused.
        any_size: whether a surface may be of another size than robots are, because
            it will be scaled; without a unit, the first of UNITS is taken in which
            its length is plausible, or else metres.

    Raises:
        FileProblem: for a file that is missing, of another format, unreadable or
            without triangles, or that is shorter than 2 cm or longer than 5 m,
            which suggests another unit.
        UnknownName: for an unknown unit.
    """
    check_value("unit", unit or "m", one_of("surface unit", UNITS))
    with_ending(path, SUFFIXES)
    if not os.path.isfile(path):
        raise FileProblem(path, "no such surface file")
    try:
        mesh = trimesh.load(path, force="mesh", process=False)
        x, f = np.asarray(mesh.vertices, float), np.asarray(mesh.faces, np.int64)
    except Exception as error:
        raise FileProblem(path, f"cannot be read as a surface: {error}") from error
    if len(f) == 0:
        raise FileProblem(path, "contains no triangles")
    if not np.isfinite(x).all():
        raise FileProblem(path, "has positions that are not finite; export it again")
    length = float(np.ptp(x, axis=0).max())
    plausible = [u for u, s in UNITS.items() if _SMALLEST <= length * s <= _LARGEST]
    if any_size and unit is None and plausible:
        unit = plausible[0]
    factor = UNITS[unit or "m"]
    if not any_size and not _SMALLEST <= length * factor <= _LARGEST:
        hint = f"unit={' or '.join(plausible)}" if plausible else "another unit"
        raise FileProblem(
            path,
            f"is {length * factor:.3g} m long in {unit or 'm'}, outside {_SMALLEST} to "
            f"{_LARGEST:g} m; give {hint}",
        )
    return _merged(Surface(x * factor, f))


def _merged(surface: Surface) -> Surface:
    """Merges equal vertices and drops triangles with fewer than three corners."""
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
        UnknownName: for an unknown unit.
    """
    path = with_ending(path, SUFFIXES)
    check_value("unit", unit, one_of("surface unit", UNITS))
    x = surface.vertices / UNITS[unit]
    mesh = trimesh.Trimesh(x, surface.triangles, process=False)
    with replacing(path) as part:
        mesh.export(part, file_type=path.suffix.lower()[1:])


# Checks: closed, oriented, in one piece, without crossings.


@dataclass(frozen=True)
class SurfaceReport:
    """Findings and repairs of :func:`check_surface`.

    Attributes:
        pieces: number of closed pieces it was given; the largest is kept.
        turned: number of triangles whose orientation was reversed.
        notes: one line for each thing that was mended.
    """

    pieces: int
    turned: int
    notes: tuple[str, ...]


def check_surface(
    surface: Surface, crossings: bool = True
) -> tuple[Surface, SurfaceReport]:
    """Mends a surface so that it can become a skin.

    All pieces but the largest are dropped, and triangles are turned outward; each
    change gets a note.

    Args:
        surface: the surface.
        crossings: whether triangles that cross are looked for.

    Raises:
        InvalidInput: for holes, edges of more than two triangles, a surface with one
            side only (a Moebius band) or triangles that cross; the message gives
            the count and one place.
    """
    x, f, notes = surface.vertices, surface.triangles.copy(), []
    turned = _orient_alike(f, edge_twins(surface))
    piece = np.unique(connected_pieces(f, len(x))[1][f[:, 0]], return_inverse=True)[1]
    count = int(piece.max()) + 1
    if count > 1:
        volumes = [Surface(x, f[piece == k]).volume for k in range(count)]
        keep = int(np.argmax(np.abs(volumes)))
        notes.append(
            f"{count} separate pieces; kept the largest, dropped "
            f"{(piece != keep).sum()} triangles"
        )
        turned, f = turned[piece == keep], f[piece == keep]
        used, f = np.unique(f, return_inverse=True)
        x, f = x[used], f.reshape(-1, 3)
    if Surface(x, f).volume < 0:
        f, turned = f[:, [0, 2, 1]], ~turned
    if turned.any():
        notes.append(f"{turned.sum()} triangles were turned outward")
    mended = Surface(x, f)
    pairs = _crossing_triangles(mended) if crossings else ()
    if len(pairs):
        a, b = pairs[0]
        place = np.round(x[f[a]].mean(axis=0), 5).tolist()
        raise InvalidInput(
            f"surface: {len(pairs)} pairs of triangles cross, first {a} and {b} at "
            f"{place} m; mend the surface (union of its parts)"
        )
    return mended, SurfaceReport(count, int(turned.sum()), tuple(notes))


def edge_twins(surface):
    """The edge, 3 t + k, across each edge (3 m,); edge k joins corners k and k + 1.

    Raises:
        InvalidInput: for edges of one triangle, or of three or more.
    """
    f = surface.triangles
    ends = np.sort(np.stack([f, np.roll(f, -1, axis=1)], axis=2).reshape(-1, 2), axis=1)
    order = np.lexsort((ends[:, 1], ends[:, 0]))
    _, first, count = np.unique(
        ends[order], axis=0, return_index=True, return_counts=True
    )
    for wrong, what in (
        (count == 1, "open"),
        (count > 2, "shared by three triangles or more"),
    ):
        if wrong.any():
            edge = ends[order[first[np.argmax(wrong)]]]
            place = np.round(surface.vertices[edge].mean(axis=0), 5).tolist()
            raise InvalidInput(
                f"surface: {wrong.sum()} edges are {what}, first at {place} m; "
                "close the surface and remove inner walls"
            )
    pairs = order.reshape(-1, 2)
    twin = np.empty(3 * len(f), np.int64)
    twin[pairs[:, 0]], twin[pairs[:, 1]] = pairs[:, 1], pairs[:, 0]
    return twin


def _orient_alike(f, twin):
    """Gives the triangles of each piece the orientation of its first, in place.

    Each triangle is two nodes of a graph, one for either orientation; edges join
    the orientations in which neighbours agree.

    Returns:
        which triangles were turned (m,).
    """
    n, other = len(f), twin // 3
    # Neighbours agree when their common edge runs in opposite directions.
    differ = f.ravel() == f.ravel()[twin]
    one = np.arange(3 * n) // 3
    rows = np.concatenate([one, n + one])
    columns = np.concatenate([other + n * differ, other + n * ~differ])
    label = connected_pieces(np.column_stack([rows, columns]), 2 * n)[1].reshape(2, n)
    both = label[0] == label[1]
    if both.any():
        raise InvalidInput(
            f"surface triangle {np.argmax(both)}: the surface closes on itself like a "
            "Moebius band, so that neither of its sides is outside; mend it"
        )
    _, first, piece = np.unique(
        label.min(axis=0), return_index=True, return_inverse=True
    )
    turned = label[0] != label[0][first][piece]
    f[turned] = f[turned][:, [0, 2, 1]]
    return turned


def _crossing_triangles(surface: Surface) -> np.ndarray:
    """Pairs of triangles that cross and share no corner (k, 2); the first 1000.

    Their boxes are sorted into the cells of a grid; in each cell the edges of one
    triangle are tested against the other.
    """
    x, f = surface.vertices, surface.triangles
    corners = x[f]
    low, high = corners.min(axis=1), corners.max(axis=1)
    start, size = x.min(axis=0), np.ptp(x, axis=0)
    cell = max(2 * float(np.median((high - low).max(axis=1))), 1e-9)
    cell = max(cell, size.max() / 500, float(np.cbrt(size.prod() / MAX_CELLS)))
    shape = np.floor(size / cell).astype(np.int64) + 1
    found = _crossings(*triangle_grid(x, f, 0.0, cell, start, shape), x, f, low, high)
    return np.unique(found, axis=0) if len(found) else found


@njit(cache=True)
def _pierces(p, q, a, b, c):
    """Whether the open segment p q crosses the triangle a b c."""
    u, v, w = minus(b, a), minus(c, a), minus(p, q)
    n = cross(u, v)
    d = dot(w, n)
    if d == 0:
        return False
    r = minus(p, a)
    t = dot(r, n) / d
    if t <= 0 or t >= 1:
        return False
    e = cross(w, r)
    s = dot(v, e) / d
    if s < 0 or s > 1:
        return False
    z = -dot(u, e) / d
    return z >= 0 and s + z <= 1


@njit(cache=True)
def _crossings(start, items, x, f, low, high):
    """Pairs of triangles that cross (n, 2), at most 1,000, among those of one cell.

    The triangles of each cell are `items`, from `start` on; `low` and `high` are their
    boxes.
    """
    found = np.empty((1000, 2), np.int64)
    n = 0
    for cell in range(len(start) - 1):
        for p in range(start[cell], start[cell + 1]):
            for q in range(p + 1, start[cell + 1]):
                s, t = items[p], items[q]
                apart = False
                for k in range(3):
                    if low[s, k] > high[t, k] or low[t, k] > high[s, k]:
                        apart = True
                    for other in range(3):
                        if f[s, k] == f[t, other]:
                            apart = True
                if apart or n == len(found):
                    continue
                for k in range(3):
                    if _pierces(
                        x[f[s, k]], x[f[s, (k + 1) % 3]],
                        x[f[t, 0]], x[f[t, 1]], x[f[t, 2]],
                    ) or _pierces(
                        x[f[t, k]], x[f[t, (k + 1) % 3]],
                        x[f[s, 0]], x[f[s, 1]], x[f[s, 2]],
                    ):  # fmt: skip
                        found[n, 0], found[n, 1] = min(s, t), max(s, t)
                        n += 1
                        break
    return found[:n]


# The solid within a surface, as manifold3d's.


def to_manifold(surface: Surface, name: str = "surface"):
    """The solid within a closed surface.

    Args:
        surface: closed, its triangles outward.
        name: name of the surface, for messages.

    Raises:
        InvalidInput: unless the surface is closed, outward and not empty.
    """
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
    """The boundary of a solid; the inverse of :func:`to_manifold`."""
    mesh = body.to_mesh64()
    return Surface(
        np.array(mesh.vert_properties[:, :3]), np.array(mesh.tri_verts, dtype=np.int64)
    )


def contains(body, p: np.ndarray) -> bool:
    """Whether a solid contains a point (3,) [m], by the parity of a ray's crossings."""
    p = np.asarray(p, float)
    # The ray is oblique, so that it meets no edge of a regular grid.
    end = p + 10.0 * np.array([0.5403, 0.2971, 0.7873])
    return len(body.ray_cast(p.tolist(), end.tolist())) % 2 == 1


def heavy_parts(body) -> list:
    """A solid's connected parts, without the crumbs that cuts along faces leave."""
    return [part for part in body.decompose() if abs(part.volume()) > _CRUMB]
