"""Kernels of a closed surface as half-edges: walk, measure, split, flip, collapse.

Half-edge h = 3 f + i leaves corner i of triangle f. Every one has a twin, as the
surface is closed. The kernels share these arrays, which have room for more:

    count    numbers of vertices and of triangles, removed ones included (2,)
    org      vertex from which each half-edge leaves; -1 where removed
    twin     opposite half-edge of each half-edge
    marked   whether each half-edge belongs to a ring; such edges are never flipped
    leaving  a half-edge that leaves each vertex
    x        position of each vertex (n, 3) [m]
    kind     class of each vertex: 0 free, k > 0 on ring k, along which it may move,
             -1 fixed, -2 removed
    size     requested length of the edges at each vertex [m]
"""

from __future__ import annotations

import numpy as np

from drakebots.core.kernels import njit


@njit(cache=True, inline="always")
def next_edge(h):
    """The next half-edge around the triangle of h."""
    return h - 2 if h % 3 == 2 else h + 1


@njit(cache=True, inline="always")
def previous_edge(h):
    """The half-edge before h around its triangle."""
    return h + 2 if h % 3 == 0 else h - 1


@njit(cache=True)
def edge_length(x, a, b):
    """Distance of the vertices a and b [m]."""
    return np.sqrt(
        (x[a, 0] - x[b, 0]) ** 2 + (x[a, 1] - x[b, 1]) ** 2 + (x[a, 2] - x[b, 2]) ** 2
    )


@njit(cache=True)
def area_vector(p, q, r):
    """(q - p) x (r - p): the normal, of twice the area [m^2]."""
    ux, uy, uz = q[0] - p[0], q[1] - p[1], q[2] - p[2]
    vx, vy, vz = r[0] - p[0], r[1] - p[1], r[2] - p[2]
    return uy * vz - uz * vy, uz * vx - ux * vz, ux * vy - uy * vx


@njit(cache=True)
def agree(n, m, least):
    """Whether the cosine of the angle between two vectors is above `least`."""
    dot = n[0] * m[0] + n[1] * m[1] + n[2] * m[2]
    nn = n[0] * n[0] + n[1] * n[1] + n[2] * n[2]
    mm = m[0] * m[0] + m[1] * m[1] + m[2] * m[2]
    return dot > least * np.sqrt(nn * mm)


@njit(cache=True)
def has_edge(a, b, org, twin, leaving):
    """Whether an edge joins the vertices a and b."""
    start = leaving[a]
    h = start
    while True:
        if org[next_edge(h)] == b:
            return True
        h = twin[previous_edge(h)]
        if h == start:
            return False


@njit(cache=True)
def valence(a, org, twin, leaving):
    """Number of edges at vertex a."""
    start = leaving[a]
    h, n = start, 0
    while True:
        n += 1
        h = twin[previous_edge(h)]
        if h == start:
            return n


@njit(cache=True)
def split(h, point, count, org, twin, marked, leaving, x, kind, size):
    """Splits edge h at a point, which adds one vertex and two triangles."""
    m, f2 = count[0], count[1]
    t = twin[h]
    hn, tn = next_edge(h), next_edge(t)
    a, b, c, d = org[h], org[t], org[previous_edge(h)], org[previous_edge(t)]
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
    leaving[m], leaving[a], leaving[b] = e, h, e + 1
    leaving[c], leaving[d] = e + 2, g + 2
    count[0], count[1] = m + 1, f2 + 2
    return m


@njit(cache=True)
def flip(h, org, twin, marked, leaving):
    """Replaces edge h of two triangles by the one between their other corners."""
    t = twin[h]
    hn, hp, tn, tp = next_edge(h), previous_edge(h), next_edge(t), previous_edge(t)
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


# Curves cut into the surface as edges; long edges split, short ones collapsed.


@njit(cache=True)
def cut_by_plane(s, near, count, org, twin, marked, leaving, x, kind, size, ring):
    """Splits the edges between `near` vertices that cross s = 0; marks the curve.

    Args:
        s: signed distance of each vertex from the plane, with room for more [m].
        near: whether each vertex takes part, with room for more.
        ring: class of the vertices on the curve.
    """
    # A split moves edges to new triangles, which the loop must also reach.
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
    """Fixes the vertices of rings that do not have exactly two marked edges."""
    for v in range(count[0]):
        if kind[v] <= 0:
            continue
        g = leaving[v]
        start = g
        n = 0
        while True:
            n += marked[g]
            g = twin[previous_edge(g)]
            if g == start:
                break
        if n != 2:
            kind[v] = -1


@njit(cache=True)
def _ratio(h, org, twin, x, size):
    """Length of edge h over the requested one."""
    a, b = org[h], org[twin[h]]
    return edge_length(x, a, b) / (0.5 * (size[a] + size[b]))


@njit(cache=True)
def split_long(factor, count, org, twin, marked, leaving, x, kind, size):
    """Splits edges longer than `factor` times the requested length in the middle.

    Only an edge that is the longest of both its triangles is split, so that the new
    edges are shorter and the passes come to an end.
    """
    done = 0
    for _ in range(8):
        before = done
        for h in range(3 * count[1]):
            if org[h] < 0 or h > twin[h]:
                continue
            t = twin[h]
            ratio = _ratio(h, org, twin, x, size)
            if ratio <= factor:
                continue
            if count[0] + 1 >= len(x) or 3 * (count[1] + 2) >= len(org):
                return done
            longest = True
            for k in (next_edge(h), previous_edge(h), next_edge(t), previous_edge(t)):
                if _ratio(k, org, twin, x, size) > ratio * (1 + 1e-9):
                    longest = False
            if longest:
                point = 0.5 * (x[org[h]] + x[org[t]])
                split(h, point, count, org, twin, marked, leaving, x, kind, size)
                done += 1
        if done == before:
            break
    return done


@njit(cache=True)
def _may_meet(u, v, target, factor, org, twin, leaving, x, size):
    """Whether vertex u may be merged with v at the target.

    They must share two neighbours only (the link condition), and no neighbour of u may
    be farther from the target than `factor` times the requested length.
    """
    shared = 0
    g = leaving[u]
    start = g
    while True:
        w = org[next_edge(g)]
        if w != v and has_edge(w, v, org, twin, leaving):
            shared += 1
        if w != v and edge_length(x, w, v) > 0:
            dist = np.sqrt(((x[w] - target) ** 2).sum())
            if dist > factor * 0.5 * (size[w] + size[v]):
                return False
        g = twin[previous_edge(g)]
        if g == start:
            return shared == 2


@njit(cache=True)
def _stay_upright(end, u, v, target, org, twin, leaving, x, size):
    """Whether the other triangles stay sound when `end`, u or v, moves to the target.

    They must not turn by more than 60 degrees or become slivers.
    """
    g = leaving[end]
    start = g
    while True:
        p, q = org[next_edge(g)], org[previous_edge(g)]
        if p != u and p != v and q != u and q != v:
            old = area_vector(x[end], x[p], x[q])
            new = area_vector(target, x[p], x[q])
            if not agree(old, new, 0.5):
                return False
            area = np.sqrt(new[0] ** 2 + new[1] ** 2 + new[2] ** 2)
            longest = max(
                np.sqrt(((target - x[p]) ** 2).sum()),
                np.sqrt(((target - x[q]) ** 2).sum()),
            )
            if area < 0.1 * longest * longest and longest > 0.5 * size[v]:
                return False
        g = twin[previous_edge(g)]
        if g == start:
            return True


@njit(cache=True)
def _collapse(h, org, twin, marked, leaving, kind):
    """Merges the origin u of h into its end v: one vertex, two triangles fewer."""
    t = twin[h]
    u, v = org[h], org[t]
    hn, hp, tn, tp = next_edge(h), previous_edge(h), next_edge(t), previous_edge(t)
    c, d = org[hp], org[tp]
    g = leaving[u]
    start = g
    while True:
        following = twin[previous_edge(g)]
        org[g] = v
        g = following
        if g == start:
            break
    for n, p, w in ((hn, hp, c), (tp, tn, d)):
        # The edge n at v and the edge p at u become one edge.
        one, two = twin[n], twin[p]
        twin[one], twin[two] = two, one
        mark = marked[n] or marked[p]
        marked[one] = marked[two] = mark
        leaving[w] = one if org[one] == w else two
        leaving[v] = two if org[one] == w else one
    for k in (h, hn, hp, t, tn, tp):
        org[k] = -1
    kind[u] = -2


@njit(cache=True)
def _try_collapse(h, factor, org, twin, marked, leaving, x, kind, size):
    """Merges the origin u of h into its end v, if the surface stays sound."""
    t = twin[h]
    u, v = org[h], org[t]
    if kind[u] < 0 or (kind[u] > 0 and not marked[h]):
        return False
    c, d = org[previous_edge(h)], org[previous_edge(t)]
    if c == d:
        return False
    if valence(c, org, twin, leaving) <= 3 or valence(d, org, twin, leaving) <= 3:
        return False
    target = x[v].copy()
    if kind[u] == 0 and kind[v] == 0:
        target = 0.5 * (x[u] + x[v])
    if not _may_meet(u, v, target, factor, org, twin, leaving, x, size):
        return False
    for end in (u, v):
        if not _stay_upright(end, u, v, target, org, twin, leaving, x, size):
            return False
    _collapse(h, org, twin, marked, leaving, kind)
    x[v] = target
    return True


@njit(cache=True)
def collapse_short(least, factor, count, org, twin, marked, leaving, x, kind, size):
    """Collapses edges shorter than `least` times the requested length."""
    done = 0
    for h in range(3 * count[1]):
        if org[h] < 0:
            continue
        u, v = org[h], org[twin[h]]
        if edge_length(x, u, v) < least * 0.5 * (size[u] + size[v]) and _try_collapse(
            h, factor, org, twin, marked, leaving, x, kind, size
        ):
            done += 1
    return done
