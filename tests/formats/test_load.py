"""Every model that came with us, and loading of files, good and bad."""

from __future__ import annotations

import logging

import numpy as np
import pytest
from pydrake.multibody.parsing import Parser
from pydrake.multibody.plant import AddMultibodyPlantSceneGraph
from pydrake.systems.analysis import Simulator
from pydrake.systems.framework import DiagramBuilder

from drakebots import DrakebotsError, UnknownName, available_models, load
from drakebots.formats.read import read_robot
from drakebots.model import actuators_of, find_model, package_root, part_name
from drakebots.multibody import build_robot, find_posture
from tests.helpers.scripts import load_script
from tests.helpers.standing_robots import quadruped

COUNTS = {
    "beetle": {
        "velocities": 18,
        "bodies": 13,
        "actuators": 12,
        "springs": 0,
        "constraints": 0,
        "independent_rows": 0,
        "feet": 20,
        "mass": 2.758269794945,
    },
    "brick": {
        "velocities": 6,
        "bodies": 1,
        "actuators": 0,
        "springs": 0,
        "constraints": 0,
        "independent_rows": 0,
        "feet": 8,
        "mass": 1.0,
    },
    "cow": {
        "velocities": 22,
        "bodies": 17,
        "actuators": 16,
        "springs": 0,
        "constraints": 0,
        "independent_rows": 0,
        "feet": 20,
        "mass": 3.866244647001,
    },
    "gecko": {
        "velocities": 38,
        "bodies": 37,
        "actuators": 35,
        "springs": 0,
        "constraints": 0,
        "independent_rows": 0,
        "feet": 4,
        "mass": 0.22,
    },
    "hamr": {
        "velocities": 38,
        "bodies": 33,
        "actuators": 8,
        "springs": 32,
        "constraints": 24,
        "independent_rows": 24,
        "feet": 4,
        "mass": 1.474991e-3,
    },
    "monopod": {
        "velocities": 5,
        "bodies": 5,
        "actuators": 2,
        "springs": 0,
        "constraints": 0,
        "independent_rows": 0,
        "feet": 1,
        "mass": 3.55,
    },
    "lizard": {
        "velocities": 23,
        "bodies": 18,
        "actuators": 17,
        "springs": 0,
        "constraints": 0,
        "independent_rows": 0,
        "feet": 20,
        "mass": 5.189107684495,
    },
    "mini_cheetah": {
        "velocities": 18,
        "bodies": 13,
        "actuators": 12,
        "springs": 0,
        "constraints": 0,
        "independent_rows": 0,
        "feet": 4,
        "mass": 8.912,
    },
    "minitaur": {
        "velocities": 22,
        "bodies": 17,
        "actuators": 8,
        "springs": 0,
        "constraints": 0,
        "independent_rows": 8,
        "feet": 4,
        "mass": 6.0,
    },
    "monster": {
        "velocities": 22,
        "bodies": 17,
        "actuators": 16,
        "springs": 0,
        "constraints": 0,
        "independent_rows": 0,
        "feet": 20,
        "mass": 6.2095208125,
    },
    "skinned_leg": {
        "velocities": 2,
        "bodies": 3,
        "actuators": 2,
        "springs": 0,
        "constraints": 0,
        "independent_rows": 0,
        "feet": 1,
        "mass": 0.315,
    },
    "voxel": {
        "velocities": 33,
        "bodies": 10,
        "actuators": 0,
        "springs": 14,
        "constraints": 5,
        "independent_rows": 15,
        "feet": 6,
        "mass": 61.828e-3,
    },
}

models = pytest.mark.parametrize("name", available_models())


def stock_parser(plant) -> Parser:
    """As anyone would have it: only our package.xml, and no tag unread."""
    parser = Parser(plant)
    parser.SetStrictParsing()
    parser.package_map().AddPackageXml(str(package_root() / "package.xml"))
    return parser


def test_table_is_of_the_models():
    assert sorted(COUNTS) == available_models()


@models
def test_counts(name):
    model = load(name)
    summary, expected = model.summary, COUNTS[name]
    found = {
        "velocities": len(summary.velocities),
        "bodies": summary.bodies,
        "actuators": len(summary.actuators),
        "springs": summary.springs,
        "constraints": summary.constraints,
        "independent_rows": summary.independent_rows,
        "feet": len(model.feet),
        "mass": pytest.approx(summary.mass, abs=1e-9),
    }
    assert expected == found
    assert summary.loop_gap < 1e-9
    assert all(note.startswith("poses from ") for note in model.notes)
    report = model.report()
    assert report["num_velocities"] == expected["velocities"]
    assert len(report["feet"]) == expected["feet"]


@models
@pytest.mark.parametrize("file", ["{}.sdf", "scene.dmd.yaml"])
def test_stock_parser_reads_and_drake_steps(name, file):
    path = package_root() / name / file.format(name)
    builder = DiagramBuilder()
    plant, _ = AddMultibodyPlantSceneGraph(builder, 1e-4)
    stock_parser(plant).AddModels(str(path))
    plant.Finalize()
    simulator = Simulator(builder.Build())
    context = plant.GetMyMutableContextFromRoot(simulator.get_mutable_context())
    zero = np.zeros(plant.num_actuated_dofs())
    plant.get_actuation_input_port().FixValue(context, zero)
    simulator.AdvanceTo(0.01)
    assert np.isfinite(plant.GetPositionsAndVelocities(context)).all()


@models
def test_scene_loads(name):
    scene = load(package_root() / name / "scene.dmd.yaml")
    assert scene.name == "scene"
    assert len(scene.summary.velocities) == COUNTS[name]["velocities"]
    assert scene.summary.constraints == COUNTS[name]["constraints"]


def test_hamr_stands_in_its_scene():
    builder = DiagramBuilder()
    plant, _ = AddMultibodyPlantSceneGraph(builder, 1e-4)
    stock_parser(plant).AddModels(str(package_root() / "hamr" / "scene.dmd.yaml"))
    plant.Finalize()
    simulator = Simulator(builder.Build())
    context = plant.GetMyMutableContextFromRoot(simulator.get_mutable_context())
    chassis = plant.GetBodyByName("Chassis")
    height = plant.GetFreeBodyPose(context, chassis).translation()[2]
    assert height == pytest.approx(0.01269)
    plant.get_actuation_input_port().FixValue(context, np.zeros(8))
    simulator.AdvanceTo(0.2)
    x, y, z = plant.GetFreeBodyPose(context, chassis).translation()
    assert z == pytest.approx(0.01245, abs=2e-5)
    assert np.hypot(x, y) < 2e-5


@models
def test_model_has_its_papers(name):
    folder = package_root() / name
    readme = (folder / "README.md").read_text()
    assert f"{name}.png" in readme and (folder / f"{name}.png").is_file()
    for word in ("BSD-3-Clause", "scene.dmd.yaml", "limits"):
        assert word in readme
    # The table of contents lists all that is there.
    for path in folder.iterdir():
        assert path.name == "README.md" or f"`{path.name}" in readme, path.name


@pytest.mark.parametrize("name", ["make_hamr_model", "make_control_models"])
def test_models_are_what_their_parameters_make(name):
    assert load_script(name).main(["--check"]) == 0


def test_five_bar_legs_stand_as_their_parameters_say():
    """The passive knees of the standing pose close the loops."""
    posture = find_posture(load("minitaur"))
    assert posture.stands and posture.source == "pose 'standing' of the file"
    assert posture.residuals["loop rows"] < 1e-11


BALL_SDF = """<?xml version="1.0"?>
<sdf version="1.9"><model name="ball"><link name="ball">
<inertial><mass>0.1</mass><inertia><ixx>1e-5</ixx><iyy>1e-5</iyy><izz>1e-5</izz>
<ixy>0</ixy><ixz>0</ixz><iyz>0</iyz></inertia></inertial>
<collision name="c"><geometry><sphere><radius>0.02</radius></sphere></geometry>
</collision></link></model></sdf>
"""
BALL_URDF = """<?xml version="1.0"?>
<robot name="ball"><link name="ball">
<inertial><mass value="0.1"/>
<inertia ixx="1e-5" iyy="1e-5" izz="1e-5" ixy="0" ixz="0" iyz="0"/></inertial>
<collision><geometry><sphere radius="0.02"/></geometry></collision></link></robot>
"""
BALL_MJCF = """<mujoco model="ball"><worldbody><body name="ball"><freejoint/>
<inertial pos="0 0 0" mass="0.1" diaginertia="1e-5 1e-5 1e-5"/>
<geom type="sphere" size="0.02"/></body></worldbody></mujoco>
"""
BALL_DMD = """directives:
- add_model:
    name: ball
    file: file://{folder}/ball.sdf
"""
BALLS = {
    "ball.sdf": BALL_SDF,
    "ball.urdf": BALL_URDF,
    "ball.xml": BALL_MJCF,
    "ball.dmd.yaml": BALL_DMD,
}


@pytest.mark.parametrize("file", BALLS)
def test_formats(file, tmp_path, caplog):
    caplog.set_level(logging.INFO, "drakebots")
    (tmp_path / "ball.sdf").write_text(BALL_SDF)
    path = tmp_path / file
    path.write_text(BALLS[file].replace("{folder}", str(tmp_path)))
    for name in (path, str(path)):
        model = load(name)
        assert model.name == "ball"
        assert model.summary.mass == pytest.approx(0.1)
        assert (model.summary.bodies, len(model.summary.velocities)) == (1, 6)
        assert [(foot.body, foot.radius) for foot in model.feet] == [("ball", 0.02)]
        assert set(caplog.messages) == {f"ball: {note}" for note in model.notes}


@pytest.mark.parametrize("name, close", [("hamrr", "hamr"), ("HAMR", None)])
def test_unknown_name(name, close):
    with pytest.raises(UnknownName) as caught:
        load(name)
    assert "hamr" in str(caught.value)
    if close:
        assert f"did you mean {close!r}" in str(caught.value)
    assert "\n" not in str(caught.value)


def refused(path) -> str:
    with pytest.raises(DrakebotsError) as caught:
        load(path)
    message = str(caught.value)
    assert "\n" not in message
    assert message.strip()
    return message


def test_missing_file(tmp_path):
    message = refused(tmp_path / "none.sdf")
    assert "no such file" in message and "none.sdf" in message


def test_folder(tmp_path):
    folder = tmp_path / "robot.sdf"
    folder.mkdir()
    assert "is a folder" in refused(folder)
    assert "is a folder" in refused(tmp_path)


@pytest.mark.parametrize("ending", ["txt", "stl", "yaml", "py"])
def test_wrong_ending(ending, tmp_path):
    path = tmp_path / f"robot.{ending}"
    path.write_text(BALL_SDF)
    assert "unknown ending" in refused(path)


@pytest.mark.parametrize("ending", ["sdf", "urdf", "xml", "mjcf", "dmd.yaml"])
@pytest.mark.parametrize(
    "text",
    ["", " \n\n", "<sdf><model name='a'>", "<<<>", "directives: [", "\0\1\2", "a: 1"],
    ids=["empty", "blank", "open tag", "no XML", "open list", "binary", "other"],
)
def test_malformed(ending, text, tmp_path):
    path = tmp_path / f"robot.{ending}"
    path.write_text(text)
    assert str(path) in refused(path)


@pytest.mark.parametrize("name", available_models())
def test_our_own_models_need_no_mending(name, monkeypatch):
    """So `load` may take them as they are."""
    path = find_model(name)
    plain = read_robot(path)
    monkeypatch.setattr("drakebots.formats.read.read.is_ours", lambda path: False)
    mended = read_robot(path)
    assert plain.text is None and mended.text is None
    assert (mended.notes, mended.couplers, mended.uncoupled) == ((), (), ())
    assert [loop.name for loop in mended.loops] == [loop.name for loop in plain.loops]


@pytest.mark.parametrize(
    "effort, options, limit",
    [(0.1, {}, np.inf), (0.3, {}, 0.3), (0.1, {"effort": 0.2}, 0.2)],
)
def test_one_limit_that_no_robot_stands_on_is_none(tmp_path, effort, options, limit):
    """Bent knees of 10 kg on four legs of 0.4 m take 0.2 m g l / 4 = 2 N m."""
    model = load(quadruped(tmp_path, effort=effort), **options)
    assert {motor.effort for motor in model.actuators} == {limit}
    said = [note for note in model.notes if "taken for none given" in note]
    assert len(said) == np.isinf(limit)
    assert all("is 0.1, where standing takes some 2 N m" in note for note in said)


@pytest.mark.parametrize("names", [("dog",), ("dog", "cat")])
def test_robots_that_a_dmd_adds_get_the_motors_of_their_effort_limits(tmp_path, names):
    """Of one and of two of a kind, whose joints share their names: in the plant too."""
    file = f"file://{quadruped(tmp_path, effort=40.0)}"
    adds = [f"- add_model: {{name: {name}, file: {file}}}\n" for name in names]
    path = tmp_path / "all.dmd.yaml"
    path.write_text("directives:\n" + "".join(adds))
    model = load(path)
    motors = actuators_of(build_robot(model).plant)
    assert tuple(map(part_name, motors)) == model.summary.actuators
    assert [motor.effort_limit() for motor in motors] == [40.0] * 12 * len(names)


def test_effort_limits_that_differ_between_files_of_a_dmd_are_none(tmp_path):
    (tmp_path / "weak").mkdir()
    files = quadruped(tmp_path, effort=40.0), quadruped(tmp_path / "weak", effort=4.0)
    add = "- add_model: {{name: {}, file: file://{}}}\n".format
    path = tmp_path / "all.dmd.yaml"
    path.write_text("directives:\n" + "".join(map(add, ("one", "two"), files)))
    assert not load(path).actuators
