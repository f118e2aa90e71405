"""How far a robot's geometry reaches: its shapes as points with a radius.

Every shape is covered by points P_i of a body with one radius r (a ball has one
point, a box eight with r = 0, a mesh the vertices of its convex hull), so that its
lowest point in the world is

    min_i (z of p_WP_i) - r

which is exact for balls, capsules, boxes and meshes, and within 0.2 % of the size of
cylinders and ellipsoids.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import product

import numpy as np
from pydrake.geometry import (
    Box,
    Capsule,
    Convex,
    Cylinder,
    Ellipsoid,
    Mesh,
    SceneGraph,
    Sphere,
)
from pydrake.multibody.plant import MultibodyPlant
from pydrake.multibody.tree import BodyIndex
from pydrake.systems.framework import Context

_AROUND = np.linspace(0, 2 * np.pi, 48, endpoint=False)


@dataclass(frozen=True)
class Cover:
    """A shape of a body as points with a radius.

    Attributes:
        body: index of the body in the plant.
        points: positions in the body (n, 3), in the plant's unit of length.
        radius: of the ball around each point.
    """

    body: BodyIndex
    points: np.ndarray
    radius: float


def covers(
    plant: MultibodyPlant, scene_graph: SceneGraph, *, visual: bool = True
) -> tuple[Cover, ...]:
    """The shapes of all bodies but the world's: those of contact, else those drawn.

    Args:
        plant: finalized, registered with the scene graph.
        scene_graph: of the plant.
        visual: whether a model without any collision shape is covered by what it
            draws. Meshes that cannot be read are left out.
    """
    inspector = scene_graph.model_inspector()
    bodies = [plant.get_body(BodyIndex(i)) for i in range(1, plant.num_bodies())]
    kinds = [plant.GetCollisionGeometriesForBody]
    if visual:
        kinds.append(plant.GetVisualGeometriesForBody)
    for shapes_of in kinds:
        found = []
        for body in bodies:
            for shape in shapes_of(body):
                X_BG = inspector.GetPoseInFrame(shape)
                points, radius = _cover(inspector.GetShape(shape))
                if len(points):
                    p_BP = X_BG.rotation().matrix() @ points.T
                    p_BP = p_BP.T + X_BG.translation()
                    found.append(Cover(body.index(), p_BP, radius))
        if found:
            return tuple(found)
    return ()


def lowest_points(
    plant: MultibodyPlant, context: Context, shapes: tuple[Cover, ...]
) -> np.ndarray:
    """z of the lowest point of every shape (len(shapes),), in plant units."""
    lowest = np.empty(len(shapes))
    for k, shape in enumerate(shapes):
        X_WB = plant.EvalBodyPoseInWorld(context, plant.get_body(shape.body))
        down = X_WB.rotation().matrix()[2]
        z = X_WB.translation()[2] + shape.points @ down
        lowest[k] = z.min() - shape.radius
    return lowest


def _cover(shape) -> tuple[np.ndarray, float]:
    """Points (n, 3) in the shape's frame, and their radius."""
    if isinstance(shape, Sphere):
        return np.zeros((1, 3)), shape.radius()
    if isinstance(shape, Capsule):
        half = shape.length() / 2
        return np.array([[0, 0, -half], [0, 0, half]]), shape.radius()
    if isinstance(shape, Box):
        return np.array(list(product((-0.5, 0.5), repeat=3))) * shape.size(), 0.0
    if isinstance(shape, Cylinder):
        rim = np.stack([np.cos(_AROUND), np.sin(_AROUND)], 1) * shape.radius()
        half = np.full((len(rim), 1), shape.length() / 2)
        return np.vstack([np.hstack([rim, half]), np.hstack([rim, -half])]), 0.0
    if isinstance(shape, Ellipsoid):
        tilt = np.linspace(-np.pi / 2, np.pi / 2, 25)[:, None]
        ball = np.stack(
            [
                np.cos(tilt) * np.cos(_AROUND),
                np.cos(tilt) * np.sin(_AROUND),
                np.sin(tilt) * np.ones_like(_AROUND),
            ],
            -1,
        )
        return ball.reshape(-1, 3) * [shape.a(), shape.b(), shape.c()], 0.0
    if isinstance(shape, Convex | Mesh):
        return _hull(shape), 0.0
    return np.zeros((0, 3)), 0.0  # half spaces have no lowest point


def _hull(shape: Convex | Mesh) -> np.ndarray:
    try:
        hull = shape.GetConvexHull()
    except (RuntimeError, ValueError):
        return np.zeros((0, 3))
    return np.array([hull.vertex(i) for i in range(hull.num_vertices())])
