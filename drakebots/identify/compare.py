"""A run beside a log of it, or beside another run: what differs, signal by signal.

for signal in compare("plan.nc", "log.mcap", shift=0.4):
    print(signal.name, signal.rms)
"""

from __future__ import annotations

from collections.abc import Container, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np

from drakebots.core.errors import InvalidInput
from drakebots.identify.measured import read_measured
from drakebots.plots import (
    COLOURS,
    legend_below,
    literal,
    panels,
    save,
)
from drakebots.results import Result, load_result

SHOWN = 12
"""Most signals of a picture."""


@dataclass(frozen=True)
class Compared:
    """A signal of both, in SI.

    Attributes:
        name: that of a result's series, "position.FL_knee".
        time: times of the first at which both have a value (T,) [s].
        first, second: their values (T,); the second's are lines between its samples.
    """

    name: str
    time: np.ndarray
    first: np.ndarray
    second: np.ndarray

    @cached_property
    def rms(self) -> float:
        """Root mean square of the difference."""
        return float(np.sqrt(np.mean((self.second - self.first) ** 2)))

    @cached_property
    def share(self) -> float:
        """The same, as a share of the standard deviation of the first; NaN of what
        does not move."""
        moves = float(self.first.std())
        return self.rms / moves if moves > 0 else np.nan

    def row(self) -> dict[str, float | str]:
        """A row of a table."""
        off = np.abs(self.second - self.first)
        worst = int(off.argmax())
        return {
            "signal": self.name,
            "rms": self.rms,
            "share": self.share,
            "mean": float(np.mean(self.second - self.first)),
            "worst": float(off[worst]),
            "at_s": float(self.time[worst]),
        }


def compare(
    first: str | Path | Result, second: str | Path | Result, *, shift: float = 0.0
) -> list[Compared]:
    """The signals that both have.

    Args:
        first, second: a result, or a file as of :func:`read_measured`. Names in which
            a series has the model's before the joint's are those without it.
        shift: time of the first at which the second begins [s].

    Raises:
        FileProblem: for a file that cannot be read.
        InvalidInput: when they have no signal or no time in common.
    """
    sources = [_loaded(source) for source in (first, second)]
    models = [source.model for source in sources if isinstance(source, Result)]
    runs = [read_measured(source) for source in sources]
    for run, beside in (runs, runs[::-1]):
        models += _models(list(run.columns), beside.columns)
    one, other = ({_short(n, models): x for n, x in r.columns.items()} for r in runs)
    time, later = runs[0].time, runs[1].time + shift
    found = []
    for name in (name for name in one if name in other):
        values = np.interp(time, later, other[name], left=np.nan, right=np.nan)
        both = np.isfinite(values) & np.isfinite(one[name])
        if both.any():
            mine, theirs = one[name][both], values[both]
            if name.startswith("base_rpy."):  # known but for whole turns
                turns = np.round(np.median(theirs - mine) / (2 * np.pi))
                theirs = theirs - 2 * np.pi * turns
            found.append(Compared(name, time[both], mine, theirs))
    if not found:
        spans = [f"{t[0]:g} to {t[-1]:g} s" for t in (time, later)]
        raise InvalidInput(
            f"nothing to compare: {', '.join(list(one)[:4])}, ... of {spans[0]} and "
            f"{', '.join(list(other)[:4])}, ... of {spans[1]}"
        )
    return found


def _loaded(source: str | Path | Result) -> str | Path | Result:
    """The result of a file of one, which knows its model; else the source."""
    is_file = isinstance(source, str | Path) and Path(source).suffix.lower() == ".nc"
    return load_result(Path(source)) if is_file else source


def _models(names: Sequence[str], known: Container[str]) -> list[str]:
    """The name of the model before all joints of a run, as the file has it inside, if
    the run beside it knows some of them without it."""
    joints = [n.partition(".")[2] for n in names if n.startswith("position.")]
    first = joints[0] if joints else ""
    heads = [first[: i + 1] for i, letter in enumerate(first) if letter == "_"]
    return [
        head.removesuffix("_")
        for head in heads
        if all(joint.startswith(head) for joint in joints)
        and any(f"position.{joint.removeprefix(head)}" in known for joint in joints)
    ]


def _short(name: str, models: Sequence[str]) -> str:
    """The name of a series without that of a model before the joint's."""
    for model in models:
        name = name.replace(f".{model}_", ".", 1)
    return name


def plot_compared(compared: Sequence[Compared], path: str | Path) -> Path:
    """Draws the signals that differ most, both over time.

    Raises:
        InvalidInput: for another ending.
        FileProblem: when the file cannot be written.
    """
    worst = sorted(compared, key=lambda signal: -np.nan_to_num(signal.share))[:SHOWN]
    figure, axes = panels(len(worst), 3, (4.2, 2.6))
    for axis, signal in zip(axes, worst):
        axis.plot(signal.time, signal.first, color=COLOURS[0], label="first")
        axis.plot(signal.time, signal.second, "--", color=COLOURS[1], label="second")
        axis.set(xlabel="time [s]", ylabel="[SI]", title=literal(signal.name))
    legend_below(axes[0])
    return save(figure, path)
