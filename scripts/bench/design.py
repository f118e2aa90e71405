"""Seconds of each stage from a body to a skinned robot.

python scripts/bench/design.py                       # 5k, 14k, 30k vertices
python scripts/bench/design.py --quick               # 3k only

The last line is JSON: surface_to_robot_s of Table 1's 14k (or the last measured), and
the number of different silicones in the models.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Sequence
from dataclasses import replace

from drakebots.design import JOINTS, STAGES, design_robot, table1_problem
from drakebots.skin.file import load_skinned

SMOOTH = 10_000
"""Number of vertices below which edges are longer than teeth, which are left out."""


def measure(robot: str, vertices: int) -> dict:
    """The report of one design, with its processor time."""
    problem = table1_problem(robot)
    skin = replace(problem.skin, vertices=vertices)
    if vertices < SMOOTH:
        skin = replace(skin, folds=replace(skin.folds, depth=0.0))
    began = time.process_time()
    report = design_robot(replace(problem, skin=skin)).report()
    return report | {"processor_s": time.process_time() - began}


def densities() -> int:
    """Number of different silicones in the models of skinned robots."""
    return len({load_skinned(name).skin.material for name in (*JOINTS, "skinned_leg")})


def main(argv: Sequence[str] | None = None) -> dict:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--robot", default="beetle", help="robot of Table 1")
    parser.add_argument("--vertices", type=int, nargs="*", default=[5000, 14000, 30000])
    parser.add_argument("--quick", action="store_true")
    args = parser.parse_args(argv)
    counts = [3000] if args.quick else args.vertices
    if not args.quick:
        # Compiles the kernels, which is not measured.
        measure(args.robot, 3000)
    print("| skin vertices | " + " | ".join(STAGES) + " | whole [s] | processor [s] |")
    print("| --- " * (len(STAGES) + 3) + "|")
    reports = []
    for vertices in counts:
        report = measure(args.robot, vertices)
        reports.append(report)
        stages = " | ".join(f"{report['seconds'][s]:.2f}" for s in STAGES)
        print(
            f"| {report['skin_vertices']} | {stages} "
            f"| {report['surface_to_robot_s']:.2f} | {report['processor_s']:.2f} |",
            flush=True,
        )
    chosen = min(reports, key=lambda r: abs(r["skin_vertices"] - 14000))
    result = {
        "surface_to_robot_s": {
            "value": chosen["surface_to_robot_s"],
            "unit": "s",
            "target": 120,
        },
        "runs": [
            {
                key: r[key]
                for key in ("skin_vertices", "seconds", "processor_s", "notes")
            }
            for r in reports
        ],
        "densities": {"value": densities(), "unit": "1", "target": 1},
    }
    print(json.dumps(result))
    return result


if __name__ == "__main__":
    main()
