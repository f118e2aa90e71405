"""The space-time program: derivatives of its functions, dynamics against Drake,
heights of the soles."""

from __future__ import annotations

import numpy as np
import pytest
from pydrake.multibody.tree import JacobianWrtVariable, MultibodyForces

from drakebots.model import find_body
from drakebots.robots.quads.motion import LEVEL, library_motion
from drakebots.robots.quads.space_time import SpaceTime, program

pytestmark = pytest.mark.usefixtures("interpreted")


def _blocks(quad):
    n = quad.nv
    return {
        "dynamics": program.dynamics_block(quad),
        "kinematics": program.kinematics_block(quad),
        "sole": program.sole_block(quad, 0.9),
        "friction": program.friction_block(quad, 0.8, 0.04, 40.0),
        "flat": program.flat_block(quad),
        "squares": program.squares_block("x", 5),
        "motion": program.motion_block(n, 0.02, "inner"),
        "rest": program.motion_block(n, 0.02, "rest"),
        "wrap": program.motion_block(n, 0.02, "start", 0.3),
        "end": program.motion_block(n, 0.02, "end", 0.3),
    }


@pytest.mark.parametrize(
    "name",
    "dynamics kinematics sole friction flat squares motion rest wrap end".split(),
)
def test_blocks_have_the_derivatives_of_their_values(beetle, name):
    """Along random directions, central differences of values and of Jacobians."""
    block = _blocks(beetle)[name]
    rng = np.random.default_rng(1)
    w = rng.normal(0, 0.5, block.num_inputs)
    d = rng.uniform(0.1, 0.5, block.d.shape[0])
    mu = rng.normal(0, 1, block.num_rows)
    value = block.value_function
    H = np.zeros((block.num_inputs,) * 2)
    if len(block.hessian_pattern[0]):
        H[block.hessian_pattern] = block.functions["hessian"](w, d, mu).full().ravel()
    H = H + np.triu(H, 1).T
    J = block.jacobian(w, d)
    e = 1e-5
    for _ in range(3):
        u = rng.normal(0, 1, len(w))
        difference = (value(w + e * u, d) - value(w - e * u, d)).full().ravel()
        scale = max(1.0, np.abs(J @ u).max())
        assert difference / (2 * e) == pytest.approx(J @ u, abs=1e-6 * scale)
        turned = mu @ (block.jacobian(w + e * u, d) - block.jacobian(w - e * u, d))
        scale = max(1.0, np.abs(H @ u).max())
        assert turned / (2 * e) == pytest.approx(H @ u, abs=1e-6 * scale)


@pytest.mark.parametrize("name", ["sprawled", "upright"])
def test_inverse_dynamics_and_contact_are_drakes(quads, name):
    quad = quads[name]
    plant, tree = quad.robot.plant, quad.tree
    context = plant.CreateDefaultContext()
    rng = np.random.default_rng(2)
    for _ in range(5):
        q = quad.rest + rng.normal(0, 0.3, quad.nv)
        v, a = rng.normal(0, 2, (2, quad.nv))
        F, T = rng.normal(0, 10, (2, len(quad.soles), 3))
        plant.SetPositions(context, q)
        plant.SetVelocities(context, v)
        forces = MultibodyForces(plant)
        plant.CalcForceElementsContribution(context, forces)
        expected = plant.CalcInverseDynamics(context, a, forces)
        ours = tree.dynamics_function(q, v, a, tree.inertia.ravel()).full().ravel()
        assert ours == pytest.approx(expected, abs=1e-10)
        world = plant.world_frame()
        pulled = np.zeros(quad.nv)
        for sole, f, t in zip(quad.soles, F, T):
            frame = find_body(plant, sole.body).body_frame()
            J = plant.CalcJacobianSpatialVelocity(
                context, JacobianWrtVariable.kV, frame, sole.p_BF, world, world
            )
            pulled += J.T @ np.concatenate([t, f])
        J = quad.contact_jacobian(q)
        wrench = np.concatenate([F.ravel(), T.ravel()])
        assert J.T @ wrench == pytest.approx(pulled, abs=1e-10)
        tau = rng.normal(0, 1, len(quad.joints))
        block = program.dynamics_block(quad)
        data = np.concatenate([tree.inertia.ravel(), np.zeros(quad.nv)])
        w = np.concatenate([q, v, a, F.ravel(), T.ravel(), tau])
        rows = block.value_function(w, data).full().ravel()
        assert rows == pytest.approx(expected - pulled - quad.B @ tau, abs=1e-10)


def test_momentum_rows_are_the_rate_of_momentum(beetle):
    """First three: d/dt of the linear momentum Drake has, minus weight and forces."""
    quad, plant = beetle, beetle.robot.plant
    context = plant.CreateDefaultContext()
    rng = np.random.default_rng(3)
    q, v, a = quad.rest + rng.normal(0, 0.2, quad.nv), *rng.normal(0, 1, (2, quad.nv))

    def momentum(t):
        plant.SetPositions(context, q + t * v + t * t / 2 * a)
        plant.SetVelocities(context, v + t * a)
        h = plant.CalcSpatialMomentumInWorldAboutPoint(context, np.zeros(3))
        return h.translational()

    e = 1e-4
    rate = (momentum(e) - momentum(-e)) / (2 * e)
    F = rng.normal(0, 5, (4, 3))
    w = np.concatenate([q, v, a, F.ravel(), np.zeros(12), np.zeros(12)])
    data = np.concatenate([quad.tree.inertia.ravel(), np.zeros(quad.nv)])
    rows = program.dynamics_block(quad).value_function(w, data).full().ravel()
    weight = quad.mass * np.array([0, 0, -9.81])
    assert rows[:3] == pytest.approx(rate - weight - F.sum(axis=0), abs=1e-6)


@pytest.mark.parametrize("name", ["sprawled", "upright"])
def test_heights_of_corners_are_drakes(quads, name):
    """In random poses, against the plant's own kinematics."""
    quad = quads[name]
    block = program.clearance_block(quad)
    plant, rng = quad.robot.plant, np.random.default_rng(2)
    context, world = plant.CreateDefaultContext(), plant.world_frame()
    for _ in range(5):
        q = quad.rest + rng.normal(0, 0.3, quad.nv)
        plant.SetPositions(context, q)
        expected = []
        for sole in quad.soles:
            corners = np.pad(sole.corners, ((0, 0), (0, 1)))
            p_B = sole.p_BF[:, None] + sole.R_BS @ corners.T
            frame = plant.GetBodyByName(sole.body).body_frame()
            p = plant.CalcPointsPositions(context, frame, p_B, world)
            expected += list(p[2])
        level = np.tile(LEVEL, len(quad.soles))
        assert np.allclose(block.value_function(q, level).full().ravel(), expected)


def test_soles_in_the_air_have_rows(cow):
    """Corners of feet in the air are bounded below, those of others are not."""
    problem = SpaceTime(cow, library_motion("walk", cow))
    posture = problem.quad.rest
    low = program.space_time_program(problem, posture).rows["clear"].lower
    up = ~np.repeat(problem.contact, [len(s.corners) for s in cow.soles], axis=1)
    assert up.any() and np.array_equal(low == 0, up)
    assert np.isneginf(low[~up]).all()
