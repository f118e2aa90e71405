"""Contact shapes for feet whose file has none, or too few.

A foot without any collision shape would sink into the ground, and a flat one touches it
at a single point at a time (point contact has one point for a pair of shapes), so that
it rocks. Both get a ball at each of their points.
"""

from __future__ import annotations

from collections import Counter

from pydrake.geometry import AddContactMaterial, ProximityProperties, Sphere
from pydrake.math import RigidTransform
from pydrake.multibody.plant import CoulombFriction, MultibodyPlant

from drakebots.model import Model, find_body

POINT = 1e-9
"""Radius of the ball of a point foot [m]."""


def add_foot_contacts(plant: MultibodyPlant, model: Model, friction: float) -> int:
    """Adds a ball at every point of flat feet, and of feet without collision shapes.

    Args:
        plant: plant in SI with the model, registered with a scene graph, not finalized.
        model: model whose feet are used.
        friction: coefficient of the balls.

    Returns:
        The number of feet (points) without a collision shape of their own.
    """
    points = Counter(foot.body for foot in model.feet)
    properties = ProximityProperties()
    AddContactMaterial(
        friction=CoulombFriction(friction, friction), properties=properties
    )
    bare = {
        name
        for name in points
        if not plant.GetCollisionGeometriesForBody(find_body(plant, name))
    }
    for foot in model.feet:
        if foot.body in bare or points[foot.body] > 1:
            plant.RegisterCollisionGeometry(
                find_body(plant, foot.body),
                RigidTransform(foot.p_BF),
                Sphere(max(foot.radius, POINT)),
                f"{foot.name}_contact",
                properties,
            )
    return sum(foot.body in bare for foot in model.feet)
