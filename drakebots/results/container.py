"""The file of a result: labelled arrays as netCDF-4, followed by a checksum.

A file is a plain netCDF-4 (HDF5) file followed by a block of 128 ASCII bytes:

    drakebots result 1
    sha256 <hexadecimal digest of all bytes before the block>
    length <number of bytes before the block>
    <spaces, and a newline at the end>

HDF5 parsers can crash, loop or ask for all memory on a damaged file, so the
block is verified before HDF5 sees a byte. It guards against damage, not
against malice. HDF5 ignores what follows its data. Measured with one file of
each layout: h5netcdf, netCDF4-python (HDF5 2.2), ncdump 4.9.0 and h5dump
(HDF5 1.10.8) read both a trailing block and a leading one (HDF5's "user
block"); `xarray.open_dataset(path)` without an `engine` recognizes only the
trailing one. A tool that rewrites the file drops the block. Such a file is read,
with a warning, if it is as long as HDF5's superblock says: nothing shows whether
its numbers are the run's. A block that does not fit what is before it is refused.

Numbers are stored exactly. Text in arrays is stored as UTF-8 characters, short
ASCII attributes as fixed-length characters: the oldest forms, which every
netCDF reader knows. Floats from 16 KiB on are compressed by shuffle and zlib
level 4. Measured: sparse contact forces to 57 %, vertices of a skin to 71 %,
smooth joint angles to 89 % of their size, at about 95 MB/s; level 1 gives files
1 to 2 % larger at the same speed, level 9 files up to 1 % smaller at up to 4
times the time; without shuffle skins stay at 90 %.
"""

from __future__ import annotations

import hashlib
import itertools
import mmap
import os
import re
import sys
import warnings
from collections.abc import Iterator, Mapping
from contextlib import nullcontext
from pathlib import Path
from typing import Any, BinaryIO

import h5py
import numpy as np
import xarray as xr

from drakebots.core.errors import DrakebotsWarning, InvalidInput, ResultProblem
from drakebots.core.files import replacing
from drakebots.core.units import si_factor
from drakebots.results.origin import check_text

RESERVED = "drakebots_"
"""Beginning of names of our own in a file."""

FORMAT_VERSION = 1

_BLOCK_SIZE = 128
_BLOCK = re.compile(
    rb"drakebots result (\d{1,9})\nsha256 [0-9a-f]{64}\nlength \d{1,20}\n *\n"
)
_SIGNATURE = b"\x89HDF\r\n\x1a\n"
_HEAD = 64  # [bytes]; HDF5's superblock up to the end of the data
_COMPRESS_FROM = 16 * 1024  # [bytes]
_FIXED_UP_TO = 32 * 1024  # [bytes]; HDF5 holds at most 64 KiB in an attribute

AGAIN = "make it again with the run that wrote it"
# What xarray, h5netcdf and h5py raise on content they cannot use.
_READ_ERRORS = (
    *(OSError, ValueError, KeyError, TypeError, AttributeError),
    *(RuntimeError, IndexError, NotImplementedError),
)


def write_netcdf(path: str | Path, data: xr.Dataset, header: Mapping[str, str]) -> Path:
    """Writes arrays and header texts as one checksummed file, atomically.

    Args:
        path: of the file.
        data: arrays as :func:`frozen_dataset` makes them.
        header: texts, stored as global attributes `drakebots_<key>`.

    Raises:
        FileProblem: when it cannot be written; nothing is left behind.
    """
    header = {RESERVED + key: text for key, text in header.items()}
    stored = data.copy(deep=False)
    stored.attrs = _attributes(data.attrs) | _attributes(header)
    for variable in stored.variables.values():
        variable.attrs = _attributes(variable.attrs)
    encoding = {name: _encoding(v) for name, v in stored.variables.items()}
    # In a process with a client of dask, xarray would take a lock of its cluster,
    # which fails for a file in memory.
    dask = sys.modules.get("dask")
    alone = nullcontext() if dask is None else dask.config.set(scheduler="synchronous")
    with replacing(path) as part:
        # In memory first: HDF5 2.0 crashes the interpreter when the disk is
        # full (measured), a plain write raises OSError.
        with alone:
            image = stored.to_netcdf(engine="h5netcdf", encoding=encoding)
        part.write_bytes(image)
        seal(part)
    return Path(path)


def _attributes(attributes: Mapping[Any, str]) -> dict[str, Any]:
    return {
        str(name): np.bytes_(text.encode())
        if text.isascii() and 0 < len(text) <= _FIXED_UP_TO
        else text
        for name, text in attributes.items()
    }


def _encoding(variable: xr.Variable) -> dict[str, Any]:
    if variable.dtype.kind == "U":
        # Texts of one width share the dimension of their characters. xarray
        # wants the width, and no other digit, in its name.
        texts = variable.values.ravel().tolist()
        width = max([1, *(len(text.encode()) for text in texts)])
        return {"dtype": "S1", "char_dim_name": f"{RESERVED}chars{width}"}
    if variable.dtype.kind != "f":
        return {}
    # NaN is a value here, not the mark of a missing one.
    packed = {"zlib": True, "complevel": 4, "shuffle": True}
    return {"_FillValue": None} | (packed if variable.nbytes >= _COMPRESS_FROM else {})


def seal(path: Path, *, version: int = FORMAT_VERSION) -> None:
    """Appends the checksum block to a complete netCDF file."""
    with open(path, "r+b") as file:
        length = file.seek(0, os.SEEK_END)
        block = _block(file, length, version)
        file.seek(length)
        file.write(block)


def _block(file: BinaryIO, length: int, version: int) -> bytes:
    with (
        mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as text,
        memoryview(text) as view,
    ):
        digest = hashlib.sha256(view[:length]).hexdigest()
    block = f"drakebots result {version}\nsha256 {digest}\nlength {length}\n"
    return block.encode().ljust(_BLOCK_SIZE - 1) + b"\n"


def read_netcdf(path: str | Path) -> tuple[xr.Dataset, dict[str, str]]:
    """Verifies a file, then reads it.

    Returns:
        (arrays, header texts without the prefix `drakebots_`).

    Raises:
        ResultProblem: when it is missing, damaged, of another version, or not
            a result of drakebots.

    Warns:
        DrakebotsWarning: when another tool has rewritten it.
    """
    try:
        # A device or a pipe could be read without end.
        if os.path.lexists(path) and not os.path.isfile(path):
            raise ResultProblem(path, "is not a file; give the file of a result")
        with open(path, "rb") as file:
            if not _verify(path, file):
                warnings.warn(
                    f"{path}: was rewritten by another tool (no checksum at its end), "
                    "so nothing shows whether it is what the run wrote",
                    DrakebotsWarning,
                    stacklevel=3,
                )
            file.seek(0)
            with h5py.File(file, "r") as h5:
                dict(h5.attrs)  # h5netcdf prints a traceback where this cannot be read
            # The open file is passed on: what is read is what was verified, even if
            # the path is replaced meanwhile.
            data = xr.load_dataset(
                file, engine="h5netcdf", decode_times=False, mask_and_scale=False
            )
    except FileNotFoundError as error:
        raise ResultProblem(path, "there is no such file; check the name") from error
    except _READ_ERRORS as error:
        raise ResultProblem(path, f"cannot be read ({error}); {AGAIN}") from error
    ours = [name for name in data.attrs if name.startswith(RESERVED)]
    return data, {name.removeprefix(RESERVED): data.attrs.pop(name) for name in ours}


def _verify(path: str | Path, file: BinaryIO) -> bool:
    """Whether the file has its checksum; False if it is whole, but rewritten."""
    length = file.seek(0, os.SEEK_END) - _BLOCK_SIZE
    file.seek(max(length, 0))
    block = file.read(_BLOCK_SIZE)
    match = _BLOCK.fullmatch(block)
    if match is None:
        if refusal := _unsealed(file):
            raise ResultProblem(path, refusal)
        return False
    version = int(match[1])
    if block != _block(file, length, version):
        flaw = "truncated or altered (checksum does not match)"
        raise ResultProblem(path, f"{flaw}; {AGAIN}")
    if version != FORMAT_VERSION:
        remedy = "update drakebots" if version > FORMAT_VERSION else AGAIN
        raise ResultProblem(
            path,
            f"is of format version {version}, and this drakebots reads version "
            f"{FORMAT_VERSION}; {remedy}",
        )
    return True


def _unsealed(file: BinaryIO) -> str | None:
    """Why a file without our block is refused, found without parsing it.

    None for a result that is as long as HDF5's superblock says, and no longer.
    """
    size = file.seek(0, os.SEEK_END)
    file.seek(0)
    head = file.read(_HEAD)
    start = head[: len(_SIGNATURE)]
    if not start:
        return f"is empty; {AGAIN}"
    with mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as text:
        is_ours = text.find(f"{RESERVED}format".encode()) >= 0
    if is_ours and start == _SIGNATURE and _end_of_data(head) == size:
        return None
    if is_ours:
        return f"truncated or altered (no checksum at its end); {AGAIN}"
    if start == _SIGNATURE or start.startswith(b"CDF"):
        return (
            "is a netCDF or HDF5 file, but not a result of drakebots (or cut off "
            "early); open it with xarray, or give a file that Result.save wrote"
        )
    return "is not a netCDF file; give a file that Result.save wrote"


def _end_of_data(head: bytes) -> int | None:
    """The end of the file by HDF5's superblock (HDF5 file format specification, II.A).

    None where addresses do not have eight bytes.
    """
    version = head[8] if len(head) == _HEAD else 255
    if version > 3 or head[13 if version < 2 else 9] != 8:
        return None
    at = 28 if version > 1 else 40 + 4 * version
    return int.from_bytes(head[at : at + 8], "little")


# --- the labelled arrays ------------------------------------------------------

_NAME = re.compile(rf"(?!{RESERVED})[A-Za-z][A-Za-z0-9_]{{0,127}}")
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
        what = f"variable {name!r}: has the name of a dimension"
        raise InvalidInput(f"{what}; rename one of them")
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
    if not (isinstance(name, str) and _NAME.fullmatch(name)):
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
    where not: "foot_force.front_left.x [N]". Items of several units ("m or rad: see
    position_unit") have their own.

    Yields:
        (name, values of length n_time).
    """
    for name in ["time", *(str(n) for n in data.variables if n != "time")]:
        variable = data.variables[name]
        if "time" not in variable.dims:
            continue
        others = [str(dim) for dim in variable.dims if dim != "time"]
        values = variable.transpose(*others, "time").values
        unit = f" [{variable.attrs['units']}]" if "units" in variable.attrs else ""
        own = data.variables.get(unit.rstrip("]").partition(": see ")[2])
        for item in itertools.product(*(_labels(data, dim) for dim in others)):
            labels = "".join(f".{label}" for _, label in item)
            column = values[tuple(index for index, _ in item)]
            if own is not None and len(own.dims) == 1 and own.dims[0] in others:
                unit = f" [{own.values[item[others.index(own.dims[0])][0]]}]"
            yield f"{name}{labels}{unit}", column.tolist()


def _labels(data: xr.Dataset, dim: str) -> list[tuple[int, str]]:
    size = data.sizes[dim]
    labels = [str(i) for i in range(size)]
    if dim in data.variables and data.variables[dim].dtype.kind in "Uiu":
        own = data.variables[dim].values.astype(str).tolist()
        # A dot inside a label could give two columns the same name.
        if len(set(own)) == size and not any("." in label for label in own):
            labels = own
    return list(enumerate(labels))
