"""Newton steps on a horizon: from a measured state to a plan with feedback.

The unknowns are positions at the knots, efforts, and forces of feet and loops on the
intervals; velocities are differences of positions. A step linearises all rows with
exact slopes, eliminates the forces and solves the linear-quadratic problem that
remains, within the limits of efforts (`riccati`); the Hessian is Gauss-Newton's. Its
length is found by backtracking on the exact penalty

    m = cost + sum_i w_i |row_i|,   w_i > |y_i|,

with the multipliers y of the step, for which it is a descent (Nocedal and Wright 2006,
18.3).
"""

from __future__ import annotations

from dataclasses import dataclass
from time import thread_time

import numpy as np

from drakebots.control.problem import MpcCost, MpcPlan, MpcProblem, Reference
from drakebots.control.riccati import eliminate, gains, newton_step
from drakebots.control.stage import (
    Stage,
    cost_model,
    cost_value,
    difference,
    misses,
    retract,
    worst,
)
from drakebots.core.checks import RANGES, array, check_value
from drakebots.core.errors import InvalidInput
from drakebots.core.units import GRAVITY
from drakebots.model import gravity, joints_of, position_limits
from drakebots.trajopt.program import many

LADDER = (1000.0, 100.0, 10.0, 1.0)
"""Factors of the barrier of a plan that starts from nothing. Softer contact acts at a
distance, and the horizon of hard contact has many poor minima
(docs/evidence/control.md)."""

UNSETTLED, LOST = 0.1, 1.0
"""Shares of the weight by which the dynamics are missed: a first plan that misses them
by the first one is made anew, one that misses them by the second is none."""

RISE = 0.05
"""Share of the merit by which a step that finds no descent may raise it: the plan is
then nearly as good as the one before, and answers to a newer state."""

DAMPING = 10.0
"""Share of the Hessian's diagonal that is added where a step is no good: efforts at
their limits let the linear horizon run away, and a shorter step stays near it."""

MORE = 6
"""Newton steps that a solve goes on for where its plan could not be used: the first
plan of a light robot is far from an optimum, and two steps a solve never catch up."""

STEPS = 12
"""Newton steps on every rung of the ladder by default."""


@dataclass
class _Point:
    """An iterate: knots q, v and intervals tau, f, l; see `MpcPlan`."""

    q: np.ndarray
    v: np.ndarray
    tau: np.ndarray
    f: np.ndarray
    l: np.ndarray  # noqa: E741


class MpcSolver:
    """Solves a problem again and again, each time from the plan before.

    Args:
        problem: the problem. Its functions are compiled once and kept on disk.

    Attributes:
        problem: the problem.
        barrier: phi n of a foot [N m].

    Raises:
        InvalidInput: for joints without a tangent space.
    """

    def __init__(self, problem: MpcProblem):
        self.problem, self._stage = problem, Stage(problem)
        plant, sizes = problem.robot.plant, self._stage.sizes
        self._sizes, self._bases = sizes, self._stage.bases
        self._at = self._bases, float(problem.step)
        self._B = np.array(plant.MakeActuationMatrix(), order="C")
        g = gravity(plant) or GRAVITY
        weight = g * plant.CalcTotalMass(plant.CreateDefaultContext())
        length = g * problem.step**2
        given = problem.barrier
        self.barrier = 1e-2 * weight * length if given is None else given
        self._contact = length, weight, float(problem.friction), float(problem.slip)
        self._relaxed = np.full(problem.knots, self.barrier / (length * weight))
        self._weights = self._arrays(problem.cost)
        self._limits = self._walls()
        self._efforts = plant.GetEffortLowerLimits(), plant.GetEffortUpperLimits()
        self._state = [array((sizes[name],)) for name in ("nq", "nv")]
        self._known: _Point | None = None  # whose rows were found last
        both = (_Mapped(f, problem.knots) for f in self._stage.functions)
        self._rows, self._slopes = both

    def _walls(self) -> np.ndarray:
        """Limits of positions as `cost_model` takes them."""
        plant, found = self.problem.robot.plant, []
        low, high = position_limits(plant)
        for joint in joints_of(plant):
            if joint.num_positions() == joint.num_velocities() == 1:
                at = joint.position_start()
                room = 0.5 * (high[at] - low[at])
                slope = 1 / room if np.isfinite(room) else 1.0
                for way, limit in ((slope, low[at]), (-slope, high[at])):
                    if np.isfinite(limit) and room > 0:
                        found.append((at, joint.velocity_start(), way, limit))
        return np.array(found, float).reshape(-1, 4)

    def effort_limits(self) -> tuple[np.ndarray, np.ndarray]:
        """Lower and upper limits of the efforts (nu,) [N m, N]; maybe infinite."""
        return self._efforts

    # --- solving -----------------------------------------------------------------

    def solve(
        self,
        q: np.ndarray,
        v: np.ndarray,
        reference: Reference,
        *,
        time: float = 0.0,
        warm: MpcPlan | None = None,
        iterations: int | None = None,
    ) -> MpcPlan:
        """Plans from a state.

        Args:
            q, v: measured positions (nq,) and velocities (nv,).
            reference: target of the cost.
            time: of the measurement [s].
            warm: the plan before, which is shifted to `time`; None to start from rest
                at q, with contact that is hardened step by step.
            iterations: Newton steps, without `warm` on every rung of the ladder. None
                for STEPS without `warm`, and with it for the problem's, and MORE where
                the plan is not ok after these.

        Raises:
            InvalidInput: for a state or a reference that is not finite or not within
                the range of numbers, or a reference of another shape.
        """
        began = thread_time()  # of this processor: other work does not count
        q = check_value("mpc: q", q, self._state[0])
        v = check_value("mpc: v", v, self._state[1])
        wanted = self._wanted(reference, time, q, v)
        count = iterations or (self.problem.iterations if warm else STEPS)

        def plan(start, ladder, count, falls=False):
            # Points that are far off, and steps much too long, may overflow.
            with np.errstate(over="ignore", invalid="ignore"):
                found = self._climb(start, wanted, ladder, count, falls)
                return found[0], self._plan(*found, wanted, time, began)

        if warm is not None:
            point, first = plan(self._shifted(warm, time, q, v), LADDER[-1:], count)
            if first.ok or iterations:
                return first
            return min((plan(point, LADDER[-1:], MORE)[1], first), key=_badness)
        rest, found = self._rest(q, v), []
        # Where the merit may only fall, a plan cannot run away; but some are found only
        # by way of worse ones. Soft contact may throw a light robot up, to where
        # nothing holds it.
        tries = [(LADDER, True), (LADDER, False), (LADDER[-1:], False)]
        for ladder, falls in tries if self._sizes["nc"] else tries[-1:]:
            found.append(plan(rest, ladder, count, falls)[1])
            missed = found[-1].residuals["dynamics"] / self._contact[1]
            if missed < UNSETTLED and (found[-1].ok or not falls):
                return found[-1]
        return min(found, key=_badness)

    def _climb(self, point: _Point, wanted, ladder, count: int, falls: bool = False):
        """Up to `count` Newton steps on every rung: the iterate, its knots with their
        gains, and whether the last step was good. With `falls` a rung ends before one
        that is not."""
        ok, feedback = True, None
        for factor in ladder:
            for _ in range(count):
                try:
                    new, its, ok = self._step(point, wanted, factor * self._relaxed)
                except np.linalg.LinAlgError:
                    new, its, ok = None, None, False
                if new is None or (falls and not ok):
                    break
                point, feedback = new, its
        return point, feedback, ok

    def _wanted(self, reference, time, q, v):
        """Positions and velocities at the knots, and the weights of the cost."""
        n, sizes = self.problem.knots + 1, self._sizes
        answer, out = reference(time, q, v), []
        weights = self._arrays(answer[2]) if len(answer) > 2 else self._weights
        for name, values, size in zip("qv", answer[:2], ("nq", "nv")):
            full, values = np.empty((n, sizes[size])), np.asarray(values, float)
            try:
                full[:] = values
            except ValueError as error:
                raise InvalidInput(
                    f"mpc: reference {name} must be {n} x {sizes[size]} numbers, got "
                    f"{' x '.join(map(str, values.shape))}"
                ) from error
            if not (np.abs(full) < RANGES[""][1]).all():
                # The merits of steps would overflow, and compare as nothing.
                raise InvalidInput(
                    f"mpc: reference {name} at {time:g} s must be finite numbers, "
                    f"none larger than {RANGES[''][1]:g}"
                )
            out.append(full)
        return tuple(out), weights

    def _arrays(self, cost: MpcCost) -> tuple:
        """Weights as `cost_model` takes them."""
        weights = cost.arrays(self._sizes["nv"], self._sizes["nu"])
        return (*(np.array(w) for w in weights), float(cost.limits))

    def _rest(self, q, v) -> _Point:
        """Point at rest where the robot is, with the relaxed contact forces there."""
        N, n = self.problem.knots, self._sizes
        knots, rates = np.tile(q, (N + 1, 1)), np.zeros((N + 1, n["nv"]))
        rates[0] = v
        empty = np.zeros((N, 3 * n["nc"])), np.zeros((N, n["nl"]))
        point = _Point(knots, rates, np.zeros((N, n["nu"])), *empty)
        if n["nc"]:
            gap = self._values(point)[1]
            most = self._contact[1] / n["nc"]
            near = np.maximum(gap, self.barrier / most)
            point.f[:, 2::3] = self.barrier / near
            self._known = None
        return point

    def _shifted(self, plan: MpcPlan, time: float, q, v) -> _Point:
        """The plan before from `time` on, linear between its knots, held at its end."""
        N, h = self.problem.knots, self.problem.step
        at = np.clip((time - plan.time) / h, 0.0, N) + np.arange(N + 1)
        knots = self._between(plan, np.minimum(at, N))
        knots[0] = q

        first = np.minimum(at[:-1], N - 1)
        low = np.minimum(first.astype(int), N - 2)
        share = (first - low)[:, None]

        def on_intervals(values):
            values = values.reshape(N, -1)
            return (1 - share) * values[low] + share * values[low + 1]

        rates = self._rates(knots, v)
        parts = plan.tau, plan.forces, plan.loop_forces
        return _Point(knots, rates, *(on_intervals(part) for part in parts))

    def _between(self, plan: MpcPlan, at: np.ndarray) -> np.ndarray:
        """Positions of a plan at knots that are not whole (k, nq)."""
        low = np.minimum(at.astype(int), self.problem.knots - 1)
        d = difference(self._bases, plan.q[low + 1], plan.q[low])
        return retract(self._bases, plan.q[low], (at - low)[:, None] * d)

    def _rates(self, knots, v) -> np.ndarray:
        rates = np.empty((len(knots), len(v)))
        rates[0] = v
        rates[1:] = difference(self._bases, knots[1:], knots[:-1]) / self.problem.step
        return rates

    def _evaluate(self, x: _Point, functions: _Mapped) -> tuple[np.ndarray, ...]:
        a = (x.v[1:] - x.v[:-1]) / self.problem.step
        return functions(x.q[1:], x.v[1:], a, x.f, x.l)

    def _values(self, x: _Point) -> tuple[np.ndarray, ...]:
        """The rows at an iterate, which are kept until those of another are found."""
        self._known = x
        return self._evaluate(x, self._rows)

    def _step(self, x: _Point, wanted, relaxed):
        """One Newton step: the iterate or None, its knots with their gains, and whether
        it is good."""
        out = self._evaluate(x, self._slopes)
        values, slopes = out[:4], out[4:]
        now = self._misses(x, values, relaxed)
        model = cost_model(*self._costed(x, wanted))
        at = *self._at, x.v[1:], self._B, x.tau, x.f
        eliminated = eliminate(*at, values, slopes, self._contact, relaxed)

        def damped(share):
            """The same with a Hessian larger by a share of its diagonal."""
            Q, S, g, R, r = model
            if share:
                Q = Q + share * np.abs(Q) * np.eye(Q.shape[1])
                S, R = (1 + share) * S, (1 + share) * R
            at = *self._at, self._B, (Q, S, g, R, r), eliminated, now, slopes
            limits = (limit - x.tau for limit in self._efforts)
            (dx, du, *forces), y, K = newton_step(*at, *limits)
            if not (np.isfinite(dx).all() and np.isfinite(du).all()):
                return None, None, False
            moves, y = (dx[:, : self._sizes["nv"]], du, *forces), np.abs(y)
            miss = np.abs(now), 2 * y + y.mean(0)
            descent = np.sum(g * dx) + np.sum(r * du)
            trial, good = self._searched(x, wanted, relaxed, moves, miss, descent)
            return trial, (eliminated[1], K), good

        new = damped(0.0)
        if not new[2]:
            shorter = damped(DAMPING)
            new = shorter if shorter[2] else new
        return new

    def _searched(self, x: _Point, wanted, relaxed, moves, miss, descent):
        """The iterate at a length at which the merit falls, and whether it is good."""
        missed, weights = miss
        total = float(np.sum(weights * missed))
        merit = cost_value(*self._costed(x, wanted)) + total
        descent = descent - total
        best, length = None, 1.0
        for _ in range(self.problem.trials):
            trial = self._moved(x, *(length * d for d in moves))
            values = self._values(trial)
            there = self._misses(trial, values, relaxed)
            value = cost_value(*self._costed(trial, wanted))
            value += np.sum(weights * np.abs(there))
            if value <= merit + 1e-4 * length * descent + 1e-12 * abs(merit):
                return trial, True
            if np.isfinite(value) and (best is None or value < best[0]):
                best = value, trial
            length *= 0.5
        if best is None:
            return None, False
        return best[1], bool(best[0] <= merit + RISE * abs(merit))

    def _moved(self, x: _Point, dq, du, df, dl) -> _Point:
        """The iterate further by changes of its parts."""
        q = retract(self._bases, x.q, dq)
        return _Point(q, self._rates(q, x.v[0]), x.tau + du, x.f + df, x.l + dl)

    def _costed(self, x: _Point, wanted):
        """Arguments of the cost and of its model."""
        at = self._bases, self.problem.step, x.q, x.v, x.tau
        return *at, *wanted, self._limits

    def _misses(self, x: _Point, values, relaxed) -> np.ndarray:
        return misses(values, x.tau @ self._B.T, x.f, self._contact, relaxed)

    def _plan(self, x: _Point, feedback, ok, wanted, time, began) -> MpcPlan:
        N, n = self.problem.knots, self._sizes
        values = self._rows.found if x is self._known else self._values(x)
        rows = self._misses(x, values, self._relaxed)
        most = worst(rows, values[2], self._sizes["nv"], self.problem.slip)
        names = "dynamics", "contact", "friction", "loops"
        residuals = dict(zip(names, most.tolist()))
        residuals["contact"] *= self._contact[0]
        K = np.zeros((N, n["nu"], 2 * n["nv"]))
        if feedback is not None:
            K = gains(*self._at, *feedback)
        finite = np.isfinite(sum(a.sum() for a in (x.q, x.v, x.tau, x.f, K)))
        near = residuals["dynamics"] < LOST * self._contact[1]
        return MpcPlan(
            time=float(time),
            step=self.problem.step,
            q=x.q,
            v=x.v,
            forces=x.f.reshape(N, n["nc"], 3),
            loop_forces=x.l,
            tau=x.tau,
            gains=K,
            cost=float(cost_value(*self._costed(x, wanted))),
            residuals=residuals,
            seconds=thread_time() - began,
            ok=bool(ok and finite and near),
        )

    # --- commanding --------------------------------------------------------------

    def command(
        self, plan: MpcPlan, time: float, q: np.ndarray, v: np.ndarray
    ) -> np.ndarray:
        """Efforts (nu,) at a time from a measured state, within the limits.

        u = tau_k + K_k [q_ref ⊖ q; v_ref - v], with the reference linear between knots.
        """
        k, share = self.interval(plan, time)
        q_ref = self._between(plan, np.array([k + share]))[0]
        v_ref = plan.v[k] + share * (plan.v[k + 1] - plan.v[k])
        u = plan.tau[k]
        if is_measurement(q, v):
            dq = difference(self._bases, q_ref[None], np.array(q)[None])[0]
            u = u + plan.gains[k] @ np.concatenate([dq, v_ref - v])
        return np.clip(u, *self.effort_limits())

    def interval(self, plan: MpcPlan, time: float) -> tuple[int, float]:
        """Number of a plan's interval at a time [s], and the share of it that is over;
        between knots a plan is linear."""
        at = (time - plan.time) / plan.step
        k = int(at := min(max(at, 0.0), self.problem.knots - 1e-9))
        return k, at - k


def _badness(plan: MpcPlan) -> tuple[bool, bool, float]:
    """A key that sorts plans, the best first: one that is not ok may keep its dynamics
    by contact that is too soft, and they may be NaN."""
    missed = plan.residuals["dynamics"]
    return not plan.ok, not missed < np.inf, missed


def is_measurement(q: np.ndarray, v: np.ndarray) -> bool:
    """Whether these are numbers that a sensor may have measured: NaN is none, nor is
    what a plant gives that has blown up."""
    largest = RANGES[""][1]
    return bool((np.abs(q) < largest).all() and (np.abs(v) < largest).all())


class _Mapped:
    """A CasADi function of all intervals at once, without copies.

    Arguments are rows (N, n); an output (rows, columns) is returned transposed, as
    (N, columns, rows), and (N, rows) where it is a column. `found` is what it returned
    last.
    """

    def __init__(self, function, count: int):
        self._function = many(function, count)
        self._buffer, self._run = self._function.buffer()
        sizes = [function.size_in(i)[0] for i in range(function.n_in())]
        self._inputs = [np.zeros((count, n)) for n in sizes]
        shapes = []
        for i in range(function.n_out()):
            rows, columns = function.size_out(i)
            vector = columns == 1 and i < 4
            shapes.append((count, rows) if vector else (count, columns, rows))
        self.found = tuple(np.zeros(shape) for shape in shapes)
        for i, values in enumerate(self._inputs):
            if values.size:
                self._buffer.set_arg(i, memoryview(values))
        for i, values in enumerate(self.found):
            # CasADi writes an output's nonzeros, and asks for no more room than that.
            if values.size != self._function.nnz_out(i):
                name = self._function.name_out(i)
                raise InvalidInput(f"output {name} of {function.name()} is not dense")
            if values.size:
                self._buffer.set_res(i, memoryview(values))

    def __call__(self, *arguments) -> tuple[np.ndarray, ...]:
        for place, values in zip(self._inputs, arguments):
            place[:] = values
        self._run()
        return self.found
