"""The provenance of a result: model files and their hashes, versions, options."""

from __future__ import annotations

import datetime
import hashlib
import os
import platform
from collections.abc import Iterable, Mapping
from importlib import metadata
from pathlib import Path
from typing import Any

from drakebots.core.errors import FileProblem
from drakebots.core.threads import numerics
from drakebots.results.plain import freeze, thaw


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
        model: what the model can be made from again, if its files are gone; see
            :func:`drakebots.model.model_provenance`.

    Returns:
        `files` (absolute path -> SHA-256 in hexadecimal), `drakebots`, `drake`,
        `python` (versions), `numerics` (what the last bits of a result depend on, see
        :func:`drakebots.core.threads.numerics`), `options`, `seed`, `date` (UTC,
        ISO 8601), and `model`, if given.

    Raises:
        FileProblem: when a model file cannot be read.
        InvalidInput: when an option cannot be stored.
    """
    if model_path is None:
        paths = []
    elif isinstance(model_path, str | Path):
        paths = [model_path]
    else:
        paths = list(model_path)
    now = datetime.datetime.now(datetime.UTC)
    record = {
        "files": {os.path.abspath(path): file_hash(path) for path in paths},
        "drakebots": _version("drakebots"),
        "drake": _version("drake"),
        "python": platform.python_version(),
        "numerics": numerics(),
        "options": dict(options),
        "seed": seed,
        "date": now.isoformat(timespec="seconds"),
    }
    if model is not None:
        record["model"] = dict(model)
    return thaw(freeze(record, "provenance"))


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


def _version(package: str) -> str:
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        # Drake from its tar archive or from source has no package metadata.
        return "unknown"
