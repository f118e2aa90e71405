"""The Newton step of a whole horizon: eliminated interval by interval, then Riccati.

Forces belong to one interval. With the slopes of the relaxed contact they are linear in
the steps of its ends, df = -(g + G1 d1 + G0 d0), and what remains of the dynamics,

    (A1 + J'G1) d1 - C'dl = -(A0 + J'G0) d0 + M/h dv0 + B du - r - J'g,    C d1 = -c,

one linear system of nv + nl rows, gives x+ = A x + b u + c for the steps x = (d, dv) of
a knot and u of the efforts. The rest is the linear-quadratic regulator's backward and
forward sweep, so a step costs O(N nv^3), and its gains are the plan's feedback.
"""

from __future__ import annotations

import numpy as np

from drakebots.control.stage import slope
from drakebots.core.kernels import njit

PASSES = 5
"""Times that a step is solved again within limits; the last is clipped."""


@njit(cache=True)
def contact_rows(gap, slide, f, scale, friction, slip):
    """Residuals of the relaxed contacts of one interval, and their slopes.

    Per foot, with x = phi/L, y = n/F and k = barrier/(L F),

        normal   x + y - sqrt(x^2 + y^2 + 2 k) = 0     (Kanzow 1996): x y = k, x, y > 0
        friction t w + mu n p = 0,   w = sqrt(|p|^2 + slip^2)

    Args:
        gap, slide, f: phi (nc,), p (2 nc,) and forces (3 nc,) as t1, t2, n.
        scale: L, F and k.

    Returns:
        residuals (nc, 3) of t1, t2 and n; the normal's slopes (nc, 2) by phi and n;
        those of friction (nc, 2, 2) by p; and w (nc,).
    """
    nc = len(gap)
    rows, normal = np.empty((nc, 3)), np.empty((nc, 2))
    drag, w = np.empty((nc, 2, 2)), np.empty(nc)
    L, F, k = scale
    for i in range(nc):
        x, y = gap[i] / L, f[3 * i + 2] / F
        s = np.sqrt(x * x + y * y + 2 * k)
        # With s^2 - z^2 over s + z nothing is lost where one of x, y is large.
        by_x = (y * y + 2 * k) / (s * (s + x)) if x > 0 else 1 - x / s
        by_y = (x * x + 2 * k) / (s * (s + y)) if y > 0 else 1 - y / s
        if x > y:
            rows[i, 2] = y - (y * y + 2 * k) / (s + x)
        else:
            rows[i, 2] = x - (x * x + 2 * k) / (s + y)
        normal[i, 0], normal[i, 1] = by_x / L, by_y / F
        p = slide[2 * i : 2 * i + 2]
        t = f[3 * i : 3 * i + 2]
        n = max(f[3 * i + 2], 0.0)
        w[i] = np.sqrt(p[0] ** 2 + p[1] ** 2 + slip**2)
        # Slopes take t within the cone, where they stay positive semidefinite.
        size = np.sqrt(t[0] ** 2 + t[1] ** 2)
        inside = min(1.0, friction * n / size) if size > 0 else 1.0
        for a in range(2):
            rows[i, a] = t[a] * w[i] + friction * n * p[a]
            for b in range(2):
                drag[i, a, b] = inside * t[a] * p[b] / w[i]
            drag[i, a, a] += friction * n
    return rows, normal, drag, w


@njit(cache=True)
def _forces(rows, normal, drag, w, slide, f, J, Sd, E1, h, friction):
    """g (3 nc,), G1 and G0 (3 nc, nv) of df = -(g + G1 d1 + G0 d0) of one interval."""
    nc, nv = len(rows), J.shape[1]
    g = np.zeros(3 * nc)
    G1, G0 = np.zeros((3 * nc, nv)), np.zeros((3 * nc, nv))
    for i in range(nc):
        Jt = np.ascontiguousarray(J[3 * i : 3 * i + 2])
        by_1 = Sd[2 * i : 2 * i + 2] + Jt @ E1 / h
        by_0 = -(Jt @ np.ascontiguousarray(E1.T)) / h
        g[3 * i + 2] = rows[i, 2] / normal[i, 1]
        G1[3 * i + 2] = normal[i, 0] / normal[i, 1] * J[3 * i + 2]
        on = friction if f[3 * i + 2] > 0 else 0.0
        for a in range(2):
            pull = on * slide[2 * i + a]
            g[3 * i + a] = (rows[i, a] - pull * g[3 * i + 2]) / w[i]
            for j in range(nv):
                along = drag[i, a, 0] * by_1[0, j] + drag[i, a, 1] * by_1[1, j]
                G1[3 * i + a, j] = (along - pull * G1[3 * i + 2, j]) / w[i]
                along = drag[i, a, 0] * by_0[0, j] + drag[i, a, 1] * by_0[1, j]
                G0[3 * i + a, j] = along / w[i]
    return g, G1, G0


@njit(cache=True)
def eliminate(bases, h, v, B, tau, f, values, slopes, contact, relaxed):
    """x+ = A x + b u + c of every interval, and the forces' steps.

    Args:
        bases: see `stage`.
        h: step.
        v: velocities at the intervals' ends (N, nv).
        B: actuation (nv, nu).
        tau, f: efforts (N, nu) and forces (N, 3 nc).
        values, slopes: results of `Stage.functions`, slopes transposed (N, columns,
            rows).
        contact: L, F, mu and slip.
        relaxed: k of every interval (N,).

    Returns:
        A (N, 2 nv, 2 nv), b (N, 2 nv, nu), c (N, 2 nv); for the forces and loops
        their steps D (N, 3 nc + nl, 2 nv + nu + 1) by x, u and 1; and how x+ would
        answer to the rows of :func:`misses`, Y (N, rows, 2 nv).
    """
    R, gap, slide, loops = values
    Rd, Rv, mass, feet, Sd, Cd = slopes
    N, nv = R.shape
    nu, nf, nl = B.shape[1], f.shape[1], loops.shape[1]
    nx = 2 * nv
    A, b, c = np.zeros((N, nx, nx)), np.zeros((N, nx, nu)), np.zeros((N, nx))
    D = np.zeros((N, nf + nl, nx + nu + 1))
    Y = np.zeros((N, nv + nf + nl, nx))
    L, F, friction, slip = contact
    system = np.zeros((nv + nl, nv + nl))
    right = np.zeros((nv + nl, nx + nu + 1 + nv + nl))
    right[:, nx + nu + 1 :] = -np.eye(nv + nl)
    for k in range(N):
        E1 = slope(bases, h * v[k])
        E0 = np.ascontiguousarray(E1.T)
        M = np.ascontiguousarray(mass[k].T)
        by_v = np.ascontiguousarray(Rv[k].T) / h + M / h**2
        J = np.ascontiguousarray(feet[k].T)
        rows, normal, drag, w = contact_rows(
            gap[k], slide[k], f[k], (L, F, relaxed[k]), friction, slip
        )
        g, G1, G0 = _forces(
            rows, normal, drag, w, slide[k], f[k], J, Sd[k].T, E1, h, friction
        )
        Jt = np.ascontiguousarray(J.T)
        system[:nv, :nv] = Rd[k].T + by_v @ E1 + Jt @ G1
        system[:nv, nv:] = -Cd[k]
        system[nv:, :nv] = Cd[k].T
        right[:nv, :nv] = by_v @ E0 - Jt @ G0
        right[:nv, nv:nx] = M / h
        right[:nv, nx : nx + nu] = B
        right[:nv, nx + nu] = B @ tau[k] - R[k] - Jt @ g
        right[nv:, nx + nu] = -loops[k]
        solved = np.linalg.solve(system, right)
        step, by_row = solved[:, : nx + nu + 1], solved[:nv, nx + nu + 1 :]
        d1 = np.ascontiguousarray(step[:nv])
        D[k, :nf] = -(G1 @ d1)
        D[k, :nf, :nv] -= G0
        D[k, :nf, nx + nu] -= g
        D[k, nf:] = step[nv:]
        dv = E1 @ d1 / h
        dv[:, :nv] -= E0 / h
        A[k, :nv], A[k, nv:] = d1[:, :nx], dv[:, :nx]
        b[k, :nv], b[k, nv:] = d1[:, nx : nx + nu], dv[:, nx : nx + nu]
        c[k, :nv], c[k, nv:] = d1[:, nx + nu], dv[:, nx + nu]
        by_row = np.ascontiguousarray(by_row)
        by_force = np.ascontiguousarray(by_row[:, :nv]) @ Jt
        for i in range(len(w)):
            n = 3 * i + 2
            for a in range(2):
                by_force[:, n - 2 + a] /= w[i]
                pull = friction * slide[k, 2 * i + a] if f[k, n] > 0 else 0.0
                by_force[:, n] -= pull * by_force[:, n - 2 + a]
            by_force[:, n] /= normal[i, 1]
        Y[k, :nv, :nv] = by_row[:, :nv].T
        Y[k, nv : nv + nf, :nv] = by_force.T
        Y[k, nv + nf :, :nv] = by_row[:, nv:].T
        Y[k, :, nv:] = np.ascontiguousarray(Y[k, :, :nv]) @ (E0 / h)
    return A, b, c, D, Y


@njit(cache=True)
def misses(values, effort, f, contact, relaxed):
    """All rows of all intervals (N, nv + 3 nc + nl): dynamics, contacts and loops.

    Args:
        values: rows, as :func:`eliminate` takes them.
        effort: B u (N, nv).
        f, contact, relaxed: as there.
    """
    R, gap, slide, loops = values
    (N, nv), nf = R.shape, f.shape[1]
    L, F, friction, slip = contact
    out = np.empty((N, nv + nf + loops.shape[1]))
    for k in range(N):
        scale = (L, F, relaxed[k])
        rows = contact_rows(gap[k], slide[k], f[k], scale, friction, slip)[0]
        out[k, :nv] = R[k] - effort[k]
        out[k, nv : nv + nf] = rows.ravel()
        out[k, nv + nf :] = loops[k]
    return out


@njit(cache=True)
def regulate(A, b, c, Q, q, R, r):
    """Steps x (N + 1, nx), u (N, nu) and gains K (N, nu, nx) of

        min sum_k x'Q x/2 + q'x + u'R u/2 + r'u,   x+ = A x + b u + c,  x_0 = 0

    Args:
        A, b, c: as from :func:`eliminate`.
        Q, q: (N + 1, nx, nx) and (N + 1, nx).
        R, r: diagonals (N, nu) and (N, nu).

    Returns:
        x and u; K, with u = u_0 - K x at every knot; and p (N, nx), the slopes of what
        is still to be paid after x+ by c.
    """
    N, nx, nu = b.shape
    V, s = Q[N].copy(), q[N].copy()
    slopes, offsets = np.empty((N, nx, nx)), np.empty((N, nx))
    K, k0 = np.empty((N, nu, nx)), np.empty((N, nu))
    for k in range(N - 1, -1, -1):
        slopes[k], offsets[k] = V, s
        Bt = np.ascontiguousarray(b[k].T)
        BV = Bt @ V
        H = BV @ b[k]
        for i in range(nu):
            H[i, i] += R[k, i]
        both = np.empty((nu, nx + 1))
        S, t = BV @ A[k], r[k] + Bt @ s + BV @ c[k]
        both[:, :nx], both[:, nx] = S, t
        gain = np.linalg.solve(H, both)
        K[k], k0[k] = gain[:, :nx], gain[:, nx]
        At = np.ascontiguousarray(A[k].T)
        s = q[k] + At @ (s + V @ c[k]) - np.ascontiguousarray(K[k].T) @ t
        V = Q[k] + At @ (V @ A[k]) - np.ascontiguousarray(S.T) @ K[k]
        V = 0.5 * (V + V.T)
    x, u, p = np.zeros((N + 1, nx)), np.empty((N, nu)), np.empty((N, nx))
    for k in range(N):
        u[k] = -k0[k] - K[k] @ x[k]
        x[k + 1] = A[k] @ x[k] + b[k] @ u[k] + c[k]
        p[k] = slopes[k] @ x[k + 1] + offsets[k]
    return x, u, K, p


@njit(cache=True)
def regulate_within(A, b, c, Q, q, R, r, low, high):
    """As :func:`regulate`, with low <= u <= high (N, nu).

    A primal-dual active set: efforts that pass a limit are held at it, and held ones
    whose cost would fall inside are released, until none changes or PASSES are over.
    Held efforts have no feedback.
    """
    held, kept = np.zeros(r.shape, np.bool_), np.zeros(r.shape)
    x, u, K, p = regulate(A, b, c, Q, q, R, r)
    for _ in range(PASSES):
        changed = False
        for k in range(len(u)):
            for i in range(u.shape[1]):
                if held[k, i]:
                    slope = R[k, i] * kept[k, i] + r[k, i] + np.sum(b[k, :, i] * p[k])
                    if slope * (kept[k, i] - low[k, i] > high[k, i] - kept[k, i]) > 0:
                        held[k, i], changed = False, True
                    if slope * (kept[k, i] - low[k, i] < high[k, i] - kept[k, i]) < 0:
                        held[k, i], changed = False, True
                elif u[k, i] < low[k, i] or u[k, i] > high[k, i]:
                    kept[k, i] = min(max(u[k, i], low[k, i]), high[k, i])
                    held[k, i] = changed = True
        if not changed:
            break
        free, moved, pull = b.copy(), c.copy(), r.copy()
        for k in range(len(u)):
            for i in range(u.shape[1]):
                if held[k, i]:
                    moved[k] += b[k, :, i] * kept[k, i]
                    free[k, :, i], pull[k, i] = 0.0, 0.0
        x, u, K, p = regulate(A, free, moved, Q, q, R, pull)
        u = np.where(held, kept, u)
    if np.any(u < low) or np.any(u > high):
        # With feedback on what clipping changed: an unstable horizon runs away else.
        y = np.zeros_like(x)
        for k in range(len(u)):
            within = u[k] - K[k] @ (y[k] - x[k])
            u[k] = np.minimum(np.maximum(within, low[k]), high[k])
            K[k][u[k] != within] = 0.0
            y[k + 1] = A[k] @ y[k] + b[k] @ u[k] + c[k]
        x = y
    return x, u, K, p
