"""Bodies defined by formulas: round cones, ellipsoids and boxes, smoothly joined.

A part is a function d(x) that is negative inside. Parts are joined in order by the
quadratic smooth minimum, with the blend k of the part that is added,

    smin(a, b) = min(a, b) - max(k - |a - b|, 0)^2 / (4 k)

and half-spaces cut the union by the maximum. The values are true distances only near
a single part; :class:`~drakebots.design.geometry.distance.DistanceGrid` makes them
exact everywhere.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import field, replace
from typing import Annotated

import numpy as np

from drakebots.core.checks import (
    Refused,
    array,
    between,
    direction,
    each,
    instance,
    non_negative,
    optional,
    positive,
)
from drakebots.core.fields import check, checked

_AT_ONCE = 8192
"""Number of points, about, whose numbers stay in a processor's cache."""
_BLOCK = 3
"""Number of nodes along each side of a block of a grid."""

_ACROSS = np.array([1.0, -1.0, 1.0])
"""The mirror image across y = 0."""

_BLEND = optional(non_negative("m"))


def _rotation(value):
    R = array((3, 3))(value)
    if not np.allclose(R @ R.T, np.eye(3), atol=1e-9):
        raise Refused("an orthonormal (3, 3) matrix")
    return R


@checked("round cone")
class RoundCone:
    """The convex hull of two spheres, as for a limb."""

    p_A: Annotated[np.ndarray, array((3,), "m")]
    """Centre of the first sphere (3,)."""
    p_B: Annotated[np.ndarray, array((3,), "m")]
    """Centre of the second sphere (3,)."""
    r_A: Annotated[float, positive("m")]
    """Radius of the first sphere."""
    r_B: Annotated[float, positive("m")]
    """Radius of the second sphere."""
    blend: Annotated[float | None, _BLEND] = None
    """Length k of the smooth minimum with the parts before it [m]; None takes the
    body's."""

    def distance(self, points):
        """Signed distance (n,) of points (n, 3): Quilez, "Rounded cone - exact"."""
        p, b, taper = points - self.p_A, self.p_B - self.p_A, self.r_A - self.r_B
        b2 = b @ b
        a2 = b2 - taper**2
        if a2 <= 0:  # One sphere contains the other.
            p, r = (p, self.r_A) if taper >= 0 else (p - b, self.r_B)
            return np.linalg.norm(p, axis=1) - r
        t = p @ b
        s = t - b2
        x2 = np.square(p * b2 - t[:, None] * b).sum(axis=1)
        y2, z2, k = t**2 * b2, s**2 * b2, np.sign(taper) * taper**2 * x2
        past_B = np.copysign(a2 * z2, s) > k
        past_A = np.copysign(a2 * y2, t) < k
        at_A, at_B = np.sqrt(x2 + y2) / b2 - self.r_A, np.sqrt(x2 + z2) / b2 - self.r_B
        beside = (np.sqrt(x2 * a2 / b2) + t * taper) / b2 - self.r_A
        return np.select([past_B, past_A], [at_B, at_A], beside)

    def bounds(self):
        ends = np.array([self.p_A, self.p_B])
        r = np.array([[self.r_A], [self.r_B]])
        return (ends - r).min(axis=0), (ends + r).max(axis=0)

    def mirrored(self):
        return replace(self, p_A=_ACROSS * self.p_A, p_B=_ACROSS * self.p_B)


@checked("ellipsoid")
class Ellipsoid:
    """The points x = p_W + R diag(radii) u with |u| <= 1."""

    p_W: Annotated[np.ndarray, array((3,), "m")]
    """Centre (3,)."""
    radii: Annotated[np.ndarray, array((3,), "m", entry=positive("m"))]
    """Semi-axes (3,)."""
    R: Annotated[np.ndarray, _rotation] = field(default_factory=lambda: np.eye(3))
    """Rotation whose columns are the axes (3, 3)."""
    blend: Annotated[float | None, _BLEND] = None
    """See :class:`RoundCone`."""

    def distance(self, points):
        """About the signed distance (n,) of points (n, 3); exact on the surface."""
        u = (points - self.p_W) @ self.R / self.radii
        k0, k1 = np.linalg.norm(u, axis=1), np.linalg.norm(u / self.radii, axis=1)
        middle = k1 == 0
        value = k0 * (k0 - 1) / np.where(middle, 1.0, k1)
        return np.where(middle, -self.radii.min(), value)

    def bounds(self):
        half = np.sqrt(((self.R * self.radii) ** 2).sum(axis=1))
        return self.p_W - half, self.p_W + half

    def mirrored(self):
        # S R S is a rotation again, and S maps the ellipsoid onto itself.
        S = np.diag(_ACROSS)
        return replace(self, p_W=S @ self.p_W, R=S @ self.R @ S)


@checked("box")
class RoundBox:
    """A box whose edges and corners are rounded."""

    p_W: Annotated[np.ndarray, array((3,), "m")]
    """Centre (3,)."""
    size: Annotated[np.ndarray, array((3,), "m", entry=positive("m"))]
    """Full lengths of the sides, including the rounding (3,)."""
    radius: float
    """Radius of the edges, at most half the shortest side [m]."""
    R: Annotated[np.ndarray, _rotation] = field(default_factory=lambda: np.eye(3))
    """Rotation whose columns are the axes (3, 3)."""
    blend: Annotated[float | None, _BLEND] = None
    """See :class:`RoundCone`."""

    def __post_init__(self):
        check(self, "box", radius=between(0, float(self.size.min()) / 2, "m"))

    def distance(self, points):
        """Signed distance (n,) of points (n, 3)."""
        q = np.abs((points - self.p_W) @ self.R) - (self.size / 2 - self.radius)
        outside = np.linalg.norm(np.maximum(q, 0.0), axis=1)
        return outside + np.minimum(q.max(axis=1), 0.0) - self.radius

    def bounds(self):
        half = np.abs(self.R) @ self.size / 2
        return self.p_W - half, self.p_W + half

    mirrored = Ellipsoid.mirrored


@checked("cut")
class HalfSpaceCut:
    """Cuts off what lies beyond a plane, for example to make a foot's sole flat."""

    p_W: Annotated[np.ndarray, array((3,), "m")]
    """A point of the plane (3,)."""
    normal_W: Annotated[np.ndarray, direction()]
    """Normal of the plane, away from what stays; kept as a unit vector."""
    radius: Annotated[float, non_negative("m")] = 0.0
    """Radius of the edge that the cut leaves; 0 leaves it sharp."""


Part = RoundCone | Ellipsoid | RoundBox


@checked("body")
class Implicit:
    """Parts joined by smooth minima, then cut by half-spaces.

    Raises:
        InvalidInput: for no parts or a blend < 0.
    """

    parts: Annotated[tuple[Part, ...], each(instance(Part), "parts", 1)]
    """The parts, in the order in which they are joined."""
    cuts: Annotated[tuple[HalfSpaceCut, ...], each(instance(HalfSpaceCut), "cuts")] = ()
    """Half-spaces removed from the union."""
    blend: Annotated[float, non_negative("m")] = 0.03
    """Length k of the parts that have none of their own; 0 leaves a sharp edge."""

    def __call__(self, points: np.ndarray) -> np.ndarray:
        """Values (n,) at points (n, 3) [m]; negative inside."""
        points = np.atleast_2d(np.asarray(points, float))
        some = np.array_split(points, 1 + len(points) // _AT_ONCE)
        return np.concatenate([self._values(part) for part in some])

    def _values(self, points: np.ndarray) -> np.ndarray:
        first, *others = self.parts
        value = first.distance(points)
        for part in others:
            k = self.blend if part.blend is None else part.blend
            value = smooth_minimum(value, part.distance(points), k)
        for cut in self.cuts:
            d = (points - cut.p_W) @ cut.normal_W
            value = -smooth_minimum(-value, -d, cut.radius)
        return value

    def on_grid(
        self, origin: np.ndarray, h: float, shape: tuple[int, ...]
    ) -> np.ndarray:
        """Values at the nodes of a grid of spacing h [m] from an origin (3,) [m].

        Blocks of nodes far from the surface get the value of their middle.
        """
        half = 0.5 * (_BLOCK - 1) * h
        blocks = [-(-n // _BLOCK) for n in shape]
        middles = self(origin + half + _BLOCK * h * np.argwhere(np.ones(blocks)))
        values = middles.reshape(blocks)
        for axis in range(3):
            values = values.repeat(_BLOCK, axis=axis)
        values = values[tuple(map(slice, shape))]
        near = np.abs(values) <= 2.5 * half * np.sqrt(3.0) + 2 * h
        values[near] = self(origin + h * np.argwhere(near))
        return values

    def bounds(self) -> tuple[np.ndarray, np.ndarray]:
        """Lowest and highest corner of a box that contains the body (3,) [m]."""
        boxes = [part.bounds() for part in self.parts]
        own = [part.blend for part in self.parts]
        swell = max(self.blend if blend is None else blend for blend in own)
        low = np.min([b[0] for b in boxes], axis=0) - swell / 2
        high = np.max([b[1] for b in boxes], axis=0) + swell / 2
        return low, high


def mirrored(parts: Sequence[Part]) -> tuple[Part, ...]:
    """The parts, each followed by its mirror image across the plane y = 0."""
    return tuple(p for part in parts for p in (part, part.mirrored()))


def smooth_minimum(a, b, k: float):
    """The minimum, smaller by up to k/4 where the two are nearly equal."""
    least = np.minimum(a, b)
    return least - np.maximum(k - np.abs(a - b), 0.0) ** 2 / (4 * k) if k else least
