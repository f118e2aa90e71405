"""Pictures of the gecko as in the paper: a cycle, and distance functions.

Source of the layouts: Schiller, Seibel, Schlattmann, Front. Robot. AI 7:87 (2020),
Figs. 6 and 10.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
from matplotlib.figure import Figure

from drakebots.plots import check_ending, save
from drakebots.robots.gecko import (
    CM,
    FOOT_COLOURS,
    HEADING_COLOUR,
    LIMB_COLOURS,
    TARGET_COLOUR,
    draw_arrow,
    draw_robot,
)
from drakebots.robots.gecko.generator import (
    MotionPolynomial,
    Plan,
    check_point,
    cycle_count,
    distance,
    plan,
)
from drakebots.robots.gecko.model import FEET, LIMBS, Gecko, gecko, pose_at
from drakebots.robots.gecko.pose_step import PHASES, CyclePhases, cycle_phases, walk

FIG_10 = (((0.35, -0.20), 1), ((-0.35, -0.20), 1), ((-0.35, -0.20), 4))
"""Targets [m] and horizons of Fig. 10."""

START_10 = tuple(np.radians([90.0, 0.0, -90.0, 90.0, 0.0]).tolist())
"""The limbs at the start of Fig. 10 [rad]."""

# When the phases begin, as shares of the cycle: fixing and releasing take little.
_SHARES = {"1a": 0.0, "1b": 0.05, "2a": 0.5, "2b": 0.55, "3a": 1.0}


def plot_cycle(
    path: str | Path,
    q1: float = np.radians(80.0),
    q2: float = -0.5,
    *,
    weights: str = "single_cycle",
    settle: int = 4,
) -> Path:
    """Fig. 6: angles, orientations and poses over one cycle, beside the law.

    Args:
        path: to write to.
        q1: step length [rad], q2: steering.
        weights: of the pose step, by name.
        settle: cycles before the one shown.

    Raises:
        InvalidInput, UnknownName: for a gait, weights or ending that is none.
    """
    check_ending(path)
    cycle = cycle_phases(q1, q2, robot=gecko(weights=weights), settle=settle)
    figure = Figure(figsize=(9, 9.6), layout="constrained")
    grid = figure.add_gridspec(3, 5, height_ratios=(1.3, 1.6, 1.6))
    shared = None
    for k, name in enumerate(PHASES):
        axis = shared = figure.add_subplot(grid[0, k], sharex=shared, sharey=shared)
        draw_robot(axis, cycle.poses[k], held=cycle.held[k], width=2.2)
        axis.set_aspect("equal")
        axis.axis("off")
        axis.set_title(name, fontsize=10)
    for row, draw in ((1, _draw_angles), (2, _draw_orientations)):
        axis = figure.add_subplot(grid[row, :])
        draw(axis, cycle)
        for name, share in _SHARES.items():
            axis.axvline(100 * share, color="0.8", lw=0.8, zorder=0)
            if row == 1:
                axis.text(
                    100 * share, 1.01, name, transform=axis.get_xaxis_transform(),
                    ha="center", fontsize=8, color="0.4",
                )  # fmt: skip
        axis.set_xlim(-1, 101)
        axis.legend(
            fontsize=8, loc="center left", bbox_to_anchor=(1.0, 0.5), frameon=False
        )
    axis.set_xlabel("cycle [%]")
    figure.suptitle(
        f"q1 = {np.degrees(q1):g} deg, q2 = {q2:g}: pose step (solid), gait law "
        "(dotted), foot free (dashed)",
        fontsize=11,
    )
    return save(figure, path)


def _spans(cycle: CyclePhases, foot: int | None):
    """(x, rows, held) of the drawn pieces: x in %, rows of phases."""
    x = {name: 100 * share for name, share in _SHARES.items()}
    pieces = []
    for half, (a, b, c) in enumerate(((0, 1, 2), (2, 3, 4))):
        held = foot is None or bool(cycle.moving[half, foot])
        first, second, third = (x[PHASES[k]] for k in (a, b, c))
        pieces.append(((first, second), (a, a), True))
        # The release is a jump.
        pieces.append(((second, second, third), (a, b, c), held))
    return pieces


def _draw_spans(axis, cycle, values, color, foot, label) -> None:
    for x, rows, held in _spans(cycle, foot):
        style = "-" if held else (0, (3, 1.5))
        axis.plot(x, values[list(rows)], color=color, ls=style, lw=1.8, label=label)
        label = None


def _draw_angles(axis, cycle: CyclePhases) -> None:
    alpha, law = np.degrees(cycle.alpha), np.degrees(cycle.reference)
    x = [100 * _SHARES[name] for name in PHASES]
    for i, (limb, color) in enumerate(zip(LIMBS, LIMB_COLOURS, strict=True)):
        foot = None if limb == "torso" else FEET.index(limb)
        _draw_spans(axis, cycle, alpha[:, i], color, foot, f"alpha {limb}")
        axis.plot(x, law[:, i], ":", color=color, lw=1.4, alpha=0.8)
    axis.set_ylabel("bending [deg]")


def _draw_orientations(axis, cycle: CyclePhases) -> None:
    """phi turned by 180 deg at the rear, so that all curves come together."""
    phi = np.degrees(cycle.foot_headings) - [0, 0, 180, 180]
    for i, (foot, color) in enumerate(zip(FEET, FOOT_COLOURS, strict=True)):
        label = f"phi {foot}" + (" - 180" if i > 1 else "")
        _draw_spans(axis, cycle, phi[:, i], color, i, label)
        # The law was derived with fixed feet that do not turn.
        for half, (a, c) in enumerate(((0, 2), (2, 4))):
            if cycle.moving[half, i]:
                x = [100 * _SHARES[PHASES[k]] for k in (a, c)]
                axis.plot(x, [phi[a, i]] * 2, ":", color=color, lw=1.4, alpha=0.8)
    heading = np.degrees([pose.heading for pose in cycle.poses])
    _draw_spans(axis, cycle, heading, HEADING_COLOUR, None, "eps")
    axis.set_ylabel("orientation [deg]")


def plot_distance(
    path: str | Path,
    *,
    sum: str = "corrected",
    cases=FIG_10,
    robot: Gecko | None = None,
) -> Path:
    """Fig. 10: d_n over the gaits with its minimum, and that gait walked.

    Args:
        path: to write to.
        sum: reading of eq. (19), "corrected" or "paper".
        cases: targets in the robot's frame [m] and horizons.
        robot: that walks; by default the small one.

    Raises:
        UnknownName, InvalidInput: for a sum, target, horizon or ending that is
            none.
    """
    check_ending(path)
    robot, model = robot or gecko(), MotionPolynomial.table_3()
    figure = Figure(figsize=(3.9 * len(cases), 7.6), layout="constrained")
    axes = figure.subplots(2, len(cases), squeeze=False)
    for k, (target, n) in enumerate(cases):
        best = plan(target, n, model, sum=sum)
        shown = _draw_distance(axes[0, k], target, n, model, sum, best)
        figure.colorbar(shown, ax=axes[0, k], shrink=0.85, label="d_n [cm]")
        axes[0, k].set_title(
            f"{chr(65 + k)}: target ({CM * target[0]:g}, {CM * target[1]:g}) cm, "
            f"n = {n}\nmin d = {CM * best.distance:.1f} cm at "
            f"({np.degrees(best.q1):.0f} deg, {best.q2:.2f})",
            fontsize=9,
            pad=11,
        )
        _draw_walk(axes[1, k], robot, target, n, best)
    terms = cycle_count(1, sum)
    figure.suptitle(
        f"distance d_n after n cycles, motion of Table 3, sum of eq. (19): {sum} "
        f"({'n' if terms == 1 else 'n + 1'} displacements)",
        fontsize=11,
    )
    return save(figure, path)


def _draw_distance(axis, target, n: int, model, sum: str, best: Plan):
    q1 = np.linspace(*model.domain.q1, 81)
    q2 = np.linspace(*model.domain.q2, 101)
    d = CM * distance(check_point(target), q1[:, None], q2[None, :], n, model, sum=sum)
    shown = axis.pcolormesh(q2, np.degrees(q1), d, cmap="RdYlGn_r", shading="gouraud")
    axis.contour(q2, np.degrees(q1), d, 10, colors="k", linewidths=0.4, alpha=0.5)
    axis.plot(
        best.q2, np.degrees(best.q1), "o", ms=13, mfc="none", mec="purple", mew=2.5,
        clip_on=False, zorder=9,
    )  # fmt: skip
    axis.set(xlabel="q2", ylabel="q1 [deg]")
    return shown


def _draw_walk(axis, robot: Gecko, target, n: int, best: Plan) -> None:
    poses = walk(robot, best.q1, best.q2, 2 * n, start=pose_at(robot, START_10))
    for k, pose in enumerate(poses):
        draw_robot(axis, pose, alpha=0.25 + 0.75 * k / len(poses), width=1.8)
    front = CM * np.array([pose.position for pose in poses])
    axis.plot(*front.T, color=LIMB_COLOURS[2], lw=1, ls=":")
    last = poses[-1]
    ahead = np.array([np.cos(last.heading), np.sin(last.heading)])
    draw_arrow(axis, front[-1], front[-1] + 6 * ahead, HEADING_COLOUR)
    axis.plot(*(CM * np.array(target)), "*", ms=13, color=TARGET_COLOUR)
    left = CM * float(np.linalg.norm(last.position - target))
    axis.set_title(f"simulated, n = {n}: {left:.1f} cm left", fontsize=9)
    axis.set(xlabel="x [cm]", ylabel="y [cm]")
    axis.set_aspect("equal", adjustable="datalim")
    axis.margins(0.06)
