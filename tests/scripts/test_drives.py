"""The script of a drive, and what its velocities are."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest
import xarray as xr

from drakebots.live.script import read_script
from tests.helpers.scripts import load_script

drives = load_script("drives")


def test_a_drive_is_the_same_for_the_same_number(tmp_path):
    paths = [tmp_path / f"{k}.csv" for k in range(3)]
    for path, seed in zip(paths, (0, 0, 1)):
        judged = drives.write_drive(path, drives.DRIVE, seed, 1.0, 1.0)
    events, again, others = map(read_script, paths)
    assert events == again and events != others
    pushes = [event for event in others if event.control.startswith("push")]
    assert len(pushes) == 6
    assert sum(leg.duration for leg in drives.DRIVE) == pytest.approx(60)
    assert [e.value for e in others if e.control == "terrain"] == [1, 3]
    # Of five parts on flat ground that lead somewhere; no push while it is judged.
    assert len(judged) == 5
    for begin, end, orders in judged:
        assert end > begin + 1.5 and any(orders.values())
        assert not any(begin < push.time < end for push in pushes)


def test_small_robots_and_bipeds_are_asked_for_less():
    leg = drives.Leg(1, {"ahead": 0.5, "turn": 0.8, "height": 0.02})
    found = drives.orders_of(leg, clock=0.5, share=0.5)
    wanted = {"ahead": 0.125, "left": 0.0, "turn": 0.8, "height": 0.005}
    assert found == pytest.approx(wanted)


def test_velocities_are_along_the_robots_own_axes():
    """On a circle: ahead at 0.3 m/s, drifting to the left, past half a turn."""
    time = np.linspace(0, 10, 1001)
    yaw = 0.8 * time
    c, s = np.cos(yaw), np.sin(yaw)
    x, y = (0.3 * s - 0.1 * (1 - c)) / 0.8, (0.3 * (1 - c) + 0.1 * s) / 0.8
    rpy = np.column_stack([0 * yaw, 0 * yaw, (yaw + np.pi) % (2 * np.pi) - np.pi])
    data = xr.Dataset(
        {
            "base_position": (("time", "axis"), np.column_stack([x, y, 0 * x])),
            "base_rpy": (("time", "angle"), rpy),
        },
        coords={"time": time},
    )
    run = SimpleNamespace(data=data)
    found = drives.velocity(run, 2.0, 8.0)
    assert found == pytest.approx({"ahead": 0.3, "left": 0.1, "turn": 0.8}, rel=1e-4)
    judged = [(2.0, 8.0, {"ahead": 0.3, "left": 0.1, "turn": 1.0})]
    assert drives.miss(run, judged) == pytest.approx(0.2, rel=1e-3)
    # What was not reached is not judged.
    assert drives.miss(run, [(9.0, 12.0, {"ahead": 9.0})]) == 0.0
