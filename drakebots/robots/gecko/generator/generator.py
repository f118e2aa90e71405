"""The gait pattern generator: from the gecko's pose to its next gait.

Once per half cycle, a rule chooses the gait from the target x in the robot's frame,
eq. (22). The rule :class:`Published` is Algorithm 1 of the paper:

    while targets are left and d0 = |x| < arrival: take the next target
    n = 1, (q*, d) = argmin d_1
    while d > d0 and n < horizon: n = n + 1, (q*, d) = argmin d_n

It may circle endlessly about a target inside its turning circle. The rule
:class:`LeastTime`, ours, takes the first gait of the shortest sequence that reaches the
target.

**The shortest sequence.** Where a target lies in the robot's frame, z = x + iy, is all
that a motion model needs to predict every later cycle. So the least number V of half
cycles to a disc of radius eps about the target is a function of z alone, and satisfies
Bellman's equation

    V(z) = min_q { 1 where |z_1| < eps;  2 where |z_2| < eps;  2 + V(z_2) },
    z_1 = e^{-i e/2} (z - p/(1 + e^{i e/2})),   z_2 = e^{-i e} (z - p)

with e(q) the rotation and p(q) the displacement of a cycle of gait q; z_1 follows after
half of it. A gait counts in whole cycles, because the motion of a half cycle depends on
the gait before. :class:`ArrivalTimes` solves this by value iteration on a grid of
log |z| and bearing; in use, the first gait of the best sequence is walked for a half
cycle, and the choice is made again. The disc has a soft edge: where a motion ends at
|z| = (0.5 + w) eps, it is worth w V, 0 <= w <= 1. Otherwise the best sequence often
only touches the disc, and a robot that moves 1 cm differently turns about for twenty
half cycles. Source: Bellman, Dynamic Programming, 1957; the rule is ours.

**Least time does not circle for ever.** On its own model it comes nearer by one half
cycle in every half cycle. A robot that moves otherwise than its model may not. So the
generator watches the least number of half cycles left. When that has not fallen for
`patience` half cycles, the robot walks straight on for STRAIGHT_ON half cycles, the
next time for twice as many, and so on. The k-th escape is longer than all before, so
the closed loop has no cycle; and as escapes end ever further away, the last approach
begins with the target outside every turning circle, where it is enough that the robot
can turn towards the target and then keeps within its steering. That much is assumed, of
the robot as of the model.

With the published rule, patience watches the distance, and every escape is equally
long: turning towards a far target is no progress either, and longer escapes would only
lead away. It may circle, with patience too.

The caller flips the sign of q1 from one half cycle to the next (`gait_law`). The
generator is a plain state machine without a clock or an engine. Source: Schiller,
Seibel, Schlattmann, Front. Robot. AI 7:87 (2020), section 5.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import lru_cache
from typing import Annotated

import numpy as np

from drakebots.core.checks import array, check_value, one_of, positive, whole
from drakebots.core.errors import InvalidInput
from drakebots.core.fields import checked
from drakebots.core.kernels import njit
from drakebots.model import given
from drakebots.robots.gecko.engines import Decision
from drakebots.robots.gecko.generator.motion import MotionModel, MotionPolynomial
from drakebots.robots.gecko.generator.planner import (
    SUMS,
    BestGait,
    best_gait,
    check_heading,
    check_point,
    rotated_back,
)
from drakebots.robots.gecko.model import MODEL

STRAIGHT_ON = 5
"""Number of half cycles without steering that leave a circle."""


class Rule:
    """A rule for the choice of the next gait."""


@checked("rule LeastTime")
class LeastTime(Rule):
    """The first gait of the shortest sequence to the target."""

    patience: Annotated[int, whole(0)] = 16
    """Number of half cycles without progress, after which the robot walks straight on;
    0 for never."""

    closer = 0.5  # smallest decrease that counts as progress [half cycles]


@checked("rule Published")
class Published(Rule):
    """The paper's Algorithm 1: the gait that brings the robot nearest to the target."""

    horizon: Annotated[int, whole(1)] = given(MODEL, "horizon")
    """Largest number n_max of cycles to look ahead."""
    sum: Annotated[str, one_of("sum", SUMS)] = "corrected"
    """Reading of eq. (19): "corrected" counts n displacements for n cycles, "paper" n +
    1 as printed."""
    patience: Annotated[int, whole(0)] = 16
    """Number of half cycles without progress, after which the robot walks straight on;
    0 for never, as published."""

    closer = 1e-3  # smallest decrease that counts as progress [m]


@checked()
class GeneratorOptions:
    """Options for the choice of gaits.

    Raises:
        InvalidInput: for an arrival <= 0, or a motion model that is no polynomial with
            the rule of least time.
    """

    arrival: Annotated[float, positive("m")] = given(MODEL, "arrival")
    """Distance epsilon below which a target counts as reached."""
    motion: MotionModel = field(default_factory=MotionPolynomial.table_3)
    """Motion model; the paper's Table 3 by default."""
    rule: Rule = field(default_factory=LeastTime)
    """Rule for the choice of the next gait."""

    def __post_init__(self):
        least_time = isinstance(self.rule, LeastTime)
        if least_time and not isinstance(self.motion, MotionPolynomial):
            raise InvalidInput(
                "the rule LeastTime needs the motion of a cycle as a polynomial; "
                "fit one, or use the rule Published"
            )


class GaitPatternGenerator:
    """Walks to one target after the other.

    Args:
        targets: targets in the world (k, 2) [m], k >= 1.
        options: options for the choice of gaits.
        arrivals: distance at which each target counts as reached (k,) [m]; by
            default that of the options.
        via: whether each target is a point of a path (k,) of bool, which is skipped
            as soon as a later point, up to the next target, is reached.

    Attributes:
        index: index of the present target; their number when all were reached.

    Raises:
        InvalidInput: for no target, another shape or values that are not finite.
    """

    def __init__(
        self, targets, options: GeneratorOptions | None = None, arrivals=None, via=False
    ):
        self.options = options or GeneratorOptions()
        self.targets = check_targets(targets)
        if arrivals is None:
            arrivals = np.full(len(self.targets), self.options.arrival)
        one_each = array((len(self.targets),), "m", entry=positive("m"))
        self.arrivals = check_value("arrivals", arrivals, one_each)
        self.via = np.broadcast_to(via, len(self.targets))
        self._next(0)

    def decide(self, position, heading: float) -> Decision | None:
        """The gait for the next half cycle; None once every target was reached.

        Targets that count as reached are passed, also several at once.

        Args:
            position: position of the torso's front end in the world (2,) [m].
            heading: heading eps [rad].

        Raises:
            InvalidInput: for a pose that is not finite.
        """
        position = check_point(position, "position")
        heading = check_heading(heading)
        while self.index < len(self.targets):
            passed = self._passed(position)
            if passed is None:
                gap = rotated_back(self.targets[self.index] - position, heading)
                return self._towards(gap, float(np.hypot(*gap)))
            self._next(passed + 1)
        return None

    def _next(self, index: int) -> None:
        self.index, self._least = index, np.inf
        self._waited = self._straight = self._escapes = 0

    def _passed(self, position: np.ndarray) -> int | None:
        """The last point, up to the next target, that counts as reached."""
        passed = None
        for k in range(self.index, len(self.targets)):
            gap = self.targets[k] - position
            if np.hypot(*gap) < self.arrivals[k]:
                passed = k
            if not self.via[k]:
                break
        return passed

    def _towards(self, gap: np.ndarray, d0: float) -> Decision:
        motion, rule, index = self.options.motion, self.options.rule, self.index
        if isinstance(rule, LeastTime):
            best = _arrival_times(motion, self.arrivals[index]).gait(gap)
            left, n = best.half_cycles, int(np.ceil(best.half_cycles / 2))
        else:
            best = growing_horizon(gap, d0, motion, rule)
            left, n = d0, best.n
        if self._straight > 0 or left < self._least - rule.closer:
            self._waited = 0
            self._least = np.inf if self._straight > 0 else left
        else:
            self._waited += 1
        if rule.patience and self._waited >= rule.patience:
            self._escapes += 1
            longer = self._escapes if isinstance(rule, LeastTime) else 1
            self._straight = STRAIGHT_ON * longer
            self._least, self._waited = np.inf, 0
        if self._straight > 0:
            self._straight -= 1
            return Decision(motion.domain.q1[1], 0.0, 0, d0, index, d0)
        return Decision(best.q1, best.q2, n, best.distance, index, d0)


def growing_horizon(
    gap, d0: float, motion: MotionModel, rule: Published, **heading
) -> BestGait:
    """The best gait of the first horizon that gets closer than d0, or of the last.

    Args:
        gap: target in the robot's frame (2,) [m].
        d0: present distance [m].
        motion: motion model.
        rule: horizon and sum.
        heading: `heading` and `heading_weight` of :func:`best_gait`.
    """
    for n in range(1, rule.horizon + 1):
        best = best_gait(gap, n, motion, sum=rule.sum, **heading)
        if best.distance <= d0:
            break
    return best


def check_targets(targets) -> np.ndarray:
    """Targets as an array (k, 2) [m].

    Raises:
        InvalidInput: naming the first target that is wrong.
    """
    points = check_value("targets", targets, array((None, 2), "m"))
    if not len(points):
        raise InvalidInput("targets must be one or more, got none")
    return points


# --- the shortest sequence -----------------------------------------------------

FAR = 4.0
"""Radius of the table [m]; beyond, the robot walks straight."""

_RINGS, _BEARINGS = 64, 72
# Gaits (q1, q2) of the iteration, and of a decision.
_GAITS, _CHOICES = (3, 9), (9, 21)
_TOLERANCE, _SWEEPS = 0.02, 200
# The disc's edge: where it begins, and its width, in eps.
_CORE, _EDGE = 0.5, 1.0


@dataclass(frozen=True)
class NextGait:
    """The first gait of the shortest sequence.

    Attributes:
        q1: step length, > 0 [rad].
        q2: steering.
        half_cycles: number V of half cycles to the target.
        distance: predicted distance to the target after a cycle [m].
    """

    q1: float
    q2: float
    half_cycles: float
    distance: float


class ArrivalTimes:
    """The table V(z) of a motion model and a radius of arrival (0.1 s).

    Args:
        model: motion of a cycle by gait.
        arrival: distance eps below which a target counts as reached [m].

    Raises:
        InvalidInput: for an arrival <= 0.
    """

    def __init__(self, model: MotionPolynomial, arrival: float):
        self.arrival = float(check_value("arrival", arrival, positive("m")))
        *_, turn, half = _gaits(model, _GAITS)
        stride = float(np.abs(half * (1 + turn.conj())).max())
        low = np.log(_CORE * self.arrival)
        width = (np.log(max(FAR, 4 * self.arrival)) - low) / (_RINGS - 1)
        self._grid = np.array([low, width, self.arrival, stride])
        radii = np.exp(low + width * np.arange(_RINGS))
        # The straight walk is a lower bound, from which the iteration ascends.
        self._table = np.repeat(2 * radii[:, None] / stride, _BEARINGS, axis=1)
        for _ in range(_SWEEPS):
            if _sweep(self._table, self._grid, turn, half) < _TOLERANCE:
                break
        self._q1, self._q2, self._turn, self._half = _gaits(model, _CHOICES)

    def gait(self, target) -> NextGait:
        """The gait for a target in the robot's frame (2,) [m] (0.02 ms)."""
        z = complex(*target)
        k, count = _best(self._table, self._grid, self._turn, self._half, z)
        after = (z - self._half[k]) * self._turn[k] - self._half[k]
        q1, q2 = float(self._q1[k]), float(self._q2[k])
        return NextGait(q1, q2, float(count), float(abs(after)))


_arrival_times = lru_cache(maxsize=32)(ArrivalTimes)
"""The table of a model object, made once."""


def _gaits(model: MotionPolynomial, shape: tuple[int, int]):
    """q1, q2, e^{-i e/2} and p/(1 + e^{i e/2}) [m] of a grid of gaits, each (n,)."""
    q1, q2 = model.domain.grid(shape)
    motion = model.motion(q1.ravel(), q2.ravel())
    turn = np.exp(-0.5j * motion[:, 0])
    moved = motion[:, 1] + 1j * motion[:, 2]
    return q1.ravel(), q2.ravel(), turn, moved / (1 + turn.conj())


@njit(cache=True)
def _value(table, grid, z):
    """w V(z), with w of the soft edge; grid is log radius, its step, eps, stride."""
    low, width, arrival, stride = grid
    distance = abs(z)
    share = min((distance / arrival - _CORE) / _EDGE, 1.0)
    if share <= 0.0:
        return 0.0
    ring = max((np.log(distance) - low) / width, 0.0)
    last, beyond = table.shape[0] - 1, 0.0
    if ring >= last:
        beyond = 2 * (distance - np.exp(low + width * last)) / stride
        ring = last - 1e-9
    bearings = table.shape[1]
    bearing = np.arctan2(z.imag, z.real) / (2 * np.pi) * bearings
    i, j = int(ring), int(np.floor(bearing))
    a, b = ring - i, bearing - j
    j, k = j % bearings, (j + 1) % bearings
    inner = (1 - b) * table[i, j] + b * table[i, k]
    outer = (1 - b) * table[i + 1, j] + b * table[i + 1, k]
    return share * ((1 - a) * inner + a * outer + beyond)


@njit(cache=True)
def _best(table, grid, turn, half, z):
    """Index of the best gait, and its number of half cycles."""
    least, at = np.inf, 0
    for k in range(half.size):
        middle = (z - half[k]) * turn[k]
        count = 2.0 + _value(table, grid, (middle - half[k]) * turn[k])
        share = (abs(middle) / grid[2] - _CORE) / _EDGE
        count = 1.0 + min(max(share, 0.0), 1.0) * (count - 1.0)
        # Of equal gaits the first, so that the choice is repeatable.
        if count < least - 1e-9:
            least, at = count, k
    return at, least


@njit(cache=True)
def _sweep(table, grid, turn, half):
    """One sweep of value iteration, from near to far; the largest change."""
    change = 0.0
    for i in range(table.shape[0]):
        radius = np.exp(grid[0] + grid[1] * i)
        for j in range(table.shape[1]):
            z = radius * np.exp(2j * np.pi * j / table.shape[1])
            least = _best(table, grid, turn, half, z)[1]
            change = max(change, abs(least - table[i, j]))
            table[i, j] = least
    return change
