"""What a user's own model is to do, and what is chosen for them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

from drakebots.core.errors import InvalidInput, UnknownName
from drakebots.trajopt.contact_implicit import INTEGRATORS
from drakebots.trajopt.locomotion.standing import Standing
from drakebots.trajopt.terrain import Flat, Terrain

KINDS = ("walk", "hop", "turn", "goal")

SWING = 0.5
"""Share of the duration that the first guess lifts a foot for."""

FREE = 0.4
"""Share by which a duration that was not given may change."""


@dataclass(frozen=True)
class LocomotionWeights:
    """Weights of the cost, in the units of the module.

    Attributes:
        effort: of the inputs' squares.
        smooth: of the velocities' steps.
        pose: of joints and tilt away from standing.
        friction: of the power lost in slip.
        slack: exact penalty of the slack, one rung of the ladder each.
    """

    effort: float = 1.0
    smooth: float = 0.1
    pose: float = 1.0
    friction: float = 10.0
    slack: tuple[float, ...] = (1.0, 10.0, 100.0, 1000.0)

    def __post_init__(self):
        for name in ("effort", "smooth", "pose", "friction"):
            check_number(getattr(self, name), f"weight {name}", low=0.0)
        if not self.slack:
            raise InvalidInput("weight slack needs one value or more")
        for value in self.slack:
            check_number(value, "weight slack", above=0.0)


@dataclass(frozen=True)
class LocomotionPlan:
    """What a model is to do.

    Attributes:
        kind: "walk" (a cycle that repeats, `forward` further on), "hop" (up
            and down again, feet `height` above the ground halfway), "turn"
            (by `turn`, from standing to standing), "goal" (from standing to
            standing, `forward` and `turn` away).
        forward: way along x [m]; None for half the height of the centre of
            mass in a walk, 0 else.
        height: of the feet at a hop's apex, or halfway through their swings in
            a walk [m]; None for a fifth of the height of the centre of mass in
            a hop, for no such bound in a walk.
        turn: about z [rad], counterclockwise; None for 0.2 in a turn, 0 else.
        duration: [s]; None to choose it by size and gravity, and to let it
            change by :data:`FREE` of that.
        knots: of the plan.
        friction: coefficient mu of the ground.
        terrain: in SI.
        periodic: whether the last state repeats the first; None for walks. A
            turn cannot: its momentum would have to repeat turned.
        torque: limits of the inputs, one for all or by actuator [N m, N];
            None for the model's effort limits.
        pose: standing positions by joint, instead of the default ones.
        phases: by foot, the share of a walk's cycle at which the first guess
            takes its load for :data:`SWING` of it; other feet share the weight.
            A hint, not a bound. None lets every other foot around the robot
            swing at once (a trot on four feet); {} gives no hint, and then a
            symmetric robot finds symmetric motions, such as bounds.
        weights: of the cost.
        integrator: "midpoint" or "euler".
    """

    kind: str = "walk"
    forward: float | None = None
    height: float | None = None
    turn: float | None = None
    duration: float | None = None
    knots: int = 21
    friction: float = 0.7
    terrain: Terrain = field(default_factory=Flat)
    periodic: bool | None = None
    torque: float | Mapping[str, float] | None = None
    pose: Mapping[str, float] | None = None
    phases: Mapping[str, float] | None = None
    weights: LocomotionWeights = field(default_factory=LocomotionWeights)
    integrator: str = "midpoint"

    def __post_init__(self):
        if self.kind not in KINDS:
            raise UnknownName("kind of locomotion", self.kind, KINDS)
        if self.integrator not in INTEGRATORS:
            raise UnknownName("integrator", self.integrator, INTEGRATORS)
        for name in ("forward", "turn"):
            if getattr(self, name) is not None:
                check_number(getattr(self, name), name)
        for name in ("height", "duration"):
            if getattr(self, name) is not None:
                check_number(getattr(self, name), name, above=0.0)
        check_number(self.friction, "friction", low=0.0)
        check_number(self.knots, "knots", low=5)
        if int(self.knots) != self.knots:
            raise InvalidInput(f"knots must be a whole number, got {self.knots}")
        for limit in _values(self.torque):
            check_number(limit, "torque limit", low=0.0)
        for name in ("height", "phases"):
            if self.kind in ("turn", "goal") and getattr(self, name) is not None:
                raise InvalidInput(f"a {self.kind} has no {name}; leave it out")
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
        """Whether the plan is periodic."""
        return self.kind == "walk" if self.periodic is None else self.periodic


def _values(torque) -> list[float]:
    if torque is None:
        return []
    return list(torque.values()) if isinstance(torque, Mapping) else [torque]


def check_number(
    value, what: str, *, low: float = -np.inf, above: float = -np.inf
) -> None:
    """Refuses what is not a finite number >= low and > above.

    Raises:
        InvalidInput: naming it.
    """
    try:
        fine = np.isfinite(value) and value >= low and value > above
    except TypeError:
        fine = False
    if not fine:
        bound = f" >= {low:g}" if low > -np.inf else ""
        bound = f" > {above:g}" if above > -np.inf else bound
        raise InvalidInput(f"{what} must be a finite number{bound}, got {value}")


@dataclass(frozen=True)
class Targets:
    """A plan's aims in plant units; None where the choice was left to us."""

    forward: float
    height: float
    turn: float
    duration: tuple[float, float]

    @property
    def nominal(self) -> float:
        """Duration of the first guess."""
        return sum(self.duration) / 2


def targets(plan: LocomotionPlan, standing: Standing) -> Targets:
    """What was left open, chosen by size and gravity."""
    unit = standing.scaling
    forward = 0.5 * (plan.kind == "walk")
    if plan.forward is not None:
        forward = plan.forward / unit.length
    height = 0.2 if plan.height is None else plan.height / unit.length
    turn = 0.2 * (plan.kind == "turn") if plan.turn is None else plan.turn
    # Strides of animals take some three units of time; a hop crouches, flies
    # and lands; others make a stride for each half length or half radian.
    natural = {
        "walk": 3.0,
        "hop": 3.0 + 2 * np.sqrt(2 * height),
        "turn": 4.0 + 2 * abs(turn),
        "goal": 4.0 + 3 * abs(forward) + 2 * abs(turn),
    }[plan.kind]
    if plan.duration is not None:
        natural = plan.duration / unit.time
    spread = FREE * (plan.duration is None)
    span = natural * (1 - spread), natural * (1 + spread)
    return Targets(forward, height, turn, span)


def footfalls(plan: LocomotionPlan, standing: Standing) -> dict[str, float]:
    """Phases by foot: the plan's, or every other foot around the robot at once.

    Raises:
        UnknownName: for the phase of a foot that is none.
        InvalidInput: for a phase that is no number.
    """
    names = [foot.name for foot in standing.system.robot.model.feet]
    for name, phase in (plan.phases or {}).items():
        if name not in names:
            raise UnknownName("foot", name, names)
        check_number(phase, f"phase of {name}")
    if plan.kind != "walk" or plan.phases is not None:
        return dict(plan.phases or {})
    points = standing.system.foot_positions(standing.q)[0]
    x, y = (points - points.mean(axis=0))[:, :2].T
    order = np.argsort(np.arctan2(y, x), kind="stable")
    return {names[foot]: 0.5 * (turn % 2) for turn, foot in enumerate(order)}
