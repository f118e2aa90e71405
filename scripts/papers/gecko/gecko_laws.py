"""Gait laws of more coordinates, searched, beside the authors' law of q1 and q2.

python scripts/papers/gecko/gecko_laws.py          # some minutes of processor time
python scripts/papers/gecko/gecko_laws.py --quick  # one straight gait, by poses only

The paper calls the steering of its law "only one possible model". A gait is ten
reference angles, five at the end of each half cycle. Straight gaits mirror theirs,
which leaves five coordinates, and go as far as they can in a cycle; turning gaits have
all ten, and turn as much as they can without going less far than the law. Both are held
to what the law's own gait takes:

* equal time: two half cycles;
* equal bending: the sum of |alpha(+) - alpha(-)| over the limbs is at most the law's;
* equal limits: straight, those of the law's largest gait, legs 0 to 90 deg, torso +-90;
  turning, the law's own largest angles of a leg and of the torso.

SLSQP on the settled cycle of the pose step, with the exact derivatives of
`motion_jacobian`, from several starts. "torso first" is not searched: the torso bends
as far as the limits and the law's bending allow, and the legs share the rest, evenly
about 45 deg. All are then walked by the default Drake robot, which bends its limbs by
pressure and was no part of the search: what it does not confirm is no gain.

JSON: straight, turning.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from scipy.optimize import minimize

from drakebots.cli.output import one_line_errors, print_table
from drakebots.core.errors import NoSolution
from drakebots.robots.gecko import Drake, Walk, simulate_walk
from drakebots.robots.gecko.engines import (
    CycleMotion,
    follow,
    motion_jacobian,
    references,
)
from drakebots.robots.gecko.model import LEGS, gecko

sys.path.append(str(Path(__file__).parents[2] / "bench"))
from measurement import Measurement

ROBOT, DEG = gecko(), np.pi / 180
HALF_CYCLES = 8
"""Half cycles of a walk, the last two of which count."""

MIRROR = np.zeros((5, 5))
MIRROR[range(5), [1, 0, 2, 4, 3]] = 1, 1, -1, 1, 1
"""Maps the angles of a pose to those of its mirror image."""

STRAIGHT = (50, 70, 90)
TURNING = ((60, 0.3), (80, 0.3))
"""The law's gaits: q1 [deg]; q1 [deg] and q2."""


def moved(angles: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Rotation [deg] and way [cm] of a cycle (2,), and their derivatives (2, 2, 5)."""
    poses = follow(ROBOT, angles, HALF_CYCLES)
    cycle, by = CycleMotion.last(poses), motion_jacobian(ROBOT, angles, poses)
    way = np.hypot(cycle.forward, cycle.left)
    by_way = (cycle.forward * by[1] + cycle.left * by[2]) / way
    value = np.array([cycle.rotation / DEG, 100 * way])
    return value, np.array([by[0] / DEG, 100 * by_way])


def bending(angles: np.ndarray) -> float:
    """Sum over the limbs of |alpha(+) - alpha(-)| [rad]."""
    return float(np.abs(angles[0] - angles[1]).sum())


class Search:
    """A gait beside the law's: `chart` maps its coordinates to the ten angles.

    Args:
        law: the law's angles (2, 5) [rad].
        straight: whether it mirrors its poses, and goes far; else it turns.
    """

    def __init__(self, law: np.ndarray, straight: bool):
        self.law, self.straight = law, straight
        self.chart = np.vstack([np.eye(5), MIRROR]) if straight else np.eye(10)
        leg = 90 * DEG if straight else law[:, LEGS].max()
        torso = 90 * DEG if straight else abs(law[:, 2]).max()
        low, high = np.zeros(5), np.full(5, leg)
        low[2], high[2] = -torso, torso
        ends = np.array([low, high])
        self.bounds = list(zip(*np.tile(ends, (1, self.chart.shape[1] // 5))))
        self.way = moved(law)[0][1]
        self._at, self._moved = None, None

    def angles(self, y: np.ndarray) -> np.ndarray:
        """The gait's angles (2, 5) [rad]."""
        return (self.chart @ y).reshape(2, 5)

    def motion(self, y: np.ndarray):
        """:func:`moved` of coordinates, with derivatives (2, n) by them."""
        if self._at is None or not np.array_equal(self._at, y):
            value, by = moved(self.angles(y))
            self._at, self._moved = y.copy(), (value, by.reshape(2, 10) @ self.chart)
        return self._moved

    def cost(self, y: np.ndarray):
        """What is made small, and its gradient: way [dm] or rotation [10 deg]."""
        value, by = self.motion(y)
        row, sign = (1, -1.0) if self.straight else (0, 1.0)
        return sign * value[row] / 10, sign * by[row] / 10

    def room(self, y: np.ndarray) -> np.ndarray:
        """What must not be negative: bending left [rad], way to spare [dm]."""
        left = bending(self.law) - bending(self.angles(y))
        if self.straight:
            return np.array([left])
        return np.array([left, (self.motion(y)[0][1] - self.way) / 10])

    def by_room(self, y: np.ndarray) -> np.ndarray:
        """Its derivatives."""
        first, second = self.angles(y)
        sign = np.sign(first - second)
        rows = [-np.concatenate([sign, -sign]) @ self.chart]
        return np.array(rows if self.straight else [*rows, self.motion(y)[1][1] / 10])

    def run(self, starts: int, iterations: int) -> np.ndarray:
        """The best angles (2, 5) [rad]; the law's where none is better."""
        random, best = np.random.default_rng(0), self.law
        own = self.law.ravel()[: self.chart.shape[1]]
        limits = {"type": "ineq", "fun": self.room, "jac": self.by_room}
        for spread in np.linspace(0.0, 0.25, starts):
            y = own + random.normal(0, spread, own.size)
            y = np.clip(y, *np.transpose(self.bounds))
            try:
                found = minimize(
                    self.cost,
                    y,
                    jac=True,
                    bounds=self.bounds,
                    constraints=limits,
                    method="SLSQP",
                    options={"maxiter": iterations},
                ).x
                if self.room(found).min() > -1e-6:
                    best = min(best, self.angles(found), key=self._merit)
            except NoSolution:  # a line search left the poses that there are
                continue
        return best

    def _merit(self, angles: np.ndarray) -> float:
        value = moved(angles)[0]
        return -value[1] if self.straight else value[0]


def torso_first(law: np.ndarray) -> np.ndarray:
    """The straight gait (2, 5) [rad] whose torso bends most at the law's bending."""
    torso = min(90 * DEG, bending(law) / 2)
    swing = (bending(law) - 2 * torso) / len(LEGS) / 2
    legs = 45 * DEG + swing * np.array([-1, 1, -1, 1])
    first = np.insert(legs, 2, torso)
    return np.stack([first, MIRROR @ first])


def in_drake(angles: np.ndarray) -> tuple[float, float]:
    """Rotation [deg] and way [cm] of the third cycle of the default Drake robot."""
    # Straight gaits have no q2; the law's q1 and q2 only label the half cycles.
    both = tuple(map(tuple, angles.tolist()))
    m = simulate_walk(Walk(cycles=3, references=both, engine=Drake())).metrics
    return m["rotation_per_cycle_rad"] / DEG, 100 * m["distance_per_cycle_m"]


def beside_the_law(law: np.ndarray, straight: bool, quick: bool) -> dict:
    """One row: the law's gait and the others."""
    found = Search(law, straight).run(*((1, 8) if quick else (5, 40)))
    gaits, row = {"law": law, "found": found}, {}
    if straight:
        gaits["torso_first"] = torso_first(law)
    for name, angles in gaits.items():
        rotation, way = moved(angles)[0]
        row |= {f"{name}_deg": rotation, f"{name}_cm": way}
        row[f"{name}_bending_deg"] = bending(angles) / DEG
        if not quick:
            turned, far = in_drake(angles)
            row |= {f"{name}_drake_deg": turned, f"{name}_drake_cm": far}
    return row | {"found_angles_deg": (found / DEG).round(1).tolist()}


def main(argv: Sequence[str] | None = None) -> dict:
    """Searches; prints tables and one JSON object, and returns it."""
    parser = Measurement(__doc__, quick="one straight gait, by poses only")
    args = parser.parse_args(argv)
    straight = {
        f"{q1} deg": beside_the_law(references(ROBOT, q1 * DEG, 0.0), True, args.quick)
        for q1 in (STRAIGHT[1:2] if args.quick else STRAIGHT)
    }
    print_table("straight gaits: five coordinates beside q1", straight)
    turning = {
        f"{q1} deg, {q2}": beside_the_law(
            references(ROBOT, q1 * DEG, q2), False, args.quick
        )
        for q1, q2 in (() if args.quick else TURNING)
    }
    print_table("turning gaits: ten coordinates beside q1 and q2", turning)
    return parser.report({"straight": straight, "turning": turning})


if __name__ == "__main__":
    with one_line_errors("gecko_laws"):
        main()
