"""The forms of `plan`, `track` and `export` for skinned quad-robots: parsing only."""

from __future__ import annotations

import argparse
from pathlib import Path

from drakebots.cli.command import Variant
from drakebots.cli.inputs import skinned_argument, stored_motion
from drakebots.cli.options import (
    attribute_texts,
    completes,
    field_options,
    given,
    number_argument,
    output_argument,
    output_arguments,
    quantity,
    refuse,
)
from drakebots.cli.output import finish, tell
from drakebots.cli.plan import export_arguments, export_result
from drakebots.cli.progress import progress_bar
from drakebots.core.errors import InvalidInput
from drakebots.model import load
from drakebots.results import Result
from drakebots.robots import quads
from drakebots.robots.quads.track import PULSE, UNITS

# --- plan -------------------------------------------------------------------

_OPTIONS = attribute_texts(quads.Problem, but=("model", "motion", "more"))
_SHARED = set(attribute_texts(quads.Alternation)) - {"friction"}


def _plan_arguments(parser: argparse.ArgumentParser) -> None:
    skinned_argument(parser)
    motion = parser.add_argument(
        "--motion",
        default="walk",
        help=f"{', '.join(quads.MOTIONS)}, or a file (.yaml, .csv) (default walk)",
    )
    completes(motion, quads.MOTIONS)
    own = {name: text for name, text in _OPTIONS.items() if name not in _SHARED}
    field_options(parser, quads.Problem, own)
    group = parser.add_argument_group("alternation of both plans")
    shared = {name: text for name, text in _OPTIONS.items() if name in _SHARED}
    field_options(group, quads.Problem, shared)
    output_arguments(parser)


def _plan(args: argparse.Namespace) -> int:
    options = given(args, _OPTIONS)
    problem = quads.Problem(model=args.model, motion=args.motion, **options)
    model = load(args.model)
    with progress_bar(model.name) as progress:
        result = quads.plan(problem, path=args.output, progress=progress)
    return finish(args, result, model)


QUAD_PLAN = Variant(
    "plan a motion of a quad-robot in an elastic skin",
    "drakebots plan beetle --motion walk -o plan.nc",
    _plan_arguments,
    _plan,
)

# --- track ------------------------------------------------------------------

_TRACKING = attribute_texts(quads.Tracking)
_SAP = attribute_texts(quads.SapTracking)
_BOTH = [name for name in _TRACKING if name in _SAP and name not in ("plan", "model")]
_COUPLED = [name for name in _TRACKING if name not in _SAP]


def _track_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("plan", help="plan of a skinned robot (.nc)")
    parser.add_argument("--model", help=_TRACKING["model"])
    parser.add_argument(
        "--sap",
        action="store_true",
        help="track with the skeleton alone in Drake's SAP simulation, under the "
        "recorded forces of the skin",
    )
    texts = {name: _TRACKING[name] for name in (*_COUPLED, *_BOTH)}
    field_options(parser, quads.Tracking, texts)
    output_arguments(parser)


def _track(args: argparse.Namespace) -> int:
    plan = stored_motion(args.plan)
    options = given(args, ("model", *_BOTH))
    if args.sap:
        refuse(args, _COUPLED, "--sap")
        problem = quads.SapTracking(plan, **options)
    else:
        problem = quads.Tracking(plan, **options, **given(args, _COUPLED))
    with progress_bar(f"track {plan.model}") as progress:
        result = quads.track(problem, progress=progress)
    return finish(args, result, problem.robot.skinned.model)


QUAD_TRACK = Variant(
    "track a plan of a skinned robot, on compliant ground",
    "drakebots track plan.nc -o track.nc",
    _track_arguments,
    _track,
)

# --- export -----------------------------------------------------------------


def _export_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("plan", help="plan or run of a skinned robot (.nc)")
    output_argument(
        parser, "--servos", help="table of the servos' angles to write (.csv)"
    )
    export_arguments(parser)
    parser.add_argument("--map", type=Path, help="servo_map.csv of the board")
    text = "rows per second [Hz] (default 50)"
    number_argument(parser, "--rate", text, default=50.0)
    parser.add_argument(
        "--cycles", type=int, default=1, help="number of cycles of a periodic motion"
    )
    parser.add_argument(
        "--as-pulses", action="store_true", help="pulse widths [us], not angles [deg]"
    )
    parser.add_argument(
        "--plain-angles",
        action="store_true",
        help="the planned angles, not moved by what the servos sag under their torques",
    )
    parser.add_argument(
        "--pulse",
        default=",".join(f"{width:g}us" for width in PULSE),
        metavar="A,B",
        help="pulse widths at both ends of the travel [s] (default 500us,2500us)",
    )


def _export(args: argparse.Namespace) -> int:
    plan, own, facts = stored_motion(args.plan), [], {}
    if args.servos is not None:
        own.append(_write_servos(args, plan))
        header, *rows = own[0].read_text().splitlines()
        facts = {
            "servos": str(own[0]),
            "rows": len(rows),
            "channels": header.count(","),
            "rate_hz": args.rate,
            "units": _units(args),
        }
    written = export_result(args, plan, own)
    return tell(args, facts | {"files": list(map(str, written))}, *written)


def _units(args: argparse.Namespace) -> str:
    return UNITS[1] if args.as_pulses else UNITS[0]


def _write_servos(args: argparse.Namespace, plan: Result) -> Path:
    width = quantity("--pulse", "[s]")
    pulse = tuple(1e6 * width(word) for word in args.pulse.split(","))
    if len(pulse) != 2:
        raise InvalidInput(f"--pulse {args.pulse!r}: write two widths, 500us,2500us")
    return quads.export_servos(
        plan,
        args.servos,
        servo_map=args.map,
        rate=args.rate,
        cycles=args.cycles,
        units=_units(args),
        pulse=pulse,
        plain_angles=args.plain_angles,
    )


QUAD_EXPORT = Variant(
    f"write the angles that a servo board plays ({' or '.join(UNITS)})",
    "drakebots export plan.nc --servos servo.csv",
    _export_arguments,
    _export,
)
