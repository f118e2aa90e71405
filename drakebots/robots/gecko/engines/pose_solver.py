"""The pose step's optimum by a primal-dual Newton method, compiled.

    min  sum_g |r_g(x)|   s.t.  c(x) = 0,  lo <= x <= hi

with variables x (13,): alpha (5) [rad], ell (5) [cm], eps [rad] and p1 (2) [cm].

**Constraints** c: displacements of the fixed feet. An arc of length l that starts in
direction th and bends by u ends at

    l e^{i th} G(u),   G(u) = int_0^1 e^{i s u} ds = (e^{iu} - 1)/(iu)

in the complex plane, so first and second derivatives need G' and G'' only:
G' = (e^{iu} - G)/u and G'' = (i e^{iu} - 2 G')/u, with series near u = 0.

**Objective**: the sum of three norms |r_g| of the weighted rows r = A x - target (14,):
5 lengths, 4 foot headings, 5 angles. These are norms, not squares: each has a kink
where it is zero, and at the optimum some norms are at their kink. Each is smoothed,
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

from drakebots.core.kernels import cholesky, njit

NUM_X = 13
ELL, EPS, P1 = 5, 10, 11
"""Index in x of the first length, of the heading, and of the position."""

SMALL = 0.4
"""Bending |u| below which the closed forms lose digits to cancellation [rad]."""


@njit(cache=True)
def arc(u):
    """G, G' and G'' of a bend u [rad], complex."""
    if abs(u) > SMALL:
        e = np.exp(1j * u)
        g = (e - 1.0) / (1j * u)
        d = (e - g) / u
        return g, d, (1j * e - 2.0 * d) / u
    # Sums of (iu)^n / (n! (n + 1 + k)) times i^k, k = 0, 1, 2.
    g, d, h = 0j, 0j, 0j
    term = 1.0 + 0j
    for n in range(16):
        g += term / (n + 1)
        d += term / (n + 2)
        h += term / (n + 3)
        term = term * 1j * u / (n + 1)
    return g, 1j * d, -h


@njit(cache=True)
def foot_limb(foot):
    """Limb of a foot FL, FR, RL, RR, its side, whether it is rear, sign of bending."""
    limb = foot if foot < 2 else foot + 1
    side = 1.0 if foot % 2 == 0 else -1.0
    rear = foot >= 2
    sign = side if rear else -side
    return limb, side, rear, sign


@njit(cache=True)
def add_foot(foot, x, multiplier, p, J, H):
    """Writes a foot's position p (2,) and Jacobian J (2, 13); H += multiplier . d2p."""
    limb, side, rear, sign = foot_limb(foot)
    half = 0.5 if rear else -0.5
    J[:] = 0.0
    z = complex(x[P1], x[P1 + 1])
    J[0, P1] = 1.0
    J[1, P1 + 1] = 1.0
    weight = complex(multiplier[0], -multiplier[1])  # Re(weight z) = m . z
    if rear:
        th = x[EPS] - x[2] / 2 + np.pi
        z += _add_arc(th, -0.5, x[2], 1.0, x[ELL + 2], 2, weight, J, H)
    th = x[EPS] + half * x[2] + side * np.pi / 2
    z += _add_arc(th, half, sign * x[limb], sign, x[ELL + limb], limb, weight, J, H)
    p[0], p[1] = z.real, z.imag


@njit(cache=True)
def _add_arc(th, th_2, u, u_limb, length, limb, weight, J, H):
    """Adds the derivatives of one arc; returns its chord (complex).

    th has slopes 1 by eps and th_2 by alpha_2; u has slope u_limb by alpha_limb.
    """
    g, d, h = arc(u)
    turn = np.exp(1j * th)
    g, d, h = turn * g, turn * d, turn * h
    # Derivatives by (th, u, l), then by the columns eps, alpha_2, alpha_limb, ell_limb.
    first = (1j * length * g, length * d, g)
    second = (
        (-length * g, 1j * length * d, 1j * g),
        (1j * length * d, length * h, d),
        (1j * g, d, 0j),
    )
    columns = (EPS, 2, limb, ELL + limb)
    # Each of them moves one of th, u, l; the torso's own bend is alpha_2.
    moved, slopes = (0, 0, 1, 2), (1.0, th_2, u_limb, 1.0)
    for a in range(4):
        value = slopes[a] * first[moved[a]]
        J[0, columns[a]] += value.real
        J[1, columns[a]] += value.imag
        for b in range(4):
            bent = (weight * second[moved[a]][moved[b]]).real
            H[columns[a], columns[b]] += slopes[a] * bent * slopes[b]
    return length * g


NUM_ROWS = 14
"""Rows of the objective: 5 lengths, 4 foot headings, 5 angles."""

GROUPS = ((0, 5), (5, 9), (9, 14))
"""First row of each norm, and the one after its last."""


@njit(cache=True)
def row_matrix(weights, fixed):
    """A (14, 13); weights (3,) per cm, rad and rad."""
    A = np.zeros((NUM_ROWS, NUM_X))
    for i in range(5):
        A[i, ELL + i] = weights[0]
        A[9 + i, i] = weights[2]
    for foot in range(4):
        if fixed[foot]:
            limb, _, rear, sign = foot_limb(foot)
            A[5 + foot, EPS] = weights[1]
            A[5 + foot, 2] = weights[1] * (0.5 if rear else -0.5)
            A[5 + foot, limb] = weights[1] * sign
    return A


@njit(cache=True)
def smoothed(r, d):
    """The smoothed norms (3,) of the rows."""
    s = np.empty(3)
    for g in range(3):
        first, last = GROUPS[g]
        s[g] = np.sqrt(d * d + (r[first:last] ** 2).sum())
    return s


@njit(cache=True)
def norm_derivatives(A, r, y, s, gradient, H):
    """Adds those of the smoothed norms: gradient += sum_g A_g' r_g / s_g, and
    H += sum_g A_g' (I - (y_g r_g' + r_g y_g')/(2 s_g)) A_g / s_g."""
    for g in range(3):
        first, last = GROUPS[g]
        part = A[first:last]
        at_y, at_r = part.T @ y[first:last], part.T @ r[first:last]
        gradient += at_r / s[g]
        H += (
            part.T @ part - (np.outer(at_y, at_r) + np.outer(at_r, at_y)) / (2 * s[g])
        ) / s[g]


@njit(cache=True)
def turn_norm_duals(A, r, s, y, step, share):
    """y += share dy with dy from s y = r linearised; y stays within unit balls."""
    dr = A @ step
    for g in range(3):
        first, last = GROUPS[g]
        own, rows, change = y[first:last], r[first:last], dr[first:last]
        along = (rows * change).sum() / s[g]
        own += share * ((change - own * along + rows) / s[g] - own)
        own /= max(np.sqrt((own**2).sum()), 1.0)


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
def solve_lower(L, b):
    """b := (L L')^-1 b."""
    n = len(b)
    for i in range(n):
        for k in range(i):
            b[i] -= L[i, k] * b[k]
        b[i] /= L[i, i]
    for i in range(n - 1, -1, -1):
        for k in range(i + 1, n):
            b[i] -= L[k, i] * b[k]
        b[i] /= L[i, i]


@njit(cache=True)
def newton_step(H, J, gradient, c):
    """Step and new multipliers of the equality-constrained quadratic model.

    rho J'J is added (it changes the multipliers, by rho c, not the step), and
    a multiple of the identity when H is not convex on the constraints.

    Returns:
        step (13,), multipliers (rows,), back = M^-1 J' by rows (rows, 13), and the
        Cholesky factor S (rows, rows) of J M^-1 J'.
    """
    rho, extra, rows = min(np.abs(np.diag(H)).max(), 1e4), 0.0, len(c)
    stiff = H + rho * (J.T @ J)
    M = stiff.copy()
    while not cholesky(M):
        extra = max(10 * extra, 1e-2)
        M = stiff + extra * np.eye(NUM_X)
    step = -gradient - rho * (J.T @ c)
    solve_lower(M, step)
    back = J.copy()
    for i in range(rows):
        solve_lower(M, back[i])
    S = J @ back.T
    # The feet of a fully extended robot constrain one direction twice.
    nudge = 1e-14 * np.diag(S).max()
    factor = S + nudge * np.eye(rows)
    while not cholesky(factor):
        nudge *= 10
        factor = S + nudge * np.eye(rows)
    rhs = c + J @ step
    solve_lower(factor, rhs)
    return step - back.T @ rhs, rhs + rho * c, back, factor


# --- objective, constraints and bounds -----------------------------------------


@njit(cache=True)
def constraints(x, fixed, anchors, lam, H):
    """Displacements of the fixed feet (rows,) and their Jacobian (rows, 13); H gains
    lam . d2c."""
    c, J = np.zeros(len(lam)), np.zeros((len(lam), NUM_X))
    p, row = np.empty(2), 0
    for foot in range(4):
        if fixed[foot]:
            part = slice(row, row + 2)
            add_foot(foot, x, lam[part], p, J[part], H)
            c[part] = p - anchors[foot]
            row += 2
    return c, J


@njit(cache=True)
def merit(x, target, A, lo, hi, d):
    """Smoothed objective and barrier; inf outside the bounds."""
    below, above = x[:NUM_BOUNDED] - lo, hi - x[:NUM_BOUNDED]
    if below.min() <= 0 or above.min() <= 0:
        return np.inf
    barrier = (np.log(below) + np.log(above)).sum()
    return smoothed(A @ x - target, d).sum() - d * barrier


@njit(cache=True)
def project(x, fixed, anchors, back, S):
    """Projects x (13,) onto c(x) = 0 by chord iterations; False when they fail.

    Args:
        back, S: M^-1 J' by rows (rows, 13) and the Cholesky factor of J M^-1 J'.
    """
    zero, unused, before = np.zeros(len(S)), np.zeros((NUM_X, NUM_X)), np.inf
    for _ in range(30):
        c, _ = constraints(x, fixed, anchors, zero, unused)
        gap = np.abs(c).max()
        if gap < TOUCH:
            return True
        if not gap < 0.8 * before:
            return gap < 10 * TOUCH
        before = gap
        solve_lower(S, c)
        x -= back.T @ c
    return False


@njit(cache=True)
def inside(room, change):
    """Largest share of a change, at most 1, that keeps what it changes (2, 10) > 0."""
    longest = 1.0
    for k in range(2):
        for j in range(NUM_BOUNDED):
            if change[k, j] < 0:
                longest = min(longest, -KEEP * room[k, j] / change[k, j])
    return longest


# --- the method ----------------------------------------------------------------


@njit(cache=True)
def line_search(x, step, longest, newton, problem, d, slope, moves):
    """The point and the share of a step that lower the merit; a share of 0 for none.

    Args:
        newton: back and S of :func:`newton_step`.
        problem: target, A, fixed, anchors, lo, hi.
        slope: derivative of the merit along the step.
        moves: whether feet are moved back, so that the objective may rise.
    """
    target, A, fixed, anchors, lo, hi = problem
    here, share = merit(x, target, A, lo, hi, d), longest
    for _ in range(25):
        there = x + share * step
        if project(there, fixed, anchors, newton[0], newton[1]):
            value = merit(there, target, A, lo, hi, d)
            most = here + 1e-4 * share * slope + ROUNDING * (1 + here)
            if value <= most or (moves and value < np.inf):
                return there, share
        share *= 0.5
    return x, 0.0


@njit(cache=True)
def solve(x, target, weights, fixed, anchors, lo, hi, max_iterations):
    """Finds the optimum from x (13,), which lies strictly within lo and hi.

    Returns:
        x, and (iterations, stationarity, feasibility): the largest element of the
        Lagrangian's gradient over the largest weight, and the largest displacement of
        a fixed foot [cm].
    """
    x, A, y = x.copy(), row_matrix(weights, fixed), np.zeros(NUM_ROWS)
    posed = target, A, fixed, anchors, lo, hi
    lam, z, scale = np.zeros(2 * fixed.sum()), np.empty((2, NUM_BOUNDED)), weights.max()
    gaps = np.empty_like(z)
    gaps[0], gaps[1] = x[:NUM_BOUNDED] - lo, hi - x[:NUM_BOUNDED]
    z[:] = SMOOTHING[0] / gaps
    iterations, stationarity, feasibility = 0, np.inf, np.inf
    for stage in range(len(SMOOTHING)):
        d = SMOOTHING[stage]
        tolerance = CONVERGED if stage == len(SMOOTHING) - 1 else 1e-2
        while iterations < max_iterations:
            H, gradient = np.zeros((NUM_X, NUM_X)), np.zeros(NUM_X)
            c, J = constraints(x, fixed, anchors, lam, H)
            r = A @ x - target
            s = smoothed(r, d)
            norm_derivatives(A, r, y, s, gradient, H)
            lagrangian = gradient + J.T @ lam
            lagrangian[:NUM_BOUNDED] += z[1] - z[0]
            unequal = np.abs(z * gaps - d).max()
            stationarity = max(np.abs(lagrangian).max(), unequal) / scale
            feasibility = np.abs(c).max()
            if stationarity < tolerance and feasibility < 10 * TOUCH:
                break
            iterations += 1
            for j in range(NUM_BOUNDED):
                H[j, j] += z[0, j] / gaps[0, j] + z[1, j] / gaps[1, j]
                gradient[j] += d / gaps[1, j] - d / gaps[0, j]
            step, new_lam, back, S = newton_step(H, J, gradient, c)
            moved = np.empty_like(gaps)
            moved[0], moved[1] = step[:NUM_BOUNDED], -step[:NUM_BOUNDED]
            longest, slope = inside(gaps, moved), (gradient * step).sum()
            moves = feasibility > 10 * TOUCH
            x, share = line_search(x, step, longest, (back, S), posed, d, slope, moves)
            if share == 0.0:
                break
            turn_norm_duals(A, r, s, y, step, share)
            # z gap = d, linearised.
            dz = (d - z * moved) / gaps - z
            z += inside(z, dz) * dz
            gaps[0], gaps[1] = x[:NUM_BOUNDED] - lo, hi - x[:NUM_BOUNDED]
            lam += share * (new_lam - lam)
    return x, (iterations, stationarity, feasibility)
