"""Distances after n cycles: both sums, gradients, frames."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from drakebots.core.errors import InvalidInput, UnknownName
from drakebots.robots.gecko.generator.distance import (
    SUMS,
    cycle_count,
    distance,
    distance_gradient,
    in_body_frame,
)
from drakebots.robots.gecko.generator.polynomial import MotionPolynomial, gait_domain

TABLE = MotionPolynomial.table_3()
GAITS = (
    st.floats(*TABLE.domain.q1),
    st.floats(*TABLE.domain.q2),
)
POINTS = st.tuples(st.floats(-1, 1), st.floats(-1, 1))


def rotation(angle):
    c, s = np.cos(angle), np.sin(angle)
    return np.array([[c, -s], [s, c]])


@given(POINTS, *GAITS, st.integers(1, 6))
def test_corrected_is_the_composition_of_poses(target, q1, q2, n):
    e, *step = TABLE.motion(q1, q2)
    at, heading = np.zeros(2), 0.0
    for _ in range(n):
        at, heading = at + rotation(heading) @ step, heading + e
    d = distance(target, q1, q2, n, TABLE)
    assert d == pytest.approx(np.linalg.norm(target - at), abs=1e-12)


@given(POINTS, *GAITS, st.integers(1, 6))
def test_paper_is_equation_19_as_printed(target, q1, q2, n):
    e, *step = TABLE.motion(q1, q2)
    left = rotation(-n * e) @ target
    for i in range(n + 1):
        left = left - rotation(-i * e) @ step
    d = distance(target, q1, q2, n, TABLE, sum="paper")
    assert d == pytest.approx(np.linalg.norm(left), abs=1e-12)


@given(POINTS, st.integers(1, 5), st.sampled_from(SUMS))
def test_gradient(target, n, sum):
    q1, q2 = np.meshgrid(np.linspace(0.9, 1.5, 4), np.linspace(-0.45, 0.45, 4))
    h = 1e-6

    def d(a, b):
        return distance(target, a, b, n, TABLE, sum=sum)

    numeric = np.stack(
        [
            (d(q1 + h, q2) - d(q1 - h, q2)) / (2 * h),
            (d(q1, q2 + h) - d(q1, q2 - h)) / (2 * h),
        ],
        axis=-1,
    )
    gradient = distance_gradient(target, q1, q2, n, TABLE, sum=sum)
    # At the target itself the distance has a kink.
    smooth = d(q1, q2) > 1e-3
    np.testing.assert_allclose(gradient[smooth], numeric[smooth], atol=1e-6)


def test_gradient_at_the_target_and_without_rotation():
    c = np.zeros((3, 2, 2))
    c[1, 1, 0] = 0.1
    straight = MotionPolynomial(c, gait_domain())
    reached = straight.predict(1.0, 0.0, 3)[0]
    assert distance_gradient(reached, 1.0, 0.0, 3, straight).tolist() == [0, 0]
    slope = distance_gradient([1.0, 0.0], 1.0, 0.0, 3, straight)
    np.testing.assert_allclose(slope, [-0.3, 0])


def test_figure_10_b_has_the_value_of_the_paper():
    d = distance([-0.35, -0.2], np.radians(50), -0.5, 1, TABLE, sum="paper")
    assert d == pytest.approx(0.462, abs=5e-4)


@given(POINTS, POINTS, st.floats(-4, 4))
def test_body_frame(target, position, heading):
    away = in_body_frame(target, position, heading)
    back = np.array(position) + rotation(heading) @ away
    np.testing.assert_allclose(back, target, atol=1e-12)


def test_bad_input():
    with pytest.raises(UnknownName, match="corrected, paper"):
        cycle_count(1, "papers")
    for n in (0, -1, 1.5):
        with pytest.raises(InvalidInput, match="horizon"):
            cycle_count(n)
    with pytest.raises(InvalidInput, match="target"):
        distance([0, np.nan], 1.0, 0, 1, TABLE)
    with pytest.raises(InvalidInput, match="heading"):
        in_body_frame([0, 0], [1, 1], np.inf)
    with pytest.raises(InvalidInput, match="domain"):
        distance([0, 0], 2.0, 0, 1, TABLE)
