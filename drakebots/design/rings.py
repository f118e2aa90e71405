"""The bracing rings of a template: bars in a ring across a link, at a station of it."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from drakebots.design.skeleton import Link, Solid
from drakebots.design.solids import axes

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
