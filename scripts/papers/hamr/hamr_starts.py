"""Runs of HAMR from starts that differ by a rounding, and their figures.

Impacts amplify what rounding changes: near instability another processor's last bits
make another stride. Such a figure is a distribution, and one run is a sample of it.

    runs = starts(hamr.Tracking(plan), 20)
    spread(runs.data.stride_mm_per_cycle.values)    # {"mean": ..., "worst": ..., ...}

A module without a command: the tables of this folder are made with it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from drakebots.core.checks import check_value, whole
from drakebots.core.run import Progress
from drakebots.results import Result
from drakebots.sweeps import sweep

START_ERROR = 1e-9
"""Largest change of a start's positions and angles [m, rad]."""

STARTS = 20
"""Number of starts of a figure that is published."""


def starts(
    problem: Any,
    count: int = STARTS,
    *,
    out: str | Path | None = None,
    workers: int | None = None,
    progress: Progress | None = None,
) -> Result:
    """A sweep of a problem over starts that differ by :data:`START_ERROR`.

    Args:
        problem: with the fields `start_error` and `seed`, which makes the changes;
            seeds go on from its own.
        count: number of starts.
        out, workers, progress: as of :func:`sweep`.

    Raises:
        InvalidInput, FileProblem: as :func:`sweep`.
    """
    check_value("count", count, whole(1))
    seeds = range(problem.seed, problem.seed + count)
    problem = replace(problem, start_error=START_ERROR)
    return sweep(problem, {"seed": seeds}, out=out, workers=workers, progress=progress)


def spread(values: Iterable[float]) -> dict[str, float | int | None]:
    """Mean, standard deviation and worst of a figure over some starts.

    Args:
        values: the figure of each run, the larger the better; NaN where it has none,
            which counts as the worst.

    Returns:
        mean and deviation over the runs that have it, worst (the least, or None where
        a run has none), starts (number of runs), failed (of those without).
    """
    all_of = np.array(list(values), float)
    there = all_of[np.isfinite(all_of)]
    failed = len(all_of) - len(there)
    return {
        "mean": float(there.mean()) if len(there) else None,
        "deviation": float(there.std()) if len(there) else None,
        "worst": float(there.min()) if len(there) and not failed else None,
        "starts": len(all_of),
        "failed": failed,
    }


def spread_text(found: Mapping[str, Any] | None) -> str:
    """A :func:`spread` in a table's cell: "9.02 ± 0.31, worst 8.26"."""
    if found is None or found["mean"] is None:
        return "-"
    worst = "none" if found["worst"] is None else f"{found['worst']:.2f}"
    return f"{found['mean']:.2f} ± {found['deviation']:.2f}, worst {worst}"
