"""Writes the robot of a USD stage, as Isaac Sim keeps them, as an MJCF to load.

    pip install usd-core
    python scripts/tools/usd_to_mjcf.py my_robot.usda -o my_robot.xml
    drakebots plan my_robot.xml --forward 0.3 -o walk.nc

UsdPhysics keeps bodies and joints apart: bodies lie anywhere on the stage, and each
joint names two of them, with its frame in each. The bodies are hung on one another by
joints, from the world or the root of an articulation on; joints that would close a loop
become equalities. The reference configuration is that of the joints' frames; how the
bodies lie on the stage is the key "stage". Masses that are not stated are those of
shapes. What has no counterpart is counted at the end.

Source: the schema of UsdPhysics, openusd.org/release/api/usd_physics_page_front.html.
"""

from __future__ import annotations

import argparse
import sys
import warnings
import xml.etree.ElementTree as ET
from collections.abc import Sequence
from pathlib import Path

import trimesh
from usd_robot.bodies import Bodies
from usd_robot.stage import MAX_PARTS, Stage, usd_of

from drakebots.cli.output import one_line_errors
from drakebots.core.errors import FileProblem, ModelProblem, one_line
from drakebots.core.files import replacing, write_text


def write_mjcf(path: Path, output: Path) -> list[str]:
    """Writes the MJCF of a USD stage, its meshes into a folder beside it.

    Args:
        path: the stage.
        output: file to write (.xml); the folder has its name.

    Returns:
        Notes on what is not in it.

    Raises:
        InvalidInput: without the package `usd-core`.
        ModelProblem: for a file that is none of USD, that holds no rigid body or more
            than models have, and for what MuJoCo refuses.
        FileProblem: for another ending, or a file that cannot be written.
    """
    if output.suffix.lower() != ".xml":
        raise FileProblem(output, "the ending of an MJCF is .xml")
    with usd_of(path) as pxr, warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        stage = Stage(path, pxr)
        if not stage.rigid:
            raise ModelProblem(path, "has no rigid body (PhysicsRigidBodyAPI)")
        if len(stage.rigid) > MAX_PARTS:
            raise ModelProblem(path, f"has more than {MAX_PARTS} bodies; split it")
        pose = Bodies(stage).pose
        stage.add_shapes()
        stage.add_masses()
        model, spec = stage.compiled(), stage.spec
        default = stage.stage.GetDefaultPrim()
        spec.modelname = default.GetName() if default else path.stem
        if any(abs(q) > 1e-4 for q in pose.values()):
            qpos = model.qpos0.copy()
            for name, q in pose.items():
                qpos[model.joint(name).qposadr] = q
            spec.add_key(name="stage", qpos=qpos)
            stage.compiled()
        root = ET.fromstring(spec.to_xml())
    folder = output.with_suffix("")
    for mesh in root.iter("mesh"):
        name, kind = mesh.get("name"), mesh.get("inertia", "legacy")
        file = f"{folder.name}/{name}.stl"
        mesh.attrib = {"name": name, "inertia": kind, "file": file}
        try:
            folder.mkdir(exist_ok=True)
        except OSError as error:
            raise FileProblem(folder, f"cannot be a folder: {error}") from error
        solid = trimesh.Trimesh(*stage.meshes[name], process=False)
        with replacing(folder / f"{name}.stl") as part:
            solid.export(part, file_type="stl")
    write_text(output, ET.tostring(root, encoding="unicode"))
    notes = [f"a file that it refers to is not found: {file}" for file in stage.lost]
    notes += [f"left out: {n} x {what}" for what, n in stage.left_out.items() if n]
    return [*notes, *(f"MuJoCo says: {one_line(warning.message)}" for warning in said)]


def main(argv: Sequence[str] | None = None) -> int:
    """Runs the command; returns its exit code."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("stage", type=Path, help="a .usd, .usda, .usdc or .usdz")
    parser.add_argument("-o", "--output", type=Path, required=True, help="an .xml")
    args = parser.parse_args(argv)
    with one_line_errors(parser.prog):
        notes = write_mjcf(args.stage, args.output)
    print("\n".join([*notes, str(args.output)]))
    return 0


if __name__ == "__main__":
    sys.exit(main())
