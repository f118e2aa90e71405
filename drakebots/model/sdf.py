"""SDF files: a tree of links and joints in SI, written as text for Drake's parser."""

from __future__ import annotations

import xml.etree.ElementTree as ET
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from drakebots.model.couplers import Coupler

_NS = "http://drake.mit.edu"
_SMALLEST = 1e-300


@dataclass(frozen=True)
class SdfPose:
    """The pose of a frame in another one.

    Attributes:
        p: position (3,) [m].
        rpy: roll, pitch and yaw (3,) [rad].
    """

    p: np.ndarray = field(default_factory=lambda: np.zeros(3))
    rpy: np.ndarray = field(default_factory=lambda: np.zeros(3))


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
    """

    kind: str
    name: str
    pose: SdfPose
    shape: str
    values: dict[str, object]
    rgba: np.ndarray | None = None
    friction: float | None = None


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
    mass: float
    com: SdfPose
    inertia: np.ndarray
    geometries: list[SdfGeometry]
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
            [N m/rad] or [N/m]; None for none. It excludes limits.
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


@dataclass(frozen=True)
class SdfSpringDamper:
    """A spring and damper between point P of body A and point Q of body B.

    Attributes:
        body_A, body_B: names of the bodies.
        p_AP, p_BQ: positions of the points (3,) [m].
        free_length: length without force [m].
        stiffness: [N/m].
        damping: [N s/m].
    """

    body_A: str
    p_AP: np.ndarray
    body_B: str
    p_BQ: np.ndarray
    free_length: float
    stiffness: float
    damping: float


@dataclass
class SdfModel:
    """The content of an SDF model, in SI.

    Attributes:
        name: of the model.
        links, joints: by name.
        frames: further frames as (name, link, pose in the link).
        springs: springs and dampers between points.
        filters: links that do not collide.
    """

    name: str
    links: dict[str, SdfLink] = field(default_factory=dict)
    joints: dict[str, SdfJoint] = field(default_factory=dict)
    frames: list[tuple[str, str, SdfPose]] = field(default_factory=list)
    springs: list[SdfSpringDamper] = field(default_factory=list)
    filters: list[SdfFilter] = field(default_factory=list)


def model_sdf(model: SdfModel) -> str:
    """The SDF 1.9 text of a model, for Drake's parser.

    Joints that are not actuated get effort 0, which Drake reads as "no
    actuator"; the actuators of the others have their joints' names.
    """
    ET.register_namespace("drake", _NS)
    sdf = ET.Element("sdf", {"version": "1.9"})
    root = _child(sdf, "model", name=model.name)
    for link in model.links.values():
        _add_link(root, link)
    for joint in model.joints.values():
        _add_joint(root, joint)
    for name, link, pose in model.frames:
        frame = _child(root, "frame", name=name, attached_to=link)
        _add_pose(frame, pose)
    for spring in model.springs:
        _add_spring_damper(root, spring)
    for group in model.filters:
        _add_filter(root, group)
    ET.indent(sdf)
    return '<?xml version="1.0"?>\n' + ET.tostring(sdf, "unicode") + "\n"


def _num(value: float) -> str:
    # libsdformat refuses numbers that are not normal.
    return repr(float(value) + 0.0 if abs(value) > _SMALLEST else 0.0)


def _vec(values: Sequence[float]) -> str:
    return " ".join(_num(v) for v in values)


def _child(parent: ET.Element, tag: str, text: str | None = None, **attributes):
    element = ET.SubElement(parent, tag, attributes)
    element.text = text
    return element


def _add_pose(parent: ET.Element, pose: SdfPose, **attributes: str) -> None:
    _child(parent, "pose", _vec([*pose.p, *pose.rpy]), **attributes)


def _add_link(root: ET.Element, link: SdfLink) -> None:
    element = _child(root, "link", name=link.name)
    relative = {"relative_to": link.relative_to} if link.relative_to else {}
    _add_pose(element, link.pose, **relative)
    # Always written: without it libsdformat takes a mass of 1 kg.
    inertial = _child(element, "inertial")
    _add_pose(inertial, link.com)
    _child(inertial, "mass", _num(link.mass))
    tensor = _child(inertial, "inertia")
    for i, j in ((0, 0), (0, 1), (0, 2), (1, 1), (1, 2), (2, 2)):
        _child(tensor, f"i{'xyz'[i]}{'xyz'[j]}", _num(link.inertia[i, j]))
    for geometry in link.geometries:
        node = _child(element, geometry.kind, name=geometry.name)
        _add_pose(node, geometry.pose)
        shape = _child(_child(node, "geometry"), geometry.shape)
        for key, value in geometry.values.items():
            text = value if isinstance(value, str) else _vec(np.atleast_1d(value))
            _child(shape, key, text)
        if geometry.rgba is not None:
            _child(_child(node, "material"), "diffuse", _vec(geometry.rgba))
        if geometry.friction is not None:
            surface = _child(node, f"{{{_NS}}}proximity_properties")
            for kind in ("static", "dynamic"):
                _child(surface, f"{{{_NS}}}mu_{kind}", _num(geometry.friction))


def _add_joint(root: ET.Element, joint: SdfJoint) -> None:
    # libsdformat has no planar joint.
    tag = f"{{{_NS}}}" if joint.type == "planar" else ""
    element = _child(root, f"{tag}joint", name=joint.name, type=joint.type)
    _child(element, f"{tag}parent", joint.parent)
    _child(element, f"{tag}child", joint.child)
    if joint.p_CJ is not None and np.any(joint.p_CJ):
        _add_pose(element, SdfPose(joint.p_CJ))
    if joint.actuated and joint.rotor_inertia > 0:
        _child(element, f"{{{_NS}}}rotor_inertia", _num(joint.rotor_inertia))
    if (coupler := joint.coupler) is not None:
        gear, offset = _num(coupler.gear), _num(coupler.offset)
        says = {"joint": coupler.leader, "multiplier": gear, "offset": offset}
        _child(element, f"{{{_NS}}}mimic", **says)
    if joint.type == "planar":
        _child(element, f"{tag}damping", "0 0 0")
    if joint.type in ("fixed", "planar") or (
        joint.type == "ball" and not joint.damping
    ):
        return
    axis = _child(element, "axis")
    if joint.type != "ball":
        _child(axis, "xyz", _vec(joint.axis))
    dynamics = _child(axis, "dynamics")
    _child(dynamics, "damping", _num(joint.damping))
    if joint.reference is not None:
        _child(dynamics, "spring_reference", _num(joint.reference))
        _child(dynamics, "spring_stiffness", _num(joint.stiffness))
    if joint.gain is not None:
        _child(element, f"{{{_NS}}}controller_gains", p=_num(joint.gain), d="0")
        return
    limit = _child(axis, "limit")
    values = joint.limit if joint.actuated else {**joint.limit, "effort": 0.0}
    for key, value in values.items():
        _child(limit, key, _num(value))


def _add_spring_damper(root: ET.Element, spring: SdfSpringDamper) -> None:
    tag = f"{{{_NS}}}linear_spring_damper"
    element = _child(root, tag)
    _child(element, f"{tag}_body_A", spring.body_A)
    _child(element, f"{tag}_p_AP", _vec(spring.p_AP))
    _child(element, f"{tag}_body_B", spring.body_B)
    _child(element, f"{tag}_p_BQ", _vec(spring.p_BQ))
    _child(element, f"{tag}_free_length", _num(spring.free_length))
    _child(element, f"{tag}_stiffness", _num(spring.stiffness))
    _child(element, f"{tag}_damping", _num(spring.damping))


def _add_filter(root: ET.Element, group: SdfFilter) -> None:
    tag = f"{{{_NS}}}"
    element = _child(root, f"{tag}collision_filter_group", name=group.name)
    for member in group.members:
        _child(element, f"{tag}member", member)
    for ignored in group.ignored:
        _child(element, f"{tag}ignored_collision_filter_group", ignored)
