"""Complementarity made hard by an exact penalty whose weight grows.

Complementarity is relaxed by slacks s >= 0, which the objective penalises,

    x_i = argmin f(x) + w_i sum s, starting from x_i-1,      w_1 < w_2 < ...

The penalty is exact: above some weight the slacks are at their lower bound, and a
larger weight changes nothing. A large weight alone seldom converges from a crude
guess.

The caller decides after each weight whether complementarity is hard enough.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from drakebots.core.checks import check_value, optional, positive
from drakebots.core.errors import InvalidInput
from drakebots.core.run import Verdict, ended_by
from drakebots.trajopt.program import Program, load_checkpoint, read_arrays
from drakebots.trajopt.solvers.solve import Solution

Start = Callable[[Program], np.ndarray]
"""Function from a program to the x that its solver starts from."""


class Clock:
    """Wall time since its creation, and what is left [s].

    Args:
        time_limit: limit of the wall time [s]; None for no limit.

    Raises:
        InvalidInput: for a limit that is not > 0.
    """

    def __init__(self, time_limit: float | None = None):
        check_value("time limit", time_limit, optional(positive("s")))
        self.time_limit, self._began = time_limit, time.perf_counter()

    @property
    def elapsed(self) -> float:
        """Wall time since the beginning [s]."""
        return time.perf_counter() - self._began

    @property
    def left(self) -> float | None:
        """Remaining wall time [s]; None for no limit."""
        return None if self.time_limit is None else self.time_limit - self.elapsed

    def check_left(self) -> float | None:
        """Remaining wall time [s] for a first solve; None for no limit.

        Raises:
            InvalidInput: when none is left.
        """
        left = self.left
        if left is not None and left <= 0:
            raise InvalidInput(
                f"the time limit of {self.time_limit:g} s was over before the solver "
                "began; give it more"
            )
        return left


def near(mu: float, push: float) -> dict[str, Any]:
    """Options of IPOPT for a start near an answer.

    Args:
        mu: first barrier parameter.
        push: share of their range that variables and slacks are kept from bounds.
    """
    pushes = ("bound_push", "bound_frac", "slack_bound_push", "slack_bound_frac")
    return {"mu_strategy": "monotone", "mu_init": mu} | dict.fromkeys(pushes, push)


@dataclass(frozen=True)
class PenaltyStage:
    """The outcome of the program with one weight.

    Attributes:
        weight: weight of the slack.
        ok: whether the solver succeeded.
        status: status reported by the solver.
        iterations: number of iterations of the solver.
        slack: largest slack of the solution.
        objective: objective of the solution, penalty included.
    """

    weight: float
    ok: bool
    status: str
    iterations: int
    slack: float
    objective: float

    @classmethod
    def of(
        cls, weight: float, solution: Solution, slack: float | None = None
    ) -> PenaltyStage:
        """The outcome that a solution is; its own largest slack where none is given."""
        most = float(solution.parts["s"].max()) if slack is None else slack
        ok, status, done = solution.ok, solution.status, solution.iterations
        return cls(weight, ok, status, done, most, solution.objective)


@dataclass(frozen=True)
class PenaltyContinuation:
    """The outcome of a sequence of weights.

    Attributes:
        problem: result of `build` beside the last program that was solved.
        solution: its solution.
        stages: the outcome with each weight.
        missed: the weight that there was no time left for, else None.
    """

    problem: Any
    solution: Solution = field(repr=False)
    stages: tuple[PenaltyStage, ...]
    missed: float | None = None

    def out_of_time(self) -> Solution:
        """The solution, marked as stopped by the time limit before a weight."""
        return replace(
            self.solution,
            verdict=Verdict.TIME_LIMIT,
            message=f"stopped at the time limit before slack weight {self.missed:g}; "
            "raise the limit to make contacts hard",
        )


LONG = 60.0
"""Time of a solver [s] beyond which resuming keeps its best iterate; see `Rung`."""


@dataclass(frozen=True)
class Rung:
    """State of a continuation when its checkpoint was written.

    Attributes:
        weight: weight of the slack that was being solved with.
        start: x that its solver started from.
        stages: the outcomes with the weights before.
        seconds: time that the solver had run with this weight [s].
    """

    weight: float
    start: np.ndarray = field(repr=False)
    stages: tuple[PenaltyStage, ...] = ()
    seconds: float = 0.0

    @property
    def repeated(self) -> bool:
        """Whether resuming solves this weight again from its start.

        That gives the same bits as a run without a break. The first weight takes most
        of the time, so after LONG it goes on from its best iterate instead, which may
        lead to another optimum.
        """
        return bool(self.stages) or self.seconds < LONG

    def kept(self) -> dict[str, np.ndarray | str]:
        """Contents of a checkpoint, by name."""
        stages = [asdict(stage) for stage in self.stages]
        facts = {"weight": self.weight, "stages": stages}
        return {"start": self.start, "rung": json.dumps(facts)}

    @classmethod
    def of(cls, resume: object) -> Rung | None:
        """The rung in a checkpoint; None if it has none, or `resume` is no file.

        Raises:
            FileProblem: for a file that is missing, damaged or not a checkpoint.
        """
        if not isinstance(resume, str | Path):
            return None
        arrays = read_arrays(resume)
        try:
            facts = json.loads(str(arrays["rung"]))
            stages = tuple(PenaltyStage(**stage) for stage in facts.pop("stages"))
            seconds = float(arrays["seconds"])
            return cls(start=arrays["start"], stages=stages, seconds=seconds, **facts)
        except (KeyError, TypeError, ValueError):
            return None


def start_from(resume: str | Path | None, otherwise: Start) -> Start:
    """The start at a checkpoint if there is one to resume, or else `otherwise`.

    Raises:
        FileProblem: when the start is called, for a file that is not a checkpoint
            or belongs to another program.
    """
    if resume is None:
        return otherwise
    return lambda program: load_checkpoint(resume, program)


def solve_penalty_continuation(
    build: Callable[[float], tuple[Any, Program]],
    weights: Sequence[float],
    start: Start,
    solver: Callable[..., Solution],
    *,
    options: Callable[[Program, np.ndarray, bool], Mapping[str, Any]],
    done: Callable[[Sequence[PenaltyStage]], bool],
    clock: Clock,
    rung: Rung | None = None,
) -> PenaltyContinuation:
    """Solves with one weight after the other, each from the previous solution.

    It ends after the last weight, when the user or the time limit stops the
    solver, or when `done` returns True.

    Args:
        build: function from a weight to the problem and its program, whose slacks are
            the variables "s".
        weights: the weights, in the order to use them.
        start: gives the first guess of the first program.
        solver: :func:`.solve.solve` with the arguments that all stages share; it is
            called with program, x, `options`, `time_limit` and what to `keep`.
        options: gives the solver's options from a program, its start, and whether an
            earlier stage was solved.
        done: called with all stages so far; True ends the continuation.
        clock: limits the wall time and collects what the solver spent.
        rung: state to go on from; weights before its own are left out.

    Raises:
        InvalidInput: if the time limit is over before the first solve.
    """
    problem = solution = missed = None
    weights, stages, again = _left(weights, rung)
    try:
        for weight in weights:
            heavier, program = build(weight)
            if solution is None:
                x = start(program)  # which refuses checkpoints of other programs
                x, left = x if again is None else again, clock.check_left()
            else:
                x, left = solution.x, clock.left
            if left is not None and left <= 0:
                missed = weight
                break
            chosen = options(program, x, bool(stages))
            kept = Rung(weight, x, tuple(stages)).kept()
            solved = solver(program, x, options=chosen, time_limit=left, keep=kept)
            problem, solution = heavier, solved
            stages.append(PenaltyStage.of(weight, solution))
            stopped = solution.verdict in (Verdict.INTERRUPTED, Verdict.TIME_LIMIT)
            if stopped or done(stages):
                break
    except KeyboardInterrupt as error:
        if solution is None:
            raise
        verdict, message = ended_by(error)
        solution = replace(solution, verdict=verdict, message=message)
    return PenaltyContinuation(problem, solution, tuple(stages), missed)


def _left(
    weights: Sequence[float], rung: Rung | None
) -> tuple[Sequence[float], list[PenaltyStage], np.ndarray | None]:
    """The weights that are left, the outcomes before them, and the x to start from
    again, from the state of a continuation."""
    if rung is None or rung.weight not in weights:
        return weights, [], None
    left = weights[list(weights).index(rung.weight) :]
    return left, list(rung.stages), rung.start if rung.repeated else None
