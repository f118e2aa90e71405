"""Pictures of the voxel robot's walks: travel over friction, markers against POM."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
from matplotlib.figure import Figure

from drakebots.core.errors import InvalidInput
from drakebots.plots import (
    MM,
    check_ending,
    draw_rods,
    draw_struts,
    frame,
    rod_colour,
    save,
)
from drakebots.results import Result
from drakebots.view.lattice import actuators_of, lattice_of

# A plan of actuators as a picture: how far each moves, and where nodes go.


def plot_actuator_plan(result: Result, path: str | Path) -> Path:
    """Bars of the actuators' displacements beside arrows of the nodes'.

    Args:
        result: with data.node_position (T, N, 3) and data.control (T, M); the last
            sample is drawn.
        path: to write to.

    Raises:
        InvalidInput: for another result, or an ending that is no plot's.
        FileProblem: when the file cannot be written.
    """
    check_ending(path)
    if "control" not in result.data:
        raise InvalidInput("the result holds no actuators' displacements to plot")
    lattice = lattice_of(result)
    moved = result.data.node_position.values[-1] - lattice.positions
    figure = Figure(figsize=(11.5, 5.2))
    _draw_bars(figure.add_axes((0.09, 0.16, 0.3, 0.68)), result)
    axis = figure.add_axes((0.42, 0.02, 0.5, 0.86), projection="3d")
    _draw_arrows(figure, axis, result, lattice, moved)
    figure.suptitle(f"{result.model}: {result.verdict}, {result.message}", fontsize=11)
    return save(figure, path)


def _draw_bars(axis, result: Result) -> None:
    names = [str(name) for name in result.data.actuator.values]
    u = MM * result.data.control.values[-1]
    place = np.arange(len(names))
    axis.barh(place, u, color=[rod_colour(n, i) for i, n in enumerate(names)])
    stroke = result.metrics.get("stroke_mm")
    if stroke:
        for side in (-stroke, stroke):
            axis.axvline(side, color="#888", ls="--", lw=1)
    reach = 1.35 * max(np.abs(u).max(initial=0.0), stroke or 0.0, 1e-9)
    for y, value in zip(place, u):
        side = 1 if value >= 0 else -1
        axis.text(
            *(value + 0.02 * side * reach, y, f"{value:.2f}"),
            fontsize=8,
            va="center",
            ha="left" if side > 0 else "right",
        )
    axis.axvline(0, color="#333", lw=0.8)
    axis.set_xlim(-reach, reach)
    axis.set_yticks(place, names)
    axis.invert_yaxis()
    axis.set(xlabel="lower node [mm]")
    axis.set_title("actuators" + (" (dashed: stroke)" if stroke else ""), fontsize=11)


def _draw_arrows(figure, axis, result: Result, lattice, moved: np.ndarray) -> None:
    places = lattice.positions
    draw_struts(axis, lattice, places, colour="#b4bac4", width=0.8)
    draw_rods(axis, lattice, places, actuators_of(result, lattice))
    size = np.linalg.norm(moved, axis=1)
    # Arrows some third of a pitch long at most.
    most = size.max(initial=0.0)
    factor = 0.35 * lattice.pitch / most if most > 0 else 1.0
    rows = size > 1e-3 * most
    if rows.any():
        axis.quiver(*(MM * places[rows].T), *(MM * factor * moved[rows].T),
                    color="#c0182a", arrow_length_ratio=0.3, lw=1.5)  # fmt: skip
    frame(axis, np.vstack([places, places + factor * moved]), zoom=1.0)
    axis.set_title(f"nodes: up to {MM * most:.2f} mm, arrows x {factor:.3g}",
                   fontsize=11)  # fmt: skip


MARKER_COLOURS = ("#c2571a", "#1f6f9f", "#3a8a3f", "#7a4fa3")


def plot_walks(path: str | Path, rows: Sequence[dict], result: Result) -> Path:
    """Travel per cycle over friction, a line per step size, and the markers' paths.

    Args:
        path: to write to.
        rows: of scripts/papers/voxels/voxel_walk.py: `options` of a walk,
        `travel_mm_per_cycle`.
        result: a walk, whose markers are drawn.

    Raises:
        InvalidInput: for a result that is no walk, or an ending that is none.
    """
    path = check_ending(path)
    if "marker_displacement" not in result.data:
        raise InvalidInput("the result holds no walk of the voxel robot to draw")
    lines = _lines(rows)
    wide = 10 if lines else 5
    figure = Figure(figsize=(wide, 4.4), layout="constrained")
    *travel, markers = np.atleast_1d(figure.subplots(1, 2 if lines else 1))
    if lines:
        _draw_travel(travel[0], lines)
    draw_markers(markers, result)
    return save(figure, path)


def _lines(rows: Sequence[dict]) -> dict[float, list]:
    """(friction, travel) of the walks with one friction for all feet, by step."""
    lines: dict[float, list] = {}
    for row in rows:
        options = row["options"]
        mu, step = options.get("friction_front"), options.get("time_step")
        if mu is None or step is None or mu != options.get("friction_back"):
            continue
        lines.setdefault(step, []).append((mu, row["travel_mm_per_cycle"]))
    return lines


def _draw_travel(axes, lines: dict[float, list]) -> None:
    for k, (step, points) in enumerate(sorted(lines.items())):
        shade = str(0.75 * k / max(len(lines) - 1, 1))
        mu, mm = np.array(points, float).T
        axes.plot(mu, mm, "o-", color=shade, label=f"step {1e3 * step:g} ms")
    axes.axhline(3.9, color="#c2571a", ls="--", lw=1)
    axes.annotate(
        "experiment 3.9 mm", (0.02, 3.9), (0, 3), textcoords="offset points",
        xycoords=("axes fraction", "data"), color="#c2571a",
    )  # fmt: skip
    axes.axhline(0, color="0.7", lw=0.8)
    axes.set(xlabel="friction of all feet", ylabel="travel [mm a cycle]")
    axes.legend(frameon=False)


def draw_markers(axes, result: Result) -> None:
    """The markers' paths in the body frame from above, and the planes of motion's."""
    data = result.data
    settle = float(result.provenance.get("options", {}).get("settle", 0.0))
    data = data.sel(time=slice(settle, None))
    rest = data.node_position.values  # any node has the scale of the robot
    spread = 1e3 * float(np.ptp(rest[0, :, 0]))
    places = {"yr": (-1, 1), "yb": (-1, -1), "gb": (1, -1), "gr": (1, 1)}
    for name, colour in zip(data.marker.values.tolist(), MARKER_COLOURS):
        away = np.array(places[name]) * 0.045 * spread
        moved = 1e3 * data.marker_displacement.sel(marker=name).values[:, :2]
        moved = moved - moved[0] + away
        model = 1e3 * data.marker_displacement_pom.sel(marker=name).values[:, :2] + away
        axes.plot(*model.T, color="0.6", lw=3, solid_capstyle="round")
        axes.plot(*moved.T, color=colour, lw=1)
        axes.annotate(name, away, ha="center", va="center", color=colour)
    slope = result.metrics.get("marker_slope_vs_pom", np.nan)
    axes.set_title(f"markers; grey: planes of motion, slope {slope:.3f}", fontsize=9)
    axes.set(xlabel="x [mm]", ylabel="y [mm]", aspect="equal")


__all__ = ["draw_markers", "plot_walks"]
