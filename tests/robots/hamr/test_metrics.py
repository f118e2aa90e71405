"""Metrics of gaits on made-up runs whose answers are known."""

from __future__ import annotations

import math

import numpy as np
import pytest
import xarray as xr

from drakebots.core.units import GRAVITY
from drakebots.robots.hamr import make_waveform
from drakebots.robots.hamr.metrics import (
    cycle_poses,
    cycle_starts,
    gait_metrics,
    loaded_slip,
    slip,
    tracking_metrics,
)
from tests.helpers.still_reference import still

MASS = 1.5e-3
SPEED, TURN, FREQUENCY = 0.1, 0.8, 10.0


def made_up(turn=TURN, cycles=7, samples=200):
    """Constant forward speed on a circle; feet FL and RR stand half the time."""
    time = np.arange(cycles * samples + 1) / (FREQUENCY * samples)
    angle = turn * time
    if turn:
        x, y = SPEED / turn * np.sin(angle), SPEED / turn * (1 - np.cos(angle))
    else:
        x, y = SPEED * time, 0 * time
    wave = np.sin(2 * np.pi * FREQUENCY * time)
    zero = np.zeros_like(time)
    foot_velocity = np.zeros((time.size, 4, 3))
    foot_velocity[:, 0, 0] = 0.05 * wave
    foot_velocity[:, 1, 0] = -0.02
    foot_velocity[:, 2, 0] = 0.3
    # FL as above, RL sideways too, FR up to 1 mm and RR to 0.2 mm in every cycle.
    foot_position = np.zeros((time.size, 4, 3))
    foot_position[:, 0, 0] = (
        -0.05 / (2 * np.pi * FREQUENCY) * np.cos(2 * np.pi * FREQUENCY * time)
    )
    foot_position[:, 1] = np.outer(time, [-0.02, 0.015, 0.0])
    foot_position[:, :2, 2] = 2e-3
    foot_position[:, 2, 2] = 1e-3 * np.maximum(wave, 0)
    foot_position[:, 3, 2] = 2e-4 * np.maximum(wave, 0)
    force = np.zeros((time.size, 4, 3))
    force[wave > 0, 0, 2] = 0.02 * MASS * GRAVITY
    force[wave < 0, 3, 2] = 0.02 * MASS * GRAVITY
    force[:, 1, 2] = MASS * GRAVITY
    force[:, 2, 2] = 0.001 * MASS * GRAVITY
    drive, rate = np.zeros((2, time.size, 8))
    drive[:, 0], rate[:, 0] = 0.2 * wave, 1e-2 * wave
    drive[:, 1], rate[:, 1] = 0.1, -1e-3
    return xr.Dataset(
        {
            "base_position": (("time", "axis"), np.c_[x, y, 0.0125 + 1e-4 * wave]),
            "base_rpy": (("time", "angle"), np.c_[zero, zero, angle]),
            "foot_position": (("time", "foot", "axis"), foot_position),
            "foot_velocity": (("time", "foot", "axis"), foot_velocity),
            "foot_force": (("time", "foot", "axis"), force),
            "actuator_force": (("time", "actuator"), drive),
            "actuator_velocity": (("time", "actuator"), rate),
            "voltage": (("time", "drive"), 112.5 + 90 * np.c_[wave, -wave]),
            "loop_gap": (("time", "loop"), np.full((time.size, 1), 2e-8)),
        },
        {"time": time, "foot": ["FL", "RL", "FR", "RR"]},
    )


def test_slip_has_a_closed_form():
    # Backward: A sin over 4 half periods, a constant, and one that never is.
    time = np.linspace(0, 2, 20001)
    velocity = np.c_[
        0.3 * np.sin(2 * np.pi * time), np.full(time.size, -0.05), 0 * time + 1
    ]
    backward = 2 * 0.3 / math.pi + 0.05 * 2
    assert slip(time, velocity, 0.5) == pytest.approx(backward / (3 * 0.5), rel=1e-6)


def test_slip_of_loaded_feet_is_the_way_they_slide():
    # One foot slides (3, 4) mm while loaded and 5 mm unloaded; one never carries.
    where = 1e-3 * np.array([[0, 0, 0], [3, 4, 1], [3, 9, 0]], float)
    position = np.stack([where, 2 * where], axis=1)
    normal = np.array([[0.0, 0], [0.2, 0], [0, 0]])
    assert loaded_slip(position, normal, 1.0, 0.05) == pytest.approx(0.05)
    assert loaded_slip(position, 0.0 * normal, 1.0, 0.05) == 0.0
    assert math.isnan(loaded_slip(position, normal, 1.0, 0.0))


def test_slip_without_backward_motion_or_progress():
    time = np.linspace(0, 1, 11)
    assert slip(time, np.ones((11, 4)), 1.0) == 0.0
    assert math.isnan(slip(time, -np.ones((11, 4)), 0.0))
    assert math.isnan(slip(time, -np.ones((11, 4)), -1.0))


@pytest.mark.parametrize("turn", [0.0, TURN, -3.0])
def test_strides_of_a_steady_run(turn):
    data = made_up(turn)
    found = gait_metrics(data, make_waveform("trot", FREQUENCY), MASS)
    period = 1 / FREQUENCY
    chord = SPEED / turn * math.sin(turn * period) if turn else SPEED * period
    assert found["cycles"] == 5
    assert len(found["stride_mm"]) == 5
    assert found["stride_mm_per_cycle"] == pytest.approx(1e3 * chord, rel=1e-9)
    assert found["stride_deviation_mm"] == pytest.approx(0, abs=1e-9)
    expected = math.degrees(turn * period)
    assert found["yaw_deg_per_cycle"] == pytest.approx(expected, abs=1e-9)
    if not turn:
        assert found["x_mm_per_cycle"] == pytest.approx(10.0)
        assert found["y_mm_per_cycle"] == pytest.approx(0, abs=1e-12)


def test_other_metrics_of_a_steady_run():
    found = gait_metrics(made_up(0.0), make_waveform("trot", FREQUENCY), MASS)
    # Five cycles, 0.5 s, 50 mm; per cycle FL slides back 0.05 / (10 pi) m.
    backward = 5 * 0.05 / (FREQUENCY * math.pi) + 0.02 * 0.5
    assert found["slip"] == pytest.approx(backward / (4 * 0.05), rel=1e-3)
    # Loaded, FL slides forward by 0.05 / (10 pi) m a cycle and RL at 0.025 m/s.
    loaded = 5 * 0.05 / (FREQUENCY * math.pi) + 0.025 * 0.5
    assert found["loaded_slip"] == pytest.approx(loaded / (4 * 0.05), rel=0.01)
    assert found["clearance_min_mm"] == pytest.approx(0.2)
    duty = found["duty_factor"]
    assert duty["FL"] == pytest.approx(0.5, abs=0.01)
    assert duty["RR"] == pytest.approx(0.5, abs=0.01)
    assert (duty["RL"], duty["FR"]) == (1.0, 0.0)
    # 0.2 N * 10 mm/s sin^2 less 0.1 N * 1 mm/s.
    assert found["mechanical_power_mW"] == pytest.approx(1.0 - 0.1, rel=1e-9)
    assert found["positive_power_mW"] >= found["mechanical_power_mW"]
    joules = 1e-3 * found["positive_power_mW"] * 0.5
    cost = joules / (MASS * GRAVITY * 0.05)
    assert found["cost_of_transport"] == pytest.approx(cost)
    assert found["peak_voltage_V"] == pytest.approx(202.5)
    assert found["lowest_voltage_V"] == pytest.approx(22.5)
    assert found["loop_gap_max_mm"] == pytest.approx(2e-5)
    assert found["height_mean_mm"] == pytest.approx(12.5, abs=1e-6)
    assert found["apex_rise_mm"] == pytest.approx(0.1)


def testcycle_starts_follow_the_ramp():
    wave = make_waveform("trot", FREQUENCY)
    time = np.arange(1401) / 2000
    starts = cycle_starts(time, wave)
    assert time[starts] == pytest.approx(np.arange(2, 8) / FREQUENCY)


def testcycle_starts_when_samples_do_not_meet_them():
    wave = make_waveform("trot", 7.0)
    time = np.arange(1001) * 1e-3
    starts = cycle_starts(time, wave)
    moments = np.arange(2, 8) / 7.0
    assert np.abs(time[starts] - moments).max() <= 0.5e-3 + 1e-9


def test_no_cycles():
    trot = make_waveform("trot", FREQUENCY)
    assert cycle_starts(np.arange(101) * 1e-3, make_waveform("jump")).size == 0
    assert cycle_starts(np.array([0.0]), trot).size == 0
    # Cut short in the ramp: no stride, but the rest is there.
    short = made_up().isel(time=slice(0, 150))
    found = gait_metrics(short, trot, MASS)
    assert found["cycles"] == 0
    assert "stride_mm_per_cycle" not in found
    assert found["peak_voltage_V"] <= 225


def test_poses_at_the_cycles():
    data = made_up(0.0)
    poses = cycle_poses(data, make_waveform("trot", FREQUENCY))
    assert poses.cycle_time.values == pytest.approx(np.arange(2, 8) / FREQUENCY)
    x = poses.cycle_position.values[:, 0]
    assert np.diff(x) == pytest.approx(SPEED / FREQUENCY)


def test_an_estimate_counts_from_the_first_sample_on():
    """A plan that starts in its first state is estimated nowhere at its start."""
    data = made_up(cycles=1)
    legs = np.full((data.sizes["time"], 4, 3), 0.01)
    estimated = legs + 1e-5
    estimated[0] = 0.0
    found = {"position": legs, "planned": legs, "estimated": estimated}
    by_leg = {f"leg_{k}": (("time", "leg", "axis"), v) for k, v in found.items()}
    metrics = tracking_metrics(data.assign(by_leg), still(), 0.0, MASS)
    assert metrics["estimator_error_mm"] == pytest.approx([1e-2] * 3)
    assert metrics["leg_error_x_mm"] == 0
