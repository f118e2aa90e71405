"""Motions over terrain: their planes, footholds on whole treads, swings over edges."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from drakebots.core.errors import InvalidInput
from drakebots.multibody import Flat, Mesh, Slope, Stairs
from drakebots.robots.quads.motion import (
    ground_axes,
    height_over,
    library_motion,
    onto,
)
from drakebots.robots.quads.motion.ground import planes_under
from drakebots.robots.quads.space_time import SpaceTime, check_motion, program
from drakebots.robots.quads.space_time.check import cone_rows


@pytest.fixture(scope="module")
def walk(cow):
    return library_motion("walk", cow, speed=0.1)


@pytest.fixture(scope="module")
def far(cow):
    return library_motion("walk", cow, speed=0.1, cycles=2)


def test_flat_ground_changes_nothing(walk, cow):
    assert onto(walk, cow, Flat()) is walk
    assert (walk.ground == [0, 0, 1, 0]).all() and walk.climb == 0


@settings(max_examples=20, deadline=None)
@given(angle=st.floats(-0.3, 0.3))
def test_on_a_slope_all_feet_meet_one_plane(walk, cow, angle):
    """Everything rises by the slope under it, and the gait still repeats."""
    moved = onto(walk, cow, Slope(angle))
    normal = [np.sin(angle), 0, np.cos(angle)]
    assert np.allclose(moved.ground[..., :3], normal, atol=1e-12)
    assert np.allclose(moved.ground[..., 3], 0, atol=1e-12)
    rise = -np.tan(angle)
    for new, old in ((moved.feet, walk.feet), (moved.com, walk.com)):
        assert np.allclose(new[..., :2], old[..., :2])
        assert np.allclose(new[..., 2] - old[..., 2], rise * old[..., 0], atol=1e-12)
    assert moved.period == "cycle"
    assert moved.climb == pytest.approx(rise * np.ptp(walk.com[:, 0]), abs=1e-12)


@settings(max_examples=20, deadline=None)
@given(
    rise=st.floats(0.005, 0.03), run=st.floats(0.15, 0.4), start=st.floats(-0.1, 0.3)
)
def test_on_stairs_soles_stand_whole(far, cow, rise, run, start):
    """Each on the height of its own tread, all of its corners; swings stay above."""
    motion, stairs = far, Stairs(rise=rise, run=run, start=start)
    moved = onto(motion, cow, stairs)
    down = moved.footfall.contact
    for j, sole in enumerate(cow.soles):
        corners = moved.feet[down[:, j], j, None, :2] + sole.corners
        heights = stairs.heights(corners[..., 0], corners[..., 1])
        assert np.ptp(heights, axis=1).max() < 1e-12
        on = moved.feet[down[:, j], j, 2] - motion.feet[down[:, j], j, 2]
        assert np.allclose(on, heights[:, 0], atol=1e-12)
    assert height_over(moved.ground, moved.feet).min() > -1e-12
    assert np.abs(moved.feet[..., :2] - motion.feet[..., :2]).max() < 0.2
    if np.ptp(moved.ground[down][:, 3]):  # not all on one tread
        assert moved.period is None


def test_a_turn_on_a_slope_does_not_repeat(cow):
    """Its trunk is tilted otherwise at its end; on flat ground it is not."""
    turn = library_motion("turn", cow)
    assert turn.period == "cycle"
    assert onto(turn, cow, Slope(0.1)).period is None
    assert onto(library_motion("lift_single", cow), cow, Slope(0.1)).period is None


def test_soles_that_are_turned_stand_whole(cow):
    """The square of a sole turns with the body: its corner must not hang over."""
    still = library_motion("lift_single", cow)
    side = max(np.ptp(sole.corners, axis=0).max() for sole in cow.soles)
    edge = still.feet[0, :, 0].max() - 0.6 * side
    stairs, first = Stairs(rise=0.02, start=edge), slice(0, 1)
    points = still.feet[first]
    for heading, hangs in ((0.0, False), (np.pi / 4, True)):
        _, depth = planes_under(stairs, points, side / 2, [heading])
        assert (depth > 1e-3).any() == hangs


def test_a_motion_that_is_made_is_on_its_ground_once(walk, cow):
    """Level, it is moved onto the terrain; moved already, it stays; and a plan for flat
    ground refuses it."""
    up = Slope(-0.1)
    moved = onto(walk, cow, up)
    assert onto(moved, cow, up) is moved
    with pytest.raises(InvalidInput, match="not on flat ground; give their terrain"):
        onto(moved, cow, Flat())


def test_where_there_is_no_ground_it_says_so(walk, cow, tmp_path):
    sheet = tmp_path / "sheet.obj"
    sheet.write_text("v 0 0 0\nv 1 0 0\nv 0 1 0\nf 1 2 3\n")
    small = Mesh(sheet, floor=False)
    with pytest.raises(InvalidInput, match="no ground where the motion steps"):
        onto(walk, cow, small)


def test_axes_have_the_ground_s_normal_last():
    planes = np.array([[0, 0, 1, 0.2], [np.sin(0.2), 0, np.cos(0.2), 0]])
    level, sloped = ground_axes(planes)
    assert (level == np.eye(3)).all()
    assert np.allclose(sloped @ sloped.T, np.eye(3)) and np.linalg.det(sloped) > 0
    assert np.allclose(sloped[2], planes[1, :3])


def test_rows_of_a_slope_are_those_of_flat_ground_turned(cow):
    """Friction, clearance and level soles of a robot that is turned with its ground."""
    angle, rng = 0.2, np.random.default_rng(4)
    q = cow.rest + rng.normal(0, 0.05, cow.nv)
    q[3:6] = 0.0  # pitch alone turns as the slope does
    turned = np.array(q)
    c, s = np.cos(angle), np.sin(angle)
    R = np.array([[c, 0, s], [0, 1, 0], [-s, 0, c]])
    turned[:3], turned[4] = R @ q[:3], angle
    F, T = rng.normal(size=(2, len(cow.soles), 3))
    flat, slope = (
        np.tile([*R_i @ [0, 0, 1], 0.0], len(cow.soles)) for R_i in (np.eye(3), R)
    )

    def value(block, inputs, data):
        return block.value_function(np.concatenate(inputs), data).full().ravel()

    friction = program.friction_block(cow, 0.7, 0.04, 40.0)
    for block, here, there in (
        (program.clearance_block(cow), [q], [turned]),
        (friction, [F.ravel(), T.ravel()], [(F @ R.T).ravel(), (T @ R.T).ravel()]),
    ):
        assert np.allclose(value(block, here, flat), value(block, there, slope))
    weights = np.ones(len(cow.soles))
    level = program.flat_block(cow)
    one = value(level, [q], np.r_[weights, flat])
    assert np.allclose(one, value(level, [turned], np.r_[weights, slope]))
    p = cow.foot_positions(np.array([q, turned])).reshape(2, -1)
    over = program.ground_block(len(cow.soles))
    assert np.allclose(value(over, [p[0]], flat), value(over, [p[1]], slope))
    down = np.ones(len(cow.soles), bool)
    C = [
        cone_rows(cow, pose, down, planes.reshape(-1, 4), 0.7)
        for pose, planes in ((q, flat), (turned, slope))
    ]
    w = [np.r_[F.ravel(), T.ravel()], np.r_[(F @ R.T).ravel(), (T @ R.T).ravel()]]
    assert np.allclose(C[0] @ w[0], C[1] @ w[1])


def test_a_walk_up_a_slope_can_be_done(cow, walk):
    problem = SpaceTime(cow, onto(walk, cow, Slope(-0.1)))
    report = check_motion(problem)
    assert report.poses.miss.max() < 5e-3
    # The trunk is tilted as the ground is.
    assert report.poses.q[:, 4].mean() == pytest.approx(-0.1, abs=0.02)
