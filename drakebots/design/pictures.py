"""Pictures of the stages of a design, drawn with matplotlib."""

from __future__ import annotations

from pathlib import Path

import matplotlib
import numpy as np
from matplotlib.figure import Figure
from mpl_toolkits.mplot3d import proj3d
from mpl_toolkits.mplot3d.art3d import Line3DCollection, Poly3DCollection

from drakebots.core.files import replacing
from drakebots.design.bracing import plates
from drakebots.design.fabrication import Fabrication
from drakebots.design.geometry import Surface
from drakebots.design.pipeline import Fitted
from drakebots.design.problem import Design
from drakebots.design.skin import SOFT, in_folds
from drakebots.fem.mesh import surface_triangles

_SKIN, _FOLD, _SOFT = (0.84, 0.70, 0.50), (0.62, 0.42, 0.38), (0.60, 0.72, 0.66)
_PIECES = tuple(
    np.array(c) / 255
    for c in (
        (68, 119, 170), (238, 102, 119), (34, 136, 51),
        (204, 187, 68), (102, 204, 238), (170, 51, 119),
    )
)  # fmt: skip
_PLASTIC, _CORE = np.array([0.72, 0.74, 0.78]), np.array([0.88, 0.54, 0.29])
_LIGHT = np.array([0.4, -0.6, 0.7]) / np.sqrt(1.01)


def draw_surface(path: Path, surface: Surface, colours=None, title: str = "") -> Path:
    """Draws a shaded surface from two sides.

    Args:
        path: file of the picture; its suffix chooses the format.
        surface: surface with m triangles.
        colours: colours of the triangles (m, 3).
        title: title of the picture.
    """
    figure, axes = _two_views(surface.vertices, title)
    shade = 0.4 + 0.6 * np.clip(surface.normals @ _LIGHT, 0, 1)
    base = np.array(_SKIN) if colours is None else np.asarray(colours)
    for ax in axes:
        _add_faces(
            ax,
            surface.vertices[surface.triangles],
            np.clip(shade[:, None] * base, 0, 1),
        )
    return _save(figure, path)


def draw_skin(path: Path, design: Design) -> Path:
    """Draws the outside of the skin, with folds and soft parts in other colours."""
    mesh = design.shell.mesh
    outer = design.shell.outer
    kind = np.zeros(len(mesh.vertices), int)
    for k, tets in enumerate((in_folds(mesh), mesh.region >= SOFT), start=1):
        kind[mesh.tets[tets]] = k
    of = kind[design.shell.outer_vertices][outer.triangles].min(axis=1)
    colours = np.array([_SKIN, _FOLD, _SOFT])[of]
    return draw_surface(path, outer, colours, design.problem.name)


def draw_skeleton(path: Path, design: Design) -> Path:
    """Draws the boxes and bracing plates of the links inside the skin, and the glue."""
    mesh = design.shell.mesh
    title = f"{design.problem.name}: bracing plates, glue in red"
    figure, axes = _two_views(mesh.vertices, title)
    glue = np.concatenate([mesh.vertices[ids] for ids in design.glue.values()])
    outer = design.shell.outer
    boxes = [
        edge
        for link in design.skeleton.links
        for solid in link.solids
        if solid.kind != "rib"
        for edge in _edges(link, solid)
    ]
    faces, shades = [], []
    for link, plate in plates(design.skeleton):
        surface = plate.surface()
        faces.append(link.origin + surface.vertices[surface.triangles])
        shades.append(0.55 + 0.45 * np.abs(surface.normals @ _LIGHT))
    colours = np.outer(np.concatenate(shades or [[]]), _PIECES[0])
    for ax in axes:
        ax.add_collection3d(Line3DCollection(boxes, colors="0.25", linewidths=0.5))
        if faces:
            _add_faces(ax, np.concatenate(faces), colours)
        _add_faces(ax, outer.vertices[outer.triangles], (*_SKIN, 0.13))
        ax.plot(*glue.T, ".", color="crimson", markersize=4)
    return _save(figure, path)


def draw_fit(path: Path, fitted: Fitted, title: str) -> Path:
    """Draws a skeleton in its body; what sticks out of links that do, in red."""
    figure, axes = _two_views(fitted.surface.vertices, title)
    edges = {False: [], True: []}
    for link in fitted.skeleton.links:
        for solid in link.solids:
            if solid.kind != "rib":
                edges[link.name in fitted.lacking] += _edges(link, solid)
    if fitted.lacking:
        worst = sorted(fitted.lacking.items(), key=lambda row: -row[1])[:6]
        lines = [f"{name} {1e3 * lack:.0f} mm" for name, lack in worst]
        figure.text(0.02, 0.02, "\n".join(lines), color="crimson")
    for ax in axes:
        triangles = fitted.surface.triangles
        _add_faces(ax, fitted.surface.vertices[triangles], (*_SKIN, 0.10))
        for out, colour in ((False, "0.25"), (True, "crimson")):
            if edges[out]:
                lines = Line3DCollection(edges[out], colors=colour, linewidths=0.6)
                ax.add_collection3d(lines)
    return _save(figure, path)


def _edges(link, solid):
    corners = link.origin + solid.corners()
    return [
        corners[[a, b]]
        for a in range(8)
        for b in range(a)
        if bin(a ^ b).count("1") == 1
    ]


def draw_cut(path: Path, design: Design) -> Path:
    """Draws the wall in a section along a leg, which shows its thickness and teeth."""
    mesh = design.shell.mesh
    y = design.skeleton.link(design.skeleton.soles[0].link).p_WA[1]
    figure = Figure(figsize=(9, 6), dpi=110)
    ax = figure.subplots()
    edges = np.concatenate(
        [surface_triangles(mesh)[:, [a, b]] for a, b in ((0, 1), (1, 2), (2, 0))]
    )
    s = mesh.vertices[edges][:, :, 1] - y
    hit = s[:, 0] * s[:, 1] < 0
    t = (s[hit, 0] / (s[hit, 0] - s[hit, 1]))[:, None]
    ends = mesh.vertices[edges[hit]]
    points = ends[:, 0] + t * (ends[:, 1] - ends[:, 0])
    ax.plot(points[:, 0], points[:, 2], ".", markersize=2, color=_FOLD)
    ax.set(
        aspect="equal", xlabel="x [m]", ylabel="z [m]", title=f"wall at y = {y:.3f} m"
    )
    return _save(figure, path)


def draw_fabrication(path: Path, made: Fabrication) -> Path:
    """Draws the pieces of skin moved apart, and an opened mould of a limb."""
    figure = Figure(figsize=(11, 5), dpi=100)
    middle = np.mean([p.skin.vertices.mean(axis=0) for p in made.pieces.values()], 0)
    apart = []
    for k, piece in enumerate(made.pieces.values()):
        away = piece.skin.vertices.mean(axis=0) - middle
        share = [0.0, 1.0, 0.0] if piece.name.startswith("torso") else [0.6, 0.9, 0.8]
        apart.append((piece.skin, away * share, _PIECES[k % len(_PIECES)]))
    name = next(iter(made.moulds))
    mould = made.moulds[name]
    height = np.array([0.0, 0.0, mould.size[2]])
    side = np.array([0.0, 1.1 * mould.size[1], 0.0])
    opened = [
        (mould.lower, -0.8 * height, _PLASTIC),
        (mould.upper, 0.9 * height, _PLASTIC),
        (mould.cast, side, _PIECES[0]),
    ]
    if mould.core is not None:
        opened.append((mould.core, 0.0 * height, _CORE))
    for k, (rows, title) in enumerate(
        ((apart, "pieces of skin"), (opened, f"mould of {name}: halves, core, cast"))
    ):
        faces = np.concatenate([s.vertices[s.triangles] + p for s, p, _ in rows])
        shade = [0.7 + 0.3 * s.normals @ _LIGHT for s, _, _ in rows]
        colours = [np.outer(w, c) for w, (_, _, c) in zip(shade, rows)]
        ax = _view(figure, k, faces.reshape(-1, 3), 24, -60)
        ax.set_title(title)
        colours = np.clip(np.concatenate(colours), 0, 1)
        _add_faces(ax, faces, colours)
    return _save(figure, path)


def _add_faces(ax, faces, colours):
    ax.add_collection3d(Poly3DCollection(faces, facecolors=colours, edgecolor="none"))


def _two_views(points, title):
    figure = Figure(figsize=(11, 5), dpi=100)
    views = ((18, -55), (0, -90))
    axes = [_view(figure, k, points, *view) for k, view in enumerate(views)]
    figure.suptitle(title)
    return figure, axes


def _view(figure, k, points, elevation, azimuth):
    """Axes in the left or right half of a figure, filled by the points."""
    low, high = points.min(axis=0), points.max(axis=0)
    ax = figure.add_axes((0.5 * k, 0.0, 0.5, 0.94), projection="3d")
    ax.set_proj_type("ortho")
    ax.set(xlim=(low[0], high[0]), ylim=(low[1], high[1]), zlim=(low[2], high[2]))
    ax.view_init(elevation, azimuth)
    ax.set_box_aspect(high - low, zoom=_zoom(ax, points, high - low))
    ax.set_axis_off()
    return ax


def _zoom(ax, points, size) -> float:
    """Zoom at which the points just fill the axes, which scale alike in this view."""
    ax.set_box_aspect(size, zoom=1.0)
    x, y, _ = proj3d.proj_transform(*points.T, ax.get_proj())
    frame = ax.viewLim
    wide = frame.width / 2 / np.abs(x - (frame.x0 + frame.x1) / 2).max()
    tall = frame.height / 2 / np.abs(y - (frame.y0 + frame.y1) / 2).max()
    return float(0.97 * min(wide, tall))


def _save(figure, path):
    path = Path(path)
    with matplotlib.rc_context({"svg.hashsalt": "drakebots"}), replacing(path) as part:
        figure.savefig(part, format=path.suffix[1:], metadata={"Software": None})
    return path
