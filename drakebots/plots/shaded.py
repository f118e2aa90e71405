"""Still pictures of triangles on a ground, all in one light and without mesh edges.

    solids = [Solid(vertices, triangles, (0.9, 0.8, 0.7)), box(corners, (0, 0, 0))]
    pixels = shaded([turned(solids, -35), turned(solids, 0)], (1100, 500))

Needs no browser, and no OpenGL of the system, as Drake's own renderer does: pictures of
a design are to be drawn on any machine. What is drawn is lit from the upper left, and
by a sky whose light reaches a point from all directions in which nothing stands in its
way: depth buffers from some forty directions say which. Normals are smooth where
triangles meet at less than `CREASE`, so that meshes look as what they approximate.
Translucent solids show what is inside them, and are denser where they are seen edge-on.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
from scipy.ndimage import gaussian_filter
from scipy.sparse import csr_array

from drakebots.core.kernels import njit
from drakebots.core.lazy import late
from drakebots.model import plane_rotation
from drakebots.view import axes_of_view

trimesh = late("trimesh")

GROUND = (0.86, 0.87, 0.89)

CREASE = 50.0
"""Angle between triangles above which an edge is drawn as one [degrees]."""

_FINE = 2
"""Samples of a pixel along each side."""
_KEY = np.array([-0.45, -0.62, 0.85])
_KEY /= np.linalg.norm(_KEY)
"""Towards the lamp, a unit vector; the camera looks along +y."""
_ELEVATION = 15.0
"""Elevation of the camera [degrees]."""
_AWAY = 4.2
"""Distance of the camera, over the larger side of what is seen."""


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
        groups: each stands on the ground with its lowest point.
        size: width and height [pixels].

    Returns:
        Pixels (height, width, 3), sRGB in 0..1.
    """
    solids = _beside(groups)
    opaque = [x for x in solids if x.opacity >= 1]
    clear = [x for x in solids if x.opacity < 1]
    parts = [_Scene(some) for some in (opaque, clear) if some]
    points = np.concatenate([x.vertices for x in solids])
    camera = _Camera(points, (size[0] * _FINE, size[1] * _FINE))
    light = _Light.of(points, parts[0])  # light passes what is clear
    pixels = _ground(camera, light)
    near = np.zeros(pixels.shape[:2])
    for part in parts:
        _paint(pixels, near, part, camera, light)
    pixels = np.clip(pixels, 0, 1) ** (1 / 2.2)
    h, w = size[1], size[0]
    return pixels.reshape(h, _FINE, w, _FINE, 3).mean(axis=(1, 3))


def _beside(groups):
    """Solids of all groups, with gaps of a tenth between them, on z = 0."""
    out, x = [], 0.0
    spans = [np.concatenate([s.vertices for s in solids]) for solids in groups]
    gap = 0.1 * max(np.ptp(p[:, 0]) for p in spans)
    for solids, p in zip(groups, spans):
        shift = np.array([x - p[:, 0].min(), -p[:, 1].mean(), -p[:, 2].min()])
        out += [replace(s, vertices=np.asarray(s.vertices) + shift) for s in solids]
        x += np.ptp(p[:, 0]) + gap
    return out


class _Scene:
    """Triangles of some solids: corners' normals (m, 3, 3), linear colours (n, 3)."""

    def __init__(self, solids):
        counts = np.cumsum([0] + [len(s.vertices) for s in solids])
        self.vertices = np.concatenate([s.vertices for s in solids])
        self.triangles = np.concatenate(
            [np.asarray(s.triangles, np.int64) + k for s, k in zip(solids, counts)]
        )
        least = np.cos(np.radians(CREASE))
        self.normals = _corner_normals(self.vertices, self.triangles, least)
        colours = [np.broadcast_to(s.colour, np.shape(s.vertices)) for s in solids]
        self.colours = np.concatenate(colours) ** 2.2
        opacity = [np.full(len(s.triangles), s.opacity) for s in solids]
        self.opacity = np.concatenate(opacity)


class _Camera:
    """A pinhole so far away that all points are in the picture.

    Attributes:
        eye: its place (3,) [m].
        R: takes the world to (right, up, back).
        scale: pixels per tangent.
        size: of the picture [pixels].
    """

    def __init__(self, points, size):
        e = np.radians(_ELEVATION)
        self.R = axes_of_view([0, -np.cos(e), np.sin(e)])
        self.size = w, h = size
        p = points @ self.R.T
        middle = (p.min(axis=0) + p.max(axis=0)) / 2
        half = np.ptp(p, axis=0) / 2
        distance = _AWAY * max(half[0], half[1] * w / h, half[2])
        for _ in range(5):
            depth = distance - (p - middle)[:, 2]
            projected = (p - middle)[:, :2] / depth[:, None]
            low, high = projected.min(axis=0), projected.max(axis=0)
            middle[:2] += distance * (low + high) / 2
        self.scale = 0.46 * min(w / (high - low)[0], 0.93 * h / (high - low)[1]) * 2
        self.eye = (middle + np.array([0, 0, distance])) @ self.R

    def project(self, points):
        """Pixels (n, 2) and the inverse of the depth (n,)."""
        p = (points - self.eye) @ self.R.T
        near = 1 / -p[:, 2]
        w, h = self.size
        x = w / 2 + self.scale * p[:, 0] * near
        return np.stack([x, h / 2 - self.scale * p[:, 1] * near], axis=1), near

    def rays(self, step):
        """Directions of the rays of every step-th pixel, with a depth of 1."""
        w, h = self.size
        x = (np.arange(0, w, step) + step / 2 - w / 2) / self.scale
        y = (h / 2 - np.arange(0, h, step) - step / 2) / self.scale
        return np.stack(np.broadcast_arrays(x, y[:, None], -1.0), axis=-1) @ self.R


class _Light(NamedTuple):
    """Depth buffers from the directions of the light, and how they look at the world.

    Attributes:
        towards: directions to the light (k, 3); the first `keys` are the lamp's.
        axes: right and up of each buffer (k, 2, 3).
        depth: along `towards` of what is nearest to the light (k, n, n) [m].
        low, scale: of the pixels of a buffer (k, 2) [m], [1/m].
        bias: by which points are moved out of their surface [m].
    """

    towards: np.ndarray
    keys: int
    axes: np.ndarray
    depth: np.ndarray
    low: np.ndarray
    scale: np.ndarray
    bias: float

    @classmethod
    def of(cls, points, scene, pixels=320, sky=26, keys=7):
        k = np.arange(max(sky, keys)) + 0.5
        turn = np.pi * (1 + 5**0.5) * k
        z = k[:sky] / sky
        r = np.sqrt(1 - z**2)
        up = np.stack([r * np.cos(turn[:sky]), r * np.sin(turn[:sky]), z], 1)
        spread = 0.13 * np.sqrt(k[:keys] / keys)[:, None]
        side = np.stack([np.cos(turn), np.sin(turn), 0 * turn], 1)[:keys]
        towards = _unit(np.concatenate([_KEY + spread * side, up]))
        right = _unit(np.cross([0.0, 0, 1], towards))
        axes = np.stack([right, np.cross(towards, right)], axis=1)
        flat = np.einsum("kij,nj->kni", axes, points)
        low, high = flat.min(axis=1), flat.max(axis=1)
        scale = (pixels - 1) / (high - low)
        depth = np.full((len(towards), pixels, pixels), -np.inf)
        for k, direction in enumerate(towards):
            xy = (scene.vertices @ axes[k].T - low[k]) * scale[k]
            _raster(xy, scene.vertices @ direction, scene.triangles, depth[k])
        bias = 0.006 * float(np.ptp(points, axis=0).max())
        return cls(towards, keys, axes, depth, low, scale, bias)

    def on(self, points, normals):
        """Light (n,) of the lamp and of the sky at points with unit normals (n, 3)."""
        moved = points + self.bias * normals
        return _lit(np.ascontiguousarray(moved), np.ascontiguousarray(normals), self)


def _ground(camera, light):
    """The ground, with its shadows, and the haze behind it (h, w, 3).

    All of it is soft: one sample of sixteen will do.
    """
    rays = camera.rays(4)
    reach = camera.eye[2] / np.maximum(-rays[..., 2], 1e-9)
    far = camera.eye[2] / np.sin(np.radians(_ELEVATION))
    hit = (rays[..., 2] < 0) & (reach < 3 * far)
    points = camera.eye + reach[hit][:, None] * rays[hit]
    lit = np.ones(hit.shape)
    up = np.tile([0.0, 0, 1], (len(points), 1))
    lit[hit] = _total(*light.on(points, up), 1.0)
    haze = np.where(hit, np.clip((reach / far - 1.1) / 1.6, 0, 1), 1.0)
    haze = (haze * haze * (3 - 2 * haze))[..., None]
    ground = np.array(GROUND) ** 2.2 * lit[..., None]
    made = (1 - haze) * ground + haze * np.array((0.66, 0.67, 0.69)) ** 2.2
    made = made.repeat(4, axis=0).repeat(4, axis=1)
    return gaussian_filter(made, (4.0, 4.0, 0))[: camera.size[1], : camera.size[0]]


def _total(lamp, sky, up):
    """1 on open ground; from below comes what the ground reflects."""
    return 0.5 * lamp / _KEY[2] + 0.42 * sky + 0.08 + 0.15 * (1 - up) / 2


def _paint(pixels, near, scene, camera, light):
    """Adds the nearest triangles; through clear ones, what is behind shines."""
    xy, inverse = camera.project(scene.vertices)
    # What is clear and behind something opaque is hidden by it.
    face = _raster(xy, inverse, scene.triangles, near)
    rows, columns = np.nonzero(face >= 0)
    f = face[rows, columns]
    corners = scene.triangles[f]
    a, b, c = (xy[corners[:, k]] for k in range(3))
    p = np.stack([columns + 0.5, rows + 0.5], axis=1)
    area = _cross(b - a, c - a)
    share = np.stack([_cross(b - p, c - p), _cross(c - p, a - p)], 1) / area[:, None]
    share = np.column_stack([share, 1 - share.sum(axis=1)])
    share = share * inverse[corners]
    share /= share.sum(axis=1)[:, None]
    points = np.einsum("ni,nij->nj", share, scene.vertices[corners])
    normals = np.einsum("ni,nij->nj", share, scene.normals[f])
    normals /= np.linalg.norm(normals, axis=1)[:, None] + 1e-12
    colour = np.einsum("ni,nij->nj", share, scene.colours[corners])
    back = _unit(camera.eye - points)
    # Rows go down, so that the corners of what faces the camera turn the other way.
    normals *= np.where(area > 0, -1.0, 1.0)[:, None]
    facing = np.clip(np.einsum("ni,ni->n", normals, back), 0, 1)
    lamp, sky = light.on(points, normals)
    half = _unit(back + _KEY)
    gloss = np.clip(np.einsum("ni,ni->n", normals, half), 0, 1) ** 40
    made = colour * _total(lamp, sky, normals[:, 2])[:, None]
    made += (0.05 * gloss * np.minimum(lamp, 1))[:, None]
    opacity = scene.opacity[f]
    edge = (1 - facing) ** 2
    opacity = np.where(opacity < 1, opacity + (1 - opacity) * 0.7 * edge, 1.0)[:, None]
    pixels[rows, columns] = opacity * made + (1 - opacity) * pixels[rows, columns]


def _unit(vectors):
    return vectors / np.linalg.norm(vectors, axis=1)[:, None]


def _cross(a, b):
    return a[:, 0] * b[:, 1] - a[:, 1] * b[:, 0]


@njit(cache=True)
def _raster(xy, near, triangles, depth):
    """Draws triangles into a buffer of nearness; the face of each pixel drawn, or -1.

    Args:
        xy: corners in pixels (n, 2).
        near: nearness of the corners (n,), linear in the picture.
        triangles: (m, 3).
        depth: nearness of what is there already (h, w), updated.
    """
    h, w = depth.shape
    face = np.full((h, w), -1, np.int32)
    for f in range(len(triangles)):
        i, j, k = triangles[f]
        ax, ay = xy[i]
        bx, by = xy[j]
        cx, cy = xy[k]
        area = (bx - ax) * (cy - ay) - (by - ay) * (cx - ax)
        if area == 0:
            continue
        c0 = max(0, int(np.ceil(min(ax, bx, cx) - 0.5)))
        c1 = min(w - 1, int(np.floor(max(ax, bx, cx) - 0.5)))
        r0 = max(0, int(np.ceil(min(ay, by, cy) - 0.5)))
        r1 = min(h - 1, int(np.floor(max(ay, by, cy) - 0.5)))
        for r in range(r0, r1 + 1):
            y = r + 0.5
            for c in range(c0, c1 + 1):
                x = c + 0.5
                u = ((bx - x) * (cy - y) - (by - y) * (cx - x)) / area
                v = ((cx - x) * (ay - y) - (cy - y) * (ax - x)) / area
                if u < 0 or v < 0 or u + v > 1:
                    continue
                d = u * near[i] + v * near[j] + (1 - u - v) * near[k]
                if d > depth[r, c]:
                    depth[r, c] = d
                    face[r, c] = f
    return face


@njit(cache=True)
def _lit(points, normals, light):
    """Shares of the lamp's and the sky's light (n,) that reach points."""
    towards, keys, axes, depth, low, scale, _ = light
    n, size = len(points), depth.shape[1]
    lamp, sky = np.zeros(n), np.zeros(n)
    for m in range(n):
        for k in range(len(towards)):
            t = towards[k]
            cosine = normals[m, 0] * t[0] + normals[m, 1] * t[1] + normals[m, 2] * t[2]
            if cosine <= 0:
                continue
            x, y, z = points[m]
            u = (axes[k, 0, 0] * x + axes[k, 0, 1] * y + axes[k, 0, 2] * z) - low[k, 0]
            v = (axes[k, 1, 0] * x + axes[k, 1, 1] * y + axes[k, 1, 2] * z) - low[k, 1]
            c, r = int(np.floor(u * scale[k, 0])), int(np.floor(v * scale[k, 1]))
            free = c < 0 or r < 0 or c >= size or r >= size
            if free or depth[k, r, c] <= t[0] * x + t[1] * y + t[2] * z:
                if k < keys:
                    lamp[m] += cosine
                else:
                    sky[m] += cosine
    return lamp / keys, 2 * sky / (len(towards) - keys)


def _corner_normals(vertices, triangles, least):
    """Mean normals at each corner (m, 3, 3), of its faces within the crease.

    Faces count by their area; `least` is the cosine of the crease's angle.
    """
    m, corners = len(triangles), np.arange(3 * len(triangles))
    a, b, c = vertices[triangles].swapaxes(0, 1)
    normals = np.cross(b - a, c - a)
    units = normals / (np.linalg.norm(normals, axis=1)[:, None] + 1e-300)
    shape = (3 * m, len(vertices))
    at = csr_array((np.ones(3 * m), (corners, triangles.ravel())), shape)
    # Corners of all faces that meet in the vertex of a corner.
    pairs = (at @ at.T).tocoo()
    one, other = pairs.row // 3, pairs.col // 3
    smooth = np.einsum("pk,pk->p", units[one], units[other]) >= least
    around = csr_array((smooth.astype(float), (pairs.row, other)), (3 * m, m))
    return (around @ normals).reshape(m, 3, 3)
