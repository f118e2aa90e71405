"""Derivatives of the gecko's motion, beside central differences of the motion."""

from __future__ import annotations

import numpy as np
import pytest

from drakebots.robots.gecko.engines import (
    CycleMotion,
    cycle_jacobian,
    cycle_motion,
    follow,
    motion_jacobian,
    references,
)
from drakebots.robots.gecko.model import gecko

UNEQUAL = (1.1, 0.9, 1.05, 0.95, 1.0, 0.97)
STEP = 1e-5


def values(cycle: CycleMotion) -> np.ndarray:
    return np.array([cycle.rotation, cycle.forward, cycle.left])


def by_differences(motion, at, directions) -> np.ndarray:
    """Central differences (3, n) of a motion (3,) in directions (n, ...)."""
    sides = [(motion(at + STEP * d), motion(at - STEP * d)) for d in directions]
    return np.transpose([(up - down) / (2 * STEP) for up, down in sides])


@pytest.mark.parametrize("limited", [False, True])
@pytest.mark.parametrize("weights", ["velocity_space", "single_cycle"])
@pytest.mark.parametrize("q1, q2", [(60, 0.3), (72, -0.23), (80, -0.45)])
def test_by_the_gait(q1, q2, weights, limited):
    """Lengths are at their kink with the first weights, at their bounds with others;
    at (80, -0.45) the gait law clips a leg."""
    robot, gait = gecko(weights=weights), np.array([np.radians(q1), q2])

    def motion(q):
        return values(cycle_motion(robot, *q, limited=limited))

    expected = by_differences(motion, gait, np.eye(2))
    found = cycle_jacobian(robot, *gait, limited=limited)
    np.testing.assert_allclose(found, expected, atol=3e-5 * abs(expected).max())


def test_of_a_robot_whose_limbs_differ():
    robot, gait = gecko(bends=UNEQUAL), np.array([np.radians(70), 0.0])

    def motion(q):
        return values(cycle_motion(robot, *q))

    expected = by_differences(motion, gait, np.eye(2))
    found = cycle_jacobian(robot, *gait)
    np.testing.assert_allclose(found, expected, atol=1e-6 * abs(expected).max())


def test_by_reference_angles():
    """Along random directions of all ten angles, of a gait that no law gives."""
    robot, random = gecko(), np.random.default_rng(3)
    angles = references(robot, np.radians(70), 0.2) + random.uniform(-0.1, 0.1, (2, 5))
    ways = random.standard_normal((3, 2, 5))

    def motion(each):
        return values(CycleMotion.last(follow(robot, each, 6)))

    expected = by_differences(motion, angles, ways)
    found = motion_jacobian(robot, angles, follow(robot, angles, 6))
    np.testing.assert_allclose(
        np.einsum("kij,nij->kn", found, ways), expected, atol=1e-6
    )


def test_of_a_straight_gait_by_the_step_length():
    """All norms are at their kinks there, and stay so when q1 changes; by q2, which
    lifts them, the derivative is that of the smoothed norms."""
    robot, q1 = gecko(), np.radians(70)
    found = cycle_jacobian(robot, q1, 0.0)
    ahead, behind = (values(cycle_motion(robot, q1 + h, 0.0)) for h in (STEP, -STEP))
    np.testing.assert_allclose(found[:, 0], (ahead - behind) / (2 * STEP), atol=1e-6)
    assert abs(found[0, 0]) < 1e-9  # a straight gait stays straight
