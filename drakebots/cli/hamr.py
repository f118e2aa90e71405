"""The forms of `simulate`, `plan`, `track` and `export` for HAMR: parsing only."""

from __future__ import annotations

import argparse
from dataclasses import replace
from pathlib import Path
from typing import Any

from drakebots.cli.command import Variant
from drakebots.cli.inputs import (
    length,
    load_model,
    model_argument,
    named_numbers,
    number,
    numbers,
    stored,
    stored_motion,
)
from drakebots.cli.options import (
    attribute_texts,
    field_options,
    given,
    number_argument,
    output_argument,
    output_arguments,
    refuse,
    switch,
)
from drakebots.cli.output import finish, tell
from drakebots.cli.plan import (
    export_arguments,
    export_result,
    solver_arguments,
    solver_options,
)
from drakebots.cli.progress import progress_bar
from drakebots.core.errors import InvalidInput
from drakebots.model import load
from drakebots.robots.hamr import (
    GaitProblem,
    GaitWeights,
    JumpProblem,
    Simulation,
    export_voltages,
    plan,
    simulate,
)

_SIMULATE = attribute_texts(Simulation, but=("model",))


def _phases_argument(parser, texts: dict[str, str]) -> None:
    parser.add_argument("--phases", metavar="FL=0.5,...", help=texts["phases"])


def _phases(options: dict[str, Any]) -> dict[str, Any]:
    """The options with phases parsed, if there are any."""
    if "phases" not in options:
        return options
    phases = named_numbers(options["phases"], "--phases", number)
    return options | {"phases": phases}


def _simulate_arguments(parser: argparse.ArgumentParser) -> None:
    model_argument(parser)
    field_options(parser, Simulation, _SIMULATE)
    _phases_argument(parser, _SIMULATE)
    output_arguments(parser)


def _simulate(args: argparse.Namespace) -> int:
    options = _phases(given(args, _SIMULATE))
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
_GAIT = attribute_texts(GaitProblem, but=(*_SOLVER, "from_run"))
_JUMP = attribute_texts(JumpProblem, but=_SOLVER)
_BOTH = ("surface", "friction", "knots", "tilt", "symmetric", "linear_solver")
_GAIT_WEIGHTS = attribute_texts(GaitWeights)
_WEIGHTS = ("pose", "rates", "near")
"""Weights of a gait's cost that have an option."""


def _only(texts: dict[str, str]) -> dict[str, str]:
    return {name: text for name, text in texts.items() if name not in _BOTH}


def _plan_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("model", help="hamr")
    gait = parser.add_argument_group("a gait")
    texts = _only(_GAIT)
    clearance = texts.pop("clearance")
    gait.add_argument("--clearance", metavar="0.3mm", help=clearance)
    _phases_argument(gait, texts)
    field_options(gait, GaitProblem, texts)
    chosen = {name: _GAIT_WEIGHTS[name] for name in _WEIGHTS}
    field_options(gait, GaitWeights, chosen)
    gait.add_argument(
        "--from",
        dest="from_run",
        type=Path,
        metavar="RUN",
        help="executed or simulated gait (.nc) whose settled cycle starts the search",
    )
    jump = parser.add_argument_group("the jump")
    switch(jump, "--jump", "jump", "plan the jump instead of a gait")
    field_options(jump, JumpProblem, _only(_JUMP))
    both = parser.add_argument_group("both")
    field_options(both, GaitProblem, {name: _GAIT[name] for name in _BOTH})
    shown = ",".join(f"{w:g}" for w in GaitWeights().slack)
    both.add_argument("--slack-weights", metavar=shown, help=_GAIT_WEIGHTS["slack"])
    solver_arguments(parser)


def plan_problem(args: argparse.Namespace) -> GaitProblem | JumpProblem:
    """The problem that the options describe.

    Raises:
        InvalidInput: for options of the other problem, and for bad values.
    """
    kind: Any = GaitProblem
    other, what = _only(_JUMP), "a gait"
    if args.jump:
        kind, other, what = JumpProblem, _only(_GAIT), "a jump"
    own = _JUMP if args.jump else _GAIT
    refuse(args, [n for n in other if n not in own and hasattr(args, n)], what)
    if args.jump:
        refuse(args, _WEIGHTS, what)
    options = _phases(given(args, [name for name in own if hasattr(args, name)]))
    if "clearance" in options:
        options["clearance"] = length(options["clearance"], "--clearance")
    if args.from_run is not None:
        if args.jump:
            raise InvalidInput("--from does not apply to a jump; leave it out")
        options["from_run"] = stored(args.from_run)
    weights = given(args, _WEIGHTS)
    if args.slack_weights is not None:
        weights["slack"] = numbers(args.slack_weights, "--slack-weights")
    options["weights"] = replace(kind.weights, **weights)
    return kind(**solver_options(args), **options)


def _plan(args: argparse.Namespace) -> int:
    problem = plan_problem(args)
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
    parser.add_argument("plan", help="a plan of HAMR (.nc), or hamr:10hz_card")
    output_argument(
        parser, "--voltages", help="table of waveforms of the drive to write (.csv)"
    )
    export_arguments(parser)
    text = "sampling rate [Hz] (default 2500)"
    number_argument(parser, "--rate", text, default=2500.0)
    parser.add_argument(
        "--cycles", type=int, default=1, help="number of cycles of a gait (default 1)"
    )
    number_argument(parser, "--ramp", "number of cycles that fade in", default=0.0)


def _export(args: argparse.Namespace) -> int:
    plan, own, facts = stored_motion(args.plan), [], {}
    if args.voltages is not None:
        options = given(args, ("rate", "cycles", "ramp"))
        own.append(export_voltages(plan, args.voltages, **options))
        facts = {"voltages": str(own[0]), "rate_hz": args.rate}
    written = export_result(args, plan, own)
    return tell(args, facts | {"files": list(map(str, written))}, *written)


EXPORT = Variant(
    "write the drive voltages of a plan of HAMR",
    "drakebots export plan.nc --voltages v.csv",
    _export_arguments,
    _export,
)
