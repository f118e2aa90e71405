"""Simulate any model without control: it falls, stands or swings.

result = simulate_passive(PassiveSimulation("robot.urdf", duration=2.0))
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from pathlib import Path

import numpy as np
from pydrake.math import RigidTransform
from pydrake.systems.analysis import Simulator
from pydrake.systems.framework import Context, DiagramBuilder
from pydrake.systems.primitives import ConstantVectorSource, LogVectorOutput

from drakebots.core.checks import check, finite, non_negative, optional, positive
from drakebots.core.run import Progress
from drakebots.model import Model, load, model_provenance
from drakebots.multibody import Ground, Robot, advance, build_robot, trajectory_dataset
from drakebots.results import Result

START_GAP = 1e-3
"""Gap between the lowest foot and the ground at the start [m]."""


@dataclass(frozen=True)
class PassiveSimulation:
    """A model left to itself on the ground z = 0, all actuators at zero.

    Attributes:
        model: the model: a name, a path, or a loaded model.
        duration: duration of the motion [s].
        friction: friction coefficient of the ground.
        height: height of the base at the start [m]; by default the lowest foot is
            1 mm above the ground, or, without feet, the base is where the file has it.
        time_step: time step of the plant [s].
        log_period: period of the stored samples [s].
        time_limit: limit of the wall time [s]; what was reached is kept.

    Raises:
        InvalidInput: for a value out of range.
    """

    model: str | Path | Model
    duration: float = 1.0
    friction: float = 0.6
    height: float | None = None
    time_step: float = 1e-3
    log_period: float = 5e-3
    time_limit: float | None = None

    def __post_init__(self):
        check(
            self,
            "",
            duration=positive("s"),
            friction=non_negative(),
            height=optional(finite("m")),
            time_step=positive("s"),
            log_period=positive("s"),
            time_limit=optional(positive("s")),
        )


def simulate_passive(
    problem: PassiveSimulation, *, progress: Progress | None = None
) -> Result:
    """Simulates a model without control; returns what was reached even when cut short.

    Args:
        problem: what to simulate.
        progress: called as progress("simulate", time, duration) [s].

    Raises:
        UnknownName, ModelProblem: for a model that cannot be loaded.
        InvalidInput: for a model that cannot be built.
    """
    model = problem.model if isinstance(problem.model, Model) else load(problem.model)
    builder = DiagramBuilder()
    robot = build_robot(
        model, builder, time_step=problem.time_step, ground=Ground(problem.friction)
    )
    plant = robot.plant
    if plant.num_actuated_dofs():
        zero = ConstantVectorSource(np.zeros(plant.num_actuated_dofs()))
        builder.Connect(
            builder.AddSystem(zero).get_output_port(), plant.get_actuation_input_port()
        )
    log = LogVectorOutput(
        plant.get_state_output_port(), builder, publish_period=problem.log_period
    )
    simulator = Simulator(builder.Build())
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
    options = {f.name: getattr(problem, f.name) for f in fields(problem)}
    return Result(
        kind="passive.simulation",
        model=model.name,
        verdict=end.verdict,
        message=end.message,
        data=data,
        residuals={
            "loop gap [m]": float(data.loop_gap.max()) if "loop_gap" in data else 0.0
        },
        timings={"simulate": end.wall},
        metrics={
            "wall_s_per_simulated_s": end.wall / max(end.time, 1e-12),
            "final_height_m": float(base[-1, 2]),
            "lowest_height_m": float(base[:, 2].min()),
            "final_speed": float(np.abs(data.velocity.values[-1]).max()),
            "friction": problem.friction,
        },
        provenance=model_provenance(model, options | {"model": str(model.path)}),
    )


def _place(robot: Robot, context: Context, height: float | None) -> None:
    """Puts the base of a model with one floating base at its height [m]."""
    joints = (robot.plant.get_joint(i) for i in robot.plant.GetJointIndices())
    floating = [joint for joint in joints if "floating" in joint.type_name()]
    if len(floating) != 1:
        return
    X_WB = floating[0].GetPose(context)
    x, y, z = X_WB.translation()
    if height is None:
        feet = robot.feet_positions(context)
        if not len(feet):
            return
        lowest = min(p[2] - f.radius for p, f in zip(feet, robot.model.feet))
        height = float(z - lowest + START_GAP)
    robot.set_base_pose(context, RigidTransform(X_WB.rotation(), [x, y, height]))
