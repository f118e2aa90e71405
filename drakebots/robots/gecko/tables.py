"""Entries of the parameter file that hold several numbers by name."""

from __future__ import annotations

from functools import cache

from drakebots.robots.gecko.parameters import raw
from drakebots.units import si_factor


@cache
def table(name: str) -> dict[str, float]:
    """The numbers of an entry in SI; its unit is one, or one for each."""
    node = raw()[name]
    unit = node["unit"]
    return {
        key: float(value) * si_factor(unit[key] if isinstance(unit, dict) else unit)
        for key, value in node["value"].items()
    }
