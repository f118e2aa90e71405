"""`drakebots simulate gecko` and `drakebots plan gecko`: parsing only.

Lengths and angles are those of the paper here, cm and deg.
"""

from __future__ import annotations

import argparse
import sys
from contextlib import contextmanager

import numpy as np
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn

from drakebots.cli.command import (
    Variant,
    check_outputs,
    finish,
    given,
    output_arguments,
    write_outputs,
)
from drakebots.errors import InvalidInput
from drakebots.robots.gecko.course import MOTIONS
from drakebots.robots.gecko.simulate import (
    ENGINES,
    GeckoSimulation,
    simulate_gecko,
)
from drakebots.robots.gecko.velocity_space import (
    VelocitySpace,
    simulate_velocity_space,
)

CM = 0.01


@contextmanager
def counter(label: str, what: str):
    """A bar that counts on stderr; silent without a terminal."""
    columns = (TextColumn(label), BarColumn(), MofNCompleteColumn(), TextColumn(what))
    with Progress(
        *columns,
        console=Console(stderr=True),
        transient=True,
        disable=not sys.stderr.isatty(),
    ) as bar:
        task = bar.add_task(label, total=None)
        yield lambda done, total: bar.update(task, completed=done, total=total)


def points(text: str, what: str) -> tuple[tuple[float, float], ...]:
    """Points "x,y x,y ..." in cm, as (x, y) in m.

    Raises:
        InvalidInput: naming the point that is none.
    """
    found = []
    for word in text.split():
        try:
            x, y = map(float, word.split(","))
        except ValueError:
            raise InvalidInput(
                f'{what}: {word!r} is no point; write "x,y x,y ..." in cm'
            ) from None
        if not np.isfinite([x, y]).all():
            raise InvalidInput(f"{what}: {word!r} is not finite; give numbers in cm")
        found.append((x * CM, y * CM))
    return tuple(found)


# --- simulate ---------------------------------------------------------------

_SIMULATE = {
    "motion": (str, f"what the generator believes: {', '.join(MOTIONS)}"),
    "sum": (str, "reading of eq. (19): corrected or paper"),
    "horizon": (int, "cycles to look ahead at most"),
    "size": (str, "small or large robot"),
    "weights": (str, "of the pose step: velocity_space or single_cycle"),
    "half_cycles": (int, "give up after so many"),
    "time_limit": (float, "of wall time [s]; the best is kept"),
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
    parser.add_argument(
        "--pressure",
        action="store_const",
        const=True,
        help="with the limit of 1.1 bar (pose) or the low-level control (drake)",
    )
    for name, (kind, text) in _SIMULATE.items():
        shown = getattr(default, name)
        text += "" if shown is None else f" (default {shown})"
        parser.add_argument("--" + name.replace("_", "-"), type=kind, help=text)
    output_arguments(parser)


def _simulate(args: argparse.Namespace) -> int:
    check_outputs(args)
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
    return finish(args, result, write_outputs(args, result))


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
    for name, kind, text in (
        ("order", int, "of the polynomial"),
        ("settle", int, "cycles before the one that counts"),
        ("size", str, "small or large robot"),
        ("weights", str, "of the pose step"),
    ):
        text += f" (default {getattr(default, name)})"
        parser.add_argument(f"--{name}", type=kind, help=text)
    output_arguments(parser)


def numbers(text: str, what: str) -> tuple[float, ...]:
    """Numbers "a,b,...".

    Raises:
        InvalidInput: when they are none.
    """
    try:
        return tuple(float(word) for word in text.split(","))
    except ValueError:
        raise InvalidInput(
            f'{what}: {text!r} is no list "a,b,..." of numbers'
        ) from None


def _plan(args: argparse.Namespace) -> int:
    check_outputs(args)
    if not args.velocity_space:
        raise InvalidInput("say what to plan: --velocity-space")
    options = given(args, ("order", "settle", "size", "weights"))
    if args.q1 is not None:
        options["q1"] = tuple(np.radians(numbers(args.q1, "--q1")).tolist())
    if args.q2 is not None:
        options["q2"] = numbers(args.q2, "--q2")
    problem = VelocitySpace(**options)
    if args.html is not None:
        raise InvalidInput("--html: a velocity space has no motion; use --plot")
    with counter("velocity space", "gaits") as progress:
        result = simulate_velocity_space(problem, progress=progress)
    return finish(args, result, write_outputs(args, result))


GECKO_PLAN = Variant(
    "simulate the gecko's velocity space and fit it",
    "drakebots plan gecko --velocity-space -o space.nc",
    _plan_arguments,
    _plan,
)
