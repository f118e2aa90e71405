"""A solved contact-implicit program as a labelled result in SI."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import xarray as xr

from drakebots.multibody import trajectory_dataset
from drakebots.results import Result, provenance
from drakebots.trajopt.contact_implicit.program import ContactImplicit
from drakebots.trajopt.contact_implicit.system import ContactSystem
from drakebots.trajopt.solvers import Solution


def knot_velocities(q: np.ndarray, h: np.ndarray, periodic: bool) -> np.ndarray:
    """Rates at knots (N, n) from positions (N, n) and steps (N-1,).

    Means of the difference quotients on both sides of a knot; at the ends the
    one there is, or across the wrap.
    """
    mid = np.diff(q, axis=0) / h[:, None]
    inner = (mid[1:] + mid[:-1]) / 2
    if periodic:
        wrap = (mid[-1:] + mid[:1]) / 2
        return np.vstack([wrap, inner, wrap])
    return np.vstack([mid[:1], inner, mid[-1:]])


def contact_forces(system: ContactSystem, parts: Mapping[str, np.ndarray]):
    """Forces on the feet in the world (K, num_feet, 3) at the intervals' ends,
    plant units."""
    q, gam, beta = parts["q"][1:], parts["gam"], parts["beta"]
    p_WF = system.foot_positions(q)
    K, nc = gam.shape
    n, D = system.contact_frames(p_WF.reshape(-1, 3))
    force = n * gam.reshape(-1, 1) + np.einsum("kij,kj->ki", D, beta.reshape(-1, 4))
    return force.reshape(K, nc, 3)


def plan_dataset(problem: ContactImplicit, solution: Solution) -> xr.Dataset:
    """Positions, velocities, inputs, contact and slack over the knots, in SI.

    What belongs to an interval is listed at the knot it starts from, the last
    one repeated; contact forces at the knot they act at (the interval's end).
    """
    system, parts = problem.system, solution.parts
    robot = system.robot
    unit = robot.scaling
    h, q = parts["h"][:, 0], parts["q"]
    times = np.concatenate([[0.0], np.cumsum(h)])
    periodic = problem.periodic is not None
    v = knot_velocities(q, h, periodic)
    data = trajectory_dataset(robot, times, np.hstack([q, v]))
    force = contact_forces(system, parts) * unit.force
    first = force[-1:] if periodic else np.zeros_like(force[:1])
    held = np.vstack([parts["u"], parts["u"][-1:]])
    slack = np.concatenate([parts["s"][:, 0], parts["s"][-1:, 0]])
    data["foot_force"] = (
        ("time", "foot", "axis"),
        np.concatenate([first, force]),
        {"units": "N"},
    )
    data["input"] = (
        ("time", "input_name"),
        held,
        {"units": "as the model's inputs: see docs"},
    )
    data["slack"] = (
        ("time",),
        slack * unit.of(mass=1, length=2, time=-2),
        {"units": "J"},
    )
    data["decision"] = (
        ("variable",),
        np.array(solution.x),
        {"units": "of the program"},
    )
    return data.assign_coords(input_name=list(system.inputs_labels))


def plan_result(
    problem: ContactImplicit,
    solution: Solution,
    *,
    kind: str,
    metrics: Mapping[str, Any],
    options: Mapping[str, Any],
    data: xr.Dataset | None = None,
    seed: int | None = None,
    timings: Mapping[str, float] | None = None,
) -> Result:
    """A plan as a result: data, residual table, timings, iteration log."""
    model = problem.system.robot.model
    program = solution.program
    log = {k: list(v) for k, v in solution.log.items() if k in ("obj", "inf_pr", "mu")}
    return Result(
        kind=kind,
        model=model.name,
        verdict=solution.verdict,
        message=solution.message,
        data=plan_dataset(problem, solution) if data is None else data,
        residuals=dict(solution.residuals),
        timings=dict(solution.seconds if timings is None else timings),
        metrics={
            "objective": solution.objective,
            "cost": program.cost_table(solution.x),
            "iterations": solution.iterations,
            "solver": solution.solver,
            "solver_status": solution.status,
            "variables": program.num_variables,
            "rows": program.num_rows,
            "iteration_log": log,
            **metrics,
        },
        provenance=provenance(model.path, dict(options), seed),
    )


__all__ = [
    "contact_forces",
    "knot_velocities",
    "plan_dataset",
    "plan_result",
]
