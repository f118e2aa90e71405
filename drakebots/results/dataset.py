"""The labelled arrays of a result: checked and frozen, and as columns of a table."""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
import xarray as xr

from drakebots.core.errors import InvalidInput
from drakebots.core.units import si_factor
from drakebots.results.plain import check_text

RESERVED = "drakebots_"
_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_]{0,127}")
# Attributes by which netCDF, HDF5 and xarray encode values.
_ENCODING = {
    *("add_offset", "bounds", "calendar", "compress", "coordinates", "dtype"),
    *("grid_mapping", "missing_value", "scale_factor"),
    *("CLASS", "DIMENSION_LABELS", "DIMENSION_LIST", "NAME", "REFERENCE_LIST"),
}


def frozen_dataset(data: xr.Dataset) -> xr.Dataset:
    """A checked copy whose arrays are read-only.

    Numbers are float32/64, integers or bool, in the byte order of the machine;
    text is fixed-width Unicode. `time` [s] is float64, finite and strictly
    increasing.

    Raises:
        InvalidInput: naming the variable and what is wrong with it.
    """
    if not isinstance(data, xr.Dataset):
        raise InvalidInput(f"data: must be an xarray.Dataset, got {type(data)}")
    _check_attributes(data.attrs, "data")
    for name in data.dims:
        _check_name(name, "dimension")
    copies = {name: _frozen(name, var, data) for name, var in data.variables.items()}
    _check_time(copies.get("time"), "time" in data.coords)
    return xr.Dataset(
        {name: copies[name] for name in data.data_vars},
        {name: copies[name] for name in data.coords},
        dict(data.attrs),
    )


def _frozen(name: Any, variable: xr.Variable, data: xr.Dataset) -> xr.Variable:
    _check_name(name, "variable")
    if name in data.dims and variable.dims != (name,):
        raise InvalidInput(
            f"variable {name!r}: has the name of a dimension; rename one of them"
        )
    _check_attributes(variable.attrs, f"variable {name!r}")
    array = _plain_array(name, variable.values)
    if array.dtype.kind != "U":
        _check_units(name, variable.attrs.get("units"))
    array.setflags(write=False)
    return xr.Variable(variable.dims, array, dict(variable.attrs))


def _plain_array(name: Any, values: np.ndarray) -> np.ndarray:
    array = np.asarray(values)
    kind = array.dtype.kind
    if kind in "OUT":
        for text in array.ravel():
            check_text(text, f"variable {name!r}")
        return np.array(array, dtype=np.str_)
    sizes = {"f": (4, 8), "i": (1, 2, 4, 8), "u": (1, 2, 4, 8), "b": (1,)}
    if array.dtype.itemsize not in sizes.get(kind, ()):
        raise InvalidInput(
            f"variable {name!r}: values of type {array.dtype} cannot be stored; "
            "use float64, integers, bool or text"
        )
    return np.array(array, dtype=array.dtype.newbyteorder("="), order="C")


def _check_name(name: Any, what: str) -> None:
    if (
        not isinstance(name, str)
        or not _NAME.fullmatch(name)
        or name.startswith(RESERVED)
    ):
        raise InvalidInput(
            f"{what} {name!r}: a name is a letter followed by letters, digits or _ "
            f"(128 at most), and does not begin with {RESERVED!r}"
        )


def _check_attributes(attributes: Mapping[Any, Any], where: str) -> None:
    for name, value in attributes.items():
        _check_name(name, f"{where}: attribute")
        check_text(value, f"{where}: attribute {name!r}")
        if name in _ENCODING:
            raise InvalidInput(
                f"{where}: attribute {name!r} has a meaning of its own in netCDF; "
                "use another name"
            )


def _check_units(name: Any, units: str | None) -> None:
    if not units or not units.strip():
        raise InvalidInput(
            f"variable {name!r}: has no units; set attrs['units'], '1' if it has none"
        )
    try:
        factor = si_factor(units)
    except (InvalidInput, ValueError, ArithmeticError):
        # Not every unit is in our table ("K", "m or rad"): only what is known
        # not to be SI is refused.
        return
    if factor != 1.0:
        raise InvalidInput(f"variable {name!r}: {units!r} is not SI; convert it")


def _check_time(time: xr.Variable | None, is_coordinate: bool) -> None:
    if time is None or not is_coordinate or time.dims != ("time",):
        raise InvalidInput("data: has no coordinate 'time' along a dimension 'time'")
    if time.dtype != np.float64:
        raise InvalidInput(f"time: must be float64, got {time.dtype}")
    if time.attrs["units"] != "s":
        raise InvalidInput(f"time: must be in 's', got {time.attrs['units']!r}")
    values = time.values
    if values.size == 0:
        raise InvalidInput("time: is empty; keep at least the initial state")
    if not np.isfinite(values).all():
        first = int(np.argmin(np.isfinite(values)))
        raise InvalidInput(f"time: sample {first} is {values[first]}; must be finite")
    if not (values[1:] > values[:-1]).all():
        first = 1 + int(np.argmin(values[1:] > values[:-1]))
        raise InvalidInput(
            f"time: sample {first} ({values[first]} s) does not come after the one "
            f"before ({values[first - 1]} s); times must increase"
        )


def columns(data: xr.Dataset) -> Iterator[tuple[str, list[Any]]]:
    """Every time series as named columns, `time` first.

    A variable with more dimensions than time gives one column for each of its
    items, named by labels where the dimension has distinct ones and by index
    where not: "foot_force.front_left.x [N]".

    Yields:
        (name, values of length n_time).
    """
    names = ["time", *(str(n) for n in data.variables if n != "time")]
    for name in names:
        variable = data.variables[name]
        if "time" not in variable.dims:
            continue
        others = [str(dim) for dim in variable.dims if dim != "time"]
        values = variable.transpose("time", *others).values
        unit = f" [{variable.attrs['units']}]" if "units" in variable.attrs else ""
        for item in itertools.product(*(_labels(data, dim) for dim in others)):
            labels = "".join(f".{label}" for _, label in item)
            where: tuple[Any, ...] = (slice(None), *(index for index, _ in item))
            column = values[where]
            yield f"{name}{labels}{unit}", column.tolist()


def _labels(data: xr.Dataset, dim: str) -> list[tuple[int, str]]:
    size = data.sizes[dim]
    labels = [str(i) for i in range(size)]
    if dim in data.variables and data.variables[dim].dtype.kind == "U":
        own = data.variables[dim].values.tolist()
        # A dot inside a label could give two columns the same name.
        if len(set(own)) == size and not any("." in label for label in own):
            labels = own
    return list(enumerate(labels))
