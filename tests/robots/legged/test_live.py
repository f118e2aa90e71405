"""A quadruped that is driven: by scripts, by keys in a browser, until it falls."""

from __future__ import annotations

import signal
import subprocess
import sys
from dataclasses import replace

import numpy as np
import pytest

from drakebots import InvalidInput, UnknownName, load, load_result
from drakebots.cli import main
from drakebots.formats import terrain_of
from drakebots.multibody import Blocks, Slope, Stairs, build_robot
from drakebots.robots.legged import Drive, drive
from tests.helpers.live_runs import scripted
from tests.helpers.scripts import load_script

Person, find_browser = load_script("robot_zoo.person", "Person", "find_browser")
measured = load_script("drives").velocity

AT_ONCE = replace(Drive("mini_cheetah").controller, delay=8e-3)
"""Answers act 8 ms late, whatever else the machine does: runs can be repeated."""

LINES = """(() => {
  const lines = viewer.scene_tree.find(['drake', 'horizon', '<object>']).object;
  return Array.from(lines.geometry.attributes.position.array);
})()"""


def driven(folder, text: str, **more):
    """The run of commands "time control value; ..."."""
    given = {"controller": AT_ONCE, "headless": True} | more
    given["script"] = scripted(folder, text)
    return drive(Drive("mini_cheetah", **given))


def velocity(run, begin: float, end: float) -> np.ndarray:
    """Mean velocity ahead and to the left [m/s] and turning [rad/s] of a while."""
    return np.array([*measured(run, begin, end).values()])


@pytest.mark.long
def test_it_goes_as_fast_as_it_is_told(tmp_path):
    """Within 5 % after a second, ahead, to the side and turning; the other
    velocities stay small."""
    text = "0 ahead 0.5; 2 ahead 0; 2 left 0.2; 4 left 0; 4 turn 0.8"
    run = driven(tmp_path, text, duration=6.0)
    assert run.ok and run.metrics["falls"] == 0, run.message
    for begin, wanted in ((1, (0.5, 0, 0)), (3, (0, 0.2, 0)), (5, (0, 0, 0.8))):
        found, k = velocity(run, begin, begin + 0.95), np.argmax(wanted)
        assert found[k] == pytest.approx(max(wanted), rel=0.05)
        assert np.abs(np.delete(found, k)).max() < 0.1


@pytest.mark.long
def test_it_crawls_on_three_feet(tmp_path):
    """One foot after the other, as fast as it is told, and no faster than its legs are
    long: at most a third of the largest speed. (From 0.3 m/s on a foot leaves the
    ground before the last has landed.)"""
    run = driven(tmp_path, "0 gait 3; 0 ahead 0.2; 2 ahead 1", duration=3.5)
    assert run.ok and run.metrics["falls"] == 0, run.message
    assert velocity(run, 1, 2)[0] == pytest.approx(0.2, rel=0.1)
    assert velocity(run, 2.5, 3.5)[0] == pytest.approx(0.35, rel=0.2)
    robot = build_robot(load("mini_cheetah"), base="euler", time_step=0)
    context, heights = robot.plant.CreateDefaultContext(), []
    for q in run.data.position.values:
        robot.plant.SetPositions(context, q)
        heights.append(robot.feet_positions(context)[:, 2])
    radii = [foot.radius for foot in robot.model.feet]
    swings = (np.array(heights) - radii > 0.01)[100:200]
    assert (swings.sum(axis=1) <= 1).mean() > 0.95
    assert swings.mean(axis=0) == pytest.approx(0.25, abs=0.1)


@pytest.mark.long
@pytest.mark.parametrize("delay", [0.03, 0.06])
def test_plans_that_come_late_do_not_throw_it(tmp_path, delay):
    """A solve takes 12 ms on a slow processor, and several times that beside other
    work: then it goes slower than it is told, and stands."""
    late = replace(AT_ONCE, delay=delay)
    text = "0 ahead 0.5; 1.5 ahead 0"
    run = driven(tmp_path, text, duration=2.0, controller=late)
    assert run.ok and run.metrics["falls"] == 0, run.message
    assert 0.2 < velocity(run, 0.75, 1.45)[0] < 0.6


@pytest.mark.long
@pytest.mark.parametrize(
    "terrain", [Slope(angle=np.radians(-8)), Stairs(rise=0.03, start=0.3)]
)
def test_it_is_driven_up(tmp_path, terrain):
    """Its base is above the ground as on a plane, on a slope as steep as it is from the
    start on; the record has the ground."""
    run = driven(tmp_path, "0 ahead 0.4", duration=2.5, terrain=terrain)
    assert run.ok and run.metrics["falls"] == 0, run.message
    x, y, z = run.data.base_position.values[-1]
    assert x > 0.5 and terrain.heights(x, y) > 0.055
    assert z - terrain.heights(x, y) == pytest.approx(0.3, abs=0.04)
    steep = getattr(terrain, "angle", 0.0)
    pitch = run.data.base_rpy.values[:, 1]
    assert pitch[0] == pytest.approx(steep, abs=1e-3)
    if steep:
        assert pitch[50:] == pytest.approx(steep, abs=0.04)
    assert terrain_of(run) == terrain


@pytest.mark.long
def test_a_run_is_replayed_to_the_bit(tmp_path):
    """With a push, and on ground that changes under a robot that is loaded."""
    changes = "0.2 payload 3; 0.2 friction 0.3; 0.2 height -0.04"
    pushes = "0.1 push left 1; 0.3 push left 1"
    first = driven(tmp_path, f"{pushes}; {changes}", duration=0.6)
    path = first.save(tmp_path / "run.nc")
    assert first.provenance["options"]["controller"]["delay"] == AT_ONCE.delay
    again = drive(
        Drive(
            "mini_cheetah", headless=True, replay=path, duration=0.6, controller=AT_ONCE
        )
    )
    names = ["position", "velocity", "torque", "push", "command_time"]
    assert first.data[names].equals(again.data[names])
    mass = load("mini_cheetah").summary.mass
    impulse = 0.1 * np.linalg.norm(first.data.push.values, axis=-1)
    found = [impulse[first.data.time < 0.3].max(), impulse[first.data.time > 0.3].max()]
    assert found == pytest.approx([0.4 * mass, 0.4 * (mass + 3)])


@pytest.mark.long
def test_the_controller_is_not_told_of_ice_and_a_payload(tmp_path):
    """On ice a push of 0.4 m/s makes it slide as far as it goes in that time; a third
    of its own weight on its back lets it sink, as servos do."""
    text = "0 gait 0; 0 friction 0; 0.1 push left 1; 0.5 friction 0.7"
    slid = driven(tmp_path, text, duration=0.6).data.base_position
    assert float(slid.sel(time=0.5, method="nearest")[1]) > 0.1
    held = driven(tmp_path, "0.1 payload 3", duration=0.6).data.base_position
    assert float(held[-1, 2] - held[5, 2]) < -1.5e-3


@pytest.mark.long
def test_it_falls_and_is_put_on_its_feet(tmp_path):
    """Two pushes of 1 m/s from one side while it must stand; then a restart."""
    hard = "0 gait 0; 0 strength 1"
    pushes = "; ".join(f"0.{k} push right 1" for k in range(1, 5))
    fallen = driven(tmp_path, f"{hard}; {pushes}", duration=2.0)
    assert fallen.metrics["falls"] == 1 and not fallen.ok
    assert "fell" in fallen.message
    again = driven(tmp_path, f"{hard}; {pushes}; 2 restart 1", duration=2.5)
    assert again.metrics["falls"] == 1 and again.ok, again.message
    assert again.data.base_position.values[-1, 2] > 0.25


@pytest.mark.long
def test_a_restart_puts_it_on_other_ground(tmp_path):
    """Up 8 degrees from a restart on, where it starts slowly, and then to blocks; it
    still carries a third of its weight, which its motors feel."""
    slope = "0 payload 3; 0 terrain 1; 0.3 restart 1; 0.4 ahead 0.4; 1.5 terrain 3"
    run = driven(tmp_path, f"{slope}; 1.5 restart 1", duration=1.9)
    assert run.ok and run.metrics["falls"] == 0, run.message
    data = run.data.sel(time=slice(1.3, 1.45))
    x, _, z = data.base_position.values[-1]
    assert x > 0.4 * (1.45 - 0.4) / 2  # half of what it is told; 0.24 to 0.25 measured
    assert z - x * np.tan(np.radians(8)) == pytest.approx(0.3, abs=0.02)
    last = run.data.sel(time=slice(1.8, 1.9))
    assert np.abs(last.base_position.values[:, 0]).max() < 0.05
    assert isinstance(terrain_of(run), Blocks)
    first = run.data.sel(time=slice(0.2, 0.3))
    before, after = (float(np.abs(one.torque).mean()) for one in (first, last))
    assert after == pytest.approx(before, rel=0.1)


def test_what_cannot_be_controlled_is_posed(tmp_path, capsys):
    inertia = '<inertia ixx="1" iyy="1" izz="1" ixy="0" ixz="0" iyz="0"/>'
    link = f'<link name="%s"><inertial><mass value="1"/>{inertia}</inertial></link>'
    joint = (
        '<joint name="elbow" type="revolute"><parent link="a"/><child link="b"/>'
        '<axis xyz="0 1 0"/><limit lower="-1" upper="1" effort="1" velocity="1"/>'
        "</joint>"
    )
    arm = tmp_path / "arm.urdf"
    arm.write_text(f'<robot name="arm">{link % "a"}{link % "b"}{joint}</robot>')
    assert main(["live", str(arm), "--headless", "--duration", "0.1"]) == 0
    said = capsys.readouterr()
    assert "arm has no feet to stand on" in said.err.replace("\n", " ")
    assert "kind: live.pose" in said.out


def test_bad_commands(tmp_path):
    with pytest.raises(UnknownName, match="unknown control 'aheed'"):
        driven(tmp_path, "0 aheed 1")
    with pytest.raises(InvalidInput, match="ahead = 5 is not within"):
        driven(tmp_path, "0 ahead 5")
    with pytest.raises(InvalidInput, match="terrain: mini_cheetah is not driven"):
        driven(tmp_path, "0 ahead 0", terrain=Stairs(rise=0.03), joints="posed")


@pytest.mark.long
def test_keys_of_a_page(tmp_path):
    """W five times is half a metre a second ahead: the body in the scene comes to move
    along x and stands on its feet; Ctrl-C ends both processes and keeps the record."""
    if find_browser() is None:
        pytest.skip("needs a browser")
    record = tmp_path / "run.nc"
    words = ["-m", "drakebots", "live", "mini_cheetah", "-o", str(record)]
    process = subprocess.Popen(
        [sys.executable, *words], stdout=subprocess.PIPE, text=True
    )
    try:
        url = process.stdout.readline().split()[0]
        with Person(url, (200, 150)) as person:
            person.wait("'real-time factor' in viewer.gui_controllers")
            body = "drake/visualizer/mini_cheetah/body"
            start = person.pose(body)
            person.press("w", 5)
            assert person.slid("ahead") == pytest.approx(0.5)
            find = (
                "viewer.scene_tree.find(['drake','visualizer','mini_cheetah','body'])"
            )
            person.wait(f"{find}.object.matrix.elements[12] > {start[12] + 0.1}", 120)
            now = person.pose(body)
            assert now[14] == pytest.approx(start[14], abs=0.03)
            # From knot to knot of the last plan, ends beside starts: base, then feet.
            ends = np.reshape(person.value(LINES), (-1, 5, 2, 3))
            assert 0.2 < ends[-1, 0, 1, 0] - ends[0, 0, 0, 0] < 0.7
            assert ends[:, 0, :, 2] == pytest.approx(start[14], abs=0.05)
            assert np.ptp(ends[:, 1:, :, 2], axis=(0, 2)).min() > 0.02
            assert -0.01 < ends[:, 1:, :, 2].min() < 0.02
            person.press("f")
            person.wait(f"{person.control('ahead')}.getValue() == 0")
        process.send_signal(signal.SIGINT)
        assert process.wait(timeout=30) == 130
    finally:
        process.kill()
        process.wait()
    run = load_result(record)
    assert {"ahead", "stop"} <= set(run.data.command_name.values)
    assert run.metrics["falls"] == 0
