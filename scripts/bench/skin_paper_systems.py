"""The paper's own systems of a time step of a skinned robot: eq. (2), and eq. (10).

They check the condensed step of :mod:`drakebots.skin.coupled.equations`, and the
benchmarks compare their costs. C_q = J, C_u = -S, and the last right-hand side of eq.
(2) is -gap, zero in the paper.

A module without a command: `skin.py` and `quad_planning.py` run them.
"""

from __future__ import annotations

import numpy as np
from scipy.linalg import cho_factor, cho_solve
from scipy.sparse import block_array, csr_array
from scipy.sparse.linalg import splu

from drakebots.fem.solver import SparseSolver, make_solver
from drakebots.skin.coupled import StepEquations, StepSolution, as_vector


def _sides(equations: StepEquations, torques, forces):
    B, n = equations.skeleton.B, len(equations.b_d)
    b_r = equations.skeleton.b + B @ as_vector("torques", torques, B.shape[1])
    return b_r, equations.b_d + as_vector("forces on the nodes", forces, n)


def solve_multipliers(
    equations: StepEquations, torques=None, forces=None
) -> StepSolution:
    """Solves eq. (2), with multipliers, by sparse LU.

    Args:
        equations: equations of the step.
        torques: joint torques (m,) [N m].
        forces: forces on all nodes (N, 3) [N].

    Raises:
        InvalidInput: for shapes that do not fit.
    """
    b_r, b_d = _sides(equations, torques, forces)
    g, n, nv = len(equations.glue_dofs), len(b_d), len(b_r)
    S = csr_array((np.ones(g), (np.arange(g), equations.glue_dofs)), shape=(g, n))
    J = csr_array(equations.skeleton.J)
    A = block_array(
        [
            [csr_array(equations.skeleton.A), None, J.T],
            [None, equations.pattern.full(equations.A_d), -S.T],
            [J, -S, None],
        ],
        format="csc",
    )
    b = np.concatenate([b_r, b_d, -equations.gap])
    lu = splu(A)
    x = lu.solve(b)
    # One step of refinement, as forces and displacements differ by many orders.
    x += lu.solve(b - A @ x)
    return StepSolution(
        x[:nv], x[nv : nv + n].reshape(-1, 3), x[nv + n :].reshape(-1, 3)
    )


def solve_right_sides(
    equations: StepEquations,
    torques=None,
    forces=None,
    *,
    solver: SparseSolver | None = None,
) -> StepSolution:
    """Solves eq. (10) with A_C from 3 g right-hand sides, as in the paper:

        A_C = J A_r^-1 J' + S A_d^-1 S'
        lambda = A_C^-1 (J A_r^-1 b_r - S A_d^-1 b_d + gap)

    Args:
        equations, torques, forces: as for :func:`solve_multipliers`.
        solver: solver on the skin's pattern without kept dofs; a new one by default.

    Raises:
        NoSolution: when A_d is not positive definite.
    """
    b_r, b_d = _sides(equations, torques, forces)
    c, J = equations.glue_dofs, equations.skeleton.J
    solver = make_solver(equations.pattern) if solver is None else solver
    solver.factor(equations.A_d)
    unit = np.zeros((len(b_d), len(c) + 1))
    unit[c, np.arange(len(c))] = 1.0
    unit[:, -1] = b_d
    X = solver.solve(unit)
    A_r = cho_factor(equations.skeleton.A)
    A_C = J @ cho_solve(A_r, J.T) + X[c, :-1]
    free_q, free_u = cho_solve(A_r, b_r), X[:, -1]
    force = np.linalg.solve(A_C, J @ free_q - free_u[c] + equations.gap)
    return StepSolution(
        free_q - cho_solve(A_r, J.T @ force),
        (free_u + X[:, :-1] @ force).reshape(-1, 3),
        force.reshape(-1, 3),
    )
