"""The live parts of all robots: driven by a script, and by it again."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from drakebots import load_result
from drakebots.cli import main
from drakebots.core.errors import InvalidInput
from drakebots.lattice.pom import Control
from drakebots.lattice.shape import LatticeSpec, block
from drakebots.robots import gecko, hamr, robots, voxels
from tests.helpers.live_runs import scripted


@pytest.mark.parametrize(
    ("words", "text"),
    [
        (["voxel"], "0.1 blue 3; 0.2 red -4"),
        (["examples/lattice.json"], "0.1 restart 1"),
        (["gecko", "--duration", "4"], "0.1 target x -0.3"),
        (["hamr", "--duration", "20ms"], "0.005 frequency 20; 0.01 swing 30"),
        (["minitaur", "--joints", "servos", "--duration", "0.1"], "0.05 FL_back -0.7"),
        (["minitaur", "--joints", "passive", "--duration", "0.1"], "0.05 restart 1"),
        pytest.param(
            ["skinned-leg", "--duration", "60ms"],
            "0.02 knee 0.2; 0.04 swing 0.5",
            marks=pytest.mark.long,
        ),
    ],
)
def test_a_script_and_its_replay(words, text, tmp_path):
    script = scripted(tmp_path, text)
    words, paths = ["live", *words, "--headless"], ["a.nc", "b.nc"]
    first, second = (str(tmp_path / path) for path in paths)
    assert main([*words, "--script", str(script), "-o", first]) == 0
    assert main([*words, "--replay", first, "-o", second]) == 0
    run, again = load_result(first), load_result(second)
    assert len(run.data.command) == len(text.split(";"))
    assert run.data.equals(again.data)


def test_every_robot_has_a_live_part():
    ours = ("any", "hamr", "gecko", "voxel", "lattice", "skinned")
    assert all(robots()[name].live is not None for name in ours)


def test_legs_go_on_where_they_are_when_the_frequency_changes(tmp_path):
    """The voltages of HAMR's gait have no jump, and then their new slope."""
    part = hamr.Gait(hamr.Drive(headless=True, duration=1.0))
    part.panel = type("Panel", (), {"values": {s.name: s.value for s in part.controls}})
    part.advance(0.003)
    source, time = part._source, 1.003
    source.start = -1e3  # [ms]: its amplitudes have grown
    before = source.waveform.voltages(time)
    part._change("frequency", 37.0)
    assert source.waveform.voltages(time) == pytest.approx(before, abs=1e-9)
    assert source.waveform.voltages(time + 1 / 37) == pytest.approx(before, abs=1e-9)
    part._change("lift", 0.0)
    assert source.waveform.lift == 0.0


@pytest.mark.long
def test_the_gecko_follows_a_target_that_moves(tmp_path):
    script = scripted(tmp_path, "10 target x -0.3; 10 target y 0.5")
    drive = gecko.Drive(headless=True, duration=60.0, script=script)
    run = gecko.drive(drive)
    assert run.metrics["final_distance_cm"] < run.metrics["epsilon_cm"]
    assert run.data.target.values[-1] == pytest.approx([-0.3, 0.5])
    near = scripted(tmp_path, "0 obstacle x 0; 0 obstacle y 0.1; 0 obstacle size 0.4")
    stuck = gecko.drive(replace(drive, script=near, duration=2.0))
    assert "obstacle" in stuck.metrics["blocked"]
    assert stuck.metrics["half_cycles"] == 0


def test_an_obstacle_that_blocks_is_seen(tmp_path):
    """Where there is no course, target and obstacle are where they are."""
    near = scripted(tmp_path, "0 obstacle x 0; 0 obstacle y 0.1; 0 obstacle size 0.4")
    run = gecko.drive(gecko.Drive(headless=True, duration=0.1, script=near))
    assert run.metrics["blocked"] and "waypoint" not in run.data
    assert run.data.obstacle.values.mean(axis=0) == pytest.approx([0, 0.1])
    assert np.ptp(run.data.obstacle.values, axis=0) == pytest.approx([0.4, 0.4])
    assert run.data.target.values == pytest.approx(np.array([[0.3, 0.3]]))


def test_a_half_cycle_that_has_not_ended_does_not_count():
    run = gecko.drive(gecko.Drive(headless=True, duration=1.0))
    assert run.metrics["half_cycles"] == 0 and run.data.time.values == [0.0]
    front = run.data.marker_position.sel(marker="front").values[-1]
    left = 100 * np.linalg.norm(front - run.data.target.values[-1])
    assert run.metrics["final_distance_cm"] == pytest.approx(left)


def test_the_planes_of_motion_follow_the_sliders(tmp_path):
    """A lower node of an actuator moves by what its slider says."""
    script = scripted(tmp_path, "0.1 blue 3")
    run = voxels.drive(voxels.Drive(headless=True, script=script))
    moved = np.diff(run.data.node_position.values, axis=0)
    assert np.abs(moved[..., 2]).max() == pytest.approx(3e-3)
    assert run.metrics["actuator_mm"]["blue"] == pytest.approx(3.0)
    assert 0 < run.metrics["off_the_frame_mm"] < 3


def test_an_actuator_that_ends_outside_the_lattice_is_refused():
    spec = LatticeSpec(block(2, 1, 1), path=Path("examples/lattice.json"))
    outside = (Control((3, 1, 2), "x"),)
    live = voxels.Drive(headless=True, duration=0.1, lattice=spec, actuators=outside)
    with pytest.raises(InvalidInput, match="no node at \\(5, 1, 2\\)"):
        voxels.drive(live)


def test_the_walking_robot_takes_no_other_actuators():
    with pytest.raises(InvalidInput, match="its own"):
        voxels.Drive(headless=True, duration=0.1, actuators=[Control((2, 1, 1), "z")])
