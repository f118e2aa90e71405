"""`drakebots plan`, `track`, `refine`, `export`; robots have forms of their own."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from drakebots.cli.command import Command, Variant, kind_forms, robot_forms
from drakebots.cli.inputs import (
    MODEL_OPTIONS,
    angle,
    find_input,
    joint_position,
    length,
    load_model,
    model_argument,
    named_numbers,
    names_result,
    number,
    numbers,
    stored,
)
from drakebots.cli.options import (
    choices_of,
    completes,
    given,
    number_argument,
    option,
    output_argument,
    output_arguments,
    picture_argument,
    quantity,
    refuse,
    switch,
    table_argument,
)
from drakebots.cli.output import finish, tell, write_data
from drakebots.cli.progress import print_notes, progress_bar
from drakebots.core.errors import InvalidInput
from drakebots.core.files import check_output
from drakebots.model import Model, find_model, robot_alone
from drakebots.multibody.exchange import write_mjcf, write_urdf
from drakebots.plots import plot_convergence
from drakebots.results import Result
from drakebots.robots import kinds, record
from drakebots.skin import write_vtu
from drakebots.trajopt.locomotion import (
    GAITS,
    LocomotionProblem,
    LocomotionWeights,
    first_iterate,
    plan_locomotion,
)
from drakebots.trajopt.program import read_checkpoint
from drakebots.view import write_mcap

# --- plan -------------------------------------------------------------------

_MOTIONS = {
    "forward": ("0.3", "walk this far in a cycle that repeats [m]"),
    "hop": ("0.1", "hop this high [m]"),
    "turn": ("30deg", "turn by this angle [rad, or deg]"),
    "goal": ("X,Y,YAW", "move to this pose, from standing to standing [m, m, rad]"),
}
_NUMBERS = {
    "duration": "duration of the motion [s]",
    "friction": "friction coefficient of the ground",
    "knots": "number of knots of the trajectory",
}
_WORDS = {
    "gait": (None, f"footfall: {', '.join(GAITS)}"),
    "contacts": (None, "gait (keeps the footfall) or free (the program decides)"),
    "clearance": ("3cm", "height of a foot halfway through its swing [m]"),
    "phases": ("FOOT=0.5,...", "share of a walk's cycle at which a foot lifts"),
    "pose": ("JOINT=0.3,...", "standing position of joints [rad, or deg; m]"),
    "torque": ("20", "limit of all inputs, or of ACTUATOR=20,... [N m, N]"),
    "slack_weights": ("1,10,100", "weights of the slack with free contacts, by stage"),
}


def solver_arguments(parser: argparse.ArgumentParser) -> None:
    """Adds the options of every contact-implicit program."""
    number_argument(parser, "--time-limit", "limit of wall time [s]")
    parser.add_argument(
        "--checkpoint", type=Path, help="file that keeps the best iterate (.npz)"
    )
    parser.add_argument("--resume", type=Path, help="checkpoint to continue from")
    output_arguments(parser)
    picture_argument(
        parser,
        "--convergence",
        plot_convergence,
        "picture of the solver's progress to write as well (.png)",
    )


def solver_options(args: argparse.Namespace) -> dict[str, object]:
    """The values of those options.

    Raises:
        FileProblem: for a file that could not be used, before any long work.
    """
    if args.checkpoint is not None:
        check_output(args.checkpoint)
    if args.resume is not None:
        read_checkpoint(args.resume)
    return given(args, ("time_limit", "checkpoint", "resume"))


def _plan_arguments(parser: argparse.ArgumentParser) -> None:
    model_argument(parser)
    for name, (shown, text) in _MOTIONS.items():
        parser.add_argument("--" + name, metavar=shown, help=text)
    repeats = parser.add_mutually_exclusive_group()
    switch(repeats, "--periodic", "periodic", "repeat the first state (walks do)")
    switch(
        repeats,
        "--from-rest",
        "periodic",
        "start and end at rest (all motions but walks do)",
        value=False,
    )
    for name, text in _NUMBERS.items():
        kind = int if name == "knots" else quantity("--" + name, text)
        parser.add_argument("--" + name, type=kind, help=text)
    for name, (shown, text) in _WORDS.items():
        flag = "--footfall" if name == "contacts" else option(name)
        action = parser.add_argument(flag, dest=name, metavar=shown, help=text)
        completes(action, choices_of(LocomotionProblem, name))
    solver_arguments(parser)
    output_argument(
        parser, "--guess", help="page of the first iterate to write as well (.html)"
    )


def _plan(args: argparse.Namespace) -> int:
    options = solver_options(args)
    locomotion_problem(args, args.model)  # bad numbers before a long load
    model = robot_alone(load_model(args, notes=False))
    print_notes(model.name, model.notes)
    problem = locomotion_problem(args, model)
    if args.guess is not None:
        print(record(first_iterate(problem), model=model).save(args.guess))
    with progress_bar(model.name) as progress:
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
    motions = given(args, _MOTIONS)
    if not motions:
        raise InvalidInput("say what to plan: --forward, --hop, --turn or --goal")
    if len(motions) > 1:
        raise InvalidInput(f"choose one of {', '.join('--' + m for m in motions)}")
    ((name, text),) = motions.items()
    periodic = args.periodic
    fields: dict[str, Any]
    if name == "goal":
        fields = _goal(text)
    elif name == "turn":
        fields = {"kind": "turn", "turn": angle(text, "--turn")}
    elif name == "hop":
        fields = {"kind": "hop", "height": length(text, "--hop")}
    else:
        # From rest to rest, a walk is the motion to a goal.
        fields = {"kind": "walk", "forward": length(text, "--forward")}
        if periodic is False:
            fields["kind"] = "goal"
    if periodic is not None and fields["kind"] != "walk":
        fields["periodic"] = periodic
    words = given(args, _WORDS)
    fields |= {key: words[key] for key in ("gait", "contacts") if key in words}
    if "clearance" in words:
        fields["clearance"] = length(words["clearance"], "--clearance")
    if "phases" in words:
        fields["phases"] = named_numbers(words["phases"], "--phases", number)
    if "pose" in words:
        fields["pose"] = named_numbers(words["pose"], "--pose", joint_position)
    if "torque" in words:
        fields["torque"] = _torque(words["torque"])
    if "slack_weights" in words:
        slack = numbers(words["slack_weights"], "--slack-weights")
        fields["weights"] = LocomotionWeights(slack=slack)
    return LocomotionProblem(model, **fields, **given(args, _NUMBERS))


def _goal(text: str) -> dict[str, Any]:
    """The problem of a goal "x,y" or "x,y,yaw"."""
    words = text.split(",")
    if len(words) not in (2, 3):
        raise InvalidInput(f"--goal: {text!r} is no pose; write x,y,yaw")
    forward, sideways = (length(word, "--goal") for word in words[:2])
    turn = angle(words[2], "--goal") if len(words) == 3 else 0.0
    return {"kind": "goal", "forward": forward, "sideways": sideways, "turn": turn}


def _torque(text: str) -> float | dict[str, float]:
    """Limits of all inputs, or by actuator."""
    if "=" in text:
        return named_numbers(text, "--torque", _effort)
    return _effort(text, "--torque")


def _effort(text: str, what: str) -> float:
    return quantity(what, "[N m, N]")(text)


PLAN = Command(
    "plan",
    Variant(
        "plan a motion of a robot, or of any legged model",
        "drakebots plan robot.urdf --feet FL,FR,RL,RR --forward 0.3 -o plan.nc",
        _plan_arguments,
        _plan,
    ),
    forms=lambda: robot_forms("plan"),
    find=find_input,
)

# --- track, refine, export --------------------------------------------------


def _plan_argument(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "plan", help="a plan (.nc, hamr:10hz_card); its kind decides the options"
    )


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


def _refuse(what: str):
    """The work of the general form, which only results without a form reach."""

    def run(args: argparse.Namespace) -> int:
        _check(args.plan, what)
        return 0

    return run


TRACK = Command(
    "track",
    Variant(
        "execute a plan on its robot",
        "drakebots track plan.nc -o run.nc",
        _plan_argument,
        _refuse("track"),
    ),
    forms=lambda: kind_forms("track"),
    show_forms=True,
    find=lambda word: _check(word, "track"),
)

REFINE = Command(
    "refine",
    Variant(
        "plan again from executed runs until what is executed stops growing",
        "drakebots refine plan.nc -o refined.nc",
        _plan_argument,
        _refuse("refine"),
    ),
    forms=lambda: kind_forms("refine"),
    show_forms=True,
    find=lambda word: _check(word, "refine"),
)

_OF_MODELS = ("mjcf", "urdf", "time_step", "friction")


def export_arguments(parser: argparse.ArgumentParser) -> None:
    """Adds the files that `export` writes of any result."""
    table_argument(parser, "the result's time series as a table (.csv)")
    output_argument(
        parser,
        "--mcap",
        write=write_mcap,
        help="a log for Foxglove and Lichtblick (.mcap): series, bodies, shapes, skin",
    )
    output_argument(
        parser,
        "--vtu",
        write=write_vtu,
        help="the skin for ParaView (.pvd), and a folder of .vtu files beside it",
    )


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


def _export_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "what", help="a model, a result (.nc) or a stored plan (hamr:jump)"
    )
    result = parser.add_argument_group("of a result")
    export_arguments(result)
    group = parser.add_argument_group("of a model")
    output_argument(group, "--mjcf", help="the model for MuJoCo (.xml), loops closed")
    output_argument(
        group, "--urdf", help="the model as URDF (.urdf), loops in Drake's own tags"
    )
    number_argument(
        group, "--time-step", "of the MJCF's simulation [s] (default 0.1 ms)"
    )
    number_argument(group, "--friction", "of a ground in the MJCF (default: no ground)")
    model_argument(group, word="")


def _export(args: argparse.Namespace) -> int:
    if names_result(args.what):
        refuse(args, (*_OF_MODELS, *MODEL_OPTIONS), "a result; it is for a model")
        written = export_result(args, stored(args.what))
        return tell(args, {"files": list(map(str, written))}, *written)
    find_model(args.what)
    refuse(args, ("csv", "mcap", "vtu"), "a model; it is for a result (.nc)")
    if not (args.mjcf or args.urdf):
        raise InvalidInput("say what to write of a model: --mjcf, --urdf")
    if not args.mjcf:
        refuse(args, ("time_step", "friction"), "a URDF; it is for --mjcf")
    args.model, written = args.what, []
    model = load_model(args)
    if args.mjcf:
        options = given(args, ("time_step",)) | {"ground": args.friction}
        written.append(write_mjcf(model, args.mjcf, **options))
    if args.urdf:
        written.append(write_urdf(model, args.urdf))
    return tell(args, {"files": list(map(str, written))}, *written)


def _find_export(word: str) -> None:
    if names_result(word):
        stored(word)
    else:
        find_model(word)


EXPORT = Command(
    "export",
    Variant(
        "write a model or a result for other tools, or a plan for real hardware",
        "drakebots export hamr --mjcf hamr.xml",
        _export_arguments,
        _export,
    ),
    forms=lambda: kind_forms("export"),
    show_forms=True,
    find=_find_export,
)
