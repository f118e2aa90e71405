"""What a command is, and what commands share."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Iterable, Mapping
from dataclasses import MISSING, dataclass, field, fields
from pathlib import Path
from typing import Any

from drakebots.cli.output import SYSTEMS, print_json, print_report, report_of
from drakebots.errors import InvalidInput, UnknownName
from drakebots.lattice.io import ENDINGS
from drakebots.models import load
from drakebots.plots import plot_summary
from drakebots.results import Result, check_output
from drakebots.view import record, write_html

Arguments = Callable[[argparse.ArgumentParser], None]
Run = Callable[[argparse.Namespace], int]


@dataclass(frozen=True)
class Variant:
    """A command for one robot, with options of its own.

    Attributes:
        help: one line.
        example: a whole command line.
        arguments: adds the options.
        run: does the work, returns the exit code.
    """

    help: str
    example: str
    arguments: Arguments
    run: Run


@dataclass(frozen=True)
class Command:
    """One command of the command line.

    Attributes:
        name: as typed.
        help: one line.
        example: a whole command line.
        arguments: adds the options; of any model, where robots have their own.
        run: does the work, returns the exit code.
        robots: by model name, what the command is for that robot.
        lattice: what the command is for a lattice's file.
        skin: what the command is for a model with a skin.
        has_skin: whether a word of a command line names such a model.
    """

    name: str
    help: str
    example: str
    arguments: Arguments
    run: Run
    robots: Mapping[str, Variant] = field(default_factory=dict)
    lattice: Variant | None = None
    skin: Variant | None = None
    has_skin: Callable[[str], bool] = lambda word: False

    def variant(self, words: Iterable[str]) -> Command | Variant:
        """What the command is, for the robot or lattice a command line names."""
        words = list(words)
        if self.skin is not None and any(map(self.has_skin, _inputs(words[1:]))):
            return self.skin
        if self.lattice is not None and any(map(is_lattice, words)):
            return self.lattice
        return next((self.robots[w] for w in words if w in self.robots), self)

    @property
    def variants(self) -> tuple[Variant, ...]:
        """All forms beside its own."""
        extra = (one for one in (self.lattice, self.skin) if one is not None)
        return (*self.robots.values(), *extra)


def _inputs(words: list[str]) -> list[str]:
    """Words that are no option's value: a file to write says nothing of the model."""
    before = ["", *words]
    return [w for last, w in zip(before, words) if not last.startswith("-")]


def is_lattice(word: str) -> bool:
    """Whether a word of a command line names a lattice's file."""
    return (
        not word.startswith("-")
        and Path(word).suffix.lower() in ENDINGS
        and not word.endswith((".dmd.yaml", ".drakebots.yaml"))
    )


def model_argument(parser: argparse.ArgumentParser) -> None:
    """The model and its units."""
    parser.add_argument(
        "model", help="a name (see `drakebots models`) or a URDF, SDF, MJCF, dmd.yaml"
    )
    parser.add_argument(
        "--units",
        default="SI",
        metavar="U",
        help=f"of a URDF in the old Drake format: {', '.join(SYSTEMS)} (default SI)",
    )


def load_model(args: argparse.Namespace):
    """The model that the arguments name."""
    if args.units not in SYSTEMS:
        raise UnknownName("units", args.units, SYSTEMS)
    feet = getattr(args, "feet", None)
    return load(
        args.model,
        units=SYSTEMS[args.units],
        feet=feet.split(",") if feet else None,
    )


_TYPES = {"int": int, "str": str}


def field_options(parser, problem: type, texts: Mapping[str, str]) -> None:
    """An option for each field of a problem that has a text, with its default."""
    for entry in fields(problem):
        if entry.name not in texts:
            continue
        default, text = entry.default, texts[entry.name]
        if entry.type == "bool":
            extra: dict[str, Any] = {"action": "store_const", "const": True}
        else:
            extra = {"type": _TYPES.get(str(entry.type).split(" ")[0], float)}
            if default is not MISSING and default is not None:
                text += f" (default {default})"
        parser.add_argument(
            "--" + entry.name.replace("_", "-"), default=None, help=text, **extra
        )


def given(args: argparse.Namespace, names: Iterable[str]) -> dict[str, Any]:
    """The options among `names` that were given, by name."""
    found = {name: getattr(args, name) for name in names}
    return {name: value for name, value in found.items() if value is not None}


def refuse(args: argparse.Namespace, names: Iterable[str], why: str) -> None:
    """Raises InvalidInput if one of the options was given."""
    for name in given(args, names):
        raise InvalidInput(
            f"--{name.replace('_', '-')} does not apply to {why}; leave it out"
        )


_OUTPUTS = ("output", "csv", "html", "plot")


def output_arguments(parser: argparse.ArgumentParser) -> None:
    """The files a run can write."""
    parser.add_argument("-o", "--output", type=Path, help="result file (.nc)")
    parser.add_argument("--csv", type=Path, help="also as a table")
    parser.add_argument("--html", type=Path, help="also as a Meshcat page")
    parser.add_argument("--plot", type=Path, help="also as a picture (.png)")


def check_outputs(args: argparse.Namespace, *more: Path | None) -> None:
    """Raises FileProblem for a file that cannot be written."""
    for path in (*(getattr(args, name, None) for name in _OUTPUTS), *more):
        if path is not None:
            check_output(path)


def write_outputs(args: argparse.Namespace, result: Result, model=None) -> list[Path]:
    """Writes the files that were asked for."""
    written = []
    if args.output is not None:
        written.append(result.save(args.output))
    if args.csv is not None:
        written.append(result.to_csv(args.csv))
    if args.html is not None:
        written.append(write_html(record(result, model=model), args.html))
    if args.plot is not None:
        written.append(plot_summary(result, args.plot))
    return written


def finish(args: argparse.Namespace, result: Result, written: list[Path]) -> int:
    """Prints what a run came to; returns the exit code."""
    print_report(result)
    for path in written:
        print(path)
    if args.json:
        print_json(report_of(result) | {"files": [str(path) for path in written]})
    return exit_code(result)


def exit_code(result: Result) -> int:
    """0 for success; says on stderr why not."""
    if result.ok:
        return 0
    print(f"drakebots: {result.verdict}: {result.message}", file=sys.stderr)
    return 130 if result.verdict == "interrupted" else 1
