"""Plans a gait or a jump of HAMR-VI, from a problem to a result.

    result = plan(GaitProblem(frequency=10, surface="card"))

The search starts from a simulation in open loop (`warm_start`). The program
(`programs`) is solved with growing weights of the complementarity slack, until contact
is hard.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import xarray as xr

from drakebots.core.convert import as_yaml
from drakebots.core.errors import InvalidInput
from drakebots.core.files import check_output
from drakebots.core.run import Progress, Verdict, check_stop
from drakebots.core.stages import stage, timed
from drakebots.core.units import GRAVITY
from drakebots.model import contexts_along
from drakebots.results import Result, load_result
from drakebots.robots.hamr.metrics import LOADED, clearance_mm, loaded_slip, slip
from drakebots.robots.hamr.model import ACTUATORS, BIAS
from drakebots.robots.hamr.plan.programs import (
    GaitProblem,
    JumpProblem,
    gait_program,
    hamr_system,
    jump_program,
    swings,
)
from drakebots.robots.hamr.plan.warm_start import (
    Guess,
    first_gait,
    packed,
    simulated_jump,
)
from drakebots.trajopt import Add, PlanProgram, planning
from drakebots.trajopt.contact_implicit import (
    ContactImplicit,
    audit,
    open_program,
    plan_dataset,
    plan_result,
)
from drakebots.trajopt.program import Program, read_checkpoint
from drakebots.trajopt.solvers import (
    Clock,
    PenaltyStage,
    Rung,
    Solution,
    Start,
    near,
    solve_penalty_continuation,
    start_from,
)

OPTIONS = {
    "tol": 1e-5,
    "acceptable_tol": 1e-3,
    "acceptable_iter": 8,
    "acceptable_constr_viol_tol": 1e-7,
    "max_iter": 400,
    # With forces a little below zero the cost of friction, psi'gam, has no lower bound.
    "bound_relax_factor": 0.0,
}
"""Options of IPOPT."""

NEAR_OPTIONS = near(1e-5, 1e-7)
"""Further options of IPOPT for a start near the answer."""

NEAR = 1e-5
"""Largest residual of a start that counts as near the answer."""

CLOSED = 1e-6
"""Complementarity below which contact counts as hard [mm N]."""


@timed("load")
def plan(
    problem: GaitProblem | JumpProblem = GaitProblem(),
    *,
    checkpoint: str | Path | None = None,
    resume: str | Path | Result | None = None,
    progress: Progress | None = None,
    solver: str = "exact",
    add: Add | None = None,
) -> Result:
    """Plans a gait or a jump; returns the best iterate even when cut short.

    Args:
        problem: planning problem.
        checkpoint: file in which the best iterate is kept (.npz).
        resume: checkpoint, or a plan with as many knots or its file, to start from.
        progress: called at every iteration.
        solver: one of :data:`drakebots.trajopt.solvers.SOLVERS`.
        add: adds terms of your own to every program that is solved, one a weight; see
            :mod:`~drakebots.trajopt.plan_program`.

    Raises:
        UnknownName, InvalidInput: for a problem that cannot be built.
        FileProblem: for a checkpoint that cannot be read or belongs to another
            program.
    """
    if checkpoint is not None:
        check_output(checkpoint)
    if isinstance(resume, str | Path):
        if Path(resume).suffix == ".nc":
            resume = load_result(resume)
        else:
            read_checkpoint(resume)
    call = planning(solver, _open, add=add, progress=progress, checkpoint=checkpoint)
    clock, guess = Clock(problem.time_limit), _warm_start(problem)
    contact, solution = _solved(problem, guess, call, clock, resume)
    facts = {"seconds": clock.elapsed}
    if isinstance(problem, GaitProblem):
        facts["warm_start_stride_mm"] = 1e3 * guess.stride
    return described(problem, contact, solution, facts=facts)


def mathematical_program(
    problem: GaitProblem | JumpProblem,
    *,
    start: Result | None = None,
    slack_weight: float | None = None,
) -> PlanProgram[Result]:
    """The program of a gait or a jump, for Drake's solvers and ours.

    The planner solves it with growing weights of the slack, each from the answer
    before.

    Args:
        problem: planning problem.
        start: plan with as many knots to start from; None for the warm start.
        slack_weight: weight of the slack; None for the first of the problem's.

    Raises:
        UnknownName, InvalidInput: for a problem that cannot be built, or another start.
    """
    guess = _warm_start(problem)
    first = _start(guess, start)
    contact, program = _builder(problem, guess, first)(slack_weight=slack_weight)

    def finish(solution: Solution) -> Result:
        return described(problem, contact, _hard(contact, solution), facts={})

    return _open(program, first(program), finish)


def _open(program: Program, x: np.ndarray, finish=None) -> PlanProgram[Result]:
    """A program with its start, opened to terms of a user's own."""
    return open_program(hamr_system(), program, x, finish, OPTIONS, {"voltage": "u"})


def _warm_start(problem: GaitProblem | JumpProblem) -> Guess:
    with stage("warm start"):
        gait = isinstance(problem, GaitProblem)
        guess = first_gait(problem) if gait else simulated_jump(problem)
    check_stop()
    return guess


def _hard(contact: ContactImplicit, solution: Solution) -> Solution:
    """The solution, failed where its contacts are soft."""
    worst = audit(contact, solution.parts)["complementarity_max"]
    if not solution.ok or worst < CLOSED:
        return solution
    # The solver is content with its penalty, but contact is not hard.
    return replace(
        solution,
        verdict=Verdict.FAILED,
        message=f"contact is not hard: complementarity {worst:.1e} mm N; try larger "
        "slack weights, another start (gait, phases, seed) or a smaller stride",
    )


def described(
    problem: GaitProblem | JumpProblem,
    contact: ContactImplicit,
    solution: Solution,
    *,
    facts: Mapping[str, Any],
) -> Result:
    """The result of an answer to a problem, however it was found.

    Args:
        problem: planning problem.
        contact, solution: its program and the answer.
        facts: metrics that do not follow from the answer alone; they override others.
    """
    data, gait = _dataset(contact, solution), isinstance(problem, GaitProblem)
    if gait:
        metrics = _gait_metrics(problem, data)
    else:
        metrics = _jump_metrics(contact, solution, data)
    metrics |= problem.ground_metrics | _metrics(contact, solution, data)
    seed = problem.start.seed if gait else None
    told = {"metrics": metrics | facts, "options": as_yaml(problem), "data": data}
    return plan_result(contact, solution, kind="hamr.plan", seed=seed, **told)


# --- the solver -------------------------------------------------------------


def _options(program: Program, x: np.ndarray, later: bool) -> dict:
    """Options for a start from x.

    If the start is feasible already (an earlier plan, a checkpoint), the solver stays
    close to it.
    """
    near = later or max(program.residuals(x).values()) < NEAR
    return OPTIONS | (NEAR_OPTIONS if near else {})


def _closed(stages: Sequence[PenaltyStage]) -> bool:
    """Whether no heavier weight is needed; two are always tried."""
    last = stages[-1]
    return len(stages) > 1 and last.ok and last.slack < CLOSED


def _solved(
    problem: GaitProblem | JumpProblem, guess: Guess, solver, clock: Clock, resume
) -> tuple[ContactImplicit, Solution]:
    """Solves with growing weights of the slack.

    Args:
        problem, guess: planning problem and its warm start.
        solver: solver with the arguments that all stages share.
        clock: limits the wall time.
        resume: as of :func:`plan`.

    Returns:
        The problem with the last weight and its solution, failed if contact is soft.
    """
    start, rung = _start(guess, resume), Rung.of(resume)
    # A plan that goes on has the program that it had.
    first = start if rung is None else partial(packed, guess=guess)
    build, weights = _builder(problem, guess, first), problem.weights.slack
    how = {"options": _options, "done": _closed, "clock": clock, "rung": rung}
    continuation = solve_penalty_continuation(
        lambda weight: build(slack_weight=weight), weights, start, solver, **how
    )
    contact, solution = continuation.problem, continuation.solution
    judged = _hard(contact, solution)
    if judged is not solution and continuation.missed is not None:
        return contact, continuation.out_of_time()
    return contact, judged


def _start(guess: Guess, resume: str | Path | Result | None) -> Start:
    """The function that gives the first x of a program."""
    if not isinstance(resume, Result):
        return start_from(resume, partial(packed, guess=guess))
    if resume.kind != "hamr.plan":
        raise InvalidInput(f"cannot resume from a {resume.kind}; give a plan of HAMR")
    return lambda program: resume.data.decision.values


def _builder(problem: GaitProblem | JumpProblem, guess: Guess, start: Start):
    """The function that builds the program with a `slack_weight`."""
    if isinstance(problem, JumpProblem):
        return partial(jump_program, problem)
    build = partial(gait_program, problem, guess.q[-1])
    program = build()[1]  # bare rows, as that needs no more
    q = program.view(start(program))["q"]
    build = partial(build, path=q)
    # Steps stay where the search starts.
    return partial(build, swinging=swings(q)) if problem.clearance else build


# --- data and metrics -------------------------------------------------------


def _dataset(contact: ContactImplicit, solution: Solution) -> xr.Dataset:
    """A plan's dataset with voltages by actuator [V]."""
    data = plan_dataset(contact, solution)
    data = data.rename(input="voltage", input_name="actuator")
    voltage = np.clip(data.voltage.values, 0.0, BIAS)
    data["voltage"] = (("time", "actuator"), voltage, {"units": "V"})
    return data.assign_coords(actuator=list(ACTUATORS))


def _gait_metrics(problem: GaitProblem, data: xr.Dataset) -> dict:
    stride = float(data.base_position.values[-1, 0] - data.base_position.values[0, 0])
    feet, normal = data.foot_position.values, data.foot_force.values[..., 2]
    weight = GRAVITY * hamr_system().robot.model.summary.mass
    return {
        "gait": problem.gait,
        "frequency_hz": problem.frequency,
        "stride_mm": 1e3 * stride,
        "slip": slip(data.time.values, data.foot_velocity.values[..., 0], stride),
        "loaded_slip": loaded_slip(feet, normal, weight, stride),
        "clearance_min_mm": clearance_mm(feet[..., 2], [0, len(feet) - 1]),
        "periodic": True,
    }


def _jump_metrics(
    contact: ContactImplicit, solution: Solution, data: xr.Dataset
) -> dict:
    height = data.base_position.values[:, 2]
    return {
        "gait": "jump",
        "apex_rise_mm": 1e3 * float(height.max() - height[0]),
        "crouch_mm": 1e3 * float(height[0] - height.min()),
        "spring_energy_mJ": (1e3 * _spring_energy(contact, solution)).tolist(),
        "periodic": False,
    }


def _metrics(contact: ContactImplicit, solution: Solution, data: xr.Dataset) -> dict:
    """Duty factors, clearances, voltages, flexures, and what the audit finds."""
    system, parts = contact.system, solution.parts
    weight = GRAVITY * system.robot.model.summary.mass
    feet = data.foot.values.tolist()
    loaded = (data.foot_force.values[1:, :, 2] > LOADED * weight).mean(axis=0)
    clearance = 1e3 * data.foot_position.values[..., 2].max(axis=0)
    lengths = system.robot.length_positions()[0]
    flexures = np.abs(parts["q"][:, 6:][:, ~lengths[6:]])
    return {
        "height_mm": 1e3 * float(data.base_position.values[:, 2].mean()),
        "period_s": float(data.time.values[-1]),
        "duty_factor": dict(zip(feet, loaded.tolist())),
        "foot_clearance_mm": dict(zip(feet, clearance.tolist())),
        "voltage_min": float(parts["u"].min()),
        "voltage_max": float(parts["u"].max()),
        "flexure_max_deg": float(np.degrees(flexures.max())),
        **audit(contact, solution.parts),
    }


def _spring_energy(contact: ContactImplicit, solution: Solution) -> np.ndarray:
    """Elastic energy of the model's springs at the knots (N,) [J]."""
    robot = contact.system.robot
    plant, unit = robot.plant, robot.scaling
    mass = robot.model.summary.mass / unit.mass
    g = plant.gravity_field().gravity_vector()
    energy = []
    for context in contexts_along(plant, solution.parts["q"]):
        p_WC = plant.CalcCenterOfMassPositionInWorld(context)
        energy.append(plant.CalcPotentialEnergy(context) + mass * g @ p_WC)
    return np.array(energy) * unit.torque
