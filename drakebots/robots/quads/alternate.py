"""The alternation of the paper's Fig. 2: space-time, frame by frame, and again.

    result = alternate(Alternation(robot, library_motion("walk", robot.quad)))

    space-time, the skin as weight on links (5.4) ──▶ q
    ┌─▶ frame by frame with the skin (5.2) ──▶ q~, coupling forces, COM shifts
    │        |q~ - q| < tolerance: done
    └── space-time with those, its weight to follow q~ up by a tenth (5.1)

The difference is the root mean square over frames and coordinates, an angle in
rad, a length in units of 0.1 m. The paper names no measure and no tolerance.
"""

from __future__ import annotations

import time as clock
from collections.abc import Callable
from pathlib import Path

import numpy as np

from drakebots.errors import NoSolution
from drakebots.results import Result, Verdict, check_output
from drakebots.robots.quads.alternate_influence import skin_influence
from drakebots.robots.quads.alternate_problem import Alternation
from drakebots.robots.quads.alternate_result import (
    Stage,
    alternation_result,
    best_stage,
)
from drakebots.robots.quads.planned_robot import moving_state
from drakebots.robots.quads.rollout import FramePlan, make_planner, rollout
from drakebots.robots.quads.space_time_result import frame_motion
from drakebots.robots.quads.space_time_run import SpaceTimePlan, plan_space_time

LENGTH = 0.1
"""That counts as much as 1 rad in a difference of motions [m]."""

Progress = Callable[[str, float, float], None]
"""Called with the stage, what is done of it and its end."""


def motion_difference(a: np.ndarray, b: np.ndarray) -> float:
    """Root mean square of rows of Euler coordinates (n, nv), lengths in 0.1 m."""
    units = np.ones(a.shape[1])
    units[:3] = LENGTH
    gap = (a - b) / units
    gap[:, 3] = (gap[:, 3] + np.pi) % (2 * np.pi) - np.pi
    return float(np.sqrt(np.mean(gap**2)))


def alternate(
    problem: Alternation,
    *,
    path: str | Path | None = None,
    progress: Progress | None = None,
    provenance: dict | None = None,
) -> Result:
    """Plans a motion.

    Args:
        problem: what to plan.
        path: to save the result to, atomically, after every pass.
        progress: see :data:`Progress`.
        provenance: for the result.

    Returns:
        The best pass with the motion it followed and all stages; see
        :mod:`alternate_result`. Its verdict is a failure when no pass came
        through; Ctrl-C and the time limit leave the best so far.

    Raises:
        InvalidInput: from the check of the motion, before solving.
        FileProblem: when the path cannot be written.
        NoSolution: when not even the first space-time step gives a motion.
    """
    if path is not None:
        check_output(path)
    began = clock.perf_counter()
    run = _Run(problem, progress, began)
    stages: list[Stage] = []
    influence = follow = plan = None
    verdict, message = Verdict.FAILED, ""
    for k in range(problem.max_iterations):
        plan = run.space_time(k, influence, follow, plan)
        if not plan.ok and k == 0 and plan.solution.verdict is not Verdict.FAILED:
            raise NoSolution(
                f"{problem.motion.name}: the first space-time step was cut short "
                f"({plan.solution.message}); nothing to keep yet"
            )
        if plan.solution.verdict in (Verdict.INTERRUPTED, Verdict.TIME_LIMIT):
            verdict, message = plan.solution.verdict, plan.solution.message
            break
        stage = run.frames(k, plan)
        stages.append(stage)
        verdict, message = _judge(problem, stages)
        if path is not None:
            _result(problem, stages, verdict, message, provenance, began).save(path)
        if verdict is not Verdict.FAILED:
            break
        if run.late():
            verdict = Verdict.TIME_LIMIT
            message = f"stopped at the time limit of {problem.time_limit:g} s"
            break
        reached = stage.usable(problem.fall / 2)
        motion = frame_motion(plan)
        influence = skin_influence(
            problem.robot,
            stage.frames,
            motion,
            reached=reached,
            window=problem.stride,
            base=problem.base,
        )
        if problem.ignore_skin:
            influence = None
        follow = np.array(motion[0])
        follow[:reached] = stage.reached[:reached]
    if verdict is Verdict.FAILED:
        message = _kept(problem, stages) or message
    result = _result(problem, stages, verdict, message, provenance, began)
    if path is not None:
        result.save(path)
    return result


def _judge(problem: Alternation, stages: list[Stage]) -> tuple[Verdict, str]:
    """Whether to stop after a pass; FAILED means: go on if there is a next one."""
    frames, k = stages[-1].frames, len(stages)
    if frames.verdict is Verdict.TIME_LIMIT:
        reached = len(frames.data.time) - 1
        return frames.verdict, (
            f"stopped at the time limit of {problem.time_limit:g} s, in frame "
            f"{reached} of iteration {k}; raise it"
        )
    if frames.verdict is Verdict.INTERRUPTED:
        return frames.verdict, frames.message
    best = best_stage(stages)
    if not best.frames.ok:
        return Verdict.FAILED, frames.message
    plural = "iteration" if k == 1 else "iterations"
    text = f"difference {best.difference:.3g} after {k} {plural}"
    if best.difference <= problem.tolerance:
        # Iterations made in any case may lead away from it again.
        at = stages.index(best) + 1
        text += "" if at == k else f", that of iteration {at}"
        done = k >= problem.min_iterations
        return (Verdict.SUCCESS if done else Verdict.FAILED), text
    if not frames.ok:
        return Verdict.FAILED, frames.message
    return Verdict.FAILED, f"{text}, above the tolerance of {problem.tolerance:g}"


def _kept(problem: Alternation, stages: list[Stage]) -> str:
    """What is kept when no pass came near enough; empty when none is whole."""
    best = best_stage(stages)
    if not best.frames.ok:
        return ""
    text = (
        f"iteration {stages.index(best) + 1} of {len(stages)} is kept: difference "
        f"{best.difference:.3g}, above the tolerance of {problem.tolerance:g}"
    )
    last = stages[-1].frames
    return text if last.ok else f"{text}; the last pass: {last.message}"


def _result(problem, stages, verdict, message, provenance, began) -> Result:
    seconds = clock.perf_counter() - began
    return alternation_result(problem, stages, verdict, message, provenance, seconds)


class _Run:
    """Stages of one alternation."""

    def __init__(self, problem: Alternation, progress: Progress | None, began: float):
        self.problem, self.progress, self.began = problem, progress, began
        self.planner = make_planner(
            problem.robot.skinned,
            problem.motion.dt,
            problem.frames,
            threads=problem.threads,
        )
        self.planner.limits = problem.limits

    def left(self) -> float | None:
        """Of the wall time [s]."""
        if self.problem.time_limit is None:
            return None
        spent = clock.perf_counter() - self.began
        return max(self.problem.time_limit - spent, 1e-3)

    def late(self) -> bool:
        left = self.left()
        return left is not None and left <= 1e-3

    def _show(self, stage: str):
        if self.progress is None:
            return None
        return lambda done, end, *_: self.progress(stage, done, end)

    def space_time(self, k, influence, follow, warm) -> SpaceTimePlan:
        problem, show = self.problem, self._show(f"space-time {k + 1}")
        return plan_space_time(
            problem.program(k, influence, follow),
            warm=warm,
            solver=problem.solver,
            options=problem.solver_options,
            time_limit=self.left(),
            progress=None if show is None else lambda n, *_: show(n, 0),
        )

    def frames(self, k: int, plan: SpaceTimePlan) -> Stage:
        problem, robot = self.problem, self.problem.robot
        order = plan.problem.order
        contact = problem.motion.footfall.contact[:, order]
        q, v, _ = frame_motion(plan)
        positions = robot.coordinates.positions(q)
        state = moving_state(
            self.planner.stepper,
            robot.share,
            positions[0],
            robot.coordinates.velocities(q[:1], v[:1])[0],
        )
        frames = rollout(
            self.planner,
            FramePlan(
                positions,
                contact,
                fall=problem.fall,
                skin_every=problem.skin_every,
                time_limit=self.left(),
            ),
            initial=state,
            model=robot.name,
            progress=self._show(f"frames {k + 1}"),
        )
        reached = robot.coordinates.from_positions(frames.data.position.values)
        difference = np.nan
        if frames.ok:
            difference = motion_difference(reached, q)
        return Stage(plan, frames, reached, difference)
