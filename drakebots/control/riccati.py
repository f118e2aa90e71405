"""The Newton step of a whole horizon: eliminated interval by interval, then Riccati.

Forces belong to one interval. With the slopes of the relaxed contact they are linear in
the steps of its end, df = -(G (d, dv) + g), so that they join the dynamics' own slopes,

    D d+ + K dv+ - M/h dv - C'dl = B du - r,    C d+ = -c,    dv+ = (E1 d+ - E0 d) / h

with D = D' + J'G_d, K = K' + M/h + J'G_v, r = r' + J'g. What loops determine follows
from the rest (constraint embedding, arXiv 2311.13732): d = N y + a at every knot, with
C N = 0 and C a = -c, so that velocities are dv+ = U (y+, y) + w and the dynamics

    y+ = F (y, y-, u, 1)

with the knot before, y-, in the place of velocities. The rest is the linear-quadratic
regulator's backward and forward sweep, so a step costs O(N (nv - nl)^3), and its gains
are the plan's feedback. Slopes are stored transposed, and N with few entries is taken
row by row: HAMR's legs have eight coordinates of which two are free.

Sums stand in loops, and products in kernels of their own: numba compiles every
expression of arrays anew, which would take a minute here.
"""

from __future__ import annotations

from collections import namedtuple

import numpy as np

from drakebots.control.stage import contact_rows, turn_columns, turns
from drakebots.core.kernels import (
    njit,
    product,
    reduced,
    solved,
    t_product,
    transposed,
)

PASSES = 5
"""Times that a step is solved again within limits; the last is clipped."""


Knots = namedtuple("Knots", "N a w free spans E")
"""Steps of knots by those of free coordinates: d = N y + a, dv+ = U (y+, y) + w,
with U by :func:`rates`.

Attributes:
    N: transposed (N + 1, nf, nv); the first knot has the second one's.
    a: (N + 1, nv).
    w: (N, nv).
    free: which coordinates are y (N + 1, nf).
    spans: where rows of N and U have entries (N + 1, nf, 2).
    E: blocks of `stage.turns` (N, n, 3, 3).
"""

Rows = namedtuple("Rows", "G C inverse dependent W")
"""What tells the forces of an interval and the prices of its rows.

Attributes:
    G: of df = -G (d+, dv+, 1) (N, 3 nc, 2 nv + 1).
    C: by which forces of a foot answer to its rows (N, nc, 3, 3).
    inverse: of what multiplies y+, N'(D N + K U), of every interval (N, nf, nf).
    dependent: which coordinates loops determine (N, nl).
    W: inverse of their columns in C (N, nl, nl).
"""


@njit(cache=True)
def _add(W, spans, X, into, factor):
    """Adds factor W X to a matrix; a row of W has entries within its span only."""
    for row in range(len(W)):
        for k in range(spans[row, 0], spans[row, 1]):
            w = factor * W[row, k]
            for i in range(X.shape[1]):
                into[row, i] += w * X[k, i]


@njit(cache=True)
def _spans(bases, N):
    """First and last entry of each row of N, and of what `turn_columns` makes of it."""
    out = np.empty((len(N), 2), np.int64)
    for i in range(len(N)):
        first, last = N.shape[1], 0
        for j in range(N.shape[1]):
            if N[i, j] != 0.0:
                first, last = min(first, j), j + 1
        for j in bases[:, 1]:
            if first < j + 3 and last > j:
                first, last = min(first, j), max(last, j + 3)
        out[i] = first, last
    return out


@njit(cache=True)
def _forces(contact, slide, f, J, S, friction, G):
    """Writes G (3 nc, 2 nv + 1) of df = -G (d, dv, 1) of one interval, and returns
    C (nc, 3, 3), by which forces of a foot answer to its rows; S is the slope of slides
    by d."""
    rows, normal, drag, w = contact
    nc, nv = len(rows), J.shape[1]
    C = np.zeros((nc, 3, 3))
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
            for j in range(nv):
                G[at, j] = -pull / w[i] * G[n, j]
            for b in range(2):
                by, m = drag[i, a, b] / w[i], 3 * i + b
                for j in range(nv):
                    G[at, j] += by * S[2 * i + b, j]
                    G[at, nv + j] += by * J[m, j]
    return C


@njit(cache=True)
def _embed(C, e, N, a, free, dependent, W):
    """Writes of one knot, whose loops are to move by e, what `Knots` and `Rows` say."""
    nv, is_free = C.shape[1], np.ones(C.shape[1], np.bool_)
    dependent[:], R = reduced(C)
    W[:] = R[:, nv:]
    for i, j in enumerate(dependent):
        is_free[j], a[j] = False, np.sum(W[i] * e)
    free[:] = np.flatnonzero(is_free)
    for row, j in enumerate(free):
        N[row, j] = 1.0
        for i, k in enumerate(dependent):
            N[row, k] = -R[i, j]


@njit(cache=True)
def rates(bases, h, E, after, before):
    """What steps of two knots, transposed (n, nv), add to the rate between them:
    (E1 X)' / h above -(E0 Y)' / h (2 n, nv), for X' `after` and Y' `before`."""
    n, rate = len(after), 1 / h
    out = np.empty((2 * n, after.shape[1]))
    for i in range(n):
        for j in range(after.shape[1]):
            out[i, j], out[n + i, j] = rate * after[i, j], -rate * before[i, j]
    turn_columns(bases, E.transpose(0, 2, 1), out[:n])
    turn_columns(bases, E, out[n:])
    return out


@njit(cache=True)
def _knots(bases, h, v, loops, slopes):
    """`Knots` of a horizon, and the dependent coordinates and W of `Rows`."""
    (count, nv), nl = v.shape, loops.shape[1]
    nf = nv - nl
    N, a = np.zeros((count + 1, nf, nv)), np.zeros((count + 1, nv))
    free = np.empty((count + 1, nf), np.int64)
    spans = np.empty((count + 1, nf, 2), np.int64)
    dependent, W = np.empty((count, nl), np.int64), np.empty((count, nl, nl))
    w, E = np.empty((count, nv)), np.empty((count, len(bases), 3, 3))
    for k in range(count):
        if nl > 0 or k == 0:
            at = N[k + 1], a[k + 1], free[k + 1], dependent[k], W[k]
            _embed(transposed(slopes[k]), -loops[k], *at)
            spans[k + 1] = _spans(bases, N[k + 1])
        else:
            N[k + 1], free[k + 1], spans[k + 1] = N[k], free[k], spans[k]
    N[0], free[0], spans[0] = N[1], free[1], spans[1]
    for k in range(count):
        E[k] = turns(bases, h * v[k])
        w[k] = rates(bases, h, E[k], a[k + 1 : k + 2], a[k : k + 1]).sum(axis=0)
    return Knots(N, a, w, free, spans, E), dependent, W


@njit(cache=True)
def _reduce(k, bases, h, knots, D, K, M, r, B):
    """F of one interval, and the inverse of what multiplies y+."""
    N, w, E, spans = knots.N, knots.w, knots.E, knots.spans
    U, rate = rates(bases, h, E[k], N[k + 1], N[k]), 1 / h
    nf, nv = N[k].shape
    two, three, one = 2 * nf, 3 * nf, 3 * nf + B.shape[1]
    # Transposed: what multiplies y+, and the right sides by y, y-, u and 1.
    ends, rest = np.zeros((one + 1, nv)), r.copy()
    _add(N[k + 1], spans[k + 1], D, ends[:nf], 1.0)
    _add(U[:nf], spans[k + 1], K, ends[:nf], 1.0)
    _add(U[nf:], spans[k], K, ends[nf:two], -1.0)
    if k > 0:
        U = rates(bases, h, E[k - 1], N[k], N[k - 1])
        _add(U[:nf], spans[k], M, ends[nf:two], rate)
        _add(U[nf:], spans[k - 1], M, ends[two:three], rate)
    else:
        _add(N[0], spans[0], M, ends[two:three], rate)
    if nf < nv:
        rest += product(knots.a[k + 1], D) + product(w[k], K)
        if k > 0:
            rest -= rate * product(w[k - 1], M)
    ends[three:one], ends[one] = B.T, -rest
    system = np.zeros((nf, one + 1 + nf))
    for i in range(nf):
        system[i, one + 1 + i] = 1.0
    _add(N[k + 1], spans[k + 1], transposed(ends), system, 1.0)
    right, last = solved(system[:, :nf], system[:, nf:]), one + 1 - nf
    return right[:, :last].copy(), right[:, last:].copy()


@njit(cache=True)
def eliminate(bases, h, v, B, tau, f, values, slopes, contact, relaxed):
    """y+ = F (y, y-, u, 1) of every interval, and what tells all else.

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
        F (N, nf, 2 nf + nu + 1), of the first interval by y and its rate in place of
        y-; `Knots`; and `Rows`.

    Raises:
        LinAlgError: where loops or dynamics leave a step undetermined.
    """
    R, gap, slide, loops = values
    Rd, Rv, mass, feet, Sd, Cd = slopes
    N, nv = R.shape
    nu, nf, nc = B.shape[1], nv - loops.shape[1], gap.shape[1]
    F, inverse = np.empty((N, nf, 2 * nf + nu + 1)), np.empty((N, nf, nf))
    D, K, r = np.empty((nv, nv)), np.empty((nv, nv)), np.empty(nv)
    G, C = np.zeros((N, 3 * nc, 2 * nv + 1)), np.empty((N, nc, 3, 3))
    length, force, friction, slip = contact
    knots, dependent, W = _knots(bases, h, v, loops, Cd)
    rate = 1 / h
    for k in range(N):
        J, scale = transposed(feet[k]), (length, force, relaxed[k])
        touch = contact_rows(gap[k], slide[k], f[k], scale, friction, slip)
        C[k] = _forces(touch, slide[k], f[k], J, transposed(Sd[k]), friction, G[k])
        pushed, pull = t_product(G[k], J), product(B, tau[k])
        for i in range(nv):
            r[i] = R[k, i] - pull[i] + pushed[2 * nv, i]
            for j in range(nv):
                D[i, j] = Rd[k, i, j] + pushed[i, j]
                K[i, j] = Rv[k, i, j] + rate * mass[k, i, j] + pushed[nv + i, j]
        F[k], inverse[k] = _reduce(k, bases, h, knots, D, K, mass[k], r, B)
    return F, knots, Rows(G, C, inverse, dependent, W)


@njit(cache=True)
def steps_of(bases, h, knots, z):
    """Steps d and dv of all knots (N + 1, 2 nv), by z = (y, y-) (N + 1, 2 nf); zero
    at the first, which is measured."""
    count, nf, nv = knots.N.shape
    d, dv = np.zeros((count, nv)), np.zeros((count, nv))
    for k in range(1, count):
        d[k] = product(z[k, :nf], knots.N[k]) + knots.a[k]
        both = rates(bases, h, knots.E[k - 1], d[k : k + 1], d[k - 1 : k])
        dv[k] = both[0] + both[1]
    return np.hstack((d, dv))


@njit(cache=True)
def steps_of_forces(h, x, pull, now, slopes, rows):
    """Steps of forces (N, 3 nc) and loops (N, nl).

    Args:
        h: step.
        x: steps of all knots (N + 1, 2 nv).
        pull: B u (N, nv), by the steps of efforts.
        now: rows of dynamics, as `stage.misses` has them first (N, nv or more).
        slopes: as :func:`eliminate` takes them.
        rows: from there.
    """
    Rd, Rv, mass, feet, _, _ = slopes
    (N, nf, _), nl, nv = rows.G.shape, rows.dependent.shape[1], pull.shape[1]
    df, dl, end = np.empty((N, nf)), np.zeros((N, nl)), np.ones(2 * nv + 1)
    for k in range(N):
        end[: 2 * nv] = x[k + 1]
        df[k] = -product(rows.G[k], end)
        if nl > 0:
            d, v, faster = x[k + 1, :nv], x[k + 1, nv:], x[k + 1, nv:] - x[k, nv:]
            left = product(d, Rd[k]) + product(v, Rv[k]) - product(feet[k], df[k])
            left += now[k, :nv] + product(faster, mass[k]) / h - pull[k]
            for i in range(nl):
                for m in range(nl):
                    dl[k, m] += rows.W[k, i, m] * left[rows.dependent[k, i]]
    return df, dl


@njit(cache=True)
def multipliers(bases, h, x, model, slopes, knots, rows):
    """What each row of `stage.misses` (N, nv + 3 nc + nl) would cost. From the last
    interval to the first the slope of all costs and rows by d+ is zero,

        q_d + D'm + (E1'p - E0'p+) / h + C'm_l = 0,    p = q_v + K'm - M'm+ / h

    with q the slopes of the costs at the end of the step, and m those of dynamics.

    Args:
        bases, h: see `stage`, and the step.
        x: steps (d, dv) of all knots (N + 1, 2 nv).
        model: that of `cost_model`.
        slopes: as :func:`eliminate` takes them.
        knots, rows: from there.
    """
    Rd, Rv, mass, feet, _, _ = slopes
    (N, nv, nf), nl = feet.shape, rows.dependent.shape[1]
    out, (Q, S, g, _, _) = np.zeros((N, nv + nf + nl)), model
    p, turned = np.zeros(nv), np.zeros((2, nv))
    for k in range(N - 1, -1, -1):
        E, end, W = knots.E[k], x[k + 1], rows.W[k]
        slope, taken = product(Q[k + 1], end[:nv]), np.zeros(nv)
        if k + 1 < N:
            turned[1] = p
            turn_columns(bases, knots.E[k + 1].transpose(0, 2, 1), turned[1:])
            taken = product(mass[k + 1], out[k + 1, :nv])
        for i in range(nv):
            p[i] = S[k + 1, i] * end[nv + i] + g[k + 1, nv + i] - taken[i] / h
        turned[0] = p
        turn_columns(bases, E, turned[:1])
        for i in range(nv):
            slope[i] += g[k + 1, i] + (turned[0, i] - turned[1, i]) / h
        free = product(product(knots.N[k + 1], slope), rows.inverse[k])
        price = -product(free, knots.N[k + 1])
        by_force = product(price, feet[k])
        pushed, by_d = product(by_force, rows.G[k]), product(Rd[k], price)
        by_v, by_a = product(Rv[k], price), product(mass[k], price)
        for i in range(nv):
            out[k, i] = price[i]
            turned[0, i] = by_v[i] + by_a[i] / h + pushed[nv + i]
            p[i] += turned[0, i]
        turn_columns(bases, E, turned[:1])
        for i in range(nf):
            foot, a = i // 3, i % 3
            for j in range(3):
                out[k, nv + i] += rows.C[k, foot, j, a] * by_force[3 * foot + j]
        for i in range(nl):
            j = rows.dependent[k, i]
            left = slope[j] + by_d[j] + pushed[j] + turned[0, j] / h
            for m in range(nl):
                out[k, nv + nf + m] -= W[i, m] * left
    return out


# --- the linear-quadratic regulator ------------------------------------------


@njit(cache=True)
def _charge(k, bases, h, knots, model, V, s):
    """Adds the costs of a knot after the first, z'V z / 2 + s'z of z = (y, y-), to V
    (2 nf, 2 nf) and s (2 nf); `model` is that of `cost_model`."""
    (Q, S, g, _, _), (_, nf, nv) = model, knots.N.shape
    N, E, w = knots.N[k], knots.E[k - 1], knots.w[k - 1]
    U = rates(bases, h, E, N, knots.N[k - 1])
    own, before = knots.spans[k], knots.spans[k - 1]
    weighed, slope, by_d = transposed(U * S[k]), g[k].copy(), np.zeros((nf, nv))
    _add(U[:nf], own, weighed, V[:nf], 1.0)
    _add(U[nf:], before, weighed, V[nf:], 1.0)
    _add(N, own, Q[k], by_d, 1.0)
    _add(N, own, transposed(by_d), V[:nf], 1.0)
    if nf < nv:
        slope[:nv] += product(Q[k], knots.a[k])
        slope[nv:] += S[k] * w
    s[:nf] += product(N, slope[:nv])
    s += product(U, slope[nv:])


@njit(cache=True)
def _back(F, R, r, V, s, into):
    """What is to be paid from the start of one interval, by what is from its end (V and
    s), and its gains: with W = (W11, W10; W10', W00) for V, all costs are

        T + T' + W00,   T = F'(W11 F / 2 + (W10, 0, s_1)),   over (y, y-, u, 1)

    and u is eliminated from them.

    Args:
        into: V-, s- and (K, k0) at the start; are written.
    """
    (V_0, s_0, K), (n, m), nz = into, F.shape, len(s)
    one, nu = m - 1, m - 1 - nz
    P = product(0.5 * V[:n, :n], F)
    for i in range(n):
        P[i, one] += s[i]
        for j in range(n):
            P[i, j] += V[i, n + j]
    T, H, S = t_product(F, P), np.empty((nu, nu)), np.empty((nu, nz + 1))
    for i in range(nu):
        at = nz + i
        S[i, nz] = T[at, one] + T[one, at] + r[i]
        for j in range(nz):
            S[i, j] = T[at, j] + T[j, at]
        for j in range(nu):
            H[i, j] = T[at, nz + j] + T[nz + j, at]
        H[i, i] += R[i]
    K[:] = solved(H, S)
    saved = t_product(S, K)
    for i in range(nz):
        s_0[i] = T[i, one] + T[one, i] - saved[i, nz]
        for j in range(nz):
            T[i, j] -= 0.5 * saved[i, j]
    for i in range(nz):
        for j in range(nz):
            V_0[i, j] = T[i, j] + T[j, i]
    for i in range(n):
        s_0[i] += s[n + i]
        for j in range(n):
            V_0[i, j] += V[n + i, n + j]


@njit(cache=True)
def _ahead(F, z, u, end):
    """Writes z+ = (F (z, u, 1), z) of one interval."""
    n, nz = len(F), len(z)
    at = np.ones(F.shape[1])
    at[:nz], at[nz : nz + len(u)] = z, u
    end[:n], end[n:] = product(F, at), z[:n]


@njit(cache=True)
def _clip(F, z, u, K, low, high):
    """The steps of the knots where efforts are clipped, in place, with feedback on what
    clipping changed: an unstable horizon runs away else."""
    y = np.zeros_like(z)
    for k in range(len(F)):
        back = product(K[k], np.append(y[k] - z[k], 0.0))
        for i in range(u.shape[1]):
            within = u[k, i] - back[i]
            u[k, i] = min(max(within, low[k, i]), high[k, i])
            if u[k, i] != within:
                K[k, i] = 0.0
        _ahead(F[k], y[k], u[k], y[k + 1])
    return y


@njit(cache=True)
def _held(F, r, held, kept):
    """F and r of one interval, with efforts that are held at what is kept."""
    F, r, first = F.copy(), r.copy(), F.shape[1] - 1 - len(r)
    for i in np.flatnonzero(held):
        for row in range(len(F)):
            F[row, -1] += F[row, first + i] * kept[i]
            F[row, first + i] = 0.0
        r[i] = 0.0
    return F, r


@njit(cache=True)
def regulate(bases, h, F, knots, model, low, high):
    """Steps z = (y, y-) (N + 1, 2 nf) and u (N, nu), and gains (N, nu, 2 nf + 1),

        min sum_k d'Q d/2 + dv'S dv/2 + g'(d, dv) + u'R u/2 + r'u,
        z_0 = 0,   low <= u <= high,   y+ = F (y, y-, u, 1)

    A primal-dual active set: efforts that pass a limit are held at it, and held ones
    whose cost would fall inside are released, until none changes or PASSES are over.
    Held efforts have no feedback. Only the intervals up to the last change are swept
    anew: limits are reached early in the horizon.

    Args:
        bases, h: see :func:`eliminate`.
        F: (N, nf, 2 nf + nu + 1).
        knots: d and dv by z.
        model: Q, S, g, R and r of `cost_model`.
        low, high: limits (N, nu).

    Returns:
        z and u; and K, with u = -K (z, 1) at every knot whose efforts are within the
        limits.
    """
    (N, n, _), R, r = F.shape, model[3], model[4]
    nu, nz = R.shape[1], 2 * n
    held, kept = np.zeros((N, nu), np.bool_), np.zeros((N, nu))
    V, s = np.zeros((N + 1, nz, nz)), np.zeros((N + 1, nz))
    K, z = np.empty((N, nu, nz + 1)), np.zeros((N + 1, nz))
    u, p, last = np.empty((N, nu)), np.empty((N, nz)), N - 1
    _charge(N, bases, h, knots, model, V[N], s[N])
    for _ in range(PASSES + 1):
        for k in range(last, -1, -1):
            free, pull = F[k], r[k]
            if held[k].any():
                free, pull = _held(F[k], r[k], held[k], kept[k])
            _back(free, R[k], pull, V[k + 1], s[k + 1], (V[k], s[k], K[k]))
            if k > 0:
                _charge(k, bases, h, knots, model, V[k], s[k])
        for k in range(N):
            u[k] = -product(K[k], np.append(z[k], 1.0))
            for i in np.flatnonzero(held[k]):
                u[k, i] = kept[k, i]
            _ahead(F[k], z[k], u[k], z[k + 1])
            p[k] = product(V[k + 1], z[k + 1]) + s[k + 1]
        last, outside = -1, False
        for k in range(N):
            for i in range(nu):
                if held[k, i]:
                    slope = R[k, i] * kept[k, i] + r[k, i]
                    for j in range(n):
                        slope += F[k, j, nz + i] * p[k, j]
                    nearer = kept[k, i] - low[k, i] - (high[k, i] - kept[k, i])
                    if slope * nearer > 0:
                        held[k, i], last = False, k
                elif u[k, i] < low[k, i] or u[k, i] > high[k, i]:
                    kept[k, i] = min(max(u[k, i], low[k, i]), high[k, i])
                    held[k, i] = outside = True
                    last = k
        if last < 0:
            return z, u, K
    if outside:
        z = _clip(F, z, u, K, low, high)
    return z, u, K


@njit(cache=True)
def newton_step(bases, h, B, model, eliminated, now, slopes, low, high):
    """One Newton step within limits of efforts.

    Args:
        bases, h, B: see :func:`eliminate`.
        model: Q, S, g, R and r of `cost_model`.
        eliminated: as from :func:`eliminate`.
        now, slopes: rows of `stage.misses`, and slopes as :func:`eliminate` takes them.
        low, high: limits of the step of efforts (N, nu).

    Returns:
        steps x = (d, dv) of all knots (N + 1, 2 nv), of efforts, of forces and of
        loops; :func:`multipliers`; and gains, for :func:`gains`.
    """
    F, knots, rows = eliminated
    z, u, K = regulate(bases, h, F, knots, model, low, high)
    x = steps_of(bases, h, knots, z)
    df, dl = steps_of_forces(h, x, u @ B.T, now, slopes, rows)
    y = multipliers(bases, h, x, model, slopes, knots, rows)
    return (x, u, df, dl), y, K


@njit(cache=True)
def gains(bases, h, knots, K):
    """K (N, nu, 2 nv) on (d, dv) of each knot, from those of :func:`regulate`:

    d- = E0^-1 (E1 d - h dv),   y = d in the free coordinates
    """
    (N, nu, _), (_, nf, nv) = K.shape, knots.N.shape
    out = np.zeros((N, nu, 2 * nv))
    for k in range(N):
        before, at = np.zeros((nu, nv)), max(k - 1, 0)
        for j in range(nf):
            for i in range(nu):
                out[k, i, knots.free[k, j]] = K[k, i, j]
                before[i, knots.free[at, j]] = K[k, i, nf + j]
        if k > 0:
            E = knots.E[at]
            inverse = np.empty_like(E)
            for n in range(len(E)):
                inverse[n] = solved(transposed(E[n]), np.eye(3))
            turn_columns(bases, inverse, before)
            by_d = before.copy()
            turn_columns(bases, E, by_d)
            out[k, :, :nv] += by_d
            before *= -h
        out[k, :, nv:] = before
    return out
