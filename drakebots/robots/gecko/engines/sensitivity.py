"""Derivatives of the gecko's motion: by a gait's (q1, q2), and by its reference angles.

    by_gait = cycle_jacobian(robot, q1, q2)                   # (3, 2)
    by_angles = motion_jacobian(robot, angles, follow(robot, angles, 10))   # (3, 2, 5)

A pose step ends where the gradient of its Lagrangian is zero and the fixed feet are in
place (:mod:`pose_solver`),

    A' (r/s) + b + J' lam = 0,   c(x) = 0,   r = A x - target,   s = sqrt(|r|^2 + d^2)

with the barrier's gradient b. Its derivative by the target, the bounds and the feet's
places is that of the implicit function:

    [ A' M A + lam . d2c + B   J' ] [ dx   ]   [ A' M dtarget + B dlo ]
    [ J                        0  ] [ dlam ] = [ J_before dx_before   ]

with M = (I - r r'/s^2)/s of each norm and the barrier's diagonal B. The target holds
the headings of the fixed feet, linear in the pose before, and the reference angles. So
one step maps (dx_before, dreference) to dx, and a walk is the product of its steps.

A norm at its kink (no stretch, in nearly all gaits) acts as an equation, for M is 1/d
there. **Where all three are**, as in the settled straight gait q2 = 0, the optimum
follows a change of its parameters in proportion, but not linearly. What is returned is
the derivative of the smoothed norms; by q2 it is a fifth off there. Just where the gait
law begins to clip a leg's angle, or the pressure a limb's, there is no derivative.
"""

from __future__ import annotations

from itertools import pairwise

import numpy as np

from drakebots.model import plane_rotation
from drakebots.robots.gecko.engines.pose_solver import (
    EPS,
    GROUPS,
    NUM_BOUNDED,
    NUM_ROWS,
    NUM_X,
    P1,
    SMOOTHING,
    constraints,
    norm_derivatives,
    row_matrix,
    smoothed,
)
from drakebots.robots.gecko.engines.pose_step import CM, follow, optimum, references
from drakebots.robots.gecko.model import Gecko, Pose, fixation

STEP = 1e-6
"""Change of q1 [rad] and q2 for differences of the gait law. It is bilinear between its
kinks, where central differences are exact but for rounding."""


def cycle_jacobian(
    robot: Gecko, q1: float, q2: float, *, settle: int = 4, limited: bool = False
) -> np.ndarray:
    """d(rotation, forward, left)/d(q1, q2) (3, 2) of :func:`cycle_motion`, in SI.

    Raises:
        InvalidInput: for q1 or q2 out of range.
        NoSolution: when a pose step fails.
    """
    angles = references(robot, q1, q2, limited)
    poses = follow(robot, angles, 2 * settle + 2)
    by_angles = motion_jacobian(robot, angles, poses).reshape(3, -1)
    sides = [
        [references(robot, q1 + h * i, q2 + h * j, limited) for h in (STEP, -STEP)]
        for i, j in np.eye(2)
    ]
    law = [(up - down).ravel() / (2 * STEP) for up, down in sides]
    return by_angles @ np.transpose(law)


def motion_jacobian(robot: Gecko, angles, poses: list[Pose]) -> np.ndarray:
    """d(rotation, forward, left)/d(angles) (3, 2, 5) of the last cycle of a gait.

    Args:
        robot: lengths and weights.
        angles: reference angles of the half cycles with q1 > 0 and q1 < 0 (2, 5) [rad].
        poses: those of `follow(robot, angles, ...)`.
    """
    by_angles = np.zeros((NUM_X, 10))
    by_angles[:5, 5:] = np.eye(5)  # it starts in the second angles
    passed = [by_angles]
    for k, (before, after) in enumerate(pairwise(poses)):
        by_pose, by_reference = _step(robot, before, after, angles[k % 2], k % 2)
        by_angles = by_pose @ by_angles
        by_angles[:, 5 * (k % 2) :][:, :5] += by_reference
        passed.append(by_angles)
    first, last, a, b = passed[-3], passed[-1], poses[-3], poses[-1]
    back = plane_rotation(-a.heading)
    # d/dheading of R(-heading) is R(-heading - pi/2).
    turned = plane_rotation(-a.heading - np.pi / 2) @ (b.position - a.position)
    moved = CM * back @ (last - first)[P1:] + np.outer(turned, first[EPS])
    return np.vstack([last[EPS] - first[EPS], moved]).reshape(3, 2, 5)


def _step(robot: Gecko, before: Pose, after: Pose, reference, second: int):
    """dx/dx_before (13, 13) and dx/dreference (13, 5) of a pose step."""
    fixed, d = fixation(-1 if second else 1), SMOOTHING[-1]
    start, lo, hi, target, weights, feet = optimum(robot, before, reference, fixed)
    place = (after.position - before.position) / CM
    x = np.concatenate([after.alpha, after.ell / CM, [after.heading], place])
    A, rows = row_matrix(weights, fixed), 2 * int(fixed.sum())
    free, H = np.zeros(rows), np.zeros((NUM_X, NUM_X))
    J_before, J = (constraints(at, *feet, free, H)[1] for at in (start, x))
    r = A @ x - target
    s = smoothed(r, d)
    y = r / np.repeat(s, [last - first for first, last in GROUPS])
    gradient, M = np.zeros(NUM_ROWS), np.zeros((NUM_ROWS, NUM_ROWS))
    norm_derivatives(np.eye(NUM_ROWS), r, y, s, gradient, M)
    below, above = x[:NUM_BOUNDED] - lo, hi - x[:NUM_BOUNDED]
    slope = A.T @ gradient
    slope[:NUM_BOUNDED] += d / above - d / below
    lam = np.linalg.lstsq(J.T, -slope, rcond=None)[0]
    barrier = d / below**2 + d / above**2
    H = A.T @ M @ A
    H[range(NUM_BOUNDED), range(NUM_BOUNDED)] += barrier
    constraints(x, *feet, lam, H)
    kkt = np.block([[H, J.T], [J, np.zeros((rows, rows))]])
    wanted = np.zeros((NUM_ROWS, NUM_X + 5))
    wanted[5:9, :NUM_X] = A[5:9]
    wanted[9:, NUM_X:] = weights[2] * np.eye(5)
    right = np.zeros((NUM_X + rows, NUM_X + 5))
    right[:NUM_X] = A.T @ M @ wanted
    right[range(5), range(NUM_X, NUM_X + 5)] += barrier[:5]
    right[NUM_X:, :NUM_X] = J_before
    # p1 is relative to that of the pose before, and moves with it.
    found = np.linalg.solve(kkt, right)[:NUM_X]
    return found[:, :NUM_X], found[:, NUM_X:]
