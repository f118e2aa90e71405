"""Drake's SNOPT and IPOPT on a lowered program.

Both get variables and rows divided by their scales, and exact first derivatives;
neither uses second derivatives. A callback keeps the best iterate, so that a solve that
is stopped (time limit, monitor, Ctrl-C) still returns one.
"""

from __future__ import annotations

import os
import re
import tempfile
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from pydrake.solvers import (
    CommonSolverOption,
    IpoptSolver,
    SnoptSolver,
    SolverId,
    SolverOptions,
)

from drakebots.core.errors import InvalidInput, UnknownName
from drakebots.core.run import CtrlC, is_ending
from drakebots.trajopt.program import Program
from drakebots.trajopt.solvers import snopt
from drakebots.trajopt.solvers.ipopt_exact import DEFAULTS as IPOPT_DEFAULTS
from drakebots.trajopt.solvers.ipopt_exact import Iteration, Monitor, Raw
from drakebots.trajopt.solvers.mathematical_program import Lowered, lower

SOLVERS = ("snopt", "ipopt")

SNOPT_DEFAULTS: dict[str, Any] = {
    "Major iterations limit": 3000,
    "Iterations limit": 10_000_000,
    "Major feasibility tolerance": 1e-7,
    "Major optimality tolerance": 1e-5,
    # Without it SNOPT ignores its own time limit.
    "Timing level": 3,
}

# Options that do not apply: Drake's wheels have IPOPT with SPRAL only.
_OTHERS = ("linear_solver", "mumps_pivot_order", "sb")
_IPOPT = {k: v for k, v in IPOPT_DEFAULTS.items() if k not in _OTHERS}

FEASIBLE = 1e-6
"""Scaled violation below which the objective decides which iterate is best."""

_LARGEST = 2**28
"""Largest workspace in words: 2 GB of real numbers."""


class _Stop(Exception):
    """Ends a solver from its callback; users never see it."""


class _Watch:
    """Sees every point a solver evaluates (SNOPT) or reaches (IPOPT)."""

    def __init__(self, lowered: Lowered, monitor: Monitor | None, deadline, ctrl_c):
        self.lowered, self.monitor, self.deadline = lowered, monitor, deadline
        self.ctrl_c = ctrl_c
        self.count, self.best, self.stopped, self.error = 0, None, None, None
        program = lowered.program
        self._low = program.lower / program.row_scale
        self._high = program.upper / program.row_scale

    def __call__(self, values: np.ndarray) -> None:
        try:
            self._look(self.lowered.physical(values))
        except BaseException as error:
            self.error = error
            raise

    def _look(self, x: np.ndarray) -> None:
        program = self.lowered.program
        g = program.values(x) / program.row_scale
        excess = np.maximum(self._low - g, g - self._high).max(initial=0.0)
        iteration = Iteration(self.count, program.objective(x), float(excess), x)
        self.count += 1
        if _rank(iteration) < _rank(self.best):
            self.best = iteration
        self.ctrl_c.check()
        if self.monitor is not None and self.monitor(iteration):
            self.stopped = "User_Requested_Stop"
        elif self.deadline is not None and time.monotonic() > self.deadline:
            self.stopped = "Time_Limit"
        if self.stopped:
            raise _Stop

    def settle(self, error: BaseException) -> str:
        """The status that an exception stands for; raises any other exception.

        SNOPT turns any exception of a callback or a binding into a
        RuntimeError with its name, KeyboardInterrupt too.
        """
        cause = self.error or error
        if isinstance(cause, _Stop):
            return self.stopped
        if isinstance(cause, KeyboardInterrupt) or "KeyboardInterrupt" in str(error):
            return "interrupted"
        if self.error is None and is_ending():
            return "interrupted"
        raise cause


def _rank(iteration: Iteration | None) -> tuple[float, float]:
    """Smaller is better: feasible first, then cheap."""
    if iteration is None:
        return np.inf, np.inf
    infeasibility, objective = iteration.infeasibility, iteration.objective
    if not (np.isfinite(infeasibility) and np.isfinite(objective)):
        return np.inf, np.inf
    return max(infeasibility, FEASIBLE), objective


def solve_drake(
    program: Program,
    x0: np.ndarray,
    *,
    solver: str = "snopt",
    options: Mapping[str, Any] | None = None,
    monitor: Monitor | None = None,
    time_limit: float | None = None,
) -> Raw:
    """Solves a program with a solver of Drake.

    Args:
        program: the program.
        x0: the initial guess.
        solver: "snopt" or "ipopt".
        options: options of the solver, which override :data:`SNOPT_DEFAULTS` or
            those of `ipopt_exact` without its linear solver. A "Print file"
            (SNOPT) or "output_file" (IPOPT) is kept.
        monitor: returns True to stop. SNOPT calls it at every function evaluation,
            trial points of its line search included, IPOPT at every iteration.
        time_limit: limit of the wall time [s], checked when the monitor is called,
            and within SNOPT's subproblems.

    Returns:
        The solver's answer when it claims success, else the best point seen:
        feasible first (scaled rows within :data:`FEASIBLE`), then cheapest.

    Raises:
        UnknownName: for a solver that is not in :data:`SOLVERS`.
        InvalidInput: for an option that the solver does not know, or a bad guess.
        Exception: any exception of the monitor.
    """
    if solver not in SOLVERS:
        raise UnknownName("solver", solver, SOLVERS)
    x0 = program.check_guess(x0)
    began = time.monotonic()
    deadline = None if time_limit is None else began + time_limit
    settings = _settings(solver, program, options, time_limit)
    lowered = lower(program, scaled=True)
    ctrl_c = CtrlC()
    watch = _Watch(lowered, monitor, deadline, ctrl_c)
    lowered.prog.AddVisualizationCallback(watch, lowered.x)
    built = time.monotonic() - began
    with tempfile.TemporaryDirectory() as folder, ctrl_c:
        run = _snopt if solver == "snopt" else _ipopt
        values, status, success, log = run(
            lowered, lowered.values(x0), settings, watch, Path(folder)
        )
    if values is None or not success:
        x = x0 if watch.best is None else watch.best.x
    else:
        x = lowered.physical(values)
    seconds = {"build": built, "total": time.monotonic() - began}
    return Raw(x, status, success, log, seconds)


def _settings(solver: str, program: Program, options, time_limit) -> dict[str, Any]:
    given = dict(options or {})
    if solver == "ipopt":
        return {**_IPOPT, **given}
    given = snopt.check_options(given)
    size = program.num_variables + program.num_rows
    defaults = SNOPT_DEFAULTS | {
        "Superbasics limit": min(2000, program.num_variables + 1),
        # SNOPT's own estimate is too small for ill-conditioned bases.
        "Total real workspace": 2_000_000 + 1000 * size,
        "Total integer workspace": 2_000_000 + 1000 * size,
    }
    if time_limit is not None:
        # SNOPT checks its own clock within QP subproblems too, which may take
        # minutes without a callback.
        defaults["Time limit"] = float(time_limit)
    return defaults | given


def _snopt(lowered: Lowered, values, settings, watch: _Watch, folder: Path):
    """Runs SNOPT, with a larger workspace where it asks for one.

    Returns:
        x in solver units or None, status, whether it succeeded, and the log.
    """
    own = settings.pop("Print file", None)
    for attempt in range(4):
        path = Path(own) if own else folder / f"snopt_{attempt}.txt"
        # SNOPT appends to the file: read only what this run writes.
        start = path.stat().st_size if os.path.exists(path) else 0
        chosen = SolverOptions()
        chosen.SetOption(CommonSolverOption.kPrintFileName, str(path))
        for name, value in settings.items():
            _set(chosen, SnoptSolver.id(), name, value)
        result, status = _guarded(SnoptSolver(), lowered, values, chosen, watch)
        log = snopt.read_log(_text(path)[start:])
        if result is None:
            return None, status, False, log
        info = result.get_solver_details().info
        if info not in snopt.STORAGE:
            break
        for kind in ("real", "integer"):
            name = f"Total {kind} workspace"
            settings[name] = min(4 * settings[name], _LARGEST)
    if info == snopt.TIME_LIMIT and watch.deadline is not None:
        return None, "Time_Limit", False, log
    status = f"SNOPT {info}: {snopt.INFO.get(info, 'see the User Guide')}"
    return result.get_x_val(), status, info in (1, 2), log


def _ipopt(lowered: Lowered, values, settings, watch: _Watch, folder: Path):
    """Runs Drake's IPOPT; returns as :func:`_snopt`."""
    path = Path(settings.pop("output_file", folder / "ipopt.txt"))
    chosen = SolverOptions()
    settings = {"file_print_level": 5, **settings, "output_file": str(path)}
    for name, value in settings.items():
        _set(chosen, IpoptSolver.id(), name, value)
    result, status = _guarded(IpoptSolver(), lowered, values, chosen, watch)
    log = _ipopt_log(_text(path))
    if result is None:
        return None, status, False, log
    status = result.get_solver_details().ConvertStatusToString()
    return result.get_x_val(), status, result.is_success(), log


def _set(options: SolverOptions, solver: SolverId, name: str, value) -> None:
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        raise InvalidInput(f"option {name!r} must be a number or a text, got {value!r}")
    options.SetOption(solver, name, value)


def _guarded(solver, lowered: Lowered, values, options, watch: _Watch):
    """(result, "") or (None, why it was stopped)."""
    try:
        return solver.Solve(lowered.prog, values, options), ""
    except BaseException as error:
        text = str(error)
        if re.search("[Ee]rror setting (Snopt|IPOPT)|Snopt parameter", text):
            raise InvalidInput(f"{solver.SolverName()}: {text}") from None
        return None, watch.settle(error)


def _text(path: Path) -> str:
    return path.read_text(errors="replace") if os.path.exists(path) else ""


_IPOPT_COLUMNS = ("number", "objective", "infeasibility", "optimality")


def _ipopt_log(text: str) -> dict[str, list[float]]:
    """`number`, `objective`, `infeasibility`, `optimality` from an output file."""
    out: dict[str, list[float]] = {key: [] for key in _IPOPT_COLUMNS}
    inside = False
    for line in text.splitlines():
        words = line.split()
        if words[:2] == ["iter", "objective"]:
            inside = True
            continue
        # "r" marks the restoration phase.
        number = words[0].rstrip("r") if words else ""
        if not (inside and number.isdigit() and len(words) >= 8):
            inside = inside and bool(words)
            continue
        for key, word in zip(_IPOPT_COLUMNS, (number, *words[1:4])):
            out[key].append(float(word))
    return out if out["number"] else {}
