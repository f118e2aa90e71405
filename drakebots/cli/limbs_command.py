"""`drakebots limbs`: soft limbs on any robot; parsing only."""

from __future__ import annotations

import argparse
from pathlib import Path

from drakebots.cli.command import Command
from drakebots.cli.output import print_json, print_table
from drakebots.multibody.limbs import read_limbs, write_limbs
from drakebots.results import check_output


def _arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("robot", help="a URDF, SDF or MJCF")
    parser.add_argument("limbs", type=Path, help="limbs and their links (.yaml)")
    parser.add_argument(
        "-o", "--output", type=Path, required=True, help="robot with limbs (.dmd.yaml)"
    )


def _run(args: argparse.Namespace) -> int:
    check_output(args.output)
    limbs = read_limbs(args.limbs)
    path = write_limbs(args.robot, limbs, args.output)
    print_table(
        "limbs",
        {
            limb.name: f"on {limb.parent}, {limb.length:.4g} m, "
            f"{limb.stiffness:.3g} N m/rad, {limb.segments} segments"
            for limb in limbs
        },
    )
    print(path)
    if args.json:
        print_json({"robot": str(path), "limbs": [limb.name for limb in limbs]})
    return 0


LIMBS = Command(
    "limbs",
    "put soft, actuated limbs on any robot",
    "drakebots limbs robot.urdf limbs.yaml -o soft.dmd.yaml",
    _arguments,
    _run,
)
