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

from drakebots.errors import InvalidInput
from drakebots.skin.coupled import FrameSolution, ReducedSystem, as_vector


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
