"""A copy of a Drake model in another system of units.

Complementarity solvers and programs have absolute tolerances, made for robots
of kilograms; gram-sized robots are computed in mm, g, ms instead. The copy
walks a finalized plant, so Drake's parser stays the only source of the model,
and every number is divided by its unit.
"""

from __future__ import annotations

import numpy as np
from pydrake.geometry import (
    Box,
    Capsule,
    Convex,
    Cylinder,
    Ellipsoid,
    HalfSpace,
    Mesh,
    ProximityProperties,
    SceneGraph,
    Sphere,
)
from pydrake.math import RigidTransform
from pydrake.multibody.plant import MultibodyPlant
from pydrake.multibody.tree import (
    BallRpyJoint,
    BodyIndex,
    FixedOffsetFrame,
    ForceElementIndex,
    LinearBushingRollPitchYaw,
    LinearSpringDamper,
    ModelInstanceIndex,
    PlanarJoint,
    PrismaticJoint,
    PrismaticSpring,
    RevoluteJoint,
    RevoluteSpring,
    SpatialInertia,
    UniformGravityFieldElement,
    UnitInertia,
    UniversalJoint,
    WeldJoint,
)

from drakebots.core.errors import InvalidInput
from drakebots.core.units import Scaling

# Poses, shapes and contact properties in another system of units.


def scaled_transform(X: RigidTransform, scaling: Scaling) -> RigidTransform:
    """The pose with its translation in scaled units."""
    return RigidTransform(X.rotation(), X.translation() / scaling.length)


def scaled_shape(shape, length: float):
    """A shape with its sizes divided by the unit of length [m].

    Raises:
        InvalidInput: for a shape without a scaled form.
    """
    if isinstance(shape, HalfSpace):
        return HalfSpace()
    if isinstance(shape, Sphere):
        return Sphere(shape.radius() / length)
    if isinstance(shape, Box):
        return Box(*(shape.size() / length))
    if isinstance(shape, Cylinder):
        return Cylinder(shape.radius() / length, shape.length() / length)
    if isinstance(shape, Capsule):
        return Capsule(shape.radius() / length, shape.length() / length)
    if isinstance(shape, Ellipsoid):
        return Ellipsoid(shape.a() / length, shape.b() / length, shape.c() / length)
    if isinstance(shape, Mesh | Convex):
        return type(shape)(shape.source(), shape.scale3() / length)
    raise InvalidInput(f"shape {type(shape).__name__} cannot be scaled")


def scaled_proximity(source: ProximityProperties, unit: Scaling) -> ProximityProperties:
    """Properties of contact in scaled units; what has no unit we know stays."""
    scales = {
        ("material", "point_contact_stiffness"): unit.of(mass=1, time=-2),
        ("material", "hunt_crossley_dissipation"): 1 / unit.velocity,
        ("material", "relaxation_time"): unit.time,
        ("hydroelastic", "hydroelastic_modulus"): unit.of(mass=1, length=-1, time=-2),
        ("hydroelastic", "resolution_hint"): unit.length,
        ("hydroelastic", "slab_thickness"): unit.length,
    }
    copy = ProximityProperties()
    for group in source.GetGroupNames():
        for key, value in source.GetPropertiesInGroup(group).items():
            value = value.get_value()
            scale = scales.get((group, key))
            copy.AddProperty(group, key, value / scale if scale else value)
    return copy


def copy_scaled(
    source: MultibodyPlant,
    source_geometry: SceneGraph | None,
    target: MultibodyPlant,
    scaling: Scaling,
) -> None:
    """Adds to `target` all of `source`, in scaled units; does not finalize it.

    Bodies, joints with damping, limits and default positions, springs, dampers
    and bushings, actuators with rotor inertia and gear ratio, gravity, and
    collision geometry are copied; visual geometry and multibody constraints
    are not (constraints cannot be read back from Drake: close loops with
    :meth:`drakebots.model.Model.close_loops`).

    Raises:
        InvalidInput: for a joint, force element or shape that has no copy.
    """
    copier = _Copier(source, target, scaling)
    copier.instances()
    copier.bodies()
    copier.joints()
    copier.force_elements()
    copier.actuators()
    target.mutable_gravity_field().set_gravity_vector(
        source.gravity_field().gravity_vector() / scaling.acceleration
    )
    if source_geometry is not None and target.geometry_source_is_registered():
        copier.collisions(source_geometry.model_inspector())


class _Copier:
    def __init__(self, source, target, scaling):
        self.source, self.target, self.scaling = source, target, scaling
        self.instance, self.body, self.joint = {}, {}, {}

    def instances(self) -> None:
        for i in range(self.source.num_model_instances()):
            index = ModelInstanceIndex(i)
            name = self.source.GetModelInstanceName(index)
            if self.target.HasModelInstanceNamed(name):
                self.instance[index] = self.target.GetModelInstanceByName(name)
            else:
                self.instance[index] = self.target.AddModelInstance(name)

    def bodies(self) -> None:
        self.body[self.source.world_body().index()] = self.target.world_body()
        for i in range(1, self.source.num_bodies()):
            index = BodyIndex(i)
            body = self.source.get_body(index)
            self.body[index] = self.target.AddRigidBody(
                body.name(),
                self.instance[body.model_instance()],
                self._inertia(body.default_spatial_inertia()),
            )

    def _inertia(self, M: SpatialInertia) -> SpatialInertia:
        L = self.scaling.length
        G = M.get_unit_inertia()
        moments, products = G.get_moments() / L**2, G.get_products() / L**2
        return SpatialInertia(
            M.get_mass() / self.scaling.mass,
            M.get_com() / L,
            UnitInertia(*moments, *products),
            skip_validity_check=M.get_mass() == 0,
        )

    def _pose(self, frame) -> RigidTransform:
        return scaled_transform(frame.GetFixedPoseInBodyFrame(), self.scaling)

    def joints(self) -> None:
        for index in self.source.GetJointIndices():
            joint = self.source.get_joint(index)
            parent, child = joint.frame_on_parent(), joint.frame_on_child()
            ends = (
                joint.name(),
                self.body[parent.body().index()],
                self._pose(parent),
                self.body[child.body().index()],
                self._pose(child),
            )
            if joint.is_ephemeral() and "floating" in joint.type_name():
                # Drake adds a floating joint to every free body by itself.
                X_WB = self.source.GetDefaultFloatingBaseBodyPose(joint.child_body())
                self.target.SetDefaultFloatingBaseBodyPose(
                    ends[3], scaled_transform(X_WB, self.scaling)
                )
                continue
            self.joint[index] = self._joint(joint, ends)

    def _joint(self, joint, ends):
        unit = self.scaling
        hinge_damping = unit.of(mass=1, length=2, time=-1)
        slide_damping = unit.of(mass=1, time=-1)
        name = ends[0]
        kind = joint.type_name()
        damping = joint.default_damping_vector()
        position = np.ones(joint.num_positions())
        if kind == "weld":
            X_FM = scaled_transform(joint.X_FM(), unit)
            copy = WeldJoint(name, *_frames(self.target, ends), X_FM)
            return self.target.AddJoint(copy)
        if kind == "revolute":
            copy = RevoluteJoint(
                name,
                *_frames(self.target, ends),
                joint.revolute_axis(),
                damping[0] / hinge_damping,
            )
        elif kind == "prismatic":
            position[:] = unit.length
            copy = PrismaticJoint(
                name,
                *_frames(self.target, ends),
                joint.translation_axis(),
                damping=damping[0] / slide_damping,
            )
        elif kind == "universal":
            copy = UniversalJoint(
                name, *_frames(self.target, ends), damping[0] / hinge_damping
            )
        elif kind == "ball_rpy":
            copy = BallRpyJoint(
                name, *_frames(self.target, ends), damping[0] / hinge_damping
            )
        elif kind == "planar":
            position[:2] = unit.length
            units = np.array([slide_damping, slide_damping, hinge_damping])
            copy = PlanarJoint(name, *_frames(self.target, ends), damping / units)
        else:
            raise InvalidInput(
                f"joint {name!r} of type {kind!r} cannot be copied to other units; "
                "simulate the model in SI"
            )
        copy = self.target.AddJoint(copy)
        copy.set_position_limits(
            joint.position_lower_limits() / position,
            joint.position_upper_limits() / position,
        )
        copy.set_default_positions(joint.default_positions() / position)
        return copy

    def force_elements(self) -> None:
        unit, spring = self.scaling, self.scaling.of(mass=1, time=-2)
        for i in range(self.source.num_force_elements()):
            element = self.source.get_force_element(ForceElementIndex(i))
            if isinstance(element, UniformGravityFieldElement):
                continue
            if isinstance(element, RevoluteSpring):
                copy = RevoluteSpring(
                    self.joint[element.joint().index()],
                    element.default_nominal_angle(),
                    element.default_stiffness() / unit.torque,
                )
            elif isinstance(element, PrismaticSpring):
                copy = PrismaticSpring(
                    self.joint[element.joint().index()],
                    element.nominal_position() / unit.length,
                    element.stiffness() / spring,
                )
            elif isinstance(element, LinearSpringDamper):
                copy = LinearSpringDamper(
                    self.body[element.bodyA().index()],
                    element.p_AP() / unit.length,
                    self.body[element.bodyB().index()],
                    element.p_BQ() / unit.length,
                    element.free_length() / unit.length,
                    element.stiffness() / spring,
                    element.damping() / unit.of(mass=1, time=-1),
                )
            elif isinstance(element, LinearBushingRollPitchYaw):
                copy = self._bushing(element)
            else:
                raise InvalidInput(
                    f"force element {type(element).__name__} cannot be copied to "
                    "other units; simulate the model in SI"
                )
            self.target.AddForceElement(copy)

    def _bushing(self, element) -> LinearBushingRollPitchYaw:
        unit = self.scaling
        frames = [
            _offset_frame(
                self.target,
                f"bushing{int(element.index())}_{end}",
                self.body[frame.body().index()],
                self._pose(frame),
            )
            for end, frame in (("A", element.frameA()), ("C", element.frameC()))
        ]
        return LinearBushingRollPitchYaw(
            *frames,
            element.torque_stiffness_constants() / unit.torque,
            element.torque_damping_constants() / unit.of(mass=1, length=2, time=-1),
            element.force_stiffness_constants() / unit.of(mass=1, time=-2),
            element.force_damping_constants() / unit.of(mass=1, time=-1),
        )

    def actuators(self) -> None:
        unit = self.scaling
        for index in self.source.GetJointActuatorIndices():
            actuator = self.source.get_joint_actuator(index)
            joint = self.joint[actuator.joint().index()]
            linear = actuator.joint().type_name() == "prismatic"
            copy = self.target.AddJointActuator(
                actuator.name(),
                joint,
                actuator.effort_limit() / (unit.force if linear else unit.torque),
            )
            copy.set_default_rotor_inertia(
                actuator.default_rotor_inertia() / unit.inertia
            )
            # A prismatic gear ratio is in rad/m, a revolute one in rad/rad.
            copy.set_default_gear_ratio(
                actuator.default_gear_ratio() * (unit.length if linear else 1.0)
            )

    def collisions(self, inspector) -> None:
        for index, copy in self.body.items():
            body = self.source.get_body(index)
            for geometry in self.source.GetCollisionGeometriesForBody(body):
                name = inspector.GetName(geometry).rpartition("::")[2]
                self.target.RegisterCollisionGeometry(
                    copy,
                    scaled_transform(inspector.GetPoseInFrame(geometry), self.scaling),
                    scaled_shape(inspector.GetShape(geometry), self.scaling.length),
                    name,
                    scaled_proximity(
                        inspector.GetProximityProperties(geometry), self.scaling
                    ),
                )


def _offset_frame(plant, name, body, X_BF):
    """A frame fixed in a body, or the body's own where there is no offset."""
    if X_BF.IsExactlyIdentity():
        return body.body_frame()
    return plant.AddFrame(
        FixedOffsetFrame(name, body.body_frame(), X_BF, body.model_instance())
    )


def _frames(plant, ends):
    name, parent, X_PF, child, X_BM = ends
    return (
        _offset_frame(plant, f"{name}_parent", parent, X_PF),
        _offset_frame(plant, f"{name}_child", child, X_BM),
    )
