"""The command `drakebots`: models, show, simulate, mpc, live, plan, track, refine,
sweep, export, limbs, attach, design, identify, compare, calibrate, view, report,
doctor, completion, schema.

    drakebots simulate hamr --gait trot --frequency 10 --surface card -o run.nc
    drakebots simulate gecko --targets "65cm,0 65cm,65cm" --epsilon 10cm -o run.nc
    drakebots plan hamr --frequency 10 --surface card -o plan.nc
    drakebots track plan.nc -o run.nc
    drakebots sweep hamr.plan --frequency 2,10 --surface card,teflon -o out/
    drakebots view run.nc --html run.html
    drakebots report run.nc --plot run.png

Exit codes: 0 done, 1 no solution (or a run that failed), 2 bad input, 130 and 143
ended by Ctrl-C and SIGTERM, which keep what was reached. With --json, stdout holds one
JSON object, and tables go to stderr. In a pipe or a file, tables are lines "name:
value". Numbers may have units (10Hz, 5mm, 30deg); those without are in SI.
"""

from __future__ import annotations

import argparse
import difflib
import errno
import logging
import math
import os
import re
import sys
from collections.abc import Callable, Iterable, Sequence
from contextlib import AbstractContextManager, nullcontext, suppress
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise, product
from typing import Any

from drakebots import __version__
from drakebots.cli.progress import warnings_on_one_line
from drakebots.core.errors import DrakebotsError, InvalidInput, UnknownName, one_line
from drakebots.core.lazy import late, resolve
from drakebots.core.run import Command as Running
from drakebots.core.run import Stopped, ended_by, keeping

_options, _output = late("drakebots.cli.options"), late("drakebots.cli.output")

COMMANDS = {
    "models": ("list the models that come with drakebots", "look:list_models"),
    "show": ("check a model and print what it contains", "look:show_model"),
    "simulate": ("simulate a robot, or any model held by servos", "task:SIMULATE"),
    "mpc": ("control a legged robot that is pushed", "task:MPC"),
    "live": ("drive, push and pose a robot in the browser", "task:LIVE"),
    "plan": ("plan a motion of a robot, or of any legged model", "plan:plan_motion"),
    "track": ("execute a plan on its robot", "plan:TRACK"),
    "refine": ("plan again from executed runs", "plan:REFINE"),
    "sweep": ("solve a problem over many values", "sweep:SWEEP"),
    "export": (
        "write a model or a result for other tools, a plan for hardware",
        "plan:export",
    ),
    "limbs": ("put soft, actuated limbs on any robot", "design:put_limbs"),
    "attach": ("glue an elastic skin to a skeleton", "skin:attach_skin"),
    "design": ("design a skinned robot from a surface", "design:design_skinned"),
    "identify": ("find a model's parameters from measurements", "sweep:IDENTIFY"),
    "compare": ("compare a run with a log or a run", "look:compare_runs"),
    "calibrate": ("fit a lattice's kinematics to markers", "lattice:calibrate_lattice"),
    "view": ("show a result or a model in Meshcat", "look:view_scene"),
    "report": ("summarize a result", "look:report_result"),
    "doctor": ("say what is installed, and what is slow and why", "doctor:examine"),
    "completion": ("let a shell complete commands", "look:print_completion"),
    "schema": ("write JSON Schemas of our YAML files", "look:write_schemas"),
}
"""Commands by name: one line, and the command's place; it is imported when typed."""


# --- a command and its forms ---------------------------------------------------

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
                _options.field_options(parser, part, by_place=True)
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


# --- the command line ---------------------------------------------------------


def find_command(name: str) -> Command:
    """Imports a command by its name."""
    return resolve(f"drakebots.cli.{COMMANDS[name][1]}")


class Parser(argparse.ArgumentParser):
    """A parser whose errors are one line.

    Options are never shortened: `--time 2` would be a time limit for one robot
    and nothing for the next.
    """

    def __init__(self, **settings):
        settings.setdefault("formatter_class", argparse.RawDescriptionHelpFormatter)
        super().__init__(**settings, allow_abbrev=False)

    def error(self, message: str):
        """Raises InvalidInput, in place of argparse's page."""
        raise InvalidInput(f"{message}; see `{self.prog} --help`")

    def meant(self, word: str) -> str:
        """A hint at the options that a misspelt word may stand for."""
        known = self._option_string_actions
        word = word.partition("=")[0]
        near = [name for name in known if word[2:] and name.startswith(word)]
        near = near or difflib.get_close_matches(word, known, n=1, cutoff=0.75)
        return f" (did you mean {' or '.join(near)}?)" if near else ""


def make_parser(words: Sequence[str] = ()) -> Parser:
    """Makes the parser of all commands.

    Args:
        words: the command line; a robot named in it gives its command options
            of its own.
    """
    parser = Parser(prog="drakebots", description=__doc__)
    version = f"drakebots {__version__}"
    if "--version" in words[:1]:
        drake = resolve("drakebots.core.installed:version_of")("drake")
        version += f", Drake {drake or 'unknown'}"
    parser.add_argument("--version", action="version", version=version)
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    for name, (text, _) in COMMANDS.items():
        sub = commands.add_parser(name, help=text)
        # The others show their line only: importing them takes seconds.
        if list(words[:1]) == [name]:
            _fill(sub, find_command(name), words)
    return parser


def _fill(sub: Parser, command: Command, words: Sequence[str]) -> None:
    """Adds the options of the form that a command line names."""
    variant = command.variant(words)
    notes = command.notes if variant is command.general else ""
    sub.description = variant.help
    sub.epilog = f"example:\n  {variant.example}{notes}"
    variant.arguments(sub)
    text = "print one JSON object, and nothing else, on stdout"
    _options.switch(sub, "--json", "json", text)
    sub.set_defaults(run=variant.run, parser=sub)


def parse(argv: Sequence[str]) -> argparse.Namespace:
    """Parses a command line.

    Raises:
        UnknownName: for a command that is none.
        InvalidInput: for an option that the command does not have for its model,
            and for what is missing or no number.
    """
    argv = _joined(argv)
    for word in argv:
        if word.startswith("--") and word.endswith("=--"):
            # argparse gives an empty list for it.
            raise InvalidInput(f"{word[:-3]}: '--' is no value; see --help")
    if argv and not argv[0].startswith("-") and argv[0] not in COMMANDS:
        raise UnknownName("command", argv[0], COMMANDS)
    try:
        args, unknown = make_parser(argv).parse_known_args(argv)
    except InvalidInput:
        _find_inputs(argv)
        raise
    if unknown:
        _find_inputs(argv)
        subjects = (getattr(args, name, None) for name in ("model", "plan", "what"))
        named = " ".join(filter(None, ("drakebots", args.command, *subjects)))
        raise InvalidInput(
            f"{unknown[0]} does not apply to `{named}`{args.parser.meant(unknown[0])}; "
            f"see `{named} --help`"
        )
    return args


def _find_inputs(argv: Sequence[str]) -> None:
    """Raises an error if the named model or file is missing: it decides the options."""
    if argv and argv[0] in COMMANDS:
        command = find_command(argv[0])
        for word in command.subjects(argv)[:1]:
            command.find(word)


def complete(words: Sequence[str]) -> list[str]:
    """Candidates for the last word of a command line; [] for a file's name.

    Args:
        words: those after `drakebots`; the last one may be empty or begun.
    """
    *before, last = words or [""]
    if not before:
        return [name for name in COMMANDS if name.startswith(last)]
    if before[0] not in COMMANDS:
        return []
    commands = make_parser(before)._subparsers._group_actions[0]  # type: ignore
    parser = commands.choices[before[0]]
    option = parser._option_string_actions.get(before[-1])
    if option is not None and option.nargs != 0:
        choices = getattr(option, "completions", None) or option.choices or ()
    elif last.startswith("-"):
        choices = parser._option_string_actions
    else:
        # A robot's form has fewer choices than all models.
        general = Parser()
        find_command(before[0]).general.arguments(general)
        known = (
            getattr(a, "completions", ()) for a in general._get_positional_actions()
        )
        choices = next(filter(None, known), ())
    return [str(choice) for choice in choices if str(choice).startswith(last)]


_NEGATIVE_POINT = re.compile(r"-[0-9.].*")


def _joined(argv: Sequence[str]) -> list[str]:
    """`--targets -35,-20` as `--targets=-35,-20`: argparse takes "-3" for an option."""
    words: list[str] = []
    for word in argv:
        if words and words[-1].startswith("--") and _NEGATIVE_POINT.fullmatch(word):
            words[-1] += "=" + word
        else:
            words.append(word)
    return words


def main(argv: Sequence[str] | None = None) -> int:
    """Runs a command line and returns its exit code; errors are one line."""
    # Drake's own chatter (a port it listens on, ...) is not for this user.
    # A filter, since the level is set anew when pydrake is imported.
    logging.getLogger("drake").addFilter(lambda record: record.levelno >= logging.ERROR)
    code = 1  # of a second signal, or the end of its time, while it ends
    with Running() as running, suppress(Stopped):
        try:
            with warnings_on_one_line():
                args = parse(sys.argv[1:] if argv is None else argv)
                limit = getattr(args, "time_limit", None)
                if limit is not None and limit > 0 and math.isfinite(limit):
                    running.limit(limit)
                alone = _output.json_alone() if args.json else nullcontext()
                with _options.claimed_outputs(args), alone, _keeping(args):
                    ran = args.run(args)
                sys.stdout.flush()
            code = ran
        except (Exception, KeyboardInterrupt) as error:
            code = _told(error, running)
    return running.exit_code or code


def _keeping(args: argparse.Namespace) -> AbstractContextManager[None]:
    """Keeps what a simulation has reached where its result will be."""
    output = getattr(args, "output", None)
    if args.command not in ("simulate", "track", "mpc", "live") or output is None:
        return nullcontext()
    return keeping(lambda result: result.save(output))


def _told(error: BaseException, running: Running) -> int:
    """The exit code of what ended a command, after one line on it.

    Raises:
        the error itself, where it is a fault of ours.
    """
    code, number = 1, getattr(error, "errno", None)
    if isinstance(error, DrakebotsError):
        code, text = error.exit_code, str(error)
    elif number in (errno.EPIPE, errno.ENOSPC):
        # The reader of a pipe went away, which is not an error of ours, or no more
        # can be printed: nor will what is left.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        if number == errno.EPIPE:
            return 0
        text = f"{one_line(error)}; make room, or print to another place"
    # What is raised in C or C++ may come out as another error: a module whose
    # import was cut short as ImportError, a callback's as RuntimeError.
    elif isinstance(error, KeyboardInterrupt) or running.cause is not None:
        message = ended_by(error)[1].partition(";")[0]
        text = f"{message}, before it had a result"
    else:
        raise error
    print(f"drakebots: {text}", file=sys.stderr)
    return code
