"""The voxel commands, in process: files, JSON, bad input."""

from __future__ import annotations

import json

import pytest

from drakebots.cli import main
from drakebots.lattice.shape.io import save_lattice
from drakebots.lattice.shape.lattice import block
from drakebots.model.load import package_root
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
    argv = ["plan", "voxel", "--effector", "foot:x=5mm", "-o", str(out), "--json"]
    assert main(argv) == 0
    facts = last_json(capsys.readouterr().out)
    assert facts["actuator_mm"] == {"blue": 0, "yellow": 0, "red": 5, "green": 0}
    result = load_result(out)
    assert result.kind == "voxels.plan"
    moved = result.data.node_position.values[1] - result.data.node_position.values[0]
    # The tip of the front voxel has three times the arm of its attachment.
    assert abs(moved).max() == pytest.approx(15e-3)


def test_two_targets_at_once(capsys):
    argv = ["plan", "voxel", "--effector", "BL:x=3mm", "--effector", "BL:y=-4mm"]
    assert main([*argv, "--json"]) == 0
    facts = last_json(capsys.readouterr().out)
    assert facts["reached_mm"] == pytest.approx({"BL:x": 3, "BL:y": -4})


def test_what_cannot_be_reached_is_said(capsys):
    assert main(["plan", "voxel", "--effector", "BL:z=1mm"]) == 1
    assert "no actuator moves it" in capsys.readouterr().err
    assert main(["plan", "voxel", "--effector", "BL:x=9mm"]) == 1
    assert "stroke" in capsys.readouterr().err


def test_a_lattice_finds_its_actuator(lattice, capsys):
    argv = ["plan", str(lattice), "--effector", "1,3,4:x=5mm"]
    assert main([*argv, "--json"]) == 0
    found = last_json(capsys.readouterr().out)
    assert len(found["actuator_mm"]) == 1
    assert main([*argv, "--actuator", "2,3,1:z", "--json"]) == 0
    given = last_json(capsys.readouterr().out)
    assert abs(next(iter(given["actuator_mm"].values()))) == pytest.approx(5)


BAD = [
    (["plan", "voxel", "--effector", "nose:x=5mm"], "nose"),
    (["plan", "voxel", "--effector", "foot=5mm"], "AXIS"),
    (["plan", "voxel", "--effector", "foot:x=5kg"], "unit of length"),
    (["plan", "voxel", "--effector", "foot:x=much"], "no length"),
    (["plan", "voxel", "--effector", "9,9,9:x=5mm"], "no node"),
    (["plan", "voxel", "--effector", "foot:x=5mm", "--stroke", "-1mm"], "stroke"),
    (["simulate", "voxel", "--gait", "gallop"], "forward"),
    (["simulate", "voxel", "--gait", "none.csv"], "none.csv"),
    (["simulate", "voxel", "--stroke", "5inch"], "unit of length"),
    (["simulate", "voxel", "--stroke", "50mm"], "stroke"),
    (["simulate", "voxel", "--cycles", "0"], "cycles"),
    (["simulate", "voxel", "--time-step", "0.1"], "time step"),
    (["simulate", "voxel", "--frequency", "1"], "does not apply"),
    (["show", "none.json"], "none.json"),
    (["plan", "LATTICE", "--effector", "1,3,4:x=5mm", "--actuator", "2,3,1"], "AXIS"),
    (["plan", "LATTICE", "--effector", "1;3:x=5mm"], "no node"),
    (["plan", "PIECES", "--effector", "1,1,0:x=5mm"], "pieces"),
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


def test_the_robot_walks(tmp_path, capsys):
    out = tmp_path / "run.nc"
    argv = ["simulate", "voxel", "--gait", "forward", "--cycles", "1", "-o", str(out)]
    assert main([*argv, "--json"]) == 0
    facts = last_json(capsys.readouterr().out)
    assert "travel_mm_per_cycle" in facts
    assert load_result(out).data.sizes["time"] > 10
