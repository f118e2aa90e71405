"""Newton's methods for one interval of the discrete mechanics.

The unknowns are y = (q1, lam) and z = (gam, beta, psi) >= 0 of

    F(y, z) = 0,     0 <= W(y, z)  _|_  z >= 0.

First the method for generalized equations (Josephy 1979), which solves a linear
complementarity problem in every iteration. With a step so long that the body could
fall over within it, the linearised problem may have no solution although the step
has one; then the complementarity is smoothed,

    a + b - sqrt(a^2 + b^2 + 2 sigma^2) = 0        (Kanzow 1996)

sigma is taken to zero, and the rows found active are solved exactly.

A library of variational_stepper.py, without a command.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import numpy as np

from drakebots.core.errors import NoSolution
from drakebots.multibody import solve_lcp
from drakebots.trajopt.contact_implicit.system import DIRECTIONS
from drakebots.trajopt.program import Block

ROUNDING = 32 * np.finfo(float).eps
"""Rounding error of a row, relative to the terms that cancel in it."""

SMOOTHING = (1.0, 0.1, 1e-2, 1e-3, 1e-4, 1e-5, 1e-6)
"""Values of sigma, in units of the step's own forces, of length and of speed."""


# --- the rows of an interval and their Jacobians ----------------------------


class Rows:
    """A block's values and Jacobian by the names of its rows and inputs."""

    def __init__(self, block: Block):
        self.block = block
        self._pattern, self._jacobian = block.jacobian_pattern, block.jacobian_function
        self.columns = _slices(block.inputs)
        self.rows = _slices(block.rows)

    def __call__(self, parts: dict[str, np.ndarray], d=()):
        """Values and Jacobian as (name) -> r and (name, input) -> dr/dw."""
        w = np.concatenate([np.atleast_1d(parts[name]) for name in self.columns])
        r, nonzeros = self._jacobian(w, d)
        J = np.zeros((self.block.num_rows, self.block.num_inputs))
        J[self._pattern] = np.asarray(nonzeros).ravel()
        r = np.asarray(r).ravel()
        return (
            lambda name: r[self.rows[name]],
            lambda name, *inputs: np.hstack(
                [J[self.rows[name], self.columns[i]] for i in inputs]
            ),
        )


def _slices(groups) -> dict[str, slice]:
    out, start = {}, 0
    for name, symbol in groups.items():
        out[name] = slice(start, start + symbol.numel())
        start += symbol.numel()
    return out


@dataclass(frozen=True)
class Linearization:
    """The rows of an interval and their Jacobians at a point (y, z), y = (q1, lam).

    Attributes:
        q1, lam, z: the point.
        F, A, B: F(y, z), dF/dy, dF/dz.
        W, W_y, W_z: W(y, z), dW/dy, dW/dz.
        after: the momentum p+ (nq,).
        F_size, W_size, z_size: magnitude of each row that counts as zero.
        names: names of the rows.
        tolerance: this magnitude over the typical size of the row.
    """

    q1: np.ndarray
    lam: np.ndarray
    z: np.ndarray
    F: np.ndarray
    A: np.ndarray
    B: np.ndarray
    W: np.ndarray
    W_y: np.ndarray
    W_z: np.ndarray
    after: np.ndarray
    F_size: np.ndarray
    W_size: np.ndarray
    z_size: np.ndarray
    names: tuple[str, ...] = field(repr=False)
    tolerance: float = 1e-10

    @property
    def _ratios(self) -> np.ndarray:
        gap = np.minimum(self.z / self.z_size, self.W / self.W_size)
        ratios = np.abs(np.concatenate([self.F / self.F_size, gap]))
        return np.where(np.isfinite(ratios), ratios, np.inf)

    @property
    def error(self) -> float:
        """The worst row over the magnitude that counts as zero; solved when <= 1."""
        return float(self._ratios.max(initial=0.0))

    def residual(self) -> dict[str, float]:
        """Largest rows by kind, plant units."""
        n = len(self.q1)
        values = {
            "momentum": self.F[:n],
            "loops": self.F[n:],
            "complementarity": np.minimum(self.z, self.W),
        }
        return {k: float(np.abs(v).max(initial=0.0)) for k, v in values.items()}

    def worst(self, count: int = 3) -> dict[str, float]:
        """The worst rows by name, plant units."""
        rows = np.concatenate([self.F, np.minimum(self.z, self.W)])
        order = np.argsort(-self._ratios)[:count]
        return {self.names[i]: float(abs(rows[i])) for i in order}


class StepPoint:
    """The rows of one interval as a function of its unknowns."""

    def __init__(self, stepper, q0: np.ndarray, p: np.ndarray, u: np.ndarray):
        self.stepper, self.q0, self.p, self.u = stepper, q0, p, u
        system, nc = stepper.system, stepper.num_contacts
        self._no_feet = np.zeros(5 * system.num_feet)
        self._feet = system.num_feet
        feet = [foot.name for foot in system.robot.model.feet][:nc]
        self.names = (
            *(f"momentum.{c}" for c in system.coordinates),
            *(f"loops.{r}" for r in system.robot.closure.row_names),
            *(f"distance.{f}" for f in feet),
            *(f"slip.{f}{d}" for f in feet for d in DIRECTIONS),
            *(f"cone.{f}" for f in feet),
        )
        # The larger of the momentum and the impulse of the loads at rest.
        at_rest, _ = self._interval(q0, np.zeros(system.num_loop_rows), self._no_feet)
        load = np.abs(p - at_rest("before")).max()
        self.size = float(max(np.abs(p).max(), load, np.finfo(float).tiny))

    def _interval(self, q1, lam, forces):
        return self.stepper._interval(
            {
                "h": self.stepper.h,
                "q0": self.q0,
                "q1": q1,
                "u": self.u,
                "lam": lam,
                "gam": forces[: self._feet],
                "beta": forces[self._feet :],
            }
        )

    def at(self, q1: np.ndarray, lam: np.ndarray, z: np.ndarray) -> Linearization:
        """Rows and Jacobians at a point."""
        nc, tol = self.stepper.num_contacts, self.stepper.tolerance
        forces = z[: 5 * nc] if nc else self._no_feet
        value, slope = self._interval(q1, lam, forces)
        F, A = self.p - value("before"), -slope("before", "q1", "lam")
        B = np.hstack([-slope("before", "gam", "beta"), np.zeros((len(F), self._feet))])
        F_size = np.full(len(F), tol * self.size)
        if len(lam):
            F = np.concatenate([F, value("loops")])
            A = np.vstack([A, slope("loops", "q1", "lam")])
            B = np.vstack([B, np.zeros((len(lam), B.shape[1]))])
            F_size = np.concatenate([F_size, np.full(len(lam), tol)])
        nq = len(q1)
        F_size += ROUNDING * (np.abs(A[:, :nq]) @ np.abs(q1))
        F_size[:nq] += ROUNDING * (np.abs(A[:nq, nq:]) @ np.abs(lam))
        W, W_y, W_z, W_size, z_size = self._contact(q1, z, len(lam))
        return Linearization(
            q1, lam, z, F, A, B if nc else np.zeros((len(F), 0)), W, W_y, W_z,
            value("after"), F_size, W_size, z_size, self.names, tol,
        )  # fmt: skip

    def _contact(self, q1, z, num_lam: int):
        """W, dW/dy, dW/dz, and the magnitudes of W and z that count as zero."""
        s, nc, tol = self.stepper, self.stepper.num_contacts, self.stepper.tolerance
        if not nc:
            none = np.zeros(0)
            width = len(q1) + num_lam
            return none, np.zeros((0, width)), np.zeros((0, 0)), none, none
        multipliers = {"gam": z[:nc], "beta": z[nc : 5 * nc], "psi": z[5 * nc :]}
        zero = {"eta": np.zeros(4 * nc), "s": 0.0}
        value, slope = s._contact(
            {"h": s.h, "q0": self.q0, "q1": q1, **multipliers, **zero},
            np.array([s.friction]),
        )
        # With eta = 0 the value of row `slip` is eta.
        rows = ("distance", "slip", "cone")
        W = np.concatenate([value(r) for r in rows])
        W_q = np.vstack([slope(r, "q1") for r in rows])
        W_z = np.vstack([slope(r, "gam", "beta", "psi") for r in rows])
        W_y = np.hstack([W_q, np.zeros((len(W), num_lam))])
        force, length, speed = self.size / s.h, 1.0, 1.0
        kinds = np.repeat([0, 1, 2], (nc, 4 * nc, nc))
        W_size = tol * np.array([length, speed, force])[kinds]
        W_size += ROUNDING * (np.abs(W_q) @ np.abs(q1))
        z_size = tol * np.array([force, force, speed])[kinds]
        return W, W_y, W_z, W_size, z_size


# --- the iterations -----------------------------------------------------------


def josephy_newton(
    problem: StepPoint, start, max_iterations: int
) -> tuple[Linearization, int]:
    """Solves an interval; returns the solved point and the number of iterations.

    Args:
        problem: the rows.
        start: the first point (q1, lam, z).
        max_iterations: largest number of iterations.

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
                "a step's equations are singular; are the rows of its loops "
                "linearly dependent?",
                at.worst(),
            ) from error
        at = _damped(problem, at, target)
    raise NoSolution(
        f"a step of {problem.stepper.h:g} was not solved in {max_iterations} Newton "
        "iterations; try a smaller step",
        at.worst(),
    )


def _linear(problem: StepPoint, at: Linearization):
    """The (q1, lam, z) that solves the rows linearised at a point."""
    n, nc = len(at.q1), problem.stepper.num_contacts
    # One call for all columns: each call of scipy's LU wakes its threads.
    columns = np.column_stack([at.F - at.B @ at.z, at.B])
    if not (np.isfinite(at.A).all() and np.isfinite(columns).all()):
        raise NoSolution("a step's values are not finite any more", at.worst())
    solved = -np.linalg.solve(at.A, columns)
    y, response, z = solved[:, 0], solved[:, 1:], at.z
    if len(z):
        # Rows phi/h are speeds, like those of friction: Z is symmetric except for
        # the rows of the cone.
        over = np.ones(len(z))
        over[:nc] /= problem.stepper.h
        Z = over[:, None] * (at.W_y @ response + at.W_z)
        z = _solve(Z, over * (at.W + at.W_y @ y - at.W_z @ z), z)
        y = y + response @ z
    return at.q1 + y[:n], at.lam + y[n:], z


def _damped(problem: StepPoint, at: Linearization, target) -> Linearization:
    """A point on the line to `target` where the worst row is smaller.

    If there is none, the full step is taken: near a solution Newton's method
    converges although the worst row may grow for an iteration.
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
    """Solves the complementarity problem, regularised about z where it is singular.

    The forces of feet that share a load are not unique. The regularised problem has
    the same solution once Newton's method has converged to z.
    """
    try:
        return solve_lcp(Z, z0)
    except NoSolution:
        small = 1e-5 * np.abs(np.diag(Z)).max(initial=1e-12)
        return solve_lcp(Z + small * np.eye(len(z)), z0 - small * z)


def smoothed_newton(
    problem: StepPoint, start, max_iterations: int
) -> tuple[Linearization, int]:
    """As :func:`josephy_newton`, with smoothing; `max_iterations` is for each sigma.

    Raises:
        NoSolution: naming the worst rows.
    """
    at, iterations = problem.at(*start), 0
    for sigma in SMOOTHING:
        for _ in range(max_iterations):
            residual, J = _smooth_rows(at, sigma)
            size = np.linalg.norm(residual)
            if not np.isfinite(size):
                raise NoSolution("a step's values are not finite any more", at.worst())
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
    """Residual and Jacobian over (y, z); min(a, b) for sigma None."""
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
    # Least squares, since the forces of feet that share a load are not unique.
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
    """The point with exact zeros for the multipliers of inactive rows."""
    z = np.where(at.z / at.z_size < at.W / at.W_size, 0.0, np.maximum(at.z, 0.0))
    exact = problem.at(at.q1, at.lam, z)
    return exact if exact.error <= 1 else replace(at, z=np.maximum(at.z, 0.0))
