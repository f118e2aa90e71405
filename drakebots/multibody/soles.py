"""Feet that touch the ground as the points that programs plan with.

A foot's own collision geometry may be a mesh, a box (of which point contact finds one
corner) or nothing at all. With soles, a body that carries feet touches the ground with
one sphere at each of them; all other bodies touch it with their own geometry, and no
two bodies of the robot touch each other.
"""

from __future__ import annotations

from collections.abc import Sequence

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
from pydrake.multibody.tree import BodyIndex, JacobianWrtVariable
from pydrake.systems.framework import Context

from drakebots.model import Point, find_body
from drakebots.multibody.foot_contacts import POINT
from drakebots.multibody.plant import Robot


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
    for i in range(1, plant.num_bodies()):
        own = plant.GetCollisionGeometriesForBody(plant.get_body(BodyIndex(i)))
        robot += own
        if kept & set(own):
            of_feet += [key for key in own if key not in kept]
    declared = CollisionFilterDeclaration().ExcludeWithin(GeometrySet(robot))
    manager.Apply(
        declared.ExcludeBetween(GeometrySet(of_feet), GeometrySet(list(world)))
    )


def soles_jacobian(robot: Robot, context: Context) -> np.ndarray:
    """J (3 num_feet, nv) of the feet's lowest points, as points of their bodies.

    A round foot that rolls moves at its centre, not there.
    """
    plant, world = robot.plant, robot.plant.world_frame()
    rows = [np.zeros((0, plant.num_velocities()))]
    for (frame, p), foot in zip(robot.frames(robot.model.feet), robot.model.feet):
        R_WB = frame.CalcPoseInWorld(context).rotation().matrix()
        down = -foot.radius / robot.scaling.length * R_WB[2]
        rows.append(
            plant.CalcJacobianTranslationalVelocity(
                context, JacobianWrtVariable.kV, frame, p + down, world, world
            )
        )
    return np.vstack(rows)
