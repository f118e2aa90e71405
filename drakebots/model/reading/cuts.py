"""Closed loops of joints, cut: Drake's parser takes trees only.

A URDF or SDF may have more joints than its links need to hang together. One joint of
every loop is taken out of the tree and becomes a :class:`~drakebots.model.loops.Loop`.
Ball joints are cut first, whose loops have the fewest rows, then hinges without a motor
or a spring, which a loop could not keep.
"""

from __future__ import annotations

import copy
import xml.etree.ElementTree as ET

import numpy as np
from pydrake.multibody.parsing import Parser
from pydrake.multibody.plant import MultibodyPlant

from drakebots.model.loops import Loop
from drakebots.model.reading.findings import Findings
from drakebots.model.reading.messages import heard, shortened
from drakebots.model.reading.tree import remove, write_tree

HINGES = ("revolute", "continuous")
_ROWS = {"ball": "ball", "revolute": "hinge", "continuous": "hinge", "fixed": "weld"}


def cut_loops(root: ET.Element, findings: Findings, *, urdf: bool) -> tuple[Loop, ...]:
    """Takes joints that close loops out of a tree, in place.

    Args:
        root: of a URDF or an SDF, from :func:`drakebots.model.reading.tree.read_tree`.
        findings: a loop whose joint cannot be a loop's is a problem.
        urdf: whether it is a URDF.

    Returns:
        The loops, closed as the file has them at its default positions.
    """
    models = [root] if urdf else list(root.iter("model"))
    cuts = [joint for model in models for joint in _closing(model)]
    if not cuts:
        return ()
    for joint in cuts:
        if joint.get("type") not in _ROWS:
            findings.problem(
                f"joint {joint.get('name')!r} of type {joint.get('type')!r} closes a "
                "loop; only a ball joint, a hinge or a fixed joint can: use one"
            )
    if findings.problems:
        return ()
    try:
        loops = _placed(root, cuts, urdf=urdf)
    except (RuntimeError, ValueError, LookupError, SystemExit) as error:
        findings.problem(f"its loops cannot be cut: {shortened(error)}")
        return ()
    remove(root, cuts)
    for joint in cuts:
        line = "a joint that closes a loop is kept as a loop"
        findings.note(line, joint.get("name", ""))
    return loops


def _closing(model: ET.Element) -> list[ET.Element]:
    """The joints that close loops, in the order of the file.

    Kruskal's algorithm: a joint between links that already hang together closes one.
    """
    joints = [e for e in model if e.tag in ("joint", "drake:joint")]
    group = {}

    def find(link: str) -> str:
        while group.setdefault(link, link) != link:
            link = group[link]
        return link

    closing = []
    for joint in sorted(joints, key=_rank):
        parent, child = (find(link_at(joint, end)) for end in ("parent", "child"))
        if parent == child:
            closing.append(joint)
        group[child] = parent
    return [joint for joint in joints if joint in closing]


def _rank(joint: ET.Element) -> int:
    """Joints of a higher rank are cut first."""
    if joint.get("type") == "ball":
        return 3
    if joint.get("type") not in HINGES:
        return 0
    texts = [joint.findtext(f".//{tag}", "") for tag in ("effort", "spring_stiffness")]
    texts += [limit.get("effort", "") for limit in joint.findall("limit")]
    return 1 if any(_positive(text) for text in texts) else 2


def _positive(text: str) -> bool:
    try:
        return float(text) > 0
    except ValueError:
        return False


def link_at(joint: ET.Element, end: str) -> str:
    """The name of the link at the "parent" or the "child" end of a joint."""
    element = _end_element(joint, end)
    if element is None:
        return ""
    return element.get("link") or (element.text or "").strip()


def _end_element(joint: ET.Element, end: str) -> ET.Element | None:
    """Its <parent> or <child>, which have a prefix in Drake's own joints of SDF."""
    return next((e for e in joint if e.tag in (end, f"drake:{end}")), None)


def _set_child(joint: ET.Element, link: str) -> None:
    child = _end_element(joint, "child")
    assert child is not None
    if child.get("link"):
        child.set("link", link)
    else:
        child.text = link


def _placed(
    root: ET.Element, cuts: list[ET.Element], *, urdf: bool
) -> tuple[Loop, ...]:
    """The loops, with the points and axes of their joints as Drake places them.

    Drake parses a tree in which each cut joint leads to a copy of its child, without
    shapes, at the child's pose.
    """
    probe = copy.deepcopy(root)
    remove(probe, [e for e in probe.iter() if e.tag in ("visual", "collision")])
    names = {joint.get("name", "") for joint in cuts}
    for model in [probe] if urdf else probe.iter("model"):
        links = {link.get("name"): link for link in model.findall("link")}
        for joint in [e for e in model if e.tag in ("joint", "drake:joint")]:
            if joint.get("name") in names:
                end = ET.SubElement(
                    model, "link", {"name": f"{joint.get('name')}__end"}
                )
                if (pose := links[link_at(joint, "child")].find("pose")) is not None:
                    end.append(pose)
                _set_child(joint, end.get("name", ""))
    plant = MultibodyPlant(1e-3)
    with heard():
        Parser(plant).AddModelsFromString(write_tree(probe), "urdf" if urdf else "sdf")
    return tuple(_loop(plant, joint) for joint in cuts)


def _loop(plant: MultibodyPlant, element: ET.Element) -> Loop:
    joint = plant.GetJointByName(element.get("name", ""))
    X_AP = joint.frame_on_parent().GetFixedPoseInBodyFrame()
    X_BQ = joint.frame_on_child().GetFixedPoseInBodyFrame()
    axis = np.array([0.0, 0.0, 1.0])
    if element.get("type") in HINGES:
        axis = joint.revolute_axis()
    side = np.eye(3)[np.argmin(np.abs(axis))]
    return Loop(
        name=joint.name(),
        body_A=link_at(element, "parent"),
        body_B=link_at(element, "child"),
        p_AP=X_AP.translation(),
        p_BQ=X_BQ.translation(),
        axis_A=X_AP.rotation() @ axis,
        axis_B=X_BQ.rotation() @ axis,
        side_A=X_AP.rotation() @ side,
        side_B=X_BQ.rotation() @ side,
        rows=_ROWS[element.get("type", "")],
    )
