"""Results of a solved contact-implicit program, labelled and in SI, and an audit.

The audit does not use the solver's rows but their meaning: complementarity is measured
contact by contact (the program only bounds sums by a slack), dynamics without scales,
and the momentum across the wrap of a periodic plan from both ends.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any

import numpy as np
import xarray as xr

from drakebots.core.stages import spent
from drakebots.formats import model_provenance
from drakebots.multibody import Flat, trajectory_dataset
from drakebots.results import Result
from drakebots.trajopt.contact_implicit.program import ContactImplicit
from drakebots.trajopt.contact_implicit.system import (
    DIRECTIONS,
    ContactSystem,
    interval_block,
)
from drakebots.trajopt.plan_program import Bodies, PlanProgram
from drakebots.trajopt.program import Program
from drakebots.trajopt.solvers import Solution


def knot_velocities(q: np.ndarray, h: np.ndarray, periodic: bool) -> np.ndarray:
    """Rates at knots (N, n) from positions (N, n) and time steps (N-1,).

    Each is the mean of the difference quotients on both sides of its knot, across
    the wrap for a periodic plan; otherwise the first and the last are one-sided.
    """
    mid = np.diff(q, axis=0) / h[:, None]
    inner = (mid[1:] + mid[:-1]) / 2
    if periodic:
        wrap = (mid[-1:] + mid[:1]) / 2
        return np.vstack([wrap, inner, wrap])
    return np.vstack([mid[:1], inner, mid[-1:]])


def contact_forces(system: ContactSystem, parts: Mapping[str, np.ndarray]):
    """Forces on the feet (K, num_feet, 3) at the intervals' ends, in the world frame
    and plant units."""
    q, gam, beta = parts["q"][1:], parts["gam"], parts["beta"]
    p_WF = system.foot_positions(q)
    K, nc = gam.shape
    n, D = system.contact_frames(p_WF.reshape(-1, 3))
    force = n * gam.reshape(-1, 1) + np.einsum("kij,kj->ki", D, beta.reshape(-1, 4))
    return force.reshape(K, nc, 3)


def plan_dataset(problem: ContactImplicit, solution: Solution) -> xr.Dataset:
    """Positions, velocities, inputs, contact forces and slack at the knots, in SI.

    Values of an interval stand at the knot where it starts, with the last one
    repeated; contact forces stand at the knot where they act (the interval's end).
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
    force = np.concatenate([first, force])
    held = np.vstack([parts["u"], parts["u"][-1:]])
    slack = np.concatenate([parts["s"][:, 0], parts["s"][-1:, 0]])
    energy = unit.of(mass=1, length=2, time=-2)
    inputs_note = "as the model's inputs: see docs"
    data = data.assign(
        foot_force=(("time", "foot", "axis"), force, {"units": "N"}),
        input=(("time", "input_name"), held, {"units": inputs_note}),
        slack=("time", slack * energy, {"units": "J"}),
        decision=("variable", np.array(solution.x), {"units": "of the program"}),
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
) -> Result:
    """The result of a plan: data, residuals, timings, metrics, iteration log."""
    model = problem.system.robot.model
    return Result(
        kind=kind,
        model=model.name,
        verdict=solution.verdict,
        message=solution.message,
        data=plan_dataset(problem, solution) if data is None else data,
        residuals=dict(solution.residuals),
        timings=spent(),
        metrics=solution.metrics | dict(metrics),
        provenance=model_provenance(model, dict(options), seed),
    )


def open_program(
    system: ContactSystem,
    program: Program,
    guess: np.ndarray,
    finish: Callable[[Solution], Result],
    options: Mapping[str, Any],
    names: Mapping[str, str] = MappingProxyType({}),
) -> PlanProgram[Result]:
    """A program of a robot on its ground, opened to terms of a user's own.

    Args:
        system: the robot.
        program, guess: its program and the first guess.
        finish, options, names: as of a
            :class:`~drakebots.trajopt.plan_program.PlanProgram`.
    """
    robot, unit = system.robot, system.robot.scaling
    units: dict[str, np.ndarray | float] = {
        "h": unit.time,
        "q": robot.position_units(),
        "v0": robot.velocity_units(),
        "psi": unit.velocity,
        "eta": unit.velocity,
        "s": unit.torque,
    }
    units |= dict.fromkeys(("gam", "beta", "lam"), unit.force)
    if system.input_names is None:
        units["u"] = robot.input_units()
    feet = {f.name: (f.body, f.p_BF / unit.length) for f in robot.model.feet}
    derived = {}
    if isinstance(system.terrain, Flat):
        n, D = (part[0] for part in system.contact_frames(np.zeros((1, 3))))

        def foot_force(given: Callable[[str], np.ndarray]) -> np.ndarray:
            beta = given("beta").reshape(-1, len(feet), len(DIRECTIONS))
            return given("gam")[:, :, None] * n + beta @ D.T

        derived["foot_force"] = list(feet), foot_force
    bodies = Bodies(system.twin, unit, feet)
    return PlanProgram(program, guess, units, finish, options, names, bodies, derived)


def audit(
    problem: ContactImplicit, parts: Mapping[str, np.ndarray]
) -> dict[str, float]:
    """The largest residuals of a plan, in plant units.

    Args:
        problem: the problem that it answers.
        parts: its decision variables by name, see :meth:`Program.view`.

    Returns:
        complementarity_max: largest of phi gam, h (mu gam - 1'beta) psi and
        h eta beta over all contacts; del_residual_max: largest residual of the
        discrete Euler-Lagrange equations, wrap included; momentum_defect: p+ of
        the last interval minus p- of the first (periodic plans); loop_gap_max,
        loop_gap_knots_max and loop_gap_middles_max: largest row of c(q) where the
        integrator closes the loops, at knots, and between them, of loops (lengths and
        directions) and of joints that follow others (rad, lengths);
        penetration_max; slack_max; cone_max: largest excess of friction over mu gam.
    """
    found = problem.system.contact_products(parts, problem.friction)
    products = [float(np.abs(p).max(initial=0)) for p in found["products"]]
    return {
        "complementarity_max": max(products),
        "penetration_max": float(max(-found["phi"].min(initial=0.0), 0.0)),
        "cone_max": float(max(-found["cone"].min(initial=0.0), 0.0)),
        "slack_max": float(parts["s"].max()),
        **_mechanics(problem, parts),
    }


def _mechanics(problem: ContactImplicit, parts) -> dict[str, float]:
    """Residuals of the mechanics and the loops, for :func:`audit`."""
    system = problem.system
    block = interval_block(system, problem.integrator)
    lam = parts.get("lam", np.zeros((len(parts["h"]), 0)))
    given = {**parts, "lam": lam, "q0": parts["q"][:-1], "q1": parts["q"][1:]}
    w = np.hstack([given[n] for n in block.inputs])
    values = np.array(block.value_function.map(len(w))(w.T, np.zeros((0, len(w))))).T
    n = system.nq
    after, before, loops = values[:, :n], values[:, n : 2 * n], values[:, 2 * n :]
    rows = np.abs(after[:-1] - before[1:])
    out = {"del_residual_max": float(rows.max(initial=0.0))}
    if problem.periodic is not None:
        defect = float(np.abs(after[-1] - before[0]).max())
        out["momentum_defect"] = defect
        out["del_residual_max"] = max(out["del_residual_max"], defect)
    if system.num_loop_rows:
        q = parts["q"]
        out["loop_gap_max"] = float(np.abs(loops).max(initial=0.0))
        for where, at in (("knots", q), ("middles", (q[1:] + q[:-1]) / 2)):
            none = np.zeros((system.num_loop_rows, len(at)))
            gap, _ = system.loop_force.map(len(at))(at.T, none)
            out[f"loop_gap_{where}_max"] = float(np.abs(np.array(gap)).max())
    return out
