"""Numbers that are written as arithmetic, as in "-pi/4"."""

from __future__ import annotations

import ast
import math
import operator
import re

from drakebots.core.errors import InvalidInput

_ARITHMETIC = re.compile(r"[0-9.eE+\-*/()pi\s]*")
_LEADING_ZEROS = re.compile(r"(?<![0-9.eE])0+(?=[0-9])")
_MAX_EXPRESSION = 200
_MAX_NESTING = 20
_OPERATORS = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.UAdd: operator.pos,
    ast.USub: operator.neg,
}


def arithmetic(text: str) -> float:
    """The value of numbers and `pi` joined by + - * / and parentheses: "-pi/4".

    Raises:
        InvalidInput: for anything else, and for a value that is not finite.
    """
    if len(text) > _MAX_EXPRESSION:
        raise InvalidInput(f"{text[:20]!r}... is too long to be a number")
    if not _ARITHMETIC.fullmatch(text) or text.count("(") > _MAX_NESTING:
        raise InvalidInput(f"{text!r} is not a number")
    # Python takes no 007, and no line breaks.
    line = _LEADING_ZEROS.sub("", " ".join(text.split()))
    try:
        value = _value(ast.parse(line, mode="eval").body)
    except (SyntaxError, TypeError, ValueError, KeyError, ZeroDivisionError) as error:
        raise InvalidInput(f"{text!r} is not a number") from error
    if not math.isfinite(value):
        raise InvalidInput(f"{text!r} is not a finite number")
    return value


def _value(node: ast.expr) -> float:
    if isinstance(node, ast.Constant):
        return float(node.value)
    if isinstance(node, ast.UnaryOp):
        return _OPERATORS[type(node.op)](_value(node.operand))
    if isinstance(node, ast.BinOp):
        return _OPERATORS[type(node.op)](_value(node.left), _value(node.right))
    if isinstance(node, ast.Name) and node.id == "pi":
        return math.pi
    raise ValueError("not arithmetic")
