"""Torque that the skins of the quad-robots take from their motors, joint by joint.

python scripts/papers/quads/quad_resistance.py  # slopes at rest, all robots
python scripts/papers/quads/quad_resistance.py --quick
python scripts/papers/quads/quad_resistance.py cow --angles 15 20
python scripts/papers/quads/quad_resistance.py cow --second-order

For each joint of the left limbs a row in Markdown: the largest torque of the motor, the
slope at rest times 15 degrees, the static torques at each angle [N m].

JSON: beetle.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from skin_resistance import joint_resistance, limb_skin, rest_stiffness

from drakebots.cli.output import one_line_errors
from drakebots.core.errors import NoSolution
from drakebots.design import JOINTS
from drakebots.skin.file import load_skinned

sys.path.append(str(Path(__file__).parents[2] / "bench"))
from measurement import Measurement

SLOPE = 15.0
"""Angle by which the slope at rest is multiplied [degrees]."""


def measure(name: str, angles: Sequence[float], second_order: bool, joints=()) -> list:
    """Rows of one robot: joint, limit, slope, torques by signed angle [N m].

    Args:
        name: name of the robot, or path of its SDF.
        angles: angles to turn to, in both directions [degrees].
        second_order: whether all tets are P2 and folds have the plain skin's modulus.
        joints: parts of names of joints; all of left limbs and tail by default.
    """
    robot = load_skinned(name)
    made, rows = {}, []
    for k, joint in enumerate(robot.joints):
        limb = joint.split("_")[0]
        if limb in ("FR", "RR") or (joints and not any(j in joint for j in joints)):
            continue
        if limb not in made:
            options = {}
            if second_order:
                options = {"second_order": robot.mesh.regions, "modulus": 1.0}
            part = limb_skin(robot, joint, **options)
            made[limb] = part, rest_stiffness(part)
        part, slopes = made[limb]
        torques = both_directions(part, joint, angles)
        rows.append(
            {
                "joint": joint,
                "limit_N_m": float(robot.effort_limits[k]),
                "slope_N_m": float(slopes[k] * np.radians(SLOPE)),
                "torques_N_m": torques,
            }
        )
    return rows


def both_directions(robot, joint: str, angles: Sequence[float]) -> dict:
    """Static torques by signed angle [N m]; None beyond the last one that is found."""
    torques = {}
    for sign in (1, -1):
        found = []
        for count in range(len(angles), 0, -1):
            turn = sign * np.radians(angles[:count])
            try:
                found = joint_resistance(robot, joint, turn).torques.tolist()
            except NoSolution:
                continue
            break
        found += [None] * (len(angles) - len(found))
        torques |= {f"{sign * a:+g}": t for a, t in zip(angles, found)}
    return torques


def table(rows: Sequence[dict], angles: Sequence[float]) -> list[str]:
    """The rows of :func:`measure` as a table in Markdown."""
    signed = [f"{sign * angle:+g}" for angle in angles for sign in (1, -1)]
    lines = [
        "| joint | motor | "
        + " | ".join([f"slope x {SLOPE:g}", *(f"{angle} degrees" for angle in signed)])
        + " |",
        "| --- " * (3 + len(signed)) + "|",
    ]
    for row in rows:
        torques = [row["torques_N_m"][angle] for angle in signed]
        cells = [row["limit_N_m"], row["slope_N_m"], *torques]
        words = ["none found" if c is None else f"{c:.2f}" for c in cells]
        lines.append(f"| {row['joint']} | " + " | ".join(words) + " |")
    return lines


def main(argv: Sequence[str] | None = None) -> dict:
    """Prints the tables and one JSON object, which it returns."""
    parser = Measurement(__doc__, quick="one knee of the beetle, by 5 degrees")
    parser.add_argument("robots", nargs="*", help=f"{', '.join(JOINTS)}, or SDF files")
    parser.add_argument(
        "--angles",
        type=float,
        nargs="+",
        default=[],
        help="angles to turn to [degrees]",
    )
    parser.add_argument(
        "--joints", nargs="+", default=[], help="parts of names of joints"
    )
    parser.add_argument("--second-order", action="store_true", help="use P2 tets")
    args = parser.parse_args(argv)
    if args.quick:
        args.robots, args.joints, args.angles = ["beetle"], ["FL_knee"], [5.0]
    angles = sorted(args.angles)
    result = {}
    for name in args.robots or JOINTS:
        rows = measure(name, angles, args.second_order, args.joints)
        result[name] = rows
        print(f"\n{name}\n", *table(rows, angles), sep="\n", flush=True)
    return parser.report(result)


if __name__ == "__main__":
    with one_line_errors("quad_resistance"):
        main()
