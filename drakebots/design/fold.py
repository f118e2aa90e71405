"""Folding regions: gear-like teeth swept about a limb's axis (paper, Fig. 8).

Rings of edges are laid across the limb, alternately crest and groove, and the
groove rings are pressed towards the axis by the depth: what a cut swept about the
axis leaves. Hollowing follows, so the wall folds like a bellows.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from drakebots.design.distance_grid import DistanceGrid
from drakebots.design.remesh import Ring
from drakebots.design.surface import Surface
from drakebots.errors import InvalidInput


class TooDeep(InvalidInput):
    """Grooves that a limb is too thin for; `places` (n, 3) [m] are where."""

    def __init__(self, message: str, places: np.ndarray):
        super().__init__(message)
        self.places = places


@dataclass(frozen=True)
class Fold:
    """Teeth around a limb.

    Attributes:
        p_W: middle of the region, on the limb's axis [m].
        axis_W: the limb's axis, made a unit vector.
        length: of the region along the axis [m]; a tooth takes length/teeth.
        depth: of the grooves [m].
        teeth: grooves.
        radius: the region ends at this distance from the axis [m], which keeps
            a neighbouring limb out; by default 1.6 times the limb's radius at p_W.

    Raises:
        InvalidInput: for lengths <= 0, no teeth or a zero axis.
    """

    p_W: np.ndarray
    axis_W: np.ndarray
    length: float
    depth: float = 8e-3
    teeth: int = 4
    radius: float | None = None

    def __post_init__(self):
        p, axis = np.asarray(self.p_W, float), np.asarray(self.axis_W, float)
        if p.shape != (3,) or axis.shape != (3,) or not np.isfinite([p, axis]).all():
            raise InvalidInput("fold: p_W and axis_W need three finite numbers each")
        if np.linalg.norm(axis) == 0:
            raise InvalidInput("fold axis: must not be zero")
        radius = 1.0 if self.radius is None else self.radius
        for name, value in (
            ("length", self.length),
            ("depth", self.depth),
            ("radius", radius),
        ):
            if not (np.isfinite(value) and value > 0):
                raise InvalidInput(f"fold {name} {value} m: must be > 0")
        if int(self.teeth) != self.teeth or self.teeth < 1:
            raise InvalidInput(f"fold teeth {self.teeth}: must be a whole number >= 1")
        object.__setattr__(self, "p_W", p)
        object.__setattr__(self, "axis_W", axis / np.linalg.norm(axis))

    def coordinates(self, points: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Along the axis from the middle s (n,), and the offset from it (n, 3) [m]."""
        offset = points - self.p_W
        s = offset @ self.axis_W
        return s, offset - s[:, None] * self.axis_W

    def profile(self, s: np.ndarray) -> np.ndarray:
        """Depth: 0 at crests, `depth` at grooves, straight between [m]."""
        pitch = self.length / self.teeth
        phase = (np.asarray(s) + self.length / 2) / pitch
        wave = 1 - np.abs(1 - 2 * (phase % 1.0))
        return self.depth * np.where((phase >= 0) & (phase <= self.teeth), wave, 0.0)

    def near(self, points: np.ndarray) -> np.ndarray:
        """Whether points (n, 3) lie in the region; the radius must be set."""
        s, offset = self.coordinates(points)
        inside = np.linalg.norm(offset, axis=1) < self.radius
        return inside & (np.abs(s) <= self.length / 2 + 1e-9)

    def fitted(self, grid: DistanceGrid) -> Fold:
        """The same with its radius measured.

        Raises:
            InvalidInput: when the middle is not inside the body.
        """
        depth = float(-grid(self.p_W)[0])
        if depth <= 0:
            raise InvalidInput(
                f"fold at {self.p_W.tolist()} m: lies outside the body; move it onto "
                "the limb's axis"
            )
        if self.radius is not None:
            return self
        return replace(self, radius=1.6 * self.limb_radius(grid))

    def limb_radius(self, grid: DistanceGrid) -> float:
        """Median distance of the skin from p_W across the axis [m]."""
        side = np.cross(self.axis_W, np.eye(3)[np.argmin(np.abs(self.axis_W))])
        side /= np.linalg.norm(side)
        other = np.cross(self.axis_W, side)
        angle = np.arange(24) * (2 * np.pi / 24)
        ways = np.outer(np.cos(angle), side) + np.outer(np.sin(angle), other)
        far = np.linspace(0, 0.3, 601)
        outside = grid((self.p_W + far[:, None, None] * ways).reshape(-1, 3)) > 0
        first = np.argmax(outside.reshape(len(far), -1), axis=0)
        return float(np.median(far[first]))


def fold_rings(folds: tuple[Fold, ...]) -> tuple[Ring, ...]:
    """Crests and grooves of fitted folds as rings of the remesher."""
    return tuple(
        Ring(fold.p_W + s * fold.axis_W, fold.axis_W, fold.radius)
        for fold in folds
        for s in np.linspace(-0.5, 0.5, 2 * fold.teeth + 1) * fold.length
    )


def fold_depths(
    folds: tuple[Fold, ...], grid: DistanceGrid, surface: Surface, wall: np.ndarray
) -> np.ndarray:
    """The vertices (n, 3) pressed in by the folds [m].

    Raises:
        InvalidInput: when a groove and its wall would meet the axis, or no vertex
            lies in a fold.
    """
    x = surface.vertices.copy()
    for number, fold in enumerate(folds, 1):
        s, offset = fold.coordinates(surface.vertices)
        r = np.linalg.norm(offset, axis=1)
        inside = fold.near(surface.vertices)
        if not inside.any():
            raise InvalidInput(f"fold {number}: no skin within its radius; move it")
        # Fades towards the radius, where a neighbouring part may begin.
        fade = np.clip((fold.radius - r) / (0.15 * fold.radius), 0, 1)
        press = np.where(inside, fold.profile(s) * fade, 0.0)
        short = inside & (press > 0) & (r - press < 1.5 * wall)
        if short.any():
            v = int(np.flatnonzero(short)[np.argmin((r - press)[short])])
            raise TooDeep(
                f"fold {number}: the limb's radius is {1e3 * r[v]:.1f} mm at "
                f"{np.round(surface.vertices[v], 3).tolist()} m, too thin for grooves "
                f"of {1e3 * fold.depth:g} mm and a wall of {1e3 * wall[v]:g} mm; "
                "scale the body or take a smaller depth",
                surface.vertices[short],
            )
        x -= (press / np.maximum(r, 1e-12))[:, None] * offset
    return x


def fold_of_triangles(folds: tuple[Fold, ...], surface: Surface) -> np.ndarray:
    """Region of each triangle (m,): 0, or k for the k-th fold."""
    region = np.zeros(len(surface.triangles), np.int64)
    middle = surface.vertices[surface.triangles].mean(axis=1)
    for number, fold in enumerate(folds, 1):
        region[fold.near(middle)] = number
    return region
