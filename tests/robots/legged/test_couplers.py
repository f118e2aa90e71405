"""Robots whose joints follow others stand, are planned, tracked and controlled."""

import numpy as np
import pytest

from drakebots.core.errors import InvalidInput
from drakebots.formats import load
from drakebots.multibody import find_posture
from drakebots.results import load_result
from drakebots.robots.legged import (
    Control,
    Hard,
    Mpc,
    Sap,
    Servos,
    Tracking,
    control,
    track,
)
from drakebots.trajopt.locomotion import LocomotionProblem, Walk, plan_locomotion
from tests.helpers.coupled_robots import ankles_follow, knees_follow
from tests.helpers.standing_plans import standing_plan

LEGS = ("front_left", "front_right", "rear_left", "rear_right")


@pytest.fixture(scope="module")
def knees(tmp_path_factory):
    """Legs that only become shorter and longer, and swing sideways."""
    return load(knees_follow(tmp_path_factory.mktemp("knees"), -2.0))


@pytest.fixture(scope="module")
def ankles(tmp_path_factory):
    return load(ankles_follow(tmp_path_factory.mktemp("ankles")))


def assert_followed(data, model):
    """Of every coupler, q = gear q_leader at all times."""
    q = data.position
    for coupler in model.couplers:
        follower, leader = (
            q.sel(coordinate=[n for n in q.coordinate.values if name in str(n)])
            for name in (coupler.follower, coupler.leader)
        )
        slip = np.abs(follower.values - coupler.gear * leader.values)
        assert slip.max() < 1e-4, coupler.name


def test_a_posture_keeps_followers_in_place(knees):
    posture = find_posture(knees)
    assert posture.stands and posture.source == "found"
    for leg in LEGS:
        hip, knee = posture.joints[f"{leg}_hip"], posture.joints[f"{leg}_knee"]
        assert knee == pytest.approx(-2 * hip, abs=1e-9)
        assert -2.6 < knee < -0.4
    assert len(knees.summary.actuators) == 8


def test_a_given_pose_takes_followers_with_it(knees):
    pose = {f"{leg}_hip": 0.6 for leg in LEGS}
    joints = find_posture(knees, pose=pose).joints
    assert all(joints[f"{leg}_knee"] == pytest.approx(-1.2) for leg in LEGS)
    apart = pose | {"rear_left_knee": -1.0}
    faults = find_posture(knees, pose=apart).faults
    assert "its coupled joints disagree: rear_left_knee" in faults[0]
    with pytest.raises(InvalidInput, match=r"rear_left_knee.*leave it out"):
        plan_locomotion(LocomotionProblem(knees, pose=apart))


@pytest.mark.long
@pytest.mark.parametrize("ground, slip", [(Sap(), 1e-5), (Hard(), 1e-12)])
def test_a_standing_plan_stands(knees, ground, slip):
    """Drake's coupler under SAP, our row in time stepping."""
    run = track(Tracking(standing_plan(knees), cycles=1, ground=ground))
    assert run.ok
    assert np.ptp(run.data.base_position.values, axis=0).max() < 1e-3
    assert run.residuals["coupler slip [rad]"] < slip
    assert run.residuals["loop gap [m]"] == 0
    assert run.data.coupler.values.tolist() == [f"{leg}_knee" for leg in LEGS]


@pytest.fixture(scope="module")
def walk(ankles):
    plan = plan_locomotion(LocomotionProblem(ankles, Walk(forward=0.2)))
    assert plan.ok, plan.message
    return plan


@pytest.mark.long
@pytest.mark.parametrize(
    "ground", [Sap(), pytest.param(Hard(), marks=pytest.mark.slow)]
)
def test_a_walk_on_linkages_is_executed(walk, ankles, ground, tmp_path):
    """Three motors and four joints a leg: the whole stride, on both grounds."""
    assert_followed(walk.data, ankles)
    assert walk.metrics["loop_gap_knots_max"] < 1e-9
    run = track(Tracking(walk, cycles=2, ground=ground))
    assert run.ok and run.metrics["cycles_upright"] == 2
    assert run.metrics["stride_share"] == pytest.approx(1, abs=0.05)
    assert run.residuals["coupler slip [rad]"] < 1e-4
    assert_followed(run.data, ankles)
    assert load_result(run.save(tmp_path / "run.nc")) == run


@pytest.mark.long
def test_a_walk_on_two_motors_a_leg_is_executed(tmp_path):
    """Knees that follow their hips: a foot that is lifted also moves fore or aft. At
    the joints alone the robot makes its strides."""
    model = load(knees_follow(tmp_path, -1.0))
    plan = plan_locomotion(LocomotionProblem(model, Walk(forward=0.1)))
    assert plan.ok and plan.metrics["loop_gap_knots_max"] < 1e-9
    run = track(Tracking(plan, cycles=2, feedback=Servos()))
    assert run.ok and run.metrics["cycles_upright"] == 2
    assert run.metrics["stride_share"] > 0.8
    assert run.residuals["coupler slip [rad]"] < 1e-4


@pytest.mark.long
def test_control_of_linkages(ankles):
    """Under contact-implicit control it trots ahead."""
    run = control(
        Control(
            ankles,
            gait="trot",
            goal=(0.3, 0.0),
            duration=1.5,
            controller=Mpc(delay=0.0),
        )
    )
    assert run.ok and not run.metrics["fell"], run.message
    assert run.metrics["forward_m"] > 0.1
    assert run.residuals["coupler slip [rad]"] < 1e-3
