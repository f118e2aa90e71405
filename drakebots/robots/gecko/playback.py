"""The gecko's poses over time from a stored result, also between those stored.

The engine "pose" stores one pose a half cycle. In between, while the limbs move,
angles and lengths go smoothly from one pose to the next, with the least change of
angles that keeps the distance between the two feet that hold; the robot is put
where these feet are. It is for pictures only: no pose in between minimises the
pose step's objective.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import xarray as xr

from drakebots.core.errors import InvalidInput
from drakebots.results import Result
from drakebots.robots.gecko.model import FOOT_MARKERS, MARKERS, Pose, markers, raw

# The markers between which each limb lies.
_FROM, _TO = [1, 1, 1, 4, 4], [0, 2, 4, 3, 5]

_CLOSING_STEPS = 3
_NUDGE = 1e-6
_LEAST_SLOPE = 5e-3
"""Of a distance between feet by an angle [m/rad]; a gecko's are some 5e-2."""


@dataclass(frozen=True, eq=False)
class Frames:
    """Poses over time.

    Attributes:
        times: (n,) [s].
        poses: of the robot (n).
        held: feet that hold (n, 4) of bool.
    """

    times: np.ndarray
    poses: list[Pose]
    held: np.ndarray

    @property
    def markers(self) -> np.ndarray:
        """p0..p5 (n, 6, 2) [m]."""
        return np.array([pose.markers for pose in self.poses])


def is_gecko_run(result: Result) -> bool:
    """Whether a result is a gecko's motion over time."""
    return (
        result.model == "gecko"
        and {"alpha", "heading", "marker_position"} <= set(result.data)
        and result.data.alpha.dims == ("time", "limb")
    )


def check_gecko_run(result: Result) -> xr.Dataset:
    """The data of a gecko's motion.

    Raises:
        InvalidInput: for another model, a velocity space, or less than two poses.
    """
    if not is_gecko_run(result):
        what = f"a {result.kind} of {result.model}"
        raise InvalidInput(
            f"the result is {what}, not a gecko's motion over time; make one with "
            "`drakebots simulate gecko -o run.nc`"
        )
    if result.data.sizes["time"] < 2:
        raise InvalidInput("the result holds no motion to show: one pose only")
    return result.data


def in_half_cycles(data: xr.Dataset) -> bool:
    """Whether the rows are poses after half cycles, not samples in time."""
    return "phase" not in data


def stored_poses(data: xr.Dataset, rows=slice(None)) -> list[Pose]:
    """The poses of some rows.

    Lengths that were not stored follow from the markers' distances.
    """
    points = data.marker_position.values[rows]
    alpha, heading = data.alpha.values[rows], data.heading.values[rows]
    if "ell" in data:
        ell = data.ell.values[rows]
    else:
        chord = np.linalg.norm(points[:, _TO] - points[:, _FROM], axis=-1)
        ell = chord / np.sinc(alpha / (2 * np.pi))
    front = points[:, MARKERS.index("front")]
    return [Pose(*row) for row in zip(alpha, ell, heading, front, strict=True)]


def frames(data: xr.Dataset, count: int) -> Frames:
    """Poses at `count` times from the first to the last, both included."""
    if count < 2:
        raise InvalidInput(f"a motion needs 2 frames at least, got {count}")
    stored = data.time.values
    times = np.linspace(stored[0], stored[-1], count)
    if not in_half_cycles(data):
        rows = np.minimum(np.searchsorted(stored, times - 1e-9), len(stored) - 1)
        held = data.fixation.values[rows] > 0.5
        return Frames(times, stored_poses(data, rows), held)
    ends, holding = stored_poses(data), data.fixation.values > 0.5
    phase = raw()["phase_times"]["value"]
    parts = np.array([phase["fix"], phase["free"], phase["move"]])
    fix, free, _ = parts / parts.sum()
    poses, held = [], np.zeros((count, holding.shape[1]), bool)
    for i, time in enumerate(times):
        k = int(np.clip(np.searchsorted(stored, time, "right") - 1, 0, len(ends) - 2))
        share = (time - stored[k]) / (stored[k + 1] - stored[k])
        held[i] = True if share < fix else holding[k + 1]
        moved = np.clip((share - fix - free) / (1 - fix - free), 0.0, 1.0)
        # Slow at both ends: limbs start and stop.
        moved = moved * moved * (3 - 2 * moved)
        poses.append(between(ends[k], ends[k + 1], holding[k + 1], float(moved)))
    return Frames(times, poses, held)


def between(a: Pose, b: Pose, held, share: float) -> Pose:
    """A pose between two, the feet that hold about where they are.

    Args:
        a, b: the poses.
        held: feet that hold from a to b (4,) of bool.
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
        want = ((1 - share) * a.feet + share * b.feet)[held]
        if held.sum() == 2 and 0 < share < 1:
            alpha = _closed(alpha, ell, held, np.linalg.norm(want[1] - want[0]))
        have = markers(alpha, ell, heading, position)[list(FOOT_MARKERS)][held]
        turn = _turn(have - have.mean(axis=0), want - want.mean(axis=0))
        heading += turn
        have = markers(alpha, ell, heading, position)[list(FOOT_MARKERS)][held]
        position = position + (want - have).mean(axis=0)
    return Pose(alpha, ell, heading, position)


def _closed(alpha, ell, held, apart: float) -> np.ndarray:
    """Angles (5,) near `alpha` at which two feet are so far apart [m]."""

    def distance(angles) -> float:
        first, second = markers(angles, ell, 0.0, (0, 0))[list(FOOT_MARKERS)][held]
        return float(np.linalg.norm(second - first))

    for _ in range(_CLOSING_STEPS):
        now = distance(alpha)
        slope = np.array([distance(alpha + d) - now for d in _NUDGE * np.eye(5)])
        slope /= _NUDGE
        # Damped: near a stretched chain the distance hardly depends on angles.
        alpha = alpha + (apart - now) * slope / (slope @ slope + _LEAST_SLOPE**2)
    return alpha


def _turn(have: np.ndarray, want: np.ndarray) -> float:
    """Angle that turns points (m, 2) best onto others [rad]; 0 for one point."""
    sine = (have[:, 0] * want[:, 1] - have[:, 1] * want[:, 0]).sum()
    cosine = (have * want).sum()
    return float(np.arctan2(sine, cosine)) if len(have) > 1 else 0.0
