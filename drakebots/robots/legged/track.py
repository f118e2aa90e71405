"""Execute a plan of any legged robot on its ground.

    run = track(Tracking(plan, cycles=5))
    print(run.metrics["stride_m"], run.metrics["cycles_upright"])

The plan's inputs are fed forward, and feedback keeps the robot to it: whole-body
control (:mod:`.whole_body`), or servos at the joints alone. What is under the feet is
not the planner's contact: Drake's SAP on stiff ground, or time stepping with hard
contact.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, fields, replace

import numpy as np
import xarray as xr

from drakebots.core.checks import (
    check,
    check_log,
    check_types,
    finite,
    non_negative,
    one_of,
    optional,
    positive,
    whole,
)
from drakebots.core.errors import InvalidInput, one_line
from drakebots.core.run import Progress, RunEnd, Stop, failed, run_steps
from drakebots.core.stages import spent, timed
from drakebots.model import Model, model_of, model_provenance
from drakebots.multibody import (
    Finding,
    Robot,
    asked,
    build_robot,
    closure_residuals,
    drifted,
    fall,
    floats,
    judged,
    looked_at,
    open_loops,
    saturated,
    soles_jacobian,
    strides_of,
    tilt,
    tilted,
    trajectory_dataset,
)
from drakebots.results import Result
from drakebots.robots.legged.grounds import (
    GROUNDS,
    HardGround,
    SapGround,
    stiff_ground,
)
from drakebots.robots.legged.reference import LOADED, Reference, gravity, reference
from drakebots.robots.legged.whole_body import WholeBodyControl
from drakebots.trajopt.contact_implicit import ContactSystem
from drakebots.trajopt.locomotion import base_axes

FEEDBACKS = ("whole-body", "servos")
"""What keeps a robot to its plan."""

STEP, TURN = 0.05, 0.1
"""Shorter strides [l] and turns [rad] of a plan are none, to be judged by."""

CONTROL_STEPS = 2
"""Number of time steps for which inputs are held."""

LOG_PERIOD = 5e-3
"""Period of the stored samples [s], rounded to time steps."""

SERVO_STIFFNESS = 3.0
"""k_p [m g l per radian] (a sliding joint: [m g/l]), l the height of the centre of
mass."""

SERVO_DAMPING = 0.1
"""k_d, as a share of k_p sqrt(l/g)."""


@dataclass(frozen=True)
class Tracking:
    """A plan to execute, and the circumstances.

    Attributes:
        plan: plan of a legged robot.
        cycles: number of cycles of a periodic plan.
        ground: contact model, sap (Drake's, on stiff ground) or hard (time stepping
            with hard contact).
        feedback: whole-body (a quadratic program over torques and forces, with steps
            that correct errors) or servos (springs and dampers at the joints).
        friction: friction coefficient of the ground; by default the plan's.
        delay: time from a measurement to the torques that it leads to [s].
        push: sudden change of the base's velocity to the left, after a third of the
            run [m/s].
        settle: time to hold the last pose after a plan that is not periodic [s].
        time_step: time step of the simulation [s]; by default 1 ms, shorter for robots
            smaller than 0.1 m.
        time_limit: limit of the wall time [s]; what was reached is kept.

    Raises:
        InvalidInput: for a result that is not such a plan, or a value out of its range.
        UnknownName: for an unknown ground or feedback.
    """

    plan: Result
    cycles: int = 5
    ground: str = "sap"
    feedback: str = "whole-body"
    friction: float | None = None
    delay: float = 0.0
    push: float = 0.0
    settle: float = 0.5
    time_step: float | None = None
    time_limit: float | None = None

    def __post_init__(self):
        check_types(self, "")
        check(
            self,
            "",
            cycles=whole(1),
            ground=one_of("ground", GROUNDS),
            feedback=one_of("feedback", FEEDBACKS),
            friction=optional(non_negative()),
            delay=non_negative("s"),
            push=finite("m/s"),
            settle=non_negative("s"),
            time_step=optional(positive("s")),
            time_limit=optional(positive("s")),
        )
        check_log(self.settle + self.cycles, LOG_PERIOD)
        needed = ("position", "velocity", "foot_force", "input")
        has = all(name in self.plan.data for name in needed)
        if not has or "periodic" not in self.plan.metrics:
            raise InvalidInput(
                f"a result of kind {self.plan.kind!r} is not a plan of a legged robot; "
                "give one of kind locomotion.plan"
            )


@timed("load")
def track(problem: Tracking, *, progress: Progress | None = None) -> Result:
    """Executes a plan; returns what was reached even when cut short.

    The result is a success if the robot did not fall, kept its loops closed, and made
    at least half of the planned stride or turn, or ended less than the height of its
    centre of mass from the plan's end (:mod:`drakebots.multibody.judging`).

    Args:
        problem: what to execute, and where.
        progress: called as progress("simulate", time, duration) [s].

    Raises:
        UnknownName, ModelProblem: when the plan's model is not there any more.
        InvalidInput: for a plan of another model.
    """
    run = _Run(problem, model_of(problem.plan))

    def reached(end: RunEnd) -> Result:
        data = run.dataset()
        metrics = run.metrics(data)
        findings = run.findings(data, metrics, whole=end.ok)
        came = run.reached(metrics)
        said = came if end.ok else f"{end.message}; {came}"
        verdict, message = judged(replace(end, message=said), findings, run.doing)
        options = {f.name: getattr(problem, f.name) for f in fields(problem)}
        options["plan"] = {"model": problem.plan.model, "kind": problem.plan.kind}
        return Result(
            kind="legged.track",
            model=run.model.name,
            verdict=verdict,
            message=message,
            data=data,
            residuals=closure_residuals(data),
            timings=spent(),
            metrics=metrics | {"judged": looked_at(findings)},
            provenance=model_provenance(run.model, options),
        )

    end = run_steps(
        run.step,
        run.steps,
        stage="simulate",
        until=run.duration,
        progress=progress,
        time_limit=problem.time_limit,
        reached=reached,
    )
    return reached(end)


class _Run:
    """A plan on its ground, with its controller and what is logged."""

    def __init__(self, problem: Tracking, model: Model):
        self.problem, self.model = problem, model
        base = "euler" if floats(model) else "fixed"
        own = build_robot(model, base=base, time_step=0)
        self.plan = plan = reference(problem.plan, own)
        self.friction = problem.friction
        if self.friction is None:
            self.friction = float(problem.plan.metrics["friction"])
        g = gravity(own)
        self.period = problem.time_step or min(1e-3, np.sqrt(plan.height / g) / 100)
        self.ground = self._build_ground(base, g)
        self.robot = self.ground.robot
        self._probe = self.robot.plant.CreateDefaultContext()
        axes, names = base_axes(own), ContactSystem(own).coordinates
        self.axes = {axis: names.index(name) for axis, name in axes.items()}
        self.actuators = [
            own.plant.get_joint_actuator(i) for i in own.plant.GetJointActuatorIndices()
        ]
        self.limits = np.array([a.effort_limit() for a in self.actuators])
        self.control = self._build_control(own)
        cycles = problem.cycles if plan.periodic else 1
        self.duration = cycles * plan.duration
        if not plan.periodic:
            self.duration += problem.settle
        self.steps = int(np.ceil(self.duration / self.period - 1e-6))
        self._waiting = deque(maxlen=round(problem.delay / self.period) + 1)
        self._every = max(1, round(LOG_PERIOD / self.period))
        self._log: list[tuple] = []
        self.ground.start(plan.q[0], plan.v[0])
        self._keep(0, plan.input[0])

    def _build_ground(self, base: str, g: float) -> SapGround | HardGround:
        given = {"base": base, "time_step": self.period}
        if self.problem.ground == "hard":
            return HardGround(self.model, friction=self.friction, **given)
        ground = stiff_ground(self.model, self.plan.height, self.friction, g)
        return SapGround(self.model, ground=ground, **given)

    def _build_control(self, own: Robot) -> WholeBodyControl | ServoControl:
        if self.problem.feedback == "servos":
            return ServoControl(own, self.plan, limits=self.limits)
        tilt = [self.axes[a] for a in ("roll", "pitch", "yaw") if a in self.axes]
        return WholeBodyControl(
            own, self.plan, friction=self.friction, limits=self.limits, tilt=tilt
        )

    def step(self, k: int) -> Stop | None:
        """Step k = 1, 2, ...: control, motion, log."""
        time = (k - 1) * self.period
        if self.problem.push and k == self.steps // 3:
            self._push()
        if (k - 1) % CONTROL_STEPS == 0:
            q, v = self.ground.state()
            if not (np.isfinite(q).all() and np.isfinite(v).all()):
                return failed("the state diverged; reduce the time step")
            touching = self.ground.forces()[:, 2] > 0
            self._inputs = self.control.inputs(time, q, v, touching)
        self._waiting.append(self._inputs)
        applied = self._waiting[0]
        try:
            self.ground.advance(applied)
        except RuntimeError as error:
            reason = one_line(error)[:160]
            return failed(f"the simulation failed ({reason}); reduce the time step")
        if k % self._every and k < self.steps:
            return None
        self._keep(k, applied)
        return self._fallen(k * self.period, self.ground.state()[0])

    def _push(self) -> None:
        if "y" not in self.axes:
            raise InvalidInput(
                f"{self.model.name} cannot move to the left; leave push out"
            )
        q, v = self.ground.state()
        v[self.axes["y"]] += self.problem.push
        self.ground.start(q, v)

    def _fallen(self, time: float, q: np.ndarray) -> Stop | None:
        planned, height = self.plan.at(time).q, 1.0
        if "z" in self.axes:
            z = self.axes["z"]
            height += float(q[z] - planned[z]) / self.plan.height
        how = fall(float(self._tilt(q, planned)), height)
        return failed(f"{how} at {time:.3g} s") if how else None

    def _tilt(self, q: np.ndarray, planned: np.ndarray) -> np.ndarray:
        """Tilt of the base (...,) between coordinates (..., nq) and planned ones."""
        rpy = np.zeros((2, *np.shape(q)[:-1], 3))
        for k, axis in enumerate(("roll", "pitch")):
            if axis in self.axes:
                rpy[..., k] = np.stack([q, planned])[..., self.axes[axis]]
        return tilt(*rpy)

    def _keep(self, k: int, inputs: np.ndarray) -> None:
        state = np.concatenate(self.ground.state())
        self._log.append((k * self.period, state, inputs, self.ground.forces()))

    def dataset(self) -> xr.Dataset:
        """What was logged, in SI, and the plan's forces beside it.

        Beyond :func:`trajectory_dataset`: input and input_limit (0 for none), power
        (of the actuators, each counted positive), sole_velocity (of the points that
        friction holds), foot_force, and of the plan foot_force_planned and
        base_position_planned.
        """
        times, states, inputs, forces = (np.array(x) for x in zip(*self._log))
        data = trajectory_dataset(self.robot, times, states)
        data = data.assign_coords(input_name=[a.name() for a in self.actuators])
        limits = np.where(np.isfinite(self.limits), self.limits, 0.0)
        planned = [self.plan.at(t) for t in times]
        B = np.array(self.robot.plant.MakeActuationMatrix())
        rates = states[:, self.robot.plant.num_positions() :] @ B
        soles = data.foot_velocity.values
        if self.ground.rolls:
            soles = np.array([self._soles_velocity(x) for x in states])
        note, N = "N m (N where the joint slides)", {"units": "N"}
        by_foot = ("time", "foot", "axis")
        return data.assign(
            input=(("time", "input_name"), inputs, {"units": note}),
            power=("time", np.abs(inputs * rates).sum(axis=1), {"units": "W"}),
            input_limit=(("input_name",), limits, {"units": note}),
            sole_velocity=(by_foot, soles, {"units": "m/s"}),
            foot_force=(by_foot, forces, N),
            foot_force_planned=(by_foot, np.array([x.force for x in planned]), N),
            base_position_planned=(
                ("time", "axis"),
                np.array([x.base for x in planned]),
                {"units": "m"},
            ),
        )

    def _soles_velocity(self, state: np.ndarray) -> np.ndarray:
        """Velocities of the feet's lowest points (nc, 3)."""
        plant = self.robot.plant
        plant.SetPositionsAndVelocities(self._probe, state)
        v = state[plant.num_positions() :]
        return (soles_jacobian(self.robot, self._probe) @ v).reshape(-1, 3)

    @property
    def doing(self) -> str:
        """What a robot does that follows the plan."""
        way = abs(self.plan.base[-1, 0] - self.plan.base[0, 0])
        walks = self.plan.periodic and way > STEP * self.plan.height
        return "it walks" if walks else "it moves"

    def reached(self, figures: dict) -> str:
        """How far the run came, in a few words."""
        if not self.plan.periodic:
            missed, drift = figures["end_error_m"], figures["yaw_drift_deg"]
            return f"ends {missed:.2g} m and {abs(drift):.2g} deg from the plan's end"
        done = f"{figures['cycles_upright']} of {self.problem.cycles} cycles"
        if not figures["planned_stride_m"]:
            return done
        return f"{done}, {figures['stride_share']:.0%} of the planned stride"

    def findings(
        self, data: xr.Dataset, figures: dict, *, whole: bool
    ) -> list[Finding]:
        """What the verdict looks at, the gravest first; the end if `whole`."""
        plan, base = self.plan, data.base_position.values
        found, stride = open_loops(data, plan.height), figures.get("planned_stride_m")
        if stride is not None and abs(stride) > STEP * plan.height:
            found += strides_of(figures["stride_m"], stride)
        elif plan.periodic:
            found.append(drifted(np.linalg.norm((base[-1] - base[0])[:2]), plan.height))
        elif whole:
            words = "it misses the plan's end by"
            found.append(drifted(figures["end_error_m"], plan.height, words))
        if whole and not plan.periodic and abs(plan.turn) > TURN:
            share = 1 + np.radians(figures["yaw_drift_deg"]) / plan.turn
            words = f"it makes {share:.0%} of its turn"
            found.append(asked("turn missed", float(share), words))
        planned = np.array([plan.at(t).q for t in data.time.values])
        off = self._tilt(data.position.values, planned)
        found.append(tilted(off.max()))
        limits, names = data.input_limit.values, data.input_name.values
        return found + saturated(data.input.values, limits, names)

    def metrics(self, data: xr.Dataset) -> dict:
        """Figures of the run."""
        problem, mass = self.problem, self.model.summary.mass
        return {
            **track_metrics(data, self.plan, mass * gravity(self.robot)),
            "friction": self.friction,
            "ground": problem.ground,
            "feedback": problem.feedback,
            "time_step_s": self.period,
        }


class ServoControl:
    """Servos at the joints that follow a plan, with its inputs fed forward.

        u = u_plan + k_p (q_plan - q) + k_d (v_plan - v)

    The base is not measured: errors of its pose and velocity stay, or grow.

    Args:
        robot: robot on the plan's base.
        plan: the plan.
        limits: largest magnitude of every input (nu,).
    """

    def __init__(self, robot: Robot, plan: Reference, *, limits: np.ndarray):
        self._plan, self._limits = plan, limits
        self._B = np.array(robot.plant.MakeActuationMatrix())
        g, height = gravity(robot), plan.height
        weight = robot.model.summary.mass / robot.scaling.mass * g
        plant = robot.plant
        slides = np.array(
            [
                plant.get_joint_actuator(i).joint().type_name() == "prismatic"
                for i in plant.GetJointActuatorIndices()
            ]
        )
        unit = np.where(slides, weight / height, weight * height)
        self._kp = SERVO_STIFFNESS * unit
        self._kd = SERVO_DAMPING * np.sqrt(height / g) * self._kp

    def inputs(
        self, time: float, q: np.ndarray, v: np.ndarray, touching: np.ndarray
    ) -> np.ndarray:
        """Inputs (nu,) for a state at a time of the plan; `touching` is not used."""
        planned = self._plan.at(time)
        error, rate = self._B.T @ (planned.q - q), self._B.T @ (planned.v - v)
        u = planned.input + self._kp * error + self._kd * rate
        return np.clip(u, -self._limits, self._limits)


def track_metrics(data: xr.Dataset, plan: Reference, weight: float) -> dict:
    """Figures of a run in SI.

    Args:
        data: dataset of the run, with base_position, base_rpy, sole_velocity,
            foot_force, input, input_limit and power.
        plan: what was executed, in SI.
        weight: weight of the robot [N].

    Returns:
        tilt_max_deg, yaw_drift_deg (beyond a planned turn), slip_m (path that loaded
        feet slide), effort (root mean square of the inputs' shares of their limits),
        effort_peak, work_J (of the actuators, without recovery) and cost_of_transport
        (work by weight and path). For a periodic plan also cycles_upright,
        planned_stride_m, stride_m (by cycle), stride_m_per_cycle and stride_share; for
        others end_error_m, how far the base ends from its planned place.
    """
    time, base, rpy = data.time.values, data.base_position.values, data.base_rpy.values
    steps = np.diff(time)
    turn = 0.0 if plan.periodic else plan.turn
    loaded = data.foot_force.values[1:, :, 2] > LOADED * weight
    speed = np.linalg.norm(data.sole_velocity.values[1:, :, :2], axis=2)
    share = np.abs(data.input.values) / np.where(
        data.input_limit.values > 0, data.input_limit.values, np.inf
    )
    work = float(np.trapezoid(data.power.values, time))
    path = float(np.linalg.norm(base[-1, :2] - base[0, :2]))
    out = {
        "tilt_max_deg": float(np.degrees(np.abs(rpy[:, :2]).max())),
        "yaw_drift_deg": float(np.degrees(rpy[-1, 2] - rpy[0, 2] - turn)),
        "slip_m": float((speed * loaded * steps[:, None]).sum()),
        "effort": float(np.sqrt((share**2).mean())),
        "effort_peak": float(share.max(initial=0.0)),
        "work_J": work,
        "cost_of_transport": work / (weight * path) if path > 0 else 0.0,
    }
    if not plan.periodic:
        missed = base[-1] - base[0] - (plan.base[-1] - plan.base[0])
        return out | {"end_error_m": float(np.linalg.norm(missed))}
    return out | _strides(time, base[:, 0], plan)


def _strides(time: np.ndarray, x: np.ndarray, plan: Reference) -> dict:
    """The advance of the base in each whole cycle."""
    whole = int(time[-1] / plan.duration + 1e-6)
    strides = np.diff(np.interp(plan.duration * np.arange(whole + 1), time, x))
    planned = float(plan.base[-1, 0] - plan.base[0, 0])
    mean = float(strides.mean()) if whole else 0.0
    return {
        "period_s": plan.duration,
        "cycles_upright": whole,
        "planned_stride_m": planned,
        "stride_m": strides.tolist(),
        "stride_m_per_cycle": mean,
        "stride_share": mean / planned if planned else 0.0,
    }
