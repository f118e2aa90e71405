"""Getting up from the side: stages, what is asked for in each, and a whole run."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from drakebots import InvalidInput, build_robot, load
from drakebots.control import ReferenceMotion, default_cost
from drakebots.multibody.posture import find_posture
from drakebots.robots.legged import Control, Mpc, control
from drakebots.robots.legged.self_righting import POSES, RELAXED, RISE, SelfRighting
from tests.helpers.starts import first_that_holds

HEIGHT, GRAVITY, STEP, KNOTS = 0.29, 9.81, 0.03, 20
MODEL = load("mini_cheetah")
LEG = ("roll", "hip", "knee")


@pytest.fixture(scope="module")
def stands():
    """The robot, and its positions as it stands."""
    robot = build_robot(MODEL, base="euler", time_step=0)
    context = robot.plant.CreateDefaultContext()
    posture = find_posture(MODEL)
    for name, value in posture.joints.items():
        robot.plant.GetJointByName(name).set_angle(context, value)
    robot.set_base_pose(context, posture.X_WB)
    return robot, robot.plant.GetPositions(context)


def _self_righting(stands, **more) -> SelfRighting:
    robot, q = stands
    asked = {"step": STEP, "knots": KNOTS}
    cost = default_cost(robot, ReferenceMotion(robot, q, **asked), HEIGHT)
    given = {"poses": MODEL.poses, "height": HEIGHT, "gravity": GRAVITY}
    return SelfRighting(robot, q, **{**given, "cost": cost, **asked, **more})


def _lying(stands, roll: float) -> np.ndarray:
    q = stands[1].copy()
    q[5], q[2] = roll, 0.13
    return q


def _joints(robot, q: np.ndarray) -> dict[str, float]:
    """Joint positions by name."""
    names = [f"{leg}_{j}" for leg in ("FL", "FR", "RL", "RR") for j in LEG]
    plant = robot.plant
    return {n: q[plant.GetJointByName(n).position_start()] for n in names}


@pytest.mark.parametrize("turns", [-1, 0, 1])
def test_a_robot_that_rolled_over_does_not_roll_back(stands, turns):
    """Upright after whole turns about its back and its heading, it is to stay so."""
    reference, q = _self_righting(stands), stands[1].copy()
    reference.stage, reference._since, reference._lasts = "stand", 0.0, 1.0
    q[[3, 5]] += 2 * np.pi * turns
    asked = reference(1.0, q, 0 * q)[0]
    np.testing.assert_allclose(asked[0, 3:6], q[3:6], atol=1e-6)


@pytest.mark.parametrize("side", ["left", "right"])
def test_the_legs_below_gather_and_then_push(stands, side):
    """The side on which it lies names the poses."""
    roll = -np.pi / 2 if side == "left" else np.pi / 2
    reference, q = _self_righting(stands), _lying(stands, roll)
    for time, stage in ((0.0, "gathered"), (2.0, "rolling")):
        reference(time, q, 0 * q)
        out, rates = reference.sample(np.array([time, time + 10.0]), q)
        pose = MODEL.poses[f"{stage}_{side}"]
        assert _joints(stands[0], out[1]) == pytest.approx(pose)
        assert not rates[1, reference._joints].any()


def test_poses_of_the_sides_are_mirrored():
    other = {"FL": "FR", "FR": "FL", "RL": "RR", "RR": "RL"}
    for stage in ("gathered", "rolling"):
        left, right = (MODEL.poses[f"{stage}_{side}"] for side in ("left", "right"))
        for name, value in left.items():
            leg, joint = name.split("_")
            sign = -1 if joint == "roll" else 1
            assert right[f"{other[leg]}_{joint}"] == pytest.approx(sign * value)


def test_stages_follow_the_tilt(stands):
    """In order while it succeeds, from the beginning where it tips back or over."""
    reference, time = _self_righting(stands), 0.0

    def at(roll: float, later: float) -> str:
        nonlocal time
        time += later
        reference.sample(np.array([time]), _lying(stands, roll))
        return reference.stage

    assert at(-np.pi / 2, 0.0) == "gather"
    assert at(-np.pi / 2, 0.1) == "gather"
    assert at(-np.pi / 2, 2.0) == "roll"
    assert at(-0.8, 0.1) == "roll"
    assert at(-0.4, 0.1) == "fold"
    assert at(-0.4, 2.0) == "fold"
    assert at(-0.1, 0.1) == "rise"
    assert at(-0.1, 0.1) == "rise"
    assert at(0.0, 2.0) == "stand"
    assert at(1.2, 0.1) == "gather"
    assert at(1.2, 2.0) == "roll"
    assert at(1.2, 5.0) == "gather"


def test_it_crouches_and_stands_with_its_feet_on_the_ground(stands):
    robot, standing = stands
    reference, context = _self_righting(stands), robot.plant.CreateDefaultContext()

    def lowest(q) -> float:
        robot.plant.SetPositions(context, q)
        return robot.feet_positions(context)[:, 2].min()

    for time, roll in ((0.0, -1.5), (2.0, -1.5), (2.1, 0.0)):
        reference.sample(np.array([time]), _lying(stands, roll))
    assert reference.stage == "fold"
    out, _ = reference.sample(np.array([2.1, 6.0]), _lying(stands, 0.0))
    assert lowest(out[1]) == pytest.approx(lowest(standing), abs=1e-9)
    assert out[1, 2] < 0.5 * standing[2]
    reference.sample(np.array([6.0]), out[1])
    assert reference.stage == "rise"
    out, _ = reference.sample(np.array([6.0, 6.0 + 2 * RISE]), out[1])
    assert out[1, 6:] == pytest.approx(standing[6:])
    assert out[1, 2] == pytest.approx(standing[2])


def test_rates_are_those_of_the_positions(stands):
    for times, roll in (((0.0,), -1.5), ((0.0, 2.0), -1.5), ((0.0, 2.0, 2.1), -0.4)):
        reference = _self_righting(stands)
        for time in times:
            reference.sample(np.array([time]), _lying(stands, roll))
        fine = times[-1] + 1e-4 * np.arange(2000)
        out, rates = reference.sample(fine, _lying(stands, roll))
        steps = np.diff(out, axis=0) / 1e-4
        # A tilt's rate is asked for while the legs push only; one that fades may take
        # its time.
        asked = [i for i in range(len(out[0])) if i not in (4, 5) or len(times) == 2]
        middle = 0.5 * (rates[1:] + rates[:-1])
        assert np.abs(steps - middle)[:, asked].max() < 5e-3


def test_the_base_is_relaxed_while_the_legs_gather(stands):
    reference, q = _self_righting(stands), _lying(stands, -1.5)
    answer = reference(0.0, q, 0 * q)
    assert len(answer) == 3
    P, V, _, T, _ = answer[2].arrays(18, 12)
    robot, standing = stands
    motion = ReferenceMotion(robot, standing, step=STEP, knots=KNOTS)
    whole = default_cost(robot, motion, HEIGHT)
    P0, V0, _, T0, _ = whole.arrays(18, 12)
    assert P[:6] == pytest.approx(RELAXED * P0[:6])
    assert T[:6] == pytest.approx(RELAXED * T0[:6])
    assert np.array_equal(P[6:], P0[6:]) and np.array_equal(V, V0)
    assert len(reference(2.0, q, 0 * q)) == 2 and reference.stage == "roll"


def test_once_up_it_keeps_its_heading(stands):
    reference, up = _self_righting(stands), _lying(stands, 0.0)
    up[2:4] = stands[1][2], 1.1
    for time, roll in ((0.0, -1.5), (2.0, -1.5), (2.1, 0.0), (5.0, 0.0)):
        q = up.copy()
        q[5] = roll
        reference.sample(np.array([time]), q)
    out, _ = reference.sample(np.array([9.0, 10.0]), up)
    assert reference.stage == "stand"
    assert out[:, 3] == pytest.approx(1.1)


def test_without_poses_it_says_which_to_add(stands):
    poses = {name: pose for name, pose in MODEL.poses.items() if name != POSES[2]}
    with pytest.raises(
        InvalidInput, match=r"does not know how to get up.*rolling_left"
    ):
        _self_righting(stands, poses=poses)
    other = replace(MODEL, poses={"standing": MODEL.poses["standing"]})
    with pytest.raises(InvalidInput, match="gathered_left"):
        control(Control(other, start="side", duration=0.1))


@pytest.mark.long
def test_a_robot_on_its_side_gets_up():
    problem = Control(MODEL, start="side", controller=Mpc(delay=0.008), duration=8.0)
    run = first_that_holds(problem, tries=2)
    assert run.ok, run.message
    assert 0.5 < run.metrics["upright_at_s"] < 8.0
    assert run.data.base_position.values[-1, 2] == pytest.approx(0.298, abs=0.02)
    assert abs(run.data.base_rpy.values[0, 0]) == pytest.approx(np.pi / 2, abs=0.01)
    assert run.metrics["final_tilt_deg"] < 3.0
