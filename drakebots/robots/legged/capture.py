"""The capture point, and where it will be when a foot lands.

A body of height l on its feet falls away from the point c where the ground's force acts
(the linear inverted pendulum). Its capture point x = p + v sqrt(l/g), where it could
come to rest on one foot, then moves as

    x(t) = c + (x(0) - c) exp(t sqrt(g/l))

The best that feet on the ground can do is to act at the point of their convex hull
nearest to x: a capture point inside stays, one outside runs away, and only the next
step catches it (Koolen et al., IJRR 2012).
"""

from __future__ import annotations

from itertools import combinations

import numpy as np


def capture_point_at(
    time: float, p: np.ndarray, v: np.ndarray, feet: np.ndarray, rate: float
) -> np.ndarray:
    """The capture point after a time on these feet (2,).

    Args:
        time: until then.
        p, v: position and velocity of the centre of mass along the ground (2,).
        feet: places of the feet on the ground (n, 2); without any the body flies.
        rate: sqrt(g/l).
    """
    if not len(feet):
        return p + v * (time + 1 / rate)
    x = p + v / rate
    held = nearest_in_hull(x, feet)
    return held + (x - held) * np.exp(rate * time)


def nearest_in_hull(x: np.ndarray, points: np.ndarray) -> np.ndarray:
    """The point nearest to x (2,) in the convex hull of points (n, 2), n >= 1."""
    if len(points) == 1:
        return points[0]
    triangles = np.array(list(combinations(range(len(points)), 3)), int).reshape(-1, 3)
    a, b, c = (points[triangles[:, i]] for i in range(3))
    sides = np.array([_cross(b - a, x - a), _cross(c - b, x - b), _cross(a - c, x - c)])
    area = np.abs(_cross(b - a, c - a)) > 1e-12 * np.ptp(points) ** 2
    if np.any(((sides >= 0).all(axis=0) | (sides <= 0).all(axis=0)) & area):
        return x
    edges = np.array(list(combinations(range(len(points)), 2)))
    start, along = points[edges[:, 0]], np.diff(points[edges], axis=1)[:, 0]
    length = np.maximum((along**2).sum(axis=1), 1e-30)
    share = np.clip(((x - start) * along).sum(axis=1) / length, 0.0, 1.0)
    nearest = start + share[:, None] * along
    return nearest[np.argmin(((nearest - x) ** 2).sum(axis=1))]


def _cross(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """The z component of a x b, row by row."""
    return a[:, 0] * b[:, 1] - a[:, 1] * b[:, 0]
