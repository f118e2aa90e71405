"""Stages that are tried with every robot: the commands of a user, and their output.

Each stage runs in a process of its own (see children.py) and leaves its output, its
files and a :class:`Try` in the robot's folder. A legged robot whose file fixes its base
to the world is tried with --free-base.
"""

from __future__ import annotations

import hashlib
import json
import sys
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

from robot_zoo.children import Children, Limits, Outcome
from robot_zoo.finding import RobotFile

from drakebots.core.errors import one_line
from drakebots.core.files import replacing

STAGES = ("show", "stand", "simulate", "plan", "track")
"""In their order."""

STAND = Path(__file__).with_name("stand.py")


@dataclass(frozen=True)
class Settings:
    """Settings of the trials, equal for all robots.

    Attributes:
        forward: distance to plan [m].
        duration: of the simulation [s].
        limits: by stage.
        legs: numbers of legs of the robots to plan for; empty for all with feet.
        pictures: whether to draw each robot as it stands.
    """

    forward: float
    duration: float
    limits: Mapping[str, Limits]
    legs: tuple[int, ...] = ()
    pictures: bool = True


@dataclass(frozen=True)
class Try:
    """One stage of one robot.

    Attributes:
        word: as :class:`Outcome`, or "not tried".
        why: one line where it is not "ok".
        cpu: processor time [s].
        facts: what the command reported.
        key: of the file that is read and the command; a stage with the same key is
            not run again.
    """

    word: str
    why: str = ""
    cpu: float = 0.0
    facts: Mapping[str, Any] = field(default_factory=dict)
    key: str = ""

    @property
    def ok(self) -> bool:
        """Whether it succeeded."""
        return self.word == "ok"


def run_stages(
    robot: RobotFile,
    folder: Path,
    stages: tuple[str, ...],
    settings: Settings,
    children: Children,
    *,
    fresh: bool = False,
) -> dict[str, Try]:
    """Tries a robot, and keeps every stage in folder/row.json as soon as it is done.

    Args:
        robot: the file.
        folder: for what the stages write; made if it is missing.
        stages: some of :data:`STAGES`.
        settings: what to try.
        children: that run.
        fresh: also run stages whose outcome is known.

    Returns:
        All that is known of the robot, by stage.
    """
    folder.mkdir(parents=True, exist_ok=True)
    known = read_tries(folder)
    for stage in stages:
        reason = _obstacle(stage, known, settings)
        if reason:
            known[stage] = Try("not tried", reason)
        else:
            command = _command(stage, robot.path, folder, settings)
            if stage in ("stand", "simulate", "plan") and is_freed(known):
                command.append("--free-base")
            source = folder / "plan.nc" if stage == "track" else robot.path
            digest = hashlib.sha256(source.read_bytes()).hexdigest()[:16]
            # The limits count too: more time may change the outcome.
            key = f"{digest} {settings.limits[stage]} {' '.join(command[1:])}"
            if not fresh and stage in known and known[stage].key == key:
                continue
            limits = settings.limits[stage]
            outcome = children.run(command, limits, log=folder / stage)
            known[stage] = _try(outcome, key, robot)
            if stage == "show" and is_held(known):
                freed = children.run(
                    [*command, "--free-base"], limits, log=folder / "show_free_base"
                )
                known = _freed(known, _try(freed, key, robot))
        _write_tries(folder, known)
    return known


def read_tries(folder: Path) -> dict[str, Try]:
    """Tries of the robot of a folder, by stage."""
    path = folder / "row.json"
    if not path.is_file():
        return {}
    return {name: Try(**entry) for name, entry in json.loads(path.read_text()).items()}


def _write_tries(folder: Path, tries: Mapping[str, Try]) -> None:
    with replacing(folder / "row.json") as part:
        part.write_text(json.dumps({k: asdict(v) for k, v in tries.items()}, indent=1))


def legs_of(tries: Mapping[str, Try]) -> int:
    """Number of bodies with feet that `show` reports."""
    feet = tries["show"].facts.get("feet", {}) if "show" in tries else {}
    return len({foot["body"] for foot in feet.values()})


def is_held(tries: Mapping[str, Try]) -> bool:
    """Whether `show` reports a legged robot without a free base."""
    return legs_of(tries) > 0 and tries["show"].facts.get("free_bases") == 0


def is_freed(tries: Mapping[str, Try]) -> bool:
    """Whether its base is fixed in the file and moves freely here."""
    return "show" in tries and bool(tries["show"].facts.get("freed_here"))


def _freed(tries: Mapping[str, Try], show: Try) -> dict[str, Try]:
    """The tries with what `show --free-base` reported, where it frees a base.

    Planar robots are on joints of their own, which it leaves.
    """
    if not show.ok or not show.facts.get("free_bases"):
        return dict(tries)
    facts = {**show.facts, "freed_here": True}
    return {**tries, "show": replace(show, facts=facts)}


def _obstacle(stage: str, known: Mapping[str, Try], settings: Settings) -> str:
    """Why a stage cannot be tried; "" if it can."""

    def passed(name: str) -> bool:
        return name in known and known[name].ok

    if stage == "show":
        return ""
    if not passed("show"):
        return "does not load"
    if stage == "track" and not passed("plan"):
        return "no plan"
    if stage == "plan":
        legs = legs_of(known)
        if not legs:
            return "no feet"
        if settings.legs and legs not in settings.legs:
            return f"{legs} legs"
    return ""


def _command(stage: str, file: Path, folder: Path, settings: Settings) -> list[str]:
    drakebots = [sys.executable, "-m", "drakebots", stage]
    plan = str(folder / "plan.nc")
    if stage == "stand":
        picture = ["--picture", str(folder / "still.png")] if settings.pictures else []
        return [sys.executable, str(STAND), str(file), *picture]
    arguments = {
        "show": [str(file)],
        "simulate": [str(file), "--duration", f"{settings.duration:g}"],
        "plan": [str(file), "--forward", f"{settings.forward:g}"],
        "track": [plan],
    }[stage]
    if stage != "show":
        arguments += ["-o", str(folder / f"{stage}.nc")]
    return [*drakebots, *arguments, "--json"]


def _try(outcome: Outcome, key: str, robot: RobotFile) -> Try:
    facts = _last_json(outcome.printed)
    why = "" if outcome.word == "ok" else _why(outcome, facts)
    why = why.replace(f"{robot.path}: ", "").replace(f"{robot.path.parent}/", "")
    return Try(outcome.word, why, round(outcome.cpu, 2), facts, key)


def _last_json(printed: str) -> dict[str, Any]:
    lines = printed.strip().splitlines()
    try:
        found = json.loads(lines[-1]) if lines else {}
    except json.JSONDecodeError:
        return {}
    return found if isinstance(found, dict) else {}


def _why(outcome: Outcome, facts: Mapping[str, Any]) -> str:
    """One line on what went wrong: the command's own where it has one."""
    lines = [line for line in outcome.errors.splitlines() if line.strip()]
    said = one_line(facts.get("message") or (lines[-1] if lines else ""))
    return said.removeprefix("drakebots: ")
