"""Plans a motion of a skinned quad-robot, as `drakebots plan` does: the paper's Fig. 2.

    result = plan(Problem(model="beetle", motion="walk"))

    space-time, the skin as mass on the links (5.4) ──▶ q
    ┌─▶ step by step with the skin (5.2) ──▶ q~, coupling forces, COM shifts
    │        |q~ - q| < tolerance: done
    └── space-time with these, with a tenth more weight on following q~ (5.1)

The first program also knows the skin's stiffness at rest
(:func:`~drakebots.robots.quads.robot.planned_robot.joint_stiffness`). Where the
step-by-step plan comes no nearer to it than the tolerance, the alternation starts again
without it, as in the paper: a skin that turns far is softer than at rest.

The difference |q~ - q| is the root mean square over steps and coordinates, with angles
in rad and lengths in units of 0.1 m. The paper gives no norm and no tolerance.

In a result of kind "quads.plan" the variables over time are those of the best
step-by-step plan (see :mod:`~drakebots.robots.quads.steps.plan`), of the space-time
motion that it followed (planned_position, planned_velocity, planned_torque,
planned_com, planned_cop, planned_cop_margin) and of the requested motion (desired_com,
desired_foot, desired_heading, contact). Over (stage, plan_time) there are
stage_position, stage_com, stage_cop, stage_cop_margin and stage_torque of all stages in
turn; they are NaN where a plan ended early.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import xarray as xr
from scipy.ndimage import uniform_filter1d

from drakebots.core.convert import as_yaml
from drakebots.core.files import check_output
from drakebots.core.run import Progress, Verdict, ended_by
from drakebots.core.stages import spent, stage, timed
from drakebots.results import Result
from drakebots.robots.quads.problem import Problem
from drakebots.robots.quads.robot import (
    PlannedRobot,
    SkinInfluence,
    carried_forces,
    moving_state,
)
from drakebots.robots.quads.space_time import (
    SpaceTimePlan,
    motion_at_steps,
    plan_space_time,
)
from drakebots.robots.quads.steps import (
    StepPlanner,
    StepsProblem,
    make_planner,
    plan_steps,
)
from drakebots.skin import skin_collisions
from drakebots.trajopt import Add
from drakebots.trajopt.solvers import Clock, check_solver

FALL = 0.5
"""Deviation from the reference that ends a step-by-step plan [rad, m]."""

LATE = 1e-3
"""Time that is left for solvers after the time limit [s]."""


@timed("load and check")
def plan(
    problem: Problem = Problem(),
    *,
    path: str | Path | None = None,
    progress: Progress | None = None,
    solver: str = "exact",
    add: Add | None = None,
) -> Result:
    """Plans a motion.

    Args:
        problem: the problem.
        path: file to save the result to, atomically, also after every iteration.
        progress: called with the stage, the iterations or the time [s] done, and the
            end.
        solver: solver of the space-time program, one of
            :data:`drakebots.trajopt.solvers.SOLVERS`.
        add: adds terms of your own to the space-time program of every iteration; see
            :mod:`~drakebots.trajopt.plan_program`.

    Returns:
        The best step-by-step plan with the motion it followed and all stages, of kind
        "quads.plan". It failed if no iteration meets the tolerance; Ctrl-C and the time
        limit leave the best so far. Where they end the first space-time program, that
        is its best iterate, of kind "quads.space_time".

    Raises:
        DrakebotsError: for a robot or a motion that cannot be planned, and for an
            unknown solver, before solving.
        FileProblem: when the path cannot be written.
    """
    if path is not None:
        check_output(path)
    check_solver(solver)
    run = _Run(problem, path, progress, solver=solver, add=add)
    try:
        run.alternate()
    except KeyboardInterrupt as error:
        if run.plan is None:
            raise
        run.end = ended_by(error)
    result = run.result()
    if path is not None:
        result.save(path)
    return result


class _Run:
    """One alternation: its stages so far, and how it ended.

    Its arguments are those of :func:`plan`.

    Attributes:
        stages: iterations that are complete.
        plan: the last space-time plan; None before the first.
        end: verdict and message; FAILED to go on if iterations are left.
    """

    def __init__(self, problem: Problem, path, progress: Progress | None, **how: Any):
        self.problem, self.path, self.progress = problem, path, progress
        self.how = how
        self.robot = problem.robot
        self.clock = Clock(problem.time_limit)
        self.planner = step_planner(problem)
        self.stages: list[Stage] = []
        self.plan: SpaceTimePlan | None = None
        self.end = Verdict.FAILED, ""

    def alternate(self) -> None:
        """Iterates until both motions agree, or iterations or time are spent."""
        options, limit = self.problem.alternation, self.problem.time_limit
        influence = follow = warm = None
        stiff = not options.ignore_skin
        for k in range(options.most):
            with stage(f"space-time {k + 1}"):
                self.plan = self._space_time(k, influence, follow, warm, stiff)
            warm = self.plan
            if warm.solution.verdict in (Verdict.INTERRUPTED, Verdict.TIME_LIMIT):
                self.end = warm.solution.verdict, warm.solution.message
                return
            with stage(f"steps {k + 1}"):
                done = self._steps(k)
            self.stages.append(done)
            self.end = _judge(self.problem, self.stages)
            if self.path is not None:
                plan_result(self.problem, self.stages, *self.end).save(self.path)
            if self.end[0] is not Verdict.FAILED:
                return
            if self._left() == LATE:
                message = f"stopped at the time limit of {limit:g} s"
                self.end = Verdict.TIME_LIMIT, message
                return
            if k == 0 and stiff and not done.difference <= options.tolerance:
                stiff, warm = False, None
                continue
            reached, motion = done.usable(FALL / 2), motion_at_steps(warm)
            if not options.ignore_skin:
                influence = skin_influence(
                    self.robot,
                    done.steps,
                    motion,
                    reached=reached,
                    window=self.problem.space_time.knot_spacing,
                    base=options.base,
                    stiff=stiff,
                )
            follow = np.array(motion[0])
            follow[:reached] = done.reached[:reached]

    def result(self) -> Result:
        """All stages; before the first is complete, the space-time plan."""
        verdict, message = self.end
        if not self.stages:
            found = self.plan.result()
            return replace(found, verdict=verdict, message=message, timings=spent())
        if verdict is Verdict.FAILED:
            message = _kept(self.problem, self.stages) or message
        return plan_result(self.problem, self.stages, verdict, message)

    def _left(self) -> float | None:
        """Wall time left [s]."""
        left = self.clock.left
        return None if left is None else max(left, LATE)

    def _space_time(self, k, influence, follow, warm, stiff) -> SpaceTimePlan:
        progress = self.progress

        def show(_, done: float, end: float) -> None:
            progress(f"space-time {k + 1}", done, end)

        program = self.problem.program(k, influence, follow, stiff=stiff)
        shown = None if progress is None else show
        how = {"time_limit": self._left(), "progress": shown} | self.how
        return plan_space_time(program, warm=warm, **how)

    def _steps(self, k: int) -> Stage:
        """The step-by-step plan that follows the last space-time plan."""
        motion = self.plan.result()
        how = {"time_limit": self._left(), "progress": self.progress}
        how |= {"planner": self.planner, "stage": f"steps {k + 1}"}
        steps = follow(self.problem, motion, **how)
        reached = self.robot.coordinates.from_positions(steps.data.position.values)
        q = motion.data.euler_position.values
        difference = motion_difference(reached, q) if steps.ok else np.nan
        return Stage(self.plan, motion, steps, reached, difference)


def step_planner(problem: Problem) -> StepPlanner:
    """The planner of the steps of a problem's motions, for :func:`follow`."""
    return make_planner(
        problem.robot.skinned,
        problem.requested.dt,
        problem.steps,
        torque_limits=problem.program().limits,
        friction=problem.limits.friction,
        cop_margin=problem.limits.cop_margin,
        collisions=skin_collisions(problem.robot.skinned, problem.collisions),
    )


def follow(
    problem: Problem,
    motion: Result,
    *,
    planner: StepPlanner | None = None,
    stage: str = "steps",
    time_limit: float | None = None,
    progress: Progress | None = None,
) -> Result:
    """Plans step by step, with the skin, after a space-time plan.

    Args:
        problem: the problem.
        motion: the space-time plan, of kind "quads.space_time".
        planner: as of :func:`step_planner`, where several motions are followed.
        stage: name of the stage in the progress.
        time_limit: limit of the wall time [s].
        progress: called with the stage, the time done and its end [s].

    Returns:
        A result of kind "quads.frames".
    """
    robot, data = problem.robot, motion.data
    planner = planner or step_planner(problem)
    q, v = data.position.values, data.velocity.values[0]
    contact = data.contact.values.astype(bool)
    ground = problem.requested.ground[:, problem.program().order]
    asked = StepsProblem(q, contact, fall=FALL, time_limit=time_limit, ground=ground)
    start = moving_state(planner.stepper, robot.share, q[0], v)
    how = {"model": robot.name, "stage": stage, "progress": progress}
    return plan_steps(planner, asked, initial=start, **how)


def _judge(problem: Problem, stages: list[Stage]) -> tuple[Verdict, str]:
    """Verdict and message after an iteration; FAILED: go on if iterations are left."""
    steps, k, options = stages[-1].steps, len(stages), problem.alternation
    if steps.verdict is Verdict.TIME_LIMIT:
        reached = len(steps.data.time) - 1
        return steps.verdict, (
            f"stopped at the time limit of {problem.time_limit:g} s, at step "
            f"{reached} of iteration {k}; raise it"
        )
    if steps.verdict is Verdict.INTERRUPTED:
        return steps.verdict, steps.message
    best = best_stage(stages)
    if not best.steps.ok:
        return Verdict.FAILED, steps.message
    plural = "iteration" if k == 1 else "iterations"
    text = f"difference {best.difference:.3g} after {k} {plural}"
    if best.difference <= options.tolerance:
        # Later mandatory iterations may be worse than the best one.
        at = stages.index(best) + 1
        text += "" if at == k else f", that of iteration {at}"
        done = k >= options.min_iterations
        return (Verdict.SUCCESS if done else Verdict.FAILED), text
    if not steps.ok:
        return Verdict.FAILED, steps.message
    return Verdict.FAILED, f"{text}, above the tolerance of {options.tolerance:g}"


def _kept(problem: Problem, stages: list[Stage]) -> str:
    """Note on the iteration kept if none succeeds; empty if none is complete."""
    best = best_stage(stages)
    if not best.steps.ok:
        return ""
    text = (
        f"iteration {stages.index(best) + 1} of {len(stages)} is kept: difference "
        f"{best.difference:.3g}, above the tolerance of "
        f"{problem.alternation.tolerance:g}"
    )
    last = stages[-1].steps
    return text if last.ok else f"{text}; the last iteration: {last.message}"


# --- difference of motions, effect of the skin --------------------------------

LENGTH = 0.1
"""Length that counts as much as 1 rad in a difference of motions [m]."""


def motion_difference(a: np.ndarray, b: np.ndarray) -> float:
    """Root mean square difference of Euler coordinates (n, nv), lengths in 0.1 m."""
    units = np.ones(a.shape[1])
    units[:3] = LENGTH
    gap = (a - b) / units
    gap[:, 3] = (gap[:, 3] + np.pi) % (2 * np.pi) - np.pi
    return float(np.sqrt(np.mean(gap**2)))


def skin_influence(
    robot: PlannedRobot,
    steps: Result,
    planned: tuple[np.ndarray, np.ndarray, np.ndarray],
    *,
    reached: int | None = None,
    window: int = 5,
    base: bool = False,
    stiff: bool = True,
) -> SkinInfluence:
    """Coupling forces and COM shifts of a step-by-step plan, for the next program.

    Both are averaged over as many steps as lie between two knots. Steps that the plan
    did not reach keep the rigid skin.

    Args:
        robot: the robot.
        steps: the step-by-step plan.
        planned: q, v, a of the space-time motion it followed (N, nv), used for steps
            that were not reached.
        reached: number of steps of the plan to use; all by default.
        window: number of steps to average over.
        base: see :class:`SkinInfluence`.
        stiff: whether the program knows the skin's stiffness.
    """
    q, v, a = (np.array(x, float) for x in planned)
    N = len(q)
    data = steps.data
    n = len(data.time) if reached is None else min(reached, len(data.time))
    force = rigid_forces(robot, q, v, a, stiff=stiff)
    shift = np.zeros((N, len(robot.quad.tree.bodies), 3))
    if n >= 2:
        convert, dt = robot.coordinates, float(data.time.values[1])
        q_n = convert.from_positions(data.position.values[:n])
        q_n[:, 3] += 2 * np.pi * np.round((q[0, 3] - q_n[0, 3]) / (2 * np.pi))
        v_n = convert.from_velocities(q_n, data.velocity.values[:n])
        # Forces in row i act in the pose of row i - 1, during the step to row i.
        before = np.maximum(np.arange(n) - 1, 0)
        a_n = np.diff(v_n, axis=0, prepend=v_n[:1]) / dt
        a_n[0] = a_n[1]
        q[:n], v[:n] = q_n[before], v_n[before]
        a[:n] = _smoothed(a_n, window)
        pull = convert.forces(q_n[before], data.coupling_force.values[:n])
        force[:n] = _smoothed(pull, window)
        moved = data.skin_com.values[:n] - data.skin_com_rest.values
        rows = [robot.quad.tree.bodies.index(str(name)) for name in data.link.values]
        shift[:n, rows] = _smoothed(moved, window)
    return SkinInfluence(force, shift, q, v, a, base)


def _smoothed(values: np.ndarray, window: int) -> np.ndarray:
    """Moving average over a window of rows (n, ...); the ends are repeated."""
    return uniform_filter1d(np.asarray(values, float), window, axis=0, mode="nearest")


def rigid_forces(robot: PlannedRobot, q, v, a, *, stiff: bool = True) -> np.ndarray:
    """Generalized forces (N, nv) of a skin that moves with its links, RNEA_s - RNEA,
    and, if stiff, resists their turns as at rest."""
    quad, skin = robot.quad, robot.link_skin
    out = -carried_forces(quad, q, v, a, quad.tree.inertia + skin.inertia)
    if stiff:
        out[:, 6:] += skin.elastic(q[:, 6:] - quad.rest[6:])
    return out


# --- stages and the result ---------------------------------------------------

STAGED = ("position", "com", "cop", "cop_margin", "torque")
DESIRED = ("desired_com", "desired_foot", "desired_heading", "foot_position", "contact")
PLANNED = ("position", "velocity", "torque", "com", "cop", "cop_margin", "foot_force")


@dataclass(frozen=True, eq=False)
class Stage:
    """One iteration: a space-time plan, then a step-by-step plan.

    Attributes:
        plan: the space-time plan.
        planned: the same at every step.
        steps: the step-by-step plan that follows it.
        reached: positions of the latter in Euler coordinates (n, nv).
        difference: difference of both motions; NaN if the latter ended early.
    """

    plan: SpaceTimePlan = field(repr=False)
    planned: Result = field(repr=False)
    steps: Result = field(repr=False)
    reached: np.ndarray = field(repr=False)
    difference: float

    def usable(self, deviation: float) -> int:
        """Number of steps before the deviation from the motion exceeds this."""
        far = np.flatnonzero(self.steps.data.follow_error.values > deviation)
        return int(far[0]) if far.size else len(self.reached)

    def report(self) -> dict[str, object]:
        """Summary for the metrics of the result."""
        plan, steps = self.planned, self.steps
        figures = steps.metrics
        return {
            "space_time": str(plan.verdict),
            "space_time_message": plan.message,
            "space_time_s": float(sum(plan.timings.values())),
            "space_time_cop_margin_m": float(plan.metrics["cop_margin"]),
            "space_time_peak_torque_N_m": float(plan.metrics["peak_torque"]),
            "frames": str(steps.verdict),
            "frames_message": steps.message,
            "frames_s": float(sum(steps.timings.values())),
            "frames_reached": figures["frames"],
            "frames_cop_margin_m": _least(steps.data.get("cop_margin")),
            "frames_cop_dropped": figures.get("frames_with_cop_dropped", 0),
            "frames_peak_torque_N_m": figures.get("largest_torque_N_m", np.nan),
            "difference": float(self.difference),
        }


def _least(values: xr.DataArray | None) -> float:
    """Smallest finite value; NaN if there is none."""
    if values is None or not np.isfinite(values.values).any():
        return np.nan
    return float(np.nanmin(values.values))


def best_stage(stages: list[Stage]) -> Stage:
    """The complete stage with the smallest difference, else the longest one."""
    whole = [s for s in stages if s.steps.ok]
    if whole:
        return min(whole, key=lambda s: s.difference)
    return max(stages, key=lambda s: len(s.reached))


def plan_result(
    problem: Problem, stages: list[Stage], verdict: Verdict, message: str
) -> Result:
    """All stages as one result of kind "quads.plan"."""
    best, robot = best_stage(stages), problem.robot
    data = _best_data(best)
    return Result(
        kind="quads.plan",
        model=robot.name,
        verdict=verdict,
        message=message,
        data=_staged(data, stages),
        residuals=dict(best.steps.residuals),
        timings=spent(),
        metrics={
            **best.steps.metrics,
            **_summary(problem, best, data),
            "iterations": len(stages),
            "best_iteration": stages.index(best) + 1,
            "stages": [one.report() for one in stages],
        },
        provenance=robot.skinned.provenance(as_yaml(problem)),
    )


def _best_data(best: Stage) -> xr.Dataset:
    """The step-by-step plan, with what it followed and what was requested."""
    planned, data = best.planned.data, best.steps.data.copy()
    reached = planned.isel(time=slice(len(data.time)))
    for name in PLANNED:
        data[f"planned_{name}"] = reached[name].variable
    for name in DESIRED:
        data[name] = reached[name].variable
    data = data.assign_coords(plane_axis=planned.plane_axis.variable)
    data["torque_limit"] = planned.torque_limit.variable
    data.attrs["system"] = "skinned"
    return data


def _summary(problem: Problem, best: Stage, data: xr.Dataset) -> dict[str, object]:
    """What was requested, and what the best stage makes of it."""
    motion, program = problem.requested, best.plan.problem
    displacement = data.com.values[-1, :2] - data.com.values[0, :2]
    time, share = float(data.time.values[-1]), np.nan
    if "torque" in data:
        share = float(np.max(np.abs(data.torque.values) / program.limits))
    return {
        "system": "skinned",
        "motion": motion.name,
        "period": motion.period or "none",
        "turn": motion.turn,
        "difference": float(best.difference),
        "desired_speed_m_s": motion.speed,
        "speed_m_s": float(np.linalg.norm(displacement)) / time if time else 0.0,
        "peak_torque_share": share,
        "cop_margin_m": _least(data.get("cop_margin")),
        "mass_kg": problem.robot.mass,
        "friction": problem.limits.friction,
    }


def _staged(data: xr.Dataset, stages: list[Stage]) -> xr.Dataset:
    """Adds the stages over (stage, plan_time), with all steps of the motion."""
    found = {}
    for k, one in enumerate(stages, 1):
        found |= {f"space-time {k}": one.planned.data, f"steps {k}": one.steps.data}
    motion = stages[0].planned.data
    times = ("plan_time", motion.time.values, {"units": "s"})
    data = data.assign_coords(stage=list(found), plan_time=times)
    for name in STAGED:
        like = data[f"planned_{name}"]
        values = np.full((len(found), len(motion.time), *like.shape[1:]), np.nan)
        for row, source in zip(values, found.values()):
            if name in source:
                row[: len(source.time)] = source[name].values
        dims = ("stage", "plan_time", *like.dims[1:])
        data[f"stage_{name}"] = (dims, values, like.attrs)
    contact = motion.contact
    data["stage_contact"] = (("plan_time", "foot"), contact.values, contact.attrs)
    return data
