"""Simulate any model without control: it falls, stands, or swings."""

from __future__ import annotations

from dataclasses import asdict, dataclass

import numpy as np
from pydrake.math import RigidTransform
from pydrake.systems.analysis import Simulator
from pydrake.systems.framework import DiagramBuilder
from pydrake.systems.primitives import ConstantVectorSource, LogVectorOutput

from drakebots.core.errors import InvalidInput
from drakebots.core.run import check_duration
from drakebots.model import Model
from drakebots.multibody import (
    Ground,
    Progress,
    advance,
    build_robot,
    trajectory_dataset,
)
from drakebots.results import Result, provenance


@dataclass(frozen=True)
class PassiveSimulation:
    """A model left to itself on the ground z = 0.

    Attributes:
        duration: [s].
        friction: of the ground.
        height: of the base at the start [m]; None puts the lowest foot at
            1 mm above the ground, or the base where the file has it.
        time_step: [s].
        log_period: [s].
        time_limit: of wall time [s].
    """

    duration: float = 1.0
    friction: float = 0.6
    height: float | None = None
    time_step: float = 1e-3
    log_period: float = 5e-3
    time_limit: float | None = None

    def __post_init__(self):
        check_duration(self.duration)
        for name in ("time_step", "log_period", "time_limit"):
            value = getattr(self, name)
            if value is not None and not (np.isfinite(value) and value > 0):
                raise InvalidInput(f"{name} must be > 0 s, got {value}")
        if self.height is not None and not np.isfinite(self.height):
            raise InvalidInput(f"height must be finite, got {self.height}")


def simulate_passive(
    model: Model,
    problem: PassiveSimulation = PassiveSimulation(),
    *,
    progress: Progress | None = None,
) -> Result:
    """Simulates a model with all actuators at zero.

    Raises:
        InvalidInput: for a problem that cannot be built.
    """
    builder = DiagramBuilder()
    robot = build_robot(
        model, builder, time_step=problem.time_step, ground=Ground(problem.friction)
    )
    plant = robot.plant
    if plant.num_actuated_dofs():
        zero = builder.AddSystem(
            ConstantVectorSource(np.zeros(plant.num_actuated_dofs()))
        )
        builder.Connect(zero.get_output_port(), plant.get_actuation_input_port())
    log = LogVectorOutput(
        plant.get_state_output_port(), builder, publish_period=problem.log_period
    )
    diagram = builder.Build()
    simulator = Simulator(diagram)
    context = simulator.get_mutable_context()
    _place(robot, plant.GetMyMutableContextFromRoot(context), problem.height)
    simulator.Initialize()
    end = advance(
        simulator,
        robot,
        problem.duration,
        progress=progress,
        time_limit=problem.time_limit,
    )
    logged = log.FindLog(context)
    states = logged.data().T.copy()
    keep = np.isfinite(states).all(axis=1)
    data = trajectory_dataset(robot, logged.sample_times()[keep], states[keep])
    base = data.base_position.values
    gap = float(data.loop_gap.max()) if "loop_gap" in data else 0.0
    return Result(
        kind="passive.simulation",
        model=model.name,
        verdict=end.verdict,
        message=end.message,
        data=data,
        residuals={"loop gap [m]": gap},
        timings={"simulate": end.wall},
        metrics={
            "wall_s_per_simulated_s": end.wall / max(end.time, 1e-12),
            "final_height_m": float(base[-1, 2]),
            "lowest_height_m": float(base[:, 2].min()),
            "final_speed": float(np.abs(data.velocity.values[-1]).max()),
            "friction": problem.friction,
        },
        provenance=provenance(model.path, asdict(problem)),
    )


def _place(robot, context, height: float | None) -> None:
    plant = robot.plant
    floating = [
        plant.get_joint(i)
        for i in plant.GetJointIndices()
        if "floating" in plant.get_joint(i).type_name()
    ]
    if len(floating) != 1:
        return
    X_WB = floating[0].GetPose(context)
    if height is None:
        feet = robot.feet_positions(context)
        if not len(feet):
            return
        lowest = min(p[2] - f.radius for p, f in zip(feet, robot.model.feet))
        height = float(X_WB.translation()[2] - lowest + 1e-3)
    x, y, _ = X_WB.translation()
    robot.set_base_pose(context, RigidTransform(X_WB.rotation(), [x, y, height]))
