"""Size, centre of mass and torques of a skeleton on its feet, for the tests."""

from __future__ import annotations

import numpy as np

from drakebots.core.errors import InvalidInput
from drakebots.design.skeleton import Skeleton


def com_of(skeleton: Skeleton) -> np.ndarray:
    """Centre of mass at rest (3,) [m]."""
    moment = sum(link.mass * (link.origin + link.com) for link in skeleton.links)
    return moment / skeleton.mass


def size_of(skeleton: Skeleton) -> np.ndarray:
    """Sides of the box around everything at rest, the ground included (3,) [m]."""
    points, _ = skeleton.corners(("shell", "servo", "payload", "rib"))
    low = np.minimum(points.min(axis=0), [np.inf, np.inf, 0.0])
    return points.max(axis=0) - low


def standing_torques(skeleton: Skeleton, mass: float | None = None) -> np.ndarray:
    """Torques that hold the rest pose on four feet, static.

    Each sole carries a vertical force f at its middle P; the four are the smallest
    that balance the weight and its moments. For the links k beyond joint j

        tau_j = -axis_j . [(p_P - p_J) x f - sum_k (p_k - p_J) x m_k g z]

    Args:
        skeleton: at rest.
        mass: of the whole robot [kg], spread as the skeleton's is; the skeleton's
            by default.

    Returns:
        One a hinge (m,) [N m].

    Raises:
        InvalidInput: when a force would pull, as the centre of mass is outside
            the feet.
    """
    weight = 9.81 * (skeleton.mass if mass is None else mass)
    middle = np.array(
        [skeleton.link(s.link).origin + s.p_BP[4] for s in skeleton.soles]
    )
    com = com_of(skeleton)
    arm = middle - com
    balance = np.stack([np.ones(len(arm)), arm[:, 0], arm[:, 1]])
    force = np.linalg.pinv(balance) @ np.array([weight, 0.0, 0.0])
    if force.min() < 0:
        foot = skeleton.soles[int(np.argmin(force))].foot
        raise InvalidInput(
            f"skeleton {skeleton.name}: foot {foot} would have to pull; move the feet "
            f"or the torso's mass (centre of mass at x = {com[0]:.3f} m)"
        )
    loads = [
        (sole.link, p, np.array([0.0, 0.0, f]))
        for sole, p, f in zip(skeleton.soles, middle, force)
    ]
    for link in skeleton.links:
        pull = np.array([0.0, 0.0, -weight * link.mass / skeleton.mass])
        loads.append((link.name, link.origin + link.com, pull))
    torque = np.zeros(len(skeleton.hinges))
    for name, p, f in loads:
        above = _ancestors(skeleton, name)
        for k, hinge in enumerate(skeleton.hinges):
            if hinge.child in above:
                torque[k] -= hinge.axis @ np.cross(p - hinge.p_WJ, f)
    return torque


def _ancestors(skeleton, name):
    names = set()
    while name is not None:
        names.add(name)
        name = skeleton.link(name).parent
    return names
