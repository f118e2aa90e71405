"""One settled cycle of a gait in its phases, as in Fig. 6.

    1a  all feet fixed, in the pose the last half cycle ended with
    1b  feet FL and RR released: their legs are free to follow the law
    2a  moved to +q1, and all feet fixed
    2b  feet FR and RL released
    3a  moved to -q1: the pose 1a, a cycle on

Source: Schiller, Seibel, Schlattmann, Front. Robot. AI 7:87 (2020), section 3.2.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from drakebots.core.errors import InvalidInput
from drakebots.robots.gecko.model import (
    FEET,
    LEGS,
    Gecko,
    Pose,
    fixation,
    gait_law,
    gecko,
    pose_at,
)
from drakebots.robots.gecko.pose_step.pose_step import Step, pose_step

# Gaits of constant (q1, q2) by the pose step: poses, and motion per cycle.
#
# A gait starts in its own extreme pose alpha(-q1, q2) and repeats half cycles. In
# the first cycle the feet still remember that unhindered pose; what a cycle does
# settles by a factor of some 15 a cycle.

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


PHASES = ("1a", "1b", "2a", "2b", "3a")


@dataclass(frozen=True, eq=False)
class CyclePhases:
    """The poses of a cycle and what the law asked for.

    Attributes:
        q1, q2: the gait; q1 [rad].
        poses: in the order of PHASES.
        reference: angles of the law in each (5, 5) [rad].
        held: feet that hold in each (5, 4) of bool.
        moving: feet that hold while the limbs move, by half cycle (2, 4).
    """

    q1: float
    q2: float
    poses: tuple[Pose, ...]
    reference: np.ndarray
    held: np.ndarray
    moving: np.ndarray

    @property
    def alpha(self) -> np.ndarray:
        """Angles (5, 5) [rad], by phase and limb."""
        return np.array([pose.alpha for pose in self.poses])

    @property
    def off_law(self) -> np.ndarray:
        """alpha - reference (5, 5) [rad], by phase and limb."""
        return self.alpha - self.reference

    @property
    def foot_headings(self) -> np.ndarray:
        """phi (5, 4) [rad], by phase and foot."""
        return np.array([pose.foot_headings for pose in self.poses])

    @property
    def turn(self) -> np.ndarray:
        """What each foot turned while it was held (4,) [rad].

        FR and RL from 1a to 2a, FL and RR from 2a to 3a.
        """
        phi = self.foot_headings
        halves = np.array([phi[2] - phi[0], phi[4] - phi[2]])
        return np.where(self.moving, halves, 0.0).sum(axis=0)

    @property
    def rotation(self) -> float:
        """Of the robot in the cycle [rad]."""
        return self.poses[-1].heading - self.poses[0].heading

    def table(self) -> list[dict[str, float | str]]:
        """By foot, in deg: how far its leg is off the law, and its turn."""
        legs = np.degrees(self.off_law[:, LEGS])
        turn = np.degrees(self.turn)
        return [
            {
                "foot": foot,
                **{f"off_law_{p}_deg": float(legs[k, i]) for k, p in enumerate(PHASES)},
                "turn_while_held_deg": float(turn[i]),
            }
            for i, foot in enumerate(FEET)
        ]


def cycle_phases(
    q1: float = np.radians(80.0),
    q2: float = -0.5,
    *,
    robot: Gecko | None = None,
    settle: int = 4,
) -> CyclePhases:
    """The phases of the cycle after `settle` others.

    With all feet fixed the pose stays. A release is a pose step with the new
    fixation and the old reference; then follows one with the new reference.

    Args:
        q1: step length [rad], q2: steering.
        robot: by default the small one with the weights of Fig. 6.
        settle: cycles before, >= 0.

    Raises:
        InvalidInput: for a gait that is none, or settle < 0.
        NoSolution: when a pose step fails.
    """
    q1, q2 = check_gait(q1, q2)
    if int(settle) != settle or settle < 0:
        raise InvalidInput(f"settle must be a whole number >= 0 cycles, got {settle}")
    robot = robot or gecko(weights="single_cycle")
    law = {sign: gait_law(sign * q1, q2, leg_bend=robot.leg_bend) for sign in (1, -1)}
    pose = pose_at(robot, law[-1])
    for _ in range(int(settle) + 1):
        poses = [pose]
        for sign in (1, -1):
            released = pose_step(robot, poses[-1], law[-sign], fixation(sign)).pose
            moved = pose_step(robot, released, law[sign], fixation(sign)).pose
            poses += [released, moved]
        pose = poses[-1]
    every, first, second = np.ones(len(FEET), bool), fixation(1), fixation(-1)
    return CyclePhases(
        q1=q1,
        q2=q2,
        poses=tuple(poses),
        reference=np.array([law[s] for s in (-1, -1, 1, 1, -1)]),
        held=np.array([every, first, every, second, every]),
        moving=np.array([first, second]),
    )
