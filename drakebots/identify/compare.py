"""A run beside a log of it, or beside another run: what differs, signal by signal.

for signal in compare("plan.nc", "log.mcap", shift=0.4):
    print(signal.name, signal.rms)
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np

from drakebots.core.errors import DrakebotsError, InvalidInput
from drakebots.core.units import si_factor
from drakebots.formats import model_of, plain_robot
from drakebots.identify.measured import read_measured
from drakebots.model import actuators_of, model_names
from drakebots.plots import COLOURS, legend_below, literal, panels, save
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
        unit: of both, where a result says it.
    """

    name: str
    time: np.ndarray
    first: np.ndarray
    second: np.ndarray
    unit: str = "SI"

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
        first, second: a result, or a file as of :func:`read_measured`. Series of a
            result that have the model's name before the joint's, or are of motors,
            are those of a log by the joint's alone.
        shift: time of the first at which the second begins [s].

    Raises:
        FileProblem: for a file that cannot be read.
        InvalidInput: when they have no signal or no time in common.
    """
    sources = [_loaded(source) for source in (first, second)]
    runs = [read_measured(source) for source in sources]
    one, other = (run.columns for run in runs)
    names, theirs = (_by_joint(*both) for both in zip(sources, (one, other)))
    same = {short: name for name, short in theirs.items()} | {n: n for n in other}
    time, later = runs[0].time, runs[1].time + shift
    found = []
    for head, name in names.items():
        if (its := same.get(head, same.get(name))) is None:
            continue
        values = np.interp(time, later, other[its], left=np.nan, right=np.nan)
        both = np.isfinite(values) & np.isfinite(one[head])
        if both.any():
            here, there = one[head][both], values[both]
            if name.startswith("base_rpy."):  # known but for whole turns
                there -= 2 * np.pi * np.round(np.median(there - here) / (2 * np.pi))
            said = runs[0].units.get(head), runs[1].units.get(its)
            # Angles of a log may have been in degrees.
            unit = next((u for u in said if u and si_factor(u) == 1), "SI")
            found.append(Compared(name, time[both], here, there, unit))
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


def _by_joint(source: str | Path | Result, heads: Iterable[str]) -> dict[str, str]:
    """Names by joints alone, as logs have them, of a source's series; where joints
    share one, their own."""
    models, motors = [], {}
    if isinstance(source, Result):
        models = [source.model]
        with suppress(DrakebotsError):  # a result may have no model, or a lost one
            plant = plain_robot(model_of(source)).plant
            models = sorted(model_names(plant), key=len, reverse=True)
            motors = {m.name(): m.joint().name() for m in actuators_of(plant)}
    names = {}
    for head in heads:
        kind, _, own = head.partition(".")
        if kind in ("position", "velocity"):
            before = (f"{m}_" for m in models if own.startswith(f"{m}_"))
            own = own.removeprefix(next(before, ""))
        elif kind in ("torque", "target"):
            own = motors.get(own, own)
        names[head] = f"{kind}.{own}"
    count = Counter(names.values())
    return {head: name if count[name] == 1 else head for head, name in names.items()}


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
        axis.set(
            xlabel="time [s]", ylabel=f"[{signal.unit}]", title=literal(signal.name)
        )
    legend_below(axes[0])
    return save(figure, path)
