"""The pose step's objective and constraints with exact derivatives, compiled.

The variables x (13,) are alpha (5) [rad], ell (5) [cm], eps [rad] and p1 (2) [cm].

**Constraints**: positions of the fixed feet. An arc of length l that starts in
direction th and bends by u ends at

    l e^{i th} G(u),   G(u) = int_0^1 e^{i s u} ds = (e^{iu} - 1)/(iu)

in the complex plane, so first and second derivatives need G' and G'' only:
G' = (e^{iu} - G)/u and G'' = (i e^{iu} - 2 G')/u, with series near u = 0.

**Objective**: the sum of three norms |r_g| of the rows r = A x - target (14,),
weighted: 5 lengths, 4 foot headings, 5 angles. Each norm is smoothed to
s_g = sqrt(|r_g|^2 + d^2), and has a dual variable y_g.
"""

from __future__ import annotations

import numpy as np

from drakebots.core.kernels import njit

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
def heading_slopes(foot):
    """d phi / d (alpha_2, alpha_limb); d phi / d eps is 1."""
    _, _, rear, sign = foot_limb(foot)
    return (0.5 if rear else -0.5), sign


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
        z += _add_arc(
            x[EPS] - x[2] / 2 + np.pi, -0.5, x[2], 1.0, x[ELL + 2], 2, weight, J, H
        )
    z += _add_arc(
        x[EPS] + half * x[2] + side * np.pi / 2,
        half,
        sign * x[limb],
        sign,
        x[ELL + limb],
        limb,
        weight,
        J,
        H,
    )
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
    second = np.empty((3, 3))
    second[0, 0] = (weight * (-length * g)).real
    second[0, 1] = second[1, 0] = (weight * (1j * length * d)).real
    second[0, 2] = second[2, 0] = (weight * (1j * g)).real
    second[1, 1] = (weight * (length * h)).real
    second[1, 2] = second[2, 1] = (weight * d).real
    second[2, 2] = 0.0
    columns = (EPS, 2, limb, ELL + limb)
    # map[k] = d(th, u, l) / d x[columns[k]]; the torso's own bend is alpha_2.
    slopes = np.zeros((4, 3))
    slopes[0, 0] = 1.0
    slopes[1, 0] = th_2
    slopes[2, 1] = u_limb
    slopes[3, 2] = 1.0
    for a in range(4):
        value = 0j
        for i in range(3):
            value += slopes[a, i] * first[i]
        J[0, columns[a]] += value.real
        J[1, columns[a]] += value.imag
        for b in range(4):
            total = 0.0
            for i in range(3):
                for j in range(3):
                    total += slopes[a, i] * second[i, j] * slopes[b, j]
            H[columns[a], columns[b]] += total
    return length * g


NUM_ROWS = 14
"""Rows of the objective: 5 lengths, 4 foot headings, 5 angles."""

GROUPS = np.array([0, 5, 9, 14])
"""First row of each norm, and the number of rows."""


@njit(cache=True)
def row_matrix(weights, fixed):
    """A (14, 13); weights (3,) per cm, rad and rad."""
    A = np.zeros((NUM_ROWS, NUM_X))
    for i in range(5):
        A[i, ELL + i] = weights[0]
        A[9 + i, i] = weights[2]
    for foot in range(4):
        if fixed[foot]:
            by_torso, by_limb = heading_slopes(foot)
            limb = foot_limb(foot)[0]
            A[5 + foot, EPS] = weights[1]
            A[5 + foot, 2] = weights[1] * by_torso
            A[5 + foot, limb] = weights[1] * by_limb
    return A


@njit(cache=True)
def objective_rows(x, target, A, r):
    """r = A x - target, with the constant A of :func:`row_matrix`."""
    for i in range(NUM_ROWS):
        total = -target[i]
        for j in range(NUM_X):
            total += A[i, j] * x[j]
        r[i] = total


@njit(cache=True)
def smoothed(r, d, s):
    """Writes the smoothed norms s (3,); returns their sum."""
    total = 0.0
    for g in range(3):
        square = d * d
        for i in range(GROUPS[g], GROUPS[g + 1]):
            square += r[i] * r[i]
        s[g] = np.sqrt(square)
        total += s[g]
    return total


@njit(cache=True)
def norm_gradient(A, r, s):
    """sum_g A_g' r_g / s_g (13,)."""
    gradient = np.zeros(NUM_X)
    for g in range(3):
        for i in range(GROUPS[g], GROUPS[g + 1]):
            for j in range(NUM_X):
                gradient[j] += A[i, j] * r[i] / s[g]
    return gradient


@njit(cache=True)
def norm_hessian(A, r, y, s, H):
    """H += sum_g A_g' (I - (y_g r_g' + r_g y_g')/(2 s_g)) A_g / s_g."""
    for g in range(3):
        first, last = GROUPS[g], GROUPS[g + 1]
        at_y, at_r = np.zeros(NUM_X), np.zeros(NUM_X)
        for i in range(first, last):
            for j in range(NUM_X):
                at_y[j] += A[i, j] * y[i]
                at_r[j] += A[i, j] * r[i]
        for a in range(NUM_X):
            for b in range(NUM_X):
                total = -(at_y[a] * at_r[b] + at_r[a] * at_y[b]) / (2 * s[g])
                for i in range(first, last):
                    total += A[i, a] * A[i, b]
                H[a, b] += total / s[g]


@njit(cache=True)
def turn_norm_duals(A, r, s, y, step, share):
    """y += share dy with dy from s y = r linearised; y stays within unit balls."""
    for g in range(3):
        first, last = GROUPS[g], GROUPS[g + 1]
        dr, along, length = np.zeros(NUM_ROWS), 0.0, 0.0
        for i in range(first, last):
            for j in range(NUM_X):
                dr[i] += A[i, j] * step[j]
            along += r[i] * dr[i] / s[g]
        for i in range(first, last):
            y[i] += share * ((dr[i] - y[i] * along + r[i]) / s[g] - y[i])
            length += y[i] * y[i]
        if length > 1.0:
            for i in range(first, last):
                y[i] /= np.sqrt(length)
