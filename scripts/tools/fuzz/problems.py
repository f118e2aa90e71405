"""Inputs that are calls: every field of every public problem with wrong types.

A seed is a field of a problem and one of :func:`values`. It is refused with a line of
ours that names the field, or taken.
"""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Callable
from dataclasses import MISSING, fields, is_dataclass, replace
from decimal import Decimal
from fractions import Fraction
from functools import cache
from types import ModuleType
from typing import Any

import numpy as np

from fuzz.children import Case, Family


class _Odd:
    """An object of no use."""


def values() -> tuple[Any, ...]:
    """Values of all types and sizes."""
    return (
        *(None, True, False, 0, 1, -1, 2, 10**30, -(10**30), 0.5, -0.5, 1e300, 1e-300),
        *(float("nan"), float("inf"), -float("inf"), 1j, complex("nan"), b"1", b"", ""),
        *(
            "x",
            "1",
            "nan",
            "é" * 99,
            "\0",
            "a" * 500,
            (),
            [],
            {},
            set(),
            [[]],
            [None],
        ),
        *([1], [1, 2], (1, 2, 3), [[1, 2], [3]], [[[1.0]]], ["a"], {"a": 1}, {1: "a"}),
        *(range(3), Fraction(1, 3), Decimal("NaN"), Decimal(1), _Odd(), _Odd, len),
        *(np.float64(1), np.int64(1), np.bool_(True), np.str_("x"), np.array(1.0)),
        *(np.array([]), np.zeros((0, 3)), np.zeros((2, 3)), np.full(3, np.nan)),
        *(np.array([1j]), np.array(["a"]), np.array([None]), np.array([b"x"])),
        *(np.array(["2020"], "M8[Y]"), np.ones((2, 2, 2)), np.zeros(3, bool)),
        *(np.datetime64("NaT"), iter([1, 2]), memoryview(b"ab"), object(), ...),
    )


@cache
def modules() -> tuple[ModuleType, ...]:
    """All modules of drakebots but the environments, which need an extra."""
    import drakebots

    return tuple(
        importlib.import_module(module.name)
        for module in pkgutil.walk_packages(drakebots.__path__, "drakebots.")
        if not module.name.startswith(("drakebots.envs", "drakebots.__main__"))
        and not module.name.rpartition(".")[2].startswith("_")
    )


@cache
def problems() -> tuple[type, ...]:
    """The public dataclasses that check their fields when they are made."""
    return tuple(
        kind
        for module in modules()
        for name, kind in vars(module).items()
        if isinstance(kind, type)
        and is_dataclass(kind)
        and kind.__module__ == module.__name__
        and not name.startswith("_")
        and "__post_init__" in vars(kind)
    )


@cache
def sound(kind: type) -> Any:
    """An instance made of defaults; None where fields are needed."""
    needed = [
        f
        for f in fields(kind)
        if f.init and f.default is MISSING and f.default_factory is MISSING
    ]
    if needed:
        return None
    return kind()


@cache
def _targets() -> tuple[tuple[type, str], ...]:
    return tuple((kind, f.name) for kind in problems() for f in fields(kind) if f.init)


def types_family() -> Family:
    """Each of the values in each field of each problem, in a scattered order."""
    every = values()

    def family(seed: int) -> Case:
        targets = _targets()
        # A stride without a common divisor: some of each problem comes early.
        at = seed * 7919 % (len(targets) * len(every))
        (kind, name), value = targets[at // len(every)], every[at % len(every)]
        label = f"{kind.__module__}.{kind.__name__} {name}={value!r:.60}"
        return Case(call=maker(kind, name, value), label=label, seconds=20)

    return family


def maker(kind: type, name: str, value: Any) -> Callable[[], object]:
    """Maker of a problem with a value in a field, and in those without a default."""

    def call() -> object:
        base = sound(kind)
        if base is not None:
            return replace(base, **{name: value})
        needed = {
            f.name: value
            for f in fields(kind)
            if f.init and f.default is MISSING and f.default_factory is MISSING
        }
        return kind(**needed | {name: value})

    return call
