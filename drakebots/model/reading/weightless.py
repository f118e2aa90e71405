"""Links without mass, which no simulator can move.

Authors write them for frames, for fingers that are only drawn, and for what stands
still: a plane, or the foot of an arm. Links that are fixed to one another count as one.
"""

from __future__ import annotations

import xml.etree.ElementTree as ET
from collections.abc import Mapping

from drakebots.model.reading.cuts import link_at
from drakebots.model.reading.findings import Findings

WORLD = "world"


def fix_weightless(
    model: ET.Element,
    joints: list[ET.Element],
    masses: Mapping[str, float],
    findings: Findings,
) -> list[str]:
    """Fixes joints that move nothing with a mass, in a model that has one.

    Args:
        model: a <robot> or a <model>.
        joints: its joints.
        masses: of its links by name [kg].
        findings: to add to.

    Returns:
        The roots of the model that have no mass either, and so belong to the world.
    """
    ends = [(j, link_at(j, "parent"), link_at(j, "child")) for j in joints]
    heavy = {link for link, mass in masses.items() if mass > 0}
    if heavy:
        below = _with_those_above(heavy, [(a, b) for _, a, b in ends])
        for joint, _, child in ends:
            if joint.get("type") != "fixed" and child in masses.keys() - below:
                joint.tag = "joint"
                joint.set("type", "fixed")
                line = "a joint that moves no mass is fixed"
                findings.note(line, joint.get("name", ""))
    fixed = [(a, b) for joint, a, b in ends if joint.get("type") == "fixed"]
    standing = _with_those_above(heavy, fixed)
    children = {b for _, _, b in ends}
    roots = [link for link in masses if link not in {*children, *standing, WORLD}]
    for root in roots:
        findings.note("a root without mass is fixed to the world", root)
    return roots


def _with_those_above(links: set[str], ends: list[tuple[str, str]]) -> set[str]:
    """Links, and all from which joints lead down to them."""
    found = set(links)
    parents: dict[str, list[str]] = {}
    for parent, child in ends:
        parents.setdefault(child, []).append(parent)
    stack = list(links)
    while stack:
        for parent in parents.get(stack.pop(), []):
            if parent not in found:
                found.add(parent)
                stack.append(parent)
    return found
