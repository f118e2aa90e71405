"""Picture of a gecko's course: its tracks, and the gaits it chose.

Source of the layout: Schiller, Seibel, Schlattmann, Front. Robot. AI 7:87 (2020),
Fig. 12.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
from matplotlib.figure import Figure
from matplotlib.patches import Circle, Polygon

from drakebots.plots_file import check_ending, save
from drakebots.plots_gecko_robot import CM, LIMB_COLOURS, TARGET_COLOUR, draw_robot
from drakebots.results import Result
from drakebots.robots.gecko.playback import (
    check_gecko_run,
    frames,
    in_half_cycles,
    stored_poses,
)
from drakebots.view_gecko_course import (
    corners_of,
    course_points,
    epsilon_of,
    obstacles_of,
)

PATH_COLOUR = "#4073bf"


def plot_course(result: Result, path: str | Path, *, poses: int = 8) -> Path:
    """Fig. 12: the tracks on a course, and q1 and q2 over the half cycles.

    Args:
        result: of `simulate_gecko`, by either engine.
        path: to write to.
        poses: how many robots to draw.

    Raises:
        InvalidInput: for a result that is not a gecko's motion, or an ending
            that is no plot's.
    """
    data = check_gecko_run(result)
    check_ending(path)
    shown = np.vstack(
        [data.marker_position.values.reshape(-1, 2), course_points(result)]
    )
    wide, high = np.ptp(shown, axis=0) + 0.05
    tall = 7.4 * float(np.clip(high / wide, 0.45, 1.3))
    figure = Figure(figsize=(8, tall + 2.4), layout="constrained")
    top, bottom = figure.subplots(2, gridspec_kw={"height_ratios": (tall, 1.9)})
    _draw_tracks(top, data)
    # Where the half cycles end; samples in time are taken just before the next.
    half = data.half_cycle.values
    ends = np.append(np.flatnonzero(np.diff(half) > 0), len(half) - 1)
    chosen = ends[np.unique(np.linspace(0, len(ends) - 1, poses).round().astype(int))]
    for pose, held in zip(
        stored_poses(data, chosen), data.fixation.values[chosen] > 0.5, strict=True
    ):
        draw_robot(top, pose, held=held, width=2.4, zorder=5)
    _draw_course(top, result)
    top.set_aspect("equal", adjustable="datalim")
    top.set(xlabel="x [cm]", ylabel="y [cm]")
    top.legend(fontsize=8, loc="best", framealpha=0.85)
    _draw_gait(bottom, data, ends)
    figure.suptitle(_course_title(result), fontsize=11)
    return save(figure, path)


def _draw_tracks(axis, data) -> None:
    way = CM * data.marker_position.values
    if in_half_cycles(data):
        way = CM * frames(data, max(2, 24 * (len(way) - 1))).markers
    colours = {
        "front left foot": (0, LIMB_COLOURS[0]),
        "front right foot": (2, LIMB_COLOURS[1]),
        "rear left foot": (3, LIMB_COLOURS[3]),
        "rear right foot": (5, LIMB_COLOURS[4]),
        "torso's end": (4, "#c96a00"),
        "torso's tip": (1, LIMB_COLOURS[2]),
    }
    for label, (marker, color) in colours.items():
        tip = marker == 1
        axis.plot(
            *way[:, marker].T, color=color, lw=1.8 if tip else 0.8,
            alpha=1.0 if tip else 0.55, label=label, zorder=4 if tip else 2,
        )  # fmt: skip


def _draw_course(axis, result: Result) -> None:
    data, epsilon = result.data, CM * epsilon_of(result)
    for polygon in obstacles_of(result):
        axis.add_patch(Polygon(CM * polygon, fc="0.75", ec="0.35", zorder=1))
        axis.plot(*(CM * polygon.T), alpha=0)
    if "path" in data:
        axis.plot(*(CM * data.path.values.T), "--", color=PATH_COLOUR, label="path")
    if "waypoint" in data:
        start = data.marker_position.sel(marker="front").values[:1]
        planned = CM * np.vstack([start, data.waypoint.values])
        axis.plot(*planned.T, "--", color=PATH_COLOUR, lw=1, label="planned way")
        axis.plot(*(CM * corners_of(result).T), "s", ms=4, color=PATH_COLOUR)
    for k, point in enumerate(CM * data.target.values if "target" in data else ()):
        axis.plot(*point, "*", ms=11, color=TARGET_COLOUR, zorder=7)
        axis.add_patch(Circle(point, epsilon, fill=False, ec=TARGET_COLOUR, zorder=6))
        axis.annotate(
            f"{k + 1}", point, (7, 5), textcoords="offset points", fontsize=11,
            color=TARGET_COLOUR, weight="bold", zorder=8,
        )  # fmt: skip


def _draw_gait(axis, data, ends) -> None:
    """Of each half cycle, once; half cycle 0 is the start and has none."""
    rows = ends[data.half_cycle.values[ends] > 0]
    number = data.half_cycle.values[rows]
    q1 = np.abs(np.degrees(data.q1.values[rows]))
    axis.step(number, q1, where="mid", color="#1f5fa8", lw=1.4)
    axis.set_xlabel("half cycle")
    axis.set_ylabel("|q1| [deg]", color="#1f5fa8")
    axis.set_ylim(45, 95)
    other = axis.twinx()
    other.step(number, data.q2.values[rows], where="mid", color="#d62728", lw=1.4)
    other.set_ylabel("q2", color="#d62728")
    other.set_ylim(-0.6, 0.6)
    axis.grid(alpha=0.3)


def _course_title(result: Result) -> str:
    m, parts = result.metrics, ["gecko"]
    if "engine" in m:
        parts.append(f"engine {m['engine']}")
    parts.append(f"{int(result.data.half_cycle.values[-1])} half cycles")
    if "targets" in m:
        parts.append(f"{m['targets_reached']} of {m['targets']} targets reached")
    if "final_distance_cm" in m:
        parts.append(f"{m['final_distance_cm']:.1f} cm from the last")
    if not result.ok:
        parts.append(str(result.verdict))
    return "  ·  ".join(parts)
