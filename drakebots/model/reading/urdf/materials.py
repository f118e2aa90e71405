"""Materials of a URDF: colors and textures by names that other readers take."""

from __future__ import annotations

import xml.etree.ElementTree as ET

from drakebots.model.reading.findings import Findings
from drakebots.model.reading.packages import Packages
from drakebots.model.reading.tree import remove
from drakebots.model.reading.urdf.numbers import floats


def repair_materials(root: ET.Element, packages: Packages, findings: Findings) -> None:
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
