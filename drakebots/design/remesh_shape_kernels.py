"""Numba kernels of the remesher: edges flipped and vertices relaxed for even shapes."""

from __future__ import annotations

import numpy as np
from numba import njit

from drakebots.design.distance_kernels import value_and_gradient
from drakebots.design.half_edge_kernels import (
    agree,
    area_vector,
    flip,
    has_edge,
    next_edge,
    previous_edge,
    valence,
)


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
    """Flips towards valence 6, or towards Delaunay when by_angle."""
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
        # Not over a crease, and no new triangle turned over.
        if not agree(n1, n2, 0.5) or not agree(m1, m2, 0.5):
            continue
        if not agree(n1, m1, 0.5) or not agree(n2, m2, 0.5):
            continue
        flip(h, org, twin, marked, leaving)
        done += 1
    return done


@njit(cache=True)
def _newton_step(p, phi, gx, gy, gz, least, h):
    """Takes p by one Newton step down a gradient, at most a spacing.

    Returns whether the squared gradient was above `least`, else p stays.
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
    """Newton steps of a point onto phi = 0, each at most a spacing."""
    for _ in range(steps):
        phi, gx, gy, gz = value_and_gradient(values, origin, h, p[0], p[1], p[2])
        if not _newton_step(p, phi, gx, gy, gz, 1e-4, h):
            return


@njit(cache=True)
def _to_ring(values, origin, h, p, point, axis, steps):
    """A point onto the ring: the plane through `point` across `axis`, and phi = 0."""
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
    """Puts vertex v moved towards the middle of its triangles, within their plane,
    into `moved`; whether it has triangles to say so."""
    mid, normal = np.zeros(3), np.zeros(3)
    total = 0.0
    g = leaving[v]
    start = g
    while True:
        p, q = org[next_edge(g)], org[previous_edge(g)]
        n = area_vector(x[v], x[p], x[q])
        area = np.sqrt(n[0] ** 2 + n[1] ** 2 + n[2] ** 2)
        # Dense where the size is small: the weight is area over size^2.
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
    """The same for a vertex between two marked edges, towards their far ends."""
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
