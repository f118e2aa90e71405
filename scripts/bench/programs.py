"""Every planner's program, opened and solved by our solvers and by Drake's.

python scripts/bench/programs.py                 # an hour and a half
python scripts/bench/programs.py --quick         # the hopper, ours and SNOPT
python scripts/bench/programs.py walk beetle     # programs by name
python scripts/bench/programs.py --time-limit 600

Each solver starts from the planner's own guess, with derivatives of the same blocks:
"exact" is IPOPT with exact Hessians, "mumps" the same with MUMPS for its linear
systems, "snopt" and "ipopt" Drake's. All solve one program: the first of a ladder,
which the planner solves first. A row says how far a solver came within the limit; the
infeasibility is the largest of scaled rows.

snopt_median_ratio is SNOPT's time over the faster of ours, where both solved;
round_trips_equal counts planners' own plans that their programs make again to 1e-9,
own_terms_hold terms of one's own that are met to 1e-6.

JSON: programs_open, exact_solved, mumps_solved, snopt_solved, ipopt_solved,
snopt_median_ratio, round_trips_equal, own_terms_hold, rows.
"""

from __future__ import annotations

import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import program_robots
from measurement import Measurement

from drakebots import hamr, quads, voxels
from drakebots.cli.output import print_rows
from drakebots.robots.hamr import GaitProblem, JumpProblem
from drakebots.robots.quads.robot import settled_state
from drakebots.robots.quads.space_time import SpaceTime, plan_space_time
from drakebots.robots.quads.steps import StepsProblem
from drakebots.trajopt import PlanProgram
from drakebots.trajopt.contact_implicit import ContactSystem, open_program
from drakebots.trajopt.locomotion import (
    Goal,
    Hop,
    LocomotionProblem,
    LocomotionWeights,
    Series,
    Walk,
    plan_locomotion,
)
from drakebots.trajopt.solvers import solve

ROOT = Path(__file__).parents[2]
sys.path.append(str(ROOT / "scripts" / "papers" / "littledog"))

import littledog_program  # noqa: E402
from littledog_stepup import data_folder  # noqa: E402

SOLVERS = ("exact", "mumps", "snopt", "ipopt")
HOLDS = 1e-6
"""Largest violation of a term of one's own [m]."""


@cache
def _file(name: str) -> Path:
    """A robot of program_robots as a file."""
    folder = Path(tempfile.mkdtemp())
    text = getattr(program_robots, f"{name}_urdf")()
    return program_robots.written(folder, name, text)


def _hop(height: float, **options) -> LocomotionProblem:
    return LocomotionProblem(_file("hopper"), Hop(height), knots=13, **options)


@cache
def _space_time(name: str, motion: str) -> SpaceTime:
    return quads.Problem(name, motion).program()


@dataclass(frozen=True)
class Opened:
    """A program that no problem of a planner's opens, and the planner's own answer to
    it, in its decision variables."""

    mathematical_program: Callable[[], PlanProgram]
    answer: Callable[[PlanProgram], np.ndarray]


@cache
def _step() -> Opened:
    """The 20th step of the beetle's walk, from a robot that stands still."""
    problem = quads.Problem("beetle", "walk")
    motion = _space_time("beetle", "walk").mathematical_program()
    motion, planner = motion.plan(motion.solve()).data, quads.step_planner(problem)
    steps = StepsProblem(motion.position.values, motion.contact.values)
    state = settled_state(planner.stepper, steps.q_ref[0])
    memory = planner.start(state)
    for k in range(20):
        made = planner.step(state, memory, steps.goal(k))
        state, memory, step = made.state, made.memory, (state, memory, steps.goal(k))

    def answer(program: PlanProgram) -> np.ndarray:
        return program.program.pack({"torque": made.qpcc.torques})

    return Opened(lambda: planner.mathematical_program(*step), answer)


@cache
def _littledog() -> Opened:
    """LittleDog's step with the sides of its edge decided, from the authors' guess."""
    folder = data_folder(None)
    authors, feet = littledog_program.authors_program(folder)
    x = littledog_program.guess(authors, folder, seed=0)
    sides = littledog_program.sides_of(feet, authors.view(x)["q"])
    first = littledog_program.stages(folder, sides)[0]
    terrain = littledog_program.terrain_named("authors")
    system = ContactSystem(littledog_program.robot(folder), terrain)

    def opened() -> PlanProgram:
        return open_program(system, first.program, x, lambda s: s, first.options)

    def answer(program: PlanProgram) -> np.ndarray:
        return solve(first.program, x, options=first.options).x

    return Opened(opened, answer)


PROBLEMS: dict[str, Callable[[], Any]] = {
    "hopper": lambda: _hop(0.08),
    "hopper free": lambda: _hop(
        0.05, contacts="free", weights=LocomotionWeights(slack=(1.0,))
    ),
    "walk": lambda: LocomotionProblem(_file("quadruped"), Walk(0.15)),
    "mini_cheetah": lambda: LocomotionProblem("mini_cheetah", Walk(0.3)),
    "turn": lambda: LocomotionProblem("mini_cheetah", Goal(turn=0.4)),
    "series": lambda: LocomotionProblem(
        "mini_cheetah", Series([Walk(0.2), Goal(turn=0.5), Walk(0.1)])
    ),
    "hamr gait": lambda: GaitProblem(frequency=10),
    "hamr jump": lambda: JumpProblem(),
    "voxel": lambda: voxels.Problem([voxels.Target("foot", "x", 3e-3)]),
    "beetle": lambda: _space_time("beetle", "walk"),
    "monster": lambda: _space_time("monster", "trot"),
    "my_robot": lambda: LocomotionProblem(ROOT / "examples/my_robot.urdf", Walk(0.3)),
    "step": _step,
    "littledog": _littledog,
}
QUICK = ("hopper",)


def height(program: PlanProgram, result, knot: int) -> float:
    """Height of the centre of mass in an answer [m]."""
    expression = program.com(knot)[2]
    return float(result.GetSolution(expression).Evaluate())


def row_of(
    name: str, solver: str, program: PlanProgram, result, seconds: float
) -> dict:
    """One row of the table."""
    solution = result.get_solver_details()
    return {
        "program": name,
        "variables": program.program.num_variables,
        "solver": solver,
        "solved": result.is_success(),
        "s": round(seconds, 2),
        "iterations": solution.iterations,
        "objective": solution.objective,
        "infeasibility": max(solution.residuals.values()),
        "status": solution.status,
    }


def round_trip(name: str, limit: float) -> float:
    """Largest difference between the planner's own plan and what its program makes of
    that, by its decision variables or, where these are those of another program, by
    solving again; relative to the largest number of each kind."""
    problem = PROBLEMS[name]()
    if isinstance(problem, Opened):
        program = problem.mathematical_program()
        x, solved = problem.answer(program), program.solve(time_limit=limit)
        found = solved.get_solver_details()
        size = program.program.x_scale
        return float(np.abs((found.x - x) / size).max() / np.abs(x / size).max())
    if isinstance(problem, LocomotionProblem):
        plan = plan_locomotion(problem, time_limit=limit)
        program = problem.mathematical_program()
        again = program.plan(program.solve(time_limit=limit))
    elif isinstance(problem, SpaceTime):
        plan = plan_space_time(problem, time_limit=limit).result()
        program = problem.mathematical_program(start=plan)
        again = program.plan(program.lowered.values(program.guess))
    elif isinstance(problem, voxels.Problem):
        plan, program = voxels.plan(problem), problem.mathematical_program()
        again = program.plan(program.lowered.values(program.guess))
    else:
        plan = hamr.plan(problem)
        program = problem.mathematical_program(start=plan)
        again = program.plan(program.lowered.values(program.guess))
    assert plan.kind == again.kind and plan.verdict == again.verdict, again.message
    numbers = [n for n in plan.data if plan.data[n].dtype.kind == "f"]
    pairs = [(plan.data[n].values, again.data[n].values) for n in numbers]
    gaps = [
        np.nanmax(np.abs(a - b), initial=0.0) / np.nanmax(np.abs(a), initial=1e-12)
        for a, b in pairs
    ]
    return float(max(gaps))


def own_term(program: PlanProgram, result, knot: int | None, limit: float) -> float:
    """Violation of a bound on the centre of mass that the free answer breaks by a
    hundredth [m]; of half the controls [m], or of a step's torques [N m]. Infinite
    where nothing was found."""
    if knot is None:
        (name,) = program.program.variables
        most = 0.5 * np.abs(program.values(result, name)).max()
        for u in program[name].ravel():
            program.prog.AddLinearConstraint(u, -most, most)
        result = program.solve(time_limit=limit)
        return max(np.abs(program.values(result, name)).max() - most, 0.0)
    least = 1.01 * height(program, result, knot)
    program.prog.AddLinearConstraint(program.com(knot)[2] >= least)
    result = program.solve(time_limit=limit)
    if not result.is_success():
        return np.inf
    return max(least - height(program, result, knot), 0.0)


def solve_all(name: str, solvers: Sequence[str], limit: float) -> tuple[list, dict]:
    """The rows of a program, and what was found of its answer by "exact"."""
    rows, found = [], {}
    for solver in solvers:
        program = PROBLEMS[name]().mathematical_program()
        knot = None
        if program.bodies is not None:
            knot = program.program.variables["q"].count // 2
            program.com(knot)
        began = time.perf_counter()
        how = {"options": {"linear_solver": solver}} if solver == "mumps" else {}
        solver_name = "exact" if how else solver
        result = program.solve(solver_name, time_limit=limit, **how)
        seconds = time.perf_counter() - began
        rows.append(row_of(name, solver, program, result, seconds))
        print(rows[-1], flush=True)
        if solver == "exact":
            found["round trip"] = round_trip(name, limit)
            found["own term"] = own_term(program, result, knot, limit)
            print(name, found, flush=True)
    return rows, found


def main(argv: Sequence[str] | None = None) -> dict:
    """Solves all programs; prints a table and the JSON line."""
    measurement = Measurement(__doc__, quick="the hopper, ours and SNOPT")
    measurement.add_argument("programs", nargs="*", metavar="PROGRAM")
    measurement.add_argument("--time-limit", type=float, default=300.0, metavar="S")
    args = measurement.parse_args(argv)
    names = args.programs or (QUICK if args.quick else tuple(PROBLEMS))
    if unknown := set(names) - set(PROBLEMS):
        measurement.error(f"no program {min(unknown)!r}; choose from {[*PROBLEMS]}")
    rows, found = [], {}
    for name in names:
        more, found[name] = solve_all(
            name, SOLVERS[:3] if args.quick else SOLVERS, args.time_limit
        )
        rows += more
    print_rows("programs", [{k: str(v) for k, v in row.items()} for row in rows])

    def seconds(name: str, *solvers: str) -> float:
        mine = [r for r in rows if r["program"] == name and r["solver"] in solvers]
        return min((r["s"] for r in mine if r["solved"]), default=np.inf)

    def held(what: str, most: float) -> int:
        return sum(bool(f[what] <= most) for f in found.values())

    ratios = [seconds(n, "snopt") / seconds(n, *SOLVERS[:2]) for n in names]
    ratios = [ratio for ratio in ratios if np.isfinite(ratio)]
    of = {s: sum(r["solved"] for r in rows if r["solver"] == s) for s in SOLVERS}
    return measurement.report(
        {
            "programs_open": len(names),
            "exact_solved": of["exact"],
            "mumps_solved": of["mumps"],
            "snopt_solved": of["snopt"],
            "ipopt_solved": of["ipopt"],
            "snopt_median_ratio": statistics.median(ratios) if ratios else None,
            "round_trips_equal": held("round trip", 1e-9),
            "own_terms_hold": held("own term", HOLDS),
            "rows": rows,
        }
    )


if __name__ == "__main__":
    main()
