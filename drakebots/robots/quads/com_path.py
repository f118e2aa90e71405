"""A path of the centre of mass that keeps the ZMP in the support polygons.

At constant height h the ZMP is linear in the COM's path c, which makes gait
synthesis a convex program over knots of spacing s:

    min  sum |c - c_n|^2 + w_a sum |cdd|^2 + w_j sum |cddd|^2 + w_s sum slack
    s.t. n (c - h/g cdd) <= b - m + slack        for every side of every polygon

with c_n the nominal path and m a margin, at most half of what the polygon has.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import scipy.sparse as sp
from pydrake.solvers import ClarabelSolver, MathematicalProgram
from scipy.interpolate import CubicSpline

from drakebots.errors import NoSolution
from drakebots.robots.quads.support import GRAVITY, half_planes, margin


def com_path(
    nominal: np.ndarray,
    polygons: Sequence[np.ndarray | None],
    height: float,
    step: float,
    *,
    clearance: float = 0.015,
    periodic: bool = False,
    turn: float = 0.0,
    acceleration: float = 1e-3,
    jerk: float = 1e-5,
) -> np.ndarray:
    """The path at the knots (K, 2) [m].

    Args:
        nominal: where the COM would like to be (K, 2) [m].
        polygons: of each knot, counterclockwise (k, 2) [m]; None in flight, where
            the COM moves in a straight line.
        height: of the COM [m].
        step: between knots [s].
        clearance: m [m].
        periodic: whether velocity and acceleration repeat, else rest at both ends.
        turn: by which the last knot's are turned [rad], if periodic.
        acceleration, jerk: weights w_a [s^4], w_j [s^6].

    Raises:
        NoSolution: when the solver finds none.
    """
    nominal = np.asarray(nominal, float)
    K = len(nominal)
    R = np.array([[np.cos(turn), -np.sin(turn)], [np.sin(turn), np.cos(turn)]])
    # All of it as matrices on x = [c_0x, c_0y, c_1x, ...].
    wide = _widened(K, R, periodic)
    D2, D3 = (sp.kron(D, sp.eye(2)) @ wide for D in _differences(K, step))
    prog = MathematicalProgram()
    x = prog.NewContinuousVariables(2 * K, "c")
    slack = prog.NewContinuousVariables(K, "slack")
    prog.AddBoundingBoxConstraint(0, np.inf, slack)
    prog.AddLinearCost(np.full(K, 1e3 / K), 0.0, slack)
    inner = D2.tocsr()[2:-2]
    bend = acceleration * inner.T @ inner + jerk * D3.T @ D3
    target = nominal.ravel()
    Q = 2 * (sp.eye(2 * K) + bend).toarray()
    prog.AddQuadraticCost(Q, -2 * target, x, True)
    if periodic:
        # The offset from the nominal path repeats, turned.
        A = np.hstack([-R, np.eye(2)])
        gap = nominal[-1] - R @ nominal[0]
        prog.AddLinearEqualityConstraint(A, gap, np.concatenate([x[:2], x[-2:]]))
    at_knot, tip = _knot_rows(D2, K), height / GRAVITY
    for k, corners in enumerate(polygons):
        bending = at_knot[k]
        used = np.unique(np.concatenate([bending.indices, [2 * k, 2 * k + 1]]))
        dense = bending[:, used].toarray()
        if corners is None:
            prog.AddLinearEqualityConstraint(dense, np.zeros(2), x[used])
            continue
        point = -tip * dense
        point[0, np.searchsorted(used, 2 * k)] += 1.0
        point[1, np.searchsorted(used, 2 * k + 1)] += 1.0
        n, b = half_planes(corners)
        room = max(margin(corners, corners.mean(axis=0)), 0.0)
        keep = min(clearance, 0.5 * room)
        A = np.hstack([n @ point, -np.ones((len(n), 1))])
        prog.AddLinearConstraint(
            A, np.full(len(n), -np.inf), b - keep, np.append(x[used], slack[k])
        )
    result = ClarabelSolver().Solve(prog)
    if not result.is_success():
        raise NoSolution(
            "no path of the COM keeps the ZMP above the feet "
            f"({result.get_solution_result()}); lengthen the contacts or the period"
        )
    return result.GetSolution(x).reshape(K, 2)


def _knot_rows(D2: sp.spmatrix, K: int) -> list[sp.csr_matrix]:
    """Rows (2, 2 K) of the second difference at each knot."""
    D2 = D2.tocsr()
    return [D2[2 * (k + 1) : 2 * (k + 1) + 2] for k in range(K)]


def _widened(K: int, R: np.ndarray, periodic: bool) -> sp.csr_matrix:
    """x to the knots with two ghosts before and after (2 (K + 4), 2 K)."""

    def pick(*terms) -> sp.csr_matrix:
        row = sp.lil_matrix((2, 2 * K))
        for k, M in terms:
            row[:, 2 * k : 2 * k + 2] = row[:, 2 * k : 2 * k + 2] + M
        return row.tocsr()

    one = np.eye(2)
    if periodic:
        last = K - 1
        before = [pick((0, one), (last - j, R.T), (last, -R.T)) for j in (2, 1)]
        after = [pick((last, one), (j, R), (0, -R)) for j in (1, 2)]
    else:
        before, after = [pick((0, one))] * 2, [pick((K - 1, one))] * 2
    return sp.vstack([*before, sp.eye(2 * K), *after]).tocsr()


def _differences(K: int, step: float):
    """Second and third differences of K + 4 knots; the former of K + 2."""
    n = K + 4
    D2 = sp.diags([1.0, -2.0, 1.0], [0, 1, 2], (n - 2, n)) / step**2
    D3 = sp.diags([-1.0, 3.0, -3.0, 1.0], [0, 1, 2, 3], (n - 3, n)) / step**3
    return D2, D3


def to_frames(values: np.ndarray, stride: int, frames: int, *, rest: bool):
    """Cubic spline through knots every `stride` frames (K, ...), at the frames."""
    at = stride * np.arange(len(values))
    ends = "clamped" if rest else "not-a-knot"
    return CubicSpline(at, values, axis=0, bc_type=ends)(np.arange(frames))
