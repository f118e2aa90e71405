"""A surface remeshed with even triangles of a requested size.

Edges are split, collapsed and flipped, vertices relaxed and projected (Botsch and
Kobbelt 2004) onto the zero of a signed distance. Rings (the crests and grooves of
folds) stay lines of edges.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.spatial import cKDTree

from drakebots.core.errors import InvalidInput, NoSolution
from drakebots.core.kernels import dot, minus, njit
from drakebots.design.geometry.distance import DistanceGrid, value_and_gradient
from drakebots.design.geometry.half_edges import (
    HalfEdges,
    agree,
    area_vector,
    around,
    collapse_short,
    cut_by_plane,
    fix_ends,
    flip,
    has_edge,
    next_edge,
    previous_edge,
    split_long,
    valence,
)
from drakebots.design.geometry.surface import Surface, edge_twins

_TOLERANCE = 0.05
"""Relative tolerance of the number of vertices."""

_STEP = 0.7
"""Share of the way to the middle of its triangles by which a vertex is moved."""


@dataclass(frozen=True)
class Ring:
    """A curve of the surface that stays edges: its section with a plane.

    Attributes:
        p_W: point of the plane, on the limb's axis (3,) [m].
        axis_W: unit normal of the plane (3,).
        radius: distance from p_W within which the section is taken [m].
    """

    p_W: np.ndarray
    axis_W: np.ndarray
    radius: float


def _half_edges(surface: Surface, size: np.ndarray) -> HalfEdges:
    """A surface as half-edges, with the requested length of the edges at its vertices.

    Raises:
        InvalidInput: for a surface that is not closed and oriented.
    """
    x, f = surface.vertices, surface.triangles
    nv, nf = len(x), len(f)
    room = nv + max(nv, 20000)
    m = HalfEdges(
        count=np.array([nv, nf]),
        org=np.full(6 * room, -1, np.int64),
        twin=np.full(6 * room, -1, np.int64),
        marked=np.zeros(6 * room, np.bool_),
        leaving=np.full(room, -1, np.int64),
        x=np.zeros((room, 3)),
        kind=np.zeros(room, np.int32),
        size=np.ones(room),
    )
    m.org[: 3 * nf] = f.ravel()
    m.twin[: 3 * nf] = twins = edge_twins(surface)
    if (f.ravel()[twins] != np.roll(f, -1, axis=1).ravel()).any():
        raise InvalidInput("surface: triangles side by side turn different ways")
    m.leaving[f.ravel()[::-1]] = np.arange(3 * nf)[::-1]
    m.x[:nv], m.size[:nv] = x, size
    m.kind[:nv][m.leaving[:nv] < 0] = -2
    return m


def _compact(m: HalfEdges) -> tuple[Surface, np.ndarray]:
    """The surface as it is, and the class of its vertices (n,)."""
    corners = m.org[: 3 * m.count[1]].reshape(-1, 3)
    corners = corners[corners[:, 0] >= 0]
    used, f = np.unique(corners, return_inverse=True)
    return Surface(m.x[used], f.reshape(-1, 3)), m.kind[used]


def remesh(
    grid: DistanceGrid,
    sizes: np.ndarray,
    fine: Surface,
    target: int,
    rings: tuple[Ring, ...] = (),
) -> tuple[Surface, np.ndarray]:
    """A surface of about `target` vertices on phi = 0.

    Args:
        grid: signed distance.
        sizes: relative length of the edges at each vertex of `fine` (n,).
        fine: dense closed surface near phi = 0, to begin with.
        target: requested number of vertices.
        rings: curves that stay edges.

    Returns:
        the surface, and the class of its vertices: 0, or 1 + the index of the ring, or
        -1 at the end of a ring.

    Raises:
        InvalidInput: for a fine surface that is not closed.
        NoSolution: when the number of vertices is not met in eight corrections.
    """
    corners = sizes[fine.triangles].mean(axis=1)
    # A triangle of edge L has the area sqrt(3)/4 L^2; a vertex has two triangles.
    wanted = (fine.areas / (np.sqrt(3) / 4 * corners**2)).sum() / 2
    factor = float(np.sqrt(wanted / target))
    tree = cKDTree(fine.vertices)
    m = _half_edges(fine, sizes * factor)
    _insert_rings(m, rings, grid.spacing)
    points = np.array([r.p_W for r in rings]).reshape(-1, 3)
    axes = np.array([r.axis_W for r in rings]).reshape(-1, 3)
    for attempt in range(9):
        for sweep in range(6 if attempt == 0 else 3):
            split_long(4 / 3, m)
            collapse_short(4 / 5, 4 / 3, m)
            flip_edges(sweep >= 3 or attempt > 0, m)
            for _ in range(3):
                relax(m, grid, points, axes)
                flip_edges(True, m)
            n = m.count[0]
            alive = m.kind[:n] > -2
            m.size[:n][alive] = sizes[tree.query(m.x[:n][alive])[1]] * factor
        surface, kind = _compact(m)
        ratio = len(surface.vertices) / target
        if abs(ratio - 1) < 0.6 * _TOLERANCE:
            return surface, kind
        factor *= ratio**0.5
        m.size[:] *= ratio**0.5
    if abs(ratio - 1) > _TOLERANCE:
        raise NoSolution(
            f"remesh: {len(surface.vertices)} vertices instead of {target}; rings of "
            "the folds or thin places need more of them; raise the target"
        )
    return surface, kind


def _insert_rings(m: HalfEdges, rings: tuple[Ring, ...], h: float) -> None:
    """Cuts the surface along rings, whose edges are then marked."""
    if not rings:
        return
    # Marching cubes leaves tiny triangles; one with three corners on a plane would
    # put a knot into the ring.
    n = m.count[0]
    size = m.size[:n].copy()
    m.size[:n] = 0.5 * h
    for _ in range(3):
        collapse_short(1.0, 8.0, m)
    m.size[:n] = size
    for index, ring in enumerate(rings):
        n, room = m.count[0], len(m.x)
        s, near = np.zeros(room), np.zeros(room, np.bool_)
        offset = m.x[:n] - ring.p_W
        s[:n] = offset @ ring.axis_W
        near[:n] = np.linalg.norm(offset, axis=1) < ring.radius
        near[:n] &= m.kind[:n] > -2
        # No vertex lies on the plane itself, so that every edge has two sides there
        # and the curve has no knots.
        s[:n] = np.where(np.abs(s[:n]) < 1e-9, 1e-9, s[:n])
        cut_by_plane(s, near, index + 1, m)
    fix_ends(m)


# Kernels: edges flipped and vertices relaxed for even triangles.


@njit(cache=True)
def _angle_cos(p, q, r):
    """Cosine of the angle at p."""
    u, v = minus(q, p), minus(r, p)
    return dot(u, v) / np.sqrt(dot(u, u) * dot(v, v) + 1e-300)


@njit(cache=True)
def flip_edges(by_angle, m):
    """Flips edges towards valence 6, or towards a Delaunay mesh if by_angle."""
    x = m.x
    for h in range(3 * m.count[1]):
        if m.org[h] < 0 or m.marked[h] or h > m.twin[h]:
            continue
        t = m.twin[h]
        a, b = m.org[h], m.org[t]
        c, d = m.org[previous_edge(h)], m.org[previous_edge(t)]
        if c == d or has_edge(c, d, m):
            continue
        va, vb = valence(a, m), valence(b, m)
        if va <= 3 or vb <= 3:
            continue
        if by_angle:
            c1 = min(max(_angle_cos(x[c], x[a], x[b]), -1.0), 1.0)
            c2 = min(max(_angle_cos(x[d], x[a], x[b]), -1.0), 1.0)
            if np.arccos(c1) + np.arccos(c2) < np.pi + 1e-6:
                continue
        else:
            vc, vd = valence(c, m), valence(d, m)
            old = abs(va - 6) + abs(vb - 6) + abs(vc - 6) + abs(vd - 6)
            new = abs(va - 7) + abs(vb - 7) + abs(vc - 5) + abs(vd - 5)
            if new >= old:
                continue
        n1, n2 = area_vector(x[a], x[b], x[c]), area_vector(x[b], x[a], x[d])
        m1, m2 = area_vector(x[a], x[d], x[c]), area_vector(x[d], x[b], x[c])
        # Not across a crease, and without inverting a triangle.
        if not agree(n1, n2, 0.5) or not agree(m1, m2, 0.5):
            continue
        if agree(n1, m1, 0.5) and agree(n2, m2, 0.5):
            flip(h, m)


@njit(cache=True)
def newton_step(p, phi, gx, gy, gz, least, h):
    """Moves p by a Newton step towards phi = 0, of at most h [m].

    Returns False, and p stays, if the squared gradient is below `least`.
    """
    g2 = gx * gx + gy * gy + gz * gz
    if g2 < least:
        return False
    step = min(max(phi / g2, -h), h)
    p[0] -= step * gx
    p[1] -= step * gy
    p[2] -= step * gz
    return True


@njit(cache=True)
def _project(grid, p, point, axis, least, steps):
    """Moves p onto phi = 0 by Newton steps of at most a spacing.

    It stays in the plane through `point` across `axis`, a ring's; in none for zeros.
    """
    for _ in range(steps):
        s = ((p - point) * axis).sum()
        p -= s * axis
        phi, gx, gy, gz = value_and_gradient(grid, p)
        ga = gx * axis[0] + gy * axis[1] + gz * axis[2]
        gx, gy, gz = gx - ga * axis[0], gy - ga * axis[1], gz - ga * axis[2]
        if not newton_step(p, phi, gx, gy, gz, least, grid.spacing):
            return


@njit(cache=True)
def _towards_middle(v, m, moved):
    """Sets `moved` to vertex v moved towards its triangles' middle, in their plane.

    Returns whether that is defined.
    """
    x, size = m.x, m.size
    mid, normal = np.zeros(3), np.zeros(3)
    total = 0.0
    for h in around(m.leaving[v], m.twin):
        p, q = m.org[next_edge(h)], m.org[previous_edge(h)]
        n = area_vector(x[v], x[p], x[q])
        area = np.sqrt(dot(n, n))
        # The weight is area over size^2: vertices are dense where size is small.
        own = (size[v] + size[p] + size[q]) / 3
        area_weight = area / (own * own)
        mid += area_weight * (x[v] + x[p] + x[q]) / 3
        total += area_weight
        for k in range(3):
            normal[k] += n[k]
    size_of_normal = np.sqrt((normal**2).sum())
    if total == 0 or size_of_normal == 0:
        return False
    normal /= size_of_normal
    step = mid / total - x[v]
    step -= (step * normal).sum() * normal
    moved[:] = x[v] + _STEP * step
    return True


@njit(cache=True)
def _along_ring(v, m, moved):
    """As the function above, for a vertex between two marked edges; along them."""
    mid = np.zeros(3)
    total = 0.0
    for h in around(m.leaving[v], m.twin):
        if m.marked[h]:
            mid += m.x[m.org[next_edge(h)]]
            total += 1
    if total != 2:
        return False
    moved[:] = m.x[v] + _STEP * (mid / total - m.x[v])
    return True


@njit(cache=True)
def _turns(v, to, m):
    """Whether a triangle of v would turn by more than 60 degrees."""
    for h in around(m.leaving[v], m.twin):
        p, q = m.x[m.org[next_edge(h)]], m.x[m.org[previous_edge(h)]]
        if not agree(area_vector(m.x[v], p, q), area_vector(to, p, q), 0.5):
            return True
    return False


@njit(cache=True)
def relax(m, grid, points, axes):
    """Moves vertices towards the middle of their triangles, on the surface.

    A move that would turn a triangle by more than 60 degrees is taken back.

    Args:
        m: the surface.
        grid: the signed distance.
        points, axes: a point of the plane of each ring, and its normal (r, 3).
    """
    new, none = m.x[: m.count[0]].copy(), np.zeros(3)
    for v in range(m.count[0]):
        if m.kind[v] > 0:
            ring = m.kind[v] - 1
            if _along_ring(v, m, new[v]):
                _project(grid, new[v], points[ring], axes[ring], 1e-2, 4)
        elif m.kind[v] == 0 and _towards_middle(v, m, new[v]):
            _project(grid, new[v], none, none, 1e-4, 2)
    for v in range(m.count[0]):
        if m.kind[v] >= 0 and not _turns(v, new[v], m):
            m.x[v] = new[v]
