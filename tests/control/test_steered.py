"""References that are steered: where they lead, and where they have the feet."""

from __future__ import annotations

import numpy as np
import pytest

from drakebots import build_robot, load
from drakebots.control import STEPS, Gait, Orders, SteeredMotion
from drakebots.control.steered import OWED
from drakebots.multibody.posture import find_posture
from tests.helpers.standing_robots import biped

STEP, KNOTS = 0.02, 40


@pytest.fixture(scope="module")
def standing():
    """The quadruped on an euler base, and its standing pose on the ground."""
    model = load("mini_cheetah")
    robot = build_robot(model, base="euler", time_step=0)
    posture, plant = find_posture(model), robot.plant
    context = plant.CreateDefaultContext()
    for name, value in posture.joints.items():
        plant.GetJointByName(name).set_angle(context, value)
    robot.set_base_pose(context, posture.X_WB)
    return robot, plant.GetPositions(context)


@pytest.fixture
def motion(standing):
    return steered(*standing, legs=4)


def steered(robot, q, legs):
    gaits = {name: Gait.named(name, legs=legs, size=1.0) for name in STEPS}
    return SteeredMotion(robot, q, step=STEP, knots=KNOTS, gaits=gaits, pace=0.4)


def feet(robot, rows) -> np.ndarray:
    """Feet (n, nc, 3) of positions (n, nq) [m]."""
    context, found = robot.plant.CreateDefaultContext(), []
    for q in rows:
        robot.plant.SetPositions(context, q)
        found.append(robot.feet_positions(context))
    return np.array(found)


def test_the_base_goes_where_it_is_told_by_its_heading(motion, standing):
    q = standing[1].copy()
    axes, v = motion.axes, np.zeros(len(q))
    motion.orders = Orders(ahead=0.3, left=0.1, turn=0.5)
    q[axes["yaw"]] = motion._heading = 1.0  # turned to there
    out, rates = motion(0.0, q, v)
    times = STEP * np.arange(KNOTS + 1)
    assert out[:, axes["yaw"]] == pytest.approx(1.0 + 0.5 * times)
    along = rates[:, [axes["x"], axes["y"]]]
    yaw = 1.0 + 0.5 * times
    ahead = along @ [np.cos(yaw), np.sin(yaw)]
    left = along @ [-np.sin(yaw), np.cos(yaw)]
    assert np.diag(ahead) == pytest.approx(0.3) and np.diag(left) == pytest.approx(0.1)
    assert np.linalg.norm(np.diff(out[:, [axes["x"], axes["y"]]], axis=0), axis=1) == (
        pytest.approx(STEP * np.hypot(0.3, 0.1), rel=2e-2)
    )


def test_the_place_asked_for_goes_on_without_the_robot_for_a_while(motion, standing):
    """So a robot that goes too slowly, or too fast, is corrected; one that was pushed
    away does not owe the way back."""
    q, at = standing[1].copy(), [motion.axes[name] for name in "xy"]
    v, start = np.zeros(len(q)), q[at].copy()
    motion.orders = Orders(ahead=0.3)
    leads = [motion(STEP * k, q, v)[0][0, at] - start for k in range(40)]
    far = np.linalg.norm(leads, axis=1)
    most = OWED * 0.4  # that which the pace goes in this time
    assert far == pytest.approx(np.minimum(0.3 * STEP * np.arange(40), most))
    # As fast as it was asked for, it keeps what it is behind.
    q[at[0]] += 0.3 * STEP
    assert motion(40 * STEP, q, v)[0][0, at] - q[at] == pytest.approx([most, 0.0])
    q[at] = start + np.array([0.0, 1.0])
    lead = motion(41 * STEP, q, v)[0][0, at] - q[at]
    assert np.linalg.norm(lead) == pytest.approx(most) and lead[1] < 0


@pytest.mark.parametrize(
    "orders",
    [
        Orders(ahead=0.5),
        Orders(left=-0.2),
        Orders(turn=0.8),
        Orders(0.3, 0.1, -0.4),
        Orders(0.2, gait="crawl"),
    ],
)
def test_feet_that_stand_stay_on_the_ground_where_they_are(orders, motion, standing):
    """Tables are added in proportion, which is first order: a foot in stance creeps by
    less than a tenth of the speed."""
    robot, q = standing
    motion.orders = orders
    out, _ = motion(0.0, q, np.zeros(len(q)))
    places = feet(robot, out)
    times = STEP * np.arange(KNOTS + 1)
    stands = motion.gait.swing(times, motion.phases) == 0
    air = 1 if orders.gait == "crawl" else 2
    assert set(np.unique((~stands).sum(axis=1))) == {0, air}
    both = stands[1:] & stands[:-1]
    creep = np.diff(places, axis=0)[both] / STEP
    speed = np.hypot(orders.ahead, orders.left) + 0.25 * abs(orders.turn)
    assert both.sum() > 50
    assert np.median(np.linalg.norm(creep[:, :2], axis=1)) < 0.1 * speed
    lifted = places[..., 2].max() - places[0, :, 2].min()
    assert lifted == pytest.approx(motion.gait.clearance, rel=0.2)


@pytest.mark.long
def test_straight_legs_bend_before_they_step(tmp_path):
    """So far that they reach the ends of their steps, and a bit below; legs that are
    bent stay as they are."""
    robot = build_robot(load(biped(tmp_path, rolls=True)), base="euler", time_step=0)
    q, knees = np.zeros(robot.plant.num_positions()), []
    q[2] = -feet(robot, q[None])[0, :, 2].min()
    knees = [robot.plant.GetJointByName(f"{s}_knee").position_start() for s in "LR"]
    motion = steered(robot, q, legs=2)
    low = motion.q
    assert feet(robot, low[None]) == pytest.approx(feet(robot, q[None]), abs=1e-4)
    assert (low[knees] > 0.3).all() and 0.01 < q[2] - low[2] < 0.07
    motion.orders = Orders(ahead=0.3)
    out, _ = motion(0.0, low, np.zeros(len(q)))
    stands = motion.gait.swing(STEP * np.arange(KNOTS + 1), motion.phases) == 0
    assert np.abs(feet(robot, out)[stands][:, 2]).max() < 2e-3
    # What bends is asked for no more.
    assert steered(robot, low, legs=2).q is not low
    assert steered(robot, low, legs=2).q == pytest.approx(low)


@pytest.mark.parametrize("rise", [-0.06, 0.02])
def test_a_lower_base_leaves_the_feet_where_they_were(rise, motion, standing):
    robot, q = standing
    motion.orders = Orders(rise=rise)
    out, rates = motion(0.0, q, np.zeros(len(q)))
    assert (rates == 0).all() and (out == out[0]).all()
    assert out[0, motion.axes["z"]] == pytest.approx(q[motion.axes["z"]] + rise)
    assert feet(robot, out[:1]) == pytest.approx(feet(robot, q[None]), abs=1e-4)


def test_when_it_steps(motion, standing):
    """By itself while it goes somewhere or is pushed, and a period longer."""
    q, v = standing[1], np.zeros(len(standing[1]))

    def steps(t, orders, speed=0.0):
        motion.orders, v[motion.axes["y"]] = orders, speed
        return np.ptp(motion(t, q, v)[0], axis=0)[motion._joints].max() > 0.1

    assert not steps(0.0, Orders())
    assert steps(1.0, Orders(), speed=0.3)
    assert steps(1.4, Orders())
    assert not steps(1.6, Orders())
    assert steps(2.0, Orders(gait="trot"))
    assert not steps(2.1, Orders(ahead=0.5, gait="stand"))


def test_a_heading_is_not_owed(motion, standing):
    """A robot that was turned round by force goes on from there."""
    q = standing[1].copy()
    q[motion.axes["yaw"]] += 2.0
    out, _ = motion(0.0, q, np.zeros(len(q)))
    assert out[0, motion.axes["yaw"]] == pytest.approx(2.0 - 0.3)
