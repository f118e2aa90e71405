"""Where the other links' parts come as they move about one link."""

from __future__ import annotations

import numpy as np
from pydrake.common.eigen_geometry import AngleAxis
from pydrake.math import RotationMatrix

from drakebots.design.skeleton import Link, Skeleton

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
