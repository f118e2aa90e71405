"""The blocks of a contact-implicit program stepped forward, as a simulator.

What a program solves for all intervals at once is solved here interval by
interval. Known are q0, the momentum p at its knot (M v0, or the p+ of the
interval before), the inputs u and the step h; unknown are q1, the loop forces
lam and z = (gam, beta, psi) >= 0 of

    p - p-(q0, q1, u, lam, gam, beta) = 0            momentum
    c = 0                                            loops
    0 <= W(q1, z)  _|_  z >= 0                       contact

with W = (phi, eta, mu gam - 1'beta) and eta = D'p_dot + 1 psi. Newton's method
for generalized equations (Josephy 1979): the rows are linearised with the
blocks' exact Jacobians, y = (q1, lam) is eliminated, and what is left is a
linear complementarity problem in z. Its answer is exact where contact is
active and zero where it is not, so that nothing is smoothed.

Joint limits push in programs as bounds only, and are not looked at here.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from drakebots.core.errors import InvalidInput, NoSolution
from drakebots.multibody.hard_contact import solve_lcp
from drakebots.trajopt.contact_implicit.dynamics import (
    contact_block,
    interval_block,
    start_block,
)
from drakebots.trajopt.contact_implicit.linearized import Linearization, Rows, StepPoint
from drakebots.trajopt.contact_implicit.system import ContactSystem

# Solves one interval's complementarity problem; see `stepping`.
#
# First Newton's method for generalized equations (Josephy 1979), a linear
# complementarity problem an iteration. With a step so long that the body could
# fall over within it, the linearised problem may have no answer although the
# step has one; then the complementarity is smoothed,
#
#     a + b - sqrt(a^2 + b^2 + 2 sigma^2) = 0        (Kanzow 1996)
#
# and sigma taken to zero, and the rows found active are solved exactly.

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


MULTIPLIERS = ("gam", "beta", "psi", "eta", "lam")
"""Names of what :attr:`StepResult.multipliers` holds, as in programs."""


@dataclass(frozen=True)
class StepResult:
    """One interval, solved; all in the plant's units.

    Attributes:
        q: positions at its end (nq,).
        p: momentum p+ at its end (nq,).
        v_mid: (q1 - q0)/h (nq,).
        multipliers: gam (nc,), beta (4 nc,), psi (nc,), eta (4 nc,), lam
            (num_loop_rows,): forces and slip speeds.
        residual: largest |row| of "momentum" and "loops", and largest
            |min(z, W)| as "complementarity".
        newton_iterations: of the attempt that succeeded.
    """

    q: np.ndarray
    p: np.ndarray
    v_mid: np.ndarray
    multipliers: dict[str, np.ndarray]
    residual: dict[str, float]
    newton_iterations: int


@dataclass(frozen=True)
class Trajectory:
    """Many intervals; all in the plant's units, N knots and K = N - 1 intervals.

    Attributes:
        time: of the knots (N,).
        q, p: positions and momenta at the knots (N, nq).
        v_mid: (q1 - q0)/h (K, nq).
        gam, beta, psi, eta, lam: multipliers (K, ...).
        residual: worst of all intervals, by name.
        newton_iterations: of each interval (K,).
    """

    time: np.ndarray
    q: np.ndarray
    p: np.ndarray
    v_mid: np.ndarray
    gam: np.ndarray
    beta: np.ndarray
    psi: np.ndarray
    eta: np.ndarray
    lam: np.ndarray
    residual: dict[str, float]
    newton_iterations: np.ndarray


class VariationalStepper:
    """Steps a contact system with the discrete mechanics of its programs.

    All quantities are in the plant's units.

    Args:
        system: the robot on its ground.
        step: h > 0.
        friction: mu >= 0 of the ground; None for no ground.
        integrator: "midpoint" or "euler".
        tolerance: relative, of the momentum and forces of a step; absolute, of
            gaps (plant's unit of length) and slips (unit of speed).
        max_iterations: of Newton's method.

    Raises:
        InvalidInput: for a step, friction or tolerance out of range, or
            friction for a robot without feet.
        UnknownName: for an integrator that is not known.
    """

    def __init__(
        self,
        system: ContactSystem,
        step: float,
        *,
        friction: float | None = None,
        integrator: str = "midpoint",
        tolerance: float = 1e-10,
        max_iterations: int = 40,
    ):
        if not 0 < step < np.inf:
            raise InvalidInput(f"step must be > 0, got {step}")
        if friction is not None and not 0 <= friction < np.inf:
            raise InvalidInput(f"friction must be >= 0, got {friction}")
        if not 0 < tolerance < 1:
            raise InvalidInput(f"tolerance must be between 0 and 1, got {tolerance}")
        if friction is not None and not system.num_feet:
            raise InvalidInput(
                f"{system.robot.model.name} has no feet to rub; leave friction out"
            )
        self.system, self.h, self.integrator = system, float(step), integrator
        self.friction, self.tolerance = friction, tolerance
        self.max_iterations = max_iterations
        self._interval = Rows(interval_block(system, integrator))
        self._contact = None if friction is None else Rows(contact_block(system))

    @cached_property
    def _start(self) -> Rows:
        return Rows(start_block(self.system))

    def momentum(self, q: np.ndarray, v: np.ndarray) -> np.ndarray:
        """M(q) v (nq,)."""
        return self._start({"q": q, "v": v})[0]("momentum")

    def velocity(self, q: np.ndarray, p: np.ndarray) -> np.ndarray:
        """M(q)^-1 p (nq,)."""
        _, slope = self._start({"q": q, "v": np.zeros(self.system.nq)})
        return np.linalg.solve(slope("momentum", "v"), p)

    def step(
        self,
        q: np.ndarray,
        p: np.ndarray,
        u: np.ndarray | None = None,
        *,
        before: StepResult | None = None,
    ) -> StepResult:
        """One interval from positions, momentum and inputs.

        Args:
            q: positions at its start (nq,).
            p: momentum there (nq,): M v, or `p` of the interval before.
            u: inputs (nu,); None for zeros.
            before: the interval before, to start Newton's method from.

        Raises:
            InvalidInput: for a wrong shape or a value that is not finite.
            NoSolution: when Newton's method does not converge, with the worst
                rows by name.
        """
        n = self.system.nq
        q, p = _vector(q, n, "positions"), _vector(p, n, "momentum")
        u = _vector(np.zeros(self.system.nu) if u is None else u, self.system.nu, "u")
        problem = StepPoint(self, q, p, u)
        failure = None
        for start in self._starts(q, p, before):
            for solve in (josephy_newton, smoothed_newton):
                try:
                    at, iterations = solve(problem, start, self.max_iterations)
                    return self._result(problem, at, iterations)
                except NoSolution as error:
                    failure = error
        raise failure

    def _starts(self, q, p, before):
        """Points to start Newton's method from, the likeliest first."""
        rows, nc = self.system.num_loop_rows, self.num_contacts
        rest = np.zeros(rows), np.zeros(6 * nc)
        if before is not None:
            m = before.multipliers
            z = np.r_[m["gam"], m["beta"], m["psi"]] if nc else rest[1]
            yield q + self.h * before.v_mid, m["lam"], z
        yield q + self.h * self.velocity(q, p), *rest
        yield q, *rest

    @property
    def num_contacts(self) -> int:
        """Feet that may touch: none without friction."""
        return 0 if self._contact is None else self.system.num_feet

    def _result(self, problem, at, iterations: int) -> StepResult:
        nc, p1 = self.num_contacts, at.after
        feet = self.system.num_feet
        z = at.z if nc else np.zeros(6 * feet)
        eta = np.maximum(at.W[nc : 5 * nc], 0.0) if nc else np.zeros(4 * feet)
        return StepResult(
            q=at.q1,
            p=p1,
            v_mid=(at.q1 - problem.q0) / self.h,
            multipliers={
                "gam": z[:feet],
                "beta": z[feet : 5 * feet],
                "psi": z[5 * feet :],
                "eta": eta,
                "lam": at.lam,
            },
            residual=at.residual(),
            newton_iterations=iterations,
        )

    def run(
        self,
        q0: np.ndarray,
        v0: np.ndarray,
        inputs: np.ndarray | None = None,
        steps: int = 1,
    ) -> Trajectory:
        """Many intervals from positions and velocities.

        Args:
            q0: (nq,).
            v0: their rates (nq,).
            inputs: (nu,) or (steps, nu), held over an interval; None for zeros.
            steps: intervals, >= 1.

        Raises:
            InvalidInput, NoSolution: as :meth:`step`.
        """
        if int(steps) != steps or steps < 1:
            raise InvalidInput(f"steps must be a whole number >= 1, got {steps}")
        n, nu = self.system.nq, self.system.nu
        q, v0 = _vector(q0, n, "positions"), _vector(v0, n, "velocities")
        try:
            u = np.broadcast_to(0.0 if inputs is None else inputs, (steps, nu))
        except ValueError as error:
            raise InvalidInput(
                f"inputs must have shape ({steps}, {nu}), got {np.shape(inputs)}"
            ) from error
        p, last, results = self.momentum(q, v0), None, []
        for k in range(steps):
            try:
                last = self.step(q, p, u[k], before=last)
            except NoSolution as error:
                raise NoSolution(
                    f"interval {k} of {steps}, {self.h:g} long, was not solved; try a "
                    "smaller step",
                    error.worst,
                ) from error
            results.append(last)
            q, p = last.q, last.p
        worst = {name: max(r.residual[name] for r in results) for name in last.residual}
        return Trajectory(
            time=self.h * np.arange(steps + 1),
            q=np.array([_vector(q0, n, "positions"), *(r.q for r in results)]),
            p=np.array([self.momentum(q0, v0), *(r.p for r in results)]),
            v_mid=np.array([r.v_mid for r in results]),
            residual=worst,
            newton_iterations=np.array([r.newton_iterations for r in results]),
            **{m: np.array([r.multipliers[m] for r in results]) for m in MULTIPLIERS},
        )


def _vector(values, n: int, name: str) -> np.ndarray:
    values = np.asarray(values, float)
    if values.shape != (n,) or not np.isfinite(values).all():
        raise InvalidInput(f"{name} must be {n} finite numbers, got {values}")
    return values
