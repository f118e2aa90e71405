"""One interval's equations, with their derivatives in the tangent space.

At the end of an interval the rows are

    dynamics   M(q) a + bias(q, v) - J(q)'f - C(q)'l      (nv,), without the actuators
    gap        phi(q) of every foot                       (nc,)
    slide      tangential velocity of every foot          (2 nc,)
    loops      c(q)                                       (nl,)

and their slopes are with respect to v, a and d, a step of q in the tangent space; of
that the first order is enough, dq = N(q) d. The motion of a foot is that of the
material point in contact, and J its slope with respect to v, for any joints.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import casadi as ca
import numpy as np

from drakebots.core.errors import InvalidInput
from drakebots.model import find_body
from drakebots.multibody.twin import Twin, joint_slices
from drakebots.trajopt.mpc.problem import MpcProblem
from drakebots.trajopt.program import compiled


@dataclass(frozen=True)
class Stage:
    """The rows of all intervals of a problem at once.

    Args:
        problem: the problem.

    Raises:
        InvalidInput: for a joint whose positions are no tangent space of ours.
    """

    problem: MpcProblem

    @cached_property
    def twin(self) -> Twin:
        """The plant as CasADi expressions."""
        return Twin(self.problem.robot.plant)

    @cached_property
    def sizes(self) -> dict[str, int]:
        """nq, nv, nu, nc feet and nl loop rows."""
        robot = self.problem.robot
        return {
            "nq": self.twin.nq,
            "nv": self.twin.nv,
            "nu": robot.plant.num_actuators(),
            "nc": len(self.problem.feet),
            "nl": robot.closure.num_rows,
        }

    @cached_property
    def bases(self) -> np.ndarray:
        """First position and velocity of every free base with a quaternion (n, 2)."""
        found = []
        for link in self.twin.links:
            a, b = joint_slices(link.joint)
            kind = link.joint.type_name()
            if kind == "quaternion_floating":
                found.append((a.start, b.start))
            elif kind in ("rpy_floating", "ball_rpy"):
                raise InvalidInput(
                    f"joint {link.joint.name()!r} of type {kind!r} has no tangent "
                    "space in mpc; build the robot with base 'quaternion' or 'euler'"
                )
        return np.array(found, int).reshape(-1, 2)

    @cached_property
    def symbols(self) -> dict[str, ca.SX]:
        """q, v, a, f (3 nc: t1, t2, n of each foot) and l."""
        n = self.sizes
        sizes = {"q": n["nq"], "v": n["nv"], "a": n["nv"]}
        sizes |= {"f": 3 * n["nc"], "l": n["nl"]}
        return {name: ca.SX.sym(name, size) for name, size in sizes.items()}

    @cached_property
    def rows(self) -> dict[str, ca.SX]:
        """The rows as expressions of the symbols."""
        s = self.symbols
        q, v = s["q"], s["v"]
        gap, motion = self._feet(q, v)
        dynamics = self.twin.inverse_dynamics(q, v, s["a"])
        if s["f"].numel():
            dynamics -= ca.jtimes(motion, v, s["f"], True)
        c = self.twin.closure(q, self.problem.robot.closure)
        if s["l"].numel():
            pull = ca.jtimes(c, q, s["l"], True)
            dynamics -= ca.jtimes(self.twin.rates(q, v), v, pull, True)
        slide = [motion[3 * i : 3 * i + 2] for i in range(self.sizes["nc"])]
        slide = ca.vertcat(*slide) if slide else ca.SX.zeros(0, 1)
        return {"dynamics": dynamics, "gap": gap, "slide": slide, "loops": c}

    def _feet(self, q: ca.SX, v: ca.SX) -> tuple[ca.SX, ca.SX]:
        """phi (nc,) and the velocity (3 nc,) of the points in contact, along t1, t2, n.

        Of a round foot that is the point of the sphere nearest to the ground.
        """
        if not self.problem.feet:
            return ca.SX.zeros(0, 1), ca.SX.zeros(0, 1)
        poses = self.twin.poses(q)
        speeds = {link.body: (w, u) for link, w, u in self.twin.body_velocities(q, v)}
        terrain, gap, motion = self.problem.terrain, [], []
        for foot in self.problem.feet:
            body = int(find_body(self.problem.robot.plant, foot.body).index())
            X_WB, (w_B, u_B) = poses[body], speeds[body]
            p_WF = X_WB.point(foot.p_BF)
            n, t1, t2 = terrain.frame(p_WF)
            gap.append(terrain.distance(p_WF) - foot.radius)
            p_BC = ca.SX(foot.p_BF) - foot.radius * (X_WB.R.T @ n)
            v_WC = X_WB.R @ (u_B + ca.cross(w_B, p_BC))
            motion += [ca.dot(t, v_WC) for t in (t1, t2, n)]
        return ca.vertcat(*gap), ca.vertcat(*motion)

    @cached_property
    def functions(self) -> tuple[ca.Function, ca.Function]:
        """(q, v, a, f, l) -> the rows, and -> the rows and their slopes; compiled."""
        s, rows = self.symbols, self.rows
        q, v, a = s["q"], s["v"], s["a"]
        N = ca.jacobian(self.twin.rates(q, v), v)
        slopes = {
            "dynamics_d": ca.jacobian(rows["dynamics"], q) @ N,
            "dynamics_v": ca.jacobian(rows["dynamics"], v),
            "mass": ca.jacobian(rows["dynamics"], a),
            "feet": ca.jacobian(self._feet(q, v)[1], v),
            "slide_d": ca.jacobian(rows["slide"], q) @ N,
            "loops_d": ca.jacobian(rows["loops"], q) @ N,
        }

        def function(name, outputs):
            return ca.Function(name, [*s.values()], [ca.densify(o) for o in outputs])

        values = list(rows.values())
        both = function("mpc_slopes", [*values, *slopes.values()])
        functions = function("mpc_rows", values), both
        sources = [f.serialize() for f in functions]
        what = f"the controller of {self.problem.robot.model.name}"
        return compiled(functions, sources, what)
