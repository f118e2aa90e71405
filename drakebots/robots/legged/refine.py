"""Refine a walk of any legged robot by executing it: plan, execute, learn, plan again.

    better = refine(Refinement(walk, feedback=Servos()))

The walk is planned again for as much more advance as executions fall short of, in the
robot's own motion (a gait's program is solved anew in a fraction of a second, so the
search does not start from the run). Between two executions the inputs that the robot
was given on average in the same phase of its last cycles, feedback included, become
the plan's: what feedback had to add once is fed forward from then on.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import KW_ONLY, replace
from functools import cached_property
from typing import Annotated

import numpy as np

from drakebots.control import ContactModel, Sap
from drakebots.core.checks import positive, whole
from drakebots.core.convert import build
from drakebots.core.errors import InvalidInput
from drakebots.core.fields import checked, declared
from drakebots.core.run import Progress
from drakebots.core.stages import timed
from drakebots.formats import model_of
from drakebots.multibody import Flat
from drakebots.results import Result
from drakebots.robots.legged.track import Tracking, track
from drakebots.robots.legged.whole_body import Feedback, WholeBody
from drakebots.trajopt import Add, RefineOptions, Trial, best_of, refine_plan
from drakebots.trajopt.locomotion import LocomotionProblem, plan_locomotion


@checked()
class Refinement(RefineOptions):
    """A walk of a legged robot to refine by executing it."""

    plan: Result
    """Plan of a walk, of kind "locomotion.plan"."""
    _: KW_ONLY
    goal: Annotated[float | None, positive("m")] = None
    """Advance a cycle that executions are to make, by default the plan's."""
    cycles: Annotated[int, whole(1)] = 5
    """Number of cycles of an execution."""
    ground: ContactModel = Sap()
    """Ground of the executions: Sap or Hard."""
    feedback: Feedback = WholeBody()
    """Feedback: WholeBody control or Servos at the joints."""

    def __post_init__(self):
        super().__post_init__()
        _ = self.walk

    @cached_property
    def walk(self) -> LocomotionProblem:
        """The problem that the plan answers, of the model as it is loaded now."""
        options = self.plan.provenance.get("options", {})
        own = {k: v for k, v in options.items() if k in declared(LocomotionProblem)}
        if self.plan.kind != "locomotion.plan" or "Walk" not in own.get("motion", ()):
            raise InvalidInput(
                f"cannot refine a {self.plan.kind} that is no walk; give a plan of one "
                "(drakebots plan ROBOT --forward 0.3)"
            )
        walk = build(LocomotionProblem, own)
        if not isinstance(walk.terrain, Flat):
            name = type(walk.terrain).__name__
            raise InvalidInput(f"cannot refine a walk on {name}; give one on Flat")
        return replace(walk, model=model_of(self.plan))


@timed("load")
def refine(
    problem: Refinement, *, progress: Progress | None = None, add: Add | None = None
) -> Result:
    """Refines a walk; returns the best plan even when cut short.

    Args:
        problem: the walk, and how long to go on.
        progress: called by all planning and execution, and as progress("refine",
            rounds done, rounds).
        add: adds terms of your own to every program that is solved again; see
            :mod:`~drakebots.trajopt.plan_program`.

    Returns:
        The best plan, of kind "locomotion.plan". Its metrics report its execution
        (executed_m) and of every trial (trials).
    """
    robot = _Robot(problem, progress, add)
    refined = refine_plan(robot, problem.plan, robot.goal, problem, progress=progress)
    return refined.result(robot.goal, {"executed_m": refined.best.reached})


class _Robot:
    """A legged robot as the loop sees it."""

    def __init__(self, problem: Refinement, progress, add):
        self._problem, self._progress, self._add = problem, progress, add
        self._planned = float(problem.plan.metrics["moved"]["x"])
        self.goal = problem.goal or self._planned

    def execute(self, plan: Result) -> Result:
        names = ("cycles", "ground", "feedback")
        own = {name: getattr(self._problem, name) for name in names}
        return track(Tracking(plan, **own), progress=self._progress)

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
        walk, motion = self._problem.walk, self._problem.walk.motion
        forward = self._planned if motion.forward is None else motion.forward
        # A walk's plan may hold several cycles.
        motion = replace(motion, forward=forward * asked / self._planned)
        posed = replace(walk, motion=motion)
        return plan_locomotion(posed, progress=self._progress, add=self._add)
