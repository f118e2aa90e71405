"""Steps of the plan: deviations from the motion decay, critically damped."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from drakebots.core.errors import InvalidInput
from drakebots.robots.quads.steps import (
    StepOptions,
    StepPlanner,
    StepsProblem,
    plan_steps,
)
from drakebots.robots.quads.steps.objective import settling_step
from drakebots.robots.quads.steps.planner import StepGoal
from tests.helpers.skinned_quad import LOWER

ON = np.ones(4, bool)


@given(
    st.floats(1e-3, 0.2),
    st.floats(1e-4, 0.05),
    st.floats(-0.1, 0.1),
    st.floats(-1.0, 1.0),
)
def test_a_deviation_decays_critically_damped(settling, dt, d0, rate):
    """What follows the step has d_k = (d_0 + k (d_1/p - d_0)) p^k, wherever the
    motion goes."""
    p = np.exp(-dt / settling)
    motion = np.sin(np.arange(22) + rate)
    q, before, found = motion[0] - d0, None, []
    for k in range(20):
        away = np.array([motion[k] - q])
        found.append(away[0])
        error = np.array([motion[k + 1] - q])
        q = q + settling_step(error, away, before, dt, settling)[0]
        before = away
    k = np.arange(20)
    expected = (d0 + k * (found[1] / p - d0)) * p**k
    assert np.allclose(found, expected, atol=1e-9)


def test_no_settling_is_equation_14():
    e, d = np.array([0.3, -0.1]), np.array([0.2, 0.4])
    assert np.array_equal(settling_step(e, d, None, 5e-3, 0.0), e)
    # Nor does it matter on the motion itself.
    zero = np.zeros(2)
    assert np.array_equal(settling_step(e, zero, zero, 5e-3, 0.02), e)


@pytest.mark.parametrize("bad", [-0.01, np.nan, np.inf])
def test_a_settling_time_that_cannot_be(bad):
    with pytest.raises(InvalidInput, match="settling"):
        StepOptions(settling=bad)


def leaning(quad, distance):
    """The standing pose, its body moved back over its feet."""
    q, bend = quad.q0.copy(), np.arcsin(distance / LOWER)
    q[4] -= distance
    q[6] -= LOWER * (1 - np.cos(bend))
    for leg in quad.feet.names:
        for name, sign in (("knee", -1), ("ankle", 1)):
            joint = quad.plant.GetJointByName(f"{leg}_{name}")
            q[joint.position_start()] += sign * bend
    return q


@pytest.mark.long
def test_torques_do_not_jump(quad):
    """Half a centimetre aside: there in the end, by smaller jumps."""
    goal = leaning(quad, 5e-3)
    plan = StepsProblem(np.tile(goal, (51, 1)), np.ones((51, 4), bool), skin_every=0)
    jumps, left = {}, {}
    for settling in (0.0, 0.025):
        options = StepOptions(settling=settling)
        planner = StepPlanner(quad.stepper(), quad.feet, quad.limits, options)
        begin = planner.stepper.start(quad.q0, np.zeros(18))
        data = plan_steps(planner, plan, initial=begin).data
        tau = data.torque.values[1:]
        jumps[settling] = np.abs(np.diff(tau, axis=0)).sum()
        left[settling] = abs(data.position.values[-1, 4] - goal[4])
    assert jumps[0.025] < 0.5 * jumps[0.0]
    assert left[0.025] < 1e-5


def test_the_planner_remembers_the_deviation(quad):
    options = StepOptions(settling=0.02)
    planner = StepPlanner(quad.stepper(), quad.feet, quad.limits, options)
    state = planner.stepper.start(quad.q0, np.zeros(18))
    goal = quad.q0.copy()
    goal[4] += 1e-3
    first = planner.step(
        state, planner.start(state), StepGoal(goal, ON, ON, ON, quad.q0)
    )
    assert first.ok and np.allclose(first.memory.deviation, 0, atol=1e-12)
    second = planner.step(first.state, first.memory, StepGoal(goal, ON, ON, ON, goal))
    moved = first.state.q[4] - quad.q0[4]
    assert second.memory.deviation[3] == pytest.approx(1e-3 - moved, abs=1e-9)
