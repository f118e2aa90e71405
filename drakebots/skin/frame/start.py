"""The skin where the skeleton stands away from its rest pose.

The skeleton goes from its rest pose to q in small moves; at each the skin moves with
the nearest links and then finds its equilibrium, its glue held, its weight on.
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
"""A glue bent by less than this share of the skin's size needs no equilibrium."""


def rigid_fit(old: np.ndarray, new: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """R (3, 3) and p (3,) with new ~ R old + p, least squares (Kabsch 1976)."""
    a, b = old.mean(axis=0), new.mean(axis=0)
    U, _, Vt = np.linalg.svd((old - a).T @ (new - b))
    sign = np.sign(np.linalg.det(Vt.T @ U.T))
    R = Vt.T @ np.diag([1.0, 1.0, sign]) @ U.T
    return R, b - R @ a


class LinkWeights:
    """How much each node of a skin belongs to each link, by its distance at rest.

    Weights are 1/d^4 to the nearest glue of each link, which blends from link to
    link over a joint.
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
        """x (N, 3) moved by each link's X (RigidTransform), blended."""
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
        plant, context: the skeleton; left at q.
        model, glue: the skin.
        rest: q in which the skin lies at rest (nq,).
        q: where the skeleton stands (nq,).
        gravity: (3,) [m/s^2].
        solver: of the equilibrium.

    Raises:
        NoSolution: where no equilibrium is found on the way.
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

    # The base's place changes no strain: it is taken at once.
    qs = _way(plant, rest, q, moves)
    plant.SetPositions(context, rest)
    before, x = poses(), model.rest
    for k, way in enumerate(qs, start=1):
        plant.SetPositions(context, way)
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
                f"skin: no equilibrium at {k} of {len(qs)} moves from its rest pose to "
                f"the start ({found.message}); start nearer to the rest pose"
            )
        x = found.positions
    return x


def _placed(x, glue, held):
    x = x.copy()
    x[glue.vertices] = held
    return x


def _floating(plant):
    """Positions of floating bases."""
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


def _way(plant, rest, q, moves):
    """Poses on the way, the floating bases at their end from the first on."""
    base = _floating(plant)
    out = []
    for k in range(1, moves + 1):
        way = rest + (np.asarray(q) - rest) * k / moves
        way[base] = np.asarray(q)[base]
        out.append(way)
    return out
