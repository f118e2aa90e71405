"""Tags of URDF and SDF that Drake reads, and those it passes over without a word."""

from __future__ import annotations

import mmap
import re
import xml.etree.ElementTree as ET
from functools import cache
from pathlib import Path

import pydrake

from drakebots.model.reading.findings import Findings

URDF_TAGS = frozenset(
    """robot link joint material transmission inertial visual collision origin mass
    inertia geometry box cylinder sphere capsule mesh ellipsoid color texture parent
    child axis calibration dynamics limit mimic safety_controller type actuator
    mechanicalReduction hardwareInterface frame verbose loop_joint link1 link2
    force_element linear_spring_damper torsional_spring prismatic_spring
    collision_filter_group drake_compliance""".split()
)
"""Plain tags of URDF, those of old Drake included."""


SDF_TAGS = frozenset(
    """sdf world model include uri static pose frame link inertial mass inertia ixx ixy
    ixz iyy iyz izz visual collision geometry box size sphere cylinder capsule ellipsoid
    radius radii length mesh scale material ambient diffuse specular emissive joint
    parent child axis xyz limit lower upper effort velocity dynamics damping friction
    spring_reference spring_stiffness""".split()
)
"""Plain tags that stand in most SDF files, wherever they stand; there are others."""

SDF_ATTRIBUTES = frozenset(
    "name type version relative_to attached_to expressed_in canonical_link".split()
)
"""Attributes that stand in most SDF files."""


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
    `drake:` tags are looked at: Drake itself names the others.

    Args:
        root: of the file, with prefixes as written.
        findings: to add to.
        urdf: whether it is a URDF.
    """
    stack = [root]
    while stack:
        element = stack.pop()
        prefix, _, tag = element.tag.rpartition(":")
        if prefix == "drake":
            known = (
                tag in drake_tags() or not drake_tags() or (urdf and tag in URDF_TAGS)
            )
        else:
            known = not urdf or element.tag in URDF_TAGS
        if known:
            if prefix == "drake" and tag in FORCES:
                findings.note("acts in simulations, not in plans", f"<drake:{tag}>")
            stack.extend(reversed(element))
        else:
            findings.note("Drake ignores", f"<{element.tag}>")
