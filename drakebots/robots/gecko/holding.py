"""What a suction foot can hold, and what the feet have to hold on a wall.

A cup pressed on by a suction force F and pulled off by N (> 0 away from the
wall) stays as long as

    N <= F   and   |S| <= mu (F - N)

with its shear S in the wall's plane. The plant gives S. Its links cannot leave
the plane, so N follows from statics: on an incline theta (+x uphill) a weight W
whose centre is h above the wall at r_c needs

    sum N_i = -W cos theta,     sum N_i (r_i - r_c) = W h sin theta [1, 0],

of which the least |N| is taken: uphill feet are pulled, downhill feet pressed.
Two feet resist tilting only along the line between them; the rest of the moment
rests on the belly or bends the cups, and is not counted. The model is ours: a
friction cone moved by the suction, as usual for cups.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from drakebots.errors import InvalidInput
from drakebots.robots.gecko.tables import table


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
