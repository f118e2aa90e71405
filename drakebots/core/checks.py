"""Rules for values: what a number, a text or an array must be, and in which unit.

A rule takes a value and returns it as it is stored, or raises :class:`Refused` with
what it must be. :func:`drakebots.core.fields.checked` applies it to a field.
"""

from __future__ import annotations

import math
import os
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from numbers import Real
from typing import Any

import numpy as np

from drakebots.core.errors import InvalidInput, UnknownName


@dataclass(frozen=True)
class Rule:
    """Requirement on a value.

    Attributes:
        take: takes a value and returns it as it is stored, or raises :class:`Refused`;
            None where the field's type says all.
        unit: unit of its numbers; "N m or N" where it depends on other things.
        choices: the names that it may be, or those that are known.
        schema: keywords of a JSON Schema that say the same.
    """

    take: Callable[[Any], Any] | None
    unit: str = ""
    choices: tuple[str, ...] = ()
    schema: Mapping[str, Any] = field(default_factory=dict)

    def __call__(self, value: Any) -> Any:
        """The value as it is stored."""
        return value if self.take is None else self.take(value)


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


class Refused(ValueError):
    """A value breaks its rule; the text says what it must be, as in "> 0 m"."""


def check_value(name: str, value: Any, rule: Callable[[Any], Any]) -> Any:
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
        raise refusal(name, refused, value) from None


def refusal(name: str, refused: Refused, value: Any) -> InvalidInput:
    """The error for a value that broke its rule: "name must be ..., got ..."."""
    return InvalidInput(f"{name} must be {refused}, got {_shown(value)}")


def in_unit(unit: str) -> Rule:
    """Whatever the type allows, of numbers in a unit."""
    return Rule(None, unit)


def known(names: Iterable[str]) -> Rule:
    """Whatever the type allows; of texts, some names are known, as of a library."""
    return Rule(None, choices=tuple(names))


def positive(unit: str = "") -> Rule:
    """A finite number > 0, within :data:`RANGES`."""
    words = _words("> 0", unit)
    return _number(lambda x: x > 0, words, unit, positive=True, exclusiveMinimum=0)


def non_negative(unit: str = "") -> Rule:
    """A finite number >= 0, not larger than in :data:`RANGES`."""
    return _number(lambda x: x >= 0, _words(">= 0", unit), unit, minimum=0)


def finite(unit: str = "") -> Rule:
    """A finite number, not larger than in :data:`RANGES`."""
    words = _words("a finite number", unit and f"[{unit}]")
    return _number(lambda x: True, words, unit)


def between(
    low: float, high: float, unit: str = "", *, open_ends: bool = False
) -> Rule:
    """A number in low..high, or strictly between them."""
    words = _words(f"within {low:g}..{high:g}", unit)
    if open_ends:
        words += ", ends excluded"
        rule = _number(
            lambda x: low < x < high, words, exclusiveMinimum=low, exclusiveMaximum=high
        )
    else:
        rule = _number(lambda x: low <= x <= high, words, minimum=low, maximum=high)
    return replace(rule, unit=unit)


def whole(least: int = 0, most: int | None = None) -> Rule:
    """A whole number >= least, and <= most (:data:`MOST`); stored as an int."""
    limit = MOST if most is None else most
    short = f"a whole number >= {least}"
    whole_words = f"{short} and <= {limit}"
    words = short if most is None else whole_words

    def take(value: Any) -> int:
        number = _real(value, words)
        if number > limit:
            raise Refused(whole_words)
        if number % 1 or number < least:
            raise Refused(words)
        return value if type(value) is int else int(number)

    return Rule(take, schema={"minimum": least, "maximum": limit})


def flag() -> Rule:
    """True or False."""

    def take(value: Any) -> bool:
        if not isinstance(value, bool | np.bool_):
            raise Refused("true or false")
        return bool(value)

    return Rule(take)


def one_of(kind: str, choices: Iterable[str]) -> Rule:
    """One of some names; others raise UnknownName, which lists them.

    Args:
        kind: kind of choice, e.g. "gait".
        choices: the names.
    """
    names = tuple(choices)

    def take(value: Any) -> Any:
        if not isinstance(value, str) or value not in names:
            raise UnknownName(kind, value, names)
        return value

    return Rule(take, choices=names, schema={"enum": list(names)})


_ENTRIES = {
    float: ("finite numbers", "iuf", "number"),
    int: ("whole numbers", "iu", "integer"),
    bool: ("zeros or ones", "biuf", "boolean"),
}
"""What the entries of an array are called, NumPy's kinds of them, and JSON's name."""


def array(
    shape: tuple[int | None, ...],
    unit: str = "",
    *,
    entry: Rule | None = None,
    of: type = float,
) -> Rule:
    """An array of finite floats, stored as a read-only copy.

    Args:
        shape: shape of the array; None stands for any length.
        unit: unit of its numbers.
        entry: a rule for numbers that the smallest and the largest must also meet.
        of: float; int, for whole numbers; or bool, for marks.
    """
    size = "x".join("n" if n is None else str(n) for n in shape) or "one"
    numbers_are, kinds, json = _ENTRIES[of]
    words = _words(f"{size} {numbers_are}", unit and f"[{unit}]")
    most = RANGES.get(unit, RANGES[""])[1]

    def take(value: Any) -> np.ndarray:
        numbers = _array(value, words)
        fits = numbers.ndim == len(shape) and all(
            n is None or n == m for n, m in zip(shape, numbers.shape)
        )
        if not (fits and numbers.dtype.kind in kinds):
            raise Refused(words)
        if len(lost := np.argwhere(~np.isfinite(numbers))):
            long = numbers.size > 3  # what cannot be seen at once
            raise Refused(words + f" also at {lost[0].tolist()}" * long)
        if of is bool and not np.isin(numbers, (0, 1)).all():
            raise Refused(words)
        if abs(numbers.astype(float)).max(initial=0.0) > most:
            raise Refused(_words(f"{words}, none larger than {most:g}", unit))
        numbers = numbers.astype(of)
        if entry is not None and numbers.size:
            entry(float(numbers.min()))
            entry(float(numbers.max()))
        numbers.setflags(write=False)
        return numbers

    items: dict[str, Any] = {"type": json}
    for n in reversed(shape):
        sizes = {} if n is None else {"minItems": n, "maxItems": n}
        items = {"type": "array", "items": items} | sizes
    return Rule(take, unit, schema=items)


def direction() -> Rule:
    """A vector (3,) that is not zero, stored as a unit vector."""
    vector = array((3,))

    def take(value: Any) -> np.ndarray:
        along = vector(value)
        length = np.linalg.norm(along)
        if length < 1e-9:
            raise Refused("a direction, not zero")
        return vector(along / length)

    return replace(vector, take=take)


def numeric() -> Rule:
    """An array of real numbers, NaN too, whose shape the caller checks."""
    words = "an array of numbers"

    def take(value: Any) -> np.ndarray:
        numbers = _array(value, words)
        if numbers.dtype.kind not in "iuf" and numbers.size:
            raise Refused(words)
        return numbers

    return Rule(take)


def interval(unit: str = "", entry: Rule | None = None) -> Rule:
    """A smallest and a largest number, which may have a rule; stored as a tuple."""
    pair = array((2,), unit, entry=entry)

    def take(value: Any) -> tuple[float, float]:
        low, high = pair(value).tolist()
        if low >= high:
            raise Refused(_words("an increasing pair of finite numbers", unit))
        return low, high

    return replace(pair, take=take)


def instance(kind: Any, what: str = "") -> Rule:
    """An object of a class, or of one of several.

    Args:
        kind: the class, or a union of classes.
        what: such an object is, for the message; by default "a" and the class's name.
    """

    def take(value: Any) -> Any:
        if not isinstance(value, kind):
            raise Refused(what or f"a {getattr(kind, '__name__', kind)}")
        return value

    return Rule(take)


def either(kind: Any, rule: Callable[[Any], Any]) -> Rule:
    """An object of a class as it is, or a value that meets a rule."""

    def take(value: Any) -> Any:
        return value if isinstance(value, kind) else rule(value)

    # The rule's schema would refuse what a file says of the object.
    return replace(rule, take=take, schema={}) if isinstance(rule, Rule) else Rule(take)


def by_name(rule: Rule) -> Rule:
    """A value for all, or a mapping of names to values, each of which meets a rule."""

    def take(value: Any) -> Any:
        if isinstance(value, Mapping):
            return {name: rule(entry) for name, entry in value.items()}
        return rule(value)

    return replace(rule, take=take)


def each(rule: Callable[[Any], Any], what: str, least: int = 0) -> Rule:
    """Some values that meet a rule, stored as a tuple.

    Args:
        rule: rule for each.
        what: they are, in the plural.
        least: smallest number of them.
    """

    def take(values: Any) -> tuple:
        scalar = isinstance(values, np.ndarray) and not values.ndim
        if scalar or not isinstance(values, tuple | list | np.ndarray):
            raise Refused(f"a list of {what}")
        if len(values) < least:
            raise Refused(f"a list of {least} or more {what}")
        return tuple(rule(value) for value in values)

    return Rule(take, getattr(rule, "unit", ""))


def text(pattern: str = ".+", words: str = "a text that is not empty") -> Rule:
    """A text that matches a regular expression as a whole.

    Args:
        pattern: the regular expression.
        words: description of such a text, e.g. "a name of letters, digits and _".
    """

    def take(value: Any) -> str:
        if not (isinstance(value, str) and re.fullmatch(pattern, value)):
            raise Refused(words)
        return value

    return Rule(take, schema={"pattern": f"^(?:{pattern})$"})


def optional(rule: Callable[[Any], Any]) -> Rule:
    """None, or a value that meets the rule."""
    take = lambda value: None if value is None else rule(value)  # noqa: E731
    return replace(rule, take=take) if isinstance(rule, Rule) else Rule(take)


def check_memory(
    what: str, count: float, each: float = 8.0, remedy: str = "ask for less"
) -> None:
    """Refuses a plan, a log or a table that does not fit into memory, unbuilt.

    Args:
        what: it is, e.g. "a log of 3e9 samples".
        count: number of its items.
        each: bytes of an item.
        remedy: advice.

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
    **schema: float,
) -> Rule:
    least, most = RANGES.get(unit or "", RANGES[""])
    most = math.inf if unit is None else most
    least = least if positive else -math.inf

    def take(value: Any) -> Any:
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

    return Rule(take, unit or "", schema=schema)


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
