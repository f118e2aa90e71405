"""`drakebots simulate`: any model, held by servos; robots have forms of their own.
`drakebots mpc`: a legged robot under contact-implicit control, or a rival of it."""

from __future__ import annotations

import argparse

from drakebots.cli.command import Command, Variant, robot_forms
from drakebots.cli.inputs import (
    angle,
    find_input,
    joint_position,
    length,
    load_model,
    model_argument,
    named_numbers,
)
from drakebots.cli.options import (
    attribute_texts,
    field_options,
    given,
    output_arguments,
    quantity,
)
from drakebots.cli.output import finish
from drakebots.cli.progress import progress_bar
from drakebots.core.errors import InvalidInput
from drakebots.robots.legged import Simulation, simulate
from drakebots.robots.legged.mpc import Control, Push, control
from drakebots.trajopt import Step

_OPTIONS = attribute_texts(Simulation, but=("model", "pose"))


def _arguments(parser: argparse.ArgumentParser) -> None:
    model_argument(parser)
    field_options(parser, Simulation, _OPTIONS)
    parser.add_argument(
        "--pose",
        metavar="JOINT=0.3,...",
        help="positions of joints to start from and hold [rad, or deg; m]",
    )
    output_arguments(parser)


def _run(args: argparse.Namespace) -> int:
    options = given(args, _OPTIONS)
    if args.pose:
        options["pose"] = named_numbers(args.pose, "--pose", joint_position)
    Simulation(model=args.model, **options)  # bad numbers before a long load
    model = load_model(args)
    with progress_bar(model.name) as progress:
        problem = Simulation(model=model, **options)
        result = simulate(problem, progress=progress)
    return finish(args, result, model)


SIMULATE = Command(
    "simulate",
    Variant(
        "simulate a robot with its own controller, or any model held by servos",
        "drakebots simulate robot.urdf --duration 2 -o run.nc",
        _arguments,
        _run,
    ),
    forms=lambda: robot_forms("simulate"),
    find=find_input,
)

# --- mpc ----------------------------------------------------------------------

_CONTROL = attribute_texts(Control, but=("model", "goal", "pushes", "terrain"))


def push(text: str) -> Push:
    """Parses a push "50N@1s", "50N@1s,0.2s" or "50N@1s,0.2s,90deg".

    Raises:
        InvalidInput: naming what is no push.
    """
    size, at, rest = text.partition("@")
    words = rest.split(",")
    if not at or len(words) > 3:
        raise InvalidInput(
            f"--push: {text!r} is no push; write 50N@1s, or with duration and "
            "direction 50N@1s,0.1s,90deg"
        )
    more = {}
    if len(words) > 1:
        more["duration"] = quantity("--push duration", "[s]")(words[1])
    if len(words) > 2:
        more["direction"] = angle(words[2], "--push direction")
    begins = quantity("--push time", "[s]")(words[0])
    return Push(quantity("--push force", "[N]")(size), begins, **more)


def _lengths(text: str, what: str, example: str) -> tuple[float, ...]:
    words = text.split(",")
    if len(words) != len(example.split(",")):
        raise InvalidInput(f"{what}: {text!r} is no {example}")
    return tuple(length(word, what) for word in words)


def _mpc_arguments(parser: argparse.ArgumentParser) -> None:
    model_argument(parser)
    parser.add_argument(
        "--goal", metavar="X,Y", help="where the base is to go, from its start [m]"
    )
    parser.add_argument(
        "--push",
        metavar="50N@1s",
        action="append",
        default=[],
        help="force on the base, and when; then ,DURATION,DIRECTION "
        "(0.1s, 90deg: to the left); may be given again",
    )
    parser.add_argument(
        "--box",
        metavar="START,END,HEIGHT",
        help="a step of the ground between two values of x [m]",
    )
    field_options(parser, Control, _CONTROL)
    output_arguments(parser)


def _mpc(args: argparse.Namespace) -> int:
    options = given(args, _CONTROL)
    options["pushes"] = tuple(push(text) for text in args.push)
    if args.goal is not None:
        options["goal"] = _lengths(args.goal, "--goal", "X,Y")
    if args.box is not None:
        options["terrain"] = Step(*_lengths(args.box, "--box", "START,END,HEIGHT"))
    Control(model=args.model, **options)  # bad numbers before a long load
    model = load_model(args)
    with progress_bar(model.name) as progress:
        result = control(Control(model=model, **options), progress=progress)
    return finish(args, result, model)


MPC = Command(
    "mpc",
    Variant(
        "control a legged robot that is pushed, by contact-implicit control or a rival",
        "drakebots mpc mini_cheetah --gait trot --goal 1,0 --push 50N@1s --html a.html",
        _mpc_arguments,
        _mpc,
    ),
    find=find_input,
)
