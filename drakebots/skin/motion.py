"""Targets of the actuated joints over time: by name, or a table from a file."""

from __future__ import annotations

import csv
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from drakebots.core.errors import FileProblem, InvalidInput, UnknownName

MOTIONS = ("hold", "sine", "steps")
"""hold: the rest pose; sine: joints swing, each a quarter period after the one before;
steps: from the rest pose to +amplitude and -amplitude and back, each held for half a
period."""


@dataclass(frozen=True)
class NamedMotion:
    """A motion about the rest pose.

    Attributes:
        name: one of MOTIONS.
        amplitude: [rad].
        period: [s].
        rise: time in which a step is taken, and a sine begins [s].

    Raises:
        UnknownName, InvalidInput: for what cannot be.
    """

    name: str = "sine"
    amplitude: float = 0.4
    period: float = 2.0
    rise: float = 0.2

    def __post_init__(self):
        if self.name not in MOTIONS:
            raise UnknownName("motion", self.name, MOTIONS)
        if not np.isfinite(self.amplitude):
            raise InvalidInput(f"amplitude must be finite, got {self.amplitude}")
        for name in ("period", "rise"):
            value = getattr(self, name)
            if not (np.isfinite(value) and value > 0):
                raise InvalidInput(f"{name} must be > 0 s, got {value}")

    def at(self, time: float, rest: np.ndarray) -> np.ndarray:
        """Targets (m,) [rad] at a time [s]."""
        rest = np.asarray(rest, float)
        begin = _smooth(time / self.rise)
        if self.name == "hold":
            return rest.copy()
        if self.name == "sine":
            phase = 2 * np.pi * time / self.period - np.pi / 2 * np.arange(len(rest))
            return rest + self.amplitude * begin * np.sin(phase)
        half = self.period / 2
        levels = (0.0, 1.0, -1.0)
        k = int(time // half)
        now, before = levels[k % 3], levels[(k - 1) % 3] if k else 0.0
        share = _smooth((time - k * half) / self.rise)
        return rest + self.amplitude * (before + (now - before) * share)


def _smooth(s):
    s = np.clip(s, 0.0, 1.0)
    return s * s * (3 - 2 * s)


@dataclass(frozen=True)
class TableMotion:
    """Targets at times, linear between them, held before and after.

    Attributes:
        times: increasing (n,) [s].
        positions: (n, m) [rad].

    Raises:
        InvalidInput: for other shapes, or numbers that are not finite.
    """

    times: tuple[float, ...]
    positions: tuple[tuple[float, ...], ...]

    def __post_init__(self):
        try:
            times = np.array(self.times, float)
            rows = np.array(self.positions, float)
        except ValueError as error:
            raise InvalidInput("motion: rows need as many numbers each") from error
        if (
            times.ndim != 1
            or rows.ndim != 2
            or len(times) != len(rows)
            or not len(rows)
        ):
            raise InvalidInput(
                f"motion: {times.shape} times and {rows.shape} positions; needs (n,) "
                "and (n, joints)"
            )
        if not (np.isfinite(times).all() and np.isfinite(rows).all()):
            raise InvalidInput("motion: numbers must be finite")
        if (np.diff(times) <= 0).any():
            raise InvalidInput("motion: times must increase")
        object.__setattr__(self, "times", tuple(times.tolist()))
        object.__setattr__(self, "positions", tuple(map(tuple, rows.tolist())))

    def at(self, time: float, rest: np.ndarray) -> np.ndarray:
        """Targets (m,) [rad] at a time [s].

        Raises:
            InvalidInput: when the table has another number of joints.
        """
        rows = np.array(self.positions)
        if rows.shape[1] != len(rest):
            raise InvalidInput(
                f"motion: {rows.shape[1]} joints, the robot has {len(rest)}"
            )
        return np.array([np.interp(time, self.times, column) for column in rows.T])


@dataclass(frozen=True)
class MotionFile:
    """A table as it was read, before the robot's joints are known.

    Attributes:
        path: of the file.
        rows: by column, as text.
    """

    path: Path
    rows: tuple[dict[str, str], ...]

    def motion(self, joints: tuple[str, ...]) -> TableMotion:
        """The targets of a robot's joints.

        Raises:
            FileProblem: for a joint without a column, or what is no number.
        """
        wanted = ("time", *joints)
        missing = [name for name in wanted if not self.rows or name not in self.rows[0]]
        if missing:
            raise FileProblem(
                self.path, f"has no column {missing[0]!r}; needs {', '.join(wanted)}"
            )
        try:
            table = [[float(row[name]) for name in wanted] for row in self.rows]
            values = np.array(table)
            return TableMotion(tuple(values[:, 0]), tuple(map(tuple, values[:, 1:])))
        except (TypeError, ValueError, InvalidInput) as error:
            raise FileProblem(self.path, f"not a table of numbers: {error}") from error


def read_motion_file(path: str | Path) -> MotionFile:
    """A CSV with a column `time` [s] and columns by joint; the times are checked.

    Raises:
        FileProblem: for a file that is missing, no table, or without such times.
    """
    path = Path(path)
    try:
        rows = list(csv.DictReader(path.read_text().splitlines()))
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise FileProblem(path, f"cannot be read as a table: {error}") from error
    file = MotionFile(path, tuple(rows))
    if not rows or "time" not in rows[0]:
        raise FileProblem(
            path, "has no column 'time'; needs time and one for each actuated joint"
        )
    file.motion(())
    return file


def read_motion(path: str | Path, joints: tuple[str, ...]) -> TableMotion:
    """A CSV with a column `time` [s] and one [rad] for each joint, in any order.

    Raises:
        FileProblem: for a file that is missing, or not such a table.
    """
    return read_motion_file(path).motion(joints)
