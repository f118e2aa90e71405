"""Element loops: energy, force and tangent of one group of tets; compiled."""

from __future__ import annotations

import numpy as np

from drakebots.core.kernels import dot, njit
from drakebots.fem.material.energies import (
    LAST_INVARIANT,
    PSI_1,
    PSI_11,
    PSI_J,
    PSI_JJ,
    cofactor,
    determinant,
    invariant_stress,
    invariants,
    project_positive,
    psi_derivatives,
    stress_tangent,
)

# Tangent blocks Ke_ab = w g_a : dP/dF : g_b of one quadrature point. Ke
# (k (k + 1)/2, 3, 3) holds the pairs a <= b by rows.


@njit(cache=True)
def blocks_by_tangent(T, G, w, TG, Ke):
    """Ke_ab += w G_a T G_b for all pairs a <= b."""
    k = len(G)
    for b in range(k):
        for i in range(9):
            for l in range(3):  # noqa: E741
                TG[i, l] = w * dot(T[i, 3 * l :], G[b])
        for a in range(b + 1):
            p = a * k - a * (a - 1) // 2 + b - a
            for i in range(3):
                for l in range(3):  # noqa: E741
                    Ke[p, i, l] += dot(G[a], TG[3 * i :, l])


@njit(cache=True)
def _blocks_of_any(kind, c, F, G, w, project, P, Ke):
    """P and Ke by the tangent; in the loop over tets it would slow down the others."""
    T, L, TG = np.empty((9, 9)), np.empty((9, 9)), np.empty((9, 3))
    stress_tangent(kind, c, F, P, T, True)
    if project:
        project_positive(T, L)
    blocks_by_tangent(T, G, w, TG, Ke)


@njit(cache=True)
def blocks_by_invariants(F, K, G, d, w, f1, fj, Ke):
    """The same from the derivatives of the energy by I1 and J.

    With f1 = 2 F g and fj = cof F g of each node, Ke_ab =
    Psi_11 f1_a f1_b' + Psi_JJ fj_a fj_b' + 2 Psi_1 g_a.g_b + Psi_J e(F (g_a x g_b)).
    """
    k = len(G)
    for a in range(k):
        for i in range(3):
            f1[a, i] = 2.0 * (F[i, 0] * G[a, 0] + F[i, 1] * G[a, 1] + F[i, 2] * G[a, 2])
            fj[a, i] = K[i, 0] * G[a, 0] + K[i, 1] * G[a, 1] + K[i, 2] * G[a, 2]
    w1, wj, w11, wjj = w * d[PSI_1], w * d[PSI_J], w * d[PSI_11], w * d[PSI_JJ]
    p = 0
    for a in range(k):
        # Scalars in place of rows: this loop takes most of an assembly.
        g0, g1, g2 = G[a, 0], G[a, 1], G[a, 2]
        r0, r1, r2 = w11 * f1[a, 0], w11 * f1[a, 1], w11 * f1[a, 2]
        s0, s1, s2 = wjj * fj[a, 0], wjj * fj[a, 1], wjj * fj[a, 2]
        for b in range(a, k):
            h0, h1, h2 = G[b, 0], G[b, 1], G[b, 2]
            p0, p1, p2 = f1[b, 0], f1[b, 1], f1[b, 2]
            q0, q1, q2 = fj[b, 0], fj[b, 1], fj[b, 2]
            dot = g0 * h0 + g1 * h1 + g2 * h2
            x = wj * (g1 * h2 - g2 * h1)
            y = wj * (g2 * h0 - g0 * h2)
            z = wj * (g0 * h1 - g1 * h0)
            u0 = F[0, 0] * x + F[0, 1] * y + F[0, 2] * z
            u1 = F[1, 0] * x + F[1, 1] * y + F[1, 2] * z
            u2 = F[2, 0] * x + F[2, 1] * y + F[2, 2] * z
            iso = 2.0 * w1 * dot
            Ke[p, 0, 0] += r0 * p0 + s0 * q0 + iso
            Ke[p, 0, 1] += r0 * p1 + s0 * q1 + u2
            Ke[p, 0, 2] += r0 * p2 + s0 * q2 - u1
            Ke[p, 1, 0] += r1 * p0 + s1 * q0 - u2
            Ke[p, 1, 1] += r1 * p1 + s1 * q1 + iso
            Ke[p, 1, 2] += r1 * p2 + s1 * q2 + u0
            Ke[p, 2, 0] += r2 * p0 + s2 * q0 + u1
            Ke[p, 2, 1] += r2 * p1 + s2 * q1 - u0
            Ke[p, 2, 2] += r2 * p2 + s2 * q2 + iso
            p += 1


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
def add_gradients(x, points, total):
    """total (N, 3, 3) += w F at each node of each tet [m^3]."""
    nodes, grads, weights = points[:3]
    F = np.empty((3, 3))
    for e in range(len(nodes)):
        for q in range(weights.shape[1]):
            gradient_of(x, nodes[e], grads[e, q], F)
            for n in nodes[e]:
                for i in range(3 if n >= 0 else 0):
                    for j in range(3):
                        total[n, i, j] += weights[e, q] * F[i, j]


@njit(cache=True)
def to_rotations(F):
    """F (N, 3, 3) becomes the rotations of its polar decompositions, to about 1e-4.

    By Newton's method, R := (R + R^-T)/2 of matrices of determinant 1; 1 where F is
    inverted.
    """
    K = np.empty((3, 3))
    for n in range(len(F)):
        if not determinant(F[n]) > 0.0:
            F[n] = np.eye(3)
        for _ in range(3):
            cofactor(F[n], K)
            c = np.cbrt(determinant(F[n]))
            for i in range(3):
                for j in range(3):
                    F[n, i, j] = 0.5 * (F[n, i, j] / c + K[i, j] / (c * c))


@njit(cache=True)
def add_force(x, points, force):
    """force (N, 3) -= sum w P dN/dX: the elastic force on the nodes [N].

    Quadrature points are nodes (m, k), gradients (m, q, k, 3), weights (m, q) and
    materials' rows (m,) of a group's tets, and kinds and coefficients of the materials.

    Returns:
        The elastic energy of the group [J]; infinite where a material forbids F.
    """
    nodes, grads, weights, row, kinds, table = points
    F, P, T = np.empty((3, 3)), np.empty((3, 3)), np.empty((9, 9))
    total = 0.0
    for e in range(len(nodes)):
        kind, c = kinds[row[e]], table[row[e]]
        for q in range(weights.shape[1]):
            G, w = grads[e, q], weights[e, q]
            gradient_of(x, nodes[e], G, F)
            total += w * stress_tangent(kind, c, F, P, T, False)
            scatter_force(nodes[e], G, w, P, force)
    return total


@njit(cache=True)
def scatter_force(ids, G, w, P, force):
    """force[ids[a]] -= w P G[a], the share of one quadrature point [N]."""
    for a in range(len(ids)):
        n = ids[a]
        if n >= 0:
            for i in range(3):
                force[n, i] -= w * dot(P[i], G[a])


@njit(cache=True)
def add_tangent(x, points, scale, project, blocks, indptr, force, values):
    """Adds forces as :func:`add_force`, and values += scale[row] d2 energy / dx2.

    For kinds of I1 and J the derivative of P is contracted with the gradients
    without forming the 9 x 9 matrix, in a quarter of the time. With `project` the
    matrix is formed and its negative eigenvalues are removed.
    """
    nodes, grads, weights, row, kinds, table = points
    m, k = nodes.shape
    F, P = np.empty((3, 3)), np.empty((3, 3))
    d, K = np.empty(5), np.empty((3, 3))
    f1, fj = np.empty((k, 3)), np.empty((k, 3))
    Ke = np.empty((k * (k + 1) // 2, 3, 3))
    for e in range(m):
        kind, c, s = kinds[row[e]], table[row[e]], scale[row[e]]
        Ke[:, :, :] = 0.0
        for q in range(weights.shape[1]):
            G, w = grads[e, q], weights[e, q]
            gradient_of(x, nodes[e], G, F)
            if kind < LAST_INVARIANT and not project:
                one, J = invariants(F)
                if psi_derivatives(kind, c, one, J, d):
                    cofactor(F, K)
                    invariant_stress(F, K, d, P)
                else:
                    P[:, :] = np.nan
                    d[:] = np.nan
                blocks_by_invariants(F, K, G, d, w, f1, fj, Ke)
            else:
                _blocks_of_any(kind, c, F, G, w, project, P, Ke)
            scatter_force(nodes[e], G, w, P, force)
        _scatter(nodes[e], blocks[e], indptr, s, Ke, values)


@njit(cache=True)
def _scatter(ids, blocks, indptr, s, Ke, values):
    """values += s Ke; row 3 i + r is stored from column 3 i + r on."""
    k = len(ids)
    p = 0
    for a in range(k):
        for b in range(a, k):
            if blocks[p] >= 0:
                straight = ids[a] <= ids[b]
                node, at = min(ids[a], ids[b]), 3 * blocks[p]
                for r in range(3):
                    row = indptr[3 * node + r] + at - r
                    values[row + r] += s * Ke[p, r, r]
                    for c in range(r + 1, 3):
                        up, low = s * Ke[p, r, c], s * Ke[p, c, r]
                        values[row + c] += up if straight else low
                        if a != b:
                            below = indptr[3 * node + c] + at - c
                            values[below + r] += low if straight else up
            p += 1


@njit(cache=True)
def mean_stresses(x, nodes, grads, row, kinds, table, out):
    """Writes von Mises stress of each tet, the mean over its points, to out (m,).

    sqrt(3/2 dev s : dev s) of the Cauchy stress s = P F' / J.
    """
    F, P, s, T = np.empty((3, 3)), np.empty((3, 3)), np.empty((3, 3)), np.empty((9, 9))
    for e in range(len(nodes)):
        out[e] = 0.0
        for q in range(grads.shape[1]):
            gradient_of(x, nodes[e], grads[e, q], F)
            stress_tangent(kinds[row[e]], table[row[e]], F, P, T, False)
            mean = 0.0
            for i in range(3):
                for j in range(3):
                    s[i, j] = dot(P[i], F[j])
                mean += s[i, i] / 3
            square = 0.0
            for i in range(3):
                s[i, i] -= mean
                for j in range(3):
                    square += s[i, j] * s[i, j]
            found = np.sqrt(1.5 * square) / abs(determinant(F))
            out[e] += found / grads.shape[1]


@njit(cache=True)
def smallest_ratio(x, nodes, grads):
    """The smallest det F of the group and its tet (row of the group)."""
    F = np.empty((3, 3))
    low, where = np.inf, -1
    for e in range(len(nodes)):
        for q in range(grads.shape[1]):
            gradient_of(x, nodes[e], grads[e, q], F)
            J = determinant(F)
            # NaN counts as the smallest.
            if low > J or J != J:
                low, where = J, e
                if J != J:
                    return J, where
    return low, where
