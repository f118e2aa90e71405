"""A gait refined by executing it: its feed-forward, and the loop on a coarse plan."""

from __future__ import annotations

import numpy as np
import pytest

from drakebots.core.errors import InvalidInput
from drakebots.results import load_result
from drakebots.robots.hamr import Refinement, refine
from drakebots.robots.hamr.plan import GaitProblem, plan, store_plan, stored_plan
from drakebots.robots.hamr.reference import as_reference
from drakebots.robots.hamr.refine import fed, learned
from drakebots.robots.hamr.track import Gains, Tracking, track
from drakebots.robots.hamr.track.feedback import feedback_signs

pytestmark = pytest.mark.long


@pytest.fixture(scope="module")
def coarse():
    """A 10 Hz trot on card, 17 knots."""
    return plan(GaitProblem(knots=17))


def test_a_plan_keeps_what_it_is_fed(coarse, tmp_path):
    """With a gain it is fed what a controller adds when a larger motion is asked for:
    voltages, and feedback of legs that would go further about their mean."""
    assert np.array_equal(learned(coarse), np.ones(8))
    larger = load_result(fed(coarse, np.full(8, 1.05)).save(tmp_path / "plan.nc"))
    assert learned(larger) == pytest.approx(np.full(8, 1.05), abs=1e-9)
    volts, own = as_reference(larger).voltages, as_reference(coarse)
    assert volts.min() >= 0 and volts.max() <= 225
    middles = (own.time[:-1] + own.time[1:]) / 2
    legs = np.array([own.legs_at(t) for t in middles])
    step = 1e-6
    ahead, behind = (
        np.array([own.legs_at(t + side * step) for t in middles]) for side in (1, -1)
    )
    gains = Gains()
    missed = gains.kp * (legs - legs.mean(axis=0))
    missed = missed + gains.kd * (ahead - behind) / (2 * step)
    added = feedback_signs() * missed[:, :, [0, 2]].reshape(-1, 8)
    expected = own.voltages + 0.05 * (own.voltages - 112.5 + added)
    assert volts == pytest.approx(np.clip(expected, 0, 225), abs=0.05)


def test_factors_move_single_actuators_and_survive_a_file(coarse, tmp_path):
    factors = np.array([1.1, 1.0, 1.0, 0.9, 1.0, 1.0, 1.2, 1.0])
    plan = fed(coarse, factors)
    own, given = as_reference(coarse).voltages, as_reference(plan).voltages
    same = [np.allclose(own[:, i], given[:, i]) for i in range(8)]
    assert same == (factors == 1).tolist()
    stored = stored_plan(store_plan(plan, tmp_path / "plan.npz"))
    assert learned(stored) == pytest.approx(factors, abs=1e-6)


@pytest.mark.slow
def test_refining_never_makes_it_worse(coarse):
    asked = Refinement(coarse, rounds=1, trials=2, cycles=2)
    assert asked.gait.knots == 17 and asked.gait.frequency == 10
    better = refine(asked)
    m = better.metrics
    assert better.kind == "hamr.plan" and better.ok
    first = m["trials"][0]
    assert first["factors"] == (1.0,) * 8 and first["asked_mm"] == pytest.approx(10.0)
    assert max(t["score"] for t in m["trials"]) >= first["score"]
    # What is stored makes the stride that is reported.
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
