"""The pieces a link is drawn from, and their SDF elements. Lengths in mm."""

from __future__ import annotations

import xml.etree.ElementTree as ET
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from .shapes import Mesh

MESH_URI = "package://drakebots/hamr/meshes/"

COLORS = {  # red, green, blue; ours
    "carbon": (0.20, 0.21, 0.23),
    "link": (0.36, 0.38, 0.42),
    "leg": (0.26, 0.27, 0.30),
    "kapton": (0.93, 0.52, 0.06),
    "piezo": (0.80, 0.56, 0.22),
    "electrode": (0.62, 0.63, 0.65),
    "ceramic": (0.86, 0.85, 0.80),
    "glass": (0.72, 0.76, 0.52),
    "board": (0.03, 0.33, 0.18),
    "gold": (0.88, 0.68, 0.22),
    "chip": (0.12, 0.12, 0.13),
    "solder": (0.70, 0.71, 0.72),
    "passive": (0.62, 0.47, 0.32),
    "foot": (0.94, 0.94, 0.92),
}

TURNS = {"x": (0.0, np.pi / 2, 0.0), "y": (np.pi / 2, 0.0, 0.0), "z": (0.0, 0.0, 0.0)}
"""Roll, pitch, yaw that take a cylinder's z axis to an axis, up to its sign."""


@dataclass(frozen=True)
class Piece:
    """One `<visual>`.

    Attributes:
        name: unique in its link.
        color: a key of :data:`COLORS`.
        shape: "box", "cylinder", "sphere" or "mesh".
        size: box: edges; cylinder: radius, length; sphere: radius [mm].
        p: position in the link (3,) [mm].
        rpy: roll, pitch, yaw [rad].
        mesh: of shape "mesh"; its file is called `file`.
        file: name of the mesh file without ending.
        symmetric_x: whether the mesh is its own mirror image across x = 0, so
            that a half turn mirrors it across y = 0.
    """

    name: str
    color: str
    shape: str
    size: tuple[float, ...] = ()
    p: tuple[float, float, float] = (0.0, 0.0, 0.0)
    rpy: tuple[float, float, float] = (0.0, 0.0, 0.0)
    mesh: Mesh | None = None
    file: str = ""
    symmetric_x: bool = False

    def half_turn(self) -> Piece:
        """Turned by pi about the link's z axis (primitives are symmetric)."""
        x, y, z = self.p
        turned = replace(self, p=(-x, -y, z))
        if self.mesh is None:
            return turned
        return replace(turned, rpy=(0.0, 0.0, np.pi - self.rpy[2]))

    def mirrored_y(self, suffix: str) -> Piece:
        """The mirror image across y = 0; a mesh becomes another file."""
        x, y, z = self.p
        piece = replace(self, p=(x, -y, z))
        if self.mesh is None:
            return piece
        if self.symmetric_x:
            return replace(piece, rpy=(0.0, 0.0, np.pi))
        return replace(piece, mesh=self.mesh.mirrored(1), file=self.file + suffix)

    def element(self) -> ET.Element:
        """The piece as SDF, in m."""
        visual = ET.Element("visual", {"name": self.name})
        pose = (*np.multiply(self.p, 1e-3), *self.rpy)
        if np.any(pose):
            ET.SubElement(visual, "pose").text = _text(pose)
        geometry = ET.SubElement(visual, "geometry")
        shape = ET.SubElement(geometry, self.shape)
        if self.mesh is not None:
            ET.SubElement(shape, "uri").text = f"{MESH_URI}{self.file}.obj"
            ET.SubElement(shape, "scale").text = "0.001 0.001 0.001"
        elif self.shape == "box":
            ET.SubElement(shape, "size").text = _text(np.multiply(self.size, 1e-3))
        else:
            for tag, value in zip(("radius", "length"), self.size):
                ET.SubElement(shape, tag).text = _text([value * 1e-3])
        material = ET.SubElement(visual, "material")
        ET.SubElement(material, "diffuse").text = _text((*COLORS[self.color], 1.0))
        return visual


def _text(values: Sequence[float]) -> str:
    return " ".join(f"{float(v) + 0.0:.9g}" for v in values)


def solid(
    name: str, color: str, mesh: Mesh, file: str, symmetric_x: bool = False
) -> Piece:
    """A piece drawn from a mesh file."""
    return Piece(name, color, "mesh", mesh=mesh, file=file, symmetric_x=symmetric_x)


def block(name: str, color: str, size: Sequence[float], p: Sequence[float]) -> Piece:
    """A box with edges `size` about `p` [mm]."""
    return Piece(name, color, "box", tuple(size), tuple(map(float, p)))


def rod(name: str, color: str, radius: float, length: float, p, axis: str) -> Piece:
    """A cylinder along an axis about `p` [mm]."""
    return Piece(
        name, color, "cylinder", (radius, length), tuple(map(float, p)), TURNS[axis]
    )


def ball(name: str, color: str, radius: float, p: Sequence[float]) -> Piece:
    """A sphere about `p` [mm]."""
    return Piece(name, color, "sphere", (radius,), tuple(map(float, p)))
