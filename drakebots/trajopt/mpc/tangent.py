"""Positions as a manifold: steps and differences in the tangent space.

    q1 = q0 ⊕ d,    d = q1 ⊖ q0   (nv,)

Of all coordinates these are sum and difference, but of free bases with a quaternion:
there d holds Drake's velocities times a second, a rotation vector in the world before
the translation, and

    R1 = exp([d]) R0,    d = log(R1 R0')

Under small steps d0 and d1 of q0 and q1 a difference changes by E1 d1 - E0 d0, with the
inverse left Jacobian E1(d) of the rotation and E0 = E1'; both are the identity for all
other coordinates.

`bases` (n, 2) names the first position and velocity of each such base; every other
coordinate follows in the same order in q and d.
"""

from __future__ import annotations

import numpy as np

from drakebots.core.kernels import njit


@njit(cache=True)
def retract(bases, q, d):
    """q ⊕ d of rows (k, nq) and (k, nv), as (k, nq)."""
    out = np.empty_like(q)
    for k in range(len(q)):
        i = j = b = 0
        while i < q.shape[1]:
            if b < len(bases) and bases[b, 0] == i:
                _turned(q[k, i : i + 4], d[k, j : j + 3], out[k, i : i + 4])
                i, j, b = i + 4, j + 3, b + 1
            else:
                out[k, i] = q[k, i] + d[k, j]
                i, j = i + 1, j + 1
    return out


@njit(cache=True)
def difference(bases, q1, q0):
    """q1 ⊖ q0 of rows (k, nq), as (k, nv)."""
    nv = q1.shape[1] - len(bases)
    out = np.empty((len(q1), nv))
    for k in range(len(q1)):
        i = j = b = 0
        while i < q1.shape[1]:
            if b < len(bases) and bases[b, 0] == i:
                _angles(q1[k, i : i + 4], q0[k, i : i + 4], out[k, j : j + 3])
                i, j, b = i + 4, j + 3, b + 1
            else:
                out[k, j] = q1[k, i] - q0[k, i]
                i, j = i + 1, j + 1
    return out


@njit(cache=True)
def slope(bases, d):
    """E1 (nv, nv) of one difference d (nv,); E0 is its transpose."""
    E = np.eye(len(d))
    for b in range(len(bases)):
        j = bases[b, 1]
        r = d[j : j + 3]
        square = r[0] ** 2 + r[1] ** 2 + r[2] ** 2
        if square < 1e-8:
            c = 1 / 12
        else:
            angle = np.sqrt(square)
            c = 1 / square - (1 + np.cos(angle)) / (2 * angle * np.sin(angle))
        K = np.array([[0, -r[2], r[1]], [r[2], 0, -r[0]], [-r[1], r[0], 0]])
        E[j : j + 3, j : j + 3] += -0.5 * K + c * (K @ K)
    return E


@njit(cache=True)
def _turned(quat, r, out):
    """exp([r]) after a rotation, as unit quaternions."""
    angle = np.sqrt(r[0] ** 2 + r[1] ** 2 + r[2] ** 2)
    w = np.cos(angle / 2)
    s = 0.5 if angle < 1e-8 else np.sin(angle / 2) / angle
    x, y, z = s * r[0], s * r[1], s * r[2]
    a, b, c, d = quat[0], quat[1], quat[2], quat[3]
    out[0] = w * a - x * b - y * c - z * d
    out[1] = w * b + x * a + y * d - z * c
    out[2] = w * c - x * d + y * a + z * b
    out[3] = w * d + x * c - y * b + z * a
    out /= np.sqrt(out[0] ** 2 + out[1] ** 2 + out[2] ** 2 + out[3] ** 2)


@njit(cache=True)
def _angles(quat1, quat0, out):
    """log(R1 R0'), the shorter way round."""
    a, b, c, d = quat1[0], quat1[1], quat1[2], quat1[3]
    w, x, y, z = quat0[0], -quat0[1], -quat0[2], -quat0[3]
    real = a * w - b * x - c * y - d * z
    out[0] = a * x + b * w + c * z - d * y
    out[1] = a * y - b * z + c * w + d * x
    out[2] = a * z + b * y - c * x + d * w
    if real < 0:
        real = -real
        out *= -1
    sine = np.sqrt(out[0] ** 2 + out[1] ** 2 + out[2] ** 2)
    out *= 2 / real if sine < 1e-9 else 2 * np.arctan2(sine, real) / sine
