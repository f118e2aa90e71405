"""Pictures of the stages of a design, drawn with matplotlib."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
from matplotlib.figure import Figure

from drakebots.core.lazy import late
from drakebots.design.fabrication import Fabrication
from drakebots.design.geometry import Surface
from drakebots.design.optimize import Improved
from drakebots.design.pipeline import Fitted
from drakebots.design.problem import Design
from drakebots.design.skeleton import Plate, Trimmed
from drakebots.design.skin import SOFT, in_folds
from drakebots.fem.mesh import TetMesh, surface_triangles
from drakebots.plots import (
    COLOURS,
    Solid,
    box,
    check_ending,
    legend_below,
    save,
    shaded,
    turned,
    write_figure,
)

trimesh = late("trimesh")

_SKIN, _FOLD, _SOFT = (0.93, 0.85, 0.70), (0.78, 0.47, 0.36), (0.55, 0.72, 0.67)
"""Silicone, in folds, where it is softened."""
_PLASTIC, _PLATE = (0.62, 0.66, 0.72), (0.30, 0.50, 0.74)
_MOTOR, _RED = (0.17, 0.19, 0.23), (0.83, 0.16, 0.18)
_CORE = (0.88, 0.54, 0.29)
_PIECES = tuple(
    np.array(c) / 255
    for c in (
        (68, 119, 170), (238, 102, 119), (34, 136, 51),
        (204, 187, 68), (102, 204, 238), (170, 51, 119),
    )
)  # fmt: skip

_CLEAR = 0.24
"""Opacity of a skin in which something is to be seen."""


def draw_surface(path: Path, surface: Surface, title: str = "") -> Path:
    """Draws a surface from two sides.

    Args:
        path: file of the picture; its suffix chooses the format.
        surface: surface to draw.
        title: title of the picture.
    """
    return _draw(path, [Solid(surface.vertices, surface.triangles, _SKIN)], title)


def draw_skin(path: Path, design: Design) -> Path:
    """Draws the outside of the skin, with folds and soft parts in other colours."""
    return draw_mesh(path, design.shell.mesh, design.problem.name)


def draw_mesh(path: Path, mesh: TetMesh, title: str = "") -> Path:
    """Draws a designed skin by its mesh, whose regions say what folds and is soft."""
    kind = np.where(mesh.region >= SOFT, 2, np.where(in_folds(mesh), 1, 0))
    colours = np.zeros((len(mesh.vertices), 3))
    np.add.at(colours, mesh.tets, np.array([_SKIN, _FOLD, _SOFT])[kind][:, None])
    colours /= np.bincount(mesh.tets.ravel(), minlength=len(colours))[:, None]
    return _draw(path, [Solid(mesh.vertices, surface_triangles(mesh), colours)], title)


def draw_skeleton(path: Path, design: Design) -> Path:
    """Draws links, motors and bracing plates inside the skin, and the glue."""
    mesh, outer = design.shell.mesh, design.shell.outer
    solids = [Solid(outer.vertices, outer.triangles, _SKIN, _CLEAR)]
    solids += _links(design.skeleton)
    for link, plate in design.skeleton.solids(Plate):
        solids.append(_moved(plate.surface(), link.origin, _PLATE))
    size = 0.006 * np.ptp(mesh.vertices, axis=0).max()
    dot = size * np.array([*np.eye(3), *-np.eye(3)])
    for ids in design.glue.values():
        solids += [box(p + dot, _RED) for p in mesh.vertices[list(ids)]]
    title = f"{design.problem.name}: bracing plates blue, glue red"
    return _draw(path, solids, title)


def draw_fit(path: Path, fitted: Fitted, title: str) -> Path:
    """Draws a skeleton in its body; links that stick out in red."""
    surface = fitted.surface
    solids = [Solid(surface.vertices, surface.triangles, _SKIN, _CLEAR)]
    solids += _links(fitted.skeleton, fitted.protrusions)
    worst = sorted(fitted.protrusions.items(), key=lambda row: -row[1])[:6]
    lines = [f"{name} {1e3 * out:.0f} mm" for name, out in worst]
    return _draw(path, solids, title, "\n".join(lines))


def _links(skeleton, red=()) -> list[Solid]:
    """Motors, boards and printed parts as boxes; all of some links in red."""
    solids = []
    for link, solid in skeleton.solids():
        if solid.kind == "rib":
            continue
        inner = solid.kind in ("servo", "payload")
        colour = _RED if link.name in red else _MOTOR if inner else _PLASTIC
        if isinstance(solid, Trimmed):
            solids.append(_moved(solid.shape, link.origin, colour))
            continue
        corners = link.origin + solid.corners()
        if inner:
            # Larger than the bay that it fills, or their sides would mix.
            corners += 0.02 * (corners - corners.mean(axis=0))
        solids.append(box(corners, colour))
    return solids


def draw_cut(path: Path, design: Design) -> Path:
    """Draws the wall in a section along a leg, which shows its thickness and teeth."""
    mesh = design.shell.mesh
    y = design.skeleton.link(design.skeleton.soles[0].link).p_WA[1]
    figure = Figure(figsize=(9, 6), dpi=110)
    ax = figure.subplots()
    wall = trimesh.Trimesh(mesh.vertices, surface_triangles(mesh), process=False)
    lines = trimesh.intersections.mesh_plane(wall, [0, 1, 0], [0, y, 0])
    x, _, z = lines.reshape(-1, 3).T
    ax.plot(x, z, ".", markersize=2, color=_FOLD)
    title = f"wall at y = {y:.3f} m"
    ax.set(aspect="equal", xlabel="x [m]", ylabel="z [m]", title=title)
    return write_figure(figure, path, "figure")


def draw_fabrication(path: Path, made: Fabrication) -> Path:
    """Draws the pieces of skin moved apart, and an opened mould of a limb."""
    middle = np.mean([p.skin.vertices.mean(axis=0) for p in made.pieces.values()], 0)
    apart = []
    for k, piece in enumerate(made.pieces.values()):
        away = piece.skin.vertices.mean(axis=0) - middle
        share = [0.0, 1.0, 0.0] if piece.name.startswith("torso") else [0.6, 0.9, 0.8]
        apart.append(_moved(piece.skin, away * share, _PIECES[k % len(_PIECES)]))
    name = next(iter(made.moulds))
    mould = made.moulds[name]
    height = np.array([0.0, 0.0, mould.size[2]])
    side = np.array([0.0, 1.1 * mould.size[1], 0.0])
    opened = [
        _moved(mould.lower, -0.8 * height, _PLASTIC),
        _moved(mould.upper, 0.9 * height, _PLASTIC),
        _moved(mould.cast, side, _PIECES[0]),
    ]
    if mould.core is not None:
        opened.append(_moved(mould.core, 0.0 * height, _CORE))
    # As large as the pieces, so that both can be seen.
    sizes = [
        np.ptp(np.concatenate([s.vertices for s in x]), axis=0).max()
        for x in (apart, opened)
    ]
    opened = [replace(s, vertices=s.vertices * sizes[0] / sizes[1]) for s in opened]
    groups = [turned(apart, -35), turned(opened, -35)]
    title = f"pieces of skin; mould of {name}, larger: halves, core, cast"
    return _draw(path, groups, title)


def draw_improved(path: Path, found: Improved) -> Path:
    """Draws the parameters and the torques of the motion, before and after.

    Raises:
        InvalidInput: for another ending than .png, .pdf or .svg.
        FileProblem: when the file cannot be written.
    """
    path = check_ending(path)
    figure = Figure(figsize=(9, 3.6), layout="constrained")
    left, right = figure.subplots(1, 2, width_ratios=(1, 1.4))
    for row, k in enumerate(found.variables):
        first, last = ((x - k.low) / k.range for x in (k.value, found.values[k.name]))
        left.plot([0, 1], [row, row], color="0.85", lw=5, solid_capstyle="round")
        left.annotate("", (last, row), (first, row), arrowprops={"arrowstyle": "->"})
        left.plot(first, row, "o", color=COLOURS[1], ms=5)
        left.plot(last, row, "o", color=COLOURS[0], ms=5)
        text = f"{k.shown(k.value)} to {k.shown(found.values[k.name])}"
        left.text(0.5, row - 0.3, text, ha="center", fontsize=7)
    names = [k.name for k in found.variables]
    left.set(xticks=[0, 1], xticklabels=["least", "most"], ylim=(len(names), -1))
    left.set_yticks(range(len(names)), names)
    for plan, colour, name, value in zip(
        found.plans, (COLOURS[1], COLOURS[0]), ("before", "after"), found.rms
    ):
        data = plan.data.isel(time=slice(1, None))
        over = np.sqrt(np.mean(data.torque.values**2, axis=1))
        label = f"{name}: rms {value:.3f} N m"
        right.plot(data.time, over, color=colour, lw=1.2, label=label)
    right.set(xlabel="time [s]", ylabel="rms torque of joints [N m]", ylim=(0, None))
    legend_below(right)
    return save(figure, path)


def _moved(surface: Surface, by: np.ndarray, colour) -> Solid:
    return Solid(surface.vertices + by, surface.triangles, colour)


def _draw(path: Path, solids: Sequence, title: str, notes: str = "") -> Path:
    """Draws solids from two sides, or groups of solids as they are."""
    sides = isinstance(solids[0], Solid)
    groups = [turned(solids, -35), solids] if sides else solids
    figure = Figure(figsize=(11, 5), dpi=100)
    figure.figimage(shaded(groups, (1100, 500)), zorder=-1)
    figure.suptitle(title)
    figure.text(0.02, 0.02, notes, color=_RED)
    return write_figure(figure, path, "figure")
