"""What a plan asks the robot to do: knots, voltages, feet."""

from __future__ import annotations

import numpy as np
import pytest

from drakebots import InvalidInput
from drakebots.robots.hamr import Simulation, simulate
from drakebots.robots.hamr.reference import coordinate_names, recorded_reference
from tests.helpers.still_reference import still


def test_reference_holds_voltages():
    plan = still()
    for t, volts in ((0, 50), (0.0099, 50), (0.01, 150), (0.0299, 150), (0.03, 50)):
        assert plan.voltages_at(t).tolist() == [volts] * 8
        assert plan.voltages_at(t + 3 * plan.duration).tolist() == [volts] * 8
    once = still(periodic=False)
    assert once.voltages_at(1.0).tolist() == [150] * 8
    assert once.voltages_at(-1.0).tolist() == [50] * 8
    assert once.leg_velocities_at(1.0).tolist() == np.zeros((4, 3)).tolist()


def test_reference_legs(plan):
    # What the cycle lacks to close is spread: less than 1 mm, the validation's.
    for k in range(len(plan.time)):
        assert plan.legs_at(plan.time[k]) == pytest.approx(plan.legs[k], abs=1e-3)
    assert plan.legs_at(0.0) == pytest.approx(plan.legs[0], abs=1e-9)
    assert plan.legs_at(plan.duration) == pytest.approx(plan.legs_at(0.0), abs=1e-9)
    for t in (0.013, 0.0999999, 0.1000001, 0.25):
        step = 1e-7
        slope = (plan.legs_at(t + step) - plan.legs_at(t - step)) / (2 * step)
        assert plan.leg_velocities_at(t) == pytest.approx(slope, abs=1e-3)


def bent(name, value):
    q = np.zeros((3, len(coordinate_names())))
    q[-1, coordinate_names().index(name)] = value
    return q


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"time": [0.0]}, "two or more knots"),
        ({"time": [0.0, 0.02, 0.01]}, "increase from 0 s"),
        ({"time": [0.01, 0.02, 0.03]}, "from 0 s"),
        ({"q": np.zeros((3, 39))}, r"3x38 finite"),
        ({"v": np.full((3, 38), np.nan)}, "finite numbers"),
        ({"voltages": np.zeros((3, 8))}, r"2x8 finite"),
        ({"voltages": np.full((2, 8), 230.0)}, "230.0 V is outside"),
        ({"voltages": "high"}, "voltages"),
        ({"friction": -0.1}, "friction"),
        ({"q": bent("hamr_RLqfb3", 0.3)}, "not periodic: leg RL"),
    ],
)
def test_reference_refuses(change, words):
    with pytest.raises(InvalidInput, match=words) as caught:
        still(**change)
    assert "\n" not in str(caught.value)


def test_recorded_plan_is_the_walk(plan):
    names = coordinate_names()
    assert plan.q.shape == (len(plan.time), len(names))
    assert plan.duration == pytest.approx(0.1)
    # Rates are those of the positions: differences over 2 ms, in the mean.
    rates = np.diff(plan.q, axis=0) / np.diff(plan.time)[:, None]
    middle = 0.5 * (plan.v[1:] + plan.v[:-1])
    for k in range(6):
        assert np.abs(rates - middle)[:, k].mean() < 0.25 * np.abs(rates[:, k]).mean()
    with pytest.raises(InvalidInput, match="simulate longer"):
        recorded_reference(
            simulate(Simulation(gait="jump", time_limit=1e-3)).data,
            0.0,
            9.0,
            periodic=False,
            friction=0.5,
        )
