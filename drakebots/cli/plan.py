"""`drakebots plan`, `track`, `refine`, `export`; robots have forms of their own."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Annotated, Any

from drakebots.cli import Command, Variant, command
from drakebots.cli.inputs import (
    MODEL_OPTIONS,
    Loading,
    find_input,
    load_model,
    model_argument,
    names_result,
    stored,
    tell_notes,
)
from drakebots.cli.options import (
    Outputs,
    Written,
    chosen,
    drawing,
    field_options,
    field_values,
    finish,
    given,
    refuse,
    switch,
)
from drakebots.cli.output import tell
from drakebots.cli.progress import progress_bar
from drakebots.cli.task import (
    Exports,
    export_result,
    kind_forms,
    robot_forms,
    solving_options,
    solving_values,
)
from drakebots.core.checks import in_unit, non_negative, one_of, positive
from drakebots.core.convert import finite_word
from drakebots.core.errors import InvalidInput
from drakebots.core.fields import checked, declared
from drakebots.formats import LOOPS, robot_alone, write_mjcf, write_sdf, write_urdf
from drakebots.model import Model, find_model
from drakebots.robots import kinds, record
from drakebots.trajopt.locomotion import (
    Goal,
    Hop,
    LocomotionProblem,
    Motion,
    Walk,
    first_iterate,
    plan_locomotion,
)

# --- plan -------------------------------------------------------------------


@checked()
class MotionOptions:
    """What is planned, one of these."""

    forward: Annotated[float | None, in_unit("m")] = None
    """Walk this far in a cycle that repeats."""
    hop: Annotated[float | None, in_unit("m")] = None
    """Hop this high."""
    turn: Annotated[float | None, in_unit("rad")] = None
    """Turn by this angle."""
    goal: str | None = None
    """Move to this pose X,Y,YAW [m, m, rad], from standing to standing."""
    motion: Motion | None = None
    """Any motion as scenario files say it, "{Series: {motions: [{Walk: {forward: 0.2}},
    {Goal: {turn: 0.5}}]}}"."""


@checked()
class OfSolver:
    """What else is written of a plan."""

    convergence: Annotated[Path | None, drawing("drakebots.plots:plot_convergence")] = (
        None
    )
    """Picture of the solver's progress to write as well (.png)."""
    guess: Annotated[Path | None, Written()] = None
    """Page of the first iterate to write as well (.html)."""


LIMIT = 300.0
"""Wall time of a plan where none is asked for [s]."""

_MOTIONS: tuple[type[Motion], ...] = (Walk, Hop, Goal)

_BY_MOTION = {"forward", "sideways", "turn", "height", "periodic"}
"""Fields of motions that those options say, and --periodic."""

_OWN = {name for motion in _MOTIONS for name in declared(motion)} - _BY_MOTION
"""The other fields of motions."""


def _plan_arguments(parser: argparse.ArgumentParser) -> None:
    model_argument(parser)
    field_options(parser, MotionOptions)
    repeats = parser.add_mutually_exclusive_group()
    switch(repeats, "--periodic", "periodic", "repeat the first state (walks do)")
    text = "start and end at rest (all motions but walks do)"
    switch(repeats, "--from-rest", "periodic", text, value=False)
    added = set(_BY_MOTION)
    for motion in _MOTIONS:
        field_options(parser, motion, but=added)
        added |= declared(motion).keys()
    field_options(parser, LocomotionProblem, but=("model", "motion"))
    solving_options(parser, plan_locomotion)
    field_options(parser, Outputs)
    field_options(parser, OfSolver)


@command(
    "plan",
    "drakebots plan robot.urdf --feet FL,FR,RL,RR --forward 0.3 -o plan.nc",
    _plan_arguments,
    forms=lambda: robot_forms("plan"),
    find=find_input,
)
def plan_motion(args: argparse.Namespace) -> int:
    """Plan a motion of a robot, or of any legged model."""
    options = {"time_limit": LIMIT} | solving_values(args)
    locomotion_problem(args, args.model)  # bad numbers before a long load
    model = robot_alone(load_model(args, notes=False))
    tell_notes(args, model)
    problem = locomotion_problem(args, model)
    if args.guess is not None:
        print(record(first_iterate(problem), model=model).save(args.guess))
    label = f"{model.name}, for {options['time_limit']:g} s at most"
    with progress_bar(label) as progress:
        result = plan_locomotion(problem, progress=progress, **options)
    return finish(args, result, model)


def locomotion_problem(
    args: argparse.Namespace, model: Model | str
) -> LocomotionProblem:
    """The problem that the options describe.

    Raises:
        InvalidInput: when they name no motion, or several, and for values that are
            no numbers.
    """
    motions = given(args, declared(MotionOptions))
    if not motions:
        raise InvalidInput(
            "say what to plan: --forward, --hop, --turn, --goal or --motion"
        )
    if len(motions) > 1:
        raise InvalidInput(f"choose one of {', '.join('--' + m for m in motions)}")
    ((name, asked),) = motions.items()
    motion = _motion(args, name, asked)
    common = declared(LocomotionProblem).keys() - {"model", "motion"}
    rest = field_values(args, LocomotionProblem, common)
    return LocomotionProblem(model, motion, **rest)


def _motion(args: argparse.Namespace, name: str, asked: Any) -> Motion:
    """The motion that an option asks for, with options of its own."""
    if name == "motion":
        refuse(args, sorted(_OWN | {"periodic"}), "--motion, which says all of it")
        return asked
    kind = {"forward": Walk, "hop": Hop}.get(name, Goal)
    field = "height" if kind is Hop else name
    fields = _goal(asked) if name == "goal" else {field: asked}
    if kind is Walk and args.periodic is False:
        kind = Goal  # from rest to rest, a walk is the way to a goal
    elif kind is Hop and args.periodic is not None:
        fields["periodic"] = args.periodic
    elif kind is Goal and args.periodic:
        raise InvalidInput(
            f"--{name} cannot be periodic: the momentum of a turn would have to repeat "
            "in another direction; leave --periodic out"
        )
    own = declared(kind).keys() - _BY_MOTION
    refuse(args, sorted(_OWN - own), f"a {kind.__name__.lower()}")
    return kind(**fields, **field_values(args, kind, own))


def _goal(text: str) -> dict[str, Any]:
    """The problem of a goal "x,y" or "x,y,yaw"."""
    words = text.split(",")
    if len(words) not in (2, 3):
        raise InvalidInput(f"--goal: {text!r} is no pose; write x,y,yaw")
    forward, sideways = (finite_word(word, "--goal", "m") for word in words[:2])
    turn = finite_word(words[2], "--goal", "rad") if len(words) == 3 else 0.0
    return {"forward": forward, "sideways": sideways, "turn": turn}


# --- track, refine, export --------------------------------------------------


def _plan_argument(parser: argparse.ArgumentParser) -> None:
    text = "a plan (.nc, hamr:10hz_card); its kind decides the options"
    parser.add_argument("plan", help=text)


def _check(path: str, what: str) -> None:
    """Raises InvalidInput for a result that cannot be tracked or refined."""
    kind = stored(path).kind
    able = [entry.name for entry in kinds().values() if getattr(entry, what)]
    if kind not in able:
        raise InvalidInput(
            f"{path}: a result of kind {kind!r} cannot be "
            f"{'refined' if what == 'refine' else 'tracked'}; "
            f"give one of kind {', '.join(able)}"
        )


def _of_plans(what: str, text: str, example: str) -> Command:
    """A command whose forms are those of kinds of plans."""
    # Only results without a form come to the general one, which refuses them.
    refused = lambda args: _check(args.plan, what)  # noqa: E731
    return Command(
        what,
        lambda: Variant(text, example, _plan_argument, refused),
        forms=lambda: kind_forms(what),
        show_forms=True,
        find=lambda word: _check(word, what),
    )


TRACK = _of_plans(
    "track", "execute a plan on its robot", "drakebots track plan.nc -o run.nc"
)
REFINE = _of_plans(
    "refine",
    "plan again from executed runs until what is executed stops growing",
    "drakebots refine plan.nc -o refined.nc",
)


@checked()
class Exporting:
    """What is written of a model, and what MuJoCo is told beside it."""

    mjcf: Annotated[Path | None, Written()] = None
    """The model for MuJoCo (.xml), loops closed."""
    urdf: Annotated[Path | None, Written()] = None
    """The model as URDF (.urdf), loops in Drake's own tags."""
    sdf: Annotated[Path | None, Written()] = None
    """The model as SDF (.sdf), loops in Drake's own tags."""
    loops: Annotated[str | None, one_of("way to close loops", LOOPS)] = None
    """Who closes the URDF's loops: drake, or gepetto too, by a YAML beside it."""
    time_step: Annotated[float | None, positive("s")] = None
    """Time step of the MJCF's simulation, 0.1 ms by default."""
    friction: Annotated[float | None, non_negative()] = None
    """Friction of a ground in the MJCF; by default there is no ground."""


def _export_arguments(parser: argparse.ArgumentParser) -> None:
    text = "a model, a result (.nc) or a stored plan (hamr:jump)"
    parser.add_argument("what", help=text)
    result = parser.add_argument_group("of a result")
    field_options(result, Exports)
    group = parser.add_argument_group("of a model")
    field_options(group, Exporting)
    field_options(group, Loading)


@command(
    "export",
    "drakebots export hamr --mjcf hamr.xml",
    _export_arguments,
    forms=lambda: kind_forms("export"),
    show_forms=True,
    find=lambda word: stored(word) if names_result(word) else find_model(word),
)
def export(args: argparse.Namespace) -> int:
    """Write a model or a result for other tools, or a plan for real hardware."""
    if names_result(args.what):
        of_models = (*declared(Exporting), *MODEL_OPTIONS)
        refuse(args, of_models, "a result; it is for a model")
        written = export_result(args, stored(args.what))
        return tell(args, {"files": list(map(str, written))}, *written)
    find_model(args.what)
    refuse(args, ("csv", "mcap", "vtu"), "a model; it is for a result (.nc)")
    if not (args.mjcf or args.urdf or args.sdf):
        raise InvalidInput("say what to write of a model: --mjcf, --urdf, --sdf")
    if not args.urdf:
        refuse(args, ("loops",), "an export without --urdf")
    if not args.mjcf:
        refuse(args, ("time_step", "friction"), "an export without --mjcf")
    args.model, written = args.what, []
    model = load_model(args)
    how = chosen(args, Exporting)
    if args.mjcf:
        options = {"time_step": how.time_step} if how.time_step else {}
        options["ground"] = how.friction
        written.append(write_mjcf(model, args.mjcf, **options))
    if args.urdf:
        written.append(write_urdf(model, args.urdf, loops=how.loops or "drake"))
    if args.sdf:
        written.append(write_sdf(model, args.sdf))
    return tell(args, {"files": list(map(str, written))}, *written)
