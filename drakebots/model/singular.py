"""Links that move without inertia, which make a mass matrix singular."""

from __future__ import annotations

import numpy as np
from pydrake.multibody.plant import MultibodyPlant

SINGULAR = 1e-13
"""Smallest eigenvalue of a regular mass matrix whose diagonal is scaled to 1."""

PART = 0.1
"""A coordinate belongs to a singular direction with at least this part of it."""


def moving_without_inertia(plant: MultibodyPlant, M: np.ndarray) -> tuple[str, ...]:
    """The joints that move without inertia, "link 'toe' on joint 'ankle'" each.

    Args:
        plant: finalized.
        M: its mass matrix (nv, nv).

    Returns:
        One text for every joint with a coordinate in the null space of M; none for a
        regular matrix.
    """
    if not M.size:
        return ()
    diagonal = np.maximum(np.diag(M), 0.0)
    scale = np.sqrt(np.where(diagonal > 0, diagonal, 1.0))
    values, vectors = np.linalg.eigh(M / np.outer(scale, scale))
    null = np.abs(vectors[:, values < SINGULAR]).max(axis=1, initial=0.0) > PART
    found = []
    for index in plant.GetJointIndices():
        joint = plant.get_joint(index)
        start = joint.velocity_start()
        if null[start : start + joint.num_velocities()].any():
            link = f"link {joint.child_body().name()!r}"
            is_floating = "floating" in joint.type_name()
            found.append(link + ("" if is_floating else f" on joint {joint.name()!r}"))
    return tuple(found)
