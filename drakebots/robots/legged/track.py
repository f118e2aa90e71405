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
from dataclasses import replace
from time import monotonic
from typing import Annotated

import numpy as np
import xarray as xr

from drakebots.control import Command, ContactModel, ControlRun, Law, Sap, stiff_ground
from drakebots.core.checks import check_log, finite, non_negative, positive, whole
from drakebots.core.errors import InvalidInput
from drakebots.core.fields import checked
from drakebots.core.run import Progress, Stop, Verdict
from drakebots.core.stages import timed
from drakebots.formats import model_of, terrain_of
from drakebots.model import Model, actuators_of, contexts_along, gravity, part_name
from drakebots.multibody import (
    Finding,
    Terrain,
    asked,
    build_robot,
    carried,
    drifted,
    fall,
    floats,
    judged,
    open_loops,
    saturated,
    soles_jacobian,
    strides_of,
    tilt,
    tilted,
    too_fast,
    trajectory_dataset,
)
from drakebots.results import Result
from drakebots.robots.legged.reference import LOADED, Reference, reference
from drakebots.robots.legged.whole_body import Feedback, Servos, WholeBody
from drakebots.trajopt.contact_implicit import ContactSystem
from drakebots.trajopt.locomotion import base_axes

STEP, TURN = 0.05, 0.1
"""Shorter strides [l] and turns [rad] of a plan are none, to be judged by."""

CONTROL_STEPS = 2
"""Number of time steps for which inputs are held."""

LOG_PERIOD = 5e-3
"""Period of the stored samples [s], rounded to time steps."""


@checked()
class Tracking:
    """A plan to execute, and the circumstances.

    Raises:
        InvalidInput: for a result that is not such a plan, or a value out of its range.
    """

    plan: Result
    """Plan of a legged robot."""
    cycles: Annotated[int, whole(1)] = 5
    """Number of cycles of a periodic plan."""
    ground: ContactModel = Sap()
    """Contact model: Sap (Drake's, on stiff ground) or Hard (time stepping with hard
    contact)."""
    feedback: Feedback | None = None
    """Feedback: WholeBody (a quadratic program over torques and forces, with steps that
    correct errors) or Servos (springs and dampers at the joints); by default WholeBody,
    and Servos where the robot fails by it and not by them."""
    terrain: Terrain | None = None
    """The ground; by default the plan's."""
    friction: Annotated[float | None, non_negative()] = None
    """Friction coefficient of the ground; by default the plan's."""
    delay: Annotated[float, non_negative("s")] = 0.0
    """Time from a measurement to the torques that it leads to."""
    push: Annotated[float, finite("m/s")] = 0.0
    """Sudden change of the base's velocity to the left, after a third of the run."""
    settle: Annotated[float, non_negative("s")] = 0.5
    """Time to hold the last pose after a plan that is not periodic."""
    time_step: Annotated[float | None, positive("s")] = None
    """Time step of the simulation; by default 1 ms, shorter for robots smaller than 0.1
    m."""
    time_limit: Annotated[float | None, positive("s")] = None
    """Limit of the wall time; what was reached is kept."""

    def __post_init__(self):
        check_log(self.settle + self.cycles, LOG_PERIOD)
        needed = ("position", "velocity", "foot_force", "input")
        has = all(name in self.plan.data for name in needed)
        if not has or "periodic" not in self.plan.metrics:
            raise InvalidInput(
                f"a result of kind {self.plan.kind!r} is not a plan of a legged robot; "
                "give one of kind locomotion.plan"
            )


def track(problem: Tracking, *, progress: Progress | None = None) -> Result:
    """Executes a plan; returns what was reached even when cut short.

    Where the problem names no feedback and whole-body control fails, a second run is by
    servos; it counts if it succeeds, and its message says so.

    The result is a success if the robot did not fall, kept its loops closed, carried
    its weight on its feet, and made at least half of the planned stride or turn, or
    ended less than the height of its centre of mass from the plan's end
    (:mod:`drakebots.multibody.judging`).

    Args:
        problem: tracking problem.
        progress: called as progress("simulate", time, duration) [s].

    Raises:
        UnknownName, ModelProblem: when the plan's model is not there any more.
        InvalidInput: for a plan of another model.
    """
    start, feedback = monotonic(), problem.feedback or WholeBody()
    done = _executed(replace(problem, feedback=feedback), progress)
    if problem.feedback is not None or done.verdict is not Verdict.FAILED:
        return done
    left = None
    if problem.time_limit is not None:
        left = max(problem.time_limit - (monotonic() - start), 1e-3)
    second = replace(problem, feedback=Servos(), time_limit=left)
    again = _executed(second, progress)
    first = done.message.partition(";")[0]
    said = f"{again.message}; by servos, since by whole-body control {first}"
    return replace(again, message=said) if again.ok else done


@timed("load")
def _executed(problem: Tracking, progress: Progress | None) -> Result:
    """One run, by the problem's feedback."""
    run = _Run(problem, replace(model_of(problem.plan), sprung=True))
    period = run.every * run.plant.time_step
    return run.simulate(progress, duration=run.duration, log_period=period)


class _Run(ControlRun):
    """A plan on its ground, with its controller and what is logged."""

    kind = "legged.track"

    def __init__(self, problem: Tracking, model: Model):
        if problem.terrain is None:
            problem = replace(problem, terrain=terrain_of(problem.plan))
        self.problem, self.model = problem, model
        base = "euler" if floats(model) else "fixed"
        own = build_robot(model, base=base, time_step=0)
        self.plan = plan = reference(problem.plan, own)
        self.friction = problem.friction
        if self.friction is None:
            self.friction = float(problem.plan.metrics["friction"])
        g = gravity(own.plant)
        dt = problem.time_step or min(1e-3, np.sqrt(plan.height / g) / 100)
        ground = stiff_ground(model, plan.height, self.friction, g, problem.terrain)
        self.plant = problem.ground.plant(model, base, dt, ground)
        self.robot = self.plant.robot
        axes, names = base_axes(own), ContactSystem(own).coordinates
        self.axes = {axis: names.index(name) for axis, name in axes.items()}
        self.actuators = actuators_of(own.plant)
        self.limits = np.array([a.effort_limit() for a in self.actuators])
        self.controller = Law("feedback", self._command)
        given = self.friction, self.limits, problem.terrain
        self._inputs_of = problem.feedback.law(own, plan, *given)
        self._commands = 0
        self._waiting = deque(maxlen=round(problem.delay / dt) + 1)
        self._applied = plan.input[0]
        cycles = problem.cycles if plan.periodic else 1
        self.duration = cycles * plan.duration
        if not plan.periodic:
            self.duration += problem.settle
        self.every = max(1, round(LOG_PERIOD / dt))
        self._log: list[tuple] = []
        self.plant.start(plan.q[0], plan.v[0])

    def _command(self, time: float, q: np.ndarray, v: np.ndarray) -> Command:
        """Inputs for the state of a delay ago, held for CONTROL_STEPS."""
        if self._commands % CONTROL_STEPS == 0:
            touching = self.plant.forces()[:, 2] > 0
            self._inputs = self._inputs_of(time, q, v, touching)
        self._commands += 1
        self._waiting.append(self._inputs)
        self._applied = self._waiting[0]
        return Command(self._applied)

    def step(self, k: int) -> Stop | None:
        """Step k = 1, 2, ..., with the push."""
        if self.problem.push and k == self.steps // 3:
            if "y" not in self.axes:
                raise InvalidInput(
                    f"{self.model.name} cannot move to the left; leave push out"
                )
            q, v = self.plant.state()
            v[self.axes["y"]] += self.problem.push
            self.plant.start(q, v)
        return super().step(k)

    def fall(self, time: float) -> str:
        """Description of a fall, looked for as often as samples are stored."""
        k = round(time / self.plant.time_step)
        if k % self.every and k < self.steps:
            return ""
        q, planned, height = self.plant.state()[0], self.plan.at(time).q, 1.0
        if "z" in self.axes:
            z = self.axes["z"]
            height += float(q[z] - planned[z]) / self.plan.height
        return fall(float(self._tilt(q, planned)), height)

    def _tilt(self, q: np.ndarray, planned: np.ndarray) -> np.ndarray:
        """Tilt of the base (...,) between coordinates (..., nq) and planned ones."""
        rpy = np.zeros((2, *np.shape(q)[:-1], 3))
        for k, axis in enumerate(("roll", "pitch")):
            if axis in self.axes:
                rpy[..., k] = np.stack([q, planned])[..., self.axes[axis]]
        return tilt(*rpy)

    def keep(self, time: float, *, last: bool) -> None:
        state = np.concatenate(self.plant.state())
        self._log.append((time, state, self._applied, self.plant.forces()))

    def dataset(self) -> xr.Dataset:
        """Log of the run, in SI, and the plan's forces beside it.

        Beyond :func:`trajectory_dataset`: input and input_limit (0 for none), power
        (of the actuators, each counted positive), sole_velocity (of the points that
        friction holds), foot_force, and of the plan foot_force_planned and
        base_position_planned.
        """
        times, states, inputs, forces = (np.array(x) for x in zip(*self._log))
        data = trajectory_dataset(self.robot, times, states)
        data = data.assign_coords(input_name=[part_name(a) for a in self.actuators])
        limits = np.where(np.isfinite(self.limits), self.limits, 0.0)
        planned = [self.plan.at(t) for t in times]
        bases = np.array([x.base for x in planned])
        plant = self.robot.plant
        v = states[:, plant.num_positions() :]
        rates = v @ np.array(plant.MakeActuationMatrix())
        soles = data.foot_velocity.values
        if self.plant.rolls:
            along = zip(contexts_along(plant, states), v)
            found = [soles_jacobian(self.robot, at) @ row for at, row in along]
            soles = np.reshape(found, soles.shape)
        note, N = "N m (N where the joint slides)", {"units": "N"}
        by_foot = ("time", "foot", "axis")
        return data.assign(
            input=(("time", "input_name"), inputs, {"units": note}),
            power=("time", np.abs(inputs * rates).sum(axis=1), {"units": "W"}),
            input_limit=(("input_name",), limits, {"units": note}),
            sole_velocity=(by_foot, soles, {"units": "m/s"}),
            foot_force=(by_foot, forces, N),
            foot_force_planned=(by_foot, np.array([x.force for x in planned]), N),
            base_position_planned=(("time", "axis"), bases, {"units": "m"}),
        )

    @property
    def doing(self) -> str:
        """Activity of a robot that follows the plan, in words."""
        distance = abs(self.plan.base[-1, 0] - self.plan.base[0, 0])
        walks = self.plan.periodic and distance > STEP * self.plan.height
        return "it walks" if walks else "it moves"

    def reached(self, figures: dict) -> str:
        """Progress of the run, in a few words."""
        if not self.plan.periodic:
            missed, drift = figures["end_error_m"], figures["yaw_drift_deg"]
            return f"ends {missed:.2g} m and {abs(drift):.2g} deg from the plan's end"
        done = f"{figures['cycles_upright']} of {self.problem.cycles} cycles"
        if not figures["planned_stride_m"]:
            return done
        return f"{done}, {figures['stride_share']:.0%} of the planned stride"

    def findings(self, data: xr.Dataset, figures: dict) -> list[Finding]:
        """Findings of the verdict; on the plan's end where the run reached it."""
        plan, base = self.plan, data.base_position.values
        found, stride = open_loops(data, plan.height), figures.get("planned_stride_m")
        if stride is not None and abs(stride) > STEP * plan.height:
            pushed = self.problem.push != 0
            found += strides_of(figures["stride_m"], stride, pushed=pushed)
        elif plan.periodic:
            found.append(drifted(np.linalg.norm((base[-1] - base[0])[:2]), plan.height))
        elif self.end.ok:
            words = "it misses the plan's end by"
            found.append(drifted(figures["end_error_m"], plan.height, words))
        if self.end.ok and plan.periodic and "z" in self.axes:
            weight = self.model.summary.mass * gravity(self.robot.plant)
            load = data.foot_force.values[:, :, 2].sum(axis=1).mean()
            found.append(carried(float(load / weight)))
        if self.end.ok and not plan.periodic and abs(plan.turn) > TURN:
            share = 1 + np.radians(figures["yaw_drift_deg"]) / plan.turn
            words = f"it makes {share:.0%} of its turn"
            found.append(asked("turn missed", float(share), words))
        planned = np.array([plan.at(t).q for t in data.time.values])
        off = self._tilt(data.position.values, planned)
        found.append(tilted(off.max()))
        limits, names = data.input_limit.values, data.input_name.values
        found += saturated(data.input.values, limits, names)
        return found + too_fast(data, self.robot.plant.GetVelocityUpperLimits())

    def metrics(self, data: xr.Dataset) -> dict:
        """Figures of the run."""
        problem, mass = self.problem, self.model.summary.mass
        return {
            **track_metrics(data, self.plan, mass * gravity(self.robot.plant)),
            "friction": self.friction,
            "ground": type(problem.ground).__name__,
            "feedback": type(problem.feedback).__name__,
            "time_step_s": self.plant.time_step,
        }

    def verdict(self, figures: dict, findings: list[Finding]) -> tuple[Verdict, str]:
        """The verdict, and one line on what happened."""
        came = self.reached(figures)
        said = came if self.end.ok else f"{self.end.message}; {came}"
        return judged(replace(self.end, message=said), findings, self.doing)


def track_metrics(data: xr.Dataset, plan: Reference, weight: float) -> dict:
    """Figures of a run in SI.

    Args:
        data: dataset of the run, with base_position, base_rpy, sole_velocity,
            foot_force, input, input_limit and power.
        plan: the executed plan, in SI.
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
    limits = data.input_limit.values
    share = np.abs(data.input.values) / np.where(limits > 0, limits, np.inf)
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
