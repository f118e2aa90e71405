"""Two ways to solve a locomotion problem: by a gait, and with free contacts.

By a gait the footfall is given, and one program is solved from a kinematic guess. With
free contacts the search starts from the standing pose alone and the program decides
which foot touches when; it is solved with increasing weights of the penalty on the
complementarity slack until the contacts are hard (Manchester et al., IJRR 2019).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np

from drakebots.core.run import Verdict
from drakebots.trajopt.contact_implicit import (
    Clock,
    ContactImplicit,
    PenaltyContinuation,
    PenaltyStage,
    Rung,
    audit,
    solve_penalty_continuation,
    start_from,
    with_free_contacts,
)
from drakebots.trajopt.locomotion.gait import Gait, gait_program
from drakebots.trajopt.locomotion.kinematic_guess import kinematic_guess
from drakebots.trajopt.locomotion.problem import LocomotionProblem
from drakebots.trajopt.locomotion.program import first_guess, locomotion_program
from drakebots.trajopt.locomotion.standing import Standing
from drakebots.trajopt.program import belongs, load_checkpoint
from drakebots.trajopt.solvers import Solution

HARD = 1e-6
"""Largest slack of a plan whose contacts count as hard [m g l]."""

GAIT_OPTIONS = {"tol": 1e-4, "acceptable_tol": 1e-2, "max_iter": 200}
"""Options of IPOPT for a gait."""

OPTIONS = {"tol": 1e-4, "acceptable_tol": 1e-2, "max_iter": 500}
"""Options of IPOPT for the first stage with free contacts."""

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

Solve = Callable[..., Solution]
"""(program, x, options=..., time_limit=...) -> solution."""


@dataclass(frozen=True)
class Attempt:
    """The outcome of one way of solving.

    Attributes:
        implicit: the contact-implicit problem of the whole motion.
        solution: its solution, judged.
        stages: the programs that were solved.
        gait: the gait; None with free contacts.
    """

    implicit: ContactImplicit
    solution: Solution
    stages: tuple[PenaltyStage, ...]
    gait: Gait | None = None

    @property
    def stopped(self) -> bool:
        """Whether the user or the time limit stopped it."""
        return self.solution.verdict in (Verdict.INTERRUPTED, Verdict.TIME_LIMIT)


def by_gait(
    gait: Gait,
    standing: Standing,
    solve: Solve,
    clock: Clock,
    *,
    resume: str | Path | None = None,
    options: Mapping[str, Any],
) -> Attempt | None:
    """Solves by a gait; None for a checkpoint that is not one of this gait."""
    _, program = gait_program(gait, standing)
    if resume is None:
        x = program.pack(kinematic_guess(gait, standing))
    elif belongs(resume, program):
        x = load_checkpoint(resume, program)
    else:
        return None
    left = clock.check_left()
    solution = solve(program, x, options=options, time_limit=left)
    return gait_attempt(gait, standing, solution)


def gait_attempt(gait: Gait, standing: Standing, solution: Solution) -> Attempt:
    """The attempt that a solution of a gait's program is."""
    implicit, whole = whole_motion(gait, standing, solution)
    stage = PenaltyStage(
        0.0,
        solution.ok,
        solution.status,
        solution.iterations,
        float(whole.parts["s"].max()),
        solution.objective,
    )
    return Attempt(implicit, judged(implicit, whole), (stage,), gait)


def whole_motion(
    gait: Gait, standing: Standing, solution: Solution
) -> tuple[ContactImplicit, Solution]:
    """A gait's solution as one of the contact-implicit program of all its cycles."""
    aim, n = gait.aim, gait.cycles
    problem = gait.problem
    if problem.kind == "walk":
        forward = n * aim.forward * standing.scaling.length
        knots = n * (problem.knots - 1) + 1
        duration = None if problem.duration is None else n * problem.duration
        problem = replace(
            problem,
            forward=forward,
            knots=knots,
            duration=duration,
            height=None,
            clearance=None,
        )
    low, high = aim.duration
    total = replace(aim, forward=n * aim.forward, duration=(n * low, n * high))
    implicit, program = locomotion_program(problem, standing, aim=total)
    parts = _repeated(solution.parts, n)
    x = with_free_contacts(standing.system, implicit.friction, parts, program)
    residuals = program.residuals(x) if solution.ok else solution.residuals
    return implicit, replace(
        solution,
        program=program,
        x=x,
        residuals=MappingProxyType(dict(residuals)),
        multipliers=None,
    )


def _repeated(parts: Mapping[str, np.ndarray], count: int) -> dict[str, np.ndarray]:
    """n cycles of a periodic motion, each where the one before ended."""
    q = parts["q"]
    ahead = q[-1] - q[0]
    cycles = [q[:-1] + n * ahead for n in range(count)]
    tiled = {name: np.tile(part, (count, 1)) for name, part in parts.items()}
    last = q[-1:] + (count - 1) * ahead
    return tiled | {"v0": parts["v0"], "q": np.vstack([*cycles, last])}


def by_freedom(
    problem: LocomotionProblem,
    standing: Standing,
    solve: Solve,
    clock: Clock,
    *,
    resume: str | Path | None = None,
    options: Mapping[str, Any],
    finish: Mapping[str, Any],
) -> Attempt:
    """Solves with free contacts.

    Raises:
        FileProblem: for a file that is not a checkpoint, or of another program.
    """
    continuation = solve_penalty_continuation(
        lambda weight: locomotion_program(problem, standing, slack_weight=weight),
        problem.weights.slack,
        start_from(resume, lambda program: first_guess(problem, standing, program)),
        solve,
        options=lambda program, x, later: dict(options) | (finish if later else {}),
        done=_settled,
        clock=clock,
        rung=Rung.of(resume),
    )
    implicit = continuation.problem
    solution = _finished(continuation)
    return Attempt(implicit, solution, continuation.stages)


def _settled(stages: Sequence[PenaltyStage]) -> bool:
    last = stages[-1]
    # The penalty is exact: once the slack is zero, larger weights change nothing.
    # Nor do they help rows that cannot be satisfied.
    hopeless = len(stages) > 1 and not (last.ok or stages[-2].ok)
    return (last.ok and last.slack <= HARD) or hopeless


def _finished(continuation: PenaltyContinuation) -> Solution:
    if continuation.missed is not None:
        return continuation.out_of_time()
    return judged(continuation.problem, continuation.solution)


def judged(implicit: ContactImplicit, solution: Solution) -> Solution:
    """The solution; soft contacts count as failed, failures name their worst rows."""
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
            "try larger slack weights, phases, more time or a nearer goal",
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
