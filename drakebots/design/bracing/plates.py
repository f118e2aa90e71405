"""Bracing rings trimmed to the skin's inside: flat printed plates.

The paper's bracing units are made "in a similar way as the skin" (section 6.1) and
touch it (Fig. 9). Here each ring of the template becomes a plate at its station,
across its link. Its outline is the section of the skin's inside, less a small
clearance, over the plate's whole thickness; taken out of it are the link's own parts
(which it is printed onto), motors and payload, and what other links sweep, with what
lies behind that. Each link's plates weigh what its rings did, by their thickness.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np

from drakebots.core.errors import InvalidInput
from drakebots.design.bracing import plate_room as room
from drakebots.design.bracing.plate_outlines import outlines, rings
from drakebots.design.geometry import Surface
from drakebots.design.skeleton import Link, Plate, Skeleton, plate

CLEARANCE = 3e-4
"""Between plate and skin at rest [m], less up to three times
`plate_outlines.SMOOTH`."""

LITTLE = 0.8
"""Share of the skin's inside below which a plate is named in the notes."""

THICKNESS = (1e-3, 3e-2)
"""Of a plate that can be made and is still a plate [m]."""


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
        flats, whole = outlines(
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
