"""The parameters of a template: lengths, widths, servos, feet, rest pose.

The paper's "high-level semantic parameters" (section 6.1, Figs. 6 and 7), in SI. Robot
frame: x forward, y left, z up, origin on the ground.

    edit(template, {"front.upper": 0.12, "build.wall": 0.004, "build.servo": "DS3218"})
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields, is_dataclass, replace
from typing import Any

import numpy as np

from drakebots.core.checks import (
    Rule,
    array,
    check,
    check_value,
    each,
    finite,
    instance,
    one_of,
    positive,
)
from drakebots.core.errors import InvalidInput, UnknownName


def _each(rule: Rule) -> Rule:
    """A rule for every number of nested tuples, which are kept as they are."""

    def check_each(value: Any) -> Any:
        if isinstance(value, tuple | list) or np.ndim(value):
            for entry in value:
                check_each(entry)
        else:
            rule(value)
        return value

    return check_each


_LENGTH, _LENGTHS, _PLACES = positive("m"), _each(positive("m")), _each(finite("m"))


@dataclass(frozen=True)
class Servo:
    """A servo motor: a box with its shaft along the third side.

    The reflected inertia of rotor and gears is left out, as no data sheet gives it.

    Attributes:
        name: name of the type.
        size: length, width and height of the body (3,) [m]; the shaft is along the
            height.
        shaft: distance of the shaft from the near end of the length [m].
        ear: length of the screw ears beyond each end of the body [m].
        screws: distances of the screws along the length and the width (2,) [m].
        mass: mass of the servo [kg].
        effort: largest torque [N m].
        speed: speed without load [rad/s].
        travel: range of the shaft's angle [rad].
        source: source of these numbers.

    Raises:
        InvalidInput: for a number that is not > 0.
    """

    name: str
    size: tuple[float, float, float]
    shaft: float
    ear: float
    screws: tuple[float, float]
    mass: float
    effort: float
    speed: float
    travel: float
    source: str = ""

    def __post_init__(self):
        what = f"servo {self.name}"
        check(self, what, size=_LENGTHS, screws=_LENGTHS, shaft=_LENGTH, ear=_LENGTH)
        check(self, what, mass=positive("kg"), effort=positive("N m"))
        check(self, what, speed=positive("rad/s"), travel=positive("rad"))
        for name, count in (("size", 3), ("screws", 2)):
            check_value(f"{what}: {name}", getattr(self, name), array((count,), "m"))
        check_value(f"{what}: shaft", self.shaft, positive("m"))
        if self.shaft >= self.size[0]:
            raise InvalidInput(f"{what}: shaft must be < the length, size[0]")


MG995R = Servo(
    name="MG995R",
    size=(0.0408, 0.020, 0.038),
    shaft=0.010,
    ear=0.0068,
    screws=(0.0495, 0.010),
    mass=0.055,
    effort=1.96,
    speed=(np.pi / 3) / 0.16,
    travel=np.pi,
    source="paper, section 6.2 (size, 20 kg cm at 6.4 V); data sheet: 0.16 s/60 deg",
)

DS3218 = Servo(
    name="DS3218",
    size=(0.044, 0.020, 0.064),
    shaft=0.010,
    ear=0.0068,
    screws=(0.0520, 0.010),
    mass=0.060,
    effort=3.13,
    speed=(np.pi / 3) / 0.16,
    travel=1.5 * np.pi,
    source="paper, section 7 (size, 3.13 N m at 6 V); data sheet: 0.16 s/60 deg at 5 V",
)

MG90S = Servo(
    name="MG90S",
    size=(0.0228, 0.0122, 0.0285),
    shaft=0.006,
    ear=0.0048,
    screws=(0.0275, 0.004),
    mass=0.0134,
    effort=0.216,
    speed=(np.pi / 3) / 0.08,
    travel=np.pi,
    source="TowerPro data sheet: 13.4 g, 2.2 kg cm and 0.08 s/60 deg at 6 V",
)

DS3235 = Servo(
    name="DS3235",
    size=(0.040, 0.020, 0.0405),
    shaft=0.010,
    ear=0.0070,
    screws=(0.0495, 0.010),
    mass=0.060,
    effort=3.23,
    speed=(np.pi / 3) / 0.12,
    travel=1.5 * np.pi,
    source="Dsservo data sheet: 60 g, 33 kg cm and 0.12 s/60 deg at 6.8 V",
)

DS5160 = Servo(
    name="DS5160",
    size=(0.065, 0.030, 0.048),
    shaft=0.016,
    ear=0.0090,
    screws=(0.0750, 0.018),
    mass=0.158,
    effort=5.88,
    speed=(np.pi / 3) / 0.15,
    travel=1.5 * np.pi,
    source="Dsservo data sheet: 158 g, 60 kg cm and 0.15 s/60 deg at 7.4 V",
)

SERVOS = {s.name: s for s in (MG90S, MG995R, DS3218, DS3235, DS5160)}
"""Public hobby servos by name, each with the source of its numbers; those of MG995R and
DS3218 are the paper's, sections 6.2 and 7, and the makers'."""


@dataclass(frozen=True)
class Build:
    """How the printed parts are made, the same for every link.

    Attributes:
        servo: motor of every joint; `edit` takes its name as well.
        wall: thickness of the printed shells [m].
        pilot_hole: diameter of the screw holes [m]; never scaled.
        clearance: gap between a servo and its motor bay, on each side [m].
        gap: gap between parts that move past each other [m].
        density: density of the printed resin [kg/m^3]; SLA resin like polypropylene.
        rib: thickness of a bracing ring or plate along its link [m]; at 7 mm the
            beetle's skeleton weighs the paper's 2.8 kg.
        rib_reach: width of a limb's bracing rings beyond the link, on each side [m].
        skin: thickness of the skin [m].
        sole_skin: thickness of the skin under the feet [m].
    """

    servo: Servo = MG995R
    wall: float = 0.003
    pilot_hole: float = 0.0025
    clearance: float = 0.0005
    gap: float = 0.001
    density: float = 1150.0
    rib: float = 0.007
    rib_reach: float = 0.008
    skin: float = 0.004
    sole_skin: float = 0.008

    def __post_init__(self):
        check(self, "build", servo=instance(Servo))
        lengths = {f.name for f in fields(self)} - {"servo", "density"}
        check(self, "build", **dict.fromkeys(lengths, _LENGTH))
        check(self, "build", density=positive("kg/m^3"))
        if self.pilot_hole >= self.servo.ear:
            raise InvalidInput(
                f"build: pilot_hole must be narrower than the servo's ears, "
                f"{self.servo.ear} m, got {self.pilot_hole}"
            )

    @property
    def bay(self) -> np.ndarray:
        """Outer sides of a motor bay along the servo's sides (3,) [m]."""
        length, width, height = self.servo.size
        side = 2 * (self.clearance + self.wall)
        return np.array(
            [length + 2 * (self.clearance + self.servo.ear), width + side, height]
        )

    @property
    def beyond(self) -> float:
        """Distance from a joint's axis to the near end of its motor bay [m]."""
        return self.servo.shaft + self.clearance + self.servo.ear

    @property
    def behind(self) -> float:
        """Distance from a joint's axis to the far end of its motor bay [m]."""
        return self.bay[0] - self.beyond

    @property
    def swing(self) -> float:
        """Radius that the near end of a motor bay sweeps about its joint [m]."""
        return float(np.hypot(self.beyond, self.bay[1] / 2))

    @property
    def fork(self) -> float:
        """Outer width of a fork around a motor bay [m]."""
        return float(self.bay[2] + 2 * (self.gap + self.wall))

    @property
    def shortest(self) -> float:
        """Shortest length of a link: its fork, the bridge, its motor bay [m]."""
        return self.swing + self.gap + self.wall + self.behind


@dataclass(frozen=True)
class FootShape:
    """A flat foot below its ankle.

    Attributes:
        length: length of the sole [m].
        width: width of the sole [m].
        ankle_height: height of the ankle above the ground [m].
        forward: distance of the sole's middle in front of the ankle [m].
    """

    length: float = 0.09
    width: float = 0.056
    ankle_height: float = 0.05
    forward: float = 0.0

    def __post_init__(self):
        check(self, "foot", length=_LENGTH, width=_LENGTH, ankle_height=_LENGTH)
        check(self, "foot", forward=finite("m"))


@dataclass(frozen=True)
class Limb:
    """A pair of limbs, left and right.

    Attributes:
        x: position of the hip's flexion joint along x [m].
        y: distance of the left leg's plane from the middle, at the hip [m].
        upper: length of the upper link [m].
        lower: length of the lower link [m].
        upper_pitch: angle of the upper link at rest from straight down, positive
            forward [rad].
        lower_pitch: angle of the lower link at rest from straight down, positive
            forward [rad].
        splay: angle of the upper link at rest, positive outward [rad].
        hip: distance from the abduction to the flexion joint along x [m]; only of
            templates with abduction.
        beam: width and depth of the links between the motor bays (2,) [m].
        foot: shape of the foot.
    """

    x: float
    y: float
    upper: float
    lower: float
    upper_pitch: float = 0.0
    lower_pitch: float = 0.0
    splay: float = 0.0
    hip: float = 0.04
    beam: tuple[float, float] = (0.030, 0.022)
    foot: FootShape = FootShape()

    def __post_init__(self):
        check(self, "limb", x=finite("m"), y=_LENGTH, upper=_LENGTH, lower=_LENGTH)
        check(self, "limb", hip=_LENGTH, beam=_LENGTHS)
        for name in ("upper_pitch", "lower_pitch", "splay"):
            check(self, "limb", **{name: finite("rad")})
            if abs(getattr(self, name)) > np.radians(80):
                raise InvalidInput(f"limb: {name} must be within 80 degrees of down")

    def upper_vector(self, side: int) -> np.ndarray:
        """Vector from hip to knee at rest (3,) [m]; side is 1 left, -1 right."""
        s, c = np.sin(self.upper_pitch), np.cos(self.upper_pitch)
        out, down = side * np.sin(self.splay), np.cos(self.splay)
        return self.upper * np.array([s, out * c, -down * c])

    def lower_vector(self) -> np.ndarray:
        """Vector from knee to ankle at rest (3,) [m]."""
        return self.lower * np.array(
            [np.sin(self.lower_pitch), 0.0, -np.cos(self.lower_pitch)]
        )

    @property
    def hip_height(self) -> float:
        """Height of the flexion joint with the sole on the ground [m]."""
        down = self.upper_vector(1)[2] + self.lower_vector()[2]
        return float(self.foot.ankle_height - down)


@dataclass(frozen=True)
class Torso:
    """The torso's box, its bracing rings and fixed struts.

    Attributes:
        size: sides of the printed box (3,) [m].
        centre: position of the box: x, and z above the mean of the hips (2,) [m].
        brace: width and height of the bracing rings (2,) [m].
        brace_centre: height of the rings' middle above the box's [m].
        stations: places of the rings, from 0 at the box's rear end to 1 at its front.
        struts: fixed bars that carry the skin of neck, head or tail: name, start and
            end, from the box's middle (3,) [m].
        strut_width: side of a strut's square section [m].
        strut_brace: width and height of the rings on the struts (2,) [m].
        battery: size (3,) [m] and mass [kg] of the battery.
        board: size (3,) [m] and mass [kg] of the electronics.
    """

    size: tuple[float, float, float]
    centre: tuple[float, float] = (0.0, 0.02)
    brace: tuple[float, float] = (0.2, 0.14)
    brace_centre: float = 0.0
    stations: tuple[float, ...] = (0.0, 0.33, 0.67, 1.0)
    struts: tuple[tuple[str, tuple[float, ...], tuple[float, ...]], ...] = ()
    strut_width: float = 0.02
    strut_brace: tuple[float, float] = (0.06, 0.06)
    battery: tuple[tuple[float, float, float], float] = ((0.105, 0.034, 0.025), 0.21)
    board: tuple[tuple[float, float, float], float] = ((0.064, 0.053, 0.015), 0.04)

    def __post_init__(self):
        for name in ("size", "brace", "strut_width", "strut_brace"):
            check(self, "torso", **{name: _LENGTHS})
        check(self, "torso", centre=_PLACES, brace_centre=finite("m"))
        check(self, "torso", stations=_each(finite()))
        check(self, "torso", battery=_each(positive()), board=_each(positive()))
        check(self, "torso", struts=each(instance(tuple | list), "struts"))
        for strut in self.struts:
            check_value(f"torso: strut {strut[:1]}", strut[1:], _PLACES)


@dataclass(frozen=True)
class Tail:
    """A tail on a yaw joint behind the torso.

    Attributes:
        length: length of its link [m].
        drop: height of the joint above the tip [m].
        width: side of its square section [m].
        brace: widths of the bracing rings at the root and at the tip (2,) [m].
    """

    length: float = 0.3
    drop: float = 0.0
    width: float = 0.03
    brace: tuple[float, float] = (0.09, 0.05)

    def __post_init__(self):
        check(self, "tail", length=_LENGTH, width=_LENGTH, brace=_LENGTHS)
        check(self, "tail", drop=finite("m"))


def edit(template: Any, changes: Mapping[str, Any]) -> Any:
    """A template with some of its parameters changed.

    Args:
        template: the template.
        changes: new values by dotted name, e.g. {"front.upper": 0.12}; a servo is
            given by its name.

    Raises:
        UnknownName: for a parameter or a servo that does not exist.
        InvalidInput: for a value that the parameter cannot have.
    """
    for name, value in changes.items():
        template = _set(template, name.split("."), value, name)
    return template


def parameter(template: Any, name: str) -> Any:
    """The value of a parameter by its dotted name.

    Raises:
        UnknownName: when it does not exist.
    """
    for part in name.split("."):
        _known(template, part)
        template = getattr(template, part)
    return template


def _set(node, parts, value, name):
    _known(node, parts[0])
    old = getattr(node, parts[0])
    if len(parts) > 1:
        value = _set(old, parts[1:], value, name)
    elif isinstance(old, Servo) and not isinstance(value, Servo):
        value = SERVOS[check_value(name, value, one_of("servo", SERVOS))]
    try:
        return replace(node, **{parts[0]: value})
    except (TypeError, ValueError) as error:
        raise InvalidInput(f"{name} = {value!r}: {error}") from error


def _known(node, name):
    known = [f.name for f in fields(node)] if is_dataclass(node) else []
    if name not in known:
        raise UnknownName("parameter", name, known)
