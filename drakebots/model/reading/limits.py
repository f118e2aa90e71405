"""Checks of a model file before Drake reads it.

Drake ignores unknown `drake:` tags silently, and values that are no finite numbers
reach its assertions. Here they are refused with a message that names the element.
"""

from __future__ import annotations

import math
import mmap
import re
import xml.etree.ElementTree as ET
from functools import cache
from pathlib import Path

import pydrake
import yaml

from drakebots.core.errors import ModelProblem

MAX_BYTES = 50_000_000
"""A larger model file is refused before it is read."""

MAX_DEPTH = 200
"""XML that is nested deeper is refused."""

_DRAKE = "http://drake.mit.edu"

URDF_TAGS = frozenset(
    """robot link joint material transmission gazebo inertial visual collision
    origin mass inertia geometry box cylinder sphere capsule mesh ellipsoid color
    texture parent child axis calibration dynamics limit mimic
    safety_controller type actuator mechanicalReduction hardwareInterface
    frame verbose loop_joint link1 link2 force_element linear_spring_damper
    torsional_spring prismatic_spring collision_filter_group sensor
    drake_compliance""".split()
)
"""Plain tags of URDF, those of old Drake included."""


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


def check_model_file(path: Path) -> tuple[str, ...]:
    """Refuses a file that cannot be a model.

    Returns:
        Notes on what could not be checked, one line each.

    Raises:
        ModelProblem: for a file that is unreadable, too large, not XML (or
            YAML), has a number that is not finite, a negative mass, or a tag
            that Drake would ignore silently.
    """
    if path.stat().st_size > MAX_BYTES:
        raise ModelProblem(path, f"is larger than {MAX_BYTES // 1_000_000} MB")
    try:
        text = path.read_bytes().decode()
    except OSError as error:
        raise ModelProblem(path, f"cannot be read ({error.strerror})") from error
    except UnicodeDecodeError as error:
        raise ModelProblem(path, "is not text in UTF-8") from error
    if "\0" in text:
        raise ModelProblem(path, "has a NUL character: not a text file")
    if path.name.lower().endswith(".dmd.yaml"):
        _check_yaml(path, text)
        return ()
    return _check_xml(path, text)


def _check_yaml(path: Path, text: str) -> None:
    try:
        # Drake's own tags (!Rpy ...) are checked by Drake.
        tree = yaml.compose(text, Loader=yaml.SafeLoader)
    except (yaml.YAMLError, RecursionError, ValueError) as error:
        raise ModelProblem(path, f"is not YAML: {error}") from error
    if tree is None:
        raise ModelProblem(path, "is empty; a dmd.yaml starts with `directives:`")


def _check_xml(path: Path, text: str) -> tuple[str, ...]:
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
    notes: dict[str, None] = {}
    stack = [(root, 1)]
    while stack:
        element, depth = stack.pop()
        if depth > MAX_DEPTH:
            raise ModelProblem(path, f"is nested deeper than {MAX_DEPTH} elements")
        stack.extend((child, depth + 1) for child in element)
        namespace, _, tag = element.tag.rpartition("}")
        if ending in (".sdf", ".urdf"):
            notes |= _check_tag(path, tag, namespace == "{" + _DRAKE, ending)
        _check_values(path, element, tag)
    return tuple(notes)


def _check_tag(path: Path, tag: str, prefixed: bool, ending: str) -> dict[str, None]:
    """A note, as a key, on a tag that cannot be checked."""
    if prefixed:
        # Drake's namespace may also be the default one of a URDF.
        if tag in drake_tags() or (ending == ".urdf" and tag in URDF_TAGS):
            return {}
        if not drake_tags():
            return {f"<drake:{tag}> is passed on: unknown whether Drake reads it": None}
        raise ModelProblem(
            path,
            f"unknown tag <drake:{tag}>, which the installed Drake would ignore; "
            "correct it, or update Drake",
        )
    if ending == ".urdf" and tag not in URDF_TAGS:
        return {f"<{tag}> is ignored": None}
    return {}


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
