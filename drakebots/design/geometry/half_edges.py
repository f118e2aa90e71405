"""Kernels of a closed surface as half-edges: walk, measure, split, flip, collapse."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from drakebots.core.kernels import cross, dot, minus, njit


class HalfEdges(NamedTuple):
    """The arrays of a closed surface, which have room for more.

    Half-edge h = 3 f + i leaves corner i of triangle f. Every one has a twin, as the
    surface is closed.

    Attributes:
        count: numbers of vertices and of triangles, removed ones included (2,).
        org: vertex from which each half-edge leaves; -1 where removed.
        twin: opposite half-edge of each half-edge.
        marked: whether each half-edge belongs to a ring; such edges are never flipped.
        leaving: a half-edge that leaves each vertex.
        x: position of each vertex (n, 3) [m].
        kind: class of each vertex: 0 free, k > 0 on ring k, along which it may move,
            -1 fixed, -2 removed.
        size: requested length of the edges at each vertex [m].
    """

    count: np.ndarray
    org: np.ndarray
    twin: np.ndarray
    marked: np.ndarray
    leaving: np.ndarray
    x: np.ndarray
    kind: np.ndarray
    size: np.ndarray


@njit(cache=True, inline="always")
def next_edge(h):
    """The next half-edge around the triangle of h."""
    return h - 2 if h % 3 == 2 else h + 1


@njit(cache=True, inline="always")
def previous_edge(h):
    """The half-edge before h around its triangle."""
    return h + 2 if h % 3 == 0 else h - 1


# Not cached: Numba does not find the body of a generator that it has read from its
# cache, and fails where a function that uses one is to be compiled.
@njit
def around(start, twin):
    """The half-edge `start` and the others that leave its vertex, in turn."""
    h = start
    while True:
        yield h
        h = twin[previous_edge(h)]
        if h == start:
            return


@njit(cache=True)
def has_edge(a, b, m):
    """Whether an edge joins the vertices a and b."""
    for h in around(m.leaving[a], m.twin):  # noqa: SIM110 - not compiled
        if m.org[next_edge(h)] == b:
            return True
    return False


@njit(cache=True)
def valence(a, m):
    """Number of edges at vertex a."""
    n = 0
    for _ in around(m.leaving[a], m.twin):
        n += 1
    return n


@njit(cache=True)
def between(p, q):
    """Distance of two points [m]."""
    along = minus(p, q)
    return np.sqrt(dot(along, along))


@njit(cache=True)
def area_vector(p, q, r):
    """(q - p) x (r - p): the normal, of twice the area [m^2]."""
    return cross(minus(q, p), minus(r, p))


@njit(cache=True)
def agree(n, m, least):
    """Whether the cosine of the angle between two vectors is above `least`."""
    return dot(n, m) > least * np.sqrt(dot(n, n) * dot(m, m))


@njit(cache=True)
def split(h, point, m):
    """Splits edge h at a point, which adds one vertex and two triangles."""
    v, f = m.count[0], m.count[1]
    t = m.twin[h]
    hn, tn = next_edge(h), next_edge(t)
    a, b = m.org[h], m.org[t]
    c, d = m.org[previous_edge(h)], m.org[previous_edge(t)]
    e, g = 3 * f, 3 * (f + 1)
    m.x[v] = point
    m.size[v] = 0.5 * (m.size[a] + m.size[b])
    # On a ring if the edge is; a fixed end is no reason to be fixed.
    ring = m.kind[a] if m.kind[a] > 0 else m.kind[b]
    m.kind[v] = max(ring, 0) if m.marked[h] else 0
    m.org[hn], m.org[tn] = v, v
    m.org[e], m.org[e + 1], m.org[e + 2] = v, b, c
    m.org[g], m.org[g + 1], m.org[g + 2] = v, a, d
    for base, old in ((e, hn), (g, tn)):
        m.twin[base + 1] = m.twin[old]
        m.twin[m.twin[old]] = base + 1
        m.marked[base + 1] = m.marked[old]
        m.twin[old], m.twin[base + 2] = base + 2, old
        m.marked[old] = m.marked[base + 2] = False
    m.twin[h], m.twin[g] = g, h
    m.twin[e], m.twin[t] = t, e
    m.marked[e] = m.marked[g] = m.marked[h]
    m.leaving[v], m.leaving[a], m.leaving[b] = e, h, e + 1
    m.leaving[c], m.leaving[d] = e + 2, g + 2
    m.count[0], m.count[1] = v + 1, f + 2
    return v


@njit(cache=True)
def flip(h, m):
    """Replaces edge h of two triangles by the one between their other corners."""
    t = m.twin[h]
    hn, hp, tn, tp = next_edge(h), previous_edge(h), next_edge(t), previous_edge(t)
    a, b, c, d = m.org[h], m.org[t], m.org[hp], m.org[tp]
    # The four edges around move to the places of their neighbours.
    outer = m.twin[hp], m.twin[tn], m.twin[tp], m.twin[hn]
    marks = m.marked[hp], m.marked[tn], m.marked[tp], m.marked[hn]
    m.org[h], m.org[hn], m.org[hp] = d, c, a
    m.org[t], m.org[tn], m.org[tp] = c, d, b
    for k, place in enumerate((hn, hp, tn, tp)):
        m.twin[place], m.twin[outer[k]] = outer[k], place
        m.marked[place] = marks[k]
    m.leaving[a], m.leaving[b], m.leaving[c], m.leaving[d] = hp, tp, hn, tn


# Curves cut into the surface as edges; long edges split, short ones collapsed.


@njit(cache=True)
def cut_by_plane(s, near, ring, m):
    """Splits the edges between `near` vertices that cross s = 0; marks the curve.

    Args:
        s: signed distance of each vertex from the plane, with room for more [m].
        near: whether each vertex takes part, with room for more.
        ring: class of the vertices on the curve.
        m: the surface.
    """
    # A split moves edges to new triangles, which the loop must also reach.
    h = -1
    while h + 1 < 3 * m.count[1]:
        h += 1
        if m.org[h] < 0:
            continue
        a, b = m.org[h], m.org[m.twin[h]]
        if not (near[a] and near[b]) or s[a] * s[b] >= 0:
            continue
        t = s[a] / (s[a] - s[b])
        v = split(h, m.x[a] + t * (m.x[b] - m.x[a]), m)
        s[v], near[v] = 0.0, True
    for h in range(3 * m.count[1]):
        if m.org[h] < 0:
            continue
        a, b = m.org[h], m.org[m.twin[h]]
        if near[a] and near[b] and s[a] == 0 and s[b] == 0:
            m.marked[h] = True
            for v in (a, b):
                m.kind[v] = ring if m.kind[v] == 0 or m.kind[v] == ring else -1


@njit(cache=True)
def fix_ends(m):
    """Fixes the vertices of rings that do not have exactly two marked edges."""
    for v in range(m.count[0]):
        if m.kind[v] <= 0:
            continue
        n = 0
        for h in around(m.leaving[v], m.twin):
            n += m.marked[h]
        if n != 2:
            m.kind[v] = -1


@njit(cache=True)
def _ratio(h, m):
    """Length of edge h over the requested one."""
    a, b = m.org[h], m.org[m.twin[h]]
    return between(m.x[a], m.x[b]) / (0.5 * (m.size[a] + m.size[b]))


@njit(cache=True)
def split_long(factor, m):
    """Splits edges longer than `factor` times the requested length in the middle.

    Only an edge that is the longest of both its triangles is split, so that the new
    edges are shorter and the passes come to an end.
    """
    for _ in range(8):
        before = m.count[0]
        for h in range(3 * m.count[1]):
            if m.org[h] < 0 or h > m.twin[h]:
                continue
            t = m.twin[h]
            ratio = _ratio(h, m)
            if ratio <= factor:
                continue
            if m.count[0] + 1 >= len(m.x) or 3 * (m.count[1] + 2) >= len(m.org):
                return
            longest = True
            for k in (next_edge(h), previous_edge(h), next_edge(t), previous_edge(t)):
                if _ratio(k, m) > ratio * (1 + 1e-9):
                    longest = False
            if longest:
                split(h, 0.5 * (m.x[m.org[h]] + m.x[m.org[t]]), m)
        if m.count[0] == before:
            return


@njit(cache=True)
def _may_meet(u, v, target, factor, m):
    """Whether vertex u may be merged with v at the target.

    They must share two neighbours only (the link condition), and no neighbour of u may
    be farther from the target than `factor` times the requested length.
    """
    shared = 0
    for h in around(m.leaving[u], m.twin):
        w = m.org[next_edge(h)]
        if w != v and has_edge(w, v, m):
            shared += 1
        far = between(m.x[w], target) > factor * 0.5 * (m.size[w] + m.size[v])
        if far and w != v and between(m.x[w], m.x[v]) > 0:
            return False
    return shared == 2


@njit(cache=True)
def _stay_upright(end, u, v, target, m):
    """Whether the other triangles stay sound when `end`, u or v, moves to the target.

    They must not turn by more than 60 degrees or become slivers.
    """
    x = m.x
    for h in around(m.leaving[end], m.twin):
        p, q = m.org[next_edge(h)], m.org[previous_edge(h)]
        if p != u and p != v and q != u and q != v:
            new = area_vector(target, x[p], x[q])
            if not agree(area_vector(x[end], x[p], x[q]), new, 0.5):
                return False
            area = np.sqrt(dot(new, new))
            longest = max(between(target, x[p]), between(target, x[q]))
            if area < 0.1 * longest * longest and longest > 0.5 * m.size[v]:
                return False
    return True


@njit(cache=True)
def _collapse(h, m):
    """Merges the origin u of h into its end v: one vertex, two triangles fewer."""
    t = m.twin[h]
    u, v = m.org[h], m.org[t]
    hn, hp, tn, tp = next_edge(h), previous_edge(h), next_edge(t), previous_edge(t)
    c, d = m.org[hp], m.org[tp]
    for g in around(m.leaving[u], m.twin):
        m.org[g] = v
    for n, p, w in ((hn, hp, c), (tp, tn, d)):
        # The edge n at v and the edge p at u become one edge.
        one, two = m.twin[n], m.twin[p]
        m.twin[one], m.twin[two] = two, one
        m.marked[one] = m.marked[two] = m.marked[n] or m.marked[p]
        m.leaving[w] = one if m.org[one] == w else two
        m.leaving[v] = two if m.org[one] == w else one
    for k in (h, hn, hp, t, tn, tp):
        m.org[k] = -1
    m.kind[u] = -2


@njit(cache=True)
def _try_collapse(h, factor, m):
    """Merges the origin u of h into its end v, if the surface stays sound."""
    t = m.twin[h]
    u, v = m.org[h], m.org[t]
    if m.kind[u] < 0 or (m.kind[u] > 0 and not m.marked[h]):
        return
    c, d = m.org[previous_edge(h)], m.org[previous_edge(t)]
    if c == d or valence(c, m) <= 3 or valence(d, m) <= 3:
        return
    target = m.x[v].copy()
    if m.kind[u] == 0 and m.kind[v] == 0:
        target = 0.5 * (m.x[u] + m.x[v])
    if (
        _may_meet(u, v, target, factor, m)
        and _stay_upright(u, u, v, target, m)
        and _stay_upright(v, u, v, target, m)
    ):
        _collapse(h, m)
        m.x[v] = target


@njit(cache=True)
def collapse_short(least, factor, m):
    """Collapses edges shorter than `least` times the requested length."""
    for h in range(3 * m.count[1]):
        if m.org[h] < 0:
            continue
        u, v = m.org[h], m.org[m.twin[h]]
        if between(m.x[u], m.x[v]) < least * 0.5 * (m.size[u] + m.size[v]):
            _try_collapse(h, factor, m)
