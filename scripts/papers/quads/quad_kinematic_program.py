"""A plan from kinematics alone, after Megaro et al. 2015: the paper's baseline.

    min   E_S + alpha_c E_COM + alpha_e E_EE + alpha_o E_O
    s.t.  contact (4), periodicity (6), joint limits, and the COP of a point mass,
          c - c_z cdd / (g + cdd_z) = sum_i w_i p_i,  w >= 0, sum w = 1

over the corners p_i of the soles on the ground. No skin, no torques, no angular
momentum. Its torques come afterwards, by inverse dynamics of a robot with or
without skin.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import casadi as ca
import numpy as np

from drakebots.core.run import Progress
from drakebots.robots.quads.motion import GRAVITY, carry
from drakebots.robots.quads.space_time.check import MotionReport, check_motion
from drakebots.robots.quads.space_time.problem import SpaceTime, widened
from drakebots.robots.quads.space_time.program import AXES, KnotBuilder
from drakebots.trajopt.program import Block, Program
from drakebots.trajopt.solvers import Solution, solve


@dataclass(frozen=True)
class KinematicPlan:
    """An answer, or the best iterate of a failed attempt.

    Attributes:
        problem: its motion, weights and knots; skin and torques are not used.
        solution: of the program.
        report: of the check before it.
        seconds: wall time by phase.
    """

    problem: SpaceTime
    solution: Solution = field(repr=False)
    report: MotionReport = field(repr=False)
    seconds: Mapping[str, float]

    @property
    def ok(self) -> bool:
        """Whether it succeeded."""
        return self.solution.ok

    @property
    def q(self) -> np.ndarray:
        """At the knots (K, nv), Euler coordinates."""
        return self.solution.parts["q"]

    def motion(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """q, v, a at the knots (K, nv), as the space-time program has them."""
        return knot_motion(self.problem, self.q)

    def torques(self, problem: SpaceTime | None = None) -> dict[str, np.ndarray]:
        """Inverse dynamics of the plan at the knots.

        Args:
            problem: gives skin and coupling; the plan's own by default.

        Returns:
            torque (K, m) [N m], F and T (K, feet, 3), missing (K, 6) [N, N m]: what
            no admissible contact forces provide, and feasible (K,).
        """
        p = self.problem if problem is None else problem
        q, v, a = self.motion()
        found = [
            carry(
                p.quad,
                q[k],
                v[k],
                a[k],
                p.contact[k],
                inertia=p.inertia[k],
                delta=p.delta[k],
                friction=p.friction,
            )
            for k in range(len(q))
        ]
        return {
            "torque": np.array([c.tau for c in found]),
            "F": np.array([c.F for c in found]),
            "T": np.array([c.T for c in found]),
            "missing": np.array([c.missing for c in found]),
            "feasible": np.array([c.feasible for c in found]),
        }


def knot_motion(problem: SpaceTime, q: np.ndarray):
    """Central differences v and a (K, nv) of positions at the knots."""
    h, wide = problem.step, widened(problem, q)
    v = (wide[2:] - wide[:-2]) / (2 * h)
    return q, v, (wide[2:] - 2 * q + wide[:-2]) / h**2


def plan_kinematic(
    problem: SpaceTime,
    *,
    solver: str = "exact",
    options: Mapping[str, Any] | None = None,
    time_limit: float | None = None,
    progress: Progress | None = None,
) -> KinematicPlan:
    """Checks a motion, and plans it without dynamics.

    Args:
        problem: motion, weights and knots; `torque`, `follow` and `force` have
            no say.
        solver, options, time_limit, progress: as for
            :func:`drakebots.trajopt.solvers.solve.solve`.

    Raises:
        InvalidInput: as from :func:`check_motion`.
    """
    began = time.perf_counter()
    report = check_motion(problem)
    q = report.poses.q
    program = kinematic_program(problem, q)
    feet = problem.quad.foot_positions(q).reshape(len(q), -1)
    loaded = program.variables["w"].upper
    w = loaded / np.maximum(loaded.sum(axis=1, keepdims=True), 1)
    guess = program.pack({"q": q, "p": feet, "c": problem.quad.com(q), "w": w})
    guess = np.clip(guess, program.x_lower, program.x_upper)
    checked = time.perf_counter()
    settings = dict(options or {})
    if solver == "exact":
        settings = {"mu_strategy": "monotone", "mu_init": 1e-2, **settings}
    solution = solve(
        program,
        guess,
        solver=solver,
        options=settings,
        time_limit=time_limit,
        progress=progress,
    )
    seconds = {"check": checked - began, "solve": solution.seconds["total"]}
    return KinematicPlan(problem, solution, report, seconds)


def kinematic_program(problem: SpaceTime, posture: np.ndarray) -> Program:
    """The nonlinear program; see the module."""
    return _Kinematic(problem, posture).build()


class _Kinematic(KnotBuilder):
    def __init__(self, problem: SpaceTime, posture: np.ndarray):
        super().__init__(f"kinematic {problem.motion.name}", problem)
        self.add_poses()
        self.add_feet_and_com()
        self._corner_loads()
        self.add_kinematics(
            np.repeat(self.quad.tree.inertia.reshape(1, -1), self.K, axis=0)
        )
        self.add_stays()
        self._cop()
        self.add_periodicity()
        self._objective(posture)

    def _corner_loads(self) -> None:
        corners = [
            f"{s.name}.{k}" for s in self.quad.soles for k in range(len(s.corners))
        ]
        loaded = np.repeat(self.p.contact, self.corner_counts, axis=1).astype(float)
        self.add_variables("w", self.K, corners, lower=0.0, upper=loaded)

    def _cop(self) -> None:
        """At inner knots, from the COM's differences over three."""
        p, quad, K, h = self.p, self.quad, self.K, self.p.step
        before, c, after = (ca.SX.sym(name, 3) for name in ("b", "c", "e"))
        n = len(quad.soles)
        feet, heading = ca.SX.sym("p", 3 * n), ca.SX.sym("heading")
        w = ca.SX.sym("w", sum(self.corner_counts))
        R = ca.vertcat(
            ca.horzcat(ca.cos(heading), -ca.sin(heading)),
            ca.horzcat(ca.sin(heading), ca.cos(heading)),
        )
        a = (after - 2 * c + before) / h**2
        lift = 1 + a[2] / GRAVITY
        point, start = ca.SX.zeros(2), 0
        for j, sole in enumerate(quad.soles):
            for k, corner in enumerate(sole.corners):
                here = feet[3 * j : 3 * j + 2] + R @ ca.SX(corner)
                point += w[start + k] * here
            start += len(sole.corners)
        zmp = c[:2] * lift - c[2] * a[:2] / GRAVITY - lift * point
        block = Block(
            "quad_zmp",
            {"before": before, "here": c, "after": after, "feet": feet, "w": w},
            {"zmp": zmp, "share": ca.sum1(w) - 1},
            heading,
        )
        grounded = p.contact.any(axis=1)[1:-1, None]
        # In flight nothing carries: free rows.
        bound = np.where(grounded, 0.0, np.inf)
        rows = {
            "zmp": self.add_rows(
                "zmp", K - 2, AXES[:2], lower=-bound, upper=bound, scale=0.1, units="m"
            ).indices,
            "share": self.add_rows(
                "share", K - 2, ["sum"], lower=-bound, upper=bound
            ).indices,
        }
        c_at = self["c"].indices
        inputs = {"before": c_at[:-2], "here": c_at[1:-1], "after": c_at[2:]}
        inputs |= {"feet": self["p"].indices[1:-1], "w": self["w"].indices[1:-1]}
        turned = p.motion.heading[p.frames][1:-1, None]
        self.add_term(block, inputs, rows, data=turned)

    def _objective(self, posture: np.ndarray) -> None:
        p, w, n = self.p, self.p.weights, self.quad.nv
        b, q, e = (ca.SX.sym(name, n) for name in ("b", "q", "e"))
        bend = Block(
            f"quad_bend_{n}",
            {"before": b, "here": q, "after": e},
            {"E_S": w.smooth * p.stride * ca.sumsqr(e - 2 * q + b)},
        )
        at = self["q"].indices
        inputs = {"before": at[:-2], "here": at[1:-1], "after": at[2:]}
        self.add_cost(bend, inputs)
        self.add_tracking()
        self.add_squares("posture", "q", w.posture * self.frame_weights, posture)
        self.add_squares("share", "w", 1e-4 * self.frame_weights)
        self.add_flatness()
