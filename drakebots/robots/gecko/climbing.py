"""The gecko on a wall: how far it climbs, when it slips, when it falls.

The wall stays the world's xy plane and gravity is tilted, so that +x is uphill.
A foot over its limit (`drakebots.robots.gecko.holding`) lets go until the gait
sets it down again. The events of a run:

    slip   a foot that should hold let go, or moved while it held
    fall   no foot held, or the robot lost the height that is allowed; the run
           ends there, with the verdict FAILED
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import numpy as np

from drakebots.errors import InvalidInput
from drakebots.results import Result, Verdict
from drakebots.robots.gecko.drake_result import make_result
from drakebots.robots.gecko.drake_run import (
    DrakeGecko,
    about,
    build,
    simulate_built,
)
from drakebots.robots.gecko.holding import CupLimits, pulls
from drakebots.robots.gecko.parameters import FEET
from drakebots.simulation import Progress, RunEnd

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
        A result like that of :func:`drakebots.robots.gecko.drake_run.run`; its
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
