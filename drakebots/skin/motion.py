"""Motions: targets of the actuated joints over time, by name or from a table."""

from __future__ import annotations

import csv
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from drakebots.core.checks import array, check, check_value, finite, one_of, positive
from drakebots.core.errors import FileProblem, InvalidInput

MOTIONS = ("hold", "sine", "steps")
"""hold: the rest pose; sine: sines of the joints, each a quarter period after the one
before; steps: from the rest pose to +amplitude, to -amplitude and back, each held for
half a period."""


@dataclass(frozen=True)
class NamedMotion:
    """A motion about the rest pose.

    Attributes:
        name: one of MOTIONS.
        amplitude: amplitude of each joint [rad].
        period: period of the motion [s].
        rise: rise time of a step, and of a sine's amplitude at the start [s].

    Raises:
        UnknownName, InvalidInput: for another name or a value out of range.
    """

    name: str = "sine"
    amplitude: float = 0.4
    period: float = 2.0
    rise: float = 0.2

    def __post_init__(self):
        check(self, "", name=one_of("motion", MOTIONS), amplitude=finite("rad"))
        check(self, "", period=positive("s"), rise=positive("s"))

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
    """Targets at given times, linear between them and constant before and after.

    Attributes:
        times: increasing times (n,) [s].
        positions: joint positions (n, m) [rad].

    Raises:
        InvalidInput: for other shapes, or numbers that are not finite.
    """

    times: tuple[float, ...]
    positions: tuple[tuple[float, ...], ...]

    def __post_init__(self):
        times = check_value("motion: times", self.times, array((None,), "s"))
        rows = check_value("motion: positions", self.positions, array((None, None)))
        if not len(times) == len(rows) > 0:
            raise InvalidInput(
                f"motion: {len(times)} times and {len(rows)} rows of positions; needs "
                "as many of each"
            )
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
    """A table from a file, before the robot's joints are known.

    Attributes:
        path: the file.
        rows: texts of each row by column.
    """

    path: Path
    rows: tuple[dict[str, str], ...]

    def motion(self, joints: tuple[str, ...]) -> TableMotion:
        """The targets of a robot's joints.

        Raises:
            FileProblem: for a joint without a column, or an entry that is no number.
        """
        columns = ("time", *joints)
        missing = [
            name for name in columns if not self.rows or name not in self.rows[0]
        ]
        if missing:
            raise FileProblem(
                self.path, f"has no column {missing[0]!r}; needs {', '.join(columns)}"
            )
        try:
            table = [[float(row[name]) for name in columns] for row in self.rows]
            values = np.array(table)
            return TableMotion(tuple(values[:, 0]), tuple(map(tuple, values[:, 1:])))
        except (TypeError, ValueError, InvalidInput) as error:
            raise FileProblem(self.path, f"not a table of numbers: {error}") from error


def read_motion_file(path: str | Path) -> MotionFile:
    """Reads a CSV with a column `time` [s] and one [rad] for each joint, in any order.

    The times are checked; joints are checked by :meth:`MotionFile.motion`.

    Raises:
        FileProblem: for a file that is missing, no table, or without increasing times.
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
