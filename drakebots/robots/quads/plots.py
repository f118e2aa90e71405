"""Pictures of a quad-robot's plan: contact bars and loads, COP, joints, stages."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Polygon

from drakebots.core.errors import InvalidInput
from drakebots.plots import check_ending, save
from drakebots.results import Result
from drakebots.robots.quads.frames import support_edges

COLOURS = ("#1f5fa8", "#d1495b", "#2a9d6f", "#e08e26", "#7b5ea7", "#444444")
BAR, SUPPORT, OUT, IN = "#f2c14e", "#5bc0be", "#c1121f", "#2a9d3f"


def plot_contacts(result: Result, path: str | Path) -> Path:
    """Draws the footfall bars with each foot's load, the COP's margin and the torques.

    Raises:
        InvalidInput: when the result is no plan of a quad-robot, or for the ending.
        FileProblem: when the file cannot be written.
    """
    ending = check_ending(path)
    data = result.data
    if "contact" not in data or "foot" not in data.dims:
        raise InvalidInput("the result holds no footfall pattern to plot")
    figure = Figure(figsize=(8, 7), layout="constrained")
    bars, margin, torque = figure.subplots(3, 1, height_ratios=(1.3, 1, 1))
    draw_bars(bars, result)
    draw_margin(margin, {"frames": result})
    draw_torques(torque, result)
    for axes in (bars, margin, torque):
        tidy(axes)
    figure.suptitle(f"{result.model}: {result.metrics.get('motion', 'motion')}")
    return save(figure, ending)


def tidy(axes: Axes, x: str = "time [s]") -> None:
    """Label and frame."""
    axes.set_xlabel(x)
    axes.spines[["top", "right"]].set_visible(False)


def draw_bars(axes: Axes, result: Result) -> None:
    """Contact bars by foot; a line in each is its load over the weight."""
    data = result.data
    t, feet = data.time.values, [str(f) for f in data.foot.values]
    dt = t[1] - t[0] if len(t) > 1 else 1.0
    loads = foot_loads(result)
    weight = float(result.metrics.get("mass_kg", np.nan)) * 9.81
    for k in range(len(feet)):
        down = data.contact.values[:, k] > 0
        edges = np.flatnonzero(np.diff(np.r_[0, down, 0]))
        spans = [(t[a], t[b - 1] - t[a] + dt) for a, b in edges.reshape(-1, 2)]
        axes.broken_barh(spans, (k - 0.4, 0.8), color=BAR)
        if loads is not None:
            axes.plot(t, k + 0.4 - 0.8 * loads[:, k] / weight, color="#222", lw=0.8)
    axes.set_yticks(range(len(feet)), feet)
    axes.invert_yaxis()
    axes.set_title("contacts, and load over weight", fontsize=9)


def foot_loads(result: Result) -> np.ndarray | None:
    """Normal force of each foot (T, feet) [N]; None without contact forces."""
    data = result.data
    name = next((n for n in ("contact_force", "patch_force") if n in data), None)
    if name is None or "foot" not in data.coords:
        return None
    force = data[name].values[..., 2]
    patches = [str(p) for p in data.patch.values]
    stems = [p.replace("/", "_").rpartition("_")[0] for p in patches]
    feet = [str(f) for f in data.foot.values]
    return np.stack(
        [force[:, [s == foot for s in stems]].sum(axis=1) for foot in feet], axis=1
    )


def draw_margin(axes: Axes, results: Mapping[str, Result]) -> None:
    """Distance of the COP to the polygon's nearest side."""
    for (label, result), colour in zip(results.items(), COLOURS):
        margin = result.data.cop_margin
        axes.plot(result.data.time, 1e3 * margin, color=colour, lw=1, label=label)
    axes.axhline(0, color="#888", lw=0.8)
    axes.set_ylabel("COP inside by [mm]")
    if len(results) > 1:
        axes.legend(frameon=False, fontsize=8)


def draw_torques(
    axes: Axes, result: Result, joints: Sequence[str] | None = None
) -> None:
    """Torques, all thin or some by name, and the limits."""
    data = result.data
    t, limit = data.time.values, data.get("torque_limit")
    names = [str(name) for name in data.joint.values]
    if joints is None:
        axes.plot(t, data.torque.values, lw=0.6, alpha=0.8)
    else:
        for joint, colour in zip(joints, COLOURS):
            values = data.torque.values[:, names.index(joint)]
            axes.plot(t, values, lw=1, color=colour, label=joint)
        axes.legend(frameon=False, fontsize=8)
    if limit is not None and np.isfinite(limit.values).any():
        most = float(np.nanmax(np.where(np.isfinite(limit), limit, np.nan)))
        # A limit far from all torques would flatten them.
        near = most < 3 * np.abs(axes.get_ylim()).max()
        for sign in (1, -1) if near else ():
            axes.axhline(sign * most, color="#888", lw=0.8, ls="--")
    axes.set_ylabel("torque [N m]")


def draw_cop(axes: Axes, points, bearing, cop, *, title: str = "") -> None:
    """One moment from above: the support polygon and the COP, green inside it.

    Args:
        axes: to draw on.
        points: contact points (P, 3) or (P, 2) [m].
        bearing: which span the polygon (P,).
        cop: (2,) [m].
        title: above.
    """
    from scipy.spatial import ConvexHull

    on = np.asarray(points)[np.asarray(bearing, bool)][:, :2]
    axes.scatter(*np.asarray(points)[:, :2].T, s=6, color="#bbb")
    inside = False
    if len(on) >= 3:
        hull = on[ConvexHull(on).vertices]
        axes.add_patch(Polygon(hull, facecolor=SUPPORT, alpha=0.35, edgecolor="#367"))
        normals, offsets = support_edges(on)
        inside = bool((normals @ cop - offsets >= -1e-6).all())
    axes.scatter(*cop, s=40, color=IN if inside else OUT, zorder=3)
    axes.set_aspect("equal")
    axes.set_title(title, fontsize=8)
    axes.tick_params(labelsize=7)
