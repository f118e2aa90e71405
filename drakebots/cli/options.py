"""Options that commands share: fields of a problem, switches, files to write."""

from __future__ import annotations

import argparse
import inspect
import os
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import MISSING, dataclass, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any

from drakebots.core.errors import FileProblem, InvalidInput, UnknownName
from drakebots.core.files import check_output, claimed
from drakebots.core.units import dimensions, si_factor
from drakebots.plots import check_ending
from drakebots.robots import plot, record

if TYPE_CHECKING:
    from drakebots.model import Model
    from drakebots.results import Result

# --- fields and switches ----------------------------------------------------

_ROLE = re.compile(r":\w+:`~?([^`]+)`")
_ENTRY = re.compile(r"^(\w+(?:, \w+)*): (.*)$")


def attribute_texts(problem: type, *, but: Iterable[str] = ()) -> dict[str, str]:
    """Texts of a dataclass's fields, from "Attributes:" of the docstrings.

    Args:
        problem: the dataclass.
        but: fields to leave out.
    """
    texts: dict[str, str] = {}
    for kind in reversed(problem.__mro__):
        doc = inspect.cleandoc(kind.__dict__.get("__doc__") or "")
        _, found, section = doc.partition("Attributes:\n")
        if not found:
            continue
        names: tuple[str, ...] = ()
        for line in section.splitlines():
            if line and not line.startswith("    "):
                break
            entry = _ENTRY.match(line.strip()) if line[4:5] != " " else None
            if entry:
                names = tuple(entry[1].split(", "))
                texts |= dict.fromkeys(names, entry[2])
            elif line.strip():
                for name in names:
                    texts[name] += " " + line.strip()
    left = set(texts) - set(but)
    plain = {name: _ROLE.sub(r"\1", text).rstrip(".") for name, text in texts.items()}
    return {name: plain[name] for name in texts if name in left}


_TYPES = {"int": int, "str": str, "float": float}

# --- numbers with units -----------------------------------------------------

_NUMBER = re.compile(r"\s*([-+]?[0-9.]+(?:[eE][-+]?[0-9]+)?|[-+]?inf|nan)\s*(\S.*)?")
_UNITS = re.compile(r"\[([^\]]+)\]")


def quantity(flag: str, text: str) -> Callable[[str], float]:
    """A parser of an option's number: bare in SI, or with a unit, "10Hz", "5 mm".

    Args:
        flag: the option, for errors.
        text: its help, which names the unit in brackets: "[Hz]", "[N m, N]". Without
            brackets there is no unit.
    """
    found = _UNITS.search(text.replace(" or ", ", "))
    known = [word.strip() for word in re.split("[,;]", found[1])] if found else []
    known = [unit for unit in known if _is_unit(unit)]

    def parse(word: str) -> float:
        parts = _NUMBER.fullmatch(word)
        try:
            value, unit = float(parts[1]), parts[2]
        except (TypeError, ValueError):
            raise InvalidInput(f"{flag}: {word!r} is no number") from None
        if unit is None:
            return value
        if not known:
            raise InvalidInput(
                f"{flag}: takes no unit, got {word!r}; write the number alone"
            )
        if not any(_measures(unit, other) for other in known):
            raise InvalidInput(
                f"{flag}: {unit!r} is no unit for it; use {' or '.join(known)}"
            )
        return value * si_factor(unit)

    return parse


def number_argument(parser, flag: str, text: str, **extra: Any) -> None:
    """Adds an option for a number, whose help names its unit in brackets."""
    parser.add_argument(flag, type=quantity(flag, text), help=text, **extra)


def _is_unit(text: str) -> bool:
    try:
        return si_factor(text) > 0
    except InvalidInput:
        return False


def _measures(unit: str, other: str) -> bool:
    """Whether two units are of the same quantity."""
    if not _is_unit(unit):
        return False
    if dimensions(unit) is None or dimensions(unit) != dimensions(other):
        return unit == other
    # 1 Hz and 1 rad/s have the same dimensions, an angle and 1 too.
    turns = [bool(re.search("rad|deg", text)) for text in (unit, other)]
    return turns[0] == turns[1]


# --- fields -----------------------------------------------------------------


def field_options(parser, problem: type, texts: Mapping[str, str]) -> None:
    """Adds an option for each field of a problem that has a text, with its default.

    Fields of other types than numbers, text and flags have no option.
    """
    for entry in fields(problem):
        kind = str(entry.type).split(" ")[0]
        if entry.name not in texts or kind not in (*_TYPES, "bool"):
            continue
        default, text = entry.default, texts[entry.name]
        if kind == "bool":
            extra: dict[str, Any] = {"action": "store_const", "const": True}
        else:
            parse = quantity(option(entry.name), text)
            extra = {"type": parse if kind == "float" else _TYPES[kind]}
            choices = choices_of(problem, entry.name) if kind == "str" else ()
            if not all(choice in text for choice in choices):
                text += f": {', '.join(choices)}"
            if default is not MISSING and default is not None:
                text += f" (default {default})"
        text = text.replace("%", "%%")  # argparse formats help texts
        action = parser.add_argument(
            option(entry.name), default=None, help=text, **extra
        )
        if kind == "str":
            completes(action, choices)


def choices_of(problem: type, name: str) -> tuple[str, ...]:
    """The names that a field of a problem may have; none where it may have any.

    They are those that the problem's own check names when it refuses another one.
    """
    needed = [f.name for f in fields(problem) if f.init and _is_needed(f)]
    values = dict.fromkeys(needed) | {name: _NONE_SUCH}
    try:
        problem(**values)
    except UnknownName as error:
        return tuple(error.available) if error.name == _NONE_SUCH else ()
    except Exception:
        return ()  # Something else is checked first.
    return ()


_NONE_SUCH = "?"


def _is_needed(field) -> bool:
    return field.default is MISSING and field.default_factory is MISSING


def completes(action: argparse.Action, choices: Iterable[str]) -> None:
    """Notes for a shell's completion what an option's or argument's value may be."""
    action.completions = tuple(choices)  # type: ignore[attr-defined]


def switch(parser, flag: str, name: str, text: str, value: bool = True) -> None:
    """Adds an option without a value that sets `name`; None where it is not given."""
    parser.add_argument(flag, dest=name, action="store_const", const=value, help=text)


def option(name: str) -> str:
    """The command line option of a field."""
    return "--" + name.replace("_", "-")


def given(args: argparse.Namespace, names: Iterable[str]) -> dict[str, Any]:
    """The options among `names` that were given, by name."""
    found = {name: getattr(args, name) for name in names}
    return {name: value for name, value in found.items() if value is not None}


def refuse(args: argparse.Namespace, names: Iterable[str], why: str) -> None:
    """Raises InvalidInput if one of these options was given."""
    for name in given(args, names):
        raise InvalidInput(f"{option(name)} does not apply to {why}; leave it out")


# --- files to write ---------------------------------------------------------

_ENDING = re.compile(r"(?<=\()\.[a-z.]+(?=\))")

Write = Callable[["Result", Path, "Model | None"], Path]


@dataclass(frozen=True)
class Output:
    """A file that a command writes when its option is given.

    Attributes:
        name: of the option.
        write: writes it from the command's result; None where the command does.
        picture: whether its ending must be that of a picture.
        endings: those that its name may have; empty for any.
        draws: whether it is a drawing; it is made after all that is data.
    """

    name: str
    write: Write | None = None
    picture: bool = False
    draws: bool = False
    endings: tuple[str, ...] = ()


def output_argument(
    parser: argparse.ArgumentParser,
    *flags: str,
    write: Write | None = None,
    picture: bool = False,
    draws: bool = False,
    endings: tuple[str, ...] = (),
    **extra: Any,
) -> None:
    """Adds a file to write, which is checked before the command runs.

    Where no endings are given, they are those that the help text names: "(.nc)".
    """
    action = parser.add_argument(*flags, type=Path, **extra)
    before = parser.get_default("outputs") or ()
    endings = endings or tuple(_ENDING.findall(extra.get("help", "")))
    entry = Output(action.dest, write, picture, draws, endings)
    parser.set_defaults(outputs=(*before, entry))


def output_arguments(parser: argparse.ArgumentParser) -> None:
    """Adds the files that :func:`drakebots.cli.output.finish` writes for any result."""
    output_argument(
        parser,
        *("-o", "--output"),
        write=lambda result, path, model: result.save(path),
        help="result file to write (.nc)",
    )
    table_argument(parser, "table to write as well (.csv)")
    output_argument(
        parser,
        "--html",
        write=lambda result, path, model: record(result, model=model).save(path),
        draws=True,
        help="Meshcat page to write as well (.html)",
    )
    picture_argument(parser, "--plot", plot, "picture to write as well (.png)")


def table_argument(parser: argparse.ArgumentParser, text: str) -> None:
    """Adds the command's result as a table."""
    output_argument(
        parser,
        "--csv",
        write=lambda result, path, model: result.to_csv(path),
        help=text,
    )


def picture_argument(
    parser: argparse.ArgumentParser,
    flag: str,
    draw: Callable[[Result, Path], Path],
    text: str,
) -> None:
    """Adds a picture of the command's result."""
    output_argument(
        parser,
        flag,
        write=lambda result, path, model: draw(result, path),
        picture=True,
        draws=True,
        help=text,
    )


def wanted(args: argparse.Namespace) -> list[tuple[Output, Path]]:
    """The requested files."""
    outputs = getattr(args, "outputs", ())
    named = [(entry, getattr(args, entry.name)) for entry in outputs]
    return [(entry, path) for entry, path in named if path is not None]


def check_folder(path: Path) -> None:
    """Checks that a folder can be made or written into, before any work.

    Raises:
        FileProblem: naming what is in its way.
    """
    there = path.absolute()
    while not os.path.lexists(there):
        there = there.parent
    if not os.path.isdir(there):
        where = "" if there == path.absolute() else f"{there} "
        raise FileProblem(path, f"{where}is a file; name a folder")
    try:
        check_output(there / ".drakebots-probe")
    except FileProblem:
        raise FileProblem(
            path, f"cannot write into {there}; choose another folder"
        ) from None


@contextmanager
def claimed_outputs(args: argparse.Namespace) -> Iterator[None]:
    """Checks that all requested files can be written, before any work, and keeps other
    commands from writing them meanwhile.

    Raises:
        InvalidInput: for a picture of another ending, and for two files of one
            name.
        FileProblem: for a file of another ending, that cannot be written, that the
            command reads, or that another command is to write.
    """
    taken: dict[str, str] = {}
    for entry, path in wanted(args):
        if entry.picture:
            check_ending(path)
        real = str(check_output(path))
        if real in taken:
            raise InvalidInput(
                f"{path}: {taken[real]} and {option(entry.name)} would both write "
                "it; name two files"
            )
        taken[real] = option(entry.name)
    names = {entry.name for entry, _ in wanted(args)}
    for name, value in vars(args).items():
        if name in names or not isinstance(value, str | Path):
            continue
        if os.path.isfile(value) and os.path.realpath(value) in taken:
            raise FileProblem(
                value, "is read and would be overwritten; write to another file"
            )
    for entry, path in wanted(args):
        if entry.endings and not path.name.lower().endswith(entry.endings):
            raise FileProblem(path, f"needs the ending {' or '.join(entry.endings)}")
    claims = {Path(real) for real in taken}
    checkpoint = getattr(args, "checkpoint", None)
    if checkpoint is not None:
        claims.add(check_output(checkpoint))
    with claimed(sorted(claims)):
        yield
