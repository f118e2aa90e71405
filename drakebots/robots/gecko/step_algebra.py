"""Dense algebra of the pose step, compiled: Cholesky, and Newton's step."""

from __future__ import annotations

import numpy as np
from numba import njit

from drakebots.robots.gecko.step_rows import NUM_X


@njit(cache=True)
def cholesky(M, n):
    """In place, lower; False when M is not positive definite."""
    for i in range(n):
        for j in range(i + 1):
            total = M[i, j]
            for k in range(j):
                total -= M[i, k] * M[j, k]
            if i == j:
                if not total > 0.0:
                    return False
                M[i, i] = np.sqrt(total)
            else:
                M[i, j] = total / M[j, j]
    return True


@njit(cache=True)
def solve_lower(L, n, b):
    """b := (L L')^-1 b."""
    for i in range(n):
        for k in range(i):
            b[i] -= L[i, k] * b[k]
        b[i] /= L[i, i]
    for i in range(n - 1, -1, -1):
        for k in range(i + 1, n):
            b[i] -= L[k, i] * b[k]
        b[i] /= L[i, i]


@njit(cache=True)
def newton_step(H, J, gradient, c, lam, rows):
    """Step and new multipliers of the equality-constrained quadratic model.

    rho J'J is added (it changes the multipliers, by rho c, not the step), and
    a multiple of the identity when H is not convex on the constraints.

    Returns:
        step (13,), multipliers (8,), back = M^-1 J' by rows (8, 13), and the
        Cholesky factor S (8, 8) of J M^-1 J'.
    """
    biggest = 0.0
    for j in range(NUM_X):
        biggest = max(biggest, abs(H[j, j]))
    rho, extra = min(biggest, 1e4), 0.0
    M = np.empty((NUM_X, NUM_X))
    while True:
        for a in range(NUM_X):
            for b in range(NUM_X):
                total = H[a, b]
                for i in range(rows):
                    total += rho * J[i, a] * J[i, b]
                M[a, b] = total
            M[a, a] += extra
        if cholesky(M, NUM_X):
            break
        extra = max(10 * extra, 1e-2)
    back, S, step = np.zeros((8, NUM_X)), np.zeros((8, 8)), np.empty(NUM_X)
    for j in range(NUM_X):
        step[j] = -gradient[j]
        for i in range(rows):
            step[j] -= rho * J[i, j] * c[i]
    solve_lower(M, NUM_X, step)
    rhs, size = np.zeros(8), 0.0
    for i in range(rows):
        back[i] = J[i]
        solve_lower(M, NUM_X, back[i])
        rhs[i] = c[i]
        for j in range(NUM_X):
            rhs[i] += J[i, j] * step[j]
    for i in range(rows):
        for k in range(rows):
            for j in range(NUM_X):
                S[i, k] += J[i, j] * back[k, j]
        size = max(size, S[i, i])
    # Feet of a stretched-out robot constrain the same direction twice.
    nudge = 1e-14 * size
    factor = S.copy()
    while True:
        for i in range(rows):
            factor[i, : i + 1] = S[i, : i + 1]
            factor[i, i] += nudge
        if cholesky(factor, rows):
            break
        nudge *= 10
    solve_lower(factor, rows, rhs)
    new = lam.copy()
    for i in range(rows):
        for j in range(NUM_X):
            step[j] -= back[i, j] * rhs[i]
        new[i] = rhs[i] + rho * c[i]
    return step, new, back, factor
