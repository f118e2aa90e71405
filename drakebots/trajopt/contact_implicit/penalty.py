"""A program solved with an exact penalty that grows heavier.

Complementarity is relaxed by slacks s >= 0 that the objective pays for,

    x_i = argmin f(x) + w_i sum s, from x_i-1,      w_1 < w_2 < ...

The penalty is exact: from some weight on the slacks are at their bound and
heavier ones change nothing. A heavy one alone seldom solves from a crude guess.

What a rung has reached is judged by the caller, who knows how hard contact
must be; :mod:`drakebots.trajopt.solvers.ladder` climbs programs of any kind instead and
keeps the best answer.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from drakebots.core.errors import InvalidInput
from drakebots.core.run import Verdict
from drakebots.trajopt.contact_implicit.program import ContactImplicit
from drakebots.trajopt.program import Program, load_checkpoint
from drakebots.trajopt.solvers import Solution

Start = Callable[[Program], np.ndarray]
"""The x to start a program from."""


class Clock:
    """Wall time from now on: what is left of it, and what it was spent on [s].

    Args:
        time_limit: of all; None for none.

    Raises:
        InvalidInput: for a limit that is not > 0.
    """

    def __init__(self, time_limit: float | None = None):
        if time_limit is not None and not time_limit > 0:
            raise InvalidInput(f"time limit must be > 0 s, got {time_limit}")
        self.time_limit, self._began = time_limit, time.perf_counter()
        self._spent: dict[str, float] = {}

    @property
    def elapsed(self) -> float:
        """Since the beginning."""
        return time.perf_counter() - self._began

    @property
    def left(self) -> float | None:
        """Of the limit; None for no limit."""
        return None if self.time_limit is None else self.time_limit - self.elapsed

    def add(self, seconds: Mapping[str, float]) -> None:
        """Adds what something cost by name, but its own total."""
        for name, value in seconds.items():
            if name != "total":
                self._spent[name] = self._spent.get(name, 0.0) + value

    def timings(self) -> dict[str, float]:
        """What was added so far, and the total."""
        return {**self._spent, "total": self.elapsed}


@dataclass(frozen=True)
class PenaltyRung:
    """How the program went with one weight.

    Attributes:
        weight: of the slack.
        ok: whether it succeeded.
        status: the solver's own word.
        iterations: of the solver.
        slack: the largest one where it ended.
        objective: there, penalty included.
    """

    weight: float
    ok: bool
    status: str
    iterations: int
    slack: float
    objective: float


@dataclass(frozen=True)
class PenaltyClimb:
    """Where the weights led.

    Attributes:
        problem: of the last weight that was solved.
        solution: its solution.
        rungs: how each weight went.
        missed: the weight there was no time left for, else None.
    """

    problem: ContactImplicit
    solution: Solution = field(repr=False)
    rungs: tuple[PenaltyRung, ...]
    missed: float | None = None

    def out_of_time(self) -> Solution:
        """The solution of a climb that missed a weight, saying so."""
        return replace(
            self.solution,
            verdict=Verdict.TIME_LIMIT,
            message=f"stopped at the time limit before slack weight {self.missed:g}; "
            "raise the limit to make contacts hard",
        )


def start_from(resume: str | Path | None, otherwise: Start) -> Start:
    """Starts from a checkpoint where there is one to resume.

    Raises:
        FileProblem: when called, for a checkpoint that is none or of another
            program.
    """
    if resume is None:
        return otherwise
    return lambda program: load_checkpoint(resume, program)


def climb_penalty(
    build: Callable[[float], tuple[ContactImplicit, Program]],
    weights: Sequence[float],
    start: Start,
    solver: Callable[..., Solution],
    *,
    options: Callable[[Program, np.ndarray, bool], Mapping[str, Any]],
    done: Callable[[Sequence[PenaltyRung]], bool],
    clock: Clock,
) -> PenaltyClimb:
    """Solves with one weight after the other, each from the last one's answer.

    It ends after the last weight, where the user or the clock stopped the
    solver, or where `done` says so.

    Args:
        build: the problem and its program for a weight.
        weights: in the order to try them.
        start: of the first program.
        solver: :func:`drakebots.trajopt.solvers.solve.solve` with what all rungs share;
            it is called with program, x, `options` and `time_limit`.
        options: the solver's for a program, where it starts, and whether that
            is the answer of a rung before.
        done: judges the rungs so far; True ends the climb.
        clock: limits all, and is told what the solver cost.

    Raises:
        InvalidInput: when the time is over before the first solve.
    """
    problem = solution = None
    rungs: list[PenaltyRung] = []
    for weight in weights:
        heavier, program = build(weight)
        x = start(program) if solution is None else solution.x
        left = clock.left
        if left is not None and left <= 0:
            if solution is None:
                raise InvalidInput(
                    f"the time limit of {clock.time_limit:g} s was over before the "
                    "solver began; give it more"
                )
            return PenaltyClimb(problem, solution, tuple(rungs), missed=weight)
        chosen = options(program, x, solution is not None)
        problem = heavier
        solution = solver(program, x, options=chosen, time_limit=left)
        clock.add(solution.seconds)
        rungs.append(_rung(weight, solution))
        if solution.verdict in (Verdict.INTERRUPTED, Verdict.TIME_LIMIT):
            break
        if done(rungs):
            break
    return PenaltyClimb(problem, solution, tuple(rungs))


def _rung(weight: float, solution: Solution) -> PenaltyRung:
    return PenaltyRung(
        weight,
        solution.ok,
        solution.status,
        solution.iterations,
        float(solution.parts["s"].max()),
        solution.objective,
    )
