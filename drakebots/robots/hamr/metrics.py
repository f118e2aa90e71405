"""Metrics of HAMR's runs: strides, slip and power, and how well a plan was executed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import xarray as xr

from drakebots.core.units import GRAVITY
from drakebots.model import plane_rotation
from drakebots.multibody import Terrain
from drakebots.robots.hamr.gaits import Waveform
from drakebots.robots.hamr.model import BIAS, LEGS, hamr_encoder
from drakebots.robots.hamr.reference import Reference

LOADED = 0.01
"""A foot that carries this fraction of the weight counts as standing."""

_CLIPPED = 1e-6
"""A voltage this close [V] to an end of its range counts as clipped."""


@dataclass(frozen=True)
class Rhythm:
    """Times at which a run's cycles start; a :class:`Waveform` has the same attributes.

    Attributes:
        periodic: whether the motion repeats.
        frequency: cycles per second [Hz].
        ramp: number of cycles to leave out at the start.
    """

    periodic: bool
    frequency: float
    ramp: float


def above_ground(data: xr.Dataset, terrain: Terrain) -> xr.Dataset:
    """The data with base and feet by their heights above the ground, as if flat."""
    moved = {}
    for name in ("base_position", "foot_position"):
        p = moved[name] = data[name].copy()
        p[..., 2] -= terrain.heights(p.values[..., 0], p.values[..., 1])
    return data.assign(moved)


# --- gaits ------------------------------------------------------------------


def slip(times: np.ndarray, foot_velocity_x: np.ndarray, distance: float) -> float:
    """Normalised slip (RSS 2018, eq. (23)).

    s = 1/(n d) sum_i int_{v_i < 0} |v_i| dt, with d the forward distance of
    the body and v_i the forward world velocity of each of n feet.

    Args:
        times: times (T,) [s].
        foot_velocity_x: forward velocities of the feet (T, n) [m/s].
        distance: d [m]; the slip is NaN when it is <= 0.
    """
    if distance <= 0:
        return float("nan")
    backward = np.maximum(-foot_velocity_x, 0.0)
    travelled = np.trapezoid(backward, times, axis=0)
    return float(travelled.sum() / (foot_velocity_x.shape[1] * distance))


def loaded_slip(
    foot_position: np.ndarray, normal: np.ndarray, weight: float, distance: float
) -> float:
    """Normalised slip of loaded feet, in any horizontal direction.

    s = 1/(n d) sum_i sum_k |p_i,k+1 - p_i,k| over the intervals k at whose end foot i
    carries more than :data:`LOADED` of the weight, with p_i the horizontal position
    of foot i of n and d the forward distance of the body. Unlike :func:`slip` it
    counts forward and sideways sliding, and only where a foot presses on the ground.

    Args:
        foot_position: positions of the feet (T, n, 3) [m].
        normal: normal forces (T, n) [N]; of a plan, those of the interval before.
        weight: weight of the robot [N].
        distance: d [m]; the slip is NaN when it is <= 0.
    """
    if distance <= 0:
        return float("nan")
    moved = np.hypot(*np.moveaxis(np.diff(foot_position[..., :2], axis=0), -1, 0))
    slid = np.where(normal[1:] > LOADED * weight, moved, 0.0)
    return float(slid.sum() / (normal.shape[1] * distance))


def clearance_mm(foot_height: np.ndarray, cycles: Sequence[int]) -> float:
    """Least over cycles and feet of the largest height in a cycle [mm].

    Args:
        foot_height: heights above the ground (T, n) [m].
        cycles: samples at which cycles start, and at which the last one ends.
    """
    highest = [foot_height[a : b + 1].max(axis=0) for a, b in pairwise(cycles)]
    return 1e3 * float(np.min(highest))


def gait_metrics(data: xr.Dataset, rhythm: Rhythm | Waveform, mass: float) -> dict:
    """Metrics over the whole cycles after the ramp.

    Args:
        data: dataset with time, base_position, base_rpy, foot_position, foot_velocity,
            foot_force, actuator_force, actuator_velocity, voltage, loop_gap.
        rhythm: rhythm of the motion, or the waveform that was played.
        mass: mass of the robot [kg].

    Returns:
        stride_mm_per_cycle (mean forward distance in the heading each cycle
        starts with) and its deviation, settled_stride_mm (of the last third of the
        cycles), x/y/yaw/z per cycle, slip, loaded_slip,
        clearance_min_mm, duty factors by foot, mechanical power [mW], peak voltage,
        cycles.
    """
    time = data.time.values
    base, rpy = data.base_position.values, data.base_rpy.values
    cycles = cycle_starts(time, rhythm)
    out: dict = {
        "peak_voltage_V": float(data.voltage.max()),
        "lowest_voltage_V": float(data.voltage.min()),
        "loop_gap_max_mm": 1e3 * float(data.loop_gap.max()),
        "apex_rise_mm": _rise_mm(base),
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
    feet, weight = data.foot_position.values, mass * GRAVITY
    normal = data.foot_force.values[span, :, 2]
    share = (normal > LOADED * weight).mean(axis=0)
    return out | {
        "stride_mm_per_cycle": 1e3 * float(forward.mean()),
        "stride_deviation_mm": 1e3 * float(forward.std()),
        "settled_stride_mm": 1e3 * float(forward[-max(1, len(forward) // 3) :].mean()),
        "stride_mm": (1e3 * forward).tolist(),
        "x_mm_per_cycle": 1e3 * float(move[:, 0].mean()),
        "y_mm_per_cycle": 1e3 * float(move[:, 1].mean()),
        "yaw_deg_per_cycle": float(np.degrees(np.diff(rpy[cycles, 2]).mean())),
        "height_mean_mm": 1e3 * float(base[span, 2].mean()),
        "slip": slip(time[span], data.foot_velocity.values[span, :, 0], distance),
        "loaded_slip": loaded_slip(feet[span], normal, weight, distance),
        "clearance_min_mm": clearance_mm(feet[..., 2], cycles),
        "duty_factor": dict(zip(data.foot.values.tolist(), share.tolist())),
        **_power(data.isel(time=span), weight * distance),
    }


def _power(data: xr.Dataset, carried: float) -> dict[str, float | None]:
    """Mechanical power of the actuators; `carried` is weight times distance [N m]."""
    time = data.time.values
    total = (data.actuator_force.values * data.actuator_velocity.values).sum(axis=1)
    seconds = time[-1] - time[0]
    mean = float(np.trapezoid(total, time) / seconds)
    positive = float(np.trapezoid(np.maximum(total, 0), time) / seconds)
    return {
        "mechanical_power_mW": 1e3 * mean,
        "positive_power_mW": 1e3 * positive,
        "cost_of_transport": positive * seconds / carried if carried > 0 else None,
    }


def cycle_poses(data: xr.Dataset, rhythm: Rhythm | Waveform) -> xr.Dataset:
    """The base's pose at the start of every cycle after the ramp."""
    cycles = cycle_starts(data.time.values, rhythm)
    table = data[["base_position", "base_rpy"]].isel(time=cycles)
    names = {"base_position": "cycle_position", "base_rpy": "cycle_rpy"}
    return table.rename(time="cycle_time", **names)


def cycle_starts(time: np.ndarray, rhythm: Rhythm | Waveform) -> np.ndarray:
    """Samples at which the cycles after the ramp start, and at which the last ends."""
    if not rhythm.periodic or len(time) < 2:
        return np.zeros(0, dtype=int)
    first = int(np.ceil(rhythm.ramp))
    last = int(np.floor(time[-1] * rhythm.frequency + 1e-6))
    moments = np.arange(first, last + 1) / rhythm.frequency
    index = np.searchsorted(time, moments - 0.5 * (time[1] - time[0]))
    return np.minimum(index, len(time) - 1)


# --- executed plans ---------------------------------------------------------


def tracking_metrics(
    data: xr.Dataset, plan: Reference, start: float, mass: float
) -> dict:
    """Metrics of an executed plan from when it is fully faded in.

    What :func:`gait_metrics` gives, and

    * leg_error_x_mm, leg_error_z_mm: rms difference of the true legs and the plan's,
      over legs and time; leg_error_mm: by leg, [x, z];
    * estimator_error_mm: rms difference of estimated and true legs at the time an
      estimate is of, [x, y, z]; the controller holds it a sample longer;
    * body_error: see :func:`body_error`;
    * clipped_share: fraction of voltages at an end of their range;
    * apex_rise_mm: rise of the chassis over its height at `start`;
    * planned_stride_mm, planned_apex_rise_mm: the plan's own.

    Args:
        data: dataset of :func:`drakebots.robots.hamr.track.track`.
        plan: the executed plan.
        start: start of the plan, or of its first counted cycle [s].
        mass: mass of the robot [kg].
    """
    rhythm = Rhythm(plan.periodic, 1.0 / plan.duration, round(start / plan.duration))
    out = gait_metrics(data, rhythm, mass)
    part = data.isel(time=np.flatnonzero(data.time.values >= start - 1e-9))
    if not part.sizes["time"]:
        part = data.isel(time=[-1])
    rise = _rise_mm(part.base_position.values)
    if not plan.periodic:
        # Errors count while there is a plan; the apex may come later.
        early = part.time.values <= start + plan.duration + 1e-9
        part = part.isel(time=np.flatnonzero(early))
    error = 1e3 * (part.leg_position - part.leg_planned).values
    by_leg = _rms(error, 0)
    estimated = 1e3 * (part.leg_estimated.values - _legs_when_estimated(part))
    # Before the first sample nothing is known of the legs.
    known = max(1, np.count_nonzero(part.time.values > 0))
    volts = part.voltage.values
    away = plan.base_position[-1] - plan.base_position[0]
    clipped = (volts <= _CLIPPED) | (volts >= BIAS - _CLIPPED)
    return out | {
        "leg_error_x_mm": float(_rms(error[:, :, 0])),
        "leg_error_z_mm": float(_rms(error[:, :, 2])),
        "leg_error_mm": {leg: by_leg[i, [0, 2]].tolist() for i, leg in enumerate(LEGS)},
        "estimator_error_mm": _rms(estimated[-known:], (0, 1)).tolist(),
        "clipped_share": float(clipped.mean()),
        "body_error": body_error(part, plan, start),
        "apex_rise_mm": rise,
        "planned_stride_mm": 1e3 * float(np.hypot(*away[:2])),
        "planned_apex_rise_mm": _rise_mm(plan.base_position),
    }


def body_error(data: xr.Dataset, plan: Reference, start: float) -> dict[str, float]:
    """Rms difference of the chassis' pose and a plan's, by coordinate.

    x, y and yaw are measured from the pose at the start of each cycle, x and y in
    its heading; z, roll and pitch are absolute.

    Args:
        data: dataset with base_position and base_rpy.
        plan: the plan.
        start: start of the plan [s].

    Returns:
        x_mm, y_mm, z_mm, roll_deg, pitch_deg, yaw_deg.
    """
    since = data.time.values - start
    cycle = np.zeros(len(since), dtype=int)
    if plan.periodic:
        cycle = np.floor(since / plan.duration + 1e-6).astype(int)
    moments = np.clip(since - cycle * plan.duration, 0.0, plan.duration)
    planned = plan.poses_at(moments)
    planned = _from_start(planned, np.r_[plan.base_position[0], plan.base_rpy[0]])
    true = np.column_stack([data.base_position.values, data.base_rpy.values])
    errors = []
    for k in np.unique(cycle):
        rows = cycle == k
        errors.append(_from_start(true[rows], true[rows][0]) - planned[rows])
    rms = _rms(np.vstack(errors), 0) * np.r_[3 * [1e3], 3 * [180 / np.pi]]
    names = ("x_mm", "y_mm", "z_mm", "roll_deg", "pitch_deg", "yaw_deg")
    return dict(zip(names, rms.tolist()))


def _from_start(poses: np.ndarray, start: np.ndarray) -> np.ndarray:
    """Poses (T, 6) with x, y and yaw relative to `start`, in its heading."""
    out = poses.copy()
    out[:, :2] = (poses[:, :2] - start[:2]) @ plane_rotation(start[5])
    out[:, 5] = poses[:, 5] - start[5]
    return out


def _legs_when_estimated(data: xr.Dataset) -> np.ndarray:
    """The true legs (T, 4, 3) [m] at the sample that the held estimate is of."""
    time, period = data.time.values, hamr_encoder().period
    # What is logged at a time is from before that time's own update.
    sample = (np.ceil(time / period - 1e-6) - 1) * period
    legs = data.leg_position.values.reshape(len(time), -1).T
    found = np.column_stack([np.interp(sample, time, leg) for leg in legs])
    return found.reshape(-1, 4, 3)


def _rise_mm(position: np.ndarray) -> float:
    return 1e3 * float(position[:, 2].max() - position[0, 2])


def _rms(values: np.ndarray, axis=None):
    return np.sqrt(np.mean(np.square(values), axis=axis))
