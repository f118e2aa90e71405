"""The paper's own systems: eq. (2) with multipliers, and eq. (10).

For checking and for comparing costs; :mod:`drakebots.skin.coupled` gives the same
answer faster. C_q = J, C_u = -S, and eq. (2)'s last right-hand side is -gap, zero
in the paper.
"""

from __future__ import annotations

import numpy as np
from scipy.linalg import cho_factor, cho_solve
from scipy.sparse import block_array, csr_array
from scipy.sparse.linalg import splu

from drakebots.fem.linear_solver import SparseSolver, make_solver
from drakebots.skin.coupled import CoupledFrame, FrameSolution, as_vector


def _sides(frame: CoupledFrame, torques, forces):
    B, n = frame.skeleton.B, len(frame.b_d)
    b_r = frame.skeleton.b + B @ as_vector("torques", torques, B.shape[1])
    return b_r, frame.b_d + as_vector("forces on the nodes", forces, n)


def solve_multipliers(frame: CoupledFrame, torques=None, forces=None) -> FrameSolution:
    """Eq. (2) as it stands, by sparse LU.

    Args:
        frame: assembled.
        torques: (m,) [N m].
        forces: on all nodes (N, 3) [N].

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
    # One refinement: forces and displacements differ by many orders.
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
    """Eq. (10): A_C by 3 g right-hand sides, as the paper does.

        A_C = J A_r^-1 J' + S A_d^-1 S'
        lambda = A_C^-1 (J A_r^-1 b_r - S A_d^-1 b_d + gap)

    Args:
        frame, torques, forces: as :func:`solve_multipliers`.
        solver: of the skin's pattern, keeping nothing; made by default.

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
