"""`drakebots simulate gecko` and `drakebots plan gecko`: parsing only.

Lengths and angles are those of the paper here, cm and deg.
"""

from __future__ import annotations

import argparse

import numpy as np

from drakebots.cli.command import Variant
from drakebots.cli.inputs import CM, numbers, points
from drakebots.cli.options import field_options, given, output_arguments, switch
from drakebots.cli.output import finish
from drakebots.cli.progress import counter
from drakebots.core.errors import InvalidInput
from drakebots.robots.gecko import ENGINES, GeckoSimulation, simulate_gecko
from drakebots.robots.gecko.generator import (
    MOTIONS,
    VelocitySpace,
    simulate_velocity_space,
)

# --- simulate ---------------------------------------------------------------

_SIMULATE = {
    "motion": f"what the generator believes: {', '.join(MOTIONS)}",
    "sum": "reading of eq. (19): corrected or paper",
    "horizon": f"cycles to look ahead at most (default {GeckoSimulation().horizon})",
    "size": "small or large robot",
    "weights": "of the pose step: velocity_space or single_cycle",
    "half_cycles": "give up after so many",
    "time_limit": "of wall time [s]; the best is kept",
}
_SPACE = {
    "order": "of the polynomial",
    "settle": "cycles before the one that counts",
    "size": "small or large robot",
    "weights": "of the pose step",
}


def _simulate_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("model", help="gecko")
    default = GeckoSimulation()
    course = " ".join(f"{x / CM:g},{y / CM:g}" for x, y in default.targets)
    parser.add_argument("--engine", help=f"{' or '.join(ENGINES)} (default pose)")
    parser.add_argument(
        "--targets", metavar='"x,y ..."', help=f'in cm (default "{course}")'
    )
    parser.add_argument(
        "--obstacle",
        action="append",
        metavar='"x,y ..."',
        help="a polygon to walk around, in cm; may be given several times",
    )
    parser.add_argument(
        "--epsilon",
        type=float,
        help=f"distance that counts as reached [cm] (default {default.epsilon / CM:g})",
    )
    parser.add_argument(
        "--start", metavar='"x,y"', help='of the torso\'s front [cm] (default "0,0")'
    )
    parser.add_argument(
        "--heading",
        type=float,
        help=f"at the start [deg] (default {np.degrees(default.heading):g})",
    )
    parser.add_argument(
        "--final-heading", type=float, help="wanted at the one target [deg]"
    )
    switch(
        parser,
        "--pressure",
        "pressure",
        "with the limit of 1.1 bar (pose) or the low-level control (drake)",
    )
    field_options(parser, GeckoSimulation, _SIMULATE)
    output_arguments(parser)


def _simulate(args: argparse.Namespace) -> int:
    options = given(args, ("engine", "pressure", *_SIMULATE))
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
    for name in ("heading", "final_heading"):
        value = getattr(args, name)
        if value is not None:
            options[name] = float(np.radians(value))
    problem = GeckoSimulation(**options)
    unit = "half cycles" if problem.engine == "pose" else "s simulated"
    with counter("gecko", unit) as progress:
        result = simulate_gecko(problem, progress=progress)
    return finish(args, result)


GECKO_SIMULATE = Variant(
    "walk the gecko to its targets in a closed loop",
    'drakebots simulate gecko --engine pose --targets "65,0 65,65 0,65 0,110" '
    "--epsilon 10 -o run.nc",
    _simulate_arguments,
    _simulate,
)

# --- plan -------------------------------------------------------------------


def _plan_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("model", help="gecko")
    default = VelocitySpace()
    parser.add_argument(
        "--velocity-space",
        action="store_true",
        help="simulate a grid of gaits and fit a polynomial to what they do",
    )
    for name, values in (("q1", np.degrees(default.q1)), ("q2", default.q2)):
        shown = ",".join(f"{v:g}" for v in values)
        unit = " [deg]" if name == "q1" else ""
        parser.add_argument(
            f"--{name}", metavar="A,B,...", help=f"grid{unit} (default {shown})"
        )
    field_options(parser, VelocitySpace, _SPACE)
    output_arguments(parser)


def _plan(args: argparse.Namespace) -> int:
    if not args.velocity_space:
        raise InvalidInput("say what to plan: --velocity-space")
    options = given(args, _SPACE)
    if args.q1 is not None:
        options["q1"] = tuple(np.radians(numbers(args.q1, "--q1")).tolist())
    if args.q2 is not None:
        options["q2"] = numbers(args.q2, "--q2")
    problem = VelocitySpace(**options)
    if args.html is not None:
        raise InvalidInput("--html: a velocity space has no motion; use --plot")
    with counter("velocity space", "gaits") as progress:
        result = simulate_velocity_space(problem, progress=progress)
    return finish(args, result)


GECKO_PLAN = Variant(
    "simulate the gecko's velocity space and fit it",
    "drakebots plan gecko --velocity-space -o space.nc",
    _plan_arguments,
    _plan,
)
