"""Struts and nodes as triangles: one mesh each, so that pages stay small.

Every object of a Meshcat page costs a kilobyte, every vertex 12 bytes: 6144 struts
(8x8x8 voxels) only fit as a single mesh.
"""

from __future__ import annotations

import numpy as np

_GOLDEN = (1 + 5**0.5) / 2
_ICOSAHEDRON = np.array(
    [
        *([-1, _GOLDEN, 0], [1, _GOLDEN, 0], [-1, -_GOLDEN, 0], [1, -_GOLDEN, 0]),
        *([0, -1, _GOLDEN], [0, 1, _GOLDEN], [0, -1, -_GOLDEN], [0, 1, -_GOLDEN]),
        *([_GOLDEN, 0, -1], [_GOLDEN, 0, 1], [-_GOLDEN, 0, -1], [-_GOLDEN, 0, 1]),
    ]
) / np.hypot(1, _GOLDEN)
_ICOSAHEDRON_FACES = np.array(
    [
        *([0, 11, 5], [0, 5, 1], [0, 1, 7], [0, 7, 10], [0, 10, 11]),
        *([1, 5, 9], [5, 11, 4], [11, 10, 2], [10, 7, 6], [7, 1, 8]),
        *([3, 9, 4], [3, 4, 2], [3, 2, 6], [3, 6, 8], [3, 8, 9]),
        *([4, 9, 5], [2, 4, 11], [6, 2, 10], [8, 6, 7], [9, 8, 1]),
    ]
)


def tubes(
    starts: np.ndarray, ends: np.ndarray, radius: float, sides: int
) -> tuple[np.ndarray, np.ndarray]:
    """Open prisms from points to points.

    Args:
        starts, ends: of the axes (B, 3), apart from each other.
        radius: of the corners.
        sides: >= 3.

    Returns:
        Corners (B, 2, sides, 3), those at the start first, and triangles
        (2 B sides, 3) of the corners counted in that order.
    """
    along = ends - starts
    along = along / np.linalg.norm(along, axis=1, keepdims=True)
    # Any direction across will do; the axis least along it is never parallel.
    least = np.eye(3)[np.argmin(np.abs(along), axis=1)]
    first = np.cross(along, least)
    first /= np.linalg.norm(first, axis=1, keepdims=True)
    second = np.cross(along, first)
    angle = 2 * np.pi * np.arange(sides) / sides
    ring = radius * (
        np.cos(angle)[:, None] * first[:, None]
        + np.sin(angle)[:, None] * second[:, None]
    )
    corners = np.stack([starts[:, None] + ring, ends[:, None] + ring], axis=1)
    k = np.arange(sides)
    after = (k + 1) % sides
    quads = np.vstack(
        [
            np.stack([k, after, sides + k], axis=1),
            np.stack([after, sides + after, sides + k], axis=1),
        ]
    )
    offset = 2 * sides * np.arange(len(starts))
    return corners, (offset[:, None, None] + quads).reshape(-1, 3)


_OCTAHEDRON = np.vstack([np.eye(3), -np.eye(3)])
_OCTAHEDRON_FACES = np.array(
    [
        *([0, 1, 2], [1, 3, 2], [3, 4, 2], [4, 0, 2]),
        *([1, 0, 5], [3, 1, 5], [4, 3, 5], [0, 4, 5]),
    ]
)


def balls(
    centres: np.ndarray, radius: float, fine: bool
) -> tuple[np.ndarray, np.ndarray]:
    """Spheres of 80 triangles when fine, otherwise of 8.

    Returns:
        Corners (N, C, 3) and triangles (F, 3) of the corners counted in that order.
    """
    corners, faces = _OCTAHEDRON, _OCTAHEDRON_FACES
    if fine:
        corners, faces = _cut(_ICOSAHEDRON, _ICOSAHEDRON_FACES)
    placed = centres[:, None] + radius * corners
    offset = len(corners) * np.arange(len(centres))
    return placed, (offset[:, None, None] + faces).reshape(-1, 3)


def _cut(corners: np.ndarray, faces: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    edges = np.sort(faces[:, [[0, 1], [1, 2], [2, 0]]], axis=2)
    unique, which = np.unique(edges.reshape(-1, 2), axis=0, return_inverse=True)
    middles = corners[unique].sum(axis=1)
    middles /= np.linalg.norm(middles, axis=1, keepdims=True)
    a, b, c = faces.T
    ab, bc, ca = (len(corners) + which.reshape(-1, 3)).T
    small = [(a, ab, ca), (ab, b, bc), (ca, bc, c), (ab, bc, ca)]
    cut = np.vstack([np.stack(face, axis=1) for face in small])
    return np.vstack([corners, middles]), cut
