"""A gait refined by executing it: its feed-forward, and the loop on a coarse plan."""

from __future__ import annotations

import numpy as np
import pytest

from drakebots.core.errors import InvalidInput
from drakebots.results import load_result
from drakebots.robots.hamr.model import ACTUATORS
from drakebots.robots.hamr.plan.plan import plan
from drakebots.robots.hamr.plan.programs import GaitProblem
from drakebots.robots.hamr.reference import as_reference
from drakebots.robots.hamr.refine import Refinement, fed, learned, refine
from drakebots.robots.hamr.track.track import Tracking, track

pytestmark = pytest.mark.long


@pytest.fixture(scope="module")
def coarse():
    """A 10 Hz trot on card, 17 knots."""
    return plan(GaitProblem(knots=17))


def test_a_plan_keeps_the_voltages_it_is_fed(coarse, tmp_path):
    assert learned(coarse) == (1.0, 0.0)
    less = load_result(fed(coarse, 0.9, 0.0).save(tmp_path / "plan.nc"))
    assert learned(less) == (0.9, 0.0)
    own, quieter = as_reference(coarse).voltages, as_reference(less).voltages
    assert quieter == pytest.approx(112.5 + 0.9 * (own - 112.5), abs=1e-9)
    louder = as_reference(fed(coarse, 1.5, 0.0)).voltages
    assert louder.min() == 0 and louder.max() == 225
    # The same as the controller's own factor, where nothing is clipped.
    kf = track(Tracking(coarse, cycles=1, ramp=0, kf=0.9)).metrics
    fed_run = track(Tracking(less, cycles=1, ramp=0)).metrics
    assert fed_run["stride_mm"] == pytest.approx(kf["stride_mm"], rel=1e-6)


def test_trim_drives_the_left_swings_further_than_the_right(coarse):
    own = as_reference(coarse).voltages - 112.5
    trimmed = as_reference(fed(coarse, 1.0, -0.1)).voltages - 112.5
    for i, name in enumerate(ACTUATORS):
        sign = {"L": 1, "R": -1}[name[1]] * (name[2] == "s")
        factor = 1 - 0.1 * sign
        assert trimmed[:, i] == pytest.approx(
            np.clip(factor * own[:, i], -112.5, 112.5), abs=1e-9
        )


def test_refining_never_makes_it_worse(coarse):
    asked = Refinement(coarse, rounds=1, trials=2, cycles=2)
    assert asked.gait.knots == 17 and asked.gait.frequency == 10
    better = refine(asked)
    m = better.metrics
    assert better.kind == "hamr.plan" and better.ok
    first = m["trials"][0]
    assert first["gain"] == 1.0 and first["asked_mm"] == pytest.approx(10.0)
    assert max(t["score"] for t in m["trials"]) >= first["score"]
    # What is stored makes the stride that is told.
    again = track(Tracking(better, cycles=2)).metrics
    assert again["stride_mm_per_cycle"] == pytest.approx(m["executed_stride_mm"])
    assert again["yaw_deg_per_cycle"] == pytest.approx(m["executed_yaw_deg"])


def test_only_gaits_are_refined(coarse):
    run = track(Tracking(coarse, cycles=1))
    with pytest.raises(InvalidInput, match="give a planned gait"):
        Refinement(run)
    for change in ({"goal": -1.0}, {"cycles": 0}, {"tilt": 0.0}, {"rounds": -1}):
        with pytest.raises(InvalidInput, match=next(iter(change))):
            Refinement(coarse, **change)
