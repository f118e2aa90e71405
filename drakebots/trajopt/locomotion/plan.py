"""Plan a walk, a hop, a turn or a way to a goal for any legged model.

    model = drakebots.load("my_robot.urdf")
    result = plan_locomotion(model, LocomotionPlan("walk", forward=0.2))
    print(result.summary())

Nothing but the standing pose starts the search: which foot touches when comes
out of the program (contact-implicit optimization, Manchester et al., IJRR
2019). The program is solved with one penalty of the complementarity slack
after the other until the contacts are hard.
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
from drakebots.model import Model
from drakebots.results import Result
from drakebots.trajopt.contact_implicit import (
    Clock,
    ContactImplicit,
    PenaltyClimb,
    PenaltyRung,
    audit,
    climb_penalty,
    plan_dataset,
    plan_result,
    start_from,
)
from drakebots.trajopt.locomotion.problem import LocomotionPlan, LocomotionWeights
from drakebots.trajopt.locomotion.program import (
    first_guess,
    input_units,
    locomotion_program,
)
from drakebots.trajopt.locomotion.standing import Standing, stand
from drakebots.trajopt.solvers import SOLVERS, Solution, solve

HARD = 1e-6
"""Largest slack of a plan whose contacts count as hard, m g l."""

OPTIONS = {"tol": 1e-4, "acceptable_tol": 1e-2, "max_iter": 500}
"""Of IPOPT, first rung."""

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
"""Of IPOPT, later rungs: near the answer already."""


def plan_locomotion(
    model: Model,
    plan: LocomotionPlan = LocomotionPlan(),
    *,
    progress: Progress | None = None,
    time_limit: float | None = None,
    checkpoint: str | Path | None = None,
    resume: str | Path | None = None,
    solver: str = "exact",
    options: Mapping[str, Any] | None = None,
) -> Result:
    """Plans for a model; what was reached is returned even when it is cut short.

    Args:
        model: with feet and actuators, on a free base or on joints of its own
            to the world (a planar robot).
        plan: what to do.
        progress: called at every iteration.
        time_limit: of wall time [s].
        checkpoint: file that keeps the best iterate.
        resume: checkpoint to start from.
        solver: of :data:`drakebots.trajopt.solvers.solve.SOLVERS`.
        options: the solver's, over ours.

    Returns:
        A plan in SI. It failed, naming the worst rows, where there is no such
        motion or none was found.

    Raises:
        UnknownName, InvalidInput: for a problem that cannot be built.
        FileProblem: for a checkpoint that is none or of another program.
    """
    if solver not in SOLVERS:
        raise UnknownName("solver", solver, SOLVERS)
    clock = Clock(time_limit)
    standing = stand(model, terrain=plan.terrain, pose=plan.pose)
    ours = (OPTIONS if solver == "exact" else {}) | dict(options or {})
    finish = FINISH if solver == "exact" else {}
    climb = climb_penalty(
        lambda weight: locomotion_program(plan, standing, slack_weight=weight),
        plan.weights.slack,
        start_from(resume, lambda program: first_guess(plan, standing, program)),
        partial(solve, solver=solver, progress=progress, checkpoint=checkpoint),
        options=lambda program, x, later: ours | (finish if later else {}),
        done=_settled,
        clock=clock,
    )
    problem, solution = climb.problem, _judged(climb)
    timings = clock.timings()
    data = locomotion_data(problem, solution, standing)
    return plan_result(
        problem,
        solution,
        kind="locomotion.plan",
        metrics=_metrics(plan, standing, problem, solution, data)
        | {"rungs": [_figures(rung) for rung in climb.rungs]},
        options=_plain(plan) | {"solver": solver},
        data=data,
        timings=timings,
    )


def _settled(rungs: Sequence[PenaltyRung]) -> bool:
    last = rungs[-1]
    # The penalty is exact: once the slack is gone, heavier ones change nothing.
    # Nor do they mend rows that cannot be met.
    hopeless = len(rungs) > 1 and not (last.ok or rungs[-2].ok)
    return (last.ok and last.slack <= HARD) or hopeless


def _figures(rung: PenaltyRung) -> dict[str, Any]:
    return {
        "slack_weight": rung.weight,
        "status": rung.status,
        "iterations": rung.iterations,
        "slack": rung.slack,
        "objective": rung.objective,
    }


def _judged(climb: PenaltyClimb) -> Solution:
    """Soft contacts are no success; failures name their worst rows."""
    problem, solution = climb.problem, climb.solution
    if climb.missed is not None:
        return climb.out_of_time()
    products = audit(problem, solution)["complementarity_max"]
    slack = solution.parts["s"][:, 0]
    if solution.ok and slack.max() > HARD:
        worst = solution.program.variables["s"].label(
            solution.program.variables["s"].start + int(slack.argmax())
        )
        return replace(
            solution,
            verdict=Verdict.FAILED,
            message=f"contacts stay soft: slack {worst} = {slack.max():.2g} of m g l; "
            "try heavier slack weights, more time or a nearer goal",
            residuals={worst: float(slack.max()), **solution.residuals},
        )
    # The program bounds sums against the slack; terms of either sign may cancel.
    if solution.ok and products > 2 * HARD:
        return replace(
            solution,
            verdict=Verdict.FAILED,
            message=f"a contact's complementarity is {products:.2g} of m g l though "
            "its sum is closed; lower bound_relax_factor",
            residuals={"complementarity of a contact": products, **solution.residuals},
        )
    if solution.verdict is Verdict.FAILED:
        named = ", ".join(f"{k} = {v:.2g}" for k, v in solution.worst().items())
        return replace(solution, message=f"{solution.message}; worst: {named}")
    return solution


def locomotion_data(
    problem: ContactImplicit, solution: Solution, standing: Standing
) -> xr.Dataset:
    """A plan's dataset with inputs in SI, at rest where it begins at rest."""
    data = plan_dataset(problem, solution)
    if problem.periodic is None:
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


def _metrics(plan, standing: Standing, problem, solution, data) -> dict:
    unit = standing.scaling
    feet = data.foot.values.tolist()
    force = data.foot_force.values[1:]
    loaded = (np.linalg.norm(force, axis=2) > 0.01 * unit.force).mean(axis=0)
    radii = np.array([foot.radius for foot in standing.system.robot.model.feet])
    points = data.foot_position.values
    phi, _ = plan.terrain.evaluate(points.reshape(-1, 3))
    clearance = phi.reshape(points.shape[:2]) - radii
    q = solution.parts["q"]
    moved = {
        axis: float(q[-1, standing.index(axis)] - q[0, standing.index(axis)])
        for axis in ("x", "y", "z", "yaw")
        if axis in standing.base
    }
    lengths = {a: v if a == "yaw" else v * unit.length for a, v in moved.items()}
    return {
        "motion": plan.kind,
        "periodic": plan.repeats,
        "friction": plan.friction,
        "duration_s": float(data.time.values[-1]),
        "moved": lengths,
        "duty_factor": dict(zip(feet, loaded.tolist())),
        "foot_clearance_m": dict(zip(feet, clearance.max(axis=0).tolist())),
        "apex_m": float(clearance.min(axis=1).max()),
        "unit_length_m": unit.length,
        "unit_mass_kg": unit.mass,
        "unit_time_s": unit.time,
        "slip_m": _slip(solution.parts, unit.length),
        **audit(problem, solution),
    }


def _slip(parts, length: float) -> float:
    """Way that loaded feet slide, weighted by their share of the weight [m]."""
    return float((parts["h"] * parts["gam"] * parts["psi"]).sum() * length)


def _plain(plan: LocomotionPlan) -> dict:
    out = {f.name: getattr(plan, f.name) for f in fields(plan)}
    out["terrain"] = repr(plan.terrain)
    out["weights"] = asdict(plan.weights)
    for name in ("torque", "pose"):
        if isinstance(out[name], Mapping):
            out[name] = dict(out[name])
    return out


__all__ = [
    "LocomotionPlan",
    "LocomotionWeights",
    "locomotion_data",
    "plan_locomotion",
]
