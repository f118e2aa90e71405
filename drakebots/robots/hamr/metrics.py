"""What a HAMR run is judged by."""

from __future__ import annotations

import numpy as np
import xarray as xr

from drakebots.robots.hamr.gaits import Waveform

GRAVITY = 9.81


def slip(times: np.ndarray, foot_velocity_x: np.ndarray, distance: float) -> float:
    """Normalised slip (RSS 2018, eq. (23)).

    s = 1/(n d) sum_i int_{v_i < 0} |v_i| dt, with d the forward distance of
    the body and v_i the forward world velocity of each of n feet.

    Args:
        times: (T,) [s].
        foot_velocity_x: (T, n) [m/s].
        distance: d [m]; not a number comes back when it is <= 0.
    """
    if distance <= 0:
        return float("nan")
    backward = np.maximum(-foot_velocity_x, 0.0)
    travelled = np.trapezoid(backward, times, axis=0)
    return float(travelled.sum() / (foot_velocity_x.shape[1] * distance))


def gait_metrics(data: xr.Dataset, waveform: Waveform, mass: float) -> dict:
    """Metrics over the whole cycles after the ramp.

    Args:
        data: with time, base_position, base_rpy, foot_velocity, foot_force,
            actuator_force, actuator_velocity, voltage.
        waveform: that was played.
        mass: of the robot [kg].

    Returns:
        stride_mm_per_cycle (mean forward distance in the heading each cycle
        starts with) and its deviation, x/y/yaw/z per cycle, slip, duty
        factors by foot, mechanical power [mW], peak voltage, cycles.
    """
    time = data.time.values
    base, rpy = data.base_position.values, data.base_rpy.values
    cycles = _cycle_starts(time, waveform)
    out: dict = {
        "peak_voltage_V": float(data.voltage.max()),
        "lowest_voltage_V": float(data.voltage.min()),
        "loop_gap_max_mm": 1e3 * float(data.loop_gap.max()),
        "apex_rise_mm": 1e3 * float(base[:, 2].max() - base[0, 2]),
        "cycles": max(len(cycles) - 1, 0),
    }
    if len(cycles) < 2:
        return out
    starts = cycles[:-1]
    move = np.diff(base[cycles], axis=0)
    yaw = rpy[starts, 2]
    forward = move[:, 0] * np.cos(yaw) + move[:, 1] * np.sin(yaw)
    span = slice(cycles[0], cycles[-1] + 1)
    distance = float(base[cycles[-1], 0] - base[cycles[0], 0])
    normal = data.foot_force.values[span, :, 2]
    power = data.actuator_force.values[span] * data.actuator_velocity.values[span]
    total = power.sum(axis=1)
    seconds = time[cycles[-1]] - time[cycles[0]]
    mean_power = float(np.trapezoid(total, time[span]) / seconds)
    positive = float(np.trapezoid(np.maximum(total, 0), time[span]) / seconds)
    # A foot that carries a hundredth of the weight stands.
    standing = normal > 0.01 * mass * GRAVITY
    out |= {
        "stride_mm_per_cycle": 1e3 * float(forward.mean()),
        "stride_deviation_mm": 1e3 * float(forward.std()),
        "stride_mm": (1e3 * forward).tolist(),
        "x_mm_per_cycle": 1e3 * float(move[:, 0].mean()),
        "y_mm_per_cycle": 1e3 * float(move[:, 1].mean()),
        "yaw_deg_per_cycle": float(np.degrees(np.diff(rpy[cycles, 2]).mean())),
        "height_mean_mm": 1e3 * float(base[span, 2].mean()),
        "slip": slip(time[span], data.foot_velocity.values[span, :, 0], distance),
        "duty_factor": dict(
            zip(data.foot.values.tolist(), standing.mean(axis=0).tolist())
        ),
        "mechanical_power_mW": 1e3 * mean_power,
        "positive_power_mW": 1e3 * positive,
        "cost_of_transport": (
            positive * seconds / (mass * GRAVITY * distance) if distance > 0 else None
        ),
    }
    return out


def cycle_poses(data: xr.Dataset, waveform: Waveform) -> xr.Dataset:
    """The base's pose at the start of every cycle after the ramp."""
    cycles = _cycle_starts(data.time.values, waveform)
    table = data[["base_position", "base_rpy"]].isel(time=cycles)
    return table.rename(
        time="cycle_time", base_position="cycle_position", base_rpy="cycle_rpy"
    )


def _cycle_starts(time: np.ndarray, waveform: Waveform) -> np.ndarray:
    """Samples at which the cycles after the ramp start and the last one ends."""
    if not waveform.periodic or len(time) < 2:
        return np.zeros(0, dtype=int)
    first = int(np.ceil(waveform.ramp))
    last = int(np.floor(time[-1] * waveform.frequency + 1e-6))
    moments = np.arange(first, last + 1) / waveform.frequency
    index = np.searchsorted(time, moments - 0.5 * (time[1] - time[0]))
    return np.minimum(index, len(time) - 1)
