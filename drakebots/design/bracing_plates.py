"""Bracing rings trimmed to the skin's inside: flat printed plates.

The paper's bracing units are made "in a similar way as the skin" (section 6.1) and
touch it (Fig. 9). Here each ring of the template becomes a plate at its station,
across its link. Its outline is the section of the skin's inside, less a small
clearance, over the plate's whole thickness; taken out of it are the link's own parts
(which it is printed onto), motors and payload, and what other links sweep, with what
lies behind that. Each link's plates weigh what its rings did, by their thickness.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np

from drakebots.design import plate_room as room
from drakebots.design.link_sweeps import swept_boxes
from drakebots.design.plates import Plate, plate
from drakebots.design.skeleton import Link, Skeleton, Solid
from drakebots.design.solids import axes
from drakebots.design.surface import Surface
from drakebots.errors import InvalidInput

CLEARANCE = 3e-4
"""Between plate and skin at rest [m], less up to three times SMOOTH."""

FREE = 1e-3
"""Around motors and payload of the plate's own link [m]."""

ARM = 3e-3
"""Narrowest part of a plate [m]; thinner ones break."""

LITTLE = 0.8
"""Share of the skin's inside below which a plate is named in the notes."""

LEAST_AREA = 4e-4
"""Of a plate [m^2]; a smaller one holds no skin."""

THICKNESS = (1e-3, 3e-2)
"""Of a plate that can be made and is still a plate [m]."""

SMOOTH = 5e-5
"""By which an outline may be off when some of its vertices are left out [m]."""

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


@dataclass(frozen=True)
class Braced:
    """A skeleton whose bracing rings are plates.

    Attributes:
        skeleton: its links weigh what they did, but for
        heavier: by link, what it weighs more, as its plates cannot be thinner [kg].
        share: by "link/ring", of the skin's inside across the link there, the link's
            own parts taken out, what the plate fills.
    """

    skeleton: Skeleton
    share: Mapping[str, float]
    heavier: Mapping[str, float]

    @property
    def notes(self) -> tuple[str, ...]:
        """Lines for what weighs more, and for rings that have less than LITTLE."""
        more = [f"{k} by {1e3 * v:.0f} g" for k, v in self.heavier.items()]
        thin = f"bracing plates cannot be thinner than {1e3 * THICKNESS[0]:g} mm: "
        lines = (f"{thin}heavier are {', '.join(more)}",) if more else ()
        small = [f"{k} {100 * v:.0f} %" for k, v in self.share.items() if v < LITTLE]
        if not small:
            return lines
        return (
            *lines,
            "bracing plates that fill only a part of the skin's inside, as the rest is "
            f"where other links are or move: {', '.join(small)}",
        )


def with_plates(
    skeleton: Skeleton,
    inside: Surface,
    *,
    gap: float = 1e-3,
    clearance: float = CLEARANCE,
) -> Braced:
    """The skeleton with its bracing rings trimmed to the skin's inside.

    Each link keeps its mass where plates can be thin enough for that; centres of
    mass and inertias are those of the plates.

    Args:
        skeleton: of a template, at rest.
        inside: the inner surface of the skin at rest, closed, outward.
        gap: between a plate and parts of other links [m].
        clearance: between a plate's rim and the skin [m].

    Raises:
        InvalidInput: for a surface that is not closed, a clearance < 0, a ring
            that has no room (named, with its place), plates that would be too thick.
    """
    if not (np.isfinite([gap, clearance]).all() and min(gap, clearance) >= 0):
        raise InvalidInput(
            f"plates: gap {gap} m, clearance {clearance} m: must be >= 0"
        )
    body = room.inside_of(inside)
    made: list[tuple[str, Plate]] = []
    share: dict[str, float] = {}
    links = []
    for link in skeleton.links:
        new = _link_plates(skeleton, link, body, made, gap, clearance, share)
        made += [(link.name, one) for one in new]
        solids = [s for s in link.solids if isinstance(s, Plate) or s.kind != "rib"]
        links.append(replace(link, solids=(*solids, *new)) if new else link)
    more = {a.name: b.mass - a.mass for a, b in zip(skeleton.links, links)}
    heavier = {name: m for name, m in more.items() if m > 1e-9}
    return Braced(replace(skeleton, links=tuple(links)), share, heavier)


def outside(skeleton: Skeleton, inside: Surface) -> dict[str, float]:
    """By "link/plate", the volume of each plate that lies outside a surface [m^3]."""
    body = room.inside_of(inside)
    found = {}
    for link, one in plates(skeleton):
        solid = one.body().translate(link.origin.tolist()).scale([room.MM] * 3)
        found[f"{link.name}/{one.name}"] = (solid - body).volume() / room.MM**3
    return found


def plates(skeleton: Skeleton) -> list[tuple[Link, Plate]]:
    """Every plate with its link."""
    return [
        (link, solid)
        for link in skeleton.links
        for solid in link.solids
        if isinstance(solid, Plate)
    ]


def _link_plates(skeleton, link, body, made, gap, clearance, share) -> list[Plate]:
    """The plates of a link, as thick as makes them weigh what its rings do."""
    chosen = rings(link)
    if not chosen:
        return []
    mass = sum(s.mass for ring in chosen for s in ring.solids)
    some = chosen[0].solids[0]
    density = some.mass / some.volume
    slab = float(min(some.size))
    thickness = 0.0
    # The outlines hold for anything thinner than the slab.
    while not 0.97 * slab <= thickness <= slab:
        slab = 1.01 * thickness if thickness else slab
        flats, whole = _outlines(
            skeleton, link, chosen, body, made, slab, gap, clearance
        )
        area = sum(flat.area() for flat in flats) * 1e-6
        thickness = mass / (density * area)
        if thickness > THICKNESS[1]:
            raise InvalidInput(
                f"rings of {link.name}: {1e3 * mass:.0f} g on {1e4 * area:.0f} cm^2 "
                f"of plate are {1e3 * thickness:.2g} mm thick ("
                f"{1e3 * THICKNESS[1]:g} at most); change build.rib or the number of "
                "rings"
            )
        thickness = max(thickness, THICKNESS[0])
    for ring, flat, most in zip(chosen, flats, whole):
        share[f"{link.name}/{ring.name}"] = min(flat.area() / most, 1.0)
    return [
        plate(ring.name, room.contours(flat), thickness, ring.p_BC, ring.R_BC, density)
        for ring, flat in zip(chosen, flats)
    ]


def _outlines(skeleton, link, chosen, body, made, slab, gap, clearance):
    """Of each ring of a link: its plate's section, and the area inside the skin."""
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
