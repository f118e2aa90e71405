"""Extent of shapes: a robot's as points with a radius, any as signed distances.

Every shape is covered by points P_i of a body with one radius r (a ball has one
point, a box eight with r = 0, a mesh the vertices of its convex hull), so that its
lowest point in the world is

    min_i (z of p_WP_i) - r

which is exact for balls, capsules, boxes and meshes, and within 0.2 % of the size of
cylinders and ellipsoids.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from pydrake.geometry import (
    Ellipsoid,
    GeometryInstance,
    HalfSpace,
    ProximityProperties,
    QueryObject,
    SceneGraph,
    Shape,
)
from pydrake.math import RigidTransform
from pydrake.multibody.plant import MultibodyPlant
from pydrake.multibody.tree import BodyIndex
from pydrake.systems.framework import Context

from drakebots.model import bodies_of, shape_points, shape_sizes


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


# --- distances ----------------------------------------------------------------


class Distances:
    """Drake's signed distances from one shape, in its own frame.

    Args:
        shape: any that SceneGraph has them for.
        pieces: boxes that hold the shape together, as middles and half sizes, where
            they are far apart.
    """

    def __init__(
        self, shape: Shape, pieces: Sequence[tuple[np.ndarray, np.ndarray]] = ()
    ):
        self.shape, self.graph, self.box = shape, SceneGraph(), None
        self.pieces = pieces
        if isinstance(shape, HalfSpace):
            return  # Drake warns of each that deformable bodies do not touch it
        instance = GeometryInstance(RigidTransform(), shape, "shape")
        instance.set_proximity_properties(ProximityProperties())
        source = self.graph.RegisterSource("alone")
        id = self.graph.RegisterAnchoredGeometry(source, instance)
        self.box = self.graph.model_inspector().GetObbInGeometryFrame(id)
        # The query refers to the context.
        self.context = self.graph.CreateDefaultContext()
        port = self.graph.get_query_output_port()
        self.query: QueryObject = port.Eval(self.context)

    def __call__(self, p: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Signed distances of points (n, 3) [m], none without any, and gradients."""
        if self.box is None:
            return p[:, 2], np.tile([0.0, 0.0, 1.0], (len(p), 1))
        if isinstance(self.shape, Ellipsoid):
            return _from_ellipsoid(p, shape_sizes(self.shape))
        found = [self.query.ComputeSignedDistanceToPoint(x, np.inf) for x in p]
        distance = np.array([one.distance for each in found for one in each])
        return distance, np.array([one.grad_W for each in found for one in each])

    def beside_box(self, p: np.ndarray) -> np.ndarray:
        """A lower bound of the distances of points (n, 3): (n,) [m]."""
        box = self.box
        if box is None:
            return p[:, 2]
        p_O = (box.pose().inverse() @ p.T).reshape(3, -1).T
        bound = _from_box(p_O, box.half_width())
        pieces = [_from_box(p - middle, half) for middle, half in self.pieces]
        return np.maximum(bound, np.min(pieces, axis=0)) if pieces else bound


def _from_box(p: np.ndarray, half: np.ndarray) -> np.ndarray:
    """Signed distances of points (n, 3) from a box, deep inside a bound (n,) [m]."""
    out = np.abs(p) - half
    outside = np.linalg.norm(np.maximum(out, 0.0), axis=1)
    return outside + np.minimum(out.max(axis=1), 0.0)


def _from_ellipsoid(p: np.ndarray, axes: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Signed distances of points (n, 3) [m] from an ellipsoid, and gradients.

    The nearest point is a^2 p/(t + a^2) with the largest root t of
    sum (a p/(t + a^2))^2 = 1, found by bisection (Eberly, Distance from a point to an
    ellipse, an ellipsoid, or a hyperellipsoid, 2013). Drake's distances are off by half
    a percent of the axes, and for some points do not end (1.51).
    """
    least = np.argmin(axes)
    p = p.copy()
    flat = np.abs(p[:, least]) < 1e-9 * axes[least]
    p[flat, least] = 1e-9 * axes[least]  # to either side of its middle plane
    low = axes[least] * np.abs(p[:, least]) - axes[least] ** 2
    high = np.linalg.norm(axes * p, axis=1) - axes[least] ** 2
    for _ in range(60):
        t = (low + high) / 2
        outside = ((axes * p / (t[:, None] + axes**2)) ** 2).sum(axis=1) > 1
        low, high = np.where(outside, t, low), np.where(outside, high, t)
    nearest = axes**2 * p / (t[:, None] + axes**2)
    normal = nearest / axes**2
    normal /= np.linalg.norm(normal, axis=1, keepdims=True)
    return np.sign(t) * np.linalg.norm(p - nearest, axis=1), normal
