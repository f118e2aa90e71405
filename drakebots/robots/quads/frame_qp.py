"""min 1/2 x'H x + g'x subject to low <= A x <= high: a dense QP of a frame.

DAQP (MIT, dual active set) for its speed and exact active rows. On the 501 QPs of a
foot lift (12 torques, about 110 rows, no warm start) it took 0.03 ms each, PIQP 0.18,
ProxQP 0.26, Clarabel 1.3, OSQP 1.8 ms; PIQP and OSQP failed once at 1e-9. Taken once,
by hand.
"""

from __future__ import annotations

from dataclasses import dataclass

import daqp
import numpy as np

INFEASIBLE = -1
_MESSAGES = {
    -1: "infeasible",
    -2: "cycling",
    -3: "unbounded",
    -4: "iteration limit",
    -5: "not convex",
    -6: "bad working set",
}


@dataclass(frozen=True)
class QpSolution:
    """What a QP came to.

    Attributes:
        x: (n,).
        multipliers: of low <= x <= high, then of the rows; positive at an upper
            limit, negative at a lower one (n + r,).
        message: "" when solved.
    """

    x: np.ndarray
    multipliers: np.ndarray
    message: str

    @property
    def ok(self) -> bool:
        """Whether it is solved."""
        return not self.message


def solve_qp(
    H: np.ndarray,
    g: np.ndarray,
    limits: tuple[np.ndarray, np.ndarray],
    A: np.ndarray,
    low: np.ndarray,
    high: np.ndarray,
    start: np.ndarray | None = None,
) -> QpSolution:
    """Solves it, scaled to a Hessian with a diagonal of ones and rows of length one.

    Args:
        H: positive definite (n, n).
        g: (n,).
        limits: lowest and highest x (n,), infinite where there is none.
        A, low, high: rows (r, n), (r,), (r,).
        start: x to start from.
    """
    n = len(g)
    unit = 1 / np.sqrt(np.diag(H))
    rows = A * unit
    length = np.linalg.norm(rows, axis=1)
    # A row of zeros limits nothing, or makes the QP infeasible.
    flat = length < 1e-13
    if np.any(low[flat] > 1e-9) or np.any(high[flat] < -1e-9):
        return QpSolution(np.zeros(n), np.zeros(n + len(A)), _MESSAGES[INFEASIBLE])
    kept = ~flat
    scale = np.concatenate([1 / unit, 1 / length[kept]])
    lower = np.concatenate([limits[0], low[kept]]) * scale
    upper = np.concatenate([limits[1], high[kept]]) * scale
    big = 1e30
    x, _, flag, info = daqp.solve(
        np.ascontiguousarray(H * np.outer(unit, unit)),
        np.ascontiguousarray(g * unit),
        np.ascontiguousarray(rows[kept] / length[kept, None]),
        np.clip(upper, -big, big),
        np.clip(lower, -big, big),
        primal_start=None if start is None else np.ascontiguousarray(start / unit),
        primal_tol=1e-12,
    )
    multipliers = np.zeros(n + len(A))
    dual = np.asarray(info["lam"])[: len(scale)] * scale
    multipliers[:n] = dual[:n]
    multipliers[n:][kept] = dual[n:]
    message = "" if flag == 1 else _MESSAGES.get(flag, f"flag {flag}")
    return QpSolution(unit * np.asarray(x), multipliers, message)
