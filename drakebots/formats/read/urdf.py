"""URDFs as ROS has them, made ready for Drake's parser: numbers, joints, links."""

from __future__ import annotations

import ast
import math
import operator
import re
import xml.etree.ElementTree as ET
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path

import numpy as np
from pydrake.math import RollPitchYaw, RotationMatrix

from drakebots.core.errors import InvalidInput, ModelProblem
from drakebots.core.files import reading
from drakebots.formats.read.files import Packages
from drakebots.formats.read.findings import Findings, note_ignored_tags, words
from drakebots.formats.read.limits import read_text
from drakebots.formats.read.masses import WORLD, fix_weightless, repair_inertia
from drakebots.formats.read.meshes import SHAPES, repair_shapes
from drakebots.formats.read.tree import (
    SINGLE,
    child_of,
    cut_loops,
    floats,
    joint_elements,
    leave_out,
    link_at,
    read_tree,
    remove,
    rename_taken,
    written,
)
from drakebots.model import Loop, finite_number


def number(element: ET.Element, key: str) -> float | None:
    """An attribute as a finite number; None where it is missing or none."""
    return finite_number(element.get(key, ""))


_NUMBER = re.compile(r"[-+]?(\d+\.?\d*|\.\d+)([eE][-+]?\d+)?")


def repair_numbers(root: ET.Element, findings: Findings) -> None:
    """Numbers that other readers take: "0, 1", "pi/2", "-1.57."."""
    for owner, element in _with_owner(root):
        for tag, number in Counter(child.tag for child in element).items():
            if number > 1 and tag in words("urdf_once"):
                findings.note("only the first of several counts", f"<{tag}> of {owner}")
        known = words("urdf_numbers").get(element.tag, {})
        for key in element.attrib if element.tag in words("urdf_numbers") else ():
            if key not in (*known, "joint", "link", "name") and ":" not in key:
                findings.note("Drake ignores", f"{element.tag} {key}")
        for key, count in known.items():
            text = element.get(key)
            if text is None:
                continue
            values = floats(text)
            if values is None:
                values = _odd_numbers(text, count)
                if len(values) == count:
                    element.set(key, " ".join(map(repr, values)))
                    findings.note("a number is written oddly", f"{text!r} of {owner}")
            if len(values) > count > 1 and "," not in text:
                values = values[:count]
                element.set(key, " ".join(map(repr, values)))
                findings.note("only the first numbers count", f"{text!r} of {owner}")
            if len(values) != count:
                numbers = "one number" if count == 1 else f"{count} numbers"
                findings.problem(
                    f"{owner}: <{element.tag} {key}={text!r}> needs {numbers}"
                )


def _odd_numbers(text: str, count: int) -> list[float]:
    """Numbers that were meant: arithmetic, or else the digits that are there."""
    parts = [text] if count == 1 else re.split(r"\s*,\s*|\s+", text.strip())
    try:
        return [arithmetic(part) for part in parts]
    except InvalidInput:
        text = "" if re.search(r"[^\W\deE]", text) else text  # names, as in ${pi/2}
        return [float(match.group()) for match in _NUMBER.finditer(text)]


_ARITHMETIC = re.compile(r"[0-9.eE+\-*/()pi\s]*")
_LEADING_ZEROS = re.compile(r"(?<![0-9.eE])0+(?=[0-9])")
_MAX_EXPRESSION = 200
_MAX_NESTING = 20
_OPERATORS = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.UAdd: operator.pos,
    ast.USub: operator.neg,
}


def arithmetic(text: str) -> float:
    """The value of numbers and `pi` joined by + - * / and parentheses: "-pi/4".

    Raises:
        InvalidInput: for anything else, and for a value that is not finite.
    """
    if len(text) > _MAX_EXPRESSION:
        raise InvalidInput(f"{text[:20]!r}... is too long to be a number")
    if not _ARITHMETIC.fullmatch(text) or text.count("(") > _MAX_NESTING:
        raise InvalidInput(f"{text!r} is not a number")
    # Python takes no 007, and no line breaks.
    line = _LEADING_ZEROS.sub("", " ".join(text.split()))
    try:
        value = _value(ast.parse(line, mode="eval").body)
    except (SyntaxError, TypeError, ValueError, KeyError, ZeroDivisionError) as error:
        raise InvalidInput(f"{text!r} is not a number") from error
    if not math.isfinite(value):
        raise InvalidInput(f"{text!r} is not a finite number")
    return value


def _value(node: ast.expr) -> float:
    if isinstance(node, ast.Constant):
        return float(node.value)
    if isinstance(node, ast.UnaryOp):
        return _OPERATORS[type(node.op)](_value(node.operand))
    if isinstance(node, ast.BinOp):
        return _OPERATORS[type(node.op)](_value(node.left), _value(node.right))
    if isinstance(node, ast.Name) and node.id == "pi":
        return math.pi
    raise ValueError("not arithmetic")


def _with_owner(root: ET.Element) -> Iterator[tuple[str, ET.Element]]:
    """All elements below the links and joints, with what they belong to."""
    for owner in root:
        name = f"{owner.tag} {owner.get('name', '')!r}"
        for element in owner.iter():
            yield name, element


_TYPES = (*SINGLE, "planar", "floating", "ball", "fixed")


def repair_joint(joint: ET.Element, findings: Findings) -> None:
    """Types of other simulators; limits and axes at which Drake would stop."""
    name, kind = joint.get("name", ""), joint.get("type")
    if kind in ("spherical", "ball") and joint.tag == "joint":
        joint.tag, kind = "drake:joint", "ball"
        joint.set("type", "ball")
    if joint.tag == "joint" and kind not in _TYPES:
        findings.problem(
            f"joint {name!r} has the type {kind!r}; use one of {', '.join(_TYPES)}"
        )
    axis = joint.find("axis")
    if axis is not None and kind in SINGLE:
        values = floats(axis.get("xyz", "1 0 0"))
        if values is not None and not any(values):
            findings.problem(f"joint {name!r} has the axis 0 0 0; give its direction")
    _repair_limits(joint, findings)
    dynamics = joint.find("dynamics")
    if dynamics is not None and (number(dynamics, "damping") or 0.0) < 0:
        findings.problem(f"joint {name!r} has negative damping; it must be >= 0")


def _repair_limits(joint: ET.Element, findings: Findings) -> None:
    """Limits that Drake would stop at, or pass over."""
    name, limit = joint.get("name", ""), joint.find("limit")
    if limit is None:
        return
    lower, upper = (number(limit, key) for key in ("lower", "upper"))
    kind = joint.get("type")
    if kind in ("revolute", "prismatic") and None in (lower, upper):
        findings.note("a limit that is not given is none, where ROS takes 0", name)
    if kind == "continuous" and (lower, upper) != (None, None):
        findings.note("a continuous joint keeps its limits, unlike in ROS", name)
    if lower is not None and upper is not None and lower > upper:
        # Bullet's way to write a joint without limits.
        del limit.attrib["lower"], limit.attrib["upper"]
        findings.note("lower limit above the upper one: none is used", name)
    for key in ("effort", "velocity", "drake:acceleration"):
        value = number(limit, key)
        if value is not None and value < 0:
            del limit.attrib[key]
            findings.note(f"a negative limit of {key} is not used", name)


def repair_mimics(joints: list[ET.Element], findings: Findings) -> None:
    """Leaves out mimics that are not between two joints of one degree of freedom.

    Args:
        joints: of one robot, or of one model of an SDF.
        findings: to add to.
    """
    single = [joint for joint in joints if joint.get("type") in (*SINGLE, "screw")]
    names = {joint.get("name") for joint in single}
    for joint in joints:
        name, mimic = joint.get("name", ""), mimic_of(joint)
        if mimic is None:
            continue
        if name not in names or mimic.get("joint") not in names - {name}:
            joint.remove(mimic)
            line = "a <mimic> of joints that do not both exist and move is left out"
            findings.note(line, f"{name} ({mimic.get('joint')})")
            continue
        for key in ("multiplier", "offset"):
            if key in mimic.attrib and number(mimic, key) is None:
                findings.problem(
                    f"joint {name!r}: the {key} {mimic.get(key)!r} of its <mimic> is "
                    "no finite number; correct it"
                )


def mimic_of(joint: ET.Element) -> ET.Element | None:
    """The <mimic> of a joint of a URDF, or Drake's <drake:mimic> of an SDF's."""
    return next((e for e in joint if e.tag in ("mimic", "drake:mimic")), None)


def stated_efforts(root: ET.Element) -> dict[str, float]:
    """The limits of effort of a URDF's joints by name, those above zero [N m, N].

    Args:
        root: the URDF's <robot>.
    """
    found = {}
    for joint in root.iter("joint"):
        limit = joint.find("limit")
        effort = 0.0 if limit is None else number(limit, "effort") or 0.0
        if joint.get("type") in SINGLE and effort > 0 and joint.find("mimic") is None:
            found[joint.get("name", "")] = effort
    return found


def included_efforts(files: Iterable[Path]) -> dict[str, float]:
    """The limits of effort that URDFs among files state of joints, by their own names;
    where two differ none."""
    found: dict[str, set[float]] = {}
    for file in files:
        if file.suffix.lower() == ".urdf":
            with reading(file, ModelProblem):
                efforts = stated_efforts(read_tree(read_text(file)))
            for name, effort in efforts.items():
                found.setdefault(name, set()).add(effort)
    return {name: own.pop() for name, own in found.items() if len(own) == 1}


def repair_transmissions(
    root: ET.Element, joints: list[ET.Element], findings: Findings
) -> None:
    """Leaves out transmissions of no joint; gives actuators names of their own."""
    names = {joint.get("name") for joint in joints}
    lost = [
        transmission
        for transmission in root.findall("transmission")
        if not {e.get("name") for e in transmission.findall("joint")} <= names
    ]
    line = "a <transmission> of a joint that does not exist is left out"
    leave_out(root, lost, findings, line)
    motors = root.findall("transmission/actuator")
    rename_taken(motors, findings, "an actuator of a name taken is renamed")


def repair_urdf(
    root: ET.Element,
    packages: Packages,
    findings: Findings,
    *,
    name: str,
    up: str = "z",
) -> tuple[Loop, ...]:
    """Changes the tree of a URDF in place, and returns the loops it cuts.

    Args:
        root: its <robot>, from :func:`drakebots.formats.read.tree.read_tree`.
        packages: folders of its meshes.
        findings: to add to.
        name: of a robot that has none.
        up: the axis that points up in it; see
            :func:`drakebots.formats.read.urdf.turn_root`.
    """
    if not root.get("name"):
        root.set("name", name)
    note_ignored_tags(root, findings, urdf=True)
    repair_numbers(root, findings)
    if up != "z" and not findings.problems:
        turn_root(root, up)
    links, joints = root.findall("link"), joint_elements(root)
    _check_names(links, joints, findings)
    for joint in joints:
        repair_joint(joint, findings)
    loops = () if findings.problems else cut_loops(root, findings)
    joints = joint_elements(root)
    fix_weightless(root, findings, default="0")
    repair_mimics(joints, findings)
    repair_transmissions(root, joints, findings)
    for link in links:
        _repair_inertial(link, findings)
    for link in links:
        _drop_unknown_shapes(link, findings)
        _repair_scales(link, findings)
        repair_shapes(link, packages, findings)
    _repair_materials(root, packages, findings)
    return loops


# --- names ---


def _check_names(
    links: list[ET.Element], joints: list[ET.Element], findings: Findings
) -> None:
    """Links must have names of their own; joints that share one are renamed."""
    for element in [*links, *joints]:
        if not element.get("name"):
            findings.problem(f"a <{element.tag}> has no name; give it one")
    names = Counter(link.get("name", "") for link in links)
    for name, count in names.items():
        if count > 1 and name:
            findings.problem(f"{count} links are named {name!r}; rename them")
    if not links:
        findings.problem("has no link; a robot has one or more")
    given = [joint.get("name", "") for joint in joints]
    rename_taken(joints, findings, "a joint of a name taken is renamed")
    for joint, name in zip(joints, given):
        for end in ("parent", "child"):
            link = link_at(joint, end)
            if link not in names and link != WORLD:
                findings.problem(
                    f"joint {name!r} has {link!r} as its {end}, "
                    "which is no link; correct it"
                )


# --- inertia and shapes ---


def _repair_inertial(link: ET.Element, findings: Findings) -> None:
    name, inertial = link.get("name", ""), link.find("inertial")
    if inertial is None:
        return
    if name == "world":
        link.remove(inertial)
        findings.note("the inertia of the world is not used")
        return
    element = inertial.find("mass")
    mass = None if element is None else number(element, "value")
    if mass is None:
        findings.problem(f"link {name!r} has <inertial> without a mass; give one")
    else:
        repair_inertia(link, mass, findings, diagonal="0")


def _drop_unknown_shapes(link: ET.Element, findings: Findings) -> None:
    """Shapes of other simulators, such as Bullet's <plane>."""
    for geometry in link.iter("geometry"):
        for shape in geometry.findall("*"):
            if shape.tag not in SHAPES:
                geometry.remove(shape)
                line = f"a <{shape.tag}> is no shape for Drake and left out"
                findings.note(line, link.get("name", ""))


def _repair_scales(link: ET.Element, findings: Findings) -> None:
    for mesh in link.iter("mesh"):
        scale = mesh.get("scale", "1 1 1")
        values = floats(scale)
        if values and all(values) and len(values) in (1, 3):
            continue
        if values and all(values) and len(values) > 3:
            mesh.set("scale", " ".join(map(repr, values[:3])))
        else:
            del mesh.attrib["scale"]
        findings.note(f"a mesh scale is not used as written: {scale!r}")


# --- materials ---


def _repair_materials(root: ET.Element, packages: Packages, findings: Findings) -> None:
    """Every visual with a color of its own, where the file's names do not agree.

    Drake wants each name defined once, at the top or at its first use. Elsewhere a
    visual's own color counts, else the first that the file gives its name.
    """
    top, used = root.findall("material"), root.findall("link/visual/material")
    for material in [*top, *used]:
        for color in material.findall("color"):
            _repair_color(color, findings)
        _repair_texture(material, packages, findings)
    looks: dict[str, ET.Element] = {}
    agree = True
    for k, material in enumerate([*top, *used]):
        name, look = material.get("name", ""), _look(material)
        if look is None:
            agree = agree and (not name or name in looks)
        elif name:
            first = looks.setdefault(name, look)
            twice = k < len(top) and first is not look
            agree = agree and not twice and first.attrib == look.attrib
    if agree:
        return
    for material in used:
        name = material.attrib.pop("name", "")
        if _look(material) is None and name in looks:
            material.append(looks[name])
        elif _look(material) is None:
            findings.note("a material is never defined", name)
    remove(root, [*top, *(m for m in used if _look(m) is None)])


def _look(material: ET.Element) -> ET.Element | None:
    """Element <color> of a material, or else its <texture>."""
    color = material.find("color")
    return material.find("texture") if color is None else color


def _repair_color(color: ET.Element, findings: Findings) -> None:
    """Four numbers in 0 .. 1."""
    values = floats(color.get("rgba", "").replace(",", " "))
    if values is None or len(values) not in (3, 4):
        findings.note("a color without four numbers is grey", color.get("rgba", ""))
        values = [0.7, 0.7, 0.7, 1.0]
    # Colors of up to 255 are of another convention.
    top = 255.0 if max(values[:3]) > 1 else 1.0
    rgb = [min(max(value / top, 0.0), 1.0) for value in values[:3]]
    alpha = min(max(values[3], 0.0), 1.0) if len(values) == 4 else 1.0
    if [*rgb, alpha] != floats(color.get("rgba", "")):
        color.set("rgba", " ".join(f"{value:g}" for value in (*rgb, alpha)))


def _repair_texture(
    material: ET.Element, packages: Packages, findings: Findings
) -> None:
    texture = material.find("texture")
    if texture is None:
        return
    uri = texture.get("filename", "")
    path = packages.find(uri)
    if path is None or path.suffix.lower() != ".png":
        material.remove(texture)
        if uri:
            findings.note("a texture that is no .png or not found is left out", uri)
    elif not packages.is_plain(uri, path):
        texture.set("filename", f"file://{path}")


_X, _Y, _Z = np.eye(3)
TURNS = {
    axes: RotationMatrix(np.array([ahead, np.cross(up, ahead), up]))
    for axes, up, ahead in (
        ("z", _Z, _X),
        ("y", _Y, _X),
        ("x", _X, -_Z),
        ("zy", _Z, _Y),
        ("yz", _Y, _Z),
        ("xy", _X, _Y),
    )
}
"""R_WB of an upright base B that faces x, by the axis of B that points up, and after it
the axis that points ahead where this is another one than usual."""


def turn_root(root: ET.Element, up: str) -> None:
    """Turns the root links of a URDF in place, so that they stand upright and face x.

        X_B'C = R X_BC    with R = TURNS[up]

    for every shape, inertia, joint, frame and point C that the root link B places. Only
    the frame of the root link is another one afterwards; all others keep theirs.

    Args:
        root: its <robot>, after :func:`repair_numbers`.
        up: key of TURNS.
    """
    children = {link_at(joint, "child") for joint in joint_elements(root)}
    bases = [e for e in root.findall("link") if e.get("name") not in children]
    names = {link.get("name") for link in bases} | {"world"} - children
    placed = [e for link in bases for e in link if e.tag in _PLACED]
    placed += [j for j in joint_elements(root) if link_at(j, "parent") in names]
    places = [frame for frame in root.findall("frame") if frame.get("link") in names]
    places += [child_of(element, "origin") for element in placed]
    for place in places:
        xyz, rpy = (floats(place.get(key, "0 0 0")) for key in ("xyz", "rpy"))
        R = TURNS[up] @ RollPitchYaw(rpy).ToRotationMatrix()
        place.set("xyz", written(TURNS[up] @ xyz))
        place.set("rpy", written(RollPitchYaw(R).vector()))
    for element in root:  # springs and loops of Drake's between points of two bodies
        ends = {part.tag[-6:]: part.get("name") for part in element}
        for part in element:
            end = {"p_AP": "body_A", "p_BQ": "body_B"}.get(part.tag[-4:], "")
            if ends.get(end, "") in names:
                part.set("value", written(TURNS[up] @ floats(part.get("value", ""))))


_PLACED = ("inertial", "visual", "collision")
