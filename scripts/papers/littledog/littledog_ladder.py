"""A ladder to LittleDog's step-up: from a smooth ramp to the exact step.

From the authors' guess the exact step does not solve: the normal turns within
no length at its edge. A ramp of 5 cm with a cost on feet that load near its
edge does; a narrower ramp and the step with that cost lead to the step alone.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path

import casadi as ca
import numpy as np
from littledog_program import HEIGHT, START, authors_program, guess, judge, program

from drakebots.core.errors import InvalidInput
from drakebots.trajopt import Frame, Terrain
from drakebots.trajopt.program import compile_blocks
from drakebots.trajopt.solvers import Continuation, Stage, solve_continuation


@dataclass(frozen=True)
class Ramp(Terrain):
    """The step's near edge as a smooth rise, z = height (1 + tanh((x - a)/w))/2.

    phi is to first order, as of a height field, and the normal that of the
    ground straight below: shorter expressions than the gradient of phi.

    Attributes:
        width: w [m].
        start: a [m].
        height: [m].
    """

    width: float
    start: float = START
    height: float = HEIGHT

    def __post_init__(self):
        if not (0 < self.width < np.inf and 0 < self.height < np.inf):
            raise InvalidInput(
                f"a ramp's width and height must be > 0 m, got {self.width} and "
                f"{self.height}"
            )

    def _rise(self, p: ca.SX) -> tuple[ca.SX, ca.SX, ca.SX]:
        t = ca.tanh((p[0] - self.start) / self.width)
        slope = self.height / 2 * (1 - t**2) / self.width
        return self.height / 2 * (1 + t), slope, 1 / ca.sqrt(1 + slope**2)

    def distance(self, p: ca.SX) -> ca.SX:
        rise, _, cosine = self._rise(p)
        return (p[2] - rise) * cosine

    def frame(self, p: ca.SX) -> Frame:
        """t1 lies in the x-z plane and t2 = ey."""
        _, slope, c = self._rise(p)
        y = ca.SX(np.array([0, 1.0, 0]))
        return ca.vertcat(-slope * c, 0, c), ca.vertcat(c, 0, slope * c), y

    def scaled(self, length_unit: float) -> Ramp:
        L = length_unit
        return Ramp(self.width / L, self.start / L, self.height / L)


def _monotone(mu: float) -> dict:
    """A barrier that starts small, so that a good start is not thrown away."""
    push = ("bound_push", "bound_frac", "slack_bound_push", "slack_bound_frac")
    return {
        "mu_strategy": "monotone",
        "mu_init": mu,
        **dict.fromkeys(push, mu / 10),
    }


_EASY = {"tol": 1e-5, "acceptable_tol": 1e-3, "acceptable_iter": 10}


@cache
def ladder(folder: Path, quick: bool = False) -> tuple[Stage, ...]:
    """From a wide ramp to the exact step; all of it with a slack weight of 100."""
    make = partial(program, folder, slack_weight=100.0)
    edge, step = make(edge=0.03), make()
    exact = {"same_rows": True}
    wide = make(Ramp(0.05), edge=0.08)
    narrow = None if quick else make(Ramp(0.02), edge=0.05)
    # Compilers of different grounds run side by side; `edge` shares with `step`.
    grounds = [p for p in (wide, narrow, step) if p is not None]
    compile_blocks([t.block for p in grounds for t in (*p.terms, *p.costs)])
    first = Stage(
        wide,
        {**_EASY, "mu_strategy": "adaptive"},
        120 if quick else 200,
        "ramp 5 cm",
    )
    last = [
        Stage(edge, _EASY | _monotone(1e-4), 120, "edge cost", **exact),
        Stage(step, _EASY | _monotone(1e-4), 60 if quick else 200, "step", **exact),
    ]
    if quick:
        return (first, *last)
    return (
        first,
        Stage(narrow, _EASY | _monotone(1e-3), 150, "ramp 2 cm"),
        *last,
        # Once more from where that led, with a barrier that reaches further.
        Stage(edge, _EASY | _monotone(1e-3), 200, "edge again", spare=True, **exact),
        Stage(step, _EASY | _monotone(1e-4), 200, "step again", spare=True, **exact),
    )


def run(folder: Path, quick: bool, threads: int, seed: int) -> Continuation:
    """One start."""
    target, feet = authors_program(folder)
    return solve_continuation(
        ladder(folder, quick),
        guess(target, folder, seed),
        problem=target,
        accept=lambda x: judge(target, feet, x).valid,
        threads=threads,
    )
