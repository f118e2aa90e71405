"""Old-Drake URDFs and arithmetic in them, at random."""

from __future__ import annotations

import math
import re
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from drakebots import load
from drakebots.core.errors import InvalidInput, ModelProblem
from drakebots.formats.read.urdf import arithmetic
from tests.helpers.old_urdf_samples import TINY, written

_numbers = st.one_of(
    st.just("pi"),
    st.integers(0, 999).map(str),
    st.floats(0, 1e6, allow_subnormal=False).map(repr),
    st.sampled_from([".5", "3.", "2E-1", "1e+3"]),
)
_expressions = st.recursive(
    _numbers,
    lambda inner: st.one_of(
        st.tuples(inner, st.sampled_from(["+", "-", "*", "/", " - "]), inner).map(
            "".join
        ),
        inner.map(lambda text: f"({text})"),
        inner.map(lambda text: f"-{text}"),
    ),
    max_leaves=8,
)


@given(_expressions)
def test_arithmetic_agrees_with_python(text):
    try:
        expected = float(eval(text, {"pi": math.pi}))
    except (ZeroDivisionError, OverflowError):
        expected = math.nan
    if math.isfinite(expected) and len(text) <= 200:
        assert arithmetic(text) == pytest.approx(expected, rel=1e-12)
    else:
        with pytest.raises(InvalidInput):
            arithmetic(text)


@given(st.text(alphabet="0123456789.eE+-*/() pi", max_size=30))
def test_arithmetic_never_fails_otherwise(text):
    try:
        assert math.isfinite(arithmetic(text))
    except InvalidInput as error:
        assert "\n" not in str(error)


_PIECES = re.findall(r"<[^>]*>|[^<]+", TINY)


@st.composite
def mutated(draw) -> bytes:
    """TINY with pieces or bytes deleted, doubled, exchanged or overwritten."""
    pieces = list(_PIECES)
    for _ in range(draw(st.integers(0, 2))):
        i, j = (draw(st.integers(0, len(pieces) - 1)) for _ in range(2))
        match draw(st.sampled_from(["delete", "double", "swap"])):
            case "delete":
                pieces.pop(i)
            case "double":
                pieces.insert(j, pieces[i])
            case "swap":
                pieces[i], pieces[j] = pieces[j], pieces[i]
    data = bytearray("".join(pieces).encode())
    for _ in range(draw(st.integers(0, 3))):
        i = draw(st.integers(0, len(data) - 1))
        match draw(st.sampled_from(["delete", "overwrite", "digit"])):
            case "delete":
                del data[i : i + draw(st.integers(1, 4))]
            case "overwrite":
                data[i] = draw(st.integers(0, 255))
            case "digit":
                digits = [k for k, byte in enumerate(data) if chr(byte).isdigit()]
                data[draw(st.sampled_from(digits))] = ord(
                    draw(st.sampled_from("09-e."))
                )
        if not data:
            break
    return bytes(data)


def loads_or_refuses(folder: Path, data: bytes) -> None:
    try:
        load(written(folder, data))
    except ModelProblem as error:
        assert "\n" not in str(error)


_settings = settings(
    deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)


@settings(_settings, max_examples=50)
@given(data=mutated())
def test_mutated_files_load_or_are_refused(tmp_path, data):
    loads_or_refuses(tmp_path, data)


@pytest.mark.slow
@settings(_settings, max_examples=1000)
@given(data=mutated())
def test_many_mutated_files_load_or_are_refused(tmp_path, data):
    loads_or_refuses(tmp_path, data)
