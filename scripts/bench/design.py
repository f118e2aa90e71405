"""Seconds of each stage from a body to a skinned robot.

python scripts/bench/design.py                       # 5k, 14k, 30k vertices
python scripts/bench/design.py --vertices 5000 --json
"""

from __future__ import annotations

import argparse
import json
from dataclasses import replace

from drakebots.design.pipeline import STAGES, design_robot
from drakebots.design.robots import table1_problem


def measure(robot: str, vertices: int) -> dict:
    """The report of one design."""
    problem = table1_problem(robot)
    skin = replace(problem.skin, vertices=vertices)
    if vertices < 10000:
        # Edges of a coarse skin are longer than its teeth.
        skin = replace(skin, folds=replace(skin.folds, depth=0.0))
    return design_robot(replace(problem, skin=skin)).report()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--robot", default="beetle")
    parser.add_argument("--vertices", type=int, nargs="*", default=[5000, 14000, 30000])
    parser.add_argument("--json", action="store_true")
    args = parser.parse_args()
    reports = []
    for vertices in args.vertices:
        report = measure(args.robot, vertices)
        reports.append(report)
        stages = " ".join(f"{s} {report['seconds'][s]:.2f}" for s in STAGES)
        print(
            f"{report['skin_vertices']} vertices: {stages}; "
            f"whole {report['surface_to_robot_s']:.2f} s",
            flush=True,
        )
    if args.json:
        print(
            json.dumps(
                {
                    "surface_to_robot_s": reports[-1]["surface_to_robot_s"],
                    "runs": [
                        {k: r[k] for k in ("skin_vertices", "seconds")} for r in reports
                    ],
                }
            )
        )


if __name__ == "__main__":
    main()
