"""Plan a walk, a hop, a turn or the motion to a goal for any legged model.

    result = plan_locomotion(LocomotionProblem("my_robot.urdf", "walk", forward=0.2))
    print(result.summary())

The search starts from the standing pose alone: the program itself decides which foot
touches when (contact-implicit optimization, Manchester et al., IJRR 2019). It is
solved with increasing weights of the penalty on the complementarity slack until the
contacts are hard.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, fields, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import xarray as xr

from drakebots.core.errors import UnknownName
from drakebots.core.run import Progress, Verdict
from drakebots.model import Model, load
from drakebots.results import Result
from drakebots.trajopt.contact_implicit import (
    Clock,
    ContactImplicit,
    PenaltyContinuation,
    PenaltyStage,
    audit,
    plan_dataset,
    plan_result,
    solve_penalty_continuation,
    start_from,
)
from drakebots.trajopt.locomotion.problem import LocomotionProblem
from drakebots.trajopt.locomotion.program import (
    first_guess,
    input_units,
    locomotion_program,
)
from drakebots.trajopt.locomotion.standing import Standing, stand
from drakebots.trajopt.solvers import SOLVERS, Solution, solve

HARD = 1e-6
"""Largest slack of a plan whose contacts count as hard [m g l]."""

OPTIONS = {"tol": 1e-4, "acceptable_tol": 1e-2, "max_iter": 500}
"""Options of IPOPT for the first stage."""

FINISH = {
    "tol": 1e-6,
    "acceptable_tol": 1e-3,
    "mu_strategy": "monotone",
    "mu_init": 1e-4,
    "bound_push": 1e-6,
    "bound_frac": 1e-6,
    "slack_bound_push": 1e-6,
    "slack_bound_frac": 1e-6,
}
"""Options of IPOPT for later stages, which start near the answer."""


def plan_locomotion(
    problem: LocomotionProblem,
    *,
    progress: Progress | None = None,
    time_limit: float | None = None,
    checkpoint: str | Path | None = None,
    resume: str | Path | None = None,
    solver: str = "exact",
    options: Mapping[str, Any] | None = None,
) -> Result:
    """Plans a motion; returns what was reached even when it is cut short.

    Args:
        problem: the model and its motion.
        progress: called at every iteration of the solver.
        time_limit: limit of the wall time [s].
        checkpoint: file that keeps the best iterate.
        resume: checkpoint to start from.
        solver: one of :data:`drakebots.trajopt.solvers.SOLVERS`.
        options: options of the solver, which override ours.

    Returns:
        A result of kind "locomotion.plan", in SI. Where no motion was found its
        verdict is FAILED, and its message names the worst rows.

    Raises:
        UnknownName, ModelProblem: for a model that cannot be loaded.
        UnknownName, InvalidInput: for a problem that cannot be built.
        FileProblem: for a file that is not a checkpoint, or of another program.
    """
    if solver not in SOLVERS:
        raise UnknownName("solver", solver, SOLVERS)
    clock = Clock(time_limit)
    model = problem.model if isinstance(problem.model, Model) else load(problem.model)
    standing = stand(model, terrain=problem.terrain, pose=problem.pose)
    ours = (OPTIONS if solver == "exact" else {}) | dict(options or {})
    finish = FINISH if solver == "exact" else {}
    continuation = solve_penalty_continuation(
        lambda weight: locomotion_program(problem, standing, slack_weight=weight),
        problem.weights.slack,
        start_from(resume, lambda program: first_guess(problem, standing, program)),
        partial(solve, solver=solver, progress=progress, checkpoint=checkpoint),
        options=lambda program, x, later: ours | (finish if later else {}),
        done=_settled,
        clock=clock,
    )
    implicit, solution = continuation.problem, _judged(continuation)
    timings = clock.timings()
    data = locomotion_data(implicit, solution, standing)
    return plan_result(
        implicit,
        solution,
        kind="locomotion.plan",
        metrics=_metrics(problem, standing, implicit, solution, data)
        | {"stages": [_figures(stage) for stage in continuation.stages]},
        options=_plain(problem, model) | {"solver": solver},
        data=data,
        timings=timings,
    )


def _settled(stages: Sequence[PenaltyStage]) -> bool:
    last = stages[-1]
    # The penalty is exact: once the slack is zero, larger weights change nothing.
    # Nor do they help rows that cannot be satisfied.
    hopeless = len(stages) > 1 and not (last.ok or stages[-2].ok)
    return (last.ok and last.slack <= HARD) or hopeless


def _figures(stage: PenaltyStage) -> dict[str, Any]:
    return {
        "slack_weight": stage.weight,
        "status": stage.status,
        "iterations": stage.iterations,
        "slack": stage.slack,
        "objective": stage.objective,
    }


def _judged(continuation: PenaltyContinuation) -> Solution:
    """The solution; soft contacts count as failed, failures name their worst rows."""
    implicit, solution = continuation.problem, continuation.solution
    if continuation.missed is not None:
        return continuation.out_of_time()
    products = audit(implicit, solution)["complementarity_max"]
    slack = solution.parts["s"][:, 0]
    if solution.ok and slack.max() > HARD:
        worst = solution.program.variables["s"].label(
            solution.program.variables["s"].start + int(slack.argmax())
        )
        return replace(
            solution,
            verdict=Verdict.FAILED,
            message=f"contacts stay soft: slack {worst} = {slack.max():.2g} of m g l; "
            "try larger slack weights, more time or a nearer goal",
            residuals={worst: float(slack.max()), **solution.residuals},
        )
    # The program bounds sums against the slack; terms of either sign may cancel.
    if solution.ok and products > 2 * HARD:
        return replace(
            solution,
            verdict=Verdict.FAILED,
            message=f"a contact's complementarity is {products:.2g} of m g l though "
            "the sum over contacts is zero; lower bound_relax_factor",
            residuals={"complementarity of a contact": products, **solution.residuals},
        )
    if solution.verdict is Verdict.FAILED:
        named = ", ".join(f"{k} = {v:.2g}" for k, v in solution.worst().items())
        return replace(solution, message=f"{solution.message}; worst: {named}")
    return solution


def locomotion_data(
    implicit: ContactImplicit, solution: Solution, standing: Standing
) -> xr.Dataset:
    """A plan's dataset: inputs in SI, velocities zero where it starts at rest."""
    data = plan_dataset(implicit, solution)
    if implicit.periodic is None:
        # The first difference quotient is half a step later than the first knot.
        for name in ("velocity", "foot_velocity"):
            values = np.array(data[name].values)
            values[0] = 0.0
            data[name] = (data[name].dims, values, data[name].attrs)
    data["input"] = (
        ("time", "input_name"),
        data.input.values * input_units(standing),
        {"units": "N m (N where the joint slides)"},
    )
    return data


def _metrics(problem, standing: Standing, implicit, solution, data) -> dict:
    unit = standing.scaling
    feet = data.foot.values.tolist()
    force = data.foot_force.values[1:]
    loaded = (np.linalg.norm(force, axis=2) > 0.01 * unit.force).mean(axis=0)
    radii = np.array([foot.radius for foot in standing.system.robot.model.feet])
    points = data.foot_position.values
    phi, _ = problem.terrain.evaluate(points.reshape(-1, 3))
    clearance = phi.reshape(points.shape[:2]) - radii
    q = solution.parts["q"]
    moved = {
        axis: float(q[-1, standing.index(axis)] - q[0, standing.index(axis)])
        for axis in ("x", "y", "z", "yaw")
        if axis in standing.base
    }
    lengths = {a: v if a == "yaw" else v * unit.length for a, v in moved.items()}
    return {
        "motion": problem.kind,
        "periodic": problem.repeats,
        "friction": problem.friction,
        "duration_s": float(data.time.values[-1]),
        "moved": lengths,
        "duty_factor": dict(zip(feet, loaded.tolist())),
        "foot_clearance_m": dict(zip(feet, clearance.max(axis=0).tolist())),
        "apex_m": float(clearance.min(axis=1).max()),
        "unit_length_m": unit.length,
        "unit_mass_kg": unit.mass,
        "unit_time_s": unit.time,
        "slip_m": _slip(solution.parts, unit.length),
        **audit(implicit, solution),
    }


def _slip(parts, length: float) -> float:
    """Distance that feet slide, weighted by their share of the load [m]."""
    return float((parts["h"] * parts["gam"] * parts["psi"]).sum() * length)


def _plain(problem: LocomotionProblem, model: Model) -> dict:
    """The problem's fields as plain values."""
    out = {f.name: getattr(problem, f.name) for f in fields(problem)}
    out |= {"model": str(model.path), "terrain": repr(problem.terrain)}
    out["weights"] = asdict(problem.weights)
    for name in ("torque", "pose"):
        if isinstance(out[name], Mapping):
            out[name] = dict(out[name])
    return out
