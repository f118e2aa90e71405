"""What commands print: tables, JSON, and the exit codes of results."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, redirect_stdout
from contextvars import ContextVar
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO

from rich.console import Console
from rich.table import Table
from rich.text import Text

from drakebots.core.convert import plain
from drakebots.core.errors import DrakebotsError, printable, text_of

if TYPE_CHECKING:
    from drakebots.model import Model
    from drakebots.results import Result


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
