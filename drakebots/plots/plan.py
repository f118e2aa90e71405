"""Plots of plans: how a solver converged."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from matplotlib.figure import Figure

from drakebots.core.errors import InvalidInput
from drakebots.plots.file import literal, write_figure
from drakebots.results import Result


def plot_convergence(result: Result, path: str | Path) -> Path:
    """Objective and largest violation over a solver's iterations.

    Raises:
        InvalidInput: for a result without an iteration log.
    """
    log = result.metrics.get("iteration_log") or {}
    if not log.get("obj"):
        raise InvalidInput("the result holds no iteration log; it is no plan")
    figure = Figure(figsize=(7, 4), layout="constrained")
    left = figure.subplots()
    right = left.twinx()
    count = np.arange(len(log["obj"]))
    left.plot(count, log["obj"], color="#4e79a7")
    left.set_ylabel("objective", color="#4e79a7")
    left.set_xlabel("iteration")
    if log.get("inf_pr"):
        violation = np.maximum(log["inf_pr"], 1e-16)
        right.semilogy(count, violation, color="#e15759")
    right.set_ylabel("largest violation (scaled)", color="#e15759")
    left.set_title(f"{literal(result.model)}: {result.verdict}")
    return write_figure(figure, path)
