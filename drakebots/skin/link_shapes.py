"""Signed distances of many points to the simple shapes of links, vectorised."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from pydrake.geometry import Box, Capsule, Cylinder, SceneGraphInspector, Sphere
from pydrake.math import RigidTransform
from pydrake.multibody.plant import MultibodyPlant
from pydrake.multibody.tree import BodyIndex, RigidBody
from pydrake.systems.framework import Context

from drakebots.errors import InvalidInput

SHAPES = (Sphere, Capsule, Cylinder, Box)


@dataclass(frozen=True)
class LinkShape:
    """A collision shape of a link.

    Attributes:
        body: of the plant.
        X_BG: its frame in the body's.
        shape: one of SHAPES.
    """

    body: RigidBody
    X_BG: RigidTransform
    shape: object

    def distance(self, p_G: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Signed distances (n,) [m] and gradients (n, 3) in the shape's frame."""
        s = self.shape
        if isinstance(s, Sphere):
            return _round(p_G, s.radius())
        if isinstance(s, Capsule):
            half = s.length() / 2
            axis = np.zeros_like(p_G)
            axis[:, 2] = np.clip(p_G[:, 2], -half, half)
            return _round(p_G - axis, s.radius())
        if isinstance(s, Cylinder):
            # A rectangle in the plane of radius and height.
            r = np.linalg.norm(p_G[:, :2], axis=1)
            flat = np.stack([r, p_G[:, 2]], axis=1)
            d, g = _box(flat, np.array([s.radius(), s.length() / 2]))
            out = p_G[:, :2] / np.maximum(r, 1e-300)[:, None]
            return d, np.concatenate([g[:, :1] * out, g[:, 1:]], axis=1)
        return _box(p_G, np.asarray(s.size()) / 2)


def _round(p, radius):
    length = np.linalg.norm(p, axis=1)
    return length - radius, p / np.maximum(length, 1e-300)[:, None]


def _box(p, half):
    q = np.abs(p) - half
    sign = np.where(p < 0, -1.0, 1.0)
    outside = np.maximum(q, 0.0)
    length = np.linalg.norm(outside, axis=1)
    inside = q.max(axis=1)
    nearest = np.zeros_like(p)
    nearest[np.arange(len(p)), np.argmax(q, axis=1)] = 1.0
    out = length > 0
    gradient = np.where(
        out[:, None], outside / np.maximum(length, 1e-300)[:, None], nearest
    )
    return np.where(out, length, inside), sign * gradient


def link_shapes(plant: MultibodyPlant, context: Context) -> tuple[LinkShape, ...]:
    """The collision shapes of all links but the world.

    Raises:
        InvalidInput: for a plant without SceneGraph, or a mesh or another shape.
    """
    port = plant.get_geometry_query_input_port()
    if not port.HasValue(context):
        raise InvalidInput("skin on links: the plant has no SceneGraph beside it")
    inspector: SceneGraphInspector = port.Eval(context).inspector()
    found = []
    for index in map(BodyIndex, range(1, plant.num_bodies())):
        body = plant.get_body(index)
        for geometry in plant.GetCollisionGeometriesForBody(body):
            shape = inspector.GetShape(geometry)
            if not isinstance(shape, SHAPES):
                names = ", ".join(kind.__name__.lower() for kind in SHAPES)
                raise InvalidInput(
                    f"skin on links: {inspector.GetName(geometry)!r} of link "
                    f"{body.name()!r} is none of {names}; replace it, or switch "
                    "skeleton collisions off"
                )
            found.append(LinkShape(body, inspector.GetPoseInFrame(geometry), shape))
    return tuple(found)
