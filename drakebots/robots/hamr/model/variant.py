"""HAMR-VI with softer or stiffer flexures, or legs on a soft joint.

For what the model leaves out: the authors find the robot unable to push as
planned and suspect compliance in series with the transmission.
"""

from __future__ import annotations

import xml.etree.ElementTree as ET
from dataclasses import replace

import numpy as np

from drakebots.core.errors import InvalidInput
from drakebots.model import Model, load
from drakebots.robots.hamr.model.parameters import LEGS, Parameters, mirror, parameters
from drakebots.robots.hamr.model.sdf import hamr_sdf, link_positions

TWIST_DAMPING = 0.0249e-6
"""Of the soft joint [N m s/rad]; the authors' single-leg file with twists."""

_TWIST_MASS = 1e-8
_TWIST_INERTIA = 1e-14
"""Of the link between [kg], [kg m^2]; as in that file."""


def hamr_variant(
    stiffness_scale: float = 1.0, serial_stiffness: float | None = None
) -> Model:
    """HAMR-VI with changed springs.

    Args:
        stiffness_scale: factor on the springs of all flexures (not on the
            actuators').
        serial_stiffness: of a hinge along x between the lift chain and each
            leg [N m/rad], so that a leg gives way when it pushes; adds a
            coordinate `<leg>qfb3_twist` a leg. None for none. The idea is that
            of the authors' single-leg file with twists, which gives no
            stiffness. Theirs sits at the flexure; ours on the line about which
            lift chain and leg both turn, since anywhere else the closed chains
            lock it.

    Raises:
        InvalidInput: for a factor or stiffness that is not > 0.
    """
    if not 0 < stiffness_scale < np.inf:
        raise InvalidInput(f"stiffness scale must be > 0, got {stiffness_scale}")
    if serial_stiffness is not None and not 0 < serial_stiffness < np.inf:
        raise InvalidInput(
            f"serial stiffness must be > 0 N m/rad, got {serial_stiffness}; "
            "leave it out for none"
        )
    model = load("hamr")
    if stiffness_scale == 1.0 and serial_stiffness is None:
        return model
    table = parameters()
    joints = tuple(
        replace(row, stiffness=stiffness_scale * row.stiffness)
        if row.type == "revolute"
        else row
        for row in table.joints
    )
    text = hamr_sdf(replace(table, joints=joints))
    if serial_stiffness is not None:
        text = _with_twists(text, table, serial_stiffness)
    return replace(model, text=text)


def _with_twists(text: str, table: Parameters, stiffness: float) -> str:
    root = ET.fromstring(text.encode())
    tree, places = root.find("model"), link_positions(table)
    leg_joint = next(row for row in table.joints if row.name == "qfb3")
    turning = next(row for row in table.loops if row.name == "ql3")
    p_L3A = np.r_[leg_joint.p_PJ[0], turning.p_B[1:]]
    for leg in LEGS:
        joint = next(j for j in tree.iter("joint") if j.get("name") == f"{leg}qfb3")
        link = ET.SubElement(tree, "link", {"name": f"{leg}L3A"})
        place = places[f"{leg}L3"] + mirror(leg) * p_L3A
        ET.SubElement(link, "pose").text = " ".join(map(str, [*place, 0, 0, 0]))
        inertial = ET.SubElement(link, "inertial")
        ET.SubElement(inertial, "mass").text = str(_TWIST_MASS)
        inertia = ET.SubElement(inertial, "inertia")
        for key in ("ixx", "ixy", "ixz", "iyy", "iyz", "izz"):
            size = _TWIST_INERTIA if key[1] == key[2] else 0.0
            ET.SubElement(inertia, key).text = str(size)
        twist = ET.fromstring(ET.tostring(joint))
        twist.set("name", f"{leg}qfb3_twist")
        twist.find("child").text = link.get("name")
        axis = twist.find("axis")
        axis.find("xyz").text = "1 0 0"
        axis.find("dynamics/damping").text = str(TWIST_DAMPING)
        axis.find("dynamics/spring_stiffness").text = str(stiffness)
        joint.find("parent").text = link.get("name")
        tree.append(twist)
    return ET.tostring(root, "unicode")
