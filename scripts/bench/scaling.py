"""Growth of a plan's cost with its knots and with the robot's coordinates.

For robots of 5 to 38 coordinates (a planar hopper, a quadruped without and
with hip roll, HAMR-VI) and 11 to 101 knots the contact-implicit program of a
walk is built, and two times are taken:

    evaluation  one gradient, Jacobian and Hessian of the Lagrangian, by
                themselves, at random points near the first guess
    iteration   of IPOPT from the first guess, everything included: derivatives,
                factorization by MUMPS, line search; mean of the first few

and the exponent p of time = c (N - 1)^p is fitted over the knots; for the hopper's
predictive control, three Newton steps over four times as many knots, too. The robots
but HAMR are those of the tests. Derivatives are interpreted and run on one
thread, so that machines with and without a compiler compare.

python scripts/bench/scaling.py            # all, some minutes
python scripts/bench/scaling.py --quick    # two robots, three sizes

JSON: evaluation_exponent_in_coordinates, iteration_exponent_in_coordinates,
hopper_evaluation_exponent_in_knots, quadruped_evaluation_exponent_in_knots,
hopper_control_exponent_in_knots.
"""

from __future__ import annotations

import os
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import program_robots as robots
from measurement import Measurement, figure

from drakebots.control import MpcCost, MpcProblem, MpcSolver, standing
from drakebots.model import Model
from drakebots.multibody import build_robot
from drakebots.robots.hamr.plan import (
    GaitProblem,
    Guess,
    gait_program,
    packed,
    simulated_gait,
)
from drakebots.trajopt.locomotion import (
    OPTIONS,
    LocomotionProblem,
    first_guess,
    locomotion_program,
    stand,
    targets,
)
from drakebots.trajopt.program import assemble
from drakebots.trajopt.solvers import solve_exact

CROUCHED = np.array([0.0, 0.366, 0.0, 0.0, 0.0])
"""Coordinates of the hopper whose control is timed."""

TARGET = 1.2
"""Of the exponent in knots: a block-banded problem costs N to the one."""


def models(folder: Path, quick: bool) -> dict[str, Model]:
    """Robots by name."""
    texts = {
        "hopper": robots.hopper_urdf(),
        "quadruped": robots.quadruped_urdf(),
        "quadruped, hip roll": robots.quadruped_urdf(hip_roll=True),
    }
    found = {
        name: robots.written(folder, name.split(",")[0] + str(i), text)
        for i, (name, text) in enumerate(texts.items())
        if not (quick and "roll" in name)
    }
    return found


def hamr_programs(sizes: Sequence[int]):
    """HAMR's 10 Hz trot on several numbers of knots, from one simulation."""
    fine = simulated_gait(GaitProblem(knots=max(sizes)))
    for knots in sizes:
        plan = GaitProblem(knots=knots)
        time = np.linspace(0, fine.time[-1], knots)
        q = np.column_stack([np.interp(time, fine.time, c) for c in fine.q.T])
        middle = (time[:-1] + time[1:]) / 2
        u = np.column_stack([np.interp(middle, fine.time[:-1], c) for c in fine.u.T])
        _, program = gait_program(plan, q[-1])
        yield knots, program, packed(program, Guess(time, q, u, fine.stride))


def evaluation_ms(functions, program, x0: np.ndarray, calls: int) -> float:
    """One gradient, Jacobian and Hessian [ms], the least of `calls`."""
    rng = np.random.default_rng(0)
    y = x0 / program.x_scale
    multipliers = rng.standard_normal(program.num_rows)
    best = np.inf
    for _ in range(calls):
        point = y + 1e-3 * rng.standard_normal(len(y))
        began = time.perf_counter()
        functions.gradient(point, [])
        functions.jacobian(point, [])
        functions.hessian(point, [], 1.0, multipliers)
        best = min(best, time.perf_counter() - began)
    return 1e3 * best


def iteration_ms(functions, program, x0: np.ndarray, iterations: int) -> float:
    """An iteration of IPOPT from the first guess [ms]."""
    times = []

    def note(iteration) -> bool:
        times.append(time.perf_counter())
        return False

    solve_exact(
        program,
        x0,
        options=OPTIONS | {"max_iter": iterations},
        monitor=note,
        assembled=functions,
    )
    return 1e3 * (times[-1] - times[0]) / (len(times) - 1)


def control_ms(model: Model, knots: int, calls: int) -> float:
    """Three Newton steps of predictive control [ms], the least of `calls` solves."""
    cost = MpcCost(position=20.0, velocity=0.2, effort=1e-3)
    solver = MpcSolver(MpcProblem(build_robot(model), cost, knots=knots))
    at = CROUCHED, np.zeros(len(CROUCHED)), standing
    plan = solver.solve(*at, iterations=3)
    again = (solver.solve(*at, warm=plan, iterations=3) for _ in range(calls))
    return 1e3 * min(plan.seconds for plan in again)


def exponent(knots: Sequence[int], times: Sequence[float]) -> float:
    """p of time = c (N - 1)^p, least squares of logarithms."""
    intervals = np.array(knots) - 1
    return float(np.polyfit(np.log(intervals), np.log(times), 1)[0])


def measure(model: Model, knots: int, quick: bool) -> dict:
    """Sizes and times of the program of one walk."""
    aim = targets(LocomotionProblem(model, knots=knots), stand(model))
    _, program = locomotion_program(aim)
    x0 = first_guess(aim, program)
    return measured(program, x0, knots, aim.standing.system.nq, quick)


def measured(program, x0: np.ndarray, knots: int, coordinates: int, quick: bool):
    """Sizes and times of one program."""
    began = time.perf_counter()
    functions = assemble(program)
    built = time.perf_counter() - began
    return {
        "coordinates": coordinates,
        "knots": knots,
        "variables": program.num_variables,
        "rows": program.num_rows,
        "build_s": built,
        "evaluation_ms": evaluation_ms(functions, program, x0, 3 if quick else 7),
        "iteration_ms": iteration_ms(functions, program, x0, 5 if quick else 20),
    }


def main(argv: Sequence[str] | None = None) -> dict:
    """Runs the benchmark; prints a table and one JSON object, and returns it."""
    parser = Measurement(__doc__, quick="small sizes only")
    args = parser.parse_args(argv)
    sizes = (7, 11, 21) if args.quick else (11, 21, 41, 71, 101)
    before = os.environ.get("DRAKEBOTS_COMPILE")
    os.environ["DRAKEBOTS_COMPILE"] = "0"
    rows, result = [], {}
    try:
        print(
            f"{'robot':<20} {'nq':>3} {'knots':>5} {'variables':>9} {'rows':>6} "
            f"{'build s':>8} {'evaluation ms':>14} {'iteration ms':>13}"
        )
        with tempfile.TemporaryDirectory() as folder:
            for name, model in models(Path(folder), args.quick).items():
                mine = []
                for knots in sizes:
                    row = measure(model, knots, args.quick)
                    mine.append(row)
                    print(_line(name, row), flush=True)
                rows += mine
                result |= _figures(name, mine)
                if name == "hopper":
                    ms = [control_ms(model, 4 * n, 12) for n in sizes]
                    found = exponent([4 * n for n in sizes], ms)
                    result["hopper_control_exponent_in_knots"] = figure(
                        found, "1", TARGET
                    )
        if not args.quick:
            mine = []
            for knots, program, x0 in hamr_programs(sizes):
                mine.append(measured(program, x0, knots, 38, False))
                print(_line("hamr", mine[-1]), flush=True)
            rows += mine
            result |= _figures("hamr", mine)
    finally:
        if before is None:
            del os.environ["DRAKEBOTS_COMPILE"]
        else:
            os.environ["DRAKEBOTS_COMPILE"] = before
    most = max(sizes)
    largest = [row for row in rows if row["knots"] == most]
    for what in ("evaluation", "iteration"):
        result[f"{what}_exponent_in_coordinates"] = figure(
            exponent(
                [row["coordinates"] + 1 for row in largest],
                [row[f"{what}_ms"] for row in largest],
            )
        )
    for key, row in result.items():
        print(f"{key:<45} {row['value']:10.4g} {row['unit']}")
    return parser.report(result)


def _line(name: str, row: dict) -> str:
    return (
        f"{name:<20} {row['coordinates']:>3} {row['knots']:>5} {row['variables']:>9} "
        f"{row['rows']:>6} {row['build_s']:>8.2f} {row['evaluation_ms']:>14.2f} "
        f"{row['iteration_ms']:>13.2f}"
    )


def _figures(name: str, rows: list[dict]) -> dict:
    """Exponents in knots and times at the most knots of one robot."""
    key = name.replace(", ", "_").replace(" ", "_")
    knots, out = [row["knots"] for row in rows], {}
    for what in ("evaluation", "iteration"):
        times = [row[f"{what}_ms"] for row in rows]
        out[f"{key}_{what}_exponent_in_knots"] = figure(
            exponent(knots, times), "1", TARGET
        )
        out[f"{key}_{what}_ms_at_{knots[-1]}_knots"] = figure(times[-1], "ms")
    return out


if __name__ == "__main__":
    main()
