"""The Newton step of a whole horizon: eliminated interval by interval, then Riccati.

Forces belong to one interval. With the slopes of the relaxed contact they are linear in
the steps of its ends, df = -(g + G1 d1 + G0 d0), and what remains of the dynamics,

    (A1 + J'G1) d1 - C'dl = -(A0 + J'G0) d0 + M/h dv0 + B du - r - J'g,    C d1 = -c,

one linear system of nv + nl rows, gives x+ = A x + b u + c for the steps x = (d, dv) of
a knot and u of the efforts. The rest is the linear-quadratic regulator's backward and
forward sweep, so a step costs O(N nv^3), and its gains are the plan's feedback.

Sums stand in loops, and products in kernels of their own: numba compiles every
expression of arrays anew, which would take a minute here.
"""

from __future__ import annotations

import numpy as np

from drakebots.control.stage import slope
from drakebots.core.kernels import add_at, njit, product, solved, transposed

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
    """g (3 nc,), G1 and G0 (3 nc, nv) of df = -(g + G1 d1 + G0 d0) of one interval; Sd
    by columns."""
    nc, nv = len(rows), J.shape[1]
    g = np.zeros(3 * nc)
    G1, G0 = np.zeros((3 * nc, nv)), np.zeros((3 * nc, nv))
    E0 = transposed(E1)
    for i in range(nc):
        n = 3 * i + 2
        J_E1, J_E0 = product(J[3 * i : n], E1), product(J[3 * i : n], E0)
        g[n] = rows[i, 2] / normal[i, 1]
        for j in range(nv):
            G1[n, j] = normal[i, 0] / normal[i, 1] * J[n, j]
        on = friction if f[n] > 0 else 0.0
        for a in range(2):
            pull = on * slide[2 * i + a]
            g[3 * i + a] = (rows[i, a] - pull * g[n]) / w[i]
            for j in range(nv):
                along = drag[i, a, 0] * (Sd[j, 2 * i] + J_E1[0, j] / h)
                along += drag[i, a, 1] * (Sd[j, 2 * i + 1] + J_E1[1, j] / h)
                G1[3 * i + a, j] = (along - pull * G1[n, j]) / w[i]
                along = drag[i, a, 0] * J_E0[0, j] + drag[i, a, 1] * J_E0[1, j]
                G0[3 * i + a, j] = -along / h / w[i]
    return g, G1, G0


@njit(cache=True)
def _rows(R, loops, slopes, B, tau, forces, E1, E0, h):
    """The linear system of one interval by (d1, dl), and its right sides by (d0, dv0),
    u, 1 and each of its rows."""
    Rd, Rv, mass, feet, Cd = slopes
    g, G1, G0 = forces
    (nv, nu), nl = B.shape, len(loops)
    nx, one = 2 * nv, 2 * nv + nu
    system = np.zeros((nv + nl, nv + nl))
    right = np.zeros((nv + nl, one + 1 + nv + nl))
    by_v = np.empty((nv, nv))
    for i in range(nv):
        for j in range(nv):
            by_v[i, j] = Rv[j, i] / h + mass[j, i] / h**2
    V_E1, J_G1 = product(by_v, E1), product(feet, G1)
    V_E0, J_G0 = product(by_v, E0), product(feet, G0)
    B_tau, J_g = product(B, tau), product(feet, g)
    for i in range(nv):
        for j in range(nv):
            system[i, j] = Rd[j, i] + V_E1[i, j] + J_G1[i, j]
            right[i, j] = V_E0[i, j] - J_G0[i, j]
            right[i, nv + j] = mass[j, i] / h
        for j in range(nl):
            system[i, nv + j] = -Cd[i, j]
            system[nv + j, i] = Cd[i, j]
        for j in range(nu):
            right[i, nx + j] = B[i, j]
        right[i, one] = B_tau[i] - R[i] - J_g[i]
    for i in range(nl):
        right[nv + i, one] = -loops[i]
    for i in range(nv + nl):
        right[i, one + 1 + i] = -1.0
    return system, right


@njit(cache=True)
def _by_forces(J, by_dynamics, normal, w, slide, f, friction):
    """How d1 answers to the rows of the contacts (3 nc, nv), from how it does to those
    of the dynamics (nv, nv)."""
    out = product(J, by_dynamics)
    for i in range(len(w)):
        n = 3 * i + 2
        for a in range(2):
            pull = friction * slide[2 * i + a] if f[n] > 0 else 0.0
            for j in range(out.shape[1]):
                out[n - 2 + a, j] /= w[i]
                out[n, j] -= pull * out[n - 2 + a, j]
        for j in range(out.shape[1]):
            out[n, j] /= normal[i, 1]
    return out


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
    one = nx + nu
    by_row = np.empty((nv + nl, nv))
    for k in range(N):
        E1 = slope(bases, h * v[k])
        E0 = transposed(E1)
        J = transposed(feet[k])
        rows, normal, drag, w = contact_rows(
            gap[k], slide[k], f[k], (L, F, relaxed[k]), friction, slip
        )
        forces = _forces(
            rows, normal, drag, w, slide[k], f[k], J, Sd[k], E1, h, friction
        )
        slopes_k = Rd[k], Rv[k], mass[k], feet[k], Cd[k]
        system, right = _rows(R[k], loops[k], slopes_k, B, tau[k], forces, E1, E0, h)
        g, G1, G0 = forces
        step = solved(system, right)
        d1 = np.ascontiguousarray(step[:nv, : one + 1])
        for i in range(nv):
            for j in range(nv + nl):
                by_row[j, i] = step[i, one + 1 + j]
            for j in range(nv):
                E0[i, j] /= h
        add_at(D[k], 0, 0, product(G1, d1), -1.0)
        add_at(D[k], 0, 0, G0, -1.0)
        for i in range(nf):
            D[k, i, one] -= g[i]
        add_at(D[k], nf, 0, step[nv:, : one + 1], 1.0)
        dv = product(E1, d1)
        for i in range(nv):
            for j in range(one + 1):
                dv[i, j] = dv[i, j] / h - (E0[i, j] if j < nv else 0.0)
            c[k, i], c[k, nv + i] = d1[i, one], dv[i, one]
        for first, rows_of in ((0, d1), (nv, dv)):
            add_at(A[k], first, 0, rows_of[:, :nx], 1.0)
            add_at(b[k], first, 0, rows_of[:, nx:one], 1.0)
        by_force = _by_forces(J, by_row[:nv], normal, w, slide[k], f[k], friction)
        add_at(Y[k], 0, 0, by_row[:nv], 1.0)
        add_at(Y[k], nv, 0, by_force, 1.0)
        add_at(Y[k], nv + nf, 0, by_row[nv:], 1.0)
        by_d = np.ascontiguousarray(Y[k, :, :nv])
        add_at(Y[k], 0, nv, product(by_d, E0), 1.0)
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
        for i in range(nv):
            out[k, i] = R[k, i] - effort[k, i]
        for i in range(nf):
            out[k, nv + i] = rows[i // 3, i % 3]
        for i in range(loops.shape[1]):
            out[k, nv + nf + i] = loops[k, i]
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
    slopes, offsets = np.zeros((N, nx, nx)), np.empty((N, nx))
    K, k0 = np.zeros((N, nu, nx)), np.empty((N, nu))
    for k in range(N - 1, -1, -1):
        add_at(slopes[k], 0, 0, V, 1.0)
        Bt, At = transposed(b[k]), transposed(A[k])
        BV, Vc = product(Bt, V), product(V, c[k])
        H, S, VA = product(BV, b[k]), product(BV, A[k]), product(V, A[k])
        Bs, BVc = product(Bt, s), product(BV, c[k])
        both, t = np.zeros((nu, nx + 1)), np.empty(nu)
        add_at(both, 0, 0, S, 1.0)
        for i in range(nu):
            H[i, i] += R[k, i]
            t[i] = both[i, nx] = r[k, i] + Bs[i] + BVc[i]
        gain = solved(H, both)
        add_at(K[k], 0, 0, gain[:, :nx], 1.0)
        for i in range(nu):
            k0[k, i] = gain[i, nx]
        for i in range(nx):
            offsets[k, i] = s[i]
            Vc[i] += s[i]
        ahead, back = product(At, Vc), product(transposed(K[k]), t)
        AVA, SK = product(At, VA), product(transposed(S), K[k])
        s = np.empty(nx)
        for i in range(nx):
            s[i] = q[k, i] + ahead[i] - back[i]
            for j in range(nx):
                AVA[i, j] = Q[k, i, j] + AVA[i, j] - SK[i, j]
        V = np.empty((nx, nx))
        for i in range(nx):
            for j in range(nx):
                V[i, j] = 0.5 * (AVA[i, j] + AVA[j, i])
    x, u, p = np.zeros((N + 1, nx)), np.empty((N, nu)), np.empty((N, nx))
    for k in range(N):
        feedback = product(K[k], x[k])
        for i in range(nu):
            u[k, i] = -k0[k, i] - feedback[i]
        ahead, driven = product(A[k], x[k]), product(b[k], u[k])
        for i in range(nx):
            x[k + 1, i] = ahead[i] + driven[i] + c[k, i]
        paid = product(slopes[k], x[k + 1])
        for i in range(nx):
            p[k, i] = paid[i] + offsets[k, i]
    return x, u, K, p


@njit(cache=True)
def _clip(A, b, c, x, u, K, low, high):
    """The steps of the knots where efforts are clipped, in place, with feedback on what
    clipping changed: an unstable horizon runs away else."""
    (N, nx, nu), away = b.shape, np.empty(x.shape[1])
    y = np.zeros(x.shape)
    for k in range(N):
        for j in range(nx):
            away[j] = y[k, j] - x[k, j]
        back = product(K[k], away)
        for i in range(nu):
            within = u[k, i] - back[i]
            u[k, i] = min(max(within, low[k, i]), high[k, i])
            if u[k, i] != within:
                for j in range(nx):
                    K[k, i, j] = 0.0
        ahead, driven = product(A[k], y[k]), product(b[k], u[k])
        for j in range(nx):
            y[k + 1, j] = ahead[j] + driven[j] + c[k, j]
    return y


@njit(cache=True)
def regulate_within(A, b, c, Q, q, R, r, low, high):
    """As :func:`regulate`, with low <= u <= high (N, nu).

    A primal-dual active set: efforts that pass a limit are held at it, and held ones
    whose cost would fall inside are released, until none changes or PASSES are over.
    Held efforts have no feedback.
    """
    N, nx, nu = b.shape
    held, kept = np.zeros((N, nu), np.bool_), np.zeros((N, nu))
    x, u, K, p = regulate(A, b, c, Q, q, R, r)
    for _ in range(PASSES):
        changed = False
        for k in range(N):
            for i in range(nu):
                if held[k, i]:
                    slope = 0.0
                    for j in range(nx):
                        slope += b[k, j, i] * p[k, j]
                    slope = R[k, i] * kept[k, i] + r[k, i] + slope
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
        for k in range(N):
            for i in range(nu):
                if held[k, i]:
                    for j in range(nx):
                        moved[k, j] += b[k, j, i] * kept[k, i]
                        free[k, j, i] = 0.0
                    pull[k, i] = 0.0
        x, u, K, p = regulate(A, free, moved, Q, q, R, pull)
        for k in range(N):
            for i in range(nu):
                if held[k, i]:
                    u[k, i] = kept[k, i]
    outside = False
    for k in range(N):
        for i in range(nu):
            outside = outside or u[k, i] < low[k, i] or u[k, i] > high[k, i]
    if outside:
        x = _clip(A, b, c, x, u, K, low, high)
    return x, u, K, p
