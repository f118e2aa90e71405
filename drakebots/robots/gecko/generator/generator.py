"""The gait pattern generator: from the gecko's pose to its next gait.

Once per half cycle, a rule chooses the gait from the target x in the robot's frame,
eq. (22). The rule "published" is Algorithm 1 of the paper:

    while targets are left and d0 = |x| < arrival: take the next target
    n = 1, (q*, d) = argmin d_1
    while d > d0 and n < horizon: n = n + 1, (q*, d) = argmin d_n

It may circle endlessly about a target inside its turning circle. The rule "least time",
ours, takes the first gait of the shortest sequence that reaches the target
(`least_time`).

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
from typing import Protocol

import numpy as np

from drakebots.core.checks import (
    array,
    check,
    check_value,
    one_of,
    optional,
    positive,
    whole,
)
from drakebots.core.errors import InvalidInput
from drakebots.robots.gecko.generator.least_time import least_time
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

RULES = ("least time", "published")
"""How the next gait is chosen."""

STRAIGHT_ON = 5
"""Number of half cycles without steering that leave a circle."""

CLOSER = {"least time": 0.5, "published": 1e-3}
"""Smallest decrease that counts as progress: of half cycles, or of distance [m]."""


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
            walks straight on; None for never, as published.
        rule: "least time" or "published"; horizon and sum belong to the latter.

    Raises:
        InvalidInput: for an arrival <= 0, a horizon < 1, a patience < 1, or a motion
            model that is no polynomial with the rule "least time".
        UnknownName: for another sum or rule.
    """

    arrival: float = field(default_factory=lambda: parameters().number("arrival"))
    horizon: int = field(default_factory=lambda: int(parameters().number("horizon")))
    sum: str = "corrected"
    motion: MotionModel = field(default_factory=MotionPolynomial.table_3)
    patience: int | None = 16
    rule: str = "least time"

    def __post_init__(self):
        cycle_count(self.horizon, self.sum)
        rules = {"patience": optional(whole(1)), "rule": one_of("rule", RULES)}
        check(self, "", arrival=positive("m"), **rules)
        if self.rule == "least time" and not isinstance(self.motion, MotionPolynomial):
            raise InvalidInput(
                "the rule 'least time' needs the motion of a cycle as a polynomial; "
                "fit one, or use the rule 'published'"
            )


@dataclass(frozen=True)
class Decision:
    """The gait of the next half cycle, and its reason.

    Attributes:
        q1: step length, > 0; the caller gives it the half cycle's sign [rad].
        q2: steering; positive turns right.
        n: horizon for which the gait was chosen [cycles]; 0 when it leaves a circle.
            "least time" expects to arrive in so many.
        distance: predicted distance d_n to the target after n cycles ("least time":
            after one) [m].
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
        options, index = self.options, self.index
        if options.rule == "least time":
            best = least_time(options.motion, self.arrivals[index]).gait(gap)
            left, n = best.half_cycles, int(np.ceil(best.half_cycles / 2))
        else:
            best = growing_horizon(gap, d0, options)
            left, n = d0, best.n
        if self._straight > 0 or left < self._least - CLOSER[options.rule]:
            self._waited = 0
        else:
            self._waited += 1
        if self._waited == 0:
            self._least = np.inf if self._straight > 0 else left
        if options.patience is not None and self._waited >= options.patience:
            self._escapes += 1
            longer = self._escapes if options.rule == "least time" else 1
            self._straight = STRAIGHT_ON * longer
            self._least, self._waited = np.inf, 0
        if self._straight > 0:
            self._straight -= 1
            q1 = options.motion.domain.q1[1]
            return Decision(q1, 0.0, 0, d0, index, d0)
        return Decision(best.q1, best.q2, n, best.distance, index, d0)


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
