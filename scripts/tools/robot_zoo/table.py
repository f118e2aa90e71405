"""The zoo's outcome: one row a robot, counts over all, one sheet of pictures."""

from __future__ import annotations

import csv
import statistics
import sys
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import matplotlib.image
from matplotlib.figure import Figure
from rich.console import Console
from rich.markup import escape
from rich.table import Table
from robot_zoo.finding import RobotFile
from robot_zoo.recompute import EVEN
from robot_zoo.stages import STAGES, Try, is_freed, legs_of

from drakebots.core.files import replacing

COLUMNS = 6
"""Of the sheet of pictures."""

STRIDE = 0.8
"""Least share of the planned stride of a plan that counts as tracked; its worst cycle
makes at least :data:`robot_zoo.recompute.EVEN` of the mean one."""

WIDTH = 160
"""Of the printed table where it goes into a file."""


@dataclass(frozen=True)
class Row:
    """Facts of one robot.

    Attributes:
        name, file: as :class:`RobotFile`.
        legs, legs_expected: bodies with feet, found and given; None for not given.
        leg_joints: number of joints on the way to its feet.
        soles: whether all feet are flat, with three points and more.
        motors: number of actuators.
        mass_kg: of the robot [kg].
        freed: whether the file fixes its base, and it was tried with --free-base.
        show, stand, simulate, plan, track: how each stage ended; "" for not asked.
        cpu_s: processor time of each of them, by its name with this ending [s].
        stride_share: tracked stride by the planned one.
        worst_stride: the shortest one by the mean.
        contradicted: what the stored motion says against a success, line by line; see
            :mod:`robot_zoo.recompute`.
        why: of the first stage that did not succeed, with its name.
    """

    name: str
    file: str
    legs: int
    legs_expected: int | None
    leg_joints: int
    soles: bool
    motors: int | None
    mass_kg: float | None
    freed: bool
    show: str
    stand: str
    simulate: str
    plan: str
    track: str
    show_cpu_s: float | None
    stand_cpu_s: float | None
    simulate_cpu_s: float | None
    plan_cpu_s: float | None
    track_cpu_s: float | None
    stride_share: float | None
    worst_stride: float | None
    contradicted: str
    why: str


def row_of(
    robot: RobotFile, tries: Mapping[str, Try], contradicted: Sequence[str] = ()
) -> Row:
    """The row of a robot, with what contradicts its successes."""
    empty = Try("")
    stages = {name: tries.get(name, empty) for name in STAGES}
    facts = stages["show"].facts
    actuators = facts.get("actuators")
    feet = facts.get("contents", {}).get("could be feet", ())
    feet = [foot for foot in feet if foot["foot"]]
    why = (
        f"{k}: {v.word}: {v.why}" for k, v in stages.items() if v.word not in ("", "ok")
    )
    return Row(
        name=robot.name,
        file=str(robot.path),
        legs=legs_of(tries),
        legs_expected=robot.legs,
        leg_joints=sum(foot["joints"] for foot in feet),
        soles=bool(feet) and all(foot["points"] > 2 for foot in feet),
        motors=None if actuators is None else len(actuators),
        mass_kg=facts.get("mass_kg"),
        freed=is_freed(tries),
        **{name: entry.word for name, entry in stages.items()},
        **{f"{name}_cpu_s": entry.cpu or None for name, entry in stages.items()},
        stride_share=stages["track"].facts.get("stride_share"),
        worst_stride=_worst(stages["track"].facts.get("stride_m") or ()),
        contradicted="; ".join(contradicted),
        why=next(why, ""),
    )


def _worst(strides: Sequence[float]) -> float | None:
    mean = statistics.fmean(strides) if strides else 0.0
    return min(strides) / mean if mean > 0 else None


def counts(rows: Sequence[Row]) -> dict[str, Any]:
    """The figures of a run.

    Robots that should have no feet are loaded only. `feet_found` counts those with
    the number of legs expected, or with any where nothing is expected; `stood`
    those with feet that stand at the end of a simulation; `tracked` those that stay
    upright and make :data:`STRIDE` of the planned way, evenly; `false_success` those of
    whose successes one is contradicted by the stored motion. Names that end in _4 are
    of robots with four legs, in _2 of those with two on soles and as many motors as
    joints in them.
    """
    legged = [row for row in rows if row.legs_expected != 0]
    by_legs = {
        n: [r for r in legged if (r.legs_expected or r.legs) == n] for n in (2, 4)
    }
    flat = [r for r in by_legs[2] if r.soles and (r.motors or 0) >= r.leg_joints]
    return {
        "of": len(rows),
        "loaded": sum(row.show == "ok" for row in rows),
        "legged": len(legged),
        "feet_found": sum(
            row.legs == row.legs_expected if row.legs_expected else row.legs > 0
            for row in legged
        ),
        "posed": sum(row.stand == "ok" for row in legged),
        "stood": sum(row.legs > 0 and row.simulate == "ok" for row in legged),
        "planned": sum(row.plan == "ok" for row in legged),
        "tracked": sum(map(_tracked, legged)),
        **_group(by_legs[4], "4"),
        **_group(flat, "2"),
        "false_success": sum(bool(row.contradicted) for row in rows),
        "tracebacks": sum(
            getattr(row, stage) == "traceback" for row in rows for stage in STAGES
        ),
    }


def _group(rows: Sequence[Row], name: str) -> dict[str, Any]:
    """Plans of all, walks of what was planned, and the median time of a plan [s]."""
    planned = [row for row in rows if row.plan == "ok"]
    times = [row.plan_cpu_s for row in planned if row.plan_cpu_s]
    return {
        f"planned_{name}": [len(planned), len(rows)],
        f"tracked_{name}": [sum(map(_tracked, planned)), len(planned)],
        f"plan_median_s_{name}": statistics.median(times) if times else None,
    }


def _tracked(row: Row) -> bool:
    far, even = (row.stride_share or 0.0) >= STRIDE, (row.worst_stride or 0.0) >= EVEN
    return row.track == "ok" and far and even


def write_table(rows: Sequence[Row], path: Path) -> Path:
    """Writes the rows as CSV."""
    with replacing(path) as part, open(part, "w", newline="") as file:
        writer = csv.DictWriter(file, list(Row.__dataclass_fields__))
        writer.writeheader()
        writer.writerows(asdict(row) for row in rows)
    return path


def print_rows(rows: Sequence[Row]) -> None:
    """Prints the rows for a person, and under them why stages did not succeed."""
    tried = [stage for stage in STAGES if any(getattr(row, stage) for row in rows)]
    table = Table()
    for title in ("robot", "legs", "motors", *tried, "plan [s]", "stride"):
        table.add_column(title, no_wrap=True)
    for row in rows:
        right = row.legs_expected in (None, row.legs)
        table.add_row(
            escape(row.name),
            str(row.legs) if right else f"{row.legs}, not {row.legs_expected}",
            "" if row.motors is None else str(row.motors),
            *(_coloured(getattr(row, stage)) for stage in tried),
            f"{row.plan_cpu_s:.0f}" if row.plan_cpu_s else "",
            "" if row.stride_share is None else f"{row.stride_share:.0%}",
        )
    console = Console(soft_wrap=True, width=None if sys.stdout.isatty() else WIDTH)
    console.print(table)
    for row in rows:
        if row.freed:
            said = "its file fixes the base; tried with --free-base"
            console.print(f"{row.name}: {said}", markup=False, highlight=False)
        if row.contradicted:
            said = f"its motion says otherwise: {row.contradicted}"
            console.print(f"{row.name}: {said}", markup=False, highlight=False)
        if row.why:
            console.print(f"{row.name}: {row.why}", markup=False, highlight=False)


def _coloured(word: str) -> str:
    colour = {"ok": "green", "not tried": "dim", "": "dim"}.get(word, "red")
    return f"[{colour}]{escape(word)}[/{colour}]"


def draw_sheet(stills: Mapping[str, Path], path: Path) -> Path | None:
    """Draws all pictures, each under its robot's name; None where there are none."""
    there = {name: still for name, still in stills.items() if still.is_file()}
    if not there:
        return None
    columns = min(COLUMNS, len(there))
    lines = -(-len(there) // columns)
    figure = Figure(figsize=(2.4 * columns, 2.0 * lines), layout="constrained")
    axes = list(figure.subplots(lines, columns, squeeze=False).flat)
    for ax in axes:
        ax.axis("off")
    for ax, (name, still) in zip(axes, there.items()):
        ax.imshow(matplotlib.image.imread(still))
        ax.set_title(name, fontsize=7)
    with replacing(path) as part:
        figure.savefig(part, format="png", dpi=110)
    return path
