"""A space-time plan at every frame, as a result.

Between knots q is the cubic B-spline whose control points are the program's q (and
what its ends repeat or mirror): its velocity and acceleration at knots are the
program's differences exactly, its acceleration is linear between them, as are
contact forces and torques. Its position at a knot is off q by h^2 a/6. (An
interpolating spline rings where a foot lands: its accelerations are up to three
times the program's.) What that costs is measured: `frame_dynamics_error` is the
largest base row of the dynamics over all frames [share of m g], `frame_slip` how
far a foot in contact strays between its knots.
"""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING

import numpy as np
import xarray as xr
from scipy.interpolate import BSpline
from scipy.optimize import nnls

from drakebots.results import Result, provenance
from drakebots.robots.quads.motion import cop_of_forces, margin, support_polygon
from drakebots.robots.quads.robot import (
    Coordinates,
    Quad,
    Sole,
    coupling_forces,
    frame_inertia,
)
from drakebots.robots.quads.space_time.problem import SpaceTime, widened

if TYPE_CHECKING:
    from drakebots.robots.quads.space_time.solve import SpaceTimePlan

AXES = ["x", "y", "z"]


def frame_motion(plan: SpaceTimePlan) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """q, v and a at all frames (N, nv), on Euler coordinates."""
    problem = plan.problem
    return spline_motion(problem, plan.parts["q"])


def spline_motion(problem: SpaceTime, q: np.ndarray):
    """q, v, a at all frames (N, nv) of positions at the knots (K, nv)."""
    wide = widened(problem, q)
    h, t = problem.step, problem.motion.times
    spline = BSpline(h * (np.arange(len(wide) + 4) - 3), wide, 3)
    # The last frame is the end of the spline's domain, to rounding.
    t = np.minimum(t, h * (len(q) - 1) * (1 - 1e-15))
    return spline(t), spline(t, 1), spline(t, 2)


def frame_loads(plan: SpaceTimePlan) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """F, T (N, feet, 3) and tau (N, m) at all frames, linear between knots."""
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
    """A foot's force and torque shared out to its contact points (k, 3) [N], world.

    Normal forces >= 0 by nonnegative least squares on force and tilting moments,
    drawn to equal ones; tangential forces in proportion to them, with what twists.
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
    # Twist: forces along z x r, in proportion to the load.
    centre = share @ sole.points[:, :2]
    r = sole.points[:, :2] - centre
    inertia = share @ np.einsum("ki,ki->k", r, r)
    rest = twist[2] - np.sum(x * out[:, 1] - y * out[:, 0])
    if inertia > 1e-12:
        out[:, 0] -= rest / inertia * share * r[:, 1]
        out[:, 1] += rest / inertia * share * r[:, 0]
    out[:, 2] = normal
    return out @ R_WS.T


def plan_dataset(plan: SpaceTimePlan) -> xr.Dataset:
    """Motion, torques, contact forces, COM, COP and what was asked, every frame."""
    problem, quad = plan.problem, plan.problem.quad
    motion = problem.motion
    q, v, a = frame_motion(plan)
    F, T, tau = frame_loads(plan)
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
            "axis": AXES,
            "plane_axis": AXES[:2],
        },
    )


def frame_errors(plan: SpaceTimePlan) -> dict[str, float]:
    """What interpolation between knots costs; see the module."""
    problem, quad = plan.problem, plan.problem.quad
    q, v, a = frame_motion(plan)
    F, T, tau = frame_loads(plan)
    frames = np.arange(len(q))
    d = frame_inertia(quad, problem.skin, problem.influence, frames).reshape(len(q), -1)
    delta = coupling_forces(quad, problem.skin, problem.influence, frames)
    rows = np.asarray(quad.tree.dynamics_function.map(len(q))(q.T, v.T, a.T, d.T)).T
    J = quad.tree.contact_jacobian(quad.soles)
    loads = np.concatenate([F.reshape(len(q), -1), T.reshape(len(q), -1)], axis=1)
    pull = np.stack([J(q[i]).full().T @ loads[i] for i in frames])
    rows = rows - pull - delta
    needed = rows[:, quad.actuated]
    # Frames next to a landing or a leaving are interpolated across it.
    knot = problem.contact
    both = np.hstack([knot, problem.loaded])
    change = np.any(both[1:] != both[:-1], axis=1)
    across = np.repeat(change, problem.stride)
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
                way = feet[i : i + problem.stride + 1, j] - feet[i, j]
                slip = max(slip, float(np.abs(way).max()))
    sunk = -feet[..., 2][~contact].min(initial=0.0)
    return {
        "frame_dynamics_error": float(base[~across].max(initial=0.0)),
        "frame_dynamics_error_across_contacts": float(base.max()),
        "frame_torque_error": float(np.abs(needed - tau)[~across].max(initial=0.0)),
        "frame_torque_peak": float(np.abs(needed[~across]).max(initial=0.0)),
        "frame_slip": slip,
        "frame_sinking": float(sunk),
    }


def plan_result(plan: SpaceTimePlan) -> Result:
    """A plan as a result."""
    problem, solution = plan.problem, plan.solution
    data = plan_dataset(plan)
    program, parts = solution.program, solution.parts
    at = problem.desired_feet.reshape(len(problem.frames), -1)
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
        "foot_error": float(np.abs(parts["p"] - at).max()),
        "com_error": float(
            np.abs(parts["c"] - problem.motion.com[problem.frames]).max()
        ),
        "cop_margin": float(np.nanmin(data["cop_margin"].values)),
        "mass": problem.mass,
        "notes": list(plan.report.notes),
        "iteration_log": log,
        **frame_errors(plan),
    }
    options = {
        "motion": problem.motion.name,
        "weights": asdict(problem.weights),
        "friction": problem.friction,
        "cop_share": problem.cop_share,
        "stride": problem.stride,
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
        provenance=provenance(problem.quad.robot.model.path, options),
    )


def knots_of(quad: Quad, data: xr.Dataset, stride: int) -> np.ndarray:
    """q at the knots (K, nv) of a stored plan."""
    return data["euler_position"].values[::stride]
