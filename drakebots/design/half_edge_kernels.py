"""Numba kernels of a closed surface as half-edges: walk, measure, split and flip.

Half-edge h = 3 f + i leaves corner i of triangle f. The surface is closed, so every
half-edge has a twin. A vertex is of class 0 (free), k > 0 (on ring k, moves along
it only) or -1 (fixed); the edges of rings are marked and never flipped away.
"""

from __future__ import annotations

import numpy as np
from numba import njit


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
    """Cuts edge h at a point: one vertex, two triangles more. count = (nv, nf)."""
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
def flip(h, org, twin, marked, leaving):
    """Turns edge h of two triangles to join their other two corners."""
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
