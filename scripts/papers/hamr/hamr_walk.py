"""HAMR's open-loop trot on three surfaces at three frequencies: a table.

python scripts/papers/hamr/hamr_walk.py            # 2, 10, 30 Hz on all surfaces
python scripts/papers/hamr/hamr_walk.py --quick    # 10 Hz on card
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Sequence

from drakebots.cli.output import one_line_errors, plain, print_table
from drakebots.robots.hamr import Simulation, simulate
from drakebots.robots.hamr.model import parameters


def main(argv: Sequence[str] | None = None) -> list[dict]:
    """Runs the sweep; prints a table and one JSON object, returns the rows."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="10 Hz on card only")
    args = parser.parse_args(argv)
    cases = [
        (surface, frequency, 3 if frequency == 2 else 5)
        for surface in parameters().friction
        for frequency in (2.0, 10.0, 30.0)
    ]
    if args.quick:
        cases = [("card", 10.0, 2)]
    rows = []
    for surface, frequency, cycles in cases:
        problem = Simulation(surface=surface, frequency=frequency, cycles=cycles)
        metrics = simulate(problem).metrics
        rows.append(
            {
                "surface": surface,
                "frequency_hz": frequency,
                "stride_mm_per_cycle": metrics["stride_mm_per_cycle"],
                "stride_deviation_mm": metrics["stride_deviation_mm"],
                "slip": metrics["slip"],
                "yaw_deg_per_cycle": metrics["yaw_deg_per_cycle"],
                "loop_gap_max_mm": metrics["loop_gap_max_mm"],
            }
        )
    print_table(
        "HAMR, open-loop trot",
        {f"{r['surface']}, {r['frequency_hz']:g} Hz": r for r in rows},
    )
    print(json.dumps(plain({"gaits": rows})))
    return rows


if __name__ == "__main__":
    with one_line_errors("hamr_walk"):
        main()
