"""What is asked of a controlled robot, and what happens to it: :class:`Control`."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np

from drakebots.core.checks import (
    array,
    between,
    check,
    check_knots,
    check_log,
    check_value,
    finite,
    non_negative,
    one_of,
    optional,
    positive,
    whole,
)
from drakebots.core.errors import InvalidInput
from drakebots.model import Model
from drakebots.trajopt import Flat, Step, Terrain
from drakebots.trajopt.mpc import Push, Trot

CONTROLLERS = ("mpc", "tracking", "sampling")
"""Contact-implicit control; whole-body control of a plan that is made once; MPPI."""

GAITS = ("auto", "none", "trot")
"""Clocks of the feet: none, or every second leg in turn, as :class:`Trot` has it."""

FEEDBACK = ("gains", "servos")
"""What holds the robot to the plan between solves: the gains of the last solve, for
the contact that it planned, or servos at the motors."""

STARTS = ("standing", "side")
"""How a robot begins: in its standing pose, or the same pose lying on its left."""

SIZE = 0.2
"""Height of the centre of mass from which on a robot takes the defaults as they are
[m]. With a lower centre of mass, at l, lengths shrink with l and times and speeds with
sqrt(l), so that motions are dynamically similar (Alexander and Jayes 1983)."""

SPEED = 0.4
"""Speed to a goal by default, of a robot of SIZE or more [m/s]."""

INTERVAL = 0.05
"""Interval of the horizon by default, of a robot of SIZE or more [s]."""

RIGHTING_INTERVAL = 0.03
"""The same where the robot has to get up: a leg that lies turns faster, and touches in
more places, than one that walks."""

REACH = 50.0
"""Largest coordinate of a goal [m]: what is further away is no number of metres."""


@dataclass(frozen=True)
class Control:
    """A robot under a controller that knows its model, on ground that it does not.

    Attributes:
        model: the model: a name, a path, or a loaded model.
        controller: mpc (contact-implicit), tracking (whole-body control of one plan)
            or sampling (MPPI, within the same processor time).
        gait: clock of the feet: none, trot (every second leg in turn: diagonal pairs
            of four, the tripods of six), or auto (trot for robots of two legs or more
            that have somewhere to go, else none); in Python also a Trot.
        goal: where the base is to go, from its start (x, y) [m]; None to go ahead at
            `speed` and `turn`.
        speed: speed on the way [m/s]; None for 0.4 with a goal, less for small
            robots (lower than 0.2 m), else 0.
        turn: rate of the heading, which counts only without a goal [rad/s].
        feedback: what holds the robot to its plan between the solves of
            contact-implicit control: the gains of the last solve, or servos at the
            motors (better for light legs, and on steps).
        start: how it begins: standing, or side (lying on its left; contact-implicit
            control gets it up, by poses of the SRDF beside the model).
        pushes: forces on its base.
        terrain: the ground, which the controllers know: Flat or Step.
        friction: friction coefficient that the controllers count on.
        friction_error: share by which the ground's friction differs from `friction`.
        mass_error: share by which the masses differ from the model's.
        duration: duration of the run [s].
        step: length of an interval of the horizon [s]; None for 0.05, from the side
            0.03, less for small robots (lower than 0.2 m).
        knots: number of intervals of the horizon.
        period: time between two solves [s].
        iterations: Newton steps of a solve.
        delay: how late a solve takes effect [s]; None for as long as it took.
        budget: processor time of the sampling controller for a plan, in periods.
        seed: seed of the sampling controller's noise.
        time_step: time step of the plant [s].
        log_period: period of the stored samples [s].
        time_limit: limit of the wall time [s]; what was reached is kept.

    Raises:
        InvalidInput: for a value out of range.
        UnknownName: for an unknown controller, gait or start.
    """

    model: str | Path | Model
    controller: str = "mpc"
    gait: str | Trot = "auto"
    goal: tuple[float, float] | None = None
    speed: float | None = None
    turn: float = 0.0
    feedback: str = "gains"
    start: str = "standing"
    pushes: tuple[Push, ...] = ()
    terrain: Terrain = field(default_factory=Flat)
    friction: float = 0.7
    friction_error: float = 0.0
    mass_error: float = 0.0
    duration: float = 4.0
    step: float | None = None
    knots: int = 20
    period: float = 1 / 60
    iterations: int = 2
    delay: float | None = None
    budget: float = 1.0
    seed: int = 0
    time_step: float = 1e-3
    log_period: float = 0.01
    time_limit: float | None = None

    def __post_init__(self):
        check(
            self,
            "",
            controller=one_of("controller", CONTROLLERS),
            speed=optional(non_negative("m/s")),
            turn=finite("rad/s"),
            feedback=one_of("feedback", FEEDBACK),
            start=one_of("start", STARTS),
            friction=non_negative(),
            friction_error=between(-0.9, 9.0),
            mass_error=between(-0.9, 9.0),
            duration=positive("s"),
            step=optional(positive("s")),
            knots=whole(2),
            period=positive("s"),
            iterations=whole(1),
            delay=optional(non_negative("s")),
            budget=positive(),
            seed=whole(0),
            time_step=positive("s"),
            log_period=positive("s"),
            time_limit=optional(positive("s")),
        )
        if not isinstance(self.gait, Trot):
            check(self, "", gait=one_of("gait", GAITS))
        check_log(self.duration, self.log_period)
        check_knots(self.knots)
        if not isinstance(self.terrain, Flat | Step):
            raise InvalidInput(
                f"terrain {type(self.terrain).__name__} has no shape for the plant; "
                "give Flat or Step"
            )
        if self.goal is not None:
            goal = check_value("goal", self.goal, array((2,), "m"))
            if np.abs(goal).max() > REACH:
                raise InvalidInput(
                    f"goal {goal[0]:g}, {goal[1]:g} m is out of the terrain, which "
                    f"reaches {REACH:g} m; is it in mm?"
                )
            object.__setattr__(self, "goal", (float(goal[0]), float(goal[1])))

    def sized(self, height: float, legs: int) -> Control:
        """The same, with the defaults of a robot.

        Args:
            height: of its centre of mass [m].
            legs: number of its legs.
        """
        share = min(1.0, height / SIZE)
        pace, clock, gait = self.speed, np.sqrt(share), self.gait
        away = self.goal is not None and any(self.goal)
        if pace is None:
            pace = SPEED * clock if away else 0.0
        if gait == "auto":
            goes = away if self.goal is not None else bool(pace or self.turn)
            gait = "trot" if goes and legs > 1 and self.start != "side" else "none"
        if gait == "trot":
            gait = Trot()
            gait = Trot(clock * gait.period, gait.duty, share * gait.clearance)
        step = self.step
        if step is None:
            rising = self.start == "side"
            step = clock * (RIGHTING_INTERVAL if rising else INTERVAL)
        return replace(self, speed=pace, step=step, gait=gait)
