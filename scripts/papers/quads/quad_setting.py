"""Settings, trials and table rows of the experiments of the paper's section 7.

An experiment takes a :class:`Setting` and gives an :class:`Outcome`: rows that compare
the paper's statement with ours, and the results behind them.

A module without a command: the command is `quad_experiments.py`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
from sap_track import track_sap

from drakebots.core.run import Progress
from drakebots.results import Result, load_result
from drakebots.robots import quads
from drakebots.robots.quads.motion import MotionInput

STEPS = 20
"""Time steps of a quick motion."""


@dataclass(frozen=True)
class Setting:
    """Settings of an experiment.

    Attributes:
        model: name or path of the robot.
        folder: folder of the results.
        quick: whether to cut all motions to :data:`STEPS` steps around a lift-off.
        reuse: whether to take results that are in the folder already.
        time_limit: time limit of each plan and each run [s].
        progress: called with the stage, what is done of it, and its end.
    """

    model: str
    folder: Path = Path(".")
    quick: bool = False
    reuse: bool = False
    time_limit: float | None = None
    progress: Progress | None = None

    def stored(self, name: str, make: Callable[[Path], Result]) -> Result:
        """A result by name: from the folder if allowed, else made and saved there."""
        path = self.folder / f"{name}.nc"
        if self.reuse and path.is_file():
            return load_result(path)
        result = make(path)
        result.save(path)
        return result

    def track(self, problem, stage: str, run=quads.track) -> Result:
        """Tracks a plan, with progress under a name of its own."""
        show = self.progress
        if show is None:
            return run(problem)
        return run(problem, progress=lambda _, done, end: show(stage, done, end))


def around_lift_off(motion: MotionInput, steps: int) -> MotionInput:
    """A number of steps, the first lift-off in their middle, without a period."""
    leaves = int(np.argmin(motion.footfall.contact.all(axis=1)))
    first = max(0, leaves - steps // 2)
    some = slice(first, first + steps + 1)
    return replace(
        motion,
        footfall=replace(motion.footfall, contact=motion.footfall.contact[some]),
        com=motion.com[some],
        feet=motion.feet[some],
        heading=motion.heading[some],
        ground=motion.ground[some],
        reference={name: q[some] for name, q in motion.reference.items()},
        period=None,
    )


@dataclass(frozen=True)
class Trial:
    """A plan and its tracking runs.

    Attributes:
        name: name of the files.
        plan: plan of the alternation.
        coupled: open-loop run with skin on a compliant ground; None if the plan is not
            complete.
        sap: run of the skeleton in Drake under the plan's forces, or None.
    """

    name: str
    plan: Result
    coupled: Result | None = None
    sap: Result | None = None

    @property
    def whole(self) -> bool:
        """Whether the step-by-step plan reached the end of the motion."""
        return self.stage["frames"] == "success"

    @property
    def stage(self) -> Mapping[str, Any]:
        """Summary of the best iteration."""
        return self.plan.metrics["stages"][self.plan.metrics["best_iteration"] - 1]


@dataclass(frozen=True)
class Outcome:
    """Outcome of an experiment.

    Attributes:
        title: title of its table.
        rows: rows of the table: what, paper, here, why.
        trials: the trials behind it, by name.
        facts: numbers for one JSON object.
        more: further data for its figure.
    """

    title: str
    rows: list[dict[str, str]]
    trials: dict[str, Trial]
    facts: dict[str, Any]
    more: dict[str, Any] = field(default_factory=dict)


def row(what: str, paper: str, here: str, why: str = "") -> dict[str, str]:
    """A row of a table."""
    return {"what": what, "paper": paper, "here": here, "why": why}


def posed(setting: Setting, problem: quads.Problem) -> quads.Problem:
    """A problem as a setting poses it: of a few steps where it is quick."""
    if not setting.quick:
        return problem
    return problem.following(around_lift_off(problem.requested, STEPS))


def trial(
    setting: Setting,
    name: str,
    problem: quads.Problem,
    *,
    runs: bool = True,
) -> Trial:
    """Plans, and tracks the plan if it is complete."""

    plan = setting.stored(
        name,
        lambda path: quads.plan(
            posed(setting, problem), path=path, progress=setting.progress
        ),
    )
    found = Trial(name, plan)
    if not (runs and found.whole):
        return found
    limit = {"time_limit": setting.time_limit}
    tracking = quads.Tracking(plan, model=problem.model, **limit)
    coupled = setting.stored(
        f"{name}_coupled", lambda _: setting.track(tracking, f"{name}, tracked")
    )
    sap = setting.stored(
        f"{name}_sap", lambda _: setting.track(tracking, f"{name}, in SAP", track_sap)
    )
    return Trial(name, plan, coupled, sap)


def trial_facts(found: Trial) -> dict[str, Any]:
    """Numbers of a trial for the JSON object."""
    m, stage = found.plan.metrics, found.stage
    facts = {
        "verdict": str(found.plan.verdict),
        "message": found.plan.message,
        "iterations": m["iterations"],
        "difference": m["difference"],
        "frames": stage["frames_reached"],
        "planned_speed_m_s": m.get("desired_speed_m_s", m.get("asked_speed_m_s")),
        "speed_m_s": m["speed_m_s"],
        "space_time_s": stage["space_time_s"],
        "frames_s": stage["frames_s"],
        "cop_margin_mm": 1e3 * stage["frames_cop_margin_m"],
        "frames_cop_dropped": stage["frames_cop_dropped"],
        "peak_torque_N_m": stage["frames_peak_torque_N_m"],
        "peak_torque_share": m["peak_torque_share"],
    }
    for kind, result in (("coupled", found.coupled), ("sap", found.sap)):
        if result is not None:
            r = result.metrics
            facts[kind] = {
                "verdict": str(result.verdict),
                "message": result.message,
                **{
                    key: r[key]
                    for key in (
                        *("distance_m", "planned_distance_m", "speed_m_s"),
                        *("largest_roll_deg", "largest_pitch_deg"),
                        *("least_cop_margin_m", "peak_torque_share"),
                    )
                },
            }
    return facts


def trial_rows(found: Trial, paper: str = "stable") -> list[dict[str, str]]:
    """The usual rows: how the plan ended, how it tracks."""
    facts = trial_facts(found)
    name = found.name.replace("_", " ")
    rows = [
        row(
            f"{name}: steps reached",
            paper,
            f"{facts['frames']} ({found.stage['frames_message']})",
        ),
        row(
            f"{name}: iterations",
            "1 (slow), 2 (trot)",
            f"{facts['iterations']}, difference {facts['difference']:.3g}",
            "the paper gives no norm of the difference",
        ),
    ]
    for kind, text in (("coupled", "with skin"), ("sap", "skeleton in SAP")):
        if kind in facts:
            r = facts[kind]
            rows.append(
                row(
                    f"{name}: tracked, {text}",
                    "walks (video)",
                    f"{r['distance_m']:.3f} of {r['planned_distance_m']:.3f} m, roll "
                    f"{r['largest_roll_deg']:.1f} deg, COP at least "
                    f"{1e3 * r['least_cop_margin_m']:.1f} mm inside, torque "
                    f"{100 * r['peak_torque_share']:.0f} %; "
                    f"{r['message']}",
                )
            )
    return rows


def cop_rows(found: Trial, paper: str) -> list[dict[str, str]]:
    """Least COP margin, and the number of steps whose COP rows were dropped."""
    facts = trial_facts(found)
    return [
        row(
            f"{found.name.replace('_', ' ')}: COP in the polygon",
            paper,
            f"{facts['cop_margin_mm']:.2f} mm inside at the least; rows dropped in "
            f"{facts['frames_cop_dropped']} of {facts['frames']} steps",
            "" if not facts["frames_cop_dropped"] else "they had no solution there",
        )
    ]


def planned(setting: Setting, name: str, *, runs: bool = True, **options) -> Trial:
    """A trial of the setting's robot.

    Args:
        setting: robot, folder and time limit.
        name: name of the files.
        runs: whether to track a complete plan, with skin and in SAP.
        options: options of :class:`~drakebots.robots.quads.Problem`.

    Raises:
        DrakebotsError: for a robot or a motion that cannot be planned.
    """
    problem = quads.Problem(
        model=setting.model, time_limit=setting.time_limit, **options
    )
    return trial(setting, name, problem, runs=runs)


def outcome_of(title, rows, trials, *, facts=None, more=None) -> Outcome:
    """An outcome whose facts are those of its trials by name, and `facts`."""
    found = {name: trial_facts(one) for name, one in trials.items()}
    return Outcome(title, rows, trials, found | (facts or {}), more or {})
