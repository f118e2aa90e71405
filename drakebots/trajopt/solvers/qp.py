"""Dense convex QPs, each answer held against the conditions of its optimum.

    min x'H x/2 + g'x,  limits_low <= x <= limits_high,  low <= A x <= high

DAQP (dual active set) solves them; where it has no answer Clarabel is asked, and with a
warning where its answer misses the conditions. On the 501 QPs of a foot lift (12
torques, about 110 rows, no warm start) DAQP took 0.03 ms each, PIQP 0.18, ProxQP 0.26,
Clarabel 1.3, OSQP 1.8 ms; PIQP and OSQP failed once at 1e-9. Measured once, by hand.
"""

from __future__ import annotations

import warnings

import daqp
import numpy as np
from pydrake.solvers import (
    ClarabelSolver,
    MathematicalProgram,
    SolutionResult,
    SolverOptions,
)

from drakebots.core.errors import DrakebotsWarning, NoSolution

TOLERANCE = 1e-7
"""Largest error of the conditions of an optimum, in scaled units. DAQP leaves 1e-12,
Clarabel 1e-9."""

_BIG = 1e30
"""DAQP's infinity."""

_MESSAGES = {
    -1: "infeasible",
    -2: "cycling",
    -3: "unbounded",
    -4: "iteration limit",
    -5: "not convex",
    -6: "bad working set",
}


def solve_qp(
    H: np.ndarray,
    g: np.ndarray,
    limits: tuple[np.ndarray, np.ndarray],
    A: np.ndarray,
    low: np.ndarray,
    high: np.ndarray,
    start: np.ndarray | None = None,
) -> tuple[np.ndarray, np.ndarray]:
    """Solves a QP, scaled to a Hessian with unit diagonal and rows of unit length.

    Args:
        H: positive definite Hessian (n, n).
        g: gradient at 0 (n,).
        limits: lower and upper limits of x (n,), infinite where there is none.
        A, low, high: rows (r, n), (r,), (r,).
        start: x to start from (n,).

    Returns:
        The minimizer x (n,), and the multipliers of the limits of x, then of the rows
        (n + r,), positive at an upper limit and negative at a lower one.

    Raises:
        NoSolution: when the QP has none, or no solver's answer is one.
    """
    n = len(g)
    unit = 1 / np.sqrt(np.diag(H))
    rows = A * unit
    length = np.linalg.norm(rows, axis=1)
    # A row of zeros is redundant, or makes the QP infeasible.
    flat = length < 1e-13
    if np.any(low[flat] > 1e-9) or np.any(high[flat] < -1e-9):
        raise NoSolution("QP: infeasible")
    kept = ~flat
    scale = np.concatenate([1 / unit, 1 / length[kept]])
    lower = np.concatenate([limits[0], low[kept]]) * scale
    upper = np.concatenate([limits[1], high[kept]]) * scale
    scaled = (
        np.ascontiguousarray(H * np.outer(unit, unit)),
        np.ascontiguousarray(g * unit),
        np.ascontiguousarray(rows[kept] / length[kept, None]),
        np.clip(lower, -_BIG, _BIG),
        np.clip(upper, -_BIG, _BIG),
    )
    start = None if start is None else np.ascontiguousarray(start / unit)
    x, dual = _judged(scaled, start)
    multipliers = np.zeros(n + len(A))
    dual = dual * scale
    multipliers[:n] = dual[:n]
    multipliers[n:][kept] = dual[n:]
    return unit * x, multipliers


def _judged(scaled, start):
    """The optimum of a scaled QP and its multipliers, of the first solver whose answer
    is one. DAQP's "infeasible" is rounding now and then, and no answer either."""
    said = []
    for name, solver in (("daqp", _daqp), ("clarabel", _clarabel)):
        x, dual, failed = solver(*scaled, start)
        if failed:
            said.append(f"QP: {failed}")
            continue
        error = optimality_error(*scaled, x, dual)
        if error <= TOLERANCE:
            return x, dual
        said.append(
            f"QP of {len(x)} unknowns and {len(scaled[2])} rows: the answer of {name} "
            f"misses the conditions of an optimum by {error:.1e} (at most "
            f"{TOLERANCE:g})"
        )
        if name == "daqp":
            text = f"{said[-1]}; clarabel goes on"
            warnings.warn(text, DrakebotsWarning, stacklevel=3)
    raise NoSolution("; ".join(dict.fromkeys(said)))


def optimality_error(H, g, A, lower, upper, x, dual) -> float:
    """Largest error of the conditions of an optimum, relative to x, g and multipliers.

    Args:
        H, g, A: Hessian (n, n), gradient at 0 (n,), rows (r, n).
        lower, upper: limits of x, then of the rows (n + r,).
        x, dual: the answer (n,), and its multipliers (n + r,), positive at an upper
            limit and negative at a lower one.
    """
    n, size = len(g), np.abs(x).max()
    force = size + np.abs(g).max() + np.abs(dual).max()
    value = np.concatenate([x, A @ x])
    left = H @ x + g + dual[:n] + A.T @ dual[n:]
    # A multiplier belongs to a limit that is reached.
    away = np.where(dual > 0, upper - value, value - lower)
    force, size = min(force, _BIG), min(size, _BIG)  # their product is a number
    idle = np.abs(np.where(dual == 0, 0.0, np.clip(dual, -_BIG, _BIG) * away)).max()
    parts = (
        np.abs(left).max() / max(force, 1e-300),
        np.maximum(value - upper, lower - value).max(initial=0.0) / max(size, 1e-300),
        idle / max(force * size, 1e-300),
    )
    return float(np.max(parts))  # NaN where one is


def _daqp(H, g, A, lower, upper, start):
    for tolerance in (1e-12, 1e-9, 1e-6):  # large answers round by more than the first
        how = {"primal_start": start, "primal_tol": tolerance}
        x, _, flag, info = daqp.solve(H, g, A, upper, lower, **how)
        if flag > 0:  # an optimum, or one within DAQP's rounding
            break
    failed = "" if flag > 0 else _MESSAGES.get(flag, f"flag {flag}")
    return np.asarray(x), np.asarray(info["lam"])[: len(lower)], failed


def _clarabel(H, g, A, lower, upper, start):
    prog = MathematicalProgram()
    x = prog.NewContinuousVariables(len(g))
    prog.AddQuadraticCost(H, g, x, is_convex=True)
    rows = np.vstack([np.eye(len(g)), A])
    low = np.where(lower <= -_BIG, -np.inf, lower)
    high = np.where(upper >= _BIG, np.inf, upper)
    limits = prog.AddLinearConstraint(rows, low, high, x)
    options = SolverOptions()
    for name in ("tol_gap_abs", "tol_gap_rel", "tol_feas"):
        options.SetOption(ClarabelSolver.id(), name, 1e-12)
    result = ClarabelSolver().Solve(prog, None, options)
    if result.get_solution_result() == SolutionResult.kInfeasibleConstraints:
        return result.GetSolution(x), np.zeros(len(lower)), "infeasible"
    # Drake's multiplier of an upper limit is the slope of the cost, which it lowers.
    return result.GetSolution(x), -result.GetDualSolution(limits), ""
