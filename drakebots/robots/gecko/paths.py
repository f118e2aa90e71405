"""Paths that end in a given orientation.

A Cartesian cubic polynomial joins two poses, s in 0..1 (Siciliano et al.,
Robotics, 2010, section 11.5.3: the unicycle's flat outputs):

    x(s) = s^3 x_f - (s - 1)^3 x_i + a_x s^2 (s - 1) + b_x s (s - 1)^2
    a_x = k_f cos th_f - 3 x_f,   b_x = k_i cos th_i + 3 x_i

(y with sin); k_i, k_f > 0 [m] are the speeds at the ends. Longer ones make wider
turns and longer ways. path_generator.py walks such a path.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from drakebots.errors import InvalidInput
from drakebots.robots.gecko.distance import check_heading, check_point
from drakebots.robots.gecko.polynomial import MotionPolynomial

_SAMPLES = 201
# Speeds at the ends that are tried: from a share of the poses' distance to a
# multiple of it or of the robot's turning circle, and how many.
_SPEEDS = (0.3, 8.0, 34)


@dataclass(frozen=True)
class CartesianCubic:
    """A cubic path between two poses.

    Attributes:
        start, end: positions (2,) [m].
        start_heading, end_heading: directions of the path there [rad].
        start_speed, end_speed: k_i, k_f > 0 [m].

    Raises:
        InvalidInput: for values that are not finite, speeds <= 0, or poses in
            the same place.
    """

    start: np.ndarray
    start_heading: float
    end: np.ndarray
    end_heading: float
    start_speed: float
    end_speed: float

    def __post_init__(self):
        for name in ("start", "end"):
            object.__setattr__(self, name, check_point(getattr(self, name), name))
        for name in ("start_heading", "end_heading"):
            check_heading(getattr(self, name), name)
        for name in ("start_speed", "end_speed"):
            speed = getattr(self, name)
            if not (np.isfinite(speed) and speed > 0):
                raise InvalidInput(f"path: {name} must be > 0 m, got {speed}")
        if np.array_equal(self.start, self.end):
            raise InvalidInput("path: start and end are the same place; part them")

    def point(self, s) -> np.ndarray:
        """(..., 2) [m] at s in 0..1."""
        return self._derivative(s, 0)

    def heading(self, s) -> np.ndarray:
        """Direction of the path (...) [rad], within -pi..pi."""
        d = self._derivative(s, 1)
        return np.arctan2(d[..., 1], d[..., 0])

    def curvature(self, s) -> np.ndarray:
        """(x' y'' - y' x'') / |(x', y')|^3 (...) [1/m]; positive turns left."""
        u, v = self._derivative(s, 1), self._derivative(s, 2)
        cross = u[..., 0] * v[..., 1] - u[..., 1] * v[..., 0]
        return cross / np.maximum((u**2).sum(axis=-1), 1e-18) ** 1.5

    @property
    def length(self) -> float:
        """[m]"""
        track = np.diff(self.point(np.linspace(0, 1, _SAMPLES)), axis=0)
        return float(np.linalg.norm(track, axis=1).sum())

    def sample(self, spacing: float) -> tuple[np.ndarray, np.ndarray]:
        """Points (n, 2) [m] and headings (n,) [rad], evenly along the path.

        Both ends are among them; the spacing is at most the one asked for [m].

        Raises:
            InvalidInput: for a spacing <= 0.
        """
        if not (np.isfinite(spacing) and spacing > 0):
            raise InvalidInput(f"path: spacing must be > 0 m, got {spacing}")
        s = np.linspace(0, 1, 4 * _SAMPLES)
        track = np.linalg.norm(np.diff(self.point(s), axis=0), axis=1)
        along = np.concatenate([[0.0], np.cumsum(track)])
        count = int(np.ceil(along[-1] / spacing)) + 1
        even = np.interp(np.linspace(0, along[-1], count), along, s)
        return self.point(even), self.heading(even)

    def _derivative(self, s, order: int) -> np.ndarray:
        s = np.asarray(s, float)[..., None]
        ends = ((self.start, self.start_heading), (self.end, self.end_heading))
        (p, v), (q, w) = (
            (at, speed * np.array([np.cos(th), np.sin(th)]))
            for (at, th), speed in zip(ends, (self.start_speed, self.end_speed))
        )
        a, b = w - 3 * q, v + 3 * p
        # In powers of s.
        c = [p, b - 3 * p, 3 * p - a - 2 * b, q - p + a + b]
        if order == 0:
            return c[0] + s * (c[1] + s * (c[2] + s * c[3]))
        if order == 1:
            return c[1] + s * (2 * c[2] + s * 3 * c[3])
        return 2 * c[2] + 6 * s * c[3]


@dataclass(frozen=True)
class TurnLimits:
    """The tightest circles of a robot whose gait stays the same.

    Attributes:
        left, right: greatest curvatures to either side, >= 0 [1/m].
    """

    left: float
    right: float


def turn_limits(polynomial: MotionPolynomial, q1: float | None = None) -> TurnLimits:
    """Curvatures 2 sin(e/2) / |p| of the circles through successive poses.

    With e the rotation and p the displacement of a cycle.

    Args:
        polynomial: the robot's motion.
        q1: step length [rad]; by default the greatest, the robot's usual one.
            Smaller steps turn tighter.
    """
    q1 = polynomial.domain.q1[1] if q1 is None else q1
    motion = polynomial.motion(q1, np.linspace(*polynomial.domain.q2, 201))
    bend = 2 * np.sin(motion[:, 0] / 2) / np.hypot(motion[:, 1], motion[:, 2])
    return TurnLimits(max(float(bend.max()), 0.0), max(float(-bend.min()), 0.0))


def plan_cubic(
    start,
    start_heading: float,
    end,
    end_heading: float,
    limits: TurnLimits | None = None,
) -> CartesianCubic:
    """The shortest cubic that turns no tighter than the robot can.

    Searches a grid of k_i and k_f (about 0.1 s). Where none obeys the limits, the
    path that exceeds them least is returned; :func:`exceeds` tells.

    Args:
        start, end: positions (2,) [m].
        start_heading, end_heading: [rad].
        limits: by default those of Table 3 at the greatest step length.

    Raises:
        InvalidInput: for values not finite or poses in the same place.
    """
    limits = limits or turn_limits(MotionPolynomial.table_3())
    far = float(np.linalg.norm(check_point(end, "end") - check_point(start, "start")))
    first = CartesianCubic(
        start, start_heading, end, end_heading, max(far, 1e-9), max(far, 1e-9)
    )
    circle = 2 / max(min(limits.left, limits.right), 1e-3)
    speeds = np.geomspace(
        _SPEEDS[0] * far, _SPEEDS[1] * max(far, circle), _SPEEDS[2]
    ).tolist()
    best, rank = first, (np.inf, np.inf)
    for k_i in speeds:
        for k_f in speeds:
            path = replace(first, start_speed=k_i, end_speed=k_f)
            over = exceeds(path, limits)
            key = (max(over, 1.0), path.length)
            if key < rank:
                best, rank = path, key
    return best


def exceeds(path: CartesianCubic, limits: TurnLimits) -> float:
    """The path's greatest curvature over its limit; at most 1 where it obeys.

    A path that stops and reverses exceeds any limit.
    """
    s = np.linspace(0, 1, _SAMPLES)
    # Between samples as well: at a cusp the curvature itself may be zero.
    turn = np.diff(path.heading(s))
    turn = (turn + np.pi) % (2 * np.pi) - np.pi
    track = np.linalg.norm(np.diff(path.point(s), axis=0), axis=1)
    bend = np.append(path.curvature(s), turn / np.maximum(track, 1e-12))
    left, right = max(limits.left, 1e-9), max(limits.right, 1e-9)
    return float(max(bend.max() / left, -bend.min() / right, 0.0))
