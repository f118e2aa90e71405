"""The gait pattern generator: from the gecko's pose to its next gait.

Algorithm 1, once per half cycle:

    while targets are left and d0 = |x| < arrival: take the next target
    n = 1, (q*, d) = argmin d_1
    while d > d0 and n < horizon: n = n + 1, (q*, d) = argmin d_n

with x the target in the robot's frame, eq. (22). The caller flips the sign of q1
from one half cycle to the next (gait_law.py). A plain state machine: no clock, no
engine. Source: Schiller, Seibel, Schlattmann, Front. Robot. AI 7:87 (2020),
section 5.

The algorithm may circle for ever about a target inside its turning circle (20 to
25 cm to the right: 2 of 300 random targets with Table 3; more for a robot that
turns less than believed). Ours, not the paper's: after `patience` half cycles
without getting closer, a few go straight on.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from drakebots.core.errors import InvalidInput
from drakebots.robots.gecko.generator.distance import (
    MotionModel,
    check_heading,
    check_point,
    cycle_count,
    in_body_frame,
)
from drakebots.robots.gecko.generator.planner import Plan, plan
from drakebots.robots.gecko.generator.polynomial import MotionPolynomial
from drakebots.robots.gecko.model import array, scalar

STRAIGHT_ON = 5
"""Half cycles without steering that leave a circle."""

CLOSER = 1e-3
"""By which a robot that gets closer gets closer [m]."""


@dataclass(frozen=True)
class GeneratorOptions:
    """How gaits are chosen.

    Attributes:
        arrival: epsilon, a target closer than this counts as reached [m].
        horizon: n_max, cycles to look ahead at most.
        sum: reading of eq. (19): "corrected" counts n displacements for n cycles,
            "paper" n + 1 as printed.
        motion: what a gait does; by default the paper's Table 3.
        patience: half cycles without getting closer, after which it goes
            straight on for STRAIGHT_ON; None for the algorithm as published.

    Raises:
        InvalidInput: for an arrival <= 0, a horizon < 1 or a patience < 1.
        UnknownName: for another sum.
    """

    arrival: float = field(default_factory=lambda: scalar("arrival"))
    horizon: int = field(default_factory=lambda: int(scalar("horizon")))
    sum: str = "corrected"
    motion: MotionModel = field(default_factory=MotionPolynomial.table_3)
    patience: int | None = None

    def __post_init__(self):
        cycle_count(self.horizon, self.sum)
        if self.patience is not None and self.patience < 1:
            raise InvalidInput(f"patience must be >= 1, got {self.patience}")
        if not (np.isfinite(self.arrival) and self.arrival > 0):
            raise InvalidInput(f"arrival must be > 0 m, got {self.arrival}")


@dataclass(frozen=True)
class Decision:
    """The gait of the next half cycle, and why.

    Attributes:
        q1: step length, > 0; the caller gives it the half cycle's sign [rad].
        q2: steering; positive turns right.
        n: horizon it was chosen for [cycles]; 0 when it leaves a circle.
        distance: d_n, predicted to be left after n cycles [m].
        target: index of the target it is for.
        d0: present distance to that target [m].
    """

    q1: float
    q2: float
    n: int
    distance: float
    target: int
    d0: float


class GaitPatternGenerator:
    """Walks to one target after the other.

    Args:
        targets: in the world (k, 2) [m], k >= 1.
        options: how gaits are chosen.
        arrivals: epsilon of each target (k,) [m], in place of the options'.
        via: points of a way (k,) of bool, that may be left out as soon as a
            later one, up to the next target, is reached.

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
        self.arrivals = np.array(arrivals, float)
        if self.arrivals.shape != self.targets[:, 0].shape or not (
            (self.arrivals > 0).all()
        ):
            raise InvalidInput(f"arrivals must be > 0 m, one a target, got {arrivals}")
        self.via = np.zeros(len(self.targets), bool)
        if via is not None:
            self.via[:] = via
        self.reset()

    @property
    def index(self) -> int:
        """Of the present target; their number when all were reached."""
        return self._index

    @property
    def finished(self) -> bool:
        """Whether every target was reached."""
        return self._index >= len(self.targets)

    def reset(self) -> None:
        """Starts over with the first target."""
        self._next(0)

    def decide(self, position, heading: float) -> Decision | None:
        """The gait for the next half cycle; None once every target was reached.

        Targets within arrival are passed, also several at once.

        Args:
            position: of the torso's front end in the world (2,) [m].
            heading: eps [rad].

        Raises:
            InvalidInput: for a pose that is not finite.
        """
        position = check_point(position, "position")
        heading = check_heading(heading)
        while not self.finished:
            passed = self._passed(position)
            if passed is None:
                away = in_body_frame(self.targets[self._index], position, heading)
                return self._towards(away, float(np.hypot(*away)))
            self._next(passed + 1)
        return None

    def _next(self, index: int) -> None:
        self._index, self._closest = index, np.inf
        self._vain = self._straight = 0

    def _passed(self, position: np.ndarray) -> int | None:
        """The last of the coming points that is within its arrival."""
        passed = None
        for k in range(self._index, len(self.targets)):
            gap = self.targets[k] - position
            if np.hypot(*gap) < self.arrivals[k]:
                passed = k
            if not self.via[k]:
                break
        return passed

    def _towards(self, away: np.ndarray, d0: float) -> Decision:
        if d0 < self._closest - CLOSER:
            self._closest, self._vain = d0, 0
        else:
            self._vain += 1
        patience = self.options.patience
        if patience is not None and self._vain >= patience:
            self._straight, self._vain, self._closest = STRAIGHT_ON, 0, np.inf
        if self._straight > 0:
            self._straight -= 1
            q1 = self.options.motion.domain.q1[1]
            return Decision(q1, 0.0, 0, d0, self._index, d0)
        best = growing_plan(away, d0, self.options)
        return Decision(best.q1, best.q2, best.n, best.distance, self._index, d0)


def growing_plan(
    away,
    d0: float,
    options: GeneratorOptions,
    *,
    heading: float | None = None,
    heading_weight: float = 0.0,
) -> Plan:
    """The plan of the first horizon that gets closer than d0, or of the last.

    Args:
        away: target in the robot's frame (2,) [m].
        d0: distance it has to beat [m].
        options: horizon, sum and model.
        heading, heading_weight: as in :func:`plan`.
    """
    for n in range(1, options.horizon + 1):
        best = plan(
            away,
            n,
            options.motion,
            sum=options.sum,
            heading=heading,
            heading_weight=heading_weight,
        )
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


def course() -> np.ndarray:
    """The targets of Fig. 12 (4, 2) [m]; it starts in (0, 0) with heading pi/2."""
    return array("course")
