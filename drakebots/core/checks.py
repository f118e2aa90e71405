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
import os
import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import fields, is_dataclass
from functools import cache
from numbers import Real
from pathlib import Path
from types import NoneType, UnionType
from typing import Any, Union, get_args, get_origin, get_type_hints

import numpy as np

from drakebots.core.errors import InvalidInput, UnknownName

Rule = Callable[[Any], Any]


RANGES: dict[str, tuple[float, float]] = {
    "s": (1e-9, 1e9),  # a nanosecond; thirty years
    "Hz": (1e-9, 1e9),
    "m": (1e-12, 1e9),
    "kg": (1e-15, 1e12),
    "": (1e-30, 1e15),
}
"""The least positive and the largest number, by unit; "" for all others.

Nothing that is simulated lies outside, and what does breaks what a number reaches:
squares and reciprocals overflow, counts do not fit into C's integers, Drake aborts.
Where 0 is allowed, so is what is nearly 0."""

MOST = 2**31 - 1
"""The largest whole number, unless a field has its own limit: C's largest int."""

MOST_THREADS = 1024
"""More threads are a slip; a solver would try to start them."""


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
        name: name of the value, for the message.
        value: value to check.
        rule: rule that it must meet.

    Raises:
        InvalidInput: "name must be ..., got ...".
        UnknownName: for a name that is not among the choices.
    """
    try:
        return rule(value)
    except Refused as refused:
        raise InvalidInput(f"{name} must be {refused}, got {_shown(value)}") from None


def check_types(owner: Any, what: str) -> None:
    """Refuses fields of a dataclass that cannot stand for their annotated types.

    Where a class is annotated, numbers, texts and lists are refused, and objects of
    other classes are not if they share a name of its fields or methods. Scalars and
    0-d arrays of numpy are numbers, a text may be a path, nested lists an array, any
    sequence another. Call it first in a `__post_init__` that uses such fields. The
    module must import what its annotations name, not only for type checkers.

    Args:
        owner, what: as in :func:`check`.

    Raises:
        InvalidInput: naming the field and its type.
    """
    for name, hint in _hints(type(owner)).items():
        # What __post_init__ makes is not there yet.
        if name in vars(owner) and not _may_be(vars(owner)[name], hint):
            label = getattr(hint, "__name__", str(hint)).replace("typing.", "")
            place, got = f"{what}: {name}" if what else name, vars(owner)[name]
            raise InvalidInput(f"{place} must be of type {label}, got {_shown(got)}")


_hints: Callable[[Any], dict[str, Any]] = cache(get_type_hints)

_TAKEN: dict[Any, Any] = {
    float: Real | np.ndarray,
    int: Real | np.ndarray,
    bool: bool | np.bool_,
    str: str,
    Path: str | os.PathLike,
    NoneType: NoneType,
}
"""What stands for a plain type; the rules of :func:`check` look at its value."""


def _may_be(value: Any, hint: Any) -> bool:
    kind, inner = get_origin(hint) or hint, get_args(hint)
    if kind in (Union, UnionType):
        return any(_may_be(value, one) for one in inner)
    if kind is Any or not isinstance(kind, type):
        return True
    if kind in _TAKEN:
        return isinstance(value, _TAKEN[kind])
    if kind is np.ndarray:
        return _is_numbers(value) or (not _is_plain(value) and _is_iterable(value))
    if not (issubclass(kind, tuple | list) or kind is Sequence):
        return isinstance(value, kind) or _is_like(value, kind)
    if isinstance(value, np.ndarray):
        listed = value.ndim > 0
    else:
        listed = isinstance(value, tuple | list | range) or (
            not _is_plain(value) and _is_iterable(value)
        )
    alike = kind is not tuple or (len(inner) == 2 and inner[1] is ...)
    return listed and (
        not (alike and inner) or all(_may_be(item, inner[0]) for item in value)
    )


def _is_like(value: Any, kind: type) -> bool:
    """Whether an object may stand for one of another class."""
    own = fields(kind) if is_dataclass(kind) else ()
    names = [f.name for f in own] + [name for name in dir(kind) if name[0] != "_"]
    return not _is_plain(value) and (
        not names or any(hasattr(value, name) for name in names)
    )


def _is_iterable(value: Any) -> bool:
    return hasattr(value, "__iter__") or hasattr(value, "__getitem__")


def _is_plain(value: Any) -> bool:
    """Whether a value is of a type of Python or numpy, and so no object of a class."""
    return type(value).__module__ in ("builtins", "numpy", "decimal", "fractions")


def _is_numbers(value: Any) -> bool:
    try:
        found = np.asarray(value)
    except (TypeError, ValueError, OverflowError):
        return False
    return found.dtype.kind in "biuf"  # a scalar stands for equal entries


def positive(unit: str = "") -> Rule:
    """A finite number > 0, within :data:`RANGES`."""
    return _number(lambda x: x > 0, _words("> 0", unit), unit, positive=True)


def non_negative(unit: str = "") -> Rule:
    """A finite number >= 0, not larger than in :data:`RANGES`."""
    return _number(lambda x: x >= 0, _words(">= 0", unit), unit)


def finite(unit: str = "") -> Rule:
    """A finite number, not larger than in :data:`RANGES`."""
    words = _words("a finite number", unit and f"[{unit}]")
    return _number(lambda x: True, words, unit)


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
    """A whole number >= least, and <= most (:data:`MOST`); stored as an int."""
    limit = MOST if most is None else most
    short = f"a whole number >= {least}"
    whole_words = f"{short} and <= {limit}"
    words = short if most is None else whole_words

    def rule(value: Any) -> int:
        number = _real(value, words)
        if number > limit:
            raise Refused(whole_words)
        if number % 1 or number < least:
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
    shape: tuple[int | None, ...],
    unit: str = "",
    *,
    entry: Rule | None = None,
    integers: bool = False,
) -> Rule:
    """An array of finite floats, stored as a read-only copy.

    Args:
        shape: shape of the array; None stands for any length.
        unit: unit of its numbers.
        entry: a rule for numbers that the smallest and the largest must also meet.
        integers: whether it must have, and keeps, whole numbers.
    """
    size = "x".join("n" if n is None else str(n) for n in shape) or "one"
    numbers_are = "whole numbers" if integers else "finite numbers"
    words = _words(f"{size} {numbers_are}", unit and f"[{unit}]")
    kinds = "iu" if integers else "iuf"
    most = RANGES.get(unit, RANGES[""])[1]

    def rule(value: Any) -> np.ndarray:
        numbers = _array(value, words)
        fits = numbers.ndim == len(shape) and all(
            n is None or n == m for n, m in zip(shape, numbers.shape)
        )
        if not (fits and numbers.dtype.kind in kinds and np.isfinite(numbers).all()):
            raise Refused(words)
        if abs(numbers.astype(float)).max(initial=0.0) > most:
            raise Refused(_words(f"{words}, none larger than {most:g}", unit))
        numbers = numbers.astype(int if integers else float)
        if entry is not None and numbers.size:
            entry(float(numbers.min()))
            entry(float(numbers.max()))
        numbers.setflags(write=False)
        return numbers

    return rule


def numeric() -> Rule:
    """An array of real numbers, NaN too, whose shape the caller checks."""
    words = "an array of numbers"

    def rule(value: Any) -> np.ndarray:
        numbers = _array(value, words)
        if numbers.dtype.kind not in "iuf" and numbers.size:
            raise Refused(words)
        return numbers

    return rule


def interval(unit: str = "") -> Rule:
    """A smallest and a largest number, stored as a tuple."""

    def rule(value: Any) -> tuple[float, float]:
        low, high = array((2,), unit)(value).tolist()
        if low >= high:
            raise Refused(_words("an increasing pair of finite numbers", unit))
        return low, high

    return rule


def instance(kind: Any, what: str = "") -> Rule:
    """An object of a class, or of one of several.

    Args:
        kind: the class, or a union of classes.
        what: such an object is, for the message; by default "a" and the class's name.
    """

    def rule(value: Any) -> Any:
        if not isinstance(value, kind):
            raise Refused(what or f"a {getattr(kind, '__name__', kind)}")
        return value

    return rule


def each(rule: Rule, what: str) -> Rule:
    """Some values that meet a rule, stored as a tuple.

    Args:
        rule: rule for each.
        what: they are, in the plural.
    """

    def check_each(values: Any) -> tuple:
        scalar = isinstance(values, np.ndarray) and not values.ndim
        if scalar or not isinstance(values, tuple | list | np.ndarray):
            raise Refused(f"a list of {what}")
        return tuple(rule(value) for value in values)

    return check_each


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


def check_memory(
    what: str, count: float, each: float = 8.0, remedy: str = "ask for less"
) -> None:
    """Refuses a plan, a log or a table that does not fit into memory, unbuilt.

    Args:
        what: it is, e.g. "a log of 3e9 samples".
        count: number of its items.
        each: bytes of an item.
        remedy: what to do.

    Raises:
        InvalidInput: naming its size and the machine's.
    """
    need = count * each
    have = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    if need > have:
        raise InvalidInput(
            f"{what} needs {need / 1e9:.3g} GB, and this machine has "
            f"{have / 1e9:.3g} GB; {remedy}"
        )


def check_log(duration: float, period: float, sample: float = 4e3) -> None:
    """Refuses a run whose log does not fit into memory, where it is kept to the end.

    Args:
        duration, period: duration of the run, and period of its samples [s].
        sample: bytes of one.

    Raises:
        InvalidInput: naming its size and the machine's.
    """
    count = duration / period
    remedy = "shorten the run, or log less often (log_period, time_step)"
    what = f"a log of {count:.3g} samples over {duration:.3g} s"
    check_memory(what, count, sample, remedy)


def check_knots(knots: int) -> None:
    """Refuses a program that does not fit into memory.

    A knot of a legged robot takes some hundred variables, whose rows and factors have
    some 5,000 nonzeros before fill-in: half a megabyte.

    Raises:
        InvalidInput: naming its size and the machine's.
    """
    check_memory(f"a plan of {knots} knots", knots, 5e5)


def _array(value: Any, words: str) -> np.ndarray:
    try:
        return np.array(value)
    except (TypeError, ValueError, OverflowError):  # lists of different lengths
        raise Refused(words) from None


def _number(
    holds: Callable[[float], bool],
    words: str,
    unit: str | None = None,
    *,
    positive: bool = False,
) -> Rule:
    least, most = RANGES.get(unit or "", RANGES[""])
    most = math.inf if unit is None else most
    least = least if positive else -math.inf

    def rule(value: Any) -> Any:
        if isinstance(value, np.ndarray) and value.ndim == 0:
            value = value.item()
        number = _real(value, words)
        if not holds(number):
            raise Refused(words)
        if abs(number) > most:
            raise Refused(_words(f"{words}, of magnitude <= {most:g}", unit or ""))
        if number < least:
            raise Refused(_words(f"{words}, and >= {least:g}", unit or ""))
        # A fraction has no format of a number.
        return value if isinstance(value, int | float | np.generic) else number

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
