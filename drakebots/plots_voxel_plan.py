"""A plan of actuators as a picture: how far each moves, and where nodes go."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from matplotlib.figure import Figure

from drakebots.errors import InvalidInput
from drakebots.plots_file import check_ending, save
from drakebots.plots_voxel_lattice import MM, draw_rods, draw_struts, frame, rod_colour
from drakebots.results import Result
from drakebots.view_lattice_result import actuators_of, lattice_of


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
