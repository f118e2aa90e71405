"""Solve a program with progress, a time limit and checkpoints, and judge the answer.

solution = solve(program, x0)                     # IPOPT, exact Hessians
solution = solve(program, x0, solver="snopt")     # Drake's SNOPT
print(solution.summary())
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np

from drakebots.core.checks import check_value, optional, positive
from drakebots.core.errors import (
    DrakebotsWarning,
    FileProblem,
    NoSolution,
    UnknownName,
)
from drakebots.core.run import Progress, Verdict, check_stop, ended_by
from drakebots.core.stages import stage
from drakebots.trajopt.program import Program, save_checkpoint
from drakebots.trajopt.solvers.drake import solve_drake
from drakebots.trajopt.solvers.ipopt_exact import (
    DEFAULTS,
    Iteration,
    Monitor,
    Raw,
    solve_exact,
)

SOLVERS = ("exact", "ipopt", "snopt")

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
        multipliers: multipliers of rows and bounds, for warm starts, or None.
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


class _Watch:
    """A solver's monitor: the best iterate, progress, time limit, checkpoint."""

    def __init__(self, program, monitor, progress, most, time_limit, checkpoint, keep):
        self.program, self.monitor = program, monitor
        self.progress, self.most = progress, most
        self.deadline = None if time_limit is None else time.monotonic() + time_limit
        self.checkpoint, self.keep = checkpoint, keep
        self.began = self.saved = time.monotonic()
        self.best: Iteration | None = None
        self.late = False

    def __call__(self, iteration: Iteration) -> bool:
        if np.isfinite(iteration.x).all() and _rank(iteration) <= _rank(self.best):
            self.best = iteration
        if self.progress is not None:
            self.progress(
                f"iteration {iteration.number}: cost {iteration.objective:.4g}, "
                f"violation {iteration.infeasibility:.1e}",
                iteration.number,
                self.most,
            )
        if self.best is not None and time.monotonic() - self.saved > 5.0:
            self.save(self.best.x)
        self.late = self.deadline is not None and time.monotonic() > self.deadline
        requested = self.monitor is not None and self.monitor(iteration)
        return bool(self.late or requested)

    def save(self, x: np.ndarray) -> None:
        """Writes the checkpoint; where that fails the solver goes on without it."""
        if self.checkpoint is None:
            return
        self.saved = time.monotonic()
        seconds = np.array(self.saved - self.began)
        try:
            save_checkpoint(
                self.checkpoint, self.program, x, seconds=seconds, **self.keep
            )
        except FileProblem as error:
            warnings.warn(f"checkpoint {error}", DrakebotsWarning, stacklevel=2)


def _rank(iteration: Iteration | None) -> tuple[float, float]:
    """Smaller is better: feasible before infeasible, then by objective or violation."""
    if iteration is None:
        return (np.inf, np.inf)
    if iteration.infeasibility <= TOLERANCE:
        return (0.0, iteration.objective)
    return (iteration.infeasibility, iteration.objective)


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
    multipliers: tuple[np.ndarray, np.ndarray] | None = None,
    tolerance: float = TOLERANCE,
) -> Solution:
    """Solves a program; returns the best iterate even when it is cut short.

    Args:
        program: the program.
        x0: the first guess, see :meth:`Program.pack`.
        solver: "exact" (IPOPT with exact Hessians), "ipopt" or "snopt"
            (Drake's, through a MathematicalProgram).
        options: options of the solver.
        time_limit: limit of the wall time [s].
        monitor: called at every iteration; True stops the solver.
        progress: called at every iteration with a line on it, its number and the
            largest number of iterations (0 if that is unknown, as with SNOPT).
        checkpoint: file that keeps the best iterate while the solver runs. Where it
            cannot be written, that is a warning.
        keep: what else the checkpoint holds, by name, in addition to `seconds`, how
            long the solver had run.
        multipliers: multipliers of an earlier solution, for "exact" only.
        tolerance: largest violation of a row or bound (scaled) of a success.

    Raises:
        InvalidInput: for a guess that does not fit, bounds that exclude each
            other, or an option that the solver does not know.
        UnknownName: for an unknown solver.
    """
    if solver not in SOLVERS:
        raise UnknownName("solver", solver, SOLVERS)
    check_value("time limit", time_limit, optional(positive("s")))
    x0 = program.check_guess(x0)
    program.check()
    most = 0  # SNOPT reports function evaluations, whose number has no limit.
    if solver != "snopt":
        most = (DEFAULTS | dict(options or {}))["max_iter"]
    watch = _Watch(program, monitor, progress, most, time_limit, checkpoint, keep)
    began, ended = time.perf_counter(), None
    watch.save(x0)
    try:
        check_stop()
        common = {"options": options, "monitor": watch}
        with stage("solve"):
            if solver == "exact":
                raw = solve_exact(program, x0, multipliers=multipliers, **common)
            else:
                common |= {"solver": solver, "time_limit": time_limit}
                raw = solve_drake(program, x0, **common)
    except KeyboardInterrupt as error:
        ended = ended_by(error)
        x = x0 if watch.best is None else watch.best.x
        raw = Raw(x, "interrupted", False, {}, {})
    if raw.status == "interrupted":
        ended = ended or ended_by(KeyboardInterrupt())
    if watch.best is not None:
        watch.save(watch.best.x)
    seconds = dict(raw.seconds) | {"total": time.perf_counter() - began}
    x = raw.x
    violation = _scaled_violation(program, x)
    if (
        not raw.success
        and watch.best is not None
        and (watch.best.infeasibility < violation or not np.isfinite(violation))
    ):
        x = watch.best.x
        violation = _scaled_violation(program, x)
    m = raw.multipliers
    verdict, message = _judge(raw, violation, watch.late, ended, tolerance)
    return Solution(
        program=program,
        x=_frozen(x),
        verdict=verdict,
        message=message,
        residuals=MappingProxyType(program.residuals(x)),
        log=MappingProxyType(dict(raw.log)),
        seconds=MappingProxyType(seconds),
        solver=solver,
        status=raw.status,
        multipliers=None if m is None else (m, raw.bound_multipliers),
    )


def _scaled_violation(program: Program, x: np.ndarray) -> float:
    """Largest violation of rows and bounds, in units of their scales."""
    if not np.isfinite(x).all():
        return np.inf
    g = program.values(x)
    rows = np.maximum(program.lower - g, g - program.upper) / program.row_scale
    bounds = np.maximum(program.x_lower - x, x - program.x_upper) / program.x_scale
    worst = max(rows.max(initial=0.0), bounds.max(initial=0.0))
    return float(worst) if np.isfinite(worst) else np.inf


def _judge(raw: Raw, violation, late, ended, tolerance) -> tuple[Verdict, str]:
    state = f"largest violation {violation:.2g} (scaled)"
    if ended is not None:
        return ended[0], f"{ended[1]}; {state}"
    if raw.success and violation <= tolerance:
        return Verdict.SUCCESS, f"{raw.status}; {state}"
    if late:
        return Verdict.TIME_LIMIT, f"stopped at the time limit; {state}"
    if raw.success:
        return (
            Verdict.FAILED,
            f"{raw.status}, but {state} exceeds {tolerance:g}; tighten the solver's "
            "tolerances",
        )
    return (
        Verdict.FAILED,
        f"{raw.status}; {state}; try another start, more iterations or a continuation",
    )


def _frozen(x: np.ndarray) -> np.ndarray:
    x = np.array(x)
    x.setflags(write=False)
    return x
