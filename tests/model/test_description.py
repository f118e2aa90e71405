"""The YAML beside a model, and the checks of a model file before Drake reads it."""

import os

import numpy as np
import pytest

from drakebots.core.errors import ModelProblem, UnknownName
from drakebots.model import check_file
from drakebots.model.check_file import MAX_BYTES, check_model_file, drake_tags
from drakebots.model.description import Point, Sidecar, parse_sidecar, read_sidecar
from drakebots.model.find import model_stem, sidecar_path

GOOD = """
feet:
  FL: {body: shank, p: [0, 0, -0.2], radius: 0.01}
  FR: {body: shank2, p: [0, 0, -0.2]}
points:
  marker: {body: trunk, p: [0.1, 0, 1e-3]}
loops:
  four_bar: {A: rod, p_A: [0, 0, -0.1], B: shank, p_B: [0.02, 0, 0], axis: [0, 2, 0]}
  skew:
    A: rod
    p_A: [0, 0, 0]
    B: trunk
    p_B: [0, 0, 0]
    axis_A: [1, 0, 0]
    axis_B: [0, 1, 0]
    rows: ball
    in_file: true
"""
LOOP = "loops: {l: {A: a, p_A: [0, 0, 0], B: b, p_B: [0, 0, 0]"


def assert_problem(caught, path, *words):
    message = str(caught.value)
    assert "\n" not in message and caught.value.path == path
    assert message.startswith(f"{path}: ")
    for word in words:
        assert word in message.removeprefix(str(path)), message


def write(folder, text, name="robot.drakebots.yaml"):
    path = folder / name
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return path


def test_good_sidecar(tmp_path):
    """Feet with radii, points and loops arrive with their numbers, in SI."""
    sidecar = read_sidecar(write(tmp_path, GOOD))
    assert [foot.name for foot in sidecar.feet] == ["FL", "FR"]
    foot = sidecar.feet[0]
    assert (foot.body, foot.radius) == ("shank", 0.01)
    np.testing.assert_array_equal(foot.p_BF, [0, 0, -0.2])
    assert sidecar.feet[1].radius == 0
    np.testing.assert_array_equal(sidecar.points[0].p_BF, [0.1, 0, 1e-3])
    bar, skew = sidecar.loops
    assert (bar.name, bar.body_A, bar.body_B) == ("four_bar", "rod", "shank")
    assert bar.rows == "hinge" and not bar.in_file
    np.testing.assert_array_equal(bar.axis_A, [0, 1, 0])
    np.testing.assert_array_equal(bar.axis_B, [0, 1, 0])
    np.testing.assert_array_equal(bar.p_AP, [0, 0, -0.1])
    np.testing.assert_array_equal(skew.axis_A, [1, 0, 0])
    assert skew.rows == "ball" and skew.in_file


def test_no_sidecar(tmp_path):
    """A model without a YAML beside it, or with an empty one, has no extras."""
    assert read_sidecar(tmp_path / "none.drakebots.yaml") == Sidecar()
    assert read_sidecar(write(tmp_path, "")) == Sidecar()
    assert read_sidecar(write(tmp_path, "# nothing\n")) == Sidecar()


def test_sidecar_name(tmp_path):
    """The YAML lies beside the model under its stem, whatever its ending."""
    for name in ("r.urdf", "r.sdf", "r.xml", "r.mjcf", "r.dmd.yaml", "r.URDF"):
        assert model_stem(tmp_path / name) == "r"
        assert sidecar_path(tmp_path / name) == tmp_path / "r.drakebots.yaml"


@pytest.mark.parametrize(
    "text, words",
    [
        ("foots: {}", ["the file", "foots", "feet"]),
        ("feet: {a: {body: b, p: [0, 0, 0], r: 1}}", ["entry of feet.a", "'r'"]),
        (LOOP + ", row: ball}}", ["entry of loop l", "'row'", "rows"]),
        ("feet: {a: {p: [0, 0, 0]}}", ["feet.a", "needs `body`"]),
        ("points: {a: {body: b}}", ["points.a", "needs `p`"]),
        ("loops: {l: {A: a, p_A: [0, 0, 0], B: b}}", ["loop l", "needs `p_B`"]),
        ("loops: {l: {p_A: [0, 0, 0]}}", ["loop l", "needs `A`"]),
        (
            "feet: {a: {body: b, p: [0, .nan, 0]}}",
            ["feet.a p must be 3 finite"],
        ),
        (
            "feet: {a: {body: b, p: [0, 0, .inf]}}",
            ["feet.a p must be 3 finite"],
        ),
        ("feet: {a: {body: b, p: [0, 0]}}", ["feet.a p must be 3 finite"]),
        ("feet: {a: {body: b, p: 3}}", ["feet.a p must be 3 finite"]),
        ("feet: {a: {body: b, p: [0, 0, 0], radius: -1}}", ["point a", "radius"]),
        ("feet: {a: {body: b, p: [0, 0, 0], radius: .nan}}", ["feet.a", "radius"]),
        (LOOP + ", axis: [0, 0, 0]}}", ["loop l", "axis_A"]),
        (LOOP + ", axis: [0, .nan, 0]}}", ["loop l", "axis_A"]),
        (LOOP + ", axis_B: [0, 1]}}", ["loop l", "axis_B"]),
        (LOOP + ", rows: hing}}", ["loop l", "hing", "ball"]),
        ("- feet", ["the file: needs"]),
        ("feet: [1, 2]", ["feet: needs `name: value`"]),
        ("feet: {a: [0, 0, 0]}", ["feet.a: needs `name: value`"]),
        ("loops: 5", ["loops: needs `name: value`"]),
        ("loops: {l: 5}", ["loop l: needs `name: value`"]),
        ("feet: {a: [", ["is not YAML"]),
        ("feet: !!python/object:os.system {}", ["is not YAML"]),
        (b"feet: \xff\xfe", ["cannot be read"]),
    ],
)
def test_bad_sidecars(tmp_path, text, words):
    """What is not a description is refused with one line naming the entry."""
    path = write(tmp_path, text)
    with pytest.raises(ModelProblem) as caught:
        read_sidecar(path)
    assert_problem(caught, path, *words)


@pytest.mark.parametrize(
    "text, entry",
    [
        ("feet: {a: {body: b, p: [0, 0, x]}}", "a"),
        ("feet: {a: {body: b, p: [0, 0, 0], radius: big}}", "a"),
        (LOOP + ", axis: [x, 0, 0]}}", "l"),
        (LOOP + ", in_file: 'false'}}", "in_file"),
    ],
)
def test_words_for_numbers(tmp_path, text, entry):
    """A word where a number belongs is refused with one line."""
    path = write(tmp_path, text)
    with pytest.raises(ModelProblem) as caught:
        read_sidecar(path)
    assert_problem(caught, path, entry)


def test_parse_without_a_file():
    """The same checks for a document that came from no file."""
    assert parse_sidecar(None) == Sidecar()
    with pytest.raises(UnknownName, match="entry of the file"):
        parse_sidecar({"foot": {}})


def test_points_are_frozen():
    """A point of a model does not move after it was checked."""
    point = Point("a", "b", [1, 2, 3])
    with pytest.raises(ValueError):
        point.p_BF[0] = 5


# ------------------------------------------------------------------ model files
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
        ("m.xml", "<mujoco><worldbody/></mujoco>"),
        ("m.dmd.yaml", "directives:\n- add_model: {name: a, file: b}\n"),
        ("m.dmd.yaml", "directives:\n- x: !Rpy {deg: [0, 0, 90]}\n"),
    ],
)
def test_good_files_pass(tmp_path, name, text):
    """Good models pass, infinite joint limits and comments included."""
    check_model_file(write(tmp_path, text, name))


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
        ("m.sdf", sdf("<drake:gear_ration>1</drake:gear_ration>"), ["gear_ration"]),
        ("m.urdf", urdf("<transmision/>"), ["transmision"]),
        ("m.urdf", "<!DOCTYPE robot>" + urdf(), ["DOCTYPE"]),
        (
            "m.urdf",
            '<!DOCTYPE robot [<!ENTITY x "y">]>' + urdf("&x;"),
            ["DOCTYPE"],
        ),
        ("m.urdf", urdf() + "\0", ["NUL"]),
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


def test_the_tags_of_the_installed_drake():
    assert {"ball_constraint", "gear_ratio", "linear_bushing_rpy"} <= drake_tags()
    assert not {"gear_ration", ""} & drake_tags()


NEWER = "<drake:distance_constraint/>"


def test_a_tag_of_a_newer_drake(tmp_path, monkeypatch):
    """It is good exactly where the installed Drake reads it."""
    path = write(tmp_path, sdf(NEWER), "m.sdf")
    (tmp_path / "libdrake.so").write_bytes(b"\0drake:distance_constraint\0")
    newer, unknown = drake_tags(tmp_path), drake_tags(tmp_path / "none")
    monkeypatch.setattr(check_file, "drake_tags", lambda: newer)
    assert check_model_file(path) == ()
    monkeypatch.setattr(check_file, "drake_tags", lambda: unknown)
    (note,) = check_model_file(path)
    assert "<drake:distance_constraint> is passed on" in note
    monkeypatch.setattr(check_file, "drake_tags", lambda: frozenset({"joint"}))
    with pytest.raises(ModelProblem, match="installed Drake would ignore"):
        check_model_file(path)


def test_a_tag_without_its_prefix(tmp_path):
    path = write(tmp_path, urdf("<ball_constraint/>"), "m.urdf")
    with pytest.raises(ModelProblem, match=r"write <drake:ball_constraint>, or"):
        check_model_file(path)


def test_huge_file_is_refused(tmp_path):
    """A file larger than any model is not read at all."""
    path = tmp_path / "m.urdf"
    with path.open("wb") as file:
        os.truncate(file.fileno(), MAX_BYTES + 1)
    with pytest.raises(ModelProblem) as caught:
        check_model_file(path)
    assert_problem(caught, path, "larger than 50 MB")
