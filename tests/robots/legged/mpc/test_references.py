"""References of controlled robots: clocks, ways and stepping joints."""

from __future__ import annotations

import numpy as np
import pytest

from drakebots import build_robot, load
from drakebots.multibody import find_posture
from drakebots.robots.legged.mpc import Trot, Way


def standing(name):
    """A robot on a base of Euler angles, and its standing pose."""
    model = load(name)
    robot = build_robot(model, base="euler", time_step=0)
    posture, context = find_posture(model), robot.plant.CreateDefaultContext()
    q = robot.plant.GetPositions(context)
    for joint, value in posture.joints.items():
        q[robot.plant.GetJointByName(joint).position_start()] = value
    robot.plant.SetPositions(context, q)
    robot.set_base_pose(context, posture.X_WB)
    return robot, context, robot.plant.GetPositions(context)


@pytest.fixture(scope="module")
def cheetah():
    return standing("mini_cheetah")


def way(robot, q, **more):
    return Way(robot, q, step=0.05, knots=20, **more)


def test_pairs_step_in_turn():
    """Each foot is in the air for 1 - duty of a cycle, never both pairs at once."""
    clock, first = Trot(period=0.4, duty=0.6), np.array([True, False])
    air = clock.swing(np.linspace(0, 4, 4001)[:-1], first) > 0
    assert air.mean(axis=0) == pytest.approx(0.4, abs=0.01)
    assert not air.all(axis=1).any()


@pytest.mark.parametrize("speed", [0.4, 0.0])
def test_feet_stand_still_while_the_base_passes(cheetah, speed):
    """In its stance a foot keeps its place on the ground at any speed and turn."""
    robot, context, q0 = cheetah
    turn, clock = 0.3, Trot()
    asked = way(robot, q0, speed=speed, turn=turn, gait=clock)
    times = np.linspace(0, clock.period, 41)[:-1]
    feet = []
    for t in times:
        q = asked.sample(np.array([t]), q0)[0][0]
        robot.plant.SetPositions(context, np.r_[q0[:6], q[6:]])
        feet.append(robot.feet_positions(context))
    feet = np.array(feet)
    down = clock.swing(times, asked.first) == 0
    ahead, behind = np.roll(feet, -1, axis=0), np.roll(feet, 1, axis=0)
    rates = (ahead - behind) / (2 * times[1])
    for foot in range(4):
        near = [np.roll(down[:, foot], k) for k in (-2, -1, 0, 1, 2)]
        steady = np.flatnonzero(np.all(near, axis=0))
        arm = feet[steady, foot, :2] - q0[:2]
        expected = -speed * np.array([1, 0]) - turn * np.stack(
            [-arm[:, 1], arm[:, 0]], 1
        )
        # A chord instead of an arc, and steps between the table's phases.
        assert np.abs(rates[steady, foot, :2] - expected).max() < 0.03
        assert np.ptp(feet[steady, foot, 2]) < 1e-4
        lift = feet[:, foot, 2].max() - feet[steady, foot, 2].min()
        assert lift == pytest.approx(clock.clearance, rel=0.03)


def test_rates_are_those_of_the_positions(cheetah):
    robot, _, q0 = cheetah
    asked = way(robot, q0, goal=(2, 1), speed=0.4, gait=Trot())
    times = 0.01 * np.arange(60)
    q, v = asked.sample(times, q0)
    middle = (v[1:] + v[:-1]) / 2
    base = np.abs(np.diff(q, axis=0) / 0.01 - middle)[:, :6]
    assert base.max() < 0.02
    # The table of the joints is linear between 40 phases.
    joints = np.abs(np.diff(q, axis=0) / 0.01 - middle)[:, 6:]
    assert np.median(joints) < 0.2


def test_a_way_ends_at_its_goal(cheetah):
    robot, _, q0 = cheetah
    goal = np.array([0.6, -0.3])
    q, v = way(robot, q0, goal=goal, speed=0.4).sample(np.arange(0, 12, 0.05), q0)
    assert q[-1, :2] - q0[:2] == pytest.approx(goal, abs=1e-3)
    assert np.abs(v[-1]).max() < 1e-3
    assert np.linalg.norm(v[:, :2], axis=1).max() <= 0.4 + 1e-12
    # Pushed off its way, a robot is asked to come back, not to jump there.
    aside = q0.copy()
    aside[:2] += [0.1 * 0.3, 0.1 * 0.6]
    q, _ = way(robot, q0, goal=goal, speed=0.4)(0.0, aside, np.zeros(18))
    assert q[0, :2] == pytest.approx(aside[:2], abs=1e-12)


def test_legs_without_a_sideways_joint_keep_their_loops_closed():
    robot, context, q0 = standing("minitaur")
    asked = way(robot, q0, speed=0.2, gait=Trot())
    for t in np.linspace(0, 0.5, 41)[:-1:4]:  # of the table
        robot.plant.SetPositions(context, asked.sample(np.array([t]), q0)[0][0])
        assert np.abs(robot.closure.evaluate(context)[0]).max() < 1e-6


def test_heading_goes_on_from_the_robots_turn(cheetah):
    """A robot that has turned around once is not asked to turn back."""
    robot, _, q0 = cheetah
    turned = q0.copy()
    turned[3] += 2 * np.pi
    q, v = way(robot, q0, speed=0.4, turn=0.3)(1.0, turned, np.zeros(18))
    assert q[0, 3] - turned[3] == pytest.approx(0.3)
    assert v[:, 3] == pytest.approx(0.3)
