"""HAMR-VI as an SDF model from its parameters.

The tree is chassis -> 4 x (swing chain S1..S4, lift chain L1..L4); the hinges
that close a leg's three parallel chains are pairs of `drake:ball_constraint`
along the hinge axis.
"""

from __future__ import annotations

import xml.etree.ElementTree as ET
from collections.abc import Mapping, Sequence

import numpy as np

from drakebots.robots.hamr.model import LEGS, mirror

from .parameters import AXES, HamrParameters

_NS = "http://drake.mit.edu"
_MOMENTS = ("ixx", "ixy", "ixz", "iyy", "iyz", "izz")


# --- places -----------------------------------------------------------------


def link_name(leg: str, link: str) -> str:
    """The name of a leg's link in the model; the chassis is shared."""
    return link if link == "Chassis" else leg + link


def joint_origin(leg: str, name: str, table: HamrParameters) -> np.ndarray:
    """The position p_PJ (3,) of a joint of `leg` in its parent link [m]."""
    row = next(j for j in table.joints if j.name == name)
    p = row.p_PJ
    if leg[0] == "R":
        p = table.rear_origins.get(name, p)
    return mirror(leg) * p


def link_positions(table: HamrParameters) -> dict[str, np.ndarray]:
    """p_ML (3,) of every link's origin in the model frame at q = 0 [m]."""
    p_ML = {"Chassis": np.zeros(3)}
    for leg in LEGS:
        for row in table.joints:
            parent = p_ML[link_name(leg, row.parent)]
            child = link_name(leg, row.child)
            p_ML[child] = parent + joint_origin(leg, row.name, table)
    return p_ML


# --- the model files --------------------------------------------------------


def hamr_sdf(
    table: HamrParameters,
    visuals: Mapping[str, Sequence[ET.Element]] | None = None,
) -> str:
    """The SDF text of HAMR-VI in SI.

    Args:
        table: the parameters; see `models/hamr/params.yaml`.
        visuals: `<visual>` elements by link name.

    Returns:
        XML with 33 links, 32 joints (8 actuated), 24 ball constraints (two per
        hinge), and a point foot on each leg.
    """
    ET.register_namespace("drake", _NS)
    sdf = ET.Element("sdf", {"version": "1.9"})
    model = _child(sdf, "model", name=table.raw["name"])
    _add_links(model, table, visuals or {})
    for leg in LEGS:
        _add_joints(model, leg, table)
    for leg in LEGS:
        _add_loops(model, leg, table)
    ET.indent(sdf)
    note = (
        "<!-- Written by scripts/make_hamr_model.py from params.yaml; "
        "edit that and run it again. SI. -->\n"
    )
    return '<?xml version="1.0"?>\n' + note + ET.tostring(sdf, "unicode") + "\n"


def _add_links(model: ET.Element, table: HamrParameters, visuals) -> None:
    """Adds the links of the table with their inertias and shapes."""
    foot_link, p_LF = table.foot
    for name, p in link_positions(table).items():
        mass, com, inertia = table.links[name]
        link = _child(model, "link", name=name)
        _pose(link, p)
        inertial = _child(link, "inertial")
        _pose(inertial, com)
        _child(inertial, "mass", _num(mass))
        tensor = _child(inertial, "inertia")
        for key, value in zip(_MOMENTS, inertia):
            _child(tensor, key, _num(value))
        for visual in visuals.get(name, ()):
            link.append(visual)
        if name.endswith(foot_link):
            collision = _child(link, "collision", name="foot")
            _pose(collision, mirror(name[:2]) * p_LF)
            sphere = _child(_child(collision, "geometry"), "sphere")
            _child(sphere, "radius", "1e-9")  # libsdformat reads 0 as 1 m


def _add_joints(model: ET.Element, leg: str, table: HamrParameters) -> None:
    for row in table.joints:
        joint = _child(model, "joint", name=leg + row.name, type=row.type)
        _child(joint, "parent", link_name(leg, row.parent))
        _child(joint, "child", link_name(leg, row.child))
        axis = _child(joint, "axis")
        _child(axis, "xyz", _vec(AXES[row.axis]))
        dynamics = _child(axis, "dynamics")
        _child(dynamics, "damping", _num(row.damping))
        _child(dynamics, "spring_reference", "0")
        _child(dynamics, "spring_stiffness", _num(row.stiffness))
        limit = _child(axis, "limit")
        _child(limit, "lower", _num(-row.limit))
        _child(limit, "upper", _num(row.limit))
        if row.actuator is None:
            _child(limit, "effort", "0")


def _add_loops(model: ET.Element, leg: str, table: HamrParameters) -> None:
    half, tag = table.number("loop_axis_offset"), f"{{{_NS}}}ball_constraint"
    for row in table.loops:
        axis = np.array(AXES[row.axis])
        ends = (("A", row.link_A, "P", row.p_A), ("B", row.link_B, "Q", row.p_B))
        for sign in (-1.0, 1.0):
            ball = _child(model, tag)
            for body, link, point, p in ends:
                _child(ball, f"{tag}_body_{body}", link_name(leg, link))
                position = mirror(leg) * p + sign * half * axis
                _child(ball, f"{tag}_p_{body}{point}", _vec(position))


def hamr_sidecar(table: HamrParameters) -> str:
    """The YAML beside the model (`hamr.drakebots.yaml`): feet, markers, loops.

    Each loop keeps the two position rows across its axis, 24 rows in all, as
    the authors do; the rows they drop vanish by themselves.
    """
    lines = ["# Written by scripts/make_hamr_model.py from params.yaml; SI."]
    for section, (link, p) in (("feet:", table.foot), ("points:", table.marker)):
        lines.append(section)
        for leg in LEGS:
            lines.append(f"  {leg}: {{body: {leg}{link}, p: {_list(mirror(leg) * p)}}}")
    lines.append("loops:")
    for leg in LEGS:
        for row in table.loops:
            lines += [
                f"  {leg}{row.name}:",
                f"    A: {link_name(leg, row.link_A)}",
                f"    p_A: {_list(mirror(leg) * row.p_A)}",
                f"    B: {link_name(leg, row.link_B)}",
                f"    p_B: {_list(mirror(leg) * row.p_B)}",
                f"    axis: {_list(AXES[row.axis])}",
                "    rows: planar",
                "    in_file: true",
            ]
    return "\n".join(lines) + "\n"


def _child(parent: ET.Element, tag: str, text: str | None = None, **attributes):
    element = ET.SubElement(parent, tag, attributes)
    element.text = text
    return element


def _pose(parent: ET.Element, p: Sequence[float]) -> None:
    _child(parent, "pose", f"{_vec(p)} 0 0 0")


def _num(value: float) -> str:
    return f"{float(value):.15g}"


def _vec(values: Sequence[float]) -> str:
    return " ".join(_num(v + 0.0) for v in values)


def _list(values: Sequence[float]) -> str:
    return "[" + ", ".join(_num(v + 0.0) for v in values) + "]"
