"""Files: written whole or not at all, and YAML read with every failure named."""

from __future__ import annotations

import itertools
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import yaml

from drakebots.core.errors import FileProblem, InvalidInput


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
