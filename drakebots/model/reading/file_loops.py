"""Loops that a URDF or an SDF closes itself, by ball constraints and by mimics.

Drake's tag for ball constraints is

    <drake:ball_constraint>
      <drake:ball_constraint_body_A>rod</drake:ball_constraint_body_A>
      <drake:ball_constraint_p_AP>0 0 -0.1</drake:ball_constraint_p_AP>
      <drake:ball_constraint_body_B>shank</drake:ball_constraint_body_B>
      <drake:ball_constraint_p_BQ>0.02 0 0</drake:ball_constraint_p_BQ>
    </drake:ball_constraint>

in an SDF; in a URDF the values are attributes, `name` of bodies and `value` of points.
A joint that follows another has a <mimic> in a URDF, a <drake:mimic> in an SDF. Drake's
parser makes SAP constraints of them; programs and time stepping need the table.
"""

from __future__ import annotations

import xml.etree.ElementTree as ET
from collections import Counter
from collections.abc import Iterator

import numpy as np

from drakebots.model.couplers import Coupler
from drakebots.model.loops import Loop
from drakebots.model.reading.urdf.joints import mimic_of

_DRAKE = "{http://drake.mit.edu}"
_PART = "ball_constraint_"


def file_loops(root: ET.Element) -> tuple[Loop, ...]:
    """The ball constraints of a file as loops.

    What is not whole is left out: Drake's parser says what is wrong with it.

    Args:
        root: the <robot> or <sdf>.
    """
    loops = []
    for element in root.iter():
        if _name(element) == "ball_constraint":
            parts = {_name(part).removeprefix(_PART): _text(part) for part in element}
            p_AP, p_BQ = _point(parts.get("p_AP")), _point(parts.get("p_BQ"))
            body_A, body_B = parts.get("body_A"), parts.get("body_B")
            if body_A and body_B and p_AP is not None and p_BQ is not None:
                name = f"{body_A}-{body_B}"
                same = sum(loop.name.split("#")[0] == name for loop in loops)
                name += f"#{same + 1}" if same else ""
                bodies = body_A, body_B
                loops.append(Loop(name, *bodies, p_AP, p_BQ, rows="ball", in_file=True))
    return tuple(loops)


def file_couplers(root: ET.Element) -> tuple[Coupler, ...]:
    """The joints of a file that follow others.

    Where models of an SDF share the name of a joint it is "model::joint".

    Args:
        root: the <robot> or <sdf>, from
            :func:`drakebots.model.reading.tree.read_tree`, repaired.
    """
    scopes = [("", root)] if root.tag == "robot" else list(_models(root, ""))
    counts = Counter(
        j.get("name") for _, model in scopes for j in model.findall("joint")
    )

    def name(joint: str, scope: str) -> str:
        return f"{scope}::{joint}" if scope and counts[joint] > 1 else joint

    return tuple(
        Coupler(
            name(joint.get("name", ""), scope),
            name(mimic.get("joint", ""), scope),
            float(mimic.get("multiplier", "1")),
            float(mimic.get("offset", "0")),
        )
        for scope, model in scopes
        for joint in model.findall("joint")
        if (mimic := mimic_of(joint)) is not None
    )


def _models(parent: ET.Element, scope: str) -> Iterator[tuple[str, ET.Element]]:
    """The models of an SDF by their name in Drake, "outer::inner"."""
    for element in parent:
        if element.tag == "world":
            yield from _models(element, scope)
        elif element.tag == "model":
            name = f"{scope}::{element.get('name')}".removeprefix("::")
            yield name, element
            yield from _models(element, name)


def _name(element: ET.Element) -> str:
    """The tag's name without the prefix or the namespace of Drake; else "none"."""
    tag = str(element.tag)
    for prefix in (_DRAKE, "drake:"):
        if tag.startswith(prefix):
            return tag.removeprefix(prefix)
    return "none"


def _text(element: ET.Element) -> str:
    value = element.get("name") or element.get("value") or element.text or ""
    return value.strip()


def _point(text: str | None) -> np.ndarray | None:
    try:
        p = np.array([float(x) for x in (text or "").split()])
    except ValueError:
        return None
    return p if p.shape == (3,) and np.isfinite(p).all() else None
