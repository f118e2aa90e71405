"""The paper's formulations of a time step: eqs. (2), (10) and (11).

:func:`condense` gives eqs. (10)-(11), a time step as affine maps of torques and contact
forces: with w = [tau, f], f (p, 3) the forces at the contact vertices,

    dq = dq_0 + Q w,  u_k = u_0 + U w,  lambda = lambda_0 + L w

and du = phi(u_k) by one backward sweep. :func:`solve_multipliers` and
:func:`solve_right_sides` solve eqs. (2) and (10) as printed, to check
:mod:`drakebots.skin.frame.coupled` and to compare costs; C_q = J, C_u = -S, and the
last right-hand side of eq. (2) is -gap, zero in the paper.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.linalg import cho_factor, cho_solve
from scipy.sparse import block_array, csr_array
from scipy.sparse.linalg import splu

from drakebots.fem.solver import SparseSolver, make_solver
from drakebots.skin.frame.coupled import (
    CoupledFrame,
    FrameSolution,
    ReducedSystem,
    as_vector,
)


def _sides(frame: CoupledFrame, torques, forces):
    B, n = frame.skeleton.B, len(frame.b_d)
    b_r = frame.skeleton.b + B @ as_vector("torques", torques, B.shape[1])
    return b_r, frame.b_d + as_vector("forces on the nodes", forces, n)


def solve_multipliers(frame: CoupledFrame, torques=None, forces=None) -> FrameSolution:
    """Solves eq. (2), with multipliers, by sparse LU.

    Args:
        frame: equations of the step.
        torques: joint torques (m,) [N m].
        forces: forces on all nodes (N, 3) [N].

    Raises:
        InvalidInput: for shapes that do not fit.
    """
    b_r, b_d = _sides(frame, torques, forces)
    g, n, nv = len(frame.glue_dofs), len(b_d), len(b_r)
    S = csr_array((np.ones(g), (np.arange(g), frame.glue_dofs)), shape=(g, n))
    J = csr_array(frame.skeleton.J)
    A = block_array(
        [
            [csr_array(frame.skeleton.A), None, J.T],
            [None, frame.pattern.full(frame.A_d), -S.T],
            [J, -S, None],
        ],
        format="csc",
    )
    b = np.concatenate([b_r, b_d, -frame.gap])
    lu = splu(A)
    x = lu.solve(b)
    # One step of refinement, as forces and displacements differ by many orders.
    x += lu.solve(b - A @ x)
    return FrameSolution(
        x[:nv], x[nv : nv + n].reshape(-1, 3), x[nv + n :].reshape(-1, 3)
    )


def solve_right_sides(
    frame: CoupledFrame,
    torques=None,
    forces=None,
    *,
    solver: SparseSolver | None = None,
) -> FrameSolution:
    """Solves eq. (10) with A_C from 3 g right-hand sides, as in the paper:

        A_C = J A_r^-1 J' + S A_d^-1 S'
        lambda = A_C^-1 (J A_r^-1 b_r - S A_d^-1 b_d + gap)

    Args:
        frame, torques, forces: as for :func:`solve_multipliers`.
        solver: solver on the skin's pattern without kept dofs; a new one by default.

    Raises:
        NoSolution: when A_d is not positive definite.
    """
    b_r, b_d = _sides(frame, torques, forces)
    c, J = frame.glue_dofs, frame.skeleton.J
    solver = make_solver(frame.pattern) if solver is None else solver
    solver.factor(frame.A_d)
    unit = np.zeros((len(b_d), len(c) + 1))
    unit[c, np.arange(len(c))] = 1.0
    unit[:, -1] = b_d
    X = solver.solve(unit)
    A_r = cho_factor(frame.skeleton.A)
    A_C = J @ cho_solve(A_r, J.T) + X[c, :-1]
    free_q, free_u = cho_solve(A_r, b_r), X[:, -1]
    force = np.linalg.solve(A_C, J @ free_q - free_u[c] + frame.gap)
    return FrameSolution(
        free_q - cho_solve(A_r, J.T @ force),
        (free_u + X[:, :-1] @ force).reshape(-1, 3),
        force.reshape(-1, 3),
    )


@dataclass(frozen=True)
class CondensedMaps:
    """Affine maps of w = [torques, contact forces] (m + c,).

    Attributes:
        system: the small system; `skin` and `solution` need its factors, so use them
            before the next step.
        torques: number of torques m.
        dq0, Q: map to dq (nv,), (nv, m + c) [m, rad].
        kept0, U: map to the displacements of glue, then contacts (3 g + 3 p,),
            (3 g + 3 p, m + c) [m].
        glue0, L: map to the glue's forces on the skin (3 g,), (3 g, m + c) [N].
    """

    system: ReducedSystem
    torques: int
    dq0: np.ndarray
    Q: np.ndarray
    kept0: np.ndarray
    U: np.ndarray
    glue0: np.ndarray
    L: np.ndarray

    def _w(self, torques, forces):
        return np.concatenate(
            [
                as_vector("torques", torques, self.torques),
                as_vector("contact forces", forces, self.Q.shape[1] - self.torques),
            ]
        )

    def skeleton(self, torques=None, forces=None) -> np.ndarray:
        """dq (nv,) [m, rad]."""
        return self.dq0 + self.Q @ self._w(torques, forces)

    def contacts(self, torques=None, forces=None) -> np.ndarray:
        """Displacements of the contact vertices (p, 3) [m]."""
        g = len(self.glue0)
        move = self.kept0[g:] + self.U[g:] @ self._w(torques, forces)
        return move.reshape(-1, 3)

    def glue_forces(self, torques=None, forces=None) -> np.ndarray:
        """lambda, forces on the skin (g, 3) [N]."""
        return (self.glue0 + self.L @ self._w(torques, forces)).reshape(-1, 3)

    def skin(self, torques=None, forces=None) -> np.ndarray:
        """du of all nodes (N, 3) [m], by one backward sweep."""
        u_k = self.kept0 + self.U @ self._w(torques, forces)
        return self.system.displacement(u_k).reshape(-1, 3)

    def solution(self, torques=None, forces=None) -> FrameSolution:
        """The whole step."""
        return FrameSolution(
            self.skeleton(torques, forces),
            self.skin(torques, forces),
            self.glue_forces(torques, forces),
        )


def condense(system: ReducedSystem) -> CondensedMaps:
    """The maps of a step, by one solve of the small system with m + 3 p columns."""
    B = system.frame.skeleton.B
    nv, m, c = *B.shape, system.contacts
    W = np.zeros((nv + c, m + c))
    W[:nv, :m], W[nv:, m:] = B, np.eye(c)
    z0, Z = system.back(system.right_side()), system.back(W)
    u0, U = system.kept(z0), system.kept(Z, gap=0.0)
    return CondensedMaps(
        system,
        m,
        z0[:nv],
        Z[:nv],
        u0,
        U,
        system.glue_forces(u0),
        system.glue_forces(U, constant=0.0),
    )
