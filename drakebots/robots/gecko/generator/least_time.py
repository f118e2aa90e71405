"""The gait that takes the gecko to its target in the fewest half cycles.

Where a target lies in the robot's frame, z = x + iy, is all that a motion model needs
to predict every later cycle. So the least number V of half cycles to a disc of radius
eps about the target is a function of z alone, and satisfies Bellman's equation

    V(z) = min_q { 1 where |z_1| < eps;  2 where |z_2| < eps;  2 + V(z_2) },
    z_1 = e^{-i e/2} (z - p/(1 + e^{i e/2})),   z_2 = e^{-i e} (z - p)

with e(q) the rotation and p(q) the displacement of a cycle of gait q; z_1 follows after
half of it. A gait counts in whole cycles, because the motion of a half cycle depends on
the gait before. :class:`LeastTime` solves this by value iteration on a grid of log |z|
and bearing; in use, the first gait of the best sequence is walked for a half cycle, and
the choice is made again.

**Near misses.** The disc has a soft edge: where a motion ends at |z| = (0.5 + w) eps,
it is worth w V, 0 <= w <= 1. Otherwise the best sequence often only touches the disc,
and a robot that moves 1 cm differently turns about for twenty half cycles.

**Arrival.** On its own model the rule arrives: V falls by one every half cycle. The
table of Algorithm 1's distances has no such property, so that algorithm may circle
(`generator`). Source: Bellman, Dynamic Programming, 1957; the rule is ours.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from drakebots.core.checks import check_value, positive
from drakebots.core.kernels import njit
from drakebots.robots.gecko.generator.motion import MotionPolynomial

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


class LeastTime:
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
        return NextGait(
            float(self._q1[k]), float(self._q2[k]), float(count), float(abs(after))
        )


@lru_cache(maxsize=32)
def least_time(model: MotionPolynomial, arrival: float) -> LeastTime:
    """The table of a model object, made once."""
    return LeastTime(model, arrival)


def _gaits(model: MotionPolynomial, shape: tuple[int, int]):
    """q1, q2, e^{-i e/2} and p/(1 + e^{i e/2}) [m] of a grid of gaits, each (n,)."""
    q1, q2 = np.meshgrid(
        np.linspace(*model.domain.q1, shape[0]),
        np.linspace(*model.domain.q2, shape[1]),
        indexing="ij",
    )
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
