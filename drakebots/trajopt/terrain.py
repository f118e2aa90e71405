"""Terrain as a signed distance: how far a foot is from the ground.

phi(p) is the distance of a point p_W from the ground's surface, positive
outside; its gradient is the direction contact pushes in. All are CasADi
expressions, and numbers by :meth:`Terrain.evaluate`. Lengths are in m;
:meth:`Terrain.scaled` gives the same terrain in another unit.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from numbers import Real

import casadi as ca
import numpy as np

from drakebots.core.errors import InvalidInput

Frame = tuple[ca.SX, ca.SX, ca.SX]
"""Unit vectors n, t1, t2 (3,), right-handed: t1 x t2 = n."""


class Terrain(ABC):
    """What all terrains have in common."""

    @abstractmethod
    def distance(self, p: ca.SX) -> ca.SX:
        """phi at p_W (3,), positive outside the ground."""

    @abstractmethod
    def scaled(self, length_unit: float) -> Terrain:
        """The same terrain with lengths in `length_unit` [m]."""

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
        n = ez, and without a jump wherever n points up.
        """
        n = self.gradient(p)
        return frame_about(n / ca.norm_2(n))

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


@dataclass(frozen=True)
class Flat(Terrain):
    """The half-space z <= height.

    Attributes:
        height: of the ground [m].
    """

    height: float = 0.0

    def __post_init__(self):
        _finite(self, "height")

    def distance(self, p: ca.SX) -> ca.SX:
        return p[2] - self.height

    def frame(self, p: ca.SX) -> Frame:
        """ez, ex, ey: constants."""
        x, y, z = (ca.SX(column) for column in np.eye(3))
        return z, x, y

    def scaled(self, length_unit: float) -> Flat:
        return Flat(self.height / checked_unit(length_unit))


@dataclass(frozen=True)
class Slope(Terrain):
    """The plane z = 0 turned about the y axis, and what is below.

    n = (sin angle, 0, cos angle): with a positive angle the ground falls
    towards +x.

    Attributes:
        angle: about y [rad], between -pi/2 and pi/2.
    """

    angle: float

    def __post_init__(self):
        _finite(self, "angle")
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

    def scaled(self, length_unit: float) -> Slope:
        checked_unit(length_unit)
        return self


@dataclass(frozen=True)
class Step(Terrain):
    """A box on the floor z = 0 between two x, endless in y.

    phi is the Euclidean distance outside the ground. Inside it is continuous
    and negative: minus the depth in the floor or in the box, each alone,
    whichever is more; that is at most the true depth.

    Kinks, where the gradient jumps: with `rounding` = 0 outside, on the
    bisectors of the two inner corners; at the upper edges it turns within no
    length. With a radius it is continuous outside. Inside the box there are
    kinks where the nearest side changes, for any radius. On a kink the gradient
    is that of one side, of length one.

    Attributes:
        start, end: of the box along x [m].
        height: of its top [m].
        rounding: radius of the edges and of the fillets at the floor [m].
    """

    start: float
    end: float
    height: float
    rounding: float = 0.0

    def __post_init__(self):
        _finite(self, "start", "end", "height", "rounding")
        if self.end <= self.start:
            raise InvalidInput(
                f"terrain end must be beyond start, got {self.start:g} .. {self.end:g}"
            )
        if self.height <= 0:
            raise InvalidInput(f"terrain height must be > 0, got {self.height:g}")
        most = min(self.end - self.start, self.height) / 2
        if not 0 <= self.rounding <= most:
            raise InvalidInput(
                f"terrain rounding must be between 0 and {most:g}, half the box's "
                f"smaller side, got {self.rounding:g}"
            )

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
        """t1 lies in the x-z plane and t2 = ey; up walls t1 points down."""
        n = self.gradient(p)
        n = n / ca.norm_2(n)
        return n, ca.vertcat(n[2], 0, -n[0]), ca.SX(np.array([0, 1.0, 0]))

    def scaled(self, length_unit: float) -> Step:
        L = checked_unit(length_unit)
        return Step(self.start / L, self.end / L, self.height / L, self.rounding / L)


@dataclass(frozen=True)
class SignedDistance(Terrain):
    """A terrain of your own.

    Attributes:
        function: p_W (3,) [m] to phi [m], as SX; of slope 1 on the surface
            where forces and gaps are to be metres, any positive slope else.
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
        L = checked_unit(length_unit)
        return SignedDistance(lambda p: self.function(p * L) / L)


def frame_about(n: ca.SX) -> Frame:
    """A frame with normal n, of length one; see :meth:`Terrain.frame`."""
    sign = ca.if_else(n[2] >= 0, 1, -1)
    a = -1 / (sign + n[2])
    b = n[0] * n[1] * a
    t1 = ca.vertcat(1 + sign * n[0] ** 2 * a, sign * b, -sign * n[0])
    return n, t1, ca.vertcat(b, sign + n[1] ** 2 * a, -n[1])


def _larger(a: ca.SX, b: ca.SX) -> ca.SX:
    """The larger one; where they are equal with the derivative of `b`, not the
    mean of both as ca.fmax has it."""
    return ca.if_else(a > b, a, b)


def _hypot(a: ca.SX, b: ca.SX, where: ca.SX) -> ca.SX:
    """sqrt(a^2 + b^2) `where` so, with finite derivatives elsewhere too."""
    return ca.sqrt(ca.if_else(where, a**2 + b**2, 1))


def _finite(terrain, *names: str) -> None:
    for name in names:
        value = getattr(terrain, name)
        if not (isinstance(value, Real) and np.isfinite(value)):
            raise InvalidInput(f"terrain {name} must be a finite number, got {value!r}")


def checked_unit(length_unit: float) -> float:
    """A unit of length [m] as a float.

    Raises:
        InvalidInput: when it is no positive number.
    """
    if not (isinstance(length_unit, Real) and 0 < length_unit < np.inf):
        raise InvalidInput(f"length unit must be > 0 m, got {length_unit!r}")
    return float(length_unit)
