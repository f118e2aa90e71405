"""Refine a walk of any legged robot by executing it: plan, execute, learn, plan again.

    better = refine(Refinement(walk, feedback="servos"))

The walk is planned again for as much more advance as executions fall short of, in the
robot's own motion (a gait's program is solved anew in a fraction of a second, so the
search does not start from the run). Between two executions the inputs that the robot
was given on average in the same phase of its last cycles, feedback included, become
the plan's: what feedback had to add once is fed forward from then on.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, fields, replace
from functools import cached_property
from typing import Any

import numpy as np

from drakebots.core.checks import check, check_types, one_of, optional, positive, whole
from drakebots.core.errors import InvalidInput
from drakebots.core.run import Progress
from drakebots.core.stages import spent, timed
from drakebots.model import model_of
from drakebots.results import Result
from drakebots.robots.legged.grounds import GROUNDS
from drakebots.robots.legged.track import FEEDBACKS, Tracking, track
from drakebots.trajopt import Flat, Refined, RefineOptions, Trial, best_of, refine_plan
from drakebots.trajopt.locomotion import (
    LocomotionProblem,
    LocomotionWeights,
    plan_locomotion,
)


@dataclass(frozen=True)
class Refinement(RefineOptions):
    """A walk of a legged robot to refine by executing it.

    Attributes:
        plan: plan of a walk, of kind "locomotion.plan".
        goal: advance a cycle that executions are to make [m], by default the plan's.
        cycles: number of cycles of an execution.
        ground: ground of the executions, "sap" or "hard".
        feedback: "whole-body" control or "servos" at the joints.
    """

    plan: Result
    _: KW_ONLY
    goal: float | None = None
    cycles: int = 5
    ground: str = "sap"
    feedback: str = "whole-body"

    def __post_init__(self):
        check_types(self, "")
        super().__post_init__()
        check(
            self,
            "",
            goal=optional(positive("m")),
            cycles=whole(1),
            ground=one_of("ground", GROUNDS),
            feedback=one_of("feedback", FEEDBACKS),
        )
        _ = self.walk

    @cached_property
    def walk(self) -> LocomotionProblem:
        """The problem that the plan answers, of the model as it is loaded now."""
        options = self.plan.provenance.get("options", {})
        if self.plan.kind != "locomotion.plan" or options.get("kind") != "walk":
            raise InvalidInput(
                f"cannot refine a {self.plan.kind} that is no walk; give a plan of one "
                "(drakebots plan ROBOT --forward 0.3)"
            )
        if options["terrain"] != repr(Flat()):
            raise InvalidInput(
                f"cannot refine a walk on {options['terrain']}; give one on flat ground"
            )
        posed: dict[str, Any] = {
            f.name: _plain(options[f.name])
            for f in fields(LocomotionProblem)
            if f.name in options and f.name not in ("model", "terrain", "weights")
        }
        weights = dict(options["weights"])
        weights["slack"] = tuple(weights["slack"])
        posed["weights"] = LocomotionWeights(**weights)
        return LocomotionProblem(model_of(self.plan), **posed)


@timed("load")
def refine(problem: Refinement, *, progress: Progress | None = None) -> Result:
    """Refines a walk; returns the best plan even when cut short.

    Args:
        problem: the walk, and how long to go on.
        progress: called by all planning and execution, and as progress("refine",
            rounds done, rounds).

    Returns:
        The best plan, of kind "locomotion.plan". Its metrics tell of its execution
        (executed_m) and of every trial (trials).
    """
    robot = _Robot(problem, progress)
    refined = refine_plan(robot, problem.plan, robot.goal, problem, progress=progress)
    return _result(robot, refined)


class _Robot:
    """A legged robot as the loop sees it."""

    def __init__(self, problem: Refinement, progress: Progress | None):
        self._problem, self._progress = problem, progress
        self._planned = float(problem.plan.metrics["moved"]["x"])
        self.goal = problem.goal or self._planned

    def execute(self, plan: Result) -> Result:
        own = self._problem
        posed = Tracking(
            plan, cycles=own.cycles, ground=own.ground, feedback=own.feedback
        )
        return track(posed, progress=self._progress)

    def reached(self, run: Result) -> float:
        return run.metrics["stride_m_per_cycle"]

    def score(self, run: Result) -> float:
        if run.metrics["cycles_upright"] < self._problem.cycles:
            return -np.inf
        return 1 - abs(1 - self.reached(run) / self.goal)

    def learn(self, trials: Sequence[Trial]) -> Result | None:
        best = best_of(trials)
        if best is not trials[-1]:
            return None
        plan, run = best.plan, best.run
        duration, cycles = run.metrics["period_s"], run.metrics["cycles_upright"]
        knots = plan.data.time.values - plan.data.time.values[0]
        middles = (knots[:-1] + knots[1:]) / 2
        time, inputs = run.data.time.values, run.data.input.values
        later = range(cycles // 2, cycles)
        given = [
            [np.interp(c * duration + middles, time, row) for row in inputs.T]
            for c in later
        ]
        fed = np.mean(given, axis=0).T
        # The last knot's input is never used.
        values = np.vstack([fed, fed[-1:]])
        data, old = plan.data, plan.data.input
        data["input"] = (old.dims, values, old.attrs)
        return replace(plan, data=data)

    def plan_again(self, trial: Trial, asked: float) -> Result:
        walk = self._problem.walk
        forward = self._planned if walk.forward is None else walk.forward
        # A walk's plan may hold several cycles.
        posed = replace(walk, forward=forward * asked / self._planned)
        return plan_locomotion(posed, progress=self._progress)


def _result(robot: _Robot, refined: Refined) -> Result:
    """The best plan, and what was found on the way to it."""
    best, end = refined.best, refined.end
    facts = {
        "goal_m": robot.goal,
        "asked_m": best.asked,
        "executed_m": best.reached,
        "trials": [_row(trial) for trial in refined.trials],
        "refine_notes": list(refined.notes),
    }
    return replace(
        best.plan,
        verdict=end.verdict,
        message=f"{end.message}: executed {best.reached:.4g} m a cycle, "
        f"{refined.first.reached:.4g} before",
        metrics={**best.plan.metrics, **facts},
        timings=spent(),
    )


def _row(trial: Trial) -> dict:
    return {
        "round": trial.round,
        "learned": trial.learned,
        "asked_m": trial.asked,
        "executed_m": trial.reached,
        "score": trial.score if np.isfinite(trial.score) else None,
    }


def _plain(value: Any) -> Any:
    return dict(value) if isinstance(value, Mapping) else value
