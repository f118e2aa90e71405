"""Numba kernels of the remesher: edges split and collapsed to the wanted length."""

from __future__ import annotations

import numpy as np
from numba import njit

from drakebots.design.half_edge_kernels import (
    agree,
    area_vector,
    edge_length,
    has_edge,
    next_edge,
    previous_edge,
    split,
    valence,
)


@njit(cache=True)
def _ratio(h, org, twin, x, size):
    """Length of edge h over the size wanted there."""
    a, b = org[h], org[twin[h]]
    return edge_length(x, a, b) / (0.5 * (size[a] + size[b]))


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
    """Whether u and v share two neighbours only (the link condition), and u's
    would not get farther than factor times their size from the target."""
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
    """Whether the triangles at `end`, u or v, that remain neither turn by more
    than 60 degrees nor become slivers when it goes to the target."""
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
    """Takes the origin u of h into its end v: one vertex, two triangles fewer."""
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


@njit(cache=True)
def _try_collapse(h, factor, org, twin, marked, leaving, x, kind, size):
    """Takes the origin u of h into its end v, if the surface stays sound."""
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
    """Collapses edges shorter than least times their size."""
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
