"""The voxel commands, in process: files, JSON, bad input."""

from __future__ import annotations

import json

import numpy as np
import pytest

from drakebots.cli import main
from drakebots.lattice.pom import Control, PlanesOfMotion
from drakebots.lattice.shape import block, load_lattice, save_lattice
from drakebots.model import package_root
from drakebots.results import load_result


def last_json(text):
    return json.loads(text.strip().splitlines()[-1])


@pytest.fixture
def lattice(tmp_path):
    return save_lattice(tmp_path / "block.json", block(2, 2, 2))


def test_a_lattice_and_its_mechanisms(lattice, capsys):
    assert main(["show", str(lattice), "--mechanisms", "--json"]) == 0
    facts = last_json(capsys.readouterr().out)
    assert (facts["zero_modes"], facts["rigid"]) == (12, 6)
    assert facts["missed_by_planes_of_motion"] == 0
    robot = package_root() / "voxel" / "lattice.json"
    assert main(["show", str(robot), "--mechanisms", "--json"]) == 0
    facts = last_json(capsys.readouterr().out)
    assert facts["zero_modes"] == 18


def test_the_robots_foot(tmp_path, capsys):
    out = tmp_path / "plan.nc"
    argv = ["plan", "voxel", "--target", "foot:x=5mm", "-o", str(out), "--json"]
    assert main(argv) == 0
    facts = last_json(capsys.readouterr().out)
    assert facts["actuator_mm"] == {"blue": 0, "yellow": 0, "red": 5, "green": 0}
    result = load_result(out)
    assert result.kind == "voxels.plan"
    moved = result.data.node_position.values[1] - result.data.node_position.values[0]
    # The tip of the front voxel has three times the arm of its attachment: 15 mm by
    # planes of motion, 16.8 mm by the frame.
    assert abs(moved).max() == pytest.approx(16.8e-3, abs=1e-4)


@pytest.mark.slow
def test_a_searched_gait_is_walked(tmp_path, capsys):
    """What a search found is what `simulate` walks, and no other result is."""
    out, run = tmp_path / "gait.nc", tmp_path / "run.nc"
    walk = ["--walks", "2", "--walk", "cycles=1,time_step=2e-3", "--seed", "3"]
    assert main(["plan", "voxel", "--search", *walk, "-o", str(out)]) == 0
    found = load_result(out)
    assert found.kind == "voxels.gait_search" and found.metrics["walks"] == 2
    again = ["simulate", "voxel", "--cycles", "1", "--time-step", "2ms"]
    assert main([*again, "--gait", str(out), "-o", str(run)]) == 0
    travel = load_result(run).metrics["travel_mm_per_cycle"]
    assert travel == pytest.approx(max(found.metrics["travel_mm_of_each_walk"]))
    capsys.readouterr()
    assert main([*again, "--gait", str(run)]) == 2
    assert "no search of a gait" in capsys.readouterr().err


def test_two_targets_at_once(capsys):
    argv = ["plan", "voxel", "--target", "BL:x=3mm", "--target", "BL:y=-4mm"]
    assert main([*argv, "--json"]) == 0
    facts = last_json(capsys.readouterr().out)
    assert facts["reached_mm"] == pytest.approx({"BL:x": 3, "BL:y": -4}, rel=0.01)


def test_what_cannot_be_reached_is_said(capsys):
    assert main(["plan", "voxel", "--target", "BL:z=1mm"]) == 1
    assert "no actuator moves it" in capsys.readouterr().err
    assert main(["plan", "voxel", "--target", "BL:x=9mm"]) == 1
    assert "stroke" in capsys.readouterr().err


def test_a_lattice_finds_its_actuator(lattice, capsys):
    argv = ["plan", str(lattice), "--target", "1,3,4:x=5mm"]
    assert main([*argv, "--json"]) == 0
    found = last_json(capsys.readouterr().out)
    assert len(found["actuator_mm"]) == 1
    assert main([*argv, "--actuator", "2,3,1:z", "--json"]) == 0
    given = last_json(capsys.readouterr().out)
    assert abs(next(iter(given["actuator_mm"].values()))) == pytest.approx(5)


BAD = [
    (["plan", "voxel", "--target", "nose:x=5mm"], "nose"),
    (["plan", "voxel", "--target", "foot=5mm"], "AXIS"),
    (["plan", "voxel", "--target", "foot:x=5kg"], "is no unit"),
    (["plan", "voxel", "--target", "foot:x=much"], "no number"),
    (["plan", "voxel", "--target", "9,9,9:x=5mm"], "no node"),
    (["plan", "voxel", "--target", "foot:x=5mm", "--stroke", "-1mm"], "stroke"),
    (["simulate", "voxel", "--gait", "gallop"], "forward"),
    (["simulate", "voxel", "--gait", "none.csv"], "none.csv"),
    (["simulate", "voxel", "--stroke", "5inch"], "is no unit"),
    (["simulate", "voxel", "--stroke", "50mm"], "stroke"),
    (["simulate", "voxel", "--cycles", "0"], "cycles"),
    (["simulate", "voxel", "--time-step", "0.1"], "time step"),
    (["simulate", "voxel", "--frequency", "1"], "does not apply"),
    (["show", "none.json"], "none.json"),
    (["plan", "LATTICE", "--target", "1,3,4:x=5mm", "--actuator", "2,3,1"], "AXIS"),
    (["plan", "LATTICE", "--target", "1;3:x=5mm"], "half pitches"),
    (["plan", "PIECES", "--target", "1,1,0:x=5mm"], "pieces"),
]


@pytest.mark.parametrize(("argv", "words"), BAD, ids=lambda x: " ".join(x)[:50])
def test_bad_input_is_one_line_and_exit_2(argv, words, lattice, tmp_path, capsys):
    pieces = tmp_path / "pieces.json"
    pieces.write_text('{"voxels": [[0, 0, 0], [5, 5, 5]]}')
    named = {"LATTICE": str(lattice), "PIECES": str(pieces)}
    before = set(tmp_path.iterdir())
    assert main([named.get(a, a) for a in argv]) == 2
    err = capsys.readouterr().err
    assert err.count("\n") == 1
    assert words in err
    assert set(tmp_path.iterdir()) == before


@pytest.mark.long
def test_the_robot_walks(tmp_path, capsys):
    out = tmp_path / "run.nc"
    argv = ["simulate", "voxel", "--gait", "forward", "--cycles", "1", "-o", str(out)]
    assert main([*argv, "--json"]) == 0
    facts = last_json(capsys.readouterr().out)
    assert "travel_mm_per_cycle" in facts
    assert load_result(out).data.sizes["time"] > 10


def measurements(lattice_file, gains):
    """A recording of two actuators and three markers in mm, as text."""
    lattice = load_lattice(lattice_file).lattice
    controls = [Control((2, 1, 1), "z"), Control((1, 2, 1), "z")]
    nodes = [(1, 3, 4), (1, 1, 4), (3, 1, 4)]
    u = np.random.default_rng(0).uniform(-5e-3, 5e-3, (40, 2))
    moved = PlanesOfMotion(lattice, controls, nodes).positions(u * gains)
    heads = ["actuator 2 1 1 z [mm]", "actuator 1 2 1 z [mm]"]
    heads += [f"marker {x} {y} {z} {a} [mm]" for x, y, z in nodes for a in "xy"]
    rows = 1e3 * np.hstack([u, moved[..., :2].reshape(len(u), -1)])
    return "\n".join(
        [",".join(heads), *(",".join(map(repr, r)) for r in rows.tolist())]
    )


def test_calibration_finds_the_gains(lattice, tmp_path, capsys):
    table, out = tmp_path / "walk.csv", tmp_path / "gains.json"
    table.write_text(measurements(lattice, [0.9, 0.7]))
    assert main(["calibrate", str(lattice), str(table), "-o", str(out), "--json"]) == 0
    facts = last_json(capsys.readouterr().out)
    assert facts == json.loads(out.read_text())
    assert facts["gains"] == pytest.approx({"(2, 1, 1) z": 0.9, "(1, 2, 1) z": 0.7})
    assert facts["residual_m"] < 1e-9 < facts["uncalibrated_m"]


BAD_MEASUREMENTS = {
    "actuator 2 1 1 z [mm],marker 1 3 4 x [mm]\n1,2\n": "no column for y",
    "actuator 2 1 1 z [mm],marker 1 3 4 q\n1,2\n": "marker X Y Z AXIS",
    "actuator 2 1 1 z,actuator 2 1 1 z\n1,2\n": "appears twice",
    "actuator 2 1 1 z [kg]\n1\n": "unit of length",
    "actuator 2 1 1 z\n1,2\n": "line 2: 2 values for 1 columns",
    "actuator 2 1 1 z\n": "lines of numbers",
    "actuator 2 1 1 z\nx\n": "must be a finite number",
    "marker 1 3 4 x,marker 1 3 4 y\n1,2\n": "at least one actuator",
    "actuator 2 1 1 z,marker 1 3 4 x,marker 1 3 4 y\n1,1,2\n": "two markers",
}


@pytest.mark.parametrize("text", BAD_MEASUREMENTS)
def test_bad_measurements_are_one_line_and_exit_2(text, lattice, tmp_path, capsys):
    (tmp_path / "walk.csv").write_text(text)
    argv = ["calibrate", str(lattice), str(tmp_path / "walk.csv")]
    assert main([*argv, "-o", str(tmp_path / "gains.json")]) == 2
    err = capsys.readouterr().err
    assert err.count("\n") == 1 and BAD_MEASUREMENTS[text] in err
    assert not (tmp_path / "gains.json").exists()


def test_measurements_of_another_lattice(lattice, tmp_path, capsys):
    table = tmp_path / "walk.csv"
    table.write_text(measurements(lattice, [1, 1]).replace("2 1 1 z", "8 1 1 z"))
    assert main(["calibrate", str(lattice), str(table)]) == 2
    assert "no node at (8, 1, 1)" in capsys.readouterr().err
