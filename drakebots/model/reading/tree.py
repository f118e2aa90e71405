"""XML trees that keep prefixed tags as they are written.

Drake's parsers compare tags as text: `<drake:joint>` is known by these letters, whether
or not the prefix is declared. So a tree here has the tags and attributes of the file,
and is written back with the same letters; comments are left out.
"""

from __future__ import annotations

import xml.etree.ElementTree as ET
from collections.abc import Collection
from xml.parsers import expat

from drakebots.core.errors import InvalidInput


def read_tree(text: str) -> ET.Element:
    """The root of an XML text, with tags such as "drake:joint".

    Raises:
        InvalidInput: for a text that is not well-formed, with its line.
    """
    builder = ET.TreeBuilder()
    parser = expat.ParserCreate(encoding="utf-8")
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


def remove(root: ET.Element, unwanted: list[ET.Element]) -> None:
    """Takes elements out of a tree, wherever they are in it."""
    gone = set(map(id, unwanted))
    for parent in list(root.iter()):
        for child in [child for child in parent if id(child) in gone]:
            parent.remove(child)


def fixed_to_world(root: ET.Element) -> list[ET.Element]:
    """The fixed joints of a URDF or SDF that hold a link to the world."""
    return [
        joint
        for joint in root.iter("joint")
        if joint.get("type") == "fixed"
        and (parent := joint.find("parent")) is not None
        and (parent.get("link") or parent.text or "").strip() == "world"
    ]


def loose_bodies(root: ET.Element) -> list[str]:
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
    """The two links of an SDF's joint."""
    return {(joint.findtext(tag) or "").strip() for tag in ("parent", "child")}
