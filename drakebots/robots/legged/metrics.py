"""Figures of an executed plan: strides, effort, slip, drift."""

from __future__ import annotations

import numpy as np
import xarray as xr

from drakebots.robots.legged.reference import LOADED, Reference


def track_metrics(data: xr.Dataset, plan: Reference, weight: float) -> dict:
    """Figures of a run in SI.

    Args:
        data: of the run, with base_position, base_rpy, sole_velocity, foot_force,
            input, input_limit and power.
        plan: what was executed, in SI.
        weight: of the robot [N].

    Returns:
        tilt_max_deg, yaw_drift_deg (beyond a planned turn), slip_m (path that loaded
        feet slide), effort (root mean square of the inputs' shares of their limits),
        effort_peak, work_J (of the actuators, without recovery) and cost_of_transport
        (work by weight and path). For a periodic plan also cycles_upright,
        planned_stride_m, stride_m (by cycle), stride_m_per_cycle and stride_share; for
        others end_error_m, how far the base ends from its planned place.
    """
    time, base, rpy = data.time.values, data.base_position.values, data.base_rpy.values
    steps = np.diff(time)
    turn = 0.0 if plan.periodic else plan.turn
    loaded = data.foot_force.values[1:, :, 2] > LOADED * weight
    speed = np.linalg.norm(data.sole_velocity.values[1:, :, :2], axis=2)
    share = np.abs(data.input.values) / np.where(
        data.input_limit.values > 0, data.input_limit.values, np.inf
    )
    work = float(np.trapezoid(data.power.values, time))
    path = float(np.linalg.norm(base[-1, :2] - base[0, :2]))
    out = {
        "tilt_max_deg": float(np.degrees(np.abs(rpy[:, :2]).max())),
        "yaw_drift_deg": float(np.degrees(rpy[-1, 2] - rpy[0, 2] - turn)),
        "slip_m": float((speed * loaded * steps[:, None]).sum()),
        "effort": float(np.sqrt((share**2).mean())),
        "effort_peak": float(share.max(initial=0.0)),
        "work_J": work,
        "cost_of_transport": work / (weight * path) if path > 0 else 0.0,
    }
    if not plan.periodic:
        missed = base[-1] - base[0] - (plan.base[-1] - plan.base[0])
        return out | {"end_error_m": float(np.linalg.norm(missed))}
    return out | _strides(time, base[:, 0], plan)


def _strides(time: np.ndarray, x: np.ndarray, plan: Reference) -> dict:
    """The advance of the base in each whole cycle."""
    whole = int(time[-1] / plan.duration + 1e-6)
    strides = np.diff(np.interp(plan.duration * np.arange(whole + 1), time, x))
    planned = float(plan.base[-1, 0] - plan.base[0, 0])
    mean = float(strides.mean()) if whole else 0.0
    return {
        "period_s": plan.duration,
        "cycles_upright": whole,
        "planned_stride_m": planned,
        "stride_m": strides.tolist(),
        "stride_m_per_cycle": mean,
        "stride_share": mean / planned if planned else 0.0,
    }
