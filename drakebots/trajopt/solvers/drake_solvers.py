"""Drake's SNOPT and IPOPT on a lowered program.

Both get variables and rows divided by their scales, and exact first derivatives;
neither uses second derivatives. A callback keeps the best iterate, so that a solve that
is stopped (time limit, monitor, Ctrl-C) still returns one.

SNOPT reads options by their first letters and silently mistakes a misspelt one for
another ("Major iteration limt" is accepted). So names are checked against the list of
the manual: Gill, Murray, Saunders, Wong, User's Guide for SNOPT Version 7, section 7.
"""

from __future__ import annotations

import math
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

from drakebots.core.checks import between, check_value, instance, one_of
from drakebots.core.errors import InvalidInput, UnknownName
from drakebots.core.run import is_ending
from drakebots.trajopt.program import Program
from drakebots.trajopt.solvers.ipopt_exact import DEFAULTS as IPOPT_DEFAULTS
from drakebots.trajopt.solvers.ipopt_exact import Monitor, Raw, Watch
from drakebots.trajopt.solvers.mathematical_program import Lowered, lower

IDS = {"snopt": SnoptSolver.id(), "ipopt": IpoptSolver.id()}
"""Drake's solvers by name: options set on a MathematicalProgram go by these."""

SOLVERS = tuple(IDS)

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

_LARGEST = 2**28
"""Largest workspace in words: 2 GB of real numbers."""


TIME_LIMIT = 34
"""The `info` of a solve that ran into its time limit."""

STORAGE = (82, 83, 84)
"""The `info` of a solve that ran out of workspace."""


class _Stop(Exception):
    """Ends a solver from its callback; users never see it."""


def _look(watch: Watch, lowered: Lowered):
    """A callback that shows a watch each point a solver evaluates (SNOPT) or reaches
    (IPOPT)."""
    program = lowered.program

    def look(values: np.ndarray) -> None:
        x = lowered.physical(values)
        rows = program.values(x) / program.row_scale
        if watch.sees(x, program.objective(x), rows):
            raise _Stop

    return look


def _settled(watch: Watch, error: BaseException) -> str:
    """The status that an exception of a solver stands for; raises any other exception.

    SNOPT turns any exception of a callback or a binding into a RuntimeError with its
    name, KeyboardInterrupt too.
    """
    cause = watch.error or error
    if watch.error is None and watch.reason:
        return watch.reason
    if isinstance(cause, KeyboardInterrupt) or "KeyboardInterrupt" in str(error):
        return "interrupted"
    if watch.error is None and is_ending():
        return "interrupted"
    raise cause


def solve_drake(
    program: Program,
    x0: np.ndarray,
    *,
    solver: str = "snopt",
    options: Mapping[str, Any] | None = None,
    monitor: Monitor | Watch | None = None,
    time_limit: float | None = None,
    lowered: Lowered | None = None,
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
            trial points of its line search included, IPOPT at every iteration. Or a
            watch of its own.
        time_limit: limit of the wall time [s], checked when the monitor is called,
            and within SNOPT's subproblems.
        lowered: the program as a MathematicalProgram where there is one.

    Returns:
        The solver's answer when it claims success, else the best point seen:
        feasible first (scaled rows within :data:`.ipopt_exact.FEASIBLE`), then
        cheapest.

    Raises:
        UnknownName: for a solver that is not in :data:`SOLVERS`.
        InvalidInput: for an option that the solver does not know, or a bad guess.
        Exception: any exception of the monitor.
    """
    check_value("solver", solver, one_of("solver", SOLVERS))
    x0 = program.check_guess(x0)
    began = time.monotonic()
    deadline = None if time_limit is None else began + time_limit
    watch = monitor if isinstance(monitor, Watch) else Watch(program, monitor, deadline)
    settings = _settings(solver, program, options, time_limit)
    lowered = lowered or lower(program, scaled=True, merged=True)
    look = lowered.prog.AddVisualizationCallback(_look(watch, lowered), lowered.x)
    built = time.monotonic() - began
    try:
        with tempfile.TemporaryDirectory() as folder, watch.ctrl_c:
            run = _snopt if solver == "snopt" else _ipopt
            given = lowered, lowered.values(x0), settings, watch, Path(folder)
            values, status, success, log = run(*given)
    finally:
        lowered.prog.RemoveVisualizationCallback(look)
    x = x0 if watch.best is None else watch.best.x
    if values is not None and success:
        x = lowered.physical(values)
    seconds = {"build": built, "total": time.monotonic() - began}
    return Raw(x, status, success, log, seconds)


def _settings(solver: str, program: Program, options, time_limit) -> dict[str, Any]:
    given = dict(options or {})
    if solver == "ipopt":
        return {**_IPOPT, **given}
    given = check_options(given)
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


def _snopt(lowered: Lowered, values, settings, watch: Watch, folder: Path):
    """Runs SNOPT, with a larger workspace where it asks for one.

    Returns:
        x in solver units or None, status, whether it succeeded, and the log.
    """
    own = settings.pop("Print file", None)
    for attempt in range(4):
        path = Path(own) if own else folder / f"snopt_{attempt}.txt"
        # SNOPT appends to the file: read only what this run writes.
        start, solver = len(_text(path)), SnoptSolver()
        result, status = _guarded(solver, lowered, values, settings, watch, path)
        text = _text(path)[start:]
        log = read_log(text)
        if result is None:
            return None, status, False, log
        info = result.get_solver_details().info
        if info not in STORAGE:
            break
        for kind in ("real", "integer"):
            name = f"Total {kind} workspace"
            settings[name] = min(4 * settings[name], _LARGEST)
    if info == TIME_LIMIT and watch.deadline is not None:
        return None, "Time_Limit", False, log
    said = re.findall(rf"INFO +{info} -- (.*)", text)
    status = f"SNOPT {info}: {said[-1].strip() if said else 'see the User Guide'}"
    return result.get_x_val(), status, info in (1, 2), log


def _ipopt(lowered: Lowered, values, settings, watch: Watch, folder: Path):
    """Runs Drake's IPOPT; returns as :func:`_snopt`."""
    path = Path(settings.pop("output_file", folder / "ipopt.txt"))
    chosen = {"file_print_level": 5, **settings, "output_file": str(path)}
    result, status = _guarded(IpoptSolver(), lowered, values, chosen, watch)
    log = read_log(_text(path))
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


def _guarded(solver, lowered: Lowered, values, settings, watch: Watch, printed=None):
    """(result, "") or (None, why it was stopped); `printed` is SNOPT's file."""
    options = SolverOptions()
    if printed is not None:
        options.SetOption(CommonSolverOption.kPrintFileName, str(printed))
    for name, value in settings.items():
        _set(options, solver.solver_id(), name, value)
    try:
        return solver.Solve(lowered.prog, values, options), ""
    except BaseException as error:
        text = str(error)
        if re.search("[Ee]rror setting (Snopt|IPOPT)|Snopt parameter", text):
            raise InvalidInput(f"{solver.SolverName()}: {text}") from None
        return None, _settled(watch, error)


def _text(path: Path) -> str:
    return path.read_text(errors="replace") if os.path.exists(path) else ""


# --- the solvers' printed logs ----------------------------------------------------

_COLUMNS = {
    column: key
    for key, columns in (
        ("number", "Major iter"),
        ("objective", "MeritFunction Objective objective"),
        ("infeasibility", "Feasible inf_pr"),
        ("optimality", "Optimal inf_du"),
        ("minors", "Minors"),
        ("step", "Step"),
        ("evaluations", "nCon nObj"),
    )
    for column in columns.split()
}
"""What the columns of the tables of SNOPT and IPOPT are called in a log."""


def read_log(text: str) -> dict[str, list[float]]:
    """The table of iterations that a solver printed, by columns.

    `number`, `objective` (SNOPT's merit function where it has one), `infeasibility` (0
    without constraints) and `optimality`, as the solver scales them; of SNOPT's major
    iterations also `minors`, `step` (0 for none) and `evaluations`.
    """
    rows, header = [], []
    for line in text.splitlines():
        words = line.split()
        if words[:2] in (["Itns", "Major"], ["iter", "objective"]):
            header = words
        elif row := _row(words, header):
            rows.append(row)
    keys = dict.fromkeys([*_COLUMNS.values(), *(key for row in rows for key in row)])
    return {key: [row.get(key, 0.0) for row in rows] for key in keys} if rows else {}


def _row(words: list[str], header: list[str]) -> dict[str, float] | None:
    """One line of the table, or None for another line."""
    if "Step" in header and words[3:] and words[3].isdigit():
        words = [*words[:3], "0", *words[3:]]  # no step before the first iterate
    cells = {_COLUMNS[a]: b for a, b in zip(header, words) if a in _COLUMNS}
    if len(cells) < len(_COLUMNS.keys() & header) or not cells:
        return None
    cells["number"] = cells["number"].rstrip("r")  # IPOPT's restoration phase
    if not cells["number"].isdigit():
        return None
    try:
        return {key: float(cell.strip("()")) for key, cell in cells.items()}
    except ValueError:
        return None


# --- SNOPT's options ---------------------------------------------------------------


def _names(text: str) -> tuple[str, ...]:
    return tuple(" ".join(text.split()).split(", "))


TEXTS = _names("""
Derivative linesearch, Hessian full memory, Hessian limited memory, LU complete
pivoting, LU partial pivoting, LU rook pivoting, Nonderivative linesearch, Print file,
QPSolver, QPSolver CG, QPSolver Cholesky, QPSolver QN, Sticky parameters, Suppress
parameters, System information
""")
"""Options whose value is a word, or "" where the name says it all."""

OPTIONS = TEXTS + _names("""
Central difference interval, CG iterations, CG tolerance, Check frequency, Crash option,
Crash tolerance, Derivative level, Derivative option, Difference interval, Elastic mode,
Elastic weight, Expand frequency, Factorization frequency, Feasibility tolerance,
Function precision, Hessian dimension, Hessian flush, Hessian frequency, Hessian
updates, Infinite bound, Iterations limit, Linesearch tolerance, LU density tolerance,
LU factor tolerance, LU singularity tolerance, LU swap tolerance, LU update tolerance,
Major feasibility tolerance, Major iterations limit, Major optimality tolerance, Major
print level, Major step limit, Minor feasibility tolerance, Minor iterations limit,
Minor optimality tolerance, Minor print level, New superbasics limit, Optimality
tolerance, Partial price, Penalty parameter, Pivot tolerance, Print frequency, Proximal
iterations limit, Proximal point method, Reduced Hessian dimension, Save frequency,
Scale option, Scale tolerance, Start constraint check at column, Start objective check
at column, Stop constraint check at column, Stop objective check at column, Summary
frequency, Superbasics limit, Time limit, Timing level, Total integer workspace, Total
real workspace, Unbounded objective value, Unbounded step size, Verify gradients, Verify
level, Violation limit
""")
"""Names of options, without their values. Options that are files by Fortran unit
numbers or change the problem (maximize, feasible point) are left out."""

_BY_KEY = {name.lower(): name for name in OPTIONS}
_TEXT, _NUMBER = instance(str, "a text"), between(-math.inf, math.inf)


def check_options(options: Mapping[str, Any]) -> dict[str, Any]:
    """The options under the manual's spelling.

    Case and repeated blanks do not matter.

    Raises:
        UnknownName: for an unknown name.
        InvalidInput: for a value that is not a number where SNOPT needs one: it would
            read a text as 0.
    """
    out = {}
    for given, value in options.items():
        name = _BY_KEY.get(" ".join(str(given).lower().split()))
        if name is None:
            raise UnknownName("option of SNOPT", given, OPTIONS)
        rule = _TEXT if name in TEXTS else _NUMBER
        value = check_value(f"SNOPT's option {name!r}", value, rule)
        out[name] = int(value) if name.startswith("Total") else value
    return out
