"""The QPCC of a step without condensation, for comparison.

Flips, labels, rows and objective are the same, but every QP has all unknowns of eq.
(2): torques, patch forces, dq, du and the multipliers of the glue,

    A_r dq + J' lambda - B tau - J_c' f = b_r
    A_d du - S' lambda = b_d
    J dq - S du = -gap

as sparse rows. Drake's interior-point solver Clarabel factors the whole system in each
of its iterations. Only the labels of a fallback come from the condensed maps, which
saves this side some work.

A module without a command: `quad_planning.py` runs it.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from pydrake.solvers import ClarabelSolver, MathematicalProgram, SolverOptions
from scipy.sparse import block_array, csc_array, csr_array, diags_array
from scipy.sparse.linalg import norm as sparse_norm

from drakebots.core.errors import InvalidInput
from drakebots.robots.quads.robot import Feet, FeetKinematics
from drakebots.robots.quads.steps import (
    FREE,
    STICK,
    LabelledQp,
    QpPoint,
    StepQpcc,
    StepTargets,
    StepWeights,
    requested_flips,
    step_objective,
)
from drakebots.skin.coupled import StepEquations

LEAST = 1e-7
"""Multipliers below this are rounding errors of the interior-point method."""


@dataclass(frozen=True)
class _Unknowns:
    """The objective's view of w = [tau, dq]."""

    torques: int
    dq0: np.ndarray
    Q: np.ndarray


class UncondensedQp(LabelledQp):
    """QPs of labels with all unknowns, for :func:`~.qpcc.solve_qpcc`.

    Args:
        qpcc: the QPCC, which gives limits, labels and COP rows.
        coupled: the equations it was condensed from.
        feet, feet_kinematics: the feet and their kinematics.
        anchors: anchors of the patches (P, 3) [m].
        targets, weights, units: arguments of the objective.
        tolerance: tolerance of Clarabel for gap and feasibility.

    Attributes:
        solved: number of QPs solved.
        iterations: number of iterations of Clarabel in all of them.

    Raises:
        InvalidInput: with contacts at vertices of the skin.
    """

    def __init__(
        self,
        qpcc: StepQpcc,
        coupled: StepEquations,
        feet: Feet,
        feet_kinematics: FeetKinematics,
        anchors: np.ndarray,
        targets: StepTargets,
        weights: StepWeights,
        units: np.ndarray,
        *,
        tolerance: float = 1e-9,
    ):
        super().__init__(qpcc)
        if len(feet_kinematics.p) != self.P:
            raise InvalidInput("uncondensed QPCC: contacts on the skin are left out")
        skeleton, n = coupled.skeleton, len(coupled.b_d)
        g, (nv, m) = len(coupled.glue_dofs), skeleton.B.shape
        self.solved = self.iterations = 0
        self._y0 = (feet_kinematics.p - anchors).ravel()
        self._J = feet_kinematics.J
        view = _Unknowns(m, np.zeros(nv), np.eye(nv, m + nv, m))
        self._E = step_objective(view, feet, feet_kinematics, targets, weights, units)
        prog = self._prog = MathematicalProgram()
        self._tau = prog.NewContinuousVariables(m, "tau")
        self._f = prog.NewContinuousVariables(3 * self.P, "f")
        self._dq = prog.NewContinuousVariables(nv, "dq")
        du = prog.NewContinuousVariables(n, "du")
        force = prog.NewContinuousVariables(g, "lambda")
        S = csr_array((np.ones(g), (np.arange(g), coupled.glue_dofs)), shape=(g, n))
        J, A_r = csr_array(skeleton.J), csr_array(skeleton.A)
        B, Jc = csr_array(skeleton.B), csr_array(self._J)
        A = block_array(
            [
                [-B, -Jc.T, A_r, None, J.T],
                [None, None, None, coupled.pattern.full(coupled.A_d), -S.T],
                [None, None, J, -S, None],
            ],
            format="csr",
        )
        b = np.concatenate([skeleton.b, coupled.b_d, -coupled.gap])
        # Unknowns of size one, then rows of length one.
        scales = self._scales = np.ones(m), np.ones(3 * self.P), 0.1 * units
        unit = np.concatenate([*scales, np.full(n, 1e-3), np.ones(g)])
        A = A @ diags_array(unit)
        length = 1 / sparse_norm(A, axis=1)
        A = diags_array(length) @ A
        every = np.concatenate([self._tau, self._f, self._dq, du, force])
        prog.AddLinearEqualityConstraint(csc_array(A), length * b, every)
        prog.AddBoundingBoxConstraint(-qpcc.limits, qpcc.limits, self._tau)
        x, size = np.concatenate([self._tau, self._dq]), np.r_[scales[0], scales[2]]
        H = self._E.H * np.outer(size, size)
        prog.AddQuadraticCost(H, size * self._E.g, self._E.c, x, is_convex=True)
        self._options = SolverOptions()
        for name in ("tol_gap_abs", "tol_gap_rel", "tol_feas"):
            self._options.SetOption(ClarabelSolver.id(), name, tolerance)
        # With the default of 1e-8, which of these QPs end in a numerical error depends
        # on the processor's rounding; refinement takes the regularization out again.
        name = "static_regularization_constant"
        self._options.SetOption(ClarabelSolver.id(), name, 1e-7)

    def _rows(self, labels, rows, cop):
        """Rows of the labels: equalities on [f, dq], and inequalities >= 0."""
        c, nv = self.qpcc.compliance, self._J.shape[1]
        equal, bound, beyond = [], [], []

        def of_force(matrix, i):
            row = np.zeros((len(matrix), 3 * self.P + nv))
            row[:, 3 * i : 3 * i + 3] = matrix
            return row, np.zeros(len(matrix))

        def of_y(matrix, i):
            at = slice(3 * i, 3 * i + 3)
            row = np.zeros((len(matrix), 3 * self.P + nv))
            row[:, at] = matrix
            row[:, 3 * self.P :] = matrix @ self._J[at] / c
            return row, matrix @ self._y0[at] / c

        for i in range(self.P):
            k = labels[i] if self.qpcc.near[i] else FREE
            piece = self.table[k]
            if k != STICK:
                # f lies in the span of T.
                u, _, _ = np.linalg.svd(piece.T)
                equal.append(of_force(u[:, piece.T.shape[1] :].T, i))
            equal.append(of_y(piece.R, i))
            if rows and self.qpcc.near[i]:
                bound += [of_force(piece.on_f, i), of_y(piece.on_y, i)]
                beyond += [(i, other) for other in piece.beyond]
        if cop and len(self.qpcc.cop):
            C = np.zeros((len(self.qpcc.cop), 3 * self.P + nv))
            C[:, : 3 * self.P] = self.qpcc.cop
            bound.append((C, np.zeros(len(C))))
        return _stacked(equal), _stacked(bound), beyond

    def solve(self, labels, *, rows=True, cop=True, start=None) -> QpPoint | None:
        """As the condensed QP."""
        (Ae, be), (Ab, bb), beyond = self._rows(labels, rows, cop)
        x = np.concatenate([self._f, self._dq])
        size = np.concatenate(self._scales[1:])
        prog, added = self._prog, []
        if len(be):
            Ae, be, _ = _unit_rows(Ae * size, be)
            added.append(prog.AddLinearEqualityConstraint(csc_array(Ae), -be, x))
        if len(bb):
            Ab, bb, length = _unit_rows(Ab * size, bb)
            self._length = length[: len(beyond)]
            high = np.full(len(bb), np.inf)
            added.append(prog.AddLinearConstraint(csc_array(Ab), -bb, high, x))
        result = ClarabelSolver().Solve(prog, None, self._options)
        self.solved += 1
        self.iterations += result.get_solver_details().iterations
        pull = []
        if result.is_success() and beyond:
            pull = result.GetDualSolution(added[-1])[: len(beyond)] / self._length
        for one in added:
            prog.RemoveConstraint(one)
        if not result.is_success():
            return None
        tau, f, dq = (
            result.GetSolution(v) * unit
            for v, unit in zip((self._tau, self._f, self._dq), self._scales)
        )
        y = self._y0 + self._J @ dq + self.qpcc.compliance * f
        y, f = y.reshape(-1, 3), f.reshape(-1, 3)
        energy = self._E(np.concatenate([tau, dq]))
        flips = requested_flips(pull, beyond, labels, y, LEAST)
        return QpPoint(tau, f, y, energy, flips)


def _unit_rows(A, b):
    length = np.linalg.norm(A, axis=1)
    length[length == 0] = 1.0
    return A / length[:, None], b / length, length


def _stacked(parts):
    if not parts:
        return np.zeros((0, 0)), np.zeros(0)
    A, b = zip(*parts)
    return np.concatenate(A), np.concatenate(b)
