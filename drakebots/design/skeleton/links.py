"""The torso with its motor bays, bracing and payload; the tail."""

from __future__ import annotations

import numpy as np

from drakebots.core.errors import InvalidInput
from drakebots.design.skeleton.parameters import Build, FootShape, Limb, Tail, Torso
from drakebots.design.skeleton.skeleton import Link, Sole, Solid
from drakebots.design.skeleton.solids import axes, block, fork, motor, ring, tube

# The links of one limb: hip, upper, lower, foot.

ABDUCTION = np.array([1.0, 0.0, 0.0])
FLEXION = np.array([0.0, 1.0, 0.0])
SHOULDER_AXES = {
    "pitch": (0.0, 1.0, 0.0),
    "yaw": (0.0, 0.0, 1.0),
    "abduction": (1.0, 0.0, 0.0),
}


def hip_link(
    build: Build, limb: str, p_WJ: np.ndarray, p_WF: np.ndarray, end: int
) -> Link:
    """From the abduction joint to the flexion joint, which it drives.

    Raises:
        InvalidInput: when it is too short for its motor bay.
    """
    length = float(np.linalg.norm(p_WF - p_WJ))
    plate = build.gap + build.wall
    least = plate + build.bay[1] / 2
    if length < least - 1e-12:
        raise InvalidInput(_too_short(f"{limb}_hip", length, least, "limb.hip"))
    along = np.array([float(end), 0.0, 0.0])
    R = axes(along, FLEXION)
    p_BF = p_WF - p_WJ
    up = np.array([0.0, 0.0, 1.0])
    solids = motor(build, f"{limb}_flexion", p_BF, FLEXION, up)
    # The horn's plate, and a tube up to the bay where the hip is long.
    size = (build.bay[1], build.bay[2], build.wall)
    p = along * (build.gap + build.wall / 2)
    solids.append(block("horn_plate", "shell", size, p, R, build.density))
    if length - least > 1e-6:
        section = (build.bay[1], 0.7 * build.bay[2])
        far = along * (length - build.bay[1] / 2)
        solids.append(tube(build, "beam", section, along * plate, far, R))
    return Link(
        f"{limb}_hip", "torso", p_WJ, p_WF, build.bay[2], build.bay[1], tuple(solids)
    )


def upper_link(build: Build, limb: Limb, name: str, parent: str, p_WA, p_WB) -> Link:
    """From hip to knee; carries the knee's motor."""
    return _segment(build, limb, f"{name}_upper", parent, f"{name}_knee", p_WA, p_WB)


def lower_link(build: Build, limb: Limb, name: str, p_WA, p_WB) -> Link:
    """From knee to ankle; carries the ankle's motor."""
    return _segment(
        build, limb, f"{name}_lower", f"{name}_upper", f"{name}_ankle", p_WA, p_WB
    )


def _segment(build, limb, name, parent, joint, p_WA, p_WB) -> Link:
    p_BB = p_WB - p_WA
    length = float(np.linalg.norm(p_BB))
    if length < build.shortest - 1e-12:
        part = name.split("_")[1]
        raise InvalidInput(_too_short(name, length, build.shortest, f"limb.{part}"))
    along = p_BB / length
    R = axes(along, FLEXION)
    reach = build.swing + build.gap + build.wall
    flat = along * [1.0, 0.0, 1.0]
    solids = fork(build, "fork", np.zeros(3), axes(flat, FLEXION), reach)
    solids += motor(build, joint, p_BB, FLEXION, -along)
    start, stop = reach, length - build.behind
    section = np.array([limb.beam[1], limb.beam[0]])
    if stop - start > 1e-6:
        solids.append(tube(build, "beam", section, along * start, along * stop, R))
    outer = np.array([build.bay[1], build.bay[2]]) + 2 * build.rib_reach
    stations = (
        (start + stop) / 2 / length,
        # At the bay's far end, clear of the next link's fork.
        (length - build.behind + build.rib / 2) / length,
    )
    inner = (section, build.bay[1:])
    for k, (s, hole) in enumerate(zip(stations, inner)):
        solids.append(ring(build, f"rib_{k}", outer, hole, s * p_BB, R))
    return Link(
        name, parent, p_WA, p_WB, build.bay[2], build.bay[1], tuple(solids), stations
    )


def foot_link(build: Build, foot: FootShape, name: str, p_WA: np.ndarray) -> Link:
    """A plate under a fork at the ankle.

    Raises:
        InvalidInput: when the ankle is too low.
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
    down = np.array([0.0, 0.0, -1.0])
    R = axes(down, FLEXION)
    plate = block(
        "plate",
        "shell",
        (foot.length, foot.width, build.wall),
        (foot.forward, 0.0, -reach - build.wall / 2),
        np.eye(3),
        build.density,
    )
    solids = [*fork(build, "fork", np.zeros(3), R, reach), plate]
    p_WB = p_WA + np.array([foot.forward, 0.0, -foot.ankle_height])
    return Link(
        f"{name}_foot",
        f"{name}_lower",
        p_WA,
        p_WB,
        foot.width,
        foot.length,
        tuple(solids),
        (1.0,),
    )


def sole(build: Build, foot: FootShape, name: str) -> Sole:
    """The sole on the skin's outside, which is where the ground is."""
    x, y = foot.length / 2, foot.width / 2
    flat = [(x, y), (x, -y), (-x, y), (-x, -y), (0.0, 0.0)]
    p = np.array([[foot.forward + a, b, -foot.ankle_height] for a, b in flat])
    return Sole(name, f"{name}_foot", (foot.length, foot.width), p)


def _too_short(name, length, least, parameter):
    return (
        f"link {name}: {1e3 * length:.1f} mm is too short for its motor bay; set "
        f"{parameter} >= {1e3 * least:.1f} mm"
    )


_X, _Y, _Z = np.eye(3)


def abduction_joint(
    build: Build, limb: Limb, p_WF: np.ndarray, end: int
) -> tuple[np.ndarray, np.ndarray]:
    """The abduction joint inboard of a hip, and the middle of its servo (3,) [m]."""
    p_WJ = p_WF - end * limb.hip * _X
    return p_WJ, p_WJ - end * build.bay[2] / 2 * _X


def tail_joint(build: Build, torso: Torso, p_WO: np.ndarray) -> np.ndarray:
    """The tail's joint, its motor bay against the torso's rear end (3,) [m]."""
    return p_WO - (torso.size[0] / 2 + build.behind) * _X


def torso_link(build: Build, torso: Torso, p_WO: np.ndarray, mounts) -> Link:
    """A frame with floor, battery, board, motor bays on arms and bracing rings.

    Args:
        build, torso: sizes.
        p_WO: middle of the box (3,) [m].
        mounts: of the motors: joint, p_WJ, axis, inward.

    Raises:
        InvalidInput: when a motor bay and the box overlap, or do not meet.
    """
    size = np.array(torso.size)
    eye = np.eye(3)
    hole = np.array([*(size[:2] - 2 * build.wall), 2 * size[2]])
    if hole.min() <= 0:
        raise InvalidInput(f"torso: size {torso.size} m is thinner than its walls")
    solids = [block("frame", "shell", size, np.zeros(3), eye, build.density, hole)]
    floor = (*hole[:2], build.wall)
    z_floor = -size[2] / 2 + build.wall / 2
    solids.append(block("floor", "shell", floor, z_floor * _Z, eye, build.density))
    solids += _payload(build, torso, hole, z_floor + build.wall / 2)
    for joint, p_WJ, axis, inward in mounts:
        bay, servo = motor(build, joint, p_WJ - p_WO, axis, inward)
        solids += [bay, servo]
        arm = _arm(build, size, joint, bay)
        if arm is not None:
            solids.append(arm)
    for k, s in enumerate(torso.stations):
        solids += _saddle(build, torso, f"rib_{k}", (s - 0.5) * size[0])
    struts = []
    for name, start, end in torso.struts:
        p_A, p_B = np.array(start, float), np.array(end, float)
        R_S = axes(p_B - p_A, _Y)
        section = np.full(2, torso.strut_width)
        solids.append(tube(build, f"{name}_strut", section, p_A, p_B, R_S))
        for k, s in enumerate((0.6, 1.0)):
            p = p_A + s * (p_B - p_A)
            outer = torso.strut_brace[::-1]
            solids.append(ring(build, f"{name}_rib_{k}", outer, section, p, R_S))
        struts.append((p_WO + p_A, p_WO + p_B))
    half = size[0] / 2 * _X
    return Link(
        "torso",
        None,
        p_WO - half,
        p_WO + half,
        size[1],
        size[2],
        tuple(solids),
        torso.stations,
        tuple(struts),
        p_WO,
    )


def _saddle(build, torso, name, x) -> list[Solid]:
    """A bracing ring around the box: bars beside, above and below it."""
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
            made.append(
                block(f"{name}_{side}", "rib", size, p, np.eye(3), build.density)
            )
    return made


def _payload(build, torso, room, floor):
    made, z = [], floor
    for name, (size, mass) in (("battery", torso.battery), ("board", torso.board)):
        size = np.array(size, float)
        if (size[:2] > room[:2]).any():
            raise InvalidInput(
                f"torso: the {name} ({size[0]:g} x {size[1]:g} m) does not fit into "
                f"{room[0]:.3g} x {room[1]:.3g} m; enlarge torso.size"
            )
        p = (z + size[2] / 2) * _Z
        made.append(
            Solid(name, "payload", size, p, np.eye(3), float(mass), np.zeros(3))
        )
        z += size[2]
    return made


def _arm(build, size, joint, bay) -> Solid | None:
    """A beam across from a motor bay beside the box to the box; None behind it."""
    points = bay.corners()
    low, high = points.min(axis=0), points.max(axis=0)
    half = size / 2
    meets = np.minimum(high, half) - np.maximum(low, -half)
    side = np.sign(bay.p_BG[1])
    if abs(bay.p_BG[1]) < 1e-9:
        return None
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
                f"torso: its box passes the motor bay of {joint} by "
                f"{1e3 * (0.01 - meets[axis]):.0f} mm along {'xyz'[axis]}; {remedy}, "
                "or move torso.centre"
            )
    if gap < 1e-6:
        return None
    x = np.array([max(low[0], -half[0]), min(high[0], half[0])])
    z = np.array([max(low[2], -half[2]), min(high[2], half[2])])
    # Only where it clears the fork of the child: the inboard part of the bay.
    y = side * (half[1] + gap / 2)
    width = min(float(np.ptp(x)), 0.012)
    at = x[0] + width / 2 if bay.p_BG[0] > 0 else x[1] - width / 2
    arm = (width, gap, float(np.ptp(z)))
    return block(
        f"{joint}_arm", "shell", arm, (at, y, z.mean()), np.eye(3), build.density
    )


def tail_link(build: Build, tail: Tail, p_WJ: np.ndarray) -> Link:
    """A bar with bracing rings that taper."""
    p_BB = np.array([-tail.length, 0.0, -tail.drop])
    reach = build.swing + build.gap + build.wall
    if tail.length < reach + 0.02:
        raise InvalidInput(
            f"link tail: {1e3 * tail.length:.1f} mm is too short for its fork; set "
            f"tail.length >= {1e3 * (reach + 0.02):.1f} mm"
        )
    along = p_BB / np.linalg.norm(p_BB)
    R = axes(along, _Z)
    solids = fork(build, "fork", np.zeros(3), axes(along * [1, 1, 0], _Z), reach)
    section = np.full(2, tail.width)
    solids.append(tube(build, "beam", section, along * reach, p_BB, R))
    stations = (0.3, 0.53, 0.76, 1.0)
    for k, s in enumerate(stations):
        wide = tail.brace[0] + (s - stations[0]) / (1 - stations[0]) * (
            tail.brace[1] - tail.brace[0]
        )
        if wide <= tail.width:
            raise InvalidInput("tail: its bracing rings are narrower than its bar")
        solids.append(ring(build, f"rib_{k}", (wide, wide), section, s * p_BB, R))
    return Link(
        "tail",
        "torso",
        p_WJ,
        p_WJ + p_BB,
        tail.width,
        tail.width,
        tuple(solids),
        stations,
    )
