"""An interval's equations and the cost of a horizon, with their derivatives.

At the end of an interval the rows are

    dynamics   M(q) a + bias(q, v) - J(q)'f - C(q)'l      (nv,), without the actuators
    gap        phi(q) of every foot                       (nc,)
    slide      tangential velocity of every foot          (2 nc,)
    loops      c(q)                                       (nl,)

and their slopes are with respect to v, a and d, a step of q in the tangent space; of
that the first order is enough, dq = N(q) d. The motion of a foot is that of the
material point in contact, and J its slope with respect to v, for any joints.

Deviations are differences in the tangent space, e = q ⊖ r, with slope E1(e) under steps
of q. Limits of positions are logarithmic barriers in the share z of the room that is
left, relaxed to a parabola below RELAXED (Feller and Ebenbauer 2017), so that they are
finite everywhere and smooth to the second derivative.

Positions are a manifold, with steps and differences in the tangent space:

    q1 = q0 ⊕ d,    d = q1 ⊖ q0   (nv,)

Of all coordinates these are sum and difference, but of free bases with a quaternion:
there d holds Drake's velocities times a second, a rotation vector in the world before
the translation, and

    R1 = exp([d]) R0,    d = log(R1 R0')

Under small steps d0 and d1 of q0 and q1 a difference changes by E1 d1 - E0 d0, with the
inverse left Jacobian E1(d) of the rotation and E0 = E1'; both are the identity for all
other coordinates. `bases` (n, 2) names the first position and velocity of each such
base; every other coordinate follows in the same order in q and d.
"""

from __future__ import annotations

from functools import cached_property

import casadi as ca
import numpy as np

from drakebots.control.problem import MpcProblem
from drakebots.core.errors import InvalidInput
from drakebots.core.kernels import njit
from drakebots.model import find_body, joint_slices
from drakebots.multibody import Twin
from drakebots.trajopt.program import compiled


class Stage:
    """The rows of all intervals of a problem at once.

    Args:
        problem: the problem.

    Attributes:
        twin: the plant as CasADi expressions.
        sizes: nq, nv, nu, nc feet and nl loop rows.
        bases: first position and velocity of every free base with a quaternion (n, 2).
        symbols: q, v, a, f (3 nc: t1, t2, n of each foot) and l.

    Raises:
        InvalidInput: for a joint whose positions are no tangent space of ours.
    """

    def __init__(self, problem: MpcProblem):
        self.problem, robot = problem, problem.robot
        self.twin = twin = Twin(robot.plant)
        nc, nl = len(problem.feet), robot.closure.num_rows
        nu = robot.plant.num_actuators()
        self.sizes = {"nq": twin.nq, "nv": twin.nv, "nu": nu, "nc": nc, "nl": nl}
        sizes = {"q": twin.nq, "v": twin.nv, "a": twin.nv, "f": 3 * nc, "l": nl}
        self.symbols = {name: ca.SX.sym(name, size) for name, size in sizes.items()}
        found = []
        for link in twin.links:
            a, b = joint_slices(link.joint)
            kind = link.joint.type_name()
            if kind == "quaternion_floating":
                found.append((a.start, b.start))
            elif kind in ("rpy_floating", "ball_rpy"):
                raise InvalidInput(
                    f"joint {link.joint.name()!r} of type {kind!r} has no tangent "
                    "space in mpc; build the robot with base 'quaternion' or 'euler'"
                )
        self.bases = np.array(found, int).reshape(-1, 2)

    @cached_property
    def rows(self) -> dict[str, ca.SX]:
        """The rows as expressions of the symbols."""
        s = self.symbols
        q, v = s["q"], s["v"]
        gap, motion = self._feet(q, v)
        dynamics = self.twin.inverse_dynamics(q, v, s["a"])
        if s["f"].numel():
            dynamics -= ca.jtimes(motion, v, s["f"], True)
        c = self.twin.closure(q, self.problem.robot.closure)
        if s["l"].numel():
            pull = ca.jtimes(c, q, s["l"], True)
            dynamics -= ca.jtimes(self.twin.rates(q, v), v, pull, True)
        slide = [motion[3 * i : 3 * i + 2] for i in range(self.sizes["nc"])]
        slide = ca.vertcat(*slide) if slide else ca.SX.zeros(0, 1)
        return {"dynamics": dynamics, "gap": gap, "slide": slide, "loops": c}

    def _feet(self, q: ca.SX, v: ca.SX) -> tuple[ca.SX, ca.SX]:
        """phi (nc,) and the velocity (3 nc,) of the points in contact, along t1, t2, n.

        Of a round foot that is the point of the sphere nearest to the ground.
        """
        if not self.problem.feet:
            return ca.SX.zeros(0, 1), ca.SX.zeros(0, 1)
        poses = self.twin.poses(q)
        speeds = {link.body: (w, u) for link, w, u in self.twin.body_velocities(q, v)}
        terrain, gap, motion = self.problem.terrain, [], []
        for foot in self.problem.feet:
            body = int(find_body(self.problem.robot.plant, foot.body).index())
            X_WB, (w_B, u_B) = poses[body], speeds[body]
            p_WF = X_WB.point(foot.p_BF)
            n, t1, t2 = terrain.frame(p_WF)
            gap.append(terrain.distance(p_WF) - foot.radius)
            p_BC = ca.SX(foot.p_BF) - foot.radius * (X_WB.R.T @ n)
            v_WC = X_WB.R @ (u_B + ca.cross(w_B, p_BC))
            motion += [ca.dot(t, v_WC) for t in (t1, t2, n)]
        return ca.vertcat(*gap), ca.vertcat(*motion)

    @cached_property
    def functions(self) -> tuple[ca.Function, ca.Function]:
        """(q, v, a, f, l) -> the rows, and -> the rows and their slopes; compiled."""
        s, rows = self.symbols, self.rows
        q, v, a = s["q"], s["v"], s["a"]
        N = ca.jacobian(self.twin.rates(q, v), v)
        slopes = {
            "dynamics_d": ca.jacobian(rows["dynamics"], q) @ N,
            "dynamics_v": ca.jacobian(rows["dynamics"], v),
            "mass": ca.jacobian(rows["dynamics"], a),
            "feet": ca.jacobian(self._feet(q, v)[1], v),
            "slide_d": ca.jacobian(rows["slide"], q) @ N,
            "loops_d": ca.jacobian(rows["loops"], q) @ N,
        }

        def function(name, outputs):
            return ca.Function(name, [*s.values()], [ca.densify(o) for o in outputs])

        values = list(rows.values())
        both = function("mpc_slopes", [*values, *slopes.values()])
        functions = function("mpc_rows", values), both
        sources = [f.serialize() for f in functions]
        what = f"the controller of {self.problem.robot.model.name}"
        return compiled(functions, sources, what)


# --- positions as a manifold --------------------------------------------------


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
def turns(bases, d):
    """What E1 of one difference d (nv,) is where it is not the identity: its blocks
    (n, 3, 3), one for every base. Those of E0 are their transposes."""
    E = np.empty((len(bases), 3, 3))
    for b in range(len(bases)):
        r = d[bases[b, 1] : bases[b, 1] + 3]
        square = r[0] ** 2 + r[1] ** 2 + r[2] ** 2
        if square < 1e-8:
            c = 1 / 12
        else:
            angle = np.sqrt(square)
            c = 1 / square - (1 + np.cos(angle)) / (2 * angle * np.sin(angle))
        # 1 - K/2 + c K^2, K = [r]
        for i in range(3):
            for k in range(3):
                E[b, i, k] = c * (r[i] * r[k] - (square if i == k else 0.0))
            E[b, i, i] += 1.0
        for i in range(3):
            up, down = (i + 1) % 3, (i + 2) % 3
            E[b, i, up] += 0.5 * r[down]
            E[b, up, i] -= 0.5 * r[down]
    return E


@njit(cache=True)
def turn_rows(bases, E, X):
    """E X in place of X (nv, n), with the blocks E of :func:`turns`."""
    for b in range(len(bases)):
        j = bases[b, 1]
        for k in range(X.shape[1]):
            x, y, z = X[j, k], X[j + 1, k], X[j + 2, k]
            for i in range(3):
                X[j + i, k] = E[b, i, 0] * x + E[b, i, 1] * y + E[b, i, 2] * z


@njit(cache=True)
def turn_columns(bases, E, X):
    """X E in place of X (n, nv), with the blocks E of :func:`turns`."""
    for b in range(len(bases)):
        j = bases[b, 1]
        for k in range(X.shape[0]):
            x, y, z = X[k, j], X[k, j + 1], X[k, j + 2]
            for i in range(3):
                X[k, j + i] = x * E[b, 0, i] + y * E[b, 1, i] + z * E[b, 2, i]


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


# --- contact and what rows miss ------------------------------------------------


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
def misses(values, effort, f, contact, relaxed):
    """All rows of all intervals (N, nv + 3 nc + nl): dynamics, contacts and loops.

    Args:
        values: rows, as `Stage.functions` gives them, of all intervals.
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


# --- the cost ---------------------------------------------------------------


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
def _barriers(q, limits):
    """The barriers of a knot: where z is large a sum of logarithms is that of their
    product, which takes a fifth of the time."""
    total, product = 0.0, 1.0
    for i in range(len(limits)):
        at, _, slope, limit = limits[i]
        z = slope * (q[int(at)] - limit)
        if z > RELAXED:
            product *= z
        else:
            total += barrier(z)[0]
        if not 1e-100 < product < 1e100:
            total, product = total - np.log(product), 1.0
    return total - np.log(product)


@njit(cache=True)
def cost_value(bases, h, q, v, tau, wanted, weights, limits):
    """The cost at (q, v, tau).

    Args:
        bases: see the module.
        h: step.
        q, v, tau: at the knots (N + 1, nq), (N + 1, nv) and intervals (N, nu).
        wanted: positions and velocities that are asked for, shaped as q and v.
        weights: P, V, R, T, W of `MpcCost.arrays`, and the weight of limits.
        limits: of positions, a row for each (n, 4): index of the position and of its
            velocity, slope of the share z of the room, and the limit.
    """
    N, nu = tau.shape
    P, V, effort, T, W, walls = weights
    error, total = difference(bases, q, wanted[0]), 0.0
    for k in range(1, N + 1):
        p, s, share = (P, V, 0.5 * h) if k < N else (T, W, 0.5)
        for j in range(v.shape[1]):
            dv = v[k, j] - wanted[1][k, j]
            total += share * (p[j] * error[k, j] ** 2 + s[j] * dv * dv)
        total += h * walls * _barriers(q[k], limits)
        for i in range(nu):
            total += 0.5 * h * effort[i] * tau[k - 1, i] ** 2
    return total


@njit(cache=True)
def cost_model(bases, h, q, v, tau, wanted, weights, limits):
    """The Gauss-Newton model of :func:`cost_value` about (q, v, tau).

    Returns:
        the Hessian by steps d of the knots (N + 1, nv, nv), its diagonal by dv (N + 1,
        nv), the slope by both (N + 1, 2 nv); diagonals R and r (N, nu) by efforts.
    """
    N, nv = len(tau), v.shape[1]
    P, V, effort, T, W, walls = weights
    Q, S = np.zeros((N + 1, nv, nv)), np.zeros((N + 1, nv))
    g, R, r = np.zeros((N + 1, 2 * nv)), np.empty_like(tau), np.empty_like(tau)
    error = difference(bases, q, wanted[0])
    for k in range(1, N + 1):
        weighed, pull = np.zeros((nv, nv)), np.empty((nv, 1))
        for j in range(nv):
            p, s = (h * P[j], h * V[j]) if k < N else (T[j], W[j])
            pull[j, 0], weighed[j, j] = p * error[k, j], p
            S[k, j] = s
            g[k, nv + j] = s * (v[k, j] - wanted[1][k, j])
        E = turns(bases, error[k])
        turn_columns(bases, E, weighed)
        for rows in (weighed, pull):
            turn_rows(bases, E.transpose(0, 2, 1), rows)
        for i in range(nv):
            g[k, i] = pull[i, 0]
            for j in range(nv):
                Q[k, i, j] = weighed[i, j]
        for i in range(len(limits)):
            at, place, slope, limit = limits[i]
            _, first, second = barrier(slope * (q[k, int(at)] - limit))
            j, weight = int(place), h * walls * slope
            g[k, j] += weight * first
            Q[k, j, j] += weight * slope * second
    for k in range(N):
        for i in range(tau.shape[1]):
            r[k, i], R[k, i] = h * effort[i] * tau[k, i], h * effort[i]
    return Q, S, g, R, r
