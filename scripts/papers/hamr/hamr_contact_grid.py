"""HAMR-VI's gait planned with contact on a coarser grid than the states.

The paper's future work: "the contact mode trajectory often changes over longer
timescales than the state and input trajectories. Encoding this into the NLP formulation
by using higher order time-stepping methods could aid convergence and avoid unnecessary
contacts without sacrificing richness in the contact force trajectories" (RSS 2018,
section VII). Here m intervals of a plan make an element, in three ways:

    touch  a foot touches or does not for a whole element: sum phi_i sum gam_j <= s over
           all i, j of it, while forces, slip and friction's sides are of intervals
    modes  so do sticking and slipping, sum cone_i sum psi_j, sum eta_i . sum beta_j
    held   contact forces are constant in an element; complementarity at all its knots

    python scripts/papers/hamr/hamr_contact_grid.py
    python scripts/papers/hamr/hamr_contact_grid.py --grid touch:2 --grid held:5
    python scripts/papers/hamr/hamr_contact_grid.py --quick

Each plan starts from the same warm start. Its accuracy is that of a rollout: from its
first state under its voltages in open loop for a cycle, by hard contact in steps of
0.1 ms. Then it is executed for five cycles under the leg controller in SAP.

JSON: grids.
"""

from __future__ import annotations

import sys
import time
from dataclasses import dataclass
from pathlib import Path
from unittest import mock

import casadi as ca
import numpy as np
from rich.console import Console
from rich.table import Table

from drakebots.cli.output import one_line_errors
from drakebots.core.checks import check_value, one_of, whole
from drakebots.results import Result
from drakebots.robots.hamr import Gains, GaitProblem, Tracking, plan, track
from drakebots.robots.hamr.plan import packed, programs
from drakebots.robots.hamr.plan import plan as planner
from drakebots.trajopt.contact_implicit import ContactImplicit, ContactImplicitBuilder
from drakebots.trajopt.contact_implicit.system import contact_block
from drakebots.trajopt.program import Block

sys.path.append(str(Path(__file__).parents[2] / "bench"))
from measurement import Measurement

WAYS = ("fine", "touch", "modes", "held")

GRIDS = ("fine:1", "touch:2", "held:2", "touch:5", "modes:2", "held:5", "modes:5")
"""Ways and numbers of intervals in an element."""


@dataclass(frozen=True)
class Grid:
    """How contact is gridded: a way, and intervals in an element.

    Attributes:
        way: one of :data:`WAYS`.
        size: intervals m of an element.
    """

    way: str
    size: int

    @classmethod
    def of(cls, word: str) -> Grid:
        """The grid of a word, touch:2.

        Raises:
            UnknownName, InvalidInput: for another way or size.
        """
        way, _, size = word.partition(":")
        check_value("way", way, one_of("way", WAYS))
        return cls(way, check_value("intervals", int(size or 1), whole(1)))

    def elements(self, intervals: int) -> np.ndarray:
        """Numbers of the intervals of every element (elements, m).

        Raises:
            ValueError: where m does not divide their number.
        """
        return np.arange(intervals).reshape(-1, self.size)


# --- the program ------------------------------------------------------------


class GriddedBuilder(ContactImplicitBuilder):
    """A contact-implicit program whose contacts are on a grid of elements.

    Distances `phi` and the rest of the friction cone `cone` are variables beside those
    of the base, so that products over an element are bilinear.
    """

    grid: Grid

    def _declare_variables(self) -> None:
        super()._declare_variables()
        if self.grid.way in ("touch", "modes"):
            feet, force = self._feet, self.problem.scales.force
            self.add_variables("phi", self.intervals, feet, lower=0.0)
            self.add_variables("cone", self.intervals, feet, lower=0.0, scale=force)

    def _add_contact(self) -> None:
        if self.grid.way in ("touch", "modes"):
            self._add_products()
            return
        super()._add_contact()
        if self.grid.way == "held":
            for name in ("gam", "beta"):
                at = self[name].indices[self.grid.elements(self.intervals)]
                after, before = (
                    part.reshape(-1, at.shape[2]) for part in (at[:, 1:], at[:, :-1])
                )
                scale = self.problem.scales.force
                rows = self.equalities(
                    f"held_{name}", len(after), self[name].labels, scale=scale
                )
                self.difference(after, before, rows)

    def _add_products(self) -> None:
        """Contact by interval, but for its products, which are by element."""
        p, K, scales = self.problem, self.intervals, self.problem.scales
        along, feet = self._along, self._feet
        distance = self.equalities("distance", K, feet)
        cone = self.equalities("cone", K, feet, scale=scales.force)
        rows = {
            "distance": distance,
            "slip": self.equalities("slip", K, along, scale=scales.speed),
            "cone": cone,
            "complementarity": np.full((K, 3), -1),
        }
        q0, q1 = self.ends()
        names = ("h", "gam", "beta", "psi", "eta", "s")
        inputs = {"q0": q0, "q1": q1} | {n: self[n].indices for n in names}
        data = np.full((K, 1), p.friction)
        self.add_term(contact_block(self.system), inputs, rows, data=data)
        for name, at in (("phi", distance), ("cone", cone)):
            x = ca.SX.sym(name, len(feet))
            block = Block(f"value_{name}", {"x": x}, {name: x})
            where = {"x": self[name].indices}
            self.add_term(block, where, {name: at}, signs={name: -1.0})
        elements = self.grid.elements(K)
        single = np.arange(K)[:, None]
        friction = elements if self.grid.way == "modes" else single
        self._product("normal", ("phi", "gam"), elements, timed=False)
        self._product("stick", ("cone", "psi"), friction, timed=True)
        self._product("side", ("eta", "beta"), friction, timed=True)

    def _product(
        self, name: str, pair: tuple[str, str], elements: np.ndarray, *, timed: bool
    ) -> None:
        """Rows sum_i a_i . sum_j b_j <= s, over the intervals of each element, with the
        slack of its first."""
        slacks = self["s"].indices[elements[:, :1]].reshape(-1, 1)
        given = {
            key: self[key].indices[elements].reshape(len(elements), -1) for key in pair
        }
        count = elements.shape[1]

        def excess(s: ca.SX, h: ca.SX, **both: ca.SX) -> ca.SX:
            a, b = (ca.sum2(ca.reshape(x, -1, count)) for x in both.values())
            return (h if timed else 1) * ca.dot(a, b) - s

        steps = self["h"].indices[elements[:, :1]].reshape(-1, 1)
        self.constraint(
            f"complementarity_{name}",
            {"s": slacks, "h": steps, **given},
            excess,
            upper=0.0,
            labels=[""],
            scale=self.problem.scales.slack,
        )


def gridded(grid: Grid) -> type:
    """The class of a contact-implicit problem whose contacts are on a grid."""
    builder = type("Builder", (GriddedBuilder,), {"grid": grid})
    return type("Gridded", (ContactImplicit,), {"builder": lambda self: builder(self)})


def planned(problem: GaitProblem, grid: Grid, **how) -> Result:
    """A gait planned with contact on a grid.

    The planner makes its programs by :class:`ContactImplicit`; as this is a trial and
    no feature, the class is replaced while it runs.
    """

    def start(program, guess):
        x = packed(program, guess)
        if "phi" not in program.variables:
            return x
        height = programs.hamr_system().foot_positions(guess.q[1:])[..., 2]
        gam = program.view(x)["gam"]
        known = {"phi": np.maximum(height, 0.0), "cone": problem.mu * gam}
        return program.pack(known, default=x)

    if grid.way == "fine":
        return plan(problem, **how)
    with (
        mock.patch.object(programs, "ContactImplicit", gridded(grid)),
        mock.patch.object(sys.modules[planner.__module__], "packed", start),
    ):
        return plan(problem, **how)


def counted(problem: GaitProblem, grid: Grid) -> tuple[Result, int]:
    """A plan, and the number of iterations with all weights of the slack."""
    told: list = []
    result = planned(problem, grid, progress=lambda *state: told.append(state))
    return result, len(told)


# --- what it is worth -------------------------------------------------------


def touches(result: Result) -> int:
    """Number of times that feet begin to carry load in a cycle."""
    load = result.data.foot_force.values[1:, :, 2] > 1e-6
    return int((load & ~np.roll(load, 1, axis=0)).sum())


def run(
    words,
    *,
    frequency=10.0,
    surface="card",
    knots=51,
    limit=600.0,
    execute=True,
    say=print,
):
    """A row for every grid."""
    rows = []
    for word in words:
        problem = GaitProblem(
            frequency=frequency, surface=surface, knots=knots, time_limit=limit
        )
        began = time.process_time()
        result, iterations = counted(problem, Grid.of(word))
        m = result.metrics
        row = {"grid": word, "knots": knots, "verdict": str(result.verdict)}
        row |= {"cpu_s": time.process_time() - began, "iterations": iterations}
        row |= {"objective": m.get("objective"), "stride_mm": m["stride_mm"]}
        row |= {"complementarity": m["complementarity_max"], "touches": touches(result)}
        if execute:
            row |= executed(result)
        rows.append(row)
        say(str(row))
    return rows


def executed(result: Result) -> dict:
    """Errors of a rollout of a cycle in open loop, and the stride under control."""
    free = Tracking(
        result, contact="stepping", gains=Gains(0.0, 0.0), ramp=0.0, cycles=1
    )
    rolled = track(free).metrics
    walked = track(Tracking(result, cycles=5)).metrics
    return {
        "leg_x_mm": rolled["leg_error_x_mm"],
        "leg_z_mm": rolled["leg_error_z_mm"],
        "body": rolled["body_error"],
        "executed_mm": walked.get("stride_mm_per_cycle"),
    }


def table(rows: list[dict]) -> Table:
    """A row a grid."""
    out = Table(title="HAMR-VI planned with contact on a coarser grid")
    heads = ("contact", "knots", "verdict", "cpu s", "iterations", "touches", "planned")
    for head in (*heads, "rollout: legs x, z", "body z, pitch", "executed"):
        out.add_column(head, justify="right")
    for r in rows:
        cells = [r["grid"], str(r["knots"]), r["verdict"], f"{r['cpu_s']:.0f}"]
        cells += [str(r["iterations"]), str(r["touches"]), f"{r['stride_mm']:.2f}"]
        if "body" in r:
            cells.append(f"{r['leg_x_mm']:.3f}, {r['leg_z_mm']:.3f}")
            cells.append(f"{r['body']['z_mm']:.3f}, {r['body']['pitch_deg']:.2f}")
            cells.append(f"{r['executed_mm'] or float('nan'):.2f}")
        out.add_row(*cells)
    return out


def main(argv: list[str] | None = None) -> dict:
    """Parses arguments and runs; returns the JSON object that is printed."""
    parser = Measurement(__doc__, quick="11 knots, one grid")
    parser.add_argument("--grid", action="append", help="touch:2, ...; by default all")
    parser.add_argument("--frequency", type=float, default=10.0, help="[Hz]")
    parser.add_argument("--surface", default="card")
    parser.add_argument("--knots", type=int, default=51)
    parser.add_argument("--limit", type=float, default=600.0, help="of a plan [s]")
    args = parser.parse_args(argv)
    how = {"frequency": args.frequency, "surface": args.surface}
    how |= {"knots": args.knots, "limit": args.limit}
    words = args.grid or list(GRIDS)
    if args.quick:
        words, how = ["touch:2"], {"knots": 11, "limit": 60.0, "execute": False}
    console = Console(width=160)
    rows = run(words, say=console.print, **how)
    console.print(table(rows))
    return parser.report({"grids": rows})


if __name__ == "__main__":
    with one_line_errors("hamr_contact_grid"):
        main(sys.argv[1:])
