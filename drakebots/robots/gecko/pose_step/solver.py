"""The pose step's optimum by a primal-dual Newton method, compiled.

    min  sum_g |r_g(x)|   s.t.  c(x) = 0,  lo <= x <= hi

with r_g linear in x. These are norms, not squares: each has a kink where it is zero,
and at the optimum some norms are at their kink. Each norm is smoothed,
s_g = sqrt(|r_g|^2 + d^2), and d is reduced in stages to nearly zero. Near a kink,
Newton's method on s_g alone overshoots by orders of magnitude; with separate dual
variables y_g and the linearised equation s_g y_g = r_g it does not (Andersen,
Christiansen, Conn, Overton, SIAM J. Sci. Comput. 22:243, 2000). A primal-dual barrier
with parameter d keeps the bounds. The objective found exceeds the optimum by at most d
for each norm and each bound.

Iterates stay on the manifold c(x) = 0: after each step the feet are projected back in
the metric of the Newton matrix, and the line search looks at the objective alone. With
a penalty on c instead, steps along the curved manifold would be very short.
"""

from __future__ import annotations

import numpy as np

from drakebots.core.kernels import njit
from drakebots.robots.gecko.pose_step.problem import (
    NUM_ROWS,
    NUM_X,
    add_foot,
    norm_gradient,
    norm_hessian,
    objective_rows,
    row_matrix,
    smoothed,
    turn_norm_duals,
)

SMOOTHING = np.array([30.0, 3.0, 0.3, 0.03, 3e-3, 3e-4, 3e-5])
"""Smoothing parameter d of each stage, in units of the objective."""

NUM_BOUNDED = 10
"""Number of bounded variables: alpha and ell, not heading and position."""

TOUCH = 1e-12
"""Displacement of a fixed foot that counts as zero [cm]."""

CONVERGED = 3e-7
"""Stationarity at which the last stage ends; rounding at the kinks leaves 2e-7."""

ROUNDING = 1e-11
"""Rise of the objective that a step may show: where all norms are at their kinks, as
in a straight gait that has settled, the objective is smaller than its rounding."""

KEEP = 0.995
"""Largest step towards a bound, as a share of the distance to it."""

# --- dense linear algebra ------------------------------------------------------


@njit(cache=True)
def cholesky(M, n):
    """Factorizes M in place, lower; False when M is not positive definite."""
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
    # The feet of a fully extended robot constrain one direction twice.
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


# --- objective, constraints and bounds -----------------------------------------


@njit(cache=True)
def constraints(x, fixed, anchors, lam, c, J, H):
    """Displacements c of the fixed feet, their Jacobian J, and H += lam . d2c."""
    p, rows = np.empty(2), 0
    for foot in range(4):
        if fixed[foot]:
            add_foot(foot, x, lam[rows : rows + 2], p, J[rows : rows + 2], H)
            c[rows] = p[0] - anchors[foot, 0]
            c[rows + 1] = p[1] - anchors[foot, 1]
            rows += 2
    return rows


@njit(cache=True)
def merit(x, target, A, lo, hi, d):
    """Smoothed objective and barrier; inf outside the bounds."""
    r, s = np.empty(NUM_ROWS), np.empty(3)
    objective_rows(x, target, A, r)
    total = smoothed(r, d, s)
    for i in range(NUM_BOUNDED):
        below, above = x[i] - lo[i], hi[i] - x[i]
        if below <= 0 or above <= 0:
            return np.inf
        total -= d * (np.log(below) + np.log(above))
    return total


@njit(cache=True)
def project(x, fixed, anchors, back, S, c, J, H):
    """Projects x (13,) onto c(x) = 0 by chord iterations; False when they fail.

    Args:
        back, S: M^-1 J' (8, 13) and the Cholesky factor of J M^-1 J'.
        c, J, H: work space; c returns the remaining displacements.
    """
    zero, before = np.zeros(8), np.inf
    for _ in range(30):
        rows = constraints(x, fixed, anchors, zero, c, J, H)
        gap = 0.0
        for i in range(rows):
            gap = max(gap, abs(c[i]))
        if gap < TOUCH:
            return True
        if not gap < 0.8 * before:
            return gap < 10 * TOUCH
        before = gap
        solve_lower(S, rows, c)
        for j in range(NUM_X):
            for i in range(rows):
                x[j] -= back[i, j] * c[i]
    return False


@njit(cache=True)
def lagrangian_slope(gradient, J, lam, z, rows):
    """Largest element of the Lagrangian's gradient."""
    worst = 0.0
    for j in range(NUM_X):
        total = gradient[j]
        for i in range(rows):
            total += J[i, j] * lam[i]
        if j < NUM_BOUNDED:
            total += z[j, 1] - z[j, 0]
        worst = max(worst, abs(total))
    return worst


@njit(cache=True)
def complementarity(x, lo, hi, z, d):
    """Largest |z (x - bound) - d|."""
    worst = 0.0
    for j in range(NUM_BOUNDED):
        worst = max(worst, abs(z[j, 0] * (x[j] - lo[j]) - d))
        worst = max(worst, abs(z[j, 1] * (hi[j] - x[j]) - d))
    return worst


@njit(cache=True)
def inside(x, step, lo, hi):
    """Largest share of a step, at most 1, that stays inside the bounds."""
    longest = 1.0
    for j in range(NUM_BOUNDED):
        if step[j] < 0:
            longest = min(longest, -KEEP * (x[j] - lo[j]) / step[j])
        if step[j] > 0:
            longest = min(longest, KEEP * (hi[j] - x[j]) / step[j])
    return longest


@njit(cache=True)
def move_bound_duals(x, step, lo, hi, z, d):
    """z += dz with dz from z (x - bound) = d linearised; z stays > 0."""
    dz, shrink = np.empty((NUM_BOUNDED, 2)), 1.0
    for j in range(NUM_BOUNDED):
        below, above = x[j] - lo[j], hi[j] - x[j]
        dz[j, 0] = (d - z[j, 0] * step[j]) / below - z[j, 0]
        dz[j, 1] = (d + z[j, 1] * step[j]) / above - z[j, 1]
        for k in range(2):
            if dz[j, k] < 0:
                shrink = min(shrink, -KEEP * z[j, k] / dz[j, k])
    for j in range(NUM_BOUNDED):
        for k in range(2):
            z[j, k] += shrink * dz[j, k]


# --- the method ----------------------------------------------------------------


@njit(cache=True)
def solve(x, target, weights, fixed, anchors, lo, hi, max_iterations):
    """Finds the optimum from x (13,), which lies strictly within lo and hi.

    Returns:
        x, multipliers lam (8,), (iterations, stationarity, feasibility): the
        largest element of the Lagrangian's gradient over the largest weight,
        and the largest displacement of a fixed foot [cm].
    """
    x = x.copy()
    A = row_matrix(weights, fixed)
    r, s, y = np.empty(NUM_ROWS), np.empty(3), np.zeros(NUM_ROWS)
    lam, c, J = np.zeros(8), np.zeros(8), np.zeros((8, NUM_X))
    scale = max(weights[0], max(weights[1], weights[2]))
    z = np.empty((NUM_BOUNDED, 2))
    for i in range(NUM_BOUNDED):
        z[i, 0] = SMOOTHING[0] / (x[i] - lo[i])
        z[i, 1] = SMOOTHING[0] / (hi[i] - x[i])
    iterations, stationarity, feasibility = 0, np.inf, np.inf
    for stage in range(len(SMOOTHING)):
        d = SMOOTHING[stage]
        last = stage == len(SMOOTHING) - 1
        tolerance = CONVERGED if last else 1e-2
        while iterations < max_iterations:
            H = np.zeros((NUM_X, NUM_X))
            rows = constraints(x, fixed, anchors, lam, c, J, H)
            objective_rows(x, target, A, r)
            here = smoothed(r, d, s)
            gradient = norm_gradient(A, r, s)
            stationarity = max(
                lagrangian_slope(gradient, J, lam, z, rows) / scale,
                complementarity(x, lo, hi, z, d) / scale,
            )
            feasibility = 0.0
            for i in range(rows):
                feasibility = max(feasibility, abs(c[i]))
            if stationarity < tolerance and feasibility < 10 * TOUCH:
                break
            iterations += 1
            norm_hessian(A, r, y, s, H)
            for j in range(NUM_BOUNDED):
                below, above = x[j] - lo[j], hi[j] - x[j]
                H[j, j] += z[j, 0] / below + z[j, 1] / above
                gradient[j] += d / above - d / below
            step, new_lam, back, S = newton_step(H, J, gradient, c, lam, rows)
            here, slope = merit(x, target, A, lo, hi, d), 0.0
            for j in range(NUM_X):
                slope += gradient[j] * step[j]
            share, ok = inside(x, step, lo, hi), False
            for _ in range(25):
                there = x + share * step
                ok = project(there, fixed, anchors, back, S, c, J, H)
                if ok:
                    value = merit(there, target, A, lo, hi, d)
                    ok = value <= here + 1e-4 * share * slope + ROUNDING * (1 + here)
                    # The first step also moves feet back; the objective may rise.
                    ok = ok or (feasibility > 10 * TOUCH and value < np.inf)
                if ok:
                    break
                share *= 0.5
            if not ok:
                break
            turn_norm_duals(A, r, s, y, step, share)
            move_bound_duals(x, step, lo, hi, z, d)
            x = there
            for i in range(rows):
                lam[i] += share * (new_lam[i] - lam[i])
    return x, lam, (iterations, stationarity, feasibility)
