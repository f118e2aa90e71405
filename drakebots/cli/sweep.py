"""`drakebots sweep`: parsing only."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterable
from dataclasses import fields
from functools import partial
from pathlib import Path
from typing import Any

from drakebots.cli.command import Command, Variant
from drakebots.cli.inputs import stored_motion
from drakebots.cli.options import attribute_texts, check_folder, option, quantity
from drakebots.cli.output import drawn, exit_code, print_rows, report_of, tell
from drakebots.cli.progress import progress_bar, warn
from drakebots.core.errors import DrakebotsError, InvalidInput
from drakebots.core.run import check_stop, ended_by
from drakebots.model import find_model
from drakebots.robots import Task, find_kind, resolve, robots
from drakebots.sweeps import case_rows, plot_sweep, shown_metrics, sweep

_WHAT = ("simulate", "plan", "track", "refine")


def find_problem(word: str) -> tuple[Task, dict[str, Any]]:
    """The task that "hamr.plan", "robot.urdf.simulate" or "plan.nc.track" names, and
    the fields of its problem that are known thereby.

    Raises:
        InvalidInput: for another word, or what the robot or the plan does not do.
    """
    name, dot, what = word.rpartition(".")
    if not (dot and name and what in _WHAT):
        raise InvalidInput(
            f"{word!r}: name a robot and what it does, e.g. hamr.plan; or a model, or "
            "a plan: robot.urdf.simulate, plan.nc.track"
        )
    if what in ("track", "refine"):
        plan = stored_motion(name)
        task = getattr(find_kind(plan.kind), what)
        if task is None:
            raise InvalidInput(f"{name}: nothing can {what} a result of {plan.kind!r}")
        first = next(f.name for f in fields(resolve(task.problem)) if not f.kw_only)
        return task, {first: plan}
    by_name = robots()
    for robot in by_name.values():
        task = getattr(robot, what)
        if robot.name != "any" and robot.is_named(name):
            if task is None:
                raise InvalidInput(f"{name} has no {what}; see `drakebots {what} -h`")
            return task, {"model": name} if robot.matches else {}
    find_model(name)
    return getattr(by_name["any"], what), {"model": name}


def _flag(text: str) -> bool:
    return {"true": True, "false": False}[text]


_PARSERS: dict[str, tuple[Callable[[str], Any], str]] = {
    "int": (int, "whole number"),
    "float": (float, "number"),
    "bool": (_flag, "flag, true or false"),
    "str": (str, "text"),
}


def _values(text: str, flag: str, kind: str, help_text: str = "") -> list[Any]:
    """The values of "A,B,...", numbers with the unit that the help text names.

    Raises:
        InvalidInput: naming the word that is none.
    """
    parse, what = _PARSERS[kind]
    if kind == "float":
        parse = quantity(flag, help_text)
    found = []
    for word in text.split(","):
        try:
            found.append(parse(word))
        except (ValueError, KeyError):
            raise InvalidInput(f"{flag}: {word!r} must be a {what}") from None
    return found


def _options(problem: type) -> dict[str, tuple[str, str]]:
    """Kind and help of each field that has an option, by name."""
    texts = attribute_texts(problem)
    kinds = {f.name: str(f.type).split(" ")[0] for f in fields(problem) if f.init}
    return {
        name: (kind, texts.get(name, name.replace("_", " ")))
        for name, kind in kinds.items()
        if kind in _PARSERS
    }


def _common(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "-o",
        "--output",
        type=Path,
        required=True,
        help="folder of the results, and of sweep.nc, .csv and .png; what is there is "
        "not computed again",
    )
    parser.add_argument(
        "--workers", type=int, help="number of processes (default: cores)"
    )
    parser.add_argument(
        "--scheduler", metavar="ADDRESS", help="dask scheduler to send the cases to"
    )
    parser.add_argument(
        "--metrics", metavar="A,B", help="to show and draw (default: those that differ)"
    )


def _arguments(parser, names: Iterable[str], options) -> None:
    parser.add_argument(
        "what", help="e.g. hamr.plan, robot.urdf.simulate, plan.nc.track"
    )
    _common(parser)
    group = parser.add_argument_group("fields of the problem; several values are swept")
    for name in names:
        text = options[name][1].replace("%", "%%")
        group.add_argument(option(name), dest=f"of_{name}", metavar="A,B", help=text)


def _run(args: argparse.Namespace, task: Task, base: dict, options: dict) -> int:
    check_folder(args.output)
    over = {}
    for name, (kind, help_text) in options.items():
        text = getattr(args, f"of_{name}")
        if text is not None:
            values = _values(text, option(name), kind, help_text)
            if len(values) == 1:
                base = base | {name: values[0]}
            else:
                over[name] = values
    if not over:
        raise InvalidInput("give a field several values, e.g. --frequency 2,10,30")
    first = {name: values[0] for name, values in over.items()}
    try:
        problem = resolve(task.problem)(**base, **first)
    except TypeError as error:  # a field without default that has no option
        raise InvalidInput(f"{args.what}: {error}; sweep it from Python") from error
    with progress_bar(args.what) as progress:
        table = sweep(
            problem,
            over,
            out=args.output,
            workers=args.workers,
            scheduler=args.scheduler,
            progress=progress,
        )
    names = shown_metrics(table, args.metrics.split(",") if args.metrics else ())
    print_rows(args.what, case_rows(table, names))
    written = [args.output / f"sweep.{ending}" for ending in ("nc", "csv", "png")]
    try:
        check_stop()
        drawn(plot_sweep, table, written[-1], names)
    except KeyboardInterrupt as error:
        warn(f"could not draw {written.pop()}: {ended_by(error)[1]}")
    except DrakebotsError as error:
        warn(f"could not draw {written.pop()}: {error}")
    tell(args, report_of(table) | {"files": list(map(str, written))}, *written)
    return exit_code(table)


class _SweepCommand(Command):
    """Its options are the fields of the problem that its first word names."""

    def variant(self, words) -> Variant:
        for word in self.subjects(words)[:1]:
            task, base = find_problem(word)
            options = _options(resolve(task.problem))
            names = [name for name in options if name not in base]
            chosen = {name: options[name] for name in names}
            return Variant(
                f"many times: {task.help}",
                self.general.example,
                partial(_arguments, names=names, options=options),
                partial(_run, task=task, base=base, options=chosen),
            )
        return self.general


def _nothing(args: argparse.Namespace) -> int:
    find_problem(args.what)
    return 0


SWEEP = _SweepCommand(
    "sweep",
    Variant(
        "solve a problem over many values, on all cores or on a cluster",
        "drakebots sweep hamr.simulate --frequency 10,20,30 --surface card,teflon "
        "-o out/",
        partial(_arguments, names=(), options={}),
        _nothing,
    ),
    find=find_problem,
)
