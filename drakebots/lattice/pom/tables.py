"""Tables of lengths over poses or frames: arrays, and CSV files with units.

A file has one column for each quantity and its unit in the head (m, cm, mm or um; m
where there is none); every further line is a pose or a frame:

    blue [mm],yellow [mm],red [mm],green [mm]
    5,-5,0,0
"""

from __future__ import annotations

import csv
import re
from pathlib import Path

import numpy as np

from drakebots.core.errors import FileProblem, InvalidInput, UnknownName
from drakebots.core.units import si_factor

LENGTHS = ("m", "cm", "mm", "um")
"""Units that a table may be written in."""


def table(values, columns: int, name: str, per: str) -> np.ndarray:
    """Values as a finite array (T, columns); one row may be given alone.

    Args:
        values: the table.
        columns: its number of columns.
        name: of the table, for messages.
        per: what each column stands for, for messages.

    Raises:
        InvalidInput: naming the table, or the first row that is not finite.
    """
    try:
        w = np.asarray(values, float)
    except (TypeError, ValueError) as error:
        raise InvalidInput(f"{name} must be a table of numbers: {error}") from None
    w = w[None] if w.ndim == 1 else w
    if w.ndim != 2 or w.shape[1] != columns:
        raise InvalidInput(
            f"{name} must be (T, {columns}), one column per {per}, got {w.shape}"
        )
    bad = np.flatnonzero(~np.isfinite(w).all(axis=1))
    if len(bad):
        raise InvalidInput(f"{name}: pose {bad[0]} holds a value that is not finite")
    return w.copy()


def length_factor(unit: str) -> float:
    """The factor from a unit of length to m.

    Raises:
        UnknownName: for another unit.
    """
    if unit not in LENGTHS:
        raise UnknownName("unit of length", unit, LENGTHS)
    return si_factor(unit)


def read_lengths(path: str | Path) -> tuple[list[str], np.ndarray]:
    """Names of the columns of a CSV file, and their values (T, n) [m].

    Raises:
        FileProblem: for a file that cannot be read or has no row of numbers.
        InvalidInput: naming the head or the line that is malformed.
        UnknownName: for a unit that is not one of length.
    """
    try:
        text = Path(path).read_text()
        lines = [
            (number, line)
            for number, line in enumerate(csv.reader(text.splitlines()), 1)
            if any(cell.strip() for cell in line)
        ]
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise FileProblem(path, f"cannot be read: {error}") from None
    if len(lines) < 2:
        raise FileProblem(path, "needs a line of column heads and a line for each pose")
    names, factors = [], []
    for head in lines[0][1]:
        match = re.fullmatch(r"\s*([^\[\]]+?)\s*(?:\[([^\]]*)\])?\s*", head)
        if not match:
            raise InvalidInput(f"head {head!r} is not a name and a [unit]")
        names.append(match[1])
        factors.append(length_factor(match[2] or "m"))
    rows = []
    for number, line in lines[1:]:
        if len(line) != len(names):
            raise InvalidInput(
                f"line {number} has {len(line)} cells, the head has {len(names)}"
            )
        try:
            rows.append([float(cell) for cell in line])
        except ValueError:
            raise InvalidInput(
                f"line {number} holds something that is not a number"
            ) from None
    return names, np.array(rows, float) * np.array(factors)
