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
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
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
from drakebots.formats.read.files import Packages
from drakebots.formats.read.findings import Findings
from drakebots.formats.read.tree import (
    link_at,
    read_tree,
    urdf_hinges,
    write_inertial,
    write_tree,
)
from drakebots.model import Loop, Reading, model_stem

_ROWS = {"6d": "weld", "3d": "ball"}
_TYPES = re.compile(r"SPHERICAL|FIXED|UJOINT_([XYZ])([XYZ])")
_MOMENTS = ("ixx", "iyy", "izz")
_AXES = dict(zip("XYZ", np.eye(3)))


def with_joined_frames(
    path: Path, reading: Reading, places: Packages, findings: Findings
) -> Reading:
    """Reading with joints, loops and motors of the YAML beside a URDF, if any.

    Entries on joints and frames that the URDF does not have are left out, with a note.

    Args:
        path: of the URDF.
        reading: of the URDF.
        places: of the files that it names.
        findings: to add to.

    Raises:
        ModelProblem: for a YAML that joins frames, and has a wrong entry.
    """
    beside = path.with_name(f"{model_stem(path)}.yaml")
    if reading.kind != "ROS" or not os.path.isfile(beside):
        return reading
    try:
        raw = read_yaml(beside, ModelProblem)
    except ModelProblem:
        return reading  # of something else
    if not isinstance(raw, dict) or "closed_loop" not in raw:
        return reading
    root = read_tree(reading.parsed(path))

    def known(kind: str, name: str, names: Iterable[str]) -> bool:
        """Whether a name is known; what is not is noted."""
        if name not in names:
            said = UnknownName(kind, name, names).short
            findings.note(f"left out of {beside.name}", said)
        return name in names

    try:
        loops = _loops(raw, root, known)
        root = _with_joint_types(root, raw, known)
        joints = {joint.get("name", ""): joint for joint in root.iter("joint")}
        motors = tuple(x for x in _names(raw, "name_mot") if known("joint", x, joints))
    except DrakebotsError as error:
        raise ModelProblem(beside, str(error)) from error
    if words := _give_small_masses(root):
        findings.note(words)
    places.name_all(root)
    found = {"loops": (*loops, *reading.loops), "motors": motors}
    return replace(reading, text=write_tree(root), ending="urdf", **found)


Known = Callable[[str, str, Iterable[str]], bool]
"""Whether a name of a kind is among those that are known."""


def _names(raw: Mapping[str, Any], key: str) -> list[str]:
    value = raw.get(key) or []
    if not isinstance(value, list) or not all(isinstance(x, str) for x in value):
        raise InvalidInput(f"{key}: write a list of names")
    return value


def _same_number(these: list, those: list, what: str) -> None:
    if len(these) != len(those):
        raise InvalidInput(what.format(len(these), len(those)) + "; give one each")


def _loops(raw: Mapping[str, Any], root: ET.Element, known: Known) -> tuple[Loop, ...]:
    """The loops, between the links of a URDF.

    Args:
        raw: the YAML.
        root: the URDF's <robot>.

    Raises:
        InvalidInput: for an entry of another shape.
        UnknownName: for a type that no loop has.
    """
    pairs = raw["closed_loop"] or []
    if not isinstance(pairs, list) or not all(
        isinstance(pair, list) and len(pair) == 2 for pair in pairs
    ):
        raise InvalidInput("closed_loop: write pairs of frames [[a, b], [c, d]]")
    kinds = _names(raw, "type") or ["6d"] * len(pairs)
    _same_number(kinds, pairs, "type has {} entries, closed_loop {}")
    places = {j.get("name", ""): link_at(j, "child") for j in root.iter("joint")}
    places |= {link.get("name", ""): link.get("name", "") for link in root.iter("link")}
    loops = []
    for pair, kind in zip(pairs, kinds):
        if kind.lower() not in _ROWS:
            raise UnknownName("type of a closed loop", kind, _ROWS)
        a, b = map(str, pair)
        if not (known("frame", a, places) and known("frame", b, places)):
            continue
        ends = places[a], places[b], np.zeros(3), np.zeros(3)
        loops.append(Loop(f"{a}-{b}", *ends, rows=_ROWS[kind.lower()]))
    return tuple(loops)


def _with_joint_types(
    root: ET.Element, raw: Mapping[str, Any], known: Known
) -> ET.Element:
    """A URDF in which joints have other types.

    A spherical joint is three hinges about x, y and z of the joint's frame, a
    universal one two, with links between that have no mass: so every coordinate is an
    angle of its own.

    Args:
        root: the URDF's <robot>.
        raw: the YAML.

    Raises:
        UnknownName: for an unknown type.
    """
    root = copy.deepcopy(root)
    joints = {joint.get("name", ""): joint for joint in root.findall("joint")}
    types, names = _names(raw, "joint_type"), _names(raw, "joint_name")
    _same_number(types, names, "joint_type has {} entries, joint_name {}")
    for name, kind in zip(names, types):
        if not _TYPES.fullmatch(kind):
            raise UnknownName("joint_type", kind, ["SPHERICAL", "FIXED", "UJOINT_XY"])
        if not known("joint", name, joints):
            continue
        if kind == "FIXED":
            joints[name].set("type", "fixed")
        else:
            axes = "XYZ" if kind == "SPHERICAL" else kind[-2:]
            turns = {f"_{axis.lower()}": _AXES[axis] for axis in axes}
            urdf_hinges(root, joints[name], turns, kept=())
    return root


def _give_small_masses(root: ET.Element) -> str:
    """Gives a moving link without inertia a little, in place; a note, "" for none.

    Between two hinges that have come to be parallel, as in a ball joint of three
    hinges turned by a quarter, a link without inertia makes the mass matrix singular.
    It gets 1e-5 of the robot's mass, spread over a hundredth of its longest link.

    Args:
        root: the URDF's <robot>.
    """
    masses = [float(e.get("value", 0)) for e in root.iterfind("link/inertial/mass")]
    origins = (e.get("xyz", "0 0 0") for e in root.iterfind("joint/origin"))
    arms = [np.linalg.norm([float(x) for x in xyz.split()]) for xyz in origins]
    mass, arm = 1e-5 * sum(masses), 0.03 * max(arms, default=0.0)
    joints = [j for j in root.iter("joint") if j.get("type") != "fixed"]
    moving = {link_at(joint, "child") for joint in joints}
    light = [
        link
        for link in root.iter("link")
        if link.get("name") in moving
        and not any(
            float(inertia.get(key, 0)) > 0
            for inertia in link.iterfind("inertial/inertia")
            for key in _MOMENTS
        )
    ]
    for link in light:
        write_inertial(link, mass, mass * arm**2 * np.eye(3))
    if not light:
        return ""
    given = f"{mass * arm**2:.1g} kg m^2"
    return f"{len(light)} massless links between hinges given {given}"
