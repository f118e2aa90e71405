"""Extent of a robot's geometry: its shapes as points with a radius.

Every shape is covered by points P_i of a body with one radius r (a ball has one
point, a box eight with r = 0, a mesh the vertices of its convex hull), so that its
lowest point in the world is

    min_i (z of p_WP_i) - r

which is exact for balls, capsules, boxes and meshes, and within 0.2 % of the size of
cylinders and ellipsoids.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from pydrake.geometry import SceneGraph
from pydrake.multibody.plant import MultibodyPlant
from pydrake.multibody.tree import BodyIndex
from pydrake.systems.framework import Context

from drakebots.model import bodies_of, shape_points


@dataclass(frozen=True)
class Cover:
    """A shape of a body as points with a radius.

    Attributes:
        body: index of the body in the plant.
        points: positions in the body (n, 3), in the plant's unit of length.
        radius: radius of the ball around each point.
    """

    body: BodyIndex
    points: np.ndarray
    radius: float


def covers(plant: MultibodyPlant, scene_graph: SceneGraph) -> tuple[Cover, ...]:
    """The shapes of all bodies but the world's: those of contact, else those drawn.

    Args:
        plant: finalized, registered with the scene graph.
        scene_graph: scene graph of the plant. Meshes that cannot be read are left
            out.
    """
    inspector = scene_graph.model_inspector()
    for shapes_of in (
        plant.GetCollisionGeometriesForBody,
        plant.GetVisualGeometriesForBody,
    ):
        found = []
        for body in bodies_of(plant)[1:]:
            for shape in shapes_of(body):
                X_BG = inspector.GetPoseInFrame(shape)
                points, radius = shape_points(inspector.GetShape(shape))
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
