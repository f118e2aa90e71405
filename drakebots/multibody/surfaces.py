"""Terrain: what robots stand on, as a signed distance and as shapes of a plant.

phi(p) is the distance of a point p_W from the ground's surface, positive outside
the ground; its gradient is the direction of the contact normal. Both are CasADi
expressions, which programs plan with; :meth:`Terrain.evaluate` gives numbers, which
skins touch the ground by, and :meth:`Terrain.solids` the shapes that Drake's contact
has. Lengths are in m; :meth:`Terrain.scaled` gives the same terrain in another unit of
length.

Here are terrains whose surface is triangles: grids of heights, pictures of them, and
meshes. Drake's point contact takes a mesh as its convex hull, so in a plant each
triangle is a convex shape, with ground below it as deep as the mean edge is long, or
of a closed surface a tenth of its least extent.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import replace
from functools import cached_property
from os.path import isfile
from pathlib import Path
from typing import Annotated

import casadi as ca
import numpy as np
from pydrake import geometry
from pydrake.common import MemoryFile
from pydrake.common.eigen_geometry import AngleAxis
from pydrake.geometry import Convex, HalfSpace, InMemoryMesh, Shape
from pydrake.math import RigidTransform, RotationMatrix

from drakebots.core.checks import array, check_value, flag, positive, whole
from drakebots.core.errors import FileProblem, InvalidInput
from drakebots.core.fields import check, checked, declared
from drakebots.core.lazy import late
from drakebots.multibody.extent import Distances

trimesh = late("trimesh")
image = late("matplotlib.image")

Frame = tuple[ca.SX, ca.SX, ca.SX]
"""Unit vectors n, t1, t2 (3,), right-handed: t1 x t2 = n."""

Solids = list[tuple[Shape, RigidTransform]]
"""Convex shapes and half spaces with their poses in the world."""
Surface = tuple[np.ndarray, np.ndarray]
"""Corners (n, 3) and triangles (m, 3), counted against the clock from outside."""


class Terrain(ABC):
    """Base class of all terrains."""

    @abstractmethod
    def distance(self, p: ca.SX) -> ca.SX:
        """phi at p_W (3,), positive outside the ground."""

    def scaled(self, length_unit: float) -> Terrain:
        """The same terrain with lengths in `length_unit` [m]."""
        unit = unit_of(length_unit)
        lengths = {
            name: getattr(self, name)
            for name, field in declared(type(self)).items()
            if field.unit == "m"
        }
        given = {name: x / unit for name, x in lengths.items() if x is not None}
        return replace(self, **given)

    def gradient(self, p: ca.SX) -> ca.SX:
        """dphi/dp (3,)."""
        return self._functions[1](p)

    def hessian(self, p: ca.SX) -> ca.SX:
        """d2phi/dp2 (3, 3)."""
        return self._functions[2](p)

    def frame(self, p: ca.SX) -> Frame:
        """The normal and two tangents of the ground nearest to p.

        With n = grad phi / |grad phi| the tangents are those of Duff et al.,
        "Building an orthonormal basis, revisited" (2017): ex and ey where
        n = ez, and continuous wherever n points up.
        """
        n = self.gradient(p)
        return frame_about(n / ca.norm_2(n))

    def heights(self, x: np.ndarray, y: np.ndarray) -> np.ndarray:
        """z of the ground's surface at x and y, as numbers (all of one shape) [m].

        Raises:
            InvalidInput: for a terrain whose surface may not be a function of x and y.
        """
        raise InvalidInput(f"terrain {type(self).__name__} has no heights")

    def solids(self) -> Solids:
        """Shapes of which the ground consists, for Drake's point contact.

        Raises:
            InvalidInput: for a terrain that is a function, or has too many triangles.
        """
        raise InvalidInput(
            f"terrain {type(self).__name__} has no shape for a plant; give Flat, "
            "Slope, Step, Stairs, Blocks, Plateau, HeightField, Image or Mesh"
        )

    def drawn(self) -> Solids:
        """Shapes that look like the ground."""
        return self.solids()

    def near(
        self, points: np.ndarray, reach: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Those of points (n, 3) nearer to the ground than their reach (n,) [m].

        Returns:
            Their numbers (k,), distances (k,) [m], negative inside, and normals (k, 3).
        """
        phi, n = self.evaluate(points)
        rows = np.flatnonzero(phi < reach)
        n = n[rows] / np.linalg.norm(n[rows], axis=1, keepdims=True)
        return rows, phi[rows], n

    def footing(self, points: np.ndarray) -> RigidTransform:
        """The motion that puts what stands on z = 0 onto this terrain.

        It turns with the plane through the ground under its lowest points (n, 3), and
        rises until none of them is below the ground.

        Raises:
            InvalidInput: where there is no ground under one of them.
        """
        x, y, _ = points.T
        sides = np.column_stack([x - x.mean(), y - y.mean()])
        rise = self.heights(x, y)
        if not np.isfinite(rise).all():
            raise InvalidInput(
                f"terrain {type(self).__name__} has no ground under the robot's feet"
            )
        a, b = np.linalg.lstsq(sides, rise - rise.mean(), rcond=1e-9)[0]
        steep, R = np.hypot(a, b), RotationMatrix()
        if steep > 1e-12:
            axis = np.array([b, -a, 0.0]) / steep
            R = RotationMatrix(AngleAxis(np.arctan(steep), axis))
        x, y, low = R.matrix() @ points.T
        return RigidTransform(R, [0.0, 0.0, (self.heights(x, y) - low).max()])

    def evaluate(self, points: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """phi (n,) and its gradient (n, 3) at points (n, 3), as numbers."""
        points = np.asarray(points, dtype=float).reshape(-1, 3)
        phi, gradient = (np.array(f(points.T)) for f in self._functions[:2])
        return phi.reshape(-1), gradient.T.reshape(-1, 3)

    @cached_property
    def _functions(self) -> tuple[ca.Function, ca.Function, ca.Function]:
        p = ca.SX.sym("p", 3)
        phi = self.distance(p)
        hessian, gradient = ca.hessian(phi, p)
        return tuple(
            ca.Function(name, [p], [ca.densify(value)])
            for name, value in (("phi", phi), ("slope", gradient), ("bend", hessian))
        )


def contact_axes(normal: np.ndarray) -> np.ndarray:
    """Two tangents and the normal, as rows, for unit normals (k, 3): (k, 3, 3).

    On flat ground they are the world's axes.
    """
    # Across the axis of the world that the normal is farther from.
    least = np.where(np.abs(normal[:, [1]]) < 0.9, [[0.0, 1.0, 0.0]], [[1.0, 0.0, 0.0]])
    t1 = np.cross(least, normal)
    t1 /= np.linalg.norm(t1, axis=1, keepdims=True)
    return np.stack([t1, np.cross(normal, t1), normal], axis=1)


def frame_about(n: ca.SX) -> Frame:
    """The frame with unit normal n; see :meth:`Terrain.frame`."""
    sign = ca.if_else(n[2] >= 0, 1, -1)
    a = -1 / (sign + n[2])
    b = n[0] * n[1] * a
    t1 = ca.vertcat(1 + sign * n[0] ** 2 * a, sign * b, -sign * n[0])
    return n, t1, ca.vertcat(b, sign + n[1] ** 2 * a, -n[1])


def unit_of(length_unit: float) -> float:
    return float(check_value("length unit", length_unit, positive("m")))


# --- of triangles --------------------------------------------------------------

MOST = 3000
"""Largest number of triangles: Drake takes 18 s to make a plant of so many."""

SHELL = 0.1
"""Thickness of the pieces of a closed surface, in terms of its least extent."""

FLOOR = HalfSpace(), RigidTransform()
"""The half space z <= 0 and its pose."""


class _Grid:
    """Ground through heights z (len(x), len(y)) on the grid lines x and y."""

    x: np.ndarray
    y: np.ndarray
    z: np.ndarray

    @cached_property
    def _coefficients(self) -> np.ndarray:
        across_x = _spline_matrix(len(self.x))
        across_y = _spline_matrix(len(self.y))
        return across_x @ self.z @ across_y.T

    def _height_and_slopes(self, p):
        (X, dX), (Y, dY) = (_basis(p[k], g) for k, g in enumerate((self.x, self.y)))
        rows = ca.DM(self._coefficients)
        along = ca.mtimes(rows, Y)
        return (ca.dot(X, along), ca.dot(dX, along), ca.dot(X, ca.mtimes(rows, dY)))

    def heights(self, x: np.ndarray, y: np.ndarray) -> np.ndarray:
        points = np.stack([x, y, np.zeros_like(x)], axis=-1).reshape(-1, 3)
        return np.array(self._height_function(points.T)).reshape(np.shape(x))

    @cached_property
    def _height_function(self) -> ca.Function:
        p = ca.SX.sym("p", 3)
        return ca.Function("height", [p], [self._height_and_slopes(p)[0]])

    def distance(self, p: ca.SX) -> ca.SX:
        h, hx, hy = self._height_and_slopes(p)
        return (p[2] - h) / ca.sqrt(1 + hx**2 + hy**2)

    def frame(self, p: ca.SX) -> Frame:
        """The frame of the ground vertically below p."""
        _, hx, hy = self._height_and_slopes(p)
        n = ca.vertcat(-hx, -hy, 1)
        return frame_about(n / ca.norm_2(n))

    @cached_property
    def surface(self) -> Surface:
        """Two triangles for each square of the grid, which end at its sides."""
        x, y = np.meshgrid(self.x, self.y, indexing="ij")
        corners = np.column_stack([x.ravel(), y.ravel(), self.z.ravel()])
        number = np.arange(len(corners)).reshape(self.z.shape)
        a, b = number[:-1, :-1].ravel(), number[1:, :-1].ravel()
        c, d = number[1:, 1:].ravel(), number[:-1, 1:].ravel()
        return corners, np.vstack([np.column_stack(t) for t in ((a, b, c), (a, c, d))])

    def solids(self) -> Solids:
        return _pieces(type(self).__name__, *self.surface)

    def drawn(self) -> Solids:
        return [(mesh_of(*self.surface), RigidTransform())]


@checked("terrain", eq=False)
class HeightField(_Grid, Terrain):
    """Ground z = h(x, y) through heights on a regular grid, for scans and drawings.

    h is the bicubic spline through them (twice continuously differentiable,
    not-a-knot ends, exact for cubics), extended linearly outside the grid.
    phi is the distance to first order,

        phi = (z - h) / sqrt(1 + |grad h|^2)

    exact for planes and with |grad phi| = 1 on any surface; it has continuous
    first derivatives, and second ones that jump at grid lines off the surface.

    The expression has a term for each grid point: for a program keep grids to
    about fifty lines a side.
    """

    x: Annotated[np.ndarray, array((None,), "m")]
    """Coordinates of the grid lines along x, increasing and evenly spaced."""
    y: Annotated[np.ndarray, array((None,), "m")]
    """Coordinates of the grid lines along y, increasing and evenly spaced."""
    z: Annotated[np.ndarray, array((None, None), "m")]
    """Heights (len(x), len(y))."""

    def __post_init__(self):
        for name in ("x", "y"):
            lines = getattr(self, name)
            if len(lines) < 2:
                raise InvalidInput(f"terrain {name} needs two or more grid lines")
            gaps = np.diff(lines)
            if not (gaps > 0).all() or np.ptp(gaps) > 1e-6 * gaps.mean():
                raise InvalidInput(
                    f"terrain {name} must be increasing and evenly spaced"
                )
        check(self, "terrain", z=array((len(self.x), len(self.y)), "m"))


@checked("terrain", eq=False)
class Image(_Grid, Terrain):
    """The :class:`HeightField` of a picture: black is z = 0, white the height.

    Its middle is the origin; x grows to the right, and y upwards. Each height is the
    mean of its part of the picture.
    """

    file: Path
    """The picture (.png), in grey or in colours, of which the mean counts."""
    length: Annotated[float, positive("m")] = 4.0
    """Length along x."""
    height: Annotated[float, positive("m")] = 0.1
    """Height of white."""
    points: Annotated[int, whole(2)] = 25
    """Number of grid lines along x, and as dense ones along y."""

    def __post_init__(self):
        file = _there(self.file)
        try:
            grey = image.imread(file)
        except (OSError, SyntaxError, ValueError) as error:
            raise FileProblem(self.file, f"is no picture ({error})") from error
        white = np.iinfo(grey.dtype).max if grey.dtype.kind == "u" else 1.0
        grey = grey[..., :3].mean(axis=2) if grey.ndim == 3 else grey
        grey = grey.T[:, ::-1] / white
        across = self.length * grey.shape[1] / grey.shape[0]
        many = self.points, max(2, round(self.points * across / self.length))
        for axis, count in enumerate(many):
            size = grey.shape[axis]
            first = np.linspace(0, size, count, endpoint=False).astype(int)
            last = np.maximum(
                np.linspace(0, size, count + 1)[1:].astype(int), first + 1
            )
            parts = [grey.take(range(a, b), axis) for a, b in zip(first, last)]
            grey = np.stack([part.mean(axis=axis) for part in parts], axis=axis)
        sides = zip((self.length, across), many)
        lines = [np.linspace(-d / 2, d / 2, n) for d, n in sides]
        for name, made in zip("xyz", (*lines, self.height * grey)):
            object.__setattr__(self, name, made)


@checked("terrain", eq=False)
class Mesh(Terrain):
    """A surface of triangles on the floor z = 0, which robots touch and do not plan on.

    Its triangles are those of a file, seen from outside the ground.
    """

    file: Path
    """The surface (.obj, .stl, .ply, .off)."""
    scale: Annotated[float, positive()] = 1.0
    """Factor of its lengths; those of a file in mm have 0.001."""
    floor: Annotated[bool, flag()] = True
    """Whether there is a floor z = 0."""

    def __post_init__(self):
        _ = self.surface

    @cached_property
    def surface(self) -> Surface:
        file = _there(self.file)
        try:
            found = trimesh.load(file, force="mesh")
        except Exception as error:
            raise FileProblem(self.file, f"is no surface ({error})") from error
        if not len(found.faces):
            raise FileProblem(self.file, "is no surface: it has no triangles")
        return self.scale * np.array(found.vertices), np.array(found.faces)

    @cached_property
    def _distances(self) -> Distances:
        if not trimesh.Trimesh(*self.surface).is_watertight:
            # All that lies behind an open surface would be inside of it.
            raise InvalidInput(
                f"terrain Mesh: {self.file} is open, and skins touch closed surfaces "
                "only; close it, or give an Image"
            )
        return Distances(mesh_of(*self.surface))

    def scaled(self, length_unit: float) -> Mesh:
        return replace(self, scale=self.scale / length_unit)

    def distance(self, p: ca.SX) -> ca.SX:
        raise InvalidInput(
            "terrain Mesh is no equation to plan with; give Flat, Slope, Step, Stairs, "
            "HeightField or Image"
        )

    def evaluate(self, points: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        points = np.asarray(points, float).reshape(-1, 3)
        phi, n = self._distances(points)
        floor = self.floor & (points[:, 2] < phi)
        up = np.array([0.0, 0.0, 1.0])
        return np.where(floor, points[:, 2], phi), np.where(floor[:, None], up, n)

    def near(self, points, reach):
        low = self._distances.beside_box(points)
        low = np.minimum(low, points[:, 2]) if self.floor else low
        reach = np.broadcast_to(reach, len(low))
        some = np.flatnonzero(low < reach)
        rows, phi, n = super().near(points[some], reach[some])
        return some[rows], phi, n

    def heights(self, x: np.ndarray, y: np.ndarray) -> np.ndarray:
        """z of the topmost triangle over each x and y, else of the floor [m]."""
        corners, triangles = self.surface
        A, B, C = (corners[triangles[:, k]] for k in range(3))
        u, w = (B - A)[:, :2], (C - A)[:, :2]
        area = u[:, 0] * w[:, 1] - u[:, 1] * w[:, 0]
        area = np.where(area == 0, np.inf, area)
        found = []
        for p in np.column_stack([np.ravel(x), np.ravel(y)]):
            d = p - A[:, :2]
            s = (d[:, 0] * w[:, 1] - d[:, 1] * w[:, 0]) / area
            t = (u[:, 0] * d[:, 1] - u[:, 1] * d[:, 0]) / area
            over = np.isfinite(area) & (np.minimum(s, t) >= 0) & (s + t <= 1)
            z = A[:, 2] + s * (B - A)[:, 2] + t * (C - A)[:, 2]
            found.append(z[over].max(initial=0.0 if self.floor else -np.inf))
        return np.reshape(found, np.shape(x))

    def solids(self) -> Solids:
        return self.floor * [FLOOR] + _pieces("Mesh", *self.surface)

    def drawn(self) -> Solids:
        return self.floor * [FLOOR] + HeightField.drawn(self)


def _there(file: Path) -> Path:
    """A file that is there."""
    if not isfile(file):
        raise FileProblem(file, "no such file")
    return file


def mesh_of(corners: np.ndarray, triangles: np.ndarray) -> geometry.Mesh:
    """A surface as a shape of Drake's."""
    surface = trimesh.Trimesh(corners, triangles, process=False)
    text = surface.export(file_type="obj", digits=12)
    return geometry.Mesh(InMemoryMesh(mesh_file=MemoryFile(text, ".obj", "terrain")))


def _pieces(name: str, corners: np.ndarray, triangles: np.ndarray) -> Solids:
    """Convex shapes under the surface of a terrain."""
    surface = trimesh.Trimesh(corners, triangles)
    if surface.is_watertight and surface.is_convex:
        return [(Convex(corners.T, "terrain"), RigidTransform())]
    if len(surface.faces) > MOST:
        raise InvalidInput(
            f"terrain {name} has {len(surface.faces)} triangles, too many for a plant; "
            f"simplify it to {MOST}"
        )
    thick = surface.edges_unique_length.mean()
    if surface.is_watertight:  # or they would come out on its other side
        thick = min(thick, SHELL * surface.extents.min())
    down = thick * surface.face_normals
    tops = surface.vertices[surface.faces]
    hulls = (np.vstack([top, top - deep]).T for top, deep in zip(tops, down))
    return [(Convex(hull, "terrain"), RigidTransform()) for hull in hulls]


def _basis(x: ca.SX, lines: np.ndarray) -> tuple[ca.SX, ca.SX]:
    """Cubic B-splines centred on the grid lines and one beyond each end, and
    their slopes, at x; linear outside the grid."""
    step = (lines[-1] - lines[0]) / (len(lines) - 1)
    u = (x - lines[0]) / step
    inside = ca.fmin(ca.fmax(u, 0), len(lines) - 1)
    # (w + 2)^3 - 4 (w + 1)^3 + ..., each from where it is positive on.
    knots = [(-2, 1), (-1, -4), (0, 6), (1, -4)]
    values, slopes = [], []
    for centre in range(-1, len(lines) + 1):
        w = ca.fmin(ca.fmax(inside - centre, -2), 2)
        ramps = [(ca.fmax(w - knot, 0), factor / 6) for knot, factor in knots]
        slope = sum(3 * factor * ramp**2 for ramp, factor in ramps)
        value = sum(factor * ramp**3 for ramp, factor in ramps)
        values.append(value + slope * (u - inside))
        slopes.append(slope / step)
    return ca.vertcat(*values), ca.vertcat(*slopes)


def _spline_matrix(n: int) -> np.ndarray:
    """The matrix from n heights to the n + 2 coefficients of their spline."""
    A = np.zeros((n + 2, n + 2))
    for row in range(n):
        A[row, row : row + 3] = np.array([1, 4, 1]) / 6
    # Not a knot: the highest differences at either end vanish.
    order = min(n, 4)
    difference = np.diff(np.eye(order + 1), order, axis=0)[0]
    A[n, : order + 1] = A[n + 1, -order - 1 :] = difference
    return np.linalg.solve(A, np.eye(n + 2)[:, :n])
