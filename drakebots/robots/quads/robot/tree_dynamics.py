"""Inverse dynamics of a tree of links in CasADi, with the inertias as arguments.

The inertia of a link is a row [m, m c (3), I_xx, I_yy, I_zz, I_xy, I_xz, I_yz] about
its origin in its frame; the skin's inertia is added there.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property

import casadi as ca
import numpy as np
from pydrake.multibody.plant import MultibodyPlant
from pydrake.multibody.tree import BodyIndex

from drakebots.core.errors import InvalidInput
from drakebots.model import find_body
from drakebots.multibody import Twin, without_rounding

PARAMETERS = 10
"""Length of a link's row of inertia."""

Loads = tuple[ca.SX, ca.SX]
"""Forces and torques at the soles, each stacked (3 feet,), in the world."""


def inertia_row(m: float, h: np.ndarray, I_o: np.ndarray) -> np.ndarray:
    """The row of a link from its mass, m c (3,) and inertia (3, 3)."""
    upper = I_o[0, 0], I_o[1, 1], I_o[2, 2], I_o[0, 1], I_o[0, 2], I_o[1, 2]
    return np.array([m, *h, *upper])


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
        self.inertia = np.array([inertia_row(*self._spatial(b)) for b in kept])
        self.inertia.setflags(write=False)

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

    def recursive(
        self, q: ca.SX, v: ca.SX, a: ca.SX, d: ca.SX, loads: Loads | None = None
    ) -> ca.SX:
        """tau = M a + C v + damping - gravity - J'[F; T] (nv,).

        Args:
            q, v, a: positions, velocities and accelerations (nv,).
            d: inertias of the links, stacked (10 links,).
            loads: forces F and torques T at the soles (3 feet,), in the world.
        """
        given = {
            "base": -np.array(self.plant.gravity_field().gravity_vector()),
            "spatial": lambda body: self.inertia_of(body, d),
            "wrenches": {} if loads is None else self._foot_wrenches(q, *loads),
        }
        return self.newton_euler(q, v, a, **given) - self.damping_force(q, v)

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
        return self.pose(q, sole.body).R @ ca.SX(without_rounding(sole.R_BS))

    def com(self, q: ca.SX, d: ca.SX) -> ca.SX:
        """Centre of mass p_WC (3,) of links with inertias d."""
        return self.centroidal(q, 0 * q, lambda body: self.inertia_of(body, d))[0]

    @cached_property
    def _symbols(self):
        q, v, a = (ca.SX.sym(name, self.nv) for name in "qva")
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
        pulled = -self.recursive(q, v, a, d, (F, T))
        J = ca.jacobian(pulled, ca.vertcat(F, T)).T
        return ca.Function("contact", [q], [ca.densify(J)])
