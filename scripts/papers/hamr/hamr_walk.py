"""HAMR's open-loop trot on three surfaces at three frequencies: a table.

python scripts/papers/hamr/hamr_walk.py            # 2, 10, 30 Hz on all surfaces
python scripts/papers/hamr/hamr_walk.py --quick    # 30 Hz on card, two starts

Strides are distributions over 20 starts whose base differs by up to 1e-9 m and 1e-9
rad; the other figures are means over them.

JSON: gaits.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

from drakebots.cli.output import one_line_errors, print_table
from drakebots.robots.hamr import Simulation
from drakebots.robots.hamr.model import surfaces

sys.path.append(str(Path(__file__).parents[2] / "bench"))
from hamr_starts import STARTS, spread, spread_text, starts
from measurement import Measurement

MEANS = ("stride_deviation_mm", "slip", "yaw_deg_per_cycle", "loop_gap_max_mm")
"""Metrics of which a row has the mean over the starts."""


def main(argv: Sequence[str] | None = None) -> dict:
    """Runs the sweep; prints a table and one JSON object, and returns it."""
    parser = Measurement(__doc__, quick="30 Hz on card, from two starts")
    parser.add_argument("--starts", type=int, default=STARTS, help="of each gait")
    parser.add_argument("--workers", type=int, help="processes, by default all cores")
    args = parser.parse_args(argv)
    cases = [
        (surface, frequency, 3 if frequency == 2 else 5)
        for surface in surfaces()
        for frequency in (2.0, 10.0, 30.0)
    ]
    if args.quick:
        cases, args.starts, args.workers = [("card", 30.0, 2)], 2, 1
    rows = []
    for surface, frequency, cycles in cases:
        problem = Simulation(surface=surface, frequency=frequency, cycles=cycles)
        runs = starts(problem, args.starts, workers=args.workers).data
        row = {"surface": surface, "frequency_hz": frequency}
        row["stride_mm_per_cycle"] = spread(runs.stride_mm_per_cycle.values)
        rows.append(row | {name: float(runs[name].mean()) for name in MEANS})
    print_table(
        "HAMR, open-loop trot",
        {
            f"{r['surface']}, {r['frequency_hz']:g} Hz": r
            | {"stride_mm_per_cycle": spread_text(r["stride_mm_per_cycle"])}
            for r in rows
        },
    )
    return parser.report({"gaits": rows})


if __name__ == "__main__":
    with one_line_errors("hamr_walk"):
        main()
