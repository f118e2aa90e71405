"""Figures of quad-robots' plans and tracking runs.

:func:`plot_plan` draws the kinds "quads.plan", "quads.space_time" and "quads.frames",
and :func:`plot_track` the kind "quads.track". The panels are functions of their own,
for figures of experiments.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
from matplotlib.axes import Axes

from drakebots.core.errors import InvalidInput
from drakebots.core.units import GRAVITY
from drakebots.plots import (
    COLOURS,
    draw_lines,
    legend_beside,
    literal,
    panels,
    save,
)
from drakebots.results import Result, require
from drakebots.robots.quads.motion.motion import runs

BAR = "#f2c14e"


def plot_plan(result: Result, path: str | Path) -> Path:
    """Draws footfall pattern and loads, COM, COP margin and torques of a plan.

    Args:
        result: a plan, a space-time plan or a step-by-step plan.
        path: file to write (.png, .pdf, .svg).

    Raises:
        InvalidInput: when the result is no plan of a quad-robot, or for the ending.
        FileProblem: when the file cannot be written.
    """
    if _contact(result) is None or "foot" not in result.data.dims:
        raise InvalidInput("the result has no footfall pattern to plot")
    runs = {"plan": result}
    return _save(result, path, draw_bars, lambda axes, _: draw_com(axes, runs))


def plot_track(result: Result, path: str | Path) -> Path:
    """Draws path of the COM, roll and pitch, COP margin and torques of a tracking run.

    Args:
        result: a run of :func:`~drakebots.robots.quads.track.track`.
        path: file to write (.png, .pdf, .svg).

    Raises:
        InvalidInput: when the result is no tracking run, or for the ending.
        FileProblem: when the file cannot be written.
    """
    run = "tracking run of a quad-robot to plot"
    require(result.data, "roll_pitch planned_com", run)
    runs = {"run": result}
    return _save(result, path, lambda axes, _: draw_com(axes, runs), _draw_tilt)


def _save(result: Result, path: str | Path, *drawn) -> Path:
    """A figure of some panels, and of COP margin and torques."""
    figure, grid = panels(len(drawn) + 2, 1, (8.0, 9.0 / (len(drawn) + 2)))
    for draw, axes in zip(drawn, grid):
        draw(axes, result)
    draw_margin(grid[-2], {"": result})
    draw_torques(grid[-1], result)
    for axes in grid:
        axes.set_xlabel("time [s]")
    motion = result.metrics.get("motion", result.kind)
    figure.suptitle(f"{literal(result.model)}: {motion}")
    return save(figure, path)


def draw_bars(axes: Axes, result: Result) -> None:
    """Bars of contact for each foot; the line in each is its load over the weight."""
    t, feet = result.data.time.values, [str(f) for f in result.data.foot.values]
    dt = t[1] - t[0] if len(t) > 1 else 1.0
    loads, contact = _foot_loads(result), _contact(result)
    for k in range(len(feet)):
        spans = [(t[a], t[b - 1] - t[a] + dt) for a, b in runs(contact[:, k])]
        axes.broken_barh(spans, (k - 0.4, 0.8), color=BAR)
        if loads is not None:
            axes.plot(t, k + 0.4 - 0.8 * loads[:, k], color="#222", lw=0.8)
    axes.set_yticks(range(len(feet)), list(map(literal, feet)))
    axes.invert_yaxis()
    axes.set_title("contacts, and load over weight", fontsize=9)


def _contact(result: Result) -> np.ndarray | None:
    """Feet on the ground by the footfall pattern (T, feet)."""
    names = (name for name in ("contact", "scheduled") if name in result.data)
    return next((result.data[name].values > 0 for name in names), None)


def _foot_loads(result: Result) -> np.ndarray | None:
    """Normal force of each foot over the weight (T, feet); None without forces."""
    data, metrics = result.data, result.metrics
    if "contact_force" not in data:
        return None
    feet, forces = list(map(str, data.foot.values)), data.contact_force.values[..., 2]
    of = [str(p).replace("/", "_").rpartition("_")[0] for p in data.patch.values]
    loads = forces @ np.array([[foot == name for name in feet] for foot in of], float)
    mass = metrics.get("mass_kg", metrics.get("mass"))
    weight = loads.sum(axis=1).mean() if mass is None else GRAVITY * mass
    return loads / weight


def draw_com(axes: Axes, runs: Mapping[str, Result]) -> None:
    """Displacement of the COM, solid, and what was requested or planned, dashed."""
    for (label, result), colour in zip(runs.items(), COLOURS):
        data = result.data
        com = data.com.values
        names = ("desired_com", "planned_com")
        target = next((data[n].values for n in names if n in data), None)
        for k, (axis, width) in enumerate(zip("xyz", (1.5, 1.0, 0.6))):
            moved = com[:, k] - com[0, k]
            name = f"{label}, {axis}"
            axes.plot(data.time, moved, color=colour, lw=width, label=name)
            if target is not None:
                axes.plot(data.time, target[:, k] - com[0, k], "--", color="#888")
    axes.set_ylabel("COM [m]")
    legend_beside(axes)


def _draw_tilt(axes: Axes, result: Result) -> None:
    """Roll and pitch of the base, and the plan's, dashed."""
    data = result.data
    for k, (name, colour) in enumerate(zip(("roll", "pitch"), COLOURS)):
        planned = np.degrees(data.planned_roll_pitch.values[:, k])
        axes.plot(data.time, planned, "--", color=colour, lw=0.8)
        tilt = np.degrees(data.roll_pitch.values[:, k])
        axes.plot(data.time, tilt, color=colour, lw=1, label=name)
    axes.set_ylabel("tilt [deg]")
    legend_beside(axes)


def draw_margin(axes: Axes, results: Mapping[str, Result]) -> None:
    """Distance of the COP from the nearest side of the support polygon."""
    for (label, result), colour in zip(results.items(), COLOURS):
        margin = result.data.get("cop_margin")
        if margin is not None:
            axes.plot(result.data.time, 1e3 * margin, color=colour, lw=1, label=label)
    axes.axhline(0, color="#888", lw=0.8)
    axes.set_ylabel("COP margin [mm]")
    if len(results) > 1:
        legend_beside(axes)


def draw_torques(
    axes: Axes, result: Result, joints: Sequence[str] | None = None
) -> None:
    """Torques of all joints, or of some by name, and the limits."""
    data = result.data
    axes.set_ylabel("torque [N m]")
    if "torque" not in data:
        return
    t, limit = data.time.values, data.get("torque_limit")
    torque = data.torque if joints is None else data.torque.sel(joint=list(joints))
    draw_lines(axes, t, torque.values, torque.joint.values, lw=0.9)
    legend_beside(axes)
    if limit is not None and np.isfinite(limit.values).any():
        most = float(np.nanmax(np.where(np.isfinite(limit), limit, np.nan)))
        # A limit far beyond all torques would flatten their curves.
        near = most < 3 * np.abs(axes.get_ylim()).max()
        for sign in (1, -1) if near else ():
            axes.axhline(sign * most, color="#888", lw=0.8, ls="--")
