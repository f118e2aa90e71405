"""The forms of `simulate`, `plan`, `track` and `export` for HAMR: parsing only."""

from __future__ import annotations

import argparse

from drakebots.cli.command import Variant
from drakebots.cli.inputs import load_model, model_argument, stored
from drakebots.cli.options import (
    field_options,
    given,
    output_argument,
    output_arguments,
    refuse,
    switch,
)
from drakebots.cli.output import finish, tell
from drakebots.cli.plan import COMMON, solver_arguments, solver_options
from drakebots.cli.progress import progress_bar
from drakebots.model import load
from drakebots.robots.hamr import (
    GaitProblem,
    JumpProblem,
    Simulation,
    Tracking,
    export_voltages,
    plan,
    simulate,
    track,
)

_SIMULATE = {
    "gait": "trot, pronk, bound, pace or jump",
    "frequency": "stride frequency [Hz], 10 for a gait",
    "surface": "teflon, card or sandpaper",
    "cycles": "number of cycles after the gait's ramp",
    "swing_voltage": "swing amplitude about 112.5 V [V]",
    "lift_voltage": "lift amplitude about 112.5 V [V]",
    "encoder_noise": "standard deviation of the encoders' current [A]",
    "seed": "seed of the encoder noise",
    "friction": "friction coefficient of the ground",
    "time_step": "time step of the plant [s]",
    "log_period": "period of the stored samples [s]",
    "time_limit": "limit of wall time [s]; what was reached is kept",
}


def _simulate_arguments(parser: argparse.ArgumentParser) -> None:
    model_argument(parser, feet=True)
    field_options(parser, Simulation, _SIMULATE)
    output_arguments(parser)


def _simulate(args: argparse.Namespace) -> int:
    options = given(args, _SIMULATE)
    Simulation(**options)  # bad numbers before a long load
    model = load_model(args)
    with progress_bar(model.name) as progress:
        result = simulate(Simulation(model=model, **options), progress=progress)
    return finish(args, result, model)


SIMULATE = Variant(
    "simulate HAMR with a gait",
    "drakebots simulate hamr --gait trot --frequency 10 --surface card "
    "--cycles 15 -o run.nc",
    _simulate_arguments,
    _simulate,
)

_GAIT = {
    "gait": "gait whose waveform starts the search",
    "frequency": "stride frequency [Hz]",
    "stride": "desired stride of a cycle [m]",
    "symmetric": "right legs mirror the left ones",
}
_JUMP = {"rise": "desired rise of the jump [m]"}


def _plan_arguments(parser: argparse.ArgumentParser) -> None:
    model_argument(parser)
    gait = parser.add_argument_group("a gait")
    field_options(gait, GaitProblem, _GAIT)
    jump = parser.add_argument_group("the jump")
    switch(jump, "--jump", "jump", "plan the jump instead of a gait")
    field_options(jump, JumpProblem, _JUMP)
    both = parser.add_argument_group("both")
    field_options(both, GaitProblem, {"surface": "teflon, card or sandpaper"} | COMMON)
    solver_arguments(parser)


def _plan(args: argparse.Namespace) -> int:
    common = solver_options(args) | given(args, ("surface", *COMMON))
    if args.jump:
        refuse(args, _GAIT, "a jump")
        problem = JumpProblem(**common, **given(args, _JUMP))
    else:
        refuse(args, _JUMP, "a gait")
        problem = GaitProblem(**common, **given(args, _GAIT))
    with progress_bar(f"hamr {problem.name}") as progress:
        result = plan(problem, progress=progress)
    return finish(args, result, load("hamr"))


PLAN = Variant(
    "plan a gait or the jump of HAMR by contact-implicit optimization",
    "drakebots plan hamr --gait trot --frequency 10 --surface card -o plan.nc",
    _plan_arguments,
    _plan,
)

_TRACK = {
    "cycles": "number of cycles to execute",
    "contact": "contact model: sap or stepping",
    "kp": "feedback gain of leg positions [V/m]",
    "kd": "feedback gain of leg velocities [V s/m]",
    "kf": "share of the planned voltages that is fed forward",
    "friction_scale": "factor on the plan's friction coefficient",
    "stiffness_scale": "factor on the stiffness of the flexures",
    "serial_stiffness": "stiffness of a twist in series with the legs [N m/rad]",
    "mocap_noise": "standard deviation of the motion capture [m]",
    "encoder_noise": "standard deviation of the encoders' current [A]",
    "seed": "seed of the noise",
    "time_step": "time step of the simulation [s]",
    "time_limit": "limit of wall time [s]; what was reached is kept",
}


def _track_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("plan", help="a plan of HAMR (.nc)")
    field_options(parser, Tracking, _TRACK)
    output_arguments(parser)


def _track(args: argparse.Namespace) -> int:
    problem = Tracking(stored(args.plan), **given(args, _TRACK))
    with progress_bar(f"track {problem.reference.name}") as progress:
        result = track(problem, progress=progress)
    return finish(args, result, load("hamr"))


TRACK = Variant(
    "execute a plan of HAMR under its leg estimator and controller",
    "drakebots track plan.nc --cycles 15 -o run.nc",
    _track_arguments,
    _track,
)


def _export_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("plan", help="a plan of HAMR (.nc)")
    output_argument(
        parser, "--voltages", required=True, help="table of waveforms to write (.csv)"
    )
    parser.add_argument(
        "--rate", type=float, default=2500.0, help="sampling rate [Hz] (default 2500)"
    )
    parser.add_argument(
        "--cycles", type=int, default=1, help="number of cycles of a gait (default 1)"
    )
    parser.add_argument(
        "--ramp", type=float, default=0.0, help="number of cycles that fade in"
    )


def _export(args: argparse.Namespace) -> int:
    path = export_voltages(
        stored(args.plan),
        args.voltages,
        rate=args.rate,
        cycles=args.cycles,
        ramp=args.ramp,
    )
    return tell(args, {"voltages": str(path), "rate_hz": args.rate}, path)


EXPORT = Variant(
    "write the drive voltages of a plan of HAMR",
    "drakebots export plan.nc --voltages v.csv",
    _export_arguments,
    _export,
)
