"""Least-squares fits of named template parameters within limits."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np
from scipy.optimize import least_squares

from drakebots.design.template import Template
from drakebots.design.template_parameters import edit, parameter
from drakebots.errors import InvalidInput

Limits = Mapping[str, tuple[float, float]]


@dataclass(frozen=True)
class Free:
    """Free numbers of a template: dotted names, "[k]" for one of a tuple.

    Attributes:
        names: e.g. "front.upper" or "torso.size[0]".
        lower, upper: limits (n,) in SI.
        scale: a typical change of each (n,), SI.
    """

    names: tuple[str, ...]
    lower: np.ndarray
    upper: np.ndarray
    scale: np.ndarray


def value_of(template: Template, name: str) -> float:
    """A number of a template; see :class:`Free`."""
    base, index = _split(name)
    value = parameter(template, base)
    return float(value if index is None else value[index])


def with_values(template: Template, names, values) -> Template:
    """The template with these numbers."""
    changes = {}
    for name, value in zip(names, values):
        base, index = _split(name)
        if index is None:
            changes[base] = float(value)
        else:
            row = list(changes.get(base, parameter(template, base)))
            row[index] = float(value)
            changes[base] = tuple(row)
    return edit(template, changes)


def _split(name: str) -> tuple[str, int | None]:
    if not name.endswith("]"):
        return name, None
    base, index = name[:-1].split("[")
    return base, int(index)


def free(rows: Limits, override: Limits, scales: Mapping[str, float]) -> Free:
    """Free parameters with default limits, some overridden.

    Equal limits fix a parameter.

    Raises:
        InvalidInput: for limits that are not numbers in order.
    """
    limits = {name: tuple(override.get(name, rows[name])) for name in rows}
    for name, (low, high) in limits.items():
        if not (np.isfinite([low, high]).all() and low <= high):
            raise InvalidInput(
                f"limits of {name}: ({low:g}, {high:g}) leave nothing between them; "
                "give (lower, upper) in SI, or enlarge the surface"
            )
    names = tuple(limits)
    return Free(
        names,
        np.array([limits[name][0] for name in names]),
        np.array([limits[name][1] for name in names]),
        np.array([scales.get(name.split(".")[-1], 0.05) for name in names]),
    )


def fit(
    template: Template,
    chosen: Free,
    residuals: Callable[[Template], np.ndarray],
    *,
    stay: float = 1e-3,
    evaluations: int = 60,
) -> Template:
    """Minimises |residuals|^2 + |stay (p - p_0)/scale|^2 over the limits.

    Args:
        template: the start; p_0 are its values, moved within the limits.
        chosen: what may change.
        residuals: of a template [m].
        stay: weight of the start [m per typical change].
        evaluations: of the gradient, at most.
    """
    start = np.array([value_of(template, name) for name in chosen.names])
    start = np.clip(start, chosen.lower, chosen.upper)
    moves = chosen.upper > chosen.lower + 1e-12
    if not moves.any():
        return with_values(template, chosen.names, start)
    scale = chosen.scale[moves]

    def at(x):
        values = start.copy()
        values[moves] = np.clip(
            start[moves] + x * scale, chosen.lower[moves], chosen.upper[moves]
        )
        return with_values(template, chosen.names, values)

    def cost(x):
        return np.concatenate([residuals(at(x)), stay * x])

    low = (chosen.lower - start)[moves] / scale - 1e-9
    high = (chosen.upper - start)[moves] / scale + 1e-9
    found = least_squares(
        cost,
        np.zeros(len(scale)),
        bounds=(low, high),
        diff_step=1e-4,
        max_nfev=evaluations,
        xtol=1e-4,
        ftol=1e-5,
    )
    return at(found.x)
