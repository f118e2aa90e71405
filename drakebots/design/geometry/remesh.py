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
from drakebots.core.kernels import njit
from drakebots.design.geometry.distance import DistanceGrid, value_and_gradient
from drakebots.design.geometry.half_edges import (
    agree,
    area_vector,
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
from drakebots.design.geometry.surface import Surface


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


class HalfEdges:
    """The arrays of the kernels, for a surface that is cut and joined."""

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
        """The arrays, in the order in which the kernels take them."""
        return (
            self.count, self.org, self.twin, self.marked, self.leaving,
            self.x, self.kind, self.size,
        )  # fmt: skip

    def compact(self) -> tuple[Surface, np.ndarray]:
        """The surface as it is, and the class of its vertices (n,)."""
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
        sizes: relative length of the edges at each vertex of `fine` (n,).
        fine: dense closed surface near phi = 0, to begin with.
        target: requested number of vertices.
        rings: curves that stay edges.
        tolerance: relative tolerance of the number of vertices.

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
            f"remesh: {len(surface.vertices)} vertices instead of {target}; rings of "
            "the folds or thin places need more of them; raise the target"
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
    """Cuts the mesh along rings, whose edges are then marked."""
    if not rings:
        return
    # Marching cubes leaves tiny triangles; one with three corners on a plane would
    # put a knot into the ring.
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
        # No vertex lies on the plane itself, so that every edge has two sides there
        # and the curve has no knots.
        s[:n] = np.where(np.abs(s[:n]) < 1e-9, 1e-9, s[:n])
        cut_by_plane(s, near, *mesh.arrays, index + 1)
    c, org, twin, marked, leaving, _, kind, _ = mesh.arrays
    fix_ends(c, org, twin, marked, leaving, kind)


# Kernels: edges flipped and vertices relaxed for even triangles.


@njit(cache=True)
def _angle_cos(p, q, r):
    """Cosine of the angle at p."""
    u0, u1, u2 = q[0] - p[0], q[1] - p[1], q[2] - p[2]
    v0, v1, v2 = r[0] - p[0], r[1] - p[1], r[2] - p[2]
    return (u0 * v0 + u1 * v1 + u2 * v2) / np.sqrt(
        (u0 * u0 + u1 * u1 + u2 * u2) * (v0 * v0 + v1 * v1 + v2 * v2) + 1e-300
    )


@njit(cache=True)
def flip_edges(by_angle, count, org, twin, marked, leaving, x):
    """Flips edges towards valence 6, or towards a Delaunay mesh if by_angle."""
    done = 0
    for h in range(3 * count[1]):
        if org[h] < 0 or marked[h] or h > twin[h]:
            continue
        t = twin[h]
        a, b, c, d = org[h], org[t], org[previous_edge(h)], org[previous_edge(t)]
        if c == d or has_edge(c, d, org, twin, leaving):
            continue
        va = valence(a, org, twin, leaving)
        vb = valence(b, org, twin, leaving)
        if va <= 3 or vb <= 3:
            continue
        if by_angle:
            c1 = min(max(_angle_cos(x[c], x[a], x[b]), -1.0), 1.0)
            c2 = min(max(_angle_cos(x[d], x[a], x[b]), -1.0), 1.0)
            if np.arccos(c1) + np.arccos(c2) < np.pi + 1e-6:
                continue
        else:
            vc = valence(c, org, twin, leaving)
            vd = valence(d, org, twin, leaving)
            old = abs(va - 6) + abs(vb - 6) + abs(vc - 6) + abs(vd - 6)
            new = abs(va - 7) + abs(vb - 7) + abs(vc - 5) + abs(vd - 5)
            if new >= old:
                continue
        n1, n2 = area_vector(x[a], x[b], x[c]), area_vector(x[b], x[a], x[d])
        m1, m2 = area_vector(x[a], x[d], x[c]), area_vector(x[d], x[b], x[c])
        # Not across a crease, and without inverting a triangle.
        if not agree(n1, n2, 0.5) or not agree(m1, m2, 0.5):
            continue
        if not agree(n1, m1, 0.5) or not agree(n2, m2, 0.5):
            continue
        flip(h, org, twin, marked, leaving)
        done += 1
    return done


@njit(cache=True)
def _newton_step(p, phi, gx, gy, gz, least, h):
    """Moves p by a Newton step towards phi = 0, of at most a spacing.

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
def project(values, origin, h, p, steps):
    """Moves a point onto phi = 0 by Newton steps of at most a spacing."""
    for _ in range(steps):
        phi, gx, gy, gz = value_and_gradient(values, origin, h, p[0], p[1], p[2])
        if not _newton_step(p, phi, gx, gy, gz, 1e-4, h):
            return


@njit(cache=True)
def _to_ring(values, origin, h, p, point, axis, steps):
    """Moves p onto a ring: phi = 0 in the plane through `point` across `axis`."""
    for _ in range(steps):
        s = ((p - point) * axis).sum()
        p -= s * axis
        phi, gx, gy, gz = value_and_gradient(values, origin, h, p[0], p[1], p[2])
        ga = gx * axis[0] + gy * axis[1] + gz * axis[2]
        gx, gy, gz = gx - ga * axis[0], gy - ga * axis[1], gz - ga * axis[2]
        if not _newton_step(p, phi, gx, gy, gz, 1e-2, h):
            return


@njit(cache=True)
def _towards_middle(v, weight, org, twin, leaving, x, size, moved):
    """Sets `moved` to vertex v moved towards its triangles' middle, in their plane.

    Returns whether that is defined.
    """
    mid, normal = np.zeros(3), np.zeros(3)
    total = 0.0
    g = leaving[v]
    start = g
    while True:
        p, q = org[next_edge(g)], org[previous_edge(g)]
        n = area_vector(x[v], x[p], x[q])
        area = np.sqrt(n[0] ** 2 + n[1] ** 2 + n[2] ** 2)
        # The weight is area over size^2: vertices are dense where size is small.
        own = (size[v] + size[p] + size[q]) / 3
        area_weight = area / (own * own)
        mid += area_weight * (x[v] + x[p] + x[q]) / 3
        total += area_weight
        normal[0] += n[0]
        normal[1] += n[1]
        normal[2] += n[2]
        g = twin[previous_edge(g)]
        if g == start:
            break
    size_of_normal = np.sqrt((normal**2).sum())
    if total == 0 or size_of_normal == 0:
        return False
    normal /= size_of_normal
    step = mid / total - x[v]
    step -= (step * normal).sum() * normal
    moved[:] = x[v] + weight * step
    return True


@njit(cache=True)
def _along_ring(v, weight, org, twin, marked, leaving, x, moved):
    """As the function above, for a vertex between two marked edges; along them."""
    mid = np.zeros(3)
    total = 0.0
    g = leaving[v]
    start = g
    while True:
        if marked[g]:
            mid += x[org[next_edge(g)]]
            total += 1
        g = twin[previous_edge(g)]
        if g == start:
            break
    if total != 2:
        return False
    moved[:] = x[v] + weight * (mid / total - x[v])
    return True


@njit(cache=True)
def _turns(v, to, org, twin, leaving, x):
    """Whether a triangle of v would turn by more than 60 degrees."""
    g = leaving[v]
    start = g
    while True:
        p, q = org[next_edge(g)], org[previous_edge(g)]
        n, m = area_vector(x[v], x[p], x[q]), area_vector(to, x[p], x[q])
        if not agree(n, m, 0.5):
            return True
        g = twin[previous_edge(g)]
        if g == start:
            return False


@njit(cache=True)
def relax(
    count, org, twin, marked, leaving, x, kind, size,
    values, origin, h, points, axes, weight,
):  # fmt: skip
    """Moves vertices towards the middle of their triangles, on the surface.

    A move that would turn a triangle by more than 60 degrees is taken back.
    """
    new = x[: count[0]].copy()
    for v in range(count[0]):
        if kind[v] > 0:
            ring = kind[v] - 1
            if _along_ring(v, weight, org, twin, marked, leaving, x, new[v]):
                _to_ring(values, origin, h, new[v], points[ring], axes[ring], 4)
        elif kind[v] == 0 and _towards_middle(
            v, weight, org, twin, leaving, x, size, new[v]
        ):
            project(values, origin, h, new[v], 2)
    for v in range(count[0]):
        if kind[v] >= 0 and not _turns(v, new[v], org, twin, leaving, x):
            x[v] = new[v]
