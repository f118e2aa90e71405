"""Plans a gait or a jump of HAMR-VI, from a problem to a result.

    result = plan(GaitProblem(frequency=10, surface="card"))

The search starts from a simulation in open loop (`warm_start`). A gait with enough
knots is solved with half of them first. Then the program (`programs`) is solved with
growing weights of the complementarity slack, until contact is hard.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from functools import partial
from types import MappingProxyType
from typing import Any

import numpy as np
import xarray as xr

from drakebots.core.errors import InvalidInput
from drakebots.core.run import Progress, Verdict, check_stop, is_ending
from drakebots.core.stages import stage, timed
from drakebots.core.units import GRAVITY
from drakebots.results import Result
from drakebots.robots.hamr.metrics import (
    LOADED,
    clearance_mm,
    loaded_slip,
    slip,
)
from drakebots.robots.hamr.model import ACTUATORS, BIAS
from drakebots.robots.hamr.plan.programs import (
    GaitProblem,
    JumpProblem,
    coarser,
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
from drakebots.trajopt.contact_implicit import (
    Clock,
    ContactImplicit,
    PenaltyStage,
    Rung,
    audit,
    on_knots,
    plan_dataset,
    plan_result,
    solve_penalty_continuation,
    start_from,
)
from drakebots.trajopt.program import Program
from drakebots.trajopt.solvers import Solution, solve

OPTIONS = {
    "tol": 1e-5,
    "acceptable_tol": 1e-3,
    "acceptable_iter": 8,
    "acceptable_constr_viol_tol": 1e-7,
    "max_iter": 400,
}
"""Options of IPOPT."""

NEAR_OPTIONS = {
    "mu_strategy": "monotone",
    "mu_init": 1e-5,
    "bound_push": 1e-7,
    "bound_frac": 1e-7,
    "slack_bound_push": 1e-7,
    "slack_bound_frac": 1e-7,
}
"""Further options of IPOPT for a start near the answer."""

BETWEEN_OPTIONS = NEAR_OPTIONS | {
    "mu_init": 1e-4,
    "bound_push": 1e-5,
    "bound_frac": 1e-5,
    "slack_bound_push": 1e-5,
    "slack_bound_frac": 1e-5,
}
"""Further options of IPOPT for a start from the answer to a similar problem."""

NEAR = 1e-5
"""Largest residual of a start that counts as near the answer."""

_FINE = "fine"
"""Note of the stages that start from the answer with fewer knots; see `Rung.note`."""

CLOSED = 1e-6
"""Complementarity below which contact counts as hard [mm N]."""


@timed("load")
def plan(
    problem: GaitProblem | JumpProblem = GaitProblem(),
    *,
    progress: Progress | None = None,
) -> Result:
    """Plans a gait or a jump; returns the best iterate even when cut short.

    Args:
        problem: what to plan.
        progress: called at every iteration.

    Raises:
        UnknownName, InvalidInput: for a problem that cannot be built.
        FileProblem: for a checkpoint that cannot be read or belongs to another
            program.
    """
    gait = isinstance(problem, GaitProblem)
    clock = Clock(problem.time_limit)
    with stage("warm start"):
        guess = first_gait(problem) if gait else simulated_jump(problem)
    check_stop()
    solver = partial(_solve, problem.linear_solver, progress=progress)
    start, rung, coarse = _start(problem, guess), Rung.of(problem.resume), None
    if gait and problem.resume is None and problem.from_run is None:
        coarse = _solve_coarse(problem, guess, solver, clock)
    guessed = partial(packed, guess=guess)
    contact, solution = _solve_stages(
        problem,
        # A plan that goes on has the program that it had.
        _builder(problem, guess, start if rung is None else guessed),
        start,
        partial(solver, checkpoint=problem.checkpoint),
        clock,
        coarse,
        rung,
        guessed,
    )
    facts = {"seconds": clock.elapsed}
    if gait:
        facts["warm_start_stride_mm"] = 1e3 * guess.stride
    return described(problem, contact, solution, facts=facts)


def described(
    problem: GaitProblem | JumpProblem,
    contact: ContactImplicit,
    solution: Solution,
    *,
    facts: Mapping[str, Any],
) -> Result:
    """The result of an answer to a problem, however it was found.

    Args:
        problem: what was planned.
        contact, solution: its program and the answer.
        facts: metrics that do not follow from the answer alone; they override others.
    """
    data, gait = _dataset(contact, solution), isinstance(problem, GaitProblem)
    if gait:
        metrics = _gait_metrics(problem, data)
    else:
        metrics = _jump_metrics(contact, solution, data)
    metrics |= problem.ground_metrics | _metrics(contact, solution, data)
    return plan_result(
        contact,
        solution,
        kind="hamr.plan",
        metrics=metrics | facts,
        options=_recorded(problem),
        data=data,
        seed=problem.seed if gait else None,
    )


def _recorded(problem: GaitProblem | JumpProblem) -> dict:
    """The problem as plain values for the result's provenance."""
    files = ("checkpoint", "resume", "from_run")
    given = {name: getattr(problem, name, None) for name in files}
    names = {
        name: value.kind if isinstance(value, Result) else str(value)
        for name, value in given.items()
        if value is not None
    }
    return asdict(replace(problem, **names))


# --- the solver -------------------------------------------------------------


def _start(problem: GaitProblem | JumpProblem, guess: Guess):
    """The function that gives the first x of a program."""
    resume = problem.resume
    if not isinstance(resume, Result):
        return start_from(resume, lambda program: packed(program, guess))
    if resume.kind != "hamr.plan":
        raise InvalidInput(f"cannot resume from a {resume.kind}; give a plan of HAMR")
    return lambda program: resume.data.decision.values


def _builder(problem: GaitProblem | JumpProblem, guess: Guess, start):
    """The function that builds the program with a `slack_weight`."""
    if isinstance(problem, JumpProblem):
        return partial(jump_program, problem)
    build = partial(gait_program, problem, guess.q[-1])
    program = build()[1]  # bare rows, as that needs no more
    q = program.view(start(program))["q"]
    build = partial(build, path=q)
    # Steps stay where the search starts.
    return partial(build, swinging=swings(q)) if problem.clearance else build


def _solve(linear_solver: str, program: Program, x: np.ndarray, *, options, **more):
    """`solve` with a linear solver."""
    options = {**options, "linear_solver": linear_solver}
    return solve(program, x, options=options, **more)


def _options(program: Program, x: np.ndarray, later: bool) -> dict:
    """Options for a start from x.

    If the start is feasible already (an earlier plan, a checkpoint), the solver stays
    close to it.
    """
    near = later or max(program.residuals(x).values()) < NEAR
    return OPTIONS | (NEAR_OPTIONS if near else {})


def _coarse_options(program: Program, x: np.ndarray, later: bool) -> dict:
    """Options for a problem whose answer is a start."""
    return OPTIONS | (BETWEEN_OPTIONS if later else {}) | {"tol": 1e-2}


def _fine_options(program: Program, x: np.ndarray, later: bool) -> dict:
    """Options for a start from the answer with fewer knots."""
    return OPTIONS | (NEAR_OPTIONS if later else BETWEEN_OPTIONS)


def _solve_coarse(
    problem: GaitProblem, guess: Guess, solver, clock: Clock
) -> Solution | None:
    """The answer with half the intervals, where an iteration costs half as much.

    It is solved with the first two weights, in half of the time that is left. None if
    there are too few knots, or it was not found. Jumps are not solved this way: their
    answer with half the intervals is too far away to save any time.
    """
    coarse = coarser(problem)
    if coarse is None or not (clock.left is None or clock.left > 0):
        return None
    guess = guess.on_knots(coarse.knots)
    start = partial(packed, guess=guess)
    own = Clock(None if clock.left is None else clock.left / 2)
    build = _builder(coarse, guess, start)
    continuation = solve_penalty_continuation(
        build=lambda weight: build(slack_weight=weight),
        weights=problem.weights.slack[:2],
        start=start,
        solver=solver,
        options=_coarse_options,
        done=lambda stages: not stages[-1].ok,
        clock=own,
    )
    solution = continuation.solution
    return solution if solution.ok or _stopped(solution) else None


def _stopped(solution: Solution | None) -> bool:
    """Whether no time is left for anything after this solution."""
    if solution is None:
        return False
    return solution.verdict is Verdict.INTERRUPTED or is_ending()


def _closed(stages: Sequence[PenaltyStage], lighter: bool) -> bool:
    """Whether no heavier weight is needed.

    Two weights are always tried; `lighter` says that one was used before these stages.
    """
    last = stages[-1]
    return (lighter or len(stages) > 1) and last.ok and last.slack < CLOSED


def _solve_stages(
    problem: GaitProblem | JumpProblem,
    build,
    start,
    solver,
    clock: Clock,
    coarse: Solution | None,
    rung: Rung | None = None,
    guessed=None,
) -> tuple[ContactImplicit, Solution]:
    """Solves with growing weights of the slack.

    If the answer with fewer knots does not lead to an answer, the search starts again
    from the warm start.

    Args:
        problem: what to plan.
        build: builds the program with a `slack_weight`.
        start: gives the first x of a program.
        solver: solver with the arguments that all stages share.
        clock: limits the wall time.
        coarse: the answer with fewer knots, if it was solved.
        rung: where an earlier search was when it ended, if this resumes one.
        guessed: gives the x of the warm start.

    Returns:
        The problem with the last weight and its solution, failed if contact is soft.
    """
    weights, options, first = problem.weights.slack, _options, start
    note = _FINE if coarse is not None else "" if rung is None else rung.note
    if coarse is not None:
        parts = on_knots(coarse.parts, problem.knots)
        first = partial(Program.pack, parts=parts)
    if note == _FINE:
        weights, options = weights[1:] or weights, _fine_options
    if _stopped(coarse):
        # The iterate in the problem's own knots, and no more.
        contact, program = build(slack_weight=weights[0])
        x = first(program)
        return contact, replace(
            coarse,
            program=program,
            x=x,
            residuals=MappingProxyType(program.residuals(x)),
            multipliers=None,
            message=f"{coarse.message}, with {len(coarse.parts['q'])} knots",
        )
    continuation = solve_penalty_continuation(
        build=lambda weight: build(slack_weight=weight),
        weights=weights,
        start=first,
        solver=solver,
        options=options,
        done=lambda stages: _closed(stages, note == _FINE),
        clock=clock,
        rung=rung,
        note=note,
    )
    contact, solution = continuation.problem, continuation.solution
    timely = clock.left is None or clock.left > 0
    if note == _FINE and solution.verdict is Verdict.FAILED and timely:
        return _solve_stages(problem, build, guessed, solver, clock, None)
    worst = audit(contact, solution)["complementarity_max"]
    if solution.ok and worst >= CLOSED:
        if continuation.missed is not None:
            return contact, continuation.out_of_time()
        # The solver is content with its penalty, but contact is not hard.
        solution = replace(
            solution,
            verdict=Verdict.FAILED,
            message=f"contact is not hard: complementarity {worst:.1e} mm N; try "
            "larger slack weights, another start (gait, phases, seed) or a smaller "
            "stride",
        )
    return contact, solution


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
        **audit(contact, solution),
    }


def _spring_energy(contact: ContactImplicit, solution: Solution) -> np.ndarray:
    """Elastic energy of the model's springs at the knots (N,) [J]."""
    robot = contact.system.robot
    plant, unit = robot.plant, robot.scaling
    context = plant.CreateDefaultContext()
    mass = robot.model.summary.mass / unit.mass
    g = plant.gravity_field().gravity_vector()
    energy = []
    for q in solution.parts["q"]:
        plant.SetPositions(context, q)
        p_WC = plant.CalcCenterOfMassPositionInWorld(context)
        energy.append(plant.CalcPotentialEnergy(context) + mass * g @ p_WC)
    return np.array(energy) * unit.torque
