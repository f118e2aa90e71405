"""Plan a walk, a hop, a turn or the motion to a goal for any legged model.

    result = plan_locomotion(LocomotionProblem("my_robot.urdf", "walk", forward=0.2))
    print(result.summary())

A motion by a gait comes first: its footfall is given, and what makes it of use to a
robot is stated as bounds. Where there is no such motion, contacts are free: the program
itself decides which foot touches when, starting from the standing pose alone.
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
from drakebots.core.stages import timed
from drakebots.model import Model, load
from drakebots.results import Result
from drakebots.trajopt.contact_implicit import (
    Clock,
    ContactImplicit,
    PenaltyStage,
    audit,
    plan_dataset,
    plan_result,
)
from drakebots.trajopt.locomotion.attempts import (
    FINISH,
    GAIT_OPTIONS,
    OPTIONS,
    Attempt,
    by_freedom,
    by_gait,
    whole_motion,
)
from drakebots.trajopt.locomotion.footfall import choose_gait
from drakebots.trajopt.locomotion.gait import gait_program, plan_gait
from drakebots.trajopt.locomotion.kinematic_guess import holding, kinematic_guess
from drakebots.trajopt.locomotion.problem import LocomotionProblem
from drakebots.trajopt.locomotion.program import (
    first_guess,
    input_limits,
    input_units,
    locomotion_program,
)
from drakebots.trajopt.locomotion.standing import Standing, stand
from drakebots.trajopt.locomotion.usable import faults
from drakebots.trajopt.program import Program
from drakebots.trajopt.solvers import SOLVERS, Solution, solve


@timed("load")
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
        verdict is FAILED, and its message names the worst rows; where one was found
        that a robot cannot use, the verdict is FAILED too and the message says why.

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
    run = partial(solve, solver=solver, progress=progress, checkpoint=checkpoint)
    attempts = []
    ours = solver == "exact"
    for tried in _by_gaits(problem, standing):
        if attempts and not _goes_on(attempts, clock):
            break
        attempt = by_gait(
            plan_gait(tried, standing),
            standing,
            run,
            clock,
            resume=resume,
            options=(GAIT_OPTIONS if ours else {}) | dict(options or {}),
        )
        attempts += [] if attempt is None else [of_use(attempt, tried, standing)]
    if not attempts or (problem.contacts is None and _goes_on(attempts, clock)):
        attempt = by_freedom(
            problem,
            standing,
            run,
            clock,
            resume=resume,
            options=(OPTIONS if ours else {}) | dict(options or {}),
            finish=FINISH if ours else {},
        )
        attempts.append(of_use(attempt, problem, standing))
    return result_of(problem, model, standing, attempts, solver=solver)


def result_of(
    problem: LocomotionProblem,
    model: Model,
    standing: Standing,
    attempts: Sequence[Attempt],
    *,
    solver: str,
) -> Result:
    """The result of a problem: its first attempt that succeeded, or its last one."""
    best = next((a for a in attempts if a.solution.ok), attempts[-1])
    implicit, solution = best.implicit, best.solution
    if solution.verdict is Verdict.FAILED:
        weak = _too_weak(problem, standing)
        solution = replace(solution, message=solution.message + weak)
    data = locomotion_data(implicit, solution, standing)
    stages = [_figures(stage) for attempt in attempts for stage in attempt.stages]
    return plan_result(
        implicit,
        solution,
        kind="locomotion.plan",
        metrics=_metrics(problem, standing, best, data) | {"stages": stages},
        options=_plain(problem, model) | {"solver": solver},
        data=data,
    )


def has_gait(problem: LocomotionProblem) -> bool:
    """Whether a motion by a gait is tried."""
    return problem.contacts != "free" and problem.phases != {}


def _by_gaits(
    problem: LocomotionProblem, standing: Standing
) -> list[LocomotionProblem]:
    """The problem with each gait that is tried for it, in turn."""
    if not has_gait(problem):
        return []
    if problem.kind == "hop":
        return [problem]
    first = choose_gait(problem, standing)
    gaits = [first]
    if problem.gait is None and first == "crawl":
        gaits.append("alternating")
    return [replace(problem, gait=gait) for gait in gaits]


def _goes_on(attempts: list[Attempt], clock: Clock) -> bool:
    """Whether there is reason and time for another attempt."""
    last = attempts[-1]
    return not (last.solution.ok or last.stopped) and (
        clock.left is None or clock.left > 0
    )


def _too_weak(problem: LocomotionProblem, standing: Standing) -> str:
    """Advice for motors too weak to hold the standing robot; "" if they can hold it.

    All feet share its weight.
    """
    nc = standing.system.num_feet
    u, _ = holding(standing, standing.q[None], np.full((1, nc), 1 / nc))
    limits = input_limits(problem, standing)
    excess = np.abs(u[0]) - limits
    worst = int(np.argmax(excess))
    if excess[worst] <= 0:
        return ""
    unit = input_units(standing)[worst]
    return (
        f"; standing takes {abs(u[0, worst]) * unit:.2g} N m (N) of "
        f"{standing.system.inputs_labels[worst]}, whose limit is "
        f"{limits[worst] * unit:.2g}: give --torque"
    )


def of_use(attempt: Attempt, problem: LocomotionProblem, standing: Standing):
    """The attempt, failed where a robot cannot use its motion."""
    solution = attempt.solution
    if not solution.ok:
        return attempt
    parts = solution.parts
    found = list(faults(problem, standing, parts, _slip(parts, 1.0)))
    if not found:
        return attempt
    message = f"solved, but {'; '.join(found)}"
    failed = replace(solution, verdict=Verdict.FAILED, message=message)
    return replace(attempt, solution=failed)


def first_iterate(problem: LocomotionProblem) -> Result:
    """The motion that the search starts from, as a result that failed.

    Raises:
        As :func:`plan_locomotion`.
    """
    model = problem.model if isinstance(problem.model, Model) else load(problem.model)
    standing = stand(model, terrain=problem.terrain, pose=problem.pose)
    if has_gait(problem):
        gait = plan_gait(problem, standing)
        _, program = gait_program(gait, standing)
        guess = _unsolved(program, program.pack(kinematic_guess(gait, standing)))
        implicit, solution = whole_motion(gait, standing, guess)
    else:
        implicit, program = locomotion_program(problem, standing)
        solution = _unsolved(program, first_guess(problem, standing, program))
    return plan_result(
        implicit,
        solution,
        kind="locomotion.plan",
        metrics={"motion": problem.kind},
        options=_plain(problem, model),
        data=locomotion_data(implicit, solution, standing),
    )


def _unsolved(program: Program, x: np.ndarray) -> Solution:
    return Solution(
        program,
        x,
        Verdict.INTERRUPTED,
        "the first guess; nothing is solved yet",
        program.residuals(x),
        {},
        {},
        "none",
        "not solved",
    )


def _figures(stage: PenaltyStage) -> dict[str, Any]:
    return {
        "slack_weight": stage.weight,
        "status": stage.status,
        "iterations": stage.iterations,
        "slack": stage.slack,
        "objective": stage.objective,
    }


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


def _metrics(problem, standing: Standing, attempt: Attempt, data) -> dict:
    """Metrics of a plan, in SI, and what the audit finds."""
    implicit, solution, gait = attempt.implicit, attempt.solution, attempt.gait
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
        "contacts": "free" if gait is None else "gait",
        "gait": None if gait is None else gait.fall.gait or None,
        "cycles": 1 if gait is None else gait.cycles,
        "steps_of_a_leg": None if gait is None else gait.cycles * gait.rounds,
        "posture": standing.source,
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
