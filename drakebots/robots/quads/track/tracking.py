"""Tracks a plan: servos, skin and a compliant ground.

    result = track(Tracking(load_result("plan.nc")))            # open loop
    result = track(Tracking(load_result("plan.nc"), imu=True))  # swinging feet level

The joint angles of the plan, moved by the sag of the servos, are the targets of the
servos, within their effort limits. Nothing measures the body, unless an IMU measures
its attitude for the swinging feet (:class:`LevelSwing`). Time steps are those
of the coupled simulation with compliant contact points under friction
(:mod:`drakebots.skin.coupled.laws`), not the planner's, and there is no contact
schedule: feet land when they reach the ground.
"""

from __future__ import annotations

from dataclasses import field, replace
from functools import cached_property
from typing import Annotated

import numpy as np
import xarray as xr
from pydrake.common.eigen_geometry import AngleAxis
from pydrake.math import RotationMatrix

from drakebots.control import Command, ControlRun, Law
from drakebots.core.checks import (
    check_log,
    finite,
    flag,
    non_negative,
    one_of,
    positive,
    whole,
)
from drakebots.core.convert import as_yaml
from drakebots.core.fields import checked
from drakebots.core.run import Progress, Verdict
from drakebots.core.stages import timed
from drakebots.core.threads import calm_threads
from drakebots.formats import terrain_of
from drakebots.multibody import Finding, Terrain, base_body
from drakebots.results import Result
from drakebots.robots.quads.plant import SkinnedPlant
from drakebots.robots.quads.robot import (
    PlannedRobot,
    feet_kinematics,
    load_planned,
    make_feet,
    moving_state,
)
from drakebots.robots.quads.track.reference import (
    Reference,
    evaluate,
    fall_off_plan,
    findings,
    patch_positions,
    plan_model,
    plan_reference,
    summary,
    verdict,
)
from drakebots.skin import COLLISIONS, SkinRecord, skin_collisions
from drakebots.skin.coupled import (
    CoupledStepper,
    PatchContact,
)


@checked("start", kw_only=True)
class Start:
    """How a run starts off its plan."""

    height: Annotated[float, non_negative("m")] = 0.0
    """Height above the plan's first pose."""
    roll: Annotated[float, finite("rad")] = 0.0
    """Angle by which it is rolled about its own forward axis, just as high as keeps its
    patches where the lowest one was, or above."""


@checked(kw_only=True)
class Tracking:
    """A plan to track with the skinned robot on compliant ground.

    Raises:
        InvalidInput: for a value out of range.
    """

    plan: Result = field(repr=False, kw_only=False)
    """Result of `drakebots plan`."""
    model: str | None = None
    """Path of the robot's model, if it is not where the plan says."""
    ground: PatchContact = PatchContact()
    """Ground under the contact points: its friction, stiffness and damping."""
    terrain: Terrain | None = None
    """Shape of the ground; by default the plan's."""
    plain_angles: Annotated[bool, flag()] = False
    """Send the planned angles as they are, not moved by what the servos sag under the
    planned torques."""
    cycles: Annotated[int, whole(1)] = 1
    """Number of cycles of a periodic motion."""
    start: Start = Start()
    """Where it starts, off the plan's first pose."""
    imu: Annotated[bool, flag()] = False
    """Whether an inertial measurement unit measures the body's attitude, so that
    swinging feet land where the plan has them though the body is turned."""
    settle: Annotated[float, non_negative("s")] = 0.0
    """Time for which the last pose is held."""
    time_step: Annotated[float, positive("s")] = 5e-3
    """Time step of the simulation."""
    skin_period: Annotated[float, positive("s")] = 0.05
    """Time between stored shapes of the skin."""
    collisions: Annotated[str, one_of("kind of collisions", COLLISIONS)] = "none"
    """What the skin collides with, besides the ground: "itself", "links", "all" of
    these, "bracing" (all, and bracing plates) or "none"."""
    time_limit: Annotated[float | None, positive("s")] = None
    """Limit of the wall time."""

    def __post_init__(self):
        if self.terrain is None:
            object.__setattr__(self, "terrain", terrain_of(self.plan))

    @cached_property
    def robot(self) -> PlannedRobot:
        """The robot of the plan.

        Raises:
            InvalidInput: when the plan does not name its model.
        """
        return load_planned(self.model or plan_model(self.plan))

    @property
    def options(self) -> dict[str, object]:
        """All fields but the plan, for the provenance of a run."""
        return {k: v for k, v in as_yaml(self).items() if k != "plan"}

    @property
    def reference(self) -> Reference:
        """The motion of the plan, with the targets of the robot's servos.

        Raises:
            InvalidInput: when the result is no plan of the robot.
        """
        return plan_reference(self.plan, self.robot, plain=self.plain_angles)

    def stepper(self, time_step: float | None = None) -> CoupledStepper:
        """The coupled simulation, by default with the time step of this problem [s]."""
        return self.robot.skinned.stepper(
            self.time_step if time_step is None else time_step,
            patches=self.robot.skinned.skin.patches,
            patch_contact=replace(self.ground, terrain=self.terrain),
            collisions=skin_collisions(self.robot.skinned, self.collisions),
        )


@timed("load")
def track(problem: Tracking, *, progress: Progress | None = None) -> Result:
    """Tracks a plan; a run that is cut short returns what it reached.

    Args:
        problem: the plan to track, and the ground.
        progress: called with the simulated time reached and its end [s].

    Returns:
        A result of kind "quads.track" with the variables of
        :func:`~drakebots.skin.simulate.simulate_skinned`, and roll_pitch (time, 2),
        cop, cop_margin and planned_com; in its metrics distance, speed, largest roll,
        least COP margin and torques. It failed if the robot fell.

    Raises:
        InvalidInput, NoSolution: for a plan that cannot be tracked, before the run.
    """
    run = _Run(problem)
    times = {"duration": run.duration, "log_period": problem.time_step}
    success = f"reached {run.duration:g} s on its feet"
    with calm_threads():
        return run.simulate(progress, success=success, **times)


class _Run(ControlRun):
    """A plan on compliant ground, open loop or with level swings."""

    kind, stage = "quads.track", "track"

    def __init__(self, problem: Tracking):
        self.problem, self.robot = problem, problem.robot
        robot, dt = problem.robot, problem.time_step
        self.reference = reference = problem.reference
        cycles = problem.cycles if reference.periodic else 1
        duration = cycles * float(reference.times[-1]) + problem.settle
        check_log(duration, dt)
        self.duration = max(1, round(duration / dt)) * dt
        stepper = problem.stepper()
        q, v = start_positions(problem), reference.v[0]
        begins = moving_state(stepper, robot.share, q, v)
        target = reference.at(0.0)
        self.plant = SkinnedPlant(robot, stepper, begins, target, problem.stepper)
        self.record = SkinRecord(robot.skinned, stepper, problem.skin_period)
        self.controller = Law("servos", self._command)
        self._level = LevelSwing(robot, reference) if problem.imu else None

    def _command(self, time: float, q: np.ndarray, v: np.ndarray) -> Command:
        """Targets of the servos at the end of the time step that begins at a time."""
        dt = self.problem.time_step
        end = (round(time / dt) + 1) * dt
        target = self.reference.at(end)
        if self._level is not None:
            turned = self._level.attitude(self.plant.positions)
            target = target + self._level.correction(end, turned, dt)
        return Command(np.zeros(len(target)), target)

    def keep(self, time: float, *, last: bool) -> None:
        self.plant.add_to(self.record, last)

    def fall(self, time: float) -> str:
        here = self.plant.positions, time, self.problem.terrain
        return fall_off_plan(self.robot, self.reference, *here)

    def dataset(self) -> xr.Dataset:
        """The record, with roll, pitch and centre of pressure beside the plan's."""
        return evaluate(self.record.dataset(), self.robot, self.reference)

    def metrics(self, data: xr.Dataset) -> dict:
        """Figures of the run."""
        record = self.record
        return {
            "system": "skinned",
            "motion": self.reference.name,
            "sparse_solver": self.plant.stepper.solver.name,
            "frames": record.frames - 1,
            "frames_refined": self.plant.refined,
            **record.figures(),
            **summary(data, self.robot, self.reference),
        }

    def findings(self, data: xr.Dataset, figures: dict) -> list[Finding]:
        """Findings of the verdict, the gravest first."""
        return findings(self.robot, data, figures)

    def verdict(self, figures: dict, findings: list[Finding]) -> tuple[Verdict, str]:
        """The verdict, and one line on what happened."""
        return verdict(self.end, self.problem.plan, figures, findings)

    def origin(self, data: xr.Dataset) -> dict:
        """Model, residuals and provenance of the result."""
        options = self.problem.options | {"motion": self.reference.name}
        return self.record.origin(options) | {"model": self.robot.name}


def start_positions(problem: Tracking) -> np.ndarray:
    """Positions (nq,) from which a run starts: the plan's, lifted and rolled."""
    robot = problem.robot
    planned = problem.reference.q[:1]
    q = robot.coordinates.from_positions(planned)
    q[0, 5] += problem.start.roll
    moved = robot.coordinates.positions(q)
    # A rolled sole must not begin below the ground.
    terrain, both = problem.terrain, (planned, moved)
    points = [patch_positions(robot, rows)[0] for rows in both]
    lowest = [terrain.evaluate(patches)[0].min() for patches in points]
    q[0, 2] += problem.start.height + max(lowest[0] - lowest[1], 0.0)
    return robot.coordinates.positions(q)[0]


# --- swings by the IMU ------------------------------------------------------


RISE = 0.05
"""Time in which a swinging foot goes to its place, to 1/e [s]: in 0.015 s, an attitude
that comes 10 ms late shakes the robot."""

FADE = 0.2
"""Time in which the displacement of a standing foot fades, to 1/e [s]: a part of a
walk's stance. Where it fades in 0.03 s, the feet drag: a walk goes 1 % less."""

SINGULAR = 0.01
"""w: directions in which the joints move a foot by less than this are held back
[m/rad]."""


class LevelSwing:
    """Corrections of the joints for an attitude of the body.

    A servo holds angles, so a body that is turned off its plan carries its swinging
    feet to other places; they land there, and the next steps turn it further. An
    inertial measurement unit (IMU) measures the body's attitude. With it the swinging
    feet are taken to where the plan has them in the directions of the world, as seen
    from the body:

        dp_F = R_BD p_DF - p_DF,    dq = sum_F J_F' (J_F J_F' + w^2 I)^-1 dp_F

    D is the body as planned, B as measured, p_DF the planned place of the foot F and
    J_F its derivative by the actuated joints. A foot goes there in about :data:`RISE`.
    One that has landed is not drawn back over the ground at once, but in about
    :data:`FADE`: legs that stand hold the planned angles, and their servos resist a
    turn already.

    Args:
        robot: the robot.
        reference: the motion it follows.

    Attributes:
        dp: displacements of the feet in the body's frame (feet, 3) [m].
    """

    def __init__(self, robot: PlannedRobot, reference: Reference):
        self.reference = reference
        self.plant = robot.skinned.plant
        self.context = self.plant.CreateDefaultContext()
        self.feet = make_feet(self.plant, self.context, robot.skinned.skin.patches)
        self.joints = [
            int(self.plant.GetJointByName(name).velocity_start())
            for name in robot.skinned.joints
        ]
        self.dp = np.zeros((len(self.feet), 3))

    def attitude(self, q: np.ndarray) -> RotationMatrix:
        """R_WB of the body in the positions q (nq,)."""
        self.plant.SetPositions(self.context, q)
        return base_body(self.plant).EvalPoseInWorld(self.context).rotation()

    def planned_attitude(self, time: float) -> RotationMatrix:
        """R_WD at a time [s]; a turn goes on from cycle to cycle."""
        reference = self.reference
        R_WD = self.attitude(reference.q[reference.row(time)])
        cycle = reference.cycle(time)
        if cycle == 0:
            return R_WD
        first, last = (self.attitude(reference.q[k]) for k in (0, -1))
        turned = (last @ first.inverse()).ToAngleAxis()
        yaw = turned.angle() * turned.axis()[2]
        whole = RotationMatrix(AngleAxis(cycle * yaw, [0.0, 0.0, 1.0]))
        return whole @ R_WD

    def correction(self, time: float, R_WB: RotationMatrix, dt: float) -> np.ndarray:
        """Turns dq of the actuated joints (m,) [rad]; goes on from the last call.

        Args:
            time: time since the start [s].
            R_WB: measured attitude of the body.
            dt: time since the last call [s].
        """
        R_BD = (R_WB.inverse() @ self.planned_attitude(time)).matrix()
        row = self.reference.row(time)
        self.plant.SetPositions(self.context, self.reference.q[row])
        X_WD = base_body(self.plant).EvalPoseInWorld(self.context)
        R_DW = X_WD.rotation().inverse().matrix()
        now = feet_kinematics(self.plant, self.context, self.feet)
        p_DF = (now.tip - X_WD.translation()) @ R_DW.T
        J_W = now.J_tip.reshape(len(self.feet), 3, -1)[:, :, self.joints]
        stands = self.reference.contact[row][:, None]
        wanted = np.where(stands, 0.0, p_DF @ R_BD.T - p_DF)
        self.dp += (wanted - self.dp) * -np.expm1(-dt / np.where(stands, FADE, RISE))
        turns = np.zeros(len(self.joints))
        for dp, J in zip(self.dp, R_DW @ J_W):
            turns += J.T @ np.linalg.solve(J @ J.T + SINGULAR**2 * np.eye(3), dp)
        return turns
