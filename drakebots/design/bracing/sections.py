"""Flat sections in the frame of a plate: what is inside, what is in the way.

Everything is in the plate's own frame C, whose z is the plate's normal, and in
millimetres, as manifold3d's 2D operations round to 1e-8 of the unit. Lengths and
points in arguments are in metres.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import manifold3d as m
import numpy as np

from drakebots.design.geometry import Surface, to_manifold

MM = 1e3
"""Millimetres in a metre."""

_EDGES = np.array(
    [(a, b) for a in range(8) for b in range(a) if bin(a ^ b).count("1") == 1]
)
_FAR = 2e3  # mm: beyond any robot
_SEGMENTS = 32  # of a circle, where an offset rounds a corner


def inside_of(surface: Surface) -> m.Manifold:
    """The solid within a closed surface, in millimetres."""
    return to_manifold(Surface(MM * surface.vertices, surface.triangles), "inside")


def in_robot(body: m.Manifold, origin: np.ndarray) -> m.Manifold:
    """A solid of a link [m], in the robot's frame [mm]; the link is at `origin` [m]."""
    return body.scale([MM] * 3).translate((MM * origin).tolist())


def local(body: m.Manifold, p_WC: np.ndarray, R_WC: np.ndarray) -> m.Manifold:
    """A solid [mm] in the frame C."""
    return body.transform(np.column_stack([R_WC.T, -MM * R_WC.T @ p_WC]))


def section(body: m.Manifold, thickness: float) -> m.CrossSection:
    """The points (x, y) over which a solid in C fills the whole thickness around z = 0.

    Seen along z, the slab less the solid is the shadow of what is outside.
    """
    slab, size, middle = _slab(body, thickness)
    whole = m.CrossSection.square(size[:2], True).translate(middle[:2])
    return whole - _clean((slab - body).project())


def shadow(body: m.Manifold, thickness: float) -> m.CrossSection:
    """The shadow, along z, of the part of a solid in C within a thickness."""
    return _clean((_slab(body, thickness)[0] ^ body).project())


def _slab(body, thickness):
    """A slab wider than a solid around z = 0, with its size and middle [mm]."""
    box = np.array(body.bounding_box())
    low, high = box[:2], box[3:5]
    size = [*(high - low + 20), MM * thickness]
    middle = [*((low + high) / 2), 0.0]
    return m.Manifold.cube(size, True).translate(middle), size, middle


def _clean(flat: m.CrossSection) -> m.CrossSection:
    """A projection with its contours, which may cross, joined."""
    return m.CrossSection(flat.to_polygons()) if not flat.is_empty() else flat


def grown(flat: m.CrossSection, distance: float) -> m.CrossSection:
    """A section grown by a distance [m], or shrunk where < 0, with round corners."""
    return flat.offset(MM * distance, m.JoinType.Round, 2.0, _SEGMENTS)


def smoothed(flat: m.CrossSection, arm: float, off: float) -> m.CrossSection:
    """A section without parts narrower than `arm` and with fewer vertices.

    Vertices that move the contour by less than `off` are left out. The section grows by
    2 off, at most 3, so that no gap is left to what it touches.
    """
    flat = grown(grown(flat, -arm / 2), arm / 2).simplify(MM * off)
    return flat.offset(2 * MM * off, m.JoinType.Miter)


def box_points(corners_C: np.ndarray, thickness: float) -> np.ndarray:
    """Points whose hull is the shadow of a box's part within a slab (n, 2) [m].

    Args:
        corners_C: corners of the box, in the order of :meth:`Solid.corners` (8, 3) [m].
        thickness: thickness of the slab [m].
    """
    z, half = corners_C[:, 2], thickness / 2
    if z.min() > half or z.max() < -half:
        return np.zeros((0, 2))
    found = [corners_C[np.abs(z) <= half, :2]]
    a, b = corners_C[_EDGES[:, 0]], corners_C[_EDGES[:, 1]]
    for level in (-half, half):
        above = a[:, 2] - level, b[:, 2] - level
        cut = above[0] * above[1] < 0
        s = above[0][cut] / (above[0][cut] - above[1][cut])
        found.append((a[cut] + s[:, None] * (b[cut] - a[cut]))[:, :2])
    return np.concatenate(found)


def obstacle(
    points: np.ndarray, gap: float = 0.0, cast: bool = False
) -> m.CrossSection:
    """The hull of points (n, 2) [m], grown by a gap [m]; empty where it has no area.

    Args:
        cast: whether everything behind it, seen from C's origin, belongs to it, so
            that a plate does not reach around what moves.
    """
    if len(points) < 3 or np.linalg.matrix_rank(points - points[0], tol=1e-6) < 2:
        return m.CrossSection()
    flat = grown(_hull(points), gap) if gap > 0 else _hull(points)
    if cast and not flat.is_empty():
        near = np.concatenate(flat.to_polygons()) / MM
        # If the origin is in it, it covers everything, as it should.
        far = near * (_FAR / MM / max(np.linalg.norm(near, axis=1).min(), 1e-3))
        flat = _hull(np.concatenate([near, far]))
    return flat


def _hull(points):
    return m.CrossSection.hull_points(MM * points)


def less(flat: m.CrossSection, others: Iterable[m.CrossSection]):
    """A section without some others."""
    others = [other for other in others if not other.is_empty()]
    return m.CrossSection.batch_boolean([flat, *others], m.OpType.Subtract)


def nearer(flat: m.CrossSection, away: np.ndarray) -> m.CrossSection:
    """The points of a section nearer to C's origin than to a point `away` (3,) [m]."""
    length = np.linalg.norm(away[:2])
    if length < 1e-6:
        return flat
    return below(flat, away[:2] / length, (away @ away) / (2 * length))


def below(flat: m.CrossSection, normal: np.ndarray, reach: float) -> m.CrossSection:
    """The points x of a section with normal . x <= reach [m]; |normal| = 1."""
    reach = MM * reach
    if reach > _FAR:
        return flat
    side = np.array([-normal[1], normal[0]])
    near, far = normal * reach, normal * (reach - 2 * _FAR)
    corners = [near - _FAR * side, near + _FAR * side]
    corners += [far + _FAR * side, far - _FAR * side]
    return flat ^ m.CrossSection([np.array(corners)])


def touching(flat: m.CrossSection, other: m.CrossSection, least: float):
    """The pieces of a section that touch another and are larger than `least` [m^2]."""
    wide = grown(other, 5e-5)
    kept = [
        piece
        for piece in flat.decompose()
        if piece.area() > least * MM**2 and (piece ^ wide).area() > 1e-4
    ]
    return union(kept)


def union(flats: Sequence[m.CrossSection]) -> m.CrossSection:
    """The union of sections; empty where there is nothing to join."""
    return m.CrossSection.batch_boolean(flats, m.OpType.Add)


def contours(flat: m.CrossSection) -> tuple[np.ndarray, ...]:
    """The contours of a section (n, 2) [m], outlines counterclockwise."""
    return tuple(np.array(c) / MM for c in flat.to_polygons())
