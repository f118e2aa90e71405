"""Tries robots as their files are: show, stand, simulate, plan, track; one table.

    python scripts/tools/zoo.py my_robot.urdf -o out/
    python scripts/tools/zoo.py folder/ robots.txt -o out/ --stages show,stand --jobs 4
    python scripts/tools/zoo.py --packages -o out/ --legs 4

Each stage is the command that a user would type, in a process of its own with limits,
so that what crashes or does not end is a row of the table. out/ keeps every robot's
output, results and picture; robots that are known there, and unchanged, are not tried
again (--fresh does), so an interrupted run goes on where it was. `simulate` holds the
robot in its standing pose; `track` plays the plan that `plan` made. What a plan or a
track calls a success is judged again from its stored arrays.

A list (.txt) names one file a line, relative to itself, and after it, if known, the
number of the robot's legs. --packages searches the Python packages that carry robots
(pip install ".[zoo]").

The last line is one JSON object of counts.
"""

from __future__ import annotations

import argparse
import re
import signal
import sys
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from robot_zoo.children import Children, Limits
from robot_zoo.finding import RobotFile, find_files
from robot_zoo.recompute import false_successes
from robot_zoo.stages import STAGES, Settings, Try, read_tries, run_stages
from robot_zoo.table import counts, draw_sheet, print_rows, row_of, write_table

from drakebots.cli.output import one_line_errors, print_json
from drakebots.core.checks import check_value, finite, optional, positive, whole
from drakebots.core.errors import FileProblem, UnknownName

SECONDS = {
    "show": 60.0,
    "stand": 120.0,
    "simulate": 120.0,
    "plan": 240.0,
    "track": 240.0,
}
"""Limits of processor time [s]."""

_NUMBERS = {
    "jobs": whole(1),
    "time_limit": optional(positive("s")),
    "memory": positive("GB"),
    "forward": finite("m"),
    "duration": positive("s"),
}


def main(argv: Sequence[str] | None = None) -> dict[str, Any]:
    """Runs the command; returns what its last line says."""
    args = _parse(argv)
    with one_line_errors("zoo"):
        stages = _stages(args.stages)
        for name, rule in _NUMBERS.items():
            check_value(f"--{name.replace('_', '-')}", getattr(args, name), rule)
        robots = find_files(args.files, packages=args.packages)
        try:
            args.output.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise FileProblem(args.output, f"cannot be a folder: {error}") from error
        settings = Settings(
            forward=args.forward,
            duration=args.duration,
            limits={
                stage: Limits(args.time_limit or SECONDS[stage], args.memory)
                for stage in STAGES
            },
            legs=tuple(args.legs),
            pictures=not args.no_pictures,
        )
        ended = _run(robots, args.output, stages, settings, args)
        return _report(robots, args.output, args.forward, args.json) | {"ended": ended}


def _parse(argv: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("files", nargs="*", help="robots, folders, lists (.txt)")
    parser.add_argument("--packages", action="store_true", help="search packages too")
    parser.add_argument("-o", "--output", type=Path, required=True, help="folder")
    parser.add_argument(
        "--stages", default=",".join(STAGES), help="default: %(default)s"
    )
    parser.add_argument("--jobs", type=int, default=1, help="robots at a time")
    parser.add_argument(
        "--time-limit", type=float, help="of each stage [s of processor time]"
    )
    parser.add_argument("--memory", type=float, default=16.0, help="limit [GB]")
    parser.add_argument(
        "--forward", type=float, default=0.3, help="distance to plan [m]"
    )
    parser.add_argument(
        "--duration", type=float, default=2.0, help="of the simulation [s]"
    )
    parser.add_argument(
        "--legs", type=int, nargs="+", default=(), help="plan for these numbers of legs"
    )
    parser.add_argument("--no-pictures", action="store_true")
    parser.add_argument("--fresh", action="store_true", help="try known robots again")
    parser.add_argument("--json", action="store_true", help="print no table")
    return parser.parse_args(argv)


def _stages(text: str) -> tuple[str, ...]:
    asked = text.split(",")
    for stage in asked:
        if stage not in STAGES:
            raise UnknownName("stage", stage, STAGES)
    return tuple(stage for stage in STAGES if stage in asked)


def _run(
    robots: Sequence[RobotFile],
    output: Path,
    stages: tuple[str, ...],
    settings: Settings,
    args: argparse.Namespace,
) -> str:
    """Tries all robots; "done", or "interrupted" with what was reached kept."""

    def work(robot: RobotFile) -> dict[str, Try]:
        folder = folder_of(output, robot)
        return run_stages(robot, folder, stages, settings, children, fresh=args.fresh)

    with Children() as children, ThreadPoolExecutor(args.jobs) as pool:
        try:
            for robot, tries in zip(robots, pool.map(work, robots)):
                words = ", ".join(f"{k} {v.word}" for k, v in tries.items())
                print(f"{robot.name}: {words}", file=sys.stderr, flush=True)
        except KeyboardInterrupt:
            # A second Ctrl-C must not cost the table.
            handler = signal.signal(signal.SIGINT, signal.SIG_IGN)
            children.close()
            pool.shutdown(cancel_futures=True)
            signal.signal(signal.SIGINT, handler)
            return "interrupted"
    return "done"


def folder_of(output: Path, robot: RobotFile) -> Path:
    """Folder of a robot's output."""
    return output / re.sub(r"[^\w.-]", "_", robot.name)


def _report(
    robots: Sequence[RobotFile], output: Path, forward: float, quiet: bool
) -> dict[str, Any]:
    """Writes the table and the sheet, prints the rows and the counts."""
    folders = {robot.name: folder_of(output, robot) for robot in robots}
    rows = []
    for robot in robots:
        folder = folders[robot.name]
        tries = read_tries(folder)
        rows.append(row_of(robot, tries, false_successes(folder, tries, forward)))
    table = write_table(rows, output / "table.csv")
    stills = {name: folder / "still.png" for name, folder in folders.items()}
    sheet = draw_sheet(stills, output / "sheet.png")
    if not quiet:
        print_rows(rows)
        print(table)
        print(sheet or "no pictures: drawing needs Chromium, and a standing pose")
    found = counts(rows)
    print_json(found)
    return found


if __name__ == "__main__":
    sys.exit(main()["ended"] == "interrupted" and 130)
