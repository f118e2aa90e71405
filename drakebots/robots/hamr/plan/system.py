"""HAMR-VI as the planner sees it: voltages as inputs, mm, g, ms inside."""

from __future__ import annotations

from functools import cache

import casadi as ca
import numpy as np

from drakebots.core.errors import InvalidInput
from drakebots.robots.hamr.model import ACTUATORS, LEGS, hamr_benders
from drakebots.robots.hamr.simulate import friction_of
from drakebots.robots.hamr.track import reference_robot
from drakebots.trajopt.contact_implicit import ContactSystem, Scales

# The ground and the knots of HAMR's plans.


class GroundedPlan:
    """What gaits and jumps to be planned have in common.

    Attributes:
        surface: a name from `params.yaml`, or use `friction`.
        friction: coefficient instead of the surface's.
        knots: N.
    """

    surface: str
    friction: float | None
    knots: int

    def check_ground_and_knots(self) -> None:
        """Refuses what no plan can have.

        Raises:
            UnknownName: for an unknown surface.
            InvalidInput: for a friction or a number of knots that cannot be.
        """
        if self.friction is None:
            friction_of(self.surface)
        elif not 0 <= self.friction < np.inf:
            raise InvalidInput(f"friction must be >= 0, got {self.friction}")
        if int(self.knots) != self.knots or self.knots < 5:
            raise InvalidInput(f"knots must be a whole number >= 5, got {self.knots}")

    @property
    def mu(self) -> float:
        """The friction coefficient."""
        return friction_of(self.surface) if self.friction is None else self.friction

    @property
    def ground(self) -> dict[str, str | float]:
        """For metrics: the surface's name and its coefficient."""
        custom = self.friction is not None
        return {"surface": "custom" if custom else self.surface, "friction": self.mu}


SCALES = Scales(
    position=1.0,
    force=0.01,
    loop_force=0.1,
    input=100.0,
    speed=0.1,
    slack=1e-3,
    momentum=0.01,
    gap=1.0,
)
"""Typical sizes in mm, g, ms (N, V): a foot carries 4 mN, strides 0.1 mm/ms."""


class PiezoInputs:
    """The actuators' law as a generalized force, exactly affine in voltage.

    F = o C0 (V_b - 2 V) - V_b dC q on each actuator's tip; see
    :class:`drakebots.robots.hamr.model.piezo.Bender`.
    """

    def __init__(self):
        robot, law = reference_robot(), hamr_benders()
        unit, plant = robot.scaling, robot.plant
        self.tips = [
            plant.get_joint_actuator(i).joint().position_start()
            for i in plant.GetJointActuatorIndices()
        ]
        self.per_volt = 2 * law.orientation * law.force_per_volt / unit.force
        """Force lost by a volt, plant units (8,)."""
        self.offset = self.per_volt * law.bias / 2
        slope = law.bias * law.softening * unit.length / unit.force
        self.slope = np.broadcast_to(slope, (8,)).copy()
        self.bias = float(law.bias)

    def __call__(self, twin, q: ca.SX, v: ca.SX, u: ca.SX) -> ca.SX:
        force = ca.SX(self.offset) - ca.SX(self.per_volt) * u
        force -= ca.SX(self.slope) * q[self.tips]
        return ca.SX(twin.actuation_matrix()) @ force


@cache
def hamr_system() -> ContactSystem:
    """HAMR-VI on flat ground, driven by voltages."""
    return ContactSystem(
        reference_robot(), inputs=PiezoInputs(), input_names=tuple(ACTUATORS)
    )


def base_coordinates() -> dict[str, str]:
    """Names of the base's coordinates: x, y, z, yaw, pitch, roll."""
    names = hamr_system().coordinates[:6]
    return dict(zip(("x", "y", "z", "yaw", "pitch", "roll"), names))


__all__ = [
    "LEGS",
    "SCALES",
    "PiezoInputs",
    "base_coordinates",
    "hamr_system",
]
