"""Inverse dynamics of a tree of links in CasADi, with the inertias as arguments.

Recursive Newton-Euler algorithm in the links' frames (Featherstone): with V = [w, u]
the velocity of a link at its origin and S the axis of its joint,

    V = X V_P + S v,   A = X A_P + S vdot + V x S v,   A_0 = [0, -g]
    f = I A + V x* I V - f_ext,   tau = S'f,   f_P += X'f

`Twin` differentiates velocities instead and takes any joint; this class takes revolute
and prismatic joints only, and its expressions are several times smaller, which matters
for second derivatives. The inertia of a link is a row [m, m c (3), I_xx, I_yy, I_zz,
I_xy, I_xz, I_yz] about its origin in its frame; the skin's inertia is added there.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property

import casadi as ca
import numpy as np
from pydrake.multibody.plant import MultibodyPlant
from pydrake.multibody.tree import BodyIndex

from drakebots.core.errors import InvalidInput
from drakebots.model import find_body, joint_slices
from drakebots.multibody.twin import Pose, Twin, rotation

PARAMETERS = 10
"""Length of a link's row of inertia."""


class TreeDynamics(Twin):
    """Kinematics and dynamics of a plant in Euler coordinates, as expressions.

    Args:
        plant: finalized plant on a base of Euler angles.
        soles: soles of the feet; see :class:`~drakebots.robots.quads.robot.quad.Sole`.

    Attributes:
        bodies: names of the links with mass, in the order of `inertia`.
        inertia: inertias of the plant's own links (links, 10) [kg, kg m, kg m^2].

    Raises:
        InvalidInput: for springs, and for joints that are not revolute, prismatic or
            welded.
    """

    def __init__(self, plant: MultibodyPlant, soles: Sequence):
        super().__init__(plant)
        self.soles = soles
        if self._springs:
            raise InvalidInput(
                "quad-robots with springs cannot be planned; remove the springs"
            )
        for link in self.links:
            kind = link.joint.type_name()
            if kind not in ("revolute", "prismatic", "weld") or link.reversed:
                raise InvalidInput(
                    f"joint {link.joint.name()!r} ({kind}"
                    f"{', from child to parent' if link.reversed else ''}): plans of "
                    "quad-robots need revolute or prismatic joints, parents first"
                )
        kept = [link.body for link in self.links if self._inertia(link.body)[0] > 0]
        self._row = {body: i for i, body in enumerate(kept)}
        self.bodies = tuple(plant.get_body(BodyIndex(b)).name() for b in kept)
        self.inertia = np.array([self._parameters(b) for b in kept])
        self.inertia.setflags(write=False)

    def _parameters(self, body: int) -> np.ndarray:
        m, c, I_cm = self._inertia(body)
        return inertia_row(m, c, I_cm)

    def inertia_of(self, body: int, d: ca.SX):
        """m, h = m c and I about the origin from the stacked rows d."""
        if body not in self._row:
            return None
        p = d[PARAMETERS * self._row[body] : PARAMETERS * (self._row[body] + 1)]
        xx, yy, zz, xy, xz, yz = (p[k] for k in range(4, 10))
        I_o = ca.vertcat(
            ca.horzcat(xx, xy, xz), ca.horzcat(xy, yy, yz), ca.horzcat(xz, yz, zz)
        )
        return p[0], p[1:4], I_o

    def _pose_and_axis(self, link, q: ca.SX):
        """X_PB, and the axis S = (S_w, S_u) in B; None for a weld."""
        kind, (a, _) = link.joint.type_name(), joint_slices(link.joint)
        R_BM, p_MB = link.X_MB.R.T, link.X_MB.p
        zero = ca.SX.zeros(3)
        if kind == "weld":
            return self._across(link, q), None
        if kind == "prismatic":
            axis = link.joint.translation_axis()
            X_FM = Pose(ca.SX.eye(3), ca.SX(axis) * q[a])
            S = zero, R_BM @ ca.SX(axis)
        else:
            axis = link.joint.revolute_axis()
            X_FM = Pose(rotation(axis, q[a]), zero)
            S = R_BM @ ca.SX(axis), R_BM @ ca.cross(ca.SX(axis), p_MB)
        return link.X_PF @ X_FM @ link.X_MB, S

    def recursive(
        self,
        q: ca.SX,
        v: ca.SX,
        a: ca.SX,
        d: ca.SX,
        loads: tuple[ca.SX, ca.SX] | None = None,
    ) -> ca.SX:
        """tau = M a + C v + damping - gravity - J'[F; T] (nv,).

        Args:
            q, v, a: positions, velocities and accelerations (nv,).
            d: inertias of the links, stacked (10 links,).
            loads: forces F and torques T at the soles (3 feet,), in the world.
        """
        joints = {link.body: self._pose_and_axis(link, q) for link in self.links}
        motion = self._motion(joints, v, a)
        wrenches = {} if loads is None else self._foot_wrenches(q, *loads)
        R_W, force = {0: ca.SX.eye(3)}, {}
        for link in self.links:
            R = R_W[link.body] = R_W[link.inboard] @ joints[link.body][0].R
            moment, push = self._inertial_wrench(link.body, motion[link.body], d)
            if link.body in wrenches:
                T, F = wrenches[link.body]
                moment, push = moment - R.T @ T, push - R.T @ F
            force[link.body] = moment, push
        reflected, damping = self.reflected_inertia(), self.joint_damping()
        tau = ca.SX(reflected) * a + ca.SX(damping) * v
        for link in reversed(self.links):
            moment, push = force[link.body]
            X, S = joints[link.body]
            if S is not None:
                _, at = joint_slices(link.joint)
                tau[at] += ca.dot(S[0], moment) + ca.dot(S[1], push)
            if link.inboard in force:
                n, f = force[link.inboard]
                pushed = X.R @ push
                force[link.inboard] = (
                    n + X.R @ moment + ca.cross(X.p, pushed),
                    f + pushed,
                )
        return tau

    def _motion(self, joints, v: ca.SX, a: ca.SX) -> dict[int, tuple]:
        """w, u and their rates of each body, in its frame; gravity accelerates."""
        g = ca.SX(np.array(self.plant.gravity_field().gravity_vector()))
        motion = {0: (ca.SX.zeros(3), ca.SX.zeros(3), ca.SX.zeros(3), -g)}
        for link in self.links:
            w_P, u_P, dw_P, du_P = motion[link.inboard]
            X, S = joints[link.body]
            R_BP = X.R.T
            w, u = R_BP @ w_P, R_BP @ (u_P + ca.cross(w_P, X.p))
            dw, du = R_BP @ dw_P, R_BP @ (du_P + ca.cross(dw_P, X.p))
            if S is not None:
                _, at = joint_slices(link.joint)
                Sw, Su = S[0] * v[at], S[1] * v[at]
                w, u = w + Sw, u + Su
                # V x S v
                dw = dw + S[0] * a[at] + ca.cross(w, Sw)
                du = du + S[1] * a[at] + ca.cross(w, Su) + ca.cross(u, Sw)
            motion[link.body] = w, u, dw, du
        return motion

    def _inertial_wrench(self, body: int, motion: tuple, d: ca.SX):
        """I A + V x* I V of a body: moment about its origin, and force."""
        inertia = self.inertia_of(body, d)
        if inertia is None:
            return ca.SX.zeros(3), ca.SX.zeros(3)
        (w, u, dw, du), (m, h, I_o) = motion, inertia
        L, p = I_o @ w + ca.cross(h, u), m * u - ca.cross(h, w)
        moment = I_o @ dw + ca.cross(h, du) + ca.cross(w, L) + ca.cross(u, p)
        return moment, m * du - ca.cross(h, dw) + ca.cross(w, p)

    def _foot_wrenches(self, q: ca.SX, F: ca.SX, T: ca.SX) -> dict[int, tuple]:
        """Moments about the bodies' origins, and forces, of loads at the soles."""
        poses, out = self.poses(q), {}
        for j, sole in enumerate(self.soles):
            body = int(find_body(self.plant, sole.body).index())
            f, t = F[3 * j : 3 * j + 3], T[3 * j : 3 * j + 3]
            moment = t + ca.cross(poses[body].R @ ca.SX(sole.p_BF), f)
            before = out.get(body, (ca.SX.zeros(3), ca.SX.zeros(3)))
            out[body] = before[0] + moment, before[1] + f
        return out

    def feet(self, q: ca.SX) -> ca.SX:
        """Middles of the soles p_WF, stacked (3 feet,)."""
        return ca.vertcat(*(self.point(q, s.body, s.p_BF) for s in self.soles))

    def sole_axes(self, q: ca.SX, sole) -> ca.SX:
        """Axes of a sole R_WS (3, 3)."""
        return self.pose(q, sole.body).R @ ca.SX(_tidy(sole.R_BS))

    def com(self, q: ca.SX, d: ca.SX) -> ca.SX:
        """Centre of mass p_WC (3,) of links with inertias d."""
        poses, mass, moment = self.poses(q), ca.SX(0), ca.SX.zeros(3)
        for body in self._row:
            m, h, _ = self.inertia_of(body, d)
            mass, moment = mass + m, moment + m * poses[body].p + poses[body].R @ h
        return moment / mass

    @cached_property
    def _symbols(self):
        n = self.nv
        q, v, a = (ca.SX.sym(name, n) for name in "qva")
        return q, v, a, ca.SX.sym("d", self.inertia.size)

    @cached_property
    def com_function(self) -> ca.Function:
        """(q, d) -> p_WC."""
        q, _, _, d = self._symbols
        return ca.Function("com", [q, d], [self.com(q, d)])

    @cached_property
    def dynamics_function(self) -> ca.Function:
        """(q, v, a, d) -> tau of `recursive` without wrenches."""
        q, v, a, d = self._symbols
        return ca.Function("tau", [q, v, a, d], [self.recursive(q, v, a, d)])

    @cached_property
    def feet_function(self) -> ca.Function:
        """q -> p_WF of all soles, stacked."""
        q = self._symbols[0]
        return ca.Function("feet", [q], [self.feet(q)])

    @cached_property
    def axes_function(self) -> ca.Function:
        """q -> R_WS of all soles (3, 3), one output each."""
        q = self._symbols[0]
        axes = [ca.densify(self.sole_axes(q, sole)) for sole in self.soles]
        return ca.Function("axes", [q], axes)

    @cached_property
    def pose_function(self) -> ca.Function:
        """(q, d) -> p_WF (3 f,), normals of soles (3 f,), p_WC (3,); and d/dq."""
        q, _, _, d = self._symbols
        normals = [self.sole_axes(q, s)[:, 2] for s in self.soles]
        out = ca.vertcat(self.feet(q), *normals, self.com(q, d))
        return ca.Function("pose", [q, d], [out, ca.jacobian(out, q)])

    @cached_property
    def contact_jacobian(self) -> ca.Function:
        """q -> J (6 f, nv) with tau = J'[F; T] of forces and torques at the soles."""
        q, v, a, d = self._symbols
        F, T = (ca.SX.sym(name, 3 * len(self.soles)) for name in "FT")
        pulled = -self.recursive(q, v * 0, a * 0, d * 0, (F, T))
        J = ca.jacobian(pulled, ca.vertcat(F, T)).T
        return ca.Function("contact", [q], [ca.densify(J)])


def inertia_row(m: float, c: np.ndarray, I_cm: np.ndarray) -> np.ndarray:
    """Row [m, m c, I about the origin] from mass, COM and inertia about the COM."""
    I_o = I_cm + m * (c @ c * np.eye(3) - np.outer(c, c))
    upper = I_o[0, 0], I_o[1, 1], I_o[2, 2], I_o[0, 1], I_o[0, 2], I_o[1, 2]
    return np.array([m, *(m * np.asarray(c)), *upper])


def _tidy(R: np.ndarray) -> np.ndarray:
    R = np.array(R)
    near = np.round(R)
    return np.where(np.abs(R - near) < 1e-15, near, R)
