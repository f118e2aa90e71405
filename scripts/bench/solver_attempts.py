"""One program solved by several methods from the same starts, each timed.

See contact_implicit.py for the methods and what counts as success.

A module without a command: `contact_implicit.py` runs them.
"""

from __future__ import annotations

import math
import statistics
import sys
import time
from collections.abc import Callable, Sequence
from functools import partial
from typing import NamedTuple

import numpy as np
from autodiff_recipe import Recipe

from drakebots.trajopt.program import Assembled, Program
from drakebots.trajopt.solvers import Compute, Raw, solve_drake, solve_exact

AGREEMENT = 1e-6
"""Of the recipe with our blocks; see `agreement`."""

OPTIMAL = 1e-4
"""Optimality tolerance, scaled, of all four."""

_IPOPT = {"tol": OPTIMAL, "acceptable_tol": OPTIMAL}
OPTIONS = {
    # SNOPT measures violations by the size of x.
    "snopt": {
        "Major optimality tolerance": OPTIMAL,
        "Major feasibility tolerance": 1e-8,
    },
    "ipopt": _IPOPT,
    "exact": _IPOPT,
}

STOPPED = ("Time_Limit", "User_Requested_Stop")
"""Statuses of a solver that hit the limit."""


class Attempt(NamedTuple):
    """One method from one start.

    Attributes:
        seconds, cpu_seconds: of the solver, by the wall clock and of this
            process with building bindings.
        success: see the module.
        objective, violation, slack: where it ended, violation scaled.
        status: the solver's word.
        iterations: of the solver.
    """

    seconds: float
    cpu_seconds: float
    success: bool
    objective: float
    violation: float
    slack: float
    status: str
    iterations: int

    def counted(self, limit: float) -> float:
        """Seconds in the medians."""
        return self.seconds if self.success else max(limit, self.seconds)


Accept = Callable[[np.ndarray], bool]
"""Whether x is an answer."""


class Problem(NamedTuple):
    """A program and what its methods need."""

    program: Program
    recipe: Recipe
    functions: Assembled
    accept: Accept

    def attempt(self, method: str, x0: np.ndarray, limit: float) -> Attempt:
        """Solves from x0."""
        began, cpu = time.perf_counter(), time.process_time()
        raw = self._solve(method, x0, limit)
        cpu = time.process_time() - cpu
        seconds = time.perf_counter() - began - raw.seconds.get("build", 0.0)
        late = seconds >= limit or raw.status in STOPPED
        x, p = raw.x, self.program
        bad = not np.isfinite(x).all()
        return Attempt(
            seconds,
            cpu,
            bool(not (late or bad) and self.accept(x)),
            math.nan if bad else p.objective(x),
            math.inf if bad else violation(p, x),
            math.inf if bad else float(p.view(x)["s"].max()),
            raw.status,
            max((len(column) for column in raw.log.values()), default=0),
        )

    def _solve(self, method: str, x0: np.ndarray, limit: float) -> Raw:
        if method == "exact":
            deadline = time.perf_counter() + limit
            return solve_exact(
                self.program,
                x0,
                options=OPTIONS["exact"],
                assembled=self.functions,
                monitor=lambda _: time.perf_counter() > deadline,
            )
        name = "snopt" if method == "recipe" else method
        solve = partial(solve_drake, options=OPTIONS[name], time_limit=limit)
        if method == "recipe":
            with self.recipe.in_use():
                return solve(self.program, x0, solver=name)
        return solve(self.program, x0, solver=name)


def violation(program: Program, x: np.ndarray) -> float:
    """The largest of rows and bounds, in units of their scales."""
    g = program.values(x)
    rows = np.maximum(program.lower - g, g - program.upper) / program.row_scale
    bounds = np.maximum(program.x_lower - x, x - program.x_upper) / program.x_scale
    return float(max(rows.max(), bounds.max(), 0.0))


def agreement(recipe: Recipe, target: Program, x: np.ndarray) -> float:
    """Largest difference of the recipe's rows and Jacobian from the blocks'.

    Raises:
        SystemExit: when they differ.
    """
    error = recipe.disagreement(target, x)
    if not error <= AGREEMENT:
        raise SystemExit(
            f"{target.name}: the recipe's rows or Jacobian differ from "
            f"ours by {error:.2g}; no times taken"
        )
    return error


def evaluation_ms(problem: Problem, x: np.ndarray) -> dict[str, float]:
    """All rows of the robot and their Jacobian once, by recipe and by blocks,
    as Python calls them [ms]."""
    terms = [t for t in problem.program.terms if t.block.name in problem.recipe.blocks]
    out = {}
    computes = {
        "recipe": lambda block: partial(problem.recipe.dense, block),
        "blocks": lambda block: Compute(block).jacobian,
    }
    for name, make in computes.items():
        functions, taken = [make(t.block) for t in terms], []
        for _ in range(5):
            problem.recipe.seen.clear()
            began = time.perf_counter()
            for term, function in zip(terms, functions):
                for columns, data in zip(term.columns, term.data):
                    function(x[columns], data)
            taken.append(time.perf_counter() - began)
        out[name] = statistics.median(taken) * 1e3
    return out


def line(what: str, a: Attempt) -> str:
    """One attempt, for stderr."""
    word = "success" if a.success else "failed"
    return (
        f"{what:<16} {a.seconds:7.2f} s ({a.cpu_seconds:.2f} s CPU) {word:<8}"
        f"{a.iterations:>5} it  objective {a.objective:<9.5g} violation "
        f"{a.violation:.1e} slack {a.slack:.1e}  {a.status}"
    )


def summary(attempts: Sequence[Attempt], limit: float) -> dict:
    """Figures of one method."""
    counted = [(a.counted(limit), not a.success) for a in attempts]
    order = sorted(counted)
    median = statistics.median(c for c, _ in counted)
    upper = order[len(order) // 2]
    answers = [a.objective for a in attempts if a.success]
    return {
        "starts": len(attempts),
        "success": len(answers),
        "median_s": median,
        "median_cpu_s": statistics.median(a.cpu_seconds for a in attempts),
        "lower_bound": upper[1],
        "objective": statistics.median(answers) if answers else None,
        "best_objective": min(answers, default=None),
        "attempts": [a._asdict() for a in attempts],
    }


def compare(
    problem: Problem, starts: dict[int, np.ndarray], methods: Sequence[str], limit
) -> dict[str, dict]:
    """All methods from every start, one start after the other."""
    attempts: dict[str, list[Attempt]] = {name: [] for name in methods}
    for seed, x0 in starts.items():
        for name in methods:
            attempt = problem.attempt(name, x0, limit)
            attempts[name].append(attempt)
            print(line(f"start {seed} {name}", attempt), file=sys.stderr, flush=True)
    return {name: summary(found, limit) for name, found in attempts.items()}
