"""Checks of a model file before Drake reads it.

Drake drops unknown `drake:` tags without a word, and some numbers that are no
numbers reach its assertions. What is checked here gets a message that names
the element.
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

_DRAKE = "http://drake.mit.edu"

DRAKE_TAGS = frozenset(
    """acceleration accepting_renderer angle ball_constraint ball_constraint_body_A
    ball_constraint_body_B ball_constraint_p_AP ball_constraint_p_BQ
    bushing_force_damping bushing_force_stiffness bushing_frameA bushing_frameC
    bushing_torque_damping bushing_torque_stiffness capsule child circular_arc
    collision_filter_group compliant_hydroelastic controller_gains curves
    damping declare_convex deformable_properties diffuse_map ellipsoid
    gear_ratio hunt_crossley_dissipation hydroelastic_margin
    hydroelastic_modulus ignored_collision_filter_group illustration_properties
    initial_tangent is_periodic joint length line_segment linear_bushing_rpy
    linear_spring_damper linear_spring_damper_body_A linear_spring_damper_body_B
    linear_spring_damper_damping linear_spring_damper_free_length
    linear_spring_damper_p_AP linear_spring_damper_p_BQ
    linear_spring_damper_stiffness mass_damping mass_density material_model
    member member_group mesh_resolution_hint mimic mu_dynamic mu_static
    outward_normal parent perception_properties plane_normal
    point_contact_stiffness point_on_plane poissons_ratio proximity_properties
    radius relaxation_time rigid_hydroelastic rotor_inertia screw_thread_pitch
    soft_hydroelastic stiffness_damping tendon_constraint
    tendon_constraint_damping tendon_constraint_joint
    tendon_constraint_lower_limit tendon_constraint_offset
    tendon_constraint_stiffness tendon_constraint_upper_limit visual
    wall_boundary_condition youngs_modulus""".split()
)
"""The `drake:` tags Drake's parsers read (1.51)."""

URDF_TAGS = frozenset(
    """robot link joint material transmission gazebo inertial visual collision
    origin mass inertia geometry box cylinder sphere capsule mesh ellipsoid color
    texture parent child axis calibration dynamics limit mimic
    safety_controller type actuator mechanicalReduction hardwareInterface
    frame verbose loop_joint link1 link2 force_element linear_spring_damper
    torsional_spring prismatic_spring collision_filter_group sensor
    drake_compliance""".split()
)
"""Plain tags of URDF, the old Drake ones included."""


def check_model_file(path: Path) -> None:
    """Refuses a file that cannot be a model.

    Raises:
        ModelProblem: for a file that is unreadable, too large, not XML (or
            YAML), has a number that is not finite, a negative mass, or a tag
            that Drake would ignore without a word.
    """
    if path.stat().st_size > MAX_BYTES:
        raise ModelProblem(path, f"is larger than {MAX_BYTES // 1_000_000} MB")
    try:
        data = path.read_bytes()
        text = data.decode()
    except OSError as error:
        raise ModelProblem(path, f"cannot be read ({error.strerror})") from error
    except UnicodeDecodeError as error:
        raise ModelProblem(path, "is not text in UTF-8") from error
    if "\0" in text:
        raise ModelProblem(path, "holds a NUL character: not a text file")
    if path.name.lower().endswith(".dmd.yaml"):
        _check_yaml(path, text)
    else:
        _check_xml(path, text)


def _check_yaml(path: Path, text: str) -> None:
    loader = yaml.SafeLoader
    try:
        # Drake's own tags (!Rpy ...) are checked by Drake.
        tree = yaml.compose(text, Loader=loader)
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
    if _local(root.tag) != expected:
        raise ModelProblem(
            path, f"starts with <{_local(root.tag)}>; a {ending} needs <{expected}>"
        )
    depth = _depth(root)
    if depth > 200:
        raise ModelProblem(path, f"is nested {depth} deep; no robot model is")
    for element in root.iter():
        _check_element(path, element, ending)


def _local(tag: str) -> str:
    return tag.rpartition("}")[2]


def _depth(root: ET.Element) -> int:
    deepest, stack = 0, [(root, 1)]
    while stack:
        element, depth = stack.pop()
        deepest = max(deepest, depth)
        stack.extend((child, depth + 1) for child in element)
    return deepest


def _check_element(path: Path, element: ET.Element, ending: str) -> None:
    if not isinstance(element.tag, str):
        return
    namespace, _, tag = element.tag.rpartition("}")
    prefixed = namespace == "{" + _DRAKE and ending != ".mjcf"
    if ending == ".sdf" and prefixed and tag not in DRAKE_TAGS:
        raise ModelProblem(
            path, f"unknown tag <drake:{tag}>, which Drake would ignore; correct it"
        )
    if ending == ".urdf" and tag not in URDF_TAGS | DRAKE_TAGS:
        raise ModelProblem(
            path, f"unknown tag <{tag}>, which Drake would ignore; correct or remove it"
        )
    name = element.get("name")
    where = f"<{tag}{f' name={name!r}' if name else ''}>"
    for key, value in [("", element.text or ""), *element.attrib.items()]:
        if key in ("name", "filename", "link", "joint", "uri", "model", "version"):
            continue
        _check_numbers(path, f"{where} {key}".strip(), value)
    if tag == "mass":
        _check_mass(path, where, element.get("value", element.text or ""))


_WORDS = re.compile(r"(?<![\w.])[-+]?(nan|inf|infinity)(?![\w.])", re.IGNORECASE)


def _check_numbers(path: Path, where: str, text: str) -> None:
    if len(text) > 2_000:
        return
    match = _WORDS.search(text)
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


def _check_mass(path: Path, where: str, text: str) -> None:
    try:
        mass = float(text)
    except ValueError:
        raise ModelProblem(path, f"{where} {text!r} is not a number") from None
    if not mass >= 0:
        raise ModelProblem(path, f"{where} is {mass:g} kg; a mass must be >= 0")
