"""The gecko on a wall: loads of the feet, slips and falls."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from drakebots.core.errors import InvalidInput
from drakebots.core.run import Verdict
from drakebots.results import load_result
from drakebots.robots.gecko import Simulation, simulate
from drakebots.robots.gecko.engines import (
    STEEPEST,
    CupLimits,
    Drake,
    Walk,
    simulate_walk,
)
from drakebots.robots.gecko.engines.suction import pulls

FEET = np.array([[0.05, 0.09], [0.05, -0.09], [-0.06, 0.09], [-0.06, -0.09]])
W, H = 2.0, 0.012
STIFF = 3.2e6
"""Modulus with which legs have 0.2 N m/rad and the robot climbs [Pa]."""


@cache
def climbed(suction, degrees=84.0, cycles=1):
    limits, incline = CupLimits(suction=suction), np.radians(degrees)
    engine = Drake(incline=incline, limits=limits, modulus=STIFF, pressure=False)
    return simulate_walk(Walk(cycles=cycles, engine=engine))


@given(
    incline=st.floats(0, np.pi / 2),
    x=st.floats(-0.05, 0.05),
    y=st.floats(-0.05, 0.05),
    held=st.sampled_from([(1, 1, 1, 1), (1, 1, 1, 0), (0, 1, 1, 1)]),
)
def test_pulls_balance_the_robot(incline, x, y, held):
    centre = np.array([x, y])
    N = pulls(FEET, held, centre, W, H, incline)
    assert (N[~np.array(held, bool)] == 0).all()
    assert N.sum() == pytest.approx(-W * np.cos(incline), abs=1e-9)
    moment = N @ (FEET - centre)
    expected = [W * H * np.sin(incline), 0.0]
    np.testing.assert_allclose(moment, expected, atol=1e-9)


def test_pulls_on_a_wall_uphill_feet_are_pulled():
    N = pulls(FEET, [1, 1, 1, 1], [0, 0], W, H, np.pi / 2)
    assert (N[:2] > 0).all() and (N[2:] < 0).all()
    level = pulls(FEET, [1, 1, 1, 1], [0, 0], W, H, 0.0)
    assert (level < 0).all()
    assert (pulls(FEET, [0] * 4, [0, 0], W, H, 1.0) == 0).all()


def test_pulls_on_a_ceiling_carry_the_weight():
    N = pulls(FEET, [1, 1, 1, 1], FEET.mean(axis=0), W, H, np.pi)
    np.testing.assert_allclose(N, W / 4)


@pytest.mark.long
def test_a_ceiling_is_walked_with_suction_and_lost_with_little():
    """Two feet carry 2.2 N: 1.08 N each, more with the moment about their line."""
    strong, weak = (climbed(force, degrees=180.0) for force in (20.0, 0.9))
    assert strong.ok and strong.metrics["climbed_m"] > 0.08
    assert weak.metrics["fell"] and "180 deg" in weak.message


def test_load_is_a_cone():
    limits = CupLimits(suction=10.0, friction=0.5)
    np.testing.assert_allclose(
        limits.load([0.0, 5.0, 5.0, 5.0], [0.0, 0.0, 5.0, -10.0]), [0, 1, 2, 0.5]
    )
    assert limits.load([0.0], [11.0])[0] == np.inf
    assert CupLimits(suction=0.0).load([1.0], [0.0])[0] == np.inf


@pytest.mark.long
def test_climbs_at_84_degrees_with_strong_feet(tmp_path):
    result = climbed(200.0, cycles=2)
    assert result.ok
    assert result.metrics["climbed_m"] > 0.1
    assert result.metrics["events"] == () and result.metrics["slips"] == 0
    assert max(result.residuals.values()) < 0.5e-3
    assert 0 < max(result.metrics["load"].values()) < 1
    assert load_result(result.save(tmp_path / "climb.nc")) == result


@pytest.mark.long
def test_steeper_is_shorter():
    gains = [
        climbed(200.0, degrees).metrics["forward_per_cycle_m"]
        for degrees in (0, 45, 84)
    ]
    assert gains[0] > gains[1] > gains[2] > 0


def test_weak_feet_slip_then_fall():
    result = climbed(2.0)
    assert result.verdict is Verdict.FAILED
    assert "fell" in result.message and "84 deg" in result.message
    events = result.metrics["events"]
    kinds = [event["event"] for event in events]
    assert kinds[0] == "slip" and kinds[-1] == "fall" and kinds.count("fall") == 1
    times = [event["time_s"] for event in events]
    assert times == sorted(times)
    assert {event["foot"] for event in events} <= {"FL", "FR", "RL", "RR"}
    assert result.metrics["fell"]
    # It ends there.
    assert float(result.data.time[-1]) == pytest.approx(times[-1], abs=0.03)


@pytest.mark.long
def test_more_suction_never_does_worse():
    ladder = [climbed(suction) for suction in (1.0, 3.0, 5.0, 20.0, 200.0)]
    fell = [result.metrics["fell"] for result in ladder]
    assert fell == sorted(fell, reverse=True) and fell[0] and not fell[-1]
    reached = [float(result.data.time[-1]) for result in ladder]
    assert reached == sorted(reached)
    slips = [r.metrics["slips"] for r in ladder if not r.metrics["fell"]]
    assert slips == sorted(slips, reverse=True)


@pytest.mark.parametrize(
    "make",
    [
        lambda: CupLimits(suction=-1.0),
        lambda: CupLimits(friction=np.nan),
        lambda: CupLimits(patience=0.0),
        lambda: CupLimits(fall=-1.0),
        lambda: Drake(incline=-0.1),
        lambda: Drake(incline=3.2),
    ],
)
def test_bad_values_are_refused(make):
    with pytest.raises(InvalidInput) as caught:
        make()
    assert "\n" not in str(caught.value)


@pytest.mark.long
def test_targets_are_reached_up_a_wall_that_costs_height():
    """On 84 degrees it gets to a target as on the floor, with loaded feet, less far."""
    course = {"targets": ((0.15, 0.0),), "heading": 0.0}
    wall, floor = (
        simulate(Simulation(engine=Drake(incline=angle), **course))
        for angle in (STEEPEST, 0.0)
    )
    assert wall.ok and floor.ok
    assert wall.metrics["targets_reached"] == 1 and not wall.metrics["fell"]
    assert 0.05 < max(wall.metrics["load"].values()) < 1
    x = [r.data.marker_position.sel(marker="front", axis="x") for r in (wall, floor)]
    assert 0 < float(x[0][-1]) < float(x[1][-1])


def test_walls_need_the_robot_whose_feet_come_off():
    with pytest.raises(InvalidInput, match="give way"):
        Drake(incline=1.0, reproduction=True)
