"""What a designer sets on a template: lengths, widths, motor bay, feet, rest pose.

The paper's "high-level semantic parameters" (section 6.1, Figs. 6 and 7). Robot
frame: x forward, y left, z up, origin on the ground; SI.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields, is_dataclass, replace
from typing import Any

import numpy as np

from drakebots.core.errors import InvalidInput, UnknownName

# The servo motors of skinned quad-robots.
#
# "Computational Design of Skinned Quad-Robots", section 6.2 (MG995R) and 7 (DS3218):
# sizes and torques are the paper's, masses, speeds and screws the makers' data sheets'.


@dataclass(frozen=True)
class Servo:
    """A servo motor: a box with its shaft along the third side.

    The reflected inertia of rotor and gears is left out: no data sheet gives it.

    Attributes:
        name: of the type.
        size: length, width, height (3,) [m]; the shaft is along the height.
        shaft: from the near end of the length to the shaft [m].
        ear: length of the screw ears beyond each end of the body [m].
        screws: distances of the screws along the length and the width (2,) [m].
        mass: [kg].
        effort: largest torque [N m].
        speed: without load [rad/s].
        travel: range of the shaft [rad].
        source: of the numbers.

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
        for key in ("size", "shaft", "ear", "screws", "mass", "effort", "speed"):
            values = np.atleast_1d(np.asarray(getattr(self, key), float))
            if not (np.isfinite(values).all() and (values > 0).all()):
                raise InvalidInput(f"servo {self.name}: {key} must be > 0")
        if self.shaft >= self.size[0]:
            raise InvalidInput(f"servo {self.name}: the shaft is beside the body")


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

SERVOS = {servo.name: servo for servo in (MG995R, DS3218)}


def servo_named(name: str) -> Servo:
    """A servo of the catalogue.

    Raises:
        UnknownName: when there is none of that name.
    """
    if name not in SERVOS:
        raise UnknownName("servo", name, SERVOS)
    return SERVOS[name]


_LIMB_LENGTHS = {"upper", "lower", "hip", "beam", "y"}
_LIMB_NUMBERS = {"x", "upper_pitch", "lower_pitch", "splay"}
_TORSO_LENGTHS = {"size", "brace", "strut_width", "strut_brace"}


def _positive(node, chosen):
    _check(node, chosen, lambda v: v > 0, "> 0")


def _finite(node, chosen):
    _check(node, chosen, lambda v: True, "a finite number")


def _check(node, chosen, good, word):
    for field in chosen:
        where = f"{type(node).__name__.lower()}.{field.name}"
        try:
            values = np.atleast_1d(np.asarray(getattr(node, field.name), float))
        except (TypeError, ValueError):
            raise InvalidInput(f"{where}: needs numbers in SI units") from None
        bad = values[~(np.isfinite(values) & np.array([good(v) for v in values]))]
        if bad.size:
            raise InvalidInput(f"{where} = {bad[0]}: must be {word}")


@dataclass(frozen=True)
class Build:
    """How the printed parts are made; the same for every link.

    Attributes:
        servo: the motor of every joint.
        wall: of the printed shells [m].
        pilot_hole: diameter of the screw holes [m]; never scaled.
        clearance: between servo and motor bay, on each side [m].
        gap: between parts that move past each other [m].
        density: of the printed resin [kg/m^3]; SLA resin like polypropylene.
        rib: thickness of a bracing ring along its link [m].
        rib_reach: of a limb's bracing rings beyond the link, on each side [m].
        skin: thickness of the skin [m].
        sole_skin: its thickness under the feet [m].
    """

    servo: Servo = MG995R
    wall: float = 0.003
    pilot_hole: float = 0.0025
    clearance: float = 0.0005
    gap: float = 0.001
    density: float = 1150.0
    rib: float = 0.004
    rib_reach: float = 0.008
    skin: float = 0.004
    sole_skin: float = 0.008

    def __post_init__(self):
        _positive(self, fields(self)[1:])
        if self.pilot_hole >= self.servo.ear:
            raise InvalidInput(
                f"build.pilot_hole = {self.pilot_hole} m: wider than the servo's ears "
                f"({self.servo.ear} m)"
            )

    @property
    def bay(self) -> np.ndarray:
        """Outside of a motor bay along the servo's length, width, height (3,) [m]."""
        length, width, height = self.servo.size
        side = 2 * (self.clearance + self.wall)
        return np.array(
            [length + 2 * (self.clearance + self.servo.ear), width + side, height]
        )

    @property
    def beyond(self) -> float:
        """From a joint's axis to the near end of its motor bay [m]."""
        return self.servo.shaft + self.clearance + self.servo.ear

    @property
    def behind(self) -> float:
        """From a joint's axis to the far end of its motor bay [m]."""
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
        """Shortest link between two joints: fork, bridge, motor bay [m]."""
        return self.swing + self.gap + self.wall + self.behind


@dataclass(frozen=True)
class FootShape:
    """A flat foot below its ankle.

    Attributes:
        length, width: of the sole [m].
        ankle_height: of the ankle above the ground [m].
        forward: of the ankle, the middle of the sole [m].
    """

    length: float = 0.09
    width: float = 0.056
    ankle_height: float = 0.05
    forward: float = 0.0

    def __post_init__(self):
        _positive(self, fields(self)[:3])
        _finite(self, fields(self)[3:])


@dataclass(frozen=True)
class Limb:
    """One pair of limbs, left and right.

    Attributes:
        x: of the hip's flexion joint [m].
        y: of the leg's plane there, left [m].
        upper, lower: lengths of the links [m].
        upper_pitch, lower_pitch: at rest from straight down, + forward [rad].
        splay: of the upper link at rest, + outward [rad].
        hip: from the abduction to the flexion joint, along x [m]; used by
            templates with abduction.
        beam: width and depth of the links between the motor bays [m].
        foot: its shape.
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
        _positive(self, [f for f in fields(self) if f.name in _LIMB_LENGTHS])
        _finite(self, [f for f in fields(self) if f.name in _LIMB_NUMBERS])
        for name in ("upper_pitch", "lower_pitch", "splay"):
            if abs(getattr(self, name)) > np.radians(80):
                raise InvalidInput(f"limb.{name}: must be within 80 degrees of down")

    def upper_vector(self, side: int) -> np.ndarray:
        """Hip to knee at rest (3,) [m]; side 1 left, -1 right."""
        s, c = np.sin(self.upper_pitch), np.cos(self.upper_pitch)
        out, down = side * np.sin(self.splay), np.cos(self.splay)
        return self.upper * np.array([s, out * c, -down * c])

    def lower_vector(self) -> np.ndarray:
        """Knee to ankle at rest (3,) [m]."""
        return self.lower * np.array(
            [np.sin(self.lower_pitch), 0.0, -np.cos(self.lower_pitch)]
        )

    @property
    def hip_height(self) -> float:
        """Of the flexion joint with the sole on the ground [m]."""
        down = self.upper_vector(1)[2] + self.lower_vector()[2]
        return float(self.foot.ankle_height - down)


@dataclass(frozen=True)
class Torso:
    """The torso's box, its bracing rings and fixed struts.

    Attributes:
        size: of the printed box (3,) [m].
        centre: of it: x, and z above the mean of the hips (2,) [m].
        brace: width and height of the bracing rings (2,) [m].
        brace_centre: z of the rings above the box's centre [m].
        stations: of the rings, from the box's rear end 0 to its front end 1.
        struts: fixed bars from the box's middle, by name: start and end (2, 3) [m]
            about the box's centre, which carry the skin of neck, head or tail.
        strut_width: side of their square section [m].
        strut_brace: width and height of the rings on them (2,) [m].
        battery, board: size (3,) [m] and mass [kg].
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
        _positive(self, [f for f in fields(self) if f.name in _TORSO_LENGTHS])


@dataclass(frozen=True)
class Tail:
    """A tail on a yaw joint behind the torso.

    Attributes:
        length: of its link [m].
        drop: of the tip below the joint [m].
        width: of its square section [m].
        brace: widths of the bracing rings at the root and the tip [m].
    """

    length: float = 0.3
    drop: float = 0.0
    width: float = 0.03
    brace: tuple[float, float] = (0.09, 0.05)

    def __post_init__(self):
        _positive(self, [f for f in fields(self) if f.name != "drop"])


def edit(template: Any, changes: Mapping[str, Any]) -> Any:
    """A template with some parameters changed, by dotted names.

    >>> edit(template, {"front.upper": 0.12, "build.wall": 0.004})

    Raises:
        UnknownName: for a parameter that does not exist.
        InvalidInput: for a value it may not have.
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


def _set(node, parts, value, whole):
    _known(node, parts[0])
    if len(parts) > 1:
        value = _set(getattr(node, parts[0]), parts[1:], value, whole)
    try:
        return replace(node, **{parts[0]: value})
    except (TypeError, ValueError) as error:
        raise InvalidInput(f"{whole} = {value!r}: {error}") from error


def _known(node, name):
    known = [f.name for f in fields(node)] if is_dataclass(node) else []
    if name not in known:
        raise UnknownName("parameter", name, known)
