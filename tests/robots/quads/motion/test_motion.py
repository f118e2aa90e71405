"""Footfall patterns and support polygons."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from drakebots.core.errors import InvalidInput, UnknownName
from drakebots.multibody import polygon
from drakebots.robots.quads.motion import cop_of_forces, margin, near_contact, zmp
from drakebots.robots.quads.motion.gait import Gait
from drakebots.robots.quads.motion.motion import Footfall, gait_footfall, runs
from drakebots.robots.quads.robot import half_planes

FEET = ("fl", "fr", "rl", "rr")
PHASES = {"rl": 0.0, "fl": 0.25, "rr": 0.5, "fr": 0.75}


@given(duty=st.floats(0.1, 1.0), period=st.floats(0.2, 3.0))
def test_each_foot_is_down_for_its_duty(duty, period):
    steps = 4001
    pattern = gait_footfall(FEET, PHASES, period=period, duty=duty, steps=steps)
    # Over many periods, to one step a period and one period of the run.
    share = pattern.contact.mean(axis=0)
    assert np.abs(share - duty).max() <= 5e-3 / period + period / (steps * 5e-3)


def test_slow_walk_keeps_three_feet_down_and_a_fast_trot_flies():
    walk = gait_footfall(FEET, PHASES, period=2.0, duty=0.8, steps=401)
    assert walk.contact.sum(axis=1).min() == 3
    assert walk.unsupported() == []
    trot = {"fl": 0, "rr": 0, "fr": 0.5, "rl": 0.5}
    fast = gait_footfall(FEET, trot, period=0.5, duty=0.4, steps=101)
    gaps = fast.unsupported()
    assert gaps[0] == (40, 50)


def test_bars_are_runs_of_contact():
    contact = np.zeros((41, 2), bool)
    contact[:10, 0] = contact[20:30, 0] = contact[:, 1] = True
    pattern = Footfall(("a", "b"), contact, 0.01)
    assert pattern.bars("a") == [(0, 10), (20, 30)]
    assert pattern.bars("b") == [(0, 41)]
    near = near_contact(pattern.contact, 3)
    assert near[12, 0] and near[17, 0] and not near[14, 0]
    assert runs(np.array([], bool)) == []


@pytest.mark.parametrize(
    ("make", "error", "text"),
    [
        (lambda: Footfall(("a",), np.ones((4, 2)), 0.01), InvalidInput, "shape"),
        (lambda: Footfall(("a",), np.ones((4, 1)), 0.0), InvalidInput, "dt"),
        (lambda: Gait(PHASES, duty=0, period=1, lift=0.0), InvalidInput, "duty"),
        (lambda: Gait(PHASES, duty=1.1, period=1, lift=0.0), InvalidInput, "duty"),
        (
            lambda: gait_footfall(FEET, {"fl": 0}, period=1, duty=0.5, steps=9),
            InvalidInput,
            "fr, rl, rr",
        ),
        (
            lambda: gait_footfall(FEET, {"tail": 0}, period=1, duty=0.5, steps=9),
            UnknownName,
            "tail",
        ),
    ],
)
def test_bad_patterns_are_named(make, error, text):
    with pytest.raises(error, match=text):
        make()


@given(x=st.floats(-2, 2), y=st.floats(-2, 2))
def test_margin_is_the_distance_to_a_square(x, y):
    square = polygon(np.array([[1, 1], [-1, 1], [-1, -1], [1, -1], [0, 0]]))
    inside = 1 - max(abs(x), abs(y))
    outside = -np.hypot(max(abs(x) - 1, 0), max(abs(y) - 1, 0))
    expected = inside if inside >= 0 else outside
    assert margin(square, np.array([x, y])) == pytest.approx(expected, abs=1e-12)
    n, b = half_planes(square)
    assert np.allclose(np.linalg.norm(n, axis=1), 1) and np.allclose(b, 1)


def test_no_polygon_has_no_inside():
    assert polygon(np.zeros((2, 2))) is None
    assert polygon(np.array([[0, 0], [1, 0], [2, 0.0]])) is None
    assert margin(None, np.zeros(2)) == -np.inf


def test_cop_of_forces_and_of_the_com_agree_for_a_point_mass():
    """Forces at feet that give c its acceleration and no moment about c."""
    rng = np.random.default_rng(0)
    for _ in range(20):
        feet = np.column_stack([rng.uniform(-1, 1, (4, 2)), np.zeros(4)])[None]
        F = rng.uniform(-1, 1, (1, 4, 3)) + np.array([0, 0, 3])
        c = np.array([0.1, -0.2, 0.4])
        moment = np.cross(feet[0] - c, F[0]).sum(axis=0)
        T = np.zeros((1, 4, 3))
        T[0, 1] = -moment
        acceleration = F[0].sum(axis=0) - [0, 0, 9.81]
        assert np.allclose(
            cop_of_forces(feet, F, T), zmp(c[None], acceleration[None]), atol=1e-12
        )
