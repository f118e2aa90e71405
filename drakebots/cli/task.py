"""The forms of commands for what robots do: the fields of a problem are its options."""

from __future__ import annotations

import argparse
from collections import defaultdict
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from functools import partial
from inspect import signature
from pathlib import Path
from typing import Annotated, Any, get_args

from drakebots.cli import Command, Form, Variant
from drakebots.cli.inputs import (
    find_input,
    kind_of,
    load_model,
    model_argument,
    stored_motion,
)
from drakebots.cli.options import (
    TABLE,
    Outputs,
    Written,
    at,
    completes,
    drawing,
    field_options,
    field_values,
    finish,
    first_field,
    option,
    output_argument,
    refuse,
    switch,
    write_data,
)
from drakebots.cli.output import tell
from drakebots.cli.progress import progress_bar
from drakebots.core.checks import positive
from drakebots.core.convert import from_word
from drakebots.core.errors import InvalidInput
from drakebots.core.fields import checked, declared
from drakebots.core.lazy import late, resolve
from drakebots.core.run import watching
from drakebots.formats import terrain_of
from drakebots.model import Model, available_models
from drakebots.multibody import Flat
from drakebots.results import Result
from drakebots.robots import Task, is_scenario, kinds, read_scenario, robots

live, programs = late("drakebots.live"), late("drakebots.trajopt.program")


def robot_forms(command: str) -> tuple[Form, ...]:
    """The forms of `simulate`, `mpc`, `plan`, `live`: one a robot that does it."""
    found = []
    for robot in robots().values():
        task = getattr(robot, command)
        if task is not None and robot.name != "any":
            load = partial(task_variant, task, command, robot.name)
            found.append(Form(robot.name, robot.is_named, load))
    if command == "live":  # what a person does is no scenario
        return tuple(found)
    title = "a scenario file (.yaml)"
    scenario = Form(title, is_scenario, partial(scenario_variant, command))
    # Ahead of robots that are files themselves, as lattices.
    return (*found[:1], scenario, *found[1:])


def scenario_variant(command: str) -> Variant:
    """The form of these commands for a scenario file, which has all options."""

    def arguments(parser: argparse.ArgumentParser) -> None:
        parser.add_argument("model", help="a scenario file (.yaml)")
        field_options(parser, Outputs)

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

    file = {"simulate": "trot", "mpc": "push", "plan": "walk"}[command]
    example = f"drakebots {command} examples/{file}.yaml -o run.nc"
    return Variant(f"{command} what a scenario file says", example, arguments, run)


def kind_forms(command: str) -> tuple[Form, ...]:
    """The forms of `track`, `refine` or `export`: one a kind of plan that has it."""
    names: dict[Task, list[str]] = defaultdict(list)
    for kind in kinds().values():
        if task := getattr(kind, command):
            names[task].append(kind.name)
    return tuple(
        Form(
            "a result of kind " + " or ".join(able),
            lambda word, able=able: kind_of(word) in able,
            partial(task_variant, task, command, able[-1]),
        )
        for task, able in names.items()
    )


@checked()
class Solving:
    """By which solver it is solved, for how long, and from where."""

    solver: str = "exact"
    """Solver: exact (IPOPT with exact Hessians), snopt or ipopt (Drake's)."""
    time_limit: Annotated[float | None, positive("s")] = None
    """Limit of wall time; 5min for plans of any model."""
    checkpoint: Path | None = None
    """File that keeps the best iterate (.npz)."""
    resume: Path | None = None
    """Checkpoint to continue from, or a plan to start from (.nc)."""


def solving_options(parser: argparse.ArgumentParser, run: Callable) -> None:
    """Adds the options among these that a function takes beside its problem."""
    of_run = [name for name in declared(Solving) if name in signature(run).parameters]
    field_options(parser, Solving, but=declared(Solving).keys() - of_run)
    parser.set_defaults(of_run=of_run)


def solving_values(args: argparse.Namespace) -> dict[str, Any]:
    """Those that were given, checked before any work.

    Raises:
        InvalidInput: for a bad value.
        FileProblem: for a checkpoint that cannot be read.
    """
    found = field_values(args, Solving, args.of_run)
    resume = Solving(**found).resume
    if resume is not None and resume.suffix != ".nc":
        programs.read_checkpoint(resume)
    return found


def task_variant(task: Task, command: str, name: str) -> Variant:
    """A task's form: the fields of its problem are the options.

    So a robot that is registered from outside has a command line at once.

    Args:
        task: of a robot or a kind.
        command: "simulate", "mpc", "plan", "track", "refine" or "export".
        name: of the robot, or of the kind of plan.
    """
    kinds = [resolve(reference) for reference in (task.problem, *task.also)]
    subject = _subject(kinds[0], command, name)
    of_plan = command in _OF_PLANS

    def arguments(parser: argparse.ArgumentParser) -> None:
        if of_plan:
            parser.add_argument("plan", help=f"a result of kind {name} (.nc)")
        elif _takes_model(kinds[0]):
            model_argument(parser)
        else:
            action = parser.add_argument("model", help=name)
            completes(action, filter(robots()[name].is_named, available_models()))
        taken = {subject}
        for kind in kinds:
            group, title = parser, _title(kind)
            if kind is not kinds[0]:
                group = parser.add_argument_group(title)
                switch(group, f"--{title}", f"as_{title}", f"a {title}")
            field_options(group, kind, but=taken)
            taken |= set(declared(kind))
        if command == "export":
            file, text = option(task.file), f"{task.help} (.csv)"
            output_argument(parser, file, dest=task.file, help=text)
            field_options(parser, Exports)
            return
        solving_options(parser, resolve(task.run))
        if command in _WATCHED:
            switch(parser, "--live", "live", _LIVE)
        field_options(parser, Outputs)
        for picture, draw in task.pictures:
            text = f"picture of the {picture} to write as well (.png)"
            output_argument(parser, option(picture), how=drawing(draw), help=text)

    def run(args: argparse.Namespace) -> int:
        posed, model = _posed(args, kinds, subject, of_plan)
        if command == "export":
            return _export(args, task, posed)
        call, more = resolve(task.run), solving_values(args)
        if "path" in signature(call).parameters:
            more["path"] = args.output
        word = args.plan if of_plan else args.model
        title = model.name if model else f"{command} {word}"
        with progress_bar(title) as progress, _watched(args, posed):
            result = call(posed, progress=progress, **more)
        return finish(args, result, model)

    typed = "plan.nc" if of_plan else name
    example = task.example or f"drakebots {command} {typed} -o run.nc"
    return Variant(task.help, example, arguments, run)


_WATCHED = ("simulate", "mpc", "track")
_LIVE = "show the run in the browser while it is computed"
_OF_PLANS = ("track", "refine", "export")


def _watched(args: argparse.Namespace, posed) -> AbstractContextManager:
    """Where `--live` was given, a page that shows what is computed within, on its
    ground: the problem's own, or that of its plan."""
    if not getattr(args, "live", None):
        return nullcontext()
    terrain, plan = (getattr(posed, name, None) for name in ("terrain", "plan"))
    if terrain is None and isinstance(plan, Result):
        terrain = terrain_of(plan)
    return watching(live.RunPage(terrain or Flat()))


def _subject(problem: type, command: str, name: str) -> str:
    """The field that the word behind the command names; "" for none."""
    if command in _OF_PLANS:
        return first_field(problem)
    known = declared(problem)
    return next((field for field in ("model", name) if field in known), "")


def _takes_model(problem: type) -> bool:
    """Whether a problem's robot may be any that is loaded."""
    entry = declared(problem).get("model")
    return entry is not None and Model in get_args(entry.kind)


def _title(problem: type) -> str:
    """A further problem of a robot as a word: JumpProblem as "jump"."""
    return problem.__name__.removesuffix("Problem").lower()


def _posed(
    args: argparse.Namespace, kinds: Sequence[type], subject: str, of_plan: bool
) -> tuple[Any, Model | None]:
    """The problem that the options describe, and the model that was loaded for it.

    Raises:
        InvalidInput: for options of another problem, and for bad values.
    """
    others = kinds[1:]
    kind = next((one for one in others if getattr(args, f"as_{_title(one)}")), kinds[0])
    names = {name for one in kinds for name in declared(one) if hasattr(args, name)}
    refuse(args, sorted(names - set(declared(kind)) - {subject}), f"a {_title(kind)}")
    own = sorted(names & set(declared(kind)) - {subject})
    chosen = field_values(args, kind, own)
    if of_plan:
        return kind(stored_motion(args.plan), **chosen), None
    if subject:
        entry = declared(kind)[subject].kind
        chosen[subject] = from_word(entry, args.model, subject)
    problem, model = kind(**chosen), None
    if _takes_model(kind):  # after bad numbers, since it may take long
        model = load_model(args)
        problem = replace(problem, model=model)
    return problem, model


def _export(args: argparse.Namespace, task: Task, problem: Any) -> int:
    path, own = getattr(args, task.file), []
    if path is not None:
        own.append(resolve(task.run)(problem, path))
    facts = {task.file: str(path)} if own else {}
    written = export_result(args, stored_motion(args.plan), own)
    return tell(args, facts | {"files": list(map(str, written))}, *written)


# --- what is written of any result --------------------------------------------


@checked()
class Exports:
    """The files that `export` writes of any result."""

    csv: Annotated[Path | None, TABLE] = None
    """The result's time series as a table (.csv)."""
    mcap: Annotated[Path | None, Written(write=at("drakebots.view:write_mcap"))] = None
    """Log for Foxglove and Lichtblick (.mcap): series, bodies, shapes, skin."""
    ros: Annotated[Path | None, Written(write=at("drakebots.view:write_ros"))] = None
    """Bag of ROS 2 (.mcap): joint states, transforms of the links, forces of feet."""
    vtu: Annotated[Path | None, Written(write=at("drakebots.skin:write_vtu"))] = None
    """The skin for ParaView (.pvd), and a folder of .vtu files beside it."""


def export_result(
    args: argparse.Namespace, result: Result, written: Sequence[Path] = ()
) -> list[Path]:
    """Writes those files, after what the result's kind has of its own.

    Raises:
        InvalidInput: where none is wanted.
    """
    paths = [*written, *write_data(args, result)]
    if not paths:
        names = ", ".join(option(entry.name) for entry in args.outputs)
        raise InvalidInput(f"say what to write of a result: {names}")
    return paths


# --- the commands -------------------------------------------------------------

SIMULATE, MPC, LIVE = (
    Command(
        name,
        lambda name=name: task_variant(getattr(robots()["any"], name), name, "any"),
        partial(robot_forms, name),
        find=find_input,
    )
    for name in ("simulate", "mpc", "live")
)
