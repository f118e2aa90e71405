"""The gecko on walls: distance per cycle by inclination, and the suction it needs.

python scripts/papers/gecko/gecko_climb.py            # two minutes
python scripts/papers/gecko/gecko_climb.py --quick    # 84 deg, two forces

The limbs are elastic and the cups have springs; masses and the limits of
the feet are assumed (models/gecko/README.md).
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from drakebots.cli.output import one_line_errors, plain, print_table
from drakebots.robots.gecko import Climb, simulate_climb

INCLINES = (0, 30, 45, 60, 75, 84)
FORCES = (20.0, 10.0, 5.0, 4.0, 3.0, 2.0, 1.0)


def one(incline: float, force: float | None) -> dict:
    """A climb at an inclination [deg] with a suction force [N]."""
    problem = Climb()
    limits = problem.limits
    if force is not None:
        limits = replace(limits, suction=force)
    walk = replace(problem.walk, incline=float(np.radians(incline)))
    result = simulate_climb(replace(problem, walk=walk, limits=limits))
    metrics = result.metrics
    return {
        "incline_deg": incline,
        "suction_N": limits.suction,
        "verdict": str(result.verdict),
        "forward_cm_per_cycle": 100 * metrics.get("forward_per_cycle_m", float("nan")),
        "message": result.message,
    }


def main(argv: Sequence[str] | None = None) -> list[dict]:
    """Simulates the climbs; prints a table and one JSON object, returns the rows."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="84 deg, two forces")
    args = parser.parse_args(argv)
    if args.quick:
        cases = [(84, None), (84, 2.0)]
    else:
        cases = [(incline, None) for incline in INCLINES]
        cases += [(84, force) for force in FORCES]
    rows = [one(*case) for case in cases]
    print_table(
        "gecko, climbing",
        {f"{r['incline_deg']} deg, {k}": r for k, r in enumerate(rows)},
    )
    print(json.dumps(plain({"climbs": rows})))
    return rows


if __name__ == "__main__":
    with one_line_errors("gecko_climb"):
        main()
