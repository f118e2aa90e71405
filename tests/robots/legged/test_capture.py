"""The capture point of the linear inverted pendulum, and the hull of the feet."""

import numpy as np
import pytest
from scipy.integrate import solve_ivp
from scipy.optimize import minimize

from drakebots.multibody import nearest_in_hull
from drakebots.robots.legged.whole_body import capture_point_at

SQUARE = np.array([[0.0, 0.0], [1.0, 0.0], [1.0, 1.0], [0.0, 1.0]])


@pytest.mark.parametrize("count", [1, 2, 3, 4, 7])
def test_the_nearest_point_is_that_of_a_program(count):
    """min |sum_i w_i p_i - x|^2 over weights w >= 0 with sum 1."""
    rng = np.random.default_rng(count)
    points, x = rng.standard_normal((count, 2)), 2 * rng.standard_normal(2)
    best = minimize(
        lambda w: ((w @ points - x) ** 2).sum(),
        np.full(count, 1 / count),
        bounds=[(0, 1)] * count,
        constraints={"type": "eq", "fun": lambda w: w.sum() - 1},
        options={"ftol": 1e-14},
    )
    assert nearest_in_hull(x, points) == pytest.approx(best.x @ points, abs=1e-4)


def test_points_inside_are_their_own_nearest():
    assert nearest_in_hull(np.array([0.3, 0.9]), SQUARE) == pytest.approx([0.3, 0.9])


def test_feet_in_a_row_have_no_inside():
    row = np.array([[0.0, 0.0], [1.0, 0.0], [2.0, 0.0]])
    assert nearest_in_hull(np.array([0.5, 0.3]), row) == pytest.approx([0.5, 0.0])


def test_on_one_foot_it_moves_as_the_pendulum():
    """p'' = (g/l) (p - c), integrated; the capture point is p + p' sqrt(l/g)."""
    rate, c, T = 5.0, np.array([0.1, -0.2]), 0.3
    p, v = np.array([0.15, -0.1]), np.array([0.4, -0.3])
    fall = solve_ivp(
        lambda t, y: np.r_[y[2:], rate**2 * (y[:2] - c)],
        (0, T),
        np.r_[p, v],
        rtol=1e-10,
        atol=1e-12,
    ).y[:, -1]
    expected = fall[:2] + fall[2:] / rate
    found = capture_point_at(T, p, v, c[None], rate)
    assert found == pytest.approx(expected, abs=1e-7)


def test_inside_the_feet_it_stays_and_without_feet_it_flies():
    p, v = np.array([0.5, 0.5]), np.array([0.5, 0.0])
    assert capture_point_at(0.4, p, v, SQUARE, 5.0) == pytest.approx([0.6, 0.5])
    free = capture_point_at(0.4, p, v, np.zeros((0, 2)), 5.0)
    assert free == pytest.approx([0.5 + 0.5 * 0.6, 0.5])
