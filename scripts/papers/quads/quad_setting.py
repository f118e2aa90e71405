"""Experiments of the paper's section 7, computed; scripts/quad_*.py draw them.

Each takes a :class:`Setting` and gives an :class:`Outcome`: rows that put the
paper's word beside ours, and the results behind them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from drakebots.results import Result, load_result
from drakebots.robots.quads import QuadProblem, plan_quad
from drakebots.robots.quads.track import Replay, SapTracking, replay, track_sap


@dataclass(frozen=True)
class Setting:
    """How to run an experiment.

    Attributes:
        model: of the robot.
        folder: for results.
        quick: shorter motions, other numbers than the paper's.
        reuse: results that are in the folder already.
        time_limit: of each plan and replay [s].
        progress: called with the stage, what is done of it and its end.
    """

    model: str
    folder: Path = Path(".")
    quick: bool = False
    reuse: bool = False
    time_limit: float | None = None
    progress: Callable[[str, float, float], None] | None = None

    def stored(self, name: str, make: Callable[[Path], Result]) -> Result:
        """A result by name: from the folder when it may be, else made and saved."""
        path = self.folder / f"{name}.nc"
        if self.reuse and path.is_file():
            return load_result(path)
        result = make(path)
        result.save(path)
        return result

    def report(self, stage: str):
        """Progress of a simulation under a name."""
        show = self.progress
        return None if show is None else lambda done, end: show(stage, done, end)


@dataclass(frozen=True)
class Trial:
    """A plan and its replays.

    Attributes:
        name: of the files.
        plan: by the alternation.
        coupled: open loop with skin, on a ground that gives; None when the plan
            is not whole.
        sap: the skeleton in Drake under the plan's forces.
    """

    name: str
    plan: Result
    coupled: Result | None = None
    sap: Result | None = None

    @property
    def whole(self) -> bool:
        """Whether the frames came to the motion's end."""
        stage = self.plan.metrics["stages"][self.plan.metrics["best_iteration"] - 1]
        return stage["frames"] == "success"

    @property
    def stage(self) -> Mapping[str, Any]:
        """Of the best iteration."""
        return self.plan.metrics["stages"][self.plan.metrics["best_iteration"] - 1]


@dataclass(frozen=True)
class Outcome:
    """What an experiment came to.

    Attributes:
        title: of its table.
        rows: what, paper, here, why.
        trials: behind it, by name.
        facts: numbers, for one JSON object.
        more: what its figure needs besides.
    """

    title: str
    rows: list[dict[str, str]]
    trials: dict[str, Trial]
    facts: dict[str, Any]
    more: dict[str, Any] = field(default_factory=dict)


def row(what: str, paper: str, here: str, why: str = "") -> dict[str, str]:
    """A line of a table."""
    return {"what": what, "paper": paper, "here": here, "why": why}


def trial(
    setting: Setting,
    name: str,
    problem: QuadProblem,
    *,
    replays: bool = True,
) -> Trial:
    """Plans, and replays what came through."""

    def make(path):
        return plan_quad(problem, path=path, progress=setting.progress)

    plan = setting.stored(name, make)
    found = Trial(name, plan)
    if not (replays and found.whole):
        return found
    limit = {"time_limit": setting.time_limit}
    coupled = setting.stored(
        f"{name}_coupled",
        lambda _: replay(
            Replay(plan, model=problem.model, **limit),
            progress=setting.report(f"{name}, replayed"),
        ),
    )
    sap = setting.stored(
        f"{name}_sap",
        lambda _: track_sap(
            SapTracking(plan, model=problem.model, **limit),
            progress=setting.report(f"{name}, in SAP"),
        ),
    )
    return Trial(name, plan, coupled, sap)


def trial_facts(found: Trial) -> dict[str, Any]:
    """Numbers of a trial."""
    m, stage = found.plan.metrics, found.stage
    facts = {
        "verdict": str(found.plan.verdict),
        "message": found.plan.message,
        "iterations": m["iterations"],
        "difference": m["difference"],
        "frames": stage["frames_reached"],
        "planned_speed_m_s": m["desired_speed_m_s"],
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
    """The usual lines: how it ended, how it replays."""
    facts = trial_facts(found)
    name = found.name.replace("_", " ")
    rows = [
        row(
            f"{name}: frames reached",
            paper,
            f"{facts['frames']} ({found.stage['frames_message']})",
        ),
        row(
            f"{name}: iterations",
            "1 (slow), 2 (trot)",
            f"{facts['iterations']}, difference {facts['difference']:.3g}",
            "the paper names no measure of the difference",
        ),
    ]
    for kind, text in (("coupled", "with skin"), ("sap", "skeleton in SAP")):
        if kind in facts:
            r = facts[kind]
            rows.append(
                row(
                    f"{name}: replayed, {text}",
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
    """Least margin of the frames' COP, and in how many its rows had no solution."""
    facts = trial_facts(found)
    return [
        row(
            f"{found.name.replace('_', ' ')}: COP in the polygon",
            paper,
            f"{facts['cop_margin_mm']:.2f} mm inside at the least; rows dropped in "
            f"{facts['frames_cop_dropped']} of {facts['frames']} frames",
            "" if not facts["frames_cop_dropped"] else "no solution with them there",
        )
    ]


def planned(setting: Setting, name: str, *, replays: bool = True, **options) -> Trial:
    """A trial of the setting's robot.

    Args:
        setting: robot, folder, time limit.
        name: of the files.
        replays: with skin and in SAP, of a plan that is whole.
        options: of :class:`~drakebots.robots.quads.plan.QuadProblem`.

    Raises:
        DrakebotsError: for a robot or a motion that cannot be.
    """
    problem = QuadProblem(model=setting.model, time_limit=setting.time_limit, **options)
    return trial(setting, name, problem, replays=replays)


def outcome_of(title, rows, trials, *, facts=None, more=None) -> Outcome:
    """An outcome whose facts are those of its trials, by name, and `facts`."""
    found = {name: trial_facts(one) for name, one in trials.items()}
    return Outcome(title, rows, trials, found | (facts or {}), more or {})
