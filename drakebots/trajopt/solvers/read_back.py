"""Blocks from a MathematicalProgram, with exact sparse Hessians.

Nonlinear bindings that :func:`.mathematical_program.lower` made find their blocks
again. What a user added in Drake's symbols is translated to CasADi's, and what Drake
knows by coefficients becomes blocks of its own, one for all bindings of the same
expression or sparsity:

    A x    b'x    x'Q x/2 + b'x + c    r(x)

Pairs that complement each other, 0 <= G(x) _|_ H(x) >= 0, become the rows

    G >= 0,    H >= 0,    G_i H_i <= 0

They are Drake's `LinearComplementarityConstraint` (G = x, H = M x + q) and the
constraints of :func:`.complementarity.add_complementarity`, which are such rows.

Every kind of symbolic expression that has a value is translated, step by step as its
`Unapply` takes it apart; formulas (of `if_then_else`) become 0 or 1. Where Drake's
function has a kink or a jump (abs, min, max, floor, ceil, if_then_else), the
derivatives are those of the piece that x lies on. CasADi evaluates both pieces of an
`if_then_else`: one that is not finite where it does not hold spoils the derivatives of
the other.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from functools import reduce
from itertools import combinations_with_replacement
from operator import add, mul

import casadi as ca
import numpy as np
from pydrake.solvers import MathematicalProgram
from pydrake.symbolic import Expression, ExpressionKind, Formula, FormulaKind, Variable

from drakebots.core.errors import InvalidInput
from drakebots.trajopt.program import Block, Group, Program, Term
from drakebots.trajopt.solvers.mathematical_program import Key, Origin, key_of

_REFUSED = """l2norm_costs lorentz_cone_constraints rotated_lorentz_cone_constraints
exponential_cone_constraints positive_semidefinite_constraints
linear_matrix_inequality_constraints""".split()


class ReadBack:
    """The program of blocks behind a MathematicalProgram.

    Args:
        prog: the MathematicalProgram.
        unit: size of one unit of each of its decision variables, where they are scaled
            by what is not in it.

    Attributes:
        program: the program, in the order of the decision variables; its rows are
            the bindings' rows.
        unit: size of one unit of each decision variable in the program's variables;
            not 1 where bindings were lowered in scaled variables.
        rows: positions of each binding's rows.
        pairs: positions of the rows G, H and G H of every pair, (num_pairs, 3).

    Raises:
        InvalidInput: for a binding without a block, by its name, for bindings
            moved to other variables, and for variables that are not continuous.
    """

    def __init__(self, prog: MathematicalProgram, unit: np.ndarray | None = None):
        self.prog = prog
        self.variables = prog.decision_variables()
        self.position = {v.get_id(): i for i, v in enumerate(self.variables)}
        self.unit = np.ones(len(self.variables)) if unit is None else np.array(unit)
        self.terms: list[Term] = []
        self.costs: list[Term] = []
        self.rows: dict[object, np.ndarray] = {}
        self.pairs = np.zeros((0, 3), int)
        self.labels: list[str] = []
        self.lower, self.upper, self.scale = [], [], []
        # By kind and sparsity: (block, columns, rows, coefficients).
        self.patterns: dict[tuple, tuple[Block, list, list, list]] = {}
        self.program = self._read()

    def _read(self) -> Program:
        """The program of all bindings.

        Raises:
            InvalidInput: for a binding or a variable that has no place in a program.
        """
        prog = self.prog
        for variable in self.variables:
            if variable.get_type() != Variable.Type.CONTINUOUS:
                raise InvalidInput(f"variable {variable} is not continuous")
        for kind in _REFUSED:
            for binding in getattr(prog, kind)():
                raise _refusal(binding)
        self._nonlinear()
        for binding in prog.linear_complementarity_constraints():
            first = [Expression(v) for v in binding.variables()]
            second = binding.evaluator().Eval(binding.variables())
            self._complementary(binding, first, second)
        linear = *prog.linear_constraints(), *prog.linear_equality_constraints()
        for binding in linear:
            A = binding.evaluator().get_sparse_A().tocoo()
            self._linear(A, self._columns(binding), self._new_rows(binding))
        for binding in prog.quadratic_constraints():
            e, rows = binding.evaluator(), self._new_rows(binding)
            self._quadratic(e.Q(), e.b(), 0.0, self._columns(binding), rows)
        for binding in prog.linear_costs():
            e = binding.evaluator()
            flat = np.zeros((len(e.a()), len(e.a())))
            self._quadratic(flat, e.a(), e.b(), self._columns(binding), None)
        for binding in prog.quadratic_costs():
            e = binding.evaluator()
            self._quadratic(e.Q(), e.b(), e.c(), self._columns(binding), None)
        for (kind, *_), (block, columns, rows, data) in self.patterns.items():
            where = None if kind == "cost" else np.array(rows)
            ones = np.ones(block.num_rows)
            term = Term(block, np.array(columns), where, ones, np.array(data))
            (self.costs if where is None else self.terms).append(term)
        parts = (self.lower, self.upper, self.scale)
        stacked = [np.concatenate([np.zeros(0), *part]) for part in parts]
        rows = {"rows": self._group("rows", self.labels, *stacked)}
        terms = tuple(self.terms), tuple(self.costs)
        groups = {"x": self._variables()}, rows
        program = Program("MathematicalProgram", *groups, *terms)
        program.check()
        return program

    @staticmethod
    def _group(name, labels, lower, upper, scale) -> Group:
        return Group(name, 0, 1, tuple(labels), lower[None], upper[None], scale)

    def _variables(self) -> Group:
        n, unit = len(self.variables), self.unit
        low, high, scale = np.full(n, -np.inf), np.full(n, np.inf), unit.copy()
        for binding in self.prog.bounding_box_constraints():
            columns, e = self._columns(binding), binding.evaluator()
            np.maximum.at(low, columns, e.lower_bound() * unit[columns])
            np.minimum.at(high, columns, e.upper_bound() * unit[columns])
        for index, value in self.prog.GetVariableScaling().items():
            scale[index] *= value
        return self._group(
            "x", [v.get_name() for v in self.variables], low, high, scale
        )

    def _columns(self, binding) -> np.ndarray:
        return np.array([self.position[v.get_id()] for v in binding.variables()], int)

    def _new_rows(self, binding, scale: np.ndarray | None = None) -> np.ndarray:
        evaluator = binding.evaluator()
        lower, upper = evaluator.lower_bound(), evaluator.upper_bound()
        name = name_of(binding)
        labels = [f"{name}[{i}]" for i in range(len(lower))]
        scale = np.ones(len(lower)) if scale is None else scale
        rows = self.rows[binding] = self._append(labels, lower, upper, scale)
        return rows

    def _append(self, labels: list[str], lower, upper, scale) -> np.ndarray:
        rows = sum(map(len, self.lower)) + np.arange(len(labels))
        self.labels += labels
        self.lower.append(lower * scale)
        self.upper.append(upper * scale)
        self.scale.append(scale)
        return rows

    # ------------------------------------------------------------- blocks
    def _nonlinear(self) -> None:
        """Reads the bindings that Drake knows as functions only."""
        lowered, others, prog = [], [], self.prog
        for binding in (*prog.generic_constraints(), *prog.generic_costs()):
            key = key_of(binding.evaluator())
            if isinstance(key, Key):
                lowered.append((binding, key))
            else:
                others.append(binding)
        for origin in {key.origin for _, key in lowered}:
            for variable, unit in zip(origin.variables, origin.unit):
                if variable in self.position:
                    self.unit[self.position[variable]] = unit
        for binding in others:
            expressions = expressions_of(binding)
            if expressions is None:
                raise _refusal(binding)
            sides = _pair_sides(binding.evaluator(), expressions)
            if sides is not None:
                self._complementary(binding, *sides)
            else:
                constraint = hasattr(binding.evaluator(), "lower_bound")
                rows = self._new_rows(binding) if constraint else None
                self._symbolic(binding, expressions, rows)
        self._lowered(lowered)

    def _lowered(self, found: list[tuple[object, Key]]) -> None:
        """Finds the blocks of lowered bindings, where a term stays one term."""
        rows: dict[Origin, np.ndarray] = {}
        uses: dict[Origin, dict[int, list[int]]] = {}
        for binding, key in found:
            origin = key.origin
            ids = [v.get_id() for v in binding.variables()]
            if ids != [origin.variables[i] for i in key.columns]:
                raise InvalidInput(
                    f"{name_of(binding)} was moved to other variables; lower a program "
                    "that has it there"
                )
            target = rows.setdefault(origin, np.full(origin.program.num_rows, -1))
            if key.rows is None:
                term, use = key.cost
                uses.setdefault(origin, {}).setdefault(term, []).append(use)
                continue
            if (target[key.rows] >= 0).any():
                raise InvalidInput(
                    f"{name_of(binding)} is in the program twice; remove one"
                )
            scale = origin.program.row_scale[key.rows]
            target[key.rows] = self._new_rows(binding, scale)
        for origin, target in rows.items():
            position = np.array([self.position.get(i, -1) for i in origin.variables])
            target = np.append(target, -1)  # for rows that are left out
            for term in origin.program.terms:
                where = target[term.rows]
                kept = (where >= 0).any(axis=1)
                if kept.any():
                    self.terms.append(_part(term, kept, position, where[kept]))
            for number, which in uses.get(origin, {}).items():
                term = origin.program.costs[number]
                self.costs.append(_part(term, np.array(which), position, None))

    def _symbolic(self, binding, expressions: Sequence[Expression], rows) -> None:
        """Translates rows, or a cost, that are given in Drake's symbols."""
        columns = self._columns(binding)
        x = ca.SX.sym("x", len(columns))
        values = [x[k] / unit for k, unit in enumerate(self.unit[columns])]
        symbols = {v.get_id(): z for v, z in zip(binding.variables(), values)}
        r = to_casadi(expressions, symbols)
        kind = "cost" if rows is None else "rows"
        # Knots with the same expression share a block.
        signature = (kind, "symbolic", ca.Function("r", [x], [r]).serialize())
        if signature not in self.patterns:
            self._add_pattern(signature, f"symbolic_{kind}", x, r, None)
        self._use(signature, columns, rows, np.zeros(0))

    def _complementary(self, binding, first, second) -> None:
        """Adds the rows of pairs whose sides are expressions."""
        k, name = len(first), name_of(binding)
        labels = [f"{name}.{side}[{i}]" for side in ("G", "H", "G*H") for i in range(k)]
        rows = self._append(labels, *pair_bounds(k), np.ones(3 * k))
        products = [g * h for g, h in zip(first, second)]
        self._symbolic(binding, [*first, *second, *products], rows)
        self.pairs = np.vstack([self.pairs, rows.reshape(3, k).T])

    def _linear(self, A, columns: np.ndarray, rows: np.ndarray) -> None:
        m, n = A.shape
        i, j = A.row, A.col
        signature = ("rows", "linear", m, n, i.tobytes(), j.tobytes())
        if signature not in self.patterns:
            x, a = ca.SX.sym("x", n), ca.SX.sym("a", len(i))
            y = [ca.SX(0) for _ in range(m)]
            for k, (row, column) in enumerate(zip(i.tolist(), j.tolist())):
                y[row] += a[k] * x[column]
            self._add_pattern(signature, "linear", x, ca.vertcat(*y), a)
        self._use(signature, columns, rows, A.data / self.unit[columns][j])

    def _quadratic(self, Q, b, c, columns, rows) -> None:
        n, unit = len(b), self.unit[columns]
        Q, b = Q / np.outer(unit, unit), b / unit
        i, j = np.nonzero(np.triu(Q + Q.T))
        kind = "cost" if rows is None else "rows"
        signature = (kind, "quadratic", n, i.tobytes(), j.tobytes())
        if signature not in self.patterns:
            x, a = ca.SX.sym("x", n), ca.SX.sym("a", len(i) + n + 1)
            y = a[len(i) + n] + ca.dot(a[len(i) : len(i) + n], x)
            for k, (row, column) in enumerate(zip(i.tolist(), j.tolist())):
                y += a[k] * x[row] * x[column]
            self._add_pattern(signature, f"quadratic_{kind}", x, y, a)
        factor = np.where(i == j, 0.5, 1.0)
        data = np.concatenate([factor * (Q + Q.T)[i, j] / 2, b, [c]])
        self._use(signature, columns, rows, data)

    def _add_pattern(self, signature, name: str, x: ca.SX, y: ca.SX, data):
        name = f"{name}_{len(self.patterns)}"
        block = Block(name, {"x": x}, {name: y}, data)
        self.patterns[signature] = (block, [], [], [])

    def _use(self, signature, *use: np.ndarray) -> None:
        """Adds the columns, rows and coefficients of one use."""
        for collected, value in zip(self.patterns[signature][1:], use, strict=True):
            collected.append(value)


def _part(term: Term, kept: np.ndarray, position: np.ndarray, rows) -> Term:
    """Some uses of a term, at the variables' positions in another program."""
    columns = position[term.columns[kept]]
    return replace(term, columns=columns, rows=rows, data=term.data[kept])


def name_of(binding) -> str:
    """Name of a binding in reports: its description, or some of its variables."""
    name = binding.evaluator().get_description()
    if name:
        return name
    variables = binding.variables()
    some = ", ".join(str(v) for v in variables[:3])
    return f"a binding of {some}{', ...' if len(variables) > 3 else ''}"


def pair_bounds(k: int) -> tuple[np.ndarray, np.ndarray]:
    """Lower and upper bounds (3 k,) of the rows G, H and G_i H_i of k pairs."""
    lower, upper = [0.0, 0.0, -np.inf], [np.inf, np.inf, 0.0]
    return np.repeat(lower, k), np.repeat(upper, k)


def _pair_sides(evaluator, rows: Sequence[Expression]):
    """G and H of rows that are (G >= 0, H >= 0, G_i H_i <= 0); None for other rows."""
    k, rest = divmod(len(rows), 3)
    if rest or not hasattr(evaluator, "lower_bound"):
        return None
    bounds = evaluator.lower_bound(), evaluator.upper_bound()
    if not all(map(np.array_equal, bounds, pair_bounds(k))):
        return None
    G, H, products = rows[:k], rows[k : 2 * k], rows[2 * k :]
    same = (p.EqualTo(g * h) for p, g, h in zip(products, G, H))
    return (G, H) if all(same) else None


def _refusal(binding) -> InvalidInput:
    return InvalidInput(
        f"{name_of(binding)} has no block and so no exact Hessian; write it in Drake's "
        "symbols, add it before lower(), or use SnoptSolver or IpoptSolver"
    )


# --- symbolic expressions ---------------------------------------------------------

_SAME = "Log Exp Sqrt Sin Cos Tan Asin Acos Atan Atan2 Sinh Cosh Tanh Ceil Floor"
"""Kinds of expressions whose functions have the same names in CasADi."""
_EXPRESSIONS = {
    **{getattr(ExpressionKind, x): getattr(ca, x.lower()) for x in _SAME.split()},
    ExpressionKind.Add: lambda *terms: reduce(add, terms),
    ExpressionKind.Mul: lambda *factors: reduce(mul, factors),
    ExpressionKind.Div: lambda a, b: a / b,
    ExpressionKind.Pow: ca.power,
    ExpressionKind.Abs: ca.fabs,
    ExpressionKind.Min: ca.fmin,
    ExpressionKind.Max: ca.fmax,
    ExpressionKind.IfThenElse: ca.if_else,
}

_FORMULAS = {
    FormulaKind.Eq: lambda a, b: a == b,
    FormulaKind.Neq: lambda a, b: a != b,
    FormulaKind.Gt: lambda a, b: a > b,
    FormulaKind.Geq: lambda a, b: a >= b,
    FormulaKind.Lt: lambda a, b: a < b,
    FormulaKind.Leq: lambda a, b: a <= b,
    FormulaKind.And: lambda *parts: reduce(ca.logic_and, parts),
    FormulaKind.Or: lambda *parts: reduce(ca.logic_or, parts),
    FormulaKind.Not: ca.logic_not,
}

_MONOMIALS = 500
"""Largest number of monomials of a polynomial cost."""


def expressions_of(binding) -> Sequence[Expression] | None:
    """Expressions of a binding, row by row; None for a function in Python or C++.

    Raises:
        InvalidInput: for a polynomial cost that is too large to recover.
    """
    evaluator, variables = binding.evaluator(), binding.variables()
    try:
        return list(evaluator.Eval(variables))
    except (RuntimeError, SystemExit):
        if "PolynomialCost" in evaluator.ToLatex(variables):
            return [_polynomial(evaluator, variables)]
        return None


def _polynomial(evaluator, variables: np.ndarray) -> Expression:
    """A polynomial cost, from its values: Drake does not show its coefficients.

    Its degree is the least that fits. Coefficients are interpolated, so they are right
    to rounding (1e-11 of the largest one), and judged at other points, far ones too,
    where a small coefficient counts.
    """
    rng, n = np.random.default_rng(0), len(variables)
    for degree in range(21):
        # A factor n stands for 1, so that all degrees up to the largest are there.
        monomials = list(combinations_with_replacement(range(n + 1), degree))
        if len(monomials) > _MONOMIALS:
            break
        half = len(monomials) + 10
        points = rng.uniform(-1, 1, (3 * half, n))
        points[2 * half :] *= 10 ** rng.uniform(0, 4, (half, n))
        points[2 * half :] *= rng.integers(0, 2, (half, n))
        extended = np.hstack([points, np.ones((len(points), 1))])
        A = np.prod(extended[:, np.array(monomials, int)], axis=2)
        f = np.array([float(evaluator.Eval(p)[0]) for p in points])
        found = np.linalg.lstsq(A[:half], f[:half], rcond=None)[0]
        near, far = slice(half, 2 * half), slice(2 * half, None)
        off = np.abs(A @ found - f)
        if off[near].max() <= 1e-9 * np.abs(f[near]).max(initial=1e-300):
            found[np.abs(found) <= 1e-11 * np.abs(found).max()] = 0.0
            if (np.abs(A @ found - f)[far] > 1e-4 * np.abs(f[far])).any():
                break
            kept = np.flatnonzero(found)
            factors = [*map(Expression, variables), Expression(1.0)]
            terms = (
                reduce(mul, [factors[i] for i in monomials[k]], Expression(found[k]))
                for k in kept
            )
            return reduce(add, terms, Expression(0.0))
    raise InvalidInput(
        f"the polynomial cost of {n} variables is too large, or its coefficients are "
        "too far apart, to recover from Drake; give AddCost an ExpressionCost of it"
    )


def to_casadi(expressions: Iterable[Expression], symbols: Mapping[int, ca.SX]) -> ca.SX:
    """The expressions (n,) as a CasADi column.

    Args:
        expressions: Drake's expressions, variables or numbers.
        symbols: CasADi's symbol of each variable, by the variable's id.

    Raises:
        InvalidInput: for a variable without a symbol, and for what has no value: NaN,
            uninterpreted functions, and formulas that quantify.
    """
    return ca.vertcat(ca.SX(0, 1), *(_translated(e, symbols) for e in expressions))


def _translated(item, symbols: Mapping[int, ca.SX]) -> ca.SX:
    """An expression, formula, variable or number in CasADi."""
    if isinstance(item, Variable):
        if item.get_id() not in symbols:
            raise InvalidInput(
                f"variable {item} is not among the program's; add it to the program"
            )
        return symbols[item.get_id()]
    if not isinstance(item, Expression | Formula):
        return ca.SX(float(item))
    kind = item.get_kind()
    leaf = kind in (ExpressionKind.Var, ExpressionKind.Constant)
    table = _FORMULAS if isinstance(item, Formula) else _EXPRESSIONS
    if not leaf and kind not in table:
        raise InvalidInput(
            f"{kind.name} in {_short(item)} has no value in CasADi; write it in other "
            "functions"
        )
    parts = [_translated(part, symbols) for part in item.Unapply()[1]]
    return parts[0] if leaf else table[kind](*parts)


def _short(item: Expression | Formula) -> str:
    text = str(item)
    return text if len(text) <= 60 else f"{text[:57]}..."
