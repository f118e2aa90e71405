"""Refine a gait of HAMR-VI on the robot: plan, execute, learn, plan again.

    better = refine(Refinement(plan, rounds=4))
    run = track(Tracking(better))

Between two executions of a plan its feed-forward is learned from two figures that can
be measured on the robot, the stride and the yaw a cycle. About the middle of their
range the voltages become, with s = +1 on the left and -1 on the right,

    V = V_b/2 + gain (1 + s trim) (V_plan - V_b/2)        trim on the swings only

    gain <- gain * goal/stride      trim <- trim + TRIM * yaw

The plan itself is made again from the executed cycle (`GaitProblem.from_run`). What is
asked of the planner may exceed the goal: that is the outer loop of the stride.
"""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass, fields, replace
from functools import cached_property

import numpy as np

from drakebots.core.checks import between, check, one_of, optional, positive, whole
from drakebots.core.errors import InvalidInput
from drakebots.core.run import Progress
from drakebots.results import Result
from drakebots.robots.hamr.model import ACTUATORS, BIAS
from drakebots.robots.hamr.plan import GaitProblem, GaitWeights
from drakebots.robots.hamr.plan import plan as plan_gait
from drakebots.robots.hamr.reference import FEEDFORWARD
from drakebots.robots.hamr.track.track import CONTACTS, Tracking, track
from drakebots.trajopt import Refined, RefineOptions, Trial, refine_plan

TRIM = 0.02
"""Trim per yaw a cycle [1/deg]: feet 35 mm apart turn by 33 degrees per unit of trim
at strides of 10 mm, and the feedback undoes some of it."""

STRAIGHT = 0.5
"""Yaw a cycle without fault [deg]."""

_YAW = 0.1
"""What a degree of yaw beyond that costs of the score."""

_CHANGE = 1.12
"""Largest change of the gain between two executions."""

_GAINS = (0.7, 1.6)
"""Range of the gain."""

_RUN_ONLY = ("time_limit", "checkpoint", "resume", "from_run")
"""Fields of a problem that say how it was solved."""

_LEFT = np.array([1.0 if name[1] == "L" else -1.0 for name in ACTUATORS])
_SWING = np.array([name[2] == "s" for name in ACTUATORS], float)


@dataclass(frozen=True)
class Refinement(RefineOptions):
    """A gait of HAMR to refine by executing it.

    Attributes:
        plan: plan of a gait.
        goal: stride that executions are to make [m], by default the one that the
            plan was asked for.
        cycles: number of cycles of an execution, after it is faded in from rest.
        contact: contact model of the executions, sap (Drake's) or stepping (hard
            contact).
        clearance: height that feet pass above the ground in the middle of their
            swings [m] in what is planned again, instead of the plan's.
        tilt: bound of roll, pitch and yaw [rad] in what is planned again, instead of
            the plan's.
    """

    plan: Result
    _: KW_ONLY
    goal: float | None = None
    cycles: int = 15
    contact: str = "sap"
    clearance: float | None = None
    tilt: float | None = None

    def __post_init__(self):
        super().__post_init__()
        check(
            self,
            "",
            goal=optional(between(0, 0.05, "m", open_ends=True)),
            cycles=whole(1),
            contact=one_of("contact model", CONTACTS),
            clearance=optional(between(0, 0.01, "m")),
            tilt=optional(positive("rad")),
        )
        _ = self.gait

    @cached_property
    def gait(self) -> GaitProblem:
        """The problem that the plan answers."""
        if self.plan.kind != "hamr.plan" or not self.plan.metrics["periodic"]:
            raise InvalidInput(
                f"cannot refine a {self.plan.kind} that is no gait; give a planned gait"
            )
        known = {f.name for f in fields(GaitProblem)} - set(_RUN_ONLY)
        options = self.plan.provenance["options"]
        posed = {name: options[name] for name in known if name in options}
        weights = dict(options["weights"])
        weights["slack"] = tuple(weights["slack"])
        return GaitProblem(**posed | {"weights": GaitWeights(**weights)})


def refine(problem: Refinement, *, progress: Progress | None = None) -> Result:
    """Refines a gait; returns the best plan even when cut short.

    Args:
        problem: the gait, and how long to go on.
        progress: called by all planning and execution, and as progress("refine",
            rounds done, rounds).

    Returns:
        The best plan, of kind "hamr.plan", with the voltages that it is to be fed
        (`feedforward`) where they are not its own. Its metrics tell of its execution
        (executed_stride_mm, executed_yaw_deg, executed_slip, ...) and of every trial
        (trials). It is refused (failed) where it cannot be executed.
    """
    robot = _Robot(problem, progress)
    refined = refine_plan(robot, problem.plan, robot.goal, problem, progress=progress)
    return _result(problem, robot, refined)


class _Robot:
    """HAMR as the loop sees it."""

    def __init__(self, problem: Refinement, progress: Progress | None):
        self._problem, self._gait = problem, problem.gait
        self._progress = progress
        self.goal = problem.goal or problem.gait.stride

    def execute(self, plan: Result) -> Result:
        own = self._problem
        posed = Tracking(plan, cycles=own.cycles, contact=own.contact)
        return track(posed, progress=self._progress)

    def reached(self, run: Result) -> float:
        return 1e-3 * run.metrics["stride_mm_per_cycle"]

    def score(self, run: Result) -> float:
        yaw = abs(run.metrics["yaw_deg_per_cycle"])
        missed = abs(1 - self.reached(run) / self.goal)
        return 1 - missed - _YAW * max(0.0, yaw - STRAIGHT)

    def learn(self, trial: Trial) -> Result:
        gain, trim = learned(trial.plan)
        factor = self.goal / max(trial.reached, 1e-3 * self.goal)
        factor = min(max(factor, 1 / _CHANGE), _CHANGE)
        gain = min(max(gain * factor, _GAINS[0]), _GAINS[1])
        trim += TRIM * trial.run.metrics["yaw_deg_per_cycle"]
        return fed(trial.plan, gain, trim)

    def plan_again(self, trial: Trial, asked: float) -> Result:
        own = {name: getattr(self._problem, name) for name in ("clearance", "tilt")}
        given = {name: value for name, value in own.items() if value is not None}
        plan = plan_gait(replace(self._gait, from_run=trial.run, stride=asked, **given))
        return fed(plan, *learned(trial.plan)) if plan.ok else plan


# --- the feed-forward -------------------------------------------------------


def learned(plan: Result) -> tuple[float, float]:
    """Gain and trim of a plan's feed-forward; 1 and 0 where it is its voltages."""
    found = plan.metrics.get("feedforward", {})
    return found.get("gain", 1.0), found.get("trim", 0.0)


def fed(plan: Result, gain: float, trim: float) -> Result:
    """The plan with this gain and trim of its feed-forward."""
    middle = 0.5 * BIAS
    share = gain * (1 + trim * _LEFT * _SWING)
    voltages = middle + share * (plan.data.voltage.values[:-1] - middle)
    data = plan.data.assign(
        {
            FEEDFORWARD: (
                ("sample", "actuator"),
                np.clip(voltages, 0.0, BIAS),
                {"units": "V"},
            )
        }
    )
    facts = {"gain": gain, "trim": trim}
    return replace(plan, data=data, metrics={**plan.metrics, "feedforward": facts})


def _result(problem: Refinement, robot: _Robot, refined: Refined) -> Result:
    """The best plan, and what was found on the way to it."""
    best, end = refined.best, refined.end
    run = best.run.metrics
    facts = {
        "goal_mm": 1e3 * robot.goal,
        "asked_mm": 1e3 * best.asked,
        "executed_stride_mm": run.get("stride_mm_per_cycle"),
        "executed_settled_mm": _settled(run),
        "executed_yaw_deg": run.get("yaw_deg_per_cycle"),
        "executed_slip": run.get("slip"),
        "executed_loaded_slip": run.get("loaded_slip"),
        "executed_clearance_mm": run.get("clearance_min_mm"),
        "trials": [_row(trial) for trial in refined.trials],
        "refine_notes": list(refined.notes),
        "refine_seconds": end.wall,
    }
    first, last = (1e3 * trial.reached for trial in (refined.first, best))
    said = f"{end.message}: executed {last:.2f} mm a cycle, {first:.2f} before"
    return replace(
        best.plan,
        verdict=end.verdict if best.plan.ok else best.plan.verdict,
        message=said,
        metrics={**best.plan.metrics, **facts},
        timings={**best.plan.timings, "refine": end.wall},
    )


def _settled(metrics) -> float | None:
    """Mean stride of the last third of the cycles [mm]."""
    strides = metrics.get("stride_mm", ())
    return float(np.mean(strides[-max(1, len(strides) // 3) :])) if strides else None


def _row(trial: Trial) -> dict:
    gain, trim = learned(trial.plan)
    return {
        "round": trial.round,
        "learned": trial.learned,
        "asked_mm": 1e3 * trial.asked,
        "planned_mm": trial.plan.metrics["stride_mm"],
        "gain": gain,
        "trim": trim,
        "executed_mm": 1e3 * trial.reached,
        "yaw_deg": trial.run.metrics.get("yaw_deg_per_cycle"),
        "score": trial.score if np.isfinite(trial.score) else None,
    }
