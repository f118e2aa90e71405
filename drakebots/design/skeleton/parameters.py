"""The parameters of a template: lengths, widths, servos, feet, rest pose.

The paper's "high-level semantic parameters" (section 6.1, Figs. 6 and 7), in SI. Robot
frame: x forward, y left, z up, origin on the ground.

    edit(template, {"front.upper": 0.12, "build.wall": 0.004, "build.servo": "DS3218"})
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import fields, is_dataclass, replace
from pathlib import Path
from typing import Annotated, Any

import numpy as np

from drakebots.core.checks import (
    Refused,
    Rule,
    array,
    between,
    check_value,
    each,
    finite,
    instance,
    one_of,
    positive,
)
from drakebots.core.convert import build
from drakebots.core.errors import InvalidInput, UnknownName
from drakebots.core.fields import checked
from drakebots.core.files import read_yaml


def _numbers(
    count: int | None, unit: str = "", entry: Rule | None = None
) -> Callable[[Any], tuple]:
    """A rule for so many numbers, stored as a tuple."""
    rule = array((count,), unit, entry=entry)
    return lambda value: tuple(rule(value).tolist())


def _payload(value: Any) -> tuple:
    """A rule for the size and the mass of a part."""
    if not isinstance(value, tuple | list) or len(value) != 2:
        raise Refused("a size (3,) [m] and a mass [kg]")
    return _SIZE(value[0]), positive("kg")(value[1])


_LENGTH = positive("m")
_PAIR, _SIZE = (_numbers(count, "m", _LENGTH) for count in (2, 3))
_FROM_DOWN = between(-np.radians(80), np.radians(80), "rad")


@checked("servo {name}")
class Servo:
    """A servo motor: a box with its shaft along the third side.

    The reflected inertia of rotor and gears is left out, as no data sheet gives it.

    Raises:
        InvalidInput: for a number that is not > 0.
    """

    name: str
    """Name of the type."""
    size: Annotated[tuple[float, float, float], _SIZE]
    """Length, width and height of the body (3,); the shaft is along the height."""
    shaft: Annotated[float, _LENGTH]
    """Distance of the shaft from the near end of the length."""
    ear: Annotated[float, _LENGTH]
    """Length of the screw ears beyond each end of the body."""
    screws: Annotated[tuple[float, float], _PAIR]
    """Distances of the screws along the length and the width (2,)."""
    mass: Annotated[float, positive("kg")]
    """Mass of the servo."""
    effort: Annotated[float, positive("N m")]
    """Largest torque."""
    speed: Annotated[float, positive("rad/s")]
    """Speed without load."""
    travel: Annotated[float, positive("rad")]
    """Range of the shaft's angle."""
    source: str = ""
    """Source of these numbers."""

    def __post_init__(self):
        if self.shaft >= self.size[0]:
            raise InvalidInput(
                f"servo {self.name}: shaft must be < the length, size[0]"
            )


SERVOS = {
    name: build(Servo, {"name": name} | said)
    for name, said in read_yaml(Path(__file__).with_name("servos.yaml")).items()
}
"""Public hobby servos by name, each with the source of its numbers; those of MG995R and
DS3218 are the paper's, sections 6.2 and 7, and the makers'."""

MG995R, DS3218 = SERVOS["MG995R"], SERVOS["DS3218"]


@checked("build")
class Build:
    """Construction of the printed parts, the same for every link."""

    servo: Annotated[Servo, instance(Servo)] = MG995R
    """Motor of every joint; `edit` takes its name as well."""
    wall: Annotated[float, _LENGTH] = 0.003
    """Thickness of the printed shells."""
    pilot_hole: Annotated[float, _LENGTH] = 0.0025
    """Diameter of the screw holes; never scaled."""
    clearance: Annotated[float, _LENGTH] = 0.0005
    """Gap between a servo and its motor bay, on each side."""
    gap: Annotated[float, _LENGTH] = 0.001
    """Gap between parts that move past each other."""
    density: Annotated[float, positive("kg/m^3")] = 1150.0
    """Density of the printed resin; SLA resin like polypropylene."""
    rib: Annotated[float, _LENGTH] = 0.007
    """Thickness of a bracing ring or plate along its link; at 7 mm the beetle's
    skeleton weighs the paper's 2.8 kg."""
    rib_reach: Annotated[float, _LENGTH] = 0.008
    """Width of a limb's bracing rings beyond the link, on each side."""
    skin: Annotated[float, _LENGTH] = 0.004
    """Thickness of the skin."""
    sole_skin: Annotated[float, _LENGTH] = 0.008
    """Thickness of the skin under the feet."""

    def __post_init__(self):
        if self.pilot_hole >= self.servo.ear:
            raise InvalidInput(
                f"build: pilot_hole must be narrower than the servo's ears, "
                f"{self.servo.ear} m, got {self.pilot_hole}"
            )

    @property
    def bay(self) -> np.ndarray:
        """Outer sides of a motor bay along the servo's sides (3,) [m]."""
        length, width, height = self.servo.size
        ends = 2 * (self.clearance + self.servo.ear)
        sides = 2 * (self.clearance + self.wall)
        return np.array([length + ends, width + sides, height])

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


@checked("foot")
class FootShape:
    """A flat foot below its ankle."""

    length: Annotated[float, _LENGTH] = 0.09
    """Length of the sole."""
    width: Annotated[float, _LENGTH] = 0.056
    """Width of the sole."""
    ankle_height: Annotated[float, _LENGTH] = 0.05
    """Height of the ankle above the ground."""
    forward: Annotated[float, finite("m")] = 0.0
    """Distance of the sole's middle in front of the ankle."""


@checked("limb")
class Limb:
    """A pair of limbs, left and right."""

    x: Annotated[float, finite("m")]
    """Position of the hip's flexion joint along x."""
    y: Annotated[float, _LENGTH]
    """Distance of the left leg's plane from the middle, at the hip."""
    upper: Annotated[float, _LENGTH]
    """Length of the upper link."""
    lower: Annotated[float, _LENGTH]
    """Length of the lower link."""
    upper_pitch: Annotated[float, _FROM_DOWN] = 0.0
    """Angle of the upper link at rest from straight down, positive forward."""
    lower_pitch: Annotated[float, _FROM_DOWN] = 0.0
    """Angle of the lower link at rest from straight down, positive forward."""
    splay: Annotated[float, _FROM_DOWN] = 0.0
    """Angle of the upper link at rest, positive outward."""
    hip: Annotated[float, _LENGTH] = 0.04
    """Distance from the abduction to the flexion joint along x; only of templates
    with abduction."""
    beam: Annotated[tuple[float, float], _PAIR] = (0.030, 0.022)
    """Width and depth of the links between the motor bays (2,)."""
    foot: FootShape = FootShape()
    """Shape of the foot."""

    def upper_vector(self, side: int) -> np.ndarray:
        """Vector from hip to knee at rest (3,) [m]; side is 1 left, -1 right."""
        s, c = np.sin(self.upper_pitch), np.cos(self.upper_pitch)
        out, down = side * np.sin(self.splay), np.cos(self.splay)
        return self.upper * np.array([s, out * c, -down * c])

    def lower_vector(self) -> np.ndarray:
        """Vector from knee to ankle at rest (3,) [m]."""
        s, c = np.sin(self.lower_pitch), np.cos(self.lower_pitch)
        return self.lower * np.array([s, 0.0, -c])

    @property
    def hip_height(self) -> float:
        """Height of the flexion joint with the sole on the ground [m]."""
        down = self.upper_vector(1)[2] + self.lower_vector()[2]
        return float(self.foot.ankle_height - down)


@checked("torso")
class Torso:
    """The torso's box, its bracing rings and fixed struts."""

    size: Annotated[tuple[float, float, float], _SIZE]
    """Sides of the printed box (3,)."""
    centre: Annotated[tuple[float, float], _numbers(2, "m")] = (0.0, 0.02)
    """Position of the box: x, and z above the mean of the hips (2,)."""
    brace: Annotated[tuple[float, float], _PAIR] = (0.2, 0.14)
    """Width and height of the bracing rings (2,)."""
    brace_centre: Annotated[float, finite("m")] = 0.0
    """Height of the rings' middle above the box's."""
    stations: Annotated[tuple[float, ...], _numbers(None)] = (0.0, 0.33, 0.67, 1.0)
    """Places of the rings, from 0 at the box's rear end to 1 at its front."""
    struts: Annotated[
        tuple[tuple[str, tuple[float, ...], tuple[float, ...]], ...],
        each(instance(tuple | list), "struts"),
    ] = ()
    """Fixed bars that carry the skin of neck, head or tail: name, start and end, from
    the box's middle (3,) [m]."""
    strut_width: Annotated[float, _LENGTH] = 0.02
    """Side of a strut's square section."""
    strut_brace: Annotated[tuple[float, float], _PAIR] = (0.06, 0.06)
    """Width and height of the rings on the struts (2,)."""
    battery: Annotated[tuple[tuple[float, float, float], float], _payload] = (
        (0.105, 0.034, 0.025),
        0.21,
    )
    """Size (3,) [m] and mass [kg] of the battery."""
    board: Annotated[tuple[tuple[float, float, float], float], _payload] = (
        (0.064, 0.053, 0.015),
        0.04,
    )
    """Size (3,) [m] and mass [kg] of the electronics."""

    def __post_init__(self):
        for strut in self.struts:
            check_value(f"torso: strut {strut[:1]}", strut[1:], array((2, 3), "m"))


@checked("tail")
class Tail:
    """A tail on a yaw joint behind the torso."""

    length: Annotated[float, _LENGTH] = 0.3
    """Length of its link."""
    drop: Annotated[float, finite("m")] = 0.0
    """Height of the joint above the tip."""
    width: Annotated[float, _LENGTH] = 0.03
    """Side of its square section."""
    brace: Annotated[tuple[float, float], _PAIR] = (0.09, 0.05)
    """Widths of the bracing rings at the root and at the tip (2,)."""


def edit(template: Any, changes: Mapping[str, Any]) -> Any:
    """A template with some of its parameters changed.

    Args:
        template: the template.
        changes: new values by dotted name, e.g. {"front.upper": 0.12}; "torso.size[0]"
            is an entry of a tuple. A servo is given by its name.

    Raises:
        UnknownName: for a parameter or a servo that does not exist.
        InvalidInput: for a value that the parameter cannot have.
    """
    for name, value in changes.items():
        template = _set(template, _parts(name), value, name)
    return template


def parameter(template: Any, name: str) -> Any:
    """The value of a parameter by its dotted name; see :func:`edit`.

    Raises:
        UnknownName: when it does not exist.
    """
    for part in _parts(name):
        template = _part(template, part)
    return template


def _parts(name: str) -> list[str | int]:
    """The steps to a parameter: names of fields, and numbers of a tuple's entries."""
    rows = re.findall(r"([^.\[\]]+)|\[(\d+)\]", name)
    return [field or int(entry) for field, entry in rows]


def _part(node: Any, part: str | int) -> Any:
    """A field of a part of a template, or an entry of a tuple."""
    if isinstance(part, int):
        known = range(len(node)) if isinstance(node, tuple) else ()
    else:
        known = [f.name for f in fields(node)] if is_dataclass(node) else ()
    if part not in known:
        raise UnknownName("parameter", str(part), list(map(str, known)))
    return node[part] if isinstance(part, int) else getattr(node, part)


def _set(node: Any, parts: Sequence[str | int], value: Any, name: str) -> Any:
    """A part of a template with one of its parameters changed."""
    first, *others = parts
    old = _part(node, first)
    if others:
        value = _set(old, others, value, name)
    elif isinstance(old, Servo) and not isinstance(value, Servo):
        value = SERVOS[check_value(name, value, one_of("servo", SERVOS))]
    if isinstance(first, int):
        return (*node[:first], value, *node[first + 1 :])
    return replace(node, **{first: value})
