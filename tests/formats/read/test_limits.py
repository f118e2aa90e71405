"""Checks of a model file before Drake reads it."""

import os

import pytest
from pydrake.multibody.plant import MultibodyPlant

from drakebots.core.errors import ModelProblem
from drakebots.core.files import MAX_YAML
from drakebots.formats import load
from drakebots.formats.read import check_model_file, limits
from drakebots.formats.read.limits import MAX_BODIES, MAX_BYTES, MAX_SHAPES
from tests.helpers.model_files import assert_problem, write


def urdf(inside="", mass="1", root="robot"):
    return f"""<{root} name="m"><link name="a"><inertial><mass value="{mass}"/>
      <inertia ixx="1" iyy="1" izz="1" ixy="0" ixz="0" iyz="0"/></inertial></link>
      {inside}</{root}>"""


def sdf(inside="", mass="1"):
    return f"""<sdf version="1.9" xmlns:drake="http://drake.mit.edu"><model name="m">
      <link name="a"><inertial><mass>{mass}</mass></inertial></link>
      {inside}</model></sdf>"""


JOINT = '<joint name="j"><origin xyz="{}"/></joint>'


@pytest.mark.parametrize(
    "name, text",
    [
        ("m.urdf", urdf(JOINT.format("0 -1e-3 2."))),
        ("m.sdf", sdf("<drake:joint/>")),
        ("m.sdf", sdf("<lower>-inf</lower>")),
        ("m.sdf", sdf(mass="0")),
        ("m.urdf", urdf(f"<!-- nan --><gazebo>{'x ' * 5}</gazebo>")),
        ("m.urdf", urdf('<gazebo><plugin far="inf">nan</plugin></gazebo>')),
        ("m.urdf", urdf("<!----- a -- b --->")),  # as Drake and MuJoCo read it
        ("m.urdf", urdf("<drake:tag/>")),  # Drake wants no declared prefix
        ("m.xml", "<mujoco><worldbody/></mujoco>"),
        ("m.dmd.yaml", "directives:\n- add_model: {name: a, file: b}\n"),
        ("m.dmd.yaml", "directives:\n- x: !Rpy {deg: [0, 0, 90]}\n"),
    ],
)
def test_good_files_pass(tmp_path, name, text):
    """Good models pass, infinite joint limits and comments included."""
    check_model_file(write(tmp_path, text, name))


def test_a_dash_in_a_comment_changes_no_file(tmp_path):
    """A file that Drake reads as it is stays its own; so limbs can be put on it."""
    path = write(tmp_path, urdf("<!-- a hip-roll joint -->"), "m.urdf")
    assert load(path).text is None


@pytest.mark.parametrize(
    "name, text, words",
    [
        ("m.urdf", urdf(JOINT.format("0 nan 0")), ["<origin> xyz", "nan"]),
        ("m.urdf", urdf(JOINT.format("0 -inf 0")), ["<origin> xyz", "-inf"]),
        ("m.urdf", urdf(JOINT.format("0 1e999 0")), ["<origin> xyz", "too large"]),
        ("m.sdf", sdf("<pose>0 0 NaN 0 0 0</pose>"), ["<pose>", "NaN"]),
        ("m.sdf", sdf("<lower>nan</lower>"), ["<lower>", "nan"]),
        ("m.urdf", urdf(mass="-1"), ["<mass>", "-1", ">= 0"]),
        ("m.urdf", urdf(mass="nan"), ["<mass>", "nan"]),
        ("m.urdf", urdf(mass="heavy"), ["<mass>", "heavy"]),
        ("m.sdf", sdf(mass="-0.5"), ["<mass>", "-0.5"]),
        ("m.sdf", sdf(mass="inf"), ["<mass>", "inf"]),
        ("m.urdf", "<!DOCTYPE robot>" + urdf(), ["DOCTYPE"]),
        (
            "m.urdf",
            '<!DOCTYPE robot [<!ENTITY x "y">]>' + urdf("&x;"),
            ["DOCTYPE"],
        ),
        ("m.urdf", urdf("\0"), ["NUL"]),
        ("m.urdf", urdf(root="sdf"), ["<sdf>", "<robot>"]),
        ("m.sdf", urdf(), ["<robot>", "<sdf>"]),
        ("m.xml", urdf(), ["<robot>", "<mujoco>"]),
        ("m.urdf", "", ["well-formed"]),
        ("m.sdf", "<sdf><model>", ["well-formed"]),
        ("m.dmd.yaml", "", ["is empty"]),
        ("m.dmd.yaml", "directives: [", ["is not YAML"]),
        ("m.urdf", b"\xff\xfe\x00", ["UTF-8"]),
        ("m.urdf", urdf("<link>" * 300 + "</link>" * 300), ["nested"]),
    ],
)
def test_bad_files_are_refused(tmp_path, name, text, words):
    """What Drake would choke on, or silently drop, gets one line naming it."""
    path = write(tmp_path, text, name)
    with pytest.raises(ModelProblem) as caught:
        check_model_file(path)
    assert_problem(caught, path, *words)


def test_huge_file_is_refused(tmp_path):
    """A file larger than any model is not read at all."""
    path = tmp_path / "m.urdf"
    with path.open("wb") as file:
        os.truncate(file.fileno(), MAX_BYTES + 1)
    with pytest.raises(ModelProblem) as caught:
        check_model_file(path)
    assert_problem(caught, path, "larger than 50 MB")


def test_a_model_of_too_many_links(tmp_path):
    """It is refused at the first link too many, long before it is parsed whole."""
    links = "".join(f'<link name="l{i}"/>' for i in range(MAX_BODIES + 1))
    path = write(tmp_path, f'<robot name="m">{links}</robot>', "m.urdf")
    with pytest.raises(ModelProblem) as caught:
        load(path)
    assert_problem(caught, path, f"more than {MAX_BODIES} links")


def test_a_model_of_too_many_shapes(tmp_path):
    text = f"<mujoco><worldbody>{'<geom/>' * (MAX_SHAPES + 1)}</worldbody></mujoco>"
    with pytest.raises(ModelProblem, match=f"more than {MAX_SHAPES} shapes"):
        load(write(tmp_path, text, "m.xml"))


def test_xml_of_too_many_elements(tmp_path, monkeypatch):
    monkeypatch.setattr(limits, "MAX_ELEMENTS", 10)
    path = write(tmp_path, sdf("<a/>" * 11), "m.sdf")
    with pytest.raises(ModelProblem, match="more than 10 elements"):
        check_model_file(path)


def test_a_declared_encoding(tmp_path):
    """The names of a file in latin-1 are read; Drake gets its text in UTF-8."""
    head = '<?xml version="1.0" encoding="ISO-8859-1"?>'
    text = head + urdf().replace('link name="a"', 'link name="fü\xdf"')
    path = write(tmp_path, text.encode("latin-1"), "m.urdf")
    model = load(path)
    assert "fü\xdf" in model.text
    plant = MultibodyPlant(0.0)
    model.add_to(plant)
    assert plant.HasBodyNamed("fü\xdf")


@pytest.mark.parametrize(
    "encoding, words", [("klingon", "unknown encoding klingon"), ("ascii", "ASCII")]
)
def test_an_encoding_that_is_wrong(tmp_path, encoding, words):
    text = f'<?xml version="1.0" encoding="{encoding}"?>' + urdf("<\xdf/>")
    path = write(tmp_path, text.encode("latin-1"), "m.urdf")
    with pytest.raises(ModelProblem) as caught:
        check_model_file(path)
    assert_problem(caught, path, words)


@pytest.mark.parametrize("name", ["m.urdf", "m.sdf", "m.xml", "m.dmd.yaml"])
def test_a_pipe_is_not_read(tmp_path, name):
    """Reading a pipe that nobody writes to would never end."""
    os.mkfifo(tmp_path / name)
    with pytest.raises(ModelProblem) as caught:
        load(tmp_path / name)
    assert_problem(caught, tmp_path / name, "no regular file")


BOMB = "a: &a [x]\n" + "".join(
    f"{b}: &{b} [{', '.join(['*' + a] * 9)}]\n" for a, b in zip("abcdefgh", "bcdefghi")
)
"""Nine levels of nine aliases stand for 400 million entries."""


def test_anchors_in_directives(tmp_path):
    path = write(tmp_path, BOMB + "directives: *i\n", "m.dmd.yaml")
    with pytest.raises(ModelProblem) as caught:
        load(path)
    assert_problem(caught, path, "anchor or alias 'a'", "write what")


def test_anchors_beside_a_model(tmp_path):
    path = write(tmp_path, urdf(), "m.urdf")
    beside = write(tmp_path, BOMB, "m.drakebots.yaml")
    with pytest.raises(ModelProblem) as caught:
        load(path)
    assert_problem(caught, beside, "anchor or alias 'a'")


def test_huge_directives_are_refused(tmp_path):
    """YAML is slow to parse, so less of it is read."""
    path = write(tmp_path, "#" * (MAX_YAML + 1), "m.dmd.yaml")
    with pytest.raises(ModelProblem) as caught:
        check_model_file(path)
    assert_problem(caught, path, "larger than 1 MB")
