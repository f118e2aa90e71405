"""Servos of skinned robots that saturate."""

import numpy as np
import pytest

from drakebots.core.errors import InvalidInput
from drakebots.skin.coupled import Servo
from tests.helpers.skinned_leg import DT, Leg, skin_model, stepper

LIMIT = np.array([0.4, 0.1])


@pytest.fixture(scope="module")
def model():
    return skin_model()


def test_a_servo_within_its_limit_is_the_implicit_servo(model):
    servo = Servo(20.0, 0.3, np.array([0.1, -0.1]))
    free = stepper(Leg(), model)
    limited = stepper(Leg(), model, effort_limits=np.array([100.0, 100.0]))
    a, b = (run.step(run.start(), servo=servo) for run in (free, limited))
    assert np.allclose(a.state.q, b.state.q, rtol=1e-9)
    assert np.allclose(a.torques, b.torques, rtol=1e-9)
    assert np.allclose(a.state.skin.positions, b.state.skin.positions, atol=1e-9 * 1e-3)
    expected = 20.0 * (servo.position - a.state.q) - 0.3 * a.state.v
    assert np.allclose(a.torques, expected, rtol=1e-9)


@pytest.mark.parametrize(
    "given, words",
    [
        ((np.inf, 1.0, [0.0, 0.0]), "servo stiffness .*: must be finite"),
        ((1.0, -1.0, [0.0, 0.0]), "servo damping .*: must be >= 0"),
        ((1.0, 1.0, [np.nan, 0.0]), r"servo position \[nan, 0.0\]: must be finite"),
        ((1.0, 1.0, [0.0, 0.0], [np.nan, 0.0]), "servo velocity .*: must be finite"),
    ],
)
def test_a_servo_that_cannot_be_is_refused(given, words):
    with pytest.raises(InvalidInput, match=words):
        Servo(*given)


def test_a_saturated_servo_is_a_constant_torque(model):
    servo = Servo(200.0, 0.0, np.array([1.0, -1.0]))
    run = stepper(Leg(), model, effort_limits=LIMIT)
    result = run.step(run.start(), servo=servo)
    assert np.array_equal(result.torques, LIMIT * [1, -1])
    plain = stepper(Leg(), model)
    expected = plain.step(plain.start(), LIMIT * [1, -1])
    assert np.allclose(result.state.q, expected.state.q, rtol=1e-9)


@pytest.mark.parametrize("seed", range(8))
def test_saturation_solves_its_complementarity(model, seed):
    """Some joints at their limit, some not: tau = clip(wish(q+))."""
    rng = np.random.default_rng(seed)
    run = stepper(Leg(), model, effort_limits=LIMIT)
    state = run.start(v=rng.normal(size=2) * 3)
    k, d = rng.uniform(0, 300, 2), rng.uniform(0, 1, 2)
    servo = Servo(k, d, rng.normal(size=2) * 0.2, rng.normal(size=2))
    given = rng.normal(size=2) * 0.2
    result = run.step(state, given, servo=servo)
    after = result.state
    wish = k * (servo.position - after.q) + d * (servo.velocity - after.v) + given
    expected = np.clip(wish, -LIMIT, LIMIT)
    assert np.allclose(result.torques, expected, rtol=1e-7, atol=1e-9)


def test_effort_limits_hold_over_a_motion(model):
    run = stepper(Leg(), model, effort_limits=LIMIT)
    state, torques = run.start(), []
    for k in range(60):
        servo = Servo(60.0, 0.5, np.array([0.8, -0.8]) * np.sin(12 * k * DT))
        result = run.step(state, servo=servo)
        assert result.converged, result.message
        state = result.state
        torques.append(result.torques)
    share = np.abs(torques) / LIMIT
    assert share.max() == 1.0 and (share < 1).any()


def test_limits_refused(model):
    for bad, said in (([1.0], "needs 2"), ([-1.0, 1.0], ">= 0"), ([np.nan, 1], ">= 0")):
        limits = np.array(bad) if len(bad) > 1 else np.ones(3)
        with pytest.raises(InvalidInput, match=said):
            stepper(Leg(), model, effort_limits=limits)


@pytest.mark.parametrize("sign", [1, -1])
@pytest.mark.parametrize("limited", [None, np.array([1.0, 1.0])])
def test_joints_stop_at_their_limits(model, sign, limited):
    """Thrown and driven into its stop a knee stays there, to about a thousandth of what
    its torque would turn it by in a step; the stop pushes, and never holds."""
    leg = Leg(gravity=False)
    knee = leg.plant.GetJointByName("knee")
    knee.set_position_limits([-0.15], [0.15])
    run = stepper(leg, model, effort_limits=limited)
    state, knees = run.start(v=np.array([0.0, 8.0 * sign])), []
    for _ in range(60):
        result = run.step(state, np.array([0.0, 0.8 * sign]))
        assert result.converged, result.message
        state = result.state
        knees.append(sign * state.q[1])
    assert max(knees) < 0.152
    assert knees[-1] > 0.149 and abs(state.v[1]) < 0.05
    back = run.step(state, np.array([0.0, -0.5 * sign])).state
    assert sign * back.v[1] < -0.1
