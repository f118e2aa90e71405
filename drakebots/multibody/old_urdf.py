"""Reads URDF files with the tags of the old Drake of MATLAB (before 2017).

Such files have closed loops (`<loop_joint>`), springs (`<force_element>`),
numbers such as "-pi/4" or "0 7.58, -11.35", and point feet (spheres of radius
zero). Drake's own parser refuses most of that, and passes over the springs
without a word. The reader here turns a file into SDF for Drake, and a table of
loops, springs and feet; what it does not know it refuses.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
from pydrake.geometry import SceneGraph
from pydrake.math import RollPitchYaw
from pydrake.multibody.parsing import Parser
from pydrake.multibody.plant import MultibodyPlant

from drakebots.errors import InvalidInput, ModelProblem, one_line
from drakebots.multibody import sdf_writer as sdf
from drakebots.multibody.arithmetic import arithmetic
from drakebots.multibody.loops import Loop
from drakebots.multibody.old_urdf_links import pose
from drakebots.multibody.old_urdf_tree import MOVING, TreeReader
from drakebots.multibody.strict_xml import Element, read_xml
from drakebots.units import SI, Scaling

NAMESPACE = "http://drake.mit.edu"


@dataclass(frozen=True)
class OldUrdf:
    """A model read from an old URDF, in SI.

    Attributes:
        name: of the robot.
        sdf: SDF 1.9 text for `Parser.AddModelsFromString(sdf, "sdf")`, strict
            parsing included; joints with springs, damping and limits, and
            actuators named by their joints, in the order of the joints.
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

    That is, one with a loop joint, a force element, the default namespace of
    old Drake, a sphere of radius zero, or numbers with commas or arithmetic.
    False for files that cannot be read or are no URDF; never raises.
    """
    try:
        root = read_xml(path, NAMESPACE)
    except ModelProblem:
        return False
    if root.tag != "robot":
        return False
    return bool(root.namespace) or any(_is_old(element) for element in root.walk())


def _is_old(element: Element) -> bool:
    if element.tag in ("loop_joint", "force_element"):
        return True
    values = element.attributes
    numbers = [values[k] for k in ("lower", "upper", "xyz", "rpy") if k in values]
    try:
        for text in " ".join(numbers).split():
            float(text)
        return element.tag == "sphere" and arithmetic(values.get("radius", "1")) == 0
    except ValueError:
        return True
    except InvalidInput:
        return False


def read_old_urdf(path: str | Path, *, units: Scaling = SI) -> OldUrdf:
    """Reads a URDF with old Drake tags.

    Args:
        path: of the file; meshes are looked for beside it.
        units: the system that the file's numbers are in, e.g.
            :data:`~drakebots.units.MM_G_MS`; angles are radians in all.

    Returns:
        The model in SI; see :class:`OldUrdf`. It has been loaded in Drake once.

    Raises:
        ModelProblem: for a file that cannot be read, an unknown tag or
            attribute, a number that is none, or a model that is not physical;
            one line with the element, its line in the file and the remedy.
    """
    return _Reader(Path(path), units).read()


class _Reader(TreeReader):
    """Reads one file into `model` and `loops`."""

    def __init__(self, path: Path, units: Scaling):
        super().__init__(path, units)
        self.loops: list[Loop] = []

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
            ("joint", self.read_joint),
            ("loop_joint", self._read_loop),
            ("frame", self.read_frame),
            ("force_element", self._read_force),
            ("transmission", self._read_transmission),
        ):
            for element in root.all(tag):
                if tag not in ("force_element", "transmission"):
                    self.take_name(element)
                elif "name" in element.attributes:
                    self.take_name(element, f"{tag} ")  # not in the SDF
                read(element)
            if tag == "joint":
                self.check_tree(root)
        self._note_order(root)
        text = sdf.model_sdf(self.model)
        self._check_in_drake(text)
        return OldUrdf(
            self.model.name,
            text,
            tuple(self.loops),
            self.links.feet,
            tuple(self.links.notes),
        )

    def _read_loop(self, element: Element) -> None:
        element.check("name type", "axis link1 link2")
        name, kind = element.name(), element.text("type")
        if kind not in ("continuous", "revolute"):
            raise element.problem(
                f"loop joint type {kind!r} is not supported; use continuous (a hinge)"
            )
        axis = self.axis(element)
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
        bodies = [self.link_name(end) for end in ends]
        if bodies[0] == bodies[1]:
            raise element.problem(f"joins link {bodies[0]!r} to itself; correct it")
        return bodies, [pose(end, self.units) for end in ends]

    def _moving_joint(self, element: Element, kinds: tuple[str, ...]) -> sdf.Joint:
        child = element.one("joint")
        child.check("name")
        name = child.text("name")
        joint = self.model.joints.get(name)
        if joint is None or joint.type not in kinds:
            is_loop = any(loop.name == name for loop in self.loops)
            what = f"is {joint.type}" if joint else "does not exist"
            if is_loop:
                what = "is a loop joint"
            elif name in self.lines and not joint:
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
        spring.check(f"stiffness {rest_key}", "joint")
        joint = self._moving_joint(spring, kinds)
        rest = spring.number(rest_key, 0.0) * rest_unit
        if joint.reference is not None and joint.reference != rest:
            raise spring.problem(
                f"joint {joint.name!r} has springs of different {rest_key}; SDF "
                "allows one, so write their sum"
            )
        joint.reference = rest
        joint.stiffness += spring.not_negative("stiffness") * unit

    def _read_spring_damper(self, element: Element) -> None:
        element.check("rest_length stiffness damping", "link1 link2")
        bodies, (A, B) = self._two_ends(element)
        units = self.units
        self.model.springs.append(
            sdf.SpringDamper(
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
        """Loads the SDF once, so that what Drake minds is our error too."""
        plant, scene_graph = MultibodyPlant(0.0), SceneGraph()
        plant.RegisterAsSourceForSceneGraph(scene_graph)
        parser = Parser(plant)
        parser.SetStrictParsing()
        try:
            parser.AddModelsFromString(text, "sdf")
            plant.Finalize()
        except Exception as error:
            raise ModelProblem(
                self.path, f"Drake refuses the model: {one_line(error)[:300]}; mend it"
            ) from error
