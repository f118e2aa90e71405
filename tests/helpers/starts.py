"""Runs under control whose course rounding decides."""

from __future__ import annotations

from drakebots.results import Result
from drakebots.robots.legged import Control
from drakebots.robots.legged.control import Run

APART = 1e-9
"""Between two starts [m, rad]."""


def first_that_holds(problem: Control, tries: int = 5) -> Result:
    """The first run that is a success, of starts that differ by APART, or the last one.

    Contact amplifies differences of rounding within one solve, so that each run is one
    of a distribution; docs/evidence/control.md has their shares.
    """
    for k in range(tries):
        run = Run(problem)
        q, v = run.plant.state()
        run.plant.start(q + k * APART, v)
        result = run.simulate()
        if result.ok:
            break
    return result
