"""Contact-implicit programs by four methods: the gain of blocks and exact Hessians.

python scripts/bench/contact_implicit.py            # a quarter of an hour
python scripts/bench/contact_implicit.py --quick

One program (a quadruped of 14 coordinates walks a cycle), the same starts (the
standing guess and noise by seed), solved by

    recipe  SNOPT, rows and Jacobians from MultibodyPlant_[AutoDiffXd]
    snopt   SNOPT with our blocks
    ipopt   Drake's IPOPT (limited memory) with our blocks
    exact   IPOPT with exact Hessians

A start succeeds when it ends within the limit and its own residuals say so,
whatever the solver's status: every row and bound to 1e-6 (scaled) and contacts
as hard as in plans (slack <= 1e-6 m g l). A start that fails counts with the
limit, or its time if longer, in the medians: they are lower bounds, marked >=,
when a failure is the median. Times are the solver's, all callbacks included,
without building expressions and bindings (once a program for exact, less than
a second a start for the others); derivatives and linear algebra on one thread.

Then LittleDog's step-up (2124 variables): the continuation from --starts starts, one
start of the others on the authors' program. Needs the authors' data.

JSON: exact_vs_recipe_ratio, exact_vs_snopt_ratio, exact_vs_ipopt_ratio, quadruped,
evaluation_ms, recipe_disagreement.
"""

from __future__ import annotations

import os
import statistics
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

# Before anything starts threads: side by side they would blur the times.
os.environ.setdefault("OMP_NUM_THREADS", "1")

import numpy as np
from measurement import Measurement, figure
from rich.console import Console
from rich.table import Table

from drakebots.trajopt.contact_implicit import ContactSystem
from drakebots.trajopt.locomotion import (
    HARD,
    LocomotionProblem,
    Targets,
    first_guess,
    locomotion_program,
    stand,
    targets,
)
from drakebots.trajopt.program import Program, assemble, compile_blocks
from drakebots.trajopt.solvers import TOLERANCE

sys.path.append(str(Path(__file__).parents[1] / "papers" / "littledog"))
import littledog_program as dog
import littledog_stepup as stepup
import program_robots as robots
from autodiff_recipe import Recipe
from solver_attempts import (
    AGREEMENT,
    Problem,
    agreement,
    compare,
    evaluation_ms,
    violation,
)

METHODS = {
    "recipe": "SNOPT, AutoDiffXd",
    "snopt": "SNOPT, our blocks",
    "ipopt": "Drake's IPOPT, our blocks",
    "exact": "exact-Hessian IPOPT",
}
TARGET = 20.0
SLACK_WEIGHT = 100.0
NOISE = 0.02
"""Of the positions in the first guess [rad, l]."""


# ------------------------------------------------------------------- quadruped
def quadruped(knots: int, folder: Path) -> tuple[Problem, Targets]:
    """The walk of the quadruped of program_robots.py, contacts hard."""
    model = robots.written(folder, "quadruped", robots.quadruped_urdf())
    walk = targets(LocomotionProblem(model, knots=knots), stand(model))
    _, target = locomotion_program(walk, slack_weight=SLACK_WEIGHT)
    compile_blocks([t.block for t in (*target.terms, *target.costs)])

    def accept(x: np.ndarray) -> bool:
        hard = target.view(x)["s"].max() <= HARD
        return bool(hard and violation(target, x) <= TOLERANCE)

    functions = assemble(target)
    recipe = Recipe(walk.standing.system)
    return Problem(target, recipe, functions, accept), walk


def start(target: Program, x: np.ndarray, seed: int) -> np.ndarray:
    """A guess with noise on its positions, within bounds."""
    q, x = target.variables["q"].indices, np.array(x)
    x[q] += NOISE * np.random.default_rng(seed).standard_normal(q.shape)
    return np.clip(x, target.x_lower, target.x_upper)


def anywhere(target: Program, x: np.ndarray) -> np.ndarray:
    """A random point near x, all multipliers positive."""
    return x + 0.1 * np.random.default_rng(0).uniform(0.1, 1, len(x))


# ------------------------------------------------------------------- littledog
def littledog(folder: Path) -> tuple[Problem, np.ndarray]:
    """The authors' program, and the recipe for its ground."""
    target, feet = dog.authors_program(folder)
    compile_blocks([t.block for t in (*target.terms, *target.costs)])
    system = ContactSystem(dog.robot(folder), dog.TERRAINS["authors"])
    problem = Problem(
        target,
        Recipe(system),
        assemble(target),
        lambda x: dog.judge(target, feet, x).valid,
    )
    return problem, dog.guess(target, folder, 0)


# ---------------------------------------------------------------------- report
def table(title: str, methods: dict[str, dict]) -> None:
    """One row a method."""
    out = Table(title=title, title_justify="left")
    columns = ("method", "success", "median s", "CPU s", "objective, median", "best")
    for name in columns:
        out.add_column(name, justify="left" if name == "method" else "right")
    for name, figures in methods.items():
        mark = ">= " if figures["lower_bound"] else ""
        out.add_row(
            METHODS.get(name, name),
            f"{figures['success']} of {figures['starts']}",
            f"{mark}{figures['median_s']:.3g}",
            *(
                "–" if figures.get(key) is None else f"{figures[key]:.4g}"
                for key in ("median_cpu_s", "objective", "best_objective")
            ),
        )
    Console().print(out)


def ratio(methods: dict[str, dict], other: str) -> tuple[float | None, bool]:
    """Median of another method over exact's, and whether it is a lower bound."""
    if not {other, "exact"} <= set(methods) or methods["exact"]["lower_bound"]:
        return None, False
    slow = methods[other]
    return slow["median_s"] / methods["exact"]["median_s"], slow["lower_bound"]


def main(argv: Sequence[str] | None = None) -> dict:
    """Runs the benchmark; prints tables and one JSON object, and returns it."""
    parser = Measurement(__doc__, quick="1 start, 7 knots, 3 s")
    parser.add_argument("--seeds", type=int, help="starts (10)")
    parser.add_argument("--knots", type=int, help="of the walk (15)")
    parser.add_argument("--limit", type=float, help="seconds a start (120)")
    parser.add_argument("--methods", nargs="+", choices=METHODS, default=list(METHODS))
    parser.add_argument("--no-littledog", action="store_true", help="quadruped only")
    parser.add_argument("--starts", type=int, default=12, help="LittleDog's (12)")
    parser.add_argument("--littledog-limit", type=float, help="seconds (as --limit)")
    parser.add_argument("--data", help="folder of LittleDog's files")
    args = parser.parse_args(argv)
    seeds, knots, limit = (1, 7, 3.0) if args.quick else (10, 15, 120.0)
    seeds, knots, limit = args.seeds or seeds, args.knots or knots, args.limit or limit
    if min(seeds, args.starts) < 1 or not limit > 0:
        parser.error("seeds, starts and limit must be > 0")
    result: dict = {}
    with tempfile.TemporaryDirectory() as folder:
        problem, walk = quadruped(knots, Path(folder))
    target = problem.program
    first = first_guess(walk, target)
    point = anywhere(target, first)
    error = agreement(problem.recipe, target, point)
    each = evaluation_ms(problem, point)
    starts = {seed: start(target, first, seed) for seed in range(seeds)}
    methods = compare(problem, starts, args.methods, limit)
    table(
        f"Quadruped walk, {knots} knots, {target.num_variables} variables, "
        f"{target.num_rows} rows; {seeds} starts, limit {limit:g} s",
        methods,
    )
    print(
        "a failed start counts with the limit; >= where the median is one. The "
        f"recipe differs from our blocks by {error:.1e} at a random point;\nrows and "
        f"Jacobian of the robot once: recipe {each['recipe']:.1f} ms, blocks from "
        f"Python {each['blocks']:.2f} ms"
    )
    for other in ("recipe", "snopt", "ipopt"):
        value, bound = ratio(methods, other)
        aim = TARGET if other == "recipe" else None
        result[f"exact_vs_{other}_ratio"] = figure(value, "1", aim, lower_bound=bound)
        if value is not None:
            sign = ">= " if bound else ""
            print(f"{METHODS[other]} over exact: {sign}{value:.3g}")
    result["quadruped"] = figure(methods, "s", limit_s=limit, knots=knots)
    result["evaluation_ms"] = figure(each, "ms")
    result["recipe_disagreement"] = figure(error, "1", AGREEMENT)
    if not (args.quick or args.no_littledog):
        result |= _littledog(args, args.littledog_limit or limit)
    return parser.report(result)


def _littledog(args, limit: float) -> dict:
    try:
        folder = stepup.data_folder(args.data)
    except FileNotFoundError as missing:
        print(f"no LittleDog: {missing}", file=sys.stderr)
        return {}
    starts = stepup.starts(
        number=args.starts,
        folder=folder,
        done=lambda seed, c: print(
            f"LittleDog {seed} {c.seconds:.1f} s, "
            f"{'valid' if c.feasible else 'not valid'}, objective {c.objective:.5g}",
            file=sys.stderr,
            flush=True,
        ),
    )
    problem, x0 = littledog(folder)
    point = anywhere(problem.program, x0)
    error = agreement(problem.recipe, problem.program, point)
    each = evaluation_ms(problem, point)
    methods = compare(problem, {0: x0}, args.methods, limit)
    best = starts.best
    answers = [c.objective for c in starts.runs if c.feasible]
    figures = {
        "starts": len(starts.runs),
        "success": starts.num_feasible,
        "median_s": starts.median_seconds,
        "lower_bound": False,
        "objective": statistics.median(answers) if answers else None,
        "best_objective": None if best is None else best.objective,
    }
    named = {f"{METHODS[n]}, directly": found for n, found in methods.items()}
    table(
        f"LittleDog's step-up, {problem.program.num_variables} variables; valid "
        f"answers; limit {limit:g} s directly",
        {"exact-Hessian IPOPT, sides decided": figures, **named},
    )
    print(
        f"the recipe differs from our blocks by {error:.1e}; rows and Jacobian once: "
        f"recipe {each['recipe']:.1f} ms, blocks from Python {each['blocks']:.2f} ms"
    )
    return {
        "littledog_median_s": figure(starts.median_seconds, "s", starts=args.starts),
        "littledog_valid_of_12": figure(starts.num_feasible, "1", starts=args.starts),
        "littledog_best_objective": figure(figures["best_objective"], "1", 52.07),
        "littledog_one_start": figure(methods, "s", limit_s=limit),
        "littledog_evaluation_ms": figure(each, "ms"),
    }


if __name__ == "__main__":
    main()
