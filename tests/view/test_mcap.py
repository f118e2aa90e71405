"""MCAP logs read back by the format's own reader: series, poses, shapes, skin."""

from __future__ import annotations

import json
import sys
from dataclasses import replace

import numpy as np
import pytest
import xarray as xr

from drakebots.core.errors import InvalidInput
from drakebots.formats import load, plain_robot
from drakebots.view import write_mcap
from tests.helpers.result_samples import make
from tests.helpers.skin_runs import knee, skinned

reader = pytest.importorskip("mcap.reader")


def read(path):
    """Messages by topic: [(time [s], message)]; and each topic's metadata."""
    found, units = {}, {}
    with open(path, "rb") as file:
        for _, channel, message in reader.make_reader(file).iter_messages():
            entry = message.log_time / 1e9, json.loads(message.data)
            found.setdefault(channel.topic, []).append(entry)
            units[channel.topic] = channel.metadata
    return found, units


def test_every_series_with_labels_and_units(tmp_path):
    result = make()
    found, units = read(write_mcap(result, tmp_path / "run.mcap"))
    data = result.data
    assert set(found) == {"/position", "/foot_force", "/stance", "/phase"}
    times = [time for time, _ in found["/position"]]
    np.testing.assert_allclose(times, data.time.values, atol=1e-9)
    values = [[m[axis] for axis in "xyz"] for _, m in found["/position"]]
    np.testing.assert_array_equal(values, data.position.values)
    assert found["/foot_force"][0][1]["front_left"] == {"x": 0.1, "y": 0.1, "z": 0.1}
    assert units["/foot_force"] == {"units": "N"}
    assert found["/phase"][3][1] == {"value": "é3"}


def test_items_of_the_same_label_are_all_written(tmp_path):
    """By their indices, as in a CSV."""
    values = np.arange(6.0).reshape(3, 2)
    data = xr.Dataset(
        {"force": (("time", "foot"), values, {"units": "N"})},
        {"time": ("time", [0.0, 1, 2], {"units": "s"}), "foot": ["FL", "FL"]},
    )
    found, _ = read(write_mcap(make(data=data), tmp_path / "run.mcap"))
    assert found["/force"][1] == (1.0, {"0": 2.0, "1": 3.0})


def test_bodies_move_and_the_skin_with_them(tmp_path):
    """/tf holds Drake's poses; /robot what is drawn; /skin the surface."""
    result = skinned(tmp_path, 300, 3, 0.5)
    model = load(tmp_path / "rods.sdf")
    found, _ = read(write_mcap(result, tmp_path / "run.mcap", model))
    robot = plain_robot(model)
    context = robot.plant.CreateDefaultContext()
    for time, message in found["/tf"]:
        robot.plant.SetPositions(context, [knee(time)])
        (pose,) = (t for t in message["transforms"] if t["child_frame_id"] == "shin")
        shin = robot.plant.GetBodyByName("shin").EvalPoseInWorld(context)
        where = [pose["translation"][axis] for axis in "xyz"]
        turn = [pose["rotation"][axis] for axis in "wxyz"]
        np.testing.assert_allclose(where, shin.translation(), atol=1e-12)
        wanted = shin.rotation().ToQuaternion().wxyz()
        np.testing.assert_allclose(turn, wanted, atol=1e-12)
    assert len(found["/tf"]) == result.data.sizes["time"]
    ((_, scene),) = found["/robot"]
    drawn = {entity["id"]: entity for entity in scene["entities"]}
    assert set(drawn) == {"thigh", "shin"}
    (rod,) = drawn["shin"]["cylinders"]
    assert rod["size"] == {"x": 0.05, "y": 0.05, "z": 0.18}
    assert rod["color"] == pytest.approx({"r": 0.05, "g": 0.1, "b": 0.9, "a": 1.0})
    time, message = found["/skin"][-1]
    (surface,) = message["entities"][0]["triangles"]
    assert time == 0.5
    assert len(surface["indices"]) == result.data.skin_triangle.size
    places = np.array([[p[axis] for axis in "xyz"] for p in surface["points"]])
    shown = places[surface["indices"]].reshape(-1, 3, 3)
    wanted = result.data.skin_position.values[-1][result.data.skin_triangle.values]
    np.testing.assert_allclose(shown, wanted, atol=1e-6)


def test_without_the_package(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "mcap.writer", None)
    with pytest.raises(InvalidInput, match="pip install mcap"):
        write_mcap(make(), tmp_path / "run.mcap")
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("shift, factor", [(-1.0, 1.0), (0.0, 1e300)])
def test_times_that_are_no_stamps_are_refused(tmp_path, shift, factor):
    result = make()
    time = factor * (result.data.time + shift)
    late = replace(result, data=result.data.assign_coords(time=time))
    with pytest.raises(InvalidInput, match="MCAP takes times from 0"):
        write_mcap(late, tmp_path / "x.mcap")
    assert not list(tmp_path.iterdir())
