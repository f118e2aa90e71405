"""Multipliers of HAMR's gaits under the leg controller."""

import numpy as np
import pytest

from drakebots.model import package_root
from drakebots.robots.hamr.plan.programs import hamr_system
from drakebots.robots.hamr.plan.stability import (
    DEVIATION,
    cycle_map,
    leg_feedback,
    stability_metrics,
)
from drakebots.robots.hamr.plan.stored import open_plan, stability_of, stored_plan
from drakebots.robots.hamr.track.controller import KD, KP
from drakebots.robots.hamr.track.leg_map import hamr_leg_map

SIZE = DEVIATION / hamr_system().robot.scaling.length


@pytest.fixture(scope="module")
def gait():
    """The 10 Hz gait on card: its problem and its decision variables."""
    path = package_root() / "hamr" / "plans" / "10hz_card.npz"
    _, contact, program, arrays = open_plan(path)
    return contact, program.view(arrays["x"])


def test_the_metrics_of_a_gait_that_holds(gait):
    found = stability_metrics(*gait)
    planned = gait[1]["q"][-1, 0]
    assert 0 < found["floquet_max"] < 2
    assert found["predicted_stride_mm"] == pytest.approx(planned, rel=0.1)
    moduli = [modulus for modulus, _ in found["floquet"]]
    assert moduli == sorted(moduli, reverse=True)
    assert moduli[0] == found["floquet_max"]
    assert {name for _, name in found["floquet"]} <= set(hamr_system().coordinates)


@pytest.mark.long
def test_a_stored_plan_tells_its_own():
    plan = stored_plan("30hz_card")
    again = stability_of(plan)
    for name in ("floquet_max", "floquet_held_max", "predicted_stride_mm"):
        assert plan.metrics[name] == pytest.approx(again[name], rel=1e-9)


def test_shifts_and_turns_of_the_whole_gait_are_left_out(gait):
    motion = cycle_map(*gait)
    names = {name.removeprefix("Chassis_") for name in motion.invariances}
    assert names == {"x", "y", "yaw"}
    for name in ("x", "y"):
        i = hamr_system().coordinates.index(f"Chassis_{name}")
        start = np.zeros(motion.size)
        start[i] = 0.7
        still = motion.cycle(np.zeros(motion.size))
        np.testing.assert_allclose(motion.cycle(start) - still, start, atol=1e-9)


def test_voltages_fed_instead_of_the_plans_move_the_gait(gait):
    """The plan's own, given as fed, change nothing; larger ones lengthen the stride."""
    contact, parts = gait
    own = parts["u"]
    middle = (own + 0.1 * (own - own.mean(axis=0))).clip(0, 225)
    same, larger = (
        cycle_map(contact, parts, fed=fed).advance(SIZE, cycles=4, runs=1)[0, :, 0]
        for fed in (own, middle)
    )
    plain = cycle_map(contact, parts).advance(SIZE, cycles=4, runs=1)[0, :, 0]
    np.testing.assert_allclose(same, plain, atol=1e-12)
    assert larger[1:].mean() > plain[1:].mean() + 0.05  # mm


@pytest.mark.long
def test_gains_that_make_the_legs_ring_have_large_multipliers(gait):
    """Of the gains that `controller` names: 40 V/mm with 50 V ms/mm is stable, without
    damping it is not."""
    good, undamped = (
        cycle_map(*gait, kp=KP, kd=kd).multipliers(SIZE).largest for kd in (KD, 0.0)
    )
    assert undamped > max(1.0, good)


@pytest.mark.long
def test_feedback_pulls_a_leg_back():
    """A tip that moves its marker away from the plan meets a force against it."""
    law, gains, table = (
        hamr_system().inputs,
        leg_feedback().position_gain,
        hamr_leg_map(),
    )
    moved = table(table.neutral)[:, [0, 2]]  # (leg, x or z, swing or lift)
    for leg in range(4):
        for i in range(2):
            actuator = 2 * leg + i
            volts = -gains[actuator, actuator] * moved[leg, i, i]
            assert -law.per_volt[actuator] * volts < 0
