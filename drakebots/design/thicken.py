"""Moves a surface outward where its skeleton sticks out: smoothly, by the least amount.

What sticks out of a link gets a sleeve, the boxes of the link grown by the skin and
its clearance. Sleeves and body are joined by the smooth minimum of
:mod:`~drakebots.design.geometry.implicit`, so that elsewhere the surface stays as it
is. A skeleton whose limbs are mirror images gets sleeves that are.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations

import numpy as np

from drakebots.design.embed import CLEARANCE, TOLERANCE
from drakebots.design.geometry import DistanceGrid, Implicit, RoundBox
from drakebots.design.geometry.implicit import smooth_minimum
from drakebots.design.skeleton import Build, Link, Skeleton

_BLEND = 0.018
"""Distance over which sleeves and body join [m]."""


@dataclass(frozen=True)
class Thickened:
    """A body around its skeleton.

    Attributes:
        grid: signed distance of the body, exact in its band.
        most: largest distance by which the surface moved outward at each link [m], by
            name.
        share: share of the surface that moved by more than a millimetre.
    """

    grid: DistanceGrid
    most: dict[str, float]
    share: float

    @property
    def note(self) -> str:
        """One line on what moved."""
        parts = ", ".join(f"{k} {1e3 * v:.0f} mm" for k, v in self.most.items())
        return (
            f"thickened where the skeleton needs room ({100 * self.share:.0f} % of the "
            f"surface): {parts}"
        )


def thicken(
    grid: DistanceGrid,
    skeleton: Skeleton,
    build: Build,
    grooves: float = 0.0,
) -> Thickened:
    """Moves a surface outward where links stick out.

    Args:
        grid: signed distance of the surface, the ground at z = 0.
        skeleton: skeleton at rest.
        build: thickness of skin and soles.
        grooves: additional room of forks and motors at joints, for teeth [m].
    """
    values, h = grid.values.copy(), grid.spacing
    points, _ = skeleton.corners()
    low, high = points.min(axis=0) - 0.03, points.max(axis=0) + 0.03
    values, origin = _padded(values, grid.origin, h, low, high)
    before = values.copy()
    nodes = [origin[k] + h * np.arange(values.shape[k]) for k in range(3)]
    most = {}
    for link in skeleton.links:
        # A grid flattens the corners of boxes by about a quarter of its spacing.
        body = _sleeve(link, build, CLEARANCE + 0.25 * h, grooves)
        margin = np.array([[-2.0], [2.0]]) * _BLEND
        ends = np.array(body.bounds()) + margin
        part = tuple(slice(*np.searchsorted(nodes[k], ends[:, k])) for k in range(3))
        points = np.stack(
            np.meshgrid(*[nodes[k][part[k]] for k in range(3)], indexing="ij"), axis=-1
        )
        sleeve = body(points.reshape(-1, 3)).reshape(points.shape[:3])
        old = values[part]
        out = float(-(sleeve[old > 0].min(initial=0.0)))
        # Where the body is wide enough, nothing changes.
        values[part] = smooth_minimum(old, sleeve, _BLEND) if out > 0 else old
        if out > TOLERANCE:
            most[link.name] = out
    values = np.maximum(values, -nodes[2])
    moved = DistanceGrid(values, origin, h, grid.band)
    surface = moved.level_set()
    away = DistanceGrid(before, origin, h, grid.band)(surface.middles)
    share = float(surface.areas[away > 1e-3].sum() / surface.areas.sum())
    exact = DistanceGrid.from_surface(surface, h, 3 * h)
    return Thickened(exact, most, share)


def _sleeve(link: Link, build: Build, clearance: float, grooves: float) -> Implicit:
    """The boxes of a link, grown by the skin and its clearance, smoothly joined."""
    boxes = []
    for solid in link.solids:
        if solid.kind == "rib":
            continue
        grow = build.skin + clearance
        if link.parent is not None and solid.name.startswith("fork"):
            grow += grooves
        p, size = link.origin + solid.p_BG, solid.size
        if link.name.endswith("_foot") and solid.name == "plate":
            # The sole's skin below it, which is flat on the ground.
            grow = build.sole_skin
            size = size + np.array([0.0, 0.0, 2 * grow])
        boxes.append(RoundBox(p, size + 2 * grow, grow, solid.R_BG))
    return Implicit(tuple(boxes), blend=_BLEND)


def joined_feet(grid, skeleton: Skeleton) -> list[tuple[str, str]]:
    """Pairs of feet with nothing but body between them, 1 cm above the ground.

    Args:
        grid: signed distance of the body, of points (n, 3).
        skeleton: skeleton at rest, inside it.
    """
    above = [middle + np.array([0, 0, 0.01]) for middle in skeleton.sole_middles]
    middles = dict(zip([sole.foot for sole in skeleton.soles], above))
    share = np.linspace(0.0, 1.0, 50)[:, None]
    return [
        (a, b)
        for a, b in combinations(middles, 2)
        if (grid(middles[a] + share * (middles[b] - middles[a])) < 0).all()
    ]


def _padded(values, origin, h, low, high):
    """The grid, enlarged to a box; what is added is outside."""
    last = origin + h * (np.array(values.shape) - 1)
    before = np.maximum(np.ceil((origin - low) / h), 0).astype(int)
    after = np.maximum(np.ceil((high - last) / h), 0).astype(int)
    if before.any() or after.any():
        values = np.pad(values, np.stack([before, after], axis=1), mode="edge")
    return values, origin - h * before
