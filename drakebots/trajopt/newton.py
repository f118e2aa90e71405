"""Solves one interval's complementarity problem; see `stepping`.

First Newton's method for generalized equations (Josephy 1979), a linear
complementarity problem an iteration. With a step so long that the body could
fall over within it, the linearised problem may have no answer although the
step has one; then the complementarity is smoothed,

    a + b - sqrt(a^2 + b^2 + 2 sigma^2) = 0        (Kanzow 1996)

and sigma taken to zero, and the rows found active are solved exactly.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from drakebots.errors import NoSolution
from drakebots.multibody.lcp import solve_lcp
from drakebots.trajopt.linearized import Linearization, StepPoint

SMOOTHING = (1.0, 0.1, 1e-2, 1e-3, 1e-4, 1e-5, 1e-6)
"""sigma, in units of the step's own forces, and of length and speed."""


def josephy_newton(
    problem: StepPoint, start, max_iterations: int
) -> tuple[Linearization, int]:
    """The solved point and the number of iterations.

    Args:
        problem: the rows.
        start: (q1, lam, z).
        max_iterations: before it gives up.

    Raises:
        NoSolution: naming the worst rows.
    """
    at = problem.at(*start)
    for iteration in range(max_iterations + 1):
        if at.error <= 1:
            return at, iteration
        try:
            target = _linear(problem, at)
        except np.linalg.LinAlgError as error:
            raise NoSolution(
                "a step's equations are singular; do its loops' rows depend on "
                "each other?",
                at.worst(),
            ) from error
        at = _damped(problem, at, target)
    raise NoSolution(
        f"a step of {problem.stepper.h:g} was not solved in {max_iterations} Newton "
        "iterations; try a smaller step",
        at.worst(),
    )


def _linear(problem: StepPoint, at: Linearization):
    """(q1, lam, z) that solves the rows linearised at a point."""
    n, nc = len(at.q1), problem.stepper.num_contacts
    # One solve for all: scipy's LU wakes its threads for each of them.
    columns = np.column_stack([at.F - at.B @ at.z, at.B])
    if not (np.isfinite(at.A).all() and np.isfinite(columns).all()):
        raise NoSolution("a step has left what can be computed", at.worst())
    solved = -np.linalg.solve(at.A, columns)
    y, response, z = solved[:, 0], solved[:, 1:], at.z
    if len(z):
        # Rows phi over h are speeds, like those of friction: Z is symmetric but
        # for the rows of the cone.
        over = np.ones(len(z))
        over[:nc] /= problem.stepper.h
        Z = over[:, None] * (at.W_y @ response + at.W_z)
        z = _solve(Z, over * (at.W + at.W_y @ y - at.W_z @ z), z)
        y = y + response @ z
    return at.q1 + y[:n], at.lam + y[n:], z


def _damped(problem: StepPoint, at: Linearization, target) -> Linearization:
    """The point on the way to `target` where the worst row is smaller.

    Where none is found the whole step is taken: near a solution Newton's method
    converges though the worst row may grow for an iteration.
    """
    now = (at.q1, at.lam, at.z)
    whole = None
    for part in (1.0, 0.5, 0.25, 0.1, 0.02):
        trial = problem.at(*(a + part * (b - a) for a, b in zip(now, target)))
        whole = whole or trial
        if trial.error <= max(1.0, (1 - 0.1 * part) * at.error):
            return trial
    return whole


def _solve(Z: np.ndarray, z0: np.ndarray, z: np.ndarray) -> np.ndarray:
    """The complementarity problem, made regular about z where it is singular.

    Feet that share a load have no unique forces. The regular problem has the
    same answer once Newton's method has converged to z.
    """
    try:
        return solve_lcp(Z, z0)
    except NoSolution:
        small = 1e-5 * np.abs(np.diag(Z)).max(initial=1e-12)
        return solve_lcp(Z + small * np.eye(len(z)), z0 - small * z)


def smoothed_newton(
    problem: StepPoint, start, max_iterations: int
) -> tuple[Linearization, int]:
    """As :func:`josephy_newton`, by smoothing; iterations are for each sigma.

    Raises:
        NoSolution: naming the worst rows.
    """
    at, iterations = problem.at(*start), 0
    for sigma in SMOOTHING:
        for _ in range(max_iterations):
            residual, J = _smooth_rows(at, sigma)
            size = np.linalg.norm(residual)
            if not np.isfinite(size):
                raise NoSolution("a step has left what can be computed", at.worst())
            if size <= max(0.1 * sigma, 1e-9):
                break
            at, iterations = _descend(problem, at, residual, J, sigma), iterations + 1
    for _ in range(max_iterations):
        if at.error <= 1:
            return _snapped(problem, at), iterations
        residual, J = _smooth_rows(at, None)
        at, iterations = _moved(problem, at, _direction(J, residual)), iterations + 1
    raise NoSolution(
        f"a step of {problem.stepper.h:g} was not solved; try a smaller step",
        at.worst(),
    )


def _smooth_rows(at: Linearization, sigma: float | None):
    """Residual and Jacobian over (y, z); sigma None for min(a, b)."""
    tol = at.tolerance
    F_size, W_size, z_size = at.F_size / tol, at.W_size / tol, at.z_size / tol
    a, b = at.z / z_size, at.W / W_size
    if sigma is None:
        rows, da = np.minimum(a, b), np.where(a < b, 1.0, 0.0)
        db = 1 - da
    else:
        root = np.sqrt(a**2 + b**2 + 2 * sigma**2)
        rows, da, db = a + b - root, 1 - a / root, 1 - b / root
    residual = np.concatenate([at.F / F_size, rows])
    ny = at.A.shape[1]
    J = np.zeros((len(residual), ny + len(at.z)))
    J[: len(at.F), :ny] = at.A / F_size[:, None]
    J[: len(at.F), ny:] = at.B / F_size[:, None]
    J[len(at.F) :, :ny] = (db / W_size)[:, None] * at.W_y
    J[len(at.F) :, ny:] = (db / W_size)[:, None] * at.W_z + np.diag(da / z_size)
    return residual, J


def _direction(J: np.ndarray, residual: np.ndarray) -> np.ndarray:
    # Least squares: forces that feet share are not unique.
    return -np.linalg.lstsq(J, residual, rcond=1e-12)[0]


def _moved(problem, at: Linearization, d: np.ndarray) -> Linearization:
    n, ny = len(at.q1), len(at.q1) + len(at.lam)
    return problem.at(at.q1 + d[:n], at.lam + d[n:ny], at.z + d[ny:])


def _descend(problem, at: Linearization, residual, J, sigma: float) -> Linearization:
    size, d = np.linalg.norm(residual), _direction(J, residual)
    for part in 0.5 ** np.arange(8):
        trial = _moved(problem, at, part * d)
        if np.linalg.norm(_smooth_rows(trial, sigma)[0]) <= (1 - 0.1 * part) * size:
            break
    return trial


def _snapped(problem, at: Linearization) -> Linearization:
    """Multipliers of inactive rows are zero, not rounding."""
    z = np.where(at.z / at.z_size < at.W / at.W_size, 0.0, np.maximum(at.z, 0.0))
    exact = problem.at(at.q1, at.lam, z)
    return exact if exact.error <= 1 else replace(at, z=np.maximum(at.z, 0.0))
