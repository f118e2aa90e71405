"""Playback of a stored result, for plots and scenes: the course, and poses over time.

The engine "pose" stores one pose per half cycle. In between, while the limbs move,
angles and lengths go smoothly from one pose to the next, with the least change of
angles that keeps the distance between the two fixed feet; the position and heading of
the robot follow from these feet. This is for pictures only: the poses in between do
not minimise the pose-step objective.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import xarray as xr

from drakebots.core.checks import check_value, whole
from drakebots.core.errors import InvalidInput
from drakebots.results import Result
from drakebots.robots.gecko.engines import PhaseTimes
from drakebots.robots.gecko.model import (
    FOOT_MARKERS,
    MARKERS,
    Pose,
    markers,
)

# The markers at the start and the end of each limb.
_FROM, _TO = [1, 1, 1, 4, 4], [0, 2, 4, 3, 5]

_CLOSING_STEPS = 3
_NUDGE = 1e-6
# Smallest slope of a distance between feet by an angle [m/rad]; typical is 5e-2.
_LEAST_SLOPE = 5e-3


def check_motion(result: Result) -> xr.Dataset:
    """The data of a gecko's motion over time.

    Raises:
        InvalidInput: for another kind of result, or fewer than two poses.
    """
    if result.kind not in ("gecko.simulation", "gecko.live"):
        raise InvalidInput(
            f"the result is a {result.kind}, not a gecko's motion over time; make one "
            "with `drakebots simulate gecko -o run.nc`"
        )
    if result.data.sizes["time"] < 2:
        raise InvalidInput("the result has no motion to show: it has one pose only")
    return result.data


def epsilon_of(result: Result) -> float:
    """Distance at which targets counted as reached [m]; 0 if it is unknown."""
    return 1e-2 * float(result.metrics.get("epsilon_cm", 0.0))


def obstacles_of(data: xr.Dataset) -> list[np.ndarray]:
    """Obstacles, polygons (m, 2) [m]."""
    if "obstacle" not in data:
        return []
    owner = data.obstacle_index.values
    return [data.obstacle.values[owner == k] for k in np.unique(owner)]


def corners_of(data: xr.Dataset) -> np.ndarray:
    """Waypoints that are not targets (k, 2) [m], of a course that has any."""
    points, targets = data.waypoint.values, data.target.values
    return points[~(points[:, None] == targets).all(axis=-1).any(axis=1)]


def course_points(result: Result) -> np.ndarray:
    """Points that a picture of the course must show (n, 2) [m]."""
    data, rows = result.data, [np.zeros((0, 2))]
    rows += [data[n].values for n in ("waypoint", "obstacle", "path") if n in data]
    if "target" in data:
        reach = max(epsilon_of(result), 0.02)
        rows += [data.target.values + reach * np.array(d) for d in ((1, 1), (-1, -1))]
    return np.vstack(rows)


def in_half_cycles(data: xr.Dataset) -> bool:
    """Whether the rows are poses after half cycles, and not samples in time."""
    return "phase" not in data


def stored_poses(data: xr.Dataset, rows=slice(None)) -> list[Pose]:
    """The poses of some rows.

    Lengths of beams are computed from the markers' distances.
    """
    points = data.marker_position.values[rows]
    alpha, heading = data.alpha.values[rows], data.heading.values[rows]
    if "ell" in data:
        ell = data.ell.values[rows]
    else:
        chord = np.linalg.norm(points[:, _TO] - points[:, _FROM], axis=-1)
        # Straight pieces between their joints.
        turned = np.cumsum(data.joint_angle.values[rows][..., :-1], axis=-1)
        ell = chord / np.abs(np.exp(1j * turned).mean(axis=-1))
    front = points[:, MARKERS.index("front")]
    return [Pose(*row) for row in zip(alpha, ell, heading, front, strict=True)]


def stored_joints(data: xr.Dataset, rows: np.ndarray) -> list[np.ndarray | None]:
    """Angles of the limbs' joints (5, N + 1) [rad] in some rows; None for arcs."""
    if "joint_angle" not in data:
        return [None] * len(rows)
    return list(data.joint_angle.values[rows])


@dataclass(frozen=True, eq=False)
class Frames:
    """Poses over time.

    Attributes:
        times: times (n,) [s].
        poses: poses of the robot (n).
        held: whether each foot is fixed (n, 4) of bool.
        joints: angles of the limbs' joints (5, N + 1) [rad] (n); None for arcs.
    """

    times: np.ndarray
    poses: list[Pose]
    held: np.ndarray
    joints: list[np.ndarray | None]

    @property
    def markers(self) -> np.ndarray:
        """p0..p5 (n, 6, 2) [m]."""
        return np.array([pose.markers for pose in self.poses])


def frames(data: xr.Dataset, count: int) -> Frames:
    """Poses at `count` times from the first to the last, both included."""
    check_value("number of frames", count, whole(2))
    stored = data.time.values
    times = np.linspace(stored[0], stored[-1], count)
    if not in_half_cycles(data):
        rows = np.minimum(np.searchsorted(stored, times - 1e-9), len(stored) - 1)
        held = data.fixation.values[rows] > 0.5
        poses, joints = stored_poses(data, rows), stored_joints(data, rows)
        return Frames(times, poses, held, joints)
    ends, holding = stored_poses(data), data.fixation.values > 0.5
    poses, held = [], np.zeros((count, holding.shape[1]), bool)
    for i, time in enumerate(times):
        k = int(np.clip(np.searchsorted(stored, time, "right") - 1, 0, len(ends) - 2))
        share = (time - stored[k]) / (stored[k + 1] - stored[k])
        pose, held[i] = between_half_cycles(*ends[k : k + 2], holding[k + 1], share)
        poses.append(pose)
    return Frames(times, poses, held, [None] * count)


def between_half_cycles(a: Pose, b: Pose, held, share: float) -> tuple[Pose, Any]:
    """The pose at a share of a half cycle, and which feet are fixed then (4,).

    Args:
        a, b: before and after the half cycle.
        held: whether each foot is fixed in it.
        share: of its time, within 0..1.
    """
    phase = PhaseTimes()
    fix, free = phase.fix / phase.half_cycle, phase.free / phase.half_cycle
    moved = np.clip((share - fix - free) / (1 - fix - free), 0.0, 1.0)
    # The limbs start and stop smoothly.
    moved = moved * moved * (3 - 2 * moved)
    fixed = np.ones(4, bool) if share < fix else np.asarray(held, bool)
    return between(a, b, held, float(moved)), fixed


def between(a: Pose, b: Pose, held, share: float) -> Pose:
    """A pose between two others; fixed feet stay within half a millimetre.

    Args:
        a, b: the poses.
        held: whether each foot is fixed from a to b (4,) of bool.
        share: 0 for a, 1 for b.
    """
    alpha, ell = (
        (1 - share) * getattr(a, name) + share * getattr(b, name)
        for name in ("alpha", "ell")
    )
    heading = (1 - share) * a.heading + share * b.heading
    position = (1 - share) * a.position + share * b.position
    held = np.asarray(held, bool)
    if held.any():
        goal = ((1 - share) * a.feet + share * b.feet)[held]
        if held.sum() == 2 and 0 < share < 1:
            alpha = _closed(alpha, ell, held, np.linalg.norm(goal[1] - goal[0]))
        now = markers(alpha, ell, heading, position)[list(FOOT_MARKERS)][held]
        heading += _turn(now - now.mean(axis=0), goal - goal.mean(axis=0))
        now = markers(alpha, ell, heading, position)[list(FOOT_MARKERS)][held]
        position = position + (goal - now).mean(axis=0)
    return Pose(alpha, ell, heading, position)


def _closed(alpha, ell, held, apart: float) -> np.ndarray:
    """Angles (5,) near `alpha` at which two feet have the distance `apart` [m]."""

    def distance(angles) -> float:
        first, second = markers(angles, ell, 0.0, (0, 0))[list(FOOT_MARKERS)][held]
        return float(np.linalg.norm(second - first))

    for _ in range(_CLOSING_STEPS):
        length = distance(alpha)
        slope = np.array([distance(alpha + d) - length for d in _NUDGE * np.eye(5)])
        slope /= _NUDGE
        # Damped: near a straight chain the distance hardly depends on the angles.
        alpha = alpha + (apart - length) * slope / (slope @ slope + _LEAST_SLOPE**2)
    return alpha


def _turn(now: np.ndarray, goal: np.ndarray) -> float:
    """Rotation that maps points (m, 2) best onto others [rad]; 0 for one point."""
    sine = (now[:, 0] * goal[:, 1] - now[:, 1] * goal[:, 0]).sum()
    cosine = (now * goal).sum()
    return float(np.arctan2(sine, cosine)) if len(now) > 1 else 0.0
