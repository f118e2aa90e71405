"""Continuation: a sequence of programs, each easier than the next and its start.

A program with hard complementarity, or on a terrain with edges, seldom converges
from a crude guess, but it does from the optimum of a neighbour: rounder ground, a
cost that keeps away from the difficulty, a softer tolerance. The programs of a
continuation have the same variables and lead to the problem:

    x_1 = argmin P_1 from x_0,   x_2 = argmin P_2 from x_1,   ...

Every iterate that satisfies the problem is a candidate for the answer, so that a
last stage that fails falls back on an earlier one. :func:`multi_start` repeats a
continuation from several starting points, in parallel if requested.

A library of littledog_stepup.py, without a command.
"""

from __future__ import annotations

import logging
import multiprocessing
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import dataclass, field
from functools import cached_property
from typing import Annotated, Any

import numpy as np

from drakebots.core.checks import whole
from drakebots.core.errors import InvalidInput
from drakebots.core.fields import checked
from drakebots.trajopt.program import Assembled, Program, assemble
from drakebots.trajopt.solvers import Raw, solve_exact
from drakebots.trajopt.solvers.ipopt_exact import Iteration, Monitor

LOG = logging.getLogger("drakebots")

Accept = Callable[[np.ndarray], bool]
"""Whether an x that satisfies the problem counts as an answer."""

DIVERGED = 1e-2
"""Largest row violation (scaled) of an iterate that the next stage starts from; a
stage that ends with a larger one passes on its least infeasible iterate."""

TIME_LIMIT, INTERRUPTED = "Time_Limit", "Interrupted"
"""Statuses of a stage that ended early."""


@checked("stage {label}")
class Stage:
    """One program of a continuation and how to solve it.

    A stage keeps its program's functions: use the same object for many starts.
    """

    program: Program
    """The program to solve."""
    options: Mapping[str, Any] = field(default_factory=dict)
    """Options of IPOPT, which override those of `solve_exact`."""
    max_iterations: Annotated[int, whole(1)] = 3000
    """Number of iterations after which the next stage follows."""
    label: str = ""
    """Name of the stage in tables."""
    same_rows: bool = False
    """Whether what satisfies this program satisfies the problem, as when they differ in
    the objective alone: then all iterates are candidates for the answer, else only the
    last one."""
    spare: bool = False
    """Whether the stage is skipped once there is an answer."""

    @cached_property
    def assembled(self) -> Assembled:
        """The program's functions, made once."""
        return assemble(self.program)


@dataclass(frozen=True)
class StageReport:
    """Report of a stage.

    Attributes:
        label: name of the stage.
        status: the solver's status, TIME_LIMIT or INTERRUPTED.
        iterations: number of iterations of the solver.
        seconds: wall time without assembling functions [s].
        objective: objective of the stage's program at its last iterate.
        worst: name and value of the largest residual of that program there.
        feasible: whether the last iterate is an answer to the problem.
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
class Continuation:
    """Outcome of a continuation.

    Attributes:
        x: the answer: the accepted x of lowest objective or, where nothing was
            accepted, the x that violates the problem least.
        feasible: whether x satisfies the problem, and `accept`.
        objective: objective of the problem at x.
        worst: name and value of the largest residual of the problem at x.
        source: label of the stage that found x.
        final: the solver's output of the last stage that ran; None if none ran.
        stages: how each stage went.
        seconds: wall time of all stages, without assembling functions [s].
    """

    x: np.ndarray = field(repr=False)
    feasible: bool
    objective: float
    worst: tuple[str, float]
    source: str
    final: Raw | None = field(repr=False)
    stages: tuple[StageReport, ...]
    seconds: float

    @property
    def interrupted(self) -> bool:
        """Whether Ctrl-C ended it."""
        return bool(self.stages) and self.stages[-1].status == INTERRUPTED

    def __str__(self) -> str:
        end = "feasible" if self.feasible else "NOT feasible"
        return "\n".join(
            [
                *map(str, self.stages),
                f"{end}, objective {self.objective:.6g} from {self.source}, "
                f"{self.seconds:.1f} s",
            ]
        )


def solve_continuation(
    stages: Sequence[Stage],
    x0: np.ndarray,
    *,
    problem: Program | None = None,
    tolerance: float = 1e-6,
    accept: Accept | None = None,
    monitor: Monitor | None = None,
    time_limit: float | None = None,
) -> Continuation:
    """Solves the programs of a continuation one after the other.

    Each stage starts where the one before it ended, or at its least infeasible
    iterate if it diverged (:data:`DIVERGED`).

    Args:
        stages: the stages, in the order to solve them.
        x0: the initial guess, physical units.
        problem: the program that judges the answer; None for the last stage's
            program. It need not be among the stages: a penalty may be heavier
            on all of them.
        tolerance: largest residual of an answer, physical units.
        accept: judges an answer beyond its residuals, in physical units.
        monitor: called at every iteration of every stage; True stops everything.
        time_limit: limit of the wall time, checked at every iteration;
            assembling functions does not count [s].

    Raises:
        InvalidInput: for no stages, stages over different variables, or a guess
            of the wrong length or not finite.
    """
    _check(stages, x0, problem)
    target = stages[-1].program if problem is None else problem
    incumbent = _Incumbent(target, tolerance, accept)
    x, spent, reports, raw = np.array(x0, float).ravel(), 0.0, [], None
    incumbent.offer(x, "guess")
    for stage in stages:
        if stage.spare and incumbent.feasible:
            continue
        functions = stage.assembled
        left = None if time_limit is None else time_limit - spent
        if left is not None and left <= 0 and raw is not None:
            break
        began = time.perf_counter()
        watch = _Watch(
            monitor,
            None if left is None else began + left,
            (incumbent, stage.label) if stage.same_rows else None,
        )
        raw = solve_exact(
            stage.program,
            x,
            options={**stage.options, "max_iter": stage.max_iterations},
            monitor=watch,
            assembled=functions,
        )
        x = watch.next_start(raw, stage.program)
        feasible = incumbent.offer(raw.x, stage.label)
        status = watch.status(raw)
        seconds = time.perf_counter() - began
        spent += seconds
        reports.append(
            StageReport(
                stage.label,
                status,
                watch.count,
                seconds,
                stage.program.objective(raw.x),
                _worst_residual(stage.program, raw.x),
                feasible,
            )
        )
        LOG.info("%s", reports[-1])
        if watch.stopped or status == INTERRUPTED:
            break
    return Continuation(
        incumbent.x,
        incumbent.feasible,
        incumbent.objective,
        _worst_residual(target, incumbent.x),
        incumbent.source,
        raw,
        tuple(reports),
        spent,
    )


class _Incumbent:
    """The best x so far: the answer of lowest objective, or the least violation.

    Attributes:
        x: the best x; None before the first offer.
        source: label of the stage that found x.
        feasible: whether x is an answer.
        objective: objective of the program at x.
        violation: largest residual at x.
    """

    def __init__(self, program: Program, tolerance: float, accept: Accept | None):
        self.program, self.tolerance, self.accept = program, tolerance, accept
        self.x, self.source = None, ""
        self.feasible, self.objective, self.violation = False, np.inf, np.inf

    def offer_iterate(self, iteration: Iteration, label: str) -> None:
        """Examines an iterate that the solver finds nearly feasible."""
        # Scales are of order one: ten tolerances leave room for them.
        if iteration.infeasibility > 10 * self.tolerance:
            return
        # The objective is cheaper to compute than residuals and `accept`.
        if self.feasible and self.program.objective(iteration.x) >= self.objective:
            return
        self.offer(iteration.x, label)

    def offer(self, x: np.ndarray, label: str) -> bool:
        """Keeps x if it is better; returns whether it is an answer."""
        if not np.isfinite(x).all():
            return False
        violation = _worst_residual(self.program, x)[1]
        feasible = violation <= self.tolerance and (
            self.accept is None or bool(self.accept(x))
        )
        objective = self.program.objective(x)
        if self._is_better(feasible, objective, violation):
            self.x, self.source = np.array(x), label
            self.feasible, self.objective = feasible, objective
            self.violation = violation
        return feasible

    def _is_better(self, feasible: bool, objective: float, violation: float) -> bool:
        if feasible != self.feasible or self.x is None:
            return feasible or self.x is None
        if feasible:
            return objective < self.objective
        return violation < self.violation


class _Watch:
    """The monitor of one stage: time limit, the caller's monitor, best iterates."""

    def __init__(self, monitor, deadline, candidates):
        self.monitor, self.deadline, self.candidates = monitor, deadline, candidates
        self.stopped = self.out_of_time = False
        self.count = -1  # the starting point is not an iteration
        self.least, self.last, self.x = np.inf, np.inf, None

    def __call__(self, iteration: Iteration) -> bool:
        self.count += 1
        self.last = iteration.infeasibility
        # The starting point is where the stage before ended: no progress.
        if self.count and iteration.infeasibility < self.least:
            self.least, self.x = iteration.infeasibility, iteration.x
        if self.candidates is not None:
            incumbent, label = self.candidates
            incumbent.offer_iterate(iteration, label)
        if self.monitor is not None and self.monitor(iteration):
            self.stopped = True
        if self.deadline is not None and time.perf_counter() > self.deadline:
            self.stopped = self.out_of_time = True
        return self.stopped

    def status(self, raw: Raw) -> str:
        if self.out_of_time:
            return TIME_LIMIT
        # A stop that was not requested here came from the user.
        stopped = raw.status in ("interrupted", "User_Requested_Stop")
        return INTERRUPTED if stopped and not self.stopped else raw.status

    def next_start(self, raw: Raw, program: Program) -> np.ndarray:
        x = raw.x
        # `not <=`: a solver that broke down leaves NaN behind.
        if not self.last <= DIVERGED or not np.isfinite(x).all():
            x = x if self.x is None else self.x
        return np.clip(np.nan_to_num(x), program.x_lower, program.x_upper)


def _check(stages: Sequence[Stage], x0: np.ndarray, problem: Program | None) -> None:
    if not stages:
        raise InvalidInput("a continuation needs one stage or more")
    target = stages[-1].program if problem is None else problem
    shape = _shape(target)
    for stage in stages:
        if _shape(stage.program) != shape:
            raise InvalidInput(
                f"stage {stage.label}: its variables differ from the problem's; use "
                "the same groups in the same order"
            )
    target.check_guess(x0)


def _shape(program: Program) -> list[tuple]:
    return [(name, g.shape) for name, g in program.variables.items()]


def _worst_residual(program: Program, x: np.ndarray) -> tuple[str, float]:
    return next(iter(program.residuals(x).items()), ("none", 0.0))


# --- many starts ------------------------------------------------------------


@dataclass(frozen=True)
class MultiStart:
    """The continuations from several starts, in the order of the seeds given.

    Attributes:
        seeds: seeds of the starts that ran.
        runs: the continuation from each start.
    """

    seeds: tuple[int, ...]
    runs: tuple[Continuation, ...]

    @property
    def num_feasible(self) -> int:
        """Number of starts that led to an answer."""
        return sum(run.feasible for run in self.runs)

    @property
    def best(self) -> Continuation | None:
        """The answer of lowest objective; None without answers."""
        answers = [run for run in self.runs if run.feasible]
        return min(answers, key=lambda run: run.objective, default=None)

    @property
    def median_seconds(self) -> float:
        """Median wall time of all starts, with an answer or without [s]."""
        return float(np.median([run.seconds for run in self.runs]))

    def __str__(self) -> str:
        lines = [f"{'seed':>6} {'seconds':>8}  {'objective':>12} {'worst':>8}  stages"]
        for seed, run in zip(self.seeds, self.runs):
            stages = ", ".join(f"{s.label} {s.iterations}" for s in run.stages)
            objective = f"{run.objective:.6g}" if run.feasible else "no answer"
            lines.append(
                f"{seed:>6} {run.seconds:8.1f}  {objective:>12} "
                f"{run.worst[1]:8.1e}  {stages}"
            )
        best = self.best
        lines.append(
            f"{self.num_feasible} of {len(self.runs)}, median "
            f"{self.median_seconds:.1f} s, best "
            + ("–" if best is None else f"{best.objective:.6g}")
        )
        return "\n".join(lines)


def multi_start(
    run: Callable[[int], Continuation],
    seeds: Iterable[int],
    *,
    processes: int = 1,
    done: Callable[[int, Continuation], None] | None = None,
) -> MultiStart:
    """Runs a continuation from every start; Ctrl-C returns those that have run.

    Args:
        run: function from a seed to its continuation. For several processes it must
            be a function of a module, or another object that pickles; each process
            builds its own programs, since CasADi's functions do not pickle.
        seeds: seeds of the starts, all different.
        processes: number of parallel processes.
        done: called as done(seed, continuation) as each start ends.

    Raises:
        InvalidInput: for no seeds, a repeated seed, or processes < 1.
    """
    seeds = tuple(int(seed) for seed in seeds)
    if not seeds:
        raise InvalidInput("there are no starts; give one seed or more")
    if len(set(seeds)) != len(seeds):
        raise InvalidInput("a seed comes twice; its start would be the same")
    if processes < 1:
        raise InvalidInput(f"processes must be >= 1, got {processes}")
    found = {}
    for seed, continuation in _run_all(run, seeds, processes):
        found[seed] = continuation
        if done is not None:
            done(seed, continuation)
        if continuation.interrupted:
            break
    ended = tuple(seed for seed in seeds if seed in found)
    return MultiStart(ended, tuple(found[seed] for seed in ended))


def _run_all(
    run, seeds: Sequence[int], processes: int
) -> Iterator[tuple[int, Continuation]]:
    if processes == 1 or len(seeds) == 1:
        for seed in seeds:
            yield seed, run(seed)
        return
    # A fork of a process that has run CasADi's threads may hang.
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(min(processes, len(seeds)), context) as pool:
        waiting = {pool.submit(run, seed): seed for seed in seeds}
        try:
            for future in as_completed(waiting):
                yield waiting[future], future.result()
        finally:
            pool.shutdown(wait=False, cancel_futures=True)
