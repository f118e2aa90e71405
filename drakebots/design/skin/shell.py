"""A body hollowed to a wall of tets with a requested number of vertices.

Each vertex of the outer surface is pushed inward, along the gradient of the signed
distance, to its depth; the prisms in between are cut into three tets each
(:func:`drakebots.fem.mesh.prism_tets`). Where sheets meet (tips thinner than two walls,
crests of folds) the depth is kept below the middle, and vertices are moved until no tet
is flat.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from drakebots.core.checks import check_value, whole
from drakebots.core.errors import NoSolution
from drakebots.core.kernels import cross, dot, minus, njit
from drakebots.core.lazy import late
from drakebots.design.geometry import (
    DistanceGrid,
    Ring,
    Surface,
    newton_step,
    remesh,
    value_and_gradient,
)
from drakebots.design.skin.fold import (
    AtPlaces,
    Fold,
    fold_depths,
    fold_of_triangles,
    fold_rings,
)
from drakebots.fem.mesh import TetMesh, cells_of_vertices, prism_tets, tet_quality

trimesh = late("trimesh")

GOAL = 0.35
"""Quality to which tets are improved, where the wall allows it."""

FLOOR = 0.1
"""Lowest quality; below it thinner walls are tried, then the shell is refused."""


@dataclass(frozen=True)
class ShellReport:
    """Measurements of a shell.

    Attributes:
        vertices, tets: numbers of vertices and of tets.
        wall_m: 1, 50 and 99 % quantiles of the thickness over the inner surface [m].
        quality: lowest, 1 % and 50 % quantiles of the tets' mean ratio.
        inverted: number of tets of volume <= 0.
        volume: volume of the wall [m^3].
        held: share of vertices whose wall is thinner than requested by more than
            10 %, because the body is thinner than two walls there or the tets would
            be flat.
    """

    vertices: int
    tets: int
    wall_m: tuple[float, float, float]
    quality: tuple[float, float, float]
    inverted: int
    volume: float
    held: float

    def __str__(self) -> str:
        low, mid, high = (1e3 * w for w in self.wall_m)
        return (
            f"{self.vertices} vertices, {self.tets} tets, wall {low:.2f}/{mid:.2f}/"
            f"{high:.2f} mm, quality {self.quality[0]:.2f}/{self.quality[1]:.2f}/"
            f"{self.quality[2]:.2f}, {self.inverted} inverted, "
            f"{self.volume * 1e6:.1f} cm^3, thinner than requested at "
            f"{100 * self.held:.1f} %"
        )


class FlatTets(AtPlaces, NoSolution):
    """A wall that cannot be meshed."""


@dataclass(frozen=True)
class Shell:
    """A wall of tets.

    Attributes:
        mesh: tets of the wall; region 0 is plain, region k the k-th fold.
        outer: outer surface; its vertex i is vertex outer_vertices[i] of the mesh.
        outer_vertices, inner_vertices: opposite vertices of the mesh (n,).
        thickness: measured thickness of the wall at the inner vertices (n,) [m].
        report: measurements of the wall and its tets.
    """

    mesh: TetMesh
    outer: Surface
    outer_vertices: np.ndarray
    inner_vertices: np.ndarray
    thickness: np.ndarray
    report: ShellReport

    @property
    def inner(self) -> Surface:
        """The inner surface; its normals point out of the cavity."""
        return Surface(self.mesh.vertices[self.inner_vertices], self.outer.triangles)


def shell_mesh(
    grid: DistanceGrid,
    thickness: Callable[[np.ndarray], np.ndarray],
    *,
    target_vertices: int = 14000,
    layers: int = 1,
    folds: tuple[Fold, ...] = (),
    rings: tuple[Ring, ...] = (),
    fold_refine: float = 1.0,
) -> Shell:
    """Hollows a body and meshes the wall.

    The surface is remeshed to target/(layers + 1) vertices, folds are pressed into
    it, and then it is hollowed (the paper's order, so that the wall follows the
    teeth): each vertex is pushed inward by the thickness, measured as its distance
    from the outer surface.

    Args:
        grid: signed distance of the body before it is folded.
        thickness: thickness of the wall at points (n, 3) -> (n,) [m], > 0.
        target_vertices: number of vertices of the tet mesh.
        layers: number of layers of prisms through the wall.
        folds: regions of teeth.
        rings: further curves along which edges run.
        fold_refine: length of edges in folds over that of the others.

    Raises:
        InvalidInput: for fewer than 100 vertices, a fold that does not meet the body or
            is too deep for it, or a body thinner than a wall everywhere.
        NoSolution: when the quality of a tet stays below FLOOR, with its place.
    """
    check_value("target_vertices", target_vertices, whole(100))
    folds = tuple(fold.fitted(grid) for fold in folds)
    fine = grid.level_set()
    sizes = _sizes(grid, fine, folds, fold_refine)
    count = max(round(target_vertices / (layers + 1)), 40)
    surface, kind = remesh(grid, sizes, fine, count, fold_rings(folds) + rings)
    wall = thickness(surface.vertices)
    if folds:
        surface = Surface(fold_depths(folds, surface, wall), surface.triangles)
    fold = fold_of_triangles(folds, surface)
    return _hollow(surface, wall, layers, fold, kind == 0, 0.5 * grid.spacing)


def _hollow(
    outer: Surface,
    wall: np.ndarray,
    layers: int,
    fold: np.ndarray,
    loose: np.ndarray,
    least: float,
) -> Shell:
    """Tets between a surface and the same surface pushed inward.

    Args:
        outer: closed, outward; its triangles become faces of the tets.
        wall: requested thickness at its n vertices (n,) [m].
        layers: number of layers of prisms through the wall.
        fold: region of each triangle.
        loose: vertices that may be moved along the surface where tets are bad (n,);
            the others stay.
        least: least spacing of the distance grid, which follows the body's size [m].

    Raises:
        NoSolution: when the quality of a tet stays below FLOOR, with its place.
    """
    n, x0, f = len(outer.vertices), outer.vertices, outer.triangles
    h = max(float(np.clip(np.median(wall) / 2, 5e-4, 2.5e-3)), least)
    grid = DistanceGrid.near_surface(outer, h, band=float(wall.max()) + 3 * h)
    inward = -vertex_normals(outer)
    edges = np.sort(outer.edges, axis=1)
    length = np.linalg.norm(x0[edges[:, 0]] - x0[edges[:, 1]], axis=1)
    mean_edge = np.bincount(edges.ravel(), np.repeat(length, 2), n) / np.bincount(
        edges.ravel(), minlength=n
    )
    _, reached = flow_inward(grid, x0, inward, wall, 16)
    # Less than to the middle, so that opposite sheets do not touch.
    depth = np.where(reached < 0.98 * wall, 0.8 * reached, wall)
    depth = _graded(depth, edges, length)
    inner, _ = flow_inward(grid, x0, inward, depth, 16)
    x = np.concatenate([x0 + (inner - x0) * (k / layers) for k in range(layers + 1)])
    tets = prism_tets(f, n, layers)
    sheets = _Sheets(
        x,
        tets,
        *cells_of_vertices(tets, len(x)),
        movable=np.concatenate([loose, np.ones(layers * n, bool)]),
        wall=np.tile(wall, layers + 1),
        reach=np.tile(0.2 * mean_edge, layers + 1),
    )
    _move_vertices(sheets, grid, depth, edges, length)
    inside = layers * n + np.arange(n)
    mesh = TetMesh(x, tets, np.repeat(fold, 3 * layers))
    thick = -grid(x[inside])
    report = _report(mesh, grid, thick, x[inside], f, wall)
    return Shell(mesh, Surface(x[:n], f), np.arange(n), inside, thick, report)


def _move_vertices(
    sheets: _Sheets,
    grid: DistanceGrid,
    depth: np.ndarray,
    edges: np.ndarray,
    length: np.ndarray,
) -> None:
    """Moves vertices until no tet is flat; makes the wall thinner where that fails.

    Args:
        sheets: the tets.
        grid: signed distance of the outer surface.
        depth: depth of the inner surface at its n vertices (n,) [m].
        edges, length: the surface's edges (k, 2), and their lengths (k,) [m].

    Raises:
        NoSolution: when the quality of a tet stays below FLOOR, with its place.
    """
    x, tets, n = sheets.x, sheets.tets, len(depth)
    layers = len(x) // n - 1
    for _ in range(8):
        wanted = np.concatenate([depth * k / layers for k in range(layers + 1)])
        for goal in (FLOOR, 0.2, GOAL):
            improve(sheets, wanted, grid, goal, 6)
        quality = tet_quality(x, tets)
        bad = np.unique(tets[quality < FLOOR] % n)
        if not len(bad):
            return
        shrink = np.zeros(n, bool)
        shrink[bad] = True
        shrink[edges[shrink[edges].any(axis=1)].ravel()] = True
        depth = _graded(np.where(shrink, 0.8 * depth, depth), edges, length)
    worst = int(np.argmin(quality))
    place = x[tets[worst]].mean(axis=0)
    raise FlatTets(
        f"shell: tet {worst} at {np.round(place, 4).tolist()} m has a quality of "
        f"{quality[worst]:.2g} only ({(quality < FLOOR).sum()} tets are below "
        f"{FLOOR}); thicken or smooth the body there, or use more vertices",
        x[tets[quality < FLOOR]].mean(axis=1),
    )


def _report(mesh, outer: DistanceGrid, wall, inner, triangles, requested):
    """Measurements of a shell.

    Args:
        mesh: tets of the wall.
        outer: signed distance of its outer surface.
        wall: thickness at the vertices of the inner surface (n,) [m].
        inner, triangles: vertices (n, 3) [m] and triangles of the inner surface.
        requested: requested thickness at those vertices (n,) [m].
    """
    # At the middles of the inner triangles, too, where chords come nearest.
    walls = np.concatenate([wall, -outer(inner[triangles].mean(axis=1))])
    quality = tet_quality(mesh.vertices, mesh.tets)
    return ShellReport(
        vertices=len(mesh.vertices),
        tets=len(mesh.tets),
        wall_m=tuple(np.percentile(walls, [1, 50, 99]).tolist()),
        quality=tuple(np.percentile(quality, [0, 1, 50]).tolist()),
        inverted=int((mesh.volumes <= 0).sum()),
        volume=float(mesh.volumes.sum()),
        held=float((wall < 0.9 * requested).mean()),
    )


def _sizes(grid, fine, folds, fold_refine):
    """Relative length of edges at the vertices: shorter where thin, and in folds."""
    x, edges = fine.vertices, fine.edges
    _, reached = flow_inward(grid, x, -vertex_normals(fine), np.full(len(x), 0.03), 20)
    sizes = np.clip(reached / 0.015, 0.45, 1.0)
    for fold in folds:
        sizes = np.where(fold.near(x), fold_refine * sizes, sizes)
    length = np.linalg.norm(x[edges[:, 0]] - x[edges[:, 1]], axis=1)
    return _graded(sizes, edges, length / 0.02)


def _graded(values, edges, length):
    """Lowers values until neighbours differ by at most half their distance."""
    values = values.copy()
    for _ in range(40):
        before = values.copy()
        for i, j in ((0, 1), (1, 0)):
            np.minimum.at(values, edges[:, i], values[edges[:, j]] + 0.5 * length)
        if np.array_equal(before, values):
            break
    return values


def vertex_normals(surface: Surface) -> np.ndarray:
    """Unit outward normals (n, 3): the triangles' means, weighted by their angles."""
    x, f = surface.vertices, surface.triangles
    return trimesh.Trimesh(x, f, process=False).vertex_normals


# Kernels: vertices pushed inward, and moved where tets are flat.


class _Sheets(NamedTuple):
    """Tets between sheets of vertices.

    Attributes:
        x: positions, which the kernels change (n, 3) [m].
        tets: the tets (m, 4).
        start, of_vertex: start (n + 1,) and list of the tets of each vertex; those of v
            are of_vertex[start[v] : start[v + 1]].
        movable: whether a vertex may move (n,).
        wall: thickness of the wall (n,) [m].
        reach: length of the first step (n,) [m].
    """

    x: np.ndarray
    tets: np.ndarray
    start: np.ndarray
    of_vertex: np.ndarray
    movable: np.ndarray
    wall: np.ndarray
    reach: np.ndarray


@njit(cache=True)
def flow_inward(grid, x, inward, depth, substeps):
    """Pushes points inward to phi = -depth; stops in the middle, where slopes vanish.

    Returns:
        positions (n, 3), and the depth reached (n,) [m].
    """
    h = grid.spacing
    out, reached = x.copy(), np.zeros(len(x))
    for n in range(len(x)):
        p = x[n].copy()
        # On the surface the gradient mixes both sides: begin along the normal.
        first = min(0.3 * depth[n], h)
        p += first * inward[n]
        best = p.copy()
        lowest = value_and_gradient(grid, p)[0]
        for k in range(1, substeps + 1):
            level = -first - (depth[n] - first) * k / substeps
            for _ in range(3):
                phi, gx, gy, gz = value_and_gradient(grid, p)
                if not newton_step(p, phi - level, gx, gy, gz, 0.1, 0.5 * h):
                    break
            phi = value_and_gradient(grid, p)[0]
            if phi < lowest:
                lowest = phi
                best = p.copy()
            if phi > level + 0.25 * depth[n]:
                break
        out[n], reached[n] = best, -lowest
    return out, reached


@njit(cache=True)
def _quality(x, a, b, c, d):
    """Mean ratio of a tet, signed: 12 (3 V)^(2/3) / sum of squared edges."""
    u, v, w = minus(x[b], x[a]), minus(x[c], x[a]), minus(x[d], x[a])
    det = dot(u, cross(v, w))
    # Squared edges between b, c, d by the cosine law.
    s = 3 * (dot(u, u) + dot(v, v) + dot(w, w)) - 2 * (
        u[0] * v[0] + u[1] * v[1] + u[2] * v[2]
        + u[0] * w[0] + u[1] * w[1] + u[2] * w[2]
        + v[0] * w[0] + v[1] * w[1] + v[2] * w[2]
    )  # fmt: skip
    q = 12 * np.cbrt(0.25 * det * det) / max(s, 1e-300)
    return q if det > 0 else -q


@njit(cache=True)
def _worst_quality(v, sheets):
    """Lowest quality of the tets of a vertex."""
    worst = 1.0
    for k in range(sheets.start[v], sheets.start[v + 1]):
        t = sheets.tets[sheets.of_vertex[k]]
        worst = min(worst, _quality(sheets.x, t[0], t[1], t[2], t[3]))
    return worst


@njit(cache=True)
def _off(v, sheets, wanted, grid):
    """Half the distance of a vertex from its depth, over the wall's thickness."""
    x = sheets.x
    phi = value_and_gradient(grid, x[v])[0]
    return 0.5 * abs(phi + wanted[v]) / sheets.wall[v]


_DIRECTIONS = np.array(
    [
        np.array(step) / np.sqrt(np.count_nonzero(step))
        for step in itertools.product((-1, 0, 1), repeat=3)
        if np.count_nonzero(step) in (1, 3)
    ]
)
"""Directions in which a vertex is moved: along axes and diagonals of a cube (14, 3)."""


@njit(cache=True)
def _moved(v, sheets, wanted, grid, goal):
    """Moves a vertex by a pattern search; whether that is much better."""
    x = sheets.x
    worst = _worst_quality(v, sheets)
    if worst >= goal:
        return False
    first = min(worst, goal) - _off(v, sheets, wanted, grid)
    best, step = first, sheets.reach[v]
    for _ in range(5):
        old = x[v].copy()
        found = -1
        for d in range(len(_DIRECTIONS)):
            x[v] = old + step * _DIRECTIONS[d]
            off = _off(v, sheets, wanted, grid)
            if goal - off <= best:
                continue
            value = min(_worst_quality(v, sheets), goal) - off
            if value > best + 1e-5:
                best, found = value, d
        x[v] = old + step * _DIRECTIONS[found] if found >= 0 else old
        if found < 0:
            step *= 0.4
    return best > first + 1e-3


@njit(cache=True)
def improve(sheets, wanted, grid, goal, rounds):
    """Pattern search of each movable vertex for a better worst tet around it.

    Moves raise  min(worst quality, goal) - 0.5 |phi + depth|/wall,  so that the wall
    keeps its thickness where tets are good. Directions and order are fixed; a vertex
    that finds no better place rests until a neighbour moves.

    Args:
        sheets: the tets, whose vertices are moved.
        wanted: requested depth -phi of every vertex (n,) [m].
        grid: signed distance of the outer surface.
        goal: quality above which a tet is left as it is.
        rounds: largest number of sweeps.
    """
    awake = sheets.movable.copy()
    for _ in range(rounds):
        rest = True
        for v in range(len(sheets.x)):
            if not awake[v]:
                continue
            awake[v] = False
            if _moved(v, sheets, wanted, grid, goal):
                rest = False
                for k in range(sheets.start[v], sheets.start[v + 1]):
                    for w in sheets.tets[sheets.of_vertex[k]]:
                        awake[w] = sheets.movable[w]
        if rest:
            break
