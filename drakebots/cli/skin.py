"""`drakebots simulate MODEL`, `show MODEL` with a skin; `attach`: parsing only."""

from __future__ import annotations

import argparse
import os
from dataclasses import replace
from pathlib import Path

from drakebots.cli.command import Command, Variant
from drakebots.cli.inputs import length, skinned_argument
from drakebots.cli.options import (
    attribute_texts,
    choices_of,
    completes,
    field_options,
    given,
    option,
    output_arguments,
    quantity,
    switch,
)
from drakebots.cli.output import finish, model_table, print_table, tell
from drakebots.cli.progress import progress_bar
from drakebots.core.errors import FileProblem, InvalidInput
from drakebots.core.files import check_output
from drakebots.fem.material import SILICONE, Material
from drakebots.model import load, skin_path
from drakebots.multibody import build_robot
from drakebots.skin import MOTIONS, SkinSimulation, read_motion_file, simulate_skinned
from drakebots.skin.file import (
    UNITS,
    Attachment,
    GlueRadius,
    actuated_joints,
    attach,
    load_skinned,
    write_skin,
)

# --- simulate ---------------------------------------------------------------

_OFF = {
    "self_collision": "the skin passes through itself",
    "link_collision": "the skin passes through links",
    "ground": "no ground",
}
_SIMULATE = attribute_texts(SkinSimulation, but=("model", "motion", "material", *_OFF))


def _simulate_arguments(parser: argparse.ArgumentParser) -> None:
    skinned_argument(parser)
    motion = parser.add_argument(
        "--motion",
        default="sine",
        help=f"{', '.join(MOTIONS)}, or a table (.csv) of time and joints",
    )
    completes(motion, MOTIONS)
    kinds = choices_of(Material, "kind")
    text = f"kind, in place of the file's: {', '.join(kinds)}"
    completes(parser.add_argument("--material", help=text), kinds)
    field_options(parser, SkinSimulation, _SIMULATE)
    for name, text in _OFF.items():
        switch(parser, "--no-" + option(name)[2:], name, text, value=False)
    output_arguments(parser)


def _simulate(args: argparse.Namespace) -> int:
    options = given(args, ("material", *_SIMULATE, *_OFF))
    motion = args.motion
    if Path(motion).suffix:
        table = read_motion_file(motion)
        # Joints are known without the skin, which takes seconds to load.
        motion = table.motion(actuated_joints(build_robot(load(args.model)).plant))
    problem = SkinSimulation(model=args.model, motion=motion, **options)
    model = load(args.model)
    with progress_bar(model.name) as progress:
        result = simulate_skinned(problem, progress=progress)
    return finish(args, result, model)


SKIN_SIMULATE = Variant(
    "simulate a robot in an elastic skin whose servos follow a motion",
    "drakebots simulate skinned-leg --motion sine --duration 2 -o run.nc",
    _simulate_arguments,
    _simulate,
)

# --- show -------------------------------------------------------------------


def _show_arguments(parser: argparse.ArgumentParser) -> None:
    skinned_argument(parser)


def _show(args: argparse.Namespace) -> int:
    robot = load_skinned(args.model)
    model, skin = robot.model, robot.report()
    print_table(model.name, model_table(model))
    print_table("skin", skin)
    # The mass is that of skeleton and skin.
    return tell(args, model.report() | skin)


SKIN_SHOW = Variant(
    "check a robot and its skin and say what they contain",
    "drakebots show skinned_leg --json",
    _show_arguments,
    _show,
)

# --- attach -----------------------------------------------------------------


def _attach_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("skeleton", help="a name, or a URDF, SDF, MJCF, dmd.yaml")
    parser.add_argument("skin", help="tets (.vtk, .vtu, .msh, .mesh)")
    units = parser.add_argument("--units", help="of the skin: m, cm or mm (default m)")
    completes(units, UNITS)
    parser.add_argument(
        "--glue",
        required=True,
        metavar="radius=LENGTH",
        help="glue what lies so near a link's collision geometry, e.g. radius=5mm",
    )
    between = parser.add_argument(
        "--between",
        default="refuse",
        help="a vertex near two links: refuse, nearest or leave (default refuse)",
    )
    completes(between, ("refuse", "nearest", "leave"))
    for entry, text in (
        ("kind", "of the material, e.g. neo-hookean"),
        ("youngs_modulus", "[Pa]"),
        ("poisson_ratio", "below 0.5"),
        ("density", "[kg/m^3]"),
    ):
        flag = "--material" if entry == "kind" else option(entry)
        kind = str if entry == "kind" else quantity(flag, text)
        action = parser.add_argument(flag, dest=entry, type=kind, help=text)
        completes(action, choices_of(Material, "kind") if entry == "kind" else ())
    parser.add_argument(
        "-o", "--output", type=Path, help="default: beside the skeleton (.skin.yaml)"
    )


def glue_of(text: str, between: str) -> GlueRadius:
    """The glue of "radius=5mm".

    Raises:
        InvalidInput, UnknownName: when it is not written so.
    """
    name, equals, value = text.partition("=")
    if not equals or name.strip() != "radius":
        raise InvalidInput(f"--glue: {text!r} is none; write radius=5mm, say")
    return GlueRadius(length(value, "--glue radius"), between)


def _attach(args: argparse.Namespace) -> int:
    glue = glue_of(args.glue, args.between)
    material = replace(
        SILICONE, **given(args, ("kind", "youngs_modulus", "poisson_ratio", "density"))
    )
    out = args.output
    if out is None:
        out = skin_path(load(args.skeleton).path)
        if os.path.exists(out):
            raise FileProblem(out, "is there already; name another file with -o")
    elif not out.name.endswith(".skin.yaml"):
        raise FileProblem(out, "needs the ending .skin.yaml")
    check_output(out)
    found = attach(
        args.skeleton, args.skin, glue, material=material, unit=args.units, path=out
    )
    write_skin(out, found.description_for(out))
    print_table(
        f"{found.robot.model.name} in {Path(args.skin).name}", attach_table(found)
    )
    return tell(args, found.report() | {"skin": str(out)}, out)


def attach_table(found: Attachment) -> dict[str, object]:
    """What `drakebots attach` prints."""
    report = found.report()
    return {
        "mass [kg]": f"skin {report['skin_mass_kg']:.4g}, skeleton "
        f"{report['skeleton_mass_kg']:.4g}",
        "size [m]": f"skin {_sizes(report['size_m'])}, joints and links "
        f"{_sizes(report['skeleton_size_m'])}",
        "wall, edge [mm]": f"{1e3 * report['wall_m']:.3g}, "
        f"{1e3 * report['edge_m'][1]:.3g}",
        "glued vertices": report["glue_by_link"],
        "mesh": report["mesh_check"],
        "notes": "; ".join(report["mesh"]) or None,
        "locking": "; ".join(report["locking"]),
        "joints": report["joints"],
    }


def _sizes(values):
    return " x ".join(f"{value:.3g}" for value in values)


ATTACH = Command(
    "attach",
    Variant(
        "glue an elastic skin to a skeleton, check both and write a .skin.yaml",
        "drakebots attach robot.urdf skin.vtk --glue radius=5mm --between leave",
        _attach_arguments,
        _attach,
    ),
)
