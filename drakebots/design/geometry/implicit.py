"""Bodies drawn by formula: round cones, ellipsoids and boxes, smoothly joined.

A part is a function d(x) that is negative inside; the union of parts is the
quadratic smooth minimum taken in order, with the blend k of the part that joins:

    smin(a, b) = min(a, b) - max(k - |a - b|, 0)^2 / (4 k)

and half-spaces cut the union by max. The values are distances near the single
parts only; :class:`~drakebots.design.geometry.distance.DistanceGrid` makes them exact.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np
from numba import njit

from drakebots.core.errors import InvalidInput

# Numba kernels of bodies drawn by formula: parts, their blend, the grid.

CONE, ELLIPSOID, BOX = 0, 1, 2


@njit(cache=True)
def _cone(row, x, y, z):
    # Quilez, "Rounded cone - exact".
    bx, by, bz = row[3] - row[0], row[4] - row[1], row[5] - row[2]
    ra, rb = row[6], row[7]
    px, py, pz = x - row[0], y - row[1], z - row[2]
    l2 = bx * bx + by * by + bz * bz
    rr = ra - rb
    a2 = l2 - rr * rr
    if a2 <= 0:  # One sphere holds the other.
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
def value_at(x, y, z, kinds, rows, blends, cuts):
    """The body's value at one point."""
    value = np.inf
    for n in range(len(kinds)):
        if kinds[n] == CONE:
            d = _cone(rows[n], x, y, z)
        elif kinds[n] == ELLIPSOID:
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
def evaluate(points, kinds, rows, blends, cuts):
    """Values at points (n, 3)."""
    out = np.empty(len(points))
    for n in range(len(points)):
        out[n] = value_at(
            points[n, 0], points[n, 1], points[n, 2], kinds, rows, blends, cuts
        )
    return out


@njit(cache=True)
def evaluate_grid(origin, h, shape, kinds, rows, blends, cuts):
    """Values on a regular grid; blocks far from the surface get one value."""
    out = np.empty(shape)
    size = 6
    half = 0.5 * (size - 1) * h
    far = 2.5 * half * np.sqrt(3.0) + 2 * h
    for i0 in range(0, shape[0], size):
        for j0 in range(0, shape[1], size):
            for k0 in range(0, shape[2], size):
                middle = value_at(
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
                            out[i, j, k] = value_at(
                                origin[0] + i * h,
                                origin[1] + j * h,
                                origin[2] + k * h,
                                kinds, rows, blends, cuts,
                            )  # fmt: skip
    return out


def _vector(name, value):
    value = np.asarray(value, float)
    if value.shape != (3,) or not np.isfinite(value).all():
        raise InvalidInput(f"{name} {value.tolist()}: needs three finite numbers")
    return value


def _positive(name, *values):
    if not all(np.isfinite(v) and v > 0 for v in values):
        raise InvalidInput(f"{name} {[float(v) for v in values]}: must be > 0 m")


@dataclass(frozen=True)
class RoundCone:
    """The hull of two spheres: a limb.

    Attributes:
        p_A, p_B: centres [m].
        r_A, r_B: radii [m].
        blend: k with which it joins the parts before it [m]; the body's if None.
    """

    p_A: np.ndarray
    p_B: np.ndarray
    r_A: float
    r_B: float
    blend: float | None = None

    def __post_init__(self):
        object.__setattr__(self, "p_A", _vector("round cone p_A", self.p_A))
        object.__setattr__(self, "p_B", _vector("round cone p_B", self.p_B))
        _positive("round cone radii", self.r_A, self.r_B)

    def row(self):
        return CONE, np.concatenate([self.p_A, self.p_B, [self.r_A, self.r_B]])

    def bounds(self):
        ends = np.array([self.p_A, self.p_B])
        r = np.array([[self.r_A], [self.r_B]])
        return (ends - r).min(axis=0), (ends + r).max(axis=0)

    def mirrored(self, axis):
        sign = _mirror(axis)
        return replace(self, p_A=sign * self.p_A, p_B=sign * self.p_B)


def capsule(p_A, p_B, radius: float, blend: float | None = None) -> RoundCone:
    """A round cone of equal radii."""
    return RoundCone(p_A, p_B, radius, radius, blend)


@dataclass(frozen=True)
class Ellipsoid:
    """x = p + R diag(radii) u with |u| <= 1.

    Attributes:
        p_W: centre [m].
        radii: three [m].
        R: rotation (3, 3), its columns the axes; the identity by default.
        blend: as of :class:`RoundCone`.
    """

    p_W: np.ndarray
    radii: np.ndarray
    R: np.ndarray = field(default_factory=lambda: np.eye(3))
    blend: float | None = None

    def __post_init__(self):
        object.__setattr__(self, "p_W", _vector("ellipsoid centre", self.p_W))
        object.__setattr__(self, "radii", _vector("ellipsoid radii", self.radii))
        object.__setattr__(self, "R", _rotation("ellipsoid", self.R))
        _positive("ellipsoid radii", *self.radii)

    def row(self):
        return ELLIPSOID, np.concatenate([self.p_W, self.radii, self.R.T.ravel()])

    def bounds(self):
        half = np.sqrt(((self.R * self.radii) ** 2).sum(axis=1))
        return self.p_W - half, self.p_W + half

    def mirrored(self, axis):
        # S R S is again a rotation, and the ellipsoid does not tell S from 1.
        S = np.diag(_mirror(axis))
        return replace(self, p_W=S @ self.p_W, R=S @ self.R @ S)


@dataclass(frozen=True)
class RoundBox:
    """A box whose edges and corners are rounded.

    Attributes:
        p_W: centre [m].
        size: three full lengths, rounding included [m].
        radius: of the edges [m], at most half the least length.
        R: rotation (3, 3); the identity by default.
        blend: as of :class:`RoundCone`.
    """

    p_W: np.ndarray
    size: np.ndarray
    radius: float
    R: np.ndarray = field(default_factory=lambda: np.eye(3))
    blend: float | None = None

    def __post_init__(self):
        object.__setattr__(self, "p_W", _vector("box centre", self.p_W))
        object.__setattr__(self, "size", _vector("box size", self.size))
        object.__setattr__(self, "R", _rotation("box", self.R))
        _positive("box size", *self.size)
        if not 0 <= self.radius <= self.size.min() / 2:
            raise InvalidInput(
                f"box radius {self.radius} m: must lie between 0 and half the least "
                f"length, {self.size.min() / 2} m"
            )

    def row(self):
        half = self.size / 2 - self.radius
        return BOX, np.concatenate([self.p_W, half, self.R.T.ravel(), [self.radius]])

    def bounds(self):
        half = np.abs(self.R) @ self.size / 2
        return self.p_W - half, self.p_W + half

    def mirrored(self, axis):
        S = np.diag(_mirror(axis))
        return replace(self, p_W=S @ self.p_W, R=S @ self.R @ S)


@dataclass(frozen=True)
class HalfSpaceCut:
    """Takes away what lies beyond a plane: the flat sole of a foot.

    Attributes:
        p_W: a point of the plane [m].
        normal_W: away from what stays.
        radius: of the edge the cut leaves [m]; 0 is sharp.
    """

    p_W: np.ndarray
    normal_W: np.ndarray
    radius: float = 0.0

    def __post_init__(self):
        object.__setattr__(self, "p_W", _vector("cut point", self.p_W))
        normal = _vector("cut normal", self.normal_W)
        length = np.linalg.norm(normal)
        if length == 0:
            raise InvalidInput("cut normal: must not be zero")
        object.__setattr__(self, "normal_W", normal / length)
        if not self.radius >= 0:
            raise InvalidInput(f"cut radius {self.radius} m: must be >= 0")


Part = RoundCone | Ellipsoid | RoundBox


@dataclass(frozen=True)
class Implicit:
    """Parts joined by smooth minima, then cut.

    Attributes:
        parts: in the order they are joined.
        cuts: half-spaces taken away from the union.
        blend: k of the parts that name none [m]; 0 joins with an edge.

    Raises:
        InvalidInput: for no parts or a blend < 0.
    """

    parts: tuple[Part, ...]
    cuts: tuple[HalfSpaceCut, ...] = ()
    blend: float = 0.03

    def __post_init__(self):
        object.__setattr__(self, "parts", tuple(self.parts))
        object.__setattr__(self, "cuts", tuple(self.cuts))
        if not self.parts:
            raise InvalidInput("body: needs at least one part")
        for blend in (self.blend, *(p.blend for p in self.parts)):
            if blend is not None and not (np.isfinite(blend) and blend >= 0):
                raise InvalidInput(f"body blend {blend} m: must be >= 0")

    def __call__(self, points: np.ndarray) -> np.ndarray:
        """Values (n,) at points (n, 3) [m]; negative inside."""
        points = np.ascontiguousarray(np.atleast_2d(points), float)
        return evaluate(points, *self.tables())

    def tables(self):
        """The arrays the kernels read."""
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
        """A box that holds the body: least and largest corner [m]."""
        boxes = [part.bounds() for part in self.parts]
        swell = max(
            self.blend if part.blend is None else part.blend for part in self.parts
        )
        low = np.min([b[0] for b in boxes], axis=0) - swell / 2
        high = np.max([b[1] for b in boxes], axis=0) + swell / 2
        return low, high

    def scaled(self, factor: float) -> Implicit:
        """The same body times a factor about the origin."""
        _positive("scale", factor)
        lengths = {"p_A", "p_B", "r_A", "r_B", "p_W", "radii", "size", "radius"}

        def grow(item):
            change = {k: factor * getattr(item, k) for k in lengths if hasattr(item, k)}
            if getattr(item, "blend", None) is not None:
                change["blend"] = factor * item.blend
            return replace(item, **change)

        return Implicit(
            tuple(map(grow, self.parts)),
            tuple(map(grow, self.cuts)),
            factor * self.blend,
        )


def mirrored(parts: Sequence[Part], axis: str = "y") -> tuple[Part, ...]:
    """The parts and their images across the plane axis = 0, side by side."""
    return tuple(p for part in parts for p in (part, part.mirrored(axis)))


def _mirror(axis):
    if axis not in ("x", "y", "z"):
        raise InvalidInput(f"mirror axis {axis!r}: must be x, y or z")
    return np.where(np.arange(3) == "xyz".index(axis), -1.0, 1.0)


def _rotation(name, R):
    R = np.asarray(R, float)
    if R.shape != (3, 3) or not np.allclose(R @ R.T, np.eye(3), atol=1e-9):
        raise InvalidInput(f"{name} rotation: must be an orthonormal (3, 3) matrix")
    return R
