"""Two-part moulds of skin pieces: a box less the piece, parted by a plane.

The mould of a bowl (half a torso) parts at its rim, and its lower half carries the
core. A tube (a limb) would hold back a core on either half, so its core is a third
body. That is held by a print: the core's end, extended through the opening into the
box. Every mould lies in its own frame M, in which the parting plane is z = 0 and the
upper half leaves along +z.
"""

from __future__ import annotations

from dataclasses import dataclass

import manifold3d as m
import numpy as np

from drakebots.core.checks import between, check_value
from drakebots.core.errors import NoSolution
from drakebots.design.fabrication.demould import (
    Parting,
    best_parting,
    blocked,
    directions_around,
    held_back,
    lifted,
)
from drakebots.design.fabrication.pieces import SkinPiece, bowl_undercut
from drakebots.design.geometry import (
    Surface,
    frame_of,
    heavy_parts,
    to_manifold,
    to_surface,
)
from drakebots.model import plane_rotation

_WALL = 0.015
"""Thickness of the box around the piece [m]."""

PIN_CLEARANCE = 2e-4
"""Difference of the diameters of a pin's hole and the pin [m]."""

_VENT_DISTANCE = 0.02
"""Smallest distance of two vents, or of a vent from the sprue's rim [m]."""

_VENTS = 6
"""Largest number of vents."""

SIDES = 32
"""Number of segments of round holes and pins."""

_LOOSE = 0.1
"""A core is a body of its own if that lowers the undercut by more than this."""

PRINT = 0.015
"""Length of a core's print [m]."""


@dataclass(frozen=True)
class Mould:
    """A mould, in its frame M [m].

    Its bodies add up to the box, except for holes and pins.

    Attributes:
        upper, lower: halves of the mould; the lower one carries the pins.
        core: loose core; None if there is none, or if it is part of the lower half.
        cast: surface of the piece.
        size: sides of the box (3,) [m].
        X_WM: rotation and origin of M in the robot's frame (3, 4).
        parting: parting plane in the robot's frame, with the undercut of the outside.
        undercut: area held back over all area, of outside and inside, 0 to 1: what the
            rubber has to stretch around.
        undercut_without_core: smallest undercut with two halves only.
        sprue: middle of the sprue's mouth in the cavity (3,) [m]; None without a sprue.
        vents: middles of the vents' mouths (k, 3) [m].
    """

    upper: Surface
    lower: Surface
    core: Surface | None
    cast: Surface
    size: np.ndarray
    X_WM: np.ndarray
    parting: Parting
    undercut: float
    undercut_without_core: float
    sprue: np.ndarray | None
    vents: np.ndarray

    @property
    def bodies(self) -> dict[str, Surface]:
        """The bodies to print: upper, lower and, if it is loose, core."""
        parts = {"upper": self.upper, "lower": self.lower}
        return parts if self.core is None else parts | {"core": self.core}


def two_part_mould(
    piece: SkinPiece,
    parting_direction: np.ndarray | None = None,
    *,
    sprue: float = 0.006,
    vent: float = 0.0015,
    pin: float = 0.006,
) -> Mould:
    """The mould of a piece of skin.

    Args:
        piece: piece of skin.
        parting_direction: direction in which the upper half leaves (3,), by default
            that with the least undercut; if it is given, a bowl is treated as a tube.
        sprue, vent, pin: diameters of sprue, vents and pins [m]; 0 for none.

    Raises:
        InvalidInput: for an open surface, or diameters wider than half of the wall.
        NoSolution: when a half consists of several bodies.
    """
    for name, diameter in (("sprue", sprue), ("vent", vent), ("pin", pin)):
        check_value(f"mould {name}", diameter, between(0.0, _WALL / 2, "m"))
    given = parting_direction is not None
    directions = [parting_direction] if given else directions_around()
    bare = best_parting(piece.skin, directions)
    parting, undercut = _tube(piece, directions)
    bowl = False
    if not given and piece.core is not None:
        rim, with_rim = _bowl(piece)
        bowl = with_rim <= undercut + _LOOSE
        parting, undercut = (rim, with_rim) if bowl else (parting, undercut)
    R, p = _turned(piece.filled, parting.direction), parting.offset * parting.direction
    body, cast, core = _solids(piece, bowl, np.column_stack([R.T, -R.T @ p]))
    low, high = np.reshape(body.bounding_box(), (2, 3)) + np.c_[[-_WALL, _WALL]]
    low[2], high[2] = min(low[2], -_WALL), max(high[2], _WALL)
    upper = _box([*low[:2], 0.0], high) - body
    lower = _box(low, [*high[:2], 0.0]) - body
    if bowl:
        # The core stands on the lower half and becomes one body with it.
        lower, core = lower + core, None
    mouth, vents = _mouths(body, cast, sprue, vent)
    for at, diameter in ((mouth, sprue), *((v, vent) for v in vents)):
        if at is not None:
            upper = upper - _rod(at, diameter, high[2] + _WALL)
    if pin:
        upper, lower = _pinned(upper, lower, low, high, pin)
    return Mould(
        to_surface(_whole(piece.name, "upper", upper)),
        to_surface(_whole(piece.name, "lower", lower)),
        None if core is None else to_surface(core),
        to_surface(cast),
        high - low,
        np.column_stack([R, p]),
        parting,
        undercut,
        bare.undercut,
        mouth,
        vents,
    )


def _solids(piece, bowl, X_MW):
    """What the halves leave out, what is cast and the core, in the mould's frame."""
    body, core = to_manifold(piece.filled, piece.name), None
    if piece.core is not None:
        core = to_manifold(piece.core, f"{piece.name} core")
        if not bowl:
            core, body = (_with_print(b, core, piece.openings) for b in (core, body))
    cast = to_manifold(piece.skin, piece.name)
    core = None if core is None else _placed(core, X_MW)
    return _placed(body, X_MW), _placed(cast, X_MW), core


def _bowl(piece):
    """The plane of the first opening, and the undercut of outside and inside."""
    rim = piece.openings[0]
    d = -rim.normal
    held, area = held_back(piece.filled, d, ~rim.faces(piece.filled))
    return Parting(d, float(d @ rim.p_W), float(held / area)), bowl_undercut(piece)


def _tube(piece, directions):
    """The best plane for the outside, and the undercut of outside and inside.

    The core leaves through the first opening.
    """
    outside = ~piece.on_openings(piece.filled)
    parting = best_parting(piece.filled, directions, outside)
    area = float(piece.filled.areas[outside].sum())
    held = parting.undercut * area
    if piece.core is not None:
        inside, out = ~piece.on_openings(piece.core), piece.openings[0].normal
        more = held_back(piece.core, out, inside, piece.skin, -1.0)
        held, area = np.add((held, area), more)
    return parting, float(held / area)


def _turned(surface, direction):
    """Rotation of a frame with z along the direction, in which the box is small."""
    R = frame_of(direction)
    flat = surface.vertices @ R[:, :2]
    angles = np.radians(np.arange(0.0, 90.0, 3.0))
    sizes = [np.ptp(flat @ plane_rotation(a), axis=0).prod() for a in angles]
    return R @ plane_rotation(angles[int(np.argmin(sizes))], size=3)


def _with_print(body, core, openings):
    """A body joined with the core's print beyond the first opening."""
    opening = openings[0]
    R, overlap = frame_of(opening.normal), 1e-6
    height = float(opening.normal @ opening.p_W)
    level = core.transform(np.column_stack([R.T, np.zeros(3)]))
    section = level.slice(height - overlap)
    end = m.Manifold.extrude(section, PRINT + overlap)
    end = end.translate([0.0, 0.0, height - overlap])
    return body + end.transform(np.column_stack([R, np.zeros(3)]))


def _placed(body, X_MW):
    """A body in the mould's frame.

    Vertices in the parting plane are put there exactly, so that rounding leaves no film
    or gap.
    """

    def snapped(x):
        x = np.array(x)
        x[np.abs(x[:, 2]) < 1e-9, 2] = 0.0
        return x

    return body.transform(X_MW).warp_batch(snapped)


def _box(low, high):
    low, high = np.asarray(low, float), np.asarray(high, float)
    return m.Manifold.cube((high - low).tolist()).translate(low.tolist())


def _whole(name, half, body):
    """A half without crumbs; it must be a single body."""
    parts = heavy_parts(body)
    if len(parts) != 1:
        sizes = ", ".join(f"{1e6 * p.volume():.2g}" for p in parts)
        raise NoSolution(
            f"mould of {name}: its {half} half consists of bodies of {sizes} cm^3; "
            "choose another parting_direction"
        )
    return parts[0]


# Sprue, vents and alignment pins, in the mould's frame.


def _rod(p, diameter, top, bottom=None):
    """A rod along z from the bottom, by default half a diameter below p, to the top."""
    z = p[2] - diameter / 2 if bottom is None else bottom
    rod = m.Manifold.cylinder(top - z, diameter / 2, diameter / 2, SIDES)
    return rod.translate([p[0], p[1], z])


def _mouths(body, cast, sprue, vent):
    """Points of the cast, seen from above, where the sprue and the vents open.

    Vents are at peaks, where air would stay; the sprue is near the middle.
    """
    surface = to_surface(cast)
    up = np.array([0.0, 0.0, 1.0])
    visible = ~blocked(lifted(surface), up, to_surface(body))
    middle = surface.middles
    visible &= (surface.normals[:, 2] > 0.3) & (middle[:, 2] > 2e-3)
    if not visible.any():
        return None, np.zeros((0, 3))
    mouth = None
    if sprue:
        centre = (surface.vertices.min(axis=0) + surface.vertices.max(axis=0))[:2] / 2
        far = np.linalg.norm(middle[:, :2] - centre, axis=1)
        mouth = middle[np.argmin(np.where(visible, far, np.inf))]
    vents = []
    if vent:
        for p in _peaks(surface, np.unique(surface.triangles[visible])):
            others = vents if mouth is None else [*vents, mouth]
            if all(np.linalg.norm(p - q) >= _VENT_DISTANCE for q in others):
                vents.append(p)
    return mouth, np.array(vents[:_VENTS]).reshape(-1, 3)


def _peaks(surface, candidates):
    """Vertices that are as high as all their neighbours, the highest first."""
    x, f = surface.vertices, surface.triangles
    top = np.full(len(x), -np.inf)
    np.maximum.at(top, f, x[f, 2].max(axis=1, keepdims=True))
    peak = candidates[x[candidates, 2] >= top[candidates] - 1e-9]
    return x[peak[np.argsort(-x[peak, 2], kind="stable")]]


def _pinned(upper, lower, low, high, pin):
    """The halves, with pins at the lower one's corners and holes in the upper one."""
    for x in (low[0] + _WALL / 2, high[0] - _WALL / 2):
        for y in (low[1] + _WALL / 2, high[1] - _WALL / 2):
            p = np.array([x, y, 0.0])
            lower = lower + _rod(p, pin, pin, bottom=-pin)
            upper = upper - _rod(p, pin + PIN_CLEARANCE, pin + PIN_CLEARANCE, -1e-3)
    return upper, lower
