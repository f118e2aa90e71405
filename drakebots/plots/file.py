"""Common tools of all figures: colours, panels, formats, and writing one atomically."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from drakebots.core.errors import InvalidInput
from drakebots.core.files import replacing
from drakebots.core.lazy import late

if TYPE_CHECKING:
    import xarray as xr
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

matplotlib = late("matplotlib")
transforms, figures = late("matplotlib.transforms"), late("matplotlib.figure")

COLOURS = (
    *("#1f5fa8", "#d1495b", "#2a9d6f", "#e08e26"),
    *("#7b5ea7", "#8c6d46", "#5aa9e6", "#444444"),
)
"""Colours of lines, in turn."""

_DASHES = ("-", (0, (5, 1.5)), (0, (1, 1)), (0, (5, 1.2, 1, 1.2)))

ENDINGS = (".png", ".pdf", ".svg")


def line_style(k: int) -> dict:
    """Colour and dashes of line k: solid ones first, and 32 that differ."""
    dashes = _DASHES[k // len(COLOURS) % len(_DASHES)]
    return {"color": COLOURS[k % len(COLOURS)], "linestyle": dashes}


def draw_lines(axes: Axes, x, values, names: Iterable[object], **how: Any) -> None:
    """Draws the columns of values (T, n) over x (T,) or (T, n), in styles that differ,
    under their names (n,)."""
    for k, (name, line) in enumerate(zip(names, axes.plot(x, values, **how))):
        line.set(label=literal(name), **line_style(k))


def draw_largest(axes: Axes, series: xr.DataArray, label: str, most: int = 8) -> None:
    """Draws the columns of a series (T, n) over time that change most."""
    order = np.sort(np.argsort(-np.ptp(series.values, axis=0))[:most])
    names = series[series.dims[1]].values[order]
    draw_lines(axes, series.time.values, series.values[:, order], names, lw=1)
    title = f"the {most} that change most" if len(order) < series.shape[1] else ""
    axes.set(xlabel="time [s]", ylabel=label, title=title)
    legend_below(axes)


def literal(name: object) -> str:
    """A name of the user's, for matplotlib to show as it is.

    A dollar sign would start a formula; labels that begin with _ are not shown.
    """
    text = str(name).replace("$", r"\$")
    return f" {text}" if text.startswith("_") else text


def panels(count: int, columns: int, size: tuple[float, float]) -> tuple[Figure, list]:
    """A figure of some panels in rows, and their axes, open above and to the right.

    Args:
        count: number of panels.
        columns: most panels in a row.
        size: width and height of a panel [inches].
    """
    columns = min(columns, count)
    rows = -(-count // columns)
    shape = (size[0] * columns, size[1] * rows)
    figure = figures.Figure(figsize=shape, layout="constrained")
    grid = figure.subplots(rows, columns, squeeze=False).ravel().tolist()
    for axes in grid:
        axes.spines[["top", "right"]].set_visible(False)
    for axes in grid[count:]:
        axes.set_visible(False)
    return figure, grid[:count]


_LEGEND = {"borderaxespad": 0.0, "fontsize": 7, "frameon": False}


def legend_below(axes: Axes) -> None:
    """Adds a legend under the axes and their label, where it covers no data.

    It lists what is drawn in all axes at that place. For a figure whose layout is
    "constrained", which makes room for it.
    """
    figure, place = axes.get_figure(), axes.get_subplotspec()
    here = [other for other in figure.axes if other.get_subplotspec() == place]
    drawn = {}
    for other in here:
        handles, names = other.get_legend_handles_labels()
        drawn |= dict(zip(names, handles))
    longest = max(map(len, drawn), default=0)
    # In points, since axes may be of any height; the ticks are 14, the label as many.
    room = 17 + (15 if any(other.get_xlabel() for other in here) else 0)
    below = transforms.offset_copy(axes.transAxes, figure, y=-room, units="points")
    at = {"loc": "upper center", "bbox_to_anchor": (0.5, 0.0), "bbox_transform": below}
    ncols = 4 if longest < 10 else 2
    axes.legend(drawn.values(), drawn.keys(), ncols=ncols, **at, **_LEGEND)


def legend_beside(axes: Axes) -> None:
    """Adds a legend to the right of the axes; see :func:`legend_below`."""
    ncols = 1 + (len(axes.get_legend_handles_labels()[1]) > 10)
    axes.legend(loc="upper left", bbox_to_anchor=(1.0, 1.0), ncols=ncols, **_LEGEND)


def check_ending(path: str | Path) -> Path:
    """The path, if a plot can be written in the format it names.

    Raises:
        InvalidInput: for another ending.
    """
    path = Path(path)
    if path.suffix.lower() not in ENDINGS:
        raise InvalidInput(f"{path}: a plot ends in .png, .pdf or .svg")
    return path


def write_figure(figure: Figure, path: str | Path, dpi: float | str = 130) -> Path:
    """Writes a figure atomically, in the format its name asks for, else as a PNG.

    A PNG does not say matplotlib's version, and names in an SVG stay the same.

    Args:
        figure: the figure.
        path: the file.
        dpi: pixels per inch, or "figure" for the figure's own.

    Raises:
        FileProblem: when the file cannot be written.
    """
    path = Path(path)
    kind = path.suffix.lower().lstrip(".") or "png"
    metadata = {"Software": None} if kind == "png" else None
    with matplotlib.rc_context({"svg.hashsalt": "drakebots"}), replacing(path) as part:
        figure.savefig(part, format=kind, dpi=dpi, metadata=metadata)
    return path


def save(figure: Figure, path: str | Path) -> Path:
    """Writes a figure atomically.

    Raises:
        InvalidInput: for an ending that is no plot's.
        FileProblem: when the file cannot be written.
    """
    return write_figure(figure, check_ending(path))
