"""The pose step's three norms: rows, smoothed values, derivatives, duals; compiled.

Rows r = A x - target (14,): 5 lengths, 4 foot headings, 5 angles, weighted; each
group's norm is smoothed to s_g = sqrt(|r_g|^2 + d^2).
"""

from __future__ import annotations

import numpy as np
from numba import njit

from drakebots.robots.gecko.step_rows import (
    ELL,
    EPS,
    NUM_X,
    foot_limb,
    heading_slopes,
)

NUM_ROWS = 14
"""Of the objective: 5 lengths, 4 foot headings, 5 angles."""

GROUPS = np.array([0, 5, 9, 14])
"""Where each group's rows begin and the last one's end."""


@njit(cache=True)
def row_matrix(weights, fixed):
    """A (14, 13): weights are of [cm], and of [rad] for the other two groups."""
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
    """Rows r = A x - target of the three norms; A is constant, see `row_matrix`."""
    for i in range(NUM_ROWS):
        total = -target[i]
        for j in range(NUM_X):
            total += A[i, j] * x[j]
        r[i] = total


@njit(cache=True)
def smoothed(r, d, s):
    """Smoothed norms s (3,) and their sum."""
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
    """y += share dy from s y = r linearised, kept within the unit balls."""
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
