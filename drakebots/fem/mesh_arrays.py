"""Vertices and cells as arrays, checked: what tet meshes and surfaces share."""

from __future__ import annotations

import numpy as np

from drakebots.errors import InvalidInput


def checked_arrays(
    what: str, cell: str, vertices: np.ndarray, cells: np.ndarray, corners: int
) -> tuple[np.ndarray, np.ndarray]:
    """Vertices as floats (n, 3) and cells as integers (m, corners).

    Args:
        what: is checked, as messages name it, such as "mesh".
        cell: name of one of its cells, such as "tet".
        vertices: positions.
        cells: corners of each.
        corners: of a cell.

    Raises:
        InvalidInput: for wrong shapes, no cells, positions that are not finite,
            or a corner that is not a vertex.
    """
    x = np.ascontiguousarray(vertices, dtype=float)
    c = np.ascontiguousarray(cells)
    if x.ndim != 2 or x.shape[1] != 3:
        raise InvalidInput(f"{what} vertices: shape {x.shape}, needs (n, 3)")
    if c.ndim != 2 or c.shape[1:] != (corners,) or len(c) == 0:
        raise InvalidInput(
            f"{what} {cell}s: shape {c.shape}, needs (m, {corners}) with m >= 1"
        )
    if not np.issubdtype(c.dtype, np.integer):
        raise InvalidInput(f"{what} {cell}s: type {c.dtype}, needs integers")
    bad = np.flatnonzero(~np.isfinite(x).all(axis=1))
    if bad.size:
        raise InvalidInput(
            f"{what} vertex {bad[0]}: position {x[bad[0]].tolist()} is not finite "
            f"({bad.size} such vertices); mend the {what}"
        )
    bad = np.flatnonzero(((c < 0) | (c >= len(x))).any(axis=1))
    if bad.size:
        raise InvalidInput(
            f"{what} {cell} {bad[0]}: corners {c[bad[0]].tolist()} are not all among "
            f"the {len(x)} vertices"
        )
    return x, c.astype(np.int64)
