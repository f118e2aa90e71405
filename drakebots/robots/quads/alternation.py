"""The alternation of space-time and step-by-step planning: its problem and its result.

In a result of kind "quads.plan" the variables over time are those of the best
step-by-step plan (see :mod:`~drakebots.robots.quads.frames.plan`), of the space-time
motion that it followed (planned_position, planned_velocity, planned_torque,
planned_com, planned_cop, planned_cop_margin) and of the requested motion (desired_com,
desired_foot, desired_heading, contact). Over (stage, plan_time) there are
stage_position, stage_com, stage_cop, stage_cop_margin and stage_torque of all stages in
turn; they are NaN where a plan ended early.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from functools import cached_property

import numpy as np
import xarray as xr

from drakebots.core.checks import (
    MOST_THREADS,
    check,
    check_types,
    non_negative,
    optional,
    positive,
    whole,
)
from drakebots.core.run import Verdict
from drakebots.core.stages import spent
from drakebots.model import model_provenance
from drakebots.results import Result
from drakebots.robots.quads.frames import FrameOptions
from drakebots.robots.quads.motion import MotionInput
from drakebots.robots.quads.robot import PlannedRobot, SkinInfluence
from drakebots.robots.quads.space_time import SpaceTime, SpaceTimePlan, Weights

GROWTH = 0.1
"""Relative growth of the weight `follow` per iteration (section 5.1)."""

FLAT = 100.0
"""Weight of E_O in the space-time program, in place of the paper's 10: lengths are
measured in cm there. With 10, loaded soles tilt by 6 degrees, their edges 5 mm below
the ground, which the step-by-step plan does not allow."""


@dataclass(frozen=True, kw_only=True)
class PlanOptions:
    """Options of a plan, whatever the motion.

    Attributes:
        cop_share: share of each sole that its COP may use in the space-time program.
        tolerance: largest difference of both motions at which to stop.
        max_iterations: largest number of iterations of the alternation.
        min_iterations: minimum number of iterations of the alternation.
        knot_spacing: number of time steps from knot to knot of the space-time program.
        base: let the skin's forces also act on the momentum of the base in the
            space-time program.
        ignore_skin: leave the skin out of the space-time program (Fig. 13c).
        threads: number of threads of the sparse solver.
        time_limit: limit of the wall time [s]; the best plan so far is kept.

    Raises:
        InvalidInput: for a value out of range.
    """

    cop_share: float = 0.9
    tolerance: float = 0.02
    max_iterations: int = 3
    min_iterations: int = 1
    knot_spacing: int = 5
    base: bool = False
    ignore_skin: bool = False
    threads: int = 1
    time_limit: float | None = None

    def __post_init__(self):
        check(
            self,
            "",
            tolerance=non_negative(),
            max_iterations=whole(1),
            min_iterations=whole(1),
            knot_spacing=whole(1),
            threads=whole(1, MOST_THREADS),
            time_limit=optional(positive("s")),
        )


@dataclass(frozen=True)
class Alternation(PlanOptions):
    """A motion to plan with skin.

    Attributes:
        robot: the robot in both forms.
        motion: the requested motion.
        weights: weights of the space-time program.
        frames: options of the step-by-step plan.
        growth: relative growth of the weight `follow` per iteration.
        friction: coefficient of friction in the space-time program; should not exceed
            `frames.friction`.
        torque_limits: torque limits of some joints, in place of the model's [N m].
        fall: deviation from the reference that ends a step-by-step plan [rad or m].
        skin_every: number of steps between stored shapes of the skin.
        solver: solver of the space-time program.
        solver_options: options of that solver.

    Raises:
        InvalidInput: for a value out of range.
        UnknownName: for an unknown joint.
    """

    robot: PlannedRobot
    motion: MotionInput
    weights: Weights = field(default_factory=lambda: Weights(flat=FLAT))
    frames: FrameOptions = field(default_factory=FrameOptions)
    growth: float = GROWTH
    friction: float = 0.7
    torque_limits: Mapping[str, float] = field(default_factory=dict)
    fall: float = 0.5
    skin_every: int = 10
    solver: str = "exact"
    solver_options: Mapping[str, float | str] = field(default_factory=dict)

    def __post_init__(self):
        check_types(self, "alternation")
        super().__post_init__()
        check(self, "", growth=non_negative(), fall=positive("rad or m"))
        check(self, "", min_iterations=whole(1, self.max_iterations))
        check(self, "", skin_every=whole(0))
        self.program()  # checks the other fields

    def program(
        self,
        iteration: int = 0,
        influence: SkinInfluence | None = None,
        follow: np.ndarray | None = None,
        *,
        stiff: bool = True,
    ) -> SpaceTime:
        """The space-time problem of an iteration, counted from 0.

        Args:
            iteration: number of the iteration.
            influence: effect of the deforming skin.
            follow: motion to follow (N, nv).
            stiff: whether the program knows the skin's stiffness.
        """
        skin = None if self.ignore_skin else self.robot.link_skin
        if skin is not None and not stiff:
            skin = replace(skin, stiffness=None)
        rise = (1 + self.growth) ** iteration
        return SpaceTime(
            self.robot.quad,
            self.motion,
            skin=skin,
            influence=influence,
            follow=follow,
            weights=replace(self.weights, follow=self.weights.follow * rise),
            friction=self.friction,
            cop_share=self.cop_share,
            knot_spacing=self.knot_spacing,
            torque_limits=self.torque_limits,
        )

    @property
    def limits(self) -> np.ndarray:
        """Torque limits (m,) [N m]."""
        return self.program().limits


# --- stages and the result ---------------------------------------------------

STAGED = ("position", "com", "cop", "cop_margin", "torque")
DESIRED = ("desired_com", "desired_foot", "desired_heading", "foot_position", "contact")
PLANNED = ("position", "velocity", "torque", "com", "cop", "cop_margin", "foot_force")


@dataclass(frozen=True, eq=False)
class Stage:
    """One iteration: a space-time plan, then a step-by-step plan.

    Attributes:
        plan: the space-time plan.
        frames: the step-by-step plan that follows it.
        reached: positions of the latter in Euler coordinates (n, nv).
        difference: difference of both motions; NaN if the latter ended early.
    """

    plan: SpaceTimePlan = field(repr=False)
    frames: Result = field(repr=False)
    reached: np.ndarray = field(repr=False)
    difference: float

    @cached_property
    def planned(self) -> Result:
        """The space-time plan at every step."""
        return self.plan.result()

    def usable(self, deviation: float) -> int:
        """Number of steps before the deviation from the motion exceeds this."""
        far = np.flatnonzero(self.frames.data.follow_error.values > deviation)
        return int(far[0]) if far.size else len(self.reached)

    def report(self) -> dict[str, object]:
        """Summary for the metrics of the result."""
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
            "frames_cop_margin_m": _least(margin),
            "frames_cop_dropped": int(frames.metrics.get("frames_with_cop_dropped", 0)),
            "frames_peak_torque_N_m": np.nan
            if torque is None
            else float(np.abs(torque.values).max()),
            "difference": float(self.difference),
        }


def _least(values: xr.DataArray | None) -> float:
    """Smallest finite value; NaN if there is none."""
    if values is None or not np.isfinite(values.values).any():
        return np.nan
    return float(np.nanmin(values.values))


def best_stage(stages: list[Stage]) -> Stage:
    """The complete stage with the smallest difference, else the longest one."""
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
) -> Result:
    """All stages as one result of kind "quads.plan"."""
    best = best_stage(stages)
    planned, frames = best.planned.data, best.frames.data
    n = len(frames.time)
    data = frames.copy()
    for name in PLANNED:
        data[f"planned_{name}"] = planned[name].isel(time=slice(n)).variable
    for name in DESIRED:
        data[name] = planned[name].isel(time=slice(n)).variable
    data = data.assign_coords(plane_axis=planned.plane_axis.variable)
    data["torque_limit"] = planned.torque_limit.variable
    data = _staged(data, stages)
    data.attrs["system"] = "skinned"
    robot, motion = problem.robot, problem.motion
    displacement = frames.com.values[-1, :2] - frames.com.values[0, :2]
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
        "speed_m_s": float(np.linalg.norm(displacement)) / time if time else 0.0,
        "peak_torque_share": _share(data, best),
        "cop_margin_m": _least(data.get("cop_margin")),
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
                *("knot_spacing", "base", "ignore_skin", "solver"),
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
        timings=spent(),
        metrics=metrics,
        provenance=model_provenance(
            robot.skinned.model, options | dict(record or {}), files=robot.files
        ),
    )


def _share(data, best) -> float:
    if "torque" not in data:
        return np.nan
    return float(np.max(np.abs(data.torque.values) / best.plan.problem.limits))


def _staged(data: xr.Dataset, stages: list[Stage]) -> xr.Dataset:
    """Adds the stages over (stage, plan_time), with all steps of the motion."""
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
