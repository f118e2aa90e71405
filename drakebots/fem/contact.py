"""Penalty contact of a skin's vertices with surfaces, its own above all.

As in "Computational Design of Skinned Quad-Robots", section 4.2, a contact is a spring
k along the normal, a damper c against approach, and Coulomb friction mu f_n, viscous at
low speed. As explicit forces they are stable only for stiffnesses below about m/dt^2,
with m the mass of the vertices that they act on; in a skin's step the normal is
implicit (:mod:`drakebots.skin.coupled.touch`).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

import numpy as np

from drakebots.core.checks import (
    array,
    between,
    check_value,
    instance,
    non_negative,
    positive,
)
from drakebots.core.errors import InvalidInput
from drakebots.core.fields import check, checked
from drakebots.core.kernels import dot, minus, njit
from drakebots.fem.assembly import FemModel
from drakebots.fem.mesh import area_normals, surface_triangles

MAX_CELLS = 2_000_000
"""Largest number of cells of the search grid."""

# Points against triangles: a uniform grid and the nearest triangle; compiled.


@njit(cache=True)
def closest_on_triangle(p, a, b, c):
    """Squared distance of p from a triangle, and the weights of its nearest point.

    After Ericson, Real-Time Collision Detection (2005), section 5.1.5.
    """
    ab, ac, ap = minus(b, a), minus(c, a), minus(p, a)
    d1, d2 = dot(ab, ap), dot(ac, ap)
    if d1 <= 0.0 and d2 <= 0.0:
        return dot(ap, ap), 1.0, 0.0, 0.0
    bp = minus(p, b)
    d3, d4 = dot(ab, bp), dot(ac, bp)
    if d3 >= 0.0 and d4 <= d3:
        return dot(bp, bp), 0.0, 1.0, 0.0
    cp = minus(p, c)
    d5, d6 = dot(ab, cp), dot(ac, cp)
    if d6 >= 0.0 and d5 <= d6:
        return dot(cp, cp), 0.0, 0.0, 1.0
    va, vb, vc = d3 * d6 - d5 * d4, d5 * d2 - d1 * d6, d1 * d4 - d3 * d2
    if vc <= 0.0 and d1 >= 0.0 and d3 <= 0.0:
        v, w = d1 / (d1 - d3), 0.0
        u = 1.0 - v
    elif vb <= 0.0 and d2 >= 0.0 and d6 <= 0.0:
        v, w = 0.0, d2 / (d2 - d6)
        u = 1.0 - w
    elif va <= 0.0 and d4 - d3 >= 0.0 and d5 - d6 >= 0.0:
        w = (d4 - d3) / ((d4 - d3) + (d5 - d6))
        u, v = 0.0, 1.0 - w
    else:
        total = va + vb + vc
        u, v, w = va / total, vb / total, vc / total
    r0 = ap[0] - v * ab[0] - w * ac[0]
    r1 = ap[1] - v * ab[1] - w * ac[1]
    r2 = ap[2] - v * ab[2] - w * ac[2]
    return r0 * r0 + r1 * r1 + r2 * r2, u, v, w


@njit(cache=True)
def box_square(p, a, b, c):
    """Squared distance of p from the box of a triangle, a cheap lower bound."""
    square = 0.0
    for i in range(3):
        lo = min(a[i], min(b[i], c[i])) - p[i]
        hi = p[i] - max(a[i], max(b[i], c[i]))
        out = max(lo, max(hi, 0.0))
        square += out * out
    return square


@njit(cache=True)
def triangle_grid(vertices, triangles, reach, cell, low, shape):
    """Triangles near each cell, as CSR.

    Their boxes are enlarged by reach, so that a point needs to look into one cell only.

    Returns:
        starts of the cells (cells + 1,) and their triangles.
    """
    cells = shape[0] * shape[1] * shape[2]
    start = np.zeros(cells + 1, np.int64)
    items = np.empty(0, np.int32)
    first, last = np.empty(3, np.int64), np.empty(3, np.int64)
    for sweep in range(2):
        if sweep == 1:
            for k in range(cells):
                start[k + 1] += start[k]
            items = np.empty(start[cells], np.int32)
            fill = start[:-1].copy()
        for t in range(len(triangles)):
            for i in range(3):
                a = vertices[triangles[t, 0], i]
                b = vertices[triangles[t, 1], i]
                c = vertices[triangles[t, 2], i]
                lo = min(a, min(b, c)) - reach - low[i]
                hi = max(a, max(b, c)) + reach - low[i]
                first[i] = min(max(0, int(np.floor(lo / cell))), shape[i] - 1)
                last[i] = min(max(0, int(np.floor(hi / cell))), shape[i] - 1)
            for x in range(first[0], last[0] + 1):
                for y in range(first[1], last[1] + 1):
                    for z in range(first[2], last[2] + 1):
                        k = (x * shape[1] + y) * shape[2] + z
                        if sweep == 0:
                            start[k + 1] += 1
                        else:
                            items[fill[k]] = t
                            fill[k] += 1
    return start, items


@njit(cache=True)
def nearest(
    points, ids, vertices, triangles, reach, cell, low, shape, start, items,
    same, rest, clearance,
):  # fmt: skip
    """The nearest triangle within reach of each point.

    With `same` the points are vertices of the triangles' own mesh: triangles that
    contain the point, or are nearer than `clearance` at rest, are skipped.

    Returns:
        triangle (n,), -1 for none; barycentric weights (n, 3).
    """
    n = len(ids)
    found, weights = np.full(n, -1, np.int64), np.zeros((n, 3))
    for k in range(n):
        node = ids[k]
        p = points[node]
        c0 = int(np.floor((p[0] - low[0]) / cell))
        c1 = int(np.floor((p[1] - low[1]) / cell))
        c2 = int(np.floor((p[2] - low[2]) / cell))
        if c0 < 0 or c1 < 0 or c2 < 0:
            continue
        if c0 >= shape[0] or c1 >= shape[1] or c2 >= shape[2]:
            continue
        at = (c0 * shape[1] + c1) * shape[2] + c2
        best = reach * reach
        for q in range(start[at], start[at + 1]):
            t = items[q]
            i, j, l = triangles[t, 0], triangles[t, 1], triangles[t, 2]  # noqa: E741
            if same and (i == node or j == node or l == node):
                continue
            if box_square(p, vertices[i], vertices[j], vertices[l]) >= best:
                continue
            near = closest_on_triangle(p, vertices[i], vertices[j], vertices[l])
            square = near[0]
            if square >= best:
                continue
            if same:
                apart = closest_on_triangle(rest[node], rest[i], rest[j], rest[l])
                if apart[0] < clearance * clearance:
                    continue
            best = square
            found[k] = t
            weights[k] = near[1:]
    return found, weights


# Forces.


@checked("contact")
class Penalty:
    """Parameters of a penalty contact.

    Raises:
        InvalidInput: for a value outside its range.
    """

    stiffness: Annotated[float, positive("N/m")]
    """Normal stiffness at each vertex."""
    damping: Annotated[float, non_negative("N s/m")] = 0.0
    """Normal damping at each vertex."""
    friction: Annotated[float, non_negative()] = 0.0
    """Coulomb's coefficient."""
    slip_damping: Annotated[float | None, non_negative("N s/m")] = None
    """Tangential damping, `damping` by default; friction is min(friction f_n,
    slip_damping speed), so that an explicit step does not reverse the sliding."""

    def __post_init__(self):
        if self.slip_damping is None:
            object.__setattr__(self, "slip_damping", self.damping)
        if self.friction > 0 and self.slip_damping == 0:
            raise InvalidInput(
                "contact: slip_damping must be > 0 N s/m where there is friction; "
                "m/(2 dt) of a vertex's mass m is stable"
            )

    def forces(self, depth, normal, velocity):
        """Forces on points (n, 3) [N], 0 where depth <= 0.

        Args:
            depth: depths of penetration (n,) [m].
            normal: unit outward normals of the other side (n, 3).
            velocity: velocities relative to the other side (n, 3) [m/s].
        """
        speed = np.einsum("ij,ij->i", velocity, normal)
        push = np.maximum(self.stiffness * depth - self.damping * speed, 0.0)
        push = np.where(depth > 0, push, 0.0)
        slide = velocity - speed[:, None] * normal
        fast = np.maximum(np.linalg.norm(slide, axis=1), 1e-300)
        drag = np.minimum(self.slip_damping, self.friction * push / fast)
        return push[:, None] * normal - drag[:, None] * slide


@dataclass(frozen=True)
class Contacts:
    """Points in contact with triangles.

    Attributes:
        points: nodes (c,).
        triangles: triangle that each touches (c,).
        weights: barycentric weights of the nearest point of the triangle (c, 3).
        depth: depth of penetration into the margin (c,) [m].
        normal: unit direction that pushes the point out (c, 3).
    """

    points: np.ndarray
    triangles: np.ndarray
    weights: np.ndarray
    depth: np.ndarray
    normal: np.ndarray


@checked("contact")
class SurfaceContact:
    """Contact of skin vertices with a triangle surface, another or the skin's own.

    A vertex within `margin` outside its nearest triangle, or within `reach` behind it,
    is pushed along the outward normal; deeper ones are ignored.
    """

    points: np.ndarray
    """Skin nodes that may touch (p,)."""
    triangles: np.ndarray
    """Outward triangles of the surface (f, 3)."""
    penalty: Annotated[Penalty, instance(Penalty)]
    """Parameters of the contact."""
    margin: float = 0.5e-3
    """Distance at which contact begins [m]."""
    reach: Annotated[float, positive("m")] = 2e-3
    """Largest depth that is pushed out; it must be less than the wall's thickness, or a
    vertex touches the far side of its own wall."""
    rest: np.ndarray | None = None
    """Rest positions for self-contact (N, 3) [m], else None."""
    clearance: Annotated[float, non_negative("m")] = 0.0
    """Distance at rest below which pairs never touch in self-contact."""

    def __post_init__(self):
        check(self, "contact", margin=between(0, self.reach, "m"))
        check_value("contact: points", self.points, array((None,), of=int))
        check_value("contact: triangles", self.triangles, array((None, 3), of=int))
        if len(self.points) == 0 or len(self.triangles) == 0:
            raise InvalidInput("contact: no points or no triangles; name at least one")

    def find(self, x: np.ndarray, surface: np.ndarray | None = None) -> Contacts:
        """Contacts between skin positions x (N, 3) and surface vertices (s, 3) [m].

        Raises:
            InvalidInput: when positions are not finite.
        """
        same = surface is None
        other = np.ascontiguousarray(x if same else surface, dtype=float)
        x = np.ascontiguousarray(x, dtype=float)
        if not (np.isfinite(x).all() and np.isfinite(other).all()):
            raise InvalidInput("contact: positions are not finite")
        a, b, c = other[self.triangles.T]
        first, last = np.minimum(np.minimum(a, b), c), np.maximum(np.maximum(a, b), c)
        span = float((last - first).max(axis=1).mean())
        low = first.min(axis=0) - self.reach
        size = last.max(axis=0) + self.reach - low
        # Cells of the size of a triangle, larger where the surface is huge.
        cell = max(span + 2 * self.reach, float(np.cbrt(size.prod() / MAX_CELLS)))
        shape = (np.floor(size / cell) + 1).astype(np.int64)
        within = self.triangles, self.reach, cell, low, shape
        grid = triangle_grid(other, *within)
        apart = same, x if self.rest is None else self.rest, self.clearance
        found, weights = nearest(x, self.points, other, *within, *grid, *apart)
        hit = np.flatnonzero(found >= 0)
        return self._contacts(x, other, self.points[hit], found[hit], weights[hit])

    def _contacts(self, x, other, points, triangles, weights):
        """The contacts of points with their nearest triangles, where they touch."""
        a, b, c = (other[self.triangles[triangles, k]] for k in range(3))
        normal = np.cross(b - a, c - a)
        area = np.linalg.norm(normal, axis=1, keepdims=True)
        normal /= np.where(area == 0, 1.0, area)
        nearest_point = np.einsum("ck,ckj->cj", weights, np.stack([a, b, c], axis=1))
        gap = x[points] - nearest_point
        distance = np.linalg.norm(gap, axis=1)
        # On an edge or a corner the mean normal of the triangles around it shows which
        # side is outside (Baerentzen and Aanaes 2005).
        normals = area_normals(other, self.triangles)[self.triangles[triangles]]
        around = np.einsum("ck,ckj->cj", weights, normals)
        around = np.where((weights > 0).all(axis=1)[:, None], normal, around)
        side = np.einsum("ij,ij->i", gap, around)
        # Outside, the force acts along the gap, which on an edge or a corner is not the
        # triangle's normal; so the pair of forces has no moment.
        outside = (side > 0) & (distance > 1e-9)
        away = gap / np.where(distance > 0, distance, 1.0)[:, None]
        inside = np.where((distance > 1e-9)[:, None], -away, normal)
        push = np.where(outside[:, None], away, inside)
        depth = np.where(outside, self.margin - distance, self.margin + distance)
        keep = depth > 0
        found = points, triangles, weights, depth, push
        return Contacts(*(each[keep] for each in found))


def self_contact(
    model: FemModel, penalty: Penalty, *, margin: float, reach: float
) -> SurfaceContact:
    """Contact of the skin with itself, without pairs nearer than 2 reach at rest."""
    mesh = model.space.mesh
    triangles = surface_triangles(mesh)
    points, apart = np.unique(triangles), {"rest": model.rest, "clearance": 2 * reach}
    return SurfaceContact(points, triangles, penalty, margin, reach, **apart)
