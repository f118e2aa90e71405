"""Files of results keep every bit, and a failed save changes nothing."""

import subprocess
import sys

import h5netcdf
import h5py
import numpy as np
import pytest
import xarray as xr
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from drakebots.core.errors import FileProblem
from drakebots.core.files import check_output
from drakebots.results import FORMAT_VERSION, container, load_result
from tests.helpers.result_samples import files, make, make_data


def test_round_trip(saved):
    result = load_result(saved)
    assert result == make()
    assert result.data["foot"].dtype.kind == "U"
    assert files(saved.parent) == ["run.nc"]


ascii_names = st.from_regex(r"[A-Za-z][A-Za-z0-9_]{0,12}", fullmatch=True)
texts = st.text(
    st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=8
)
dtypes = st.sampled_from(["f8", ">f8", "f4", "i8", "i4", ">i2", "u1", "?", "U"])


@st.composite
def datasets(draw):
    """Any arrays a result takes; NaN, infinity, empty and scalar ones too."""
    names = draw(st.lists(ascii_names, min_size=6, max_size=6, unique=True))
    reserved = {"time", "units", *container_reserved()}
    names = [n for n in names if n not in reserved]
    dims = {"time": draw(st.integers(1, 4))}
    dims |= {name: draw(st.integers(0, 3)) for name in names[:2]}
    variables = {}
    for name in names[2:]:
        over = draw(st.permutations(list(dims)))[: draw(st.integers(0, len(dims)))]
        shape = tuple(dims[d] for d in over)
        kind = draw(dtypes)
        elements = texts if kind == "U" else None
        array = draw(
            hnp.arrays(object if kind == "U" else kind, shape, elements=elements)
        )
        attrs = {"units": "1", "note": draw(texts)}
        variables[name] = (over, array, attrs)
    split = draw(st.integers(0, len(variables)))
    items = list(variables.items())
    coords = dict(items[:split])
    if draw(st.booleans()) and len(names) > 1:
        labels = draw(st.lists(texts, min_size=dims[names[0]], max_size=dims[names[0]]))
        coords[names[0]] = (names[0], np.array(labels, dtype=object))
    steps = draw(hnp.arrays("f8", dims["time"], elements=st.floats(0.001, 1e3)))
    coords["time"] = ("time", np.cumsum(steps) - 5.0, {"units": "s"})
    return xr.Dataset(dict(items[split:]), coords)


def container_reserved():
    from drakebots.results.container import _ENCODING

    return _ENCODING


plain_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | texts,
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(texts, inner, max_size=3)
    ),
    max_leaves=8,
)


@pytest.mark.long
@settings(
    max_examples=80,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(
    data=datasets(),
    message=st.text(),
    residuals=st.dictionaries(texts, st.floats(), max_size=3),
    metrics=st.dictionaries(texts, plain_values, max_size=3),
)
def test_round_trip_of_anything(tmp_path, data, message, residuals, metrics):
    result = make(data=data, message=message, residuals=residuals, metrics=metrics)
    back = load_result(result.save(tmp_path / "any.nc"))
    assert back == result
    assert list(back.residuals) == list(result.residuals)
    for name, variable in result.data.variables.items():
        assert back.data.variables[name].dtype.kind == variable.dtype.kind
        if variable.dtype.kind != "U":
            assert back.data.variables[name].dtype == variable.dtype
            assert back.data[name].values.tobytes() == variable.values.tobytes()
    assert files(tmp_path) == ["any.nc"]


def test_large_arrays_and_long_texts_stay_exact(tmp_path):
    rng = np.random.default_rng(0)
    bits = rng.integers(0, 1 << 63, size=(3000, 7), dtype=np.int64).view(np.float64)
    data = xr.Dataset(
        {"v": (("time", "n"), bits, {"units": "1"})},
        {"time": ("time", np.arange(3000.0), {"units": "s"})},
    )
    result = make(data=data, metrics={"costs": list(range(50000))})
    path = result.save(tmp_path / "large.nc")
    back = load_result(path)
    assert back == result
    assert back.data["v"].values.tobytes() == bits.tobytes()
    with h5py.File(path) as file:
        assert file["v"].compression == "gzip" and file["v"].shuffle


def test_opens_without_drakebots(saved):
    with xr.open_dataset(saved, decode_times=False) as data:
        assert data["position"].attrs == {"units": "m"}
        np.testing.assert_array_equal(data["position"], make_data()["position"])
        assert data["foot"].values.tolist() == ["front_left", "hinten_übrig"]
        assert data.attrs["drakebots_model"] == "hamr"
        assert data.attrs["drakebots_format"] == str(FORMAT_VERSION)
    with h5py.File(saved) as file:
        assert file["axis"].dtype == "S1"
        assert file["position"].attrs["units"] == b"m"
        kinds = {file[name].dtype.kind for name in file}
        assert "O" not in kinds


class Stop(Exception):
    """What no code of ours could catch by accident."""


@pytest.mark.parametrize("error", [Stop, KeyboardInterrupt, OSError])
@pytest.mark.parametrize("where", ["seal", "replace", "fsync", "write_bytes"])
def test_a_failed_save_changes_nothing(saved, monkeypatch, error, where):
    before = saved.read_bytes()

    def fail(part, *args, **kwargs):
        if where == "write_bytes":
            part.write_text("half")
        assert len(files(saved.parent)) == 2, "the temporary file lies beside"
        raise error("in the middle")

    owner = {"seal": container, "write_bytes": container.Path}.get(where, container.os)
    monkeypatch.setattr(owner, where, fail)
    wrapped = FileProblem if error is OSError else error
    with pytest.raises(wrapped):
        make(message="other").save(saved)
    monkeypatch.undo()
    assert files(saved.parent) == ["run.nc"]
    assert saved.read_bytes() == before


def test_a_failed_csv_changes_nothing(tmp_path, monkeypatch):
    path = make().to_csv(tmp_path / "run.csv")
    before = path.read_bytes()

    def fail(*args):
        raise KeyboardInterrupt

    monkeypatch.setattr(container.os, "replace", fail)
    with pytest.raises(KeyboardInterrupt):
        make(message="other").to_csv(path)
    assert files(tmp_path) == ["run.csv"] and path.read_bytes() == before


def test_a_full_disk_is_one_line(tmp_path):
    # A limit on the size of files stands for a full disk. HDF5 itself crashes the
    # interpreter at either.
    code = """
import resource, signal, sys
import numpy as np, xarray as xr
from drakebots.core.errors import FileProblem
from drakebots.results import Result
time = ("time", np.arange(20000.0), {"units": "s"})
noise = np.random.default_rng(0).normal(size=20000)
data = xr.Dataset({"v": ("time", noise, {"units": "1"})}, {"time": time})
result = Result("plan", "m", "success", "", data, {}, {}, {}, {})
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (50_000, 50_000))
for write in (result.save, result.to_csv):
    try:
        write(sys.argv[1])
    except FileProblem as error:
        print(error)
"""
    run = subprocess.run(
        [sys.executable, "-c", code, str(tmp_path / "full.nc")],
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert run.returncode == 0, run.stderr
    lines = run.stdout.splitlines()
    assert len(lines) == 2 and all("could not be written" in x for x in lines)
    assert files(tmp_path) == []


def test_check_output(tmp_path, monkeypatch):
    path = tmp_path / "run.nc"
    assert check_output(path) == path.resolve() and files(tmp_path) == []
    (tmp_path / "file").touch()
    bad = [
        (tmp_path / "no" / "run.nc", "no folder"),
        (tmp_path / "file" / "run.nc", "no folder"),
        (tmp_path, "not a file"),
        ("/dev/null", "not a file"),
        ("", "not a file"),
        (tmp_path / ("x" * 300), "cannot"),
        (str(tmp_path / "a\0b"), "cannot"),
    ]
    for target, says in bad:
        for write in (check_output, make().save, make().to_csv):
            with pytest.raises(FileProblem, match=says) as caught:
                write(target)
            assert "\n" not in str(caught.value)

    def refuse(*args, **kwargs):
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(container.Path, "touch", refuse)
    with pytest.raises(FileProblem, match="Permission denied"):
        check_output(path)
    assert files(tmp_path) == ["file"]


def test_a_link_is_followed(tmp_path):
    (tmp_path / "real").mkdir()
    link = tmp_path / "link.nc"
    link.symlink_to(tmp_path / "real" / "run.nc")
    make().save(link)
    assert link.is_symlink() and load_result(tmp_path / "real" / "run.nc") == make()


def test_dimensions_are_those_of_netcdf(tmp_path):
    """h5netcdf, which reads HDF5's dimension scales, finds every dimension by name."""
    texts = np.array([["ä", ""], ["b", "cd"], ["", "e"]])
    data = xr.Dataset(
        {
            "square": (("time", "n"), np.ones((3, 4)), {"units": "1"}),
            "words": (("time", "word"), texts),
            "none": (("empty",), np.zeros(0), {"units": "1"}),
            "scalar": ((), 1.5, {"units": "m"}),
            "yes": ("word", [True, False], {"units": "1"}),
        },
        {
            "time": ("time", [0.0, 1.0, 2.0], {"units": "s"}),
            "word": ["first", "second"],
            "side": ("n", np.arange(4), {"units": "1"}),
            "alone": ("lonely", np.arange(2), {"units": "1"}),
        },
    )
    path = make(data=data).save(tmp_path / "any.nc")
    with h5netcdf.File(path, "r") as file:
        sizes = {name: dim.size for name, dim in file.dimensions.items()}
        assert sizes == dict(data.sizes) | {
            "drakebots_chars2": 2,
            "drakebots_chars6": 6,
        }
        for name, variable in data.variables.items():
            found = file.variables[name].dimensions
            text = variable.dtype.kind == "U"
            assert found[: len(found) - text] == variable.dims
    # As any netCDF file, with no knowledge of ours.
    with xr.open_dataset(path, engine="h5netcdf", mask_and_scale=False) as plain:
        assert plain.drop_attrs(deep=False).identical(make(data=data).data)
