"""A plant's parts as lists, beside what Drake says of them by index."""

from __future__ import annotations

import numpy as np
import pytest
from pydrake.multibody.tree import JointActuatorIndex

from drakebots import UnknownName, build_robot, load
from drakebots.model import (
    actuators_of,
    bodies_of,
    driven_joints,
    effort_limits,
    find_body,
    force_elements,
    free_bodies,
    gravity,
    joint_slices,
    joints_of,
    point_in_world,
    point_jacobian,
    rotor_inertias,
    single_joints,
    slides,
    sliding_motors,
)


@pytest.fixture(scope="module")
def plant():
    return build_robot(load("hamr"), time_step=0).plant


def test_parts_are_all_there_in_order(plant):
    assert len(bodies_of(plant)) == plant.num_bodies()
    assert bodies_of(plant)[0].index() == plant.world_body().index()
    assert len(joints_of(plant)) == plant.num_joints()
    assert len(force_elements(plant)) == plant.num_force_elements() - 1  # gravity
    motors = map(JointActuatorIndex, range(plant.num_actuators()))
    names = [plant.get_joint_actuator(i).name() for i in motors]
    assert [motor.name() for motor in actuators_of(plant)] == names
    assert len(single_joints(plant)) == plant.num_velocities() - 6
    (base,) = free_bodies(plant)
    assert base.is_floating_base_body()


def test_motors_slide_and_have_limits(plant):
    """HAMR's piezos push; the matrix of Drake has a motor's rate in its column."""
    assert sliding_motors(plant).all() and all(map(slides, driven_joints(plant)))
    assert (effort_limits(plant) > 0).all()
    rates = [joint_slices(joint)[1].start for joint in driven_joints(plant)]
    np.testing.assert_array_equal(plant.MakeActuationMatrix().argmax(axis=0), rates)
    assert not rotor_inertias(plant).any()
    assert gravity(plant) == pytest.approx(9.81)


def test_a_points_velocity_is_its_jacobian_times_v(plant):
    rng, context = np.random.default_rng(0), plant.CreateDefaultContext()
    v, step = rng.normal(size=plant.num_velocities()), 1e-6
    frame, p = bodies_of(plant)[7].body_frame(), np.array([1e-3, 2e-3, -3e-3])
    before = point_in_world(plant, context, frame, p)
    J = point_jacobian(plant, context, frame, p)
    q = plant.GetPositions(context) + step * plant.MapVelocityToQDot(context, v)
    plant.SetPositions(context, q)
    moved = point_in_world(plant, context, frame, p) - before
    np.testing.assert_allclose(moved / step, J @ v, atol=1e-5)


def test_names_that_nothing_has(plant):
    with pytest.raises(UnknownName, match="nobody"):
        find_body(plant, "nobody")
    with pytest.raises(UnknownName, match="elsewhere"):
        find_body(plant, "elsewhere::nobody")
