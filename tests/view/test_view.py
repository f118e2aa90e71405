"""The exported page shows the robot and plays its motion."""

from __future__ import annotations

import json
import re
from dataclasses import replace

import numpy as np
import pytest

from drakebots import record
from drakebots.core.errors import InvalidInput
from drakebots.robots.hamr import Simulation, simulate
from drakebots.view import ROOT
from drakebots.view.motion import round_distance
from tests.helpers.scripts import load_script

find_browser, run_browser, screenshot = load_script(
    "robot_zoo.browser", "find_browser", "run_browser", "screenshot"
)


@pytest.fixture(scope="module")
def result():
    return simulate(Simulation(cycles=1))


@pytest.fixture(scope="module")
def scene(result):
    return record(result)


def test_scene_holds_robot_path_and_contacts(scene):
    """Chassis, legs, feet marks, path and ground are in the scene."""
    for path in ("visualizer/hamr/Chassis", "visualizer/hamr/FLL4", "path"):
        assert scene.meshcat.HasPath(f"{ROOT}/{path}")
    for leg in ("FL", "RL", "FR", "RR"):
        assert scene.meshcat.HasPath(f"{ROOT}/contact/{leg}")
    assert scene.meshcat.HasPath("/ground")


def test_page_is_self_contained(scene, tmp_path):
    """One file, with the library in it, below 20 MB."""
    path = scene.save(tmp_path / "run.html")
    text = path.read_text()
    assert 1e6 < len(text) < 2e7
    assert not re.findall(r'<script[^>]+src="http', text)
    assert [p.name for p in tmp_path.iterdir()] == ["run.html"]


needs_browser = pytest.mark.skipif(
    find_browser() is None, reason="no Chromium on this machine"
)


@pytest.mark.slow
@needs_browser
def test_browser_has_scene_and_animation(scene, tmp_path):
    """In headless Chromium: the scene tree, the animation, and a motion in it.

    The page is asked, after loading, for its tree, for the length of its
    animation, and for where the chassis is at the start and at the end.
    """
    probe = """<script>
    setTimeout(function () {
      const find = (p) => viewer.scene_tree.find(p);
      const body = find(["drake", "visualizer", "hamr", "Chassis"]).object;
      const animator = viewer.animator;
      const at = (t) => { animator.seek(t); body.updateMatrix();
                          return body.position.x; };
      const note = document.createElement("pre");
      note.id = "probe";
      note.textContent = "PROBE " + JSON.stringify({
        legs: ["FLL4", "RLL4", "FRL4", "RRL4"].filter(
          (leg) => find(["drake", "visualizer", "hamr", leg])
                   .object.children.length > 0).length,
        duration: animator.duration,
        travel: at(animator.duration) - at(0),
        said: (viewer.render(), document.getElementById("caption").innerText)});
      document.body.appendChild(note);
    }, 1500);
    </script></body>"""
    page = tmp_path / "probe.html"
    page.write_text(scene.html().replace("</body>", probe, 1))
    dom = run_browser(page, "--virtual-time-budget=6000", "--dump-dom")
    match = re.search(r"PROBE (\{.*?\})", dom)
    assert match, "the probe wrote nothing"
    seen = json.loads(match.group(1))
    assert seen["legs"] == 4
    assert seen["duration"] > 1.0
    assert "a foot that carries load" in seen["said"]
    assert re.search(r"t = 0\.\d+ s, [\d.]+ times slower", seen["said"]), seen
    # The chassis walked some 11 mm forward in the ramp and one cycle.
    assert 0.005 < seen["travel"] < 0.03


@pytest.mark.long
@needs_browser
def test_browser_draws_the_robot(scene):
    """The picture has the green board, dark legs, and a light ground."""
    pixels = screenshot(scene.html(), (450, 300), milliseconds=600)
    green = (pixels[..., 1] > 1.5 * pixels[..., 0]) & (
        pixels[..., 1] > 1.5 * pixels[..., 2]
    )
    assert green.sum() > 30
    assert (pixels.max(axis=-1) < 0.25).sum() > 60
    assert np.median(pixels) > 0.5


def test_bad_requests(result):
    """A speed that is none, and a result of another model."""
    with pytest.raises(InvalidInput, match="slow"):
        record(result, slow=float("nan"))
    names = [f"x{i}" for i in range(result.data.sizes["coordinate"])]
    other = replace(result, data=result.data.assign_coords(coordinate=names))
    with pytest.raises(InvalidInput, match="coordinate"):
        record(other)


@pytest.mark.parametrize(
    ("length", "expected"), [(0.016, 0.01), (0.2, 0.2), (0.7, 0.5), (3.0, 2.0)]
)
def test_round_distance(length, expected):
    """1, 2 or 5 times a power of ten."""
    assert round_distance(length) == pytest.approx(expected)
