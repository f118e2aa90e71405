"""The pose step: derivatives, optima, check values, symmetry, bad input."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize

from drakebots.core.errors import InvalidInput, NoSolution
from drakebots.robots.gecko.engines import pose_step
from drakebots.robots.gecko.engines.pose_solver import NUM_X, add_foot, arc
from drakebots.robots.gecko.model import (
    Pose,
    fixation,
    gait_law,
    gecko,
    markers,
    pose_at,
)

ROBOT = gecko()
CM, DEG = 1e-2, np.pi / 180


def walk(robot, q1, q2, half_cycles, sign=1):
    """Poses of a gait that starts in its own extreme pose."""
    q1 = sign * np.radians(q1)
    poses = [pose_at(robot, gait_law(-q1, q2))]
    for k in range(half_cycles):
        q = q1 if k % 2 == 0 else -q1
        poses.append(pose_step(robot, poses[-1], gait_law(q, q2), fixation(q)).pose)
    return poses


def cycle(a, b):
    """Rotation [deg] and displacement in the first pose's frame [cm]."""
    c, s = np.cos(a.heading), np.sin(a.heading)
    moved = np.array([[c, s], [-s, c]]) @ (b.position - a.position)
    return np.degrees(b.heading - a.heading), moved / CM


@pytest.mark.parametrize("foot", range(4))
def test_feet_have_exact_derivatives(foot):
    random = np.random.default_rng(foot)
    for scale in (1.0, 1e-3, 0.0):
        x = random.normal(size=NUM_X)
        x[:5] *= scale
        x[5:10] += 10
        multiplier = random.normal(size=2)

        def evaluate(x, m=(0.0, 0.0)):
            p, J, H = np.zeros(2), np.zeros((2, NUM_X)), np.zeros((NUM_X, NUM_X))
            add_foot(foot, x, np.array(m), p, J, H)
            return p, J, H

        p, J, H = evaluate(x, multiplier)
        expected = markers(x[:5], x[5:10], x[10], x[11:])[[0, 2, 3, 5][foot]]
        assert np.allclose(p, expected, atol=1e-13)
        for k, e in enumerate(1e-6 * np.eye(NUM_X)):
            above, below = evaluate(x + e), evaluate(x - e)
            assert np.allclose(J[:, k], (above[0] - below[0]) / 2e-6, atol=1e-7)
            slope = multiplier @ (above[1] - below[1]) / 2e-6
            assert np.allclose(H[:, k], slope, atol=1e-6)


@given(st.floats(-3, 3))
def test_the_arc_and_its_derivatives_have_no_seam(u):
    g, d, h = arc(u)
    above, below = arc(u + 1e-5), arc(u - 1e-5)
    assert abs(d - (above[0] - below[0]) / 2e-5) < 1e-9
    assert abs(h - (above[1] - below[1]) / 2e-5) < 1e-9
    assert abs(g) == pytest.approx(abs(np.sinc(u / 2 / np.pi)), abs=1e-14)


def test_check_values_of_the_straight_gait():
    for q1, expected in ((50, 7.419), (80, 11.569), (90, 12.869)):
        poses = walk(ROBOT, q1, 0.0, 4)
        for a, b in zip(poses[::2], poses[2::2]):
            rotation, moved = cycle(a, b)
            assert rotation == pytest.approx(0, abs=1e-9)
            assert moved == pytest.approx([expected, 0], abs=1e-3)


def test_check_values_of_a_turning_gait():
    poses = walk(ROBOT, 50, -0.5, 14)
    rotation, moved = cycle(poses[-3], poses[-1])
    assert rotation == pytest.approx(22.94, abs=0.005)
    assert moved[0] == pytest.approx(6.77, abs=0.005)


def test_a_mirrored_gait_is_the_mirrored_motion():
    for q1, q2 in ((50, -0.5), (80, 0.3)):
        one, other = walk(ROBOT, q1, q2, 5), walk(ROBOT, q1, -q2, 5, sign=-1)
        for a, b in zip(one, other):
            flipped = b.markers[[2, 1, 0, 5, 4, 3]] * [1, -1]
            assert np.allclose(a.markers, flipped, atol=1e-10)


def raw_objective(x, robot, before, reference, hold):
    """The paper's sum of norms, in its units."""
    w = robot.weights
    pose = Pose(x[:5] * DEG, x[5:10] * CM, x[10] * DEG, x[11:] * CM)
    turned = (pose.foot_headings - before.foot_headings)[hold]
    return (
        w.length * np.linalg.norm(pose.ell - robot.lengths) / CM
        + w.orientation * np.linalg.norm(turned) / DEG
        + w.angle * np.linalg.norm(pose.alpha - reference) / DEG
    )


@pytest.mark.long
@pytest.mark.parametrize("weights", ["velocity_space", "single_cycle"])
@pytest.mark.parametrize("q", [(50, -0.5), (80, -0.5), (90, 0.5), (70, 0.1)])
def test_no_neighbour_is_better(q, weights):
    """SciPy's SLSQP, started there and around, does not go below."""
    robot = gecko("small", weights)
    before = walk(robot, *q, 3)[-1]
    reference, hold = gait_law(-np.radians(q[0]), q[1]), fixation(-1)
    step = pose_step(robot, before, reference, hold)
    best = np.r_[step.pose.alpha / DEG, step.pose.ell / CM, step.pose.heading / DEG]
    best = np.r_[best, step.pose.position / CM]
    args = (robot, before, reference, hold)
    assert raw_objective(best, *args) == pytest.approx(step.objective, rel=1e-12)

    def gaps(x):
        pose = Pose(x[:5] * DEG, x[5:10] * CM, x[10] * DEG, x[11:] * CM)
        return ((pose.feet - before.feet)[hold] / CM).ravel()

    span = np.degrees(robot.bend)
    bounds = [(a - span, a + span) for a in reference / DEG]
    bounds += [(0.9 * length, 1.1 * length) for length in robot.lengths / CM]
    bounds += [(None, None)] * 3
    random = np.random.default_rng(5)
    scales = np.repeat([1.0, 0.01, 1.0], [5, 5, 3])
    for spread in (0.0, 0.3, 3.0):
        start = best + spread * scales * random.normal(size=13)
        found = minimize(
            raw_objective,
            start,
            args,
            "SLSQP",
            bounds=bounds,
            constraints={"type": "eq", "fun": gaps},
            options={"maxiter": 300, "ftol": 1e-12},
        )
        if np.abs(gaps(found.x)).max() < 1e-8:
            assert found.fun > step.objective - 1e-3


@settings(max_examples=25)
@given(
    st.lists(
        st.tuples(st.floats(50, 90), st.floats(-0.5, 0.5)), min_size=1, max_size=6
    ),
    st.sampled_from(["small", "large"]),
    st.sampled_from(["velocity_space", "single_cycle"]),
)
def test_fixed_feet_stay_where_they_are(gaits, size, weights):
    robot = gecko(size, weights)
    pose = pose_at(robot, gait_law(-1.0, 0.0), 1.0, (7.0, -3.0))
    for k, (q1, q2) in enumerate(gaits):
        q1 = np.radians(q1) * (-1) ** k
        step = pose_step(robot, pose, gait_law(q1, q2), fixation(q1))
        hold = fixation(q1)
        drift = np.linalg.norm((step.pose.feet - pose.feet)[hold], axis=1)
        assert drift.max() < 1e-9
        ratio = step.pose.ell / robot.lengths
        assert ratio.min() > 0.9 - 1e-9 and ratio.max() < 1.1 + 1e-9
        assert np.abs(step.pose.alpha - gait_law(q1, q2)).max() <= robot.bend + 1e-9
        pose = step.pose


def test_a_step_moves_with_the_world():
    reference, hold = gait_law(1.2, 0.3), fixation(1)
    here = pose_at(ROBOT, gait_law(-1.0, -0.2))
    there = pose_at(ROBOT, gait_law(-1.0, -0.2), 2.0, (100.0, -50.0))
    a = pose_step(ROBOT, here, reference, hold).pose
    b = pose_step(ROBOT, there, reference, hold).pose
    assert np.allclose(a.alpha, b.alpha, atol=1e-9)
    assert b.heading - a.heading == pytest.approx(2.0, abs=1e-9)


def test_one_foot_is_enough_to_reach_the_reference():
    """With one foot fixed nothing hinders the limbs."""
    pose = pose_at(ROBOT, gait_law(-1.0, 0.2))
    step = pose_step(ROBOT, pose, gait_law(1.0, 0.2), [True, False, False, False])
    assert step.objective == pytest.approx(0, abs=1e-3)
    assert step.turn < 1e-6 and step.bend < 1e-6


def test_at_rest_nothing_moves():
    pose = pose_at(ROBOT, gait_law(-1.0, 0.2))
    step = pose_step(ROBOT, pose, pose.alpha, [True] * 4)
    assert np.allclose(step.pose.markers, pose.markers, atol=1e-8)


def test_bounds_beside_the_reference_close_in():
    """A reference 150 degrees away, two feet fixed: the bound is kept."""
    pose = pose_at(ROBOT, np.radians([45, 45, 0, 45, 45]))
    reference = np.radians([45, 45, 0, 45, 160])
    step = pose_step(ROBOT, pose, reference, [True, False, False, True])
    assert np.abs(step.pose.alpha - reference).max() <= ROBOT.bend + 1e-8
    assert step.drift < 1e-9


@pytest.mark.parametrize(
    "reference, hold, error, words",
    [
        ([np.nan] * 5, [1, 0, 0, 1], InvalidInput, "alpha_ref"),
        ([0.0] * 4, [1, 0, 0, 1], InvalidInput, "alpha_ref"),
        ([0.0] * 5, [0, 0, 0, 0], InvalidInput, "all feet are free"),
        ([0.0] * 5, [2, 0, 0, 1], InvalidInput, "fixation"),
        ([9.0, 9.0, -9.0, 9.0, 9.0], [1, 1, 1, 1], NoSolution, "no pose was found"),
    ],
)
def test_bad_input_is_named(reference, hold, error, words):
    pose = pose_at(ROBOT, gait_law(-1.0, 0.0))
    with pytest.raises(error, match=words):
        pose_step(ROBOT, pose, reference, hold)


def test_a_pose_of_another_robot_is_refused():
    with pytest.raises(InvalidInput, match="stretch"):
        pose_step(ROBOT, pose_at(gecko("large"), [0.5] * 5), [0.5] * 5, [1, 1, 1, 1])
