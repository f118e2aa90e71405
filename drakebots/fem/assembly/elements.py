"""Linear and quadratic tets of one mesh, and their shape functions.

P2 tets add a node on each edge. On an edge shared with a P1 tet, a free node would open
a gap between the two, so it is bound to the mean of the edge's ends. The binding is
folded into the shape functions of the vertices: such an edge has no node (-1), and the
displacement is continuous.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from drakebots.core.errors import check_names
from drakebots.fem.mesh import EDGES, TetMesh, mesh_edges

_A, _B = 0.5854101966249685, 0.1381966011250105
QUADRATURE = {
    1: (np.full((1, 4), 0.25), np.ones(1)),
    2: (np.full((4, 4), _B) + (_A - _B) * np.eye(4), np.full(4, 0.25)),
}
"""Barycentric points and weights: exact for degree 1 (P1) and 2 (P2)."""


@dataclass(frozen=True)
class ElementGroup:
    """Tets of one order.

    Attributes:
        order: order of the tets, 1 or 2.
        tets: rows of the tets in the mesh (m,).
        nodes: node of each shape function (m, k), k = 4 or 10; -1 for an edge
            bound to its ends.
        gradients: gradients of the shape functions at rest (m, q, k, 3) [1/m].
        weights: volume of each quadrature point (m, q) [m^3].
    """

    order: int
    tets: np.ndarray
    nodes: np.ndarray
    gradients: np.ndarray
    weights: np.ndarray


@dataclass(frozen=True)
class Space:
    """The nodes of a mesh and its tets by order.

    Attributes:
        mesh: the tets.
        nodes: rest positions (N, 3) [m]; the mesh's vertices come first.
        midside: ends of the edge of each further node (N - n, 2).
        groups: P1 tets, P2 tets; empty groups are omitted.
    """

    mesh: TetMesh
    nodes: np.ndarray
    midside: np.ndarray
    groups: tuple[ElementGroup, ...]


def build_space(mesh: TetMesh, quadratic: Iterable[int] = ()) -> Space:
    """P2 tets in the named regions, P1 elsewhere.

    Args:
        mesh: checked (positive volumes).
        quadratic: regions of P2 tets; ``mesh.regions`` for all.

    Raises:
        UnknownName: for a region the mesh does not have.
    """
    quadratic = set(map(int, quadratic))
    check_names("mesh region", quadratic, mesh.regions)
    curved = np.isin(mesh.region, list(quadratic))
    edges, of_tet = mesh_edges(mesh.tets)
    free = np.zeros(len(edges), bool)
    free[of_tet[curved]] = True
    free[of_tet[~curved]] = False
    number = np.full(len(edges), -1)
    number[free] = len(mesh.vertices) + np.arange(free.sum())
    midside = edges[free]
    nodes = np.concatenate([mesh.vertices, mesh.vertices[midside].mean(axis=1)])
    groups = []
    for order, rows in ((1, np.flatnonzero(~curved)), (2, np.flatnonzero(curved))):
        if rows.size:
            corners = mesh.tets[rows]
            ids = corners if order == 1 else np.hstack([corners, number[of_tet[rows]]])
            groups.append(_group(order, rows, ids, mesh.vertices))
    return Space(mesh, nodes, midside, tuple(groups))


def _group(order, rows, ids, vertices):
    slope, volume = barycentric_slopes(vertices[ids[:, :4]])
    points, share = QUADRATURE[order]
    table = np.stack([shape_slopes(order, point) for point in points])
    # dN_a/dx = sum over corners of dN_a/dlambda_c dlambda_c/dx.
    gradients = np.einsum("qac,mci->mqai", table, slope)
    if order == 2:
        fold = folding(ids)
        gradients = np.einsum("mab,mqbi->mqai", fold, gradients)
    return ElementGroup(
        order=order,
        tets=rows,
        nodes=np.ascontiguousarray(ids, dtype=np.int32),
        gradients=np.ascontiguousarray(gradients),
        weights=np.ascontiguousarray(volume[:, None] * share),
    )


def barycentric_slopes(corners: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Gradients of barycentric coordinates (m, 4, 3) [1/m] and volumes (m,)."""
    D = corners[:, 1:] - corners[:, :1]
    inverse = np.linalg.inv(D).transpose(0, 2, 1)
    first = -inverse.sum(axis=1, keepdims=True)
    return np.concatenate([first, inverse], axis=1), np.abs(np.linalg.det(D)) / 6


def shape_slopes(order: int, point: np.ndarray) -> np.ndarray:
    """dN_a/dlambda_c (k, 4) at a barycentric point (4,).

    P1: N_a = lambda_a. P2: N_a = lambda_a (2 lambda_a - 1) at corners and
    4 lambda_a lambda_b on edges.
    """
    if order == 1:
        return np.eye(4)
    slopes = np.zeros((10, 4))
    slopes[range(4), range(4)] = 4 * point - 1
    for k, (a, b) in enumerate(EDGES):
        slopes[4 + k, a], slopes[4 + k, b] = 4 * point[b], 4 * point[a]
    return slopes


def folding(ids: np.ndarray) -> np.ndarray:
    """Matrices (m, 10, 10) that fold bound edges of P2 tets into their ends.

    Row a of the product with the plain shape functions is the function of node
    a: N_a + N_e/2 for the ends a of a bound edge e, zero for the edge itself.
    """
    fold = np.tile(np.eye(10), (len(ids), 1, 1))
    for k, (a, b) in enumerate(EDGES):
        bound = np.flatnonzero(ids[:, 4 + k] < 0)
        fold[bound, a, 4 + k] = fold[bound, b, 4 + k] = 0.5
        fold[bound, 4 + k, 4 + k] = 0.0
    return fold
