"""The derivative of the gecko's motion by (q1, q2), beside central differences.

python scripts/bench/gecko_derivatives.py
python scripts/bench/gecko_derivatives.py --quick  # one robot, two gaits

The settled cycle of the pose step, after four others. Gaps are the largest difference
between `cycle_jacobian` and central differences of `cycle_motion` (step 1e-5), by q1
and by q2, relative to the largest derivative by it.

JSON: gaps, jacobian_ms, differences_ms.
"""

from __future__ import annotations

import time
from collections.abc import Sequence

import numpy as np
from measurement import Measurement, figure

from drakebots.cli.output import print_table
from drakebots.robots.gecko.engines import cycle_jacobian, cycle_motion
from drakebots.robots.gecko.model import gecko

STEP = 1e-5
GAITS = ((60, 0.3), (70, 0.0), (50, 0.1), (72, -0.23), (80, -0.45), (90, 0.5))
"""q1 [deg] and q2; at (80, -0.45) and (90, 0.5) the gait law clips a leg, at (70, 0)
all norms are at their kinks."""

ROBOTS = {
    "even": (gecko(), False),
    "even, 1.1 bar": (gecko(), True),
    "unequal": (gecko(bends=(0.939, 1.061, 1.013, 0.987, 0.942, 1.058)), False),
    "weights of Fig. 6": (gecko(weights="single_cycle"), False),
}
"""Robots, and whether the pressure limits their angles."""


def differences(robot, q: np.ndarray, limited: bool) -> np.ndarray:
    """d(rotation, forward, left)/d(q1, q2) (3, 2) by central differences."""

    def motion(gait) -> np.ndarray:
        cycle = cycle_motion(robot, *gait, limited=limited)
        return np.array([cycle.rotation, cycle.forward, cycle.left])

    ways = STEP * np.eye(2)
    return np.transpose([motion(q + h) - motion(q - h) for h in ways]) / (2 * STEP)


def main(argv: Sequence[str] | None = None) -> dict:
    """Compares; prints a table and one JSON object, and returns it."""
    parser = Measurement(__doc__, quick="one robot, two gaits")
    args = parser.parse_args(argv)
    robots = dict(list(ROBOTS.items())[: 1 if args.quick else None])
    gaps: dict[str, dict] = {name: {} for name in robots}
    took = np.zeros((0, 2))
    differences(gecko(), np.array([1.0, 0.1]), False)  # compiled before the clock runs
    for name, (robot, limited) in robots.items():
        for q1, q2 in GAITS[: 2 if args.quick else None]:
            q, clock = np.array([np.radians(q1), q2]), [time.process_time()]
            found = cycle_jacobian(robot, *q, limited=limited)
            clock.append(time.process_time())
            expected = differences(robot, q, limited)
            clock.append(time.process_time())
            took = np.vstack([took, np.diff(clock)])
            gap = abs(found - expected).max(axis=0) / abs(expected).max(axis=0)
            gaps[name][f"({q1}, {q2})"] = [float(f"{each:.1e}") for each in gap]
    print_table("gap by q1 and by q2", gaps)
    ours, theirs = 1e3 * np.median(took, axis=0)
    timings = {"jacobian_ms": ours, "differences_ms": theirs}
    print_table("processor time, with the walk", timings)
    return parser.report(
        {"gaps": gaps} | {k: figure(float(v), "ms") for k, v in timings.items()}
    )


if __name__ == "__main__":
    main()
