"""The ground under the feet of a motion, and motions over any terrain.

A sole meets the ground in a plane n . p = d, kept as [n, d] (4,): that of the ground
under its middle, raised until no corner of the sole is below the ground. On a slope all
feet have the same plane; on stairs each has that of its tread.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from drakebots.core.errors import InvalidInput
from drakebots.model import plane_rotation
from drakebots.multibody import Flat, Terrain, contact_axes
from drakebots.robots.quads.motion.motion import LEVEL, MotionInput, height_over
from drakebots.robots.quads.robot import Quad

EVEN = 1e-3
"""Largest depth of the ground below a sole on which it stands whole [m]."""

ASIDE = np.linspace(0.0, 1.5, 16)
"""Distances by which a foothold may move, ahead or back, to ground on which a sole
stands whole [lengths of a sole]."""


def ground_axes(planes: np.ndarray) -> np.ndarray:
    """Two tangents and the normal of planes (k, 4), as rows (k, 3, 3)."""
    return contact_axes(planes[:, :3])


def planes_under(
    terrain: Terrain, points: np.ndarray, reach: float, heading: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Planes of the ground under soles, and its depth below them.

    Args:
        terrain: the ground.
        points: middles of the soles (N, k, 3), whose height does not matter [m].
        reach: half the side of the square that a sole fills [m].
        heading: yaw of the soles (N,) [rad].

    Returns:
        Planes (N, k, 4), and how far the ground is below each at most (N, k) [m].

    Raises:
        InvalidInput: where there is no ground.
    """
    corners = reach * np.array([[0, 0], [1, 1], [1, -1], [-1, 1], [-1, -1]])
    turned = np.array([corners @ plane_rotation(psi).T for psi in heading])
    xy = points[..., None, :2] + turned[:, None]
    z = terrain.heights(xy[..., 0], xy[..., 1])
    if not np.isfinite(z).all():
        name = type(terrain).__name__
        raise InvalidInput(f"terrain {name} has no ground where the motion steps")
    under = np.concatenate([xy, z[..., None]], axis=-1)
    n = terrain.evaluate(under[..., 0, :])[1].reshape(points.shape)
    n /= np.linalg.norm(n, axis=-1, keepdims=True)
    d = np.einsum("...i,...ki->...k", n, under)
    highest = d.max(axis=-1)
    planes = np.concatenate([n, highest[..., None]], axis=-1)
    return planes, highest - d.min(axis=-1)


def onto(motion: MotionInput, quad: Quad, terrain: Terrain) -> MotionInput:
    """A motion on flat ground, moved onto a terrain.

    Footholds move ahead or back to where a whole sole stands. Feet rise with the ground
    under them, in their swings with a line between their footholds where that is
    higher, and the COM with both. What repeats as a whole does so on level ground, and
    on a slope unless it turns. A motion that is on other ground than flat stays there.

    Raises:
        InvalidInput: where there is no ground; for flat ground under a motion that is
            not on it.
    """
    placed = (motion.ground != LEVEL).any()
    if terrain == Flat() and placed:
        raise InvalidInput(
            f"{motion.name}: its steps are not on flat ground; give their terrain"
        )
    if terrain == Flat() or placed:
        return motion
    side = max(np.ptp(sole.corners, axis=0).max() for sole in quad.soles)
    feet, com = np.array(motion.feet), np.array(motion.com)
    contact = motion.footfall.contact
    for j, foot in enumerate(motion.footfall.feet):
        moves = np.zeros((len(feet), 2))
        for start, stop in motion.footfall.bars(foot):
            moves[start:stop] = _aside(motion, terrain, j, start, stop, side)
        feet[:, j, :2] += _held(moves, contact[:, j])
    ground, _ = planes_under(terrain, feet, side / 2, motion.heading)
    height = feet[..., 2] - height_over(ground, feet) / ground[..., 2]
    # The plane through all footholds, and how far each is above it.
    A = np.dstack([feet[..., :2], np.ones(feet.shape[:2])])
    trend = np.linalg.lstsq(A[contact], height[contact], rcond=1e-9)[0]
    above = height - A @ trend
    for j in range(len(above.T)):
        above[:, j] = _held(above[:, [j]], contact[:, j])[:, 0]
    feet[..., 2] += np.maximum(A @ trend + above, height)
    com[:, 2] += com[:, :2] @ trend[:2] + trend[2] + above.mean(axis=1)
    steady = np.abs(above).max() < EVEN and not (motion.turn and trend[:2].any())
    period = motion.period if steady or motion.period != "cycle" else None
    how = {"ground": ground, "rise": trend[:2], "period": period}
    return replace(motion, com=com, feet=feet, **how)


def _aside(motion: MotionInput, terrain, j: int, start: int, stop: int, side: float):
    """Move (2,) [m] of a foothold to the nearest ground on which a sole stands whole;
    none where there is none near."""
    way = side * np.unique(np.concatenate([-ASIDE, ASIDE]))
    way = way[np.argsort(np.abs(way), kind="stable")]
    psi = motion.heading[(start + stop) // 2]
    moves = way[:, None] * [np.cos(psi), np.sin(psi)]
    points = np.repeat(motion.feet[start, j][None], len(moves), axis=0)
    points[:, :2] += moves
    depth = planes_under(terrain, points[None], side / 2, [psi])[1][0]
    whole = depth < EVEN
    return moves[np.argmax(whole)] if whole.any() else np.zeros(2)


def _held(values: np.ndarray, down: np.ndarray) -> np.ndarray:
    """The values (N, n) of the steps in contact (N,), in line between them."""
    at, steps = np.flatnonzero(down), np.arange(len(down))
    if not len(at):
        return np.zeros_like(values)
    return np.stack([np.interp(steps, at, column[at]) for column in values.T], axis=1)
