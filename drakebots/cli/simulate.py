"""`drakebots simulate`: any model, held by servos; robots have forms of their own."""

from __future__ import annotations

import argparse

from drakebots.cli.command import Command, Variant, robot_forms
from drakebots.cli.inputs import (
    find_input,
    joint_position,
    load_model,
    model_argument,
    named_numbers,
)
from drakebots.cli.options import (
    attribute_texts,
    field_options,
    given,
    output_arguments,
)
from drakebots.cli.output import finish
from drakebots.cli.progress import progress_bar
from drakebots.robots.legged import Simulation, simulate

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
