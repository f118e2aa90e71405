"""The commands that look: models, show, view, report. Parsing only."""

from __future__ import annotations

import argparse
from pathlib import Path

from drakebots.cli.command import Command, load_model, model_argument
from drakebots.cli.output import (
    model_table,
    print_json,
    print_report,
    print_table,
    report_of,
)
from drakebots.cli.skin_commands import SKIN_SHOW, names_skinned
from drakebots.cli.voxel_commands import LATTICE_SHOW
from drakebots.errors import InvalidInput
from drakebots.models import available_models, load
from drakebots.plots import plot_summary
from drakebots.results import check_output, load_result
from drakebots.view import make_scene, record, serve, write_html

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


# --- view, report -----------------------------------------------------------


def _view_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("what", help="a result (.nc), or a model as in show")
    parser.add_argument("--units", default="SI", help="as in show")
    parser.add_argument(
        "-o", "--html", type=Path, help="write a page instead of serving"
    )
    parser.add_argument(
        "--colour", metavar="NAME", help="of a skin: stress or displacement"
    )
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
        scene = record(result, slow=args.slow, port=args.port, colour=args.colour)
    else:
        if args.colour is not None:
            raise InvalidInput("--colour is for the skin of a result (.nc)")
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


LOOK_COMMANDS = (
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
        lattice=LATTICE_SHOW,
        skin=SKIN_SHOW,
        has_skin=names_skinned,
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
