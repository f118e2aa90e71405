"""Pictures of a design's stages, by matplotlib."""

from __future__ import annotations

from pathlib import Path

import matplotlib
import numpy as np
from matplotlib.figure import Figure
from mpl_toolkits.mplot3d.art3d import Line3DCollection, Poly3DCollection

from drakebots.design.problem import Design
from drakebots.design.surface import Surface
from drakebots.fem.mesh import surface_triangles
from drakebots.results.container import replacing

_SKIN, _FOLD, _SOFT = (0.84, 0.70, 0.50), (0.62, 0.42, 0.38), (0.60, 0.72, 0.66)
_LIGHT = np.array([0.4, -0.6, 0.7]) / np.sqrt(1.01)


def draw_surface(path: Path, surface: Surface, colours=None, title: str = "") -> Path:
    """A shaded surface from two sides."""
    figure, axes = _two_views(surface.vertices, title)
    shade = 0.4 + 0.6 * np.clip(surface.normals @ _LIGHT, 0, 1)
    base = np.array(_SKIN) if colours is None else np.asarray(colours)
    for ax in axes:
        ax.add_collection3d(
            Poly3DCollection(
                surface.vertices[surface.triangles],
                facecolors=np.clip(shade[:, None] * base, 0, 1),
                edgecolor="none",
            )
        )
    return _save(figure, path)


def draw_skin(path: Path, design: Design) -> Path:
    """The outside of the skin; folds and soft parts in colours of their own."""
    mesh = design.shell.mesh
    outer = design.shell.outer
    region = np.zeros(len(mesh.vertices), int)
    for k in mesh.regions[1:]:
        region[np.unique(mesh.tets[mesh.region == k])] = k
    of = region[design.shell.outer_vertices][outer.triangles].min(axis=1)
    colours = np.array([_SKIN, _FOLD, *[_SOFT] * 8])[of]
    return draw_surface(path, outer, colours, design.problem.name)


def draw_skeleton(path: Path, design: Design) -> Path:
    """The links' boxes within the points of the skin, and the glue."""
    mesh = design.shell.mesh
    figure, axes = _two_views(mesh.vertices, f"{design.problem.name}: glue in red")
    glue = np.concatenate([mesh.vertices[ids] for ids in design.glue.values()])
    some = mesh.vertices[design.shell.outer_vertices[::3]]
    boxes = [
        (link.origin + solid.corners())[[a, b]]
        for link in design.skeleton.links
        for solid in link.solids
        if solid.kind != "rib"
        for a in range(8)
        for b in range(a)
        if bin(a ^ b).count("1") == 1
    ]
    for ax in axes:
        ax.add_collection3d(Line3DCollection(boxes, colors="0.25", linewidths=0.5))
        ax.plot(*some.T, ".", color=_SKIN, markersize=1)
        ax.plot(*glue.T, ".", color="crimson", markersize=4)
    return _save(figure, path)


def draw_cut(path: Path, design: Design) -> Path:
    """The wall's vertices in a slice along a leg: thickness and teeth."""
    mesh = design.shell.mesh
    y = design.skeleton.link(design.skeleton.soles[0].link).p_WA[1]
    figure = Figure(figsize=(9, 6), dpi=110)
    ax = figure.subplots()
    edges = np.concatenate(
        [surface_triangles(mesh)[:, [a, b]] for a, b in ((0, 1), (1, 2), (2, 0))]
    )
    s = mesh.vertices[edges][:, :, 1] - y
    hit = s[:, 0] * s[:, 1] < 0
    t = (s[:, 0] / (s[:, 0] - s[:, 1]))[hit, None]
    ends = mesh.vertices[edges[hit]]
    points = ends[:, 0] + t * (ends[:, 1] - ends[:, 0])
    ax.plot(points[:, 0], points[:, 2], ".", markersize=2, color=_FOLD)
    ax.set(
        aspect="equal", xlabel="x [m]", ylabel="z [m]", title=f"wall at y = {y:.3f} m"
    )
    return _save(figure, path)


def _two_views(points, title):
    figure = Figure(figsize=(11, 5), dpi=100)
    low, high = points.min(axis=0), points.max(axis=0)
    axes = []
    for k, (elevation, azimuth) in enumerate(((18, -55), (0, -90)), 1):
        ax = figure.add_subplot(1, 2, k, projection="3d", proj_type="ortho")
        ax.set(xlim=(low[0], high[0]), ylim=(low[1], high[1]), zlim=(low[2], high[2]))
        ax.set_box_aspect(high - low, zoom=1.3 if k == 1 else 1.05)
        ax.view_init(elevation, azimuth)
        ax.set_axis_off()
        axes.append(ax)
    figure.suptitle(title)
    return figure, axes


def _save(figure, path):
    path = Path(path)
    with matplotlib.rc_context({"svg.hashsalt": "drakebots"}), replacing(path) as part:
        figure.savefig(part, format=path.suffix[1:], metadata={"Software": None})
    return path


__all__ = ["draw_cut", "draw_skeleton", "draw_skin", "draw_surface"]
