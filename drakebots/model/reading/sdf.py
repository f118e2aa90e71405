"""SDF as robots' authors write it: meshes found and converted, includes found.

libsdformat reads old versions. Of what it does not know it passes over some, which
comes back as notes (:mod:`drakebots.model.reading.messages`), and refuses the rest.
"""

from __future__ import annotations

import re
import xml.etree.ElementTree as ET

from pydrake.multibody.parsing import Parser
from pydrake.multibody.plant import MultibodyPlant

from drakebots.model.loops import Loop
from drakebots.model.reading.cuts import cut_loops, link_at
from drakebots.model.reading.findings import Findings
from drakebots.model.reading.inertias import MOMENTS, repair_inertia
from drakebots.model.reading.messages import heard
from drakebots.model.reading.packages import Packages
from drakebots.model.reading.shapes import Shapes
from drakebots.model.reading.tags import SDF_ATTRIBUTES, SDF_TAGS, note_ignored_tags
from drakebots.model.reading.tree import remove, write_tree
from drakebots.model.reading.urdf.joints import free_name, mimic_of, repair_mimics
from drakebots.model.reading.urdf.numbers import floats
from drakebots.model.reading.weightless import WORLD, fix_weightless


def repair_sdf(
    root: ET.Element, packages: Packages, findings: Findings
) -> tuple[Loop, ...]:
    """Changes the tree of an SDF in place, and returns the loops it cuts.

    Args:
        root: its <sdf>, from :func:`drakebots.model.reading.tree.read_tree`.
        packages: where its meshes and included files are looked for.
        findings: to add to.
    """
    note_ignored_tags(root, findings, urdf=False)
    gearboxes = [e for e in root.iter("joint") if e.get("type") == "gearbox"]
    for joint in gearboxes:
        findings.note("a gearbox joint is left out", joint.get("name", ""))
    remove(root, gearboxes)
    loops = cut_loops(root, findings, urdf=False)
    for model in root.iter("model"):
        _fix_weightless(model, findings)
        _free_lifts(model, findings)
        _couple(model, findings)
    _drop_unknown(root, findings)
    shapes = _shapes(packages, findings)
    for link in root.iter("link"):
        _rename(link, findings)
        _repair_inertial(link, findings)
        _repair_friction(link, findings)
        shapes.repair(link)
    for include in root.iter("include"):
        uri = _uri(include)
        path = packages.find(uri)
        if path is None:
            findings.problem(
                f"<include> of {uri!r}: no such file; give its folder by "
                "--package NAME=FOLDER"
            )
        elif not packages.is_plain(uri, path):
            _set_uri(include, f"file://{path}")
    return loops


def _repair_friction(link: ET.Element, findings: Findings) -> None:
    """Makes <mu2> no larger than <mu> in a link's shapes.

    They are ODE's coefficients in two directions, 1 by default; Drake takes them for
    sticking and sliding, and refuses a file that says <mu> 0.9 alone.
    """
    for ode in link.iterfind("collision/surface/friction/ode"):
        mu, mu2 = (floats(ode.findtext(key, "1")) for key in ("mu", "mu2"))
        if not (mu and mu2 and mu2[0] > mu[0] >= 0):
            continue
        second = ode.find("mu2")
        second = ET.SubElement(ode, "mu2") if second is None else second
        second.text = ode.findtext("mu", "1")
        line = "<mu2>, which Drake takes for sliding, is above <mu>: it becomes <mu>"
        findings.note(line, link.get("name", ""))


def _fix_weightless(model: ET.Element, findings: Findings) -> None:
    """Fixes joints and roots that move no mass; without a word SDF makes it 1 kg."""
    masses = {}
    for link in model.findall("link"):
        try:
            mass = float(link.findtext("inertial/mass", "1"))
        except ValueError:
            return  # libsdformat names it.
        masses[link.get("name", "")] = mass
    if all(mass > 0 for mass in masses.values()):
        return
    joints = [e for e in model if e.tag in ("joint", "drake:joint")]
    for link in fix_weightless(model, joints, masses, findings):
        joint = ET.SubElement(model, "joint", {"name": f"{link}_to_world"})
        joint.set("type", "fixed")
        ET.SubElement(joint, "parent").text = WORLD
        ET.SubElement(joint, "child").text = link


def _free_lifts(model: ET.Element, findings: Findings) -> None:
    """Slides up from the world, without a word on effort, get no motor.

    Authors hang legged robots on them. Drake reads a missing effort as one without a
    limit, and such a motor would carry the robot.
    """
    for joint in model.findall("joint"):
        axis = joint.find("axis")
        if joint.get("type") != "prismatic" or link_at(joint, "parent") != WORLD:
            continue
        if axis is None or axis.find("limit/effort") is not None:
            continue
        if floats(axis.findtext("xyz", "0 0 1")) != [0, 0, 1]:
            continue
        limit = axis.find("limit")
        limit = ET.SubElement(axis, "limit") if limit is None else limit
        ET.SubElement(limit, "effort").text = "0"
        line = "a slide up from the world that states no effort gets no motor"
        findings.note(line, joint.get("name", ""))


def _couple(model: ET.Element, findings: Findings) -> None:
    """SDF's <mimic> of an axis in Drake's own tag: Drake passes over SDF's.

    SDF has q = multiplier (q_leader - reference) + offset. A joint that follows, and
    states no effort, gets no motor.
    """
    joints = model.findall("joint")
    for joint in joints:
        axis = joint.find("axis")
        mimic = None if axis is None else axis.find("mimic")
        if mimic is not None:
            axis.remove(mimic)
            if mimic_of(joint) is None:
                joint.append(_drake_mimic(joint, mimic, findings))
    repair_mimics(joints, findings)
    for joint in joints:
        axis = joint.find("axis")
        if mimic_of(joint) is None or axis is None:
            continue
        if axis.find("limit/effort") is None:
            limit = axis.find("limit")
            limit = ET.SubElement(axis, "limit") if limit is None else limit
            ET.SubElement(limit, "effort").text = "0"


def _drake_mimic(
    joint: ET.Element, mimic: ET.Element, findings: Findings
) -> ET.Element:
    """A <drake:mimic> that says what an SDF's <mimic> says."""
    texts = [
        mimic.findtext(key, default)
        for key, default in (("multiplier", "1"), ("offset", "0"), ("reference", "0"))
    ]
    found = ET.Element("drake:mimic", {"joint": mimic.get("joint", "")})
    values = floats(" ".join(texts))
    if values is None or len(values) != 3:
        findings.problem(
            f"joint {joint.get('name')!r}: multiplier, offset and reference of its "
            f"<mimic> are {', '.join(map(repr, texts))}; write numbers"
        )
        return found
    gear, offset, reference = values
    found.set("multiplier", repr(gear))
    found.set("offset", repr(offset - gear * reference))
    return found


_UNKNOWN = re.compile(
    r"XML Element\[([\w:]+)\], child of element\[([\w:]+)\], not defined"
    r"|XML Attribute\[([\w:]+)\] in element\[([\w:]+)\] not defined"
)
"""How libsdformat refuses an element or an attribute of another simulator."""


def _drop_unknown(root: ET.Element, findings: Findings) -> None:
    """Leaves out what libsdformat refuses because it does not know it.

    Drake parses the file for that once more, unless all that it has is usual.
    """
    tags = {element.tag for element in root.iter()} - SDF_TAGS
    attributes = {key for e in root.iter() for key in e.attrib} - SDF_ATTRIBUTES
    if all(":" in name for name in tags | attributes):
        return
    while True:
        plant = MultibodyPlant(1e-3)  # Parser does not keep it alive.
        try:
            with heard():
                Parser(plant).AddModelsFromString(write_tree(root), "sdf")
            return
        except (RuntimeError, ValueError, LookupError, SystemExit) as error:
            match = _UNKNOWN.search(str(error))
        if match is None:
            return  # It is told when the model is parsed.
        child, parent, attribute, owner = match.groups()
        if child:
            found = [e for p in root.iter(parent) for e in p.findall(child)]
            remove(root, found)
            findings.note("Drake ignores", f"<{child}>", len(found))
        else:
            found = [e for e in root.iter(owner) if e.attrib.pop(attribute, None)]
            findings.note("Drake ignores", f"{owner} {attribute}", len(found))
        if not found:
            return


def _rename(link: ET.Element, findings: Findings) -> None:
    """Shapes of one kind that share a name, which libsdformat refuses."""
    for kind in ("visual", "collision"):
        taken: set[str] = set()
        for shape in link.findall(kind):
            name = shape.get("name", "")
            if name in taken:
                shape.set("name", free_name(name, taken))
                findings.note(f"a {kind} of a name taken is renamed", shape.get("name"))
            taken.add(shape.get("name", ""))


def _repair_inertial(link: ET.Element, findings: Findings) -> None:
    tensor = link.find("inertial/inertia")
    if tensor is None:
        return
    try:
        mass = float(link.findtext("inertial/mass", "1"))
        moments = {
            key: float(tensor.findtext(key, "1" if key[1] == key[2] else "0"))
            for key in MOMENTS
        }
    except ValueError:
        return  # libsdformat names it.
    name = link.get("name", "")
    for key, value in repair_inertia(name, mass, moments, findings).items():
        element = tensor.find(key)
        if element is None:
            element = ET.SubElement(tensor, key)
        element.text = repr(value)


def make_sdf_absolute(root: ET.Element, packages: Packages) -> None:
    """Writes the paths of meshes and included files, for a text that has no folder."""
    shapes = _shapes(packages, Findings())
    for link in root.iter("link"):
        shapes.make_absolute(link)
    for include in root.iter("include"):
        if path := packages.find(_uri(include)):
            _set_uri(include, f"file://{path}")


def _shapes(packages: Packages, findings: Findings) -> Shapes:
    return Shapes(packages, findings, uri=_uri, set_uri=_set_uri)


def _uri(element: ET.Element) -> str:
    return element.findtext("uri", "").strip()


def _set_uri(element: ET.Element, text: str) -> None:
    uri = element.find("uri")
    if uri is None:
        uri = ET.SubElement(element, "uri")
    uri.text = text
