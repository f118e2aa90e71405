"""The outer shapes of the four robots of Table 1, by formulas around a skeleton.

Limbs are sleeves: two round cones side by side around each link, just large enough
for its motor bays. Torso, head and tail follow the paper's pictures and dimensions
(sections 1 and 7). Robot frame: x forward, y left, z up, soles on z = 0.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from drakebots.core.checks import check_value, one_of
from drakebots.design.geometry import (
    Ellipsoid,
    HalfSpaceCut,
    Implicit,
    Part,
    RoundBox,
    RoundCone,
    mirrored,
)
from drakebots.design.skeleton import Link, Skeleton, Sole

COVER = 0.006
"""Distance from the links to the outside of the skin: its wall and play [m]."""

SPREAD = 0.008
"""Half the distance between the two cones of a sleeve [m]."""

_HARD = ("shell", "servo", "payload")


def _limb_sleeves(skeleton: Skeleton) -> list[Part]:
    """Round cones around the upper and lower links of all limbs."""
    return [
        part
        for link in skeleton.links
        if link.name.split("_")[-1] in ("upper", "lower")
        for part in _sleeve(link)
    ]


def _sleeve(link: Link) -> list[RoundCone]:
    """Two round cones that contain a link, each end as thin as possible."""
    p_A, p_B = link.p_WA, link.p_WB
    points = np.concatenate(
        [link.origin + s.corners() for s in link.solids if s.kind in _HARD]
    )
    along = (p_B - p_A) / np.linalg.norm(p_B - p_A)
    side = np.array([0.0, 1.0, 0.0]) - along[1] * along
    side *= SPREAD / np.linalg.norm(side)
    length = np.linalg.norm(p_B - p_A)
    offset = points - p_A
    s = offset @ along
    lateral = np.abs(offset @ side) / SPREAD
    across = offset - s[:, None] * along
    depth = np.sqrt(np.maximum((across**2).sum(axis=1) - lateral**2, 0.0))
    beyond = np.maximum(np.maximum(-s, s - length), 0.0)
    r = np.sqrt(np.maximum(lateral - SPREAD, 0) ** 2 + depth**2 + beyond**2) + COVER
    half = length / 2
    r_A, r_B = float(r[s < half].max()), float(r[s >= half].max())
    return [RoundCone(p_A + k * side, p_B + k * side, r_A, r_B) for k in (1, -1)]


def _feet(skeleton: Skeleton) -> list[Part]:
    """For each foot, a flat box around its sole and a sleeve up to the ankle."""
    return [
        part
        for sole in skeleton.soles
        for part in _foot(skeleton.link(sole.link), sole)
    ]


def _foot(link: Link, sole: Sole) -> list[Part]:
    middle = link.origin + sole.p_BP[4]
    size = np.array([sole.size[0] + 2 * 0.009, sole.size[1] + 2 * 0.009, 0.064])
    pad = RoundBox(middle, size, 0.013, blend=0.004)
    plates = [s for s in link.solids if s.name.startswith("fork_plate")]
    corners = np.concatenate([link.origin + s.corners() for s in plates])
    ankle = link.p_WA
    y = np.abs(corners[:, 1] - ankle[1]).max()
    x = np.abs(corners[:, 0] - ankle[0]).max()
    r = float(np.hypot(x, y - SPREAD)) + COVER
    low = np.array([ankle[0], ankle[1], 0.022])
    shift = np.array([0.0, SPREAD, 0.0])
    return [
        *(RoundCone(ankle + k * shift, low + k * shift, r, r) for k in (1, -1)),
        pad,
    ]


def _haunches(skeleton: Skeleton) -> list[Part]:
    """For each limb, a rounded box around its hip and its motors on the torso."""
    parts: list[Part] = []
    torso = skeleton.links[0]
    for sole in skeleton.soles:
        mounts = [
            torso.origin + s.corners()
            for s in torso.solids
            if s.kind in _HARD and s.name.startswith(f"{sole.foot}_")
        ]
        hip = skeleton.by_name.get(f"{sole.foot}_hip")
        if hip is not None:
            mounts += [hip.origin + s.corners() for s in hip.solids]
        points = np.concatenate(mounts)
        low, high = points.min(axis=0) - 0.007, points.max(axis=0) + 0.007
        parts.append(RoundBox((low + high) / 2, high - low, 0.012, blend=0.02))
    return parts


def _limbs(skeleton: Skeleton) -> list[Part]:
    return [*_haunches(skeleton), *_limb_sleeves(skeleton), *_feet(skeleton)]


def _ground() -> tuple[HalfSpaceCut, ...]:
    return (HalfSpaceCut([0.0, 0.0, 0.0], [0.0, 0.0, -1.0], 0.002),)


def _beetle(skeleton: Skeleton) -> Implicit:
    """A low wide dome on a flat underside, a head with a horn, bent stout legs."""
    body = [
        Ellipsoid([-0.03, 0.0, 0.238], [0.185, 0.142, 0.080]),
        RoundBox([0.0, 0.0, 0.214], [0.29, 0.20, 0.080], 0.034, blend=0.02),
        RoundCone([0.14, 0.0, 0.226], [0.190, 0.0, 0.220], 0.050, 0.040),
        RoundCone([0.212, 0.0, 0.232], [0.236, 0.0, 0.290], 0.020, 0.015, blend=0.02),
        RoundCone([0.236, 0.0, 0.290], [0.222, 0.0, 0.360], 0.015, 0.012, blend=0.005),
    ]
    return Implicit((*body, *_limbs(skeleton)), _ground(), blend=0.012)


def _monster(skeleton: Skeleton) -> Implicit:
    """Tall and bulky: belly, tail, a heavy head with horns."""
    body = [
        RoundCone([-0.008, 0.0, 0.345], [0.055, 0.0, 0.468], 0.126, 0.086),
        Ellipsoid([0.0, 0.0, 0.315], [0.160, 0.120, 0.095], blend=0.04),
        Ellipsoid([0.105, 0.0, 0.545], [0.088, 0.082, 0.072]),
        RoundCone([0.15, 0.0, 0.525], [0.185, 0.0, 0.510], 0.048, 0.040),
        RoundCone([-0.13, 0.0, 0.305], [-0.245, 0.0, 0.215], 0.062, 0.022, blend=0.04),
        *mirrored([RoundCone([0.085, 0.05, 0.59], [0.07, 0.072, 0.632], 0.024, 0.014)]),
    ]
    return Implicit((*body, *_limbs(skeleton)), _ground(), blend=0.015)


def _cow(skeleton: Skeleton) -> Implicit:
    """A barrel on straight legs; head with muzzle, horns and ears; a tail."""
    body = [
        RoundCone([-0.115, 0.0, 0.296], [0.105, 0.0, 0.292], 0.087, 0.087),
        RoundCone([0.11, 0.0, 0.315], [0.205, 0.0, 0.395], 0.068, 0.048, blend=0.03),
        RoundCone([0.205, 0.0, 0.412], [0.270, 0.0, 0.372], 0.043, 0.034),
        RoundCone([-0.185, 0.0, 0.34], [-0.235, 0.0, 0.22], 0.018, 0.014),
        *mirrored(
            [RoundCone([0.195, 0.030, 0.445], [0.185, 0.058, 0.467], 0.014, 0.010)]
        ),
        *mirrored(
            [Ellipsoid([0.178, 0.058, 0.418], [0.014, 0.032, 0.016], blend=0.01)]
        ),
    ]
    return Implicit((*body, *_limbs(skeleton)), _ground(), blend=0.012)


def _lizard(skeleton: Skeleton) -> Implicit:
    """Long and sprawling: raised head, splayed feet, a long tail on its joint."""
    tail = skeleton.link("tail")
    toes = []
    for sole in skeleton.soles:
        p = skeleton.link(sole.link).origin + sole.p_BP[4]
        out = np.sign(p[1])
        for x in (-0.028, 0.0, 0.028):
            toes.append(
                RoundCone(
                    p + np.array([x, out * 0.03, 0.012]),
                    p + np.array([1.5 * x, out * 0.063, 0.006]),
                    0.016,
                    0.013,
                    blend=0.006,
                )
            )
    body = [
        RoundCone([-0.19, 0.0, 0.230], [0.0, 0.0, 0.234], 0.098, 0.106),
        RoundCone([0.0, 0.0, 0.234], [0.24, 0.0, 0.232], 0.106, 0.098),
        RoundCone([0.24, 0.0, 0.255], [0.46, 0.0, 0.345], 0.085, 0.060, blend=0.04),
        RoundCone([0.44, 0.0, 0.375], [0.535, 0.0, 0.348], 0.070, 0.036),
        *(
            RoundCone([x, 0.0, z], [x - 0.02, 0.0, z + 0.035], 0.022, 0.012, blend=0.02)
            for x, z in ((0.40, 0.402), (0.33, 0.36), (0.25, 0.345), (0.15, 0.34))
        ),
        RoundCone(
            tail.p_WA + 0.03 * np.eye(3)[0],
            tail.p_WB + 0.05 * np.eye(3)[0],
            0.046,
            0.036,
            blend=0.03,
        ),
        RoundCone(
            tail.p_WB + 0.05 * np.eye(3)[0],
            [-0.655, 0.0, 0.165],
            0.036,
            0.022,
            blend=0.02,
        ),
    ]
    return Implicit((*body, *_limbs(skeleton), *toes), _ground(), blend=0.015)


_BODIES: dict[str, Callable[[Skeleton], Implicit]] = {
    "beetle": _beetle,
    "monster": _monster,
    "lizard": _lizard,
    "cow": _cow,
}


def body_named(name: str, skeleton: Skeleton) -> Implicit:
    """The outer shape of a robot of Table 1 around its skeleton.

    Raises:
        UnknownName: for another name.
    """
    return _BODIES[check_value("robot", name, one_of("robot", _BODIES))](skeleton)
