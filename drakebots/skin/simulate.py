"""Simulates a skinned robot whose servos follow a motion.

result = simulate_skinned(SkinSimulation(model="skinned_leg", motion="sine"))
result.data.skin_position           # (skin_time, vertex, axis) [m]
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Annotated

import numpy as np

from drakebots.core.checks import (
    array,
    check_log,
    check_value,
    finite,
    flag,
    known,
    non_negative,
    one_of,
    positive,
)
from drakebots.core.convert import changed
from drakebots.core.errors import InvalidInput
from drakebots.core.fields import checked
from drakebots.core.files import csv_table, reading
from drakebots.core.run import Progress, RunEnd, Stop, failed, run_steps
from drakebots.core.stages import spent, timed
from drakebots.core.threads import calm_threads
from drakebots.fem import Penalty, self_contact, wall_size
from drakebots.fem.assembly import FemModel, build_model
from drakebots.fem.material import Material
from drakebots.formats import load
from drakebots.model import find_body, skin_path
from drakebots.multibody import (
    Finding,
    Flat,
    Terrain,
    build_robot,
    covers,
    floats,
    judged,
    looked_at,
    saturated,
)
from drakebots.results import Result
from drakebots.skin.coupled import (
    Collisions,
    CoupledStepper,
    PatchContact,
    SkinGround,
    actuated_joints,
    link_contact,
    patch_points,
)
from drakebots.skin.file import (
    SkinnedRobot,
    check_above_ground,
    check_modulus,
    load_skinned,
)
from drakebots.skin.file.robot import BELOW
from drakebots.skin.record import SkinRecord

COLLISIONS = ("all", "bracing", "itself", "links", "none")
"""What a skin may collide with, besides the ground: "all" are links and itself, and
"bracing" is that and the bracing plates in the skin."""

BRACING = ("plates",)
"""Names of the visual meshes of bracing plates, as :mod:`drakebots.design` has them."""

SOLE = 5e-3
"""Vertices this far above a skin's lowest one stand on the ground [m]."""

STIFFNESS = 10.0
"""Contact stiffness of a vertex over Young's modulus times the skin's mean edge: so
much stiffer than a tet that the skin gives, and not the contact."""


# --- targets of the actuated joints over time ---------------------------------

MOTIONS = ("hold", "sine", "steps")
"""hold: the rest pose; sine: sines of the joints, each a quarter period after the one
before; steps: from the rest pose to +amplitude, to -amplitude and back, each held for
half a period."""


RISE = 0.2
"""Rise time of a step, and of a sine's amplitude at the start [s]."""

Targets = Callable[[float, np.ndarray], np.ndarray]
"""Targets of joints (m,) [rad] at a time [s], for their rest positions (m,)."""


def named_motion(name: str, amplitude: float, period: float) -> Targets:
    """One of MOTIONS, of an amplitude [rad] and a period [s]."""

    def at(time: float, rest: np.ndarray) -> np.ndarray:
        rest = np.asarray(rest, float)
        if name == "hold":
            return rest.copy()
        if name == "sine":
            phase = 2 * np.pi * time / period - np.pi / 2 * np.arange(len(rest))
            return rest + amplitude * _smooth(time / RISE) * np.sin(phase)
        half = period / 2
        levels = (0.0, 1.0, -1.0)
        k = int(time // half)
        now, before = levels[k % 3], levels[(k - 1) % 3] if k else 0.0
        share = _smooth((time - k * half) / RISE)
        return rest + amplitude * (before + (now - before) * share)

    return at


def _smooth(s):
    s = np.clip(s, 0.0, 1.0)
    return s * s * (3 - 2 * s)


@dataclass(frozen=True)
class TableMotion:
    """Targets at given times, linear between them and constant before and after.

    Attributes:
        times: increasing times (n,) [s].
        positions: joint positions (n, m) [rad].

    Raises:
        InvalidInput: for other shapes, or numbers that are not finite.
    """

    times: tuple[float, ...]
    positions: tuple[tuple[float, ...], ...]

    def __post_init__(self):
        times = check_value("motion: times", self.times, array((None,), "s"))
        rows = check_value("motion: positions", self.positions, array((None, None)))
        if not len(times) == len(rows) > 0:
            raise InvalidInput(
                f"motion: {len(times)} times and {len(rows)} rows of positions; needs "
                "as many of each"
            )
        if (np.diff(times) <= 0).any():
            raise InvalidInput("motion: times must increase")
        object.__setattr__(self, "times", tuple(times.tolist()))
        object.__setattr__(self, "positions", tuple(map(tuple, rows.tolist())))

    def at(self, time: float, rest: np.ndarray) -> np.ndarray:
        """Targets (m,) [rad] at a time [s].

        Raises:
            InvalidInput: when the table has another number of joints.
        """
        columns, m = np.transpose(self.positions), len(rest)
        if len(columns) != m:
            raise InvalidInput(f"motion: {len(columns)} joints, the robot has {m}")
        return np.array([np.interp(time, self.times, column) for column in columns])


def read_motion_file(path: str | Path, joints: Sequence[str] = ()) -> TableMotion:
    """Targets in a CSV with a column `time` [s] and one [rad] for each joint.

    The columns may be in any order, and there may be others.

    Raises:
        FileProblem: for a file that is missing or no table, a joint without a column,
            or times that do not increase.
    """
    path, needed = Path(path), ("time", *joints)
    with reading(path):
        heads, table = csv_table(path.read_text(encoding="utf-8"), gaps=True)
        for name in needed:
            if name not in heads:
                raise InvalidInput(f"has no column {name!r}; needs {', '.join(needed)}")
        time, *places = table[:, [heads.index(name) for name in needed]].T
        return TableMotion(tuple(time), tuple(zip(*places)) or ((),) * len(time))


# --- the simulation -----------------------------------------------------------


@checked()
class SkinSimulation:
    """A simulation of a skinned robot.

    Raises:
        InvalidInput, UnknownName: for a value out of range or an unknown name.
    """

    model: str | Path = "skinned_leg"
    """Name or path of a skeleton with a `.skin.yaml` beside it."""
    duration: Annotated[float, positive("s")] = 2.0
    """Duration of the motion."""
    time_step: Annotated[float, positive("s")] = 5e-3
    """Time step of skeleton and skin."""
    motion: Annotated[str | TableMotion, known(MOTIONS)] = "sine"
    """Motion of the joints, or a table of time and joints (.csv)."""
    amplitude: Annotated[float, finite("rad")] = 0.4
    """Amplitude of a named motion."""
    period: Annotated[float, positive("s")] = 2.0
    """Period of a named motion."""
    collisions: Annotated[str, one_of("kind of collisions", COLLISIONS)] = "all"
    """What the skin collides with: "itself", "links", "all" of these, "bracing" (all,
    and bracing plates) or "none"."""
    ground: Annotated[bool, flag()] = True
    """Whether there is ground under contact points and skin."""
    terrain: Terrain = field(default_factory=Flat)
    """The ground; a robot that starts on uneven ground leans with it."""
    friction: Annotated[float, non_negative()] = 0.8
    """Friction coefficient of the ground."""
    material: Mapping[str, float | str] = field(default_factory=dict)
    """Fields of the material in all regions, in place of the file's, as youngs_modulus
    (the paper prints 9e7) or kind."""
    unlimited: Annotated[bool, flag()] = False
    """Whether to ignore the effort limits of the servos."""
    skin_period: Annotated[float, positive("s")] = 0.02
    """Time between stored shapes of the skin."""
    time_limit: Annotated[float | None, positive("s")] = None
    """Limit of the wall time; what was reached is kept."""

    def __post_init__(self):
        if self.time_step > self.duration:
            raise InvalidInput(
                f"time_step {self.time_step:g} s is longer than the run, "
                f"{self.duration:g} s"
            )
        check_log(self.duration, self.time_step, 2e3)
        self.joint_motion()
        self.changed(Material())
        if "youngs_modulus" in self.material:
            check_modulus("", self.material["youngs_modulus"])

    def joint_motion(self) -> Targets:
        """The motion of the joints; of none where a file is not yet read for them."""
        if isinstance(self.motion, TableMotion):
            return self.motion.at
        if Path(self.motion).suffix:
            return read_motion_file(self.motion).at
        check_value("motion", self.motion, one_of("motion", MOTIONS))
        return named_motion(self.motion, self.amplitude, self.period)

    def changed(self, material: Material) -> Material:
        """A material with this problem's values in place of its own."""
        return changed(material, self.material, "material")


def skin_model(problem: SkinSimulation, robot: SkinnedRobot) -> FemModel:
    """The robot's skin with the problem's materials."""
    changed = {
        region: problem.changed(material)
        for region, material in zip(robot.mesh.regions, robot.fem.materials)
    }
    if tuple(changed.values()) == robot.fem.materials:
        return robot.fem
    return build_model(robot.mesh, changed, quadratic=robot.skin.second_order)


def skin_collisions(
    robot: SkinnedRobot, kind: str, ground: SkinGround | None = None
) -> Collisions:
    """Contact of a robot's skin with its links and itself, by one of COLLISIONS.

    It is as stiff as the skin. A tet with an edge h [m] of a modulus E [Pa] is a spring
    of about E h; k is STIFFNESS times that of the stiffest region, and c/k is its
    stiffness damping.
    """
    links = itself = None
    if kind == "none":
        return Collisions(ground=ground)
    edge, wall = wall_size(robot.mesh, np.ones(len(robot.mesh.tets), bool))
    stiffest = max(robot.fem.materials, key=lambda material: material.youngs_modulus)
    k = STIFFNESS * stiffest.youngs_modulus * edge
    penalty = Penalty(k, k * stiffest.stiffness_damping)
    if kind != "itself":
        at = robot.fem, robot.glue, robot.plant, robot.context
        links = link_contact(*at, penalty, bracing=BRACING * (kind == "bracing"))
    if kind != "links":
        itself = self_contact(robot.fem, penalty, margin=wall / 8, reach=wall / 2)
    return Collisions(links, itself, ground)


def build_stepper(problem: SkinSimulation, robot: SkinnedRobot) -> CoupledStepper:
    """The stepper of a simulation."""
    contact = ground = None
    if problem.ground:
        given = {"friction": problem.friction, "terrain": problem.terrain}
        contact, ground = PatchContact(**given), SkinGround(**given)
    return robot.stepper(
        problem.time_step,
        effort_limits=np.full(len(robot.joints), np.inf) if problem.unlimited else None,
        patches=robot.skin.patches if problem.ground else (),
        patch_contact=contact,
        collisions=skin_collisions(robot, problem.collisions, ground),
    )


def on_ground(problem: SkinSimulation, robot: SkinnedRobot) -> np.ndarray | None:
    """Positions (nq,) in which the robot stands on its ground; None for those at rest.

    Raises:
        InvalidInput: for a robot that starts below the ground.
    """
    plant, context, terrain = robot.plant, robot.context, problem.terrain
    patches, given = robot.skin.patches, (robot.mesh, plant, robot.context)
    plant.SetPositions(context, robot.rest_positions)
    if terrain == Flat() or not floats(robot.model):
        check_above_ground(*given, patches, terrain)
        return None
    points, low = robot.mesh.vertices, robot.mesh.vertices[:, 2].min()
    soles = [points[points[:, 2] < low + SOLE]]
    soles += [patch_points(plant, context, patches)[0]] if patches else []
    robot.robot.put_onto(context, terrain, np.vstack(soles))
    return plant.GetPositions(context)


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
    if isinstance(problem.motion, str) and Path(problem.motion).suffix:
        # Joints are known without the skin, which takes seconds to load.
        joints = actuated_joints(build_robot(load(problem.model)).plant)
        problem = replace(problem, motion=read_motion_file(problem.motion, joints))
    robot = load_skinned(problem.model)
    robot = replace(robot, fem=skin_model(problem, robot))
    motion, dt = problem.joint_motion(), problem.time_step
    rest = robot.joint_positions(robot.rest_positions)
    motion(0.0, rest)
    stepper = build_stepper(problem, robot)
    state = stepper.start(on_ground(problem, robot) if problem.ground else None)
    record = SkinRecord(robot, stepper, problem.skin_period)
    record.add(state, motion(0.0, rest))
    steps = max(1, round(problem.duration / dt))

    def step(k: int) -> Stop | None:
        nonlocal state
        target = motion(k * dt, rest)
        result = stepper.step(state, servo=robot.servo(target))
        if not result.converged:
            return failed(result.message)
        state = result.state
        record.add(state, target, result, last=k == steps)
        return None

    reached = partial(_simulated, problem, record)
    with calm_threads():
        end = run_steps(
            step,
            steps,
            stage="simulate",
            until=steps * dt,
            progress=progress,
            time_limit=problem.time_limit,
            reached=reached,
            seen=lambda: (robot.robot, state.q, robot.mesh, state.skin.positions),
        )
    return reached(end)


def bare_links(robot: SkinnedRobot, terrain: Terrain, q: np.ndarray) -> list[Finding]:
    """How deep a link without skin and contact points is in the ground.

    Args:
        robot: the robot.
        terrain: the ground, which only skin and contact points touch.
        q: positions of the plant over time (T, nq).
    """
    plant, context = robot.plant, robot.context
    touch = {*robot.glue.by_body(), *(one.body for one in robot.skin.patches)}
    touch = {find_body(plant, name).index() for name in touch}
    bare = [
        (plant.get_body(shape.body), shape)
        for shape in covers(plant, robot.robot.scene_graph)
        if shape.body not in touch and not plant.IsAnchored(plant.get_body(shape.body))
    ]
    deepest, link = 0.0, ""
    for now in q[::-5]:
        plant.SetPositions(context, now)
        for body, shape in bare:
            X_WB = plant.EvalBodyPoseInWorld(context, body)
            p_W = X_WB.multiply(shape.points.T).reshape(3, -1).T
            depth = shape.radius - terrain.evaluate(p_W)[0].min()
            deepest, link = max((deepest, link), (depth, body.name()))
    words = (
        f"link {link} is {1e3 * deepest:.0f} mm in the ground, which only skin and "
        f"contact points touch: list patches in {skin_path(robot.model.path).name}"
    )
    return [Finding("depth of a link", deepest, "m", BELOW, np.inf, words)]


def _simulated(problem: SkinSimulation, record: SkinRecord, end: RunEnd) -> Result:
    """The result of a simulation that ended."""
    robot, stepper, data = record.robot, record.stepper, record.dataset()
    findings = saturated(record.torques, stepper.effort_limits, robot.joints)
    if problem.ground:
        findings += bare_links(robot, problem.terrain, data.position.values)
    verdict, message = judged(end, findings, "it moves")
    return Result(
        kind="skin.simulation",
        model=robot.model.name,
        verdict=verdict,
        message=message,
        data=data,
        timings=spent(),
        metrics={
            "system": "skinned",
            "sparse_solver": stepper.solver.name,
            "frames": end.steps,
            "wall_s_per_simulated_s": end.wall / max(end.time, stepper.dt),
            "frame_ms": 1e3 * end.wall / max(end.steps, 1),
            **record.figures(),
            "tracking_error_rad": record.tracking_error,
            "largest_stress_Pa": record.shapes.largest_stress,
            "judged": looked_at(findings),
            **{k: v for k, v in robot.report().items() if k.endswith("_kg")},
        },
        **record.origin(problem),
    )
