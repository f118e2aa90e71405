"""The arithmetic that model files may hold in place of a number: "-pi/4"."""

from __future__ import annotations

import math
import re

from drakebots.errors import InvalidInput

_TOKEN = re.compile(
    r"\s*((?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?|pi|[-+*/()])"
)
_MAX_EXPRESSION = 200
_MAX_NESTING = 20


def arithmetic(text: str) -> float:
    """The value of numbers and `pi` joined by + - * / and parentheses.

    Raises:
        InvalidInput: for anything else, and for a value that is not finite.
    """
    if len(text) > _MAX_EXPRESSION:
        raise InvalidInput(f"{text[:20]!r}... is too long to be a number")
    tokens, position = [], 0
    stripped = text.rstrip()
    while position < len(stripped):
        match = _TOKEN.match(stripped, position)
        if match is None:
            raise InvalidInput(f"{text!r} is not a number")
        tokens.append(match.group(1))
        position = match.end()
    try:
        value, rest = _sum(tokens, 0, 0)
    except (IndexError, ValueError, ZeroDivisionError) as error:
        raise InvalidInput(f"{text!r} is not a number") from error
    if rest != len(tokens) or not math.isfinite(value):
        raise InvalidInput(f"{text!r} is not a finite number")
    return value


def _sum(tokens: list[str], at: int, depth: int) -> tuple[float, int]:
    value, at = _product(tokens, at, depth)
    while at < len(tokens) and tokens[at] in "+-":
        term, after = _product(tokens, at + 1, depth)
        value = value + term if tokens[at] == "+" else value - term
        at = after
    return value, at


def _product(tokens: list[str], at: int, depth: int) -> tuple[float, int]:
    value, at = _factor(tokens, at, depth)
    while at < len(tokens) and tokens[at] in "*/":
        factor, after = _factor(tokens, at + 1, depth)
        value = value * factor if tokens[at] == "*" else value / factor
        at = after
    return value, at


def _factor(tokens: list[str], at: int, depth: int) -> tuple[float, int]:
    sign = 1.0
    while tokens[at] in "+-":
        sign = -sign if tokens[at] == "-" else sign
        at += 1
    if tokens[at] == "(":
        if depth >= _MAX_NESTING:
            raise ValueError("parentheses nested too deep")
        value, at = _sum(tokens, at + 1, depth + 1)
        if tokens[at] != ")":
            raise ValueError("missing )")
    else:
        value = math.pi if tokens[at] == "pi" else float(tokens[at])
    return sign * value, at + 1
