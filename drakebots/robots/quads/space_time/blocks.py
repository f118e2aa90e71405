"""The functions of one knot in the space-time program: paper, section 5.1.

dynamics    RNEA(q, v, a; inertia) - J'[F; T] - B tau - delta = 0
            first six rows: eq. (7), others: inverse dynamics of E_tau
kinematics  p - p_WF(q) = 0,  c - p_WC(q; inertia) = 0
sole        n [-T_y, T_x] - b F_z <= 0 in the sole's frame, every edge: the
            foot's own COP in its sole, so that eq. (5) holds: what is inside
            every loaded sole is inside their hull, and the other way round
clearance   height of every corner of every sole, >= 0 of a foot in the air
friction    mu F_z - sqrt(|F_xy|^2 + eps^2) >= 0
            (|F|^2 - |T_xy|^2/nu_b^2 - T_z^2/nu_t^2) / m g >= 0, eq. (8)
flat        sum_j w_j |n_j(q) - z|^2, E_O
"""

from __future__ import annotations

import casadi as ca
import numpy as np

from drakebots.robots.quads.robot import Quad
from drakebots.trajopt.program import Block


def dynamics_block(quad: Quad) -> Block:
    """Rows momentum (6,) [N, N m] and torque (nv - 6,) [N m].

    Inputs q, v, a, F, T (3 feet,), tau (m,); constants: inertias (10 links,),
    delta (nv,), generalized forces of the skin.
    """
    tree, n, f = quad.tree, quad.nv, 3 * len(quad.soles)
    q, v, a = (ca.SX.sym(name, n) for name in "qva")
    F, T = ca.SX.sym("F", f), ca.SX.sym("T", f)
    tau = ca.SX.sym("tau", quad.B.shape[1])
    inertia, delta = ca.SX.sym("inertia", tree.inertia.size), ca.SX.sym("delta", n)
    wrenches = tree.foot_wrenches(q, quad.soles, F, T)
    rows = tree.recursive(q, v, a, inertia, wrenches) - ca.SX(quad.B) @ tau - delta
    return Block(
        f"quad_dynamics_{n}",
        {"q": q, "v": v, "a": a, "F": F, "T": T, "tau": tau},
        {"momentum": rows[:6], "torque": rows[6:]},
        ca.vertcat(inertia, delta),
    )


def kinematics_block(quad: Quad) -> Block:
    """Rows feet (3 feet,) and com (3,) [m]; constants: inertias."""
    tree = quad.tree
    q, p = ca.SX.sym("q", quad.nv), ca.SX.sym("p", 3 * len(quad.soles))
    c, inertia = ca.SX.sym("c", 3), ca.SX.sym("inertia", tree.inertia.size)
    return Block(
        "quad_kinematics",
        {"q": q, "p": p, "c": c},
        {"feet": p - tree.feet(q, quad.soles), "com": c - tree.com(q, inertia)},
        inertia,
    )


def sole_block(quad: Quad, share: float) -> Block:
    """Rows of every edge of every sole, in the order of the soles [N m].

    Args:
        quad: the robot.
        share: of the sole that the COP may use, in (0, 1].
    """
    f = 3 * len(quad.soles)
    q, F, T = ca.SX.sym("q", quad.nv), ca.SX.sym("F", f), ca.SX.sym("T", f)
    rows = []
    for j, sole in enumerate(quad.soles):
        R = quad.tree.sole_axes(q, sole)
        push, twist = R.T @ F[3 * j : 3 * j + 3], R.T @ T[3 * j : 3 * j + 3]
        n, b = sole.edges
        rows.append(
            ca.SX(n) @ ca.vertcat(-twist[1], twist[0]) - share * ca.SX(b) * push[2]
        )
    return Block("quad_sole", {"q": q, "F": F, "T": T}, {"sole": ca.vertcat(*rows)})


def clearance_block(quad: Quad) -> Block:
    """Heights of every corner of every sole, in the order of the soles [m]."""
    q = ca.SX.sym("q", quad.nv)
    p, rows = quad.tree.feet(q, quad.soles), []
    for j, sole in enumerate(quad.soles):
        up = quad.tree.sole_axes(q, sole)[2, :2]
        rows.append(p[3 * j + 2] + ca.SX(sole.corners) @ up.T)
    return Block("quad_clearance", {"q": q}, {"height": ca.vertcat(*rows)})


def friction_block(quad: Quad, friction: float, eps: float, weight: float) -> Block:
    """Rows cone (feet,) [N] and grip (feet,) [N].

    Args:
        quad: the robot.
        friction: mu.
        eps: of the rounded cone's tip [N]; a foot in contact carries eps/mu.
        weight: m g [N], to write eq. (8) as forces.
    """
    f = 3 * len(quad.soles)
    F, T = ca.SX.sym("F", f), ca.SX.sym("T", f)
    cone, grip = [], []
    for j, sole in enumerate(quad.soles):
        push, twist = F[3 * j : 3 * j + 3], T[3 * j : 3 * j + 3]
        along = ca.sumsqr(push[:2])
        cone.append(friction * push[2] - ca.sqrt(along + eps**2))
        grip.append((ca.sumsqr(push) - ca.sumsqr(twist) / sole.radius**2) / weight)
    rows = {"cone": ca.vertcat(*cone), "grip": ca.vertcat(*grip)}
    return Block("quad_friction", {"F": F, "T": T}, rows)


def flat_block(quad: Quad) -> Block:
    """E_O of one knot; constants: weights (feet,)."""
    q, w = ca.SX.sym("q", quad.nv), ca.SX.sym("w", len(quad.soles))
    total = ca.SX(0)
    for j, sole in enumerate(quad.soles):
        # |n - z|^2 of unit vectors.
        total += w[j] * 2 * (1 - quad.tree.sole_axes(q, sole)[2, 2])
    return Block("quad_flat", {"q": q}, {"E_O": total}, w)


def squares_block(name: str, size: int) -> Block:
    """sum_i w_i (x_i - d_i)^2; constants: w (size,), d (size,)."""
    x, w, d = (ca.SX.sym(s, size) for s in "xwd")
    # A C identifier, and the same function whatever the term is called.
    return Block(
        f"squares_{name}_{size}",
        {"x": x},
        {f"E_{name}": ca.dot(w, (x - d) ** 2)},
        ca.vertcat(w, d),
    )


def motion_block(size: int, step: float, kind: str) -> Block:
    """Rows v - dq, a - ddq of a knot, by central differences over three.

    Inputs before, here, after, v, a. For kind "start" (rest) the motion is
    mirrored, before = after; for "end" likewise.
    """
    names = ("before", "here", "after", "v", "a")
    b, q, e, v, a = (ca.SX.sym(name, size) for name in names)
    if kind == "inner":
        rate, bend = (e - b) / (2 * step), (e - 2 * q + b) / step**2
        inputs = {"before": b, "here": q, "after": e, "v": v, "a": a}
    else:
        rate, bend = 0 * q, 2 * (e - q) / step**2
        inputs = {"here": q, "after": e, "v": v, "a": a}
    rows = {"rate": v - rate, "bend": (a - bend) * step}
    return Block(f"quad_motion_{kind}_{size}", inputs, rows)


def wrap_block(size: int, step: float, turn: float, end: bool) -> Block:
    """`motion_block` across the end of a cycle that turns by `turn` [rad].

    Inputs first, second, last_but_one, last, v, a; rows of the first knot, or of
    the last if `end`. x and y of the base are the first two coordinates.
    """
    names = ("first", "second", "last_but_one", "last", "v", "a")
    symbols = {name: ca.SX.sym(name, size) for name in names}
    q0, q1, qm, qK, v, a = symbols.values()
    c, s = np.cos(turn), np.sin(turn)
    R = np.eye(size)
    R[:2, :2] = [[c, -s], [s, c]]
    R = ca.DM(ca.sparsify(ca.DM(R)))
    if end:
        before, here, after = qm, qK, qK + R @ (q1 - q0)
    else:
        before, here, after = q0 + R.T @ (qm - qK), q0, q1
    rows = {
        "rate": v - (after - before) / (2 * step),
        "bend": (a - (after - 2 * here + before) / step**2) * step,
    }
    name = f"quad_wrap_{'end' if end else 'start'}_{size}"
    return Block(name, symbols, rows)
