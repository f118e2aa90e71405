"""Mathematical programs with complementarity constraints (MPCC) of Drake's users.

    prog.AddLinearComplementarityConstraint(M, q, x)         # 0 <= x _|_ M x + q >= 0
    add_complementarity(prog, height, force, "contact")      # 0 <= G(x) _|_ H(x) >= 0
    result = ComplementaritySolver().Solve(prog, guess)

No point of such a program satisfies a constraint qualification, since G_i H_i <= 0 has
no interior, so solvers of ordinary programs fail or stop anywhere. As contact in our
plans, it is solved in two steps.

1. Two **ladders** of programs, each from the answer of the one before. The products'
   bound is lowered (Scholtes, SIAM J. Optim. 11, 2001),

       min f(x)    with    G, H >= 0,    G_i H_i <= t,    t = 1, 0.1, ...

   and slacks are driven to zero by an exact penalty (Anitescu, SIAM J. Optim. 15, 2005;
   Leyffer, Lopez-Calva, Nocedal, SIAM J. Optim. 17, 2006):

       min f(x) + w sum s    with    G, H, s >= 0,    G_i H_i <= s_i,    w = 1, 10, ...

   They may end in different optima; the lower one is the answer.
2. **Branches**: the smaller side of every pair is held at zero and the product left
   out, which is an ordinary program and solved to rounding (to :data:`NARROW` of the
   tolerance where equations outnumber the variables). A pair with both sides at
   zero, whose multiplier says that the cost falls on its other branch, is moved there
   if that program has a lower optimum. Where none is left the answer is stationary in
   the sense of Bouligand (B-stationary) if its constraints' gradients are independent.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import casadi as ca
import numpy as np
from pydrake.solvers import ExpressionConstraint, MathematicalProgram
from pydrake.symbolic import Expression

from drakebots.core.checks import check_value, positive
from drakebots.core.errors import InvalidInput
from drakebots.core.run import Verdict
from drakebots.trajopt.program import Block, Group, Program, Term
from drakebots.trajopt.solvers.exact_solver import ExactIpoptResult, ExactIpoptSolver
from drakebots.trajopt.solvers.ipopt_exact import Raw
from drakebots.trajopt.solvers.penalty import Clock, near, solve_penalty_continuation
from drakebots.trajopt.solvers.read_back import ReadBack, pair_bounds
from drakebots.trajopt.solvers.solve import Solution, solve

WEIGHTS = (1.0, 10.0, 100.0, 1e3, 1e4, 1e5, 1e6)
"""Weights of the penalty, in the units of the cost over those of the products."""

RELAXED = (1.0, 0.1, 1e-2, 1e-3, 1e-4, 1e-5, 1e-6, 1e-7)
"""Bounds of the products, where no weight suffices."""

OPTIONS: dict[str, Any] = {"tol": 1e-8, "acceptable_iter": 0, "max_iter": 500}
"""Options of IPOPT for all programs. Nothing is acceptable but an optimum."""

AGAIN = near(1e-4, 1e-6)
"""Options beside these for a start at the answer of another program."""

NARROW = 1e-3
"""Room of sides that are held at zero, as a share of the tolerance, where equations
outnumber the variables: IPOPT refuses such programs, though they may agree."""

BOTH = 1e-5
"""A pair whose sides are both smaller than this may belong to either branch."""


def add_complementarity(
    prog: MathematicalProgram,
    first: Sequence[Expression],
    second: Sequence[Expression],
    name: str = "",
):
    """Adds pairs 0 <= first _|_ second >= 0 to a program.

    The constraint has the rows first >= 0, second >= 0 and first_i second_i <= 0, which
    every solver of Drake's takes that takes nonlinear constraints.

    Args:
        prog: the program.
        first, second: the sides, symbolic, of the same number.
        name: name of the pairs in reports.

    Returns:
        The binding.

    Raises:
        InvalidInput: for sides of different lengths, or none.
    """
    sides = [np.array(side, dtype=object).ravel() for side in (first, second)]
    if len(sides[0]) != len(sides[1]) or not len(sides[0]):
        raise InvalidInput(
            f"complementarity {name}: {len(sides[0])} expressions beside "
            f"{len(sides[1])}; give as many on each side, at least one"
        )
    G, H = ([Expression(0.0) + e for e in side] for side in sides)
    rows = np.array([*G, *H, *(g * h for g, h in zip(G, H))])
    evaluator = ExpressionConstraint(rows, *pair_bounds(len(G)))
    binding = prog.AddConstraint(evaluator, evaluator.vars())
    binding.evaluator().set_description(name)
    return binding


@dataclass(frozen=True)
class ComplementarityDetails:
    """The details in `result.get_solver_details()`.

    Attributes:
        status: outcome of the solve, in one line; names the worst rows of a failure.
        programs: number of programs that were solved.
        residuals: the five largest violations of rows and bounds, by name.
        pairs: for every pair, in the order of the program, 0 where its first side is
            held at zero, 1 where its second one is.
        multipliers: multipliers of the rows (IPOPT's sign) on the answer's branch.
    """

    status: str
    programs: int
    residuals: Mapping[str, float]
    pairs: np.ndarray
    multipliers: np.ndarray | None = field(repr=False)


class ComplementarityResult(ExactIpoptResult):
    """A MathematicalProgramResult with :class:`ComplementarityDetails`."""

    name = "Complementarity"


class ComplementaritySolver(ExactIpoptSolver):
    """Solves programs with complementary pairs (see the module).

    A program must have pairs; all else in it may be what :class:`.ExactIpoptSolver`
    takes. Options under the id "Complementarity" are IPOPT's, for every program on the
    way, but "max_wall_time", which is that of all: it ends the search for a lower
    optimum where there is one, and else the solve. A failed solve returns the best
    point, marked.

    Args:
        tolerance: largest violation of an answer, products G_i H_i included.
        weights: weights of the penalty.
    """

    _result = ComplementarityResult

    def __init__(self, *, tolerance: float = 1e-6, weights: Sequence[float] = WEIGHTS):
        check_value("tolerance", tolerance, positive())
        if not len(weights):
            raise InvalidInput("weights: give one or more")
        for weight in weights:
            check_value("weight", weight, positive())
        ExactIpoptSolver.__init__(self)
        self.tolerance, self.weights = tolerance, tuple(weights)

    def _answer(
        self, read: ReadBack, x0: np.ndarray, **how: Any
    ) -> tuple[Raw, ComplementarityDetails]:
        if not len(read.pairs):
            raise InvalidInput(
                "the program has no complementary pairs: use add_complementarity or "
                "AddLinearComplementarityConstraint, or solve it by ExactIpoptSolver"
            )
        search = _Search(self, read, **how)
        raw = search.run(x0)
        return raw, search.details(raw)


class _Search:
    """One solve: the ladder, then branches."""

    def __init__(self, solver, read: ReadBack, options, monitor):
        self.tolerance, self.weights = solver.tolerance, solver.weights
        self.program, self.pairs = read.program, read.pairs
        self.options = OPTIONS | options
        self.clock = Clock(self.options.pop("max_wall_time", None))
        self.solve = partial(solve, monitor=monitor)
        self.programs, self.stopped = 0, ""
        # 0 or 1: the side of each pair that is held at zero on the best branch.
        self.sides: np.ndarray | None = None

    def run(self, x0: np.ndarray) -> Raw:
        """The best point as a solver's output."""
        x0 = np.clip(x0, self.program.x_lower, self.program.x_upper)
        best = ladder = None
        for rungs, build in (
            (RELAXED, lambda most: self._slackened(0.0, most)),
            (self.weights, lambda weight: self._slackened(weight, np.inf)),
        ):
            if self.stopped:
                break
            before, last = self.sides, self._ladder(x0, rungs, build)
            ladder = min(filter(None, (ladder, last)), key=self._violation)
            other = self._on_branches(last)
            if other and (best is None or self._lower(other, best)):
                best = other
            else:
                self.sides = before
        optimal = best is not None
        if best is None:
            status, x = ladder.status, ladder.x[: self.program.num_variables]
            feasible = self._violation(ladder) <= self.tolerance
            if feasible:
                status = "Feasible_Point_Found"
            elif status == "Solve_Succeeded":
                status = "Infeasible_Problem_Detected"
            best = Raw(x, status, feasible, ladder.log, ladder.seconds)
            optimal = feasible and ladder.ok
        if self.stopped and not (optimal and self.stopped == Verdict.TIME_LIMIT):
            best = replace(best, status=self.stopped, success=False)
        return best

    def _lower(self, one: Raw, other: Raw) -> bool:
        """Whether an optimum is lower than another by more than rounding."""
        cost, most = (self.program.objective(each.x) for each in (one, other))
        return cost < most - 1e-8 * max(1.0, abs(most))

    # ---------------------------------------------------------------- ladder
    def _ladder(
        self, x0: np.ndarray, rungs: Sequence[float], build: Callable[[float], Program]
    ) -> Solution:
        """The least violating answer of all rungs, which end where there is one."""
        products = self.program.values(x0)[self.pairs[:, 2]]
        # Slacks > 0, so that the guess does not count as an answer.
        slacks = np.maximum(products, max(1e-2, 2 * self.tolerance))
        found: list[Solution] = []

        def solved(program: Program, x: np.ndarray, *, options, **_) -> Solution:
            found.append(self._solved(program, x, options))
            return found[-1]

        solve_penalty_continuation(
            lambda rung: (None, build(rung)),
            rungs,
            lambda _: np.append(x0, slacks),
            solved,
            options=lambda _, x, later: (AGAIN if later else {}) | self.options,
            done=lambda _: self._violation(found[-1]) <= self.tolerance,
            clock=Clock(),
        )
        return min(found, key=self._violation)

    def _solved(self, program: Program, x: np.ndarray, options) -> Solution:
        left = self.clock.left and max(self.clock.left, 1e-3)
        found = self.solve(program, x, options=options, time_limit=left)
        self.programs += 1
        if found.verdict in (Verdict.INTERRUPTED, Verdict.TIME_LIMIT):
            self.stopped = found.verdict.value
        return found

    def _violation(self, solution: Solution) -> float:
        """Largest violation of the program itself, products included."""
        x = solution.x[: self.program.num_variables]
        return max(self.program.residuals(x).values(), default=0.0)

    def _slackened(self, weight: float, most: float) -> Program:
        """The program with slacks 0 <= s <= most on its products, penalized."""
        base, count = self.program, len(self.pairs)
        s, w = ca.SX.sym("s"), ca.SX.sym("w")
        n, bounds = base.num_variables, np.ones((1, count))
        labels = tuple(base.rows["rows"].labels[i] for i in self.pairs[:, 2])
        slacks = Group("s", n, 1, labels, 0.0 * bounds, most * bounds, np.ones(count))
        columns, one = n + np.arange(count)[:, None], np.ones(1)
        minus = Block("minus_slack", {"s": s}, {"product": -s})
        cost = Block("slack_cost", {"s": s}, {"slack": w * s}, w)
        none = np.zeros((count, 0))
        return replace(
            base,
            variables={**base.variables, "s": slacks},
            terms=(*base.terms, Term(minus, columns, self.pairs[:, 2:], one, none)),
            costs=(*base.costs, Term(cost, columns, None, one, weight * bounds.T)),
        )

    # -------------------------------------------------------------- branches
    def _on_branches(self, ladder: Solution) -> Raw | None:
        """The best optimum of a branch; None where no branch has been solved."""
        if self.stopped:
            return None
        x = ladder.x[: self.program.num_variables]
        g = self.program.values(x)
        sides = np.argmin(np.abs(g[self.pairs[:, :2]]), axis=1)
        best = self._branch(x, sides)
        if best is None:
            return None
        self.sides = sides
        tried = {sides.tobytes()}
        for _ in range(4 * len(self.pairs)):
            # A positive multiplier: the cost falls as the side that is held rises.
            held = self.pairs[np.arange(len(sides)), self.sides]
            slopes = best.multipliers[held]
            g = self.program.values(best.x)
            free = (np.abs(g[self.pairs[:, :2]]) < BOTH).all(axis=1)
            slopes = np.where(free, slopes, 0.0)
            for i in np.argsort(-slopes):
                sides = self.sides.copy()
                sides[i] = 1 - sides[i]
                new = sides.tobytes() not in tried
                if slopes[i] > 1e-6 and new and not self.stopped:
                    break
            else:
                return best
            tried.add(sides.tobytes())
            other = self._branch(best.x, sides)
            if other is not None and self._lower(other, best):
                best, self.sides = other, sides
        return best

    def _branch(self, x: np.ndarray, sides: np.ndarray) -> Raw | None:
        """The optimum where these sides are zero; None where it was not found."""
        rows = self.program.rows["rows"]
        upper = rows.upper.copy()
        upper[0, self.pairs[:, 2]] = np.inf
        equal = np.count_nonzero(rows.lower == upper) + len(sides)
        # Fixed variables count: where they make the difference, IPOPT frees them.
        room = NARROW * self.tolerance if equal > self.program.num_variables else 0.0
        upper[0, self.pairs[np.arange(len(sides)), sides]] = room
        program = replace(self.program, rows={"rows": replace(rows, upper=upper)})
        found = self._solved(program, x, AGAIN | self.options)
        if not found.ok or self._violation(found) > self.tolerance:
            return None
        x, multipliers = np.array(found.x), found.multipliers
        return Raw(x, found.status, True, found.log, found.seconds, *multipliers)

    def details(self, raw: Raw) -> ComplementarityDetails:
        """The details of the result."""
        base, g = self.program, self.program.values(raw.x)
        x_excess = np.maximum(base.x_lower - raw.x, raw.x - base.x_upper)
        excess = np.append(np.maximum(base.lower - g, g - base.upper), x_excess)
        names = base.rows["rows"].labels + base.variables["x"].labels
        worst = [k for k in np.argsort(-excess)[:5] if excess[k] > 0]
        residuals = {names[k]: float(excess[k]) for k in worst}
        status = f"{raw.status} after {self.programs} programs"
        if self.stopped and raw.success:
            status += "; the time limit ended the search for a lower optimum"
        if not raw.success:
            worst = ", ".join(f"{k} = {v:.2g}" for k, v in residuals.items())
            status += f"; worst: {worst}; try another guess or other scales"
        sides = self.sides
        if sides is None:
            sides = np.argmin(np.abs(g[self.pairs[:, :2]]), axis=1)
        return ComplementarityDetails(
            status, self.programs, residuals, sides, raw.multipliers
        )
