"""Prisms between the layers of a wall, cut in tets."""

from __future__ import annotations

import numpy as np


def prism_tets(triangles: np.ndarray, n: int, layers: int) -> np.ndarray:
    """Three tets a prism; layer k of vertex i is k n + i, layer 0 the outer one.

    The diagonals leave the vertex of lower index, so that neighbours agree.

    Args:
        triangles: of layer 0 (f, 3), outward.
        n: vertices of a layer.
        layers: prisms through the wall.

    Returns:
        corners (3 layers f, 4), those of a triangle side by side, layer after
        layer; positive volumes when deeper layers lie inward.
    """
    # Rotated so that the lowest vertex comes first: a cyclic shift keeps outward.
    shift = (np.argmin(triangles, axis=1)[:, None] + np.arange(3)) % 3
    a, b, c = np.take_along_axis(triangles, shift, axis=1).T
    low, high = np.where(b < c, b, c), np.where(b < c, c, b)
    swap = (b > c)[:, None]
    parts = []
    for k in range(layers):
        o, i = k * n, (k + 1) * n
        for corners in (
            (a + o, low + o, high + o, high + i),
            (a + o, low + o, high + i, low + i),
            (a + o, low + i, high + i, a + i),
        ):
            tet = np.stack(corners, axis=1)
            parts.append(np.where(swap, tet, tet[:, [0, 2, 1, 3]]))
    return np.stack(parts, axis=1).reshape(-1, 4)
