"""Simulate the walking voxel robot in Drake: its gait, its feet, the ground.

    gait table ──▶ ActuatorLengths ──▶ the plant's Context (distance constraints)
                                        │
    FeetContact ◀── contact results ────┤ plant + ground
         └── shift of the friction disc ┘

Both act from the Simulator's monitor, between two steps.

Over 90 % of the weight stands on the back feet. At 1 s a pose and 5 mm of stroke the
walk repeats itself and travels 1.7 mm a cycle forward, 3.7 mm backward, and 2.0 to
2.4 mm with friction 0.15 to 1 under all feet; steps of 1 and 0.5 ms agree to 5 %, 2 ms
is up to 18 % off. Faster, it bounces: 2 to 3 mm at 0.5 s a pose, and 2 ms steps are
too long. The experiment's 3.9 mm were walked with feet and timing that are not
published; feet that slide 3 % easier forward give 3.9 mm too, 10 % give 8.5 mm: a
fit, no prediction (scripts/papers/voxels/voxel_walk.py).
"""

from __future__ import annotations

import time as clock
from dataclasses import asdict, dataclass, replace

import numpy as np
from pydrake.math import RigidTransform
from pydrake.multibody.plant import (
    AddMultibodyPlant,
    MultibodyPlant,
    MultibodyPlantConfig,
)
from pydrake.systems.analysis import Simulator
from pydrake.systems.framework import Diagram, DiagramBuilder, EventStatus

from drakebots.core.errors import InvalidInput
from drakebots.core.run import RunEnd, Verdict
from drakebots.core.units import SI
from drakebots.model import LoopClosure, load
from drakebots.multibody import Ground, Progress, Robot, advance
from drakebots.results import Result
from drakebots.robots.voxels.model import (
    ACTUATORS,
    OctahedraPlant,
    found_octahedra,
    place_at_rest,
    walker,
)
from drakebots.robots.voxels.walk.actuators import (
    ActuatorLengths,
    Actuators,
    FeetContact,
    add_actuators,
    find_feet,
)
from drakebots.robots.voxels.walk.gait import Gait, GaitMotion, find_gait
from drakebots.robots.voxels.walk.result import make_result

# The one who commands the actuators, shifts the friction, and keeps the log.

TIPPED = np.cos(np.radians(35.0))
"""A robot whose up axis has turned this far has tipped over; gaits turn 10 deg."""


class WalkLog:
    """Is a simulator's monitor: called after each step, and once at the start.

    Args:
        walk: the built diagram.
        motion: u (M,) [m] over time.
        time_step, log_period: [s].

    Attributes:
        times: of the samples [s]; the other lists belong to them.
        states: (nq + nv,).
        forces: of the ground on the feet (F, 3) [N], the shift with them.
        commanded, lengths, pushes: of the actuators (M,) [m], [m], [N].
        fallen: when the robot tipped over [s], or None.
    """

    def __init__(self, walk, motion, time_step: float, log_period: float):
        self.walk, self._step = walk, time_step
        self._every = max(1, round(log_period / time_step))
        self._commands = ActuatorLengths(walk.actuators, motion)
        self._shifts = np.zeros((len(walk.feet.feet), 3))
        self.times, self.states, self.forces = [], [], []
        self.commanded, self.lengths, self.pushes = [], [], []
        self.fallen: float | None = None
        self._count = 0

    def watch(self, simulator: Simulator) -> None:
        """Begins with the simulator's context; before Initialize."""
        root = simulator.get_mutable_context()
        self._context = self.walk.plant.GetMyMutableContextFromRoot(root)
        self._commands.set_for(self._context, root.get_time() + self._step)
        self._sample(root.get_time(), self._shifts)
        simulator.set_monitor(self._after_step)

    def _after_step(self, root) -> EventStatus:
        time = root.get_time()
        # AdvanceTo may also stop between two steps of the plant.
        count = int(np.floor(time / self._step + 1e-6))
        if count <= self._count:
            return EventStatus.DidNothing()
        self._count = count
        context, feet = self._context, self.walk.feet
        directional = bool(feet.bias.any())
        sample = count % self._every == 0
        if sample or directional:
            forces = feet.forces(context)
        if sample:
            self._sample(time, forces + self._shifts)
        if directional:
            self._shifts = feet.shift(context, np.maximum(forces[:, 2], 0.0))
            feet.apply(context, self._shifts)
        self._commands.set_for(context, time + self._step)
        return EventStatus.DidNothing()

    def _sample(self, time: float, forces: np.ndarray) -> None:
        walk, context = self.walk, self._context
        commanded = self._commands.commanded
        self.times.append(time)
        self.states.append(walk.plant.GetPositionsAndVelocities(context).copy())
        self.forces.append(forces.copy())
        self.commanded.append(commanded.copy())
        length, rate = walk.actuators.lengths(context)
        self.lengths.append(length)
        k, d = walk.actuators.stiffness, walk.actuators.damping
        self.pushes.append(k * (commanded - length) - d * rate)
        poses = walk.built.poses(context)
        if self.fallen is None and poses[:8, 2, 2].mean() < TIPPED:
            self.fallen = time


GROUND_FRICTION = 1.0
"""The feet's own mu are made for it, see `surface_friction`."""

LONGEST_STEP = 3e-3
"""At which a walk still holds together [s]."""


@dataclass(frozen=True)
class VoxelWalk:
    """What to simulate: three cycles forward by default.

    Attributes:
        gait: "forward", "backward" or "reverse", poses (K, 4) of blue, yellow, red,
            green [m], or a :class:`drakebots.robots.voxels.walk.gait.Gait`.
        cycles: of the gait, after the robot has settled at rest.
        pose_time: of each pose [s].
        ramp: share of it in which the actuators go from pose to pose.
        stroke: displacement of an actuator's lower node either way [m], at full
            length in the gaits by name and at most in a table; an actuator
            changes its length by twice that. None for the file's.
        friction_front, friction_back: mu of the feet on the ground, the mean of
            both directions; None for the file's.
        directional: share s by which the feet slide easier forward: mu (1 - s)
            forward, mu (1 + s) backward.
        point_feet: whether the back feet are points, without heel and toe.
        joint_damping: of each ball joint, beside that of the bushings in the model
            file [N m s/rad]; None for the file's. Drake integrates it implicitly.
        settle: time at rest before the gait [s].
        stiction: slip speed below which a foot counts as holding [m/s].
        time_step, log_period: [s].
        time_limit: of wall time [s].

    Raises:
        InvalidInput: for numbers that are not finite or out of range.
        UnknownName: for a gait that is none.
    """

    gait: str | tuple | Gait = "forward"
    cycles: int = 3
    pose_time: float = 1.0
    ramp: float = 1.0
    stroke: float | None = None
    friction_front: float | None = None
    friction_back: float | None = None
    directional: float = 0.0
    point_feet: bool = False
    joint_damping: float | None = None
    settle: float = 0.3
    stiction: float = 1e-5
    time_step: float = 1e-3
    log_period: float = 0.02
    time_limit: float | None = None

    def __post_init__(self):
        friction = walker.value("friction")
        for name, default in (
            ("stroke", walker.value("stroke")),
            ("friction_front", friction["front"]),
            ("friction_back", friction["back"]),
            ("joint_damping", walker.value("joint_damping")),
        ):
            if getattr(self, name) is None:
                object.__setattr__(self, name, default)
        if not (np.isfinite(self.cycles) and self.cycles >= 1) or self.cycles % 1:
            raise InvalidInput(f"cycles must be a whole number >= 1, got {self.cycles}")
        for name in ("pose_time", "stiction", "time_step", "log_period", "time_limit"):
            value = getattr(self, name)
            if value is not None and not (np.isfinite(value) and value > 0):
                raise InvalidInput(f"{name} must be > 0, got {value}")
        if self.log_period > self.pose_time:
            raise InvalidInput(
                f"log_period {self.log_period:g} s is longer than a pose; the travel "
                f"of a cycle would be lost; use {self.pose_time:g} s or less"
            )
        for name in ("settle", "joint_damping"):
            if not (np.isfinite(getattr(self, name)) and getattr(self, name) >= 0):
                raise InvalidInput(f"{name} must be >= 0, got {getattr(self, name)}")
        if not 0 < self.ramp <= 1:
            raise InvalidInput(f"ramp must be within 0..1 of a pose, got {self.ramp}")
        if not 0 <= self.directional < 1:
            raise InvalidInput(
                f"directional must be within 0..1 (not 1 itself): {self.directional}"
            )
        if not 0 <= self.stroke <= 0.2 * walker.value("pitch"):
            raise InvalidInput(
                f"stroke must be within 0..{200 * walker.value('pitch'):.3g} mm (a "
                f"fifth of the pitch), got {1e3 * self.stroke:g} mm"
            )
        poses = self.poses
        if not isinstance(self.gait, str):
            object.__setattr__(self, "gait", tuple(map(tuple, poses.tolist())))
        for name in ("friction_front", "friction_back"):
            if not 0 <= getattr(self, name) <= 1.5:
                raise InvalidInput(
                    f"{name} must be within 0..1.5, got {getattr(self, name)}"
                )
        if self.time_step > LONGEST_STEP:
            raise InvalidInput(
                f"time step {self.time_step:g} s lets the joints' springs blow up; "
                f"use {LONGEST_STEP:g} s or less"
            )

    @property
    def poses(self) -> np.ndarray:
        """Of the gait (K, 4) [m]."""
        return find_gait(self.gait, self.stroke).poses

    @property
    def cycle(self) -> float:
        """Duration of a cycle [s]."""
        return len(self.poses) * self.pose_time

    @property
    def duration(self) -> float:
        """Of the run [s]."""
        return self.settle + self.cycles * self.cycle

    def motion(self) -> GaitMotion:
        """The actuators' displacements over time."""
        return GaitMotion(self.poses, self.pose_time, self.ramp, self.settle)


@dataclass(frozen=True, eq=False)
class WalkDiagram:
    """A built diagram and its parts.

    Attributes:
        diagram: plant and scene graph.
        robot: the plant as drakebots has it.
        built: the lattice in it.
        actuators, feet: of the robot.
    """

    diagram: Diagram
    robot: Robot
    built: OctahedraPlant
    actuators: Actuators
    feet: FeetContact

    @property
    def plant(self) -> MultibodyPlant:
        """The finalized plant."""
        return self.robot.plant

    def simulator(self) -> Simulator:
        """A simulator with the robot standing at rest."""
        simulator = Simulator(self.diagram)
        context = self.plant.GetMyMutableContextFromRoot(
            simulator.get_mutable_context()
        )
        place_at_rest(self.built, context, RigidTransform(walker.rest_pose()))
        self.feet.apply(context, np.zeros((len(self.feet.feet), 3)))
        return simulator


def build(problem: VoxelWalk) -> WalkDiagram:
    """The diagram of a simulation, not yet run."""
    builder = DiagramBuilder()
    config = MultibodyPlantConfig(
        time_step=problem.time_step,
        discrete_contact_approximation="lagged",
        contact_model="point",
        stiction_tolerance=problem.stiction,
    )
    plant, scene_graph = AddMultibodyPlant(config, builder)
    plant.set_name("plant")
    feet = walker.walker_feet(
        problem.friction_front, problem.friction_back, point_feet=problem.point_feet
    )
    cut = walker.walker()
    points = tuple(foot.point(cut) for foot in feet)
    model = replace(load("voxel"), text=walker.walker_sdf(feet), feet=points)
    model.add_to(plant)
    Ground(GROUND_FRICTION).add_to(plant)
    built = found_octahedra(plant, cut)
    actuators = add_actuators(built, ACTUATORS, **walker.value("actuator"))
    for shared in cut.tree:
        # Not in the SDF: Drake's parser has no damping for ball joints.
        joint = plant.GetJointByName(f"node_{shared.node}")
        joint.set_default_damping_vector(np.full(3, problem.joint_damping))
    plant.Finalize()
    bias = [problem.directional * foot.friction for foot in feet]
    contact = find_feet(built, feet, bias, walker.HEADING, scene_graph)
    robot = Robot(model, plant, scene_graph, SI, LoopClosure(plant, model.loops))
    diagram = builder.Build()
    diagram.set_name("voxel")
    return WalkDiagram(diagram, robot, built, actuators, contact)


class _Stopped(Exception):
    """The robot fell: nothing is left to advance."""


def run(
    problem: VoxelWalk = VoxelWalk(), *, progress: Progress | None = None
) -> Result:
    """Simulates the walk; returns what was reached even when cut short.

    Args:
        problem: what to simulate.
        progress: called with the time reached and the end time [s].
    """
    walk = build(problem)
    simulator = walk.simulator()
    log = WalkLog(walk, problem.motion(), problem.time_step, problem.log_period)
    log.watch(simulator)

    def look(stage: str, time: float, duration: float) -> None:
        if log.fallen is not None:
            raise _Stopped
        if progress is not None:
            progress(stage, time, duration)

    began = clock.perf_counter()
    try:
        end = advance(
            simulator,
            walk.robot,
            problem.duration,
            progress=look,
            time_limit=problem.time_limit,
        )
    except _Stopped:
        message = f"the robot tipped over at {log.fallen:.4g} s"
        wall = clock.perf_counter() - began
        end = RunEnd(Verdict.FAILED, message, log.fallen, wall)
    return make_result(problem, asdict(problem), walk, log, end)


__all__ = ["VoxelWalk", "WalkDiagram", "build", "run"]
