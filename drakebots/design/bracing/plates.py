"""Bracing plates: the bracing rings of a template trimmed to the skin's inside.

The paper's bracing units are made "in a similar way as the skin" (section 6.1) and
touch it (Fig. 9). Here each ring becomes a flat printed plate at its station, across
its link. Its outline is the section of the skin's inside over the plate's whole
thickness, less a small clearance. Removed from it are, in this order, the link's own
parts (onto which it is printed), its motors and payload, what other links sweep and
what lies behind that, and the plates that are already there. All plates are as
thick as the rings, `build.rib`; their masses follow.

    braced = with_plates(skeleton, shell.inner)
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from manifold3d import CrossSection, Manifold
from pydrake.common.eigen_geometry import AngleAxis
from pydrake.math import RotationMatrix

from drakebots.core.checks import check_value, non_negative
from drakebots.core.errors import InvalidInput
from drakebots.design.bracing import sections
from drakebots.design.geometry import Surface
from drakebots.design.skeleton import Link, Plate, Skeleton, Solid, axes, plate

SWING = float(np.radians(30.0))
"""Angle from rest of each joint, to both sides, that plates leave free [rad]."""

_CLEARANCE = 3e-4
"""Gap between plate and skin at rest [m]; up to three times _SMOOTH smaller."""

_LITTLE = 0.8
"""Share of the skin's inside below which a plate is named in the notes."""

_FREE = 1e-3
"""Gap to motors and payload of the plate's own link [m]."""

_ARM = 3e-3
"""Smallest width of a part of a plate [m]; narrower ones break."""

_LEAST_AREA = 4e-4
"""Smallest area of a plate [m^2]; a smaller one does not hold the skin."""

_SMOOTH = 5e-5
"""Largest error of an outline from leaving out vertices [m]."""


@dataclass(frozen=True)
class Braced:
    """A skeleton whose bracing rings are plates.

    Attributes:
        skeleton: the skeleton with its plates.
        share: share that each plate fills of the skin's inside across its link, without
            the link's own parts, by "link/ring".
        dropped: rings without room that were left out, as "link/ring".
    """

    skeleton: Skeleton
    share: Mapping[str, float]
    dropped: tuple[str, ...] = ()

    @property
    def notes(self) -> tuple[str, ...]:
        """Lines on plates with a small share, and on rings that were left out."""
        small = [f"{k} {100 * v:.0f} %" for k, v in self.share.items() if v < _LITTLE]
        lines = []
        if small:
            lines.append(
                "bracing plates that fill only a part of the skin's inside, as the "
                f"rest is where other links are or move: {', '.join(small)}"
            )
        if self.dropped:
            lines.append(
                f"bracing rings without room were left out: {', '.join(self.dropped)}"
            )
        return tuple(lines)


def with_plates(
    skeleton: Skeleton,
    inside: Surface,
    *,
    gap: float = 1e-3,
    clearance: float = _CLEARANCE,
    drop: bool = False,
) -> Braced:
    """The skeleton with its bracing rings trimmed to the skin's inside.

    Masses, centres of mass and inertias of the links follow from the plates.

    Args:
        skeleton: skeleton of a template, at rest.
        inside: inner surface of the skin at rest, closed, outward.
        gap: gap between a plate and parts of other links [m].
        clearance: gap between a plate's rim and the skin [m].
        drop: whether rings without room are left out, with a note.

    Raises:
        InvalidInput: for a surface that is not closed, a clearance < 0, or a ring
            without room (named, with its place).
    """
    check_value("plates: gap", gap, non_negative("m"))
    check_value("plates: clearance", clearance, non_negative("m"))
    body = sections.inside_of(inside)
    made: list[tuple[str, Plate]] = []
    share: dict[str, float] = {}
    dropped: list[str] | None = [] if drop else None
    links = []
    for link in skeleton.links:
        new = _link_plates(skeleton, link, body, made, gap, clearance, share, dropped)
        made += [(link.name, one) for one in new]
        solids = [s for s in link.solids if isinstance(s, Plate) or s.kind != "rib"]
        links.append(replace(link, solids=(*solids, *new)))
    skeleton = replace(skeleton, links=tuple(links))
    return Braced(skeleton, share, tuple(dropped or ()))


def plates(skeleton: Skeleton) -> list[tuple[Link, Plate]]:
    """Every plate of a skeleton, with its link."""
    return [
        (link, solid)
        for link in skeleton.links
        for solid in link.solids
        if isinstance(solid, Plate)
    ]


def _link_plates(
    skeleton, link, body, made, gap, clearance, share, dropped
) -> list[Plate]:
    """The plates of a link, as thick as its rings."""
    chosen = rings(link)
    if not chosen:
        return []
    some = chosen[0].solids[0]
    density, thickness = some.mass / some.volume, float(min(some.size))
    chosen, flats, whole = _outlines(
        skeleton, link, chosen, body, made, thickness, gap, clearance, dropped
    )
    for ring, flat, most in zip(chosen, flats, whole):
        share[f"{link.name}/{ring.name}"] = min(flat.area() / most, 1.0)
    return [
        plate(
            ring.name, sections.contours(flat), thickness, ring.p_BC, ring.R_BC, density
        )
        for ring, flat in zip(chosen, flats)
    ]


# The rings of a template: bars in a ring across a link, at one of its stations.

_SADDLE = ("top", "bottom", "left", "right")


@dataclass(frozen=True)
class Ring:
    """A bracing ring of a template: its boxes, and the frame across its link.

    Attributes:
        link: name of the link.
        name: name of the ring within the link.
        p_BC, R_BC: pose in the link of its frame, in its middle, z along the axis.
        solids: its boxes.
    """

    link: str
    name: str
    p_BC: np.ndarray
    R_BC: np.ndarray
    solids: tuple[Solid, ...]


def rings(link: Link) -> tuple[Ring, ...]:
    """The bracing rings of a link, in order; none where they are plates."""
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


# What the other links sweep.


def _swept_boxes(skeleton: Skeleton, link: Link) -> list[list[np.ndarray]]:
    """Boxes of the other links as they move about this one.

    Links across one joint, or across a hip that has no rings of its own, are turned
    by SWING to both sides; all others stay at rest.

    Returns:
        for each box and sequence of poses, its corners in each pose (8, 3) [m].
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
        # Links farther out get their plates later, which fill their own skin.
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
    """Hinges of a link, the other link, and whether that is the parent."""
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


# The outlines.


def _outlines(
    skeleton: Skeleton,
    link: Link,
    chosen: Sequence[Ring],
    body: Manifold,
    made: Sequence[tuple[str, Plate]],
    slab: float,
    gap: float,
    clearance: float,
    dropped: list[str] | None,
) -> tuple[list[Ring], list[CrossSection], list[float]]:
    """The section of each ring's plate, and the area it could have inside the skin.

    Args:
        skeleton: skeleton at rest.
        link: the link.
        chosen: its rings.
        body: solid within the skin's inside, in the robot's frame [mm].
        made: plates that are already there, with the names of their links.
        slab: thickness up to which the outlines are valid [m].
        gap: gap between a plate and parts of other links [m].
        clearance: gap between a plate's rim and the skin [m].
        dropped: gets the rings without room; None makes them an error.

    Returns:
        the rings that have plates, sections in the rings' frames [mm], areas [mm^2].

    Raises:
        InvalidInput: for a ring without room, with its place.
    """
    moving = _swept_boxes(skeleton, link)
    done: list = []
    kept, flats, whole = [], [], []
    for ring in chosen:
        flat = _inside(skeleton, link, ring, body, slab, clearance)
        free, own = _without_own(link, ring, flat, slab)
        whole.append(max((x.area() for x in free.decompose()), default=1.0))
        flat = _without_others(link, ring, free, moving, slab, gap)
        flat = _without_plates(skeleton, link, ring, flat, [*made, *done], slab, gap)
        flat = sections.smoothed(flat, _ARM, _SMOOTH)
        flat = sections.touching(sections.less(flat, [own]), own, _LEAST_AREA)
        if flat.is_empty() and dropped is not None:
            dropped.append(f"{link.name}/{ring.name}")
            whole.pop()
            continue
        if flat.is_empty():
            place = np.round(link.origin + ring.p_BC, 3).tolist()
            raise InvalidInput(
                f"ring {link.name}/{ring.name} at {place} m: no room for a plate of "
                f"{1e4 * _LEAST_AREA:g} cm^2 inside the skin, touching its link; move "
                "the ring's station or make the body wider there"
            )
        found = sections.contours(flat)
        done.append((link.name, plate(ring.name, found, slab, ring.p_BC, ring.R_BC, 1)))
        flats.append(flat)
        kept.append(ring)
    return kept, flats, whole


def _inside(skeleton, link, ring, body, slab, clearance):
    """The skin's inside across a ring's station, in its frame C [mm]."""
    p_WC, R = link.origin + ring.p_BC, ring.R_BC
    flat = sections.grown(
        sections.section(sections.local(body, p_WC, R), slab), -clearance
    )
    if link.parent is not None:
        # A limb's plate does not reach into the torso or another limb.
        for p_W in _axis_points(skeleton, link, p_WC):
            flat = sections.nearer(flat, (p_W - p_WC) @ R)
    elif _of_box(ring):
        for other in rings(link):
            if other.name.endswith("_rib_0"):
                flat = _up_to(flat, ring, other, slab)
    return flat


def _of_box(ring):
    """Whether a ring is the torso's own, not on a strut."""
    return ring.name.startswith("rib_")


def _up_to(flat, ring, other, slab):
    """The points of a plate in front of the first ring of a strut, which takes over."""
    p_C = (other.p_BC - ring.p_BC) @ ring.R_BC
    n_C = ring.R_BC.T @ other.R_BC[:, 2]
    length = np.linalg.norm(n_C[:2])
    if length < 0.3:
        # The strut continues along the torso, and so do its rings.
        return flat
    before = p_C @ n_C - slab * (1 + abs(n_C[2])) / 2 - _ARM
    return sections.below(flat, n_C[:2] / length, before / length)


def _without_own(link, ring, flat, slab):
    """The section without its link's own parts, and that of what it is printed onto."""
    own = []
    for solid in link.solids:
        if isinstance(solid, Plate) or solid.kind == "rib":
            continue
        points = sections.box_points((solid.corners() - ring.p_BC) @ ring.R_BC, slab)
        shell = solid.kind == "shell"
        shape = sections.obstacle(points, 0.0 if shell else _FREE)
        flat = sections.less(flat, [shape])
        own += [shape] if shell else []
    return flat, sections.union(own)


def _without_others(link, ring, flat, moving, slab, gap):
    """The section without what other links sweep and what lies behind that."""
    p_WC = link.origin + ring.p_BC
    for boxes in moving:
        parts = [sections.box_points((box - p_WC) @ ring.R_BC, slab) for box in boxes]
        pairs = itertools.pairwise(parts) if len(parts) > 1 else [(parts[0],)]
        hulls = [
            sections.obstacle(np.concatenate(pair), gap, cast=True) for pair in pairs
        ]
        flat = sections.less(flat, hulls)
    return flat


def _without_plates(skeleton, link, ring, flat, made, slab, gap):
    """The section without other plates; it may touch those of its own link."""
    p_WC = link.origin + ring.p_BC
    for name, other in made:
        p_WG = skeleton.link(name).origin + other.p_BG
        far = np.linalg.norm(other.size) / 2 + slab
        if abs((p_WG - p_WC) @ ring.R_BC[:, 2]) > far:
            continue
        solid = other.body().translate(skeleton.link(name).origin.tolist())
        solid = sections.local(solid.scale([sections.MM] * 3), p_WC, ring.R_BC)
        away = sections.shadow(solid, slab)
        flat = sections.less(
            flat, [away if name == link.name else sections.grown(away, gap)]
        )
    return flat


def _axis_points(skeleton, link, p_WC):
    """The nearest point to C of each other link's axes."""
    for other in skeleton.links:
        if other.name == link.name:
            continue
        for A, B in ((other.p_WA, other.p_WB), *other.struts):
            d = B - A
            yield A + np.clip((p_WC - A) @ d / (d @ d), 0, 1) * d
