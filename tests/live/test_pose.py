"""Models posed by hand: loops stay closed, a page is operated as a person would."""

from __future__ import annotations

import signal
import subprocess
import sys

import numpy as np
import pytest

from drakebots import InvalidInput, load, load_result
from drakebots.cli import main
from drakebots.live import Hand, Live, joint_slider, pose_by_hand
from tests.helpers.scripts import load_script

Person, find_browser = load_script("robot_zoo.person", "Person", "find_browser")


SMALL = (200, 150)
"""Two pages are drawn by the processor, which tests share."""


@pytest.fixture(scope="module")
def five_bars():
    return load("minitaur")


def positions(hand) -> dict[str, float]:
    names = [joint.name() for joint in hand.stance.joints]
    return dict(zip(names, hand.stance.positions()))


def number(hand, name: str) -> int:
    return [joint.name() for joint in hand.stance.joints].index(name)


def test_a_dragged_motor_turns_its_leg_and_nothing_else(five_bars):
    """The other motor of its five bars stays, both knees close the loop, and the other
    legs do not move."""
    hand = Hand(five_bars)
    before = positions(hand)
    target = before["FL_front"] + 0.4
    assert hand.move(number(hand, "FL_front"), target) == pytest.approx(target)
    after = positions(hand)
    moved = {name for name in after if abs(after[name] - before[name]) > 1e-9}
    assert moved <= {"FL_front", "FL_back", "FL_front_knee", "FL_back_knee"}
    assert abs(after["FL_back"] - before["FL_back"]) < 0.02
    assert np.abs(hand.stance.loop_rows()).max() < 1e-8
    assert np.abs(hand.stance.foot_heights()).min() < 1e-12


@pytest.mark.parametrize("name", ["minitaur", "hamr"])
def test_loops_stay_closed_wherever_one_drags(name):
    hand, random = Hand(load(name)), np.random.default_rng(0)
    stance = hand.stance
    for k in random.choice(hand.joints, 10):
        slider = joint_slider(stance, k)
        value = random.uniform(slider.low, slider.high)
        assert hand.move(k, value) == stance.positions()[k]
        assert np.abs(stance.loop_rows()).max() < 1e-7 * stance.size
        inside = stance.positions()
        assert (inside > stance.lower - 1e-9).all()
        assert (inside < stance.upper + 1e-9).all()


def test_a_loop_that_cannot_be_closed_stops_the_joint():
    """A flexure of HAMR's goes as far as the travel of its actuator allows."""
    hand = Hand(load("hamr"))
    stance, k = hand.stance, number(hand, "FRql1")
    came = hand.move(k, 1.0)
    assert 0 < came < 0.9
    again = hand.move(k, 1.0)
    assert again == pytest.approx(came, abs=1e-2)
    assert np.abs(stance.loop_rows()).max() < 1e-7 * stance.size


def test_a_script_and_its_replay(five_bars, tmp_path):
    script = tmp_path / "c.csv"
    script.write_text("time,control,value\n0.1,FL_back,-0.7\n200ms, FR_back, -0.6\n")
    words = ["live", "minitaur", "--joints", "posed", "--headless"]
    first, second = str(tmp_path / "a.nc"), str(tmp_path / "b.nc")
    long = ["--duration", "1.5"]
    assert main([*words, "--script", str(script), *long, "-o", first]) == 0
    assert main([*words, "--replay", first, "-o", second]) == 0
    run, again = load_result(first), load_result(second)
    assert run.data.equals(again.data)
    assert again.data.time[-1] == pytest.approx(1.5)
    q = run.data.position.sel(coordinate="minitaur_FL_back").values
    assert q[0] != -0.7 and q[-1] == pytest.approx(-0.7)
    assert list(run.data.command_name.values) == ["FL_back", "FR_back"]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("t,x\n", "first line is not time,control,value"),
        ("time,control,value\n1,FL_back\n", "line 2: needs time, control, value"),
        ("time,control,value\n-1,FL_back,0\n", "line 2 must be >= 0 s"),
        ("time,control,value\n1,FL_back,x\n", "line 2: value"),
        ("time,control,value\n1,FL_bakc,0\n", "unknown control 'FL_bakc'"),
        ("time,control,value\n1,FL_back,9\n", "FL_back = 9 is not within"),
    ],
)
def test_bad_scripts(text, said, tmp_path, capsys):
    script = tmp_path / "c.csv"
    script.write_text(text)
    assert (
        main(
            [
                "live",
                "minitaur",
                "--joints",
                "posed",
                "--headless",
                "--script",
                str(script),
            ]
        )
        == 2
    )
    assert said in capsys.readouterr().err.replace("\n", " ")


def test_bad_options(five_bars, tmp_path, capsys):
    with pytest.raises(InvalidInput, match="not both"):
        Live(script=tmp_path / "c.csv", replay=tmp_path / "r.nc")
    with pytest.raises(InvalidInput, match="nothing ends it"):
        Live(headless=True)
    run = pose_by_hand(Live(headless=True, duration=0.1), five_bars)
    assert run.ok and run.metrics["commands"] == 0
    assert main(["live", "minitaur", "--headless", "--duration", "-1"]) == 2


@pytest.fixture
def page(tmp_path):
    """A page of `drakebots live minitaur`: its address, process and record."""
    if find_browser() is None:
        pytest.skip("needs a browser")
    record = tmp_path / "run.nc"
    words = [sys.executable, "-m", "drakebots", "live", "minitaur"]
    words += ["--joints", "posed", "-o", str(record)]
    process = subprocess.Popen(words, stdout=subprocess.PIPE, text=True)
    yield process.stdout.readline().split()[0], process, record
    process.kill()
    process.wait()


@pytest.mark.long
def test_sliders_of_a_page(page):
    """Two browsers; a slider of one moves the leg in both, and its knee follows."""
    url, process, record = page
    link = "drake/visualizer/minitaur/FL_front_upper"
    with Person(url, SMALL) as one, Person(url, SMALL) as other:
        for person in (one, other):
            person.wait("Object.keys(viewer.gui_controllers).length == 17")
        before, knee = other.pose(link), other.slid("FL_front_knee")
        target = one.slid("FL_front ") + 0.3
        one.slide("FL_front ", target)
        other.wait(f"Math.abs({other.control('FL_front ')}.getValue()-{target})<0.01")
        other.wait(f"{other.control('FL_front_knee')}.getValue() != {knee}")
        other.wait_moved(link, before, 0.1)
    process.send_signal(signal.SIGINT)
    assert process.wait(timeout=20) == 130
    run = load_result(record)
    assert "FL_front" in run.data.command_name.values
    assert np.nanmax(run.data.loop_gap.values) < 1e-8


@pytest.mark.long
def test_a_port_that_is_taken(page, capsys):
    port = page[0].rpartition(":")[2]
    assert main(["live", "minitaur", "--port", port]) == 2
    assert f"port {port} is taken" in capsys.readouterr().err
