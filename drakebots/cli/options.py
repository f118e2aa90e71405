"""Commands in all their forms, and options that they share: fields, files to write."""

from __future__ import annotations

import argparse
import os
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import MISSING, dataclass, is_dataclass
from functools import cached_property, partial
from itertools import pairwise, product
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

from drakebots.core.checks import Rule
from drakebots.core.convert import changed_by_word, from_word, item_of, subclasses
from drakebots.core.errors import FileProblem, InvalidInput
from drakebots.core.fields import Field, checked, declared
from drakebots.core.files import check_output, claimed, with_ending
from drakebots.core.lazy import resolve
from drakebots.plots import check_ending
from drakebots.robots import record

if TYPE_CHECKING:
    from drakebots.model import Model
    from drakebots.results import Result

# --- commands -----------------------------------------------------------------

Arguments = Callable[[argparse.ArgumentParser], None]
"""Adds arguments to a parser."""
Run = Callable[[argparse.Namespace], int]


@dataclass(frozen=True)
class Variant:
    """Options and work of a command, for all models or for one robot.

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
class Form:
    """The form of a command for some robots or files.

    Attributes:
        title: the robot or kind of result.
        matches: whether a word of the command line names one.
        load: gives the options and the work; only then is the robot imported.
    """

    title: str
    matches: Callable[[str], bool]
    load: Callable[[], Variant]


@dataclass(frozen=True)
class Command:
    """One command of the command line.

    Attributes:
        name: as typed.
        load: makes the form for whatever no other one matches.
        forms: its special forms.
        show_forms: whether `--help` lists the options of all forms.
        find: raises an error if the model or file that a word names does not exist.
    """

    name: str
    load: Callable[[], Variant]
    forms: Callable[[], Sequence[Form]] = tuple
    show_forms: bool = False
    find: Callable[[str], object] = lambda word: None

    @cached_property
    def general(self) -> Variant:
        """The form for whatever no other one matches."""
        return self.load()

    def variant(self, words: Sequence[str]) -> Variant:
        """Loads the form for the robot or file that a command line names."""
        pairs = product(self.subjects(words), self.forms())
        found = (form.load() for word, form in pairs if form.matches(word))
        return next(found, None) or self.general

    def subjects(self, words: Iterable[str]) -> list[str]:
        """Words that may name the model or file, the likeliest first.

        Without the options' definitions a word behind `--x` may be its value or, where
        --x is a switch, the model: such words come last, and only if they exist.
        """
        sure, unsure = [], []
        for last, word in pairwise(words):
            if not word.startswith("-"):
                in_doubt = last.startswith("-") and "=" not in last
                (unsure if in_doubt else sure).append(word)
        return sure or [word for word in unsure if self._exists(word)]

    def _exists(self, word: str) -> bool:
        return os.path.exists(word) or any(f.matches(word) for f in self.forms())

    @property
    def notes(self) -> str:
        """Epilog of the general form's help, which points to the other forms."""
        forms = self.forms()
        if self.show_forms:
            return "".join(f"\n\nfor {f.title}:\n{_shown(f.load())}" for f in forms)
        if not forms:
            return ""
        return (
            "\n\nOther options apply to: "
            + ", ".join(form.title for form in forms)
            + f".\nSee `drakebots {self.name} {forms[0].title} --help`, for example."
        )


def variant(example: str, *arguments: Arguments | type) -> Callable[[Run], Variant]:
    """A decorator for the work of a form; its help is the first line of the docstring.

    Args:
        example: a whole command line.
        arguments: what adds the options; of a dataclass its fields are.
    """

    def add(parser: argparse.ArgumentParser) -> None:
        for part in arguments:
            if isinstance(part, type):
                field_options(parser, part, by_place=True)
            else:
                part(parser)

    def decorate(run: Run) -> Variant:
        text = (run.__doc__ or "").partition("\n")[0].rstrip(".")
        return Variant(text[:1].lower() + text[1:], example, add, run)

    return decorate


def command(
    name: str, example: str, *arguments: Arguments | type, **more: Any
) -> Callable[[Run], Command]:
    """A decorator for the work of a command's general form; see :func:`variant`.

    Args:
        name: as typed.
        example, arguments: as of :func:`variant`.
        more: further fields of the command.
    """
    return lambda run: Command(name, lambda: variant(example, *arguments)(run), **more)


def _shown(variant: Variant) -> str:
    """Formats the options of a variant as `--help` shows them."""
    parser = argparse.ArgumentParser(add_help=False, usage=argparse.SUPPRESS)
    variant.arguments(parser)
    return parser.format_help().rstrip()


# --- files that are written ---------------------------------------------------

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
    """The files that :func:`drakebots.cli.output.finish` writes of any result."""

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
