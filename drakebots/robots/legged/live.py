"""Any model in the browser while it runs: driven by keys, or posed by hand.

    drakebots live mini_cheetah
    run = drive(Drive("mini_cheetah", script="commands.csv", headless=True))

A legged robot with motors stands at once under contact-implicit control, which solves
in a process of its own against the wall clock (:class:`RemoteReplanning`); its plant is
that of `drakebots mpc`. Nothing blocks the plant: on a slow machine the real-time
factor falls, and answers act as late as they come.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import field, replace
from functools import partial
from pathlib import Path
from typing import Annotated

import numpy as np
import xarray as xr
from pydrake.math import RigidTransform, RollPitchYaw

from drakebots.control import (
    CLOCKS,
    STEPS,
    Gait,
    Mpc,
    Orders,
    Push,
    RemoteReplanning,
    Replanning,
    SteeredMotion,
)
from drakebots.core.checks import non_negative, one_of
from drakebots.core.errors import DrakebotsWarning, InvalidInput
from drakebots.core.fields import checked
from drakebots.core.run import Progress, Stop, Verdict
from drakebots.core.stages import timed
from drakebots.formats import loaded, robot_alone
from drakebots.live import (
    Button,
    Live,
    Loop,
    Part,
    RobotPage,
    SimulatedPart,
    Slider,
    joint_slider,
    pose_by_hand,
    run_live,
    with_events,
)
from drakebots.model import Model, actuators_of, gravity, part_name
from drakebots.multibody import (
    Blocks,
    Finding,
    Flat,
    Slope,
    Stairs,
    Terrain,
    fell_at,
    has_fallen,
    judged,
    open_loops,
    tilt,
)
from drakebots.results import Result
from drakebots.robots.legged.control import (
    HORIZON_PERIOD,
    SIZE,
    SPEED,
    Control,
    Rigid,
    Run,
)
from drakebots.robots.legged.simulate import HeldRun, Simulation
from drakebots.view import ROOT, ForceArrows, draw_horizon

PUSH = 0.1
"""Duration of a push [s]."""

FAST, ASIDE, SPIN = 1.0, 0.5, 1.5
"""Largest speeds ahead and sideways [m/s] and turning rate [rad/s] of a robot of SIZE
or more; smaller ones take less, as in :class:`Control`."""

RISE = 0.3
"""Largest change of the base's height, as a share of that of the centre of mass."""

MOVES = ("ahead", "left", "turn", "height")
"""Names of the sliders that move it."""

PUSHES, CROSS = ("ahead", "left", "back", "right"), (13, 15, 14, 16)
"""Names of pushes, each a quarter of a turn further, and the buttons of a gamepad's
cross that make them."""

SOLVE = "solve"
"""Name of a meter."""

ROUGH, LADEN = 1.5, 0.5
"""Largest friction coefficient of the ground, where it is no larger itself, and largest
payload of the base, as a share of the robot's mass."""

UPHILL, RISER, TREAD = np.radians(8), 0.03, 0.25
"""Slope of the ground [rad], height of stairs and blocks and their depth [m], of a
robot of SIZE or more."""

JOINTS = ("posed", "servos", "passive")
"""What sliders of joints do."""


@checked("live")
class Drive(Live):
    """Any model: a legged one with motors is driven, another one is posed by hand."""

    model: str | Path | Model
    """The model: a name, a path, or a loaded model."""
    joints: Annotated[str | None, one_of("kind of joints", JOINTS)] = None
    """Sliders of its joints instead of control: posed (by hand, loops closed), servos
    (they set the targets of servos) or passive (none: it is left to itself)."""
    terrain: Terrain = field(default_factory=Flat)
    """The ground of a robot that is driven, which the controller knows."""
    friction: Annotated[float, non_negative()] = 0.7
    """Friction coefficient that the controller counts on."""
    plant: Rigid = Rigid()
    """The robot that is controlled, which the controller knows by its model only."""
    controller: Mpc = Mpc(period=1 / 120)
    """Its controller. With a delay it acts exactly so late, and a run without a page
    goes as fast as it can: such runs can be repeated. Servos hold the robot to plans
    that are old, on machines that solve slowly; gains do not."""


@timed("load")
def drive(problem: Drive, *, progress: Progress | None = None) -> Result:
    """Runs a model in real time until Ctrl-C, its script's end or `duration`.

    Returns:
        The record of what was reached, with all commands.

    Raises:
        UnknownName, ModelProblem: for a model that cannot be loaded.
        InvalidInput: for a port that is taken, and a bad script.
    """
    model = robot_alone(loaded(problem.model))
    problem = replace(problem, model=model)
    why = _uncontrolled(model)
    if why and not problem.joints:
        text = f"{model.name} {why}, so that its joints are posed by hand"
        warnings.warn(DrakebotsWarning(text), stacklevel=2)
    if (why or problem.joints) and problem.terrain != Flat():
        raise InvalidInput(
            f"terrain: {model.name} is not driven, and only robots that are driven "
            "have another ground than a flat one; leave --terrain out"
        )
    if problem.joints in ("servos", "passive"):
        return run_live(problem, Jointed(problem), progress)
    if why or problem.joints:
        return pose_by_hand(problem, model, progress=progress)
    run = Driven(problem)
    until = run.loop.until
    end = until if np.isfinite(until) else 0.0
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


class Jointed(SimulatedPart):
    """A model on the ground whose servos have sliders, or that is left to itself."""

    kind = "live.joints"

    def __init__(self, live: Drive):
        passive = live.joints == "passive"
        run = HeldRun(Simulation(live.model, friction=live.friction, passive=passive))
        super().__init__(run.simulator, run.robot, live)
        if passive:
            return
        self._targets = run.simulator.get_system().GetSubsystemByName("targets")
        own = {part_name(joint): k for k, joint in enumerate(run.stance.joints)}
        motors = actuators_of(run.robot.plant)
        names = [part_name(motor.joint()) for motor in motors]
        if not names:
            raise InvalidInput(
                f"{self.name} has no motors for servos; --actuate all adds them"
            )
        self.controls = [joint_slider(run.stance, own[name]) for name in names]

    def told(self) -> None:
        """Gives the servos their targets."""
        if self.controls:
            context = self._targets.GetMyMutableContextFromRoot(self.root)
            held = self._targets.get_mutable_source_value(context)
            for k, slider in enumerate(self.controls):
                held.SetAtIndex(k, self.panel.values[slider.name])


def steered(problem: Control) -> Replanning:
    """The controller of a steered run, without its plant's state."""
    return Steered(problem).controller


class Steered(Run):
    """A run whose controller takes orders."""

    def _reference(self, standing, *, gets_up: bool) -> SteeredMotion:
        self.clock = clock = np.sqrt(min(1.0, self.height / SIZE))
        size, legs = self.clock**2, len({foot.body for foot in self.model.feet})
        gaits = {name: Gait.named(name, legs, size) for name in STEPS}
        how = {n: getattr(self.problem.controller, n) for n in ("step", "knots")}
        how |= {"gaits": gaits, "pace": SPEED * clock, "terrain": self.problem.terrain}
        return SteeredMotion(self.own, standing, **how)


class Driven(Steered, Part):
    """A robot that is driven, its page, and the record of it."""

    kind = "legged.live"
    stage = "live"

    def __init__(self, drive: Drive):
        self._drive = drive
        self._lay(0)
        try:
            self._begin(drive)
        except BaseException:
            self.controller.stop()
            raise

    pushes: Sequence[Push] = ()

    def _lay(self, number: int) -> None:
        """The robot and its controller on one of the terrains."""
        drive, own, self._ground = self._drive, self._drive.controller, number
        given = {n: getattr(drive, n) for n in ("terrain", "friction", "plant")}
        given["controller"] = replace(own, delay=0.0)
        if number:
            given["terrain"] = self._grounds[number - 1]
        problem = Control(drive.model, **given)
        remote = RemoteReplanning(f"{__name__}:steered", problem, delay=own.delay)
        try:
            super().__init__(problem)
        except BaseException:
            remote.stop()
            raise
        remote.own, self.controller = self.controller, remote
        self.problem = replace(problem, controller=own)
        self._upright = self.plant.state()[0]

    def _begin(self, drive: Drive) -> None:
        """The page, the controls and the pace."""
        self.pushes: list[Push] = []
        self.falls: list[float] = []
        self._down = False
        self._done = 0
        self._mass = self.own.plant.CalcTotalMass(self.context)
        size = float(self.clock**2)
        rise, run = size * RISER, size * TREAD
        self._grounds = Slope(-UPHILL), Stairs(rise, run), Blocks(rise, run, run)
        self.weight = self._mass * gravity(self.own.plant)
        self.period, self.controls = self.plant.time_step, self._controls()
        self.meters = [Slider(SOLVE, 0, 50, 0, 0.1, "ms")]
        self.controller.orders = Orders()
        if not drive.headless:
            self._open(drive.port)
        self.loop = Loop(drive, self, freely=drive.controller.delay is not None)

    def pose(self) -> RigidTransform:
        """X_WB of the base, whose positions are then in the context of `own`."""
        self.own.plant.SetPositions(self.context, self.plant.state()[0])
        return self._body.EvalPoseInWorld(self.context)

    def _controls(self) -> list[Slider | Button]:
        clock, rise = float(self.clock), RISE * self.height
        own = self.ground(self.problem.plant.friction_error).friction

        def rate(name, most, unit, keys, stick):
            return Slider(name, -most, most, 0.0, most / 10, unit, keys, stick=stick)

        def push(key, name, quarters, pad):
            act = partial(self._push, quarters * np.pi / 2)
            return Button(f"push {name}", key, act, pad)

        return [
            rate("ahead", FAST * clock, "m/s", "SW", -2),
            rate("left", ASIDE * clock, "m/s", "DA", -1),
            rate("turn", SPIN / clock, "rad/s", "EQ", -3),
            rate("height", rise, "m", "CV", -4),
            Slider("gait", 0, 3, 1, 1, "stands, as needed, trots, crawls", "ZX"),
            Button("stop", "F", self._halt, 2),
            Slider("strength", 0, 1, 0.4, 0.05, "m/s of a push"),
            *map(push, "IJKL", PUSHES, range(4), CROSS),
            # The controller is told of neither.
            Slider("friction", 0, max(ROUGH, own), own, 0.05),
            Slider("payload", 0, LADEN * self._mass, unit="kg"),
            Slider("terrain", 0, 3, 0, 1, "given, slope, stairs, blocks at restart"),
        ]

    # --- what the controls do ---

    def _halt(self, _: float) -> None:
        for name in MOVES[:3]:
            self.panel.show(name, 0.0)

    def _push(self, angle: float, _: float) -> None:
        """A push from the robot's side, as a change of its velocity."""
        yaw = self.reference.axes.get("yaw")
        angle += 0.0 if yaw is None else self.plant.state()[0][yaw]
        values = self.panel.values
        force = (self._mass + values["payload"]) * values["strength"] / PUSH
        if force > 0:
            self.pushes.append(Push(force, self.now, PUSH, float(angle)))

    def told(self) -> None:
        values = self.panel.values
        gait = CLOCKS[round(values["gait"])]
        share = self.reference.shares.get(gait, 1.0)
        most = [(values[c.name], share * c.high) for c in self.controls[:3]]
        moves = [float(np.clip(value, -high, high)) for value, high in most]
        self.controller.orders = Orders(*moves, values["height"], gait)
        self.plant.set_friction(values["friction"])
        self.plant.set_payload(values["payload"])

    def restart(self) -> None:
        number = round(self.panel.values["terrain"])
        if number != self._ground:
            kept, log = self._samples_kept, self.controller.log
            self.controller.stop()
            self._lay(number)
            self._samples_kept, self.controller.log = kept, log
            if self.meshcat is not None:
                self.page.lay(self.problem.terrain)
        self.plant.start(self._upright, np.zeros(len(self.plant.state()[1])))
        self.controller.start(*self.plant.state())
        self._down = False
        self._halt(0.0)
        self.panel.say("")

    # --- the loop ---

    @property
    def now(self) -> float:
        """Simulated time [s]."""
        return self._done * self.plant.time_step

    def step(self, k: int) -> Stop | None:
        """One time step of the plant, or a while of a pause."""
        due = self.loop.turn(self.now)
        if due is not True:
            return due or None
        self._done += 1
        return super().step(self._done)

    def keep(self, time: float, *, last: bool) -> None:
        super().keep(time, last=last)
        X_WB = self.pose()
        tilted = tilt(RollPitchYaw(X_WB.rotation()).vector())
        x, y, z = X_WB.translation()
        high = (z - self.problem.terrain.heights(x, y)) / self._stood
        fallen = bool(has_fallen(tilted, high))
        if fallen and not self._down:
            self.falls.append(time)
            self.panel.say(f"fell at {time:.2f} s: R restarts")
        self._down = self._down or fallen

    # --- the page ---

    def _open(self, port: int | None) -> None:
        self.page = RobotPage(self.model, port, terrain=self.problem.terrain)
        scene, feet = self.page.scene, range(len(self.model.feet))
        self.meshcat, self._planned = scene.meshcat, -np.inf
        self._arrows = ForceArrows(scene, feet, self.weight, self.height)
        self.draw()
        self.page.look()

    def readings(self) -> dict[str, float]:
        """The processor time of the last solve."""
        seconds = self.controller.log.seconds
        return {SOLVE: 1e3 * seconds[-1]} if seconds else {}

    def draw(self) -> None:
        """The robot, the forces of the ground, and what was planned last."""
        self.pose()
        self.page.show(self.own, self.context)
        places = self.own.feet_positions(self.context)
        self._arrows.draw(self.plant.forces(), places)
        plan = self.controller.plan
        # Paths of base and feet take a tenth of a picture's time.
        if plan is not None and self.now >= self._planned + HORIZON_PERIOD:
            self._planned = self.now
            draw_horizon(self.page.scene, f"{ROOT}/horizon", self._paths(plan.q))

    # --- what came of it ---

    def dataset(self) -> xr.Dataset:
        """That of any controlled run, and the commands."""
        return with_events(super().dataset(), self.panel.events)

    def metrics(self, data: xr.Dataset) -> dict:
        """Figures of the run, with its falls and its real-time factor."""
        falls = self.falls
        return super().metrics(data) | {
            # Above the ground that was there at the time.
            "fell": bool(falls),
            "fell_at_s": falls[0] if falls else None,
            "falls": len(falls),
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
