"""The gecko in the browser: it walks to a target that is moved while it walks.

drive(Drive(headless=True, script="commands.csv"))

It walks by quasi-static poses. Its generator decides before each half cycle, so a
target or an obstacle that moved counts from the next one on.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Annotated, Any

import numpy as np
import xarray as xr

from drakebots.core.checks import one_of
from drakebots.core.convert import as_yaml
from drakebots.core.errors import InvalidInput, NoSolution
from drakebots.core.fields import checked
from drakebots.core.run import Progress, Stop, failed
from drakebots.core.stages import timed
from drakebots.live import Live, Part, Slider, run_live
from drakebots.results import Result, provenance
from drakebots.robots.gecko.engines import (
    Decision,
    PhaseTimes,
    Step,
    half_cycle,
    poses_dataset,
)
from drakebots.robots.gecko.model import LIMBS, MODEL, Calibration, fixation, parameters
from drakebots.robots.gecko.playback import between_half_cycles
from drakebots.robots.gecko.simulate import (
    MOTIONS,
    Course,
    Simulation,
    prepare,
    with_course,
)
from drakebots.robots.gecko.view import CAMERA, COURSE, Body, draw_course, draw_grid
from drakebots.view import make_stage

REACH = 1.0
"""Targets and obstacles are at most so far from the start, along x and y [m]."""


@checked("live", kw_only=True)
class Drive(Live):
    """A gecko on its way to a target that moves."""

    motion: Annotated[str, one_of("motion model", MOTIONS)] = "table 3"
    """Motion model of its generator; "fit" takes a while to be made."""


class Walking(Part):
    """The walk of a live gecko."""

    kind, name, period, done = "gecko.live", MODEL, 1 / 40, "walked"

    def __init__(self, live: Drive):
        self._problem = Simulation(targets=((0.3, 0.3),), motion=live.motion)
        self._epsilon, self._robot = self._problem.epsilon, self._problem.robot
        self._start = self._pose = self._shown = self._problem.start_pose()
        self._steps: list[Step] = []
        self._decisions: list[Decision] = []
        self._course: Course | None = prepare(self._problem)
        self._said = ""
        self._begun, self._held, self._stale = None, np.ones(4, bool), True
        x, y = self._problem.targets[0]
        self.controls = [
            Slider("target x", -REACH, REACH, x, unit="m", keys="AD"),
            Slider("target y", -REACH, REACH, y, unit="m", keys="SW"),
            Slider("obstacle x", -REACH, REACH, -0.3, unit="m"),
            Slider("obstacle y", -REACH, REACH, 0.6, unit="m"),
            Slider("obstacle size", 0, REACH / 2, 0.0, unit="m"),
        ]
        self._curve = Calibration()
        most = 1e-3 * self._curve.limit
        self.meters = [
            Slider(f"pressure {limb}", -most, most, 0.0, unit="kPa") for limb in LIMBS
        ]
        if not live.headless:
            corner = np.array([REACH, REACH, 0.04])
            low = -corner * [1, 1, 0]
            stage = make_stage(low, corner, ground_height=0.0, port=live.port)
            self.meshcat = stage.meshcat
            draw_grid(self.meshcat, stage.low, stage.high)
            self._body = Body(self.meshcat, self._start, None)
            stage.look_at_box(stage.low / 2, stage.high / 2, CAMERA)

    # --- where it goes ---

    def told(self) -> None:
        self._stale = True

    def _aim(self) -> None:
        """Plans the course from where it is; says so where there is none."""
        value, self._stale = self.panel.values, False
        middle = np.array([value["obstacle x"], value["obstacle y"]])
        half = value["obstacle size"] / 2
        corners = half * np.array([[-1, -1], [1, -1], [1, 1], [-1, 1]])
        self._problem = replace(
            self._problem,
            targets=((value["target x"], value["target y"]),),
            obstacles=(tuple(map(tuple, middle + corners)),) if half > 0 else (),
            start=tuple(self._pose.position),
            heading=float(self._pose.heading),
        )
        self._course, self._said = None, ""
        try:
            self._course = prepare(self._problem)
        except (InvalidInput, NoSolution) as error:
            self._said = str(error)
        self.panel.say(self._said)
        self._draw_course()

    def advance(self, time: float) -> Stop | None:
        half = PhaseTimes().half_cycle
        if self._begun is not None and time < self._begun + half - 1e-9:
            share = (time - self._begun) / half
            ends = self._pose, self._steps[-1].pose
            self._shown, self._held = between_half_cycles(*ends, self._feet, share)
            return None
        if self._begun is not None:
            self._pose = self._shown = self._steps[-1].pose
            self._begun = None
            self._draw_course()
        if self._stale:
            self._aim()
        return self._begin(time)

    def _begin(self, time: float) -> Stop | None:
        """Begins a half cycle, where there is somewhere to go."""
        self._held, pose, decision = np.ones(4, bool), self._pose, None
        if self._course is not None:
            decision = self._course.generator.decide(pose.position, pose.heading)
        if decision is None:
            return None
        sign = -1 if len(self._steps) % 2 else 1
        try:
            step = half_cycle(self._robot, pose, sign * decision.q1, decision.q2)
        except NoSolution as error:
            return failed(str(error))
        self._steps.append(step)
        self._decisions.append(decision)
        self._feet, self._begun = fixation(sign), time
        return None

    def restart(self) -> None:
        # The record is that of the last walk.
        self._steps.clear()
        self._decisions.clear()
        self._pose = self._shown = self._start
        self._begun, self._stale = None, True

    # --- what is seen ---

    def draw(self) -> None:
        self._body.show(self._shown, None, self._held)

    def _draw_course(self) -> None:
        if self.meshcat is None:
            return
        for part in ("obstacle", "planned", "waypoint", "path", "target"):
            self.meshcat.Delete(f"{COURSE}/{part}")
        poses = [self._start, *(step.pose for step in self._steps)]
        data = with_course(xr.Dataset(), self._problem, self._course)
        walked = np.array([pose.position for pose in poses])
        draw_course(self.meshcat, data, self._epsilon, walked)

    def readings(self) -> Mapping[str, float]:
        """The pressures that its limbs' angles need."""
        values = 1e-3 * self._curve.pressure(self._shown.alpha)
        return {meter.name: value for meter, value in zip(self.meters, values)}

    # --- what came of it ---

    @property
    def _walked(self) -> int:
        """Number of half cycles that have ended."""
        return len(self._steps) - (self._begun is not None)

    def dataset(self) -> xr.Dataset:
        walked = self._steps[: self._walked], self._decisions[: self._walked]
        data = poses_dataset(self._robot, self._start, *walked)
        return with_course(data, self._problem, self._course)

    def metrics(self) -> dict[str, Any]:
        """The half cycles, and how far it is from its target."""
        left = np.linalg.norm(self._pose.position - self._problem.targets[-1])
        return {
            "half_cycles": self._walked,
            "final_distance_cm": 100 * float(left),
            "epsilon_cm": 100 * self._epsilon,
            "blocked": self._said,
        }

    def origin(self, live: Live, data: xr.Dataset) -> dict[str, Any]:
        drift = max((step.drift for step in self._steps), default=0.0)
        made = provenance(parameters().path, as_yaml(live))
        return {"residuals": {"drift of a fixed foot [m]": drift}, "provenance": made}


@timed("load")
def drive(
    problem: Drive = Drive(duration=10.0), *, progress: Progress | None = None
) -> Result:
    """Walks until Ctrl-C, the end of its script or of `duration`.

    Returns:
        The poses after each half cycle since the last restart, and all commands, kind
        "gecko.live". `time` counts half cycles, `command_time` also the time at which
        the gecko stood.
    """
    return run_live(problem, Walking(problem), progress)
