"""Constant-curvature kinematics and the gait law, against closed forms."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.integrate import quad

from drakebots.core.errors import InvalidInput, UnknownName
from drakebots.robots.gecko.model import (
    Gecko,
    Pose,
    arc_end,
    fixation,
    gait_law,
    gecko,
    limb_curves,
    pose_at,
)
from drakebots.robots.gecko.model.robot import Weights

ROBOT = gecko()
MIRROR = [1, 0, 2, 4, 3]
angles = st.floats(-2.5, 2.5)


@given(st.floats(-3, 3), angles, st.floats(0.01, 1))
def test_an_arc_is_the_integral_of_its_tangent(direction, bend, length):
    x = quad(lambda s: np.cos(direction + s * bend), 0, 1)[0]
    y = quad(lambda s: np.sin(direction + s * bend), 0, 1)[0]
    end = arc_end(np.zeros(2), direction, bend, length)
    assert np.allclose(end, length * np.array([x, y]), atol=1e-10)


def test_a_straight_robot_is_a_cross_with_two_bars():
    pose = pose_at(ROBOT, np.zeros(5))
    leg, torso = ROBOT.leg, ROBOT.torso
    expected = [[0, leg], [0, 0], [0, -leg], [-torso, leg], [-torso, 0], [-torso, -leg]]
    assert np.allclose(pose.markers, expected, atol=1e-15)


@given(st.lists(angles, min_size=5, max_size=5), angles)
def test_legs_end_in_their_feet_and_have_their_length(alpha, heading):
    pose = pose_at(ROBOT, alpha, heading, (0.3, -0.2))
    curves = limb_curves(pose, points=400)
    assert np.allclose(curves[[0, 1, 3, 4], -1], pose.feet, atol=1e-14)
    lengths = np.linalg.norm(np.diff(curves, axis=1), axis=2).sum(axis=1)
    assert np.allclose(lengths, ROBOT.lengths, rtol=1e-5)


@given(st.lists(angles, min_size=5, max_size=5), angles)
def test_mirrored_bending_gives_the_mirrored_robot(alpha, heading):
    pose = pose_at(ROBOT, alpha, heading)
    mirrored = np.array(alpha)[MIRROR] * [1, 1, -1, 1, 1]
    other = pose_at(ROBOT, mirrored, -heading)
    flipped = pose.markers[[2, 1, 0, 5, 4, 3]] * [1, -1]
    assert np.allclose(other.markers, flipped, atol=1e-14)


@given(st.lists(angles, min_size=5, max_size=5), angles)
def test_foot_headings_follow_the_tangents(alpha, heading):
    """phi differs from the leg's end tangent by a constant, +-90 degrees."""
    pose = pose_at(ROBOT, alpha, heading)
    curves = limb_curves(pose, points=3000)[[0, 1, 3, 4]]
    d = curves[:, -1] - curves[:, -2]
    tangent = np.arctan2(d[:, 1], d[:, 0])
    constant = np.pi / 2 * np.array([1, -1, -1, 1])
    gap = tangent - pose.foot_headings - constant
    assert np.allclose(np.angle(np.exp(1j * gap)), 0, atol=2e-3)


def test_the_straight_law_is_eq_1():
    q1 = np.radians([-80, 50, 80])
    alpha = gait_law(q1, 0)
    assert np.allclose(alpha[:, 0], np.pi / 4 - q1 / 2)
    assert np.allclose(alpha[:, 1], np.pi / 4 + q1 / 2)
    assert np.allclose(alpha[:, 2], q1)
    assert np.array_equal(alpha[:, [0, 1]], alpha[:, [3, 4]])


def test_legs_never_bend_backwards():
    alpha = np.degrees(gait_law(np.radians(80), -0.5))
    assert np.allclose(alpha, [0.001, 25, 40, 0.001, 25])


def test_straight_law_keeps_the_fixed_feet_in_place_and_heading():
    """At q2 = 0 and the same heading, phi of the feet that hold is constant."""
    for q1 in np.radians([60, 90]):
        there, back = pose_at(ROBOT, gait_law(q1, 0)), pose_at(ROBOT, gait_law(-q1, 0))
        for sign in (1, -1):
            hold = fixation(sign * q1)
            turned = there.foot_headings - back.foot_headings
            assert np.allclose(turned[hold], 0, atol=1e-12)
            feet = (there.feet - back.feet)[hold]
            assert np.allclose(feet[0], feet[1], atol=1e-12)


def test_two_feet_hold_and_change_over():
    assert fixation(1.0).tolist() == [False, True, True, False]
    assert np.array_equal(fixation(-1.0), ~fixation(1.0))


@pytest.mark.parametrize(
    "make, words",
    [
        (lambda: Pose([0] * 4, [1] * 5, 0, (0, 0)), "alpha"),
        (lambda: Pose([0] * 5, [1] * 5, np.nan, (0, 0)), "heading"),
        (lambda: Pose([np.inf] * 5, [1] * 5, 0, (0, 0)), "alpha"),
        (lambda: Pose([0] * 5, [0] * 5, 0, (0, 0)), "ell"),
        (lambda: Gecko(leg=-1), "leg"),
        (lambda: Gecko(stretch=2), "stretch"),
        (lambda: Weights(length=0), "length"),
        (lambda: gecko("huge"), "huge"),
        (lambda: gecko("small", "light"), "light"),
    ],
)
def test_bad_input_is_named(make, words):
    with pytest.raises((InvalidInput, UnknownName), match=words):
        make()
