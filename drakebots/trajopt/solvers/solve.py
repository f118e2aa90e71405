"""Solve a program with progress, a time limit and checkpoints, and judge the answer.

solution = solve(program, x0)                     # IPOPT, exact Hessians
solution = solve(program, x0, solver="snopt")     # Drake's SNOPT
print(solution.summary())
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import MappingProxyType
from typing import Any

import casadi
import numpy as np
from pydrake.solvers import MakeSolver, MathematicalProgram, SolutionResult

from drakebots.core.checks import check_value, one_of, optional, positive
from drakebots.core.errors import (
    DrakebotsWarning,
    FileProblem,
    InvalidInput,
    NoSolution,
)
from drakebots.core.run import Progress, Verdict, check_stop, ended_by
from drakebots.core.stages import stage
from drakebots.trajopt.program import Program, save_checkpoint
from drakebots.trajopt.solvers.drake_solvers import IDS, solve_drake
from drakebots.trajopt.solvers.exact_solver import OwnResult, fill
from drakebots.trajopt.solvers.ipopt_exact import (
    DEFAULTS,
    Iteration,
    Monitor,
    Raw,
    Watch,
    solve_exact,
)
from drakebots.trajopt.solvers.mathematical_program import Lowered

SOLVERS = ("exact", "ipopt", "snopt")
"""IPOPT with exact Hessians; IPOPT and SNOPT as Drake has them."""


def is_installed(name: str) -> bool:
    """Whether one of the :data:`SOLVERS` can be used here."""
    if name in IDS:  # a Drake that was built without SNOPT
        return MakeSolver(IDS[name]).available()
    return casadi.has_nlpsol("ipopt")


def check_solver(name: str) -> None:
    """Refuses a solver that is not in :data:`SOLVERS`, or not installed.

    Raises:
        UnknownName: for one that is not there.
        InvalidInput: for one that is not installed.
    """
    check_value("solver", name, one_of("solver", SOLVERS))
    if not is_installed(name):
        raise InvalidInput(
            f"solver {name} is not installed; `drakebots doctor` says why, or use "
            f"one of: {', '.join(filter(is_installed, SOLVERS))}"
        )


TOLERANCE = 1e-6
"""Largest violation (scaled) of a row or bound in a solution that succeeded."""


@dataclass(frozen=True)
class Solution:
    """The answer to a program, or the best iterate of a failed attempt.

    Attributes:
        program: the program that was solved.
        x: the answer, physical units.
        verdict: success, failed, interrupted or time limit.
        message: one line on why the solver ended.
        residuals: worst violation of every group, by the name of its worst
            entry, physical units, largest first.
        log: columns of the solver's iteration log.
        seconds: wall time by activity [s].
        solver: name of the solver.
        status: status reported by the solver.
        multipliers: multipliers of rows and bounds, or None.
    """

    program: Program = field(repr=False)
    x: np.ndarray = field(repr=False)
    verdict: Verdict
    message: str
    residuals: Mapping[str, float]
    log: Mapping[str, list[float]] = field(repr=False)
    seconds: Mapping[str, float]
    solver: str
    status: str
    multipliers: tuple[np.ndarray, np.ndarray] | None = field(default=None, repr=False)

    @classmethod
    def of_point(
        cls,
        program: Program,
        x: np.ndarray,
        *,
        status: str,
        solver: str = "none",
        ok: bool = True,
    ) -> Solution:
        """A point that none of our solvers made: a success where it is feasible and
        whoever made it says `ok`."""
        violation = scaled_violation(program, x)
        verdict = Verdict.SUCCESS if ok and violation <= TOLERANCE else Verdict.FAILED
        how = status if solver == "none" else f"{solver} ended with {status}"
        message = f"{how}; largest violation {violation:.2g} (scaled)"
        residuals = MappingProxyType(program.residuals(x))
        return cls(program, x, verdict, message, residuals, {}, {}, solver, status)

    @property
    def ok(self) -> bool:
        """Whether the verdict is success."""
        return self.verdict is Verdict.SUCCESS

    @property
    def objective(self) -> float:
        """The cost at x."""
        return self.program.objective(self.x)

    @property
    def parts(self) -> dict[str, np.ndarray]:
        """The parts of x by name, each (count, labels)."""
        return self.program.view(self.x)

    @property
    def iterations(self) -> int:
        """Number of iterations of the solver."""
        return max((len(column) for column in self.log.values()), default=0)

    def worst(self, count: int = 3) -> dict[str, float]:
        """The largest residuals by name."""
        return dict(list(self.residuals.items())[:count])

    @property
    def metrics(self) -> dict[str, Any]:
        """What a plan's metrics say of its program and of the solver's run."""
        program, log = self.program, self.log
        kept = {k: list(log[k]) for k in ("obj", "inf_pr", "mu") if k in log}
        return {
            "objective": self.objective,
            "cost": program.cost_table(self.x),
            "iterations": self.iterations,
            "solver": self.solver,
            "solver_status": self.status,
            "variables": program.num_variables,
            "rows": program.num_rows,
            "iteration_log": kept,
        }

    def require(self) -> Solution:
        """The solution itself if it succeeded.

        Raises:
            NoSolution: otherwise, with the worst residuals.
        """
        if not self.ok:
            raise NoSolution(f"{self.program.name}: {self.message}", self.worst())
        return self

    def summary(self) -> str:
        """A line on the outcome, then one line for each residual."""
        lines = [
            f"{self.program.name}: {self.verdict} by {self.solver} ({self.status}) in "
            f"{self.iterations} iterations, {self.seconds.get('total', 0):.1f} s; "
            f"objective {self.objective:.6g}"
        ]
        lines += [f"  {value:9.2e}  {name}" for name, value in self.residuals.items()]
        return "\n".join(lines)


_OUTCOMES = {
    Verdict.SUCCESS: SolutionResult.kSolutionFound,
    Verdict.TIME_LIMIT: SolutionResult.kIterationLimit,
}


class ProgramResult(OwnResult):
    """A MathematicalProgramResult whose details are the :class:`Solution` of a
    planner's own program, judged, with its log."""

    @classmethod
    def of(
        cls,
        solution: Solution,
        prog: MathematicalProgram,
        values: np.ndarray,
        cost: float,
    ) -> ProgramResult:
        """The result of a program: the values of its decision variables, its cost with
        all that was added to it, and the solution of the planner's own program."""
        result = cls()
        outcome = _OUTCOMES.get(solution.verdict, SolutionResult.kSolverSpecificError)
        fill(result, prog.decision_variables(), values, cost, outcome)
        result.name, result._details = solution.solver, solution
        return result


class _Reports:
    """What :func:`solve` does at every iterate; its arguments are those of `solve`."""

    def __init__(self, program, progress, most, monitor, checkpoint, keep):
        self.program, self.progress, self.most = program, progress, most
        self.monitor, self.path, self.keep = monitor, checkpoint, keep
        self.began = self.saved = time.monotonic()

    def on(self, watch: Watch, iteration: Iteration) -> bool:
        """Whether the monitor stops the solver at an iterate."""
        if self.progress is not None:
            self.progress(
                f"iteration {iteration.number}: cost {iteration.objective:.4g}, "
                f"violation {iteration.infeasibility:.1e}",
                iteration.number,
                self.most,
            )
        if watch.best is not None:
            self.save(watch.best.x, every=5.0)
        return self.monitor is not None and self.monitor(iteration)

    def save(self, x: np.ndarray, every: float = 0.0) -> None:
        """Writes an iterate, at most once in so many seconds; where that fails the
        solver goes on without it."""
        now = time.monotonic()
        if self.path is None or now - self.saved < every:
            return
        self.saved, seconds = now, np.array(now - self.began)
        try:
            save_checkpoint(self.path, self.program, x, seconds=seconds, **self.keep)
        except FileProblem as error:
            warnings.warn(f"checkpoint {error}", DrakebotsWarning, stacklevel=2)


def solve(
    program: Program,
    x0: np.ndarray,
    *,
    solver: str = "exact",
    options: Mapping[str, Any] | None = None,
    time_limit: float | None = None,
    monitor: Monitor | None = None,
    progress: Progress | None = None,
    checkpoint: str | Path | None = None,
    keep: Mapping[str, np.ndarray | str] = MappingProxyType({}),
    lowered: Lowered | None = None,
) -> Solution:
    """Solves a program; returns the best iterate even when it is cut short.

    Args:
        program: the program.
        x0: the first guess, see :meth:`Program.pack`.
        solver: "exact", or "ipopt" or "snopt" (Drake's, through a
            MathematicalProgram).
        options: options of the solver.
        time_limit: limit of the wall time [s].
        monitor: called at every iteration; True stops the solver.
        progress: called at every iteration with a line on it, its number and the
            largest number of iterations (0 if that is unknown, as with SNOPT).
        checkpoint: file that keeps the best iterate; a warning if it cannot be written.
        keep: more of its contents, by name, beside `seconds`, the solver's time.
        lowered: the program as a MathematicalProgram for Drake's solvers.

    Raises:
        InvalidInput: for a guess that does not fit, bounds that exclude each other, or
            an option that the solver does not know.
        UnknownName: for an unknown solver.
    """
    check_solver(solver)
    check_value("time limit", time_limit, optional(positive("s")))
    options = dict(options or {})
    x0 = program.check_guess(x0)
    program.check()
    # SNOPT reports function evaluations, whose number has no limit.
    most = 0 if solver == "snopt" else (DEFAULTS | options)["max_iter"]
    reports = _Reports(program, progress, most, monitor, checkpoint, keep)
    end = None if time_limit is None else time.monotonic() + time_limit
    watch = Watch(program, lambda iteration: reports.on(watch, iteration), end)
    reports.save(x0)
    began = time.perf_counter()
    how = {"time_limit": time_limit, "lowered": lowered}
    raw, ended = _ran(solver, program, x0, watch, options, **how)
    if watch.best is not None:
        reports.save(watch.best.x)
    total = time.perf_counter() - began
    return _solution(program, raw, watch, ended, solver, total)


def _ran(solver, program, x0, watch, options, *, time_limit, lowered):
    """A solver's output, and the verdict with its message where Ctrl-C ended it."""
    how = {"options": options, "monitor": watch}
    try:
        check_stop()
        with stage("solve"):
            if solver == "exact":
                return solve_exact(program, x0, **how), None
            how |= {"time_limit": time_limit, "lowered": lowered}
            return solve_drake(program, x0, solver=solver, **how), None
    except KeyboardInterrupt as error:
        x = x0 if watch.best is None else watch.best.x
        return Raw(x, "interrupted", False, {}, {}), ended_by(error)


def _solution(program, raw: Raw, watch: Watch, ended, solver, total) -> Solution:
    """A solver's output, or the best iterate where that is better, judged."""
    x, best = raw.x, watch.best
    violation = scaled_violation(program, x)
    if not raw.success and best is not None and best.infeasibility < violation:
        x = best.x
        violation = scaled_violation(program, x)
    if raw.status == "interrupted":
        ended = ended or ended_by(KeyboardInterrupt())
    m = raw.multipliers
    late = "Time_Limit" in (watch.reason, raw.status)
    verdict, message = _judge(raw, violation, late, ended)
    x = np.array(x)
    x.setflags(write=False)
    return Solution(
        program=program,
        x=x,
        verdict=verdict,
        message=message,
        residuals=MappingProxyType(program.residuals(x)),
        log=MappingProxyType(dict(raw.log)),
        seconds=MappingProxyType(dict(raw.seconds) | {"total": total}),
        solver=solver,
        status=raw.status,
        multipliers=None if m is None else (m, raw.bound_multipliers),
    )


def scaled_violation(program: Program, x: np.ndarray) -> float:
    """Largest violation of rows and bounds, in units of their scales."""
    if not np.isfinite(x).all():
        return np.inf
    g = program.values(x)
    rows = np.maximum(program.lower - g, g - program.upper) / program.row_scale
    bounds = np.maximum(program.x_lower - x, x - program.x_upper) / program.x_scale
    worst = max(rows.max(initial=0.0), bounds.max(initial=0.0))
    return float(worst) if np.isfinite(worst) else np.inf


def _judge(raw: Raw, violation, late, ended) -> tuple[Verdict, str]:
    state = f"largest violation {violation:.2g} (scaled)"
    if ended is not None:
        return ended[0], f"{ended[1]}; {state}"
    if raw.success and violation <= TOLERANCE:
        return Verdict.SUCCESS, f"{raw.status}; {state}"
    if late:
        return Verdict.TIME_LIMIT, f"stopped at the time limit; {state}"
    if raw.success:
        advice = "tighten the solver's tolerances"
        state = f", but {state} exceeds {TOLERANCE:g}; {advice}"
    else:
        advice = "try another start, more iterations or a continuation"
        state = f"; {state}; {advice}"
    return Verdict.FAILED, raw.status + state


def planning(
    solver: str,
    opened: Callable[[Program, np.ndarray], Any],
    *,
    add: Callable[[Any], None] | None = None,
    options: Mapping[str, Any] | None = None,
    **shared: Any,
) -> Callable[..., Solution]:
    """The solver of a planner, called as `call(program, x, options=ours, **how)`.

    Args:
        solver: one of :data:`SOLVERS`; `ours` are for IPOPT with exact Hessians.
        opened: opens a program of the planner with its start, as a
            :class:`~drakebots.trajopt.plan_program.PlanProgram`.
        add: adds a user's own terms to every program that was opened, and options,
            which override ours; None for none.
        options: the user's options, which override ours.
        shared: what all calls of :func:`solve` share.

    Raises:
        UnknownName: for an unknown solver.
    """
    check_solver(solver)
    given = dict(options or {})

    def call(
        program: Program, x: np.ndarray, *, options: Mapping[str, Any], **how: Any
    ) -> Solution:
        ours = dict(options) if solver == "exact" else {}
        how = {"solver": solver, **shared, **how}
        if add is None:
            return solve(program, x, options=ours | given, **how)
        own = replace(opened(program, x), options=ours)
        add(own)
        return own.solve(options=given, **how).get_solver_details()

    return call
