"""Pictures of executed plans and of controlled runs."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from matplotlib.axes import Axes

from drakebots.core.errors import InvalidInput
from drakebots.plots import (
    COLOURS,
    draw_largest,
    draw_lines,
    legend_below,
    literal,
    panels,
    save,
)
from drakebots.results import Result
from drakebots.robots.legged.view import check_controlled

PLANNED = "0.6"
"""Colour of what the plan says."""


def plot_track(run: Result, path: str | Path) -> Path:
    """Draws the strides, the base, the inputs' shares of their limits, and the loads.

    Args:
        run: an executed plan.
        path: file of the picture (.png, .pdf, .svg).

    Raises:
        InvalidInput: for a result that is not an executed plan, or another ending.
        FileProblem: when the file cannot be written.
    """
    if "foot_force_planned" not in run.data:
        raise InvalidInput(
            f"needs an executed plan, got a {run.kind}; make one with `drakebots track`"
        )
    figure, axes = panels(6, 3, (4.0, 3.5))
    drawn = (_strides, _height, _angles, _path, _inputs, _loads)
    for draw, panel in zip(drawn, axes):
        draw(panel, run)
    facts = run.metrics
    how = f"{facts['feedback']} feedback on {facts['ground']} ground"
    figure.suptitle(
        f"{literal(run.model)}: {how}, mu = {facts['friction']:.3g}. "
        + literal(run.message)
    )
    return save(figure, path)


def _strides(panel: Axes, run: Result) -> None:
    facts = run.metrics
    if "stride_m" not in facts:
        x = run.data.base_position.values[:, 0]
        panel.plot(run.data.time.values, x - x[0], color=COLOURS[0])
        panel.set(xlabel="time [s]", ylabel="x [m]", title="advance")
        return
    strides = np.array(facts["stride_m"])
    panel.bar(np.arange(1, len(strides) + 1), strides, color=COLOURS[0], label="run")
    panel.axhline(facts["planned_stride_m"], color=PLANNED, label="plan")
    panel.set(xlabel="cycle", ylabel="stride [m]", title="strides")
    legend_below(panel)


def _bases(run: Result) -> list[tuple[np.ndarray, dict]]:
    """Positions of the base (T, 3), those of a plan first, and how to draw them."""
    planned = run.data.get("base_position_planned")
    ran = (run.data.base_position.values, {"color": COLOURS[0], "label": "run"})
    if planned is None:
        return [ran]
    return [(planned.values, {"color": PLANNED, "label": "plan"}), ran]


def _height(panel: Axes, run: Result) -> None:
    for base, style in _bases(run):
        panel.plot(run.data.time.values, base[:, 2], **style)
    panel.set(xlabel="time [s]", ylabel="z [m]", title="height of the base")
    legend_below(panel)


def _angles(panel: Axes, run: Result) -> None:
    angles = np.degrees(run.data.base_rpy.values)
    draw_lines(panel, run.data.time, angles, ("roll", "pitch", "yaw"))
    panel.set(xlabel="time [s]", ylabel="angle [deg]", title="angles of the base")
    legend_below(panel)


def _path(panel: Axes, run: Result) -> None:
    for base, style in _bases(run):
        panel.plot(base[:, 0], base[:, 1], **style)
    panel.set(xlabel="x [m]", ylabel="y [m]", title="path of the base")
    panel.set_aspect("equal", adjustable="datalim")
    legend_below(panel)


def _inputs(panel: Axes, run: Result) -> None:
    data = run.data
    limits = data.input_limit.values
    bounded = limits > 0
    share = data.input.values[:, bounded] / limits[bounded]
    draw_lines(panel, data.time, share, data.input_name.values[bounded], lw=0.8)
    for side in (-1, 1):
        panel.axhline(side, color=PLANNED, lw=0.8)
    panel.set(xlabel="time [s]", ylabel="share of the limit", title="inputs")
    legend_below(panel)


def _loads(panel: Axes, run: Result) -> None:
    """The vertical forces of the feet, one above the other."""
    data, time = run.data, run.data.time.values
    force = data.foot_force.values[:, :, 2]
    planned = data.foot_force_planned.values[:, :, 2]
    step = 1.1 * max(float(np.quantile(force, 0.99)), float(planned.max()), 1e-9)
    for i in range(force.shape[1]):
        panel.fill_between(time, i * step, i * step + planned[:, i], color="0.85", lw=0)
        drawn = i * step + np.minimum(force[:, i], step)
        panel.plot(time, drawn, color=COLOURS[i % len(COLOURS)], lw=0.8)
    names = [literal(str(name)) for name in data.foot.values]
    panel.set_yticks(step * np.arange(len(names)), names, fontsize=7)
    panel.set(xlabel="time [s]", title=f"loads, plan grey, rows of {step:.3g} N")


def plot_control(result: Result, path: str | Path) -> Path:
    """Draws path, height, angles, efforts, pushes and the times of the solves.

    Args:
        result: of kind legged.mpc.
        path: of the picture (.png, .pdf, .svg).

    Raises:
        InvalidInput: for another result, or another ending.
        FileProblem: when the file cannot be written.
    """
    check_controlled(result)
    data, time, facts = result.data, result.data.time.values, result.metrics
    figure, axes = panels(6, 3, (4.0, 3.5))
    for draw, panel in zip((_path, _height, _angles), axes):
        draw(panel, result)
    (above, _, _, effort, pushed, solves), base = axes, data.base_position.values
    if facts.get("goal_m") is not None:
        goal = base[0, :2] + facts["goal_m"]
        above.plot(*goal, "o", color=COLOURS[2], label="goal")
    for push in facts["pushes"]:
        at = base[min(np.searchsorted(time, push["time"]), len(time) - 1), :2]
        ahead = np.array([np.cos(push["direction"]), np.sin(push["direction"])])
        above.annotate(
            f"{push['force']:g} N",
            at,
            at - 40 * ahead,
            textcoords="offset points",
            arrowprops={"arrowstyle": "->", "color": COLOURS[3]},
        )
    legend_below(above)
    draw_largest(effort, data.torque, "effort [N m, or N of slides]")
    pushed.plot(time, np.linalg.norm(data.push.values, axis=1), color=COLOURS[3])
    pushed.set(xlabel="time [s]", ylabel="force [N]", title="pushes")
    solves.plot(data.solve_time, 1e3 * data.solve_seconds, ".", color=COLOURS[0])
    # The first, from nothing, takes many times the others.
    solves.set(xlabel="time [s]", ylabel="processor time [ms]", yscale="log")
    solves.set_title("solves")
    figure.suptitle(
        f"{literal(result.model)} under {facts['controller']}: "
        + literal(result.message)
    )
    return save(figure, path)
