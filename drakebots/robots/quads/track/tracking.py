"""Tracks a plan: servos, skin and a compliant ground.

    result = track(Tracking(load_result("plan.nc")))            # open loop
    result = track(Tracking(load_result("plan.nc"), imu=True))  # swinging feet level

The joint angles of the plan, moved by the sag of the servos, are the targets of the
servos, within their effort limits. Nothing measures the body, unless an IMU tells its
attitude to the swinging feet (:mod:`drakebots.robots.quads.track.swing`). Time steps
are those of the coupled simulation with compliant contact points under friction
(:mod:`drakebots.skin.frame.laws`), not the planner's, and there is no contact schedule:
feet land when they reach the ground.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from drakebots.core.checks import (
    MOST_THREADS,
    check,
    check_log,
    finite,
    flag,
    non_negative,
    positive,
    whole,
)
from drakebots.core.run import Progress, RunEnd, Stop, failed, run_steps
from drakebots.core.stages import spent, timed
from drakebots.core.threads import calm_threads
from drakebots.model import model_provenance
from drakebots.results import Result
from drakebots.robots.quads.robot import moving_state
from drakebots.robots.quads.track.reference import (
    FallDetector,
    Playback,
    evaluate,
    judge,
    patch_positions,
)
from drakebots.robots.quads.track.sap import SapTracking, track_sap
from drakebots.robots.quads.track.swing import LevelSwing
from drakebots.skin import SkinRecord
from drakebots.skin.frame import (
    CoupledResult,
    CoupledState,
    CoupledStepper,
    PatchContact,
    Servo,
)

SUBSTEPS = 4
"""Number of parts into which a time step is divided that has no solution as a whole."""


@dataclass(frozen=True)
class Tracking(Playback):
    """A plan to track with the skinned robot on compliant ground.

    Attributes:
        cycles: number of cycles of a periodic motion.
        start_height: height above the plan's first pose at which the robot starts [m].
        start_roll: angle by which it starts rolled about its own forward axis [rad],
            just as high as keeps its patches where the lowest one was, or above.
        imu: whether an inertial measurement unit tells the body's attitude, so that
            swinging feet land where the plan has them though the body is turned.
        settle: time for which the last pose is held [s].
        time_step: time step of the simulation [s].
        damping: damping of the ground at each contact point [N s/m].
        skin_period: time between stored shapes of the skin [s].
        threads: number of threads of the sparse solver.
    """

    cycles: int = 1
    start_height: float = 0.0
    start_roll: float = 0.0
    imu: bool = False
    settle: float = 0.0
    time_step: float = 5e-3
    damping: float = 50.0
    skin_period: float = 0.05
    threads: int = 1

    def __post_init__(self):
        super().__post_init__()
        check(
            self,
            "",
            cycles=whole(1),
            settle=non_negative("s"),
            threads=whole(1, MOST_THREADS),
        )
        check(self, "", time_step=positive("s"), skin_period=positive("s"))
        check(self, "", start_height=non_negative("m"), start_roll=finite("rad"))
        check(self, "", imu=flag())
        check_log(self.cycles + self.settle, self.time_step)
        self.ground  # noqa: B018 - checks its numbers

    @property
    def ground(self) -> PatchContact:
        """The ground under the contact points."""
        return PatchContact(self.friction, self.stiffness, self.damping)

    def stepper(self, time_step: float | None = None) -> CoupledStepper:
        """The coupled simulation, by default with the time step of this problem [s]."""
        return self.robot.skinned.stepper(
            self.time_step if time_step is None else time_step,
            patches=self.robot.skinned.skin.patches,
            patch_contact=self.ground,
            threads=self.threads,
        )


@timed("load")
def track(
    problem: Tracking | SapTracking, *, progress: Progress | None = None
) -> Result:
    """Tracks a plan; a run that is cut short returns what it reached.

    Args:
        problem: the plan to track, with the skinned robot or with its skeleton in
            Drake's SAP simulation.
        progress: called with the simulated time reached and its end [s].

    Returns:
        A result of kind "quads.track" with the variables of
        :func:`~drakebots.skin.simulate.simulate_skinned`, or of kind
        "quads.sap_track"; also roll_pitch (time, 2), cop, cop_margin and planned_com,
        and in its metrics distance, speed, largest roll, least COP margin and torques.
        It failed if the robot fell.

    Raises:
        InvalidInput, NoSolution: for a plan that cannot be tracked, before the run.
    """
    if isinstance(problem, SapTracking):
        return track_sap(problem, progress=progress)
    robot = problem.robot
    reference = problem.reference
    stepper = _Stepper(problem)
    state = moving_state(
        stepper.whole, robot.share, start_positions(problem), reference.v[0]
    )
    record = SkinRecord(robot.skinned, stepper.whole, problem.skin_period)
    record.add(state, reference.at(0.0)[0])
    falls = FallDetector(robot, reference)
    level = LevelSwing(robot, reference) if problem.imu else None
    cycles = problem.cycles if reference.periodic else 1
    duration = cycles * float(reference.times[-1]) + problem.settle
    dt = problem.time_step
    steps = max(1, round(duration / dt))

    def advance(k: int) -> Stop | None:
        nonlocal state
        target, speed = reference.at(k * dt)
        if level is not None:
            turned = level.attitude(state.q)
            target = target + level.correction(k * dt, turned, dt)
        servo = robot.skinned.servo(target, speed if problem.feedforward else None)
        result = stepper.step(state, servo)
        if not result.converged:
            return failed(result.message)
        state = result.state
        record.add(state, target, result, last=k == steps)
        fall = falls.fell(state.q, k * dt)
        return failed(f"{fall} at {k * dt:g} s") if fall else None

    def reached(end: RunEnd) -> Result:
        data, metrics = evaluate(record.dataset(), robot, reference, falls)
        verdict, message, found = judge(end, problem.plan, robot, data, metrics)
        options = problem.options | {"motion": reference.name}
        return Result(
            kind="quads.track",
            model=robot.name,
            verdict=verdict,
            message=message,
            data=data,
            residuals={"glue gap [m]": record.worst_gap},
            timings=spent(),
            metrics={
                "system": "skinned",
                "motion": reference.name,
                "sparse_solver": stepper.whole.solver.name,
                "frames": record.frames - 1,
                "frames_refined": stepper.refined,
                "worst_volume_ratio": record.worst_ratio,
                "largest_torque_N_m": record.largest_torque,
                "saturated_share": record.saturated_share,
                **metrics,
                **found,
            },
            provenance=model_provenance(
                robot.skinned.model, options, files=robot.files
            ),
        )

    with calm_threads():
        end = run_steps(
            advance,
            steps,
            stage="track",
            until=steps * dt,
            progress=progress,
            time_limit=problem.time_limit,
            success=f"reached {steps * dt:g} s on its feet",
            reached=reached,
        )
    return reached(end)


def start_positions(problem: Tracking) -> np.ndarray:
    """Positions (nq,) from which a run starts: the plan's, lifted and rolled."""
    robot = problem.robot
    planned = problem.reference.q[:1]
    q = robot.coordinates.from_positions(planned)
    q[0, 5] += problem.start_roll
    moved = robot.coordinates.positions(q)
    # A rolled sole must not begin below the ground.
    lowest = [patch_positions(robot, rows)[0, :, 2].min() for rows in (planned, moved)]
    q[0, 2] += problem.start_height + max(lowest[0] - lowest[1], 0.0)
    return robot.coordinates.positions(q)[0]


class _Stepper:
    """Takes time steps, in parts where a whole one has no solution.

    Attributes:
        whole: the coupled simulation.
        refined: number of time steps that were divided.
    """

    def __init__(self, problem: Tracking):
        self.problem, self.whole, self.refined = problem, problem.stepper(), 0
        self._part: CoupledStepper | None = None

    def step(self, state: CoupledState, servo: Servo) -> CoupledResult:
        result = self.whole.step(state, servo=servo)
        if result.converged:
            return result
        self.refined += 1
        if self._part is None:
            self._part = self.problem.stepper(self.problem.time_step / SUBSTEPS)
        for _ in range(SUBSTEPS):
            result = self._part.step(state, servo=servo)
            if not result.converged:
                break
            state = result.state
        return result
