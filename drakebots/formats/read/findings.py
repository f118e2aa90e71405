"""Options of reading a model file, and what comes of it: problems and notes.

A file may have hundreds of things to say of the same kind. Findings of one kind make
one line, with the items that they are about, counted. Tags of URDF and SDF that Drake
passes over without a word make some.
"""

from __future__ import annotations

import mmap
import re
import xml.etree.ElementTree as ET
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, fields
from functools import cache
from pathlib import Path
from typing import Any

import pydrake

from drakebots.core.errors import ModelProblem, some
from drakebots.core.files import read_yaml
from drakebots.core.units import SI, Scaling

ITEMS = 8
"""A line names so many items and counts the others."""

PROBLEMS = 20
"""A message names so many problems and counts the others."""

LENGTH = 160
"""A longer message is cut."""


@dataclass(frozen=True)
class Options:
    """How a file is to be loaded: the arguments of :func:`drakebots.load` beside it."""

    units: Scaling = SI
    feet: str | Sequence[str] | None = None
    actuate: str | Sequence[str] | None = None
    effort: float | None = None
    packages: Mapping[str, str | Path] | None = None
    strict: bool = False
    free_base: bool = False
    up: str | None = None
    alone: bool = False
    repair: bool = False
    parameters: Mapping[str, float] | None = None

    def given(self) -> dict[str, Any]:
        """Those that are not the default, as plain values."""
        units, packages = self.units, self.packages
        plain = {
            "units": None if units == SI else [units.length, units.mass, units.time],
            "packages": packages
            and {name: str(Path(x).absolute()) for name, x in packages.items()},
            "parameters": dict(self.parameters) if self.parameters else None,
        }
        values = {field.name: getattr(self, field.name) for field in fields(self)}
        return {
            name: value if isinstance(value, str | float | int | dict) else list(value)
            for name, value in (values | plain).items()
            if value is not None and value is not False
        }


class Findings:
    """Collects problems and notes of one file.

    Attributes:
        problems: faults that make the file unusable, a sentence each, in order.
    """

    def __init__(self):
        self.problems: list[str] = []
        self._notes: dict[str, Counter[str]] = {}

    def problem(self, message: str) -> None:
        """Something that makes the file unusable: the item, the fault, the remedy."""
        if message not in self.problems:
            self.problems.append(message)

    def note(self, line: str, item: str = "", count: int = 1) -> None:
        """Something that was changed or left out.

        Args:
            line: the event; findings with the same line are reported together.
            item: its subject; none for the file as a whole.
            count: number of times.
        """
        self._notes.setdefault(line, Counter())[item] += count

    @property
    def notes(self) -> tuple[str, ...]:
        """One line for every kind of note: "<line>: a, b (3 times), and 4 more"."""
        return tuple(_line(line, items) for line, items in self._notes.items())

    def check(self, path: Path, *, strict: bool = False) -> None:
        """Raises if there is a problem; with `strict`, also if there is a note.

        Raises:
            ModelProblem: with all problems in one line.
        """
        found = self.problems + (list(self.notes) if strict else [])
        if found:
            raise ModelProblem(path, some(found, PROBLEMS, "; "))


def _line(line: str, items: Counter[str]) -> str:
    named = {item: count for item, count in items.items() if item}
    texts = [
        item + (f" ({count} times)" if count > 1 else "")
        for item, count in (named or {line: items[""]}).items()
    ]
    return f"{line}: {some(texts, ITEMS)}" if named else texts[0]


@cache
def words(name: str) -> Any:
    """A table of `words.yaml`: the words of a text, else what YAML makes of it."""
    found = read_yaml(Path(__file__).with_name("words.yaml"))[name]
    return frozenset(found.split()) if isinstance(found, str) else found


def note_messages(messages: Iterable[str], findings: Findings) -> None:
    """Notes what Drake said, one line for each kind of message.

    Drake warns once for every element.

    Args:
        messages: one line each, without the path of the file.
        findings: to add to.
    """
    for message in messages:
        for kind in words("messages"):
            if match := re.match(kind["pattern"], message):
                findings.note(kind["line"], kind["item"].format(*match.groups()))
                break
        else:
            sentence = re.split(r"(?<=[.;]) ", message)[0].rstrip(".;")
            findings.note(f"Drake says: {sentence[:LENGTH]}")


FOREIGN = frozenset(("gazebo", "plugin", "sensor"))
"""Elements for other programs, which may hold any values."""

FORCES = ("distance_constraint", "tendon_constraint")
"""Drake's constraints that are springs, or rods where they are stiff; no loops."""


@cache
def drake_tags(folder: Path = Path(pydrake.__file__).parent / "lib") -> frozenset[str]:
    """The `drake:` tags that the installed Drake reads; empty where that is unknown.

    Drake publishes no list, but each tag that its parsers look for is a text in its
    library, as "drake:<tag>".

    Args:
        folder: with Drake's library.
    """
    tags: set[str] = set()
    for library in folder.glob("libdrake.*"):
        with (
            open(library, "rb") as file,
            mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as text,
        ):
            tags |= {tag.decode() for tag in re.findall(rb"drake:(\w+)\0", text)}
    return frozenset(tags)


def note_ignored_tags(root: ET.Element, findings: Findings, *, urdf: bool) -> None:
    """Notes the tags that Drake ignores; what is inside such a tag is not counted.

    And the constraints that Drake's plants know and programs do not. Of an SDF only
    `drake:` tags and silent ones are looked at: Drake itself names the others.

    Args:
        root: of the file, with prefixes as written.
        findings: to add to.
        urdf: whether it is a URDF.
    """
    stack, plain = [root], words("urdf_tags" if urdf else "sdf_silent")
    while stack:
        element = stack.pop()
        prefix, _, tag = element.tag.rpartition(":")
        if prefix == "drake":
            known = tag in drake_tags() or not drake_tags() or (urdf and tag in plain)
        else:
            known = (element.tag in plain) == urdf
        if known:
            if prefix == "drake" and tag in FORCES:
                findings.note("acts in simulations, not in plans", f"<drake:{tag}>")
            stack.extend(() if element.tag in FOREIGN else reversed(element))
        else:
            findings.note("Drake ignores", f"<{element.tag}>")
