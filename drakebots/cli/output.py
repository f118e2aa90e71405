"""Output of commands: files, tables, JSON and exit codes."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, redirect_stdout
from contextvars import ContextVar
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO, TypeVar

from rich.console import Console
from rich.table import Table
from rich.text import Text

from drakebots.cli.options import wanted
from drakebots.cli.progress import warn
from drakebots.core.convert import plain
from drakebots.core.errors import DrakebotsError, DrawingProblem, printable, text_of
from drakebots.core.run import check_stop, ended_by, saving

if TYPE_CHECKING:
    from drakebots.model import Model
    from drakebots.results import Result

Drawn = TypeVar("Drawn")


def finish(args: argparse.Namespace, result: Result, model: Model | None = None) -> int:
    """Writes the requested files and prints a summary of the result.

    The result is saved before anything is drawn, and a drawing that fails is a
    warning: the exit code is that of the computation. Once the command is to end,
    nothing is drawn that can be drawn later, from what is saved.

    Returns:
        The exit code.
    """
    with saving():
        written = write_data(args, result, model)
    print_report(result)
    data, undrawn = written[:1], 0
    for path, draw in drawings(args, result, model):
        try:
            if data:
                check_stop()
            written.append(draw())
        except (DrakebotsError, KeyboardInterrupt) as error:
            why = str(error)
            if isinstance(error, KeyboardInterrupt):
                why, undrawn = ended_by(error)[1], 1
            saved = "".join(f"saved {path}; " for path in data)
            warn(f"{saved}could not draw {path}: {why}")
    notes = {} if model is None else {"notes": list(model.notes)}
    facts = report_of(result) | notes | {"files": list(map(str, written))}
    tell(args, facts, *written)
    return exit_code(result) or undrawn


def write_data(
    args: argparse.Namespace, result: Result, model: Model | None = None
) -> list[Path]:
    """Writes the requested files that are no drawings."""
    return [
        entry.how.write(result, path, model)
        for entry, path in wanted(args)
        if entry.how.write is not None and not entry.how.draws
    ]


def drawings(
    args: argparse.Namespace, result: Result, model: Model | None = None
) -> Iterator[tuple[Path, Callable[[], Path]]]:
    """The requested drawings of a result: the path of each, and what draws it.

    What draws one raises a DrakebotsError, whatever goes wrong.
    """
    for entry, path in wanted(args):
        if entry.how.write is not None and entry.how.draws:
            yield path, partial(drawn, entry.how.write, result, path, model)


def drawn(draw: Callable[..., Drawn], *args: Any, **options: Any) -> Drawn:
    """Call `draw(*args, **options)` and return its result.

    Raises:
        DrawingProblem: for any error that is not one of ours. Meshes, browsers and
            graphics libraries fail in too many ways to name them.
    """
    try:
        return draw(*args, **options)
    except DrakebotsError:
        raise
    # Drake's failed assertions reach Python as SystemExit.
    except (Exception, SystemExit) as error:
        raise DrawingProblem(
            f"{type(error).__name__}: {error}; the data is not affected"
        ) from error


def tell(args: argparse.Namespace, facts: Mapping[str, Any], *written: Path) -> int:
    """Prints the files that were written and, if requested, the JSON.

    Returns:
        The exit code of success.
    """
    for path in written:
        print(path)
    if args.json:
        print_json(facts)
    return 0


def exit_code(result: Result) -> int:
    """0 for success; otherwise prints the reason on stderr."""
    if result.ok:
        return 0
    print(f"drakebots: {result.verdict}: {result.message}", file=sys.stderr)
    return 130 if result.verdict == "interrupted" else 1


@contextmanager
def one_line_errors(program: str) -> Iterator[None]:
    """Ends a script with the error's exit code and one line, `program: message`."""
    try:
        yield
    except DrakebotsError as error:
        print(f"{program}: {error}", file=sys.stderr)
        raise SystemExit(error.exit_code) from None


_json: ContextVar[TextIO | None] = ContextVar("_json", default=None)


@contextmanager
def json_alone() -> Iterator[None]:
    """While it lasts, stdout is for JSON; all else that is printed goes to stderr."""
    token = _json.set(sys.stdout)
    try:
        with redirect_stdout(sys.stderr):
            yield
    finally:
        _json.reset(token)


def print_json(value: Mapping[str, Any]) -> None:
    """Prints one JSON object on one line."""
    print(json.dumps(plain(value)), flush=True, file=_json.get() or sys.stdout)


def print_table(title: str, rows: Mapping[str, Any]) -> None:
    """Prints names and values as a table; as they are, without any markup.

    To a pipe or a file go lines `name: value`, after one with the title.
    """
    lines = [f"{name}: {text_of(value)}" for name, value in rows.items()]
    table = Table(title_justify="left", show_header=False)
    table.add_column(style="bold")
    table.add_column(overflow="fold")
    _print(title, table, rows.items(), lines)


def print_rows(title: str, rows: Sequence[Mapping[str, Any]]) -> None:
    """Prints rows of the same columns as a table; as they are, without any markup.

    To a pipe or a file goes one line a row, `name: value; name: value`.
    """
    if not rows:
        return
    lines = ["; ".join(f"{k}: {text_of(v)}" for k, v in row.items()) for row in rows]
    table = Table(title_justify="left")
    for name in rows[0]:
        table.add_column(Text(printable(name)), overflow="fold")
    _print(title, table, [row.values() for row in rows], lines)


def _print(title: str, table: Table, rows: Iterable, lines: Iterable[str]) -> None:
    """Prints rows in a table to a terminal, else lines."""
    if not sys.stdout.isatty():
        print(f"# {printable(title)}")
        for line in lines:
            print(printable(line))
        return
    table.title = Text(printable(title))
    for row in rows:
        table.add_row(*(Text(printable(text_of(value))) for value in row))
    Console(soft_wrap=False).print(table)


def report_of(result: Result) -> dict[str, Any]:
    """The figures of a result as one flat mapping."""
    return {
        "model": result.model,
        "kind": result.kind,
        "verdict": str(result.verdict),
        "message": result.message,
        **result.metrics,
        "residuals": dict(result.residuals),
        "timings_s": dict(result.timings),
        # What it keeps of the model is for reading it again, not for a person.
        "provenance": {k: v for k, v in result.provenance.items() if k != "model"},
    }


def print_report(result: Result) -> None:
    """Prints the figures of a result as a table; long lists are left out."""
    facts = report_of(result)
    for key in ("residuals", "provenance", "stride_mm", "iteration_log"):
        facts.pop(key, None)
    facts["worst residual"] = dict(list(result.residuals.items())[:1])
    facts["made by"] = (
        f"drakebots {result.provenance.get('drakebots')}, "
        f"drake {result.provenance.get('drake')}, {result.provenance.get('date')}"
    )
    print_table(f"{result.model}: {result.verdict}", facts)


def model_table(model: Model) -> dict[str, Any]:
    """Table that `drakebots show` prints."""
    report = model.report()
    return {
        "file": report["path"],
        "mass [kg]": report["mass_kg"],
        "bodies": report["bodies"],
        "positions, velocities": (
            f"{report['num_positions']}, {report['num_velocities']}"
        ),
        "actuators": report["actuators"],
        "springs and dampers": report["springs_and_dampers"],
        "loops": report["loops"] or None,
        "joints that follow others": report["couplers"] or None,
        "loop rows": (
            f"{report['loop_rows']}, {report['independent_loop_rows']} independent, "
            f"largest gap {report['loop_gap_m']:.2g} m"
        ),
        "feet": {k: v["body"] for k, v in report["feet"].items()} or None,
        "points": report["points"] or None,
    }
