"""Files: written whole or not at all, and read with every failure named.

with replacing("table.csv") as part:
    part.write_text(text)

top = Fields(read_yaml(path), "the file", known=("name", "mass"))
mass = top.number("mass", 1.0)
"""

from __future__ import annotations

import itertools
import math
import os
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import yaml

from drakebots.core.errors import FileProblem, InvalidInput, UnknownName

REQUIRED = object()
"""The default of an entry that must be there."""

TOP = "the file"
"""Where the outermost mapping of a file stands."""


def read_yaml(path: Path, problem: type[FileProblem] = FileProblem) -> Any:
    """The parsed document of a YAML file.

    Args:
        path: the file.
        problem: raised when it cannot be read.

    Raises:
        FileProblem: as `problem`, for a file that cannot be opened or is no text,
            or is no YAML: too deeply nested, with an impossible date or number.
    """
    try:
        text = path.read_text()
    except (OSError, UnicodeDecodeError) as error:
        raise problem(path, f"cannot be read: {error}") from error
    try:
        return parse_yaml(text)
    except InvalidInput as error:
        raise problem(path, str(error)) from error


def parse_yaml(text: str) -> Any:
    """The document in a text.

    Raises:
        InvalidInput: when it is no YAML, too deeply nested, or has an impossible
            date or number.
    """
    try:
        return yaml.safe_load(text)
    except (yaml.YAMLError, RecursionError, ValueError) as error:
        raise InvalidInput(f"is not YAML: {error}") from error


class Fields:
    """The entries of one mapping of a file of ours, read strictly.

    Args:
        raw: a parsed node.
        where: it stands in the file, for messages, e.g. "limb 2".
        known: its entries; None: any.

    Raises:
        InvalidInput: for what is no mapping.
        UnknownName: for an entry that is not known.
    """

    def __init__(self, raw: Any, where: str, known: Iterable[str] | None = None):
        if not isinstance(raw, Mapping):
            raise InvalidInput(f"{where}: needs `name: value` entries")
        if known is not None:
            known = tuple(known)
            for key in raw:
                if key not in known:
                    raise UnknownName(f"entry of {where}", str(key), known)
        self.raw, self.where = raw, where

    def __contains__(self, key: str) -> bool:
        return key in self.raw

    def __iter__(self) -> Iterator[str]:
        return iter(map(str, self.raw))

    def get(self, key: str, default: Any = REQUIRED) -> Any:
        """An entry as it is.

        Raises:
            InvalidInput: when it is missing and has no default; so do the others.
        """
        if key in self.raw:
            return self.raw[key]
        if default is REQUIRED:
            raise InvalidInput(f"{self.where}: needs `{key}`")
        return default

    def number(self, key: str, default: Any = REQUIRED) -> float:
        """A finite number."""
        return number(self.get(key, default), self._place(key))

    def integer(self, key: str, default: Any = REQUIRED) -> int:
        """A whole number."""
        return integer(self.get(key, default), self._place(key))

    def flag(self, key: str, default: Any = REQUIRED) -> bool:
        """True or false."""
        value = self.get(key, default)
        if not isinstance(value, bool):
            raise InvalidInput(f"{self._place(key)}: must be true or false: {value!r}")
        return value

    def text(self, key: str, default: Any = REQUIRED) -> str:
        """A text; numbers are taken as they are written."""
        value = self.get(key, default)
        if value is None or isinstance(value, Mapping | list):
            raise InvalidInput(f"{self._place(key)}: must be a text, got {value!r}")
        return str(value)

    def items(self, key: str) -> list:
        """A list; empty where there is none."""
        value = self.get(key, [])
        if not isinstance(value, list):
            raise InvalidInput(f"{self._place(key)}: needs a list, got {value!r}")
        return value

    def fields(self, key: str, known: Iterable[str] | None = None) -> Fields:
        """A mapping; empty where there is none."""
        return Fields(self.get(key, {}), self._place(key), known)

    def _place(self, key: str) -> str:
        return key if self.where == TOP else f"{self.where} {key}"


def number(value: Any, where: str) -> float:
    """A finite number of a file.

    Raises:
        InvalidInput: for anything else.
    """
    # YAML reads 8e5 without a point as text.
    try:
        found = float(value)
    except (TypeError, ValueError, OverflowError):
        found = math.nan
    if isinstance(value, bool) or not math.isfinite(found):
        raise InvalidInput(f"{where}: {value!r} must be a finite number")
    return found


def integer(value: Any, where: str) -> int:
    """A whole number of a file.

    Raises:
        InvalidInput: for anything else.
    """
    if isinstance(value, bool) or not isinstance(value, int):
        raise InvalidInput(f"{where}: {value!r} must be an integer")
    return value


_part_numbers = itertools.count()


def check_output(path: str | Path) -> Path:
    """Checks that a file can be written at `path`; call it before long work.

    A file that is there stays as it is; a symbolic link is followed.

    Returns:
        The absolute path that will be written.

    Raises:
        FileProblem: when the folder is missing or cannot be written, or
            `path` is something else than a file.
    """
    try:
        target = Path(os.path.realpath(path))
        taken, in_folder = target.exists() and not target.is_file(), target.parent
        missing = not in_folder.is_dir()
    except (OSError, ValueError) as error:
        raise FileProblem(path, f"cannot be a file ({error}); rename it") from error
    if taken:
        raise FileProblem(path, "is not a file; give the name of a file to write")
    if missing:
        raise FileProblem(
            path, f"there is no folder {in_folder}; make it first or choose another"
        )
    # Trying is the only check that also sees read-only mounts and quotas.
    probe = _part(target)
    try:
        probe.touch(exist_ok=False)
    except OSError as error:
        raise FileProblem(
            path,
            f"cannot write into {in_folder} ({error.strerror}); choose another folder",
        ) from error
    finally:
        _remove(probe)
    return target


def _part(target: Path) -> Path:
    number = next(_part_numbers)
    return target.with_name(f".{target.name}.part-{os.getpid()}-{number}")


@contextmanager
def replacing(path: str | Path) -> Iterator[Path]:
    """Gives a temporary file to write; it takes the place of `path` at the end.

    Whatever ends the body early, `path` stays as it was and the temporary file
    is removed.

    Raises:
        FileProblem: when the file cannot be written.
    """
    target = check_output(path)
    part = _part(target)
    try:
        yield part
        with open(part, "rb") as file:
            os.fsync(file.fileno())
        os.replace(part, target)
        _sync_folder(target.parent)
    except OSError as error:
        reason = error.strerror or error
        raise FileProblem(
            path, f"could not be written ({reason}); free some space or save elsewhere"
        ) from error
    finally:
        _remove(part)


def _remove(part: Path) -> None:
    # After a failure the folder may be gone or refuse this too; the failure
    # itself is what the user must see.
    with suppress(OSError):
        part.unlink()


def _sync_folder(folder: Path) -> None:
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
