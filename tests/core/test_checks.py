"""Rules for fields: what they take, what they store, what they say."""

from __future__ import annotations

import numpy as np
import pytest

from drakebots.core.checks import (
    array,
    between,
    check_knots,
    check_log,
    check_memory,
    check_value,
    each,
    finite,
    flag,
    instance,
    interval,
    non_negative,
    numeric,
    one_of,
    optional,
    positive,
    text,
    whole,
)
from drakebots.core.errors import InvalidInput, UnknownName

NO_NUMBERS = (None, "1", True, np.bool_(True), 1j, [1], np.nan, np.inf, 10**400)


@pytest.mark.parametrize(
    ("rule", "good", "bad", "says"),
    [
        (positive("m"), [1, 0.5, np.float32(2), np.array(3.0)], [0, -1], "> 0 m"),
        (non_negative(), [0, 1], [-1e-9], ">= 0"),
        (finite("rad"), [-3, 0, 4.0], [], "a finite number [rad]"),
        (between(0, 1), [0, 0.5, 1], [-0.1, 1.1], "within 0..1"),
        (between(0, 1, "m", open_ends=True), [0.5], [0, 1], "m, ends excluded"),
        (whole(1), [1, 2.0, np.int64(3)], [0, 1.5, -1], "a whole number >= 1"),
        (whole(0, 4), [0, 4], [5], "a whole number >= 0 and <= 4"),
    ],
)
def test_numbers(rule, good, bad, says):
    for value in good:
        kept = check_value("x", value, rule)
        assert kept == value and not isinstance(kept, np.ndarray)
    for value in (*bad, *NO_NUMBERS):
        with pytest.raises(InvalidInput, match="x must be") as caught:
            check_value("x", value, rule)
        assert says in str(caught.value) and "\n" not in str(caught.value)


def test_numbers_that_nothing_has_are_refused():
    """Their squares, reciprocals and counts would not be numbers any more."""
    numbers = (positive("m"), non_negative(), finite("N m"))
    for rule, value in [
        *((rule, x) for rule in numbers for x in (1e300, 10**30)),
        (positive("s"), 1e-300),
        (array((2,), "Pa"), [1.0, -1e300]),
        (whole(0), 10**30),
    ]:
        with pytest.raises(InvalidInput, match="x must be"):
            check_value("x", value, rule)
    assert check_value("x", 0.0, finite("s")) == 0.0
    assert check_value("x", -1e-9, finite("m")) == -1e-9


def test_what_does_not_fit_into_memory_is_refused_with_its_size():
    check_memory("a table", 1e6)
    with pytest.raises(InvalidInput, match=r"a table needs 8e\+21 GB, .* GB"):
        check_memory("a table", 1e30)
    with pytest.raises(InvalidInput, match=r"a log of 1e\+12 samples over 1e\+09 s"):
        check_log(1e9, 1e-3)
    with pytest.raises(InvalidInput, match="a plan of 1000000000 knots"):
        check_knots(10**9)


ODD = (None, 1j, b"1", "x", {}, [[]], [[1, 2], [3]], np.array([1j]), np.zeros((2, 3)))


@pytest.mark.parametrize(
    ("rule", "good"),
    [
        (array((None,), of=int), [1, 2]),
        (interval("m"), (0, 1)),
        (instance(dict, "a mapping of names"), None),
        (each(positive(), "lengths"), (0.5, 1)),
    ],
)
def test_objects_of_other_types(rule, good):
    """Nothing of numpy's words, and scalars of numpy are numbers."""
    if good is not None:
        kept = check_value("x", np.array(good), rule)
        assert np.array_equal(kept, good)
    for value in (*ODD, np.float64(1), 10**30):
        if good is None and isinstance(value, dict):
            continue
        with pytest.raises(InvalidInput, match=r"^x must be"):
            check_value("x", value, rule)
    with pytest.raises(InvalidInput, match="x must be an array of numbers"):
        check_value("x", [[1], ["a"]], numeric())


def test_flags_texts_and_choices():
    assert check_value("x", np.bool_(True), flag()) is True
    assert check_value("x", None, optional(flag())) is None
    for value in (1, "yes", None):
        with pytest.raises(InvalidInput, match="true or false"):
            check_value("x", value, flag())
    name = text(r"\w+", "a name of letters")
    assert check_value("x", "a_1", name) == "a_1" == check_value("x", "a_1", text())
    for value in ("", "a b", 3, None):
        with pytest.raises(InvalidInput, match="x must be a name of letters"):
            check_value("x", value, name)
    gait = one_of("gait", ["trot", "pace"])
    assert check_value("x", "trot", gait) == "trot"
    with pytest.raises(UnknownName, match="did you mean 'trot'"):
        check_value("x", "trott", gait)
    with pytest.raises(UnknownName, match="pace, trot"):
        check_value("x", ["trot"], gait)


@pytest.mark.parametrize(
    "value",
    [
        [1, 2],
        [1, 2, np.nan],
        [[1, 2, 3]],
        [1, 2, "3"],
        ["1", "2", "3"],
        [True, False, True],
        [1, [2], 3],
        [1, 2, 1j],
        "abc",
        None,
    ],
)
def test_no_array_of_three(value):
    with pytest.raises(InvalidInput, match=r"p must be 3 finite numbers \[m\]"):
        check_value("p", value, array((3,), "m"))


def test_the_entries_of_an_array():
    rule = array((None,), "m", entry=positive("m"))
    assert check_value("p", (), rule).shape == (0,)
    assert np.array_equal(check_value("p", (1, 2), rule), [1, 2])
    with pytest.raises(InvalidInput, match="p must be > 0 m"):
        check_value("p", (1, -2, 3), rule)


def test_long_values_are_cut():
    with pytest.raises(InvalidInput) as caught:
        check_value("p", list(range(1000)), array((3,)))
    assert len(str(caught.value)) < 130 and str(caught.value).endswith("...")
