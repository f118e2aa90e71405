"""SDF as robots' authors write it: meshes found and converted, includes found.

libsdformat reads old versions. Of what it does not know it passes over some, which
comes back as notes (:mod:`drakebots.formats.read.findings`), and refuses the rest.
"""

from __future__ import annotations

import re
import xml.etree.ElementTree as ET

from pydrake.multibody.parsing import Parser
from pydrake.multibody.plant import MultibodyPlant

from drakebots.formats.read.files import Packages
from drakebots.formats.read.findings import Findings, note_ignored_tags, words
from drakebots.formats.read.masses import WORLD, fix_weightless, repair_inertia
from drakebots.formats.read.meshes import repair_shapes
from drakebots.formats.read.tree import (
    child_of,
    cut_loops,
    floats,
    leave_out,
    link_at,
    name_file,
    named_file,
    remove,
    rename_taken,
    say,
    write_tree,
)
from drakebots.formats.read.urdf import mimic_of, repair_mimics
from drakebots.model import DRAKE_REFUSALS, Loop, heard


def repair_sdf(
    root: ET.Element, packages: Packages, findings: Findings
) -> tuple[Loop, ...]:
    """Changes the tree of an SDF in place, and returns the loops it cuts.

    Args:
        root: its <sdf>, from :func:`drakebots.formats.read.tree.read_tree`.
        packages: folders of its meshes and included files.
        findings: to add to.
    """
    note_ignored_tags(root, findings, urdf=False)
    for joint in root.iter("joint"):
        for friction in joint.iterfind("*/dynamics/friction"):
            if any(floats(friction.text or "") or ()):
                findings.note("Drake ignores joint friction", joint.get("name", ""))
    gearboxes = [e for e in root.iter("joint") if e.get("type") == "gearbox"]
    leave_out(root, gearboxes, findings, "a gearbox joint is left out")
    loops = cut_loops(root, findings)
    for model in root.iter("model"):
        fix_weightless(model, findings, default="1")  # as libsdformat has it
        _free_lifts(model, findings)
        _couple(model, findings)
    _drop_unknown(root, findings)
    for link in root.iter("link"):
        for kind in ("visual", "collision"):
            line = f"a {kind} of a name taken is renamed"
            rename_taken(link.findall(kind), findings, line)
        mass = floats(link.findtext("inertial/mass", "1"))
        if mass:
            repair_inertia(link, mass[0], findings, diagonal="1")
        _repair_friction(link, findings)
        repair_shapes(link, packages, findings)
    for include in root.iter("include"):
        uri = named_file(include)
        path = packages.find(uri)
        if path is None:
            findings.problem(
                f"<include> of {uri!r}: no such file; give its folder by "
                "--package NAME=FOLDER"
            )
        elif not packages.is_plain(uri, path):
            name_file(include, f"file://{path}")
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
        say(ode, "mu2", ode.findtext("mu", "1"))
        line = "<mu2>, which Drake takes for sliding, is above <mu>: it becomes <mu>"
        findings.note(line, link.get("name", ""))


def _unpowered(axis: ET.Element) -> bool:
    """Gives an axis that states no effort an effort of 0, which Drake gives no motor.

    Returns:
        Whether it stated none.
    """
    if axis.find("limit/effort") is not None:
        return False
    say(child_of(axis, "limit"), "effort", "0")
    return True


def _free_lifts(model: ET.Element, findings: Findings) -> None:
    """Slides up from the world, without a word on effort, get no motor.

    Authors hang legged robots on them. Drake reads a missing effort as one without a
    limit, and such a motor would carry the robot.
    """
    for joint in model.findall("joint"):
        lifts = joint.get("type") == "prismatic" and link_at(joint, "parent") == WORLD
        axis = joint.find("axis") if lifts else None
        is_up = axis is not None and floats(axis.findtext("xyz", "0 0 1")) == [0, 0, 1]
        if is_up and _unpowered(axis):
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
        if mimic_of(joint) is not None and axis is not None:
            _unpowered(axis)


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
"""Messages of libsdformat on an element or an attribute of another simulator."""


def _drop_unknown(root: ET.Element, findings: Findings) -> None:
    """Leaves out what libsdformat refuses because it does not know it.

    Drake parses the file for that once more, unless all that it has is usual.
    """
    tags = {element.tag for element in root.iter()} - words("sdf_tags")
    attributes = {key for e in root.iter() for key in e.attrib}
    attributes -= words("sdf_attributes")
    if all(":" in name for name in tags | attributes):
        return
    while True:
        plant = MultibodyPlant(1e-3)  # Parser does not keep it alive.
        try:
            with heard():
                Parser(plant).AddModelsFromString(write_tree(root), "sdf")
            return
        except DRAKE_REFUSALS as error:
            match = _UNKNOWN.search(str(error))
        if match is None:
            return  # It is reported when the model is parsed.
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
