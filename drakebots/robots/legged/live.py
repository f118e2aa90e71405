"""Any model in the browser while it runs: driven by keys, or posed by hand.

    drakebots live mini_cheetah
    run = drive(Drive("mini_cheetah", script="commands.csv", headless=True))

A legged robot with motors stands at once under contact-implicit control, which solves
in a process of its own against the wall clock (:class:`RemoteReplanning`); its plant is
that of `drakebots mpc`. Nothing blocks the plant: on a slow machine the real-time
factor falls, and answers act as late as they come.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Annotated

import numpy as np
import xarray as xr
from pydrake.geometry import Cylinder, Rgba
from pydrake.math import RigidTransform, RollPitchYaw, RotationMatrix

from drakebots.control import (
    CLOCKS,
    Mpc,
    Orders,
    Push,
    RemoteReplanning,
    Replanning,
    SteeredMotion,
    Trot,
)
from drakebots.core.checks import non_negative
from drakebots.core.errors import DrakebotsWarning
from drakebots.core.fields import checked
from drakebots.core.run import Progress, Stop, Verdict
from drakebots.core.stages import timed
from drakebots.formats import load, robot_alone
from drakebots.live import (
    Button,
    Live,
    Pace,
    Panel,
    Slider,
    pose_by_hand,
    with_events,
)
from drakebots.model import Model, free_bodies, gravity
from drakebots.multibody import (
    Finding,
    base_body,
    fell_at,
    has_fallen,
    judged,
    open_loops,
    tilt,
)
from drakebots.results import Result
from drakebots.robots.legged.control import SIZE, SPEED, Control, Rigid, Run
from drakebots.view import ROOT, draw_ground_lines, look_at_motion, make_scene

PICTURE = 1 / 40
"""Time between two pictures [s]."""

LOOK = 5e-3
"""Time between two looks at the page's controls [s]."""

READING = 0.5
"""Time between two readings of the meters [s]."""

PUSH = 0.1
"""Duration of a push [s]."""

FAST, ASIDE, SPIN = 1.0, 0.5, 1.5
"""Largest speeds ahead and sideways [m/s] and turning rate [rad/s] of a robot of SIZE
or more; smaller ones take less, as in :class:`Control`."""

RISE = 0.3
"""Largest change of the base's height, as a share of that of the centre of mass."""

MOVES = ("ahead", "left", "turn", "height")
"""Names of the sliders that move it."""

FACTOR, SOLVE = "real-time factor", "solve"
"""Names of the meters: sliders that the run sets."""

_FORCE = Rgba(0.85, 0.35, 0.10, 1)


@checked("live")
class Drive(Live):
    """Any model: a legged one with motors is driven, another one is posed by hand."""

    model: str | Path | Model
    """The model: a name, a path, or a loaded model."""
    joints: bool = False
    """Whether to pose its joints by hand, without control."""
    friction: Annotated[float, non_negative()] = 0.7
    """Friction coefficient that the controller counts on."""
    plant: Rigid = Rigid()
    """The robot that is controlled, which the controller knows by its model only."""
    controller: Mpc = Mpc(period=1 / 120)
    """Its controller. With a delay it acts exactly so late, and a run without a page
    goes as fast as it can: such runs can be repeated."""


@timed("load")
def drive(problem: Drive, *, progress: Progress | None = None) -> Result:
    """Runs a model in real time until Ctrl-C, its script's end or `duration`.

    Returns:
        The record of what was reached, with all commands.

    Raises:
        UnknownName, ModelProblem: for a model that cannot be loaded.
        InvalidInput: for a port that is taken, and a bad script.
    """
    model = problem.model
    model = robot_alone(model if isinstance(model, Model) else load(model))
    problem = replace(problem, model=model)
    why = _uncontrolled(model)
    if why and not problem.joints:
        text = f"{model.name} {why}, so that its joints are posed by hand"
        warnings.warn(DrakebotsWarning(text), stacklevel=2)
    if why or problem.joints:
        return pose_by_hand(problem, model, progress=progress)
    run = Driven(problem)
    end = run.until if np.isfinite(run.until) else 0.0
    told = progress and (lambda stage, *_: progress(stage, run.now, end))
    try:
        return run.simulate(told, duration=1e9)
    finally:
        run.controller.stop()


def _uncontrolled(model: Model) -> str:
    """Why a model cannot be controlled; "" where it can."""
    if not model.feet:
        return "has no feet to stand on (--feet names them)"
    return "" if model.summary.actuators else "has no motors (--actuate all adds them)"


def steered(problem: Control) -> Replanning:
    """The controller of a steered run, without its plant's state."""
    return Steered(problem).controller


class Steered(Run):
    """A run whose controller takes orders."""

    def _reference(self, standing, *, gets_up: bool) -> SteeredMotion:
        self.clock = clock = np.sqrt(min(1.0, self.height / SIZE))
        gait = Trot()
        return SteeredMotion(
            self.own,
            standing,
            step=self.problem.controller.step,
            knots=self.problem.controller.knots,
            gait=Trot(clock * gait.period, gait.duty, clock**2 * gait.clearance),
            pace=SPEED * clock,
        )


class Driven(Steered):
    """A robot that is driven, its page, and the record of it."""

    kind = "legged.live"
    stage = "live"

    def __init__(self, drive: Drive):
        own = drive.controller
        given = {"friction": drive.friction, "plant": drive.plant}
        given["controller"] = replace(own, delay=0.0)
        problem = Control(drive.model, **given)
        remote = RemoteReplanning(f"{__name__}:steered", problem, delay=own.delay)
        try:
            super().__init__(problem)
            remote.own, self.controller = self.controller, remote
            self._begin(drive)
        except BaseException:
            remote.stop()
            raise

    pushes: Sequence[Push] = ()

    def _begin(self, drive: Drive) -> None:
        """The page, the controls and the pace."""
        self.pushes: list[Push] = []
        self.falls: list[float] = []
        self._down = False
        self._upright, self._done = self.plant.state()[0], 0
        self._mass = self.own.plant.CalcTotalMass(self.context)
        self.weight = self._mass * gravity(self.own.plant)
        events, at_once = drive.events(), drive.controller.delay is not None
        self.until = drive.end(events)
        self.page = None if drive.headless else _Page(self, drive.port)
        self.panel = Panel(self._controls(), self.page and self.page.meshcat, events)
        self.pace = Pace(np.inf if drive.headless and at_once else 1.0)
        self.controller.orders = Orders()
        if self.page is not None:
            drive.announce(self.page.scene)

    def pose(self) -> RigidTransform:
        """X_WB of the base, whose positions are then in the context of `own`."""
        plant = self.own.plant
        plant.SetPositions(self.context, self.plant.state()[0])
        return plant.EvalBodyPoseInWorld(self.context, base_body(plant))

    def _controls(self) -> list[Slider | Button]:
        clock, rise = float(self.clock), RISE * self.height

        def rate(name, most, unit, keys):
            return Slider(name, -most, most, 0.0, most / 10, unit, keys)

        def push(key, name, quarters):
            act = partial(self._push, quarters * np.pi / 2)
            return Button(f"push {name}", key, act)

        return [
            rate("ahead", FAST * clock, "m/s", "SW"),
            rate("left", ASIDE * clock, "m/s", "DA"),
            rate("turn", SPIN / clock, "rad/s", "EQ"),
            rate("height", rise, "m", "CV"),
            Slider("gait", 0, 2, 1, 1, "0 stands, 1 as needed, 2 trots", "ZX"),
            Button("stop", "F", self._halt),
            Slider("strength", 0, 1, 0.4, 0.05, "m/s of a push"),
            *map(push, "IJKL", ("ahead", "left", "back", "right"), range(4)),
            Slider("pace", 0.05, 1, 1, 0.05, "", ["Comma", "Period"], self._slow),
            Button("pause", ["Space"], self._pause),
            Button("restart", "R", self._restart),
            Slider(FACTOR, 0, 2, 0, 0.01),
            Slider(SOLVE, 0, 50, 0, 0.1, "ms"),
        ]

    # --- what the controls do ---

    def _halt(self, _: float) -> None:
        for name in MOVES[:3]:
            self.panel.show(name, 0.0)

    def _push(self, angle: float, _: float) -> None:
        """A push from the robot's side, as a change of its velocity."""
        yaw = self.reference.axes.get("yaw")
        angle += 0.0 if yaw is None else self.plant.state()[0][yaw]
        force = self._mass * self.panel.values["strength"] / PUSH
        if force > 0:
            self.pushes.append(Push(force, self.now, PUSH, float(angle)))

    def _slow(self, pace: float) -> None:
        if np.isfinite(self.pace.speed):
            self.pace.speed = pace

    def _pause(self, _: float) -> None:
        self.pace.paused = not self.pace.paused

    def _restart(self, _: float) -> None:
        self.plant.start(self._upright, np.zeros(len(self.plant.state()[1])))
        self.controller.start(*self.plant.state())
        self._down = False
        self._halt(0.0)
        if self.page is not None:
            self.page.say("")

    # --- the loop ---

    @property
    def now(self) -> float:
        """Simulated time [s]."""
        return self._done * self.plant.time_step

    def step(self, k: int) -> Stop | None:
        """One time step of the plant, or a while of a pause."""
        if self.page is None or self.page.looks:
            self._look()
        if self.pace.paused:
            time.sleep(LOOK)
            return None
        self.pace.wait(self.now)
        if self.now >= self.until - 1e-9:
            return Stop(Verdict.SUCCESS, f"driven for {self.now:g} s")
        self._done += 1
        return super().step(self._done)

    def _look(self) -> None:
        if self.panel.poll(self.now):
            moves = (self.panel.values[name] for name in MOVES)
            gait = CLOCKS[round(self.panel.values["gait"])]
            self.controller.orders = Orders(*moves, gait=gait)
        if self.page is not None:
            self.page.draw(self)

    def keep(self, time: float, *, last: bool) -> None:
        super().keep(time, last=last)
        X_WB = self.pose()
        tilted = tilt(RollPitchYaw(X_WB.rotation()).vector())
        fallen = bool(has_fallen(tilted, X_WB.translation()[2] / self._stood))
        if fallen and not self._down:
            self.falls.append(time)
            if self.page is not None:
                self.page.say(f"fell at {time:.2f} s: R restarts")
        self._down = self._down or fallen

    # --- what came of it ---

    def dataset(self) -> xr.Dataset:
        """That of any controlled run, and the commands."""
        return with_events(super().dataset(), self.panel.events)

    def metrics(self, data: xr.Dataset) -> dict:
        """Figures of the run, with its falls and its real-time factor."""
        return super().metrics(data) | {
            "falls": len(self.falls),
            "commands": len(self.panel.events),
            "real_time_factor": self.now / self.end.wall,
        }

    def findings(self, data: xr.Dataset, figures: dict) -> list[Finding]:
        """Findings of the verdict: it ends on its feet."""
        fell = fell_at(self.falls[-1] if self._down else None)
        return [*open_loops(data, self.height), fell]

    def verdict(self, figures: dict, findings: list[Finding]) -> tuple[Verdict, str]:
        """The verdict, and one line on what happened."""
        verdict, message = judged(self.end, findings, self.end.message)
        speed = f"real-time factor {figures['real_time_factor']:.2f}"
        return verdict, f"{message}; {speed}; {len(self.falls)} falls"


class _Page:
    """The page of a run: the robot, followed by the view, and its contact forces.

    Attributes:
        meshcat: its server.
    """

    def __init__(self, run: Driven, port: int | None):
        self.scene = scene = make_scene(run.model, ground_height=0.0, port=port)
        self.meshcat, self._said = scene.meshcat, ""
        self._looked = self._drawn = self._read = 0.0
        wide = np.outer([-6, 6], scene.reach * np.array([1, 1, 0]))
        around = xr.Dataset({"base_position": (("time", "axis"), wide)})
        self._lines, self._spacing = draw_ground_lines(scene, around)
        for k in range(len(run.model.feet)):
            bar = Cylinder(0.02 * scene.reach, 1.0)
            self.meshcat.SetObject(f"{ROOT}/force/{k}", bar, _FORCE)
        self._place(run)
        context = scene.plant.GetMyContextFromRoot(scene.context)
        look_at_motion(scene, scene.plant.GetPositions(context)[None])

    @property
    def looks(self) -> bool:
        """Whether it is time to look at the controls."""
        return time.perf_counter() > self._looked + LOOK

    def say(self, text: str) -> None:
        """Says something on a button of the page; "" says nothing any more."""
        if self._said:
            self.meshcat.DeleteButton(self._said)
        self._said = text
        if text:
            self.meshcat.AddButton(text)

    def draw(self, run: Driven) -> None:
        """Shows how it is now, where a picture or a reading of the meters is due."""
        self._looked = wall = time.perf_counter()
        if wall > self._drawn + PICTURE:
            self._drawn = wall
            self._place(run)
        if wall > self._read + READING:
            self._read = wall
            shown = {FACTOR: run.pace.factor}
            if run.controller.log.seconds:
                shown[SOLVE] = 1e3 * run.controller.log.seconds[-1]
            for name, value in shown.items():
                if np.isfinite(value):
                    run.panel.show(name, float(value))

    def _place(self, run: Driven) -> None:
        """The robot, its forces and the ground about it."""
        scene, X_WB, own = self.scene, run.pose(), run.own
        plant = scene.plant
        context = plant.GetMyMutableContextFromRoot(scene.context)
        names = own.plant.GetPositionNames(always_add_suffix=False)
        joints = dict(zip(names, own.plant.GetPositions(run.context)))
        wanted = plant.GetPositionNames(always_add_suffix=False)
        plant.SetPositions(context, [joints.get(name, 0.0) for name in wanted])
        if run.base == "euler":
            base = plant.get_body(free_bodies(plant)[0].index())
            plant.SetFloatingBaseBodyPoseInWorldFrame(context, base, X_WB)
        scene.diagram.ForcedPublish(scene.context)
        places = own.feet_positions(run.context)
        for k, (force, foot) in enumerate(zip(run.plant.forces(), places)):
            bar, length = np.eye(4), run.height * np.linalg.norm(force) / run.weight
            if length > 1e-3 * run.height:
                R = RotationMatrix.MakeFromOneVector(force, 2).matrix()
                bar[:3, :3] = R * [1.0, 1.0, length]
            else:
                bar[:3, :3] *= 1e-6
            bar[:3, 3] = foot + bar[:3, 2] / 2
            self.meshcat.SetTransform(f"{ROOT}/force/{k}", bar)
        x, y, _ = X_WB.translation()
        scene.follow(x, y)
        near = self._spacing * np.round(np.array([x, y]) / self._spacing)
        self.meshcat.SetTransform(self._lines, RigidTransform([*near, 0.0]))
