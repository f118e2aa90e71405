"""Search a gait of the voxel robot for travel, on the Drake plant; then walk it.

python scripts/papers/voxels/voxel_gait_search.py -o best.csv     # some 10 minutes
python scripts/papers/voxels/voxel_gait_search.py --quick         # 2 walks
python scripts/papers/voxels/voxel_gait_search.py --spread --walks 200 -o best.csv
python scripts/papers/voxels/voxel_gait_search.py --spread --gait best.csv

With --spread each gait is tried on six grounds at the recorded stroke of 2.3 mm, and
counts by the least share of what the paper's gait makes there; the search begins at the
gait that was found on one ground, and a walk takes 4 s of processor time. --gait does
not search, but walks a gait, scaled to that stroke, beside the paper's: on the six
grounds, and on ten samples of voxel_spread.py, whose friction, mass, damping and feet
are others.

drakebots simulate voxel --gait best.csv plays what was found.

JSON: walks, searched, paper, phase_deg, squareness.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from dataclasses import replace
from importlib import import_module
from pathlib import Path

import numpy as np

from drakebots.cli.output import one_line_errors, print_table
from drakebots.cli.progress import progress_bar
from drakebots.core.files import check_output
from drakebots.robots.voxels import (
    Feet,
    Gait,
    SearchProblem,
    Simulation,
    read_gait,
    search_gait,
    simulate,
)

sys.path.append(str(Path(__file__).parents[2] / "bench"))
from measurement import Measurement

RECORDED = {"stroke": 2.3e-3, "cycles": 2, "time_step": 2e-3, "log_period": 0.1}
GROUNDS = (
    *((0.8, 0.1, 0.0), (0.15, 0.15, 0.0), (0.8, 0.8, 0.0)),
    *((0.3, 0.3, 5e-3), (0.8, 0.3, 0.0), (0.15, 0.8, 0.0)),
)
"""Friction of the front and the back feet, and mass on each front voxel [kg]."""
ONE_GROUND = (*np.radians([162.0, 71.0, -137.0]).tolist(), 1.9)
"""The gait found on one ground, at which the search over all of them begins."""


def _gait_numbers(text: str) -> tuple[float, ...]:
    """Phases [rad] and squareness of "162,71,-137,1.9"."""
    try:
        first, second, third, squareness = map(float, text.split(","))
    except ValueError:
        raise argparse.ArgumentTypeError(
            f"{text!r} must be three phases and a squareness, as 162,71,-137,1.9"
        ) from None
    phases = [first, second, third]
    return (*np.radians(phases).tolist(), squareness)


def grounds() -> tuple[Simulation, ...]:
    """The walks of --spread."""
    return tuple(
        Simulation(feet=Feet(front, back), front_mass=mass, **RECORDED)
        for front, back, mass in GROUNDS
    )


def unseen(count: int = 10) -> tuple[Simulation, ...]:
    """Walks on grounds that the search has not seen."""
    sys.path.insert(0, str(Path(__file__).parent))
    spread = import_module("voxel_spread")
    points = spread.samples(count, seed=1)
    return tuple(spread.simulation(point, **RECORDED) for point in points)


def beside_the_paper(poses, walks: Sequence[Simulation]) -> dict:
    """Travel of a gait and of the paper's in each walk [mm a cycle].

    Args:
        poses: the gait's table (K, 4) [m]; it is scaled to each walk's stroke.
        walks: the walks.
    """
    unit, rows, ratios = np.asarray(poses) / np.abs(poses).max(), {}, []
    for walk in walks:
        gait = tuple(map(tuple, (unit * walk.stroke).tolist()))
        each = [
            simulate(replace(walk, gait=g)).metrics["travel_mm_per_cycle"]
            for g in (gait, "forward")
        ]
        mu = f"front {walk.feet.front:.3g}, back {walk.feet.back:.3g}"
        ratios.append(each[0] / max(each[1], 0.1))
        rows[f"{mu}, +{1e3 * walk.front_mass:.2g} g"] = [*each, ratios[-1]]
    return {"gait, paper's, ratio": rows, "least_ratio": min(ratios)}


def walked(gait, walk: Simulation) -> dict:
    """Travel of a gait over several cycles."""
    metrics = simulate(replace(walk, gait=gait)).metrics
    return {
        "travel_mm_per_cycle": metrics["travel_mm_per_cycle"],
        "travel_mm_of_each_cycle": list(metrics["travel_mm_of_each_cycle"]),
        "turn_deg_per_cycle": metrics["turn_deg_per_cycle"],
        "tipped_over": metrics["tipped_over"],
    }


def main(argv: Sequence[str] | None = None) -> dict:
    """Searches and walks; prints a table and one JSON object, and returns it."""
    parser = Measurement(__doc__, quick="2 walks of a cycle")
    parser.add_argument("-o", "--output", type=Path, help="the best gait (.csv)")
    parser.add_argument("--walks", type=int, default=60)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument(
        "--turn-weight",
        type=float,
        default=SearchProblem.turn_weight,
        help="cost of a turn per cycle [m/rad]; 0 searches for travel alone",
    )
    parser.add_argument("--spread", action="store_true", help="on six grounds")
    parser.add_argument(
        "--start",
        type=_gait_numbers,
        help="of --spread: phases of yellow, red, green [deg] and squareness, by "
        "default those of the gait found on one ground, 162,71,-137,1.9",
    )
    parser.add_argument("--gait", type=Path, help="a table to walk, without a search")
    args = parser.parse_args(argv)
    if args.gait is not None:
        facts = beside_the_paper(read_gait(args.gait).poses, [*grounds(), *unseen()])
        print_table("voxel robot: a gait over friction and mass", facts)
        return parser.report(facts)
    if args.output is not None:
        check_output(args.output)
    walks, long, options = args.walks, Simulation(cycles=6), {}
    if args.quick:
        walks, long = 2, Simulation(cycles=1, time_step=2e-3)
        options = {"walk": long}
    with progress_bar("gait search") as progress:
        problem = SearchProblem(
            walks=walks, seed=args.seed, turn_weight=args.turn_weight, **options
        )
        if args.spread:
            first, *others = grounds()
            start = args.start or ONE_GROUND
            problem = replace(problem, walk=first, over=tuple(others), start=start)
        result = search_gait(problem, progress=progress)
    poses = tuple(map(tuple, result.data.control.values.tolist()))
    if args.output is not None:
        Gait(poses, "searched").write(args.output)
    if args.spread:
        facts = result.metrics | beside_the_paper(poses, grounds())
        print_table("voxel robot: gait over friction and mass", facts)
        return parser.report(facts)
    facts = {
        "walks": result.metrics["walks"],
        "searched": walked(poses, long),
        "paper": walked("forward", long),
        "phase_deg": list(result.metrics["phase_deg"]),
        "squareness": result.metrics["squareness"],
    }
    print_table("voxel robot: gait for travel", facts)
    return parser.report(facts)


if __name__ == "__main__":
    with one_line_errors("voxel_gait_search"):
        main()
