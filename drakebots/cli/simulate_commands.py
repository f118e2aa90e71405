"""`drakebots simulate`: HAMR with a gait, and any model without control."""

from __future__ import annotations

import argparse
from dataclasses import fields

from drakebots.cli.command import (
    Command,
    Variant,
    check_outputs,
    field_options,
    finish,
    given,
    load_model,
    model_argument,
    output_arguments,
    write_outputs,
)
from drakebots.cli.gecko_commands import GECKO_SIMULATE
from drakebots.cli.output import progress_bar
from drakebots.cli.skin_commands import SKIN_SIMULATE, names_skinned
from drakebots.cli.voxel_commands import VOXEL_SIMULATE
from drakebots.robots.hamr.simulate import HamrSimulation, simulate
from drakebots.robots.passive import PassiveSimulation, simulate_passive

_SHARED = {
    "friction": "coefficient of the ground",
    "time_step": "of the plant [s]",
    "log_period": "between samples [s]",
    "time_limit": "of wall time [s]; the best is kept",
}
_HAMR = {
    "gait": "trot, pronk, bound, pace or jump",
    "frequency": "stride frequency [Hz], 10 for a gait",
    "surface": "teflon, card or sandpaper",
    "cycles": "cycles after the gait's ramp",
    "swing_voltage": "swing amplitude about 112.5 V [V]",
    "lift_voltage": "lift amplitude about 112.5 V [V]",
    "encoder_noise": "standard deviation of the encoders' current [A]",
    "seed": "of the encoder noise",
} | _SHARED
_PASSIVE = {
    "duration": "of the motion [s]",
    "height": "of the base at the start [m]",
} | _SHARED


def _hamr_arguments(parser: argparse.ArgumentParser) -> None:
    model_argument(parser)
    parser.add_argument("--feet", metavar="A,B", help="bodies to use as feet")
    field_options(parser, HamrSimulation, _HAMR)
    output_arguments(parser)


def _hamr(args: argparse.Namespace) -> int:
    check_outputs(args)
    problem = HamrSimulation(**given(args, _names(HamrSimulation)))
    model = load_model(args)
    with progress_bar(model.name) as progress:
        result = simulate(problem, model=model, progress=progress)
    return finish(args, result, write_outputs(args, result, model))


def _passive_arguments(parser: argparse.ArgumentParser) -> None:
    model_argument(parser)
    parser.add_argument("--feet", metavar="A,B", help="bodies to use as feet")
    field_options(parser, PassiveSimulation, _PASSIVE)
    output_arguments(parser)


def _passive(args: argparse.Namespace) -> int:
    check_outputs(args)
    problem = PassiveSimulation(**given(args, _names(PassiveSimulation)))
    model = load_model(args)
    with progress_bar(model.name) as progress:
        result = simulate_passive(model, problem, progress=progress)
    return finish(args, result, write_outputs(args, result, model))


def _names(problem: type) -> list[str]:
    return [entry.name for entry in fields(problem)]


HAMR_SIMULATE = Variant(
    "simulate HAMR with a gait",
    "drakebots simulate hamr --gait trot --frequency 10 --surface card "
    "--cycles 15 -o run.nc",
    _hamr_arguments,
    _hamr,
)

SIMULATE = Command(
    "simulate",
    "simulate hamr or voxel with a gait, gecko on a course, any model left to itself",
    "drakebots simulate robot.urdf --duration 2 -o run.nc",
    _passive_arguments,
    _passive,
    {"hamr": HAMR_SIMULATE, "gecko": GECKO_SIMULATE, "voxel": VOXEL_SIMULATE},
    skin=SKIN_SIMULATE,
    has_skin=names_skinned,
)
