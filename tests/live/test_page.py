"""Pages of live runs that are closed and ended, and runs that are watched."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from pydrake.math import RigidTransform

from drakebots import load, load_result
from drakebots.cli import main
from drakebots.fem.mesh import box_mesh
from drakebots.live import RobotPage
from drakebots.multibody import Flat, Slope, Stairs, build_robot
from drakebots.view import ROOT
from drakebots.view.skin import scale_corners
from tests.helpers.scripts import load_script

Person, find_browser = load_script("robot_zoo.person", "Person", "find_browser")

SMALL = (200, 150)


@pytest.fixture
def page(tmp_path, request):
    """The address of a page, its process, and its record."""
    if find_browser() is None:
        pytest.skip("needs a browser")
    record = tmp_path / "run.nc"
    words = ["-m", "drakebots", "live", *request.param, "-o", str(record)]
    process = subprocess.Popen(
        [sys.executable, *words], stdout=subprocess.PIPE, text=True
    )
    yield process.stdout.readline().split()[0], process, record
    process.kill()
    process.wait()


def children(process) -> list[str]:
    """Processes that a process began, while they last."""
    task = Path(f"/proc/{process.pid}/task/{process.pid}/children")
    return task.read_text().split()


def ended(process, record):
    """The record of a run after Ctrl-C, which ends all that it began."""
    below = children(process)
    process.send_signal(signal.SIGINT)
    assert process.wait(timeout=30) == 130
    assert not [pid for pid in below if os.path.exists(f"/proc/{pid}")]
    return load_result(record)


@pytest.mark.long
@pytest.mark.parametrize("page", [["minitaur", "--joints", "posed"]], indirect=True)
def test_a_browser_that_is_closed_and_opened_again(page):
    """The run goes on without it; the next one shows what the first one set."""
    url, process, record = page
    with Person(url, SMALL) as one:
        one.slide("FL_back ", -0.9)
        assert one.slid("FL_back ") == pytest.approx(-0.9, abs=0.01)
    with Person(url, SMALL) as other:
        other.wait(f"Math.abs({other.control('FL_back ')}.getValue() + 0.9) < 0.01")
    run = ended(process, record)
    assert list(run.data.command_name.values) == ["FL_back"]


@pytest.mark.long
@pytest.mark.parametrize("page", [["mini_cheetah"]], indirect=True)
def test_ctrl_c_ends_the_process_of_the_controller(page):
    _, process, record = page
    assert len(children(process)) == 1
    run = ended(process, record)
    assert run.kind == "legged.live" and run.data.sizes["time"] >= 1


@pytest.mark.parametrize(
    "words",
    [
        ["simulate", "minitaur", "--duration", "0.1"],
        ["simulate", "voxel", "--cycles", "1", "--pose-time", "0.03"],
        pytest.param(
            ["mpc", "monopod", "--duration", "0.2", "--controller", "delay=8ms"],
            marks=pytest.mark.long,
        ),
        pytest.param(
            ["simulate", "skinned-leg", "--duration", "60ms"], marks=pytest.mark.long
        ),
    ],
)
def test_watching_a_run_changes_nothing(words, tmp_path, capsys):
    paths = tmp_path / "a.nc", tmp_path / "b.nc"
    code = main([*words, "-o", str(paths[0])])
    assert main([*words, "--live", "-o", str(paths[1])]) == code
    assert "(Ctrl-C ends)" in capsys.readouterr().out
    plain, watched = (load_result(path).data for path in paths)
    own = [n for n in plain.data_vars if "seconds" not in n]  # of the clock
    assert plain[own].equals(watched[own])
    assert np.isfinite(plain[own[0]].values).all()


@pytest.mark.long
def test_the_view_follows_a_robot_up_its_ground():
    """The world is moved so that the ground under the robot stays where it was."""
    page = RobotPage(load("mini_cheetah"), None, terrain=Stairs(rise=0.03))
    assert page.scene.meshcat.HasPath(f"{ROOT}/terrain/1")
    robot = build_robot(load("mini_cheetah"), base="euler", time_step=0)
    context = robot.plant.CreateDefaultContext()
    robot.set_base_pose(context, RigidTransform([0.6, 0.0, 0.33]))
    page.show(robot, context)

    def transform(path: str) -> np.ndarray:
        # Sixteen big-endian numbers, each after a byte that says so, by columns.
        packed = page.scene.meshcat._GetPackedTransform(path)[-16 * 9 :]
        return np.frombuffer(packed, [("", "u1"), ("x", ">f8")])["x"].reshape(4, 4).T

    X, below = transform(ROOT), np.add(page.scene.ground, [0.6, 0.0, 0.03])
    assert X[:3, :3] @ below + X[:3, 3] == pytest.approx(np.zeros(3), abs=1e-9)
    # The floor at the foot of the stairs is as much lower.
    fallen = transform("/ground")[2, 3] + 5e-3
    assert fallen == pytest.approx(-0.03 * page.scene.scale)
    page.lay(Flat())
    assert not page.scene.meshcat.HasPath(f"{ROOT}/terrain")
    assert transform("/ground")[2, 3] == pytest.approx(-5e-3)
    lines = page._lines
    page.show(robot, context)
    assert page.scene.meshcat.HasPath(lines)
    page.lay(Slope(0.1))
    assert not page.scene.meshcat.HasPath(lines)
    assert transform("/ground")[2, 0] == pytest.approx(-np.sin(0.1))


def test_a_watched_run_is_shown_on_its_ground(monkeypatch):
    """A robot that climbs is not to be drawn over a flat floor."""
    lay, laid = RobotPage.lay, []
    monkeypatch.setattr(
        RobotPage, "lay", lambda *given: (laid.append(given), lay(*given))
    )
    words = ["simulate", "minitaur", "--duration", "20ms", "--live"]
    assert main([*words, "--terrain", "slope:angle=5deg"]) == 0
    ((page, terrain),) = laid
    assert terrain == Slope(np.radians(5))
    assert not page.scene.meshcat.HasPath("/drake/lines_every_100_mm")


def test_the_scale_of_a_skin_is_in_the_picture(monkeypatch):
    """It faces the camera, which sees all of it."""
    looked = []
    page, mesh = (
        RobotPage(load("skinned_leg"), None),
        box_mesh((0.1, 0.1, 0.3), (1, 1, 1)),
    )
    page.show_skin(mesh, mesh.vertices, np.ones(len(mesh.vertices)))
    monkeypatch.setattr(
        type(page.scene), "look_at_points", lambda _, *how: looked.append(how)
    )
    page.look()
    ((points, direction),), corners = looked, scale_corners(page.scene)
    (side, up), normal = np.diff(corners[:3], axis=0), np.array(direction)
    assert side @ normal == pytest.approx(0, abs=1e-9) == up @ np.cross(up, normal)
    assert np.linalg.norm(up) / np.linalg.norm(side) == pytest.approx(2.5)
    assert all(np.isclose(points, corner).all(axis=1).any() for corner in corners)
