"""SDF files: a tree of links and joints in SI, written as text for Drake's parser."""

from __future__ import annotations

import xml.etree.ElementTree as ET
from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
from pydrake.math import RigidTransform, RollPitchYaw

from drakebots.formats.read.tree import add, write_inertial
from drakebots.model import Coupler

DRAKE = {"xmlns:drake": "http://drake.mit.edu"}
"""Declaration of the prefix of Drake's own tags."""


@dataclass(frozen=True)
class SdfPose:
    """The pose of a frame in another one.

    Attributes:
        p: position (3,) [m].
        rpy: roll, pitch and yaw (3,) [rad].
    """

    p: np.ndarray = field(default_factory=lambda: np.zeros(3))
    rpy: np.ndarray = field(default_factory=lambda: np.zeros(3))

    @classmethod
    def of(cls, X: RigidTransform) -> SdfPose:
        """As SDF writes it."""
        return cls(X.translation(), RollPitchYaw(X.rotation()).vector())


@dataclass(frozen=True)
class SdfGeometry:
    """A visual or a collision of a link.

    Attributes:
        kind: "visual" or "collision".
        name: of the element.
        pose: in the link.
        shape: "sphere", "ellipsoid", "box", "cylinder", "capsule" or "mesh".
        values: its SDF children: radius, length, size, radii, scale [m], or uri.
        rgba: (4,), or None for Drake's default.
        friction: coefficient of a collision; None for Drake's default.
        modulus: hydroelastic modulus of a compliant collision [Pa]; None for a rigid
            one. It has a friction, too.
    """

    kind: str
    name: str
    pose: SdfPose
    shape: str
    values: dict[str, object]
    rgba: np.ndarray | None = None
    friction: float | None = None
    modulus: float | None = None


@dataclass
class SdfLink:
    """A rigid body.

    Attributes:
        name: of the link.
        mass: its mass [kg].
        com: pose of the inertia's frame, at the centre of mass, in the link.
        inertia: (3, 3) about the centre of mass [kg m^2].
        geometries: visuals and collisions.
        pose: pose of the link in `relative_to` at q = 0.
        relative_to: another link; None for the model frame.
    """

    name: str
    mass: float = 0.0
    com: SdfPose = field(default_factory=SdfPose)
    inertia: np.ndarray = field(default_factory=lambda: np.zeros((3, 3)))
    geometries: list[SdfGeometry] = field(default_factory=list)
    pose: SdfPose = field(default_factory=SdfPose)
    relative_to: str | None = None


@dataclass
class SdfJoint:
    """A joint between two links.

    Attributes:
        type: "revolute", "continuous", "prismatic", "ball", "fixed" or "planar": on
            the xy plane of the parent, in Drake's own tag.
        axis: unit vector in the child (3,).
        p_CJ: position in the child (3,) [m]; None for its origin.
        damping: [N m s/rad] or [N s/m].
        limit: lower, upper, velocity, effort where given, in SI.
        stiffness: [N m/rad] or [N/m], about `reference` [rad] or [m].
        actuated: whether Drake adds an actuator.
        gain: proportional gain of Drake's own control of the actuator
            [N m/rad] or [N/m]; None for none.
        rate_gain: its derivative gain [N m s/rad] or [N s/m].
        rotor_inertia: of the actuator, seen from the joint [kg m^2] or [kg].
        coupler: of a joint that follows another.
    """

    name: str
    type: str
    parent: str
    child: str
    axis: np.ndarray = field(default_factory=lambda: np.array([1.0, 0.0, 0.0]))
    damping: float = 0.0
    limit: dict[str, float] = field(default_factory=dict)
    stiffness: float = 0.0
    reference: float | None = None
    actuated: bool = False
    gain: float | None = None
    rate_gain: float = 0.0
    p_CJ: np.ndarray | None = None
    rotor_inertia: float = 0.0
    coupler: Coupler | None = None


@dataclass(frozen=True)
class SdfFilter:
    """Links that do not collide with others.

    Attributes:
        name: of the group.
        members: names of its links.
        ignored: names of groups, itself perhaps, that its links do not collide with.
    """

    name: str
    members: tuple[str, ...]
    ignored: tuple[str, ...]


@dataclass
class SdfModel:
    """The content of an SDF model, in SI.

    Attributes:
        name: of the model.
        links, joints: by name.
        frames: further frames as (name, link, pose in the link).
        elements: springs and dampers between points, loops and bushings, by Drake's
            tags: "linear_spring_damper", "ball_constraint", "linear_bushing_rpy"; each
            with its values by their names, such as body_A, p_AP [m].
        filters: links that do not collide.
    """

    name: str
    links: dict[str, SdfLink] = field(default_factory=dict)
    joints: dict[str, SdfJoint] = field(default_factory=dict)
    frames: list[tuple[str, str, SdfPose]] = field(default_factory=list)
    elements: list[tuple[str, Mapping[str, object]]] = field(default_factory=list)
    filters: list[SdfFilter] = field(default_factory=list)

    def place(self, link: SdfLink, parent: str, X: RigidTransform) -> None:
        """Adds a link at a pose in another one, or in the world."""
        link.pose = SdfPose.of(X)
        link.relative_to = None if parent == "world" else parent
        self.links[link.name] = link


def model_sdf(model: SdfModel) -> str:
    """The SDF 1.9 text of a model, for Drake's parser.

    Joints that are not actuated get effort 0, which Drake reads as "no
    actuator"; the actuators of the others have their joints' names.
    """
    root = ET.Element("model", name=model.name)
    for link in model.links.values():
        _add_link(root, link)
    for joint in model.joints.values():
        _add_joint(root, joint)
    for name, link, pose in model.frames:
        _add_pose(add(root, "frame", name=name, attached_to=link), pose)
    for tag, values in model.elements:
        stem = "bushing" if tag == "linear_bushing_rpy" else tag
        element = add(root, f"drake:{tag}")
        for key, value in values.items():
            add(element, f"drake:{stem}_{key}", value)
    for filtered in model.filters:
        group = add(root, "drake:collision_filter_group", name=filtered.name)
        for member in filtered.members:
            add(group, "drake:member", member)
        for ignored in filtered.ignored:
            add(group, "drake:ignored_collision_filter_group", ignored)
    has_drakes = any(element.tag.startswith("drake:") for element in root.iter())
    sdf = ET.Element("sdf", DRAKE if has_drakes else {}, version="1.9")
    sdf.append(root)
    ET.indent(sdf)
    return '<?xml version="1.0"?>\n' + ET.tostring(sdf, "unicode") + "\n"


def _add_pose(parent: ET.Element, pose: SdfPose, relative_to: str | None = None):
    add(parent, "pose", [*pose.p, *pose.rpy], relative_to=relative_to or None)


def _add_link(root: ET.Element, link: SdfLink) -> None:
    element = add(root, "link", name=link.name)
    _add_pose(element, link.pose, link.relative_to)
    # Always written: without it libsdformat takes a mass of 1 kg.
    of_com = link.inertia, link.com.p, link.com.rpy
    write_inertial(element, link.mass, *of_com, urdf=False)
    for geometry in link.geometries:
        node = add(element, geometry.kind, name=geometry.name)
        _add_pose(node, geometry.pose)
        shape = add(add(node, "geometry"), geometry.shape)
        for key, value in geometry.values.items():
            add(shape, key, value)
        if geometry.rgba is not None:
            add(add(node, "material"), "diffuse", geometry.rgba)
        if geometry.friction is not None:
            surface = add(node, "drake:proximity_properties")
            if geometry.modulus is not None:
                add(surface, "drake:compliant_hydroelastic")
                add(surface, "drake:hydroelastic_modulus", geometry.modulus)
            for kind in ("dynamic", "static"):
                add(surface, f"drake:mu_{kind}", geometry.friction)


def _add_joint(root: ET.Element, joint: SdfJoint) -> None:
    # libsdformat has no planar joint.
    tag = "drake:" if joint.type == "planar" else ""
    element = add(root, f"{tag}joint", name=joint.name, type=joint.type)
    add(element, f"{tag}parent", joint.parent)
    add(element, f"{tag}child", joint.child)
    if joint.p_CJ is not None and np.any(joint.p_CJ):
        _add_pose(element, SdfPose(joint.p_CJ))
    if joint.actuated and joint.rotor_inertia > 0:
        add(element, "drake:rotor_inertia", joint.rotor_inertia)
    if (coupler := joint.coupler) is not None:
        says = {"multiplier": coupler.gear, "offset": coupler.offset}
        add(element, "drake:mimic", joint=coupler.leader, **says)
    if joint.type == "planar":
        add(element, f"{tag}damping", "0 0 0")
    if joint.type in ("fixed", "planar") or (
        joint.type == "ball" and not joint.damping
    ):
        return
    axis = add(element, "axis")
    if joint.type != "ball":
        add(axis, "xyz", joint.axis)
    dynamics = add(axis, "dynamics")
    add(dynamics, "damping", joint.damping)
    if joint.reference is not None:
        add(dynamics, "spring_reference", joint.reference)
        add(dynamics, "spring_stiffness", joint.stiffness)
    if joint.gain is not None:
        rate = joint.rate_gain or "0"
        add(element, "drake:controller_gains", p=joint.gain, d=rate)
        if not joint.limit:
            return
    limit = add(axis, "limit")
    values = joint.limit if joint.actuated else {**joint.limit, "effort": 0.0}
    for key, value in values.items():
        add(limit, key, value)
