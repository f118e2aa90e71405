"""Plan, execute, learn, plan again: the loop that refines a periodic plan on its robot.

    refined = refine_plan(robot, plan, goal=0.01)
    refined.best.plan

A plan through contact may be a true orbit and yet not hold: nothing feeds back the
body's pose, and the robot settles to another orbit. That orbit attracts, so a plan that
is made from it is close to one that holds. Each round of the loop does

    executed = execute(plan)
    a few times:  executed = execute(plan with a corrected feed-forward)
    asked    = asked * goal / executed          advance that the planner is asked for
    plan     = a new plan, from that execution

The loop ends when executions stop improving, and keeps the best plan. A
:class:`Refinable` has all that differs from robot to robot.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Annotated, Any, Protocol

from drakebots.core.checks import non_negative, positive, whole
from drakebots.core.fields import checked
from drakebots.core.run import Progress, RunEnd, Stop, Verdict, run_steps
from drakebots.core.stages import spent
from drakebots.core.units import si_factor
from drakebots.results import Result

MAX_ASKED = 1.3
"""Largest advance that the planner is asked for, as a multiple of the goal."""

_INTERRUPTED = "interrupted; the best is kept"

_STEP = 1.1
"""Largest factor by which the advance asked for changes from round to round."""


@dataclass(frozen=True)
class Trial:
    """A plan and its execution.

    Attributes:
        plan: the plan.
        run: its execution.
        asked: advance per cycle that the planner was asked for [m].
        reached: executed advance per cycle [m].
        score: quality of the execution, which the loop raises: 1 if it reaches the goal
            without fault, -inf if it did not come to its end.
        round: number of new plans before this one.
        learned: number of corrections of the feed-forward since it was planned.
    """

    plan: Result
    run: Result
    asked: float
    reached: float
    score: float
    round: int = 0
    learned: int = 0

    @property
    def came(self) -> bool:
        """Whether the execution came to its end."""
        return math.isfinite(self.score)


class Refinable(Protocol):
    """A robot whose plans can be refined: what the loop calls."""

    def execute(self, plan: Result) -> Result:
        """The execution of a plan."""

    def reached(self, run: Result) -> float:
        """The executed advance per cycle [m]."""

    def score(self, run: Result) -> float:
        """Quality of an execution; 1 if it reaches the goal without fault, -inf if it
        did not come to its end. It may come to its end and be no success, having made
        too little of the plan: that is what refining is for."""

    def learn(self, trials: Sequence[Trial]) -> Result | None:
        """The plan with a corrected feed-forward; None if there is nothing to correct.

        Args:
            trials: executions of the plan so far, the first without a correction.
        """

    def plan_again(self, trial: Trial, asked: float) -> Result:
        """A new plan from an execution, for an advance of `asked` per cycle [m]."""


@checked(kw_only=True)
class RefineOptions:
    """Options for the end of the loop.

    Raises:
        InvalidInput: for a value out of its range.
    """

    rounds: Annotated[int, whole(0)] = 2
    """Largest number of new plans."""
    trials: Annotated[int, whole(1)] = 8
    """Largest number of executions of one plan; between them its feed-forward is
    corrected."""
    enough: Annotated[float, positive()] = 0.99
    """Score that ends the loop."""
    growth: Annotated[float, non_negative()] = 0.005
    """Smallest growth of the score that counts."""
    patience: Annotated[int, whole(1)] = 2
    """Number of rounds in a row without growth that ends the loop."""
    time_limit: Annotated[float | None, positive("s")] = None
    """Limit of the wall time, checked between rounds."""


@dataclass(frozen=True)
class Refined:
    """The outcome of the loop.

    Attributes:
        trials: every execution, in order; the first is that of the given plan.
        end: end of the loop.
        notes: new plans that failed, one line each.
    """

    trials: Sequence[Trial]
    end: RunEnd
    notes: Sequence[str]

    @property
    def best(self) -> Trial:
        """The best execution."""
        return best_of(self.trials)

    @property
    def first(self) -> Trial:
        """The execution of the plan that was given."""
        return self.trials[0]

    def result(
        self,
        goal: float,
        facts: Mapping[str, Any] = MappingProxyType({}),
        row: Callable[[Trial], Mapping[str, Any]] = lambda trial: {},
        *,
        unit: str = "m",
    ) -> Result:
        """The best plan, and what was found on the way to it.

        Args:
            goal: desired advance per cycle of executions [m].
            facts: further metrics.
            row: further figures of a trial.
            unit: unit of lengths in metrics, in whose names it stands.
        """
        best, size = self.best, si_factor(unit)

        def figures(trial: Trial) -> dict[str, Any]:
            return {
                "round": trial.round,
                "learned": trial.learned,
                f"asked_{unit}": trial.asked / size,
                f"executed_{unit}": trial.reached / size,
                "score": trial.score if trial.came else None,
                **row(trial),
            }

        found = {
            f"goal_{unit}": goal / size,
            f"asked_{unit}": best.asked / size,
            "trials": [figures(trial) for trial in self.trials],
            "refine_notes": list(self.notes),
            **facts,
        }
        last, first = (trial.reached / size for trial in (best, self.first))
        return replace(
            best.plan,
            verdict=self.end.verdict if best.plan.ok else best.plan.verdict,
            message=f"{self.end.message}: executed {last:.4g} {unit} a cycle, "
            f"{first:.4g} before",
            metrics={**best.plan.metrics, **found},
            timings=spent(),
        )


def refine_plan(
    robot: Refinable,
    plan: Result,
    goal: float,
    options: RefineOptions = RefineOptions(),
    *,
    progress: Progress | None = None,
) -> Refined:
    """Refines a plan; returns what was reached even when it is cut short.

    Args:
        robot: executes, learns and plans.
        plan: plan to start from.
        goal: desired advance per cycle of executions [m].
        options: conditions that end the loop.
        progress: called as progress("refine", rounds done, rounds).

    Returns:
        The trials. If not even the given plan could be executed, its failed execution
        is the only one.
    """
    loop = _Loop(robot, plan, goal, options)
    end = run_steps(
        loop.round,
        options.rounds + 1,
        stage="refine",
        progress=progress,
        time_limit=options.time_limit,
        success=f"planned again {options.rounds} times",
    )
    return Refined(tuple(loop.trials), end, tuple(loop.notes))


class _Loop:
    """The state of the loop between two rounds; arguments as of :func:`refine_plan`."""

    def __init__(self, robot: Refinable, plan: Result, goal: float, options):
        self._robot, self._plan, self._goal = robot, plan, goal
        self._options, self._asked = options, goal
        self._idle = self._failures = 0
        self.trials: list[Trial] = []
        self.notes: list[str] = []

    def round(self, k: int) -> Stop | None:
        """Round k = 1, 2, ...; the first executes the given plan."""
        before = best_of(self.trials) if self.trials else None
        if before is not None:
            plan = self._planned_again()
            if plan.verdict is Verdict.INTERRUPTED:
                return Stop(Verdict.INTERRUPTED, _INTERRUPTED)
            if not plan.ok:
                self._failures += 1
                self.notes.append(f"asked for {self._asked:.4g} m: {plan.message}")
                return self._judge(before)
            self._plan = plan
        return self._try_out() or self._judge(before)

    def _planned_again(self) -> Result:
        """A new plan, from the best execution of the last plan.

        Executions of earlier plans may be better, but would lead to the same plan once
        more. After a failure the planner is asked for a smaller change.
        """
        last = [trial for trial in self.trials if trial.round == self.trials[-1].round]
        start = best_of(last)
        start = start if start.came else best_of(self.trials)
        factor = self._goal / max(start.reached, 1e-3 * self._goal)
        factor = min(max(factor, 1 / _STEP), _STEP) ** (0.5**self._failures)
        self._asked = min(start.asked * factor, MAX_ASKED * self._goal)
        return self._robot.plan_again(start, self._asked)

    def _try_out(self) -> Stop | None:
        """Executes the plan, then again with feed-forwards learned from executions."""
        plan: Result | None = self._plan
        number = self.trials[-1].round + 1 if self.trials else 0
        for learned in range(self._options.trials):
            trial = self._executed(plan, number, learned)
            self.trials.append(trial)
            if trial.run.verdict is Verdict.INTERRUPTED:
                return Stop(Verdict.INTERRUPTED, _INTERRUPTED)
            ended = learned == 0 and not trial.came
            if ended or trial.score >= self._options.enough:
                return None
            plan = self._robot.learn(self.trials[-1 - learned :])
            if plan is None:
                return None
        return None

    def _executed(self, plan: Result, number: int, learned: int) -> Trial:
        run = self._robot.execute(plan)
        score = self._robot.score(run)
        reached = self._robot.reached(run) if math.isfinite(score) else 0.0
        return Trial(plan, run, self._asked, reached, score, number, learned)

    def _judge(self, before: Trial | None) -> Stop | None:
        best, options = best_of(self.trials), self._options
        if not best.came:
            if best.run.verdict is Verdict.TIME_LIMIT:
                return Stop(Verdict.TIME_LIMIT, best.run.message)
            return Stop(Verdict.FAILED, f"cannot be executed: {best.run.message}")
        if best.score >= options.enough:
            return Stop(Verdict.SUCCESS, f"reached {best.reached:.4g} m a cycle")
        if before is not None:
            grown = best.score > before.score + options.growth
            self._idle = 0 if grown else self._idle + 1
        if self._idle >= options.patience:
            return Stop(Verdict.SUCCESS, "what is executed stopped growing")
        return None


def best_of(trials: Sequence[Trial]) -> Trial:
    """The trial with the largest score."""
    return max(trials, key=lambda trial: trial.score)
