"""How deviations from a periodic plan grow from one cycle to the next.

The state at a knot is (q, p), p the momentum p+ of the interval before. About a plan
every interval of the discrete mechanics (see `dynamics`) is linearised with exact
Jacobians; what stays nonlinear is that contact is one-sided. With deviations
x = (dq0, dp), y = (dq1, dlam) and forces and slip speeds z = (gam, beta, psi):

    A y + B (z - z_plan) + X x = 0                       momentum, loops
    0 <= W_plan + W_x x + W_y y + W_z (z - z_plan)  _|_  z >= 0       contact

Feedback of outputs y(q) adds du = -K_p dy - K_d d(dy/dt). Like the mechanics it is
evaluated at the interval's midpoint, or a delay before it (linear between midpoints).
Deviations that open loops are projected off after every interval, in the metric of
the masses; the midpoint rule would carry them along as a sawtooth of modulus 1.

Two answers differ, and both are multipliers:

* With the contacts of the plan held, every foot goes on sticking, sliding or swinging
  as it does in the plan. The cycle is then a matrix, the exact derivative of the
  discrete map. It says what becomes of deviations that are too small to change a
  contact. A foot lands in the plan's interval however high it is, so the matrix does
  not know that a late touchdown carries the foot on (no saltation).
* With one-sided contacts the cycle is a piecewise linear map. What becomes of a
  deviation of a given size is found by central differences of that size. A body that
  falls off two feet may be caught by a third: its held multiplier is huge, but the
  plan may hold.

A plan may be executed with other inputs than its own. It is not an orbit of these, so
deviations are then followed about the motion to which it settles.

Three things are left out: forces are linear even in large deviations, inputs do not
clip, and feedback is not sampled.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
import scipy.linalg

from drakebots.core.checks import (
    array,
    check_value,
    positive,
    whole,
)
from drakebots.core.errors import InvalidInput, NoSolution
from drakebots.multibody import EULER_JOINTS
from drakebots.multibody.hard_contact import solve_lcp
from drakebots.trajopt.contact_implicit.dynamics import (
    contact_block,
    interval_block,
    loop_block,
    start_block,
)
from drakebots.trajopt.contact_implicit.feedback import Feedback, LinearFeedback
from drakebots.trajopt.contact_implicit.newton import Rows
from drakebots.trajopt.contact_implicit.program import ContactImplicit

DEPENDENT = 1e-9
"""Share of the largest singular value below which active contact rows depend on
others: feet that stick share their load in more than one way."""

SETTLING = 10
"""Cycles after which a plan that is fed other inputs counts as settled."""

SAME = 1e-9
"""Relative change of the rows below which shifting a coordinate changes nothing."""


@dataclass(frozen=True)
class Floquet:
    """Multipliers of a periodic plan, shifts and turns of the whole motion left out.

    Attributes:
        multipliers: eigenvalues (m,) of the cycle's central differences at `size`,
            the largest first.
        names: the coordinate with the largest share in each eigenvector.
        held: eigenvalues (m,) with the plan's contacts held.
        size: root mean square displacement of the deviations, by mass, plant units.
        invariances: names of the shifts and turns that were left out.
    """

    multipliers: np.ndarray
    names: tuple[str, ...]
    held: np.ndarray
    size: float
    invariances: tuple[str, ...] = field(default=())

    @property
    def largest(self) -> float:
        """The largest modulus of `multipliers`."""
        return float(np.abs(self.multipliers).max(initial=0.0))


@dataclass(frozen=True)
class _Interval:
    """One interval about the plan, with y eliminated.

        W = W_0 + W_x x + Z (z - z_plan)
        x' = S_0 + S_x x + S_z (z - z_plan)

    Attributes:
        z: z_plan, the contact forces and slip speeds of the plan (6 nc,).
        W, W_x, Z: W_0 (6 nc,) and its slopes (6 nc, size), (6 nc, 6 nc).
        S_0, S_x, S_z: the deviation x' at the interval's end (size,), and its slopes.
        active: which z are free in the plan, as opposed to 0 (6 nc,), of bool.
    """

    z: np.ndarray
    W: np.ndarray
    W_x: np.ndarray
    Z: np.ndarray
    S_0: np.ndarray
    S_x: np.ndarray
    S_z: np.ndarray
    active: np.ndarray

    def free(self, x: np.ndarray) -> np.ndarray:
        """The deviation x' (size,) at the end, with one-sided contacts.

        Raises:
            NoSolution: when there is none that far from the plan.
        """
        start = self.W - self.Z @ self.z + self.W_x @ x
        try:
            z = solve_lcp(self.Z, start)
        except NoSolution:
            # The forces of feet that share a load are not unique: take some near the
            # plan's.
            small = 1e-5 * np.abs(np.diag(self.Z)).max()
            Z = self.Z + small * np.eye(len(start))
            z = solve_lcp(Z, start - small * self.z)
        return self.S_0 + self.S_x @ x + self.S_z @ (z - self.z)

    def held(self) -> np.ndarray:
        """dx'/dx (size, size), with the plan's contacts held."""
        on = self.active
        inverse = np.linalg.pinv(self.Z[np.ix_(on, on)], rcond=DEPENDENT)
        return self.S_x - self.S_z[:, on] @ (inverse @ self.W_x[on])


class CycleMap:
    """Deviations from a periodic plan, carried from interval to interval.

    Deviations are x = (dq, dp, past outputs) (size,). Reduced deviations a (2 m,) have
    only the m motions that the loops leave free: first positions, then velocities over
    the frequency 2 pi/T. They are scaled by the masses, so that |a| is a root mean
    square displacement.

    Args:
        problem: the plan's problem, which is periodic.
        parts: the plan's decision variables by name.
        feedback: controller that executes the plan; None for the inputs alone.
        fed: inputs (N-1, nu) with which it is executed; None for the plan's own.

    Raises:
        InvalidInput: for a problem that is not periodic, or gains or inputs of a
            wrong shape.
    """

    def __init__(
        self,
        problem: ContactImplicit,
        parts: Mapping[str, np.ndarray],
        feedback: Feedback | None = None,
        fed: np.ndarray | None = None,
    ):
        if problem.periodic is None:
            raise InvalidInput(
                f"{problem.name} is not periodic; multipliers need a plan that repeats"
            )
        self.problem, self.system = problem, problem.system
        n, self._h = self.system.nq, np.ravel(parts["h"])
        self.period = float(self._h.sum())
        own = np.asarray(parts["u"])
        self._more = np.zeros_like(own)
        if fed is not None:
            self._more = check_value("fed", fed, array(own.shape)) - own
        self._feedback = LinearFeedback(self.system, feedback, self._h)
        self.size = 2 * n + self._feedback.past
        rows = Rows(interval_block(self.system, problem.integrator))
        contact = Rows(contact_block(self.system))
        shift = np.zeros(n)
        self.intervals = []
        for k in range(len(self._h)):
            self.intervals.append(self._interval(rows, contact, parts, k, shift))
        self._after = self._momentum(rows, parts)
        self._frames(parts["q"])
        self._find_invariances(shift)

    # --- the intervals --------------------------------------------------------

    def _interval(
        self,
        rows: Rows,
        contact: Rows,
        parts: Mapping[str, np.ndarray],
        k: int,
        shift: np.ndarray,
    ) -> _Interval:
        """Interval k about the plan.

        Args:
            rows, contact: rows of the mechanics and of the contact.
            parts: the plan's decision variables by name.
            k: number of the interval.
            shift: largest relative change of rows by a shift of each coordinate (nq,);
                raised here to those of this interval.
        """
        system, h = self.system, float(self._h[k])
        nc, size = system.num_feet, self.size
        ends = {"h": h, "q0": parts["q"][k], "q1": parts["q"][k + 1]}
        forces = {name: parts[name][k] for name in ("gam", "beta")}
        lam = parts["lam"][k] if system.num_loop_rows else np.zeros(0)
        _, slope = rows({**ends, "u": parts["u"][k], "lam": lam, **forces})
        q1, after = self._moved(k, ends, slope)
        start = np.eye(system.nq, q1.shape[1])
        S = np.vstack([q1, after, self._feedback.shifted(k, start, q1)])

        eta = {"psi": parts["psi"][k], "eta": np.zeros(4 * nc), "s": 0.0}
        value, c = contact({**ends, **forces, **eta}, np.array([self.problem.friction]))
        # Gaps over h are speeds, like the rows of slip.
        over = np.ones(6 * nc)
        over[:nc] /= h
        names = ("distance", "slip", "cone")
        planned = over * np.concatenate([value(name) for name in names])
        W_q1, W_q0, W_z = (
            over[:, None] * np.vstack([c(name, *of) for name in names])
            for of in (("q1",), ("q0",), ("gam", "beta", "psi"))
        )
        W = W_q1 @ q1
        W[:, : system.nq] += W_q0
        Z = W[:, size:-1] + W_z
        # After the last interval these are the feet at the first knot.
        self._gap, self._normals = value("distance"), h * W_q1[:nc]
        for rows_q0, rows_q1 in (
            (W_q0, W_q1),
            (slope("before", "q0"), slope("before", "q1")),
            (slope("after", "q0"), slope("after", "q1")),
        ):
            scale = np.abs(rows_q1).max(initial=1e-300)
            found = np.abs(rows_q0 + rows_q1).max(axis=0, initial=0.0) / scale
            np.maximum(shift, found, out=shift)
        z = np.concatenate([parts[name][k] for name in ("gam", "beta", "psi")])
        return _Interval(
            z=z,
            W=planned + W[:, -1],
            W_x=W[:, :size],
            Z=Z,
            S_0=S[:, -1],
            S_x=S[:, :size],
            S_z=S[:, size:-1],
            active=_active(z, planned, np.diag(Z), nc),
        )

    def _moved(self, k: int, ends, slope) -> tuple[np.ndarray, np.ndarray]:
        """Deviations of q1 and p+ at the end of interval k, (nq, size + 6 nc + 1) each.

        Their columns belong to x, to z - z_plan, and to 1: what other inputs than the
        plan's own do. They follow from A y + B (z - z_plan) + X x = 0.

        Args:
            k: number of the interval.
            ends: its h, q0 and q1.
            slope: slopes of the rows of the mechanics.
        """
        n, loops, size = self.system.nq, self.system.num_loop_rows, self.size
        nc = self.system.num_feet
        dq, dp, past = slice(0, n), slice(n, 2 * n), slice(2 * n, size)
        # du = U0 dq0 + U1 dq1 + Up past + more
        U0, U1, Up = self._feedback.gains(k, ends)
        more = self._more[k][:, None]
        before_u, after_u = slope("before", "u"), slope("after", "u")
        A = np.zeros((n + loops, n + loops))
        A[:n] = -np.hstack(
            [slope("before", "q1") + before_u @ U1, slope("before", "lam")]
        )
        X = np.zeros((n + loops, size))
        X[:n, dq] = -slope("before", "q0") - before_u @ U0
        X[:n, dp] = np.eye(n)
        X[:n, past] = -before_u @ Up
        B = np.zeros((n + loops, 6 * nc))
        B[:n, : 5 * nc] = -slope("before", "gam", "beta")
        if loops:
            A[n:, :n], X[n:, dq] = slope("loops", "q1"), slope("loops", "q0")
        constant = np.zeros((n + loops, 1))
        constant[:n] = -before_u @ more
        y = -np.linalg.solve(A, np.hstack([X, B, constant]))
        q1, lam = y[:n], y[n:]
        after = (slope("after", "q1") + after_u @ U1) @ q1 + slope("after", "lam") @ lam
        after[:, dq] += slope("after", "q0") + after_u @ U0
        after[:, past] += after_u @ Up
        after[:, -1:] += after_u @ more
        return q1, after

    def _momentum(self, rows, parts) -> np.ndarray:
        """p+ at the first knot: that of the last interval."""
        given = {name: parts[name][-1] for name in ("h", "u", "gam", "beta")}
        lam = parts["lam"][-1] if self.system.num_loop_rows else np.zeros(0)
        ends = {"q0": parts["q"][-2], "q1": parts["q"][-1], "lam": lam}
        return rows({**given, **ends})[0]("after")

    # --- coordinates ----------------------------------------------------------

    def _frames(self, q: np.ndarray) -> None:
        """Mass-orthonormal bases of the motions that keep the loops closed."""
        system, n = self.system, self.system.nq
        momentum = Rows(start_block(system))
        loops = Rows(loop_block(system)) if system.num_loop_rows else None
        mass = system.robot.model.summary.mass / system.robot.scaling.mass
        bases, masses = [], []
        for knot in q[:-1]:
            M = momentum({"q": knot, "v": np.zeros(n)})[1]("momentum", "v")
            T = np.eye(n)
            if loops is not None:
                T = scipy.linalg.null_space(loops({"q": knot})[1]("loops", "q"))
            root = np.linalg.cholesky(T.T @ M @ T / mass)
            bases.append(np.linalg.solve(root, T.T).T)
            masses.append(M / mass)
        self._bases, self._masses = bases, masses
        self._mass, self._rate = mass, 2 * np.pi / self.period
        self.reduced_size = 2 * bases[0].shape[1]

    def start(self, a: np.ndarray, about: np.ndarray | None = None) -> np.ndarray:
        """The deviation (size,) from the plan at the first knot.

        A foot that the deviation would push into the ground is moved out by the
        shortest way, since the step of an integrator would throw it up.

        Args:
            a: reduced deviation (2 m,).
            about: deviation (size,) that it is added to; 0 by default.
        """
        about = np.zeros(self.size) if about is None else about
        half, n = self.reduced_size // 2, self.system.nq
        way = self._normals @ self._bases[0]
        gap = self._gap + self._normals @ about[:n] + way @ a[:half]
        push = solve_lcp(way @ way.T, gap)
        return about + self.lift(np.concatenate([a[:half] + way.T @ push, a[half:]]))

    def lift(self, a: np.ndarray) -> np.ndarray:
        """The deviation x (size, ...) of reduced ones at the first knot."""
        half, B, M = self.reduced_size // 2, self._bases[0], self._masses[0]
        dq, dv = B @ a[:half], self._rate * (B @ a[half:])
        past = self._feedback.start(dq, dv)
        return np.concatenate([dq, self._mass * (M @ dv), past])

    def lower(self, x: np.ndarray) -> np.ndarray:
        """The reduced deviation of x at the first knot."""
        n, B, M = self.system.nq, self._bases[0], self._masses[0]
        return np.concatenate(
            [B.T @ M @ x[:n], B.T @ x[n : 2 * n] / (self._mass * self._rate)]
        )

    def _closed(self, k: int, x: np.ndarray) -> np.ndarray:
        """x at the end of interval k without what opens the loops."""
        n, k = self.system.nq, (k + 1) % len(self.intervals)
        B, M = self._bases[k], self._masses[k]
        dq, dp = x[:n], x[n : 2 * n]
        return np.concatenate([B @ (B.T @ (M @ dq)), M @ (B @ (B.T @ dp)), x[2 * n :]])

    def _find_invariances(self, shift: np.ndarray) -> None:
        """Shifts of coordinates and turns of the motion that change nothing."""
        n, names = self.system.nq, self.system.coordinates
        found = np.flatnonzero(shift < SAME).tolist()
        columns = [np.eye(self.size)[i] for i in found]
        free_base = len(names) >= 6 and all(
            name.endswith(f"_{part}") for name, part in zip(names, EULER_JOINTS)
        )
        if free_base and {0, 1} <= set(found) and 3 not in found:
            # Forces of friction turn along only as far as a pyramid can.
            turn = np.eye(self.size)[3]
            turn[n : n + 2] = -self._after[1], self._after[0]
            columns, found = [*columns, turn], [*found, 3]
        self.invariances = tuple(names[i] for i in found)
        G = np.array([self.lower(c) for c in columns]).reshape(-1, self.reduced_size)
        self._others = scipy.linalg.null_space(G) if len(G) else np.eye(G.shape[1])

    # --- cycles ---------------------------------------------------------------

    def cycle(self, x: np.ndarray) -> np.ndarray:
        """The deviation (size,) a cycle later, contacts one-sided.

        Raises:
            NoSolution: when an interval has no solution that far from the plan.
        """
        for k, interval in enumerate(self.intervals):
            x = self._closed(k, interval.free(x))
        return x

    def held(self) -> np.ndarray:
        """d(x a cycle later)/dx (size, size), the plan's contacts held."""
        out = np.eye(self.size)
        for k, interval in enumerate(self.intervals):
            out = self._closed(k, interval.held() @ out)
        return out

    def settled(self, cycles: int = SETTLING) -> np.ndarray:
        """The deviation (size,) reached after some cycles from the plan's own state.

        Shifts and turns of the whole motion are left out.

        Raises:
            NoSolution: as :meth:`cycle`.
        """
        x, Q = np.zeros(self.size), self._others
        for _ in range(cycles):
            x = self.cycle(x)
        kept = self.lift(Q @ (Q.T @ self.lower(x)))
        kept[2 * self.system.nq :] = x[2 * self.system.nq :]
        return kept

    def differences(self, size: float, about: np.ndarray | None = None) -> np.ndarray:
        """Matrix of central differences of :meth:`cycle` for reduced deviations.

        It acts on the deviations that are not shifts or turns of the whole motion.

        Args:
            size: size of the deviations [unit of length].
            about: as in :meth:`start`.
        """
        Q = self._others
        ends = [
            self.cycle(self.start(size * a, about))
            - self.cycle(self.start(-size * a, about))
            for a in Q.T
        ]
        return Q.T @ self.lower(np.array(ends).T) / (2 * size)

    def multipliers(self, size: float) -> Floquet:
        """Multipliers for deviations of a size [unit of length], from the plan, or from
        what it settles to if it is fed other inputs.

        Raises:
            InvalidInput: for a size <= 0.
            NoSolution: as :meth:`cycle`.
        """
        check_value("size", size, positive())
        about = self.settled() if self._more.any() else None
        values, vectors = np.linalg.eig(self.differences(size, about))
        order = np.argsort(-np.abs(values), kind="stable")
        Q, full = self._others, self.held()
        held = Q.T @ self.lower(full @ self.lift(Q))
        held = np.linalg.eigvals(held)
        return Floquet(
            multipliers=values[order],
            names=tuple(self._name(Q @ vectors[:, i]) for i in order),
            held=held[np.argsort(-np.abs(held), kind="stable")],
            size=float(size),
            invariances=self.invariances,
        )

    def _name(self, a: np.ndarray) -> str:
        """The coordinate with the largest share of a reduced deviation's |a|^2."""
        half, B, M = self.reduced_size // 2, self._bases[0], self._masses[0]
        share = np.zeros(self.system.nq)
        for part in (a[:half], a[half:]):
            dq = B @ part
            share += np.real(np.conj(dq) * (M @ dq))
        return self.system.coordinates[int(np.argmax(share))]

    def advance(
        self, size: float, *, cycles: int = 15, runs: int = 4, seed: int = 0
    ) -> np.ndarray:
        """How much farther than planned the plan advances in each cycle.

        Args:
            size: size of the random deviations to start from [unit of length].
            cycles, runs: number of cycles of every run, and number of runs.
            seed: seed of the deviations.

        Returns:
            The deviation of the advance of every periodic coordinate (runs, cycles,
            number of periodic coordinates), plant units. It is NaN from the cycle on
            in which a run has no solution any more.
        """
        check_value("size", size, positive())
        check_value("cycles", cycles, whole(1))
        check_value("runs", runs, whole(1))
        names, random = self.system.coordinates, np.random.default_rng(seed)
        along = [names.index(name) for name in self.problem.periodic]
        out = np.full((runs, cycles, len(along)), np.nan)
        for run in out:
            a = random.standard_normal(self.reduced_size)
            x = self.start(size * a / np.linalg.norm(a))
            for moved in run:
                before = x[along]
                try:
                    x = self.cycle(x)
                except NoSolution:
                    break
                moved[:] = x[along] - before
        return out


def _active(z: np.ndarray, W: np.ndarray, response: np.ndarray, nc: int) -> np.ndarray:
    """Which z are free and which W hold: z against W over its response to z.

    The cone does not respond to the slip speed psi; there the friction that would
    stop the slip counts.
    """
    active = z * np.maximum(response, 0.0) > W
    friction = response[nc : 5 * nc].reshape(nc, 4).mean(axis=1)
    active[5 * nc :] = z[5 * nc :] > W[5 * nc :] * np.maximum(friction, 0.0)
    return active
