"""A robot in its elastic skin in the browser: servos are moved, and the skin deforms.

drive(Drive("skinned_leg", headless=True, script="commands.csv"))
"""

from __future__ import annotations

from dataclasses import replace
from typing import Annotated, Any

import numpy as np
import xarray as xr

from drakebots.core.checks import flag, one_of, positive
from drakebots.core.fields import checked
from drakebots.core.run import Progress, Stop, failed
from drakebots.core.stages import timed
from drakebots.core.threads import calm_threads
from drakebots.live import Live, Part, RobotPage, Slider, run_live
from drakebots.results import Result
from drakebots.skin import (
    COLLISIONS,
    SkinRecord,
    SkinSimulation,
    build_stepper,
    on_ground,
    vertex_stress,
)
from drakebots.skin.file import load_skinned

SKIN_PERIOD = 0.1
"""Simulated time between two stored shapes of the skin [s]."""

SWING = 1.5
"""Largest change of a joint without limits [rad]."""


@checked("live", kw_only=True)
class Drive(Live):
    """A robot in its skin whose servos sliders move, and sines about them."""

    model: str = "skinned_leg"
    """Name or path of a skeleton with a `.skin.yaml` beside it."""
    time_step: Annotated[float, positive("s")] = 1e-2
    """Time step of skeleton and skin; longer ones damp more, shorter ones take more
    time."""
    collisions: Annotated[str, one_of("kind of collisions", COLLISIONS)] = "none"
    """What the skin collides with, as in `simulate`; it takes time."""
    ground: Annotated[bool, flag()] = True
    """Whether there is ground under contact points and skin."""


class LiveSkin(Part):
    """The servos and the skin of a live robot."""

    kind, done = "skin.live", "driven"
    picture = 1 / 30

    def __init__(self, live: Drive):
        given = ("model", "time_step", "collisions", "ground")
        problem = SkinSimulation(**{name: getattr(live, name) for name in given})
        self.robot = robot = load_skinned(live.model)
        self.name, self.period = robot.model.name, live.time_step
        self._stepper = stepper = build_stepper(problem, robot)
        self._first = stepper.start(on_ground(problem, robot) if live.ground else None)
        self._state, self._phase = self._first, 0.0
        self._rest = robot.joint_positions(robot.rest_positions)
        self._record = SkinRecord(robot, stepper, SKIN_PERIOD)
        self._record.add(self._first, self._rest)
        plant, at = robot.plant, stepper.actuated
        low = np.maximum(plant.GetPositionLowerLimits()[at], self._rest - SWING)
        high = np.minimum(plant.GetPositionUpperLimits()[at], self._rest + SWING)
        self.controls = [
            *(
                Slider(name, float(a), float(b), float(x), unit="rad")
                for name, a, b, x in zip(robot.joints, low, high, self._rest)
            ),
            Slider("swing", 0, 1, 0.0, 0.05, unit="rad, sines", keys="SW"),
            Slider("period", 0.5, 5, 2.0, 0.1, unit="s", keys="AD"),
        ]
        if not live.headless:
            self.open(RobotPage(robot.model, live.port))

    def advance(self, time: float) -> Stop | None:
        values = self.panel.values
        self._phase += 2 * np.pi * self.period / values["period"]
        phases = self._phase - np.pi / 2 * np.arange(len(self._rest))
        target = np.array([values[name] for name in self.robot.joints])
        target += values["swing"] * np.sin(phases)
        result = self._stepper.step(self._state, servo=self.robot.servo(target))
        if not result.converged:
            return failed(result.message)
        self._state = result.state
        self._record.add(self._state, target, result)
        return None

    def restart(self) -> None:
        skin = replace(self._first.skin, time=self._state.skin.time)
        self._state, self._phase = replace(self._first, skin=skin), 0.0
        for name, value in zip(self.robot.joints, self._rest):
            self.panel.show(name, float(value))
        self.panel.show("swing", 0.0)

    # --- the page ---

    def draw(self) -> None:
        robot, state = self.robot, self._state
        self._stepper.pose(state.q, state.v)
        self.page.show(robot.robot, robot.context)
        x = state.skin.positions
        self.page.show_skin(robot.mesh, x, vertex_stress(robot.fem, x))

    # --- what came of it ---

    def dataset(self) -> xr.Dataset:
        return self._record.dataset()

    def metrics(self) -> dict[str, Any]:
        """The smallest share of its volume that a tetrahedron came to."""
        return {"worst_volume_ratio": self._record.worst_ratio}

    def origin(self, live: Live, data: xr.Dataset) -> dict[str, Any]:
        return self._record.origin(live)


@timed("load")
def drive(
    problem: Drive = Drive(duration=1.0), *, progress: Progress | None = None
) -> Result:
    """Moves the servos until Ctrl-C, the end of its script or of `duration`.

    Returns:
        Skeleton, skin and commands over time, kind "skin.live".
    """
    part = LiveSkin(problem)
    with calm_threads():
        return run_live(problem, part, progress)
