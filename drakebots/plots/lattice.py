"""Lattices in matplotlib: struts as lines in space, nodes as dots."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
from matplotlib.colors import to_rgba
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator
from mpl_toolkits.mplot3d.art3d import Line3DCollection

from drakebots.lattice.pom import Control, actuator_nodes
from drakebots.lattice.shape import Lattice, LatticeSpec
from drakebots.plots.file import save
from drakebots.view.lattice import rod_colours

MM = 1e3
VIEW = {"elev": 22, "azim": -58}


def plot_lattice(spec: LatticeSpec, path: str | Path) -> Path:
    """A picture of a lattice at rest.

    Args:
        spec: lattice and strut.
        path: file to write.

    Raises:
        InvalidInput: for another ending of the file.
        FileProblem: when the file cannot be written.
    """
    lattice, places = spec.lattice, spec.lattice.positions
    figure = Figure(figsize=(7.6, 6.4))
    axis = figure.add_axes((0.0, 0.0, 0.88, 0.95), projection="3d")
    draw_struts(axis, lattice, places)
    size = np.clip(4000 / len(places), 4, 45)
    axis.scatter(*(MM * places.T), s=size, c="#28324a", depthshade=False)
    frame(axis, places)
    slender = lattice.beam_length / spec.strut.d2
    title = (
        f"{len(lattice.voxels)} voxels, {len(lattice.nodes)} nodes, "
        f"{len(lattice.beams)} struts; L/d = {slender:.1f}"
    )
    figure.suptitle(title, fontsize=11, y=0.97)
    return save(figure, path)


def draw_struts(
    axis, lattice: Lattice, places, *, colour: str = "#566072", width: float = 1.1
) -> None:
    """All struts of a lattice with its nodes at places (N, 3) [m], in mm.

    Struts far from the viewer are paler; the more struts, the thinner they are.
    """
    ends = places[lattice.beams]
    elev, azim = np.radians([VIEW["elev"], VIEW["azim"]])
    towards = [np.cos(elev) * np.cos(azim), np.cos(elev) * np.sin(azim), np.sin(elev)]
    near = ends.mean(axis=1) @ towards
    share = (near - near.min()) / max(float(np.ptp(near)), 1e-12)
    rgba = np.tile(to_rgba(colour), (len(ends), 1))
    rgba[:, 3] *= 0.25 + 0.75 * share
    width *= float(np.clip((600 / len(ends)) ** 0.4, 0.3, 1.0))
    axis.add_collection3d(Line3DCollection(MM * ends, colors=rgba, linewidths=width))


def draw_rods(axis, lattice: Lattice, places, actuators: Sequence[Control]) -> None:
    """Actuators as thick lines between their nodes."""
    rows = actuator_nodes(lattice, actuators)
    for colour, pair in zip(rod_colours([a.name for a in actuators]), rows):
        axis.plot(*(MM * places[pair].T), color=colour, lw=5, zorder=5, alpha=0.9)


def frame(axis, places, *, zoom: float = 1.0) -> None:
    """Equal scales, limits that contain all places (N, 3) [m], labels in mm."""
    low, high = MM * places.min(axis=0), MM * places.max(axis=0)
    pad = 0.04 * float((high - low).max())
    for name, a, b in zip("xyz", low - pad, high + pad):
        getattr(axis, f"set_{name}lim")(a, b)
        getattr(axis, f"set_{name}label")(f"{name} [mm]")
    axis.set_box_aspect(high - low + 2 * pad, zoom=zoom)
    axis.view_init(**VIEW)
    extent = (high - low) / float((high - low).max())
    for side, share in zip((axis.xaxis, axis.yaxis, axis.zaxis), extent):
        side.set_major_locator(MaxNLocator(max(2, round(7 * share))))
        side.pane.set_alpha(0.25)
        side._axinfo["grid"]["color"] = (0.85, 0.86, 0.88, 1.0)
        side.set_tick_params(labelsize=7)
