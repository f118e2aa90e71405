"""Checks that every plan of a legged robot must pass, from its data alone."""

from __future__ import annotations

import numpy as np
from pydrake.multibody.tree import JacobianWrtVariable

from drakebots.results import Result
from drakebots.trajopt.locomotion import LocomotionProblem, stand


def check_plan(model, plan: LocomotionProblem, result: Result) -> None:
    """Checks every successful plan must pass, from its data alone."""
    assert result.ok, result.message
    metrics = result.metrics
    assert metrics["complementarity_max"] <= 1e-6
    assert metrics["del_residual_max"] <= 1e-8
    data, mu = result.data, plan.friction
    weight = 9.81 * model.summary.mass
    radii = np.array([foot.radius for foot in model.feet])
    phi, normal = plan.terrain.evaluate(data.foot_position.values.reshape(-1, 3))
    gap = phi.reshape(-1, len(radii)) - radii
    assert gap.min() > -1e-7
    # Coulomb's pyramid about the ground's normal, and no pull.
    force = data.foot_force.values.reshape(-1, 3)
    pressure = np.einsum("ij,ij->i", force, normal)
    along = force - pressure[:, None] * normal
    assert pressure.min() > -1e-7 * weight
    assert (np.linalg.norm(along, axis=1) <= mu * pressure + 1e-7 * weight).all()
    # A foot in the air carries nothing.
    assert (gap.ravel() * pressure).max() < 1e-5 * weight * metrics["unit_length_m"]
    check_momentum(model, plan, data)


def linear_momentum(plant, context, q, v) -> np.ndarray:
    """m v of the centre of mass (3,), from Drake."""
    plant.SetPositions(context, q)
    world = plant.world_frame()
    J = plant.CalcJacobianCenterOfMassTranslationalVelocity(
        context, JacobianWrtVariable.kV, world, world
    )
    return plant.CalcTotalMass(context) * J @ v


def check_momentum(model, plan, data) -> None:
    """Impulses of feet and gravity change the linear momentum, interval by
    interval and in sum: h (f + m g) = m (v_k+1 - v_k) at midpoints."""
    standing = stand(model, terrain=plan.terrain)
    robot, unit = standing.system.robot, standing.scaling
    plant, context = robot.plant, robot.plant.CreateDefaultContext()
    q = data.position.values / robot.position_units()
    h = np.diff(data.time.values) / unit.time
    force = data.foot_force.values[1:].sum(axis=1) / unit.force
    momentum = np.array(
        [
            linear_momentum(plant, context, (a + b) / 2, (b - a) / step)
            for a, b, step in zip(q[:-1], q[1:], h)
        ]
    )
    gravity = np.array([0, 0, -1.0])
    change = np.diff(momentum, axis=0)
    between = (h[:-1] + h[1:])[:, None] / 2 * gravity + h[1:, None] * force[1:]
    moves = [axis in standing.base for axis in "xyz"]
    assert np.abs(change - between)[:, moves].max() < 1e-7
    if plan.motion.repeats:
        # Over a cycle the ground carries the weight and no more.
        impulse = (h[:, None] * force).sum(axis=0) + h.sum() * gravity
        assert np.abs(impulse[moves]).max() < 1e-7
