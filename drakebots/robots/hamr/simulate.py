"""Simulates HAMR-VI with an open-loop gait, from the gait's name to a result.

    ┌────────────┐ voltages  ┌────────────┐ actuation  ┌────────────────┐
    │ GaitSource │─────┬────▶│ PiezoDrive │───────────▶│ MultibodyPlant │─┐
    └────────────┘     │     └────────────┘            │ + SceneGraph   │ │
                       │          ▲ state              └────────────────┘ │
                       │          ├───────────────────────────────────────┘
                       │     ┌─────────┐
                       └────▶│ Encoder │──▶ velocity
                             └─────────┘

Inside the diagram lengths are in mm, masses in g, times in ms, voltages in V.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import xarray as xr
from pydrake.math import RigidTransform, RollPitchYaw
from pydrake.systems.analysis import Simulator
from pydrake.systems.framework import (
    Context,
    DiagramBuilder,
    LeafSystem,
    OutputPort,
    System,
)

from drakebots.core.checks import (
    check_log,
    finite,
    non_negative,
    one_of,
    positive,
    whole,
)
from drakebots.core.errors import InvalidInput
from drakebots.core.fields import checked
from drakebots.core.run import Progress, Verdict
from drakebots.core.stages import timed
from drakebots.core.units import MM_G_MS, Scaling
from drakebots.formats import loaded
from drakebots.model import Model, driven_joints
from drakebots.multibody import (
    DiagramRun,
    Finding,
    Flat,
    Ground,
    Logged,
    Robot,
    Terrain,
    add_loggers,
    build_robot,
    fell_at,
    has_fallen,
    judged,
    open_loops,
    strides_of,
    tilt,
    tilted,
    trajectory_dataset,
)
from drakebots.results import Result, with_units
from drakebots.robots.hamr.gaits import Waveform, gait_names, make_waveform
from drakebots.robots.hamr.metrics import above_ground, cycle_poses, gait_metrics
from drakebots.robots.hamr.model import (
    ACTUATORS,
    MODEL,
    Encoder,
    OnSurface,
    PiezoDrive,
    parameters,
)

TIME_STEP = 1e-4
"""Default time step of the plant [s]. It is also the delay between a controller and
the plant: at 2e-4 s the authors' gains make the legs ring."""


def hamr_ground(friction: float) -> Ground:
    """Ground for HAMR with hard and inelastic point contact.

    Stiffness and dissipation are ours: with Drake's defaults the light feet bounce, and
    a trot makes half of its stride; with these, strides agree with hard contact, though
    feet are down for less of the time (docs/evidence/hamr.md).
    """
    return Ground(friction, stiffness=1e4, dissipation=500.0)


# --- the problem ------------------------------------------------------------


@checked(kw_only=True)
class HamrRun:
    """Base of the results of HAMR's simulations and executed plans.

    Raises:
        InvalidInput: for a value out of its range.
    """

    cycles: Annotated[int, whole(1)] = 15
    """Number of cycles after the ramp."""
    time_step: Annotated[float, positive("s")] = TIME_STEP
    """Time step of the plant."""
    log_period: Annotated[float | None, positive("s")] = None
    """Period of the stored samples, by default 1/200 of a cycle and at most 1 ms."""
    start_error: Annotated[float, non_negative("m or rad")] = 0.0
    """Largest change of the base's position and angles at the start; a
    billionth shows how far rounding moves a run."""
    seed: Annotated[int, whole()] = 0
    """Seed of the noise and of the start's change."""
    time_limit: Annotated[float | None, positive("s")] = None
    """Limit of the wall time; what was reached is kept."""
    terrain: Terrain = field(default_factory=Flat)
    """Shape of the ground."""

    def __post_init__(self):
        if self.time_step > 1e-3:
            raise InvalidInput(
                f"time step {self.time_step:g} s cannot resolve HAMR's 100 Hz modes; "
                "use 1e-3 s or less"
            )

    def start_offset(self) -> np.ndarray:
        """Change of the base's x, y, z, roll, pitch, yaw at the start (6,) [m, rad]."""
        return self.start_error * np.random.default_rng(self.seed).uniform(-1.0, 1.0, 6)

    def _sample_period(self, cycle: float) -> float:
        desired = self.log_period or min(1e-3, cycle / 200)
        check_log(self.cycles * cycle, max(desired, self.time_step))
        return max(1, round(desired / self.time_step)) * self.time_step


@checked(kw_only=True)
class Simulation(HamrRun, OnSurface):
    """An open-loop gait to simulate; by default the authors' 10 Hz trot on card."""

    gait: Annotated[str, one_of("gait", gait_names())] = "trot"
    """Name of the gait: trot, pronk, bound, pace or jump."""
    frequency: Annotated[float | None, finite("Hz")] = None
    """Stride frequency, by default 10; the jump has its own."""
    swing_voltage: Annotated[float | None, finite("V")] = None
    """Amplitude of the swing voltages about 112.5 V instead of the gait's."""
    lift_voltage: Annotated[float | None, finite("V")] = None
    """Amplitude of the lift voltages about 112.5 V instead of the gait's."""
    phases: Mapping[str, float] | None = None
    """Shares of the cycle at which legs lift, by leg (FL, RL, FR, RR), instead of the
    gait's."""
    model: str | Path | Model = MODEL
    """HAMR-VI, or a variant of it with the same actuators: a name, a path or a loaded
    model."""

    def __post_init__(self):
        HamrRun.__post_init__(self)
        OnSurface.__post_init__(self)
        self.waveform()

    def waveform(self) -> Waveform:
        """The gait's waveform.

        Raises:
            UnknownName, InvalidInput: as :func:`make_waveform`.
        """
        own = {n: getattr(self, n) for n in ("swing_voltage", "lift_voltage", "phases")}
        return make_waveform(self.gait, self.frequency, **own)

    @property
    def duration(self) -> float:
        """Duration of the simulation [s]."""
        waveform = self.waveform()
        if not waveform.periodic:
            return waveform.period
        return (self.cycles + np.ceil(waveform.ramp)) * waveform.period

    @property
    def sample_period(self) -> float:
        """Period of the stored samples, a multiple of the time step [s]."""
        return self._sample_period(self.waveform().period)


# --- the diagram ------------------------------------------------------------


class GaitSource(LeafSystem):
    """Plays a waveform.

        ┌────────────┐
        │ GaitSource │──▶ voltages (8) V
        └────────────┘

    Args:
        waveform: waveform to play.
        time_unit: unit of the diagram's clock [s].

    Attributes:
        waveform: the waveform, which may change between two steps.
        start: time at which it begins, of the diagram's clock.
    """

    def __init__(self, waveform: Waveform, time_unit: float = 1.0):
        super().__init__()
        self.set_name("gait_source")
        self.waveform, self._unit, self.start = waveform, time_unit, 0.0
        self.DeclareVectorOutputPort("voltages", 8, self._calc)

    def _calc(self, context, output):
        output.SetFromVector(self.waveform.voltages(self.since(context)))

    def since(self, context) -> float:
        """Time since its beginning [s]."""
        return (context.get_time() - self.start) * self._unit


@dataclass(frozen=True)
class LoggedDiagram(Logged):
    """A diagram that logs "state", "contact", "voltages", "actuation" and "encoder".

    Attributes:
        robot: the robot's plant and its units.
        plant: the system that holds the state: the robot's plant, or what steps it.
    """

    robot: Robot
    plant: System

    @property
    def scaling(self) -> Scaling:
        """The diagram's units."""
        return self.robot.scaling

    def place(self, context: Context, offset: np.ndarray = np.zeros(6)) -> None:
        """Puts the robot at rest in its start pose, feet 0.15 mm up.

        Args:
            context: of the diagram.
            offset: change of the base's pose, as of :meth:`HamrRun.start_offset`.
        """
        plant_context = self.robot.plant.GetMyMutableContextFromRoot(context)
        p_WB = offset[:3] + np.array([0, 0, parameters().number("stance")])
        pose = RigidTransform(RollPitchYaw(offset[3:]), p_WB)
        self.robot.set_base_pose(plant_context, pose)


def add_drive(
    builder: DiagramBuilder, robot: Robot, plant: System, source: System, **encoders
) -> dict[str, OutputPort]:
    """Adds actuators and encoders between a source of voltages and the plant.

    Args:
        builder: of the diagram.
        robot: the robot's plant and its units.
        plant: the system that holds the state.
        source: system with an output "voltages".
        encoders: options of :class:`~drakebots.robots.hamr.model.Encoder`.

    Returns:
        Ports to log, by name; without that of the contact forces.
    """
    body = robot.plant, robot.scaling
    drive = builder.AddSystem(PiezoDrive(*body))
    encoder = builder.AddSystem(Encoder(*body, **encoders))
    voltages, state = source.GetOutputPort("voltages"), plant.GetOutputPort("state")
    for system in (drive, encoder):
        builder.Connect(voltages, system.GetInputPort("voltages"))
        builder.Connect(state, system.GetInputPort("state"))
    actuation = drive.GetOutputPort("actuation")
    builder.Connect(actuation, plant.GetInputPort("actuation"))
    velocity = encoder.GetOutputPort("velocity")
    ports = {"state": state, "voltages": voltages, "actuation": actuation}
    return ports | {"encoder": velocity}


def contact_port(robot: Robot) -> OutputPort:
    """Port of the generalized contact forces of the robot's own plant."""
    instance = robot.plant.GetModelInstanceByName(robot.model.name)
    return robot.plant.get_generalized_contact_forces_output_port(instance)


def build(problem: Simulation) -> LoggedDiagram:
    """The diagram of a simulation, not yet run.

    Raises:
        UnknownName, ModelProblem: for a model that cannot be loaded.
    """
    model = loaded(problem.model)
    builder = DiagramBuilder()
    step = problem.time_step
    ground = replace(hamr_ground(problem.mu), terrain=problem.terrain)
    robot = build_robot(model, builder, time_step=step, scaling=MM_G_MS, ground=ground)
    unit = robot.scaling.time
    gait = builder.AddSystem(GaitSource(problem.waveform(), unit))
    ports = add_drive(builder, robot, robot.plant, gait)
    ports["contact"] = contact_port(robot)
    loggers = add_loggers(builder, ports, problem.sample_period / unit)
    diagram = builder.Build()
    diagram.set_name("hamr")
    return LoggedDiagram(diagram, loggers, robot, robot.plant)


# --- the run ----------------------------------------------------------------


@timed("load")
def simulate(
    problem: Simulation = Simulation(), *, progress: Progress | None = None
) -> Result:
    """Simulates HAMR-VI; returns what was reached even when cut short.

    Args:
        problem: simulation problem.
        progress: called as progress("simulate", time, duration) [s].

    Raises:
        UnknownName, ModelProblem: for a model that cannot be loaded.
    """
    return _Run(problem, build(problem)).simulate(progress)


class HamrDiagramRun(DiagramRun):
    """A diagram of HAMR that runs from the start pose, judged by its strides, tilt and
    loops.

    It failed if HAMR fell, or made less than half of the stride of a plan
    (`planned_stride_mm` of the metrics); see :mod:`drakebots.multibody.judging`.
    """

    def __init__(self, problem: HamrRun, built: LoggedDiagram):
        self.problem, self.robot, self.model = problem, built, built.robot.model
        self.simulator = Simulator(built.diagram)
        self.context = self.simulator.get_mutable_context()
        built.place(self.context, problem.start_offset())
        own = built.plant.GetMyMutableContextFromRoot(self.context)
        built.robot.put_onto(own, problem.terrain)
        self.simulator.Initialize()

    def dataset(self) -> xr.Dataset:
        return run_dataset(self.robot, self.context)

    def metrics(self, data: xr.Dataset) -> dict:
        return {"wall_s_per_simulated_s": self.end.wall / max(self.end.time, 1e-12)}

    def findings(self, data: xr.Dataset, figures: dict) -> list[Finding]:
        height = parameters().number("stance")
        angles = tilt(data.base_rpy.values)
        above = above_ground(data, self.problem.terrain).base_position.values[:, 2]
        down = has_fallen(angles, above / height)
        fell = float(data.time.values[np.argmax(down)]) if down.any() else None
        planned = figures.get("planned_stride_mm")
        return [
            fell_at(fell, "" if fell is None else f"it fell at {fell:.3g} s"),
            *open_loops(data, height),
            *strides_of(figures.get("stride_mm", ()), planned, "mm"),
            tilted(angles.max()),
        ]

    def verdict(self, figures: dict, findings: list[Finding]) -> tuple[Verdict, str]:
        doing = "it walks" if figures["cycles"] else "it moves"
        return judged(self.end, findings, doing)

    def origin(self, data: xr.Dataset) -> dict[str, Any]:
        worst = zip(data.loop.values, data.loop_gap.max("time").values.tolist())
        gaps = {f"loop {name} [m]": gap for name, gap in worst}
        return super().origin(data) | {"residuals": gaps}


class _Run(HamrDiagramRun):
    kind = "hamr.simulation"

    def dataset(self) -> xr.Dataset:
        data, waveform = super().dataset(), self.problem.waveform()
        over = above_ground(data, self.problem.terrain)
        self._walk = gait_metrics(over, waveform, self.model.summary.mass)
        if waveform.periodic and self._walk["cycles"]:
            data = data.merge(cycle_poses(data, waveform))
        return data

    def metrics(self, data: xr.Dataset) -> dict:
        """Figures of the gait, and the ground it was walked on."""
        problem = self.problem
        gait = {"gait": problem.gait, "frequency_hz": problem.waveform().frequency}
        return super().metrics(data) | self._walk | gait | problem.ground_metrics

    def options(self) -> dict[str, Any]:
        return super().options() | {"model": self.model.name}


def run_dataset(built: LoggedDiagram, context: Context) -> xr.Dataset:
    """Everything that was logged, in SI: states, contacts, voltages, actuators."""
    robot, joints = built.robot, driven_joints(built.robot.plant)
    times, states, keep = built.states(context)

    def logged(name: str) -> np.ndarray:
        return built.logged(context, name)[1][keep]

    data = trajectory_dataset(robot, times, states, logged("contact"))
    force = robot.scaling.force * logged("actuation")
    moved = data.position.values[:, [joint.position_start() for joint in joints]]
    rates = data.velocity.values[:, [joint.velocity_start() for joint in joints]]
    variables = {
        "voltage": (logged("voltages"), "V"),
        "actuator_force": (force, "N"),
        "encoder_velocity": (logged("encoder"), "m/s"),
        "actuator_position": (moved, "m"),
        "actuator_velocity": (rates, "m/s"),
    }
    by_actuator = {k: (("time", "actuator"), *x) for k, x in variables.items()}
    data = data.assign(with_units(by_actuator))
    return data.assign_coords(actuator=list(ACTUATORS))
