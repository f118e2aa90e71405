"""The gecko's commands, in process: files, JSON, bad input."""

from __future__ import annotations

import json

import numpy as np
import pytest

from drakebots.cli import main
from drakebots.results import load_result


def last_json(text):
    return json.loads(text.strip().splitlines()[-1])


def test_the_course_of_fig_12(tmp_path, capsys):
    out = tmp_path / "run.nc"
    course = "65cm,0 65cm,65cm 0,0.65 0,1.1m"
    argv = ["simulate", "gecko", "--engine", "PoseStep", "--targets", course]
    assert main([*argv, "--epsilon", "10cm", "-o", str(out), "--json"]) == 0
    facts = last_json(capsys.readouterr().out)
    assert facts["targets_reached"] == 4
    assert 30 < facts["half_cycles"] < 60
    assert facts["final_distance_cm"] < 10
    data = load_result(out).data
    assert data.sizes["time"] == facts["half_cycles"] + 1
    assert np.allclose(data.target.values[2], [0, 0.65])
    assert main(["report", str(out), "--csv", str(tmp_path / "run.csv")]) == 0


def test_around_an_obstacle_and_to_a_heading(capsys):
    wall = "40cm,-30cm 50cm,-30cm 0.5,0.3 0.4,0.3"
    argv = ["simulate", "gecko", "--targets", "1,0", "--heading", "0"]
    assert main([*argv, "--obstacle", wall, "--json"]) == 0
    facts = last_json(capsys.readouterr().out)
    assert facts["targets_reached"] == 1
    assert facts["path_cm"] > 120
    argv = ["simulate", "gecko", "--targets", "-60cm,30cm", "--heading", "180deg"]
    assert main([*argv, "--final-heading", "180deg", "--json"]) == 0
    facts = last_json(capsys.readouterr().out)
    assert abs(facts["final_heading_error_deg"]) < 15
    assert facts["final_distance_cm"] < 5


def test_the_velocity_space(tmp_path, capsys):
    out = tmp_path / "space.nc"
    argv = [
        "plan",
        "gecko",
        "--q1",
        "50deg,70deg,90deg",
        "--order",
        "1",
    ]
    assert main([*argv, "-o", str(out), "--json"]) == 0
    facts = last_json(capsys.readouterr().out)
    assert facts["order"] == 1
    result = load_result(out)
    assert result.kind == "gecko.velocity_space"
    assert np.degrees(result.data.motion.values[0, 0, 0]) == pytest.approx(
        22.94, abs=0.01
    )


BAD = [
    (["simulate", "gecko", "--engine", "lego"], "choose one of: Drake, PoseStep"),
    (["simulate", "gecko", "--targets", "1,2,3"], "2 values"),
    (["simulate", "gecko", "--targets", "nan,0"], "not finite"),
    (["simulate", "gecko", "--targets", "65s,0"], "'s' is no unit"),
    (["simulate", "gecko", "--epsilon", "10deg"], "'deg' is no unit"),
    (["simulate", "gecko", "--targets", ""], "targets"),
    (["simulate", "gecko", "--epsilon", "0"], "epsilon"),
    (["simulate", "gecko", "--start", "1,2 3,4"], "--start"),
    (["simulate", "gecko", "--motion", "magic"], "table 3"),
    (["simulate", "gecko", "--rule", "Published:sum=half"], "corrected"),
    (["simulate", "gecko", "--rule", "Published:horizon=0"], "horizon"),
    (["simulate", "gecko", "--engine", "Drake:incline=200deg"], "incline"),
    (["simulate", "gecko", "--engine", "Drake:pressure=perhaps"], "true or false"),
    (["simulate", "gecko", "--size", "tiny"], "small"),
    (["simulate", "gecko", "--heading", "nan"], "heading"),
    (["simulate", "gecko", "--half-cycles", "0"], "half_cycles"),
    (["simulate", "gecko", "--final-heading", "90deg"], "one target"),
    (["simulate", "gecko", "--gait", "trot"], "--gait does not apply"),
    (
        [
            "simulate",
            "gecko",
            "--targets",
            ".45,0",
            "--obstacle",
            ".4,-.05 .5,-.05 .45,.09",
        ],
        "obstacle 0",
    ),
    (["simulate", "gecko", "--obstacle", "0,0 1,1"], "obstacle 0"),
    (["plan", "gecko", "--q1", "1.5,0.9"], "increase"),
    (["plan", "gecko", "--q1", "a"], "no number"),
    (["plan", "gecko", "--q2", "1,2"], "-1..1"),
    (["plan", "gecko", "--q1", "0,0.9"], "0..180"),
    (["plan", "gecko", "--order", "9"], "values"),
]


@pytest.mark.parametrize(("argv", "words"), BAD, ids=lambda x: " ".join(x)[:50])
def test_bad_input_is_one_line_and_exit_2(argv, words, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    assert main([*argv, "-o", "out.nc"]) == 2
    err = capsys.readouterr().err
    assert err.count("\n") == 1
    assert words in err
    assert list(tmp_path.iterdir()) == []


def test_a_course_too_long_fails_and_keeps_its_track(tmp_path, capsys):
    out = tmp_path / "cut.nc"
    assert main(["simulate", "gecko", "--half-cycles", "9", "-o", str(out)]) == 1
    assert "target 0 was not reached" in capsys.readouterr().err
    result = load_result(out)
    assert result.verdict == "failed"
    assert result.data.sizes["time"] == 10
