"""Alternates space-time and step-by-step planning: the paper's Fig. 2.

    result = alternate(Alternation(robot, library_motion("walk", robot.quad)))

    space-time, the skin as mass on the links (5.4) ──▶ q
    ┌─▶ step by step with the skin (5.2) ──▶ q~, coupling forces, COM shifts
    │        |q~ - q| < tolerance: done
    └── space-time with these, with a tenth more weight on following q~ (5.1)

The first program also knows the skin's stiffness at rest
(:func:`~drakebots.robots.quads.robot.links_skin.joint_stiffness`). Where the
step-by-step plan comes no nearer to it than the tolerance, the alternation starts again
without it, as in the paper: a skin that turns far is softer than at rest.

The difference |q~ - q| is the root mean square over steps and coordinates, with angles
in rad and lengths in units of 0.1 m. The paper gives no norm and no tolerance.
"""

from __future__ import annotations

import time as clock
from dataclasses import replace
from pathlib import Path

import numpy as np
from scipy.ndimage import uniform_filter1d

from drakebots.core.files import check_output
from drakebots.core.run import Progress, Verdict, ended_by
from drakebots.core.stages import spent, stage, timed
from drakebots.results import Result
from drakebots.robots.quads.alternation import (
    Alternation,
    Stage,
    alternation_result,
    best_stage,
)
from drakebots.robots.quads.frames import FrameProblem, make_planner, plan_frames
from drakebots.robots.quads.robot import (
    PlannedRobot,
    SkinInfluence,
    frame_inertia,
    moving_state,
)
from drakebots.robots.quads.space_time import (
    SpaceTimePlan,
    frame_motion,
    plan_space_time,
)


@timed("load and check")
def alternate(
    problem: Alternation,
    *,
    path: str | Path | None = None,
    progress: Progress | None = None,
    provenance: dict | None = None,
) -> Result:
    """Plans a motion.

    Args:
        problem: the problem.
        path: file to save the result to, atomically, after every iteration.
        progress: called with the stage, the iterations or the time [s] done, and the
            end.
        provenance: options to store in the result's provenance.

    Returns:
        The best step-by-step plan with the motion it followed and all stages; see
        :mod:`~drakebots.robots.quads.alternation`. It failed if no iteration meets the
        tolerance; Ctrl-C and the time limit leave the best so far. Where they end the
        first space-time program, that is its best iterate, of kind "quads.space_time".

    Raises:
        InvalidInput: from the check of the motion, before solving.
        FileProblem: when the path cannot be written.
    """
    if path is not None:
        check_output(path)
    began = clock.perf_counter()
    run = _Run(problem, progress, began)
    stages: list[Stage] = []
    influence = follow = plan = None
    stiff = not problem.ignore_skin
    verdict, message = Verdict.FAILED, ""
    try:
        for k in range(problem.max_iterations):
            with stage(f"space-time {k + 1}"):
                plan = run.space_time(k, influence, follow, plan, stiff)
            if plan.solution.verdict in (Verdict.INTERRUPTED, Verdict.TIME_LIMIT):
                verdict, message = plan.solution.verdict, plan.solution.message
                break
            with stage(f"frames {k + 1}"):
                done = run.frames(k, plan)
            stages.append(done)
            verdict, message = _judge(problem, stages)
            if path is not None:
                so_far = (problem, stages, verdict, message, provenance)
                alternation_result(*so_far).save(path)
            if verdict is not Verdict.FAILED:
                break
            if run.left() == LATE:
                verdict = Verdict.TIME_LIMIT
                message = f"stopped at the time limit of {problem.time_limit:g} s"
                break
            if k == 0 and stiff and not done.difference <= problem.tolerance:
                stiff, plan = False, None
                continue
            reached = done.usable(problem.fall / 2)
            motion = frame_motion(plan)
            if not problem.ignore_skin:
                influence = skin_influence(
                    problem.robot,
                    done.frames,
                    motion,
                    reached=reached,
                    window=problem.knot_spacing,
                    base=problem.base,
                    stiff=stiff,
                )
            follow = np.array(motion[0])
            follow[:reached] = done.reached[:reached]
    except KeyboardInterrupt as error:
        if plan is None:
            raise
        verdict, message = ended_by(error)
    if not stages:
        result = replace(
            plan.result(), verdict=verdict, message=message, timings=spent()
        )
    else:
        if verdict is Verdict.FAILED:
            message = _kept(problem, stages) or message
        result = alternation_result(problem, stages, verdict, message, provenance)
    if path is not None:
        result.save(path)
    return result


def _judge(problem: Alternation, stages: list[Stage]) -> tuple[Verdict, str]:
    """Verdict and message after an iteration; FAILED: go on if iterations are left."""
    frames, k = stages[-1].frames, len(stages)
    if frames.verdict is Verdict.TIME_LIMIT:
        reached = len(frames.data.time) - 1
        return frames.verdict, (
            f"stopped at the time limit of {problem.time_limit:g} s, at step "
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
        # Later mandatory iterations may be worse than the best one.
        at = stages.index(best) + 1
        text += "" if at == k else f", that of iteration {at}"
        done = k >= problem.min_iterations
        return (Verdict.SUCCESS if done else Verdict.FAILED), text
    if not frames.ok:
        return Verdict.FAILED, frames.message
    return Verdict.FAILED, f"{text}, above the tolerance of {problem.tolerance:g}"


def _kept(problem: Alternation, stages: list[Stage]) -> str:
    """Which iteration is kept if none succeeds; empty if none is complete."""
    best = best_stage(stages)
    if not best.frames.ok:
        return ""
    text = (
        f"iteration {stages.index(best) + 1} of {len(stages)} is kept: difference "
        f"{best.difference:.3g}, above the tolerance of {problem.tolerance:g}"
    )
    last = stages[-1].frames
    return text if last.ok else f"{text}; the last iteration: {last.message}"


LATE = 1e-3
"""Time that is left for solvers after the time limit [s]."""


class _Run:
    """Plans the stages of one alternation."""

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
        """Wall time left [s]."""
        if self.problem.time_limit is None:
            return None
        spent = clock.perf_counter() - self.began
        return max(self.problem.time_limit - spent, LATE)

    def space_time(self, k, influence, follow, warm, stiff) -> SpaceTimePlan:
        problem, progress, stage = self.problem, self.progress, f"space-time {k + 1}"

        def show(_, done: float, end: float) -> None:
            progress(stage, done, end)

        return plan_space_time(
            problem.program(k, influence, follow, stiff=stiff),
            warm=warm,
            solver=problem.solver,
            options=problem.solver_options,
            time_limit=self.left(),
            progress=None if progress is None else show,
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
        frames = plan_frames(
            self.planner,
            FrameProblem(
                positions,
                contact,
                fall=problem.fall,
                skin_every=problem.skin_every,
                time_limit=self.left(),
            ),
            initial=state,
            model=robot.name,
            stage=f"frames {k + 1}",
            progress=self.progress,
        )
        reached = robot.coordinates.from_positions(frames.data.position.values)
        difference = np.nan
        if frames.ok:
            difference = motion_difference(reached, q)
        return Stage(plan, frames, reached, difference)


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
    frames: Result,
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
        frames: the step-by-step plan.
        planned: q, v, a of the space-time motion it followed (N, nv), used for steps
            that were not reached.
        reached: number of steps of the plan to use; all by default.
        window: number of steps to average over.
        base: see :class:`SkinInfluence`.
        stiff: whether the program knows the skin's stiffness.
    """
    q, v, a = (np.array(x, float) for x in planned)
    N = len(q)
    data = frames.data
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


def rigid_forces(
    robot: PlannedRobot,
    q: np.ndarray,
    v: np.ndarray,
    a: np.ndarray,
    *,
    stiff: bool = True,
) -> np.ndarray:
    """Generalized forces (N, nv) of a skin that moves with its links, RNEA_s - RNEA,
    and, if stiff, resists their turns as at rest."""
    quad, skin = robot.quad, robot.link_skin
    function = quad.tree.dynamics_function.map(len(q))
    total = frame_inertia(quad, skin, None, np.arange(len(q))).reshape(len(q), -1)
    own = np.repeat(quad.tree.inertia.reshape(1, -1), len(q), axis=0)
    whole = np.asarray(function(q.T, v.T, a.T, total.T))
    out = (np.asarray(function(q.T, v.T, a.T, own.T)) - whole).T
    if stiff:
        out[:, 6:] += skin.elastic(q[:, 6:] - quad.rest[6:])
    return out
