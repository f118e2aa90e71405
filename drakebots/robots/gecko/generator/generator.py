"""The gait pattern generator: from the gecko's pose to its next gait.

Algorithm 1, once per half cycle:

    while targets are left and d0 = |x| < arrival: take the next target
    n = 1, (q*, d) = argmin d_1
    while d > d0 and n < horizon: n = n + 1, (q*, d) = argmin d_n

with x the target in the robot's frame, eq. (22). The caller flips the sign of q1
from one half cycle to the next (`gait_law`). The generator is a plain state machine
without a clock or an engine. Source: Schiller, Seibel, Schlattmann, Front. Robot. AI
7:87 (2020), section 5.

The algorithm may circle endlessly about a target inside its turning circle (20 to
25 cm to the right: 2 of 300 random targets with Table 3; more for a robot that
turns less than its model). An addition to the paper: after `patience` half cycles
without progress, the robot walks straight on for a few half cycles.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Protocol

import numpy as np

from drakebots.core.checks import array, check, check_value, optional, positive, whole
from drakebots.core.errors import InvalidInput
from drakebots.robots.gecko.generator.motion import MotionModel, MotionPolynomial
from drakebots.robots.gecko.generator.planner import (
    BestGait,
    best_gait,
    check_heading,
    check_point,
    cycle_count,
    rotated_back,
)
from drakebots.robots.gecko.model import parameters

STRAIGHT_ON = 5
"""Number of half cycles without steering that leave a circle."""

CLOSER = 1e-3
"""Smallest decrease of the distance that counts as progress [m]."""


@dataclass(frozen=True)
class GeneratorOptions:
    """How gaits are chosen.

    Attributes:
        arrival: distance epsilon below which a target counts as reached [m].
        horizon: largest number n_max of cycles to look ahead.
        sum: reading of eq. (19): "corrected" counts n displacements for n cycles,
            "paper" n + 1 as printed.
        motion: motion model; the paper's Table 3 by default.
        patience: number of half cycles without progress, after which the robot
            walks straight on for STRAIGHT_ON; None for the algorithm as published.

    Raises:
        InvalidInput: for an arrival <= 0, a horizon < 1 or a patience < 1.
        UnknownName: for another sum.
    """

    arrival: float = field(default_factory=lambda: parameters().number("arrival"))
    horizon: int = field(default_factory=lambda: int(parameters().number("horizon")))
    sum: str = "corrected"
    motion: MotionModel = field(default_factory=MotionPolynomial.table_3)
    patience: int | None = None

    def __post_init__(self):
        cycle_count(self.horizon, self.sum)
        check(self, "", arrival=positive("m"), patience=optional(whole(1)))


@dataclass(frozen=True)
class Decision:
    """The gait of the next half cycle, and its reason.

    Attributes:
        q1: step length, > 0; the caller gives it the half cycle's sign [rad].
        q2: steering; positive turns right.
        n: horizon for which the gait was chosen [cycles]; 0 when it leaves a circle.
        distance: predicted distance d_n to the target after n cycles [m].
        target: index of the target.
        d0: present distance to that target [m].
    """

    q1: float
    q2: float
    n: int
    distance: float
    target: int
    d0: float


class Generator(Protocol):
    """Anything that chooses gaits: a generator of targets or of a path."""

    def decide(self, position, heading: float) -> Decision | None:
        """The gait of the next half cycle, or None at the end."""
        ...


class GaitPatternGenerator:
    """Walks to one target after the other.

    Args:
        targets: targets in the world (k, 2) [m], k >= 1.
        options: how gaits are chosen.
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
        self, targets, options: GeneratorOptions | None = None, arrivals=None, via=None
    ):
        self.options = options or GeneratorOptions()
        self.targets = check_targets(targets)
        if arrivals is None:
            arrivals = np.full(len(self.targets), self.options.arrival)
        one_each = array((len(self.targets),), "m", entry=positive("m"))
        self.arrivals = check_value("arrivals", arrivals, one_each)
        self.via = np.zeros(len(self.targets), bool)
        if via is not None:
            self.via[:] = via
        self.reset()

    @property
    def finished(self) -> bool:
        """Whether every target was reached."""
        return self.index >= len(self.targets)

    def reset(self) -> None:
        """Starts over with the first target."""
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
        while not self.finished:
            passed = self._passed(position)
            if passed is None:
                gap = rotated_back(self.targets[self.index] - position, heading)
                return self._towards(gap, float(np.hypot(*gap)))
            self._next(passed + 1)
        return None

    def _next(self, index: int) -> None:
        self.index, self._closest = index, np.inf
        self._waited = self._straight = 0

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
        if d0 < self._closest - CLOSER:
            self._closest, self._waited = d0, 0
        else:
            self._waited += 1
        patience = self.options.patience
        if patience is not None and self._waited >= patience:
            self._straight, self._waited, self._closest = STRAIGHT_ON, 0, np.inf
        if self._straight > 0:
            self._straight -= 1
            q1 = self.options.motion.domain.q1[1]
            return Decision(q1, 0.0, 0, d0, self.index, d0)
        best = growing_horizon(gap, d0, self.options)
        return Decision(best.q1, best.q2, best.n, best.distance, self.index, d0)


def growing_horizon(gap, d0: float, options: GeneratorOptions, **heading) -> BestGait:
    """The best gait of the first horizon that gets closer than d0, or of the last.

    Args:
        gap: target in the robot's frame (2,) [m].
        d0: present distance [m].
        options: horizon, sum and motion model.
        heading: `heading` and `heading_weight` of :func:`best_gait`.
    """
    for n in range(1, options.horizon + 1):
        best = best_gait(gap, n, options.motion, sum=options.sum, **heading)
        if best.distance <= d0:
            break
    return best


def check_targets(targets) -> np.ndarray:
    """Targets as an array (k, 2) [m].

    Raises:
        InvalidInput: naming the first target that is wrong.
    """
    try:
        points = np.array(targets, float)
    except (TypeError, ValueError) as error:
        raise InvalidInput("targets must be numbers (k, 2) in m") from error
    if points.ndim != 2 or points.shape[1] != 2 or not len(points):
        raise InvalidInput(f"targets must be (k, 2) in m, k >= 1, got {points.shape}")
    for index, point in enumerate(points):
        check_point(point, f"target {index}")
    points.setflags(write=False)
    return points
