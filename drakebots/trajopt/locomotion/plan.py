"""Plan the motion of any legged model, or open the program behind it.

    result = plan_locomotion(LocomotionProblem("my_robot.urdf", Walk(forward=0.2)))
    print(result.summary())

A motion by a gait comes first: its footfall is given, and what makes it of use to a
robot is stated as bounds. Where there is no such motion, contacts are free: the program
itself decides which foot touches when, starting from the standing pose alone.

The same motion as a MathematicalProgram (:mod:`~drakebots.trajopt.plan_program`):

    problem = LocomotionProblem("my_robot.urdf", Walk(forward=0.3))
    program = problem.mathematical_program()

It is the program that the planner solves first: by the motion's gait, with given
contacts, or contact-implicit with `contacts="free"`.
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
from drakebots.core.run import Progress, Verdict
from drakebots.core.stages import timed
from drakebots.formats import loaded
from drakebots.results import Result
from drakebots.trajopt.contact_implicit import (
    ContactImplicit,
    audit,
    open_program,
    plan_dataset,
    plan_result,
)
from drakebots.trajopt.locomotion.attempts import (
    GAIT_OPTIONS,
    OPTIONS,
    Attempt,
    attempt_of,
    by_freedom,
    by_gait,
    gait_attempt,
    slip_of,
)
from drakebots.trajopt.locomotion.gait import (
    Gait,
    gait_program,
    holding,
    kinematic_guess,
    plan_gait,
)
from drakebots.trajopt.locomotion.problem import LocomotionProblem, Targets, targets
from drakebots.trajopt.locomotion.program import (
    first_guess,
    input_limits,
    locomotion_program,
)
from drakebots.trajopt.locomotion.standing import Standing, stand
from drakebots.trajopt.plan_program import Add, PlanProgram
from drakebots.trajopt.program import Program, load_checkpoint
from drakebots.trajopt.solvers import (
    Clock,
    PenaltyStage,
    Solution,
    check_solver,
    planning,
)


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
    add: Add | None = None,
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
        add: adds terms of your own to every program that is solved, by gait or with
            free contacts; see :mod:`~drakebots.trajopt.plan_program`.

    Returns:
        A result of kind "locomotion.plan", in SI. Where no motion was found, or one
        that a robot cannot use, its verdict is FAILED and its message says why.

    Raises:
        UnknownName, ModelProblem, InvalidInput: for a model that cannot be loaded or a
            problem that cannot be built.
        FileProblem: for a file that is not a checkpoint, or of another program.
    """
    call = partial(planning, solver, add=add, options=options, checkpoint=checkpoint)
    check_solver(solver)
    clock = Clock(time_limit)
    problem, standing = _standing(problem)
    attempts: list[Attempt] = []
    for name in problem.gaits(standing):
        if attempts and not _goes_on(attempts, clock):
            break
        gait = plan_gait(problem, standing, name)
        opened = partial(_opened, problem, gait.aim, gait)
        show = _shown(progress, f"gait {gait.name}".rstrip(), attempts)
        attempt = by_gait(gait, call(opened, progress=show), clock, resume=resume)
        attempts += [] if attempt is None else [attempt]
    if not attempts and not problem.motion.can_be_free:
        load_checkpoint(resume, mathematical_program(problem).program)  # says whose
    free = problem.contacts is None and problem.motion.can_be_free
    if not attempts or (free and _goes_on(attempts, clock)):
        aim = targets(problem, standing)
        opened = partial(_opened, problem, aim, None)
        show = _shown(progress, "free contacts", attempts)
        solve = call(opened, progress=show)
        attempts.append(by_freedom(aim, solve, clock, resume=resume))
    return _result(problem, standing, attempts, solver=solver)


def _shown(
    progress: Progress | None, name: str, attempts: Sequence[Attempt]
) -> Progress | None:
    """Progress of an attempt by its name; first it says why the one before failed."""
    if progress is None:
        return None
    why = f", since before: {attempts[-1].solution.message}" if attempts else ""
    progress(f"building {name}{why}", 0.0, 0.0)
    return lambda said, done, end: progress(f"{name}, {said}", done, end)


def _result(
    problem: LocomotionProblem,
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
    data = _dataset(implicit, solution, standing)
    names = ("status", "iterations", "slack", "objective")
    stages = [
        {"slack_weight": stage.weight} | {name: getattr(stage, name) for name in names}
        for attempt in attempts
        for stage in attempt.stages
    ]
    metrics = _metrics(problem, standing, best, data) | {"stages": stages}
    options = as_yaml(problem) | {"solver": solver}
    told = {"metrics": metrics, "options": options, "data": data}
    return plan_result(implicit, solution, kind="locomotion.plan", **told)


def _goes_on(attempts: list[Attempt], clock: Clock) -> bool:
    """Whether there is reason and time for another attempt."""
    last = attempts[-1]
    timely = clock.left is None or clock.left > 0
    return timely and not (last.solution.ok or last.stopped)


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
    unit = standing.system.robot.input_units()[worst]
    return (
        f"; standing takes {abs(u[0, worst]) * unit:.2g} N m (N) of "
        f"{standing.system.inputs_labels[worst]}, whose limit is "
        f"{limits[worst] * unit:.2g}: give --torque"
    )


def first_iterate(problem: LocomotionProblem) -> Result:
    """The motion that the search starts from, as a result that failed.

    Raises:
        As :func:`plan_locomotion`.
    """
    program = mathematical_program(problem)
    message = "the first guess; nothing is solved yet"
    guess = Solution.of_point(program.program, program.guess, status="not solved")
    guess = replace(guess, verdict=Verdict.INTERRUPTED, message=message)
    return program.finish(guess)


def _standing(problem: LocomotionProblem) -> tuple[LocomotionProblem, Standing]:
    """A problem with its model loaded, and how that stands."""
    model = loaded(problem.model)
    standing = stand(model, terrain=problem.terrain, pose=problem.pose)
    return replace(problem, model=model), standing


def _dataset(
    implicit: ContactImplicit, solution: Solution, standing: Standing
) -> xr.Dataset:
    """A plan's dataset: inputs in SI, velocities zero where it starts at rest."""
    data = plan_dataset(implicit, solution)
    if implicit.periodic is None:
        # The first difference quotient is half a step later than the first knot.
        for name in ("velocity", "foot_velocity"):
            data[name] = data[name].where(data.time > data.time[0], 0.0)
    held = data.input.values * standing.system.robot.input_units()
    data["input"] = data.input.dims, held, {"units": "N m (N where the joint slides)"}
    return data


def _metrics(problem, standing: Standing, attempt: Attempt, data) -> dict:
    """Metrics of a plan, in SI, and what the audit finds."""
    implicit, solution, gait = attempt.implicit, attempt.solution, attempt.gait
    unit = standing.scaling
    feet = data.foot.values.tolist()
    force = data.foot_force.values[1:]
    loaded = (np.linalg.norm(force, axis=2) > 0.01 * unit.force).mean(axis=0)
    clearance = standing.clearances(data.foot_position.values)
    return {
        "motion": problem.motion.name,
        "motions": [
            {
                "motion": part.motion.name,
                "until_s": float(data.time.values[at.stop]),
                "moved": _lengths(standing, solution.parts["q"][[at.start, at.stop]]),
            }
            for at, part in (gait.aim.parts if gait is not None and gait.row else ())
        ],
        "contacts": "free" if gait is None else "gait",
        "gait": None if gait is None else gait.name or None,
        "cycles": 1 if gait is None else gait.cycles,
        "steps_of_a_leg": None if gait is None else gait.cycles * gait.rounds,
        "posture": standing.source,
        "periodic": implicit.periodic is not None,
        "friction": problem.friction,
        "duration_s": float(data.time.values[-1]),
        "moved": _lengths(standing, solution.parts["q"]),
        "duty_factor": dict(zip(feet, loaded.tolist())),
        "foot_clearance_m": dict(zip(feet, clearance.max(axis=0).tolist())),
        "apex_m": float(clearance.min(axis=1).max()),
        "unit_length_m": unit.length,
        "unit_mass_kg": unit.mass,
        "unit_time_s": unit.time,
        "slip_m": slip_of(solution.parts) * unit.length,
        **audit(implicit, solution.parts),
    }


def _lengths(standing: Standing, q: np.ndarray) -> dict[str, float]:
    """How far the base moves between the first and the last of some poses, by axis [m,
    rad]."""
    unit = standing.scaling.length
    moved = standing.moved(q).items()
    return {axis: by if axis == "yaw" else by * unit for axis, by in moved}


# --- the program behind a plan --------------------------------------------------


def mathematical_program(problem: LocomotionProblem) -> PlanProgram[Result]:
    """The first program that is tried for a problem, for Drake's solvers and ours.

    A walk's stride that takes several cycles is the program of one of them.

    Raises:
        As :func:`plan_locomotion`.
    """
    problem, standing = _standing(problem)
    for name in problem.gaits(standing):
        gait = plan_gait(problem, standing, name)
        _, program = gait_program(gait)
        guess = program.pack(kinematic_guess(gait))
        return _opened(problem, gait.aim, gait, program, guess)
    aim = targets(problem, standing)
    _, program = locomotion_program(aim)
    return _opened(problem, aim, None, program, first_guess(aim, program))


def _opened(
    problem: LocomotionProblem,
    aim: Targets,
    gait: Gait | None,
    program: Program,
    guess: np.ndarray,
) -> PlanProgram[Result]:
    """A program of a problem, by a gait or with free contacts, with its start."""

    def finish(solution: Solution) -> Result:
        if gait is not None:
            attempt = gait_attempt(gait, solution)
        else:
            implicit, _ = locomotion_program(aim)
            stage = PenaltyStage.of(problem.weights.slack[0], solution)
            attempt = attempt_of(aim, implicit, solution, (stage,))
        return _result(problem, aim.standing, [attempt], solver=solution.solver)

    options = OPTIONS if gait is None else GAIT_OPTIONS
    return open_program(aim.standing.system, program, guess, finish, options)
