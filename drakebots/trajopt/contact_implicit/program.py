"""Contact-implicit trajectory optimization with second-order dynamics.

Nothing says which foot touches when: contact forces, slips and steps are
variables of one program, which the variational blocks of `dynamics` and
`contact` tie together (Manchester, Doshi, Wood, Kuindersma, IJRR 2019; Doshi
et al., RSS 2018 eqs. (9)-(15)). With N knots, its variables are

    h (N-1)  v0  q (N)  u, psi, eta, gam, beta, lam, s (N-1)
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import casadi as ca
import numpy as np

from drakebots.core.errors import InvalidInput, UnknownName
from drakebots.trajopt.contact_implicit.dynamics import (
    contact_block,
    interval_block,
    loop_block,
    start_block,
)
from drakebots.trajopt.contact_implicit.system import DIRECTIONS, ContactSystem
from drakebots.trajopt.program import ProgramBuilder

# Cost terms that contact-implicit programs have in common.
#
# Each adds one named term to a program under construction. The sums run over the
# knots or intervals k; h are the steps and v the difference quotients of q. All
# is in the units of the program's plant, weights too.


def cost_input_steps(
    b: ContactImplicitBuilder, weight: float, per_unit: np.ndarray
) -> None:
    """`effort`: w/2 sum |p (u_k+1 - u_k)|^2, round the cycle where it is periodic.

    Args:
        b: the program.
        weight: w.
        per_unit: p (nu,), what a unit of each input is worth.
    """
    u, worth = b["u"].indices, ca.SX(per_unit)
    if b.problem.periodic is not None:
        u = np.vstack([u, u[:1]])
    b.cost(
        "effort",
        {"before": u[:-1], "after": u[1:]},
        lambda before, after: 0.5 * weight * ca.sumsqr(worth * (after - before)),
    )


def cost_velocity_steps(b: ContactImplicitBuilder, weight: float) -> None:
    """`smooth`: w sum |v_k+1 - v_k|^2.

    Both quotients are over the later step, (q_k - 2 q_k+1 + q_k+2) / h_k+1: the
    same where steps are equal, and smaller blocks.
    """
    q, h = b["q"].indices, b["h"].indices
    b.cost(
        "smooth",
        {"q0": q[:-2], "q1": q[1:-1], "q2": q[2:], "h": h[1:]},
        lambda q0, q1, q2, h: weight * ca.sumsqr((q0 - 2 * q1 + q2) / h),
    )


def cost_friction_power(b: ContactImplicitBuilder, weight: float) -> None:
    """`friction`: w mu sum h psi'gam, the energy lost in slip.

    Without it the cheapest gaits shuffle: feet slide forward under little load
    (docs/hamr.md).
    """
    mu = b.problem.friction
    b.cost(
        "friction",
        {name: b[name].indices for name in ("h", "gam", "psi")},
        lambda h, gam, psi: weight * mu * h * ca.dot(gam, psi),
    )


def cost_loop_forces(b: ContactImplicitBuilder, weight: float) -> None:
    """`loop_forces`: w sum |lam|^2.

    Raises:
        UnknownName: for a robot without loops.
    """
    b.cost(
        "loop_forces",
        {"lam": b["lam"].indices},
        lambda lam: weight * ca.sumsqr(lam),
    )


SLACK = (1e-6, 1.0)
"""Bounds of the complementarity slack, as the authors' code has them."""


@dataclass(frozen=True)
class Scales:
    """Typical sizes that solvers see as one, in the plant's units.

    Attributes:
        position: of the coordinates, a number or (nq,).
        force: of contact forces.
        loop_force: of loop forces.
        input: of inputs.
        speed: of slips.
        slack: of complementarity rows and their slack.
        momentum: of the dynamics' rows, a number or (nq,).
        gap: of loops' rows.
    """

    position: float | np.ndarray = 1.0
    force: float = 1.0
    loop_force: float = 1.0
    input: float = 1.0
    speed: float = 1.0
    slack: float = 1.0
    momentum: float | np.ndarray = 1.0
    gap: float = 1.0


@dataclass(frozen=True)
class ContactImplicit:
    """What all contact-implicit programs of a robot have in common.

    All quantities are in the units of the robot's plant.

    Attributes:
        system: the robot on its ground.
        knots: N >= 3.
        step: bounds of the step h, the same for all intervals.
        friction: mu of the ground.
        integrator: "midpoint" or "euler".
        input_bounds: (lower, upper), numbers or (nu,).
        position_bounds: (lower, upper) (nq,) or None for the joints' limits.
        periodic: names of the coordinates that may advance over a cycle, all
            others and the momentum repeat; None for no periodicity.
        loops_at_start: whether the loops also close at the first knot.
        slack: bounds of s.
        slack_weight: of the exact penalty on s.
        scales: see :class:`Scales`.
        name: for reports.
    """

    system: ContactSystem
    knots: int
    step: tuple[float, float]
    friction: float
    integrator: str = "midpoint"
    input_bounds: tuple = (-np.inf, np.inf)
    position_bounds: tuple | None = None
    periodic: Sequence[str] | None = None
    loops_at_start: bool = True
    slack: tuple[float, float] = SLACK
    slack_weight: float = 30.0
    scales: Scales = field(default_factory=Scales)
    name: str = "contact-implicit"

    def __post_init__(self):
        if int(self.knots) != self.knots or self.knots < 3:
            raise InvalidInput(f"knots must be a whole number >= 3, got {self.knots}")
        low, high = self.step
        if not 0 < low <= high < np.inf:
            raise InvalidInput(f"steps must be 0 < low <= high, got {low} and {high}")
        if not 0 <= self.friction < np.inf:
            raise InvalidInput(f"friction must be >= 0, got {self.friction}")
        if not 0 <= self.slack[0] <= self.slack[1]:
            raise InvalidInput(f"slack bounds must be 0 <= low <= high: {self.slack}")
        for name in self.periodic or ():
            if name not in self.system.coordinates:
                raise UnknownName("coordinate", name, self.system.coordinates)
        if not self.system.num_feet:
            raise InvalidInput(
                f"{self.system.robot.model.name} has no feet; name them with --feet or "
                "in the YAML beside the model"
            )
        if not self.system.nu:
            raise InvalidInput(
                f"{self.system.robot.model.name} has no actuators; add <transmission> "
                "or <drake:actuator> elements to its joints"
            )

    def builder(self) -> ContactImplicitBuilder:
        """The program's variables and dynamics, to add costs and goals to."""
        return ContactImplicitBuilder(self)


class ContactImplicitBuilder(ProgramBuilder):
    """A program under construction; see :class:`ContactImplicit`."""

    def __init__(self, problem: ContactImplicit):
        super().__init__(problem.name)
        self.problem, self.system = problem, problem.system
        self._declare_variables()
        self._add_dynamics()
        self._add_contact()
        if problem.periodic is not None:
            self._add_periodicity()
        self._slack_cost()

    @property
    def intervals(self) -> int:
        """N - 1."""
        return self.problem.knots - 1

    def _feet_labels(self) -> tuple[list[str], list[str]]:
        """Names of the feet, and of their directions along the ground."""
        feet = [foot.name for foot in self.system.robot.model.feet]
        return feet, [f"{foot}{d}" for foot in feet for d in DIRECTIONS]

    def _declare_variables(self) -> None:
        p, s = self.problem, self.system
        N, K, scales = p.knots, self.intervals, p.scales
        feet, along = self._feet_labels()
        if p.position_bounds is None:
            plant = s.robot.plant
            limits = plant.GetPositionLowerLimits(), plant.GetPositionUpperLimits()
        else:
            limits = p.position_bounds
        # Of forces times distances and speeds: bounded below by zero only.
        positive = {"lower": 0.0}
        self.add_variables(
            "h", K, [""], lower=p.step[0], upper=p.step[1], scale=np.mean(p.step)
        )
        self.add_variables(
            "v0", 1, s.coordinates, scale=scales.position / np.mean(p.step) / 10
        )
        self.add_variables(
            "q",
            N,
            s.coordinates,
            lower=limits[0],
            upper=limits[1],
            scale=scales.position,
        )
        low, high = p.input_bounds
        self.add_variables(
            "u", K, s.inputs_labels, lower=low, upper=high, scale=scales.input
        )
        self.add_variables("psi", K, feet, scale=scales.speed, **positive)
        self.add_variables("eta", K, along, scale=scales.speed, **positive)
        self.add_variables("gam", K, feet, scale=scales.force, **positive)
        self.add_variables("beta", K, along, scale=scales.force, **positive)
        if s.num_loop_rows:
            self.add_variables(
                "lam", K, s.robot.closure.row_names, scale=scales.loop_force
            )
        self.add_variables(
            "s", K, [""], lower=p.slack[0], upper=p.slack[1], scale=scales.slack
        )

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
        p, s, K = self.problem, self.system, self.intervals
        equal = {"lower": 0.0, "upper": 0.0}
        momentum = p.scales.momentum
        # Row k of `dynamics` is the momentum balance at knot k + 1.
        balance = self.add_rows(
            "dynamics", K - 1, s.coordinates, scale=momentum, **equal
        )
        start = self.add_rows("start", 1, s.coordinates, scale=momentum, **equal)
        block = interval_block(s, p.integrator)
        q0, q1 = self.ends()
        inputs = {
            "h": self["h"].indices,
            "q0": q0,
            "q1": q1,
            **{name: self._interval(name) for name in ("u", "lam", "gam", "beta")},
        }
        last = self._wrap()
        rows = {
            "after": np.vstack([balance.indices, last]),
            "before": np.vstack([start.indices, balance.indices]),
        }
        if s.num_loop_rows:
            rows["loops"] = self.add_rows(
                "loops",
                K,
                s.robot.closure.row_names,
                scale=p.scales.gap,
                **equal,
            ).indices
            if p.loops_at_start:
                first = self.add_rows(
                    "loops_start",
                    1,
                    s.robot.closure.row_names,
                    scale=p.scales.gap,
                    **equal,
                )
                self.add_term(
                    loop_block(s),
                    {"q": self["q"].indices[:1]},
                    {"loops": first.indices},
                )
        # dynamics = p+ of the interval before - p- of the interval after;
        # start = M v0 - p- of the first; wrap = p+ of the last - p- of the first.
        self.add_term(block, inputs, rows, signs={"before": -1.0})
        at_start = start_block(s)
        v0 = {"q": self["q"].indices[:1], "v": self["v0"].indices}
        self.add_term(at_start, v0, {"momentum": start.indices})
        if p.periodic is not None:
            wrap = self._rows["wrap"]
            self.add_term(
                at_start, v0, {"momentum": wrap.indices}, signs={"momentum": -1.0}
            )

    def _wrap(self) -> np.ndarray:
        """Rows that take p+ of the last interval.

        Periodic: the momentum repeats, p+(last) = M(q_1) v_0. Otherwise the
        final momentum is free: no rows.
        """
        if self.problem.periodic is None:
            return np.full((1, self.system.nq), -1)
        return self.add_rows(
            "wrap",
            1,
            self.system.coordinates,
            lower=0.0,
            upper=0.0,
            scale=self.problem.scales.momentum,
        ).indices

    def _add_contact(self) -> None:
        p, s, K = self.problem, self.system, self.intervals
        feet, along = self._feet_labels()
        scales = p.scales
        rows = {
            "distance": self.add_rows("distance", K, feet, lower=0.0),
            "slip": self.add_rows(
                "slip", K, along, lower=0.0, upper=0.0, scale=scales.speed
            ),
            "cone": self.add_rows("cone", K, feet, lower=0.0, scale=scales.force),
            "complementarity": self.add_rows(
                "complementarity",
                K,
                ("distance*normal", "cone*psi", "slip*friction"),
                upper=0.0,
                scale=scales.slack,
            ),
        }
        q0, q1 = self.ends()
        inputs = {"q0": q0, "q1": q1}
        inputs |= {n: self[n].indices for n in ("h", "gam", "beta", "psi", "eta", "s")}
        self.add_term(
            contact_block(s),
            inputs,
            {name: group.indices for name, group in rows.items()},
            data=np.full((K, 1), p.friction),
        )

    def _add_periodicity(self) -> None:
        """q of the last knot equals q of the first, but where it may advance."""
        names = [n for n in self.system.coordinates if n not in self.problem.periodic]
        index = [self.system.coordinates.index(n) for n in names]
        scale = np.broadcast_to(self.problem.scales.position, (self.system.nq,))[index]
        rows = self.add_rows(
            "periodic", 1, names, lower=0.0, upper=0.0, scale=scale
        ).indices
        self.difference(
            self["q"].indices[-1:, index], self["q"].indices[:1, index], rows
        )

    def equal_steps(self) -> None:
        """All steps h are the same."""
        h = self["h"].indices
        rows = self.add_rows("equal_steps", len(h) - 1, [""], lower=0.0, upper=0.0)
        self.difference(h[1:], h[:-1], rows.indices)

    def _slack_cost(self) -> None:
        weight = self.problem.slack_weight
        self.cost("slack", {"s": self["s"].indices}, lambda s: weight * s)

    def running_cost(
        self, function: Callable[[ca.SX, ca.SX, ca.SX], ca.SX], name: str = "running"
    ) -> None:
        """Adds sum_k h_k g(q_m, v_m, u_k) with midpoints and difference quotients."""
        q0, q1 = self.ends()
        self.cost(
            name,
            {"h": self["h"].indices, "q0": q0, "q1": q1, "u": self["u"].indices},
            lambda h, q0, q1, u: h * function((q0 + q1) / 2, (q1 - q0) / h, u),
        )
