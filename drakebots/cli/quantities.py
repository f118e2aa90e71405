"""Numbers with units on the command line: "5mm" as 0.005."""

from __future__ import annotations

import re

from drakebots.errors import InvalidInput
from drakebots.units import si_factor

_NUMBER = re.compile(r"\s*([-+]?[0-9.]+(?:[eE][-+]?[0-9]+)?)\s*([A-Za-z].*)?")


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
