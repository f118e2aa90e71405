"""Any model posed by hand: a slider for every joint, its loops closed while one drags.

A joint that is dragged stays where it was dragged to; the joints of its loops follow
by Newton steps of least norm

    dq = T W A^T (A W A^T)^+ (-c(q)),   A = dc/dq T,

over the joints that follow no other, in which driven joints weigh more (STIFF), so that
they stay where they were if they can. Joints move by small steps, so that a loop keeps
its way of closing, and stop where it cannot be closed.
"""

from __future__ import annotations

import time
from collections.abc import Mapping

import numpy as np

from drakebots.core.convert import as_yaml
from drakebots.core.run import Progress, run_steps
from drakebots.core.stages import spent, timed
from drakebots.formats import model_provenance
from drakebots.live.panel import Panel, Slider
from drakebots.live.script import Live, with_events
from drakebots.model import Model, coupled_joints, slides
from drakebots.multibody import closure_residuals, trajectory_dataset
from drakebots.multibody.posture import Stance, find_posture
from drakebots.results import Result
from drakebots.view import Scene, look_at_motion, make_scene

RATE = 60.0
"""Pictures a second."""

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

    def slider(self, k: int) -> Slider:
        """The slider of a joint of `stance.joints`."""
        joint, at = self.stance.joints[k], float(self.stance.positions()[k])
        slide = slides(joint)
        far, unit = (self.stance.size, "m") if slide else (np.pi, "rad")
        ends = self.stance.lower[k], self.stance.upper[k]
        low, high = (float(np.clip(x, -far, far)) if np.isinf(x) else x for x in ends)
        low, high = min(low, at), max(high, at)
        step = (high - low) / 400
        return Slider(joint.name(), low, high, value=at, step=step, unit=unit)

    def follow(self, controls: Mapping[int, Slider], panel: Panel, now: float) -> None:
        """Goes where the sliders of the joints are, and sets them where it came to."""
        for event in panel.poll(now):
            (k,) = (k for k, c in controls.items() if c.name == event.control)
            self.move(k, event.value)
        at = self.stance.positions()
        for k, slider in controls.items():
            if abs(panel.values[slider.name] - at[k]) > slider.smallest / 2:
                panel.show(slider.name, float(at[k]))

    def shown(self, scene: Scene) -> np.ndarray:
        """The positions (nq,) in the order of a scene of the same model."""
        plant = self.stance.plant
        names = list(plant.GetPositionNames(always_add_suffix=False))
        wanted = scene.plant.GetPositionNames(always_add_suffix=False)
        q = plant.GetPositions(self.stance.context)
        return q[[names.index(name) for name in wanted]]

    def move(self, k: int, value: float) -> float:
        """Moves a joint towards a value [rad, m]; returns where it came to."""
        stance = self.stance
        here = stance.positions()
        stride = STRIDE * (stance.size if slides(stance.joints[k]) else 1.0)
        stride = stride if stance.robot.closure.num_rows else np.inf
        least = stride / 32
        while here[k] != value and stride >= least:
            q = here.copy()
            left = value - here[k]
            q[k] = value if abs(left) <= stride else here[k] + np.sign(left) * stride
            q = self._closed(k, stance.followed(q))
            if q is None:
                stride /= 2
            else:
                here = q
        self._set(here)
        if stance.can_be_lowered():
            stance.lower_to_ground()
        return float(here[k])

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


@timed("load")
def pose_by_hand(
    live: Live, model: Model, *, progress: Progress | None = None
) -> Result:
    """Shows a model whose joints are moved by sliders, until Ctrl-C or `duration`.

    Args:
        live: options of the run.
        model: any model.
        progress: called as progress("live", time, end) [s].

    Returns:
        The motion and the commands, kind "live.pose".

    Raises:
        InvalidInput: for a model without a joint that can move.
    """
    hand, scene, events = Hand(model), None, live.events()
    controls = {int(k): hand.slider(k) for k in hand.joints}
    if not live.headless:
        ground = 0.0 if hand.stance.can_be_lowered() else None
        scene = make_scene(model, ground_height=ground, port=live.port)
        look_at_motion(scene, hand.shown(scene)[None])
        live.announce(scene)
    panel = Panel([*controls.values()], scene and scene.meshcat, events)
    plant, states = hand.stance.plant, []
    rest = np.zeros(plant.num_velocities())

    def step(k: int) -> None:
        now = (k - 1) / RATE
        hand.follow(controls, panel, now)
        states.append(np.append(plant.GetPositions(hand.stance.context), rest))
        if scene is not None:
            scene.show(hand.shown(scene))
            time.sleep(1 / RATE)

    count = int(min(np.ceil(live.end(events) * RATE) + 1, 1e12))
    more = {"success": "posed by hand", "progress": progress}
    end = run_steps(step, count, stage="live", **more)
    times = np.arange(len(states)) / RATE
    data = trajectory_dataset(hand.stance.robot, times, np.array(states))
    return Result(
        kind="live.pose",
        model=model.name,
        verdict=end.verdict,
        message=end.message,
        data=with_events(data, panel.events),
        residuals=closure_residuals(data),
        timings=spent(),
        metrics={"commands": len(panel.events)},
        provenance=model_provenance(model, as_yaml(live)),
    )
