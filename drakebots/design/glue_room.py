"""Which vertices a bracing unit can hold: a limb's lie around that limb.

The link whose axis is nearest is not always the one a vertex belongs to: a belly
lies nearer to the thighs than to the middle of the torso. Glued to them it would hold
both legs together.
"""

from __future__ import annotations

import numpy as np

from drakebots.design.skeleton import Link, Skeleton

REACH = 1.5
"""A limb's vertices end at this many times its radius from its axis."""

SECTORS = 24
"""Around a link's axis, in which its radius is measured."""

MIDDLE = (0.25, 0.9)
"""Of a link's length, where it is measured: away from the bent skin of its joints."""


def around_limbs(vertices: np.ndarray, skeleton: Skeleton) -> np.ndarray:
    """Whether a vertex may be glued to the link whose axis is nearest (n,).

    Those of torso, struts, feet and tail may. Those of a limb's upper and lower links
    may within REACH times the limb's radius, the median over SECTORS around the axis
    of the nearest vertex, which a neighbouring belly or leg does not change.

    Args:
        vertices: of the skin's inside, at rest (n, 3) [m].
        skeleton: inside it.
    """
    axes = [(k, link.p_WA, link.p_WB) for k, link in enumerate(skeleton.links)]
    axes += [(k, *s) for k, link in enumerate(skeleton.links) for s in link.struts]
    distance = np.stack([_distance(vertices, a, b) for _, a, b in axes], axis=1)
    owner = np.array([k for k, _, _ in axes])[distance.argmin(axis=1)]
    limbs = {sole.foot for sole in skeleton.soles}
    able = np.ones(len(vertices), bool)
    for k, link in enumerate(skeleton.links):
        limb, _, part = link.name.partition("_")
        if limb not in limbs or part not in ("upper", "lower"):
            continue
        mine = owner == k
        share, away, angle = _polar(vertices[mine], link)
        middle = (share >= MIDDLE[0]) & (share <= MIDDLE[1])
        able[mine] = away <= REACH * _radius(away[middle], angle[middle])
    return able


def _distance(points, p_A, p_B):
    d = p_B - p_A
    s = np.clip((points - p_A) @ d / (d @ d), 0, 1)
    return np.linalg.norm(points - p_A - s[:, None] * d, axis=1)


def _polar(points, link: Link):
    """Share of a link's length, distance from its axis, angle about it (n,)."""
    along = (link.p_WB - link.p_WA) / link.length
    side = np.cross(along, np.eye(3)[np.argmin(np.abs(along))])
    side /= np.linalg.norm(side)
    offset = points - link.p_WA
    x, y = offset @ side, offset @ np.cross(along, side)
    return offset @ along / link.length, np.hypot(x, y), np.arctan2(y, x)


def _radius(away, angle) -> float:
    """Median over the sectors of the nearest vertex; inf without vertices."""
    if not len(away):
        return np.inf
    sector = np.floor((angle + np.pi) / (2 * np.pi) * SECTORS).astype(int) % SECTORS
    nearest = np.full(SECTORS, np.inf)
    np.minimum.at(nearest, sector, away)
    return float(np.median(nearest[np.isfinite(nearest)]))
