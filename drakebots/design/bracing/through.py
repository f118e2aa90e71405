"""How far the rigid parts of a robot pass through its skin at rest.

    for row in through_skin(skeleton, shell.inner, shell.outer):
        print(row.link, row.solid, row.inner.depth, row.outer.volume)

A part S passes a closed surface that bounds the body V where S \\ V is not empty. Its
volume is |S \\ V|, and its depth the largest distance of a point of S \\ V from the
surface. Both are exact for the meshes, but for the depth's sampling of S \\ V, at its
vertices and on its faces at most SAMPLE apart.
"""

from __future__ import annotations

from dataclasses import dataclass

import manifold3d as m

from drakebots.design.bracing import sections
from drakebots.design.geometry import Surface, distances, to_surface
from drakebots.design.skeleton import Skeleton

SAMPLE = 1.5e-3
"""Largest distance between the points at which a depth is measured [m]."""

_CRUMB = 1e-3
"""Volume below which a part that is cut off is the rounding of a cut [mm^3]."""


@dataclass(frozen=True)
class Passed:
    """By how much a part passes a surface.

    Attributes:
        depth: largest distance of its outer points from the surface [m]; 0 inside.
        volume: volume of the part beyond the surface [m^3].
    """

    depth: float = 0.0
    volume: float = 0.0


@dataclass(frozen=True)
class Through:
    """A rigid part that passes the skin's inside.

    Attributes:
        link, solid: names of its link, and its own within that link.
        kind: what it is; see :class:`~drakebots.design.skeleton.Solid`.
        inner: by how much it passes the skin's inside.
        outer: by how much it passes the skin's outside.
    """

    link: str
    solid: str
    kind: str
    inner: Passed
    outer: Passed

    def figures(self) -> dict[str, str | float]:
        """Its figures, as values that JSON can hold."""
        return {
            "part": f"{self.link}/{self.solid}",
            "inner_depth_m": self.inner.depth,
            "inner_volume_m3": self.inner.volume,
            "outer_depth_m": self.outer.depth,
            "outer_volume_m3": self.outer.volume,
        }


def through_skin(
    skeleton: Skeleton, inside: Surface, outside: Surface
) -> tuple[Through, ...]:
    """The solids of a skeleton at rest that pass its skin, the deepest first.

    Servos, payload, printed parts and bracing plates count, each for itself; of a
    motor bay only its walls.

    Args:
        skeleton: skeleton at rest.
        inside, outside: the skin's two surfaces, closed, their normals away from the
            skeleton.

    Raises:
        InvalidInput: for a surface that is not closed.
    """
    bodies = [(one, sections.inside_of(one)) for one in (inside, outside)]
    rows = []
    for link in skeleton.links:
        for solid in link.solids:
            body = solid.body().translate(link.origin.tolist())
            body = body.scale([sections.MM] * 3)
            inner, outer = (_passed(body, *one) for one in bodies)
            if inner.volume > 0:
                rows.append(Through(link.name, solid.name, solid.kind, inner, outer))
    return tuple(sorted(rows, key=lambda row: -row.inner.depth))


def _passed(body: m.Manifold, surface: Surface, within: m.Manifold) -> Passed:
    """By how much a solid [mm] passes a surface, which bounds another solid [mm]."""
    out = body - within
    if out.volume() < _CRUMB:
        return Passed()
    points = to_surface(out.refine_to_length(sections.MM * SAMPLE)).vertices
    away = distances(surface, points / sections.MM)
    return Passed(float(away.max()), float(out.volume() / sections.MM**3))
