"""Eqs. (10)-(11): a frame as affine maps of torques and contact forces.

With w = [tau, f], f (p, 3) the forces at the contact vertices,

    dq = dq_0 + Q w,  u_k = u_0 + U w,  lambda = lambda_0 + L w

and du = phi(u_k) by one backward sweep. The paper's f = n F_perp + D F_par with
four directions D is :meth:`CondensedMaps.in_directions` with
:func:`contact_directions`.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from scipy.linalg import cho_factor, cho_solve
from scipy.sparse import block_array, csr_array
from scipy.sparse.linalg import splu

from drakebots.core.errors import InvalidInput
from drakebots.fem.solver import SparseSolver, make_solver
from drakebots.skin.frame.coupled import (
    CoupledFrame,
    FrameSolution,
    ReducedSystem,
    as_vector,
)

# The paper's own systems: eq. (2) with multipliers, and eq. (10).
#
# For checking and for comparing costs; :mod:`drakebots.skin.frame.coupled` gives the
# same answer faster. C_q = J, C_u = -S, and eq. (2)'s last right-hand side is -gap,
# zero in the paper.


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


@dataclass(frozen=True)
class CondensedMaps:
    """Affine maps of w = [torques, contact forces] (m + c,).

    Attributes:
        system: where they come from; `skin`, `skin_columns` and `solution` need
            its solver as it is, so use them before the next frame.
        torques: how many, m.
        dq0, Q: (nv,), (nv, m + c) [m, rad].
        kept0, U: of the glue's, then the contacts' displacements (3 g + 3 p,),
            (3 g + 3 p, m + c) [m].
        glue0, L: of the glue's forces on the skin (3 g,), (3 g, m + c) [N].
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
        """lambda, on the skin (g, 3) [N]."""
        return (self.glue0 + self.L @ self._w(torques, forces)).reshape(-1, 3)

    def skin(self, torques=None, forces=None) -> np.ndarray:
        """du of all nodes (N, 3) [m]: one backward sweep."""
        u_k = self.kept0 + self.U @ self._w(torques, forces)
        return self.system.displacement(u_k).reshape(-1, 3)

    def solution(self, torques=None, forces=None) -> FrameSolution:
        """The whole frame."""
        return FrameSolution(
            self.skeleton(torques, forces),
            self.skin(torques, forces),
            self.glue_forces(torques, forces),
        )

    def skin_columns(self) -> np.ndarray:
        """d du/d w (3 N, m + c), dense: for maps of all nodes at once."""
        return self.system.displacement_columns(self.U)

    def in_directions(self, directions: np.ndarray) -> CondensedMaps:
        """The same maps of magnitudes along directions.

        Args:
            directions: columns (3, d), the same at each contact, or (p, 3, d).

        Returns:
            Maps whose contact forces are magnitudes (p, d).

        Raises:
            InvalidInput: for another shape.
        """
        m, p = self.torques, self.system.contacts // 3
        D = np.asarray(directions, float)
        if D.ndim == 2:
            D = np.broadcast_to(D, (p, *D.shape))
        if D.ndim != 3 or D.shape[:2] != (p, 3) or self.Q.shape[1] != m + 3 * p:
            raise InvalidInput(
                f"contact directions: shape {np.shape(directions)}, needs (3, d) or "
                f"({p}, 3, d), and maps of forces (p, 3)"
            )

        def turned(X):
            forces = X[:, m:].reshape(len(X), p, 3)
            along = np.einsum("rpi,pid->rpd", forces, D).reshape(len(X), -1)
            return np.concatenate([X[:, :m], along], axis=1)

        return replace(self, Q=turned(self.Q), U=turned(self.U), L=turned(self.L))


def condense(system: ReducedSystem) -> CondensedMaps:
    """The maps of a frame: one solve of the small system with m + 3 p columns."""
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


def contact_directions(normal=(0.0, 0.0, 1.0)) -> np.ndarray:
    """[n, D]: the normal and the four directions of the friction pyramid (3, 5).

    Raises:
        InvalidInput: for a normal of length zero.
    """
    normal = np.asarray(normal, float)
    length = np.linalg.norm(normal)
    if normal.shape != (3,) or not (np.isfinite(length) and length > 0):
        raise InvalidInput(f"contact normal {normal.tolist()}: needs length > 0")
    n = normal / length
    a = np.cross(n, np.eye(3)[np.argmin(np.abs(n))])
    a /= np.linalg.norm(a)
    b = np.cross(n, a)
    return np.stack([n, a, -a, b, -b], axis=1)
