"""Terrain as a signed distance: the distance of a foot from the ground.

phi(p) is the distance of a point p_W from the ground's surface, positive outside
the ground; its gradient is the direction of the contact normal. Both are CasADi
expressions; :meth:`Terrain.evaluate` gives numbers. Lengths are in m;
:meth:`Terrain.scaled` gives the same terrain in another unit of length.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Annotated

import casadi as ca
import numpy as np

from drakebots.core.checks import (
    array,
    between,
    check_value,
    finite,
    positive,
)
from drakebots.core.errors import InvalidInput
from drakebots.core.fields import check, checked, declared

Frame = tuple[ca.SX, ca.SX, ca.SX]
"""Unit vectors n, t1, t2 (3,), right-handed: t1 x t2 = n."""


class Terrain(ABC):
    """Base class of all terrains."""

    @abstractmethod
    def distance(self, p: ca.SX) -> ca.SX:
        """phi at p_W (3,), positive outside the ground."""

    def scaled(self, length_unit: float) -> Terrain:
        """The same terrain with lengths in `length_unit` [m]."""
        unit = _unit(length_unit)
        lengths = {
            name: getattr(self, name)
            for name, field in declared(type(self)).items()
            if field.unit == "m"
        }
        given = {name: x / unit for name, x in lengths.items() if x is not None}
        return replace(self, **given)

    def gradient(self, p: ca.SX) -> ca.SX:
        """dphi/dp (3,)."""
        return self._functions[1](p)

    def hessian(self, p: ca.SX) -> ca.SX:
        """d2phi/dp2 (3, 3)."""
        return self._functions[2](p)

    def frame(self, p: ca.SX) -> Frame:
        """The normal and two tangents of the ground nearest to p.

        With n = grad phi / |grad phi| the tangents are those of Duff et al.,
        "Building an orthonormal basis, revisited" (2017): ex and ey where
        n = ez, and continuous wherever n points up.
        """
        n = self.gradient(p)
        return _frame_about(n / ca.norm_2(n))

    def heights(self, x: np.ndarray, y: np.ndarray) -> np.ndarray:
        """z of the ground's surface at x and y, as numbers (all of one shape) [m].

        Raises:
            InvalidInput: for a terrain whose surface may not be a function of x and y.
        """
        raise InvalidInput(f"terrain {type(self).__name__} has no heights")

    def evaluate(self, points: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """phi (n,) and its gradient (n, 3) at points (n, 3), as numbers."""
        points = np.asarray(points, dtype=float).reshape(-1, 3)
        phi, gradient, _ = self._functions
        return (
            np.array(phi(points.T)).reshape(-1),
            np.array(gradient(points.T)).T.reshape(-1, 3),
        )

    @cached_property
    def _functions(self) -> tuple[ca.Function, ca.Function, ca.Function]:
        p = ca.SX.sym("p", 3)
        phi = self.distance(p)
        hessian, gradient = ca.hessian(phi, p)
        return tuple(
            ca.Function(name, [p], [ca.densify(value)])
            for name, value in (("phi", phi), ("slope", gradient), ("bend", hessian))
        )


@checked("terrain")
class Flat(Terrain):
    """The half-space z <= height."""

    height: Annotated[float, finite("m")] = 0.0
    """Height of the ground."""

    def distance(self, p: ca.SX) -> ca.SX:
        return p[2] - self.height

    def frame(self, p: ca.SX) -> Frame:
        """The constants ez, ex, ey."""
        x, y, z = (ca.SX(column) for column in np.eye(3))
        return z, x, y

    def heights(self, x: np.ndarray, y: np.ndarray) -> np.ndarray:
        return np.full(np.shape(x), float(self.height))


@checked("terrain")
class Slope(Terrain):
    """The half-space below the plane z = 0 rotated about the y axis.

    n = (sin angle, 0, cos angle): with a positive angle the ground falls
    towards +x.
    """

    angle: Annotated[float, finite("rad")]
    """Angle about y, between -pi/2 and pi/2."""

    def __post_init__(self):
        if abs(self.angle) >= np.pi / 2:
            raise InvalidInput(
                "terrain angle must be between -pi/2 and pi/2 rad, got "
                f"{self.angle:g}; is it in degrees?"
            )

    def distance(self, p: ca.SX) -> ca.SX:
        return np.sin(self.angle) * p[0] + np.cos(self.angle) * p[2]

    def frame(self, p: ca.SX) -> Frame:
        """Constants; t1 lies in the x-z plane and t2 = ey."""
        s, c = np.sin(self.angle), np.cos(self.angle)
        return tuple(ca.SX(np.array(v)) for v in ((s, 0, c), (c, 0, -s), (0, 1.0, 0)))

    def heights(self, x: np.ndarray, y: np.ndarray) -> np.ndarray:
        return -np.tan(self.angle) * np.asarray(x, float)


@checked("terrain")
class Step(Terrain):
    """A box on the floor z = 0 between two values of x, infinite along y.

    phi is the Euclidean distance outside the ground. Inside it is continuous and
    negative: minus the larger of the depths in the floor and in the box, each on
    its own; that is at most the true depth.

    The gradient jumps at kinks. Outside the ground these are, without `rounding`,
    the bisectors of the two inner corners and the upper edges; with a radius there
    are none. Inside the box there are kinks where the nearest side changes, for any
    radius. On a kink the gradient is that of one side, of length one.
    """

    start: Annotated[float, finite("m")]
    """Coordinate x of the box's near face."""
    end: Annotated[float, finite("m")]
    """Coordinate x of the box's far face."""
    height: Annotated[float, positive("m")]
    """Height of its top."""
    rounding: Annotated[float, finite("m")] = 0.0
    """Radius of the edges and of the fillets at the floor, at most half of the box's
    smaller side."""

    def __post_init__(self):
        _check_ends(self.start, self.end)
        most = min(self.end - self.start, self.height) / 2
        check(self, "terrain", rounding=between(0.0, most, "m"))

    def distance(self, p: ca.SX) -> ca.SX:
        x, z, r = p[0], p[2], self.rounding
        # Past the sides and the top of the box that is smaller by r.
        side = _larger(self.start + r - x, x - self.end + r)
        top = z - self.height + r
        edge = ca.logic_and(side > 0, top > 0)
        box = ca.if_else(edge, _hypot(side, top, edge), _larger(side, top)) - r
        if r == 0:
            return -_larger(-z, -box)
        fillet = ca.logic_and(z < r, box < r)
        round_ = r - _hypot(r - z, r - box, fillet)
        return ca.if_else(fillet, round_, -_larger(-z, -box))

    def frame(self, p: ca.SX) -> Frame:
        """t1 lies in the x-z plane and t2 = ey; on walls t1 is vertical."""
        n = self.gradient(p)
        n = n / ca.norm_2(n)
        return n, ca.vertcat(n[2], 0, -n[0]), ca.SX(np.array([0, 1.0, 0]))

    def heights(self, x: np.ndarray, y: np.ndarray) -> np.ndarray:
        """Heights of the box with sharp edges; its rounding does not count."""
        return np.where((x >= self.start) & (x <= self.end), self.height, 0.0)


@checked("terrain")
class Plateau(Terrain):
    """Ground z = h(x, y) that jumps to a height on a rectangle, with normals ez.

        phi = z - h,    h = height where start <= x <= end and |y| <= width/2, else 0

    This is the step of the MATLAB version of Drake (`RigidBodyStepTerrain`). Unlike
    `Step` it has no wall: a foot beside the rectangle and below its top touches
    nothing, and a foot that crosses the edge is at once above or below the ground. phi
    jumps there, and its derivatives do not show the edge. So a program that lets feet
    cross does not converge; decide on which side they are first
    (`ContactImplicit.levels`).
    """

    start: Annotated[float, finite("m")]
    """Lower limit of the rectangle along x, which belongs to it."""
    end: Annotated[float, finite("m")]
    """Upper limit of the rectangle along x, which belongs to it."""
    height: Annotated[float, positive("m")]
    """Height of the rectangle."""
    width: Annotated[float | None, positive("m")] = None
    """Width along y, from -width/2 to width/2; None for no limits."""

    def __post_init__(self):
        _check_ends(self.start, self.end)

    def distance(self, p: ca.SX) -> ca.SX:
        inside = ca.logic_and(p[0] >= self.start, p[0] <= self.end)
        if self.width is not None:
            inside = ca.logic_and(inside, ca.fabs(p[1]) <= self.width / 2)
        return p[2] - ca.if_else(inside, self.height, 0)

    def frame(self, p: ca.SX) -> Frame:
        """The constants ez, ex, ey."""
        return Flat().frame(p)

    def heights(self, x: np.ndarray, y: np.ndarray) -> np.ndarray:
        inside = (x >= self.start) & (x <= self.end)
        if self.width is not None:
            inside &= np.abs(y) <= self.width / 2
        return np.where(inside, self.height, 0.0)


@dataclass(frozen=True)
class SignedDistance(Terrain):
    """A terrain from a function of the user.

    Attributes:
        function: from p_W (3,) [m] to phi [m], as SX. Its slope on the surface is
            1 where gaps and forces are to be physical, else any positive slope.
    """

    function: Callable[[ca.SX], ca.SX]

    def __post_init__(self):
        p = ca.SX.sym("p", 3)
        try:
            phi = ca.SX(self.function(p))
        except Exception as error:
            raise InvalidInput(f"terrain function fails on SX: {error}") from error
        if phi.shape != (1, 1):
            raise InvalidInput(
                f"terrain function must give one number, gave shape {phi.shape}"
            )
        if not ca.depends_on(phi, p):
            raise InvalidInput("terrain function does not depend on the point")

    def distance(self, p: ca.SX) -> ca.SX:
        return self.function(p)

    def scaled(self, length_unit: float) -> SignedDistance:
        L = _unit(length_unit)
        return SignedDistance(lambda p: self.function(p * L) / L)


@checked("terrain", eq=False)
class HeightField(Terrain):
    """Ground z = h(x, y) through heights on a regular grid, for scans and drawings.

    h is the bicubic spline through them (twice continuously differentiable,
    not-a-knot ends, exact for cubics), extended linearly outside the grid.
    phi is the distance to first order,

        phi = (z - h) / sqrt(1 + |grad h|^2)

    exact for planes and with |grad phi| = 1 on any surface; it has continuous
    first derivatives, and second ones that jump at grid lines off the surface.

    The expression has a term for each grid point: for a program keep grids to
    about fifty lines a side.
    """

    x: Annotated[np.ndarray, array((None,), "m")]
    """Coordinates of the grid lines along x, increasing and evenly spaced."""
    y: Annotated[np.ndarray, array((None,), "m")]
    """Coordinates of the grid lines along y, increasing and evenly spaced."""
    z: Annotated[np.ndarray, array((None, None), "m")]
    """Heights (len(x), len(y))."""

    def __post_init__(self):
        for name in ("x", "y"):
            lines = getattr(self, name)
            if len(lines) < 2:
                raise InvalidInput(f"terrain {name} needs two or more grid lines")
            gaps = np.diff(lines)
            if not (gaps > 0).all() or np.ptp(gaps) > 1e-6 * gaps.mean():
                raise InvalidInput(
                    f"terrain {name} must be increasing and evenly spaced"
                )
        check(self, "terrain", z=array((len(self.x), len(self.y)), "m"))

    @cached_property
    def _coefficients(self) -> np.ndarray:
        across_x = _spline_matrix(len(self.x))
        across_y = _spline_matrix(len(self.y))
        return across_x @ self.z @ across_y.T

    def height(self, p: ca.SX) -> ca.SX:
        """h at the x and y of p."""
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

    def heights(self, x: np.ndarray, y: np.ndarray) -> np.ndarray:
        points = np.stack([x, y, np.zeros_like(x)], axis=-1).reshape(-1, 3)
        return np.array(self._height_function(points.T)).reshape(np.shape(x))

    @cached_property
    def _height_function(self) -> ca.Function:
        p = ca.SX.sym("p", 3)
        return ca.Function("height", [p], [self.height(p)])

    def distance(self, p: ca.SX) -> ca.SX:
        h, hx, hy = self._height_and_slopes(p)
        return (p[2] - h) / ca.sqrt(1 + hx**2 + hy**2)

    def frame(self, p: ca.SX) -> Frame:
        """The frame of the ground vertically below p."""
        _, hx, hy = self._height_and_slopes(p)
        n = ca.vertcat(-hx, -hy, 1)
        return _frame_about(n / ca.norm_2(n))


def _basis(x: ca.SX, lines: np.ndarray) -> tuple[ca.SX, ca.SX]:
    """Cubic B-splines centred on the grid lines and one beyond each end, and
    their slopes, at x; linear outside the grid."""
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
    """The matrix from n heights to the n + 2 coefficients of their spline."""
    A = np.zeros((n + 2, n + 2))
    for row in range(n):
        A[row, row : row + 3] = np.array([1, 4, 1]) / 6
    # Not a knot: the highest differences at either end vanish.
    order = min(n, 4)
    difference = np.diff(np.eye(order + 1), order, axis=0)[0]
    A[n, : order + 1] = A[n + 1, -order - 1 :] = difference
    return np.linalg.solve(A, np.eye(n + 2)[:, :n])


def _frame_about(n: ca.SX) -> Frame:
    """The frame with unit normal n; see :meth:`Terrain.frame`."""
    sign = ca.if_else(n[2] >= 0, 1, -1)
    a = -1 / (sign + n[2])
    b = n[0] * n[1] * a
    t1 = ca.vertcat(1 + sign * n[0] ** 2 * a, sign * b, -sign * n[0])
    return n, t1, ca.vertcat(b, sign + n[1] ** 2 * a, -n[1])


def _larger(a: ca.SX, b: ca.SX) -> ca.SX:
    """The larger one; where they are equal, with the derivative of `b` (ca.fmax has
    the mean of both)."""
    return ca.if_else(a > b, a, b)


def _hypot(a: ca.SX, b: ca.SX, where: ca.SX) -> ca.SX:
    """sqrt(a^2 + b^2) if `where`, with finite derivatives elsewhere too."""
    return ca.sqrt(ca.if_else(where, a**2 + b**2, 1))


def _check_ends(start: float, end: float) -> None:
    if end <= start:
        raise InvalidInput(
            f"terrain end must be beyond start, got {start:g} .. {end:g}"
        )


def _unit(length_unit: float) -> float:
    return float(check_value("length unit", length_unit, positive("m")))
