"""Rules for the values of fields, which a problem checks when it is made.

    @dataclass(frozen=True)
    class Walk:
        stride: float = 0.01
        cycles: int = 4
        time_limit: float | None = None

        def __post_init__(self):
            check(self, "walk", stride=positive("m"), cycles=whole(1))
            check(self, "walk", time_limit=optional(positive("s")))

A rule takes a value and returns it as it is stored, or raises :class:`Refused` with
what it must be. :func:`check` turns that into one line: "walk: stride must be > 0 m,
got -1".
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable
from numbers import Real
from typing import Any

import numpy as np

from drakebots.core.errors import InvalidInput, UnknownName

Rule = Callable[[Any], Any]


class Refused(ValueError):
    """A value breaks its rule; the text says what it must be, as in "> 0 m"."""


def check(owner: Any, what: str, **rules: Rule) -> None:
    """Checks fields of a (frozen) dataclass and stores what their rules return.

    Args:
        owner: the object, in its `__post_init__`.
        what: the object in the user's words, e.g. "gait"; may be empty.
        rules: the rule of each field.

    Raises:
        InvalidInput: naming the first field that breaks its rule.
        UnknownName: for a name that is not among the choices.
    """
    for name, rule in rules.items():
        value = getattr(owner, name)
        kept = check_value(f"{what}: {name}" if what else name, value, rule)
        if kept is not value:
            object.__setattr__(owner, name, kept)


def check_value(name: str, value: Any, rule: Rule) -> Any:
    """The value as its rule stores it.

    Args:
        name: of the value, for the message.
        value: to check.
        rule: that it must meet.

    Raises:
        InvalidInput: "name must be ..., got ...".
        UnknownName: for a name that is not among the choices.
    """
    try:
        return rule(value)
    except Refused as refused:
        raise InvalidInput(f"{name} must be {refused}, got {_shown(value)}") from None


def positive(unit: str = "") -> Rule:
    """A finite number > 0."""
    return _number(lambda x: x > 0, _words("> 0", unit))


def non_negative(unit: str = "") -> Rule:
    """A finite number >= 0."""
    return _number(lambda x: x >= 0, _words(">= 0", unit))


def finite(unit: str = "") -> Rule:
    """A finite number."""
    return _number(lambda x: True, _words("a finite number", unit and f"[{unit}]"))


def between(
    low: float, high: float, unit: str = "", *, open_ends: bool = False
) -> Rule:
    """A number in low..high, or strictly between them."""
    if open_ends:
        words = _words(f"within {low:g}..{high:g}", unit) + ", ends excluded"
        return _number(lambda x: low < x < high, words)
    words = _words(f"within {low:g}..{high:g}", unit)
    return _number(lambda x: low <= x <= high, words)


def whole(least: int = 0, most: int | None = None) -> Rule:
    """A whole number >= least, and <= most; stored as an int."""
    words = f"a whole number >= {least}"
    words += f" and <= {most}" if most is not None else ""

    def rule(value: Any) -> int:
        number = _real(value, words)
        if number % 1 or number < least or (most is not None and number > most):
            raise Refused(words)
        return value if type(value) is int else int(number)

    return rule


def flag() -> Rule:
    """True or False."""

    def rule(value: Any) -> bool:
        if not isinstance(value, bool | np.bool_):
            raise Refused("true or false")
        return bool(value)

    return rule


def one_of(kind: str, choices: Iterable[str]) -> Rule:
    """One of some names; others raise UnknownName, which lists them.

    Args:
        kind: what is chosen, e.g. "gait".
        choices: the names.
    """
    names = tuple(choices)

    def rule(value: Any) -> Any:
        if not isinstance(value, str) or value not in names:
            raise UnknownName(kind, value, names)
        return value

    return rule


def array(
    shape: tuple[int | None, ...], unit: str = "", *, entry: Rule | None = None
) -> Rule:
    """An array of finite floats, stored as a read-only copy.

    Args:
        shape: of the array; None stands for any length.
        unit: of its numbers.
        entry: a rule for numbers that the smallest and the largest must also meet.
    """
    size = "x".join("n" if n is None else str(n) for n in shape) or "one"
    words = _words(f"{size} finite numbers", unit and f"[{unit}]")

    def rule(value: Any) -> np.ndarray:
        try:
            numbers = np.array(value)
        except (TypeError, ValueError):  # lists of different lengths
            raise Refused(words) from None
        fits = numbers.ndim == len(shape) and all(
            n is None or n == m for n, m in zip(shape, numbers.shape)
        )
        if not (fits and numbers.dtype.kind in "iuf" and np.isfinite(numbers).all()):
            raise Refused(words)
        numbers = numbers.astype(float)
        if entry is not None and numbers.size:
            entry(float(numbers.min()))
            entry(float(numbers.max()))
        numbers.setflags(write=False)
        return numbers

    return rule


def text(pattern: str = ".+", words: str = "a text that is not empty") -> Rule:
    """A text that matches a regular expression as a whole.

    Args:
        pattern: the regular expression.
        words: what such a text is, e.g. "a name of letters, digits and _".
    """

    def rule(value: Any) -> str:
        if not (isinstance(value, str) and re.fullmatch(pattern, value)):
            raise Refused(words)
        return value

    return rule


def optional(rule: Rule) -> Rule:
    """None, or a value that meets the rule."""
    return lambda value: None if value is None else rule(value)


def _number(holds: Callable[[float], bool], words: str) -> Rule:
    def rule(value: Any) -> Any:
        if isinstance(value, np.ndarray) and value.ndim == 0:
            value = value.item()
        if not holds(_real(value, words)):
            raise Refused(words)
        return value

    return rule


def _real(value: Any, words: str) -> float:
    # bool is a Real in Python, and never meant as a number here.
    if isinstance(value, bool | np.bool_) or not isinstance(value, Real):
        raise Refused(words)
    try:
        number = float(value)
    except (OverflowError, ValueError):
        raise Refused(words) from None
    if not math.isfinite(number):
        raise Refused(words)
    return number


def _words(text: str, unit: str) -> str:
    return f"{text} {unit}" if unit else text


def _shown(value: Any) -> str:
    value = value.item() if isinstance(value, np.generic) else value
    text = " ".join(repr(value).split())
    return text if len(text) <= 80 else text[:77] + "..."
