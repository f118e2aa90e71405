"""The gecko's pictures: what is drawn is the data, and files are what they say."""

from __future__ import annotations

import json
import re

import numpy as np
import pytest
from gecko_plots import plot_cycle, plot_distance
from matplotlib.figure import Figure

from drakebots import plot, record
from drakebots.core.errors import InvalidInput, UnknownName
from drakebots.robots.gecko.drake.run import DrakeGecko
from drakebots.robots.gecko.drake.run import run as run_drake
from drakebots.robots.gecko.generator.velocity_space import simulate_velocity_space
from drakebots.robots.gecko.model.kinematics import limb_curves, pose_at
from drakebots.robots.gecko.model.parameters import LEGS, LIMBS, gecko
from drakebots.robots.gecko.playback import between, frames, stored_poses
from drakebots.robots.gecko.plots import (
    CM,
    draw_robot,
    plot_course,
    plot_gait_law,
    plot_velocity_space,
)
from drakebots.robots.gecko.pose_step.gait import cycle_phases
from drakebots.robots.gecko.simulate import GeckoSimulation, simulate_gecko
from drakebots.robots.gecko.view import (
    COURSE,
    PIECES,
    ROBOT,
    course_points,
    record_gecko,
    triangles,
)
from drakebots.view.browser import find_browser, run_browser
from drakebots.view.scene import make_stage
from tests.helpers.scripts import is_picture

SQUARE = ((0.25, -0.15), (0.40, -0.15), (0.40, 0.20), (0.25, 0.20))


@pytest.fixture(scope="module")
def course():
    """A short way around an obstacle, by poses."""
    return simulate_gecko(
        GeckoSimulation(targets=((0.65, 0.0),), obstacles=(SQUARE,), heading=0.0)
    )


@pytest.fixture(scope="module")
def space():
    return simulate_velocity_space()


@pytest.fixture(scope="module")
def driven():
    """Half a cycle in Drake."""
    return run_drake(DrakeGecko(cycles=1, time_limit=20.0))


@pytest.fixture(scope="module")
def stage(course):
    return record(course)


def test_robot_is_drawn_in_its_place():
    """The lines drawn are the limbs, in cm; free legs are dashed."""
    pose = pose_at(gecko(), np.radians([60, 20, -40, 10, 90]), 0.3, (0.2, -0.1))
    axis = Figure().subplots()
    draw_robot(axis, pose, held=[1, 0, 0, 1])
    for line, curve in zip(axis.lines, limb_curves(pose), strict=False):
        np.testing.assert_allclose(line.get_xydata(), CM * curve)
    dashed = [line.get_linestyle() == "--" for line in axis.lines[: len(LIMBS)]]
    assert dashed == [False, True, False, True, False]
    feet = np.array([line.get_xydata()[0] for line in axis.lines[len(LIMBS) :]])
    np.testing.assert_allclose(feet, CM * pose.feet)


def test_cycle_as_in_figure_6():
    """Held feet hardly turn; released legs jump to the law, from far off it."""
    cycle = cycle_phases()
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
    cycle = cycle_phases(robot=gecko())
    assert np.degrees(np.abs(cycle.turn)).max() > 3


@pytest.mark.parametrize("bad", [{"q1": 4.0}, {"q2": 2.0}, {"settle": -1}])
def test_cycle_refuses(bad):
    with pytest.raises(InvalidInput):
        cycle_phases(**bad)


def test_pictures_are_written(tmp_path, course, space, driven):
    """All of them, and nothing else is left in the folder."""
    written = [
        plot_gait_law(tmp_path / "law.png"),
        plot_cycle(tmp_path / "cycle.png"),
        plot_distance(tmp_path / "distance.png", sum="paper"),
        plot_velocity_space(space, tmp_path / "space.png"),
        plot_course(course, tmp_path / "course.png"),
        plot_course(driven, tmp_path / "drake.png", poses=3),
    ]
    assert all(is_picture(path) for path in written)
    assert len(list(tmp_path.iterdir())) == len(written)


def test_summary_knows_geckos(tmp_path, course, space):
    for result in (course, space):
        path = plot(result, tmp_path / f"{result.kind}.svg")
        assert path.read_text().startswith("<?xml")


def test_plots_refuse(tmp_path, course, space):
    """Wrong endings, sums and kinds."""
    with pytest.raises(InvalidInput, match="ends in"):
        plot_course(course, tmp_path / "a.txt")
    with pytest.raises(InvalidInput, match="ends in"):
        plot_gait_law(tmp_path / "law")
    with pytest.raises(UnknownName):
        plot_distance(tmp_path / "a.png", sum="half")
    with pytest.raises(InvalidInput, match="velocity"):
        plot_course(space, tmp_path / "a.png")
    with pytest.raises(InvalidInput, match="velocity"):
        plot_velocity_space(course, tmp_path / "a.png")
    assert not list(tmp_path.iterdir())


def test_playback_keeps_feet_and_stored_poses(course):
    """Between the poses stored, feet that hold stay within half a millimetre."""
    data = course.data
    poses = stored_poses(data)
    np.testing.assert_allclose(
        [p.markers for p in poses], data.marker_position, atol=1e-9
    )
    for k in range(len(poses) - 1):
        held = data.fixation.values[k + 1] > 0.5
        a, b = poses[k], poses[k + 1]
        for share in (0.2, 0.5, 0.8):
            slip = (between(a, b, held, share).feet - a.feet)[held]
            assert np.abs(slip).max() < 5e-4
        np.testing.assert_allclose(between(a, b, held, 0).markers, a.markers)
        np.testing.assert_allclose(between(a, b, held, 1).markers, b.markers, atol=1e-8)
    motion = frames(data, 100)
    np.testing.assert_allclose(motion.markers[-1], poses[-1].markers, atol=1e-8)
    with pytest.raises(InvalidInput, match="frames"):
        frames(data, 1)


def test_lengths_in_drake_follow_from_the_markers(driven):
    """Drake's chains are arcs up to 0.1 mm."""
    poses = stored_poses(driven.data)
    drawn = np.array([p.markers for p in poses])
    assert np.abs(drawn - driven.data.marker_position.values).max() < 1e-4


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
    for path in ("way", "planned"):
        assert stage.meshcat.HasPath(f"{COURSE}/{path}")


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
    stage = record(driven, slow=0.5)
    assert stage.meshcat.HasPath(f"{ROBOT}/front/torso")


def test_recording_refuses(course, space):
    with pytest.raises(InvalidInput, match="velocity"):
        record(space)
    for bad in ({"slow": 0.0}, {"slow": float("nan")}, {"frames_per_second": -1}):
        with pytest.raises(InvalidInput, match="must be > 0"):
            record_gecko(course, **bad)
    with pytest.raises(InvalidInput, match="low < high"):
        make_stage([0, 0, 0], [1, 1, 0])


@pytest.mark.parametrize("turned", [False, True])
def test_triangles_fill_a_concave_polygon(turned):
    """Their areas add up to the polygon's, in either sense."""
    polygon = np.array([[0, 0], [4, 0], [4, 3], [2, 1], [0, 3], [1, 1]], float)
    if turned:
        polygon = polygon[::-1]
    corners = polygon[triangles(polygon)]
    a, b = corners[:, 1] - corners[:, 0], corners[:, 2] - corners[:, 0]
    areas = (a[:, 0] * b[:, 1] - a[:, 1] * b[:, 0]) / 2
    assert (areas > 0).all()
    x, y = polygon.T
    whole = abs((x * np.roll(y, -1) - np.roll(x, -1) * y).sum()) / 2
    assert areas.sum() == pytest.approx(whole)
