"""The gecko in Drake walks as the pose step predicts."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import cache
from types import SimpleNamespace

import numpy as np
import pytest

from drakebots.core.errors import InvalidInput
from drakebots.core.run import Verdict
from drakebots.results import load_result
from drakebots.robots.gecko.engines import (
    Drake,
    PhaseTimes,
    Walk,
    cycle_motion,
    run_drake,
    simulate_walk,
)
from drakebots.robots.gecko.engines.controllers import Camera
from drakebots.robots.gecko.engines.drake import build
from drakebots.robots.gecko.generator import GaitPatternGenerator, MotionPolynomial
from drakebots.robots.gecko.model import Gecko, fixation, gecko, gecko_limbs
from tests.helpers.scripts import load_script


def reproduction(**options):
    return Drake(reproduction=True, **options)


@cache
def walked(q1, q2, robot=None, **options):
    robot, engine = robot or gecko(), reproduction(**options)
    return simulate_walk(
        Walk(q1=np.radians(q1), q2=q2, cycles=2, robot=robot, engine=engine)
    )


@dataclass(frozen=True)
class ToTargets:
    engine: Drake
    half_cycles: int
    robot: Gecko = field(default_factory=gecko)
    time_limit: float | None = None

    def start_pose(self):
        return Walk().start_pose()


def to_targets(generator, half_cycles, **options):
    """A walk to targets, or by a generator, from a straight pose."""
    engine = Drake(pressure=False, times=QUICK, **options)
    return run_drake(ToTargets(engine, half_cycles), generator)


def compare(result, q1, q2, robot=None):
    """Errors of distance and of rotation per cycle, relative."""
    robot = robot or gecko()
    expected = cycle_motion(robot, np.radians(q1), q2, settle=1)
    distance = np.hypot(expected.forward, expected.left)
    metrics = result.metrics
    rotation = metrics["rotation_per_cycle_rad"] - expected.rotation
    rotation *= np.sign(expected.rotation) or 1.0
    return (
        metrics["distance_per_cycle_m"] / distance - 1,
        rotation / max(abs(expected.rotation), np.radians(1.0)),
    )


@pytest.mark.long
@pytest.mark.parametrize("q1, q2", [(80, 0.0), (50, -0.5), (70, 0.3), (90, 0.5)])
def test_gaits_agree_with_the_pose_step(q1, q2):
    result = walked(q1, q2)
    assert result.ok
    distance, rotation = compare(result, q1, q2)
    assert abs(distance) < 0.05
    assert abs(rotation) < 0.10
    # A foot that holds stays.
    assert max(result.residuals.values()) < 0.5e-3


@pytest.mark.long
def test_straight_gait_in_figures():
    metrics = walked(80, 0.0).metrics
    assert metrics["forward_per_cycle_m"] == pytest.approx(0.1157, rel=0.01)
    assert abs(metrics["rotation_per_cycle_rad"]) < np.radians(0.1)
    assert metrics["half_cycles"] == 4


@pytest.mark.long
def test_mirrored_steering_mirrors_the_turn():
    left, right = walked(50, -0.5).metrics, walked(50, 0.5).metrics
    turns = [m["rotation_per_cycle_rad"] for m in (left, right)]
    assert turns[0] == pytest.approx(-turns[1], rel=0.03)
    assert turns[0] > 0.3


@pytest.mark.long
def test_large_robot_by_the_generator():
    robot = gecko("large")
    distance, rotation = compare(walked(70, 0.0, robot=robot), 70, 0.0, robot)
    assert abs(distance) < 0.05 and abs(rotation) < 0.1


@pytest.mark.long
@pytest.mark.parametrize("segments", [3])
def test_fewer_segments_do_nearly_as_well(segments):
    distance, rotation = compare(walked(70, 0.0, segments=segments), 70, 0.0)
    assert abs(distance) < 0.03 and abs(rotation) < 0.1


@pytest.mark.long
def test_the_default_robot_turns_rather_as_the_papers_robot_did():
    """A gait that the cups were not fitted on; the pose step misses by 12.6 deg."""
    q1, q2 = np.radians(70), 0.3
    result = simulate_walk(Walk(q1=q1, q2=q2, cycles=2, engine=Drake()))
    right, left = MotionPolynomial.table_3().motion(q1, np.array([q2, -q2]))[:, 0]
    measured = -(left - right) / 2  # the paper's robot turns tighter to one side
    error = abs(result.metrics["rotation_per_cycle_rad"] - measured)
    assert error < 0.5 * abs(cycle_motion(gecko(), q1, q2).rotation - measured)
    distance, _ = compare(result, 70, 0.3)
    assert abs(distance) < 0.1


@pytest.mark.long
def test_pressure_saturates_and_turns_less():
    q1, q2 = 80, 0.3
    result = walked(q1, q2, pressure=True)
    data = result.data
    assert np.abs(data.pressure).max() <= 1.1e5 + 1e-3
    assert np.abs(data.pressure).max() > 1.09e5
    assert np.abs(data.valve).max() <= 1.0
    turn = abs(result.metrics["rotation_per_cycle_rad"])
    full = abs(cycle_motion(gecko(), np.radians(q1), q2).rotation)
    limited = cycle_motion(gecko(), np.radians(q1), q2, limited=True)
    assert turn < 0.85 * full
    assert abs(limited.rotation) < full


def test_stiffness_follows_from_section_and_silicone():
    """E w h^3 / (12 L) of a leg of 20 x 15 x 91 mm and 1 MPa."""
    robot = gecko()
    assert Drake().stiffness(robot)["leg"] == pytest.approx(0.0618, abs=1e-4)
    soft = Drake(modulus=0.3e6)
    assert soft.stiffness(robot)["leg"] == pytest.approx(0.0185, abs=1e-4)
    limbs = gecko_limbs(gecko())
    for limb in limbs:
        breadth = 0.03 if limb.name == "torso" else 0.02
        expected = 1e6 * breadth * 0.015**3 / 12 / limb.length
        assert limb.stiffness == pytest.approx(expected)
    assert len(set(reproduction().stiffness(robot).values())) == 1


@pytest.mark.long
def test_dataset(tmp_path):
    result = walked(80, 0.0)
    data = result.data
    for name, units in {
        "marker_position": "m",
        "heading": "rad",
        "alpha": "rad",
        "alpha_ref": "rad",
        "fixation": "1",
        "foot_drift": "m",
        "cup_twist": "rad",
        "joint_angle": "rad",
        "q1": "rad",
        "q2": "1",
    }.items():
        assert data[name].attrs["units"] == units
        assert np.isfinite(data[name]).all()
    move = data.sel(time=1.25, method="nearest")
    assert (move.fixation.values == fixation(1)).all()
    np.testing.assert_allclose(move.alpha, move.alpha_ref, atol=0.02)
    assert float(move.q1) == pytest.approx(np.radians(80))
    assert (data.sel(time=0.1, method="nearest").fixation == 1).all()
    assert load_result(result.save(tmp_path / "run.nc")) == result


def test_beginning_is_where_it_was_put():
    problem = Walk(heading=0.7, position=(0.4, -0.1), q2=0.2)
    built = build(problem.engine, problem.robot, problem.start_pose(), (1.0, 0.2))
    simulator = built.simulator(problem.start_pose())
    plant = built.body.plant
    context = plant.GetMyContextFromRoot(simulator.get_context())
    found = built.body.markers(context)
    np.testing.assert_allclose(found, problem.start_pose().markers, atol=4e-4)


class Fake:
    """Walks straight on for a number of half cycles."""

    def __init__(self, times):
        self.left, self.seen = times, []

    def decide(self, position, heading):
        self.seen.append((*position, heading))
        self.left -= 1
        if self.left < 0:
            return None
        return SimpleNamespace(q1=np.radians(80), q2=0.0, target=0, distance=0.2)


QUICK = PhaseTimes(0.1, 0.05, 0.5)


def test_closed_loop_with_a_fake():
    fake = Fake(2)
    result = to_targets(fake, 9)
    assert result.ok and "every target was reached" in result.message
    assert len(fake.seen) == 3
    assert result.metrics["half_cycles"] == 2
    end = result.data.marker_position.sel(marker="front")[-1]
    np.testing.assert_allclose(fake.seen[-1][:2], end, atol=1e-3)
    assert float(end[0]) == pytest.approx(0.1157, rel=0.05)


@pytest.mark.long
def test_closed_loop_reaches_a_target():
    target = (0.3, 0.08)
    result = to_targets(GaitPatternGenerator([target]), 14)
    assert result.ok, result.message
    end = result.data.marker_position.sel(marker="front")[-1]
    assert np.linalg.norm(end - target) < 0.06
    assert max(result.residuals.values()) < 0.5e-3
    assert {float(abs(q)) > 0 for q in result.data.q1[-5:]} == {True}


def test_targets_out_of_reach_fail_with_what_was_reached():
    result = to_targets(GaitPatternGenerator([(3.0, 0.0)]), 1)
    assert result.verdict is Verdict.FAILED and "1 half cycles" in result.message
    assert result.data.time[-1] == pytest.approx(0.65, abs=0.03)


def test_time_limit_keeps_what_was_reached():
    result = simulate_walk(Walk(cycles=50, time_limit=0.3))
    assert result.verdict is Verdict.TIME_LIMIT
    assert 0 < float(result.data.time[-1]) < 60


@pytest.mark.long
def test_camera_noise_repeats_with_its_seed():
    noise = {"position_noise": 0.002, "heading_noise": 0.02}
    runs = [Fake(2) for seed in (1, 1, 2)]
    for seed, fake in zip((1, 1, 2), runs):
        to_targets(fake, 2, camera=Camera(seed=seed, **noise))
    assert runs[0].seen == runs[1].seen != runs[2].seen


@pytest.mark.parametrize(
    "make, word",
    [
        (lambda: Walk(q1=0.0), "q1"),
        (lambda: Walk(q1=np.nan), "q1"),
        (lambda: Walk(q2=3.0), "q2"),
        (lambda: Walk(cycles=0), "cycles"),
        (lambda: Walk(cycles=1.5), "cycles"),
        (lambda: Walk(alpha=(0.0, 1.0)), "alpha"),
        (lambda: Walk(heading=np.nan), "heading"),
        (lambda: Walk(position=(np.inf, 0.0)), "position"),
        (lambda: Drake(time_step=0.0), "time_step"),
        (lambda: Drake(time_step=0.01), "time step"),
        (lambda: Drake(time_step=np.nan), "time_step"),
        (lambda: Drake(log_period=-1.0), "log_period"),
        (lambda: Drake(incline=3.3), "incline"),
        (lambda: Drake(torsion=-1.0), "torsion"),
        (lambda: Drake(modulus=0.0), "modulus"),
        (lambda: Drake(segments=0), "segments"),
        (lambda: Camera(position_noise=-1.0), "noise"),
    ],
)
def test_bad_problems_are_refused_before_any_work(make, word):
    with pytest.raises(InvalidInput, match=word) as caught:
        make()
    assert "\n" not in str(caught.value)


def test_model_is_what_its_parameters_make(tmp_path, capsys):
    script = load_script("make_gecko_model")
    assert script.main(["--check"]) == 0
    large = tmp_path / "large.sdf"
    assert script.main(["--size", "large", "--sdf", str(large)]) == 0
    assert large.is_file()
    assert script.main(["--size", "huge", "--sdf", str(large)]) == 2
    assert "large, small" in capsys.readouterr().err


@pytest.mark.slow
def test_velocity_space_of_the_pose_step():
    errors = []
    for q1 in (50, 60, 70, 80, 90):
        for q2 in (-0.5, -0.3, -0.1, 0.1, 0.3, 0.5):
            errors.append(compare(walked(q1, q2), q1, q2))
    distance, rotation = np.abs(errors).T
    assert distance.max() < 0.05
    assert np.median(rotation) < 0.05 and rotation.max() < 0.10


@pytest.mark.long
def test_real_time():
    # A generous bound; the figure for an idle machine is in docs/evidence/gecko.md.
    factors = [walked(*gait).metrics["real_time_factor"] for gait in ((80, 0.0),)]
    assert max(factors) > 0.3


@pytest.mark.long
def test_measured_references_replace_the_gait_law():
    """The law's own angles give the law's walk; others are those it goes to."""
    engine = Drake(pressure=False, times=QUICK)
    walk = Walk(cycles=1, engine=engine)
    law = tuple(tuple(walk.law(sign * walk.q1, 0.0)) for sign in (1, -1))
    same = simulate_walk(replace(walk, references=law))
    assert same.data.alpha.values == pytest.approx(
        simulate_walk(walk).data.alpha.values
    )
    on, off, torso = np.radians([70.0, -5.0, 60.0])
    pair = (off, on, torso, off, on), (on, off, -torso, on, off)
    result = simulate_walk(replace(walk, references=pair))
    ends = result.data.alpha_ref.values
    assert ends[0] == pytest.approx(pair[1]) and ends[-1] == pytest.approx(pair[1])
    middle = ends[len(ends) // 2]
    assert middle == pytest.approx(pair[0])
    with pytest.raises(InvalidInput, match="references"):
        replace(walk, references=(law[0],))
