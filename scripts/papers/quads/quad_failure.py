"""The paper's failure case: the monster with doubled mass, and other footfalls.

Section 7 proposes "the foot plan sampling step in [36]". Here this is a search over the
duty factor and period of the gait (and with them the lengths of the strides), in the
order of their distance from the gait that failed: each candidate is tried with the
space-time program, the feasible ones with the step-by-step plan too, until both agree.

A module without a command: `quad_experiments.py` runs it.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from quad_setting import Outcome, Setting, Trial, row, trial, trial_facts
from quad_variant import variant

from drakebots.core.errors import DrakebotsError
from drakebots.robots import quads
from drakebots.robots.quads.motion import (
    MotionInput,
    leg_height,
    library_motion,
    stride_length,
)
from drakebots.robots.quads.robot import PlannedRobot, load_planned
from drakebots.robots.quads.space_time import SpaceTimePlan, plan_space_time

SPEED = 0.45
TRIES = 8
"""Largest number of footfall patterns to try."""
OTHER = "another footfall"
"""Name of the best trial with another footfall: the one nearest to its motion."""


def failure(setting: Setting) -> Outcome:
    """Doubled mass: does the trot fail, and does another footfall repair it?"""
    path = variant(setting.model, setting.folder / "heavier", mass=2.0)
    rows, facts, trials = [], {}, {}
    robot = load_planned(path)
    rows.append(row("mass [kg]", "2 x 11.87", f"{robot.mass:.2f}"))
    found, facts["doubled"] = _attempt(setting, path)
    if found is not None:
        trials["doubled"] = found
    rows.append(
        row(
            "trot at 0.45 m/s, mass doubled",
            "COP violated in space-time, frames unstable",
            facts["doubled"]["message"],
        )
    )
    facts["samples"] = []
    problem = _problem(setting, path, robot)
    tries = 2 if setting.quick else TRIES
    for duty, period in list(samples(robot, SPEED))[1 : tries + 1]:
        if problem is None:
            break
        sample = try_sample(problem, SPEED, duty, period, time_limit=setting.time_limit)
        one: dict[str, Any] = {
            "duty": duty,
            "period_s": period,
            "space_time": sample.ok,
            "message": sample.message,
        }
        if sample.ok:
            again = problem.following(sample.motion)
            name = f"trot_heavier_{100 * duty:.0f}_{1e3 * period:.0f}"
            plan = setting.stored(name, lambda p, a=again: quads.plan(a, path=p))
            tried = Trial(name, plan)
            one["frames"] = trial_facts(tried)
            one["message"] = _steps(tried)
            if _gap(tried) < _gap(trials.get(OTHER)):
                trials[OTHER] = tried
        facts["samples"].append(one)
        rows.append(
            row(
                f"duty {duty:.2f}, period {period:.2f} s",
                "proposed, not tried",
                one["message"],
            )
        )
        if OTHER in trials and trials[OTHER].plan.ok:
            break
    verdict, facts["repaired"] = _verdict(trials)
    rows.append(row("does another footfall repair it?", "might", verdict))
    return Outcome("Failure case: doubled mass", rows, trials, facts)


def _steps(found: Trial) -> str:
    """End of the kept step-by-step plan, and its distance from its motion."""
    text = f"steps: {found.stage['frames_message']}"
    if not found.whole:
        return text
    facts = trial_facts(found)
    return f"{text}, difference {facts['difference']:.3g}, {facts['speed_m_s']:.2f} m/s"


def _gap(found: Trial | None) -> float:
    """Difference of both plans; infinite for one that is not complete."""
    if found is None or not found.whole:
        return math.inf
    return trial_facts(found)["difference"]


def _verdict(trials: Mapping[str, Trial]) -> tuple[str, bool]:
    """In words, and whether both plans of another footfall agree."""
    best, own = trials.get(OTHER), trials.get("doubled")
    if best is None:
        return "no, not among those tried", False
    if best.plan.ok:
        return "yes", True
    if _gap(own) == math.inf:
        return "in part: it does not fall, but does not follow the plan either", False
    return f"no: the nearest is {_gap(best):.3g} from its plan, too far", False


def _problem(setting, path, robot) -> quads.Problem | None:
    """The problem with the first of the samples that is a motion at all."""
    for duty, period in samples(robot, SPEED):
        try:
            problem = quads.Problem(
                model=robot,
                motion="trot",
                speed=SPEED,
                more={"duty": duty, "period": period},
                time_limit=setting.time_limit,
            )
            _ = problem.requested  # raises where there is no such trot
            return problem
        except DrakebotsError:
            continue
    return None


def _attempt(setting, path) -> tuple[Trial | None, dict[str, Any]]:
    """The trot of the heavier robot, and its facts."""
    problem = quads.Problem(
        model=str(path),
        motion="trot",
        speed=SPEED,
        alternation=quads.Alternation(min_iterations=2),
        time_limit=setting.time_limit,
    )
    try:
        found = trial(setting, "trot_heavier", problem, runs=False)
    except DrakebotsError as error:
        return None, {"message": f"refused: {error}"}
    stage = found.stage
    facts = trial_facts(found) | {
        "message": f"space-time {stage['space_time']}: {stage['space_time_message']}; "
        f"{_steps(found)}"
    }
    return found, facts


# --- other footfalls ---------------------------------------------------------

DUTIES = (0.54, 0.6, 0.66, 0.72)
PERIODS = (1.0, 0.8, 1.25)
"""Factors of the period of the gait that failed."""


@dataclass(frozen=True)
class Sample:
    """A footfall pattern that was tried.

    Attributes:
        duty: duty factor of the gait.
        period: period of the gait [s].
        motion: the motion; None if there is no such gait.
        plan: the space-time plan; None if the motion was refused.
        message: how it ended.
    """

    duty: float
    period: float
    motion: MotionInput | None
    plan: SpaceTimePlan | None
    message: str

    @property
    def ok(self) -> bool:
        """Whether the space-time program was solved."""
        return self.plan is not None and self.plan.ok


def samples(
    robot: PlannedRobot,
    speed: float,
    *,
    duties: tuple[float, ...] = DUTIES,
    periods: tuple[float, ...] = PERIODS,
) -> Iterator[tuple[float, float]]:
    """Duty factors and periods [s], those nearest to the library's trot first."""
    own = stride_length(speed, leg_height(robot.quad)) / speed
    pairs = [(d, p) for d in duties for p in periods]
    for duty, share in sorted(
        pairs, key=lambda x: 4 * abs(x[0] - duties[0]) + abs(x[1] - 1)
    ):
        yield duty, share * own


def try_sample(
    problem: quads.Problem, speed: float, duty: float, period: float, **options
) -> Sample:
    """Plans a trot with another duty factor and period by the space-time program.

    Args:
        problem: gives robot, weights and limits.
        speed: speed of the trot [m/s].
        duty: duty factor of the trot.
        period: period of the trot [s].
        options: options of :func:`plan_space_time`.
    """
    motion = None
    try:
        motion = library_motion(
            "trot", problem.robot.quad, speed=speed, duty=duty, period=period
        )
        plan = plan_space_time(problem.following(motion).program(), **options)
    except DrakebotsError as error:
        return Sample(duty, period, motion, None, str(error))
    return Sample(duty, period, motion, plan, plan.solution.message)
