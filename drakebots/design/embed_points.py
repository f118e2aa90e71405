"""Points of a skeleton that must lie inside a surface, and how deep."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from drakebots.design.skeleton import Link, Solid
from drakebots.design.solids import motor
from drakebots.design.template import Template

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
