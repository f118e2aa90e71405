"""Fields of problems, options and parts, each declared once.

    @checked("walk")
    class Walk:
        "A walk on a plane."

        stride: Annotated[float, positive("m")] = 0.01
        "Length of a step."
        cycles: Annotated[int, whole(1)] = 4
        "Number of steps."
        time_limit: Annotated[float | None, positive("s")] = None
        "Limit of the wall time; what was reached is kept."

The type, the rule with its unit and the text drive everything that knows of the field:
construction ("walk: stride must be > 0 m, got -1"), files, the command line, the
reference and the JSON Schema of a file (:mod:`drakebots.core.convert`).
"""

from __future__ import annotations

import ast
import inspect
import re
import sys
import textwrap
from collections.abc import Callable, Mapping, Sequence
from dataclasses import MISSING, dataclass, field, fields, is_dataclass
from functools import cache
from itertools import pairwise
from numbers import Real
from os import PathLike
from pathlib import Path
from types import NoneType, UnionType
from typing import Annotated, Any, Union, dataclass_transform, get_args, get_origin

import numpy as np

from drakebots.core.checks import Refused, Rule, check_value, refusal


@dataclass_transform(frozen_default=True, field_specifiers=(field,))
def checked(what: str = "", **options: Any) -> Callable[[type], type]:
    """A decorator for frozen dataclasses whose fields are checked when they are made.

    Each field that the class declares must meet the rule that annotates it, or else its
    type: where a class is annotated, numbers, texts and lists are refused, and objects
    of other classes are not if they share a name of its fields or methods. Scalars and
    0-d arrays of numpy are numbers, a text may be a path, nested lists an array, any
    sequence another. A `__post_init__` of the class runs after that. What a class adds
    to a base is checked where the class is decorated itself.

    Args:
        what: such an object in the user's words, which begins messages, e.g. "gait";
            fields may be named in it, as in "limb {name}".
        options: of :func:`dataclasses.dataclass`.

    Raises:
        InvalidInput: by the decorated class, naming the first field that breaks its
            rule.
        UnknownName: by the decorated class, for a name that is not among the choices.
    """

    def decorate(cls: type) -> type:
        own = cls.__dict__.get("__post_init__")

        def __post_init__(self: Any) -> None:
            _check_declared(self, cls, what)
            if own is not None:
                own(self)
            elif inherited := getattr(super(cls, self), "__post_init__", None):
                inherited()

        cls.__post_init__ = __post_init__  # type: ignore[attr-defined]
        text = cls.__doc__
        cls = dataclass(**{"frozen": True} | options)(cls)
        if cls.__dict__.get("__doc__") is text and text is not None:
            cls.__doc__ = _Doc(text)  # type: ignore[assignment]
        return cls

    return decorate


def check(owner: Any, what: str, **rules: Callable[[Any], Any]) -> None:
    """Checks fields by rules that depend on others, and stores what the rules return.

    Args:
        owner: the object, in its `__post_init__`.
        what: the object in the user's words, e.g. "gait"; may be empty.
        rules: the rule of each field.

    Raises:
        InvalidInput, UnknownName: as :func:`checked`.
    """
    for name, rule in rules.items():
        label = f"{what}: {name}" if what else name
        object.__setattr__(owner, name, check_value(label, getattr(owner, name), rule))


def _check_declared(owner: Any, cls: type, what: str) -> None:
    for name, hint, rule in _own(cls):
        # What __post_init__ makes is not there yet.
        if name not in vars(owner):
            continue
        value = vars(owner)[name]
        try:
            if rule is None or getattr(rule, "take", rule) is None:
                if not _may_be(value, hint):
                    label = getattr(hint, "__name__", str(hint)).replace("typing.", "")
                    raise Refused(f"of type {label}")
            elif value is not None or not _may_be(None, hint):
                object.__setattr__(owner, name, rule(value))
        except Refused as refused:
            who = what.format_map(vars(owner))
            raise refusal(f"{who}: {name}" if who else name, refused, value) from None


@cache
def _own(cls: type) -> tuple[tuple[str, Any, Callable[[Any], Any] | None], ...]:
    """The fields that a class declares: name, type and rule."""
    module = vars(sys.modules[cls.__module__])
    own = inspect.get_annotations(cls)
    names = [entry.name for entry in fields(cls) if entry.name in own]
    return tuple((n, *_split(_resolved(own[n], module))) for n in names)


def _resolved(hint: Any, module: Mapping[str, Any]) -> Any:
    """A type as it was annotated in a module.

    Any for one of which a name is imported only for type checkers.
    """
    if not isinstance(hint, str):
        return hint
    try:
        return eval(hint, dict(module))
    except NameError:
        if "Annotated[" in hint:
            raise
        return Any


def _split(hint: Any) -> tuple[Any, Callable[[Any], Any] | None]:
    """A field's type, and its rule, which is None if there is none."""
    if get_origin(hint) is not Annotated:
        return hint, None
    kind, *marks = get_args(hint)
    return kind, next((mark for mark in marks if callable(mark)), None)


_TAKEN: dict[Any, Any] = {
    float: Real | np.ndarray,
    int: Real | np.ndarray,
    bool: bool | np.bool_,
    str: str,
    Path: str | PathLike,
    NoneType: NoneType,
}
"""Types accepted for a plain type; the rules of :func:`check` look at the value."""


def _may_be(value: Any, hint: Any) -> bool:
    kind, inner = get_origin(hint) or hint, get_args(hint)
    if kind in (Union, UnionType):
        return any(_may_be(value, one) for one in inner)
    if kind is Any or not isinstance(kind, type):
        return True
    if kind in _TAKEN:
        return isinstance(value, _TAKEN[kind])
    if kind is np.ndarray:
        return _is_numbers(value) or _is_iterable(value)
    if not (issubclass(kind, tuple | list) or kind is Sequence):
        is_protocol = getattr(kind, "_is_protocol", False)
        return (not is_protocol and isinstance(value, kind)) or _is_like(value, kind)
    if isinstance(value, np.ndarray):
        listed = value.ndim > 0
    else:
        listed = isinstance(value, tuple | list | range) or _is_iterable(value)
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
    """Whether an object of a class, as an array of another library, has items."""
    methods = ("__iter__", "__getitem__")
    return not _is_plain(value) and any(hasattr(value, name) for name in methods)


def _is_plain(value: Any) -> bool:
    """Whether a value is of a type of Python or numpy, and so no object of a class."""
    return type(value).__module__ in ("builtins", "numpy", "decimal", "fractions")


def _is_numbers(value: Any) -> bool:
    try:
        found = np.asarray(value)
    except (TypeError, ValueError, OverflowError):
        return False
    return found.dtype.kind in "biuf"  # a scalar stands for equal entries


# --- what is declared ---------------------------------------------------------


@dataclass(frozen=True)
class Field:
    """A field as its class declares it.

    Attributes:
        name: its name.
        kind: its type, without None.
        optional: whether it may be None.
        rule: requirement on its values; None where the type says all.
        text: its description, in a sentence; "" where there is none.
        default: its default, which may be made anew by a factory; MISSING for none.
        keyword_only: whether it is given by its name only.
    """

    name: str
    kind: Any
    optional: bool
    rule: Callable[[Any], Any] | None
    text: str
    default: Any
    keyword_only: bool

    @property
    def unit(self) -> str:
        """Unit of its numbers; "N m or N" where it depends on other things."""
        return self.rule.unit if isinstance(self.rule, Rule) else ""

    @property
    def choices(self) -> tuple[str, ...]:
        """The names that it may be, where it is one of some."""
        return self.rule.choices if isinstance(self.rule, Rule) else ()

    @property
    def required(self) -> bool:
        """Whether it has no default."""
        return self.default is MISSING

    @property
    def is_changed(self) -> bool:
        """Whether fields of its default are given one by one, as those of weights."""
        known = isinstance(self.kind, type) and is_dataclass(self.kind)
        return known and isinstance(self.default, self.kind)

    @property
    def help(self) -> str:
        """The text as a note, with the unit: "duration of the run [s]"."""
        text = self.text.rstrip(".")
        if text[1:2].islower() and not _NAMES.match(text):
            text = text[:1].lower() + text[1:]
        unit = f" [{self.unit.replace(' or ', ', ')}]" if self.unit else ""
        head, *rest = re.split(r"(?=[;:] |(?<!\.[a-z])\. )", text, maxsplit=1)
        return head + unit + "".join(rest)


_NAMES = re.compile("Coulomb|Meshcat|Newton|Poisson|Rayleigh|Young")
"""Names that keep their capital within a sentence."""


@cache
def declared(cls: type) -> Mapping[str, Field]:
    """The fields of a dataclass by name, those that it is made with."""
    found: dict[str, tuple[Any, Any]] = {}
    texts: dict[str, str] = {}
    for base in reversed(cls.__mro__):
        if is_dataclass(base):
            found |= {name: (hint, rule) for name, hint, rule in _own(base)}
            texts |= _texts(base)
    result = {}
    for entry in [one for one in fields(cls) if one.init]:
        hint, rule = found[entry.name]
        inner = get_args(hint) if get_origin(hint) in (Union, UnionType) else (hint,)
        kinds = [one for one in inner if one is not NoneType]
        default = entry.default
        if default is MISSING and entry.default_factory is not MISSING:
            default = entry.default_factory()
            default = rule(default) if isinstance(rule, Rule) else default
        kind: Any = Union[tuple(kinds)]  # noqa: UP007 - of one or more
        is_optional, text = len(kinds) < len(inner), texts.get(entry.name, "")
        own = kind, is_optional, rule, text, default, bool(entry.kw_only)
        result[entry.name] = Field(entry.name, *own)
    return result


@cache
def _texts(cls: type) -> dict[str, str]:
    """The texts that stand below the fields which a class declares."""
    try:
        node: Any = ast.parse(textwrap.dedent(inspect.getsource(cls))).body[0]
    except (OSError, TypeError, SyntaxError):
        return {}
    found = {}
    for pair in pairwise(node.body):
        match pair:
            case ast.AnnAssign(ast.Name(name)), ast.Expr(ast.Constant(str(text))):
                found[name] = " ".join(inspect.cleandoc(text).split())
    return found


class _Doc:
    """The docstring of a class, with the texts of its fields, read when asked for."""

    def __init__(self, text: str):
        self.text = text

    def __get__(self, owner: Any, cls: type) -> str:
        known = [entry for entry in declared(cls).values() if entry.text]
        if not known:
            return self.text
        wrapper = textwrap.TextWrapper(88, "    ", "        ")
        lines = [wrapper.fill(f"{x.name}: {x.help}.") for x in known]
        text, found, rest = inspect.cleandoc(self.text).partition("\n\nRaises:")
        attributes = "\n".join(["\n\nAttributes:", *lines])
        return f"{text}{attributes}{found}{rest}"
