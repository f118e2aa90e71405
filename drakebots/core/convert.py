"""Values of fields from what files and command lines say.

    build(Walk, {"stride": 0.02, "cycles": 3})          # a mapping of a YAML file
    from_word(Sequence[float], "1mm,2mm", "--at", "m")  # (0.001, 0.002)

A class whose objects are files of their own has a class method `from_file(path)`; one
that a single word can say, as "50N@1s", has `from_word(text, what)`.
"""

from __future__ import annotations

import math
import os
import re
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import is_dataclass, replace
from pathlib import Path
from types import NoneType, UnionType
from typing import Any, Union, get_args, get_origin

import numpy as np

from drakebots.core.checks import Rule
from drakebots.core.errors import InvalidInput, UnknownName, check_names
from drakebots.core.fields import Field, declared
from drakebots.core.files import parse_yaml
from drakebots.core.units import dimensions, si_factor

# --- from a file ---------------------------------------------------------------


class OtherType(InvalidInput):
    """A value that has another type than its field."""

    def __init__(self, where: str, what: str, value: Any):
        self.where, self.what = where, what
        super().__init__(f"{where} must be {what}, got {value!r:.60}")


def names_of(value: Any, where: str) -> dict[str, Any]:
    """A mapping of names as a dict of its own.

    Raises:
        OtherType: for anything else.
    """
    if not isinstance(value, Mapping) or not all(isinstance(k, str) for k in value):
        raise OtherType(where, "a mapping of names", value)
    return dict(value)


def build(kind: type, value: Any, where: str = "", folder: Path = Path()) -> Any:
    """A dataclass from a mapping of its fields, as a YAML file has it.

    Lists become tuples, classes that a field allows stand by their names
    (`{Slope: {angle: 0.1}}`), and files are looked for beside the file first.

    Args:
        kind: the dataclass.
        value: the mapping.
        where: its place in the file, for messages.
        folder: folder of the file.

    Raises:
        UnknownName: for a field that the class does not have.
        InvalidInput: for a value of another type or out of range.
    """
    converted = _entries(kind, value, where, folder)
    try:
        return kind(**converted)
    except TypeError as error:
        raise InvalidInput(f"{where or kind.__name__}: {error}") from None


def changed(base: Any, value: Any, where: str) -> Any:
    """A dataclass with the fields of a mapping, also those of its own dataclasses.

    Raises:
        UnknownName, InvalidInput: as :func:`build`.
    """
    return replace(base, **_entries(type(base), value, where, Path(), base))


def _entries(
    kind: type, value: Any, where: str, folder: Path, base: Any = None
) -> dict[str, Any]:
    """The fields of a dataclass that a mapping says, in place of those of `base`."""
    known, found = declared(kind), {}
    for name, entry in names_of(value, where or "a scenario").items():
        check_names(f"field of {where or kind.__name__}", [name], known)
        place, hint = f"{where}.{name}" if where else name, known[name].kind
        old = getattr(base, name, known[name].default)
        if known[name].is_changed and isinstance(entry, Mapping):
            found[name] = replace(old, **_entries(hint, entry, place, folder, old))
            continue
        hint = Union[hint, None] if known[name].optional else hint  # noqa: UP007
        found[name] = from_yaml(hint, entry, place, folder)
    return found


def near(word: str, folder: Path) -> str:
    """A file beside another one, or the word itself."""
    return str(folder / word) if os.path.isfile(folder / word) else word


_PLAIN = {bool: "true or false", int: "a whole number", str: "a text", NoneType: "null"}


def from_yaml(hint: Any, value: Any, where: str, folder: Path = Path()) -> Any:
    """A value of a type from what a YAML file says; as :func:`build`.

    Raises:
        OtherType: for a value of another type.
        InvalidInput, UnknownName: as :func:`build`.
    """
    origin, arguments = get_origin(hint), get_args(hint)
    if origin in (Union, UnionType):
        return _one_of(arguments, value, where, folder)
    if hint is Any:
        return value
    if hint in _PLAIN:
        if type(value) is hint:
            return value
        raise OtherType(where, _PLAIN[hint], value)
    if hint is float:
        return _number(value, where)
    if hint is Path:
        if isinstance(value, str):
            return Path(near(value, folder))
        raise OtherType(where, "a path", value)
    if hint is tuple or origin is tuple:
        return _tuple(arguments, value, where, folder)
    if origin is Sequence:
        return _tuple((*arguments, ...), value, where, folder)
    if origin is not None and issubclass(origin, Mapping):
        given, of = names_of(value, where), arguments[1]
        return {k: from_yaml(of, v, f"{where}.{k}", folder) for k, v in given.items()}
    if isinstance(value, str) and hasattr(hint, "from_file"):
        return hint.from_file(near(value, folder))
    if isinstance(hint, type) and is_dataclass(hint):
        return build(hint, value, where, folder)
    return _named_class(hint, value, where, folder)


def as_yaml(value: Any, kind: Any = None) -> Any:
    """Form of a value in a YAML file; :func:`build` makes it again from that.

    What no file can hold, as a function that gives the height of a terrain, becomes its
    `repr`: a result is stored with it, and only :func:`build` refuses it.

    Args:
        value: a dataclass, numbers, texts, arrays, lists and mappings of them, or an
            object that says itself what it is, by `to_yaml()`.
        kind: the type of its field, which names the class of another dataclass.
    """
    if hasattr(value, "to_yaml"):
        return value.to_yaml()
    if is_dataclass(value) and not isinstance(value, type):
        own = declared(type(value)).values()
        said = {f.name: as_yaml(getattr(value, f.name), f.kind) for f in own}
        named = kind is not None and type(value).__name__ in subclasses(kind)
        return {type(value).__name__: said} if named else said
    if isinstance(value, Mapping):
        return {name: as_yaml(entry) for name, entry in value.items()}
    if isinstance(value, np.ndarray | np.generic):
        return value.tolist()
    if isinstance(value, list | tuple):
        return [as_yaml(entry, item_of(kind)) for entry in value]
    if value is None or isinstance(value, bool | int | float | str):
        return value
    return str(value) if isinstance(value, Path) else repr(value)


def plain(value: Any, *, finite: bool = True) -> Any:
    """Converts a value to dicts and lists, as JSON has them.

    Args:
        value: of mappings, tuples and what JSON can hold.
        finite: whether NaN and infinite numbers become None.
    """
    if isinstance(value, Mapping):
        return {str(k): plain(v, finite=finite) for k, v in value.items()}
    if isinstance(value, list | tuple):
        return [plain(v, finite=finite) for v in value]
    if finite and isinstance(value, float) and not math.isfinite(value):
        return None
    return value


def _number(value: Any, where: str) -> float:
    try:
        if isinstance(value, bool):
            raise ValueError
        return float(value)  # YAML 1.1 takes 1e-3 for a text
    except (TypeError, ValueError):
        raise OtherType(where, "a number", value) from None


def _one_of(hints: tuple, value: Any, where: str, folder: Path) -> Any:
    """A value as the first of several types that takes it."""
    if Path in hints and isinstance(value, str):
        found = near(value, folder)
        return found if str in hints else Path(found)
    wrong = []
    for hint in hints:
        try:
            return from_yaml(hint, value, where, folder)
        except OtherType as error:
            if error.where != where:  # the type is right, an entry is not
                raise
            wrong.append(error.what)
    raise OtherType(where, " or ".join(dict.fromkeys(wrong)), value)


def _tuple(hints: tuple, value: Any, where: str, folder: Path) -> tuple:
    if not isinstance(value, list | tuple):
        raise OtherType(where, "a list", value)
    if not hints:
        return tuple(tuple(v) if isinstance(v, list) else v for v in value)
    if hints[-1] is Ellipsis:
        hints = (hints[0],) * len(value)
    if len(hints) != len(value):
        raise OtherType(where, f"a list of {len(hints)}", value)
    pairs = enumerate(zip(hints, value))
    return tuple(from_yaml(h, v, f"{where}[{i}]", folder) for i, (h, v) in pairs)


def subclasses(base: Any) -> dict[str, type]:
    """The dataclasses that a field of an abstract class may have, by their names."""
    kinds: Sequence[type] = base.__subclasses__() if isinstance(base, type) else ()
    return {kind.__name__: kind for kind in kinds if is_dataclass(kind)}


def _named_class(base: type, value: Any, where: str, folder: Path) -> Any:
    """An instance of a subclass by its name, `{Slope: {angle: 0.1}}`."""
    choices = subclasses(base)
    if not choices:
        raise OtherType(where, f"a {base.__name__}, which no file can say", value)
    given = {value: {}} if isinstance(value, str) else names_of(value, where)
    if len(given) != 1:
        raise OtherType(where, f"one of {', '.join(choices)}", value)
    ((name, inner),) = given.items()
    check_names(where, [name], choices)
    return build(choices[name], inner or {}, f"{where}.{name}", folder)


# --- the schema of a file -----------------------------------------------------


def schema(*kinds: type) -> dict[str, Any]:
    """The JSON Schema of dataclasses as :func:`build` takes them, by their names.

    Numbers carry `unit`, which is no word of JSON Schema and which validators leave
    alone.

    Returns:
        `$defs`: for each class, and for those of its fields, what a file may say.
    """
    found: dict[str, Any] = {}
    for kind in kinds:
        _object(kind, found)
    return {"$defs": found}


_JSON_TYPES = {float: "number", int: "integer", bool: "boolean", str: "string"}


def _object(kind: type, found: dict[str, Any]) -> dict[str, Any]:
    """A reference to the schema of a dataclass, which `found` gains."""
    place, name = f"{kind.__module__}.{kind.__qualname__}", kind.__qualname__
    if found.get(name, {}).get("$comment", place) != place:
        name = place  # another class has the name
    if name in found:
        return {"$ref": f"#/$defs/{name}"}
    said = found[name] = {"type": "object", "$comment": place}
    entries = declared(kind)
    said["properties"] = {n: _of_field(entry, found) for n, entry in entries.items()}
    said["required"] = [n for n, entry in entries.items() if entry.required]
    said["additionalProperties"] = False
    return {"$ref": f"#/$defs/{name}"}


def _of_field(entry: Field, found: dict[str, Any]) -> dict[str, Any]:
    said = dict(_of_type(entry.kind, found))
    if isinstance(entry.rule, Rule):
        said |= entry.rule.schema
    if entry.unit:
        said["unit"] = entry.unit
    if entry.optional:
        said = {"anyOf": [said, {"type": "null"}]}
    if entry.text:
        said["description"] = entry.text
    if isinstance(entry.default, bool | int | float | str):
        said["default"] = entry.default
    return said


def _of_type(hint: Any, found: dict[str, Any]) -> dict[str, Any]:
    kind, inner = get_origin(hint) or hint, get_args(hint)
    if kind in (Union, UnionType):
        parts = [_of_type(one, found) for one in inner if one is not NoneType]
        return {"anyOf": [p for k, p in enumerate(parts) if p not in parts[:k]]}
    if kind in _JSON_TYPES:
        return {"type": _JSON_TYPES[kind]}
    if not isinstance(kind, type):
        return {}
    if issubclass(kind, tuple | list | np.ndarray) or kind is Sequence:
        items = {"items": _of_type(inner[0], found)} if item_of(hint) and inner else {}
        return {"type": "array"} | items
    if issubclass(kind, Mapping):
        values = {"additionalProperties": _of_type(inner[1], found)} if inner else {}
        return {"type": "object"} | values
    if issubclass(kind, Path) or hasattr(kind, "from_file") or hasattr(kind, "to_yaml"):
        return {"type": "string"}
    if is_dataclass(kind):
        return _object(kind, found)
    named = subclasses(kind)
    needy = {n for n, c in named.items() for f in declared(c).values() if f.required}
    alone = [name for name in named if name not in needy]
    forms: list[dict[str, Any]] = [{"enum": alone}] if alone else []
    for name, one in named.items():
        object_ = {"properties": {name: _object(one, found)}, "required": [name]}
        forms.append({"type": "object", "additionalProperties": False} | object_)
    return {"anyOf": forms} if forms else {}


# --- from a word of a command line --------------------------------------------

_NUMBER = re.compile(r"\s*([-+]?[0-9.]+(?:[eE][-+]?[0-9]+)?|[-+]?inf|nan)\s*(\S.*)?")


def quantity(what: str, units: str = "") -> Callable[[str], float]:
    """A parser of numbers: bare in SI, or with a unit, "10Hz", "5 mm".

    Args:
        what: the number, for errors: an option, say.
        units: its unit, or several: "N m or N"; "" for none.
    """
    known = [word for word in units.split(" or ") if word and _is_unit(word)]

    def parse(word: str) -> float:
        parts = _NUMBER.fullmatch(word)
        try:
            value, unit = float(parts[1]), parts[2]  # type: ignore[index]
        except (TypeError, ValueError):
            raise InvalidInput(f"{what}: {word!r} is no number") from None
        if unit is None:
            return value
        if not known:
            raise InvalidInput(
                f"{what}: takes no unit, got {word!r}; write the number alone"
            )
        if not any(_measures(unit, other) for other in known):
            raise InvalidInput(
                f"{what}: {unit!r} is no unit for it; use {' or '.join(known)}"
            )
        return value * si_factor(unit)

    return parse


def _is_unit(text: str) -> bool:
    try:
        return si_factor(text) > 0
    except InvalidInput:
        return False


def _measures(unit: str, other: str) -> bool:
    """Whether two units are of the same quantity."""
    if not _is_unit(unit):
        return False
    if dimensions(unit) is None or dimensions(unit) != dimensions(other):
        return unit == other
    # 1 Hz and 1 rad/s have the same dimensions, an angle and 1 too.
    turns = [bool(re.search("rad|deg", text)) for text in (unit, other)]
    return turns[0] == turns[1]


_OF_TEXT: dict[Any, tuple[Callable[[str], Any], str]] = {
    int: (int, "is no whole number"),
    bool: ({"true": True, "false": False}.__getitem__, "must be true or false"),
    str: (str, ""),
    Path: (Path, ""),
}
"""What reads a word of a plain type, and what is said of another."""


def from_word(kind: Any, text: str, what: str, unit: str = "") -> Any:
    """A value of a type from a word of a command line.

    Numbers have units, lists commas ("1mm,2mm"), lists of points blanks ("0,1cm 2,3"),
    mappings and dataclasses "name=value,...", classes by name in any case,
    "stairs:rise=20mm,count=3"; a dataclass may also be said as in YAML,
    "{slack: [1, 10]}".

    Args:
        kind: the type.
        text: the word.
        what: the option, for errors.
        unit: unit of its numbers.

    Raises:
        InvalidInput: naming what is wrong, and how it is written.
        UnknownName: for a field or a class that there is not.
    """
    origin, inner = get_origin(kind) or kind, get_args(kind)
    if origin in (Union, UnionType):
        return _one_word(inner, text, what, unit)
    if kind is float:
        return finite_word(text, what, unit)
    if kind in _OF_TEXT:
        read, form = _OF_TEXT[kind]
        try:
            return read(text)
        except (ValueError, KeyError):
            raise InvalidInput(f"{what}: {text!r} {form}") from None
    if isinstance(origin, type) and issubclass(origin, Mapping):
        of = inner[1] if inner else float
        pairs = named_words(text, what).items()
        return {k: from_word(of, v, f"{what} of {k}", unit) for k, v in pairs}
    if item := item_of(kind):
        nested = item_of(item) or get_origin(item) is tuple
        words = text.split() if nested else text.split(",")
        return tuple(from_word(item, word, what, unit) for word in words)
    if origin is tuple:
        words = text.split(",")
        if len(words) != len(inner):
            form = ",".join("ABCDEF"[: len(inner)])
            raise InvalidInput(f"{what}: {text!r} must be {len(inner)} values {form}")
        parts = zip(inner, words)
        return tuple(from_word(one, word, what, unit) for one, word in parts)
    if hasattr(kind, "from_word"):
        return kind.from_word(text, what)
    if hasattr(kind, "from_file"):
        return kind.from_file(text)
    if text.lstrip().startswith("{"):
        return from_yaml(kind, parse_yaml(text), what)
    if isinstance(kind, type) and is_dataclass(kind):
        return kind(**field_words(kind, text, what))
    choices = subclasses(kind)
    name, _, rest = text.partition(":")
    in_any_case = {choice.lower(): one for choice, one in choices.items()}
    chosen = in_any_case.get(name.lower())
    if chosen is None:
        raise UnknownName(what, name, choices)
    return chosen(**field_words(chosen, rest, what))


def item_of(kind: Any) -> Any:
    """The type of a list's items; None for a type that is no list of any length."""
    origin, inner = get_origin(kind) or kind, get_args(kind)
    if origin is np.ndarray:
        return float
    if origin is Sequence or (origin is tuple and inner[1:] == (...,)):
        return inner[0]
    return None


def changed_by_word(value: Any, text: str, what: str) -> Any:
    """A dataclass with the fields that a word says, "name=value,..." or in YAML."""
    if text.lstrip().startswith("{"):
        return changed(value, parse_yaml(text), what)
    return replace(value, **field_words(type(value), text, what))


def field_words(kind: type, text: str, what: str) -> dict[str, Any]:
    """The fields of a dataclass that a word says, "name=value,...".

    Raises:
        InvalidInput, UnknownName: as :func:`from_word`.
    """
    known, found = declared(kind), {}
    for name, word in named_words(text, what).items():
        check_names(f"field of {what}", [name], known)
        entry = known[name]
        found[name] = from_word(entry.kind, word, f"{what} {name}", entry.unit)
    return found


def named_words(text: str, what: str) -> dict[str, str]:
    """The words of "name=word,name=word,..."; {} for an empty text.

    Raises:
        InvalidInput: for words that are none.
    """
    found = {}
    for word in filter(None, text.split(",")):
        name, equals, value = word.partition("=")
        if not equals or not name.strip():
            raise InvalidInput(f'{what}: {word!r} is no "name=value"')
        found[name.strip()] = value
    return found


def finite_word(text: str, what: str, unit: str = "") -> float:
    """A finite number of a unit.

    Raises:
        InvalidInput: naming what is none.
    """
    value = quantity(what, unit)(text)
    if not math.isfinite(value):
        raise InvalidInput(f"{what}: {text!r} is not finite")
    return value


def _one_word(kinds: Sequence[Any], text: str, what: str, unit: str) -> Any:
    """A word as the first of several types that takes it, texts last."""
    able = [kind for kind in kinds if _says(kind, text)] or kinds
    *others, last = sorted(able, key=lambda kind: kind in (str, Path))
    for kind in others:
        with suppress(InvalidInput):
            return from_word(kind, text, what, unit)
    return from_word(last, text, what, unit)


def _says(kind: Any, text: str) -> bool:
    """Whether a word may be meant for one of several types, by its form."""
    origin = get_origin(kind) or kind
    if isinstance(origin, type) and issubclass(origin, Mapping):
        return "=" in text
    if kind is tuple or kind is NoneType:
        return False
    if isinstance(kind, type) and kind not in (str, Path, int, float):
        return "{" in text or "=" in text or hasattr(kind, "from_word")
    return True
