"""The mechanics of a contact-implicit program with a given schedule of contacts.

Where it is known which foot touches when, complementarity disappears. A foot that is
loaded in the interval from q0 to q1 stands still, a foot in the air carries nothing:

    loaded    phi(q1) = 0,  t1'p_dot = t2'p_dot = 0,  gam >= least load,
              mu gam - 1'beta >= 0
    grounded  phi(q1) = 0,  gam = 0                         (landed, not yet loaded)
    in air    phi(q1) >= height,  gam = 0

with p_dot = J(q1) (q1 - q0)/h and the dynamics of `system`. A solution satisfies
all rows of the contact-implicit program: with the slip speeds that belong to it, it is
a solution, or a start, of that program.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Annotated

import casadi as ca
import numpy as np

from drakebots.core.checks import array, numeric
from drakebots.core.errors import InvalidInput
from drakebots.core.fields import checked
from drakebots.model import independent_rows
from drakebots.trajopt.contact_implicit.program import (
    ContactImplicit,
    ContactImplicitBuilder,
)
from drakebots.trajopt.contact_implicit.system import ContactSystem
from drakebots.trajopt.program import Block, Program

PLAY = 1e-6, 1e-3
"""Range of rows that depend on others within a motion, and at all poses near it: they
hold where those do, and equations would make multipliers without bound. The more play,
the sooner an interior point gets through. Of the second, walks of humanoids use 1e-9,
and of a quadruped whose legs swing fore and aft 1e-6. Plant units, of order one in
planning."""

ALMOST = 0.01
"""Rows whose share of the largest pivot is less, at a pose near the motion, depend on
others within it: of the sideways slip of four feet that swing fore and aft one does on
a level robot, and its share is 0.002 where the pose is changed by 0.05 rad."""


@checked("schedule")
class Schedule:
    """Schedule of the feet's contacts; rows are intervals, columns feet.

    Raises:
        InvalidInput: for arrays of different shapes, or a loaded foot in the air.
    """

    loaded: Annotated[np.ndarray, array((None, None), of=bool)]
    """Whether a foot may carry load in an interval (K, nc)."""
    grounded: Annotated[np.ndarray, array((None, None), of=bool)]
    """Whether it is on the ground at the interval's end (K, nc); loaded feet are."""
    height: Annotated[np.ndarray, numeric()]
    """Least height above the ground at the interval's end where it is not grounded (K,
    nc), plant units."""
    load: Annotated[np.ndarray, numeric()]
    """Least normal force of loaded feet (K, nc), plant units."""

    def __post_init__(self):
        shapes = {np.shape(a) for a in vars(self).values()}
        if len(shapes) != 1:
            raise InvalidInput(f"arrays of a schedule have shapes {sorted(shapes)}")
        if (self.loaded & ~self.grounded).any():
            raise InvalidInput("a loaded foot is on the ground; mark it as grounded")


class ScheduledBuilder(ContactImplicitBuilder):
    """A program with a given schedule; it takes costs and goals.

    Its variables are those of the contact-implicit program without psi, eta and s.

    Args:
        problem: bounds, scales and dynamics.
        schedule: contacts of the feet.
        generic: a pose (nq,) without symmetry near the motion, at which rows that
            depend on others are found: a flat foot on four points stands still
            already by three of them.
        friction: friction coefficient that the forces keep to; None for the
            problem's.
        rests: intervals in which nothing moves, by rows that the caller adds; then
            their feet stand still already.
    """

    free_contacts = False
    compiles = False  # a few iterations; compiling takes longer

    def __init__(
        self,
        problem: ContactImplicit,
        schedule: Schedule,
        generic: np.ndarray,
        *,
        friction: float | None = None,
        rests: Sequence[int] = (),
    ):
        self.schedule, self.generic, self.rests = schedule, generic, list(rests)
        self.friction = problem.friction if friction is None else friction
        super().__init__(problem)

    def _add_dynamics(self) -> None:
        super()._add_dynamics()
        if "loops" in self._rows:
            # An interval at rest has the loops of the knot before.
            self._rows["loops"].lower[self.rests] = -np.inf
            self._rows["loops"].upper[self.rests] = np.inf

    def _add_contact(self) -> None:
        """Rows and bounds of the scheduled contacts; see the module."""
        p, s, schedule = self.problem, self.system, self.schedule
        free = ~schedule.loaded
        along = np.repeat(free, 4, axis=1)
        self._variables["gam"].upper[free] = 0.0
        self._variables["beta"].upper[along] = 0.0
        lower = np.where(schedule.loaded, schedule.load, 0.0)
        self._variables["gam"].lower[:] = np.maximum(lower, 0.0)
        gaps, slips = self._play()
        q0, q1 = self.ends()
        h = self["h"].indices
        for i, foot in enumerate(self._feet):
            block = _foot_block(s, i)
            air = ~schedule.grounded[:, i]
            ground = np.where(air, schedule.height[:, i], 0.0)
            play = gaps[:, i].copy()
            ground[self.rests], play[self.rests] = -np.inf, np.inf
            most = np.where(air, np.inf, play)
            bounds = {"lower": ground[:, None], "upper": most[:, None]}
            rows = self.add_rows(f"distance_{foot}", len(air), [""], **bounds)
            self.add_term(block["distance"], {"q1": q1}, {"distance": rows.indices})
            knots = np.flatnonzero(schedule.loaded[:, i])
            if len(knots):
                play = slips[knots, i]
                play[np.isin(knots, self.rests)] = np.inf
                bounds = {"lower": -play, "upper": play, "scale": p.scales.speed}
                rows = self.add_rows(f"slip_{foot}", len(knots), ("t1", "t2"), **bounds)
                inputs = {"h": h[knots], "q0": q0[knots], "q1": q1[knots]}
                self.add_term(block["slip"], inputs, {"slip": rows.indices})
                self._add_cone(i, knots)

    def _add_cone(self, foot: int, knots: np.ndarray) -> None:
        """mu gam - 1'beta >= 0 for a foot at some intervals."""
        mu = self.friction
        self.constraint(
            f"cone_{self._feet[foot]}",
            {
                "gam": self["gam"].indices[knots, foot : foot + 1],
                "beta": self["beta"].indices[knots, 4 * foot : 4 * foot + 4],
            },
            lambda gam, beta: mu * gam - ca.sum1(beta),
            lower=0.0,
            labels=[""],
            scale=self.problem.scales.force,
        )

    def _play(self) -> tuple[np.ndarray, np.ndarray]:
        """Play of the rows, none of those that are equations: distances (K, nc), slips
        (K, nc, 2)."""
        s, schedule = self.system, self.schedule
        loops, normals, tangents = _stance_jacobian(s, self.generic)
        outside = np.eye(s.nq) - np.linalg.pinv(loops, rcond=1e-9) @ loops
        K, nc = schedule.loaded.shape
        gaps, slips = np.zeros((K, nc)), np.zeros((K, nc, 2))
        found: dict[bytes, np.ndarray] = {}
        for k in range(K):
            grounded, loaded = schedule.grounded[k], schedule.loaded[k]
            key = np.concatenate([grounded, loaded]).tobytes()
            if key not in found:
                rows = np.vstack([normals[grounded], *tangents[loaded]]) @ outside
                found[key] = play = np.full(len(rows), PLAY[1])
                play[independent_rows(rows)] = PLAY[0]
                play[independent_rows(rows, ALMOST)] = 0.0
            count = grounded.sum()
            gaps[k, grounded] = found[key][:count]
            slips[k, loaded] = found[key][count:].reshape(-1, 2)
        return gaps, slips


def _stance_jacobian(system: ContactSystem, q: np.ndarray):
    """Jacobians at q: of loops (m, nq), normals (nc, nq), tangents (nc, 2, nq)."""
    symbol, v = ca.SX.sym("q", system.nq), ca.SX.sym("v", system.nq)
    phi, speed = system.contact_motion(symbol, v)
    c, _ = system.loop_force(symbol, ca.SX.zeros(system.num_loop_rows))
    out = [ca.jacobian(c, symbol), ca.jacobian(phi, symbol), ca.jacobian(speed, v)]
    function = ca.Function("stance", [symbol, v], out)
    loops, normals, along = (np.array(a) for a in function(q, np.zeros(system.nq)))
    # The directions are +t1, -t2, -t1, +t2.
    tangents = along.reshape(system.num_feet, 4, system.nq)[:, [0, 3]]
    return loops, normals, tangents


def _foot_block(system: ContactSystem, i: int) -> dict[str, Block]:
    """Blocks of one foot: its distance at q1, and its speeds along the ground."""
    sizes = {"h": 1, "q0": system.nq, "q1": system.nq}
    symbols = {name: ca.SX.sym(name, size) for name, size in sizes.items()}
    h, q0, q1 = symbols.values()
    phi, _ = system.contact_motion(q1, ca.SX.zeros(system.nq))
    _, speed = system.contact_motion(q1, (q1 - q0) / h)
    # The directions are +t1, -t2, -t1, +t2.
    slip = ca.vertcat(speed[4 * i], speed[4 * i + 3])
    return {
        "distance": Block(f"distance_{i}", {"q1": q1}, {"distance": phi[i]}),
        "slip": Block(f"slip_{i}", symbols, {"slip": slip}),
    }


def with_free_contacts(
    system: ContactSystem,
    friction: float,
    parts: Mapping[str, np.ndarray],
    free: Program,
) -> np.ndarray:
    """x of the contact-implicit program from the parts of a scheduled one.

    The slip speed psi of a foot is its fastest one along the ground, eta = D'p_dot +
    psi, and the slack s is the largest sum of products of an interval, within bounds.
    """
    found = system.contact_products(parts, friction)
    sums = np.max([product.sum(axis=1) for product in found["products"]], axis=0)
    group = free.variables["s"]
    s = np.clip(sums[:, None], group.lower, group.upper)
    kept = {name: parts[name] for name in parts if name in free.variables}
    x = free.pack({**kept, "psi": found["psi"], "eta": found["eta"], "s": s})
    return np.clip(x, free.x_lower, free.x_upper)
