"""Simulations give what they have reached at any moment, for runs that are killed."""

from __future__ import annotations

from pathlib import Path

import pytest

from drakebots import load_result, simulate
from drakebots.core import run
from drakebots.core.run import Verdict, keeping
from drakebots.results import check_layout
from drakebots.robots import gecko, hamr, legged, voxels
from drakebots.skin import SkinSimulation

EXAMPLES = Path(__file__).parents[2] / "examples"
PROBLEMS = {
    "hamr": lambda: hamr.Simulation(frequency=100, cycles=1),
    "legged": lambda: legged.Simulation(EXAMPLES / "my_robot.urdf", duration=0.02),
    "gecko": lambda: gecko.Simulation(engine=gecko.Drake(), time_limit=0.5),
    "voxels": lambda: voxels.Simulation(cycles=1, time_limit=0.5),
    "skin": lambda: SkinSimulation("skinned_leg", duration=0.02),
}


@pytest.mark.parametrize("name", PROBLEMS)
def test_a_run_gives_what_it_has_reached(name, tmp_path, monkeypatch):
    monkeypatch.setattr(run, "KEEP_PERIOD", 0.0)
    kept = []

    def save(result):
        kept.append(load_result(result.save(tmp_path / "x.nc")))
        monkeypatch.setattr(run, "KEEP_PERIOD", 1e9)  # once, after the first step

    with keeping(save):
        result = simulate(PROBLEMS[name]())
    (first,) = kept
    assert first.verdict is Verdict.INTERRUPTED and "killed" in first.message
    assert first.kind == result.kind
    check_layout(first)
    assert set(first.data.data_vars) <= set(result.data.data_vars)
    times = first.data.time.values
    assert (times == result.data.time.values[: len(times)]).all()
    assert 0 < len(times) <= len(result.data.time)
