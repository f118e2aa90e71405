"""The model of a result is found again, whatever became of its file."""

from __future__ import annotations

import shutil
import warnings
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import xarray as xr
from pydrake.geometry import SceneGraph
from pydrake.multibody.plant import MultibodyPlant

from drakebots.core.errors import DrakebotsWarning, InvalidInput, UnknownName
from drakebots.core.units import MM_G_MS
from drakebots.formats import load, model_of, model_provenance
from drakebots.formats.stored import absolute_files
from drakebots.model import Model
from drakebots.results import Result, load_result, provenance
from tests.helpers.coupled_robots import linkage
from tests.helpers.model_files import write
from tests.helpers.old_urdf_samples import TINY

_ARM = """<robot name="arm">
  <link name="base"><inertial><mass value="1"/>
    <inertia ixx="1" iyy="1" izz="1" ixy="0" ixz="0" iyz="0"/></inertial>
    <visual><geometry><mesh filename="meshes/tip.obj"/></geometry></visual></link>
  <link name="arm"><inertial><mass value="{mass}"/>
    <inertia ixx="1" iyy="1" izz="1" ixy="0" ixz="0" iyz="0"/></inertial></link>
  <joint name="hinge" type="revolute"><parent link="base"/><child link="arm"/>
    <axis xyz="0 1 0"/><limit lower="-1" upper="1" effort="2" velocity="1"/></joint>
</robot>"""
_SIDECAR = "feet:\n  tip: {body: arm, p: [0, 0, -0.5], radius: 0.01}\n"
_SIDECAR_NAME = "arm.drakebots.yaml"
_TETRAHEDRON = "v 0 0 0\nv 1 0 0\nv 0 1 0\nv 0 0 1\n" + "".join(
    f"f {face}\n" for face in ("1 3 2", "1 2 4", "2 3 4", "1 4 3")
)


@pytest.fixture
def arm(tmp_path: Path) -> Path:
    """A model with a file beside it and a mesh, in a folder that can be moved."""
    folder = tmp_path / "robot"
    (folder / "meshes").mkdir(parents=True)
    write(folder / "meshes", _TETRAHEDRON, "tip.obj")
    write(folder, _SIDECAR, _SIDECAR_NAME)
    return write(folder, _ARM.format(mass=2), "arm.urdf")


def _result_of(model: Model, **fields) -> Result:
    return Result(
        kind="passive.simulation",
        model=model.name,
        verdict="success",
        message="",
        data=xr.Dataset(coords={"time": ("time", [0.0, 1.0], {"units": "s"})}),
        residuals={},
        timings={},
        metrics={},
        provenance=model_provenance(model, {}, **fields),
    )


def _same(found: Model, model: Model) -> bool:
    """Whether two models are equal but for where they are."""
    assert found.summary == model.summary and found.name == model.name
    assert [(f.name, f.body, f.radius, *f.p_BF) for f in found.feet] == [
        (f.name, f.body, f.radius, *f.p_BF) for f in model.feet
    ]
    assert [(x.name, x.rows, *x.p_AP, *x.axis_B) for x in found.loops] == [
        (x.name, x.rows, *x.p_AP, *x.axis_B) for x in model.loops
    ]
    plant, scene_graph = MultibodyPlant(1e-3), SceneGraph()
    plant.RegisterAsSourceForSceneGraph(scene_graph)
    found.add_to(plant)  # with its meshes
    return found.actuators == model.actuators


def test_a_model_is_found_where_it_was(arm, tmp_path, monkeypatch):
    monkeypatch.chdir(arm.parent)
    result = _result_of(load("arm.urdf"))
    path = result.save(tmp_path / "run.nc")
    monkeypatch.chdir(tmp_path)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = model_of(load_result(path))
    assert found.path == arm and _same(found, load(arm))


def test_a_model_is_found_after_a_move_of_both(arm, tmp_path):
    model = load(arm)
    _result_of(model).save(arm.parent / "run.nc")
    moved = tmp_path / "elsewhere" / "robot"
    shutil.move(arm.parent, moved)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = model_of(load_result(moved / "run.nc"))
    assert found.path == moved / "arm.urdf" and _same(found, model)


def test_the_kept_model_stands_in_for_a_file_that_is_gone(arm, tmp_path):
    model = load(arm)
    result = _result_of(model)
    arm.unlink()
    with pytest.warns(DrakebotsWarning, match="is gone"):
        found = model_of(load_result(result.save(tmp_path / "run.nc")))
    assert _same(found, model)


@pytest.mark.parametrize("file", ["arm.urdf", "arm.drakebots.yaml"])
def test_the_kept_model_stands_in_for_a_file_that_changed(arm, file):
    model = load(arm)
    result = _result_of(model)
    text = {"arm.urdf": _ARM.format(mass=5), "arm.drakebots.yaml": "feet: {}\n"}
    write(arm.parent, text[file], file)
    with pytest.warns(DrakebotsWarning, match="has changed"):
        found = model_of(result)
    assert found.summary.mass == pytest.approx(3.0) and _same(found, model)


def test_a_result_of_a_kept_model_keeps_the_same_model(arm):
    """A plan that was made before its file changed is tracked as planned."""
    first = _result_of(load(arm))
    write(arm.parent, _ARM.format(mass=5), "arm.urdf")
    with pytest.warns(DrakebotsWarning, match="has changed"):
        second = _result_of(model_of(first))
    with pytest.warns(DrakebotsWarning, match="has changed"):
        assert model_of(second).summary.mass == pytest.approx(3.0)


def test_packages_are_found_again(tmp_path, monkeypatch):
    """Of a relative folder on the command line, from any other folder."""
    (tmp_path / "parts").mkdir()
    write(tmp_path / "parts", _TETRAHEDRON, "tip.obj")
    text = _ARM.format(mass=2).replace("meshes/tip.obj", "package://meshes/tip.obj")
    path = write(tmp_path, text, "arm.urdf")
    monkeypatch.chdir(tmp_path)
    model = load(path, packages={"meshes": "parts"}, strict=True)
    result = _result_of(model)
    monkeypatch.chdir("/")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = model_of(result)
    assert _same(found, model) and found.notes == model.notes


def test_a_file_in_another_encoding_is_kept(arm):
    text = '<?xml version="1.0" encoding="latin-1"?>' + _ARM.format(mass=2)
    arm.write_bytes(text.replace('name="hinge"', 'name="kn\xe9e"').encode("latin-1"))
    model = load(arm)
    result = _result_of(model)
    arm.unlink()
    with pytest.warns(DrakebotsWarning, match="is gone"):
        found = model_of(result)
    assert _same(found, model) and "knée" in found.summary.positions[-1]
    assert found.notes == model.notes == tuple(result.provenance["model"]["notes"])


def test_what_surrounds_a_file_is_not_kept(arm):
    """A byte order mark and a NUL, with which the kept text would be no XML."""
    arm.write_bytes(b"\xef\xbb\xbf" + _ARM.format(mass=2).encode() + b"\n\0")
    model = load(arm)
    result = _result_of(model)
    arm.unlink()
    with pytest.warns(DrakebotsWarning, match="is gone"):
        assert _same(model_of(result), model)


def test_an_old_drake_file_is_found_with_its_units(tmp_path):
    path = write(tmp_path, TINY, "bar.urdf")
    model = load(path, units=MM_G_MS)
    result = _result_of(model)
    assert _same(model_of(result), model)
    path.unlink()
    with pytest.warns(DrakebotsWarning):
        assert _same(model_of(result), model)


def test_a_model_of_ours_is_found_in_another_installation(monkeypatch, tmp_path):
    model = load("hamr")
    monkeypatch.setenv("DRAKEBOTS_MODELS", str(tmp_path))
    shutil.copytree(model.path.parent, tmp_path / "hamr")
    shutil.copy(model.path.parents[1] / "package.xml", tmp_path)
    copied = _result_of(load("hamr"))
    monkeypatch.delenv("DRAKEBOTS_MODELS")
    shutil.rmtree(tmp_path / "hamr")
    assert model_of(copied).path == model.path


def test_a_file_that_went_away_during_the_run_costs_no_result(arm):
    model = load(arm)
    arm.unlink()
    result = _result_of(model, files=[arm.with_name("mesh.obj")])
    assert list(result.provenance["files"]) == [str(arm.with_name(_SIDECAR_NAME))]
    if model.text is None:
        with pytest.warns(DrakebotsWarning), pytest.raises(InvalidInput, match="away"):
            model_of(result)


def test_a_result_without_a_kept_model(arm, tmp_path):
    model = load(arm)
    result = _result_of(model)
    old = dict(result.provenance)
    old.pop("model")
    result = Result(**{**_fields(result), "provenance": old})
    assert _same(model_of(result), model)
    arm.unlink()
    with pytest.raises(UnknownName, match="arm"):
        model_of(result)


def test_a_model_with_the_name_of_one_of_ours_is_not_ours(arm):
    """A robot from outside, whose result only names its file."""
    mine = arm.parent / "monopod.urdf"
    arm.rename(mine)
    result = _result_of(load(mine))
    given = {**_fields(result), "model": "monopod", "provenance": provenance(mine, {})}
    assert _same(model_of(Result(**given)), load(mine))
    mine.unlink()
    with pytest.raises(UnknownName, match="monopod"):
        model_of(Result(**given))


def test_a_damaged_record_is_refused_by_name(arm):
    result = _result_of(load(arm))
    broken = {**result.provenance, "model": {**result.provenance["model"], "text": "?"}}
    arm.unlink()
    with (
        pytest.warns(DrakebotsWarning),
        pytest.raises(InvalidInput, match="cannot be read"),
    ):
        model_of(Result(**{**_fields(result), "provenance": broken}))


def _fields(result: Result) -> dict:
    names = ("kind", "model", "verdict", "message", "data", "residuals", "timings")
    return {name: getattr(result, name) for name in (*names, "metrics")}


def test_relative_names_of_files_become_absolute():
    folder = Path("/a/b")
    urdf = (
        '<robot><mesh filename="../m.obj"/><mesh filename="package://p/m.obj"/></robot>'
    )
    text = absolute_files(urdf, folder)
    assert '"file:///a/m.obj"' in text and '"package://p/m.obj"' in text
    assert "<uri>file:///a/b/m.obj</uri>" in absolute_files(
        "<sdf><uri> m.obj </uri></sdf>", folder
    )
    prefixed = '<robot><drake:joint a:b="1"/></robot>'
    assert '<drake:joint a:b="1"' in absolute_files(prefixed, folder)
    with pytest.raises(InvalidInput, match="XML"):
        absolute_files("<", folder)


def test_places_of_a_result_in_memory(arm):
    result = _result_of(load(arm))
    assert result.places(arm) == (arm,)
    assert np.array_equal(result.data.time, [0.0, 1.0])


def test_a_model_that_is_gone_keeps_its_couplers(tmp_path):
    """With the row that does not count, as its loops said; old results have none."""
    model = linkage(tmp_path)
    first, *others = model.couplers
    model = replace(model, couplers=(replace(first, kept=False), *others))
    result = _result_of(model)
    model.path.unlink()
    with pytest.warns(DrakebotsWarning, match="is gone"):
        assert model_of(result).couplers == model.couplers
    kept = {k: v for k, v in result.provenance["model"].items() if k != "couplers"}
    old = replace(result, provenance={**result.provenance, "model": kept})
    with pytest.warns(DrakebotsWarning, match="is gone"):
        found = model_of(old).couplers
    assert found == (first, *others)
