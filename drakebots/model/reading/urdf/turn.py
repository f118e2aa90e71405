"""The root link of a URDF turned, for files in which y or x points up.

Drake's world has z up. Only the frame of the root link is another one afterwards: what
is fixed to it, and the joints that hang from it, turn about its origin; all other links
keep their own frames.
"""

from __future__ import annotations

import xml.etree.ElementTree as ET

import numpy as np
from pydrake.math import RigidTransform, RollPitchYaw, RotationMatrix

from drakebots.model.reading.cuts import link_at
from drakebots.model.reading.urdf.joints import joints_of
from drakebots.model.reading.urdf.numbers import floats

TURNS = {
    "z": RotationMatrix(),
    "y": RotationMatrix.MakeXRotation(np.pi / 2),
    "x": RotationMatrix.MakeYRotation(-np.pi / 2),
}
"""R_WB of an upright base B, by the axis of B that points up."""


def turn_root(root: ET.Element, up: str) -> None:
    """Turns the root links of a URDF in place, so that an axis of theirs becomes z.

        X_B'C = R X_BC    with R = TURNS[up]

    for every shape, inertia and joint C that the root link B places.

    Args:
        root: its <robot>, after :func:`repair_numbers`.
        up: the axis that points up in the file.
    """
    children = {link_at(joint, "child") for joint in joints_of(root)}
    bases = [e for e in root.findall("link") if e.get("name") not in children]
    names = {link.get("name") for link in bases} | {"world"} - children
    placed = [e for link in bases for e in link if e.tag in _PLACED]
    placed += [j for j in joints_of(root) if link_at(j, "parent") in names]
    for element in placed:
        _turn_origin(element, RigidTransform(TURNS[up], np.zeros(3)))


_PLACED = ("inertial", "visual", "collision")


def _turn_origin(element: ET.Element, X: RigidTransform) -> None:
    origin = element.find("origin")
    if origin is None:
        origin = ET.SubElement(element, "origin")
    xyz, rpy = (floats(origin.get(key, "0 0 0")) for key in ("xyz", "rpy"))
    turned = X @ RigidTransform(RollPitchYaw(rpy), xyz)
    angles = turned.rotation().ToRollPitchYaw().vector()
    for key, values in (("xyz", turned.translation()), ("rpy", angles)):
        origin.set(key, " ".join(repr(float(value)) for value in values))
