"""Numbers on the command line: "5mm" as 0.005, lists, points."""

from __future__ import annotations

import re

import numpy as np

from drakebots.errors import InvalidInput
from drakebots.units import si_factor

_NUMBER = re.compile(r"\s*([-+]?[0-9.]+(?:[eE][-+]?[0-9]+)?)\s*([A-Za-z].*)?")

CM = 0.01


def length(text: str, what: str = "length") -> float:
    """A length in m; without a unit it is one in m.

    Raises:
        InvalidInput: naming what is no length.
    """
    found = _NUMBER.fullmatch(text)
    try:
        value, unit = float(found[1]), (found[2] or "m").strip()
    except (TypeError, ValueError):
        raise InvalidInput(f"{what}: {text!r} is no length; write 5mm, say") from None
    if unit not in ("m", "cm", "mm", "um"):
        raise InvalidInput(f"{what}: {unit!r} is no unit of length; use m, cm, mm, um")
    return value * si_factor(unit)


def numbers(text: str, what: str) -> tuple[float, ...]:
    """Numbers "a,b,...".

    Raises:
        InvalidInput: when they are none.
    """
    try:
        return tuple(float(word) for word in text.split(","))
    except ValueError:
        raise InvalidInput(
            f'{what}: {text!r} is no list "a,b,..." of numbers'
        ) from None


def points(text: str, what: str) -> tuple[tuple[float, float], ...]:
    """Points "x,y x,y ..." in cm, as (x, y) in m.

    Raises:
        InvalidInput: naming the point that is none.
    """
    found = []
    for word in text.split():
        try:
            x, y = map(float, word.split(","))
        except ValueError:
            raise InvalidInput(
                f'{what}: {word!r} is no point; write "x,y x,y ..." in cm'
            ) from None
        if not np.isfinite([x, y]).all():
            raise InvalidInput(f"{what}: {word!r} is not finite; give numbers in cm")
        found.append((x * CM, y * CM))
    return tuple(found)
