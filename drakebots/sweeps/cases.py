"""The cases of a sweep: one problem each, and a key that names its result.

cases = make_cases(problem, {"frequency": (2, 10), "weights.near": (0, 1)})
cases[0].label      # "frequency=2, weights.near=0"
cases[0].key        # 24 hexadecimal digits; equal problems have equal keys
"""

from __future__ import annotations

import dataclasses
import hashlib
import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from itertools import product
from pathlib import PurePath
from typing import Any

import numpy as np
import xarray as xr

from drakebots import __version__
from drakebots.core.errors import DrakebotsError, InvalidInput, UnknownName, check_names
from drakebots.core.fields import declared
from drakebots.core.units import si_factor
from drakebots.results import Result, file_hash


@dataclass(frozen=True)
class Case:
    """One case of a sweep.

    Attributes:
        values: value of each field that the sweep varies, by name.
        problem: the problem with these values.
        key: digest of the problem and of drakebots' version.
    """

    values: Mapping[str, Any]
    problem: Any
    key: str

    @property
    def label(self) -> str:
        """The values in one line: "frequency=2, surface=card"."""
        return ", ".join(f"{k}={label_of(v)}" for k, v in self.values.items())


def make_cases(problem: Any, over: Mapping[str, Sequence[Any]]) -> list[Case]:
    """All combinations of the values, the last field's varying fastest.

    Args:
        problem: a frozen dataclass.
        over: values by field; "weights.near" is a field of the problem's `weights`.

    Raises:
        UnknownName: for a field that the problem does not have.
        InvalidInput: for no values, a value given twice, or one that the problem
            refuses.
    """
    if not over:
        raise InvalidInput("a sweep needs values of a field; give over={field: values}")
    axes = {name: _axis(name, values) for name, values in over.items()}
    return [
        _case(problem, dict(zip(axes, values))) for values in product(*axes.values())
    ]


def _axis(name: str, values: Any) -> tuple:
    if isinstance(values, str | bytes) or not np.iterable(values):
        raise InvalidInput(f"{name}: {values!r} is no list of values; give a tuple")
    values = tuple(v.item() if isinstance(v, np.generic) else v for v in values)
    labels = [label_of(value) for value in values]
    if not values or len(set(labels)) < len(labels):
        raise InvalidInput(
            f"{name}: needs one or more different values, got {', '.join(labels)}"
        )
    return values


def _case(problem: Any, values: dict[str, Any]) -> Case:
    made = problem
    try:
        for name, value in values.items():
            made = replaced(made, name, value)
    except UnknownName:
        raise
    except (DrakebotsError, TypeError, ValueError) as error:
        label = Case(values, None, "").label
        raise InvalidInput(f"the case {label} is no problem: {error}") from error
    return Case(values, made, case_key(made))


def replaced(problem: Any, name: str, value: Any) -> Any:
    """The problem with another value of one field, "weights.near", say.

    Raises:
        UnknownName: for a field that it does not have.
    """
    first, _, rest = name.partition(".")
    if not dataclasses.is_dataclass(problem) or isinstance(problem, type):
        raise InvalidInput(f"{name}: {type(problem).__name__} is no frozen dataclass")
    known = [field.name for field in dataclasses.fields(problem) if field.init]
    check_names(f"field of {type(problem).__name__}", [first], known)
    if rest:
        value = replaced(getattr(problem, first), rest, value)
    return dataclasses.replace(problem, **{first: value})


def label_of(value: Any) -> str:
    """A value as a short text."""
    if isinstance(value, float):
        return f"{value:.12g}"
    named = "name" in getattr(value, "__dataclass_fields__", ())
    name = value.name if named else None  # that of a kind names no value
    text = name if isinstance(name, str) else str(value)
    return text if len(text) <= 60 else text[:48] + "_" + case_key(value)[:11]


def unit_of(problem: Any, name: str) -> str:
    """The SI unit of a field, "Hz"; or "1" where it has none, or several."""
    *owners, last = name.split(".")
    for owner in owners:
        problem = getattr(problem, owner)
    unit = declared(type(problem))[last].unit
    try:
        return unit if unit and si_factor(unit) == 1 else "1"
    except InvalidInput:
        return "1"


# --- keys -------------------------------------------------------------------


def case_key(problem: Any) -> str:
    """A digest of a problem: equal for equal problems, in any process.

    Files count by their content and name, wherever they are; whole floats as integers;
    a result by all it holds. The version of drakebots counts too, so that results of
    an older one are made again.

    Raises:
        InvalidInput: for a problem that holds something else than numbers, text,
            arrays, results, and dataclasses, mappings and lists of them.
    """
    plain = json.dumps([__version__, _plain(problem, "the problem")], sort_keys=True)
    return hashlib.sha256(plain.encode()).hexdigest()[:24]


def _plain(value: Any, where: str) -> Any:
    """The value as JSON with a tag wherever two kinds could look alike."""
    value = value.value if isinstance(value, Enum) else value
    if isinstance(value, np.generic):
        value = value.item()
    if value is None or isinstance(value, bool | int):
        return value
    if isinstance(value, float):
        return int(value) if value.is_integer() else value
    if isinstance(value, str | PurePath):
        return _text(value)
    if isinstance(value, np.ndarray):
        return _array(value)
    if isinstance(value, Result):
        parts = (value.kind, value.model, value.data, value.residuals, value.metrics)
        return ["Result", *(_plain(part, where) for part in parts)]
    if isinstance(value, xr.Dataset):
        entries = sorted(value.variables.items())
        return [[str(n), list(v.dims), _array(v.values)] for n, v in entries]
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        kind = f"{type(value).__module__}.{type(value).__qualname__}"
        names = [field.name for field in dataclasses.fields(value) if field.compare]
        return [kind, {n: _plain(getattr(value, n), f"{where}.{n}") for n in names}]
    if isinstance(value, Mapping):
        pairs = [
            [_plain(k, where), _plain(v, f"{where}.{k}")] for k, v in value.items()
        ]
        return ["mapping", sorted(pairs, key=json.dumps)]
    if isinstance(value, list | tuple):
        return [_plain(item, f"{where}[{k}]") for k, item in enumerate(value)]
    raise InvalidInput(
        f"{where}: {type(value).__name__} has no lasting key; use numbers, text, "
        "arrays, results and dataclasses of them"
    )


def _text(value: str | PurePath) -> Any:
    text = str(value)
    # Only a text with an ending is taken for a file; a long one is none, and too long
    # for the file system to be asked.
    if len(text) < 1000 and PurePath(text).suffix and os.path.isfile(text):
        return ["file", os.path.basename(text), file_hash(text)]
    return text


def _array(values: np.ndarray) -> Any:
    values = np.ascontiguousarray(values)
    kept = values.astype(str) if values.dtype.kind == "O" else values
    digest = hashlib.sha256(kept.tobytes()).hexdigest()
    return [kept.dtype.str, list(kept.shape), digest]
