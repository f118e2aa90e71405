"""The walking voxel robot in Drake: gait template, travel, tipping, friction."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import xarray as xr
from pydrake.geometry import Sphere

from drakebots import InvalidInput, UnknownName
from drakebots.core.run import Verdict
from drakebots.lattice.pom import Control, Gains
from drakebots.multibody import Slope, Step
from drakebots.results import load_result
from drakebots.robots.voxels import (
    Simulation,
    build,
    paper_gait,
    plot_walk,
    record_voxel,
    simulate,
)
from drakebots.robots.voxels.gait import find_gait, gait_motion
from drakebots.robots.voxels.model import MARKERS, Feet
from drakebots.robots.voxels.simulate import body_frame, travel
from drakebots.view import ROOT
from tests.helpers.scripts import is_picture

QUICK = {"cycles": 2, "pose_time": 0.5, "time_step": 2e-3}


@pytest.fixture(scope="module")
def forward():
    return simulate(Simulation(cycles=2, time_step=2e-3))


@pytest.fixture(scope="module")
def reverse():
    return simulate(Simulation("reverse", cycles=2, time_step=2e-3))


def test_built_plant():
    walk = build(Simulation())
    plant = walk.plant
    assert plant.num_velocities() == 33
    assert plant.num_constraints() == 5 + 4
    assert plant.num_force_elements() - 1 == 14
    assert len(walk.soles) == 6
    inspector = walk.robot.scene_graph.model_inspector()
    for key in walk.soles:
        assert isinstance(inspector.GetShape(key), Sphere)
        assert inspector.GetShape(key).radius() == pytest.approx(4e-3)


def test_feet_have_the_friction_that_was_asked_for():
    walk = build(Simulation(feet=Feet(0.7, 0.2)))
    inspector = walk.robot.scene_graph.model_inspector()
    for key, foot in walk.soles.items():
        properties = inspector.GetProximityProperties(key)
        mu = properties.GetProperty("material", "coulomb_friction").dynamic_friction()
        wanted = 0.7 if walk.robot.model.feet[foot].name[0] == "F" else 0.2
        assert 2 * mu * 1.0 / (mu + 1.0) == pytest.approx(wanted)


def test_masses_and_feet_that_were_asked_for():
    feet = Feet(heel_and_toe=0.03)
    walk = build(Simulation(front_mass=5e-3, feet=feet))
    total = walk.plant.CalcTotalMass(walk.plant.CreateDefaultContext())
    assert total == pytest.approx(61.828e-3 + 2 * 5e-3, abs=1e-6)
    assert len(walk.soles) == len(feet.spheres())
    offsets = [np.linalg.norm(foot.offset) for foot in feet.spheres()]
    assert sorted(offsets) == pytest.approx([0, 0, *[0.03] * 4])


def test_one_cycle_is_said_to_be_the_start():
    poses = paper_gait().poses[:2]
    options = {"pose_time": 0.1, "time_step": 2e-3}
    one = simulate(Simulation(gait=poses, cycles=1, **options))
    assert one.metrics["start_up_only"] and "start-up" in one.message
    two = simulate(Simulation(gait=poses, cycles=2, **options))
    assert not two.metrics["start_up_only"] and "start-up" not in two.message


@pytest.mark.long
def test_it_stands(forward):
    settled = forward.data.sel(time=slice(0, 0.3)).isel(time=-1)
    weight = 61.828e-3 * 9.81
    total = settled.foot_force.sum("foot").values
    assert total == pytest.approx([0, 0, weight], abs=0.02 * weight)
    assert float(abs(settled.base_rpy).max()) < 0.01
    assert float(settled.foot_force[..., 2].min()) >= 0


@pytest.mark.long
def test_it_stands_on_its_back_feet(forward):
    # The core's weight is over them: front feet steady it and steer.
    assert 0.03 < forward.metrics["front_load_share"] < 0.12


@pytest.mark.long
def test_markers_follow_the_planes_of_motion(forward):
    metrics = forward.metrics
    assert forward.verdict is Verdict.SUCCESS
    assert 0.97 < metrics["marker_slope_vs_pom"] < 0.99
    assert metrics["marker_slope_vs_pom"] == pytest.approx(0.978, abs=2e-3)
    assert metrics["marker_max_error_mm"] < 0.9
    # Tilted voxels sink; the linear model does not know.
    assert metrics["marker_max_sinking_mm"] == pytest.approx(1.77, abs=0.05)


@pytest.mark.long
def test_forward_and_reverse_have_opposite_signs(forward, reverse):
    there = forward.metrics["travel_mm_per_cycle"]
    back = reverse.metrics["travel_mm_per_cycle"]
    assert 1.0 < there < 3.0
    assert -6.0 < back < -1.0
    for result in (forward, reverse):
        assert abs(result.metrics["left_mm_per_cycle"]) < 0.5
        assert abs(result.metrics["turn_deg_per_cycle"]) < 0.5


@pytest.mark.long
def test_loops_stay_closed(forward):
    # SAP's gap goes with the step squared: 5 um at 2 ms, 0.4 um at 0.5 ms.
    assert forward.residuals["loop_gap [m]"] < 1e-5
    fine = simulate(Simulation(gait=paper_gait().poses[:2], cycles=1, time_step=5e-4))
    assert fine.residuals["loop_gap [m]"] < 1e-6


@pytest.mark.long
def test_actuators_reach_what_is_commanded(forward):
    data = forward.data
    assert list(data.actuator.values) == ["blue", "yellow", "red", "green"]
    error = abs(data.actuator_length - data.actuator_command)
    assert float(error.max()) < 3e-4
    # The frame FEM: 7.4 N at 5 mm without weight; two planes at once ask for more.
    assert 7.0 < forward.metrics["largest_actuator_force_N"] < 12.0
    assert float(data.actuator_command.min()) == pytest.approx(0.0762 - 0.01)


@pytest.mark.long
def test_dataset_is_labelled_and_stored(forward, tmp_path):
    data = forward.data
    assert list(data.marker.values) == list(MARKERS)
    assert data.node_position.shape[1:] == (46, 3)
    assert data.voxel_quaternion.shape[1:] == (10, 4)
    steps = np.diff(data.time.values)
    assert steps == pytest.approx(0.02)
    assert load_result(forward.save(tmp_path / "walk.nc")) == forward


@pytest.mark.long
def test_recording(forward):
    stage = record_voxel(forward)
    html = stage.html()
    assert 1e6 < len(html) < 10e6
    for path in ("actuators/rod/0", "actuators/sleeve/3", "contact/BL_heel"):
        assert stage.meshcat.HasPath(f"{ROOT}/{path}")
    with pytest.raises(InvalidInput, match="slow"):
        record_voxel(forward, slow=0.0)


@pytest.mark.long
def test_picture(forward, tmp_path):
    assert is_picture(plot_walk(forward, tmp_path / "walk.png"))
    with pytest.raises(InvalidInput, match=r"\.png"):
        plot_walk(forward, tmp_path / "walk.txt")


def test_point_feet_tip_over():
    result = simulate(Simulation(feet=Feet(points=True), **QUICK))
    assert result.verdict is Verdict.FAILED
    assert "tipped over" in result.message
    assert result.metrics["tipped_over"] is True
    assert result.data.sizes["foot"] == 4


@pytest.mark.long
def test_point_feet_stay_up_when_slow_but_get_nowhere():
    result = simulate(Simulation(feet=Feet(points=True), cycles=2, time_step=2e-3))
    assert result.verdict is Verdict.SUCCESS
    assert abs(result.metrics["travel_mm_per_cycle"]) < 0.3
    assert result.metrics["front_load_share"] < 0.04


def slide(slope: float) -> float:
    """How far the robot slides forward in 0.3 s down a slope [m], with mu 0.1."""
    walk = build(Simulation(feet=Feet(0.1, 0.1), time_step=2e-3))
    simulator = walk.simulator()
    context = walk.plant.GetMyMutableContextFromRoot(simulator.get_mutable_context())
    d = np.array([1.0, 1.0, 0.0]) / np.sqrt(2)
    start = walk.built.poses(context)[:, :3, 3].mean(axis=0)
    gravity = 9.81 * (slope * d - [0.0, 0.0, 1.0])
    walk.plant.mutable_gravity_field().set_gravity_vector(gravity)
    simulator.AdvanceTo(0.3)
    end = walk.built.poses(context)[:, :3, 3].mean(axis=0)
    return float((end - start) @ d)


@pytest.mark.long
def test_feet_slide_where_the_slope_is_steeper_than_their_friction():
    fallen = 0.5 * 9.81 * 0.3**2
    assert slide(0.14) == pytest.approx((0.14 - 0.1) * fallen, rel=0.1)
    assert abs(slide(0.08)) < 2e-3


@pytest.mark.long
def test_feet_slide_down_a_slope_and_the_robot_faces_it():
    """a = g (sin - mu cos) along the plane, down towards +x."""
    walk = build(Simulation(feet=Feet(0.1, 0.1), time_step=2e-3, terrain=Slope(0.14)))
    simulator = walk.simulator()
    context = walk.plant.GetMyMutableContextFromRoot(simulator.get_mutable_context())
    start = walk.built.poses(context)[:, :3, 3]
    ahead = start[8:].mean(axis=0) - start[:8].mean(axis=0)
    assert np.arctan2(ahead[1], ahead[0]) == pytest.approx(0, abs=1e-9)
    p = walk.robot.feet_positions(context)
    normal = np.array([np.sin(0.14), 0, np.cos(0.14)])
    assert p @ normal == pytest.approx(4e-3, abs=1e-5)
    simulator.AdvanceTo(0.3)
    moved = (walk.built.poses(context)[:, :3, 3] - start).mean(axis=0)
    down = np.array([np.cos(0.14), 0, -np.sin(0.14)])
    a = 9.81 * (np.sin(0.14) - 0.1 * np.cos(0.14))
    assert moved @ down == pytest.approx(a * 0.3**2 / 2, rel=0.1)


@pytest.mark.long
def test_a_step_that_it_does_not_reach_changes_nothing_but_its_heading(forward):
    far = replace(Simulation(cycles=2, time_step=2e-3), terrain=Step(1.0, 2.0, 0.01))
    found = simulate(far).metrics
    plain = forward.metrics["travel_mm_per_cycle"]
    assert found["travel_mm_per_cycle"] == pytest.approx(plain, rel=0.05)
    slope = forward.metrics["marker_slope_vs_pom"]
    assert found["marker_slope_vs_pom"] == pytest.approx(slope, rel=1e-3)


def test_gains_shrink_the_motion_of_each_actuator():
    gains = {"blue": 0.5, "yellow": 0.8, "red": 0.4, "green": 1.1}
    plain, geared = Simulation(), Simulation(gains=Gains(gains))
    for time in (0.7, 2.1, 5.5):
        wanted = plain.motion()(time) * list(gains.values())
        assert geared.motion()(time) == pytest.approx(wanted)


def test_a_gait_by_name_table_or_itself():
    named = Simulation("forward")
    assert Simulation(paper_gait()).poses == pytest.approx(named.poses)
    assert Simulation("reverse").poses == pytest.approx(named.poses[::-1])
    assert find_gait("backward", 2e-3).poses.max() == 2e-3
    table = Simulation([[1e-3, 0, 0, 0], [0, 0, 0, 0]], pose_time=0.5, cycles=3)
    assert table.cycle == 1.0
    assert table.duration == pytest.approx(3.3)


def test_motion_is_smooth_and_passes_the_poses():
    poses = np.array([[1e-3, 0.0], [0.0, -1e-3]])
    motion = gait_motion(poses, 0.5, 0.6, settle=0.2)
    assert motion(0.1) == pytest.approx([0, 0])
    for k in range(6):
        reached = 0.2 + (k + 1) * 0.5
        assert motion(reached - 1e-9) == pytest.approx(poses[k % 2])
        assert motion(reached - 0.19) == pytest.approx(poses[k % 2])
        assert motion(reached - 0.35) == pytest.approx(
            (poses[k % 2] + (poses[k % 2 - 1] if k else 0)) / 2
        )


@pytest.mark.long
def test_body_frame_has_no_part_of_rigid_motion(forward):
    nodes = forward.data.node_position.values[:3]
    p, R = body_frame(nodes)
    turned = nodes @ R[1] + [1.0, 2.0, 3.0]
    moved, _ = body_frame(np.stack([nodes[0], turned[0]]))
    assert moved[1] == pytest.approx(p[0] @ R[1] + [1.0, 2.0, 3.0])
    assert np.linalg.det(R) == pytest.approx(1.0)


@pytest.mark.parametrize(
    "options, word",
    [
        ({"cycles": 0}, "cycles"),
        ({"cycles": np.nan}, "cycles"),
        ({"cycles": 1.5}, "cycles"),
        ({"log_period": 2.0}, "log_period"),
        ({"pose_time": 0.0}, "pose_time"),
        ({"time_step": 5e-3}, "blow up"),
        ({"time_step": np.nan}, "time_step"),
        ({"stroke": 0.03}, "stroke"),
        ({"feet": {}}, "feet"),
        ({"ramp": 0.0}, "ramp"),
        ({"settle": -1.0}, "settle"),
        ({"gait": [[0.0, 0.0]]}, "poses"),
        ({"gait": [[9e-3, 0, 0, 0]]}, "blue"),
    ],
)
def test_bad_input(options, word):
    with pytest.raises(InvalidInput, match=word) as caught:
        Simulation(**options)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("period", [0.02, 0.4, 0.7])
def test_travel_does_not_depend_on_the_samples(period):
    """At constant speed, with cycles that are no multiples of the period."""
    time = period * np.arange(int(9 / period) + 1)
    base = np.outer(time, [0.01, 0.01, 0.0])
    at = {"base_position": base, "base_rpy": np.outer(time, [0.0, 0.0, 1e-9])}
    data = xr.Dataset({k: (("time", k), v) for k, v in at.items()}, {"time": time})
    found = travel(data, 0.3, 4.0)
    assert found["travel_mm_of_each_cycle"] == pytest.approx([40 * 2**0.5] * 2)
    assert found["turn_deg_per_cycle"] == pytest.approx(np.degrees(4e-9))


def test_bad_feet():
    with pytest.raises(InvalidInput, match="front"):
        Feet(front=-0.1)


def test_unknown_gait():
    with pytest.raises(UnknownName, match="forward"):
        Simulation("forwards")


def test_time_limit_keeps_what_was_reached():
    result = simulate(Simulation(time_limit=0.3))
    assert result.verdict is Verdict.TIME_LIMIT
    assert result.data.sizes["time"] > 1


@pytest.mark.long
def test_control_is_between_two_voxels(forward):
    assert forward.provenance["options"]["time_step"] == 2e-3
    assert Control((2, 1, 1), "z").other == (2, 1, 3)


@pytest.mark.slow
def test_travel_is_converged_in_the_step():
    # 1.71 mm at 1 ms, 1.68 mm at 0.5 ms, every cycle alike.
    metrics = [simulate(Simulation(time_step=dt)).metrics for dt in (1e-3, 5e-4)]
    coarse, fine = (m["travel_mm_per_cycle"] for m in metrics)
    assert coarse / fine == pytest.approx(1.0, abs=0.05)
    assert max(m["travel_spread_mm"] for m in metrics) < 0.05
