"""The gecko's parameters: `models/gecko/params.yaml` as named values in SI."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from drakebots.core.checks import between, check, check_value, finite, one_of, positive
from drakebots.model import Parameters, parameters_of

MODEL = "gecko"
"""Name of the robot's folder in `models`."""

FEET = ("FL", "FR", "RL", "RR")
"""The feet, in the order of every fixation f and foot heading phi."""

LIMBS = ("FL", "FR", "torso", "RL", "RR")
"""The limbs, in the order of every alpha and ell."""

MARKERS = ("FL", "front", "FR", "RL", "rear", "RR")
"""The points p0..p5: the feet, and the two ends of the torso."""

FOOT_MARKERS = (0, 2, 3, 5)
"""The feet among the markers."""

LEGS = (0, 1, 3, 4)
"""The legs among the limbs, in the order of the feet."""


@dataclass(frozen=True)
class Weights:
    """Weights of the pose-step objective, in the authors' units.

    Attributes:
        length: f_l, weight of the limbs' stretch [1/cm].
        orientation: f_o, weight of the turning of fixed feet [1/deg].
        angle: f_a, weight of the angles' distance from the gait law [1/deg].
    """

    length: float = 89.0
    orientation: float = 10.0
    angle: float = 5.9

    def __post_init__(self):
        per_cm, per_deg = positive("1/cm"), positive("1/deg")
        check(self, "weights", length=per_cm, orientation=per_deg, angle=per_deg)


@dataclass(frozen=True)
class Gecko:
    """A gecko robot: its lengths, their bounds, and the pose step's weights.

    Attributes:
        leg: length of an unstretched leg [m].
        torso: length of the unstretched torso [m].
        weights: weights of the pose-step objective.
        stretch: largest change of a limb's length, as a share of that length.
        bend: largest distance of an angle from its reference [rad].
        leg_bend: coefficient c1 of the gait law.
    """

    leg: float = 0.091
    torso: float = 0.103
    weights: Weights = field(default_factory=Weights)
    stretch: float = 0.1
    bend: float = np.radians(100.0)
    leg_bend: float = 1.0

    def __post_init__(self):
        check(
            self,
            "gecko",
            leg=positive("m"),
            torso=positive("m"),
            stretch=between(0, 1, open_ends=True),
            bend=between(0, 2 * np.pi, "rad", open_ends=True),
            leg_bend=finite(),
        )

    @property
    def lengths(self) -> np.ndarray:
        """Unstretched lengths of the limbs (5,) [m]."""
        return np.array([self.leg, self.leg, self.torso, self.leg, self.leg])


def parameters() -> Parameters:
    """All numbers of the gecko's models and planners."""
    return parameters_of(MODEL)


def gecko(size: str = "small", weights: str = "velocity_space") -> Gecko:
    """The robot of a named size with named weights.

    Raises:
        UnknownName: listing the sizes or the weights.
    """
    own = parameters()
    sizes, sets = own.table("sizes"), own.raw["weights"]["value"]
    check_value("size", size, one_of("gecko size", sizes))
    check_value("weights", weights, one_of("weights", sets))
    return Gecko(
        **sizes[size],
        weights=Weights(*map(float, sets[weights])),
        stretch=own.number("stretch"),
        bend=own.number("bend"),
        leg_bend=own.number("leg_bend"),
    )
