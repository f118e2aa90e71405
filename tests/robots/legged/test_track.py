"""Plans executed: on both grounds, pushed, late, by servos alone, and refused."""

import sys
from dataclasses import replace

import numpy as np
import pytest

from drakebots.core.errors import InvalidInput
from drakebots.core.run import Verdict
from drakebots.formats import load, terrain_of
from drakebots.multibody import Flat, Slope, Step
from drakebots.results import load_result
from drakebots.robots import plot, track
from drakebots.robots.legged import Hard, Sap, Servos, Tracking, WholeBody
from drakebots.trajopt.locomotion import (
    Goal,
    Hop,
    LocomotionProblem,
    Series,
    Walk,
    plan_locomotion,
)
from tests.helpers.figures import check_legends, drawn_figures
from tests.helpers.robot_files import loops_3d
from tests.helpers.scripts import load_script
from tests.helpers.standing_plans import standing_plan

quadruped_urdf, written = load_script("program_robots", "quadruped_urdf", "written")

WEIGHT = 10.8 * 9.81


@pytest.fixture(scope="module")
def robot(tmp_path_factory):
    folder = tmp_path_factory.mktemp("quadruped")
    return written(folder, "quadruped", quadruped_urdf(hip_roll=True))


@pytest.fixture(scope="module")
def standing(robot):
    return standing_plan(robot)


@pytest.fixture(scope="module")
def walk(robot):
    plan = plan_locomotion(LocomotionProblem(robot, Walk(forward=0.15)))
    assert plan.ok, plan.message
    return plan


@pytest.mark.parametrize("ground", [Sap(), Hard()])
def test_a_standing_plan_stands(standing, ground):
    run = track(Tracking(standing, cycles=1, ground=ground))
    assert run.ok and run.kind == "legged.track"
    assert run.metrics["cycles_upright"] == 1
    load = run.data.foot_force.values[-1, :, 2].sum()
    assert load == pytest.approx(WEIGHT, rel=0.02)
    moved = np.ptp(run.data.base_position.values, axis=0)
    assert moved.max() < 1e-3
    assert run.metrics["slip_m"] < 2e-3


def test_a_belly_that_carries_is_no_success(standing, tmp_path):
    """What its feet do not carry, a block under the trunk does."""
    height = standing.data.base_position.values[0, 2]
    block = f"""<link name="trunk"><collision><origin xyz="0 0 {-height / 2}"/>
        <geometry><box size="0.1 0.1 {height + 0.02}"/></geometry></collision>"""
    text = quadruped_urdf(hip_roll=True).replace('<link name="trunk">', block, 1)
    dragging = standing_plan(written(tmp_path, "quadruped", text))
    plan = replace(standing, provenance=dragging.provenance)
    run = track(Tracking(plan, cycles=5, feedback=Servos()))
    assert not run.ok and "its feet carry" in run.message
    load = run.data.foot_force.values[:, :, 2].sum(axis=1).mean()
    assert load < 0.9 * WEIGHT


def test_servos_take_over_where_whole_body_control_fails(standing, monkeypatch):
    """Without a feedback the better of two runs counts, with one only its own."""
    stands, tried = track(Tracking(standing, cycles=1)), []
    module = sys.modules["drakebots.robots.legged.track"]

    def executed(problem, progress):
        name = type(problem.feedback).__name__
        tried.append((name, problem.time_limit))
        verdict, message = outcomes[name]
        return replace(stands, verdict=verdict, message=message)

    monkeypatch.setattr(module, "_executed", executed)
    fell = Verdict.FAILED, "fell at 2 s; 1 of 5 cycles"
    outcomes = {"WholeBody": fell, "Servos": (Verdict.SUCCESS, "5 of 5 cycles")}
    run = track(Tracking(standing, time_limit=60.0))
    assert run.ok
    assert run.message.startswith("5 of 5 cycles; by servos, since by whole-body")
    assert run.message.endswith("fell at 2 s")
    (_, whole), (_, rest) = tried
    assert whole == 60.0 and 0 < rest < 60.0
    assert not track(Tracking(standing, feedback=WholeBody())).ok and len(tried) == 3
    outcomes["Servos"] = Verdict.FAILED, "fell at 1 s"
    assert track(Tracking(standing)).message == fell[1] and len(tried) == 5
    outcomes["WholeBody"] = Verdict.INTERRUPTED, "interrupted"
    assert track(Tracking(standing)).message == "interrupted" and len(tried) == 6


@pytest.mark.long
def test_a_jump_onto_a_box_is_tracked_on_the_box():
    """A plan carries its terrain: its feet land on the box, and on flat ground it
    fails."""
    box = Step(0.25, 2.0, 0.1)
    jump = LocomotionProblem("mini_cheetah", Hop(0.12, forward=0.5), terrain=box)
    plan = plan_locomotion(jump)
    assert plan.ok, plan.message
    run = track(Tracking(plan))
    assert run.ok and run.metrics["end_error_m"] < 0.02
    assert terrain_of(run) == box
    feet, force = run.data.foot_position.values[-1], run.data.foot_force.values[-1]
    radius = plan.data.foot_position.values[0, :, 2]
    np.testing.assert_allclose(feet[:, 2] - radius, 0.1, atol=2e-3)
    weight = 9.81 * load("mini_cheetah").summary.mass
    assert force[:, 2].sum() == pytest.approx(weight, rel=0.05)
    assert not track(Tracking(plan, terrain=Flat())).ok
    with pytest.raises(InvalidInput, match=r"flat ground.*Step.*Sap"):
        track(Tracking(plan, ground=Hard()))


@pytest.mark.parametrize("ground", [Sap(), Hard()])
def test_legs_with_loops_stand_closed(tmp_path, ground):
    plan = standing_plan(load(loops_3d(tmp_path)), duration=0.1)
    run = track(Tracking(plan, cycles=1, ground=ground))
    assert run.ok and run.message == "1 of 1 cycles"
    assert run.data.loop_gap.values.max() < 1e-7
    assert np.ptp(run.data.base_position.values, axis=0).max() < 1e-3


def test_a_push_is_resisted(standing):
    """Pushed at 0.2 m/s, the body comes to rest less than a hand's breadth away;
    with no friction to hold it, it goes on."""
    run = track(Tracking(standing, cycles=2, push=0.2))
    assert run.ok
    assert 5e-3 < np.ptp(run.data.base_position.values[:, 1]) < 0.08
    assert abs(run.data.velocity.values[-1, 1]) < 0.05
    slides = track(Tracking(standing, cycles=1, push=0.2, friction=0.0))
    assert slides.data.velocity.values[-1, 1] > 0.1


@pytest.mark.long
def test_the_results_are_kept_and_drawn(standing, tmp_path):
    run = track(Tracking(standing, cycles=1))
    assert load_result(run.save(tmp_path / "run.nc")) == run
    with drawn_figures() as figures:
        assert plot(run, tmp_path / "run.png").stat().st_size > 10_000
    assert check_legends(figures[0]) == 3
    titles = {axes.get_title() for axes in figures[0].axes}
    assert {"path of the base, plan grey", "stride, plan grey", "inputs"} <= titles
    assert run.provenance["options"]["cycles"] == 1


def test_a_time_limit_keeps_what_was_reached(standing):
    run = track(Tracking(standing, time_limit=1e-6))
    assert run.verdict is Verdict.TIME_LIMIT
    assert run.metrics["cycles_upright"] == 0


def test_what_is_no_plan_is_refused(standing):
    with pytest.raises(InvalidInput, match="not a plan of a legged robot"):
        Tracking(track(Tracking(standing, cycles=1, time_limit=1e-6)))
    with pytest.raises(InvalidInput, match="ground"):
        Tracking(standing, ground="ice")
    with pytest.raises(InvalidInput, match="cycles"):
        Tracking(standing, cycles=0)


@pytest.mark.long
@pytest.mark.parametrize("ground", [Sap(), Hard()])
def test_a_planned_walk_is_walked(walk, ground):
    run = track(Tracking(walk, cycles=2, ground=ground))
    assert run.ok, run.message
    assert run.metrics["stride_share"] == pytest.approx(1.0, abs=0.05)
    assert run.metrics["tilt_max_deg"] < 10


@pytest.mark.long
def test_a_turn_ends_where_it_should(robot):
    plan = plan_locomotion(LocomotionProblem(robot, Goal(turn=0.4)))
    assert plan.ok, plan.message
    run = track(Tracking(plan, settle=0.3))
    assert run.ok and "from the plan's end" in run.message
    yaw = run.data.base_rpy.values[:, 2]
    assert yaw[-1] - yaw[0] == pytest.approx(0.4, abs=0.02)
    assert abs(run.metrics["yaw_drift_deg"]) < 1
    assert run.metrics["end_error_m"] < 0.01


@pytest.mark.long
def test_motions_in_a_row_are_walked_in_a_row():
    """On other contact the robot ends where the last of them does."""
    motion = Series([Walk(0.2), Goal(turn=0.5)])
    plan = plan_locomotion(LocomotionProblem("mini_cheetah", motion))
    run = track(Tracking(plan, settle=0.3))
    assert run.ok, run.message
    assert run.metrics["end_error_m"] < 0.01
    yaw = run.data.base_rpy.values[:, 2]
    assert yaw[-1] - yaw[0] == pytest.approx(0.5, abs=0.02)


@pytest.mark.long
def test_a_trot_corrects_a_push_that_servos_do_not(robot):
    """Two feet at a time cannot hold the body: the next steps must."""
    trot = LocomotionProblem(robot, Walk(forward=0.15, gait="alternating"))
    plan = plan_locomotion(trot)
    assert plan.ok, plan.message
    run, servos = (
        track(Tracking(plan, cycles=4, push=0.8, feedback=feedback))
        for feedback in (WholeBody(), Servos())
    )
    assert run.ok, run.message
    assert run.metrics["stride_share"] == pytest.approx(1.0, abs=0.15)
    assert run.metrics["tilt_max_deg"] < 4
    assert not servos.ok or servos.metrics["stride_share"] < 0.75


@pytest.mark.long
@pytest.mark.parametrize("friction", [0.01, 0.05, 0.2])
def test_a_walk_on_ice_goes_as_far_as_by_hard_contact(walk, friction):
    """With Drake's contact "lagged" it goes 0.2 to 1.5 strides less far, as friction is
    more than Coulomb's where its feet land."""
    icy = {"cycles": 2, "friction": friction, "feedback": Servos()}
    shares = [
        track(Tracking(walk, ground=ground, **icy)).metrics["stride_share"]
        for ground in (Sap(), Hard())
    ]
    assert shares[0] == pytest.approx(shares[1], abs=0.15)


@pytest.mark.long
def test_a_walk_on_ice_is_no_walk(walk):
    """Upright, with feet that slide: down a slope, much further than planned."""
    icy = {"friction": 0.01, "terrain": Slope(0.05), "feedback": Servos()}
    run = track(Tracking(walk, cycles=2, **icy))
    share = run.metrics["stride_share"]
    made = run.metrics["judged"]["stride missed [1]"]
    assert run.metrics["cycles_upright"] == 2
    assert made["is"] == pytest.approx(abs(1 - share)) and made["is"] > made["fails"]
    assert run.verdict is Verdict.FAILED
    said = f"did not walk: made {share:.0%} of the planned stride"
    assert run.message.startswith(said)


def test_a_fall_is_one_of_the_trunk_from_its_plan(standing):
    """Knocked over, it is tilted by more than 45 degrees, or down by half."""
    run = track(Tracking(standing, cycles=5, push=3.0, feedback=Servos()))
    assert run.verdict is Verdict.FAILED
    assert run.message.startswith("fell: ")
    tilt = run.metrics["judged"]["tilt [deg]"]["is"]
    base = run.data.base_position.values[:, 2]
    assert tilt > 45 or base[-1] < 0.6 * base[0]


@pytest.mark.long
def test_a_turn_that_is_cut_short_missed_nothing(robot):
    """Who had no time for the plan's end is not judged by it."""
    plan = plan_locomotion(LocomotionProblem(robot, Goal(turn=0.4)))
    cut = track(Tracking(plan, time_limit=1e-6))
    assert cut.verdict is Verdict.TIME_LIMIT
    assert not any(name.startswith("turn") for name in cut.metrics["judged"])
