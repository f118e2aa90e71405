"""Files that are no results, or were damaged, are refused in one line."""

import gc
import math
import random
import sys

import h5py
import pytest

from drakebots.core.errors import DrakebotsWarning, ResultProblem
from drakebots.results import FORMAT_VERSION, container, load_result
from tests.helpers.result_samples import make, make_data, problem


def test_files_that_are_none(tmp_path):
    assert "no such file" in problem(tmp_path / "none.nc")
    assert "not a file" in problem(tmp_path)
    assert "not a file" in problem("/dev/zero")
    assert "no such file" in problem(tmp_path / "no" / "run.nc")
    assert "cannot be read" in problem(tmp_path / ("x" * 300))
    (tmp_path / "empty.nc").touch()
    assert "is empty" in problem(tmp_path / "empty.nc")
    (tmp_path / "text.nc").write_text("time,x\n")
    assert "not a netCDF file" in problem(tmp_path / "text.nc")


def test_foreign_netcdf(tmp_path):
    path = tmp_path / "foreign.nc"
    make_data().drop_vars("phase").to_netcdf(path, engine="h5netcdf")
    assert "not a result of drakebots" in problem(path)


def test_damaged(saved):
    whole = saved.read_bytes()
    for length in (1, 8, 100, len(whole) // 2, len(whole) - 129, len(whole) - 1):
        saved.write_bytes(whole[:length])
        problem(saved)
    for block in (whole[-128:-1], whole[-128:].upper(), b" " * 128):
        saved.write_bytes(whole[:-128] + block)
        assert "truncated or altered" in problem(saved)
    flipped = bytearray(whole)
    flipped[len(whole) // 2] ^= 1
    saved.write_bytes(flipped)
    assert "checksum does not match" in problem(saved)
    saved.write_bytes(whole + whole[-128:])
    assert "checksum does not match" in problem(saved)
    with h5py.File(saved, "w") as file:
        file["x"] = 1.0
    container.seal(saved)
    assert "lacks the mark" in problem(saved)
    saved.write_bytes(b"text")
    container.seal(saved)
    assert "cannot be read" in problem(saved)


def test_a_damaged_root_group_is_refused_without_a_traceback(saved, monkeypatch):
    whole = bytearray(saved.read_bytes()[:-128])
    whole[whole.find(b"OHDR") + 12] ^= 0xFF
    saved.write_bytes(whole)
    container.seal(saved)
    # What h5netcdf raises as it is collected, Python only prints.
    printed = []
    monkeypatch.setattr(sys, "unraisablehook", printed.append)
    assert "cannot be read" in problem(saved)
    gc.collect()
    assert not printed


def test_rewritten_by_another_tool(saved):
    """It drops the checksum, and its file loads with a note; a part of it does not."""
    with h5py.File(saved, "r+") as file:
        file["mass"][()] = 7.0
    with pytest.warns(DrakebotsWarning, match="rewritten by another tool"):
        assert load_result(saved).data.mass == 7.0
    whole = saved.read_bytes()
    for bad in (whole[:-1], whole + b"\0"):
        saved.write_bytes(bad)
        assert "truncated or altered" in problem(saved)


@pytest.mark.parametrize("libver", ["earliest", "v108", "latest"])
def test_every_superblock_tells_its_end(tmp_path, libver):
    path = tmp_path / "a.h5"
    with h5py.File(path, "w", libver=(libver, "latest")) as file:
        file["x"] = range(1000)
    data = path.read_bytes()
    assert container._end_of_data(data[: container._HEAD]) == len(data)


@pytest.mark.parametrize("version", [FORMAT_VERSION + 1, 0])
def test_other_version(saved, version):
    saved.write_bytes(saved.read_bytes()[:-128])
    container.seal(saved, version=version)
    message = problem(saved)
    assert f"is of format version {version}" in message
    assert ("update drakebots" in message) == (version > FORMAT_VERSION)


def edit(path, change):
    """Applies `change` to the HDF5 file inside and seals it again."""
    path.write_bytes(path.read_bytes()[:-128])
    with h5py.File(path, "r+") as file:
        change(file)
    container.seal(path)


HEADER = ("kind", "model", "verdict", "message", *("residuals", "timings"))


@pytest.mark.parametrize("field", [*HEADER, "metrics", "provenance", "format"])
def test_missing_field(saved, field):
    def delete(file):
        del file.attrs[f"drakebots_{field}"]

    edit(saved, delete)
    says = "format" if field == "format" else f"lacks the field '{field}'"
    assert says in problem(saved)


@pytest.mark.parametrize(
    ("field", "text", "says"),
    [
        ("metrics", "{", "metrics"),
        ("metrics", "[1]", "must be a mapping"),
        ("metrics", "[" * 100000, ""),
        ("residuals", '{"a": "b"}', "numbers"),
        ("verdict", "fine", "unknown verdict"),
        ("kind", "", "kind"),
        ("kind", 3.0, "kind"),
        ("format", "one", "format"),
    ],
)
def test_wrong_field(saved, field, text, says):
    edit(saved, lambda file: file.attrs.update({f"drakebots_{field}": text}))
    assert says in problem(saved)


def test_wrong_arrays(tmp_path):
    path = tmp_path / "run.nc"

    def units(file):
        del file["position"].attrs["units"]

    def nan(file):
        file["time"][1] = math.nan

    def no_time(file):
        del file["time"]

    for change, says in ((units, "no units"), (nan, "sample 1 is nan"), (no_time, "")):
        make().save(path)
        edit(path, change)
        assert says in problem(path)


def mutated(data, rng):
    """One random damage: flips, a cut, an insertion, a splice, zeros."""
    data = bytearray(data)
    a, b = sorted(rng.randrange(len(data)) for _ in range(2))
    match rng.randrange(6):
        case 0:
            for _ in range(rng.randint(1, 8)):
                data[rng.randrange(len(data))] ^= 1 << rng.randrange(8)
        case 1:
            del data[a:]
        case 2:
            data[a:a] = rng.randbytes(rng.randint(1, 300))
        case 3:
            data[a:b] = data[b : 2 * b - a]
        case 4:
            data[a:b] = bytes(b - a)
        case 5:
            del data[a : a + rng.randint(1, 300)]
    return bytes(data)


def fuzz(path, count, seed):
    result = make()
    whole = result.save(path).read_bytes()
    rng = random.Random(seed)
    refused = 0
    for _ in range(count):
        path.write_bytes(mutated(whole, rng))
        try:
            assert load_result(path) == result
        except ResultProblem as error:
            assert "\n" not in str(error)
            refused += 1
    return refused


def test_fuzz(tmp_path):
    assert fuzz(tmp_path / "run.nc", 50, seed=1) > 40


@pytest.mark.slow
def test_fuzz_long(tmp_path):
    assert fuzz(tmp_path / "run.nc", 1000, seed=2) > 900
