"""Random plants: any tree of Drake's joints, with forces, and loops across it."""

import numpy as np
from hypothesis import strategies as st
from pydrake.math import RigidTransform, RollPitchYaw, RotationMatrix
from pydrake.multibody.plant import MultibodyPlant
from pydrake.multibody.tree import (
    BallRpyJoint,
    BodyIndex,
    FixedOffsetFrame,
    LinearSpringDamper,
    PlanarJoint,
    PrismaticJoint,
    PrismaticSpring,
    QuaternionFloatingJoint,
    RevoluteJoint,
    RevoluteSpring,
    RpyFloatingJoint,
    ScrewJoint,
    SpatialInertia,
    UnitInertia,
    UniversalJoint,
    WeldJoint,
)

from drakebots.model import Loop
from tests.helpers.twin_checks import unit_quaternions

REVERSIBLE = ("weld", "revolute", "prismatic")
KINDS = (
    *REVERSIBLE,
    "screw",
    "universal",
    "ball_rpy",
    "planar",
    "rpy_floating",
    "quaternion_floating",
)
LINK = st.tuples(
    st.integers(0, 5),  # which of the bodies so far it hangs on, the world first
    st.sampled_from((*KINDS, "free")),
    st.booleans(),  # whether the link is the joint's parent, where Drake allows it
)


def random_unit(rng):
    x = rng.normal(size=3)
    return x / np.linalg.norm(x)


def random_pose(rng):
    """Far from round numbers half of the time, else along the axes."""
    if rng.random() < 0.5:
        R = RotationMatrix(RollPitchYaw(rng.integers(-1, 3, 3) * np.pi / 2))
    else:
        R = RotationMatrix(RollPitchYaw(rng.uniform(-3, 3, 3)))
    return RigidTransform(R, rng.uniform(-1, 1, 3))


def random_inertia(rng):
    """Of a solid box in any place and direction."""
    box = UnitInertia.SolidBox(*rng.uniform(0.1, 1, 3))
    box = box.ReExpress(RotationMatrix(RollPitchYaw(rng.uniform(-3, 3, 3))))
    p = rng.uniform(-1, 1, 3)
    return SpatialInertia(rng.uniform(0.1, 2), p, box.ShiftFromCenterOfMass(p))


def random_axis(rng):
    return random_unit(rng) if rng.random() < 0.5 else np.eye(3)[rng.integers(3)]


def random_joint(kind, name, frames, rng):
    damping = rng.uniform(0, 1)
    make = {
        "weld": lambda: WeldJoint(name, *frames, random_pose(rng)),
        "revolute": lambda: RevoluteJoint(
            name, *frames, random_axis(rng), damping=damping
        ),
        "prismatic": lambda: PrismaticJoint(
            name, *frames, random_axis(rng), damping=damping
        ),
        "screw": lambda: ScrewJoint(
            name, *frames, random_axis(rng), rng.uniform(-1, 1), damping
        ),
        "universal": lambda: UniversalJoint(name, *frames, damping),
        "ball_rpy": lambda: BallRpyJoint(name, *frames, damping),
        "planar": lambda: PlanarJoint(name, *frames, rng.uniform(0, 1, 3)),
        "rpy_floating": lambda: RpyFloatingJoint(
            name, *frames, damping, rng.uniform(0, 1)
        ),
        "quaternion_floating": lambda: QuaternionFloatingJoint(
            name, *frames, damping, rng.uniform(0, 1)
        ),
    }
    return make[kind]()


def random_plant(links, rng):
    """A plant of these links, with springs, dampers, rotors and gravity."""
    plant = MultibodyPlant(0.0)
    heavy, light = (plant.AddModelInstance(name) for name in ("heavy", "light"))
    bodies = [plant.world_body()]
    for k, (on, kind, flip) in enumerate(links):
        inboard = bodies[on % len(bodies)]
        instance = light if rng.random() < 0.3 else heavy
        body = plant.AddRigidBody(f"b{k}", instance, random_inertia(rng))
        bodies.append(body)
        if kind == "free":
            continue
        ends = [inboard, body]
        if flip and kind in REVERSIBLE:
            ends.reverse()
        frames = [
            plant.AddFrame(
                FixedOffsetFrame(
                    f"f{k}{n}",
                    end.body_frame(),
                    random_pose(rng),
                    body.model_instance(),
                )
            )
            for n, end in enumerate(ends)
        ]
        joint = plant.AddJoint(random_joint(kind, f"j{k}", frames, rng))
        if kind == "revolute" and rng.random() < 0.7:
            x0, k0 = rng.uniform(-1, 1), rng.uniform(0, 20)
            plant.AddForceElement(RevoluteSpring(joint, x0, k0))
        if kind == "prismatic" and rng.random() < 0.7:
            x0, k0 = rng.uniform(-1, 1), rng.uniform(0, 20)
            plant.AddForceElement(PrismaticSpring(joint, x0, k0))
        if kind in ("revolute", "prismatic") and rng.random() < 0.7:
            actuator = plant.AddJointActuator(f"a{k}", joint)
            actuator.set_default_rotor_inertia(rng.uniform(0, 1e-2))
            actuator.set_default_gear_ratio(rng.uniform(-10, 10))
    for _ in range(rng.integers(0, 3)):
        A, B = rng.choice(len(bodies), 2, replace=False)
        points = rng.uniform(-2, 2, (2, 3))
        length, stiffness, damping = rng.uniform(0.1, 2, 3)
        plant.AddForceElement(
            LinearSpringDamper(
                bodies[A], points[0], bodies[B], points[1], length, stiffness, damping
            )
        )
    plant.mutable_gravity_field().set_gravity_vector(10 * random_unit(rng))
    if rng.random() < 0.5:
        plant.set_gravity_enabled(light, False)
    plant.Finalize()
    return plant


def random_loops(plant, rng):
    names = [plant.get_body(BodyIndex(i)).name() for i in range(plant.num_bodies())]
    loops = []
    for rows in ("ball", "planar", "hinge", "weld"):
        bodies = rng.choice(len(names), 2, replace=False)
        points, axes = rng.uniform(-1, 1, (2, 3)), [random_axis(rng) for _ in range(2)]
        loops.append(Loop(rows, *[names[b] for b in bodies], *points, *axes, rows=rows))
    return loops


def random_tree_state(plant, rng):
    q = unit_quaternions(plant, rng.uniform(-1, 1, plant.num_positions()))
    return q, *(rng.normal(size=plant.num_velocities()) for _ in range(2))
