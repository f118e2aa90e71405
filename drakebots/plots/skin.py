"""Pictures of a skinned run: joints and their targets, torques, the skin's strain."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from matplotlib.figure import Figure

from drakebots.core.errors import InvalidInput
from drakebots.multibody import joint_angles
from drakebots.plots.file import (
    COLOURS,
    draw_lines,
    legend_below,
    line_style,
    literal,
    panels,
    save,
)
from drakebots.results import Result, require


def plot_skin(result: Result, path: str | Path) -> Path:
    """Draws a skinned run into a PNG, PDF or SVG, atomically.

    Joint angles with the servos' targets pale, torques with their limits, the
    skin's stress and, where the result has it, energy, and the smallest volume
    ratio det F: at 0 an element turns inside out.

    Raises:
        InvalidInput: when the result is of no skinned run, or the file's ending
            is none of the three.
        FileProblem: when the file cannot be written.
    """
    return save(skin_figure(result), path)


def skin_figure(result: Result) -> Figure:
    """The picture of :func:`plot_skin` as a matplotlib figure.

    Raises:
        InvalidInput: when the result is of no skinned run.
    """
    data = result.data
    require(data, "skin_position", "skinned run to plot", time=2)
    needed = {
        _panel_angles: {"position", "joint"},
        _panel_torques: {"torque"},
        _panel_stress: {"skin_stress"},
        _panel_energy: {"skin_energy"},
        _panel_volume: {"worst_volume_ratio"},
    }
    drawn = [panel for panel, names in needed.items() if names <= set(data.variables)]
    if not drawn:
        raise InvalidInput("the result holds a skin, but nothing of it to plot")
    figure, axes = panels(len(drawn), 2, (5.2, 3.4))
    for panel, axis in zip(drawn, axes):
        axis.set_xlabel("time [s]")
        panel(axis, result)
    verdict = "" if result.ok else f"  ·  {result.verdict}"
    figure.suptitle(f"{literal(result.model)}{verdict}")
    return figure


def _panel_angles(axes, result: Result) -> None:
    data, times = result.data, result.data.time.values
    joints = [str(name) for name in data.joint.values]
    unit = data.target.attrs["units"] if "target" in data else "rad"
    for joint, angle in joint_angles(data).items():
        k = joints.index(joint)
        style = line_style(k)
        if "target" in data:
            target = data.target.values[:, k]
            axes.plot(times, target, **style, lw=2.5, alpha=0.3)
        axes.plot(times, angle, **style, lw=1.2, label=literal(joint))
    title = "joints, targets pale" if "target" in data else "joints"
    axes.set(ylabel=f"position [{unit}]", title=title)
    legend_below(axes)


def _panel_torques(axes, result: Result) -> None:
    data = result.data
    # A torque acts from one frame to the next and is stored at its end.
    how = {"drawstyle": "steps-pre", "lw": 1.2}
    draw_lines(axes, data.time, data.torque.values, data.joint.values, **how)
    limits = data.effort_limit.values if "effort_limit" in data else np.zeros(0)
    limits = np.unique(limits[np.isfinite(limits)])
    for limit in (*-limits, *limits):
        axes.axhline(limit, color="0.5", ls=":", lw=1)
    title = "torques, limits dotted" if len(limits) else "torques"
    axes.set(ylabel="torque [N m]", title=title)
    legend_below(axes)


def _panel_stress(axes, result: Result) -> None:
    data = result.data
    stress = 1e-3 * data.skin_stress.transpose("skin_time", "vertex").values
    times = data.skin_time.values
    axes.plot(times, stress.max(axis=1), color=COLOURS[1], label="largest")
    axes.plot(times, np.percentile(stress, 99, axis=1), color=COLOURS[3], label="99 %")
    axes.plot(times, stress.mean(axis=1), color=COLOURS[0], label="mean")
    axes.set(ylabel="stress [kPa]", title="von Mises stress at the vertices", ylim=0)
    legend_below(axes)


def _panel_energy(axes, result: Result) -> None:
    data = result.data
    axes.plot(data.time.values, data.skin_energy.values, color=COLOURS[2])
    axes.set(ylabel="energy [J]", title="skin's elastic energy", ylim=0)


def _panel_volume(axes, result: Result) -> None:
    data = result.data
    ratio = data.worst_volume_ratio.values
    axes.plot(data.time.values, ratio, color=COLOURS[4])
    axes.axhline(0, color="#d1495b", ls=":", lw=1)
    low = min(-0.05, 1.1 * float(ratio.min()))
    axes.set(ylabel="det F", title="smallest volume ratio", ylim=(low, None))
