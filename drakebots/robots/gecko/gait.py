"""Gaits of constant (q1, q2) by the pose step: poses, and motion per cycle.

A gait starts in its own extreme pose alpha(-q1, q2) and repeats half cycles. In
the first cycle the feet still remember that unhindered pose; what a cycle does
settles by a factor of some 15 a cycle.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from drakebots.errors import InvalidInput
from drakebots.robots.gecko.gait_law import fixation, gait_law
from drakebots.robots.gecko.kinematics import Pose, pose_at
from drakebots.robots.gecko.parameters import Gecko
from drakebots.robots.gecko.pose_step import Step, pose_step

Saturation = Callable[[np.ndarray], np.ndarray]
"""What the pressure supply makes of reference angles (5,) [rad]."""


def check_gait(q1, q2) -> tuple[float, float]:
    """The gait's numbers, if it is one.

    Raises:
        InvalidInput: unless q1 is within 0..180 deg and q2 within -1..1.
    """
    q1, q2 = float(q1), float(q2)
    if not 0 < q1 <= np.pi:
        raise InvalidInput(
            f"step length q1 must be within 0..180 deg, got {np.degrees(q1):g} deg"
        )
    if not abs(q2) <= 1:
        raise InvalidInput(f"steering q2 must be within -1..1, got {q2:g}")
    return q1, q2


def half_cycle(
    robot: Gecko, pose: Pose, q1: float, q2: float, saturate: Saturation | None = None
) -> Step:
    """The step to the extreme pose of q1, with its half cycle's sign [rad]."""
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
    """Poses of a gait (half_cycles + 1), the start first.

    Args:
        q1: step length [rad]; the first half cycle goes to +q1.
        q2: steering.
        half_cycles: how many.
        start: where it begins; by default alpha(-q1, q2) at the origin.
        saturate: what the pressure supply makes of the references.

    Raises:
        InvalidInput: for a gait that is none.
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
    """What one cycle does, in the body frame at its start.

    Attributes:
        rotation: [rad].
        forward, left: of the torso's front end [m].
        poses: at the start, the half and the end of the cycle.
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
    """What the cycle after `settle` others does; arguments as in :func:`walk`."""
    if settle < 0:
        raise InvalidInput(f"settle must be >= 0 cycles, got {settle}")
    poses = walk(robot, q1, q2, 2 * settle + 2, saturate=saturate)[-3:]
    rotation, moved = relative_motion(poses[0], poses[2])
    return CycleMotion(float(rotation), float(moved[0]), float(moved[1]), tuple(poses))
