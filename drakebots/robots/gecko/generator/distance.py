"""How far from the target some cycles of one gait leave the gecko.

Every cycle of a gait q turns the robot by e and moves it by p in the frame it
starts with (eq. (17)), so that after m cycles it stands in its first frame at

    P_m = sum_{k < m} R(k e) p,   turned by m e.

The distance to a target x that stays, eqs. (19), (20), is |x - P_m|: turning the
vector into the last frame, as eq. (19) does, does not change its length.

Two sums are offered. "corrected" counts n displacements for n cycles, m = n.
"paper" is eq. (19) as printed, whose sum i = 0..n has n + 1 terms: it is the
distance after n + 1 cycles, m = n + 1, and reproduces Fig. 10.

Source: Schiller, Seibel, Schlattmann, Front. Robot. AI 7:87 (2020), eqs. (17)-(22).
"""

from __future__ import annotations

from typing import Protocol

import numpy as np

from drakebots.core.errors import InvalidInput, UnknownName
from drakebots.robots.gecko.generator.polynomial import Domain, MotionPolynomial

SUMS = ("corrected", "paper")
"""The readings of eq. (19)."""


class MotionModel(Protocol):
    """Anything that foretells where n equal cycles take the robot.

    Attributes:
        domain: the gaits it may be asked for.
    """

    domain: Domain

    def predict(self, q1, q2, n: int) -> tuple[np.ndarray, np.ndarray]:
        """Displacement (..., 2) [m] and rotation (...) [rad] after n cycles.

        Args:
            q1: step lengths (...) [rad], q2: steerings (...), within the domain.
            n: cycles, >= 1.

        The displacement of the robot's position (the torso's front end) is in
        the body frame before the first cycle: x forward, y left.
        """
        ...


def cycle_count(n: int, sum: str = "corrected") -> int:
    """How many displacements the sum adds for a horizon of n cycles.

    Raises:
        UnknownName: for another sum.
        InvalidInput: for n that is not a whole number >= 1.
    """
    if sum not in SUMS:
        raise UnknownName("sum", sum, SUMS)
    if int(n) != n or n < 1:
        raise InvalidInput(f"horizon must be a whole number >= 1, got {n}")
    return int(n) + (sum == "paper")


def check_point(point, name: str = "target") -> np.ndarray:
    """A point as an array (2,) [m].

    Raises:
        InvalidInput: for another shape or values that are not finite.
    """
    point = np.asarray(point, float)
    if point.shape != (2,) or not np.isfinite(point).all():
        raise InvalidInput(f"{name} must be 2 finite numbers in m, got {point}")
    return point


def check_heading(heading, name: str = "heading") -> float:
    """A heading as a number [rad].

    Raises:
        InvalidInput: when it is not finite.
    """
    if np.ndim(heading) or not np.isfinite(heading):
        raise InvalidInput(f"{name} must be a finite number in rad, got {heading}")
    return float(heading)


def in_body_frame(target, position, heading) -> np.ndarray:
    """R(-heading) (target - position) (2,) [m], eq. (22).

    Args:
        target, position: in the world (2,) [m].
        heading: eps of the robot [rad].

    Raises:
        InvalidInput: for values that are not finite.
    """
    away = check_point(target) - check_point(position, "position")
    c, s = np.cos(check_heading(heading)), np.sin(heading)
    return np.array([c * away[0] + s * away[1], c * away[1] - s * away[0]])


def distance(target, q1, q2, n: int, model: MotionModel, *, sum: str = "corrected"):
    """d_n (...) [m], eqs. (19), (20): left to go after n cycles of one gait.

    Args:
        target: in the robot's frame (2,) [m].
        q1: step lengths (...) [rad], q2: steerings (...).
        n: horizon [cycles], >= 1.
        model: what a gait does.
        sum: "corrected" or "paper".

    Raises:
        UnknownName, InvalidInput: as above, and outside the model's domain.
    """
    reached, _ = model.predict(q1, q2, cycle_count(n, sum))
    return np.linalg.norm(check_point(target) - reached, axis=-1)


def distance_gradient(
    target, q1, q2, n: int, polynomial: MotionPolynomial, *, sum: str = "corrected"
) -> np.ndarray:
    """d d_n / d (q1, q2) (..., 2) [m/rad, m]; zero where d_n itself is zero.

    Arguments and errors as in :func:`distance`.
    """
    m = cycle_count(n, sum)
    motion, slope = polynomial.motion(q1, q2), polynomial.gradient(q1, q2)
    count = np.arange(m).reshape((m,) + (1,) * motion[..., 0].ndim)
    turn = np.exp(1j * count * motion[..., 0])
    step = motion[..., 1] + 1j * motion[..., 2]
    gap = complex(*check_point(target)) - (turn * step).sum(axis=0)
    d = np.abs(gap)
    toward = np.where(d > 0, gap / np.where(d > 0, d, 1.0), 0.0)
    parts = []
    for axis in (0, 1):
        step_slope = slope[..., 1, axis] + 1j * slope[..., 2, axis]
        change = turn * (step_slope + 1j * count * slope[..., 0, axis] * step)
        parts.append(-(np.conj(toward) * change.sum(axis=0)).real)
    return np.stack(parts, axis=-1)
