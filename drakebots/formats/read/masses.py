"""Inertias that no rigid body can have, and links without any mass.

An inertia becomes the nearest that a body can have. Authors write links without mass
for frames, for fingers that are only drawn, and for what stands still: a plane, or the
foot of an arm. Links that are fixed to one another count as one.
"""

from __future__ import annotations

import xml.etree.ElementTree as ET
from collections.abc import Sequence

import numpy as np

from drakebots.formats.read.findings import Findings
from drakebots.formats.read.tree import (
    MOMENTS,
    add,
    floats,
    free_name,
    joint_elements,
    link_at,
    said,
    say,
)

SLACK = 1e-9
"""Largest excess of a moment over what is physical that is rounding, over the trace."""

POINT = 1e-5
"""A radius of gyration below this is that of a point [m]: its inertia is zero."""


def nearest_inertia(
    inertia: np.ndarray, mass: float
) -> tuple[np.ndarray | None, float]:
    """The inertia of a rigid body that is nearest to a matrix with the same axes.

    The principal moments I1 <= I2 <= I3 of a body have I1 >= 0 and I3 <= I1 + I2: they
    are sums of two each of the second moments of mass, J = (I1 + I2 + I3)/2 - I >= 0.
    Where J3 < 0, the moments are moved along (1, 1, -1), the shortest way to
    I3 = I1 + I2.

    Args:
        inertia: symmetric (3, 3) [kg m2].
        mass: of the body [kg].

    Returns:
        The inertia (3, 3), and how far it was moved relative to the largest moment;
        the same one and 0 for one that a body can have. None for one with a negative
        moment, which is no error of rounding or of measurement.
    """
    if inertia.any() and np.abs(inertia).max() < mass * POINT**2:
        return np.zeros((3, 3)), 0.0
    moments, axes = _principal(inertia)
    trace = np.abs(moments).sum()
    if moments[0] < -SLACK * trace:
        return None, 0.0
    moments = np.maximum(moments, 0.0)
    excess = moments[2] - moments[0] - moments[1]
    if excess <= SLACK * trace:
        return inertia, 0.0
    # A little further, so that rounding cannot lead back.
    step = excess / 3 + SLACK * trace
    moved = moments + step * np.array([1.0, 1.0, -1.0])
    near = axes @ np.diag(moved) @ axes.T
    return (near + near.T) / 2, float(step * np.sqrt(3) / moments[2])


def matrix_of(moments: Sequence[float]) -> np.ndarray:
    """The inertia (3, 3) [kg m^2] of moments in the order of :data:`MOMENTS`."""
    xx, xy, xz, yy, yz, zz = moments
    return np.array([[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]])


def principal_inertia(inertia: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Principal moments (3,), which a body can have, and their axes (3, 3), a rotation.

    Args:
        inertia: symmetric (3, 3) [kg m^2]; a diagonal one keeps its axes.
    """
    if np.array_equal(inertia, np.diag(np.diag(inertia))):
        moments, axes = np.diag(inertia).copy(), np.eye(3)
    else:
        moments, axes = _principal(inertia)
        axes[:, 0] *= np.sign(np.linalg.det(axes))
    # Rounding may leave a thin rod a little beyond what is possible.
    order = np.argsort(moments)
    moments = np.maximum(moments, 0.0)
    moments[order[2]] = min(moments[order[2]], moments[order[0]] + moments[order[1]])
    return moments, axes


def _principal(inertia: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Eigenvalues (3,) and -vectors (3, 3) of a finite one, however large or small.

    Unscaled, the squares of large numbers overflow, and LAPACK may not converge.
    """
    size = np.abs(inertia).max() or 1.0
    moments, axes = np.linalg.eigh(inertia / size)
    return size * moments, axes


def repair_inertia(
    link: ET.Element, mass: float, findings: Findings, *, diagonal: str
) -> None:
    """Replaces the <inertia> of a link, if no body can have it, in place.

    Args:
        link: of a URDF or an SDF.
        mass: its mass [kg].
        findings: takes notes on changes, and problems that cannot be mended.
        diagonal: value of moments that are not given [kg m2].
    """
    name, tensor = link.get("name", ""), link.find("inertial/inertia")
    if tensor is None and (mass or diagonal == "0"):
        return
    # An SDF's mass of 0 alone has an inertia of 1; Drake makes 1 kg of the two.
    tensor = add(link.find("inertial"), "inertia") if tensor is None else tensor
    texts = [said(tensor, k, diagonal if k[1] == k[2] else "0") for k in MOMENTS]
    values = floats(" ".join(texts)) or []
    if len(values) != len(MOMENTS):
        return  # Another check, or libsdformat, names it.
    for key, value in _repaired(name, mass, values, findings).items():
        say(tensor, key, repr(value))


def _repaired(
    link: str, mass: float, moments: Sequence[float], findings: Findings
) -> dict[str, float]:
    """The moments of a link that have to change, by their names in :data:`MOMENTS`."""
    inertia = matrix_of(moments)
    if mass == 0 and inertia.any():
        # Drake would replace both, by those of a ball of 1 kg.
        findings.note("an inertia without a mass is not used", link)
        return dict.fromkeys(MOMENTS, 0.0)
    if not np.isfinite(inertia).all():
        findings.problem(f"link {link!r} has an inertia that is not finite; correct it")
        return {}
    near, change = nearest_inertia(inertia, mass)
    if near is None:
        diagonal = ", ".join(f"{value:.3g}" for value in _principal(inertia)[0])
        findings.problem(
            f"link {link!r} has a negative inertia (principal moments {diagonal} "
            "kg m2); correct it"
        )
        return {}
    if change > 0:
        line = "an inertia that no body has is replaced by the nearest one"
        findings.note(line, f"{link} (by {100 * change:.2g} %)")
    if near is inertia:
        return {}
    return dict(zip(MOMENTS, near[np.triu_indices(3)].tolist()))


WORLD = "world"


def fix_weightless(model: ET.Element, findings: Findings, *, default: str) -> None:
    """Fixes joints that move nothing with a mass, in a model that has one.

    Its roots that have no mass either belong to the world, and are fixed to it.

    Args:
        model: a <robot> or a <model>.
        findings: to add to.
        default: mass of a link that gives none [kg].
    """
    joints, masses = joint_elements(model), {}
    for link in model.findall("link"):
        mass = link.find("inertial/mass")
        text = "" if mass is None else mass.get("value", mass.text or "").strip()
        if not (kg := floats(text or default)):
            return  # Another check, or libsdformat, names it.
        masses[link.get("name", "")] = kg[0]
    ends = [(j, link_at(j, "parent"), link_at(j, "child")) for j in joints]
    heavy = {link for link, mass in masses.items() if mass > 0}
    if heavy:
        below = _with_those_above(heavy, [(a, b) for _, a, b in ends])
        for joint, _, child in ends:
            if joint.get("type") != "fixed" and child in masses.keys() - below:
                joint.tag = "joint"
                joint.set("type", "fixed")
                line = "a joint that moves no mass is fixed"
                findings.note(line, joint.get("name", ""))
    fixed = [(a, b) for joint, a, b in ends if joint.get("type") == "fixed"]
    standing = _with_those_above(heavy, fixed)
    children = {b for _, _, b in ends}
    roots = [link for link in masses if link not in {*children, *standing, WORLD}]
    for root in roots:
        findings.note("a root without mass is fixed to the world", root)
        name = free_name(f"{root}_to_world", {j.get("name", "") for j in joints})
        weld = add(model, "joint", name=name, type="fixed")
        for tag, link in (("parent", WORLD), ("child", root)):
            if model.tag == "robot":
                add(weld, tag, link=link)
            else:
                add(weld, tag, link)


def _with_those_above(links: set[str], ends: list[tuple[str, str]]) -> set[str]:
    """Links, and all from which joints lead down to them."""
    found = set(links)
    while above := {parent for parent, child in ends if child in found} - found:
        found |= above
    return found
