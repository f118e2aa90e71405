"""A ladder of programs: each is easier than the next and starts it.

A program with hard complementarity or a terrain with edges seldom solves from
a crude guess, but it does from the optimum of a neighbour: rounder ground, a
cost that keeps away from the trouble, a softer tolerance. A ladder is a
sequence of programs over the same variables that leads to the problem:

    x_1 = argmin P_1 from x_0,   x_2 = argmin P_2 from x_1,   ...

Whatever was met on the way and satisfies the problem is kept, so that a last
rung that fails falls back on an earlier one.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np

from drakebots.core.errors import InvalidInput
from drakebots.trajopt.program import Assembled, Program, assemble
from drakebots.trajopt.solvers.ipopt_exact import Iteration, Monitor, Raw, solve_exact

# The best x met so far for a program, while solvers work on it or near it.

Accept = Callable[[np.ndarray], bool]
"""Whether an x that satisfies the problem counts as an answer."""


class Incumbent:
    """The answer of lowest objective, or the least violation without answers.

    Attributes:
        x: None before the first offer.
        source: who offered it.
        feasible: whether x is an answer.
        objective: of the program at x.
        violation: largest residual at x.
    """

    def __init__(self, program: Program, tolerance: float, accept: Accept | None):
        self.program, self.tolerance, self.accept = program, tolerance, accept
        self.x, self.source = None, ""
        self.feasible, self.objective, self.violation = False, np.inf, np.inf

    def offer_iterate(self, iteration: Iteration, label: str) -> None:
        """Looks closer at what the solver finds nearly feasible."""
        # Scales are of order one: ten tolerances leave room for them.
        if iteration.infeasibility > 10 * self.tolerance:
            return
        # An objective is cheaper than residuals and a verdict.
        if self.feasible and self.program.objective(iteration.x) >= self.objective:
            return
        self.offer(iteration.x, label)

    def offer(self, x: np.ndarray, label: str) -> bool:
        """Takes x if it is better; says whether it is an answer."""
        if not np.isfinite(x).all():
            return False
        violation = worst_residual(self.program, x)[1]
        feasible = violation <= self.tolerance and (
            self.accept is None or bool(self.accept(x))
        )
        objective = self.program.objective(x)
        if self._beats(feasible, objective, violation):
            self.x, self.source = np.array(x), label
            self.feasible, self.objective = feasible, objective
            self.violation = violation
        return feasible

    def _beats(self, feasible: bool, objective: float, violation: float) -> bool:
        if feasible != self.feasible or self.x is None:
            return feasible or self.x is None
        if feasible:
            return objective < self.objective
        return violation < self.violation


def worst_residual(program: Program, x: np.ndarray) -> tuple[str, float]:
    """Name and value."""
    return next(iter(program.residuals(x).items()), ("none", 0.0))


ASTRAY = 1e-2
"""Largest violation of a row, scaled units, from which a next rung starts; a
rung that ends with more hands over its least infeasible iterate."""

TIME_LIMIT, INTERRUPTED = "Time_Limit", "Interrupted"
"""Statuses of a rung that ended early."""


@dataclass(frozen=True)
class Rung:
    """One program of a ladder and how to solve it.

    A rung keeps its program's functions: use the same rung for many starts.

    Attributes:
        program: to solve.
        options: IPOPT's, over those of `solve_exact`.
        max_iterations: after which the next rung takes over.
        label: for tables.
        same_rows: whether what satisfies this program satisfies the problem,
            as when they differ in the objective alone: then all iterates are
            candidates for the answer, else only where the rung ends.
        spare: skipped once there is an answer.
    """

    program: Program
    options: Mapping[str, Any] = field(default_factory=dict)
    max_iterations: int = 3000
    label: str = ""
    same_rows: bool = False
    spare: bool = False

    def __post_init__(self):
        if self.max_iterations < 1:
            raise InvalidInput(
                f"rung {self.label}: max_iterations must be >= 1, got "
                f"{self.max_iterations}"
            )

    @cached_property
    def _functions(self) -> dict[int, Assembled]:
        return {}

    def assembled(self, threads: int) -> Assembled:
        """The program's functions, made once."""
        if threads not in self._functions:
            self._functions[threads] = assemble(self.program, threads=threads)
        return self._functions[threads]


@dataclass(frozen=True)
class RungReport:
    """How a rung went.

    Attributes:
        label: of the rung.
        status: the solver's word, TIME_LIMIT or INTERRUPTED.
        iterations: of the solver.
        seconds: wall time without assembling functions.
        objective: of the rung's program where it ended.
        worst: the largest residual of the rung's program there, with its name.
        feasible: whether the end satisfies the problem, and `accept`.
    """

    label: str
    status: str
    iterations: int
    seconds: float
    objective: float
    worst: tuple[str, float]
    feasible: bool

    def __str__(self) -> str:
        name, value = self.worst
        return (
            f"{self.label:<12} {self.status:<28} {self.iterations:>5} it "
            f"{self.seconds:7.2f} s  objective {self.objective:<10.6g} "
            f"{value:.1e} {name}" + ("  *" if self.feasible else "")
        )


@dataclass(frozen=True)
class Climb:
    """Where a ladder led.

    Attributes:
        x: the answer: the accepted x of lowest objective, or where nothing was
            accepted the x that violates the problem least.
        feasible: whether x satisfies the problem, and `accept`.
        objective: of the problem at x.
        worst: the largest residual of the problem at x, with its name.
        source: label of the rung x comes from.
        final: what the last rung that ran left behind; None if none ran.
        rungs: how each went.
        seconds: wall time of all, without assembling functions.
    """

    x: np.ndarray = field(repr=False)
    feasible: bool
    objective: float
    worst: tuple[str, float]
    source: str
    final: Raw | None = field(repr=False)
    rungs: tuple[RungReport, ...]
    seconds: float

    @property
    def interrupted(self) -> bool:
        """Whether Ctrl-C ended it."""
        return bool(self.rungs) and self.rungs[-1].status == INTERRUPTED

    def __str__(self) -> str:
        end = "feasible" if self.feasible else "NOT feasible"
        return "\n".join(
            [
                *map(str, self.rungs),
                f"{end}, objective {self.objective:.6g} from {self.source}, "
                f"{self.seconds:.1f} s",
            ]
        )


def climb(
    rungs: Sequence[Rung],
    x0: np.ndarray,
    *,
    problem: Program | None = None,
    tolerance: float = 1e-6,
    accept: Accept | None = None,
    monitor: Monitor | None = None,
    time_limit: float | None = None,
    threads: int = 1,
) -> Climb:
    """Solves the programs of a ladder one after the other.

    Each rung starts where the one before it ended, or at its least infeasible
    iterate if it went astray (:data:`ASTRAY`).

    Args:
        rungs: in the order to solve them.
        x0: the initial guess, physical units.
        problem: that judges the answer; None for the last rung's program. The
            rungs need not hold it: a penalty may be heavier on all of them.
        tolerance: largest residual of an answer, physical units.
        accept: judges an answer beyond its residuals, in physical units.
        monitor: called at every iteration of every rung; True ends the climb.
        time_limit: [s], checked at every iteration; assembling does not count.
        threads: for the derivatives.

    Raises:
        InvalidInput: for no rungs, rungs over different variables, or a guess
            of the wrong length or not finite.
    """
    _check(rungs, x0, problem)
    target = rungs[-1].program if problem is None else problem
    keeper = Incumbent(target, tolerance, accept)
    x, spent, reports, raw = np.array(x0, float).ravel(), 0.0, [], None
    keeper.offer(x, "guess")
    for rung in rungs:
        if rung.spare and keeper.feasible:
            continue
        functions = rung.assembled(threads)
        left = None if time_limit is None else time_limit - spent
        if left is not None and left <= 0 and raw is not None:
            break
        began = time.perf_counter()
        watch = _Watch(
            monitor,
            None if left is None else began + left,
            (keeper, rung.label) if rung.same_rows else None,
        )
        raw = solve_exact(
            rung.program,
            x,
            options={**rung.options, "max_iter": rung.max_iterations},
            monitor=watch,
            assembled=functions,
            threads=threads,
        )
        x = watch.next_start(raw, rung.program)
        feasible = keeper.offer(raw.x, rung.label)
        status = watch.status(raw)
        seconds = time.perf_counter() - began
        spent += seconds
        reports.append(
            RungReport(
                rung.label,
                status,
                watch.count,
                seconds,
                rung.program.objective(raw.x),
                worst_residual(rung.program, raw.x),
                feasible,
            )
        )
        if watch.stopped or status == INTERRUPTED:
            break
    return Climb(
        keeper.x,
        keeper.feasible,
        keeper.objective,
        worst_residual(target, keeper.x),
        keeper.source,
        raw,
        tuple(reports),
        spent,
    )


class _Watch:
    """The monitor of one rung: time, the caller's wish, the best iterates."""

    def __init__(self, monitor, deadline, keep):
        self.monitor, self.deadline, self.keep = monitor, deadline, keep
        self.stopped = self.out_of_time = False
        self.count = -1  # the starting point is no iteration
        self.least, self.last, self.x = np.inf, np.inf, None

    def __call__(self, iteration: Iteration) -> bool:
        self.count += 1
        self.last = iteration.infeasibility
        # The starting point is where the rung before ended: no progress.
        if self.count and iteration.infeasibility < self.least:
            self.least, self.x = iteration.infeasibility, iteration.x
        if self.keep is not None:
            keeper, label = self.keep
            keeper.offer_iterate(iteration, label)
        if self.monitor is not None and self.monitor(iteration):
            self.stopped = True
        if self.deadline is not None and time.perf_counter() > self.deadline:
            self.stopped = self.out_of_time = True
        return self.stopped

    def status(self, raw: Raw) -> str:
        if self.out_of_time:
            return TIME_LIMIT
        # Nobody here asked the solver to stop: the user did.
        stopped = raw.status in ("interrupted", "User_Requested_Stop")
        return INTERRUPTED if stopped and not self.stopped else raw.status

    def next_start(self, raw: Raw, program: Program) -> np.ndarray:
        x = raw.x
        # `not <=`: a solver that broke down leaves NaN behind.
        if not self.last <= ASTRAY or not np.isfinite(x).all():
            x = x if self.x is None else self.x
        return np.clip(np.nan_to_num(x), program.x_lower, program.x_upper)


def _check(rungs: Sequence[Rung], x0: np.ndarray, problem: Program | None) -> None:
    if not rungs:
        raise InvalidInput("a ladder needs one rung or more")
    target = rungs[-1].program if problem is None else problem
    shape = _shape(target)
    for rung in rungs:
        if _shape(rung.program) != shape:
            raise InvalidInput(
                f"rung {rung.label}: its variables differ from the problem's; use the "
                "same groups in the same order"
            )
    x0 = np.asarray(x0, float).ravel()
    if x0.shape != (target.num_variables,) or not np.isfinite(x0).all():
        raise InvalidInput(
            f"the initial guess must be {target.num_variables} finite numbers, got "
            f"{x0.size}, {np.isfinite(x0).sum()} of them finite"
        )


def _shape(program: Program) -> list[tuple]:
    return [(name, g.shape) for name, g in program.variables.items()]
