"""Reads URDF files with the tags of the old Drake of MATLAB (before 2017).

Such files have closed loops (`<loop_joint>`), springs (`<force_element>`), numbers such
as "-pi/4" or "0 7.58, -11.35", and point feet (spheres of radius zero). Drake's own
parser refuses most of these and silently ignores the springs. The reader turns a file
into SDF for Drake and a table of loops and feet, and refuses what it does not know.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
from pydrake.math import RollPitchYaw
from pydrake.multibody.plant import AddMultibodyPlantSceneGraph
from pydrake.systems.framework import DiagramBuilder

from drakebots.core.errors import ModelProblem
from drakebots.core.units import SI, Scaling
from drakebots.formats.read.findings import words
from drakebots.formats.read.old_urdf_links import LinkReader, origin, pose
from drakebots.formats.read.strict_xml import Element, read_xml
from drakebots.formats.read.tree import HINGES, SINGLE, closing_joints, link_at
from drakebots.formats.write.sdf import SdfJoint, SdfModel, model_sdf
from drakebots.model import Loop, Point, Reading, parse_model

NAMESPACE = "http://drake.mit.edu"
_OLD = ("xmlns", NAMESPACE)


def is_old_urdf(path: str | Path) -> bool:
    """Whether a file is a URDF that needs :func:`read_old_urdf`.

    Such a file has a loop joint, a force element, or the default namespace of old
    Drake. False for files that cannot be read or are no URDF; never raises.
    """
    try:
        root = read_xml(path)
    except ModelProblem:
        return False
    is_old = root.get("xmlns") == NAMESPACE
    tags = ("loop_joint", "force_element")
    return root.tag == "robot" and (is_old or any(e.tag in tags for e in root.iter()))


def _axis(joint: Element, still: bool = False) -> np.ndarray:
    """The unit vector (3,) of the child `<axis>`, x where missing."""
    axis = joint.part("axis", needed=False)
    value = axis.numbers("xyz", 3, [1, 0, 0])
    norm = np.linalg.norm(value)
    if norm < 1e-9 and not still:
        raise axis.problem(
            f"the axis of {joint.get('name')!r} is zero; give it a direction"
        )
    return value / max(norm, 1e-9)


def read_old_urdf(path: str | Path, *, units: Scaling = SI) -> Reading:
    """Reads a URDF with old Drake tags.

    Args:
        path: the file; its meshes are relative to it.
        units: the units of the file's numbers, e.g.
            :data:`~drakebots.core.units.MM_G_MS`; angles are always in radians.

    Returns:
        SDF 1.9 text in SI, which Drake has loaded once, and parses strictly too: joints
        with springs, damping and limits, actuators named by their joints, in the order
        of the joints. The `<loop_joint>` tags are loops, hinges that the text does not
        close. Every collision sphere of radius zero is a foot, named by its link, with
        the suffix _0, _1, ... where a link has several.

    Raises:
        ModelProblem: for a file that cannot be read, an unknown tag or
            attribute, an invalid number, or a model that is not physical;
            one line with the element, its line in the file and the remedy.
    """
    return _Reader(Path(path), units).read()


class _Reader(LinkReader):
    """Reads one file.

    Attributes:
        model: the model as read, in SI.
        loops: its loop joints.
    """

    def __init__(self, path: Path, units: Scaling):
        super().__init__(path, units)
        self.model = SdfModel("", self.links)
        self.loops: list[Loop] = []
        self.taken: dict[str, int] = {}  # lines of the names of links, joints, frames
        self.kinds: dict[str, str] = {}  # of joints, floating and loop joints included
        self.parents: dict[str, str] = {}  # of links, floating ones included

    def read(self) -> Reading:
        root = read_xml(self.path)
        if root.tag != "robot":
            raise root.problem("the first tag must be <robot>; give a URDF file")
        for key in [k for k, v in root.items() if ":" in k or (k, v) == _OLD]:
            del root.attrib[key]  # xsi:schemaLocation
        root.check(words("old_urdf"))
        self.model.name = root.name()
        for element in root.iter():
            if element.stray and element.tag not in ("mechanicalReduction", "type"):
                self.note(element, f"stray text {element.stray!r} ignored")
            if element.tag == "material":
                self.read_color(element)
        for tag, read in (
            ("link", self.read_link),
            ("joint", self._read_joint),
            ("loop_joint", self._read_loop),
            ("frame", self._read_frame),
            ("force_element", self._read_force),
            ("transmission", self._read_transmission),
        ):
            for element in root.findall(tag):
                if tag != "transmission" or "name" in element.attrib:
                    self._take_name(element)
                read(element)
            if tag == "joint":
                self._check_tree(root)
        self._note_order(root)
        feet = tuple(Point(name, body, p) for name, (body, p) in self.feet.items())
        said = {"notes": tuple(self.notes), "loops": tuple(self.loops), "feet": feet}
        reading = Reading(model_sdf(self.model), kind="old Drake", **said)
        # So that refusals and warnings of Drake name this file.
        said: list[str] = []
        plant, _ = AddMultibodyPlantSceneGraph(DiagramBuilder(), 0.0)
        parse_model(plant, self.path, reading, said)
        if said:
            raise ModelProblem(self.path, f"Drake warns of it: {said[0]}; correct it")
        return reading

    def _take_name(self, element: Element) -> None:
        """Checks the name of an element, which must be new.

        Forces and transmissions, which the SDF does not name, have their own names; old
        Drake takes forces of one name.
        """
        tag, is_force = element.tag, element.tag == "force_element"
        given = element.get("name", "") if is_force else element.name()
        name = f"{tag} {given}" if is_force or tag == "transmission" else given
        line = self.taken.get(name)
        self.taken.setdefault(name, element.line)
        if line is not None and is_force and given:
            self.note(element, f"its name is that of line {line} too; both act")
        elif line is not None and not is_force:
            raise element.problem(
                f"the name is taken by line {line}; SDF needs another for "
                "every link, joint and frame, so rename one"
            )

    def _link_name(self, element: Element) -> str:
        """The attribute `link`, which must name a link or the world."""
        name = element.given("link")
        if name != "world" and name not in self.links:
            raise element.problem(
                f"there is no link {name!r}; correct link, or add the link"
            )
        return name

    def _read_frame(self, element: Element) -> None:
        """Reads a `<frame>` into `model`."""
        link = self._link_name(element)
        self.model.frames.append((element.name(), link, pose(element, self.units)))

    def _read_joint(self, element: Element) -> None:
        """Reads a `<joint>` into `model`, and the pose of its child."""
        name, kind = element.name(), element.given("type")
        if kind not in (*SINGLE, "fixed", "floating"):
            raise element.problem(
                f"unknown joint type {kind!r}; choose one of: "
                f"{', '.join(SINGLE)}, fixed, floating"
            )
        ends = [element.part(tag) for tag in ("parent", "child")]
        parent, child = map(self._link_name, ends)
        if child == "world" or child == parent:
            raise element.problem(f"{child!r} cannot be its child; correct it")
        if child in self.parents:
            raise element.problem(
                f"link {child!r} is the child of a second joint; write one of the "
                "joints as a <loop_joint>"
            )
        self.parents[child], self.kinds[name] = parent, kind
        link = self.links[child]
        link.pose = origin(element, self.units)
        link.relative_to = None if parent == "world" else parent
        if kind == "floating":
            self.note(element, f"floating joint {name!r}: {child!r} is a free body")
        joint = SdfJoint(name, kind, parent, child, _axis(element, kind not in SINGLE))
        self._read_limit(element, joint)
        self._read_dynamics(element, joint)
        if kind != "floating":
            self.model.joints[name] = joint

    def _read_limit(self, element: Element, joint: SdfJoint) -> None:
        limit = element.part("limit", needed=False)
        slides = joint.type == "prismatic"
        length = self.units.length if slides else 1.0
        force = self.units.force if slides else self.units.torque
        for key, read, unit in (
            ("lower", limit.number, length),
            ("upper", limit.number, length),
            ("velocity", limit.not_negative, length / self.units.time),
            ("effort", limit.not_negative, force),
        ):
            if key in limit.attrib:
                joint.limit[key] = read(key) * unit
        lower, upper = map(joint.limit.get, ("lower", "upper"))
        if lower is not None and upper is not None and lower > upper:
            raise limit.problem(
                f"lower exceeds upper in joint {joint.name!r}; swap them"
            )
        if joint.type == "continuous" and (lower, upper) != (None, None):
            self.note(limit, f"continuous joint {joint.name!r} keeps its limits")
            joint.type = "revolute"

    def _read_dynamics(self, element: Element, joint: SdfJoint) -> None:
        dynamics, units = element.part("dynamics", needed=False), self.units
        unit = units.torque * units.time
        if joint.type == "prismatic":
            unit = units.of(mass=1, time=-1)
        joint.damping = dynamics.not_negative("damping", 0.0) * unit
        for key in ("friction", "coulomb_window"):
            if dynamics.not_negative(key, 0.0) > 0:
                self.note(dynamics, f"{key} of joint {joint.name!r} ignored")

    def _check_tree(self, root: Element) -> None:
        """Raises unless the joints make one tree of all links."""
        if not self.links:
            raise root.problem("has no <link>; add one")
        for joint in closing_joints(root):
            raise joint.problem(
                f"the joints make a cycle through link {link_at(joint, 'child')!r}; "
                "write one of them as a <loop_joint>"
            )
        roots = [name for name in self.links if name not in self.parents]
        if "world" in self.parents.values():
            roots.append("world")
        if len(roots) > 1:
            raise root.problem(
                f"has {len(roots)} roots: {', '.join(roots[:5])}; join them by joints"
            )

    def _read_loop(self, element: Element) -> None:
        name, kind = element.name(), element.given("type")
        if kind not in ("continuous", "revolute"):
            raise element.problem(
                f"loop joint type {kind!r} is not supported; use continuous (a hinge)"
            )
        self.kinds[name], axis = "a loop joint", _axis(element)
        bodies, poses = self._two_ends(element)
        rotations = [RollPitchYaw(X.rpy).ToRotationMatrix().matrix() for X in poses]
        points, axes = [X.p for X in poses], [R @ axis for R in rotations]
        self.loops.append(Loop(name, *bodies, *points, *axes))

    def _two_ends(self, element: Element):
        """The links that an element joins, and the poses of the joint in them."""
        ends = [element.part(tag) for tag in ("link1", "link2")]
        bodies = [self._link_name(end) for end in ends]
        if bodies[0] == bodies[1]:
            raise element.problem(f"joins link {bodies[0]!r} to itself; correct it")
        return bodies, [pose(end, self.units) for end in ends]

    def _moving_joint(self, element: Element, kinds: tuple[str, ...]) -> SdfJoint:
        child = element.part("joint")
        name = child.given("name")
        kind = self.kinds.get(name)
        if kind not in kinds:
            what = f"is {kind}" if kind else "does not exist"
            raise child.problem(
                f"joint {name!r} {what}; <{element.tag}> needs one that is "
                f"{' or '.join(kinds)}"
            )
        return self.model.joints[name]

    def _read_force(self, element: Element) -> None:
        if len(element) != 1:
            raise element.problem(f"has {len(element)} forces; give it one")
        force = element[0]
        if force.tag == "linear_spring_damper":
            self._read_spring_damper(force)
        elif force.tag == "torsional_spring":
            self._add_spring(force, HINGES, "rest_angle", self.units.torque, 1.0)
        else:
            unit, length = self.units.of(mass=1, time=-2), self.units.length
            self._add_spring(force, ("prismatic",), "rest_length", unit, length)

    def _add_spring(self, spring, kinds, rest_key, unit, rest_unit) -> None:
        """Adds a spring to its joint; several of one joint act as one.

        The sum of k_i (q - r_i) is k (q - r) with k = sum k_i, k r = sum k_i r_i.
        """
        joint = self._moving_joint(spring, kinds)
        rest = spring.number(rest_key, 0.0) * rest_unit
        stiffness = spring.not_negative("stiffness") * unit
        total = joint.stiffness + stiffness
        if joint.reference is None or not total:
            joint.reference = rest
        elif joint.reference != rest:
            moment = joint.stiffness * joint.reference + stiffness * rest
            joint.reference = moment / total
        joint.stiffness = total

    def _read_spring_damper(self, element: Element) -> None:
        (body_A, body_B), (A, B) = self._two_ends(element)
        units = self.units
        length = element.positive("rest_length") * units.length
        stiffness = element.not_negative("stiffness") * units.of(mass=1, time=-2)
        damping = element.not_negative("damping", 0.0) * units.of(mass=1, time=-1)
        spring = {"body_A": body_A, "p_AP": A.p, "body_B": body_B, "p_BQ": B.p}
        spring |= {"free_length": length, "stiffness": stiffness, "damping": damping}
        self.model.elements.append(("linear_spring_damper", spring))

    def _read_transmission(self, element: Element) -> None:
        kind = element.get("type")
        if kind is None:
            kind = element.part("type").stray
        if kind.rpartition("/")[2] != "SimpleTransmission":
            raise element.problem(
                f"unknown transmission type {kind!r}; use SimpleTransmission"
            )
        element.part("actuator")
        joint = self._moving_joint(element, SINGLE)
        reduction = element.part("mechanicalReduction", needed=False)
        reduction.set("value", reduction.stray)
        name = joint.name
        if reduction in list(element) and reduction.number("value") != 1:
            what = f"the reduction of joint {name!r}"
            raise reduction.problem(f"{what} must be 1; scale the input")
        if joint.actuated:
            raise element.problem(f"joint {name!r} has a second transmission; keep one")
        if joint.limit.get("effort") == 0:
            what = f"joint {name!r} has effort limit 0"
            raise element.problem(f"{what}; raise it, or leave it out")
        joint.actuated = True

    def _note_order(self, root: Element) -> None:
        driven = [j.get("name") for j in root.findall("transmission/joint")]
        order = [name for name, joint in self.model.joints.items() if joint.actuated]
        if driven != order:
            self.notes.append(
                "actuators are in the order of the joints, not of the transmissions: "
                + ", ".join(order)
            )
