"""A copy of a Drake model in another system of units.

Complementarity solvers and programs have absolute tolerances, made for robots of
kilograms; gram-sized robots are computed in mm, g, ms instead. The copy walks a
finalized plant, so that Drake's parser stays the only source of the model, and divides
every number by its unit.
"""

from __future__ import annotations

import numpy as np
from pydrake.geometry import (
    CollisionFilterDeclaration,
    Convex,
    GeometryId,
    GeometrySet,
    Mesh,
    ProximityProperties,
    SceneGraph,
    SceneGraphInspector,
)
from pydrake.math import RigidTransform
from pydrake.multibody.plant import MultibodyPlant
from pydrake.multibody.tree import (
    BallRpyJoint,
    FixedOffsetFrame,
    LinearBushingRollPitchYaw,
    LinearSpringDamper,
    ModelInstanceIndex,
    PlanarJoint,
    PrismaticJoint,
    PrismaticSpring,
    RevoluteJoint,
    RevoluteSpring,
    SpatialInertia,
    UnitInertia,
    UniversalJoint,
    WeldJoint,
)

from drakebots.core.errors import InvalidInput
from drakebots.core.units import Scaling
from drakebots.model import (
    actuators_of,
    bodies_of,
    force_elements,
    is_floating,
    joints_of,
    length_indices,
    shape_sizes,
    slides,
    spring_law,
)


def copy_scaled(
    source: MultibodyPlant,
    source_geometry: SceneGraph | None,
    target: MultibodyPlant,
    scaling: Scaling,
    target_geometry: SceneGraph | None = None,
) -> None:
    """Adds all of `source` to `target`, in scaled units; does not finalize it.

    Bodies, joints with damping, limits and default positions, springs, dampers
    and bushings, actuators with rotor inertia and gear ratio, gravity, and
    collision geometry with its filters are copied; visual geometry and multibody
    constraints are not (constraints cannot be read back from Drake: close loops with
    :meth:`drakebots.model.Model.close_loops`, and couple joints with
    :func:`drakebots.model.add_couplers`).

    Args:
        source: a finalized plant in SI.
        source_geometry: its scene graph, or None to copy no geometry.
        target: the plant to add to.
        scaling: the units of the target.
        target_geometry: the scene graph of the target; without it the filters of
            collisions are not copied.

    Raises:
        InvalidInput: for a joint, force element or shape that cannot be copied.
    """
    copier = _Copier(source, target, scaling)
    copier.bodies()
    copier.joints()
    copier.force_elements()
    copier.actuators()
    target.mutable_gravity_field().set_gravity_vector(
        source.gravity_field().gravity_vector() / scaling.acceleration
    )
    if source_geometry is not None and target.geometry_source_is_registered():
        copies = copier.collisions(source_geometry.model_inspector())
        if target_geometry is not None:
            _copy_filters(source_geometry.model_inspector(), target_geometry, copies)


def _copy_filters(
    inspector: SceneGraphInspector,
    target: SceneGraph,
    copies: dict[GeometryId, GeometryId],
) -> None:
    """Excludes the pairs of geometries that the source excludes.

    Drake does not list the filter groups of a file, but reports for each pair whether
    it is excluded.
    """
    filters = target.collision_filter_manager()
    for index, first in enumerate(copies):
        others = [
            copies[second]
            for second in list(copies)[index + 1 :]
            if inspector.CollisionFiltered(first, second)
        ]
        if others:
            pairs = GeometrySet(copies[first]), GeometrySet(others)
            filters.Apply(CollisionFilterDeclaration().ExcludeBetween(*pairs))


# --- joints by kind: made from the source, frames F and M, and scaled damping ---

_JOINTS = {
    "revolute": lambda joint, F, M, d: RevoluteJoint(
        joint.name(), F, M, joint.revolute_axis(), d[0]
    ),
    "prismatic": lambda joint, F, M, d: PrismaticJoint(
        joint.name(), F, M, joint.translation_axis(), damping=d[0]
    ),
    "universal": lambda joint, F, M, d: UniversalJoint(joint.name(), F, M, d[0]),
    "ball_rpy": lambda joint, F, M, d: BallRpyJoint(joint.name(), F, M, d[0]),
    "planar": lambda joint, F, M, d: PlanarJoint(joint.name(), F, M, d),
}


class _Copier:
    """Copies the parts of a plant to another one, in its units.

    Args:
        source: finalized plant in SI.
        target: plant to add to.
        unit: units of the target.
    """

    def __init__(self, source: MultibodyPlant, target: MultibodyPlant, unit: Scaling):
        self.source, self.target, self.unit = source, target, unit
        self.body = {source.world_body().index(): target.world_body()}
        self.joint: dict = {}

    def bodies(self) -> None:
        """Adds the bodies with their inertias."""
        source, target, unit = self.source, self.target, self.unit
        for body in bodies_of(source)[1:]:
            M = body.default_spatial_inertia()
            G = M.get_unit_inertia()
            mass, com = M.get_mass() / unit.mass, M.get_com() / unit.length
            entries = np.concatenate([G.get_moments(), G.get_products()])
            turns = UnitInertia(*(entries / unit.length**2))
            # Unchecked: rounding may add what none had.
            inertia = SpatialInertia(mass, com, turns, skip_validity_check=True)
            instance = self._instance(body.model_instance())
            copy = target.AddRigidBody(body.name(), instance, inertia)
            self.body[body.index()] = copy

    def _instance(self, index: ModelInstanceIndex) -> ModelInstanceIndex:
        name = self.source.GetModelInstanceName(index)
        if self.target.HasModelInstanceNamed(name):
            return self.target.GetModelInstanceByName(name)
        return self.target.AddModelInstance(name)

    def _pose(self, X: RigidTransform) -> RigidTransform:
        return RigidTransform(X.rotation(), X.translation() / self.unit.length)

    def _frame(self, name: str, frame):
        """The copy of a frame: the body's own where there is no offset."""
        body = self.body[frame.body().index()]
        X_BF = self._pose(frame.GetFixedPoseInBodyFrame())
        if X_BF.IsExactlyIdentity():
            return body.body_frame()
        return self.target.AddFrame(
            FixedOffsetFrame(name, body.body_frame(), X_BF, body.model_instance())
        )

    def joints(self) -> None:
        """Adds the joints; poses of free bodies become defaults."""
        for joint in joints_of(self.source):
            if joint.is_ephemeral() and is_floating(joint):
                # Drake adds a floating joint to every free body by itself.
                child = joint.child_body()
                self.target.SetDefaultFloatingBaseBodyPose(
                    self.body[child.index()],
                    self._pose(self.source.GetDefaultFloatingBaseBodyPose(child)),
                )
                continue
            self.joint[joint.index()] = self._joint(joint)

    def _joint(self, joint):
        """The copy of one joint."""
        unit, name, kind = self.unit, joint.name(), joint.type_name()
        if kind != "weld" and kind not in _JOINTS:
            raise InvalidInput(
                f"joint {name!r} of type {kind!r} cannot be copied to other units; "
                "simulate the model in SI"
            )
        frames = (
            self._frame(f"{name}_parent", joint.frame_on_parent()),
            self._frame(f"{name}_child", joint.frame_on_child()),
        )
        if kind == "weld":
            return self.target.AddJoint(
                WeldJoint(name, *frames, self._pose(joint.X_FM()))
            )
        slides = np.isin(np.arange(joint.num_velocities()), length_indices(joint))
        damping = joint.default_damping_vector() / np.where(
            slides, unit.of(mass=1, time=-1), unit.of(mass=1, length=2, time=-1)
        )
        position = np.where(slides, unit.length, 1.0)
        copy = self.target.AddJoint(_JOINTS[kind](joint, *frames, damping))
        limits = joint.position_lower_limits(), joint.position_upper_limits()
        copy.set_position_limits(*(limit / position for limit in limits))
        copy.set_default_positions(joint.default_positions() / position)
        return copy

    def force_elements(self) -> None:
        """Adds springs, dampers and bushings."""
        for element in force_elements(self.source):
            self.target.AddForceElement(self._force_element(element))

    def _force_element(self, element):
        """The copy of a spring, damper or bushing."""
        unit = self.unit
        stiffness, damping = unit.of(mass=1, time=-2), unit.of(mass=1, time=-1)
        if isinstance(element, RevoluteSpring | PrismaticSpring):
            joint, (k, rest) = self.joint[element.joint().index()], spring_law(element)
            if isinstance(element, RevoluteSpring):
                return RevoluteSpring(joint, rest, k / unit.torque)
            return PrismaticSpring(joint, rest / unit.length, k / stiffness)
        if isinstance(element, LinearSpringDamper):
            A, B = (self.body[x.index()] for x in (element.bodyA(), element.bodyB()))
            p_AP, p_BQ = element.p_AP() / unit.length, element.p_BQ() / unit.length
            k, d = element.stiffness() / stiffness, element.damping() / damping
            rest = element.free_length() / unit.length
            return LinearSpringDamper(A, p_AP, B, p_BQ, rest, k, d)
        if isinstance(element, LinearBushingRollPitchYaw):
            name = f"bushing{int(element.index())}"
            return LinearBushingRollPitchYaw(
                self._frame(f"{name}_A", element.frameA()),
                self._frame(f"{name}_C", element.frameC()),
                element.torque_stiffness_constants() / unit.torque,
                element.torque_damping_constants() / unit.of(mass=1, length=2, time=-1),
                element.force_stiffness_constants() / stiffness,
                element.force_damping_constants() / damping,
            )
        raise InvalidInput(
            f"force element {type(element).__name__} cannot be copied to other units; "
            "simulate the model in SI"
        )

    def actuators(self) -> None:
        """Adds the actuators with limits, rotor inertias and gear ratios."""
        unit = self.unit
        for actuator in actuators_of(self.source):
            joint, ratio = actuator.joint(), actuator.default_gear_ratio()
            # A prismatic gear ratio is in rad/m, a revolute one in rad/rad.
            arm, force = 1.0, unit.torque
            if slides(joint):
                arm, force = unit.length, unit.force
            own, limit = self.joint[joint.index()], actuator.effort_limit() / force
            copy = self.target.AddJointActuator(actuator.name(), own, limit)
            inertia = actuator.default_rotor_inertia() / unit.inertia
            copy.set_default_rotor_inertia(inertia)
            copy.set_default_gear_ratio(ratio * arm)

    def collisions(
        self, inspector: SceneGraphInspector
    ) -> dict[GeometryId, GeometryId]:
        """Copies the collision geometries; returns the copy of each."""
        copies = {}
        for index, copy in self.body.items():
            body = self.source.get_body(index)
            for geometry in self.source.GetCollisionGeometriesForBody(body):
                X_BG = self._pose(inspector.GetPoseInFrame(geometry))
                shape = scaled_shape(inspector.GetShape(geometry), self.unit.length)
                name = inspector.GetName(geometry).rpartition("::")[2]
                material = inspector.GetProximityProperties(geometry)
                placed = copy, X_BG, shape, name, _scaled_contact(material, self.unit)
                copies[geometry] = self.target.RegisterCollisionGeometry(*placed)
        return copies


def scaled_shape(shape, length: float):
    """A shape with its sizes divided by the unit of length [m].

    Raises:
        InvalidInput: for a shape that cannot be scaled.
    """
    sizes = shape_sizes(shape) / length
    if isinstance(shape, Mesh | Convex):
        return type(shape)(shape.source(), sizes)
    return type(shape)(*sizes)


def _scaled_contact(source: ProximityProperties, unit: Scaling) -> ProximityProperties:
    """Contact properties in scaled units; those without a unit known here stay."""
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
