"""The gecko's scenes: robot and course are in them and move."""

from __future__ import annotations

import json
import re

import numpy as np
import pytest

from drakebots import record
from drakebots.core.errors import InvalidInput
from drakebots.robots.gecko import record_gecko
from drakebots.robots.gecko.model import LIMBS
from drakebots.robots.gecko.playback import course_points
from drakebots.robots.gecko.view import COURSE, PIECES, ROBOT, number, prism
from drakebots.view import make_stage
from tests.helpers.scripts import load_script

find_browser, run_browser = load_script(
    "robot_zoo.browser", "find_browser", "run_browser"
)


@pytest.fixture(scope="module")
def stage(course):
    return record(course)


def test_recording_has_robot_and_course(stage):
    """Chains, two discs a foot, targets, obstacles, waypoints."""
    chain = "/piece" * PIECES
    for limb in LIMBS:
        end = "rear" if limb in ("RL", "RR") else "front"
        assert stage.meshcat.HasPath(f"{ROBOT}/{end}/{limb}{chain}/limb")
    for name in ("holds", "free"):
        assert stage.meshcat.HasPath(f"{ROBOT}/front/FL{chain}/foot/{name}")
    for path in ("target/1/ring", "target/1/number", "obstacle/0", "waypoint/0"):
        assert stage.meshcat.HasPath(f"{COURSE}/{path}")
    for path in ("walked", "planned"):
        assert stage.meshcat.HasPath(f"{COURSE}/{path}")


@pytest.mark.long
@pytest.mark.skipif(find_browser() is None, reason="no Chromium on this machine")
def test_browser_plays_the_course(stage, course, tmp_path):
    """The robot travels from the start to the target; its feet let go and hold."""
    probe = """<script>
    setTimeout(function () {
      const root = ["drake", "gecko"];
      const body = viewer.scene_tree.find(root).object;
      const foot = viewer.scene_tree.find(root.concat(FOOT)).object;
      const animator = viewer.animator;
      const at = (t) => { animator.seek(t); body.updateMatrix();
                          return [body.position.x, foot.visible]; };
      const note = document.createElement("pre");
      const states = [...Array(60).keys()].map(
        (k) => at(animator.duration * (k + 0.5) / 60));
      note.textContent = "PROBE " + JSON.stringify(
        {duration: animator.duration, start: states[0][0], end: states[59][0],
         held: states.filter((s) => s[1]).length}) + " END";
      document.body.appendChild(note);
    }, 1500);
    </script></body>"""
    foot = f"front/FL{'/piece' * PIECES}/foot/holds".split("/")
    page = tmp_path / "probe.html"
    probe = probe.replace("FOOT", json.dumps(foot))
    page.write_text(stage.html().replace("</body>", probe, 1))
    dom = run_browser(page, "--virtual-time-budget=6000", "--dump-dom")
    seen = json.loads(re.search(r"PROBE (\{.*?\}) END", dom).group(1))
    front = course.data.marker_position.sel(marker="front", axis="x").values
    assert seen["duration"] == pytest.approx(float(course.data.time[-1]), rel=0.02)
    assert seen["start"] == pytest.approx(front[0], abs=0.02)
    assert seen["end"] == pytest.approx(front[-1], abs=0.02)
    assert 15 < seen["held"] < 50


def test_page_is_small_and_self_contained(stage, tmp_path):
    path = stage.save(tmp_path / "gecko.html")
    assert 1e6 < path.stat().st_size < 1e7
    assert 'src="http' not in path.read_text()


def test_everything_is_within_the_stage(stage, course):
    """The box the camera looks at holds course and robot."""
    points = np.vstack(
        [course.data.marker_position.values.reshape(-1, 2), course_points(course)]
    )
    assert (points > stage.low[:2]).all() and (points < stage.high[:2]).all()


def test_recording_of_drake(driven):
    """Beams are chains of their own joints: six pieces."""
    stage = record(driven, slow=0.5)
    chain = "/piece" * (driven.data.sizes["hinge"] - 1)
    assert stage.meshcat.HasPath(f"{ROBOT}/front/torso{chain}/limb")
    assert not stage.meshcat.HasPath(f"{ROBOT}/front/torso{chain}/piece")


def test_recording_refuses(course, space):
    with pytest.raises(InvalidInput, match="velocity"):
        record(space)
    for bad in ({"slow": 0.0}, {"slow": float("nan")}, {"frames_per_second": -1}):
        with pytest.raises(InvalidInput, match="must be > 0"):
            record_gecko(course, **bad)
    with pytest.raises(InvalidInput, match="low < high"):
        make_stage([0, 0, 0], [1, 1, 0])


class Meshes:
    """Takes the place of Meshcat; stores triangles."""

    def SetTriangleMesh(self, path, vertices, faces, color):
        self.triangles = vertices.T[faces.T]

    def area_above(self, height):
        """Sum of the areas of horizontal triangles above a height."""
        roof = self.triangles[(self.triangles[..., 2] > height).all(axis=1)][..., :2]
        a, b = roof[:, 1] - roof[:, 0], roof[:, 2] - roof[:, 0]
        return abs(a[:, 0] * b[:, 1] - a[:, 1] * b[:, 0]).sum() / 2


@pytest.mark.parametrize("turned", [False, True])
def test_a_concave_obstacle_has_a_whole_roof(turned):
    """The roof's area is the polygon's, for either orientation."""
    polygon = np.array([[0, 0], [4, 0], [4, 3], [2, 1], [0, 3], [1, 1]], float)
    scene = Meshes()
    outline = polygon[::-1] if turned else polygon
    prism(scene, "obstacle", [outline], (0.0, 0.0), 0.1, None)
    x, y = polygon.T
    area = abs((x * np.roll(y, -1) - np.roll(x, -1) * y).sum()) / 2
    assert scene.area_above(0.05) == pytest.approx(area)


def test_numbers_have_holes_and_the_height_of_a_digit():
    """An 8 fills less than half of its box."""
    scene = Meshes()
    number(scene, "number", 8, (1.0, 2.0))
    points = scene.triangles.reshape(-1, 3)
    (x, y, _), (width, height, _) = points.min(axis=0), np.ptp(points, axis=0)
    assert height == pytest.approx(0.045, rel=0.05)
    assert (x, y) == pytest.approx((1.0, 2.0), abs=0.01)
    assert scene.area_above(1e-3) < 0.6 * width * height
