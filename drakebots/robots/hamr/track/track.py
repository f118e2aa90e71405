"""Executes a plan on HAMR-VI with feedback, on the authors' test rig.

    ┌───────────────┐ voltages ┌────────────┐ actuation ┌─────────────────────┐
 ┌─▶│ LegController │────┬────▶│ PiezoDrive │──────────▶│ MultibodyPlant +    │
 │  └───────────────┘    │     └────────────┘           │ SceneGraph ("sap"), │
 │   plan, gains         │         ▲ state              │ or SteppedPlant     │
 │                       │         │                    │ ("stepping")        │
 │                       │         │                    └──────────┬──────────┘
 │                       │         ├───────────────────────────────┤ state
 │                       │     ┌─────────┐                ┌────────┴──────┐
 │                       └────▶│ Encoder │                │ MotionCapture │
 │                             └────┬────┘                └────────┬──────┘
 │  ┌──────────────┐   tip velocity │   late frames and their time │
 └──│ LegEstimator │◀───────────────┴──────────────────────────────┘
    └──────────────┘

The plant is in mm, g, ms; voltages are in V, and what the rig measures is in SI.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from functools import cached_property

import numpy as np
import xarray as xr
from pydrake.systems.analysis import Simulator
from pydrake.systems.framework import Context, DiagramBuilder, OutputPort, System

from drakebots.core.checks import (
    check,
    non_negative,
    one_of,
    optional,
    positive,
)
from drakebots.core.errors import InvalidInput
from drakebots.core.run import Progress, RunEnd
from drakebots.core.stages import timed
from drakebots.core.units import MM_G_MS, Scaling
from drakebots.multibody import Robot, advance, build_robot
from drakebots.multibody.hard_contact import SteppedPlant
from drakebots.results import Result
from drakebots.robots.hamr.metrics import tracking_metrics
from drakebots.robots.hamr.model import (
    LEGS,
    Encoder,
    PiezoDrive,
    hamr_variant,
    parameters,
)
from drakebots.robots.hamr.reference import (
    CHASSIS,
    Reference,
    as_reference,
    coordinate_names,
)
from drakebots.robots.hamr.simulate import (
    HamrRun,
    LoggedDiagram,
    add_loggers,
    hamr_ground,
    run_dataset,
    run_result,
)
from drakebots.robots.hamr.track.controller import KD, KP, Command, LegController
from drakebots.robots.hamr.track.estimator import LegEstimator, MotionCapture

CONTACTS = ("sap", "stepping")
"""The contact models: Drake's, and our time stepping with hard contact."""

_BASE = [f"hamr_{CHASSIS}_{key}" for key in "x y z roll pitch yaw".split()]
"""Coordinates of the chassis."""

MAX_SERIAL = 2e-11
"""Largest stiffness times time step squared [N m s^2/rad] at which the light
link at a compliant joint is stable; measured: 2e-3 N m/rad is stable at 1e-4 s,
4e-3 is not."""


# --- the problem ------------------------------------------------------------


@dataclass(frozen=True)
class Tracking(HamrRun):
    """A plan to execute, and the circumstances.

    Attributes:
        plan: plan of HAMR, or a reference, to execute.
        contact: contact model, sap (Drake's) or stepping (hard contact).
        kp: gain of the leg positions [V/m]; kp = kd = 0 runs open loop.
        kd: gain of the leg velocities [V s/m].
        kf: factor on the planned voltages about the middle of their range.
        friction_scale: factor on the friction coefficient of the plan.
        stiffness_scale: factor on the stiffness of the flexures.
        serial_stiffness: stiffness of a compliant joint in series with each leg
            [N m/rad], none by default; see :func:`hamr_variant`. The encoders do not
            see it, and the default gains are unstable with it: at 1e-3 N m/rad,
            kp <= 10e3 and kd <= 5 were measured to be stable.
        ramp: number of cycles (or durations) over which the plan is faded in from
            rest in the start pose, 0 to start in the plan's first state; by default
            2 for a periodic plan, else 0.
        after: time to go on after the end of a plan that is not periodic [s], with
            its last voltages and legs held: a jump's apex may come late.
        mocap_noise: standard deviation of the markers' coordinates [m].

    Raises:
        InvalidInput: for a result that is not a plan of HAMR, or a value out of its
            range.
        UnknownName: for an unknown contact model.
    """

    plan: Result | Reference
    contact: str = "sap"
    kp: float = KP
    kd: float = KD
    kf: float = 1.0
    friction_scale: float = 1.0
    stiffness_scale: float = 1.0
    serial_stiffness: float | None = None
    ramp: float | None = None
    after: float = 0.03
    mocap_noise: float = 0.0

    def __post_init__(self):
        super().__post_init__()
        check(
            self,
            "",
            contact=one_of("contact model", CONTACTS),
            kp=non_negative("V/m"),
            kd=non_negative("V s/m"),
            kf=non_negative(),
            friction_scale=non_negative(),
            stiffness_scale=positive(),
            serial_stiffness=optional(positive("N m/rad")),
            ramp=optional(non_negative()),
            after=non_negative("s"),
            mocap_noise=non_negative("m"),
        )
        step, serial = self.time_step, self.serial_stiffness or 0.0
        if serial * step**2 > MAX_SERIAL:
            raise InvalidInput(
                f"serial stiffness {serial:g} N m/rad is too stiff for a time step of "
                f"{step:g} s; use at most {MAX_SERIAL / step**2:.2g} N m/rad"
            )
        _ = self.reference

    @cached_property
    def reference(self) -> Reference:
        """The plan as states and voltages over time."""
        return as_reference(self.plan)

    @property
    def ramp_cycles(self) -> float:
        """The ramp with its default filled in."""
        if self.ramp is not None:
            return self.ramp
        return 2.0 if self.reference.periodic else 0.0

    @property
    def start(self) -> float:
        """When the cycles that count begin, or the plan itself [s]."""
        ramp = self.ramp_cycles
        whole_cycles = np.ceil(ramp) if self.reference.periodic else ramp
        return float(whole_cycles * self.reference.duration)

    @property
    def duration(self) -> float:
        """Duration of the run [s]: whole samples."""
        length = self.reference.duration
        length = (
            self.cycles * length if self.reference.periodic else length + self.after
        )
        samples = (self.start + length) / self.sample_period
        # A little longer, so that the last sample is taken.
        return float((np.ceil(samples - 1e-6) + 1e-6) * self.sample_period)

    @property
    def sample_period(self) -> float:
        """Period of the stored samples, a multiple of the time step [s]."""
        return self._sample_period(self.reference.duration)


# --- the diagram ------------------------------------------------------------


@dataclass(frozen=True)
class TrackingDiagram(LoggedDiagram):
    """The diagram of a tracking problem; the robot's base is "euler".

    Attributes:
        loggers: those of :class:`LoggedDiagram`, "estimate", "estimate_velocity" and
            "frames".
        mover: the system that holds the state: the plant, or a SteppedPlant.
        command: what the controller executes.
    """

    mover: System
    command: Command

    def place(self, context: Context, offset: np.ndarray = np.zeros(6)) -> None:
        """Puts the robot at rest in its start pose, or into the plan's first state.

        Args:
            context: of the diagram.
            offset: change of the base's pose, as of :meth:`HamrRun.start_offset`.
        """
        plant, mover = self.robot.plant, self.mover
        names = list(plant.GetPositionNames(always_add_suffix=False))
        state = np.zeros((2, len(names)))
        if self.command.ramp > 0:
            state[0, names.index(_BASE[2])] = parameters().number("stance")
        else:
            # By name: a variant of the model may have more coordinates.
            index = [names.index(name) for name in coordinate_names()]
            state[:, index] = self.command.reference.q[0], self.command.reference.v[0]
        state[0, [names.index(name) for name in _BASE]] += offset
        state /= self.robot.position_units(), self.robot.velocity_units()
        own = mover.GetMyMutableContextFromRoot(context)
        mover.SetPositionsAndVelocities(own, state.ravel())


def build_tracking_diagram(problem: Tracking) -> TrackingDiagram:
    """The diagram of a problem, not yet run."""
    builder = DiagramBuilder()
    robot, mover, contact = _build_robot(problem, builder)
    unit, plan = robot.scaling, problem.reference
    command = Command(plan, problem.ramp_cycles * plan.duration)
    controller = LegController(
        command, kp=problem.kp, kd=problem.kd, kf=problem.kf, time_unit=unit.time
    )
    body = robot.plant, unit
    drive, estimator = PiezoDrive(*body), LegEstimator(unit.time)
    encoder = Encoder(*body, noise=problem.encoder_noise, seed=problem.seed)
    # The frames' noise must differ from the encoders'.
    frames = MotionCapture(
        robot.plant,
        robot.model.points,
        unit,
        noise=problem.mocap_noise,
        seed=problem.seed + 1,
    )
    for system in (controller, drive, encoder, frames, estimator):
        builder.AddSystem(system)

    def connect(source, port, *sinks):
        for sink in sinks:
            builder.Connect(source.GetOutputPort(port), sink.GetInputPort(port))

    connect(mover, "state", drive, encoder, frames)
    connect(controller, "voltages", drive, encoder)
    connect(encoder, "velocity", estimator)
    connect(frames, "legs", estimator)
    connect(frames, "time", estimator)
    connect(estimator, "legs", controller)
    connect(estimator, "velocity", controller)
    connect(drive, "actuation", mover)
    ports = {
        "state": mover.GetOutputPort("state"),
        "contact": contact,
        "voltages": controller.GetOutputPort("voltages"),
        "actuation": drive.GetOutputPort("actuation"),
        "encoder": encoder.GetOutputPort("velocity"),
        "estimate": estimator.GetOutputPort("legs"),
        "estimate_velocity": estimator.GetOutputPort("velocity"),
        "frames": frames.GetOutputPort("legs"),
    }
    loggers = add_loggers(builder, ports, problem.sample_period / unit.time)
    diagram = builder.Build()
    diagram.set_name("hamr_tracking")
    return TrackingDiagram(diagram, robot, loggers, mover, command)


def _build_robot(
    problem: Tracking, builder: DiagramBuilder
) -> tuple[Robot, System, OutputPort]:
    """The robot, the system with its state, and the port of the contact forces."""
    model = hamr_variant(problem.stiffness_scale, problem.serial_stiffness)
    friction = problem.friction_scale * problem.reference.friction
    if problem.contact == "stepping":
        robot = build_robot(model, time_step=0, scaling=MM_G_MS, base="euler")
        mover = builder.AddSystem(
            SteppedPlant(robot, problem.time_step, friction=friction)
        )
        return robot, mover, mover.GetOutputPort("contact")
    robot = build_robot(
        model,
        builder,
        time_step=problem.time_step,
        scaling=MM_G_MS,
        base="euler",
        ground=hamr_ground(friction),
    )
    instance = robot.plant.GetModelInstanceByName(model.name)
    port = robot.plant.get_generalized_contact_forces_output_port(instance)
    return robot, robot.plant, port


# --- the run ----------------------------------------------------------------


@dataclass(frozen=True)
class _Watched:
    """What `advance` needs of a robot, with the system that holds the state."""

    plant: System
    scaling: Scaling


@timed("load")
def track(problem: Tracking, *, progress: Progress | None = None) -> Result:
    """Executes a plan; returns what was reached even when cut short.

    Args:
        problem: what to execute, and where.
        progress: called as progress("simulate", time, duration) [s].
    """
    built = build_tracking_diagram(problem)
    simulator = Simulator(built.diagram)
    built.place(simulator.get_mutable_context(), problem.start_offset())
    simulator.Initialize()

    def reached(end: RunEnd) -> Result:
        data = _dataset(built, simulator.get_context())
        plan, mass = problem.reference, built.robot.model.summary.mass
        metrics = tracking_metrics(data, plan, problem.start, mass)
        metrics |= {
            "reference": plan.name,
            "periodic": plan.periodic,
            "period_s": plan.duration,
            "contact": problem.contact,
            "friction": problem.friction_scale * plan.friction,
        }
        options = {f.name: getattr(problem, f.name) for f in fields(problem)}
        options["plan"] = {
            "name": plan.name,
            "knots": len(plan.time),
            "period": plan.duration,
        }
        return run_result("hamr.track", built, end, data, metrics, options)

    end = advance(
        simulator,
        _Watched(built.mover, built.robot.scaling),
        problem.duration,
        progress=progress,
        time_limit=problem.time_limit,
        reached=reached,
    )
    return reached(end)


def _dataset(built: TrackingDiagram, context: Context) -> xr.Dataset:
    """Everything that was logged, in SI, beside the plan.

    Beyond :func:`run_dataset`, in the chassis frame (time, leg, axis): leg_position,
    leg_planned, leg_estimated, leg_seen (the held frame) [m], leg_velocity_planned,
    leg_velocity_estimated [m/s]; voltage_planned; and the plan's own pose of the
    chassis, base_position_planned and base_rpy_planned.
    """
    data = run_dataset(built, context)
    robot, unit, command = built.robot, built.robot.scaling, built.command
    # The base's six coordinates are the chassis' pose; with base "euler" the first
    # body in Drake's order, which the dataset takes for the base, is a leg's.
    position = data.position.values
    names = data.coordinate.values.tolist()
    pose = np.column_stack([position[:, names.index(name)] for name in _BASE])
    times = data.time.values
    planned = command.reference.poses_at(
        np.array([command.reference.phase(command.plan_time(t)) for t in times])
    )
    for name, values in (("", pose), ("_planned", planned)):
        data[f"base_position{name}"] = (("time", "axis"), values[:, :3], {"units": "m"})
        rpy = np.unwrap(values[:, 3:], axis=0)
        data[f"base_rpy{name}"] = (("time", "angle"), rpy, {"units": "rad"})

    plant_context, legs = robot.plant.CreateDefaultContext(), []
    for q in position / robot.position_units():
        robot.plant.SetPositions(plant_context, q)
        legs.append(robot.points_positions(plant_context, CHASSIS))
    commands = [command.legs(t) for t in times]
    rows = {
        "leg_position": (np.array(legs), "m"),
        "leg_planned": (np.array([legs for legs, _ in commands]), "m"),
        "leg_velocity_planned": (np.array([rates for _, rates in commands]), "m/s"),
    }
    log_times, _ = built.logged(context, "state")
    keep = np.searchsorted(log_times * unit.time, times - 1e-12)
    for name, logger, units in (
        ("leg_estimated", "estimate", "m"),
        ("leg_velocity_estimated", "estimate_velocity", "m/s"),
        ("leg_seen", "frames", "m"),
    ):
        _, samples = built.logged(context, logger)
        rows[name] = (samples[keep].reshape(-1, 4, 3), units)
    for name, (values, units) in rows.items():
        data[name] = (("time", "leg", "axis"), values, {"units": units})
    voltages = np.array([command.voltages(t) for t in times])
    data["voltage_planned"] = (("time", "actuator"), voltages, {"units": "V"})
    return data.assign_coords(leg=list(LEGS))
