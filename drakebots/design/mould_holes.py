"""Sprue, vents and alignment pins of a mould, in the mould's frame."""

from __future__ import annotations

import numpy as np

from drakebots.design.demould import blocked, lifted
from drakebots.design.manifolds import to_surface

PIN_CLEARANCE = 2e-4
"""Of a pin in its hole, in diameter [m]."""

VENT_DISTANCE = 0.02
"""Least distance of two vents, or of a vent from the sprue's rim [m]."""

VENTS = 6
SIDES = 32
"""Segments of round holes and pins."""


def rod(p, diameter, top, bottom=None):
    """A rod along z from the bottom, half a diameter below p by default, to the top."""
    import manifold3d as m

    z = p[2] - diameter / 2 if bottom is None else bottom
    rod = m.Manifold.cylinder(top - z, diameter / 2, diameter / 2, SIDES)
    return rod.translate([p[0], p[1], z])


def mouths(body, cast, sprue, vent):
    """Where the sprue and the vents open: points of the cast seen from above.

    The vents at peaks, where air would stay; the sprue near the middle.
    """
    surface = to_surface(cast)
    up = np.array([0.0, 0.0, 1.0])
    seen = ~blocked(lifted(surface), up, to_surface(body))
    middle = surface.vertices[surface.triangles].mean(axis=1)
    seen &= (surface.normals[:, 2] > 0.3) & (middle[:, 2] > 2e-3)
    if not seen.any():
        return None, np.zeros((0, 3))
    mouth = None
    if sprue:
        centre = (surface.vertices.min(axis=0) + surface.vertices.max(axis=0))[:2] / 2
        far = np.linalg.norm(middle[:, :2] - centre, axis=1)
        mouth = middle[np.argmin(np.where(seen, far, np.inf))]
    vents = []
    if vent:
        for p in _peaks(surface, np.unique(surface.triangles[seen])):
            others = vents if mouth is None else [*vents, mouth]
            if all(np.linalg.norm(p - q) >= VENT_DISTANCE for q in others):
                vents.append(p)
    return mouth, np.array(vents[:VENTS]).reshape(-1, 3)


def _peaks(surface, candidates):
    """Vertices not lower than any neighbour, the highest first."""
    x, f = surface.vertices, surface.triangles
    top = np.full(len(x), -np.inf)
    for i in range(3):
        for j in range(3):
            np.maximum.at(top, f[:, i], x[f[:, j], 2])
    peak = candidates[x[candidates, 2] >= top[candidates] - 1e-9]
    return x[peak[np.argsort(-x[peak, 2], kind="stable")]]


def pinned(upper, lower, low, high, wall, pin):
    """Four pins at the corners of the lower half, holes in the upper one."""
    for x in (low[0] + wall / 2, high[0] - wall / 2):
        for y in (low[1] + wall / 2, high[1] - wall / 2):
            p = np.array([x, y, 0.0])
            lower = lower + rod(p, pin, pin, bottom=-pin)
            upper = upper - rod(p, pin + PIN_CLEARANCE, pin + PIN_CLEARANCE, -1e-3)
    return upper, lower
