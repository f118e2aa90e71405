"""The gecko's scripts: the paper's figures and tables, the bench, the model's files."""

from __future__ import annotations

import numpy as np
import pytest

from drakebots.core.errors import InvalidInput, UnknownName
from drakebots.robots.gecko.model import LEGS, gecko
from tests.helpers.scripts import is_picture, last_json, load_script

SCRIPT = load_script("gecko_figures")


@pytest.mark.slow
def test_bench_gecko(capsys):
    """The last line is one JSON object; SLSQP is slower and never better."""
    result = load_script("gecko").main(["--quick"])
    last = last_json(capsys.readouterr().out)
    assert last == result
    assert last["targets_reached_of_1000"]["value"] == 1000
    assert np.isfinite(last["pose_step_vs_slsqp_ratio"]["value"])


@pytest.mark.long
def test_gecko_course(capsys, tmp_path):
    """All four targets, in about as many steps as the paper's robot."""
    picture = tmp_path / "course.png"
    found = load_script("gecko_course").main(["--quick", "--plot", str(picture)])
    (row,) = found["courses"]
    assert row["targets_reached"] == 4
    assert 30 < row["half_cycles"] < 60
    assert is_picture(picture)


def test_gecko_figures(capsys, tmp_path):
    """Fig. 10's minima, with the sum as printed."""
    facts = load_script("gecko_figures").main(["--quick", "-o", str(tmp_path)])
    last_json(capsys.readouterr().out)
    back = facts["fig10"]["B, paper"]
    assert (back["q1_deg"], back["q2"]) == (50, -0.5)
    assert back["d_cm"] == pytest.approx(46.2, abs=0.1)
    assert facts["fig10"]["C, paper"]["q2"] == 0.5
    assert is_picture(tmp_path / "gecko_fig10.png")


def test_held_feet_turn_only_where_slsqp_stops_early():
    """Fig. 6 in both half cycles: at their ends both solvers agree, without a turn."""
    rows = SCRIPT.stopped_early((1, 500))
    for first, last, ours in (rows[:3], rows[3:]):
        assert np.abs(first["held_feet_turn_deg"]).max() > 5
        assert first["objective"] > 1.5 * ours["objective"]
        assert last["objective"] == pytest.approx(ours["objective"], rel=1e-4)
        for row in (last, ours):
            assert np.abs(row["held_feet_turn_deg"]).max() < 0.05


def test_studies_and_details_are_drawn(tmp_path):
    """c1 = 1 turns most; settled gaits come further than those begun at rest."""
    turns = [row["turn_deg"] for row in SCRIPT.leg_bends((0.5, 1.0, 1.5))]
    assert turns[1] > max(turns[0], turns[2])
    # Six cycles of 11.569 cm each at 80 deg.
    rows = {(r["robot"], round(r["q1_deg"])): r for r in SCRIPT.twelve_poses()}
    assert rows["small", 80]["settled_cm"] == pytest.approx(6 * 11.569, abs=0.01)
    assert all(row["from_rest_cm"] < row["settled_cm"] for row in rows.values())
    assert is_picture(SCRIPT.plot_detail(tmp_path / "detail.png"))
    assert is_picture(SCRIPT.plot_prediction(tmp_path / "prediction.png"))


@pytest.mark.long
def test_gecko_climb(capsys):
    """Up 84 degrees with a silicone of 1 MPa, down with one of 0.3."""
    rows = load_script("gecko_climb").main(["--quick"])["climbs"]
    assert rows[0]["verdict"] == "success"
    assert rows[0]["forward_cm_per_cycle"] > 5
    assert rows[1]["verdict"] == "failed"


def test_make_gecko_model(capsys):
    """The model's files are those that its parameters give."""
    assert not load_script("make_gecko_model").main(["--check"])


def test_cycle_as_in_figure_6():
    """Held feet hardly turn; released legs jump to the law, from far off it."""
    cycle = SCRIPT.cycle_phases()
    off = np.degrees(cycle.off_law[:, LEGS])
    assert np.degrees(np.abs(cycle.turn)).max() < 0.01
    # Released: FL and RR in 1b, FR and RL in 2b.
    assert np.abs(off[1, [0, 3]]).max() < 1e-3
    assert np.abs(off[2, [0, 3]]).max() < 1e-3
    assert np.abs(off[3, [1, 2]]).max() < 1e-3
    # "The bending angle of the front left and the rear right leg differs
    # significantly from the reference" in 1a.
    assert np.abs(off[0, [0, 3]]).min() > 30
    assert np.abs(off[0, [1, 2]]).max() < 5
    # Feet that hold stay, and the cycle is settled.
    for k, held in ((0, cycle.moving[0]), (2, cycle.moving[1])):
        moved = cycle.poses[k + 2].feet - cycle.poses[k].feet
        assert np.abs(moved[held]).max() < 1e-8
    assert np.abs(cycle.alpha[4] - cycle.alpha[0]).max() < np.radians(1)
    row = cycle.table()[1]
    assert row["foot"] == "FR" and row["off_law_2a_deg"] == pytest.approx(off[2, 1])


def test_stiff_limbs_turn_their_feet():
    """With the weights of Fig. 7A limbs do not stretch, so feet have to turn."""
    cycle = SCRIPT.cycle_phases(robot=gecko())
    assert np.degrees(np.abs(cycle.turn)).max() > 3


@pytest.mark.parametrize("bad", [{"q1": 4.0}, {"q2": 2.0}, {"settle": -1}])
def test_cycle_refuses(bad):
    with pytest.raises(InvalidInput):
        SCRIPT.cycle_phases(**bad)


def test_figures_5_and_6_are_written(tmp_path):
    """Files are pictures; wrong endings and sums are refused."""
    assert is_picture(SCRIPT.plot_gait_law(tmp_path / "law.png"))
    assert is_picture(SCRIPT.plot_cycle(tmp_path / "cycle.png"))
    with pytest.raises(InvalidInput, match="ends in"):
        SCRIPT.plot_gait_law(tmp_path / "law")
    with pytest.raises(UnknownName):
        SCRIPT.plot_distance(tmp_path / "a.png", sum="half")
