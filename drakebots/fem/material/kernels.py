"""Energy, stress and tangent of any material kind at one F; compiled."""

from __future__ import annotations

import numpy as np
from numba import njit

from drakebots.fem.material.energies import (
    LAST_INVARIANT,
    PSI_1,
    PSI_2,
    PSI_J,
    cofactor,
    invariant_tangent,
    invariants,
    psi_derivatives,
    signed_svd,
    stretch_derivatives,
    stretch_tangent,
)


@njit(cache=True)
def energy_density(kind, c, F):
    """Psi(F) [J/m^3]; infinite where the material forbids F."""
    if kind < LAST_INVARIANT:
        C, d = np.empty((3, 3)), np.empty(10)
        one, two, J = invariants(F, C)
        psi_derivatives(kind, c, one, two, J, d)
        return d[0]
    U, V, H = np.empty((3, 3)), np.empty((3, 3)), np.empty((3, 3))
    s, psi = np.empty(3), np.empty(3)
    signed_svd(F, U, s, V)
    return stretch_derivatives(kind, c, s, psi, H)[0]


@njit(cache=True)
def invariant_stress(F, C, K, one, d, P):
    """P = 2 Psi_1 F + Psi_2 2 (I1 F - F C) + Psi_J cof F, written to P."""
    for i in range(3):
        for j in range(3):
            FC = F[i, 0] * C[0, j] + F[i, 1] * C[1, j] + F[i, 2] * C[2, j]
            P[i, j] = (
                2.0 * (d[PSI_1] + d[PSI_2] * one) * F[i, j]
                - 2.0 * d[PSI_2] * FC
                + d[PSI_J] * K[i, j]
            )


@njit(cache=True)
def stress_tangent(kind, c, F, P, T, want_tangent):
    """Psi, and P (3, 3) and dP/dF (9, 9) written; rows of T are 3 i + j.

    Where the energy is infinite P and T are written as NaN.
    """
    if kind < LAST_INVARIANT:
        C, K, d = np.empty((3, 3)), np.empty((3, 3)), np.empty(10)
        one, two, J = invariants(F, C)
        if psi_derivatives(kind, c, one, two, J, d):
            cofactor(F, K)
            invariant_stress(F, C, K, one, d, P)
            if want_tangent:
                invariant_tangent(F, C, K, one, d, T)
            return d[0]
        energy = d[0]
    else:
        U, V, H = np.empty((3, 3)), np.empty((3, 3)), np.empty((3, 3))
        s, psi = np.empty(3), np.empty(3)
        signed_svd(F, U, s, V)
        energy, good = stretch_derivatives(kind, c, s, psi, H)
        if good:
            for i in range(3):
                for j in range(3):
                    P[i, j] = (
                        U[i, 0] * psi[0] * V[j, 0]
                        + U[i, 1] * psi[1] * V[j, 1]
                        + U[i, 2] * psi[2] * V[j, 2]
                    )
            if want_tangent:
                stretch_tangent(U, s, V, psi, H, T)
            return energy
    P[:, :] = np.nan
    if want_tangent:
        T[:, :] = np.nan
    return energy


@njit(cache=True)
def project_positive(T, L):
    """T (9, 9) without its negative eigenvalues, in place; L is workspace.

    A Cholesky trial tells the usual case, nothing to do, at a tenth the cost of
    the eigenvectors. True when T was changed.
    """
    n = T.shape[0]
    nudge = 0.0
    for i in range(n):
        nudge += abs(T[i, i])
    if not np.isfinite(nudge):
        return False
    nudge *= 1e-10
    good = True
    for i in range(n):
        for j in range(i + 1):
            t = T[i, j]
            for k in range(j):
                t -= L[i, k] * L[j, k]
            if i == j:
                if not t + nudge > 0.0:
                    good = False
                    break
                L[i, i] = np.sqrt(t + nudge)
            else:
                L[i, j] = t / L[j, j]
        if not good:
            break
    if good:
        return False
    values, vectors = np.linalg.eigh(T)
    for i in range(n):
        for j in range(n):
            t = 0.0
            for k in range(n):
                if values[k] > 0.0:
                    t += vectors[i, k] * values[k] * vectors[j, k]
            L[i, j] = t
    T[:, :] = L
    return True
