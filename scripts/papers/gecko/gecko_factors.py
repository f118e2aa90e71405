"""What influences the gecko's motion: the factors of the paper's Table 2, one by one.

python scripts/papers/gecko/gecko_factors.py          # a minute of processor time
python scripts/papers/gecko/gecko_factors.py --quick  # by poses only

Table 2, "Influencing factors on simulation and experiment", is a picture in the paper,
and its entries are not in the text that we have. The rows here are the factors that the
paper's text names (sections 3.2, 4 and 5.2), in its words, with what the text says of
them and what ours is. Each is changed alone, and the rotation and the way per cycle of
the gait (80 deg, 0.3) stand beside those without the change, of the engine that has it.

JSON: factors, table_3.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import NamedTuple

import numpy as np

from drakebots.cli.output import one_line_errors, print_table
from drakebots.robots.gecko import Drake, Gains, Walk, simulate_walk
from drakebots.robots.gecko.engines import PhaseTimes, cycle_motion
from drakebots.robots.gecko.generator import MotionPolynomial
from drakebots.robots.gecko.model import Gecko, gecko

sys.path.append(str(Path(__file__).parents[2] / "bench"))
from measurement import Measurement

Q1, Q2 = np.radians(80.0), 0.3
"""The gait whose motion is compared."""

UNEQUAL = (0.939, 1.061, 1.013, 0.987, 0.942, 1.058)
"""The actuators' shares that `gecko_motion.py` fits to Table 3."""

Motion = tuple[float, float]
"""Rotation [deg] and way [cm] of a cycle."""


def by_poses(robot: Gecko = gecko(), **options) -> Motion:
    """By pose steps; options as of `cycle_motion`."""
    cycle = cycle_motion(robot, Q1, Q2, **options)
    far = float(np.hypot(cycle.forward, cycle.left))
    return float(np.degrees(cycle.rotation)), 100 * far


def in_drake(robot: Gecko = gecko(), **options) -> Motion:
    """The second cycle of the Drake robot; options as of the engine."""
    walk = Walk(q1=Q1, q2=Q2, cycles=2, robot=robot, engine=Drake(**options))
    m = simulate_walk(walk).metrics
    turned = float(np.degrees(m["rotation_per_cycle_rad"]))
    return turned, 100 * m["distance_per_cycle_m"]


class Factor(NamedTuple):
    """One factor: what the paper's text says of it, ours, and changes of it alone."""

    said: str
    ours: str
    base: Callable[[], Motion]
    changes: dict[str, Callable[[], Motion]]


OPEN_LOOP = Gains(angle_p=0.0, angle_i=0.0)
UNEVEN = gecko(bends=UNEQUAL)

FACTORS = {
    "weights of the simulation": Factor(
        "(89, 10, 5.9), Fig. 7A",
        "the same",
        by_poses,
        {"(0.2, 12.1, 6.1), Fig. 6": partial(by_poses, gecko(weights="single_cycle"))},
    ),
    "coefficient c1": Factor(
        "1, Fig. 6",
        "1",
        by_poses,
        {
            f"{c1}": partial(by_poses, replace(gecko(), leg_bend=c1))
            for c1 in (0.5, 1.5)
        },
    ),
    "initial pose": Factor(
        "alpha(-q1), section 3",
        "alpha(-q1), the fifth cycle counts",
        by_poses,
        {f"cycle {n + 1}": partial(by_poses, settle=n) for n in (0, 1)},
    ),
    "size of the robot": Factor(
        "small; the large one with the same fit, Fig. 12",
        "small",
        by_poses,
        {"large": partial(by_poses, gecko("large"))},
    ),
    "saturation of the pressure, simulation": Factor(
        "none in the simulation",
        "none, or 1.1 bar",
        by_poses,
        {"1.1 bar": partial(by_poses, limited=True)},
    ),
    "manufacturing and calibration, simulation": Factor(
        "a robot perfectly made and calibrated",
        "the same, or six shares",
        by_poses,
        {"shares of gecko_motion.py": partial(by_poses, UNEVEN)},
    ),
    "saturation of the pressure, robot": Factor(
        "reference pressure saturated",
        "1.1 bar",
        in_drake,
        {"none": partial(in_drake, pressure=False)},
    ),
    "manufacturing and calibration, robot": Factor(
        "inaccurate; calibration may be improved",
        "one calibration, feedback",
        in_drake,
        {
            "no feedback": partial(in_drake, gains=OPEN_LOOP),
            "shares, feedback": partial(in_drake, UNEVEN),
            "shares, no feedback": partial(in_drake, UNEVEN, gains=OPEN_LOOP),
        },
    ),
    "time t_move": Factor(
        "1 s; 10 s in Fig. 6",
        "1 s",
        in_drake,
        {"10 s": partial(in_drake, times=PhaseTimes(move=10.0))},
    ),
    "torsional stiffness of the feet": Factor(
        "a certain margin of rotation; no figure",
        "16 times a leg's, fitted to two gaits of Table 3",
        in_drake,
        {f"{k:g} times": partial(in_drake, torsion=k) for k in (8.0, 32.0)},
    ),
}
"""Friction and the supply tubes, which the text names too, are in neither engine: a
foot is held or free."""


def main(argv: Sequence[str] | None = None) -> dict:
    """Changes each factor; prints a table and one JSON object, and returns it."""
    parser = Measurement(__doc__, quick="by poses only")
    args = parser.parse_args(argv)
    rows, known = [], {}
    for name, factor in FACTORS.items():
        if args.quick and factor.base is in_drake:
            continue
        if factor.base not in known:
            known[factor.base] = factor.base()
        told = {"factor": name, "paper": factor.said, "ours": factor.ours}
        before = known[factor.base]
        for change, motion in factor.changes.items():
            turned, far = motion()
            moved = {"deg": before[0], "cm": before[1]}
            rows.append({**told, **moved, "change": change})
            rows[-1] |= {"changed_deg": turned, "changed_cm": far}
    turn, *way = MotionPolynomial.table_3().motion(Q1, Q2)
    table = {"deg": float(np.degrees(turn)), "cm": 100 * float(np.hypot(*way))}
    print_table("factors", {f"{k}": row for k, row in enumerate(rows)})
    print_table("Table 3", table)
    return parser.report({"factors": rows, "table_3": table})


if __name__ == "__main__":
    with one_line_errors("gecko_factors"):
        main()
