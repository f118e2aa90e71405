"""The rig: HAMR-VI executing a plan with feedback, as the authors had it.

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

Inside mm, g, ms; V at the drive, SI at what the rig measures.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from pydrake.systems.framework import Context, Diagram, DiagramBuilder, System
from pydrake.systems.primitives import LogVectorOutput

from drakebots.multibody.plant import Ground, Robot, build_robot
from drakebots.multibody.stepped_system import SteppedPlant
from drakebots.robots.hamr.controller import Command, LegController
from drakebots.robots.hamr.diagram import GROUND_DISSIPATION, GROUND_STIFFNESS
from drakebots.robots.hamr.encoder import Encoder
from drakebots.robots.hamr.estimator import LegEstimator, MotionCapture
from drakebots.robots.hamr.parameters import parameters
from drakebots.robots.hamr.piezo import PiezoDrive
from drakebots.robots.hamr.reference import coordinate_names
from drakebots.robots.hamr.variant import hamr_variant
from drakebots.units import MM_G_MS

if TYPE_CHECKING:
    from drakebots.robots.hamr.tracking import Tracking


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
