"""The commands that look: models, show, view, report; completion. Parsing only."""

from __future__ import annotations

import argparse

from drakebots import view
from drakebots.cli import complete
from drakebots.cli.command import Command, Form, Variant
from drakebots.cli.inputs import (
    MODEL_OPTIONS,
    find_input,
    is_lattice,
    load_model,
    model_argument,
    names_result,
    names_skinned,
    stored,
)
from drakebots.cli.options import (
    completes,
    number_argument,
    output_argument,
    picture_argument,
    refuse,
    table_argument,
)
from drakebots.cli.output import (
    drawings,
    drawn,
    model_table,
    print_report,
    print_rows,
    print_table,
    report_of,
    tell,
    write_data,
)
from drakebots.core.errors import InvalidInput, UnknownName
from drakebots.model import available_models, load, model_contents
from drakebots.robots import plot, record, resolve

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
    return tell(args, {"models": [m.report() for m in models]})


def _show_arguments(parser: argparse.ArgumentParser) -> None:
    model_argument(parser)


def _show(args: argparse.Namespace) -> int:
    model = load_model(args, notes=False)
    contents = model_contents(model)
    for title, rows in contents.items():
        print_rows(title, rows)
    # Last, where a terminal still shows them.
    print_rows("notes", [{"note": note} for note in model.notes])
    print_table(model.name, model_table(model))
    return tell(args, model.report() | {"contents": contents})


# --- view, report -----------------------------------------------------------


def _view_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "what", help="a result (.nc), a stored plan (hamr:jump), or a model"
    )
    model_argument(parser, word="")
    output_argument(parser, "--html", help="write a page (.html) instead of serving")
    colour = parser.add_argument(
        "--colour",
        metavar="NAME",
        help="colour a skin by stress or displacement",
    )
    completes(colour, ("stress", "displacement"))
    number_argument(parser, "--slow", "factor by which the playback is slower")
    parser.add_argument("--port", type=int, help="port of the Meshcat server")
    number_argument(parser, "--seconds", "time to serve [s] (default: until Ctrl-C)")


def _view(args: argparse.Namespace) -> int:
    if args.port is not None and not 1024 <= args.port <= 65535:
        raise InvalidInput(f"port must be within 1024..65535, got {args.port}")
    if args.seconds is not None and not args.seconds > 0:
        raise InvalidInput(f"seconds must be > 0, got {args.seconds}")
    if names_result(args.what):
        refuse(args, MODEL_OPTIONS, "a result; it is for a model")
        result = stored(args.what)
        playback = {"slow": args.slow, "port": args.port, "colour": args.colour}
        scene = drawn(record, result, **playback)
    else:
        if args.colour is not None:
            raise InvalidInput("--colour is for the skin of a result (.nc)")
        refuse(args, ["slow"], "a model; it is for a result (.nc)")
        args.model = args.what
        scene = drawn(view.make_scene, load_model(args), port=args.port)
    if args.html is None:
        url = scene.meshcat.web_url()
        print(f"{url} (Ctrl-C ends)", flush=True)
        tell(args, {"url": url})
        view.serve(scene, seconds=args.seconds)
        return 0
    path = drawn(scene.save, args.html)
    return tell(args, {"html": str(path), "bytes": path.stat().st_size}, path)


def _report_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("result", help="a result (.nc) or a stored plan (hamr:jump)")
    picture_argument(parser, "--plot", plot, "write a summary (.png, .pdf, .svg)")
    table_argument(parser, "write the time series")


def _report(args: argparse.Namespace) -> int:
    result = stored(args.result)
    print_report(result)
    written = write_data(args, result)
    written += [draw() for _, draw in drawings(args, result)]
    return tell(args, report_of(result), *written)


MODELS = Command(
    "models",
    Variant(
        "list the models that come with drakebots",
        "drakebots models",
        _models_arguments,
        _models,
    ),
)

SHOW = Command(
    "show",
    Variant(
        "check a model and print what it contains",
        "drakebots show HAMR.urdf --units mm-g-ms",
        _show_arguments,
        _show,
    ),
    forms=lambda: (
        Form(
            "skinned_leg",
            names_skinned,
            lambda: resolve("drakebots.cli.skin:SKIN_SHOW"),
        ),
        Form(
            "lattice.json",
            is_lattice,
            lambda: resolve("drakebots.cli.voxels:LATTICE_SHOW"),
        ),
    ),
    find=find_input,
)

VIEW = Command(
    "view",
    Variant(
        "show a result or a model in Meshcat, live or as one page",
        "drakebots view run.nc --html run.html",
        _view_arguments,
        _view,
    ),
)

REPORT = Command(
    "report",
    Variant(
        "summarize a result: figures, picture, table",
        "drakebots report run.nc --json",
        _report_arguments,
        _report,
    ),
)

# --- completion -------------------------------------------------------------

_SCRIPT = """\
_drakebots() {
    local IFS=$'\\n' words=("${COMP_WORDS[@]:1:COMP_CWORD}")
    COMPREPLY=($(drakebots completion --words "${words[@]}" 2>/dev/null))
}
complete -o default -F _drakebots drakebots
"""
"""In bash; a file's name is completed where the command has nothing to say."""


def _completion_arguments(parser: argparse.ArgumentParser) -> None:
    shell = parser.add_argument("shell", nargs="?", default="bash", help="bash or zsh")
    completes(shell, ("bash", "zsh"))
    parser.add_argument(
        "--words", nargs=argparse.REMAINDER, help="a begun command line to complete"
    )


def _completion(args: argparse.Namespace) -> int:
    if args.words is not None:
        print("\n".join(complete(args.words)))
        return 0
    if args.shell not in ("bash", "zsh"):
        raise UnknownName("shell", args.shell, ("bash", "zsh"))
    if args.shell == "zsh":
        print("autoload -U +X bashcompinit && bashcompinit")
    print(_SCRIPT, end="")
    return 0


COMPLETION = Command(
    "completion",
    Variant(
        'let a shell complete commands: eval "$(drakebots completion bash)"',
        "drakebots completion bash",
        _completion_arguments,
        _completion,
    ),
)
