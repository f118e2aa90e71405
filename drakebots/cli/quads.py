"""`drakebots plan`, `track`, `export` of a quad-robot with a skin: parsing only."""

from __future__ import annotations

import argparse
from pathlib import Path

from drakebots.cli.command import Variant
from drakebots.cli.inputs import skinned_argument, stored
from drakebots.cli.options import (
    field_options,
    given,
    output_argument,
    output_arguments,
    picture_argument,
    refuse,
)
from drakebots.cli.output import finish, tell
from drakebots.cli.progress import progress_bar, stages
from drakebots.core.errors import FileProblem, InvalidInput
from drakebots.model import load
from drakebots.robots.quads import QuadProblem, plan_quad, plot_contacts
from drakebots.robots.quads.motion import MOTIONS
from drakebots.robots.quads.track import (
    UNITS,
    Replay,
    SapTracking,
    model_channels,
    plan_model,
    read_channels,
    replay,
    track_sap,
    servo_table,
    write_servos,
)

# --- plan -------------------------------------------------------------------

_PLAN = {
    "speed": "of the body [m/s]",
    "turning_rate": "[rad/s]",
    "cycles": "of a gait",
    "duration": "of a foot lift [s]",
    "lift": "of the feet [m]",
    "friction": "of the ground",
    "cop_margin": "of the COP from the support polygon's edges [m]",
    "torque_limit": "of all joints, in place of the model's [N m]",
    "tolerance": "of the difference between both motions",
    "max_iterations": "of the alternation",
    "min_iterations": "made in any case",
    "ignore_skin": "leave the skin out of the space-time program",
    "base": "the skin's forces count in the base's momentum as well",
    "stride": "frames from knot to knot",
    "threads": "of the sparse solver",
    "time_limit": "of wall time [s]; the best is kept",
}


def _plan_arguments(parser: argparse.ArgumentParser) -> None:
    skinned_argument(parser)
    parser.add_argument(
        "--motion",
        default="walk",
        help=f"{', '.join(MOTIONS)}, or a file (.yaml, .csv) (default walk)",
    )
    field_options(parser, QuadProblem, _PLAN)
    output_arguments(parser)
    picture_argument(
        parser, "--contacts", plot_contacts, "also the contact bars and forces (.png)"
    )


def _plan(args: argparse.Namespace) -> int:
    problem = QuadProblem(model=args.model, motion=args.motion, **given(args, _PLAN))
    model = load(args.model)
    with stages(model.name) as progress:
        result = plan_quad(problem, path=args.output, progress=progress)
    return finish(args, result, model)


QUAD_PLAN = Variant(
    "plan a motion of a quad-robot in an elastic skin",
    "drakebots plan beetle --motion walk -o plan.nc",
    _plan_arguments,
    _plan,
)

# --- track ------------------------------------------------------------------

_TRACK = {
    "cycles": "of a motion that repeats",
    "settle": "hold the last pose for so long [s]",
    "damping": "of the ground at a contact point [N s/m]",
    "skin_period": "between stored shapes of the skin [s]",
    "threads": "of the sparse solver",
}
_BOTH = {
    "time_step": "of a frame [s]",
    "friction": "of the ground",
    "stiffness": "of the ground at a contact point [N/m]",
    "feedforward": "tell the servos the planned speeds, not only angles",
    "time_limit": "of wall time [s]",
}


def _track_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("plan", help="a plan of a skinned robot (.nc)")
    parser.add_argument("--model", help="of the robot, when its files have moved")
    parser.add_argument(
        "--sap",
        action="store_true",
        help="the skeleton alone in Drake, under the plan's forces of the skin",
    )
    field_options(parser, Replay, _TRACK | _BOTH)
    output_arguments(parser)


def _track(args: argparse.Namespace) -> int:
    plan = stored(args.plan)
    options = given(args, ("model", *_BOTH))
    if args.sap:
        refuse(args, _TRACK, "--sap")
        problem, run = SapTracking(plan, **options), track_sap
    else:
        problem, run = Replay(plan, **options, **given(args, _TRACK)), replay
    with progress_bar(f"track {plan.model}") as progress:
        result = run(problem, progress=progress)
    return finish(args, result, problem.robot.skinned.model)


QUAD_TRACK = Variant(
    "replay a plan of a skinned robot open loop, on a ground that gives",
    "drakebots track plan.nc -o track.nc",
    _track_arguments,
    _track,
)

# --- export -----------------------------------------------------------------


def _export_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("plan", help="a plan or run of a skinned robot (.nc)")
    output_argument(
        parser, "--servos", required=True, help="angles of the servos (.csv)"
    )
    parser.add_argument("--map", type=Path, help="servo_map.csv of the board")
    parser.add_argument("--rate", type=float, default=50.0, help="rows a second [Hz]")
    parser.add_argument("--cycles", type=int, default=1, help="of a gait")
    parser.add_argument(
        "--units", default="deg", help="deg, or us of a pulse (default deg)"
    )
    parser.add_argument(
        "--pulse",
        default="500,2500",
        metavar="A,B",
        help="widths at both ends of the travel [us] (default 500,2500)",
    )


def _export(args: argparse.Namespace) -> int:
    plan = stored(args.plan)
    if args.map is not None:
        channels = read_channels(args.map)
    else:
        channels = model_channels(plan.model, _folder(plan))
    times, values = servo_table(
        plan,
        channels,
        rate=args.rate,
        cycles=args.cycles,
        units=args.units,
        pulse=_pulse(args.pulse),
    )
    path = write_servos(args.servos, channels, times, values, args.units)
    facts = {
        "servos": str(path),
        "rows": len(times),
        "channels": len(channels),
        "rate_hz": args.rate,
        "units": args.units,
    }
    return tell(args, facts, path)


def _folder(plan) -> Path | None:
    try:
        return Path(plan_model(plan)).parent
    except (InvalidInput, FileProblem):
        return None


def _pulse(text: str) -> tuple[float, float]:
    try:
        low, high = (float(part) for part in text.split(","))
    except ValueError:
        raise InvalidInput(f"--pulse {text!r}: write two widths, 500,2500") from None
    return low, high


QUAD_EXPORT = Variant(
    f"write the angles that a servo board plays ({' or '.join(UNITS)})",
    "drakebots export plan.nc --servos servo.csv",
    _export_arguments,
    _export,
)
