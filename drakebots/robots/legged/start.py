"""Start of a simulation: in a posture, on the ground, its own shapes apart."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from pydrake.geometry import CollisionFilterDeclaration, GeometrySet
from pydrake.math import RigidTransform
from pydrake.multibody.tree import RotationalInertia, SpatialInertia
from pydrake.systems.framework import Context

from drakebots.core.errors import some
from drakebots.model import (
    bodies_of,
    central_inertia,
    is_floating,
    joints_of,
    part_name,
    point_jacobian,
)
from drakebots.multibody import Flat, Robot, Terrain, covers, lowest_points
from drakebots.multibody.posture import Posture

LIGHT = 1e-6
"""Least inertia of a link, as a share of the robot's mass times its size squared."""


def place(
    robot: Robot,
    context: Context,
    posture: Posture,
    height: float | None = None,
    terrain: Terrain = Flat(),
) -> None:
    """Puts a robot into a posture, its lowest point on the ground.

    The lowest point is that of its collision shapes, or of what it draws where it has
    none, and of its feet. Where the ground is not flat, its feet are put onto it.

    Args:
        robot: robot in SI.
        context: context of its plant.
        posture: posture of its model.
        height: height of the base instead [m].
        terrain: the ground.
    """
    plant = robot.plant
    floats = sum(map(is_floating, joints_of(plant))) == 1
    posture.put(robot, context, base=floats)
    if not floats:
        return
    p, given = posture.X_WB.translation(), height
    if height is None:
        shapes = covers(plant, robot.scene_graph)
        feet = robot.feet_positions(context)[:, 2]
        radii = [foot.radius for foot in robot.model.feet]
        lowest = np.concatenate([lowest_points(plant, context, shapes), feet - radii])
        if not len(lowest):
            return
        height = p[2] - lowest.min()
    X_WB = RigidTransform(posture.X_WB.rotation(), [p[0], p[1], height])
    robot.set_base_pose(context, X_WB)
    if given is None:
        robot.put_onto(context, terrain)


def nudge(
    robot: Robot, context: Context, base: str, passive: Sequence[str], rate: float
) -> None:
    """Sets a robot going, so slowly that one that does not just balance stays upright.

    The base goes ahead and to the left. Joints that nothing holds turn towards the
    middle of their range, as knees do that collapse; where the feet stay on the spot
    only if the base then goes back, it does.

    Args:
        robot: robot in SI.
        context: context of its plant, at rest.
        base: full name of its base.
        passive: names of joints that nothing holds.
        rate: of these joints [rad/s, m/s]; the base goes as fast as its height over
            the feet times this, in either direction.
    """
    plant = robot.plant
    joints = joints_of(plant)
    above = {joint.child_body().scoped_name().get_full(): joint for joint in joints}
    body, columns = above[base].child_body(), []
    while base in above:
        first = above[base].velocity_start()
        columns += range(first, first + above[base].num_velocities())
        base = above[base].parent_body().scoped_name().get_full()
    J = point_jacobian(plant, context, body.body_frame(), np.zeros(3))
    feet = robot.feet_positions(context).reshape(-1, 3)
    p_WB = plant.EvalBodyPoseInWorld(context, body).translation()
    speed = rate * abs(p_WB[2] - feet[:, 2].mean() if len(feet) else p_WB[2])
    v, asked = plant.GetVelocities(context), speed * np.array([1.0, 1.0, 0.0])
    for joint in joints:
        if part_name(joint) in passive:
            low, high = joint.position_lower_limit(), joint.position_upper_limit()
            middle = (low + high) / 2 if np.isfinite(high - low) else np.inf
            here = plant.GetPositions(context)[joint.position_start()]
            v[joint.velocity_start()] = rate if middle >= here else -rate
    if passive:
        moving = robot.feet_jacobian(context)
        follow = np.linalg.lstsq(moving[:, columns], -moving @ v, rcond=1e-9)[0]
        along = J[:, columns] @ follow
        asked[0] *= -1.0 if along[0] < -1e-6 * speed else 1.0
        asked += along
    v[columns] = np.linalg.pinv(J[:, columns], rcond=1e-9) @ asked
    plant.SetVelocities(context, v)


def steady_light_links(robot: Robot, context: Context) -> list[str]:
    """Gives massless links the least inertia that a time step can resolve.

    Files of linkages have links without mass, and parts of a ball joint made of three
    hinges; loops and servos on them blow up. Each gets LIGHT m of mass and LIGHT m L^2
    of inertia about its centre, with the robot's mass m and its largest distance L from
    a body to its centre of mass.

    Args:
        robot: robot whose links to change.
        context: context of its plant, placed; the links change only in it.

    Returns:
        A note on how many; none where all links weigh enough.
    """
    plant = robot.plant
    bodies = bodies_of(plant)[1:]
    mass = plant.CalcTotalMass(context)
    com = plant.CalcCenterOfMassPositionInWorld(context)
    poses = [plant.EvalBodyPoseInWorld(context, body) for body in bodies]
    size = max(np.linalg.norm(X_WB.translation() - com) for X_WB in poses)
    least = LIGHT * mass * size**2
    inertia = {
        body.index(): central_inertia(body.CalcSpatialInertiaInBodyFrame(context))[2]
        for body in bodies
    }
    light = 0
    for body in bodies:
        joined = {other.index() for other in plant.GetBodiesWeldedTo(body)}
        joined &= set(inertia)  # the world has none
        if any(np.linalg.eigvalsh(inertia[i])[0] >= least for i in joined):
            continue
        light += 1
        M = body.CalcSpatialInertiaInBodyFrame(context)
        own, p_BoBcm_B = max(M.get_mass(), LIGHT * mass), M.get_com()
        moments = inertia[body.index()] + least * np.eye(3)
        products = moments[0, 1], moments[0, 2], moments[1, 2]
        I_BBcm_B = RotationalInertia(*np.diag(moments), *products)
        changed = SpatialInertia.MakeFromCentralInertia(own, p_BoBcm_B, I_BBcm_B)
        body.SetSpatialInertiaInBodyFrame(context, changed)
    note = f"massless links given {least:.1g} kg m^2 ({LIGHT:.0e} of the robot's)"
    return [f"{light} {note}"] if light else []


def filter_overlaps(robot: Robot, root_context: Context) -> list[str]:
    """Lets shapes of two bodies that overlap at the start pass through each other.

    Links that are drawn into one another would be thrown apart.

    Args:
        robot: robot with a scene graph.
        root_context: context of the diagram, placed.

    Returns:
        A note on the pairs; none where nothing overlaps.
    """
    plant, scene_graph = robot.plant, robot.scene_graph
    context = scene_graph.GetMyMutableContextFromRoot(root_context)
    pairs = {
        tuple(map(part_name, bodies)): bodies
        for bodies in robot.overlapping(root_context)
        if plant.world_body() not in bodies
    }
    manager = scene_graph.collision_filter_manager(context)
    for pair in pairs.values():
        own = [GeometrySet(plant.GetCollisionGeometriesForBody(b)) for b in pair]
        manager.Apply(CollisionFilterDeclaration().ExcludeBetween(*own))
    if not pairs:
        return []
    names = some(map("/".join, pairs), 3)
    return [f"{len(pairs)} pairs of links overlap and do not touch: {names}"]
