"""The forms of `simulate`, `plan`, `track` and `export` for HAMR: parsing only."""

from __future__ import annotations

import argparse

from drakebots.cli.command import Variant
from drakebots.cli.inputs import load_model, model_argument, stored
from drakebots.cli.options import (
    attribute_texts,
    field_options,
    given,
    output_argument,
    output_arguments,
    refuse,
    switch,
)
from drakebots.cli.output import finish, tell
from drakebots.cli.plan import solver_arguments, solver_options
from drakebots.cli.progress import progress_bar
from drakebots.model import load
from drakebots.robots.hamr import (
    GaitProblem,
    JumpProblem,
    Simulation,
    export_voltages,
    plan,
    simulate,
)

_SIMULATE = attribute_texts(Simulation, but=("model",))


def _simulate_arguments(parser: argparse.ArgumentParser) -> None:
    model_argument(parser)
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

_SOLVER = ("time_limit", "checkpoint", "resume")
_GAIT = attribute_texts(GaitProblem, but=_SOLVER)
_JUMP = attribute_texts(JumpProblem, but=_SOLVER)
_BOTH = ("surface", "friction", "knots")


def _only(texts: dict[str, str]) -> dict[str, str]:
    return {name: text for name, text in texts.items() if name not in _BOTH}


def _plan_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("model", help="hamr")
    gait = parser.add_argument_group("a gait")
    field_options(gait, GaitProblem, _only(_GAIT))
    jump = parser.add_argument_group("the jump")
    switch(jump, "--jump", "jump", "plan the jump instead of a gait")
    field_options(jump, JumpProblem, _only(_JUMP))
    both = parser.add_argument_group("both")
    field_options(both, GaitProblem, {name: _GAIT[name] for name in _BOTH})
    solver_arguments(parser)


def _plan(args: argparse.Namespace) -> int:
    kind, other, what = GaitProblem, _only(_JUMP), "a gait"
    if args.jump:
        kind, other, what = JumpProblem, _only(_GAIT), "a jump"
    own = _JUMP if args.jump else _GAIT
    refuse(args, [n for n in other if n not in own and hasattr(args, n)], what)
    options = given(args, [name for name in own if hasattr(args, name)])
    problem = kind(**solver_options(args), **options)
    with progress_bar(f"hamr {problem.name}") as progress:
        result = plan(problem, progress=progress)
    return finish(args, result, load("hamr"))


PLAN = Variant(
    "plan a gait or the jump of HAMR by contact-implicit optimization",
    "drakebots plan hamr --gait trot --frequency 10 --surface card -o plan.nc",
    _plan_arguments,
    _plan,
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
