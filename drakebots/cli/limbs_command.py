"""`drakebots limbs`: soft limbs on any robot; parsing only."""

from __future__ import annotations

import argparse
from pathlib import Path

from drakebots.cli.command import Command
from drakebots.cli.options import output_argument
from drakebots.cli.output import print_table
from drakebots.cli.run import tell
from drakebots.multibody.limbs import read_limbs, write_limbs


def _arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("robot", help="a URDF, SDF or MJCF")
    parser.add_argument("limbs", type=Path, help="limbs and their links (.yaml)")
    output_argument(
        parser,
        *("-o", "--output"),
        required=True,
        help="robot with limbs (.dmd.yaml)",
    )


def _run(args: argparse.Namespace) -> int:
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
    facts = {"robot": str(path), "limbs": [limb.name for limb in limbs]}
    return tell(args, facts, path)


LIMBS = Command(
    "limbs",
    "put soft, actuated limbs on any robot",
    "drakebots limbs robot.urdf limbs.yaml -o soft.dmd.yaml",
    _arguments,
    _run,
)
