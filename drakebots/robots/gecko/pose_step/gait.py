"""Gaits of constant (q1, q2) by the pose step: their poses and their motion per cycle.

A gait starts in its own extreme pose alpha(-q1, q2) and repeats half cycles. In the
first cycle the feet still have the orientations of that unconstrained pose; the motion
per cycle converges by a factor of some 15 a cycle.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from drakebots.core.checks import between, check_value, finite, whole
from drakebots.core.errors import InvalidInput
from drakebots.robots.gecko.model import Gecko, Pose, fixation, gait_law, pose_at
from drakebots.robots.gecko.pose_step.pose_step import Step, pose_step

Saturation = Callable[[np.ndarray], np.ndarray]
"""Limits reference angles (5,) [rad] to what the pressure supply can reach."""


def check_gait(q1, q2) -> tuple[float, float]:
    """The gait's step length [rad] and steering as numbers.

    Raises:
        InvalidInput: unless q1 is within 0..180 deg, 0 excluded, and q2 within -1..1.
    """
    q1 = float(check_value("step length q1", q1, finite("rad")))
    q2 = float(check_value("steering q2", q2, finite()))
    if not 0 < q1 <= np.pi:
        raise InvalidInput(
            f"step length q1 must be > 0 and within 0..180 deg, got {np.degrees(q1):g}"
        )
    return q1, check_value("steering q2", q2, between(-1, 1))


def half_cycle(
    robot: Gecko, pose: Pose, q1: float, q2: float, saturate: Saturation | None = None
) -> Step:
    """The pose step to the gait law's pose of q1, signed, [rad] and q2."""
    reference = gait_law(q1, q2, leg_bend=robot.leg_bend)
    if saturate is not None:
        reference = saturate(reference)
    return pose_step(robot, pose, reference, fixation(q1))


def walk(
    robot: Gecko,
    q1: float,
    q2: float,
    half_cycles: int,
    *,
    start: Pose | None = None,
    saturate: Saturation | None = None,
) -> list[Pose]:
    """Poses of a gait (half_cycles + 1), beginning with the start.

    Args:
        robot: lengths and weights.
        q1: step length [rad]; the first half cycle goes to +q1.
        q2: steering.
        half_cycles: number of half cycles.
        start: first pose; by default alpha(-q1, q2) at the origin.
        saturate: limit of the pressure supply.

    Raises:
        InvalidInput: for q1 or q2 out of range.
        NoSolution: when a pose step fails.
    """
    q1, q2 = check_gait(q1, q2)
    if start is None:
        alpha = gait_law(-q1, q2, leg_bend=robot.leg_bend)
        start = pose_at(robot, alpha if saturate is None else saturate(alpha))
    poses = [start]
    for k in range(half_cycles):
        q = q1 if k % 2 == 0 else -q1
        poses.append(half_cycle(robot, poses[-1], q, q2, saturate).pose)
    return poses


@dataclass(frozen=True)
class CycleMotion:
    """Motion of one cycle, in the body frame at its start.

    Attributes:
        rotation: change of the heading [rad].
        forward, left: displacement of the torso's front end [m].
        poses: poses at the start, the middle and the end of the cycle.
    """

    rotation: float
    forward: float
    left: float
    poses: tuple[Pose, Pose, Pose]


def relative_motion(a: Pose, b: Pose) -> tuple[float, np.ndarray]:
    """Rotation [rad] and displacement (2,) [m] from a to b in a's frame."""
    c, s = np.cos(a.heading), np.sin(a.heading)
    moved = np.array([[c, s], [-s, c]]) @ (b.position - a.position)
    return b.heading - a.heading, moved


def cycle_motion(
    robot: Gecko,
    q1: float,
    q2: float,
    *,
    settle: int = 4,
    saturate: Saturation | None = None,
) -> CycleMotion:
    """Motion of the cycle that follows `settle` others; see also :func:`walk`."""
    settle = check_value("settle", settle, whole(0))
    poses = walk(robot, q1, q2, 2 * settle + 2, saturate=saturate)[-3:]
    rotation, moved = relative_motion(poses[0], poses[2])
    return CycleMotion(float(rotation), float(moved[0]), float(moved[1]), tuple(poses))
