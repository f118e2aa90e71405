"""Figures of the experiments, after those of the paper.

A module without a command: `quad_experiments.py` draws them.
"""

from __future__ import annotations

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Polygon
from quad_setting import Outcome, Trial
from scipy.spatial import ConvexHull

from drakebots.plots import legend_below
from drakebots.results import Result
from drakebots.robots.quads.motion import sole_corners
from drakebots.robots.quads.plots import (
    COLOURS,
    draw_bars,
    draw_margin,
    draw_torques,
)
from drakebots.robots.quads.steps import support_edges

SUPPORT, OUT, IN = "#5bc0be", "#c1121f", "#2a9d3f"


def tidy(axes: Axes, x: str = "time [s]") -> None:
    """Labels the x axis and removes the upper and right spines."""
    axes.set_xlabel(x)
    axes.spines[["top", "right"]].set_visible(False)


def lift_figure(outcome: Outcome) -> Figure:
    """Support polygons and COP at four moments, and the margin over time."""
    trials = outcome.trials
    figure = Figure(figsize=(11, 3.6 * len(trials)), layout="constrained")
    grid = figure.subplots(len(trials), 5, width_ratios=(1, 1, 1, 1, 1.6))
    for line, (name, trial) in zip(np.atleast_2d(grid), trials.items()):
        n = len(trial.plan.data.time)
        for axes, k in zip(line, np.linspace(0.1, 0.8, 4)):
            _moment(axes, trial.plan, int(k * (n - 1)))
        results = {"plan": trial.plan}
        if trial.coupled is not None:
            results["tracked with skin"] = trial.coupled
        draw_margin(line[4], results)
        line[4].set_title(name.replace("_", " "), fontsize=9)
        tidy(line[4])
    return figure


def _moment(axes, plan: Result, k: int) -> None:
    data = plan.data
    points = data.patch_position.values[k]
    feet = [str(f) for f in data.foot.values]
    owner = np.array([feet.index(str(p).rpartition("/")[0]) for p in data.patch.values])
    bearing = data.contact.values[k][owner] > 0
    draw_cop(
        axes, points, bearing, data.cop.values[k], title=f"{data.time.values[k]:.2f} s"
    )


def walk_figure(outcome: Outcome) -> Figure:
    """One column per walk: contacts, path of the COM, roll, torques."""
    trials = outcome.trials
    figure = Figure(figsize=(5.5 * len(trials), 10), layout="constrained")
    grid = figure.subplots(4, len(trials), squeeze=False)
    for column, (name, trial) in zip(grid.T, trials.items()):
        draw_bars(column[0], trial.plan)
        column[0].set_title(name.replace("_", " "), fontsize=9)
        draw_torques(column[3], trial.plan)
        for axes in column:
            tidy(axes)
        _path(column[1], trial)
        _roll(column[2], trial)
    return figure


def _runs(trial: Trial) -> dict[str, Result]:
    runs = {"tracked with skin": trial.coupled, "skeleton in SAP": trial.sap}
    return {name: r for name, r in runs.items() if r is not None}


def _path(axes, trial: Trial) -> None:
    plan = trial.plan.data
    axes.plot(plan.time, plan.desired_com[:, 0], "--", color="#888", label="requested")
    axes.plot(plan.time, plan.com[:, 0], color=COLOURS[0], label="plan")
    for (label, run), colour in zip(_runs(trial).items(), COLOURS[1:]):
        axes.plot(run.data.time, run.data.com[:, 0], color=colour, label=label)
    axes.set_ylabel("COM forward [m]")
    legend_below(axes)


def _roll(axes, trial: Trial) -> None:
    for (label, run), colour in zip(_runs(trial).items(), COLOURS[1:]):
        roll = np.degrees(run.data.roll_pitch.values[:, 0])
        axes.plot(run.data.time, roll, color=colour, label=label)
    run = next(iter(_runs(trial).values()), None)
    if run is not None:
        planned = np.degrees(run.data.planned_roll_pitch.values[:, 0])
        axes.plot(run.data.time, planned, color=COLOURS[0], label="plan")
        legend_below(axes)
    axes.set_ylabel("roll [deg]")


def torque_figure(outcome: Outcome) -> Figure:
    """Torques at an ankle and a shoulder, with the limit and without."""
    figure = Figure(figsize=(8, 6), layout="constrained")
    for axes, (name, trial) in zip(figure.subplots(2, 1), outcome.trials.items()):
        names = [str(j) for j in trial.plan.data.joint.values]
        chosen = [
            joint
            for kind in (("ankle",), ("shoulder", "abduction", "hip"))
            for joint in [next((n for n in names if any(k in n for k in kind)), None)]
            if joint is not None
        ]
        draw_torques(axes, trial.plan, chosen or names[:2])
        axes.set_title(name, fontsize=9)
        tidy(axes)
    return figure


def qpcc_figure(outcome: Outcome) -> Figure:
    """Energy over the QPs of a step; the first, hollow, only holds the contacts."""
    energies = outcome.more["energies"]
    figure = Figure(figsize=(3.6 * max(1, len(energies)), 3.2), layout="constrained")
    grid = figure.subplots(1, max(1, len(energies)), squeeze=False)[0]
    for axes, (name, (frame, values)) in zip(grid, energies.items()):
        axes.plot(
            np.arange(2, len(values) + 1), values[1:], "o-", color=COLOURS[0], ms=3
        )
        axes.plot([1], values[:1], "o", color=COLOURS[0], ms=4, fillstyle="none")
        axes.set_title(f"foot {name}, step {frame}", fontsize=9)
        axes.set_ylabel("energy")
        tidy(axes, "QP")
    return figure


def kinematic_figure(outcome: Outcome) -> Figure:
    """Roll, path and one knee of both motions, tracked with the same servos."""
    figure = Figure(figsize=(7, 9), layout="constrained")
    roll, path, knee = figure.subplots(3, 1)
    for (label, trial), colour in zip(outcome.trials.items(), COLOURS):
        run = trial.coupled
        if run is None:
            continue
        t, data = run.data.time, run.data
        degrees = np.degrees(data.roll_pitch.values[:, 0])
        roll.plot(t, degrees, color=colour, label=f"{label}, tracked")
        path.plot(t, data.com[:, 0], color=colour, label=label)
        joints = [str(j) for j in data.joint.values]
        at = next((k for k, j in enumerate(joints) if "knee" in j), 0)
        names = [str(n) for n in data.position_name.values]
        own = next(k for k, n in enumerate(names) if joints[at] in n)
        knee.plot(t, np.degrees(data.target[:, at]), "--", color=colour, lw=0.8)
        knee.plot(
            t,
            np.degrees(data.position[:, own]),
            color=colour,
            label=f"{joints[at]}, {label}",
        )
    for axes, text in (
        (roll, "roll [deg]"),
        (path, "COM forward [m]"),
        (knee, "[deg]"),
    ):
        axes.set_ylabel(text)
        tidy(axes)
        legend_below(axes)
    return figure


def trot_figure(outcome: Outcome) -> Figure:
    """COP margins of the step-by-step plans, and heights of the COM."""
    figure = Figure(figsize=(7, 7), layout="constrained")
    margin, height = figure.subplots(2, 1)
    k = 0
    for name, trial in outcome.trials.items():
        data = trial.plan.data
        for stage, row, com in zip(
            data.stage.values, data.stage_cop_margin.values, data.stage_com.values
        ):
            if not str(stage).startswith(("steps", "frames")):
                continue
            colour = COLOURS[k % len(COLOURS)]
            k += 1
            label = f"{name}, {stage}"
            margin.plot(data.plan_time, 1e3 * row, color=colour, lw=1, label=label)
            height.plot(data.plan_time, com[:, 2], color=colour, lw=1, label=label)
    margin.axhline(0, color="#888", lw=0.8)
    margin.set_ylabel("COP margin [mm]")
    height.set_ylabel("height of the COM [m]")
    for axes in (margin, height):
        tidy(axes)
        legend_below(axes)
    return figure


def cop_figure(outcome: Outcome) -> Figure:
    """The worst moments from above, before and after, and both motions."""
    more = outcome.more
    t, quad = more["times"], more["robot"].quad
    figure = Figure(figsize=(9, 9), layout="constrained")
    grid = figure.subplots(3, 2)
    before = more["margins"]["before"]
    known = np.where(np.isfinite(before), before, np.inf)
    worst = int(known.argmin())
    far = np.abs(np.arange(len(known)) - worst) > 10
    second = int(np.where(far, known, np.inf).argmin())
    for line, k in zip(grid[:2], (worst, second)):
        for axes, label in zip(line, ("before", "after")):
            q = more["motions"][label][0]
            k = min(k, len(q) - 1)
            points, owner = _sole_points(quad, q[k])
            draw_cop(
                axes,
                points,
                more["contact"][k][owner],
                more["cops"][label][k],
                title=f"{label}, {t[k]:.3f} s",
            )
    for (label, margin), colour in zip(more["margins"].items(), COLOURS):
        grid[2, 0].plot(t[: len(margin)], 1e3 * margin, color=colour, lw=1, label=label)
    grid[2, 0].axhline(0, color="#888", lw=0.8)
    grid[2, 0].set_ylabel("COP margin [mm]")
    name, k = more["joint"]
    twin = grid[2, 1].twinx()
    for (label, style), colour in zip((("before", "--"), ("after", "-")), COLOURS):
        com = more["com"][label]
        grid[2, 1].plot(t[: len(com)], 1e3 * com, style, color=colour, label=label)
        q = np.degrees(more["motions"][label][0][: len(com), 6 + k])
        twin.plot(t[: len(com)], q, style, color="#2a9d6f", lw=0.8)
    grid[2, 1].set_ylabel("COM to the side [mm]")
    twin.set_ylabel(f"{name} [deg]", color="#2a9d6f")
    for axes in grid[2]:
        tidy(axes)
        legend_below(axes)
    return figure


def _sole_points(quad, q: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Corners of all soles (c, 2) [m] and their feet."""
    corners = sole_corners(quad, quad.foot_positions(q)[0], q[3])
    owner = np.repeat(np.arange(len(corners)), [len(c) for c in corners])
    return np.vstack(corners), owner


def failure_figure(outcome: Outcome) -> Figure:
    """COP margins with doubled mass, and with the best other footfall."""
    figure = Figure(figsize=(7, 3.5), layout="constrained")
    axes = figure.subplots()
    for (name, trial), colour in zip(outcome.trials.items(), COLOURS):
        data = trial.plan.data
        if "cop_margin" in data:
            axes.plot(data.time, 1e3 * data.cop_margin, color=colour, label=name)
    axes.axhline(0, color="#888", lw=0.8)
    axes.set_ylabel("COP margin [mm]")
    tidy(axes)
    if outcome.trials:
        legend_below(axes)
    return figure


def draw_cop(axes: Axes, points, bearing, cop, *, title: str = "") -> None:
    """One moment from above: the support polygon and the COP, green inside it.

    Args:
        axes: axes to draw on.
        points: contact points (P, 3) or (P, 2) [m].
        bearing: contact points that span the polygon (P,).
        cop: centre of pressure (2,) [m].
        title: title of the panel.
    """
    on = np.asarray(points)[np.asarray(bearing, bool)][:, :2]
    axes.scatter(*np.asarray(points)[:, :2].T, s=6, color="#bbb")
    inside = False
    if len(on) >= 3:
        hull = on[ConvexHull(on).vertices]
        axes.add_patch(Polygon(hull, facecolor=SUPPORT, alpha=0.35, edgecolor="#367"))
        normals, offsets = support_edges(on)
        inside = bool((normals @ cop - offsets >= -1e-6).all())
    axes.scatter(*cop, s=40, color=IN if inside else OUT, zorder=3)
    axes.set_aspect("equal")
    axes.set_title(title, fontsize=8)
    axes.tick_params(labelsize=7)
