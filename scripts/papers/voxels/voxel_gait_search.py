"""Search a gait of the voxel robot for travel, on the Drake plant; then walk it.

python scripts/papers/voxels/voxel_gait_search.py -o best.csv     # some 10 minutes
python scripts/papers/voxels/voxel_gait_search.py --quick         # 3 walks

drakebots simulate voxel --gait best.csv plays what was found.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Sequence
from pathlib import Path

from drakebots.cli.output import one_line_errors, plain, print_table
from drakebots.cli.progress import progress_bar
from drakebots.core.files import check_output
from drakebots.robots.voxels import (
    Gait,
    GaitSearch,
    Simulation,
    search_gait,
    simulate,
)


def walked(gait, cycles: int) -> dict:
    """Travel of a gait over several cycles."""
    metrics = simulate(Simulation(gait=gait, cycles=cycles)).metrics
    return {
        "travel_mm_per_cycle": metrics["travel_mm_per_cycle"],
        "travel_mm_of_each_cycle": list(metrics["travel_mm_of_each_cycle"]),
        "turn_deg_per_cycle": metrics["turn_deg_per_cycle"],
        "tipped_over": metrics["tipped_over"],
    }


def main(argv: Sequence[str] | None = None) -> dict:
    """Searches and walks; prints a table and one JSON object, and returns it."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("-o", "--output", type=Path, help="the best gait (.csv)")
    parser.add_argument("--quick", action="store_true", help="3 walks")
    parser.add_argument("--walks", type=int, default=60)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument(
        "--turn-weight",
        type=float,
        default=GaitSearch.turn_weight,
        help="cost of a turn per cycle [m/rad]; 0 searches for travel alone",
    )
    args = parser.parse_args(argv)
    if args.output is not None:
        check_output(args.output)
    walks, cycles = (3, 1) if args.quick else (args.walks, 6)
    with progress_bar("gait search") as progress:
        result = search_gait(
            GaitSearch(walks=walks, seed=args.seed, turn_weight=args.turn_weight),
            progress=progress,
        )
    poses = tuple(map(tuple, result.data.control.values.tolist()))
    if args.output is not None:
        Gait(poses, "searched").write(args.output)
    facts = {
        "walks": result.metrics["walks"],
        "searched": walked(poses, cycles),
        "paper": walked("forward", cycles),
        "phase_deg": list(result.metrics["phase_deg"]),
        "squareness": result.metrics["squareness"],
    }
    print_table("voxel robot: gait for travel", facts)
    print(json.dumps(plain(facts)))
    return facts


if __name__ == "__main__":
    with one_line_errors("voxel_gait_search"):
        main()
