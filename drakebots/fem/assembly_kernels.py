"""Element loops: energy, force and tangent of one group of tets; compiled."""

from __future__ import annotations

import numpy as np
from numba import njit

from drakebots.fem.element_blocks import blocks_by_invariants, blocks_by_tangent
from drakebots.fem.material_invariants import (
    LAST_INVARIANT,
    MOONEY_RIVLIN,
    ST_VENANT_KIRCHHOFF,
    cofactor,
    invariants,
    psi_derivatives,
)
from drakebots.fem.material_kernels import (
    energy_density,
    invariant_stress,
    project_positive,
    stress_tangent,
)


@njit(cache=True)
def gradient_of(x, ids, G, F):
    """F = sum_a x_a (dN_a/dX)', written to F (3, 3)."""
    F[:, :] = 0.0
    for a in range(len(ids)):
        n = ids[a]
        if n < 0:
            continue
        for i in range(3):
            for j in range(3):
                F[i, j] += x[n, i] * G[a, j]


@njit(cache=True)
def add_energy(x, nodes, grads, weights, row, kinds, table):
    """The elastic energy of the group [J]; infinite when a tet forbids it."""
    F = np.empty((3, 3))
    total = 0.0
    for e in range(len(nodes)):
        kind, c = kinds[row[e]], table[row[e]]
        for q in range(weights.shape[1]):
            gradient_of(x, nodes[e], grads[e, q], F)
            total += weights[e, q] * energy_density(kind, c, F)
        if total == np.inf:
            break
    return total


@njit(cache=True)
def add_force(x, nodes, grads, weights, row, kinds, table, force):
    """force (N, 3) -= sum w P dN/dX: the elastic force on the nodes [N]."""
    F, P, T = np.empty((3, 3)), np.empty((3, 3)), np.empty((9, 9))
    for e in range(len(nodes)):
        for q in range(weights.shape[1]):
            G = grads[e, q]
            gradient_of(x, nodes[e], G, F)
            stress_tangent(kinds[row[e]], table[row[e]], F, P, T, False)
            scatter_force(nodes[e], G, weights[e, q], P, force)


@njit(cache=True)
def scatter_force(ids, G, w, P, force):
    """force[ids[a]] -= w P G[a]: a quadrature point's share of the inner force [N]."""
    for a in range(len(ids)):
        n = ids[a]
        if n >= 0:
            for i in range(3):
                force[n, i] -= w * (
                    P[i, 0] * G[a, 0] + P[i, 1] * G[a, 1] + P[i, 2] * G[a, 2]
                )


@njit(cache=True)
def add_tangent(
    x, nodes, grads, weights, row, kinds, table, scale, project,
    blocks, indptr, force, values,
):  # fmt: skip
    """force as :func:`add_force`; values += scale[row] d2 energy / dx2.

    Invariant kinds contract P's derivative with the gradients without forming
    the 9 x 9 matrix: a third of the work. With `project` it is formed, and
    freed of negative eigenvalues.

    Returns:
        How many quadrature points were projected.
    """
    m, k = nodes.shape
    F, P, C, K = (
        np.empty((3, 3)),
        np.empty((3, 3)),
        np.empty((3, 3)),
        np.empty((3, 3)),
    )
    T, L, B = np.empty((9, 9)), np.empty((9, 9)), np.empty((3, 3))
    TG = np.empty((9, 3))
    d = np.empty(10)
    f1, f2, fj = np.empty((k, 3)), np.empty((k, 3)), np.empty((k, 3))
    Ke = np.empty((k * (k + 1) // 2, 3, 3))
    changed = 0
    for e in range(m):
        kind, c, s = kinds[row[e]], table[row[e]], scale[row[e]]
        Ke[:, :, :] = 0.0
        for q in range(weights.shape[1]):
            G, w = grads[e, q], weights[e, q]
            gradient_of(x, nodes[e], G, F)
            if kind < LAST_INVARIANT and not project:
                one, two, J = invariants(F, C)
                if psi_derivatives(kind, c, one, two, J, d):
                    cofactor(F, K)
                    invariant_stress(F, C, K, one, d, P)
                else:
                    P[:, :] = np.nan
                    d[:] = np.nan
                has_two = kind in (ST_VENANT_KIRCHHOFF, MOONEY_RIVLIN)
                blocks_by_invariants(F, C, K, G, one, d, w, has_two, f1, f2, fj, B, Ke)
            else:
                stress_tangent(kind, c, F, P, T, True)
                if project and project_positive(T, L):
                    changed += 1
                blocks_by_tangent(T, G, w, TG, Ke)
            scatter_force(nodes[e], G, w, P, force)
        _scatter(nodes[e], blocks[e], indptr, s, Ke, values)
    return changed


@njit(cache=True)
def _scatter(ids, blocks, indptr, s, Ke, values):
    """values += s Ke; row 3 i + r keeps its entries from column 3 i + r on."""
    k = len(ids)
    p = 0
    for a in range(k):
        for b in range(a, k):
            if blocks[p] >= 0:
                M = Ke[p]
                straight = ids[a] <= ids[b]
                node = ids[a] if straight else ids[b]
                at = 3 * blocks[p]
                for r in range(3):
                    row = indptr[3 * node + r] + at - r
                    first = r if a == b else 0
                    for col in range(first, 3):
                        values[row + col] += s * (M[r, col] if straight else M[col, r])
            p += 1


@njit(cache=True)
def deformation(x, nodes, grads, out):
    """F of each quadrature point, written to out (m, q, 3, 3)."""
    for e in range(len(nodes)):
        for q in range(grads.shape[1]):
            gradient_of(x, nodes[e], grads[e, q], out[e, q])


@njit(cache=True)
def stresses(x, nodes, grads, row, kinds, table, out):
    """P of each quadrature point, written to out (m, q, 3, 3)."""
    F, T = np.empty((3, 3)), np.empty((9, 9))
    for e in range(len(nodes)):
        for q in range(grads.shape[1]):
            gradient_of(x, nodes[e], grads[e, q], F)
            stress_tangent(kinds[row[e]], table[row[e]], F, out[e, q], T, False)


@njit(cache=True)
def scatter_scalar(nodes, matrices, blocks, indptr, values):
    """values += kron(M_e, 1_3) of each tet; matrices (m, k, k) symmetric."""
    m, k = nodes.shape
    for e in range(m):
        p = 0
        for a in range(k):
            for b in range(a, k):
                if blocks[e, p] >= 0:
                    node = min(nodes[e, a], nodes[e, b])
                    for r in range(3):
                        at = indptr[3 * node + r] + 3 * blocks[e, p]
                        values[at] += matrices[e, a, b]
                p += 1


@njit(cache=True)
def smallest_ratio(x, nodes, grads):
    """The smallest det F of the group and its tet (row of the group)."""
    F = np.empty((3, 3))
    low, where = np.inf, -1
    for e in range(len(nodes)):
        for q in range(grads.shape[1]):
            gradient_of(x, nodes[e], grads[e, q], F)
            J = (
                F[0, 0] * (F[1, 1] * F[2, 2] - F[1, 2] * F[2, 1])
                - F[0, 1] * (F[1, 0] * F[2, 2] - F[1, 2] * F[2, 0])
                + F[0, 2] * (F[1, 0] * F[2, 1] - F[1, 1] * F[2, 0])
            )
            # A NaN is the worst there is.
            if low > J or J != J:
                low, where = J, e
                if J != J:
                    return J, where
    return low, where
