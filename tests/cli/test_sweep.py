"""`drakebots sweep`, in process: words, options, files, exit codes."""

from __future__ import annotations

import json
import re

import pytest

from drakebots.cli import main
from drakebots.cli.sweep import find_problem
from drakebots.results import load_result
from tests.helpers.waiting import runs


@pytest.mark.long
def test_sweep_of_a_registered_robot(tmp_path, capsys):
    out, log = tmp_path / "new" / "out", tmp_path / "log"
    words = ["sweep", "waiting.simulate", "--root", "1,2,3", "--mode", "raise"]
    words += ["--log", str(log), "--other", "0.5,1", "--workers", "1", "-o", str(out)]
    assert main([*words, "--json"]) == 1
    said = capsys.readouterr()
    facts = json.loads(said.out.splitlines()[-1])
    assert (facts["cases"], facts["succeeded"], facts["computed"]) == (6, 4, 6)
    assert "2 of 6 cases are no success; root=2, other=0.5: two is" in said.err
    table = load_result(out / "sweep.nc")
    assert table.data.square.sel(root=3, other=0.5) == 9.5
    assert (out / "sweep.png").read_bytes().startswith(b"\x89PNG")
    # Without the values that fail, nothing is left to compute.
    words[3] = "1,3"
    before = len(runs(log))
    assert main([*words, "--metrics", "square"]) == 0
    assert len(runs(log)) == before
    assert "10" in capsys.readouterr().out


@pytest.mark.long
def test_words_that_name_a_problem():
    task, base = find_problem("hamr.plan")
    assert (task.problem, base) == ("drakebots.robots.hamr:GaitProblem", {})
    task, base = find_problem("skinned-leg.simulate")
    assert (task.problem, base) == (
        "drakebots.skin:SkinSimulation",
        {"model": "skinned-leg"},
    )
    task, base = find_problem("examples/my_robot.urdf.simulate")
    assert task.problem == "drakebots.robots.legged:Simulation"
    assert base == {"model": "examples/my_robot.urdf"}
    task, base = find_problem("hamr:10hz_card.track")
    assert task.problem == "drakebots.robots.hamr:Tracking"
    assert base["plan"].kind == "hamr.plan"


def test_options_are_the_fields(capsys):
    with pytest.raises(SystemExit):
        main(["sweep", "hamr.simulate", "--help"])
    text = capsys.readouterr().out
    for word in (
        "--frequency",
        "--lift-voltage",
        "--surface",
        "--workers",
        "--scheduler",
    ):
        assert word in text
    assert "--phases" not in text


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["hamr", "--seed", "1,2"], "name a robot and what it does, e.g. hamr.plan"),
        (["hamm.plan", "--seed", "1,2"], "hamm"),
        (["voxel.track", "--seed", "1,2"], "voxel"),
        (["hamr.simulate", "--frequency", "2"], "give a field several values"),
        (["--json", "hamr.simulate", "--frequency", "2"], "give a field several"),
        (["--json", "hamr.simulate"], "give a field several values"),
        (
            ["hamr.simulate", "--frequency", "2,fast"],
            "--frequency: 'fast' is no number",
        ),
        (
            ["hamr.simulate", "--cycles", "0,1"],
            "cycles must be a whole number",
        ),
        (["hamr.simulate", "--frequncy", "1,2"], "did you mean --frequency"),
        (["voxel.plan", "--stroke", "1,2"], "sweep it from Python"),
    ],
)
def test_bad_input(tmp_path, capsys, words, said):
    out = tmp_path / "out"
    assert main(["sweep", *words, "-o", str(out)]) == 2
    error = capsys.readouterr().err
    assert len(error.splitlines()) == 1
    assert re.search(said, error), error
    assert not list(tmp_path.rglob("*.nc"))
