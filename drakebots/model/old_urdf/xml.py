"""Strict reading of XML model files: elements with line numbers, and their numbers.

Every tag and attribute must be known and every number valid; everything else raises a
:class:`~drakebots.core.errors.ModelProblem` that names the element.
"""

from __future__ import annotations

import ast
import math
import operator
import re
from dataclasses import dataclass, field
from pathlib import Path
from xml.parsers import expat

import numpy as np

from drakebots.core.errors import InvalidInput, ModelProblem
from drakebots.model.reading.limits import check_size, read_text

MAX_DEPTH = 50
LARGEST = 1e15
"""Numbers beyond this are refused: libsdformat reads a limit of 1e16 as none."""
SMALLEST = 1e-100
"""Numbers below this are zero: libsdformat refuses subnormal ones."""


@dataclass
class Element:
    """One XML element: its tag, attributes, children, and where it stands.

    Attributes:
        path: of the file.
        line: of the start tag, from 1.
        namespace: of the tag, "" for none; a tag of another namespace than the
            expected one keeps it, as "uri}tag", and is therefore unknown.
        stray: the start of the text directly inside the element.
    """

    path: Path
    tag: str
    line: int
    namespace: str = ""
    attributes: dict[str, str] = field(default_factory=dict)
    children: list[Element] = field(default_factory=list)
    stray: str = ""

    def problem(self, message: str) -> ModelProblem:
        """The error `message` about this element."""
        name = self.attributes.get("name")
        named = self.tag if name is None else f"{self.tag} name={_short(name)}"
        return ModelProblem(self.path, f"<{named}> (line {self.line}): {message}")

    def check(self, attributes: str = "", children: str = "") -> None:
        """Raises unless attributes and child tags are among those named."""
        known = attributes.split()
        for key in self.attributes:
            if key not in known:
                raise self.problem(
                    f"unknown attribute {_short(key)}; known: {_listed(known)}"
                )
        known = children.split()
        for child in self.children:
            if child.tag not in known:
                raise child.problem(
                    f"unknown tag inside <{self.tag}>; known: {_listed(known)}"
                )

    def walk(self):
        """This element and all its descendants, in the order of the file."""
        stack = [self]
        while stack:
            element = stack.pop()
            yield element
            stack.extend(reversed(element.children))

    def all(self, tag: str) -> list[Element]:
        """The children with this tag."""
        return [child for child in self.children if child.tag == tag]

    def optional(self, tag: str) -> Element | None:
        """The child with this tag, or None."""
        found = self.all(tag)
        if len(found) > 1:
            raise found[1].problem(f"a second <{tag}> in <{self.tag}>; keep one")
        return found[0] if found else None

    def one(self, tag: str) -> Element:
        """The child with this tag."""
        found = self.optional(tag)
        if found is None:
            raise self.problem(f"needs a <{tag}>; add it")
        return found

    def text(self, key: str, default: str | None = None) -> str:
        """The attribute `key`; required when there is no default."""
        value = self.attributes.get(key, default)
        if value is None:
            raise self.problem(f"needs the attribute {key!r}; add it")
        return value

    def name(self, key: str = "name") -> str:
        """The attribute `key` as a name that an SDF element may have."""
        value = self.text(key)
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
        if default is not None and key not in self.attributes:
            return np.array(default, dtype=float)
        text = self.text(key)
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
                f"{key}={_short(self.attributes[key])}: {_short(text)} is not a finite "
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


def read_xml(path: str | Path, namespace: str = "") -> Element:
    """The root element of an XML file with tags of no namespace or `namespace`.

    Raises:
        ModelProblem: for a file that is no text, not well-formed, too large, nested
            deeper than 50 elements, or that has a DOCTYPE (whose entities could expand
            without limit).
    """
    path = Path(path)
    text = read_text(path)
    if not text.strip():
        raise ModelProblem(path, "is empty; give a URDF file")
    check_size(path, text)
    return _Builder(path, namespace).parse(text)


class _Builder:
    """Builds elements from expat's events, without recursion."""

    def __init__(self, path: Path, namespace: str):
        self.path, self.namespace = path, namespace
        self.stack: list[Element] = []
        self.root: Element | None = None
        # The declared encoding is overruled: the text has been decoded.
        self.parser = expat.ParserCreate(encoding="utf-8", namespace_separator="}")
        self.parser.StartElementHandler = self.start
        self.parser.EndElementHandler = lambda name: self.stack.pop()
        self.parser.CharacterDataHandler = self.characters

    def parse(self, text: str) -> Element:
        try:
            self.parser.Parse(text.encode(), True)
        except expat.ExpatError as error:
            raise ModelProblem(
                self.path, f"is not well-formed XML ({error}); correct that line"
            ) from error
        assert self.root is not None
        return self.root

    def start(self, name: str, attributes: dict[str, str]) -> None:
        namespace, _, tag = name.rpartition("}")
        if namespace != self.namespace:
            tag = name
        line = self.parser.CurrentLineNumber
        element = Element(self.path, tag, line, namespace, attributes)
        if len(self.stack) >= MAX_DEPTH:
            raise element.problem(f"is nested deeper than {MAX_DEPTH}; flatten it")
        if self.stack:
            self.stack[-1].children.append(element)
        else:
            self.root = element
        self.stack.append(element)

    def characters(self, data: str) -> None:
        element, data = self.stack[-1], data.strip()
        if data and len(element.stray) < 60:
            element.stray = f"{element.stray} {data}"[:60].strip()
