"""Scaled templates, and default limits of what an embedding may change."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np

from drakebots.design.skeleton import (
    FootShape,
    Limb,
    Link,
    Long,
    Solid,
    Template,
    Torso,
    motor,
)

# Points of a skeleton that must lie inside a surface, and how deep.

Field = Callable[[np.ndarray], np.ndarray]

# Corners, middles of the faces and of the edges of a box.
_PATTERN = np.array(
    [
        (x, y, z)
        for x in (-0.5, 0.0, 0.5)
        for y in (-0.5, 0.0, 0.5)
        for z in (-0.5, 0.0, 0.5)
        if (x, y, z) != (0.0, 0.0, 0.0)
    ]
)


def solid_points(solids: Sequence[Solid]) -> np.ndarray:
    """Corners, middles of edges and faces, in the link (26 n, 3) [m]."""
    return np.concatenate([s.p_BG + (_PATTERN * s.size) @ s.R_BG.T for s in solids])


def link_points(link: Link) -> np.ndarray:
    """Of all solids of a link, at rest (n, 3) [m]."""
    return link.origin + solid_points(link.solids)


def limb_points(template: Template, name: str) -> dict[str, np.ndarray]:
    """Points of a limb's links, and of its first motor on the torso, by name."""
    parts = template.limb_parts(name)
    points = {link.name: link_points(link) for link in parts.links}
    joint, p_WM, axis, inward = parts.mount
    points[f"{joint} motor"] = solid_points(
        motor(template.build, joint, p_WM, axis, inward)
    )
    return points


def needed_depth(template: Template, name: str, clearance: float) -> float:
    """How far inside the surface a link's points must lie [m].

    The skin's thickness and the clearance; in a foot only the sole's skin, on which
    the plate rests.
    """
    build = template.build
    if name.endswith("_foot"):
        return build.sole_skin
    return build.skin + clearance


def sticks_out(template, points: dict[str, np.ndarray], field: Field, clearance):
    """By name: field + needed depth at each point (n,) [m]; > 0 sticks out."""
    names = list(points)
    counts = [len(points[name]) for name in names]
    values = np.asarray(field(np.concatenate([points[name] for name in names])), float)
    split = np.split(values, np.cumsum(counts)[:-1])
    return {
        name: value + needed_depth(template, name, clearance)
        for name, value in zip(names, split)
    }


SCALES = {
    "upper_pitch": 0.3,
    "lower_pitch": 0.3,
    "splay": 0.2,
    "x": 0.03,
    "y": 0.02,
}
"""Typical changes in a fit, SI; 0.05 m for other lengths."""


def scaled_template(template: Template, scale: float) -> Template:
    """All lengths times a scale, but never below what the motors need.

    Walls, pilot holes, clearances, skin, battery and servos keep their size.
    """
    build = template.build

    def limb(shape: Limb) -> Limb:
        foot = shape.foot
        return replace(
            shape,
            x=scale * shape.x,
            y=scale * shape.y,
            upper=max(scale * shape.upper, build.shortest),
            lower=max(scale * shape.lower, build.shortest),
            hip=max(scale * shape.hip, lowest_hip(template)),
            foot=FootShape(
                scale * foot.length,
                scale * foot.width,
                max(scale * foot.ankle_height, lowest_ankle(template)),
                scale * foot.forward,
            ),
        )

    torso = template.torso
    grown = Torso(
        size=tuple(scale * s for s in torso.size),
        centre=tuple(scale * s for s in torso.centre),
        brace=tuple(scale * s for s in torso.brace),
        brace_centre=scale * torso.brace_centre,
        stations=torso.stations,
        struts=tuple(
            (name, tuple(scale * s for s in a), tuple(scale * s for s in b))
            for name, a, b in torso.struts
        ),
        strut_width=torso.strut_width,
        strut_brace=tuple(scale * s for s in torso.strut_brace),
        battery=torso.battery,
        board=torso.board,
    )
    changes = {
        "torso": grown,
        "front": limb(template.front),
        "hind": limb(template.hind),
    }
    if isinstance(template, Long):
        tail = template.tail
        changes["tail"] = replace(
            tail,
            length=scale * tail.length,
            drop=scale * tail.drop,
            brace=tuple(scale * s for s in tail.brace),
        )
    return replace(template, **changes)


def lowest_ankle(template: Template) -> float:
    """Smallest height of an ankle for its motor [m]."""
    build = template.build
    return build.swing + build.gap + 2 * build.wall + build.sole_skin


def lowest_hip(template: Template) -> float:
    """Smallest distance of abduction and flexion joint [m]."""
    build = template.build
    return build.gap + build.wall + build.bay[1] / 2


def limb_limits(template: Template, end: str) -> dict[str, tuple[float, float]]:
    """Default limits of a pair of limbs, by dotted names.

    Links from what their motors need to 1.6 times, angles by 25 degrees.
    """
    limb: Limb = getattr(template, end)
    build = template.build
    rows = {
        "x": (limb.x - 0.06, limb.x + 0.06),
        "y": (0.6 * limb.y, 1.5 * limb.y),
        "upper": (build.shortest, max(1.6 * limb.upper, 1.2 * build.shortest)),
        "lower": (build.shortest, max(1.6 * limb.lower, 1.2 * build.shortest)),
        "upper_pitch": _turned(limb.upper_pitch),
        "lower_pitch": _turned(limb.lower_pitch),
        "splay": (max(_turned(limb.splay)[0], 0.0), _turned(limb.splay)[1]),
        "foot.length": (0.6 * limb.foot.length, 1.1 * limb.foot.length),
        # Not narrower than the fork above it.
        "foot.width": (
            min(max(0.6 * limb.foot.width, build.fork), limb.foot.width),
            1.1 * limb.foot.width,
        ),
        "foot.ankle_height": (
            lowest_ankle(template),
            max(1.4 * limb.foot.ankle_height, 1.2 * lowest_ankle(template)),
        ),
    }
    return {f"{end}.{name}": row for name, row in rows.items()}


def _turned(angle: float) -> tuple[float, float]:
    """25 degrees to either side, within what a limb may have."""
    turn, most = np.radians(25), np.radians(79)
    return float(max(angle - turn, -most)), float(min(angle + turn, most))


def torso_limits(template: Template) -> dict[str, tuple[float, float]]:
    """Default limits of the torso, such that its box meets the motor bays.

    The box stays between the limbs' motor bays and reaches along x and z to each.
    """
    torso, build = template.torso, template.build
    centre = template.torso_centre
    inner = np.inf
    front, rear = np.inf, -np.inf
    for name, (_, end, _) in template.limbs.items():
        joint, p_WM, axis, inward = template.limb_parts(name).mount
        points = motor(build, joint, p_WM, axis, inward)[0].corners()
        low, high = points.min(axis=0), points.max(axis=0)
        inner = min(inner, np.abs(points[:, 1]).min())
        if end > 0:
            front, top_front = low[0], (low[2], high[2])
        else:
            rear, top_rear = high[0], (low[2], high[2])
    x = centre[0]
    reach = 2 * max(front - x, x - rear) + 0.026
    payload = np.array([torso.battery[0], torso.board[0]]).max(axis=0) + 2 * build.wall
    wide = 2 * inner - 2e-4
    # The box's z range overlaps each bay's by 12 mm.
    floor = max(top_front[0], top_rear[0]) + 0.012 - centre[2]
    ceiling = min(top_front[1], top_rear[1]) - 0.012 - centre[2]
    tall = max(2 * floor, -2 * ceiling, 0.03)
    size = torso.size
    rows = {
        "torso.size[0]": (max(reach, payload[0]), max(1.1 * reach, 1.2 * payload[0])),
        "torso.size[1]": (min(payload[1], wide), wide),
        "torso.size[2]": (tall, max(1.5 * size[2], 1.1 * tall)),
        "torso.brace[0]": (0.5 * torso.brace[0], 1.5 * torso.brace[0]),
        "torso.brace[1]": (0.3 * torso.brace[1], 1.5 * torso.brace[1]),
        "torso.brace_centre": (
            torso.brace_centre - 0.05,
            torso.brace_centre + 0.05,
        ),
        "torso.strut_brace[0]": (torso.strut_width + 0.008, 1.5 * torso.strut_brace[0]),
        "torso.strut_brace[1]": (torso.strut_width + 0.008, 1.5 * torso.strut_brace[1]),
    }
    if isinstance(template, Long):
        tail = template.tail
        least = build.swing + build.gap + build.wall + 0.021
        rows |= {
            "tail.length": (
                max(0.5 * tail.length, least),
                max(1.2 * tail.length, 1.2 * least),
            ),
            "tail.drop": (tail.drop - 0.08, tail.drop + 0.08),
            "tail.brace[0]": (tail.width + 0.008, 1.3 * tail.brace[0]),
            "tail.brace[1]": (tail.width + 0.008, 1.3 * tail.brace[1]),
        }
    return rows
