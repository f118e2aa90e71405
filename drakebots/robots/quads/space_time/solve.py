"""Solves a space-time program: check, first guess, solver, and the plan at every step.

    plan = plan_space_time(SpaceTime(quad, motion))
    plan.result().save("walk.nc")

Between the knots q is the cubic B-spline whose control points are the program's q and
their repeated or mirrored neighbours. At the knots its velocity and acceleration equal
the program's differences exactly; between them its acceleration is linear, as are
contact forces and torques. At a knot its position differs from q by h^2 a/6. (An
interpolating spline oscillates where a foot lands: its accelerations are up to three
times the program's.) The error of this is measured: `frame_dynamics_error` is the
largest row of the base's dynamics over all steps [share of m g], `frame_slip` is the
largest motion of a standing foot between its knots [m].
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import xarray as xr
from scipy.interpolate import BSpline
from scipy.optimize import nnls

from drakebots.core.errors import InvalidInput
from drakebots.core.run import Progress
from drakebots.model import model_provenance
from drakebots.results import Result
from drakebots.robots.quads.motion import (
    carry,
    cop_of_forces,
    margin,
    support_polygon,
)
from drakebots.robots.quads.robot import (
    Coordinates,
    Sole,
    frame_inertia,
)
from drakebots.robots.quads.space_time.check import MotionReport, check_motion
from drakebots.robots.quads.space_time.problem import SpaceTime, widened
from drakebots.robots.quads.space_time.program import AXES, space_time_program
from drakebots.trajopt.program import Program
from drakebots.trajopt.solvers import Solution, solve

OPTIONS = {"max_iter": 400, "mu_strategy": "monotone", "mu_init": 1e-2}
"""Options of IPOPT; its adaptive strategy takes twice as long."""

WARM = {"mu_init": 1e-4}
"""Further options for a warm start."""


@dataclass(frozen=True)
class SpaceTimePlan:
    """A solved problem, or the best iterate of a failed attempt.

    Attributes:
        problem: the problem.
        solution: solution of the nonlinear program.
        report: findings of the check before it.
        posture: poses of inverse kinematics (K, nv).
        seconds: wall time by phase [s].
    """

    problem: SpaceTime
    solution: Solution = field(repr=False)
    report: MotionReport = field(repr=False)
    posture: np.ndarray = field(repr=False)
    seconds: Mapping[str, float]

    @property
    def ok(self) -> bool:
        """Whether the solver succeeded."""
        return self.solution.ok

    @property
    def parts(self) -> dict[str, np.ndarray]:
        """Variables at the knots, by name."""
        return self.solution.parts

    def result(self) -> Result:
        """The plan at every step, of kind "quads.space_time"."""
        return _plan_result(self)


def plan_space_time(
    problem: SpaceTime,
    *,
    warm: SpaceTimePlan | None = None,
    solver: str = "exact",
    options: Mapping[str, Any] | None = None,
    time_limit: float | None = None,
    progress: Progress | None = None,
    checkpoint: str | Path | None = None,
) -> SpaceTimePlan:
    """Checks a motion, then optimizes it.

    Args:
        problem: the problem.
        warm: earlier plan of the same robot, motion and knots to start from.
        solver: "exact" (IPOPT with exact Hessians), or Drake's "ipopt" or "snopt".
        options: options of the solver.
        time_limit: time limit of the solver [s].
        progress: called after every iteration.
        checkpoint: file that keeps the best iterate.

    Returns:
        The plan. If it failed, was interrupted or reached the time limit, its
        solution's verdict says so and its residuals name the worst rows.

    Raises:
        InvalidInput: as from :func:`check_motion`, or for a warm start that does not
            fit.
    """
    began = time.perf_counter()
    report = check_motion(problem)
    posture = report.poses.q
    checked = time.perf_counter()
    program = space_time_program(problem, posture)
    built = time.perf_counter()
    settings = dict(options or {})
    if warm is None:
        x0 = _initial_guess(problem, program, posture)
    else:
        x0 = np.array(warm.solution.x)
        if x0.shape != (program.num_variables,):
            raise InvalidInput(
                f"warm start: {len(x0)} variables, the program has "
                f"{program.num_variables}; use a plan of the same robot and knots"
            )
        x0 = np.clip(x0, program.x_lower, program.x_upper)
    if solver == "exact":
        settings = OPTIONS | (WARM if warm is not None else {}) | settings
    guessed = time.perf_counter()
    solution = solve(
        program,
        x0,
        solver=solver,
        options=settings,
        time_limit=time_limit,
        progress=progress,
        checkpoint=checkpoint,
    )
    seconds = {
        "check": checked - began,
        "build": built - checked,
        "guess": guessed - built,
        "compile": solution.seconds.get("build", 0.0),
        "solve": solution.seconds["total"] - solution.seconds.get("build", 0.0),
    }
    return SpaceTimePlan(problem, solution, report, posture, seconds)


def _initial_guess(
    problem: SpaceTime, program: Program, posture: np.ndarray
) -> np.ndarray:
    """First guess: poses of inverse kinematics at the knots, their differences, and
    contact forces that support them at rest."""
    quad, h = problem.quad, problem.step
    q = posture
    v = np.gradient(q, h, axis=0)
    a = np.zeros_like(q)
    a[1:-1] = (q[2:] - 2 * q[1:-1] + q[:-2]) / h**2
    zero = np.zeros(quad.nv)
    delta = problem.skin_forces(q, problem.frames)
    carried = [
        carry(
            quad,
            q[k],
            zero,
            zero,
            problem.loaded[k],
            inertia=problem.inertia[k],
            delta=delta[k],
        )
        for k in range(len(q))
    ]
    F = np.array([c.F.ravel() for c in carried])
    # Least squares may pull at a foot, which is no start for an interior-point method.
    floor = 0.05 * problem.weight
    F[:, 2::3] = np.where(problem.loaded, np.maximum(F[:, 2::3], floor), 0.0)
    guess = program.pack(
        {
            "q": q,
            "v": v,
            "a": a,
            "p": quad.foot_positions(q).reshape(len(q), -1),
            "c": quad.com(q, problem.inertia),
            "F": F,
            "T": np.array([c.T.ravel() for c in carried]),
            "tau": np.array([c.tau for c in carried]),
        }
    )
    return np.clip(guess, program.x_lower, program.x_upper)


# --- the plan at every step --------------------------------------------------


def frame_motion(plan: SpaceTimePlan) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """q, v and a at all steps (N, nv), in Euler coordinates."""
    return spline_motion(plan.problem, plan.parts["q"])


def spline_motion(problem: SpaceTime, q: np.ndarray):
    """q, v, a at all steps (N, nv) from positions at the knots (K, nv)."""
    wide = widened(problem, q)
    h, t = problem.step, problem.motion.times
    spline = BSpline(h * (np.arange(len(wide) + 4) - 3), wide, 3)
    # The last step is the end of the spline's domain, to rounding.
    t = np.minimum(t, h * (len(q) - 1) * (1 - 1e-15))
    return spline(t), spline(t, 1), spline(t, 2)


def _loads(plan: SpaceTimePlan) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """F, T (N, feet, 3) and tau (N, m) at all steps, linear between knots."""
    problem, parts = plan.problem, plan.parts
    at, frames = problem.frames, np.arange(len(problem.motion))

    def line(values):
        return np.stack([np.interp(frames, at, c) for c in values.T], axis=1)

    shape = (len(frames), len(problem.quad.soles), 3)
    return (
        line(parts["F"]).reshape(shape),
        line(parts["T"]).reshape(shape),
        line(parts["tau"]),
    )


def patch_forces(sole: Sole, R_WS: np.ndarray, F: np.ndarray, T: np.ndarray):
    """Distributes the force and torque of a foot to its patches (k, 3) [N], world.

    Normal forces >= 0 follow by non-negative least squares from the force and the
    tilting moments, regularized towards equal forces. Tangential forces are
    proportional to them, plus what makes up the twisting moment.
    """
    push, twist = R_WS.T @ F, R_WS.T @ T
    x, y = sole.points[:, 0], sole.points[:, 1]
    k = len(x)
    if push[2] <= 0:
        return np.zeros((k, 3))
    size = sole.radius
    A = np.vstack([np.ones(k), y / size, -x / size, 1e-4 * np.eye(k)])
    even = np.full(k, 1e-4 * push[2] / k)
    normal = nnls(
        A, np.concatenate([[push[2], twist[0] / size, twist[1] / size], even])
    )[0]
    share = normal / max(normal.sum(), 1e-12)
    out = np.outer(share, [push[0], push[1], 0.0])
    # Twist: forces along z x r, proportional to the load.
    centre = share @ sole.points[:, :2]
    r = sole.points[:, :2] - centre
    inertia = share @ np.einsum("ki,ki->k", r, r)
    rest = twist[2] - np.sum(x * out[:, 1] - y * out[:, 0])
    if inertia > 1e-12:
        out[:, 0] -= rest / inertia * share * r[:, 1]
        out[:, 1] += rest / inertia * share * r[:, 0]
    out[:, 2] = normal
    return out @ R_WS.T


def _plan_dataset(plan: SpaceTimePlan) -> xr.Dataset:
    """Motion, torques, contact forces, COM, COP and requested paths at every step."""
    problem, quad = plan.problem, plan.problem.quad
    motion = problem.motion
    q, v, a = frame_motion(plan)
    F, T, tau = _loads(plan)
    convert = Coordinates(quad)
    plant = convert.free.plant
    feet = quad.foot_positions(q)
    inertia = frame_inertia(
        quad, problem.skin, problem.influence, np.arange(len(motion))
    )
    com = quad.com(q, inertia)
    cop = cop_of_forces(feet, F, T)
    contact = motion.footfall.contact[:, problem.order]
    margins = [
        margin(support_polygon(quad, feet[i], F[i, :, 2] > 0, q[i, 3]), cop[i])
        if np.isfinite(cop[i]).all()
        else np.nan
        for i in range(len(q))
    ]
    patches = [
        patch_forces(sole, quad.tree.sole_axes_function(sole)(q[i]).full(), *load)
        for i in range(len(q))
        for sole, load in zip(quad.soles, zip(F[i], T[i]))
    ]
    names = [f"{s.name}_{k}" for s in quad.soles for k in range(len(s.points))]
    patch = np.concatenate(patches).reshape(len(q), -1, 3)
    data = {
        "position": (("time", "position_name"), convert.positions(q), "rad or m"),
        "velocity": (("time", "velocity_name"), convert.velocities(q, v), "rad/s, m/s"),
        "euler_position": (("time", "coordinate"), q, "rad or m"),
        "euler_velocity": (("time", "coordinate"), v, "rad/s, m/s"),
        "euler_acceleration": (("time", "coordinate"), a, "rad/s^2, m/s^2"),
        "torque": (("time", "joint"), tau, "N m"),
        "foot_force": (("time", "foot", "axis"), F, "N"),
        "foot_torque": (("time", "foot", "axis"), T, "N m"),
        "contact_force": (("time", "patch", "axis"), patch, "N"),
        "foot_position": (("time", "foot", "axis"), feet, "m"),
        "com": (("time", "axis"), com, "m"),
        "cop": (("time", "plane_axis"), cop, "m"),
        "cop_margin": (("time",), np.array(margins), "m"),
        "contact": (("time", "foot"), contact.astype(np.int8), "1"),
        "desired_com": (("time", "axis"), np.array(motion.com), "m"),
        "desired_foot": (
            ("time", "foot", "axis"),
            np.array(motion.feet[:, problem.order]),
            "m",
        ),
        "desired_heading": (("time",), np.array(motion.heading), "rad"),
        "torque_limit": (("joint",), problem.limits, "N m"),
        "decision": (("variable",), np.array(plan.solution.x), "of the program"),
    }
    return xr.Dataset(
        {
            k: (dims, values, {"units": unit})
            for k, (dims, values, unit) in data.items()
        },
        coords={
            "time": ("time", motion.times.astype(float), {"units": "s"}),
            "position_name": list(plant.GetPositionNames(always_add_suffix=False)),
            "velocity_name": list(plant.GetVelocityNames(always_add_suffix=False)),
            "coordinate": list(quad.coordinates),
            "joint": list(quad.joints),
            "foot": list(quad.feet),
            "patch": names,
            "axis": list(AXES),
            "plane_axis": list(AXES[:2]),
        },
    )


def _step_errors(plan: SpaceTimePlan) -> dict[str, float]:
    """Errors of the interpolation between knots; see the module."""
    problem, quad = plan.problem, plan.problem.quad
    q, v, a = frame_motion(plan)
    F, T, tau = _loads(plan)
    frames = np.arange(len(q))
    d = frame_inertia(quad, problem.skin, problem.influence, frames).reshape(len(q), -1)
    delta = problem.skin_forces(q, frames)
    rows = np.asarray(quad.tree.dynamics_function.map(len(q))(q.T, v.T, a.T, d.T)).T
    J = quad.tree.contact_jacobian(quad.soles)
    loads = np.concatenate([F.reshape(len(q), -1), T.reshape(len(q), -1)], axis=1)
    pull = np.stack([J(q[i]).full().T @ loads[i] for i in frames])
    rows = rows - pull - delta
    needed = rows[:, quad.actuated]
    # Steps next to a touch-down or lift-off are interpolated across it.
    knot = problem.contact
    both = np.hstack([knot, problem.loaded])
    change = np.any(both[1:] != both[:-1], axis=1)
    across = np.repeat(change, problem.knot_spacing)
    across = np.concatenate([across, [False]])
    across |= np.roll(across, 1)
    base = np.abs(rows[:, :3]).max(axis=1) / problem.weight
    feet = quad.foot_positions(q)
    contact = problem.motion.footfall.contact[:, problem.order]
    slip = 0.0
    for j in range(len(quad.soles)):
        for k in range(len(knot) - 1):
            if knot[k, j] and knot[k + 1, j]:
                i = problem.frames[k]
                moved = feet[i : i + problem.knot_spacing + 1, j] - feet[i, j]
                slip = max(slip, float(np.abs(moved).max()))
    sunk = -feet[..., 2][~contact].min(initial=0.0)
    return {
        "frame_dynamics_error": float(base[~across].max(initial=0.0)),
        "frame_dynamics_error_across_contacts": float(base.max()),
        "frame_torque_error": float(np.abs(needed - tau)[~across].max(initial=0.0)),
        "frame_torque_peak": float(np.abs(needed[~across]).max(initial=0.0)),
        "frame_slip": slip,
        "frame_sinking": float(sunk),
    }


def _plan_result(plan: SpaceTimePlan) -> Result:
    """The result of a plan, with its metrics and the errors between the knots."""
    problem, solution = plan.problem, plan.solution
    data = _plan_dataset(plan)
    program, parts = solution.program, solution.parts
    desired = problem.desired_feet.reshape(len(problem.frames), -1)
    share = np.abs(parts["tau"]) / problem.limits
    k, i = np.unravel_index(int(share.argmax()), share.shape)
    log = {n: list(c) for n, c in solution.log.items() if n in ("obj", "inf_pr", "mu")}
    metrics = {
        "objective": solution.objective,
        "cost": program.cost_table(solution.x),
        "iterations": solution.iterations,
        "solver": solution.solver,
        "solver_status": solution.status,
        "variables": program.num_variables,
        "rows": program.num_rows,
        "peak_torque": float(np.abs(parts["tau"]).max()),
        "peak_torque_share": float(share.max()),
        "peak_torque_joint": problem.quad.joints[i],
        "peak_torque_frame": int(problem.frames[k]),
        "speed": float(
            np.linalg.norm(parts["c"][-1, :2] - parts["c"][0, :2])
            / problem.motion.duration
        ),
        "foot_error": float(np.abs(parts["p"] - desired).max()),
        "com_error": float(
            np.abs(parts["c"] - problem.motion.com[problem.frames]).max()
        ),
        "cop_margin": float(np.nanmin(data["cop_margin"].values)),
        "mass": problem.mass,
        "notes": list(plan.report.notes),
        "iteration_log": log,
        **_step_errors(plan),
    }
    options = {
        "motion": problem.motion.name,
        "weights": asdict(problem.weights),
        "friction": problem.friction,
        "cop_share": problem.cop_share,
        "knot_spacing": problem.knot_spacing,
    }
    return Result(
        kind="quads.space_time",
        model=problem.quad.name,
        verdict=solution.verdict,
        message=solution.message,
        data=data,
        residuals=dict(solution.residuals),
        timings=dict(plan.seconds),
        metrics=metrics,
        provenance=model_provenance(problem.quad.robot.model, options),
    )
