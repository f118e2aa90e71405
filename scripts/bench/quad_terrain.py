"""Walks of skinned quad-robots over terrain: planned in their skin, then tracked.

python scripts/bench/quad_terrain.py            # four robots, half an hour
python scripts/bench/quad_terrain.py --quick    # motions and first poses of the beetle

Every robot walks up and down a slope of 8 degrees and up two stairs of 10 mm, whose
first face is ahead of its fore feet. A plan counts if both of its stages agree, a track
if it succeeds on the plan's ground: on its feet, with the most of its distance.

The whole run also reports planned_of_12, tracked_of_12 and worst_tracked_share.

JSON: largest_miss_mm.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from measurement import Measurement, figure

from drakebots.cli.output import print_table
from drakebots.core.threads import calm_threads
from drakebots.multibody import Slope, Stairs, Terrain
from drakebots.robots import quads
from drakebots.robots.quads.robot import PlannedRobot, load_planned
from drakebots.robots.quads.space_time import check_motion

MOTIONS = {"beetle": "walk", "monster": "walk", "lizard": "lizard", "cow": "walk"}

STEEP, RISE, AHEAD = np.radians(8.0), 0.01, 0.06
"""Angle of the slopes; rise of a stair, and distance of the first from the feet [m]."""


def grounds(robot: PlannedRobot) -> dict[str, Terrain]:
    """The terrains of a robot, by name."""
    soles = robot.quad.soles
    side = max(float(np.ptp(sole.corners[:, 0])) for sole in soles)
    start = float(robot.quad.rest_feet[:, 0].max()) + side / 2 + AHEAD
    stairs = Stairs(rise=RISE, run=max(0.12, 2 * side), count=2, start=start)
    return {"up": Slope(-STEEP), "down": Slope(STEEP), "stairs": stairs}


def walked(problem: quads.Problem, *, quick: bool = False) -> dict:
    """A row of the table: the plan and its track."""
    miss = 1e3 * float(check_motion(problem.program()).poses.miss.max())
    row = {"largest miss of a foot [mm]": miss}
    if quick:
        return row
    plan = quads.plan(problem)
    row |= {"planned": plan.ok, "message": plan.message, "tracked": False, "share": 0.0}
    row |= {key: plan.metrics[key] for key in ("difference", "peak_torque_share")}
    if plan.ok:
        run = quads.track(quads.Tracking(plan, imu=True))
        share = run.metrics["distance_m"] / run.metrics["planned_distance_m"]
        row |= {"tracked": run.ok, "share": share, "run": run.message}
        row |= {"tilt off plan [deg]": run.metrics["tilt_off_plan_deg"]}
    return row


def main(argv: Sequence[str] | None = None) -> dict:
    """Runs the benchmark; prints tables and one JSON object, and returns it."""
    parser = Measurement(__doc__, quick="motions and first poses of the beetle")
    parser.add_argument("--robots", nargs="+", default=list(MOTIONS), help="names")
    args, rows = parser.parse_args(argv), {}
    with calm_threads():
        for name in args.robots[:1] if args.quick else args.robots:
            robot = load_planned(name)
            for word, terrain in grounds(robot).items():
                cycles = 2 if word == "stairs" else 1
                problem = quads.Problem(
                    robot, MOTIONS[name], cycles=cycles, terrain=terrain
                )
                rows[f"{name}, {word}"] = walked(problem, quick=args.quick)
                print_table(f"{name}, {word}", rows[f"{name}, {word}"])
    most = max(row["largest miss of a foot [mm]"] for row in rows.values())
    found = {"largest_miss_mm": figure(most, "mm")}
    if args.quick:
        return parser.report(found)
    found |= {
        "planned_of_12": figure(sum(row["planned"] for row in rows.values())),
        "tracked_of_12": figure(sum(row["tracked"] for row in rows.values())),
        "worst_tracked_share": figure(min(row["share"] for row in rows.values())),
    }
    return parser.report(found)


if __name__ == "__main__":
    main()
