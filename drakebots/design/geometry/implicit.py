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
    each,
    instance,
    non_negative,
    optional,
    positive,
)
from drakebots.core.errors import InvalidInput
from drakebots.core.fields import check, checked
from drakebots.core.kernels import njit

_CONE, _ELLIPSOID, _BOX = 0, 1, 2
"""The kinds of parts, as the kernels number them."""

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

    def row(self):
        return _CONE, np.concatenate([self.p_A, self.p_B, [self.r_A, self.r_B]])

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

    def row(self):
        return _ELLIPSOID, np.concatenate([self.p_W, self.radii, self.R.T.ravel()])

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

    def row(self):
        half = self.size / 2 - self.radius
        return _BOX, np.concatenate([self.p_W, half, self.R.T.ravel(), [self.radius]])

    def bounds(self):
        half = np.abs(self.R) @ self.size / 2
        return self.p_W - half, self.p_W + half

    mirrored = Ellipsoid.mirrored


@checked("cut")
class HalfSpaceCut:
    """Cuts off what lies beyond a plane, for example to make a foot's sole flat."""

    p_W: Annotated[np.ndarray, array((3,), "m")]
    """A point of the plane (3,)."""
    normal_W: Annotated[np.ndarray, array((3,))]
    """Normal of the plane, away from what stays; kept as a unit vector."""
    radius: Annotated[float, non_negative("m")] = 0.0
    """Radius of the edge that the cut leaves; 0 leaves it sharp."""

    def __post_init__(self):
        length = np.linalg.norm(self.normal_W)
        if length == 0:
            raise InvalidInput("cut: normal_W must not be zero")
        object.__setattr__(self, "normal_W", self.normal_W / length)


Part = RoundCone | Ellipsoid | RoundBox


@checked("body")
class Implicit:
    """Parts joined by smooth minima, then cut by half-spaces.

    Raises:
        InvalidInput: for no parts or a blend < 0.
    """

    parts: Annotated[tuple[Part, ...], each(instance(Part), "parts")]
    """The parts, in the order in which they are joined."""
    cuts: Annotated[tuple[HalfSpaceCut, ...], each(instance(HalfSpaceCut), "cuts")] = ()
    """Half-spaces removed from the union."""
    blend: Annotated[float, non_negative("m")] = 0.03
    """Length k of the parts that have none of their own; 0 leaves a sharp edge."""

    def __post_init__(self):
        if not self.parts:
            raise InvalidInput("body: needs at least one part")

    def __call__(self, points: np.ndarray) -> np.ndarray:
        """Values (n,) at points (n, 3) [m]; negative inside."""
        points = np.ascontiguousarray(np.atleast_2d(points), float)
        return _evaluate(points, *self.tables())

    def tables(self):
        """The arrays that the kernels read: kinds, numbers, blends of parts; cuts."""
        kinds = np.array([part.row()[0] for part in self.parts])
        rows = np.zeros((len(self.parts), 16))
        for row, part in zip(rows, self.parts):
            numbers = part.row()[1]
            row[: len(numbers)] = numbers
        blends = np.array(
            [self.blend if p.blend is None else p.blend for p in self.parts], float
        )
        cuts = np.array(
            [[*c.normal_W, c.normal_W @ c.p_W, c.radius] for c in self.cuts], float
        ).reshape(-1, 5)
        return kinds, rows, blends, cuts

    def bounds(self) -> tuple[np.ndarray, np.ndarray]:
        """Lowest and highest corner of a box that contains the body (3,) [m]."""
        boxes = [part.bounds() for part in self.parts]
        swell = max(
            self.blend if part.blend is None else part.blend for part in self.parts
        )
        low = np.min([b[0] for b in boxes], axis=0) - swell / 2
        high = np.max([b[1] for b in boxes], axis=0) + swell / 2
        return low, high


def mirrored(parts: Sequence[Part]) -> tuple[Part, ...]:
    """The parts, each followed by its mirror image across the plane y = 0."""
    return tuple(p for part in parts for p in (part, part.mirrored()))


# Kernels: the value of each part, their blend, the values on a grid.


@njit(cache=True)
def _cone(row, x, y, z):
    """Signed distance of a point from a rounded cone: ends, then the two radii."""
    # Quilez, "Rounded cone - exact".
    bx, by, bz = row[3] - row[0], row[4] - row[1], row[5] - row[2]
    ra, rb = row[6], row[7]
    px, py, pz = x - row[0], y - row[1], z - row[2]
    l2 = bx * bx + by * by + bz * bz
    rr = ra - rb
    a2 = l2 - rr * rr
    if a2 <= 0:  # One sphere contains the other.
        if rr >= 0:
            return np.sqrt(px * px + py * py + pz * pz) - ra
        qx, qy, qz = px - bx, py - by, pz - bz
        return np.sqrt(qx * qx + qy * qy + qz * qz) - rb
    il2 = 1 / l2
    t = px * bx + py * by + pz * bz
    s = t - l2
    ux, uy, uz = px * l2 - bx * t, py * l2 - by * t, pz * l2 - bz * t
    x2 = ux * ux + uy * uy + uz * uz
    y2, z2 = t * t * l2, s * s * l2
    k = (1.0 if rr > 0 else (-1.0 if rr < 0 else 0.0)) * rr * rr * x2
    if (1.0 if s > 0 else -1.0) * a2 * z2 > k:
        return np.sqrt(x2 + z2) * il2 - rb
    if (1.0 if t > 0 else -1.0) * a2 * y2 < k:
        return np.sqrt(x2 + y2) * il2 - ra
    return (np.sqrt(x2 * a2 * il2) + t * rr) * il2 - ra


@njit(cache=True)
def _local(row, x, y, z, k):
    px, py, pz = x - row[0], y - row[1], z - row[2]
    i = 6 + 3 * k
    return row[i] * px + row[i + 1] * py + row[i + 2] * pz


@njit(cache=True)
def _ellipsoid(row, x, y, z):
    k0, k1 = 0.0, 0.0
    for k in range(3):
        u = _local(row, x, y, z, k) / row[3 + k]
        k0 += u * u
        k1 += (u / row[3 + k]) ** 2
    k0, k1 = np.sqrt(k0), np.sqrt(k1)
    if k1 == 0:
        return -min(row[3], row[4], row[5])
    return k0 * (k0 - 1) / k1


@njit(cache=True)
def _box(row, x, y, z):
    outside, most = 0.0, -np.inf
    for k in range(3):
        q = abs(_local(row, x, y, z, k)) - row[3 + k]
        outside += max(q, 0.0) ** 2
        most = max(most, q)
    return np.sqrt(outside) + min(most, 0.0) - row[15]


@njit(cache=True)
def _value_at(x, y, z, kinds, rows, blends, cuts):
    """The body's value at one point."""
    value = np.inf
    for n in range(len(kinds)):
        if kinds[n] == _CONE:
            d = _cone(rows[n], x, y, z)
        elif kinds[n] == _ELLIPSOID:
            d = _ellipsoid(rows[n], x, y, z)
        else:
            d = _box(rows[n], x, y, z)
        k = blends[n]
        if k > 0 and n > 0:
            h = max(k - abs(value - d), 0.0)
            value = min(value, d) - h * h / (4 * k)
        else:
            value = min(value, d)
    for n in range(len(cuts)):
        c = cuts[n]
        d = c[0] * x + c[1] * y + c[2] * z - c[3]
        if c[4] > 0:
            h = max(c[4] - abs(value - d), 0.0)
            value = max(value, d) + h * h / (4 * c[4])
        else:
            value = max(value, d)
    return value


@njit(cache=True)
def _evaluate(points, kinds, rows, blends, cuts):
    """Values at points (n, 3)."""
    out = np.empty(len(points))
    for n in range(len(points)):
        out[n] = _value_at(
            points[n, 0], points[n, 1], points[n, 2], kinds, rows, blends, cuts
        )
    return out


@njit(cache=True)
def evaluate_grid(origin, h, shape, kinds, rows, blends, cuts):
    """Values on a regular grid; blocks far from the surface get a single value."""
    out = np.empty(shape)
    size = 6
    half = 0.5 * (size - 1) * h
    far = 2.5 * half * np.sqrt(3.0) + 2 * h
    for i0 in range(0, shape[0], size):
        for j0 in range(0, shape[1], size):
            for k0 in range(0, shape[2], size):
                middle = _value_at(
                    origin[0] + i0 * h + half,
                    origin[1] + j0 * h + half,
                    origin[2] + k0 * h + half,
                    kinds, rows, blends, cuts,
                )  # fmt: skip
                whole = abs(middle) > far
                for i in range(i0, min(i0 + size, shape[0])):
                    for j in range(j0, min(j0 + size, shape[1])):
                        for k in range(k0, min(k0 + size, shape[2])):
                            if whole:
                                out[i, j, k] = middle
                                continue
                            out[i, j, k] = _value_at(
                                origin[0] + i * h,
                                origin[1] + j * h,
                                origin[2] + k * h,
                                kinds, rows, blends, cuts,
                            )  # fmt: skip
    return out
