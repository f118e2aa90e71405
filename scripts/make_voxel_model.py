"""Writes models/voxel (SDF, its YAML, its scene) from params.yaml, or checks it.

python scripts/make_voxel_model.py            # write
python scripts/make_voxel_model.py --check    # exit 1 if a file would change
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

import yaml
from made_files import made_files

from drakebots.core.errors import DrakebotsError
from drakebots.lattice.shape import save_lattice
from drakebots.model import package_root
from drakebots.robots.voxels.model import (
    MARKERS,
    Feet,
    Foot,
    Octahedra,
    rest_pose,
    walker,
    walker_sdf,
)

MADE = "Written by scripts/make_voxel_model.py from params.yaml; SI."


def octahedra_sidecar(
    cut: Octahedra, feet: Sequence[Foot], points: dict[str, tuple] | None = None
) -> str:
    """The YAML beside the SDF: feet, named nodes, and the loops that the SDF closes.

    Args:
        cut: the lattice.
        feet: its feet.
        points: places of nodes by name [half pitches].
    """

    def numbers(p):
        return [float(f"{v:.12g}") + 0.0 for v in p]

    lines: dict = {"feet": {}, "points": {}, "loops": {}}
    for foot in feet:
        voxel, p = foot.place(cut)
        lines["feet"][foot.name] = {
            "body": cut.names[voxel],
            "p": numbers(p),
            "radius": foot.radius,
        }
    for name, place in (points or {}).items():
        voxel, p = Foot(name, place).place(cut)
        lines["points"][name] = {"body": cut.names[voxel], "p": numbers(p)}
    for shared in cut.loops:
        lines["loops"][f"node_{shared.node}"] = {
            "A": cut.names[shared.A],
            "p_A": numbers(cut.in_body(shared.A, shared.node)),
            "B": cut.names[shared.B],
            "p_B": numbers(cut.in_body(shared.B, shared.node)),
            "rows": "ball",
            "in_file": True,
        }
    return yaml.safe_dump(lines, sort_keys=False, default_flow_style=None)


def sidecar() -> str:
    """The text of voxel.drakebots.yaml."""
    return f"# {MADE}\n{octahedra_sidecar(walker(), Feet().spheres(), MARKERS)}"


def scene() -> str:
    """The text of scene.dmd.yaml: the robot on the ground."""
    cut = walker()
    where = [float(f"{x:.12g}") for x in rest_pose() + cut.centres[0]]
    return f"""# {MADE}
# The robot stands on the ground; its actuators are no part of the file.
directives:
- add_model:
    name: voxel
    file: package://drakebots/voxel/voxel.sdf
    default_free_body_pose:
      {cut.names[0]}:
        translation: {where}
- add_model:
    name: ground
    file: package://drakebots/voxel/ground.sdf
- add_weld:
    parent: world
    child: ground::ground
"""


def lattice() -> str:
    """The text of lattice.json: the robot's voxels."""
    with TemporaryDirectory() as folder:
        return save_lattice(Path(folder) / "lattice.json", walker().lattice).read_text()


def texts(folder: Path) -> dict[Path, str]:
    """The contents of the generated files, by path."""
    return {
        folder / "voxel.sdf": walker_sdf(),
        folder / "voxel.drakebots.yaml": sidecar(),
        folder / "scene.dmd.yaml": scene(),
        folder / "lattice.json": lattice(),
    }


def main(argv: Sequence[str] | None = None) -> int:
    """Runs the command; returns its exit code."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--check", action="store_true", help="write nothing")
    args = parser.parse_args(argv)
    try:
        return made_files(texts(package_root() / "voxel"), check=args.check)
    except DrakebotsError as error:
        print(f"error: {error}", file=sys.stderr)
        return error.exit_code


if __name__ == "__main__":
    sys.exit(main())
