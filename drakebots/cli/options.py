"""Options that commands share: fields of dataclasses, and files to write."""

from __future__ import annotations

import argparse
import os
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import MISSING, dataclass, is_dataclass
from functools import partial
from pathlib import Path
from types import UnionType
from typing import (
    TYPE_CHECKING,
    Annotated,
    Any,
    NamedTuple,
    TypeVar,
    Union,
    get_args,
    get_origin,
)

from drakebots.cli.output import exit_code, print_report, report_of, tell
from drakebots.cli.progress import warn
from drakebots.core.checks import Rule
from drakebots.core.convert import changed_by_word, from_word, item_of, subclasses
from drakebots.core.errors import (
    DrakebotsError,
    DrawingProblem,
    FileProblem,
    InvalidInput,
)
from drakebots.core.fields import Field, checked, declared
from drakebots.core.files import check_output, claimed, with_ending
from drakebots.core.lazy import resolve
from drakebots.core.run import check_stop, ended_by, saving
from drakebots.plots import check_ending
from drakebots.robots import record

if TYPE_CHECKING:
    from drakebots.model import Model
    from drakebots.results import Result

# --- files that are written ---------------------------------------------------

Drawn = TypeVar("Drawn")
Write = Callable[["Result", Path, "Model | None"], Path]


@dataclass(frozen=True)
class Written(Rule):
    """A file that the command writes; the field's text names its endings: "(.nc)".

    Attributes:
        write: writes it from the command's result; None where the command does.
        picture: whether its ending must be that of a picture.
        draws: whether it is a drawing; it is made after all that is data.
    """

    take: None = None
    write: Write | None = None
    picture: bool = False
    draws: bool = False


def at(place: str) -> Callable:
    """The function at "module:name", imported when it is called."""
    return lambda *given: resolve(place)(*given)


def drawing(place: str) -> Written:
    """A picture of the command's result, by the function (result, path) at a place."""
    write = lambda result, path, model: resolve(place)(result, path)  # noqa: E731
    return Written(write=write, picture=True, draws=True)


RESULT = Written(write=lambda result, path, model: result.save(path))
TABLE = Written(write=lambda result, path, model: result.to_csv(path))
PAGE = Written(
    write=lambda result, path, model: record(result, model=model).save(path), draws=True
)


@checked()
class Outputs:
    """The files that :func:`finish` writes of any result."""

    output: Annotated[Path | None, RESULT] = None
    """Result file to write (.nc)."""
    csv: Annotated[Path | None, TABLE] = None
    """Table to write as well (.csv)."""
    html: Annotated[Path | None, PAGE] = None
    """Meshcat page to write as well (.html)."""
    plot: Annotated[Path | None, drawing("drakebots.robots:plot")] = None
    """Picture to write as well (.png)."""


# --- fields and switches ----------------------------------------------------

Chosen = TypeVar("Chosen")

_ROLE = re.compile(r":\w+:`~?([^`]+)`")
_WORDS = (float, int, str, Path)


def field_options(
    parser, problem: type, *, but: Iterable[str] = (), by_place: bool = False
) -> None:
    """Adds an option for each field of a dataclass that a word can say.

    A flag's option turns it over: `--imu`, or `--no-ground` where it is true by
    default. What holds several things is given several times: `--push 5N@1s`.

    Args:
        parser: to add to.
        problem: the dataclass.
        but: fields to leave out.
        by_place: whether fields without default must be given: those that may be named
            only by their options, the others by their places.
    """
    for name, entry in declared(problem).items():
        if name not in but:
            _field_option(parser, entry, by_place and entry.required)


def _field_option(parser, entry: Field, must: bool) -> None:
    text = _ROLE.sub(r"\1", entry.help) or entry.name.replace("_", " ")
    if not all(choice in text for choice in entry.choices):
        text += f": {', '.join(entry.choices)}"
    if shown := _default(entry.default):
        text += f" (default {shown})"
    part = item_of(entry.kind) if is_repeated(entry.kind) else entry.kind
    if inside := _inside(part, entry.default):
        text += f"; with {inside}"
    text = text.replace("%", "%%")  # argparse formats help texts
    if entry.kind is bool:
        _flags(parser, entry, text)
        return
    if not _is_said(entry.kind):
        return
    flag = option(entry.name)
    extra: dict[str, Any] = {"metavar": _metavar(part) or None, "help": text}
    if is_repeated(entry.kind):
        flag = re.sub("(?<=sh)es$|s$", "", flag)
        extra["action"] = "append"
    flags = ["-o", flag] if entry.name == "output" else [flag]
    if must and not entry.keyword_only:
        flags = [entry.name]
    else:
        extra |= {"dest": entry.name, "required": must}
    if isinstance(entry.rule, Written):
        output_argument(parser, *flags, how=entry.rule, **extra)
        return
    if not entry.is_changed:  # which field_values reads
        extra["type"] = partial(from_word, part, what=flag, unit=entry.unit)
    completes(parser.add_argument(*flags, **extra), entry.choices)


def field_values(
    args: argparse.Namespace, problem: type, names: Iterable[str], base: Any = None
) -> dict[str, Any]:
    """The fields of a problem that were given, by name.

    Args:
        args: of :func:`field_options`.
        problem: the dataclass.
        names: of its fields.
        base: an object of which words change dataclasses; by default the problem's
            own defaults.
    """
    found = given(args, names)
    for name, value in found.items():
        entry = declared(problem)[name]
        if is_repeated(entry.kind):
            found[name] = tuple(value)
        elif entry.is_changed:
            old = getattr(base, name, entry.default)
            found[name] = changed_by_word(old, value, option(name))
    return found


def chosen(args: argparse.Namespace, kind: type[Chosen]) -> Chosen:
    """A dataclass of those of its fields that were given."""
    return kind(**field_values(args, kind, declared(kind)))


def _flags(parser, entry: Field, text: str) -> None:
    text = text.removeprefix("whether ")
    if entry.default is not True:
        switch(parser, option(entry.name), entry.name, text)
    if entry.default is True or entry.optional:
        flag = "--no" + option(entry.name)[1:]
        switch(parser, flag, entry.name, f"switch off: {text}", value=False)


def _is_said(kind: Any) -> bool:
    """Whether a word can say a value of a type, by :func:`from_word`."""
    origin, inner = get_origin(kind) or kind, get_args(kind)
    if origin in (Union, UnionType):
        return any(_is_said(one) for one in inner)
    if kind in _WORDS or hasattr(kind, "from_word") or hasattr(kind, "from_file"):
        return True
    if isinstance(origin, type) and issubclass(origin, Mapping):
        return bool(inner) and _is_said(inner[1])
    if item := item_of(kind):
        return _is_said(item)
    if origin is tuple:
        return bool(inner) and all(_is_said(one) for one in inner)
    if is_dataclass(kind):
        return any(f.text and _is_said(f.kind) for f in declared(kind).values())
    return bool(subclasses(kind))


def is_repeated(kind: Any) -> bool:
    """Whether a field holds several things of which a word says one."""
    item = item_of(kind)
    return bool(item) and (is_dataclass(item) or bool(item_of(item)))


def _metavar(kind: Any) -> str:
    origin = get_origin(kind) or kind
    if said := getattr(kind, "word", ""):
        return said
    if isinstance(origin, type) and (issubclass(origin, Mapping) or is_dataclass(kind)):
        return "NAME=VALUE,..."
    if get_origin(item_of(kind)) is tuple:
        return '"X,Y X,Y ..."'
    if item_of(kind):
        return "A,B,..."
    return ",".join("ABCDEF"[: len(get_args(kind))]) if origin is tuple else ""


def _inside(kind: Any, default: Any = None) -> str:
    """The fields of a part, with units and defaults: "knots (20), delay [s]"; of a
    choice of parts those of each. Empty for what has a word of its own, as a file."""
    if not isinstance(kind, type) or hasattr(kind, "word") or kind in _WORDS:
        return ""
    if not is_dataclass(kind):
        parts = {name: _inside(each) for name, each in subclasses(kind).items()}
        return "; ".join(f"{name}: {text}" for name, text in parts.items() if text)
    shown = []
    for entry in declared(kind).values():
        if entry.kind is bool or _is_said(entry.kind):
            said = _default(getattr(default, entry.name, entry.default))
            unit, said = entry.unit and f" [{entry.unit}]", said and f" ({said})"
            shown.append(f"{entry.name}{unit}{said}")
    return ", ".join(shown)


def _default(value: Any) -> str:
    if isinstance(value, bool) or value is MISSING:
        return ""
    if isinstance(value, int | float | str | Path):
        return f"{value:g}" if isinstance(value, float) else str(value)
    if isinstance(value, tuple) and value and all(map(_default, value)):
        nested = isinstance(value[0], tuple)
        return (" " if nested else ",").join(map(_default, value))
    return ""


def first_field(problem: type) -> str:
    """The field that may be given without its name: the plan of what tracks one."""
    return next(f.name for f in declared(problem).values() if not f.keyword_only)


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


class Output(NamedTuple):
    """A file that a command writes when its option is given.

    Attributes:
        name: of the option.
        how: how it is written.
        endings: those that its name may have; empty for any.
    """

    name: str
    how: Written
    endings: tuple[str, ...]


def output_argument(
    parser, *flags: str, how: Written = Written(), help: str, **extra: Any
) -> None:
    """Adds a file to write, which is checked before the command runs.

    Its endings are those that the help text names: "(.nc)".
    """
    action = parser.add_argument(*flags, type=Path, help=help, **extra)
    before = parser.get_default("outputs") or ()
    entry = Output(action.dest, how, tuple(_ENDING.findall(help)))
    parser.set_defaults(outputs=(*before, entry))


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
    taken: dict[Path, str] = {}
    for entry, path in wanted(args):
        if entry.how.picture:
            check_ending(path)
        real = check_output(path)
        if real in taken:
            raise InvalidInput(
                f"{path}: {taken[real]} and {option(entry.name)} would both write "
                "it; name two files"
            )
        taken[real] = option(entry.name)
    names = {entry.name for entry, _ in wanted(args)}
    for name, value in vars(args).items():
        named = name not in names and isinstance(value, str | Path)
        if named and os.path.isfile(value) and Path(value).resolve() in taken:
            raise FileProblem(
                value, "is read and would be overwritten; write to another file"
            )
    for entry, path in wanted(args):
        if entry.endings:
            with_ending(path, entry.endings)
    checkpoint = getattr(args, "checkpoint", None)
    kept = [] if checkpoint is None else [check_output(checkpoint)]
    with claimed(sorted({*taken, *kept})):
        yield


# --- writing them ---------------------------------------------------------------


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
