"""URDF as robots' authors write it, made into what Drake's parser accepts.

Each function here takes one habit: materials defined twice, joints of other
simulators, names that repeat, inertias that no body has, limits the wrong way round.
What is changed is noted; what cannot be meant is a problem by name.
"""

from __future__ import annotations

import math
import re
import xml.etree.ElementTree as ET
from collections import Counter
from collections.abc import Iterator

import numpy as np

from drakebots.core.errors import InvalidInput
from drakebots.model.loops import Loop
from drakebots.model.old_urdf.xml import arithmetic
from drakebots.model.reading.cuts import cut_loops
from drakebots.model.reading.findings import Findings
from drakebots.model.reading.inertias import nearest_inertia
from drakebots.model.reading.packages import Packages
from drakebots.model.reading.shapes import SHAPES, Shapes
from drakebots.model.reading.tags import note_ignored_tags
from drakebots.model.reading.tree import remove

MOVING = ("revolute", "continuous", "prismatic", "planar", "floating", "ball")
"""The types of joints that move."""

_TYPES = (*MOVING, "fixed")


def repair_urdf(
    root: ET.Element, packages: Packages, findings: Findings, *, name: str
) -> tuple[Loop, ...]:
    """Changes the tree of a URDF in place, and returns the loops it cuts.

    Args:
        root: its <robot>, from :func:`drakebots.model.reading.tree.read_tree`.
        packages: where its meshes are looked for.
        findings: to add to.
        name: of a robot that has none.
    """
    if any(key.startswith("xmlns:xacro") for key in root.attrib) and any(
        element.tag.startswith("xacro:") for element in root.iter()
    ):
        findings.problem("is a xacro file; expand it first: xacro FILE > robot.urdf")
        return ()
    if not root.get("name"):
        root.set("name", name)
    note_ignored_tags(root, findings, urdf=True)
    _repair_numbers(root, findings)
    links, joints = root.findall("link"), list(_joints(root))
    _check_names(links, joints, findings)
    for joint in joints:
        _repair_joint(joint, findings)
    loops = () if findings.problems else cut_loops(root, findings, urdf=True)
    joints = list(_joints(root))
    _repair_mimics(joints, findings)
    _repair_transmissions(root, joints, findings)
    for link in links:
        _repair_inertia(link, findings)
    shapes = _shapes(packages, findings)
    for link in links:
        _drop_unknown_shapes(link, findings)
        _repair_scales(link, findings)
        shapes.repair(link)
    _repair_materials(root, packages, findings)
    return loops


def make_urdf_absolute(root: ET.Element, packages: Packages) -> None:
    """Writes the paths of all meshes and textures, for a text that has no folder."""
    shapes = _shapes(packages, Findings())
    for link in root.findall("link"):
        shapes.make_absolute(link)
    for texture in root.iter("texture"):
        if path := packages.find(texture.get("filename", "")):
            texture.set("filename", f"file://{path}")


def _shapes(packages: Packages, findings: Findings) -> Shapes:
    return Shapes(
        packages,
        findings,
        uri=lambda mesh: mesh.get("filename", ""),
        set_uri=lambda mesh, uri: mesh.set("filename", uri),
    )


def _joints(root: ET.Element):
    return (e for e in root if e.tag in ("joint", "drake:joint"))


# --- names ---


def _check_names(
    links: list[ET.Element], joints: list[ET.Element], findings: Findings
) -> None:
    """Links must have names of their own; joints that share one are renamed."""
    for element in [*links, *joints]:
        if not element.get("name"):
            kind = element.tag
            findings.problem(f"a <{kind}> has no name; give it one")
    names = Counter(link.get("name", "") for link in links)
    for name, count in names.items():
        if count > 1 and name:
            findings.problem(f"{count} links are named {name!r}; rename them")
    if not links:
        findings.problem("has no link; a robot has one or more")
    taken: set[str] = set()
    for joint in joints:
        name = joint.get("name", "")
        if name in taken:
            joint.set("name", _free_name(name, taken))
            findings.note("a joint of a name taken is renamed", joint.get("name", ""))
        taken.add(joint.get("name", ""))
        for end in ("parent", "child"):
            element = joint.find(end)
            link = "" if element is None else element.get("link", "")
            if link not in names and link != "world":
                findings.problem(
                    f"joint {name!r} has {link!r} as its {end}, "
                    "which is no link; correct it"
                )


def _free_name(name: str, taken: set[str]) -> str:
    return next(
        f"{name}_{k}" for k in range(2, len(taken) + 3) if f"{name}_{k}" not in taken
    )


# --- joints ---


def _repair_joint(joint: ET.Element, findings: Findings) -> None:
    name, kind = joint.get("name", ""), joint.get("type")
    if kind in ("spherical", "ball") and joint.tag == "joint":
        joint.tag, kind = "drake:joint", "ball"
        joint.set("type", "ball")
        findings.note("a spherical joint is read as Drake's ball joint", name)
    if kind is None:
        findings.problem(f"joint {name!r} has no type; use one of {', '.join(_TYPES)}")
    elif joint.tag == "joint" and kind not in _TYPES:
        findings.problem(
            f"joint {name!r} has the type {kind!r}; use one of {', '.join(_TYPES)}"
        )
    axis = joint.find("axis")
    if axis is not None and kind in ("revolute", "continuous", "prismatic"):
        values = _floats(axis.get("xyz", "1 0 0"))
        if values is not None and not any(values):
            findings.problem(f"joint {name!r} has the axis 0 0 0; give its direction")
    _repair_limits(joint, kind, findings)
    dynamics = joint.find("dynamics")
    if dynamics is not None and (_number_of(dynamics, "damping") or 0.0) < 0:
        findings.problem(f"joint {name!r} has negative damping; it must be >= 0")


def _repair_limits(joint: ET.Element, kind: str | None, findings: Findings) -> None:
    """Limits that Drake would stop at, or pass over."""
    name, limit = joint.get("name", ""), joint.find("limit")
    if limit is None:
        return
    lower, upper = (_number_of(limit, key) for key in ("lower", "upper"))
    if lower is not None and upper is not None:
        if kind == "continuous" and lower < upper:
            findings.note("limits of a continuous joint are not used", name)
        if lower > upper:
            # Bullet's way to write a joint without limits.
            del limit.attrib["lower"], limit.attrib["upper"]
            findings.note("lower limit above the upper one: none is used", name)
    for key in ("effort", "velocity", "drake:acceleration"):
        value = _number_of(limit, key)
        if value is not None and value < 0:
            del limit.attrib[key]
            findings.note(f"a negative limit of {key} is not used", name)


def _repair_mimics(joints: list[ET.Element], findings: Findings) -> None:
    single = ("revolute", "continuous", "prismatic")
    names = {joint.get("name") for joint in joints if joint.get("type") in single}
    for joint in joints:
        name, mimic = joint.get("name", ""), joint.find("mimic")
        if mimic is None:
            continue
        if name not in names or mimic.get("joint") not in names - {name}:
            joint.remove(mimic)
            findings.note("a <mimic> without two joints that move is left out", name)


def _repair_transmissions(
    root: ET.Element, joints: list[ET.Element], findings: Findings
) -> None:
    """Leaves out transmissions of no joint; gives actuators names of their own."""
    names, taken = {joint.get("name") for joint in joints}, set()
    for transmission in root.findall("transmission"):
        named = [e.get("name") for e in transmission.findall("joint")]
        if not all(name in names for name in named):
            root.remove(transmission)
            line = "a <transmission> of a joint that does not exist is left out"
            findings.note(line, transmission.get("name", ""))
            continue
        for actuator in transmission.findall("actuator"):
            name = actuator.get("name", "")
            if name in taken:
                actuator.set("name", _free_name(name, taken))
                line = "an actuator of a name taken is renamed"
                findings.note(line, actuator.get("name", ""))
            taken.add(actuator.get("name", ""))


# --- inertia ---


def _repair_inertia(link: ET.Element, findings: Findings) -> None:
    """Masses and inertias that no body has."""
    name, inertial = link.get("name", ""), link.find("inertial")
    if inertial is None:
        return
    if name == "world":
        link.remove(inertial)
        findings.note("the inertia of the world is not used")
        return
    element = inertial.find("mass")
    mass = None if element is None else _number_of(element, "value")
    if mass is None:
        findings.problem(f"link {name!r} has <inertial> without a mass; give one")
        return
    if mass < 0:
        findings.problem(f"link {name!r} has a mass of {mass:g} kg; it must be >= 0")
        return
    tensor = inertial.find("inertia")
    if tensor is None:
        return
    keys = ("ixx", "ixy", "ixz", "iyy", "iyz", "izz")
    xx, xy, xz, yy, yz, zz = (_number_of(tensor, key) or 0.0 for key in keys)
    inertia = np.array([[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]])
    if mass == 0:
        if inertia.any():
            # Drake would replace both, by those of a ball of 1 kg.
            link.remove(inertial)
            findings.note("an inertia without a mass is not used", name)
        return
    near, change = nearest_inertia(inertia, mass)
    if near is None:
        findings.problem(
            f"link {name!r} has a negative inertia, {inertia.diagonal()} kg m2; "
            "correct it"
        )
        return
    if change > 0:
        findings.note(
            "an inertia that no body has is replaced by the nearest one",
            f"{name} (by {100 * change:.2g} %)",
        )
    if near is not inertia:
        for key, value in zip(keys, near[np.triu_indices(3)]):
            tensor.set(key, repr(float(value)))


# --- shapes and colors ---


def _drop_unknown_shapes(link: ET.Element, findings: Findings) -> None:
    """Shapes of other simulators, such as Bullet's <plane>."""
    for element in [*link.findall("visual"), *link.findall("collision")]:
        for shape in element.findall("geometry/*"):
            if shape.tag not in SHAPES - {"plane"}:
                link.remove(element)
                line = f"a <{shape.tag}> is no shape for Drake and left out"
                findings.note(line, link.get("name", ""))
                break


def _repair_scales(link: ET.Element, findings: Findings) -> None:
    for mesh in link.iter("mesh"):
        scale = mesh.get("scale")
        if scale is None:
            continue
        values = _floats(scale)
        if not values or not all(values):
            del mesh.attrib["scale"]
            findings.note(f"the mesh scale {scale!r} is not used", link.get("name", ""))


def _repair_materials(root: ET.Element, packages: Packages, findings: Findings) -> None:
    """Every visual with a color of its own, where the file's names do not agree.

    Drake wants each name defined once, at the top or at its first use. Elsewhere a
    visual's own color counts, else the first that the file gives its name.
    """
    for color in root.iter("color"):
        _repair_color(color, findings)
    for material in list(root.iter("material")):
        _repair_texture(material, packages, findings)
    named = [m for m in root.iter("material") if m.get("name")]
    defined: dict[str, ET.Element] = {}
    conflict = len({m.get("name") for m in root.findall("material")}) < len(
        root.findall("material")
    )
    for material in sorted(named, key=lambda m: m not in root.findall("material")):
        look = material.find("color")
        if look is None:
            look = material.find("texture")
        if look is None:
            continue
        first = defined.setdefault(material.get("name", ""), look)
        if (first.tag, first.attrib) != (look.tag, look.attrib):
            conflict = True
    undefined = [m for m in named if m.get("name") not in defined]
    if not conflict and not undefined:
        return
    for material in undefined:
        findings.note("a material is never defined", material.get("name", ""))
    for material in named:
        if not len(material) and material.get("name") in defined:
            material.append(defined[material.get("name", "")])
        del material.attrib["name"]
    remove(root, [*root.findall("material"), *undefined])


def _repair_color(color: ET.Element, findings: Findings) -> None:
    values = _floats(color.get("rgba", ""))
    if values is None or len(values) not in (3, 4):
        findings.note("a color without four numbers is grey", color.get("rgba", ""))
        values = [0.7, 0.7, 0.7, 1.0]
    # Colors of up to 255 are of another convention.
    top = 255.0 if max(values[:3]) > 1 else 1.0
    rgb = [min(max(value / top, 0.0), 1.0) for value in values[:3]]
    alpha = min(max(values[3], 0.0), 1.0) if len(values) == 4 else 1.0
    if [*rgb, alpha] != values:
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


# --- numbers ---

_NUMBERS = {
    "origin": {"xyz": 3, "rpy": 3},
    "axis": {"xyz": 3},
    "limit": {"lower": 1, "upper": 1, "effort": 1, "velocity": 1},
    "dynamics": {"damping": 1, "friction": 1},
    "mass": {"value": 1},
    "inertia": dict.fromkeys(("ixx", "ixy", "ixz", "iyy", "iyz", "izz"), 1),
    "box": {"size": 3},
    "cylinder": {"radius": 1, "length": 1},
    "capsule": {"radius": 1, "length": 1},
    "sphere": {"radius": 1},
}
"""How many numbers the attributes of an element have."""

_NUMBER = re.compile(r"[-+]?(\d+\.?\d*|\.\d+)([eE][-+]?\d+)?")


def _repair_numbers(root: ET.Element, findings: Findings) -> None:
    """Numbers that other readers take: "0, 1", "pi/2", "-1.57."."""
    for owner, element in _with_owner(root):
        for key, count in _NUMBERS.get(element.tag, {}).items():
            text = element.get(key)
            if text is None:
                continue
            values = _floats(text)
            if values is None:
                values = _odd_numbers(text, count)
                if len(values) == count:
                    element.set(key, " ".join(map(repr, values)))
                    findings.note("a number is written oddly", f"{text!r} of {owner}")
            if len(values) != count:
                numbers = "one number" if count == 1 else f"{count} numbers"
                findings.problem(
                    f"{owner}: <{element.tag} {key}={text!r}> needs {numbers}"
                )


def _odd_numbers(text: str, count: int) -> list[float]:
    """What was meant: arithmetic, or else the digits that are there."""
    parts = [text] if count == 1 else re.split(r"\s*,\s*|\s+", text.strip())
    try:
        return [arithmetic(part) for part in parts]
    except InvalidInput:
        return [float(match.group()) for match in _NUMBER.finditer(text)]


def _with_owner(root: ET.Element) -> Iterator[tuple[str, ET.Element]]:
    """All elements below the links and joints, with what they belong to."""
    for owner in root:
        name = f"{owner.tag} {owner.get('name', '')!r}"
        for element in owner.iter():
            yield name, element


def _number_of(element: ET.Element, key: str) -> float | None:
    """An attribute as a number; None where it is missing or none."""
    try:
        value = float(element.get(key, ""))
    except ValueError:
        return None
    return None if math.isnan(value) else value


def _floats(text: str) -> list[float] | None:
    try:
        return [float(word) for word in text.split()]
    except ValueError:
        return None
