"""The links of a skeleton, and the printed boxes they are made of.

A limb's link begins with a fork around the motor bay of the link before it, continues
as a tube and ends with the bay of the motor that drives the next link. Bracing rings
across the links carry the skin.
"""

from __future__ import annotations

import numpy as np

from drakebots.core.errors import InvalidInput
from drakebots.design.skeleton.parameters import Build, FootShape, Limb, Tail, Torso
from drakebots.design.skeleton.skeleton import Link, Sole, Solid

_X, _Y, _Z = np.eye(3)

ABDUCTION, FLEXION = _X, _Y
"""Axes of a limb's joints at rest; knee and ankle turn about the axis of flexion."""

_THROUGH = 2.0
"""Length of a hole through a box, as a multiple of the box's."""


# Boxes: motor bays, forks, tubes, bracing rings.


def axes(along: np.ndarray, lateral: np.ndarray) -> np.ndarray:
    """A rotation (3, 3) with z along a link and y as close to `lateral` as possible."""
    z = along / np.linalg.norm(along)
    y = lateral - (lateral @ z) * z
    y /= np.linalg.norm(y)
    return np.column_stack([np.cross(y, z), y, z])


def _block(build, name, kind, size, p, R, cavity=(0.0, 0.0, 0.0)) -> Solid:
    """A printed box; see :class:`Solid`."""
    size, cavity = np.array(size, float), np.array(cavity, float)
    volume = np.prod(size) - np.prod(np.minimum(size, cavity))
    p = np.array(p, float)
    return Solid(name, kind, size, p, R, build.density * volume, cavity)


def motor(
    build: Build, name: str, p_BJ: np.ndarray, axis: np.ndarray, inward: np.ndarray
) -> list[Solid]:
    """The motor bay of a joint, and the servo in it with its shaft on the joint.

    The bay is a frame around the servo, open along the shaft; its end walls are as
    thick as the servo's ears are long and carry the pilot holes.

    Args:
        build: sizes of printed parts.
        name: name of the joint.
        p_BJ: middle of the servo's height, on the joint's axis (3,) [m].
        axis: unit vector of the joint's axis (3,).
        inward: direction from the joint to the servo's middle (3,); only its part
            perpendicular to the axis counts.
    """
    x = inward - (inward @ axis) * axis
    x /= np.linalg.norm(x)
    R = np.column_stack([x, np.cross(axis, x), axis])
    size = np.array(build.servo.size)
    p = p_BJ + (size[0] / 2 - build.servo.shaft) * x
    hole = size + 2 * build.clearance
    hole[2] = _THROUGH * build.bay[2]
    servo = Solid(f"{name}_servo", "servo", size, p, R, build.servo.mass, np.zeros(3))
    return [_block(build, f"{name}_bay", "shell", build.bay, p, R, hole), servo]


def _fork(build: Build, R: np.ndarray, reach: float) -> list[Solid]:
    """Two plates around the motor bay at a link's origin, and the bridge joining them.

    Args:
        build: sizes of printed parts.
        R: z along the link, y along the joint's axis (3, 3).
        reach: distance from the joint to the far side of the bridge [m].
    """
    back = build.bay[1] / 2
    # Plates and bridge do not overlap, so that their masses add up.
    solids = []
    size = (0.8 * build.bay[1], build.wall, back + reach)
    for end, side in (("l", 1), ("r", -1)):
        p = R @ [0, side * (build.fork - build.wall) / 2, (reach - back) / 2]
        solids.append(_block(build, f"fork_plate_{end}", "shell", size, p, R))
    size = (build.bay[1], build.fork - 2 * build.wall, build.wall)
    p = R @ [0, 0, reach - build.wall / 2]
    return [*solids, _block(build, "fork_bridge", "shell", size, p, R)]


def _tube(build, name, section, p_BA, p_BB, R) -> Solid:
    """A square tube from A to B; `section` is its depth (x of R) and width (y) [m]."""
    length = float(np.linalg.norm(p_BB - p_BA))
    hole = np.array([*(np.array(section) - 2 * build.wall), _THROUGH * length])
    # A short tube is solid, as resin could not drain from it.
    hole = np.zeros(3) if hole.min() <= 0 or length < 0.008 else hole
    return _block(build, name, "shell", (*section, length), (p_BA + p_BB) / 2, R, hole)


def _ring(build, name, outer, inner, p, R) -> Solid:
    """A bracing ring across a link, with its outer and inner sides along x and y."""
    hole = (*inner, _THROUGH * build.rib)
    return _block(build, name, "rib", (*outer, build.rib), p, R, hole)


# The links of a limb: hip, upper, lower, foot.


def hip_link(
    build: Build, limb: str, p_WJ: np.ndarray, p_WF: np.ndarray, end: int
) -> Link:
    """The link from a limb's abduction joint to its flexion joint, with its motor.

    Raises:
        InvalidInput: when it is too short for its motor bay.
    """
    length = float(np.linalg.norm(p_WF - p_WJ))
    plate = build.gap + build.wall
    least = plate + build.bay[1] / 2
    _check_length(f"{limb}_hip", length, least, "limb.hip", "motor bay")
    along = end * _X
    R = axes(along, FLEXION)
    solids = motor(build, f"{limb}_flexion", p_WF - p_WJ, FLEXION, _Z)
    # The servo horn's plate, and a tube up to the bay where the hip is long.
    size = (build.bay[1], build.bay[2], build.wall)
    p = along * (build.gap + build.wall / 2)
    solids.append(_block(build, "horn_plate", "shell", size, p, R))
    if length - least > 1e-6:
        section = (build.bay[1], 0.7 * build.bay[2])
        far = along * (length - build.bay[1] / 2)
        solids.append(_tube(build, "beam", section, along * plate, far, R))
    return Link(f"{limb}_hip", "torso", p_WJ, p_WF, tuple(solids))


def limb_link(
    build: Build, limb: Limb, name: str, parent: str, joint: str, p_WA, p_WB
) -> Link:
    """An upper or lower link, from one joint to the next.

    Args:
        build, limb: sizes.
        name, parent: names of the link and of its parent.
        joint: name of the joint at the far end, whose motor the link carries.
        p_WA, p_WB: the joints at its ends, at rest (3,) [m].

    Raises:
        InvalidInput: when it is too short for its motor bay.
    """
    p_BB = p_WB - p_WA
    length = float(np.linalg.norm(p_BB))
    part = name.split("_")[1]
    _check_length(name, length, build.shortest, f"limb.{part}", "motor bay")
    along = p_BB / length
    R = axes(along, FLEXION)
    reach = build.swing + build.gap + build.wall
    solids = _fork(build, axes(along * [1.0, 0.0, 1.0], FLEXION), reach)
    solids += motor(build, joint, p_BB, FLEXION, -along)
    start, stop = reach, length - build.behind
    section = np.array([limb.beam[1], limb.beam[0]])
    if stop - start > 1e-6:
        solids.append(_tube(build, "beam", section, along * start, along * stop, R))
    outer = np.array([build.bay[1], build.bay[2]]) + 2 * build.rib_reach
    stations = (
        (start + stop) / 2 / length,
        # At the far end of the bay, clear of the next link's fork.
        (length - build.behind + build.rib / 2) / length,
    )
    for k, (s, hole) in enumerate(zip(stations, (section, build.bay[1:]))):
        solids.append(_ring(build, f"rib_{k}", outer, hole, s * p_BB, R))
    return Link(name, parent, p_WA, p_WB, tuple(solids), stations)


def foot_link(build: Build, foot: FootShape, name: str, p_WA: np.ndarray) -> Link:
    """A foot: a plate under a fork at the ankle.

    Raises:
        InvalidInput: when the ankle is too low for its motor.
    """
    reach = foot.ankle_height - build.sole_skin - build.wall
    least = build.swing + build.gap + build.wall
    if reach < least - 1e-12:
        low = least + build.sole_skin + build.wall
        raise InvalidInput(
            f"link {name}_foot: an ankle {1e3 * foot.ankle_height:.1f} mm above the "
            f"ground is too low for a {build.servo.name}; set foot.ankle_height >= "
            f"{1e3 * low:.1f} mm"
        )
    size = (foot.length, foot.width, build.wall)
    p = (foot.forward, 0.0, -reach - build.wall / 2)
    plate = _block(build, "plate", "shell", size, p, np.eye(3))
    solids = (*_fork(build, axes(-_Z, FLEXION), reach), plate)
    p_WB = p_WA + np.array([foot.forward, 0.0, -foot.ankle_height])
    return Link(f"{name}_foot", f"{name}_lower", p_WA, p_WB, solids, (1.0,))


def foot_sole(foot: FootShape, name: str) -> Sole:
    """The sole of a foot, on the outside of the skin, where the ground is."""
    x, y = foot.length / 2, foot.width / 2
    flat = [(x, y), (x, -y), (-x, y), (-x, -y), (0.0, 0.0)]
    p = np.array([[foot.forward + a, b, -foot.ankle_height] for a, b in flat])
    return Sole(name, f"{name}_foot", (foot.length, foot.width), p)


def _check_length(name, length, least, parameter, part):
    if length < least - 1e-12:
        raise InvalidInput(
            f"link {name}: {1e3 * length:.1f} mm is too short for its {part}; set "
            f"{parameter} >= {1e3 * least:.1f} mm"
        )


# The torso with its payload, motor bays and bracing.


def torso_link(build: Build, torso: Torso, p_WO: np.ndarray, mounts) -> Link:
    """A frame with floor, battery, board, motor bays on arms, and bracing rings.

    Args:
        build, torso: sizes.
        p_WO: middle of the torso's box (3,) [m].
        mounts: the limbs' first motors: joint, p_WJ, axis, inward; see
            :func:`motor`.

    Raises:
        InvalidInput: when a motor bay and the box overlap, or do not meet.
    """
    size, eye = np.array(torso.size), np.eye(3)
    hole = np.array([*(size[:2] - 2 * build.wall), 2 * size[2]])
    if hole.min() <= 0:
        raise InvalidInput(f"torso: size {torso.size} m is thinner than its walls")
    solids = [_block(build, "frame", "shell", size, np.zeros(3), eye, hole)]
    floor = (*hole[:2], build.wall)
    z_floor = -size[2] / 2 + build.wall / 2
    solids.append(_block(build, "floor", "shell", floor, z_floor * _Z, eye))
    solids += _payload(torso, hole, z_floor + build.wall / 2)
    for joint, p_WJ, axis, inward in mounts:
        bay, servo = motor(build, joint, p_WJ - p_WO, axis, inward)
        solids += [bay, servo, *_arm(build, size, joint, bay)]
    for k, s in enumerate(torso.stations):
        solids += _saddle(build, torso, f"rib_{k}", (s - 0.5) * size[0])
    struts = []
    for name, start, end in torso.struts:
        p_A, p_B = np.array(start, float), np.array(end, float)
        R_S = axes(p_B - p_A, _Y)
        section = np.full(2, torso.strut_width)
        solids.append(_tube(build, f"{name}_strut", section, p_A, p_B, R_S))
        for k, s in enumerate((0.6, 1.0)):
            outer, p = torso.strut_brace[::-1], p_A + s * (p_B - p_A)
            solids.append(_ring(build, f"{name}_rib_{k}", outer, section, p, R_S))
        struts.append((p_WO + p_A, p_WO + p_B))
    half = size[0] / 2 * _X
    parts = tuple(solids), torso.stations, tuple(struts)
    return Link("torso", None, p_WO - half, p_WO + half, *parts, p_WO)


def _saddle(build, torso, name, x) -> list[Solid]:
    """A bracing ring around the torso's box: bars beside, above and below it."""
    half_y, half_z = torso.size[1] / 2, torso.size[2] / 2
    wide = torso.brace[0] / 2
    low = min(torso.brace_centre - torso.brace[1] / 2, half_z)
    high = max(torso.brace_centre + torso.brace[1] / 2, -half_z)
    bars = {
        "top": (-wide, wide, max(half_z, low), high),
        "bottom": (-wide, wide, low, min(-half_z, high)),
        "left": (half_y, wide, max(low, -half_z), min(high, half_z)),
        "right": (-wide, -half_y, max(low, -half_z), min(high, half_z)),
    }
    made = []
    for side, (y0, y1, z0, z1) in bars.items():
        if y1 - y0 > 5e-4 and z1 - z0 > 5e-4:
            size = (build.rib, y1 - y0, z1 - z0)
            p = (x, (y0 + y1) / 2, (z0 + z1) / 2)
            made.append(_block(build, f"{name}_{side}", "rib", size, p, np.eye(3)))
    return made


def _payload(torso, room, floor):
    """Battery and board, one upon the other on the floor of the torso's box."""
    made, z, eye = [], floor, np.eye(3)
    for name, (size, mass) in (("battery", torso.battery), ("board", torso.board)):
        size = np.array(size, float)
        if (size[:2] > room[:2]).any():
            raise InvalidInput(
                f"torso: the {name} ({size[0]:g} x {size[1]:g} m) does not fit into "
                f"{room[0]:.3g} x {room[1]:.3g} m; enlarge torso.size"
            )
        p = (z + size[2] / 2) * _Z
        made.append(Solid(name, "payload", size, p, eye, float(mass), np.zeros(3)))
        z += size[2]
    return made


def _arm(build, size, joint, bay) -> list[Solid]:
    """The beam between the torso's box and a motor bay beside it, if they need one."""
    points = bay.corners()
    low, high = points.min(axis=0), points.max(axis=0)
    half = size / 2
    meets = np.minimum(high, half) - np.maximum(low, -half)
    side = np.sign(bay.p_BG[1])
    if abs(bay.p_BG[1]) < 1e-9:  # The tail's bay is behind the box.
        return []
    gap = min(abs(low[1]), abs(high[1])) - half[1]
    if gap < -1e-9 and (meets > 0).all():
        raise InvalidInput(
            f"torso: its box overlaps the motor bay of {joint}; set torso.size[1] <= "
            f"{2e3 * (half[1] + gap):.0f} mm"
        )
    for axis, remedy in (
        (0, "lengthen torso.size[0]"),
        (2, "enlarge torso.size[2], or level the hips by the limbs' lengths"),
    ):
        if meets[axis] < 0.01:
            raise InvalidInput(
                f"torso: its box misses the motor bay of {joint} by "
                f"{1e3 * (0.01 - meets[axis]):.0f} mm along {'xyz'[axis]}; {remedy}, "
                "or move torso.centre"
            )
    if gap < 1e-6:
        return []
    x = np.array([max(low[0], -half[0]), min(high[0], half[0])])
    z = np.array([max(low[2], -half[2]), min(high[2], half[2])])
    # Only the inboard part of the bay, which the fork of the next link clears.
    y = side * (half[1] + gap / 2)
    width = min(float(np.ptp(x)), 0.012)
    at = x[0] + width / 2 if bay.p_BG[0] > 0 else x[1] - width / 2
    arm = (width, gap, float(np.ptp(z)))
    name, p = f"{joint}_arm", (at, y, z.mean())
    return [_block(build, name, "shell", arm, p, np.eye(3))]


def tail_link(build: Build, tail: Tail, p_WJ: np.ndarray) -> Link:
    """The tail: a bar with bracing rings that taper.

    Raises:
        InvalidInput: for a bar too short for its fork, or wider than its rings.
    """
    p_BB = np.array([-tail.length, 0.0, -tail.drop])
    reach = build.swing + build.gap + build.wall
    _check_length("tail", tail.length, reach + 0.02, "tail.length", "fork")
    along = p_BB / np.linalg.norm(p_BB)
    R = axes(along, _Z)
    solids = _fork(build, axes(along * [1, 1, 0], _Z), reach)
    section = np.full(2, tail.width)
    solids.append(_tube(build, "beam", section, along * reach, p_BB, R))
    stations = (0.3, 0.53, 0.76, 1.0)
    for k, s in enumerate(stations):
        share = (s - stations[0]) / (1 - stations[0])
        wide = tail.brace[0] + share * (tail.brace[1] - tail.brace[0])
        if wide <= tail.width:
            raise InvalidInput("tail: its bracing rings are narrower than its bar")
        solids.append(_ring(build, f"rib_{k}", (wide, wide), section, s * p_BB, R))
    return Link("tail", "torso", p_WJ, p_WJ + p_BB, tuple(solids), stations)
