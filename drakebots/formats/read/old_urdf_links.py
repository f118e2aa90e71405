"""The links of an old URDF: inertia, shapes, point feet, colors."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
from pydrake.math import RollPitchYaw, RotationMatrix

from drakebots.core.units import Scaling
from drakebots.formats.read.masses import matrix_of, principal_inertia
from drakebots.formats.read.strict_xml import Element
from drakebots.formats.read.tree import MOMENTS
from drakebots.formats.write.sdf import SdfGeometry, SdfLink, SdfPose

FOOT_RADIUS = 1e-9
"""Radius of the sphere that stands for a point foot [m]; libsdformat reads a
radius of zero as 1 m."""

_MESHES = (".obj", ".gltf", ".vtk", ".stl")
_MIN_MESH_SCALE = 1e-8  # Drake refuses smaller ones
_ROUNDING = 1e-12
"""Largest violation of a rigid body's conditions that is mended, over the trace of its
inertia, which is raised by that amount, since libsdformat allows only 1e-15."""

_THIN = 1e-6
"""Moments of a thin rod or plate are nearer than this to the limit of what is physical,
relative to the trace."""


def pose(element: Element, units: Scaling) -> SdfPose:
    """The attributes `xyz` and `rpy` of an element, zero where missing."""
    p, rpy = (element.numbers(key, 3, [0, 0, 0]) for key in ("xyz", "rpy"))
    return SdfPose(p * units.length, rpy)


def origin(element: Element, units: Scaling) -> SdfPose:
    """The pose in the child `<origin>` of an element."""
    return pose(element.part("origin", needed=False), units)


class LinkReader:
    """Collects the links of one file.

    Args:
        path: the file; its meshes are relative to it.
        units: of the file's numbers.

    Attributes:
        links: by name.
        feet: the link and the point (3,) in it [m], by name.
        notes: parts that were left out, one line each.
        colors: the rgba (4,) of each named material.
    """

    def __init__(self, path: Path, units: Scaling):
        self.path, self.units = path, units
        self.links: dict[str, SdfLink] = {}
        self.feet: dict[str, tuple[str, np.ndarray]] = {}
        self.notes: list[str] = []
        self.colors: dict[str, np.ndarray] = {}

    def note(self, element: Element, message: str) -> None:
        """Notes something about an element that was left out."""
        self.notes.append(f"<{element.tag}> (line {element.line}): {message}")

    def read_color(self, element: Element) -> None:
        """Reads a `<material>`; the first color of a name counts."""
        for texture in element.findall("texture"):
            self.note(texture, "texture ignored")
        for color in element.findall("color")[:1]:
            rgba = element.part("color").numbers("rgba", 4)
            if (rgba < 0).any() or (rgba > 1).any():
                raise color.problem("rgba must be in 0 .. 1; correct it")
            self.colors.setdefault(element.given("name", ""), rgba)

    def read_link(self, element: Element) -> None:
        """Reads a `<link>` into `links` and `feet`."""
        name = element.name()
        if name == "world":
            if len(element):
                raise element.problem("the world has no inertia or shapes; use a link")
            return
        mass, com, inertia = self._inertial(element)
        geometries = [
            geometry
            for index, child in enumerate(element)
            if child.tag != "inertial"
            and (geometry := self._geometry(child, f"{name}_{child.tag}_{index}"))
        ]
        taken = [geometry.name for geometry in geometries]
        for geometry in geometries:
            if taken.count(geometry.name) > 1:
                raise element.problem(f"two shapes are named {geometry.name!r}; rename")
        self.links[name] = SdfLink(name, mass, com, inertia, geometries)
        foot = ("collision", "sphere", FOOT_RADIUS)
        shapes = [(g, (g.kind, g.shape, g.values.get("radius"))) for g in geometries]
        feet = [g for g, shape in shapes if shape == foot]
        for index, geometry in enumerate(feet):
            own = name if len(feet) == 1 else f"{name}_{index}"
            if own in self.feet:
                raise element.problem(f"two feet are named {own!r}; rename the link")
            geometry.pose.p.setflags(write=False)
            self.feet[own] = (name, geometry.pose.p)

    def _inertial(self, link: Element) -> tuple[float, SdfPose, np.ndarray]:
        name = link.attrib["name"]
        if link.find("inertial") is None:
            self.note(link, f"link {name!r} has no mass")
            return 0.0, SdfPose(), np.zeros((3, 3))
        element = link.part("inertial")
        pose = origin(element, self.units)
        mass = element.part("mass").not_negative("value") * self.units.mass
        tensor = element.part("inertia")
        moments = [tensor.number(k, None if k[1] == k[2] else 0.0) for k in MOMENTS]
        inertia = matrix_of(moments)
        if mass == 0 and inertia.any():
            raise tensor.problem(f"link {name!r} has inertia but mass 0; give it mass")
        if mass == 0:
            self.note(link, f"link {name!r} has no mass")
        inertia = _physical(inertia, tensor, name)
        pose, inertia = _on_axes(pose, inertia)
        return mass, pose, inertia * self.units.inertia

    def _geometry(self, element: Element, name: str) -> SdfGeometry | None:
        if "group" in element.attrib:
            self.note(element, f"collision group {element.get('group')!r} ignored")
        if "name" in element.attrib:
            name = element.name()
        pose = origin(element, self.units)
        holder = element.part("geometry")
        if len(holder) != 1:
            raise holder.problem(f"has {len(holder)} shapes; give it one")
        shape = holder[0]
        values = self._shape(element, shape)
        if values is None:
            return None
        rgba = None
        if element.find("material") is not None and element.tag == "visual":
            rgba = self._rgba(element.part("material"))
        return SdfGeometry(element.tag, name, pose, shape.tag, values, rgba)

    def _rgba(self, material: Element) -> np.ndarray | None:
        if material.find("color") is not None:
            return material.part("color").numbers("rgba", 4)
        name = material.given("name", "")
        if name not in self.colors:
            self.note(material, f"material {name!r} has no color, ignored")
        return self.colors.get(name)

    def _shape(self, element: Element, shape: Element) -> dict[str, object] | None:
        unit = self.units.length
        if shape.tag == "mesh":
            return self._mesh(element.tag, shape)
        if shape.tag == "box":
            size = shape.numbers("size", 3)
            if (size <= 0).any():
                raise shape.problem("size must be > 0; correct it, or drop the box")
            return {"size": size * unit}
        if shape.tag == "sphere":
            radius = shape.not_negative("radius") * unit
            if radius == 0 and element.tag == "collision":
                return {"radius": FOOT_RADIUS}
            if radius == 0:
                self.note(shape, "a visual sphere of radius 0 is dropped")
                return None
            return {"radius": radius}
        return {key: shape.positive(key) * unit for key in ("radius", "length")}

    def _mesh(self, kind: str, mesh: Element) -> dict[str, object] | None:
        filename = mesh.given("filename")
        scale = mesh.numbers("scale", (1, 3), [1, 1, 1]) * self.units.length
        scale = np.broadcast_to(scale, (3,))
        if (np.abs(scale) < _MIN_MESH_SCALE).any():
            raise mesh.problem(f"scale is below {_MIN_MESH_SCALE} m; correct it")
        file = self.path.parent.absolute() / filename.removeprefix("file://")
        if not os.path.isfile(file) or not str(file).isprintable():
            self.note(mesh, f"mesh {filename!r} not found, {kind} dropped")
            return None
        if file.suffix.lower() not in _MESHES:
            known = " ".join(_MESHES)
            self.note(mesh, f"mesh {filename!r} is none of {known}, {kind} dropped")
            return None
        return {"uri": f"file://{file}", "scale": scale}


def _physical(inertia: np.ndarray, element: Element, link: str) -> np.ndarray:
    """A (3, 3) inertia, checked, and raised above rounding errors."""
    moments = np.linalg.eigvalsh(inertia)
    slack = _ROUNDING * abs(np.trace(inertia))
    if moments[0] < -slack:
        raise element.problem(
            f"the inertia of link {link!r} is not positive: its principal moments "
            f"are {_three(moments)}; correct it"
        )
    excess = moments[2] - moments[0] - moments[1]
    if excess > slack:
        raise element.problem(
            f"no body has the inertia of link {link!r}: of its principal moments "
            f"{_three(moments)} the last exceeds the sum of the others; correct it"
        )
    lift = max(0.0, -moments[0], excess)
    return inertia + (lift + 1e-15 * np.trace(inertia) * (lift > 0)) * np.eye(3)


def _on_axes(frame: SdfPose, inertia: np.ndarray) -> tuple[SdfPose, np.ndarray]:
    """Turns the inertia of a thin rod or plate onto its principal axes.

    libsdformat's principal moments of a full matrix are good to about 1e-8 only,
    which makes it refuse bodies this near to the limit of what is physical.
    """
    moments, axes = principal_inertia(inertia)
    low, middle, high = np.sort(moments)
    is_thin = min(low, low + middle - high) <= _THIN * np.trace(inertia)
    if np.array_equal(axes, np.eye(3)) or not is_thin:
        return frame, inertia
    R = RollPitchYaw(frame.rpy).ToRotationMatrix().multiply(RotationMatrix(axes))
    return SdfPose(frame.p, RollPitchYaw(R).vector()), np.diag(moments)


def _three(values: np.ndarray) -> str:
    return ", ".join(f"{value:.9g}" for value in values)
