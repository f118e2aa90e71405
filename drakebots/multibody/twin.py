"""A finalized MultibodyPlant as CasADi expressions, for exact sparse derivatives.

    twin = Twin(robot.plant)
    q, v = ca.SX.sym("q", twin.nq), ca.SX.sym("v", twin.nv)
    energy = twin.kinetic_energy(q, v)

Drake stays the only source of the model: the twin walks the plant's joints once, from
the world outwards, and its force elements, and rebuilds energy, dynamics, feet and
loops as SX expressions, from which CasADi derives exact sparse Jacobians and Hessians.
Either the parent or the child of a joint may be on the world's side. Tests compare it
with Drake at 1e-10 on all stored models and on random trees. Everything is in the
plant's units.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType

import casadi as ca
import numpy as np
from pydrake.multibody.plant import MultibodyPlant
from pydrake.multibody.tree import (
    BodyIndex,
    LinearSpringDamper,
    PrismaticSpring,
    RevoluteSpring,
)

from drakebots.core.errors import InvalidInput
from drakebots.model import (
    Loop,
    LoopClosure,
    find_body,
    force_elements,
    joint_slices,
    outward_joints,
    part_name,
    rotor_inertias,
    spring_law,
)
from drakebots.multibody.twin_joints import (
    JointMotion,
    joint_motion,
    joint_rates,
    velocities_are_rates,
    without_rounding,
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


def _constant_pose(frame) -> Pose:
    """The pose of a frame of Drake's in its body."""
    X = frame.GetFixedPoseInBodyFrame()
    R, p = (without_rounding(x) for x in (X.rotation().matrix(), X.translation()))
    return Pose(ca.SX(R), ca.SX(p))


@dataclass(frozen=True)
class Link:
    """A body B of the tree, and the joint to its inboard body.

    Attributes:
        body, inboard: indices of both.
        joint: Drake's joint, with frame F on its parent and M on its child.
        reversed: whether the joint's child is the inboard body.
        X_PF, X_MB: poses of F in the joint's parent and of the joint's child in M.
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
        values: expressions in place of the plant's numbers: "mass:LINK" of a link,
            whose inertia goes with it, "damping:JOINT" and "stiffness:JOINT".

    Attributes:
        links: every body but the world, inboard bodies first.

    Raises:
        InvalidInput: for a plant that is not finalized, and for a joint or force
            element without a twin, by name.
    """

    def __init__(
        self, plant: MultibodyPlant, values: Mapping[str, ca.SX] = MappingProxyType({})
    ):
        if not plant.is_finalized():
            raise InvalidInput("the plant must be finalized before it gets a twin")
        self.plant, self.values = plant, values
        self.nq, self.nv = plant.num_positions(), plant.num_velocities()
        self.nu = plant.num_actuated_dofs()
        self.links, self._springs = _walk(plant), _force_elements(plant)

    # --- kinematics -------------------------------------------------------------

    def rates(self, q: ca.SX, v: ca.SX) -> ca.SX:
        """qdot = N(q) v (nq,)."""
        out = ca.SX.zeros(self.nq)
        for link in self.links:
            a, b = joint_slices(link.joint)
            if a.stop > a.start:
                out[a] = joint_rates(link.joint, q[a], v[b])
        return out

    @property
    def velocities_are_rates(self) -> bool:
        """Whether v = qdot for every joint."""
        return all(velocities_are_rates(link.joint) for link in self.links)

    def _joint(self, link: Link, q: ca.SX, v: ca.SX) -> tuple[Pose, JointMotion]:
        """The pose of the joint's child in its parent, and the joint's motion."""
        a, b = joint_slices(link.joint)
        motion = joint_motion(link.joint, q[a], v[b])
        return link.X_PF @ Pose(motion.R_FM, motion.p_FM) @ link.X_MB, motion

    def _across(self, link: Link, q: ca.SX) -> Pose:
        """X_PB of a body in its inboard body."""
        X, _ = self._joint(link, q, ca.SX.zeros(self.nv))
        return X.inverse() if link.reversed else X

    def _across_velocity(self, link: Link, q, v) -> tuple[Pose, ca.SX, ca.SX]:
        """X_PB and the velocity of B in P, at Bo, written in B."""
        X, motion = self._joint(link, q, v)
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
        for link in self.links:
            poses[link.body] = poses[link.inboard] @ self._across(link, q)
        return poses

    def relative_pose(self, q: ca.SX, body_A: int, body_B: int) -> Pose:
        """X_AB as a function of the joints between A and B only.

        It goes through their nearest common ancestor.
        """
        above = {link.body: link for link in self.links}

        def path_to_world(body):
            path = [body]
            while path[-1] in above:
                path.append(above[path[-1]].inboard)
            return path

        path_A, path_B = path_to_world(body_A), path_to_world(body_B)
        ancestor = next(body for body in path_A if body in path_B)
        poses = []
        for path in (path_A, path_B):
            X = Pose(ca.SX.eye(3), ca.SX.zeros(3))
            for body in path[: path.index(ancestor)]:
                X = self._across(above[body], q) @ X
            poses.append(X)
        return poses[0].inverse() @ poses[1]

    @property
    def body_names(self) -> list[str]:
        """Names of the bodies but the world."""
        get = self.plant.get_body
        return [get(BodyIndex(link.body)).name() for link in self.links]

    def pose(self, q: ca.SX, body: str) -> Pose:
        """X_WB of one body."""
        index = int(find_body(self.plant, body).index())
        return self.relative_pose(q, 0, index)

    def point(self, q: ca.SX, body: str, p_BP: np.ndarray) -> ca.SX:
        """p_WP (3,) of a point fixed in a body."""
        return self.pose(q, body).point(p_BP)

    def closure(self, q: ca.SX, closure: LoopClosure) -> ca.SX:
        """c(q), all rows of a closure of this plant."""
        couplers = [
            q[x.follower] - x.gear * q[x.leader] - x.offset for x in closure.coupled
        ]
        loops = self.loops(q, closure.loops, closure.length_unit)
        return ca.vertcat(loops, *couplers)

    def loops(self, q: ca.SX, loops: Sequence[Loop], length_unit: float = 1.0) -> ca.SX:
        """The rows of :class:`drakebots.model.loops.LoopClosure` of loops alone."""
        rows = []
        for loop in loops:
            A, B = (
                int(find_body(self.plant, name).index())
                for name in (loop.body_A, loop.body_B)
            )
            X_BA = self.relative_pose(q, B, A)
            offset = X_BA.point(loop.p_AP / length_unit) - loop.p_BQ / length_unit
            if loop.rows == "planar":
                offset = ca.SX(loop.across()) @ offset
            directions = [
                ca.SX(n_B).T @ (X_BA.R @ ca.SX(a_A))
                for n_B, a_A in zip(*loop.direction_rows())
            ]
            rows.append(ca.vertcat(offset, *directions)[list(loop.row_numbers)])
        return ca.vertcat(*rows) if rows else ca.SX.zeros(0, 1)

    def body_velocities(
        self, q: ca.SX, v: ca.SX
    ) -> Iterator[tuple[Link, ca.SX, ca.SX]]:
        """Each body but the world: its link, w_WB and the velocity of Bo, in B."""
        known = {0: (ca.SX.zeros(3), ca.SX.zeros(3))}
        for link in self.links:
            w_P, u_P = known[link.inboard]
            X, w, u = self._across_velocity(link, q, v)
            R_BP = X.R.T
            w_B = R_BP @ w_P + w
            u_B = R_BP @ (u_P + ca.cross(w_P, X.p)) + u
            known[link.body] = (w_B, u_B)
            yield link, w_B, u_B

    # --- dynamics ---------------------------------------------------------------

    def kinetic_energy(self, q: ca.SX, v: ca.SX) -> ca.SX:
        """T = 1/2 v'M(q)v, reflected inertias included."""
        total = ca.SX(0)
        for link, w, u in self.body_velocities(q, v):
            mass, p_cm, I_cm = self._inertia(link.body)
            if ca.SX(mass).is_zero():
                continue
            u_cm = u + ca.cross(w, ca.SX(p_cm))
            total += 0.5 * mass * ca.dot(u_cm, u_cm) + 0.5 * ca.dot(w, ca.SX(I_cm) @ w)
        return total + 0.5 * ca.dot(v, ca.SX(rotor_inertias(self.plant)) * v)

    def _inertia(self, body: int):
        """Mass, p_BBcm and I_BBcm_B of a link; a value of the mass scales both."""
        found = self.plant.get_body(BodyIndex(body))
        M = found.default_spatial_inertia()
        mass = M.get_mass()
        if mass == 0:
            return 0.0, np.zeros(3), np.zeros((3, 3))
        about_cm = M.CalcRotationalInertia().CopyToFullMatrix3()
        p = M.get_com()
        about_cm = about_cm - mass * (p @ p * np.eye(3) - np.outer(p, p))
        tiny = np.abs(about_cm) < 1e-14 * np.abs(about_cm).max()
        about_cm[tiny] = 0.0
        value = self.values.get(f"mass:{part_name(found)}", mass)
        return value, p, about_cm if value is mass else value / mass * about_cm

    def centroidal(
        self, q: ca.SX, v: ca.SX, spatial: Callable[[int], tuple | None] | None = None
    ) -> tuple[ca.SX, ca.SX]:
        """Centre of mass p_WCcm (3,), and the angular momentum about it (3,), in World.

        Args:
            q, v: positions and velocities.
            spatial: m, m p_BBcm and the inertia about Bo of a body, or None for one
                without mass; by default those of the plant.
        """
        poses, total = self.poses(q), ca.SX(0)
        moment, push, turn = (ca.SX.zeros(3) for _ in range(3))
        for link, w, u in self.body_velocities(q, v):
            found = (spatial or self._spatial)(link.body)
            if found is None:
                continue
            m, h, I_o = (ca.SX(part) for part in found)
            X, p = poses[link.body], m * u + ca.cross(w, h)
            p_W = X.R @ p
            turn += X.R @ (I_o @ w + ca.cross(h, u)) + ca.cross(X.p, p_W)
            total, push = total + m, push + p_W
            moment += m * X.p + X.R @ h
        com = moment / total
        return com, turn - ca.cross(com, push)

    def _spatial(self, body: int) -> tuple[float, np.ndarray, np.ndarray] | None:
        m, c, I_cm = self._inertia(body)
        if ca.SX(m).is_zero():
            return None
        return m, m * c, I_cm + m * (c @ c * np.eye(3) - np.outer(c, c))

    def potential_energy(self, q: ca.SX) -> ca.SX:
        """V of gravity and springs, up to a constant."""
        plant = self.plant
        gravity = plant.gravity_field().gravity_vector()
        poses = self.poses(q)
        total = ca.SX(0)
        for link in self.links:
            body = plant.get_body(BodyIndex(link.body))
            mass, p_cm, _ = self._inertia(link.body)
            moves = plant.gravity_field().is_enabled(body.model_instance())
            if moves and not ca.SX(mass).is_zero():
                p_WC = poses[link.body].point(p_cm)
                total -= mass * ca.dot(ca.SX(gravity), p_WC)
        for element in self._springs:
            total += self._spring_energy(element, q)
        return total

    def _spring_energy(self, element, q):
        if isinstance(element, LinearSpringDamper):
            length = ca.norm_2(self._span(element, q))
            return 0.5 * element.stiffness() * (length - element.free_length()) ** 2
        stiffness, rest = spring_law(element)
        name = f"stiffness:{part_name(element.joint())}"
        stiffness = self.values.get(name, stiffness)
        return 0.5 * stiffness * (q[element.joint().position_start()] - rest) ** 2

    def _span(self, element: LinearSpringDamper, q):
        A, B = (int(b.index()) for b in (element.bodyA(), element.bodyB()))
        return self.relative_pose(q, A, B).point(element.p_BQ()) - ca.SX(element.p_AP())

    def damping_force(self, q: ca.SX, v: ca.SX) -> ca.SX:
        """Generalized force of joint damping and dampers (nv,)."""
        damping = ca.SX(self.joint_damping())
        for link in self.links:
            value = self.values.get(f"damping:{part_name(link.joint)}")
            if value is not None:
                damping[joint_slices(link.joint)[1]] = value
        force = -damping * v
        for element in self._springs:
            if isinstance(element, LinearSpringDamper) and element.damping():
                length = ca.norm_2(self._span(element, q))
                rate = ca.jtimes(length, q, self.rates(q, v))
                # Virtual power: f = -d ldot (dldot/dv).
                force -= element.damping() * rate * ca.gradient(rate, v)
        return force

    def joint_damping(self) -> np.ndarray:
        """The plant's own viscous coefficients (nv,)."""
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
        """tau = M(q) vdot + C(q, v) v - tau_applied (nv,), by Newton-Euler.

        tau_applied are gravity, springs and damping; q and v are symbols.
        """
        tau = self.newton_euler(q, v, vdot)
        return tau - self.conservative_force(q) - self.damping_force(q, v)

    def newton_euler(
        self,
        q: ca.SX,
        v: ca.SX,
        vdot: ca.SX,
        base: np.ndarray | None = None,
        spatial: Callable[[int], tuple | None] | None = None,
        wrenches: Mapping[int, tuple[ca.SX, ca.SX]] = MappingProxyType({}),
    ) -> ca.SX:
        """M(q) vdot + C(q, v) v less what wrenches on the bodies do (nv,).

        Recursive, in the bodies' frames (Featherstone). With V = [w, u] the velocity of
        a body at its origin, V_J(q, v) that across its joint and A_J its rate,

            V = X V_P + V_J,   A = X A_P + A_J + V x V_J
            f = I A + V x* I V - f_ext,   tau = (dV_J/dv)' f,   f_P += X'f

        Args:
            q, v: positions and velocities, as symbols.
            vdot: rates of the velocities.
            base: acceleration of the world (3,); -g gives the bodies weight.
            spatial: see :meth:`centroidal`.
            wrenches: by body, the moment about Bo and the force on it (3,), in World.
        """
        zero = ca.SX.zeros(3)
        moving = self._accelerations(q, v, vdot, zero if base is None else ca.SX(base))
        R_W, force = {0: ca.SX.eye(3)}, {0: (zero, zero)}
        for link, X, _, (w, u, dw, du) in moving:
            R_W[link.body] = R_W[link.inboard] @ X.R
            loads = wrenches.get(link.body, (zero, zero))
            moment, push = (-(R_W[link.body].T @ load) for load in loads)
            if (found := (spatial or self._spatial)(link.body)) is not None:
                m, h, I_o = (ca.SX(part) for part in found)
                L, p = I_o @ w + ca.cross(h, u), m * u - ca.cross(h, w)
                moment += I_o @ dw + ca.cross(h, du) + ca.cross(w, L) + ca.cross(u, p)
                push += m * du - ca.cross(h, dw) + ca.cross(w, p)
            force[link.body] = moment, push
        tau = ca.SX(rotor_inertias(self.plant)) * vdot
        for link, X, V_J, _ in reversed(moving):
            moment, push = force[link.body]
            tau += ca.jtimes(V_J, v, ca.vertcat(moment, push), True)
            n, f = force[link.inboard]
            pushed = X.R @ push
            turned = X.R @ moment + ca.cross(X.p, pushed)
            force[link.inboard] = n + turned, f + pushed
        return tau

    def _accelerations(self, q: ca.SX, v: ca.SX, vdot: ca.SX, base: ca.SX) -> list:
        """Of each link X_PB, V_J and (w, u, dw, du) in B, inboard bodies first."""
        qdot, zero = self.rates(q, v), ca.SX.zeros(3)
        known, out = {0: (zero, zero, zero, base)}, []
        for link in self.links:
            X, w_J, u_J = self._across_velocity(link, q, v)
            V_J = ca.vertcat(w_J, u_J)
            A_J = ca.jtimes(V_J, q, qdot) + ca.jtimes(V_J, v, vdot)
            w_P, u_P, dw_P, du_P = known[link.inboard]
            R_BP = X.R.T
            w, u = R_BP @ w_P + w_J, R_BP @ (u_P + ca.cross(w_P, X.p)) + u_J
            dw = R_BP @ dw_P + A_J[:3] + ca.cross(w, w_J)
            du = R_BP @ (du_P + ca.cross(dw_P, X.p)) + A_J[3:]
            du += ca.cross(w, u_J) + ca.cross(u, w_J)
            known[link.body] = w, u, dw, du
            out.append((link, X, V_J, known[link.body]))
        return out

    def conservative_force(self, q: ca.SX) -> ca.SX:
        """-N'dV/dq (nv,): gravity and springs."""
        gradient = ca.gradient(self.potential_energy(q), q)
        v = ca.SX.sym("v", self.nv)
        return -ca.jtimes(self.rates(q, v), v, gradient, True)

    def actuation_matrix(self) -> np.ndarray:
        """B (nv, nu)."""
        return np.array(self.plant.MakeActuationMatrix())


def _walk(plant: MultibodyPlant) -> list[Link]:
    """The links of a plant, inboard bodies first.

    Raises:
        InvalidInput: for joints that close loops.
    """
    links = []
    for joint, is_turned in outward_joints(plant):
        ends = [int(x.index()) for x in (joint.parent_body(), joint.child_body())]
        F, M = joint.frame_on_parent(), joint.frame_on_child()
        poses = _constant_pose(F), _constant_pose(M).inverse()
        links.append(
            Link(ends[not is_turned], ends[is_turned], joint, is_turned, *poses)
        )
    return links


def _force_elements(plant: MultibodyPlant) -> list:
    """Springs and dampers.

    Raises:
        InvalidInput: for another force element.
    """
    found = force_elements(plant)
    for element in found:
        if not isinstance(
            element, RevoluteSpring | PrismaticSpring | LinearSpringDamper
        ):
            raise InvalidInput(
                f"force element {int(element.index())} ({type(element).__name__}) "
                "has no twin; use joint springs or LinearSpringDamper"
            )
    return found
