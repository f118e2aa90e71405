"""Turns URDFs of the old Drake of MATLAB (before 2017) into SDF.

Such a file says what URDF has no word for: loops (`<loop_joint>`), springs
(`<force_element>`), point feet (spheres of radius zero). Its numbers may be in units of
their own. All else in it is read and mended as in any URDF; then the tree becomes an
SDF in SI, whose joints have springs, and a table of loops and feet.
"""

from __future__ import annotations

import xml.etree.ElementTree as ET
from collections.abc import Iterator
from dataclasses import replace

import numpy as np
from pydrake.math import RollPitchYaw, RotationMatrix

from drakebots.core.units import Scaling
from drakebots.formats.read.findings import Findings
from drakebots.formats.read.masses import WORLD, matrix_of, principal_inertia
from drakebots.formats.read.meshes import SIZES
from drakebots.formats.read.tree import (
    HINGES,
    MOMENTS,
    SINGLE,
    floats,
    joint_elements,
    link_at,
    named_file,
    remove,
)
from drakebots.formats.read.urdf import number, repair_numbers
from drakebots.formats.write.sdf import (
    SdfGeometry,
    SdfJoint,
    SdfLink,
    SdfModel,
    SdfPose,
    model_sdf,
)
from drakebots.model import Coupler, Loop, Point, Reading

NAMESPACE = "http://drake.mit.edu"
OLD_TAGS = ("loop_joint", "force_element")

FOOT_RADIUS = 1e-9
"""Radius of the sphere that stands for a point foot [m]; libsdformat reads a
radius of zero as 1 m."""


def is_old_urdf(root: ET.Element) -> bool:
    """Whether a URDF has a loop joint, a force element, or old Drake's namespace."""
    is_old = root.get("xmlns") == NAMESPACE
    return is_old or any(root.find(tag) is not None for tag in OLD_TAGS)


def take_old_parts(root: ET.Element, findings: Findings) -> list[ET.Element]:
    """Takes the parts out of a URDF that only old Drake knows, their numbers mended."""
    parts = [element for element in root if element.tag in OLD_TAGS]
    remove(root, parts)
    root.attrib.pop("xmlns", None)
    alone = ET.Element("robot")
    alone.extend(parts)
    repair_numbers(alone, findings)
    return parts


def old_urdf_reading(
    root: ET.Element,
    parts: list[ET.Element],
    loops: tuple[Loop, ...],
    units: Scaling,
    findings: Findings,
) -> Reading:
    """SDF text in SI, with loops, couplers and feet, of an old URDF.

    Joints keep their order, and actuators are named by their joints. Every collision
    sphere of radius zero is a foot, named by its link, with the suffix _0, _1, ...
    where a link has several.

    Args:
        root: its <robot>, mended.
        parts: of :func:`take_old_parts`.
        loops: that were cut out of the tree, in the file's units.
        units: of the file's numbers; angles are in radians.
        findings: takes parts that refer to nothing as problems.
    """
    for element in root.iter():
        if element.tag.startswith("drake:") and element.tag != "drake:joint":
            findings.note("not read in a URDF of old Drake", f"<{element.tag}>")
    robot = _Robot(root, units, findings)
    for part in parts:
        robot.read_force(part) if part.tag == "force_element" else robot.read_loop(part)
    L = units.length
    cut = (replace(loop, p_AP=L * loop.p_AP, p_BQ=L * loop.p_BQ) for loop in loops)
    joints = robot.model.joints.values()
    order = [joint.name for joint in joints if joint.actuated]
    if order != robot.driven:
        line = "actuators are in the order of the joints, not of the transmissions"
        findings.note(line, ", ".join(order))
    return Reading(
        model_sdf(robot.model),
        loops=(*robot.loops, *cut),
        couplers=tuple(joint.coupler for joint in joints if joint.coupler),
        feet=tuple(robot.feet()),
        kind="old Drake",
    )


def _numbers(element: ET.Element | None, key: str, default: str) -> np.ndarray:
    text = default if element is None else element.get(key, default)
    return np.array(floats(text.replace(",", " ")) or [])


class _Robot:
    """The model of a file, in SI, and its loops."""

    def __init__(self, root: ET.Element, units: Scaling, findings: Findings):
        self.units, self.findings = units, findings
        self.model, self.loops = SdfModel(root.get("name", "")), list[Loop]()
        self.driven = list(self._driven(root))
        named = [m for m in root.iter("material") if m.find("color") is not None]
        # Of several colors of a name the first counts.
        self.colors = {m.get("name"): m.find("color") for m in reversed(named)}
        for link in root.findall("link"):
            if link.get("name") != WORLD:
                self._read_link(link)
        for joint in joint_elements(root):
            self._read_joint(joint)
        for frame in root.findall("frame"):
            place = frame.get("name", ""), frame.get("link", ""), self._pose(frame)
            self.model.frames.append(place)

    def _driven(self, root: ET.Element) -> Iterator[str]:
        """The joints with motors, in the order of the transmissions."""
        for element in root.findall("transmission"):
            joint = element.find("joint")
            name = "" if joint is None else joint.get("name", "")
            kind = element.get("type") or element.findtext("type", "").strip()
            if kind.rpartition("/")[2] != "SimpleTransmission":
                line = "a <transmission> that is no SimpleTransmission is left out"
                self.findings.note(line, name)
                continue
            if floats(element.findtext("mechanicalReduction", "1")) != [1.0]:
                self.findings.note("Drake ignores <mechanicalReduction>", name)
            yield name

    def _pose(self, element: ET.Element | None) -> SdfPose:
        p, rpy = (_numbers(element, key, "0 0 0") for key in ("xyz", "rpy"))
        return SdfPose(p * self.units.length, rpy)

    # --- links --------------------------------------------------------------

    def _read_link(self, element: ET.Element) -> None:
        mass = _numbers(element.find("inertial/mass"), "value", "0")[0]
        tensor = element.find("inertial/inertia")
        I_C = matrix_of([_numbers(tensor, key, "0")[0] for key in MOMENTS])
        # libsdformat's principal moments of a full matrix are good to 1e-8 only.
        moments, axes = principal_inertia(I_C)
        com = self._pose(element.find("inertial/origin"))
        R = RollPitchYaw(com.rpy).ToRotationMatrix() @ RotationMatrix(axes)
        com = SdfPose(com.p, RollPitchYaw(R).vector())
        shapes = [x for x in element if x.tag in ("visual", "collision")]
        name = element.get("name", "")
        self.model.links[name] = SdfLink(
            name,
            mass * self.units.mass,
            com,
            np.diag(moments) * self.units.inertia,
            [self._shape(x, f"{name}_{x.tag}_{k}") for k, x in enumerate(shapes)],
        )

    def _shape(self, element: ET.Element, name: str) -> SdfGeometry:
        holder, material = element.find("geometry"), element.find("material")
        shape, unit, rgba = holder[0], self.units.length, None
        tag = shape.tag.removeprefix("drake:")
        if tag == "mesh":
            scale = np.broadcast_to(_numbers(shape, "scale", "1") * unit, 3)
            values = {"uri": named_file(shape), "scale": scale}
        else:
            keys = SIZES.get(tag, ("radius",))
            values = {key: _numbers(shape, key, "") * unit for key in keys}
            if not all(x.size and (x >= 0).all() for x in values.values()):
                self.findings.problem(
                    f"{name}: a <{shape.tag}> needs {', '.join(keys)}, none below 0"
                )
        if tag == "sphere":
            values["radius"] = np.maximum(values["radius"], FOOT_RADIUS)
        if material is not None and element.tag == "visual":
            color = material.find("color")
            color = self.colors.get(material.get("name")) if color is None else color
            rgba = None if color is None else _numbers(color, "rgba", "")
        pose = self._pose(element.find("origin"))
        return SdfGeometry(element.tag, name, pose, tag, values, rgba)

    def feet(self) -> Iterator[Point]:
        """The points of collision spheres without a radius."""
        for link in self.model.links.values():
            points = [
                shape.pose.p
                for shape in link.geometries
                if (shape.kind, shape.shape) == ("collision", "sphere")
                and shape.values["radius"] == FOOT_RADIUS
            ]
            for k, p in enumerate(points):
                yield Point(link.name + f"_{k}" * (len(points) > 1), link.name, p)

    # --- joints -------------------------------------------------------------

    def _read_joint(self, element: ET.Element) -> None:
        name, kind = element.get("name", ""), element.get("type", "")
        parent, child = (link_at(element, end) for end in ("parent", "child"))
        link = self.model.links.get(child)
        if link is None:
            self.findings.problem(f"joint {name!r}: {child!r} cannot be its child")
            return
        link.pose = self._pose(element.find("origin"))
        link.relative_to = None if parent == WORLD else parent
        if kind == "floating":
            self.findings.note("a floating joint leaves its link free", name)
            return
        if kind not in (*SINGLE, "fixed"):
            self.findings.problem(
                f"joint {name!r}: old Drake has no {kind!r} joint; use a hinge or slide"
            )
        units, slides = self.units, kind == "prismatic"
        length = units.length if slides else 1.0
        force = units.force if slides else units.torque
        limit, dynamics = element.find("limit"), element.find("dynamics")
        known = {"lower": length, "upper": length, "velocity": length / units.time}
        limits = {
            key: float(_numbers(limit, key, "")[0]) * unit
            for key, unit in (known | {"effort": force}).items()
            if limit is not None and key in limit.attrib
        }
        if limits.keys() & {"lower", "upper"} and kind == "continuous":
            kind = "revolute"
        if dynamics is not None and number(dynamics, "friction"):
            self.findings.note("Drake ignores joint friction", name)
        coupler = None
        if (mimic := element.find("mimic")) is not None:
            gear, offset = (float(mimic.get(k, d)) for k, d in _OF_MIMIC)
            coupler = Coupler(name, mimic.get("joint", ""), gear, offset * length)
        self.model.joints[name] = SdfJoint(
            *(
                name,
                kind,
                parent,
                child,
                _numbers(element.find("axis"), "xyz", "1 0 0"),
            ),
            damping=_numbers(dynamics, "damping", "0")[0] * force * units.time / length,
            limit=limits,
            actuated=name in self.driven,
            coupler=coupler,
        )

    # --- what only old Drake knows ------------------------------------------

    def read_loop(self, element: ET.Element) -> None:
        """Reads a <loop_joint>, a hinge between two links."""
        name, kind = element.get("name", ""), element.get("type")
        if kind not in HINGES:
            self.findings.problem(
                f"loop joint {name!r} has the type {kind!r}; use continuous (a hinge)"
            )
        axis = _numbers(element.find("axis"), "xyz", "1 0 0")
        if not axis.any():
            self.findings.problem(f"loop joint {name!r}: its axis is zero; give one")
            return
        bodies, poses = self._two_ends(element, f"loop joint {name!r}")
        axis = axis / np.linalg.norm(axis)
        rotations = [RollPitchYaw(X.rpy).ToRotationMatrix().matrix() for X in poses]
        points, axes = [X.p for X in poses], [R @ axis for R in rotations]
        self.loops.append(Loop(name, *bodies, *points, *axes))

    def _two_ends(self, element: ET.Element, what: str):
        """The links that an element joins, and its frames in them."""
        ends = [element.find(tag) for tag in ("link1", "link2")]
        bodies = ["" if end is None else end.get("link", "") for end in ends]
        for body in bodies:
            if body not in (WORLD, *self.model.links):
                self.findings.problem(f"{what}: there is no link {body!r}; correct it")
        if bodies[0] == bodies[1]:
            self.findings.problem(f"{what} joins {bodies[0]!r} to itself; correct it")
        return bodies, [self._pose(end) for end in ends]

    def read_force(self, element: ET.Element) -> None:
        """Reads a <force_element>: springs of a joint, or between two links."""
        units, per_length = self.units, self.units.of(mass=1, time=-2)
        for force in element:
            stiffness = _numbers(force, "stiffness", "0")[0]
            if stiffness < 0:
                self.findings.problem(
                    f"<{force.tag} stiffness> is negative; correct it"
                )
            if force.tag == "torsional_spring":
                rest = _numbers(force, "rest_angle", "0")[0]
                self._add_spring(force, HINGES, stiffness * units.torque, rest)
            elif force.tag == "prismatic_spring":
                rest = _numbers(force, "rest_length", "0")[0] * units.length
                self._add_spring(force, ("prismatic",), stiffness * per_length, rest)
            elif force.tag == "linear_spring_damper":
                bodies, (A, B) = self._two_ends(force, f"<{force.tag}>")
                damping = _numbers(force, "damping", "0")[0] * units.of(mass=1, time=-1)
                length = _numbers(force, "rest_length", "0")[0] * units.length
                spring = {"body_A": bodies[0], "p_AP": A.p, "body_B": bodies[1]}
                spring |= {"p_BQ": B.p, "free_length": length, "damping": damping}
                spring |= {"stiffness": stiffness * per_length}
                self.model.elements.append((force.tag, spring))
            else:
                self.findings.note("a force of an unknown kind is left out", force.tag)

    def _add_spring(self, force, kinds, stiffness: float, rest: float) -> None:
        """Adds a spring to its joint; several of one joint act as one.

        The sum of k_i (q - r_i) is k (q - r) with k = sum k_i, k r = sum k_i r_i.
        """
        name = "" if force.find("joint") is None else force.find("joint").get("name")
        joint = self.model.joints.get(name)
        if joint is None or joint.type not in kinds:
            self.findings.problem(
                f"<{force.tag}> needs a joint that is {' or '.join(kinds)}, and "
                f"{name!r} is none; correct it"
            )
            return
        total = joint.stiffness + stiffness
        before = rest if joint.reference is None else joint.reference
        moment = joint.stiffness * before + stiffness * rest
        joint.reference = moment / total if total else rest
        joint.stiffness = total


_OF_MIMIC = ("multiplier", "1"), ("offset", "0")
