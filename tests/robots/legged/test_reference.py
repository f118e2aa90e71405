"""A plan as functions of time: between knots, across the wrap, and who carries load."""

import numpy as np
import pytest

from drakebots.robots.legged import Reference


def stepping(periodic: bool = True) -> Reference:
    """Two feet at knots 0, 0.1, ..., 0.8 s: the first is in the air at knots 2 to 4,
    the second from knot 6 across the wrap to knot 1."""
    time = 0.1 * np.arange(9)
    loaded = np.ones((9, 2), bool)
    loaded[2:5, 0] = False
    loaded[[6, 7, 8, 0, 1], 1] = False
    feet = np.zeros((9, 2, 3))
    feet[:, 0, 0] = np.interp(time, [0.1, 0.5], [0.0, 0.4])
    feet[:, 1, 0] = 0.2 * np.interp(time, [0.0, 0.2, 0.5, 0.8], [0.0, 0.5, 0.5, 2.0])
    feet[2:5, 0, 2] = [0.02, 0.05, 0.02]
    x = 0.5 * time
    line = np.column_stack([x, 0 * x, 0.3 + 0 * x])
    rate = np.tile([0.5, 0.0, 0.0], (9, 1))
    force = np.zeros((9, 2, 3))
    force[:, :, 2] = 10.0 * loaded
    return Reference(
        time=time,
        q=x[:, None],
        v=rate[:, :1],
        base=line,
        com=line,
        com_velocity=rate,
        feet=feet,
        input=np.arange(9.0)[:, None],
        force=force,
        loaded=loaded,
        turn=0.0,
        periodic=periodic,
    )


@pytest.mark.parametrize("knot", range(9))
def test_it_passes_through_its_knots(knot):
    plan = stepping()
    sample = plan.at(plan.time[knot] - 1e-6 * (knot == 8))
    assert sample.q == pytest.approx(plan.q[knot], abs=1e-5)
    assert sample.com == pytest.approx(plan.com[knot], abs=1e-5)
    assert sample.feet == pytest.approx(plan.feet[knot], abs=1e-5)


def test_cycles_join_smoothly_a_stride_further_on():
    plan = stepping()
    T = plan.duration
    before, after = plan.at(T - 1e-7), plan.at(T + 1e-7)
    for name in ("q", "v", "com", "com_velocity", "feet", "feet_velocity"):
        ends = getattr(before, name), getattr(after, name)
        assert np.allclose(*ends, atol=1e-5), name
    third = plan.at(2.3 * T)
    assert np.allclose(third.com - plan.at(0.3 * T).com, [0.8, 0, 0])
    assert np.allclose(third.feet - plan.at(0.3 * T).feet, [0.8, 0, 0])
    assert third.input == plan.at(0.3 * T).input


def test_rates_are_derivatives():
    plan, h = stepping(), 1e-6
    for t in (0.03, 0.37, 0.52):
        before, at, after = plan.at(t - h), plan.at(t), plan.at(t + h)
        for value, rate in (
            ("q", "v"),
            ("v", "vdot"),
            ("com", "com_velocity"),
            ("com_velocity", "com_acceleration"),
            ("feet", "feet_velocity"),
            ("feet_velocity", "feet_acceleration"),
        ):
            slope = (getattr(after, value) - getattr(before, value)) / (2 * h)
            assert np.allclose(slope, getattr(at, rate), atol=1e-5), (t, rate)


def test_feet_never_dip_below_the_ground():
    """Cubics through knots on the ground would overshoot; monotone ones do not."""
    plan = stepping()
    heights = [plan.at(t).feet[:, 2].min() for t in np.linspace(0, 1.6, 333)]
    assert min(heights) >= 0.0


def test_a_contact_lasts_to_the_middles_of_the_intervals_beside_it():
    plan = stepping()
    assert [plan.at(t).loaded[0] for t in (0.14, 0.16, 0.44, 0.46)] == [1, 0, 0, 1]
    assert plan.at(0.3).swing[0] == pytest.approx(0.5)
    assert plan.at(0.7).swing[0] == 0.0


def test_swings_go_on_across_the_wrap():
    """From 0.55 s to 0.15 s of the next cycle, whose middle is at 0.75 s."""
    plan = stepping()
    assert plan.at(0.75).swing[1] == pytest.approx(0.5)
    assert plan.at(0.8 + 0.1).swing[1] == pytest.approx(0.875)


def test_a_plan_that_does_not_repeat_ends_at_rest_in_its_last_pose():
    plan = stepping(periodic=False)
    last = plan.at(5.0)
    assert last.com == pytest.approx(plan.com[-1])
    assert np.abs(last.v).max() == 0 and np.abs(last.feet_velocity).max() == 0
