"""Distances after n cycles, and the gaits that minimise them."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from drakebots.core.errors import InvalidInput, UnknownName
from drakebots.robots.gecko.generator import (
    MotionPolynomial,
    best_gait,
    cycle_count,
    distance,
)
from drakebots.robots.gecko.generator.motion import Domain
from drakebots.robots.gecko.generator.planner import SUMS, check_heading, rotated_back

TABLE = MotionPolynomial.table_3()
FINE = np.meshgrid(
    np.linspace(*TABLE.domain.q1, 321),
    np.linspace(*TABLE.domain.q2, 321),
    indexing="ij",
)
REACHED = {m: TABLE.predict(*FINE, m) for m in range(1, 6)}
POINTS = st.tuples(st.floats(-1, 1), st.floats(-1, 1))
GAITS = (st.floats(*TABLE.domain.q1), st.floats(*TABLE.domain.q2))


# --- distances -----------------------------------------------------------------


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


def test_figure_10_b_has_the_value_of_the_paper():
    d = distance([-0.35, -0.2], np.radians(50), -0.5, 1, TABLE, sum="paper")
    assert d == pytest.approx(0.462, abs=5e-4)


@given(POINTS, POINTS, st.floats(-4, 4))
def test_body_frame(target, position, heading):
    away = rotated_back(np.subtract(target, position), heading)
    back = np.array(position) + rotation(heading) @ away
    np.testing.assert_allclose(back, target, atol=1e-12)


def test_bad_distances():
    with pytest.raises(UnknownName, match="corrected, paper"):
        cycle_count(1, "papers")
    for n in (0, -1, 1.5):
        with pytest.raises(InvalidInput, match="horizon"):
            cycle_count(n)
    with pytest.raises(InvalidInput, match="target"):
        distance([0, np.nan], 1.0, 0, 1, TABLE)
    with pytest.raises(InvalidInput, match="heading"):
        check_heading(np.inf)
    with pytest.raises(InvalidInput, match="domain"):
        distance([0, 0], 2.0, 0, 1, TABLE)


# --- best gaits ----------------------------------------------------------------


class BlackBox:
    """Table 3 without its being a polynomial."""

    domain = TABLE.domain

    def predict(self, q1, q2, n):
        return TABLE.predict(q1, q2, n)


def check_minimum(found, target, n, sum):
    d = distance(target, found.q1, found.q2, n, TABLE, sum=sum)
    assert found.distance == pytest.approx(d, abs=1e-12)
    reached = REACHED[cycle_count(n, sum)][0]
    brute = np.linalg.norm(np.asarray(target) - reached, axis=-1).min()
    assert found.distance <= brute + 1e-9


@given(POINTS, st.integers(1, 4), st.sampled_from(SUMS))
def test_no_point_of_a_fine_grid_is_better(target, n, sum):
    check_minimum(best_gait(target, n, TABLE, sum=sum), target, n, sum)


@pytest.mark.long
def test_no_point_of_a_fine_grid_is_better_near_the_robot():
    # Where several minima compete.
    for target in np.random.default_rng(5).uniform(-0.3, 0.5, (400, 2)):
        for n in (1, 2, 4):
            check_minimum(best_gait(target, n, TABLE), target, n, "corrected")


@given(
    POINTS,
    st.integers(1, 4),
    st.floats(-3, 3),
    st.floats(0.01, 0.5),
)
def test_with_a_heading(target, n, heading, weight):
    found = best_gait(target, n, TABLE, heading=heading, heading_weight=weight)
    reached, turned = REACHED[n]

    def cost(d, turn):
        slip = np.angle(np.exp(1j * (heading - turn)))
        return d**2 + (weight * slip) ** 2

    d = np.linalg.norm(np.asarray(target) - reached, axis=-1)
    assert cost(found.distance, found.turn) <= cost(d, turned).min() + 1e-9


def test_figure_10():
    ahead, behind = (0.35, -0.2), (-0.35, -0.2)
    a = best_gait(ahead, 1, TABLE, sum="paper")
    assert np.degrees(a.q1) == pytest.approx(90)
    assert a.q2 == pytest.approx(0.244, abs=1e-3)
    assert a.distance == pytest.approx(0.1502, abs=1e-4)
    b = best_gait(behind, 1, TABLE, sum="paper")
    assert (np.degrees(b.q1), b.q2) == pytest.approx((50, -0.5))
    assert b.distance == pytest.approx(0.462, abs=5e-4)
    c = best_gait(behind, 4, TABLE, sum="paper")
    assert (np.degrees(c.q1), c.q2) == pytest.approx((90, 0.5))
    assert c.distance == pytest.approx(0.4232, abs=1e-4)


def test_figure_10_with_the_corrected_sum():
    """A and B keep their gait; C does not: four cycles do not get round."""
    a = best_gait((0.35, -0.2), 1, TABLE)
    assert (np.degrees(a.q1), a.q2) == pytest.approx((90, 0.2128), abs=1e-3)
    assert a.distance == pytest.approx(0.2792, abs=1e-4)
    for n, d in ((1, 0.4363), (4, 0.4756)):
        b = best_gait((-0.35, -0.2), n, TABLE)
        assert (np.degrees(b.q1), b.q2) == pytest.approx((50, -0.5))
        assert b.distance == pytest.approx(d, abs=1e-4)
    c = best_gait((-0.35, -0.2), 5, TABLE)
    assert (np.degrees(c.q1), c.q2) == pytest.approx((90, 0.5))


def test_symmetric_model_still_has_a_minimum():
    # A flat objective: rotation and motion do not depend on the gait.
    c = np.zeros((3, 2, 2))
    c[1, 0, 0] = 0.1
    flat = MotionPolynomial(c, Domain((0.8, 1.6), (-0.5, 0.5)))
    found = best_gait((0.3, 0.0), 2, flat)
    assert found.distance == pytest.approx(0.1)


@pytest.mark.parametrize("n", [1, 4])
def test_any_model(n):
    for target in np.random.default_rng(2).uniform(-0.6, 0.6, (12, 2)):
        ours, other = best_gait(target, n, TABLE), best_gait(target, n, BlackBox())
        assert other.distance == pytest.approx(ours.distance, abs=1e-6)


def test_bad_input():
    with pytest.raises(InvalidInput, match="target must be 2 finite"):
        best_gait((np.nan, 0), 1, TABLE)
    with pytest.raises(InvalidInput, match="horizon"):
        best_gait((1, 0), 0, TABLE)
    with pytest.raises(UnknownName, match="sum"):
        best_gait((1, 0), 1, TABLE, sum="closed")
    with pytest.raises(InvalidInput, match="without a heading"):
        best_gait((1, 0), 1, TABLE, heading_weight=0.1)
    with pytest.raises(InvalidInput, match="heading_weight must be"):
        best_gait((1, 0), 1, TABLE, heading=0.0, heading_weight=-1)
    with pytest.raises(InvalidInput, match="heading must be"):
        best_gait((1, 0), 1, TABLE, heading=np.nan, heading_weight=1)
