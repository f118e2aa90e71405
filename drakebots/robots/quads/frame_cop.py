"""The centre of pressure inside the support polygon, eq. (5), as linear rows.

COP = sum f_n p / sum f_n. An edge of the polygon with inward normal e and offset d
asks e . COP >= d + margin; times sum f_n > 0 that is linear in the forces:

    sum_j f_nj (e . p_j - d - margin) >= 0

The paper takes the COP out of the motion of the COM as Megaro et al. do; on flat
ground that is this one, by the balance of momentum, but for the change of angular
momentum that their formula leaves out.
"""

from __future__ import annotations

import numpy as np
from scipy.spatial import ConvexHull, QhullError

from drakebots.errors import InvalidInput


def support_edges(points: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Edges of the convex hull of points on the ground.

    Args:
        points: (k, 2) or (k, 3), whose z is left out [m].

    Returns:
        Inward normals (h, 2) and offsets (h,), e . x >= d inside [m].

    Raises:
        InvalidInput: for fewer than three points, or all on one line.
    """
    points = np.asarray(points, float)[:, :2]
    try:
        hull = ConvexHull(points)
    except (QhullError, ValueError) as error:
        raise InvalidInput(
            f"support polygon: {len(points)} points span no area; put a foot with "
            "three patches or more on the ground"
        ) from error
    return -hull.equations[:, :2], hull.equations[:, 2]


def cop_rows(p: np.ndarray, bearing: np.ndarray, margin: float = 0.0) -> np.ndarray:
    """Rows C (h, 3 P) with C f >= 0 when the COP is inside.

    Args:
        p: all contacts (P, 3) [m].
        bearing: which span the support polygon (P,).
        margin: from its edges [m]; at most 0.9 of the largest one that leaves a
            point inside every pair of opposite edges is used.

    Raises:
        InvalidInput: for a margin < 0, or a polygon without area.
    """
    if not (np.isfinite(margin) and margin >= 0):
        raise InvalidInput(f"COP margin = {margin} m must be >= 0")
    normals, offsets = support_edges(p[np.asarray(bearing, bool)])
    room = p[np.asarray(bearing, bool)][:, :2] @ normals.T - offsets
    margin = min(margin, 0.45 * float(room.max(axis=0).min()))
    rows = np.zeros((len(normals), len(p), 3))
    rows[:, :, 2] = (p[:, :2] @ normals.T - offsets - margin).T
    return rows.reshape(len(normals), -1)


def centre_of_pressure(p: np.ndarray, force: np.ndarray) -> np.ndarray:
    """COP (2,) [m]; NaN without normal force."""
    total = force[:, 2].sum()
    if total <= 0:
        return np.full(2, np.nan)
    return force[:, 2] @ p[:, :2] / total


def cop_margin(p: np.ndarray, bearing: np.ndarray, force: np.ndarray) -> float:
    """Distance of the COP to the nearest edge of the polygon, negative outside [m].

    NaN without normal force, or without a polygon.
    """
    cop = centre_of_pressure(p, force)
    try:
        normals, offsets = support_edges(p[np.asarray(bearing, bool)])
    except InvalidInput:
        return np.nan
    return float((normals @ cop - offsets).min())
