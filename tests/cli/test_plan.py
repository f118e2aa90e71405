"""The commands plan, track and export: what they write and refuse."""

from __future__ import annotations

import json

import numpy as np
import pytest

from drakebots.cli import main
from drakebots.cli import plan as cli_plan
from drakebots.core.errors import InvalidInput
from drakebots.results import load_result
from drakebots.robots import hamr
from drakebots.robots.hamr import GaitProblem, GaitWeights, WarmStart
from drakebots.robots.hamr.plan import JumpWeights
from drakebots.trajopt.locomotion import (
    Goal,
    Hop,
    LocomotionWeights,
    Series,
    Walk,
    WayPoint,
)
from tests.helpers.scripts import is_picture

pytestmark = pytest.mark.long

WALKER = """<robot name="walker"><link name="trunk"><inertial><mass value="1"/>
<inertia ixx="0.01" iyy="0.01" izz="0.01" ixy="0" ixz="0" iyz="0"/></inertial></link>
<link name="leg"><inertial><mass value="0.1"/><inertia ixx="0.001" iyy="0.001"
izz="0.001" ixy="0" ixz="0" iyz="0"/></inertial><collision><origin xyz="0 0 -0.2"/>
<geometry><sphere radius="0.01"/></geometry></collision></link>
<joint name="hip" type="revolute"><parent link="trunk"/><child link="leg"/>
<axis xyz="0 1 0"/><limit lower="-1" upper="1" effort="5" velocity="9"/></joint>
</robot>"""


@pytest.fixture(scope="module")
def plan(tmp_path_factory):
    """A coarse trot, planned through the command line."""
    folder = tmp_path_factory.mktemp("plan")
    path = folder / "plan.nc"
    argv = ["plan", "hamr", "--knots", "13", "-o", str(path), "--json"]
    extra = ["--convergence", str(folder / "c.png"), "--html", str(folder / "p.html")]
    assert main([*argv, *extra, "--plot", str(folder / "p.png")]) == 0
    assert is_picture(folder / "c.png") and is_picture(folder / "p.png")
    assert "</html>" in (folder / "p.html").read_text()
    return path


def test_a_plan_is_a_result(plan):
    result = load_result(plan)
    assert result.kind == "hamr.plan" and result.ok
    assert result.metrics["stride_mm"] > 9
    assert result.metrics["variables"] == 1420


def test_track_executes_a_plan(plan, tmp_path, capsys):
    path = tmp_path / "run.nc"
    argv = ["track", str(plan), "--cycles", "1", "-o", str(path), "--json"]
    assert main(argv) == 0
    facts = json.loads(capsys.readouterr().out.strip().splitlines()[-1])
    assert facts["cycles"] == 1
    assert load_result(path).data.leg_planned.shape[1:] == (4, 3)


def test_export_writes_waveforms(plan, tmp_path):
    path = tmp_path / "v.csv"
    assert main(["export", str(plan), "--voltages", str(path)]) == 0
    assert len(path.read_text().splitlines()) == 251


@pytest.fixture
def walker(tmp_path):
    path = tmp_path / "walker.urdf"
    path.write_text(WALKER)
    return path


@pytest.mark.parametrize(
    ("argv", "words"),
    [
        (["plan", "hamr", "--gait", "gallop"], "trot"),
        (["plan", "hamr", "--surface", "ice"], "card"),
        (["plan", "hamr", "--forward", "0.3"], "--forward does not apply"),
        (["plan", "hamr", "--jump", "--frequency", "10"], "--frequency does not apply"),
        (["plan", "hamr", "--knots", "2"], "knots"),
        (["plan", "hamr", "--clearance", "3"], "clearance"),
        (["plan", "hamr", "--clearance", "high"], "--clearance"),
        (["plan", "hamr", "--tilt", "0"], "tilt"),
        (["plan", "hamr", "--weights", "rates=-1"], "rates"),
        (["plan", "hamr", "--start", "phases=FL"], "--start phases"),
        (["plan", "hamr", "--start", "phases=XL=0.5"], "FL"),
        (["plan", "hamr", "--weights", "{slack: [1, x]}"], "slack"),
        (["plan", "hamr", "--weights", "{slack: [0]}"], "slack"),
        (["plan", "hamr", "--jump", "--start", "seed=2"], "--start does not apply"),
        (["plan", "hamr", "--jump", "--clearance", "1mm"], "does not apply"),
        (["plan", "hamr", "-o", "/nowhere/plan.nc"], "no folder"),
        (["plan", "hamr", "--resume", "none.npz"], "no such checkpoint"),
        (["plan", "hamr", "--start", "run=none.nc"], "none.nc"),
        (["plan", "WALKER", "--feet", "paw", "--forward", "0.3"], "paw"),
        (["plan", "WALKER", "--forward", "0.3", "--jump"], "--jump does not apply"),
        (["plan", "WALKER", "--feet", "leg"], "--forward"),
        (["plan", "WALKER", "--feet", "leg", "--forward", "1", "--hop", "1"], "one of"),
        (["plan", "WALKER", "--feet", "leg", "--forward", "nan"], "forward"),
        (["plan", "WALKER", "--feet", "leg", "--hop", "-1"], "height must be > 0 m"),
        (["plan", "WALKER", "--motion", "Hop", "--periodic"], "--motion, which says"),
        (["plan", "WALKER", "--motion", "Jump"], "Series, Walk"),
        (["track", "none.nc"], "none.nc"),
        (["export", "none.nc", "--voltages", "v.csv"], "none.nc"),
    ],
)
def test_bad_input_is_one_line_and_exit_2(argv, words, walker, capsys, tmp_path):
    argv = [str(walker) if a == "WALKER" else a for a in argv]
    before = set(tmp_path.iterdir())
    assert main(argv) == 2
    err = capsys.readouterr().err.strip()
    assert len(err.splitlines()) == 1
    assert words in err
    assert set(tmp_path.iterdir()) == before


@pytest.mark.parametrize(
    ("words", "fields"),
    [
        (["--forward", "30cm"], {"motion": Walk(0.3)}),
        (["--forward", "0.3", "--from-rest"], {"motion": Goal(0.3)}),
        (["--hop", "0.1"], {"motion": Hop(0.1)}),
        (["--hop", "0.1", "--periodic"], {"motion": Hop(0.1, periodic=True)}),
        (["--turn", "30deg"], {"motion": Goal(turn=np.deg2rad(30))}),
        (["--turn", "-0.5"], {"motion": Goal(turn=-0.5)}),
        (["--goal", "0.3,-5cm,90deg"], {"motion": Goal(0.3, -0.05, np.pi / 2)}),
        (["--goal", "0.3,0"], {"motion": Goal(0.3)}),
        (
            ["--motion", "{Series: {motions: [{Walk: {forward: 0.2}}, Goal]}}"],
            {"motion": Series([Walk(0.2), Goal()])},
        ),
        (
            [
                "--goal",
                "1,0",
                "--waypoint",
                "{what: base, p_W: [1, 2, null], share: 0.5}",
            ],
            {
                "motion": Goal(
                    1.0, waypoints=[WayPoint("base", (1, 2, None), share=0.5)]
                )
            },
        ),
        (
            ["--hop", "1", "--pose", "hip=20deg", "--torque", "hip=3"],
            {"pose": {"hip": np.deg2rad(20)}, "torque": {"hip": 3.0}},
        ),
        (
            ["--forward", "1", "--phases", "leg=0.5", "--clearance", "3cm"],
            {"motion": Walk(1.0, clearance=0.03, phases={"leg": 0.5})},
        ),
        (
            ["--forward", "1", "--gait", "crawl", "--contacts", "gait", "--torque=9"],
            {"motion": Walk(1.0, "crawl"), "contacts": "gait", "torque": 9.0},
        ),
        (
            ["--forward", "1", "--weights", "{slack: [1, 50]}"],
            {"weights": LocomotionWeights(slack=(1.0, 50.0))},
        ),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_options_make_a_problem(words, fields, monkeypatch, tmp_path):
    """Every form of the command line asks for the motion that it names."""
    found = []

    def keep(problem, *, time_limit, **more):
        assert time_limit == 300  # where none is asked for
        found.append(problem)
        raise InvalidInput("enough")

    monkeypatch.setattr(cli_plan, "plan_locomotion", keep)
    path = tmp_path / "walker.urdf"
    path.write_text(WALKER)
    assert main(["plan", str(path), *words]) == InvalidInput.exit_code
    (problem,) = found
    assert {name: getattr(problem, name) for name in fields} == fields


@pytest.mark.parametrize(
    ("words", "fields"),
    [
        ([], vars(GaitProblem())),
        (["--clearance", "0.3mm", "--tilt", "0.03"], {"clearance": 3e-4, "tilt": 0.03}),
        (
            ["--start", "{phases: {FL: 0.25, RR: 0}}"],
            {"start": WarmStart(phases={"FL": 0.25, "RR": 0.0})},
        ),
        (["--weights", "pose=2,rates=5"], {"weights": GaitWeights(pose=2, rates=5)}),
        (
            ["--weights", "{slack: [10, 1e5]}"],
            {"weights": GaitWeights(slack=(10.0, 1e5))},
        ),
        (
            ["--jump", "--weights", "{slack: [9]}", "--tilt", "0.1"],
            {"weights": JumpWeights(slack=(9.0,)), "tilt": 0.1},
        ),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_options_make_a_problem_of_hamr(words, fields, monkeypatch):
    found = []

    def keep(problem, **more):
        found.append(problem)
        raise InvalidInput("enough")

    monkeypatch.setattr(hamr, "plan", keep)
    assert main(["plan", "hamr", *words]) == InvalidInput.exit_code
    (problem,) = found
    values = {name: getattr(problem, name) for name in fields}
    assert values == fields


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--turn", "30grad"], "--turn: 'grad' is no unit for it; use rad"),
        (["--turn", "left"], "--turn: 'left' is no number"),
        (["--goal", "1"], "x,y,yaw"),
        (["--goal", "1,2,3,4"], "x,y,yaw"),
        (["--hop", "1", "--pose", "hip"], "name=value"),
        (["--hop", "1", "--torque", "hip=strong"], "--torque of hip"),
        (["--turn", "1", "--periodic"], "momentum"),
        (["--hop", "1", "--gait", "crawl"], "--gait does not apply to a hop"),
    ],
)
def test_refused_forms(words, said, tmp_path, capsys):
    """What is no number is named with its option."""
    path = tmp_path / "walker.urdf"
    path.write_text(WALKER)
    assert main(["plan", str(path), *words]) != 0
    assert said in capsys.readouterr().err


@pytest.mark.parametrize("command", ["plan hamr", "plan beetle"])
def test_solvers_have_one_word_and_unknown_ones_are_named(command, capsys):
    with pytest.raises(SystemExit):
        main([*command.split(), "--help"])
    assert "exact" in capsys.readouterr().out
    assert main([*command.split(), "--solver", "nlopt"]) == 2
    said = capsys.readouterr().err
    assert "nlopt" in said and "snopt" in said and said.count("\n") == 1
