"""Writes models/skinned_leg (SDF, YAML, mesh) from params.yaml, or checks it.

python scripts/make_skinned_leg.py            # write
python scripts/make_skinned_leg.py --check    # exit 1 if a file would change
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from made_files import made_files

from drakebots.core.errors import DrakebotsError
from drakebots.fem.material import SILICONE
from drakebots.fem.mesh import TetMesh, prism_tets, read_mesh, write_mesh
from drakebots.formats import (
    SdfGeometry,
    SdfJoint,
    SdfLink,
    SdfModel,
    SdfPose,
    model_sdf,
)
from drakebots.model import Parameters, package_root
from drakebots.skin.file import GlueRadius, ServoGains, SkinDescription, write_skin

FOLDER = package_root() / "skinned_leg"
MADE = "Written by scripts/make_skinned_leg.py from params.yaml; SI."
_GREY, _BLUE = np.array([0.55, 0.57, 0.60, 1.0]), np.array([0.20, 0.33, 0.50, 1.0])


def parameters() -> dict:
    """The entries of params.yaml in SI, by name."""
    given = Parameters(FOLDER)
    return {
        name: given.table(name)
        if isinstance(entry["value"], dict)
        else given.number(name)
        for name, entry in given.raw.items()
        if isinstance(entry, dict)
    }


def tube_mesh(p: dict) -> TetMesh:
    """The skin: a tube along z, open at the top, closed by a half sphere below.

    Region 1 is the knee's fold, region 0 the rest.
    """
    skin, height = p["skin"], p["height"]
    R, t, top = skin["radius"], skin["thickness"], height["skin_top"]
    n = 4 * round(skin["around"] / 4)
    edge = 2 * np.pi * R / n
    rows = round((top - R) / (edge * np.sqrt(3) / 2))
    quarter = n // 4
    angles = [k * np.pi / (2 * quarter) for k in range(quarter, -1, -1)]
    rings = [(n, np.pi / 2, z) for z in np.linspace(top, R, rows + 1)]
    sizes = [4 * k or 1 for k in range(quarter - 1, -1, -1)]
    rings += [(size, angle, R) for size, angle in zip(sizes, angles[1:])]
    points, inward, triangles, start = [], [], [], 0
    for row, (m, polar, z) in enumerate(rings):
        # Every other row of the tube is turned by half an edge.
        turn = 2 * np.pi * (np.arange(m) + 0.5 * (row % 2) * (m == n)) / m
        out = np.stack(
            [
                np.sin(polar) * np.cos(turn),
                np.sin(polar) * np.sin(turn),
                np.full(m, -np.cos(polar)),
            ],
            axis=1,
        )
        points.append(R * out + [0, 0, z])
        inward.append(-out)
        if row:
            above = rings[row - 1][0]
            triangles += _strip(start - above, points[-2], start, points[-1])
        start += m
    outer = np.concatenate(points)
    wall = np.concatenate([outer, outer + t * np.concatenate(inward)])
    mesh = TetMesh(wall, prism_tets(np.array(triangles), len(outer), 1))
    middle = mesh.vertices[mesh.tets].mean(axis=1)[:, 2]
    fold = np.abs(middle - height["knee"]) < skin["fold"] / 2
    return TetMesh(mesh.vertices, mesh.tets, fold.astype(int))


def _strip(upper, above, lower, below):
    """Triangles, outward, between a ring and the one below it.

    Args:
        upper, lower: index of each ring's first vertex.
        above, below: their points (n, 3), counterclockwise.
    """
    n, m = len(above), len(below)
    angle = [np.unwrap(np.arctan2(ring[:, 1], ring[:, 0])) for ring in (above, below)]
    if m == 1:
        return [(upper + i, lower, upper + (i + 1) % n) for i in range(n)]
    ends = [np.append(a, a[0] + 2 * np.pi) for a in angle]
    out, i, j = [], 0, 0
    while i < n or j < m:
        a, b = upper + i % n, lower + j % m
        # The ring whose next vertex comes first around the circle goes on.
        if j == m or (i < n and ends[0][i + 1] <= ends[1][j + 1] + 1e-9):
            out.append((a, b, upper + (i + 1) % n))
            i += 1
        else:
            out.append((a, b, lower + (j + 1) % m))
            j += 1
    return out


def _capsule(name, low, high, radius, color):
    values = {"radius": radius, "length": high - low - 2 * radius}
    pose = SdfPose(np.array([0, 0, (low + high) / 2]))
    return _both(name, pose, "capsule", values, color)


def _both(name, pose, shape, values, color):
    return [
        SdfGeometry(
            kind, name, pose, shape, values, color if kind == "visual" else None
        )
        for kind in ("visual", "collision")
    ]


def _link(name, origin, low, high, mass, p, extra):
    """A link from height low to high, its origin at a joint's height."""
    bone, mount = p["bone"]["radius"], p["mount"]
    length, r = high - low, p["bone"]["inertia_radius"]
    middle = (low + high) / 2 - origin
    across = mass * (length**2 / 12 + r**2 / 4)
    shapes = _capsule("bone", low - origin, high - origin, bone, _BLUE)
    at = p["height"][f"{name}_mount"] - origin
    disc = {"radius": mount["radius"], "length": mount["thickness"]}
    shapes += _both("mount", SdfPose(np.array([0, 0, at])), "cylinder", disc, _GREY)
    inertia = np.diag([across, across, mass * r**2 / 2])
    return SdfLink(
        name,
        mass,
        SdfPose(np.array([0, 0, middle])),
        inertia,
        shapes + extra,
        SdfPose(np.array([0, 0, origin])),
    )


def leg_sdf(p: dict) -> str:
    """The skeleton's SDF text."""
    h, mass, bone = p["height"], p["mass"], p["bone"]["radius"]
    size = p["base_size"]
    box = [size["x"], size["y"], size["z"]]
    cube = mass["base"] / 12 * (np.sum(np.square(box)) - np.square(box))
    # The hip's servo sits in the base, above the hip.
    base = SdfLink(
        "base",
        mass["base"],
        SdfPose(),
        np.diag(cube),
        _both("box", SdfPose(), "box", {"size": box}, _GREY),
        SdfPose(np.array([0, 0, h["hip"] + box[2] / 2 + bone])),
    )
    sphere = {"radius": p["foot_radius"]}
    at = SdfPose(np.array([0, 0, p["skin"]["radius"] - h["knee"]]))
    foot = _both("foot", at, "sphere", sphere, _BLUE)
    gap = p["bone"]["gap"]
    links = [
        base,
        _link("thigh", h["hip"], h["knee"] + gap, h["hip"], mass["thigh"], p, []),
        _link(
            "shin",
            h["knee"],
            p["skin"]["radius"],
            h["knee"] - gap,
            mass["shin"],
            p,
            foot,
        ),
    ]
    y, servo = np.array([0.0, 1.0, 0.0]), p["servo"]
    joints = [SdfJoint("weld", "fixed", "world", "base", y)]
    for name, parent, child in (("hip", "base", "thigh"), ("knee", "thigh", "shin")):
        limit = {
            "lower": -servo["range"],
            "upper": servo["range"],
            "effort": servo["torque"],
            "velocity": servo["speed"],
        }
        joints.append(
            SdfJoint(
                name,
                "revolute",
                parent,
                child,
                y,
                damping=servo["friction"],
                limit=limit,
                actuated=True,
            )
        )
    model = SdfModel(
        "skinned_leg",
        {link.name: link for link in links},
        {joint.name: joint for joint in joints},
    )
    text = model_sdf(model)
    head, rest = text.split("\n", 1)
    return f"{head}\n<!-- {MADE} -->\n{rest}"


def sidecar(p: dict) -> str:
    """The text of skinned_leg.drakebots.yaml."""
    radius = p["skin"]["radius"]
    z = radius - p["height"]["knee"]
    return (
        f"# {MADE}\nfeet:\n  foot: {{body: shin, p: [0, 0, {z:.6g}], "
        f"radius: {radius:.6g}}}\n"
    )


def scene() -> str:
    """The text of scene.dmd.yaml: the leg, bent."""
    return (
        f"# {MADE} The skeleton with its hip and knee bent; the skin is no part "
        "of it.\n"
        "directives:\n- add_model:\n    name: skinned_leg\n"
        "    file: package://drakebots/skinned_leg/skinned_leg.sdf\n"
        "    default_joint_positions:\n      hip: [0.3]\n      knee: [-0.5]\n"
    )


def description(p: dict) -> SkinDescription:
    """The contents of skinned_leg.skin.yaml."""
    servo = p["servo"]
    return SkinDescription(
        mesh="skinned_leg.vtu",
        material=SILICONE,
        glue=GlueRadius(p["glue_radius"]),
        servos=ServoGains(servo["stiffness"], servo["damping"]),
    )


def texts() -> dict[Path, str]:
    """Contents of the made text files, by path."""
    p = parameters()
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "skinned_leg.skin.yaml"
        write_skin(path, description(p))
        skin = path.read_text()
    return {
        FOLDER / "skinned_leg.sdf": leg_sdf(p),
        FOLDER / "skinned_leg.drakebots.yaml": sidecar(p),
        FOLDER / "scene.dmd.yaml": scene(),
        FOLDER / "skinned_leg.skin.yaml": skin,
    }


def same_mesh(path: Path, mesh: TetMesh) -> bool:
    """Whether a file holds this mesh; its bytes may differ by zlib's version."""
    if not path.is_file():
        return False
    held = read_mesh(path)
    return (
        np.array_equal(held.tets, mesh.tets)
        and np.array_equal(held.region, mesh.region)
        and np.allclose(held.vertices, mesh.vertices, rtol=0, atol=1e-12)
    )


def main(argv: Sequence[str] | None = None) -> int:
    """Runs the command; returns its exit code."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--check", action="store_true", help="write nothing")
    args = parser.parse_args(argv)
    try:
        code = made_files(texts(), check=args.check)
        path, mesh = FOLDER / "skinned_leg.vtu", tube_mesh(parameters())
        if not same_mesh(path, mesh):
            print(("differs: " if args.check else "writing: ") + str(path))
            code = 1 if args.check else code
            if not args.check:
                write_mesh(path, mesh)
        return code
    except DrakebotsError as error:
        print(f"error: {error}", file=sys.stderr)
        return error.exit_code


if __name__ == "__main__":
    sys.exit(main())
