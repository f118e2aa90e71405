"""How well a plan was executed: the dataset of a run, and its figures."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import xarray as xr

from drakebots.robots.hamr.metrics import gait_metrics
from drakebots.robots.hamr.model import LEGS, hamr_encoder
from drakebots.robots.hamr.simulate import run_dataset
from drakebots.robots.hamr.track.reference import BODY, Reference

_CLIPPED = 1e-6
"""A voltage this close [V] to an end of its range counts as clipped."""


@dataclass(frozen=True)
class _Rhythm:
    """What :func:`gait_metrics` asks of a waveform."""

    periodic: bool
    period: float
    ramp: float

    @property
    def frequency(self) -> float:
        return 1.0 / self.period


def tracking_dataset(built, context) -> xr.Dataset:
    """All that a run logged, in SI, planned beside executed and estimated.

    Beyond what :func:`run_dataset` has, in the chassis frame (time, leg, axis):
    leg_position, leg_planned, leg_estimated, leg_seen (the held frame) [m],
    leg_velocity_planned, leg_velocity_estimated [m/s], and voltage_planned.

    Args:
        built: a TrackingDiagram.
        context: of its diagram.
    """
    data = run_dataset(built, context)
    robot, unit = built.robot, built.robot.scaling
    # The base's six coordinates are the pose; with base "euler" the first body
    # in Drake's order, which a dataset takes for the base, is a leg's.
    position = data.position.values
    names = data.coordinate.values.tolist()
    base = {
        key: position[:, names.index(f"hamr_{BODY}_{key}")]
        for key in ("x", "y", "z", "roll", "pitch", "yaw")
    }
    place = np.column_stack([base[key] for key in "xyz"])
    angles = np.column_stack([base[key] for key in ("roll", "pitch", "yaw")])
    data["base_position"] = (("time", "axis"), place, {"units": "m"})
    data["base_rpy"] = (("time", "angle"), np.unwrap(angles, axis=0), {"units": "rad"})

    times = data.time.values
    plant_context, legs = robot.plant.CreateDefaultContext(), []
    for q in position / robot.position_units():
        robot.plant.SetPositions(plant_context, q)
        legs.append(robot.points_positions(plant_context, BODY))
    commands = [built.command.legs(t) for t in times]
    rows = {
        "leg_position": (np.array(legs), "m"),
        "leg_planned": (np.array([where for where, _ in commands]), "m"),
        "leg_velocity_planned": (np.array([rate for _, rate in commands]), "m/s"),
    }
    log_times, _ = built.logged(context, "state")
    keep = np.searchsorted(log_times * unit.time, times - 1e-12)
    for name, logger, units in (
        ("leg_estimated", "estimate", "m"),
        ("leg_velocity_estimated", "estimate_velocity", "m/s"),
        ("leg_seen", "frames", "m"),
    ):
        _, samples = built.logged(context, logger)
        rows[name] = (samples[keep].reshape(-1, 4, 3), units)
    for name, (values, units) in rows.items():
        data[name] = (("time", "leg", "axis"), values, {"units": units})
    voltages = np.array([built.command.voltages(t) for t in times])
    data["voltage_planned"] = (("time", "actuator"), voltages, {"units": "V"})
    return data.assign_coords(leg=list(LEGS))


def tracking_metrics(
    data: xr.Dataset, plan: Reference, start: float, mass: float
) -> dict:
    """Figures of a run from when the plan is fully faded in.

    What :func:`gait_metrics` gives, and

    * leg_error_x_mm, leg_error_z_mm: rms of the true legs against the plan,
      over legs and time; leg_error_mm by leg, [x, z];
    * estimator_error_mm: rms of estimated against true legs at the moment an
      estimate is of, [x, y, z]; the controller holds it a sample longer;
    * body_error: rms of the chassis' pose against the plan's, x, y (in the
      heading each cycle starts with), z [mm], roll, pitch, yaw [deg];
    * clipped_share: of voltages at an end of their range;
    * apex_rise_mm: of the chassis over where it was at `start`;
    * planned_stride_mm, planned_apex_rise_mm: what the plan has.

    Args:
        data: of :func:`tracking_dataset`.
        plan: that was executed.
        start: when the plan, or its first counted cycle, begins [s].
        mass: of the robot [kg].
    """
    ramp = round(start / plan.duration)
    out = gait_metrics(data, _Rhythm(plan.periodic, plan.duration, ramp), mass)
    part = data.isel(time=np.flatnonzero(data.time.values >= start - 1e-9))
    if not part.sizes["time"]:
        part = data.isel(time=[-1])
    rise = _rise(part.base_position.values)
    if not plan.periodic:
        # Errors count while there is a plan; the apex may come later.
        early = part.time.values <= start + plan.duration + 1e-9
        part = part.isel(time=np.flatnonzero(early))
    error = 1e3 * (part.leg_position - part.leg_planned).values
    by_leg = _rms(error, 0)
    guess = 1e3 * (part.leg_estimated.values - _when_estimated(part))
    volts = part.voltage.values
    away = plan.base_position[-1] - plan.base_position[0]
    clipped = (volts <= _CLIPPED) | (volts >= 225.0 - _CLIPPED)
    out |= {
        "leg_error_x_mm": float(_rms(error[:, :, 0])),
        "leg_error_z_mm": float(_rms(error[:, :, 2])),
        "leg_error_mm": {leg: by_leg[i, [0, 2]].tolist() for i, leg in enumerate(LEGS)},
        "estimator_error_mm": _rms(guess, (0, 1)).tolist(),
        "clipped_share": float(clipped.mean()),
        "body_error": body_error(part, plan, start),
        "apex_rise_mm": rise,
        "planned_stride_mm": 1e3 * float(np.hypot(*away[:2])),
        "planned_apex_rise_mm": _rise(plan.base_position),
    }
    return out


def body_error(data: xr.Dataset, plan: Reference, start: float) -> dict[str, float]:
    """Rms of the chassis' pose against a plan's, by coordinate.

    Each cycle starts where the robot is: x, y and yaw are counted from there,
    x and y in the heading it has there. z, roll and pitch are as they are.

    Args:
        data: with base_position and base_rpy.
        plan: a Reference.
        start: moment the plan starts [s].

    Returns:
        x_mm, y_mm, z_mm, roll_deg, pitch_deg, yaw_deg.
    """
    since = data.time.values - start
    cycle = np.zeros(len(since), dtype=int)
    if plan.periodic:
        cycle = np.floor(since / plan.duration + 1e-6).astype(int)
    moments = np.clip(since - cycle * plan.duration, 0.0, plan.duration)
    wanted = np.column_stack(
        [
            np.interp(moments, plan.time, column)
            for column in np.column_stack([plan.base_position, plan.base_rpy]).T
        ]
    )
    wanted = _from_start(wanted, np.r_[plan.base_position[0], plan.base_rpy[0]])
    true = np.column_stack([data.base_position.values, data.base_rpy.values])
    errors = []
    for k in np.unique(cycle):
        rows = cycle == k
        errors.append(_from_start(true[rows], true[rows][0]) - wanted[rows])
    rms = _rms(np.vstack(errors), 0) * np.r_[3 * [1e3], 3 * [180 / np.pi]]
    names = ("x_mm", "y_mm", "z_mm", "roll_deg", "pitch_deg", "yaw_deg")
    return dict(zip(names, rms.tolist()))


def _from_start(poses: np.ndarray, start: np.ndarray) -> np.ndarray:
    """Poses (T, 6) with x, y and yaw counted from `start`, in its heading."""
    out, (c, s) = poses.copy(), (np.cos(start[5]), np.sin(start[5]))
    out[:, :2] = (poses[:, :2] - start[:2]) @ np.array([[c, -s], [s, c]])
    out[:, 5] = poses[:, 5] - start[5]
    return out


def _when_estimated(data: xr.Dataset) -> np.ndarray:
    """The true legs (T, 4, 3) [m] at the sample the held estimate is of."""
    time, period = data.time.values, hamr_encoder().period
    # What is logged at a moment is from before that moment's own update.
    sample = (np.ceil(time / period - 1e-6) - 1) * period
    legs = data.leg_position.values.reshape(len(time), -1).T
    return np.column_stack([np.interp(sample, time, leg) for leg in legs]).reshape(
        -1, 4, 3
    )


def _rise(position: np.ndarray) -> float:
    return 1e3 * float(position[:, 2].max() - position[0, 2])


def _rms(values: np.ndarray, axis=None):
    return np.sqrt(np.mean(np.square(values), axis=axis))
