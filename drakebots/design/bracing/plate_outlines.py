"""Outlines of bracing plates: the skin's inside cut across, less what is in the way.

In the frame C of each ring, in mm: the link's own parts, motors and payload come out,
then what other links sweep and what lies behind that, then plates already there; what
is left and touches the link's own parts, rounded, is the plate.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from manifold3d import CrossSection, Manifold
from pydrake.common.eigen_geometry import AngleAxis
from pydrake.math import RotationMatrix

from drakebots.core.errors import InvalidInput
from drakebots.design.bracing import plate_room as room
from drakebots.design.skeleton import Link, Plate, Skeleton, Solid, axes, plate

# The bracing rings of a template: bars in a ring across a link, at a station of it.

_SADDLE = ("top", "bottom", "left", "right")


@dataclass(frozen=True)
class Ring:
    """A bracing ring of a template: its boxes, and the frame across its link.

    Attributes:
        link, name: of the link and of the ring within it.
        p_BC, R_BC: its middle on the link's axis, z along it.
        solids: the boxes.
    """

    link: str
    name: str
    p_BC: np.ndarray
    R_BC: np.ndarray
    solids: tuple[Solid, ...]


def rings(link: Link) -> tuple[Ring, ...]:
    """The bracing rings of a link, in their order; none where they are plates."""
    found: dict[str, list[Solid]] = {}
    for solid in link.solids:
        if isinstance(solid, Solid) and solid.kind == "rib":
            stem, _, side = solid.name.rpartition("_")
            name = stem if side in _SADDLE else solid.name
            found.setdefault(name, []).append(solid)
    return tuple(_ring(link, name, solids) for name, solids in found.items())


def _ring(link, name, solids):
    first = solids[0]
    if first.name == name:
        return Ring(link.name, name, first.p_BG, first.R_BG, tuple(solids))
    # Bars around the torso's box, across its x axis.
    p = np.array([first.p_BG[0], 0.0, 0.0])
    R = axes(first.R_BG[:, 0], first.R_BG[:, 1])
    return Ring(link.name, name, p, R, tuple(solids))


# Where the other links' parts come as they move about one link.

SWING = float(np.radians(30.0))
"""Of each joint, either way from rest: what is swept is kept free of plates."""


def swept_boxes(skeleton: Skeleton, link: Link) -> list[list[np.ndarray]]:
    """Boxes of the other links as they move about this one: corners (8, 3) [m].

    Links across one joint, or across a hip that has no rings of its own, are turned
    by SWING each way; all others stay at rest.
    """
    turns = {link.name: [[_STILL]]}
    outward = {link.name}
    for hinge, other, back in _neighbours(skeleton, link.name):
        turns[other] = [_turns(hinge, back, 7)]
        outward |= set() if back else {other}
        if skeleton.link(other).stations:
            continue
        for further, last, around in _neighbours(skeleton, other):
            if last not in turns:
                turns[last] = [
                    [_after(first, then) for then in _turns(further, around, 7)]
                    for first in _turns(hinge, back, 3)
                ]
                outward |= set() if back or around else {last}
    rows = []
    for other in skeleton.links:
        # The plates of what is farther out come later and fill its skin.
        kinds = {"shell", "servo", "payload"}
        kinds |= {"rib"} if other.name in outward else set()
        for solid in other.solids:
            if other.name == link.name or solid.kind not in kinds:
                continue
            box = other.origin + solid.corners()
            for sequence in turns.get(other.name, [[_STILL]]):
                rows.append([box @ R.T + p for R, p in sequence])
    return rows


_STILL = (np.eye(3), np.zeros(3))


def _neighbours(skeleton, name):
    """Hinges at a link: the other link, and whether it is the parent."""
    for hinge in skeleton.hinges:
        if hinge.parent == name:
            yield hinge, hinge.child, False
        elif hinge.child == name:
            yield hinge, hinge.parent, True


def _turns(hinge, back, count):
    """Rotations about a hinge: x -> R x + p."""
    low, high = max(hinge.lower, -SWING), min(hinge.upper, SWING)
    turns = []
    for angle in np.linspace(low, high, count):
        R = RotationMatrix(AngleAxis(-angle if back else angle, hinge.axis)).matrix()
        turns.append((R, hinge.p_WJ - R @ hinge.p_WJ))
    return turns


def _after(first, then):
    """`then` about its own hinge, carried along by `first`."""
    (R, p), (Q, q) = first, then
    return R @ Q, R @ q + p


FREE = 1e-3
"""Around motors and payload of the plate's own link [m]."""

ARM = 3e-3
"""Narrowest part of a plate [m]; thinner ones break."""

LEAST_AREA = 4e-4
"""Of a plate [m^2]; a smaller one holds no skin."""

SMOOTH = 5e-5
"""By which an outline may be off when some of its vertices are left out [m]."""


def outlines(
    skeleton: Skeleton,
    link: Link,
    chosen: Sequence[Ring],
    body: Manifold,
    made: Sequence[tuple[str, Plate]],
    slab: float,
    gap: float,
    clearance: float,
) -> tuple[list[CrossSection], list[float]]:
    """Of each ring of a link: its plate's section, and the area inside the skin.

    Args:
        skeleton: at rest.
        link: of the rings.
        chosen: its rings.
        body: the skin's inside, in the world [mm].
        made: plates that are already there, with their links.
        slab: thickness that the outlines hold for, and for all below [m].
        gap: between a plate and parts of other links [m].
        clearance: between a plate's rim and the skin [m].

    Returns:
        sections in the rings' frames [mm], areas [mm^2].

    Raises:
        InvalidInput: for a ring without room, with its place.
    """
    moving = swept_boxes(skeleton, link)
    done: list = []
    flats, whole = [], []
    for ring in chosen:
        flat = _inside(skeleton, link, ring, body, slab, clearance)
        free, own = _without_own(link, ring, flat, slab)
        whole.append(max((x.area() for x in free.decompose()), default=1.0))
        flat = _without_others(skeleton, link, ring, free, moving, slab, gap)
        flat = _without_plates(skeleton, link, ring, flat, [*made, *done], slab, gap)
        flat = room.smoothed(flat, ARM, SMOOTH)
        flat = room.touching(room.less(flat, [own]), own, LEAST_AREA)
        if flat.is_empty():
            place = np.round(link.origin + ring.p_BC, 3).tolist()
            raise InvalidInput(
                f"ring {link.name}/{ring.name} at {place} m: no room for a plate of "
                f"{1e4 * LEAST_AREA:g} cm^2 inside the skin on its link; move the "
                "ring's station or make the body wider there"
            )
        found = room.contours(flat)
        done.append((link.name, plate(ring.name, found, slab, ring.p_BC, ring.R_BC, 1)))
        flats.append(flat)
    return flats, whole


def _inside(skeleton, link, ring, body, slab, clearance):
    """The skin's inside across a ring's station, in its frame C [mm]."""
    p_WC, R = link.origin + ring.p_BC, ring.R_BC
    flat = room.grown(room.section(room.local(body, p_WC, R), slab), -clearance)
    if link.parent is not None:
        # A limb's plate does not reach into the torso or another limb.
        for p_W in _axis_points(skeleton, link, p_WC):
            flat = room.nearer(flat, (p_W - p_WC) @ R)
    elif _of_box(ring):
        for other in rings(link):
            if other.name.endswith("_rib_0"):
                flat = _up_to(flat, ring, other, slab)
    return flat


def _of_box(ring):
    """Whether a ring is the torso's own, not on a strut."""
    return ring.name.startswith("rib_")


def _up_to(flat, ring, other, slab):
    """The points of a plate before the first ring of a strut, which takes over."""
    p_C = (other.p_BC - ring.p_BC) @ ring.R_BC
    n_C = ring.R_BC.T @ other.R_BC[:, 2]
    length = np.linalg.norm(n_C[:2])
    if length < 0.3:
        # The strut goes on along the torso; so do its rings.
        return flat
    before = p_C @ n_C - slab * (1 + abs(n_C[2])) / 2 - ARM
    return room.below(flat, n_C[:2] / length, before / length)


def _without_own(link, ring, flat, slab):
    """Less the link's own parts; and the section of those it is printed onto."""
    own = []
    for solid in link.solids:
        if isinstance(solid, Plate) or solid.kind == "rib":
            continue
        points = room.box_points((solid.corners() - ring.p_BC) @ ring.R_BC, slab)
        shell = solid.kind == "shell"
        shape = room.obstacle(points, 0.0 if shell else FREE)
        flat = room.less(flat, [shape])
        own += [shape] if shell else []
    return flat, room.union(own)


def _without_others(skeleton, link, ring, flat, moving, slab, gap):
    """Less what other links sweep, and what lies behind that."""
    p_WC = link.origin + ring.p_BC
    for boxes in moving:
        parts = [room.box_points((box - p_WC) @ ring.R_BC, slab) for box in boxes]
        pairs = itertools.pairwise(parts) if len(parts) > 1 else [(parts[0],)]
        hulls = [room.obstacle(np.concatenate(pair), gap, cast=True) for pair in pairs]
        flat = room.less(flat, hulls)
    return flat


def _without_plates(skeleton, link, ring, flat, made, slab, gap):
    """Less the plates that are already there; those of the link itself it joins."""
    p_WC = link.origin + ring.p_BC
    for name, other in made:
        p_WG = skeleton.link(name).origin + other.p_BG
        far = np.linalg.norm(other.size) / 2 + slab
        if abs((p_WG - p_WC) @ ring.R_BC[:, 2]) > far:
            continue
        solid = other.body().translate(skeleton.link(name).origin.tolist())
        solid = room.local(solid.scale([room.MM] * 3), p_WC, ring.R_BC)
        away = room.shadow(solid, slab)
        flat = room.less(flat, [away if name == link.name else room.grown(away, gap)])
    return flat


def _axis_points(skeleton, link, p_WC):
    """The nearest point to C of each other link's axes."""
    for other in skeleton.links:
        if other.name == link.name:
            continue
        for A, B in ((other.p_WA, other.p_WB), *other.struts):
            d = B - A
            yield A + np.clip((p_WC - A) @ d / (d @ d), 0, 1) * d
