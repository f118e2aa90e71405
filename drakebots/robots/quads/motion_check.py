"""Whether a robot can do what a motion asks, found before solving.

Three questions, at the knots: do the legs reach, is the COM above the feet, do
the motors hold the weight. The last is a linear program a pose,

    min s   s.t.  |tau_i| <= s limit_i,   tau = g(q) - J'w,
                  J'w carries the weight, friction pyramids, COPs in soles
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.optimize import linprog

from drakebots.errors import InvalidInput
from drakebots.robots.quads.reach import Poses, nearest_poses
from drakebots.robots.quads.space_time import SpaceTime
from drakebots.robots.quads.support import margin, support_polygon, zmp
from drakebots.robots.quads.wrenches import cone_rows

REACH = 0.01
"""A foot may miss its place by this much [m]: the optimization shares it out."""

OUTSIDE = 0.05
"""The ZMP of the asked COM may be this far from the support [m]."""


OVERLOAD = 1.25
"""Quiet poses of inverse kinematics may take this share of the limits: the
optimization shifts poses, and a trot never stands on two feet for long."""


@dataclass(frozen=True)
class MotionReport:
    """What was found.

    Attributes:
        poses: of the knots.
        zmp_margin: of the asked COM's ZMP in the support (K,) [m]; NaN in flight.
        static_share: torques over limits of quiet poses, by frame.
        notes: what is odd but no error, one line each.
    """

    poses: Poses
    zmp_margin: np.ndarray
    static_share: dict[int, float]
    notes: tuple[str, ...]


def check_motion(problem: SpaceTime, *, reach: float = REACH) -> MotionReport:
    """Refuses a motion the robot cannot do.

    Args:
        problem: what would be solved.
        reach: a foot may miss by [m].

    Raises:
        InvalidInput: naming foot, frame and distance out of reach; frames with the
            ZMP far from the feet; or the joint and the torque the weight needs.
    """
    poses = nearest_poses(
        problem.quad, problem.motion, problem.frames, problem.inertia[0]
    )
    notes = []
    _reach(problem, poses, reach)
    margins = _support(problem, notes)
    shares = _strength(problem, poses, notes)
    return MotionReport(poses, margins, shares, tuple(notes))


def _reach(problem: SpaceTime, poses: Poses, reach: float) -> None:
    k, j = np.unravel_index(poses.miss.argmax(), poses.miss.shape)
    if poses.miss[k, j] > reach:
        frame = int(poses.frames[k])
        many = int((poses.miss.max(axis=1) > reach).sum())
        raise InvalidInput(
            f"{problem.motion.name}: foot {problem.quad.feet[j]} at frame {frame} "
            f"({frame * problem.motion.dt:.3f} s) is {poses.miss[k, j] * 1e3:.0f} mm "
            f"out of the leg's reach ({many} of {len(poses.frames)} knots are); take "
            "shorter or lower steps, or a lower COM"
        )


def _support(problem: SpaceTime, notes: list) -> np.ndarray:
    motion, K = problem.motion, len(problem.frames)
    step = problem.step
    com = motion.com[problem.frames]
    acceleration = np.gradient(np.gradient(com, step, axis=0), step, axis=0)
    points = zmp(com, acceleration)
    margins = np.full(K, np.nan)
    for k, frame in enumerate(problem.frames):
        polygon = support_polygon(
            problem.quad,
            problem.desired_feet[k],
            problem.contact[k],
            motion.heading[frame],
        )
        if polygon is not None and np.isfinite(points[k]).all():
            margins[k] = margin(polygon, points[k])
    # One-sided differences at the ends are no evidence.
    inner = np.where(np.isin(np.arange(K), [0, 1, K - 2, K - 1]), np.nan, margins)
    if np.isfinite(inner).any():
        worst = int(np.nanargmin(inner))
        frame, off = int(problem.frames[worst]), -inner[worst]
        if off > OUTSIDE:
            raise InvalidInput(
                f"{motion.name}: at frame {frame} ({frame * motion.dt:.3f} s) the COM "
                f"asks for a ZMP {off * 1e3:.0f} mm outside the feet on the ground; "
                "move the COM over them, or slower"
            )
        if off > 0:
            notes.append(
                f"the asked COM has its ZMP {off * 1e3:.1f} mm outside the support at "
                f"frame {frame}"
            )
    return margins


def _strength(problem: SpaceTime, poses: Poses, notes: list) -> dict[int, float]:
    """One pose of each set of feet."""
    seen, shares = {}, {}
    for k, contact in enumerate(problem.contact):
        seen.setdefault(tuple(contact), []).append(k)
    for contact, knots in seen.items():
        if not any(contact):
            continue
        k = knots[len(knots) // 2]
        found = static_torques(problem, poses.q[k], np.array(contact))
        if found is None:
            continue
        share, tau = found
        frame = int(poses.frames[k])
        shares[frame] = share
        if 1 < share <= OVERLOAD:
            notes.append(f"standing at frame {frame} takes {share:.2f} of the limits")
        if share > OVERLOAD:
            limits = problem.limits
            worst = int(np.argmax(np.abs(tau) / limits))
            down = [f for f, here in zip(problem.quad.feet, contact) if here]
            raise InvalidInput(
                f"{problem.motion.name}: the limits cannot hold the weight: standing "
                f"on {', '.join(down)} (frame {frame}) takes at least "
                f"{abs(tau[worst]):.3g} N m at {problem.quad.joints[worst]}, whose "
                f"limit is {limits[worst]:.3g} N m; take stronger motors, less weight "
                "or straighter legs"
            )
    if not shares:
        notes.append("no pose of the motion stands by itself: torques are not checked")
    return shares


def static_torques(problem: SpaceTime, q: np.ndarray, contact: np.ndarray):
    """Least share of the limits that holds a pose, and the torques (m,) [N m].

    None where no contact forces balance it.
    """
    quad, zero = problem.quad, np.zeros(problem.quad.nv)
    d = problem.inertia[0].ravel()
    g = quad.tree.dynamics_function(q, zero, zero, d).full().ravel()
    J = quad.tree.contact_jacobian(quad.soles)(q).full()
    J = J[np.flatnonzero(np.tile(np.repeat(contact, 3), 2))]
    C = cone_rows(quad, q, contact, problem.friction, problem.cop_share)
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
    out = linprog(
        cost,
        A_ub=A,
        b_ub=b,
        A_eq=balance,
        b_eq=g[:6],
        bounds=[(None, None)] * n + [(0, None)],
        method="highs",
    )
    if out.status != 0:
        return None
    tau = (g - J.T @ out.x[:n])[quad.actuated]
    return float(out.x[-1]), tau
