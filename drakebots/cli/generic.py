"""A command's form made from a task: the fields of its problem are the options.

So a robot that is registered from outside has a command line at once. Help texts are
those of the problem's docstring, under "Attributes:".
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from dataclasses import fields

from drakebots.cli.inputs import stored
from drakebots.cli.options import (
    attribute_texts,
    field_options,
    given,
    output_arguments,
)
from drakebots.cli.output import finish
from drakebots.cli.progress import progress_bar
from drakebots.robots import Task, resolve


def task_variant(
    task: Task, command: str, name: str
) -> tuple[
    str,
    str,
    Callable[[argparse.ArgumentParser], None],
    Callable[[argparse.Namespace], int],
]:
    """Help, example, arguments and work of a task's form.

    Args:
        task: of a robot or a kind.
        command: "simulate", "plan" or "track".
        name: of the robot, or of the kind of plan.
    """
    problem = resolve(task.problem)
    texts = attribute_texts(problem)
    names = [field.name for field in fields(problem) if field.init]
    subject = name
    if command == "track":
        names.remove(next(f.name for f in fields(problem) if not f.kw_only))
        subject = "plan.nc"
    options = {key: texts.get(key, key.replace("_", " ")) for key in names}

    def arguments(parser: argparse.ArgumentParser) -> None:
        parser.add_argument(
            "plan" if command == "track" else "model",
            help=f"a result of kind {name} (.nc)" if command == "track" else name,
        )
        field_options(parser, problem, options)
        output_arguments(parser)

    def run(args: argparse.Namespace) -> int:
        chosen = given(args, [key for key in options if hasattr(args, key)])
        first = (stored(args.plan),) if command == "track" else ()
        posed = problem(*first, **chosen)
        with progress_bar(f"{command} {name}") as progress:
            result = resolve(task.run)(posed, progress=progress)
        return finish(args, result)

    example = task.example or f"drakebots {command} {subject} -o run.nc"
    return task.help, example, arguments, run
