"""What an MJCF file says of its bodies in other sections: motors, loops, poses.

<actuator> says which joints have motors and how strong they are, <equality> which
bodies are joined to closed loops and which joints follow others, <keyframe> which joint
positions have a name.
"""

from __future__ import annotations

import numpy as np
from pydrake.math import RigidTransform

from drakebots.core.errors import InvalidInput
from drakebots.model.couplers import Coupler
from drakebots.model.loops import Loop
from drakebots.model.reading.mjcf.bodies import WIDTHS, Joint, Tree, limited_range
from drakebots.model.reading.mjcf.compiler import Compiler, is_true
from drakebots.model.reading.mjcf.tree import Element

MOTORS = ("motor", "position", "velocity", "intvelocity", "damper", "general")
"""Actuators whose largest force follows from gain, range and gear."""

ROWS = {"connect": "ball", "weld": "weld"}
"""The kind of loop that an equality closes."""


# --- motors ---


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


# --- loops ---


def read_loops(root: Element, tree: Tree, compiler: Compiler) -> tuple[Loop, ...]:
    """The loops that `connect` and `weld` close; others are counted as left out.

    Args:
        root: the <mujoco>.
        tree: its bodies.
        compiler: its settings.

    Raises:
        InvalidInput: for a body or a site that does not exist.
    """
    loops: list[Loop] = []
    for equality in root.all("equality"):
        for element in equality.children:
            if element.tag == "joint":
                continue  # see read_couplers
            if element.tag not in ROWS:
                tree.leave_out(f"<equality> of type {element.tag}")
            elif not is_true(element, "active", True):
                tree.leave_out("<equality> that is not active")
            else:
                loops.append(_loop(element, tree, compiler, len(loops)))
    return tuple(loops)


def _loop(element: Element, tree: Tree, compiler: Compiler, count: int) -> Loop:
    if element.get("site1"):
        (A, X_AP), (B, X_BQ) = (_site(tree, element, key) for key in ("site1", "site2"))
    else:
        (A, X_AP), (B, X_BQ) = _bodies(element, tree, compiler)
    R_AP, R_BQ = X_AP.rotation().matrix(), X_BQ.rotation().matrix()
    return Loop(
        name=element.get("name") or f"{element.tag}{count + 1}",
        body_A="world" if A is None else A.name,
        body_B="world" if B is None else B.name,
        p_AP=X_AP.translation(),
        p_BQ=X_BQ.translation(),
        axis_A=R_AP[:, 2],
        axis_B=R_BQ[:, 2],
        side_A=R_AP[:, 0],
        side_B=R_BQ[:, 0],
        rows=ROWS[element.tag],
    )


def _site(tree: Tree, element: Element, key: str):
    """The body of a site, None for the world, and the site's pose in it."""
    name = element.get(key)
    if name in tree.sites:
        return None, tree.sites[name]
    for body in tree.bodies:
        if name in body.sites:
            return body, body.sites[name]
    raise InvalidInput(f"{element}: there is no site {name!r}; correct {key}")


def _bodies(element: Element, tree: Tree, compiler: Compiler):
    """Two bodies, None for the world, with the frame of the joint in each.

    The anchor of a `connect` is in body 1, that of a `weld` in body 2. What is not
    given is so that the loop is closed at the reference configuration.
    """
    A = tree.body(element.get("body1"))
    B = tree.body(element.get("body2")) if element.get("body2") else None
    X_WA, X_WB = A.X_WB, RigidTransform() if B is None else B.X_WB
    X_AB = X_WA.InvertAndCompose(X_WB)
    if element.tag == "connect":
        anchor = np.array(element.vector("anchor", 3, ""))
        X_AP = RigidTransform(anchor)
        if compiler.is_global:
            X_AP = RigidTransform(X_WA.inverse().multiply(anchor))
        return (A, X_AP), (B, X_AB.InvertAndCompose(X_AP))
    X_BQ = RigidTransform(element.vector("anchor", 3, "0 0 0"))
    relative = element.vector("relpose", 7, "0 1 0 0 0 0 0")
    if any(relative[3:]):
        pose = {"pos": relative[:3], "quat": relative[3:]}
        texts = {key: " ".join(map(repr, value)) for key, value in pose.items()}
        X_AB = compiler.pose(Element("relpose", texts))
    return (A, X_AB @ X_BQ), (B, X_BQ)


# --- joints that follow others ---


def read_couplers(root: Element, tree: Tree) -> tuple[Coupler, ...]:
    """The joints that an equality of joints couples by a straight line.

    With the positions y of joint1 and x of joint2, from the reference configuration,

        y = a_0 + a_1 x + a_2 x^2 + a_3 x^3 + a_4 x^4

    Those with a_2, a_3 or a_4, and those that fix a joint, are counted as left out.
    Source: MuJoCo's XML reference, equality/joint.

    Args:
        root: the <mujoco>.
        tree: its bodies.

    Raises:
        InvalidInput: for a joint that does not exist.
    """
    found: dict[str, Coupler] = {}
    for equality in root.all("equality"):
        for element in equality.all("joint"):
            if not is_true(element, "active", True):
                tree.leave_out("<equality> that is not active")
                continue
            if not element.get("joint2"):
                tree.leave_out("<equality> that fixes a joint")
                continue
            joints = [tree.joint(element.get(key)) for key in ("joint1", "joint2")]
            follower, leader = (joint.name for joint in joints)
            given = element.numbers("polycoef")
            numbers = [*given, *(0.0, 1.0, 0.0, 0.0, 0.0)[len(given) :]]
            if any(joint.kind not in ("hinge", "slide") for joint in joints):
                tree.leave_out("<equality> of joints that are no hinges and slides")
            elif any(numbers[2:]):
                tree.leave_out("<equality> of joints by a curve")
            elif follower in found or follower == leader:
                tree.leave_out("<equality> of a joint that follows another already")
            else:
                offset, gear = numbers[:2]
                found[follower] = Coupler(follower, leader, gear, offset)
    return tuple(found.values())


# --- poses ---


def read_poses(root: Element, tree: Tree) -> dict[str, dict[str, float]]:
    """Joint positions by the name of a key, then of a joint [rad, m].

    A key's qpos has 7 entries for a free joint, 4 for a ball joint and 1 for others, in
    the order of the file. Drake's positions are 0 at the reference configuration,
    where qpos is the joint's `ref`. Poses of bodies and ball joints are left out.

    Args:
        root: the <mujoco>.
        tree: its bodies.

    Raises:
        InvalidInput: for a qpos of another length.
    """
    joints = [joint for body in tree.bodies for joint in body.joints]
    total = sum(WIDTHS[joint.kind] for joint in joints)
    keys = [key for frame in root.all("keyframe") for key in frame.all("key")]
    poses = {}
    for index, key in enumerate(keys):
        values = key.numbers("qpos")
        if not values:
            continue  # MuJoCo's default: the reference configuration
        if len(values) != total:
            raise InvalidInput(
                f"{key}: qpos has {len(values)} numbers; its joints have {total}"
            )
        pose, start = {}, 0
        for joint in joints:
            if joint.kind in ("hinge", "slide"):
                pose[joint.name] = values[start] - joint.ref
            start += WIDTHS[joint.kind]
        poses[key.get("name") or f"key{index}"] = pose
    return poses
