"""Plots of executed plans: legs and body beside the plan, over all cycles."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from matplotlib.figure import Figure

from drakebots.core.errors import InvalidInput
from drakebots.plots import write_figure
from drakebots.results import Result

_PLAN, _RUN, _ESTIMATE = "#f28e2b", "#4e79a7", "#76b7b2"


def plot_track(run: Result, path: str | Path) -> Path:
    """Legs in the chassis frame and the chassis' pose, executed beside the plan.

    A gait's cycles after the ramp are folded onto one: their mean, and a band
    of a standard deviation; a run without a whole one is drawn as it is. In the manner
    of RSS 2018, Figs. 8 and 9.

    Raises:
        InvalidInput: for a result that is not an executed plan of HAMR.
    """
    data, facts = run.data, run.metrics
    if "base_rpy_planned" not in data:
        raise InvalidInput(
            f"needs an executed plan of HAMR, got a {run.kind}; make one with "
            "`drakebots track`"
        )
    fold = _Fold(run)
    figure = Figure(figsize=(11, 9), layout="constrained")
    panels = figure.subplots(4, 3, sharex=True)
    for i, leg in enumerate(data.leg.values):
        for j, (axis, name) in enumerate(((0, "x"), (2, "z"))):
            panel = panels[i, j]
            for source, color, label in (
                ("leg_position", _RUN, "run"),
                ("leg_estimated", _ESTIMATE, "estimate"),
                ("leg_planned", _PLAN, "plan"),
            ):
                fold.band(panel, 1e3 * data[source].values[:, i, axis], color, label)
            panel.set_ylabel(f"{leg} {name} [mm]")
    for panel, (label, scale, name, i) in zip(
        panels[:, 2],
        (
            ("z [mm]", 1e3, "base_position", 2),
            ("roll [deg]", 180 / np.pi, "base_rpy", 0),
            ("pitch [deg]", 180 / np.pi, "base_rpy", 1),
            ("yaw [deg]", 180 / np.pi, "base_rpy", 2),
        ),
    ):
        fold.band(panel, scale * data[name].values[:, i], _RUN, "run")
        planned = scale * data[f"{name}_planned"].values[:, i]
        fold.band(panel, planned, _PLAN, "plan")
        panel.set_ylabel(label)
    lines = panels[0, 0].get_legend_handles_labels()
    figure.legend(*lines, loc="outside lower center", ncols=3, fontsize=8)
    figure.get_layout_engine().set(w_pad=0.08)  # room for the labels between columns
    for panel in panels[-1]:
        panel.set_xlabel("fraction of a cycle" if fold.periodic else "time [ms]")
    for panel in panels.ravel():
        panel.grid(alpha=0.3)
    title = f"{run.model} {facts['reference']}, mu = {facts['friction']:.3g}"
    if fold.periodic:
        title += f", {1 / fold.period:g} Hz"
    figure.suptitle(f"{title}: executed ({facts['contact']}) beside the plan")
    return write_figure(figure, path)


class _Fold:
    """Folds a time series onto one cycle of the plan."""

    def __init__(self, run: Result):
        self.time = run.data.time.values
        self.period = float(run.metrics["period_s"])
        self.cycles = int(run.metrics.get("cycles", 0))
        # A run that was cut short may have no whole cycle after its ramp.
        self.periodic = bool(run.metrics["periodic"]) and self.cycles >= 1
        end = self.period * np.floor(self.time[-1] / self.period + 1e-6)
        self.start = end - self.cycles * self.period
        self.share = np.linspace(0, 1, 201)

    def band(self, panel, values: np.ndarray, color: str, label: str) -> None:
        """Draws mean and deviation over the cycles, or the series itself."""
        if not self.periodic:
            panel.plot(1e3 * self.time, values, color=color, label=label, lw=1.2)
            return
        starts = self.start + self.period * np.arange(self.cycles)
        moments = starts[:, None] + self.share * self.period
        table = np.interp(moments, self.time, values)
        mean, spread = table.mean(axis=0), table.std(axis=0)
        panel.plot(self.share, mean, color=color, label=label, lw=1.2)
        band = mean - spread, mean + spread
        panel.fill_between(self.share, *band, color=color, alpha=0.25, lw=0)
