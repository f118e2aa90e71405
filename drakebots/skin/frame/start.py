"""The initial shape of the skin when the skeleton starts away from its rest pose.

The skeleton goes from its rest pose to q in small moves. In each of them the skin first
moves with the nearest links. Then its static equilibrium under its weight is found,
with its glue on the links (:func:`warm_start`).
"""

from __future__ import annotations

import numpy as np
from pydrake.multibody.plant import MultibodyPlant
from pydrake.systems.framework import Context

from drakebots.core.errors import NoSolution
from drakebots.fem import equilibrium
from drakebots.fem.assembly import FemModel
from drakebots.fem.solver import Prescribed
from drakebots.model import find_body
from drakebots.skin.frame.glue import Glue
from drakebots.skin.frame.skeleton import glue_points

MOVE = 0.15
"""Largest change of a coordinate in one move [rad, m]."""

NEAR = 0.02
"""Deformation of the glue, relative to the skin's size, up to which the skin moves as a
rigid body, without an equilibrium."""


def rigid_fit(old: np.ndarray, new: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """R (3, 3) and p (3,) with new ~ R old + p in least squares (Kabsch 1976)."""
    a, b = old.mean(axis=0), new.mean(axis=0)
    U, _, Vt = np.linalg.svd((old - a).T @ (new - b))
    sign = np.sign(np.linalg.det(Vt.T @ U.T))
    R = Vt.T @ np.diag([1.0, 1.0, sign]) @ U.T
    return R, b - R @ a


class LinkWeights:
    """Weights of the links at each node of a skin, by distance at rest.

    Weights are proportional to 1/d^4 with d the distance to the nearest glue of each
    link, which blends the motion of links across joints.
    """

    def __init__(self, model: FemModel, glue: Glue):
        self.links = glue.by_body()
        distance = np.empty((len(model.rest), len(self.links)))
        for k, rows in enumerate(self.links.values()):
            held = model.rest[glue.vertices[rows]]
            for start in range(0, len(model.rest), 2000):
                some = slice(start, start + 2000)
                gap = model.rest[some, None] - held
                distance[some, k] = np.sqrt((gap**2).sum(axis=2).min(axis=1))
        weight = 1 / np.maximum(distance, 1e-6) ** 4
        self.weight = weight / weight.sum(axis=1, keepdims=True)

    def moved(self, x: np.ndarray, moves: list) -> np.ndarray:
        """x (N, 3) moved by the blend of the links' RigidTransforms."""
        out = np.zeros_like(x)
        for k, X in enumerate(moves):
            out += self.weight[:, [k]] * (X.multiply(x.T).T)
        return out


def warm_start(
    plant: MultibodyPlant,
    context: Context,
    model: FemModel,
    glue: Glue,
    rest: np.ndarray,
    q: np.ndarray,
    *,
    gravity: np.ndarray,
    solver: str = "auto",
) -> np.ndarray:
    """Positions of the skin (N, 3) [m] with the skeleton at q.

    Args:
        plant, context: the skeleton; the context ends at q.
        model, glue: the skin.
        rest: q in which the skin is at rest (nq,).
        q: positions of the skeleton (nq,).
        gravity: gravity vector (3,) [m/s^2].
        solver: name of the solver of the equilibrium.

    Raises:
        NoSolution: where a move finds no equilibrium.
    """
    plant.SetPositions(context, rest)
    old = glue_points(plant, context, glue)[0]
    plant.SetPositions(context, q)
    new = glue_points(plant, context, glue)[0]
    size = np.linalg.norm(np.ptp(model.rest, axis=0))
    R, p = rigid_fit(old, new)
    if np.linalg.norm(old @ R.T + p - new, axis=1).max() <= NEAR * size:
        moved = np.abs(new - old).max() > 1e-12 * size
        return _placed(model.rest @ R.T + p if moved else model.rest, glue, new)
    moves = int(np.ceil(_change(plant, rest, q) / MOVE)) or 1
    weights = LinkWeights(model, glue)
    bodies = [find_body(plant, name) for name in weights.links]

    def poses():
        return [plant.EvalBodyPoseInWorld(context, body) for body in bodies]

    # The pose of the base causes no strain: it is reached in the first move.
    path = _path(plant, rest, q, moves)
    plant.SetPositions(context, rest)
    before, x = poses(), model.rest
    for k, q_k in enumerate(path, start=1):
        plant.SetPositions(context, q_k)
        now = poses()
        x = weights.moved(x, [b @ a.inverse() for a, b in zip(before, now)])
        before = now
        held = glue_points(plant, context, glue)[0]
        x = _placed(x, glue, held)
        found = equilibrium(
            model,
            Prescribed(glue.vertices, held),
            gravity=gravity,
            start=x,
            solver=solver,
            tolerance=1e-5,
            max_iterations=80,
        )
        if not found.converged:
            raise NoSolution(
                f"skin: no equilibrium in move {k} of {len(path)} from its rest pose "
                f"to the start ({found.message}); start nearer to the rest pose"
            )
        x = found.positions
    return x


def _placed(x, glue, held):
    x = x.copy()
    x[glue.vertices] = held
    return x


def _floating(plant):
    """True at the positions of floating bases (nq,)."""
    held = np.zeros(plant.num_positions(), bool)
    for index in plant.GetJointIndices():
        joint = plant.get_joint(index)
        if "floating" in joint.type_name():
            start = joint.position_start()
            held[start : start + joint.num_positions()] = True
    return held


def _change(plant, rest, q):
    joints = ~_floating(plant)
    return float(np.abs((np.asarray(q) - rest)[joints]).max(initial=0.0))


def _path(plant, rest, q, moves):
    """Positions after each move from rest to q; floating bases reach q in the first."""
    base = _floating(plant)
    out = []
    for k in range(1, moves + 1):
        q_k = rest + (np.asarray(q) - rest) * k / moves
        q_k[base] = np.asarray(q)[base]
        out.append(q_k)
    return out
