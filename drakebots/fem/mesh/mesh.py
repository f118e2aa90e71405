"""A tetrahedral mesh: vertices, tets, regions, volumes, faces and edges."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components

from drakebots.core.checks import check_value, numeric
from drakebots.core.errors import InvalidInput


def checked_arrays(
    what: str, cell: str, vertices: np.ndarray, cells: np.ndarray, corners: int
) -> tuple[np.ndarray, np.ndarray]:
    """Vertices as floats (n, 3) and cells as integers (m, corners), checked.

    Args:
        what: name of the object in messages, such as "mesh".
        cell: name of one of its cells, such as "tet".
        vertices: positions (n, 3) [m].
        cells: vertices of each cell (m, corners).
        corners: number of corners of a cell.

    Raises:
        InvalidInput: for wrong shapes, no cells, positions that are not finite,
            or a corner that is not a vertex.
    """
    vertices = check_value(f"{what} vertices", vertices, numeric())
    x = np.ascontiguousarray(vertices, dtype=float)
    c = np.ascontiguousarray(check_value(f"{what} {cell}s", cells, numeric()))
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
            f"({bad.size} such vertices); repair the {what}"
        )
    bad = np.flatnonzero(((c < 0) | (c >= len(x))).any(axis=1))
    if bad.size:
        raise InvalidInput(
            f"{what} {cell} {bad[0]}: corners {c[bad[0]].tolist()} are not all among "
            f"the {len(x)} vertices"
        )
    return x, c.astype(np.int64)


FACES = np.array([[1, 2, 3], [0, 3, 2], [0, 1, 3], [0, 2, 1]])
"""Corners of the face opposite corner i, outward when the volume is positive."""

EDGES = np.array([[0, 1], [0, 2], [0, 3], [1, 2], [1, 3], [2, 3]])
"""Corners of the six edges; the order of the mid-edge nodes 4..9 of a P2 tet."""


@dataclass(frozen=True)
class TetMesh:
    """Vertices, tets and the region each tet belongs to.

    Attributes:
        vertices: positions at rest (n, 3) [m].
        tets: vertices of each tet (m, 4), positively oriented after
            :func:`drakebots.fem.mesh.check.check_mesh`.
        region: region of each tet (m,); zeros by default.

    Raises:
        InvalidInput: for wrong shapes, no tets, positions that are not finite,
            or a corner that is not a vertex.
    """

    vertices: np.ndarray
    tets: np.ndarray
    region: np.ndarray | None = None

    def __post_init__(self):
        vertices, tets = checked_arrays("mesh", "tet", self.vertices, self.tets, 4)
        region = np.zeros(len(tets)) if self.region is None else self.region
        region = np.ascontiguousarray(region, dtype=np.int64)
        if region.shape != (len(tets),):
            raise InvalidInput(
                f"mesh region: shape {region.shape}, needs one integer for each of "
                f"the {len(tets)} tets"
            )
        object.__setattr__(self, "vertices", vertices)
        object.__setattr__(self, "tets", tets)
        object.__setattr__(self, "region", region)

    @property
    def volumes(self) -> np.ndarray:
        """Signed volumes (m,) [m^3]."""
        return tet_volumes(self.vertices, self.tets)

    @property
    def regions(self) -> tuple[int, ...]:
        """The regions of the mesh, sorted."""
        return tuple(int(r) for r in np.unique(self.region))


def tet_volumes(vertices: np.ndarray, tets: np.ndarray) -> np.ndarray:
    """Signed volumes det(x1 - x0, x2 - x0, x3 - x0)/6 of tets (m,) [m^3]."""
    a, b, c = (vertices[tets[:, k]] - vertices[tets[:, 0]] for k in (1, 2, 3))
    return np.einsum("ij,ij->i", a, np.cross(b, c)) / 6


def surface_faces(mesh: TetMesh) -> tuple[np.ndarray, np.ndarray]:
    """Faces (outward) that belong to one tet only, and that tet.

    Returns:
        triangles (f, 3), tets (f,).

    Raises:
        InvalidInput: when a face belongs to three tets or more.
    """
    faces = mesh.tets[:, FACES].reshape(-1, 3)
    _, first, count = np.unique(
        np.sort(faces, axis=1), axis=0, return_index=True, return_counts=True
    )
    if count.max() > 2:
        face = first[np.argmax(count)]
        raise InvalidInput(
            f"mesh face {faces[face].tolist()} of tet {face // 4} belongs to "
            f"{count.max()} tets; remove the duplicates"
        )
    outer = np.sort(first[count == 1])
    return faces[outer], outer // 4


def surface_triangles(mesh: TetMesh) -> np.ndarray:
    """The boundary of the mesh as outward triangles (f, 3)."""
    return surface_faces(mesh)[0]


def mesh_edges(tets: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Unique edges (e, 2), lower vertex first, and those of each tet (m, 6)."""
    pairs = np.sort(tets[:, EDGES].reshape(-1, 2), axis=1)
    edges, of_tet = np.unique(pairs, axis=0, return_inverse=True)
    return edges, of_tet.reshape(-1, 6)


def connected_pieces(cells: np.ndarray, vertices: int) -> tuple[int, np.ndarray]:
    """Number of pieces of tets, triangles or edges (m, k), and each vertex's piece.

    A vertex that no cell uses is a piece of its own.
    """
    rows = np.repeat(cells[:, 0], cells.shape[1] - 1)
    edges = rows, cells[:, 1:].ravel()
    graph = coo_array((np.ones(len(rows)), edges), shape=(vertices, vertices))
    return connected_components(graph, directed=False)
