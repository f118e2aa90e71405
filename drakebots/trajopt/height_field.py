"""Ground through heights on a grid: a terrain for scans and drawings."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import casadi as ca
import numpy as np

from drakebots.core.errors import InvalidInput
from drakebots.trajopt.terrain import Frame, Terrain, checked_unit, frame_about


@dataclass(frozen=True, eq=False)
class HeightField(Terrain):
    """Ground z = h(x, y) through heights on a regular grid.

    h is the bicubic spline through them (twice continuously differentiable,
    not-a-knot ends, exact for cubics), continued straight on outside the grid.
    phi is the distance to first order,

        phi = (z - h) / sqrt(1 + |grad h|^2)

    exact for planes and with |grad phi| = 1 on any surface; it has continuous
    first derivatives, and second ones that jump at grid lines off the surface.

    The expression has a term for each grid point: for a program keep grids to
    some fifty lines a side.

    Attributes:
        x, y: increasing, evenly spaced coordinates of the grid lines [m].
        z: heights (len(x), len(y)) [m].
    """

    x: np.ndarray
    y: np.ndarray
    z: np.ndarray

    def __post_init__(self):
        for name in ("x", "y", "z"):
            object.__setattr__(self, name, _array(getattr(self, name), name))
        for name in ("x", "y"):
            lines = getattr(self, name)
            if lines.ndim != 1 or len(lines) < 2:
                raise InvalidInput(f"terrain {name} needs two or more grid lines")
            gaps = np.diff(lines)
            if not (gaps > 0).all() or np.ptp(gaps) > 1e-6 * gaps.mean():
                raise InvalidInput(
                    f"terrain {name} must be increasing and evenly spaced"
                )
        if self.z.shape != (len(self.x), len(self.y)):
            raise InvalidInput(
                f"terrain z must be of shape {(len(self.x), len(self.y))} for its "
                f"grid, got {self.z.shape}"
            )

    @cached_property
    def _coefficients(self) -> np.ndarray:
        across_x = _spline_matrix(len(self.x))
        across_y = _spline_matrix(len(self.y))
        return across_x @ self.z @ across_y.T

    def height(self, p: ca.SX) -> ca.SX:
        """h below p."""
        return self._height_and_slopes(p)[0]

    def _height_and_slopes(self, p):
        (X, dX), (Y, dY) = (_basis(p[k], g) for k, g in enumerate((self.x, self.y)))
        rows = ca.DM(self._coefficients)
        along = ca.mtimes(rows, Y)
        return (
            ca.dot(X, along),
            ca.dot(dX, along),
            ca.dot(X, ca.mtimes(rows, dY)),
        )

    def distance(self, p: ca.SX) -> ca.SX:
        h, hx, hy = self._height_and_slopes(p)
        return (p[2] - h) / ca.sqrt(1 + hx**2 + hy**2)

    def frame(self, p: ca.SX) -> Frame:
        """Of the ground straight below p."""
        _, hx, hy = self._height_and_slopes(p)
        n = ca.vertcat(-hx, -hy, 1)
        return frame_about(n / ca.norm_2(n))

    def scaled(self, length_unit: float) -> HeightField:
        L = checked_unit(length_unit)
        return HeightField(self.x / L, self.y / L, self.z / L)


def _basis(x: ca.SX, lines: np.ndarray) -> tuple[ca.SX, ca.SX]:
    """Cubic B-splines centred on the grid lines and one beyond each end, and
    their slopes, at x; straight lines outside the grid."""
    step = (lines[-1] - lines[0]) / (len(lines) - 1)
    u = (x - lines[0]) / step
    inside = ca.fmin(ca.fmax(u, 0), len(lines) - 1)
    # (w + 2)^3 - 4 (w + 1)^3 + ..., each from where it is positive on.
    knots = [(-2, 1), (-1, -4), (0, 6), (1, -4)]
    values, slopes = [], []
    for centre in range(-1, len(lines) + 1):
        w = ca.fmin(ca.fmax(inside - centre, -2), 2)
        ramps = [(ca.fmax(w - knot, 0), factor / 6) for knot, factor in knots]
        slope = sum(3 * factor * ramp**2 for ramp, factor in ramps)
        value = sum(factor * ramp**3 for ramp, factor in ramps)
        values.append(value + slope * (u - inside))
        slopes.append(slope / step)
    return ca.vertcat(*values), ca.vertcat(*slopes)


def _spline_matrix(n: int) -> np.ndarray:
    """Takes n heights to the n + 2 coefficients of the spline through them."""
    A = np.zeros((n + 2, n + 2))
    for row in range(n):
        A[row, row : row + 3] = np.array([1, 4, 1]) / 6
    # Not a knot: the highest differences at either end vanish.
    order = min(n, 4)
    difference = np.diff(np.eye(order + 1), order, axis=0)[0]
    A[n, : order + 1] = A[n + 1, -order - 1 :] = difference
    return np.linalg.solve(A, np.eye(n + 2)[:, :n])


def _array(values, name: str) -> np.ndarray:
    try:
        array = np.array(values, dtype=float)
    except (TypeError, ValueError):
        array = np.array([np.nan])
    if not array.size or not np.isfinite(array).all():
        raise InvalidInput(f"terrain {name} must be finite numbers, one or more")
    array.setflags(write=False)
    return array
