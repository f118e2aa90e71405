"""The Newton step of a whole horizon: eliminated interval by interval, then Riccati.

Forces belong to one interval. With the slopes of the relaxed contact they are linear in
the steps of its ends, df = -(g + G1 d1 + G0 d0), and what remains of the dynamics,

    (A1 + J'G1) d1 - C'dl = -(A0 + J'G0) d0 + M/h dv0 + B du - r - J'g,    C d1 = -c,

one linear system, of nv - nl rows once loops are eliminated, gives d+ = A x + b u + c
for the steps x = (d, dv) of a knot and u of the efforts; velocities follow from both
ends, dv+ = (E1 d+ - E0 d) / h.
The rest is the linear-quadratic regulator's backward and forward sweep, so a step costs
O(N nv^3), and its gains are the plan's feedback.

Sums stand in loops, and products in kernels of their own: numba compiles every
expression of arrays anew, which would take a minute here.
"""

from __future__ import annotations

import numpy as np

from drakebots.control.stage import turn_columns, turn_rows, turns
from drakebots.core.kernels import (
    add_at,
    njit,
    product,
    saddle,
    solved,
    t_product,
    transposed,
)

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
def _forces(contact, slide, f, J, S, bases, E, h, friction):
    """G (3 nc, 2 nv + 1) of df = -G (d1, d0, 1) of one interval, and C (nc, 3, 3), by
    which forces of a foot answer to its rows; S is the slope of slides by d1."""
    rows, normal, drag, w = contact
    nc, nv = len(rows), J.shape[1]
    G, C = np.zeros((3 * nc, 2 * nv + 1)), np.zeros((nc, 3, 3))
    J_E1, J_E0 = J.copy(), J.copy()
    turn_columns(bases, E, J_E1)
    turn_columns(bases, E.transpose(0, 2, 1), J_E0)
    for i in range(nc):
        n = 3 * i + 2
        C[i, 2, 2] = 1 / normal[i, 1]
        G[n, 2 * nv] = rows[i, 2] / normal[i, 1]
        for j in range(nv):
            G[n, j] = normal[i, 0] / normal[i, 1] * J[n, j]
        for a in range(2):
            at, pull = 3 * i + a, friction * slide[2 * i + a] if f[n] > 0 else 0.0
            C[i, a, a], C[i, a, 2] = 1 / w[i], -pull / w[i] / normal[i, 1]
            G[at, 2 * nv] = (rows[i, a] - pull * G[n, 2 * nv]) / w[i]
            for b in range(2):
                by, m = drag[i, a, b] / w[i], 3 * i + b
                for j in range(nv):
                    G[at, j] += by * S[2 * i + b, j] + by / h * J_E1[m, j]
                    G[at, nv + j] -= by / h * J_E0[m, j]
            for j in range(nv):
                G[at, j] -= pull / w[i] * G[n, j]
    return G, C


@njit(cache=True)
def _rows(R, slopes, B, tau, G, J, bases, E, h):
    """The rows of dynamics of one interval by d1, and their right sides by (d0, dv0),
    u and 1; both transposed, as slopes are."""
    Rd, Rv, mass = slopes
    nv, nu = B.shape
    nx, one = 2 * nv, 2 * nv + nu
    system, right = np.empty((nv, nv)), np.empty((one + 1, nv))
    by_1, rate = np.empty((nv, nv)), 1 / h
    for j in range(nv):
        for i in range(nv):
            right[nv + j, i] = rate * mass[j, i]
        for i in range(nv):
            by_1[j, i] = rate * (Rv[j, i] + rate * mass[j, i])
    by_0 = by_1.copy()
    turn_rows(bases, E.transpose(0, 2, 1), by_1)
    turn_rows(bases, E, by_0)
    J_G, B_tau = product(transposed(G), J), product(B, tau)
    for j in range(nv):
        for i in range(nv):
            system[j, i] = Rd[j, i] + by_1[j, i] + J_G[j, i]
            right[j, i] = by_0[j, i] - J_G[nv + j, i]
    for i in range(nv):
        for j in range(nu):
            right[nx + j, i] = B[i, j]
        right[one, i] = B_tau[i] - R[i] - J_G[nx, i]
    return system, right


@njit(cache=True)
def eliminate(bases, h, v, B, tau, f, values, slopes, contact, relaxed):
    """d+ = A x + b u + c of every interval, and what tells forces and multipliers.

    Velocities are no unknowns of their own: v+ = (E1 d+ - E0 d) / h.

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
        A (N, nv, 2 nv), b (N, nv, nu), c (N, nv) and the blocks E (N, n, 3, 3) of
        `stage.turns`; and for :func:`steps_of_forces` and :func:`multipliers` G
        (N, 3 nc, 2 nv + 1) of df = -G (d+, d, 1), the loops' steps D (N, nl,
        2 nv + nu + 1) by x, u and 1, the slopes of dynamics by d+ (N, nv, nv),
        transposed, and C (N, nc, 3, 3), by which forces of a foot answer to its rows.
    """
    R, gap, slide, loops = values
    Rd, Rv, mass, feet, Sd, Cd = slopes
    N, nv = R.shape
    nu, nf, nl = B.shape[1], f.shape[1], loops.shape[1]
    nx = 2 * nv
    A, b, c = np.empty((N, nv, nx)), np.empty((N, nv, nu)), np.empty((N, nv))
    E = np.empty((N, len(bases), 3, 3))
    G, D = np.empty((N, nf, nx + 1)), np.empty((N, nl, nx + nu + 1))
    systems, C = np.empty((N, nv, nv)), np.empty((N, len(gap[0]), 3, 3))
    L, F, friction, slip = contact
    for k in range(N):
        E[k] = turns(bases, h * v[k])
        J, scale = transposed(feet[k]), (L, F, relaxed[k])
        touch = contact_rows(gap[k], slide[k], f[k], scale, friction, slip)
        S = transposed(Sd[k])
        G[k], C[k] = _forces(touch, slide[k], f[k], J, S, bases, E[k], h, friction)
        slopes_k = Rd[k], Rv[k], mass[k]
        H, right = _rows(R[k], slopes_k, B, tau[k], G[k], J, bases, E[k], h)
        systems[k] = H
        sides = transposed(Cd[k]), transposed(right), -loops[k]
        step, D[k] = saddle(transposed(H), *sides)
        for i in range(nv):
            for j in range(nx):
                A[k, i, j] = step[i, j]
            for j in range(nu):
                b[k, i, j] = step[i, nx + j]
            c[k, i] = step[i, nx + nu]
    return (A, b, c, E), (G, D, systems, C)


@njit(cache=True)
def steps_of_forces(x, u, G, D):
    """Steps of forces (N, 3 nc) and loops (N, nl), by those of knots and efforts."""
    (N, nf, _), nv = G.shape, x.shape[1] // 2
    df, dl = np.empty((N, nf)), np.empty((N, D.shape[1]))
    for k in range(N):
        ends = np.concatenate((x[k + 1, :nv], x[k, :nv], np.ones(1)))
        df[k] = -product(G[k], ends)
        dl[k] = product(D[k], np.concatenate((x[k], u[k], np.ones(1))))
    return df, dl


@njit(cache=True)
def multipliers(price, systems, C, feet, loops):
    """What each row of :func:`misses` (N, nv + 3 nc + nl) would cost, by what d+ does.

    Args:
        price: slopes of what is to be paid by d+ (N, nv).
        systems, C: as from :func:`eliminate`.
        feet, loops: slopes of feet and of loops, transposed, of every interval
            (N, nv, 3 nc), (N, nv, nl).
    """
    N, nv, nf = feet.shape
    nl = loops.shape[2]
    out, none = np.empty((N, nv + nf + nl)), np.zeros(nl)
    for k in range(N):
        right = np.empty((nv, 1))
        for i in range(nv):
            right[i, 0] = -price[k, i]
        by_row, by_loop = saddle(systems[k], transposed(loops[k]), right, none)
        by_force = product(transposed(feet[k]), by_row)
        for i in range(nv):
            out[k, i] = by_row[i, 0]
        for i in range(nl):
            out[k, nv + nf + i] = -by_loop[i, 0]
        for i in range(nf):
            foot, a = i // 3, i % 3
            total = 0.0
            for j in range(3):
                total += C[k, foot, j, a] * by_force[3 * foot + j, 0]
            out[k, nv + i] = total
    return out


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
def worst(rows, slide, nv, slip):
    """The largest rows of :func:`misses`, infinite for NaN: of dynamics [N m, N], of
    normals [1], of friction, over w [N], and of loops [m].

    Args:
        rows: as from there.
        slide: p of every interval (N, 2 nc).
        nv, slip: number of velocities, and speed [m/s].
    """
    loops = nv + 3 * (slide.shape[1] // 2)
    most = np.zeros(4)
    for k in range(len(rows)):
        for i in range(rows.shape[1]):
            size, kind, axis = abs(rows[k, i]), 0, (i - nv) % 3
            if i >= loops:
                kind = 3
            elif i >= nv:
                p = slide[k, 2 * ((i - nv) // 3) :]
                kind = 1 if axis == 2 else 2
                if kind == 2:
                    size /= np.sqrt(p[0] ** 2 + p[1] ** 2 + slip**2)
            most[kind] = max(most[kind], size if size == size else np.inf)
    return most


@njit(cache=True)
def _by_ends(bases, h, E, V, s):
    """x'V x/2 + s'x of x = (d1, v1), v1 = (E1 d1 - E0 d0) / h, as a quadratic of d1 and
    d0: W11, W10 and W00 (nv, nv), w1 and w0 (nv,)."""
    nv, back, rate = len(s) // 2, E.transpose(0, 2, 1), 1 / h
    P, W11, W00 = np.empty((nv, nv)), np.empty((nv, nv)), np.empty((nv, nv))
    w1, w0 = np.empty((nv, 1)), np.empty((nv, 1))
    for i in range(nv):
        w1[i, 0], w0[i, 0] = rate * s[nv + i], -rate * s[nv + i]
        for j in range(nv):
            P[i, j] = rate * V[nv + i, nv + j]
        for j in range(nv):
            W11[i, j] = rate * V[nv + i, j]
        for j in range(nv):
            W00[i, j] = rate * P[i, j]
    for part in (P, W11, w1):
        turn_rows(bases, back, part)
    for part in (W00, w0):
        turn_rows(bases, E, part)
    turn_columns(bases, back, W00)
    add_at(P, 0, 0, V[:nv, nv:], 1.0)
    W10, P_E = -rate * P, rate * P
    turn_columns(bases, back, W10)
    turn_columns(bases, E, P_E)
    add_at(W11, 0, 0, V[:nv, :nv], 1.0)
    add_at(W11, 0, 0, P_E, 1.0)
    for i in range(nv):
        w1[i, 0] += s[i]
    return W11, W10, W00, w1[:, 0].copy(), w0[:, 0].copy()


@njit(cache=True)
def _ahead(bases, h, steps, x, u):
    """x+ of one interval."""
    A, b, c, E = steps
    nv, end = len(c), np.empty(2 * len(c))
    moved, driven = product(A, x), product(b, u)
    for i in range(nv):
        end[i] = moved[i] + driven[i] + c[i]
        end[nv + i] = (end[i] - x[i]) / h
    for n in range(len(bases)):
        j = bases[n, 1]
        for i in range(3):
            rate = 0.0
            for m in range(3):
                rate += E[n, i, m] * end[j + m] - E[n, m, i] * x[j + m]
            end[nv + j + i] = rate / h
    return end


@njit(cache=True)
def _price(bases, h, E, V, s, x):
    """Slope of x'V x/2 + s'x by d of x = (d, v), which moves v by E1 / h (nv,)."""
    slope, nv = product(V, x), len(x) // 2
    rate = np.empty((nv, 1))
    for i in range(nv):
        rate[i, 0] = (slope[nv + i] + s[nv + i]) / h
    turn_rows(bases, E.transpose(0, 2, 1), rate)
    for i in range(nv):
        rate[i, 0] += slope[i] + s[i]
    return rate[:, 0].copy()


@njit(cache=True)
def _back(bases, h, steps, costs, V, s, into):
    """What is to be paid from the start of one interval, by what is from its end (V and
    s), and its gains: with W of :func:`_by_ends` and Z = W11 A + (W10, 0),

        K = H^-1 S,   H = b'W11 b + R,   S = b'Z,
        V- = A'Z + (W10, 0)'A - S'K + W00 + the costs of the knot

    Args:
        into: V-, s-, K and k0 at the start; are written.
    """
    (A, b, c, E), (Q, rates, q, R, r), (V_0, s_0, K, k0) = steps, costs, into
    (nv, nu), nx = b.shape, A.shape[1]
    W11, W10, W00, w1, w0 = _by_ends(bases, h, E, V, s)
    Z, H, Wc = product(W11, A), t_product(b, product(W11, b)), product(W11, c)
    for i in range(nv):
        Wc[i] += w1[i]
        for j in range(nv):
            Z[i, j] += W10[i, j]
    S, t, both = t_product(b, Z), product(Wc, b), np.empty((nu, nx + 1))
    for i in range(nu):
        H[i, i] += R[i]
        t[i] += r[i]
        both[i, nx] = t[i]
        for j in range(nx):
            both[i, j] = S[i, j]
    both = solved(H, both)
    for i in range(nu):
        k0[i] = both[i, nx]
        for j in range(nx):
            K[i, j] = both[i, j]
    # Half of A'W11 A on either side of the sum with its transpose.
    for i in range(nv):
        for j in range(nv):
            Z[i, j] = 0.5 * (Z[i, j] + W10[i, j])
            Z[i, nv + j] *= 0.5
    T, saved = t_product(A, Z), t_product(S, K)
    ahead, back, started = product(Wc, A), product(t, K), product(c, W10)
    for i in range(nx):
        s_0[i] = q[i] + ahead[i] - back[i]
        for j in range(nx):
            T[i, j] -= 0.5 * saved[i, j]
    for i in range(nx):
        for j in range(nx):
            V_0[i, j] = T[i, j] + T[j, i]
    for i in range(nv):
        s_0[i] += started[i] + w0[i]
        V_0[nv + i, nv + i] += rates[i]
        for j in range(nv):
            V_0[i, j] += W00[i, j] + Q[i, j]


@njit(cache=True)
def _clip(bases, h, steps, x, u, K, low, high):
    """The steps of the knots where efforts are clipped, in place, with feedback on what
    clipping changed: an unstable horizon runs away else."""
    A, b, c, E = steps
    (N, nu), nx = u.shape, x.shape[1]
    y, away = np.zeros(x.shape), np.empty(nx)
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
        y[k + 1] = _ahead(bases, h, (A[k], b[k], c[k], E[k]), y[k], u[k])
    return y


@njit(cache=True)
def regulate(bases, h, steps, Q, rates, q, R, r, low, high):
    """Steps x (N + 1, nx), u (N, nu) and gains K (N, nu, nx) of x = (d, dv),

        min sum_k d'Q d/2 + dv'S dv/2 + q'x + u'R u/2 + r'u,
        x_0 = 0,   low <= u <= high,
        x+ = (d+, v+),   d+ = A x + b u + c,   v+ = (E1 d+ - E0 d) / h

    A primal-dual active set: efforts that pass a limit are held at it, and held ones
    whose cost would fall inside are released, until none changes or PASSES are over.
    Held efforts have no feedback. Only the intervals up to the last change are swept
    anew: limits are reached early in the horizon.

    Args:
        bases, h: see `stage`, and the step.
        steps: A, b, c and E, as from :func:`eliminate`.
        Q, rates, q: (N + 1, nv, nv), the diagonal of S (N + 1, nv), and (N + 1, nx).
        R, r: diagonals (N, nu) and (N, nu).
        low, high: limits (N, nu).

    Returns:
        x and u; K, with u = u_0 - K x at every knot; and p (N, nv), the slopes of what
        is still to be paid by d+.
    """
    A, b, c, E = steps
    N, nv, nu = b.shape
    nx = 2 * nv
    held, kept = np.zeros((N, nu), np.bool_), np.zeros((N, nu))
    free, moved, pull = b.copy(), c.copy(), r.copy()
    V, s = np.empty((N + 1, nx, nx)), np.empty_like(q)
    V[N], s[N] = 0.0, q[N]
    for i in range(nv):
        V[N, nv + i, nv + i] = rates[N, i]
        for j in range(nv):
            V[N, i, j] = Q[N, i, j]
    K, k0 = np.empty((N, nu, nx)), np.empty((N, nu))
    x, u, p = np.zeros((N + 1, nx)), np.empty((N, nu)), np.empty((N, nv))
    last = N - 1
    for _ in range(PASSES + 1):
        for k in range(last, -1, -1):
            at = A[k], free[k], moved[k], E[k]
            costs = Q[k], rates[k], q[k], R[k], pull[k]
            into = V[k], s[k], K[k], k0[k]
            _back(bases, h, at, costs, V[k + 1], s[k + 1], into)
        for k in range(N):
            u[k] = -k0[k] - product(K[k], x[k])
            x[k + 1] = _ahead(bases, h, (A[k], free[k], moved[k], E[k]), x[k], u[k])
            p[k] = _price(bases, h, E[k], V[k + 1], s[k + 1], x[k + 1])
            for i in range(nu):
                if held[k, i]:
                    u[k, i] = kept[k, i]
        last, outside = -1, False
        for k in range(N):
            for i in range(nu):
                if held[k, i]:
                    slope = R[k, i] * kept[k, i] + r[k, i]
                    for j in range(nv):
                        slope += b[k, j, i] * p[k, j]
                    nearer = kept[k, i] - low[k, i] - (high[k, i] - kept[k, i])
                    if slope * nearer > 0:
                        held[k, i], last = False, k
                elif u[k, i] < low[k, i] or u[k, i] > high[k, i]:
                    kept[k, i] = min(max(u[k, i], low[k, i]), high[k, i])
                    held[k, i] = outside = True
                    last = k
        if last < 0:
            return x, u, K, p
        for k in range(last + 1):
            free[k], moved[k], pull[k] = b[k], c[k], r[k]
            for i in range(nu):
                if held[k, i]:
                    for j in range(nv):
                        moved[k, j] += b[k, j, i] * kept[k, i]
                        free[k, j, i] = 0.0
                    pull[k, i] = 0.0
    if outside:
        x = _clip(bases, h, steps, x, u, K, low, high)
    return x, u, K, p
