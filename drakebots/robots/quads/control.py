"""Contact-implicit control of a robot through its skin.

    run = control(Control("monster", pushes=(Push(20.0, time=1.0),)))
    alone = control(problem, replay=run)       # its servo targets again, open loop

            q, v ┌─────────────────────┐ efforts u ┌────────┐ angles ┌─────────────────┐
        ┌───────▶│ contact-implicit    │──────────▶│ servos │───────▶│ skeleton, skin, │
        │        │ control of a rigid  │           └────────┘        │ compliant ground│
        │        │ robot with springs  │                             └────────┬────────┘
        └────────┴─────────────────────┴──────────────────────────────────────┘

The controller plans with the rigid robot of :mod:`.nominal`; the plant is the skinned
robot, with all tetrahedra or with a reduced skin, and the loop that of rigid robots
(:mod:`drakebots.control`). Measured are the skeleton's q and v,
not the skin. A solve begins every period and takes effect as late as it took, unless a
delay is given; periods that it passes over are counted. In every time step the servos
get angles by which they apply u,

    q_d = q + (u + d v)/k

with their own gains k and d, within their limits.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Annotated

import casadi as ca
import numpy as np
import xarray as xr

from drakebots.control import (
    Command,
    ControlRun,
    Gait,
    Law,
    Mpc,
    MpcPlan,
    MpcProblem,
    MpcSolver,
    Push,
    ReferenceMotion,
    Replanning,
    course_findings,
    default_cost,
    run_figures,
    with_solves,
)
from drakebots.control import standing as hold
from drakebots.core.checks import finite, non_negative, one_of, positive
from drakebots.core.errors import InvalidInput
from drakebots.core.fields import checked
from drakebots.core.run import Progress, Verdict
from drakebots.core.stages import timed
from drakebots.core.threads import calm_threads
from drakebots.model import gravity
from drakebots.multibody import (
    Finding,
    Flat,
    Robot,
    Step,
    Terrain,
    fall,
    judged,
    saturated,
    tilt,
    tilted,
)
from drakebots.results import Result
from drakebots.robots.quads.plant import (
    SkinnedPlant,
    nominal_robot,
    standing,
)
from drakebots.robots.quads.robot import RPY, PlannedRobot, load_planned
from drakebots.skin import COLLISIONS, SkinRecord, skin_collisions
from drakebots.skin.coupled import PatchContact
from drakebots.skin.file import SkinnedRobot
from drakebots.skin.reduced import ReducedSkin, reduced_stepper, trained_once

TRAINING = {"amplitude": 0.25, "seeds": (2, 3), "steps": 200}
"""Training of the reduced skin. With an amplitude of 0.35 rad a fold of the monster
turns inside out.
"""

EFFORT = 0.1
"""Weight of efforts, over the square of the servos' limit [1/s]. Less of it leaves the
forces between eight points on the ground undecided, and the torques tremble."""

SLIP, FRICTION = 0.03, 0.7
"""Speed below which friction is regularised [sqrt(g l)]; share of the friction that is
used."""

FIRST = 20
"""Parts in which the first plan goes over from standing to the reference."""

SKINS = ("reduced", "full")
"""Skins of the robot that is controlled: the reduced one, or all tetrahedra."""

INTERVAL, PERIOD = 0.05, 0.02
"""Interval of the horizon, and time between two solves [s]."""


@checked("box")
class Box:
    """A box that lies across the path; no controller knows of it."""

    height: Annotated[float, positive("m")]
    """Height."""
    at: Annotated[float, finite("m")] = 0.25
    """Its start, from the middle of the feet at the start."""
    length: Annotated[float, positive("m")] = 0.25
    """Length along the path."""


@checked("plant")
class Skinned:
    """The robot that is controlled: skeleton and skin on compliant ground."""

    skin: Annotated[str, one_of("skin", SKINS)] = "reduced"
    """Skin: reduced, or full (all tetrahedra)."""
    time_step: Annotated[float, positive("s")] = 5e-3
    """Time step; servo targets are set as often."""
    skin_period: Annotated[float, positive("s")] = 0.1
    """Period of the stored shapes of the skin."""
    collisions: Annotated[str, one_of("kind of collisions", COLLISIONS)] = "none"
    """What the skin collides with besides the ground, as in a simulation."""


@checked()
class Control:
    """A robot in its skin that trots under feedback, pushed and on uneven ground.

    Raises:
        InvalidInput: for a value out of range.
    """

    model: str | Path = "monster"
    """The robot: a name, or the path of a skeleton with a `.skin.yaml`."""
    speed: Annotated[float, non_negative("m/s")] = 0.2
    """Speed of the trot along +x."""
    gait: Gait = Gait(0.5, 0.6, 0.035)
    """Clock of the feet."""
    pushes: tuple[Push, ...] = ()
    """Forces on the skin of the trunk; no controller knows of them."""
    terrain: Terrain = field(default_factory=Flat)
    """The ground, which the controller knows."""
    box: Box | None = None
    """A box across the path that nobody knows of."""
    friction: Annotated[float, positive()] = 0.8
    """Friction coefficient of the ground."""
    plant: Skinned = Skinned()
    """The robot that is controlled."""
    controller: Mpc = Mpc(INTERVAL, period=PERIOD)
    """Its controller, which acts through the robot's own servos."""
    duration: Annotated[float, positive("s")] = 3.0
    """Duration of the run."""
    log_period: Annotated[float, positive("s")] = 0.02
    """Period of the stored samples."""
    time_limit: Annotated[float | None, positive("s")] = None
    """Limit of the wall time; what was reached is kept."""

    def __post_init__(self):
        self.terrain.distance(ca.SX.sym("p", 3))  # which Mesh refuses
        if self.controller.feedback == "servos":
            raise InvalidInput(
                "controller: feedback must be gains in a skin, for its servos are the "
                "robot's own; leave it out"
            )
        if self.controller.step is None:
            own = replace(self.controller, step=INTERVAL)
            object.__setattr__(self, "controller", own)

    @property
    def ground(self) -> Terrain:
        """The ground with the box."""
        if self.box is None:
            return self.terrain
        start, end = self.box.at, self.box.at + self.box.length
        return BoxOn(self.terrain, Step(start, end, self.box.height))


# --- the ground -------------------------------------------------------------


@dataclass(frozen=True)
class BoxOn(Terrain):
    """A box across the path, on any ground.

    Attributes:
        ground: terrain that it lies on.
        box: the box on a floor z = 0, turned with the ground under its middle.
    """

    ground: Terrain
    box: Step

    def distance(self, p: ca.SX) -> ca.SX:
        # The box in the frame of the ground, whose height there is its distance.
        _, t1, t2 = self.ground.frame(p)
        local = ca.vertcat(ca.dot(t1, p), ca.dot(t2, p), self.ground.distance(p))
        return self.box.distance(local)

    def scaled(self, length_unit: float) -> BoxOn:
        return BoxOn(self.ground.scaled(length_unit), self.box.scaled(length_unit))


# --- robot and controller -----------------------------------------------------

EVENTS = ("pushes", "box", "plant", "duration", "log_period", "time_limit")
"""Fields of a problem that its controller does not depend on."""


@dataclass(frozen=True)
class Built:
    """A robot and its controller, for runs with different :data:`EVENTS`.

    It is made by :func:`build`.

    Attributes:
        problem: its problem.
        robot: the robot with its skin.
        nominal: the rigid robot that the controller plans with.
        home: its standing pose (nv,).
        reference: reference of the controller.
        posed: problem of the controller.
        solver: the controller.
    """

    problem: Control
    robot: PlannedRobot
    nominal: Robot
    home: np.ndarray
    reference: ReferenceMotion
    posed: MpcProblem
    solver: MpcSolver

    @cached_property
    def skin(self) -> ReducedSkin:
        """The reduced skin of the plant; trained once on a machine."""
        return trained_once(self.robot.skinned, TRAINING)


def build(problem: Control) -> Built:
    """Loads a robot and makes its controller.

    Raises:
        UnknownName, ModelProblem, InvalidInput, NoSolution: as :func:`control`.
    """
    robot = load_planned(problem.model)
    quad, nominal = robot.quad, nominal_robot(robot)
    if passive := set(quad.coordinates[6:]) - set(quad.joints):
        raise InvalidInput(
            f"{robot.name}: joint {min(passive)!r} has no servo; control needs one at "
            "every joint"
        )
    speed, gait, terrain = problem.speed, problem.gait, problem.terrain
    home = standing(nominal, quad.rest, terrain, speed * gait.period * gait.duty)
    height, controller = quad.rest_com(robot.link_skin)[2], problem.controller
    horizon = {"step": controller.step, "knots": controller.knots}
    course = {"speed": speed, "gait": gait, "terrain": terrain}
    reference = ReferenceMotion(nominal, home, **horizon, **course)
    cost = default_cost(nominal, reference, height, EFFORT / quad.torque_limits**2)
    slip = SLIP * np.sqrt(gravity(nominal.plant) * height)
    ground = {"terrain": terrain, "friction": FRICTION * problem.friction, "slip": slip}
    posed = controller.problem(nominal, cost=cost, **ground)
    return Built(problem, robot, nominal, home, reference, posed, MpcSolver(posed))


def first_plan(
    solver: MpcSolver, reference: ReferenceMotion, q: np.ndarray, v: np.ndarray
) -> MpcPlan:
    """A plan at time 0, the better of two: one that starts from nothing, and one of
    standing that by and by becomes the reference. Each may be a poor minimum.
    """
    other = solver.solve(q, v, reference)
    plan = solver.solve(q, v, hold)
    for share in np.linspace(0, 1, FIRST + 1)[1:]:

        def part(t, q, v, share=share):
            to, rates = reference(t, q, v)
            return q + share * (to - q), share * rates

        plan = solver.solve(q, v, part, warm=plan)
    return min(plan, other, key=lambda one: one.cost)


# --- a run ----------------------------------------------------------------


@timed("load")
def control(
    problem: Control,
    *,
    replay: Result | None = None,
    built: Built | None = None,
    progress: Progress | None = None,
) -> Result:
    """Simulates a skinned robot under control; returns what was reached if cut short.

    Args:
        problem: control problem.
        replay: a run whose servo targets are played, open loop, instead of control.
        built: of :func:`build`, for many runs that differ in :data:`EVENTS` only.
        progress: called as progress("control", time, duration) [s].

    Returns:
        A result of kind "quads.control" with the variables of
        :func:`~drakebots.skin.simulate.simulate_skinned`; also command (step, joint),
        the servo targets [rad], base_position (time, 3) [m] and base_rpy (time, 3)
        [rad], and by solve solve_time, solve_seconds and solve_ok. It failed if the
        robot fell, or made less than half of the distance that its speed asks for.

    Raises:
        UnknownName, ModelProblem: for a model that cannot be loaded.
        InvalidInput: for a robot without servos at its joints, a period that is no
            multiple of the time step, or a replay or what was built of another robot.
        NoSolution: for ground that it cannot stand on, before the run.
    """
    built = build(problem) if built is None else built
    calm = {name: getattr(problem, name) for name in EVENTS}
    if replace(built.problem, **calm) != problem:
        raise InvalidInput(
            "control: what was built is for another robot, ground, gait or controller; "
            f"runs of it may differ in {', '.join(EVENTS)}"
        )
    with calm_threads():
        success = f"reached {problem.duration:g} s on its feet"
        return _Run(problem, built, replay).simulate(progress, success=success)


class _Run(ControlRun):
    """A run in progress."""

    kind, stage = "quads.control", "control"

    def __init__(self, problem: Control, built: Built, replay: Result | None):
        self.problem, self.built, self.robot = problem, built, built.robot
        skinned, self.home = built.robot.skinned, built.home
        dt = problem.plant.time_step
        periods = {"period": problem.controller.period}
        for name, period in (periods | {"log_period": problem.log_period}).items():
            count = round(period / dt)
            if count < 1 or abs(count * dt - period) > 1e-9:
                raise InvalidInput(
                    f"{name} {period:g} s is no multiple of the time step, {dt:g} s"
                )
        if replay is None:
            self.controller = Replanning(
                built.posed, built.reference, solver=built.solver, first=first_plan
            )
        else:
            targets = _targets(replay, skinned)

            def play(time, q, v):
                k = min(round(time / dt), len(targets) - 1)
                return Command(np.zeros(len(q) - 6), targets[k])

            self.controller = Law("replay", play)
        stepper = self._stepper(dt)
        begins = stepper.start(built.robot.coordinates.positions(self.home)[0])
        self.plant = SkinnedPlant(
            built.robot, stepper, begins, self.home[6:], self._stepper
        )
        self.base: list[np.ndarray] = []
        self.record = SkinRecord(
            skinned, self.plant.stepper, problem.plant.skin_period, problem.log_period
        )

    def _stepper(self, dt: float):
        problem, skinned = self.problem, self.robot.skinned
        options = {
            "patches": skinned.skin.patches,
            "patch_contact": PatchContact(problem.friction, terrain=problem.ground),
            "collisions": skin_collisions(skinned, problem.plant.collisions),
        }
        if problem.plant.skin == "full":
            return skinned.stepper(dt, threads=1, **options)
        return reduced_stepper(skinned, self.built.skin, dt, **options)

    def keep(self, time: float, *, last: bool) -> None:
        self.base.append(self.plant.state()[0][:6])
        self.plant.add_to(self.record, last)

    def fall(self, time: float) -> str:
        q = self.plant.state()[0]
        height = q[2] - float(self.problem.terrain.heights(q[0], q[1]))
        return fall(float(tilt(q[RPY], self.home[RPY])), height / self.home[2])

    # --- what came of it ---

    def dataset(self) -> xr.Dataset:
        """The record, the base's path, the servos' targets and the solves."""
        data, base = self.record.dataset(), np.array(self.base)
        data["base_position"] = (("time", "axis"), base[:, :3], {"units": "m"})
        data["base_rpy"] = (("time", "angle"), base[:, [5, 4, 3]], {"units": "rad"})
        sent = np.array(self.plant.sent)
        data["command"] = (("step", "joint"), sent, {"units": "rad"})
        data = data.assign_coords(angle=["roll", "pitch", "yaw"])
        return with_solves(data, self.controller.log)

    def metrics(self, data: xr.Dataset) -> dict:
        """Figures of the run."""
        base, problem, fell = np.array(self.base), self.problem, self.fell
        off = np.degrees(np.abs(base[:, 4:6] - self.home[4:6])).max(axis=0)
        figures = run_figures(data, self.controller, problem.pushes)
        of_skin = self.record.figures()
        return figures | {
            "plant": problem.plant.skin,
            "fell": fell is not None,
            "fell_at_s": None if fell is None else fell[0],
            "largest_pitch_deg": float(off[0]),
            "largest_roll_deg": float(off[1]),
            "saturated_share": of_skin["saturated_share"],
            "largest_torque_N_m": of_skin["largest_torque_N_m"],
            "frames_refined": self.plant.refined,
            "plant_step_ms": 1e3 * self.plant.spent / max(1, len(self.plant.sent)),
        }

    def findings(self, data: xr.Dataset, figures: dict) -> list[Finding]:
        """Findings of the verdict; on the course where the run reached its end."""
        course = figures, self.problem, self.home[2]
        found = course_findings(*course) if self.end.ok else []
        found.append(tilted(tilt(data.base_rpy.values, self.home[RPY]).max()))
        limits, joints = self.robot.skinned.effort_limits, data.joint.values
        return found + saturated(data.torque.values, limits, joints)

    def verdict(self, figures: dict, findings: list[Finding]) -> tuple[Verdict, str]:
        """The verdict, and one line on what happened."""
        doing = "it trots" if self.problem.speed else "it stands"
        return judged(self.end, findings, doing)

    def origin(self, data: xr.Dataset) -> dict:
        """Model, residuals and provenance of the result."""
        return self.record.origin(self.problem) | {"model": self.robot.name}


def _targets(replay: Result, robot: SkinnedRobot) -> np.ndarray:
    """The servo targets of a run (n, m) [rad], checked."""
    if replay.kind != "quads.control" or "command" not in replay.data:
        raise InvalidInput(f"replay: a {replay.kind} has no servo targets of control")
    targets = replay.data.command.values
    if targets.shape[1] != len(robot.joints) or not len(targets):
        raise InvalidInput(f"replay: is of {replay.model}, not of {robot.model.name}")
    return targets
