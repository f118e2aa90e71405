"""Published problems as programs of blocks, and how an answer to one is checked.

    minimise f(x)    subject to    g(x) >= 0,    h(x) = 0,    low <= x <= high,
                                   0 <= G(x) _|_ H(x) >= 0

Pairs G, H (of mathematical programs with complementarity constraints) become what
contact becomes in our plans, with a slack s >= 0 and a penalty that is exact where
the answer has multipliers:

    f(x) + w sum s,    G >= 0,    H >= 0,    G_i H_i <= s_i

The answer is judged without the solver's own figures: its f against the printed one,
its rows, and the optimality conditions (KKT) of the program that was solved.

A module without a command: `scripts/bench/mpcc.py` and tests solve them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import casadi as ca
import numpy as np
from pydrake import symbolic
from pydrake.solvers import MathematicalProgram
from pydrake.symbolic import Expression

from drakebots.trajopt.program import Program, ProgramBuilder, assemble
from drakebots.trajopt.solvers import Raw, add_complementarity, kkt, solve_exact

LINEAR_SOLVERS = ("mumps", "structured") if kkt.available() else ("mumps",)
"""Values of the option linear_solver that must agree with the literature."""

TIGHT = {
    "tol": 1e-9,
    "bound_relax_factor": 1e-10,
    "acceptable_iter": 0,
    "max_iter": 500,
}
"""Options of IPOPT. Bounds are kept to 1e-10: relaxed by more, a penalty of weight w
would gain w times as much. No point is acceptable but an optimum."""

Rows = Callable[[ca.SX], Sequence[ca.SX]]


@dataclass(frozen=True)
class Published:
    """A problem of a collection.

    Attributes:
        name: its name in the collection.
        f: objective of x.
        optimum: the printed optimal value, or the value it was rounded from.
        start: first guess; the collection's unless the problem's comment says so.
        low, high: bounds of x, numbers or one for each variable.
        at_least_0: g of x.
        zero: h of x.
        pairs: (G, H) of x, as a list of pairs.
        printed: half a unit of the last printed digit, 0 for exact values.
        weight: w of the penalty.
    """

    name: str
    f: Callable[[ca.SX], ca.SX]
    optimum: float
    start: Sequence[float]
    low: float | Sequence[float] = -np.inf
    high: float | Sequence[float] = np.inf
    at_least_0: Rows | None = None
    zero: Rows | None = None
    pairs: Callable[[ca.SX], Sequence[tuple[ca.SX, ca.SX]]] | None = None
    printed: float = 0.0
    weight: float = 100.0

    def program(self) -> Program:
        """The program; its variables are "x" and, with pairs, "s"."""
        b = ProgramBuilder(self.name)
        labels = [str(i + 1) for i in range(len(self.start))]
        x = b.add_variables("x", 1, labels, lower=self.low, upper=self.high).indices
        b.cost("f", {"x": x}, lambda x: self.f(x))
        if self.at_least_0 is not None:
            b.constraint(
                "at_least_0",
                {"x": x},
                lambda x: ca.vertcat(*self.at_least_0(x)),
                lower=0.0,
            )
        if self.zero is not None:
            b.constraint(
                "zero",
                {"x": x},
                lambda x: ca.vertcat(*self.zero(x)),
                lower=0.0,
                upper=0.0,
            )
        if self.pairs is not None:
            self._complementarity(b, x)
        return b.build()

    def _complementarity(self, b: ProgramBuilder, x: np.ndarray) -> None:
        count = len(self.pairs(ca.SX.sym("x", len(self.start))))
        labels = [str(i + 1) for i in range(count)]
        s = b.add_variables("s", 1, labels, lower=0.0).indices
        sides = {"G": 0, "H": 1}
        for name, side in sides.items():
            b.constraint(
                name,
                {"x": x},
                lambda x, side=side: ca.vertcat(*(p[side] for p in self.pairs(x))),
                lower=0.0,
            )
        b.constraint(
            "products",
            {"x": x, "s": s},
            lambda x, s: ca.vertcat(*(G * H for G, H in self.pairs(x))) - s,
            upper=0.0,
        )
        b.cost("slack", {"s": s}, lambda s: self.weight * ca.sum1(s))

    def mathematical_program(self) -> MathematicalProgram:
        """The problem in Drake's symbols, its pairs by `add_complementarity`."""
        prog, n = MathematicalProgram(), len(self.start)
        x, symbol = prog.NewContinuousVariables(n, "x"), ca.SX.sym("x", n)
        low, high = (np.broadcast_to(b, n).astype(float) for b in (self.low, self.high))
        prog.AddBoundingBoxConstraint(low, high, x)
        prog.AddCost(to_drake([self.f(symbol)], symbol, x)[0])
        for rows, most in ((self.at_least_0, np.inf), (self.zero, 0.0)):
            for e in [] if rows is None else to_drake(rows(symbol), symbol, x):
                prog.AddConstraint(e, 0.0, most)
        for i, pair in enumerate(self.pairs(symbol) if self.pairs else ()):
            G, H = to_drake(pair, symbol, x)
            add_complementarity(prog, [G], [H], f"pair {i + 1}")
        prog.SetInitialGuess(x, np.array(self.start, float))
        return prog

    def solved_by(self, prog: MathematicalProgram, result) -> bool:
        """Whether an answer to it has the printed optimum and satisfies its rows."""
        error = abs(result.get_optimal_cost() - self.optimum)
        return (
            result.is_success()
            and error <= 1e-6 * max(1.0, abs(self.optimum)) + self.printed
            and not result.GetInfeasibleConstraintNames(prog, 1e-6)
        )

    def guess(self, program: Program) -> np.ndarray:
        """The start; slacks start at 1."""
        parts = {"x": np.reshape(np.array(self.start, float), (1, -1))}
        return program.pack(parts | ({} if self.pairs is None else {"s": 1.0}))


_DRAKE = {
    ca.OP_ADD: lambda a, b: a + b,
    ca.OP_SUB: lambda a, b: a - b,
    ca.OP_MUL: lambda a, b: a * b,
    ca.OP_DIV: lambda a, b: a / b,
    ca.OP_NEG: lambda a: -a,
    ca.OP_SQ: lambda a: a * a,
    ca.OP_TWICE: lambda a: 2 * a,
    ca.OP_INV: lambda a: 1 / a,
    ca.OP_CONSTPOW: symbolic.pow,
    ca.OP_POW: symbolic.pow,
    ca.OP_EXP: symbolic.exp,
}


def to_drake(rows: Sequence[ca.SX], symbol: ca.SX, x: np.ndarray) -> list:
    """CasADi's rows of a symbol as Drake's expressions of variables x."""
    f = ca.Function("f", [symbol], [ca.densify(ca.vertcat(*rows))])
    work, out = {}, [Expression(0.0)] * f.numel_out(0)
    for k in range(f.n_instructions()):
        op, at = f.instruction_id(k), f.instruction_output(k)
        inputs = f.instruction_input(k)
        if op == ca.OP_CONST:
            work[at[0]] = Expression(f.instruction_constant(k))
        elif op == ca.OP_INPUT:
            work[at[0]] = Expression(x[inputs[1]])
        elif op == ca.OP_OUTPUT:
            out[at[1]] = work[inputs[0]]
        else:
            work[at[0]] = _DRAKE[op](*(work[i] for i in inputs))
    return out


def solved(program: Program, x0, linear_solver: str, **options) -> Raw:
    """IPOPT's answer by one of the linear solvers, with :data:`TIGHT` and more options.

    Small problems take no thread but ours.
    """
    settings = TIGHT | {"linear_solver": linear_solver} | options
    return solve_exact(program, x0, options=settings)


def kkt_error(program: Program, raw: Raw) -> dict[str, float]:
    """Errors of the optimality conditions at an answer, from the program's own blocks.

    `stationarity`: |df/dx + (dg/dx)'l + z|, with l, z the multipliers of rows and
    variables, over the larger of 1 and the largest multiplier. `sign`: the largest
    multiplier of a side that has no bound, or of the wrong sign. `product`: the
    largest multiplier times distance to its bound. `violation`: of rows and bounds.
    All scales must be 1.
    """
    assert (program.x_scale == 1).all() and (program.row_scale == 1).all()
    x, rows, bounds = raw.x, raw.multipliers, raw.bound_multipliers
    _, slope = assemble(program).gradient(x, [])
    lagrangian = np.asarray(slope).ravel() + program.jacobian(x).T @ rows + bounds
    multipliers = np.concatenate([rows, bounds])
    size = max(1.0, np.abs(multipliers).max(initial=0.0))
    value = np.concatenate([program.values(x), x])
    low = np.concatenate([program.lower, program.x_lower])
    high = np.concatenate([program.upper, program.x_upper])
    # IPOPT's multipliers are positive at upper and negative at lower bounds.
    up, down = np.maximum(multipliers, 0.0), np.maximum(-multipliers, 0.0)
    held = high - low > 0
    room_up = np.where(np.isfinite(high), high - value, 0.0)
    room_down = np.where(np.isfinite(low), value - low, 0.0)
    no_bound = np.where(np.isinf(high), up, 0.0) + np.where(np.isinf(low), down, 0.0)
    product = np.where(held, np.abs(up * room_up) + np.abs(down * room_down), 0.0)
    excess = np.maximum(low - value, value - high)
    return {
        "stationarity": float(np.abs(lagrangian).max(initial=0.0)) / size,
        "sign": float(no_bound.max(initial=0.0)),
        "product": float(product.max(initial=0.0)),
        "violation": float(max(excess.max(initial=0.0), 0.0)),
    }
