"""Trims printed parts where they pass the skin: motor bays, boxes and foot plates.

    skeleton = trim_to_skin(braced.skeleton, shell.inner, build)

The boxes of a template lie inside a smooth body. The skin's inside is a mesh with
teeth, which corners of the boxes may pass. There a box P becomes

    (P and V_c) or (P and K)

where V_c is the solid within the skin's inside, moved inward by a clearance c, and K
what has to stay: a printable wall around the servo, the pilot holes of its screws, the
hole of a tube and the payload of the torso. What passes within K still does, and so do
boxes that would lose much or fall apart; :func:`through_skin` says by how much:

    for row in through_skin(skeleton, shell.inner, shell.outer):
        print(row.link, row.solid, row.inner.depth, row.outer.volume)

A part S passes a closed surface that bounds the body V where S \\ V is not empty. Its
volume is |S \\ V|, and its depth the largest distance of a point of S \\ V from the
surface. Both are exact for the meshes, but for the depth's sampling of S \\ V, at its
vertices and on its faces at most SAMPLE apart.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import product

import manifold3d as m

from drakebots.design.bracing import sections
from drakebots.design.geometry import Surface, distances, to_surface
from drakebots.design.skeleton import Build, Link, Plate, Skeleton, Solid, trimmed

WALL = 1.2e-3
"""Thinnest wall that is left around a servo, a pilot hole or a cavity [m]: stereo-
lithography prints unsupported walls of 1 mm and more."""

_CLEARANCE = 3e-4
"""Gap between a trimmed part and the skin at rest [m]; smaller where it is bent."""

_RESTS = 5e-5
"""Gap between the plate of a foot and the skin, on whose sole it rests [m]."""

_MOUTH = 3e-3
"""Length at the ends of pilot holes whose wall may be trimmed [m]: the holes go through
the whole bay, and screws are shorter."""

_MOST = 0.25
"""Share of a solid that may be trimmed; one that would lose more stays whole."""

_CRUMB = 1.0
"""Volume of a loose piece that is left out [mm^3]."""

_SIDES = 16
"""Number of sides of what stays around a pilot hole."""

SAMPLE = 1.5e-3
"""Largest distance between the points at which a depth is measured [m]."""

_SLIVER = 1e-3
"""Volume below which a part that is cut off is the rounding of a cut [mm^3]."""


def trim_to_skin(skeleton: Skeleton, inside: Surface, build: Build) -> Skeleton:
    """The skeleton with its printed boxes trimmed to the skin's inside.

    Masses, centres of mass and inertias of the links follow. Boxes that do not pass
    the skin, bracing plates, servos and payload stay as they are.

    Args:
        skeleton: skeleton at rest.
        inside: inner surface of the skin at rest, closed, its normals outward.
        build: construction of the printed parts.

    Raises:
        InvalidInput: for a surface that is not closed.
    """
    body = sections.inside_of(inside)
    free = sections.inside_of(_shrunk(inside, _CLEARANCE))
    resting = sections.inside_of(_shrunk(inside, _RESTS))

    def solids(link: Link) -> Iterator[Solid | Plate]:
        for solid in link.solids:
            sole = link.name.endswith("_foot") and solid.name == "plate"
            room = resting if sole else free
            printed = isinstance(solid, Solid) and solid.kind == "shell"
            one = _trimmed(link, solid, body, room, build) if printed else None
            yield one or solid

    return skeleton.with_solids(solids)


def _shrunk(surface: Surface, distance: float) -> Surface:
    """A surface with its vertices moved inward, along their normals [m]."""
    moved = surface.vertices - distance * surface.mean_normals
    return Surface(moved, surface.triangles)


def _trimmed(link: Link, solid: Solid, body, room, build: Build):
    """The solid trimmed to `room`, or None where it stays as it is."""
    part = sections.in_robot(solid.body(), link.origin)
    if (part - body).volume() < _SLIVER:
        return None
    out = part - room
    stays = _kept(link, solid, build)
    if stays is not None:
        out -= sections.in_robot(stays, link.origin)
    left = part - out
    pieces = [piece for piece in left.decompose() if piece.volume() > _CRUMB]
    if len(pieces) != 1 or pieces[0].volume() < (1 - _MOST) * part.volume():
        return None
    surface = to_surface(pieces[0])
    in_link = surface.vertices / sections.MM - link.origin
    return trimmed(solid, Surface(in_link, surface.triangles))


def _kept(link: Link, solid: Solid, build: Build) -> m.Manifold | None:
    """Part of a printed solid that has to stay, in the link [m]; None for nothing.

    It reaches beyond the solid where a hole goes through.
    """
    if solid.name.endswith("_bay"):
        parts = [solid.box(solid.hole + 2 * WALL)]
        along, across = build.servo.screws
        radius = build.pilot_hole / 2 + WALL
        height = float(solid.size[2]) - 2 * _MOUTH
        tube = m.Manifold.cylinder(height, radius, radius, _SIDES, True)
        for x, y in product((-0.5, 0.5), repeat=2):
            parts.append(solid.placed(tube, [x * along, y * across, 0.0]))
        return m.Manifold.batch_boolean(parts, m.OpType.Add)
    if solid.name in ("frame", "floor"):
        return _payload_room(link)
    if solid.hole.all():
        return solid.box(solid.hole + 2 * WALL)
    return None


def _payload_room(link: Link) -> m.Manifold:
    """The room within the torso's box above its floor, with a wall around it."""
    named = {solid.name: solid for solid in link.solids}
    frame, floor = named["frame"], named["floor"]
    low = floor.p_BG[2] - frame.p_BG[2] + floor.size[2] / 2 - WALL
    high = frame.size[2] / 2
    x, y, _ = frame.hole + 2 * WALL
    return frame.box([x, y, high - low], [0, 0, (low + high) / 2])


# What still passes the skin.


@dataclass(frozen=True)
class Passed:
    """Penetration of a surface by a part.

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
        kind: kind of solid; see :class:`~drakebots.design.skeleton.Solid`.
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
    for link, solid in skeleton.solids():
        body = sections.in_robot(solid.body(), link.origin)
        inner, outer = (_passed(body, *one) for one in bodies)
        if inner.volume > 0:
            rows.append(Through(link.name, solid.name, solid.kind, inner, outer))
    return tuple(sorted(rows, key=lambda row: -row.inner.depth))


def _passed(body: m.Manifold, surface: Surface, within: m.Manifold) -> Passed:
    """Penetration of a surface, which bounds another solid [mm], by a solid [mm]."""
    out = body - within
    if out.volume() < _SLIVER:
        return Passed()
    points = to_surface(out.refine_to_length(sections.MM * SAMPLE)).vertices
    away = distances(surface, points / sections.MM)
    return Passed(float(away.max()), float(out.volume() / sections.MM**3))
