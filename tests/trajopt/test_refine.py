"""The loop that refines plans, on robots whose answers are known in closed form."""

from __future__ import annotations

from dataclasses import dataclass, field

import pytest
import xarray as xr

from drakebots.core.errors import InvalidInput
from drakebots.core.run import Verdict
from drakebots.results import Result
from drakebots.trajopt import RefineOptions, Trial, best_of, refine_plan

GOAL = 0.01


def result(kind: str, verdict=Verdict.SUCCESS, **metrics) -> Result:
    data = xr.Dataset(coords={"time": ("time", [0.0, 1.0], {"units": "s"})})
    return Result(kind, "robot", verdict, "", data, {}, {}, metrics, {})


@dataclass
class Robot:
    """Executes `share` of what is planned, times the gain of the feed-forward.

    Attributes:
        share: executed advance per planned advance.
        top: largest advance that it executes [m].
        learns: factor on the gain that is learned from an execution; None learns
            nothing.
        fails: number of plans that cannot be found before the next is.
        log: what was asked for [m].
    """

    share: float = 0.8
    top: float = 1.0
    learns: float | None = None
    fails: int = 0
    log: list[float] = field(default_factory=list)

    def execute(self, plan: Result) -> Result:
        made = self.share * plan.metrics["advance"] * plan.metrics["gain"]
        return result("run", made=min(made, self.top))

    def reached(self, run: Result) -> float:
        return run.metrics["made"]

    def score(self, run: Result) -> float:
        return 1 - abs(1 - run.metrics["made"] / GOAL)

    def learn(self, trials) -> Result | None:
        trial = best_of(trials)
        if self.learns is None or trial is not trials[-1]:
            return None
        gain = trial.plan.metrics["gain"] * self.learns
        return result("plan", advance=trial.plan.metrics["advance"], gain=gain)

    def plan_again(self, trial: Trial, asked: float) -> Result:
        self.log.append(asked)
        if self.fails:
            self.fails -= 1
            return result("plan", Verdict.FAILED, advance=asked, gain=1.0)
        return result("plan", advance=asked, gain=trial.plan.metrics["gain"])


def refined(robot: Robot, **options):
    plan = result("plan", advance=GOAL, gain=1.0)
    return refine_plan(robot, plan, GOAL, RefineOptions(**options))


def test_more_is_asked_until_the_goal_is_executed():
    robot = Robot(share=0.8)
    done = refined(robot, rounds=9)
    # From 0.8 of the goal: 10 % more a round, until 1/0.8 is asked.
    assert robot.log == pytest.approx([0.011, 0.0121, 0.0125])
    assert done.best.reached == pytest.approx(GOAL)
    assert done.end.ok and "reached" in done.end.message
    assert done.first.reached == pytest.approx(0.8 * GOAL)


def test_it_ends_when_executions_stop_growing():
    robot = Robot(share=0.8, top=0.9 * GOAL)
    done = refined(robot, rounds=20, patience=2)
    assert done.best.reached == pytest.approx(0.9 * GOAL)
    assert "stopped growing" in done.end.message
    assert len(robot.log) <= 5
    # Never more than this is asked of the planner.
    assert max(robot.log) <= 1.3 * GOAL * (1 + 1e-9)


def test_it_learns_between_executions():
    done = refined(Robot(share=0.8, learns=1.12), rounds=0, trials=3)
    assert [trial.learned for trial in done.trials] == [0, 1, 2]
    assert done.best.reached == pytest.approx(0.8 * 1.12**2 * GOAL)


def test_what_is_learned_is_dropped_where_it_is_worse():
    done = refined(Robot(share=0.8, learns=0.9), rounds=0, trials=5)
    assert len(done.trials) == 2
    assert done.best.learned == 0


def test_less_is_asked_after_a_plan_was_not_found():
    robot = Robot(share=0.8, fails=1)
    done = refined(robot, rounds=2)
    assert robot.log == pytest.approx([0.011, 0.011**0.5 * 0.01**0.5])
    assert len(done.notes) == 1 and "0.011 m" in done.notes[0]
    assert done.best.round == 1


def test_interrupted_work_keeps_the_best():
    class Interrupted(Robot):
        def plan_again(self, trial, asked):
            return result("plan", Verdict.INTERRUPTED, advance=asked, gain=1.0)

    done = refined(Interrupted())
    assert done.end.verdict is Verdict.INTERRUPTED
    assert done.best.reached == pytest.approx(0.8 * GOAL)


@pytest.mark.parametrize("verdict", [Verdict.FAILED, Verdict.TIME_LIMIT])
def test_a_plan_that_cannot_be_executed(verdict):
    """Or could not in the time that was given."""

    class Broken(Robot):
        def execute(self, plan):
            return result("run", verdict)

        def score(self, run):
            return float("-inf")

    done = refined(Broken())
    assert done.end.verdict is verdict
    assert done.best.run.verdict is verdict and len(done.trials) == 1


def test_an_execution_that_makes_too_little_is_refined():
    """It is no success, but it came to its end: more is asked of it."""

    class Slow(Robot):
        def execute(self, plan):
            made = super().execute(plan).metrics["made"]
            return result("run", Verdict.FAILED, made=made)

    done = refined(Slow(share=0.4), rounds=3)
    assert len(done.trials) == 4 and done.best.reached > 0.4 * GOAL


@pytest.mark.parametrize(
    "change", [{"rounds": -1}, {"trials": 0}, {"patience": 0}, {"time_limit": 0.0}]
)
def test_bad_options_are_refused(change):
    with pytest.raises(InvalidInput, match=next(iter(change))):
        RefineOptions(**change)
