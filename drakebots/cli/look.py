"""The commands that look: models, show, view, report; completion, schema."""

from __future__ import annotations

import argparse
import json
from functools import partial
from pathlib import Path
from typing import Annotated, Any

from drakebots import view
from drakebots.cli import Form, command, complete
from drakebots.cli.inputs import (
    MODEL_OPTIONS,
    Loading,
    find_input,
    load_model,
    model_argument,
    names_result,
    stored,
)
from drakebots.cli.options import (
    TABLE,
    Written,
    chosen,
    completes,
    drawing,
    drawings,
    drawn,
    refuse,
    write_data,
)
from drakebots.cli.output import (
    model_table,
    print_report,
    print_rows,
    print_table,
    report_of,
    tell,
)
from drakebots.core.checks import finite, known, positive, whole
from drakebots.core.convert import schema
from drakebots.core.errors import InvalidInput, check_names
from drakebots.core.fields import checked
from drakebots.core.files import check_output, make_folder, read_yaml, write_text
from drakebots.core.lazy import late, resolve
from drakebots.formats import load
from drakebots.lattice.shape import names_lattice
from drakebots.model import available_models, model_contents
from drakebots.robots import record, robots, scenario_schema

identify = late("drakebots.identify")

# --- models, show -----------------------------------------------------------


@command("models", "drakebots models")
def list_models(args: argparse.Namespace) -> int:
    """List the models that come with drakebots."""
    models = [load(name) for name in available_models()]
    rows = {
        m.name: f"{len(m.summary.velocities)} velocities, "
        f"{len(m.summary.actuators)} actuators, {len(m.loops)} loops, "
        f"points of feet {len(m.feet)}, {m.summary.mass:.4g} kg"
        for m in models
    }
    print_table("models", rows)
    return tell(args, {"models": [m.report() for m in models]})


def _show_forms() -> tuple[Form, ...]:
    skin, lattice = "drakebots.cli.skin:show_skin", "drakebots.cli.lattice:show_spec"
    return (
        Form("skinned_leg", robots()["skinned"].is_named, partial(resolve, skin)),
        Form("lattice.json", names_lattice, partial(resolve, lattice)),
    )


@command(
    "show",
    "drakebots show HAMR.urdf --units mm-g-ms",
    model_argument,
    forms=_show_forms,
    find=find_input,
)
def show_model(args: argparse.Namespace) -> int:
    """Check a model and print what it contains."""
    model = load_model(args, notes=False)
    contents = model_contents(model)
    for title, rows in contents.items():
        print_rows(title, rows)
    # Last, where a terminal still shows them.
    print_rows("notes", [{"note": note} for note in model.notes])
    print_table(model.name, model_table(model))
    return tell(args, model.report() | {"contents": contents})


# --- view, report -----------------------------------------------------------


@checked()
class Showing:
    """What is shown, and how."""

    what: str
    """Result (.nc), stored plan (hamr:jump), or model."""
    html: Annotated[Path | None, Written()] = None
    """Write a page (.html) instead of serving."""
    colour: Annotated[str | None, known(("stress", "displacement"))] = None
    """Colour a skin by stress or displacement."""
    slow: Annotated[float | None, positive()] = None
    """Factor by which the playback is slower."""
    port: Annotated[int | None, whole(1024, 65535)] = None
    """Port of the Meshcat server."""
    seconds: Annotated[float | None, positive("s")] = None
    """Time to serve; by default until Ctrl-C."""


@command("view", "drakebots view run.nc --html run.html", Showing, Loading)
def view_scene(args: argparse.Namespace) -> int:
    """Show a result or a model in Meshcat, live or as one page."""
    shown = chosen(args, Showing)
    if names_result(args.what):
        refuse(args, MODEL_OPTIONS, "a result; it is for a model")
        result = stored(args.what)
        playback = {"slow": shown.slow, "port": shown.port, "colour": shown.colour}
        scene = drawn(record, result, **playback)
    else:
        if shown.colour is not None:
            raise InvalidInput("--colour is for the skin of a result (.nc)")
        refuse(args, ["slow"], "a model; it is for a result (.nc)")
        args.model = args.what
        scene = drawn(view.make_scene, load_model(args), port=shown.port)
    if args.html is None:
        tell(args, {"url": view.announce(scene.meshcat)})
        view.serve(scene, seconds=shown.seconds)
        return 0
    path = drawn(scene.save, args.html)
    return tell(args, {"html": str(path), "bytes": path.stat().st_size}, path)


@checked()
class Reporting:
    """What is reported, and into which files."""

    result: str
    """Result (.nc) or stored plan (hamr:jump)."""
    plot: Annotated[Path | None, drawing("drakebots.robots:plot")] = None
    """Write a summary (.png, .pdf, .svg)."""
    csv: Annotated[Path | None, TABLE] = None
    """Write the time series."""


@command("report", "drakebots report run.nc --json", Reporting)
def report_result(args: argparse.Namespace) -> int:
    """Summarize a result: figures, picture, table."""
    result = stored(args.result)
    print_report(result)
    written = write_data(args, result)
    written += [draw() for _, draw in drawings(args, result)]
    return tell(args, report_of(result), *written)


# --- compare ----------------------------------------------------------------


@checked()
class Comparing:
    """Two runs, and how they are set beside each other."""

    first: str
    """Result (.nc) or table (.csv)."""
    second: str
    """The same, or a log (.mcap, .db3, .bag)."""
    shift: Annotated[float, finite("s")] = 0.0
    """Time of the first at which the second begins."""
    plot: Annotated[Path | None, Written(picture=True)] = None
    """Both over time (.png)."""


@command("compare", "drakebots compare plan.nc log.mcap", Comparing)
def compare_runs(args: argparse.Namespace) -> int:
    """Compare a run with a log of it or with a run: differences in SI."""
    how = chosen(args, Comparing)
    runs = [stored(x) if names_result(x) else x for x in (how.first, how.second)]
    compared = identify.compare(*runs, shift=how.shift)
    rows = [signal.row() for signal in compared]
    print_rows(f"{args.second} less {args.first}", rows)
    written = [] if args.plot is None else [identify.plot_compared(compared, args.plot)]
    return tell(args, {"signals": rows}, *written)


# --- completion -------------------------------------------------------------

_SCRIPT = """\
_drakebots() {
    local IFS=$'\\n' words=("${COMP_WORDS[@]:1:COMP_CWORD}")
    COMPREPLY=($(drakebots completion --words "${words[@]}" 2>/dev/null))
}
complete -o default -F _drakebots drakebots
"""
"""Completion script of bash; it completes names of files where the command has none."""


_SHELLS = ("bash", "zsh")


def _completion_arguments(parser: argparse.ArgumentParser) -> None:
    shell = parser.add_argument("shell", nargs="?", default="bash", help="bash or zsh")
    completes(shell, _SHELLS)
    parser.add_argument(
        "--words", nargs=argparse.REMAINDER, help="a begun command line to complete"
    )


@command("completion", "drakebots completion bash", _completion_arguments)
def print_completion(args: argparse.Namespace) -> int:
    """Let a shell complete commands: eval "$(drakebots completion bash)"."""
    if args.words is not None:
        print("\n".join(complete(args.words)))
        return 0
    check_names("shell", [args.shell], _SHELLS)
    if args.shell == "zsh":
        print("autoload -U +X bashcompinit && bashcompinit")
    print(_SCRIPT, end="")
    return 0


# --- schema -----------------------------------------------------------------


def schemas() -> dict[str, dict[str, Any]]:
    """The JSON Schema of each of our YAML formats, by name."""
    found = {"scenario": scenario_schema()}
    for name, said in read_yaml(Path(__file__).with_name("schemas.yaml")).items():
        defs = schema(*map(resolve, said.pop("of", ())))["$defs"]
        base = defs.get(said.pop("base", ""), {"properties": {}})
        properties = base["properties"] | said["properties"]
        if (quantities := said.pop("quantities", None)) is not None:
            for each in defs[quantities]["properties"].values():
                if "unit" in each:
                    each |= {"type": "object", "$ref": "#/$defs/quantity"}
                    each.pop("items", None)
        defs |= said.pop("$defs", {})
        found[name] = base | said | {"properties": properties, "$defs": defs}
    return found


def _schema_arguments(parser: argparse.ArgumentParser) -> None:
    text = "folder to write NAME.json into (default schemas)"
    parser.add_argument("folder", nargs="?", type=Path, default="schemas", help=text)


@command("schema", "drakebots schema schemas", _schema_arguments)
def write_schemas(args: argparse.Namespace) -> int:
    """Write JSON Schemas, by which editors complete and check our YAML files."""
    folder = make_folder(args.folder)
    texts = {
        check_output(folder / f"{name}.json"): json.dumps(said, indent=1) + "\n"
        for name, said in schemas().items()
    }
    for path, text in texts.items():
        write_text(path, text)
    print("first line of a YAML file: # yaml-language-server: $schema=PATH")
    return tell(args, {"schemas": list(map(str, texts))}, *texts)
