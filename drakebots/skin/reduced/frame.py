"""One semi-implicit frame of skeleton and reduced skin.

The frame of :mod:`drakebots.skin.frame.coupled` held to what links and modes can do:
with J_x = dx/d(dq, dy) of the shape,

    [A_r 0; 0 0] + J_x' A_d J_x,  right-hand side [b_r + B tau; 0] + J_x' b_d

(Galerkin), K and f summed over the cubature's points, M over its mass points. No
servo or contact acts on y, so y is condensed out, and laws see a system of the
skeleton's size.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.linalg import cho_factor, cho_solve

from drakebots.core.errors import InvalidInput, NoSolution
from drakebots.fem.assembly import FemModel, stiffness_shares
from drakebots.skin.frame import as_vector
from drakebots.skin.reduced.basis import LinkMotion, SparseWeights, blended_columns
from drakebots.skin.reduced.cubature import forces_and_tangents
from drakebots.skin.reduced.skin import ReducedSkin


class _Group:
    """Points of one domain, their nodes and the modes that move them."""

    def __init__(self, skin: ReducedSkin, mine: np.ndarray, weights: SparseWeights):
        part = skin.points.chosen(mine)
        inside, local = np.unique(np.maximum(part.nodes, 0), return_inverse=True)
        self.local = np.where(
            part.nodes >= 0, local.reshape(part.nodes.shape), -1
        ).astype(np.int64)
        self.points = part
        modes = skin.modes[inside]
        self.touched = np.flatnonzero(np.abs(modes).max(axis=(0, 1), initial=0.0) > 0)
        self.modes = np.ascontiguousarray(modes[:, :, self.touched])
        self.rest, self.weights = skin.rest[inside], weights.rows(inside)


class ReducedForces:
    """Elastic forces, tangents and masses of a reduced skin.

    Args:
        model: of the full skin, for its materials.
        skin: trained.
        gravity: (3,) [m/s^2].

    Raises:
        InvalidInput: for a skin trained on another model.
    """

    def __init__(self, model: FemModel, skin: ReducedSkin, gravity: np.ndarray):
        if skin.rest.shape != model.rest.shape or not np.allclose(
            skin.rest, model.rest, atol=1e-9
        ):
            raise InvalidInput(
                "reduced skin: was trained on another mesh; train it again"
            )
        self.model, self.skin = model, skin
        self.gravity = np.asarray(gravity, float)
        weights = SparseWeights.of(skin.weights)
        self.groups = [
            _Group(skin, np.flatnonzero(skin.point_domain == k), weights)
            for k in np.unique(skin.point_domain)
        ]
        at = skin.mass_nodes
        self._rest, self._weights = skin.rest[at], weights.rows(at)
        self._modes = np.ascontiguousarray(skin.modes[at])
        alpha = np.array([m.mass_damping for m in model.materials])
        self._alpha = self._mass_damping(alpha)[at]

    def _mass_damping(self, alpha):
        """Rayleigh's alpha of each node (N,), of the heaviest tet's material."""
        out = np.zeros(len(self.model.rest))
        for group, row in zip(self.model.space.groups, self.model.rows):
            for nodes in group.nodes.T:
                out[nodes[nodes >= 0]] = alpha[row][nodes >= 0]
        return out

    def elastic(self, motion: LinkMotion, y: np.ndarray, dt: float, project: bool):
        """-f (nv + r,), tangent (nv + r, nv + r), smallest det F; scaled for beta."""
        model, nv = self.model, motion.spin.shape[2]
        n = nv + self.skin.size
        scale = 1 + stiffness_shares(model) / dt
        g, K, low = np.zeros(n), np.zeros((n, n)), np.inf
        for group in self.groups:
            points = group.rest + group.modes @ y[group.touched]
            x, J = blended_columns(points, group.weights, motion, group.modes)
            part, m, c = group.points, len(group.points), J.shape[2]
            D, TD = np.empty((9 * m, c)), np.empty((9 * m, c))
            force, smallest, good = forces_and_tangents(
                x,
                J,
                group.local,
                part.gradients,
                part.weights,
                part.row,
                model.kinds,
                model.table,
                scale,
                project,
                D,
                TD,
            )
            if not good:
                raise NoSolution(
                    f"reduced frame: a point turned over (det F {smallest:.3g})"
                )
            at = np.concatenate([np.arange(nv), nv + group.touched])
            g[at] += force
            K[np.ix_(at, at)] += D.T @ TD
            low = min(low, smallest)
        return g, 0.5 * (K + K.T), low

    def inertia(self, motion: LinkMotion, y, velocity, dt: float):
        """J' M J (1/dt^2 + alpha/dt), J' M (gravity + velocity/dt), and J (3 p, n)."""
        skin = self.skin
        points = self._rest + self._modes @ y
        _, J = blended_columns(points, self._weights, motion, self._modes)
        J = J.reshape(-1, J.shape[2])
        m = np.repeat(skin.masses, 3)
        a = np.repeat(skin.masses * (1 / dt**2 + self._alpha / dt), 3)
        push = (self.gravity + velocity / dt).ravel()
        return J.T @ (a[:, None] * J), J.T @ (m * push), J

    def no_motion(self) -> np.ndarray:
        """Velocities of the mass points of a skin that stands (p, 3)."""
        return np.zeros((len(self.skin.mass_nodes), 3))


@dataclass(frozen=True)
class SmallSystem:
    """R dq = r of a frame with y condensed out; laws act on it.

    Attributes:
        nv: velocities of the skeleton.
        matrix: R (nv, nv).
        constant: r without torques (nv,).
        B: torques to generalized forces (nv, m).
    """

    nv: int
    matrix: np.ndarray
    constant: np.ndarray
    B: np.ndarray
    _factor: tuple
    _scale: np.ndarray
    _y0: np.ndarray
    _Y: np.ndarray

    def right_side(self, torques=None, forces=None) -> np.ndarray:
        """r (nv,) for torques (m,) [N m]; there are no contacts of the skin."""
        as_vector("contact forces", forces, 0)
        return self.constant + self.B @ as_vector("torques", torques, self.B.shape[1])

    def back(self, r: np.ndarray) -> np.ndarray:
        """dq = R^-1 r."""
        return self._scale * cho_solve(self._factor, self._scale * r)

    def modes(self, dq: np.ndarray) -> np.ndarray:
        """dy (r,) that goes with dq."""
        return self._y0 - self._Y @ dq


def small_system(A: np.ndarray, b: np.ndarray, B: np.ndarray) -> SmallSystem:
    """Condenses [A_qq A_qy; . A_yy] [dq; dy] = b.

    Raises:
        NoSolution: when the matrix is not positive definite or not finite.
    """
    nv = len(B)
    if not (np.isfinite(A).all() and np.isfinite(b).all()):
        raise NoSolution("reduced frame: the state is not finite")
    try:
        scale = _scale(A)
        S = A * np.outer(scale, scale)
        inner = cho_factor(S[nv:, nv:]) if len(A) > nv else None
        s_q, s_y = scale[:nv], scale[nv:]
        both = np.concatenate([S[nv:, :nv], (s_y * b[nv:])[:, None]], axis=1)
        done = cho_solve(inner, both) if inner is not None else both
        matrix = (S[:nv, :nv] - S[:nv, nv:] @ done[:, :nv]) / np.outer(s_q, s_q)
        matrix = 0.5 * (matrix + matrix.T)
        own = _scale(matrix)
        factor = cho_factor(matrix * np.outer(own, own))
    except np.linalg.LinAlgError as error:
        raise NoSolution(
            "reduced frame: the matrix is not positive definite"
        ) from error
    return SmallSystem(
        nv=nv,
        matrix=matrix,
        constant=b[:nv] - (S[:nv, nv:] @ done[:, nv]) / s_q,
        B=B,
        _factor=factor,
        _scale=own,
        _y0=s_y * done[:, nv],
        _Y=(s_y[:, None] * done[:, :nv]) / s_q,
    )


def _scale(A):
    """1/sqrt of the diagonal, which must be > 0."""
    diagonal = np.diag(A)
    if diagonal.min() <= 0:
        raise np.linalg.LinAlgError
    return 1 / np.sqrt(diagonal)
