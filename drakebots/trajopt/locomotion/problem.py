"""The problem of moving a user's own model: its motion, and the values by default.

    LocomotionProblem("my_robot.urdf", Walk(forward=0.3))
    LocomotionProblem("my_robot.urdf", Hop(height=0.1), knots=31)
    LocomotionProblem("my_robot.urdf", Goal(forward=0.2, turn=0.4), friction=0.5)
    LocomotionProblem("my_robot.urdf", Footfall(duration=1.2, contacts={"FL": ...}))
    LocomotionProblem("my_robot.urdf", Series([Walk(0.2), Goal(turn=0.5)]))

A motion says where the robot goes and when its feet lift. Feet of one body are one leg:
the corners of a flat foot land together. A gait gives every leg a share of the cycle at
which it lifts:

    alternating   every other leg around the robot at once: the trot of four legs,
                  the tripod of six, the walk of two
    crawl         one leg after the other, hind before fore, one side after the
                  other: the robot always stands on all legs but one

A crawl needs legs that move their feet along and up: the body shifts over the legs that
carry it, sideways where they can, else lengthwise.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, field, replace
from itertools import accumulate, pairwise
from pathlib import Path
from typing import Annotated, ClassVar

import numpy as np

from drakebots.core.checks import (
    array,
    between,
    by_name,
    check_knots,
    check_value,
    each,
    finite,
    in_unit,
    instance,
    non_negative,
    one_of,
    optional,
    positive,
    text,
    whole,
)
from drakebots.core.errors import InvalidInput, UnknownName, check_names
from drakebots.core.fields import checked
from drakebots.core.lazy import late
from drakebots.model import Model, Point
from drakebots.multibody import Flat, Terrain
from drakebots.results import Result
from drakebots.trajopt import PlanProgram
from drakebots.trajopt.contact_implicit import INTEGRATORS
from drakebots.trajopt.locomotion.standing import Standing, lowered

_plans = late("drakebots.trajopt.locomotion.plan")

GAITS = ("alternating", "crawl")

CONTACTS = ("gait", "free")

_SPANS, _EFFORTS = array((None, 2), "s"), by_name(non_negative("N m or N"))

SWING = 0.5
"""Share of the duration for which the first guess lifts a foot."""

CLEARANCE = 0.1
"""Height of a foot halfway through its swing by default [l]."""

FREE = 0.4
"""Share by which a duration that was not given may change."""

# --- motions ------------------------------------------------------------------


@checked("way point")
class WayPoint:
    """A place that the base or a foot passes on its way, at the nearest knot.

    Raises:
        InvalidInput: for a position that is not three numbers, of which not all are
            None where there is no heading; the heading of a foot; and unless either a
            share or a time is given.
    """

    what: Annotated[str, text()]
    """What passes it, "base" or the name of a foot."""
    p_W: Annotated[Sequence[float | None], each(optional(finite("m")), "lengths")]
    """Its position in the world, that of the base's frame or the foot's centre; None,
    in files null, leaves an axis free. The robot starts over the origin, along x."""
    _: KW_ONLY
    share: Annotated[float | None, between(0, 1, open_ends=True)] = None
    """Share of the motion after which it is passed."""
    time: Annotated[float | None, positive("s")] = None
    """Time after which it is passed, from the start of its motion."""
    heading: Annotated[float | None, finite("rad")] = None
    """Angle of the base about z there; by default free."""
    tolerance: Annotated[float, positive("m")] = 1e-3
    """Largest distance from it along an axis, and of the heading [rad]."""

    def __post_init__(self):
        wrong = {
            "p_W must be x, y and z [m], None where it is free": len(self.p_W) != 3
            or {*self.p_W, self.heading} == {None},
            "only the base has a heading": self.what != "base"
            and self.heading is not None,
            "give its share of the motion, or its time": (self.share is None)
            == (self.time is None),
        }
        for words, is_so in wrong.items():
            if is_so:
                raise InvalidInput(f"way point of {self.what}: {words}")


WayPoints = Annotated[Sequence[WayPoint], each(instance(WayPoint), "way points")]


class Motion(ABC):
    """A motion of a robot, or several in a row."""

    can_be_free: ClassVar[bool] = True
    """Whether its contacts may be free."""
    steady: ClassVar[bool] = False
    """Whether the base keeps its yaw, and some foot is always on the ground."""
    periodic: bool = False

    @property
    def name(self) -> str:
        """Its name in reports, as "walk"."""
        return type(self).__name__.lower()

    @property
    def repeats(self) -> bool:
        """Whether the last state repeats the first."""
        return self.periodic

    @property
    @abstractmethod
    def row(self) -> tuple[SingleMotion, ...]:
        """The motions that it consists of, one after the other."""

    @abstractmethod
    def gaits(self, standing: Standing) -> Sequence[str]:
        """The gaits to try in turn, "" for one without; none for free contacts."""

    def lifts(self, standing: Standing, knots: int) -> dict[str, tuple[int, float]]:
        """Knot at which a foot must be so high above the ground, whatever touches
        when, by foot."""
        return {}


class SingleMotion(Motion):
    """One motion of a robot, from standing to standing if it does not repeat.

    Lengths in its methods' results are in units of a length l [m], times in
    sqrt(l / g).
    """

    forward: float | None
    sideways: float = 0.0
    turn: float = 0.0
    phases: Mapping[str, float] | None = None
    waypoints: Sequence[WayPoint] = ()

    @property
    def rests(self) -> bool:
        """Whether it begins and ends at rest."""
        return not self.repeats

    @property
    def row(self) -> tuple[SingleMotion, ...]:
        return (self,)

    def flies(self, standing: Standing) -> bool:
        """Whether all feet leave the ground at once, and the base may rise and tilt."""
        return False

    def standing_feet(self, standing: Standing) -> list[int]:
        """Indices of the feet that are not to lift."""
        return []

    def way(self, length: float) -> tuple[float, float, float]:
        """Distances along x and y, and the angle about z [rad]."""
        return (self.forward or 0.0) / length, self.sideways / length, self.turn

    @abstractmethod
    def rise(self, length: float) -> float:
        """Height of the feet halfway through their swings."""

    @abstractmethod
    def natural(self, length: float, gait: str = "", rounds: int = 1) -> float:
        """Duration by default, where every leg makes so many steps of a gait, or with
        free contacts."""

    def gaits(self, standing: Standing) -> Sequence[str]:
        return ("",)

    @abstractmethod
    def swings(
        self, gait: str, rounds: int, standing: Standing, intervals: int
    ) -> list[tuple[int, int, int]]:
        """Foot, first and last interval in which it is not loaded, of every swing."""

    def divided(
        self, problem: LocomotionProblem, steps: int, standing: Standing
    ) -> tuple[LocomotionProblem, LocomotionProblem, int]:
        """A motion that takes every leg several steps by a gait.

        Returns:
            The problem to solve, which is one cycle of a motion that repeats; the
            problem of all cycles; and the number of steps of every leg in the first.
        """
        return problem, problem, 1

    def lift_phases(self, standing: Standing) -> dict[str, float]:
        """Share of the motion at which a first guess with free contacts lifts a foot,
        by foot; feet that are not named stay down."""
        return {}


class _Steps(SingleMotion):
    """A motion on legs that swing one after the other."""

    gait: str | None
    clearance: float | None

    def rise(self, length: float) -> float:
        return CLEARANCE if self.clearance is None else self.clearance / length

    def natural(self, length: float, gait: str = "", rounds: int = 1) -> float:
        if gait:
            each = 10.0 if gait == "crawl" else 3.0
            return each * rounds + 2.0 * (not self.repeats)
        if self.repeats:
            return 3.0  # strides of animals
        # A stride for each half length or half radian.
        forward, sideways, turn = self.way(length)
        return 4.0 + 3 * np.hypot(forward, sideways) + 2 * abs(turn)

    def gaits(self, standing: Standing) -> Sequence[str]:
        """The gait that was asked for, or the calmest that the legs allow first.

        A crawl needs four legs or more with two actuators each and a base that is free
        to move sideways.
        """
        if self.phases is not None and not self.phases:
            return ()
        if self.gait is not None:
            return (self.gait,)
        legs = len(standing.legs)
        sideways = "y" in standing.base and standing.system.nu >= 2 * legs
        crawls = legs >= 4 and sideways and self.phases is None
        return ("crawl", "alternating") if crawls else ("alternating",)

    def divided(self, problem, steps, standing):
        longer = replace(problem, knots=(problem.knots - 1) * steps + 1)
        return longer, longer, steps

    def swings(self, gait, rounds, standing, intervals):
        phases = phases_of(standing, gait)
        if self.phases is not None:
            given = self.lift_phases(standing)
            phases = np.array([given.get(name, np.nan) for name in standing.feet])
        share, pad = SWING, 0 if self.repeats else 1
        if gait == "crawl":
            # One leg after the other, with a pause on all legs in between.
            share = 0.8 / len(standing.legs)
            pad *= max(1, round(0.1 * intervals / rounds))
        length = (intervals - 2 * pad) / rounds
        found = []
        for turn in range(rounds):
            for foot in np.flatnonzero(~np.isnan(phases)):
                lift = pad + (turn + phases[foot] % 1.0) * length
                found.append((foot, round(lift), round(lift + share * length) - 1))
        return found


@checked("walk")
class Walk(_Steps, Motion):
    """A cycle that repeats further on."""

    steady: ClassVar[bool] = True

    forward: Annotated[float | None, finite("m")] = None
    """Distance along x; by default half the height of the centre of mass."""
    gait: Annotated[str | None, one_of("gait", GAITS)] = None
    """Footfall: "crawl" (one leg after the other) or "alternating" (every other leg
    around the robot at once: a trot on four); by default a crawl for robots of four
    legs or more with two actuators each, and alternating where there is no such motion
    or for other robots."""
    clearance: Annotated[float | None, positive("m")] = None
    """Height of a foot halfway through its swing; by default a tenth of the height of
    the centre of mass with contacts by a gait, and no such bound with free contacts,
    which know of swings in walks only."""
    phases: Mapping[str, float] | None = None
    """Share of a walk's cycle, by foot, at which the foot lifts, for :data:`SWING` of
    the cycle unless the gait is a crawl; feet that are not named stay down. With free
    contacts it is a hint for the first guess and not a bound, by default every other
    foot around the robot at once; with {} there is no hint, contacts are free, and a
    symmetric robot finds symmetric motions, such as bounds."""

    @property
    def repeats(self) -> bool:
        return True

    def way(self, length: float) -> tuple[float, float, float]:
        return 0.5 if self.forward is None else self.forward / length, 0.0, 0.0

    def divided(self, problem, steps, standing):
        knots = problem.knots
        if standing.system.num_loop_rows:
            # Loops close at midpoints: around an even number of intervals, knots that
            # are off by turns would have them closed, too, and their rows depend.
            knots += knots % 2
        length = standing.scaling.length
        cycle = replace(
            problem,
            motion=replace(self, forward=self.way(length)[0] * length / steps),
            duration=None if problem.duration is None else problem.duration / steps,
            knots=knots,
        )
        # Feet rise in the middle of every cycle, not of all of them.
        motion = replace(self, clearance=None)
        total = replace(problem, motion=motion, knots=(knots - 1) * steps + 1)
        return cycle, total, 1

    def lift_phases(self, standing: Standing) -> dict[str, float]:
        """As its phases say, or every other leg around the robot at once.

        Raises:
            UnknownName: for the phase of an unknown foot.
            InvalidInput: for a phase that is not a finite number.
        """
        if self.phases is None:
            phases = phases_of(standing, "alternating")
            return dict(zip(standing.feet, phases.tolist()))
        for name, phase in self.phases.items():
            check_names("foot", [name], standing.feet)
            check_value(f"phase of {name}", phase, finite())
        return dict(self.phases)

    def lifts(self, standing: Standing, knots: int) -> dict[str, tuple[int, float]]:
        if self.clearance is None:
            return {}
        height, phases = self.rise(standing.scaling.length), self.lift_phases(standing)
        middles = {n: (phase + SWING / 2) % 1.0 for n, phase in phases.items()}
        return {n: (round(m * (knots - 1)), height) for n, m in middles.items()}


class _Stride(Walk):
    """A walk in a row of motions: it neither repeats nor rests."""

    name = "walk"
    repeats = rests = False
    divided = _Steps.divided


@checked("hop")
class Hop(SingleMotion, Motion):
    """Up and down again on all legs at once."""

    height: Annotated[float | None, positive("m")] = None
    """Height of the feet above the ground halfway; by default a fifth of the height of
    the centre of mass."""
    forward: Annotated[float, finite("m")] = 0.0
    """Distance along x."""
    periodic: bool = False
    """Whether the last state repeats the first, else it begins and ends at rest."""
    waypoints: WayPoints = ()
    """Places that the base or feet pass."""

    def flies(self, standing: Standing) -> bool:
        return True

    def rise(self, length: float) -> float:
        return 0.2 if self.height is None else self.height / length

    def natural(self, length: float, gait: str = "", rounds: int = 1) -> float:
        # It crouches, flies and lands.
        return 3.0 + 2 * np.sqrt(2 * self.rise(length))

    def swings(self, gait, rounds, standing, intervals):
        # The flight is the middle two fifths.
        first = round(0.3 * intervals)
        last = intervals - 1 - first
        return [(foot, first, last) for foot in range(standing.system.num_feet)]

    def lifts(self, standing: Standing, knots: int) -> dict[str, tuple[int, float]]:
        standing.index("z")
        apex = knots // 2, self.rise(standing.scaling.length)
        return dict.fromkeys(standing.feet, apex)


@checked("goal")
class Goal(_Steps, Motion):
    """The way to a pose, or a turn on the spot, from standing to standing."""

    forward: Annotated[float, finite("m")] = 0.0
    """Distance along x."""
    sideways: Annotated[float, finite("m")] = 0.0
    """Distance along y."""
    turn: Annotated[float, finite("rad")] = 0.0
    """Angle about z, counterclockwise."""
    gait: Annotated[str | None, one_of("gait", GAITS)] = None
    """Footfall, as that of a walk."""
    clearance: Annotated[float | None, positive("m")] = None
    """Height of a foot halfway through its swing, with contacts by a gait; by default a
    tenth of the height of the centre of mass."""
    waypoints: WayPoints = ()
    """Places that the base or feet pass."""


@checked("footfall")
class Footfall(_Steps, Motion):
    """A motion by a footfall of one's own.

    It is kept to half a time step; more knots keep it closer. From standing to standing
    all feet stand in the first and the last time step.

    Raises:
        InvalidInput: for times that are not within the motion or not in order, and for
            a motion that repeats and goes elsewhere than forward.
    """

    _: KW_ONLY
    contacts: Mapping[str, Sequence[tuple[float, float]]]
    """Times from and to which a foot stands on the ground [s], by foot, or by the body
    whose feet they are; feet that are not named stand all the time."""
    duration: Annotated[float, positive("s")]
    """Duration of the motion, or of its cycle."""
    forward: Annotated[float, finite("m")] = 0.0
    """Distance along x."""
    sideways: Annotated[float, finite("m")] = 0.0
    """Distance along y."""
    turn: Annotated[float, finite("rad")] = 0.0
    """Angle about z, counterclockwise."""
    periodic: bool = False
    """Whether the last state repeats the first, else it begins and ends at rest."""
    clearance: Annotated[float | None, positive("m")] = None
    """Height of a foot halfway through its swing; by default a tenth of the height of
    the centre of mass."""
    waypoints: WayPoints = ()
    """Places that the base or feet pass."""

    can_be_free: ClassVar[bool] = False

    def __post_init__(self):
        if self.periodic and (self.sideways or self.turn):
            raise InvalidInput(
                "footfall: a motion that repeats goes forward only; leave sideways and "
                "turn, or periodic, out"
            )
        kept = {}
        for foot, given in self.contacts.items():
            times = check_value(f"footfall: contacts of {foot}", given, _SPANS)
            flat = times.ravel()
            within = np.diff([0.0, *flat, self.duration])
            if not len(flat) or within.min() < 0 or (within[1:-1] == 0).any():
                raise InvalidInput(
                    f"footfall: contacts of {foot} must be pairs of increasing times "
                    f"within 0..{self.duration:g} s, as [[0, 0.4], [0.7, 1.2]], got "
                    f"{times.tolist()}"
                )
            if not self.periodic and (flat[0] > 0 or flat[-1] < self.duration):
                raise InvalidInput(
                    f"footfall: {foot} must stand at 0 and {self.duration:g} s, since "
                    "the motion begins and ends at rest; or make it periodic"
                )
            kept[foot] = tuple((a, b) for a, b in times.tolist())
        object.__setattr__(self, "contacts", kept)

    gaits = SingleMotion.gaits

    def divided(self, problem, steps, standing):
        return problem, problem, max(map(len, self.contacts.values()), default=1)

    def flies(self, standing: Standing) -> bool:
        T, gaps = self.duration, self._gaps(standing).values()
        # All are in the air at once if they are so when one of them lifts.
        return len(gaps) == len(standing.feet) and any(
            all(any((t - a) % T < b - a for a, b in of) for of in gaps)
            for t in [a for of in gaps for a, _ in of]
        )

    def standing_feet(self, standing: Standing) -> list[int]:
        return [i for i in range(len(standing.feet)) if i not in self._gaps(standing)]

    def swings(self, gait, rounds, standing, intervals):
        step, last = self.duration / intervals, intervals - 1
        found = []
        for foot, gaps in self._gaps(standing).items():
            for lift, land in gaps:
                swing = foot, round(lift / step), round(land / step) - 1
                if not self.periodic and (swing[1] < 1 or swing[2] >= last):
                    raise InvalidInput(
                        f"footfall: {standing.feet[foot]} must stand for a time step "
                        f"of {step:.2g} s at both ends; move its contacts, or give "
                        "more knots"
                    )
                found.append(swing)
        return found

    def _gaps(self, standing: Standing) -> dict[int, list[tuple[float, float]]]:
        """Times at which a foot lifts and lands [s], by its index; those of a cycle may
        end in the next.

        Raises:
            UnknownName: for a foot that does not exist.
        """
        known = standing.system.robot.model.feet
        found = {}
        for name, spans in self.contacts.items():
            feet = [i for i, foot in enumerate(known) if name in (foot.name, foot.body)]
            if not feet:
                raise UnknownName("foot", name, standing.feet)
            ends, starts = [b for _, b in spans], [a for a, _ in spans]
            if self.periodic:
                starts.append(starts[0] + self.duration)
            gaps = [(a, b) for a, b in zip(ends, starts[1:]) if b - a > 1e-9]
            found |= dict.fromkeys(feet, gaps) if gaps else {}
        return found


@checked("series")
class Series(Motion):
    """Motions in a row as one plan, solved together.

    Each starts where the one before it ends, with its distances in the frame of the
    pose reached there. Between two that are from rest to rest the robot stands; next to
    a walk it goes on moving. It starts and ends at rest.

    Raises:
        InvalidInput: for no motion, and for several of which one repeats, other than
            walks, or has free contacts.
    """

    motions: Annotated[Sequence[Motion], each(instance(Motion), "motions", least=1)]
    """The motions, in their order. One alone is as it is without a series."""

    can_be_free: ClassVar[bool] = False

    def __post_init__(self):
        for motion in self.row if len(self.row) > 1 else ():
            if motion.repeats or motion.phases == {}:
                raise InvalidInput(
                    f"series: a {motion.name} in a row neither repeats nor has free "
                    "contacts; leave periodic, or phases, out"
                )

    @property
    def row(self) -> tuple[SingleMotion, ...]:
        found = [one for motion in self.motions for one in motion.row]
        if len(found) == 1:
            return tuple(found)
        # A stride has the fields of its walk.
        return tuple(_Stride(**vars(m)) if type(m) is Walk else m for m in found)

    @property
    def repeats(self) -> bool:
        return len(self.row) == 1 and self.row[0].repeats

    def gaits(self, standing: Standing) -> Sequence[str]:
        """The gaits of the motion that leaves most of them open."""
        found = [motion.gaits(standing) for motion in self.row]
        return max(found, key=lambda names: (len(names), names))


def phases_of(standing: Standing, gait: str) -> np.ndarray:
    """Share of the cycle at which every foot lifts (num_feet,).

    Raises:
        UnknownName: for a gait that does not exist.
    """
    points = standing.system.foot_positions(standing.q)[0]
    return footfall(standing.system.robot.model.feet, points[:, :2], gait)


def footfall(feet: Sequence[Point], places: np.ndarray, gait: str) -> np.ndarray:
    """The same (nc,) of feet at places (nc, 2) ahead and to the left; those of one
    body are one leg's."""
    check_names("gait", [gait], GAITS)
    legs = list(dict.fromkeys(foot.body for foot in feet))
    own = np.array([legs.index(foot.body) for foot in feet])
    centres = np.array([places[own == k].mean(axis=0) for k in range(len(legs))])
    x, y = (centres - centres.mean(axis=0)).T
    if gait == "crawl":
        order = np.lexsort((x, -np.sign(np.round(y, 6))))
        lift = np.arange(len(legs)) / len(legs)
    else:
        order = np.argsort(np.arctan2(y, x), kind="stable")
        lift = 0.5 * (np.arange(len(legs)) % 2)
    return lift[np.argsort(order)][own]


# --- problems -----------------------------------------------------------------


@checked("weight")
class LocomotionWeights:
    """Weights of the cost, in natural units (see :mod:`.standing`)."""

    effort: Annotated[float, non_negative()] = 1.0
    """Weight of the squared inputs."""
    smooth: Annotated[float, non_negative()] = 0.1
    """Weight of the squared velocity changes between intervals."""
    pose: Annotated[float, non_negative()] = 1.0
    """Weight of the squared deviation of joints and tilt from standing."""
    friction: Annotated[float, non_negative()] = 10.0
    """Weight of the power lost in slip."""
    slack: Annotated[tuple[float, ...], each(positive(), "numbers", least=1)] = (
        *(1.0, 10.0, 100.0, 1e3, 1e4, 1e5),
    )
    """Increasing weights of the exact penalty on the slack, one a stage; the last stage
    is the first one that leaves no slack."""


@checked()
class LocomotionProblem:
    """A motion of a model.

    Raises:
        InvalidInput, UnknownName: for values out of range.
    """

    model: str | Path | Model
    """The model: a name, a path, or a loaded model. It has feet and actuators, and a
    free base or joints of its own to the world (a planar robot)."""
    motion: Motion = field(default_factory=Walk)
    """The motion, with its own options: a Walk, a Hop, a Goal, or a Footfall."""
    duration: Annotated[float | None, positive("s")] = None
    """Duration of the motion; by default chosen by size and gravity, and free to change
    by the share :data:`FREE`."""
    knots: Annotated[int, whole(5)] = 21
    """Number of knots; with contacts by a gait, of one step of all legs."""
    contacts: Annotated[str | None, one_of("kind of contacts", CONTACTS)] = None
    """Contacts: "gait" (the gait's footfall is kept: fast, and every foot lifts and
    carries in its turn) or "free" (the program decides which foot touches when). By
    default the gait's, and free where there is no such motion."""
    friction: Annotated[float, non_negative()] = 0.7
    """Friction coefficient of the ground."""
    terrain: Terrain = field(default_factory=Flat)
    """Ground under the feet, in SI."""
    torque: Annotated[float | Mapping[str, float] | None, _EFFORTS] = None
    """Limits of the inputs, one for all or by actuator; by default the model's
    effort limits."""
    pose: Annotated[Mapping[str, float] | None, in_unit("rad or m")] = None
    """Standing positions by joint that replace the model's defaults."""
    weights: LocomotionWeights = field(default_factory=LocomotionWeights)
    """Weights of the cost."""
    integrator: Annotated[str, one_of("integrator", INTEGRATORS)] = "midpoint"
    """Rule of integration: "midpoint" or "shake" (second order; loops close between
    knots or at them), or "euler" (first order)."""

    def __post_init__(self):
        check_knots(self.knots)
        row = self.motion.row
        own = sum(getattr(motion, "duration", 0.0) for motion in row)
        taken = own and self.duration not in ((None, own) if len(row) == 1 else (None,))
        if taken or (self.contacts == "free" and not self.motion.can_be_free):
            time = f" and a duration of its own, {own:g} s" if own else " of its own"
            raise InvalidInput(
                f"a {self.motion.name} has contacts{time}; leave those of the problem "
                "out"
            )

    def mathematical_program(self) -> PlanProgram[Result]:
        """The program that is tried first; see :func:`.plan.mathematical_program`."""
        return _plans.mathematical_program(self)

    def gaits(self, standing: Standing) -> Sequence[str]:
        """The gaits that are tried in turn; none where contacts are free."""
        return () if self.contacts == "free" else self.motion.gaits(standing)


def eased(share: np.ndarray) -> np.ndarray:
    """Shares from 0 to 1 that start and end smoothly."""
    return share * share * (3 - 2 * share)


@dataclass(frozen=True)
class Targets:
    """A problem on its standing robot, with what was left open filled in.

    All quantities are in plant units.

    Attributes:
        problem: the problem.
        standing: the standing robot.
        duration: lower and upper bound of the duration.
        start, end: the standing poses at the start and the end of the motion (nq,).
        row: the targets of every motion of a series; () for a single motion.
    """

    problem: LocomotionProblem
    standing: Standing
    duration: tuple[float, float]
    start: np.ndarray
    end: np.ndarray
    row: tuple[Targets, ...] = ()

    @property
    def motion(self) -> SingleMotion:
        """The motion, of a series all."""
        return self.problem.motion

    @property
    def forward(self) -> float:
        """Distance along x."""
        return self.standing.moved(np.stack([self.start, self.end])).get("x", 0.0)

    @property
    def intervals(self) -> int:
        """Number of time steps."""
        return self.problem.knots - 1

    @property
    def parts(self) -> list[tuple[slice, Targets]]:
        """Every motion in the row, or the only one, and its intervals."""
        row = self.row or (self,)
        ends = accumulate(part.intervals for part in row)
        return [(slice(end - p.intervals, end), p) for end, p in zip(ends, row)]

    @property
    def rests(self) -> list[int]:
        """Intervals in which the robot stands still: the last ones of motions that end
        at rest, where the next one starts so."""
        found = [at.stop - 1 for at, _ in self.parts[-1:] if not self.motion.repeats]
        for (at, before), (_, after) in pairwise(self.parts):
            if before.motion.rests and after.motion.rests:
                found.append(at.stop - 1)
        return sorted(found)

    def share_of(self, point: WayPoint) -> float:
        """Share of the motion after which a way point is passed, by its nominal
        duration for one with a time.

        Raises:
            InvalidInput: for a time that is not within the motion.
        """
        if point.share is not None:
            return point.share
        unit = self.standing.scaling.time
        if not point.time < self.duration[1] * unit:
            raise InvalidInput(
                f"way point of {point.what}: {point.time:g} s is not within a "
                f"{self.motion.name} of {self.duration[1] * unit:.3g} s; times count "
                "from the start of the motion that has the way point"
            )
        return point.time / (self.nominal * unit)

    def course(self, share: np.ndarray) -> np.ndarray:
        """x, y and yaw of the base, 0 where there is no such coordinate, on its even
        way past its way points after shares of the time (T, 3); from rest to rest with
        smooth ends."""
        even = (lambda s: s) if self.motion.repeats else eased
        found, unit = np.zeros((len(share), 3)), self.standing.scaling.length
        for i, axis in enumerate(("x", "y", "yaw")):
            if axis in self.standing.base:
                at = self.standing.index(axis)
                known = {0.0: self.start[at], 1.0: self.end[at]}
                for point in self.motion.waypoints:
                    x, y, _ = point.p_W
                    value = (x, y, point.heading)[i]
                    if point.what == "base" and value is not None:
                        scale = 1.0 if axis == "yaw" else unit
                        known[even(self.share_of(point))] = value / scale
                found[:, i] = np.interp(even(share), *zip(*sorted(known.items())))
        return found

    @property
    def flies(self) -> bool:
        """Whether all feet leave the ground at once."""
        return self.motion.flies(self.standing)

    @property
    def rise(self) -> float:
        """Height of the feet halfway through their swings."""
        return self.motion.rise(self.standing.scaling.length)

    @property
    def nominal(self) -> float:
        """Duration of the first guess."""
        return sum(self.duration) / 2


def targets(
    problem: LocomotionProblem,
    standing: Standing,
    *,
    natural: float | None = None,
    start: np.ndarray | None = None,
) -> Targets:
    """The targets of a problem; open ones are chosen by size and gravity.

    Args:
        problem: the problem of a single motion.
        standing: the standing model.
        natural: duration of a motion whose duration is open, plant units; None for
            a choice by its motion.
        start: the pose that it starts from (nq,), plant units; None for that of the
            standing model.

    Raises:
        InvalidInput: when the base cannot make this motion.
    """
    unit = standing.scaling
    forward, sideways, turn = problem.motion.way(unit.length)
    if natural is None:
        natural = problem.motion.natural(unit.length)
    asked = getattr(problem.motion, "duration", problem.duration)
    # With an open duration, a motion lasts as long as its way points ask.
    late = max((point.time or 0.0 for point in problem.motion.waypoints), default=0.0)
    last = 1 - 1 / (problem.knots - 1)
    natural = max(natural, late / unit.time / last)
    if asked is not None:
        natural = asked / unit.time
    spread = FREE * (asked is None)
    span = natural * (1 - spread), natural * (1 + spread)
    start = standing.q if start is None else start
    heading = standing.moved(np.stack([standing.q, start])).get("yaw", 0.0)
    c, s = np.cos(heading), np.sin(heading)
    along = c * forward - s * sideways, s * forward + c * sideways, turn
    end = start.copy()
    for axis, by in zip(("x", "y", "yaw"), along):
        if by:
            end[standing.index(axis)] += by
    if any(along):
        end = lowered(standing, end)
    return Targets(problem, standing, span, start, end)
