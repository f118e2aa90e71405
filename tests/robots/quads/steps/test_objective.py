"""The objective of a step and its maps, against definitions and differences."""

import numpy as np
import pytest

from drakebots.core.errors import InvalidInput
from drakebots.model import moved_positions
from drakebots.robots.quads.robot import Feet, feet_kinematics
from drakebots.robots.quads.steps import (
    StepTargets,
    StepWeights,
    centre_of_pressure,
    cop_margin,
    position_error,
    step_objective,
    support_edges,
)
from drakebots.robots.quads.steps.contact_state import cop_rows
from drakebots.robots.quads.steps.objective import coordinate_units, step_maps
from drakebots.skin.coupled import ReducedSystem
from tests.helpers.scripts import load_script

solve_multipliers = load_script("skin_paper_systems").solve_multipliers

COMPLIANCE = 1e-6
"""Of a patch [m/N]."""


@pytest.fixture(scope="module")
def step(quad):
    """A moving step with all its parts."""
    rng = np.random.default_rng(3)
    stepper = quad.stepper()
    state = stepper.start(quad.q0, 0.05 * rng.normal(size=18))
    result = stepper.step(state, 0.1 * rng.normal(size=12))
    assert result.converged, result.message
    state = result.state
    coupled = stepper.equations(state)
    feet = feet_kinematics(quad.plant, stepper.context, quad.feet)
    anchors = feet.p + 1e-4 * rng.normal(size=feet.p.shape)
    axes = np.broadcast_to(np.eye(3), (len(anchors), 3, 3))
    system = ReducedSystem(coupled, stepper.solver)
    maps = step_maps(system, feet, axes, anchors, COMPLIANCE)
    goal = quad.q0.copy()
    goal[:4] = [0.99, 0.02, -0.03, 0.1]
    goal[:4] /= np.linalg.norm(goal[:4])
    goal[4:] += 0.05 * rng.normal(size=len(goal) - 4)
    error = position_error(quad.plant, stepper.context, goal)
    targets = StepTargets(
        error,
        1e-3 * rng.normal(size=18),
        0.3 * rng.normal(size=12),
        np.array([1, 1, 0, 1], bool),
        np.array([1, 0, 1, 1], bool),
    )
    weights = StepWeights(2.0, 7.0, 3.0, 0.3, 5.0, 0.1, 0.02, 1.5)
    units = coordinate_units(quad.plant, weights.angle, weights.length)
    objective = step_objective(maps, quad.feet, feet, targets, weights, units)
    return {
        "stepper": stepper,
        "state": state,
        "coupled": coupled,
        "feet": feet,
        "anchors": anchors,
        "maps": maps,
        "goal": goal,
        "targets": targets,
        "weights": weights,
        "units": units,
        "objective": objective,
    }


def random_w(seed, size=12 + 60):
    return np.random.default_rng(seed).normal(size=size)


def test_maps_agree_with_the_multiplier_system(quad, step):
    """dq and y of eq. (2), forces put on the links by J_c'."""
    w, maps, coupled = random_w(0), step["maps"], step["coupled"]
    skeleton, feet = coupled.skeleton, step["feet"]
    loaded = type(skeleton)(
        skeleton.A,
        skeleton.b + feet.J.T @ w[12:],
        skeleton.B,
        skeleton.x,
        skeleton.J,
    )
    parts = {k: getattr(coupled, k) for k in coupled.__dataclass_fields__}
    exact = solve_multipliers(type(coupled)(**(parts | {"skeleton": loaded})), w[:12])
    found = maps.solution(w)
    for name in ("dq", "du", "glue_forces"):
        a, b = getattr(exact, name), getattr(found, name)
        assert np.abs(a - b).max() <= 1e-8 * np.abs(a).max(), name
    y = (feet.p - step["anchors"]).ravel() + feet.J @ exact.dq
    y += COMPLIANCE * w[12:]
    assert np.allclose(maps.y0 + maps.Y @ w, y, atol=1e-11)


def test_terms_are_those_of_equation_14(quad, step):
    """Each from its definition, at the dq of the step."""
    w, f, weights = random_w(1), step, step["weights"]
    dq, targets, feet = f["maps"].dq0 + f["maps"].Q @ w, f["targets"], f["feet"]
    u = f["units"]
    psi = feet.normal + (feet.J_normal @ dq).reshape(-1, 3)
    tip = (feet.J_tip @ dq).reshape(-1, 3)
    expected = {
        "smooth": 2.0 * np.sum(((dq - targets.before) / u) ** 2),
        "follow": 7.0 * np.sum(((dq - targets.error) / u) ** 2),
        "flat": 3.0 * np.sum(((psi - [0, 0, 1])[targets.flat] / weights.angle) ** 2),
        "torque": 0.3 * np.sum(((w[:12] - targets.torques) / 1.5) ** 2),
        "stand": 5.0 * np.sum((tip[targets.standing] / weights.length) ** 2),
    }
    terms = f["objective"].by_term(w)
    for name, value in expected.items():
        assert terms[name] == pytest.approx(value, rel=1e-10), name
    E = f["objective"]
    assert E(w) == pytest.approx(0.5 * w @ E.H @ w + E.g @ w + E.c, rel=1e-9)


@pytest.mark.parametrize("seed", range(3))
def test_gradient_by_finite_differences(step, seed):
    E, w = step["objective"], random_w(seed)
    d = random_w(seed + 10)
    step = 1e-4
    slope = (E(w + step * d) - E(w - step * d)) / (2 * step)
    assert (E.H @ w + E.g) @ d == pytest.approx(slope, rel=1e-6)


def test_jacobians_of_feet_by_finite_differences(quad, step):
    """Patches, tips and normals move as their Jacobians say."""
    stepper, q = step["stepper"], step["state"].q
    d, step = np.random.default_rng(5).normal(size=18), 1e-6

    def at(sign):
        quad.plant.SetPositions(stepper.context, q)
        moved = moved_positions(quad.plant, stepper.context, sign * step * d)
        quad.plant.SetPositions(stepper.context, moved)
        return feet_kinematics(quad.plant, stepper.context, quad.feet)

    plus, minus, here = at(1), at(-1), at(0)
    for value, jacobian in (("p", "J"), ("tip", "J_tip"), ("normal", "J_normal")):
        slope = (getattr(plus, value) - getattr(minus, value)).ravel() / (2 * step)
        assert np.allclose(getattr(here, jacobian) @ d, slope, atol=1e-8), value


def test_position_error_leads_to_the_goal(quad, step):
    """Small ones by dq; the base's turn is a rotation vector in the world."""
    stepper, plant = step["stepper"], quad.plant
    q = step["state"].q
    d = 1e-5 * np.random.default_rng(6).normal(size=18)
    plant.SetPositions(stepper.context, q)
    near = moved_positions(plant, stepper.context, d)
    # The quaternion's other sign is the same pose.
    for sign in (1, -1):
        goal = near.copy()
        goal[:4] *= sign
        e = position_error(plant, stepper.context, goal)
        assert np.allclose(e, d, atol=1e-9)


def test_cop_rows_are_the_edges():
    """Rows >= 0 exactly when the COP is inside, for random forces."""
    rng = np.random.default_rng(0)
    p = np.column_stack([rng.uniform(-1, 1, (9, 2)), np.zeros(9)])
    bearing = np.arange(9) < 5
    rows = cop_rows(p, bearing)
    inside = 0
    for _ in range(200):
        f = rng.uniform(0, 1, (9, 3)) ** 6
        assert (rows @ f.ravel()).min() * cop_margin(p, bearing, f) >= -1e-12
        inside += cop_margin(p, bearing, f) > 0
    assert 20 < inside < 180
    # A margin moves every edge inward.
    square = np.array([[0, 0, 0], [1, 0, 0], [1, 1, 0], [0, 1, 0]], float)
    at = np.zeros((4, 3))
    at[:, 2] = [0.9, 0.1, 0, 0]
    assert (cop_rows(square, np.ones(4, bool)) @ at.ravel()).min() >= 0
    assert (cop_rows(square, np.ones(4, bool), 0.05) @ at.ravel()).min() < 0
    assert np.allclose(centre_of_pressure(square, at), [0.1, 0])


def test_what_cannot_be(quad, step):
    for bad in ({"torque": 0.0}, {"smooth": -1.0}, {"angle": np.nan}):
        with pytest.raises(InvalidInput, match="step weights"):
            StepWeights(**bad)
    with pytest.raises(InvalidInput, match="no area"):
        support_edges(np.array([[0, 0], [1, 1], [2, 2.0]]))
    with pytest.raises(InvalidInput, match="none"):
        Feet((), np.zeros((0, 3)))
    with pytest.raises(InvalidInput, match="twice"):
        one = quad.feet.patches[0]
        Feet((one, one), np.zeros((2, 3)))
    with pytest.raises(InvalidInput, match="error"):
        StepTargets(np.full(18, np.nan), np.zeros(18), None, np.ones(4), np.ones(4))
    targets = StepTargets(np.zeros(17), np.zeros(18), None, np.ones(4), np.ones(4))
    with pytest.raises(InvalidInput, match=r"sizes \[17, 18, 12, 4\]"):
        step_objective(
            step["maps"],
            quad.feet,
            step["feet"],
            targets,
            step["weights"],
            step["units"],
        )
