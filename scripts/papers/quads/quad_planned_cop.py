"""The COP that a motion needs once the skin deforms (Figs. 11 and 20).

Of the whole robot's equations on the base, RNEA(q, v, a; links with skin) - delta =
the ground's wrench. With delta's base rows of a pass with skin, that is what the
feet must provide if the skeleton moves so and the skin as it did then; it acts at

    COP = p_xy + [-M_y, M_x]/F_z,  M about the point of the ground below the base

A COP outside the feet cannot be had: the robot tips.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from drakebots.robots.quads.motion import margin, support_polygon
from drakebots.robots.quads.robot import (
    PlannedRobot,
    SkinInfluence,
    coupling_forces,
    euler_rates,
    frame_inertia,
)


def needed_wrench(
    robot: PlannedRobot,
    motion: tuple[np.ndarray, np.ndarray, np.ndarray],
    influence: SkinInfluence | None = None,
) -> np.ndarray:
    """Of the ground on the robot about the base's origin, world: [M, F] (N, 6).

    Args:
        robot: whose skin is weight on the links.
        motion: q, v, a (N, nv) on Euler coordinates.
        influence: of the deformed skin; None for a rigid one.
    """
    q, v, a = motion
    quad, frames = robot.quad, np.arange(len(q))
    if influence is not None:
        influence = replace(influence, base=True)
    d = frame_inertia(quad, robot.link_skin, influence, frames).reshape(len(q), -1)
    rows = np.asarray(quad.tree.dynamics_function.map(len(q))(q.T, v.T, a.T, d.T)).T
    rows = rows - coupling_forces(quad, robot.link_skin, influence, frames)
    # f_Euler = E' M for the moment about the base's origin.
    E = euler_rates(q)
    M = np.linalg.solve(np.swapaxes(E, 1, 2), rows[:, 3:6, None])[..., 0]
    return np.hstack([M, rows[:, :3]])


def needed_cop(
    robot: PlannedRobot,
    motion: tuple[np.ndarray, np.ndarray, np.ndarray],
    influence: SkinInfluence | None = None,
) -> np.ndarray:
    """(N, 2) [m]; NaN where nothing presses on the ground."""
    wrench = needed_wrench(robot, motion, influence)
    M, F, p = wrench[:, :3], wrench[:, 3:], motion[0][:, :3]
    down = p * [0.0, 0.0, 1.0]
    M = M + np.cross(down, F)
    load = F[:, 2:]
    with np.errstate(divide="ignore", invalid="ignore"):
        at = p[:, :2] + np.stack([-M[:, 1], M[:, 0]], axis=1) / load
    return np.where(load > 1e-6, at, np.nan)


def needed_margin(
    robot: PlannedRobot, q: np.ndarray, contact: np.ndarray, cop: np.ndarray
) -> np.ndarray:
    """Of a COP in the soles' polygon (N,) [m]; negative outside, NaN in flight."""
    feet = robot.quad.foot_positions(q)
    out = np.full(len(q), np.nan)
    for k in range(len(q)):
        if contact[k].any() and np.isfinite(cop[k]).all():
            polygon = support_polygon(robot.quad, feet[k], contact[k], q[k, 3])
            out[k] = margin(polygon, cop[k])
    return out
