"""Figures of any robot: its motion, a run in a skin, and how a plan converged."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import xarray as xr
from matplotlib.figure import Figure

from drakebots.core.errors import InvalidInput
from drakebots.multibody import joint_angles
from drakebots.plots.file import (
    COLOURS,
    draw_largest,
    draw_lines,
    legend_below,
    line_style,
    literal,
    panels,
    save,
    write_figure,
)
from drakebots.results import Result, require

PLANNED = "0.6"
"""Colour of what the plan of a run says."""


def plot_motion(result: Result, path: str | Path) -> Path:
    """Draws the motion of a robot: path and pose of its base, strides, feet, drive.

    Args:
        result: with `base_position`.
        path: of the picture (.png, .pdf, .svg).

    Raises:
        InvalidInput: when the result holds no base motion, or for another ending.
        FileProblem: when the file cannot be written.
    """
    require(result.data, "base_position", "motion to plot")
    return save(summary_figure(result), path)


def summary_figure(result: Result) -> Figure:
    """The summary as a matplotlib figure."""
    data = result.data
    drawn = [_panel_path, _panel_pose]
    if _is_arm(data):
        drawn = [_panel_joints, _panel_torques]
    if _strides(result).size:
        drawn.append(_panel_strides)
    if "foot_force_planned" in data:
        drawn.append(_panel_loads)
    elif "foot_force" in data:
        drawn.append(_panel_contacts)
    if "foot_position" in data:
        drawn.append(_panel_feet)
    if "voltage" in data:
        drawn.append(_panel_voltages)
    if "input_limit" in data and data.input_limit.values.any():
        drawn.append(_panel_inputs)
    if "solve_time" in data:
        drawn.append(_panel_torques)
        drawn += [_panel_pushes] * ("push" in data) + [_panel_solves]
    figure, axes = panels(len(drawn), 2 if len(drawn) == 4 else 3, (4.6, 3.5))
    for panel, axis in zip(drawn, axes):
        panel(axis, result)
    figure.suptitle(_title(result))
    return figure


def _title(result: Result) -> str:
    m = result.metrics
    gait = [literal(m["gait"])] if "gait" in m else []
    for name, words in (("frequency_hz", "{:g} Hz"), ("friction", "mu = {:.3g}")):
        gait += [words.format(m[name])] if name in m else []
    parts = [literal(result.model), *filter(None, [", ".join(gait)])]
    if "stride_mm_per_cycle" in m:
        mean, deviation = m["stride_mm_per_cycle"], m["stride_deviation_mm"]
        parts.append(f"{mean:.2f} ± {deviation:.2f} mm/cycle")
    elif isinstance(m.get("stride_mm"), float):  # a plan's, of its only cycle
        parts.append(f"plan of {m['stride_mm']:.2f} mm/cycle")
    for name, words in _HOW.items():
        if name in m:
            parts += [words.format(**m), literal(result.message)]
            return "  ·  ".join(parts)
    if not result.ok:
        parts.append(f"{result.verdict}")
    return "  ·  ".join(parts)


_HOW = {
    "controller": "under {controller}",
    "feedback": "{feedback} feedback on {ground} ground",
}
"""How a run was steered, by the metric that says it; its message is then told, too."""


def _scale(data: xr.Dataset) -> tuple[float, str]:
    """Millimetres for robots below half a metre."""
    size = np.ptp(data.base_position.values, axis=0).max()
    height = np.abs(data.base_position.values[:, 2]).max()
    return (1e3, "mm") if max(size, height) < 0.5 else (1.0, "m")


def _panel_path(axis, result: Result) -> None:
    k, unit = _scale(result.data)
    base, title = k * result.data.base_position.values, "path of the base"
    if "base_position_planned" in result.data:
        planned = k * result.data.base_position_planned.values
        axis.plot(planned[:, 0], planned[:, 1], color=PLANNED)
        title += ", plan grey"
    axis.plot(base[:, 0], base[:, 1], color=COLOURS[0])
    axis.plot(*base[0, :2], "o", color=COLOURS[0], mfc="white")
    axis.set(xlabel=f"x [{unit}]", ylabel=f"y [{unit}]", title=title)
    axis.set_aspect("equal", adjustable="datalim")
    if "pushes" in result.metrics:
        _draw_asked(axis, result, base, k)


def _draw_asked(axis, result: Result, base: np.ndarray, k: float) -> None:
    """The goal of a controlled run, and the pushes on it, beside its path."""
    time, facts = result.data.time.values, result.metrics
    if facts.get("goal_m") is not None:
        goal = base[0, :2] + k * np.array(facts["goal_m"])
        axis.plot(*goal, "o", color=COLOURS[2], label="goal")
        legend_below(axis)
    for push in facts["pushes"]:
        at = base[min(np.searchsorted(time, push["time"]), len(time) - 1), :2]
        ahead = np.array([np.cos(push["direction"]), np.sin(push["direction"])])
        axis.annotate(
            f"{push['force']:g} N",
            at,
            at - 40 * ahead,
            textcoords="offset points",
            arrowprops={"arrowstyle": "->", "color": COLOURS[3]},
        )


def _panel_pose(axis, result: Result) -> None:
    data = result.data
    k, unit = _scale(data)
    t = data.time.values
    # A height that stays has no last digits to look at.
    height = (k * data.base_position.values[:, 2]).round(6)
    if "base_position_planned" in data:
        axis.plot(t, k * data.base_position_planned.values[:, 2], color=PLANNED)
    axis.plot(t, height, color="black", label="height")
    axis.set(xlabel="time [s]", ylabel=f"height [{unit}]", title="pose of the base")
    other = axis.twinx()
    angles = np.degrees(data.base_rpy.values)
    draw_lines(other, t, angles, ("roll", "pitch", "yaw"), lw=0.8)
    other.set_ylabel("angle [deg]")
    legend_below(other)
    other.spines["top"].set_visible(False)


def _strides(result: Result) -> np.ndarray:
    """The strides of a run's cycles [mm]; none for a plan, which has one number."""
    found = ((result.metrics.get(name), k) for name, k in _STRIDES.items())
    listed = (k * np.array(x, float) for x, k in found if isinstance(x, list | tuple))
    return next(listed, np.zeros(0))


_STRIDES = {"stride_mm": 1.0, "stride_m": 1e3}


def _panel_strides(axis, result: Result) -> None:
    strides = _strides(result)
    axis.bar(np.arange(1, len(strides) + 1), strides, color=COLOURS[0])
    axis.axhline(strides.mean(), color=COLOURS[1], lw=1)
    slip = result.metrics.get("slip")
    title = "stride" if slip is None else f"stride, slip {slip:.2f}"
    if "planned_stride_m" in result.metrics:
        axis.axhline(1e3 * result.metrics["planned_stride_m"], color=PLANNED)
        title += ", plan grey"
    axis.set(xlabel="cycle", ylabel="stride [mm]", title=title)


def _panel_contacts(axis, result: Result) -> None:
    data = result.data
    t, last = _last_cycles(result, 4)
    force = data.foot_force.values[last, :, 2]
    threshold = 0.01 * max(float(force.max()), 1e-12)
    names = [literal(name) for name in data.foot.values]
    for i in range(len(names)):
        how = {"color": COLOURS[i % len(COLOURS)], "step": "post", "lw": 0}
        axis.fill_between(t, i - 0.35, i + 0.35, force[:, i] > threshold, **how)
    axis.set_yticks(range(len(names)), names)
    axis.set(xlabel="time [s]", title="feet that carry load", xlim=(t[0], t[-1]))


def _panel_loads(axis, result: Result) -> None:
    """Vertical loads of the feet, one above the other, those of the plan filled."""
    data, time = result.data, result.data.time.values
    force = data.foot_force.values[:, :, 2]
    planned = data.foot_force_planned.values[:, :, 2]
    step = 1.1 * max(float(np.quantile(force, 0.99)), float(planned.max()), 1e-9)
    for i in range(force.shape[1]):
        axis.fill_between(time, i * step, i * step + planned[:, i], color="0.85", lw=0)
        drawn = i * step + np.minimum(force[:, i], step)
        axis.plot(time, drawn, color=COLOURS[i % len(COLOURS)], lw=0.8)
    names = [literal(str(name)) for name in data.foot.values]
    axis.set_yticks(step * np.arange(len(names)), names, fontsize=7)
    axis.set(xlabel="time [s]", title=f"loads, plan grey, rows of {step:.3g} N")


def _panel_feet(axis, result: Result) -> None:
    data = result.data
    k, unit = _scale(data)
    t, last = _last_cycles(result, 2)
    p = data.foot_position.values[last] - data.base_position.values[last][:, None]
    yaw = data.base_rpy.values[last, 2][:, None]
    forward = p[..., 0] * np.cos(yaw) + p[..., 1] * np.sin(yaw)
    height = data.foot_position.values[last][..., 2]
    about = forward - forward.mean(axis=0)
    draw_lines(axis, k * about, k * height, data.foot.values, lw=1)
    x, y = f"forward of the body [{unit}]", f"height [{unit}]"
    title = "feet, last two cycles" if t[0] > data.time.values[0] else "feet"
    axis.set(xlabel=x, ylabel=y, title=title)
    legend_below(axis)


def _is_arm(data: xr.Dataset) -> bool:
    """Whether the base rests and joints move, under torques of motors."""
    rests = not np.ptp(data.base_position.values, axis=0).any()
    return rests and {"position", "torque"} <= set(data) and "foot" not in data.dims


def _panel_joints(axis, result: Result) -> None:
    draw_largest(axis, result.data.position, "position [rad, or m of slides]")


def _panel_torques(axis, result: Result) -> None:
    draw_largest(axis, result.data.torque, "torque [N m, or N of slides]")


def _panel_voltages(axis, result: Result) -> None:
    data = result.data
    t, last = _last_cycles(result, 2)
    draw_lines(axis, t, data.voltage.values[last, :2], data.actuator.values, lw=1)
    axis.axhspan(0, 225, color="0.95", zorder=0)
    axis.set(xlabel="time [s]", ylabel="voltage [V]", title="drive, first leg")
    legend_below(axis)


def _panel_inputs(axis, result: Result) -> None:
    data, limits = result.data, result.data.input_limit.values
    bounded = limits > 0
    share = data.input.values[:, bounded] / limits[bounded]
    draw_lines(axis, data.time, share, data.input_name.values[bounded], lw=0.8)
    for side in (-1, 1):
        axis.axhline(side, color=PLANNED, lw=0.8)
    axis.set(xlabel="time [s]", ylabel="share of the limit", title="inputs")
    legend_below(axis)


def _panel_pushes(axis, result: Result) -> None:
    push = np.linalg.norm(result.data.push.values, axis=1)
    axis.plot(result.data.time.values, push, color=COLOURS[3])
    axis.set(xlabel="time [s]", ylabel="force [N]", title="pushes")


def _panel_solves(axis, result: Result) -> None:
    data = result.data
    axis.plot(data.solve_time, 1e3 * data.solve_seconds, ".", color=COLOURS[0])
    # The first, from nothing, takes many times the others.
    axis.set(xlabel="time [s]", ylabel="processor time [ms]", yscale="log")
    axis.set_title("solves")


def _last_cycles(result: Result, count: int) -> tuple[np.ndarray, slice]:
    """The times of a run's last cycles, and which of its samples they are; all samples
    of a motion that does not repeat."""
    t, m = result.data.time.values, result.metrics
    period = float(m.get("period_s", 0.0) if m.get("periodic", True) else 0.0)
    if m.get("frequency_hz"):
        period = 1 / m["frequency_hz"]
    start = t[-1] - count * period if period > 0 else t[0]
    last = slice(int(np.searchsorted(t, start - 1e-9 * t[-1])), None)
    return t[last], last


# --- skinned runs -------------------------------------------------------------


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
        _skin_angles: {"position", "joint"},
        _skin_torques: {"torque"},
        _skin_stress: {"skin_stress"},
        _skin_energy: {"skin_energy"},
        _skin_volume: {"worst_volume_ratio"},
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


def _skin_angles(axes, result: Result) -> None:
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


def _skin_torques(axes, result: Result) -> None:
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


def _skin_stress(axes, result: Result) -> None:
    data = result.data
    stress = 1e-3 * data.skin_stress.transpose("skin_time", "vertex").values
    times = data.skin_time.values
    axes.plot(times, stress.max(axis=1), color=COLOURS[1], label="largest")
    axes.plot(times, np.percentile(stress, 99, axis=1), color=COLOURS[3], label="99 %")
    axes.plot(times, stress.mean(axis=1), color=COLOURS[0], label="mean")
    axes.set(ylabel="stress [kPa]", title="von Mises stress at the vertices", ylim=0)
    legend_below(axes)


def _skin_energy(axes, result: Result) -> None:
    data = result.data
    axes.plot(data.time.values, data.skin_energy.values, color=COLOURS[2])
    axes.set(ylabel="energy [J]", title="skin's elastic energy", ylim=0)


def _skin_volume(axes, result: Result) -> None:
    data = result.data
    ratio = data.worst_volume_ratio.values
    axes.plot(data.time.values, ratio, color=COLOURS[4])
    axes.axhline(0, color="#d1495b", ls=":", lw=1)
    low = min(-0.05, 1.1 * float(ratio.min()))
    axes.set(ylabel="det F", title="smallest volume ratio", ylim=(low, None))


# --- plans --------------------------------------------------------------------


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
