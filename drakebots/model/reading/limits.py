"""Checks of a model file before Drake reads it.

Values that are no finite numbers reach Drake's assertions. Here they are refused with a
message that names the element.
"""

from __future__ import annotations

import math
import re
import xml.etree.ElementTree as ET
from pathlib import Path

import yaml

from drakebots.core.errors import ModelProblem

MAX_BYTES = 50_000_000
"""A larger model file is refused before it is read."""

MAX_DEPTH = 200
"""XML that is nested deeper is refused."""


def check_model_file(path: Path) -> str:
    """Refuses a file that cannot be a model.

    Returns:
        Its text, without what may surround it: blanks, and one NUL at the end.

    Raises:
        ModelProblem: for a file that is unreadable, too large, not XML (or
            YAML), or has a number that is not finite, or a negative mass.
    """
    if path.stat().st_size > MAX_BYTES:
        raise ModelProblem(path, f"is larger than {MAX_BYTES // 1_000_000} MB")
    try:
        text = path.read_bytes().decode()
    except OSError as error:
        raise ModelProblem(path, f"cannot be read ({error.strerror})") from error
    except UnicodeDecodeError as error:
        raise ModelProblem(path, "is not text in UTF-8") from error
    text = text.removeprefix("\ufeff").removesuffix("\0").strip()
    if "\0" in text:
        raise ModelProblem(path, "has a NUL character: not a text file")
    if path.name.lower().endswith(".dmd.yaml"):
        _check_yaml(path, text)
    else:
        _check_xml(path, text)
    return text


def _check_yaml(path: Path, text: str) -> None:
    try:
        # Drake's own tags (!Rpy ...) are checked by Drake.
        tree = yaml.compose(text, Loader=yaml.SafeLoader)
    except (yaml.YAMLError, RecursionError, ValueError) as error:
        raise ModelProblem(path, f"is not YAML: {error}") from error
    if tree is None:
        raise ModelProblem(path, "is empty; a dmd.yaml starts with `directives:`")


def _check_xml(path: Path, text: str) -> None:
    if "<!DOCTYPE" in text or "<!ENTITY" in text:
        raise ModelProblem(path, "has a DOCTYPE or ENTITY; remove it")
    try:
        root = ET.fromstring(text)
    except ET.ParseError as error:
        raise ModelProblem(path, f"is not well-formed XML: {error}") from error
    ending = path.suffix.lower()
    expected = {".urdf": "robot", ".sdf": "sdf"}.get(ending, "mujoco")
    start = root.tag.rpartition("}")[2]
    if start != expected:
        raise ModelProblem(
            path, f"starts with <{start}>; a {ending} needs <{expected}>"
        )
    stack = [(root, 1)]
    while stack:
        element, depth = stack.pop()
        if depth > MAX_DEPTH:
            raise ModelProblem(path, f"is nested deeper than {MAX_DEPTH} elements")
        stack.extend((child, depth + 1) for child in element)
        _check_values(path, element, element.tag.rpartition("}")[2])


_TEXTS = frozenset(("name", "filename", "link", "joint", "uri", "model", "version"))
"""Attributes that may hold any text."""


def _check_values(path: Path, element: ET.Element, tag: str) -> None:
    name = element.get("name")
    where = f"<{tag}{f' name={name!r}' if name else ''}>"
    for key, value in [("", element.text or ""), *element.attrib.items()]:
        if key not in _TEXTS:
            _check_numbers(path, f"{where} {key}".strip(), value)
    if tag == "mass":
        text = element.get("value", element.text or "")
        try:
            mass = float(text)
        except ValueError:
            raise ModelProblem(path, f"{where} {text!r} is not a number") from None
        if not mass >= 0:
            raise ModelProblem(path, f"{where} is {mass:g} kg; a mass must be >= 0")


_NOT_FINITE = re.compile(r"(?<![\w.])[-+]?(nan|inf|infinity)(?![\w.])", re.IGNORECASE)


def _check_numbers(path: Path, where: str, text: str) -> None:
    if len(text) > 2_000:
        return
    match = _NOT_FINITE.search(text)
    # libsdformat's default limits are written inf; only there it has a meaning.
    if match and not (
        "inf" in match.group(1).lower()
        and any(k in where for k in ("lower", "upper", "effort", "velocity", "limit"))
    ):
        raise ModelProblem(path, f"{where} is {match.group(0)}; give a finite number")
    for token in text.split():
        try:
            value = float(token)
        except ValueError:
            return
        if math.isinf(value) and not match:
            raise ModelProblem(path, f"{where}: {token} is too large for a number")
