"""A robot that lies gets up: what its controller is asked for, stage by stage.

The reference leads through poses that a file beside the model names (POSES):

    gather   the lower legs are taken round to the back's side, "gathered_left"
    roll     they push against the ground, "rolling_left", until the robot has tipped
             onto its belly
    fold     all legs are drawn in, "crouched"
    rise     the base is lifted to its standing height, into the standing pose

with "gathered_right" and "rolling_right" where the right side is below. A stage takes
as long as the joint that has furthest to go needs at SPEED. Nothing says which foot,
knee or corner of the body touches the ground: the controller finds that. A robot that
tips back, or whose push did not turn it, begins again; on its back it goes on from the
side that is nearer. Once it stands it follows the reference that it was given.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np
from pydrake.multibody.plant import MultibodyPlant

from drakebots.control import MpcCost, ReferenceMotion
from drakebots.core.errors import InvalidInput
from drakebots.core.units import GRAVITY
from drakebots.model import contexts_along, with_joints
from drakebots.multibody import Robot

POSES = ("gathered_left", "gathered_right", "rolling_left", "rolling_right", "crouched")
"""Poses that a robot needs to get up; "left" is the side on which it lies."""

SPEED = 0.85
"""Mean speed, in a stage, of the joint that has furthest to go [rad sqrt(g/l)]; l is
the height of the standing robot's centre of mass."""

ROLL = 0.5
"""Rate at which the tilt is asked to fade while the legs push [rad sqrt(g/l)]."""

RISE = 3.5
"""Duration of the rise [sqrt(l/g)]."""

PAUSE = 0.6
"""Time after a stage in which the motion settles [sqrt(l/g)]."""

PUSH = 9.0
"""A robot that has not tipped over after this time gathers its legs anew
[sqrt(l/g)]."""

LEVEL = 3.0
"""Time in which a tilt on the belly is asked to fade to 1/e [sqrt(l/g)]."""

TIPPED = 0.5
"""A robot that tilts by less has tipped onto its belly [rad]."""

UPRIGHT = 0.3
"""A robot that tilts by less may rise [rad]."""

RELAXED = 0.02
"""Share of the weights of the base's place and tilt while the legs gather: a base that
is held makes the legs push off the ground instead of going where they are asked to."""

LOST = 1.0
"""A robot that tilts by more, once it lay on its belly, begins again [rad]."""


class SelfRighting(ReferenceMotion):
    """Reference that begins with getting up; see the module.

    Args:
        robot: the robot, on the base "euler".
        q: its standing pose (nq,).
        poses: joint positions [rad, m] by joint, for each of POSES.
        height: height of the centre of mass of the standing robot [m].
        gravity: size of the gravitational acceleration [m/s^2].
        cost: the controller's weights; while the legs gather, those of the base's
            position count RELAXED of what they are.
        more: other arguments of :class:`ReferenceMotion`.

    Attributes:
        stage: gather, roll, fold or rise; stand once it follows its path.

    Raises:
        InvalidInput: naming the poses that are missing.
    """

    def __init__(
        self,
        robot: Robot,
        q: np.ndarray,
        *,
        poses: Mapping[str, Mapping[str, float]],
        height: float,
        gravity: float,
        cost: MpcCost,
        **more,
    ):
        super().__init__(robot, q, **more)
        missing = [name for name in POSES if name not in poses]
        if missing:
            raise InvalidInput(
                f"{robot.model.name} does not know how to get up; add the poses "
                f"{', '.join(missing)} to an SRDF beside its file (docs/control.md)"
            )
        self._time = np.sqrt(height / (gravity or GRAVITY))
        self._poses = {
            name: with_joints(robot.plant, self.q, poses[name])[self._joints]
            for name in POSES
        }
        self._relaxed = self._without_base(cost, robot.plant)
        self._low = self._crouched_height(robot, poses["crouched"])
        self._turned = 0.0
        self.stage, self._since = "gather", None

    def _crouched_height(self, robot: Robot, pose: Mapping[str, float]) -> float:
        """z of the base that crouches on the ground of the standing pose [m]."""
        poses = self.q, with_joints(robot.plant, self.q, pose)
        stands, crouches = (
            robot.feet_positions(context)[:, 2].min()
            for context in contexts_along(robot.plant, poses)
        )
        return float(self.q[self.axes["z"]] + stands - crouches)

    def _without_base(self, cost: MpcCost, plant: MultibodyPlant) -> MpcCost:
        """The cost with RELAXED of the weights of the base's position."""
        arrays = cost.arrays(plant.num_velocities(), plant.num_actuators())
        P, _, _, T, _ = (weights.copy() for weights in arrays)
        base = [*self.axes.values()]
        P[base] *= RELAXED
        T[base] *= RELAXED
        return replace(cost, position=P, terminal_position=T)

    def __call__(self, t: float, q: np.ndarray, v: np.ndarray) -> tuple:
        """Reference for the knots; while the legs gather, with a cost of its own."""
        answer = super().__call__(t, q, v)
        return (*answer, self._relaxed) if self.stage == "gather" else answer

    def sample(self, times: np.ndarray, q: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The reference at times (n,) for a robot that is at q at the first of them."""
        self._advance(float(times[0]), q)
        if self.stage == "stand":
            out, rates = super().sample(times, q)
            out[:, self.axes["yaw"]] += self._turned
            return out, rates
        out, rates = np.tile(q, (len(times), 1)), np.zeros((len(times), len(q)))
        share, speed = _smooth((times - self._since) / self._lasts)
        self._towards(out, rates, self._joints, self._target, share, speed)
        x = self.axes
        out[:, x["yaw"]] = self._start[x["yaw"]]
        if self.stage in ("fold", "rise"):
            z = self._low if self.stage == "fold" else self.q[x["z"]]
            self._towards(out, rates, [x["z"]], np.array([z]), share, speed)
        self._level(times - times[0], q, out, rates)
        return out, rates

    def _towards(self, out, rates, places, target, share, speed) -> None:
        """Leads coordinates from the stage's start to their target."""
        start = self._start[places]
        out[:, places] = start + share[:, None] * (target - start)
        rates[:, places] = speed[:, None] * (target - start) / self._lasts

    def _level(self, after, q, out, rates) -> None:
        """Tilts: kept while gathering, turned back at ROLL, or left to fade."""
        roll, pitch = self.axes["roll"], self.axes["pitch"]
        tilt = _wrapped(q[roll])
        turns = q[roll] - tilt
        out[:, pitch] = 0.0
        if self.stage in ("roll", "rise"):
            rate = ROLL / self._time
            left = np.maximum(np.abs(tilt) - rate * after, 0.0)
            rates[:, roll] = -np.sign(tilt) * rate * (left > 0)
            out[:, roll] = turns + np.sign(tilt) * left
        elif self.stage == "fold":
            fades = np.exp(-after / (LEVEL * self._time))
            out[:, roll], out[:, pitch] = turns + fades * tilt, fades * q[pitch]

    # --- stages ---

    def _advance(self, time: float, q: np.ndarray) -> None:
        """Enters the stage that the robot's tilt asks for."""
        roll, pitch = q[self.axes["roll"]], q[self.axes["pitch"]]
        tilt = np.arccos(np.clip(np.cos(roll) * np.cos(pitch), -1.0, 1.0))
        if self._since is None:
            self._enter("gather", time, q)
        spent = time - self._since
        done = spent > self._lasts + PAUSE * self._time
        match self.stage:
            case "gather" if done:
                self._enter("roll", time, q)
            case "roll" if tilt < TIPPED:
                self._enter("fold", time, q)
            case "roll" if spent > PUSH * self._time:
                self._enter("gather", time, q)
            case "fold" | "rise" | "stand" if tilt > LOST:
                self._enter("gather", time, q)
            case "fold" if done and tilt < UPRIGHT:
                self._enter("rise", time, q)
            case "rise" if done:
                self._enter("stand", time, q)

    def _enter(self, stage: str, time: float, q: np.ndarray) -> None:
        self.stage, self._since, self._start = stage, time, q.copy()
        side = "left" if _wrapped(q[self.axes["roll"]]) < 0 else "right"
        names = {
            "gather": f"gathered_{side}",
            "roll": f"rolling_{side}",
            "fold": "crouched",
        }
        self._target = self.q[self._joints]
        self._lasts = RISE * self._time
        if stage in names:
            self._target = self._poses[names[stage]]
            furthest = np.abs(self._target - q[self._joints]).max()
            self._lasts = max(furthest / SPEED, 1.0) * self._time
        if stage == "stand":
            yaw = self.axes["yaw"]
            self._turned = _wrapped(q[yaw] - self.q[yaw] - self._turn * time)


def _smooth(x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """A step from 0 to 1 without a jump in speed, and its derivative."""
    x = np.clip(x, 0.0, 1.0)
    return x * x * (3 - 2 * x), 6 * x * (1 - x)


def _wrapped(angle: float) -> float:
    """The angle between -pi and pi [rad]."""
    return float((angle + np.pi) % (2 * np.pi) - np.pi)
