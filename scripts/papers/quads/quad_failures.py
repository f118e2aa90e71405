"""The paper's failure case: the monster's mass doubled, and other footfalls."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from quad_resample import samples, try_sample
from quad_setting import Outcome, Setting, Trial, row, trial_facts

from drakebots.core.errors import DrakebotsError
from drakebots.robots.quads import Alternation, QuadProblem, alternate
from drakebots.robots.quads.robot import load_planned, variant

SPEED = 0.45
TRIES = 8
"""Footfalls tried, at most."""


def failure(setting: Setting) -> Outcome:
    """Doubled mass: does the trot fail, and is there a footfall that repairs it?"""
    path = variant(setting.model, setting.folder / "heavier", mass=2.0)
    rows, facts, trials = [], {}, {}
    robot = load_planned(path)
    rows.append(row("mass [kg]", "2 x 11.87", f"{robot.mass:.2f}"))
    found, told = _attempt(setting, path, "trot_heavier", {})
    facts["doubled"] = told
    if found is not None:
        trials["doubled"] = found
    rows.append(
        row(
            "trot at 0.45 m/s, mass doubled",
            "COP violated in space-time, frames unstable",
            told["message"],
        )
    )
    facts["samples"] = []
    repaired = None
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
            again = replace(problem, motion=sample.motion)
            name = f"trot_heavier_{100 * duty:.0f}_{1e3 * period:.0f}"
            plan = setting.stored(name, lambda p, a=again: alternate(a, path=p))
            repaired = Trial(name, plan)
            one["frames"] = trial_facts(repaired)
            if repaired.whole:
                trials["repaired"] = repaired
        facts["samples"].append(one)
        rows.append(
            row(
                f"duty {duty:.2f}, period {period:.2f} s",
                "proposed, not tried",
                one["message"]
                if not sample.ok
                else _frames_row(one["frames"], repaired),
            )
        )
        if "repaired" in trials:
            break
    verdict, facts["repaired"] = _verdict(trials.get("repaired"))
    rows.append(row("does another footfall repair it?", "might", verdict))
    return Outcome("Failure case: doubled mass", rows, trials, facts)


def _frames_row(frames: dict[str, Any], found: Trial) -> str:
    text = f"frames: {found.stage['frames_message']}"
    if not found.whole:
        return text
    return (
        f"{text}, difference {frames['difference']:.3g}, {frames['speed_m_s']:.2f} m/s"
    )


def _verdict(found: Trial | None) -> tuple[str, bool]:
    """In words, and whether frames and program agree as well."""
    if found is None:
        return "no, not among those tried", False
    if found.plan.ok:
        return "yes", True
    return "in part: its frames do not fall, but do not follow the plan either", False


def _problem(setting, path, robot) -> Alternation | None:
    """With the first motion of the samples that can be made at all."""
    for duty, period in samples(robot, SPEED):
        try:
            return QuadProblem(
                model=str(path),
                motion="trot",
                speed=SPEED,
                more={"duty": duty, "period": period},
                time_limit=setting.time_limit,
            ).alternation(robot)
        except DrakebotsError:
            continue
    return None


def _attempt(setting, path, name, more) -> tuple[Trial | None, dict[str, Any]]:
    from quad_setting import trial

    problem = QuadProblem(
        model=str(path),
        motion="trot",
        speed=SPEED,
        min_iterations=2,
        time_limit=setting.time_limit,
        more=more,
    )
    try:
        found = trial(setting, name, problem, replays=False)
    except DrakebotsError as error:
        return None, {"message": f"refused: {error}"}
    stage = found.stage
    told = trial_facts(found) | {
        "message": f"space-time {stage['space_time']}: {stage['space_time_message']}; "
        f"frames {stage['frames_message']}"
    }
    return found, told
