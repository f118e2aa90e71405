"""Closed loops of a URDF in the YAML of the toolbox for parallel robots.

Beside `robot.urdf` lies `robot.yaml`, which names the frames that a loop joins, the
motors, and joints that the URDF cannot express:

    closed_loop: [[rod_A, rod_B], [crank_A, crank_B]]
    type: ["6d", "3d"]                 # a weld, or a ball joint
    name_mot: [hip, knee]
    joint_name: [rod_ball, rod_cross]
    joint_type: [SPHERICAL, UJOINT_XY] # in place of the URDF's; FIXED too

A frame is a link, or a joint for the link that it moves. Format: the robots of
example-parallel-robots (LAAS-CNRS, INRIA), whose loader replaces joints likewise.
"""

from __future__ import annotations

import copy
import os
import re
import xml.etree.ElementTree as ET
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from drakebots.core.errors import (
    DrakebotsError,
    InvalidInput,
    ModelProblem,
    UnknownName,
)
from drakebots.core.files import read_yaml
from drakebots.model.find import model_stem
from drakebots.model.loops import Loop

_ROWS = {"6d": "weld", "3d": "ball"}
_TYPES = re.compile(r"SPHERICAL|FIXED|UJOINT_([XYZ])([XYZ])")
_AXES = {"X": "1 0 0", "Y": "0 1 0", "Z": "0 0 1"}


@dataclass(frozen=True)
class JoinedFrames:
    """What the YAML beside a URDF adds to it.

    Attributes:
        frames: pairs of names of links or joints.
        rows: "weld" or "ball" for each pair.
        motors: names of joints.
        joints: types of joints by name: SPHERICAL, FIXED, UJOINT_XY.
    """

    frames: tuple[tuple[str, str], ...]
    rows: tuple[str, ...]
    motors: tuple[str, ...] = ()
    joints: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True)
class Joined:
    """Loops between links of a URDF, and the joints that have motors."""

    loops: tuple[Loop, ...] = ()
    motors: tuple[str, ...] = ()


def read_joined_frames(path: Path) -> JoinedFrames | None:
    """Reads the YAML beside a URDF; None where there is none that joins frames.

    Raises:
        ModelProblem: for a YAML that does, and has a wrong entry.
    """
    beside = path.with_name(f"{model_stem(path)}.yaml")
    if path.suffix.lower() != ".urdf" or not os.path.isfile(beside):
        return None
    try:
        raw = read_yaml(beside, ModelProblem)
    except ModelProblem:
        return None  # of something else
    if not isinstance(raw, dict) or "closed_loop" not in raw:
        return None
    try:
        return _parsed(raw)
    except DrakebotsError as error:
        raise ModelProblem(beside, str(error)) from error


def _parsed(raw: dict[str, Any]) -> JoinedFrames:
    pairs = raw["closed_loop"] or []
    if not isinstance(pairs, list) or not all(
        isinstance(pair, list) and len(pair) == 2 for pair in pairs
    ):
        raise InvalidInput("closed_loop: write pairs of frames [[a, b], [c, d]]")
    kinds = _names(raw, "type") or ["6d"] * len(pairs)
    types, names = _names(raw, "joint_type"), _names(raw, "joint_name")
    for these, those, what in (
        (kinds, pairs, "type has {} entries, closed_loop {}"),
        (types, names, "joint_type has {} entries, joint_name {}"),
    ):
        if len(these) != len(those):
            raise InvalidInput(what.format(len(these), len(those)) + "; give one each")
    for kind in kinds:
        if kind.lower() not in _ROWS:
            raise UnknownName("type of a closed loop", kind, _ROWS)
    for kind in types:
        if not _TYPES.fullmatch(kind):
            raise UnknownName("joint_type", kind, ["SPHERICAL", "FIXED", "UJOINT_XY"])
    return JoinedFrames(
        frames=tuple((str(a), str(b)) for a, b in pairs),
        rows=tuple(_ROWS[kind.lower()] for kind in kinds),
        motors=tuple(_names(raw, "name_mot")),
        joints=tuple(zip(names, types)),
    )


def _names(raw: dict[str, Any], key: str) -> list[str]:
    value = raw.get(key) or []
    if not isinstance(value, list) or not all(isinstance(x, str) for x in value):
        raise InvalidInput(f"{key}: write a list of names")
    return value


def joined_loops(joined: JoinedFrames, root: ET.Element) -> tuple[Loop, ...]:
    """The loops, between the links of a URDF.

    Args:
        joined: what is to be joined.
        root: the URDF's <robot>.

    Raises:
        UnknownName: for a frame that is neither a link nor a joint.
    """
    links = {link.get("name", "") for link in root.iter("link")}
    moved = {
        joint.get("name", ""): child.get("link", "")
        for joint in root.iter("joint")
        if (child := joint.find("child")) is not None
    }

    def link(name: str) -> str:
        if name not in links and name not in moved:
            raise UnknownName("frame", name, links | set(moved))
        return name if name in links else moved[name]

    zero = np.zeros(3)
    return tuple(
        Loop(f"{a}-{b}", link(a), link(b), zero, zero, rows=rows)
        for (a, b), rows in zip(joined.frames, joined.rows)
    )


def with_joint_types(root: ET.Element, joints: Sequence[tuple[str, str]]) -> ET.Element:
    """A URDF in which joints have other types.

    A spherical joint is three hinges about x, y and z of the joint's frame, a
    universal one two, with links between that have no mass: so every coordinate is an
    angle of its own.

    Args:
        root: the URDF's <robot>.
        joints: names and types.

    Raises:
        UnknownName: for a joint that does not exist.
    """
    root = copy.deepcopy(root)
    known = {joint.get("name", ""): joint for joint in root.findall("joint")}
    for name, kind in joints:
        if name not in known:
            raise UnknownName("joint", name, known)
        if kind == "FIXED":
            known[name].set("type", "fixed")
        else:
            axes = "XYZ" if kind == "SPHERICAL" else kind[-2:]
            root.extend(_hinges(known[name], axes))
            root.remove(known[name])
    return root


def with_small_masses(root: ET.Element) -> int:
    """Gives a moving link without inertia a little, in place; returns their number.

    Between two hinges that have come to be parallel, as in a ball joint of three
    hinges turned by a quarter, a link without inertia makes the mass matrix singular.
    It gets 1e-5 of the robot's mass, spread over a hundredth of its longest link.

    Args:
        root: the URDF's <robot>.
    """
    masses = [
        float(mass.get("value", 0)) for mass in root.iterfind("./link/inertial/mass")
    ]
    arms = [
        np.linalg.norm([float(x) for x in origin.get("xyz", "0 0 0").split()])
        for origin in root.iterfind("./joint/origin")
    ]
    mass, arm = 1e-5 * sum(masses), 0.03 * max(arms, default=0.0)
    moving = {
        joint.find("child").get("link")
        for joint in root.iter("joint")
        if joint.get("type") != "fixed" and joint.find("child") is not None
    }
    light = [
        link
        for link in root.iter("link")
        if link.get("name") in moving and not _has_inertia(link)
    ]
    for link in light:
        for old in link.findall("inertial"):
            link.remove(old)
        inertial = ET.SubElement(link, "inertial")
        ET.SubElement(inertial, "mass", {"value": repr(float(mass))})
        moment = repr(float(mass * arm**2))
        moments = dict.fromkeys(("ixx", "iyy", "izz"), moment)
        moments |= dict.fromkeys(("ixy", "ixz", "iyz"), "0")
        ET.SubElement(inertial, "inertia", moments)
    return len(light)


def _has_inertia(link: ET.Element) -> bool:
    inertia = link.find("inertial/inertia")
    if inertia is None:
        return False
    return any(float(inertia.get(key, 0)) > 0 for key in ("ixx", "iyy", "izz"))


def _hinges(joint: ET.Element, axes: str) -> list[ET.Element]:
    """Hinges about axes one after the other, and the links between."""
    name = joint.get("name", "")
    parent, child = (joint.find(end).get("link", "") for end in ("parent", "child"))
    links = [f"{name}_{axis.lower()}_link" for axis in axes[:-1]]
    parts = [ET.Element("link", {"name": link}) for link in links]
    for axis, above, below in zip(axes, [parent, *links], [*links, child]):
        hinge = ET.Element("joint", {"name": f"{name}_{axis.lower()}"})
        hinge.set("type", "continuous")
        if above == parent and (origin := joint.find("origin")) is not None:
            hinge.append(origin)
        ET.SubElement(hinge, "parent", {"link": above})
        ET.SubElement(hinge, "child", {"link": below})
        ET.SubElement(hinge, "axis", {"xyz": _AXES[axis]})
        parts.append(hinge)
    return parts
