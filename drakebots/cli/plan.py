"""`drakebots plan`, `track`, `export`; robots have forms of their own."""

from __future__ import annotations

import argparse
from pathlib import Path

from drakebots.cli.command import Command, Variant, kind_forms, robot_forms
from drakebots.cli.inputs import find_input, load_model, model_argument, stored
from drakebots.cli.options import given, output_arguments, picture_argument
from drakebots.cli.output import finish
from drakebots.cli.progress import progress_bar
from drakebots.core.errors import InvalidInput
from drakebots.core.files import check_output
from drakebots.model import Model
from drakebots.plots import plot_convergence
from drakebots.robots import kinds
from drakebots.trajopt.locomotion import LocomotionProblem, plan_locomotion
from drakebots.trajopt.program import read_checkpoint

# --- plan -------------------------------------------------------------------

_COMMON = {
    "friction": "friction coefficient of the ground",
    "knots": "number of knots of the trajectory",
}
_MOTION = {
    "forward": "distance to walk [m]",
    "hop": "height to hop [m]",
    "turn": "angle to turn [rad]",
    "duration": "duration of the motion [s]",
}


def solver_arguments(parser: argparse.ArgumentParser) -> None:
    """Adds the options of every contact-implicit program."""
    parser.add_argument("--time-limit", type=float, help="limit of wall time [s]")
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
    for name, text in _MOTION.items():
        parser.add_argument("--" + name, type=float, help=text)
    parser.add_argument("--friction", type=float, help=_COMMON["friction"])
    parser.add_argument("--knots", type=int, help=_COMMON["knots"])
    solver_arguments(parser)


def _plan(args: argparse.Namespace) -> int:
    options = solver_options(args)
    model = load_model(args)
    problem = locomotion_problem(args, model)
    with progress_bar(model.name) as progress:
        result = plan_locomotion(problem, progress=progress, **options)
    return finish(args, result, model)


def locomotion_problem(args: argparse.Namespace, model: Model) -> LocomotionProblem:
    """The problem that the options describe.

    Raises:
        InvalidInput: when they name no motion, or several.
    """
    motions = given(args, ("forward", "hop", "turn"))
    if not motions:
        raise InvalidInput("say what to plan: --forward, --hop or --turn")
    if len(motions) > 1:
        raise InvalidInput(f"choose one of {', '.join('--' + m for m in motions)}")
    ((option, value),) = motions.items()
    kind, field = {
        "forward": ("walk", "forward"),
        "hop": ("hop", "height"),
        "turn": ("turn", "turn"),
    }[option]
    others = given(args, ("duration", *_COMMON))
    return LocomotionProblem(model, kind, **{field: value}, **others)


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

# --- track, export ----------------------------------------------------------


def _plan_argument(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("plan", help="a plan (.nc); its kind decides the options")


def _check(path: str, what: str) -> None:
    """Raises InvalidInput for a result that cannot be tracked or exported."""
    kind = stored(path).kind
    able = [entry.name for entry in kinds().values() if getattr(entry, what)]
    if kind not in able:
        raise InvalidInput(
            f"{path}: a result of kind {kind!r} cannot be "
            f"{'tracked' if what == 'track' else 'exported'}; "
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

EXPORT = Command(
    "export",
    Variant(
        "write a plan for real hardware: drive voltages, angles of servos",
        "drakebots export plan.nc --voltages v.csv",
        _plan_argument,
        _refuse("export"),
    ),
    forms=lambda: kind_forms("export"),
    show_forms=True,
    find=lambda word: _check(word, "export"),
)
