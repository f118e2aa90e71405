"""Contact-implicit trajectory optimization with second-order dynamics.

No one says which foot touches when: contact forces, slips and time steps are variables
of one program, which the variational blocks of `system` couple (Manchester, Doshi,
Wood, Kuindersma, IJRR 2019; Doshi et al., RSS 2018 eqs. (9)-(15)). With N knots, its
variables are

    h (N-1)  v0  q (N)  u, psi, eta, gam, beta, lam, s (N-1)
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Annotated

import casadi as ca
import numpy as np

from drakebots.core.checks import array, check_value, non_negative, one_of, whole
from drakebots.core.errors import InvalidInput, check_names
from drakebots.core.fields import check, checked
from drakebots.model import position_limits
from drakebots.trajopt.contact_implicit.system import (
    DIRECTIONS,
    INTEGRATORS,
    ContactSystem,
    check_legged,
    contact_block,
    interval_block,
    loop_block,
    start_block,
)
from drakebots.trajopt.program import ProgramBuilder


@checked("slack")
class Slack:
    """Slack s of the contact's products, at most s in each interval, and its exact
    penalty: weight times the sum of s."""

    least: Annotated[float, non_negative()] = 1e-6
    """Least s."""
    most: Annotated[float, non_negative()] = 1.0
    """Largest s."""
    weight: Annotated[float, non_negative()] = 30.0
    """Weight of the penalty."""

    def __post_init__(self):
        if not self.least <= self.most:
            raise InvalidInput(f"slack: least {self.least} is above most {self.most}")


@dataclass(frozen=True)
class Scales:
    """Typical sizes, in plant units, by which solvers' variables and rows are divided.

    Attributes:
        position: typical size of the coordinates, a number or (nq,).
        force: typical contact force.
        loop_force: typical loop force.
        input: typical input.
        speed: typical slip speed.
        slack: typical size of the complementarity rows and their slack.
        momentum: typical size of the dynamics' rows, a number or (nq,).
        gap: typical size of the loops' rows.
    """

    position: float | np.ndarray = 1.0
    force: float = 1.0
    loop_force: float = 1.0
    input: float = 1.0
    speed: float = 1.0
    slack: float = 1.0
    momentum: float | np.ndarray = 1.0
    gap: float = 1.0


@checked()
class ContactImplicit:
    """The common part of all contact-implicit programs of a robot.

    All quantities are in plant units.
    """

    system: ContactSystem
    """The robot on its ground."""
    knots: Annotated[int, whole(3)]
    """Number of knots N >= 3."""
    step: tuple[float, float]
    """Bounds of the time step h, the same for all intervals."""
    friction: Annotated[float, non_negative()]
    """Friction coefficient mu of the ground."""
    integrator: Annotated[str, one_of("integrator", INTEGRATORS)] = "midpoint"
    """Rule of integration, one of :data:`.system.INTEGRATORS`."""
    input_bounds: tuple = (-np.inf, np.inf)
    """Bounds (lower, upper) of the inputs, numbers or (nu,)."""
    position_bounds: tuple | None = None
    """Bounds (lower, upper) of q (nq,), or None for the joint limits."""
    periodic: Sequence[str] | None = None
    """Names of the coordinates that may advance over a cycle, while all others and the
    momentum repeat; None for a plan that is not periodic."""
    end_rest: Sequence[str] = ()
    """Names of the coordinates whose momentum is zero at the last knot of a plan that
    is not periodic."""
    loops_at_start: bool = True
    """Whether the loops also close at the first knot."""
    slack: Slack = Slack()
    """Slack of the contact and its penalty; only for contacts that are free."""
    levels: np.ndarray | None = None
    """Lengths (N-1, feet) by which the terrain's surface is raised under each foot at
    the end of each interval, or None for the terrain as it is. So a foot beside and a
    foot on a step each have smooth ground under them, in a program whose rows keep them
    on their sides."""
    scales: Scales = field(default_factory=Scales)
    """Typical sizes of variables and rows."""
    name: str = "contact-implicit"
    """Name of the program in reports."""

    def __post_init__(self):
        low, high = self.step
        if not 0 < low <= high < np.inf:
            raise InvalidInput(f"steps must be 0 < low <= high, got {low} and {high}")
        if self.periodic is not None and self.end_rest:
            raise InvalidInput("a periodic plan has no end to rest at; drop end_rest")
        named = (*(self.periodic or ()), *self.end_rest)
        check_names("coordinate", named, self.system.coordinates)
        if self.levels is not None:
            shape = (self.knots - 1, self.system.num_feet)
            check(self, "", levels=array(shape))
        check_legged(self.system.robot.model, self.system.nu)

    def builder(self) -> ContactImplicitBuilder:
        """A builder with the variables and dynamics; it takes costs and goals."""
        return ContactImplicitBuilder(self)


class ContactImplicitBuilder(ProgramBuilder):
    """A program under construction; see :class:`ContactImplicit`."""

    free_contacts = True
    """Whether the program decides which foot touches when."""

    def __init__(self, problem: ContactImplicit):
        super().__init__(problem.name)
        self.problem, self.system = problem, problem.system
        self.intervals = problem.knots - 1
        # Names of the feet, and of their directions along the ground.
        self._feet = [foot.name for foot in self.system.robot.model.feet]
        self._along = [f"{foot}{d}" for foot in self._feet for d in DIRECTIONS]
        self._declare_variables()
        self._add_dynamics()
        self._add_contact()
        if problem.periodic is not None:
            self._add_periodicity()
        if self.free_contacts:
            weight = problem.slack.weight
            self.cost("slack", {"s": self["s"].indices}, lambda s: weight * s)

    def _declare_variables(self) -> None:
        """Adds the variables of the module, with their bounds and scales."""
        p, s = self.problem, self.system
        K, scales, feet, along = self.intervals, p.scales, self._feet, self._along
        bounds = p.position_bounds
        if bounds is None:
            bounds = position_limits(s.robot.plant)
        typical = np.mean(p.step)

        def add(name, count, labels, scale, low=-np.inf, high=np.inf):
            bounds = {"lower": low, "upper": high}
            self.add_variables(name, count, labels, scale=scale, **bounds)

        add("h", K, [""], typical, *p.step)
        add("v0", 1, s.coordinates, scales.position / typical / 10)
        add("q", p.knots, s.coordinates, scales.position, *bounds)
        add("u", K, s.inputs_labels, scales.input, *p.input_bounds)
        if self.free_contacts:
            add("psi", K, feet, scales.speed, 0.0)
            add("eta", K, along, scales.speed, 0.0)
        add("gam", K, feet, scales.force, 0.0)
        add("beta", K, along, scales.force, 0.0)
        if s.num_loop_rows:
            add("lam", K, s.robot.closure.row_names, scales.loop_force)
        if self.free_contacts:
            add("s", K, [""], scales.slack, p.slack.least, p.slack.most)

    def _interval(self, name: str) -> np.ndarray:
        """Indices of a group's interval variables; empty for no such group."""
        if name in self._variables:
            return self[name].indices
        return np.zeros((self.intervals, 0), int)

    def ends(self) -> tuple[np.ndarray, np.ndarray]:
        """Indices of q at both ends of every interval."""
        q = self["q"].indices
        return q[:-1], q[1:]

    def _add_dynamics(self) -> None:
        """Adds rows of the dynamics, from the start to the wrap or the end."""
        p, s, K = self.problem, self.system, self.intervals
        momentum = p.scales.momentum
        # Row k of `dynamics` is the momentum balance at knot k + 1.
        balance = self.equalities("dynamics", K - 1, s.coordinates, scale=momentum)
        start = self.equalities("start", 1, s.coordinates, scale=momentum)
        # Rows that take p+ of the last interval: of a periodic plan, whose momentum
        # repeats, p+(last) = M(q_1) v_0; otherwise p+(last) = 0 where it shall rest.
        if p.periodic is None:
            wrap = np.full((1, s.nq), -1)
            if p.end_rest:
                index = [s.coordinates.index(name) for name in p.end_rest]
                scale = np.broadcast_to(momentum, (s.nq,))[index]
                wrap[:, index] = self.equalities("end_rest", 1, p.end_rest, scale=scale)
        else:
            wrap = self.equalities("wrap", 1, s.coordinates, scale=momentum)
        q0, q1 = self.ends()
        inputs = {"h": self["h"].indices, "q0": q0, "q1": q1}
        inputs |= {name: self._interval(name) for name in ("u", "lam", "gam", "beta")}
        rows = {
            "after": np.vstack([balance, wrap]),
            "before": np.vstack([start, balance]),
        }
        if s.num_loop_rows:
            closed = {"labels": s.robot.closure.row_names, "scale": p.scales.gap}
            rows["loops"] = self.equalities("loops", K, **closed)
            if p.loops_at_start:
                first = self.equalities("loops_start", 1, **closed)
                at = {"q": self["q"].indices[:1]}
                self.add_term(loop_block(s), at, {"loops": first})
        # dynamics = p+ of the interval before - p- of the interval after;
        # start = M v0 - p- of the first; wrap = p+ of the last - M v0;
        # end_rest = p+ of the last.
        block = interval_block(s, p.integrator)
        self.add_term(block, inputs, rows, signs={"before": -1.0})
        at_start = start_block(s)
        v0 = {"q": self["q"].indices[:1], "v": self["v0"].indices}
        self.add_term(at_start, v0, {"momentum": start})
        if p.periodic is not None:
            signs = {"momentum": -1.0}
            self.add_term(at_start, v0, {"momentum": wrap}, signs=signs)

    def _add_contact(self) -> None:
        """Adds rows of hard contact for all intervals."""
        p, s, K = self.problem, self.system, self.intervals
        products, scales = ("distance*normal", "cone*psi", "slip*friction"), p.scales
        add, feet = self.add_rows, self._feet
        rows = {
            "distance": add("distance", K, feet, lower=0.0).indices,
            "slip": self.equalities("slip", K, self._along, scale=scales.speed),
            "cone": add("cone", K, feet, lower=0.0, scale=scales.force).indices,
            "complementarity": add(
                "complementarity", K, products, upper=0.0, scale=scales.slack
            ).indices,
        }
        q0, q1 = self.ends()
        inputs = {"q0": q0, "q1": q1}
        inputs |= {n: self[n].indices for n in ("h", "gam", "beta", "psi", "eta", "s")}
        data = np.full((K, 1), p.friction)
        if p.levels is not None:
            data = np.hstack([data, p.levels])
        block = contact_block(s, levels=p.levels is not None)
        self.add_term(block, inputs, rows, data=data)

    def _add_periodicity(self) -> None:
        """q of the last knot equals q of the first, except where it may advance."""
        names = [n for n in self.system.coordinates if n not in self.problem.periodic]
        index = [self.system.coordinates.index(n) for n in names]
        scale = np.broadcast_to(self.problem.scales.position, (self.system.nq,))[index]
        q, rows = self["q"].indices, self.equalities("periodic", 1, names, scale=scale)
        self.difference(q[-1:, index], q[:1, index], rows)

    def equal_steps(self, runs: Sequence[slice] = (slice(None),)) -> None:
        """Makes all time steps h equal, or those of every run of intervals."""
        h = [self["h"].indices[run] for run in runs]
        if runs:
            after = np.vstack([run[1:] for run in h])
            rows = self.equalities("equal_steps", len(after), [""])
            self.difference(after, np.vstack([run[:-1] for run in h]), rows)

    def raise_feet(self, height: np.ndarray) -> None:
        """Keeps feet at least `height` (K, num_feet) above the ground at the ends of
        the intervals, plant units; 0 asks for no more than no penetration.

        Raises:
            InvalidInput: for another shape, or heights that are not >= 0.
        """
        lower = self._rows["distance"].lower
        heights = array(lower.shape, entry=non_negative())
        lower[:] = check_value("heights of feet", height, heights)

    def running_cost(self, function: Callable[[ca.SX, ca.SX, ca.SX], ca.SX]) -> None:
        """Adds sum_k h_k g(q_m, v_m, u_k) with midpoints and difference quotients."""
        q0, q1 = self.ends()
        at = {"h": self["h"].indices, "q0": q0, "q1": q1, "u": self["u"].indices}

        def cost(h: ca.SX, q0: ca.SX, q1: ca.SX, u: ca.SX) -> ca.SX:
            return h * function((q0 + q1) / 2, (q1 - q0) / h, u)

        self.cost("running", at, cost)


# --- cost terms -------------------------------------------------------------
#
# Each adds one named term to a program under construction. The sums run over the knots
# or intervals k; h are the time steps and v the difference quotients of q. Everything,
# weights included, is in plant units.


def cost_input_steps(
    b: ContactImplicitBuilder, weight: float, per_unit: np.ndarray
) -> None:
    """`effort`: w/2 sum |p (u_k+1 - u_k)|^2, across the wrap of a periodic plan.

    Args:
        b: the program.
        weight: w.
        per_unit: p (nu,), the weight of a unit of each input.
    """
    u, worth = b["u"].indices, ca.SX(per_unit)
    if b.problem.periodic is not None:
        u = np.vstack([u, u[:1]])

    def cost(before: ca.SX, after: ca.SX) -> ca.SX:
        return 0.5 * weight * ca.sumsqr(worth * (after - before))

    b.cost("effort", {"before": u[:-1], "after": u[1:]}, cost)


def cost_velocity_steps(
    b: ContactImplicitBuilder, weight: float, uneven: bool = False
) -> None:
    """`smooth`: w sum |v_k+1 - v_k|^2.

    Both quotients are over the later time step, (q_k - 2 q_k+1 + q_k+2) / h_k+1: the
    same where time steps are equal, and the blocks are smaller.

    Args:
        b: the program.
        weight: w.
        uneven: whether time steps differ, so that each quotient is over its own.
    """
    q, h = b["q"].indices, b["h"].indices
    at = {"q0": q[:-2], "q1": q[1:-1], "q2": q[2:], "h": h[1:]}
    if uneven:
        at["h0"] = h[:-1]

    def cost(q0: ca.SX, q1: ca.SX, q2: ca.SX, h: ca.SX, h0=None) -> ca.SX:
        even = h0 is None
        change = (q0 - 2 * q1 + q2) / h if even else (q2 - q1) / h - (q1 - q0) / h0
        return weight * ca.sumsqr(change)

    b.cost("smooth", at, cost)


def cost_rates(
    b: ContactImplicitBuilder, weight: float, coordinates: Sequence[int]
) -> None:
    """`rates`: w sum h |(q_k+1 - q_k)/h|^2 over some coordinates."""
    q = b["q"].indices[:, list(coordinates)]
    at = {"q0": q[:-1], "q1": q[1:], "h": b["h"].indices}
    b.cost("rates", at, lambda q0, q1, h: weight * ca.sumsqr(q1 - q0) / h)


def cost_friction_power(b: ContactImplicitBuilder, weight: float) -> None:
    """`friction`: w mu sum h psi'gam, the energy lost in slip.

    Without it the cheapest gaits shuffle: feet slide forward under little load
    (docs/evidence/hamr.md).
    """
    mu = b.problem.friction
    at = {name: b[name].indices for name in ("h", "gam", "psi")}
    b.cost("friction", at, lambda h, gam, psi: weight * mu * h * ca.dot(gam, psi))


def cost_loop_forces(b: ContactImplicitBuilder, weight: float) -> None:
    """`loop_forces`: w sum |lam|^2.

    Raises:
        UnknownName: for a robot without loops.
    """
    at = {"lam": b["lam"].indices}
    b.cost("loop_forces", at, lambda lam: weight * ca.sumsqr(lam))
