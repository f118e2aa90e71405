"""Execute a plan on HAMR-VI with feedback; see `tracking_diagram` for the rig."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from pydrake.systems.analysis import Simulator
from pydrake.systems.framework import Context, Diagram, DiagramBuilder, System
from pydrake.systems.primitives import LogVectorOutput

from drakebots.core.errors import InvalidInput, UnknownName
from drakebots.core.units import MM_G_MS, Scaling
from drakebots.multibody import Ground, Progress, Robot, advance, build_robot
from drakebots.multibody.hard_contact import SteppedPlant
from drakebots.results import Result, provenance
from drakebots.robots.hamr.model import Encoder, PiezoDrive, hamr_variant, parameters
from drakebots.robots.hamr.simulate import GROUND_DISSIPATION, GROUND_STIFFNESS
from drakebots.robots.hamr.track.controller import (
    KD,
    KF,
    KP,
    Command,
    Gains,
    LegController,
)
from drakebots.robots.hamr.track.estimator import LegEstimator, MotionCapture
from drakebots.robots.hamr.track.metrics import tracking_dataset, tracking_metrics
from drakebots.robots.hamr.track.reference import Reference, coordinate_names

if TYPE_CHECKING:
    pass


# The rig: HAMR-VI executing a plan with feedback, as the authors had it.
#
#     ┌───────────────┐ voltages ┌────────────┐ actuation ┌─────────────────────┐
#  ┌─▶│ LegController │────┬────▶│ PiezoDrive │──────────▶│ MultibodyPlant +    │
#  │  └───────────────┘    │     └────────────┘           │ SceneGraph ("sap"), │
#  │   plan, gains         │         ▲ state              │ or SteppedPlant     │
#  │                       │         │                    │ ("stepping")        │
#  │                       │         │                    └──────────┬──────────┘
#  │                       │         ├───────────────────────────────┤ state
#  │                       │     ┌─────────┐                ┌────────┴──────┐
#  │                       └────▶│ Encoder │                │ MotionCapture │
#  │                             └────┬────┘                └────────┬──────┘
#  │  ┌──────────────┐   tip velocity │   late frames and their time │
#  └──│ LegEstimator │◀───────────────┴──────────────────────────────┘
#     └──────────────┘
#
# Inside mm, g, ms; V at the drive, SI at what the rig measures.


@dataclass(frozen=True)
class TrackingDiagram:
    """A built diagram and its parts; see the module.

    Attributes:
        diagram: the whole.
        robot: plant and units; base "euler".
        mover: what holds the state: the plant, or a SteppedPlant.
        loggers: by name, as :class:`HamrDiagram` has them, and "legs",
            "estimate", "estimate_velocity" and "frames".
        command: what the controller executes.
    """

    diagram: Diagram
    robot: Robot
    mover: System
    loggers: dict
    command: Command

    def place(self, context: Context) -> None:
        """Puts the robot at rest in its start pose, or into the plan's state."""
        plant, mover = self.robot.plant, self.mover
        names = list(plant.GetPositionNames(always_add_suffix=False))
        state = np.zeros((2, len(names)))
        if self.command.ramp > 0:
            state[0, names.index("hamr_Chassis_z")] = parameters().scalar("stance")
        else:
            # By name: a variant of the model may have further coordinates.
            index = [names.index(name) for name in coordinate_names()]
            state[:, index] = self.command.reference.q[0], self.command.reference.v[0]
        state /= self.robot.position_units(), self.robot.velocity_units()
        own = mover.GetMyMutableContextFromRoot(context)
        mover.SetPositionsAndVelocities(own, state.ravel())

    def logged(self, context: Context, name: str) -> tuple[np.ndarray, np.ndarray]:
        """(times (T,), samples (T, n)) of a logger, in the diagram's units."""
        log = self.loggers[name].FindLog(context)
        return log.sample_times().copy(), log.data().T.copy()


def build_tracking_diagram(problem: Tracking) -> TrackingDiagram:
    """The diagram of a problem, not yet run."""
    builder = DiagramBuilder()
    robot, mover, contact = _plant(problem, builder)
    unit, plan = robot.scaling, problem.reference
    command = Command(plan, problem.ramp_cycles * plan.duration)
    controller = LegController(command, problem.gains, time_unit=unit.time)
    drive, estimator = PiezoDrive(robot), LegEstimator(robot)
    encoder = Encoder(robot, noise=problem.encoder_noise, seed=problem.seed)
    # Another stream than the encoders'.
    frames = MotionCapture(robot, noise=problem.mocap_noise, seed=problem.seed + 1)
    for system in (controller, drive, encoder, frames, estimator):
        builder.AddSystem(system)

    def connect(source, port, *sinks):
        for sink in sinks:
            builder.Connect(source.GetOutputPort(port), sink.GetInputPort(port))

    state = mover.GetOutputPort("state")
    for sink in (drive, encoder, frames):
        builder.Connect(state, sink.GetInputPort("state"))
    connect(controller, "voltages", drive, encoder)
    connect(encoder, "velocity", estimator)
    connect(frames, "legs", estimator)
    connect(frames, "time", estimator)
    connect(estimator, "legs", controller)
    connect(estimator, "velocity", controller)
    builder.Connect(drive.GetOutputPort("actuation"), mover.GetInputPort("actuation"))
    ports = {
        "state": state,
        "contact": contact,
        "voltages": controller.GetOutputPort("voltages"),
        "actuation": drive.GetOutputPort("actuation"),
        "encoder": encoder.GetOutputPort("velocity"),
        "estimate": estimator.GetOutputPort("legs"),
        "estimate_velocity": estimator.GetOutputPort("velocity"),
        "frames": frames.GetOutputPort("legs"),
    }
    loggers = {}
    for name, port in ports.items():
        period = problem.sampling / unit.time
        loggers[name] = LogVectorOutput(port, builder, publish_period=period)
        loggers[name].set_name(f"log_{name}")
    diagram = builder.Build()
    diagram.set_name("hamr_tracking")
    return TrackingDiagram(diagram, robot, mover, loggers, command)


def _plant(problem: Tracking, builder: DiagramBuilder):
    """(robot, the system with the state, its port of contact forces)."""
    model = hamr_variant(problem.stiffness_scale, problem.serial_stiffness)
    friction = problem.friction_scale * problem.reference.friction
    if problem.contact == "stepping":
        robot = build_robot(model, time_step=0, scaling=MM_G_MS, base="euler")
        mover = builder.AddSystem(SteppedPlant(robot, problem.step, friction=friction))
        return robot, mover, mover.GetOutputPort("contact")
    robot = build_robot(
        model,
        builder,
        time_step=problem.step,
        scaling=MM_G_MS,
        base="euler",
        ground=Ground(friction, GROUND_STIFFNESS, GROUND_DISSIPATION),
    )
    instance = robot.plant.GetModelInstanceByName(model.name)
    port = robot.plant.get_generalized_contact_forces_output_port(instance)
    return robot, robot.plant, port


CONTACTS = {"sap": 1e-4, "stepping": 1e-4}
"""The contact models, and the time step of each [s]. A step is also the delay
between controller and plant: at 2e-4 the authors' gains make the legs ring."""

RESOLVED = 2e-11
"""Largest stiffness times time step squared [N m s^2/rad] at which the light
link at a soft joint stays stable; measured: 2e-3 N m/rad is well at 1e-4 s,
4e-3 is not."""


@dataclass(frozen=True)
class Tracking:
    """A plan to execute and the circumstances.

    Attributes:
        reference: the plan.
        cycles: executed after the ramp; of a periodic plan.
        contact: "sap" for Drake's, "stepping" for our hard contact.
        kp, kd, kf: see :class:`Gains`; kp = kd = 0 runs open loop.
        friction_scale: of the ground to the plan's.
        stiffness_scale, serial_stiffness: see :func:`hamr_variant`. With a
            soft joint the default gains are unstable (the encoders do not see
            it): measured at 1e-3 N m/rad, kp <= 10e3 and kd <= 5 are stable.
        ramp: cycles (durations) over which the plan is faded in from rest in
            the start pose; 0 starts in the plan's first state. None for 2 of a
            periodic plan and 0 otherwise.
        after: how long to go on after a plan that is not periodic [s], its
            last voltages and legs held: a jump's apex may come late.
        mocap_noise: standard deviation of the markers [m].
        encoder_noise: standard deviation of the current [A].
        seed: of both noises.
        time_step: of the plant [s]; None for that of :data:`CONTACTS`.
        log_period: [s]; None for 200 samples a cycle, 1 ms at most.
        time_limit: of wall time [s].

    Raises:
        InvalidInput: for a value out of its range.
        UnknownName: for a contact model that is none.
    """

    reference: Reference
    cycles: int = 15
    contact: str = "sap"
    kp: float = KP
    kd: float = KD
    kf: float = KF
    friction_scale: float = 1.0
    stiffness_scale: float = 1.0
    serial_stiffness: float | None = None
    ramp: float | None = None
    after: float = 0.03
    mocap_noise: float = 0.0
    encoder_noise: float = 0.0
    seed: int = 0
    time_step: float | None = None
    log_period: float | None = None
    time_limit: float | None = None

    def __post_init__(self):
        if self.contact not in CONTACTS:
            raise UnknownName("contact model", self.contact, CONTACTS)
        if int(self.cycles) != self.cycles or self.cycles < 1:
            raise InvalidInput(f"cycles must be a whole number >= 1, got {self.cycles}")
        for name in ("friction_scale", "ramp", "after", "mocap_noise", "encoder_noise"):
            value = getattr(self, name)
            if value is not None and not 0 <= value < np.inf:
                raise InvalidInput(f"{name} must be >= 0, got {value}")
        for name in ("time_step", "log_period", "time_limit"):
            value = getattr(self, name)
            if value is not None and not 0 < value < np.inf:
                raise InvalidInput(f"{name} must be > 0 s, got {value}")
        if self.step > 1e-3:
            raise InvalidInput(
                f"time step {self.step:g} s cannot resolve HAMR's 100 Hz modes; "
                "use 1e-3 s or less"
            )
        soft = self.serial_stiffness or 0.0
        if soft * self.step**2 > RESOLVED:
            raise InvalidInput(
                f"serial stiffness {soft:g} N m/rad is too stiff for a time step of "
                f"{self.step:g} s; use at most {RESOLVED / self.step**2:.2g} N m/rad"
            )
        _ = self.gains

    @property
    def gains(self) -> Gains:
        """Of the controller."""
        return Gains(self.kp, self.kd, self.kf)

    @property
    def step(self) -> float:
        """The plant's time step [s]."""
        return self.time_step or CONTACTS[self.contact]

    @property
    def ramp_cycles(self) -> float:
        """The ramp with its default filled in."""
        if self.ramp is not None:
            return self.ramp
        return 2.0 if self.reference.periodic else 0.0

    @property
    def start(self) -> float:
        """When what counts begins [s]: a whole cycle, or the plan itself."""
        ramp = self.ramp_cycles
        whole = np.ceil(ramp) if self.reference.periodic else ramp
        return float(whole * self.reference.duration)

    @property
    def duration(self) -> float:
        """Of the run [s]."""
        length = self.reference.duration
        length = (
            self.cycles * length if self.reference.periodic else length + self.after
        )
        samples = (self.start + length) / self.sampling
        # Whole samples, and a trifle, so that the last one is taken.
        return float((np.ceil(samples - 1e-6) + 1e-6) * self.sampling)

    @property
    def sampling(self) -> float:
        """The log period, a multiple of the time step [s]."""
        wish = self.log_period or min(1e-3, self.reference.duration / 200)
        return max(1, round(wish / self.step)) * self.step


@dataclass(frozen=True)
class _Watched:
    """What `advance` looks at: here the state may live outside the plant."""

    plant: System
    scaling: Scaling


def track(problem: Tracking, *, progress: Progress | None = None) -> Result:
    """Executes a plan; returns what was reached even when cut short.

    Args:
        problem: what to execute, and where.
        progress: called with the time reached and the end time [s].
    """
    built = build_tracking_diagram(problem)
    simulator = Simulator(built.diagram)
    built.place(simulator.get_mutable_context())
    simulator.Initialize()
    end = advance(
        simulator,
        _Watched(built.mover, built.robot.scaling),
        problem.duration,
        progress=progress,
        time_limit=problem.time_limit,
    )
    data = tracking_dataset(built, simulator.get_context())
    model, plan = built.robot.model, problem.reference
    metrics = tracking_metrics(data, plan, problem.start, model.summary.mass)
    metrics |= {
        "wall_s_per_simulated_s": end.wall / max(end.time, 1e-12),
        "reference": plan.name,
        "contact": problem.contact,
        "friction": problem.friction_scale * plan.friction,
    }
    worst = data.loop_gap.max("time")
    return Result(
        kind="hamr.track",
        model=model.name,
        verdict=end.verdict,
        message=end.message,
        data=data,
        residuals={
            f"loop {name} [m]": float(worst.sel(loop=name)) for name in data.loop.values
        },
        timings={"simulate": end.wall},
        metrics=metrics,
        provenance=provenance(model.path, _options(problem), problem.seed),
    )


def _options(problem: Tracking) -> dict:
    options = {k: getattr(problem, k) for k in problem.__dataclass_fields__}
    plan = options.pop("reference")
    knots = len(plan.time)
    return options | {"reference": plan.name, "knots": knots, "period": plan.duration}
