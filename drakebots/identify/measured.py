"""Measurements of a robot as columns over time, in SI."""

from __future__ import annotations

import csv
import json
import math
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from drakebots.core.errors import FileProblem, InvalidInput
from drakebots.core.files import number, reading
from drakebots.core.installed import extra
from drakebots.core.units import si_factor
from drakebots.results import Result, columns, load_result


@dataclass(frozen=True)
class Measured:
    """Samples of a run.

    Attributes:
        time: strictly increasing (T,) [s].
        columns: values (T,) in SI by the name of the signal; NaN where one is missing.
    """

    time: np.ndarray
    columns: Mapping[str, np.ndarray]

    def __post_init__(self):
        if len(self.time) < 3:
            raise InvalidInput(f"{len(self.time)} samples; at least 3 are needed")
        if not np.isfinite(self.time).all():
            raise InvalidInput("column time: every sample needs a time")
        late = np.flatnonzero(np.diff(self.time) <= 0)
        if len(late):
            k = late[0] + 1
            raise InvalidInput(
                f"sample {k + 1}: its time {self.time[k]:g} s is not after that of the "
                "sample before it; sort the rows by time"
            )


def read_measured(source: str | Path | Result) -> Measured:
    """Samples from a table (.csv), a log (.mcap) or a result (.nc), or of a result.

    Heads are "time [s]" and names of a result's own series with their units,
    "position.FL_knee [deg]"; those without a unit are in SI. Empty cells and NaN are
    samples that are missing. Of an MCAP log the messages in JSON count whose topics
    begin with such names, as `drakebots export --mcap` writes them.

    Raises:
        FileProblem: naming the line and the column that is wrong.
    """
    if isinstance(source, Result):
        return _of_pairs(dict(columns(source.data)))
    path, ending = Path(source), Path(source).suffix.lower()
    if ending == ".nc":
        return read_measured(load_result(path))
    if ending not in (".csv", ".mcap"):
        raise FileProblem(path, "is no .csv, .mcap or .nc file; measurements are")
    with reading(path):
        return _of_pairs((_table if ending == ".csv" else _log)(path))


_HEAD = re.compile(r"\s*(?P<name>[^\[\]]+?)\s*(?:\[(?P<unit>.*)\])?\s*")


def _of_pairs(pairs: Mapping[str, list]) -> Measured:
    found = {}
    for head, values in pairs.items():
        match = _HEAD.fullmatch(head)
        if match is None:
            raise InvalidInput(f"column {head!r}: is no name [unit]")
        unit = match["unit"] or ""
        try:
            # A result's own series of angles and lengths are in SI.
            factor = 1.0 if " or " in unit or unit in ("", "1") else si_factor(unit)
            found[match["name"]] = factor * np.asarray(values, float)
        except (ValueError, TypeError):
            continue  # texts
    if "time" not in found:
        raise InvalidInput("has no column `time [s]`; name it so")
    return Measured(found.pop("time"), found)


def _table(path: Path) -> dict[str, list[float]]:
    rows = [row for row in csv.reader(path.read_text().splitlines()) if any(row)]
    if len(rows) < 2:
        raise InvalidInput("needs a line of column heads, and lines of numbers")
    heads, *others = rows
    for k, row in enumerate(others, 2):
        if len(row) != len(heads):
            raise InvalidInput(f"line {k}: {len(row)} values for {len(heads)} columns")

    def cell(text: str, where: str) -> float:
        empty = text.strip().lower() in ("", "nan")
        return math.nan if empty else number(text.strip(), where)

    return {
        head: [
            cell(row[i], f"line {k}, column {head}") for k, row in enumerate(others, 2)
        ]
        for i, head in enumerate(heads)
    }


def _log(path: Path) -> dict[str, list[float]]:
    by_time: dict[float, dict[str, float]] = {}
    with open(path, "rb") as file:
        for _, channel, message in (
            extra("mcap.reader").make_reader(file).iter_messages()
        ):
            if channel.message_encoding == "json" and channel.topic.count("/") == 1:
                row = by_time.setdefault(1e-9 * message.log_time, {})
                row |= _flat(channel.topic[1:], json.loads(message.data))
    names = dict.fromkeys(name for row in by_time.values() for name in row)
    times = sorted(by_time)
    table = {n: [by_time[t].get(n, math.nan) for t in times] for n in names}
    return {"time [s]": times, **table}


def _flat(name: str, value: object) -> dict[str, float]:
    """The numbers in nested objects, under their names joined by dots."""
    if isinstance(value, Mapping):
        parts = (_flat(f"{name}.{k}", x) for k, x in value.items())
        return {k: x for part in parts for k, x in part.items()}
    return {name: value} if isinstance(value, int | float) else {}
