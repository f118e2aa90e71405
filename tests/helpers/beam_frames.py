"""A straight beam as a frame, at any turn."""

from __future__ import annotations

import numpy as np

from drakebots.lattice.frame import Frame, Load, Supports, solve_frame
from drakebots.lattice.shape import Strut

STEEL = Strut(0.02, 0.03, 2.1e11, 0.3, 7800.0)


def at_nodes(frame, values) -> np.ndarray:
    """An array (N, 6) with six values at each named node, zero elsewhere."""
    array = np.zeros((len(frame), 6))
    for node, six in values.items():
        array[node] = six
    return array


def turn(seed: int) -> np.ndarray:
    """A random rotation."""
    q, _ = np.linalg.qr(np.random.default_rng(seed).standard_normal((3, 3)))
    return q * np.sign(np.linalg.det(q))


def cantilever(count=4, length=1.5, shear=False, seed=1):
    """A straight beam of `count` pieces, clamped at node 0, and its axes."""
    R = turn(seed)  # columns x, y, z of the beam
    along = np.linspace(0, length, count + 1)
    positions = along[:, None] * R[:, 0]
    beams = np.column_stack([np.arange(count), np.arange(1, count + 1)])
    frame = Frame(positions, beams, STEEL, R[:, 1], shear)
    held = np.zeros((count + 1, 6), bool)
    held[0] = True
    return frame, Supports(held), R


def tip(frame, supports, R, force=(0, 0, 0), moment=(0, 0, 0)):
    """Motion of the tip in the beam's axes, (3,) and (3,), and the solution."""
    six = np.r_[R @ np.array(force, float), R @ np.array(moment, float)]
    load = Load(force=at_nodes(frame, {len(frame) - 1: six}))
    solution = solve_frame(frame, supports, load)
    u = solution.displacement[-1]
    return R.T @ u[:3], R.T @ u[3:], solution


def pair_forces(frame, pairs, force) -> np.ndarray:
    """Forces (N, 6) that push node pairs apart with given forces [N]."""
    forces = np.zeros((len(frame), 6))
    for (first, second), push in zip(pairs, force, strict=True):
        forces[first, :3] -= push * frame.axis(first, second)
        forces[second, :3] += push * frame.axis(first, second)
    return forces
