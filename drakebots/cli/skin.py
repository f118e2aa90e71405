"""`drakebots show MODEL` with a skin, `drakebots attach`: parsing only."""

from __future__ import annotations

import argparse
import os
from dataclasses import field
from pathlib import Path
from typing import Annotated

from drakebots.cli import command, variant
from drakebots.cli.options import chosen
from drakebots.cli.output import model_table, print_table, tell
from drakebots.core.checks import known, one_of
from drakebots.core.convert import field_words
from drakebots.core.errors import FileProblem, InvalidInput
from drakebots.core.fields import checked
from drakebots.core.files import check_output, with_ending
from drakebots.fem.material import SILICONE, Material
from drakebots.formats import load
from drakebots.model import skin_path
from drakebots.skin.file import (
    UNITS,
    Attachment,
    GlueRadius,
    attach,
    load_skinned,
    write_skin,
)

# --- show -------------------------------------------------------------------


def _show_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("model", help="a skeleton with a .skin.yaml beside")


@variant("drakebots show skinned_leg --json", _show_arguments)
def show_skin(args: argparse.Namespace) -> int:
    """Check a robot and its skin and say what they contain."""
    robot = load_skinned(args.model)
    model, skin = robot.model, robot.report()
    print_table(model.name, model_table(model))
    print_table("skin", skin)
    # The mass is that of skeleton and skin.
    return tell(args, model.report() | skin)


# --- attach -----------------------------------------------------------------


@checked()
class Attaching:
    """What skin is attached to what, and how."""

    skeleton: str
    """Name of a model, or a URDF, SDF, MJCF, dmd.yaml."""
    skin: str
    """Tets (.vtk, .vtu, .msh, .mesh)."""
    glue: str = field(kw_only=True)
    """Glue what lies so near a link's collision geometry, e.g. radius=5mm."""
    output: Path | None = None
    """File of the skin; by default beside the skeleton (.skin.yaml)."""
    units: Annotated[str | None, one_of("unit", UNITS)] = None
    """Units of the skin: m, cm or mm; m by default."""
    between: Annotated[str, known(("refuse", "nearest", "leave"))] = "refuse"
    """Choice for a vertex near two links: refuse, nearest or leave."""
    material: Material = SILICONE
    """Material of the skin."""


@command(
    "attach",
    "drakebots attach robot.urdf skin.vtk --glue radius=5mm --between leave",
    Attaching,
)
def attach_skin(args: argparse.Namespace) -> int:
    """Glue an elastic skin to a skeleton, check both and write a .skin.yaml."""
    how = chosen(args, Attaching)
    if "radius" not in args.glue:
        raise InvalidInput(f"--glue: {args.glue!r} is none; write radius=5mm, say")
    given = field_words(GlueRadius, args.glue, "--glue")
    glue = GlueRadius(**{"between": how.between} | given)
    out = args.output
    if out is None:
        out = skin_path(load(args.skeleton).path)
        if os.path.exists(out):
            raise FileProblem(out, "is there already; name another file with -o")
    check_output(with_ending(out, [".skin.yaml"]))
    found = attach(
        args.skeleton, args.skin, glue, material=how.material, unit=how.units, path=out
    )
    write_skin(out, found.description_for(out))
    name = found.robot.model.name
    print_table(f"{name} in {Path(args.skin).name}", attach_table(found))
    return tell(args, found.report() | {"skin": str(out)}, out)


def attach_table(found: Attachment) -> dict[str, object]:
    """Table that `drakebots attach` prints."""
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
