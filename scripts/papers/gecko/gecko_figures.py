"""The gecko paper's figures 5, 6, 7 and 10, and the figures behind them.

python scripts/papers/gecko/gecko_figures.py -o out      # a few seconds
python scripts/papers/gecko/gecko_figures.py -o out --quick
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from gecko_plots import plot_cycle, plot_distance

from drakebots.cli.output import one_line_errors, plain, print_table
from drakebots.core.files import check_output
from drakebots.robots.gecko import plot_gait_law, plot_velocity_space
from drakebots.robots.gecko.generator import (
    COMPONENTS,
    MotionPolynomial,
    course,
    plan,
    simulate_velocity_space,
)
from drakebots.robots.gecko.pose_step import cycle_phases

TARGETS = {"A": ((0.35, -0.20), 1), "B": ((-0.35, -0.20), 1), "C": ((-0.35, -0.20), 4)}
"""Fig. 10: targets [m] and horizons."""


def minima() -> dict:
    """Fig. 10: the gaits that come closest, with both readings of eq. (19)."""
    table = MotionPolynomial.table_3()
    found = {}
    for name, (target, n) in TARGETS.items():
        for which in ("paper", "corrected"):
            best = plan(target, n, table, sum=which)
            found[f"{name}, {which}"] = {
                "q1_deg": float(np.degrees(best.q1)),
                "q2": best.q2,
                "d_cm": 100 * best.distance,
            }
    return found


def main(argv: Sequence[str] | None = None) -> dict:
    """Draws the figures; prints tables and one JSON object, and returns it."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("-o", "--output", type=Path, default=Path("."))
    parser.add_argument("--quick", action="store_true", help="Fig. 10 only")
    args = parser.parse_args(argv)
    files = {
        name: args.output / f"gecko_{name}.png"
        for name in ("fig5", "fig6", "fig7", "fig10")
    }
    for path in files.values():
        check_output(path)
    facts = {"fig10": minima(), "course_m": course().tolist()}
    print_table("Fig. 10: closest gaits", facts["fig10"])
    plot_distance(files["fig10"], sum="paper")
    if not args.quick:
        plot_gait_law(files["fig5"])
        plot_cycle(files["fig6"])
        facts["fig6"] = cycle_phases().table()
        space = simulate_velocity_space()
        plot_velocity_space(space, files["fig7"])
        motion = space.data.motion.values
        facts["fig7"] = {
            f"{name}_{unit}": (factor * motion[..., k]).round(3).tolist()
            for k, (name, unit, factor) in enumerate(
                zip(COMPONENTS, ("deg", "cm", "cm"), (180 / np.pi, 100, 100))
            )
        }
        print_table("Fig. 7: the fit", dict(space.metrics))
        print_table("Fig. 6: a cycle", {"table": facts["fig6"]})
    print(json.dumps(plain(facts)))
    return facts


if __name__ == "__main__":
    with one_line_errors("gecko_figures"):
        main()
