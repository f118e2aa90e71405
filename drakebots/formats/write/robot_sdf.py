"""Writes a model as SDF, for Drake, Gazebo and whoever else reads it.

Links keep their frames. A joint of several degrees of freedom becomes several joints,
with massless links between, which Gazebo may refuse. Springs, limits and dampings of
joints are SDF's own. Loops, joints that follow others, bushings, springs between
points, rotors, gains of servos, friction and links that do not collide are in Drake's
tags, which other tools pass over.
"""

from __future__ import annotations

import warnings
from pathlib import Path

import numpy as np
from pydrake.math import RigidTransform
from pydrake.multibody.tree import LinearBushingRollPitchYaw

from drakebots.core.errors import DrakebotsWarning, some
from drakebots.core.files import write_text
from drakebots.formats.read.tree import free_name
from drakebots.formats.write.parts import (
    Form,
    Part,
    Step,
    Writer,
    bushing_constants,
    filtered_pairs,
    opened,
    write_beside,
    written_name,
)
from drakebots.formats.write.sdf import (
    SdfFilter,
    SdfGeometry,
    SdfJoint,
    SdfLink,
    SdfModel,
    SdfPose,
    model_sdf,
)
from drakebots.model import (
    Coupler,
    Model,
    actuators_of,
    coupled_joints,
    force_elements,
    shape_sizes,
)
from drakebots.multibody import Robot

_SIZES = {
    "box": ("size",),
    "sphere": ("radius",),
    "cylinder": ("radius", "length"),
    "capsule": ("radius", "length"),
    "ellipsoid": ("radii",),
    "mesh": ("scale",),
}
"""Names of a shape's sizes in SDF; a name that is alone has all of them."""


def write_sdf(model: Model | str | Path, path: str | Path) -> Path:
    """Writes a model as SDF, its meshes as .obj into `meshes/` beside it.

    Feet, named points and loops go into the `.drakebots.yaml` beside it. In SDF motors
    have the names of their joints, and joints none that a link has: such a joint gets
    another one, with a warning.

    Args:
        model: as for :func:`drakebots.load`.
        path: file to write (.sdf), in a folder that exists.

    Returns:
        The path.

    Raises:
        FileProblem: for another ending, or a file that cannot be written.
    """
    path = Path(path)
    writer = _Writer(*opened(model, path, (".sdf",)))
    write_text(path, model_sdf(writer.model()))
    write_beside(path, {".drakebots.yaml": writer.description()})
    return path


class _Writer(Writer):
    """Makes a model of SDF of the parts of a robot."""

    def __init__(self, robot: Robot, parts: list[Part]):
        super().__init__(robot, parts)
        self.sdf = SdfModel(robot.model.name)
        self.motors = {x.joint().index(): x for x in actuators_of(self.plant)}
        self.taken = {part.name for part in parts}
        self.joints: dict[str, str] = {}

    def model(self) -> SdfModel:
        """The whole robot."""
        world, *parts = self.parts
        if world.forms:
            name = self._own("surroundings")
            self._link(world, name, "world", RigidTransform())
            self._weld("world", name)
        for part in parts:
            self._part(part)
        for coupler in self.robot.model.couplers:
            ends = coupled_joints(self.plant, coupler)
            follower, leader = (self.joints[written_name(joint)] for joint in ends)
            law = Coupler(follower, leader, coupler.gear, coupler.offset)
            self.sdf.joints[follower].coupler = law
        self._elements()
        groups: dict[str, list[str]] = {}
        for one, other in filtered_pairs(self.robot, self.parts):
            groups.setdefault(one.name, []).append(other.name)
            groups.setdefault(other.name, [])
        names = {link: self._own(f"{link}_contacts") for link in groups}
        for link, ignored in groups.items():
            others = tuple(names[other] for other in ignored)
            self.sdf.filters.append(SdfFilter(names[link], (link,), others))
        if renamed := [f"{a} -> {b}" for a, b in self.joints.items() if a != b]:
            line = f"joints have other names in SDF: {some(renamed)}"
            warnings.warn(line, DrakebotsWarning, stacklevel=3)
        return self.sdf

    def _own(self, name: str) -> str:
        """The name, or one like it that nothing else of the model has."""
        own = free_name(name, self.taken)
        self.taken.add(own)
        return own

    # --- links and joints ---------------------------------------------------

    def _part(self, part: Part) -> None:
        """A part's link, and the joints that carry it."""
        parent = "world" if part.parent is self.parts[0] else part.parent.name
        X = part.X_PB
        for step in part.steps:
            child = part.name
            if step is not part.steps[-1]:
                child = self._own(f"{part.name}_{step.name}")
                self.sdf.place(SdfLink(child), parent, X)
            else:
                self._link(part, child, parent, X)
            self._joint(part, step, parent, child)
            parent, X = child, RigidTransform()
        if not part.steps:
            self._link(part, part.name, parent, X)
            if not part.is_free:
                self._weld(parent, part.name)

    def _link(self, part: Part, name: str, parent: str, X: RigidTransform) -> None:
        link = SdfLink(name)
        if part.parent is not None:
            link.mass, p_BC, link.inertia = part.inertia()
            link.com = SdfPose(p_BC)
        link.geometries = [self._shape(form) for form in part.forms]
        self.sdf.place(link, parent, X)

    def _shape(self, form: Form) -> SdfGeometry:
        sizes, names = shape_sizes(form.shape), _SIZES.get(form.kind, ())
        values: dict[str, object] = dict(
            zip(names, sizes if len(names) > 1 else [sizes])
        )
        tag, is_drawn = form.kind, form.rgba is not None
        if form.mesh is not None:
            values["uri"] = form.mesh
        if tag == "halfspace":
            tag, values = "plane", {"normal": [0.0, 0.0, 1.0]}
        return SdfGeometry(
            "visual" if is_drawn else "collision",
            form.name,
            SdfPose.of(form.X_BG),
            tag,
            values,
            form.rgba,
            None if is_drawn else form.friction,
        )

    def _weld(self, parent: str, child: str) -> None:
        name = self._own(f"{child}_weld")
        self.sdf.joints[name] = SdfJoint(name, "fixed", parent, child)

    def _joint(self, part: Part, step: Step, parent: str, child: str) -> None:
        name = self.joints[step.name] = self._own(step.name)
        kind = "prismatic" if step.slides else "revolute"
        joint = SdfJoint(name, kind, parent, child, damping=step.damping)
        joint.axis = part.X_BM.rotation() @ step.axis
        joint.p_CJ = part.X_BM.translation()
        joint.rotor_inertia = step.armature
        if step.stiffness:
            joint.stiffness, joint.reference = step.stiffness, step.rest
        lower, upper = step.limits
        limits = {"lower": lower, "upper": upper}
        limits["velocity"] = part.joint.velocity_upper_limits()[step.index]
        if (motor := self.motors.get(part.joint.index())) is not None:
            joint.actuated = True
            limits["effort"] = motor.effort_limit()
            if motor.has_controller():
                gains = motor.get_controller_gains()
                joint.gain, joint.rate_gain = gains.p, gains.d
        joint.limit = {key: x for key, x in limits.items() if np.isfinite(x)}
        self.sdf.joints[name] = joint

    # --- what is between links ----------------------------------------------

    def _elements(self) -> None:
        """Loops, springs between points, and bushings."""
        self.sdf.elements += self.between_points()
        for bushing in force_elements(self.plant, LinearBushingRollPitchYaw):
            says = {}
            for end, F in (("frameA", bushing.frameA()), ("frameC", bushing.frameC())):
                says[end] = self._own(f"bushing_{end}")
                link, X = self.part(F.body()).name, F.GetFixedPoseInBodyFrame()
                self.sdf.frames.append((says[end], link, SdfPose.of(X)))
            says |= bushing_constants(bushing)
            self.sdf.elements.append(("linear_bushing_rpy", says))
