"""Poses, shapes and contact properties in another system of units."""

from __future__ import annotations

from pydrake.geometry import (
    Box,
    Capsule,
    Convex,
    Cylinder,
    Ellipsoid,
    HalfSpace,
    Mesh,
    ProximityProperties,
    Sphere,
)
from pydrake.math import RigidTransform

from drakebots.errors import InvalidInput
from drakebots.units import Scaling


def scaled_transform(X: RigidTransform, scaling: Scaling) -> RigidTransform:
    """The pose with its translation in scaled units."""
    return RigidTransform(X.rotation(), X.translation() / scaling.length)


def scaled_shape(shape, length: float):
    """A shape with its sizes divided by the unit of length [m].

    Raises:
        InvalidInput: for a shape without a scaled form.
    """
    if isinstance(shape, HalfSpace):
        return HalfSpace()
    if isinstance(shape, Sphere):
        return Sphere(shape.radius() / length)
    if isinstance(shape, Box):
        return Box(*(shape.size() / length))
    if isinstance(shape, Cylinder):
        return Cylinder(shape.radius() / length, shape.length() / length)
    if isinstance(shape, Capsule):
        return Capsule(shape.radius() / length, shape.length() / length)
    if isinstance(shape, Ellipsoid):
        return Ellipsoid(shape.a() / length, shape.b() / length, shape.c() / length)
    if isinstance(shape, Mesh | Convex):
        return type(shape)(shape.source(), shape.scale3() / length)
    raise InvalidInput(f"shape {type(shape).__name__} cannot be scaled")


def scaled_proximity(source: ProximityProperties, unit: Scaling) -> ProximityProperties:
    """Properties of contact in scaled units; what has no unit we know stays."""
    scales = {
        ("material", "point_contact_stiffness"): unit.of(mass=1, time=-2),
        ("material", "hunt_crossley_dissipation"): 1 / unit.velocity,
        ("material", "relaxation_time"): unit.time,
        ("hydroelastic", "hydroelastic_modulus"): unit.of(mass=1, length=-1, time=-2),
        ("hydroelastic", "resolution_hint"): unit.length,
        ("hydroelastic", "slab_thickness"): unit.length,
    }
    copy = ProximityProperties()
    for group in source.GetGroupNames():
        for key, value in source.GetPropertiesInGroup(group).items():
            value = value.get_value()
            scale = scales.get((group, key))
            copy.AddProperty(group, key, value / scale if scale else value)
    return copy
