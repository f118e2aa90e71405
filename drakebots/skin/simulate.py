"""Simulates a skinned robot whose servos follow a motion.

result = simulate_skinned(SkinSimulation(model="skinned_leg", motion="sine"))
result.data.skin_position           # (skin_time, vertex, axis) [m]
"""

from __future__ import annotations

from dataclasses import asdict, dataclass, replace

import numpy as np

from drakebots.core.checks import (
    MOST_THREADS,
    check,
    check_log,
    finite,
    flag,
    non_negative,
    optional,
    positive,
    whole,
)
from drakebots.core.errors import InvalidInput
from drakebots.core.run import Progress, RunEnd, Stop, failed, run_steps
from drakebots.core.stages import spent, timed
from drakebots.core.threads import calm_threads
from drakebots.fem import Penalty, self_contact, wall_size
from drakebots.fem.assembly import FemModel, build_model
from drakebots.fem.material import Material
from drakebots.model import model_provenance, skin_path
from drakebots.multibody import judged, looked_at, saturated
from drakebots.results import Result
from drakebots.skin.file import (
    SkinnedRobot,
    check_above_ground,
    check_modulus,
    load_skinned,
)
from drakebots.skin.frame import (
    Collisions,
    CoupledStepper,
    PatchContact,
    SkinGround,
    link_contact,
)
from drakebots.skin.motion import NamedMotion, TableMotion
from drakebots.skin.record import SkinRecord

STIFFNESS = 10.0
"""Contact stiffness of a vertex over Young's modulus times the skin's mean edge: so
much stiffer than a tet that the skin gives, and not the contact."""


@dataclass(frozen=True)
class SkinSimulation:
    """A simulation of a skinned robot.

    Attributes:
        model: name or path of a skeleton with a `.skin.yaml` beside it.
        duration: duration of the motion [s].
        time_step: time step of skeleton and skin [s].
        motion: motion of the joints: "hold", "sine", "steps", or a table.
        amplitude: amplitude of a named motion [rad].
        period: period of a named motion [s].
        self_collision: whether the skin collides with itself.
        link_collision: whether the skin collides with the links.
        ground: whether there is ground at z = 0 under contact points and skin.
        friction: friction coefficient of the ground.
        youngs_modulus: Young's modulus of all regions of the skin [Pa]; the file's by
            default; the paper prints 9e7.
        material: kind of material of all regions; the file's by default.
        poisson_ratio: Poisson's ratio of all regions; the file's by default.
        unlimited: whether to ignore the effort limits of the servos.
        threads: number of threads of the sparse solver.
        skin_period: time between stored shapes of the skin [s].
        time_limit: limit of the wall time [s]; what was reached is kept.

    Raises:
        InvalidInput, UnknownName: for a value out of range or an unknown name.
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
        seconds = positive("s")
        check(self, "", duration=seconds, time_step=seconds, skin_period=seconds)
        check(self, "", time_limit=optional(seconds), period=seconds)
        check(self, "", amplitude=finite("rad"), friction=non_negative())
        check(self, "", threads=whole(1, MOST_THREADS), unlimited=flag(), ground=flag())
        check(self, "", self_collision=flag(), link_collision=flag())
        if self.time_step > self.duration:
            raise InvalidInput(
                f"time_step {self.time_step:g} s is longer than the run, "
                f"{self.duration:g} s"
            )
        check_log(self.duration, self.time_step, 2e3)
        self.joint_motion()
        self.changed(Material())
        if self.youngs_modulus is not None:
            check_modulus("", self.youngs_modulus)

    def joint_motion(self) -> NamedMotion | TableMotion:
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


def skin_penalty(model: FemModel, edge: float) -> Penalty:
    """Contact of each vertex with links and the skin itself, as stiff as the skin.

    A tet with an edge h [m] of a modulus E [Pa] is a spring of about E h; k is
    STIFFNESS times that of the stiffest region, and c/k is its stiffness damping.
    """
    stiffest = max(model.materials, key=lambda material: material.youngs_modulus)
    k = STIFFNESS * stiffest.youngs_modulus * edge
    return Penalty(k, k * stiffest.stiffness_damping)


def build_stepper(problem: SkinSimulation, robot: SkinnedRobot) -> CoupledStepper:
    """The stepper of a simulation."""
    links = itself = contact = ground = None
    edge, wall = wall_size(robot.mesh, np.ones(len(robot.mesh.tets), bool))
    penalty = skin_penalty(robot.fem, edge)
    if problem.link_collision:
        links = link_contact(robot.fem, robot.glue, robot.plant, robot.context, penalty)
    if problem.self_collision:
        itself = self_contact(robot.fem, penalty, margin=wall / 8, reach=wall / 2)
    if problem.ground:
        check_above_ground(robot.mesh, robot.plant, robot.context, robot.skin.patches)
        contact = PatchContact(problem.friction)
        ground = SkinGround(problem.friction)
    return robot.stepper(
        problem.time_step,
        effort_limits=np.full(len(robot.joints), np.inf) if problem.unlimited else None,
        patches=robot.skin.patches if problem.ground else (),
        patch_contact=contact,
        collisions=Collisions(links, itself, ground),
        threads=problem.threads,
    )


@timed("load")
def simulate_skinned(
    problem: SkinSimulation = SkinSimulation(), *, progress: Progress | None = None
) -> Result:
    """Simulates the motion; a run that ends early returns what was reached.

    Args:
        problem: the simulation.
        progress: called after each time step with the simulated time [s].

    Returns:
        A result of kind "skin.simulation"; its data are those of
        :meth:`~drakebots.skin.record.SkinRecord.dataset`.

    Raises:
        DrakebotsError: for a fault of model or problem, before the run.
    """
    robot = load_skinned(problem.model)
    robot = replace(robot, fem=skin_model(problem, robot))
    motion, dt = problem.joint_motion(), problem.time_step
    rest = robot.joint_positions(robot.rest_positions)
    motion.at(0.0, rest)
    stepper = build_stepper(problem, robot)
    state = stepper.start()
    record = SkinRecord(robot, stepper, problem.skin_period)
    record.add(state, motion.at(0.0, rest))
    steps = max(1, round(problem.duration / dt))

    def step(k: int) -> Stop | None:
        nonlocal state
        target = motion.at(k * dt, rest)
        result = stepper.step(state, servo=robot.servo(target))
        if not result.converged:
            return failed(result.message)
        state = result.state
        record.add(state, target, result, last=k == steps)
        return None

    def reached(end: RunEnd) -> Result:
        path, data = robot.model.path, record.dataset()
        findings = saturated(data.torque.values, stepper.effort_limits, robot.joints)
        verdict, message = judged(end, findings, "it moves")
        files = [skin_path(path), path.parent / robot.skin.mesh]
        return Result(
            kind="skin.simulation",
            model=robot.model.name,
            verdict=verdict,
            message=message,
            data=data,
            residuals={"glue gap [m]": record.worst_gap},
            timings=spent(),
            metrics={
                "system": "skinned",
                "sparse_solver": stepper.solver.name,
                "frames": end.steps,
                "wall_s_per_simulated_s": end.wall / max(end.time, dt),
                "frame_ms": 1e3 * end.wall / max(end.steps, 1),
                "worst_volume_ratio": record.worst_ratio,
                "largest_torque_N_m": record.largest_torque,
                "saturated_share": record.saturated_share,
                "tracking_error_rad": record.tracking_error,
                "largest_stress_Pa": record.largest_stress,
                "judged": looked_at(findings),
                **{k: v for k, v in robot.report().items() if k.endswith("_kg")},
            },
            provenance=model_provenance(robot.model, asdict(problem), files=files),
        )

    with calm_threads():
        end = run_steps(
            step,
            steps,
            stage="simulate",
            until=steps * dt,
            progress=progress,
            time_limit=problem.time_limit,
            reached=reached,
        )
    return reached(end)
