"""The skeleton's equations of a time step, from a Drake plant.

The unknown is dq = dt v+ in the plant's velocity coordinates (nv): for a revolute
joint the change of its angle, for a free base a rotation vector and a translation.
Semi-implicit Euler, with Drake's own implicit joint damping D, reads

    M (v+ - v)/dt + D (v+ - v) = tau_ext(q, v) - C(q, v) v + B tau
    A_r dq = b_r + B tau,  A_r = M/dt^2 + D/dt,
    b_r = (M/dt + D) v + tau_ext - C v

where tau_ext contains gravity, springs and -D v. Contacts of the links, limits of
joints and efforts (see :mod:`drakebots.skin.coupled.driven`), forces on the plant's
input ports and controller gains of its actuators (see :class:`Servo`) are not included.
In this scaling the multipliers of the paper's eq. (2) are forces [N], as in the skin's
A_d = M/dt^2 + ...
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
from pydrake.multibody.plant import MultibodyPlant
from pydrake.multibody.tree import Frame, JacobianWrtVariable, MultibodyForces
from pydrake.systems.framework import Context

from drakebots.core.checks import check_value, positive
from drakebots.core.errors import InvalidInput
from drakebots.core.fields import checked
from drakebots.fem.assembly import FemModel
from drakebots.model import driven_joints, find_body, joints_of, point_jacobian
from drakebots.skin.coupled.glue import Glue


@dataclass(frozen=True)
class SkeletonEquations:
    """A_r dq = b_r + B tau + J' f, and the points of the glue.

    Attributes:
        A: A_r (nv, nv) [kg/s^2 for lengths, N m for angles].
        b: b_r without torques (nv,) [N, N m].
        B: map of torques to generalized forces (nv, m).
        x: points of the glue at q (g, 3) [m].
        J: their Jacobian, dx = J dq (3 g, nv).
    """

    A: np.ndarray
    b: np.ndarray
    B: np.ndarray
    x: np.ndarray
    J: np.ndarray


@checked("servo")
class Servo:
    """Implicit joint servos, tau = k (q_d - q+) + d (v_d - v+).

    They act through the columns of B, in addition to torques, and have no effort limits
    here. An explicit servo of the usual stiffness would be unstable at 5 ms.

    Raises:
        InvalidInput: for shapes that differ, or gains that are not >= 0.
    """

    stiffness: np.ndarray
    """Gain k, one number or (m,) [N m/rad, N/m]."""
    damping: np.ndarray
    """Gain d, one number or (m,) [N m s/rad, N s/m]."""
    position: np.ndarray
    """Target q_d (m,) [rad, m]."""
    velocity: np.ndarray | None = None
    """Target v_d (m,) [rad/s, m/s]; zeros by default."""

    def __post_init__(self):
        position = np.atleast_1d(np.asarray(self.position, float))
        speed = 0.0 if self.velocity is None else self.velocity
        for name, value, least in (
            ("position", position, None),
            ("stiffness", self.stiffness, 0.0),
            ("damping", self.damping, 0.0),
            ("velocity", speed, None),
        ):
            value = one_per_torque(f"servo {name}", value, len(position), least)
            if not np.isfinite(value).all():
                raise InvalidInput(f"servo {name} {value.tolist()}: must be finite")
            object.__setattr__(self, name, value)

    def torques(self, q: np.ndarray) -> np.ndarray:
        """Torques on joints that are at q and do not move (m,) [N m].

        Raises:
            InvalidInput: for targets of another number of joints.
        """
        m = len(self.position)
        if m != len(q):
            raise InvalidInput(f"servo: {m} targets for {len(q)} torques")
        return self.stiffness * (self.position - q) + self.damping * self.velocity


def one_per_torque(
    name: str, value: np.ndarray | float, torques: int, least: float | None = 0.0
) -> np.ndarray:
    """One value for all torques, or one for each, as (m,).

    Raises:
        InvalidInput: for another shape, or a value that is not >= the least.
    """
    try:
        values = np.broadcast_to(np.asarray(value, float), torques)
    except ValueError as error:
        raise InvalidInput(f"{name}: needs {torques}, one per torque") from error
    if least is not None and not (values >= least).all():
        raise InvalidInput(f"{name} {values.tolist()}: must be >= {least:g}")
    return values


def check_skeleton(plant: MultibodyPlant, glue: Glue) -> None:
    """Refuses a plant or a glue that the coupled step does not support.

    Raises:
        UnknownName: for a link of the glue that does not exist.
        InvalidInput: for a plant that has no degrees of freedom or has constraints
            (closed loops).
    """
    if not plant.num_velocities():
        raise InvalidInput("skeleton: the plant has no degrees of freedom")
    if plant.num_constraints():
        raise InvalidInput(
            f"skeleton: the plant has {plant.num_constraints()} constraints (closed "
            "loops), which skinned robots do not support; use a tree"
        )
    for name in glue.by_body():
        find_body(plant, name)


def torque_map(plant: MultibodyPlant) -> tuple[np.ndarray, np.ndarray]:
    """Coordinates that the torques act on, in the order of the actuators.

    Returns:
        B (nv, m), and the position each torque acts on (m,).
    """
    at = [joint.position_start() for joint in driven_joints(plant)]
    return plant.MakeActuationMatrix(), np.array(at, dtype=int)


def actuated_joints(plant: MultibodyPlant) -> tuple[str, ...]:
    """Names of a plant's actuated joints, in the order of the torques."""
    return tuple(joint.name() for joint in driven_joints(plant))


def glue_points(
    plant: MultibodyPlant, context: Context, glue: Glue
) -> tuple[np.ndarray, np.ndarray]:
    """Points x_c(q) of the glue (g, 3) [m] and their Jacobian in v (3 g, nv), world.

    Rows 3 k + axis belong to row k of the glue.
    """
    by_body = glue.by_body()
    on = ((name, glue.p_BG[rows]) for name, rows in by_body.items())
    x, J = points_on(plant, context, on)
    order = np.argsort(np.concatenate(list(by_body.values())))
    return x[order], J.reshape(len(glue), 3, -1)[order].reshape(J.shape)


def points_on(
    plant: MultibodyPlant, context: Context, on: Iterable[tuple[str, np.ndarray]]
) -> tuple[np.ndarray, np.ndarray]:
    """Positions of points (k, 3) [m] and their Jacobian in v (3 k, nv), world.

    Args:
        plant, context: the skeleton.
        on: names of bodies, and points (n, 3) [m] in each one's frame.
    """
    x, J = [np.zeros((0, 3))], [np.zeros((0, plant.num_velocities()))]
    for name, p_B in on:
        frame, p = find_body(plant, name).body_frame(), np.ascontiguousarray(p_B.T)
        x.append(plant.CalcPointsPositions(context, frame, p, plant.world_frame()).T)
        J.append(point_jacobian(plant, context, frame, p))
    return np.concatenate(x), np.concatenate(J)


def spatial_jacobian(
    plant: MultibodyPlant, context: Context, frame: Frame, p: np.ndarray, base: Frame
) -> np.ndarray:
    """Jacobian in v (6, nv) of a point's spatial velocity relative to `base`.

    Args:
        plant, context: the skeleton.
        frame: frame that the point is fixed to.
        p: the point in that frame (3,) [m].
        base: frame that measures and expresses the velocity, angular part first.
    """
    wrt = JacobianWrtVariable.kV
    return plant.CalcJacobianSpatialVelocity(context, wrt, frame, p, base, base)


def joint_damping(plant: MultibodyPlant, context: Context) -> np.ndarray:
    """Viscous damping of each velocity (nv,) [N s/m, N m s/rad]."""
    D = np.zeros(plant.num_velocities())
    for joint in joints_of(plant):
        start, n = joint.velocity_start(), joint.num_velocities()
        if n:
            if joint.is_locked(context):
                raise InvalidInput(
                    f"joint {joint.name()!r}: is locked, which the coupled step "
                    "leaves out; unlock or weld it"
                )
            D[start : start + n] = joint.GetDampingVector(context)
    return D


def skeleton_equations(
    plant: MultibodyPlant,
    context: Context,
    glue: Glue,
    dt: float,
    *,
    servo: Servo | None = None,
) -> SkeletonEquations:
    """The skeleton's equations at the context's q and v.

    Args:
        plant: finalized plant in SI.
        context: context of the plant.
        glue: vertices of the skin fixed to links.
        dt: time step [s].
        servo: servos without limits, one per torque, or None.

    Raises:
        InvalidInput: for a time step that is not > 0, a locked joint, or a servo
            of another size.
    """
    check_value("time step dt", dt, positive("s"))
    v = plant.GetVelocities(context)
    damping = joint_damping(plant, context)
    M = plant.CalcMassMatrix(context)
    forces = MultibodyForces(plant)
    plant.CalcForceElementsContribution(context, forces)
    # Inverse dynamics at zero acceleration is C v - tau_ext, with gravity and -D v.
    bias = plant.CalcInverseDynamics(context, np.zeros_like(v), forces)
    A = M / dt**2 + np.diag(damping / dt)
    b = M @ v / dt + damping * v - bias
    B, at = torque_map(plant)
    if servo is not None:
        b += B @ servo.torques(plant.GetPositions(context)[at])
        A += (B * (servo.stiffness + servo.damping / dt)) @ B.T
    x, J = glue_points(plant, context, glue)
    return SkeletonEquations(A, b, B, x, J)


def glue_wrenches(
    plant: MultibodyPlant, context: Context, glue: Glue, forces: np.ndarray
) -> dict[str, tuple[np.ndarray, np.ndarray]]:
    """Resultants on each link of forces at the points of the glue.

    Args:
        forces: forces on the links (g, 3) [N], world; the negative of the coupled
            step's `glue_forces`, which act on the skin.

    Returns:
        By link, the moment about the link's origin (3,) [N m] and the force (3,)
        [N], world.
    """
    x, _ = glue_points(plant, context, glue)
    out = {}
    for name, rows in glue.by_body().items():
        origin = plant.EvalBodyPoseInWorld(context, find_body(plant, name))
        arm = x[rows] - origin.translation()
        out[name] = np.cross(arm, forces[rows]).sum(axis=0), forces[rows].sum(axis=0)
    return out


def whole_com(
    plant: MultibodyPlant, context: Context, model: FemModel, positions: np.ndarray
) -> np.ndarray:
    """COM of skeleton and skin at the context's q (3,) [m]."""
    own = plant.CalcTotalMass(context)
    skin = model.node_mass.sum()
    moment = own * plant.CalcCenterOfMassPositionInWorld(context)
    return (moment + model.node_mass @ positions) / (own + skin)
