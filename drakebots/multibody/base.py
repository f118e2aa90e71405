"""Attachment of a robot's base to the world: four kinds of base.

quaternion  Drake's default for a free body: 7 positions, 6 velocities
rpy         RpyFloatingJoint: 6 positions, velocities [w_WB, v_WB]
euler       prismatic x, y, z then revolute yaw, pitch, roll on massless
            bodies: 6 positions whose rates are the velocities (v = qdot),
            R_WB = Rz(yaw) Ry(pitch) Rx(roll)
fixed       welded to the world
"""

from __future__ import annotations

import numpy as np
from pydrake.math import RigidTransform
from pydrake.multibody.plant import MultibodyPlant
from pydrake.multibody.tree import (
    Joint,
    PrismaticJoint,
    RevoluteJoint,
    RigidBody,
    RpyFloatingJoint,
    SpatialInertia,
)

from drakebots.core.errors import InvalidInput, check_names
from drakebots.fem.mesh import connected_pieces
from drakebots.model import (
    Model,
    bodies_of,
    free_bodies,
    is_floating,
    joined_bodies,
    joints_of,
    slides,
)

BASES = ("quaternion", "rpy", "euler", "fixed")
EULER_JOINTS = ("x", "y", "z", "yaw", "pitch", "roll")


def root_bodies(plant: MultibodyPlant) -> list:
    """The root of every tree that no joint connects to the world; before Finalize.

    A body that is no joint's child is no root where it is the parent of a link that
    another tree carries, as rods are that close loops.
    """
    lasting = [joint for joint in joints_of(plant) if not joint.is_ephemeral()]
    ends = joined_bodies(lasting)
    tree = connected_pieces(ends, plant.num_bodies())[1]
    found, known = [], {tree[plant.world_body().index()]}
    for body in bodies_of(plant)[1:]:
        if int(body.index()) not in ends[:, 1] and tree[body.index()] not in known:
            found.append(body)
            known.add(tree[body.index()])
    return found


def floats(model: Model) -> bool:
    """Whether a model has a free base; others move on joints of their own."""
    probe = MultibodyPlant(0.0)
    model.add_to(probe, close_loops=False)
    return bool(root_bodies(probe))


def base_joints(plant: MultibodyPlant) -> list[Joint]:
    """The joints from the world to a robot's base, outward.

    The base is the first body with mass of the heaviest tree, so that neither a door
    beside the robot nor a massless link that is fixed to the world counts.
    """
    below: dict = {}
    for joint in joints_of(plant):
        below.setdefault(joint.parent_body().index(), []).append(joint)

    def mass(joint: Joint) -> float:
        body = joint.child_body()
        return body.default_mass() + sum(map(mass, below.get(body.index(), [])))

    found, body = [], plant.world_body()
    while joints := below.get(body.index()):
        found.append(max(joints, key=mass))
        body = found[-1].child_body()
        if body.default_mass() > 0:
            break
    return found


def base_body(plant: MultibodyPlant) -> RigidBody:
    """The body whose pose stands for the robot: the free one, or its base."""
    if free := free_bodies(plant):
        return free[0]
    joints = base_joints(plant)
    return joints[-1].child_body() if joints else plant.world_body()


def attach_base(plant: MultibodyPlant, base: str) -> None:
    """Attaches the plant's only free body to the world; before Finalize.

    Raises:
        UnknownName: for a base that is not in :data:`BASES`.
        InvalidInput: when `base` is not "quaternion" and the plant has no free
            body or several.
    """
    check_names("base", [base], BASES)
    if base == "quaternion":
        return
    roots = root_bodies(plant)
    if not roots and base == "fixed":
        return
    if len(roots) != 1:
        names = ", ".join(body.name() for body in roots) or "none"
        raise InvalidInput(
            f"base {base!r} needs one free body, the model has {len(roots)} ({names}); "
            "use base 'quaternion'"
        )
    body = roots[0]
    world = plant.world_frame()
    if base == "fixed":
        plant.WeldFrames(world, body.body_frame())
    elif base == "rpy":
        name = f"{body.name()}_base"
        plant.AddJoint(RpyFloatingJoint(name, world, body.body_frame()))
    else:
        _euler_chain(plant, body)


def _euler_chain(plant: MultibodyPlant, body) -> None:
    parent, axes = plant.world_frame(), [*np.eye(3), *np.eye(3)[::-1]]
    for name, axis in zip(EULER_JOINTS, axes):
        full = f"{body.name()}_{name}"
        child, massless = body, (body.model_instance(), SpatialInertia.Zero())
        if name != EULER_JOINTS[-1]:
            child = plant.AddRigidBody(full, *massless)
        kind = PrismaticJoint if name in "xyz" else RevoluteJoint
        plant.AddJoint(kind(full, parent, child.body_frame(), axis))
        parent = child.body_frame()


def set_base_pose(plant: MultibodyPlant, context, X_WB: RigidTransform) -> None:
    """Puts the base of a plant with one free tree at a pose (plant units).

    Raises:
        InvalidInput: for a plant without a floating base.
    """
    for joint in joints_of(plant):
        child = joint.child_body()
        if is_floating(joint):
            joint.SetPose(context, X_WB)
            return
        on_world = joint.parent_body().index() == plant.world_body().index()
        # A joint of _euler_chain has the name of its massless body.
        if slides(joint) and on_world and joint.name() == child.name():
            rpy = X_WB.rotation().ToRollPitchYaw().vector()
            base = child.name().removesuffix("_x")
            for name, value in zip(EULER_JOINTS, [*X_WB.translation(), *rpy[::-1]]):
                part = plant.GetJointByName(f"{base}_{name}")
                place = part.set_translation if slides(part) else part.set_angle
                place(context, value)
            return
    raise InvalidInput("the plant has no floating base to place")
