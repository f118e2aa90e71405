"""Feet that touch the ground as the points that programs plan with, or at all.

A foot's own collision geometry may be a mesh, a box (of which point contact finds one
corner, so that it rocks) or nothing at all (it would sink into the ground). With soles,
a body that carries feet touches the ground with one sphere at each of them; all other
bodies touch it with their own geometry, and no two bodies of the robot touch each
other. :func:`add_foot_contacts` gives such balls only to flat feet and those without a
shape, and leaves all other contacts as they are.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np
from pydrake.geometry import (
    CollisionFilterDeclaration,
    GeometryId,
    GeometrySet,
    ProximityProperties,
    SceneGraph,
    Sphere,
)
from pydrake.math import RigidTransform
from pydrake.multibody.plant import MultibodyPlant
from pydrake.systems.framework import Context
from scipy.optimize import nnls
from scipy.spatial import ConvexHull, QhullError

from drakebots.model import Model, Point, bodies_of, find_body, point_jacobian
from drakebots.multibody.plant import Ground, Robot

POINT = 1e-9
"""Radius of the ball of a point foot [m]."""

PROUD = 5e-4
"""Height by which balls stand out of a sole with a shape of its own [m]: Drake lets a
robot's weight sink in by less. A mesh or cylinder that lies on the ground touches it at
one end at a time, another in every step, and the foot would chatter."""


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
    bare = {
        name
        for name in points
        if not plant.GetCollisionGeometriesForBody(find_body(plant, name))
    }
    balls = [
        f if f.body in bare else replace(f, radius=f.radius + PROUD)
        for f in model.feet
        if f.body in bare or points[f.body] > 1
    ]
    add_soles(plant, balls, Ground(friction).material())
    return sum(foot.body in bare for foot in model.feet)


def add_soles(
    plant: MultibodyPlant, feet: Sequence[Point], material: ProximityProperties
) -> list[GeometryId]:
    """Adds the spheres of feet to a plant, before Finalize.

    Args:
        plant: plant with the bodies of the feet, in SI.
        feet: the feet.
        material: contact properties of the soles, those of the ground.

    Returns:
        The geometry of each foot.
    """
    return [
        plant.RegisterCollisionGeometry(
            find_body(plant, foot.body),
            RigidTransform(np.array(foot.p_BF)),
            Sphere(max(foot.radius, POINT)),
            f"sole_{foot.name}",
            material,
        )
        for foot in feet
    ]


def touch_by_soles(
    plant: MultibodyPlant, scene_graph: SceneGraph, soles: Sequence[GeometryId]
) -> None:
    """Excludes all contacts but those that this module describes; after Finalize."""
    manager = scene_graph.collision_filter_manager()
    world = plant.GetCollisionGeometriesForBody(plant.world_body())
    kept, robot, of_feet = set(soles), [], []
    for body in bodies_of(plant)[1:]:
        own = plant.GetCollisionGeometriesForBody(body)
        robot += own
        if kept & set(own):
            for part in plant.GetBodiesWeldedTo(body):
                own += plant.GetCollisionGeometriesForBody(part)
            of_feet += [key for key in own if key not in kept]
    declared = CollisionFilterDeclaration().ExcludeWithin(GeometrySet(robot))
    manager.Apply(
        declared.ExcludeBetween(GeometrySet(of_feet), GeometrySet(list(world)))
    )


def forces_on_soles(
    plant: MultibodyPlant, context: Context, soles: Mapping[GeometryId, int], count: int
) -> np.ndarray:
    """Forces of point contacts on soles in the world (count, 3) [N], of the last step.

    Args:
        plant, context: the plant and its Context.
        soles: row of the sole that each geometry belongs to.
        count: number of soles.
    """
    results = plant.get_contact_results_output_port().Eval(context)
    force = np.zeros((count, 3))
    for k in range(results.num_point_pair_contacts()):
        info = results.point_pair_contact_info(k)
        pair = info.point_pair()
        # The contact force is that on body B.
        for key, sign in ((pair.id_B, 1.0), (pair.id_A, -1.0)):
            if key in soles:
                force[soles[key]] += sign * info.contact_force()
    return force


def soles_jacobian(robot: Robot, context: Context) -> np.ndarray:
    """J (3 num_feet, nv) of the feet's lowest points, as points of their bodies.

    A round foot that rolls moves at its centre, not there.
    """
    rows = [np.zeros((0, robot.plant.num_velocities()))]
    for (frame, p), foot in zip(robot.frames(robot.model.feet), robot.model.feet):
        R_WB = frame.CalcPoseInWorld(context).rotation().matrix()
        down = -foot.radius / robot.scaling.length * R_WB[2]
        rows.append(point_jacobian(robot.plant, context, frame, p + down))
    return np.vstack(rows)


def polygon(points: np.ndarray) -> np.ndarray | None:
    """Convex hull of points (k, 2), counterclockwise; None if they span no area."""
    points = np.atleast_2d(np.asarray(points, float))
    if len(points) < 3:
        return None
    try:
        return points[ConvexHull(points).vertices]
    except QhullError:
        return None


def nearest_in_hull(x: np.ndarray, points: np.ndarray) -> np.ndarray:
    """The point nearest to x (2,) in the convex hull of points (n, 2), n >= 1."""
    # Lawson and Hanson's least distance as a problem of least squares.
    away = points - x
    size = np.abs(away).max()
    if size == 0.0:
        return x
    rows = np.vstack([away.T / size, np.ones(len(points))])
    share, _ = nnls(rows, [0.0, 0.0, 1.0])
    return share @ points / share.sum()
