"""Plan, track and export a skinned robot on the command line; what they refuse."""

from __future__ import annotations

import json

import pytest

from drakebots.cli import Command, Form, Variant, main
from drakebots.cli.inputs import kind_of
from drakebots.results import load_result
from tests.helpers.scripts import is_picture
from tests.helpers.small_quad import planned_lift

pytestmark = pytest.mark.long


@pytest.fixture(scope="module")
def model():
    return str(planned_lift()[0])


@pytest.fixture(scope="module")
def plan():
    return str(planned_lift()[1])


def last(capsys) -> dict:
    return json.loads(capsys.readouterr().out.strip().splitlines()[-1])


def test_a_plan_cut_short_is_kept(model, tmp_path, capsys):
    """By the clock: what was reached is a result, and the exit code says so."""
    out, picture = tmp_path / "plan.nc", tmp_path / "bars.png"
    argv = ["plan", model, "--motion", "lift_single", "--more", "duration=1"]
    argv += ["--time-limit", "6", "-o", str(out), "--plot", str(picture), "--json"]
    code = main(argv)
    reported = capsys.readouterr()
    if code == 0:
        # A fast machine may be done.
        assert load_result(out).ok and is_picture(picture)
    else:
        assert "time limit" in reported.err or "cut short" in reported.err


def test_track_and_export(plan, tmp_path, capsys):
    out, page = tmp_path / "run.nc", tmp_path / "run.html"
    argv = ["track", plan, "-o", str(out), "--html", str(page), "--json"]
    assert main(argv) == 0
    facts = last(capsys)
    assert facts["verdict"] == "success" and facts["com_drift_m"] < 0.02
    assert "skin" in page.read_text()
    # A run has joints as well: it can be exported, not tracked again.
    assert main(["track", str(out)]) == 2
    assert "cannot be tracked" in capsys.readouterr().err
    board = tmp_path / "servo_map.csv"
    names = [str(j) for j in load_result(plan).data.joint.values]
    rows = "".join(f"{n},{k},x,1,90,-90,90\n" for k, n in enumerate(names))
    board.write_text(
        "joint,channel,servo,direction,zero_deg,lower_deg,upper_deg\n" + rows
    )
    table = tmp_path / "servo.csv"
    for source in (plan, str(out)):
        argv = ["export", source, "--servos", str(table), "--servo-map", str(board)]
        assert main([*argv, "--units", "us", "--json"]) == 0
        assert last(capsys) | {"servos": ""} == {
            "servos": "",
            "files": [str(table)],
        }
        assert table.read_text().startswith(f"time,ch0_{names[0]}_us,")


@pytest.mark.parametrize(
    "argv, text",
    [
        (["--motion", "gallop"], "gallop"),
        (["--motion", "lift_single", "--speed", "1"], "speed"),
        (["--motion", "walk", "--lift", "3"], "reach"),
        (["--limits", "torque=0.05"], "cannot hold the weight"),
        (["--motion", "none.csv"], "none.csv"),
        (["--alternation", "tolerance=-1"], "tolerance"),
        (["-o", "/nowhere/x.nc"], "nowhere"),
        (["--knots", "3"], "--knots"),
    ],
)
def test_bad_plans(model, capsys, argv, text):
    assert main(["plan", model, *argv]) == 2
    err = capsys.readouterr().err
    assert text in err and err.count("\n") == 1


def test_a_robot_fixed_to_the_world_is_not_planned(capsys):
    assert main(["plan", "skinned_leg", "--motion", "walk"]) == 2
    err = capsys.readouterr().err
    assert "fixed to the world" in err and "free base" in err
    assert "quaternion" not in err and err.count("\n") == 1


@pytest.mark.parametrize(
    "argv, text",
    [
        (["track", "--cycles", "0"], "cycles"),
        (["track", "--ground", "friction=-1"], "friction"),
        (["track", "--kp", "1"], "--kp"),
        (["export", "--servos", "x.csv"], "--servo-map"),
        (["export", "--servos", "x.csv", "--pulse", "9"], "--pulse"),
        (["export", "--voltages", "x.csv"], "--voltages does not apply"),
        (["export"], "--servos, --csv"),
    ],
)
def test_bad_tracks_and_exports(plan, capsys, argv, text, monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    assert main([argv[0], plan, *argv[1:]]) == 2
    err = capsys.readouterr().err
    assert text in err and err.count("\n") == 1


def test_kinds_of_files(plan, tmp_path):
    assert kind_of(plan) == "quads.plan"
    assert kind_of("plan.csv") == ""
    other = tmp_path / "x.nc"
    other.write_text("nothing")
    assert kind_of(str(other)) == ""


def test_an_output_says_nothing_of_the_model():
    """`track hamr.nc -o run.nc` is HAMR's though run.nc is a skinned robot's."""
    general, skin = (Variant(text, "", lambda parser: None, None) for text in "ab")
    words = []

    def is_skinned(word):
        words.append(word)
        return word == "run.nc"

    command = Command(
        "track", lambda: general, lambda: (Form("skinned", is_skinned, lambda: skin),)
    )
    assert command.variant(["track", "hamr.nc", "-o", "run.nc"]) is general
    assert command.variant(["track", "run.nc", "-o", "x.nc"]) is skin
    assert "x.nc" not in words
    # A switch takes no value, nor does what has its value already.
    assert command.variant(["track", "--imu", "run.nc"]) is skin
    assert command.variant(["track", "--kp=3", "run.nc"]) is skin
