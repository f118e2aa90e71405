"""The commands that plan, execute and export: parsing only."""

from __future__ import annotations

import argparse
from pathlib import Path

from drakebots.cli.command import Command, Variant
from drakebots.cli.gecko import GECKO_PLAN
from drakebots.cli.inputs import (
    find_input,
    load_model,
    model_argument,
    names_quad_plan,
    names_skinned,
    stored,
)
from drakebots.cli.options import (
    field_options,
    given,
    output_argument,
    output_arguments,
    picture_argument,
    refuse,
    switch,
)
from drakebots.cli.output import finish, tell
from drakebots.cli.progress import iterations, progress_bar
from drakebots.cli.quads import QUAD_EXPORT, QUAD_PLAN, QUAD_TRACK
from drakebots.cli.voxels import LATTICE_PLAN, VOXEL_PLAN
from drakebots.core.errors import InvalidInput
from drakebots.core.files import check_output
from drakebots.model import Model, load
from drakebots.plots import plot_convergence
from drakebots.robots.hamr.plan import (
    GaitPlan,
    JumpPlan,
    export_voltages,
    plan_gait,
    plan_jump,
    plan_reference,
)
from drakebots.robots.hamr.track import Tracking, track
from drakebots.trajopt.locomotion import LocomotionProblem, plan_locomotion
from drakebots.trajopt.program import read_checkpoint

# --- plan -------------------------------------------------------------------

_COMMON = {
    "friction": "coefficient of the ground",
    "knots": "of the trajectory",
}
_GAIT = {
    "gait": "whose waveform starts the search",
    "frequency": "of the stride [Hz]",
    "stride": "goal of a cycle [m]",
    "symmetric": "right legs mirror the left ones",
}
_JUMP = {"rise": "of the jump [m]"}
_MOTION = {
    "forward": "distance to walk [m]",
    "hop": "height to hop [m]",
    "turn": "angle to turn [rad]",
    "duration": "of the motion [s]",
}


def _solver_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--time-limit", type=float, help="of wall time [s]")
    parser.add_argument("--checkpoint", type=Path, help="keeps the best iterate (.npz)")
    parser.add_argument("--resume", type=Path, help="checkpoint to go on from")
    output_arguments(parser)
    picture_argument(
        parser, "--convergence", plot_convergence, "also the solver's progress (.png)"
    )


def _to(args: argparse.Namespace) -> dict[str, object]:
    """What the solver is told.

    Raises:
        FileProblem: for a file it could not use; hamr's warm start is long.
    """
    if args.checkpoint is not None:
        check_output(args.checkpoint)
    if args.resume is not None:
        read_checkpoint(args.resume)
    return given(args, ("time_limit", "checkpoint", "resume"))


def _hamr_arguments(parser: argparse.ArgumentParser) -> None:
    model_argument(parser)
    gait = parser.add_argument_group("a gait")
    field_options(gait, GaitPlan, _GAIT)
    jump = parser.add_argument_group("the jump")
    switch(jump, "--jump", "jump", "plan it instead of a gait")
    field_options(jump, JumpPlan, _JUMP)
    both = parser.add_argument_group("both")
    field_options(both, GaitPlan, {"surface": "teflon, card or sandpaper"} | _COMMON)
    _solver_arguments(parser)


def _plan_hamr(args: argparse.Namespace) -> int:
    to, common = _to(args), given(args, ("surface", *_COMMON))
    if args.jump:
        refuse(args, _GAIT, "a jump")
        problem, plan = JumpPlan(**common, **given(args, _JUMP)), plan_jump
    else:
        refuse(args, _JUMP, "a gait")
        problem, plan = GaitPlan(**common, **given(args, _GAIT)), plan_gait
    with iterations(f"hamr {problem.name}") as progress:
        result = plan(problem, progress=progress, **to)
    return finish(args, result, load("hamr"))


def _any_arguments(parser: argparse.ArgumentParser) -> None:
    model_argument(parser, feet=True)
    for name, text in _MOTION.items():
        parser.add_argument("--" + name, type=float, help=text)
    parser.add_argument("--friction", type=float, help=_COMMON["friction"])
    parser.add_argument("--knots", type=int, help=_COMMON["knots"])
    _solver_arguments(parser)


def _plan_any(args: argparse.Namespace) -> int:
    to = _to(args)
    model = load_model(args)
    problem = locomotion_problem(args, model)
    with iterations(model.name) as progress:
        result = plan_locomotion(problem, progress=progress, **to)
    return finish(args, result, model)


def locomotion_problem(args: argparse.Namespace, model: Model) -> LocomotionProblem:
    """The problem that the options describe.

    Raises:
        InvalidInput: when they ask for nothing, or for several things.
    """
    wishes = given(args, ("forward", "hop", "turn"))
    if not wishes:
        raise InvalidInput("say what to plan: --forward, --hop or --turn")
    if len(wishes) > 1:
        raise InvalidInput(f"choose one of {', '.join('--' + w for w in wishes)}")
    ((option, value),) = wishes.items()
    kind, field = {
        "forward": ("walk", "forward"),
        "hop": ("hop", "height"),
        "turn": ("turn", "turn"),
    }[option]
    others = given(args, ("duration", *_COMMON))
    return LocomotionProblem(model, kind, **{field: value}, **others)


# --- track ------------------------------------------------------------------


_TRACKING = {
    "cycles": "to execute",
    "contact": "sap or stepping",
    "kp": "feedback of leg position [V/m]",
    "kd": "feedback of leg velocity [V s/m]",
    "kf": "share of the planned voltages",
    "friction_scale": "of the plan's coefficient",
    "stiffness_scale": "of the flexures",
    "serial_stiffness": "of a twist in series with the legs [N m/rad]",
    "mocap_noise": "standard deviation [m]",
    "encoder_noise": "standard deviation [A]",
    "seed": "of the noise",
    "time_step": "of the simulation [s]",
    "time_limit": "of wall time [s]",
}


def _track_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("plan", help="a plan of hamr (.nc)")
    field_options(parser, Tracking, _TRACKING)
    output_arguments(parser)


def _track(args: argparse.Namespace) -> int:
    reference = plan_reference(stored(args.plan))
    problem = Tracking(reference, **given(args, _TRACKING))
    with progress_bar(f"track {reference.name}") as progress:
        result = track(problem, progress=progress)
    return finish(args, result, load("hamr"))


# --- export -----------------------------------------------------------------


def _export_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("plan", help="a plan or run of hamr (.nc)")
    output_argument(
        parser, "--voltages", required=True, help="waveforms as a table (.csv)"
    )
    parser.add_argument("--rate", type=float, default=2500.0, help="samples [Hz]")
    parser.add_argument("--cycles", type=int, default=1, help="of a gait")
    parser.add_argument("--ramp", type=float, default=0.0, help="first cycles fade in")


def _export(args: argparse.Namespace) -> int:
    reference = plan_reference(stored(args.plan))
    path = export_voltages(
        reference, args.voltages, rate=args.rate, cycles=args.cycles, ramp=args.ramp
    )
    return tell(args, {"voltages": str(path), "rate_hz": args.rate}, path)


HAMR_PLAN = Variant(
    "plan a gait or the jump of HAMR by contact-implicit optimization",
    "drakebots plan hamr --gait trot --frequency 10 --surface card -o plan.nc",
    _hamr_arguments,
    _plan_hamr,
)

PLAN_COMMANDS = (
    Command(
        "plan",
        "plan motions: hamr, skinned robots, any legged model, voxels, gecko",
        "drakebots plan robot.urdf --feet FL,FR,RL,RR --forward 0.3 -o plan.nc",
        _any_arguments,
        _plan_any,
        {"hamr": HAMR_PLAN, "gecko": GECKO_PLAN, "voxel": VOXEL_PLAN},
        LATTICE_PLAN,
        QUAD_PLAN,
        names_skinned,
        find_input,
    ),
    Command(
        "track",
        "execute a plan: HAMR's under its controller, a skinned robot's open loop",
        "drakebots track plan.nc --cycles 15 -o run.nc",
        _track_arguments,
        _track,
        skin=QUAD_TRACK,
        has_skin=names_quad_plan,
        find=stored,
    ),
    Command(
        "export",
        "write a plan for a real drive: HAMR's voltages, angles of servos",
        "drakebots export plan.nc --voltages v.csv",
        _export_arguments,
        _export,
        skin=QUAD_EXPORT,
        has_skin=names_quad_plan,
        find=stored,
    ),
)
