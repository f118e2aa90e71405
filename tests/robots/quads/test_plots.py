"""Figures of plans and tracking runs."""

from __future__ import annotations

from dataclasses import replace

import pytest

from drakebots.core.errors import InvalidInput
from drakebots.robots import plot
from drakebots.robots.quads import plot_plan, plot_track
from drakebots.robots.quads.track import Tracking
from tests.helpers.figures import check_legends, drawn_figures
from tests.helpers.scripts import is_picture, load_script

track_sap = load_script("sap_track").track_sap


def test_a_plan_is_drawn_by_its_kind(plan, tmp_path):
    assert is_picture(plot(plan, tmp_path / "plan.png"))


def test_a_step_by_step_plan_has_a_schedule(plan, tmp_path):
    """Kind "quads.frames" has the requested contacts, and no mass."""
    names = [n for n in plan.data if n.startswith(("planned", "stage", "desired"))]
    data = plan.data.drop_vars([*names, "contact", "torque_limit"])
    frames = replace(plan, kind="quads.frames", data=data, metrics={})
    assert is_picture(plot_plan(frames, tmp_path / "frames.png"))


@pytest.mark.long
def test_a_run_is_drawn_by_its_kind(plan, tmp_path):
    run = track_sap(Tracking(plan))
    with drawn_figures() as figures:
        assert is_picture(plot(run, tmp_path / "run.png"))
    assert check_legends(figures[0]) == 3
    with pytest.raises(InvalidInput, match="no footfall"):
        plot_plan(run, tmp_path / "x.png")
    with pytest.raises(InvalidInput, match="no tracking run"):
        plot_track(plan, tmp_path / "x.png")
    with pytest.raises(InvalidInput, match=r"\.png"):
        plot_track(run, tmp_path / "x.doc")
