"""Energies of principal stretches: linear corotated and Ogden; compiled.

With the rotation-variant SVD F = U diag(s) V', det U = det V = 1,

    P = U diag(psi_i) V',   psi_i = dPsi/ds_i

and the tangent is diagonal in the basis of Smith, de Goes and Kim (2019):
three stretch modes coupled by psi_ij, three twists (psi_i + psi_j)/(s_i + s_j)
and three flips (psi_i - psi_j)/(s_i - s_j), whose limit at coinciding stretches
is psi_ii - psi_ij.
"""

from __future__ import annotations

import numpy as np
from numba import njit

LINEAR_COROTATED, OGDEN = 4, 5

TERMS = 3
"""Terms an Ogden material may have; c = mu (3), alpha (3), bulk modulus."""

CLOSE = 1e-5
"""Relative gap of stretches below which the flip takes its limit: there the
quotient's rounding (1e-16/gap) meets the limit's error (gap^2)."""


@njit(cache=True)
def signed_svd(F, U, s, V):
    """F = U diag(s) V' by one-sided Jacobi; U, V rotations, s[i] may be < 0."""
    A = F.copy()
    for i in range(3):
        for j in range(3):
            V[i, j] = 1.0 if i == j else 0.0
    for _ in range(30):
        off = 0.0
        for p in range(2):
            for q in range(p + 1, 3):
                x, y, z = 0.0, 0.0, 0.0
                for k in range(3):
                    x += A[k, p] * A[k, p]
                    y += A[k, q] * A[k, q]
                    z += A[k, p] * A[k, q]
                if abs(z) <= 1e-16 * np.sqrt(x * y) or z == 0.0:
                    continue
                off = max(off, abs(z) / np.sqrt(x * y))
                w = (y - x) / (2.0 * z)
                t = (1.0 if w >= 0 else -1.0) / (abs(w) + np.sqrt(1.0 + w * w))
                c = 1.0 / np.sqrt(1.0 + t * t)
                n = c * t
                for k in range(3):
                    a, b = A[k, p], A[k, q]
                    A[k, p], A[k, q] = c * a - n * b, n * a + c * b
                    a, b = V[k, p], V[k, q]
                    V[k, p], V[k, q] = c * a - n * b, n * a + c * b
        if off < 1e-15:
            break
    low = 0
    for i in range(3):
        s[i] = np.sqrt(A[0, i] ** 2 + A[1, i] ** 2 + A[2, i] ** 2)
        if s[i] < s[low]:
            low = i
    top = max(s[0], max(s[1], s[2]))
    if top == 0.0:
        U[:, :] = V
        return
    for i in range(3):
        if i != low:
            # Two stretches gone: any direction will do, made orthogonal below.
            if s[i] > 1e-14 * top and s[i] > 0.0:
                for k in range(3):
                    U[k, i] = A[k, i] / s[i]
            else:
                _any_normal(U, i, low, s, A)
    p, q = (low + 1) % 3, (low + 2) % 3
    for k in range(3):
        a, b = (k + 1) % 3, (k + 2) % 3
        U[k, low] = U[a, p] * U[b, q] - U[b, p] * U[a, q]
    # The last column by the cross product: its stretch carries the sign.
    s[low] = U[0, low] * A[0, low] + U[1, low] * A[1, low] + U[2, low] * A[2, low]


@njit(cache=True)
def _any_normal(U, i, low, s, A):
    other = 3 - i - low
    e = np.zeros(3)
    n = np.zeros(3)
    for k in range(3):
        n[k] = A[k, other] / s[other]
    e[np.argmin(np.abs(n))] = 1.0
    e -= (e @ n) * n
    e /= np.sqrt(e @ e)
    U[:, i] = e


@njit(cache=True)
def stretch_derivatives(kind, c, s, psi, H):
    """Energy density; psi (3,) and H (3, 3) are written. False when infinite."""
    if kind == LINEAR_COROTATED:
        # mu |F - R|^2 + lambda/2 tr(R'F - 1)^2
        mu, lam = c[0], c[1]
        trace = s[0] + s[1] + s[2] - 3.0
        energy = 0.5 * lam * trace * trace
        for i in range(3):
            energy += mu * (s[i] - 1.0) ** 2
            psi[i] = 2.0 * mu * (s[i] - 1.0) + lam * trace
            for j in range(3):
                H[i, j] = lam
            H[i, i] += 2.0 * mu
        return energy, True
    # sum mu_p/a_p (sum_i b_i^a_p - 3) + k/2 (ln J)^2, b_i = J^-1/3 s_i
    J = s[0] * s[1] * s[2]
    if not min(s[0], min(s[1], s[2])) > 0.0:
        return np.inf, False
    log = np.log(J)
    bulk = c[2 * TERMS]
    energy = 0.5 * bulk * log * log
    psi[:] = bulk * log
    H[:, :] = bulk
    power = np.empty(3)
    for p in range(TERMS):
        mu, alpha = c[p], c[TERMS + p]
        if mu == 0.0:
            continue
        total = 0.0
        for i in range(3):
            power[i] = np.exp(alpha * (np.log(s[i]) - log / 3.0))
            total += power[i]
        energy += mu / alpha * (total - 3.0)
        for i in range(3):
            psi[i] += mu * (power[i] - total / 3.0)
            for j in range(3):
                H[i, j] += mu * alpha * (total / 9.0 - (power[i] + power[j]) / 3.0)
            H[i, i] += mu * alpha * power[i]
    # So far by ln s: turn derivatives to s.
    for i in range(3):
        for j in range(3):
            H[i, j] /= s[i] * s[j]
        H[i, i] -= psi[i] / (s[i] * s[i])
        psi[i] /= s[i]
    return energy, True


@njit(cache=True)
def stretch_tangent(U, s, V, psi, H, T):
    """dP/dF (9, 9), rows 3 i + j; written to T."""
    modes = np.empty((9, 9))
    for a in range(3):
        for b in range(3):
            for i in range(3):
                for j in range(3):
                    modes[3 * a + b, 3 * i + j] = U[i, a] * V[j, b]
    # In the modes U_a V_b' the tangent is sparse: L (9, 9).
    L = np.zeros((9, 9))
    top = max(abs(s[0]), max(abs(s[1]), abs(s[2]))) + 1e-300
    for a in range(3):
        for b in range(3):
            L[4 * a, 4 * b] = H[a, b]
    for a in range(2):
        for b in range(a + 1, 3):
            total, gap = s[a] + s[b], s[a] - s[b]
            # Opposite stretches (a turned-over element) have no rotation.
            if abs(total) < 1e-12 * top:
                total = 1e-12 * top
            twist = (psi[a] + psi[b]) / total
            if abs(gap) < CLOSE * top:
                flip = 0.5 * (H[a, a] + H[b, b]) - H[a, b]
            else:
                flip = (psi[a] - psi[b]) / gap
            m, n = 3 * a + b, 3 * b + a
            L[m, m] = L[n, n] = 0.5 * (twist + flip)
            L[m, n] = L[n, m] = 0.5 * (flip - twist)
    T[:, :] = modes.T @ (L @ modes)
