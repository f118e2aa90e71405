"""Contact-implicit control of a robot through its skin.

    run = control(Control("monster", pushes=(Push(20.0, time=1.0),)))
    alone = control(problem, replay=run)       # its servo targets again, open loop

            q, v ┌─────────────────────┐ efforts u ┌────────┐ angles ┌─────────────────┐
        ┌───────▶│ contact-implicit    │──────────▶│ servos │───────▶│ skeleton, skin, │
        │        │ control of a rigid  │           └────────┘        │ compliant ground│
        │        │ robot with springs  │                             └────────┬────────┘
        └────────┴─────────────────────┴──────────────────────────────────────┘

The controller plans with the rigid robot of :mod:`.believed`; the plant is the skinned
robot, with all tetrahedra or with a reduced skin. Measured are the skeleton's q and v,
not the skin. A solve begins every period and takes effect a period later, whatever it
took; those that took longer are counted. In every time step the servos get angles by
which they apply u,

    q_d = q + (u + d v)/k

with their own gains k and d, within their limits.
"""

from __future__ import annotations

import time as clock
from dataclasses import dataclass, fields, replace
from functools import cached_property

import numpy as np
import xarray as xr

from drakebots.core.errors import InvalidInput
from drakebots.core.run import Progress, RunEnd, Stop, failed, run_steps
from drakebots.core.stages import spent, stage, timed
from drakebots.core.threads import calm_threads
from drakebots.model import model_provenance
from drakebots.multibody import (
    Finding,
    Robot,
    drifted,
    fall,
    judged,
    looked_at,
    saturated,
    tilt,
    tilted,
    went,
)
from drakebots.results import Result
from drakebots.robots.quads.control.believed import (
    believed_robot,
    check_base,
    standing,
)
from drakebots.robots.quads.control.ground import BoxOn, TerrainContact
from drakebots.robots.quads.control.problem import Control
from drakebots.robots.quads.robot import RPY, PlannedRobot, load_planned
from drakebots.skin import SkinRecord
from drakebots.skin.file import SkinnedRobot
from drakebots.skin.reduced import ReducedSkin, reduced_stepper, trained_once
from drakebots.trajopt import Slope, Step
from drakebots.trajopt.mpc import (
    MpcPlan,
    MpcProblem,
    MpcSolver,
    Way,
    default_cost,
)
from drakebots.trajopt.mpc import standing as hold

TRAINING = {"amplitude": 0.25, "seeds": (2, 3), "steps": 200}
"""Of the reduced skin of the plant. With an amplitude of 0.35 rad a fold of the monster
turns inside out.
"""

EFFORT = 0.1
"""Weight of efforts, over the square of the servos' limit [1/s]. Less of it leaves the
forces between eight points on the ground undecided, and the torques tremble."""

BARRIER, SLIP, FRICTION = 1e-2, 0.03, 0.7
"""Relaxation of contact [weight g h^2]; speed below which friction is regularised
[sqrt(g l)]; share of the friction that is used."""

FIRST, UNSETTLED = 20, 1.0
"""Parts in which the first plan goes over from standing to the way; largest miss of the
dynamics of a plan that is used [weight]."""

EVENTS = (
    "pushes",
    "step",
    "step_at",
    "step_length",
    "plant",
    "duration",
    "period",
    "time_step",
    "log_period",
    "skin_period",
    "time_limit",
)
"""Fields of a problem that its controller does not depend on."""

HAND = 0.03
"""Radius of the skin that a push acts on [m]."""


@dataclass(frozen=True)
class Built:
    """A robot and its controller, for runs with different :data:`EVENTS`.

    It is made by :func:`build`.

    Attributes:
        problem: what it was built for.
        robot: the robot with its skin.
        believed: the rigid robot that the controller plans with.
        home: its standing pose (nv,).
        way: what the controller asks for.
        solver: the controller.
    """

    problem: Control
    robot: PlannedRobot
    believed: Robot
    home: np.ndarray
    way: Way
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
    check_base(robot)
    quad, believed = robot.quad, believed_robot(robot)
    home = standing(believed, quad.rest, problem.slope)
    height = quad.rest_com(robot.link_skin)[2]
    way = Way(
        believed,
        home,
        step=problem.horizon_step,
        knots=problem.knots,
        speed=problem.speed,
        gait=problem.gait,
        terrain=Slope(-problem.slope),
    )
    g, weight = _weight(believed)
    posed = MpcProblem(
        believed,
        cost=default_cost(believed, way, height, EFFORT / quad.torque_limits**2),
        terrain=problem.known,
        friction=FRICTION * problem.friction,
        step=problem.horizon_step,
        knots=problem.knots,
        barrier=BARRIER * weight * g * problem.horizon_step**2,
        slip=SLIP * np.sqrt(g * height),
        iterations=problem.iterations,
    )
    return Built(problem, robot, believed, home, way, MpcSolver(posed))


def _weight(robot: Robot) -> tuple[float, float]:
    """Gravity [m/s^2] and the robot's weight [N]."""
    g = float(np.linalg.norm(robot.plant.gravity_field().gravity_vector()))
    return g, g * robot.plant.CalcTotalMass(robot.plant.CreateDefaultContext())


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
        problem: what to do, and what happens.
        replay: a run whose servo targets are played, open loop, instead of control.
        built: of :func:`build`, for many runs that differ in :data:`EVENTS` only.
        progress: called as progress("control", time, duration) [s].

    Returns:
        A result of kind "quads.control" with the variables of
        :func:`~drakebots.skin.simulate.simulate_skinned`; also command (step, joint),
        the servo targets [rad], base_position (time, 3) [m] and base_rpy (time, 3)
        [rad], and by solve solve_seconds and solve_ok. It failed if the robot fell, or
        made less than half of the way that its speed asks for.

    Raises:
        UnknownName, ModelProblem: for a model that cannot be loaded.
        InvalidInput: for a robot without servos at its joints, a period that is no
            multiple of the time step, or a replay or what was built of another robot.
        NoSolution: for a slope that it cannot stand on, before the run.
    """
    built = build(problem) if built is None else built
    calm = {name: getattr(problem, name) for name in EVENTS}
    if replace(built.problem, **calm) != problem:
        raise InvalidInput(
            "control: what was built is for another robot, ground, gait or horizon; "
            f"runs of it may differ in {', '.join(EVENTS)}"
        )
    run = _Run(problem, built, replay)
    steps = max(1, round(problem.duration / problem.time_step))

    def reached(end: RunEnd) -> Result:
        options = {f.name: getattr(problem, f.name) for f in fields(problem)}
        options |= {"model": str(problem.model), "gait": vars(problem.gait)}
        options |= {"pushes": [vars(push) for push in problem.pushes]}
        data, metrics = run.dataset(), run.metrics()
        findings = run.findings(data, metrics, whole=end.ok)
        verdict, message = judged(
            end, findings, "it trots" if problem.speed else "it stands"
        )
        return Result(
            kind="quads.control",
            model=run.robot.name,
            verdict=verdict,
            message=message,
            data=data,
            residuals={"glue gap [m]": run.record.worst_gap},
            timings=spent(),
            metrics=metrics | {"judged": looked_at(findings)},
            provenance=model_provenance(
                run.robot.skinned.model, options, files=run.robot.files
            ),
        )

    with calm_threads():
        end = run_steps(
            run.step,
            steps,
            stage="control",
            until=steps * problem.time_step,
            progress=progress,
            time_limit=problem.time_limit,
            success=f"reached {steps * problem.time_step:g} s on its feet",
            reached=reached,
        )
    return reached(end)


class _Run:
    """A run in progress."""

    def __init__(self, problem: Control, built: Built, replay: Result | None):
        self.problem, self.built, self.robot = problem, built, built.robot
        self.every = _ratio("period", problem.period, problem.time_step)
        self.log_every = _ratio("log_period", problem.log_period, problem.time_step)
        skinned, self.home = self.robot.skinned, built.home
        self.gains = skinned.skin.servos
        self.commands = None if replay is None else _targets(replay, skinned)
        self.unsettled = UNSETTLED * _weight(built.believed)[1]
        self.plant = self._plant(skinned)
        self.state = self.plant.start(self.robot.coordinates.positions(self.home)[0])
        self.now: MpcPlan | None = None
        self.next: MpcPlan | None = None
        self.seconds, self.ok, self.sent, self.base = [], [], [], []
        self.fall: tuple[float, str] | None = None
        self.spent = 0.0
        self.record = SkinRecord(
            skinned, self.plant, problem.skin_period, problem.log_period
        )
        self._note(self.home[6:], None, False)

    def _plant(self, skinned: SkinnedRobot):
        problem, terrain = self.problem, self.problem.known
        if problem.step:
            end = problem.step_at + problem.step_length
            terrain = BoxOn(terrain, Step(problem.step_at, end, problem.step))
        options = {
            "patches": skinned.skin.patches,
            "patch_contact": TerrainContact(problem.friction, terrain=terrain),
        }
        if problem.plant == "full":
            return skinned.stepper(problem.time_step, threads=1, **options)
        skin = self.built.skin
        return reduced_stepper(skinned, skin, problem.time_step, **options)

    # --- a time step ---

    def step(self, k: int) -> Stop | None:
        """The k-th time step, from (k - 1) dt to k dt."""
        problem, dt = self.problem, self.problem.time_step
        time = (k - 1) * dt
        if self.commands is not None:
            target = self.commands[min(k - 1, len(self.commands) - 1)]
        else:
            target = self._decide(k - 1, time)
        self.sent.append(target)
        servo = self.robot.skinned.servo(target)
        began = clock.thread_time()
        result = self.plant.step(
            self.state, servo=servo, skin_forces=self._pushed(time)
        )
        self.spent += clock.thread_time() - began
        if not result.converged:
            return failed(result.message)
        self.state = result.state
        why = self._fallen()
        last = k == round(problem.duration / dt) or bool(why)
        if k % self.log_every == 0 or last:
            self._note(target, result, last)
        if why:
            self.fall = (k * dt, why)
            return failed(f"{why} at {k * dt:.3g} s")
        return None

    def _measured(self) -> tuple[np.ndarray, np.ndarray]:
        convert, state = self.robot.coordinates, self.state
        q = convert.from_positions(state.q[None])
        return q[0], convert.from_velocities(state.q[None], state.v[None])[0]

    def _decide(self, k: int, time: float) -> np.ndarray:
        """Servo targets (m,) [rad] at time step k."""
        q, v = self._measured()
        if k % self.every == 0:
            if self.now is None:  # before the robot moves: it stands, then it steps
                self.now = self._first(q, v)
            self.now, self.next = self.next or self.now, None
            with stage("solve"):
                new = self.built.solver.solve(
                    q, v, self.built.way, time=time, warm=self.now
                )
            self.seconds.append(new.seconds)
            self.ok.append(new.ok and new.residuals["dynamics"] < self.unsettled)
            self.next = new if self.ok[-1] else None
        u = self.built.solver.command(self.now, time, q, v)
        return q[6:] + (u + self.gains.damping * v[6:]) / self.gains.stiffness

    def _first(self, q: np.ndarray, v: np.ndarray) -> MpcPlan:
        """A plan at time 0, the better of two: one that starts from nothing, and one of
        standing that by and by becomes one of the way. Each may be a poor minimum.
        """
        other = self.built.solver.solve(q, v, self.built.way)
        plan = self.built.solver.solve(q, v, hold)
        for share in np.linspace(0, 1, FIRST + 1)[1:]:

            def part(t, q, v, share=share):
                to, rates = self.built.way(t, q, v)
                return q + share * (to - q), share * rates

            plan = self.built.solver.solve(q, v, part, warm=plan)
        return min(plan, other, key=lambda one: one.cost)

    def _pushed(self, time: float) -> np.ndarray | None:
        """Forces on the nodes of the skin (N, 3) [N]: of hands on the trunk."""
        total = None
        for push in self.problem.pushes:
            force = push.at(time)
            if force.any():
                rest = self.robot.skinned.fem.rest
                total = np.zeros_like(rest) if total is None else total
                total[self._under(force / np.linalg.norm(force))] += force
        if total is None:
            return None
        touched = np.flatnonzero(total.any(axis=1))
        total[touched] /= len(touched)
        return total

    def _under(self, along: np.ndarray) -> np.ndarray:
        """Nodes under a hand that pushes along a line through the centre of mass."""
        rest, com = (
            self.robot.skinned.fem.rest,
            self.robot.quad.rest_com(self.robot.link_skin),
        )
        arm = rest - com
        reach = arm @ along
        aside = np.linalg.norm(arm - reach[:, None] * along, axis=1)
        near = aside < HAND
        if not near.any():
            near = aside < aside.min() + HAND
        first = rest[near][np.argmin(reach[near])]
        return np.flatnonzero(np.linalg.norm(rest - first, axis=1) < HAND)

    def _fallen(self) -> str:
        q = self._measured()[0]
        height = q[2] - self.problem.rise * q[0]
        return fall(float(tilt(q[RPY], self.home[RPY])), height / self.home[2])

    def _note(self, target, result, last: bool) -> None:
        state = self.state
        lifted = self.plant.lift(state) if hasattr(self.plant, "lift") else state
        self.base.append(self._measured()[0][:6])
        self.record.add(lifted, target, result, last=last)

    # --- what came of it ---

    def dataset(self):
        data = self.record.dataset()
        base = np.array(self.base)
        data["base_position"] = (("time", "axis"), base[:, :3], {"units": "m"})
        data["base_rpy"] = (("time", "angle"), base[:, [5, 4, 3]], {"units": "rad"})
        data["command"] = (("step", "joint"), np.array(self.sent), {"units": "rad"})
        data["solve_seconds"] = ("solve", np.array(self.seconds), {"units": "s"})
        data["solve_ok"] = ("solve", np.array(self.ok, int), {"units": "1"})
        return data.assign_coords(angle=["roll", "pitch", "yaw"])

    def metrics(self) -> dict:
        base, problem = np.array(self.base), self.problem
        off = np.degrees(np.abs(base[:, 4:6] - self.home[4:6])).max(axis=0)
        seconds = np.array(self.seconds or [np.nan])
        steps = max(1, len(self.sent))
        return {
            "controller": "mpc" if self.commands is None else "replay",
            "plant": problem.plant,
            "fell": self.fall is not None,
            "fell_at_s": None if self.fall is None else self.fall[0],
            "forward_m": float(base[-1, 0] - base[0, 0]),
            "sideways_m": float(base[-1, 1] - base[0, 1]),
            "turned_deg": float(np.degrees(base[-1, 3])),
            "largest_pitch_deg": float(off[0]),
            "largest_roll_deg": float(off[1]),
            "saturated_share": self.record.saturated_share,
            "largest_torque_N_m": self.record.largest_torque,
            "pushes": [vars(push) for push in problem.pushes],
            "solves": len(self.seconds),
            "solve_failures": self.ok.count(False),
            "solve_late": int((seconds > problem.period).sum()),
            "solve_ms": float(1e3 * np.median(seconds)),
            "solve_p99_ms": float(1e3 * np.quantile(seconds, 0.99)),
            "solve_hz": float(1 / np.median(seconds)),
            "plant_step_ms": 1e3 * self.spent / steps,
        }

    def findings(
        self, data: xr.Dataset, figures: dict, *, whole: bool
    ) -> list[Finding]:
        """What the verdict looks at, the gravest first; the way if `whole`."""
        found, robot, came = [], self.robot.skinned, figures["forward_m"]
        due = self.problem.speed * self.problem.duration
        if whole and due:
            found.append(went(came, due))
        elif whole:
            moved, pushed = np.hypot(came, figures["sideways_m"]), self.problem.pushes
            found.append(drifted(moved, self.home[2], pushed=bool(pushed)))
        tilts = tilt(data.base_rpy.values, self.home[RPY])
        found.append(tilted(tilts.max()))
        joints = data.joint.values
        return found + saturated(data.torque.values, robot.effort_limits, joints)


def _ratio(name: str, period: float, time_step: float) -> int:
    """How many time steps a period has."""
    count = round(period / time_step)
    if count < 1 or abs(count * time_step - period) > 1e-9:
        raise InvalidInput(
            f"{name} {period:g} s is no multiple of the time step, {time_step:g} s"
        )
    return count


def _targets(replay: Result, robot: SkinnedRobot) -> np.ndarray:
    """The servo targets of a run (n, m) [rad], checked."""
    if replay.kind != "quads.control" or "command" not in replay.data:
        raise InvalidInput(f"replay: a {replay.kind} has no servo targets of control")
    targets = replay.data.command.values
    if targets.shape[1] != len(robot.joints) or not len(targets):
        raise InvalidInput(f"replay: is of {replay.model}, not of {robot.model.name}")
    return targets
