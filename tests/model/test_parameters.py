"""Parameter files of the model folders: numbers, arrays and tables in SI."""

import numpy as np
import pytest
import yaml

from drakebots.core.errors import ModelProblem
from drakebots.model import Parameters, package_root, parameters_of

FILE = """
name: robot
bend: {value: 100, unit: deg, source: US}
course: {value: [[65, 0], [65, 65]], unit: cm}
radius: {value: {leg: 8, foot: 14}, unit: mm}
cup: {value: {torsion: 1.7, mass: 2}, unit: {torsion: '1', mass: g}}
links:
  value: {trunk: {mass: 2, com: [1, 2, 3], parent: world}}
  unit: {mass: g, com: mm}
encoder:
  resistance: {value: 10.0e3, unit: Ohm}
half: {value: {leg: 8, foot: 14}, unit: {leg: mm}}
text: {value: wide, unit: mm}
mixed: {value: [1, wide], unit: mm}
nan: {value: [1, .nan], unit: mm}
odd: {value: 1, unit: furlong}
bare: 3
"""


@pytest.fixture
def parameters(tmp_path):
    (tmp_path / "params.yaml").write_text(FILE)
    return Parameters(tmp_path)


def test_si(parameters):
    assert parameters.number("bend") == 100.0 * (np.pi / 180)
    assert np.array_equal(parameters.array("course"), [[0.65, 0], [0.65, 0.65]])
    assert parameters.table("radius") == {"leg": 8e-3, "foot": 14e-3}
    assert parameters.table("cup") == {"torsion": 1.7, "mass": 2e-3}
    assert parameters.number("encoder", "resistance") == 1e4
    trunk = parameters.table("links")["trunk"]
    assert trunk["mass"] == 2e-3 and trunk["parent"] == "world"
    assert np.array_equal(trunk["com"], 1e-3 * np.array([1, 2, 3]))
    assert parameters.raw["name"] == "robot"


@pytest.mark.parametrize(
    ("read", "names", "says"),
    [
        ("number", ("none",), "none: is missing"),
        ("number", ("encoder", "none"), "encoder.none: is missing"),
        ("number", ("bare",), "bare: needs a number `value`"),
        ("number", ("text",), "text: needs a number"),
        ("number", ("odd",), "furlong"),
        ("array", ("bare",), "bare: needs a `value` and a `unit`"),
        ("array", ("bend",), "bend: must be a list"),
        ("array", ("mixed",), "mixed: must be finite numbers"),
        ("array", ("nan",), "nan: must be finite numbers"),
        ("table", ("course",), "course: must be numbers by name"),
        ("table", ("half",), "half.foot: has no unit"),
    ],
)
def test_refused(parameters, read, names, says):
    with pytest.raises(ModelProblem, match=r"params\.yaml") as caught:
        getattr(parameters, read)(*names)
    assert says in str(caught.value)


def test_files_that_are_none(tmp_path):
    with pytest.raises(ModelProblem, match="cannot be read"):
        Parameters(tmp_path)
    (tmp_path / "params.yaml").write_text("[1, 2]")
    with pytest.raises(ModelProblem, match="entries"):
        Parameters(tmp_path / "params.yaml")


def test_every_quantity_of_the_stored_models():
    """All that is written as {value, unit} and in known units can be read."""
    for path in sorted(package_root().glob("*/params.yaml")):
        raw, parameters = yaml.safe_load(path.read_text()), Parameters(path)
        for name, node in raw.items():
            if not isinstance(node, dict) or "unit" not in node:
                continue
            if (path.parent.name, name) in {("gecko", "weights"), ("hamr", "joints")}:
                continue  # units by position, and by the type of a joint
            value = node["value"]
            if isinstance(value, dict):
                assert parameters.table(name).keys() == value.keys()
            elif isinstance(value, list):
                assert parameters.array(name).shape == np.shape(value)
            else:
                assert np.isfinite(parameters.number(name))
    assert parameters_of("gecko") is parameters_of("gecko")
