"""Tangent blocks of one quadrature point, Ke_ab = w g_a : dP/dF : g_b; compiled.

Ke (k (k + 1)/2, 3, 3) holds the pairs a <= b by rows.
"""

from __future__ import annotations

from numba import njit

from drakebots.fem.material_invariants import (
    PSI_1,
    PSI_1J,
    PSI_2,
    PSI_2J,
    PSI_11,
    PSI_12,
    PSI_22,
    PSI_J,
    PSI_JJ,
)


@njit(cache=True)
def blocks_by_tangent(T, G, w, TG, Ke):
    """Ke_ab += w G_a T G_b over pairs a <= b."""
    k = len(G)
    for b in range(k):
        for i in range(9):
            for l in range(3):  # noqa: E741
                TG[i, l] = w * (
                    T[i, 3 * l] * G[b, 0]
                    + T[i, 3 * l + 1] * G[b, 1]
                    + T[i, 3 * l + 2] * G[b, 2]
                )
        for a in range(b + 1):
            p = a * k - a * (a - 1) // 2 + b - a
            for i in range(3):
                for l in range(3):  # noqa: E741
                    Ke[p, i, l] += (
                        G[a, 0] * TG[3 * i, l]
                        + G[a, 1] * TG[3 * i + 1, l]
                        + G[a, 2] * TG[3 * i + 2, l]
                    )


@njit(cache=True)
def blocks_by_invariants(F, C, K, G, one, d, w, has_two, f1, f2, fj, B, Ke):
    """The same from the derivatives by I1, I2, J.

    With f1 = 2 F g, f2 = dI2/dF g and fj = cof F g of each node,
    Ke_ab = Psi_mn f^m_a f^n_b' + (2 Psi_1 + ..) g_a.g_b + Psi_J e(F (g_a x g_b)).
    """
    k = len(G)
    for a in range(k):
        for i in range(3):
            f1[a, i] = 2.0 * (F[i, 0] * G[a, 0] + F[i, 1] * G[a, 1] + F[i, 2] * G[a, 2])
            fj[a, i] = K[i, 0] * G[a, 0] + K[i, 1] * G[a, 1] + K[i, 2] * G[a, 2]
    if has_two:
        for i in range(3):
            for j in range(3):
                B[i, j] = F[i, 0] * F[j, 0] + F[i, 1] * F[j, 1] + F[i, 2] * F[j, 2]
        for a in range(k):
            for i in range(3):
                f2[a, i] = one * f1[a, i] - (
                    B[i, 0] * f1[a, 0] + B[i, 1] * f1[a, 1] + B[i, 2] * f1[a, 2]
                )
    psi2 = d[PSI_2]
    p = 0
    for a in range(k):
        for b in range(a, k):
            dot = G[a, 0] * G[b, 0] + G[a, 1] * G[b, 1] + G[a, 2] * G[b, 2]
            x = w * d[PSI_J] * (G[a, 1] * G[b, 2] - G[a, 2] * G[b, 1])
            y = w * d[PSI_J] * (G[a, 2] * G[b, 0] - G[a, 0] * G[b, 2])
            z = w * d[PSI_J] * (G[a, 0] * G[b, 1] - G[a, 1] * G[b, 0])
            u0 = F[0, 0] * x + F[0, 1] * y + F[0, 2] * z
            u1 = F[1, 0] * x + F[1, 1] * y + F[1, 2] * z
            u2 = F[2, 0] * x + F[2, 1] * y + F[2, 2] * z
            iso = w * 2.0 * d[PSI_1] * dot
            M = Ke[p]
            for i in range(3):
                r1, rj = w * d[PSI_11] * f1[a, i], w * d[PSI_JJ] * fj[a, i]
                for j in range(3):
                    M[i, j] += r1 * f1[b, j] + rj * fj[b, j]
            if has_two:
                for i in range(3):
                    r1 = w * (d[PSI_12] * f2[a, i] + d[PSI_1J] * fj[a, i])
                    r2 = w * (
                        d[PSI_12] * f1[a, i]
                        + d[PSI_22] * f2[a, i]
                        + d[PSI_2J] * fj[a, i]
                    )
                    rj = w * (d[PSI_1J] * f1[a, i] + d[PSI_2J] * f2[a, i])
                    for j in range(3):
                        M[i, j] += (
                            r1 * f1[b, j]
                            + r2 * f2[b, j]
                            + rj * fj[b, j]
                            + w * psi2 * f1[a, i] * f1[b, j]
                            - 0.5 * w * psi2 * f1[b, i] * f1[a, j]
                            - 2.0 * w * psi2 * dot * B[i, j]
                        )
                gcg = 0.0
                for i in range(3):
                    for j in range(3):
                        gcg += G[a, i] * C[i, j] * G[b, j]
                iso += 2.0 * w * psi2 * (one * dot - gcg)
            M[0, 0] += iso
            M[1, 1] += iso
            M[2, 2] += iso
            M[0, 1] += u2
            M[0, 2] -= u1
            M[1, 0] -= u2
            M[1, 2] += u0
            M[2, 0] += u1
            M[2, 1] -= u0
            p += 1
