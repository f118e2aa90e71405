"""Joints of a URDF: types, limits, mimics and transmissions of other simulators."""

from __future__ import annotations

import xml.etree.ElementTree as ET

from drakebots.model.reading.findings import Findings
from drakebots.model.reading.urdf.numbers import floats, number

MOVING = ("revolute", "continuous", "prismatic", "planar", "floating", "ball")
"""The types of joints that move."""

_TYPES = (*MOVING, "fixed")


def joints_of(root: ET.Element) -> list[ET.Element]:
    """The joints of a <robot>, Drake's own included."""
    return [e for e in root if e.tag in ("joint", "drake:joint")]


def free_name(name: str, taken: set[str]) -> str:
    """The name, or if it is taken one like it: "hip_2"."""
    names = (f"{name}_{k}" for k in range(2, len(taken) + 3))
    return next(free for free in (name, *names) if free not in taken)


def repair_joint(joint: ET.Element, findings: Findings) -> None:
    """Types of other simulators; limits and axes at which Drake would stop."""
    name, kind = joint.get("name", ""), joint.get("type")
    if kind in ("spherical", "ball") and joint.tag == "joint":
        joint.tag, kind = "drake:joint", "ball"
        joint.set("type", "ball")
        findings.note("a spherical joint is read as Drake's ball joint", name)
    if kind is None:
        findings.problem(f"joint {name!r} has no type; use one of {', '.join(_TYPES)}")
    elif joint.tag == "joint" and kind not in _TYPES:
        findings.problem(
            f"joint {name!r} has the type {kind!r}; use one of {', '.join(_TYPES)}"
        )
    axis = joint.find("axis")
    if axis is not None and kind in ("revolute", "continuous", "prismatic"):
        values = floats(axis.get("xyz", "1 0 0"))
        if values is not None and not any(values):
            findings.problem(f"joint {name!r} has the axis 0 0 0; give its direction")
    _repair_limits(joint, findings)
    dynamics = joint.find("dynamics")
    if dynamics is not None and (number(dynamics, "damping") or 0.0) < 0:
        findings.problem(f"joint {name!r} has negative damping; it must be >= 0")


def _repair_limits(joint: ET.Element, findings: Findings) -> None:
    """Limits that Drake would stop at, or pass over."""
    name, limit = joint.get("name", ""), joint.find("limit")
    if limit is None:
        return
    lower, upper = (number(limit, key) for key in ("lower", "upper"))
    if lower is not None and upper is not None and lower > upper:
        # Bullet's way to write a joint without limits.
        del limit.attrib["lower"], limit.attrib["upper"]
        findings.note("lower limit above the upper one: none is used", name)
    for key in ("effort", "velocity", "drake:acceleration"):
        value = number(limit, key)
        if value is not None and value < 0:
            del limit.attrib[key]
            findings.note(f"a negative limit of {key} is not used", name)


def repair_mimics(joints: list[ET.Element], findings: Findings) -> None:
    """Leaves out mimics that are not between two joints of one degree of freedom.

    Args:
        joints: of one robot, or of one model of an SDF.
        findings: to add to.
    """
    single = ("revolute", "continuous", "prismatic", "screw")
    names = {joint.get("name") for joint in joints if joint.get("type") in single}
    for joint in joints:
        name, mimic = joint.get("name", ""), mimic_of(joint)
        if mimic is None:
            continue
        if name not in names or mimic.get("joint") not in names - {name}:
            joint.remove(mimic)
            line = "a <mimic> of joints that do not both exist and move is left out"
            findings.note(line, f"{name} ({mimic.get('joint')})")
            continue
        for key in ("multiplier", "offset"):
            if key in mimic.attrib and number(mimic, key) is None:
                findings.problem(
                    f"joint {name!r}: the {key} {mimic.get(key)!r} of its <mimic> is "
                    "no finite number; correct it"
                )


def mimic_of(joint: ET.Element) -> ET.Element | None:
    """The <mimic> of a joint of a URDF, or Drake's <drake:mimic> of an SDF's."""
    return next((e for e in joint if e.tag in ("mimic", "drake:mimic")), None)


def repair_transmissions(
    root: ET.Element, joints: list[ET.Element], findings: Findings
) -> None:
    """Leaves out transmissions of no joint; gives actuators names of their own."""
    names, taken = {joint.get("name") for joint in joints}, set()
    for transmission in root.findall("transmission"):
        named = [e.get("name") for e in transmission.findall("joint")]
        if not all(name in names for name in named):
            root.remove(transmission)
            line = "a <transmission> of a joint that does not exist is left out"
            findings.note(line, transmission.get("name", ""))
            continue
        for actuator in transmission.findall("actuator"):
            name = actuator.get("name", "")
            if name in taken:
                actuator.set("name", free_name(name, taken))
                line = "an actuator of a name taken is renamed"
                findings.note(line, actuator.get("name", ""))
            taken.add(actuator.get("name", ""))
