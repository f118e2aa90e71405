"""One settled cycle of a gait in its phases, as in Fig. 6.

    1a  all feet fixed, in the pose the last half cycle ended with
    1b  feet FL and RR released: their legs are free to follow the law
    2a  moved to +q1, and all feet fixed
    2b  feet FR and RL released
    3a  moved to -q1: the pose 1a, a cycle on

Source: Schiller, Seibel, Schlattmann, Front. Robot. AI 7:87 (2020), section 3.2.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from drakebots.errors import InvalidInput
from drakebots.robots.gecko.gait import check_gait
from drakebots.robots.gecko.gait_law import fixation, gait_law
from drakebots.robots.gecko.kinematics import Pose, pose_at
from drakebots.robots.gecko.parameters import FEET, LEGS, Gecko, gecko
from drakebots.robots.gecko.pose_step import pose_step

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
