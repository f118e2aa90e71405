"""Terrains of one equation: flat ground, slopes, steps, stairs, blocks, functions."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property, reduce
from typing import Annotated

import casadi as ca
import numpy as np
from pydrake.geometry import Box, HalfSpace
from pydrake.math import RigidTransform, RotationMatrix

from drakebots.core.checks import between, finite, positive, whole
from drakebots.core.errors import InvalidInput
from drakebots.core.fields import check, checked
from drakebots.multibody.surfaces import FLOOR, Frame, Solids, Terrain, unit_of

WIDTH = 100.0
"""Width of what has no limits across the path [m]."""


@checked("terrain")
class Flat(Terrain):
    """The half-space z <= height."""

    height: Annotated[float, finite("m")] = 0.0
    """Height of the ground."""

    def distance(self, p: ca.SX) -> ca.SX:
        return p[2] - self.height

    def frame(self, p: ca.SX) -> Frame:
        """The constants ez, ex, ey."""
        x, y, z = (ca.SX(column) for column in np.eye(3))
        return z, x, y

    def heights(self, x: np.ndarray, y: np.ndarray) -> np.ndarray:
        return np.full(np.shape(x), float(self.height))

    def solids(self) -> Solids:
        return [(HalfSpace(), RigidTransform([0.0, 0.0, self.height]))]


@checked("terrain")
class Slope(Terrain):
    """The half-space below the plane z = 0 rotated about the y axis.

    n = (sin angle, 0, cos angle): with a positive angle the ground falls
    towards +x.
    """

    angle: Annotated[float, finite("rad")]
    """Angle about y, between -pi/2 and pi/2."""

    def __post_init__(self):
        if abs(self.angle) >= np.pi / 2:
            raise InvalidInput(
                "terrain angle must be between -pi/2 and pi/2 rad, got "
                f"{self.angle:g}; is it in degrees?"
            )

    def distance(self, p: ca.SX) -> ca.SX:
        return np.sin(self.angle) * p[0] + np.cos(self.angle) * p[2]

    def frame(self, p: ca.SX) -> Frame:
        """Constants; t1 lies in the x-z plane and t2 = ey."""
        s, c = np.sin(self.angle), np.cos(self.angle)
        return tuple(ca.SX(np.array(v)) for v in ((s, 0, c), (c, 0, -s), (0, 1.0, 0)))

    def heights(self, x: np.ndarray, y: np.ndarray) -> np.ndarray:
        return -np.tan(self.angle) * np.asarray(x, float)

    def solids(self) -> Solids:
        return [(HalfSpace(), RigidTransform(RotationMatrix.MakeYRotation(self.angle)))]


@checked("terrain")
class Step(Terrain):
    """A box on the floor z = 0 between two values of x, infinite along y.

    phi is the Euclidean distance outside the ground. Inside it is continuous and
    negative: minus the larger of the depths in the floor and in the box, each on
    its own; that is at most the true depth.

    The gradient jumps at kinks. Outside the ground these are, without `rounding`,
    the bisectors of the two inner corners and the upper edges; with a radius there
    are none. Inside the box there are kinks where the nearest side changes, for any
    radius. On a kink the gradient is that of one side, of length one.
    """

    start: Annotated[float, finite("m")]
    """Coordinate x of the box's near face."""
    end: Annotated[float, finite("m")]
    """Coordinate x of the box's far face."""
    height: Annotated[float, positive("m")]
    """Height of its top."""
    rounding: Annotated[float, finite("m")] = 0.0
    """Radius of the edges and of the fillets at the floor, at most half of the box's
    smaller side."""

    def __post_init__(self):
        _check_ends(self.start, self.end)
        most = min(self.end - self.start, self.height) / 2
        check(self, "terrain", rounding=between(0.0, most, "m"))

    def distance(self, p: ca.SX) -> ca.SX:
        x, z, r = p[0], p[2], self.rounding
        # Past the sides and the top of the box that is smaller by r.
        side = _larger(self.start + r - x, x - self.end + r)
        top = z - self.height + r
        edge = ca.logic_and(side > 0, top > 0)
        box = ca.if_else(edge, _hypot(side, top, edge), _larger(side, top)) - r
        if r == 0:
            return -_larger(-z, -box)
        fillet = ca.logic_and(z < r, box < r)
        round_ = r - _hypot(r - z, r - box, fillet)
        return ca.if_else(fillet, round_, -_larger(-z, -box))

    def frame(self, p: ca.SX) -> Frame:
        """t1 lies in the x-z plane and t2 = ey; on walls t1 is vertical."""
        n = self.gradient(p)
        n = n / ca.norm_2(n)
        return n, ca.vertcat(n[2], 0, -n[0]), ca.SX(np.array([0, 1.0, 0]))

    def heights(self, x: np.ndarray, y: np.ndarray) -> np.ndarray:
        """Heights of the box with sharp edges; its rounding does not count."""
        return np.where((x >= self.start) & (x <= self.end), self.height, 0.0)

    def solids(self) -> Solids:
        """The floor, and a box with sharp edges on it."""
        return [FLOOR, _box(self.start, self.end, self.height)]


class _Boxes:
    """Ground of :class:`Step` s, the highest of which counts."""

    steps: tuple[Step, ...]

    def __post_init__(self):
        _ = self.steps

    def distance(self, p: ca.SX) -> ca.SX:
        gaps = (step.distance(p) for step in self.steps)
        return reduce(lambda a, b: -_larger(-a, -b), gaps)

    def frame(self, p: ca.SX) -> Frame:
        """As of :meth:`Step.frame`."""
        return Step.frame(self, p)

    def heights(self, x: np.ndarray, y: np.ndarray) -> np.ndarray:
        """Heights with sharp edges, as of :meth:`Step.heights`."""
        return np.max([step.heights(x, y) for step in self.steps], axis=0)

    def solids(self) -> Solids:
        """The floor, and a box for each step."""
        return [FLOOR] + [step.solids()[1] for step in self.steps]


@checked("terrain")
class Stairs(_Boxes, Terrain):
    """Stairs across the path, infinite along y, that go up to a landing.

    phi is that of the nearest of their steps, each as of :class:`Step`.
    """

    rise: Annotated[float, positive("m")]
    """Height of each step."""
    run: Annotated[float, positive("m")] = 0.25
    """Depth of each step."""
    count: Annotated[int, whole(1)] = 3
    """Number of steps; the last one is the landing."""
    start: Annotated[float, finite("m")] = 0.5
    """Coordinate x of the first one's face."""
    landing: Annotated[float, positive("m")] = 5.0
    """Depth of the landing, behind which is the floor."""
    rounding: Annotated[float, finite("m")] = 0.0
    """Radius of edges and fillets, as of a Step."""

    @cached_property
    def steps(self) -> tuple[Step, ...]:
        """A box for each step, from its face to the end of the landing."""
        faces = self.start + self.run * np.arange(self.count)
        end = float(faces[-1] + self.landing)
        tops = self.rise * np.arange(1, self.count + 1)
        pairs = zip(faces.tolist(), tops.tolist())
        return tuple(Step(x, end, z, self.rounding) for x, z in pairs)


@checked("terrain")
class Blocks(_Boxes, Terrain):
    """Blocks across the path, infinite along y, with gaps between them."""

    height: Annotated[float, positive("m")]
    """Height of each block."""
    depth: Annotated[float, positive("m")] = 0.25
    """Depth of each block."""
    gap: Annotated[float, positive("m")] = 0.25
    """Distance between two blocks."""
    count: Annotated[int, whole(1)] = 4
    """Number of blocks."""
    start: Annotated[float, finite("m")] = 0.5
    """Coordinate x of the first one's face."""
    rounding: Annotated[float, finite("m")] = 0.0
    """Radius of edges and fillets, as of a Step."""

    @cached_property
    def steps(self) -> tuple[Step, ...]:
        """The blocks."""
        faces = self.start + (self.depth + self.gap) * np.arange(self.count)
        given = self.height, self.rounding
        return tuple(Step(x, x + self.depth, *given) for x in faces.tolist())


@checked("terrain")
class Plateau(Terrain):
    """Ground z = h(x, y) that jumps to a height on a rectangle, with normals ez.

        phi = z - h,    h = height where start <= x <= end and |y| <= width/2, else 0

    This is the step of the MATLAB version of Drake (`RigidBodyStepTerrain`). Unlike
    `Step` it has no wall: a foot beside the rectangle and below its top touches
    nothing, and a foot that crosses the edge is at once above or below the ground. phi
    jumps there, and its derivatives do not show the edge. So a program that lets feet
    cross does not converge; decide on which side they are first
    (`ContactImplicit.levels`).
    """

    start: Annotated[float, finite("m")]
    """Lower limit of the rectangle along x, which belongs to it."""
    end: Annotated[float, finite("m")]
    """Upper limit of the rectangle along x, which belongs to it."""
    height: Annotated[float, positive("m")]
    """Height of the rectangle."""
    width: Annotated[float | None, positive("m")] = None
    """Width along y, from -width/2 to width/2; None for no limits."""

    def __post_init__(self):
        _check_ends(self.start, self.end)

    def distance(self, p: ca.SX) -> ca.SX:
        inside = ca.logic_and(p[0] >= self.start, p[0] <= self.end)
        if self.width is not None:
            inside = ca.logic_and(inside, ca.fabs(p[1]) <= self.width / 2)
        return p[2] - ca.if_else(inside, self.height, 0)

    def frame(self, p: ca.SX) -> Frame:
        """The constants ez, ex, ey."""
        return Flat().frame(p)

    def heights(self, x: np.ndarray, y: np.ndarray) -> np.ndarray:
        inside = (x >= self.start) & (x <= self.end)
        if self.width is not None:
            inside &= np.abs(y) <= self.width / 2
        return np.where(inside, self.height, 0.0)

    def solids(self) -> Solids:
        """The floor, and a box on it, which has walls."""
        width = WIDTH if self.width is None else self.width
        return [FLOOR, _box(self.start, self.end, self.height, width)]


@dataclass(frozen=True)
class SignedDistance(Terrain):
    """A terrain from a function of the user.

    Attributes:
        function: from p_W (3,) [m] to phi [m], as SX. Its slope on the surface is
            1 where gaps and forces are to be physical, else any positive slope.
    """

    function: Callable[[ca.SX], ca.SX]

    def __post_init__(self):
        p = ca.SX.sym("p", 3)
        try:
            phi = ca.SX(self.function(p))
        except Exception as error:
            raise InvalidInput(f"terrain function fails on SX: {error}") from error
        if phi.shape != (1, 1):
            raise InvalidInput(
                f"terrain function must give one number, gave shape {phi.shape}"
            )
        if not ca.depends_on(phi, p):
            raise InvalidInput("terrain function does not depend on the point")

    def distance(self, p: ca.SX) -> ca.SX:
        return self.function(p)

    def scaled(self, length_unit: float) -> SignedDistance:
        L = unit_of(length_unit)
        return SignedDistance(lambda p: self.function(p * L) / L)


def _box(start: float, end: float, height: float, width: float = WIDTH):
    """A box on the floor and its pose."""
    place = RigidTransform([(start + end) / 2, 0.0, height / 2])
    return Box(end - start, width, height), place


def _larger(a: ca.SX, b: ca.SX) -> ca.SX:
    """The larger one; where they are equal, with the derivative of `b` (ca.fmax has
    the mean of both)."""
    return ca.if_else(a > b, a, b)


def _hypot(a: ca.SX, b: ca.SX, where: ca.SX) -> ca.SX:
    """sqrt(a^2 + b^2) if `where`, with finite derivatives elsewhere too."""
    return ca.sqrt(ca.if_else(where, a**2 + b**2, 1))


def _check_ends(start: float, end: float) -> None:
    if end <= start:
        raise InvalidInput(
            f"terrain end must be beyond start, got {start:g} .. {end:g}"
        )
