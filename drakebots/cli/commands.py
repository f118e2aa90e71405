"""The commands: arguments and what they run. Parsing only; work is elsewhere."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable
from dataclasses import MISSING, dataclass, fields
from pathlib import Path
from typing import Any

from drakebots.cli.output import (
    SYSTEMS,
    model_table,
    print_json,
    print_report,
    print_table,
    progress_bar,
    report_of,
)
from drakebots.errors import InvalidInput, UnknownName
from drakebots.models import available_models, load
from drakebots.plots import plot_summary
from drakebots.results import Result, check_output, load_result
from drakebots.robots.hamr.simulate import HamrSimulation, simulate
from drakebots.robots.passive import PassiveSimulation, simulate_passive
from drakebots.view import make_scene, record, serve, write_html


@dataclass(frozen=True)
class Command:
    """One command of the command line."""

    name: str
    help: str
    example: str
    arguments: Callable[[argparse.ArgumentParser], None]
    run: Callable[[argparse.Namespace], int]


def model_argument(parser: argparse.ArgumentParser) -> None:
    """The model and its units."""
    parser.add_argument(
        "model", help="a name (see `drakebots models`) or a URDF, SDF, MJCF, dmd.yaml"
    )
    parser.add_argument(
        "--units",
        default="SI",
        metavar="U",
        help=f"of a URDF in the old Drake format: {', '.join(SYSTEMS)} (default SI)",
    )


def load_model(args: argparse.Namespace):
    """The model that the arguments name."""
    if args.units not in SYSTEMS:
        raise UnknownName("units", args.units, SYSTEMS)
    feet = getattr(args, "feet", None)
    return load(
        args.model,
        units=SYSTEMS[args.units],
        feet=feet.split(",") if feet else None,
    )


# --- models, show -----------------------------------------------------------


def _models_arguments(parser: argparse.ArgumentParser) -> None:
    del parser  # no arguments of its own


def _models(args: argparse.Namespace) -> int:
    models = [load(name) for name in available_models()]
    rows = {
        m.name: f"{len(m.summary.velocities)} velocities, "
        f"{len(m.summary.actuators)} actuators, {len(m.loops)} loops, "
        f"{len(m.feet)} feet, {m.summary.mass:.4g} kg"
        for m in models
    }
    print_table("models", rows)
    if args.json:
        print_json({"models": [m.report() for m in models]})
    return 0


def _show_arguments(parser: argparse.ArgumentParser) -> None:
    model_argument(parser)
    parser.add_argument("--feet", metavar="A,B", help="bodies to use as feet")


def _show(args: argparse.Namespace) -> int:
    model = load_model(args)
    print_table(model.name, model_table(model))
    if args.json:
        print_json(model.report())
    return 0


# --- simulate ---------------------------------------------------------------

_HAMR_HELP = {
    "gait": "trot, pronk, bound, pace or jump",
    "frequency": "stride frequency [Hz] (default 10)",
    "surface": "teflon, card or sandpaper",
    "cycles": "cycles after the gait's ramp",
    "swing_voltage": "swing amplitude about 112.5 V [V]",
    "lift_voltage": "lift amplitude about 112.5 V [V]",
    "encoder_noise": "standard deviation of the encoders' current [A]",
    "seed": "of the encoder noise",
}
_PASSIVE_HELP = {
    "duration": "[s]",
    "height": "of the base at the start [m]",
}
_SHARED_HELP = {
    "friction": "coefficient of the ground",
    "time_step": "of the plant [s]",
    "log_period": "between samples [s]",
    "time_limit": "of wall time [s]; the best is kept",
}
_TYPES = {"int": int, "str": str}


def _option_fields() -> dict[str, tuple[Any, str]]:
    """Options of simulate: the fields of the two problems, by name."""
    found = {}
    for problem, texts in (
        (HamrSimulation, _HAMR_HELP | _SHARED_HELP),
        (PassiveSimulation, _PASSIVE_HELP | _SHARED_HELP),
    ):
        for field in fields(problem):
            found.setdefault(field.name, (field, texts[field.name]))
    return found


def _simulate_arguments(parser: argparse.ArgumentParser) -> None:
    model_argument(parser)
    parser.add_argument("--feet", metavar="A,B", help="bodies to use as feet")
    hamr = parser.add_argument_group("HAMR")
    other = parser.add_argument_group("other models (no control)")
    both = parser.add_argument_group("any model")
    for name, (field, text) in _option_fields().items():
        group = hamr if name in _HAMR_HELP else other if name in _PASSIVE_HELP else both
        default = field.default
        if default is not MISSING and default is not None and name not in _SHARED_HELP:
            text += f" (default {default})"
        kind = _TYPES.get(str(field.type).split(" ")[0], float)
        group.add_argument(
            "--" + name.replace("_", "-"), type=kind, default=None, help=text
        )
    output_arguments(parser)


def output_arguments(parser: argparse.ArgumentParser) -> None:
    """The files a run can write."""
    parser.add_argument("-o", "--output", type=Path, help="result file (.nc)")
    parser.add_argument("--csv", type=Path, help="also as a table")
    parser.add_argument("--html", type=Path, help="also as a Meshcat page")
    parser.add_argument("--plot", type=Path, help="also as a picture (.png)")


def _chosen(args: argparse.Namespace, problem: type, other: type) -> dict[str, Any]:
    known = {field.name for field in fields(problem)}
    extra = {field.name for field in fields(other)} - known
    for name in sorted(extra):
        if getattr(args, name) is not None:
            raise InvalidInput(
                f"--{name.replace('_', '-')} does not apply to {args.model}; "
                "leave it out"
            )
    given = {name: getattr(args, name) for name in known}
    return {name: value for name, value in given.items() if value is not None}


def _simulate(args: argparse.Namespace) -> int:
    for path in (args.output, args.csv, args.html, args.plot):
        if path is not None:
            check_output(path)
    is_hamr = args.model == "hamr"
    if is_hamr:
        problem = HamrSimulation(**_chosen(args, HamrSimulation, PassiveSimulation))
    else:
        problem = PassiveSimulation(**_chosen(args, PassiveSimulation, HamrSimulation))
    model = load_model(args)
    with progress_bar(model.name) as progress:
        if is_hamr:
            result = simulate(problem, model=model, progress=progress)
        else:
            result = simulate_passive(model, problem, progress=progress)
    written = write_outputs(args, result, model)
    print_report(result)
    for path in written:
        print(path)
    if args.json:
        print_json(report_of(result) | {"files": [str(path) for path in written]})
    return exit_code(result)


def write_outputs(args: argparse.Namespace, result: Result, model) -> list[Path]:
    """Writes the files that were asked for."""
    written = []
    if args.output is not None:
        written.append(result.save(args.output))
    if args.csv is not None:
        written.append(result.to_csv(args.csv))
    if args.html is not None:
        written.append(write_html(record(result, model=model), args.html))
    if args.plot is not None:
        written.append(plot_summary(result, args.plot))
    return written


def exit_code(result: Result) -> int:
    """0 for success; says on stderr why not."""
    if result.ok:
        return 0
    print(f"drakebots: {result.verdict}: {result.message}", file=sys.stderr)
    return 130 if result.verdict == "interrupted" else 1


# --- view, report -----------------------------------------------------------


def _view_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("what", help="a result (.nc), or a model as in show")
    parser.add_argument("--units", default="SI", help="as in show")
    parser.add_argument("--html", type=Path, help="write a page instead of serving")
    parser.add_argument("--slow", type=float, help="times slower than real")
    parser.add_argument("--port", type=int, help="of the server")
    parser.add_argument(
        "--seconds", type=float, help="serve so long (default: until Ctrl-C)"
    )


def _view(args: argparse.Namespace) -> int:
    if args.html is not None:
        check_output(args.html)
    if args.port is not None and not 1024 <= args.port <= 65535:
        raise InvalidInput(f"port must be within 1024..65535, got {args.port}")
    if args.what.lower().endswith(".nc"):
        result = load_result(args.what)
        scene = record(result, slow=args.slow, port=args.port)
    else:
        args.model = args.what
        scene = make_scene(load_model(args), port=args.port)
    if args.html is None:
        url = scene.meshcat.web_url()
        print(f"{url} (Ctrl-C ends)", flush=True)
        if args.json:
            print_json({"url": url})
        serve(scene, seconds=args.seconds)
        return 0
    path = write_html(scene, args.html)
    print(path)
    if args.json:
        print_json({"html": str(path), "bytes": path.stat().st_size})
    return 0


def _report_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("result", help="a result (.nc)")
    parser.add_argument("--plot", type=Path, help="write a summary (.png, .pdf, .svg)")
    parser.add_argument("--csv", type=Path, help="write the time series")


def _report(args: argparse.Namespace) -> int:
    for path in (args.plot, args.csv):
        if path is not None:
            check_output(path)
    result = load_result(args.result)
    print_report(result)
    if args.plot is not None:
        print(plot_summary(result, args.plot))
    if args.csv is not None:
        print(result.to_csv(args.csv))
    if args.json:
        print_json(report_of(result))
    return 0


COMMANDS = (
    Command(
        "models",
        "list the models that came with drakebots",
        "drakebots models",
        _models_arguments,
        _models,
    ),
    Command(
        "show",
        "check a model and say what it contains",
        "drakebots show HAMR.urdf --units mm-g-ms",
        _show_arguments,
        _show,
    ),
    Command(
        "simulate",
        "simulate a model: HAMR with a gait, any other without control",
        "drakebots simulate hamr --gait trot --frequency 10 --surface card "
        "--cycles 15 -o run.nc",
        _simulate_arguments,
        _simulate,
    ),
    Command(
        "view",
        "show a result or a model in Meshcat, live or as one page",
        "drakebots view run.nc --html run.html",
        _view_arguments,
        _view,
    ),
    Command(
        "report",
        "print what a result says, and plot it",
        "drakebots report run.nc --plot run.png --json",
        _report_arguments,
        _report,
    ),
)
