"""Gaits by the pose step: their motion per cycle."""

import numpy as np
import pytest

from drakebots.core.errors import InvalidInput
from drakebots.robots.gecko import Simulation, simulate
from drakebots.robots.gecko.engines import cycle_motion, half_cycle, relative_motion
from drakebots.robots.gecko.model import gecko, pose_at

ROBOT = gecko()


def test_a_settled_cycle_repeats():
    a = cycle_motion(ROBOT, 1.2, 0.4, settle=6)
    b = cycle_motion(ROBOT, 1.2, 0.4, settle=7)
    assert a.rotation == pytest.approx(b.rotation, abs=1e-6)
    assert a.forward == pytest.approx(b.forward, abs=1e-8)


def test_saturation_turns_less_at_large_steps():
    """As the paper's robot did for q1 >= 80 deg."""
    free = cycle_motion(ROBOT, np.radians(90), 0.5)
    bound = cycle_motion(ROBOT, np.radians(90), 0.5, limited=True)
    assert abs(bound.rotation) < abs(free.rotation)


BENDS = (1.1, 0.95, 1.05, 0.9, 1.0, 0.97)


def moved(bends, sign, q2):
    """Rotation [rad] and displacement [m] of a cycle of which q1 has a sign first."""
    robot, q1 = gecko(bends=bends), np.radians(70)
    pose = pose_at(robot, robot.bent(robot.reference(-sign * q1, q2)))
    poses = [pose]
    for k in range(8):
        q = sign * (-1) ** k * q1
        poses.append(half_cycle(robot, poses[-1], q, q2).pose)
    return relative_motion(poses[-3], poses[-1])


def test_a_mirrored_robot_walks_the_mirrored_way():
    """Left and right actuators change places, and so do the half cycles."""
    rotation, (forward, left) = moved(BENDS, 1, 0.3)
    mirrored = tuple(BENDS[k] for k in (1, 0, 3, 2, 5, 4))
    other, (ahead, aside) = moved(mirrored, -1, -0.3)
    assert (other, ahead, aside) == pytest.approx((-rotation, forward, -left), abs=1e-6)


def test_limbs_that_bend_unequally_turn_a_straight_gait():
    """By the torso: what is bent further to the left in one half cycle than to the
    right in the other is a steering q2, for alpha_2 = q1 (1 + q2) and -q1 (1 - q2)."""
    assert cycle_motion(gecko(), 1.2, 0.0).rotation == pytest.approx(0, abs=1e-9)
    torso = gecko(bends=(1, 1, 1.1, 0.9, 1, 1))
    assert cycle_motion(torso, 1.2, 0.0).rotation < -np.radians(1)


def test_bends_are_six_shares():
    for wrong in ((1.0,) * 5, (1.0,) * 7, (1.0,) * 5 + (0.0,)):
        with pytest.raises(InvalidInput, match="bends"):
            gecko(bends=wrong)


def test_bends_may_be_a_list():
    """As from a YAML file; the generator's fit is stored by them."""
    course = Simulation(targets=((0.1, 0.0),), heading=0.0, bends=list(BENDS))
    assert course.bends == BENDS
    assert simulate(course).ok
