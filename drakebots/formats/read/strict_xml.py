"""Strict reading of XML model files: elements with line numbers, and their numbers.

Every number must be valid, and tags and attributes can be checked by a table of those
that are known; what is wrong raises a :class:`~drakebots.core.errors.ModelProblem` that
names the element.
"""

from __future__ import annotations

import ast
import math
import operator
import re
import xml.etree.ElementTree as ET
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path

import numpy as np

from drakebots.core.errors import InvalidInput, ModelProblem
from drakebots.formats.read.limits import check_size, read_text
from drakebots.formats.read.tree import read_tree

LARGEST = 1e15
"""Numbers beyond this are refused: libsdformat reads a limit of 1e16 as none."""
SMALLEST = 1e-100
"""Numbers below this are zero: libsdformat refuses subnormal ones."""


class Element(ET.Element):
    """One XML element that knows where it stands.

    Args:
        path: of the file.
        line: of the start tag, from 1.
        tag: with Drake's prefix or without.
        attributes: by name; declarations of prefixes do not count.
    """

    def __init__(self, path: Path, line: int, tag: str, attributes: dict[str, str]):
        known = {k: v for k, v in attributes.items() if not k.startswith("xmlns:")}
        super().__init__(tag.removeprefix("drake:"), known)
        self.path, self.line = path, line

    @property
    def stray(self) -> str:
        """The start of the text directly inside the element."""
        texts = (self.text, *(child.tail for child in self))
        return " ".join(word for x in texts if x for word in x.split())[:60].strip()

    def problem(self, message: str) -> ModelProblem:
        """The error `message` about this element."""
        name = self.get("name")
        named = self.tag if name is None else f"{self.tag} name={_short(name)}"
        return ModelProblem(self.path, f"<{named}> (line {self.line}): {message}")

    def check(self, known: Mapping[str, Sequence[str]], parent: str = "") -> None:
        """Raises unless attributes and child tags are known, here and below.

        Args:
            known: attributes and children by tag, or by "parent tag" for the tags that
                have others in that parent; of other tags anything is.
            parent: tag of the element around this one.
        """
        own = known.get(f"{parent} {self.tag}", known.get(self.tag))
        if own is None:
            return
        attributes, children = own[0].split(), own[1].split()
        for key in self.attrib:
            if key not in attributes:
                raise self.problem(
                    f"unknown attribute {_short(key)}; known: {_listed(attributes)}"
                )
        for child in self:
            if child.tag not in children:
                raise child.problem(
                    f"unknown tag inside <{self.tag}>; known: {_listed(children)}"
                )
            child.check(known, self.tag)

    def part(self, tag: str, *, needed: bool = True) -> Element:
        """The child with this tag; an empty one where it may be missing."""
        found = self.findall(tag)
        if len(found) > 1:
            raise found[1].problem(f"a second <{tag}> in <{self.tag}>; keep one")
        if needed and not found:
            raise self.problem(f"needs a <{tag}>; add it")
        return found[0] if found else Element(self.path, self.line, tag, {})

    def given(self, key: str, default: str | None = None) -> str:
        """The attribute `key`; required when there is no default."""
        value = self.get(key, default)
        if value is None:
            raise self.problem(f"needs the attribute {key!r}; add it")
        return value

    def name(self, key: str = "name") -> str:
        """The attribute `key` as a name that an SDF element may have."""
        value = self.given(key)
        if not value or value != value.strip() or not value.isprintable():
            raise self.problem(f"{key}={_short(value)} is no name; write one")
        if "::" in value or (value.startswith("__") and value.endswith("__")):
            raise self.problem(
                f"{key}={_short(value)} is reserved in SDF; rename it without '::' "
                "and without '__' at both ends"
            )
        return value

    def numbers(
        self, key: str, count: int | tuple[int, ...], default: list[float] | None = None
    ) -> np.ndarray:
        """The attribute `key` as numbers parted by spaces or commas, (count,)."""
        if default is not None and key not in self.attrib:
            return np.array(default, dtype=float)
        text = self.given(key)
        counts = (count,) if isinstance(count, int) else count
        # A scalar may hold spaces ("pi / 4"); several numbers may not.
        parts = [text] if counts == (1,) else re.split(r"\s*,\s*|\s+", text.strip())
        if len(parts) not in counts:
            wanted = " or ".join(map(str, counts))
            raise self.problem(
                f"{key}={_short(text)} has {len(parts)} numbers; write {wanted}"
            )
        return np.array([self._value(key, part) for part in parts])

    def number(self, key: str, default: float | None = None) -> float:
        """The attribute `key` as one number."""
        return float(self.numbers(key, 1, None if default is None else [default])[0])

    def not_negative(self, key: str, default: float | None = None) -> float:
        """The attribute `key` as one number >= 0."""
        value = self.number(key, default)
        if value < 0:
            raise self.problem(f"{key}={value:g} is negative; it must be >= 0")
        return value

    def positive(self, key: str) -> float:
        """The attribute `key` as one number > 0."""
        value = self.number(key)
        if value <= 0:
            raise self.problem(f"{key}={value:g} must be > 0")
        return value

    def _value(self, key: str, text: str) -> float:
        try:
            value = arithmetic(text)
        except InvalidInput as error:
            raise self.problem(
                f"{key}={_short(self.attrib[key])}: {_short(text)} is not a finite "
                "number; write digits, pi, + - * / and parentheses"
            ) from error
        if abs(value) > LARGEST:
            raise self.problem(
                f"{key}={value:g} is beyond {LARGEST:g}; correct it (or leave an "
                "infinite limit out)"
            )
        return value if abs(value) > SMALLEST else 0.0


_ARITHMETIC = re.compile(r"[0-9.eE+\-*/()pi\s]*")
_LEADING_ZEROS = re.compile(r"(?<![0-9.eE])0+(?=[0-9])")
_MAX_EXPRESSION = 200
_MAX_NESTING = 20
_OPERATORS = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.UAdd: operator.pos,
    ast.USub: operator.neg,
}


def arithmetic(text: str) -> float:
    """The value of numbers and `pi` joined by + - * / and parentheses: "-pi/4".

    Raises:
        InvalidInput: for anything else, and for a value that is not finite.
    """
    if len(text) > _MAX_EXPRESSION:
        raise InvalidInput(f"{text[:20]!r}... is too long to be a number")
    if not _ARITHMETIC.fullmatch(text) or text.count("(") > _MAX_NESTING:
        raise InvalidInput(f"{text!r} is not a number")
    # Python takes no 007, and no line breaks.
    line = _LEADING_ZEROS.sub("", " ".join(text.split()))
    try:
        value = _value(ast.parse(line, mode="eval").body)
    except (SyntaxError, TypeError, ValueError, KeyError, ZeroDivisionError) as error:
        raise InvalidInput(f"{text!r} is not a number") from error
    if not math.isfinite(value):
        raise InvalidInput(f"{text!r} is not a finite number")
    return value


def _value(node: ast.expr) -> float:
    if isinstance(node, ast.Constant):
        return float(node.value)
    if isinstance(node, ast.UnaryOp):
        return _OPERATORS[type(node.op)](_value(node.operand))
    if isinstance(node, ast.BinOp):
        return _OPERATORS[type(node.op)](_value(node.left), _value(node.right))
    if isinstance(node, ast.Name) and node.id == "pi":
        return math.pi
    raise ValueError("not arithmetic")


def _short(text: str) -> str:
    return repr(text if len(text) <= 60 else text[:57] + "...")


def _listed(names: list[str]) -> str:
    return ", ".join(names) or "none"


def read_xml(path: str | Path) -> Element:
    """The root element of an XML file.

    Raises:
        ModelProblem: for a file that is no text, not well-formed, too large or nested
            too deep, or that has a DOCTYPE (whose entities could expand without limit).
    """
    path = Path(path)
    text = read_text(path)
    if not text.strip():
        raise ModelProblem(path, "is empty; give a URDF file")
    check_size(path, text)
    return read_tree(text, partial(Element, path))
