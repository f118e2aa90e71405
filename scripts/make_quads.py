"""Designs the four robots of Table 1 into models/, and compares them with the paper.

python scripts/make_quads.py                 # all four
python scripts/make_quads.py beetle cow
python scripts/make_quads.py --table         # compare the models as they are
python scripts/make_quads.py --masses        # what their masses are made of
python scripts/make_quads.py --pictures      # draw and describe them as they are
"""

from __future__ import annotations

import argparse
import sys
import textwrap
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import trimesh
import yaml
from made_files import with_schema

from drakebots.cli.output import one_line_errors
from drakebots.cli.progress import progress_bar
from drakebots.core.files import replacing
from drakebots.design import (
    JOINTS,
    design_robot,
    draw_mesh,
    table1_problem,
    table1_template,
    write_design,
)
from drakebots.design.pipeline import SEEN
from drakebots.design.skin import SOFT, in_folds
from drakebots.design.table1 import GLUE, MASSES, SIZES, VERTICES, WEIGHTS
from drakebots.fem.material import SILICONE
from drakebots.fem.mesh import (
    surface_triangles,
)
from drakebots.model import package_root
from drakebots.skin.file import load_skinned, read_skin


def rows(names: Sequence[str]) -> list[str]:
    """A table of the models beside the paper's Table 1, in Markdown."""
    lines = [
        "| robot | joints | skin vertices | glue | size [cm] | skeleton + skin [kg] "
        "| robot [kg] |",
        "| --- | --- | --- | --- | --- | --- | --- |",
    ]
    for name in names:
        robot = load_skinned(name).report()
        size = " x ".join(f"{100 * s:.1f}" for s in robot["size_m"])
        size += _horn(name)
        printed = " x ".join(f"{100 * s:.1f}" for s in SIZES[name])
        parts = " + ".join(f"{m:.2f}" for m in MASSES.get(name, ()))
        lines.append(
            f"| {name} | {robot['joints']} ({JOINTS[name]}) "
            f"| {robot['skin_vertices']} ({VERTICES[name]}) "
            f"| {robot['glue_vertices']} ({GLUE[name]}) | {size} ({printed}) "
            f"| {robot['skeleton_mass_kg']:.2f} + {robot['skin_mass_kg']:.2f} "
            f"{f'({parts}) ' * bool(parts)}| {robot['mass_kg']:.2f} ({WEIGHTS[name]}) |"
        )
    return lines


def _horn(name: str) -> str:
    """Text on a robot whose height is that of a horn: its height without."""
    if name != "beetle":
        return ""
    x = load_skinned(name).mesh.vertices
    return f" with its horn, {100 * x[np.abs(x[:, 0]) < 0.1, 2].max():.1f} without"


def masses(names: Sequence[str]) -> list[str]:
    """A table of what the models' masses are made of, in Markdown.

    Volumes of the skin are those of the mesh: feet are what is below
    24 mm, where the wall is 8 mm thick.
    """
    columns = {name: _masses(name) for name in names}
    lines = ["| [kg] | " + " | ".join(names) + " |", "| --- " * (len(names) + 1) + "|"]
    for row in columns[names[0]]:
        lines.append(
            "| " + " | ".join([row, *(c[row] for c in columns.values())]) + " |"
        )
    return lines


def _masses(name: str) -> dict[str, str]:
    robot, template = load_skinned(name), table1_template(name)
    skeleton = template.skeleton()
    solids = [solid for link in skeleton.links for solid in link.solids]
    servos = [solid.mass for solid in solids if solid.kind == "servo"]
    payload = sum(solid.mass for solid in solids if solid.kind == "payload")
    files = (package_root() / name / "meshes").glob("*_plates.obj")
    plates = sum(trimesh.load(file, process=False).volume for file in files)
    plates *= template.build.density
    printed = robot.report()["skeleton_mass_kg"] - sum(servos) - payload - plates
    mesh, material = robot.mesh, robot.skin.material
    low = mesh.vertices[mesh.tets].mean(axis=1)[:, 2] < 0.024
    folds = in_folds(mesh) & ~low
    parts = [material.density * mesh.volumes[k].sum() for k in (folds, low)]
    skin = material.density * mesh.volumes.sum()
    outside = surface_triangles(mesh)
    a, b, c = (mesh.vertices[outside[:, k]] for k in range(3))
    # The boundary is the outside and the inside of the wall.
    area = np.linalg.norm(np.cross(b - a, c - a), axis=1).sum() / 4
    paper = [f" ({m:.2f})" for m in MASSES.get(name, ())] or ["", ""]
    return {
        "servos": f"{len(servos)} x {servos[0]:.3f}",
        "battery, board": f"{payload:.2f}",
        "printed links": f"{printed:.2f}",
        "bracing plates": f"{plates:.2f}",
        "**skeleton** (paper)": f"{robot.report()['skeleton_mass_kg']:.2f}{paper[0]}",
        "skin without folds and feet": f"{skin - sum(parts):.2f}",
        "folds": f"{parts[0]:.2f}",
        "feet": f"{parts[1]:.2f}",
        "**skin** (paper)": f"{skin:.2f}{paper[1]}",
        "**robot** (paper)": f"{robot.report()['mass_kg']:.2f} ({WEIGHTS[name]})",
        "area of the skin [m^2]": f"{area:.2f}",
    }


WHAT = {
    "beetle": "a low dome on four bent legs, with a horn",
    "monster": "tall and bulky, with a heavy head, a belly and a tail of softer skin",
    "lizard": "long and sprawling, with a raised head and a tail on a joint of its own",
    "cow": "a barrel on straight legs, with horns, ears and a tail",
}


def readme(name: str) -> str:
    """The model's README, from its params.yaml."""
    raw = yaml.safe_load((package_root() / name / "params.yaml").read_text())
    report, skin, servo = (
        raw["measured"],
        raw["skin"],
        raw["template"]["build"]["servo"],
    )
    size = " x ".join(f"{100 * s:.1f}" for s in report["size_m"]) + _horn(name)
    printed = " x ".join(f"{100 * s:.1f}" for s in SIZES[name])
    wall = "/".join(f"{1e3 * w:.2f}" for w in report["wall_m"])
    masses = f"{report['skeleton_mass_kg']:.2f} + {report['skin_mass_kg']:.2f}"
    material, teeth = skin["material"], skin["folds"]
    thick = report["plate_thickness_m"][0]
    printed_masses = (
        "{:.2f} + {:.2f}".format(*MASSES[name])
        if name in MASSES
        else f"together {WEIGHTS[name]}"
    )
    of_skin = read_skin(package_root() / name / f"{name}.skin.yaml").regions
    moduli = {
        k: material.youngs_modulus / SILICONE.youngs_modulus
        for k, material in of_skin.items()
        if k < SOFT
    }
    low, high = min(moduli.values()), max(moduli.values())
    notes = "".join(
        "\n"
        + textwrap.fill(f"* {note[0].upper()}{note[1:]}.", 88, subsequent_indent="  ")
        for note in report["notes"]
    )
    limits = "".join(
        f"\n* `{row['part']}` passes the skin's inside by "
        f"{1e3 * row['inner_depth_m']:.1f} mm, {1e6 * row['inner_volume_m3']:.2f} cm^3 "
        "(docs/evidence/design.md)."
        for row in report["through_skin"]
        if row["inner_depth_m"] > SEEN
    )
    text = f"""# {name.capitalize()}

<p float="left">
  <img src="{name}.png" width="800" alt="The {name} in its skin">
</p>

## What it is

A skinned quad-robot after Table 1 of "Computational Design of Skinned Quad-Robots":
{WHAT[name]}. The body is drawn by formula around the skeleton
(`drakebots/design/table1.py`), after the paper's dimensions and pictures; no data
of the paper's robots is public.

| | here | paper |
|---|---|---|
| joints | {report["joints"]} | {JOINTS[name]} |
| skin vertices | {report["skin_vertices"]} | {VERTICES[name]} |
| glue vertices | {report["glue_vertices"]} | {GLUE[name]} |
| size [cm] | {size} | {printed} |
| skeleton + skin [kg] | {masses} | {printed_masses} |

Servos: {servo["name"]}, {servo["effort"]:g} N m. Skin: {report["skin_tets"]} tets,
wall {wall} mm (percentiles 1/50/99), Young's modulus
{material["youngs_modulus"] / 1e6:g} MPa, Poisson's ratio {material["poisson_ratio"]:g}.

* All robots have the same silicone, {material["density"]:g} kg/m^3, and a wall of
  {1e3 * skin["wall"]:g} mm; the masses follow from these (docs/evidence/design.md).
* Folds (regions 1 to {max(moduli)}): {teeth["teeth"]} teeth,
  {1e3 * teeth["depth"]:g} mm deep, at every joint. P1 tets lock, so those of folds have
  {low:.2f} to {high:.2f} of the silicone's modulus: that makes joints as stiff as they
  are with P2 tets and the full modulus (docs/design.md).{notes}

## Contents

| file | what |
|---|---|
| `{name}.sdf`, `{name}.drakebots.yaml` | the skeleton; five contact patches per foot |
| `meshes/` | bracing plates and trimmed parts of each link, for pictures |
| `skin.vtu`, `{name}.skin.yaml` | tets and regions; material, glue, servos, patches |
| `params.yaml` | every number of the design |
| `{name}.png` | the picture above |
| `scene.dmd.yaml` | the skeleton alone, for Drake's parser |

Made by `python scripts/make_quads.py {name}`. Try `drakebots show {name} --json` and
`drakebots simulate {name} --motion hold`.

## Known limits

* Shape and masses are ours, not the paper's.
* Bracing plates are flat, {1e3 * thick:.0f} mm thick; glue is within
  {1e3 * report["glue_to_plate_m"]:.1f} mm of them.
* The reflected inertia of the servos' gears is left out: no data sheet gives
  it.{limits}

## Licence

[BSD-3-Clause](../../LICENSE).
"""
    return text


def write_readme(name: str) -> None:
    """Writes the README of a model into its folder."""
    with replacing(package_root() / name / "README.md") as part:
        part.write_text(readme(name))


def main(argv: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument(
        "names", nargs="*", help=f"robots ({', '.join(JOINTS)}); all by default"
    )
    parser.add_argument(
        "--table",
        action="store_true",
        help="compare the models as they are, design nothing",
    )
    parser.add_argument(
        "--masses",
        action="store_true",
        help="say what the masses of the models are made of, design nothing",
    )
    parser.add_argument(
        "--pictures",
        action="store_true",
        help="write pictures and READMEs of the models as they are, design nothing",
    )
    args = parser.parse_args(argv)
    names = args.names or list(JOINTS)
    if args.masses:
        print(*masses(names), sep="\n")
        return 0
    if args.pictures:
        for name in names:
            draw_mesh(package_root() / name / f"{name}.png", load_skinned(name).mesh)
            write_readme(name)
        return 0
    if not args.table:
        for name in names:
            folder: Path = package_root() / name
            problem = table1_problem(name)
            with progress_bar(name) as bar:
                design = design_robot(problem, progress=bar)
            write_design(design, folder)
            for path in folder.glob("*.yaml"):
                path.write_text(with_schema(path, path.read_text()))
            write_readme(name)
            draw_mesh(folder / f"{name}.png", design.shell.mesh)
            print(folder, design.shell.report, *design.notes, sep="\n  ", flush=True)
    print(*rows(names), sep="\n")
    return 0


if __name__ == "__main__":
    with one_line_errors("make_quads"):
        sys.exit(main())
