"""Stance of an animal in a surface: its up and forward axes, and its four legs.

The surface becomes voxels. In each horizontal layer the sections of the legs are
islands; the lowest layer with two islands on each side of the plane of symmetry
starts four lines of centres, the limbs' skeletal lines (paper, Fig. 5), which are
followed upward until two legs become one island. Tails, trunks and chins that reach
the ground lie on the plane of symmetry, ears and horns lie higher.

    animal = stand(read_surface("dog.obj"))
    animal.legs["FL"].line
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np
from scipy.ndimage import label

from drakebots.core.errors import NoSolution
from drakebots.design.geometry import DistanceGrid, Surface, turn_of

_CELLS = 150
"""Number of voxels along the surface's longest side."""

_SIDE = 0.12
"""Least distance of a leg from the plane of symmetry, over the half width."""

_APART = 0.12
"""Least distance of front and hind legs, over the length."""

_HIGHEST = 0.6
"""Height up to which legs are looked for, over the surface's."""

_TIP = 0.6
"""Start of the end of a head or a tail, as a share of the way from feet to tip."""

_UPS = ("z", "y", "-z", "-y", "x", "-x")
"""Axes that may point up; of equally good ones, the first is taken."""

_LIFT = 2.0
"""Cost of feet that hang in the air, by their height over the surface's: as much
as this share of the surface that is not symmetric."""

_OPPOSITE = {"FL": "RR", "FR": "RL", "RL": "FR", "RR": "FL"}
"""Names of the legs once forward is the other way."""


def interpolated(s: np.ndarray, at: np.ndarray, rows: np.ndarray) -> np.ndarray:
    """Rows (n, k) that are given at increasing places (n,), at other places (m, k)."""
    return np.stack([np.interp(s, at, column) for column in rows.T], axis=-1)


@dataclass(frozen=True)
class Leg:
    """A leg of a surface, from the ground up to where it meets another.

    Attributes:
        line: centres of its sections, upward (n, 3) [m].
        across: whether each section reaches the plane of symmetry, as one does that a
            belly has joined (n,).
        sole: lowest and highest x and y of what is on the ground (2, 2) [m].
    """

    line: np.ndarray
    across: np.ndarray
    sole: np.ndarray

    @property
    def top(self) -> float:
        """Height at which it meets another leg [m]."""
        return float(self.line[-1, 2])

    def at(self, z: float) -> np.ndarray:
        """The centre at a height, the end's beyond the ends (3,) [m]."""
        x, y, _ = interpolated(z, self.line[:, 2], self.line)
        return np.array([x, y, z])

    def moved(self, by: np.ndarray) -> Leg:
        """The leg moved by a vector (3,) [m]."""
        return replace(self, line=self.line + by, sole=self.sole + by[:2])


@dataclass(frozen=True)
class Animal:
    """An animal's surface, standing: x forward, z up, y = 0 its plane of symmetry.

    Attributes:
        surface: the surface, lowest at z = 0, the middle of its feet at x = 0.
        legs: its legs, FL, FR, RL and RR.
        notes: axes of the file that point forward and up, where they were found.
    """

    surface: Surface
    legs: Mapping[str, Leg]
    notes: tuple[str, ...] = ()

    @property
    def size(self) -> np.ndarray:
        """Length, width, height of the surface (3,) [m]."""
        return np.ptp(self.surface.vertices, axis=0)


def stand(
    surface: Surface, forward: str | None = None, up: str | None = None
) -> Animal:
    """Finds an animal's axes and legs.

    Args:
        surface: closed surface.
        forward, up: axes of the surface that point forward and up, such as "x" or
            "-y"; None to find them.

    Raises:
        NoSolution: when no axis gives four legs; says what was found instead.
        InvalidInput: for axes that are not perpendicular.
    """
    untouched = Cells.of(surface)
    best, standing = (-1, ""), []
    for z in _UPS if up is None else (up,):
        for x in "xyz" if forward is None else (forward,):
            if (forward is None or up is None) and x[-1:] == z[-1:]:
                continue
            cells = untouched.turned(x, z)
            feet, found = _feet(cells)
            best = max(best, (found, f"forward {x}, up {z}"))
            if feet is None:
                continue
            legs = _followed(cells, feet)
            # Islands that are one farther down are no feet.
            if len({tuple(leg.line[0]) for leg in legs.values()}) == 4:
                score = cells.symmetry() - _LIFT * cells.lift(legs)
                standing.append((score, x, z, cells, legs))
    if standing:
        # Bent hind legs look like four to one who takes forward for up.
        _, *found = max(standing, key=lambda row: row[0])
        return _placed(surface, *found, forward, up)
    count, axes = best
    raise NoSolution(
        f"surface: no four legs were found (at most {count} separate sections beside "
        f"the plane of symmetry, with {axes}); give the axes by forward and up, and a "
        "surface that stands on four legs with its feet apart"
    )


def _placed(surface, forward, up, cells, legs, asked_forward, asked_up) -> Animal:
    if asked_forward is None and _points_back(cells, legs):
        forward = f"-{forward}"
        legs = {
            _OPPOSITE[name]: replace(
                leg, line=leg.line * [-1, -1, 1], sole=-leg.sole[::-1]
            )
            for name, leg in legs.items()
        }
    x = surface.turned(forward, up).vertices
    feet = np.mean([leg.sole.mean(axis=0) for leg in legs.values()], axis=0)
    middle = np.array([*feet, x[:, 2].min()])
    legs = {name: leg.moved(-middle) for name, leg in legs.items()}
    notes = []
    if (asked_forward or "x", asked_up or "z") != (forward, up):
        notes.append(f"the file's {forward} points forward and its {up} up, as found")
    return Animal(Surface(x - middle, surface.triangles), legs, tuple(notes))


def _points_back(cells, legs) -> bool:
    """Whether toes and both ends of the body say that forward is -x.

    Toes lie in front of the leg above them; a head is carried higher than a tail, is
    thicker near its end, and there is more of it. None holds for every animal: the
    weights let each be outvoted, and what was found is said in the notes.
    """
    feet = np.array([leg.line[0, 0] for leg in legs.values()])
    toes = [leg.sole[:, 0].mean() - leg.at(0.35 * leg.top)[0] for leg in legs.values()]
    x = cells.origin[0] + cells.h * np.arange(cells.inside.shape[0])
    area = cells.inside.sum(axis=(1, 2))
    z = np.arange(cells.inside.shape[2])
    top = np.where(cells.inside, z, 0).max(axis=(1, 2)) / len(z)
    x, area, top = x[area > 0], area[area > 0], top[area > 0]
    front, rear = x > feet.max(), x < feet.min()
    if not front.any() or not rear.any():
        return not front.any() and bool(rear.any())
    tips = (
        area[x > feet.max() + _TIP * (x[-1] - feet.max())].mean(),
        area[x < feet.min() + _TIP * (x[0] - feet.min())].mean(),
    )
    much = area[front].sum(), area[rear].sum()
    score = 2 * (np.mean(toes) / np.ptp(feet) + top[front].mean() - top[rear].mean())
    score += 0.5 * (tips[0] - tips[1]) / sum(tips)
    score += 0.3 * (much[0] - much[1]) / sum(much)
    return bool(score < 0)


# Voxels, their islands, and the lines of the legs.


@dataclass(frozen=True)
class Cells:
    """Voxels of a surface.

    Attributes:
        inside: whether each node is inside (nx, ny, nz).
        origin: position of the first node (3,) [m].
        h: distance of nodes [m].
    """

    inside: np.ndarray
    origin: np.ndarray
    h: float

    @classmethod
    def of(cls, surface: Surface) -> Cells:
        h = float(np.ptp(surface.vertices, axis=0).max()) / _CELLS
        return cls(*DistanceGrid.cells(surface, h), h)

    def turned(self, forward: str, up: str) -> Cells:
        """As :meth:`Surface.turned`."""
        R = turn_of(forward, up)
        axes, signs = np.abs(R).argmax(axis=1), R.sum(axis=1)
        last = self.origin + self.h * (np.array(self.inside.shape) - 1)
        flipped = [k for k in range(3) if signs[k] < 0]
        return Cells(
            np.flip(self.inside.transpose(axes), flipped),
            R @ np.where(R.sum(axis=0) < 0, last, self.origin),
            self.h,
        )

    def lift(self, legs: Mapping[str, Leg]) -> float:
        """Height of the highest foot above the lowest node, over the whole height."""
        z = np.flatnonzero(self.inside.any(axis=(0, 1)))
        highest = max(leg.line[0, 2] for leg in legs.values())
        return ((highest - self.origin[2]) / self.h - z[0]) / np.ptp(z)

    @property
    def middle(self) -> float:
        """Mean y of what is inside, in nodes."""
        count = self.inside.sum(axis=(0, 2))
        return float(count @ np.arange(len(count)) / max(count.sum(), 1))

    def symmetry(self) -> float:
        """Share of the nodes whose image across the middle is inside, too."""
        nodes = np.argwhere(self.inside)
        image = np.rint(2 * self.middle - nodes[:, 1]).astype(int)
        ok = (image >= 0) & (image < self.inside.shape[1])
        hit = self.inside[nodes[ok, 0], image[ok], nodes[ok, 2]]
        return float(hit.sum() / max(len(nodes), 1))


def _feet(cells: Cells):
    """The lowest layer with two islands on each side, and the masks of the four.

    Returns:
        (layer, masks by name), or None; and the largest number of islands seen.
    """
    inside = cells.inside
    half = np.ptp(np.flatnonzero(inside.any(axis=(0, 2)))) / 2
    long = np.ptp(np.flatnonzero(inside.any(axis=(1, 2))))
    layers = np.flatnonzero(inside.any(axis=(0, 1)))
    most = 0
    for k in layers[1 : int(_HIGHEST * len(layers))]:
        islands, count = label(inside[:, :, k])
        if count < 4:
            most = max(most, count)
            continue
        area = np.bincount(islands.ravel())[1:]
        nodes = [np.argwhere(islands == i + 1).mean(axis=0) for i in range(count)]
        sides = {}
        for side, sign in (("L", 1), ("R", -1)):
            beside = [
                i
                for i in range(count)
                if sign * (nodes[i][1] - cells.middle) > _SIDE * half
                and area[i] >= max(3, 0.15 * area.max())
            ]
            sides[side] = sorted(beside, key=lambda i: nodes[i][0])
        most = max(most, sum(map(len, sides.values())))
        if any(len(s) != 2 for s in sides.values()):
            continue
        gaps = [nodes[s[1]][0] - nodes[s[0]][0] for s in sides.values()]
        if min(gaps) < _APART * long:
            continue
        masks = {
            end + side: islands == sides[side][i] + 1
            for i, end in enumerate("RF")
            for side in sides
        }
        return (int(k), masks), 4
    return None, most


def _followed(cells: Cells, feet) -> dict[str, Leg]:
    """The legs' lines, upward until two are one island, and their soles."""
    start, masks = feet
    layers = {name: [(start, mask)] for name, mask in masks.items()}
    open_legs = dict(masks)
    for k in range(start + 1, cells.inside.shape[2]):
        islands, _ = label(cells.inside[:, :, k])
        now = {name: _overlap(islands, mask) for name, mask in open_legs.items()}
        ids = list(now.values())
        ended = {name[0] for name, i in now.items() if i == 0 or ids.count(i) > 1}
        for name, i in now.items():
            if name[0] in ended:  # Both legs of a pair end where one does.
                open_legs.pop(name)
                continue
            open_legs[name] = islands == i
            layers[name].append((k, open_legs[name]))
        if not open_legs:
            break
    for name, below in masks.items():
        for k in range(start - 1, -1, -1):
            below = _touching(label(cells.inside[:, :, k])[0], below)
            if not below.any():
                break
            layers[name].insert(0, (k, below))
    return {name: _leg(cells, rows) for name, rows in layers.items()}


def _overlap(islands, mask) -> int:
    """The island that overlaps most with a mask; 0 for none."""
    count = np.bincount(islands[mask])
    count[0] = 0
    return int(count.argmax()) if count.max(initial=0) else 0


def _touching(islands, mask):
    """All islands that overlap with a mask: toes."""
    ids = np.unique(islands[mask])
    return np.isin(islands, ids[ids > 0])


def _leg(cells: Cells, rows) -> Leg:
    line, across = [], []
    for k, mask in rows:
        nodes = np.argwhere(mask)
        centre = nodes.mean(axis=0)
        across.append(nodes[:, 1].min() <= cells.middle <= nodes[:, 1].max())
        line.append(cells.origin + cells.h * np.array([*centre, k]))
    foot = np.any([mask for k, mask in rows[: max(3, len(rows) // 8)]], axis=0)
    nodes = cells.origin[:2] + cells.h * np.argwhere(foot)
    sole = np.array([nodes.min(axis=0), nodes.max(axis=0)])
    return Leg(np.array(line), np.array(across), sole)
