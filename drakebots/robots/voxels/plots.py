"""The voxel robot's results as pictures: walks, also in Meshcat, plans and searches."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import xarray as xr
from matplotlib.figure import Figure
from pydrake.geometry import Rgba

from drakebots.core.errors import InvalidInput
from drakebots.plots import (
    MM,
    draw_rods,
    draw_struts,
    frame,
    legend_below,
    rod_colour,
    save,
)
from drakebots.results import Result, require
from drakebots.robots.voxels.model import ACTUATORS
from drakebots.view import ROOT, ContactMarks, Mark, Scene, Stage, record_motion
from drakebots.view.lattice import ActuatorRods, actuators_of, lattice_of

_STRUT = 0.9e-3
"""Radius of the struts between which the actuators are drawn [m]."""

_LOADED = Rgba(0.95, 0.25, 0.08)

LOADED = 0.02
"""Share of the largest load from which a foot is shown as loaded."""

MARKER_COLOURS = ("#c2571a", "#1f6f9f", "#3a8a3f", "#7a4fa3")


def plot_actuator_plan(result: Result, path: str | Path) -> Path:
    """Bars of the actuators' displacements beside arrows of the nodes'.

    Args:
        result: result of kind "voxels.plan", with data.node_position (T, N, 3) and
            data.control (T, M); the last sample is drawn.
        path: file to write.

    Raises:
        InvalidInput: for another result, or another ending of the file.
        FileProblem: when the file cannot be written.
    """
    require(result.data, "control", "actuator displacements to plot")
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
    colours = [rod_colour(name, i) for i, name in enumerate(names)]
    bars = axis.barh(range(len(names)), u, color=colours, tick_label=names)
    axis.bar_label(bars, fmt="%.2f", fontsize=8, padding=2)
    stroke = result.metrics.get("stroke_mm")
    if stroke:
        for side in (-stroke, stroke):
            axis.axvline(side, color="#888", ls="--", lw=1)
    reach = 1.35 * max(np.abs(u).max(initial=0.0), stroke or 0.0, 1e-9)
    axis.axvline(0, color="#333", lw=0.8)
    axis.set_xlim(-reach, reach)
    axis.invert_yaxis()
    axis.set(xlabel="lower node [mm]")
    axis.set_title("actuators" + (" (dashed: stroke)" if stroke else ""), fontsize=11)


def _draw_arrows(figure, axis, result: Result, lattice, moved: np.ndarray) -> None:
    places = lattice.positions
    draw_struts(axis, lattice, places, colour="#b4bac4", width=0.8)
    draw_rods(axis, lattice, places, actuators_of(result, lattice))
    size = np.linalg.norm(moved, axis=1)
    # The longest arrow is about a third of a pitch.
    most = size.max(initial=0.0)
    factor = 0.35 * lattice.pitch / most if most > 0 else 1.0
    rows = size > 1e-3 * most
    if rows.any():
        at, along = MM * places[rows].T, MM * factor * moved[rows].T
        axis.quiver(*at, *along, color="#c0182a", arrow_length_ratio=0.3, lw=1.5)
    frame(axis, np.vstack([places, places + factor * moved]), zoom=1.0)
    title = f"nodes: up to {MM * most:.2f} mm, arrows x {factor:.3g}"
    axis.set_title(title, fontsize=11)


def plot_walk(result: Result, path: str | Path) -> Path:
    """The path of the body over the ground, the travel, and the markers' paths.

    Args:
        result: result of kind "voxels.simulation".
        path: file to write.

    Raises:
        InvalidInput: for a result that is not a walk, or another ending of the file.
        FileProblem: when the file cannot be written.
    """
    require(result.data, "marker_displacement", "walk of the voxel robot to plot")
    figure = Figure(figsize=(13, 4.4), layout="constrained")
    above, over_time, markers = figure.subplots(1, 3)
    base = MM * result.data.base_position.values
    base = base - base[0]
    above.plot(base[:, 0], base[:, 1], color="#1f5fa8")
    above.plot(*base[-1, :2], "o", color="#1f5fa8")
    above.set(xlabel="x [mm]", ylabel="y [mm]", title="the body from above")
    above.set_aspect("equal", adjustable="datalim")
    # The robot faces +x+y.
    for name, distance in (
        ("forward", (base[:, 0] + base[:, 1]) / np.sqrt(2)),
        ("left", (base[:, 1] - base[:, 0]) / np.sqrt(2)),
    ):
        over_time.plot(result.data.time.values, distance, label=name)
    over_time.set(xlabel="time [s]", ylabel="[mm]")
    travel = result.metrics.get("travel_mm_per_cycle", np.nan)
    over_time.set_title(f"travel: {travel:.2f} mm per cycle")
    legend_below(over_time)
    draw_markers(markers, result)
    figure.suptitle(f"{result.model}: {result.verdict}, {result.message}", fontsize=11)
    return save(figure, path)


def draw_markers(axes, result: Result) -> None:
    """The markers' paths in the body frame from above, beside planes of motion."""
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


def plot_gait_search(result: Result, path: str | Path) -> Path:
    """The travel of each walk of a search, and the poses of the best gait.

    Args:
        result: result of kind "voxels.gait_search".
        path: file to write.

    Raises:
        InvalidInput: for another result, or another ending of the file.
        FileProblem: when the file cannot be written.
    """
    travel = np.array(result.metrics.get("travel_mm_of_each_walk", ()), float)
    if "control" not in result.data or not len(travel):
        raise InvalidInput("the result holds no search of a gait to plot")
    figure = Figure(figsize=(10, 4.4), layout="constrained")
    walks, gait = figure.subplots(1, 2)
    number = np.arange(1, len(travel) + 1)
    walks.plot(number, travel, "o", color="#8fb3de", label="each walk")
    best = result.metrics["travel_mm_per_cycle"]
    walks.axhline(best, color="#c0182a", lw=1, label=f"best score: {best:.2f} mm")
    walks.set(xlabel="walk", ylabel="travel [mm per cycle]")
    legend_below(walks)
    poses = MM * result.data.control.values
    number = np.arange(1, len(poses) + 1)
    for i, name in enumerate(map(str, result.data.actuator.values)):
        gait.plot(number, poses[:, i], "o-", color=rod_colour(name, i), label=name)
    gait.set(xlabel="pose", ylabel="lower node of the actuator [mm]")
    legend_below(gait)
    figure.suptitle(f"{result.model}: {result.verdict}, {result.message}", fontsize=11)
    return save(figure, path)


# --- walks in Meshcat ---------------------------------------------------------


def record_voxel(
    result: Result,
    *,
    slow: float | None = None,
    frames_per_second: float = 30.0,
    port: int | None = None,
) -> Stage:
    """Records a walk in a new Meshcat scene.

    It shows the voxels, the actuators in the colours of their names (a sleeve on
    the lower node, a rod on the upper one), feet in red while they carry load, and
    the path of the core's middle on the ground.

    Args:
        result: a result of kind "voxels.simulation".
        slow: factor by which it plays slower than real time; None shows a cycle in 4 s.
        frames_per_second: frame rate of the playback, limited as for other motions.
        port: port of the server.

    Raises:
        InvalidInput: for a result that is not a voxel robot's walk, or a speed or
            rate that is not > 0.
    """
    walk = "walk of the voxel robot to show"
    require(result.data, "actuator_length", walk, time=2)
    if slow is None:
        options = dict(result.provenance.get("options", {}))
        gait = options.get("gait", "forward")
        poses = 8 if isinstance(gait, str) else len(gait)
        period = poses * float(options.get("pose_time", 0.5))
        slow = 4.0 / period if period else 1.0

    def draw(scene: Scene, data: xr.Dataset) -> list[Mark]:
        marks = {"radius": 5.5e-3, "share": LOADED, "colour": _LOADED}
        return [_Actuators(scene, data), ContactMarks(scene, data, **marks)]

    playback = {"frames_per_second": frames_per_second, "port": port}
    return record_motion(result, slow=slow, draw=draw, **playback)


class _Actuators:
    """The actuators between the nodes of a walk."""

    def __init__(self, scene: Scene, data: xr.Dataset):
        self.nodes, path = data.node_position.values, f"{ROOT}/actuators"
        rows = {tuple(p): k for k, p in enumerate(data.node_place.values.tolist())}
        pairs = np.array([[rows[a.node], rows[a.other]] for a in ACTUATORS])
        names, rest = [a.name for a in ACTUATORS], self.nodes[0]
        self.rods = ActuatorRods(scene.meshcat, path, names, rest, pairs, _STRUT)
        self.show(0)

    def show(self, k: int, time: float | None = None) -> None:
        self.rods.show(self.nodes[k], time)
