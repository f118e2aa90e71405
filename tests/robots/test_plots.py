"""Plans of every kind are drawn, in the way of their kind; no legend covers data.

Runs and skins have tests of their own, by robot.
"""

from __future__ import annotations

from dataclasses import replace

import pytest
import xarray as xr

from drakebots import load, load_result, plot, stored_plan
from drakebots.cli import main
from tests.helpers.figures import check_legends, drawn_figures
from tests.helpers.scripts import ROOT, is_picture
from tests.helpers.small_quad import planned_lift
from tests.helpers.standing_plans import standing_plan


def _drawn(result, path) -> tuple[int, str, set[str]]:
    """Numbers and words of a result's picture: legends, title, titles of panels."""
    with drawn_figures() as figures:
        assert is_picture(plot(result, path))
    (figure,) = figures
    panels = {axes.get_title() for axes in figure.axes if axes.get_visible()}
    return check_legends(figure), figure.get_suptitle(), panels


@pytest.mark.long
@pytest.mark.parametrize("name", ["30hz_card", "jump"])
def test_plans_of_hamr_are_drawn(name, tmp_path):
    """One cycle has no bars of strides: a gait's stride is reported in the title."""
    plan = stored_plan(f"hamr:{name}")
    legends, title, panels = _drawn(plan, tmp_path / "plan.png")
    assert legends == 3
    assert {"feet", "feet that carry load", "drive, first leg"} <= panels
    assert not any("stride" in panel or "cycles" in panel for panel in panels)
    assert (name == "jump") == ("mm/cycle" not in title)


@pytest.mark.long
def test_a_plan_of_any_robot_is_drawn(tmp_path):
    model = load(ROOT / "examples" / "my_robot.urdf")
    legends, title, panels = _drawn(standing_plan(model), tmp_path / "plan.png")
    assert legends == 2 and title.startswith("my_robot")
    assert {"path of the base", "pose of the base", "feet"} <= panels


@pytest.mark.long
def test_a_plan_of_a_skinned_robot_is_drawn(tmp_path):
    plan = load_result(planned_lift()[1])
    legends, title, panels = _drawn(plan, tmp_path / "plan.png")
    assert legends == 2 and title == "small: lift fl"
    assert "contacts, and load over weight" in panels


@pytest.mark.long
def test_only_the_last_two_cycles_of_the_feet_are_drawn(tmp_path):
    """A run of five cycles: by a frequency, or by a period as executed plans have."""
    plan = stored_plan("hamr:10hz_card")
    period = plan.metrics["period_s"]
    cycle = plan.data.isel(time=slice(1, None))
    cycles = [cycle.assign_coords(time=cycle.time + k * period) for k in range(5)]
    data = xr.concat(cycles, "time", data_vars="minimal")
    for facts in ({"frequency_hz": 1 / period}, {"periodic": True, "period_s": period}):
        with drawn_figures() as figures:
            plot(replace(plan, data=data, metrics=facts), tmp_path / "run.png")
        feet = next(a for a in figures[0].axes if a.get_title().startswith("feet, "))
        assert feet.get_title() == "feet, last two cycles"
        assert {len(line.get_xdata()) for line in feet.get_lines()} <= {100, 101}
    with drawn_figures() as figures:
        facts = {"periodic": False, "period_s": period}
        plot(replace(plan, data=data, metrics=facts), tmp_path / "run.png")
    feet = next(a for a in figures[0].axes if a.get_title() == "feet")
    assert {len(line.get_xdata()) for line in feet.get_lines()} == {250}


def test_report_draws_a_stored_plan(tmp_path, capsys):
    path = tmp_path / "plan.png"
    assert main(["report", "hamr:30hz_card", "--plot", str(path)]) == 0
    assert is_picture(path) and not capsys.readouterr().err
