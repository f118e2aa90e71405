"""The gecko on a wall: how far it climbs, when it slips, when it falls.

The wall stays the world's xy plane and gravity is tilted, so that +x is uphill.
A foot over its limit (`drakebots.robots.gecko.drake.climbing`) lets go until the gait
sets it down again. The events of a run:

    slip   a foot that should hold let go, or moved while it held
    fall   no foot held, or the robot lost the height that is allowed; the run
           ends there, with the verdict FAILED
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import numpy as np

from drakebots.core.errors import InvalidInput
from drakebots.core.run import RunEnd, Verdict
from drakebots.multibody import Progress
from drakebots.results import Result
from drakebots.robots.gecko.drake.run import (
    DrakeGecko,
    about,
    build,
    make_result,
    simulate_built,
)
from drakebots.robots.gecko.model import FEET, table

# What a suction foot can hold, and what the feet have to hold on a wall.
#
# A cup pressed on by a suction force F and pulled off by N (> 0 away from the
# wall) stays as long as
#
#     N <= F   and   |S| <= mu (F - N)
#
# with its shear S in the wall's plane. The plant gives S. Its links cannot leave
# the plane, so N follows from statics: on an incline theta (+x uphill) a weight W
# whose centre is h above the wall at r_c needs
#
#     sum N_i = -W cos theta,     sum N_i (r_i - r_c) = W h sin theta [1, 0],
#
# of which the least |N| is taken: uphill feet are pulled, downhill feet pressed.
# Two feet resist tilting only along the line between them; the rest of the moment
# rests on the belly or bends the cups, and is not counted. The model is ours: a
# friction cone moved by the suction, as usual for cups.


@dataclass(frozen=True)
class CupLimits:
    """When a foot lets go.

    Attributes:
        suction: F [N].
        friction: mu of the cup's lip.
        height: h, of the robot's centre of mass above the wall [m].
        patience: a foot lets go when it is over its limit for as long [s]; the
            jerk of taking hold is shorter.
        slip: a foot that moved by more than this while it should hold has
            slipped [m].
        fall: the robot has fallen once it is this far below the highest point
            it had reached [m], or no foot holds.
    """

    suction: float = field(default_factory=lambda: table("hold")["suction"])
    friction: float = field(default_factory=lambda: table("hold")["friction"])
    height: float = field(default_factory=lambda: table("hold")["height"])
    patience: float = field(default_factory=lambda: table("hold")["patience"])
    slip: float = 0.005
    fall: float = field(default_factory=lambda: table("hold")["fall"])

    def __post_init__(self):
        for name in ("suction", "friction", "height"):
            value = getattr(self, name)
            if not (np.isfinite(value) and value >= 0):
                raise InvalidInput(f"cup limits: {name} must be >= 0, got {value}")
        for name in ("patience", "slip", "fall"):
            value = getattr(self, name)
            if not (np.isfinite(value) and value > 0):
                raise InvalidInput(f"cup limits: {name} must be > 0, got {value}")

    def load(self, shear, pull) -> np.ndarray:
        """How much of its limit each foot uses (F,): above 1 it lets go.

        Args:
            shear: |S| (F,) [N].
            pull: N (F,) [N].
        """
        room = self.suction - np.asarray(pull, float)
        cone = self.friction * room
        with np.errstate(divide="ignore", invalid="ignore"):
            used = np.where(cone > 0, np.asarray(shear, float) / cone, np.inf)
        return np.where(room < 0, np.inf, used)


def pulls(feet, held, centre, weight: float, height: float, incline: float):
    """N of each foot by statics (F,) [N]; 0 for those that do not hold.

    Args:
        feet: on the wall (F, 2) [m].
        held: which hold (F,).
        centre: r_c on the wall (2,) [m].
        weight: W [N].
        height: h [m].
        incline: theta [rad].
    """
    held = np.asarray(held, bool)
    found = np.zeros(len(held))
    if not held.any():
        return found
    arms = np.asarray(feet, float)[held] - centre
    # Rows in N: the moments divided by a length of the robot's size.
    size = max(float(np.abs(arms).max()), 1e-3)
    rows = np.vstack([np.ones(held.sum()), (arms / size).T])
    moment = weight * height * np.sin(incline) / size
    sums = np.array([-weight * np.cos(incline), moment, 0.0])
    found[held] = np.linalg.lstsq(rows, sums, rcond=None)[0]
    return found


STEEPEST = np.radians(84.0)
"""What the real robot climbs."""

GUARD_PERIOD = 0.01


@dataclass(frozen=True)
class Climb:
    """A walk up a wall.

    Attributes:
        walk: what to do; its `incline` is the wall's. By default with elastic
            limbs and cups with springs: limbs that stay arcs whatever pulls
            strain the feet against each other several times as much.
        limits: of the suction feet.
    """

    walk: DrakeGecko = field(
        default_factory=lambda: DrakeGecko(
            incline=STEEPEST, cycles=2, limb_law="beam", cups="spring"
        )
    )
    limits: CupLimits = field(default_factory=CupLimits)

    def __post_init__(self):
        if not 0 <= self.walk.incline <= np.pi / 2:
            raise InvalidInput("climb: the incline must be within 0..90 deg")


class _Guard:
    """Watches the feet's loads and the robot's height; keeps the events."""

    def __init__(self, problem: Climb, body):
        self._limits, self._body = problem.limits, body
        self._incline = problem.walk.incline
        plant = body.plant
        context = plant.CreateDefaultContext()
        self._robot = [body.limbs.instance]
        self._weight = 9.81 * plant.CalcTotalMass(context, self._robot)
        self._over = np.zeros(len(FEET))
        self._slid = np.zeros(len(FEET), bool)
        self.top, self.worst = -np.inf, np.zeros(len(FEET))
        self.events: list[dict] = []
        self._last = np.ones(len(FEET), bool)

    def __call__(self, context, held) -> np.ndarray:
        """Feet that lose hold; for :class:`SuctionSwitch`."""
        limits, suction = self._limits, self._body.suction
        time = context.get_time()
        shear = np.linalg.norm(suction.shear(context), axis=1)
        centre = self._body.plant.CalcCenterOfMassPositionInWorld(context, self._robot)
        pull = pulls(
            suction.feet(context),
            held,
            centre[:2],
            self._weight,
            limits.height,
            self._incline,
        )
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
        self.events.append(
            {
                "event": kind,
                "time_s": float(time),
                "foot": foot,
                "shear_N": float(shear),
                "pull_N": float(pull),
            }
        )

    def fallen(self, context) -> str | None:
        """Why the robot has fallen, or None; asked after every step."""
        plant = self._body.plant.GetMyContextFromRoot(context)
        joint = self._body.plant.GetJointByName("planar")
        height = joint.get_translation(plant)[0] * np.sin(self._incline)
        self.top = max(self.top, height)
        if not self._last.any():
            reason = "fell: no foot held"
        elif self.top - height > self._limits.fall:
            reason = f"fell: it slid down by {100 * (self.top - height):.1f} cm"
        else:
            return None
        foot = self.events[-1]["foot"] if self.events else ""
        self._note("fall", context.get_time(), foot)
        return reason


def climb(problem: Climb = Climb(), *, progress: Progress | None = None) -> Result:
    """Climbs; the result has `events`, `slips` and `climbed_m` in its metrics.

    Args:
        problem: the walk and the feet's limits.
        progress: called with the time reached and the end time [s].

    Returns:
        A result like that of :func:`drakebots.robots.gecko.drake.run.run`; its
        verdict is FAILED after a fall. `climbed_m` is the way of the torso's
        front end up the wall, `load` the largest share of its limit each foot
        used.

    Raises:
        InvalidInput: for a problem that cannot be built.
    """
    built = build(problem.walk)
    guard = _Guard(problem, built.body)
    switch, end, context = simulate_built(
        problem.walk, built, guard=guard, stop=guard.fallen, progress=progress
    )
    falls = [e for e in guard.events if e["event"] == "fall"]
    if falls:
        end = RunEnd(
            Verdict.FAILED,
            f"{switch.stopped[1]}, at {end.time:.4g} s on {_degrees(problem)} deg; "
            "more suction or friction would hold it",
            end.time,
            end.wall,
        )
    result = make_result(
        built,
        switch,
        end,
        context,
        **about(problem.walk),
        events=guard.events,
        slips=sum(e["event"] == "slip" for e in guard.events),
        fell=bool(falls),
        load=dict(zip(FEET, map(float, guard.worst))),
        incline_deg=float(np.degrees(problem.walk.incline)),
    )
    front = result.data.marker_position.sel(marker="front", axis="x")
    climbed = float(front[-1] - front[0])
    return replace(result, metrics={**result.metrics, "climbed_m": climbed})


def _degrees(problem: Climb) -> str:
    return f"{np.degrees(problem.walk.incline):.0f}"
