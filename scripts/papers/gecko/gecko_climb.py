"""The gecko on walls: distance per cycle by inclination, stiffness and suction.

python scripts/papers/gecko/gecko_climb.py            # three minutes
python scripts/papers/gecko/gecko_climb.py --quick    # 84 deg, two moduli

The limbs are elastic and the cups have springs. Masses, the limits of the feet and the
silicone are assumed (models/gecko/README.md), so climbs are given over a range of its
modulus: 0.3 and 1 MPa, as of soft and of firm casting silicones, and 3.2 MPa.

JSON: climbs.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np

from drakebots.cli.output import one_line_errors, print_table
from drakebots.robots.gecko import CupLimits, Drake, Walk, simulate_walk

sys.path.append(str(Path(__file__).parents[2] / "bench"))
from measurement import Measurement

INCLINES = (0, 45, 84, 180)
MODULI = (0.3e6, 1.0e6, 3.2e6)
FORCES = (10.0, 5.0, 4.0, 2.0)


def one(incline: float, modulus: float, force: float | None = None) -> dict:
    """A climb at an inclination [deg], with a modulus [Pa] and a suction force [N]."""
    limits, angle = CupLimits(), float(np.radians(incline))
    if force is not None:
        limits = replace(limits, suction=force)
    engine = Drake(incline=angle, limits=limits, modulus=modulus, pressure=False)
    walk = Walk(cycles=2, engine=engine)
    result = simulate_walk(walk)
    metrics = result.metrics
    return {
        "incline_deg": incline,
        "modulus_MPa": modulus / 1e6,
        "leg_N_m_per_rad": engine.stiffness(walk.robot)["leg"],
        "suction_N": limits.suction,
        "verdict": str(result.verdict),
        "forward_cm_per_cycle": 100 * metrics.get("forward_per_cycle_m", float("nan")),
        "message": result.message,
    }


def main(argv: Sequence[str] | None = None) -> dict:
    """Simulates the climbs; prints a table and one JSON object, and returns it."""
    parser = Measurement(__doc__, quick="84 deg, two moduli")
    args = parser.parse_args(argv)
    if args.quick:
        cases = [(84, MODULI[1]), (84, MODULI[0])]
    else:
        cases = [(incline, modulus) for modulus in MODULI for incline in INCLINES]
        cases += [(84, MODULI[-1], force) for force in FORCES]
    rows = [one(*case) for case in cases]
    print_table(
        "gecko, climbing",
        {f"{r['incline_deg']} deg, {k}": r for k, r in enumerate(rows)},
    )
    return parser.report({"climbs": rows})


if __name__ == "__main__":
    with one_line_errors("gecko_climb"):
        main()
