"""Steps on a slope: the same as on flat ground under tilted gravity."""

import numpy as np
import pytest

from drakebots.multibody import Slope
from drakebots.robots.quads.steps import STICK, StepPlanner, StepsProblem, plan_steps

ANGLE = -0.1
"""Of the slope, which rises ahead [rad]."""

NORMAL = np.array([np.sin(ANGLE), 0.0, np.cos(ANGLE)])
PLANE = np.append(NORMAL, 0.0)


def on_slope(quad, steps, friction=0.8):
    """Steps of the robot that stands, turned with the ground."""
    corners = np.array([[x, y, 0.0] for x in (-1, 1) for y in (-1, 1)])
    turned, q = Slope(ANGLE).footing(corners), quad.q0.copy()
    q[:4], q[4:7] = turned.rotation().ToQuaternion().wxyz(), turned @ q[4:7]
    rows, on = np.tile(q, (steps + 1, 1)), np.ones((steps + 1, 4), bool)
    plan = StepsProblem(rows, on, ground=np.tile(PLANE, (steps + 1, 4, 1)))
    stepper = quad.stepper()
    planner = StepPlanner(stepper, quad.feet, quad.limits, friction=friction)
    return plan_steps(planner, plan)


def test_its_feet_carry_it_and_do_not_slide(quad):
    """The forces are upright, though the ground is not; patches stay on its plane."""
    result = on_slope(quad, 100)
    assert result.ok, result.message
    d = result.data
    total = d.contact_force.values[-20:].sum(axis=1)
    weight = quad.mass * 9.81
    assert np.allclose(total, [0, 0, weight], atol=5e-3 * weight)
    assert (d.contact_state.values[1:] == STICK).all()
    over = d.patch_position.values[-1] @ NORMAL
    assert np.abs(over).max() < 2e-5
    # Forces keep to the friction cone about the ground's normal.
    f = d.contact_force.values[1:]
    normal = f @ NORMAL
    along = np.linalg.norm(f - normal[..., None] * NORMAL, axis=-1)
    assert (normal >= -1e-9).all() and (along <= 0.8 * normal + 1e-6).all()
    assert along[-1].sum() == pytest.approx(
        np.tan(abs(ANGLE)) * normal[-1].sum(), rel=0.3
    )


def test_a_slope_steeper_than_its_friction_lets_it_slide(quad):
    """mu = 0.05 < tan 0.1: it slides downhill with g (sin - mu cos)."""
    d = on_slope(quad, 60, friction=0.05).data
    t, com = d.time.values, d.com.values
    downhill = np.array([-np.cos(ANGLE), 0.0, np.sin(ANGLE)])
    speed = np.gradient(com @ downhill, t)
    pace = np.polyfit(t[20:-2], speed[20:-2], 1)[0]
    due = 9.81 * (np.sin(-ANGLE) - 0.05 * np.cos(ANGLE))
    assert pace == pytest.approx(due, rel=0.1)
