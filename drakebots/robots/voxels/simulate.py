"""The walking voxel robot in Drake: its gait, its feet, the ground.

    gait table ──▶ commanded lengths ──▶ the plant's Context (distance constraints)

The lengths are set between two steps of the plant.

Over 90 % of the weight is on the back feet. At 1 s a pose and 5 mm of stroke the walk
repeats itself and travels 1.7 mm a cycle forward, 3.7 mm backward, and 2.0 to 2.4 mm
with friction 0.15 to 1 under all feet; time steps of 1 and 0.5 ms agree to 5 %, 2 ms is
up to 18 % off. Faster, the robot bounces: it travels 2 to 3 mm at 0.5 s a pose, and 2
ms steps are too long. The experiment's 3.9 mm were walked with feet and timing that
are not published (scripts/papers/voxels/voxel_spread.py).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import xarray as xr
from pydrake.geometry import GeometryId
from pydrake.math import RigidTransform, RotationMatrix
from pydrake.multibody.plant import (
    AddMultibodyPlant,
    MultibodyPlant,
    MultibodyPlantConfig,
)
from pydrake.systems.analysis import Simulator
from pydrake.systems.framework import Diagram, DiagramBuilder
from scipy.spatial.transform import Rotation

from drakebots.control import Command, ControlRun, Law
from drakebots.core.checks import (
    between,
    check_log,
    in_unit,
    known,
    non_negative,
    positive,
    whole,
)
from drakebots.core.errors import InvalidInput
from drakebots.core.fields import check, checked
from drakebots.core.run import Progress, Verdict
from drakebots.core.stages import timed
from drakebots.core.units import SI
from drakebots.formats import load
from drakebots.lattice.pom import Gains
from drakebots.model import (
    LoopClosure,
    contexts_along,
    find_body,
    given,
    parameters_of,
    plane_rotation,
)
from drakebots.multibody import (
    Finding,
    Flat,
    Ground,
    Robot,
    Terrain,
    forces_on_soles,
    has_fallen,
    judged,
    open_loops,
    strides_of,
    trajectory_dataset,
)
from drakebots.results import Result, with_units
from drakebots.robots.voxels.gait import GAITS, Gait, find_gait, gait_motion
from drakebots.robots.voxels.model import (
    ACTUATORS,
    CORE,
    MARKERS,
    MODEL,
    Actuators,
    Feet,
    OctahedraPlant,
    VoxelRobot,
    core_tilt,
    node_positions,
    place_at_rest,
    rest_pose,
    walker,
    walker_sdf,
)

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
    """Friction and shape of the feet, as front=0.8,back=0.5."""
    front_mass: Annotated[float, non_negative("kg")] = 0.0
    """Mass of the parts that either front voxel carries."""
    joint_damping: Annotated[float, non_negative("N m s/rad")] = given(
        MODEL, "joint_damping"
    )
    """Damping of each ball joint beside that of the bushings in the model file,
    integrated implicitly by Drake; by default that of params.yaml."""
    settle: Annotated[float, non_negative("s")] = 0.3
    """Time at rest before the gait."""
    time_step: Annotated[float, positive("s")] = 1e-3
    """Time step of the plant."""
    log_period: Annotated[float, positive("s")] = 0.02
    """Time between two samples of the log."""
    time_limit: Annotated[float | None, positive("s")] = None
    """Limit of the wall time; what was reached is kept."""
    gains: Gains | None = None
    """Shares of its commands that each actuator moves, from a calibration (.json)."""
    terrain: Terrain = field(default_factory=Flat)
    """Shape of the ground; the robot faces along +x where it is not flat."""

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

    def motion(self) -> Callable[[float], np.ndarray]:
        """The actuators' displacements over time."""
        share = 1.0 if self.gains is None else self.gains.of(ACTUATORS)
        return gait_motion(share * self.poses, self.pose_time, self.ramp, self.settle)


@dataclass(frozen=True, eq=False)
class WalkDiagram:
    """A built diagram and its parts.

    Attributes:
        diagram: plant and scene graph.
        robot: the plant with its model and units.
        built: the lattice in the plant.
        actuators: the robot's actuators.
        soles: row of the foot by the identifier of its collision geometry.
        terrain: shape of the ground.
    """

    diagram: Diagram
    robot: Robot
    built: OctahedraPlant
    actuators: Actuators
    soles: Mapping[GeometryId, int]
    terrain: Terrain

    @property
    def plant(self) -> MultibodyPlant:
        """The finalized plant."""
        return self.robot.plant

    def simulator(self) -> Simulator:
        """A simulator with the robot standing at rest."""
        simulator = Simulator(self.diagram)
        root = simulator.get_mutable_context()
        context = self.plant.GetMyMutableContextFromRoot(root)
        X_WL = RigidTransform(rest_pose())
        if self.terrain != Flat():
            X_WL = RigidTransform(RotationMatrix.MakeZRotation(-np.pi / 4)) @ X_WL
        place_at_rest(self.built, context, X_WL)
        self.robot.put_onto(context, self.terrain)
        return simulator


def build(problem: Simulation) -> WalkDiagram:
    """The diagram of a simulation."""
    builder = DiagramBuilder()
    config = MultibodyPlantConfig(
        time_step=problem.time_step,
        # The walk converges in the time step by no other (docs/evidence/voxel.md).
        discrete_contact_approximation="lagged",
        contact_model="point",
        stiction_tolerance=problem.feet.stiction,
    )
    plant, scene_graph = AddMultibodyPlant(config, builder)
    plant.set_name("plant")
    feet = problem.feet.spheres()
    cut = walker(problem.front_mass)
    points = tuple(foot.point(cut) for foot in feet)
    model = replace(load(MODEL), text=walker_sdf(feet, cut), feet=points)
    model.add_to(plant)
    Ground(GROUND_FRICTION, terrain=problem.terrain).add_to(plant)
    built = OctahedraPlant(cut, plant)
    drive = parameters_of(MODEL).table("actuator")
    actuators = Actuators(built, ACTUATORS, **drive)
    for shared in cut.tree:
        # Not in the SDF: Drake's parser has no damping for ball joints.
        joint = plant.GetJointByName(f"node_{shared.node}")
        joint.set_default_damping_vector(np.full(3, problem.joint_damping))
    plant.Finalize()
    inspector, soles = scene_graph.model_inspector(), {}
    for row, foot in enumerate(points):
        for key in plant.GetCollisionGeometriesForBody(find_body(plant, foot.body)):
            if inspector.GetName(key).rpartition("::")[2] == foot.name:
                soles[key] = row
    robot = Robot(model, plant, scene_graph, SI, LoopClosure(plant, model.loops))
    diagram = builder.Build()
    diagram.set_name("voxel")
    return WalkDiagram(diagram, robot, built, actuators, soles, problem.terrain)


class WalkPlant:
    """The robot on its ground, stepped under commanded lengths of its actuators.

    Attributes:
        time_step: of the plant [s].
        context: of the plant.
        commanded: lengths of the step before (M,) [m].
    """

    def __init__(self, walk: WalkDiagram, commanded: np.ndarray):
        self.walk, self.commanded = walk, commanded
        self.time_step = walk.plant.time_step()
        self._simulator, self._steps = walk.simulator(), 0
        root = self._simulator.get_mutable_context()
        self.context = walk.plant.GetMyMutableContextFromRoot(root)

    def state(self) -> tuple[np.ndarray, np.ndarray]:
        """The plant's q and v."""
        plant, context = self.walk.plant, self.context
        return plant.GetPositions(context).copy(), plant.GetVelocities(context).copy()

    def seen(self) -> tuple[Robot, np.ndarray]:
        """Robot and positions."""
        return self.walk.robot, self.state()[0]

    def advance(self, command: Command, forces: Sequence[np.ndarray] = ()) -> None:
        """One time step under the lengths that a command has for targets."""
        self.commanded = command.targets
        self.walk.actuators.command(self.context, self.commanded)
        self._steps += 1
        self._simulator.AdvanceTo(self._steps * self.time_step)


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
    every = max(1, round(problem.log_period / problem.time_step))
    return _Run(problem).simulate(progress, log_period=every * problem.time_step)


class _Run(ControlRun):
    """A walk by a gait, and what came of it."""

    kind = "voxels.simulation"

    def __init__(self, problem: Simulation):
        self.problem, self.walk = problem, build(problem)
        self.model = self.walk.robot.model
        motion, rest = problem.motion(), self.walk.actuators.rest

        def lengths(time: float, q=None, v=None) -> Command:
            # At the end of the step.
            moved = motion(time + problem.time_step)
            return Command(np.zeros(0), rest - 2 * moved)

        self.controller = Law("gait", lengths)
        self.plant = WalkPlant(self.walk, lengths(0.0).targets)
        self.samples: list[tuple] = []

    def keep(self, time: float, *, last: bool) -> None:
        """Stores a sample: its time [s], the plant's state (nq + nv,), forces of the
        ground on the feet (F, 3) [N], commanded and present lengths of the actuators
        (M,) [m], their forces (M,) [N]."""
        walk, context = self.walk, self.plant.context
        state, commanded = np.concatenate(self.plant.state()), self.plant.commanded
        count = len(self.model.feet)
        feet = forces_on_soles(walk.plant, context, walk.soles, count)
        length, rate = walk.actuators.lengths(context)
        push = walk.actuators.forces(commanded, length, rate)
        self.samples.append((time, state, feet, commanded, length, push))

    def fall(self, time: float) -> str:
        """Whether the core has tipped over, looked at where samples are due."""
        if time < self._samples * self._log_period - 1e-9:
            return ""
        down = has_fallen(core_tilt(self.walk.built.poses(self.plant.context)))
        return "the robot tipped over" if down else ""

    def dataset(self) -> xr.Dataset:
        """The log, in SI."""
        return walk_dataset(self.walk, self.samples)

    def metrics(self, data: xr.Dataset) -> dict:
        """Figures of the walk."""
        settle = self.problem.settle
        return {
            "real_time_factor": self.end.time / max(self.end.wall, 1e-12),
            "tipped_over": self.fell is not None,
            **travel(data, settle, self.problem.cycle),
            **marker_agreement(data, settle),
            "front_load_share": front_share(data, settle),
            "largest_actuator_force_N": float(abs(data.actuator_force).max()),
        }

    def findings(self, data: xr.Dataset, figures: dict) -> list[Finding]:
        """Findings of the verdict, the gravest first."""
        # The first cycle is the start-up.
        strides = figures.get("travel_mm_of_each_cycle", [])[1:]
        height = float(data.base_position.values[0, 2])
        return [*open_loops(data, height), *strides_of(strides, unit="mm")]

    def verdict(self, figures: dict, findings: list[Finding]) -> tuple[Verdict, str]:
        """The verdict, and one line on what happened."""
        verdict, message = judged(self.end, findings, "it walks")
        if figures["cycles"] != 1:
            return verdict, message
        note = "one cycle from rest is the start-up, not the stride; walk two or more"
        return verdict, "; ".join(filter(None, (message, note)))

    def origin(self, data: xr.Dataset) -> dict[str, Any]:
        """Model, residuals and provenance of the result."""
        missed = float(abs(data.actuator_length - data.actuator_command).max())
        gap = float(data.loop_gap.max())
        residuals = {"loop_gap [m]": gap, "actuator_error [m]": missed}
        return super().origin(data) | {"residuals": residuals}


# --- what came of a walk ---------------------------------------------------


def walk_dataset(walk, samples: Sequence[tuple]) -> xr.Dataset:
    """The log of a walk, in SI.

    Args:
        walk: the built diagram.
        samples: of :class:`drakebots.robots.voxels.simulate.WalkPlant`, as they are
            kept.
    """
    times, states, forces, commanded, lengths, pushes = map(np.array, zip(*samples))
    data = trajectory_dataset(walk.robot, times, states)
    plant, cut = walk.plant, walk.built.octahedra
    poses = np.array([walk.built.poses(at) for at in contexts_along(plant, states)])
    nodes = node_positions(cut, poses)
    p_WR, R_WR = body_frame(nodes)
    in_body = np.einsum("tji,tnj->tni", R_WR, nodes - p_WR[:, None])
    rows = [cut.lattice.node(place) for place in MARKERS.values()]
    u = (walk.actuators.rest - commanded) / 2
    pom = VoxelRobot().displacements(u, tuple(MARKERS.values()))
    rpy = Rotation.from_matrix(R_WR).as_euler("xyz")
    turns = Rotation.from_matrix(poses[..., :3, :3].reshape(-1, 3, 3))
    xyzw = turns.as_quat(canonical=True).reshape(*poses.shape[:2], 4)
    moved = in_body[:, rows] - in_body[0, rows]
    by_marker, by_actuator = ("time", "marker", "axis"), ("time", "actuator")
    at = {
        "base_position": (("time", "axis"), p_WR, "m"),
        "base_rpy": (("time", "angle"), np.unwrap(rpy, axis=0), "rad"),
        "node_position": (("time", "node", "axis"), nodes, "m"),
        "marker_position": (by_marker, nodes[:, rows], "m"),
        "marker_displacement": (by_marker, moved, "m"),
        "marker_displacement_pom": (by_marker, pom, "m"),
        "voxel_position": (("time", "voxel", "axis"), poses[..., :3, 3], "m"),
        "voxel_quaternion": (("time", "voxel", "wxyz"), xyzw[..., [3, 0, 1, 2]], "1"),
        "foot_force": (("time", "foot", "axis"), forces, "N"),
        "actuator_command": (by_actuator, commanded, "m"),
        "actuator_length": (by_actuator, lengths, "m"),
        "actuator_force": (by_actuator, pushes, "N"),
    }
    names = {
        "marker": list(MARKERS),
        "voxel": list(cut.names),
        "wxyz": list("wxyz"),
        "actuator": [control.name for control in ACTUATORS],
        "node_place": (("node", "axis"), cut.lattice.nodes, {"units": "1"}),
    }
    return data.assign(with_units(at)).assign_coords(names)


def body_frame(nodes: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The core's mean pose: the rigid motion nearest to that of its nodes.

    Planes of motion do not contribute to it: they are orthogonal to rigid motions.

    Args:
        nodes: p_WN over time (T, N, 3) [m].

    Returns:
        p_WR (T, 3) [m], the middle of the core, and R_WR (T, 3, 3), the identity where
        the lattice's axes are the world's.
    """
    lattice = VoxelRobot().lattice
    core = np.unique(lattice.voxel_nodes[:CORE])
    places, rest = nodes[:, core], lattice.positions[core]
    middle = places.mean(axis=1)
    around, rest = places - middle[:, None], rest - rest.mean(axis=0)
    turns = (Rotation.align_vectors(arms, rest)[0] for arms in around)
    return middle, np.array([turn.as_matrix() for turn in turns])


def travel(data: xr.Dataset, settle: float, cycle: float) -> dict:
    """Mean motion per cycle; with two or more full cycles the first does not count.

    Forward is the robot's mean heading over a cycle, within which the heading
    oscillates. The spread over the cycles measures how regular the walk is.

    Args:
        data: dataset of a walk.
        settle: time at rest before the gait [s].
        cycle: duration of a cycle [s].
    """
    done = int(np.floor((float(data.time[-1]) - settle) / cycle + 1e-6))
    if done < 1:
        return {"cycles": 0}
    # Between samples, where a cycle is no multiple of their period.
    starts, yaw = settle + cycle * np.arange(done + 1), data.base_rpy.values[:, 2]
    walked = np.column_stack([data.base_position.values[:, :2], yaw])
    at = [np.interp(starts, data.time.values, values) for values in walked.T]
    steps = []
    for start, (*moved, turn) in zip(starts, np.diff(at).T):
        part = data.sel(time=slice(start - 1e-6, start + cycle + 1e-6))
        heading = float(part.base_rpy[:, 2].mean()) + np.pi / 4
        steps.append((*(1e3 * plane_rotation(-heading) @ moved), turn))
    steady = np.array(steps[1:] or steps)
    forward, left, turn = steady.mean(axis=0)
    return {
        "cycles": done,
        "start_up_only": done == 1,
        "travel_mm_per_cycle": float(forward),
        "travel_spread_mm": float(np.ptp(steady[:, 0])),
        "left_mm_per_cycle": float(left),
        "turn_deg_per_cycle": float(np.degrees(turn)),
        "travel_mm_of_each_cycle": [float(step[0]) for step in steps],
    }


def front_share(data: xr.Dataset, settle: float) -> float:
    """Share of the load that the front feet carry, in the mean over the gait."""
    load = data.foot_force.sel(time=slice(settle, None))[..., 2].sum("time")
    front = [str(name) for name in data.foot.values if str(name).startswith("F")]
    return float(load.sel(foot=front).sum() / max(float(load.sum()), 1e-12))


def marker_agreement(data: xr.Dataset, settle: float) -> dict[str, float]:
    """The markers in the body frame against the planes of motion.

    The slope is a least squares fit through the origin. The error is that of x and y,
    which a camera above sees, as in the paper. Along z tilted voxels sink by
    pitch (1 - cos(tilt)), which the linear model neglects.
    """
    moving = data.sel(time=slice(settle, None))
    if moving.sizes["time"] < 2:
        return {}
    # Against the pose at the end of settling: weight has bent the robot by then.
    shown = moving.marker_displacement - moving.marker_displacement[0]
    pom = moving.marker_displacement_pom
    square = float((pom**2).sum())
    if square == 0:
        return {}
    return {
        "marker_slope_vs_pom": float((shown * pom).sum()) / square,
        "marker_max_error_mm": 1e3 * float(abs(shown - pom)[..., :2].max()),
        "marker_max_sinking_mm": 1e3 * float(abs(shown - pom)[..., 2].max()),
    }
