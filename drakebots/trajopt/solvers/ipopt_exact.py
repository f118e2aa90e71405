"""IPOPT with exact sparse Hessians (CasADi's build).

Its linear systems are solved by our kkt.c (option linear_solver "structured", the
default where it was compiled), by MUMPS ("mumps"), by SPRAL ("spral"), or by HSL's
solvers of users who have them (linear_solver "ma57", hsllib "libhsl.so"). By default
MUMPS is tried where IPOPT failed and kkt.c was in doubt about a factorization.
"""

from __future__ import annotations

import os
import re
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cache
from typing import Any

import casadi as ca
import numpy as np
from threadpoolctl import ThreadpoolController

from drakebots.core.errors import InvalidInput
from drakebots.core.run import CtrlC
from drakebots.core.threads import DENSE
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
    # METIS: half the time of MUMPS's own choice on HAMR (scripts/bench/scaling.py).
    "mumps_pivot_order": 5,
    "nlp_scaling_method": "none",
    "sb": "yes",
}


FEASIBLE = 1e-6
"""Scaled violation below which the objective decides which iterate is best."""


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

    @property
    def rank(self) -> tuple[float, float]:
        """Smaller is better: feasible first, then cheap; last what is not finite."""
        if not np.isfinite([self.infeasibility, self.objective]).all():
            return np.inf, np.inf
        return max(self.infeasibility, FEASIBLE), self.objective


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
        multipliers: multipliers of the rows (scaled).
        bound_multipliers: multipliers of the variables' bounds (scaled).
    """

    x: np.ndarray
    status: str
    success: bool
    log: Mapping[str, list[float]]
    seconds: Mapping[str, float]
    multipliers: np.ndarray | None = None
    bound_multipliers: np.ndarray | None = None


class Watch:
    """What is done at every iterate of a running solver.

    Args:
        program: the program.
        monitor: called with the iterate; True stops the solver.
        deadline: time at which the solver is to stop, of `time.monotonic` [s].

    Attributes:
        best: the best iterate so far; None before there was a finite one.
        last: the last iterate.
        reason: why the solver is to stop; "" while it goes on.
        error: what the monitor raised, or Ctrl-C.
        ctrl_c: a context in which Ctrl-C waits for the next iterate.
    """

    def __init__(
        self,
        program: Program,
        monitor: Monitor | None = None,
        deadline: float | None = None,
    ):
        self.program, self.monitor, self.deadline = program, monitor, deadline
        self.best: Iteration | None = None
        self.last: Iteration | None = None
        self.error: BaseException | None = None
        self.reason, self.count, self.ctrl_c = "", 0, CtrlC()
        scale = program.row_scale
        self._low, self._high = program.lower / scale, program.upper / scale

    def sees(self, x: np.ndarray, objective: float, rows: np.ndarray) -> bool:
        """Whether to stop at an iterate, of which rows are scaled."""
        try:
            excess = np.maximum(self._low - rows, rows - self._high)
            worst = float(max(excess.max(initial=0.0), 0.0))
            self.last = Iteration(self.count, float(objective), worst, x)
            self.count += 1
            if self.last.rank < (self.best.rank if self.best else (np.inf, np.inf)):
                self.best = self.last
            if self.monitor is not None and self.monitor(self.last):
                self.reason = "User_Requested_Stop"
            if self.deadline is not None and time.monotonic() > self.deadline:
                self.reason = "Time_Limit"
            self.ctrl_c.check()
        except BaseException as error:  # the solver's caller raises it again
            self.error = error
        return bool(self.reason or self.error)


class _Callback(ca.Callback):
    """Shows a watch IPOPT's iterates."""

    def __init__(self, watch: Watch):
        ca.Callback.__init__(self)
        self.watch, program = watch, watch.program
        n, m = program.num_variables, program.num_rows
        self._sizes = {"x": n, "f": 1, "g": m, "lam_x": n, "lam_g": m, "lam_p": 0}
        names = list(map(ca.nlpsol_out, range(ca.nlpsol_n_out())))
        self._used = [names.index(name) for name in ("x", "f", "g")]
        self.construct("monitor", {})

    def get_n_in(self):
        return ca.nlpsol_n_out()

    def get_sparsity_in(self, i):
        return ca.Sparsity.dense(self._sizes[ca.nlpsol_out(i)], 1)

    def has_eval_buffer(self):
        return True

    def eval_buffer(self, arg, res):
        # Views of the solver's own numbers: as CasADi's matrices they would take a
        # twentieth of a small program's time.
        x, f, g = (np.frombuffer(arg[i]) for i in self._used)
        stop = self.watch.sees(x * self.watch.program.x_scale, f[0], g)
        np.frombuffer(res[0])[:] = stop
        return 0


def solve_exact(
    program: Program,
    x0: np.ndarray,
    *,
    options: Mapping[str, Any] | None = None,
    monitor: Monitor | Watch | None = None,
    assembled: Assembled | None = None,
) -> Raw:
    """Solves a program by IPOPT with exact Hessians.

    Args:
        program: the program.
        x0: the initial guess.
        options: options of IPOPT, which override :data:`DEFAULTS`.
        monitor: see :data:`Monitor`; or a watch of its own.
        assembled: the program's functions, if they were assembled before.

    Raises:
        InvalidInput: for an option that IPOPT does not know.
        Exception: any exception of the monitor.
    """
    own = {"linear_solver": "structured" if kkt.available() else "mumps"}
    settings = own | DEFAULTS | {"print_level": 0} | dict(options or {})
    _check_spral(settings)
    watch = monitor if isinstance(monitor, Watch) else Watch(program, monitor)
    began = time.perf_counter()
    assembled = assembled or assemble(program)
    built = {"build": time.perf_counter() - began}
    if settings["linear_solver"] != "structured":
        return _solved(program, x0, settings, watch, assembled, built)
    with kkt.socket(program) as socket:
        raw = _solved(program, x0, settings | socket, watch, assembled, built)
        doubted = kkt.doubted()
    asked = "linear_solver" in (options or {})
    if raw.success or watch.reason or watch.error or asked or not doubted:
        return raw
    built = {"build": sum(raw.seconds.values())}
    mumps = settings | {"linear_solver": "mumps"}
    return _solved(program, x0, mumps, watch, assembled, built)


def _solved(
    program: Program,
    x0: np.ndarray,
    settings: dict[str, Any],
    watch: Watch,
    assembled: Assembled,
    seconds: dict[str, float],
) -> Raw:
    """:func:`solve_exact` with all options of IPOPT."""
    callback = _Callback(watch)
    solver = _ipopt(program, assembled, callback, settings)
    out = _run(solver, program, x0, watch)
    if watch.error is not None and not isinstance(watch.error, KeyboardInterrupt):
        raise watch.error
    if out is None:
        x = x0 if watch.last is None else watch.last.x
        return Raw(x, "interrupted", False, {}, seconds)
    stats = solver.stats()
    status = stats["return_status"] if watch.error is None else "interrupted"
    return Raw(
        np.asarray(out["x"]).ravel() * program.x_scale,
        status,
        status in ("Solve_Succeeded", "Solved_To_Acceptable_Level"),
        {k: list(map(float, v)) for k, v in (stats.get("iterations") or {}).items()},
        seconds | _seconds(stats),
        np.asarray(out["lam_g"]).ravel(),
        np.asarray(out["lam_x"]).ravel(),
    )


def _ipopt(
    program: Program,
    assembled: Assembled,
    callback: _Callback,
    settings: Mapping[str, Any],
) -> ca.Function:
    """IPOPT as a function of CasADi.

    Raises:
        InvalidInput: for an option that IPOPT does not know.
    """
    x, p = ca.MX.sym("x", program.num_variables), ca.MX.sym("p", 0)
    f, g = ca.densify(assembled.objective(x, p)), assembled.rows(x, p)
    options = {
        "grad_f": assembled.gradient,
        "jac_g": assembled.jacobian,
        "hess_lag": assembled.hessian,
        "iteration_callback": callback,
        "print_time": False,
        "error_on_fail": False,
        "calc_lam_p": False,
        "calc_multipliers": False,
        "no_nlp_grad": True,
        **{f"ipopt.{key}": value for key, value in settings.items()},
    }
    try:
        return ca.nlpsol("ipopt", "ipopt", {"x": x, "p": p, "f": f, "g": g}, options)
    except RuntimeError as error:
        raise InvalidInput(f"IPOPT refuses an option: {_last_line(error)}") from None


def _run(solver: ca.Function, program: Program, x0: np.ndarray, watch: Watch):
    """IPOPT's output; None where Ctrl-C left none."""
    scale, row_scale = program.x_scale, program.row_scale
    try:
        # Raised while IPOPT runs, KeyboardInterrupt would be a warning of CasADi's.
        with _dense_libraries().limit(limits=1), watch.ctrl_c:
            return solver(
                x0=np.asarray(x0, float) / scale,
                lbx=program.x_lower / scale,
                ubx=program.x_upper / scale,
                lbg=program.lower / row_scale,
                ubg=program.upper / row_scale,
            )
    except KeyboardInterrupt as error:
        watch.error = watch.error or error
        return None


@cache
def _dense_libraries() -> ThreadpoolController:
    """BLAS and LAPACK as loaded by SciPy and with IPOPT; to search them takes 4 ms.

    They get one thread: fronts are small, and threads that wait cost more. A sum that
    is shared among threads also rounds in another way, by which a nonconvex program can
    end in another optimum: the machine's number of cores must not decide that.
    """
    ca.has_nlpsol("ipopt")  # loads it; load_nlpsol warns where that was done before
    return ThreadpoolController().select(internal_api=list(DENSE))


def _seconds(stats: Mapping[str, Any]) -> dict[str, float]:
    """Wall time by activity, of IPOPT's statistics [s]."""
    parts = {
        "rows and objective": ("nlp_g", "nlp_f"),
        "Jacobian and gradient": ("nlp_jac_g", "nlp_grad_f"),
        "Hessian": ("nlp_hess_l",),
        "total": ("total",),
    }
    return {
        name: sum(stats.get(f"t_wall_{part}", 0.0) for part in of)
        for name, of in parts.items()
    }


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
    last = str(error).strip().rpartition("\n")[2].strip()
    # CasADi's messages start with its source file: "....cpp:320: message".
    return re.sub(r"^\S+\.[ch]pp:\d+:\s*", "", last)
