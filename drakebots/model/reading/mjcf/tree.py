"""The elements of an MJCF file: included files put in place, defaults filled in."""

from __future__ import annotations

import os
import xml.etree.ElementTree as ET
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

from drakebots.core.errors import InvalidInput, ModelProblem

_ACTUATORS = frozenset(
    """motor position velocity intvelocity damper cylinder muscle adhesion general
    dcmotor plugin""".split()
)
"""The elements of <actuator>."""


@dataclass
class Element:
    """One element with the attributes that its default class gives it.

    Attributes:
        tag: its tag.
        attributes: its own and, where it has none, those of its class.
        children: in the order of the file.
    """

    tag: str
    attributes: dict[str, str]
    children: list[Element] = field(default_factory=list)

    def __str__(self) -> str:
        name = self.attributes.get("name")
        return f"<{self.tag}>" if name is None else f"<{self.tag} name={name!r}>"

    def get(self, key: str, default: str = "") -> str:
        """An attribute as text."""
        return self.attributes.get(key, default).strip()

    def all(self, *tags: str) -> list[Element]:
        """The children with one of these tags, in their order."""
        return [child for child in self.children if child.tag in tags]

    def numbers(self, key: str, default: str = "") -> list[float]:
        """An attribute as numbers.

        Raises:
            InvalidInput: for anything else.
        """
        text = self.get(key, default)
        try:
            return [float(token) for token in text.split()]
        except ValueError:
            raise InvalidInput(f"{self}: {key}={text!r} must be numbers") from None

    def vector(self, key: str, count: int, default: str) -> list[float]:
        """An attribute as at least `count` numbers, of which the first are taken.

        Raises:
            InvalidInput: for fewer.
        """
        values = self.numbers(key, default)
        if len(values) < count:
            raise InvalidInput(f"{self}: {key}={self.get(key)!r} needs {count} numbers")
        return values[:count]

    def number(self, key: str, default: float) -> float:
        """An attribute as one number, the first of several."""
        return self.vector(key, 1, repr(default))[0]

    def walk(self) -> Iterator[Element]:
        """This element and all below it, in the order of the file."""
        yield self
        for child in self.children:
            yield from child.walk()


def read_elements(path: Path, parse: Callable[[Path], ET.Element]) -> Element:
    """The <mujoco> of a file with included files and defaults in place.

    Args:
        path: the MJCF file, which must not include itself; included files are relative
            to it.
        parse: reads one XML file.

    Raises:
        ModelProblem: for an included file that is missing.
        InvalidInput: for a default class that does not exist.
    """
    root = parse(path)
    _include(root, path, path.parent, parse)
    classes = _Classes()
    for default in root.findall("default"):
        classes.add(default, "main", top=True)
    return _filled(root, classes, "main", inside="")


def _include(
    element: ET.Element, path: Path, top: Path, parse: Callable[[Path], ET.Element]
) -> None:
    """Replaces each <include> below an element by what its file contains."""
    children = []
    for child in element:
        if child.tag != "include":
            _include(child, path, top, parse)
            children.append(child)
            continue
        # Relative to the file that is loaded, as its documentation says, or to this.
        name = child.get("file", "")
        near = [top / name, path.parent / name]
        file = next((f for f in near if os.path.isfile(f)), None)
        if file is None:
            raise ModelProblem(
                path, f"<include file={name!r}>: there is no {near[0]}; add it"
            )
        included = parse(file)
        _include(included, file, top, parse)
        children.extend(included)
    element[:] = children


class _Classes:
    """Default attributes by class and tag; a class has those of its parent too."""

    def __init__(self):
        self.attributes: dict[str, dict[str, dict[str, str]]] = {"main": {}}

    def add(self, default: ET.Element, parent: str, top: bool = False) -> None:
        name = default.get("class", parent if top else "")
        if not name:
            raise InvalidInput("<default>: needs a class; give it one")
        if top and name != "main":
            # The outermost class may have any name; elements without a class use it.
            self.attributes[name] = self.attributes["main"]
        own = self.attributes.setdefault(
            name, {tag: dict(a) for tag, a in self.attributes[parent].items()}
        )
        for child in default:
            if child.tag != "default":
                own[_space(child.tag)] = own.get(_space(child.tag), {}) | child.attrib
        for child in default.findall("default"):
            self.add(child, name)

    def of(self, tag: str, name: str) -> dict[str, str]:
        if name not in self.attributes:
            raise InvalidInput(f"<{tag} class={name!r}>: there is no such default")
        return self.attributes[name].get(_space(tag), {})


def _space(tag: str) -> str:
    """Actuators of every kind share their defaults, as do equalities and tendons."""
    if tag in _ACTUATORS:
        return "general"
    return {"fixed": "tendon", "spatial": "tendon"}.get(tag, tag)


def _filled(element: ET.Element, classes: _Classes, name: str, inside: str) -> Element:
    """The element with defaults; `name` is the class that applies inside it."""
    tag, own = element.tag, dict(element.attrib)
    if inside == "equality":
        defaults = classes.of("equality", own.get("class", name))
    elif inside in ("fixed", "spatial"):
        defaults = {}  # <joint> of a tendon only names a joint
    else:
        defaults = classes.of(tag, own.get("class", name))
    found = Element(tag, _merged(own, defaults))
    name = own.get("childclass", name)
    if tag != "default":
        for child in element:
            found.children.append(_filled(child, classes, name, tag))
    return found


_ORIENTATIONS = ("quat", "axisangle", "euler", "xyaxes", "zaxis")


def _merged(own: dict[str, str], defaults: dict[str, str]) -> dict[str, str]:
    """Own attributes before defaults; an orientation of its own replaces any other."""
    if any(key in own for key in _ORIENTATIONS):
        defaults = {k: v for k, v in defaults.items() if k not in _ORIENTATIONS}
    return {**defaults, **own}
