"""Undercuts: which part of a piece holds back a half of its mould.

A point of the surface is an undercut of the half that leaves along d if the ray from
it along d meets the piece. The point is first moved off the surface by SLACK, so that
upright walls, and hollows shallower than that, do not count.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from drakebots.core.checks import check_value, direction
from drakebots.core.kernels import njit
from drakebots.design.geometry import Surface, frame_of
from drakebots.fem import triangle_grid

SLACK = 1e-4
"""Distance by which points are moved off the surface [m]."""

_CELL = 4e-3
"""Size of the columns into which triangles are sorted [m]."""


_UNIT = direction()


@dataclass(frozen=True)
class Parting:
    """The plane in which a mould parts.

    Attributes:
        direction: unit normal, along which the upper half leaves and against which the
            lower half leaves (3,).
        offset: direction . p of its points p [m].
        undercut: area held back over all area, 0 to 1.
    """

    direction: np.ndarray
    offset: float
    undercut: float


def blocked(points: np.ndarray, direction: np.ndarray, occluder: Surface) -> np.ndarray:
    """Whether rays from points (n, 3) [m] along a direction meet a surface (n,)."""
    R = frame_of(direction)
    x = np.ascontiguousarray(occluder.vertices @ R)
    q = np.ascontiguousarray(np.asarray(points, float).reshape(-1, 3) @ R)
    low, faces = x.min(axis=0), occluder.triangles
    shape = np.ceil((x.max(axis=0) - low) / _CELL).astype(np.int64) + 1
    shape[2] = 1  # columns along the direction
    start, content = triangle_grid(x, faces, 0.0, _CELL, low, shape)
    return _hits(q, x, faces, low, _CELL, shape, start, content)


def lifted(surface: Surface, side: float = 1.0) -> np.ndarray:
    """Middles of the triangles, moved outward, or inward for side = -1 (m, 3) [m]."""
    return surface.middles + side * SLACK * surface.normals


def held_back(
    surface: Surface,
    direction: np.ndarray,
    counted: np.ndarray,
    occluder: Surface | None = None,
    side: float = 1.0,
) -> np.ndarray:
    """Area that is held back when a half leaves along a direction, and all area (2,).

    Args:
        surface: surface of the piece, outward.
        direction: direction in which the half leaves (3,).
        counted: whether each triangle counts (m,).
        occluder: what holds it back; the surface itself by default.
        side: see :func:`lifted`.
    """
    area, points = surface.areas[counted], lifted(surface, side)[counted]
    held = area @ blocked(points, direction, surface if occluder is None else occluder)
    return np.array([held, area.sum()])


def best_plane(
    surface: Surface, direction: np.ndarray, counted: np.ndarray | None = None
) -> Parting:
    """The plane perpendicular to a direction d with the least undercut.

        A(c) = sum of the areas above c blocked along d and below c blocked along -d

    Of several equally good planes it is the middle one.

    Args:
        surface: surface of the piece, outward.
        direction: d, of any length (3,).
        counted: whether each triangle counts (m,); all by default.
    """
    d = check_value("direction", direction, _UNIT)
    use = np.ones(len(surface.triangles), bool) if counted is None else counted
    area, points = surface.areas[use], lifted(surface)[use]
    height = surface.middles[use] @ d
    order = np.argsort(height, kind="stable")
    height, area, points = height[order], area[order], points[order]
    up = area * blocked(points, d, surface)
    down = area * blocked(points, -d, surface)
    # Plane k lies above the k lowest triangles.
    held = np.concatenate([[0], np.cumsum(down)]) + np.concatenate(
        [np.cumsum(up[::-1])[::-1], [0]]
    )
    least = held.min()
    good = np.flatnonzero(held <= least + 1e-9 * area.sum())
    ends = np.concatenate([[height[0]], height, [height[-1]]])
    planes = 0.5 * (ends[good] + ends[good + 1])
    middle = 0.5 * (planes[0] + planes[-1])
    k = int(np.argmin(np.abs(planes - middle)))
    return Parting(d, float(planes[k]), float(least / area.sum()))


def best_parting(
    surface: Surface, directions: np.ndarray, counted: np.ndarray | None = None
) -> Parting:
    """The best of :func:`best_plane` over directions (k, 3); of equals, the first."""
    found = [best_plane(surface, d, counted) for d in np.atleast_2d(directions)]
    return min(found, key=lambda parting: round(parting.undercut, 6))


def directions_around() -> np.ndarray:
    """The axes, and 40 directions spread over the upper half sphere (43, 3)."""
    k = np.arange(40) + 0.5
    z = k / 40
    angle = np.pi * (1 + np.sqrt(5)) * k
    r = np.sqrt(1 - z * z)
    spread = np.column_stack([r * np.cos(angle), r * np.sin(angle), z])
    return np.concatenate([np.eye(3)[[1, 2, 0]], spread])


@njit(cache=True)
def _hits(q, x, f, low, cell, shape, start, content):
    """Whether the ray from each point q (n, 3) along +z hits a triangle.

    The triangles of each cell are `content`, from `start` on.
    """
    out = np.zeros(len(q), np.bool_)
    for n in range(len(q)):
        px, py, pz = q[n]
        i = int(np.floor((px - low[0]) / cell))
        j = int(np.floor((py - low[1]) / cell))
        if i < 0 or j < 0 or i >= shape[0] or j >= shape[1]:
            continue
        k = i * shape[1] + j
        for c in range(start[k], start[k + 1]):
            a, b, d = x[f[content[c], 0]], x[f[content[c], 1]], x[f[content[c], 2]]
            if max(a[2], b[2], d[2]) <= pz:
                continue
            det = (b[0] - a[0]) * (d[1] - a[1]) - (d[0] - a[0]) * (b[1] - a[1])
            if abs(det) < 1e-16:
                continue
            u = ((px - a[0]) * (d[1] - a[1]) - (d[0] - a[0]) * (py - a[1])) / det
            v = ((b[0] - a[0]) * (py - a[1]) - (px - a[0]) * (b[1] - a[1])) / det
            if u < 0 or v < 0 or u + v > 1:
                continue
            if a[2] + u * (b[2] - a[2]) + v * (d[2] - a[2]) > pz:
                out[n] = True
                break
    return out
