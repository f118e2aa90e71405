"""The motors of an MJCF file: which joints they move and with how much torque."""

from __future__ import annotations

import numpy as np

from drakebots.model.reading.mjcf.bodies import Joint, Tree, limited_range
from drakebots.model.reading.mjcf.compiler import Compiler
from drakebots.model.reading.mjcf.tree import Element

MOTORS = ("motor", "position", "velocity", "intvelocity", "damper", "general")
"""Actuators whose largest force follows from gain, range and gear."""


def read_motors(root: Element, tree: Tree, compiler: Compiler) -> dict[str, float]:
    """The effort of every joint with a motor, by its name in the SDF [N m, N].

    A motor of gear g on a joint, or of a tendon in which the joint has coefficient g,
    gives it at most |g| times its force range; without such a range at most what its
    law gives over its control range. Several motors of a joint add up. A joint's own
    `actuatorfrcrange` limits their sum. No limit is inf.

    Args:
        root: the <mujoco>.
        tree: its bodies.
        compiler: its settings.

    Raises:
        InvalidInput: for a joint or a tendon that does not exist.
    """
    tendons = _fixed_tendons(root)
    efforts: dict[str, float] = {}
    for actuators in root.all("actuator"):
        for element in actuators.children:
            for joint, gear in _driven(element, tree, tendons):
                if joint.kind not in ("hinge", "slide"):
                    tree.leave_out(f"motors of {joint.kind} joints")
                    continue
                effort = abs(gear) * largest_force(element, joint, compiler)
                efforts[joint.name] = efforts.get(joint.name, 0.0) + effort
    for body in tree.bodies:
        for joint in body.joints:
            if joint.name in efforts:
                efforts[joint.name] = min(efforts[joint.name], joint.effort)
    return {name: effort for name, effort in efforts.items() if effort > 0}


def _driven(
    element: Element, tree: Tree, tendons: dict[str, list[tuple[str, float]]]
) -> list[tuple[Joint, float]]:
    """The joints that an actuator moves, with the gear of each."""
    gear = element.number("gear", 1.0)
    name = element.get("joint") or element.get("jointinparent")
    if name:
        return [(tree.joint(name), gear)]
    tendon = element.get("tendon")
    if tendon in tendons:
        tree.leave_out("tendons with a motor (their joints get motors)")
        parts = tendons[tendon]
        return [(tree.joint(joint), gear * factor) for joint, factor in parts]
    tree.leave_out("motors of sites, bodies and spatial tendons")
    return []


def _fixed_tendons(root: Element) -> dict[str, list[tuple[str, float]]]:
    """The joints of each <fixed> tendon with their coefficients."""
    return {
        fixed.get("name"): [
            (joint.get("joint"), joint.number("coef", 1.0))
            for joint in fixed.all("joint")
        ]
        for tendons in root.all("tendon")
        for fixed in tendons.all("fixed")
    }


def largest_force(element: Element, joint: Joint, compiler: Compiler) -> float:
    """The largest force of an actuator [N, N m], before its gear.

    It is the end of its force range, and no more than its gain times its largest
    control: what a motor gives, and what a servo gives that is sent from the middle
    of its range to an end. Without both ranges it has no limit.

    Args:
        element: the actuator.
        joint: that it moves.
        compiler: settings of the file.
    """
    limit = _magnitude(limited_range(element, "forcerange", "forcelimited", compiler))
    if element.tag == "muscle":
        force = element.number("force", -1.0)
        return min(limit, force if force > 0 else np.inf)
    if element.tag not in MOTORS:
        return limit
    control = limited_range(element, "ctrlrange", "ctrllimited", compiler)
    if element.tag == "position" and element.number("inheritrange", 0.0) > 0:
        control = joint.range and (
            joint.range[0] + joint.ref,
            joint.range[1] + joint.ref,
        )
    return min(limit, abs(_gain(element)) * _magnitude(control))


def _gain(element: Element) -> float:
    if element.tag == "general":
        return element.number("gainprm", 1.0)
    if element.tag in ("position", "intvelocity"):
        return element.number("kp", 1.0)
    if element.tag in ("velocity", "damper"):
        return element.number("kv", 1.0)
    return 1.0


def _magnitude(ends: tuple[float, float] | None) -> float:
    return np.inf if ends is None else max(abs(ends[0]), abs(ends[1]))
