"""A skinned run's page holds the skin's motion, and a browser plays it."""

from __future__ import annotations

import base64
import io
import json
import re

import matplotlib.image
import numpy as np
import pytest

from drakebots import record
from drakebots.core.errors import InvalidInput
from drakebots.view.page import linear_rgb
from drakebots.view.skin import record as view_skin
from drakebots.view.skin import record_skin
from drakebots.view.skin.live import SKIN
from tests.helpers.scripts import load_script
from tests.helpers.skin_runs import decode, knee, skinned

find_browser, run_browser = load_script(
    "robot_zoo.browser", "find_browser", "run_browser"
)


@pytest.fixture(scope="module")
def result(tmp_path_factory):
    return skinned(tmp_path_factory.mktemp("skin"), 700, 21, 1.0)


@pytest.fixture(scope="module")
def scene(result):
    return record(result)


@pytest.fixture(scope="module")
def page(scene):
    return scene.html()


def test_page_is_self_contained(scene, tmp_path):
    """One file with the skin's stream and the scale in it, nothing from elsewhere."""
    text = scene.save(tmp_path / "run.html").read_text()
    assert [p.name for p in tmp_path.iterdir()] == ["run.html"]
    assert not re.findall(r'<script[^>]+src="http', text)
    assert "von Mises stress [kPa]" in text
    assert 'id="skin-stream"' in text
    assert scene.meshcat.HasPath(SKIN)


def test_page_carries_the_drawn_vertices(scene, page, result):
    """The stream in the page is the outer wall's motion."""
    text = re.search(r'id="skin-stream" type="text/plain">([^<]+)<', page).group(1)
    about = json.loads(re.search(r"const about = (\{.*\});", page).group(1))
    places, _ = decode(about, text)
    wanted = result.data.skin_position.values[:, scene.view.vertices]
    assert np.abs(places - wanted).max() < about["step"]
    assert about["times"] == pytest.approx(result.data.skin_time.values.tolist())


def test_the_page_says_what_arrows_mean(page):
    assert re.search(r"forces of the ground; \d+(\.\d+)? N", page)


needs_browser = pytest.mark.skipif(
    find_browser() is None, reason="no Chromium on this machine"
)

# The browser inflates the skin meanwhile, however fast its virtual time goes.
PROBE = """<script>
(function look() {
  const skin = window.drakebots_skin, animator = viewer.animator;
  if (!skin || !skin.find()) return setTimeout(look, 20);
  animator.pause();
  const scene = viewer.scene_tree.find(["drake"]).object;
  const shin = viewer.scene_tree.find(
    ["drake", "visualizer", "rods", "shin"]).object;
  const seen = AT.map((t) => {
    animator.seek(t);
    viewer.render();
    const picture = viewer.renderer.domElement.toDataURL("image/png");
    return {places: Array.from(skin.place.array),
            colours: Array.from(skin.colour.array.slice(0, 60)),
            arrow: viewer.scene_tree.find(["drake", "force", "shin"]).object.scale.z,
            knee: 2 * Math.atan2(shin.quaternion.y, shin.quaternion.w),
            note: document.getElementById("caption-time").textContent, picture};
  });
  const node = document.createElement("pre");
  node.textContent = "PROBE " + JSON.stringify(seen) + " END";
  document.body.appendChild(node);
})();
</script></body>"""


def probe(page, times, folder):
    """What the browser has at some times of the animation."""
    script = PROBE.replace("AT", json.dumps(times), 1)
    head, _, tail = page.rpartition("</body>")
    path = folder / "probe.html"
    path.write_text(head + script + tail)
    dom = run_browser(
        path, "--window-size=320,240", "--virtual-time-budget=20000", "--dump-dom"
    )
    match = re.search(r"PROBE (\[.*?\]) END", dom, re.S)
    assert match, "the probe wrote nothing"
    seen = json.loads(match.group(1))
    for one in seen:
        one["places"] = np.reshape(one["places"], (-1, 3))
        image = base64.b64decode(one["picture"].split(",")[1])
        one["pixels"] = matplotlib.image.imread(io.BytesIO(image))[..., :3]
    return seen


@pytest.mark.long
@needs_browser
def test_browser_plays_skin_and_skeleton_together(scene, page, result, tmp_path):
    """In headless Chromium: vertices as in the result at a frame and between two.

    The skeleton has the knee's angle of the same time, the force's arrow is as long
    as it is strong, the picture changes, the blue rods are seen through the skin, and
    the fold's colour comes in.
    """
    data = result.data
    seen = probe(page, [0.0, 0.5, 0.525], tmp_path)
    shown = data.skin_position.values[:, scene.view.vertices].astype(float)
    step = np.ptp(shown, axis=(0, 1)).max() / 65535
    for got, wanted in zip(seen, (shown[0], shown[10], (shown[10] + shown[11]) / 2)):
        assert np.abs(got["places"] - wanted).max() < step
    assert seen[1]["knee"] == pytest.approx(knee(0.5), abs=2e-3)
    now = int(np.abs(data.time.values - 0.5).argmin())
    long = np.linalg.norm(data.ground_force.values[now]) / scene.arrows.whole
    assert seen[1]["arrow"] == pytest.approx(long, rel=1e-6) and long > 0.9
    assert [s["note"] for s in seen[:2]] == ["t = 0.00 s", "t = 0.50 s"]
    tone = np.rint(255 * scene.view.scale.fraction(data.skin_stress.values[10])) / 255
    colours = linear_rgb(scene.view.scale.rgb(tone * scene.view.scale.top))
    wanted = colours[scene.view.vertices].ravel()[:60]
    assert seen[1]["colours"] == pytest.approx(wanted, abs=1e-3)
    before, after = seen[0]["pixels"], seen[1]["pixels"]
    assert (np.abs(before - after).max(axis=-1) > 0.1).mean() > 0.02
    for pixels in (before, after):
        blue = pixels[..., 2] - pixels[..., 0] > 0.05
        assert blue.sum() > 50
    red = after[..., 0] - after[..., 2]
    assert (red > 0.25).sum() > (before[..., 0] - before[..., 2] > 0.25).sum() + 50


def test_page_of_14000_vertices_is_small_enough(tmp_path):
    """5 s at 30 frames a second of a skin of 14000 vertices: below 20 MB."""
    run = skinned(tmp_path, 14000, 150, 5.0)
    assert run.data.sizes["vertex"] > 13900
    page = record_skin(run).html()
    about = json.loads(re.search(r"const about = (\{.*\});", page).group(1))
    assert len(about["times"]) == 150  # none was left out for it
    assert len(page.encode()) < 20e6


def test_frames_are_thinned_until_the_page_fits(scene, page, monkeypatch):
    """Fewer frames of the skin, first and last kept; an error when two do not fit."""
    text = re.search(r'id="skin-stream" type="text/plain">([^<]+)<', page).group(1)
    monkeypatch.setattr(view_skin, "MAX_BYTES", len(page) - len(text) // 3)
    smaller = scene.html()
    about = json.loads(re.search(r"const about = (\{.*\});", smaller).group(1))
    assert len(smaller) <= view_skin.MAX_BYTES
    assert 2 <= len(about["times"]) < 21
    assert about["times"][0] == 0 and about["times"][-1] == pytest.approx(1.0)
    monkeypatch.setattr(view_skin, "MAX_BYTES", 1000)
    with pytest.raises(InvalidInput, match="coarser"):
        scene.html()
