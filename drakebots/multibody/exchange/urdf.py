"""Writes a model as URDF, for everything that reads robots.

URDF itself holds the tree: links, joints of one degree of freedom with damping and
limits, shapes, motors. A link's frame must be that of the joint which carries it, so a
body whose joint sits elsewhere is written in that joint's frame; joints of several
coordinates become several joints with massless links between.

What URDF has no word for is written in Drake's extension of it, which other tools pass
over: ball constraints that close loops, springs of joints (as bushings that give about
one axis), bushings, springs between points, friction, which links do not collide.
"""

from __future__ import annotations

import xml.etree.ElementTree as ET
from pathlib import Path
from typing import Any
from xml.etree.ElementTree import SubElement

import numpy as np
import yaml
from pydrake.math import RigidTransform, RollPitchYaw, RotationMatrix

from drakebots.core.errors import FileProblem, InvalidInput
from drakebots.core.files import check_output, replacing
from drakebots.model import Model, coupled_joints, find_body, load
from drakebots.multibody.exchange.parts import (
    Form,
    Part,
    Step,
    bushings,
    copy_sphere,
    filtered_pairs,
    num,
    plain_robot,
    read_parts,
    sizes,
    spring_dampers,
    vec,
)
from drakebots.multibody.plant import Robot

_NS = "http://drake.mit.edu"
_UNLIMITED = 1e6
"""Stands for no limit where URDF asks for one [rad, m, rad/s, m/s, N m, N]."""


def write_urdf(model: Model | str | Path, path: str | Path) -> Path:
    """Writes a model as URDF, its meshes as .obj into `meshes/` beside it.

    Feet, named points and loops go into the `.drakebots.yaml` beside it.

    Args:
        model: as for :func:`drakebots.load`.
        path: file to write (.urdf), in a folder that exists.

    Returns:
        The path.

    Raises:
        FileProblem: for another ending, or a file that cannot be written.
        InvalidInput: for what URDF cannot say: several free bodies.
    """
    path = Path(path)
    if path.suffix.lower() != ".urdf":
        raise FileProblem(path, "needs the ending .urdf")
    check_output(path)
    model = model if isinstance(model, Model) else load(model)
    robot = plain_robot(model)
    writer = _Writer(robot, read_parts(robot, path), path)
    root = writer.document()
    ET.indent(root)
    text = ET.tostring(root, "unicode").replace(
        "<robot ", f'<robot xmlns:drake="{_NS}" ', 1
    )
    with replacing(path) as part:
        part.write_text(text + "\n", encoding="utf-8")
    beside = writer.description()
    if any(beside.values()):
        with replacing(path.with_suffix(".drakebots.yaml")) as part:
            part.write_text(yaml.safe_dump(beside, sort_keys=False), encoding="utf-8")
    return path


class _Writer:
    """Writes the parts of a robot as one URDF document."""

    def __init__(self, robot: Robot, parts: list[Part], path: Path):
        self.robot, self.parts, self.path = robot, parts, path
        self.by_body = {int(part.body.index()): part for part in parts}
        self.root = ET.Element("robot", name=robot.model.name)
        # A link's frame L is that of its joint, or the body's own.
        self.X_LB = {
            id(part): part.X_BM.inverse() if part.steps else RigidTransform()
            for part in parts
        }
        self.frames = 0

    def document(self) -> ET.Element:
        """The whole robot."""
        world = self.parts[0]
        # MuJoCo's reader of URDF needs these; others pass over them.
        settings = {
            "strippath": "false",
            "discardvisual": "false",
            "fusestatic": "false",
        }
        settings |= {"boundmass": "1e-12", "boundinertia": "1e-14"}
        SubElement(SubElement(self.root, "mujoco"), "compiler", **settings)
        free = [part for part in world.children if part.is_free]
        has_world = world.forms or len(world.children) > len(free)
        if len(free) + bool(has_world) > 1:
            raise InvalidInput(
                "URDF has one root, the model has "
                f"{', '.join(p.name for p in free)}{' and the world' * has_world}; "
                "write it as MJCF"
            )
        for part in self.parts if has_world else self.parts[1:]:
            self._link(part)
            if part.parent is not None and not part.is_free:
                self._joints(part)
        self._couplers()
        self._transmissions()
        self._filters()
        plant = self.robot.plant
        for loop, p_AP, p_BQ in self.robot.model.balls(plant):
            a, b = find_body(plant, loop.body_A), find_body(plant, loop.body_B)
            self._between("ball_constraint", self._part(a), p_AP, self._part(b), p_BQ)
        for bushing in bushings(self.robot):
            A, C = bushing.frameA(), bushing.frameC()
            ends = (self._part(F.body()) for F in (A, C))
            frames = (
                self._frame(part.name, self._in_link(part, F))
                for part, F in zip(ends, (A, C))
            )
            self._bushing(
                *frames,
                bushing.torque_stiffness_constants(),
                bushing.torque_damping_constants(),
                bushing.force_stiffness_constants(),
                bushing.force_damping_constants(),
            )
        for spring in spring_dampers(self.robot):
            a, b = self._part(spring.bodyA()), self._part(spring.bodyB())
            element = self._between(
                "linear_spring_damper", a, spring.p_AP(), b, spring.p_BQ()
            )
            for key in ("free_length", "stiffness", "damping"):
                name = f"drake:linear_spring_damper_{key}"
                SubElement(element, name, value=num(getattr(spring, key)()))
        return self.root

    def description(self) -> dict[str, dict[str, Any]]:
        """Feet, points and loops in the frames of the links."""
        model = self.robot.model

        def at(body: str, p) -> dict[str, Any]:
            return {"body": body, "p": (self._link_of(body) @ p).tolist()}

        def end(letter: str, body: str, p, *directions) -> dict[str, Any]:
            X_LB = self._link_of(body)
            found = {letter: body, f"p_{letter}": (X_LB @ p).tolist()}
            for name, value in zip(("axis", "side"), directions):
                if value is not None:
                    turned = X_LB.rotation().matrix() @ value
                    found[f"{name}_{letter}"] = turned.tolist()
            return found

        return {
            "feet": {
                f.name: at(f.body, f.p_BF) | {"radius": float(f.radius)}
                for f in model.feet
            },
            "points": {p.name: at(p.body, p.p_BF) for p in model.points},
            "loops": {
                x.name: end("A", x.body_A, x.p_AP, x.axis_A, x.side_A)
                | end("B", x.body_B, x.p_BQ, x.axis_B, x.side_B)
                | {"rows": x.rows, "in_file": True}
                for x in model.loops
            },
        }

    def _link_of(self, body: str) -> RigidTransform:
        """X_LB of a body by name."""
        part = self._part(find_body(self.robot.plant, body))
        return self.X_LB[id(part)]

    def _part(self, body) -> Part:
        return self.by_body[int(body.index())]

    def _in_link(self, part: Part, frame) -> RigidTransform:
        return self.X_LB[id(part)] @ frame.GetFixedPoseInBodyFrame()

    # --- links and joints ---------------------------------------------------

    def _link(self, part: Part) -> None:
        link = SubElement(self.root, "link", name=part.name)
        X_LB = self.X_LB[id(part)]
        mass, p_BC, I_C = part.inertia()
        if mass and part.parent is not None:
            inertial = SubElement(link, "inertial")
            _origin(inertial, X_LB @ RigidTransform(p_BC))
            SubElement(inertial, "mass", value=num(mass))
            R = X_LB.rotation().matrix()
            moments = R @ I_C @ R.T
            entries = ("xx", 0, 0), ("xy", 0, 1), ("xz", 0, 2)
            entries += ("yy", 1, 1), ("yz", 1, 2), ("zz", 2, 2)
            names = {f"i{name}": num(moments[i, j]) for name, i, j in entries}
            SubElement(inertial, "inertia", **names)
        for form in part.forms:
            self._form(link, form, X_LB @ form.X_BG)

    def _form(self, link: ET.Element, form: Form, X_LG: RigidTransform) -> None:
        """Adds a visual or a collision to a link."""
        kind, size = sizes(form.shape)
        role = "collision" if form.rgba is None else "visual"
        element = SubElement(link, role, name=form.name)
        _origin(element, X_LG)
        geometry = SubElement(element, "geometry")
        if kind == "box":
            SubElement(geometry, "box", size=vec(2 * np.array(size)))
        elif kind == "sphere":
            SubElement(geometry, "sphere", radius=num(size[0]))
        elif kind in ("cylinder", "capsule"):
            length = num(2 * size[1])
            SubElement(geometry, kind, radius=num(size[0]), length=length)
        elif kind in ("ellipsoid", "mesh"):
            file = form.mesh or copy_sphere(self.path)
            SubElement(geometry, "mesh", filename=file, scale=vec(size))
        else:
            raise InvalidInput(f"shape {form.name!r}: URDF has no {kind}; use a box")
        if form.rgba is None:
            contact = SubElement(element, "drake:proximity_properties")
            for name in ("drake:mu_dynamic", "drake:mu_static"):
                SubElement(contact, name, value=num(form.friction))
        else:
            material = SubElement(element, "material", name=f"{form.name}_colour")
            SubElement(material, "color", rgba=vec(form.rgba))

    def _joints(self, part: Part) -> None:
        """The chain of joints from a part's parent to its link."""
        X_LF = self.X_LB[id(part.parent)] @ part.X_PF
        parent = part.parent.name
        if not part.steps:
            X = self.X_LB[id(part.parent)] @ part.X_PB
            self._joint(part.joint.name(), "fixed", parent, part.name, X)
            return
        *between, last = part.steps
        for step in (*between, last):
            child = part.name if step is last else f"{part.name}_{step.name}"
            if step is not last:
                SubElement(self.root, "link", name=child)
            kind = "prismatic" if step.slides else "revolute"
            lower, upper = step.limits
            if not step.slides and not np.isfinite(step.limits).any():
                kind = "continuous"
            joint = self._joint(step.name, kind, parent, child, X_LF)
            SubElement(joint, "axis", xyz=vec(step.axis))
            SubElement(joint, "dynamics", damping=num(step.damping), friction="0.0")
            velocity = part.joint.velocity_upper_limits()[step.index]
            limit = {"effort": num(self._effort(part.joint))}
            limit["velocity"] = num(min(velocity, _UNLIMITED))
            if kind != "continuous":
                limit |= {"lower": num(max(lower, -_UNLIMITED))}
                limit |= {"upper": num(min(upper, _UNLIMITED))}
            SubElement(joint, "limit", **limit)
            if step.stiffness:
                self._spring(step, parent, X_LF, child)
            parent, X_LF = child, RigidTransform()

    def _joint(self, name, kind, parent, child, X) -> ET.Element:
        joint = SubElement(self.root, "joint", name=name, type=kind)
        _origin(joint, X)
        SubElement(joint, "parent", link=parent)
        SubElement(joint, "child", link=child)
        return joint

    def _effort(self, joint) -> float:
        """The largest effort of a joint's motor; Drake reads 0 as no motor."""
        plant = self.robot.plant
        for index in plant.GetJointActuatorIndices():
            actuator = plant.get_joint_actuator(index)
            if actuator.joint().index() == joint.index():
                return min(actuator.effort_limit(), _UNLIMITED)
        return 0.0

    def _couplers(self) -> None:
        joints = {joint.get("name"): joint for joint in self.root.iter("joint")}
        for coupler in self.robot.model.couplers:
            follower, leader = coupled_joints(self.robot.plant, coupler)
            SubElement(
                joints[follower.name()],
                "mimic",
                joint=leader.name(),
                multiplier=num(coupler.gear),
                offset=num(coupler.offset),
            )

    def _transmissions(self) -> None:
        """Adds the actuators as transmissions, with Drake's rotors and gains."""
        plant = self.robot.plant
        for index in plant.GetJointActuatorIndices():
            actuator = plant.get_joint_actuator(index)
            name = actuator.name()
            element = SubElement(self.root, "transmission", name=f"{name}_transmission")
            kind = "transmission_interface/SimpleTransmission"
            SubElement(element, "type").text = kind
            joint = SubElement(element, "joint", name=actuator.joint().name())
            interface = "hardware_interface/EffortJointInterface"
            SubElement(joint, "hardwareInterface").text = interface
            motor = SubElement(element, "actuator", name=name)
            SubElement(motor, "mechanicalReduction").text = "1"
            ratio, inertia = (
                actuator.default_gear_ratio(),
                actuator.default_rotor_inertia(),
            )
            if inertia:
                SubElement(motor, "drake:gear_ratio", value=num(ratio))
                SubElement(motor, "drake:rotor_inertia", value=num(inertia))
            if actuator.has_controller():
                gains = actuator.get_controller_gains()
                pd = {"p": num(gains.p), "d": num(gains.d)}
                SubElement(motor, "drake:controller_gains", **pd)

    # --- Drake's extension --------------------------------------------------

    def _filters(self) -> None:
        groups: dict[str, ET.Element] = {}
        for one, other in filtered_pairs(self.robot, self.parts):
            for part in (one, other):
                if part.name not in groups:
                    group = SubElement(
                        self.root, "drake:collision_filter_group", name=part.name
                    )
                    SubElement(group, "drake:member", link=part.name)
                    groups[part.name] = group
            ignored = "drake:ignored_collision_filter_group"
            SubElement(groups[one.name], ignored, name=other.name)

    def _between(self, tag: str, a: Part, p_AP, b: Part, p_BQ) -> ET.Element:
        element = SubElement(self.root, f"drake:{tag}")
        for end, part, point, p in (("A", a, "AP", p_AP), ("B", b, "BQ", p_BQ)):
            in_link = self.X_LB[id(part)] @ np.asarray(p)
            SubElement(element, f"drake:{tag}_body_{end}", name=part.name)
            SubElement(element, f"drake:{tag}_p_{point}", value=vec(in_link))
        return element

    def _frame(self, link: str, X: RigidTransform) -> str:
        self.frames += 1
        name = f"{link}_frame_{self.frames}"
        rpy = vec(RollPitchYaw(X.rotation()).vector())
        where = {"link": link, "xyz": vec(X.translation()), "rpy": rpy}
        SubElement(self.root, "frame", name=name, **where)
        return name

    def _spring(self, step: Step, parent: str, X_PF: RigidTransform, child: str):
        """A joint's spring, as a bushing that gives about or along the joint's axis."""
        R = RotationMatrix.MakeFromOneVector(step.axis, 0)
        rest = RigidTransform(R)
        if step.slides:
            rest = rest @ RigidTransform([step.rest, 0, 0])
        else:
            rest = rest @ RigidTransform(RotationMatrix.MakeXRotation(step.rest))
        about = np.array([step.stiffness, 0, 0])
        none = np.zeros(3)
        torque, force = (none, about) if step.slides else (about, none)
        frames = (
            self._frame(parent, X_PF @ rest),
            self._frame(child, RigidTransform(R)),
        )
        self._bushing(*frames, torque, none, force, none)

    def _bushing(self, A: str, C: str, torque, torque_damping, force, force_damping):
        tag = "drake:bushing_"
        element = SubElement(self.root, "drake:linear_bushing_rpy")
        SubElement(element, f"{tag}frameA", name=A)
        SubElement(element, f"{tag}frameC", name=C)
        SubElement(element, f"{tag}torque_stiffness", value=vec(torque))
        SubElement(element, f"{tag}torque_damping", value=vec(torque_damping))
        SubElement(element, f"{tag}force_stiffness", value=vec(force))
        SubElement(element, f"{tag}force_damping", value=vec(force_damping))


def _origin(parent: ET.Element, X: RigidTransform) -> None:
    rpy = vec(RollPitchYaw(X.rotation()).vector())
    SubElement(parent, "origin", xyz=vec(X.translation()), rpy=rpy)
