"""The gecko's plots: what is drawn is the data."""

from __future__ import annotations

import numpy as np
import pytest
from matplotlib.figure import Figure

from drakebots import plot
from drakebots.core.errors import InvalidInput
from drakebots.robots.gecko import draw_robot, plot_course, plot_velocity_space
from drakebots.robots.gecko.model import LIMBS, gecko, limb_curves, pose_at
from drakebots.robots.gecko.plots import CM
from tests.helpers.figures import check_legends, drawn_figures
from tests.helpers.scripts import is_picture


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


@pytest.mark.long
def test_pictures_are_written(tmp_path, course, space, driven):
    """All of them, and nothing else is left in the folder."""
    with drawn_figures() as figures:
        written = [
            plot_velocity_space(space, tmp_path / "space.png"),
            plot_course(course, tmp_path / "course.png"),
            plot_course(driven, tmp_path / "drake.png", poses=3),
        ]
    assert [check_legends(figure) for figure in figures[1:]] == [1, 1]
    assert all(is_picture(path) for path in written)
    assert len(list(tmp_path.iterdir())) == len(written)


@pytest.mark.long
def test_summary_knows_geckos(tmp_path, course, space):
    for result in (course, space):
        path = plot(result, tmp_path / f"{result.kind}.svg")
        assert path.read_text().startswith("<?xml")


def test_plots_refuse(tmp_path, course, space):
    """Wrong endings and kinds."""
    with pytest.raises(InvalidInput, match="ends in"):
        plot_course(course, tmp_path / "a.txt")
    with pytest.raises(InvalidInput, match="ends in"):
        plot_velocity_space(space, tmp_path / "law")
    with pytest.raises(InvalidInput, match="velocity"):
        plot_course(space, tmp_path / "a.png")
    with pytest.raises(InvalidInput, match="velocity"):
        plot_velocity_space(course, tmp_path / "a.png")
    assert not list(tmp_path.iterdir())
