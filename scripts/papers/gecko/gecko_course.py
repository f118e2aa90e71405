"""The gecko's course of Fig. 12: a table of robots, epsilons, motion models.

python scripts/papers/gecko/gecko_course.py --plot course.png     # five minutes
python scripts/papers/gecko/gecko_course.py --quick  # pose step, epsilon 10 cm

The paper's robot took 45 to 51 steps (half cycles) from the small prototype.

JSON: courses.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

from drakebots import plot
from drakebots.cli.output import one_line_errors, print_table
from drakebots.core.convert import as_yaml
from drakebots.core.files import check_output
from drakebots.robots.gecko import (
    Drake,
    PoseStep,
    Published,
    Simulation,
    simulate,
)
from drakebots.robots.gecko.engines import Engine
from drakebots.robots.gecko.generator import Rule

sys.path.append(str(Path(__file__).parents[2] / "bench"))
from measurement import Measurement

PAPER_STEPS = "45..51"
UNEQUAL = (0.939, 1.061, 1.013, 0.987, 0.942, 1.058)
"""The actuators' shares that `gecko_motion.py` fits to Table 3."""
SIZES = ("small", "large")


def cases(quick: bool) -> list[dict]:
    """Options of the simulations."""
    if quick:
        return [{"epsilon": 0.10}]
    published = {"rule": Published(), "motion": "table 3"}
    found = [{"size": size, "epsilon": e} for size in SIZES for e in (0.05, 0.10)]
    found += [
        published | {"size": size, "epsilon": epsilon, "rule": Published(sum=which)}
        for size in SIZES
        for epsilon in (0.05, 0.10)
        for which in ("corrected", "paper")
    ]
    found += [published | {"motion": motion} for motion in ("fit", "pose step")]
    for bends in (Simulation.bends, UNEQUAL):
        for engine in (PoseStep(pressure=True), Drake()):
            found += [
                {"engine": engine, "bends": bends} | rule for rule in ({}, published)
            ]
    found += [
        {"engine": Drake()} | other
        for other in ({"rule": Published()}, {"motion": "table 3"}, {"epsilon": 0.10})
    ]
    again = Drake(reproduction=True), Drake(reproduction=True, pressure=True)
    return found + [{"engine": engine} for engine in again]


def main(argv: Sequence[str] | None = None) -> dict:
    """Simulates the courses; prints a table and one JSON object, and returns it."""
    parser = Measurement(__doc__, quick="one simulation")
    parser.add_argument("--plot", type=Path, help="plot of the first course (.png)")
    args = parser.parse_args(argv)
    if args.plot is not None:
        check_output(args.plot)
    rows = []
    for options in cases(args.quick):
        problem = Simulation(**options)
        result = simulate(problem)
        if not rows and args.plot is not None:
            print(plot(result, args.plot))
        m = result.metrics
        rows.append(
            {
                "engine": as_yaml(problem.engine, Engine),
                "size": problem.size,
                "epsilon_cm": m["epsilon_cm"],
                "rule": as_yaml(problem.rule, Rule),
                "motion": problem.motion,
                "pressure": problem.engine.limited,
                "bends": problem.bends,
                "verdict": str(result.verdict),
                "targets_reached": m["targets_reached"],
                "half_cycles": m["half_cycles"],
                "path_cm": m["path_cm"],
            }
        )
    print_table(
        f"gecko, course of Fig. 12 (paper: {PAPER_STEPS} half cycles)",
        {str(k): row for k, row in enumerate(rows)},
    )
    return parser.report({"courses": rows})


if __name__ == "__main__":
    with one_line_errors("gecko_course"):
        main()
