"""Signed distance on a regular grid: of a body drawn by formula, or of a surface."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.ndimage import distance_transform_edt
from skimage.measure import marching_cubes

from drakebots.design.distance_kernels import (
    distance_to_named,
    inside_by_parity,
    refine_nearest,
    scatter_triangles,
    values_and_gradients,
)
from drakebots.design.implicit import Implicit
from drakebots.design.implicit_kernels import evaluate_grid
from drakebots.design.surface import Surface
from drakebots.errors import InvalidInput

SPACING = 2.5e-3
"""Of the grid by default [m]."""

LARGEST = 60_000_000
"""Nodes; above, the caller is asked for a coarser grid."""


@dataclass(frozen=True)
class DistanceGrid:
    """Signed distance phi(x), negative inside, at x = origin + h (i, j, k).

    Within `band` of the surface the values are exact distances to its triangles;
    farther off they exceed the exact ones by less than a spacing.

    Attributes:
        values: (ni, nj, nk) [m].
        origin: of node (0, 0, 0) [m].
        spacing: h [m].
        band: [m].
    """

    values: np.ndarray
    origin: np.ndarray
    spacing: float
    band: float

    @classmethod
    def from_implicit(
        cls, body: Implicit, spacing: float = SPACING, band: float = 0.015
    ) -> DistanceGrid:
        """Of a body drawn by formula, made a true distance.

        Raises:
            InvalidInput: for a grid that is too large, or a body that the cuts
                leave nothing of.
        """
        low, high = body.bounds()
        origin, shape = _frame(low, high, spacing)
        raw = evaluate_grid(origin, spacing, shape, *body.tables())
        return cls.from_values(raw, origin, spacing, band)

    @classmethod
    def from_values(
        cls, values: np.ndarray, origin: np.ndarray, spacing: float, band: float = 0.015
    ) -> DistanceGrid:
        """Of a function that is negative inside but no distance."""
        surface = _level_set(values, origin, spacing, 0.0)
        return cls._make(surface, values < 0, np.asarray(origin, float), spacing, band)

    @classmethod
    def from_surface(
        cls, surface: Surface, spacing: float = SPACING, band: float = 0.015
    ) -> DistanceGrid:
        """Of a closed surface; the sign is the parity of crossings along z."""
        low, high = surface.vertices.min(axis=0), surface.vertices.max(axis=0)
        origin, shape = _frame(low, high, spacing)
        inside = inside_by_parity(
            surface.vertices, surface.triangles, origin, spacing, shape
        )
        if not inside.any():
            raise InvalidInput(
                f"surface: no point of a grid of {spacing * 1e3:g} mm lies inside; "
                "take a finer grid or check the unit"
            )
        return cls._make(surface, inside, origin, spacing, band)

    @classmethod
    def near_surface(
        cls, surface: Surface, spacing: float, band: float
    ) -> DistanceGrid:
        """As :meth:`from_surface`, but +-band wherever the surface is farther off.

        The faster one where triangles are larger than a few spacings.
        """
        low, high = surface.vertices.min(axis=0), surface.vertices.max(axis=0)
        origin, shape = _frame(low, high, spacing)
        x, f = surface.vertices, surface.triangles
        inside = inside_by_parity(x, f, origin, spacing, shape)
        square, _ = scatter_triangles(
            x, f, origin, spacing, shape, band / spacing, band**2
        )
        values = np.sqrt(np.minimum(square, band**2))
        values[inside] *= -1
        return cls(values, origin, float(spacing), float(band))

    @classmethod
    def _make(cls, surface, inside, origin, h, band):
        x, f = surface.vertices, surface.triangles
        square, near = scatter_triangles(x, f, origin, h, inside.shape, 1.01, np.inf)
        _, nodes = distance_transform_edt(near < 0, return_indices=True)
        far = np.argwhere(near < 0)
        named = near[tuple(nodes[:, near < 0])]
        near[near < 0] = named
        square[tuple(far.T)] = distance_to_named(x, f, origin, h, far, named)
        refine_nearest(x, f, _around(f), origin, h, square, near, (band + 2 * h) ** 2)
        values = np.where(inside, -1.0, 1.0) * np.sqrt(square)
        return cls(values, origin, float(h), float(band))

    def __call__(self, points: np.ndarray) -> np.ndarray:
        """Trilinear values (n,) at points (n, 3) [m]; clamped at the border."""
        return self.value_and_gradient(points)[0]

    def value_and_gradient(self, points: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Values (n,) [m] and gradients (n, 3) at points (n, 3)."""
        points = np.ascontiguousarray(np.atleast_2d(points), float)
        return values_and_gradients(self.values, self.origin, self.spacing, points)

    def level_set(self, level: float = 0.0) -> Surface:
        """The surface phi = level by marching cubes, outward."""
        return _level_set(self.values, self.origin, self.spacing, level)

    @property
    def deepest(self) -> float:
        """Radius of the largest ball inside [m]."""
        return float(-self.values.min())


def _around(triangles):
    """Triangles that share a corner with each (m, up to 15); -1 where fewer."""
    m = len(triangles)
    order = np.argsort(triangles.ravel(), kind="stable") // 3
    start = np.concatenate([[0], np.cumsum(np.bincount(triangles.ravel()))])
    out = np.full((m, 15), -1, np.int64)
    first, many = start[triangles], start[triangles + 1] - start[triangles]
    for corner in range(3):
        for k in range(5):
            has = many[:, corner] > k
            # Spread over the fan, whose order is that of the triangles.
            pick = first[has, corner] + k * many[has, corner] // 5
            out[has, 5 * corner + k] = order[pick]
    return out


def _frame(low, high, h):
    if not (np.isfinite(h) and h > 0):
        raise InvalidInput(f"grid spacing {h} m: must be > 0")
    # Half a spacing off, so that walls drawn on round numbers miss the nodes.
    origin = np.asarray(low, float) - 3.4637 * h
    shape = tuple(int(n) for n in np.ceil((high + 3.5 * h - origin) / h) + 1)
    if np.prod(np.array(shape, float)) > LARGEST:
        raise InvalidInput(
            f"grid of {h * 1e3:g} mm: {shape} are more than {LARGEST:.0e} nodes; "
            "take a larger spacing or check the unit of the surface"
        )
    return origin, shape


def _level_set(values, origin, h, level):
    if not values.min() < level < values.max():
        raise InvalidInput(
            f"body: nothing at the level {level * 1e3:g} mm on a grid of "
            f"{h * 1e3:g} mm; it is too thin there or cut away"
        )
    # A node on the level itself makes triangles without area.
    shifted = values - level
    tiny = 1e-4 * h
    shifted = np.where(
        np.abs(shifted) < tiny, np.where(shifted < 0, -tiny, tiny), shifted
    )
    x, f, _, _ = marching_cubes(shifted, 0.0, allow_degenerate=False)
    return Surface(x.astype(float) * h + origin, f.astype(np.int64))
