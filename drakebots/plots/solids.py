"""Still pictures of surfaces made of triangles, by matplotlib.

    solids = [Solid(vertices, triangles, (0.9, 0.8, 0.7)), box(corners, (0, 0, 0))]
    pixels = shaded([turned(solids, -35), turned(solids, 0)], (1100, 500))

Needs no browser and no OpenGL: pictures of a design are to be drawn on any machine.
Triangles are drawn from the farthest to the nearest, and are lit from the upper left.
What is clear is drawn as if it were not, and mixed with the picture without it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from mpl_toolkits.mplot3d.art3d import Poly3DCollection

from drakebots.core.lazy import late
from drakebots.model import plane_rotation

trimesh = late("trimesh")

_KEY = np.array([-0.45, -0.62, 0.85])
_KEY /= np.linalg.norm(_KEY)
"""Towards the lamp, a unit vector; the camera looks along +y."""
_ELEVATION = 15.0
"""Elevation of the camera [degrees]."""
_FINE = 2
"""Samples of a pixel along each side."""
_ROUND = 0.8
"""Least cosine between a triangle's normal and that of its corners on round skin."""
_SMALL = 0.3
"""Zoom at which a solid is no higher than a picture half as high as wide."""


@dataclass(frozen=True)
class Solid:
    """A surface to draw.

    Attributes:
        vertices: (n, 3) [m], z up.
        triangles: outward (m, 3).
        colour: sRGB in 0..1, one (3,) or one per vertex (n, 3).
        opacity: 1 hides what is behind.
    """

    vertices: np.ndarray
    triangles: np.ndarray
    colour: tuple[float, float, float] | np.ndarray
    opacity: float = 1.0


def box(corners: np.ndarray, colour: tuple[float, float, float]) -> Solid:
    """A box by its corners (8, 3)."""
    hull = trimesh.convex.convex_hull(np.asarray(corners, float))
    return Solid(hull.vertices, hull.faces, colour)


def turned(solids: Sequence[Solid], degrees: float) -> list[Solid]:
    """The solids, turned about the vertical."""
    R = plane_rotation(np.radians(degrees), size=3)
    return [replace(x, vertices=np.asarray(x.vertices) @ R.T) for x in solids]


def shaded(
    groups: Sequence[Sequence[Solid]], size: tuple[int, int] = (1100, 500)
) -> np.ndarray:
    """Draws groups of solids side by side, as wide as the picture.

    Args:
        groups: each stands on the same height with its lowest point.
        size: width and height [pixels].

    Returns:
        Pixels (height, width, 3), sRGB in 0..1.
    """
    solids = _beside(groups)
    points = np.concatenate([x.vertices for x in solids])
    low, high = points.min(axis=0), points.max(axis=0)
    faces = [_faces(solid, 0.02 * (high - low).max()) for solid in solids]
    width, height = size
    figure = Figure(figsize=(width / 100, height / 100), dpi=100 * _FINE)
    # Axes in three dimensions are square: these are as wide as the picture.
    place = (0, (1 - width / height) / 2, 1, width / height)
    ax = figure.add_axes(place, projection="3d", elev=_ELEVATION, azim=-90)
    ax.set_axis_off()
    for set_limits, *ends in zip((ax.set_xlim, ax.set_ylim, ax.set_zlim), low, high):
        set_limits(*ends)

    def drawn(chosen, zoom: float) -> np.ndarray:
        ax.set_box_aspect(high - low, zoom=zoom)
        corners, colours = map(np.concatenate, zip(*chosen))
        style = {"facecolors": colours, "edgecolors": colours, "linewidths": 0.7}
        added = ax.add_collection3d(Poly3DCollection(corners, **style))
        canvas = FigureCanvasAgg(figure)
        canvas.draw()
        added.remove()
        return np.array(canvas.buffer_rgba())[..., :3] / 255

    # First so small that all of it is in the picture, whatever its shape.
    rows, columns = np.nonzero((drawn(faces, _SMALL) < 1).any(axis=2))
    extent = np.ptp(columns) / (_FINE * width), np.ptp(rows) / (_FINE * height)
    zoom = 0.9 * _SMALL / max(extent)
    pixels = drawn(faces, zoom)
    solid = [own for own, x in zip(faces, solids) if x.opacity == 1]
    if solid and len(solid) < len(solids):
        share = min(x.opacity for x in solids)
        pixels = share * pixels + (1 - share) * drawn(solid, zoom)
    return pixels.reshape(height, _FINE, width, _FINE, 3).mean(axis=(1, 3))


def _beside(groups: Sequence[Sequence[Solid]]) -> list[Solid]:
    """Solids of all groups, with gaps of a tenth between them, on z = 0."""
    out, x = [], 0.0
    spans = [np.concatenate([s.vertices for s in solids]) for solids in groups]
    gap = 0.1 * max(np.ptp(p[:, 0]) for p in spans)
    for solids, p in zip(groups, spans):
        shift = np.array([x - p[:, 0].min(), -p[:, 1].mean(), -p[:, 2].min()])
        out += [replace(s, vertices=np.asarray(s.vertices) + shift) for s in solids]
        x += np.ptp(p[:, 0]) + gap
    return out


def _faces(solid: Solid, largest: float) -> tuple[np.ndarray, np.ndarray]:
    """Corners (m, 3, 3) and lit colours (m, 3) of a solid's triangles that face us.

    Those of one colour have edges of at most `largest`, so that what is nearer is drawn
    over what is farther.
    """
    vertices, triangles = np.asarray(solid.vertices, float), solid.triangles
    if np.ndim(solid.colour) == 1:
        subdivided = trimesh.remesh.subdivide_to_size
        vertices, triangles = subdivided(vertices, triangles, largest, max_iter=12)
    corners = vertices[triangles]
    a, b, c = np.moveaxis(corners, 1, 0)
    normals = trimesh.util.unitize(np.cross(b - a, c - a))
    # Lit as round where neighbours meet at small angles.
    around = np.zeros_like(vertices)
    np.add.at(around, triangles, normals[:, None])
    round_ = trimesh.util.unitize(around[triangles].sum(axis=1))
    is_edge = (normals * round_).sum(axis=1) < _ROUND
    facing = np.where(is_edge[:, None], normals, round_)
    light = 0.45 + 0.55 * np.clip(facing @ _KEY, 0, 1) + 0.1 * facing[:, 2]
    given = np.broadcast_to(solid.colour, vertices.shape)
    colours = given[triangles].mean(axis=1) * light[:, None]
    elevation = np.radians(_ELEVATION)
    seen = normals @ [0, -np.cos(elevation), np.sin(elevation)] > -0.3
    return corners[seen], np.clip(colours, 0, 1)[seen]
