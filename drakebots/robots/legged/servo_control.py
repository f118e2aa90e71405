"""Servos at the joints that follow a plan, with its inputs fed forward.

    u = u_plan + k_p (q_plan - q) + k_d (v_plan - v)

The base is not measured: errors of its pose and velocity stay, or grow.
"""

from __future__ import annotations

import numpy as np

from drakebots.multibody import Robot
from drakebots.robots.legged.reference import Reference, gravity

STIFFNESS = 3.0
"""k_p [m g l per radian] (a sliding joint: [m g/l]), l the height of the centre of
mass."""

DAMPING = 0.1
"""k_d, as a share of k_p sqrt(l/g)."""


class ServoControl:
    """Torques of servos about a plan; see :class:`.whole_body.WholeBodyControl`.

    Args:
        robot: on the plan's base.
        plan: the plan.
        limits: largest magnitude of every input (nu,).
    """

    def __init__(self, robot: Robot, plan: Reference, *, limits: np.ndarray):
        self._plan, self._limits = plan, limits
        self._B = np.array(robot.plant.MakeActuationMatrix())
        g, height = gravity(robot), plan.height
        weight = robot.model.summary.mass / robot.scaling.mass * g
        plant = robot.plant
        slides = np.array(
            [
                plant.get_joint_actuator(i).joint().type_name() == "prismatic"
                for i in plant.GetJointActuatorIndices()
            ]
        )
        unit = np.where(slides, weight / height, weight * height)
        self._kp = STIFFNESS * unit
        self._kd = DAMPING * np.sqrt(height / g) * self._kp

    def inputs(
        self, time: float, q: np.ndarray, v: np.ndarray, touching: np.ndarray
    ) -> np.ndarray:
        """Inputs (nu,) for a state at a time of the plan; `touching` is not used."""
        planned = self._plan.at(time)
        error, rate = self._B.T @ (planned.q - q), self._B.T @ (planned.v - v)
        u = planned.input + self._kp * error + self._kd * rate
        return np.clip(u, -self._limits, self._limits)
