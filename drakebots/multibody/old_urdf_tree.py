"""Reads the joints of an old URDF, and checks that they make one tree."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from drakebots.multibody import sdf_writer as sdf
from drakebots.multibody.old_urdf_links import LinkReader, origin, pose
from drakebots.multibody.strict_xml import Element
from drakebots.units import Scaling

MOVING = ("revolute", "continuous", "prismatic")
"""The joint types with one coordinate."""


class TreeReader:
    """Collects the links, joints and frames of one file.

    Attributes:
        model: what has been read, in SI.
        links: the reader of links, which also keeps feet and notes.
    """

    def __init__(self, path: Path, units: Scaling):
        self.path, self.units = path, units
        self.links = LinkReader(path, units)
        self.note = self.links.note
        self.model = sdf.Model("", self.links.links)
        self.taken: dict[str, int] = {}  # names of links, joints, frames: line
        self.lines: dict[str, Element] = {}  # the elements of joints
        self.parents: dict[str, str] = {}  # of links, floating ones included

    def take_name(self, element: Element, space: str = "") -> None:
        """Checks the name of an element, which must be new in its space."""
        name = space + element.name()
        if name in self.taken:
            raise element.problem(
                f"the name is taken by line {self.taken[name]}; SDF needs another for "
                "every link, joint and frame, so rename one"
            )
        self.taken[name] = element.line

    def link_name(self, element: Element, key: str = "link") -> str:
        """The attribute `key`, which must name a link or the world."""
        name = element.text(key)
        if name != "world" and name not in self.model.links:
            raise element.problem(
                f"there is no link {name!r}; correct {key}, or add the link"
            )
        return name

    def read_frame(self, element: Element) -> None:
        """Reads a `<frame>` into `model`."""
        element.check("name link xyz rpy")
        link = self.link_name(element)
        self.model.frames.append((element.name(), link, pose(element, self.units)))

    def read_joint(self, element: Element) -> None:
        """Reads a `<joint>` into `model`, and the pose of its child."""
        element.check("name type", "parent child origin axis limit dynamics")
        name, kind = element.name(), element.text("type")
        if kind not in (*MOVING, "fixed", "floating"):
            raise element.problem(
                f"unknown joint type {kind!r}; choose one of: "
                f"{', '.join(MOVING)}, fixed, floating"
            )
        ends = [element.one(tag) for tag in ("parent", "child")]
        for end in ends:
            end.check("link")
        parent, child = (self.link_name(end) for end in ends)
        if child == "world" or child == parent:
            raise element.problem(f"{child!r} cannot be its child; correct it")
        if child in self.parents:
            raise element.problem(
                f"link {child!r} is the child of a second joint; write one of the "
                "joints as a <loop_joint>"
            )
        self.parents[child] = parent
        link = self.model.links[child]
        link.pose = origin(element, self.units)
        link.relative_to = None if parent == "world" else parent
        self.lines[name] = element
        if kind == "floating":
            self.note(element, f"floating joint {name!r}: {child!r} is a free body")
        still = kind not in MOVING
        joint = sdf.Joint(name, kind, parent, child, self.axis(element, still))
        self._read_limit(element, joint)
        self._read_dynamics(element, joint)
        if kind != "floating":
            self.model.joints[name] = joint

    def axis(self, element: Element, still: bool = False) -> np.ndarray:
        """The unit vector (3,) of the child `<axis>`, x where missing."""
        axis = element.optional("axis")
        if axis is None:
            return np.array([1.0, 0.0, 0.0])
        axis.check("xyz")
        value = axis.numbers("xyz", 3, [1, 0, 0])
        norm = np.linalg.norm(value)
        if norm < 1e-9 and not still:
            raise axis.problem(
                f"the axis of {element.attributes['name']!r} is zero; give it a "
                "direction"
            )
        return value / max(norm, 1e-9)

    def _read_limit(self, element: Element, joint: sdf.Joint) -> None:
        limit = element.optional("limit")
        if limit is None:
            return
        limit.check("lower upper velocity effort")
        slides = joint.type == "prismatic"
        length = self.units.length if slides else 1.0
        force = self.units.force if slides else self.units.torque
        for key in ("lower", "upper"):
            if key in limit.attributes:
                joint.limit[key] = limit.number(key) * length
        for key, unit in (("velocity", length / self.units.time), ("effort", force)):
            if key in limit.attributes:
                joint.limit[key] = limit.not_negative(key) * unit
        lower, upper = joint.limit.get("lower"), joint.limit.get("upper")
        if lower is not None and upper is not None and lower > upper:
            raise limit.problem(
                f"lower exceeds upper in joint {joint.name!r}; swap them"
            )
        if joint.type == "continuous" and (lower, upper) != (None, None):
            raise limit.problem(
                f"continuous joint {joint.name!r} has limits; make it revolute"
            )

    def _read_dynamics(self, element: Element, joint: sdf.Joint) -> None:
        dynamics = element.optional("dynamics")
        if dynamics is None:
            return
        dynamics.check("damping friction coulomb_window")
        joint.damping = dynamics.not_negative("damping", 0.0) * self._per_speed(joint)
        for key in ("friction", "coulomb_window"):
            if dynamics.not_negative(key, 0.0) > 0:
                self.note(dynamics, f"{key} of joint {joint.name!r} ignored")

    def _per_speed(self, joint: sdf.Joint) -> float:
        units = self.units
        if joint.type == "prismatic":
            return units.of(mass=1, time=-1)
        return units.torque * units.time

    def check_tree(self, root: Element) -> None:
        """Raises unless the joints make one tree of all links."""
        links = self.model.links
        if not links:
            raise root.problem("has no <link>; add one")
        # A link that reaches no root is on a cycle, or hangs from one.
        safe = {"world"} | {name for name in links if name not in self.parents}
        for name in links:
            path: dict[str, None] = {}
            while name not in safe and name not in path:
                path[name] = None
                name = self.parents[name]
            if name in path:
                raise root.problem(
                    f"the joints make a cycle through link {name!r}; write one of "
                    "them as a <loop_joint>"
                )
            safe.update(path)
        roots = [name for name in links if name not in self.parents]
        if "world" in self.parents.values():
            roots.append("world")
        if len(roots) > 1:
            raise root.problem(
                f"has {len(roots)} roots: {', '.join(roots[:5])}; join them by joints"
            )
