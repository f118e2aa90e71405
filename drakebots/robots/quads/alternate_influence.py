"""What a frame-by-frame pass tells the next space-time program.

Per frame, the coupling forces on the skeleton (generalized, on Euler coordinates)
and by how much the deformed skin's centre has left its place on each link (paper,
section 5.1). Both are averaged over as many frames as lie between two knots: a knot
stands for that many. Frames that the pass did not reach keep the rigid skin.
"""

from __future__ import annotations

import numpy as np
from scipy.ndimage import uniform_filter1d

from drakebots.results import Result
from drakebots.robots.quads.links_skin import SkinInfluence, frame_inertia
from drakebots.robots.quads.planned_robot import PlannedRobot


def skin_influence(
    robot: PlannedRobot,
    frames: Result,
    planned: tuple[np.ndarray, np.ndarray, np.ndarray],
    *,
    reached: int | None = None,
    window: int = 5,
    base: bool = False,
) -> SkinInfluence:
    """Forces and COM shifts of a pass.

    Args:
        robot: of the pass.
        frames: its result.
        planned: q, v, a of the space-time motion it followed (N, nv); for frames
            that were not reached.
        reached: rows of the pass to use; all by default.
        window: frames to average over.
        base: see :class:`SkinInfluence`.
    """
    q, v, a = (np.array(x, float) for x in planned)
    N = len(q)
    data = frames.data
    n = len(data.time) if reached is None else min(reached, len(data.time))
    force = rigid_forces(robot, q, v, a)
    shift = np.zeros((N, len(robot.quad.tree.bodies), 3))
    if n >= 2:
        convert, dt = robot.coordinates, float(data.time.values[1])
        q_n = convert.from_positions(data.position.values[:n])
        q_n[:, 3] += 2 * np.pi * np.round((q[0, 3] - q_n[0, 3]) / (2 * np.pi))
        v_n = convert.from_velocities(q_n, data.velocity.values[:n])
        # Forces of row i act in the pose of row i - 1, on the way to row i.
        before = np.maximum(np.arange(n) - 1, 0)
        a_n = np.diff(v_n, axis=0, prepend=v_n[:1]) / dt
        a_n[0] = a_n[1]
        q[:n], v[:n] = q_n[before], v_n[before]
        a[:n] = smoothed(a_n, window)
        pull = convert.forces(q_n[before], data.coupling_force.values[:n])
        force[:n] = smoothed(pull, window)
        moved = data.skin_com.values[:n] - data.skin_com_rest.values
        rows = [robot.quad.tree.bodies.index(str(name)) for name in data.link.values]
        shift[:n, rows] = smoothed(moved, window)
    return SkinInfluence(force, shift, q, v, a, base)


def smoothed(values: np.ndarray, window: int) -> np.ndarray:
    """Mean over a window of rows (n, ...); at the ends, of rows there are."""
    return uniform_filter1d(np.asarray(values, float), window, axis=0, mode="nearest")


def rigid_forces(
    robot: PlannedRobot, q: np.ndarray, v: np.ndarray, a: np.ndarray
) -> np.ndarray:
    """Forces (N, nv) of a skin that moves with its links: RNEA_s - RNEA."""
    quad, skin = robot.quad, robot.link_skin
    function = quad.tree.dynamics_function.map(len(q))
    total = frame_inertia(quad, skin, None, np.arange(len(q))).reshape(len(q), -1)
    own = np.repeat(quad.tree.inertia.reshape(1, -1), len(q), axis=0)
    whole = np.asarray(function(q.T, v.T, a.T, total.T))
    return (np.asarray(function(q.T, v.T, a.T, own.T)) - whole).T
