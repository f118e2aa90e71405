"""XML trees that keep prefixed tags as they are written.

Drake's parsers compare tags as text: `<drake:joint>` is known by these letters, whether
or not the prefix is declared. So a tree here has the tags and attributes of the file,
and is written back with the same letters; comments are left out.
"""

from __future__ import annotations

import xml.etree.ElementTree as ET
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
