"""The gait that takes the gecko nearest to its target: eqs. (17) to (22).

**Distance.** Every cycle of a gait q rotates the robot by e and displaces it by p in
the frame it starts with (eq. (17)), so that after m cycles its position and heading in
its first frame are

    P_m = sum_{k < m} R(k e) p   and   m e.

The distance to a fixed target x, eqs. (19) and (20), is |x - P_m|: rotating the vector
into the last frame, as eq. (19) does, does not change its length. There are two
readings of the sum. "corrected" counts n displacements for n cycles, m = n. "paper" is
eq. (19) as printed, whose sum i = 0..n has n + 1 terms: it is the distance after n + 1
cycles, m = n + 1, and reproduces Fig. 10.

**Best gait.** Eq. (21) is solved to its global minimum:

    minimise  |x - P_m(q)|^2 + w^2 wrap(h - m e(q))^2   over the model's domain

with w = 0 in the paper; a desired rotation h with a weight w [m/rad] serves paths that
end in a given heading. The objective has several local minima, also on edges and in
corners of the domain, so that a local method misses some (Fig. 10B). P_m does not
depend on the target: it is stored on a grid of 1 deg by 0.025. The grid's local minima,
edges included, are refined by least squares within the bounds, and the best one is
taken. No gait is further than half a cell from the grid, so a missed minimum is
better than the best grid point by at most the change of P_m over half a cell (1.8 cm
after 4 cycles of Table 3, 2.4 cm after 5); the tests found none.

A call takes 2 to 3 ms. A model's grids are computed in the first call for each m
(0.2 ms): keep one model object.

Source: Schiller, Seibel, Schlattmann, Front. Robot. AI 7:87 (2020).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from scipy.ndimage import minimum_filter
from scipy.optimize import least_squares

from drakebots.core.checks import (
    array,
    check_value,
    finite,
    non_negative,
    one_of,
    whole,
)
from drakebots.core.errors import InvalidInput
from drakebots.model import plane_rotation
from drakebots.robots.gecko.generator.motion import MotionModel, MotionPolynomial

SUMS = ("corrected", "paper")
"""The readings of eq. (19)."""

# Rules of the arguments.
_SUM, _HORIZON, _POINT = one_of("sum", SUMS), whole(1), array((2,), "m")
_HEADING, _WEIGHT = finite("rad"), non_negative("m/rad")

# Points of the grid of gaits, by q1 and q2.
_GRID = (41, 41)
# Models other than the polynomial may be slow: fewer points, which are not stored.
_COARSE_GRID = (9, 11)
# Number of local minima of the grid that are refined.
_STARTS = 8
_COARSE_STARTS = 3


def wrapped(angle):
    """Angles (...) [rad] within -pi..pi."""
    return (angle + np.pi) % (2 * np.pi) - np.pi


def cycle_count(n: int, sum: str = "corrected") -> int:
    """Number of displacements that the sum adds for a horizon of n cycles.

    Raises:
        UnknownName: for another sum.
        InvalidInput: for n that is not a whole number >= 1.
    """
    check_value("sum", sum, _SUM)
    return check_value("horizon", n, _HORIZON) + (sum == "paper")


def check_point(point, name: str = "target") -> np.ndarray:
    """A point as an array (2,) [m].

    Raises:
        InvalidInput: for another shape or values that are not finite.
    """
    return check_value(name, point, _POINT)


def check_heading(heading, name: str = "heading") -> float:
    """A heading as a number [rad].

    Raises:
        InvalidInput: when it is not finite.
    """
    return float(check_value(name, heading, _HEADING))


def rotated_back(gap: np.ndarray, heading: float) -> np.ndarray:
    """R(-heading) gap (2,) in the robot's frame, of a gap in the world, eq. (22)."""
    return plane_rotation(-heading) @ gap


def distance(target, q1, q2, n: int, model: MotionModel, *, sum: str = "corrected"):
    """Distance d_n (...) [m] to the target after n cycles, eqs. (19), (20).

    Args:
        target: target in the robot's frame (2,) [m].
        q1: step lengths (...) [rad].
        q2: steerings (...).
        n: horizon [cycles], >= 1.
        model: motion model.
        sum: "corrected" or "paper".

    Raises:
        UnknownName, InvalidInput: as above, and outside the model's domain.
    """
    reached, _ = model.predict(q1, q2, cycle_count(n, sum))
    return np.linalg.norm(check_point(target) - reached, axis=-1)


@dataclass(frozen=True)
class BestGait:
    """The best gait for a horizon.

    Attributes:
        q1: step length, > 0 [rad].
        q2: steering.
        n: horizon [cycles].
        distance: predicted distance d_n to the target after the horizon [m].
        turn: predicted rotation over the horizon [rad].
    """

    q1: float
    q2: float
    n: int
    distance: float
    turn: float


def best_gait(
    target,
    n: int,
    model: MotionModel,
    *,
    sum: str = "corrected",
    heading: float | None = None,
    heading_weight: float = 0.0,
) -> BestGait:
    """The gait that minimises d_n over the model's domain, eq. (21).

    Args:
        target: target in the robot's frame (2,) [m].
        n: horizon [cycles], >= 1.
        model: motion model.
        sum: reading of eq. (19), "corrected" or "paper".
        heading: desired rotation over the n cycles [rad].
        heading_weight: weight w of the error of that rotation [m/rad].

    Raises:
        UnknownName: for another sum.
        InvalidInput: for a horizon < 1, a target or heading not finite, or a
            weight < 0 or without heading.
    """
    m = cycle_count(n, sum)
    target = check_point(target)
    weight = float(check_value("heading_weight", heading_weight, _WEIGHT))
    if weight > 0 and heading is None:
        raise InvalidInput("heading_weight without a heading; give one")
    rotation = 0.0 if heading is None else check_heading(heading)
    q, reached, turn = _best(model, m, target, rotation, weight)
    gap = target - reached
    return BestGait(*map(float, q), int(n), float(np.hypot(*gap)), float(turn))


def _best(
    model: MotionModel, m: int, target: np.ndarray, heading: float, weight: float
) -> tuple[np.ndarray, np.ndarray, float]:
    """The best gait (2,), and its displacement (2,) [m] and rotation in m cycles."""
    exact = isinstance(model, MotionPolynomial)
    gaits, reached, turned = (_table if exact else _on_grid)(model, m)
    low, high = np.array([model.domain.q1, model.domain.q2]).T

    def misses(reached, turned) -> np.ndarray:
        slip = wrapped(heading - np.asarray(turned)[..., None])
        return np.concatenate([target - reached, weight * slip], axis=-1)

    def residuals(q: np.ndarray) -> np.ndarray:
        return misses(*model.predict(*q, m))

    cost = np.square(misses(reached, turned)).sum(axis=-1)
    least = (cost == minimum_filter(cost, 3, mode="nearest")) & np.isfinite(cost)
    order = np.argsort(cost[least], kind="stable")
    starts = gaits[least][order[: _STARTS if exact else _COARSE_STARTS]]
    options = {"bounds": (low, high), "x_scale": high - low, "method": "dogbox"}
    options |= dict.fromkeys(("ftol", "xtol", "gtol"), 1e-12)
    fits = [least_squares(residuals, q, **options).x for q in starts]
    q = min((*starts, *fits), key=lambda q: float(np.sum(residuals(q) ** 2)))
    return q, *model.predict(*q, m)


def _on_grid(model: MotionModel, m: int, shape: tuple[int, int] = _COARSE_GRID):
    """Gaits (a, b, 2) of a grid, and their displacements and rotations."""
    grid = model.domain.grid(shape)
    return np.stack(grid, axis=-1), *model.predict(*grid, m)


@lru_cache(maxsize=64)
def _table(model: MotionPolynomial, m: int):
    """The same of a model object on a finer grid, made once."""
    return _on_grid(model, m, _GRID)
