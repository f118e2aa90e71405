"""The gecko's options of `drakebots simulate` and `drakebots plan`: parsing only."""

from __future__ import annotations

import argparse

from drakebots.cli.command import Variant
from drakebots.cli.inputs import angle, length, numbers, points
from drakebots.cli.options import (
    attribute_texts,
    completes,
    field_options,
    given,
    option,
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


def _simulate_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("model", help="gecko")
    default = gecko.Simulation()
    course = " ".join(f"{x:g},{y:g}" for x, y in default.targets)
    parser.add_argument(
        "--targets",
        metavar='"x,y ..."',
        help=f'targets in their order, "65cm,0" or in m (default "{course}")',
    )
    parser.add_argument(
        "--obstacle",
        action="append",
        metavar='"x,y ..."',
        help="polygon to walk around, as --targets; may be given several times",
    )
    parser.add_argument(
        "--epsilon",
        help=f"distance at which a target counts as reached [m] "
        f"(default {default.epsilon:g})",
    )
    parser.add_argument(
        "--start",
        metavar='"x,y"',
        help='position of the torso\'s front end at the start [m] (default "0,0")',
    )
    parser.add_argument(
        "--heading",
        help=f"heading at the start [rad], or 90deg (default {default.heading:g})",
    )
    parser.add_argument(
        "--final-heading",
        help="desired heading at the target, which must be the only one [rad]",
    )
    horizon = f"{_SIMULATE['horizon']} (default {default.horizon})"
    motion = parser.add_argument(
        "--motion-model",
        dest="motion",
        help=f"of the generator: {', '.join(gecko.MOTIONS)} (default {default.motion})",
    )
    completes(motion, gecko.MOTIONS)
    own = {name: text for name, text in _SIMULATE.items() if name != "motion"}
    field_options(parser, gecko.Simulation, own | {"horizon": horizon})
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
        options["epsilon"] = length(args.epsilon, "--epsilon")
    for name, value in given(args, ("heading", "final_heading")).items():
        options[name] = angle(value, option(name))
    problem = gecko.Simulation(**options)
    with progress_bar("gecko") as progress:
        result = gecko.simulate(problem, progress=progress)
    return finish(args, result)


GECKO_SIMULATE = Variant(
    "walk the gecko to its targets in a closed loop",
    'drakebots simulate gecko --engine pose --targets "65cm,0 65cm,65cm" '
    "--epsilon 10cm -o run.nc",
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
        ("q1", default.q1, "step lengths of the grid [rad], or 60deg,80deg"),
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
        options["q1"] = tuple(angle(word, "--q1") for word in args.q1.split(","))
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
