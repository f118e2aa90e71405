"""Refine a gait of HAMR-VI on the robot: plan, execute, learn, plan again.

    better = refine(Refinement(plan, rounds=4))
    run = track(Tracking(better))

Between two executions of a plan its feed-forward is learned from two figures that can
be measured on the robot, the stride and the yaw a cycle. The motion that is asked of an
actuator about its mean grows by a factor s: its voltage V about the middle of range,
and with it what the controller would add for the larger motion l of its leg,

    V_fed = V_b/2 + s (V - V_b/2) + (s - 1) (Kp (l - mean l) + Kd dl/dt)

First all factors follow the stride, and those of the swings the yaw, as long as that
helps: s <- s goal/stride, and (1 + TRIM yaw) times as much on the left, (1 - TRIM yaw)
on the right. Then single moves are tried in turn (:data:`MOVES`) and kept if better.

The plan itself is made again from the executed cycle (`WarmStart.run`). What is
asked of the planner may exceed the goal: that is the outer loop of the stride.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import KW_ONLY, replace
from functools import cached_property
from typing import Annotated

import numpy as np

from drakebots.core.checks import between, one_of, positive, whole
from drakebots.core.errors import InvalidInput
from drakebots.core.fields import checked
from drakebots.core.run import Progress
from drakebots.core.stages import timed
from drakebots.results import Result
from drakebots.robots.hamr.model import ACTUATORS, BIAS
from drakebots.robots.hamr.plan import GaitProblem, WarmStart, problem_of
from drakebots.robots.hamr.plan import plan as plan_gait
from drakebots.robots.hamr.reference import FEEDFORWARD, as_reference
from drakebots.robots.hamr.track.feedback import Gains, feedback_signs
from drakebots.robots.hamr.track.track import CONTACTS, Tracking, track
from drakebots.trajopt import Add, RefineOptions, Trial, best_of, refine_plan

TRIM = 0.02
"""Trim per yaw a cycle [1/deg]: feet 35 mm apart turn by 33 degrees per unit of trim
at strides of 10 mm, and the feedback undoes some of it."""

STRAIGHT = 0.5
"""Yaw a cycle without fault [deg]."""

_YAW = 0.1
"""Cost of a degree of yaw beyond that, in the score."""

_CHANGE = 1.2
"""Largest change of a factor between two executions."""

_NEAR = 0.97
"""Share of the goal from which single moves are tried at once."""

_SAME = 0.01
"""Factors that differ by less count as tried."""

_FACTORS = (0.6, 2.0)
"""Range of the factors."""

_SWING = np.array([name[2] == "s" for name in ACTUATORS], float)
_LEFT = np.array([1.0 if name[1] == "L" else -1.0 for name in ACTUATORS])
_FORE = np.array([1.0 if name[0] == "F" else -1.0 for name in ACTUATORS])

MOVES = {
    "fore": 0.1 * _SWING * _FORE,
    "hind": -0.1 * _SWING * _FORE,
    "left": 0.03 * _SWING * _LEFT,
    "right": -0.03 * _SWING * _LEFT,
    "higher": 0.15 * (1 - _SWING),
    "lower": -0.15 * (1 - _SWING),
    "larger": 0.07 * np.ones(8),
    "smaller": -0.07 * np.ones(8),
}
"""Relative changes of the actuators' factors that are tried (8,)."""


@checked()
class Refinement(RefineOptions):
    """A gait of HAMR to refine by executing it."""

    plan: Result
    """Plan of a gait."""
    _: KW_ONLY
    goal: Annotated[float | None, between(0, 0.05, "m", open_ends=True)] = None
    """Stride that executions are to make, by default the one that the plan was asked
    for."""
    cycles: Annotated[int, whole(1)] = 15
    """Number of cycles of an execution, after it is faded in from rest."""
    contact: Annotated[str, one_of("contact model", CONTACTS)] = "sap"
    """Contact model of the executions, sap (Drake's) or stepping (hard contact)."""
    clearance: Annotated[float | None, between(0, 0.01, "m")] = None
    """Height that feet pass above the ground in the middle of their swings in what is
    planned again, instead of the plan's."""
    tilt: Annotated[float | None, positive("rad")] = None
    """Bound of roll, pitch and yaw in what is planned again, instead of the plan's."""

    def __post_init__(self):
        super().__post_init__()
        _ = self.gait

    @cached_property
    def gait(self) -> GaitProblem:
        """The problem that the plan answers."""
        if self.plan.kind != "hamr.plan" or not self.plan.metrics["periodic"]:
            raise InvalidInput(
                f"cannot refine a {self.plan.kind} that is no gait; give a planned gait"
            )
        return problem_of(self.plan)


@timed("load")
def refine(
    problem: Refinement, *, progress: Progress | None = None, add: Add | None = None
) -> Result:
    """Refines a gait; returns the best plan even when cut short.

    Args:
        problem: the gait, and how long to go on.
        progress: called by all planning and execution, and as progress("refine",
            rounds done, rounds).
        add: adds terms of your own to every program that is solved again; see
            :mod:`~drakebots.trajopt.plan_program`.

    Returns:
        The best plan, of kind "hamr.plan", with the voltages with which to execute it
        (`feedforward`) if they are not its own. Its metrics report its execution
        (executed_stride_mm, executed_yaw_deg, executed_slip, ...) and of every trial
        (trials). It is refused (failed) if it cannot be executed.
    """
    robot = _Robot(problem, progress, add)
    refined = refine_plan(robot, problem.plan, robot.goal, problem, progress=progress)
    facts = _executed(refined.best.run) | {"refine_seconds": refined.end.wall}
    return refined.result(robot.goal, facts, _row, unit="mm")


class _Robot:
    """HAMR as the loop sees it."""

    def __init__(self, problem: Refinement, progress, add):
        self._problem, self._gait = problem, problem.gait
        self._progress, self._add = progress, add
        self.goal = problem.goal or problem.gait.stride

    def execute(self, plan: Result) -> Result:
        own = self._problem
        posed = Tracking(plan, cycles=own.cycles, contact=own.contact)
        return track(posed, progress=self._progress)

    def reached(self, run: Result) -> float:
        return 1e-3 * run.metrics["stride_mm_per_cycle"]

    def score(self, run: Result) -> float:
        if run.metrics["cycles"] < self._problem.cycles:
            return -np.inf
        yaw = abs(run.metrics["yaw_deg_per_cycle"])
        missed = abs(1 - self.reached(run) / self.goal)
        return 1 - missed - _YAW * max(0.0, yaw - STRAIGHT)

    def learn(self, trials: Sequence[Trial]) -> Result | None:
        best = best_of(trials)
        tried = [learned(trial.plan) for trial in trials]
        s = learned(best.plan)
        if best is trials[-1] and best.reached < _NEAR * self.goal:
            larger = min(self.goal / max(best.reached, 1e-3 * self.goal), _CHANGE)
            yaw = best.run.metrics["yaw_deg_per_cycle"]
            return fed(best.plan, larger * s * (1 + TRIM * yaw * _SWING * _LEFT))
        for move in MOVES.values():
            new = np.clip(s * (1 + move), *_FACTORS)
            if min(np.abs(new - old).max() for old in tried) > _SAME:
                return fed(best.plan, new)
        return None

    def plan_again(self, trial: Trial, asked: float) -> Result:
        own = {name: getattr(self._problem, name) for name in ("clearance", "tilt")}
        given = {name: value for name, value in own.items() if value is not None}
        start = WarmStart(run=trial.run)
        posed = replace(self._gait, start=start, stride=asked, **given)
        plan = plan_gait(posed, add=self._add)
        return fed(plan, learned(trial.plan)) if plan.ok else plan


# --- the feed-forward -------------------------------------------------------


def fed(plan: Result, factors: np.ndarray) -> Result:
    """The plan with these factors (8,) of the actuators' motion in its feed-forward."""
    own, larger = _larger(plan)
    factors = np.clip(factors, *_FACTORS)
    given = np.clip(own + (factors - 1) * larger, 0.0, BIAS)
    fed = ("sample", "actuator"), given, {"units": "V"}
    return replace(plan, data=plan.data.assign({FEEDFORWARD: fed}))


def learned(plan: Result) -> np.ndarray:
    """The factors (8,) of a plan's feed-forward, fitted where it is not clipped; 1
    where it is the plan's own voltages."""
    if FEEDFORWARD not in plan.data:
        return np.ones(len(ACTUATORS))
    own, larger = _larger(plan)
    given = as_reference(plan).voltages
    free = larger * ((given > 0) & (given < BIAS))
    return 1 + ((given - own) * free).sum(axis=0) / np.square(free).sum(axis=0)


def _larger(plan: Result) -> tuple[np.ndarray, np.ndarray]:
    """A plan's own voltages (N-1, 8) [V], and what is added to them for a motion twice
    as large."""
    data = plan.data.drop_vars(FEEDFORWARD, errors="ignore")
    own = as_reference(replace(plan, data=data))
    times = (own.time[:-1] + own.time[1:]) / 2
    legs = np.array([own.legs_at(t) for t in times])
    rates = np.array([own.leg_velocities_at(t) for t in times])
    gains = Gains()
    added = gains.kp * (legs - legs.mean(axis=0)) + gains.kd * rates
    larger = feedback_signs() * added[:, :, [0, 2]].reshape(-1, 8)
    return own.voltages, own.voltages - 0.5 * BIAS + larger


def _executed(run: Result) -> dict:
    """Figures of the best execution."""
    found = run.metrics.get
    return {
        "executed_stride_mm": found("stride_mm_per_cycle"),
        "executed_settled_mm": found("settled_stride_mm"),
        "executed_yaw_deg": found("yaw_deg_per_cycle"),
        "executed_slip": found("slip"),
        "executed_loaded_slip": found("loaded_slip"),
        "executed_clearance_mm": found("clearance_min_mm"),
    }


def _row(trial: Trial) -> dict:
    return {
        "planned_mm": trial.plan.metrics["stride_mm"],
        "factors": learned(trial.plan).tolist(),
        "yaw_deg": trial.run.metrics.get("yaw_deg_per_cycle"),
    }
