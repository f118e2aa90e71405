"""Sticks for a model without any geometry: from joint to joint, and on to the feet."""

from __future__ import annotations

from collections import defaultdict

import numpy as np
from pydrake.geometry import Cylinder, Sphere
from pydrake.math import RigidTransform, RotationMatrix
from pydrake.multibody.plant import MultibodyPlant
from pydrake.multibody.tree import BodyIndex, RigidBody

from drakebots.model import Model

_STICK = np.array([0.45, 0.50, 0.58, 1.0])
_BALL = np.array([0.85, 0.45, 0.20, 1.0])
_THICKNESS = 0.05
"""Radius of the sticks, as a share of the median of their lengths."""

_LONE_RADIUS = 0.05
"""Radius of the ball that stands for a model without any length [m]."""


def add_sticks(plant: MultibodyPlant, model: Model) -> None:
    """Adds visual geometry to the bodies of a model that has none, before Finalize.

    A link's sticks begin at the joint that holds it, or at its origin, and end at the
    joints and feet that it carries; a link that carries none gets one to its COM.

    Args:
        plant: plant with the model's bodies, registered with a SceneGraph.
        model: model that was added to it.
    """
    starts, ends = _ends(plant, model)
    sticks = [
        (body, starts[body], end)
        for body, found in ends.items()
        for end in found
        if np.linalg.norm(end - starts[body]) > 1e-9
    ]
    lengths = [float(np.linalg.norm(end - start)) for _, start, end in sticks]
    radius = _THICKNESS * float(np.median(lengths)) if lengths else _LONE_RADIUS
    for k, ((index, start, end), length) in enumerate(zip(sticks, lengths)):
        # The cylinder's axis is z.
        R = RotationMatrix.MakeFromOneVector(end - start, 2)
        plant.RegisterVisualGeometry(
            plant.get_body(index),
            RigidTransform(R, (start + end) / 2),
            Cylinder(radius, length),
            f"stick_{k}",
            _STICK,
        )
    for index, start in starts.items():
        plant.RegisterVisualGeometry(
            plant.get_body(index),
            RigidTransform(start),
            Sphere(1.6 * radius),
            "joint_ball",
            _BALL,
        )


def _ends(
    plant: MultibodyPlant, model: Model
) -> tuple[dict[BodyIndex, np.ndarray], dict[BodyIndex, list[np.ndarray]]]:
    """Where each body's sticks begin (3,) and end, in the body [m]."""
    bodies = [plant.get_body(BodyIndex(i)) for i in range(1, plant.num_bodies())]
    starts = {body.index(): np.zeros(3) for body in bodies}
    ends: dict[BodyIndex, list[np.ndarray]] = defaultdict(list)
    for index in plant.GetJointIndices():
        joint = plant.get_joint(index)
        inner, outer = joint.frame_on_parent(), joint.frame_on_child()
        if joint.child_body().index() in starts:
            p = outer.GetFixedPoseInBodyFrame().translation()
            starts[joint.child_body().index()] = p
        if joint.parent_body().index() in starts:
            p = inner.GetFixedPoseInBodyFrame().translation()
            ends[joint.parent_body().index()].append(p)
    for foot in model.feet:
        for body in bodies:
            if body.name() == foot.body:
                ends[body.index()].append(foot.p_BF)
    for body in bodies:
        if not ends[body.index()]:
            ends[body.index()].append(_com(body))
    return starts, ends


def _com(body: RigidBody) -> np.ndarray:
    p = np.array(body.default_com())
    return p if np.isfinite(p).all() else np.zeros(3)
