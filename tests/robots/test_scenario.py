"""Scenario files: every field of every problem, strictly, and errors of one line."""

from __future__ import annotations

import json
from dataclasses import fields
from pathlib import Path
from typing import get_type_hints

import pytest

from drakebots.cli import main
from drakebots.core.convert import from_yaml
from drakebots.core.errors import FileProblem
from drakebots.core.files import parse_yaml, read_yaml
from drakebots.core.lazy import resolve
from drakebots.multibody import Slope
from drakebots.robots import (
    is_scenario,
    read_scenario,
    robots,
    scenario_schema,
)
from drakebots.robots.voxels import Target
from drakebots.trajopt.locomotion import Walk
from tests.helpers.scripts import ROOT


def scenario(folder: Path, text: str, name: str = "run.yaml"):
    path = folder / name
    path.write_text(text)
    return path


def problem(folder: Path, text: str):
    return read_scenario(scenario(folder, text)).problem


def test_fields_are_the_dataclass_s(tmp_path):
    text = "simulate: hamr\ngait: trot\nfrequency: 10\ntime_step: 1e-4\n"
    found = read_scenario(scenario(tmp_path, text + "phases: {FL: 0, RR: 0.5}\n"))
    assert (found.command, found.robot) == ("simulate", "hamr")
    posed = found.problem
    assert isinstance(posed, resolve(found.task.problem))
    assert (posed.gait, posed.frequency, posed.time_step) == ("trot", 10.0, 1e-4)
    assert isinstance(posed.frequency, float) and posed.phases == {"FL": 0.0, "RR": 0.5}
    # What is not given is as in the dataclass.
    assert posed.cycles == resolve(found.task.problem)().cycles


def test_nested_values(tmp_path):
    posed = problem(
        tmp_path,
        "plan: my_robot.urdf\nmotion: {Hop: {height: 0.1}}\n"
        "terrain: {Slope: {angle: 0.1}}\n"
        "weights: {effort: 2, slack: [1, 10]}\ntorque: {knee: 3}\n",
    )
    assert posed.terrain == Slope(0.1) and posed.torque == {"knee": 3.0}
    assert posed.weights.effort == 2.0 and posed.weights.slack == (1.0, 10.0)
    assert posed.weights.smooth == type(posed.weights)().smooth
    flat = problem(tmp_path, "plan: my_robot.urdf\nterrain: Flat\ntorque: 2\n")
    assert type(flat.terrain).__name__ == "Flat" and flat.torque == 2.0
    walk = problem(tmp_path, "simulate: gecko\ntargets: [[0.5, 0], [1, 1]]\n")
    assert walk.targets == ((0.5, 0.0), (1.0, 1.0))
    jump = problem(tmp_path, "plan: hamr\nproblem: JumpProblem\nrise: 0.01\n")
    assert type(jump).__name__ == "JumpProblem"


def test_files_beside_the_scenario(tmp_path):
    (tmp_path / "my.urdf").write_text("<robot name='a'/>")
    posed = problem(tmp_path, "simulate: my.urdf\n")
    assert posed.model == str(tmp_path / "my.urdf")
    posed = problem(tmp_path, "simulate: my.urdf\nmodel: elsewhere.urdf\n")
    assert posed.model == "elsewhere.urdf"


def test_motions_of_a_lattice(tmp_path):
    (tmp_path / "a.json").write_text((ROOT / "examples/lattice.json").read_text())
    target = "targets: [{node: [1, 3, 4], axis: x, displacement: 0.005}]\n"
    posed = problem(tmp_path, "plan: a.json\n" + target)
    assert posed.targets == (Target((1, 3, 4), "x", 0.005),)
    assert posed.lattice.lattice.pitch == pytest.approx(0.0762)
    posed = problem(tmp_path, f"plan: voxel\n{target}actuators: []\n")
    assert posed.lattice is None and posed.actuators == ()
    with pytest.raises(FileProblem, match=r"targets\[0\].axis must be a text, got 1"):
        problem(tmp_path, "plan: voxel\ntargets: [{node: a, axis: 1}]\n")


@pytest.mark.parametrize("robot", robots().values(), ids=lambda r: r.name)
def test_defaults_of_every_problem_can_be_written(robot, tmp_path):
    """A file may say every default that is of plain values."""
    tasks = filter(None, (robot.simulate, robot.plan))
    for kind in (resolve(r) for task in tasks for r in (task.problem, *task.also)):
        hints = get_type_hints(kind)
        for field in fields(kind):
            value = field.default
            if isinstance(value, bool | int | float | str | None):
                found = from_yaml(hints[field.name], value, field.name, tmp_path)
                assert found == value and type(found) in (type(value), float)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("simulate: hamr\nphase: 1\n", "unknown field of .* 'phase' .*'phases'"),
        (
            "simulate: hamr\nfrequency: fast\n",
            "frequency must be a number or null, got",
        ),
        ("simulate: hamr\nfrequency: true\n", "frequency must be a number or null"),
        ("simulate: hamr\nfrequency: -1\n", "frequency"),
        ("simulate: hamr\ncycles: 1.5\n", "cycles must be a whole number, got 1.5"),
        ("simulate: hamr\nphases: [1]\n", "phases must be a mapping of names"),
        ("plan: a.urdf\ntorque: {knee: no}\n", "torque.knee must be a number, got"),
        ("simulate: gecko\ntargets: [[1]]\n", r"targets\[0\] must be a list of 2"),
        ("simulate: gecko\ntargets: 1\n", "targets must be a list, got 1"),
        ("simulate: gecko\nengine: fast\n", "'fast'"),
        ("simulate: gecko\nengine: {Drake: {incline: 4}}\n", "incline"),
        ("plan: a.urdf\nterrain: {Hill: {}}\n", "unknown terrain 'Hill'.*Slope"),
        ("plan: a.urdf\nterrain: {Slope: {}}\n", "terrain.Slope: .*'angle'"),
        ("plan: a.urdf\nweights: {efort: 1}\n", "field of weights 'efort'.*'effort'"),
        ("plan: hamr\nproblem: Jump\n", "unknown problem 'Jump'.*JumpProblem"),
        ("plan: hamr\nsimulate: hamr\n", "has simulate and plan of the keys"),
        ("gait: trot\n", "has none of the keys"),
        ("simulate: [hamr]\n", "simulate must be a robot or a model"),
        ("- 1\n", "a scenario must be a mapping"),
        ("simulate: {\n", "is not YAML"),
    ],
)
def test_refusals(tmp_path, text, words):
    path = scenario(tmp_path, text)
    with pytest.raises(FileProblem, match=words) as error:
        read_scenario(path)
    assert str(error.value).startswith(f"{path}: ") and "\n" not in str(error.value)


@pytest.mark.parametrize("name", ["trot.yaml", "walk.yaml"])
def test_examples(name):
    found = read_scenario(ROOT / "examples" / name)
    assert found.command in (ROOT / "examples" / name).read_text().splitlines()[1]
    if found.robot == "any":
        assert Path(found.problem.model).is_file()
        assert found.problem.motion == Walk(0.3)
    else:
        assert found.problem.gait == "trot"


def test_what_is_a_scenario(tmp_path):
    assert is_scenario(str(scenario(tmp_path, "simulate: hamr\n")))
    assert is_scenario(str(scenario(tmp_path, "simulate: {\n", "broken.yml")))
    assert not is_scenario(str(scenario(tmp_path, "directives: []\n", "a.dmd.yaml")))
    assert not is_scenario("hamr") and not is_scenario(str(tmp_path / "none.yaml"))


def test_command_line(tmp_path, capsys):
    (tmp_path / "robot.urdf").write_text((ROOT / "examples/my_robot.urdf").read_text())
    path = scenario(tmp_path, "simulate: robot.urdf\nduration: 0.01\n")
    output = tmp_path / "run.nc"
    assert main(["simulate", str(path), "-o", str(output)]) == 0
    assert output.exists()
    capsys.readouterr()
    assert main(["plan", str(path)]) == 2
    assert "is a scenario to simulate; run" in capsys.readouterr().err
    assert main(["simulate", str(path), "--duration", "3"]) == 2
    assert "--duration does not apply" in capsys.readouterr().err
    path.write_text("simulate: robot.urdf\nduration: soon\n")
    assert main(["simulate", str(path)]) == 2
    printed = capsys.readouterr().err
    assert printed.count("\n") == 1 and "duration must be a number" in printed


def test_editors_know_scenario_files():
    """The schema takes the examples, and refuses what reading them would refuse."""
    jsonschema = pytest.importorskip("jsonschema")
    schema = json.loads(json.dumps(scenario_schema()))
    jsonschema.Draft202012Validator.check_schema(schema)
    takes = jsonschema.Draft202012Validator(schema).is_valid
    for name in ("trot", "walk", "push"):
        assert takes(read_yaml(ROOT / "examples" / f"{name}.yaml")), name
    for text in (
        "{simulate: hamr, frequency: fast}",
        "{simulate: hamr, frequncy: 2}",
        "{simulate: hamr, cycles: 0}",
        "{plan: a.urdf, terrain: {Hill: {}}}",
    ):
        assert not takes(parse_yaml(text)), text
    unit = schema["$defs"]["LocomotionProblem"]["properties"]["torque"]["anyOf"][0]
    assert unit["unit"] == "N m or N"
