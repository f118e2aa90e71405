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
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np
from scipy.ndimage import uniform_filter1d

from drakebots.core.errors import InvalidInput, NoSolution
from drakebots.core.files import check_output
from drakebots.core.run import Verdict
from drakebots.results import Result
from drakebots.robots.quads.alternation import (
    Stage,
    alternation_result,
    best_stage,
)
from drakebots.robots.quads.frames import (
    FrameOptions,
    FrameProblem,
    make_planner,
    rollout,
)
from drakebots.robots.quads.motion import MotionInput
from drakebots.robots.quads.robot import (
    PlannedRobot,
    SkinInfluence,
    frame_inertia,
    moving_state,
)
from drakebots.robots.quads.space_time import (
    SpaceTime,
    SpaceTimePlan,
    Weights,
    frame_motion,
    plan_space_time,
)

# A motion to plan with skin, and the space-time program of each iteration.

GROWTH = 0.1
"""Of the weight to follow, an iteration (section 5.1)."""

FLAT = 100.0
"""Weight of E_O in the space-time program, in place of the paper's 10. Lengths count
there in cm; the paper's lets a sole that carries tilt by 6 degrees, its edge 5 mm
below the ground, and frames know edges."""


@dataclass(frozen=True)
class Alternation:
    """A motion to plan with skin.

    Attributes:
        robot: in both views.
        motion: what the user asks.
        weights: of the space-time program.
        frames: of the frame-by-frame pass.
        growth: of the weight to follow, an iteration.
        tolerance: of the difference of both motions.
        max_iterations: passes of frames.
        min_iterations: passes made though the difference is small.
        friction: mu of both; at most `frames.friction` should be.
        cop_share: of the soles, in the space-time program.
        stride: frames from knot to knot.
        torque_limits: by joint, in place of the model's [N m].
        base: see :class:`~drakebots.robots.quads.robot.links_skin.SkinInfluence`.
        ignore_skin: leave the skin out of the space-time program (Fig. 13c).
        fall: distance from the reference that ends a pass [rad or m].
        skin_every: frames between stored shapes of the skin.
        solver: of the program.
        solver_options: its own.
        threads: of the sparse solver.
        time_limit: of wall time, all together [s].

    Raises:
        InvalidInput: for a value that cannot be; UnknownName for a joint.
    """

    robot: PlannedRobot
    motion: MotionInput
    weights: Weights = field(default_factory=lambda: Weights(flat=FLAT))
    frames: FrameOptions = field(default_factory=FrameOptions)
    growth: float = GROWTH
    tolerance: float = 0.02
    max_iterations: int = 3
    min_iterations: int = 1
    friction: float = 0.7
    cop_share: float = 0.9
    stride: int = 5
    torque_limits: Mapping[str, float] = field(default_factory=dict)
    base: bool = False
    ignore_skin: bool = False
    fall: float = 0.5
    skin_every: int = 10
    solver: str = "exact"
    solver_options: Mapping[str, float | str] = field(default_factory=dict)
    threads: int = 1
    time_limit: float | None = None

    def __post_init__(self):
        for name in ("growth", "tolerance"):
            value = getattr(self, name)
            if not (np.isfinite(value) and value >= 0):
                raise InvalidInput(f"{name} = {value} must be >= 0")
        if not 1 <= self.min_iterations <= self.max_iterations:
            raise InvalidInput(
                f"min_iterations = {self.min_iterations} must be between 1 and "
                f"max_iterations = {self.max_iterations}"
            )
        if self.time_limit is not None and not self.time_limit > 0:
            raise InvalidInput(f"time_limit = {self.time_limit} s must be > 0")
        self.program()

    def program(self, iteration: int = 0, influence=None, follow=None) -> SpaceTime:
        """The space-time problem of an iteration, from 0."""
        rise = (1 + self.growth) ** iteration
        return SpaceTime(
            self.robot.quad,
            self.motion,
            skin=None if self.ignore_skin else self.robot.link_skin,
            influence=influence,
            follow=follow,
            weights=replace(self.weights, follow=self.weights.follow * rise),
            friction=self.friction,
            cop_share=self.cop_share,
            stride=self.stride,
            torque_limits=self.torque_limits,
        )

    @property
    def limits(self) -> np.ndarray:
        """Of the torques (m,) [N m]."""
        return self.program().limits


# What a frame-by-frame pass tells the next space-time program.
#
# Per frame, the coupling forces on the skeleton (generalized, on Euler coordinates)
# and by how much the deformed skin's centre has left its place on each link (paper,
# section 5.1). Both are averaged over as many frames as lie between two knots: a knot
# stands for that many. Frames that the pass did not reach keep the rigid skin.


def skin_influence(
    robot: PlannedRobot,
    frames: Result,
    planned: tuple[np.ndarray, np.ndarray, np.ndarray],
    *,
    reached: int | None = None,
    window: int = 5,
    base: bool = False,
) -> SkinInfluence:
    """Forces and COM shifts of a pass.

    Args:
        robot: of the pass.
        frames: its result.
        planned: q, v, a of the space-time motion it followed (N, nv); for frames
            that were not reached.
        reached: rows of the pass to use; all by default.
        window: frames to average over.
        base: see :class:`SkinInfluence`.
    """
    q, v, a = (np.array(x, float) for x in planned)
    N = len(q)
    data = frames.data
    n = len(data.time) if reached is None else min(reached, len(data.time))
    force = rigid_forces(robot, q, v, a)
    shift = np.zeros((N, len(robot.quad.tree.bodies), 3))
    if n >= 2:
        convert, dt = robot.coordinates, float(data.time.values[1])
        q_n = convert.from_positions(data.position.values[:n])
        q_n[:, 3] += 2 * np.pi * np.round((q[0, 3] - q_n[0, 3]) / (2 * np.pi))
        v_n = convert.from_velocities(q_n, data.velocity.values[:n])
        # Forces of row i act in the pose of row i - 1, on the way to row i.
        before = np.maximum(np.arange(n) - 1, 0)
        a_n = np.diff(v_n, axis=0, prepend=v_n[:1]) / dt
        a_n[0] = a_n[1]
        q[:n], v[:n] = q_n[before], v_n[before]
        a[:n] = smoothed(a_n, window)
        pull = convert.forces(q_n[before], data.coupling_force.values[:n])
        force[:n] = smoothed(pull, window)
        moved = data.skin_com.values[:n] - data.skin_com_rest.values
        rows = [robot.quad.tree.bodies.index(str(name)) for name in data.link.values]
        shift[:n, rows] = smoothed(moved, window)
    return SkinInfluence(force, shift, q, v, a, base)


def smoothed(values: np.ndarray, window: int) -> np.ndarray:
    """Mean over a window of rows (n, ...); at the ends, of rows there are."""
    return uniform_filter1d(np.asarray(values, float), window, axis=0, mode="nearest")


def rigid_forces(
    robot: PlannedRobot, q: np.ndarray, v: np.ndarray, a: np.ndarray
) -> np.ndarray:
    """Forces (N, nv) of a skin that moves with its links: RNEA_s - RNEA."""
    quad, skin = robot.quad, robot.link_skin
    function = quad.tree.dynamics_function.map(len(q))
    total = frame_inertia(quad, skin, None, np.arange(len(q))).reshape(len(q), -1)
    own = np.repeat(quad.tree.inertia.reshape(1, -1), len(q), axis=0)
    whole = np.asarray(function(q.T, v.T, a.T, total.T))
    return (np.asarray(function(q.T, v.T, a.T, own.T)) - whole).T


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
            FrameProblem(
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
