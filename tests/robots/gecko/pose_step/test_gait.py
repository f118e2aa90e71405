"""Gaits by the pose step: velocity space, motion model, courses."""

import numpy as np
import pytest

from drakebots.core.errors import InvalidInput, NoSolution, UnknownName
from drakebots.core.run import Verdict
from drakebots.results import load_result
from drakebots.robots.gecko.drake.pressure import saturate
from drakebots.robots.gecko.generator.course import Course, prepare
from drakebots.robots.gecko.generator.obstacles import distance_to_obstacles
from drakebots.robots.gecko.generator.pose_motion import PoseStepMotion, mirror_pose
from drakebots.robots.gecko.generator.velocity_space import (
    VelocitySpace,
    motion_of,
    simulate_velocity_space,
)
from drakebots.robots.gecko.model.kinematics import fixation, gait_law, pose_at
from drakebots.robots.gecko.model.parameters import gecko
from drakebots.robots.gecko.pose_step.gait import cycle_motion, relative_motion, walk
from drakebots.robots.gecko.pose_step.pose_step import pose_step
from drakebots.robots.gecko.simulate import GeckoSimulation, simulate_gecko

ROBOT = gecko()


@pytest.fixture(scope="module")
def space():
    return simulate_velocity_space()


def test_the_velocity_space_has_the_check_values(space):
    motion = space.data.motion
    at = motion.sel(q1=np.radians(50), q2=-0.5, method="nearest").values
    assert np.degrees(at[0]) == pytest.approx(22.94, abs=0.005)
    assert 100 * at[1] == pytest.approx(6.77, abs=0.005)


def test_the_velocity_space_is_mirror_symmetric_in_rotation(space):
    rotation = space.data.motion.sel(component="rotation").values
    assert np.allclose(rotation, -rotation[:, ::-1], atol=1e-4)


def test_rotation_grows_with_steering_as_the_paper_says(space):
    """Positive steering turns right, more of it more so."""
    rotation = space.data.motion.sel(component="rotation").values
    assert (np.diff(rotation, axis=1) < 0).all()


def test_the_fit_is_that_of_numpy(space):
    """The same least squares by another way."""
    q1, q2 = np.meshgrid(space.data.q1, space.data.q2, indexing="ij")
    q1, q2 = np.degrees(q1).ravel(), q2.ravel()
    basis = np.stack([q1**0, q1, q2, q1**2, q2**2, q1 * q2], axis=1)
    motion = np.degrees(space.data.motion.values[..., 0]).ravel()
    expected = np.linalg.lstsq(basis, motion, rcond=None)[0]
    found = space.metrics["coefficients"]["rotation"]
    names = ("1", "q1", "q2", "q1^2", "q2^2", "q1 q2")
    assert np.allclose([found[n] for n in names], expected, atol=1e-6)
    rms = np.sqrt(np.mean((motion - basis @ expected) ** 2))
    assert space.metrics["residual_rms_rotation_deg"] == pytest.approx(rms, rel=1e-9)


def test_a_stored_velocity_space_gives_its_polynomial_back(space, tmp_path):
    result = load_result(space.save(tmp_path / "space.nc"))
    one, other = motion_of(space), motion_of(result)
    assert np.allclose(one.motion(1.2, 0.3), other.motion(1.2, 0.3), atol=1e-15)
    assert motion_of(result, 3).order == 3
    with pytest.raises(InvalidInput, match="velocity"):
        motion_of(simulate_gecko(GeckoSimulation(half_cycles=1)))


def test_a_settled_cycle_repeats():
    a = cycle_motion(ROBOT, 1.2, 0.4, settle=6)
    b = cycle_motion(ROBOT, 1.2, 0.4, settle=7)
    assert a.rotation == pytest.approx(b.rotation, abs=1e-6)
    assert a.forward == pytest.approx(b.forward, abs=1e-8)


def test_saturation_turns_less_at_large_steps():
    """As the paper's robot did for q1 >= 80 deg."""
    free = cycle_motion(ROBOT, np.radians(90), 0.5)
    bound = cycle_motion(ROBOT, np.radians(90), 0.5, saturate=saturate)
    assert abs(bound.rotation) < abs(free.rotation)


@pytest.mark.parametrize("sign", [1, -1])
def test_the_motion_model_foretells_what_the_walk_does(sign):
    pose = walk(ROBOT, 1.1, 0.2, 2 if sign > 0 else 1)[-1]
    moved, turned = PoseStepMotion(ROBOT, pose, sign).predict(1.3, -0.3, 2)
    there = pose
    for k in range(4):
        q1 = sign * 1.3 * (-1) ** k
        there = pose_step(ROBOT, there, gait_law(q1, -0.3), fixation(q1)).pose
    rotation, displacement = relative_motion(pose, there)
    assert turned == pytest.approx(rotation, abs=1e-6)
    assert np.allclose(moved, displacement, atol=1e-7)


def test_a_mirrored_pose_is_mirrored_twice():
    pose = pose_at(ROBOT, [0.1, 0.2, 0.3, 0.4, 0.5], 0.7, (1, 2))
    assert np.allclose(mirror_pose(mirror_pose(pose)).markers, pose.markers)


# --- courses ----------------------------------------------------------------


@pytest.mark.parametrize("epsilon", [0.05, 0.10])
def test_all_targets_are_reached_from_anywhere(epsilon):
    """Twenty random starts and headings."""
    random = np.random.default_rng(4)
    for _ in range(20):
        problem = GeckoSimulation(
            epsilon=epsilon,
            start=tuple(random.uniform(-0.6, 0.6, 2)),
            heading=float(random.uniform(-np.pi, np.pi)),
        )
        result = simulate_gecko(problem)
        assert result.ok, result.message
        assert result.metrics["targets_reached"] == 4
        assert result.metrics["final_distance_cm"] < 100 * epsilon
        assert result.metrics["half_cycles"] < 80


@pytest.mark.parametrize("motion", ["table 3", "fit", "pose step"])
def test_every_motion_model_walks_the_first_leg(motion):
    targets = ((0.65, 0.0), (0.65, 0.3))
    result = simulate_gecko(GeckoSimulation(targets=targets, motion=motion))
    assert result.ok
    assert result.residuals["drift of a fixed foot [m]"] < 1e-9


def test_a_large_robot_and_the_papers_sum_arrive_too():
    result = simulate_gecko(GeckoSimulation(size="large", sum="paper"))
    assert result.ok
    assert result.metrics["half_cycles"] < 60


def test_rows_of_a_track_agree_with_each_other():
    result = simulate_gecko(GeckoSimulation(targets=((0.4, 0.2),)))
    data = result.data
    fixed = data.fixation.values[1:].astype(bool)
    feet = data.marker_position.sel(marker=["FL", "FR", "RL", "RR"]).values
    step = np.linalg.norm(np.diff(feet, axis=0), axis=2)
    assert (step[fixed] < 1e-9).all()
    assert np.allclose(data.foot_drift.values[1:][fixed], step[fixed])
    assert (np.sign(data.q1.values[1:]) == np.tile([1, -1], 99)[: len(fixed)]).all()
    reference = gait_law(data.q1.values[1:], data.q2.values[1:])
    assert np.allclose(data.alpha_ref.values[1:], reference)


def test_obstacles_are_kept_clear_of():
    wall = ((0.4, -0.3), (0.5, -0.3), (0.5, 0.3), (0.4, 0.3))
    problem = GeckoSimulation(targets=((1.0, 0.0),), heading=0.0, obstacles=(wall,))
    result = simulate_gecko(problem)
    assert result.ok
    markers = result.data.marker_position.values.reshape(-1, 2)
    assert distance_to_obstacles(markers, [np.array(wall)]).min() > 0


def test_a_ring_of_walls_bars_the_way():
    ring = [
        ((-1, 0.8), (1, 0.8), (1, 0.9), (-1, 0.9)),
        ((-1, -0.9), (1, -0.9), (1, -0.8), (-1, -0.8)),
        ((0.8, -0.9), (0.9, -0.9), (0.9, 0.9), (0.8, 0.9)),
        ((-0.9, -0.9), (-0.8, -0.9), (-0.8, 0.9), (-0.9, 0.9)),
    ]
    with pytest.raises(NoSolution):
        prepare(Course(targets=((2.0, 0.0),), obstacles=tuple(ring)))


def test_a_time_limit_keeps_what_was_reached():
    result = simulate_gecko(GeckoSimulation(motion="pose step", time_limit=0.3))
    assert result.verdict is Verdict.TIME_LIMIT
    assert result.data.sizes["time"] >= 1


@pytest.mark.parametrize(
    "options, error, words",
    [
        ({"engine": "drke"}, UnknownName, "drake"),
        ({"motion": "table3"}, UnknownName, "table 3"),
        ({"engine": "drake", "motion": "pose step"}, InvalidInput, "camera"),
        ({"targets": ()}, InvalidInput, "targets"),
        ({"targets": ((np.nan, 0),)}, InvalidInput, "target 0"),
        ({"heading": np.inf}, InvalidInput, "heading"),
        ({"epsilon": -1.0}, InvalidInput, "arrival"),
        ({"time_limit": 0.0}, InvalidInput, "time_limit"),
        ({"final_heading": 0.0}, InvalidInput, "one target"),
        (
            {"targets": ((1, 0),), "final_heading": 0.0, "motion": "pose step"},
            InvalidInput,
            "polynomial",
        ),
    ],
)
def test_bad_courses_are_named(options, error, words):
    with pytest.raises(error, match=words):
        GeckoSimulation(**options)


@pytest.mark.parametrize(
    "options, words",
    [
        ({"q1": (1.0, 0.9)}, "increase"),
        ({"q2": ()}, "increase"),
        ({"q1": (0.0, 1.0)}, "0..180"),
        ({"order": 5}, "6 values"),
        ({"settle": -1}, "settle"),
    ],
)
def test_bad_velocity_spaces_are_named(options, words):
    with pytest.raises(InvalidInput, match=words):
        VelocitySpace(**options)
