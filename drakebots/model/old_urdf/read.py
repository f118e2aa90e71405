"""Reads URDF files with the tags of the old Drake of MATLAB (before 2017).

Such files have closed loops (`<loop_joint>`), springs (`<force_element>`), numbers such
as "-pi/4" or "0 7.58, -11.35", and point feet (spheres of radius zero). Drake's own
parser refuses most of these and silently ignores the springs. The reader turns a file
into SDF for Drake and a table of loops and feet, and refuses what it does not know.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
from pydrake.geometry import SceneGraph
from pydrake.math import RollPitchYaw
from pydrake.multibody.parsing import Parser
from pydrake.multibody.plant import MultibodyPlant

from drakebots.core.errors import ModelProblem, one_line
from drakebots.core.units import SI, Scaling
from drakebots.model.loops import Loop
from drakebots.model.old_urdf.links import LinkReader, origin, pose
from drakebots.model.old_urdf.xml import Element, read_xml
from drakebots.model.sdf import SdfJoint, SdfModel, SdfSpringDamper, model_sdf

MOVING = ("revolute", "continuous", "prismatic")
"""The joint types with one coordinate."""

NAMESPACE = "http://drake.mit.edu"


@dataclass(frozen=True)
class OldUrdf:
    """A model read from an old URDF, in SI.

    Attributes:
        name: name of the robot.
        sdf: SDF 1.9 text, which Drake parses strictly too; joints with springs,
            damping and limits, and actuators named by their joints, in the order
            of the joints.
        loops: the `<loop_joint>`s, as hinges that the SDF does not close.
        feet: by name, the body and the point p_BF (3,) [m] of every collision
            sphere of radius zero; named by the link, with the suffix _0, _1,
            ... where a link has several.
        notes: what was left out, one line each.
    """

    name: str
    sdf: str
    loops: tuple[Loop, ...]
    feet: dict[str, tuple[str, np.ndarray]]
    notes: tuple[str, ...]


def is_old_urdf(path: str | Path) -> bool:
    """Whether a file is a URDF that needs :func:`read_old_urdf`.

    Such a file has a loop joint, a force element, or the default namespace of old
    Drake. False for files that cannot be read or are no URDF; never raises.
    """
    try:
        root = read_xml(path, NAMESPACE)
    except ModelProblem:
        return False
    if root.tag != "robot":
        return False
    tags = ("loop_joint", "force_element")
    return bool(root.namespace) or any(e.tag in tags for e in root.walk())


def read_old_urdf(path: str | Path, *, units: Scaling = SI) -> OldUrdf:
    """Reads a URDF with old Drake tags.

    Args:
        path: the file; its meshes are relative to it.
        units: the units of the file's numbers, e.g.
            :data:`~drakebots.core.units.MM_G_MS`; angles are always in radians.

    Returns:
        The model in SI, which Drake has loaded once.

    Raises:
        ModelProblem: for a file that cannot be read, an unknown tag or
            attribute, an invalid number, or a model that is not physical;
            one line with the element, its line in the file and the remedy.
    """
    return _Reader(Path(path), units).read()


class _Reader:
    """Reads one file.

    Attributes:
        links: the reader of its links, which also keeps feet and notes.
        model: what has been read, in SI.
        loops: its loop joints.
    """

    def __init__(self, path: Path, units: Scaling):
        self.path, self.units = path, units
        self.links = LinkReader(path, units)
        self.note = self.links.note
        self.model = SdfModel("", self.links.links)
        self.loops: list[Loop] = []
        self.taken: dict[str, int] = {}  # lines of the names of links, joints, frames
        self.joints: dict[str, Element] = {}
        self.parents: dict[str, str] = {}  # of links, floating ones included

    def read(self) -> OldUrdf:
        root = read_xml(self.path, NAMESPACE)
        if root.tag != "robot":
            raise root.problem("the first tag must be <robot>; give a URDF file")
        for key in [k for k in root.attributes if "}" in k]:
            del root.attributes[key]  # xsi:schemaLocation
        root.check(
            "name version",
            "link joint loop_joint force_element transmission frame material",
        )
        self.model.name = root.name()
        for element in root.walk():
            if element.stray and element.tag not in ("mechanicalReduction", "type"):
                self.note(element, f"stray text {element.stray!r} ignored")
            if element.tag == "material":
                self.links.read_color(element)
        for tag, read in (
            ("link", self.links.read_link),
            ("joint", self._read_joint),
            ("loop_joint", self._read_loop),
            ("frame", self._read_frame),
            ("force_element", self._read_force),
            ("transmission", self._read_transmission),
        ):
            for element in root.all(tag):
                if tag == "force_element":
                    self._note_second_name(element)
                elif tag != "transmission":
                    self._take_name(element)
                elif "name" in element.attributes:
                    self._take_name(element, f"{tag} ")  # not in the SDF
                read(element)
            if tag == "joint":
                self._check_tree(root)
        self._note_order(root)
        text = model_sdf(self.model)
        self._check_in_drake(text)
        return OldUrdf(
            self.model.name,
            text,
            tuple(self.loops),
            self.links.feet,
            tuple(self.links.notes),
        )

    def _take_name(self, element: Element, space: str = "") -> None:
        """Checks the name of an element, which must be new in its space."""
        name = space + element.name()
        if name in self.taken:
            raise element.problem(
                f"the name is taken by line {self.taken[name]}; SDF needs another for "
                "every link, joint and frame, so rename one"
            )
        self.taken[name] = element.line

    def _note_second_name(self, force: Element) -> None:
        """Old Drake takes forces of one name, and SDF has none for them."""
        name = "force_element " + force.attributes.get("name", "")
        if force.attributes.get("name") and name in self.taken:
            line = self.taken[name]
            self.note(force, f"its name is that of line {line} too; both act")
        self.taken.setdefault(name, force.line)

    def _link_name(self, element: Element, key: str = "link") -> str:
        """The attribute `key`, which must name a link or the world."""
        name = element.text(key)
        if name != "world" and name not in self.model.links:
            raise element.problem(
                f"there is no link {name!r}; correct {key}, or add the link"
            )
        return name

    def _read_frame(self, element: Element) -> None:
        """Reads a `<frame>` into `model`."""
        element.check("name link xyz rpy")
        link = self._link_name(element)
        self.model.frames.append((element.name(), link, pose(element, self.units)))

    def _read_joint(self, element: Element) -> None:
        """Reads a `<joint>` into `model`, and the pose of its child."""
        element.check("name type", "parent child origin axis limit dynamics")
        name, kind = element.name(), element.text("type")
        if kind not in (*MOVING, "fixed", "floating"):
            raise element.problem(
                f"unknown joint type {kind!r}; choose one of: "
                f"{', '.join(MOVING)}, fixed, floating"
            )
        ends = [element.one(tag) for tag in ("parent", "child")]
        for end in ends:
            end.check("link")
        parent, child = (self._link_name(end) for end in ends)
        if child == "world" or child == parent:
            raise element.problem(f"{child!r} cannot be its child; correct it")
        if child in self.parents:
            raise element.problem(
                f"link {child!r} is the child of a second joint; write one of the "
                "joints as a <loop_joint>"
            )
        self.parents[child] = parent
        link = self.model.links[child]
        link.pose = origin(element, self.units)
        link.relative_to = None if parent == "world" else parent
        self.joints[name] = element
        if kind == "floating":
            self.note(element, f"floating joint {name!r}: {child!r} is a free body")
        still = kind not in MOVING
        joint = SdfJoint(name, kind, parent, child, self._axis(element, still))
        self._read_limit(element, joint)
        self._read_dynamics(element, joint)
        if kind != "floating":
            self.model.joints[name] = joint

    def _axis(self, element: Element, still: bool = False) -> np.ndarray:
        """The unit vector (3,) of the child `<axis>`, x where missing."""
        axis = element.optional("axis")
        if axis is None:
            return np.array([1.0, 0.0, 0.0])
        axis.check("xyz")
        value = axis.numbers("xyz", 3, [1, 0, 0])
        norm = np.linalg.norm(value)
        if norm < 1e-9 and not still:
            raise axis.problem(
                f"the axis of {element.attributes['name']!r} is zero; give it a "
                "direction"
            )
        return value / max(norm, 1e-9)

    def _read_limit(self, element: Element, joint: SdfJoint) -> None:
        limit = element.optional("limit")
        if limit is None:
            return
        limit.check("lower upper velocity effort")
        slides = joint.type == "prismatic"
        length = self.units.length if slides else 1.0
        force = self.units.force if slides else self.units.torque
        for key in ("lower", "upper"):
            if key in limit.attributes:
                joint.limit[key] = limit.number(key) * length
        for key, unit in (("velocity", length / self.units.time), ("effort", force)):
            if key in limit.attributes:
                joint.limit[key] = limit.not_negative(key) * unit
        lower, upper = joint.limit.get("lower"), joint.limit.get("upper")
        if lower is not None and upper is not None and lower > upper:
            raise limit.problem(
                f"lower exceeds upper in joint {joint.name!r}; swap them"
            )
        if joint.type == "continuous" and (lower, upper) != (None, None):
            self.note(limit, f"continuous joint {joint.name!r} keeps its limits")
            joint.type = "revolute"

    def _read_dynamics(self, element: Element, joint: SdfJoint) -> None:
        dynamics = element.optional("dynamics")
        if dynamics is None:
            return
        dynamics.check("damping friction coulomb_window")
        joint.damping = dynamics.not_negative("damping", 0.0) * self._per_speed(joint)
        for key in ("friction", "coulomb_window"):
            if dynamics.not_negative(key, 0.0) > 0:
                self.note(dynamics, f"{key} of joint {joint.name!r} ignored")

    def _per_speed(self, joint: SdfJoint) -> float:
        units = self.units
        if joint.type == "prismatic":
            return units.of(mass=1, time=-1)
        return units.torque * units.time

    def _check_tree(self, root: Element) -> None:
        """Raises unless the joints make one tree of all links."""
        links = self.model.links
        if not links:
            raise root.problem("has no <link>; add one")
        # A link that reaches no root is on a cycle, or hangs from one.
        safe = {"world"} | {name for name in links if name not in self.parents}
        for name in links:
            path: dict[str, None] = {}
            while name not in safe and name not in path:
                path[name] = None
                name = self.parents[name]
            if name in path:
                raise root.problem(
                    f"the joints make a cycle through link {name!r}; write one of "
                    "them as a <loop_joint>"
                )
            safe.update(path)
        roots = [name for name in links if name not in self.parents]
        if "world" in self.parents.values():
            roots.append("world")
        if len(roots) > 1:
            raise root.problem(
                f"has {len(roots)} roots: {', '.join(roots[:5])}; join them by joints"
            )

    def _read_loop(self, element: Element) -> None:
        element.check("name type", "axis link1 link2")
        name, kind = element.name(), element.text("type")
        if kind not in ("continuous", "revolute"):
            raise element.problem(
                f"loop joint type {kind!r} is not supported; use continuous (a hinge)"
            )
        axis = self._axis(element)
        bodies, (A, B) = self._two_ends(element)
        self.loops.append(
            Loop(
                name,
                *bodies,
                A.p,
                B.p,
                RollPitchYaw(A.rpy).ToRotationMatrix().matrix() @ axis,
                RollPitchYaw(B.rpy).ToRotationMatrix().matrix() @ axis,
            )
        )

    def _two_ends(self, element: Element):
        """The links that an element joins, and the poses of the joint in them."""
        ends = [element.one(tag) for tag in ("link1", "link2")]
        for end in ends:
            end.check("link xyz rpy")
        bodies = [self._link_name(end) for end in ends]
        if bodies[0] == bodies[1]:
            raise element.problem(f"joins link {bodies[0]!r} to itself; correct it")
        return bodies, [pose(end, self.units) for end in ends]

    def _moving_joint(self, element: Element, kinds: tuple[str, ...]) -> SdfJoint:
        child = element.one("joint")
        child.check("name")
        name = child.text("name")
        joint = self.model.joints.get(name)
        if joint is None or joint.type not in kinds:
            is_loop = any(loop.name == name for loop in self.loops)
            what = f"is {joint.type}" if joint else "does not exist"
            if is_loop:
                what = "is a loop joint"
            elif name in self.joints and not joint:
                what = "is floating"
            raise child.problem(
                f"joint {name!r} {what}; <{element.tag}> needs one that is "
                f"{' or '.join(kinds)}"
            )
        return joint

    def _read_force(self, element: Element) -> None:
        element.check("name", "torsional_spring prismatic_spring linear_spring_damper")
        if len(element.children) != 1:
            raise element.problem(f"has {len(element.children)} forces; give it one")
        force = element.children[0]
        if force.tag == "linear_spring_damper":
            self._read_spring_damper(force)
        elif force.tag == "torsional_spring":
            self._add_spring(force, MOVING[:2], "rest_angle", self.units.torque, 1.0)
        else:
            unit, length = self.units.of(mass=1, time=-2), self.units.length
            self._add_spring(force, MOVING[2:], "rest_length", unit, length)

    def _add_spring(self, spring, kinds, rest_key, unit, rest_unit) -> None:
        """Adds a spring to its joint; several of one joint act as one.

        The sum of k_i (q - r_i) is k (q - r) with k = sum k_i, k r = sum k_i r_i.
        """
        spring.check(f"stiffness {rest_key}", "joint")
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
        element.check("rest_length stiffness damping", "link1 link2")
        bodies, (A, B) = self._two_ends(element)
        units = self.units
        self.model.springs.append(
            SdfSpringDamper(
                bodies[0],
                A.p,
                bodies[1],
                B.p,
                element.positive("rest_length") * units.length,
                element.not_negative("stiffness") * units.of(mass=1, time=-2),
                element.not_negative("damping", 0.0) * units.of(mass=1, time=-1),
            )
        )

    def _read_transmission(self, element: Element) -> None:
        element.check("name type", "type joint actuator mechanicalReduction")
        kind = element.attributes.get("type")
        if kind is None:
            kind = element.one("type").stray
        if kind.rpartition("/")[2] != "SimpleTransmission":
            raise element.problem(
                f"unknown transmission type {kind!r}; use SimpleTransmission"
            )
        element.one("actuator").check("name")
        joint = self._moving_joint(element, MOVING)
        reduction = element.optional("mechanicalReduction")
        if reduction is not None:
            reduction.check()
            reduction.attributes["value"] = reduction.stray
            if reduction.number("value") != 1:
                raise reduction.problem(
                    f"the reduction of joint {joint.name!r} must be 1; scale the input"
                )
        if joint.actuated:
            raise element.problem(
                f"joint {joint.name!r} has a second transmission; keep one"
            )
        if joint.limit.get("effort") == 0:
            raise element.problem(
                f"joint {joint.name!r} has effort limit 0; raise it, or leave it out"
            )
        joint.actuated = True

    def _note_order(self, root: Element) -> None:
        driven = [e.one("joint").text("name") for e in root.all("transmission")]
        order = [name for name, joint in self.model.joints.items() if joint.actuated]
        if driven != order:
            self.links.notes.append(
                "actuators are in the order of the joints, not of the transmissions: "
                + ", ".join(order)
            )

    def _check_in_drake(self, text: str) -> None:
        """Loads the SDF once, so that Drake's refusal names this file."""
        plant, scene_graph = MultibodyPlant(0.0), SceneGraph()
        plant.RegisterAsSourceForSceneGraph(scene_graph)
        parser = Parser(plant)
        parser.SetStrictParsing()
        try:
            parser.AddModelsFromString(text, "sdf")
            plant.Finalize()
        except Exception as error:
            raise ModelProblem(
                self.path,
                f"Drake refuses the model: {one_line(error)[:300]}; correct it",
            ) from error
