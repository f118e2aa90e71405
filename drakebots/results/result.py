"""The result of a simulation or a plan."""

from __future__ import annotations

import html
import json
import math
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import xarray as xr

from drakebots.core.convert import plain
from drakebots.core.errors import (
    DrakebotsError,
    InvalidInput,
    ResultProblem,
    UnknownName,
    one_line,
    text_of,
)
from drakebots.core.files import read_yaml, write_csv
from drakebots.core.run import Verdict
from drakebots.results.container import (
    AGAIN,
    FORMAT_VERSION,
    columns,
    frozen_dataset,
    read_netcdf,
    write_netcdf,
)
from drakebots.results.origin import check_text, freeze, to_json

_TEXTS = ("kind", "model", "verdict", "message")
_MAPPINGS = ("residuals", "timings", "metrics", "provenance")

_SHORT = 100
"""Characters of a figure that a notebook's table still shows."""


class _SharedDataset:
    """A field that gives a new Dataset around the same read-only arrays.

    A Dataset cannot be frozen: variables can be added to it and attributes changed.
    That then changes a copy.
    """

    def __get__(self, owner: Any, kind: type) -> xr.Dataset:
        if owner is None:
            # The dataclass asks for a default; there is none.
            raise AttributeError("data")
        return owner.__dict__["data"].copy(deep=False)

    def __set__(self, owner: Any, value: xr.Dataset) -> None:
        owner.__dict__["data"] = value


@dataclass(frozen=True, eq=False, repr=False)
class Result:
    """The outcome of a simulation or a plan; frozen, comparable, storable.

    Attributes:
        kind: its origin, "hamr.simulation", "quads.plan", ..., and so which data,
            plots and drawings it has.
        model: name of the model, e.g. "hamr".
        verdict: its outcome; a :class:`Verdict` or its text.
        message: one line: why it ended, and how to go on.
        data: the labelled arrays in SI. Every variable has an attribute
            `units` ("1" if it has none; text needs no units); the coordinate
            `time` (n,) [s] is finite and strictly increasing. Arrays are
            read-only; each access gives a new Dataset around them.
        residuals: residuals by name, the worst (NaN, then largest magnitude) first.
        timings: wall time by phase [s].
        metrics: numbers, texts, lists and mappings of them by name.
        provenance: see :func:`drakebots.results.provenance`.
        folders: of a result that was read from a file: the folder that the file was
            saved in, and the one that it was read from. Not compared.

    Raises:
        InvalidInput: when a field cannot be stored or lacks units.
        UnknownName: for an unknown verdict.
    """

    kind: str
    model: str
    verdict: Verdict
    message: str
    if TYPE_CHECKING:
        data: xr.Dataset
    else:
        data: xr.Dataset = _SharedDataset()
    residuals: Mapping[str, float]
    timings: Mapping[str, float]
    metrics: Mapping[str, Any]
    provenance: Mapping[str, Any]
    folders: tuple[Path, Path] | None = None

    # With arrays inside, a hash by content would be too expensive.
    __hash__ = None  # type: ignore[assignment]

    def __post_init__(self) -> None:
        try:
            verdict = Verdict(self.verdict)
        except ValueError as error:
            choices = [v.value for v in Verdict]
            raise UnknownName("verdict", self.verdict, choices) from error
        residuals = _numbers("residuals", self.residuals)
        worst_first = sorted(residuals.items(), key=lambda pair: _badness(pair[1]))
        frozen = {
            "kind": _title("kind", self.kind),
            "model": _title("model", self.model),
            "verdict": verdict,
            "message": _message(self.message),
            "data": frozen_dataset(self.__dict__["data"]),
            "residuals": freeze(dict(worst_first), "residuals"),
            "timings": freeze(_numbers("timings", self.timings), "timings"),
            "metrics": freeze(_mapping("metrics", self.metrics), "metrics"),
            "provenance": freeze(_mapping("provenance", self.provenance), "provenance"),
        }
        for name, value in frozen.items():
            object.__setattr__(self, name, value)

    def to_yaml(self) -> dict[str, str]:
        """Form in the options of another result."""
        return {"kind": self.kind, "model": self.model}

    @property
    def ok(self) -> bool:
        """Whether the verdict is success."""
        return self.verdict is Verdict.SUCCESS

    def places(self, path: str | Path) -> tuple[Path, ...]:
        """Possible paths of a file that the provenance names.

        Args:
            path: absolute, as in `provenance["files"]`.

        Returns:
            `path`; then the same place relative to the result's file, for a result
            that was moved together with its model.
        """
        if self.folders is None:
            return (Path(path),)
        saved, read = self.folders
        moved = Path(os.path.normpath(read / os.path.relpath(path, saved)))
        return tuple(dict.fromkeys((Path(path), moved)))

    def summary(self) -> str:
        """One paragraph: verdict, time span, worst residuals, wall time."""
        time = self.__dict__["data"]["time"].values
        count = f"{time.size} sample" + ("s" if time.size > 1 else "")
        parts = [
            f"{self.kind} of {self.model}: {self.verdict}",
            *([self.message.rstrip(".")] if self.message else []),
            f"{count} from {time[0]:g} s to {time[-1]:g} s",
        ]
        if self.residuals:
            worst = list(self.residuals.items())[:3]
            named = ", ".join(f"{name} = {value:.3g}" for name, value in worst)
            parts.append(f"Worst residuals: {named}")
        if self.timings:
            phases = ", ".join(f"{n} {s:.3g} s" for n, s in self.timings.items())
            parts.append(f"Computed in {sum(self.timings.values()):.3g} s ({phases})")
        return ". ".join(parts) + "."

    def _repr_html_(self) -> str:
        """Summary for a notebook: the verdict, every short figure, and the data."""
        facts: dict[str, Any] = {"verdict": self.verdict, "": self.message}
        facts |= {k: v for k, v in self.metrics.items() if len(text_of(v)) <= _SHORT}
        facts |= {f"residual {k}": v for k, v in list(self.residuals.items())[:3]}
        facts |= {f"{k} [s]": v for k, v in self.timings.items()}
        rows = "".join(
            f'<tr><th style="text-align:left">{html.escape(name)}</th>'
            f'<td style="text-align:left">{html.escape(text_of(value))}</td></tr>'
            for name, value in facts.items()
        )
        title = html.escape(f"{self.kind} of {self.model}")
        data = self.__dict__["data"]._repr_html_()
        return f"<table><caption>{title}</caption>{rows}</table>{data}"

    def __repr__(self) -> str:
        return f"<Result: {self.summary()}>"

    def __eq__(self, other: object) -> bool:
        """Whether all fields are equal; NaN equals NaN."""
        if not isinstance(other, Result):
            return NotImplemented
        # As texts NaNs are equal, as numbers they are not.
        mine, theirs = (
            [to_json(getattr(one, name), sort=True) for name in (*_TEXTS, *_MAPPINGS)]
            for one in (self, other)
        )
        return mine == theirs and self.data.identical(other.data)

    def __reduce__(self) -> tuple[Any, ...]:
        # Read-only mappings cannot be pickled, and results go to other processes.
        values = {field.name: self.__dict__[field.name] for field in fields(self)}
        values |= {name: plain(values[name], finite=False) for name in _MAPPINGS}
        return Result, tuple(values.values())

    def save(self, path: str | Path) -> Path:
        """Writes one netCDF-4 file, atomically.

        An existing file is replaced at the end, or stays as it was.

        Args:
            path: of the file, usually "*.nc"; its folder must exist.

        Returns:
            `path`.

        Raises:
            FileProblem: when it cannot be written; nothing is left behind.
        """
        header = {"format": str(FORMAT_VERSION)}
        header |= {name: str(getattr(self, name)) for name in _TEXTS}
        header |= {name: to_json(getattr(self, name)) for name in _MAPPINGS}
        header["folder"] = json.dumps(_folder(path))
        return write_netcdf(path, self.__dict__["data"], header)

    def to_csv(self, path: str | Path) -> Path:
        """Writes every variable along `time` as columns, atomically.

        The header reads "name [unit]", with labels of further dimensions
        between: "time [s]", "position.x [m]". Numbers read back exactly;
        variables without time are left out.

        Args:
            path: of the file, usually "*.csv"; its folder must exist.

        Returns:
            `path`.

        Raises:
            FileProblem: when it cannot be written; nothing is left behind.
        """
        names, values = zip(*columns(self.__dict__["data"]))
        return write_csv(path, names, zip(*values))


def load_result(path: str | Path) -> Result:
    """Reads a file of :meth:`Result.save` back to an equal result.

    The checksum is verified before the file is parsed. A file that another tool has
    rewritten has none, and loads with a warning.

    Args:
        path: of the file.

    Raises:
        ResultProblem: when the file is missing, truncated, altered, of another
            format version, not a result, or lacks a field.
    """
    data, header = read_netcdf(path)
    if header.get("format") != str(FORMAT_VERSION):
        raise ResultProblem(path, f"lacks the mark of its format; {AGAIN}")
    missing = [name for name in (*_TEXTS, *_MAPPINGS) if name not in header]
    if missing:
        raise ResultProblem(path, f"lacks the field {missing[0]!r}; {AGAIN}")
    try:
        values: dict[str, Any] = {name: header[name] for name in _TEXTS}
        values |= {name: json.loads(header[name]) for name in _MAPPINGS}
        if "folder" in header:
            values["folders"] = Path(json.loads(header["folder"])), Path(_folder(path))
        return Result(data=data, **values)
    except (DrakebotsError, ValueError, TypeError, RecursionError) as error:
        raise ResultProblem(path, f"{error}; {AGAIN}") from error


def _folder(path: str | Path) -> str:
    return os.path.dirname(os.path.abspath(path))


def _title(name: str, text: Any) -> str:
    title = check_text(text, name)
    if not title or title != one_line(title):
        raise InvalidInput(f"{name}: must be one non-empty line, got {title!r}")
    return title


def _message(text: Any) -> str:
    # Messages quote solvers and the file system: an odd character in one must not
    # lose the result of a long run.
    storable = str(text).encode("utf-8", "replace").decode().replace("\0", " ")
    return one_line(storable)


def _mapping(name: str, value: Any) -> dict[Any, Any]:
    if not isinstance(value, Mapping):
        raise InvalidInput(f"{name}: must be a mapping, got {type(value).__name__}")
    return dict(value)


def _numbers(name: str, value: Any) -> dict[Any, float]:
    try:
        return {key: float(number) for key, number in _mapping(name, value).items()}
    except (TypeError, ValueError) as error:
        raise InvalidInput(f"{name}: must be numbers by name ({error})") from error


def _badness(residual: float) -> float:
    return -math.inf if math.isnan(residual) else -abs(residual)


# --- what a kind promises --------------------------------------------------
#
# A file may hold anything that netCDF can, and is summarized as it is. Plots, pages,
# tracks and exports take variables for what their names promise, so check_layout
# looks at dimensions, units, labels and numbers first, and says in a line what is
# wrong.

_TABLES = read_yaml(Path(__file__).with_name("layout.yaml"))

LARGEST = 1e15
"""Largest number that is drawn or executed: graphics square it, in single precision."""

_PROMISES: dict[str, tuple[list[tuple[str, ...]], str]] = {}
"""Dimensions that a variable may have, and its unit, by its name."""

for where, names in _TABLES["dimensions"].items():
    words, _, unit = where.rstrip("]").partition("[")
    allowed = [tuple(word.split()) for word in words.split(",")]
    _PROMISES |= dict.fromkeys(names.split(), (allowed, unit))


def require(data: xr.Dataset, names: str, what: str, **least: int) -> None:
    """Refuses the data of a result that lack what is to be drawn or written.

    Args:
        data: the data.
        names: variables and coordinates that they need, with spaces between.
        what: those are, for the message.
        least: smallest sizes of dimensions.

    Raises:
        InvalidInput: "the result holds no ...: it lacks ...".
    """
    lost = [name for name in names.split() if name not in data]
    lost += [f"{n} of {dim}" for dim, n in least.items() if data.sizes.get(dim, 0) < n]
    if lost:
        raise InvalidInput(f"the result holds no {what}: it lacks {lost[0]}")


def in_order(
    values: np.ndarray, have: Sequence[str], wanted: Sequence[str]
) -> np.ndarray:
    """Columns of a result's variable in the order of a plant's coordinates.

    Args:
        values: values (T, n).
        have: names of their columns.
        wanted: names of the plant's coordinates; other columns are left out.

    Raises:
        InvalidInput: for a result of another model.
    """
    missing = [name for name in wanted if name not in have]
    if missing:
        raise InvalidInput(
            f"the result has no coordinate {missing[0]!r}: it is of another model or "
            f"another version of it; {AGAIN}"
        )
    return values[:, [have.index(name) for name in wanted]]


def with_units(variables: Mapping[str, tuple[Any, Any, str]]) -> dict[str, tuple]:
    """Variables for a dataset from (dimensions, values, unit) of each."""
    return {name: (dims, x, {"units": u}) for name, (dims, x, u) in variables.items()}


def check_layout(result: Result) -> None:
    """Refuses a result whose data is not what its kind promises.

    Kinds of your own are not looked at.

    Raises:
        InvalidInput: naming the variable, and what it must be.
    """
    if result.kind not in _TABLES["needed"]:
        return
    data = result.data
    where = f"this {result.kind} cannot be drawn or executed: "
    words, groups = _TABLES["needed"][result.kind].split(), _TABLES["groups"]
    needed = " ".join(groups.get(word, word) for word in words).split()
    one, *others = _TABLES["together"].get(result.kind, " ").split(" ")
    needed += others if one in data.variables else []
    for name in needed:
        if name not in data.variables:
            raise InvalidInput(f"{where}it has no {name}; {AGAIN}")
    sizes = _TABLES["sizes"] | {"axis": 2 if result.kind.startswith("gecko.") else 3}
    for dim, size in sizes.items():
        if data.sizes.get(dim, size) != size:
            raise InvalidInput(f"{where}{dim} has {data.sizes[dim]} items; {AGAIN}")
    for dim in set(_TABLES["labelled"].split()) & set(data.dims):
        labels = data[dim].values
        if labels.dtype.kind != "U" or len(set(labels.tolist())) < labels.size:
            raise InvalidInput(f"{where}each {dim} needs a name of its own; {AGAIN}")
    for name in map(str, data.variables):
        if name not in _PROMISES:
            continue
        found, (allowed, unit) = data[name], _PROMISES[name]
        if found.dims not in allowed:
            wanted = " or ".join(" x ".join(dims) for dims in allowed)
            raise InvalidInput(f"{where}{name} must be {wanted}; {AGAIN}")
        if unit and found.attrs.get("units") != unit:
            raise InvalidInput(f"{where}{name} must be in {unit}; {AGAIN}")
        if found.dtype.kind not in "fiub":
            raise InvalidInput(f"{where}{name} must be numbers; {AGAIN}")
        largest = abs(found.values).max(initial=0.0)
        if not (np.isfinite(found.values).all() and largest < LARGEST):
            raise InvalidInput(f"{where}{name} must be finite, and < {LARGEST:g}")
