"""The kinematic-only baseline, and what its motion takes."""

from __future__ import annotations

import numpy as np
import pytest

from drakebots.core.units import GRAVITY
from drakebots.robots.quads.motion import margin, support_polygon
from drakebots.robots.quads.motion.gait import Gait, synthesize
from drakebots.robots.quads.space_time import SpaceTime, carry
from tests.helpers.quad_skeletons import upright
from tests.helpers.scripts import load_script

carry_within_friction, knot_motion, plan_kinematic = load_script(
    "quad_kinematic", "carry_within_friction", "knot_motion", "plan_kinematic"
)


@pytest.fixture(scope="module")
def cow(tmp_path_factory):
    return upright(tmp_path_factory.mktemp("quads"))


@pytest.fixture(scope="module")
def plan(cow, interpreted):
    gait = Gait(
        {"rl": 0.0, "fl": 0.25, "rr": 0.5, "fr": 0.75}, duty=0.8, period=1.5, lift=0.02
    )
    motion = synthesize(cow, gait, speed=0.05)
    return plan_kinematic(SpaceTime(cow, motion, knot_spacing=10))


@pytest.mark.long
def test_feet_and_point_mass_cop_are_where_they_must(plan):
    assert plan.ok, plan.solution.summary()
    problem, parts = plan.problem, plan.solution.parts
    K = len(problem.knots)
    p = problem.quad.foot_positions(plan.q)
    assert np.abs(p[:-1, :, 2][problem.contact[:-1]]).max() < 1e-6
    h, c = problem.step, parts["c"]
    a = (c[2:] - 2 * c[1:-1] + c[:-2]) / h**2
    lift = 1 + a[:, 2:] / GRAVITY
    zmp = c[1:-1, :2] - c[1:-1, 2:] * a[:, :2] / GRAVITY / lift
    for k in range(1, K - 1):
        hull = support_polygon(problem.quad, p[k], problem.contact[k], 0.0)
        assert margin(hull, zmp[k - 1]) > -1e-5
    assert plan.q[-1, 2:] == pytest.approx(plan.q[0, 2:], abs=2e-5)


def test_com_is_the_robots(plan):
    c = plan.problem.quad.com(plan.q)
    assert c == pytest.approx(plan.solution.parts["c"], abs=1e-6)


def test_standing_takes_the_weight_and_nothing_else(cow):
    zero = np.zeros(cow.nv)
    found = carry_within_friction(
        cow, cow.rest, zero, zero, np.ones(4, bool), friction=0.8
    )
    assert found.feasible
    total = found.F.sum(axis=0)
    assert total == pytest.approx([0, 0, cow.mass * 9.81], abs=1e-3)
    free, _, _ = carry(cow, cow.rest, zero, zero, np.ones(4, bool))
    assert free.sum(axis=0) == pytest.approx(total, abs=1e-3)
    # No legs, no support: all six rows are missing.
    falling = carry_within_friction(
        cow, cow.rest, zero, zero, np.zeros(4, bool), friction=0.8
    )
    assert not falling.feasible
    assert falling.missing[2] == pytest.approx(cow.mass * 9.81)


def test_its_torques_balance_the_robot(plan):
    """M a + C v - g - J'w - B tau leaves `missing` at the base, nothing else."""
    quad, found = plan.problem.quad, plan.torques()
    q, v, a = plan.motion()
    for k in range(0, len(q), 5):
        d = quad.tree.inertia.ravel()
        rows = quad.tree.dynamics_function(q[k], v[k], a[k], d).full().ravel()
        J = quad.contact_jacobian(q[k])
        w = np.concatenate([found["F"][k].ravel(), found["T"][k].ravel()])
        left = rows - J.T @ w - quad.B @ found["torque"][k]
        assert left[6:] == pytest.approx(np.zeros(quad.nv - 6), abs=1e-9)
        assert left[:6] == pytest.approx(found["missing"][k], abs=1e-9)
    share = np.abs(found["missing"][:, :3]).max() / (quad.mass * 9.81)
    assert share < 0.05


def test_differences_of_a_cycle_repeat(plan):
    _, v, a = knot_motion(plan.problem, plan.q)
    assert v[-1] == pytest.approx(v[0], abs=1e-9)
    assert a[-1] == pytest.approx(a[0], abs=1e-9)
