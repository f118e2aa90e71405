"""A finalized MultibodyPlant as CasADi expressions: its twin.

Drake stays the only source of the model; the twin walks the plant's bodies,
joints and force elements and rebuilds energy, dynamics, feet and loops as SX
expressions, from which CasADi makes exact sparse Jacobians and Hessians.
Tests hold it to Drake at 1e-10. Everything is in the plant's units.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

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

from drakebots.errors import InvalidInput
from drakebots.multibody.loops import Loop, find_body
from drakebots.multibody.twin_joints import (
    JointMotion,
    joint_motion,
    joint_rates,
    joint_velocities,
)


@dataclass(frozen=True)
class Pose:
    """X_AB as expressions: R_AB (3, 3) and p_AB (3,)."""

    R: ca.SX
    p: ca.SX

    def __matmul__(self, other: Pose) -> Pose:
        return Pose(self.R @ other.R, self.p + self.R @ other.p)

    def inverse(self) -> Pose:
        """X_BA."""
        return Pose(self.R.T, -(self.R.T @ self.p))

    def point(self, p: ca.SX | np.ndarray) -> ca.SX:
        """p_AP of a point given in B."""
        return self.p + self.R @ ca.SX(p)


def _constant_pose(X) -> Pose:
    def clean(values):
        values = np.array(values, dtype=float)
        near = np.round(values)
        close = np.abs(values - near) < 1e-15
        values[close] = near[close]
        return ca.SX(values)

    return Pose(clean(X.rotation().matrix()), clean(X.translation()))


@dataclass(frozen=True)
class _Link:
    """A body below its inboard body in the tree.

    X_PB, and w_B, v_B the velocity of B in P, at Bo, written in B.
    """

    body: int
    inboard: int
    joint: object
    reversed: bool
    X_PF: Pose
    X_MB: Pose


class Twin:
    """CasADi expressions of a plant.

    The methods take positions `q` (nq,) and velocities `v` (nv,) in Drake's
    order, as SX.

    Args:
        plant: finalized.

    Raises:
        InvalidInput: for a joint or force element without a twin, by name.
    """

    def __init__(self, plant: MultibodyPlant):
        if not plant.is_finalized():
            raise InvalidInput("the plant must be finalized before it gets a twin")
        self.plant = plant
        self.nq, self.nv = plant.num_positions(), plant.num_velocities()
        self.nu = plant.num_actuated_dofs()
        self._links = self._walk()
        self._springs = self._force_elements()

    def _walk(self) -> list[_Link]:
        plant = self.plant
        joints = [plant.get_joint(i) for i in plant.GetJointIndices()]
        placed, links = {0}, []
        while joints:
            rest = []
            for joint in joints:
                parent = int(joint.parent_body().index())
                child = int(joint.child_body().index())
                ends = (
                    _constant_pose(joint.frame_on_parent().GetFixedPoseInBodyFrame()),
                    _constant_pose(
                        joint.frame_on_child().GetFixedPoseInBodyFrame()
                    ).inverse(),
                )
                if parent in placed and child not in placed:
                    links.append(_Link(child, parent, joint, False, *ends))
                    placed.add(child)
                elif child in placed and parent not in placed:
                    links.append(_Link(parent, child, joint, True, *ends))
                    placed.add(parent)
                else:
                    rest.append(joint)
            if len(rest) == len(joints):
                names = ", ".join(joint.name() for joint in rest)
                raise InvalidInput(
                    f"joints {names} close loops; cut them and list them as loops"
                )
            joints = rest
        return links

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

    # --- kinematics ---------------------------------------------------------

    def rates(self, q: ca.SX, v: ca.SX) -> ca.SX:
        """qdot = N(q) v (nq,)."""
        return self._per_joint(joint_rates, q, v, self.nq, "position")

    def velocities(self, q: ca.SX, qdot: ca.SX) -> ca.SX:
        """v = N+(q) qdot (nv,)."""
        out = ca.SX.zeros(self.nv)
        for link in self._links:
            a, b = _slices(link.joint)
            if b.stop > b.start:
                out[b] = joint_velocities(link.joint, q[a], qdot[a])
        return out

    @property
    def velocities_are_rates(self) -> bool:
        """Whether v = qdot for every joint."""
        kinds = {link.joint.type_name() for link in self._links}
        return not kinds & {"ball_rpy", "rpy_floating", "quaternion_floating"}

    def _per_joint(self, function, q, v, size, what):
        out = ca.SX.zeros(size)
        for link in self._links:
            a, b = _slices(link.joint)
            if a.stop > a.start:
                out[a] = function(link.joint, q[a], v[b])
        return out

    def _motion(self, link: _Link, q: ca.SX, v: ca.SX | None) -> JointMotion:
        a, b = _slices(link.joint)
        rates = ca.SX.zeros(b.stop - b.start) if v is None else v[b]
        return joint_motion(link.joint, q[a], rates)

    def _across(self, link: _Link, q: ca.SX) -> Pose:
        """X_PB of a body in its inboard body."""
        motion = self._motion(link, q, None)
        X = link.X_PF @ Pose(motion.R_FM, motion.p_FM) @ link.X_MB
        return X.inverse() if link.reversed else X

    def _across_velocity(self, link: _Link, q, v) -> tuple[Pose, ca.SX, ca.SX]:
        """X_PB and the velocity of B in P, at Bo, written in B."""
        motion = self._motion(link, q, v)
        X = link.X_PF @ Pose(motion.R_FM, motion.p_FM) @ link.X_MB
        # Velocity of Bo, fixed in M at p_MB, then written in B.
        R_BM, p_MB = link.X_MB.R.T, link.X_MB.p
        w = R_BM @ motion.w_FM_M
        u = R_BM @ (motion.v_FM_M + ca.cross(motion.w_FM_M, p_MB))
        if not link.reversed:
            return X, w, u
        # The child C is inboard: velocity of P in C, at Po, written in P.
        w_P, p_PC = X.R @ w, X.p
        return X.inverse(), -w_P, -(X.R @ u) + ca.cross(w_P, p_PC)

    def poses(self, q: ca.SX) -> dict[int, Pose]:
        """X_WB of every body by its index."""
        poses = {0: Pose(ca.SX.eye(3), ca.SX.zeros(3))}
        for link in self._links:
            poses[link.body] = poses[link.inboard] @ self._across(link, q)
        return poses

    def relative_pose(self, q: ca.SX, body_A: int, body_B: int) -> Pose:
        """X_AB through the nearest common ancestor, so that it depends on the
        joints between A and B only."""
        above = {link.body: link for link in self._links}

        def chain(body):
            path = [body]
            while path[-1] in above:
                path.append(above[path[-1]].inboard)
            return path

        path_A, path_B = chain(body_A), chain(body_B)
        ancestor = next(body for body in path_A if body in path_B)
        poses = []
        for path in (path_A, path_B):
            X = Pose(ca.SX.eye(3), ca.SX.zeros(3))
            for body in path[: path.index(ancestor)]:
                X = self._across(above[body], q) @ X
            poses.append(X)
        return poses[0].inverse() @ poses[1]

    def pose(self, q: ca.SX, body: str) -> Pose:
        """X_WB of one body."""
        index = int(find_body(self.plant, body).index())
        return self.relative_pose(q, 0, index)

    def point(self, q: ca.SX, body: str, p_BP: np.ndarray) -> ca.SX:
        """p_WP (3,) of a point fixed in a body."""
        return self.pose(q, body).point(p_BP)

    def loops(self, q: ca.SX, loops: Sequence[Loop], length_unit: float = 1.0) -> ca.SX:
        """c(q), the rows of :class:`drakebots.multibody.loops.LoopClosure`."""
        rows = []
        for loop in loops:
            A, B = (
                int(find_body(self.plant, name).index())
                for name in (loop.body_A, loop.body_B)
            )
            X_BA = self.relative_pose(q, B, A)
            offset = X_BA.point(loop.p_AP / length_unit) - loop.p_BQ / length_unit
            across = ca.SX(loop.across())
            rows.append(across @ offset if loop.rows == "planar" else offset)
            if loop.rows == "hinge":
                rows.append(across @ (X_BA.R @ ca.SX(loop.axis_A)))
        return ca.vertcat(*rows) if rows else ca.SX.zeros(0, 1)

    # --- energies and forces ------------------------------------------------

    def kinetic_energy(self, q: ca.SX, v: ca.SX) -> ca.SX:
        """T = 1/2 v'M(q)v, reflected inertias included."""
        total = ca.SX(0)
        for link, w, u in self._velocities(q, v):
            mass, p_cm, I_cm = self._inertia(link.body)
            if mass == 0:
                continue
            u_cm = u + ca.cross(w, ca.SX(p_cm))
            total += 0.5 * mass * ca.dot(u_cm, u_cm) + 0.5 * ca.dot(w, ca.SX(I_cm) @ w)
        return total + 0.5 * ca.dot(v, ca.SX(self.reflected_inertia()) * v)

    def _velocities(self, q, v):
        """Of every body but the world: w_WB and the velocity of Bo, in B."""
        known = {0: (ca.SX.zeros(3), ca.SX.zeros(3))}
        for link in self._links:
            w_P, u_P = known[link.inboard]
            X, w, u = self._across_velocity(link, q, v)
            R_BP = X.R.T
            w_B = R_BP @ w_P + w
            u_B = R_BP @ (u_P + ca.cross(w_P, X.p)) + u
            known[link.body] = (w_B, u_B)
            yield link, w_B, u_B

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
        """V of gravity and springs (at most the nominal constant apart)."""
        plant = self.plant
        gravity = plant.gravity_field().gravity_vector()
        poses = self.poses(q)
        total = ca.SX(0)
        for link in self._links:
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
        for link in self._links:
            _, b = _slices(link.joint)
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
        for link, w, u in self._velocities(q, v):
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


def _slices(joint) -> tuple[slice, slice]:
    a, b = joint.position_start(), joint.velocity_start()
    return slice(a, a + joint.num_positions()), slice(b, b + joint.num_velocities())
