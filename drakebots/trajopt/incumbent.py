"""The best x met so far for a program, while solvers work on it or near it."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from drakebots.trajopt.ipopt_exact import Iteration
from drakebots.trajopt.program import Program

Accept = Callable[[np.ndarray], bool]
"""Whether an x that satisfies the problem counts as an answer."""


class Incumbent:
    """The answer of lowest objective, or the least violation without answers.

    Attributes:
        x: None before the first offer.
        source: who offered it.
        feasible: whether x is an answer.
        objective: of the program at x.
        violation: largest residual at x.
    """

    def __init__(self, program: Program, tolerance: float, accept: Accept | None):
        self.program, self.tolerance, self.accept = program, tolerance, accept
        self.x, self.source = None, ""
        self.feasible, self.objective, self.violation = False, np.inf, np.inf

    def offer_iterate(self, iteration: Iteration, label: str) -> None:
        """Looks closer at what the solver finds nearly feasible."""
        # Scales are of order one: ten tolerances leave room for them.
        if iteration.infeasibility > 10 * self.tolerance:
            return
        # An objective is cheaper than residuals and a verdict.
        if self.feasible and self.program.objective(iteration.x) >= self.objective:
            return
        self.offer(iteration.x, label)

    def offer(self, x: np.ndarray, label: str) -> bool:
        """Takes x if it is better; says whether it is an answer."""
        if not np.isfinite(x).all():
            return False
        violation = worst_residual(self.program, x)[1]
        feasible = violation <= self.tolerance and (
            self.accept is None or bool(self.accept(x))
        )
        objective = self.program.objective(x)
        if self._beats(feasible, objective, violation):
            self.x, self.source = np.array(x), label
            self.feasible, self.objective = feasible, objective
            self.violation = violation
        return feasible

    def _beats(self, feasible: bool, objective: float, violation: float) -> bool:
        if feasible != self.feasible or self.x is None:
            return feasible or self.x is None
        if feasible:
            return objective < self.objective
        return violation < self.violation


def worst_residual(program: Program, x: np.ndarray) -> tuple[str, float]:
    """Name and value."""
    return next(iter(program.residuals(x).items()), ("none", 0.0))
