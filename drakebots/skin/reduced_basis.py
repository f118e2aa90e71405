"""Modes of a reduced skin, learnt from runs of the full one.

Runs are pulled back to the rest pose by the blend of the links
(:mod:`drakebots.skin.reduced_shape`); what is left of the displacement is the strain a
bent joint leaves behind, and depends mostly on the joints near by. So it is split by
windows of the blend's weights into domains, one for the base and one for each limb, and
each domain has its own modes: proper orthogonal decomposition in the inner product of
the rest pose's tangent K,

    Phi' K Phi = 1 in a domain,  sum over snapshots |d - Phi y|_K^2 least,

so the error that is least is one of energy, and y counts in sqrt(J). Local modes after
Kim and James, "Physics-based character skinning using multi-domain subspaces" (2012).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from pydrake.multibody.plant import MultibodyPlant

from drakebots.errors import InvalidInput, NoSolution
from drakebots.fem.assembly import FemModel, force_and_tangent
from drakebots.skin.reduced_shape import LinkMotion, SparseWeights, pulled_back
from drakebots.skin.stepper import CoupledState, CoupledStepper

WINDOW = (0.05, 0.6)
"""A limb's weights below the first count as the base's, above the second as its own."""


@dataclass(frozen=True)
class SkinRun:
    """Shapes of a full skin and where its links stood.

    Attributes:
        motions: one a shape, spin and drift of the actuated joints (m) alone.
        positions: of the nodes (S, N, 3) [m].
    """

    motions: tuple[LinkMotion, ...]
    positions: np.ndarray

    def __len__(self) -> int:
        return len(self.motions)


def snapshots(
    stepper: CoupledStepper, states: Iterable[CoupledState], links, B: np.ndarray
) -> SkinRun:
    """A run out of states of the full skin.

    Args:
        stepper: whose plant they are of.
        states: at least one.
        links: :class:`~drakebots.skin.reduced_shape.Links` of that plant.
        B: torques to generalized forces (nv, m).
    """
    motions, positions = [], []
    for state in states:
        stepper.pose(state.q, state.v)
        motion = links.motion(stepper.context)
        motions.append(
            LinkMotion(motion.turn, motion.shift, motion.spin @ B, motion.drift @ B)
        )
        positions.append(state.skin.positions)
    return SkinRun(tuple(motions), np.array(positions))


def record_states(
    stepper: CoupledStepper,
    servo: Callable[[float], object],
    frames: int,
    every: int = 2,
    check: Callable[[], None] = lambda: None,
) -> list[CoupledState]:
    """States of a full run whose servos follow targets, every so many frames.

    Args:
        stepper: of the full skin.
        servo: of the time at a frame's end [s], a Servo.
        frames: how many.
        every: frames from state to state.
        check: called each frame; may raise to stop.

    Raises:
        NoSolution: when a frame fails.
    """
    state, out = stepper.start(), []
    for k in range(frames):
        check()
        result = stepper.step(state, servo=servo(state.skin.time + stepper.dt))
        if not result.converged:
            raise NoSolution(f"training run: {result.message}")
        state = result.state
        if (k + 1) % every == 0:
            out.append(state)
    return out


def limb_of(plant: MultibodyPlant, links: Sequence[str]) -> np.ndarray:
    """The domain of each link (L,): 0 the base's, k the k-th limb's with links.

    The base is the first body of the tree that more than one joint leaves, or the
    tree's first body; a limb is what hangs on it by one joint.
    """
    parent, children = {}, {}
    for index in plant.GetJointIndices():
        joint = plant.get_joint(index)
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
    """Share of each domain in each node (N, D), rows adding to 1."""
    own = np.stack(
        [weights[:, limb == k].sum(axis=1) for k in range(limb.max() + 1)], axis=1
    )
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
        weights: of the links (N, L).
        window: share of the domains (N, D).
        domain: of each mode (r,).
        modes: Phi (N, 3, r) [m/sqrt(J)].
        coordinates: y of each snapshot (S, r) [sqrt(J)].
        left: per domain, what share of the snapshots' energy the modes leave (D,).
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
    *,
    limb_modes: int = 20,
    base_modes: int = 12,
) -> SkinBasis:
    """Modes of the runs.

    Args:
        model: the skin.
        weights: of the links (N, L).
        limb: domain of each link (L,).
        runs: shapes of the full skin.
        limb_modes, base_modes: most modes of a limb, and of the base.

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
    d = np.array(d)
    _, K = force_and_tangent(model, model.rest)
    K = model.pattern.full(K)
    window = windows(weights, limb)
    columns, coordinates, domain, left = [], [], [], []
    for k in range(window.shape[1]):
        inside = window[:, k] > 1e-9
        if not inside.any():
            left.append(0.0)
            continue
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
    return SkinBasis(
        weights,
        window,
        np.array(domain),
        np.concatenate(columns, axis=2),
        np.concatenate(coordinates, axis=1),
        np.array(left),
    )
