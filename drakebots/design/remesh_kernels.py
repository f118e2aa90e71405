"""Numba kernels of the remesher: split, collapse, flip and relax on half-edges.

Half-edge h = 3 f + i leaves corner i of triangle f. The surface is closed, so every
half-edge has a twin. A vertex is of class 0 (free), k > 0 (on ring k, moves along
it only) or -1 (fixed); the edges of rings are marked and never flipped away.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from drakebots.design.distance_kernels import value_and_gradient


@njit(cache=True, inline="always")
def _next(h):
    return h - 2 if h % 3 == 2 else h + 1


@njit(cache=True, inline="always")
def _prev(h):
    return h + 2 if h % 3 == 0 else h - 1


@njit(cache=True)
def _length(x, a, b):
    return np.sqrt(
        (x[a, 0] - x[b, 0]) ** 2 + (x[a, 1] - x[b, 1]) ** 2 + (x[a, 2] - x[b, 2]) ** 2
    )


@njit(cache=True)
def _normal(p, q, r):
    ux, uy, uz = q[0] - p[0], q[1] - p[1], q[2] - p[2]
    vx, vy, vz = r[0] - p[0], r[1] - p[1], r[2] - p[2]
    return uy * vz - uz * vy, uz * vx - ux * vz, ux * vy - uy * vx


@njit(cache=True)
def _agree(n, m, least):
    dot = n[0] * m[0] + n[1] * m[1] + n[2] * m[2]
    nn = n[0] * n[0] + n[1] * n[1] + n[2] * n[2]
    mm = m[0] * m[0] + m[1] * m[1] + m[2] * m[2]
    return dot > least * np.sqrt(nn * mm)


@njit(cache=True)
def split(h, point, count, org, twin, marked, leaving, x, kind, size):
    """Cuts edge h at a point: one vertex, two triangles more. count = (nv, nf)."""
    m, f2 = count[0], count[1]
    t = twin[h]
    hn, tn = _next(h), _next(t)
    a, b, c, d = org[h], org[t], org[_prev(h)], org[_prev(t)]
    e, g = 3 * f2, 3 * (f2 + 1)
    x[m] = point
    size[m] = 0.5 * (size[a] + size[b])
    kind[m] = kind[a] if marked[h] and kind[a] > 0 else kind[b] if marked[h] else 0
    if kind[m] < 0:
        kind[m] = 0
    org[hn], org[tn] = m, m
    org[e], org[e + 1], org[e + 2] = m, b, c
    org[g], org[g + 1], org[g + 2] = m, a, d
    for base, old in ((e, hn), (g, tn)):
        twin[base + 1] = twin[old]
        twin[twin[old]] = base + 1
        marked[base + 1] = marked[old]
        twin[old], twin[base + 2] = base + 2, old
        marked[old] = marked[base + 2] = False
    twin[h], twin[g] = g, h
    twin[e], twin[t] = t, e
    marked[e] = marked[g] = marked[h]
    leaving[m], leaving[b], leaving[a], leaving[d], leaving[c] = (
        e,
        e + 1,
        h,
        g + 2,
        e + 2,
    )
    count[0], count[1] = m + 1, f2 + 2
    return m


@njit(cache=True)
def _has_edge(a, b, org, twin, leaving):
    start = leaving[a]
    h = start
    while True:
        if org[_next(h)] == b:
            return True
        h = twin[_prev(h)]
        if h == start:
            return False


@njit(cache=True)
def _valence(a, org, twin, leaving):
    start = leaving[a]
    h, n = start, 0
    while True:
        n += 1
        h = twin[_prev(h)]
        if h == start:
            return n


@njit(cache=True)
def _flip(h, org, twin, marked, leaving):
    t = twin[h]
    hn, hp, tn, tp = _next(h), _prev(h), _next(t), _prev(t)
    a, b, c, d = org[h], org[t], org[hp], org[tp]
    bc, ca, ad, db = twin[hn], twin[hp], twin[tn], twin[tp]
    mbc, mca, mad, mdb = marked[hn], marked[hp], marked[tn], marked[tp]
    org[h], org[hn], org[hp] = d, c, a
    org[t], org[tn], org[tp] = c, d, b
    twin[hn], twin[ca] = ca, hn
    twin[hp], twin[ad] = ad, hp
    twin[tn], twin[db] = db, tn
    twin[tp], twin[bc] = bc, tp
    marked[hn], marked[hp], marked[tn], marked[tp] = mca, mad, mdb, mbc
    leaving[a], leaving[b], leaving[c], leaving[d] = hp, tp, hn, tn


@njit(cache=True)
def _ratio(h, org, twin, x, size):
    a, b = org[h], org[twin[h]]
    return _length(x, a, b) / (0.5 * (size[a] + size[b]))


@njit(cache=True)
def split_long(factor, count, org, twin, marked, leaving, x, kind, size):
    """Splits edges longer than factor times their size at the middle.

    Only the longest edge of both its triangles is split: the new edges are then
    shorter, and the passes end.
    """
    done = 0
    for _ in range(8):
        before = done
        for h in range(3 * count[1]):
            if org[h] < 0 or h > twin[h]:
                continue
            t = twin[h]
            length = _ratio(h, org, twin, x, size)
            if length <= factor:
                continue
            if count[0] + 1 >= len(x) or 3 * (count[1] + 2) >= len(org):
                return done
            longest = True
            for k in (_next(h), _prev(h), _next(t), _prev(t)):
                if _ratio(k, org, twin, x, size) > length * (1 + 1e-9):
                    longest = False
            if longest:
                point = 0.5 * (x[org[h]] + x[org[t]])
                split(h, point, count, org, twin, marked, leaving, x, kind, size)
                done += 1
        if done == before:
            break
    return done


@njit(cache=True)
def _try_collapse(h, factor, org, twin, marked, leaving, x, kind, size):
    """Takes the origin u of h into its end v, if the surface stays sound."""
    t = twin[h]
    u, v = org[h], org[t]
    if kind[u] < 0 or (kind[u] > 0 and not marked[h]):
        return False
    hn, hp, tn, tp = _next(h), _prev(h), _next(t), _prev(t)
    c, d = org[hp], org[tp]
    if c == d:
        return False
    if _valence(c, org, twin, leaving) <= 3 or _valence(d, org, twin, leaving) <= 3:
        return False
    target = x[v].copy()
    if kind[u] == 0 and kind[v] == 0:
        target = 0.5 * (x[u] + x[v])
    # Link condition: u and v share c and d only.
    shared = 0
    g = leaving[u]
    start = g
    while True:
        w = org[_next(g)]
        if w != v and _has_edge(w, v, org, twin, leaving):
            shared += 1
        if w != v and _length(x, w, v) > 0:
            dist = np.sqrt(((x[w] - target) ** 2).sum())
            if dist > factor * 0.5 * (size[w] + size[v]):
                return False
        g = twin[_prev(g)]
        if g == start:
            break
    if shared != 2:
        return False
    for end in (u, v):
        g = leaving[end]
        start = g
        while True:
            p, q = org[_next(g)], org[_prev(g)]
            if p != u and p != v and q != u and q != v:
                old = _normal(x[end], x[p], x[q])
                new = _normal(target, x[p], x[q])
                if not _agree(old, new, 0.5):
                    return False
                area = np.sqrt(new[0] ** 2 + new[1] ** 2 + new[2] ** 2)
                longest = max(
                    np.sqrt(((target - x[p]) ** 2).sum()),
                    np.sqrt(((target - x[q]) ** 2).sum()),
                )
                if area < 0.1 * longest * longest and longest > 0.5 * size[v]:
                    return False
            g = twin[_prev(g)]
            if g == start:
                break
    g = leaving[u]
    start = g
    while True:
        following = twin[_prev(g)]
        org[g] = v
        g = following
        if g == start:
            break
    x[v] = target
    for n, p, w in ((hn, hp, c), (tp, tn, d)):
        # n is the twin-side edge at v, p that at u: they become one edge.
        one, two = twin[n], twin[p]
        twin[one], twin[two] = two, one
        mark = marked[n] or marked[p]
        marked[one] = marked[two] = mark
        leaving[w] = one if org[one] == w else two
        leaving[v] = two if org[one] == w else one
    for k in (h, hn, hp, t, tn, tp):
        org[k] = -1
    kind[u] = -2
    return True


@njit(cache=True)
def collapse_short(least, factor, count, org, twin, marked, leaving, x, kind, size):
    """Collapses edges shorter than least times their size."""
    done = 0
    for h in range(3 * count[1]):
        if org[h] < 0:
            continue
        u, v = org[h], org[twin[h]]
        if _length(x, u, v) < least * 0.5 * (size[u] + size[v]) and _try_collapse(
            h, factor, org, twin, marked, leaving, x, kind, size
        ):
            done += 1
    return done


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
        a, b, c, d = org[h], org[t], org[_prev(h)], org[_prev(t)]
        if c == d or _has_edge(c, d, org, twin, leaving):
            continue
        va = _valence(a, org, twin, leaving)
        vb = _valence(b, org, twin, leaving)
        if va <= 3 or vb <= 3:
            continue
        if by_angle:
            c1 = min(max(_angle_cos(x[c], x[a], x[b]), -1.0), 1.0)
            c2 = min(max(_angle_cos(x[d], x[a], x[b]), -1.0), 1.0)
            if np.arccos(c1) + np.arccos(c2) < np.pi + 1e-6:
                continue
        else:
            vc = _valence(c, org, twin, leaving)
            vd = _valence(d, org, twin, leaving)
            old = abs(va - 6) + abs(vb - 6) + abs(vc - 6) + abs(vd - 6)
            new = abs(va - 7) + abs(vb - 7) + abs(vc - 5) + abs(vd - 5)
            if new >= old:
                continue
        n1, n2 = _normal(x[a], x[b], x[c]), _normal(x[b], x[a], x[d])
        m1, m2 = _normal(x[a], x[d], x[c]), _normal(x[d], x[b], x[c])
        # Not over a crease, and no new triangle turned over.
        if not _agree(n1, n2, 0.5) or not _agree(m1, m2, 0.5):
            continue
        if not _agree(n1, m1, 0.5) or not _agree(n2, m2, 0.5):
            continue
        _flip(h, org, twin, marked, leaving)
        done += 1
    return done


@njit(cache=True)
def project(values, origin, h, p, steps):
    """Newton steps of a point onto phi = 0, each at most a spacing."""
    for _ in range(steps):
        phi, gx, gy, gz = value_and_gradient(values, origin, h, p[0], p[1], p[2])
        g2 = gx * gx + gy * gy + gz * gz
        if g2 < 1e-4:
            return
        step = min(max(phi / g2, -h), h)
        p[0] -= step * gx
        p[1] -= step * gy
        p[2] -= step * gz


@njit(cache=True)
def _to_ring(values, origin, h, p, point, axis, steps):
    """A point onto the ring: the plane through `point` across `axis`, and phi = 0."""
    for _ in range(steps):
        s = ((p - point) * axis).sum()
        p -= s * axis
        phi, gx, gy, gz = value_and_gradient(values, origin, h, p[0], p[1], p[2])
        ga = gx * axis[0] + gy * axis[1] + gz * axis[2]
        gx, gy, gz = gx - ga * axis[0], gy - ga * axis[1], gz - ga * axis[2]
        g2 = gx * gx + gy * gy + gz * gz
        if g2 < 1e-2:
            return
        step = min(max(phi / g2, -h), h)
        p[0] -= step * gx
        p[1] -= step * gy
        p[2] -= step * gz


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
        if kind[v] < 0:
            continue
        g = leaving[v]
        start = g
        mid = np.zeros(3)
        total = 0.0
        if kind[v] > 0:
            while True:
                if marked[g]:
                    w = org[_next(g)]
                    mid += x[w]
                    total += 1
                g = twin[_prev(g)]
                if g == start:
                    break
            if total != 2:
                continue
            ring = kind[v] - 1
            new[v] = x[v] + weight * (mid / total - x[v])
            _to_ring(values, origin, h, new[v], points[ring], axes[ring], 4)
            continue
        normal = np.zeros(3)
        while True:
            p, q = org[_next(g)], org[_prev(g)]
            n = _normal(x[v], x[p], x[q])
            area = np.sqrt(n[0] ** 2 + n[1] ** 2 + n[2] ** 2)
            # Dense where the size is small: the weight is area over size^2.
            own = (size[v] + size[p] + size[q]) / 3
            area_weight = area / (own * own)
            mid += area_weight * (x[v] + x[p] + x[q]) / 3
            total += area_weight
            normal[0] += n[0]
            normal[1] += n[1]
            normal[2] += n[2]
            g = twin[_prev(g)]
            if g == start:
                break
        length = np.sqrt((normal**2).sum())
        if total == 0 or length == 0:
            continue
        normal /= length
        step = mid / total - x[v]
        step -= (step * normal).sum() * normal
        new[v] = x[v] + weight * step
        project(values, origin, h, new[v], 2)
    for v in range(count[0]):
        if kind[v] < 0:
            continue
        old = x[v].copy()
        g = leaving[v]
        start = g
        sound = True
        while True:
            p, q = org[_next(g)], org[_prev(g)]
            n, m = _normal(old, x[p], x[q]), _normal(new[v], x[p], x[q])
            if not _agree(n, m, 0.5):
                sound = False
            g = twin[_prev(g)]
            if g == start:
                break
        if sound:
            x[v] = new[v]


@njit(cache=True)
def cut_by_plane(s, near, count, org, twin, marked, leaving, x, kind, size, ring):
    """Splits the edges that cross s = 0, between `near` vertices; marks the curve.

    Args:
        s: signed distance of each vertex from the plane, room for new ones.
        near: whether a vertex may take part, room for new ones.
        ring: the class given to vertices on the curve.
    """
    # A split moves edges to new triangles, which the loop must reach as well.
    h = -1
    while h + 1 < 3 * count[1]:
        h += 1
        if org[h] < 0:
            continue
        a, b = org[h], org[twin[h]]
        if not (near[a] and near[b]) or s[a] * s[b] >= 0:
            continue
        t = s[a] / (s[a] - s[b])
        point = x[a] + t * (x[b] - x[a])
        m = split(h, point, count, org, twin, marked, leaving, x, kind, size)
        s[m], near[m] = 0.0, True
    for h in range(3 * count[1]):
        if org[h] < 0:
            continue
        a, b = org[h], org[twin[h]]
        if near[a] and near[b] and s[a] == 0 and s[b] == 0:
            marked[h] = True
            for v in (a, b):
                kind[v] = ring if kind[v] == 0 or kind[v] == ring else -1


@njit(cache=True)
def fix_ends(count, org, twin, marked, leaving, kind):
    """Ring vertices without exactly two marked edges become fixed."""
    for v in range(count[0]):
        if kind[v] <= 0:
            continue
        g = leaving[v]
        start = g
        n = 0
        while True:
            n += marked[g]
            g = twin[_prev(g)]
            if g == start:
                break
        if n != 2:
            kind[v] = -1
