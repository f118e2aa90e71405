"""`drakebots sweep` and `identify`: parsing only."""

from __future__ import annotations

import argparse
from collections.abc import Mapping, Sequence
from dataclasses import field, replace
from functools import partial
from pathlib import Path
from types import UnionType
from typing import Annotated, Any, Union, get_args, get_origin

from drakebots.cli import Command, Variant, command
from drakebots.cli.inputs import (
    find_input,
    load_model,
    model_argument,
    stored_motion,
)
from drakebots.cli.options import (
    Written,
    check_folder,
    chosen,
    drawing,
    drawn,
    field_options,
    field_values,
    finish,
    first_field,
    option,
)
from drakebots.cli.output import exit_code, print_rows, report_of, tell
from drakebots.cli.progress import progress_bar, warn
from drakebots.core.checks import whole
from drakebots.core.convert import from_word
from drakebots.core.errors import DrakebotsError, InvalidInput
from drakebots.core.fields import Field, checked, declared
from drakebots.core.lazy import resolve
from drakebots.core.run import check_stop, ended_by
from drakebots.identify import Identification, identify, write_parameters
from drakebots.model import Model, find_model
from drakebots.plots import plot_sweep, shown_metrics
from drakebots.results import Result
from drakebots.robots import Task, find_kind, robots
from drakebots.sweeps import case_rows, sweep

_WHAT = ("simulate", "mpc", "plan", "track", "refine")


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
        return task, {first_field(resolve(task.problem)): plan}
    by_name = robots()
    for robot in by_name.values():
        task = getattr(robot, what)
        if robot.name != "any" and robot.is_named(name):
            if task is None:
                raise InvalidInput(f"{name} has no {what}; see `drakebots {what} -h`")
            return task, {"model": name} if robot.matches else {}
    find_model(name)
    return getattr(by_name["any"], what), {"model": name}


def _options(problem: type, base: Mapping[str, Any]) -> dict[str, Field]:
    """The fields that have an option, by name: numbers, texts and flags not known."""
    entries = declared(problem).items()
    return {n: entry for n, entry in entries if _is_plain(entry.kind) and n not in base}


def _is_plain(kind: Any) -> bool:
    inner = get_args(kind) if get_origin(kind) in (Union, UnionType) else (kind,)
    return inner[0] in (float, int, bool, str)


@checked()
class Sweeping:
    """What is swept, where it is computed, and what is shown of it."""

    what: str
    """Task of a robot or a file: hamr.plan, robot.urdf.simulate, plan.nc.track."""
    output: Path = field(kw_only=True)
    """Folder of the results, and of sweep.nc, .csv and .png; what is there is not
    computed again."""
    workers: Annotated[int | None, whole(1)] = None
    """Number of processes; by default as many as cores."""
    scheduler: str | None = None
    """Dask scheduler to send the cases to."""
    metrics: Sequence[str] = ()
    """Metrics to show and draw; by default those that differ."""


def _arguments(parser, options: Mapping[str, Field]) -> None:
    field_options(parser, Sweeping, by_place=True)
    group = parser.add_argument_group("fields of the problem; several values are swept")
    for name, entry in options.items():
        text = entry.help.replace("%", "%%")
        group.add_argument(option(name), dest=f"of_{name}", metavar="A,B", help=text)


def _run(args: argparse.Namespace, task: Task, base: dict, options: dict) -> int:
    check_folder(args.output)
    how = chosen(args, Sweeping)
    said = {}
    for name, entry in options.items():
        text = getattr(args, f"of_{name}")
        if text is not None:
            read = partial(from_word, entry.kind, what=option(name), unit=entry.unit)
            said[name] = [read(word) for word in text.split(",")]
    over = {name: values for name, values in said.items() if len(values) > 1}
    if not over:
        raise InvalidInput("give a field several values, e.g. --frequency 2,10,30")
    first = {name: values[0] for name, values in said.items()}
    try:
        problem = resolve(task.problem)(**base, **first)
    except TypeError as error:  # a field without default that has no option
        raise InvalidInput(f"{args.what}: {error}; sweep it from Python") from error
    with progress_bar(args.what) as progress:
        where = {"workers": how.workers, "scheduler": how.scheduler}
        table = sweep(problem, over, out=args.output, progress=progress, **where)
    names = shown_metrics(table, how.metrics)
    print_rows(args.what, case_rows(table, names))
    written = [args.output / f"sweep.{ending}" for ending in ("nc", "csv", "png")]
    try:
        check_stop()
        drawn(plot_sweep, table, written[-1], names)
    except (DrakebotsError, KeyboardInterrupt) as error:
        why = ended_by(error)[1] if isinstance(error, KeyboardInterrupt) else error
        warn(f"could not draw {written.pop()}: {why}")
    tell(args, report_of(table) | {"files": list(map(str, written))}, *written)
    return exit_code(table)


class _SweepCommand(Command):
    """Command whose options are the fields of the problem that its first word names."""

    def variant(self, words) -> Variant:
        for word in self.subjects(words)[:1]:
            task, base = find_problem(word)
            options = _options(resolve(task.problem), base)
            return Variant(
                f"many times: {task.help}",
                self.general.example,
                partial(_arguments, options=options),
                partial(_run, task=task, base=base, options=options),
            )
        return self.general

    def _exists(self, word: str) -> bool:
        return word.rpartition(".")[2] in _WHAT


SWEEP = _SweepCommand(
    "sweep",
    lambda: Variant(
        "solve a problem over many values, on all cores or on a cluster",
        "drakebots sweep hamr.simulate --frequency 10,20,30 --surface card,teflon "
        "-o out/",
        partial(_arguments, options={}),
        lambda args: find_problem(args.what),  # which refuses it, else it has a form
    ),
    find=find_problem,
)


# --- identify ----------------------------------------------------------------


def _write_identified(found: Result, path: Path, model: Model) -> Path:
    return found.save(path) if path.suffix == ".nc" else write_parameters(found, path)


@checked()
class Identified:
    """What is written of parameters that were found."""

    output: Annotated[Path | None, Written(write=_write_identified)] = None
    """The model with the values found, for any command (.yaml), or the result (.nc)."""
    plot: Annotated[Path | None, drawing("drakebots.identify:plot_identified")] = None
    """Picture of measured and predicted signals and of intervals (.png)."""


@command(
    "identify",
    "drakebots identify my_robot.urdf --data run.csv --fit friction,mass:trunk "
    "-o found.yaml --plot found.png",
    model_argument,
    partial(field_options, problem=Identification, but=("model",)),
    Identified,
    find=find_input,
)
def IDENTIFY(args: argparse.Namespace) -> int:
    """Find parameters of any model from measurements."""
    for name in ("data", "fit"):
        if getattr(args, name) is None:
            raise InvalidInput(f"needs --{name}; see `drakebots identify --help`")
    names = [name for name in declared(Identification) if name != "model"]
    problem = Identification(args.model, **field_values(args, Identification, names))
    problem = replace(problem, model=(model := load_model(args)))
    with progress_bar(f"identify {model.name}") as progress:
        result = identify(problem, progress=progress)
    return finish(args, result, model)
