"""Files that a model names by URIs, found where a reader would look."""

from pathlib import Path

import pytest
from pydrake.multibody.parsing import Parser
from pydrake.multibody.plant import MultibodyPlant

import drakebots
from drakebots.core.errors import InvalidInput
from drakebots.formats.read.files import Packages


@pytest.fixture
def robot(tmp_path):
    """repo/my_robot/urdf/m.urdf, with a mesh in the package beside urdf/."""
    folder = tmp_path / "repo" / "my_robot"
    (folder / "urdf").mkdir(parents=True)
    (folder / "meshes").mkdir()
    (folder / "meshes" / "leg.obj").touch()
    (folder / "urdf" / "m.urdf").touch()
    return folder / "urdf" / "m.urdf"


@pytest.mark.parametrize(
    "uri, plain",
    [
        ("../meshes/leg.obj", True),
        ("package://my_robot/meshes/leg.obj", True),  # the folder's name
        ("package:///my_robot/meshes/leg.obj", True),
        ("model://my_robot/meshes/leg.obj", True),
        ("package://repo/my_robot/meshes/leg.obj", True),
        ("package://not_here/meshes/leg.obj", False),  # its end is found above
        ("package://not_here/a/b/meshes/leg.obj", False),
        ("file:///home/author/ws/meshes/leg.obj", False),
        (r"..\meshes\leg.obj", False),
        ("../meshes/Leg.OBJ", False),
    ],
)
def test_found_in_and_above_the_folder(robot, uri, plain):
    packages = Packages(robot)
    path = packages.find(uri)
    assert path == robot.parents[1] / "meshes" / "leg.obj"
    assert packages.is_plain(uri, path) is plain


@pytest.mark.parametrize(
    "uri", ["", "leg2.obj", "http://x/leg.obj", "package://my_robot/no.obj", "a\0b"]
)
def test_not_found(robot, uri):
    assert Packages(robot).find(uri) is None


def test_a_package_xml_names_a_folder(robot, tmp_path):
    text = "<package><name>other</name></package>"
    (tmp_path / "repo" / "package.xml").write_text(text)
    packages = Packages(robot)
    uri = "package://other/my_robot/meshes/leg.obj"
    path = packages.find(uri)
    assert path is not None and packages.is_plain(uri, path)
    assert packages.used == {"other": tmp_path / "repo"}


def test_the_path_of_ros(robot, tmp_path, monkeypatch):
    mesh = tmp_path / "ros" / "far" / "foot.obj"
    mesh.parent.mkdir(parents=True)
    mesh.touch()
    assert Packages(robot).find("package://far/foot.obj") is None
    monkeypatch.setenv("ROS_PACKAGE_PATH", f"/nowhere:{tmp_path / 'ros'}")
    assert Packages(robot).find("package://far/foot.obj") == mesh


def test_given_packages_are_first(robot, tmp_path):
    mesh = tmp_path / "mine" / "meshes" / "leg.obj"
    mesh.parent.mkdir(parents=True)
    mesh.touch()
    packages = Packages(robot, {"my_robot": tmp_path / "mine"})
    assert packages.find("package://my_robot/meshes/leg.obj") == mesh


def test_a_given_package_must_be_a_folder(robot):
    with pytest.raises(InvalidInput, match="name=folder"):
        Packages(robot, {"mine": robot})


def test_our_models_are_a_package_for_drakes_parser(tmp_path, monkeypatch):
    """And what ROS_PACKAGE_PATH names; the map may be added more than once."""
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "package.xml").write_text(
        '<package format="2"><name>other</name></package>'
    )
    monkeypatch.setenv("ROS_PACKAGE_PATH", str(tmp_path))
    plant = MultibodyPlant(1e-3)
    parser = Parser(plant)
    for _ in range(2):
        parser.package_map().AddMap(drakebots.package_map())
    assert Path(parser.package_map().GetPath("other")) == tmp_path / "other"
    parser.AddModels(url="package://drakebots/beetle/beetle.sdf")
    assert plant.HasModelInstanceNamed("beetle")
