"""What holds a robot in a posture: torques of its motors, loads of its feet.

At rest, with the feet pressed by vertical forces f_i >= 0 alone,

    B tau + sum_i J_zi' f_i + C' lambda + tau_g = 0,    |tau| <= effort limit

where tau_g are the forces of gravity and springs, and lambda those in the loops. Of all
solutions, the one with the smallest torques and loads is taken, in units of the robot's
weight and size. If there is none, the residual is what remains of the left side.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from pydrake.multibody.plant import MultibodyPlant
from pydrake.multibody.tree import MultibodyForces
from scipy.optimize import lsq_linear

from drakebots.multibody.posture.stance import Stance

_HEAVY = 1e4


@dataclass(frozen=True)
class Equilibrium:
    """Torques and loads at rest.

    Attributes:
        torques: torques or forces of the actuators (nu,) [N m, N].
        loads: vertical forces on the feet (nf,) [N].
        residual: largest force or torque that nothing holds, in units of the robot's
            weight, or weight times size.
        weakest: name of the velocity whose row that is: a joint as its file names it,
            "FL_knee", or a direction of the base, "body_vz".
        left: what nothing holds, of every velocity (nv,) in the same units.
    """

    torques: np.ndarray
    loads: np.ndarray
    residual: float
    weakest: str
    left: np.ndarray


def equilibrium(stance: Stance) -> Equilibrium:
    """Torques and loads that hold the robot as the stance's context has it."""
    plant, context = stance.plant, stance.context
    forces = MultibodyForces(plant)
    plant.CalcForceElementsContribution(context, forces)
    still = np.zeros(plant.num_velocities())
    plant.SetVelocities(context, still)
    tau_g = -plant.CalcInverseDynamics(context, still, forces)
    weight = max(stance.mass * stance.gravity, 1e-12)
    # Rows and unknowns in units of the weight, lengths in units of the size.
    row = np.where(stance.robot.length_positions()[1], 1.0, 1 / stance.size) / weight
    motor = _unit(stance) * weight
    B = plant.MakeActuationMatrix() * motor
    J = stance.foot_jacobians()[:, 2] * weight if stance.stands else B.T[:0]
    C = stance.robot.closure.jacobian(context) * weight
    row = row * stance.own_velocities()
    A, goal = row[:, None] * np.hstack([B, J.T, C.T]), -row * tau_g
    y, nu, nf = np.zeros(A.shape[1]), len(motor), len(J)
    if len(y):
        most = np.full(len(y), np.inf)
        most[:nu] = np.maximum(_efforts(plant) / motor, 1e-9)
        least = -most
        least[nu : nu + nf] = 0.0
        rows = np.vstack([_HEAVY * A, np.eye(len(y))])
        y = lsq_linear(rows, [*(_HEAVY * goal), *(0.0 * y)], (least, most)).x
    left = np.abs(A @ y - goal)
    names = plant.GetVelocityNames(
        add_model_instance_prefix=False, always_add_suffix=False
    )
    return Equilibrium(
        torques=y[:nu] * motor,
        loads=y[nu : nu + nf] * weight,
        residual=float(left.max(initial=0.0)),
        weakest=names[left.argmax()] if len(left) else "",
        left=left,
    )


def _efforts(plant: MultibodyPlant) -> np.ndarray:
    """Limits of effort of the actuators (nu,) [N m, N]."""
    indices = plant.GetJointActuatorIndices()
    return np.array([plant.get_joint_actuator(i).effort_limit() for i in indices])


def _unit(stance: Stance) -> np.ndarray:
    """One unit of every actuator: the size for a torque, 1 for a force (nu,)."""
    plant = stance.plant
    slides = [
        plant.get_joint_actuator(i).joint().type_name() == "prismatic"
        for i in plant.GetJointActuatorIndices()
    ]
    return np.where(slides, 1.0, stance.size)
