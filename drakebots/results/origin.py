"""The provenance of a result: model files and their hashes, versions, options.

And the plain values that it is made of, which a JSON text can hold.
"""

from __future__ import annotations

import dataclasses
import datetime
import hashlib
import json
import os
import platform
from collections.abc import Iterable, Mapping
from enum import Enum
from pathlib import Path, PurePath
from types import MappingProxyType
from typing import Any

import numpy as np

from drakebots.core.convert import plain
from drakebots.core.errors import FileProblem, InvalidInput
from drakebots.core.installed import version_of
from drakebots.core.threads import numerics

_MAX_DEPTH = 32
_MAX_BITS = 1024


def provenance(
    model_path: str | Path | Iterable[str | Path] | None,
    options: Mapping[str, Any],
    seed: int | None = None,
    *,
    model: Mapping[str, Any] | None = None,
) -> dict[str, Any]:
    """The record that makes a result reproducible.

    Args:
        model_path: the model file, or all files that the model consists of; None
            for a model made in code.
        options: the options of the run: numbers, texts, lists, mappings and
            dataclasses of them.
        seed: seed of the random numbers, if there are any.
        model: description to make the model from again, if its files are gone; see
            :func:`drakebots.formats.model_provenance`.

    Returns:
        `files` (absolute path -> SHA-256 in hexadecimal), `drakebots`, `drake`,
        `python` (versions), `numerics` (what the last bits of a result depend on, see
        :func:`drakebots.core.threads.numerics`), `options`, `seed`, `date` (UTC,
        ISO 8601), and `model`, if given.

    Raises:
        FileProblem: when a model file cannot be read.
        InvalidInput: when an option cannot be stored.
    """
    paths = [model_path] if isinstance(model_path, str | Path) else model_path or ()
    now = datetime.datetime.now(datetime.UTC)
    record = {
        "files": {os.path.abspath(path): file_hash(path) for path in paths},
        # Drake from its tar archive or from source has no package metadata.
        "drakebots": version_of("drakebots") or "unknown",
        "drake": version_of("drake") or "unknown",
        "python": platform.python_version(),
        "numerics": numerics(),
        "options": dict(options),
        "seed": seed,
        "date": now.isoformat(timespec="seconds"),
    }
    if model is not None:
        record["model"] = dict(model)
    return plain(freeze(record, "provenance"), finite=False)


def file_hash(path: str | Path) -> str:
    """The SHA-256 of a file, in hexadecimal.

    Raises:
        FileProblem: when it cannot be read.
    """
    try:
        with open(path, "rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    except OSError as error:
        raise FileProblem(
            path, f"cannot be read ({error.strerror}); give the model's file"
        ) from error


# --- plain values -------------------------------------------------------------


def check_text(text: Any, where: str) -> str:
    """The text, if every reader of result files can read it.

    Raises:
        InvalidInput: when it is no string, holds NUL or is not valid Unicode.
    """
    if not isinstance(text, str):
        raise InvalidInput(f"{where}: must be text, got {type(text).__name__}")
    try:
        text.encode("utf-8")
    except UnicodeEncodeError as error:
        raise InvalidInput(f"{where}: {text!r} is not valid Unicode text") from error
    if "\0" in text:
        raise InvalidInput(f"{where}: {text!r} holds a NUL character; leave it out")
    return str(text)


def freeze(value: Any, where: str, depth: int = 0) -> Any:
    """An immutable copy: mappings become read-only, lists and arrays tuples.

    NumPy scalars become Python numbers, paths text, dataclasses mappings.

    Raises:
        InvalidInput: for a value that JSON cannot hold.
    """
    # A limit on the depth also stops at a structure that contains itself.
    if depth > _MAX_DEPTH:
        raise InvalidInput(f"{where}: nested deeper than {_MAX_DEPTH} levels")
    if isinstance(value, Enum):
        value = value.value
    if value is None or isinstance(value, bool | np.bool_):
        return None if value is None else bool(value)
    if isinstance(value, int | np.integer):
        if int(value).bit_length() > _MAX_BITS:
            raise InvalidInput(f"{where}: an integer of more than {_MAX_BITS} bits")
        return int(value)
    if isinstance(value, float | np.floating):
        return float(value)
    if isinstance(value, str | PurePath):
        return check_text(str(value), where)
    if isinstance(value, np.ndarray):
        return freeze(value.tolist(), where, depth)
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        value = {f.name: getattr(value, f.name) for f in dataclasses.fields(value)}
    if isinstance(value, Mapping):
        frozen = {}
        for key, item in value.items():
            name = check_text(key, f"a key of {where}")
            frozen[name] = freeze(item, f"{where}.{name}", depth + 1)
        return MappingProxyType(frozen)
    if isinstance(value, list | tuple):
        return tuple(freeze(x, f"{where}[{i}]", depth + 1) for i, x in enumerate(value))
    raise InvalidInput(
        f"{where}: {type(value).__name__} cannot be stored; use numbers, text, "
        "lists and mappings of them"
    )


def to_json(value: Any, *, sort: bool = False) -> str:
    """A frozen value as ASCII JSON; NaN and Infinity as Python writes them."""
    return json.dumps(plain(value, finite=False), sort_keys=sort)
