"""The gecko on a wall: how far it climbs, when feet slip, when it falls.

The wall stays the world's xy plane and gravity is tilted, so that +x is uphill. A cup
pressed on by a suction force F and pulled off by N (> 0 away from the wall) stays as
long as

    N <= F   and   |S| <= mu (F - N)

with its shear force S in the wall's plane. The plant gives S. Its links cannot leave
the plane, so N follows from statics: on an incline theta a weight W whose centre of
mass is at height h above the wall at r_c needs

    sum N_i = -W cos theta,     sum N_i (r_i - r_c) = W h sin theta [1, 0],

of which the solution with the least |N| is taken: uphill feet are pulled, downhill feet
pressed. On an overhang cos theta < 0, and the suction carries the weight. Two feet
resist tilting only along the line between them; the belly and the
bending of the cups take the rest of the moment, which is not modelled. The model is
ours: a friction cone shifted by the suction force, as usual for cups.

A foot over its limit comes off until the gait fixes it again. The events of a climb:

    slip   a foot that should be fixed came off, or moved
    fall   no foot is fixed, or the robot lost more height than allowed; the
           simulation ends there, with the verdict FAILED
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import numpy as np

from drakebots.core.checks import check, non_negative, positive
from drakebots.core.run import Progress, Stop, failed
from drakebots.core.units import GRAVITY
from drakebots.results import Result
from drakebots.robots.gecko.drake.diagram import DrakeWalk, build
from drakebots.robots.gecko.drake.plant import GeckoPlant
from drakebots.robots.gecko.drake.walk import simulate_built
from drakebots.robots.gecko.model import FEET, parameters

STEEPEST = np.radians(84.0)
"""Steepest wall that the real robot climbs [rad]."""

GUARD_PERIOD = 0.01
"""Period at which the feet's loads are checked [s]."""


def _default(name: str) -> float:
    return parameters().table("hold")[name]


@dataclass(frozen=True)
class CupLimits:
    """When a foot comes off.

    Attributes:
        suction: suction force F [N].
        friction: coefficient of friction mu of the cup's lip.
        height: height h of the robot's centre of mass above the wall [m].
        patience: time for which a foot must exceed its limit to come off [s]; the
            jerk after attaching is shorter.
        slip: displacement of a fixed foot that counts as a slip [m].
        fall: loss of height, from the highest point reached, that counts as a
            fall [m].
    """

    suction: float = field(default_factory=lambda: _default("suction"))
    friction: float = field(default_factory=lambda: _default("friction"))
    height: float = field(default_factory=lambda: _default("height"))
    patience: float = field(default_factory=lambda: _default("patience"))
    slip: float = 0.005
    fall: float = field(default_factory=lambda: _default("fall"))

    def __post_init__(self):
        check(
            self,
            "cup limits",
            suction=non_negative("N"),
            friction=non_negative(),
            height=non_negative("m"),
            patience=positive("s"),
            slip=positive("m"),
            fall=positive("m"),
        )

    def load(self, shear, pull) -> np.ndarray:
        """Load of each foot as a share of its limit (F,): above 1 it comes off.

        Args:
            shear: shear forces |S| (F,) [N].
            pull: pull-off forces N (F,) [N].
        """
        room = self.suction - np.asarray(pull, float)
        cone = self.friction * room
        with np.errstate(divide="ignore", invalid="ignore"):
            used = np.where(cone > 0, np.asarray(shear, float) / cone, np.inf)
        return np.where(room < 0, np.inf, used)


def pulls(feet, held, centre, weight: float, height: float, incline: float):
    """Pull-off force N of each foot by statics (F,) [N]; 0 for free feet.

    Args:
        feet: positions on the wall (F, 2) [m].
        held: whether each foot is fixed (F,).
        centre: centre of mass r_c projected on the wall (2,) [m].
        weight: weight W [N].
        height: height h of the centre of mass [m].
        incline: inclination theta [rad].
    """
    held = np.asarray(held, bool)
    found = np.zeros(len(held))
    if not held.any():
        return found
    arms = np.asarray(feet, float)[held] - centre
    # All rows are in N: the moments are divided by a length of the robot's size.
    size = max(float(np.abs(arms).max()), 1e-3)
    rows = np.vstack([np.ones(held.sum()), (arms / size).T])
    moment = weight * height * np.sin(incline) / size
    sums = np.array([-weight * np.cos(incline), moment, 0.0])
    found[held] = np.linalg.lstsq(rows, sums, rcond=None)[0]
    return found


@dataclass(frozen=True)
class Climb:
    """A walk up a wall.

    Attributes:
        walk: the walk; its `incline` is the wall's. With elastic limbs and cups with
            springs: limbs that stay arcs under any force strain the feet against each
            other several times as much.
        limits: limits of the suction feet.
    """

    walk: DrakeWalk = field(
        default_factory=lambda: DrakeWalk(incline=STEEPEST, cycles=2)
    )
    limits: CupLimits = field(default_factory=CupLimits)


def simulate_climb(
    problem: Climb = Climb(), *, progress: Progress | None = None
) -> Result:
    """Simulates a climb.

    Args:
        problem: the walk and the feet's limits.
        progress: called with the time reached and the end time [s].

    Returns:
        A result like that of :func:`simulate_walk`, with the verdict FAILED after a
        fall. Its metrics also hold the `events`, the number of `slips`, whether the
        robot `fell`, the largest `load` of each foot as a share of its limit, and
        `climbed_m`, the distance of the torso's front end up the wall.

    Raises:
        InvalidInput: for a problem that cannot be built.
    """
    built = build(problem.walk)
    guard = _Guard(problem, built.body)
    run = simulate_built(
        problem.walk, built, guard=guard, stop=guard.fallen, progress=progress
    )
    kinds = [event["event"] for event in guard.events]
    result = run.result(
        events=guard.events,
        slips=kinds.count("slip"),
        fell="fall" in kinds,
        load=dict(zip(FEET, map(float, guard.worst))),
        incline_deg=float(np.degrees(problem.walk.incline)),
    )
    front = result.data.marker_position.sel(marker="front", axis="x")
    climbed = float(front[-1] - front[0])
    return replace(result, metrics={**result.metrics, "climbed_m": climbed})


class _Guard:
    """Monitors the feet's loads and the robot's height; collects the events."""

    def __init__(self, problem: Climb, body: GeckoPlant):
        self._limits, self._body = problem.limits, body
        self._incline = problem.walk.incline
        plant = body.plant
        context = plant.CreateDefaultContext()
        self._robot = [body.limbs.instance]
        self._weight = GRAVITY * plant.CalcTotalMass(context, self._robot)
        self._over = np.zeros(len(FEET))
        self._slid = np.zeros(len(FEET), bool)
        self.top, self.worst = -np.inf, np.zeros(len(FEET))
        self.events: list[dict] = []
        self._last = np.ones(len(FEET), bool)

    def __call__(self, context, held) -> np.ndarray:
        """Feet that come off (F,) of bool; for :class:`SuctionSwitch`."""
        limits, suction = self._limits, self._body.suction
        time = context.get_time()
        shear = np.linalg.norm(suction.shear(context), axis=1)
        centre = self._body.plant.CalcCenterOfMassPositionInWorld(context, self._robot)
        loads = self._weight, limits.height, self._incline
        pull = pulls(suction.feet(context), held, centre[:2], *loads)
        used = np.where(held, limits.load(shear, pull), 0.0)
        self._over = np.where(used > 1, self._over + GUARD_PERIOD, 0.0)
        lost = held & (self._over > limits.patience)
        calm = held & (self._over == 0)
        self.worst[calm] = np.maximum(self.worst[calm], used[calm])
        for k in np.flatnonzero(lost):
            self._note("slip", time, FEET[k], shear[k], pull[k])
            self._over[k] = 0.0
        slid = held & (suction.drift(context) > limits.slip)
        for k in np.flatnonzero(slid & ~self._slid):
            self._note("slip", time, FEET[k], shear[k], pull[k])
        self._slid = slid
        self._last = held & ~lost
        return lost

    def _note(self, kind: str, time: float, foot: str, shear=0.0, pull=0.0) -> None:
        forces = {"shear_N": float(shear), "pull_N": float(pull)}
        event = {"event": kind, "time_s": float(time), "foot": foot, **forces}
        self.events.append(event)

    def fallen(self, context) -> Stop | None:
        """Ends the climb after a fall; called after every step."""
        plant, time = self._body.plant, context.get_time()
        joint = plant.GetJointByName("planar")
        position = joint.get_translation(plant.GetMyContextFromRoot(context))
        height = position[0] * np.sin(self._incline)
        self.top = max(self.top, height)
        if not self._last.any():
            reason = "no foot held"
        elif self.top - height > self._limits.fall:
            reason = f"it slid down by {100 * (self.top - height):.1f} cm"
        else:
            return None
        foot = self.events[-1]["foot"] if self.events else ""
        self._note("fall", time, foot)
        return failed(
            f"fell: {reason}, at {time:.4g} s on {np.degrees(self._incline):.0f} deg; "
            "more suction or friction would hold it"
        )
