"""Skin that follows its links, and a few modes: x(q, y) of the reduced skin.

With Q_l, s_l the move of link l from the skin's rest pose to q, and weights w of each
node that add to 1 (linear blend skinning),

    x_i(q, y) = sum_l w_il (Q_l (X_i + Phi_i y) + s_l)

X the rest positions, Phi the modes, which vanish at the glue; there w is 1 for the
vertex's own link, so the glue lies on the links exactly, whatever y.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numba import njit
from pydrake.multibody.plant import MultibodyPlant
from pydrake.multibody.tree import JacobianWrtVariable
from pydrake.systems.framework import Context
from scipy.sparse import csr_array, eye_array
from scipy.sparse.linalg import splu

from drakebots.errors import InvalidInput
from drakebots.fem.assembly import FemModel
from drakebots.multibody.loops import find_body
from drakebots.skin.glue import Glue

SMALL_WEIGHT = 1e-3
"""Weights below this are dropped."""


@dataclass(frozen=True)
class LinkMotion:
    """Where the links stand, against the skin's rest pose, and how they move.

    Attributes:
        turn: Q_l (L, 3, 3).
        shift: s_l (L, 3) [m].
        spin: angular velocity in v, world (L, 3, nv).
        drift: velocity in v of the link's point at the world's origin (L, 3, nv).
    """

    turn: np.ndarray
    shift: np.ndarray
    spin: np.ndarray
    drift: np.ndarray


class Links:
    """The links that carry glue, and their poses when the skin is at rest.

    Args:
        plant: finalized.
        context: of the plant, posed as the skin was made.
        names: of the links.
    """

    def __init__(self, plant: MultibodyPlant, context: Context, names):
        self.plant, self.names = plant, tuple(names)
        self.bodies = [find_body(plant, name) for name in self.names]
        poses = [plant.EvalBodyPoseInWorld(context, body) for body in self.bodies]
        self._turn = np.array([X.rotation().matrix() for X in poses])
        self._place = np.array([X.translation() for X in poses])

    def motion(self, context: Context, jacobian: bool = True) -> LinkMotion:
        """At the context's q; without `jacobian` spin and drift are empty."""
        plant, world = self.plant, self.plant.world_frame()
        L, nv = len(self.bodies), plant.num_velocities() if jacobian else 0
        turn, shift = np.empty((L, 3, 3)), np.empty((L, 3))
        spin, drift = np.empty((L, 3, nv)), np.empty((L, 3, nv))
        for k, body in enumerate(self.bodies):
            X = plant.EvalBodyPoseInWorld(context, body)
            R, p = X.rotation().matrix(), X.translation()
            turn[k] = R @ self._turn[k].T
            shift[k] = p - turn[k] @ self._place[k]
            if jacobian:
                J = plant.CalcJacobianSpatialVelocity(
                    context,
                    JacobianWrtVariable.kV,
                    body.body_frame(),
                    -R.T @ p,
                    world,
                    world,
                )
                spin[k], drift[k] = J[:3], J[3:]
        return LinkMotion(turn, shift, spin, drift)


def harmonic_weights(model: FemModel, glue: Glue, links) -> np.ndarray:
    """How much each node belongs to each link (N, L), rows adding to 1.

    The solution of Laplace's equation in the skin, conductivity the materials'
    moduli, 1 at the link's glue and 0 at the others'; weights below SMALL_WEIGHT are
    dropped.

    Raises:
        InvalidInput: when a part of the skin carries no glue.
    """
    n = len(model.rest)
    rows, columns, values = [], [], []
    modulus = np.array([m.youngs_modulus for m in model.materials])
    modulus = modulus / modulus.max()
    for group, row in zip(model.space.groups, model.rows):
        G = np.where(group.nodes[:, None, :, None] >= 0, group.gradients, 0.0)
        K = np.einsum("mq,mqai,mqbi->mab", group.weights, G, G)
        K *= modulus[row][:, None, None]
        ids = np.maximum(group.nodes, 0)
        rows.append(np.repeat(ids, ids.shape[1], axis=1).ravel())
        columns.append(np.tile(ids, (1, ids.shape[1])).ravel())
        values.append(K.ravel())
    A = csr_array(
        (np.concatenate(values), (np.concatenate(rows), np.concatenate(columns))),
        shape=(n, n),
    )
    free = np.setdiff1d(np.arange(n), glue.vertices)
    held = np.zeros((n, len(links)))
    number = {name: k for k, name in enumerate(links)}
    for name, at in glue.by_body().items():
        held[glue.vertices[at], number[name]] = 1.0
    inner = A[free][:, free]
    # An island without glue would make the matrix singular, not just small.
    tiny = 1e-12 * A.diagonal().max()
    solve = splu((inner + tiny * eye_array(len(free))).tocsc())
    out = held.copy()
    out[free] = solve.solve(-(A[free][:, glue.vertices] @ held[glue.vertices]))
    total = out.sum(axis=1)
    if np.abs(total - 1).max() > 1e-3:
        raise InvalidInput(
            f"reduced skin: node {int(np.abs(total - 1).argmax())} hangs on no glue; "
            "glue each part of the skin"
        )
    # P2 functions may overshoot.
    out = np.where(out > SMALL_WEIGHT, out, 0.0)
    return out / out.sum(axis=1, keepdims=True)


@dataclass(frozen=True)
class SparseWeights:
    """Weights by node: links (n, k) and shares (n, k), padded with shares of 0."""

    links: np.ndarray
    shares: np.ndarray

    @classmethod
    def of(cls, weights: np.ndarray) -> SparseWeights:
        """Of a table (n, L)."""
        k = int((weights > 0).sum(axis=1).max())
        links = np.argsort(-weights, axis=1, kind="stable")[:, :k]
        return cls(
            np.ascontiguousarray(links, dtype=np.int32),
            np.ascontiguousarray(np.take_along_axis(weights, links, axis=1)),
        )

    def rows(self, nodes: np.ndarray) -> SparseWeights:
        """Of some nodes."""
        return SparseWeights(self.links[nodes], self.shares[nodes])


def blended(
    points: np.ndarray, weights: SparseWeights, motion: LinkMotion
) -> np.ndarray:
    """sum_l w_l (Q_l points + s_l) (n, 3) [m]; points X + Phi y at rest."""
    out = np.empty_like(points)
    _blend(points, weights.links, weights.shares, motion.turn, motion.shift, out)
    return out


def pulled_back(x: np.ndarray, weights: SparseWeights, motion: LinkMotion):
    """points (n, 3) whose :func:`blended` is x [m]."""
    turn = np.einsum("nk,nkij->nij", weights.shares, motion.turn[weights.links])
    shift = np.einsum("nk,nki->ni", weights.shares, motion.shift[weights.links])
    return np.linalg.solve(turn, (x - shift)[..., None])[..., 0]


def blended_columns(
    points: np.ndarray, weights: SparseWeights, motion: LinkMotion, modes: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """x (n, 3) and dx/d(v dt, y) (n, 3, nv + r); modes (n, 3, r)."""
    nv = motion.spin.shape[2]
    x = np.empty_like(points)
    J = np.empty((len(points), 3, nv + modes.shape[2]))
    _columns(
        points,
        weights.links,
        weights.shares,
        motion.turn,
        motion.shift,
        motion.spin,
        motion.drift,
        modes,
        x,
        J,
    )
    return x, J


@njit(cache=True)
def _blend(points, links, shares, turn, shift, out):
    for n in range(len(points)):
        out[n] = 0.0
        for k in range(links.shape[1]):
            w, m = shares[n, k], links[n, k]
            if w > 0.0:
                for i in range(3):
                    y = shift[m, i]
                    for j in range(3):
                        y += turn[m, i, j] * points[n, j]
                    out[n, i] += w * y


@njit(cache=True, fastmath=True)
def _columns(points, links, shares, turn, shift, spin, drift, modes, x, J):
    nv, r = spin.shape[2], modes.shape[2]
    y, A = np.empty(3), np.empty((3, 3))
    for n in range(len(points)):
        x[n] = 0.0
        J[n] = 0.0
        A[:, :] = 0.0
        for k in range(links.shape[1]):
            w, m = shares[n, k], links[n, k]
            if w == 0.0:
                continue
            for i in range(3):
                y[i] = shift[m, i]
                for j in range(3):
                    y[i] += turn[m, i, j] * points[n, j]
                    A[i, j] += w * turn[m, i, j]
                x[n, i] += w * y[i]
            for c in range(nv):
                a, b, d = spin[m, 0, c], spin[m, 1, c], spin[m, 2, c]
                J[n, 0, c] += w * (drift[m, 0, c] + b * y[2] - d * y[1])
                J[n, 1, c] += w * (drift[m, 1, c] + d * y[0] - a * y[2])
                J[n, 2, c] += w * (drift[m, 2, c] + a * y[1] - b * y[0])
        for i in range(3):
            for c in range(r):
                J[n, i, nv + c] = (
                    A[i, 0] * modes[n, 0, c]
                    + A[i, 1] * modes[n, 1, c]
                    + A[i, 2] * modes[n, 2, c]
                )
