"""The printed boxes of a link: motor bays, forks, beams, bracing rings."""

from __future__ import annotations

import numpy as np

from drakebots.design.skeleton.parameters import Build
from drakebots.design.skeleton.skeleton import Solid

_THROUGH = 2.0  # times the box: a hole through it


def axes(along: np.ndarray, lateral: np.ndarray) -> np.ndarray:
    """A rotation with z along a link and y as near to `lateral` as can be."""
    z = along / np.linalg.norm(along)
    y = lateral - (lateral @ z) * z
    y /= np.linalg.norm(y)
    return np.column_stack([np.cross(y, z), y, z])


def block(name, kind, size, p, R, density, cavity=(0.0, 0.0, 0.0)) -> Solid:
    """A solid of a material."""
    size, cavity = np.array(size, float), np.array(cavity, float)
    volume = np.prod(size) - np.prod(np.minimum(size, cavity))
    return Solid(name, kind, size, np.array(p, float), R, density * volume, cavity)


def motor(
    build: Build, name: str, p_BJ: np.ndarray, axis: np.ndarray, inward: np.ndarray
) -> list[Solid]:
    """A servo, its shaft on a joint, in its motor bay.

    The bay is a frame around the servo, open along the shaft; its end walls are as
    thick as the servo's ears are long and carry the pilot holes.

    Args:
        build: sizes.
        name: of the joint.
        p_BJ: middle of the servo's height, on the joint's axis (3,) [m].
        axis: of the joint, unit (3,).
        inward: from the joint to the servo's bulk, across the axis (3,).
    """
    x = inward - (inward @ axis) * axis
    x /= np.linalg.norm(x)
    R = np.column_stack([x, np.cross(axis, x), axis])
    size = np.array(build.servo.size)
    p = p_BJ + (size[0] / 2 - build.servo.shaft) * x
    hole = size + 2 * build.clearance
    hole[2] = _THROUGH * build.bay[2]
    servo = Solid(f"{name}_servo", "servo", size, p, R, build.servo.mass, np.zeros(3))
    bay = block(f"{name}_bay", "shell", build.bay, p, R, build.density, hole)
    return [bay, servo]


def fork(
    build: Build, name: str, p_BJ: np.ndarray, R: np.ndarray, reach: float
) -> list[Solid]:
    """Two plates around a motor bay and the bridge that joins them.

    Args:
        build: sizes.
        name: prefix.
        p_BJ: the joint (3,) [m].
        R: z along the link, y along the joint's axis.
        reach: from the joint to the far side of the bridge [m].
    """
    back = build.bay[1] / 2
    length = back + reach
    # Plates and bridge do not overlap, so that masses add.
    plates = [
        block(
            f"{name}_plate_{'lr'[side < 0]}",
            "shell",
            (0.8 * build.bay[1], build.wall, length),
            p_BJ + R @ [0, side * (build.fork - build.wall) / 2, (reach - back) / 2],
            R,
            build.density,
        )
        for side in (1, -1)
    ]
    bridge = block(
        f"{name}_bridge",
        "shell",
        (build.bay[1], build.fork - 2 * build.wall, build.wall),
        p_BJ + R @ [0, 0, reach - build.wall / 2],
        R,
        build.density,
    )
    return [*plates, bridge]


def tube(build, name, section, p_BA, p_BB, R) -> Solid:
    """A square tube from A to B; `section` is its depth (x of R) and width (y)."""
    length = float(np.linalg.norm(p_BB - p_BA))
    size = np.array([*section, length])
    hole = np.array([*(np.array(section) - 2 * build.wall), _THROUGH * length])
    # A short one is solid: nothing could drain it.
    hole = np.zeros(3) if hole.min() <= 0 or length < 0.008 else hole
    middle = (p_BA + p_BB) / 2
    return block(name, "shell", size, middle, R, build.density, hole)


def ring(build, name, outer, inner, p, R) -> Solid:
    """A bracing ring across a link; sides along x and y of R."""
    size = np.array([*outer, build.rib])
    hole = np.array([*inner, _THROUGH * build.rib])
    return block(name, "rib", size, p, R, build.density, hole)
