"""Plots of the gecko: a course with the gaits chosen, and the velocity space.

The robot's limbs have the colours of the paper's Fig. 6: front left leg red, front
right dark red, torso orange, rear left blue, rear right dark blue, heading green; x and
y are in cm. Layouts: Schiller, Seibel, Schlattmann, Front. Robot. AI 7:87 (2020),
Figs. 7 and 12.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
from matplotlib.figure import Figure
from matplotlib.patches import Circle, Polygon

from drakebots.model import plane_rotation
from drakebots.plots import legend_below, save
from drakebots.results import Result
from drakebots.robots.gecko.generator import MotionPolynomial
from drakebots.robots.gecko.model import FEET, LEGS, Pose, limb_curves
from drakebots.robots.gecko.plan import motion_of
from drakebots.robots.gecko.playback import (
    check_motion,
    corners_of,
    course_points,
    epsilon_of,
    frames,
    in_half_cycles,
    obstacles_of,
    stored_joints,
    stored_poses,
)

LIMB_COLOURS = ("#e41a1c", "#8b0000", "#ff8c00", "#2c7fe0", "#0b2e83")
"""FL, FR, torso, RL, RR."""

FOOT_COLOURS = tuple(LIMB_COLOURS[i] for i in (0, 1, 3, 4))
"""FL, FR, RL, RR."""

HEADING_COLOUR = "#1b9e3a"
TARGET_COLOUR = "#73299a"
PATH_COLOUR = "#4073bf"
FIT_COLOUR = "#1f4fd8"
MOTION_COLOUR = "#d01020"

CM = 100.0
"""Centimetres in a metre."""


def draw_robot(
    axis,
    pose: Pose,
    *,
    held=None,
    alpha: float = 1.0,
    width: float = 2.0,
    feet: bool = True,
    zorder: float = 3.0,
    curves: np.ndarray | None = None,
) -> None:
    """Draws a pose.

    Args:
        axis: axes of matplotlib, in cm.
        pose: pose to draw.
        held: whether each foot is fixed (4,); legs of free feet are dashed. None:
            all are fixed.
        alpha: opacity.
        width: width of the limbs [points].
        feet: whether to mark the feet: filled where they are fixed.
        zorder: order of drawing.
        curves: centre lines of the limbs (5, n, 2) [m]; None for the pose's arcs.
    """
    curves = limb_curves(pose) if curves is None else curves
    held = np.ones(len(FEET), bool) if held is None else np.asarray(held, bool)
    solid = [held[0], held[1], True, held[2], held[3]]
    for curve, color, firm in zip(curves, LIMB_COLOURS, solid, strict=True):
        axis.plot(
            *(CM * curve.T), color=color, lw=width, ls="-" if firm else (0, (1.6, 1.0)),
            alpha=alpha, zorder=zorder, solid_capstyle="round",
        )  # fmt: skip
    if not feet:
        return
    for point, color, firm in zip(curves[LEGS, -1], FOOT_COLOURS, held, strict=True):
        axis.plot(
            *(CM * point), "o", ms=2.2 * width, mec=color, mew=0.5 * width,
            mfc=color if firm else "white", alpha=alpha, zorder=zorder + 0.1,
        )  # fmt: skip


def draw_arrow(axis, start, end, color: str, width: float = 1.6, zorder=5.0) -> None:
    """Draws an arrow from a point to another, in the axis's units."""
    style = {"color": color, "lw": width, "shrinkA": 0, "shrinkB": 0}
    style["arrowstyle"] = "-|>,head_width=0.18,head_length=0.35"
    axis.annotate("", tuple(end), tuple(start), arrowprops=style, zorder=zorder)
    # Annotations do not count when the axis chooses its limits.
    axis.plot(*np.transpose([start, end]), alpha=0)


# --- a course ------------------------------------------------------------------


def plot_course(result: Result, path: str | Path, *, poses: int = 8) -> Path:
    """Fig. 12: paths of feet and torso on a course, and q1 and q2 by half cycles.

    Args:
        result: result of kind "gecko.simulation", of either engine.
        path: file to write.
        poses: number of poses to draw.

    Raises:
        InvalidInput: for another kind of result, or a file ending that is no
            picture's.
    """
    data = check_motion(result)
    walked = data.marker_position.values.reshape(-1, 2)
    wide, high = np.ptp(np.vstack([walked, course_points(result)]), axis=0) + 0.05
    tall = 7.4 * float(np.clip(high / wide, 0.45, 1.3))
    figure = Figure(figsize=(8, tall + 2.4), layout="constrained")
    top, bottom = figure.subplots(2, gridspec_kw={"height_ratios": (tall, 1.9)})
    _draw_paths(top, data)
    # Last rows of the half cycles.
    half = data.half_cycle.values
    ends = np.append(np.flatnonzero(np.diff(half) > 0), len(half) - 1)
    chosen = ends[np.unique(np.linspace(0, len(ends) - 1, poses).round().astype(int))]
    poses, joints = stored_poses(data, chosen), stored_joints(data, chosen)
    for pose, own, held in zip(poses, joints, data.fixation.values[chosen]):
        curves = limb_curves(pose, own)
        draw_robot(top, pose, held=held > 0.5, width=2.4, zorder=5, curves=curves)
    _draw_course(top, result)
    top.set_aspect("equal", adjustable="datalim")
    top.set(xlabel="x [cm]", ylabel="y [cm]")
    legend_below(top)
    _draw_gait_bars(bottom, data, ends)
    figure.suptitle(_course_title(result), fontsize=11)
    return save(figure, path)


def _draw_paths(axis, data) -> None:
    points = CM * data.marker_position.values
    if in_half_cycles(data):
        points = CM * frames(data, max(2, 24 * (len(points) - 1))).markers
    colours = {
        "front left foot": (0, LIMB_COLOURS[0]),
        "front right foot": (2, LIMB_COLOURS[1]),
        "rear left foot": (3, LIMB_COLOURS[3]),
        "rear right foot": (5, LIMB_COLOURS[4]),
        "torso's rear end": (4, "#c96a00"),
        "torso's front end": (1, LIMB_COLOURS[2]),
    }
    for label, (marker, color) in colours.items():
        front = marker == 1
        axis.plot(
            *points[:, marker].T, color=color, lw=1.8 if front else 0.8,
            alpha=1.0 if front else 0.55, label=label, zorder=4 if front else 2,
        )  # fmt: skip


def _draw_course(axis, result: Result) -> None:
    data, epsilon = result.data, CM * epsilon_of(result)
    for polygon in obstacles_of(data):
        axis.add_patch(Polygon(CM * polygon, fc="0.75", ec="0.35", zorder=1))
        axis.plot(*(CM * polygon.T), alpha=0)
    if "path" in data:
        axis.plot(*(CM * data.path.values.T), "--", color=PATH_COLOUR, label="path")
    if "waypoint" in data:
        start = data.marker_position.sel(marker="front").values[:1]
        planned = CM * np.vstack([start, data.waypoint.values])
        axis.plot(*planned.T, "--", color=PATH_COLOUR, lw=1, label="planned path")
        axis.plot(*(CM * corners_of(data).T), "s", ms=4, color=PATH_COLOUR)
    for k, point in enumerate(CM * data.target.values if "target" in data else ()):
        axis.plot(*point, "*", ms=11, color=TARGET_COLOUR, zorder=7)
        axis.add_patch(Circle(point, epsilon, fill=False, ec=TARGET_COLOUR, zorder=6))
        axis.annotate(
            f"{k + 1}", point, (7, 5), textcoords="offset points", fontsize=11,
            color=TARGET_COLOUR, weight="bold", zorder=8,
        )  # fmt: skip


def _draw_gait_bars(axis, data, ends) -> None:
    """Draws the gait of each half cycle; number 0 is the start and has none."""
    rows = ends[data.half_cycle.values[ends] > 0]
    edges = np.arange(len(rows) + 1) + 0.5
    q1 = np.abs(np.degrees(data.q1.values[rows]))
    axis.stairs(q1, edges, baseline=None, color="#1f5fa8", lw=1.4)
    axis.set(xlabel="half cycle", ylim=(45, 95))
    axis.set_ylabel("|q1| [deg]", color="#1f5fa8")
    other = axis.twinx()
    q2 = data.q2.values[rows]
    other.stairs(q2, edges, baseline=None, color="#d62728", lw=1.4)
    other.set_ylabel("q2", color="#d62728")
    other.set_ylim(-0.6, 0.6)
    axis.grid(alpha=0.3)


def _course_title(result: Result) -> str:
    m = result.metrics
    parts = ["gecko", f"{int(result.data.half_cycle.values[-1])} half cycles"]
    if "targets" in m:
        parts.insert(1, f"engine {m['engine']}")
        parts.append(f"{m['targets_reached']} of {m['targets']} targets reached")
        parts.append(f"{m['final_distance_cm']:.1f} cm from the last")
    if not result.ok:
        parts.append(str(result.verdict))
    return "  ·  ".join(parts)


# --- the velocity space --------------------------------------------------------

# Spacing of the drawn gaits [cm]; a gecko is some 22 cm wide and moves by 13 cm.
_COLUMN, _ROW = 30.0, 42.0


def plot_velocity_space(result: Result, path: str | Path) -> Path:
    """Fig. 7: every gait of the grid with its motion per cycle.

    Each gait is drawn in the cycle's three poses, the first faint, with its front end
    at the grid point and facing up. Red is the simulated displacement, green the
    heading after the cycle with its number in degrees, blue the polynomial; the
    background shows the polynomial's rotation. Beside it is the paper's polynomial.

    Args:
        result: result of kind "gecko.velocity_space".
        path: file to write.

    Raises:
        InvalidInput: for another kind of result, or a file ending that is no
            picture's.
    """
    fit = motion_of(result)
    q1, q2 = result.data.q1.values, result.data.q2.values
    ours = "simulated: moved (red), heading after (green), fit (blue)"
    theirs = "Table 3 of the paper (fit to the robot)"
    panels = (fit, True, ours), (MotionPolynomial.table_3(), False, theirs)
    most = np.degrees(max(abs(_rotation(p, q1, q2)).max() for p, *_ in panels))
    width = 1.35 * len(q2) + 1.2
    figure = Figure(
        figsize=(width * len(panels) + 0.8, 1.75 * len(q1) + 1.4), layout="constrained"
    )
    axes = figure.subplots(1, len(panels))
    for axis, (polynomial, simulated, title) in zip(axes, panels, strict=True):
        shown = _draw_rotation(axis, polynomial, q1, q2, most)
        for i, j in np.ndindex(len(q1), len(q2)):
            _draw_gait(axis, result, polynomial, i, j, simulated)
        axis.set_title(title, fontsize=11)
        _label_grid(axis, q1, q2)
    label = "rotation per cycle, polynomial [deg]"
    figure.colorbar(shown, ax=axes, shrink=0.6, label=label)
    return save(figure, path)


def _rotation(polynomial: MotionPolynomial, q1, q2) -> np.ndarray:
    """Rotations on the grid [rad]; gaits are clipped to the polynomial's domain."""
    low, high = np.array([polynomial.domain.q1, polynomial.domain.q2]).T
    a, b = np.clip(q1, low[0], high[0]), np.clip(q2, low[1], high[1])
    return polynomial.motion(a[:, None], b[None, :])[..., 0]


def _draw_rotation(axis, polynomial, q1, q2, most: float):
    """Draws the rotation behind the gaits; `most` is the end of the scale [deg]."""
    rows, columns = np.arange(len(q1)), np.arange(len(q2))
    fine = [np.linspace(-0.6, len(q) - 0.4, 20 * len(q)) for q in (q1, q2)]
    a, b = np.interp(fine[0], rows, q1), np.interp(fine[1], columns, q2)
    degrees = np.degrees(_rotation(polynomial, a, b))
    return axis.pcolormesh(
        _COLUMN * fine[1], _ROW * fine[0], degrees, vmin=-most, vmax=most,
        cmap="PuOr_r", alpha=0.55, shading="nearest", rasterized=True,
    )  # fmt: skip


def _draw_gait(axis, result, polynomial, i: int, j: int, simulated: bool) -> None:
    data = result.data
    corner = np.array([_COLUMN * j, _ROW * i])
    poses = _facing_up(data, i, j)
    for pose, strength in zip(poses, (0.3, 0.55, 1.0) if simulated else (0.6,)):
        moved = Pose(pose.alpha, pose.ell, pose.heading, pose.position + corner / CM)
        draw_robot(axis, moved, width=1.3, alpha=strength, feet=False)
    q1, q2 = data.q1.values[i], data.q2.values[j]
    motions = []
    if simulated:
        motions.append((data.motion.values[i, j], MOTION_COLOUR, HEADING_COLOUR, 2.8))
    if polynomial.domain.holds(q1, q2):  # Table 3 has the paper's
        width = 1.0 if simulated else 1.8
        motions.append((polynomial.motion(q1, q2), FIT_COLOUR, FIT_COLOUR, width))
    if not motions:
        return
    for motion, arrow, line, thick in motions:
        # Forward is up in the picture.
        end = corner + CM * np.array([-motion[2], motion[1]])
        ahead = np.array([-np.sin(motion[0]), np.cos(motion[0])])
        axis.plot(*np.transpose([end, end + 9 * ahead]), color=line, lw=thick, zorder=6)
        draw_arrow(axis, corner, end, arrow, thick, zorder=7)
    degrees = np.degrees(motions[0][0][0])
    box = HEADING_COLOUR if simulated else FIT_COLOUR
    axis.text(
        *(corner - [0, 21]), f"{degrees:.0f}", ha="center", va="center", fontsize=8,
        color="white", zorder=8, bbox={"boxstyle": "round,pad=0.2", "lw": 0, "fc": box},
    )  # fmt: skip


def _facing_up(data, i: int, j: int) -> list[Pose]:
    """The cycle's poses, the first with its front end at the origin and facing up."""
    at = data.isel(q1=i, q2=j)
    turn = np.pi / 2 - float(at.heading[0])
    front = at.marker_position.sel(marker="front").values
    front = (front - front[0]) @ plane_rotation(-turn)
    heading = at.heading.values + turn
    return [Pose(*row) for row in zip(at.alpha.values, at.ell.values, heading, front)]


def _label_grid(axis, q1, q2) -> None:
    axis.set_aspect("equal")
    axis.set_xticks(_COLUMN * np.arange(len(q2)), [f"{v:g}" for v in q2])
    axis.set_yticks(_ROW * np.arange(len(q1)), [f"{v:.0f}" for v in np.degrees(q1)])
    axis.set(xlabel="steering q2", ylabel="step length q1 [deg]")
    axis.set_xlim(-0.6 * _COLUMN, (len(q2) - 0.4) * _COLUMN)
    axis.set_ylim(-0.6 * _ROW, (len(q1) - 0.4) * _ROW)
