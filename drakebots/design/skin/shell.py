"""A body hollowed to a wall of tets with a requested number of vertices."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from scipy.sparse import csr_array
from scipy.sparse.csgraph import connected_components

from drakebots.core.checks import between, check_value, positive, whole
from drakebots.core.errors import InvalidInput, NoSolution
from drakebots.design.geometry import DistanceGrid, Ring, Surface, remesh
from drakebots.design.skin import shell_tets
from drakebots.design.skin.fold import Fold, fold_depths, fold_of_triangles, fold_rings
from drakebots.design.skin.shell_tets import ShellReport, shell_report
from drakebots.fem.mesh import TetMesh, prism_tets, surface_triangles

Thickness = float | Callable[[np.ndarray], np.ndarray]
"""Thickness of a wall [m], or a function of points (n, 3) -> (n,) [m]."""

GOAL = 0.35
"""Quality to which tets are improved, where the wall allows it."""

FLOOR = 0.1
"""Lowest quality; below it thinner walls are tried, then the shell is refused."""


class FlatTets(NoSolution):
    """A wall that cannot be meshed, at the places (n, 3) [m]."""

    def __init__(self, message: str, places: np.ndarray):
        super().__init__(message)
        self.places = places


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
    thickness: Thickness = 4e-3,
    *,
    target_vertices: int = 14000,
    layers: int = 1,
    folds: tuple[Fold, ...] = (),
    rings: tuple[Ring, ...] = (),
    fold_refine: float = 1.0,
    tolerance: float = 0.05,
) -> Shell:
    """Hollows a body and meshes the wall.

    The surface is remeshed to target/(layers + 1) vertices, folds are pressed into
    it, and then it is hollowed (the paper's order, so that the wall follows the
    teeth): each vertex is pushed inward by the thickness, measured as its distance
    from the outer surface.

    Args:
        grid: signed distance of the body before it is folded.
        thickness: thickness of the wall.
        target_vertices: number of vertices of the tet mesh.
        layers: number of layers of prisms through the wall.
        folds: regions of teeth.
        rings: further curves along which edges run.
        fold_refine: length of edges in folds over that of the others.
        tolerance: relative tolerance of the number of vertices.

    Raises:
        InvalidInput: for thickness <= 0, counts < 1, a fold that does not meet the
            body or is too deep for it, or a body thinner than a wall everywhere.
        NoSolution: when the quality of a tet stays below FLOOR, with its place.
    """
    if not callable(thickness):
        check_value("thickness", thickness, positive("m"))
    check_value("target_vertices", target_vertices, whole(100))
    check_value("layers", layers, whole(1))
    check_value("fold_refine", fold_refine, between(0.1, 2))
    check_value("tolerance", tolerance, between(0, 1, open_ends=True))
    folds = tuple(fold.fitted(grid) for fold in folds)
    fine = grid.level_set()
    sizes = _sizes(grid, fine, folds, fold_refine)
    surface, kind = remesh(
        grid,
        sizes,
        fine,
        max(round(target_vertices / (layers + 1)), 40),
        fold_rings(folds) + rings,
        tolerance,
    )
    wall = _thickness_at(thickness, surface.vertices)
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
    n = len(outer.vertices)
    x0, f = outer.vertices, outer.triangles
    h = max(float(np.clip(np.median(wall) / 2, 5e-4, 2.5e-3)), least)
    grid = DistanceGrid.near_surface(outer, h, band=float(wall.max()) + 3 * h)
    inward = -shell_tets.vertex_normals(x0, f)
    tets = prism_tets(f, n, layers)
    start, of_vertex = shell_tets.tets_of_vertices(tets, (layers + 1) * n)
    edges = np.sort(np.concatenate([f[:, [0, 1]], f[:, [1, 2]], f[:, [2, 0]]]), axis=1)
    length = np.linalg.norm(x0[edges[:, 0]] - x0[edges[:, 1]], axis=1)
    mean_edge = np.bincount(edges.ravel(), np.repeat(length, 2), n) / np.bincount(
        edges.ravel(), minlength=n
    )
    args = (grid.values, grid.origin, grid.spacing)
    _, reached = shell_tets.flow_inward(*args, x0, inward, wall, 16)
    # Less than to the middle, so that opposite sheets do not touch.
    depth = np.where(reached < 0.98 * wall, 0.8 * reached, wall)
    depth = _graded(depth, edges, length)
    inner_ids = layers * n + np.arange(n)
    inner, _ = shell_tets.flow_inward(*args, x0, inward, depth, 16)
    x = np.concatenate([x0 + (inner - x0) * (k / layers) for k in range(layers + 1)])
    movable = np.concatenate([loose, np.ones(layers * n, bool)])
    reach = np.tile(0.2 * mean_edge, layers + 1)
    scale = np.tile(wall, layers + 1)
    for _ in range(8):
        wanted = np.concatenate([depth * k / layers for k in range(layers + 1)])
        for goal in (FLOOR, 0.2, GOAL):
            shell_tets.improve(
                x, tets, start, of_vertex, movable, wanted, scale, reach, *args, goal, 6
            )
        quality = shell_tets.qualities(x, tets)
        bad = np.unique(tets[quality < FLOOR] % n)
        if not len(bad):
            break
        shrink = np.zeros(n, bool)
        shrink[bad] = True
        shrink[edges[shrink[edges].any(axis=1)].ravel()] = True
        depth = _graded(np.where(shrink, 0.8 * depth, depth), edges, length)
    mesh = TetMesh(x, tets, np.repeat(fold, 3 * layers))
    if len(bad):
        worst = int(np.argmin(quality))
        place = x[tets[worst]].mean(axis=0)
        raise FlatTets(
            f"shell: tet {worst} at {np.round(place, 4).tolist()} m has a quality of "
            f"{quality[worst]:.2g} only ({(quality < FLOOR).sum()} tets are below "
            f"{FLOOR}); thicken or smooth the body there, or use more vertices",
            x[tets[quality < FLOOR]].mean(axis=1),
        )
    report = shell_report(mesh, grid, inner_ids, f, wall)
    outer = Surface(x[:n], f)
    return Shell(mesh, outer, np.arange(n), inner_ids, -grid(x[inner_ids]), report)


def wall_surfaces(mesh: TetMesh) -> tuple[Surface, Surface]:
    """The inner and the outer surface of a wall, both with their normals outward.

    Args:
        mesh: tets of a wall around one cavity, such as the skin of a robot in a file.

    Raises:
        InvalidInput: unless its boundary is a closed surface within another one.
    """
    f, x = surface_triangles(mesh), mesh.vertices
    ends = np.concatenate([f[:, [0, 1]], f[:, [1, 2]]])
    links = csr_array((np.ones(len(ends)), ends.T), (len(x), len(x)))
    part = connected_components(links, directed=False)[1][f[:, 0]]
    pieces = [Surface(x, f[part == k]) for k in np.unique(part)]
    pieces.sort(key=lambda piece: piece.volume)
    if len(pieces) != 2 or pieces[0].volume >= 0:
        raise InvalidInput(f"skin: its boundary has {len(pieces)} pieces, not two")
    inner, outer = pieces
    return _compact(Surface(x, inner.triangles[:, ::-1])), _compact(outer)


def _compact(surface: Surface) -> Surface:
    """A surface without the vertices that it does not use."""
    used, triangles = np.unique(surface.triangles, return_inverse=True)
    return Surface(surface.vertices[used], triangles.reshape(-1, 3))


def _sizes(grid, fine, folds, fold_refine):
    """Relative length of edges at the vertices: shorter where thin, and in folds."""
    inward = -shell_tets.vertex_normals(fine.vertices, fine.triangles)
    depth = np.full(len(fine.vertices), 0.03)
    _, reached = shell_tets.flow_inward(
        grid.values, grid.origin, grid.spacing, fine.vertices, inward, depth, 20
    )
    sizes = np.clip(reached / 0.015, 0.45, 1.0)
    for fold in folds:
        sizes = np.where(fold.near(fine.vertices), fold_refine * sizes, sizes)
    f = fine.triangles
    edges = np.concatenate([f[:, [0, 1]], f[:, [1, 2]], f[:, [2, 0]]])
    length = np.linalg.norm(
        fine.vertices[edges[:, 0]] - fine.vertices[edges[:, 1]], axis=1
    )
    return _graded(sizes, edges, length / 0.02)


def _graded(values, edges, length, slope=0.5):
    """Lowers values until neighbours differ by at most slope times their distance."""
    values = values.copy()
    for _ in range(40):
        before = values.copy()
        for i, j in ((0, 1), (1, 0)):
            np.minimum.at(values, edges[:, i], values[edges[:, j]] + slope * length)
        if np.array_equal(before, values):
            break
    return values


def _thickness_at(thickness, points):
    if callable(thickness):
        values = np.asarray(thickness(points), float)
        if values.shape != (len(points),):
            raise InvalidInput(
                f"thickness: the function gave shape {values.shape} for "
                f"{len(points)} points, must give ({len(points)},)"
            )
    else:
        values = np.full(len(points), float(thickness))
    if not np.isfinite(values).all() or values.min() <= 0:
        raise InvalidInput("thickness: must be finite and > 0 m everywhere")
    return values
