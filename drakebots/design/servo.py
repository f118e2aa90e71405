"""The servo motors of skinned quad-robots.

"Computational Design of Skinned Quad-Robots", section 6.2 (MG995R) and 7 (DS3218):
sizes and torques are the paper's, masses, speeds and screws the makers' data sheets'.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from drakebots.errors import InvalidInput, UnknownName


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
