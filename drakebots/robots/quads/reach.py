"""Poses that come nearest to what a motion asks: inverse kinematics by frame.

    min_q  w_p sum |p_j(q) - e_j|^2 + w_c |c(q) - g|^2 + w_n sum |n_j(q) - z|^2
           + w_q |q - q_n|^2,      lower <= q <= upper

Gauss-Newton with the bounds active-set by clipping, each frame from the one
before. q_n is the rest pose moved along, so that what the feet leave free stays
near it.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from drakebots.robots.quads.motion import MotionInput
from drakebots.robots.quads.quad import Quad

FOOT, COM, FLAT, POSTURE = 1.0, 0.5, 1e-2, 1e-4
"""Square roots of the weights [1/m, 1/m, 1, 1]: a tilt of 0.1 rad costs what a
millimetre of a foot does."""

ITERATIONS, FIRST = 40, 300
"""Of a frame, and of the first one, which has none before it."""

LIMIT_GAP = 1e-3
"""Poses keep this far from joint limits [rad]: interior-point solvers like it."""


@dataclass(frozen=True)
class Poses:
    """Poses of some frames and what they miss.

    Attributes:
        frames: of the motion (k,).
        q: (k, nv).
        miss: distance of each foot from where it should be (k, feet) [m].
        com_miss: of the COM (k,) [m].
    """

    frames: np.ndarray
    q: np.ndarray
    miss: np.ndarray
    com_miss: np.ndarray


def nearest_poses(
    quad: Quad,
    motion: MotionInput,
    frames: np.ndarray,
    inertia: np.ndarray | None = None,
) -> Poses:
    """Poses for some frames.

    Args:
        quad: the robot.
        motion: what is asked.
        frames: increasing (k,).
        inertia: of the links with the skin (links, 10); the skeleton's by default.
    """
    frames = np.asarray(frames)
    d = (quad.tree.inertia if inertia is None else inertia).ravel()
    function = quad.tree.pose_function(quad.soles)
    nf = len(quad.soles)
    order = [motion.footfall.feet.index(name) for name in quad.feet]
    weights = np.concatenate(
        [np.full(3 * nf, FOOT), np.full(3 * nf, FLAT), np.full(3, COM)]
    )
    low, high = quad.position_limits
    low, high = low + LIMIT_GAP, high - LIMIT_GAP
    posture = np.full(quad.nv, POSTURE)
    posture[:3] = 0.0
    for name in motion.reference:
        posture[quad.coordinates.index(name)] = 0.1
    rest_com = quad.com(quad.rest, d.reshape(1, -1, 10))[0]
    q, last, poses = None, 0, []
    miss, com_miss = [], []
    for i in frames:
        nominal = quad.rest.copy()
        nominal[3] += motion.heading[i]
        nominal[:3] += motion.com[i] - rest_com
        for name, values in motion.reference.items():
            nominal[quad.coordinates.index(name)] = values[i]
        target = np.concatenate(
            [
                motion.feet[i, order].ravel(),
                np.tile([0.0, 0.0, 1.0], nf),
                motion.com[i],
            ]
        )
        if q is None:
            q = np.clip(nominal, low, high)
        else:
            # The base moves along with the COM.
            q = q.copy()
            q[:3] += motion.com[i] - motion.com[last]
            q[3] += motion.heading[i] - motion.heading[last]
        last = i
        q, value = _solve(
            function,
            d,
            q,
            target,
            weights,
            nominal,
            posture,
            (low, high),
            FIRST if i == frames[0] else ITERATIONS,
        )
        off = (value - target)[: 3 * nf].reshape(nf, 3)
        poses.append(q)
        miss.append(np.linalg.norm(off, axis=1))
        com_miss.append(np.linalg.norm((value - target)[-3:]))
    return Poses(frames, np.array(poses), np.array(miss), np.array(com_miss))


def _solve(function, d, q, target, weights, nominal, posture, bounds, most):
    low, high = bounds

    def cost(q, value):
        return np.sum((weights * (value - target)) ** 2) + np.sum(
            (posture * (q - nominal)) ** 2
        )

    def evaluate(q):
        value, J = function(q, d)
        return value.full().ravel(), J

    value, J = evaluate(q)
    best, damping = cost(q, value), 1e-8
    for _ in range(most):
        A = weights[:, None] * J.full()
        gradient = A.T @ (weights * (value - target)) + posture**2 * (q - nominal)
        held = ((q <= low) & (gradient > 0)) | ((q >= high) & (gradient < 0))
        free = ~held
        H = A[:, free].T @ A[:, free] + np.diag(posture[free] ** 2 + damping)
        step = np.zeros_like(q)
        step[free] = -np.linalg.solve(H, gradient[free])
        step *= min(1.0, 0.5 / max(np.abs(step[3:]).max(), 1e-12))
        trial = np.clip(q + step, low, high)
        trial_value, trial_J = evaluate(trial)
        trial_cost = cost(trial, trial_value)
        if trial_cost < best:
            small = best - trial_cost < 1e-12 + 1e-7 * best
            q, value, J, best = trial, trial_value, trial_J, trial_cost
            damping = max(damping / 10, 1e-10)
            if small:
                break
        else:
            damping *= 10
            if damping > 1.0:
                break
    return q, value
