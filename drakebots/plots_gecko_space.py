"""Pictures of the gecko's velocity space: what the law asks for, what it does.

Source of the layouts: Schiller, Seibel, Schlattmann, Front. Robot. AI 7:87 (2020),
Figs. 5 and 7.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
from matplotlib.figure import Figure

from drakebots.errors import InvalidInput
from drakebots.plots_file import check_ending, save
from drakebots.plots_gecko_robot import CM, HEADING_COLOUR, draw_arrow, draw_robot
from drakebots.results import Result
from drakebots.robots.gecko.gait_law import gait_law
from drakebots.robots.gecko.kinematics import Pose, pose_at
from drakebots.robots.gecko.parameters import gecko
from drakebots.robots.gecko.polynomial import MotionPolynomial
from drakebots.robots.gecko.velocity_space import motion_of

FIT_COLOUR = "#1f4fd8"
MOTION_COLOUR = "#d01020"

LAW_Q1 = tuple(np.radians([-90.0, -70.0, -50.0, 50.0, 70.0, 90.0]).tolist())
LAW_Q2 = (-0.5, -0.25, 0.0, 0.25, 0.5)

# Distance of the drawn gaits: a gecko needs some 22 cm, and moves on by 13.
_COLUMN, _ROW = 30.0, 42.0  # [cm]


def plot_velocity_space(
    result: Result, path: str | Path, *, paper: bool = True
) -> Path:
    """Fig. 7: every gait of the grid with its motion per cycle.

    The cycle's three poses are drawn, the first faint, with its tip at the
    grid point and facing up. Red: simulated translation; green: heading after
    the cycle and its number in degrees; blue: the polynomial; behind: its
    rotation.

    Args:
        result: of `simulate_velocity_space`.
        path: to write to.
        paper: whether to draw the paper's polynomial (Table 3) beside it.

    Raises:
        InvalidInput: for another kind of result, or an ending that is no
            plot's.
    """
    check_ending(path)
    fit = motion_of(result)
    q1, q2 = result.data.q1.values, result.data.q2.values
    panels = [(fit, True, "simulated: moved (red), heading after (green), fit (blue)")]
    table = MotionPolynomial.table_3()
    if paper:
        panels.append((table, False, "Table 3 of the paper (fit to the robot)"))
    most = np.degrees(max(abs(_rotation(p, q1, q2)).max() for p, *_ in panels))
    width = 1.35 * len(q2) + 1.2
    figure = Figure(
        figsize=(width * len(panels) + 0.8, 1.75 * len(q1) + 1.4), layout="constrained"
    )
    axes = np.atleast_1d(figure.subplots(1, len(panels)))
    for axis, (polynomial, simulated, title) in zip(axes, panels, strict=True):
        shown = _draw_rotation(axis, polynomial, q1, q2, most)
        for i in range(len(q1)):
            for j in range(len(q2)):
                _draw_gait(axis, result, polynomial, i, j, simulated)
        axis.set_title(title, fontsize=11)
        _label_grid(axis, q1, q2)
    figure.colorbar(
        shown, ax=axes, shrink=0.6, label="rotation per cycle, polynomial [deg]"
    )
    return save(figure, path)


def _rotation(polynomial: MotionPolynomial, q1, q2) -> np.ndarray:
    """[rad], on the grid as far as the polynomial holds."""
    low, high = np.array([polynomial.domain.q1, polynomial.domain.q2]).T
    a, b = np.clip(q1, low[0], high[0]), np.clip(q2, low[1], high[1])
    return polynomial.motion(a[:, None], b[None, :])[..., 0]


def _draw_rotation(axis, polynomial, q1, q2, most: float):
    """The heat map, level with the gaits drawn upon it; most in deg."""
    rows, columns = np.arange(len(q1)), np.arange(len(q2))
    fine = [np.linspace(-0.6, len(q) - 0.4, 20 * len(q)) for q in (q1, q2)]
    a, b = np.interp(fine[0], rows, q1), np.interp(fine[1], columns, q2)
    return axis.pcolormesh(
        _COLUMN * fine[1],
        _ROW * fine[0],
        np.degrees(_rotation(polynomial, a, b)),
        cmap="PuOr_r",
        vmin=-most,
        vmax=most,
        alpha=0.55,
        shading="nearest",
        rasterized=True,
    )


def _draw_gait(axis, result, polynomial, i: int, j: int, simulated: bool) -> None:
    data = result.data
    corner = np.array([_COLUMN * j, _ROW * i])
    poses = _facing_up(data, i, j)
    for pose, strength in zip(poses, (0.3, 0.55, 1.0) if simulated else (0.6,)):
        moved = Pose(pose.alpha, pose.ell, pose.heading, pose.position + corner / CM)
        draw_robot(axis, moved, width=1.3, alpha=strength, feet=False)
    q1, q2 = data.q1.values[i], data.q2.values[j]
    motions = []
    if _holds(polynomial, q1, q2):
        motions.append(
            (
                polynomial.motion(q1, q2),
                FIT_COLOUR,
                FIT_COLOUR,
                1.0 if simulated else 1.8,
            )
        )
    if simulated:
        motions.insert(
            0, (data.motion.values[i, j], MOTION_COLOUR, HEADING_COLOUR, 2.8)
        )
    if not motions:
        return
    for motion, arrow, line, thick in motions:
        # Forward is up in the picture, left is left.
        end = corner + CM * np.array([-motion[2], motion[1]])
        ahead = np.array([-np.sin(motion[0]), np.cos(motion[0])])
        axis.plot(*np.transpose([end, end + 9 * ahead]), color=line, lw=thick, zorder=6)
        draw_arrow(axis, corner, end, arrow, thick, zorder=7)
    degrees = np.degrees(motions[0][0][0])
    axis.text(
        *(corner - [0, 21]), f"{degrees:.0f}", ha="center", va="center", fontsize=8,
        color="white", zorder=8,
        bbox={
            "boxstyle": "round,pad=0.2", "lw": 0,
            "fc": HEADING_COLOUR if simulated else FIT_COLOUR,
        },
    )  # fmt: skip


def _holds(polynomial: MotionPolynomial, q1: float, q2: float) -> bool:
    """Whether a gait is within the polynomial's domain: Table 3 has the paper's."""
    try:
        polynomial.domain.check(q1, q2)
    except InvalidInput:
        return False
    return True


def _facing_up(data, i: int, j: int) -> list[Pose]:
    """The cycle's poses, the first with its tip at the origin, heading up."""
    at = data.isel(q1=i, q2=j)
    turn = np.pi / 2 - float(at.heading[0])
    c, s = np.cos(turn), np.sin(turn)
    tip = at.marker_position.sel(marker="front").values
    tip = (tip - tip[0]) @ np.array([[c, s], [-s, c]])
    heading = at.heading.values + turn
    return [Pose(*row) for row in zip(at.alpha.values, at.ell.values, heading, tip)]


def _label_grid(axis, q1, q2) -> None:
    axis.set_aspect("equal")
    axis.set_xticks(_COLUMN * np.arange(len(q2)), [f"{v:g}" for v in q2])
    axis.set_yticks(_ROW * np.arange(len(q1)), [f"{v:.0f}" for v in np.degrees(q1)])
    axis.set(xlabel="steering q2", ylabel="step length q1 [deg]")
    axis.set_xlim(-0.6 * _COLUMN, (len(q2) - 0.4) * _COLUMN)
    axis.set_ylim(-0.6 * _ROW, (len(q1) - 0.4) * _ROW)


def plot_gait_law(path: str | Path, *, q1=LAW_Q1, q2=LAW_Q2) -> Path:
    """Fig. 5: the poses the gait law asks for; nothing is simulated.

    Args:
        path: to write to.
        q1: torso's bendings, with the half cycle's sign [rad].
        q2: steerings.

    Raises:
        InvalidInput: for an ending that is no plot's.
    """
    check_ending(path)
    robot = gecko()
    figure = Figure(figsize=(1.6 * len(q1) + 0.9, 1.6 * len(q2) + 0.9))
    figure.set_layout_engine("constrained")
    axis, pitch = figure.subplots(), 28.0
    for i, bend in enumerate(q1):
        for j, steering in enumerate(q2):
            alpha = gait_law(bend, steering, leg_bend=robot.leg_bend)
            place = np.array([i, j]) * pitch / CM
            middle = pose_at(robot, alpha, np.pi / 2).markers[[1, 4]].mean(axis=0)
            draw_robot(axis, pose_at(robot, alpha, np.pi / 2, place - middle))
    axis.set_aspect("equal")
    axis.set_xticks(pitch * np.arange(len(q1)), [f"{v:.0f}" for v in np.degrees(q1)])
    axis.set_yticks(pitch * np.arange(len(q2)), [f"{v:g}" for v in q2])
    axis.set(xlabel="q1 [deg], with the half cycle's sign", ylabel="steering q2")
    axis.set_title("poses of the gait law, eq. (14)", fontsize=11)
    axis.spines[["top", "right"]].set_visible(False)
    return save(figure, path)
