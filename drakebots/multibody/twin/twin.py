"""A finalized MultibodyPlant as CasADi expressions: its twin.

Drake stays the only source of the model: the twin walks the plant's bodies, joints and
force elements and rebuilds energy, dynamics, feet and loops as SX expressions, from
which CasADi derives exact sparse Jacobians and Hessians. Tests compare it with Drake at
1e-10. Everything is in the plant's units.
"""

from __future__ import annotations

import casadi as ca
import numpy as np
from pydrake.multibody.plant import MultibodyPlant
from pydrake.multibody.tree import (
    BodyIndex,
    ForceElementIndex,
    LinearSpringDamper,
    PrismaticSpring,
    RevoluteSpring,
    UniformGravityFieldElement,
)

from drakebots.core.errors import InvalidInput
from drakebots.multibody.twin.kinematics import TwinKinematics, joint_slices


class Twin(TwinKinematics):
    """CasADi expressions of a plant.

    The methods take positions `q` (nq,) and velocities `v` (nv,) in Drake's
    order, as SX.

    Args:
        plant: finalized.

    Raises:
        InvalidInput: for a joint or force element without a twin, by name.
    """

    def __init__(self, plant: MultibodyPlant):
        super().__init__(plant)
        self.nu = plant.num_actuated_dofs()
        self._springs = self._force_elements()

    def _force_elements(self):
        plant, found = self.plant, []
        for i in range(plant.num_force_elements()):
            element = plant.get_force_element(ForceElementIndex(i))
            if isinstance(element, UniformGravityFieldElement):
                continue
            if not isinstance(
                element, RevoluteSpring | PrismaticSpring | LinearSpringDamper
            ):
                raise InvalidInput(
                    f"force element {i} ({type(element).__name__}) has no twin; use "
                    "joint springs or LinearSpringDamper"
                )
            found.append(element)
        return found

    def kinetic_energy(self, q: ca.SX, v: ca.SX) -> ca.SX:
        """T = 1/2 v'M(q)v, reflected inertias included."""
        total = ca.SX(0)
        for link, w, u in self.body_velocities(q, v):
            mass, p_cm, I_cm = self._inertia(link.body)
            if mass == 0:
                continue
            u_cm = u + ca.cross(w, ca.SX(p_cm))
            total += 0.5 * mass * ca.dot(u_cm, u_cm) + 0.5 * ca.dot(w, ca.SX(I_cm) @ w)
        return total + 0.5 * ca.dot(v, ca.SX(self.reflected_inertia()) * v)

    def _inertia(self, body: int):
        M = self.plant.get_body(BodyIndex(body)).default_spatial_inertia()
        mass = M.get_mass()
        if mass == 0:
            return 0.0, np.zeros(3), np.zeros((3, 3))
        about_cm = M.CalcRotationalInertia().CopyToFullMatrix3()
        p = M.get_com()
        about_cm = about_cm - mass * (p @ p * np.eye(3) - np.outer(p, p))
        tiny = np.abs(about_cm) < 1e-14 * np.abs(about_cm).max()
        about_cm[tiny] = 0.0
        return mass, p, about_cm

    def reflected_inertia(self) -> np.ndarray:
        """Diagonal added to M by rotors behind gears (nv,)."""
        diagonal = np.zeros(self.nv)
        for index in self.plant.GetJointActuatorIndices():
            actuator = self.plant.get_joint_actuator(index)
            inertia = actuator.default_gear_ratio() ** 2
            inertia *= actuator.default_rotor_inertia()
            diagonal[actuator.joint().velocity_start()] += inertia
        return diagonal

    def potential_energy(self, q: ca.SX) -> ca.SX:
        """V of gravity and springs, up to a constant."""
        plant = self.plant
        gravity = plant.gravity_field().gravity_vector()
        poses = self.poses(q)
        total = ca.SX(0)
        for link in self.links:
            body = plant.get_body(BodyIndex(link.body))
            mass, p_cm, _ = self._inertia(link.body)
            if mass and plant.gravity_field().is_enabled(body.model_instance()):
                p_WC = poses[link.body].point(p_cm)
                total -= mass * ca.dot(ca.SX(gravity), p_WC)
        for element in self._springs:
            total += self._spring_energy(element, q)
        return total

    def _spring_energy(self, element, q):
        if isinstance(element, RevoluteSpring):
            x = q[element.joint().position_start()] - element.default_nominal_angle()
            return 0.5 * element.default_stiffness() * x**2
        if isinstance(element, PrismaticSpring):
            x = q[element.joint().position_start()] - element.nominal_position()
            return 0.5 * element.stiffness() * x**2
        length = ca.norm_2(self._span(element, q))
        return 0.5 * element.stiffness() * (length - element.free_length()) ** 2

    def _span(self, element: LinearSpringDamper, q):
        A, B = (int(b.index()) for b in (element.bodyA(), element.bodyB()))
        return self.relative_pose(q, A, B).point(element.p_BQ()) - ca.SX(element.p_AP())

    def damping_force(self, q: ca.SX, v: ca.SX) -> ca.SX:
        """Generalized force of joint damping and dampers (nv,)."""
        force = -ca.SX(self.joint_damping()) * v
        for element in self._springs:
            if isinstance(element, LinearSpringDamper) and element.damping():
                length = ca.norm_2(self._span(element, q))
                rate = ca.jtimes(length, q, self.rates(q, v))
                # Virtual power: f = -d ldot (dldot/dv).
                force -= element.damping() * rate * ca.gradient(rate, v)
        return force

    def joint_damping(self) -> np.ndarray:
        """Viscous coefficients (nv,)."""
        damping = np.zeros(self.nv)
        for link in self.links:
            _, b = joint_slices(link.joint)
            if b.stop > b.start:
                damping[b] = link.joint.default_damping_vector()
        return damping

    def lagrangian(self, q: ca.SX, v: ca.SX) -> ca.SX:
        """L = T - V."""
        return self.kinetic_energy(q, v) - self.potential_energy(q)

    def inverse_dynamics(self, q: ca.SX, v: ca.SX, vdot: ca.SX) -> ca.SX:
        """tau = M(q) vdot + C(q, v) v - tau_applied (nv,).

        tau_applied are gravity, springs and damping. Newton-Euler, for any
        joint: with dV/dt of every body, tau = sum_B (dV_B/dv)' F_B.
        """
        qdot = self.rates(q, v)
        tau = ca.SX(self.reflected_inertia()) * vdot
        for link, w, u in self.body_velocities(q, v):
            mass, p_cm, I_cm = self._inertia(link.body)
            if mass == 0:
                continue
            u = u + ca.cross(w, ca.SX(p_cm))
            V = ca.vertcat(w, u)
            A = ca.jtimes(V, q, qdot) + ca.jtimes(V, v, vdot)
            momentum = ca.SX(I_cm) @ w
            torque = ca.SX(I_cm) @ A[:3] + ca.cross(w, momentum)
            force = mass * (A[3:] + ca.cross(w, u))
            tau += ca.jtimes(V, v, ca.vertcat(torque, force), True)
        return tau - self.conservative_force(q) - self.damping_force(q, v)

    def conservative_force(self, q: ca.SX) -> ca.SX:
        """-N'dV/dq (nv,): gravity and springs."""
        gradient = ca.gradient(self.potential_energy(q), q)
        v = ca.SX.sym("v", self.nv)
        return -ca.jtimes(self.rates(q, v), v, gradient, True)

    def actuation_matrix(self) -> np.ndarray:
        """B (nv, nu)."""
        return np.array(self.plant.MakeActuationMatrix())
