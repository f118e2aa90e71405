"""A simulator made of the blocks of contact-implicit programs.

A program solves all intervals at once; here they are solved one after the other.
Known are q0, the momentum p at its knot (M v0, or the p+ of the
interval before), the inputs u and the step h; unknown are q1, the loop forces
lam and z = (gam, beta, psi) >= 0 of

    p - p-(q0, q1, u, lam, gam, beta) = 0            momentum
    c = 0                                            loops
    0 <= W(q1, z)  _|_  z >= 0                       contact

with W = (phi, eta, mu gam - 1'beta) and eta = D'p_dot + 1 psi. Newton's method for
generalized equations (Josephy 1979) linearises the rows with the blocks' exact
Jacobians and eliminates y = (q1, lam); a linear complementarity problem in z remains.
Its solution is exact where contact is active and zero where it is not, without any
smoothing (see `variational_newton`).

Joint limits are bounds of programs, and are ignored here. A library of
falling_brick.py, without a command.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from variational_newton import Rows, StepPoint, josephy_newton, smoothed_newton

from drakebots.core.checks import (
    between,
    check_value,
    non_negative,
    optional,
    positive,
    whole,
)
from drakebots.core.errors import InvalidInput, NoSolution
from drakebots.trajopt.contact_implicit import ContactSystem
from drakebots.trajopt.contact_implicit.system import (
    contact_block,
    interval_block,
    start_block,
)

MULTIPLIERS = ("gam", "beta", "psi", "eta", "lam")
"""Names of the multipliers in :attr:`StepResult.multipliers`, as in programs."""


@dataclass(frozen=True)
class StepResult:
    """A solved interval, in plant units.

    Attributes:
        q: positions at its end (nq,).
        p: momentum p+ at its end (nq,).
        v_mid: (q1 - q0)/h (nq,).
        multipliers: gam (nc,), beta (4 nc,), psi (nc,), eta (4 nc,), lam
            (num_loop_rows,): forces and slip speeds.
        residual: largest |row| of "momentum" and "loops", and largest
            |min(z, W)| as "complementarity".
        newton_iterations: number of iterations of the attempt that succeeded.
    """

    q: np.ndarray
    p: np.ndarray
    v_mid: np.ndarray
    multipliers: dict[str, np.ndarray]
    residual: dict[str, float]
    newton_iterations: int


@dataclass(frozen=True)
class Trajectory:
    """K = N - 1 solved intervals between N knots, in plant units.

    Attributes:
        time: times of the knots (N,).
        q, p: positions and momenta at the knots (N, nq).
        v_mid: (q1 - q0)/h (K, nq).
        gam, beta, psi, eta, lam: multipliers (K, ...).
        residual: worst residuals of all intervals, by name.
        newton_iterations: number of iterations of each interval (K,).
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

    All quantities are in plant units.

    Args:
        system: the robot on its ground.
        step: time step h.
        friction: friction coefficient mu of the ground; None for no ground.
        integrator: "midpoint" or "euler".
        tolerance: relative tolerance of the momentum and forces of a step;
            absolute tolerance of gaps (unit of length) and slips (unit of speed).
        max_iterations: largest number of iterations of Newton's method.

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
        check_value("step", step, positive())
        check_value("friction", friction, optional(non_negative()))
        check_value("tolerance", tolerance, between(0, 1, open_ends=True))
        if friction is not None and not system.num_feet:
            raise InvalidInput(
                f"{system.robot.model.name} has no feet; leave friction out"
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
        """Solves one interval.

        Args:
            q: positions at its start (nq,).
            p: momentum there (nq,): M v, or `p` of the interval before.
            u: inputs (nu,); None for zeros.
            before: the interval before, a start for Newton's method.

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
        """Starting points of Newton's method, the most likely first."""
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
        """Number of feet that may touch the ground; 0 if there is no friction given."""
        return 0 if self._contact is None else self.system.num_feet

    def _result(self, problem, at, iterations: int) -> StepResult:
        """The solved interval, with the multipliers of all feet."""
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
        """Solves many intervals.

        Args:
            q0: positions at the start (nq,).
            v0: velocities at the start (nq,).
            inputs: inputs (nu,) or (steps, nu), constant over an interval; None for
                zeros.
            steps: number of intervals.

        Raises:
            InvalidInput, NoSolution: as :meth:`step`.
        """
        steps = check_value("steps", steps, whole(1))
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
            if not np.isfinite(last.p).all():
                # Rows of any size are met to a share of it, up to infinity.
                raise NoSolution(
                    f"interval {k} of {steps}, {self.h:g} long, diverged; try a "
                    "smaller step"
                )
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
