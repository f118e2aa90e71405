"""Points against triangles: a uniform grid, the nearest triangle; compiled."""

from __future__ import annotations

import numpy as np
from numba import njit


@njit(cache=True)
def closest_on_triangle(p, a, b, c, w):
    """Barycentric weights (3,) of the point of a triangle nearest p, written to w.

    Ericson, Real-Time Collision Detection (2005), 5.1.5. Returns the distance
    squared.
    """
    d1 = d2 = d3 = d4 = d5 = d6 = 0.0
    for i in range(3):
        ab, ac = b[i] - a[i], c[i] - a[i]
        d1 += ab * (p[i] - a[i])
        d2 += ac * (p[i] - a[i])
        d3 += ab * (p[i] - b[i])
        d4 += ac * (p[i] - b[i])
        d5 += ab * (p[i] - c[i])
        d6 += ac * (p[i] - c[i])
    va, vb, vc = d3 * d6 - d5 * d4, d5 * d2 - d1 * d6, d1 * d4 - d3 * d2
    if d1 <= 0.0 and d2 <= 0.0:
        w[0], w[1], w[2] = 1.0, 0.0, 0.0
    elif d3 >= 0.0 and d4 <= d3:
        w[0], w[1], w[2] = 0.0, 1.0, 0.0
    elif d6 >= 0.0 and d5 <= d6:
        w[0], w[1], w[2] = 0.0, 0.0, 1.0
    elif vc <= 0.0 and d1 >= 0.0 and d3 <= 0.0:
        v = d1 / (d1 - d3)
        w[0], w[1], w[2] = 1.0 - v, v, 0.0
    elif vb <= 0.0 and d2 >= 0.0 and d6 <= 0.0:
        v = d2 / (d2 - d6)
        w[0], w[1], w[2] = 1.0 - v, 0.0, v
    elif va <= 0.0 and d4 - d3 >= 0.0 and d5 - d6 >= 0.0:
        v = (d4 - d3) / ((d4 - d3) + (d5 - d6))
        w[0], w[1], w[2] = 0.0, 1.0 - v, v
    else:
        total = va + vb + vc
        w[0], w[1], w[2] = va / total, vb / total, vc / total
    square = 0.0
    for i in range(3):
        square += (p[i] - w[0] * a[i] - w[1] * b[i] - w[2] * c[i]) ** 2
    return square


@njit(cache=True)
def box_square(p, a, b, c):
    """Distance squared of p from the box of a triangle: a cheap lower bound."""
    square = 0.0
    for i in range(3):
        lo = min(a[i], min(b[i], c[i])) - p[i]
        hi = p[i] - max(a[i], max(b[i], c[i]))
        out = max(lo, max(hi, 0.0))
        square += out * out
    return square


@njit(cache=True)
def grid(vertices, triangles, reach, cell, low, shape):
    """Triangles of each cell, CSR: boxes grown by reach, so a point asks one cell.

    Returns:
        start (cells + 1,) and items.
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

    With `same` the points are vertices of the triangles' own mesh: triangles of
    the point, and those nearer than `clearance` at rest, are left out.

    Returns:
        triangle (n,), -1 for none; barycentric weights (n, 3).
    """
    n = len(ids)
    found, weights = np.full(n, -1, np.int64), np.zeros((n, 3))
    w, v = np.empty(3), np.empty(3)
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
            square = closest_on_triangle(p, vertices[i], vertices[j], vertices[l], w)
            if square >= best:
                continue
            if same:
                apart = closest_on_triangle(rest[node], rest[i], rest[j], rest[l], v)
                if apart < clearance * clearance:
                    continue
            best = square
            found[k] = t
            weights[k] = w
    return found, weights
