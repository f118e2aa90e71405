"""The space-time program: its functions of one knot, and how they are put together.

Variables q, v, a (K, nv), p (K, 3 feet), c (K, 3), F, T (K, 3 feet) and tau (K, m).
The functions of one knot (paper, section 5.1) are

dynamics    RNEA(q, v, a; inertia) - J'[F; T] - B tau + K x - delta = 0
            first six rows: momentum, eq. (7); others: inverse dynamics of E_tau
kinematics  p - p_WF(q) = 0,  c - p_WC(q; inertia) = 0
sole        n [-T_y, T_x] - b F_z <= 0 in the sole's frame for every edge: the COP of
            each foot is in its sole. This is equivalent to eq. (5): points in all
            loaded soles have their mean in the hull of these, and vice versa.
ground      n . p - d of every foot with the plane of its ground, 0 in contact
clearance   the same of every corner of every sole, >= 0 for a foot in the air
friction    mu F_n - sqrt(|F - n F_n|^2 + eps^2) >= 0,  F_n = n . F
            (|F|^2 - |T_xy|^2/nu_b^2 - T_z^2/nu_t^2) / m g >= 0, eq. (8), with the
            sole's radius for both nu_b and nu_t
flat        sum_j w_j |n_j(q) - n|^2, E_O
"""

from __future__ import annotations

import casadi as ca
import numpy as np

from drakebots.model import plane_rotation
from drakebots.robots.quads.motion import near_contact
from drakebots.robots.quads.robot import Quad
from drakebots.robots.quads.space_time.problem import SpaceTime
from drakebots.trajopt.program import Block, Program, ProgramBuilder

# --- functions of one knot --------------------------------------------------


def dynamics_block(quad: Quad, stiffness: np.ndarray | None = None) -> Block:
    """Rows momentum (6,) [N, N m] and torque (nv - 6,) [N m].

    The skin's stiffness K, if any, acts on the joints x = q[6:]. Inputs q, v, a,
    F, T (3 feet,), tau (m,); constants: inertias (10 links,), delta (nv,), generalized
    forces of the skin.
    """
    tree, n, f = quad.tree, quad.nv, 3 * len(quad.soles)
    q, v, a = (ca.SX.sym(name, n) for name in "qva")
    F, T = ca.SX.sym("F", f), ca.SX.sym("T", f)
    tau = ca.SX.sym("tau", quad.B.shape[1])
    inertia, delta = ca.SX.sym("inertia", tree.inertia.size), ca.SX.sym("delta", n)
    rows = tree.recursive(q, v, a, inertia, (F, T)) - ca.SX(quad.B) @ tau - delta
    if stiffness is not None:
        rows[6:] += ca.SX(ca.sparsify(ca.DM(stiffness))) @ q[6:]
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
    rows = {"feet": p - tree.feet(q), "com": c - tree.com(q, inertia)}
    return Block("quad_kinematics", {"q": q, "p": p, "c": c}, rows, inertia)


def sole_block(quad: Quad, share: float) -> Block:
    """Rows of all edges of all soles, in the order of the soles [N m].

    Args:
        quad: the robot.
        share: share of each sole that its COP may use, in (0, 1].
    """
    f = 3 * len(quad.soles)
    q, F, T = ca.SX.sym("q", quad.nv), ca.SX.sym("F", f), ca.SX.sym("T", f)
    rows = []
    for j, sole in enumerate(quad.soles):
        R = quad.tree.sole_axes(q, sole)
        push, twist = R.T @ F[3 * j : 3 * j + 3], R.T @ T[3 * j : 3 * j + 3]
        n, b = map(ca.SX, sole.edges)
        rows.append(n @ ca.vertcat(-twist[1], twist[0]) - share * b * push[2])
    return Block("quad_sole", {"q": q, "F": F, "T": T}, {"sole": ca.vertcat(*rows)})


def _planes(feet: int) -> tuple[ca.SX, list[ca.SX], list[ca.SX]]:
    """Symbols of the planes [n, d] of all feet (4 feet,), their n and their d."""
    planes = ca.SX.sym("ground", 4 * feet)
    each = [planes[4 * j : 4 * j + 4] for j in range(feet)]
    return planes, [one[:3] for one in each], [one[3] for one in each]


def ground_block(feet: int) -> Block:
    """Distances of the feet from their ground (feet,) [m]; constants: the planes."""
    p, (planes, normals, offsets) = ca.SX.sym("p", 3 * feet), _planes(feet)
    each = zip(ca.vertsplit(p, 3), normals, offsets)
    rows = {"over": ca.vertcat(*(ca.dot(n, foot) - d for foot, n, d in each))}
    return Block(f"quad_ground_{feet}", {"p": p}, rows, planes)


def clearance_block(quad: Quad) -> Block:
    """Distances of all corners of all soles from their ground, in the order of the
    soles [m]; constants: the planes."""
    q = ca.SX.sym("q", quad.nv)
    (planes, normals, offsets), rows = _planes(len(quad.soles)), []
    feet = ca.vertsplit(quad.tree.feet(q), 3)
    for sole, p, n, d in zip(quad.soles, feet, normals, offsets):
        along = n.T @ quad.tree.sole_axes(q, sole)[:, :2]
        rows.append(ca.dot(n, p) - d + ca.SX(sole.corners) @ along.T)
    return Block("quad_clearance", {"q": q}, {"height": ca.vertcat(*rows)}, planes)


def friction_block(quad: Quad, friction: float, eps: float, weight: float) -> Block:
    """Rows cone (feet,) [N] and grip (feet,) [N]; constants: the planes of the ground.

    Args:
        quad: the robot.
        friction: coefficient of friction mu.
        eps: radius of the cone's rounded tip [N]; a foot in contact carries eps/mu.
        weight: weight m g [N], to write eq. (8) as forces.
    """
    f = 3 * len(quad.soles)
    F, T = ca.SX.sym("F", f), ca.SX.sym("T", f)
    (planes, normals, _), cone, grip = _planes(len(quad.soles)), [], []
    loads = ca.vertsplit(F, 3), ca.vertsplit(T, 3)
    for sole, push, twist, n in zip(quad.soles, *loads, normals):
        normal = ca.dot(n, push)
        along = ca.sumsqr(push - normal * n)
        cone.append(friction * normal - ca.sqrt(along + eps**2))
        grip.append((ca.sumsqr(push) - ca.sumsqr(twist) / sole.radius**2) / weight)
    rows = {"cone": ca.vertcat(*cone), "grip": ca.vertcat(*grip)}
    return Block("quad_friction", {"F": F, "T": T}, rows, planes)


def flat_block(quad: Quad) -> Block:
    """E_O of one knot; constants: weights of the feet (feet,), and the planes."""
    q, w = ca.SX.sym("q", quad.nv), ca.SX.sym("w", len(quad.soles))
    (planes, normals, _), total = _planes(len(quad.soles)), ca.SX(0)
    for j, (sole, n) in enumerate(zip(quad.soles, normals)):
        # |n_j - n|^2 for unit vectors.
        up = ca.dot(n, quad.tree.sole_axes(q, sole)[:, 2])
        total += w[j] * 2 * (1 - up)
    return Block("quad_flat", {"q": q}, {"E_O": total}, ca.vertcat(w, planes))


def squares_block(name: str, size: int) -> Block:
    """sum_i w_i (x_i - d_i)^2; constants: w (size,), d (size,)."""
    x, w, d = (ca.SX.sym(s, size) for s in "xwd")
    # The name of the block must be a C identifier.
    rows = {f"E_{name}": ca.dot(w, (x - d) ** 2)}
    return Block(f"squares_{name}_{size}", {"x": x}, rows, ca.vertcat(w, d))


_KNOTS = {"inner": ("before", "here", "after"), "rest": ("here", "after")}
_AROUND = ("first", "second", "last_but_one", "last")


def motion_block(size: int, step: float, kind: str, turn: float = 0.0) -> Block:
    """Rows v - dq, a - ddq of a knot, by central differences over three knots.

    Inputs before, here, after, v, a for the kind "inner". At the ends of a motion from
    rest to rest, for the kind "rest", it is mirrored, before = after. Across the end of
    a cycle that turns by `turn` [rad] they are first, second, last_but_one, last, v, a,
    and the rows those of the first knot, "start", or of the last, "end"; there the
    first two coordinates are x and y of the base.
    """
    names = (*_KNOTS.get(kind, _AROUND), "v", "a")
    symbols = {name: ca.SX.sym(name, size) for name in names}
    *q, v, a = symbols.values()
    R = ca.DM(ca.sparsify(ca.DM(plane_rotation(turn, size))))
    if kind == "inner":
        before, here, after = q
    elif kind == "rest":
        before, here, after = q[1], *q
    elif kind == "end":
        before, here, after = q[2], q[3], q[3] + R @ (q[1] - q[0])
    else:
        before, here, after = q[0] + R.T @ (q[2] - q[3]), q[0], q[1]
    rows = {
        "rate": v - (after - before) / (2 * step),
        "bend": (a - (after - 2 * here + before) / step**2) * step,
    }
    return Block(f"quad_motion_{kind}_{size}", symbols, rows)


# --- the program ------------------------------------------------------------

AXES = ("x", "y", "z")

SLIP = 1e-5
"""Tolerance of a standing foot from knot to knot [m], and of the ends of a cycle
[rad, m]. Not zero: if legs move in planes these rows are linearly dependent (four feet,
three horizontal motions of the base), and dependent equations stall the solver."""


class KnotBuilder(ProgramBuilder):
    """Parts that programs over the knots of a motion share: poses, feet, COM, contact.

    A knot counts for `knot_spacing` steps in the costs, the first and last for half as
    many. Subclasses choose and order the parts.

    Args:
        name: name of the program.
        problem: motion, weights and knots.
    """

    def __init__(self, name: str, problem: SpaceTime):
        super().__init__(name)
        self.p, self.quad = problem, problem.quad
        self.K = len(problem.knots)
        self.foot_labels = [f"{f}.{x}" for f in self.quad.feet for x in AXES]
        self.corner_counts = [len(s.corners) for s in self.quad.soles]
        self.knot_weights = np.full((self.K, 1), float(problem.knot_spacing))
        self.knot_weights[[0, -1]] *= 0.5

    def add_poses(self) -> None:
        """Adds q with the joints' limits."""
        low, high = self.quad.position_limits
        names = self.quad.coordinates
        self.add_variables("q", self.K, names, lower=low, upper=high, scale=0.1)

    def add_feet_and_com(self) -> None:
        """Adds p and c; eq. (4): p is on the ground in contact, above it in the air."""
        p, K, feet = self.p, self.K, len(self.quad.feet)
        low, high = np.zeros((K, feet)), np.where(p.contact, 0.0, np.inf)
        if p.motion.period == "cycle":
            # These follow from the first knot and the periodicity.
            low[-1], high[-1] = -np.inf, np.inf
        floor = np.full((K, feet, 3), -np.inf)
        roof, level = np.full_like(floor, np.inf), p.ground[..., 2] == 1
        # On level ground these are bounds of p_z.
        height = p.ground[..., 3]
        floor[..., 2] = np.where(level, low + height, -np.inf)
        roof[..., 2] = np.where(level, high + height, np.inf)
        floor, roof = floor.reshape(K, -1), roof.reshape(K, -1)
        self.add_variables(
            "p", K, self.foot_labels, lower=floor, upper=roof, scale=0.1, units="m"
        )
        self.add_variables("c", K, AXES, scale=0.1, units="m")
        if not level.all():
            bounds = {"lower": np.where(level, -np.inf, low), "upper": high}
            over = self.add_rows(
                "ground", K, self.quad.feet, **bounds, scale=0.1, units="m"
            )
            planes, places = p.ground.reshape(K, -1), {"p": self["p"].indices}
            rows = {"over": over.indices}
            self.add_term(ground_block(feet), places, rows, data=planes)

    def add_kinematics(self, inertia: np.ndarray) -> None:
        """Rows p = p_WF(q) and c = p_WC(q).

        Args:
            inertia: inertias of the links at the knots (K, 10 links).
        """
        feet = self.equalities("feet", self.K, self.foot_labels, scale=0.1, units="m")
        com = self.equalities("com", self.K, AXES, scale=0.1, units="m")
        self.add_term(
            kinematics_block(self.quad),
            {name: self[name].indices for name in "qpc"},
            {"feet": feet, "com": com},
            data=inertia,
        )

    def add_stays(self) -> None:
        """Rows of eq. (4): a standing foot does not move."""
        p, K = self.p, self.K
        stays = np.repeat(p.contact[1:] & p.contact[:-1], 2, axis=1)
        free = np.where(stays, SLIP, np.inf)
        labels = [f"{f}.{x}" for f in self.quad.feet for x in AXES[:2]]
        stay = self.add_rows(
            "stay", K - 1, labels, lower=-free, upper=free, scale=0.1, units="m"
        )
        along = self["p"].indices.reshape(K, -1, 3)[:, :, :2].reshape(K, -1)
        self.difference(along[1:], along[:-1], stay.indices)

    def add_periodicity(self) -> None:
        """Rows of eq. (6); in a cycle also rise, tilt and turn of the base."""
        period = self.p.motion.period
        if period is None:
            return
        start = 6 if period == "joints" else 2
        names = self.quad.coordinates[start:]
        value = np.zeros(len(names))
        if period == "cycle":
            value[:2] = self.p.motion.climb, self.p.motion.turn
        low, high = value - SLIP, value + SLIP
        rows = self.add_rows("periodic", 1, names, lower=low, upper=high, scale=0.1)
        q = self["q"].indices[:, start:]
        self.difference(q[-1:], q[:1], rows.indices)

    def add_tracking(self) -> None:
        """E_COM, E_EE: squared deviation of COM and feet from the requested paths."""
        p, w = self.p, self.p.weights
        com = p.motion.com[p.knots]
        self.add_squares("COM", "c", w.com / w.length**2 * self.knot_weights, com)
        feet = p.desired_feet.reshape(self.K, -1)
        self.add_squares("EE", "p", w.feet / w.length**2 * self.knot_weights, feet)

    def add_flatness(self) -> None:
        """E_O: soles are parallel to the ground during and near contact."""
        p = self.p
        near = near_contact(p.motion.footfall.contact, p.flat_steps)
        near = near[p.knots][:, p.order]
        weights = p.weights.flat * self.knot_weights * near
        data = np.hstack([weights, p.ground.reshape(self.K, -1)])
        self.add_cost(flat_block(self.quad), {"q": self["q"].indices}, data=data)

    def add_squares(self, name: str, group: str, weight, target=0.0) -> None:
        """Cost sum weight (x - target)^2 of a group; both broadcast to (K, n)."""
        shape = self[group].shape
        data = np.hstack([np.broadcast_to(part, shape) for part in (weight, target)])
        block = squares_block(name, shape[1])
        self.add_cost(block, {"x": self[group].indices}, data=data)


def space_time_program(problem: SpaceTime, posture: np.ndarray) -> Program:
    """The nonlinear program of a space-time problem.

    Args:
        problem: the problem.
        posture: poses at the knots (K, nv) for `Weights.posture`.
    """
    return _SpaceTimeBuilder(problem, posture).build()


class _SpaceTimeBuilder(KnotBuilder):
    """The program of eq. (9)."""

    def __init__(self, problem: SpaceTime, posture: np.ndarray):
        super().__init__(f"space-time {problem.motion.name}", problem)
        self.posture = posture
        self._variables_of_knots()
        self._motion()
        self._knot_rows()
        self._contact_rows()
        self.add_stays()
        self.add_periodicity()
        self._objective()

    def _variables_of_knots(self) -> None:
        """Adds q, v, a, p, c, F, T and tau, within the limits of the robot."""
        p, quad, K = self.p, self.quad, self.K
        names = quad.coordinates
        speed = quad.robot.plant.GetVelocityUpperLimits()
        self.add_poses()
        self.add_variables("v", K, names, lower=-speed, upper=speed)
        self.add_variables("a", K, names, scale=10.0)
        self.add_feet_and_com()
        feet = self.foot_labels
        loaded = np.repeat(p.loaded, 3, axis=1)
        most = np.where(loaded, np.inf, 0.0)
        F_low = -most
        F_low[:, 2::3] = 0.0
        size = float(np.mean([s.radius for s in quad.soles]))
        load = p.weight / 4
        self.add_variables("F", K, feet, lower=F_low, upper=most, scale=load, units="N")
        self.add_variables("T", K, feet, lower=-most, upper=most, scale=load * size)
        bound = p.limits
        scale = np.where(np.isfinite(bound), bound, 0.05 * p.weight)
        self.add_variables(
            "tau", K, quad.joints, lower=-bound, upper=bound, scale=scale, units="N m"
        )

    def _motion(self) -> None:
        """Rows of v and a by central differences, across the ends of a cycle too."""
        p, n, K, h = self.p, self.quad.nv, self.K, self.p.step
        names = self.quad.coordinates
        rate, bend = (self.equalities(name, K, names) for name in ("rate", "bend"))
        q, v, a = (self[name].indices for name in "qva")
        inner = {"before": q[:-2], "here": q[1:-1], "after": q[2:]}
        self.add_term(
            motion_block(n, h, "inner"),
            {**inner, "v": v[1:-1], "a": a[1:-1]},
            {"rate": rate[1:-1], "bend": bend[1:-1]},
        )
        if p.motion.period == "cycle":
            ends = dict(zip(_AROUND, (q[:1], q[1:2], q[-2:-1], q[-1:])))
            for end, k in (("start", slice(0, 1)), ("end", slice(K - 1, K))):
                self.add_term(
                    motion_block(n, h, end, p.motion.turn),
                    {**ends, "v": v[k], "a": a[k]},
                    {"rate": rate[k], "bend": bend[k]},
                )
            return
        ends, beside = [0, K - 1], [1, K - 2]
        self.add_term(
            motion_block(n, h, "rest"),
            {"here": q[ends], "after": q[beside], "v": v[ends], "a": a[ends]},
            {"rate": rate[ends], "bend": bend[ends]},
        )

    def _knot_rows(self) -> None:
        """Rows of the dynamics and the kinematics."""
        p, quad, K = self.p, self.quad, self.K
        names = quad.coordinates
        arm = 0.5 * float(np.linalg.norm(np.ptp(quad.rest_feet[:, :2], axis=0)))
        scale = p.weight * np.array([1, 1, 1, arm, arm, arm])
        momentum = self.equalities("momentum", K, names[:6], scale=scale)
        torque = self.equalities("torque", K, names[6:], scale=0.1 * p.weight * arm)
        inputs = {name: self[name].indices for name in ("q", "v", "a", "F", "T", "tau")}
        inertia = p.inertia.reshape(K, -1)
        self.add_term(
            dynamics_block(quad, None if p.skin is None else p.skin.stiffness),
            inputs,
            {"momentum": momentum, "torque": torque},
            data=np.hstack([inertia, p.delta]),
        )
        self.add_kinematics(inertia)

    def _contact_rows(self) -> None:
        """Rows of COP, friction and clearance, eqs. (5), (8) and (4)."""
        p, quad, K = self.p, self.quad, self.K
        size = float(np.mean([s.radius for s in quad.soles]))
        # Eq. (5), sole by sole.
        edges = [f"{s.name}.edge{k}" for s in quad.soles for k in range(len(s.corners))]
        upper = np.where(np.repeat(p.loaded, self.corner_counts, axis=1), 0.0, np.inf)
        sole = self.add_rows(
            "cop", K, edges, upper=upper, scale=p.weight * size / 4, units="N m"
        )
        loads = {name: self[name].indices for name in ("q", "F", "T")}
        self.add_term(sole_block(quad, p.cop_share), loads, {"sole": sole.indices})
        # Toes and heels of swinging feet stay above the ground: eq. (4) bounds the
        # middle of the sole only, and a tilted sole would drag.
        down = np.repeat(p.contact, self.corner_counts, axis=1)
        low = np.where(down, -np.inf, 0.0)
        rows = self.add_rows("clear", K, edges, lower=low, scale=0.1, units="m")
        block, ground = clearance_block(quad), p.ground.reshape(K, -1)
        over = {"height": rows.indices}
        self.add_term(block, {"q": self["q"].indices}, over, data=ground)
        # Eq. (8).
        lower = np.where(p.loaded, 0.0, -np.inf)
        rows = {
            name: self.add_rows(
                name, K, quad.feet, lower=lower, scale=p.weight / 4, units="N"
            ).indices
            for name in ("cone", "grip")
        }
        block = friction_block(quad, p.friction, p.tip * p.weight, p.weight)
        self.add_term(block, {n: self[n].indices for n in "FT"}, rows, data=ground)

    def _objective(self) -> None:
        """The cost, eq. (3), and small terms that determine what it leaves free."""
        p, w, each = self.p, self.p.weights, self.knot_weights
        self.add_squares("tau", "tau", w.torque / p.mass**2 * each)
        self.add_squares("S", "a", w.smooth * w.smooth_step**4 * each)
        self.add_tracking()
        self.add_flatness()
        self._follow()
        light = w.force / p.weight**2 * each
        self.add_squares("F_contact", "F", light)
        radius = np.repeat([s.radius for s in self.quad.soles], 3)
        self.add_squares("T_contact", "T", light / radius**2)

    def _follow(self) -> None:
        """E_F, the joints with a reference, and the small cost of the posture."""
        p, w, each = self.p, self.p.weights, self.knot_weights
        K, n = self.K, self.quad.nv
        weight, target = np.zeros((K, n)), np.zeros((K, n))
        if p.follow is not None:
            weight[:], target[:] = w.follow * each, p.follow[p.knots]
        else:
            for name, values in p.motion.reference.items():
                k = self.quad.coordinates.index(name)
                weight[:, k] = (w.reference * each)[:, 0]
                target[:, k] = values[p.knots]
        if weight.any():
            self.add_squares("F", "q", weight, target)
        self.add_squares("posture", "q", w.posture * each, self.posture)
