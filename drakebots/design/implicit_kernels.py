"""Numba kernels of bodies drawn by formula: parts, their blend, the grid."""

from __future__ import annotations

import numpy as np
from numba import njit

CONE, ELLIPSOID, BOX = 0, 1, 2


@njit(cache=True)
def _cone(row, x, y, z):
    # Quilez, "Rounded cone - exact".
    bx, by, bz = row[3] - row[0], row[4] - row[1], row[5] - row[2]
    ra, rb = row[6], row[7]
    px, py, pz = x - row[0], y - row[1], z - row[2]
    l2 = bx * bx + by * by + bz * bz
    rr = ra - rb
    a2 = l2 - rr * rr
    if a2 <= 0:  # One sphere holds the other.
        if rr >= 0:
            return np.sqrt(px * px + py * py + pz * pz) - ra
        qx, qy, qz = px - bx, py - by, pz - bz
        return np.sqrt(qx * qx + qy * qy + qz * qz) - rb
    il2 = 1 / l2
    t = px * bx + py * by + pz * bz
    s = t - l2
    ux, uy, uz = px * l2 - bx * t, py * l2 - by * t, pz * l2 - bz * t
    x2 = ux * ux + uy * uy + uz * uz
    y2, z2 = t * t * l2, s * s * l2
    k = (1.0 if rr > 0 else (-1.0 if rr < 0 else 0.0)) * rr * rr * x2
    if (1.0 if s > 0 else -1.0) * a2 * z2 > k:
        return np.sqrt(x2 + z2) * il2 - rb
    if (1.0 if t > 0 else -1.0) * a2 * y2 < k:
        return np.sqrt(x2 + y2) * il2 - ra
    return (np.sqrt(x2 * a2 * il2) + t * rr) * il2 - ra


@njit(cache=True)
def _local(row, x, y, z, k):
    px, py, pz = x - row[0], y - row[1], z - row[2]
    i = 6 + 3 * k
    return row[i] * px + row[i + 1] * py + row[i + 2] * pz


@njit(cache=True)
def _ellipsoid(row, x, y, z):
    k0, k1 = 0.0, 0.0
    for k in range(3):
        u = _local(row, x, y, z, k) / row[3 + k]
        k0 += u * u
        k1 += (u / row[3 + k]) ** 2
    k0, k1 = np.sqrt(k0), np.sqrt(k1)
    if k1 == 0:
        return -min(row[3], row[4], row[5])
    return k0 * (k0 - 1) / k1


@njit(cache=True)
def _box(row, x, y, z):
    outside, most = 0.0, -np.inf
    for k in range(3):
        q = abs(_local(row, x, y, z, k)) - row[3 + k]
        outside += max(q, 0.0) ** 2
        most = max(most, q)
    return np.sqrt(outside) + min(most, 0.0) - row[15]


@njit(cache=True)
def value_at(x, y, z, kinds, rows, blends, cuts):
    """The body's value at one point."""
    value = np.inf
    for n in range(len(kinds)):
        if kinds[n] == CONE:
            d = _cone(rows[n], x, y, z)
        elif kinds[n] == ELLIPSOID:
            d = _ellipsoid(rows[n], x, y, z)
        else:
            d = _box(rows[n], x, y, z)
        k = blends[n]
        if k > 0 and n > 0:
            h = max(k - abs(value - d), 0.0)
            value = min(value, d) - h * h / (4 * k)
        else:
            value = min(value, d)
    for n in range(len(cuts)):
        c = cuts[n]
        d = c[0] * x + c[1] * y + c[2] * z - c[3]
        if c[4] > 0:
            h = max(c[4] - abs(value - d), 0.0)
            value = max(value, d) + h * h / (4 * c[4])
        else:
            value = max(value, d)
    return value


@njit(cache=True)
def evaluate(points, kinds, rows, blends, cuts):
    """Values at points (n, 3)."""
    out = np.empty(len(points))
    for n in range(len(points)):
        out[n] = value_at(
            points[n, 0], points[n, 1], points[n, 2], kinds, rows, blends, cuts
        )
    return out


@njit(cache=True)
def evaluate_grid(origin, h, shape, kinds, rows, blends, cuts):
    """Values on a regular grid; blocks far from the surface get one value."""
    out = np.empty(shape)
    size = 6
    half = 0.5 * (size - 1) * h
    far = 2.5 * half * np.sqrt(3.0) + 2 * h
    for i0 in range(0, shape[0], size):
        for j0 in range(0, shape[1], size):
            for k0 in range(0, shape[2], size):
                middle = value_at(
                    origin[0] + i0 * h + half,
                    origin[1] + j0 * h + half,
                    origin[2] + k0 * h + half,
                    kinds, rows, blends, cuts,
                )  # fmt: skip
                whole = abs(middle) > far
                for i in range(i0, min(i0 + size, shape[0])):
                    for j in range(j0, min(j0 + size, shape[1])):
                        for k in range(k0, min(k0 + size, shape[2])):
                            if whole:
                                out[i, j, k] = middle
                                continue
                            out[i, j, k] = value_at(
                                origin[0] + i * h,
                                origin[1] + j * h,
                                origin[2] + k * h,
                                kinds, rows, blends, cuts,
                            )  # fmt: skip
    return out
