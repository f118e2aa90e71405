"""Layout of the data of each kind of result, checked before any use of them.

A file may hold anything that netCDF can, and is summarized as it is. Plots, pages,
tracks and exports take variables for what their names promise, so :func:`check_layout`
looks at dimensions, units, labels and numbers first, and says in a line what is wrong.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from drakebots.core.errors import InvalidInput
from drakebots.core.files import read_yaml
from drakebots.results.container import AGAIN
from drakebots.results.result import Result

_TABLES = read_yaml(Path(__file__).with_name("layout.yaml"))

LARGEST = 1e15
"""Largest number that is drawn or executed: graphics square it, in single precision."""

_PROMISES = {
    name: (
        [tuple(words.partition("[")[0].split()) for words in where.split(",")],
        where.partition("[")[2].rstrip("]"),
    )
    for where, names in _TABLES["dimensions"].items()
    for name in names.split()
}
"""Dimensions that a variable may have, and its unit, by its name."""


def with_units(variables: Mapping[str, tuple[Any, Any, str]]) -> dict[str, tuple]:
    """Variables for a dataset from (dimensions, values, unit) of each."""
    return {name: (dims, x, {"units": u}) for name, (dims, x, u) in variables.items()}


def check_layout(result: Result) -> None:
    """Refuses a result whose data is not what its kind promises.

    Kinds of your own are not looked at.

    Raises:
        InvalidInput: naming the variable, and what it must be.
    """
    if result.kind not in _TABLES["needed"]:
        return
    data = result.data
    where = f"this {result.kind} cannot be drawn or executed: "
    words, groups = _TABLES["needed"][result.kind].split(), _TABLES["groups"]
    needed = " ".join(groups.get(word, word) for word in words).split()
    one, *others = _TABLES["together"].get(result.kind, " ").split(" ")
    needed += others if one in data.variables else []
    for name in needed:
        if name not in data.variables:
            raise InvalidInput(f"{where}it has no {name}; {AGAIN}")
    sizes = _TABLES["sizes"] | {"axis": 2 if result.kind.startswith("gecko.") else 3}
    for dim, size in sizes.items():
        if data.sizes.get(dim, size) != size:
            raise InvalidInput(f"{where}{dim} has {data.sizes[dim]} items; {AGAIN}")
    for dim in set(_TABLES["labelled"].split()) & set(data.dims):
        labels = data[dim].values
        if labels.dtype.kind != "U" or len(set(labels.tolist())) < labels.size:
            raise InvalidInput(f"{where}each {dim} needs a name of its own; {AGAIN}")
    for name in map(str, data.variables):
        if name not in _PROMISES:
            continue
        found, (allowed, unit) = data[name], _PROMISES[name]
        if found.dims not in allowed:
            wanted = " or ".join(" x ".join(dims) for dims in allowed)
            raise InvalidInput(f"{where}{name} must be {wanted}; {AGAIN}")
        if unit and found.attrs.get("units") != unit:
            raise InvalidInput(f"{where}{name} must be in {unit}; {AGAIN}")
        if found.dtype.kind not in "fiub":
            raise InvalidInput(f"{where}{name} must be numbers; {AGAIN}")
        largest = abs(found.values).max(initial=0.0)
        if not (np.isfinite(found.values).all() and largest < LARGEST):
            raise InvalidInput(f"{where}{name} must be finite, and < {LARGEST:g}")
