"""Energies that depend on F by invariants, and their derivatives; compiled.

    I1 = |F|^2,  I2 = (I1^2 - |F'F|^2)/2,  J = det F

The first Piola-Kirchhoff stress is P = sum Psi_a dI_a/dF, the tangent

    dP_ij/dF_kl = sum Psi_a d2I_a + sum Psi_ab dI_a dI_b.
"""

from __future__ import annotations

import numpy as np
from numba import njit

NEO_HOOKEAN, STABLE_NEO_HOOKEAN, ST_VENANT_KIRCHHOFF, MOONEY_RIVLIN = 0, 1, 2, 3
"""Kinds below LAST_INVARIANT are functions of the invariants."""

LAST_INVARIANT = 4
PSI_1, PSI_2, PSI_J, PSI_11, PSI_12, PSI_1J, PSI_22, PSI_2J, PSI_JJ = range(1, 10)
"""Places in the array of derivatives; place 0 is the energy density."""


@njit(cache=True)
def invariants(F, C):
    """I1, I2, J of F (3, 3); C = F'F is written."""
    for i in range(3):
        for j in range(3):
            C[i, j] = F[0, i] * F[0, j] + F[1, i] * F[1, j] + F[2, i] * F[2, j]
    one = C[0, 0] + C[1, 1] + C[2, 2]
    two = (
        C[0, 0] * C[1, 1]
        + C[1, 1] * C[2, 2]
        + C[2, 2] * C[0, 0]
        - C[0, 1] * C[0, 1]
        - C[1, 2] * C[1, 2]
        - C[2, 0] * C[2, 0]
    )
    J = (
        F[0, 0] * (F[1, 1] * F[2, 2] - F[1, 2] * F[2, 1])
        - F[0, 1] * (F[1, 0] * F[2, 2] - F[1, 2] * F[2, 0])
        + F[0, 2] * (F[1, 0] * F[2, 1] - F[1, 1] * F[2, 0])
    )
    return one, two, J


@njit(cache=True)
def cofactor(F, K):
    """dJ/dF (3, 3), written to K."""
    K[0, 0] = F[1, 1] * F[2, 2] - F[1, 2] * F[2, 1]
    K[0, 1] = F[1, 2] * F[2, 0] - F[1, 0] * F[2, 2]
    K[0, 2] = F[1, 0] * F[2, 1] - F[1, 1] * F[2, 0]
    K[1, 0] = F[0, 2] * F[2, 1] - F[0, 1] * F[2, 2]
    K[1, 1] = F[0, 0] * F[2, 2] - F[0, 2] * F[2, 0]
    K[1, 2] = F[0, 1] * F[2, 0] - F[0, 0] * F[2, 1]
    K[2, 0] = F[0, 1] * F[1, 2] - F[0, 2] * F[1, 1]
    K[2, 1] = F[0, 2] * F[1, 0] - F[0, 0] * F[1, 2]
    K[2, 2] = F[0, 0] * F[1, 1] - F[0, 1] * F[1, 0]


@njit(cache=True)
def psi_derivatives(kind, c, one, two, J, d):
    """Energy density and its derivatives (10,) by I1, I2, J, written to d.

    c are the coefficients of :func:`drakebots.fem.materials.coefficients`.
    False when the energy is infinite (J <= 0 where ln J is taken).
    """
    d[:] = 0.0
    if kind == NEO_HOOKEAN:
        # mu/2 (I1 - 3) - mu ln J + lambda/2 (ln J)^2
        mu, lam = c[0], c[1]
        if not J > 0.0:
            d[0] = np.inf
            return False
        log = np.log(J)
        d[0] = 0.5 * mu * (one - 3.0) - mu * log + 0.5 * lam * log * log
        d[PSI_1] = 0.5 * mu
        d[PSI_J] = (lam * log - mu) / J
        d[PSI_JJ] = (lam * (1.0 - log) + mu) / (J * J)
    elif kind == STABLE_NEO_HOOKEAN:
        # Smith et al. 2018, eq. 14: mu, lambda and alpha are in c already.
        mu, lam, alpha = c[0], c[1], c[2]
        d[0] = (
            0.5 * mu * (one - 3.0)
            + 0.5 * lam * ((J - alpha) ** 2 - (1.0 - alpha) ** 2)
            - 0.5 * mu * np.log((one + 1.0) / 4.0)
        )
        d[PSI_1] = 0.5 * mu * (1.0 - 1.0 / (one + 1.0))
        d[PSI_11] = 0.5 * mu / (one + 1.0) ** 2
        d[PSI_J] = lam * (J - alpha)
        d[PSI_JJ] = lam
    elif kind == ST_VENANT_KIRCHHOFF:
        # mu |E|^2 + lambda/2 (tr E)^2 with E = (F'F - 1)/2
        mu, lam = c[0], c[1]
        d[0] = (
            0.25 * mu * (one * one - 2.0 * one - 2.0 * two + 3.0)
            + 0.125 * lam * (one - 3.0) ** 2
        )
        d[PSI_1] = 0.5 * mu * (one - 1.0) + 0.25 * lam * (one - 3.0)
        d[PSI_2] = -0.5 * mu
        d[PSI_11] = 0.5 * mu + 0.25 * lam
    else:
        # c10 (J^-2/3 I1 - 3) + c01 (J^-4/3 I2 - 3) + k/2 (ln J)^2
        c10, c01, bulk = c[0], c[1], c[2]
        if not J > 0.0:
            d[0] = np.inf
            return False
        log = np.log(J)
        a = J ** (-2.0 / 3.0)
        b = a * a
        d[0] = c10 * (a * one - 3.0) + c01 * (b * two - 3.0) + 0.5 * bulk * log * log
        d[PSI_1] = c10 * a
        d[PSI_2] = c01 * b
        d[PSI_1J] = -2.0 / 3.0 * c10 * a / J
        d[PSI_2J] = -4.0 / 3.0 * c01 * b / J
        d[PSI_J] = d[PSI_1J] * one + d[PSI_2J] * two + bulk * log / J
        d[PSI_JJ] = (
            10.0 / 9.0 * c10 * a * one + 28.0 / 9.0 * c01 * b * two + bulk * (1.0 - log)
        ) / (J * J)
    return True


@njit(cache=True)
def invariant_tangent(F, C, K, one, d, T):
    """dP/dF (9, 9), rows 3 i + j, from the derivatives d; written to T."""
    S2 = np.empty((3, 3))
    B = np.empty((3, 3))
    for i in range(3):
        for j in range(3):
            S2[i, j] = one * F[i, j]
            B[i, j] = 0.0
            for k in range(3):
                S2[i, j] -= F[i, k] * C[k, j]
                B[i, j] += F[i, k] * F[j, k]
            S2[i, j] *= 2.0
    for i in range(3):
        for j in range(3):
            a1, a2, aJ = 2.0 * F[i, j], S2[i, j], K[i, j]
            r1 = d[PSI_11] * a1 + d[PSI_12] * a2 + d[PSI_1J] * aJ
            r2 = d[PSI_12] * a1 + d[PSI_22] * a2 + d[PSI_2J] * aJ
            rJ = d[PSI_1J] * a1 + d[PSI_2J] * a2 + d[PSI_JJ] * aJ
            for k in range(3):
                for l in range(3):  # noqa: E741
                    t = r1 * 2.0 * F[k, l] + r2 * S2[k, l] + rJ * K[k, l]
                    t += d[PSI_2] * (4.0 * F[i, j] * F[k, l] - 2.0 * F[i, l] * F[k, j])
                    if i == k:
                        t -= 2.0 * d[PSI_2] * C[l, j]
                    if j == l:
                        t -= 2.0 * d[PSI_2] * B[i, k]
                    if i == k and j == l:
                        t += 2.0 * (d[PSI_1] + d[PSI_2] * one)
                    T[3 * i + j, 3 * k + l] = t
    # d2J_ij,kl = e_ikm e_jln F_mn.
    for i in range(3):
        for j in range(3):
            for p in range(1, 3):
                for q in range(1, 3):
                    k, l = (i + p) % 3, (j + q) % 3  # noqa: E741
                    m, n = 3 - i - k, 3 - j - l
                    sign = 1.0 if p == q else -1.0
                    T[3 * i + j, 3 * k + l] += sign * d[PSI_J] * F[m, n]
