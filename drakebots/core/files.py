"""Files: written whole or not at all, and read strictly, with every failure named.

with replacing("table.csv") as part:
    part.write_text(text)

    top = Fields(read_yaml(path), TOP, known=("name", "mass"))
    mass = top.number("mass", 1.0)
"""

from __future__ import annotations

import csv
import fcntl
import itertools
import math
import os
import platform
import shutil
import stat
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Any

import numpy as np
import yaml

from drakebots.core.checks import array, check_value, flag
from drakebots.core.errors import DrakebotsError, FileProblem, InvalidInput, check_names


@contextmanager
def reading(
    path: Path | str, problem: type[FileProblem] = FileProblem
) -> Iterator[None]:
    """Names the file in whatever goes wrong while it is read.

    Raises:
        FileProblem: as `problem`, for a file that cannot be opened or is no text, and
            in place of every other error of drakebots.
    """
    try:
        yield
    except FileProblem:
        raise
    except DrakebotsError as error:
        raise problem(path, str(error)) from error
    except (OSError, UnicodeDecodeError) as error:
        raise problem(path, f"cannot be read: {error}") from error


# --- reading YAML -----------------------------------------------------------

REQUIRED = object()
"""The default of an entry that must not be missing."""

MAX_YAML = 1_000_000
"""A larger YAML file is refused before it is read: the parser takes some 10 s."""

TOP = "the file"
"""The place of the outermost mapping of a file."""


def read_yaml(path: Path, problem: type[FileProblem] = FileProblem) -> Any:
    """The parsed document of a YAML file.

    Args:
        path: the file.
        problem: the exception to raise when it cannot be read.

    Raises:
        FileProblem: as `problem`, for a file that cannot be opened, is no text or is
            no YAML: it is too deeply nested, or has an impossible date or number.
    """
    with reading(path, problem):
        check_readable(path, MAX_YAML)
        return parse_yaml(path.read_text())


def check_readable(path: Path, max_bytes: int) -> None:
    """Refuses what cannot be read in seconds: a pipe, a device, a file too large.

    Raises:
        InvalidInput: for anything but a file of at most `max_bytes`.
        OSError: for a file that does not exist.
    """
    status = path.stat()
    if not stat.S_ISREG(status.st_mode):
        raise InvalidInput("is no regular file; give one")
    if status.st_size > max_bytes:
        raise InvalidInput(f"is larger than {max_bytes / 1e6:g} MB; make it smaller")


def parse_yaml(text: str) -> Any:
    """The parsed document of a YAML text.

    Raises:
        InvalidInput: when it is no YAML, too deeply nested, has an impossible date or
            number, or an anchor, since aliases can stand for more than fits in memory.
    """
    return _loaded(yaml.load, text)


def compose_yaml(text: str) -> yaml.Node | None:
    """The nodes of a YAML text, with tags that only others know; None for none.

    Raises:
        InvalidInput: as :func:`parse_yaml`.
    """
    return _loaded(yaml.compose, text)


def _loaded(load: Callable, text: str) -> Any:
    try:
        return load(text, Loader=_PlainLoader)
    except (yaml.YAMLError, RecursionError, ValueError) as error:
        raise InvalidInput(f"is not YAML: {error}") from error


class _PlainLoader(yaml.SafeLoader):
    """Reads YAML without anchors."""

    def compose_node(self, parent, index):
        anchor = getattr(self.peek_event(), "anchor", None)
        if anchor is not None:
            raise InvalidInput(
                f"has the anchor or alias {anchor!r}, which are not read; write what "
                "it stands for"
            )
        return super().compose_node(parent, index)


class Fields:
    """Strict access to the entries of one mapping of a file.

    The methods take the name of an entry, and a default: without one a missing entry
    raises InvalidInput. So does a value of another type. A default of None is returned
    as it is.

    Args:
        raw: a parsed node.
        where: its place in the file, for messages, e.g. "limb 2", or :data:`TOP`.
        known: the names of its entries; None allows any.

    Attributes:
        raw: its entries by name.
        where: as given.

    Raises:
        InvalidInput: for a node that is no mapping.
        UnknownName: for an entry that is not known.
    """

    def __init__(self, raw: Any, where: str, known: Iterable[str] | None = None):
        if not isinstance(raw, Mapping):
            raise InvalidInput(f"{where}: needs `name: value` entries")
        self.raw, self.where = {str(key): value for key, value in raw.items()}, where
        if known is not None:
            check_names(f"entry of {where}", self.raw, tuple(known))

    def __contains__(self, key: str) -> bool:
        return key in self.raw

    def __iter__(self) -> Iterator[str]:
        return iter(self.raw)

    def get(self, key: str, default: Any = REQUIRED) -> Any:
        """An entry as it is."""
        if key in self.raw:
            return self.raw[key]
        if default is REQUIRED:
            raise InvalidInput(f"{self.where}: needs `{key}`")
        return default

    def number(self, key: str, default: Any = REQUIRED) -> float:
        """A finite number."""
        return self._read(key, default, number)

    def array(
        self,
        key: str,
        shape: tuple[int | None, ...],
        unit: str = "",
        default: Any = REQUIRED,
    ) -> np.ndarray:
        """Finite numbers of a shape, as in :func:`drakebots.core.checks.array`."""
        rule = array(shape, unit)
        return self._read(
            key, default, lambda x, place: check_value(place, with_numbers(x), rule)
        )

    def flag(self, key: str, default: Any = REQUIRED) -> bool:
        """True or false."""
        take = flag()
        return self._read(key, default, lambda x, place: check_value(place, x, take))

    def text(self, key: str, default: Any = REQUIRED) -> str:
        """A text; numbers become texts."""
        return self._read(key, default, _text)

    def items(self, key: str) -> list:
        """A list; an empty one where the entry is missing."""
        return self._read(key, [], _items)

    def fields(self, key: str, known: Iterable[str] | None = None) -> Fields:
        """A mapping; an empty one where the entry is missing."""
        return self._read(key, {}, lambda value, place: Fields(value, place, known))

    def _read(self, key: str, default: Any, convert: Callable[[Any, str], Any]) -> Any:
        value = self.get(key, default)
        if value is None and default is None:
            return None
        return convert(value, key if self.where == TOP else f"{self.where} {key}")


def number(value: Any, where: str) -> float:
    """A finite number of a file.

    Raises:
        InvalidInput: for anything else.
    """
    # YAML reads 8e5, which has no point, as text.
    try:
        found = float(value)
    except (TypeError, ValueError, OverflowError):
        found = math.nan
    if isinstance(value, bool) or not math.isfinite(found):
        raise InvalidInput(f"{where}: {value!r} must be a finite number")
    return found


def csv_table(text: str, *, gaps: bool = False) -> tuple[list[str], np.ndarray]:
    """Heads of the columns of a CSV text, and its numbers (T, n); T >= 1.

    Args:
        text: the table.
        gaps: whether cells may be empty or NaN; both are NaN then.

    Raises:
        InvalidInput: naming the line and the column that is wrong.
    """
    try:
        lines = [
            (k, [cell.strip() for cell in row])
            for k, row in enumerate(csv.reader(text.splitlines()), 1)
            if any(cell.strip() for cell in row)
        ]
    except csv.Error as error:
        raise InvalidInput(f"is no table ({error})") from None
    if len(lines) < 2:
        raise InvalidInput("needs a line of column heads, and lines of numbers")
    (_, heads), *others = lines
    rows: list[list[float]] = []
    for k, row in others:
        if len(row) != len(heads):
            raise InvalidInput(f"line {k}: {len(row)} values for {len(heads)} columns")
        rows.append([])
        for cell, head in zip(row, heads):
            gap = gaps and cell.lower() in ("", "nan")
            place = f"line {k}, column {head}"
            rows[-1].append(math.nan if gap else number(cell, place))
    return heads, np.array(rows)


def with_numbers(value: Any) -> Any:
    """Lists with the numbers that YAML reads as text (8e5) as numbers."""
    if isinstance(value, list):
        return [with_numbers(entry) for entry in value]
    try:
        return float(value) if isinstance(value, str) else value
    except ValueError:
        return value


def _text(value: Any, where: str) -> str:
    if value is None or isinstance(value, bool | Mapping | list):
        raise InvalidInput(f"{where}: must be a text, got {value!r}")
    return str(value)


def _items(value: Any, where: str) -> list:
    if not isinstance(value, list):
        raise InvalidInput(f"{where}: needs a list, got {value!r}")
    return value


# --- writing ----------------------------------------------------------------


def cache_folder(part: str = "") -> Path:
    """The folder of what is made once on a machine: $XDG_CACHE_HOME/drakebots.

    It may not be there yet, or no folder that can be made.

    Args:
        part: a folder in it.
    """
    base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(base) / "drakebots" / part


_part_numbers = itertools.count()


@contextmanager
def replacing(path: str | Path) -> Iterator[Path]:
    """Gives a temporary file to write; it takes the place of `path` at the end.

    Whatever ends the body early, `path` stays as it was and the temporary file
    is removed; where the process is killed, by the next that writes to `path`.

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


def write_text(path: str | Path, text: str) -> Path:
    """Writes a text file in UTF-8, whole or not at all.

    Raises:
        FileProblem: when the file cannot be written.
    """
    with replacing(path) as part:
        part.write_text(text, encoding="utf-8")
    return Path(path)


def write_csv(path: str | Path, heads: Iterable[str], rows: Iterable[Iterable]) -> Path:
    """Writes a table in UTF-8, whole or not at all; numbers read back exactly.

    Raises:
        FileProblem: when the file cannot be written.
    """
    with replacing(path) as part, open(part, "w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(heads)
        writer.writerows(rows)
    return Path(path)


def with_ending(path: str | Path, endings: Iterable[str]) -> Path:
    """The path, where its name has one of some endings, in letters of any case.

    Raises:
        FileProblem: for another ending.
    """
    if not str(path).lower().endswith(tuple(endings)):
        raise FileProblem(path, f"needs the ending {' or '.join(endings)}")
    return Path(path)


def check_output(path: str | Path) -> Path:
    """Checks that a file can be written at `path`; call it before long work.

    An existing file stays as it is; a symbolic link is followed.

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
    _remove_left(target)
    return target


def make_folder(path: str | Path) -> Path:
    """The absolute path of a folder, which is made where it is not there.

    Raises:
        FileProblem: when it cannot be.
    """
    folder = Path(path).absolute()
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise FileProblem(path, f"cannot be made a folder ({error.strerror})") from None
    return folder


@contextmanager
def claimed(paths: Iterable[Path]) -> Iterator[None]:
    """While it lasts, these files are this run's to write: another's claim is refused.

    A claim is a lock of a hidden file beside the output, which ends with the process,
    whatever ends it. File systems without locks, and folders that cannot be written,
    know no claims.

    Args:
        paths: as :func:`check_output` returns them.

    Raises:
        FileProblem: for a file that another run has claimed.
    """
    with ExitStack() as claims:
        for path in paths:
            claims.enter_context(_claimed(path))
        yield


@contextmanager
def _claimed(target: Path) -> Iterator[None]:
    claim, file = target.with_name(f".{target.name}.claim"), None
    while file is None:
        try:
            file = os.open(claim, os.O_RDWR | os.O_CREAT, 0o666)
        except OSError:
            break
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(file)
            raise FileProblem(
                target,
                "is being written by another run; wait for it or name another file",
            ) from None
        except OSError:
            break
        if not _is_open(claim, file):  # the one that had it has removed it
            os.close(file)
            file = None
    try:
        yield
    finally:
        if file is not None:
            _remove(claim)
            os.close(file)


def _is_open(path: Path, file: int) -> bool:
    try:
        return os.path.samestat(os.fstat(file), os.stat(path))
    except FileNotFoundError:
        return False


def part_folder(target: Path) -> Path:
    """A new folder beside a file, to make it in; the caller removes it.

    Where the process is killed, the next that makes one for this file removes it.

    Raises:
        OSError: where it cannot be made.
    """
    _remove_left(target)
    folder = _part(target)
    folder.mkdir()
    return folder


def _part(target: Path) -> Path:
    number = next(_part_numbers)
    return target.with_name(f"{_part_start(target)}{os.getpid()}-{number}")


def _part_start(target: Path) -> str:
    # Of a process on another host nobody here can tell whether it lives.
    return f".{target.name}.part-{zlib.crc32(platform.node().encode()):08x}-"


def _remove_left(target: Path) -> None:
    """Removes temporary files of this one whose processes were killed."""
    start = _part_start(target)
    with suppress(OSError):
        for name in os.listdir(target.parent):
            pid = name.removeprefix(start).partition("-")[0]
            if name.startswith(start) and pid.isdigit() and not _lives(int(pid)):
                _remove(target.with_name(name))


def _lives(pid: int) -> bool:
    try:
        with suppress(PermissionError):  # somebody else's
            os.kill(pid, 0)
    except (ProcessLookupError, OverflowError):
        return False
    return True


def _remove(part: Path) -> None:
    # After a failure the folder may be gone or refuse this too; the failure
    # itself is what the user must see.
    with suppress(OSError):
        if part.is_dir():
            shutil.rmtree(part)
        else:
            part.unlink()


def _sync_folder(folder: Path) -> None:
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
