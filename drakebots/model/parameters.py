"""The parameter file of a model folder, `params.yaml`, with its numbers in SI.

A parameter file keeps every number in the unit of its source:

    bend: {value: 100, unit: deg, source: AUT}          # a number
    step_length: {value: [50, 90], unit: deg}           # an array
    cup:                                                # a table
      value: {torsion: 1.7, mass: 0.1, radius: 0.02}
      unit: {torsion: '1', mass: kg, radius: m}
    encoder:                                            # a group of entries
      shunt_resistance: {value: 10.0e3, unit: Ohm}

and is read as

    gecko = parameters_of("gecko")
    gecko.number("bend")                        # 1.745... rad
    gecko.array("step_length")                  # (2,) [rad]
    gecko.table("cup")["radius"]                # 0.02 m
    gecko.number("encoder", "shunt_resistance") # an entry of a group
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import field
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from drakebots.core.errors import InvalidInput, ModelProblem
from drakebots.core.files import read_yaml, reading
from drakebots.core.units import quantity, si_factor
from drakebots.model.find import package_root


class Parameters:
    """The entries of one `params.yaml`.

    The methods take the name of an entry, or the names of the groups around it and
    then its own. They raise ModelProblem for an entry that is missing, is of another
    shape, is not finite or has an unknown unit.

    Args:
        folder: the model folder, or the file itself.

    Attributes:
        path: the file.
        raw: the parsed file, in the units it states.

    Raises:
        ModelProblem: for a file that cannot be read or holds no entries.
    """

    def __init__(self, folder: str | Path):
        path = Path(folder)
        self.path = path / "params.yaml" if os.path.isdir(path) else path
        self.raw: Mapping[str, Any] = read_yaml(self.path, ModelProblem)
        if not isinstance(self.raw, Mapping):
            raise ModelProblem(self.path, "needs `name: {value, unit, source}` entries")

    def number(self, *names: str) -> float:
        """A number in SI."""
        with reading(self.path, ModelProblem):
            return quantity(self._node(names), ".".join(names))

    def array(self, *names: str) -> np.ndarray:
        """Numbers in lists of any depth, in SI."""
        value = self._convert(names)
        if not isinstance(value, np.ndarray):
            raise self._problem(names, "must be a list of numbers")
        return value

    def table(self, *names: str) -> dict[str, Any]:
        """Numbers, arrays, tables and texts by name, in SI.

        Its `unit` is one for all numbers, or a mapping with a unit for every key of
        the table or of its rows. Texts have no unit and stay as they are.
        """
        value = self._convert(names)
        if not isinstance(value, dict):
            raise self._problem(names, "must be numbers by name")
        return value

    def _node(self, names: tuple[str, ...]) -> Any:
        node: Any = self.raw
        for name in names:
            if not isinstance(node, Mapping) or name not in node:
                raise self._problem(names, "is missing")
            node = node[name]
        return node

    def _convert(self, names: tuple[str, ...]) -> Any:
        node = self._node(names)
        if not isinstance(node, Mapping) or not {"value", "unit"} <= set(node):
            raise self._problem(names, "needs a `value` and a `unit`")
        with reading(self.path, ModelProblem):
            return _in_si(node["value"], node["unit"], ".".join(names))

    def _problem(self, names: tuple[str, ...], message: str) -> ModelProblem:
        return ModelProblem(self.path, f"{'.'.join(names)}: {message}")


@cache
def parameters_of(model: str) -> Parameters:
    """The parameters of a model in the models folder, e.g. "gecko"; read once."""
    return Parameters(package_root() / model)


def given(model: str, name: str, entry: str = "") -> Any:
    """A dataclass' field whose default is a number of a model's parameters, or an entry
    of a table of them."""

    def read() -> Any:
        found = parameters_of(model)
        return found.table(name)[entry] if entry else found.number(name)

    return field(default_factory=read)


def _in_si(value: Any, unit: Any, where: str) -> Any:
    if isinstance(value, Mapping):
        own = unit if isinstance(unit, Mapping) else {}
        return {
            k: _in_si(v, own.get(k, unit), f"{where}.{k}") for k, v in value.items()
        }
    if isinstance(value, str):
        return value
    if isinstance(unit, Mapping):
        raise InvalidInput(f"{where}: has no unit; add one to `unit`")
    if not isinstance(value, list):
        return quantity({"value": value, "unit": unit}, where)
    try:
        numbers = np.array(value, float)
    except (TypeError, ValueError):
        numbers = np.array(np.nan)
    if not np.isfinite(numbers).all():
        raise InvalidInput(f"{where}: must be finite numbers, got {value!r}")
    return si_factor(unit) * numbers
