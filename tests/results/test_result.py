"""Results: what they refuse, that nothing inside can change, exports."""

import csv
import dataclasses
import hashlib
import math
import pickle

import numpy as np
import pytest
import xarray as xr

from drakebots.core.errors import DrakebotsError, FileProblem, InvalidInput, UnknownName
from drakebots.core.run import Verdict
from drakebots.results import Result, load_result, provenance
from tests.helpers.result_samples import N, make, make_data


def test_verdict_summary_and_worst_first():
    result = make(
        verdict="time limit",
        residuals={"a": 1.0, "b": -7.0, "c": math.nan},
        message="stopped\nafter 2 s",
    )
    assert result.verdict is Verdict.TIME_LIMIT and not result.ok and make().ok
    assert list(result.residuals) == ["c", "b", "a"]
    assert result.summary() == (
        "hamr.simulation of hamr: time limit. stopped after 2 s. 5 samples from 0 s to "
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
    not_compared = {"folders"}
    every = {f.name for f in dataclasses.fields(Result)}
    assert set(others) | not_compared == every
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
            "x": (("time", "node"), np.zeros((1, 2)), {"units": "m"}),
        },
        {"time": ("time", [0.0], {"units": "s"}), "k": ["a", "a"], "m": ["a.b", "c"]},
    ).assign_coords(node=("node", [30, 7], {"units": "1"}))
    path = make(data=data).to_csv(tmp_path / "run.csv")
    assert path.read_text().splitlines()[0] == (
        "time [s],v.0.0 [V],v.0.1 [V],v.1.0 [V],v.1.1 [V],w.0 [A],w.1 [A],"
        "x.30 [m],x.7 [m]"
    )


def test_csv_has_the_unit_of_each_item(tmp_path):
    position = ("time", "q"), np.zeros((1, 2)), {"units": "m or rad: see q_unit"}
    coordinates = {
        "time": ("time", [0.0], {"units": "s"}),
        "q": ["slide", "hinge"],
        "q_unit": ("q", ["m", "rad"]),
    }
    data = xr.Dataset({"position": position}, coordinates)
    path = make(data=data).to_csv(tmp_path / "run.csv")
    heads = path.read_text().splitlines()[0]
    assert heads == "time [s],position.slide [m],position.hinge [rad]"


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


def test_a_notebook_shows_a_table_of_text_and_the_data():
    result = make(message="a <b> & c", metrics={"slip": 0.12345, "long": "x" * 200})
    page = result._repr_html_()
    assert "a &lt;b&gt; &amp; c" in page and "<b>" not in page.split("</table>")[0]
    assert "<th" in page and "0.1235" in page and "x" * 200 not in page
    assert result.data._repr_html_()[:200] not in page.split("</table>")[0]
    assert "xr-" in page.split("</table>", 1)[1]  # xarray's own page of the data
