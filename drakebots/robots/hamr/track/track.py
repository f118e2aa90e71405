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

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Annotated, Any

import numpy as np
import xarray as xr
from pydrake.systems.framework import Context, DiagramBuilder, OutputPort, System

from drakebots.core.checks import non_negative, one_of, positive
from drakebots.core.errors import InvalidInput
from drakebots.core.fields import checked
from drakebots.core.run import Progress
from drakebots.core.stages import timed
from drakebots.core.units import MM_G_MS
from drakebots.multibody import Flat, Robot, SteppedPlant, add_loggers, build_robot
from drakebots.results import Result, with_units
from drakebots.robots.hamr.metrics import above_ground, tracking_metrics
from drakebots.robots.hamr.model import LEGS, Plates, hamr_variant, parameters
from drakebots.robots.hamr.reference import (
    CHASSIS,
    Reference,
    as_reference,
    coordinate_names,
    leg_positions,
)
from drakebots.robots.hamr.simulate import (
    HamrDiagramRun,
    HamrRun,
    LoggedDiagram,
    add_drive,
    contact_port,
    hamr_ground,
    run_dataset,
)
from drakebots.robots.hamr.track.feedback import (
    Command,
    Gains,
    LegController,
    LegEstimator,
    MotionCapture,
)

CONTACTS = ("sap", "stepping")
"""The contact models: Drake's, and our time stepping with hard contact."""

_BASE = [f"hamr_{CHASSIS}_{key}" for key in "x y z roll pitch yaw".split()]
"""Coordinates of the chassis."""

MAX_SERIAL = {"sap": 2e-11, "stepping": 2.5e-12}
"""Largest stiffness times time step squared [N m s^2/rad] at which the light link at a
compliant joint is stable, by contact model. Measured: in SAP 2e-3 N m/rad is stable at
1e-4 s, 4e-3 is not; in hard contact 1e-3 is at 5e-5 s, and at 1e-4 s it opens loops by
0.04 mm and loses two thirds of the stride. In hard contact 3e-4 opens loops by some
5e-3 mm even at 2.5e-5 s, with half the stride that SAP makes (docs/evidence/hamr.md).
"""


# --- the problem ------------------------------------------------------------


@checked("mismatch")
class Mismatch:
    """What the robot and its ground are other than planned for."""

    friction: Annotated[float, non_negative()] = 1.0
    """Factor on the friction coefficient of the plan."""
    stiffness: Annotated[float, positive()] = 1.0
    """Factor on the stiffness of the flexures."""
    serial_stiffness: Annotated[float | None, positive("N m/rad")] = None
    """Stiffness of a compliant joint in series with each leg, none by default; see
    :func:`hamr_variant`. The encoders do not see it, and the default gains are unstable
    with it: at 1e-3 N m/rad, kp <= 10e3 and kd <= 5 were measured to be stable."""
    plates: Plates = Plates()
    """What the actuators' electrical parts are other than the encoders assume."""


@checked("noise")
class Noise:
    """Standard deviations of what the rig measures."""

    encoder: Annotated[float, non_negative("A")] = 0.0
    """Of the encoders' currents."""
    mocap: Annotated[float, non_negative("m")] = 0.0
    """Of the markers' coordinates."""


@checked()
class Tracking(HamrRun):
    """A plan to execute, and the circumstances.

    Raises:
        InvalidInput: for a result that is not a plan of HAMR, or a value out of its
            range.
        UnknownName: for an unknown contact model.
    """

    plan: Result | Reference
    """Plan of HAMR, or a reference, to execute."""
    contact: Annotated[str, one_of("contact model", CONTACTS)] = "sap"
    """Contact model, sap (Drake's) or stepping (hard contact)."""
    gains: Gains = Gains()
    """Gains of the feedback on the legs."""
    mismatch: Mismatch = Mismatch()
    """What robot and ground are other than planned for."""
    ramp: Annotated[float | None, non_negative()] = None
    """Number of cycles (or durations) over which the plan is faded in from rest in the
    start pose, 0 to start in the plan's first state; by default 2 for a periodic plan,
    else 0."""
    after: Annotated[float, non_negative("s")] = 0.03
    """Time to go on after the end of a plan that is not periodic, with its last
    voltages and legs held: a jump's apex may come late."""
    noise: Noise = Noise()
    """Noise of what the rig measures."""

    def __post_init__(self):
        super().__post_init__()
        step, serial = self.time_step, self.mismatch.serial_stiffness or 0.0
        most = MAX_SERIAL[self.contact] / step**2
        if serial > most:
            raise InvalidInput(
                f"serial stiffness {serial:g} N m/rad is too stiff for a time step of "
                f"{step:g} s; use at most {most:.2g} N m/rad"
            )
        if self.contact == "stepping" and self.terrain != Flat():
            raise InvalidInput('hard contact ("stepping") knows flat ground only')
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
        """Start of the cycles that count, or of the plan itself [s]."""
        ramp = self.ramp_cycles
        whole_cycles = np.ceil(ramp) if self.reference.periodic else ramp
        return float(whole_cycles * self.reference.duration)

    @property
    def duration(self) -> float:
        """Duration of the run [s]: whole samples."""
        plan, length = self.reference, self.reference.duration
        length = self.cycles * length if plan.periodic else length + self.after
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
        command: plan that the controller executes.
    """

    command: Command

    def place(self, context: Context, offset: np.ndarray = np.zeros(6)) -> None:
        """Puts the robot at rest in its start pose, or into the plan's first state.

        Args:
            context: of the diagram.
            offset: change of the base's pose, as of :meth:`HamrRun.start_offset`.
        """
        names = list(self.robot.plant.GetPositionNames(always_add_suffix=False))
        state = np.zeros((2, len(names)))
        if self.command.ramp > 0:
            state[0, names.index(_BASE[2])] = parameters().number("stance")
        else:
            # By name: a variant of the model may have more coordinates.
            index = [names.index(name) for name in coordinate_names()]
            state[:, index] = self.command.reference.q[0], self.command.reference.v[0]
        state[0, [names.index(name) for name in _BASE]] += offset
        state /= self.robot.position_units(), self.robot.velocity_units()
        own = self.plant.GetMyMutableContextFromRoot(context)
        self.plant.SetPositionsAndVelocities(own, state.ravel())


def build_tracking_diagram(problem: Tracking) -> TrackingDiagram:
    """The diagram of a problem, not yet run."""
    builder = DiagramBuilder()
    robot, plant, contact = _build_robot(problem, builder)
    unit, plan = robot.scaling, problem.reference
    command = Command(plan, problem.ramp_cycles * plan.duration)
    controller = builder.AddSystem(LegController(command, problem.gains, unit.time))
    noise = {"noise": problem.noise.encoder, "seed": problem.seed}
    plates = problem.mismatch.plates
    ports = add_drive(builder, robot, plant, controller, plates=plates, **noise)
    # The frames' noise must differ from the encoders'.
    noise = {"noise": problem.noise.mocap, "seed": problem.seed + 1}
    frames = builder.AddSystem(MotionCapture(robot, **noise))
    estimator = builder.AddSystem(LegEstimator(unit.time))
    ports |= {
        "contact": contact,
        "estimate": estimator.GetOutputPort("legs"),
        "estimate_velocity": estimator.GetOutputPort("velocity"),
        "frames": frames.GetOutputPort("legs"),
    }
    for source, system, port in (
        (ports["state"], frames, "state"),
        (ports["encoder"], estimator, "velocity"),
        (ports["frames"], estimator, "legs"),
        (frames.GetOutputPort("time"), estimator, "time"),
        (ports["estimate"], controller, "legs"),
        (ports["estimate_velocity"], controller, "velocity"),
    ):
        builder.Connect(source, system.GetInputPort(port))
    loggers = add_loggers(builder, ports, problem.sample_period / unit.time)
    diagram = builder.Build()
    diagram.set_name("hamr_tracking")
    return TrackingDiagram(diagram, loggers, robot, plant, command)


def _build_robot(
    problem: Tracking, builder: DiagramBuilder
) -> tuple[Robot, System, OutputPort]:
    """The robot, the system with its state, and the port of the contact forces."""
    other = problem.mismatch
    model = hamr_variant(other.stiffness, other.serial_stiffness)
    friction = other.friction * problem.reference.friction
    step, how = problem.time_step, {"scaling": MM_G_MS, "base": "euler"}
    if problem.contact == "stepping":
        robot = build_robot(model, time_step=0, **how)
        plant = builder.AddSystem(SteppedPlant(robot, step, friction=friction))
        return robot, plant, plant.GetOutputPort("contact")
    ground = replace(hamr_ground(friction), terrain=problem.terrain)
    robot = build_robot(model, builder, time_step=step, ground=ground, **how)
    return robot, robot.plant, contact_port(robot)


# --- the run ----------------------------------------------------------------


@timed("load")
def track(problem: Tracking, *, progress: Progress | None = None) -> Result:
    """Executes a plan; returns what was reached even when cut short.

    Args:
        problem: tracking problem.
        progress: called as progress("simulate", time, duration) [s].
    """
    return _Run(problem, build_tracking_diagram(problem)).simulate(progress)


class _Run(HamrDiagramRun):
    kind = "hamr.track"

    def dataset(self) -> xr.Dataset:
        return _dataset(self.robot, self.context)

    def metrics(self, data: xr.Dataset) -> dict:
        """Figures of the walk, beside those of its plan."""
        problem, plan = self.problem, self.problem.reference
        over, mass = above_ground(data, problem.terrain), self.model.summary.mass
        figures = tracking_metrics(over, plan, problem.start, mass)
        return super().metrics(data) | {
            **figures,
            "reference": plan.name,
            "periodic": plan.periodic,
            "period_s": plan.duration,
            "contact": problem.contact,
            "friction": problem.mismatch.friction * plan.friction,
        }

    def options(self) -> dict[str, Any]:
        plan = self.problem.reference
        what = {"name": plan.name, "knots": len(plan.time), "period": plan.duration}
        return super().options() | {"plan": what}


def _dataset(built: TrackingDiagram, context: Context) -> xr.Dataset:
    """Everything that was logged, in SI, beside the plan.

    Beyond :func:`run_dataset`, in the chassis frame (time, leg, axis): leg_position,
    leg_planned, leg_estimated, leg_seen (the held frame) [m], leg_velocity_planned,
    leg_velocity_estimated [m/s]; voltage_planned; and the plan's own pose of the
    chassis, base_position_planned and base_rpy_planned.
    """
    data = run_dataset(built, context)
    robot, command = built.robot, built.command
    # The base's six coordinates are the chassis' pose; with base "euler" the first
    # body in Drake's order, which the dataset takes for the base, is a leg's.
    position = data.position.values
    names = data.coordinate.values.tolist()
    pose = np.column_stack([position[:, names.index(name)] for name in _BASE])
    times = data.time.values
    moments = [command.reference.phase(command.plan_time(t)) for t in times]
    planned = command.reference.poses_at(np.array(moments))
    planned_legs, rates = map(np.array, zip(*(command.legs(t) for t in times)))
    voltages = np.array([command.voltages(t) for t in times])
    *_, keep = built.states(context)

    def logged(name: str) -> np.ndarray:
        return built.logged(context, name)[1][keep].reshape(-1, 4, 3)

    by_leg, variables = ("time", "leg", "axis"), {}
    for name, values in (("", pose), ("_planned", planned)):
        rpy = np.unwrap(values[:, 3:], axis=0)
        variables[f"base_position{name}"] = ("time", "axis"), values[:, :3], "m"
        variables[f"base_rpy{name}"] = ("time", "angle"), rpy, "rad"
    variables |= {
        "leg_position": (by_leg, leg_positions(robot, position), "m"),
        "leg_planned": (by_leg, planned_legs, "m"),
        "leg_velocity_planned": (by_leg, rates, "m/s"),
        "leg_estimated": (by_leg, logged("estimate"), "m"),
        "leg_velocity_estimated": (by_leg, logged("estimate_velocity"), "m/s"),
        "leg_seen": (by_leg, logged("frames"), "m"),
        "voltage_planned": (("time", "actuator"), voltages, "V"),
    }
    return data.assign(with_units(variables)).assign_coords(leg=list(LEGS))
