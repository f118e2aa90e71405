"""The script that measures what skins take from the motors."""

from __future__ import annotations

import json

import pytest

from tests.helpers.scripts import load_script


@pytest.fixture(scope="module")
def script():
    return load_script("quad_resistance")


@pytest.mark.long
def test_small_turns_agree_with_the_slope(script, capsys):
    result = script.main(["beetle", "--joints", "FL_knee", "--angles", "1"])
    out = capsys.readouterr().out.strip().splitlines()
    assert json.loads(out[-1]) == result
    (row,) = result["beetle"]
    assert row["joint"] == "FL_knee"
    assert row["limit_N_m"] == pytest.approx(1.96)
    torques = row["torques_N_m"]
    assert torques["-1"] < 0 < torques["+1"]
    mean = (torques["+1"] - torques["-1"]) / 2
    assert mean == pytest.approx(row["slope_N_m"] / script.SLOPE, rel=5e-3)
    assert any(line.startswith("| FL_knee | 1.96 |") for line in out)


def test_a_turn_without_equilibrium_is_said_so(script, monkeypatch):
    """The larger angle fails: the smaller one's torque stays."""

    def refuses(robot, joint, angles):
        if len(angles) > 1:
            raise script.NoSolution("no equilibrium")
        return type("R", (), {"torques": 3.0 * angles})

    monkeypatch.setattr(script, "joint_resistance", refuses)
    torques = script.both_directions(None, "knee", [10.0, 20.0])
    assert torques["+20"] is None and torques["-20"] is None
    assert torques["+10"] == -torques["-10"] > 0
    row = {"joint": "knee", "limit_N_m": 1, "slope_N_m": 1, "torques_N_m": torques}
    assert "none found" in script.table([row], [10.0, 20.0])[-1]
