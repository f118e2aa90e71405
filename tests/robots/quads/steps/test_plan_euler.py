"""A plan in Euler coordinates closes the equations of motion; the benchmark."""

import numpy as np
import pytest
from pydrake.multibody.tree import JacobianWrtVariable, MultibodyForces

from drakebots.robots.quads.robot import Coordinates, load_quad, skin_share
from drakebots.robots.quads.steps import StepsProblem, make_planner, plan_steps
from drakebots.skin.file import load_skinned
from tests.helpers.skinned_quad import skinned_files


@pytest.fixture(scope="module")
def sdf(tmp_path_factory):
    return skinned_files(tmp_path_factory.mktemp("boxed"))


@pytest.fixture(scope="module")
def robot(sdf):
    return load_skinned(sdf)


@pytest.fixture(scope="module")
def quad(sdf):
    return load_quad(sdf)


@pytest.fixture(scope="module")
def crouched(robot, quad):
    """Half a second of bending the knees, with the requested positions."""
    rows = 61
    q = np.tile(quad.rest, (rows, 1))
    s = 0.5 - 0.5 * np.cos(np.pi * np.arange(rows) / (rows - 1))
    names = list(quad.coordinates)
    for leg in quad.feet:
        for joint, turn in (("hip", -0.15), ("knee", 0.3), ("ankle", -0.15)):
            q[:, names.index(f"{leg}_{joint}")] += turn * s
    plan = StepsProblem(Coordinates(quad).positions(q), np.ones((rows, 4), bool))
    planner = make_planner(robot, 5e-3, threads=1)
    return plan_steps(planner, plan), q


def test_follows_the_joints(quad, crouched):
    result, q = crouched
    assert result.ok, result.message
    joints = [f"{leg}_knee" for leg in quad.feet]
    at = [list(quad.coordinates).index(name) for name in joints]
    back = Coordinates(quad).from_positions(result.data.position.values)
    assert np.allclose(back[-1, at], q[-1, at], atol=0.05)
    assert np.ptp(back[:, at], axis=0).min() > 0.2
    assert result.data.complementarity.values.max() < 1e-8


def test_coupling_closes_the_equations_of_motion(quad, crouched):
    """M a + C v - tau_g = B tau + J'f + coupling, in Euler coordinates, by Drake."""
    result, _ = crouched
    d, plant = result.data, quad.robot.plant
    context, turn = plant.CreateDefaultContext(), Coordinates(quad)
    q = turn.from_positions(d.position.values)
    v = turn.from_velocities(q, d.velocity.values)
    # Forces in row k + 1 act in the pose of row k.
    pull = turn.forces(q[:-1], d.coupling_force.values[1:])
    for k in (5, 30, 50):
        plant.SetPositions(context, q[k])
        plant.SetVelocities(context, v[k])
        forces = MultibodyForces(plant)
        plant.CalcForceElementsContribution(context, forces)
        a = (v[k + 1] - v[k]) / 5e-3
        left = plant.CalcInverseDynamics(context, a, forces)
        right = pull[k] + quad.B @ d.torque.values[k + 1]
        for patch, p in enumerate(d.patch_position.values[k]):
            body = plant.GetBodyByName(f"{quad.feet[patch // 5]}_foot")
            X_WB = plant.EvalBodyPoseInWorld(context, body)
            J = plant.CalcJacobianTranslationalVelocity(
                context,
                JacobianWrtVariable.kV,
                body.body_frame(),
                X_WB.inverse().multiply(p),
                plant.world_frame(),
                plant.world_frame(),
            )
            right = right + J.T @ d.contact_force.values[k + 1, patch]
        # The frame's own damping is implicit, its base on a quaternion: to first
        # order in the step.
        size = np.abs(pull[k]).max()
        assert np.abs(left - right).max() < 0.02 * size, k


def test_skin_of_the_links(robot, crouched):
    """All of its mass; its centres move by millimetres in their links."""
    data = crouched[0].data
    assert skin_share(robot.fem, robot.glue).mass.sum() == pytest.approx(
        robot.skin_mass
    )
    shift = data.skin_com.values - data.skin_com_rest.values
    assert 1e-6 < np.abs(shift).max() < 0.02
