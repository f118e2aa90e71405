"""Runs from starts that differ by a rounding, and figures over them."""

import numpy as np
import pytest

from drakebots.core.errors import InvalidInput
from drakebots.robots.hamr import Simulation, Tracking, stored_plan
from tests.helpers.scripts import load_script

spread, spread_text, starts = load_script(
    "hamr_starts", "spread", "spread_text", "starts"
)


def test_a_spread_is_mean_deviation_and_least():
    found = spread([9.0, 8.0, 10.0])
    assert found == {
        "mean": 9.0,
        "deviation": pytest.approx(np.sqrt(2 / 3)),
        "worst": 8.0,
        "starts": 3,
        "failed": 0,
    }
    assert spread_text(found) == "9.00 ± 0.82, worst 8.00"


def test_a_run_without_the_figure_is_the_worst():
    found = spread([9.0, np.nan, 11.0])
    assert (found["mean"], found["worst"], found["failed"]) == (10.0, None, 1)
    assert spread_text(found) == "10.00 ± 1.00, worst none"
    nothing = spread([np.nan])
    assert nothing["mean"] is None and nothing["failed"] == 1
    assert spread_text(nothing) == spread_text(None) == "-"


def test_no_starts_are_refused():
    with pytest.raises(InvalidInput, match="count"):
        starts(Simulation(), 0)


@pytest.mark.long
def test_a_gait_near_instability_makes_other_strides_from_starts_a_nanometre_off():
    """Impacts amplify the nanometre a thousand times or more in six cycles."""
    posed = Tracking(stored_plan("30hz_card"), cycles=4, seed=3)
    strides = starts(posed, 3, workers=1).data.stride_mm_per_cycle
    assert strides.seed.values.tolist() == [3, 4, 5]
    assert len(set(strides.values)) == 3
    found = spread(strides.values)
    assert 1e-3 < found["deviation"] < 0.2 * found["mean"]
    assert found["worst"] > 5
