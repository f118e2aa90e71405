"""Files that include themselves or too many others are refused before Drake."""

import pytest

from drakebots import build_robot
from drakebots.core.errors import InvalidInput, ModelProblem
from drakebots.formats import load
from drakebots.formats.read.files import MAX_INCLUDED, check_includes
from drakebots.formats.read.limits import MAX_BODIES
from drakebots.trajopt.contact_implicit import ContactSystem
from tests.helpers.coupled_robots import knees_follow
from tests.helpers.model_files import assert_problem, write


def sdf(*uris):
    includes = "".join(f"<include><uri>{uri}</uri></include>" for uri in uris)
    return f'<sdf version="1.9"><model name="m">{includes}</model></sdf>'


def mjcf(*files):
    return f"<mujoco>{''.join(f'<include file={f!r}/>' for f in files)}</mujoco>"


def directives(*files):
    lines = [f"- add_directives: {{file: {f}}}" for f in files]
    return "\n".join(["directives:", *lines])


@pytest.mark.parametrize(
    "name, text",
    [
        ("a.sdf", sdf("a.sdf")),
        ("a.sdf", sdf("file://{folder}/a.sdf")),
        ("a.sdf", sdf("{folder}/../robots/a.sdf")),
        ("a.sdf", sdf("package://robots/a.sdf")),
        ("a.sdf", sdf("model://robots")),
        ("a.xml", mjcf("a.xml")),
        ("a.xml", mjcf("../robots/a.xml")),
        ("a.dmd.yaml", directives("package://robots/a.dmd.yaml")),
        (
            "a.dmd.yaml",
            "directives:\n- add_model: {name: b, file: 'file://{folder}/a.dmd.yaml'}",
        ),
    ],
)
def test_a_file_that_includes_itself(tmp_path, name, text):
    folder = tmp_path / "robots"
    folder.mkdir()
    write(folder, "<package><name>robots</name></package>", "package.xml")
    config = "<model><sdf version='1.9'>a.sdf</sdf></model>"
    write(folder, config, "model.config")
    path = write(folder, text.replace("{folder}", str(folder)), name)
    with pytest.raises(ModelProblem) as caught:
        load(path)
    assert_problem(caught, path, f"includes itself ({name} -> {name})", "remove")


@pytest.mark.parametrize("ending, includes", [("sdf", sdf), ("xml", mjcf)])
def test_a_circle_by_way_of_others(tmp_path, ending, includes):
    write(tmp_path, includes(f"c.{ending}"), f"b.{ending}")
    write(tmp_path, includes(f"d.{ending}", f"b.{ending}"), f"c.{ending}")
    write(tmp_path, includes(), f"d.{ending}")
    path = write(tmp_path, includes(f"b.{ending}"), f"a.{ending}")
    with pytest.raises(ModelProblem) as caught:
        load(path)
    circle = " -> ".join(f"{letter}.{ending}" for letter in "bcb")
    assert_problem(caught, path, f"({circle})")


def test_directives_lead_to_other_formats(tmp_path):
    """Drake's own readers of SDF and MJCF would follow their circles too."""
    write(tmp_path, mjcf("a.xml"), "a.xml")
    text = f"directives:\n- add_model: {{name: a, file: 'file://{tmp_path}/a.xml'}}"
    path = write(tmp_path, text, "a.dmd.yaml")
    with pytest.raises(ModelProblem) as caught:
        load(path)
    assert_problem(caught, path, "(a.xml -> a.xml)")


def test_a_file_read_twice_is_no_circle_but_counts(tmp_path):
    """Ten levels that each read the next twice are 2046 files to Drake."""
    for level in range(11):
        following = [f"{level + 1}.sdf"] * 2 if level < 10 else []
        write(tmp_path, sdf(*following), f"{level}.sdf")
    check_includes(tmp_path / "5.sdf")
    with pytest.raises(ModelProblem, match=f"more than {MAX_INCLUDED} files"):
        check_includes(tmp_path / "0.sdf")


def test_included_files_have_the_limits_of_all(tmp_path):
    inner = write(tmp_path, "<sdf>" + "<a>" * 300 + "<include/>", "b.sdf")
    path = write(tmp_path, sdf("b.sdf", "none.sdf"), "a.sdf")
    with pytest.raises(ModelProblem) as caught:
        check_includes(path)
    assert_problem(caught, inner, "nested")


def test_a_large_model_by_way_of_directives(tmp_path):
    links = "".join(f'<link name="l{i}"/>' for i in range(MAX_BODIES + 1))
    inner = write(tmp_path, f'<robot name="m">{links}</robot>', "m.urdf")
    text = f"directives:\n- add_model: {{name: m, file: 'file://{inner}'}}"
    with pytest.raises(ModelProblem) as caught:
        load(write(tmp_path, text, "m.dmd.yaml"))
    assert_problem(caught, inner, "more than 2000 links")


def test_mimics_of_included_files_are_named(tmp_path):
    """Drake couples them; programs, which do not know them, refuse the model."""
    knees_follow(tmp_path, -2.0)
    text = "directives:\n- add_model: {name: r, file: 'package://robots/knees.urdf'}\n"
    write(tmp_path, "<package><name>robots</name></package>", "package.xml")
    model = load(write(tmp_path, text, "m.dmd.yaml"))
    assert model.uncoupled == ("knees.urdf",) and not model.couplers
    assert model.summary.constraints == 4
    assert any("not in plans: knees.urdf" in note for note in model.notes)
    robot = build_robot(model, base="euler", time_step=0)
    with pytest.raises(InvalidInput, match=r"knees\.urdf, which it includes, follow"):
        ContactSystem(robot)
    assert load(tmp_path / "knees.urdf").uncoupled == ()
