"""The gecko's parameters: `models/gecko/params.yaml` as named values in SI."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cache
from typing import Any

import numpy as np
import yaml

from drakebots.core.errors import InvalidInput, UnknownName
from drakebots.core.units import quantity, si_factor
from drakebots.model import package_root

# Entries of the parameter file that hold several numbers by name.


@cache
def table(name: str) -> dict[str, float]:
    """The numbers of an entry in SI; its unit is one, or one for each."""
    node = raw()[name]
    unit = node["unit"]
    return {
        key: float(value) * si_factor(unit[key] if isinstance(unit, dict) else unit)
        for key, value in node["value"].items()
    }


FEET = ("FL", "FR", "RL", "RR")
"""The feet in the order of every fixation f and orientation phi."""

LIMBS = ("FL", "FR", "torso", "RL", "RR")
"""The limbs in the order of every alpha and ell."""

MARKERS = ("FL", "front", "FR", "RL", "rear", "RR")
"""The points p0..p5: feet, and the two ends of the torso."""

FOOT_MARKERS = (0, 2, 3, 5)
"""The feet among the markers."""

LEGS = (0, 1, 3, 4)
"""The legs among the limbs, in the order of the feet."""


@dataclass(frozen=True)
class Weights:
    """Of the pose step's objective, in the authors' units.

    Attributes:
        length: f_l [1/cm].
        orientation: f_o [1/deg].
        angle: f_a [1/deg].
    """

    length: float = 89.0
    orientation: float = 10.0
    angle: float = 5.9

    def __post_init__(self):
        for name in ("length", "orientation", "angle"):
            value = getattr(self, name)
            if not (np.isfinite(value) and value > 0):
                raise InvalidInput(f"weight {name} must be > 0, got {value}")


@dataclass(frozen=True)
class Gecko:
    """A gecko robot: its lengths, and how its limbs trade one wish for another.

    Attributes:
        leg, torso: lengths of the unstretched limbs [m].
        weights: of the pose step.
        stretch: share by which a limb may lengthen or shorten.
        bend: by which an angle may differ from its reference [rad].
        leg_bend: c1 of the gait law.
    """

    leg: float = 0.091
    torso: float = 0.103
    weights: Weights = field(default_factory=Weights)
    stretch: float = 0.1
    bend: float = np.radians(100.0)
    leg_bend: float = 1.0

    def __post_init__(self):
        for name in ("leg", "torso"):
            value = getattr(self, name)
            if not (np.isfinite(value) and value > 0):
                raise InvalidInput(f"the length of the {name} must be > 0 m: {value}")
        for name, most in (("stretch", 1.0), ("bend", 2 * np.pi)):
            value = getattr(self, name)
            if not 0 < value < most:
                raise InvalidInput(f"{name} must be within 0..{most:.4g}, got {value}")
        if not np.isfinite(self.leg_bend):
            raise InvalidInput(f"leg_bend must be finite, got {self.leg_bend}")

    @property
    def lengths(self) -> np.ndarray:
        """Unstretched lengths of the limbs (5,) [m]."""
        return np.array([self.leg, self.leg, self.torso, self.leg, self.leg])


@cache
def raw() -> dict[str, Any]:
    """The parameter file as parsed, in the units it states."""
    return yaml.safe_load((package_root() / "gecko" / "params.yaml").read_text())


def scalar(name: str) -> float:
    """A scalar of the file in SI."""
    return quantity(raw()[name], name)


def array(name: str) -> np.ndarray:
    """A vector or a table of the file in SI."""
    node = raw()[name]
    return si_factor(node["unit"]) * np.array(node["value"], float)


def gecko(size: str = "small", weights: str | Weights = "velocity_space") -> Gecko:
    """The robot of a size by its name, with weights by their name.

    Raises:
        UnknownName: listing the sizes or the weights.
    """
    sizes, sets = raw()["sizes"], raw()["weights"]["value"]
    if size not in sizes["value"]:
        raise UnknownName("gecko size", size, sizes["value"])
    if isinstance(weights, str):
        if weights not in sets:
            raise UnknownName("weights", weights, sets)
        weights = Weights(*map(float, sets[weights]))
    unit = si_factor(sizes["unit"])
    return Gecko(
        leg=unit * sizes["value"][size]["leg"],
        torso=unit * sizes["value"][size]["torso"],
        weights=weights,
        stretch=scalar("stretch"),
        bend=scalar("bend"),
        leg_bend=scalar("leg_bend"),
    )
