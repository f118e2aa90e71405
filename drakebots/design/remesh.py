"""A surface meshed again with even triangles of a wanted size.

Split, collapse, flip, relax and project (Botsch and Kobbelt 2004), on a signed
distance; rings (the crests and grooves of folds) stay lines of edges.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.spatial import cKDTree

from drakebots.design.distance_grid import DistanceGrid
from drakebots.design.remesh_length_kernels import collapse_short, split_long
from drakebots.design.remesh_ring_kernels import cut_by_plane, fix_ends
from drakebots.design.remesh_shape_kernels import flip_edges, relax
from drakebots.design.surface import Surface
from drakebots.errors import InvalidInput, NoSolution


@dataclass(frozen=True)
class Ring:
    """A curve of the surface kept as edges: its section with a plane.

    Attributes:
        p_W: point of the plane, on the limb's axis [m].
        axis_W: unit normal of the plane.
        radius: the section is taken within this distance of p_W [m].
    """

    p_W: np.ndarray
    axis_W: np.ndarray
    radius: float


class HalfEdges:
    """Room for a surface that is cut and joined; arrays of the kernels."""

    def __init__(self, surface: Surface, size: np.ndarray):
        x, f = surface.vertices, surface.triangles
        nv, nf = len(x), len(f)
        room = nv + max(nv, 20000)
        self.count = np.array([nv, nf])
        self.org = np.full(6 * room, -1, np.int64)
        self.org[: 3 * nf] = f.ravel()
        self.twin = np.full(6 * room, -1, np.int64)
        self.twin[: 3 * nf] = _twins(f)
        self.marked = np.zeros(6 * room, np.bool_)
        self.leaving = np.full(room, -1, np.int64)
        self.leaving[f.ravel()[::-1]] = np.arange(3 * nf)[::-1]
        self.x = np.zeros((room, 3))
        self.x[:nv] = x
        self.kind = np.zeros(room, np.int32)
        self.kind[:nv][self.leaving[:nv] < 0] = -2
        self.size = np.ones(room)
        self.size[:nv] = size

    @property
    def arrays(self):
        """What the kernels take, in their order."""
        return (
            self.count, self.org, self.twin, self.marked, self.leaving,
            self.x, self.kind, self.size,
        )  # fmt: skip

    def compact(self) -> tuple[Surface, np.ndarray]:
        """The surface as it is, and the class of its vertices."""
        corners = self.org[: 3 * self.count[1]].reshape(-1, 3)
        corners = corners[corners[:, 0] >= 0]
        used, f = np.unique(corners, return_inverse=True)
        return Surface(self.x[used], f.reshape(-1, 3)), self.kind[used]


def _twins(triangles):
    start, end = triangles.ravel(), np.roll(triangles, -1, axis=1).ravel()
    n = int(triangles.max()) + 1
    forward, backward = start * n + end, end * n + start
    order = np.argsort(forward)
    at = np.searchsorted(forward[order], backward)
    at = np.minimum(at, len(order) - 1)
    twin = order[at]
    if (forward[twin] != backward).any() or len(np.unique(forward)) != len(forward):
        raise InvalidInput(
            "surface: is not closed and two-manifold (an edge has no partner, or "
            "more than one); mend it"
        )
    return twin


def remesh(
    grid: DistanceGrid,
    sizes: np.ndarray,
    fine: Surface,
    target: int,
    rings: tuple[Ring, ...] = (),
    tolerance: float = 0.05,
) -> tuple[Surface, np.ndarray]:
    """A surface of about `target` vertices on phi = 0.

    Args:
        grid: signed distance.
        sizes: wanted edge at each vertex of `fine`, up to a common factor.
        fine: a dense closed surface near phi = 0 to begin with.
        target: vertices wanted.
        rings: curves kept.
        tolerance: of the number of vertices, relative.

    Returns:
        the surface, and its vertices' class: 0, or 1 + index of the ring, or -1
        at the end of a ring.

    Raises:
        InvalidInput: for a fine surface that is not closed.
        NoSolution: when the number of vertices is not met in eight corrections.
    """
    corners = sizes[fine.triangles].mean(axis=1)
    # A triangle of edge L has the area sqrt(3)/4 L^2; two triangles a vertex.
    wanted = (fine.areas / (np.sqrt(3) / 4 * corners**2)).sum() / 2
    factor = float(np.sqrt(wanted / target))
    tree = cKDTree(fine.vertices)
    mesh = HalfEdges(fine, sizes * factor)
    _insert_rings(mesh, rings, grid.spacing)
    points = np.array([r.p_W for r in rings]).reshape(-1, 3)
    axes = np.array([r.axis_W for r in rings]).reshape(-1, 3)
    for attempt in range(9):
        for sweep in range(6 if attempt == 0 else 3):
            _sweep(mesh, grid, points, axes, sweep < 3 and attempt == 0)
            n = mesh.count[0]
            alive = mesh.kind[:n] > -2
            nearest = tree.query(mesh.x[:n][alive])[1]
            mesh.size[:n][alive] = sizes[nearest] * factor
        surface, kind = mesh.compact()
        ratio = len(surface.vertices) / target
        if abs(ratio - 1) < 0.6 * tolerance:
            return surface, kind
        factor *= ratio**0.5
        mesh.size *= ratio**0.5
    if abs(ratio - 1) > tolerance:
        raise NoSolution(
            f"remesh: {len(surface.vertices)} vertices instead of {target}; the rings "
            "of the folds or thin places ask for more, raise the target"
        )
    return surface, kind


def _sweep(mesh, grid, points, axes, by_valence):
    values, origin, h = grid.values, grid.origin, grid.spacing
    split_long(4 / 3, *mesh.arrays)
    collapse_short(4 / 5, 4 / 3, *mesh.arrays)
    part = mesh.arrays[:6]
    flip_edges(not by_valence, *part)
    for _ in range(3):
        relax(*mesh.arrays, values, origin, h, points, axes, 0.7)
        flip_edges(True, *part)


def _insert_rings(mesh, rings, h):
    if not rings:
        return
    # Marching cubes leaves tiny triangles; three corners of one on a plane would
    # tie the ring in a knot.
    n = mesh.count[0]
    size = mesh.size[:n].copy()
    mesh.size[:n] = 0.5 * h
    for _ in range(3):
        collapse_short(1.0, 8.0, *mesh.arrays)
    mesh.size[:n] = size
    for index, ring in enumerate(rings):
        room = len(mesh.x)
        n = mesh.count[0]
        s, near = np.zeros(room), np.zeros(room, np.bool_)
        offset = mesh.x[:n] - ring.p_W
        s[:n] = offset @ ring.axis_W
        near[:n] = np.linalg.norm(offset, axis=1) < ring.radius
        near[:n] &= mesh.kind[:n] > -2
        # No vertex on the plane itself: every crossing is then of two sides, and
        # the curve has no knots.
        s[:n] = np.where(np.abs(s[:n]) < 1e-9, 1e-9, s[:n])
        cut_by_plane(s, near, *mesh.arrays, index + 1)
    c, org, twin, marked, leaving, _, kind, _ = mesh.arrays
    fix_ends(c, org, twin, marked, leaving, kind)
