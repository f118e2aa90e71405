"""Units: conversion of parameter files to SI, and scaling for computation.

Everything that a user passes or gets is in SI (kg, m, s, N, rad, V). Two places need
other units: parameter files, which keep the units of their source, and the numerics of
gram-sized robots, which are better conditioned in mm, g, ms.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from drakebots.core.errors import InvalidInput

GRAVITY = 9.81
"""Earth's gravity [m/s^2], as Drake's plants have it by default. A plant may have
another: take its own where there is one."""

GRAVITY_W = (0.0, 0.0, -GRAVITY)
"""The same as a vector in the world W, whose z axis points up [m/s^2]."""

_KINDS: tuple[tuple[tuple[int, int, int] | None, dict[str, float]], ...] = (
    ((0, 0, 0), {"1": 1.0, "rad": 1.0, "deg": math.pi / 180.0}),
    ((1, 0, 0), {"m": 1.0, "cm": 1e-2, "mm": 1e-3, "um": 1e-6}),
    ((0, 1, 0), {"kg": 1.0, "g": 1e-3, "mg": 1e-6}),
    ((0, 0, 1), {"s": 1.0, "ms": 1e-3, "us": 1e-6, "min": 60.0}),
    ((0, 0, -1), {"Hz": 1.0, "kHz": 1e3}),
    ((1, 1, -2), {"N": 1.0, "mN": 1e-3}),
    ((2, 1, -2), {"J": 1.0, "mJ": 1e-3}),
    ((2, 1, -3), {"W": 1.0}),
    ((-1, 1, -2), {"Pa": 1.0, "kPa": 1e3, "bar": 1e5, "MPa": 1e6, "GPa": 1e9}),
    (None, {"V": 1.0, "A": 1.0, "mA": 1e-3, "F": 1.0, "nF": 1e-9, "Ohm": 1.0}),
)
"""Powers of length, mass and time (None for electrical units), and SI factors."""

_SI = {symbol: factor for _, group in _KINDS for symbol, factor in group.items()}
_POWERS = {symbol: powers for powers, group in _KINDS for symbol in group}


def _symbols(unit: str) -> Iterator[tuple[str, int, bool]]:
    """Each symbol of a unit: its name, its power, and whether it divides."""
    for index, part in enumerate(str(unit).split("/")):
        for symbol in re.sub(r"[()]", " ", part).split():
            name, _, power = symbol.partition("^")
            if name not in _SI or (power and not re.fullmatch(r"-?[0-9]{1,2}", power)):
                raise InvalidInput(
                    f"unknown unit {symbol!r} in {unit!r}; known symbols: "
                    f"{', '.join(sorted(_SI))}, with powers as in mm^2"
                )
            yield name, int(power or 1), index > 0


def si_factor(unit: str) -> float:
    """The factor that takes a value in `unit` to SI, e.g. "g mm^2" -> 1e-9.

    A unit is a product of symbols with optional integer powers, separated by
    spaces; everything after a slash divides ("N/(V mm)", "mm/s/mA").

    Raises:
        InvalidInput: for a symbol that is not known.
    """
    factor = 1.0
    for name, power, divides in _symbols(unit):
        value = _SI[name] ** power
        factor = factor / value if divides else factor * value
    return factor


def dimensions(unit: str) -> tuple[int, int, int] | None:
    """Powers of length, mass and time, e.g. "N mm" -> (2, 1, -2).

    None for a unit with electrical symbols.

    Raises:
        InvalidInput: for a symbol that is not known.
    """
    total = np.zeros(3, int)
    for name, power, divides in _symbols(unit):
        powers = _POWERS[name]
        if powers is None:
            return None
        total += (-power if divides else power) * np.array(powers)
    return tuple(total.tolist())


def quantity(
    node: Mapping[str, Any], where: str = "quantity", like: str = ""
) -> float | np.ndarray:
    """A `{value, unit, source}` mapping of a file, in SI: a number or an array.

    Args:
        node: the mapping.
        where: its place in the file, for messages.
        like: unit of the same dimension as its own; "" where any will do.

    Raises:
        InvalidInput: when a field is missing, the value is not finite, or the unit is
            of another dimension.
    """
    try:
        value, unit = np.array(node["value"], float), node["unit"]
    except (KeyError, TypeError, ValueError) as error:
        raise InvalidInput(
            f"{where}: needs a number `value` and a `unit`, got {node!r}"
        ) from error
    if not np.isfinite(value).all():
        raise InvalidInput(f"{where}: value {value} is not finite")
    if like and dimensions(unit) != dimensions(like):
        raise InvalidInput(f"{where} cannot be in {unit!r}; use a unit like {like!r}")
    value = value * si_factor(unit)
    return float(value) if value.ndim == 0 else value


@dataclass(frozen=True)
class Scaling:
    """A system of units for internal computation.

    A quantity in SI divided by `of(...)` is the number in scaled units.

    Attributes:
        length: the unit of length [m].
        mass: the unit of mass [kg].
        time: the unit of time [s].
    """

    length: float = 1.0
    mass: float = 1.0
    time: float = 1.0

    def of(self, *, length: int = 0, mass: int = 0, time: int = 0) -> float:
        """The unit of a quantity with these dimensions, in SI."""
        return self.length**length * self.mass**mass * self.time**time

    @property
    def velocity(self) -> float:
        """The unit of velocity [m/s]."""
        return self.of(length=1, time=-1)

    @property
    def acceleration(self) -> float:
        """The unit of acceleration [m/s^2]."""
        return self.of(length=1, time=-2)

    @property
    def force(self) -> float:
        """The unit of force [N]."""
        return self.of(mass=1, length=1, time=-2)

    @property
    def torque(self) -> float:
        """The unit of torque and of energy [N m]."""
        return self.of(mass=1, length=2, time=-2)

    @property
    def inertia(self) -> float:
        """The unit of rotational inertia [kg m^2]."""
        return self.of(mass=1, length=2)

    @property
    def is_si(self) -> bool:
        """Whether numbers in these units are numbers in SI."""
        return self == SI


SI = Scaling()
MM_G_MS = Scaling(length=1e-3, mass=1e-3, time=1e-3)
"""Millimetres, grams, milliseconds: forces in N, torques in N mm."""
