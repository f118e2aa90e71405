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
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from manifold3d import CrossSection
from pydrake.common.eigen_geometry import AngleAxis
from pydrake.math import RigidTransform, RotationMatrix

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
            dropped = ", ".join(self.dropped)
            lines.append(f"bracing rings without room were left out: {dropped}")
        return tuple(lines)


def with_plates(
    skeleton: Skeleton, inside: Surface, *, gap: float = 1e-3, drop: bool = False
) -> Braced:
    """The skeleton with its bracing rings trimmed to the skin's inside.

    Masses, centres of mass and inertias of the links follow from the plates.

    Args:
        skeleton: skeleton of a template, at rest.
        inside: inner surface of the skin at rest, closed, outward.
        gap: gap between a plate and parts of other links [m].
        drop: whether rings without room are left out, with a note.

    Raises:
        InvalidInput: for a surface that is not closed, or a ring without room (named,
            with its place).
    """
    cutter = _Cutter(skeleton, inside, gap, drop)

    def solids(link: Link) -> Iterator[Solid | Plate]:
        yield from (s for s in link.solids if isinstance(s, Plate) or s.kind != "rib")
        yield from cutter.plates_of(link)

    skeleton = skeleton.with_solids(solids)
    return Braced(skeleton, cutter.share, tuple(cutter.dropped))


# The rings of a template: bars in a ring across a link, at one of its stations.

_SADDLE = ("top", "bottom", "left", "right")


class Ring(NamedTuple):
    """A bracing ring of a template, around a link.

    Attributes:
        name: name of the ring within the link.
        p_BC, R_BC: pose in the link of its frame, in its middle, z along the axis.
    """

    name: str
    p_BC: np.ndarray
    R_BC: np.ndarray


def rings(link: Link) -> tuple[Ring, ...]:
    """The bracing rings of a link, in order; none where they are plates."""
    found: dict[str, Ring] = {}
    for solid in _ribs(link):
        name, p, R = solid.name, solid.p_BG, solid.R_BG
        stem, _, side = name.rpartition("_")
        if side in _SADDLE:
            # Bars around the torso's box, across its x axis.
            name, p, R = stem, np.array([p[0], 0.0, 0.0]), axes(R[:, 0], R[:, 1])
        found.setdefault(name, Ring(name, p, R))
    return tuple(found.values())


def _ribs(link: Link) -> list[Solid]:
    """The boxes of a link's rings."""
    return [s for s in link.solids if isinstance(s, Solid) and s.kind == "rib"]


# What the other links sweep.


def _swept_boxes(skeleton: Skeleton, link: Link) -> list[list[np.ndarray]]:
    """Boxes of the other links as they move about this one.

    Links across one joint, or across a hip that has no rings of its own, are turned
    by SWING to both sides; all others stay at rest.

    Returns:
        for each box and sequence of poses, its corners in each pose (8, 3) [m].
    """
    turns = {link.name: [[RigidTransform()]]}
    outward = {link.name}
    for hinge, other, back in _neighbours(skeleton, link.name):
        turns[other] = [_turns(hinge, back, 7)]
        outward |= set() if back else {other}
        if skeleton.link(other).stations:
            continue
        for further, last, around in _neighbours(skeleton, other):
            if last not in turns:
                turns[last] = [
                    [first @ then for then in _turns(further, around, 7)]
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
            for sequence in turns.get(other.name, [[RigidTransform()]]):
                rows.append([(X @ box.T).T for X in sequence])
    return rows


def _neighbours(skeleton, name):
    """Hinges of a link, the other link, and whether that is the parent."""
    for hinge in skeleton.hinges:
        if hinge.parent == name:
            yield hinge, hinge.child, False
        elif hinge.child == name:
            yield hinge, hinge.parent, True


def _turns(hinge, back, count):
    """Rotations about a hinge, as poses."""
    low, high = max(hinge.lower, -SWING), min(hinge.upper, SWING)
    turns = []
    for angle in np.linspace(low, high, count):
        R = RotationMatrix(AngleAxis(-angle if back else angle, hinge.axis))
        turns.append(RigidTransform(R, hinge.p_WJ - R @ hinge.p_WJ))
    return turns


# The outlines.


class _Cutter:
    """Cuts plates for one link after another; see :func:`with_plates`.

    Attributes:
        body: solid within the skin's inside, in the robot's frame [mm].
        made: plates that are already there, with the names of their links.
        share, dropped: as of :class:`Braced`.
    """

    def __init__(self, skeleton: Skeleton, inside: Surface, gap: float, drop: bool):
        self.skeleton, self.gap, self.drop = skeleton, gap, drop
        self.body = sections.inside_of(inside)
        self.made: list[tuple[str, Plate]] = []
        self.share: dict[str, float] = {}
        self.dropped: list[str] = []

    def plates_of(self, link: Link) -> list[Plate]:
        """The plates of a link, as thick as its rings.

        Raises:
            InvalidInput: for a ring without room, with its place.
        """
        chosen = rings(link)
        if not chosen:
            return []
        some = _ribs(link)[0]
        density, slab = some.mass / some.volume, float(min(some.size))
        moving, new = _swept_boxes(self.skeleton, link), []
        for ring in chosen:
            name = f"{link.name}/{ring.name}"
            flat, most = self._outline(link, ring, moving, slab)
            if flat.is_empty() and self.drop:
                self.dropped.append(name)
                continue
            if flat.is_empty():
                place = np.round(link.origin + ring.p_BC, 3).tolist()
                raise InvalidInput(
                    f"ring {name} at {place} m: no room for a plate of "
                    f"{1e4 * _LEAST_AREA:g} cm^2 inside the skin, touching its link; "
                    "move the ring's station or make the body wider there"
                )
            outline, pose = sections.contours(flat), (ring.p_BC, ring.R_BC)
            new.append(plate(ring.name, outline, slab, *pose, density))
            self.made.append((link.name, new[-1]))
            self.share[name] = min(flat.area() / most, 1.0)
        return new

    def _outline(self, link, ring, moving, slab) -> tuple[CrossSection, float]:
        """The section of a ring's plate [mm], in the ring's frame.

        Args:
            link: the link.
            ring: its ring.
            moving: what the other links sweep; see :func:`_swept_boxes`.
            slab: thickness up to which the outline is valid [m].

        Returns:
            the section, and the area it could have inside the skin [mm^2].
        """
        flat = self._inside(link, ring, slab)
        free, own = _without_own(link, ring, flat, slab)
        most = max((x.area() for x in free.decompose()), default=1.0)
        flat = _without_others(link, ring, free, moving, slab, self.gap)
        flat = self._without_plates(link, ring, flat, slab)
        flat = sections.smoothed(flat, _ARM, _SMOOTH)
        flat = sections.touching(sections.less(flat, [own]), own, _LEAST_AREA)
        return flat, most

    def _inside(self, link, ring, slab) -> CrossSection:
        """The skin's inside across a ring's station, in its frame C [mm]."""
        p_WC, R = link.origin + ring.p_BC, ring.R_BC
        across = sections.section(sections.local(self.body, p_WC, R), slab)
        flat = sections.grown(across, -_CLEARANCE)
        if link.parent is not None:
            # A limb's plate does not reach into the torso or another limb.
            for p_W in _axis_points(self.skeleton, link, p_WC):
                flat = sections.nearer(flat, (p_W - p_WC) @ R)
        elif ring.name.startswith("rib_"):  # the torso's own, not on a strut
            for other in rings(link):
                if other.name.endswith("_rib_0"):
                    flat = _up_to(flat, ring, other, slab)
        return flat

    def _without_plates(self, link, ring, flat, slab) -> CrossSection:
        """The section without other plates; it may touch those of its own link."""
        p_WC = link.origin + ring.p_BC
        for name, other in self.made:
            origin = self.skeleton.link(name).origin
            far = np.linalg.norm(other.size) / 2 + slab
            if abs((origin + other.p_BG - p_WC) @ ring.R_BC[:, 2]) > far:
                continue
            solid = sections.in_robot(other.body(), origin)
            away = sections.shadow(sections.local(solid, p_WC, ring.R_BC), slab)
            grown = away if name == link.name else sections.grown(away, self.gap)
            flat = sections.less(flat, [grown])
        return flat


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
        outlines = map(np.concatenate, pairs)
        hulls = [sections.obstacle(one, gap, cast=True) for one in outlines]
        flat = sections.less(flat, hulls)
    return flat


def _axis_points(skeleton, link, p_WC):
    """The nearest point to C of each other link's axes."""
    for other in skeleton.links:
        if other.name == link.name:
            continue
        for A, B in ((other.p_WA, other.p_WB), *other.struts):
            d = B - A
            yield A + np.clip((p_WC - A) @ d / (d @ d), 0, 1) * d
