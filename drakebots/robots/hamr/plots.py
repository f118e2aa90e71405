"""Plots of executed plans: legs and body beside the plan, over all cycles."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from matplotlib.figure import Figure

from drakebots.core.errors import InvalidInput
from drakebots.plots import write_figure
from drakebots.results import Result

_PLAN, _RUN, _SEEN = "#f28e2b", "#4e79a7", "#76b7b2"


def plot_tracking(run: Result, plan: Result, path: str | Path) -> Path:
    """Leg positions in the body frame and the body's pose over a cycle.

    A gait's cycles after the ramp are folded onto one: their mean, and a band
    of a standard deviation. In the manner of RSS 2018, Figs. 8 and 9.

    Raises:
        InvalidInput: for a run that tracked nothing.
    """
    data = run.data
    if "leg_planned" not in data:
        raise InvalidInput("the run holds no tracking; make one with drakebots track")
    fold = _Fold(run, plan)
    figure = Figure(figsize=(11, 9), layout="constrained")
    panels = figure.subplots(4, 3, sharex=True)
    for i, leg in enumerate(data.leg.values):
        for j, (axis, name) in enumerate(((0, "x"), (2, "z"))):
            panel = panels[i, j]
            fold.band(panel, 1e3 * data.leg_position.values[:, i, axis], _RUN, "run")
            fold.band(
                panel, 1e3 * data.leg_estimated.values[:, i, axis], _SEEN, "estimate"
            )
            fold.band(panel, 1e3 * data.leg_planned.values[:, i, axis], _PLAN, "plan")
            panel.set_ylabel(f"{leg} {name} [mm]")
    _body(panels[:, 2], fold, data, plan)
    panels[0, 0].legend(fontsize=7)
    for panel in panels[-1]:
        panel.set_xlabel("share of a cycle" if fold.periodic else "time [ms]")
    for panel in panels.ravel():
        panel.grid(alpha=0.3)
    facts = plan.metrics
    title = f"{run.model} {facts.get('gait')} {facts.get('surface')}"
    if fold.periodic:
        title += f" {facts['frequency_hz']:g} Hz"
    figure.suptitle(f"{title}: executed ({run.metrics.get('contact')}) beside the plan")
    return write_figure(figure, path)


def _body(panels, fold: _Fold, data, plan: Result) -> None:
    height = 1e3 * data.base_position.values[:, 2]
    rpy = np.degrees(data.base_rpy.values)
    planned = plan.data
    shown = [
        ("z [mm]", height, 1e3 * planned.base_position.values[:, 2]),
        *(
            (f"{name} [deg]", rpy[:, i], np.degrees(planned.base_rpy.values[:, i]))
            for i, name in enumerate(("roll", "pitch", "yaw"))
        ),
    ]
    times = planned.time.values
    for panel, (label, values, wish) in zip(panels, shown):
        fold.band(panel, values, _RUN, "run")
        along = times / times[-1] if fold.periodic else 1e3 * times
        panel.plot(along, wish, color=_PLAN, lw=1.2)
        panel.set_ylabel(label)


class _Fold:
    """Folds a time series onto one cycle of the plan."""

    def __init__(self, run: Result, plan: Result):
        self.time = run.data.time.values
        self.periodic = bool(plan.metrics["periodic"])
        self.period = float(plan.data.time.values[-1])
        cycles = int(run.metrics.get("cycles", 0))
        if self.periodic and cycles < 1:
            raise InvalidInput("the run has no whole cycle after its ramp")
        end = self.period * np.floor(self.time[-1] / self.period + 1e-6)
        self.start = end - cycles * self.period
        self.cycles = cycles
        self.share = np.linspace(0, 1, 201)

    def band(self, panel, values: np.ndarray, color: str, label: str) -> None:
        """Draws mean and deviation over the cycles, or the series itself."""
        if not self.periodic:
            panel.plot(1e3 * self.time, values, color=color, label=label, lw=1.2)
            return
        starts = self.start + self.period * np.arange(self.cycles)
        table = np.array(
            [np.interp(t + self.share * self.period, self.time, values) for t in starts]
        )
        mean, spread = table.mean(axis=0), table.std(axis=0)
        panel.plot(self.share, mean, color=color, label=label, lw=1.2)
        panel.fill_between(
            self.share, mean - spread, mean + spread, color=color, alpha=0.25, lw=0
        )
