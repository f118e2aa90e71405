"""The links of one limb: hip, upper, lower, foot."""

from __future__ import annotations

import numpy as np

from drakebots.design.skeleton import Link, Sole
from drakebots.design.solids import axes, block, fork, motor, ring, tube
from drakebots.design.template_parameters import Build, FootShape, Limb
from drakebots.errors import InvalidInput

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
