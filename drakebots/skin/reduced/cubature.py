"""Cubature of a reduced skin: few weighted points in place of all quadrature points.

Forces, tangents and masses of a reduced skin are sums over quadrature points. A few
points with weights >= 0 approximate them, found by non-negative least squares on sums
in training states (Farhat et al., "Dimensional reduction of nonlinear finite element
dynamic models with finite rotations and energy-based mesh sampling and weighting",
2014). The forces of the reduced skin are thus still the gradient of an energy.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy.linalg import cho_factor, cho_solve

from drakebots.core.errors import InvalidInput
from drakebots.core.kernels import njit
from drakebots.fem.assembly import FemModel, gradient_of
from drakebots.fem.material import determinant, project_positive, stress_tangent


class Points(NamedTuple):
    """Quadrature points of tets.

    Attributes:
        nodes: nodes of each point's tet, padded with -1 (m, k).
        gradients: gradients of the shape functions at rest (m, k, 3) [1/m].
        weights: volumes times the cubature's weights (m,) [m^3].
        row: numbers of the materials (m,).
    """

    nodes: np.ndarray
    gradients: np.ndarray
    weights: np.ndarray
    row: np.ndarray

    def chosen(self, at: np.ndarray, factor: np.ndarray = 1.0) -> Points:
        """The points at some rows (or a mask), with weights multiplied by a factor."""
        return Points(
            self.nodes[at], self.gradients[at], self.weights[at] * factor, self.row[at]
        )


def all_points(model: FemModel) -> Points:
    """Every quadrature point of a skin."""
    k = max(group.nodes.shape[1] for group in model.space.groups)
    parts = []
    for group, row in zip(model.space.groups, model.rows):
        m, q = group.weights.shape
        pad = k - group.nodes.shape[1]
        nodes = np.pad(group.nodes, ((0, 0), (0, pad)), constant_values=-1)
        slopes = np.pad(group.gradients, ((0, 0), (0, 0), (0, pad), (0, 0)))
        nodes = np.repeat(nodes, q, axis=0)
        slopes = slopes.reshape(m * q, k, 3)
        parts.append((nodes, slopes, group.weights.ravel(), np.repeat(row, q)))
    return Points(*(np.ascontiguousarray(np.concatenate(p)) for p in zip(*parts)))


@njit(cache=True)
def point_works(x, J, points, kinds, table):
    """Works w P : dF (c, m) of each point along the columns of J (N, 3, c).

    Args:
        x: positions of the nodes (N, 3) [m].
        J: columns (N, 3, c).
        points: the points.
        kinds, table: materials, as of a FemModel.
    """
    nodes, gradients, weights, row = points
    c = J.shape[2]
    F, P, T = np.empty((3, 3)), np.empty((3, 3)), np.empty((9, 9))
    out = np.zeros((c, len(nodes)))
    for e in range(len(nodes)):
        gradient_of(x, nodes[e], gradients[e], F)
        stress_tangent(kinds[row[e]], table[row[e]], F, P, T, False)
        for a in range(nodes.shape[1]):
            n = nodes[e, a]
            if n < 0:
                continue
            for i in range(3):
                t = 0.0
                for j in range(3):
                    t += P[i, j] * gradients[e, a, j]
                t *= weights[e]
                for k in range(c):
                    out[k, e] += t * J[n, i, k]
    return out


@njit(cache=True)
def forces_and_tangents(x, J, points, kinds, table, scale, project):
    """Forces along the columns of J, and the factors of their tangent D' TD.

    Args:
        x, J, points, kinds, table: as of :func:`point_works`.
        scale: factor of each material's tangent.
        project: whether each point's tangent is made positive semidefinite.

    Returns:
        sum w P : D (c,), D (9 m, c) with dF along J's columns, TD = w scale dP/dF D,
        the smallest det F, and whether all energies are finite.
    """
    nodes, gradients, weights, row = points
    m, c = len(nodes), J.shape[2]
    F, P = np.empty((3, 3)), np.empty((3, 3))
    T, L = np.empty((9, 9)), np.empty((9, 9))
    g, D, TD = np.zeros(c), np.zeros((9 * m, c)), np.zeros((9 * m, c))
    low, good = np.inf, True
    for e in range(m):
        gradient_of(x, nodes[e], gradients[e], F)
        energy = stress_tangent(kinds[row[e]], table[row[e]], F, P, T, True)
        good = good and np.isfinite(energy)
        if project:
            project_positive(T, L)
        low = min(low, determinant(F))
        for a in range(nodes.shape[1]):
            n = nodes[e, a]
            if n < 0:
                continue
            for i in range(3):
                for j in range(3):
                    G = gradients[e, a, j]
                    for k in range(c):
                        D[9 * e + 3 * i + j, k] += G * J[n, i, k]
        w = weights[e]
        s = w * scale[row[e]]
        for i in range(3):
            for j in range(3):
                t = w * P[i, j]
                for k in range(c):
                    g[k] += t * D[9 * e + 3 * i + j, k]
        for i in range(9):
            for j in range(9):
                t = s * T[i, j]
                for k in range(c):
                    TD[9 * e + i, k] += t * D[9 * e + j, k]
    return g, D, TD, low, good


def _positive(
    gram: np.ndarray, rhs: np.ndarray, active: list[int], w: np.ndarray, barred
) -> tuple[list[int], np.ndarray]:
    """The columns that stay and their weights > 0, after a new one is added last.

    Args:
        gram, rhs: normal equations of the columns, changed with them.
        active: numbers of the columns.
        w: their weights so far, 0 of the new one.
        barred: mask of the columns that are not added again, changed.
    """
    while k := len(active):
        shift = 1e-12 * np.trace(gram[:k, :k]) / k * np.eye(k)
        best = cho_solve(cho_factor(gram[:k, :k] + shift), rhs[:k])
        if best.min() > 0:
            return active, best
        # Move until the first weight reaches zero, and remove it.
        falling = best <= 0
        t = (w[falling] / (w[falling] - best[falling] + 1e-300)).min()
        w = w + t * (best - w)
        stay = w > 1e-14 * w.max(initial=0.0)
        if stay.all():
            stay[np.argmin(w)] = False
        if not stay[-1]:
            barred[active[-1]] = True  # added and removed: it would be added again
        keep = np.flatnonzero(stay)
        active, w, n = [active[i] for i in keep], w[keep], len(keep)
        gram[:n, :n] = gram[np.ix_(keep, keep)]
        rhs[:n] = rhs[keep]
    return active, w


def sparse_weights(
    G: np.ndarray, b: np.ndarray, *, tolerance: float, most: int
) -> np.ndarray:
    """Weights w >= 0 (n,), few of them nonzero, with G w ~ b.

    Lawson and Hanson's non-negative least squares, ended as soon as
    |G w - b| <= tolerance |b| or there are `most` nonzero weights.

    Args:
        G: matrix (rows, n).
        b: right-hand side (rows,).
        tolerance: relative residual.
        most: largest number of nonzero weights, at least 1.

    Raises:
        InvalidInput: for b of zeros, or values not finite.
    """
    if not (np.isfinite(b).all() and np.abs(b).max(initial=0.0) > 0):
        raise InvalidInput("cubature: the training sums are zero or not finite")
    active, w = [], np.zeros(0)
    gram = np.zeros((most, most))
    rhs = np.zeros(most)
    residual, size = b, np.linalg.norm(b)
    norms = np.sqrt(np.einsum("ij,ij->j", G, G)) + 1e-30
    barred = np.zeros(G.shape[1], bool)
    while len(active) < most and np.linalg.norm(residual) > tolerance * size:
        # In the precision of G, as float64 would copy G each time.
        slope = (residual.astype(G.dtype) @ G) / norms
        slope[active] = slope[barred] = -np.inf
        new = int(np.argmax(slope))
        if slope[new] <= 1e-12 * size:
            break
        column, k = G[:, new].astype(float), len(active)
        gram[k, :k] = gram[:k, k] = G[:, active].T @ column
        gram[k, k] = norms[new] ** 2
        rhs[k] = column @ b
        active, w = _positive(gram, rhs, [*active, new], np.append(w, 0.0), barred)
        residual = b - G[:, active] @ w
    out = np.zeros(G.shape[1])
    out[active] = w
    return out
