"""A command has a general form, and forms for robots and kinds of results."""

from __future__ import annotations

import argparse
import os
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, fields
from functools import partial

from drakebots.cli.inputs import kind_of, stored_motion
from drakebots.cli.options import (
    attribute_texts,
    field_options,
    given,
    output_arguments,
)
from drakebots.cli.output import finish
from drakebots.cli.progress import progress_bar
from drakebots.core.errors import InvalidInput
from drakebots.robots import Task, is_scenario, kinds, read_scenario, resolve, robots

Arguments = Callable[[argparse.ArgumentParser], None]
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
        general: for whatever no form matches.
        forms: its special forms.
        show_forms: whether `--help` lists the options of all forms.
        find: raises an error if the model or file that a word names does not exist.
    """

    name: str
    general: Variant
    forms: Callable[[], Sequence[Form]] = tuple
    show_forms: bool = False
    find: Callable[[str], object] = lambda word: None

    def variant(self, words: Sequence[str]) -> Variant:
        """Loads the form for the robot or file that a command line names."""
        forms = self.forms()
        for word in self.subjects(words):
            for form in forms:
                if form.matches(word):
                    return form.load()
        return self.general

    def subjects(self, words: Iterable[str]) -> list[str]:
        """Words that may name the model or file, the likeliest first.

        Without the options' definitions a word behind `--x` may be its value or, where
        --x is a switch, the model: such words come last, and only if they exist.
        """
        sure, unsure, last = [], [], ""
        for word in list(words)[1:]:
            if not word.startswith("-"):
                (unsure if last.startswith("-") and "=" not in last else sure).append(
                    word
                )
            last = word
        return sure or [word for word in unsure if self._exists(word)]

    def _exists(self, word: str) -> bool:
        return os.path.exists(word) or any(f.matches(word) for f in self.forms())

    @property
    def notes(self) -> str:
        """Epilog of the general form's help, which points to the other forms."""
        forms = self.forms()
        if self.show_forms:
            return "".join(f"\n\nfor {f.title}:\n{_options(f.load())}" for f in forms)
        if not forms:
            return ""
        return (
            "\n\nOther options apply to: "
            + ", ".join(form.title for form in forms)
            + f".\nSee `drakebots {self.name} {forms[0].title} --help`, for example."
        )


def _options(variant: Variant) -> str:
    """Formats the options of a variant as `--help` shows them."""
    parser = argparse.ArgumentParser(
        add_help=False, usage=argparse.SUPPRESS, prog="drakebots"
    )
    variant.arguments(parser)
    return parser.format_help().rstrip()


def robot_forms(command: str) -> tuple[Form, ...]:
    """The forms of `simulate` or `plan`: one for each robot that does it."""
    found = []
    for robot in robots().values():
        task = getattr(robot, command)
        if task is not None and robot.name != "any":
            load = partial(_load, task, command, robot.name)
            found.append(Form(robot.name, robot.is_named, load))
    title = "a scenario file (.yaml)"
    scenario = Form(title, is_scenario, partial(scenario_variant, command))
    # Ahead of robots that are files themselves, as lattices.
    return (*found[:1], scenario, *found[1:])


def scenario_variant(command: str) -> Variant:
    """The form of `simulate` or `plan` for a scenario file, which has all options."""

    def arguments(parser: argparse.ArgumentParser) -> None:
        parser.add_argument("model", help="a scenario file (.yaml)")
        output_arguments(parser)

    def run(args: argparse.Namespace) -> int:
        scenario = read_scenario(args.model)
        if scenario.command != command:
            raise InvalidInput(
                f"{args.model} is a scenario to {scenario.command}; run `drakebots "
                f"{scenario.command} {args.model}`"
            )
        with progress_bar(f"{command} {scenario.robot}") as progress:
            result = resolve(scenario.task.run)(scenario.problem, progress=progress)
        return finish(args, result)

    file = {"simulate": "trot", "plan": "walk"}[command]
    example = f"drakebots {command} examples/{file}.yaml -o run.nc"
    return Variant(f"{command} what a scenario file says", example, arguments, run)


def kind_forms(command: str) -> tuple[Form, ...]:
    """The forms of `track`, `refine` or `export`: one a kind of plan that has it."""
    found: dict[object, Form] = {}
    names: dict[object, list[str]] = {}
    for kind in kinds().values():
        entry = getattr(kind, command)
        if not entry:
            continue
        names.setdefault(entry, []).append(kind.name)
        load = partial(_load, entry, command, kind.name)
        of_kind = tuple(names[entry])
        found[entry] = Form(
            "a result of kind " + " or ".join(of_kind),
            lambda word, of_kind=of_kind: kind_of(word) in of_kind,
            load,
        )
    return tuple(found.values())


def _load(entry, command: str, name: str) -> Variant:
    if isinstance(entry, str):
        return resolve(entry)
    if entry.options:
        return resolve(entry.options)
    return task_variant(entry, command, name)


def task_variant(task: Task, command: str, name: str) -> Variant:
    """A task's form: the fields of its problem are the options.

    So a robot that is registered from outside has a command line at once. Help texts
    are those of the problem's docstring, under "Attributes:".

    Args:
        task: of a robot or a kind.
        command: "simulate", "plan", "track" or "refine".
        name: of the robot, or of the kind of plan.
    """
    problem = resolve(task.problem)
    texts = attribute_texts(problem)
    names = [field.name for field in fields(problem) if field.init]
    subject, of_plan = name, command in ("track", "refine")
    if of_plan:
        names.remove(next(f.name for f in fields(problem) if not f.kw_only))
        subject = "plan.nc"
    options = {key: texts.get(key, key.replace("_", " ")) for key in names}

    def arguments(parser: argparse.ArgumentParser) -> None:
        parser.add_argument(
            "plan" if of_plan else "model",
            help=f"a result of kind {name} (.nc)" if of_plan else name,
        )
        field_options(parser, problem, options)
        output_arguments(parser)

    def run(args: argparse.Namespace) -> int:
        chosen = given(args, [key for key in options if hasattr(args, key)])
        first = (stored_motion(args.plan),) if of_plan else ()
        posed = problem(*first, **chosen)
        with progress_bar(f"{command} {name}") as progress:
            result = resolve(task.run)(posed, progress=progress)
        return finish(args, result)

    example = task.example or f"drakebots {command} {subject} -o run.nc"
    return Variant(task.help, example, arguments, run)
