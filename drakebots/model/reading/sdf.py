"""SDF as robots' authors write it: meshes found and converted, includes found.

libsdformat reads old versions and names elements that it does not know; those come
back as notes (:mod:`drakebots.model.reading.messages`).
"""

from __future__ import annotations

import xml.etree.ElementTree as ET

from drakebots.model.loops import Loop
from drakebots.model.reading.cuts import cut_loops
from drakebots.model.reading.findings import Findings
from drakebots.model.reading.inertias import MOMENTS, repair_inertia
from drakebots.model.reading.packages import Packages
from drakebots.model.reading.shapes import Shapes
from drakebots.model.reading.tags import note_ignored_tags
from drakebots.model.reading.tree import remove


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
    shapes = _shapes(packages, findings)
    for link in root.iter("link"):
        _repair_inertial(link, findings)
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
