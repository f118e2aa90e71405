"""Contact forces and torques that a given motion needs.

With b = RNEA(q, v, a) (without contact) and the contact Jacobian J, the wrenches
w = [F, T] of the feet in contact support a motion if the rows of the base of J'w equal
those of b; the joint torques are tau = b - J'w. Of all such w take

    min  |tau / limit|^2 + rho |w|^2      (rho is small and makes w unique)

without inequalities. :func:`cone_rows` has the inequalities of friction pyramids and of
each foot's COP in its sole.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from drakebots.core.units import GRAVITY
from drakebots.robots.quads.robot import Quad

PYRAMID = np.sqrt(0.5)
"""Factor of mu: the pyramid |F_x|, |F_y| <= mu F_z / sqrt(2) is inside the cone."""

MISSING = 1e-3
"""Largest unsupported force of a feasible motion, as a share of the weight."""


Solve = Callable[..., tuple[np.ndarray, bool]]
"""Called as solve(H, h, A, b); see :func:`carry`."""


@dataclass(frozen=True)
class Carried:
    """Contact forces and torques of one pose.

    Attributes:
        F, T: forces and torques at the soles (feet, 3) [N], [N m], world.
        tau: torques of the actuators (m,) [N m].
        missing: wrench on the base that the contacts cannot supply (6,) [N, N m].
        feasible: whether all constraints hold and nothing is missing.
    """

    F: np.ndarray
    T: np.ndarray
    tau: np.ndarray
    missing: np.ndarray
    feasible: bool


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
) -> Carried:
    """Contact forces for a pose in motion.

    Args:
        quad: the robot.
        q, v, a: positions, velocities and accelerations (nv,).
        contact: feet on the ground (feet,).
        inertia: inertias of the links (links, 10); the skeleton's by default.
        delta: further generalized forces (nv,).
        solve: minimizes 1/2 w'H w - h'w subject to A w = b, given H, h, A and b; also
            tells whether it succeeded. By default the closed form.
    """
    d = (quad.tree.inertia if inertia is None else inertia).ravel()
    b = quad.tree.dynamics_function(q, v, a, d).full().ravel() - delta
    J = quad.tree.contact_jacobian(quad.soles)(q).full()
    kept = np.flatnonzero(np.tile(np.repeat(contact, 3), 2))
    J = J[kept]
    w = np.zeros(len(kept))
    limits = np.where(np.isfinite(quad.torque_limits), quad.torque_limits, 1.0)
    scale = d.reshape(-1, 10)[:, 0].sum() * GRAVITY
    # Torques at a sole are measured as forces at its rim.
    size = np.array([s.radius for s in quad.soles])
    rho = np.concatenate([np.ones(3 * len(size)), np.repeat(1 / size, 3)])[kept] / scale
    A = J[:, :6].T
    missing, feasible = b[:6], not len(kept) and np.abs(b[:6]).max() < 1e-6
    if len(kept):
        rows = quad.actuated
        G, g = (J[:, rows] / limits).T, b[rows] / limits
        H = G.T @ G + np.diag(rho**2)
        w, feasible = (solve or _least_squares)(H, G.T @ g, A, b[:6])
        missing = b[:6] - A @ w
    wrench = np.zeros(6 * len(quad.soles))
    wrench[kept] = w
    F, T = wrench.reshape(2, -1, 3)
    tau = (b - J.T @ w)[quad.actuated]
    feasible = bool(feasible and np.abs(missing).max() < MISSING * scale)
    return Carried(F, T, tau, missing, feasible)


def _least_squares(H, h, A, b):
    K = np.block([[H, A.T], [A, -1e-12 * np.eye(len(A))]])
    return np.linalg.lstsq(K, np.concatenate([h, b]), rcond=None)[0][: len(h)], True


def cone_rows(quad: Quad, q, contact, friction: float, share: float = 1.0):
    """Rows C with C w <= 0: friction pyramids, and COPs inside the soles.

    w stacks the forces, then the torques, of all feet in contact.

    Args:
        quad: the robot.
        q: positions (nv,).
        contact: feet on the ground (feet,).
        friction: mu.
        share: share of each sole that its COP may use.
    """
    down = [s for s, here in zip(quad.soles, contact) if here]
    n, rows = len(down), []
    for j, sole in enumerate(down):
        R = quad.tree.sole_axes_function(sole)(q).full()
        F, T = np.zeros((3, 6 * n)), np.zeros((3, 6 * n))
        F[:, 3 * j : 3 * j + 3] = np.eye(3)
        T[:, 3 * n + 3 * j : 3 * n + 3 * j + 3] = np.eye(3)
        mu = PYRAMID * friction
        rows += [s * F[i] - mu * F[2] for i in (0, 1) for s in (1, -1)]
        push, twist = R.T @ F, R.T @ T
        normals, offsets = sole.edges
        rows += [
            -n_[0] * twist[1] + n_[1] * twist[0] - share * b * push[2]
            for n_, b in zip(normals, offsets)
        ]
        # Torsional friction, eq. (8) with the normal force alone.
        rows += [s * T[2] - mu * sole.radius * F[2] for s in (1, -1)]
    return np.array(rows)
