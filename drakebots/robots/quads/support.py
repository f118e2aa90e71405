"""Support polygons, and where the centre of pressure lies in them.

On flat ground, with forces F and torques T at points p of the feet,

    COP = sum (p F_z + [-T_y, T_x]) / sum F_z                (from forces)
    ZMP = c - c_z cdd / (cddz + g)                           (from the COM)

The second is the paper's way (after Megaro et al. 2015), without the rate of
angular momentum; the first has it.
"""

from __future__ import annotations

import numpy as np
from scipy.spatial import ConvexHull, QhullError

GRAVITY = 9.81


def sole_corners(quad, feet: np.ndarray, heading: float) -> list[np.ndarray]:
    """Corners of flat soles (c, 2) at p_WF (feet, 3), turned by the heading."""
    c, s = np.cos(heading), np.sin(heading)
    R = np.array([[c, -s], [s, c]])
    return [p[:2] + sole.corners @ R.T for p, sole in zip(feet, quad.soles)]


def polygon(points: np.ndarray) -> np.ndarray | None:
    """Convex hull (k, 2), counterclockwise; None if there is none."""
    points = np.atleast_2d(np.asarray(points, float))
    if len(points) < 3:
        return None
    try:
        return points[ConvexHull(points).vertices]
    except QhullError:
        return None


def half_planes(corners: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """n (k, 2), b (k,) of a counterclockwise polygon: inside, n x <= b."""
    along = np.roll(corners, -1, axis=0) - corners
    n = np.stack([along[:, 1], -along[:, 0]], axis=1)
    n /= np.linalg.norm(n, axis=1, keepdims=True)
    return n, np.einsum("ki,ki->k", n, corners)


def margin(corners: np.ndarray | None, point: np.ndarray) -> float:
    """Distance of a point to the nearest side [m]; negative outside.

    Outside, minus the distance to the polygon. -inf without a polygon.
    """
    if corners is None:
        return -np.inf
    n, b = half_planes(corners)
    inside = float((b - n @ point).min())
    if inside >= 0:
        return inside
    a, ab = corners, np.roll(corners, -1, axis=0) - corners
    along = np.einsum("ki,ki->k", point - a, ab) / np.einsum("ki,ki->k", ab, ab)
    nearest = a + np.clip(along, 0, 1)[:, None] * ab
    return -float(np.linalg.norm(point - nearest, axis=1).min())


def support_polygon(quad, feet, contact, heading: float) -> np.ndarray | None:
    """Hull of the soles in contact (k, 2); None in flight."""
    corners = sole_corners(quad, feet, heading)
    kept = [c for c, down in zip(corners, contact) if down]
    return polygon(np.vstack(kept)) if kept else None


def zmp(com: np.ndarray, acceleration: np.ndarray) -> np.ndarray:
    """(T, 2) from c and cdd (T, 3); NaN in free fall."""
    lift = GRAVITY + acceleration[:, 2:]
    with np.errstate(divide="ignore", invalid="ignore"):
        out = com[:, :2] - com[:, 2:] * acceleration[:, :2] / lift
    return np.where(lift > 1e-6, out, np.nan)


def cop_of_forces(feet, F, T) -> np.ndarray:
    """(T, 2) of p, F, T (T, feet, 3); NaN without load."""
    load = F[..., 2].sum(axis=1)
    tilt = np.stack([-T[..., 1], T[..., 0]], axis=-1)
    moment = (feet[..., :2] * F[..., 2:] + tilt).sum(axis=1)
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(load[:, None] > 1e-9, moment / load[:, None], np.nan)
