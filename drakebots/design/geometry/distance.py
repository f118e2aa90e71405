"""Signed distance on a regular grid, of a body defined by formulas or of a surface."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy.ndimage import distance_transform_edt
from scipy.spatial import cKDTree
from skimage.measure import marching_cubes

from drakebots.core.checks import check_value, positive
from drakebots.core.errors import InvalidInput
from drakebots.core.kernels import cross, dot, minus, njit
from drakebots.design.geometry.implicit import Implicit
from drakebots.design.geometry.surface import Surface
from drakebots.fem import closest_on_triangle
from drakebots.fem.mesh import cells_of_vertices

_SPACING = 2.5e-3
"""Default spacing of a grid [m]."""

_BAND = 0.015
"""Default distance from a surface within which values are exact [m]."""

_LARGEST = 60_000_000
"""Largest number of nodes of a grid."""


class DistanceGrid(NamedTuple):
    """Signed distance phi(x), negative inside, at the nodes x = origin + h (i, j, k).

    Within `band` of the surface the values are exact distances to its triangles;
    farther away they exceed the exact ones by less than a spacing. Kernels take a grid
    as it is.

    Attributes:
        values: phi at the nodes (ni, nj, nk) [m].
        origin: position of node (0, 0, 0) (3,) [m].
        spacing: distance h of neighbouring nodes [m].
        band: distance from the surface within which the values are exact [m].
    """

    values: np.ndarray
    origin: np.ndarray
    spacing: float
    band: float

    @classmethod
    def from_implicit(cls, body: Implicit, spacing: float = _SPACING) -> DistanceGrid:
        """Grid of the true distance from a body defined by formulas.

        Args:
            body: the body.
            spacing: distance of neighbouring nodes [m].

        Raises:
            InvalidInput: for a spacing that is not > 0, a grid that is too large, or
                a body of which the cuts leave nothing.
        """
        origin, shape = _extent(np.array(body.bounds()), spacing)
        raw = body.on_grid(origin, spacing, shape)
        surface = cls(raw, origin, spacing, 0.0).level_set()
        return cls._measured(surface, raw < 0, origin, spacing, _BAND)

    @classmethod
    def from_surface(
        cls, surface: Surface, spacing: float = _SPACING, band: float = _BAND
    ) -> DistanceGrid:
        """Grid of a closed surface; the sign is that of its winding number.

        Raises:
            InvalidInput: as for :meth:`from_implicit`.
        """
        x, f = surface.vertices, surface.triangles
        origin, shape = _extent(x, spacing)
        inside = _inside_by_rays(x, f, origin, spacing, shape)
        if not inside.any():
            raise InvalidInput(
                f"surface: no node of a grid of {spacing * 1e3:g} mm lies inside; "
                "use a finer grid or check the unit"
            )
        return cls._measured(surface, inside, origin, spacing, band)

    @staticmethod
    def cells(surface: Surface, spacing: float) -> tuple[np.ndarray, np.ndarray]:
        """Mask of a grid's nodes inside a surface, and the position of the first.

        They are inside by two of the rays along x, y and z at least.
        """
        x, f = surface.vertices, surface.triangles
        origin, shape = _extent(x, spacing)
        votes = np.zeros(shape, np.int8)
        for turn in range(3):
            axes = [(k + turn) % 3 for k in range(3)]
            turned, place = np.ascontiguousarray(x[:, axes]), origin[axes]
            size = tuple(shape[k] for k in axes)
            inside = _inside_by_rays(turned, f, place, spacing, size)
            votes += np.transpose(inside, np.argsort(axes))
        return votes >= 2, origin

    @classmethod
    def mended(cls, surface: Surface, spacing: float) -> DistanceGrid:
        """Grid of the body that a surface with flaws means.

        What most of the three winding numbers along x, y and z call inside is inside:
        small holes are closed, crossing and overlapping parts joined, inner walls
        and open sheets left out. It is as exact as the grid is fine.

        Raises:
            InvalidInput: when nothing is inside.
        """
        inside, origin = cls.cells(surface, spacing)
        rough = cls._measured(surface, inside, origin, spacing, 3 * spacing)
        return cls.from_surface(rough.level_set(), spacing, 3 * spacing)

    @classmethod
    def near_surface(
        cls, surface: Surface, spacing: float, band: float
    ) -> DistanceGrid:
        """Like :meth:`from_surface`, but +-band wherever the surface is farther away.

        This is the faster one when triangles are larger than a few spacings.
        """
        x, f = surface.vertices, surface.triangles
        origin, shape = _extent(x, spacing)
        inside = _inside_by_rays(x, f, origin, spacing, shape)
        reach, limit = band / spacing, band**2
        square, _ = _scatter_triangles(x, f, origin, spacing, shape, reach, limit)
        values = np.sqrt(np.minimum(square, band**2))
        values[inside] *= -1
        return cls(values, origin, float(spacing), float(band))

    @classmethod
    def _measured(cls, surface, inside, origin, h, band):
        x, f = surface.vertices, surface.triangles
        square, near = _scatter_triangles(x, f, origin, h, inside.shape, 1.01, np.inf)
        _, nodes = distance_transform_edt(near < 0, return_indices=True)
        near[near < 0] = near[tuple(nodes[:, near < 0])]
        _refine_nearest(x, f, _around(f), origin, h, square, near, (band + 2 * h) ** 2)
        values = np.where(inside, -1.0, 1.0) * np.sqrt(square)
        return cls(values, origin, float(h), float(band))

    def __call__(self, points: np.ndarray) -> np.ndarray:
        """Values (n,) [m] at points (n, 3) [m], by trilinear interpolation.

        Beyond the grid the value of its border holds.
        """
        points = np.ascontiguousarray(np.atleast_2d(points), float)
        return values_and_gradients(self, points)[0]

    def level_set(self, level: float = 0.0) -> Surface:
        """The surface phi = level [m], outward, by marching cubes.

        Raises:
            InvalidInput: when there is nothing at that level.
        """
        values, h = self.values, self.spacing
        if not values.min() < level < values.max():
            raise InvalidInput(
                f"body: there is nothing at the level {level * 1e3:g} mm on a grid of "
                f"{h * 1e3:g} mm; the body is too thin there or cut away"
            )
        # A node exactly on the level would make triangles without area.
        shifted = values - level
        tiny = 1e-4 * h
        shifted = np.where(
            np.abs(shifted) < tiny, np.where(shifted < 0, -tiny, tiny), shifted
        )
        x, f, _, _ = marching_cubes(shifted, 0.0, allow_degenerate=False)
        return Surface(x.astype(float) * h + self.origin, f.astype(np.int64))


def _around(triangles):
    """Up to 15 triangles that share a corner with each (m, 15), filled with -1."""
    m = len(triangles)
    start, order = cells_of_vertices(triangles, int(triangles.max()) + 1)
    out = np.full((m, 15), -1, np.int64)
    first, many = start[triangles], start[triangles + 1] - start[triangles]
    for corner in range(3):
        for k in range(5):
            has = many[:, corner] > k
            # Spread over the fan, whose order is that of the triangles.
            pick = first[has, corner] + k * many[has, corner] // 5
            out[has, 5 * corner + k] = order[pick]
    return out


def _extent(points, h):
    """Origin and shape of the grid around points."""
    check_value("grid spacing", h, positive("m"))
    low, high = points.min(axis=0), points.max(axis=0)
    # An odd fraction of a spacing, so that walls at round numbers miss the nodes.
    origin = low - 3.4637 * h
    shape = tuple(int(n) for n in np.ceil((high + 3.5 * h - origin) / h) + 1)
    if np.prod(np.array(shape, float)) > _LARGEST:
        raise InvalidInput(
            f"grid of {h * 1e3:g} mm: {shape} are more than {_LARGEST:.0e} nodes; "
            "use a larger spacing or check the unit of the surface"
        )
    return origin, shape


# Kernels: triangles onto nodes, inside by winding numbers, interpolation.


@njit(cache=True, inline="always")
def _corners(vertices, triangles, f):
    i, j, k = triangles[f]
    return vertices[i], vertices[j], vertices[k]


@njit(cache=True)
def _square_distance(p, vertices, triangles, f):
    """Squared distance of a point from triangle f [m^2]."""
    return closest_on_triangle(p, *_corners(vertices, triangles, f))[0]


def distances(surface: Surface, points: np.ndarray) -> np.ndarray:
    """Exact distances of points (n, 3) from a surface (n,) [m], without a sign."""
    x, f = surface.vertices, surface.triangles
    points = np.ascontiguousarray(points, float).reshape(-1, 3)
    middle = x[f].mean(axis=1)
    radius = np.linalg.norm(x[f] - middle[:, None], axis=2).max(axis=1)
    start = cKDTree(x[np.unique(f)]).query(points)[0]
    return _distances(points, x, f, middle, radius, start)


@njit(cache=True)
def _distances(points, vertices, triangles, middle, radius, start):
    """See :func:`distances`; no distance is larger than `start`, and every triangle is
    in a ball about its middle."""
    found = start**2
    for i, p in enumerate(points):
        for f in range(len(triangles)):
            x, y, z = middle[f, 0] - p[0], middle[f, 1] - p[1], middle[f, 2] - p[2]
            reach = start[i] + radius[f]
            if x * x + y * y + z * z < reach * reach:
                square = _square_distance(p, vertices, triangles, f)
                found[i] = min(found[i], square)
    return np.sqrt(found)


@njit(cache=True)
def _scatter_triangles(vertices, triangles, origin, h, shape, reach, limit):
    """Squared distance and nearest triangle of the nodes within `reach` cells of one.

    Triangles whose squared distance exceeds the limit are left out.
    """
    square = np.full(shape, np.inf)
    near = np.full(shape, -1, np.int32)
    p, middle = np.empty(3), np.empty(3)
    low, high = np.empty(3, np.int64), np.empty(3, np.int64)
    for f in range(len(triangles)):
        a, b, c = _corners(vertices, triangles, f)
        # Neither its plane nor a ball around it is farther away than the triangle.
        normal, ball2 = cross(minus(b, a), minus(c, a)), 0.0
        for k in range(3):
            middle[k] = (a[k] + b[k] + c[k]) / 3
        for corner in (a, b, c):
            far = minus(corner, middle)
            ball2 = max(ball2, dot(far, far))
        ball, area2 = np.sqrt(ball2), dot(normal, normal)
        for k in range(3):
            least = min(a[k], b[k], c[k])
            most = max(a[k], b[k], c[k])
            low[k] = max(0, int(np.ceil((least - origin[k]) / h - reach)))
            high[k] = min(shape[k] - 1, int(np.floor((most - origin[k]) / h + reach)))
        for i in range(low[0], high[0] + 1):
            p[0] = origin[0] + i * h
            for j in range(low[1], high[1] + 1):
                p[1] = origin[1] + j * h
                for k in range(low[2], high[2] + 1):
                    p[2] = origin[2] + k * h
                    best = min(square[i, j, k], limit)
                    far = minus(p, middle)
                    off, away = dot(far, normal), dot(far, far)
                    if off * off > 1.000001 * best * area2:
                        continue
                    if away > 1.000001 * (best + 2 * ball * np.sqrt(best) + ball2):
                        continue
                    d = closest_on_triangle(p, a, b, c)[0]
                    if d < square[i, j, k]:
                        square[i, j, k] = d
                        near[i, j, k] = f
    return square, near


@njit(cache=True)
def _refine_nearest(vertices, triangles, across, origin, h, square, near, limit):
    """Improves each node's nearest triangle, in place.

    Nodes without a squared distance (inf) get that from their triangle. Then a node
    tries the nearest triangles of its neighbours, in two sweeps, then walks
    from its own triangle to those around it as long as they are nearer.
    """

    def nearer(node, f):
        """Whether a triangle is nearer to a node, which takes it then."""
        p = (origin[0] + node[0] * h, origin[1] + node[1] * h, origin[2] + node[2] * h)
        d = _square_distance(p, vertices, triangles, f)
        if d < square[node]:
            square[node], near[node] = d, f
            return True
        return False

    for node in np.ndindex(square.shape):
        if square[node] == np.inf:
            nearer(node, near[node])
    last = (square.shape[0] - 1, square.shape[1] - 1, square.shape[2] - 1)
    for sweep in range(2):
        for i, j, k in np.ndindex(square.shape):
            node = (i, j, k) if sweep == 0 else (last[0] - i, last[1] - j, last[2] - k)
            if square[node] > limit:
                continue
            for axis in range(3):
                for sign in (-1, 1):
                    if not 0 <= node[axis] + sign <= last[axis]:
                        continue
                    f = near[
                        node[0] + sign * (axis == 0),
                        node[1] + sign * (axis == 1),
                        node[2] + sign * (axis == 2),
                    ]
                    if f >= 0 and f != near[node]:
                        nearer(node, f)
    for node in np.ndindex(square.shape):
        better = square[node] <= limit
        while better:
            better = False
            for f in across[near[node]]:
                if f >= 0 and nearer(node, f):
                    better = True


@njit(cache=True)
def _inside_by_rays(vertices, triangles, origin, h, shape):
    """Whether nodes have a winding number other than 0: crossings of rays along +z.

    A crossing counts +1 upward and -1 downward, so that parts that overlap are inside.

    The rays are moved off the nodes by tiny irrational distances, so that none meets
    an edge of a mesh whose vertices are at round numbers.
    """
    crossings = np.zeros(shape, np.int32)
    ex, ey = 1.37e-6 * np.sqrt(2.0) * h, 1.91e-6 * np.sqrt(3.0) * h
    for f in range(len(triangles)):
        a, b, c = _corners(vertices, triangles, f)
        area = (b[0] - a[0]) * (c[1] - a[1]) - (b[1] - a[1]) * (c[0] - a[0])
        if area == 0:
            continue
        i0 = max(0, int(np.ceil((min(a[0], b[0], c[0]) - origin[0] - ex) / h)))
        i1 = int(np.floor((max(a[0], b[0], c[0]) - origin[0] - ex) / h))
        j0 = max(0, int(np.ceil((min(a[1], b[1], c[1]) - origin[1] - ey) / h)))
        j1 = int(np.floor((max(a[1], b[1], c[1]) - origin[1] - ey) / h))
        for i in range(i0, min(i1, shape[0] - 1) + 1):
            x = origin[0] + i * h + ex
            for j in range(j0, min(j1, shape[1] - 1) + 1):
                y = origin[1] + j * h + ey
                u = ((b[0] - x) * (c[1] - y) - (b[1] - y) * (c[0] - x)) / area
                v = ((c[0] - x) * (a[1] - y) - (c[1] - y) * (a[0] - x)) / area
                w = 1 - u - v
                if u < 0 or v < 0 or w < 0:
                    continue
                z = u * a[2] + v * b[2] + w * c[2]
                k = int(np.ceil((z - origin[2]) / h))
                crossings[i, j, min(max(k, 0), shape[2] - 1)] += 1 if area > 0 else -1
    inside = np.zeros(shape, np.bool_)
    for i in range(shape[0]):
        for j in range(shape[1]):
            inside[i, j] = np.cumsum(crossings[i, j]) != 0
    return inside


@njit(cache=True)
def value_and_gradient(grid, p):
    """Trilinear value and its gradient at one point, clamped to the grid."""
    values, origin, h = grid.values, grid.origin, grid.spacing
    fx, fy, fz = (p[0] - origin[0]) / h, (p[1] - origin[1]) / h, (p[2] - origin[2]) / h
    i = min(max(int(np.floor(fx)), 0), values.shape[0] - 2)
    j = min(max(int(np.floor(fy)), 0), values.shape[1] - 2)
    k = min(max(int(np.floor(fz)), 0), values.shape[2] - 2)
    fx = min(max(fx - i, 0.0), 1.0)
    fy = min(max(fy - j, 0.0), 1.0)
    fz = min(max(fz - k, 0.0), 1.0)
    a000, a001 = values[i, j, k], values[i, j, k + 1]
    a010, a011 = values[i, j + 1, k], values[i, j + 1, k + 1]
    a100, a101 = values[i + 1, j, k], values[i + 1, j, k + 1]
    a110, a111 = values[i + 1, j + 1, k], values[i + 1, j + 1, k + 1]
    b00, b01 = a000 + fz * (a001 - a000), a010 + fz * (a011 - a010)
    b10, b11 = a100 + fz * (a101 - a100), a110 + fz * (a111 - a110)
    c0, c1 = b00 + fy * (b01 - b00), b10 + fy * (b11 - b10)
    gx = (c1 - c0) / h
    gy = ((1 - fx) * (b01 - b00) + fx * (b11 - b10)) / h
    z0 = (1 - fy) * (a001 - a000) + fy * (a011 - a010)
    z1 = (1 - fy) * (a101 - a100) + fy * (a111 - a110)
    gz = ((1 - fx) * z0 + fx * z1) / h
    return c0 + fx * (c1 - c0), gx, gy, gz


@njit(cache=True)
def values_and_gradients(grid, points):
    """Values (n,) and gradients (n, 3) at points (n, 3)."""
    value, gradient = np.empty(len(points)), np.empty((len(points), 3))
    for n, p in enumerate(points):
        value[n], gx, gy, gz = value_and_gradient(grid, p)
        gradient[n] = gx, gy, gz
    return value, gradient
