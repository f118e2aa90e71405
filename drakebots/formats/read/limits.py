"""Checks of a model file before anything parses it whole.

A file that is too large, too deep, or no text at all is refused within seconds. Values
that are no finite numbers reach Drake's assertions; here they are refused with a
message that names the element.
"""

from __future__ import annotations

import codecs
import math
import re
import xml.etree.ElementTree as ET
from pathlib import Path
from xml.parsers import expat

from drakebots.core.errors import InvalidInput, ModelProblem
from drakebots.core.files import MAX_YAML, check_readable, compose_yaml, reading
from drakebots.formats.read.findings import FOREIGN, Findings
from drakebots.formats.read.tree import read_tree

MAX_BYTES = 50_000_000
"""A larger model file is refused before it is read."""

MAX_DEPTH = 200
"""XML that is nested deeper is refused."""

MAX_ELEMENTS = 50_000
"""XML with more elements is refused."""

MAX_BODIES = 2_000
"""A model with more links is refused: Drake takes a second and half a GB for these, and
both grow with the square of their number."""

MAX_SHAPES = 2_000
"""A model with more visuals and collisions is refused, for the same reason."""

_COPIES = frozenset(("replicate", "composite"))
"""Elements of MJCF that stand for as many bodies as their `count` says."""

_ENCODING = re.compile(rb"^\s*<\?xml[^>]*\sencoding\s*=\s*[\"']([\w.:-]+)[\"']")

_COMMENT = re.compile("<!--(.*?)-->", re.DOTALL)
_DASHES = re.compile(r"-(?=-|\Z)")
"""Dashes that a comment of XML may not have: two in a row, and one at its end."""


def check_content(path: Path, data: bytes) -> None:
    """Refuses the pointer that Git keeps in place of a large file.

    Args:
        path: of the file.
        data: its beginning.

    Raises:
        ModelProblem: with the command that gets the file.
    """
    if data.startswith(b"version https://git-lfs.github.com/spec/"):
        raise ModelProblem(
            path, "is a Git LFS pointer in place of the file; run `git lfs pull` there"
        )


def check_model_file(
    path: Path, findings: Findings | None = None, text: str | None = None
) -> str:
    """Refuses a file that cannot be a model.

    Args:
        path: the file.
        findings: bad numbers are added to its problems; None to raise for them.
        text: to check in place of the file's.

    Returns:
        Its text, without what may surround it: blanks, and one NUL at the end.

    Raises:
        ModelProblem: for a file that is unreadable, too large, not XML (or
            YAML), or has a number that is not finite, or a negative mass.
    """
    text = read_text(path) if text is None else text
    if path.name.lower().endswith(".dmd.yaml"):
        with reading(path, ModelProblem):
            # Drake's own tags (!Rpy ...) are checked by Drake.
            tree = compose_yaml(text)
        if tree is None:
            raise ModelProblem(path, "is empty; a dmd.yaml starts with `directives:`")
    else:
        found = Findings() if findings is None else findings
        _check_xml(path, text, found)
        if findings is None:
            found.check(path)
    return text


def read_text(path: Path) -> str:
    """The text of a model file, in UTF-8 or in the encoding that its XML declares.

    Comments lose the dashes that make them ill-formed XML, which Drake's and MuJoCo's
    parsers take.

    Raises:
        ModelProblem: for anything but a file of text of a size that models have.
    """
    is_yaml = path.name.lower().endswith(".dmd.yaml")
    try:
        check_readable(path, MAX_YAML if is_yaml else MAX_BYTES)
        data = path.read_bytes()
        check_content(path, data)
    except InvalidInput as error:
        raise ModelProblem(path, str(error)) from error
    except (OSError, ValueError) as error:
        # A path with a NUL is a ValueError.
        raise ModelProblem(path, f"cannot be read ({error})") from error
    declared = None if is_yaml else _ENCODING.match(data[:1000])
    encoding = declared[1].decode() if declared else "utf-8"
    try:
        text = codecs.decode(data, encoding)
    except LookupError as error:
        raise ModelProblem(path, f"declares the unknown encoding {encoding}") from error
    except ValueError as error:
        raise ModelProblem(
            path, f"is not text in {encoding.upper()}; save it as UTF-8"
        ) from error
    text = text.removeprefix("\ufeff").removesuffix("\0").strip()
    if "\0" in text:
        raise ModelProblem(path, "has a NUL character: not a text file")
    if not is_yaml:
        text = _COMMENT.sub(lambda x: f"<!--{_DASHES.sub(' ', x[1])}-->", text)
    return text


def _check_xml(path: Path, text: str, findings: Findings) -> None:
    check_size(path, text)
    root, ending = read_tree(text), path.suffix.lower()
    tags = {".urdf": "robot", ".xacro": "robot", ".sdf": "sdf"}
    expected = tags.get(ending, "mujoco")
    if root.tag != expected:
        raise ModelProblem(
            path, f"starts with <{root.tag}>; a {ending} needs <{expected}>"
        )
    stack = [(root, "")]
    while stack:
        element, owner = stack.pop()
        _check_values(element, owner, findings)
        if element.tag in OWNERS and element.get("name"):
            owner = f"{element.tag} {element.get('name')!r}: "
        children = [child for child in element if child.tag not in FOREIGN]
        stack.extend((child, owner) for child in reversed(children))


def check_size(path: Path, text: str) -> None:
    """Refuses XML of more depth, elements or links than models have.

    What MJCF copies counts as often as it is copied.

    Raises:
        ModelProblem: at the first element too many, or at a DOCTYPE, whose entities
            could expand without limit.
    """
    counts = {"elements": 0, "links": 0, "shapes": 0}
    copies = [1]

    def start(tag: str, attributes: dict[str, str]) -> None:
        if tag in ("flex", "flexcomp"):
            raise ModelProblem(path, f"has a <{tag}>; bodies must be rigid: remove it")
        if tag in ("include", "attach") and copies[-1] > 1:
            raise ModelProblem(path, f"has <{tag}> within a <replicate>; move it out")
        number = attributes.get("count", "") if tag in _COPIES else ""
        copies.append(copies[-1] * math.prod(map(int, re.findall(r"\d{1,9}", number))))
        counts["elements"] += copies[-1]
        counts["links"] += copies[-1] * (tag in ("link", "body", "composite"))
        counts["shapes"] += copies[-1] * (tag in ("visual", "collision", "geom"))
        if len(copies) > MAX_DEPTH + 1:
            raise ModelProblem(path, f"is nested deeper than {MAX_DEPTH} elements")
        if counts["elements"] > MAX_ELEMENTS:
            raise ModelProblem(path, f"has more than {MAX_ELEMENTS} elements")
        if counts["links"] > MAX_BODIES:
            raise ModelProblem(path, f"has more than {MAX_BODIES} links; split it")
        if counts["shapes"] > MAX_SHAPES:
            raise ModelProblem(path, f"has more than {MAX_SHAPES} shapes; use meshes")

    def doctype(*_) -> None:
        raise ModelProblem(path, "has a DOCTYPE or ENTITY; remove it")

    parser = expat.ParserCreate("utf-8")
    parser.StartElementHandler = start
    parser.EndElementHandler = lambda _: copies.pop()
    parser.StartDoctypeDeclHandler = doctype
    try:
        parser.Parse(text.encode(), True)
    except expat.ExpatError as error:
        raise ModelProblem(path, f"is not well-formed XML: {error}") from error


_TEXTS = frozenset(("name", "filename", "link", "joint", "uri", "model", "version"))
"""Attributes that may hold any text."""


OWNERS = frozenset(("link", "joint", "body"))
"""Elements that a message names as the place of what is in them."""


def _check_values(element: ET.Element, owner: str, findings: Findings) -> None:
    name, tag = element.get("name"), element.tag
    where = f"{owner}<{tag}{f' name={name!r}' if name else ''}>"
    for key, value in [("", element.text or ""), *element.attrib.items()]:
        if key not in _TEXTS:
            _check_numbers(f"{where} {key}".strip(), value, findings)
    if tag == "mass":
        text = element.get("value", element.text or "")
        try:
            mass = float(text)
        except ValueError:
            findings.problem(f"{where} {text!r} is not a number")
            return
        if mass < 0:
            findings.problem(f"{where} is {mass:g} kg; a mass must be >= 0")


_NOT_FINITE = re.compile(r"(?<![\w.])[-+]?(nan|inf|infinity)(?![\w.])", re.IGNORECASE)

_LOOKED_AT = 200
"""Of longer lists of numbers, as of a mesh, so many are looked at."""


def _check_numbers(where: str, text: str, findings: Findings) -> None:
    words = text.split()[:_LOOKED_AT]
    match = _NOT_FINITE.search(" ".join(words))
    # libsdformat's default limits are written inf, and Drake's rods are infinitely
    # stiff; only there it has a meaning.
    meant = ("lower", "upper", "effort", "velocity", "limit", "constraint_stiffness")
    if match and not ("inf" in match[1].lower() and any(k in where for k in meant)):
        findings.problem(f"{where} is {match[0]}; give a finite number")
    for word in words:
        try:
            value = float(word)
        except ValueError:
            return
        if math.isinf(value) and not match:
            findings.problem(f"{where}: {word[:20]} is too large for a number")
