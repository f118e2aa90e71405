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


# --- motion, laws and factors beside the paper ----------------------------------

MOTION, LAWS = load_script("gecko_motion"), load_script("gecko_laws")


def test_an_even_robot_has_nothing_uneven():
    """Mirror images cancel; Table 3's straight gait turns by itself."""
    ours = np.array([12.0, 9.0, 1.5])
    assert not MOTION.uneven(ours, ours * [-1, 1, -1]).any()
    table = MOTION.in_table_3(gecko(), np.radians(90), 0.0)
    expected = 5.4154 - 0.0457 * 90 - 0.0006 * 90**2
    assert table[0] == pytest.approx(expected, abs=1e-9)


@pytest.mark.long
def test_shares_of_the_actuators_foretell_gaits_held_out():
    """Three numbers fitted to 50, 70 and 90 deg; 60 and 80 deg were not used."""
    robot, _ = MOTION.fitted()
    pairs = [(q1, q2) for q1 in MOTION.HELD_OUT for q2 in MOTION.STEERING]
    wanted = MOTION.uneven_of(MOTION.in_table_3, robot, pairs)
    even, unequal = (
        np.sqrt(((MOTION.uneven_of(MOTION.by_poses, r, pairs) - wanted) ** 2).mean(0))
        for r in (gecko(), robot)
    )
    assert (unequal < 0.8 * even).all()  # rotation and left


def test_torso_first_bends_as_much_as_the_law():
    for q1 in (50, 70, 90):
        law = LAWS.references(LAWS.ROBOT, np.radians(q1), 0.0)
        other = LAWS.torso_first(law)
        assert LAWS.bending(other) == pytest.approx(LAWS.bending(law))
        np.testing.assert_allclose(other[1], LAWS.MIRROR @ other[0])
    np.testing.assert_allclose(other, law)  # at the limits there is one such gait
    short = LAWS.references(LAWS.ROBOT, np.radians(50), 0.0)
    way = [LAWS.moved(each)[0][1] for each in (short, LAWS.torso_first(short))]
    assert way[1] > 1.2 * way[0]


@pytest.mark.long
def test_a_searched_gait_keeps_to_what_the_law_takes():
    law = LAWS.references(LAWS.ROBOT, np.radians(70), 0.0)
    search = LAWS.Search(law, straight=True)
    found = search.run(1, 8)
    assert LAWS.bending(found) <= LAWS.bending(law) + 1e-6
    assert (found[:, LEGS] >= -1e-9).all()
    assert abs(found).max() <= np.radians(90) + 1e-9
    assert LAWS.moved(found)[0][1] > search.way


def test_a_factor_is_the_paper_s_where_nothing_is_changed():
    """The gait (80 deg, 0.3): the pose step turns 31 deg, Table 3 says 17."""
    facts = load_script("gecko_factors").main(["--quick"])
    row = facts["factors"][0]
    assert row["deg"] == pytest.approx(-31.0, abs=0.1)
    assert facts["table_3"]["deg"] == pytest.approx(-17.3, abs=0.1)
    limited = next(r for r in facts["factors"] if r["change"] == "1.1 bar")
    assert abs(limited["changed_deg"]) < abs(row["deg"])
