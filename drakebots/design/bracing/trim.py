"""Trims printed parts where they pass the skin: motor bays, boxes and foot plates.

    skeleton = trim_to_skin(braced.skeleton, shell.inner, build)

The boxes of a template lie inside a smooth body. The skin's inside is a mesh with
teeth, which corners of the boxes may pass. There a box P becomes

    (P and V_c) or (P and K)

where V_c is the solid within the skin's inside, moved inward by a clearance c, and K
what has to stay: a printable wall around the servo, the pilot holes of its screws, the
hole of a tube and the payload of the torso. What passes within K still does, and so do
boxes that would lose much or fall apart;
:func:`~drakebots.design.bracing.through.through_skin` says by how much.
"""

from __future__ import annotations

from dataclasses import replace

import manifold3d as m
import numpy as np

from drakebots.core.checks import check_value, non_negative
from drakebots.design.bracing import sections
from drakebots.design.geometry import Surface, to_surface
from drakebots.design.skeleton import Build, Link, Skeleton, Solid, trimmed

WALL = 1.2e-3
"""Thinnest wall that is left around a servo, a pilot hole or a cavity [m]: stereo-
lithography prints unsupported walls of 1 mm and more."""

_CLEARANCE = 3e-4
"""Gap between a trimmed part and the skin at rest [m]."""

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


def trim_to_skin(
    skeleton: Skeleton,
    inside: Surface,
    build: Build,
    *,
    clearance: float = _CLEARANCE,
) -> Skeleton:
    """The skeleton with its printed boxes trimmed to the skin's inside.

    Masses, centres of mass and inertias of the links follow. Boxes that do not pass
    the skin, bracing plates, servos and payload stay as they are.

    Args:
        skeleton: skeleton at rest.
        inside: inner surface of the skin at rest, closed, its normals outward.
        build: how the parts are printed.
        clearance: gap between trimmed parts and the skin [m]; smaller where the skin
            is bent.

    Raises:
        InvalidInput: for a surface that is not closed, or a clearance < 0.
    """
    check_value("trim: clearance", clearance, non_negative("m"))
    body = sections.inside_of(inside)
    free = sections.inside_of(_shrunk(inside, clearance))
    resting = sections.inside_of(_shrunk(inside, _RESTS))
    links = []
    for link in skeleton.links:
        solids = []
        for solid in link.solids:
            room = resting if _is_sole(link, solid) else free
            printed = isinstance(solid, Solid) and solid.kind == "shell"
            one = _trimmed(link, solid, body, room, build) if printed else None
            solids.append(one or solid)
        links.append(replace(link, solids=tuple(solids)))
    return replace(skeleton, links=tuple(links))


def _is_sole(link: Link, solid) -> bool:
    return link.name.endswith("_foot") and solid.name == "plate"


def _shrunk(surface: Surface, distance: float) -> Surface:
    """A surface with its vertices moved inward, along their normals [m]."""
    normals = np.zeros_like(surface.vertices)
    for k in range(3):
        weighted = surface.areas[:, None] * surface.normals
        np.add.at(normals, surface.triangles[:, k], weighted)
    normals /= np.linalg.norm(normals, axis=1, keepdims=True)
    return Surface(surface.vertices - distance * normals, surface.triangles)


def _trimmed(link: Link, solid: Solid, body, room, build: Build):
    """The solid trimmed to `room`, or None where it stays as it is."""
    to_skin = link.origin * sections.MM
    part = solid.body().scale([sections.MM] * 3).translate(to_skin.tolist())
    if (part - body).volume() < 1e-3 * _CRUMB:
        return None
    out = part - room
    stays = _kept(link, solid, build)
    if stays is not None:
        out -= stays.scale([sections.MM] * 3).translate(to_skin.tolist())
    left = part - out
    pieces = [piece for piece in left.decompose() if piece.volume() > _CRUMB]
    if len(pieces) != 1 or pieces[0].volume() < (1 - _MOST) * part.volume():
        return None
    back = pieces[0].translate((-to_skin).tolist())
    surface = to_surface(back)
    return trimmed(solid, Surface(surface.vertices / sections.MM, surface.triangles))


def _kept(link: Link, solid: Solid, build: Build) -> m.Manifold | None:
    """What has to stay of a printed solid, in the link [m]; None for nothing.

    It reaches beyond the solid where a hole goes through.
    """
    if solid.name.endswith("_bay"):
        parts = [_box_within(solid, solid.hole + 2 * WALL)]
        along, across = build.servo.screws
        radius = build.pilot_hole / 2 + WALL
        height = float(solid.size[2]) - 2 * _MOUTH
        for x in (-along / 2, along / 2):
            for y in (-across / 2, across / 2):
                tube = m.Manifold.cylinder(height, radius, radius, _SIDES, True)
                parts.append(_placed(tube.translate([x, y, 0.0]), solid))
        return m.Manifold.batch_boolean(parts, m.OpType.Add)
    if solid.name in ("frame", "floor"):
        return _payload_room(link)
    if solid.hole.all():
        return _box_within(solid, solid.hole + 2 * WALL)
    return None


def _payload_room(link: Link) -> m.Manifold:
    """The room within the torso's box above its floor, with a wall around it."""
    named = {solid.name: solid for solid in link.solids}
    frame, floor = named["frame"], named["floor"]
    low = floor.p_BG[2] - frame.p_BG[2] + floor.size[2] / 2 - WALL
    high = frame.size[2] / 2
    x, y, _ = frame.hole + 2 * WALL
    box = m.Manifold.cube([x, y, high - low], True).translate([0, 0, (low + high) / 2])
    return _placed(box, frame)


def _box_within(solid: Solid, size: np.ndarray) -> m.Manifold:
    return _placed(m.Manifold.cube(list(map(float, size)), True), solid)


def _placed(body: m.Manifold, solid: Solid) -> m.Manifold:
    return body.transform(np.column_stack([solid.R_BG, solid.p_BG]))
