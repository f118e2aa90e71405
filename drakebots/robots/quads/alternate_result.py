"""The outcome of an alternation, with all its stages.

Variables over time are those of the best pass of frames (see
:class:`~drakebots.robots.quads.frames.plan.FrameLog`), and of the space-time motion
it followed: planned_position, planned_velocity, planned_torque, planned_com,
planned_cop, planned_cop_margin, and what was asked: desired_com, desired_foot,
desired_heading, contact. Over (stage, plan_time), every stage in turn: stage_position,
stage_com, stage_cop, stage_cop_margin, stage_torque; NaN where a pass ended early.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
import xarray as xr

from drakebots.core.run import Verdict
from drakebots.results import Result
from drakebots.results import provenance as made_from
from drakebots.robots.quads.space_time import SpaceTimePlan

if TYPE_CHECKING:
    from drakebots.robots.quads.alternate import Alternation

STAGED = ("position", "com", "cop", "cop_margin", "torque")
ASKED = ("desired_com", "desired_foot", "desired_heading", "foot_position", "contact")
PLANNED = ("position", "velocity", "torque", "com", "cop", "cop_margin", "foot_force")


@dataclass(frozen=True, eq=False)
class Stage:
    """One iteration.

    Attributes:
        plan: of the space-time step.
        frames: the pass that followed it.
        reached: its positions on Euler coordinates (n, nv).
        difference: between the two; NaN when the pass ended early.
    """

    plan: SpaceTimePlan = field(repr=False)
    frames: Result = field(repr=False)
    reached: np.ndarray = field(repr=False)
    difference: float

    @cached_property
    def planned(self) -> Result:
        """The space-time step, at every frame."""
        return self.plan.result()

    def usable(self, away: float) -> int:
        """Rows of the pass before it left the motion by so much."""
        far = np.flatnonzero(self.frames.data.follow_error.values > away)
        return int(far[0]) if far.size else len(self.reached)

    def report(self) -> dict[str, object]:
        """For the result's metrics."""
        plan, frames = self.planned, self.frames
        n = len(frames.data.time)
        margin = frames.data.get("cop_margin")
        torque = frames.data.get("torque")
        return {
            "space_time": str(plan.verdict),
            "space_time_message": plan.message,
            "space_time_s": float(sum(plan.timings.values())),
            "space_time_cop_margin_m": float(plan.metrics["cop_margin"]),
            "space_time_peak_torque_N_m": float(plan.metrics["peak_torque"]),
            "frames": str(frames.verdict),
            "frames_message": frames.message,
            "frames_s": float(sum(frames.timings.values())),
            "frames_reached": n - 1,
            "frames_cop_margin_m": least(margin),
            "frames_cop_dropped": int(frames.metrics.get("frames_with_cop_dropped", 0)),
            "frames_peak_torque_N_m": np.nan
            if torque is None
            else float(np.abs(torque.values).max()),
            "difference": float(self.difference),
        }


def least(values: xr.DataArray | None) -> float:
    """Smallest number; NaN without one."""
    if values is None or not np.isfinite(values.values).any():
        return np.nan
    return float(np.nanmin(values.values))


def best_stage(stages: list[Stage]) -> Stage:
    """The whole pass with the smallest difference, or the longest one."""
    whole = [s for s in stages if s.frames.ok]
    if whole:
        return min(whole, key=lambda s: s.difference)
    return max(stages, key=lambda s: len(s.reached))


def alternation_result(
    problem: Alternation,
    stages: list[Stage],
    verdict: Verdict,
    message: str,
    record: Mapping | None,
    seconds: float,
) -> Result:
    """All stages as one result."""
    best = best_stage(stages)
    planned, frames = best.planned.data, best.frames.data
    n = len(frames.time)
    data = frames.copy()
    for name in PLANNED:
        data[f"planned_{name}"] = planned[name].isel(time=slice(n)).variable
    for name in ASKED:
        data[name] = planned[name].isel(time=slice(n)).variable
    data = data.assign_coords(plane_axis=planned.plane_axis.variable)
    data["torque_limit"] = planned.torque_limit.variable
    data = _staged(data, stages)
    data.attrs["system"] = "skinned"
    robot, motion = problem.robot, problem.motion
    timings = {"load and check": seconds}
    for k, stage in enumerate(stages, 1):
        timings[f"space-time {k}"] = float(sum(stage.planned.timings.values()))
        timings[f"frames {k}"] = float(sum(stage.frames.timings.values()))
    timings["load and check"] -= sum(timings.values()) - seconds
    way = frames.com.values[-1, :2] - frames.com.values[0, :2]
    time = float(frames.time.values[-1])
    metrics = {
        **best.frames.metrics,
        "system": "skinned",
        "motion": motion.name,
        "period": motion.period or "none",
        "turn": motion.turn,
        "iterations": len(stages),
        "best_iteration": stages.index(best) + 1,
        "difference": float(best.difference),
        "desired_speed_m_s": motion.speed,
        "speed_m_s": float(np.linalg.norm(way)) / time if time else 0.0,
        "peak_torque_share": _share(data, best),
        "cop_margin_m": least(data.get("cop_margin")),
        "mass_kg": robot.mass,
        "friction": problem.friction,
        "stages": [stage.report() for stage in stages],
    }
    options = {
        "motion": motion.name,
        "weights": asdict(problem.weights),
        "frames": asdict(problem.frames),
        **{
            name: getattr(problem, name)
            for name in (
                *("growth", "tolerance", "max_iterations", "friction", "cop_share"),
                *("stride", "base", "ignore_skin", "solver"),
            )
        },
    }
    return Result(
        kind="quads.plan",
        model=robot.name,
        verdict=verdict,
        message=message,
        data=data,
        residuals=dict(best.frames.residuals),
        timings=timings,
        metrics=metrics,
        provenance=made_from(robot.files, options | dict(record or {})),
    )


def _share(data, best) -> float:
    if "torque" not in data:
        return np.nan
    return float(np.max(np.abs(data.torque.values) / best.plan.problem.limits))


def _staged(data: xr.Dataset, stages: list[Stage]) -> xr.Dataset:
    """Adds the stages over (stage, plan_time), all frames of the motion."""
    names: list[str] = []
    rows: dict[str, list] = {name: [] for name in STAGED}
    motion = stages[0].planned.data
    n = motion.sizes["time"]
    for k, stage in enumerate(stages, 1):
        names += [f"space-time {k}", f"frames {k}"]
        for source in (stage.planned.data, stage.frames.data):
            for name in STAGED:
                if name in source:
                    rows[name].append(_fitted(source[name].values, n))
                else:
                    rows[name].append(np.full_like(rows[name][-1], np.nan))
    times = ("plan_time", motion.time.values, {"units": "s"})
    data = data.assign_coords(stage=names, plan_time=times)
    for name, values in rows.items():
        like = data[f"planned_{name}"]
        dims = ("stage", "plan_time", *like.dims[1:])
        data[f"stage_{name}"] = (dims, np.array(values), like.attrs)
    contact = motion.contact
    data["stage_contact"] = (("plan_time", "foot"), contact.values, contact.attrs)
    return data


def _fitted(values: np.ndarray, n: int) -> np.ndarray:
    out = np.full((n, *values.shape[1:]), np.nan)
    count = min(n, len(values))
    out[:count] = values[:count]
    return out
