"""Views of a plant: its joints, motors, bodies and forces, each asked for in one way.

Drake hands out parts by index, one call each. Here they come as lists, in the order of
their indices; what is computed of them is in the plant's units.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
from pydrake.multibody.plant import MultibodyPlant
from pydrake.multibody.tree import (
    BodyIndex,
    ForceElement,
    ForceElementIndex,
    Frame,
    JacobianWrtVariable,
    Joint,
    JointActuator,
    JointIndex,
    ModelInstanceIndex,
    PrismaticSpring,
    RevoluteSpring,
    RigidBody,
    SpatialInertia,
)
from pydrake.systems.framework import Context

from drakebots.core.errors import InvalidInput, UnknownName


def bodies_of(plant: MultibodyPlant) -> list[RigidBody]:
    """All bodies; the first is the world."""
    return [plant.get_body(BodyIndex(i)) for i in range(plant.num_bodies())]


def joints_of(plant: MultibodyPlant) -> list[Joint]:
    """All joints, welds included."""
    return [plant.get_joint(i) for i in plant.GetJointIndices()]


def joined_bodies(joints: Iterable[Joint]) -> np.ndarray:
    """Indices of the parent and the child of each joint (n, 2)."""
    pairs = [(j.parent_body().index(), j.child_body().index()) for j in joints]
    return np.array(pairs, int).reshape(-1, 2)


def outward_joints(plant: MultibodyPlant) -> list[tuple[Joint, bool]]:
    """All joints, those nearer to the world first, and whether the child is nearer.

    Files may name as the parent what a joint carries.

    Raises:
        InvalidInput: for joints that close loops.
    """
    reached, found, left = {0}, [], joints_of(plant)
    while left:
        rest = []
        for joint in left:
            parent, child = joint.parent_body(), joint.child_body()
            nearer = [int(body.index()) in reached for body in (parent, child)]
            if nearer[0] == nearer[1]:
                rest.append(joint)
                continue
            found.append((joint, nearer[1]))
            reached |= {int(parent.index()), int(child.index())}
        if len(rest) == len(left):
            names = ", ".join(joint.name() for joint in rest)
            raise InvalidInput(
                f"joints {names} close loops; cut them and list them as loops"
            )
        left = rest
    return found


def single_joints(plant: MultibodyPlant) -> list[Joint]:
    """The joints of one degree of freedom."""
    return [joint for joint in joints_of(plant) if joint.num_velocities() == 1]


def actuators_of(
    plant: MultibodyPlant, instance: ModelInstanceIndex | None = None
) -> list[JointActuator]:
    """The motors of a plant, or of one of its model instances."""
    chosen = () if instance is None else (instance,)
    return [plant.get_joint_actuator(i) for i in plant.GetJointActuatorIndices(*chosen)]


def part_name(part: RigidBody | Joint | JointActuator) -> str:
    """Its name, with that of its model before it where another has the same."""
    plant, name = part.GetParentPlant(), part.name()
    kinds = {RigidBody: bodies_of, Joint: joints_of, JointActuator: actuators_of}
    same = next(of(plant) for kind, of in kinds.items() if isinstance(part, kind))
    if sum(other.name() == name for other in same) == 1:
        return name
    return f"{plant.GetModelInstanceName(part.model_instance())}::{name}"


def driven_joints(plant: MultibodyPlant) -> list[Joint]:
    """The joint of every motor."""
    return [motor.joint() for motor in actuators_of(plant)]


def central_inertia(M: SpatialInertia) -> tuple[float, np.ndarray, np.ndarray]:
    """Mass, p_BBcm (3,) and I_BBcm_B (3, 3) of a body's spatial inertia M_BBo_B."""
    mass, p = M.get_mass(), M.get_com()
    if not mass > 0:
        return 0.0, np.zeros(3), np.zeros((3, 3))
    return mass, p, M.Shift(p).CalcRotationalInertia().CopyToFullMatrix3()


def free_bodies(plant: MultibodyPlant) -> list[RigidBody]:
    """The bodies that move freely in the world, or in what they hang on."""
    return [joint.child_body() for joint in joints_of(plant) if is_floating(joint)]


def force_elements(plant: MultibodyPlant, kind: Any = ForceElement) -> list:
    """Springs, dampers and bushings: the force elements of a class, but gravity.

    Args:
        plant: that has them.
        kind: the class, or a union of classes.
    """
    gravity = plant.gravity_field()
    indices = map(ForceElementIndex, range(plant.num_force_elements()))
    found = [x for x in map(plant.get_force_element, indices) if x is not gravity]
    return [element for element in found if isinstance(element, kind)]


def model_names(plant: MultibodyPlant) -> dict[str, ModelInstanceIndex]:
    """The model instances by name, that of the world and Drake's own included."""
    indices = map(ModelInstanceIndex, range(plant.num_model_instances()))
    return {plant.GetModelInstanceName(index): index for index in indices}


def one_named(plant: MultibodyPlant, kind: str, name: str, parts: Sequence) -> Any:
    """The body or joint called `name`, or "model::name" where models share names.

    Args:
        plant: that the parts belong to.
        kind: of the parts, "body" or "joint".
        name: of one of them.
        parts: all bodies or joints.

    Raises:
        UnknownName: for a name of no model, or of no part, listing those that exist.
        InvalidInput: for a name that several models have.
    """
    scope, _, own = name.rpartition("::")
    models = model_names(plant)
    if scope and scope not in models:
        raise UnknownName("model", scope, models)
    found = [part for part in parts if part.name() == own]
    inside = [x for x in found if scope and x.model_instance() == models[scope]]
    if len(inside or found) == 1:
        return (inside or found)[0]
    if found:
        owners = (plant.GetModelInstanceName(x.model_instance()) for x in found)
        scoped = ", ".join(f"{owner}::{own}" for owner in owners)
        raise InvalidInput(
            f"{kind} {own!r} is in several models; write one of {scoped}"
        )
    raise UnknownName(kind, own, [part.name() for part in parts])


def spring_law(spring: RevoluteSpring | PrismaticSpring) -> tuple[float, float]:
    """Stiffness and rest position of a joint's spring."""
    if isinstance(spring, RevoluteSpring):
        return spring.default_stiffness(), spring.default_nominal_angle()
    return spring.stiffness(), spring.nominal_position()


def joint_springs(plant: MultibodyPlant) -> dict[JointIndex, tuple[float, float]]:
    """Stiffness and rest position of the joints with a spring."""
    springs = force_elements(plant, RevoluteSpring | PrismaticSpring)
    return {spring.joint().index(): spring_law(spring) for spring in springs}


# --- what a joint is --------------------------------------------------------


def slides(joint: Joint) -> bool:
    """Whether a joint has one coordinate, which is a length."""
    return joint.type_name() == "prismatic"


def is_floating(joint: Joint) -> bool:
    """Whether a joint leaves its child free, by quaternion or by roll, pitch, yaw."""
    return "floating" in joint.type_name()


def length_indices(joint: Joint, *, of_velocities: bool = False) -> list[int]:
    """Which of a joint's own positions, or velocities, are lengths or their rates."""
    kind = joint.type_name()
    if kind == "quaternion_floating":
        return [3, 4, 5] if of_velocities else [4, 5, 6]
    known = {"prismatic": [0], "planar": [0, 1], "rpy_floating": [3, 4, 5]}
    return known.get(kind, [])


def joint_slices(joint: Joint) -> tuple[slice, slice]:
    """Slices of a joint's positions and velocities in those of the plant."""
    a, b = joint.position_start(), joint.velocity_start()
    return slice(a, a + joint.num_positions()), slice(b, b + joint.num_velocities())


def with_joints(
    plant: MultibodyPlant, q: np.ndarray, positions: Mapping[str, float]
) -> np.ndarray:
    """Positions q (nq,) with those of some joints of one coordinate, by name, in the
    plant's units."""
    q = np.array(q)
    for joint in joints_of(plant):
        if joint.num_positions() == 1 and (name := part_name(joint)) in positions:
            q[joint.position_start()] = positions[name]
    return q


def moved_positions(
    plant: MultibodyPlant, context: Context, dq: np.ndarray
) -> np.ndarray:
    """q+ = q + N(q) dq (nq,), with normalised quaternions."""
    q = plant.GetPositions(context) + plant.MapVelocityToQDot(context, dq)
    for joint in joints_of(plant):
        if joint.type_name() == "quaternion_floating":
            start = joint.position_start()
            q[start : start + 4] /= np.linalg.norm(q[start : start + 4])
    return q


# --- poses ------------------------------------------------------------------


def context_at(plant: MultibodyPlant, q: np.ndarray) -> Context:
    """A context of a plant at positions q (nq,), and else as by default."""
    return next(contexts_along(plant, [q]))


def contexts_along(
    plant: MultibodyPlant, rows: Iterable[np.ndarray]
) -> Iterator[Context]:
    """A context of a plant at one row after another, the same object each time.

    Args:
        plant: finalized.
        rows: positions (T, nq), or positions and velocities (T, nq + nv).
    """
    context, nq = plant.CreateDefaultContext(), plant.num_positions()
    for row in rows:
        plant.SetPositions(context, row[:nq])
        if len(row) > nq:
            plant.SetVelocities(context, row[nq:])
        yield context


# --- numbers ----------------------------------------------------------------


def gravity(plant: MultibodyPlant) -> float:
    """Acceleration g of gravity, whatever its direction."""
    return float(np.linalg.norm(plant.gravity_field().gravity_vector()))


def effort_limits(plant: MultibodyPlant) -> np.ndarray:
    """Limits of effort of the motors (nu,); infinite for none."""
    return np.array([motor.effort_limit() for motor in actuators_of(plant)])


def position_limits(plant: MultibodyPlant) -> tuple[np.ndarray, np.ndarray]:
    """Lower and upper limits of the positions (nq,); infinite for none."""
    return plant.GetPositionLowerLimits(), plant.GetPositionUpperLimits()


def sliding_motors(plant: MultibodyPlant) -> np.ndarray:
    """Mask of the motors that move a joint along (nu,)."""
    return np.array([slides(joint) for joint in driven_joints(plant)], bool)


def rotor_inertias(plant: MultibodyPlant) -> np.ndarray:
    """Inertia that rotors behind gears add to every velocity (nv,)."""
    found = np.zeros(plant.num_velocities())
    for motor in actuators_of(plant):
        inertia = motor.default_gear_ratio() ** 2 * motor.default_rotor_inertia()
        found[motor.joint().velocity_start()] += inertia
    return found


def point_in_world(
    plant: MultibodyPlant, context: Context, frame: Frame, p: np.ndarray
) -> np.ndarray:
    """p_WP (3,) of a point P fixed in a frame."""
    return plant.CalcPointsPositions(context, frame, p, plant.world_frame()).ravel()


def point_jacobian(
    plant: MultibodyPlant, context: Context, frame: Frame, p: np.ndarray
) -> np.ndarray:
    """J of the velocities in the world of points fixed in a frame (3 n, nv).

    Args:
        plant, context: finalized plant, posed.
        frame: that the points are fixed in.
        p: one point (3,), or several as columns (3, n).
    """
    world = plant.world_frame()
    return plant.CalcJacobianTranslationalVelocity(
        context, JacobianWrtVariable.kV, frame, p, world, world
    )
