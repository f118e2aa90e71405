"""Commands as a time series: of a file, of a run that was driven, in its result."""

from __future__ import annotations

import csv
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import numpy as np
import xarray as xr

from drakebots.core.checks import check_value, non_negative, positive, whole
from drakebots.core.convert import finite_word
from drakebots.core.errors import FileProblem, InvalidInput
from drakebots.core.fields import checked
from drakebots.core.files import reading
from drakebots.results import Result, load_result


@dataclass(frozen=True)
class Event:
    """One thing that somebody did.

    Attributes:
        time: in simulated time [s].
        control: name of the slider or button.
        value: of the slider; 1 of a button.
    """

    time: float
    control: str
    value: float


@checked("live", kw_only=True)
class Live:
    """What all live runs share.

    Raises:
        InvalidInput: for a value out of range.
    """

    script: Path | None = None
    """Commands (.csv): lines of time, control, value under that heading."""
    replay: Path | None = None
    """Result (.nc) of a live run, whose commands act again."""
    headless: bool = False
    """Whether to run without a page."""
    duration: Annotated[float | None, positive("s")] = None
    """Duration of the run; by default until Ctrl-C, for a second after a script's last
    command, or as long as the run that is replayed."""
    port: Annotated[int | None, whole(1024, 65535)] = None
    """Port of the Meshcat server; by default the first one free."""

    def __post_init__(self):
        if self.script is not None and self.replay is not None:
            raise InvalidInput("live: give a script or a run to replay, not both")
        if self.headless and self.duration is None and not self.scripted:
            raise InvalidInput(
                "live: without a page and a script nothing ends it; give duration"
            )

    @property
    def scripted(self) -> bool:
        """Whether commands come from a file."""
        return self.script is not None or self.replay is not None

    def events(self) -> list[Event]:
        """The commands that act by themselves.

        Raises:
            FileProblem, InvalidInput, ResultProblem: for a file that holds none.
        """
        if self.script is not None:
            return read_script(self.script)
        return [] if self.replay is None else events_of(load_result(self.replay))

    def end(self, events: Sequence[Event]) -> float:
        """Time at which the run ends by itself [s]; maybe infinite."""
        if self.duration is not None:
            return self.duration
        if self.replay is not None:
            return float(load_result(self.replay).data.time[-1])
        last = max((event.time for event in events), default=0.0)
        return last + 1.0 if self.scripted else np.inf


_TIME = non_negative("s")

HEADING = ["time", "control", "value"]


def read_script(path: str | Path) -> list[Event]:
    """The events of a file (.csv) with the heading time,control,value.

    Raises:
        FileProblem: for a file that cannot be read, or without that heading.
        InvalidInput: naming a line that is none.
    """
    with reading(path):
        rows = list(csv.reader(Path(path).read_text("utf-8").splitlines()))
    if not rows or [word.strip() for word in rows[0]] != HEADING:
        raise FileProblem(path, f"its first line is not {','.join(HEADING)}")
    events = []
    for number, row in enumerate(rows[1:], 2):
        where = f"{path}: line {number}"
        if not row:
            continue
        if len(row) != 3:
            raise InvalidInput(f"{where}: needs {', '.join(HEADING)}, got {row}")
        at, name, value = (word.strip() for word in row)
        at = check_value(where, finite_word(at, f"{where}: time", "s"), _TIME)
        events.append(Event(at, name, finite_word(value, f"{where}: value")))
    return events


def with_events(data: xr.Dataset, events: Sequence[Event]) -> xr.Dataset:
    """A dataset with commands: command_time and command_value by `command`, whose
    label `command_name` names the control."""
    names = np.array([event.control for event in events], dtype=str)
    return data.assign(
        command_time=("command", [e.time for e in events], {"units": "s"}),
        command_value=("command", [e.value for e in events], {"units": "1"}),
    ).assign_coords(command_name=("command", names))


def events_of(result: Result) -> list[Event]:
    """The commands of a live run.

    Raises:
        InvalidInput: for another result.
    """
    data = result.data
    if "command_time" not in data:
        raise InvalidInput(
            f"a {result.kind} holds no commands; replay the result of `drakebots live`"
        )
    columns = data.command_time, data.command_name, data.command_value
    rows = zip(*(column.values for column in columns))
    return [Event(float(t), str(name), float(value)) for t, name, value in rows]
