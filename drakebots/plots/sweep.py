"""The picture of a sweep: each metric over the swept fields."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
import xarray as xr

from drakebots.core.errors import InvalidInput, check_names, text_of
from drakebots.plots.file import (
    legend_below,
    line_style,
    literal,
    panels,
    save,
)
from drakebots.results import LARGEST, Result

AS_NAMED = "as named"
"""Unit of a metric in a sweep's table: its name says it, stride_mm."""

PANELS = 6
"""Most metrics that are drawn where none are named."""


def _wrong(table: Result) -> Iterator[str]:
    """Faults of a table, which must have one array a metric over the fields."""
    data = table.data
    texts = "verdict" in data and data.verdict.dtype.kind == "U"
    if not (texts and data.verdict.dims and data.verdict.size):
        yield "it has no verdicts"
        return
    if not isinstance(table.metrics.get("of"), str):
        yield "it does not say what was swept (of)"
    dims = data.verdict.dims
    for dim in dims:
        kind = data[dim].dtype.kind if dim in data.coords else ""
        if not (kind == "U" or (kind == "f" and _drawable(data[dim].values))):
            yield f"{dim} needs numbers or names"
    for name, values in data.data_vars.items():
        if values.attrs.get("units") != AS_NAMED:
            continue
        if values.dims != dims or values.dtype.kind != "f":
            yield f"{name} must be numbers over {' x '.join(map(str, dims))}"
        elif not _drawable(values.values[np.isfinite(values.values)]):
            yield f"{name} must be < {LARGEST:g}"


def _drawable(values: np.ndarray) -> bool:
    return bool(np.isfinite(values).all() and abs(values).max(initial=0.0) < LARGEST)


def shown_metrics(table: Result, names: Sequence[str] = ()) -> list[str]:
    """Metrics to show of a sweep.

    Args:
        table: of kind "sweep".
        names: of the metrics; by default the first that differ from case to case.

    Raises:
        UnknownName: for a metric that is no number, or that the cases do not have.
    """
    data = table.data
    numbers = [n for n, v in data.data_vars.items() if v.attrs.get("units") == AS_NAMED]
    check_names("metric", names, numbers)
    if names:
        return list(names)
    # What a machine took is no property of a case, and frequency_hz is the axis again.
    again = tuple(f"{dim}_" for dim in data.verdict.dims)
    new = [n for n in numbers if "wall" not in n and not n.startswith(again)]
    differ = [n for n in new if _differs(data[n].values)]
    return (differ or numbers)[:PANELS]


def _differs(values: np.ndarray) -> bool:
    finite = values[np.isfinite(values)]
    return finite.size > 1 and np.ptp(finite) > 1e-9 * np.abs(finite).max()


def plot_sweep(table: Result, path: str | Path, metrics: Sequence[str] = ()) -> Path:
    """Draws metrics of a sweep over its first field of numbers, a line the others.

    Cases that are no success have hollow marks; without a result they have none.

    Args:
        table: of kind "sweep".
        path: of the picture (.png, .pdf, .svg).
        metrics: to draw; see :func:`shown_metrics`.

    Raises:
        InvalidInput: for a sweep without any numbers, or whose table was altered, or
            another ending.
        UnknownName: for an unknown metric.
        FileProblem: when the file cannot be written.
    """
    if wrong := next(_wrong(table), None):
        raise InvalidInput(f"this sweep cannot be drawn: {wrong}; sweep again")
    names, data = shown_metrics(table, metrics), table.data
    if not names:
        raise InvalidInput("the sweep has no numbers to plot; no case has a result")
    dims = list(data.verdict.dims)
    along = next((d for d in dims if data[d].dtype.kind == "f"), dims[0])
    figure, axes = panels(len(names), 3, (4.3, 3.4))
    for panel, name in zip(axes, names):
        _draw(panel, data, name, along)
    figure.suptitle(f"{literal(table.metrics['of'])}: {table.verdict}", fontsize=10)
    return save(figure, path)


def _draw(panel, data: xr.Dataset, name: str, along: str) -> None:
    others = [dim for dim in data.verdict.dims if dim != along]
    x = data[along].values
    labels = x.dtype.kind != "f"
    x = np.arange(len(x)) if labels else x
    lines = data[[name, "verdict"]].stack(line=others) if others else None
    for k in range(1 if lines is None else lines.sizes["line"]):
        one = data if lines is None else lines.isel(line=k)
        y, good = one[name].values, one.verdict.values == "success"
        style = line_style(k)
        colour = style["color"]
        words = [f"{other} {text_of(one[other].item())}" for other in others]
        panel.plot(x, y, **style, lw=1.2, label=literal(", ".join(words)))
        panel.plot(x[good], y[good], "o", color=colour, ms=4)
        panel.plot(x[~good], y[~good], "o", color=colour, ms=4, mfc="white")
    if labels:
        panel.set_xticks(x, [literal(v) for v in data[along].values], fontsize=7)
    unit = data[along].attrs.get("units", "1")
    panel.set_xlabel(along if unit == "1" or labels else f"{along} [{unit}]")
    panel.set_ylabel(literal(name))
    if others:
        legend_below(panel)
