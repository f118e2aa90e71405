"""The gecko's options of `drakebots simulate` and `drakebots plan`: parsing only.

Lengths and angles are those of the paper here, cm and deg.
"""

from __future__ import annotations

import argparse

import numpy as np

from drakebots.cli.command import Variant
from drakebots.cli.inputs import CM, numbers, points
from drakebots.cli.options import (
    attribute_texts,
    field_options,
    given,
    output_arguments,
)
from drakebots.cli.output import finish
from drakebots.cli.progress import progress_bar
from drakebots.core.errors import InvalidInput
from drakebots.robots import gecko

# --- simulate ---------------------------------------------------------------

# Fields whose options have another unit or form than the problem's.
_CONVERTED = ("targets", "obstacles", "epsilon", "start", "heading", "final_heading")
_SIMULATE = attribute_texts(gecko.Simulation, but=_CONVERTED)
_SIMULATE["motion"] = "motion model of the generator: " + ", ".join(gecko.MOTIONS)


def _simulate_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("model", help="gecko")
    default = gecko.Simulation()
    course = " ".join(f"{x / CM:g},{y / CM:g}" for x, y in default.targets)
    parser.add_argument(
        "--targets",
        metavar='"x,y ..."',
        help=f'targets in their order [cm] (default "{course}")',
    )
    parser.add_argument(
        "--obstacle",
        action="append",
        metavar='"x,y ..."',
        help="polygon to walk around [cm]; may be given several times",
    )
    parser.add_argument(
        "--epsilon",
        type=float,
        help="distance below which a target counts as reached [cm] "
        f"(default {default.epsilon / CM:g})",
    )
    parser.add_argument(
        "--start",
        metavar='"x,y"',
        help='position of the torso\'s front end at the start [cm] (default "0,0")',
    )
    parser.add_argument(
        "--heading",
        type=float,
        help=f"heading at the start [deg] (default {np.degrees(default.heading):g})",
    )
    parser.add_argument(
        "--final-heading",
        type=float,
        help="desired heading at the target, which must be the only one [deg]",
    )
    horizon = f"{_SIMULATE['horizon']} (default {default.horizon})"
    field_options(parser, gecko.Simulation, _SIMULATE | {"horizon": horizon})
    output_arguments(parser)


def _simulate(args: argparse.Namespace) -> int:
    options = given(args, _SIMULATE)
    if args.targets is not None:
        options["targets"] = points(args.targets, "--targets")
    if args.obstacle:
        options["obstacles"] = tuple(points(o, "--obstacle") for o in args.obstacle)
    if args.start is not None:
        start = points(args.start, "--start")
        if len(start) != 1:
            raise InvalidInput(f'--start must be one point "x,y", got {args.start!r}')
        options["start"] = start[0]
    if args.epsilon is not None:
        options["epsilon"] = args.epsilon * CM
    for name, value in given(args, ("heading", "final_heading")).items():
        options[name] = float(np.radians(value))
    problem = gecko.Simulation(**options)
    with progress_bar("gecko") as progress:
        result = gecko.simulate(problem, progress=progress)
    return finish(args, result)


GECKO_SIMULATE = Variant(
    "walk the gecko to its targets in a closed loop",
    'drakebots simulate gecko --engine pose --targets "65,0 65,65 0,65 0,110" '
    "--epsilon 10 -o run.nc",
    _simulate_arguments,
    _simulate,
)

# --- plan -------------------------------------------------------------------

_SPACE = attribute_texts(gecko.VelocitySpace, but=("q1", "q2"))


def _plan_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("model", help="gecko")
    default = gecko.VelocitySpace()
    parser.add_argument(
        "--velocity-space",
        action="store_true",
        help="simulate a grid of gaits and fit a polynomial to their motions",
    )
    for name, values, what in (
        ("q1", np.degrees(default.q1), "step lengths of the grid [deg]"),
        ("q2", default.q2, "steerings of the grid"),
    ):
        shown = ",".join(f"{v:g}" for v in values)
        parser.add_argument(
            f"--{name}", metavar="A,B,...", help=f"{what} (default {shown})"
        )
    field_options(parser, gecko.VelocitySpace, _SPACE)
    output_arguments(parser)


def _plan(args: argparse.Namespace) -> int:
    if not args.velocity_space:
        raise InvalidInput("say what to plan: --velocity-space")
    options = given(args, _SPACE)
    if args.q1 is not None:
        options["q1"] = tuple(np.radians(numbers(args.q1, "--q1")).tolist())
    if args.q2 is not None:
        options["q2"] = numbers(args.q2, "--q2")
    problem = gecko.VelocitySpace(**options)
    if args.html is not None:
        raise InvalidInput("--html: a velocity space has no motion; use --plot")
    with progress_bar("velocity space") as progress:
        result = gecko.plan(problem, progress=progress)
    return finish(args, result)


GECKO_PLAN = Variant(
    "simulate the gecko's velocity space and fit a polynomial to it",
    "drakebots plan gecko --velocity-space -o space.nc",
    _plan_arguments,
    _plan,
)
