"""The cost of a horizon and its Gauss-Newton model.

Deviations are differences in the tangent space, e = q ⊖ r, with slope E1(e) under steps
of q. Limits of positions are logarithmic barriers in the share z of the room that is
left, relaxed to a parabola below RELAXED (Feller and Ebenbauer 2017), so that they are
finite everywhere and smooth to the second derivative.
"""

from __future__ import annotations

import numpy as np

from drakebots.core.kernels import njit
from drakebots.trajopt.mpc.tangent import difference, slope

RELAXED = 0.02
"""Share of the room between limits below which a barrier is a parabola."""


@njit(cache=True)
def barrier(z):
    """-log(z), relaxed, and its two derivatives."""
    if z > RELAXED:
        return -np.log(z), -1 / z, 1 / z**2
    y = (z - 2 * RELAXED) / RELAXED
    return 0.5 * (y * y - 1) - np.log(RELAXED), y / RELAXED, 1 / RELAXED**2


@njit(cache=True)
def _sides(x, low, high):
    """Value and derivatives in x of the barriers of both sides of a range."""
    value = first = second = 0.0
    room = 0.5 * (high - low) if np.isfinite(high - low) else 1.0
    for limit, sign in ((low, 1.0), (high, -1.0)):
        if np.isfinite(limit):
            b, b1, b2 = barrier(sign * (x - limit) / room)
            value += b
            first += sign * b1 / room
            second += b2 / room**2
    return value, first, second


@njit(cache=True)
def cost_model(bases, h, q, v, tau, wanted, weights, limits, places):
    """The cost and its Gauss-Newton model about (q, v, tau).

    Args:
        bases: see `tangent`.
        h: step.
        q, v, tau: at the knots (N + 1, nq), (N + 1, nv) and intervals (N, nu).
        wanted: positions and velocities that are asked for, shaped as q and v.
        weights: P, V, R, T, W of `MpcCost.arrays`, and the weight of limits.
        limits: lower and upper limits of positions (nq,), infinite where there is none.
        places: index of each position in a velocity, -1 for those without limits.

    Returns:
        the cost; Q (N + 1, 2 nv, 2 nv) and q (N + 1, 2 nv) by steps (d, dv) of the
        knots; diagonals R and r (N, nu) by efforts.
    """
    N, nv = len(tau), v.shape[1]
    P, V, effort, T, W, walls = weights
    low, high = limits
    Q, g = np.zeros((N + 1, 2 * nv, 2 * nv)), np.zeros((N + 1, 2 * nv))
    R, r = np.empty_like(tau), np.empty_like(tau)
    error, total = difference(bases, q, wanted[0]), 0.0
    for k in range(1, N + 1):
        E, e, dv = slope(bases, error[k]), error[k], v[k] - wanted[1][k]
        p, s = (h * P, h * V) if k < N else (T, W)
        total += 0.5 * (np.sum(p * e * e) + np.sum(s * dv * dv))
        Et = np.ascontiguousarray(E.T)
        Q[k, :nv, :nv] = (Et * p) @ E
        g[k, :nv] = Et @ (p * e)
        for j in range(nv):
            Q[k, nv + j, nv + j] = s[j]
            g[k, nv + j] = s[j] * dv[j]
        for i in range(len(low)):
            if places[i] >= 0:
                value, first, second = _sides(q[k, i], low[i], high[i])
                total += h * walls * value
                g[k, places[i]] += h * walls * first
                Q[k, places[i], places[i]] += h * walls * second
    for k in range(N):
        for i in range(tau.shape[1]):
            total += 0.5 * h * effort[i] * tau[k, i] ** 2
            r[k, i], R[k, i] = h * effort[i] * tau[k, i], h * effort[i]
    return total, Q, g, R, r
