"""Values from files and words, and what a file says of a value."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from drakebots.core.checks import in_unit, positive, whole
from drakebots.core.convert import (
    as_yaml,
    build,
    changed_by_word,
    from_word,
    schema,
)
from drakebots.core.errors import InvalidInput, UnknownName
from drakebots.core.fields import checked
from drakebots.core.files import parse_yaml


class Ground:
    """Any ground."""


@checked("floor")
class Floor(Ground):
    height: Annotated[float, positive("m")] = 1.0
    """Its height."""


@checked("hill")
class Hill(Ground):
    angle: Annotated[float, in_unit("rad")]
    """Its slope."""


@checked("formula")
class Formula(Ground):
    height: Callable[[float], float]
    """Its height over x."""


@dataclass(frozen=True)
class Weights:
    effort: float = 1.0
    slack: tuple[float, ...] = (1.0, 10.0)


@checked("walk")
class Walk:
    stride: Annotated[float | None, positive("m")] = None
    steps: Annotated[int, whole(1)] = 2
    ground: Ground = Floor()
    weights: Weights = Weights()
    pose: Mapping[str, float] | None = None
    course: Sequence[tuple[float, float]] = ()
    file: Path | None = None


@checked("heavy walk")
class Heavy:
    weights: Weights = Weights(effort=7.0)
    ground: Ground = Floor()


grounds = st.one_of(
    st.builds(Floor, st.floats(1e-3, 9.0)), st.builds(Hill, st.floats(-1.0, 1.0))
)
walks = st.builds(
    Walk,
    stride=st.none() | st.floats(1e-3, 9.0),
    steps=st.integers(1, 99),
    ground=grounds,
    weights=st.builds(Weights, st.floats(0, 9), st.tuples(st.floats(0, 9))),
    pose=st.none() | st.dictionaries(st.text("abc", min_size=1), st.floats(-9, 9)),
    course=st.lists(st.tuples(st.floats(-9, 9), st.floats(-9, 9))).map(tuple),
    file=st.none() | st.just(Path("a.yaml")),
)


@given(walks)
def test_what_is_written_is_read_as_it_was(walk):
    assert build(Walk, as_yaml(walk)) == walk


def test_what_no_file_can_hold_costs_no_result():
    said = as_yaml(Walk(ground=Formula(abs)))
    assert said["ground"] == {"Formula": {"height": "<built-in function abs>"}}


def test_a_mapping_changes_the_fields_own_default():
    """And not that of the class: a walk's weights are its own."""
    read = build(Heavy, {"weights": {"slack": [5]}, "ground": {"Hill": {"angle": 0}}})
    assert read.weights == Weights(effort=7.0, slack=(5.0,))
    assert read.ground == Hill(0.0)


def test_a_class_is_named_where_a_field_takes_several():
    said = as_yaml(Walk(ground=Hill(0.1)))
    assert said["ground"] == {"Hill": {"angle": 0.1}}
    assert said["weights"] == {"effort": 1.0, "slack": [1.0, 10.0]}
    assert as_yaml({"a": np.array([1, 2])}) == {"a": [1, 2]}
    read = build(Walk, parse_yaml("{ground: Floor, course: [[1, 2]], steps: 3}"))
    assert read == Walk(course=((1.0, 2.0),), steps=3)


@pytest.mark.parametrize(
    ("kind", "word", "unit", "value"),
    [
        (float, "2cm", "m", 0.02),
        (float | str, "2cm", "m", 0.02),
        (float | str, "soon", "s", "soon"),
        (int, "3", "", 3),
        (tuple[float, float], "1mm,2", "m", (0.001, 2.0)),
        (Sequence[float], "1,2,3", "", (1.0, 2.0, 3.0)),
        (np.ndarray, "1,2", "", (1.0, 2.0)),
        (tuple[tuple[float, float], ...], "0,1cm 2,3", "m", ((0.0, 0.01), (2.0, 3.0))),
        (Mapping[str, float], "a=1deg,b=2", "rad", {"a": np.pi / 180, "b": 2.0}),
        (float | Mapping[str, float], "a=1", "N", {"a": 1.0}),
        (float | Mapping[str, float], "1", "N", 1.0),
        (Ground, "Hill:angle=2deg", "", Hill(np.radians(2))),
        (Ground, "Floor", "", Floor()),
        (Ground, "{Hill: {angle: 0.5}}", "", Hill(0.5)),
    ],
)
def test_words(kind, word, unit, value):
    found = from_word(kind, word, "--x", unit)
    if isinstance(value, tuple):
        np.testing.assert_allclose(found, value, rtol=1e-12)
    else:
        assert found == value


@pytest.mark.parametrize(
    ("kind", "word", "says"),
    [
        (float, "2kg", "--x: 'kg' is no unit for it; use m"),
        (float, "inf", "not finite"),
        (int, "1.5", "no whole number"),
        (tuple[float, float], "1", "must be 2 values A,B"),
        (Mapping[str, float], "a", "name=value"),
        (Ground, "Hill:slope=1", "'slope'"),
        (Ground, "Cliff", "Floor, Formula, Hill"),
        (Ground, "Floor:height=-1", "height must be > 0 m"),
        (Ground, "{Hill: 1}", "a mapping of names"),
    ],
)
def test_bad_words(kind, word, says):
    with pytest.raises((InvalidInput, UnknownName), match=says):
        from_word(kind, word, "--x", "m")


def test_a_word_changes_some_fields():
    weights = Weights(effort=3.0)
    assert changed_by_word(weights, "effort=2", "--w") == Weights(effort=2.0)
    slack = changed_by_word(weights, "{slack: [5]}", "--w")
    assert slack == Weights(3.0, (5.0,))
    with pytest.raises(UnknownName, match="effort"):
        changed_by_word(weights, "efort=2", "--w")


def test_the_schema_says_what_construction_checks():
    found = schema(Walk)["$defs"]
    assert set(found) == {"Walk", "Floor", "Hill", "Formula", "Weights"}
    said = found["Walk"]
    assert said["additionalProperties"] is False and said["required"] == []
    properties = said["properties"]
    assert properties["steps"] == {
        "type": "integer",
        "minimum": 1,
        "maximum": 2**31 - 1,
        "default": 2,
    }
    stride, null = properties["stride"]["anyOf"]
    assert stride == {"type": "number", "exclusiveMinimum": 0, "unit": "m"}
    assert null == {"type": "null"}
    names, floor, hill, _ = properties["ground"]["anyOf"]
    assert names == {"enum": ["Floor"]} and hill["required"] == ["Hill"]
    assert floor["properties"]["Floor"] == {"$ref": "#/$defs/Floor"}
    height = found["Floor"]["properties"]["height"]
    assert height["description"] == "Its height." and height["default"] == 1.0
    slack = found["Weights"]["properties"]["slack"]
    assert slack == {"type": "array", "items": {"type": "number"}}
