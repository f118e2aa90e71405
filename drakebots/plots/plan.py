"""Plots of plans: strides beside the paper's, and how a solver converged."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
from matplotlib.figure import Figure

from drakebots.core.errors import InvalidInput
from drakebots.plots.file import write_figure
from drakebots.results import Result


def plot_gaits(rows: Sequence[dict], path: str | Path) -> Path:
    """Planned, executed and published strides of several gaits, as bars."""
    figure = Figure(figsize=(10, 4.5), layout="constrained")
    axis = figure.subplots()
    bars = {
        "planned": ("stride_mm", "#f28e2b"),
        "executed (SAP)": ("executed_stride_mm", "#4e79a7"),
        "executed (own stepping)": ("stepped_stride_mm", "#76b7b2"),
        "paper, executed, mean of surfaces": ("paper_executed_stride_mm", "#bab0ac"),
    }
    place = np.arange(len(rows))
    for i, (label, (key, color)) in enumerate(bars.items()):
        heights = [row.get(key) or np.nan for row in rows]
        axis.bar(place + 0.2 * (i - 1.5), heights, 0.2, label=label, color=color)
    axis.set_xticks(
        place, [f"{r['frequency_hz']:g} Hz\n{r['surface']}" for r in rows], fontsize=8
    )
    axis.set_ylabel("stride [mm a cycle]")
    axis.set_title("HAMR-VI: planned and executed gaits")
    axis.legend(fontsize=8, ncols=4, loc="upper center", bbox_to_anchor=(0.5, -0.12))
    axis.grid(axis="y", alpha=0.3)
    return write_figure(figure, path)


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
    left.set_title(f"{result.model}: {result.verdict}")
    return write_figure(figure, path)


def plot_jump(plan: Result, runs: Mapping[str, Result], path: str | Path) -> Path:
    """Height of the base and energy in the springs over a jump.

    Args:
        plan: of the jump.
        runs: its executions by name.
    """
    figure = Figure(figsize=(8, 5.5), layout="constrained")
    top, bottom = figure.subplots(2, sharex=True)
    start = plan.data.base_position.values[0, 2]
    for name, result in {"planned": plan, **runs}.items():
        data = result.data
        rise = 1e3 * (data.base_position.values[:, 2] - start)
        top.plot(1e3 * data.time.values, rise, label=name, lw=1.4)
    top.set_ylabel("base above standing [mm]")
    top.axhline(9.96, color="#bab0ac", ls="--", lw=1, label="paper, executed, best")
    top.legend(fontsize=8)
    energy = plan.metrics.get("spring_energy_mJ")
    if energy:
        bottom.plot(1e3 * plan.data.time.values, energy, color="#59a14f")
    bottom.set_ylabel("energy in springs [mJ]")
    bottom.set_xlabel("time [ms]")
    for axis in (top, bottom):
        axis.grid(alpha=0.3)
    top.set_title(f"{plan.model}: jump")
    return write_figure(figure, path)
