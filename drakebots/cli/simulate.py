"""`drakebots simulate`: HAMR with a gait, and any model without control."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Mapping
from dataclasses import replace

from drakebots.cli.command import Arguments, Command, Run, Variant
from drakebots.cli.gecko import GECKO_SIMULATE
from drakebots.cli.inputs import find_input, load_model, model_argument, names_skinned
from drakebots.cli.options import field_options, given, output_arguments
from drakebots.cli.output import finish
from drakebots.cli.progress import progress_bar
from drakebots.cli.skin import SKIN_SIMULATE
from drakebots.cli.voxels import VOXEL_SIMULATE
from drakebots.results import Result
from drakebots.robots.hamr import HamrSimulation, simulate
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


def _simulation(
    problem: type, texts: Mapping[str, str], solve: Callable[..., Result]
) -> tuple[Arguments, Run]:
    """Options and work of a simulation of a model: `solve(problem, model, bar)`."""

    def arguments(parser: argparse.ArgumentParser) -> None:
        model_argument(parser, feet=True)
        field_options(parser, problem, texts)
        output_arguments(parser)

    def run(args: argparse.Namespace) -> int:
        own = {"model": args.model} if problem is PassiveSimulation else {}
        posed = problem(**own, **given(args, texts))
        model = load_model(args)
        with progress_bar(model.name) as progress:
            result = solve(posed, model, progress)
        return finish(args, result, model)

    return arguments, run


HAMR_SIMULATE = Variant(
    "simulate HAMR with a gait",
    "drakebots simulate hamr --gait trot --frequency 10 --surface card "
    "--cycles 15 -o run.nc",
    *_simulation(
        HamrSimulation,
        _HAMR,
        lambda posed, model, bar: simulate(posed, model=model, progress=bar),
    ),
)

SIMULATE = Command(
    "simulate",
    "simulate hamr or voxel with a gait, gecko on a course, any model left to itself",
    "drakebots simulate robot.urdf --duration 2 -o run.nc",
    *_simulation(
        PassiveSimulation,
        _PASSIVE,
        lambda posed, model, bar: simulate_passive(
            replace(posed, model=model), progress=bar
        ),
    ),
    robots={"hamr": HAMR_SIMULATE, "gecko": GECKO_SIMULATE, "voxel": VOXEL_SIMULATE},
    skin=SKIN_SIMULATE,
    has_skin=names_skinned,
    find=find_input,
)
