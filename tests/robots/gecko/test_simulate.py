"""Courses, by both engines and all motion models."""

import numpy as np
import pytest

from drakebots.core.errors import InvalidInput, NoSolution, UnknownName
from drakebots.core.run import Verdict
from drakebots.robots.gecko import Simulation, simulate
from drakebots.robots.gecko.engines import Drake, PoseStep
from drakebots.robots.gecko.generator import Published
from drakebots.robots.gecko.generator.obstacles import distance_to_obstacles
from drakebots.robots.gecko.model import gait_law
from drakebots.robots.gecko.simulate import prepare


@pytest.mark.long
@pytest.mark.parametrize("epsilon", [0.05, 0.10])
def test_all_targets_are_reached_from_anywhere(epsilon):
    """Twenty random starts and headings."""
    random = np.random.default_rng(4)
    for _ in range(20):
        problem = Simulation(
            epsilon=epsilon,
            start=tuple(random.uniform(-0.6, 0.6, 2)),
            heading=float(random.uniform(-np.pi, np.pi)),
        )
        result = simulate(problem)
        assert result.ok, result.message
        assert result.metrics["targets_reached"] == 4
        assert result.metrics["final_distance_cm"] < 100 * epsilon
        assert result.metrics["half_cycles"] < 80


@pytest.mark.parametrize(
    "motion", ["table 3", "fit", pytest.param("pose step", marks=pytest.mark.long)]
)
def test_every_motion_model_walks_the_first_leg(motion):
    targets = ((0.65, 0.0), (0.65, 0.3))
    result = simulate(Simulation(targets=targets, motion=motion))
    assert result.ok
    assert result.residuals["drift of a fixed foot [m]"] < 1e-9


def test_a_target_met_at_the_start_says_so():
    for engine in (PoseStep(), Drake()):
        result = simulate(Simulation(targets=((0.01, 0.0),), engine=engine))
        assert result.ok and "met at the start" in result.message
        assert result.metrics["half_cycles"] == 0


@pytest.mark.long
def test_a_large_robot_and_the_papers_sum_arrive_too():
    result = simulate(Simulation(size="large", rule=Published(sum="paper")))
    assert result.ok
    assert result.metrics["half_cycles"] < 60


def test_rows_of_a_track_agree_with_each_other():
    result = simulate(Simulation(targets=((0.4, 0.2),)))
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
    problem = Simulation(targets=((1.0, 0.0),), heading=0.0, obstacles=(wall,))
    result = simulate(problem)
    assert result.ok
    markers = result.data.marker_position.values.reshape(-1, 2)
    assert distance_to_obstacles(markers, [np.array(wall)]).min() > 0


def test_a_ring_of_walls_blocks_the_path():
    ring = [
        ((-1, 0.8), (1, 0.8), (1, 0.9), (-1, 0.9)),
        ((-1, -0.9), (1, -0.9), (1, -0.8), (-1, -0.8)),
        ((0.8, -0.9), (0.9, -0.9), (0.9, 0.9), (0.8, 0.9)),
        ((-0.9, -0.9), (-0.8, -0.9), (-0.8, 0.9), (-0.9, 0.9)),
    ]
    with pytest.raises(NoSolution):
        prepare(Simulation(targets=((2.0, 0.0),), obstacles=tuple(ring)))


def test_a_time_limit_keeps_what_was_reached():
    result = simulate(Simulation(motion="pose step", time_limit=0.3))
    assert result.verdict is Verdict.TIME_LIMIT
    assert result.data.sizes["time"] >= 1


@pytest.mark.long
def test_a_final_heading_behind_a_wall():
    """The robot goes round the wall, and ends in the heading."""
    wall = ((0.4, -0.3), (0.5, -0.3), (0.5, 0.3), (0.4, 0.3))
    course = {"targets": ((1.0, 0.0),), "obstacles": (wall,), "heading": 0.0}
    result = simulate(Simulation(**course, final_heading=np.pi / 2))
    assert result.ok and abs(result.metrics["final_heading_error_deg"]) < 15
    front = result.data.marker_position.sel(marker="front").values
    assert distance_to_obstacles(front, (wall,)).min() > 0.1


@pytest.mark.parametrize(
    "options, error, words",
    [
        ({"engine": "Drke"}, InvalidInput, "Engine"),
        ({"motion": "table3"}, UnknownName, "table 3"),
        ({"engine": Drake(), "motion": "pose step"}, InvalidInput, "camera"),
        ({"targets": ()}, InvalidInput, "targets"),
        ({"targets": ((np.nan, 0),)}, InvalidInput, "targets must be"),
        ({"heading": np.inf}, InvalidInput, "heading"),
        ({"epsilon": -1.0}, InvalidInput, "epsilon"),
        ({"epsilon": 0.01}, InvalidInput, "1.8 cm"),
        ({"epsilon": 0.02, "size": "large"}, InvalidInput, "2.4 cm"),
        ({"rule": "shortest"}, InvalidInput, "Rule"),
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
        Simulation(**options)
