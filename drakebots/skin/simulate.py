"""Simulate a skinned robot whose servos follow a motion.

result = simulate_skinned(SkinSimulation(model="skinned_leg", motion="sine"))
result.data.skin_position           # (skin_time, vertex, axis)
"""

from __future__ import annotations

import time as clock
from collections.abc import Callable
from dataclasses import asdict, dataclass, replace

import numpy as np

from drakebots.core.errors import InvalidInput
from drakebots.core.run import CtrlC, RunEnd, Verdict, check_duration
from drakebots.core.threads import calm_threads
from drakebots.fem import Penalty, self_contact, wall_size
from drakebots.fem.assembly import FemModel, build_model
from drakebots.fem.material import Material
from drakebots.model import skin_path
from drakebots.multibody import Progress
from drakebots.results import Result, provenance
from drakebots.skin.file import SkinnedRobot, load_skinned
from drakebots.skin.frame import (
    Collisions,
    CoupledStepper,
    PatchContact,
    SkinGround,
    link_contact,
)
from drakebots.skin.motion import NamedMotion, TableMotion
from drakebots.skin.record import SkinRecord

PENALTY_STIFFNESS, PENALTY_DAMPING = 20.0, 0.02
"""Of the explicit contact of skin with links and itself, each vertex [N/m, N s/m]."""


@dataclass(frozen=True)
class SkinSimulation:
    """A skinned robot, its motion and what it touches.

    Attributes:
        model: a name, or a path to a skeleton with a `.skin.yaml` beside it.
        duration: [s].
        time_step: of the coupled frame [s].
        motion: "hold", "sine", "steps", or a table.
        amplitude, period: of a motion by name [rad, s].
        self_collision, link_collision: of the skin with itself and with links.
        ground: whether z = 0 holds patches and skin up.
        friction: of the ground.
        youngs_modulus, material, poisson_ratio: in place of the file's, in all
            regions; 9e7 Pa is the paper's printed value.
        unlimited: leave the servos' effort limits out.
        threads: of the sparse solver.
        skin_period: between stored shapes of the skin [s].
        time_limit: of wall time [s].

    Raises:
        InvalidInput, UnknownName: for a value that cannot be.
    """

    model: str = "skinned_leg"
    duration: float = 2.0
    time_step: float = 5e-3
    motion: str | TableMotion = "sine"
    amplitude: float = 0.4
    period: float = 2.0
    self_collision: bool = True
    link_collision: bool = True
    ground: bool = True
    friction: float = 0.8
    youngs_modulus: float | None = None
    material: str | None = None
    poisson_ratio: float | None = None
    unlimited: bool = False
    threads: int = 1
    skin_period: float = 0.02
    time_limit: float | None = None

    def __post_init__(self):
        check_duration(self.duration)
        for name in ("time_step", "skin_period", "time_limit"):
            value = getattr(self, name)
            if value is not None and not (np.isfinite(value) and value > 0):
                raise InvalidInput(f"{name} must be > 0 s, got {value}")
        if self.time_step > self.duration:
            raise InvalidInput(
                f"time_step {self.time_step:g} s is longer than the run, "
                f"{self.duration:g} s"
            )
        if self.threads < 1 or self.threads % 1:
            raise InvalidInput(f"threads must be a number >= 1, got {self.threads}")
        if not (np.isfinite(self.friction) and self.friction >= 0):
            raise InvalidInput(f"friction must be >= 0, got {self.friction}")
        if not isinstance(self.motion, TableMotion):
            self.named_motion()
        self.changed(Material())

    def named_motion(self) -> NamedMotion | TableMotion:
        """The motion of the joints."""
        if isinstance(self.motion, TableMotion):
            return self.motion
        return NamedMotion(self.motion, self.amplitude, self.period)

    def changed(self, material: Material) -> Material:
        """A material with this problem's values in place of its own."""
        new = {
            "kind": self.material,
            "youngs_modulus": self.youngs_modulus,
            "poisson_ratio": self.poisson_ratio,
        }
        return replace(material, **{k: v for k, v in new.items() if v is not None})


def skin_model(problem: SkinSimulation, robot: SkinnedRobot) -> FemModel:
    """The robot's skin with the problem's materials."""
    changed = {
        region: problem.changed(material)
        for region, material in zip(robot.mesh.regions, robot.fem.materials)
    }
    if tuple(changed.values()) == robot.fem.materials:
        return robot.fem
    return build_model(robot.mesh, changed, quadratic=robot.skin.second_order)


def collisions(
    robot: SkinnedRobot,
    *,
    links: bool = True,
    itself: bool = True,
    ground: SkinGround | None = None,
    penalty: Penalty | None = None,
) -> Collisions:
    """What the robot's skin touches.

    Args:
        links, itself: whether the skin meets the links and itself.
        ground: or None.
        penalty: of links and itself.
    """
    penalty = (
        Penalty(PENALTY_STIFFNESS, PENALTY_DAMPING) if penalty is None else penalty
    )
    wall = wall_size(robot.mesh, np.ones(len(robot.mesh.tets), bool))[1]
    return Collisions(
        link_contact(robot.fem, robot.glue, robot.plant, robot.context, penalty)
        if links
        else None,
        self_contact(robot.fem, penalty, margin=wall / 8, reach=wall / 2)
        if itself
        else None,
        ground,
    )


def build_stepper(problem: SkinSimulation, robot: SkinnedRobot) -> CoupledStepper:
    """The stepper of a simulation."""
    ground = problem.ground
    return robot.stepper(
        problem.time_step,
        effort_limits=np.full(len(robot.joints), np.inf) if problem.unlimited else None,
        patches=robot.skin.patches if ground else (),
        patch_contact=PatchContact(problem.friction) if ground else None,
        collisions=collisions(
            robot,
            links=problem.link_collision,
            itself=problem.self_collision,
            ground=SkinGround(problem.friction) if ground else None,
        ),
        threads=problem.threads,
    )


Started = Callable[[SkinnedRobot], None]


def simulate_skinned(
    problem: SkinSimulation = SkinSimulation(), *, progress: Progress | None = None
) -> Result:
    """Runs the motion; what was reached is returned even when it is cut short.

    Args:
        problem: what to simulate.
        progress: called with the time reached and the end time [s].

    Raises:
        DrakebotsError: for a model or a problem that cannot be, before the run.
    """
    began = clock.perf_counter()
    robot = load_skinned(problem.model)
    robot = replace(robot, fem=skin_model(problem, robot))
    motion = problem.named_motion()
    rest = robot.joint_positions(robot.rest_positions)
    motion.at(0.0, rest)
    stepper = build_stepper(problem, robot)
    state = stepper.start()
    record = SkinRecord(robot, stepper, problem.skin_period)
    record.add(state, motion.at(0.0, rest))
    loaded = clock.perf_counter() - began
    end = _run(problem, robot, stepper, state, motion, rest, record, progress)
    path = robot.model.path
    files = [path, skin_path(path), path.parent / robot.skin.mesh]
    return Result(
        kind="skin.simulation",
        model=robot.model.name,
        verdict=end.verdict,
        message=end.message,
        data=record.dataset(),
        residuals={"glue gap [m]": record.worst_gap},
        timings={"load": loaded, "simulate": end.wall},
        metrics={
            "system": "skinned",
            "frames": record.frames - 1,
            "wall_s_per_simulated_s": end.wall / max(end.time, problem.time_step),
            "frame_ms": 1e3 * end.wall / max(record.frames - 1, 1),
            "worst_volume_ratio": record.worst_ratio,
            "largest_torque_N_m": record.largest_torque,
            "saturated_share": record.saturated_share,
            "tracking_error_rad": record.tracking_error,
            "largest_stress_Pa": record.largest_stress,
            **{k: v for k, v in robot.report().items() if k.endswith("_kg")},
        },
        provenance=provenance(files, asdict(problem)),
    )


def _run(problem, robot, stepper, state, motion, rest, record, progress) -> RunEnd:
    start, dt = clock.perf_counter(), problem.time_step
    frames = max(1, round(problem.duration / dt))

    def end(verdict, message):
        return RunEnd(verdict, message, state.skin.time, clock.perf_counter() - start)

    try:
        with CtrlC() as stop, calm_threads():
            for k in range(1, frames + 1):
                goal = motion.at(k * dt, rest)
                result = stepper.step(state, servo=robot.servo(goal))
                if not result.converged:
                    return end(Verdict.FAILED, result.message)
                state = result.state
                record.add(state, goal, result, last=k == frames)
                stop.check()
                if progress is not None:
                    progress(state.skin.time, problem.duration)
                spent, limit = clock.perf_counter() - start, problem.time_limit
                if limit is not None and spent > limit and k < frames:
                    return end(
                        Verdict.TIME_LIMIT,
                        f"stopped at the time limit of {limit:g} s; raise it to go "
                        "on further",
                    )
    except KeyboardInterrupt:
        return end(Verdict.INTERRUPTED, "interrupted; what was reached is kept")
    return end(Verdict.SUCCESS, f"reached {state.skin.time:g} s")
