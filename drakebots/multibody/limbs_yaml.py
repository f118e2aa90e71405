"""Limbs from a YAML file, with their units checked.

    limbs:
    - name: tail
      parent: chassis
      length: {value: 100, unit: mm}
      stiffness: {value: 0.1, unit: N m/rad}
      mass: {value: 40, unit: g}
      radius: {value: 8, unit: mm}
      rpy: {value: [0, 0, 180], unit: deg}      # and p, damping, range, tip_mass
      segments: 6                               # and axis, rgba, collide

Keys are those of :class:`drakebots.multibody.limb.Limb`.
"""

from __future__ import annotations

import re
from dataclasses import fields
from pathlib import Path

import numpy as np

from drakebots.errors import DrakebotsError, FileProblem, InvalidInput, UnknownName
from drakebots.multibody.limb import Limb, check_limbs
from drakebots.units import si_factor
from drakebots.yaml_file import read_yaml

# Powers of length, mass, time.
_DIMENSIONS = {
    **dict.fromkeys(("m", "cm", "mm", "um"), (1, 0, 0)),
    **dict.fromkeys(("kg", "g", "mg"), (0, 1, 0)),
    **dict.fromkeys(("s", "ms", "us"), (0, 0, 1)),
    **dict.fromkeys(("rad", "deg", "1"), (0, 0, 0)),
    **dict.fromkeys(("N", "mN"), (1, 1, -2)),
    **dict.fromkeys(("J", "mJ"), (2, 1, -2)),
    **dict.fromkeys(("Pa", "kPa", "MPa", "GPa", "bar"), (-1, 1, -2)),
}

_QUANTITIES = {
    **dict.fromkeys(("length", "radius", "p"), ((1, 0, 0), "m")),
    **dict.fromkeys(("mass", "tip_mass"), ((0, 1, 0), "kg")),
    **dict.fromkeys(("rpy", "range"), ((0, 0, 0), "rad")),
    "stiffness": ((2, 1, -2), "N m/rad"),
    "damping": ((2, 1, -1), "N m s/rad"),
}


def read_limbs(path: str | Path) -> tuple[Limb, ...]:
    """The limbs of a file.

    Raises:
        FileProblem: naming the file, the limb and the entry, for a file that
            cannot be read or does not say what it must.
    """
    path = Path(path)
    tree = read_yaml(path)
    if not (isinstance(tree, dict) and isinstance(tree.get("limbs"), list)):
        raise FileProblem(path, "needs a list `limbs`")
    try:
        return check_limbs(
            _limb(node, f"limb {k + 1}") for k, node in enumerate(tree["limbs"])
        )
    except DrakebotsError as error:
        raise FileProblem(path, str(error)) from error


def _limb(node, where: str) -> Limb:
    if not isinstance(node, dict):
        raise InvalidInput(f"{where}: must be a mapping, got {node!r}")
    where = f"limb {node['name']!r}" if "name" in node else where
    known = [field.name for field in fields(Limb)]
    for key in node:
        if key not in known:
            raise UnknownName(f"entry of {where}", key, known)
    for key in ("name", "parent", "length", "stiffness", "mass", "radius"):
        if key not in node:
            raise InvalidInput(f"{where}: lacks {key!r}")
    values = {
        key: _quantity(value, *_QUANTITIES[key], f"{where}: {key}")
        if key in _QUANTITIES
        else value
        for key, value in node.items()
    }
    return Limb(**values)


def _quantity(node, dimension, example: str, where: str):
    if not (isinstance(node, dict) and set(node) >= {"value", "unit"}):
        raise InvalidInput(f"{where} needs {{value: ..., unit: {example}}}")
    factor = si_factor(node["unit"])
    if _dimension(str(node["unit"])) != dimension:
        raise InvalidInput(
            f"{where} cannot be in {node['unit']!r}; use a unit like {example!r}"
        )
    try:
        value = factor * np.array(node["value"], float)
    except (TypeError, ValueError) as error:
        raise InvalidInput(f"{where}: {node['value']!r} is no number") from error
    return float(value) if value.ndim == 0 else value


def _dimension(unit: str) -> tuple[int, ...] | None:
    total = np.zeros(3, int)
    for index, part in enumerate(unit.split("/")):
        for symbol in re.sub(r"[()]", " ", part).split():
            name, _, power = symbol.partition("^")
            if name not in _DIMENSIONS:
                return None
            sign = 1 if index == 0 else -1
            total += sign * int(power or 1) * np.array(_DIMENSIONS[name])
    return tuple(int(x) for x in total)
