"""The tree of a URDF or an SDF: read, written, parts taken out, loops cut.

Drake's parsers compare tags as text: `<drake:joint>` is known by these letters, whether
or not the prefix is declared. So a tree here has the tags and attributes of the file,
and is written back with the same letters; comments are left out.

Drake takes trees only, and a file may have more joints than its links need to hang
together. One joint of every loop is taken out and becomes a
:class:`~drakebots.model.loops.Loop`. Ball joints are cut first, whose loops have the
fewest rows, then hinges without a motor or a spring, which a loop could not keep.
"""

from __future__ import annotations

import copy
import xml.etree.ElementTree as ET
from collections.abc import Callable, Collection, Mapping, Sequence
from xml.parsers import expat

import numpy as np
from pydrake.multibody.parsing import Parser
from pydrake.multibody.plant import MultibodyPlant

from drakebots.core.errors import InvalidInput
from drakebots.formats.read.findings import Findings
from drakebots.model import DRAKE_REFUSALS, Loop, heard, shortened

_SMALLEST = 1e-300
"""Numbers below this are not normal ones, or nearly so."""


def read_tree(text: str) -> ET.Element:
    """The root of an XML text, with tags such as "drake:joint".

    Raises:
        InvalidInput: for a text that is not well-formed, with its line.
    """
    parser = expat.ParserCreate(encoding="utf-8")
    builder = ET.TreeBuilder()
    parser.StartElementHandler = builder.start
    parser.EndElementHandler = builder.end
    parser.CharacterDataHandler = builder.data
    parser.buffer_text = True
    try:
        parser.Parse(text.encode(), True)
    except expat.ExpatError as error:
        raise InvalidInput(f"is not well-formed XML ({error})") from error
    return builder.close()


def write_tree(root: ET.Element) -> str:
    """A tree of :func:`read_tree` as XML text."""
    return ET.tostring(root, encoding="unicode")


def written(value: object) -> str:
    """A name as it is; a number or several, parted by spaces, that read back exactly.

    Numbers that are not normal, which libsdformat refuses, are zero.
    """
    if isinstance(value, str):
        return value
    numbers = map(float, np.atleast_1d(value))
    return " ".join(repr(0.0 if abs(x) < _SMALLEST else x) for x in numbers)


def add(parent: ET.Element, tag: str, text: object = None, **says: object):
    """A new child of an element of XML.

    Args:
        parent: of any format.
        tag: of the child, with Drake's prefix or without.
        text: inside it, of :func:`written`; None for none.
        says: its attributes likewise, those that are None left out; `class_` for one
            named as a word of Python.
    """
    said = {k.rstrip("_"): written(v) for k, v in says.items() if v is not None}
    element = ET.SubElement(parent, tag, said)
    element.text = None if text is None else written(text)
    return element


MOMENTS = ("ixx", "ixy", "ixz", "iyy", "iyz", "izz")
"""The moments and products of inertia, in the order of an upper triangle."""


def write_inertial(
    link: ET.Element,
    mass: float,
    I_C: np.ndarray,
    p_BC: Sequence[float] = (0, 0, 0),
    rpy: Sequence[float] = (0, 0, 0),
    *,
    urdf: bool = True,
) -> None:
    """Gives a link of a URDF or SDF another <inertial>, in place.

    Args:
        link: B.
        mass: its mass [kg].
        I_C: its inertia about its centre of mass C, in C's frame (3, 3) [kg m2].
        p_BC: position of that centre (3,) [m].
        rpy: rotation of C's frame in B (3,) [rad].
        urdf: whether it is a link of a URDF.
    """
    for old in link.findall("inertial"):
        link.remove(old)
    inertial = add(link, "inertial")
    tensor = dict(zip(MOMENTS, I_C[np.triu_indices(3)]))
    if urdf:
        add(inertial, "origin", xyz=p_BC, rpy=rpy)
        add(inertial, "mass", value=mass)
        add(inertial, "inertia", **tensor)
        return
    add(inertial, "pose", [*p_BC, *rpy])
    add(inertial, "mass", mass)
    inertia = add(inertial, "inertia")
    for key, value in tensor.items():
        add(inertia, key, value)


def remove(root: ET.Element, unwanted: list[ET.Element]) -> None:
    """Takes elements out of a tree, wherever they are in it."""
    gone = set(map(id, unwanted))
    for parent in list(root.iter()):
        for child in [child for child in parent if id(child) in gone]:
            parent.remove(child)


def leave_out(
    root: ET.Element, unwanted: list[ET.Element], findings: Findings, line: str
) -> None:
    """Takes elements out of a tree, with a note on each by its name."""
    remove(root, unwanted)
    for element in unwanted:
        findings.note(line, element.get("name", ""))


def models_of(root: ET.Element) -> list[ET.Element]:
    """The <robot> of a URDF, or the <model>s of an SDF."""
    return [root] if root.tag == "robot" else list(root.iter("model"))


def joint_elements(model: ET.Element) -> list[ET.Element]:
    """The joints of a <robot> or a <model>, Drake's own included."""
    return [e for e in model if e.tag in ("joint", "drake:joint")]


def named_file(element: ET.Element) -> str:
    """The URI of a mesh, a texture or an include; "" for none."""
    return element.get("filename") or element.findtext("uri", "").strip()


def name_file(element: ET.Element, uri: str) -> None:
    """Writes another URI where :func:`named_file` found one."""
    child = element.find("uri")
    if child is None:
        element.set("filename", uri)
    else:
        child.text = uri


def rename_files(root: ET.Element, renamed: Callable[[str], str | None]) -> None:
    """Gives files other names, for a text that has no folder.

    Args:
        root: of a URDF or SDF.
        renamed: takes the URI of a mesh, a texture or an include to another; None to
            leave it.
    """
    for element in root.iter():
        names_file = element.tag in ("mesh", "texture")
        if (names_file or element.find("uri") is not None) and (
            uri := renamed(named_file(element))
        ):
            name_file(element, uri)


def said(parent: ET.Element, key: str, default: str = "") -> str:
    """A value: the attribute of an element of a URDF, the child's text in an SDF."""
    text = parent.get(key)
    return parent.findtext(key, default) if text is None else text


def say(parent: ET.Element, key: str, text: str) -> None:
    """Writes a value where :func:`said` finds it, of an SDF into a child."""
    if parent.attrib and parent.find(key) is None:
        parent.set(key, text)
    else:
        child_of(parent, key).text = text


def child_of(element: ET.Element, path: str) -> ET.Element:
    """What is found below an element by a path of tags, and made where it is not."""
    for tag in path.split("/"):
        found = element.find(tag)
        element = ET.SubElement(element, tag) if found is None else found
    return element


def floats(text: str) -> list[float] | None:
    """The numbers of a text; None where one is none."""
    try:
        return [float(word) for word in text.split()]
    except ValueError:
        return None


def free_name(name: str, taken: set[str]) -> str:
    """The name, or if it is taken one like it: "hip_2"."""
    names = (f"{name}_{k}" for k in range(2, len(taken) + 3))
    return next(free for free in (name, *names) if free not in taken)


def rename_taken(elements: Sequence[ET.Element], findings: Findings, line: str) -> None:
    """Gives elements names of their own, with a note on each that had another's."""
    taken: set[str] = set()
    for element in elements:
        name = element.get("name", "")
        if name in taken:
            element.set("name", free_name(name, taken))
            findings.note(line, element.get("name", ""))
        taken.add(element.get("name", ""))


def free_bodies(root: ET.Element) -> list[str]:
    """The free bodies of an SDF beside what its joints move: balls, boxes of a scene.

    None for a file of several models, or without joints that move.
    """
    if len(root.findall(".//model")) != 1:
        return []
    joints = [(j.get("type"), _ends(j)) for j in root.iter("joint")]
    held = {"world"}.union(*(ends for kind, ends in joints if kind != "fixed"))
    if len(held) == 1:
        return []
    for _ in joints:  # at most once for every joint of the longest chain
        held = held.union(*(ends for _, ends in joints if ends & held))
    names = [link.get("name", "") for link in root.iter("link")]
    return [name for name in names if name not in held]


def remove_bodies(root: ET.Element, names: Collection[str]) -> None:
    """Takes links out of an SDF, with their joints and what filters their contacts."""
    gone = [link for link in root.iter("link") if link.get("name") in names]
    gone += [joint for joint in root.iter("joint") if _ends(joint) & set(names)]
    gone += [m for m in root.iter("drake:member") if m.text in names]
    remove(root, gone)
    groups = list(root.iter("drake:collision_filter_group"))
    empty = [group for group in groups if group.find("drake:member") is None]
    emptied = {group.get("name") for group in empty}
    ignored = root.iter("drake:ignored_collision_filter_group")
    remove(root, [*empty, *(other for other in ignored if other.text in emptied)])


def _ends(joint: ET.Element) -> set[str]:
    """The two links of a joint."""
    return {link_at(joint, end) for end in ("parent", "child")}


# --- ball joints ---

HINGES_OF_BALL = ("_qz", "_qy", "_qx")
"""What the names of the hinges of a ball joint add to its name, from its parent on."""


def balls_to_hinges(root: ET.Element, findings: Findings) -> None:
    """Makes three hinges of every ball joint of a URDF or SDF, on links without mass.

        R_FM = Rz(qz) Ry(qy) Rx(qx)

    as Drake's own joint has it, whose velocities are no rates of its angles: plans need
    such, and postures, loops and poses know joints of one coordinate. Damping acts on
    the rates of the angles then. At qy = 90 deg both are singular.

    Where bushings span joints, whose turns they hold, all stay as they are.
    """
    if next(root.iter("drake:linear_bushing_rpy"), None) is not None:
        return
    for model in models_of(root):
        for ball in [j for j in joint_elements(model) if j.get("type") == "ball"]:
            if model is root:
                urdf_hinges(model, ball, dict(zip(HINGES_OF_BALL, np.eye(3)[::-1])))
            else:
                _sdf_hinges(model, ball)
            findings.note("a ball joint is read as three hinges", ball.get("name", ""))


def urdf_hinges(
    robot: ET.Element,
    joint: ET.Element,
    axes: Mapping[str, np.ndarray],
    kept: Collection[str] = ("dynamics",),
) -> None:
    """Puts hinges one after the other, on links without mass, in place of a joint.

    Args:
        robot: the URDF.
        joint: one of its joints.
        axes: axes of the hinges, by what ends their names.
        kept: tags of the joint that every hinge has.
    """
    name, parent = joint.get("name", ""), link_at(joint, "parent")
    placed = [e for e in joint if e.tag == "origin"]
    shared = [e for e in joint if e.tag in kept]
    for number, (ending, axis) in enumerate(axes.items(), 1):
        last = number == len(axes)
        child = link_at(joint, "child") if last else f"{name}{ending}_link"
        hinge = add(robot, "joint", name=name + ending, type="continuous")
        hinge.extend(placed + shared)
        add(hinge, "parent", link=parent)
        add(hinge, "child", link=child)
        add(hinge, "axis", xyz=axis)
        if not last:
            add(robot, "link", name=child)
        parent, placed = child, []
    robot.remove(joint)


def _sdf_hinges(model: ET.Element, ball: ET.Element) -> None:
    name, parent = ball.get("name", ""), link_at(ball, "parent")
    foot = name + HINGES_OF_BALL[-1]
    for ending, axis in zip(HINGES_OF_BALL, np.eye(3)[::-1]):
        last = name + ending == foot
        child = link_at(ball, "child") if last else f"{name}{ending}_link"
        hinge = add(model, "joint", name=name + ending, type="revolute")
        add(hinge, "parent", parent)
        add(hinge, "child", child)
        if last:
            hinge.extend(ball.findall("pose"))
        else:
            link = add(model, "link", name=child)
            add(link, "pose", "0 0 0 0 0 0", relative_to=foot)
            write_inertial(link, 0.0, np.zeros((3, 3)), urdf=False)
        turns = add(hinge, "axis")
        add(turns, "xyz", axis)
        add(add(turns, "limit"), "effort", 0.0)
        damping = ball.findtext("axis/dynamics/damping", "0")
        add(add(turns, "dynamics"), "damping", damping)
        parent = child
    frame = add(model, "frame", name=name, attached_to=link_at(ball, "child"))
    add(frame, "pose", "0 0 0 0 0 0", relative_to=foot)
    model.remove(ball)


# --- loops cut ---

HINGES = ("revolute", "continuous")

SINGLE = (*HINGES, "prismatic")
"""The types of joints of one degree of freedom."""

_ROWS = {"ball": "ball", "revolute": "hinge", "continuous": "hinge", "fixed": "weld"}


def cut_loops(root: ET.Element, findings: Findings) -> tuple[Loop, ...]:
    """Takes joints that close loops out of a tree, in place.

    Args:
        root: of a URDF or an SDF, from :func:`drakebots.formats.read.tree.read_tree`.
        findings: a loop whose joint cannot be a loop's is a problem.

    Returns:
        The loops, closed as the file has them at its default positions.
    """
    cuts = [joint for model in models_of(root) for joint in closing_joints(model)]
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
        loops = _placed(root, cuts)
    except DRAKE_REFUSALS as error:
        findings.problem(f"its loops cannot be cut: {shortened(error)}")
        return ()
    leave_out(root, cuts, findings, "a joint that closes a loop is kept as a loop")
    return loops


def closing_joints(model: ET.Element) -> list[ET.Element]:
    """The joints that close loops, in the order of the file.

    Kruskal's algorithm: a joint between links that already hang together closes one.
    """
    joints, group = joint_elements(model), {}

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
    return 1 if any(max(floats(text) or [0.0]) > 0 for text in texts) else 2


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


def _placed(root: ET.Element, cuts: list[ET.Element]) -> tuple[Loop, ...]:
    """The loops, with the points and axes of their joints as Drake places them.

    Drake parses a tree in which each cut joint leads to a copy of its child, without
    shapes, at the child's pose.
    """
    probe = copy.deepcopy(root)
    remove(probe, [e for e in probe.iter() if e.tag in ("visual", "collision")])
    names = {joint.get("name", "") for joint in cuts}
    for model in models_of(probe):
        links = {link.get("name"): link for link in model.findall("link")}
        for joint in joint_elements(model):
            if joint.get("name") in names:
                end = add(model, "link", name=f"{joint.get('name')}__end")
                if (pose := links[link_at(joint, "child")].find("pose")) is not None:
                    end.append(pose)
                _set_child(joint, end.get("name", ""))
    plant, ending = MultibodyPlant(1e-3), "urdf" if root.tag == "robot" else "sdf"
    with heard():
        Parser(plant).AddModelsFromString(write_tree(probe), ending)
    return tuple(_loop(plant, joint) for joint in cuts)


def _loop(plant: MultibodyPlant, element: ET.Element) -> Loop:
    joint = plant.GetJointByName(element.get("name", ""))
    ends, kind = (joint.frame_on_parent(), joint.frame_on_child()), element.get("type")
    return Loop.of_frames(
        joint.name(),
        [link_at(element, end) for end in ("parent", "child")],
        [end.GetFixedPoseInBodyFrame() for end in ends],
        joint.revolute_axis() if kind in HINGES else (0.0, 0.0, 1.0),
        rows=_ROWS[str(kind)],
    )
