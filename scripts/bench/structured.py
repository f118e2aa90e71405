"""Planning with the structured linear solver: seconds, and the ratio to MUMPS.

    kkt          one program (HAMR's 10 Hz gait on card, 10,699 unknowns), 60 iterations
                 of IPOPT from the same start with each linear solver in this process:
                 processor time that IPOPT spends in its linear systems, an iteration
    knots        the same for 11 to 401 knots of a quadruped's walk, structured, and the
                 exponent p of time = c (N - 1)^p
    quadruped    the walk of 15 knots from the starts of contact_implicit.py
    littledog    the step-up on the authors' terrain, 12 starts (needs their data)
    gaits        HAMR's nine gaits and its jump, each from problem to result
    free         a walk with free contacts by the robots of --robots, each from its file
                 to its result; nothing is compiled for it

The last four are solved with --linear-solver, structured by default as everywhere. All
seconds are processor time of one thread, so that busy machines compare.

python scripts/bench/structured.py              # all, a quarter of an hour
python scripts/bench/structured.py --quick      # kkt and knots only, smaller
python scripts/bench/structured.py --only kkt quadruped
python scripts/bench/structured.py --only free --robots a1.urdf go2.urdf

JSON: linear_solver, kkt, kkt_ms_hamr, kkt_vs_mumps_ratio, knots_s, knots_exponent.
"""

from __future__ import annotations

import os
import re
import statistics
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from unittest.mock import patch

# Before anything starts threads: processor time counts all of them.
os.environ.setdefault("OMP_NUM_THREADS", "1")

import numpy as np
from measurement import Measurement
from rich.console import Console
from rich.table import Table

from drakebots.robots.hamr.plan import (
    GaitProblem,
    JumpProblem,
    gait_program,
    packed,
    plan,
    simulated_gait,
)
from drakebots.trajopt.locomotion import LocomotionProblem, plan_locomotion
from drakebots.trajopt.program import Program, assemble
from drakebots.trajopt.solvers import ipopt_exact, solve_exact

HERE = Path(__file__).resolve().parent
sys.path.append(str(HERE.parent / "papers" / "littledog"))
import contact_implicit as walks  # noqa: E402
import littledog_stepup as dog  # noqa: E402

TARGETS = {
    "kkt_ms_hamr": 2,
    "kkt_vs_mumps_ratio": 20,
    "hamr_gait_median_s": 2,
    "hamr_gait_slowest_s": 6,
    "hamr_all_s": 40,
    "littledog_median_s": 5,
    "littledog_valid_of_12": 12,
    "quadruped_s": 0.08,
    "knots_exponent": 1.1,
    "free_contacts_median_s": 5,
}
ROBOTS = ("mini_cheetah", str(HERE.parents[1] / "examples" / "my_robot.urdf"))
STAGES = ("kkt", "knots", "quadruped", "littledog", "gaits", "free")


def linear_seconds(
    program: Program, x0: np.ndarray, solver: str, iterations: int, functions=None
) -> tuple[float, int, float]:
    """Processor time in IPOPT's linear systems [s], iterations, the last objective."""
    with tempfile.TemporaryDirectory() as folder:
        log = Path(folder) / "ipopt.txt"
        raw = solve_exact(
            program,
            x0,
            assembled=functions,
            options={
                "linear_solver": solver,
                "max_iter": iterations,
                "output_file": str(log),
                "file_print_level": 5,
                "print_timing_statistics": "yes",
            },
        )
        text = log.read_text()
    found = re.search(r"PDSystemSolverTotal\.*:\s+([\d.]+)", text)
    return float(found[1]), len(raw.log["obj"]) - 1, raw.log["obj"][-1]


def kkt(quick: bool) -> dict:
    """The same iterations by both linear solvers, least of some repeats."""
    problem = GaitProblem(frequency=10, surface="card", knots=21 if quick else 51)
    guess = simulated_gait(problem)
    _, program = gait_program(problem, guess.q[-1])
    x0, functions = packed(program, guess), assemble(program)
    out: dict = {}
    for solver in ("structured", "mumps") * (1 if quick else 2):
        limit = 10 if quick else 60
        seconds, count, objective = linear_seconds(
            program, x0, solver, limit, functions
        )
        row = {"seconds": seconds, "iterations": count, "objective": objective}
        if solver not in out or seconds < out[solver]["seconds"]:
            out[solver] = row
    ours, mumps = out["structured"], out["mumps"]
    each = [row["seconds"] / row["iterations"] for row in (mumps, ours)]
    return {
        "kkt": out,
        "kkt_ms_hamr": 1e3 * each[1],
        "kkt_vs_mumps_ratio": each[0] / each[1],
    }


def knots(quick: bool) -> dict:
    """Seconds an iteration over the number of knots."""
    counts = (11, 51, 101) if quick else (11, 51, 101, 201, 401)
    seconds: dict = {}
    with tempfile.TemporaryDirectory() as folder:
        for count in counts:
            problem, walk = walks.quadruped(count, Path(folder))
            x0 = walks.first_guess(walk, problem.program)
            runs = [
                linear_seconds(problem.program, x0, "structured", 8, problem.functions)
                for _ in range(3)
            ]
            # The first run finds the order of elimination; the others know it.
            seconds[count] = min(t / max(n, 1) for t, n, _ in runs)
    sizes = np.log(np.array(counts) - 1)
    exponent = np.polyfit(sizes, np.log(list(seconds.values())), 1)[0]
    return {"knots_s": seconds, "knots_exponent": exponent}


def quadruped(quick: bool) -> dict:
    """The walk from ten starts."""
    with tempfile.TemporaryDirectory() as folder:
        problem, walk = walks.quadruped(15, Path(folder))
    first = walks.first_guess(walk, problem.program)
    attempts = [
        problem.attempt("exact", walks.start(problem.program, first, seed), 60.0)
        for seed in range(3 if quick else 10)
    ]
    return {
        "quadruped_s": statistics.median(a.cpu_seconds for a in attempts),
        "quadruped_solved": sum(a.success for a in attempts),
        "quadruped_iterations": statistics.median(a.iterations for a in attempts),
    }


def littledog(quick: bool) -> dict:
    """The step-up on the authors' terrain."""
    folder = dog.data_folder(None)
    found = dog.starts("authors", 2 if quick else 12, folder=folder)
    return {
        "littledog_median_s": found.median_seconds,
        "littledog_valid_of_12": found.num_feasible,
        "littledog_best": found.best.objective,
    }


def gaits(quick: bool) -> dict:
    """HAMR's plans, each from its problem to its result."""
    problems = [
        GaitProblem(
            frequency=frequency,
            surface=surface,
            stride=5e-3 if (frequency, surface) == (30, "teflon") else 10e-3,
        )
        for frequency in (2, 10, 30)
        for surface in ("teflon", "card", "sandpaper")
    ]
    problems += [JumpProblem()]
    rows: dict = {}
    for problem in problems[:1] if quick else problems:
        began = time.process_time()
        result = plan(problem)
        rows[problem.name] = {
            "seconds": time.process_time() - began,
            "verdict": str(result.verdict),
            "objective": result.metrics["objective"],
        }
        print(f"{problem.name}: {rows[problem.name]}", flush=True)
    each = [row["seconds"] for row in rows.values()]
    walking = each[:-1] if len(each) > 1 else each
    return {
        "gaits": rows,
        "hamr_gait_median_s": statistics.median(walking),
        "hamr_gait_slowest_s": max(walking),
        "hamr_all_s": sum(each),
    }


def free(quick: bool, robots: Sequence[str] = ROBOTS) -> dict:
    """A walk of half the robot's height with free contacts, judged as ever."""
    rows: dict = {}
    for robot in robots[:1] if quick else robots:
        began = time.process_time()
        problem = LocomotionProblem(robot, contacts="free")
        result = plan_locomotion(problem, time_limit=300)
        rows[robot] = {
            "seconds": time.process_time() - began,
            "verdict": str(result.verdict),
            "message": result.message,
            "iterations": sum(s["iterations"] for s in result.metrics["stages"]),
        }
        print(f"{robot}: {rows[robot]}", flush=True)
    each = [row["seconds"] for row in rows.values()]
    return {
        "free_contacts": rows,
        "free_contacts_median_s": statistics.median(each),
        "free_contacts_slowest_s": max(each),
        "free_contacts_solved": sum(r["verdict"] == "success" for r in rows.values()),
        "free_contacts_robots": len(rows),
    }


def main(argv: Sequence[str] | None = None) -> dict:
    """Runs the benchmark; prints a table and one JSON object, and returns it."""
    parser = Measurement(__doc__, quick="kkt and knots, smaller")
    parser.add_argument("--only", nargs="+", choices=STAGES, help="some of the stages")
    parser.add_argument(
        "--linear-solver", choices=("mumps", "structured"), default="structured"
    )
    parser.add_argument(
        "--robots", nargs="+", default=ROBOTS, help="files or names, for `free`"
    )
    args = parser.parse_args(argv)
    stages = args.only or (STAGES[:2] if args.quick else STAGES)
    result: dict = {"linear_solver": args.linear_solver}
    # Whatever solves a program within the stages takes it.
    with patch.dict(ipopt_exact.DEFAULTS, linear_solver=args.linear_solver):
        for stage in stages:
            own = {"robots": args.robots} if stage == "free" else {}
            result |= globals()[stage](args.quick, **own)
    table = Table("figure", "measured", "target")
    for name, target in TARGETS.items():
        if name in result:
            table.add_row(name, f"{result[name]:.3g}", f"{target:g}")
    Console().print(table)
    return parser.report(result)


if __name__ == "__main__":
    main()
