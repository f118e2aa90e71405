"""Energies of hyperelastic materials: density, stress and tangent at one F; compiled.

F is the deformation gradient, J = det F, P = dPsi/dF the first Piola-Kirchhoff stress.
Matrices dP/dF (9, 9) have rows and columns 3 i + j.

Kinds below LAST_INVARIANT are sums of a function of I1 = |F|^2 and one of J:

    P = 2 Psi_1 F + Psi_J cof F
    dP_ij/dF_kl = 4 Psi_11 F_ij F_kl + 2 Psi_1 d_ik d_jl
                  + Psi_JJ cof_ij cof_kl + Psi_J d2J_ij,kl

The others are functions of the principal stretches s. With the rotation-variant SVD
F = U diag(s) V', det U = det V = 1,

    P = U diag(psi_i) V',   psi_i = dPsi/ds_i

and the tangent is sparse in the basis of Smith, de Goes and Kim (2019): three stretch
modes coupled by psi_ij, three twists (psi_i + psi_j)/(s_i + s_j) and three flips
(psi_i - psi_j)/(s_i - s_j), whose limit at coinciding stretches is psi_ii - psi_ij.
"""

from __future__ import annotations

import numpy as np

from drakebots.core.kernels import cholesky, cross, dot, njit

NEO_HOOKEAN, STABLE_NEO_HOOKEAN = 0, 1
ST_VENANT_KIRCHHOFF, LINEAR_COROTATED, OGDEN = 2, 3, 4

LAST_INVARIANT = 2
"""First kind that is a function of the stretches."""

PSI_1, PSI_11, PSI_J, PSI_JJ = range(1, 5)
"""Places in the array of derivatives by I1 and J; place 0 is the energy density."""

TERMS = 3
"""Terms an Ogden material may have; c = mu (3), alpha (3), bulk modulus."""

CLOSE = 1e-5
"""Relative difference of stretches below which a flip takes its limit. There the
rounding of the quotient (1e-16/difference) equals the error of the limit
(difference^2)."""

# Functions of I1 and J.


@njit(cache=True)
def determinant(F):
    """det F of F (3, 3)."""
    return dot(F[0], cross(F[1], F[2]))


@njit(cache=True)
def invariants(F):
    """I1 and J of F (3, 3)."""
    return dot(F[0], F[0]) + dot(F[1], F[1]) + dot(F[2], F[2]), determinant(F)


@njit(cache=True)
def cofactor(F, K):
    """dJ/dF (3, 3), written to K."""
    K[0, 0], K[0, 1], K[0, 2] = cross(F[1], F[2])
    K[1, 0], K[1, 1], K[1, 2] = cross(F[2], F[0])
    K[2, 0], K[2, 1], K[2, 2] = cross(F[0], F[1])


@njit(cache=True)
def psi_derivatives(kind, c, one, J, d):
    """Writes the energy density and its derivatives by I1 and J to d (5,).

    c are the coefficients of :func:`drakebots.fem.material.materials.coefficients`.
    Returns False when the energy is infinite (J <= 0 where ln J is taken).
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
    else:
        # Smith et al. 2018, eq. 14; c holds their mu, lambda and alpha.
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
    return True


@njit(cache=True)
def invariant_stress(F, K, d, P):
    """P = 2 Psi_1 F + Psi_J cof F, written to P."""
    for i in range(3):
        for j in range(3):
            P[i, j] = 2.0 * d[PSI_1] * F[i, j] + d[PSI_J] * K[i, j]


@njit(cache=True)
def invariant_tangent(F, K, d, T):
    """dP/dF (9, 9), rows 3 i + j, from the derivatives d; written to T."""
    for i in range(3):
        for j in range(3):
            r1, rJ = d[PSI_11] * 2.0 * F[i, j], d[PSI_JJ] * K[i, j]
            for k in range(3):
                for l in range(3):  # noqa: E741
                    T[3 * i + j, 3 * k + l] = r1 * 2.0 * F[k, l] + rJ * K[k, l]
            T[3 * i + j, 3 * i + j] += 2.0 * d[PSI_1]
    # d2J_ij,kl = e_ikm e_jln F_mn.
    for i in range(3):
        for j in range(3):
            for p in range(1, 3):
                for q in range(1, 3):
                    k, l = (i + p) % 3, (j + q) % 3  # noqa: E741
                    m, n = 3 - i - k, 3 - j - l
                    sign = 1.0 if p == q else -1.0
                    T[3 * i + j, 3 * k + l] += sign * d[PSI_J] * F[m, n]


# Functions of the principal stretches.


@njit(cache=True)
def signed_svd(F, U, s, V):
    """F = U diag(s) V' by one-sided Jacobi; U, V are rotations, one s may be < 0.

    With LAPACK's, called for one matrix at a time, a force takes over four times as
    long.
    """
    A = F.copy()
    V[:, :] = np.eye(3)
    for _ in range(30):
        off = 0.0
        for p, q in ((0, 1), (0, 2), (1, 2)):
            u, v = A[:, p], A[:, q]
            x, y, z = dot(u, u), dot(v, v), dot(u, v)
            size = np.sqrt(x) * np.sqrt(y)
            if size == 0.0 or abs(z) <= 1e-16 * size:
                continue
            off = max(off, abs(z) / size)
            w = (y - x) / (2.0 * z)
            t = (1.0 if w >= 0 else -1.0) / (abs(w) + np.sqrt(1.0 + w * w))
            c = 1.0 / np.sqrt(1.0 + t * t)
            n = c * t
            for M in (A, V):
                for k in range(3):
                    a, b = M[k, p], M[k, q]
                    M[k, p], M[k, q] = c * a - n * b, n * a + c * b
        if off < 1e-15:
            break
    for i in range(3):
        s[i] = np.sqrt(dot(A[:, i], A[:, i]))
    low, top = np.argmin(s), np.argmax(s)
    if s[top] == 0.0:
        U[:, :] = V
        return
    p, q = (low + 1) % 3, (low + 2) % 3
    for i in (p, q):
        if s[i] > 1e-14 * s[top]:
            for k in range(3):
                U[k, i] = A[k, i] / s[i]
        else:
            # Two stretches are zero: take any direction normal to the third.
            n = A[:, top] / s[top]
            e = np.zeros(3)
            e[np.argmin(np.abs(n))] = 1.0
            e -= (e @ n) * n
            U[:, i] = e / np.sqrt(e @ e)
    # The last column by the cross product: its stretch carries the sign.
    U[0, low], U[1, low], U[2, low] = cross(U[:, p], U[:, q])
    s[low] = dot(U[:, low], A[:, low])


@njit(cache=True)
def stretch_derivatives(kind, c, s, psi, H):
    """Energy density, and whether it is finite; psi (3,) and H = psi_ij are written."""
    if kind == ST_VENANT_KIRCHHOFF:
        # mu |E|^2 + lambda/2 (tr E)^2, E = (F'F - 1)/2
        mu, lam = c[0], c[1]
        trace = 0.5 * (s[0] * s[0] + s[1] * s[1] + s[2] * s[2] - 3.0)
        energy = 0.5 * lam * trace * trace
        for i in range(3):
            E = 0.5 * (s[i] * s[i] - 1.0)
            energy += mu * E * E
            slope = 2.0 * mu * E + lam * trace
            psi[i] = slope * s[i]
            for j in range(3):
                H[i, j] = lam * s[i] * s[j]
            H[i, i] += slope + 2.0 * mu * s[i] * s[i]
        return energy, True
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
    # So far the derivatives are by ln s; convert them to s.
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
    # In the modes U_a V_b' the tangent is sparse; R are its rows times the modes.
    R = np.empty((9, 9))
    top = max(abs(s[0]), max(abs(s[1]), abs(s[2]))) + 1e-300
    for a in range(3):
        for k in range(9):
            R[4 * a, k] = dot(H[a], modes[::4, k])
    for a in range(2):
        for b in range(a + 1, 3):
            total, gap = s[a] + s[b], s[a] - s[b]
            # Opposite stretches (of an inverted element) define no rotation.
            if abs(total) < 1e-12 * top:
                total = 1e-12 * top
            twist = (psi[a] + psi[b]) / total
            if abs(gap) < CLOSE * top:
                flip = 0.5 * (H[a, a] + H[b, b]) - H[a, b]
            else:
                flip = (psi[a] - psi[b]) / gap
            m, n = 3 * a + b, 3 * b + a
            own, other = 0.5 * (twist + flip), 0.5 * (flip - twist)
            for k in range(9):
                R[m, k] = own * modes[m, k] + other * modes[n, k]
                R[n, k] = other * modes[m, k] + own * modes[n, k]
    T[:, :] = modes.T @ R


# Any kind.


@njit(cache=True)
def stress_tangent(kind, c, F, P, T, want_tangent):
    """Psi(F) [J/m^3]; writes P (3, 3) and, on request, T = dP/dF (9, 9).

    Where the energy is infinite, P and T are NaN.
    """
    if kind < LAST_INVARIANT:
        K, d = np.empty((3, 3)), np.empty(5)
        one, J = invariants(F)
        if psi_derivatives(kind, c, one, J, d):
            cofactor(F, K)
            invariant_stress(F, K, d, P)
            if want_tangent:
                invariant_tangent(F, K, d, T)
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
    """Removes the negative eigenvalues of T (9, 9) in place; L is workspace.

    A trial Cholesky factorization recognises the usual case, in which there are none,
    at a tenth of the cost of the eigenvectors. Returns whether T was changed.
    """
    nudge = np.abs(np.diag(T)).sum()
    if not np.isfinite(nudge):
        return False
    L[:, :] = T + 1e-10 * nudge * np.eye(len(T))
    if cholesky(L):
        return False
    values, vectors = np.linalg.eigh(T)
    T[:, :] = (vectors * np.maximum(values, 0.0)) @ vectors.T
    return True
