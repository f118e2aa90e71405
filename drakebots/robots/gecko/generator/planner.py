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
edges included, are refined by Newton's method projected on the bounds, and the best one
is taken. No gait is further than half a cell from the grid, so a missed minimum is
better than the best grid point by at most the change of P_m over half a cell (1.8 cm
after 4 cycles of Table 3, 2.4 cm after 5); the tests found none.

A call takes about 25 us, compiled by numba. The first call in a process loads the
compiled code (0.2 s), the first on a machine compiles it (5 s). A model's grids are
computed in the first call for each m (0.2 ms): keep one model object.

Source: Schiller, Seibel, Schlattmann, Front. Robot. AI 7:87 (2020).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np
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
from drakebots.core.kernels import njit
from drakebots.robots.gecko.generator.motion import MotionModel, MotionPolynomial

SUMS = ("corrected", "paper")
"""The readings of eq. (19)."""

# Rules of the arguments, made once: a call takes little longer than they do.
_SUM, _HORIZON, _POINT = one_of("sum", SUMS), whole(1), array((2,), "m")
_HEADING, _WEIGHT = finite("rad"), non_negative("m/rad")

# Orders of the derivatives by q1 and q2 that a motion is expanded to.
ORDERS = ((0, 0, 0), (1, 1, 0), (2, 0, 1), (3, 2, 0), (4, 1, 1), (5, 0, 2))
# Points of the grid of gaits, by q1 and q2.
_GRID = (41, 41)
# Models other than the polynomial may be slow: fewer points, which are not stored.
_COARSE_GRID = (9, 11)
# Number of local minima of the grid that are refined.
_STARTS = 8
_COARSE_STARTS = 3


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


def in_body_frame(target, position, heading) -> np.ndarray:
    """R(-heading) (target - position) (2,) [m], eq. (22).

    Args:
        target: target in the world (2,) [m].
        position: position of the robot in the world (2,) [m].
        heading: heading eps of the robot [rad].

    Raises:
        InvalidInput: for values that are not finite.
    """
    gap = check_point(target) - check_point(position, "position")
    return rotated_back(gap, check_heading(heading))


def rotated_back(gap: np.ndarray, heading: float) -> np.ndarray:
    """R(-heading) gap (2,), without checks."""
    c, s = np.cos(heading), np.sin(heading)
    return np.array([c * gap[0] + s * gap[1], c * gap[1] - s * gap[0]])


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
    desired = np.array([*target, rotation, weight])
    if isinstance(model, MotionPolynomial):
        table, bounds = _table(model, m)
        q1, q2, x, y, turn = _best(table, bounds, model.coefficients, m, desired)
    else:
        q1, q2, x, y, turn = _best_of_any(model, m, desired)
    d = float(np.hypot(target[0] - x, target[1] - y))
    return BestGait(float(q1), float(q2), int(n), d, float(turn))


@lru_cache(maxsize=64)
def _table(model: MotionPolynomial, m: int) -> tuple[np.ndarray, np.ndarray]:
    """(x, y, rotation) after m cycles on the grid (a, b, 3), and the bounds."""
    bounds = np.array([model.domain.q1, model.domain.q2])
    return _on_grid(model, m, _GRID)[2], bounds


def _on_grid(model: MotionModel, m: int, shape):
    q1, q2 = model.domain.grid(shape)
    reached, turned = model.predict(q1, q2, m)
    table = np.concatenate([reached, np.asarray(turned)[..., None]], axis=-1)
    return q1, q2, np.ascontiguousarray(table)


def _best_of_any(model: MotionModel, m: int, desired):
    """The result of `_best` for any motion model, from its predictions alone."""
    low, high = np.array([model.domain.q1, model.domain.q2]).T
    target, heading, weight = desired[:2], desired[2], desired[3]

    def residuals(q):
        reached, turned = model.predict(*np.clip(q, low, high), m)
        turn = weight * np.arctan2(np.sin(heading - turned), np.cos(heading - turned))
        return np.append(target - reached, turn)

    q1, q2, table = _on_grid(model, m, _COARSE_GRID)
    cells = _grid_minima(table, desired, _COARSE_STARTS)
    starts = [np.array([q1[a, b], q2[a, b]]) for a, b in cells if a >= 0]
    fits = [
        least_squares(residuals, q, bounds=(low, high), x_scale=high - low)
        for q in starts
    ]
    # The interior method of scipy stays off the bounds: keep the grid points too.
    found = np.array(starts + [fit.x for fit in fits])
    q = min(found, key=lambda q: float(np.sum(residuals(q) ** 2)))
    reached, turned = model.predict(*q, m)
    return q[0], q[1], reached[0], reached[1], turned


@njit(cache=True)
def _wrap(angle):
    return angle - 2 * np.pi * np.floor(angle / (2 * np.pi) + 0.5)


@njit(cache=True)
def _cost(x, y, turn, desired):
    gap = desired[3] * _wrap(desired[2] - turn)
    return 0.5 * ((desired[0] - x) ** 2 + (desired[1] - y) ** 2 + gap * gap)


@njit(cache=True)
def _grid_minima(table, desired, most):
    """The best `most` cells (most, 2) that are local minima, best first; -1: none."""
    rows, columns = table.shape[:2]
    cost = np.empty((rows, columns))
    for a in range(rows):
        for b in range(columns):
            cost[a, b] = _cost(table[a, b, 0], table[a, b, 1], table[a, b, 2], desired)
    cells = np.full((most, 2), -1)
    costs = np.full(most, np.inf)
    for a in range(rows):
        for b in range(columns):
            least = cost[a, b] < costs[most - 1]
            for i in range(max(a - 1, 0), min(a + 2, rows)):
                for j in range(max(b - 1, 0), min(b + 2, columns)):
                    least = least and cost[i, j] >= cost[a, b]
            if least:
                at = most - 1
                while at > 0 and cost[a, b] < costs[at - 1]:
                    costs[at], cells[at] = costs[at - 1], cells[at - 1].copy()
                    at -= 1
                costs[at] = cost[a, b]
                cells[at, 0], cells[at, 1] = a, b
    return cells


@njit(cache=True)
def _powers(q, size):
    """Powers of q, their first and second derivatives (3, size)."""
    out = np.zeros((3, size))
    for i in range(size):
        out[0, i] = q**i
        if i > 0:
            out[1, i] = i * q ** (i - 1)
        if i > 1:
            out[2, i] = i * (i - 1) * q ** (i - 2)
    return out


@njit(cache=True)
def _motion(c, q1, q2):
    """Value, d1, d2, d11, d12, d22 of each component (3, 6)."""
    a, b, out = _powers(q1, c.shape[1]), _powers(q2, c.shape[1]), np.empty((3, 6))
    for k in range(3):
        for at, i, j in ORDERS:
            total = 0.0
            for m in range(c.shape[1]):
                for n in range(c.shape[2]):
                    total += a[i, m] * b[j, n] * c[k, m, n]
            out[k, at] = total
    return out


@njit(cache=True)
def _expand(c, m, q1, q2, desired):
    """Cost, gradient, Hessian, and (x, y, turn): [f, g1, g2, h11, h12, h22, ...]."""
    p = _motion(c, q1, q2)
    s = p[1] + 1j * p[2]
    e = p[0]
    reached = np.zeros(6, np.complex128)
    for k in range(m):
        r = np.exp(1j * k * e[0])
        w = 1j * k
        reached[0] += r * s[0]
        reached[1] += r * (s[1] + w * e[1] * s[0])
        reached[2] += r * (s[2] + w * e[2] * s[0])
        for at, i, j in ((3, 1, 1), (4, 1, 2), (5, 2, 2)):
            bend = w * e[at] + w * w * e[i] * e[j]
            reached[at] += r * (s[at] + w * (e[i] * s[j] + e[j] * s[i]) + bend * s[0])
    gap = reached[0] - (desired[0] + 1j * desired[1])
    turn = m * e[0]
    slip = desired[3] ** 2 * _wrap(turn - desired[2])
    stiff = (desired[3] * m) ** 2
    out = np.empty(9)
    out[0] = _cost(reached[0].real, reached[0].imag, turn, desired)
    for i in (1, 2):
        out[i] = (np.conj(gap) * reached[i]).real + slip * m * e[i]
    for at, i, j in ((3, 1, 1), (4, 1, 2), (5, 2, 2)):
        out[at] = (np.conj(reached[i]) * reached[j] + np.conj(gap) * reached[at]).real
        out[at] += stiff * e[i] * e[j] + slip * m * e[at]
    out[6], out[7], out[8] = reached[0].real, reached[0].imag, turn
    return out


@njit(cache=True)
def _refine(c, m, u, bounds, desired):
    """Newton's method in the unit square, damped and projected on its bounds."""
    low, size = bounds[:, 0], bounds[:, 1] - bounds[:, 0]
    now = _expand(c, m, low[0] + size[0] * u[0], low[1] + size[1] * u[1], desired)
    damping = 0.0
    for _ in range(60):
        g0, g1 = now[1] * size[0], now[2] * size[1]
        # A variable at a bound stays there if the descent direction leaves the box.
        free0 = not ((u[0] <= 0 and g0 >= 0) or (u[0] >= 1 and g0 <= 0))
        free1 = not ((u[1] <= 0 and g1 >= 0) or (u[1] >= 1 and g1 <= 0))
        if not (free0 or free1):
            break
        h00 = now[3] * size[0] ** 2 + damping
        h01 = now[4] * size[0] * size[1] if free0 and free1 else 0.0
        h11 = now[5] * size[1] ** 2 + damping
        if not free0:
            g0, h00 = 0.0, 1.0
        if not free1:
            g1, h11 = 0.0, 1.0
        determinant = h00 * h11 - h01 * h01
        grown = max(10 * damping, 1e-6)
        if not (h00 > 0 and determinant > 1e-14 * h00 * h11):
            damping = grown
            continue
        v0 = min(max(u[0] - (h11 * g0 - h01 * g1) / determinant, 0.0), 1.0)
        v1 = min(max(u[1] - (h00 * g1 - h01 * g0) / determinant, 0.0), 1.0)
        moved = max(abs(v0 - u[0]), abs(v1 - u[1]))
        then = _expand(c, m, low[0] + size[0] * v0, low[1] + size[1] * v1, desired)
        if then[0] <= now[0]:
            u[0], u[1], now = v0, v1, then
            damping = damping / 10 if damping > 1e-9 else 0.0
        else:
            damping = grown
        if moved < 1e-12:
            break
    return now


@njit(cache=True)
def _best(table, bounds, c, m, desired):
    """(q1, q2, x, y, turn) of the best of the refined minima of the grid."""
    cells = _grid_minima(table, desired, _STARTS)
    least = np.inf
    q1, q2, x, y, turn = 0.0, 0.0, 0.0, 0.0, 0.0
    u = np.empty(2)
    for at in range(_STARTS):
        if cells[at, 0] < 0:
            break
        u[0] = cells[at, 0] / (table.shape[0] - 1)
        u[1] = cells[at, 1] / (table.shape[1] - 1)
        end = _refine(c, m, u, bounds, desired)
        # Of equal minima the first is kept, so that the choice is repeatable.
        if end[0] < least - 1e-18:
            least = end[0]
            q1 = bounds[0, 0] + u[0] * (bounds[0, 1] - bounds[0, 0])
            q2 = bounds[1, 0] + u[1] * (bounds[1, 1] - bounds[1, 0])
            x, y, turn = end[6], end[7], end[8]
    return q1, q2, x, y, turn
