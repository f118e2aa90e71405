"""Whether a surface can be made a skin: closed, oriented, one piece, no crossings."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numba import njit
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components

from drakebots.core.errors import InvalidInput
from drakebots.design.geometry.surface import Surface


@dataclass(frozen=True)
class SurfaceReport:
    """What :func:`check_surface` found.

    Attributes:
        vertices, triangles: counts after mending.
        pieces: closed parts as given; the largest is kept.
        turned: triangles whose orientation was reversed.
        volume: enclosed [m^3].
        extent: of the bounding box (3,) [m].
        notes: one line for each thing that was mended.
    """

    vertices: int
    triangles: int
    pieces: int
    turned: int
    volume: float
    extent: np.ndarray
    notes: tuple[str, ...]


def check_surface(surface: Surface) -> tuple[Surface, SurfaceReport]:
    """A surface fit for a skin, and the report of what was mended.

    Small loose pieces are dropped, triangles turned outward; each with a note.

    Raises:
        InvalidInput: for holes, edges of more than two triangles, a side that
            cannot be told (a Moebius band), or triangles that cross, with the
            count and one place.
    """
    x, f, notes = surface.vertices, surface.triangles.copy(), []
    twin = _paired_edges(surface)
    turned = _turn_alike(f, twin)
    piece = _pieces(f, len(x))
    volumes = np.array(
        [Surface(x, f[piece == k]).volume for k in range(piece.max() + 1)]
    )
    count = len(volumes)
    if count > 1:
        keep = int(np.argmax(np.abs(volumes)))
        notes.append(
            f"{count} separate pieces; kept the largest, dropped "
            f"{(piece != keep).sum()} triangles"
        )
        turned, f = turned[piece == keep], f[piece == keep]
        used, f = np.unique(f, return_inverse=True)
        x, f = x[used], f.reshape(-1, 3)
    if Surface(x, f).volume < 0:
        f, turned = f[:, [0, 2, 1]], ~turned
    if turned.any():
        notes.append(f"{turned.sum()} triangles were turned outward")
    mended = Surface(x, f)
    pairs = crossing_triangles(mended)
    if len(pairs):
        a, b = pairs[0]
        place = np.round(x[f[a]].mean(axis=0), 5).tolist()
        raise InvalidInput(
            f"surface: {len(pairs)} pairs of triangles cross, first {a} and {b} at "
            f"{place} m; mend the surface (union of its parts)"
        )
    report = SurfaceReport(
        vertices=len(x),
        triangles=len(f),
        pieces=count,
        turned=int(turned.sum()),
        volume=mended.volume,
        extent=np.ptp(x, axis=0),
        notes=tuple(notes),
    )
    return mended, report


def _paired_edges(surface):
    """The triangle across each edge (m, 3), edge k from corner k to k + 1."""
    f = surface.triangles
    ends = np.sort(np.stack([f, np.roll(f, -1, axis=1)], axis=2).reshape(-1, 2), axis=1)
    order = np.lexsort((ends[:, 1], ends[:, 0]))
    _, first, count = np.unique(
        ends[order], axis=0, return_index=True, return_counts=True
    )
    for wrong, what in (
        (count == 1, "open"),
        (count > 2, "of three triangles or more"),
    ):
        if wrong.any():
            edge = ends[order[first[np.argmax(wrong)]]]
            place = np.round(surface.vertices[edge].mean(axis=0), 5).tolist()
            raise InvalidInput(
                f"surface: {wrong.sum()} edges are {what}, first at {place} m; "
                "close the surface and remove inner walls"
            )
    pairs = order.reshape(-1, 2)
    twin = np.empty(3 * len(f), np.int64)
    twin[pairs[:, 0]], twin[pairs[:, 1]] = pairs[:, 1], pairs[:, 0]
    return twin


def _turn_alike(f, twin):
    """Makes neighbours agree, in place; which triangles were turned."""
    turned = np.zeros(len(f), np.bool_)
    conflict = _spread(f, twin, turned)
    if conflict >= 0:
        raise InvalidInput(
            f"surface triangle {conflict}: no side of the surface is outside (it "
            "closes on itself like a Moebius band); mend it"
        )
    f[turned] = f[turned][:, [0, 2, 1]]
    return turned


@njit(cache=True)
def _spread(f, twin, turned):
    seen = np.zeros(len(f), np.bool_)
    stack = np.empty(len(f), np.int64)
    for seed in range(len(f)):
        if seen[seed]:
            continue
        seen[seed] = True
        stack[0], n = seed, 1
        while n:
            n -= 1
            t = stack[n]
            for k in range(3):
                h = 3 * t + k
                g = twin[h]
                other = g // 3
                # Neighbours agree when the edge runs opposite ways in them.
                same = f[t, k] == f[other, g % 3]
                want = turned[t] ^ same
                if not seen[other]:
                    seen[other] = True
                    turned[other] = want
                    stack[n] = other
                    n += 1
                elif turned[other] != want:
                    return other
    return -1


def _pieces(f, n):
    graph = coo_array(
        (np.ones(2 * len(f)), (np.repeat(f[:, 0], 2), f[:, 1:].ravel())), shape=(n, n)
    )
    label = connected_components(graph, directed=False)[1][f[:, 0]]
    return np.unique(label, return_inverse=True)[1]


def crossing_triangles(surface: Surface) -> np.ndarray:
    """Pairs of triangles that share no corner and cross (k, 2).

    Boxes are sorted into a hashed grid; in each cell an edge of one triangle is
    tested against the other.
    """
    x, f = surface.vertices, surface.triangles
    corners = x[f]
    low, high = corners.min(axis=1), corners.max(axis=1)
    cell = max(2 * float(np.median((high - low).max(axis=1))), 1e-9)
    cell = max(cell, float(np.ptp(x, axis=0).max()) / 500)
    start = x.min(axis=0)
    i0 = np.floor((low - start) / cell).astype(np.int64)
    i1 = np.floor((high - start) / cell).astype(np.int64)
    shape = i1.max(axis=0) + 1
    keys, owner = _cells_of(i0, i1, shape)
    order = np.argsort(keys, kind="stable")
    found = _crossings(keys[order], owner[order], x, f, low, high)
    return np.unique(found, axis=0) if len(found) else found


@njit(cache=True)
def _cells_of(i0, i1, shape):
    total = 0
    for t in range(len(i0)):
        total += np.prod(i1[t] - i0[t] + 1)
    keys, owner = np.empty(total, np.int64), np.empty(total, np.int64)
    n = 0
    for t in range(len(i0)):
        for i in range(i0[t, 0], i1[t, 0] + 1):
            for j in range(i0[t, 1], i1[t, 1] + 1):
                for k in range(i0[t, 2], i1[t, 2] + 1):
                    keys[n] = (i * shape[1] + j) * shape[2] + k
                    owner[n] = t
                    n += 1
    return keys, owner


@njit(cache=True)
def _pierces(p, q, a, b, c):
    """Whether the open segment p q crosses the triangle a b c."""
    u, v, w = b - a, c - a, p - q
    n0 = u[1] * v[2] - u[2] * v[1]
    n1 = u[2] * v[0] - u[0] * v[2]
    n2 = u[0] * v[1] - u[1] * v[0]
    d = w[0] * n0 + w[1] * n1 + w[2] * n2
    if d == 0:
        return False
    r = p - a
    t = (r[0] * n0 + r[1] * n1 + r[2] * n2) / d
    if t <= 0 or t >= 1:
        return False
    e0 = w[1] * r[2] - w[2] * r[1]
    e1 = w[2] * r[0] - w[0] * r[2]
    e2 = w[0] * r[1] - w[1] * r[0]
    s = (v[0] * e0 + v[1] * e1 + v[2] * e2) / d
    if s < 0 or s > 1:
        return False
    z = -(u[0] * e0 + u[1] * e1 + u[2] * e2) / d
    return z >= 0 and s + z <= 1


@njit(cache=True)
def _crossings(keys, owner, x, f, low, high):
    found = np.empty((1000, 2), np.int64)
    n = 0
    begin = 0
    while begin < len(keys):
        end = begin
        while end < len(keys) and keys[end] == keys[begin]:
            end += 1
        for p in range(begin, end):
            for q in range(p + 1, end):
                s, t = owner[p], owner[q]
                apart = False
                for k in range(3):
                    if low[s, k] > high[t, k] or low[t, k] > high[s, k]:
                        apart = True
                    for m in range(3):
                        if f[s, k] == f[t, m]:
                            apart = True
                if apart or n == len(found):
                    continue
                for k in range(3):
                    if _pierces(
                        x[f[s, k]], x[f[s, (k + 1) % 3]],
                        x[f[t, 0]], x[f[t, 1]], x[f[t, 2]],
                    ) or _pierces(
                        x[f[t, k]], x[f[t, (k + 1) % 3]],
                        x[f[s, 0]], x[f[s, 1]], x[f[s, 2]],
                    ):  # fmt: skip
                        found[n, 0], found[n, 1] = min(s, t), max(s, t)
                        n += 1
                        break
        begin = end
    return found[:n]
