"""Drake's symbolic expressions as CasADi's, which have exact derivatives.

    expressions = expressions_of(binding)                        # [x * sin(y)]
    to_casadi(expressions, {x.get_id(): a, y.get_id(): b})       # a*sin(b)

Every kind of expression that has a value is translated, step by step as its `Unapply`
takes it apart; formulas (of `if_then_else`) become 0 or 1. Where Drake's function has
a kink or a jump (abs, min, max, floor, ceil, if_then_else), the derivatives are those
of the piece that x lies on. CasADi evaluates both pieces of an `if_then_else`: one
that is not finite where it does not hold spoils the derivatives of the other.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import reduce
from itertools import combinations_with_replacement
from operator import add, mul

import casadi as ca
import numpy as np
from pydrake.symbolic import Expression, ExpressionKind, Formula, FormulaKind, Variable

from drakebots.core.errors import InvalidInput

_EXPRESSIONS = {
    ExpressionKind.Add: lambda *terms: reduce(add, terms),
    ExpressionKind.Mul: lambda *factors: reduce(mul, factors),
    ExpressionKind.Div: lambda a, b: a / b,
    ExpressionKind.Pow: ca.power,
    ExpressionKind.Log: ca.log,
    ExpressionKind.Abs: ca.fabs,
    ExpressionKind.Exp: ca.exp,
    ExpressionKind.Sqrt: ca.sqrt,
    ExpressionKind.Sin: ca.sin,
    ExpressionKind.Cos: ca.cos,
    ExpressionKind.Tan: ca.tan,
    ExpressionKind.Asin: ca.asin,
    ExpressionKind.Acos: ca.acos,
    ExpressionKind.Atan: ca.atan,
    ExpressionKind.Atan2: ca.atan2,
    ExpressionKind.Sinh: ca.sinh,
    ExpressionKind.Cosh: ca.cosh,
    ExpressionKind.Tanh: ca.tanh,
    ExpressionKind.Min: ca.fmin,
    ExpressionKind.Max: ca.fmax,
    ExpressionKind.Ceil: ca.ceil,
    ExpressionKind.Floor: ca.floor,
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
    """What a binding says, row by row; None for a function in Python or C++.

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

    Its degree is the one along a random line. Coefficients are interpolated, so they
    are right to rounding (1e-11 of the largest one), and judged at other points.
    """
    rng, n = np.random.default_rng(0), len(variables)

    def values(points: np.ndarray) -> np.ndarray:
        return np.array([float(evaluator.Eval(p)[0]) for p in points])

    def fits(A: np.ndarray, f: np.ndarray, fitted: np.ndarray) -> bool:
        return np.abs(A @ fitted - f).max() <= 1e-9 * np.abs(f).max(initial=1e-300)

    origin, direction = rng.uniform(-1, 1, (2, n))
    t = rng.uniform(-1, 1, 60)
    f = values(origin + t[:, None] * direction)
    for degree in range(21):
        powers = np.vander(t, degree + 1)
        found = np.linalg.lstsq(powers[:40], f[:40], rcond=None)[0]
        if fits(powers[40:], f[40:], found):
            break
    # A factor n stands for 1, so that all degrees up to the largest are there.
    monomials = list(combinations_with_replacement(range(n + 1), degree))
    if len(monomials) <= _MONOMIALS:
        points = rng.uniform(-1, 1, (2 * len(monomials) + 20, n))
        extended = np.hstack([points, np.ones((len(points), 1))])
        A = np.prod(extended[:, np.array(monomials, int)], axis=2)
        f, half = values(points), len(monomials) + 10
        found = np.linalg.lstsq(A[:half], f[:half], rcond=None)[0]
        if fits(A[half:], f[half:], found):
            kept = np.flatnonzero(np.abs(found) > 1e-11 * np.abs(found).max())
            factors = [*map(Expression, variables), Expression(1.0)]
            terms = (
                reduce(mul, [factors[i] for i in monomials[k]], Expression(found[k]))
                for k in kept
            )
            return reduce(add, terms, Expression(0.0))
    raise InvalidInput(
        f"the polynomial cost of {n} variables is too large to recover from Drake; "
        "give AddCost an ExpressionCost of it"
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
