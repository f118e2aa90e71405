"""A closed cavity of a skin under pressure: a follower load, with its exact tangent.

A pressure p on the walls of a cavity with the volume V does the work p dV, so the
forces on the nodes and their tangent are

    f = p dV/dx,  df/dx = p d2V/dx2,  V = sum a . (b x c)/6

over the triangles (a, b, c) of the walls, outward from the cavity. Because these are
closed, forces and moments sum to 0, and the tangent is symmetric and couples only nodes
that share an edge: its block of an edge ab, between the triangles abc and bad, is
[d - c]_x/6.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from drakebots.core.errors import InvalidInput
from drakebots.fem.assembly import FemModel
from drakebots.fem.mesh import (
    area_normals,
    connected_pieces,
    enclosed_volume,
    surface_triangles,
)


@dataclass(frozen=True)
class Cavity:
    """A closed surface inside a skin.

    Attributes:
        name: its name.
        triangles: its triangles, outward from the cavity (f, 3).
        at: positions of the blocks of their edges, ab, bc and ca, among the values of
            the skin's matrix (f, 3, 3, 3).
    """

    name: str
    triangles: np.ndarray
    at: np.ndarray

    def volume(self, x: np.ndarray) -> float:
        """V [m^3] at positions x (N, 3) [m]."""
        return enclosed_volume(x, self.triangles)

    def slope(self, x: np.ndarray) -> np.ndarray:
        """dV/dx (N, 3) [m^2], the force of a unit pressure."""
        return area_normals(x, self.triangles) / 6

    def curvature(self, x: np.ndarray, size: int) -> np.ndarray:
        """d2V/dx2 as upper values of the skin's matrix (size,) [m]."""
        out = np.zeros(size)
        for k in range(3):
            a, b, c = (np.roll(self.triangles, -k, axis=1)[:, i] for i in range(3))
            # d2V/da db = -[c]_x/6, transposed where b has the lower number.
            cross = np.where(a < b, 1.0, -1.0)[:, None] * x[c] / 6
            block = np.zeros((len(a), 3, 3))
            for i in range(3):
                block[:, i, i - 2] = cross[:, i - 1]
                block[:, i, i - 1] = -cross[:, i - 2]
            np.add.at(out, self.at[:, k], block)
        return out


def cavity_of(
    model: FemModel, name: str, where: int | Sequence[Sequence[int]]
) -> Cavity:
    """A cavity of a skin.

    Args:
        model: the skin.
        name: name of the cavity.
        where: any vertex of the inner surface that closes it, or its triangles (f, 3).

    Raises:
        InvalidInput: for a surface that is not closed, no inner one, not of the mesh's
            edges, or in a region of second order.
    """
    what, rest = f"cavity {name!r}", model.rest
    vertices = len(model.space.mesh.vertices)
    if np.ndim(where) == 0:
        faces = surface_triangles(model.space.mesh)
        if where not in faces:
            raise InvalidInput(f"{what}: vertex {where} is on no surface of the skin")
        piece = connected_pieces(faces, vertices)[1]
        faces = faces[piece[faces[:, 0]] == piece[where]][:, ::-1]
        if not enclosed_volume(rest, faces) > 0:
            raise InvalidInput(
                f"{what}: the surface of vertex {where} is the outer one, or has an "
                "opening; give a vertex of a closed inner surface, or its triangles"
            )
    else:
        faces = np.array(where)
        if faces.shape[1:] != (3,) or not ((faces >= 0) & (faces < vertices)).all():
            raise InvalidInput(f"{what}: needs triangles of vertices below {vertices}")
        faces = faces if enclosed_volume(rest, faces) > 0 else faces[:, ::-1]
    a, b = faces.ravel(), np.roll(faces, -1, axis=1).ravel()
    edges, back = (np.unique(ends, axis=1) for ends in ([a, b], [b, a]))
    if not np.array_equal(edges, back) or len(edges.T) < len(a):
        raise InvalidInput(f"{what}: its triangles do not close; turn all one way")
    low, high, pattern = np.minimum(a, b), np.maximum(a, b), model.pattern
    if {*zip(low, high)} & {*map(tuple, np.sort(model.space.midside).tolist())}:
        raise InvalidInput(f"{what}: is in a region of second order; take it off there")
    numbers, i = pattern.upper(np.arange(1.0, pattern.nnz + 1)), np.arange(3)
    rows, columns = 3 * low[:, None, None] + i[:, None], 3 * high[:, None, None] + i
    at = numbers[tuple(map(np.ravel, np.broadcast_arrays(rows, columns)))]
    at = np.asarray(at).astype(int).reshape(len(faces), 3, 3, 3) - 1
    if at.min() < 0:
        raise InvalidInput(f"{what}: a triangle has an edge that no tet has")
    return Cavity(name, np.ascontiguousarray(faces), at)
