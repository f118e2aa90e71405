"""What holds a robot in a posture: torques of its motors, loads of its feet.

At rest, with the feet pressed by vertical forces f_i >= 0 alone,

    B tau + sum_i J_zi' f_i + C' lambda + tau_g = 0,    |tau| <= effort limit

with tau_g of gravity and springs and lambda the forces in the loops. Of all answers the
one with the smallest torques and loads is taken, in units of the robot's weight and
size; where there is none, what is left over is the residual.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from pydrake.multibody.tree import MultibodyForces
from scipy.optimize import lsq_linear

from drakebots.multibody.posture.stance import Stance

_HEAVY = 1e4


@dataclass(frozen=True)
class Equilibrium:
    """Torques and loads at rest.

    Attributes:
        torques: of the actuators (nu,) [N m, N].
        loads: vertical forces on the feet (nf,) [N].
        residual: largest force or torque that nothing holds, in units of the robot's
            weight, or weight times size.
    """

    torques: np.ndarray
    loads: np.ndarray
    residual: float


def equilibrium(stance: Stance) -> Equilibrium:
    """Torques and loads that hold the robot as the stance's context has it."""
    plant, context = stance.plant, stance.context
    forces = MultibodyForces(plant)
    plant.CalcForceElementsContribution(context, forces)
    still = np.zeros(plant.num_velocities())
    plant.SetVelocities(context, still)
    tau_g = -plant.CalcInverseDynamics(context, still, forces)
    B = plant.MakeActuationMatrix()
    J = stance.foot_jacobians()[:, 2] if stance.can_be_lowered() else np.zeros(0)
    J = J.reshape(-1, plant.num_velocities())
    C = stance.robot.closure.jacobian(context)
    weight = max(stance.mass * stance.gravity, 1e-12)
    # Rows and unknowns in units of the weight, lengths in units of the size.
    row = np.where(stance.robot.length_positions()[1], 1.0, 1 / stance.size)
    A = row[:, None] * np.hstack([B * _unit(stance), J.T, C.T])
    efforts = np.array(
        [
            plant.get_joint_actuator(i).effort_limit()
            for i in plant.GetJointActuatorIndices()
        ]
    )
    most = np.concatenate(
        [
            np.maximum(efforts / (weight * _unit(stance)), 1e-9),
            np.full(len(J) + len(C), np.inf),
        ]
    )
    least = -most
    least[len(efforts) : len(efforts) + len(J)] = 0.0
    if not A.shape[1]:
        left = float(np.abs(row * tau_g / weight).max(initial=0.0))
        return Equilibrium(np.zeros(0), np.zeros(0), left)
    rows = np.vstack([_HEAVY * A, np.eye(A.shape[1])])
    goal = np.concatenate([-_HEAVY * row * tau_g / weight, np.zeros(A.shape[1])])
    y = lsq_linear(rows, goal, (least, most)).x
    left = A @ y + row * tau_g / weight
    return Equilibrium(
        torques=y[: len(efforts)] * weight * _unit(stance),
        loads=y[len(efforts) : len(efforts) + len(J)] * weight,
        residual=float(np.abs(left).max(initial=0.0)),
    )


def _unit(stance: Stance) -> np.ndarray:
    """One unit of every actuator: the size for a torque, 1 for a force (nu,)."""
    plant = stance.plant
    slides = [
        plant.get_joint_actuator(i).joint().type_name() == "prismatic"
        for i in plant.GetJointActuatorIndices()
    ]
    return np.where(slides, 1.0, stance.size)
