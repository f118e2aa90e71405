"""The YAML beside a model: feet, points and loops."""

import numpy as np
import pytest

from drakebots.core.errors import ModelProblem, UnknownName
from drakebots.model import Point, Reading, model_stem, read_sidecar, sidecar_path
from drakebots.model.description import parse_sidecar
from tests.helpers.model_files import assert_problem, write

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
    assert read_sidecar(tmp_path / "none.drakebots.yaml") == Reading()
    assert read_sidecar(write(tmp_path, "")) == Reading()
    assert read_sidecar(write(tmp_path, "# nothing\n")) == Reading()


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
        (LOOP + ", axis: [0, .nan, 0]}}", ["loop l axis must"]),
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
    assert parse_sidecar(None) == Reading()
    with pytest.raises(UnknownName, match="entry of the file"):
        parse_sidecar({"foot": {}})


def test_points_are_frozen():
    """A point of a model does not move after it was checked."""
    point = Point("a", "b", [1, 2, 3])
    with pytest.raises(ValueError):
        point.p_BF[0] = 5
