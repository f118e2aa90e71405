"""HAMR beyond its gaits, by the planner of any legged robot: planned and executed.

python scripts/papers/hamr/hamr_motions.py                   # all five, some 15 minutes
python scripts/papers/hamr/hamr_motions.py --only back turn  # a minute
python scripts/papers/hamr/hamr_motions.py --quick           # back, one cycle

    back    10 mm backwards a cycle, five cycles
    turn    0.2 rad on the spot in 0.4 s
    far     0.4 rad on the spot in 0.8 s
    step    40 mm ahead, onto a step of 3 mm
    onto    a jump of 35 mm ahead, onto that step

The planner's inputs are the actuators' forces; `lowest_V` and `highest_V` are the drive
voltages that give them. Plans are executed in Drake's contact by whole-body control,
which knows the whole state, unlike the controller of HAMR's gaits. `executed` is the
verdict, which asks for half of a turn or a stride; `end_mm` and `end_deg` are between
the ends of the run and of the plan; a walk has its share of the stride instead.

JSON: hamr_motions_planned, hamr_motions_executed, motions.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from drakebots import build_robot, load
from drakebots.cli.output import one_line_errors, print_rows
from drakebots.multibody import Step
from drakebots.results import Result
from drakebots.robots import track
from drakebots.robots.hamr.model import BIAS, DriveLaw
from drakebots.robots.legged import Tracking
from drakebots.trajopt.locomotion import (
    Goal,
    Hop,
    LocomotionProblem,
    Walk,
    plan_locomotion,
)

sys.path.append(str(Path(__file__).parents[2] / "bench"))
from measurement import Measurement, figure

EDGE = Step(0.016, 1.0, 3e-3)
"""A step that begins 3 mm ahead of the front feet."""

LIMIT = 300.0
"""Of each plan's wall time [s]."""

FORCE = 0.2
"""Limit of the actuators' forces [N]: with tips within 0.3 mm of the middle, voltages
stay within 0 and 225 V."""

MOTIONS = {
    "back": (Walk(forward=-0.01), {}),
    "turn": (Goal(turn=0.2), {"duration": 0.4}),
    "far": (Goal(turn=0.4), {"duration": 0.8}),
    "step": (Goal(forward=0.04), {"terrain": EDGE}),
    "onto": (Hop(6e-3, forward=0.035), {"terrain": EDGE}),
}


def voltages(plan: Result) -> np.ndarray:
    """Drive voltages (N, 8) [V] that give a plan's forces at its positions."""
    robot = build_robot(load("hamr"), base="euler", time_step=0)
    law = DriveLaw(robot.plant)
    q = plan.data.position.values[:, law.tips]
    return (law.offset - law.slope * q - plan.data.input.values) / law.per_volt


def row(name: str, cycles: int) -> dict:
    """A motion's row of the table."""
    began = time.process_time()
    motion, how = MOTIONS[name]
    problem = LocomotionProblem("hamr", motion, torque=FORCE, **how)
    plan = plan_locomotion(problem, time_limit=LIMIT)
    spent, volts = time.process_time() - began, voltages(plan)
    run = track(Tracking(plan, cycles=cycles))
    found = {
        "motion": name,
        "planned": plan.ok,
        "plan_s": spent,
        "lowest_V": float(volts.min()),
        "highest_V": float(volts.max()),
        "executed": run.ok,
    }
    if "stride_share" in run.metrics:
        return found | {"stride_share": run.metrics["stride_share"]}
    end, yaw = run.metrics["end_error_m"], run.metrics["yaw_drift_deg"]
    return found | {"end_mm": 1e3 * end, "end_deg": abs(yaw)}


def main(argv: Sequence[str] | None = None) -> dict:
    """Plans and executes; prints a table and one JSON object, and returns it."""
    parser = Measurement(__doc__, quick="one cycle backwards")
    parser.add_argument("--only", nargs="+", choices=MOTIONS, default=list(MOTIONS))
    args = parser.parse_args(argv)
    names, cycles = (["back"], 1) if args.quick else (args.only, 5)
    rows = [row(name, cycles) for name in names]
    print_rows(f"HAMR's motions, of 0 to {BIAS:g} V", rows)
    result = {
        f"hamr_motions_{key}": figure(sum(row[key] for row in rows), target=len(rows))
        for key in ("planned", "executed")
    }
    return parser.report(result | {"motions": rows})


if __name__ == "__main__":
    with one_line_errors("hamr_motions.py"):
        main()
