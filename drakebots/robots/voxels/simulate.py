"""The walking voxel robot in Drake: its gait, its feet, the ground.

    gait table ──▶ commanded lengths ──▶ the plant's Context (distance constraints)
                                          │
    FeetContact ◀── contact results ──────┤ plant + ground
         └── shift of the friction disc ──┘

Both act from the Simulator's monitor, between two steps.

Over 90 % of the weight is on the back feet. At 1 s a pose and 5 mm of stroke the walk
repeats itself and travels 1.7 mm a cycle forward, 3.7 mm backward, and 2.0 to 2.4 mm
with friction 0.15 to 1 under all feet; time steps of 1 and 0.5 ms agree to 5 %, 2 ms is
up to 18 % off. Faster, the robot bounces: it travels 2 to 3 mm at 0.5 s a pose, and 2
ms steps are too long. The experiment's 3.9 mm were walked with feet and timing that
are not published; feet that slide 3 % more easily forward give 3.9 mm too, 10 % give
8.5 mm: a fit, not a prediction (scripts/papers/voxels/voxel_walk.py).
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Annotated

import numpy as np
from pydrake.math import RigidTransform
from pydrake.multibody.plant import (
    AddMultibodyPlant,
    MultibodyPlant,
    MultibodyPlantConfig,
)
from pydrake.systems.analysis import Simulator
from pydrake.systems.framework import Diagram, DiagramBuilder, EventStatus

from drakebots.core.checks import (
    between,
    check_log,
    in_unit,
    known,
    non_negative,
    positive,
    whole,
)
from drakebots.core.convert import as_yaml
from drakebots.core.errors import InvalidInput
from drakebots.core.fields import check, checked
from drakebots.core.run import Progress, RunEnd, Stop, failed
from drakebots.core.stages import timed
from drakebots.core.units import SI
from drakebots.formats import load
from drakebots.model import LoopClosure, given, parameters_of
from drakebots.multibody import Ground, Robot, advance, has_fallen
from drakebots.results import Result
from drakebots.robots.voxels.gait import GAITS, Gait, GaitMotion, find_gait
from drakebots.robots.voxels.model import (
    ACTUATORS,
    HEADING,
    MODEL,
    Feet,
    OctahedraPlant,
    core_tilt,
    find_octahedra,
    place_at_rest,
    rest_pose,
    walker,
    walker_sdf,
)
from drakebots.robots.voxels.plant import (
    Actuators,
    FeetContact,
)
from drakebots.robots.voxels.result import walk_result

GROUND_FRICTION = 1.0
"""The mu of the feet is given against this ground; see `surface_friction`."""

LONGEST_STEP = 3e-3
"""Longest time step at which a walk stays stable [s]."""


@checked()
class Simulation:
    """A walk of the voxel robot: by default three cycles forward.

    Raises:
        InvalidInput: for numbers that are not finite or out of range.
        UnknownName: for an unknown gait.
    """

    gait: Annotated[str | tuple | Gait, known(GAITS)] = "forward"
    """The gait: forward, backward, or a table of poses (.csv, .yaml; .nc of a search);
    in Python also poses (K, 4) of blue, yellow, red, green [m], or a
    :class:`drakebots.robots.voxels.gait.Gait`."""
    cycles: Annotated[int, whole(1)] = 3
    """Number of cycles of the gait, after the robot has settled at rest."""
    pose_time: Annotated[float, positive("s")] = 1.0
    """Duration of each pose."""
    ramp: Annotated[float, between(1e-6, 1)] = 1.0
    """Share of a pose's duration in which the actuators move to the pose."""
    stroke: Annotated[float, in_unit("m")] = given(MODEL, "stroke")
    """Displacement of an actuator's lower node in either direction: the amplitude
    of the gaits by name and the limit of a table; an actuator changes its length by
    twice that. By default that of params.yaml."""
    feet: Feet = field(default_factory=Feet)
    """Friction and shape of the feet, as front=0.8,back=0.5,directional=0.03."""
    front_mass: Annotated[float, non_negative("kg")] = 0.0
    """Mass of the parts that either front voxel carries."""
    joint_damping: Annotated[float, non_negative("N m s/rad")] = given(
        MODEL, "joint_damping"
    )
    """Damping of each ball joint beside that of the bushings in the model file,
    integrated implicitly by Drake; by default that of params.yaml."""
    settle: Annotated[float, non_negative("s")] = 0.3
    """Time at rest before the gait."""
    stiction: Annotated[float, positive("m/s")] = 1e-5
    """Slip speed below which a foot counts as sticking."""
    time_step: Annotated[float, positive("s")] = 1e-3
    """Time step of the plant."""
    log_period: Annotated[float, positive("s")] = 0.02
    """Time between two samples of the log."""
    time_limit: Annotated[float | None, positive("s")] = None
    """Limit of the wall time; what was reached is kept."""

    def __post_init__(self):
        # An actuator can change its length by two fifths of the pitch.
        pitch = parameters_of(MODEL).number("pitch")
        check(self, "", stroke=between(0, 0.2 * pitch, "m"))
        length = self.settle + 8 * self.cycles * self.pose_time
        check_log(length, max(self.log_period, self.time_step))
        if self.log_period > self.pose_time:
            raise InvalidInput(
                f"log_period {self.log_period:g} s is longer than a pose, and the "
                f"travel of a cycle would be lost; use {self.pose_time:g} s or less"
            )
        if self.time_step > LONGEST_STEP:
            raise InvalidInput(
                f"a time step of {self.time_step:g} s makes the joints' springs blow "
                f"up; use {LONGEST_STEP:g} s or less"
            )
        poses = self.poses
        if not isinstance(self.gait, str) or Path(self.gait).suffix:
            object.__setattr__(self, "gait", tuple(map(tuple, poses.tolist())))

    @property
    def poses(self) -> np.ndarray:
        """Poses of the gait (K, 4) [m]."""
        return find_gait(self.gait, self.stroke).poses

    @property
    def cycle(self) -> float:
        """Duration of a cycle [s]."""
        return len(self.poses) * self.pose_time

    @property
    def duration(self) -> float:
        """Duration of the simulation [s]."""
        return self.settle + self.cycles * self.cycle

    def motion(self) -> GaitMotion:
        """The actuators' displacements over time."""
        return GaitMotion(self.poses, self.pose_time, self.ramp, self.settle)


@dataclass(frozen=True, eq=False)
class WalkDiagram:
    """A built diagram and its parts.

    Attributes:
        diagram: plant and scene graph.
        robot: the plant with its model and units.
        built: the lattice in the plant.
        actuators: the robot's actuators.
        feet: the robot's feet.
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
        place_at_rest(self.built, context, RigidTransform(rest_pose()))
        self.feet.apply(context, np.zeros((len(self.feet.feet), 3)))
        return simulator


def build(problem: Simulation) -> WalkDiagram:
    """The diagram of a simulation."""
    builder = DiagramBuilder()
    config = MultibodyPlantConfig(
        time_step=problem.time_step,
        discrete_contact_approximation="lagged",
        contact_model="point",
        stiction_tolerance=problem.stiction,
    )
    plant, scene_graph = AddMultibodyPlant(config, builder)
    plant.set_name("plant")
    feet = problem.feet.spheres()
    cut = walker(problem.front_mass)
    points = tuple(foot.point(cut) for foot in feet)
    model = replace(load(MODEL), text=walker_sdf(feet, cut), feet=points)
    model.add_to(plant)
    Ground(GROUND_FRICTION).add_to(plant)
    built = find_octahedra(plant, cut)
    drive = parameters_of(MODEL).table("actuator")
    actuators = Actuators(built, ACTUATORS, **drive)
    for shared in cut.tree:
        # Not in the SDF: Drake's parser has no damping for ball joints.
        joint = plant.GetJointByName(f"node_{shared.node}")
        joint.set_default_damping_vector(np.full(3, problem.joint_damping))
    plant.Finalize()
    bias = [problem.feet.directional * foot.friction for foot in feet]
    contact = FeetContact(built, feet, bias, HEADING, scene_graph)
    robot = Robot(model, plant, scene_graph, SI, LoopClosure(plant, model.loops))
    diagram = builder.Build()
    diagram.set_name("voxel")
    return WalkDiagram(diagram, robot, built, actuators, contact)


class WalkMonitor:
    """Simulator monitor: commands actuators, shifts the friction, logs samples.

    It is called after each step of the plant, and once at the start.

    Args:
        walk: the built diagram.
        problem: the simulation.

    Attributes:
        samples: of each sample its time [s], the plant's state (nq + nv,), forces of
            the ground on the feet with the shift (F, 3) [N], commanded and present
            lengths of the actuators (M,) [m], their forces (M,) [N].
        fallen: time at which the robot tipped over [s], or None.
    """

    def __init__(self, walk: WalkDiagram, problem: Simulation):
        self.walk, self._step = walk, problem.time_step
        self._every = max(1, round(problem.log_period / problem.time_step))
        self._motion = problem.motion()
        self._shifts = np.zeros((len(walk.feet.feet), 3))
        self.samples: list[tuple] = []
        self.fallen: float | None = None
        self._count = 0

    def watch(self, simulator: Simulator) -> None:
        """Attaches the monitor to a simulator that is not initialized yet."""
        root = simulator.get_mutable_context()
        self._context = self.walk.plant.GetMyMutableContextFromRoot(root)
        self._command(root.get_time() + self._step)
        self._sample(root.get_time(), self._shifts)
        simulator.set_monitor(self._after_step)

    def stop(self) -> Stop | None:
        """Ends the simulation once the robot has tipped over."""
        if self.fallen is None:
            return None
        return failed(f"the robot tipped over at {self.fallen:.4g} s")

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
        self._command(time + self._step)
        return EventStatus.DidNothing()

    def _command(self, time: float) -> None:
        """Commands the lengths of a time [s], the end of the next step."""
        actuators = self.walk.actuators
        self._commanded = actuators.rest - 2 * np.asarray(self._motion(time))
        actuators.command(self._context, self._commanded)

    def _sample(self, time: float, forces: np.ndarray) -> None:
        walk, context = self.walk, self._context
        length, rate = walk.actuators.lengths(context)
        state = walk.plant.GetPositionsAndVelocities(context).copy()
        push = walk.actuators.forces(self._commanded, length, rate)
        sample = time, state, forces.copy(), self._commanded.copy(), length, push
        self.samples.append(sample)
        poses = walk.built.poses(context)
        if self.fallen is None and has_fallen(core_tilt(poses)):
            self.fallen = time


@timed("load")
def simulate(
    problem: Simulation = Simulation(), *, progress: Progress | None = None
) -> Result:
    """Simulates a walk; a walk that is cut short returns what was reached.

    Args:
        problem: the simulation.
        progress: called with the simulated time and the end time [s].

    Returns:
        A result of kind "voxels.simulation".
    """
    walk = build(problem)
    simulator = walk.simulator()
    log = WalkMonitor(walk, problem)
    log.watch(simulator)

    def reached(end: RunEnd) -> Result:
        if log.fallen is not None:
            end = replace(end, time=log.fallen)
        return walk_result(problem, as_yaml(problem), walk, log, end)

    end = advance(
        simulator,
        walk.robot,
        problem.duration,
        progress=progress,
        time_limit=problem.time_limit,
        stop=log.stop,
        reached=reached,
    )
    return reached(end)
