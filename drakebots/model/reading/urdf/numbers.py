"""Numbers in the attributes of a URDF."""

from __future__ import annotations

import math
import re
import xml.etree.ElementTree as ET
from collections.abc import Iterator

from drakebots.core.errors import InvalidInput
from drakebots.model.old_urdf.xml import arithmetic
from drakebots.model.reading.findings import Findings


def number(element: ET.Element, key: str) -> float | None:
    """An attribute as a finite number; None where it is missing or none."""
    try:
        value = float(element.get(key, ""))
    except ValueError:
        return None
    return value if math.isfinite(value) else None


def floats(text: str) -> list[float] | None:
    """The numbers of a text; None where one is none."""
    try:
        return [float(word) for word in text.split()]
    except ValueError:
        return None


_NUMBERS = {
    "origin": {"xyz": 3, "rpy": 3},
    "axis": {"xyz": 3},
    "limit": {"lower": 1, "upper": 1, "effort": 1, "velocity": 1},
    "dynamics": {"damping": 1, "friction": 1},
    "mimic": {"multiplier": 1, "offset": 1},
    "mass": {"value": 1},
    "inertia": dict.fromkeys(("ixx", "ixy", "ixz", "iyy", "iyz", "izz"), 1),
    "box": {"size": 3},
    "cylinder": {"radius": 1, "length": 1},
    "capsule": {"radius": 1, "length": 1},
    "sphere": {"radius": 1},
}
"""How many numbers the attributes of an element have."""

_NUMBER = re.compile(r"[-+]?(\d+\.?\d*|\.\d+)([eE][-+]?\d+)?")


def repair_numbers(root: ET.Element, findings: Findings) -> None:
    """Numbers that other readers take: "0, 1", "pi/2", "-1.57."."""
    for owner, element in _with_owner(root):
        for key, count in _NUMBERS.get(element.tag, {}).items():
            text = element.get(key)
            if text is None:
                continue
            values = floats(text)
            if values is None:
                values = _odd_numbers(text, count)
                if len(values) == count:
                    element.set(key, " ".join(map(repr, values)))
                    findings.note("a number is written oddly", f"{text!r} of {owner}")
            if len(values) > count > 1:
                values = values[:count]
                element.set(key, " ".join(map(repr, values)))
                findings.note("only the first numbers count", f"{text!r} of {owner}")
            if len(values) != count:
                numbers = "one number" if count == 1 else f"{count} numbers"
                findings.problem(
                    f"{owner}: <{element.tag} {key}={text!r}> needs {numbers}"
                )


def _odd_numbers(text: str, count: int) -> list[float]:
    """What was meant: arithmetic, or else the digits that are there."""
    parts = [text] if count == 1 else re.split(r"\s*,\s*|\s+", text.strip())
    try:
        return [arithmetic(part) for part in parts]
    except InvalidInput:
        return [float(match.group()) for match in _NUMBER.finditer(text)]


def _with_owner(root: ET.Element) -> Iterator[tuple[str, ET.Element]]:
    """All elements below the links and joints, with what they belong to."""
    for owner in root:
        name = f"{owner.tag} {owner.get('name', '')!r}"
        for element in owner.iter():
            yield name, element
