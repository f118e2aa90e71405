"""Small closed meshes for drawing: laminate plates, tapered prisms, OBJ text.

Everything is in mm; faces run counter-clockwise seen from outside.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

Points = Sequence[Sequence[float]]

PLANES = {
    "xy": np.array([[1.0, 0, 0], [0, 1, 0], [0, 0, 1]]),
    "xz": np.array([[1.0, 0, 0], [0, 0, 1], [0, -1, 0]]),
    "yz": np.array([[0.0, 1, 0], [0, 0, 1], [1, 0, 0]]),
}
"""Rows: the directions of a plate's two coordinates and of its normal."""


@dataclass(frozen=True)
class Mesh:
    """Closed surfaces: vertices (n, 3) [mm] and convex faces of indices."""

    vertices: np.ndarray
    faces: tuple[tuple[int, ...], ...]

    def moved(self, p: Sequence[float]) -> Mesh:
        """Shifted by p (3,) [mm]."""
        return Mesh(self.vertices + np.asarray(p, float), self.faces)

    def mirrored(self, axis: int) -> Mesh:
        """The mirror image across the plane normal to `axis`, still outward."""
        signs = np.ones(3)
        signs[axis] = -1
        return Mesh(self.vertices * signs, tuple(f[::-1] for f in self.faces))


def merge(meshes: Iterable[Mesh]) -> Mesh:
    """All of them as one mesh."""
    vertices, faces, start = [], [], 0
    for mesh in meshes:
        vertices.append(mesh.vertices)
        faces += [tuple(i + start for i in face) for face in mesh.faces]
        start += len(mesh.vertices)
    return Mesh(np.vstack(vertices), tuple(faces))


def loft(lower: np.ndarray, upper: np.ndarray) -> Mesh:
    """The solid between two convex polygons (n, 3), counter-clockwise from above."""
    n = len(lower)
    sides = [(i, (i + 1) % n, n + (i + 1) % n, n + i) for i in range(n)]
    caps = [tuple(range(n))[::-1], tuple(range(n, 2 * n))]
    return Mesh(np.vstack([lower, upper]), tuple(sides + caps))


def box(low: Sequence[float], high: Sequence[float]) -> Mesh:
    """An axis-aligned box between two corners [mm]."""
    (x, y, z), (X, Y, Z) = low, high
    ring = [(x, y), (X, y), (X, Y), (x, Y)]
    return loft(
        np.array([(*p, z) for p in ring], float),
        np.array([(*p, Z) for p in ring], float),
    )


def plate(
    outline: Points,
    holes: Sequence[Points] = (),
    *,
    thickness: float,
    plane: str | np.ndarray = "xy",
    origin: Sequence[float] = (0, 0, 0),
) -> Mesh:
    """A flat plate with cut-outs.

    Args:
        outline: its edge in the plane's coordinates (n, 2) [mm].
        holes: edges of cut-outs inside the outline, apart from one another.
        thickness: half of it to either side of the plane [mm].
        plane: a key of :data:`PLANES`, or three such rows.
        origin: of the plane's coordinates (3,) [mm].
    """
    rings = [_turned(outline, 1)] + [_turned(hole, -1) for hole in holes]
    flat = np.vstack(rings)
    starts = np.cumsum([0] + [len(ring) for ring in rings])
    loops = [list(range(a, b)) for a, b in pairwise(starts)]
    cap = triangulate(flat, loops)
    n = len(flat)
    faces = [(a, c, b) for a, b, c in cap]
    faces += [(a + n, b + n, c + n) for a, b, c in cap]
    for loop in loops:
        faces += [(a, b, b + n, a + n) for a, b in zip(loop, loop[1:] + loop[:1])]
    axes = PLANES[plane] if isinstance(plane, str) else plane
    middle = np.asarray(origin, float) + flat @ axes[:2]
    half = thickness / 2 * axes[2]
    return Mesh(np.vstack([middle - half, middle + half]), tuple(faces))


def rounded(points: Points, radius: float | Sequence[float], steps: int = 2) -> Points:
    """A polygon with each corner replaced by an arc [mm].

    The radius (one for all corners, or one a corner) is cut down where an edge
    is too short; 0 keeps a corner sharp.
    """
    corners = np.asarray(points, float)
    radii = np.broadcast_to(radius, len(corners))
    result = []
    for before, corner, after, r in zip(
        np.roll(corners, 1, 0), corners, np.roll(corners, -1, 0), radii
    ):
        a, b = before - corner, after - corner
        la, lb = np.linalg.norm(a), np.linalg.norm(b)
        a, b = a / la, b / lb
        half = np.arccos(np.clip(a @ b, -1, 1)) / 2
        reach = min(r / np.tan(half), 0.48 * la, 0.48 * lb)
        if reach < 1e-3 or half > 1.55:
            result.append(corner)
            continue
        for s in np.linspace(0, 1, steps + 1):  # a quadratic curve is near enough
            result.append(corner + reach * ((1 - s) ** 2 * a + s**2 * b))
    return result


def rectangle(x: float, y: float, X: float, Y: float) -> Points:
    """The corners of a rectangle from (x, y) to (X, Y)."""
    return [(x, y), (X, y), (X, Y), (x, Y)]


def symmetric(points: Points, axis: int) -> Points:
    """An outline given on one side of a mirror line, continued on the other.

    Points run from the line to the line; `axis` is the coordinate that changes
    sign.
    """
    flat = [tuple(p) for p in points]
    sign = (-1, 1) if axis == 0 else (1, -1)
    back = [(sign[0] * u, sign[1] * v) for u, v in reversed(flat)]
    return flat + [p for p in back if p not in flat]


def _turned(points: Points, sign: int) -> np.ndarray:
    ring = np.asarray(points, float)
    return ring if np.sign(_area(ring)) == sign else ring[::-1]


def _area(ring: np.ndarray) -> float:
    x, y = ring.T
    return 0.5 * float(x @ np.roll(y, -1) - np.roll(x, -1) @ y)


def _cross(a, b):
    return a[..., 0] * b[..., 1] - a[..., 1] * b[..., 0]


def triangulate(points: np.ndarray, loops: Sequence[list[int]]) -> list:
    """Triangles of a polygon with holes, by bridges and ear clipping.

    Args:
        points: (n, 2).
        loops: indices of the outline (counter-clockwise), then of the holes
            (clockwise).
    """
    outline, *holes = (list(loop) for loop in loops)
    holes.sort(key=lambda hole: -points[hole, 0].max())
    while holes:
        hole = holes.pop(0)
        k = int(np.argmax(points[hole, 0]))
        others = [outline, hole, *holes]
        order = np.argsort(np.linalg.norm(points[outline] - points[hole[k]], axis=1))
        j = next(j for j in order if _sees(points, hole[k], outline[j], others))
        bridge = hole[k:] + hole[: k + 1]
        outline = outline[: j + 1] + bridge + outline[j:]
    return _clip_ears(points, outline)


def _sees(points, i, j, loops) -> bool:
    p, q = points[i], points[j]
    for loop in loops:
        for a, b in zip(loop, loop[1:] + loop[:1]):
            if {a, b} & {i, j}:
                continue
            A, B = points[a], points[b]
            if (
                _cross(q - p, A - p) * _cross(q - p, B - p) <= 0
                and _cross(B - A, p - A) * _cross(B - A, q - A) <= 0
            ):
                return False
    return True


def _clip_ears(points, loop) -> list[tuple[int, int, int]]:
    loop, triangles = list(loop), []
    while len(loop) > 3:
        for i in range(len(loop)):
            a, b, c = loop[i - 1], loop[i], loop[(i + 1) % len(loop)]
            if _is_ear(points, a, b, c, loop):
                triangles.append((a, b, c))
                del loop[i]
                break
        else:
            raise ValueError("the outline of a plate crosses itself")
    return [*triangles, tuple(loop)]


def _is_ear(points, a, b, c, loop) -> bool:
    A, B, C = points[a], points[b], points[c]
    if _cross(B - A, C - A) <= 1e-9:
        return False
    others = points[[i for i in set(loop) if i not in (a, b, c)]]
    inside = (
        (_cross(B - A, others - A) >= -1e-9)
        & (_cross(C - B, others - B) >= -1e-9)
        & (_cross(A - C, others - C) >= -1e-9)
    )
    return not inside.any()


def obj_text(mesh: Mesh) -> str:
    """The mesh as OBJ with one normal a face, to the micrometre [mm]."""
    vertices = np.round(mesh.vertices, 3) + 0.0
    normals: dict[tuple[float, ...], int] = {}
    lines = [f"v {x:.6g} {y:.6g} {z:.6g}" for x, y, z in vertices]
    faces = []
    for face in mesh.faces:
        corners = vertices[list(face)]
        normal = np.cross(corners, np.roll(corners, -1, 0)).sum(0)
        key = tuple(np.round(normal / np.linalg.norm(normal), 3) + 0.0)
        k = normals.setdefault(key, len(normals) + 1)
        faces.append("f " + " ".join(f"{i + 1}//{k}" for i in face))
    lines += [f"vn {x:.6g} {y:.6g} {z:.6g}" for x, y, z in normals]
    return "\n".join(lines + faces) + "\n"
