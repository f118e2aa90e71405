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

import numpy as np
from pydrake.math import RigidTransform, RollPitchYaw, RotationMatrix
from pydrake.multibody.tree import LinearBushingRollPitchYaw

from drakebots.core.checks import check_value, one_of
from drakebots.core.errors import InvalidInput
from drakebots.formats.read.tree import add, write_inertial, written
from drakebots.formats.write.parts import (
    BUSHING,
    Form,
    Part,
    Step,
    Writer,
    bushing_constants,
    copy_sphere,
    filtered_pairs,
    opened,
    write_beside,
    write_document,
    written_name,
)
from drakebots.formats.write.sdf import DRAKE
from drakebots.model import (
    Model,
    actuators_of,
    coupled_joints,
    force_elements,
    shape_sizes,
)
from drakebots.multibody import Robot

LOOPS = ("drake", "gepetto")
"""Who closes the loops of a URDF: Drake, by tags of its own; the toolbox for parallel
robots of Gepetto too, by a YAML beside the file that pairs frames of it."""

_UNLIMITED = 1e6
"""Stands for no limit where URDF asks for one [rad, m, rad/s, m/s, N m, N]."""


def write_urdf(
    model: Model | str | Path, path: str | Path, *, loops: str = "drake"
) -> Path:
    """Writes a model as URDF, its meshes as .obj into `meshes/` beside it.

    Feet, named points and loops go into the `.drakebots.yaml` beside it.

    Args:
        model: as for :func:`drakebots.load`.
        path: file to write (.urdf), in a folder that exists.
        loops: one of :data:`LOOPS`, who is to close the loops.

    Returns:
        The path.

    Raises:
        FileProblem: for another ending, or a file that cannot be written.
        InvalidInput: for what URDF cannot say: several free bodies.
    """
    path = Path(path)
    check_value("loops", loops, one_of("way to close loops", LOOPS))
    writer = _Writer(*opened(model, path, (".urdf",)), path)
    document, described = writer.document(), {".drakebots.yaml": writer.description()}
    if loops == "gepetto":
        described[".yaml"] = writer.joined_frames()
    write_document(document, path)
    write_beside(path, described)
    return path


class _Writer(Writer):
    """Writes the parts of a robot as one URDF document."""

    def __init__(self, robot: Robot, parts: list[Part], path: Path):
        super().__init__(robot, parts)
        self.path = path
        self.root = ET.Element("robot", DRAKE, name=robot.model.name)
        self.efforts = {
            motor.joint().index(): min(motor.effort_limit(), _UNLIMITED)
            for motor in actuators_of(robot.plant)
        }
        self.frames = 0

    def X_LB(self, part: Part) -> RigidTransform:
        """That in the frame of the joint which carries it."""
        return part.X_LB

    def document(self) -> ET.Element:
        """The whole robot."""
        world = self.parts[0]
        # MuJoCo's reader of URDF needs these; others pass over them.
        settings = dict.fromkeys(("strippath", "discardvisual", "fusestatic"), "false")
        settings |= {"boundmass": "1e-12", "boundinertia": "1e-14"}
        add(add(self.root, "mujoco"), "compiler", **settings)
        free = [part for part in world.children if part.is_free]
        has_world = world.forms or len(world.children) > len(free)
        if len(free) + bool(has_world) > 1:
            raise InvalidInput(
                "URDF has one root, the model has "
                f"{', '.join(p.name for p in free)}{' and the world' * has_world}; "
                "write it as SDF or MJCF"
            )
        for part in self.parts if has_world else self.parts[1:]:
            self._link(part)
            if part.parent is not None and not part.is_free:
                self._joints(part)
        self._couplers()
        self._transmissions()
        self._filters()
        for tag, says in self.between_points():
            element = add(self.root, f"drake:{tag}")
            for key, value in says.items():
                kind = "name" if isinstance(value, str) else "value"
                add(element, f"drake:{tag}_{key}", **{kind: value})
        for bushing in force_elements(self.plant, LinearBushingRollPitchYaw):
            frames = []
            for F in (bushing.frameA(), bushing.frameC()):
                part, X_BF = self.part(F.body()), F.GetFixedPoseInBodyFrame()
                frames.append(self._frame(part.name, part.X_LB @ X_BF))
            self._bushing(frames, bushing_constants(bushing))
        return self.root

    def joined_frames(self) -> dict[str, list]:
        """Pairs of links, which it adds, that meet where loops are closed."""
        pairs = []
        for number, (loop, *points) in enumerate(self.robot.model.balls(self.plant)):
            pair = [f"{loop.name}_{number}{end}" for end in "AB"]
            for name, body, p in zip(pair, (loop.body_A, loop.body_B), points):
                part = self.part(body)
                add(self.root, "link", name=name)
                X_LP = part.X_LB @ RigidTransform(p)
                self._joint(f"{name}_fixed", "fixed", part.name, name, X_LP)
            pairs.append(pair)
        motors = [written_name(x.joint()) for x in actuators_of(self.plant)]
        return {
            "closed_loop": pairs,
            "type": ["3d"] * len(pairs),
            "name_mot": motors if pairs else [],
        }

    # --- links and joints ---------------------------------------------------

    def _link(self, part: Part) -> None:
        link = add(self.root, "link", name=part.name)
        X_LB = part.X_LB
        mass, p_BC, I_C = part.inertia()
        if mass and part.parent is not None:
            R = X_LB.rotation().matrix()
            write_inertial(link, mass, R @ I_C @ R.T, X_LB @ p_BC)
        for form in part.forms:
            self._form(link, form, X_LB @ form.X_BG)

    def _form(self, link: ET.Element, form: Form, X_LG: RigidTransform) -> None:
        """Adds a visual or a collision to a link."""
        kind, size = form.kind, shape_sizes(form.shape)
        role = "collision" if form.rgba is None else "visual"
        element = add(link, role, name=form.name)
        add(element, "origin", **_pose(X_LG))
        geometry = add(element, "geometry")
        if kind == "box":
            add(geometry, "box", size=size)
        elif kind in ("sphere", "cylinder", "capsule"):
            add(geometry, kind, **dict(zip(("radius", "length"), size)))
        elif kind in ("ellipsoid", "mesh"):
            file = form.mesh or copy_sphere(self.path)
            add(geometry, "mesh", filename=file, scale=size)
        else:
            raise InvalidInput(f"shape {form.name!r}: URDF has no {kind}; use a box")
        if form.rgba is None:
            contact = add(element, "drake:proximity_properties")
            for name in ("drake:mu_dynamic", "drake:mu_static"):
                add(contact, name, value=form.friction)
        else:
            material = add(element, "material", name=f"{form.name}_colour")
            add(material, "color", rgba=form.rgba)

    def _joints(self, part: Part) -> None:
        """The chain of joints from a part's parent to its link."""
        X_LF = part.parent.X_LB @ part.X_PF
        parent = part.parent.name
        if not part.steps:
            X = part.parent.X_LB @ part.X_PB
            self._joint(written_name(part.joint), "fixed", parent, part.name, X)
            return
        *between, last = part.steps
        for step in (*between, last):
            child = part.name if step is last else f"{part.name}_{step.name}"
            if step is not last:
                add(self.root, "link", name=child)
            kind = "prismatic" if step.slides else "revolute"
            lower, upper = step.limits
            if not step.slides and not np.isfinite(step.limits).any():
                kind = "continuous"
            joint = self._joint(step.name, kind, parent, child, X_LF)
            add(joint, "axis", xyz=step.axis)
            add(joint, "dynamics", damping=step.damping, friction="0.0")
            fastest = min(part.joint.velocity_upper_limits()[step.index], _UNLIMITED)
            # Drake reads an effort of 0 as no motor.
            effort = self.efforts.get(part.joint.index(), 0.0)
            limit = add(joint, "limit", effort=effort, velocity=fastest)
            if kind != "continuous":
                limit.set("lower", written(max(lower, -_UNLIMITED)))
                limit.set("upper", written(min(upper, _UNLIMITED)))
            if step.stiffness:
                self._spring(step, parent, X_LF, child)
            parent, X_LF = child, RigidTransform()

    def _joint(self, name, kind, parent, child, X) -> ET.Element:
        joint = add(self.root, "joint", name=name, type=kind)
        add(joint, "origin", **_pose(X))
        add(joint, "parent", link=parent)
        add(joint, "child", link=child)
        return joint

    def _couplers(self) -> None:
        joints = {joint.get("name"): joint for joint in self.root.iter("joint")}
        for coupler in self.robot.model.couplers:
            follower, leader = coupled_joints(self.plant, coupler)
            says = {"multiplier": coupler.gear, "offset": coupler.offset}
            own, other = written_name(follower), written_name(leader)
            add(joints[own], "mimic", joint=other, **says)

    def _transmissions(self) -> None:
        """Adds the actuators as transmissions, with Drake's rotors and gains."""
        for actuator in actuators_of(self.plant):
            name = written_name(actuator)
            element = add(self.root, "transmission", name=f"{name}_transmission")
            add(element, "type", "transmission_interface/SimpleTransmission")
            joint = add(element, "joint", name=written_name(actuator.joint()))
            interface = "hardware_interface/EffortJointInterface"
            add(joint, "hardwareInterface", interface)
            motor = add(element, "actuator", name=name)
            add(motor, "mechanicalReduction", "1")
            if inertia := actuator.default_rotor_inertia():
                add(motor, "drake:gear_ratio", value=actuator.default_gear_ratio())
                add(motor, "drake:rotor_inertia", value=inertia)
            if actuator.has_controller():
                gains = actuator.get_controller_gains()
                add(motor, "drake:controller_gains", p=gains.p, d=gains.d)

    # --- Drake's extension --------------------------------------------------

    def _filters(self) -> None:
        groups, tag = {}, "drake:{}collision_filter_group"
        for one, other in filtered_pairs(self.robot, self.parts):
            for part in (one, other):
                if part.name not in groups:
                    group = add(self.root, tag.format(""), name=part.name)
                    add(group, "drake:member", link=part.name)
                    groups[part.name] = group
            add(groups[one.name], tag.format("ignored_"), name=other.name)

    def _frame(self, link: str, X: RigidTransform) -> str:
        self.frames += 1
        name = f"{link}_frame_{self.frames}"
        add(self.root, "frame", name=name, link=link, **_pose(X))
        return name

    def _spring(self, step: Step, parent: str, X_PF: RigidTransform, child: str):
        """A joint's spring, as a bushing that gives about or along the joint's axis."""
        R = RotationMatrix.MakeFromOneVector(step.axis, 0)
        turned = RotationMatrix.MakeXRotation(step.rest)
        moved = RigidTransform([step.rest, 0, 0] if step.slides else turned)
        rest = RigidTransform(R) @ moved
        law = "force_stiffness" if step.slides else "torque_stiffness"
        constants = dict.fromkeys(BUSHING, np.zeros(3))
        constants |= {law: np.array([step.stiffness, 0, 0])}
        first = self._frame(parent, X_PF @ rest)
        frames = [first, self._frame(child, RigidTransform(R))]
        self._bushing(frames, constants)

    def _bushing(self, frames: list[str], constants: dict[str, np.ndarray]) -> None:
        element = add(self.root, "drake:linear_bushing_rpy")
        for end, frame in zip("AC", frames):
            add(element, f"drake:bushing_frame{end}", name=frame)
        for name, value in constants.items():
            add(element, f"drake:bushing_{name}", value=value)


def _pose(X: RigidTransform) -> dict[str, np.ndarray]:
    return {"xyz": X.translation(), "rpy": RollPitchYaw(X.rotation()).vector()}
