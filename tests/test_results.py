"""Results: what they refuse, that files keep every bit, and bad files."""

import csv
import dataclasses
import hashlib
import math
import pickle
import random
import subprocess
import sys

import h5py
import numpy as np
import pytest
import xarray as xr
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from drakebots.errors import (
    DrakebotsError,
    FileProblem,
    InvalidInput,
    ResultProblem,
    UnknownName,
)
from drakebots.results import (
    FORMAT_VERSION,
    Result,
    Verdict,
    check_output,
    container,
    load_result,
    provenance,
)

N = 5


def make_data(n=N):
    time = np.linspace(0.0, 0.4, n)
    return xr.Dataset(
        {
            "position": (
                ("time", "axis"),
                np.arange(3.0 * n).reshape(n, 3) / 7,
                {"units": "m"},
            ),
            "foot_force": (
                ("time", "foot", "axis"),
                np.full((n, 2, 3), 0.1),
                {"units": "N"},
            ),
            "stance": (("time", "foot"), np.ones((n, 2), bool), {"units": "1"}),
            "mass": ((), 1.5e-3, {"units": "kg", "long_name": "total mass"}),
            "phase": ("time", [f"é{i}" for i in range(n)]),
        },
        coords={
            "time": ("time", time, {"units": "s"}),
            "axis": ["x", "y", "z"],
            "foot": ["front_left", "hinten_übrig"],
        },
        attrs={"title": "trot"},
    )


def make(**changes):
    fields = {
        "kind": "simulation",
        "model": "hamr",
        "verdict": Verdict.SUCCESS,
        "message": "reached the end",
        "data": make_data(),
        "residuals": {"loop gap": 1e-9, "contact": 2e-6},
        "timings": {"build": 0.25, "run": 1.5},
        "metrics": {"speed": 0.17, "steps": [1, 2], "more": {"a": None, "b": True}},
        "provenance": {"seed": 3, "options": {"step": 1e-4}},
    }
    return Result(**fields | changes)


@pytest.fixture
def saved(tmp_path):
    return make().save(tmp_path / "run.nc")


def problem(path):
    """The one-line message with which a file is refused."""
    with pytest.raises(ResultProblem) as caught:
        load_result(path)
    message = str(caught.value)
    assert "\n" not in message and str(path) in message
    return message


def files(folder):
    return sorted(p.name for p in folder.iterdir())


# ---------------------------------------------------------------- the object


def test_verdict_summary_and_worst_first():
    result = make(
        verdict="time limit",
        residuals={"a": 1.0, "b": -7.0, "c": math.nan},
        message="stopped\nafter 2 s",
    )
    assert result.verdict is Verdict.TIME_LIMIT and not result.ok and make().ok
    assert list(result.residuals) == ["c", "b", "a"]
    assert result.summary() == (
        "simulation of hamr: time limit. stopped after 2 s. 5 samples from 0 s to "
        "0.4 s. Worst residuals: c = nan, b = -7, a = 1. Computed in 1.75 s "
        "(build 0.25 s, run 1.5 s)."
    )
    assert result.summary() in repr(result)
    with pytest.raises(UnknownName, match="time limit"):
        make(verdict="fine")


def test_equality_sees_every_field():
    assert make() == make() and make() != 1
    nan = {"x": math.nan, "y": [math.nan]}
    assert make(metrics=nan) == make(metrics=nan)
    others = {
        "kind": "plan",
        "model": "gecko",
        "verdict": "failed",
        "message": "no",
        "data": make_data().assign_attrs(title="bound"),
        "residuals": {},
        "timings": {},
        "metrics": {},
        "provenance": {},
    }
    assert set(others) == {f.name for f in dataclasses.fields(Result)}
    for name, value in others.items():
        assert make(**{name: value}) != make(), name
    with pytest.raises(TypeError, match="unhashable"):
        hash(make())


def test_nothing_inside_can_change():
    source = make_data()
    result = make(data=source)
    source["position"].values[:] = 9.0
    data = result.data
    for variable in data.variables.values():
        with pytest.raises(ValueError, match=r"read-only|assignment destination"):
            variable.values[...] = variable.values
    data["position"].attrs["units"] = "mm"
    data.attrs["title"] = "other"
    data["more"] = data["mass"]
    del data["foot_force"]
    assert result == make()
    for name in ("kind", "data"):
        with pytest.raises(dataclasses.FrozenInstanceError):
            setattr(result, name, getattr(result, name))
    for mapping in (result.residuals, result.metrics, result.metrics["more"]):
        with pytest.raises(TypeError):
            mapping["new"] = 1.0
    assert result.metrics["steps"] == (1, 2)


def test_copies_keep_equality():
    result = make()
    assert pickle.loads(pickle.dumps(result)) == result
    stopped = dataclasses.replace(result, verdict=Verdict.INTERRUPTED)
    assert stopped != result and not stopped.ok
    assert dataclasses.replace(stopped, verdict="success") == result


def times(values, **attrs):
    return xr.Dataset(coords={"time": ("time", values, {"units": "s"} | attrs)})


def with_variable(**kwargs):
    name = kwargs.pop("name", "v")
    spec = {"dims": ("time",), "data": np.zeros(N), "attrs": {"units": "1"}} | kwargs
    return make_data().assign({name: xr.Variable(**spec)})


@pytest.mark.parametrize(
    ("data", "says"),
    [
        (with_variable(attrs={}), "'v': has no units"),
        (with_variable(attrs={"units": "  "}), "'v': has no units"),
        (with_variable(attrs={"units": 1}), "must be text"),
        (with_variable(attrs={"units": "mm"}), "not SI"),
        (with_variable(attrs={"units": "1", "scale_factor": "2"}), "scale_factor"),
        (with_variable(attrs={"units": "1", "_FillValue": "2"}), "_FillValue"),
        (with_variable(data=np.zeros(N, complex)), "complex128"),
        (with_variable(data=np.zeros(N, "M8[ns]")), "datetime64"),
        (with_variable(data=np.array([1, "a", None, 2, 3], object)), "must be text"),
        (with_variable(data=np.array(["a\0b"] * N, object)), "NUL"),
        (with_variable(data=np.array(["\ud800"] * N)), "Unicode"),
        (with_variable(name="a/b"), "'a/b'"),
        (with_variable(name="drakebots_x"), "drakebots_x"),
        (with_variable(name=3), "variable 3"),
        (make_data().assign_attrs(drakebots_kind="x"), "drakebots_kind"),
        (xr.Dataset(), "no coordinate 'time'"),
        (times([0.0, 1.0], units="ms"), "not SI"),
        (times([0.0, 1.0], units="kg"), "must be in 's'"),
        (times([0, 1]), "float64"),
        (times(np.zeros(0)), "empty"),
        (times([0.0, math.nan]), "sample 1 is nan"),
        (times([0.0, math.inf]), "sample 1 is inf"),
        (times([0.0, 1.0, 1.0]), "sample 2"),
        (times([0.0, -1.0]), "sample 1"),
        (np.zeros(3), "xarray.Dataset"),
    ],
)
def test_refuses_data(data, says):
    with pytest.raises(InvalidInput) as caught:
        make(data=data)
    assert says in str(caught.value) and "\n" not in str(caught.value)


@pytest.mark.parametrize("units", ["m or rad", "K", "m^²", "kg m^2/s", "Pa"])
def test_takes_units_our_table_does_not_know(units):
    assert make(data=with_variable(attrs={"units": units})).data["v"].units == units


def endless():
    loop = []
    loop.append(loop)
    return loop


@pytest.mark.parametrize(
    "changes",
    [
        {"kind": ""},
        {"kind": 3},
        {"model": "a\nb"},
        {"model": "a\0b"},
        {"residuals": {"a": "large"}},
        {"residuals": [1.0]},
        {"timings": {"a": None}},
        {"metrics": {"a": object()}},
        {"metrics": {"a": 1j}},
        {"metrics": {1: 1}},
        {"metrics": {"a": endless()}},
        {"metrics": {"a": 1 << 5000}},
        {"metrics": {"a": "\ud800"}},
        {"provenance": None},
    ],
)
def test_refuses_fields(changes):
    with pytest.raises(InvalidInput) as caught:
        make(**changes)
    assert next(iter(changes)) in str(caught.value)


# ------------------------------------------------------------- the round trip


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
    from drakebots.results.dataset import _ENCODING

    return _ENCODING


plain_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | texts,
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(texts, inner, max_size=3)
    ),
    max_leaves=8,
)


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


# ------------------------------------------------------------------- writing


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
from drakebots.errors import FileProblem
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


# ----------------------------------------------------------------- bad files


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
    for length in (1, 8, 100, len(whole) // 2, len(whole) - 128, len(whole) - 1):
        saved.write_bytes(whole[:length])
        problem(saved)
    saved.write_bytes(whole[: len(whole) - 128])
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


def test_rewritten_by_another_tool(saved):
    with h5py.File(saved, "r+") as file:
        file["mass"][()] = 7.0
    assert "truncated or altered" in problem(saved)


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


# ------------------------------------------------------------------ exporting


def test_csv(tmp_path):
    data = make_data()
    data["position"].values[1] = [math.nan, math.inf, 1 / 3]
    path = make(data=data).to_csv(tmp_path / "run.csv")
    with open(path, newline="", encoding="utf-8") as file:
        header, *rows = csv.reader(file)
    expected = ["time [s]", "position.x [m]", "position.y [m]", "position.z [m]"]
    assert header[:4] == expected
    assert "foot_force.hinten_übrig.z [N]" in header
    assert "stance.front_left [1]" in header and "phase" in header
    assert not any("mass" in name for name in header)
    assert len(header) == 1 + 3 + 6 + 2 + 1 and len(set(header)) == len(header)
    assert len(rows) == N
    position = np.array([[float(x) for x in row[1:4]] for row in rows])
    np.testing.assert_array_equal(position, data["position"].values)
    assert [float(row[0]) for row in rows] == data["time"].values.tolist()
    assert [row[header.index("phase")] for row in rows] == data["phase"].values.tolist()


def test_csv_numbers_columns_without_distinct_labels(tmp_path):
    data = xr.Dataset(
        {
            "v": (("n", "time", "k"), np.zeros((2, 1, 2)), {"units": "V"}),
            "w": (("time", "m"), np.zeros((1, 2)), {"units": "A"}),
        },
        {"time": ("time", [0.0], {"units": "s"}), "k": ["a", "a"], "m": ["a.b", "c"]},
    )
    path = make(data=data).to_csv(tmp_path / "run.csv")
    assert path.read_text().splitlines()[0] == (
        "time [s],v.0.0 [V],v.0.1 [V],v.1.0 [V],v.1.1 [V],w.0 [A],w.1 [A]"
    )


# ----------------------------------------------------------------- provenance


def test_provenance(tmp_path):
    model = tmp_path / "m.sdf"
    model.write_bytes(b"<sdf/>")
    record = provenance(model, {"step": np.float64(1e-4), "file": model}, seed=4)
    digest = hashlib.sha256(b"<sdf/>").hexdigest()
    assert record["files"] == {str(model): digest}
    assert record["options"] == {"step": 1e-4, "file": str(model)}
    assert record["seed"] == 4 and record["date"].endswith("+00:00")
    assert {"drake", "drakebots", "python"} < set(record)
    path = make(provenance=record).save(tmp_path / "run.nc")
    assert load_result(path).provenance["files"][str(model)] == digest
    assert provenance(None, {})["files"] == {}
    assert len(provenance([model, __file__], {})["files"]) == 2
    with pytest.raises(FileProblem, match="cannot be read"):
        provenance(tmp_path / "none.sdf", {})
    with pytest.raises(DrakebotsError, match=r"options\.f"):
        provenance(None, {"f": print})
