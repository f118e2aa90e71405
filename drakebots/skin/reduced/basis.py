"""The shape of a reduced skin: a blend of its links, and modes learnt from simulations.

Link l turns by Q_l and moves by s_l from the skin's rest pose to the pose q. The nodes
follow by linear blend skinning, with weights w_il of the links that add to 1 at each
node i:

    x_i(q, y) = sum_l w_il (Q_l (X_i + Phi_i y) + s_l)

with X the rest positions, Phi the modes and y their coordinates. Phi vanishes at the
glue, where w is 1 for the link that the node is glued to, so the glue stays on its
links for any y.

The modes are learnt from shapes x of the full skin in simulations ("snapshots"). The
inverse of the blend pulls them back to the rest pose, which leaves a displacement

    d_i = (sum_l w_il Q_l)^-1 (x_i - sum_l w_il s_l) - X_i

It is largest around bent joints and depends mostly on the joints nearby. It is
therefore split into domains, one for the base and one for each limb, by windows that
add to 1 at each node. Every domain has modes of its own, by proper orthogonal
decomposition in the inner product of the tangent K at rest:

    Phi' K Phi = 1 in a domain,  minimal sum over snapshots |d - Phi y|_K^2

so that the error of the energy is minimal, and y is in sqrt(J). Local modes are due to
Kim and James, "Physics-based character skinning using multi-domain subspaces" (2012).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from pydrake.multibody.plant import MultibodyPlant
from pydrake.systems.framework import Context
from scipy.sparse import csr_array, eye_array
from scipy.sparse.linalg import splu

from drakebots.core.errors import InvalidInput
from drakebots.core.kernels import njit
from drakebots.fem.assembly import FemModel, force_and_tangent
from drakebots.model import find_body, joints_of
from drakebots.skin.coupled import CoupledState, CoupledStepper, Glue
from drakebots.skin.coupled.skeleton import spatial_jacobian

SMALL_WEIGHT = 1e-3
"""Weights below this are set to zero."""

WINDOW = (0.05, 0.6)
"""Limits for the weights of a limb's links: where they add to less than the first, a
node belongs to the base; to more than the second, to the limb; in between to both."""

# The blend of the links.


class LinkMotion(NamedTuple):
    """Motion of L links from the skin's rest pose, x = Q X + s, and its Jacobian.

    Attributes:
        turn: rotations Q_l (L, 3, 3).
        shift: translations s_l (L, 3) [m].
        spin: Jacobian in v of the angular velocities, world (L, 3, nv).
        drift: Jacobian in v of the velocities of the links' points at the world's
            origin (L, 3, nv).
    """

    turn: np.ndarray
    shift: np.ndarray
    spin: np.ndarray
    drift: np.ndarray


class Links:
    """The links with glue, and their poses when the skin is at rest.

    Args:
        plant: finalized plant.
        context: context of the plant in the rest pose.
        names: names of the links.
    """

    def __init__(self, plant: MultibodyPlant, context: Context, names):
        self.plant, self.names = plant, tuple(names)
        self.bodies = [find_body(plant, name) for name in self.names]
        poses = [plant.EvalBodyPoseInWorld(context, body) for body in self.bodies]
        self._turn = np.array([X.rotation().matrix() for X in poses])
        self._place = np.array([X.translation() for X in poses])

    def motion(self, context: Context, jacobian: bool = True) -> LinkMotion:
        """The motion at the context's q, with spin and drift only if `jacobian`."""
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
                frame = body.body_frame()
                J = spatial_jacobian(plant, context, frame, -R.T @ p, world)
                spin[k], drift[k] = J[:3], J[3:]
        return LinkMotion(turn, shift, spin, drift)


def harmonic_weights(model: FemModel, glue: Glue, links) -> np.ndarray:
    """Weights of the links at each node (N, L); each row adds to 1.

    Those of a link solve Laplace's equation in the skin, with the materials' Young's
    moduli as conductivities, 1 at its own glue and 0 at that of all others. Weights
    below SMALL_WEIGHT are set to zero.

    Args:
        model: the skin.
        glue: its glue.
        links: names of all links with glue.

    Raises:
        InvalidInput: when a part of the skin carries no glue.
    """
    n = len(model.rest)
    parts = []
    modulus = np.array([m.youngs_modulus for m in model.materials])
    modulus = modulus / modulus.max()
    for group, row in zip(model.space.groups, model.rows):
        G = np.where(group.nodes[:, None, :, None] >= 0, group.gradients, 0.0)
        K = np.einsum("mq,mqai,mqbi->mab", group.weights, G, G)
        K *= modulus[row][:, None, None]
        ids = np.maximum(group.nodes, 0)
        k = ids.shape[1]
        pairs = np.repeat(ids, k, axis=1).ravel(), np.tile(ids, (1, k)).ravel()
        parts.append(csr_array((K.ravel(), pairs), shape=(n, n)))
    A = sum(parts[1:], parts[0])
    free = np.setdiff1d(np.arange(n), glue.vertices)
    fixed = np.zeros((n, len(links)))
    number = {name: k for k, name in enumerate(links)}
    fixed[glue.vertices, [number[body] for body in glue.bodies]] = 1.0
    inner = A[free][:, free]
    # Without this a piece of the skin without glue would make the matrix singular.
    tiny = 1e-12 * A.diagonal().max()
    solve = splu((inner + tiny * eye_array(len(free))).tocsc())
    out = fixed.copy()
    out[free] = solve.solve(-(A[free][:, glue.vertices] @ fixed[glue.vertices]))
    total = out.sum(axis=1)
    if np.abs(total - 1).max() > 1e-3:
        raise InvalidInput(
            f"reduced skin: node {int(np.abs(total - 1).argmax())} is connected to no "
            "glue; glue each piece of the skin"
        )
    # Solutions with P2 functions may be negative.
    out = np.where(out > SMALL_WEIGHT, out, 0.0)
    return out / out.sum(axis=1, keepdims=True)


class SparseWeights(NamedTuple):
    """Nonzero weights of n nodes: links and shares (n, k), padded with shares of 0."""

    links: np.ndarray
    shares: np.ndarray

    @classmethod
    def of(cls, weights: np.ndarray) -> SparseWeights:
        """The nonzero weights of a table (n, L)."""
        k = int((weights > 0).sum(axis=1).max())
        links = np.argsort(-weights, axis=1, kind="stable")[:, :k]
        return cls(
            np.ascontiguousarray(links, dtype=np.int32),
            np.ascontiguousarray(np.take_along_axis(weights, links, axis=1)),
        )

    def rows(self, nodes: np.ndarray) -> SparseWeights:
        """The weights of some nodes."""
        return SparseWeights(self.links[nodes], self.shares[nodes])


@njit(cache=True)
def blended(
    points: np.ndarray, weights: SparseWeights, motion: LinkMotion
) -> np.ndarray:
    """Positions sum_l w_l (Q_l p + s_l) (n, 3) [m] of points p = X + Phi y (n, 3)."""
    (links, shares), (turn, shift, _, _) = weights, motion
    out = np.zeros_like(points)
    for n in range(len(points)):
        for k in range(links.shape[1]):
            w, m = shares[n, k], links[n, k]
            if w > 0.0:
                for i in range(3):
                    y = shift[m, i]
                    for j in range(3):
                        y += turn[m, i, j] * points[n, j]
                    out[n, i] += w * y
    return out


def pulled_back(x: np.ndarray, weights: SparseWeights, motion: LinkMotion):
    """The points (n, 3) [m] that :func:`blended` moves to x (n, 3) [m]."""
    turn = np.einsum("nk,nkij->nij", weights.shares, motion.turn[weights.links])
    shift = np.einsum("nk,nki->ni", weights.shares, motion.shift[weights.links])
    return np.linalg.solve(turn, (x - shift)[..., None])[..., 0]


@njit(cache=True, fastmath=True)
def blended_columns(
    points: np.ndarray, weights: SparseWeights, motion: LinkMotion, modes: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Positions as of :func:`blended`, and their Jacobian.

    Args:
        points: X + Phi y (n, 3) [m].
        weights: weights of the links at the n points.
        motion: motion of the links.
        modes: Phi at the points (n, 3, r).

    Returns:
        x (n, 3) [m] and dx/d(dq, dy) (n, 3, nv + r), dq in velocity coordinates.
    """
    (links, shares), (turn, shift, spin, drift) = weights, motion
    nv, r = spin.shape[2], modes.shape[2]
    x, J = np.zeros_like(points), np.zeros((len(points), 3, nv + r))
    y, A = np.empty(3), np.empty((3, 3))
    for n in range(len(points)):
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
    return x, J


# Modes.


@dataclass(frozen=True)
class SkinRun:
    """Shapes of a full skin and the motions of its links.

    Attributes:
        motions: one per shape, with spin and drift of the m actuated joints only.
        positions: positions of the nodes (S, N, 3) [m].
    """

    motions: tuple[LinkMotion, ...]
    positions: np.ndarray

    def __len__(self) -> int:
        return len(self.motions)


def snapshots(
    stepper: CoupledStepper, states: Iterable[CoupledState], links: Links, B: np.ndarray
) -> SkinRun:
    """The shapes of the full skin and motions of its links in some states.

    Args:
        stepper: stepper of the robot.
        states: at least one state.
        links: links of its plant.
        B: map of torques to generalized forces (nv, m).
    """
    motions, positions = [], []
    for state in states:
        stepper.pose(state.q, state.v)
        motion = links.motion(stepper.context)
        motions.append(motion._replace(spin=motion.spin @ B, drift=motion.drift @ B))
        positions.append(state.skin.positions)
    return SkinRun(tuple(motions), np.array(positions))


def limb_of(plant: MultibodyPlant, links: Sequence[str]) -> np.ndarray:
    """The domain of each link (L,): 0 for the base, k for the k-th limb.

    The base is the first body of the tree with more than one child joint, or the tree's
    first body; a limb is the part of the tree beyond one joint of the base.
    """
    parent, children = {}, {}
    for joint in joints_of(plant):
        up, down = joint.parent_body().name(), joint.child_body().name()
        parent[down] = up
        children.setdefault(up, []).append(down)
    short = [name.split("::")[-1] for name in links]
    path = [short[0]]
    while path[-1] in parent:
        path.append(parent[path[-1]])
    path = path[::-1]  # from the world to the link
    branching = [b for b in path[1:] if len(children.get(b, ())) > 1]
    base = branching[0] if branching else path[min(1, len(path) - 1)]
    limbs, out = {}, []
    for body in short:
        while body in parent and parent[body] != base and body != base:
            body = parent[body]
        held = body != base and parent.get(body) == base
        out.append(limbs.setdefault(body, len(limbs) + 1) if held else 0)
    return np.array(out)


def windows(weights: np.ndarray, limb: np.ndarray) -> np.ndarray:
    """Shares of the D domains at each node (N, D); each row adds to 1.

    A limb's share rises smoothly from 0 to 1 between the bounds of WINDOW.

    Args:
        weights: weights of the links (N, L).
        limb: domain of each link (L,).
    """
    domains = range(limb.max() + 1)
    own = np.stack([weights[:, limb == k].sum(axis=1) for k in domains], axis=1)
    s = np.clip((own - WINDOW[0]) / (WINDOW[1] - WINDOW[0]), 0.0, 1.0)
    out = s * s * (3 - 2 * s)
    total = out[:, 1:].sum(axis=1, keepdims=True)
    out[:, 1:] /= np.maximum(total, 1.0)
    out[:, 0] = np.maximum(1 - out[:, 1:].sum(axis=1), 0.0)
    return out


@dataclass(frozen=True)
class SkinBasis:
    """Modes of the pulled-back displacement.

    Attributes:
        weights: weights of the links (N, L).
        window: shares of the domains (N, D).
        domain: domain of each mode (r,).
        modes: Phi (N, 3, r) [m/sqrt(J)].
        coordinates: y of each snapshot (S, r) [sqrt(J)].
        left: share of the snapshots' energy that is not in the modes, by domain (D,).
    """

    weights: np.ndarray
    window: np.ndarray
    domain: np.ndarray
    modes: np.ndarray
    coordinates: np.ndarray
    left: np.ndarray


def learn_basis(
    model: FemModel,
    weights: np.ndarray,
    limb: np.ndarray,
    runs: Sequence[SkinRun],
    limb_modes: int,
    base_modes: int,
) -> SkinBasis:
    """Learns the modes of a skin from shapes that it took.

    Args:
        model: the skin.
        weights: weights of the links (N, L).
        limb: domain of each link (L,).
        runs: shapes of the full skin.
        limb_modes: largest number of modes of each limb.
        base_modes: largest number of modes of the base.

    Raises:
        InvalidInput: for runs without shapes, or of another skin.
    """
    d = _displacements(model, weights, runs)
    _, K = force_and_tangent(model, model.rest)
    K = model.pattern.full(K)
    window = windows(weights, limb)
    columns, coordinates, domain, left = [], [], [], []
    for k in range(window.shape[1]):
        inside = window[:, k] > 1e-9
        if not inside.any():
            left.append(0.0)
            continue
        # The snapshots X (S, 3 n) in the domain. An eigenvector e of X K X' with the
        # eigenvalue s gives the mode X' e / sqrt(s), and s is the energy in it.
        X = (d[:, inside] * window[inside, k][:, None]).reshape(len(d), -1)
        dofs = np.flatnonzero(np.repeat(inside, 3))
        KX = K[dofs][:, dofs] @ X.T
        energy, vectors = np.linalg.eigh(X @ KX)
        order = np.argsort(energy)[::-1][: base_modes if k == 0 else limb_modes]
        order = order[energy[order] > 1e-9 * max(energy.max(), 1e-300)]
        phi = np.zeros((len(d[0]), 3, len(order)))
        T = vectors[:, order] / np.sqrt(energy[order])
        phi[inside] = (X.T @ T).reshape(inside.sum(), 3, len(order))
        columns.append(phi)
        coordinates.append((X @ KX) @ T)
        domain += [k] * len(order)
        left.append(1 - energy[order].sum() / max(energy.sum(), 1e-300))
    phi, y = np.concatenate(columns, axis=2), np.concatenate(coordinates, axis=1)
    return SkinBasis(weights, window, np.array(domain), phi, y, np.array(left))


def _displacements(model: FemModel, weights: np.ndarray, runs) -> np.ndarray:
    """Pulled-back displacements d of all shapes of the runs (S, N, 3) [m].

    Raises:
        InvalidInput: for runs without shapes, or of another skin.
    """
    if not runs or not sum(map(len, runs)):
        raise InvalidInput("reduced skin: no shapes to learn from")
    sparse, d = SparseWeights.of(weights), []
    for run in runs:
        if run.positions.shape[1:] != model.rest.shape:
            raise InvalidInput(
                f"reduced skin: runs of {run.positions.shape[1]} nodes, the skin has "
                f"{len(model.rest)}"
            )
        for x, motion in zip(run.positions, run.motions):
            d.append(pulled_back(x, sparse, motion) - model.rest)
    return np.array(d)
