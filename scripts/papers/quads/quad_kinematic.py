"""A plan from kinematics alone (the paper's baseline), and Fig. 18 with it.

After Megaro et al. 2015:

    min   E_S + alpha_c E_COM + alpha_e E_EE + alpha_o E_O
    s.t.  contact (4), periodicity (6), joint limits, and the COP of a point mass,
          c - c_z cdd / (g + cdd_z) = sum_i w_i p_i,  w >= 0, sum w = 1

over the corners p_i of the soles on the ground. There is no skin, no torque, no angular
momentum. Its torques follow by inverse dynamics of the robot with or without skin.
Fig. 18 compares it with a plan of ours, both tracked with skin.

A module without a command: `quad_experiments.py` runs it.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import casadi as ca
import numpy as np
import xarray as xr
from pydrake.solvers import ClarabelSolver, MathematicalProgram
from quad_setting import (
    Outcome,
    Setting,
    Trial,
    planned,
    posed,
    row,
    trial_facts,
    trial_rows,
)
from scipy.interpolate import CubicSpline

from drakebots.core.run import Progress
from drakebots.core.units import GRAVITY
from drakebots.results import Result, provenance
from drakebots.robots import quads
from drakebots.robots.quads.motion import LEVEL
from drakebots.robots.quads.robot import PlannedRobot, Quad, load_planned
from drakebots.robots.quads.space_time import (
    AXES,
    KnotBuilder,
    MotionReport,
    SpaceTime,
    carry,
    check_motion,
    cone_rows,
    widened,
)
from drakebots.trajopt.program import Block, Program
from drakebots.trajopt.solvers import Solution, solve


@dataclass(frozen=True)
class KinematicPlan:
    """A kinematic plan, or the best iterate of a failed attempt.

    Attributes:
        problem: motion, weights and knots; skin and torques are not used.
        solution: solution of the program.
        report: findings of the check before it.
        seconds: wall time by phase [s].
    """

    problem: SpaceTime
    solution: Solution = field(repr=False)
    report: MotionReport = field(repr=False)
    seconds: Mapping[str, float]

    @property
    def ok(self) -> bool:
        """Whether the solver succeeded."""
        return self.solution.ok

    @property
    def q(self) -> np.ndarray:
        """Positions at the knots in Euler coordinates (K, nv)."""
        return self.solution.parts["q"]

    def motion(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """q, v, a at the knots (K, nv), by the space-time program's differences."""
        return knot_motion(self.problem, self.q)

    def torques(self, problem: SpaceTime | None = None) -> dict[str, np.ndarray]:
        """Inverse dynamics of the plan at the knots.

        Args:
            problem: gives skin and coupling forces; the plan's own by default.

        Returns:
            torque (K, m) [N m], F and T (K, feet, 3), missing (K, 6) [N, N m], the
            wrench that admissible contact forces cannot supply, and feasible (K,).
        """
        p = self.problem if problem is None else problem
        q, v, a = self.motion()
        delta = p.skin_forces(q, p.knots)
        found = [
            carry_within_friction(
                p.quad,
                q[k],
                v[k],
                a[k],
                p.contact[k],
                friction=p.friction,
                inertia=p.inertia[k],
                delta=delta[k],
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


MISSING = 1e-3
"""Largest unsupported force of a feasible motion, as a share of the weight."""


@dataclass(frozen=True)
class Carried:
    """Contact forces and torques of one pose.

    Attributes:
        F, T: forces and torques at the soles (feet, 3) [N], [N m], world.
        tau: torques of the actuators (m,) [N m].
        missing: wrench on the base that the contacts cannot supply (6,) [N, N m].
        feasible: whether all constraints hold and nothing is missing.
    """

    F: np.ndarray
    T: np.ndarray
    tau: np.ndarray
    missing: np.ndarray
    feasible: bool


def carry_within_friction(
    quad: Quad,
    q: np.ndarray,
    v: np.ndarray,
    a: np.ndarray,
    contact: np.ndarray,
    *,
    friction: float,
    inertia: np.ndarray | None = None,
    delta: np.ndarray | float = 0.0,
) -> Carried:
    """As :func:`carry`, with friction pyramids and each foot's COP in its sole.

    Args:
        quad, q, v, a, contact, inertia, delta: as of `carry`.
        friction: coefficient of friction.
    """
    inertia = quad.tree.inertia if inertia is None else inertia
    weight = inertia.reshape(-1, 10)[:, 0].sum() * GRAVITY
    lack, feasible = np.zeros(6), False

    def solve(H, h, A, b):
        nonlocal lack, feasible
        lack = b
        if not len(h):
            return h
        prog = MathematicalProgram()
        w = prog.NewContinuousVariables(len(h))
        missing = prog.NewContinuousVariables(6)
        prog.AddQuadraticCost(2 * H, -2 * h, w, True)
        # Penalise and report the wrench that the contacts cannot supply.
        penalty = 2e6 / weight**2 * np.eye(6)
        prog.AddQuadraticCost(penalty, np.zeros(6), missing, True)
        prog.AddLinearEqualityConstraint(
            np.hstack([A, np.eye(6)]), b, np.concatenate([w, missing])
        )
        level = np.tile(LEVEL, (len(contact), 1))
        C = cone_rows(quad, q, contact, level, friction)
        prog.AddLinearConstraint(C, np.full(len(C), -np.inf), np.zeros(len(C)), w)
        result = ClarabelSolver().Solve(prog)
        found, feasible = result.GetSolution(w), result.is_success()
        lack = b - A @ found
        return found

    own = {"inertia": inertia, "delta": delta, "solve": solve}
    F, T, tau = carry(quad, q, v, a, contact, **own)
    if np.any(contact):
        feasible = feasible and np.abs(lack).max() < MISSING * weight
    else:
        feasible = np.abs(lack).max() < 1e-6
    return Carried(F, T, tau, lack, bool(feasible))


def knot_motion(problem: SpaceTime, q: np.ndarray):
    """q, and its central differences v and a at the knots (K, nv)."""
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
        problem: motion, weights and knots; the weights `torque`, `follow` and `force`
            are not used.
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
        """Rows of the COP at inner knots, with the COM's second differences."""
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
        # In flight the rows are free.
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
        turned = p.motion.heading[p.knots][1:-1, None]
        self.add_term(block, inputs, rows, data=turned)

    def _objective(self, posture: np.ndarray) -> None:
        p, w, n = self.p, self.p.weights, self.quad.nv
        b, q, e = (ca.SX.sym(name, n) for name in ("b", "q", "e"))
        bend = Block(
            f"quad_bend_{n}",
            {"before": b, "here": q, "after": e},
            {"E_S": w.smooth * p.knot_spacing * ca.sumsqr(e - 2 * q + b)},
        )
        at = self["q"].indices
        inputs = {"before": at[:-2], "here": at[1:-1], "after": at[2:]}
        self.add_cost(bend, inputs)
        self.add_tracking()
        self.add_squares("posture", "q", w.posture * self.knot_weights, posture)
        self.add_squares("share", "w", 1e-4 * self.knot_weights)
        self.add_flatness()


# --- Fig. 18 ----------------------------------------------------------------


def kinematic_result(robot: PlannedRobot, plan: KinematicPlan) -> Result:
    """The motion of a kinematic plan at every step, ready to be tracked."""
    problem, motion = plan.problem, plan.problem.motion
    _, v, _ = plan.motion()
    ends = ((1, v[0]), (1, v[-1]))
    spline = CubicSpline(problem.knots * motion.dt, plan.q, axis=0, bc_type=ends)
    q, v = spline(motion.times), spline(motion.times, 1)
    plant, convert = robot.skinned.plant, robot.coordinates
    contact = motion.footfall.contact[:, problem.order]
    data = {
        "position": (("time", "position_name"), convert.positions(q), "rad or m"),
        "velocity": (
            ("time", "velocity_name"),
            convert.velocities(q, v),
            "rad/s, m/s",
        ),
        "com": (("time", "axis"), robot.quad.com(q), "m"),
        "contact": (("time", "foot"), contact.astype(np.int8), "1"),
    }
    dataset = xr.Dataset(
        {k: (dims, x, {"units": unit}) for k, (dims, x, unit) in data.items()},
        {
            "time": ("time", motion.times.astype(float), {"units": "s"}),
            "position_name": list(plant.GetPositionNames(always_add_suffix=False)),
            "velocity_name": list(plant.GetVelocityNames(always_add_suffix=False)),
            "axis": list("xyz"),
            "foot": list(robot.quad.feet),
            "joint": list(robot.quad.joints),
        },
    )
    return Result(
        kind="quads.space_time",
        model=robot.name,
        verdict=plan.solution.verdict,
        message=plan.solution.message,
        data=dataset,
        residuals=dict(plan.solution.residuals),
        timings=dict(plan.seconds),
        metrics={
            "system": "kinematic",
            "motion": motion.name,
            "period": motion.period or "none",
        },
        provenance=provenance(robot.skinned.files, {"motion": motion.name}),
    )


def kinematic(setting: Setting) -> Outcome:
    """Fig. 18: the kinematic plan and ours, tracked with the same servos and skin.

    The paper drives the joints of the kinematic plan by constraints, here servos do.
    """
    ours = planned(setting, "walk", motion="walk")
    robot = load_planned(setting.model)
    problem = quads.Problem(model=robot, motion="walk")
    solved = plan_kinematic(posed(setting, problem).program())
    path = setting.folder / "walk_kinematic.nc"
    baseline = kinematic_result(robot, solved)
    baseline.save(path)
    torques = solved.torques()
    run = setting.stored(
        "walk_kinematic_coupled",
        lambda _: setting.track(
            quads.Tracking(
                baseline, model=setting.model, time_limit=setting.time_limit
            ),
            "kinematic plan, tracked",
        ),
    )
    share = np.abs(torques["torque"]) / robot.quad.torque_limits
    rows = [
        row(
            "kinematic plan: knots that contact forces can support",
            "not all",
            f"{int(torques['feasible'].sum())} of {len(torques['feasible'])} knots; "
            f"torque up to {100 * share.max():.0f} % of the limit",
            "inverse dynamics with the skin's mass on the links",
        ),
        _tracking_row("kinematic plan, tracked", run, "shaky, steps back"),
    ]
    if ours.coupled is not None:
        rows.append(_tracking_row("ours, tracked", ours.coupled, "smooth"))
        rows.append(
            row(
                "range of roll, kinematic over ours",
                "> 1 (plot)",
                f"{_roll(run) / max(_roll(ours.coupled), 1e-9):.2f}",
                "servos support both motions; see docs/evidence/quads.md",
            )
        )
    rows += trial_rows(ours)
    facts = {
        "kinematic": {
            "verdict": str(run.verdict),
            "message": run.message,
            **{
                k: run.metrics[k]
                for k in ("distance_m", "planned_distance_m", "roll_range_deg")
            },
        },
        "ours": trial_facts(ours),
    }
    if ours.coupled is not None:
        facts["ours"]["roll_range_deg"] = _roll(ours.coupled)
    trials = {"ours": ours, "kinematic": Trial("kinematic", baseline, run)}
    return Outcome("Fig. 18: kinematic only, and ours", rows, trials, facts)


def _roll(run: Result) -> float:
    return float(run.metrics["roll_range_deg"])


def _tracking_row(what: str, run: Result, paper: str) -> dict[str, str]:
    m = run.metrics
    return row(
        what,
        paper,
        f"{m['distance_m']:.3f} of {m['planned_distance_m']:.3f} m, roll over "
        f"{m['roll_range_deg']:.2f} deg, joints within "
        f"{np.degrees(m['tracking_error_rad']):.1f} deg, largest step back "
        f"{1e3 * step_back(run):.1f} mm; {run.message}",
    )


def step_back(run: Result) -> float:
    """Largest distance that the COM moves back from its furthest point so far [m]."""
    data = run.data
    planned_move = data.planned_com.values[-1, :2] - data.planned_com.values[0, :2]
    length = float(np.linalg.norm(planned_move))
    if length < 0.01:
        return 0.0
    along = data.com.values[:, :2] @ (planned_move / length)
    return float((np.maximum.accumulate(along) - along).max())
