"""Numba kernels of the remesher: curves cut into the surface and kept as edges."""

from __future__ import annotations

from numba import njit

from drakebots.design.half_edge_kernels import previous_edge, split


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
            g = twin[previous_edge(g)]
            if g == start:
                break
        if n != 2:
            kind[v] = -1
