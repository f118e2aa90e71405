"""Any model posed by hand: a slider for every joint, its loops closed while one drags.

A joint that is dragged stays where it was dragged to; the joints of its loops follow
by Newton steps of least norm

    dq = T W A^T (A W A^T)^+ (-c(q)),   A = dc/dq T,

over the joints that follow no other, in which driven joints weigh more (STIFF), so that
they stay where they were if they can. Joints move by small steps, so that a loop keeps
its way of closing, and stop where it cannot be closed.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial

import numpy as np
import xarray as xr

from drakebots.core.errors import InvalidInput
from drakebots.core.run import Progress
from drakebots.core.stages import timed
from drakebots.live.loop import Part, RobotPage, run_live
from drakebots.live.panel import Slider
from drakebots.live.script import Live
from drakebots.model import Model, coupled_joints, part_name, slides
from drakebots.multibody import trajectory_dataset
from drakebots.multibody.posture import Stance, find_posture
from drakebots.results import Result

RATE = 60.0
"""Moves a second."""

STIFF = 100.0
"""Weight of driven joints, which rather stay where they are."""

STRIDE = 0.05
"""Largest step of a joint whose loops have to follow [rad, sizes of the robot]."""

CLOSED = 1e-8
"""Largest row of a closed loop, as a share of the robot's size."""

ITERATIONS = 30
"""Newton steps at most; a loop that closes takes three or four."""


class Hand:
    """Moves one joint of a model after the other; those of its loops follow.

    Args:
        model: the model; it begins in its standing posture, or as its file has it.

    Attributes:
        stance: the posed robot.
        joints: indices, in `stance.joints`, of the joints that a hand may move: those
            with room that follow no other.
    """

    def __init__(self, model: Model):
        self.stance = stance = Stance(model)
        stance.take(find_posture(model))
        plant, closure = stance.plant, stance.robot.closure
        followers = {
            coupled_joints(plant, coupler)[0].velocity_start()
            for coupler in closure.couplers
        }
        self._rates = np.array([j.velocity_start() for j in stance.joints], int)
        self._T = closure.leading()
        leads = np.delete(np.arange(len(self._T)), sorted(followers))
        free = np.isin(self._rates, leads) & (stance.upper > stance.lower)
        self.joints = np.flatnonzero(free)
        self._column = np.searchsorted(leads, self._rates)
        driven, self._ease = stance.driven(), np.zeros(len(leads))
        for k in self.joints:
            unit = stance.size if slides(stance.joints[k]) else 1.0
            stiff = STIFF if stance.joints[k].index() in driven else 1.0
            self._ease[self._column[k]] = unit**2 / stiff

    def move(self, k: int, value: float) -> float:
        """Moves a joint towards a value [rad, m]; returns where it came to."""
        stance = self.stance
        here = stance.positions()
        stride = STRIDE * (stance.size if slides(stance.joints[k]) else 1.0)
        stride = stride if stance.robot.closure.num_rows else np.inf
        least = stride / 32
        while here[k] != value and stride >= least:
            q = here.copy()
            q[k] = np.clip(value, here[k] - stride, here[k] + stride)
            q = self._closed(k, stance.followed(q))
            if q is None:
                stride /= 2
            else:
                here = q
        self.put(here)
        return float(here[k])

    def put(self, positions: np.ndarray) -> None:
        """Poses all joints, and a robot that stands on the ground."""
        self._set(positions)
        if self.stance.can_be_lowered():
            self.stance.lower_to_ground()

    def _set(self, positions: np.ndarray) -> None:
        plant, context = self.stance.plant, self.stance.context
        q = plant.GetPositions(context)
        q[[joint.position_start() for joint in self.stance.joints]] = positions
        plant.SetPositions(context, q)

    def _closed(self, held: int, positions: np.ndarray) -> np.ndarray | None:
        """Positions of all joints with the loops closed; None where they do not."""
        stance, closure = self.stance, self.stance.robot.closure
        ease = self._ease.copy()
        ease[self._column[held]] = 0.0
        for _ in range(ITERATIONS):
            self._set(positions)
            c, C = closure.evaluate(stance.context)
            if np.abs(c).max(initial=0.0) < CLOSED * stance.size:
                return positions
            A = C @ self._T
            pull = np.linalg.lstsq((A * ease) @ A.T, -c, rcond=1e-10)[0]
            change = (self._T @ (ease * (A.T @ pull)))[self._rates]
            inside = np.clip(positions + change, stance.lower, stance.upper)
            positions = stance.followed(np.where(change == 0, positions, inside))
        return None


def joint_slider(stance: Stance, k: int) -> Slider:
    """The slider of a joint of `stance.joints`, within its limits."""
    joint, at = stance.joints[k], float(stance.positions()[k])
    far, unit = (stance.size, "m") if slides(joint) else (np.pi, "rad")
    ends = stance.lower[k], stance.upper[k]
    low, high = (float(np.clip(x, -far, far)) if np.isinf(x) else x for x in ends)
    low, high = min(low, at), max(high, at)
    step = (high - low) / 400
    return Slider(part_name(joint), low, high, value=at, step=step, unit=unit)


class Posed(Part):
    """A model whose joints' sliders a hand moves, as a live part."""

    kind, period, pace, done = "live.pose", 1 / RATE, None, "posed by hand"

    def __init__(self, live: Live, model: Model):
        self.hand = hand = Hand(model)
        self.name, self.robot = model.name, hand.stance.robot
        if not self.robot.plant.num_velocities():
            raise InvalidInput(
                f"nothing of {model.name} moves; give it mass and a free base or joints"
            )
        self._first = hand.stance.positions()
        self._sliders = {}
        for k in hand.joints.tolist():
            slider = joint_slider(hand.stance, k)
            self._sliders[k] = replace(slider, act=partial(hand.move, k))
        self.controls = [*self._sliders.values()]
        self._states, self._moved = [self._state()], True
        if not live.headless:
            self.open(RobotPage(model, live.port, hand.stance.can_be_lowered()))

    def _state(self) -> np.ndarray:
        plant = self.robot.plant
        q = plant.GetPositions(self.hand.stance.context)
        return np.append(q, np.zeros(plant.num_velocities()))

    def advance(self, time: float) -> None:
        self._states.append(self._state())

    def told(self) -> None:
        """Sets the sliders to where their joints came to."""
        self._moved = True
        at = self.hand.stance.positions()
        for k, slider in self._sliders.items():
            if abs(self.panel.values[slider.name] - at[k]) > slider.smallest / 2:
                self.panel.show(slider.name, float(at[k]))

    def restart(self) -> None:
        self.hand.put(self._first)

    def draw(self) -> None:
        if self._moved:
            self._moved = False
            self.page.show(self.robot, self.hand.stance.context)

    def dataset(self) -> xr.Dataset:
        times = self.period * np.arange(len(self._states))
        return trajectory_dataset(self.robot, times, np.array(self._states))


@timed("load")
def pose_by_hand(
    live: Live, model: Model, *, progress: Progress | None = None
) -> Result:
    """A page with a slider for every joint; runs until it is ended.

    Returns:
        The motion and the commands, kind "live.pose".

    Raises:
        InvalidInput: for a model of which nothing moves.
    """
    return run_live(live, Posed(live, model), progress)
