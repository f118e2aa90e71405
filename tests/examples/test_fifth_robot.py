"""examples/fifth_robot: a robot registered from outside does all that ours do."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest

from drakebots.results import load_result
from tests.helpers.scripts import ROOT, is_picture, last_json

HOPPER = ROOT / "examples" / "fifth_robot" / "hopper.py"


def hopper(*words: object) -> dict:
    """Runs the example's command line; its JSON."""
    command = [sys.executable, str(HOPPER), *map(str, words), "--json"]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return last_json(done.stdout)


@pytest.fixture(scope="module")
def plan(tmp_path_factory):
    """A coarse plan of a hop."""
    path = tmp_path_factory.mktemp("hopper") / "plan.nc"
    hopper("plan", "hopper", "--height", "0.05", "--knots", "11", "-o", path)
    return path


def test_it_is_short():
    """Under 200 lines of Python, as docs/fifth_robot.md says."""
    assert len(HOPPER.read_text().splitlines()) < 200


@pytest.mark.long
def test_it_hops(tmp_path):
    files = {end: tmp_path / f"hop.{end}" for end in ("nc", "html", "png")}
    words = ["-o", files["nc"], "--html", files["html"], "--plot", files["png"]]
    facts = hopper("simulate", "hopper", "--duration", "1", *words)
    result = load_result(files["nc"])
    assert facts["kind"] == result.kind == "hopper.simulation"
    # Both feet leave the ground, and it comes down on them again.
    assert result.metrics["apex_m"] > 0.01
    assert result.data.position.values[-1, 1] > 0.2
    assert is_picture(files["png"])
    assert '<script src="http' not in files["html"].read_text()


@pytest.mark.long
def test_its_plan_is_a_hop(plan):
    result = load_result(plan)
    assert result.ok and result.kind == "hopper.plan"
    feet = result.data.foot_position.sel(axis="z").values - 0.01
    assert feet.min(axis=1).max() == pytest.approx(0.05, abs=5e-3)
    assert feet[[0, -1]] == pytest.approx(np.zeros((2, 2)), abs=1e-5)


@pytest.mark.long
def test_its_plan_executes(plan, tmp_path):
    """Within a third of the planned height under another contact model."""
    facts = hopper("track", plan, "-o", tmp_path / "run.nc")
    assert facts["verdict"] == "success"
    assert facts["apex_m"] == pytest.approx(0.05, rel=0.35)


@pytest.mark.long
def test_bad_input_is_one_line(tmp_path):
    done = subprocess.run(
        [sys.executable, str(HOPPER), "simulate", "hopper", "--duration", "-1"],
        capture_output=True,
        text=True,
    )
    assert done.returncode == 2
    assert done.stderr.count("\n") == 1 and "duration" in done.stderr


@pytest.mark.long
def test_its_options_are_its_fields():
    done = subprocess.run(
        [sys.executable, str(HOPPER), "track", "--help"], capture_output=True, text=True
    )
    assert "time to hold the last pose" in " ".join(done.stdout.split())
    assert done.returncode == 0
