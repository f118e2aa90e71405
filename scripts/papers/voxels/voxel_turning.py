"""Whether the walk turns where its actuators move unequal shares of their commands.

python scripts/papers/voxels/voxel_turning.py            # ten minutes of processor time
python scripts/papers/voxels/voxel_turning.py --quick    # two walks

The recorded markers move by 2.3 to 2.7 mm to either side where 5 mm are commanded, so
gains of 0.46 to 0.54 are within what was measured; which actuator has which is not
published. The paper's gait is walked for three cycles at 2 ms with gains drawn from
that range, uniform and each on its own, and from a range five times as wide, which is
no measurement and only says how much a walk would take to turn. The recording turns by
14 degrees.

JSON: turn_deg_per_cycle_recorded_gains, turn_deg_per_cycle_wide_gains,
gain_spread_and_turn.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from drakebots.cli.output import print_table
from drakebots.lattice.pom import Control, Gains
from drakebots.robots.voxels import Simulation, simulate
from drakebots.robots.voxels.model import ACTUATORS

sys.path.append(str(Path(__file__).parents[2] / "bench"))
from measurement import Measurement, figure

RECORDED, WIDE = (0.46, 0.54), (0.3, 0.7)
"""Ranges of the gains."""

WALKS = 6
"""Walks of each range."""


def turned(gains: np.ndarray, cycles: int) -> dict:
    """Figures of a walk whose actuators have these gains (4,)."""
    names = [Control(c.node, c.axis).name for c in ACTUATORS]
    given = Gains(dict(zip(names, gains.tolist())))
    walk = Simulation(gains=given, cycles=cycles, time_step=2e-3)
    return simulate(walk).metrics


def drawn(limits: tuple[float, float], count: int, seed: int) -> np.ndarray:
    """Gains (count, 4): the first all in the middle, others at random."""
    random = np.random.default_rng(seed)
    found = random.uniform(*limits, (count, len(ACTUATORS)))
    found[0] = np.mean(limits)
    return found


def main(argv: Sequence[str] | None = None) -> dict:
    """Walks; prints a table and one JSON object, and returns it."""
    parser = Measurement(__doc__, quick="one walk of each range, two cycles")
    args = parser.parse_args(argv)
    count, cycles = (1, 2) if args.quick else (WALKS, 3)
    rows, turns, pairs = {}, {}, []
    for seed, (name, limits) in enumerate({"recorded": RECORDED, "wide": WIDE}.items()):
        turns[name] = []
        for gains in drawn(limits, count, seed):
            found = turned(gains, cycles)
            turn = found.get("turn_deg_per_cycle", float("nan"))
            words = ", ".join(f"{gain:.2f}" for gain in gains)
            rows[f"{name}: {words}"] = (
                f"{turn:.2f} deg and {found.get('travel_mm_per_cycle', 0.0):.2f} mm"
            )
            print(f"{name} {words}: {rows[f'{name}: {words}']}", flush=True)
            turns[name].append(turn)
            pairs.append([float(np.ptp(gains)), turn])
    print_table("turn and travel per cycle, by the four gains", rows)
    return parser.report(
        {
            "turn_deg_per_cycle_recorded_gains": figure(turns["recorded"], "deg"),
            "turn_deg_per_cycle_wide_gains": figure(turns["wide"], "deg"),
            "gain_spread_and_turn": figure(pairs, "1, deg"),
        }
    )


if __name__ == "__main__":
    main()
