"""Pages of live runs that are closed and ended, and runs that are watched."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from drakebots import load_result
from drakebots.cli import main
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
