"""Feedback on the feet: signs, limits, ramp."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from pydrake.systems.analysis import Simulator

from drakebots import InvalidInput
from drakebots.robots.hamr.model import FORWARD, UP, hamr_benders
from drakebots.robots.hamr.track import Gains
from drakebots.robots.hamr.track.feedback import Command, LegController, feedback_signs
from drakebots.robots.hamr.track.leg_map import hamr_leg_map
from tests.helpers.still_reference import still

SAMPLE = 4e-4


def command_voltages(command, legs, velocity=None, ticks=1, **gains):
    controller = LegController(command, Gains(**gains))
    simulator = Simulator(controller)
    context = simulator.get_mutable_context()
    controller.GetInputPort("legs").FixValue(context, np.ravel(legs))
    still = np.zeros(12) if velocity is None else np.ravel(velocity)
    controller.GetInputPort("velocity").FixValue(context, still)
    simulator.AdvanceTo((ticks - 0.5) * SAMPLE)
    return controller.GetOutputPort("voltages").Eval(context)


def test_feedback_is_stabilising():
    """More voltage by feedback pushes each foot to where it lacks."""
    law, command = hamr_benders(), Command(still(periodic=False))
    legs = command.reference.legs[0]
    rest = command_voltages(command, legs)
    assert rest == pytest.approx(np.full(8, 50.0))
    for axis, actuators, sense in (
        (0, slice(0, 8, 2), FORWARD),
        (2, slice(1, 8, 2), UP),
    ):
        behind = legs.copy()
        behind[:, axis] -= 1e-4
        volts = command_voltages(command, behind)
        assert np.abs(volts - rest)[actuators] == pytest.approx(np.full(4, 4.0))
        push = law.force(volts, 0.0) - law.force(rest, 0.0)
        assert np.all(push[actuators] * sense > 0)
        assert np.count_nonzero(volts - rest) == 4
        fast = np.zeros((4, 3))
        fast[:, axis] = 0.1
        volts = command_voltages(command, legs, fast)
        assert np.abs(volts - rest)[actuators] == pytest.approx(np.full(4, 5.0))
        push = law.force(volts, 0.0) - law.force(rest, 0.0)
        assert np.all(push[actuators] * sense < 0)


def test_signs_against_the_leg_map():
    # A force moves the foot as its tip does: dx/du of both tells the sign.
    H = hamr_leg_map()(hamr_leg_map().neutral)
    gain = np.column_stack([H[:, 0, 0], H[:, 2, 1]]).ravel()
    per_volt = -hamr_benders().orientation * gain
    assert np.array_equal(feedback_signs(), np.sign(per_volt))


def test_sideways_errors_are_ignored_and_voltages_clipped():
    command = Command(still(periodic=False))
    legs = command.reference.legs[0]
    rest = command_voltages(command, legs)
    assert command_voltages(command, legs + np.array([0, 1e-3, 0])) == pytest.approx(
        rest
    )
    far = command_voltages(command, legs + np.array([5e-3, 0, 5e-3]))
    assert set(far.tolist()) == {0.0, 225.0}


def test_feed_forward_gain_is_about_the_middle():
    command = Command(still(periodic=False))
    legs = command.reference.legs[0]
    volts = command_voltages(command, legs, kp=0.0, kd=0.0, kf=0.9)
    assert volts == pytest.approx(np.full(8, 112.5 + 0.9 * (50 - 112.5)))


def test_ramp(plan):
    faded = Command(plan, ramp=0.2)
    assert faded.voltages(0.0) == pytest.approx(np.full(8, 112.5))
    assert faded.legs(0.0)[0] == pytest.approx(hamr_leg_map().neutral)
    assert np.array_equal(faded.voltages(0.23), plan.voltages_at(0.03))
    assert faded.legs(0.23)[0] == pytest.approx(plan.legs_at(0.03), abs=1e-9)
    half = 0.5 * (plan.voltages_at(0.0) + 112.5)
    assert faded.voltages(0.1) == pytest.approx(half)
    for t in (0.05, 0.15):
        slope = (faded.legs(t + 1e-7)[0] - faded.legs(t - 1e-7)[0]) / 2e-7
        assert faded.legs(t)[1] == pytest.approx(slope, abs=1e-3)
    # What is not periodic waits for the ramp to end.
    once = Command(replace(plan, periodic=False), ramp=0.2)
    assert np.array_equal(once.voltages(0.23), plan.voltages_at(0.03))
    assert np.array_equal(once.voltages(0.2), plan.voltages_at(0.0))


def test_ramp_is_refused():
    with pytest.raises(InvalidInput, match="ramp must be >= 0 s"):
        Command(still(), ramp=-1.0)
