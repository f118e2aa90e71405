"""The problem of moving a user's own model, and the values chosen by default."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from drakebots.core.checks import (
    check,
    check_knots,
    check_types,
    check_value,
    each,
    finite,
    flag,
    non_negative,
    one_of,
    optional,
    positive,
    whole,
)
from drakebots.core.errors import InvalidInput
from drakebots.model import Model
from drakebots.trajopt.contact_implicit import INTEGRATORS
from drakebots.trajopt.locomotion.standing import Standing
from drakebots.trajopt.terrain import Flat, Terrain

KINDS = ("walk", "hop", "turn", "goal")

GAITS = ("alternating", "crawl")

CONTACTS = ("gait", "free")

SWING = 0.5
"""Share of the duration for which the first guess lifts a foot."""

FREE = 0.4
"""Share by which a duration that was not given may change."""


@dataclass(frozen=True)
class LocomotionWeights:
    """Weights of the cost, in natural units (see :mod:`.standing`).

    Attributes:
        effort: weight of the squared inputs.
        smooth: weight of the squared velocity changes between intervals.
        pose: weight of the squared deviation of joints and tilt from standing.
        friction: weight of the power lost in slip.
        slack: increasing weights of the exact penalty on the slack, one a stage; the
            last stage is the first one that leaves no slack.
    """

    effort: float = 1.0
    smooth: float = 0.1
    pose: float = 1.0
    friction: float = 10.0
    slack: tuple[float, ...] = (1.0, 10.0, 100.0, 1e3, 1e4, 1e5)

    def __post_init__(self):
        check_types(self, "weights")
        names = ("effort", "smooth", "pose", "friction")
        check(self, "weight", **dict.fromkeys(names, non_negative()))
        check(self, "weight", slack=each(positive(), "numbers"))
        if not self.slack:
            raise InvalidInput("weight slack needs one value or more")


@dataclass(frozen=True)
class LocomotionProblem:
    """A walk, hop, turn or goal for a model.

    Attributes:
        model: the model: a name, a path, or a loaded model. It has feet and
            actuators, and a free base or joints of its own to the world (a planar
            robot).
        kind: the motion: "walk" (a cycle that repeats `forward` further on), "hop"
            (up and down again, with the feet `height` above the ground halfway),
            "turn" (by `turn`, from standing to standing) or "goal" (from standing
            to standing, `forward`, `sideways` and `turn` away).
        forward: distance along x [m]; by default half the height of the centre of
            mass in a walk, else 0.
        sideways: distance along y in a goal [m]; 0 by default.
        height: height of the feet above the ground at a hop's apex, or halfway
            through their swings in a walk [m]; by default a fifth of the height of
            the centre of mass in a hop, and no such bound in a walk.
        turn: angle about z [rad], counterclockwise; by default 0.2 in a turn,
            else 0.
        duration: duration of the motion [s]; by default chosen by size and
            gravity, and free to change by the share :data:`FREE`.
        knots: number of knots; with contacts by a gait, of one step of all legs.
        gait: "crawl" (one leg after the other) or "alternating" (every other leg
            around the robot at once: a trot on four); by default a crawl for robots
            of four legs or more with two actuators each, and alternating where there
            is no such motion or for other robots.
        contacts: "gait" (the gait's footfall is kept: fast, and every foot lifts and
            carries in its turn) or "free" (the program decides which foot touches
            when). By default the gait's, and free where there is no such motion.
        clearance: height of a foot halfway through its swing [m]; by default a tenth
            of the height of the centre of mass with contacts by a gait, and no such
            bound with free contacts, which know of swings in walks only.
        friction: friction coefficient of the ground.
        terrain: ground under the feet, in SI.
        periodic: whether the last state repeats the first; by default in walks
            only. A turn cannot be periodic: its momentum would have to repeat in
            another direction.
        torque: limits of the inputs, one for all or by actuator [N m, N]; by
            default the model's effort limits.
        pose: standing positions by joint that replace the model's defaults [rad, m].
        phases: share of a walk's cycle, by foot, at which the foot lifts, for
            :data:`SWING` of the cycle unless the gait is a crawl; feet that are not
            named stay down. With free contacts it is a hint for the first guess and
            not a bound, by default every other foot around the robot at once; with
            {} there is no hint, contacts are free, and a symmetric robot finds
            symmetric motions, such as bounds.
        weights: weights of the cost.
        integrator: "midpoint" (second order) or "euler" (first order).

    Raises:
        InvalidInput, UnknownName: for values out of range, or that contradict
            each other.
    """

    model: str | Path | Model
    kind: str = "walk"
    forward: float | None = None
    sideways: float | None = None
    height: float | None = None
    turn: float | None = None
    duration: float | None = None
    knots: int = 21
    gait: str | None = None
    contacts: str | None = None
    clearance: float | None = None
    friction: float = 0.7
    terrain: Terrain = field(default_factory=Flat)
    periodic: bool | None = None
    torque: float | Mapping[str, float] | None = None
    pose: Mapping[str, float] | None = None
    phases: Mapping[str, float] | None = None
    weights: LocomotionWeights = field(default_factory=LocomotionWeights)
    integrator: str = "midpoint"

    def __post_init__(self):
        check(
            self,
            "",
            kind=one_of("kind of locomotion", KINDS),
            forward=optional(finite("m")),
            sideways=optional(finite("m")),
            height=optional(positive("m")),
            clearance=optional(positive("m")),
            gait=optional(one_of("gait", GAITS)),
            contacts=optional(one_of("kind of contacts", CONTACTS)),
            turn=optional(finite("rad")),
            duration=optional(positive("s")),
            knots=whole(5),
            friction=non_negative(),
            periodic=optional(flag()),
            integrator=one_of("integrator", INTEGRATORS),
        )
        check_knots(self.knots)
        if isinstance(self.torque, Mapping):
            for name, limit in self.torque.items():
                check_value(f"torque limit of {name}", limit, non_negative("N m or N"))
        else:
            check(self, "", torque=optional(non_negative("N m or N")))
        for name in ("height", "phases"):
            if self.kind in ("turn", "goal") and getattr(self, name) is not None:
                raise InvalidInput(f"a {self.kind} has no {name}; leave it out")
        if self.sideways and self.kind != "goal":
            raise InvalidInput(
                f"a {self.kind} does not move sideways; plan kind 'goal'"
            )
        if self.kind == "walk" and self.periodic is False:
            raise InvalidInput(
                "a walk is periodic; plan kind 'goal' to walk from standing to standing"
            )
        if self.turn and self.kind in ("walk", "hop"):
            raise InvalidInput(f"a {self.kind} does not turn; plan kind 'goal'")
        if self.periodic and self.kind in ("turn", "goal"):
            raise InvalidInput(
                f"a {self.kind} cannot be periodic: its momentum would have to repeat "
                "in another direction; leave periodic out"
            )

    @property
    def repeats(self) -> bool:
        """Whether the motion is periodic."""
        return self.kind == "walk" if self.periodic is None else self.periodic


@dataclass(frozen=True)
class Targets:
    """The targets of a problem in plant units, with the defaults filled in.

    Attributes:
        forward: distance along x.
        sideways: distance along y.
        height: height of the lifted feet.
        turn: angle about z [rad].
        duration: lower and upper bound of the duration.
    """

    forward: float
    sideways: float
    height: float
    turn: float
    duration: tuple[float, float]

    @property
    def nominal(self) -> float:
        """Duration of the first guess."""
        return sum(self.duration) / 2


def targets(
    problem: LocomotionProblem, standing: Standing, *, natural: float | None = None
) -> Targets:
    """The targets of a problem; open ones are chosen by size and gravity.

    Args:
        problem: the motion.
        standing: the standing model.
        natural: duration of a motion whose duration is open, plant units; None for
            a choice by its kind.
    """
    unit = standing.scaling
    forward = 0.5 * (problem.kind == "walk")
    if problem.forward is not None:
        forward = problem.forward / unit.length
    sideways = (problem.sideways or 0.0) / unit.length
    height = 0.2 if problem.height is None else problem.height / unit.length
    turn = 0.2 * (problem.kind == "turn") if problem.turn is None else problem.turn
    if natural is None:
        # Strides of animals take about three units of time; a hop crouches, flies
        # and lands; others make a stride for each half length or half radian.
        natural = {
            "walk": 3.0,
            "hop": 3.0 + 2 * np.sqrt(2 * height),
            "turn": 4.0 + 2 * abs(turn),
            "goal": 4.0 + 3 * np.hypot(forward, sideways) + 2 * abs(turn),
        }[problem.kind]
    if problem.duration is not None:
        natural = problem.duration / unit.time
    spread = FREE * (problem.duration is None)
    span = natural * (1 - spread), natural * (1 + spread)
    return Targets(forward, sideways, height, turn, span)
