"""Contacts of a frame under given torques, by projected Gauss-Seidel.

With y = Y f + y_0 (as forces) it looks for

    0 <= f_n  perp  y_n >= 0
    f_t = the point of |f_x| + |f_y| <= mu f_n nearest to f_t - y_t / d

which is the complementarity of eq. (12) with its four directions. The compliance of
the patches makes Y positive definite, whatever the number of patches on a link.
"""

from __future__ import annotations

import numba
import numpy as np

from drakebots.errors import NoSolution

SWEEPS = 20_000


def contact_forces(
    Y: np.ndarray,
    y0: np.ndarray,
    friction: float,
    start: np.ndarray | None = None,
    tolerance: float = 1e-11,
) -> np.ndarray:
    """Forces f (k, 3) of a frame's contacts [N].

    Args:
        Y, y0: displacement as forces (3 k, 3 k), (3 k,) [N].
        friction: mu.
        start: forces to start from (k, 3) [N].
        tolerance: largest change in a sweep, of the largest force.

    Raises:
        NoSolution: when the sweeps do not settle.
    """
    f = np.zeros(len(y0)) if start is None else np.array(start, float).ravel()
    change = _sweep(
        np.ascontiguousarray(Y), np.ascontiguousarray(y0), friction, f, tolerance
    )
    if not np.isfinite(change) or change > 100 * tolerance:
        raise NoSolution(
            f"contacts: {SWEEPS} sweeps did not settle; take a larger compliance",
            {"change of a force [N]": float(change)},
        )
    return f.reshape(-1, 3)


@numba.njit(cache=True)
def _sweep(Y, y0, friction, f, tolerance):
    n = len(y0)
    worst = 0.0
    for _ in range(SWEEPS):
        worst, largest = 0.0, 1.0
        for i in range(0, n, 3):
            d = max(Y[i, i], Y[i + 1, i + 1])
            normal = f[i + 2] - (Y[i + 2] @ f + y0[i + 2]) / Y[i + 2, i + 2]
            normal = max(0.0, normal)
            worst = max(worst, abs(normal - f[i + 2]))
            f[i + 2] = normal
            a = f[i] - (Y[i] @ f + y0[i]) / d
            b = f[i + 1] - (Y[i + 1] @ f + y0[i + 1]) / d
            # Projection on the square |a| + |b| <= r.
            r = friction * normal
            sa, sb = np.sign(a), np.sign(b)
            a, b = abs(a), abs(b)
            over = a + b - r
            if over > 0:
                a, b = a - over / 2, b - over / 2
                if a < 0:
                    a, b = 0.0, r
                elif b < 0:
                    a, b = r, 0.0
            a, b = sa * a, sb * b
            worst = max(worst, abs(a - f[i]), abs(b - f[i + 1]))
            f[i], f[i + 1] = a, b
            largest = max(largest, normal)
        worst /= largest
        if worst <= tolerance:
            break
    return worst
