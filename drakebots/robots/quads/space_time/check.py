"""Checks before solving whether a robot can perform a motion.

At the knots: are the feet within reach of the legs, is the ZMP in the support polygon,
and can the motors support the weight? The last is a linear program per pose,

    min s   s.t.  |tau_i| <= s limit_i,   tau = g(q) - J'w,
                  J'w supports the weight, friction pyramids, COPs in soles
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from scipy.optimize import least_squares, linprog

from drakebots.core.errors import InvalidInput
from drakebots.core.units import GRAVITY
from drakebots.model import plane_rotation
from drakebots.robots.quads.motion import (
    MotionInput,
    ground_axes,
    height_over,
    margin,
    support_polygon,
    zmp,
)
from drakebots.robots.quads.robot import Quad
from drakebots.robots.quads.space_time.problem import SpaceTime

# --- inverse kinematics -----------------------------------------------------
#
# The pose at each of some steps that comes nearest to the requested motion,
#
#     min_q  w_p sum |p_j(q) - e_j|^2 + w_c |c(q) - g|^2 + w_n sum |n_j(q) - z|^2
#            + w_q |q - q_n|^2,      lower <= q <= upper
#
# by Gauss-Newton with an active set of bounds, starting from the previous pose. q_n is
# the rest pose moved along with the motion; the last term keeps the pose near it where
# the others leave freedom.

FOOT, COM, FLAT, POSTURE = 1.0, 0.5, 1e-2, 1e-4
"""Square roots of the weights [1/m, 1/m, 1, 1]: a tilt of a sole of 0.1 rad costs as
much as a foot 1 mm off."""

MOST = 300
"""Largest number of evaluations per pose."""

LIMIT_GAP = 1e-3
"""Distance that poses keep from joint limits [rad], for interior-point solvers."""


@dataclass(frozen=True)
class Poses:
    """Poses at some steps and their deviations from the motion.

    Attributes:
        steps: the steps of the motion (k,).
        q: poses (k, nv).
        miss: distance of each foot from its requested place (k, feet) [m].
    """

    steps: np.ndarray
    q: np.ndarray
    miss: np.ndarray


def nearest_poses(
    quad: Quad,
    motion: MotionInput,
    steps: np.ndarray,
    inertia: np.ndarray | None = None,
) -> Poses:
    """Poses nearest to a motion at some steps, by inverse kinematics.

    Args:
        quad: the robot.
        motion: the requested motion.
        steps: steps of the motion, increasing (k,).
        inertia: inertias of the links with skin (links, 10); the skeleton's by
            default.
    """
    steps = np.asarray(steps)
    d = (quad.tree.inertia if inertia is None else inertia).ravel()
    nf = len(quad.soles)
    order = [motion.footfall.feet.index(name) for name in quad.feet]
    weights = np.repeat([FOOT, FLAT, COM], [3 * nf, 3 * nf, 3])
    low, high = quad.position_limits
    low, high = low + LIMIT_GAP, high - LIMIT_GAP
    posture = np.full(quad.nv, POSTURE)
    posture[:3] = 0.0
    for name in motion.reference:
        posture[quad.coordinates.index(name)] = 0.1
    rest_com = quad.com(quad.rest, d.reshape(1, -1, 10))[0]

    @lru_cache(maxsize=1)  # values and slopes are asked for one after the other
    def posed(q: bytes):
        value, J = quad.tree.pose_function(np.frombuffer(q), d)
        return value.full().ravel(), J.full()

    def misses(q, target, nominal):
        off = posed(q.tobytes())[0] - target
        return np.concatenate([weights * off, posture * (q - nominal)])

    def slopes(q, *_):
        J = posed(q.tobytes())[1]
        return np.vstack([weights[:, None] * J, np.diag(posture)])

    base = np.arange(quad.nv) < 4  # of a guess: moves with the COM and the heading
    q, before, poses, miss = None, None, [], []
    for i in steps:
        nominal = _nominal(quad, motion, i, rest_com)
        feet, normals = motion.feet[i, order], motion.ground[i, order, :3]
        target = np.concatenate([feet.ravel(), normals.ravel(), motion.com[i]])
        q = nominal if q is None else q + base * (nominal - before)
        before = nominal
        how = {"bounds": (low, high), "args": (target, nominal)}
        how |= {"max_nfev": MOST, "ftol": 1e-7}
        q = least_squares(misses, np.clip(q, low, high), slopes, **how).x
        off = quad.foot_positions(q)[0] - motion.feet[i, order]
        poses.append(q)
        miss.append(np.linalg.norm(off, axis=1))
    return Poses(steps, np.array(poses), np.array(miss))


def _nominal(quad: Quad, motion: MotionInput, i: int, rest_com: np.ndarray):
    """The rest pose (nv,), moved along with a motion to a step; its trunk is tilted as
    the ground is."""
    q = quad.rest.copy()
    q[3] += motion.heading[i]
    q[:3] += motion.com[i] - rest_com
    ahead, left = motion.rise @ plane_rotation(motion.heading[i])
    q[4:6] += -np.arctan(ahead), np.arctan(left)
    for name, values in motion.reference.items():
        q[quad.coordinates.index(name)] = values[i]
    return q


# --- contact forces and torques that a given motion needs --------------------------
#
# With b = RNEA(q, v, a) (without contact) and the contact Jacobian J, the wrenches
# w = [F, T] of the feet in contact support a motion if the rows of the base of J'w
# equal those of b; the joint torques are tau = b - J'w. Of all such w take
#
#     min  |tau / limit|^2 + rho |w|^2      (rho is small and makes w unique)
#
# without inequalities. :func:`cone_rows` has the inequalities of friction pyramids and
# of each foot's COP in its sole.

PYRAMID = np.sqrt(0.5)
"""Factor of mu: the pyramid |F_x|, |F_y| <= mu F_z / sqrt(2) is inside the cone."""

Solve = Callable[..., np.ndarray]
"""Called as solve(H, h, A, b); see :func:`carry`."""


def carry(
    quad: Quad,
    q: np.ndarray,
    v: np.ndarray,
    a: np.ndarray,
    contact: np.ndarray,
    *,
    inertia: np.ndarray | None = None,
    delta: np.ndarray | float = 0.0,
    solve: Solve | None = None,
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Contact forces and torques for a pose in motion.

    Args:
        quad: the robot.
        q, v, a: positions, velocities and accelerations (nv,).
        contact: feet on the ground (feet,).
        inertia: inertias of the links (links, 10); the skeleton's by default.
        delta: further generalized forces (nv,).
        solve: minimizes 1/2 w'H w - h'w subject to A w = b, given H, h, A and b. By
            default the closed form.

    Returns:
        F, T, forces and torques at the soles (feet, 3) [N], [N m] in the world, and
        tau, the torques of the actuators (m,) [N m].
    """
    d = (quad.tree.inertia if inertia is None else inertia).ravel()
    b = quad.tree.dynamics_function(q, v, a, d).full().ravel() - delta
    J = quad.contact_jacobian(q)
    kept = np.flatnonzero(np.tile(np.repeat(contact, 3), 2))
    J, rows = J[kept], quad.actuated
    limits = np.where(np.isfinite(quad.torque_limits), quad.torque_limits, 1.0)
    scale = d.reshape(-1, 10)[:, 0].sum() * GRAVITY
    # Torques at a sole are measured as forces at its rim.
    size = np.array([s.radius for s in quad.soles])
    rho = np.concatenate([np.ones(3 * len(size)), np.repeat(1 / size, 3)])[kept] / scale
    G, g = (J[:, rows] / limits).T, b[rows] / limits
    H = G.T @ G + np.diag(rho**2)
    w = (solve or _least_squares)(H, G.T @ g, J[:, :6].T, b[:6])
    wrench = np.zeros(6 * len(quad.soles))
    wrench[kept] = w
    F, T = wrench.reshape(2, -1, 3)
    return F, T, (b - J.T @ w)[rows]


def _least_squares(H, h, A, b):
    K = np.block([[H, A.T], [A, -1e-12 * np.eye(len(A))]])
    return np.linalg.lstsq(K, np.concatenate([h, b]), rcond=None)[0][: len(h)]


def cone_rows(quad: Quad, q, contact, ground, friction: float, share: float = 1.0):
    """Rows C with C w <= 0: friction pyramids, and COPs inside the soles.

    w stacks the forces, then the torques, of all feet in contact.

    Args:
        quad: the robot.
        q: positions (nv,).
        contact: feet on the ground (feet,).
        ground: planes of the ground under the feet (feet, 4).
        friction: mu.
        share: share of each sole that its COP may use.
    """
    soles = zip(quad.soles, quad.sole_axes(q), ground_axes(ground), contact)
    down = [(sole, R, axes) for sole, R, axes, here in soles if here]
    n, rows = len(down), []
    for j, (sole, R, axes) in enumerate(down):
        F_W, T_W = np.zeros((3, 6 * n)), np.zeros((3, 6 * n))
        F_W[:, 3 * j : 3 * j + 3] = np.eye(3)
        T_W[:, 3 * n + 3 * j : 3 * n + 3 * j + 3] = np.eye(3)
        F, T, mu = axes @ F_W, axes @ T_W, PYRAMID * friction
        rows += [s * F[i] - mu * F[2] for i in (0, 1) for s in (1, -1)]
        push, twist = R.T @ F_W, R.T @ T_W
        normals, offsets = sole.edges
        rows += [
            -n_[0] * twist[1] + n_[1] * twist[0] - share * b * push[2]
            for n_, b in zip(normals, offsets)
        ]
        # Torsional friction, eq. (8) with the normal force alone.
        rows += [s * T[2] - mu * sole.radius * F[2] for s in (1, -1)]
    return np.array(rows)


# --- the checks -------------------------------------------------------------

REACH = 0.01
"""Largest distance of a foot from its requested place [m]; the optimization can spread
smaller ones over the body."""

OUTSIDE = 0.05
"""Largest distance of the requested COM's ZMP from the support polygon [m]."""

OVERLOAD = 1.25
"""Largest torques of static poses over the limits: the optimization changes the poses,
and a trot never stands on two feet for long."""


@dataclass(frozen=True)
class MotionReport:
    """Findings of the check of a motion.

    Attributes:
        poses: poses at the knots, from inverse kinematics.
        notes: unusual findings that are no errors, one line each.
    """

    poses: Poses
    notes: tuple[str, ...]


def check_motion(problem: SpaceTime, *, reach: float = REACH) -> MotionReport:
    """Refuses a motion that the robot cannot perform.

    Args:
        problem: the problem to check.
        reach: largest distance of a foot from its requested place [m].

    Raises:
        InvalidInput: naming the foot, step and distance out of reach, or the step with
            the ZMP far outside the support polygon, or the joint and the torque that
            the weight needs.
    """
    inertia, notes = problem.inertia[0], []
    poses = nearest_poses(problem.quad, problem.motion, problem.knots, inertia)
    _check_reach(problem, poses, reach)
    _check_support(problem, notes)
    _check_strength(problem, poses, notes)
    return MotionReport(poses, tuple(notes))


def _check_reach(problem: SpaceTime, poses: Poses, reach: float) -> None:
    """Raises InvalidInput if a foot is out of reach."""
    k, j = np.unravel_index(poses.miss.argmax(), poses.miss.shape)
    if poses.miss[k, j] > reach:
        step = int(poses.steps[k])
        many = int((poses.miss.max(axis=1) > reach).sum())
        raise InvalidInput(
            f"{problem.motion.name}: foot {problem.quad.feet[j]} at step {step} "
            f"({step * problem.motion.dt:.3f} s) is {poses.miss[k, j] * 1e3:.0f} mm "
            f"out of the leg's reach ({many} of {len(poses.steps)} knots are); take "
            "shorter or lower strides, or a lower COM"
        )


def _check_support(problem: SpaceTime, notes: list) -> None:
    """Checks that the requested COM's ZMP is in the support polygons at the knots.

    Raises:
        InvalidInput: if it is far outside; a ZMP that is little outside is noted.
    """
    motion, K, h = problem.motion, len(problem.knots), problem.step
    com = motion.com[problem.knots]
    acceleration = np.gradient(np.gradient(com, h, axis=0), h, axis=0)
    over = height_over(problem.ground, com[:, None]).mean(axis=1)
    above = np.column_stack([com[:, :2], over])
    points, margins = zmp(above, acceleration), np.full(K, np.nan)
    # One-sided differences at the ends are not reliable.
    for k in range(2, K - 2):
        feet, contact = problem.desired_feet[k], problem.contact[k]
        heading = motion.heading[problem.knots[k]]
        polygon = support_polygon(problem.quad, feet, contact, heading)
        if polygon is not None and np.isfinite(points[k]).all():
            margins[k] = margin(polygon, points[k])
    if np.isfinite(margins).any():
        worst = int(np.nanargmin(margins))
        step, off = int(problem.knots[worst]), -margins[worst]
        if off > OUTSIDE:
            raise InvalidInput(
                f"{motion.name}: at step {step} ({step * motion.dt:.3f} s) the "
                f"requested COM has its ZMP {off * 1e3:.0f} mm outside the support "
                "polygon; move the COM over the feet, or more slowly"
            )
        if off > 0:
            notes.append(
                f"the requested COM has its ZMP {off * 1e3:.1f} mm outside the support "
                f"polygon at step {step}"
            )


def _check_strength(problem: SpaceTime, poses: Poses, notes: list) -> None:
    """Checks the torques of standing in one pose of each set of standing feet.

    Raises:
        InvalidInput: if they are far beyond the limits; a small excess is noted.
    """
    seen, stable = {}, False
    for k, contact in enumerate(problem.contact):
        seen.setdefault(tuple(contact), []).append(k)
    for contact, knots in seen.items():
        if not any(contact):
            continue
        k = knots[len(knots) // 2]
        found = static_torques(problem, poses.q[k], k)
        if found is None:
            continue
        share, tau = found
        step = int(poses.steps[k])
        stable = True
        if 1 < share <= OVERLOAD:
            notes.append(f"standing at step {step} takes {share:.2f} of the limits")
        if share > OVERLOAD:
            limits = problem.limits
            worst = int(np.argmax(np.abs(tau) / limits))
            down = [f for f, here in zip(problem.quad.feet, contact) if here]
            raise InvalidInput(
                f"{problem.motion.name}: the motors cannot hold the weight: standing "
                f"on {', '.join(down)} (step {step}) takes at least "
                f"{abs(tau[worst]):.3g} N m at {problem.quad.joints[worst]}, whose "
                f"limit is {limits[worst]:.3g} N m; take stronger motors, less weight "
                "or straighter legs"
            )
    if not stable:
        notes.append("no pose of the motion is statically stable; torques not checked")


def static_torques(problem: SpaceTime, q: np.ndarray, knot: int):
    """Smallest share of the torque limits that supports a pose, and its torques.

    Args:
        problem: gives robot, inertias, limits and friction.
        q: pose (nv,).
        knot: knot whose feet are on the ground.

    Returns:
        The share and the torques (m,) [N m]; None if no contact forces balance the
        pose.
    """
    quad, zero = problem.quad, np.zeros(problem.quad.nv)
    contact, d = problem.contact[knot], problem.inertia[0].ravel()
    g = quad.tree.dynamics_function(q, zero, zero, d).full().ravel()
    J = quad.contact_jacobian(q)
    J = J[np.flatnonzero(np.tile(np.repeat(contact, 3), 2))]
    limits = problem.friction, problem.cop_share
    C = cone_rows(quad, q, contact, problem.ground[knot], *limits)
    n = len(J)
    finite = np.isfinite(problem.limits)
    rows, limits = quad.actuated[finite], problem.limits[finite]
    push = np.hstack([-J[:, rows].T, -limits[:, None]])
    pull = np.hstack([J[:, rows].T, -limits[:, None]])
    A = np.vstack([push, pull, np.hstack([C, np.zeros((len(C), 1))])])
    b = np.concatenate([-g[rows], g[rows], np.zeros(len(C))])
    balance = np.hstack([J[:, :6].T, np.zeros((6, 1))])
    cost = np.zeros(n + 1)
    cost[-1] = 1.0
    rows = {"A_ub": A, "b_ub": b, "A_eq": balance, "b_eq": g[:6]}
    bounds = [(None, None)] * n + [(0, None)]
    out = linprog(cost, **rows, bounds=bounds, method="highs")
    if out.status != 0:
        return None
    return float(out.x[-1]), (g - J.T @ out.x[:n])[quad.actuated]
