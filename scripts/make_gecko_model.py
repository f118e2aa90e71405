"""Writes models/gecko (SDF, its YAML, its scene) from params.yaml, or checks it.

python scripts/make_gecko_model.py            # write
python scripts/make_gecko_model.py --check    # exit 1 if a file would change
python scripts/make_gecko_model.py --size large --sdf large.sdf   # another robot
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import yaml
from made_files import made_files

from drakebots.core.errors import DrakebotsError
from drakebots.model import package_root
from drakebots.robots.gecko.model import (
    FEET,
    FRONT,
    REAR,
    Gecko,
    gait_law,
    gecko,
    gecko_limbs,
    gecko_sdf,
)


def texts(folder: Path) -> dict[Path, str]:
    """Contents of the made files, by path."""
    return {
        folder / "gecko.sdf": gecko_sdf(gecko()),
        folder / "gecko.drakebots.yaml": gecko_sidecar(),
        folder / "scene.dmd.yaml": gecko_scene(),
    }


def gecko_sidecar() -> str:
    """The text of `gecko.drakebots.yaml`: the feet and the torso's ends."""
    feet = {foot: {"body": f"{foot}_tip", "p": [0, 0, 0]} for foot in FEET}
    ends = {"front": FRONT, "rear": REAR}
    ends = {name: {"body": body, "p": [0, 0, 0]} for name, body in ends.items()}
    text = yaml.safe_dump(
        {"feet": feet, "points": ends}, sort_keys=False, default_flow_style=None
    )
    return "# Written by scripts/make_gecko_model.py from params.yaml; SI.\n" + text


def gecko_scene(q1: float = np.radians(60.0)) -> str:
    """The text of `scene.dmd.yaml`: the robot in a pose of a straight gait.

    Args:
        q1: step length, the torso's bending angle [rad].
    """
    alpha = gait_law(q1, 0.0)
    lines = [
        "# Written by scripts/make_gecko_model.py; SI. The gecko on a floor, in a pose"
        " of a straight gait.",
        "# No contact: the robot slides on its plane. Its suction feet are added by"
        " drakebots/robots/gecko/engines.",
        "directives:",
        "- add_model:",
        "    name: gecko",
        "    file: package://drakebots/gecko/gecko.sdf",
        "    default_joint_positions:",
    ]
    for limb, angle in zip(gecko_limbs(Gecko()), alpha):
        for joint, share in zip(limb.joints, limb.weights):
            lines.append(f"      {joint}: [{share * angle:.6g}]")
    lines += [
        "- add_model:",
        "    name: floor",
        "    file: package://drakebots/gecko/floor.sdf",
    ]
    return "\n".join(lines) + "\n"


def main(argv: Sequence[str] | None = None) -> int:
    """Runs the command; returns its exit code."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--check", action="store_true", help="write nothing")
    parser.add_argument("--size", default="small", help="for --sdf")
    parser.add_argument("--segments", type=int, default=None, help="for --sdf")
    parser.add_argument("--sdf", type=Path, default=None, help="write only this SDF")
    args = parser.parse_args(argv)
    try:
        if args.sdf is not None:
            files = {args.sdf: gecko_sdf(gecko(args.size), args.segments)}
        else:
            files = texts(package_root() / "gecko")
        return made_files(files, check=args.check)
    except DrakebotsError as error:
        print(f"error: {error}", file=sys.stderr)
        return error.exit_code


if __name__ == "__main__":
    sys.exit(main())
