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
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import casadi as ca
import numpy as np
import xarray as xr
from scipy.interpolate import BSpline
from scipy.optimize import nnls

from drakebots.core.convert import as_yaml
from drakebots.core.errors import InvalidInput
from drakebots.core.run import Progress
from drakebots.core.units import SI
from drakebots.formats import model_provenance
from drakebots.results import Result, with_units
from drakebots.robots.quads.motion import (
    cop_of_forces,
    height_over,
    margin,
    support_polygon,
)
from drakebots.robots.quads.robot import (
    Coordinates,
    Quad,
    Sole,
    inertia_at,
)
from drakebots.robots.quads.space_time.check import MotionReport, carry, check_motion
from drakebots.robots.quads.space_time.problem import SpaceTime, widened
from drakebots.robots.quads.space_time.program import AXES, space_time_program
from drakebots.trajopt import Add, Bodies, PlanProgram, planning
from drakebots.trajopt.program import Program
from drakebots.trajopt.solvers import Solution

OPTIONS = {"max_iter": 400, "mu_strategy": "monotone", "mu_init": 1e-2}
"""Options of IPOPT; its adaptive strategy takes twice as long."""

WARM = {"mu_init": 1e-4}
"""Further options for a warm start."""

NAMES = {
    "torque": "tau",
    "foot_force": "F",
    "foot_torque": "T",
    "foot_position": "p",
    "com": "c",
}
"""Names of groups in the field's words."""


@dataclass(frozen=True)
class SpaceTimePlan:
    """A solved problem, or the best iterate of a failed attempt.

    Attributes:
        problem: the problem.
        solution: solution of the nonlinear program.
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
    def parts(self) -> dict[str, np.ndarray]:
        """Variables at the knots, by name."""
        return self.solution.parts

    def result(self) -> Result:
        """The plan at every step, of kind "quads.space_time", with its metrics and the
        errors between the knots."""
        problem, solution = self.problem, self.solution
        data = _plan_dataset(self)
        parts, com = solution.parts, solution.parts["c"]
        moved = com[-1, :2] - com[0, :2]
        desired = problem.desired_feet.reshape(len(problem.knots), -1)
        share = np.abs(parts["tau"]) / problem.limits
        k, i = np.unravel_index(int(share.argmax()), share.shape)
        metrics = {
            **solution.metrics,
            "peak_torque": float(np.abs(parts["tau"]).max()),
            "peak_torque_share": float(share.max()),
            "peak_torque_joint": problem.quad.joints[i],
            "peak_torque_frame": int(problem.knots[k]),
            "speed": float(np.linalg.norm(moved) / problem.motion.duration),
            "foot_error": float(np.abs(parts["p"] - desired).max()),
            "com_error": float(np.abs(com - problem.motion.com[problem.knots]).max()),
            "cop_margin": float(np.nanmin(data["cop_margin"].values)),
            "mass": problem.mass,
            "notes": list(self.report.notes),
            **_step_errors(self),
        }
        options = {
            "motion": problem.motion.name,
            "weights": as_yaml(problem.weights),
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
            timings=dict(self.seconds),
            metrics=metrics,
            provenance=model_provenance(problem.quad.robot.model, options),
        )


def plan_space_time(
    problem: SpaceTime,
    *,
    warm: SpaceTimePlan | None = None,
    solver: str = "exact",
    options: Mapping[str, Any] | None = None,
    time_limit: float | None = None,
    progress: Progress | None = None,
    add: Add | None = None,
) -> SpaceTimePlan:
    """Checks a motion, then optimizes it.

    Args:
        problem: the problem.
        warm: earlier plan of the same robot, motion and knots to start from.
        solver: one of :data:`drakebots.trajopt.solvers.SOLVERS`.
        options: options of the solver.
        time_limit: time limit of the solver [s].
        progress: called after every iteration.
        add: adds terms of your own; see :mod:`~drakebots.trajopt.plan_program`.

    Returns:
        The plan. If it failed, was interrupted or reached the time limit, its
        solution's verdict says so and its residuals name the worst rows.

    Raises:
        InvalidInput: as from :func:`check_motion`, or for a warm start that does not
            fit.
    """
    opened, report, seconds = _open(problem, None if warm is None else warm.solution.x)
    call = planning(solver, lambda program, x: opened, add=add, options=options)
    how = {"time_limit": time_limit, "progress": progress}
    solution = call(opened.program, opened.guess, options=opened.options, **how)
    compiled = solution.seconds.get("build", 0.0)
    seconds |= {"compile": compiled, "solve": solution.seconds["total"] - compiled}
    return SpaceTimePlan(problem, solution, report, seconds)


def mathematical_program(
    problem: SpaceTime, *, start: Result | None = None
) -> PlanProgram[Result]:
    """The program of a space-time problem, for Drake's solvers and ours.

    Args:
        problem: the problem.
        start: plan of the same robot, motion and knots to start from; None for poses of
            inverse kinematics.

    Raises:
        InvalidInput: as from :func:`plan_space_time`.
    """
    return _open(problem, None if start is None else start.data.decision.values)[0]


def _open(
    problem: SpaceTime, x: np.ndarray | None
) -> tuple[PlanProgram[Result], MotionReport, dict[str, float]]:
    """The checked problem's program with its start, the findings, and the time of each
    phase [s].

    Raises:
        InvalidInput: where x does not fit the program.
    """
    began = time.perf_counter()
    report = check_motion(problem)
    posture = report.poses.q
    checked = time.perf_counter()
    program = space_time_program(problem, posture)
    built = time.perf_counter()
    size = program.num_variables
    if x is None:
        guess = _initial_guess(problem, program, posture)
    elif len(x) == size:
        guess = np.clip(x, program.x_lower, program.x_upper)
    else:
        raise InvalidInput(
            f"warm start: {len(x)} variables, the program has {size}; use a plan of "
            "the same robot and knots"
        )
    seconds = {"check": checked - began, "build": built - checked}
    seconds["guess"] = time.perf_counter() - built
    quad, skin = problem.quad, problem.skin

    def spatial(knot: int) -> Callable[[int], tuple | None]:
        rows = ca.DM(problem.inertia[knot].ravel())
        return lambda body: quad.tree.inertia_of(body, rows)

    def skin_torque(given: Callable[[str], np.ndarray]) -> np.ndarray:
        force, turn = problem.delta[:, 6:], given("q")[:, 6:]
        stiffness = None if skin is None else skin.stiffness
        return force + 0 * turn if stiffness is None else force - turn @ stiffness

    opened = PlanProgram(
        program,
        guess,
        {},
        lambda solution: SpaceTimePlan(problem, solution, report, seconds).result(),
        OPTIONS | ({} if x is None else WARM),
        NAMES,
        Bodies(quad.tree, SI, {s.name: (s.body, s.p_BF) for s in quad.soles}, spatial),
        {"skin_torque": (quad.coordinates[6:], skin_torque)},
    )
    return opened, report, seconds


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
    delta = problem.skin_forces(q, problem.knots)
    poses = zip(q, problem.loaded, problem.inertia, delta)
    carried = [
        carry(quad, pose, zero, zero, on_ground, inertia=inertia, delta=skin)
        for pose, on_ground, inertia, skin in poses
    ]
    F, T, tau = (np.array(each).reshape(len(q), -1) for each in zip(*carried))
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
            "T": T,
            "tau": tau,
        }
    )
    return np.clip(guess, program.x_lower, program.x_upper)


# --- the plan at every step --------------------------------------------------


def motion_at_steps(plan: SpaceTimePlan) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
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
    at, steps = problem.knots, np.arange(len(problem.motion))

    def line(values):
        return np.stack([np.interp(steps, at, c) for c in values.T], axis=1)

    shape = (len(steps), len(problem.quad.soles), 3)
    F, T, tau = (line(parts[name]) for name in ("F", "T", "tau"))
    return F.reshape(shape), T.reshape(shape), tau


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
    b = np.concatenate([[push[2], twist[0] / size, twist[1] / size], even])
    normal = nnls(A, b)[0]
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
    q, v, a = motion_at_steps(plan)
    F, T, tau = _loads(plan)
    convert = Coordinates(quad)
    plant = convert.free.plant
    feet = quad.foot_positions(q)
    inertia = inertia_at(quad, problem.skin, problem.influence, np.arange(len(motion)))
    com = quad.com(q, inertia)
    cop, margins = _pressure(quad, q, feet, F, T)
    contact = motion.footfall.contact[:, problem.order]
    patches = [
        patch_forces(*load)
        for i in range(len(q))
        for load in zip(quad.soles, quad.sole_axes(q[i]), F[i], T[i])
    ]
    patch = np.concatenate(patches).reshape(len(q), -1, 3)
    of_foot = ("time", "foot", "axis")
    requested = np.array(motion.feet[:, problem.order])
    data = {
        "position": (("time", "position_name"), convert.positions(q), "rad or m"),
        "velocity": (("time", "velocity_name"), convert.velocities(q, v), "rad/s, m/s"),
        "euler_position": (("time", "coordinate"), q, "rad or m"),
        "euler_velocity": (("time", "coordinate"), v, "rad/s, m/s"),
        "euler_acceleration": (("time", "coordinate"), a, "rad/s^2, m/s^2"),
        "torque": (("time", "joint"), tau, "N m"),
        "foot_force": (of_foot, F, "N"),
        "foot_torque": (of_foot, T, "N m"),
        "contact_force": (("time", "patch", "axis"), patch, "N"),
        "foot_position": (of_foot, feet, "m"),
        "com": (("time", "axis"), com, "m"),
        "cop": (("time", "plane_axis"), cop, "m"),
        "cop_margin": (("time",), margins, "m"),
        "contact": (("time", "foot"), contact.astype(np.int8), "1"),
        "desired_com": (("time", "axis"), np.array(motion.com), "m"),
        "desired_foot": (of_foot, requested, "m"),
        "desired_heading": (("time",), np.array(motion.heading), "rad"),
        "torque_limit": (("joint",), problem.limits, "N m"),
        "decision": (("variable",), np.array(plan.solution.x), "of the program"),
    }
    return xr.Dataset(
        with_units(data),
        coords={
            "time": ("time", motion.times.astype(float), {"units": "s"}),
            "position_name": list(plant.GetPositionNames(always_add_suffix=False)),
            "velocity_name": list(plant.GetVelocityNames(always_add_suffix=False)),
            "coordinate": list(quad.coordinates),
            "joint": list(quad.joints),
            "foot": list(quad.feet),
            "patch": [
                f"{s.name}_{k}" for s in quad.soles for k in range(len(s.points))
            ],
            "axis": list(AXES),
            "plane_axis": list(AXES[:2]),
        },
    )


def _pressure(quad: Quad, q, feet, F, T) -> tuple[np.ndarray, np.ndarray]:
    """COP (N, 2) and its margin in the loaded soles (N,) [m]; NaN without load."""
    cop, margins = cop_of_forces(feet, F, T), np.full(len(q), np.nan)
    for i in np.flatnonzero(np.isfinite(cop).all(axis=1)):
        loaded = F[i, :, 2] > 0
        margins[i] = margin(support_polygon(quad, feet[i], loaded, q[i, 3]), cop[i])
    return cop, margins


def _step_errors(plan: SpaceTimePlan) -> dict[str, float]:
    """Errors of the interpolation between knots; see the module."""
    problem, quad = plan.problem, plan.problem.quad
    q, v, a = motion_at_steps(plan)
    F, T, tau = _loads(plan)
    steps = np.arange(len(q))
    d = inertia_at(quad, problem.skin, problem.influence, steps)
    delta = problem.skin_forces(q, steps)
    rows = quad.dynamics(q, v, a, d)
    loads = np.concatenate([F.reshape(len(q), -1), T.reshape(len(q), -1)], axis=1)
    pull = np.stack([quad.contact_jacobian(q[i]).T @ loads[i] for i in steps])
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
    for k, j in np.argwhere(knot[:-1] & knot[1:]):
        i = problem.knots[k]
        moved = feet[i : i + problem.knot_spacing + 1, j] - feet[i, j]
        slip = max(slip, float(np.abs(moved).max()))
    over = height_over(problem.motion.ground[:, problem.order], feet)
    sunk = -over[~contact].min(initial=0.0)
    return {
        "frame_dynamics_error": float(base[~across].max(initial=0.0)),
        "frame_dynamics_error_across_contacts": float(base.max()),
        "frame_torque_error": float(np.abs(needed - tau)[~across].max(initial=0.0)),
        "frame_torque_peak": float(np.abs(needed[~across]).max(initial=0.0)),
        "frame_slip": slip,
        "frame_sinking": float(sunk),
    }
