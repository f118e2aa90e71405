"""The shapes of links: meshes found and made usable, and those without a size dropped.

Both URDF and SDF have links with <visual> and <collision> elements, each with a
<geometry> of one shape; only a mesh is named differently.
"""

from __future__ import annotations

import copy
import xml.etree.ElementTree as ET
from collections.abc import Callable

from drakebots.core.errors import ModelProblem
from drakebots.model.reading.findings import Findings
from drakebots.model.reading.meshes import collision_mesh, visual_mesh
from drakebots.model.reading.packages import Packages

SIZES = {
    "box": ("size",),
    "cylinder": ("radius", "length"),
    "capsule": ("radius", "length"),
    "ellipsoid": ("radii",),
}
"""What must be > 0 of a shape; Drake stops where it is not."""

SHAPES = {*SIZES, "sphere", "mesh", "drake:capsule", "drake:ellipsoid"}
"""The shapes of a URDF for Drake."""


class Shapes:
    """Makes the shapes of links usable.

    Args:
        packages: where meshes are looked for.
        findings: to add to.
        uri: takes a <mesh> to its URI.
        set_uri: writes a URI into a <mesh>.
    """

    def __init__(
        self,
        packages: Packages,
        findings: Findings,
        uri: Callable[[ET.Element], str],
        set_uri: Callable[[ET.Element, str], None],
    ):
        self.packages, self.findings = packages, findings
        self.uri, self.set_uri = uri, set_uri

    def repair(self, link: ET.Element) -> None:
        """Drops the shapes of a link that cannot be used, and replaces meshes.

        A link that loses all that was drawn of it is drawn by its collision shapes.
        """
        name = link.get("name", "")
        drawn = link.find("visual") is not None
        for kind in ("visual", "collision"):
            for element in link.findall(kind):
                if not self._usable(element, name):
                    link.remove(element)
        if drawn and link.find("visual") is None:
            for k, collision in enumerate(link.findall("collision")):
                link.append(_as_visual(collision, f"{name}_collision_{k}"))
                self.findings.note("drawn by its collision shape", name)

    def make_absolute(self, link: ET.Element) -> None:
        """Writes the paths of all meshes of a link, for a text that has no folder."""
        for mesh in link.findall("*/geometry/mesh"):
            if path := self.packages.find(self.uri(mesh)):
                self.set_uri(mesh, f"file://{path}")

    def _usable(self, element: ET.Element, link: str) -> bool:
        geometry = element.find("geometry")
        shape = None if geometry is None or not len(geometry) else geometry[0]
        if shape is None:
            self.findings.note(f"a <{element.tag}> without a shape is left out", link)
            return False
        if shape.tag == "mesh":
            return self._usable_mesh(shape, element, link)
        if any(not _positive(shape, key) for key in SIZES.get(shape.tag, ())):
            line = f"a <{shape.tag}> without a size is left out"
            self.findings.note(line, link)
            return False
        return True

    def _usable_mesh(self, mesh: ET.Element, element: ET.Element, link: str) -> bool:
        uri, kind = self.uri(mesh), element.tag
        path = self.packages.find(uri)
        if path is None:
            line = f"a {kind} mesh is not found and left out"
            if uri.startswith(("package://", "model://")):
                line += " (--package NAME=FOLDER says where a package is)"
            self.findings.note(line, uri)
            return False
        try:
            if kind == "visual":
                usable = visual_mesh(path)
            else:
                usable = collision_mesh(path, hull=not _is_hydroelastic(element))
        except ModelProblem as error:
            _, _, reason = str(error).partition(": ")
            line = f"a {kind} mesh is left out, which {reason}"
            self.findings.note(line, path.name)
            return False
        if usable != path or not self.packages.is_plain(uri, path):
            self.set_uri(mesh, f"file://{usable}")
        return True


def _positive(shape: ET.Element, key: str) -> bool:
    """Whether all numbers of an attribute or a child are > 0."""
    text = shape.get(key)
    if text is None:
        text = shape.findtext(key, "")
    try:
        sizes = [float(word) for word in text.split()]
    except ValueError:
        return True  # Drake names what is wrong.
    return all(size > 0 for size in sizes)


def _is_hydroelastic(collision: ET.Element) -> bool:
    tags = ("drake:rigid_hydroelastic", "drake:compliant_hydroelastic")
    return any(element.tag in tags for element in collision.iter())


def _as_visual(collision: ET.Element, name: str) -> ET.Element:
    """A <visual> of the shape and the pose of a <collision>."""
    visual = ET.Element("visual", {"name": name})
    kept = ("origin", "pose", "geometry")
    visual.extend(copy.deepcopy(e) for e in collision if e.tag in kept)
    return visual
