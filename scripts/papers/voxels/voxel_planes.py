"""Figs. 1, 3 and 4: what an actuator moves in a small block.

Source of the layouts: Tebyani et al., "A Geometric Kinematic Model for Flexible
Voxel-Based Robots" (2022). Displacements are drawn larger than they are.

A module without a command: `voxel_figures.py` draws them.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
from matplotlib.figure import Figure
from plane_check import PlaneCheck

from drakebots.lattice.pom import ACTUATION
from drakebots.lattice.shape import AXES, BEAMS, OFFSETS, Lattice, Planes, block
from drakebots.plots import (
    MM,
    check_ending,
    draw_rods,
    draw_struts,
    frame,
    save,
)

STROKE = 5.0
"""Of an actuator's node, as drawn and labelled [mm]."""

_MAGNIFY = 2.0
_SQUARE = ("#1f5fcc", "#c0182a", "#1f944d")
_GROUPS = {
    "in the actuated plane": "#c0182a",
    "apexes of its layer": "#e08e26",
    "other layers": "#1f5fa8",
}


def groups(check: PlaneCheck) -> dict[str, np.ndarray]:
    """Rows of the nodes in the plane, beside it in the layer, and elsewhere."""
    inside = ~np.isnan(check.loss)
    nodes, p = check.lattice.nodes, check.plane.axis
    near = np.abs(nodes[:, p] - check.plane.coordinate) == 1
    rows = (inside, ~inside & near, ~inside & ~near)
    return {name: np.flatnonzero(rows) for name, rows in zip(_GROUPS, rows)}


def plot_pair(check: PlaneCheck, path: str | Path) -> Path:
    """Fig. 1: a block by the frame and by planes of motion, vertical displacement.

    Args:
        check: of one actuator.
        path: to write to.
    """
    check_ending(path)
    figure = Figure(figsize=(14, 5.2))
    moves = {"frame": check.actual, "planes of motion": check.expected}
    for i, (name, moved) in enumerate(moves.items()):
        axis = figure.add_axes((0.0 + 0.3 * i, 0.02, 0.3, 0.86), projection="3d")
        dots = _draw_moved(axis, check, moved, STROKE * moved[:, 2], most=STROKE)
        axis.set_title(name, fontsize=11)
    scale = figure.add_axes((0.62, 0.2, 0.012, 0.55))
    figure.colorbar(dots, cax=scale, label="vertical displacement [mm]")
    _draw_agreement(figure.add_axes((0.74, 0.14, 0.24, 0.7)), check)
    figure.suptitle(
        f"{_size(check.lattice)} voxels, L/d {_slenderness(check):.1f}: loss "
        f"{check.max_loss:.2%} at most, {check.mean_loss:.2%} in the mean; signs "
        f"{'as' if check.signs_right else 'NOT as'} planes of motion say",
        fontsize=12,
    )
    return save(figure, path)


def plot_layers(check: PlaneCheck, path: str | Path) -> Path:
    """Fig. 3: what moves in the actuated plane and out of it, by the frame.

    Args:
        check: of one actuator in a block several voxels thick.
        path: to write to.
    """
    check_ending(path)
    figure = Figure(figsize=(14, 5.2))
    size = STROKE * np.linalg.norm(check.actual, axis=1)
    axis = figure.add_axes((0.0, 0.02, 0.33, 0.86), projection="3d")
    dots = _draw_moved(axis, check, check.actual, size, map="YlOrRd")
    figure.colorbar(
        dots,
        cax=figure.add_axes((0.345, 0.2, 0.012, 0.55)),
        label="displacement [mm]",
    )
    q = check.plane.coordinate
    for i, layer in enumerate((q, q + 2)):
        axis = figure.add_axes((0.425 + 0.15 * i, 0.1, 0.135, 0.75))
        _draw_layer(axis, check, layer)
        axis.tick_params(labelleft=not i, labelsize=8)
    _draw_groups(figure.add_axes((0.775, 0.14, 0.215, 0.7)), check)
    figure.suptitle(
        f"{_size(check.lattice)} voxels, actuator in the plane {check.plane}: "
        f"in-plane loss {check.max_loss:.2%} at most; the paper says that no other "
        "node moves",
        fontsize=12,
    )
    return save(figure, path)


def _draw_moved(axis, check: PlaneCheck, moved, values, *, map="coolwarm", most=None):
    lattice = check.lattice
    places = lattice.positions + _MAGNIFY * 1e-3 * STROKE * moved
    draw_struts(axis, lattice, lattice.positions, colour="#c9cdd4", width=0.7)
    draw_struts(axis, lattice, places)
    dots = draw_nodes(axis, places, values, map, most)
    draw_rods(axis, lattice, places, [check.actuator])
    frame(axis, np.vstack([places, lattice.positions]), zoom=1.0)
    return dots


def draw_nodes(axis, places, values, map="coolwarm", most=None):
    """All nodes at places (N, 3) [m] as dots, coloured by values (N,).

    Args:
        most: upper end of the colour scale; the lower end is -most, or 0 without
            negative values. By default the largest value.
    """
    most = float(np.abs(values).max(initial=0.0)) if most is None else most
    low = -most if values.min() < -1e-9 * most else 0.0
    return axis.scatter(
        *(MM * places.T),
        s=60,
        c=values,
        cmap=map,
        vmin=low,
        vmax=most or 1.0,
        depthshade=False,
        edgecolors="#28324a",
        linewidths=0.4,
    )


def _draw_agreement(axis, check: PlaneCheck) -> None:
    """Components of all nodes: by how much the frame differs."""
    for k, (name, colour) in enumerate(zip(AXES, _SQUARE)):
        axis.plot(
            STROKE * check.expected[:, k],
            1e3 * STROKE * (check.actual - check.expected)[:, k],
            "osd"[k],
            color=colour,
            label=name,
            alpha=0.7,
            ms=6 - k,
        )
    axis.axhline(0, color="#888", lw=0.8, zorder=0)
    axis.set(xlabel="planes of motion [mm]", ylabel="frame less that [µm]")
    axis.set_title(f"all nodes; slope {check.slope:.4f}", fontsize=11)
    axis.grid(alpha=0.3)
    axis.legend(fontsize=8, title="component")


def _draw_layer(axis, check: PlaneCheck, layer: int) -> None:
    """A layer of voxels seen along the plane's normal: its nodes, with arrows."""
    p, nodes = check.plane.axis, check.lattice.nodes
    a, b = (k for k in range(3) if k != p)
    ends = nodes[check.lattice.beams]
    half = 1e3 * check.lattice.pitch / 2
    for beam in ends[(ends[:, :, p] == layer).all(axis=1)]:
        axis.plot(*(half * beam[:, [a, b]]).T, color="#c3c8d0", lw=1, zorder=1)
    rows = nodes[:, p] == layer
    driven = layer == check.plane.coordinate
    times = 5 if driven else 25
    colour = _GROUPS["in the actuated plane" if driven else "other layers"]
    axis.quiver(
        *(half * nodes[rows][:, [a, b]].T),
        *(STROKE * check.actual[rows][:, [a, b]].T),
        angles="xy",
        scale_units="xy",
        scale=1 / times,
        color=colour,
        width=0.014,
        zorder=3,
    )
    most = 100 * np.linalg.norm(check.actual[rows][:, [a, b]], axis=1).max()
    axis.set_aspect("equal")
    axis.margins(0.2)
    axis.set_xlabel(f"{AXES[a]} [mm]", fontsize=9)
    if driven:
        axis.set_ylabel(f"{AXES[b]} [mm]", fontsize=9)
    axis.set_title(
        f"{AXES[p]} = {layer}, arrows x {times}\nup to {most:.1f} %", fontsize=10
    )


def _draw_groups(axis, check: PlaneCheck) -> None:
    """Draws the motion of nodes by the layer they are in."""
    found = groups(check)
    for i, (name, rows) in enumerate(found.items()):
        size = 100 * np.linalg.norm(check.actual[rows], axis=1)
        spread = np.linspace(-0.16, 0.16, len(rows)) if len(rows) else []
        axis.plot(i + np.array(spread), size, "o", color=_GROUPS[name], alpha=0.8)
        if len(rows):
            axis.annotate(
                f"{size.max():.1f} %" if size.max() > 0.05 else "0 %",
                (i, size.max()),
                xytext=(0, 7),
                textcoords="offset points",
                ha="center",
                fontsize=9,
            )
    axis.set_xticks(
        range(len(found)),
        [n.replace("the ", "the\n").replace("of ", "of\n") for n in found],
    )
    axis.set_xlim(-0.5, len(found) - 0.5)
    axis.set_ylim(-4, 114)
    axis.set_ylabel("displacement [% of the actuator's]")
    axis.set_title("by layer", fontsize=11)
    axis.grid(axis="y", alpha=0.3)


def plot_numbering(path: str | Path) -> Path:
    """Fig. 4: nodes 0..5, the three squares that rotate, and how planes alternate."""
    check_ending(path)
    figure = Figure(figsize=(14, 4.6))
    for p in range(3):
        axis = figure.add_axes((0.005 + 0.225 * p, 0.02, 0.225, 0.86), projection="3d")
        _draw_square(axis, p)
    _draw_alternation(figure.add_axes((0.73, 0.12, 0.25, 0.74)), block(4, 1, 4))
    return save(figure, path)


def _draw_square(axis, p: int) -> None:
    ends = OFFSETS[BEAMS]
    for beam in ends:
        square = not beam[:, p].any()
        colour, width = (_SQUARE[p], 2.4) if square else ("#9aa1ad", 0.9)
        axis.plot(*beam.T, color=colour, lw=width)
    axis.scatter(*OFFSETS.T, s=26, c="#28324a", depthshade=False)
    for n, at in enumerate(OFFSETS):
        axis.text(*(1.28 * at), str(n), fontsize=11, ha="center", va="center",
                  weight="bold")  # fmt: skip
    arrows = ACTUATION[p].T
    moving = arrows.any(axis=1)
    axis.quiver(*OFFSETS[moving].T, *(0.55 * arrows[moving]).T, color=_SQUARE[p],
                arrow_length_ratio=0.35, lw=2)  # fmt: skip
    axis.set_box_aspect((1, 1, 1), zoom=1.4)
    for name in AXES:
        getattr(axis, f"set_{name}lim")(-1.1, 1.1)
    axis.view_init(elev=20, azim=-62)
    axis.set_axis_off()
    axis.set_title(f"$A_{AXES[p]}$: the square across {AXES[p]} turns", fontsize=11)


def _draw_alternation(axis, lattice: Lattice) -> None:
    """A plane across y: unit displacements by planes of motion."""
    planes = Planes(lattice)
    index = next(i for i, plane in enumerate(planes.all) if plane.axis == 1)
    field = planes.fields[:, [index]].toarray().reshape(-1, 3)
    nodes = lattice.nodes
    flat = nodes[lattice.beams]
    for beam in flat[(flat[:, :, 1] == 1).all(axis=1)]:
        axis.plot(*beam[:, [0, 2]].T, color="#9aa1ad", lw=1.2, zorder=1)
    rows = field.any(axis=1)
    axis.quiver(*nodes[rows][:, [0, 2]].T, *(field[rows][:, [0, 2]].T), scale=1.6,
                angles="xy", scale_units="xy", color=_SQUARE[1], width=0.009,
                zorder=3)  # fmt: skip
    for (i, _, k), sign in zip(lattice.voxels, planes.sign[1]):
        turn = "↻" if sign > 0 else "↺"
        axis.text(2 * i + 1, 2 * k + 1, turn, ha="center", va="center", fontsize=13,
                  color="#555", family="DejaVu Sans")  # fmt: skip
    axis.set_aspect("equal")
    axis.margins(0.08)
    axis.set(xlabel="x [half pitches]", ylabel="z [half pitches]")
    axis.set_title("a plane of motion: neighbours turn against", fontsize=11)


def _size(lattice: Lattice) -> str:
    return "x".join(str(n) for n in lattice.voxels.max(axis=0) + 1)


def _slenderness(check: PlaneCheck) -> float:
    return check.lattice.beam_length / check.strut.d2
