"""The lowest part of a link's shape: where a foot touches the ground.

A shape is a cloud of points with radii: a ball its centre, a capsule or a lying
cylinder the two ends of its axis, a box its corners, a mesh the vertices of its hull.
What of it is lowest is a sole of four corners, an edge of two ends, or one point.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import product

import numpy as np
import scipy
from pydrake.geometry import (
    Box,
    Capsule,
    Convex,
    Cylinder,
    Ellipsoid,
    HalfSpace,
    Mesh,
    Obb,
    Shape,
    Sphere,
)
from pydrake.math import RigidTransform

from drakebots.core.errors import InvalidInput

_AROUND = np.linspace(0, 2 * np.pi, 48, endpoint=False)
_FACING = np.cos(np.radians(40))
"""A sole may be this far from level in the pose that is looked at."""
_LEVEL = np.tan(np.radians(25))
"""The two ends of an edge may differ by this slope."""
_PLANE = np.cos(np.radians(12))
"""Facets whose normals differ by less belong to one sole."""
_LONG, _NARROW = 0.06, 0.03
"""A sole or an edge is longer, and a narrow sole wider, than this share of the leg."""
_LAYER = 0.012
"""Points this share of the leg above the lowest are as low."""


def plane_rotation(angle: float, size: int = 2) -> np.ndarray:
    """Rotation (size, size) by an angle [rad] in the plane of the first two axes."""
    R, c, s = np.eye(size), np.cos(angle), np.sin(angle)
    R[:2, :2] = [[c, -s], [s, c]]
    return R


@dataclass(frozen=True)
class Cloud:
    """Points with radii around them that bound a shape.

    Attributes:
        p: the points (n, 3) [m].
        radius: their radii (n,) [m].
        shapes: the kinds of shapes they are from.
    """

    p: np.ndarray
    radius: np.ndarray
    shapes: tuple[str, ...] = ()

    def __add__(self, other: Cloud) -> Cloud:
        return Cloud(
            np.vstack([self.p, other.p]),
            np.concatenate([self.radius, other.radius]),
            tuple(dict.fromkeys(self.shapes + other.shapes)),
        )

    def moved(self, X: RigidTransform) -> Cloud:
        """The cloud in another frame."""
        if not len(self.p):
            return self
        return Cloud((X @ self.p.T).reshape(3, -1).T, self.radius, self.shapes)

    def lowest(self, up: np.ndarray) -> float:
        """The least height along a unit vector [m]; inf for an empty cloud."""
        return float(np.min(self.p @ up - self.radius, initial=np.inf))


EMPTY = Cloud(np.zeros((0, 3)), np.zeros(0))


def cloud_of(shape: Shape, X_BG: RigidTransform, up_B: np.ndarray) -> Cloud:
    """A shape's points in the frame of its body.

    Args:
        shape: of the geometry.
        X_BG: its pose in the body.
        up_B: the direction up in the body, a unit vector; a cylinder on its side is
            a capsule, one that stands is its two rims.
    """
    points, radius = shape_points(shape)
    standing = abs(X_BG.rotation().col(2) @ up_B) > np.sqrt(0.5)
    if isinstance(shape, Cylinder) and not standing:
        points, radius = shape_points(Capsule(shape.radius(), shape.length()))
    if not len(points):
        return EMPTY
    name = type(shape).__name__.lower()
    return Cloud(points, np.full(len(points), radius), (name,)).moved(X_BG)


_SIZES = {
    Box: ("width", "depth", "height"),
    Capsule: ("radius", "length"),
    Cylinder: ("radius", "length"),
    Ellipsoid: ("a", "b", "c"),
    HalfSpace: (),
    Sphere: ("radius",),
}


def shape_sizes(shape: Shape) -> np.ndarray:
    """The lengths that a shape is made of, in the order of its constructor.

    Of a mesh its scale (3,).

    Raises:
        InvalidInput: for a shape of another kind.
    """
    if isinstance(shape, Convex | Mesh):
        return shape.scale3()
    kind = type(shape)
    if kind not in _SIZES:
        known = ", ".join(each.__name__ for each in _SIZES)
        raise InvalidInput(f"shape {kind.__name__} is none of {known}, Convex, Mesh")
    return np.array([getattr(shape, size)() for size in _SIZES[kind]])


def shape_points(shape: Shape) -> tuple[np.ndarray, float]:
    """A shape as points (n, 3) in its frame with one radius around them [m].

    None for shapes without an end, and for meshes that Drake cannot read.
    """
    if isinstance(shape, Sphere):
        return np.zeros((1, 3)), shape.radius()
    if isinstance(shape, Capsule):
        half = shape.length() / 2
        return np.array([[0, 0, -half], [0, 0, half]]), shape.radius()
    if isinstance(shape, Box):
        return np.array(list(product((-0.5, 0.5), repeat=3))) * shape.size(), 0.0
    if isinstance(shape, Cylinder):
        rim = np.stack([np.cos(_AROUND), np.sin(_AROUND)], 1) * shape.radius()
        half = np.full((len(rim), 1), shape.length() / 2)
        return np.vstack([np.hstack([rim, half]), np.hstack([rim, -half])]), 0.0
    if isinstance(shape, Ellipsoid):
        tilts = np.linspace(-np.pi / 2, np.pi / 2, 25)
        tilt, around = (x.ravel() for x in np.meshgrid(tilts, _AROUND, indexing="ij"))
        level = [np.cos(tilt) * np.cos(around), np.cos(tilt) * np.sin(around)]
        ball = np.stack([*level, np.sin(tilt)], axis=1)
        return ball * shape_sizes(shape), 0.0
    if isinstance(shape, Convex | Mesh):
        return _hull(shape), 0.0
    return np.zeros((0, 3)), 0.0


def box_corners(box: Obb) -> np.ndarray:
    """The corners (8, 3) of a box about a shape, in the frame of its pose."""
    signs = np.array(list(product((-1.0, 1.0), repeat=3)))
    return (box.pose() @ (signs * box.half_width()).T).T


def _hull(shape: Convex | Mesh) -> np.ndarray:
    try:
        hull = shape.GetConvexHull()
    except (RuntimeError, ValueError, SystemExit):
        return np.zeros((0, 3))
    return np.array([hull.vertex(i) for i in range(hull.num_vertices())])


def far_end(cloud: Cloud, p_J: np.ndarray) -> np.ndarray | None:
    """The direction of a long shape from a joint at one end of it to the other end.

    Args:
        cloud: of a link.
        p_J: position of the joint that moves the link (3,) [m].

    Returns:
        A unit vector; None for a shape that is not much longer than wide, or one that
        the joint is not at the end of.
    """
    from_joint = cloud.p - p_J
    distance = np.linalg.norm(from_joint, axis=1)
    length = distance.max()
    if length < 1e-9:
        return None
    far = from_joint[distance > 0.9 * length].mean(axis=0)
    if np.linalg.norm(far) < 0.1 * length:
        return None  # as far on one side as on the other
    direction = far / np.linalg.norm(far)
    along = from_joint @ direction
    across = np.linalg.norm(from_joint - np.outer(along, direction), axis=1)
    long = across.max() < length / 3 and along.min() > -length / 4
    return direction if long else None


def sole(
    cloud: Cloud, up: np.ndarray, leg: float, axes: np.ndarray = np.eye(3)
) -> Cloud:
    """The part of a cloud that stands on the ground.

    A narrow sole is one where the ankle tilts it about its length; else it is an edge,
    since the leg's own tilt lifts either side.

    Args:
        cloud: of a foot, not empty.
        up: the direction up, a unit vector.
        leg: length of the leg [m], against which a sole is long or short.
        axes: of the joints that count as the ankle's (n, 3), unit vectors.

    Returns:
        Four corners of a flat sole, two ends of an edge, or one point.
    """
    if leg < 1e-9:  # a lone body has no leg
        leg = max(float(np.ptp(cloud.p, axis=0).max()), 1e-6)
    low = cloud.p - np.outer(cloud.radius, up)
    normal, members = _bottom(low, up, _LAYER * leg)
    if len(low) > 3 and np.ptp(low[members] @ normal) > _LAYER * leg:
        members = low @ normal < (low @ normal).min() + _LAYER * leg
    flat, (length, width) = _rectangle(low[members], normal)
    chosen = np.flatnonzero(members)
    if max(length, width) <= _LONG * leg:
        return _point(cloud, low, up, chosen, leg)
    ends = [np.flatnonzero(sign * flat[:, 0] > 0.45 * length) for sign in (1, -1)]
    toe, heel = (low[chosen[end]].mean(axis=0) for end in ends)
    tilts = np.any(np.abs(axes @ (toe - heel)) > 0.5 * length)
    if width > (_NARROW if tilts else _LONG) * leg:
        signs = [[1, 1], [1, -1], [-1, 1], [-1, -1]]
        scaled = flat / [length, width]
        ends = [[int(np.argmax(scaled @ sign))] for sign in signs]
    ends = [chosen[end] for end in ends]
    p = np.array([cloud.p[end].mean(axis=0) for end in ends])
    radius = np.array([cloud.radius[end].mean() for end in ends])
    _, first = np.unique(p.round(9), axis=0, return_index=True)
    return Cloud(p[np.sort(first)], radius[np.sort(first)], cloud.shapes)


def _bottom(low, up, layer) -> tuple[np.ndarray, np.ndarray]:
    """The normal of the largest nearly level face below, and a mask of its points."""
    heights = low @ up
    lowest = up, heights < heights.min() + layer
    if len(low) < 4:
        # The ends of a capsule or two balls: level enough to stand on both.
        from_lowest = low - low[np.argmin(heights)]
        rise = from_lowest @ up
        run = np.linalg.norm(from_lowest - np.outer(rise, up), axis=1)
        return up, rise <= np.maximum(layer, _LEVEL * run)
    try:
        hull = scipy.spatial.ConvexHull(low, qhull_options="QJ Pp")
    except (scipy.spatial.QhullError, ValueError):
        return lowest
    facing = hull.equations[:, :3] @ -up > _FACING
    if not facing.any():
        return lowest
    normals, facets = hull.equations[facing, :3], hull.simplices[facing]
    a, b, c = (low[facets[:, k]] for k in range(3))
    area = np.linalg.norm(np.cross(b - a, c - a), axis=1)
    alike = normals @ normals.T > _PLANE
    best = alike[np.argmax(alike @ area)]
    normal = -(area[best] @ normals[best])
    if not np.any(normal):
        return lowest
    members = np.zeros(len(low), bool)
    members[np.unique(facets[best])] = True
    return normal / np.linalg.norm(normal), members


def _rectangle(points, normal) -> tuple[np.ndarray, tuple[float, float]]:
    """Coordinates (n, 2) along the sides of the smallest rectangle around points.

    Seen along the normal; the longer side is first. Returns the sides' lengths too.
    """
    first = np.eye(3)[np.argmin(np.abs(normal))]
    first = first - normal * (normal @ first)
    first /= np.linalg.norm(first)
    flat = points @ np.array([first, np.cross(normal, first)]).T
    flat = flat - flat.mean(axis=0)
    best, sides = flat, (np.inf, np.inf)
    for turn in np.linspace(0, np.pi / 2, 90, endpoint=False):
        turned = flat @ plane_rotation(turn)
        extent = np.ptp(turned, axis=0)
        if extent.prod() + 1e-9 * extent.sum() < np.prod(sides) + 1e-9 * sum(sides):
            best, sides = turned, tuple(extent)
    if sides[1] > sides[0]:
        best, sides = best[:, ::-1], sides[::-1]
    middle = (best.max(axis=0) + best.min(axis=0)) / 2
    return best - middle, sides


def _point(cloud, low, up, members, leg) -> Cloud:
    """One point for a small bottom: a ball if it is one, else its middle."""
    heights = low @ up
    near = np.flatnonzero(heights < heights.min() + _LAYER * leg)
    balls = near[cloud.radius[near] > 0]
    if balls.size:
        radius = cloud.radius[balls].max()
        balls = balls[cloud.radius[balls] > radius / 2]
        p = cloud.p[balls].mean(axis=0)
        return Cloud(p[None], np.array([radius]), cloud.shapes)
    ball = _ball(cloud.p, up, leg)
    if ball is not None:
        return Cloud(ball[0][None], np.array([ball[1]]), cloud.shapes)
    sides = [members[heights[members] < heights.min() + 4 * _LAYER * leg], near]
    p = cloud.p[next(side for side in sides if side.size)].mean(axis=0)
    p = p + up * (heights.min() - p @ up)
    return Cloud(p[None], np.zeros(1), cloud.shapes)


def _ball(p, up, leg) -> tuple[np.ndarray, float] | None:
    """Centre and radius of the ball that the lower vertices of a mesh lie on."""
    heights = p @ up
    for share in (0.06, 0.03):
        low = p[heights < heights.min() + share * leg]
        if len(low) < 12:
            continue
        start = np.r_[low.mean(axis=0), np.linalg.norm(np.ptp(low, axis=0)) / 3]
        fit = scipy.optimize.least_squares(
            lambda x, low=low: np.linalg.norm(low - x[:3], axis=1) - x[3], start
        )
        centre, radius = fit.x[:3], fit.x[3]
        # The rim of a disc lies on balls too, but they reach below it.
        below = heights.min() - (centre @ up - radius)
        misfit = max(np.abs(fit.fun).max(), abs(below))
        if 0 < radius < 0.15 * leg and misfit < 0.08 * radius:
            return centre, float(radius)
    return None
