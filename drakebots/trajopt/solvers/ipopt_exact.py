"""IPOPT with exact sparse Hessians (CasADi's build).

Its linear systems are solved by MUMPS (option linear_solver "mumps", the default), by
our kkt.c ("structured", where that was compiled), by SPRAL ("spral"), or by HSL's
solvers of users who have them (linear_solver "ma57", hsllib "libhsl.so").
"""

from __future__ import annotations

import os
import re
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import casadi as ca
import numpy as np

from drakebots.core.errors import InvalidInput
from drakebots.core.run import CtrlC
from drakebots.trajopt.program import Assembled, Program, assemble
from drakebots.trajopt.solvers import kkt

DEFAULTS: dict[str, Any] = {
    "tol": 1e-6,
    "constr_viol_tol": 1e-8,
    "acceptable_tol": 1e-4,
    "acceptable_constr_viol_tol": 1e-7,
    "acceptable_compl_inf_tol": 1e-4,
    "acceptable_iter": 8,
    "bound_relax_factor": 1e-9,
    "mu_strategy": "adaptive",
    "max_iter": 3000,
    # "structured" is faster, but misled by nearly singular systems (docs/planning.md).
    "linear_solver": "mumps",
    # METIS: half the time of MUMPS's own choice on HAMR (scripts/bench/scaling.py).
    "mumps_pivot_order": 5,
    "nlp_scaling_method": "none",
    "sb": "yes",
}


@dataclass(frozen=True)
class Iteration:
    """An iterate that a running solver reports.

    Attributes:
        number: number of the iteration.
        objective: objective of the iterate.
        infeasibility: largest violation of a row (scaled).
        x: the iterate in physical units.
    """

    number: int
    objective: float
    infeasibility: float
    x: np.ndarray = field(repr=False)


Monitor = Callable[[Iteration], bool]
"""Called at every iteration; True stops the solver."""


@dataclass(frozen=True)
class Raw:
    """The output of a solver, before it is judged.

    Attributes:
        x: the last iterate.
        status: status reported by the solver.
        success: whether the solver claims an optimal or acceptable point.
        log: columns of the iteration log.
        seconds: wall time by activity [s].
        multipliers: multipliers of the rows (scaled), for warm starts.
        bound_multipliers: multipliers of the variables' bounds (scaled).
    """

    x: np.ndarray
    status: str
    success: bool
    log: Mapping[str, list[float]]
    seconds: Mapping[str, float]
    multipliers: np.ndarray | None = None
    bound_multipliers: np.ndarray | None = None


class _Callback(ca.Callback):
    """Passes iterates to the monitor, which may stop the solver."""

    def __init__(self, program: Program, monitor: Monitor | None, ctrl_c: CtrlC):
        ca.Callback.__init__(self)
        self.program, self.monitor, self.ctrl_c = program, monitor, ctrl_c
        self.count, self.last, self.error = 0, None, None
        n, m = program.num_variables, program.num_rows
        self._sizes = {"x": n, "f": 1, "g": m, "lam_x": n, "lam_g": m, "lam_p": 0}
        scale = program.row_scale
        self._low, self._high = program.lower / scale, program.upper / scale
        names = list(map(ca.nlpsol_out, range(ca.nlpsol_n_out())))
        self._used = [names.index(name) for name in ("x", "f", "g")]
        self.construct("monitor", {})

    def get_n_in(self):
        return ca.nlpsol_n_out()

    def get_n_out(self):
        return 1

    def get_name_in(self, i):
        return ca.nlpsol_out(i)

    def get_name_out(self, i):
        return "ret"

    def get_sparsity_in(self, i):
        return ca.Sparsity.dense(self._sizes[ca.nlpsol_out(i)], 1)

    def has_eval_buffer(self):
        return True

    def eval_buffer(self, arg, res):
        # Views of the solver's own numbers: as CasADi's matrices they would take a
        # twentieth of a small program's time.
        x, f, g = (np.frombuffer(arg[i]) for i in self._used)
        try:
            excess = np.maximum(self._low - g, g - self._high)
            self.last = Iteration(
                self.count,
                float(f[0]),
                float(max(excess.max(initial=0.0), 0.0)),
                x * self.program.x_scale,
            )
            self.count += 1
            stop = bool(self.monitor(self.last)) if self.monitor else False
            self.ctrl_c.check()
        except BaseException as error:  # raised again by solve_exact
            self.error, stop = error, True
        np.frombuffer(res[0])[:] = stop
        return 0


def solve_exact(
    program: Program,
    x0: np.ndarray,
    *,
    options: Mapping[str, Any] | None = None,
    monitor: Monitor | None = None,
    assembled: Assembled | None = None,
    multipliers: tuple[np.ndarray, np.ndarray] | None = None,
    threads: int | None = None,
) -> Raw:
    """Solves a program by IPOPT with exact Hessians.

    Args:
        program: the program.
        x0: the initial guess.
        options: options of IPOPT, which override :data:`DEFAULTS`.
        monitor: see :data:`Monitor`.
        assembled: the program's functions, if they were assembled before.
        multipliers: multipliers of rows and bounds for a warm start.
        threads: number of threads for the derivatives; None for all cores.

    Raises:
        InvalidInput: for an option that IPOPT does not know.
    """
    settings = DEFAULTS | {"print_level": 0} | dict(options or {})
    if settings["linear_solver"] != "structured":
        return _solve(program, x0, settings, monitor, assembled, multipliers, threads)
    with kkt.socket() as socket:
        settings |= socket
        return _solve(program, x0, settings, monitor, assembled, multipliers, threads)


def _solve(
    program: Program,
    x0: np.ndarray,
    settings: dict[str, Any],
    monitor: Monitor | None,
    assembled: Assembled | None,
    multipliers: tuple[np.ndarray, np.ndarray] | None,
    threads: int | None,
) -> Raw:
    """:func:`solve_exact` with all options of IPOPT."""
    threads = threads or os.cpu_count() or 1
    began = time.perf_counter()
    functions = assembled or assemble(program, threads=threads)
    built = time.perf_counter() - began
    ctrl_c = CtrlC()
    callback = _Callback(program, monitor, ctrl_c)
    x, p = ca.MX.sym("x", program.num_variables), ca.MX.sym("p", 0)
    f, g = ca.densify(functions.objective(x, p)), functions.rows(x, p)
    nlp = {"x": x, "p": p, "f": f, "g": g}
    _check_spral(settings)
    try:
        solver = ca.nlpsol(
            "ipopt",
            "ipopt",
            nlp,
            {
                "grad_f": functions.gradient,
                "jac_g": functions.jacobian,
                "hess_lag": functions.hessian,
                "iteration_callback": callback,
                "print_time": False,
                "error_on_fail": False,
                "calc_lam_p": False,
                "calc_multipliers": False,
                "no_nlp_grad": True,
                **{f"ipopt.{key}": value for key, value in settings.items()},
            },
        )
    except RuntimeError as error:
        raise InvalidInput(f"IPOPT refuses an option: {_last_line(error)}") from None
    scale, row_scale = program.x_scale, program.row_scale
    arguments = {
        "x0": np.asarray(x0, float) / scale,
        "lbx": program.x_lower / scale,
        "ubx": program.x_upper / scale,
        "lbg": program.lower / row_scale,
        "ubg": program.upper / row_scale,
    }
    if multipliers is not None:
        arguments["lam_g0"], arguments["lam_x0"] = multipliers
    try:
        # Raised while IPOPT runs, KeyboardInterrupt would be a warning of CasADi's.
        with ctrl_c:
            out = solver(**arguments)
    except KeyboardInterrupt:
        callback.error = callback.error or KeyboardInterrupt()
        out = None
    if callback.error is not None and not isinstance(callback.error, KeyboardInterrupt):
        raise callback.error
    if out is None:
        x = x0 if callback.last is None else callback.last.x
        return Raw(x, "interrupted", False, {}, {"build": built})
    stats = solver.stats()
    if callback.error is not None:
        stats["return_status"] = "interrupted"
    iterations = stats.get("iterations") or {}
    seconds = {
        "build": built,
        "rows and objective": stats.get("t_wall_nlp_g", 0.0)
        + stats.get("t_wall_nlp_f", 0.0),
        "Jacobian and gradient": stats.get("t_wall_nlp_jac_g", 0.0)
        + stats.get("t_wall_nlp_grad_f", 0.0),
        "Hessian": stats.get("t_wall_nlp_hess_l", 0.0),
        "total": stats.get("t_wall_total", 0.0),
    }
    return Raw(
        np.asarray(out["x"]).ravel() * scale,
        stats["return_status"],
        stats["return_status"] in ("Solve_Succeeded", "Solved_To_Acceptable_Level"),
        {key: list(map(float, values)) for key, values in iterations.items()},
        seconds,
        np.asarray(out["lam_g"]).ravel(),
        np.asarray(out["lam_x"]).ravel(),
    )


def _check_spral(settings: Mapping[str, Any]) -> None:
    # SPRAL does not run unless OpenMP allows cancellation, which is read at start.
    if settings.get("linear_solver") == "spral" and (
        os.environ.get("OMP_CANCELLATION", "").upper() != "TRUE"
    ):
        raise InvalidInput(
            "linear_solver spral needs OMP_CANCELLATION=TRUE and OMP_PROC_BIND=TRUE in "
            "the environment before Python starts; set them, or use mumps"
        )


def _last_line(error: Exception) -> str:
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    last = lines[-1] if lines else "unknown"
    # CasADi's messages start with its source file: "....cpp:320: message".
    return re.sub(r"^\S+\.[ch]pp:\d+:\s*", "", last)
