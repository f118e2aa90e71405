"""Files of xacro: expanded by the package xacrodoc where it is installed."""

import sys

import pytest

from drakebots import ModelProblem, load
from tests.helpers.robot_files import link, write

TOP = '<robot name="dog" xmlns:xacro="http://www.ros.org/wiki/xacro">'
LEG = TOP + (
    '<xacro:macro name="leg" params="name kg">'
    + link("foot", 1, (1, 1, 1)).replace("foot", "${name}").replace('"1"', '"${kg}"')
    + "</xacro:macro></robot>"
)
DOG = TOP + (
    '<xacro:include filename="$(find dog)/leg.xacro"/><xacro:include '
    'filename="leg.xacro"/><xacro:leg name="paw" kg="${2 * 0.15}"/></robot>'
)


def dog(folder, text: str = DOG, name: str = "dog.urdf.xacro"):
    """A package of two files, one of which includes the other in two ways."""
    write(folder / "dog", "<package><name>dog</name></package>", "package.xml")
    write(folder / "dog", LEG, "leg.xacro")
    return write(folder / "dog", text, name)


@pytest.mark.parametrize("name", ["dog.urdf.xacro", "dog.xacro", "dog.urdf"])
def test_a_xacro_is_expanded(tmp_path, name):
    """Its arithmetic, and what it includes by package or beside it."""
    pytest.importorskip("xacrodoc")
    model = load(dog(tmp_path, name=name))
    assert model.name == "dog" and model.summary.mass == pytest.approx(0.3)


def test_a_package_is_found_where_the_user_says(tmp_path):
    pytest.importorskip("xacrodoc")
    path = dog(tmp_path, DOG.replace("find dog", "find paws"))
    with pytest.raises(ModelProblem, match=r"'paws' is not .* paws=FOLDER"):
        load(path)
    assert load(path, packages={"paws": tmp_path / "dog"}).summary.mass


def test_what_xacro_refuses_is_one_line(tmp_path):
    pytest.importorskip("xacrodoc")
    path = dog(tmp_path, DOG.replace("2 * 0.15", "2 * mass"))
    with pytest.raises(ModelProblem, match=r"dog.urdf.xacro: xacro says: .*mass"):
        load(path)


def test_without_xacrodoc_the_command_is_named(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "xacrodoc", None)
    with pytest.raises(ModelProblem) as caught:
        load(dog(tmp_path))
    command = "pip install xacrodoc, or type: xacro dog.urdf.xacro > dog.urdf"
    assert str(caught.value).endswith(command)


def test_a_tag_in_a_comment_is_no_xacro(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "xacrodoc", None)
    text = f"<robot name='r'><!-- <xacro:leg/> -->{link('a', 1, (1, 1, 1))}</robot>"
    assert load(write(tmp_path, text)).summary.mass == 1
