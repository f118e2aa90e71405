"""The diagram that makes HAMR-VI walk.

    ┌────────────┐ voltages  ┌────────────┐ actuation  ┌────────────────┐
    │ GaitSource │─────┬────▶│ PiezoDrive │───────────▶│ MultibodyPlant │─┐
    └────────────┘     │     └────────────┘            │ + SceneGraph   │ │
                       │          ▲ state              └────────────────┘ │
                       │          ├───────────────────────────────────────┘
                       │     ┌─────────┐
                       └────▶│ Encoder │──▶ velocity
                             └─────────┘

Inside, lengths are in mm, masses in g, times in ms; voltages in V.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from pydrake.math import RigidTransform
from pydrake.systems.framework import Context, Diagram, DiagramBuilder
from pydrake.systems.primitives import LogVectorOutput

from drakebots.errors import UnknownName
from drakebots.models import Model, load
from drakebots.multibody.plant import Ground, Robot, build_robot
from drakebots.robots.hamr.encoder import Encoder
from drakebots.robots.hamr.gaits import GaitSource, Waveform
from drakebots.robots.hamr.parameters import parameters
from drakebots.robots.hamr.piezo import PiezoDrive
from drakebots.units import MM_G_MS

TIME_STEP = 1e-4
"""Step of the discrete plant [s]."""


GROUND_STIFFNESS = 1e4
GROUND_DISSIPATION = 500.0
"""Of point contact, [N/m] and [s/m]: hard and inelastic. Ours: with Drake's
defaults light feet bounce (duty factors near 0.2 in a trot); with these duty
factors and strides agree with hard contact (docs/hamr.md)."""


def friction_of(surface: str) -> float:
    """The friction coefficient of a surface by name.

    Raises:
        UnknownName: listing the surfaces.
    """
    table = parameters().friction
    if surface not in table:
        raise UnknownName("surface", surface, table)
    return table[surface]


@dataclass(frozen=True)
class HamrDiagram:
    """A built diagram and its parts.

    Attributes:
        diagram: the whole.
        robot: the plant and its units.
        loggers: of "state", "voltages", "actuation", "encoder" and
            "contact", by name; sampled every `log_period` [s].
        waveform: what the source plays.
    """

    diagram: Diagram
    robot: Robot
    loggers: dict
    waveform: Waveform
    log_period: float

    def place(self, context: Context) -> None:
        """Puts the robot at rest in its start pose, feet 0.15 mm up."""
        plant_context = self.robot.plant.GetMyMutableContextFromRoot(context)
        height = parameters().scalar("stance")
        self.robot.set_base_pose(plant_context, RigidTransform([0, 0, height]))

    def logged(self, context: Context, name: str) -> tuple[np.ndarray, np.ndarray]:
        """(times (T,), samples (T, n)) of a logger, in the diagram's units."""
        log = self.loggers[name].FindLog(context)
        return log.sample_times().copy(), log.data().T.copy()


def build_hamr_diagram(
    waveform: Waveform,
    *,
    friction: float,
    model: Model | None = None,
    time_step: float = TIME_STEP,
    log_period: float = 1e-3,
    encoder_noise: float = 0.0,
    seed: int = 0,
    contact: str = "lagged",
) -> HamrDiagram:
    """Builds the diagram above.

    Args:
        waveform: the gait or move.
        friction: coefficient of the ground.
        model: HAMR-VI or a variant of it with the same actuators.
        time_step: [s].
        log_period: [s], a multiple of the time step is best.
        encoder_noise: standard deviation of the encoders' current [A].
        seed: of that noise.
        contact: Drake's discrete contact approximation.
    """
    model = model or load("hamr")
    builder = DiagramBuilder()
    robot = build_robot(
        model,
        builder,
        time_step=time_step,
        scaling=MM_G_MS,
        ground=Ground(friction, GROUND_STIFFNESS, GROUND_DISSIPATION),
        contact=contact,
    )
    plant, unit = robot.plant, robot.scaling
    gait = builder.AddSystem(GaitSource(waveform, unit.time))
    drive = builder.AddSystem(PiezoDrive(robot))
    encoder = builder.AddSystem(Encoder(robot, noise=encoder_noise, seed=seed))
    state = plant.get_state_output_port()
    for system in (drive, encoder):
        builder.Connect(gait.GetOutputPort("voltages"), system.GetInputPort("voltages"))
        builder.Connect(state, system.GetInputPort("state"))
    builder.Connect(drive.GetOutputPort("actuation"), plant.get_actuation_input_port())
    instance = plant.GetModelInstanceByName(model.name)
    ports = {
        "state": state,
        "voltages": gait.GetOutputPort("voltages"),
        "actuation": drive.GetOutputPort("actuation"),
        "encoder": encoder.GetOutputPort("velocity"),
        "contact": plant.get_generalized_contact_forces_output_port(instance),
    }
    loggers = {}
    for name, port in ports.items():
        loggers[name] = LogVectorOutput(
            port, builder, publish_period=log_period / unit.time
        )
        loggers[name].set_name(f"log_{name}")
    diagram = builder.Build()
    diagram.set_name("hamr")
    return HamrDiagram(diagram, robot, loggers, waveform, log_period)
