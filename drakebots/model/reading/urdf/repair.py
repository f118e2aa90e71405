"""URDF as robots' authors write it, made into what Drake's parser accepts.

Names, inertia, shapes and materials are repaired here; joints and numbers have files of
their own. What is changed is noted; what cannot be meant is a problem by name.
"""

from __future__ import annotations

import xml.etree.ElementTree as ET
from collections import Counter

from drakebots.model.loops import Loop
from drakebots.model.reading.cuts import cut_loops, link_at
from drakebots.model.reading.findings import Findings
from drakebots.model.reading.inertias import MOMENTS, repair_inertia
from drakebots.model.reading.packages import Packages
from drakebots.model.reading.shapes import SHAPES, Shapes
from drakebots.model.reading.tags import note_ignored_tags
from drakebots.model.reading.tree import remove
from drakebots.model.reading.urdf.joints import (
    free_name,
    joints_of,
    repair_joint,
    repair_mimics,
    repair_transmissions,
)
from drakebots.model.reading.urdf.numbers import floats, number, repair_numbers
from drakebots.model.reading.urdf.turn import turn_root
from drakebots.model.reading.weightless import WORLD, fix_weightless


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
        root: its <robot>, from :func:`drakebots.model.reading.tree.read_tree`.
        packages: where its meshes are looked for.
        findings: to add to.
        name: of a robot that has none.
        up: the axis that points up in it; see
            :func:`drakebots.model.reading.urdf.turn.turn_root`.
    """
    if any(key.startswith("xmlns:xacro") for key in root.attrib) and any(
        element.tag.startswith("xacro:") for element in root.iter()
    ):
        findings.problem("is a xacro file; expand it first: xacro FILE > robot.urdf")
        return ()
    if not root.get("name"):
        root.set("name", name)
    note_ignored_tags(root, findings, urdf=True)
    repair_numbers(root, findings)
    if up != "z" and not findings.problems:
        turn_root(root, up)
    links, joints = root.findall("link"), joints_of(root)
    _check_names(links, joints, findings)
    for joint in joints:
        repair_joint(joint, findings)
    loops = () if findings.problems else cut_loops(root, findings, urdf=True)
    joints = joints_of(root)
    _fix_weightless(root, joints, findings)
    repair_mimics(joints, findings)
    repair_transmissions(root, joints, findings)
    for link in links:
        _repair_inertial(link, findings)
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
            joint.set("name", free_name(name, taken))
            findings.note("a joint of a name taken is renamed", joint.get("name", ""))
        taken.add(joint.get("name", ""))
        for end in ("parent", "child"):
            link = link_at(joint, end)
            if link not in names and link != WORLD:
                findings.problem(
                    f"joint {name!r} has {link!r} as its {end}, "
                    "which is no link; correct it"
                )


# --- inertia and shapes ---


def _fix_weightless(
    root: ET.Element, joints: list[ET.Element], findings: Findings
) -> None:
    """Fixes joints and roots that move no mass."""
    masses = {}
    for link in root.findall("link"):
        mass = link.find("inertial/mass")
        kg = 0.0 if mass is None else number(mass, "value") or 0.0
        masses[link.get("name", "")] = kg
    names = {joint.get("name", "") for joint in joints}
    for link in fix_weightless(root, joints, masses, findings):
        name = free_name(f"{link}_to_world", names)
        joint = ET.SubElement(root, "joint", {"name": name, "type": "fixed"})
        ET.SubElement(joint, "parent", {"link": WORLD})
        ET.SubElement(joint, "child", {"link": link})


def _repair_inertial(link: ET.Element, findings: Findings) -> None:
    name, inertial = link.get("name", ""), link.find("inertial")
    if inertial is None:
        return
    if name == "world":
        link.remove(inertial)
        findings.note("the inertia of the world is not used")
        return
    element, tensor = inertial.find("mass"), inertial.find("inertia")
    mass = None if element is None else number(element, "value")
    if mass is None:
        findings.problem(f"link {name!r} has <inertial> without a mass; give one")
    elif tensor is not None:
        moments = {key: number(tensor, key) or 0.0 for key in MOMENTS}
        for key, value in repair_inertia(name, mass, moments, findings).items():
            tensor.set(key, repr(value))


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
    """Its <color>, or else its <texture>."""
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
