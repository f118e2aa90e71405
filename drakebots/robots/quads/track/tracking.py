"""A plan replayed open loop: servos, skin, and a ground that gives.

    result = replay(Replay(load_result("plan.nc")))

The joints of the plan are the servos' targets, within their effort limits; nothing
measures the body. Frames are those of the coupled simulation with compliant,
rubbing contact points (:mod:`drakebots.skin.frame.contact`), not the planner's, so no
contact schedule is given: feet land when they do.
"""

from __future__ import annotations

import time as clock
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from drakebots.core.errors import InvalidInput
from drakebots.core.run import CtrlC, Verdict
from drakebots.core.threads import calm_threads
from drakebots.multibody import Progress
from drakebots.results import Result, provenance
from drakebots.robots.quads.robot import PlannedRobot, load_planned, moving_state
from drakebots.robots.quads.track.reference import (
    Judge,
    plan_model,
    plan_reference,
    with_cop,
)
from drakebots.skin import SkinRecord
from drakebots.skin.file import SkinnedRobot
from drakebots.skin.frame import (
    CoupledResult,
    CoupledState,
    CoupledStepper,
    PatchContact,
    Servo,
)

QUARTERS = 4
"""Parts of a frame that found no solution whole."""


@dataclass(frozen=True)
class Replay:
    """What to replay, and on what.

    Attributes:
        plan: a result of `drakebots plan`.
        model: of the robot, when the plan's file has moved; its own by default.
        cycles: of a motion that repeats.
        settle: time in which the last pose is held [s].
        time_step: of a frame [s].
        friction, stiffness, damping: of the ground, each contact point
            [1, N/m, N s/m].
        feedforward: whether servos are told the planned speed; a hobby servo only
            knows the angle.
        skin_period: between stored shapes of the skin [s].
        threads: of the sparse solver.
        time_limit: of wall time [s].

    Raises:
        InvalidInput: for a value out of range.
    """

    plan: Result = field(repr=False)
    model: str | None = None
    cycles: int = 1
    settle: float = 0.0
    time_step: float = 5e-3
    friction: float = 0.8
    stiffness: float = 2e4
    damping: float = 50.0
    feedforward: bool = False
    skin_period: float = 0.05
    threads: int = 1
    time_limit: float | None = None

    def __post_init__(self):
        if self.cycles < 1 or self.cycles % 1:
            raise InvalidInput(f"cycles must be a number >= 1, got {self.cycles}")
        for name in ("time_step", "skin_period", "time_limit"):
            value = getattr(self, name)
            if value is not None and not (np.isfinite(value) and value > 0):
                raise InvalidInput(f"{name} must be > 0 s, got {value}")
        if not (np.isfinite(self.settle) and self.settle >= 0):
            raise InvalidInput(f"settle must be >= 0 s, got {self.settle}")
        self.ground  # noqa: B018 - checks its numbers

    @property
    def ground(self) -> PatchContact:
        """Under the contact points."""
        return PatchContact(self.friction, self.stiffness, self.damping)

    @cached_property
    def robot(self) -> PlannedRobot:
        """The robot of the plan.

        Raises:
            InvalidInput: when the plan does not tell its files.
        """
        return load_planned(self.model or plan_model(self.plan))

    @property
    def options(self) -> dict:
        """But the plan, for the record."""
        names = [f for f in self.__dataclass_fields__ if f != "plan"]
        return {name: getattr(self, name) for name in names}


def replay(problem: Replay, *, progress: Progress | None = None) -> Result:
    """Runs a plan; what was reached is returned even when it is cut short.

    Args:
        problem: what to run.
        progress: called with the time reached and the end [s].

    Returns:
        A result like those of :func:`~drakebots.skin.simulate.simulate_skinned`,
        with roll_pitch (time, 2), cop, cop_margin, planned_com; its metrics say
        distance, speed, the largest roll, least COP margin and torques. It failed
        when the robot fell.

    Raises:
        InvalidInput, NoSolution: for a plan that cannot be, before the run.
    """
    began = clock.perf_counter()
    robot = problem.robot
    reference = plan_reference(problem.plan, robot)
    stepper = replay_stepper(problem, robot.skinned)
    state = moving_state(stepper, robot.share, reference.q[0], reference.v[0])
    record = SkinRecord(robot.skinned, stepper, problem.skin_period)
    record.add(state, reference.at(0.0)[0])
    judge = Judge(robot, reference)
    loaded = clock.perf_counter() - began
    run = _Run(problem, robot.skinned, stepper)
    verdict, message = run(state, reference, record, judge, progress)
    wall = clock.perf_counter() - began - loaded
    data, metrics = with_cop(record.dataset(), robot, reference, judge)
    options = problem.options | {"motion": reference.name}
    return Result(
        kind="quads.track",
        model=robot.name,
        verdict=verdict,
        message=message,
        data=data,
        residuals={"glue gap [m]": record.worst_gap},
        timings={"load": loaded, "simulate": wall},
        metrics={
            "system": "skinned",
            "motion": reference.name,
            "frames": record.frames - 1,
            "frames_refined": run.refined,
            "worst_volume_ratio": record.worst_ratio,
            "largest_torque_N_m": record.largest_torque,
            "saturated_share": record.saturated_share,
            "tracking_error_rad": record.tracking_error,
            **metrics,
        },
        provenance=provenance(robot.files, options),
    )


def replay_stepper(
    problem: Replay, robot: SkinnedRobot, dt: float | None = None
) -> CoupledStepper:
    """The coupled simulation of a replay; in frames of dt [s], by default its own."""
    return robot.stepper(
        problem.time_step if dt is None else dt,
        patches=robot.skin.patches,
        patch_contact=problem.ground,
        threads=problem.threads,
    )


class _Run:
    """Frames of a replay; one that finds no solution is taken in quarters."""

    def __init__(self, problem: Replay, robot: SkinnedRobot, stepper: CoupledStepper):
        self.problem, self.robot, self.stepper = problem, robot, stepper
        self.fine: CoupledStepper | None = None
        self.refined = 0

    def step(self, state: CoupledState, servo: Servo) -> CoupledResult:
        result = self.stepper.step(state, servo=servo)
        if result.converged:
            return result
        self.refined += 1
        if self.fine is None:
            step = self.problem.time_step / QUARTERS
            self.fine = replay_stepper(self.problem, self.robot, step)
        for _ in range(QUARTERS):
            result = self.fine.step(state, servo=servo)
            if not result.converged:
                break
            state = result.state
        return result

    def __call__(self, state, reference, record, judge, progress):
        problem, start = self.problem, clock.perf_counter()
        cycles = problem.cycles if reference.periodic else 1
        duration = cycles * float(reference.times[-1]) + problem.settle
        dt = problem.time_step
        frames = max(1, round(duration / dt))
        try:
            with CtrlC() as stop, calm_threads():
                for k in range(1, frames + 1):
                    goal, speed = reference.at(k * dt)
                    told = speed if problem.feedforward else None
                    result = self.step(state, self.robot.servo(goal, told))
                    if not result.converged:
                        return Verdict.FAILED, result.message
                    state = result.state
                    record.add(state, goal, result, last=k == frames)
                    fell = judge.fell(state.q, k * dt)
                    if fell:
                        return Verdict.FAILED, f"{fell} at {k * dt:g} s"
                    stop.check()
                    if progress is not None:
                        progress(k * dt, frames * dt)
                    spent, limit = clock.perf_counter() - start, problem.time_limit
                    if limit is not None and spent > limit and k < frames:
                        return (
                            Verdict.TIME_LIMIT,
                            f"stopped at the time limit of {limit:g} s; raise it",
                        )
        except KeyboardInterrupt:
            return Verdict.INTERRUPTED, "interrupted; what was reached is kept"
        return Verdict.SUCCESS, f"reached {frames * dt:g} s on its feet"
