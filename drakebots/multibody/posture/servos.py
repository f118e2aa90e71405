"""Loads that hold a robot in a posture, and servos that bring them up.

At rest, with the feet pressed by vertical forces f_i >= 0 alone,

    B tau + sum_i J_zi' f_i + C' lambda + tau_g = 0,    |tau| <= effort limit

where tau_g are the forces of gravity and springs, and lambda those in the loops. Of all
solutions, the one with the smallest torques and loads is taken, in units of the robot's
weight and size. If there is none, the residual is what remains of the left side.

A servo gives every motor the torque that holds the posture at rest and a stiffness and
a damping about it,

    u = tau_0 + k (q_0 - q) - d v,    |u| <= effort limit

A leg's joint carries the robot's mass m at a distance of its size L, shared by n legs,
so that with the stiffness c in units of m g L / n

    k = c (g / L) I,   d = 1.4 sqrt(c g / L) I,   I = max(m L^2 / n, M_jj, J)

where M_jj is the joint's own entry of the mass matrix, and J the largest moment of
inertia of what it turns, about any axis (about an arm's own it has next to none, and
an arm held out would roll and drop); a joint outside the legs has
I = max(M_jj, J), or the gains that the file gives its motor, which are a soft limb's
own stiffness. A motor that turns a leg's joint by a gear r, through the rods of a loop
or because the joint follows it, carries r^2 m L^2 / n, wherever it is. The damping is
0.7 of the critical one. Drake takes gains into its contact solver's step, so that stiff
ones stay stable.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from pydrake.multibody.plant import MultibodyPlant
from pydrake.multibody.tree import JointIndex, MultibodyForces, PdControllerGains
from pydrake.systems.framework import DiagramBuilder, InputPort, OutputPort
from pydrake.systems.primitives import ConstantVectorSource, MatrixGain
from scipy.optimize import lsq_linear

from drakebots.model import (
    actuators_of,
    driven_joints,
    effort_limits,
    slides,
    sliding_motors,
)
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
        left: load that nothing holds, of every velocity (nv,) in the same units.
        springs: forces of `Stance.springs`, where they may be any [N m, N].
    """

    torques: np.ndarray
    loads: np.ndarray
    residual: float
    weakest: str
    left: np.ndarray
    springs: np.ndarray


def equilibrium(stance: Stance, *, sprung: bool = False) -> Equilibrium:
    """Torques and loads that hold the robot as the stance's context has it.

    Args:
        stance: the robot, posed.
        sprung: whether its springs may have any force, not only that of the pose.
    """
    plant, context = stance.plant, stance.context
    forces = MultibodyForces(plant)
    plant.CalcForceElementsContribution(context, forces)
    still = np.zeros(plant.num_velocities())
    plant.SetVelocities(context, still)
    tau_g = -plant.CalcInverseDynamics(context, still, forces)
    springs = stance.springs.items() if sprung else ()
    bent = [stance.joints[k] for k, _ in springs]
    columns, q = [joint.velocity_start() for joint in bent], stance.positions()
    tau_g[columns] += [k * (q[number] - rest) for number, (k, rest) in springs]
    weight = max(stance.mass * stance.gravity, 1e-12)
    # Rows and unknowns in units of the weight, lengths in units of the size.
    row = np.where(stance.robot.length_positions()[1], 1.0, 1 / stance.size) / weight
    # One unit of a motor or spring: the size for a torque, 1 for a force.
    sliding = np.array([*sliding_motors(plant), *map(slides, bent)], bool)
    unit = np.where(sliding, 1.0, stance.size) * weight
    B = np.hstack([plant.MakeActuationMatrix(), np.eye(len(still))[:, columns]]) * unit
    J = stance.foot_jacobians()[:, 2] * weight if stance.stands else B.T[:0]
    C = stance.robot.closure.jacobian(context) * weight
    row = row * stance.own_velocities()
    A, goal = row[:, None] * np.hstack([B, J.T, C.T]), -row * tau_g
    y, nu, nf = np.zeros(A.shape[1]), plant.num_actuators(), len(J)
    if len(y):
        most = np.full(len(y), np.inf)
        most[:nu] = np.maximum(effort_limits(plant) / unit[:nu], 1e-9)
        least = -most
        least[len(unit) : len(unit) + nf] = 0.0
        rows = np.vstack([_HEAVY * A, np.eye(len(y))])
        y = lsq_linear(rows, [*(_HEAVY * goal), *(0.0 * y)], (least, most)).x
    left = np.abs(A @ y - goal)
    names = plant.GetVelocityNames(
        add_model_instance_prefix=False, always_add_suffix=False
    )
    efforts, loads = y[: len(unit)] * unit, y[len(unit) : len(unit) + nf] * weight
    return Equilibrium(
        torques=efforts[:nu],
        loads=loads,
        residual=float(left.max(initial=0.0)),
        weakest=names[left.argmax()] if len(left) else "",
        left=left,
        springs=efforts[nu:],
    )


DAMPING = 0.7
"""Damping of a servo, as a share of the critical one."""
_DEAD_CENTRE = 1e-3  # a rod's lever arm, as a share of the longest
_TURNS = 1e-6  # what may be left of C v = 0, as a share of the motor's own part


@dataclass(frozen=True)
class Servos:
    """One servo for every actuator of a plant, in the order of their indices, in SI.

    Attributes:
        positions: positions to hold (nu,) [rad, m].
        stiffness: stiffness k (nu,) [N m/rad, N/m].
        damping: damping d (nu,) [N m s/rad, N s/m].
        rest: torques that hold the posture at rest.
    """

    positions: np.ndarray
    stiffness: np.ndarray
    damping: np.ndarray
    rest: Equilibrium

    def add_to(self, plant: MultibodyPlant) -> None:
        """Sets the gains of a plant's actuators, before it is finalized."""
        for motor, p, d in zip(actuators_of(plant), self.stiffness, self.damping):
            motor.set_controller_gains(PdControllerGains(p=p, d=d))

    def connect(self, builder: DiagramBuilder, plant: MultibodyPlant) -> None:
        """Connects the held positions and torques to a finalized plant's ports; the
        system "targets" gives the positions, and rates of zero."""
        motors = actuators_of(plant)
        held = np.concatenate([self.positions, np.zeros(len(motors))])
        source = builder.AddNamedSystem("targets", ConstantVectorSource(held))
        connect_targets(builder, source.get_output_port(), plant)
        torques = np.zeros(plant.num_actuated_dofs())
        for motor, torque in zip(motors, self.rest.torques):
            torques[motor.input_start()] = torque
        builder.Connect(
            builder.AddSystem(ConstantVectorSource(torques)).get_output_port(),
            plant.get_actuation_input_port(),
        )


def connect_targets(
    builder: DiagramBuilder, targets: OutputPort, plant: MultibodyPlant
) -> None:
    """Connects the targets of all servos to a plant's ports for desired states.

    Args:
        builder: builder of the diagram that has the plant.
        targets: port with the positions [rad, m] and then the velocities [rad/s, m/s]
            of all actuated joints (2 nu,), in the order of the actuators' indices.
        plant: finalized plant in SI, whose actuators have gains.
    """
    for port, rows in target_ports(plant):
        matrix = np.eye(2 * plant.num_actuators())[rows]
        chosen = builder.AddSystem(MatrixGain(matrix))
        builder.Connect(targets, chosen.get_input_port())
        builder.Connect(chosen.get_output_port(), port)


def target_ports(plant: MultibodyPlant) -> list[tuple[InputPort, list[int]]]:
    """Ports of the servos' targets, and the rows that each takes of all targets:
    positions of the motors, then velocities."""
    motors, found = actuators_of(plant), []
    for instance in {m.model_instance(): None for m in motors}:
        own = [k for k, m in enumerate(motors) if m.model_instance() == instance]
        port = plant.get_desired_state_input_port(instance)
        found.append((port, own + [len(motors) + k for k in own]))
    return found


def servos(stance: Stance, stiffness: float) -> Servos:
    """Servos that hold the robot as the stance's context has it.

    Args:
        stance: the robot, posed.
        stiffness: c of a leg's joint, in units of m g L / n per radian.
    """
    plant, context = stance.plant, stance.context
    motors = actuators_of(plant)
    inertia = np.diag(plant.CalcMassMatrix(context))
    carried = stance.mass / max(len(stance.legs), 1)
    # Levers of the mass about the joints that carry it [m/rad, 1].
    lever = {j.index(): 1.0 if slides(j) else stance.size for j in stance.leg_joints()}
    lever |= _levers_through_loops(stance, lever)
    own = np.zeros(len(motors))
    for k, motor in enumerate(motors):
        joint = motor.joint()
        leg = carried * lever.get(joint.index(), 0.0) ** 2
        own[k] = max(inertia[joint.velocity_start()], leg)
        if not slides(joint):
            moved = plant.GetBodiesKinematicallyAffectedBy([joint.index()])
            M = plant.CalcSpatialInertia(context, joint.frame_on_child(), moved)
            moments = M.CalcRotationalInertia().CopyToFullMatrix3()
            own[k] = max(own[k], np.linalg.eigvalsh(moments)[-1])
    rate = np.sqrt(stiffness * stance.gravity / stance.size)
    gains = np.column_stack([rate**2 * own, 2 * DAMPING * rate * own])
    for k, motor in enumerate(motors):
        if motor.has_controller() and motor.joint().index() not in lever:
            given = motor.get_controller_gains()
            gains[k] = given.p, given.d
    q = plant.GetPositions(context)
    return Servos(
        positions=np.array([q[m.joint().position_start()] for m in motors]),
        stiffness=gains[:, 0],
        damping=gains[:, 1],
        rest=equilibrium(stance),
    )


def _levers_through_loops(
    stance: Stance, levers: dict[JointIndex, float]
) -> dict[JointIndex, float]:
    """The levers of motors that drive a leg's joint by a rod or a coupler.

    A motor turns while the base and all others are held: the joints without motors
    follow by C v = 0. A motor that cannot turn so, as where two drive one loop, is
    left out.

    Args:
        stance: the robot, posed.
        levers: levers of the legs' own joints [m/rad, 1].
    """
    motors, found = driven_joints(stance.plant), {}
    driven = {m.index() for m in motors}
    free = [
        j for j in stance.joints if j.index() not in driven and j.num_velocities() == 1
    ]
    C = stance.robot.closure.jacobian(stance.context)
    if not len(C) or not free:
        return found
    C_free = C[:, [j.velocity_start() for j in free]]
    # A rod near its dead centre would turn its joint without bound.
    followed = -np.linalg.pinv(C_free, rcond=_DEAD_CENTRE)
    for motor in motors:
        if motor.num_velocities() != 1 or motor.index() in levers:
            continue
        c = C[:, motor.velocity_start()]
        gears = followed @ c
        if np.abs(C_free @ gears + c).max() > _TURNS * np.abs(c).max(initial=0.0):
            continue
        found[motor.index()] = max(
            abs(gear) * levers.get(joint.index(), 0.0)
            for joint, gear in zip(free, gears)
        )
    return found
