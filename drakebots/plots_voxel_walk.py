"""Pictures of the voxel robot's walks: travel over friction, markers against POM."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
from matplotlib.figure import Figure

from drakebots.errors import InvalidInput
from drakebots.plots_file import check_ending, save
from drakebots.results import Result

MARKER_COLOURS = ("#c2571a", "#1f6f9f", "#3a8a3f", "#7a4fa3")


def plot_walks(path: str | Path, rows: Sequence[dict], result: Result) -> Path:
    """Travel per cycle over friction, a line per step size, and the markers' paths.

    Args:
        path: to write to.
        rows: of scripts/voxel_walk.py: `options` of a walk, `travel_mm_per_cycle`.
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
