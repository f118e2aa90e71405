"""What of a shape stands on the ground: corners, an edge, a ball, a point."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydrake.geometry import Box, Capsule, Cylinder, Ellipsoid, HalfSpace, Sphere
from pydrake.math import RigidTransform, RollPitchYaw

from drakebots.model.soles import Cloud, cloud_of, far_end, sole

UP = np.array([0.0, 0.0, 1.0])
LEG = 0.8


def pose(xyz=(0, 0, 0), rpy=(0, 0, 0)):
    return RigidTransform(RollPitchYaw(rpy), xyz)


def stands(shape, X=RigidTransform(), leg=LEG):
    return sole(cloud_of(shape, X, UP), UP, leg)


@given(
    st.floats(0.1, 0.3),
    st.floats(0.06, 0.1),
    st.floats(-3, 3),
    st.floats(-0.3, 0.3),
    st.floats(-0.3, 0.3),
)
def test_a_box_stands_on_the_four_corners_of_its_bottom(x, y, yaw, pitch, roll):
    """Also where the pose that is looked at is not level."""
    X = pose((1, 2, 3), (roll, pitch, yaw))
    found = stands(Box(x, y, 0.04), X)
    corners = X @ (np.array([[x, x, -x, -x], [y, -y, y, -y], 4 * [-0.04]]) / 2)
    assert len(found.p) == 4
    order = [np.argmin(np.linalg.norm(corners.T - p, axis=1)) for p in found.p]
    assert sorted(order) == [0, 1, 2, 3]
    np.testing.assert_allclose(found.p, corners.T[order], atol=1e-12)


def test_a_ball_is_its_centre_and_radius():
    found = stands(Sphere(0.02), pose((0.1, 0, -0.3)))
    np.testing.assert_allclose(found.p, [[0.1, 0, -0.3]])
    assert found.radius == [0.02]


def test_a_hanging_capsule_is_its_lower_end_and_a_lying_one_both():
    hanging = stands(Capsule(0.02, 0.3), pose((0, 0, 0), (0.3, 0, 0)))
    assert len(hanging.p) == 1 and hanging.radius == [0.02]
    assert hanging.p[0, 2] == pytest.approx(-0.15 * np.cos(0.3))
    lying = stands(Capsule(0.02, 0.3), pose((0, 0, 0), (0, np.pi / 2, 0)))
    np.testing.assert_allclose(np.sort(lying.p[:, 0]), [-0.15, 0.15])


def test_cylinders_standing_and_lying():
    disc = stands(Cylinder(0.1, 0.03))
    assert len(disc.p) == 4
    np.testing.assert_allclose(disc.p[:, 2], -0.015)
    np.testing.assert_allclose(np.linalg.norm(disc.p[:, :2], axis=1), 0.1)
    wheel = stands(Cylinder(0.05, 0.02), pose(rpy=(np.pi / 2, 0, 0)))
    np.testing.assert_allclose(wheel.p, [[0, 0, 0]], atol=1e-12)
    assert wheel.radius == [0.05]


def test_a_thin_leg_ends_in_one_point():
    found = stands(Box(0.02, 0.02, 0.3), pose((0, 0, -0.15)))
    np.testing.assert_allclose(found.p, [[0, 0, -0.3]], atol=1e-12)
    assert found.radius == [0]


def test_a_round_mesh_is_a_ball():
    rng = np.random.default_rng(5)
    v = rng.normal(size=(600, 3))
    v = 0.03 * v / np.linalg.norm(v, axis=1)[:, None] + [0, 0.1, -0.2]
    found = sole(Cloud(v, np.zeros(600), ("mesh",)), UP, LEG)
    np.testing.assert_allclose(found.p, [[0, 0.1, -0.2]], atol=1e-4)
    assert found.radius[0] == pytest.approx(0.03, rel=5e-3)


def test_a_mesh_sole_has_four_corners_and_no_heel_cup():
    """An oval sole below, a narrower top above: corners lie on the sole."""
    t = np.linspace(0, 2 * np.pi, 60, endpoint=False)
    oval = np.c_[0.12 * np.cos(t), 0.05 * np.sin(t), np.full(60, -0.05)]
    top = np.c_[0.03 * np.cos(t), 0.03 * np.sin(t), np.full(60, 0.05)]
    cloud = Cloud(np.vstack([oval, top]), np.zeros(120), ("mesh",))
    found = sole(cloud, UP, LEG)
    assert len(found.p) == 4
    np.testing.assert_allclose(found.p[:, 2], -0.05)
    signs = {(x > 0, y > 0) for x, y in found.p[:, :2]}
    assert len(signs) == 4


@pytest.mark.parametrize("y", [0.03, 0.02])  # 0.02: Unitree's G1 of robosuite
def test_four_small_balls_are_a_sole(y):
    p = np.array([[0.1, y, 0], [0.1, -y, 0], [-0.05, y, 0], [-0.05, -y, 0]])
    found = sole(Cloud(p, np.full(4, 0.005), ("sphere",)), UP, LEG)
    assert {tuple(x) for x in found.p.round(3)} == {tuple(x) for x in p}
    np.testing.assert_allclose(found.radius, 0.005)


@pytest.mark.parametrize("axis, points", [((1, 0, 0), 4), ((0, 1, 0), 2)])
def test_a_narrow_sole_is_one_where_the_ankle_tilts_it(axis, points):
    """About its length; a wide one has four corners on any ankle (H1 only pitches)."""
    p = np.array([[0.1, 1, 0], [0.1, -1, 0], [-0.05, 1, 0], [-0.05, -1, 0]])
    for y, count in ((0.02, points), (0.05, 4)):
        cloud = Cloud(p * [1, y, 1], np.zeros(4), ("box",))
        assert len(sole(cloud, UP, LEG, np.array([axis])).p) == count


def test_an_ellipsoid_touches_at_its_lowest_point():
    found = stands(Ellipsoid(0.05, 0.05, 0.1))
    low = found.p[0, 2] - found.radius[0]
    assert low == pytest.approx(-0.1, abs=5e-3)
    np.testing.assert_allclose(found.p[0, :2], 0, atol=1e-2)


def test_the_ground_itself_has_no_points():
    assert len(cloud_of(HalfSpace(), RigidTransform(), UP).p) == 0


def test_far_end():
    shank = cloud_of(Capsule(0.02, 0.3), pose((0.15, 0, 0), (0, np.pi / 2, 0)), UP)
    np.testing.assert_allclose(far_end(shank, np.zeros(3)), [1, 0, 0], atol=1e-12)
    assert far_end(shank, np.array([0.15, 0, 0])) is None  # the joint is in its middle
    assert far_end(cloud_of(Box(1, 1, 1), pose(), UP), np.zeros(3)) is None
