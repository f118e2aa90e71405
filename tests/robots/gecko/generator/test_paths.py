"""Paths that end in a pose, and walking them."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from drakebots.core.errors import InvalidInput
from drakebots.robots.gecko.generator import (
    Blocked,
    MotionPolynomial,
    PathGenerator,
    plan_approach,
    plan_cubic,
    plan_route,
)
from drakebots.robots.gecko.generator.motion import Domain
from drakebots.robots.gecko.generator.obstacles import distance_to_obstacles
from drakebots.robots.gecko.generator.paths import (
    CartesianCubic,
    TurnLimits,
    exceeds,
    turn_limits,
)
from tests.helpers.polynomial_gecko import half_cycle, run_polynomial

TABLE = MotionPolynomial.table_3()
ANGLES = st.floats(-np.pi, np.pi)


def random_path(rng):
    direction, far = rng.uniform(-np.pi, np.pi), rng.uniform(0.4, 1.2)
    end = far * np.array([np.cos(direction), np.sin(direction)])
    return plan_cubic([0, 0], rng.uniform(-np.pi, np.pi), end, rng.uniform(-3.1, 3.1))


def _length(path):
    points = path.point(np.linspace(0, 1, 2001))
    return np.linalg.norm(np.diff(points, axis=0), axis=1).sum()


def _bends(path):
    """Curvatures along a path, by differences."""
    s = np.linspace(0, 1, 20001)
    gaps = np.linalg.norm(np.diff(path.point(s), axis=0), axis=1)
    return np.diff(np.unwrap(path.heading(s))) / gaps


@given(st.floats(-2, 2), ANGLES, st.floats(0.1, 2), ANGLES, st.floats(0.2, 3))
def test_ends_as_asked(x, start, y, end, k):
    path = CartesianCubic([0.1, -0.2], start, [x, y], end, k, 2 * k)
    np.testing.assert_allclose(path.point([0, 1]), [[0.1, -0.2], [x, y]], atol=1e-12)
    turn = path.heading([0, 1]) - [start, end]
    np.testing.assert_allclose(np.exp(1j * turn), 1, atol=1e-9)


def test_siciliano_form_and_derivatives():
    path = CartesianCubic([0.1, -0.2], 0.3, [0.8, 0.5], 1.9, 1.2, 0.7)
    s = np.linspace(0, 1, 11)
    a = 0.7 * np.cos(1.9) - 3 * 0.8
    b = 1.2 * np.cos(0.3) + 3 * 0.1
    x = s**3 * 0.8 - (s - 1) ** 3 * 0.1 + a * s**2 * (s - 1) + b * s * (s - 1) ** 2
    np.testing.assert_allclose(path.point(s)[:, 0], x, atol=1e-12)
    # Its largest curvatures, by differences of headings over lengths.
    bend = _bends(path)
    for limits in (TurnLimits(1.0, 1e3), TurnLimits(1e3, 1.0)):
        most = max(bend.max() / limits.left, -bend.min() / limits.right)
        assert exceeds(path.cubic, limits) == pytest.approx(most, rel=2e-2)


def test_sample():
    path = CartesianCubic([0, 0], 0.0, [1, 0.5], 1.0, 1.0, 1.0)
    points, headings = path.sample(0.05)
    gaps = np.linalg.norm(np.diff(points, axis=0), axis=1)
    assert gaps.max() <= 0.05 + 1e-9 and np.ptp(gaps) < 1e-4
    assert gaps.sum() == pytest.approx(_length(path), rel=1e-3)
    np.testing.assert_allclose(points[[0, -1]], [[0, 0], [1, 0.5]], atol=1e-12)
    assert headings[[0, -1]] == pytest.approx([0, 1])


def test_turn_limits_are_the_circles_the_robot_walks():
    limits = turn_limits(TABLE)
    assert (limits.left, limits.right) == pytest.approx((4.025, 4.601), abs=1e-3)
    # Centres of successive poses' circles coincide.
    e, x, y = TABLE.motion(TABLE.domain.q1[1], 0.5)
    points = (
        TABLE.predict(TABLE.domain.q1[1], 0.5, 1)[0],
        *(TABLE.predict(TABLE.domain.q1[1], 0.5, n)[0] for n in (2, 3)),
    )
    z = [complex(*p) for p in points]
    a, b, c = abs(z[0] - z[1]), abs(z[1] - z[2]), abs(z[0] - z[2])
    area = abs(((z[1] - z[0]).conjugate() * (z[2] - z[0])).imag) / 2
    curvature = 4 * area / (a * b * c)
    assert curvature == pytest.approx(abs(2 * np.sin(e / 2)) / np.hypot(x, y))
    assert curvature <= limits.right + 1e-12
    short = Domain((np.radians(49), np.radians(50)), TABLE.domain.q2)
    assert turn_limits(MotionPolynomial(TABLE.coefficients, short)).left > 12


def test_plan_cubic_keeps_the_limits_where_it_can():
    limits = TurnLimits(4.0, 4.6)
    path = plan_cubic([0, 0], np.pi / 2, [0.6, 0.4], -np.pi / 2, limits)
    assert exceeds(path.cubic, limits) <= 1
    bend = _bends(path)
    assert bend.min() >= -4.6 * 1.01 and bend.max() <= 4.0 * 1.01
    # Where nothing is in the way the shortest one is nearly straight.
    straight = plan_cubic([0, 0], 0.0, [1, 0], 0.0, limits)
    assert _length(straight) == pytest.approx(1.0, abs=1e-6)
    # Straight back is no cubic without a cusp: the best is returned, and it tells.
    back = plan_cubic([0, 0], 0.0, [-0.5, 0], 0.0, limits)
    assert exceeds(back.cubic, limits) > 1
    fast = replace(straight, start_speed=5.0, end_speed=5.0)
    assert exceeds(fast.cubic, limits) > 1


def test_bad_input():
    with pytest.raises(InvalidInput, match="same place"):
        plan_cubic([0, 0], 0.0, [0, 0], 1.0)
    with pytest.raises(InvalidInput, match="end must be 2 finite"):
        plan_cubic([0, 0], 0.0, [np.nan, 0], 1.0)
    with pytest.raises(InvalidInput, match="start_heading"):
        plan_cubic([0, 0], np.inf, [1, 0], 1.0)
    with pytest.raises(InvalidInput, match="start_speed"):
        CartesianCubic([0, 0], 0.0, [1, 0], 0.0, 0.0, 1.0)
    generator = PathGenerator(plan_cubic([0, 0], 0.0, [1, 0], 0.0))
    with pytest.raises(InvalidInput, match="position"):
        generator.decide([np.nan, 0], 0.0)
    with pytest.raises(InvalidInput, match="heading"):
        generator.decide([0, 0], np.nan)


def check_end(path, generator, run):
    gap = np.linalg.norm(run.position[-1] - path.end)
    slip = np.angle(np.exp(1j * (path.end_heading - run.heading[-1])))
    assert generator.final.distance == pytest.approx(gap)
    assert generator.final.heading == pytest.approx(slip)
    good = gap < 0.05 and abs(slip) <= np.radians(15)
    assert generator.reached == good
    return good


@pytest.mark.long
def test_paths_that_obey_the_limits_are_walked_at_once():
    rng, walked = np.random.default_rng(21), 0
    limits = turn_limits(TABLE)
    while walked < 10:
        path = random_path(rng)
        if exceeds(path.cubic, limits) > 1:
            continue
        generator = PathGenerator(path)
        run = run_polynomial(generator, path.start, path.start_heading)
        assert run.reached and check_end(path, generator, run)
        assert generator.attempt == 0 and run.half_cycles < 120
        walked += 1


@pytest.mark.long
def test_most_poses_are_reached_with_new_attempts():
    rng, reached = np.random.default_rng(22), 0
    for _ in range(25):
        path = random_path(rng)
        generator = PathGenerator(path)
        run = run_polynomial(generator, path.start, path.start_heading)
        assert generator.final is not None
        reached += check_end(path, generator, run)
    assert reached >= 23


def test_starts_beside_the_path():
    path = plan_cubic([0, 0], 0.0, [1.0, 0.4], 0.8)
    rng = np.random.default_rng(23)
    for _ in range(8):
        generator = PathGenerator(path)
        start = rng.uniform(-0.08, 0.08, 2)
        run = run_polynomial(generator, start, rng.uniform(-0.5, 0.5))
        assert check_end(path, generator, run)


@pytest.mark.long
@settings(max_examples=10)
@given(st.floats(-0.6, 0.6))
def test_one_attempt_ends(end_heading):
    path = plan_cubic([0, 0], 0.0, [0.6, 0.0], end_heading)
    generator = PathGenerator(path)
    generator.attempts = 1
    assert generator.final is None
    run = run_polynomial(generator, [0, 0], 0.0)
    assert run.reached and generator.final is not None and generator.attempt == 0
    assert generator.decide([0, 0], 0.0) is None


def test_loop_is_not_cut():
    """A path that crosses itself is walked in its order."""
    path = CartesianCubic([0, 0], 0.5, [0.3, 0.0], -0.5, 6.0, 6.0)
    generator = PathGenerator(path)
    generator.attempts = 1
    run = run_polynomial(generator, [0, 0], 0.5)
    assert run.length > 0.8 * _length(path)


def test_robot_that_turns_less():
    c = TABLE.coefficients.copy()
    c[0] *= 0.8
    robot = MotionPolynomial(c, TABLE.domain)
    path = plan_cubic([0, 0], 0.0, [1.0, 0.4], 0.8, turn_limits(robot))
    generator = PathGenerator(path)
    run = run_polynomial(generator, [0, 0], 0.0, robot=robot)
    assert check_end(path, generator, run)
    assert half_cycle(robot, 1.5, 0.3)[1] == pytest.approx(
        0.8 * half_cycle(TABLE, 1.5, 0.3)[1]
    )


WALL = (((0.4, -0.3), (0.5, -0.3), (0.5, 0.3), (0.4, 0.3)),)


@pytest.mark.long
@pytest.mark.parametrize("heading", [0.0, np.pi])
def test_paths_and_their_approaches_keep_clear_of_a_wall(heading):
    """Straight on, a path would go through it."""
    route = plan_route((0, 0), [(1, 0)], WALL)
    path, lead = plan_approach(route, 0.0, heading, Blocked(WALL))
    walked = np.vstack([lead, path.sample(0.01)[0]])
    assert distance_to_obstacles(walked, WALL).min() > Blocked(WALL).clearance - 2e-3
    assert np.allclose(path.end, (1, 0)) and path.end_heading == heading
